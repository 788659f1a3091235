"""Check suites and runs, and the events that follow."""

from __future__ import annotations

from datetime import datetime

from regreen_playground.events import emit
from regreen_playground.shape import checks as shape
from regreen_playground.shape.commits import api, commit
from regreen_playground.things import (
    App,
    CheckRun,
    CheckSuite,
    Json,
    Repository,
    Status,
    User,
)
from regreen_playground.world import Refused, World

PER_CALL = 50


def suite_for(
    world: World,
    repository: Repository,
    app: App,
    sha: str,
    *,
    branch: str | None = None,
    before: str | None = None,
) -> CheckSuite:
    """The App's suite on a commit, made if new (GitHub keeps one for each App and commit)."""
    for known in repository.suites:
        if known.app is app and known.head_sha == sha:
            return known
    heads = {tip: name for name, tip in repository.git.refs("refs/heads/").items()}
    where = branch or heads.get(sha, "").removeprefix("refs/heads/") or None
    made = CheckSuite(world.new_id(), app, sha, where, before, world.now(), world.now())
    repository.suites.append(made)
    return made


def request_suites(
    world: World, repository: Repository, sha: str, *, branch: str, before: str, sender: User
) -> None:
    """After a push: one suite for each installed App that may write checks, and its event."""
    for installation in world.installations_on(repository):
        if installation.permissions.get("checks") == "write":
            made = suite_for(world, repository, installation.app, sha, branch=branch, before=before)
            tell_suite(world, repository, made, "requested", sender, only=installation.app)


def report_status(
    world: World, repository: Repository, sha: str, *, context: str, state: str, sender: User
) -> Status:
    """Set a commit status, and emit its event."""
    made = Status(world.new_id(), sha, context, state, None, None, sender, world.now())
    repository.statuses.append(made)
    git = repository.git
    tips = [
        (name.removeprefix("refs/heads/"), tip) for name, tip in git.refs("refs/heads/").items()
    ]
    base = api(world, repository)
    shown = shape.status(world, repository, made)
    payload: Json = {
        **{
            key: shown[key]
            for key in (
                "id",
                "state",
                "description",
                "target_url",
                "context",
                "avatar_url",
                "created_at",
                "updated_at",
            )
        },
        "sha": sha,
        "name": repository.full_name,
        "commit": commit(world, repository, git.commit(sha)),
        "branches": [
            {
                "name": name,
                "commit": {"sha": tip, "url": f"{base}/commits/{tip}"},
                "protected": False,
            }
            for name, tip in tips
            if tip == sha
        ],
    }
    emit(world, repository, "status", None, payload, sender)
    return made


def tell_suite(
    world: World,
    repository: Repository,
    one: CheckSuite,
    action: str,
    sender: User,
    *,
    only: App | None = None,
) -> None:
    """Emit a `check_suite` event."""
    payload: Json = {"check_suite": shape.suite(world, repository, one)}
    emit(world, repository, "check_suite", action, payload, sender, only=only)


def tell_run(
    world: World,
    repository: Repository,
    one: CheckRun,
    action: str,
    sender: User,
    *,
    more: Json | None = None,
    only: App | None = None,
) -> None:
    """Emit a `check_run` event."""
    shown = shape.run(world, repository, one)
    shown["check_suite"] = shape.suite(world, repository, one.suite)
    payload: Json = {"check_run": shown, **(more or {})}
    emit(world, repository, "check_run", action, payload, sender, only=only)


def new_run(
    world: World, repository: Repository, suite: CheckSuite, name: str, sender: User
) -> CheckRun:
    """A queued run."""
    made = CheckRun(world.new_id(), suite, name, "queued", None, world.now(), None)
    suite.runs.append(made)
    tell_run(world, repository, made, "created", sender)
    return made


def finish_run(
    world: World, repository: Repository, one: CheckRun, conclusion: str, sender: User
) -> None:
    """Complete a run, and its suite when it was the last."""
    one.status, one.conclusion = "completed", conclusion
    one.completed = one.completed or world.now()
    tell_run(world, repository, one, "completed", sender)
    settle(world, repository, one.suite, sender)


def settle(world: World, repository: Repository, suite: CheckSuite, sender: User) -> None:
    """Complete a suite all of whose runs are complete."""
    was = (suite.status, suite.conclusion)
    suite.updated = world.now()
    if any(run.status != "completed" for run in suite.runs):
        suite.status, suite.conclusion = "in_progress", None
        return
    ends = [run.conclusion or "neutral" for run in suite.runs]
    order = ("failure", "timed_out", "cancelled", "action_required", "success")
    suite.conclusion = next((word for word in order if word in ends), "neutral")
    suite.status = "completed"
    if was != (suite.status, suite.conclusion):
        tell_suite(world, repository, suite, "completed", sender)


def fill(world: World, one: CheckRun, body: Json) -> None:
    """Lay a create or update request over a run; annotations are appended.

    Raises:
        Refused: a limit of GitHub's was passed (422).
    """
    output = body.get("output")
    if isinstance(output, dict):
        _fill_output(one, output)
    actions = body.get("actions")
    if isinstance(actions, list):
        _check_actions(actions)
        one.actions = [dict(each) for each in actions]
    for key in ("name", "external_id", "details_url"):
        value = body.get(key)
        if isinstance(value, str):
            setattr(one, key, value)
    if isinstance(started := body.get("started_at"), str):
        one.started = datetime.fromisoformat(started)
    conclusion = body.get("conclusion")
    status = body.get("status")
    if status == "completed" and conclusion is None and one.conclusion is None:
        raise invalid("conclusion", "missing_field")
    if isinstance(conclusion, str):
        one.status, one.conclusion = "completed", conclusion
        one.completed = world.now()
    elif isinstance(status, str):
        one.status = status
        if status != "completed":
            one.conclusion, one.completed = None, None


def invalid(field: str, code: str = "invalid", message: str = "") -> Refused:
    """A 422 about one field of a check run."""
    detail: Json = {"resource": "CheckRun", "field": field, "code": code}
    if message:
        detail["message"] = message
    return Refused(422, "Validation Failed", [detail])


def _fill_output(one: CheckRun, output: Json) -> None:
    for key in ("title", "summary", "text"):
        value = output.get(key)
        if isinstance(value, str):
            if len(value) > 65_535:
                raise invalid(key, "custom", f"{key} exceeds a maximum length of 65535")
            setattr(one, key, value)
    if one.title is None or one.summary is None:
        raise invalid("output", "missing_field")
    added = output.get("annotations")
    if not isinstance(added, list):
        return
    if len(added) > PER_CALL:
        message = f"annotations exceeds a maximum quantity of {PER_CALL}"
        raise invalid("annotations", "custom", message)
    for each in added:
        _check_annotation(each)
    one.annotations += [dict(each) for each in added]


def _check_annotation(each: object) -> None:
    if not isinstance(each, dict):
        raise invalid("annotations")
    start, end = each.get("start_line"), each.get("end_line")
    lines = isinstance(start, int) and isinstance(end, int) and 1 <= start <= end
    level = each.get("annotation_level") in {"notice", "warning", "failure"}
    worded = bool(each.get("path")) and bool(each.get("message"))
    columns = "start_column" in each or "end_column" in each
    if not (lines and level and worded) or (columns and start != end):
        raise invalid("annotations")


def _check_actions(actions: list[object]) -> None:
    if len(actions) > 3:
        raise invalid("actions", "custom", "actions exceeds a maximum quantity of 3")
    for each in actions:
        if not isinstance(each, dict):
            raise invalid("actions")
        for key, longest in (("label", 20), ("description", 40), ("identifier", 20)):
            value = each.get(key)
            if not isinstance(value, str) or not value or len(value) > longest:
                raise invalid("actions", "custom", f"{key} must have 1 to {longest} characters")
