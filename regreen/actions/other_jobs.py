"""What a workflow runs beside the failing step: the checks behind it in the same job, and the other jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from regreen.actions.job_plan import JobPlan, PlannedStep
from regreen.actions.phases import runs_tests
from regreen.actions.step_trial import make_step_trial
from regreen.actions.steps import is_test_step
from regreen.domain.errors import UserError
from regreen.runs.trial import Trial

_MAX_JOBS = 6


@dataclass(frozen=True, slots=True)
class OtherJob:
    """A job beside the failing step; `trial` is None where it cannot run here, and `why` says why.

    `is_rest`: the checks of the failing job that stand behind the failing step, which never ran before.
    """

    name: str
    trial: Trial | None = None
    why: str = ""
    is_rest: bool = False


def plan_other_jobs(
    plans: Sequence[JobPlan],
    failing: JobPlan,
    step: PlannedStep | None,
    like: Trial,
    pythons: Sequence[str] = (),
) -> tuple[OtherJob, ...]:
    """The rest of the failing job and the workflow's other jobs, one matrix cell of each.

    Args:
        plans: every job of the workflow.
        failing: the job that failed.
        step: its failing step, where it is known.
        like: the trial of that step; whose code it is and how the box is built are taken from it.
        pythons: the interpreters that the sandbox has.
    """
    found: list[OtherJob] = []
    last = _find_last_check(failing)
    if last is not None and step is not None and last.number > step.number:
        rest = _plan_job(failing, last, like, pythons)
        found.append(replace(rest, name=f"the rest of {failing.name}", is_rest=True))
    cells: dict[str, JobPlan] = {}
    for plan in plans:
        if plan.id != failing.id and (plan.id not in cells or not cells[plan.id].supported):
            cells[plan.id] = plan
    for plan in cells.values():
        if (last := _find_last_check(plan)) is None:
            found.append(OtherJob(plan.name, why="it checks nothing"))
        elif sum(one.trial is not None for one in found) >= _MAX_JOBS:
            found.append(OtherJob(plan.name, why=f"only {_MAX_JOBS} jobs are run"))
        elif not plan.supported or plan.skipped:
            why = "; ".join(f"{one.what}: {one.why}" for one in plan.unsupported)
            found.append(OtherJob(plan.name, why=why or plan.skipped))
        else:
            found.append(_plan_job(plan, last, like, pythons))
    return tuple(found)


def _plan_job(plan: JobPlan, step: PlannedStep, like: Trial, pythons: Sequence[str]) -> OtherJob:
    try:
        trial = make_step_trial(plan, step, trust=like.trust, scope=like.scope, pythons=pythons)
    except UserError as error:
        return OtherJob(plan.name, why=str(error))
    return OtherJob(plan.name, trial)


def _find_last_check(plan: JobPlan) -> PlannedStep | None:
    """The last step that tests or lints; a run up to it runs the checks before it as well."""
    checks = [
        one for one in plan.steps if one.kind == "run" and (runs_tests(one) or is_test_step(one))
    ]
    return checks[-1] if checks else None
