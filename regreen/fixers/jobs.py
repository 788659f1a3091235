"""From a workflow's document to plans: its jobs, their matrix cells, the reusable workflows they call."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from regreen.fixers.expressions import UNKNOWN, EvaluationFailed, Value, to_string, value_of
from regreen.fixers.job_plan import Files, JobPlan, Service, Step, Unsupported
from regreen.fixers.matrix import cells, default_name
from regreen.fixers.matrix_names import cell_shown, spoken_of
from regreen.fixers.plan_context import (
    Context,
    Mappings,
    asked,
    deep_value,
    environment,
    is_dynamic,
    is_false,
    mapping,
    need_mapping,
    text_of,
)
from regreen.fixers.services import kind_of, ports_of, service
from regreen.fixers.steps import Draft, StepPlanner, looks_like_a_test, runs_checks
from regreen.fixers.workflow_yaml import load

_MAX_DEPTH = 10  # of reusable workflows within each other


@dataclass(frozen=True)
class _Machine:
    """Where a job runs."""

    runs_on: str
    image: str
    services: tuple[Service, ...]


class Planner:
    """Plans the jobs of one workflow document."""

    def __init__(
        self,
        document: Mappings,
        github: Mappings,
        files: Files,
        inputs: Mappings | None = None,
        *,
        depth: int = 0,
        shown: str = "",
    ) -> None:
        self._document = document
        self._shown = shown
        self._files = files
        self._depth = depth
        self._github = github
        self._inputs = _inputs(document, inputs)
        self._outputs: dict[str, Value] = {}
        self._planned_jobs: list[JobPlan] = []

    def jobs(self, wanted: str | None) -> Iterator[JobPlan]:
        """The plans, in the file's order; only the job `wanted` where it is given."""
        for name, job in mapping(self._document.get("jobs")).items():
            plans = self._guarded(name, need_mapping(job, f"job {name!r}"))
            self._planned_jobs.extend(plans)
            if wanted in {None, name}:
                yield from plans
            elif (wanted or "").startswith(f"{name}/"):
                yield from (one for one in plans if one.id == wanted)

    def _guarded(self, name: str, job: Mappings) -> list[JobPlan]:
        """The plans of one job; an expression that fails on its values fails this job, not the file."""
        try:
            return list(self._job(name, job))
        except EvaluationFailed as error:
            return [
                JobPlan(name, name, {}, False, (Unsupported("expression", str(error)),), "", (), ())
            ]

    def _job(self, name: str, job: Mappings) -> Iterator[JobPlan]:
        context = self._base_context()
        matrix = deep_value(mapping(job.get("strategy")).get("matrix"), context)
        dynamic = is_dynamic(matrix)
        if dynamic and (told := self._told(name, job, matrix)) is not None:
            matrix, dynamic = told, False
        every: list[dict[str, Value]] = (
            [{}] if matrix is None or dynamic else cells(mapping(matrix))
        )
        for at, cell in enumerate(every):
            context = self._base_context()
            context["matrix"] = {"*": UNKNOWN} if dynamic else cell
            context["strategy"] = {
                "fail-fast": True,
                "job-index": float(at),
                "job-total": float(len(every)),
                "max-parallel": float(len(every)),
            }
            blocked = (
                [Unsupported("matrix", "its values are computed by another job")] if dynamic else []
            )
            if "uses" in job:
                yield from self._called(name, job, context, cell, blocked)
            else:
                yield self._planned(name, job, context, cell, blocked)

    def _told(self, name: str, job: Mappings, matrix: Value) -> Mappings | None:
        """A matrix of the one cell that the name on GitHub tells; other values of it stay unknown."""
        shown = self._shown.split(" / ")[0] if "uses" in job else self._shown
        template = to_string(job.get("name")) if job.get("name") is not None else ""
        cell = cell_shown(name, template, matrix, spoken_of(job), shown) if shown else None
        return None if cell is None else {key: [value] for key, value in cell.items()}

    def _know_outputs(self, name: str, job: Mappings, draft: Draft) -> None:
        """What later jobs may ask of this one, as far as its steps' outputs are known without running them."""
        outputs: Mappings = {"*": UNKNOWN}
        for key, value in mapping(job.get("outputs")).items():
            outputs[key] = value_of(value, draft.context) if isinstance(value, str) else value
        self._outputs[name] = {"result": "success", "outputs": outputs}

    def _base_context(self) -> Context:
        return {
            "github": self._github,
            "env": {},
            "vars": {"*": UNKNOWN},
            "secrets": {"*": UNKNOWN},
            "inputs": self._inputs,
            "needs": {"*": UNKNOWN, **self._outputs},
            "job": {"*": UNKNOWN, "status": UNKNOWN},
            "runner": {
                "os": "Linux",
                "arch": "X64",
                "temp": "/home/regreen/_temp",
                "tool_cache": "/env/tools",
                "name": "regreen",
                "debug": "",
                "environment": "github-hosted",
            },
            "steps": {},
            "matrix": {},
            "strategy": {},
            "jobs": {"*": UNKNOWN},
        }

    def _name(self, name: str, job: Mappings, context: Context, cell: dict[str, Value]) -> str:
        """The job's name as GitHub shows it: the template filled in, or the cell's values behind it."""
        given = to_string(job.get("name")) if job.get("name") is not None else ""
        if "${{" in given:
            return text_of(given, context).strip() or default_name(name, cell)
        return default_name(given or name, cell)

    # -- reusable workflows --------------------------------------------------------------------------------------

    def _called(
        self,
        name: str,
        job: Mappings,
        context: Context,
        cell: dict[str, Value],
        blocked: list[Unsupported],
    ) -> Iterator[JobPlan]:
        uses = to_string(job.get("uses"))
        shown = self._name(name, job, context, cell)
        problem = ""
        document: Value = None
        if not uses.startswith("./"):
            problem = "a reusable workflow of another repository"
        elif self._depth >= _MAX_DEPTH:
            problem = "reusable workflows call each other too deep"
        elif (content := self._files(posixpath.normpath(uses))) is None:
            problem = "the file is not in the repository"
        else:
            document = load(content.decode("utf-8", "replace"))
        if problem or not isinstance(document, dict):
            blocked = [*blocked, Unsupported(uses, problem or "not a workflow")]
            yield JobPlan(name, shown, cell, False, tuple(blocked), "", (), ())
            return
        given = {key: deep_value(value, context) for key, value in mapping(job.get("with")).items()}
        rest = self._shown.removeprefix(f"{shown} / ")
        inner = Planner(
            document, self._github, self._files, given, depth=self._depth + 1, shown=rest
        )
        for one in inner.jobs(None):
            yield _renamed(
                one, f"{name}/{one.id}", f"{shown} / {one.name}", cell | one.matrix, tuple(blocked)
            )

    # -- one job ---------------------------------------------------------------------------------------------------

    def _planned(
        self,
        name: str,
        job: Mappings,
        context: Context,
        cell: dict[str, Value],
        blocked: list[Unsupported],
    ) -> JobPlan:
        runs_on, trouble = _runner(job.get("runs-on"), context)
        blocked += trouble
        env = environment(self._document.get("env"), context, {})
        context["env"] = dict(env)
        env |= environment(job.get("env"), context, env)
        context["env"] = dict(env)
        image, services, containers = _containers(job, context)
        blocked += containers
        context["job"] = {
            "*": UNKNOWN,
            "status": UNKNOWN,
            "services": {one.name: {"ports": ports_of(one), "*": UNKNOWN} for one in services},
        }
        run_defaults = mapping(mapping(self._document.get("defaults")).get("run")) | mapping(
            mapping(job.get("defaults")).get("run")
        )
        draft = Draft(
            context,
            env,
            text_of(run_defaults.get("shell"), context),
            text_of(run_defaults.get("working-directory"), context),
            blocked=blocked,
        )
        steps = job.get("steps")
        for step in steps if isinstance(steps, list) else []:
            planned = StepPlanner(draft, self._files, earlier=self._planned_jobs)
            planned.add(need_mapping(step, f"a step of job {name!r}"))
        self._know_outputs(name, job, draft)
        shown = self._name(name, job, context, cell)
        return _finished(name, shown, job, cell, draft, _Machine(runs_on, image, services))


def _inputs(document: Mappings, given: Mappings | None) -> Mappings:
    """What `inputs.x` is: given by the caller, else the default that the workflow declares."""
    call = mapping(mapping(document.get("on")).get("workflow_call"))
    if given is None:
        asked_for = mapping(call.get("inputs"))
        return {name: mapping(one).get("default", UNKNOWN) for name, one in asked_for.items()}
    values: Mappings = {}
    for name, declared in mapping(call.get("inputs")).items():
        kind = to_string(mapping(declared).get("type"))
        value = mapping(declared).get("default")
        values[name] = (
            value if value is not None else {"boolean": False, "number": 0.0}.get(kind, "")
        )
    return values | given


def _finished(  # noqa: PLR0917 - all of them belong to one job
    name: str, shown: str, job: Mappings, cell: dict[str, Value], draft: Draft, machine: _Machine
) -> JobPlan:
    condition, skipped = job.get("if"), ""
    if condition is not None and is_false(asked(condition, draft.context)):
        skipped = to_string(condition)
    last = _last_that_matters(draft.steps)
    standing = tuple(one for one in draft.blocked if one.step is None or one.step <= last)
    minutes = deep_value(job.get("timeout-minutes"), draft.context)
    needs = job.get("needs")
    return JobPlan(
        id=name,
        name=shown,
        matrix=cell,
        supported=not standing,
        unsupported=standing,
        image=machine.image or machine.runs_on,
        services=machine.services,
        steps=tuple(draft.steps),
        runs_on=machine.runs_on,
        timeout_minutes=minutes if isinstance(minutes, float) else None,
        skipped=skipped,
        needs=tuple(
            to_string(one)
            for one in (needs if isinstance(needs, list) else [needs] if needs else [])
        ),
    )


def _last_that_matters(steps: list[Step]) -> int:
    """The last step that somebody would want to see run again: what stands in the way behind it is no matter."""
    runs = [step for step in steps if step.run and step.kind == "run"]
    tests = [
        step
        for step in steps
        if step.run and step.kind != "skip" and (step.kind == "run" or runs_checks(step))
    ]
    wanted = [step for step in tests if looks_like_a_test(step)] or runs
    return max((step.number for step in wanted), default=0)


def _renamed(
    plan: JobPlan, id_: str, name: str, cell: dict[str, Value], blocked: tuple[Unsupported, ...]
) -> JobPlan:
    every = (*blocked, *plan.unsupported)
    return JobPlan(
        id_, name, cell, not every, every, plan.image, plan.services, plan.steps, plan.runs_on,
        plan.timeout_minutes, plan.skipped, plan.needs,
    )  # fmt: skip


# --- the machine ------------------------------------------------------------------------------------------------------


def _runner(asked: Value, context: Context) -> tuple[str, list[Unsupported]]:
    """The runner's label, and why it cannot be stood in for."""
    value = deep_value(asked, context)
    if isinstance(value, dict):
        value = value.get("labels", value.get("group"))
    labels = [
        to_string(deep_value(one, context))
        for one in (value if isinstance(value, list) else [value])
    ]
    shown = ", ".join(label for label in labels if label)
    lowered = shown.lower()
    if not shown:
        unknown = value is UNKNOWN
        return "", [] if unknown else [Unsupported("runs-on", "the job names no runner")]
    if re.search(r"windows|macos|mac-|darwin|osx", lowered):
        return shown, [Unsupported(f"runs-on: {shown}", "only Linux jobs can be run again here")]
    if re.search(r"\barm(?:64|v\d)?\b|aarch64|s390x|ppc64|riscv", lowered):
        return shown, [Unsupported(f"runs-on: {shown}", "another processor than this machine has")]
    if "gpu" in lowered or "cuda" in lowered:
        return shown, [Unsupported(f"runs-on: {shown}", "needs a graphics processor")]
    if not re.search(r"ubuntu|linux|debian", lowered) and ("self-hosted" in lowered):
        return shown, [Unsupported(f"runs-on: {shown}", "nothing is known about this runner")]
    return shown, []


def _containers(
    job: Mappings, context: Context
) -> tuple[str, tuple[Service, ...], list[Unsupported]]:
    image = _image(job.get("container"), context)
    declared = mapping(deep_value(job.get("services"), context))
    services = tuple(
        service(name, shown, mapping(one))
        for name, one in declared.items()
        if (shown := _image(one, context))
    )
    blocked = [
        Unsupported(f"service {one.name} ({one.image})", "no server of this kind is started here")
        for one in services
        if not kind_of(one.image)
    ]
    if image and services and not blocked:
        blocked = [Unsupported("services", "a container job reaches them by their own names")]
    return image, services, blocked


def _image(asked: Value, context: Context) -> str:
    value = deep_value(asked, context)
    return text_of(value.get("image") if isinstance(value, dict) else value, context)
