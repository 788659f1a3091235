"""Workflow runs: jobs, steps, logs, and the events GitHub sends while they go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from regreen_playground.acts import checks
from regreen_playground.events import emit
from regreen_playground.shape import checks as shape
from regreen_playground.things import (
    App,
    CheckSuite,
    Job,
    Json,
    Repository,
    Step,
    User,
    Workflow,
    WorkflowRun,
)
from regreen_playground.world import World

ACTIONS = "github-actions"


@dataclass(frozen=True, slots=True)
class JobReport:
    """How a job went: its steps (name, conclusion) and its log."""

    name: str
    steps: Sequence[tuple[str, str]]
    log: bytes
    labels: tuple[str, ...] = ("ubuntu-latest",)

    @property
    def conclusion(self) -> str:
        """Failure when a step failed."""
        return "failure" if any(word == "failure" for _, word in self.steps) else "success"


def actions_app(world: World) -> App:
    """GitHub's own App for Actions, made when first needed."""
    for app in world.apps.values():
        if app.slug == ACTIONS:
            return app
    owner = world.add_user("github", "Organization")
    number = world.new_id()
    made = App(
        id=number,
        slug=ACTIONS,
        name="GitHub Actions",
        owner=owner,
        bot=world.add_user("github-actions[bot]", "Bot"),
        client_id=f"Iv1.{number}",
        permissions={"actions": "write", "checks": "write", "metadata": "read"},
        events=(),
        hook_url="",
        secret="",
        public_key=b"",
        created=world.now(),
    )
    world.apps[number] = made
    return made


def workflow_at(world: World, repository: Repository, path: str, name: str) -> Workflow:
    """The workflow with this file, made if new."""
    known = repository.workflows.get(path)
    if known is None:
        known = Workflow(world.new_id(), name, path, world.now())
        repository.workflows[path] = known
    return known


def run(
    world: World,
    repository: Repository,
    workflow: Workflow,
    *,
    sha: str,
    branch: str,
    event: str,
    actor: User,
    reports: Sequence[JobReport],
    head: Repository | None = None,
    again: WorkflowRun | None = None,
) -> WorkflowRun:
    """Play a whole run: requested, each job queued and completed, the run and its suite completed."""
    bot = actions_app(world)
    if again is None:
        suite = CheckSuite(world.new_id(), bot, sha, branch, None, world.now(), world.now())
        repository.suites.append(suite)
        number = 1 + sum(one.workflow is workflow for one in repository.runs)
        one = WorkflowRun(
            id=world.new_id(),
            workflow=workflow,
            number=number,
            event=event,
            head_sha=sha,
            head_branch=branch,
            head=head or repository,
            actor=actor,
            suite=suite,
            created=world.now(),
            updated=world.now(),
        )
        repository.runs.append(one)
    else:
        one = again
        one.attempt += 1
        one.suite.runs.clear()
        one.suite.status, one.suite.conclusion = "queued", None
    one.status, one.conclusion = "in_progress", None
    tell(world, repository, one, "requested", actor)
    jobs = [_play(world, repository, one, report, actor) for report in reports]
    failed = any(job.conclusion == "failure" for job in jobs)
    one.status, one.conclusion = "completed", "failure" if failed else "success"
    one.updated = world.now()
    tell(world, repository, one, "completed", actor)
    return one


def tell(world: World, repository: Repository, one: WorkflowRun, action: str, sender: User) -> None:
    """Emit a `workflow_run` event."""
    payload: Json = {
        "workflow_run": shape.workflow_run(world, repository, one),
        "workflow": shape.workflow(world, repository, one.workflow),
    }
    emit(world, repository, "workflow_run", action, payload, sender)


def _play(
    world: World, repository: Repository, run: WorkflowRun, report: JobReport, actor: User
) -> Job:
    check = checks.new_run(world, repository, run.suite, report.name, actor)
    job = Job(
        id=world.new_id(),
        run=run,
        name=report.name,
        attempt=run.attempt,
        check=check,
        created=world.now(),
        started=world.now(),
        labels=report.labels,
        log=report.log,
    )
    run.jobs.append(job)
    check.details_url = f"{world.web_url}/{repository.full_name}/actions/runs/{run.id}/job/{job.id}"
    _tell_job(world, repository, job, "queued", actor)
    job.steps = [
        Step(number, name, word, world.now(), world.now())
        for number, (name, word) in enumerate(report.steps, start=1)
    ]
    job.status, job.conclusion, job.completed = "completed", report.conclusion, world.now()
    _tell_job(world, repository, job, "completed", actor)
    check.started = job.started
    check.title = report.name
    check.summary = f"{report.name}: {report.conclusion}"
    checks.finish_run(world, repository, check, report.conclusion, actor)
    return job


def _tell_job(world: World, repository: Repository, job: Job, action: str, sender: User) -> None:
    shown = shape.job(world, repository, job)
    if action == "queued":
        shown |= {"status": "queued", "conclusion": None, "steps": []}
    payload: Json = {"workflow_job": shown}
    emit(world, repository, "workflow_job", action, payload, sender)
