"""Plans a workflow: every job of every matrix cell, its steps with what is known put in, and what stands in the way."""

from __future__ import annotations

from regreen.fixers.expressions import UNKNOWN, Value
from regreen.fixers.job_plan import WORKSPACE, Files, JobPlan, no_files
from regreen.fixers.jobs import Planner
from regreen.fixers.workflow_yaml import WorkflowError, load


def plan(
    yaml_text: str,
    *,
    job: str | None = None,
    event: str = "push",
    files: Files = no_files,
    repository: str | None = None,
    shown: str = "",
) -> tuple[JobPlan, ...]:
    """Every job of a workflow, one plan a matrix cell, in the file's order.

    Args:
        yaml_text: the workflow file.
        job: only this job (its id in the file).
        event: what triggered the run.
        files: gives a file of the repository, for local actions, reusable workflows, version files.
        repository: "owner/name", where it is known.
        shown: the name of the job in question on GitHub; it tells the values of a matrix that another job computed.

    Raises:
        WorkflowError: GitHub would refuse the file; the message says where.
    """
    document = load(yaml_text)
    listed = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(listed, dict):
        message = "not a workflow: a mapping with `jobs:` is needed"
        raise WorkflowError(message)
    planner = Planner(document, github_context(event, repository), files, shown=shown)
    plans = tuple(planner.jobs(job))
    if job is not None and not plans:
        known = ", ".join(listed)
        message = f"there is no job {job!r}; the file has {known}"
        raise WorkflowError(message)
    return plans


def github_context(event: str, repository: str | None) -> dict[str, Value]:
    """What expressions may know before a run: the event's shape, not its content."""
    is_pull = event in {"pull_request", "pull_request_target"}
    owner, _, name = (repository or "").partition("/")
    return {
        "event_name": event,
        "ref": "refs/pull/1/merge" if is_pull else "refs/heads/main",
        "ref_name": "1/merge" if is_pull else "main",
        "ref_type": "branch",
        "head_ref": "feature" if is_pull else "",
        "base_ref": "main" if is_pull else "",
        "repository": repository or UNKNOWN,
        "repository_owner": owner or UNKNOWN,
        "workspace": WORKSPACE,
        "server_url": "https://github.com",
        "api_url": "https://api.github.com",
        "graphql_url": "https://api.github.com/graphql",
        "run_id": "1",
        "run_number": "1",
        "run_attempt": "1",
        "token": "",
        "event": {
            "*": UNKNOWN,
            "repository": {"*": UNKNOWN, "name": name or UNKNOWN, "default_branch": "main"},
        },
        "*": UNKNOWN,
    }
