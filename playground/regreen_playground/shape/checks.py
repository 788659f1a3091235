"""Check suites, check runs, statuses, workflow runs and jobs as GitHub's JSON shows them."""

from __future__ import annotations

from urllib.parse import quote

from regreen_playground.shape.apps import integration
from regreen_playground.shape.commits import api, simple_commit, web
from regreen_playground.shape.people import maybe, repository, user, when
from regreen_playground.shape.pulls import minimal_pull
from regreen_playground.things import (
    CheckRun,
    CheckSuite,
    Job,
    Json,
    Repository,
    Status,
    Step,
    Workflow,
    WorkflowRun,
)
from regreen_playground.world import World


def pulls_at(world: World, repo: Repository, sha: str) -> list[Json]:
    """The open pulls of this repository (never of forks) whose head is a commit."""
    return [
        minimal_pull(world, one)
        for one in repo.pulls.values()
        if one.head_sha == sha and one.issue.state == "open" and one.head is repo
    ]


def suite(world: World, repo: Repository, one: CheckSuite) -> Json:
    """One check suite."""
    url = f"{api(world, repo)}/check-suites/{one.id}"
    return {
        "id": one.id,
        "node_id": f"CS_{one.id}",
        "head_branch": one.head_branch,
        "head_sha": one.head_sha,
        "status": one.status,
        "conclusion": one.conclusion,
        "url": url,
        "before": one.before,
        "after": one.head_sha,
        "pull_requests": pulls_at(world, repo, one.head_sha),
        "app": integration(world, one.app),
        "created_at": when(one.created),
        "updated_at": when(one.updated),
        "rerequestable": True,
        "runs_rerequestable": True,
        "latest_check_runs_count": len(one.runs),
        "check_runs_url": f"{url}/check-runs",
        "head_commit": simple_commit(repo.git.commit(one.head_sha)),
        "repository": repository(world, repo),
    }


def run(world: World, repo: Repository, one: CheckRun) -> Json:
    """One check run."""
    url = f"{api(world, repo)}/check-runs/{one.id}"
    html = f"{web(world, repo)}/runs/{one.id}"
    return {
        "id": one.id,
        "name": one.name,
        "node_id": f"CR_{one.id}",
        "head_sha": one.suite.head_sha,
        "external_id": one.external_id or "",
        "url": url,
        "html_url": html,
        "details_url": one.details_url or html,
        "status": one.status,
        "conclusion": one.conclusion,
        "started_at": when(one.started),
        "completed_at": maybe(one.completed),
        "output": {
            "title": one.title,
            "summary": one.summary,
            "text": one.text,
            "annotations_count": len(one.annotations),
            "annotations_url": f"{url}/annotations",
        },
        "check_suite": {"id": one.suite.id},
        "app": integration(world, one.suite.app),
        "pull_requests": pulls_at(world, repo, one.suite.head_sha),
    }


def annotation(world: World, repo: Repository, one: CheckRun, data: Json) -> Json:
    """One annotation of a check run."""
    blob = f"{web(world, repo)}/blob/{one.suite.head_sha}/{quote(str(data['path']))}"
    return {
        "path": data["path"],
        "blob_href": blob,
        "start_line": data["start_line"],
        "end_line": data["end_line"],
        "start_column": data.get("start_column"),
        "end_column": data.get("end_column"),
        "annotation_level": data["annotation_level"],
        "title": data.get("title"),
        "message": data["message"],
        "raw_details": data.get("raw_details"),
    }


def status(world: World, repo: Repository, one: Status) -> Json:
    """One commit status."""
    who = user(world, one.user)
    return {
        "url": f"{api(world, repo)}/statuses/{one.sha}",
        "avatar_url": who["avatar_url"],
        "id": one.id,
        "node_id": f"SC_{one.id}",
        "state": one.state,
        "description": one.description,
        "target_url": one.target_url,
        "context": one.context,
        "created_at": when(one.created),
        "updated_at": when(one.created),
        "creator": who,
    }


def workflow(world: World, repo: Repository, one: Workflow) -> Json:
    """One workflow."""
    return {
        "id": one.id,
        "node_id": f"W_{one.id}",
        "name": one.name,
        "path": one.path,
        "state": "active",
        "created_at": when(one.created),
        "updated_at": when(one.created),
        "url": f"{api(world, repo)}/actions/workflows/{one.id}",
        "html_url": f"{web(world, repo)}/blob/{repo.default_branch}/{one.path}",
        "badge_url": f"{web(world, repo)}/workflows/{quote(one.name)}/badge.svg",
    }


def workflow_run(world: World, repo: Repository, one: WorkflowRun) -> Json:
    """One workflow run."""
    url = f"{api(world, repo)}/actions/runs/{one.id}"
    record = repo.git.commit(one.head_sha)
    return {
        "id": one.id,
        "name": one.workflow.name,
        "node_id": f"WFR_{one.id}",
        "check_suite_id": one.suite.id,
        "check_suite_node_id": f"CS_{one.suite.id}",
        "head_branch": one.head_branch,
        "head_sha": one.head_sha,
        "path": one.workflow.path,
        "run_number": one.number,
        "run_attempt": one.attempt,
        "display_title": record.message.partition("\n")[0],
        "event": one.event,
        "status": one.status,
        "conclusion": one.conclusion,
        "workflow_id": one.workflow.id,
        "url": url,
        "html_url": f"{web(world, repo)}/actions/runs/{one.id}",
        "pull_requests": pulls_at(world, repo, one.head_sha),
        "created_at": when(one.created),
        "updated_at": when(one.updated),
        "actor": user(world, one.actor),
        "triggering_actor": user(world, one.actor),
        "run_started_at": when(one.created),
        "referenced_workflows": [],
        "previous_attempt_url": f"{url}/attempts/{one.attempt - 1}" if one.attempt > 1 else None,
        "jobs_url": f"{url}/jobs",
        "logs_url": f"{url}/logs",
        "check_suite_url": f"{api(world, repo)}/check-suites/{one.suite.id}",
        "artifacts_url": f"{url}/artifacts",
        "cancel_url": f"{url}/cancel",
        "rerun_url": f"{url}/rerun",
        "workflow_url": f"{api(world, repo)}/actions/workflows/{one.workflow.id}",
        "head_commit": simple_commit(record),
        "repository": repository(world, repo),
        "head_repository": repository(world, one.head) if world.has(one.head) else None,
    }


def job(world: World, repo: Repository, one: Job) -> Json:
    """One job of a workflow run."""
    run_url = f"{api(world, repo)}/actions/runs/{one.run.id}"
    return {
        "id": one.id,
        "run_id": one.run.id,
        "workflow_name": one.run.workflow.name,
        "head_branch": one.run.head_branch,
        "run_url": run_url,
        "run_attempt": one.attempt,
        "node_id": f"JOB_{one.id}",
        "head_sha": one.run.head_sha,
        "url": f"{api(world, repo)}/actions/jobs/{one.id}",
        "html_url": f"{web(world, repo)}/actions/runs/{one.run.id}/job/{one.id}",
        "status": one.status,
        "conclusion": one.conclusion,
        "created_at": when(one.created),
        "started_at": when(one.started),
        "completed_at": maybe(one.completed),
        "name": one.name,
        "steps": [_step(each) for each in one.steps],
        "check_run_url": f"{api(world, repo)}/check-runs/{one.check.id}",
        "labels": list(one.labels),
        "runner_id": 1,
        "runner_name": "playground",
        "runner_group_id": 1,
        "runner_group_name": "Default",
    }


def _step(one: Step) -> Json:
    return {
        "name": one.name,
        "status": "completed",
        "conclusion": one.conclusion,
        "number": one.number,
        "started_at": when(one.started),
        "completed_at": when(one.completed),
    }
