"""Routes for GitHub Actions: workflows, runs, jobs, logs behind a signed redirect."""

from __future__ import annotations

import hashlib
import hmac
import io
import time
import zipfile

from flask import Blueprint, Response, request

from regreen_playground.events import emit
from regreen_playground.routes.wire import Api, Reply, RepoCall, counted
from regreen_playground.shape import checks as shape
from regreen_playground.things import Job, Json, Workflow, WorkflowRun
from regreen_playground.world import Refused, World

READ = "actions:read contents:read"
WRITE = "actions:write"
LINK_LIFE_S = 60


def routes(world: World) -> Api:
    """The routes."""
    api = Api(world, "actions")
    _workflows(api)
    _runs(api)
    _jobs(api)
    _reruns(api)
    return api


def _run(call: RepoCall, number: int) -> WorkflowRun:
    for one in call.repo.runs:
        if one.id == number:
            return one
    raise Refused(404, "Not Found")


def _job(call: RepoCall, number: int) -> Job:
    for run in call.repo.runs:
        for one in run.jobs:
            if one.id == number:
                return one
    raise Refused(404, "Not Found")


def _workflow(call: RepoCall, named: str) -> Workflow:
    for one in call.repo.workflows.values():
        if named in {str(one.id), one.path.rpartition("/")[2]}:
            return one
    raise Refused(404, "Not Found")


def _listed(call: RepoCall, found: list[WorkflowRun]) -> Reply:
    branch, event = call.asked("branch"), call.asked("event")
    status, sha = call.asked("status"), call.asked("head_sha")
    kept = [
        one
        for one in found
        if (not branch or one.head_branch == branch)
        and (not event or one.event == event)
        and (not status or status in {one.status, one.conclusion})
        and (not sha or one.head_sha == sha)
    ]
    shown = [shape.workflow_run(call.world, call.repo, one) for one in kept[::-1]]
    return counted("workflow_runs", shown)


def _workflows(api: Api) -> None:
    @api.on("GET", "/actions/workflows", READ)
    def every(call: RepoCall) -> object:
        found = call.repo.workflows.values()
        return counted("workflows", [shape.workflow(call.world, call.repo, x) for x in found])

    @api.on("GET", "/actions/workflows/<named>", READ)
    def get(call: RepoCall, named: str) -> object:
        return shape.workflow(call.world, call.repo, _workflow(call, named))

    @api.on("GET", "/actions/workflows/<named>/runs", READ)
    def runs_of(call: RepoCall, named: str) -> object:
        one = _workflow(call, named)
        return _listed(call, [run for run in call.repo.runs if run.workflow is one])


def _runs(api: Api) -> None:
    @api.on("GET", "/actions/runs", READ)
    def every(call: RepoCall) -> object:
        return _listed(call, call.repo.runs)

    @api.on("GET", "/actions/runs/<int:number>", READ)
    def get(call: RepoCall, number: int) -> object:
        return shape.workflow_run(call.world, call.repo, _run(call, number))

    @api.on("GET", "/actions/runs/<int:number>/jobs", READ)
    def jobs(call: RepoCall, number: int) -> object:
        run = _run(call, number)
        latest = call.asked("filter", "latest") == "latest"
        found = [one for one in run.jobs if not latest or one.attempt == run.attempt]
        return counted("jobs", [shape.job(call.world, call.repo, one) for one in found])

    @api.on("GET", "/actions/runs/<int:number>/attempts/<int:attempt>/jobs", "actions:read")
    def jobs_of_attempt(call: RepoCall, number: int, attempt: int) -> object:
        found = [one for one in _run(call, number).jobs if one.attempt == attempt]
        return counted("jobs", [shape.job(call.world, call.repo, one) for one in found])

    @api.on("GET", "/actions/runs/<int:number>/artifacts", READ)
    def artifacts(call: RepoCall, number: int) -> object:
        _run(call, number)
        return counted("artifacts", [])

    @api.on("GET", "/actions/runs/<int:number>/logs", READ)
    def logs(call: RepoCall, number: int) -> object:
        run = _run(call, number)
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for index, job in enumerate(run.jobs):
                archive.writestr(f"{index}_{job.name.replace('/', '_')}.txt", job.log)
        return _redirect(call.world, f"run-{number}.zip", packed.getvalue())


def _jobs(api: Api) -> None:
    @api.on("GET", "/actions/jobs/<int:number>", READ)
    def get(call: RepoCall, number: int) -> object:
        return shape.job(call.world, call.repo, _job(call, number))

    @api.on("GET", "/actions/jobs/<int:number>/logs", READ)
    def log(call: RepoCall, number: int) -> object:
        one = _job(call, number)
        if one.status != "completed":
            raise Refused(404, "Not Found")
        return _redirect(call.world, f"job-{number}.txt", one.log)


def _reruns(api: Api) -> None:
    @api.on("POST", "/actions/runs/<int:number>/rerun", f"{WRITE} contents:write")
    @api.on("POST", "/actions/runs/<int:number>/rerun-failed-jobs", WRITE)
    def rerun(call: RepoCall, number: int) -> object:
        run = _run(call, number)
        if run.status != "completed":
            raise Refused(403, "The workflow run is already running")
        return _again(call, run)

    @api.on("POST", "/actions/jobs/<int:number>/rerun", WRITE)
    def rerun_job(call: RepoCall, number: int) -> object:
        return _again(call, _job(call, number).run)


def _again(call: RepoCall, run: WorkflowRun) -> Reply:
    """Queue the run again; whoever plays the runners finds it as queued."""
    run.attempt += 1
    run.status, run.conclusion, run.updated = "queued", None, call.world.now()
    shown: Json = {
        "workflow_run": shape.workflow_run(call.world, call.repo, run),
        "workflow": shape.workflow(call.world, call.repo, run.workflow),
    }
    emit(call.world, call.repo, "workflow_run", "requested", shown, call.user)
    return Reply(201, {})


def _redirect(world: World, name: str, data: bytes) -> Reply:
    """A 302 to an address that needs no token but dies within a minute, as GitHub's do."""
    until = int(time.time()) + LINK_LIFE_S
    world.signed[name] = data
    target = f"{world.web_url}/_storage/{name}?until={until}&sig={_sign(world, name, until)}"
    return Reply(302, headers={"Location": target})


def _sign(world: World, name: str, until: int) -> str:
    key = str(world.root).encode()
    return hmac.new(key, f"{name}:{until}".encode(), hashlib.sha256).hexdigest()


def storage(world: World) -> Blueprint:
    """The host that signed addresses lead to."""
    blueprint = Blueprint("storage", __name__)

    @blueprint.get("/_storage/<name>")
    def fetch(name: str) -> Response:
        until = request.args.get("until", "0")
        fresh = until.isdecimal() and int(until) >= time.time()
        signed = fresh and hmac.compare_digest(
            _sign(world, name, int(until)), request.args.get("sig", "")
        )
        if request.headers.get("Authorization"):
            return Response("authorization is not accepted here", 400)
        if not signed or name not in world.signed:
            return Response("the link is not valid (any more)", 403)
        return Response(world.signed[name], content_type="text/plain; charset=utf-8")

    return blueprint
