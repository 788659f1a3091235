"""Routes for check runs, check suites and code scanning uploads."""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import uuid
import zlib

from regreen_playground.acts import checks
from regreen_playground.routes.repositories import commit_named
from regreen_playground.routes.wire import Api, Call, Reply, RepoCall, counted, listed, text_of
from regreen_playground.shape import checks as shape
from regreen_playground.things import App, CheckRun, CheckSuite, Json, Upload
from regreen_playground.world import Refused, World

READ = "checks:read contents:read"


def routes(world: World) -> Api:
    """The routes."""
    api = Api(world, "checks")
    _runs(api)
    _lists(api)
    _suites(api)
    _scanning(api)
    return api


def _an_app(call: Call) -> App:
    if call.app is None:
        raise Refused(403, "You must authenticate via a GitHub App.")
    return call.app


def _run(call: RepoCall, number: int) -> CheckRun:
    for suite in call.repo.suites:
        for one in suite.runs:
            if one.id == number:
                return one
    raise Refused(404, "Not Found")


def _suite(call: RepoCall, number: int) -> CheckSuite:
    for one in call.repo.suites:
        if one.id == number:
            return one
    raise Refused(404, "Not Found")


def _runs(api: Api) -> None:
    @api.on("POST", "/check-runs", "checks:write")
    def create(call: RepoCall) -> object:
        app, body = _an_app(call), call.body()
        name, head = text_of(body, "name", "CheckRun"), text_of(body, "head_sha", "CheckRun")
        if call.repo.git.kind(head) != "commit":
            raise Refused(422, f"No commit found for SHA: {head}")
        suite = checks.suite_for(call.world, call.repo, app, head)
        now = call.world.now()
        made = CheckRun(call.world.new_id(), suite, name, "queued", None, now, None)
        checks.fill(call.world, made, body)
        suite.runs.append(made)
        checks.tell_run(call.world, call.repo, made, "created", call.user)
        if made.status == "completed":
            checks.tell_run(call.world, call.repo, made, "completed", call.user)
        checks.settle(call.world, call.repo, suite, call.user)
        return Reply(201, shape.run(call.world, call.repo, made))

    @api.on("PATCH", "/check-runs/<int:number>", "checks:write")
    def update(call: RepoCall, number: int) -> object:
        one, app = _run(call, number), _an_app(call)
        if one.suite.app is not app:
            raise Refused(
                403,
                "Invalid app_id `" + str(app.id) + "` - check run can only be "
                "modified by the GitHub App that created it.",
            )
        was = one.status
        checks.fill(call.world, one, call.body())
        if one.status == "completed" and was != "completed":
            checks.tell_run(call.world, call.repo, one, "completed", call.user)
        checks.settle(call.world, call.repo, one.suite, call.user)
        return shape.run(call.world, call.repo, one)

    @api.on("GET", "/check-runs/<int:number>", READ)
    def get(call: RepoCall, number: int) -> object:
        return shape.run(call.world, call.repo, _run(call, number))

    @api.on("GET", "/check-runs/<int:number>/annotations", READ)
    def annotations(call: RepoCall, number: int) -> object:
        one = _run(call, number)
        shown = [shape.annotation(call.world, call.repo, one, each) for each in one.annotations]
        return listed(shown)

    @api.on("POST", "/check-runs/<int:number>/rerequest", "checks:write")
    def rerequest(call: RepoCall, number: int) -> object:
        one = _run(call, number)
        rerun(call.world, call, one)
        return Reply(201, {})


def rerun(world: World, call: RepoCall, one: CheckRun) -> None:
    """Ask the App that made a check run to run it again."""
    checks.tell_run(world, call.repo, one, "rerequested", call.user, only=one.suite.app)


def _filtered(call: RepoCall, found: list[CheckRun]) -> Reply:
    name, status = call.asked("check_name"), call.asked("status")
    app, which = call.asked("app_id"), call.asked("filter", "latest")
    kept = [
        one
        for one in found
        if (not name or one.name == name)
        and (not status or one.status == status)
        and (not app or str(one.suite.app.id) == app)
    ]
    if which == "latest":
        newest = {(one.suite.id, one.name): one for one in kept}
        kept = [one for one in kept if newest[(one.suite.id, one.name)] is one]
    return counted("check_runs", [shape.run(call.world, call.repo, one) for one in kept[::-1]])


def _lists(api: Api) -> None:
    @api.on("GET", "/commits/<path:rev>/check-runs", READ)
    def at_commit(call: RepoCall, rev: str) -> object:
        sha = commit_named(call, rev)
        suites = [one for one in call.repo.suites if one.head_sha == sha]
        return _filtered(call, [run for one in suites for run in one.runs])

    @api.on("GET", "/commits/<path:rev>/check-suites", READ)
    def suites_at(call: RepoCall, rev: str) -> object:
        sha, app = commit_named(call, rev), call.asked("app_id")
        found = [
            one
            for one in call.repo.suites
            if one.head_sha == sha and (not app or str(one.app.id) == app)
        ]
        shown = [shape.suite(call.world, call.repo, one) for one in found]
        return counted("check_suites", shown)

    @api.on("GET", "/check-suites/<int:number>/check-runs", READ)
    def in_suite(call: RepoCall, number: int) -> object:
        return _filtered(call, list(_suite(call, number).runs))


def _suites(api: Api) -> None:
    @api.on("GET", "/check-suites/<int:number>", READ)
    def get(call: RepoCall, number: int) -> object:
        return shape.suite(call.world, call.repo, _suite(call, number))

    @api.on("POST", "/check-suites", "checks:write")
    def create(call: RepoCall) -> object:
        app, head = _an_app(call), text_of(call.body(), "head_sha", "CheckSuite")
        if call.repo.git.kind(head) != "commit":
            raise Refused(422, f"No commit found for SHA: {head}")
        known = len(call.repo.suites)
        made = checks.suite_for(call.world, call.repo, app, head)
        fresh = len(call.repo.suites) > known
        return Reply(201 if fresh else 200, shape.suite(call.world, call.repo, made))

    @api.on("POST", "/check-suites/<int:number>/rerequest", "checks:write contents:write")
    def rerequest(call: RepoCall, number: int) -> object:
        one = _suite(call, number)
        checks.tell_suite(call.world, call.repo, one, "rerequested", call.user, only=one.app)
        return Reply(201, {})


def _scanning(api: Api) -> None:
    @api.on("POST", "/code-scanning/sarifs", "security_events:write")
    def upload(call: RepoCall) -> object:
        body = call.body()
        sha = text_of(body, "commit_sha", "Sarif")
        if call.repo.git.kind(sha) != "commit":
            raise Refused(404, "commit not found")
        try:
            packed = base64.b64decode(text_of(body, "sarif", "Sarif"), validate=True)
            document = json.loads(gzip.decompress(packed))
        except (binascii.Error, OSError, EOFError, zlib.error, ValueError):
            raise Refused(400, "Invalid SARIF: rawData is not gzip-compressed Base64") from None
        ref = text_of(body, "ref", "Sarif")
        made = Upload(str(uuid.uuid4()), sha, ref, _sarif(document), call.world.now())
        call.repo.uploads.append(made)
        url = f"{call.world.api_url}/repos/{call.repo.full_name}/code-scanning/sarifs/{made.id}"
        return Reply(202, {"id": made.id, "url": url})

    @api.on("GET", "/code-scanning/sarifs/<number>", "security_events:read")
    def get(call: RepoCall, number: str) -> object:
        if not any(one.id == number for one in call.repo.uploads):
            raise Refused(404, "Not Found")
        base = f"{call.world.api_url}/repos/{call.repo.full_name}/code-scanning"
        return {"processing_status": "complete", "analyses_url": f"{base}/analyses", "errors": None}


def _sarif(document: object) -> Json:
    runs = document.get("runs") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(runs, list):
        raise Refused(400, "Invalid SARIF: runs is missing")
    if len(runs) > 20:
        raise Refused(400, "Invalid SARIF: more than 20 runs")
    if document.get("version") != "2.1.0":
        raise Refused(400, "Invalid SARIF: version must be 2.1.0")
    return document
