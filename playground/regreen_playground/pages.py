"""Pages for people: what is in the playground, and a box to comment in. Everything shown is escaped."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

from flask import Blueprint, Response, redirect, render_template, request
from werkzeug.wrappers import Response as WerkzeugResponse

from regreen_playground.acts import checks, issues
from regreen_playground.acts.actions import ACTIONS
from regreen_playground.difflines import changes
from regreen_playground.gitstore import GitRefused
from regreen_playground.markdown import html
from regreen_playground.shape.commits import parent_or_empty
from regreen_playground.shape.pulls import merge_base
from regreen_playground.things import CheckRun, Issue, Json, Repository, Review, Thread, User
from regreen_playground.world import Refused, World, issue_of

MOST = 100


def routes(world: World) -> Blueprint:
    """The pages."""
    blueprint = Blueprint("pages", __name__, template_folder="templates")
    blueprint.add_app_template_filter(html, "markdown")
    _overview(world, blueprint)
    _threads(world, blueprint)
    _checks(world, blueprint)
    _git(world, blueprint)
    return blueprint


def page_of(issue: Issue) -> str:
    """Where an issue or pull is shown."""
    word = "pull" if issue.pull else "issues"
    return f"/{issue.repository.full_name}/{word}/{issue.number}"


def _people(world: World) -> list[str]:
    return sorted(one.login for one in world.users.values() if one.type == "User")


def _poster(world: World) -> User:
    """Whom a form speaks for; only this site's own pages may post.

    Raises:
        Refused: the form came from elsewhere (403).
    """
    origin = urlsplit(request.headers.get("Origin", world.web_url)).netloc
    here = urlsplit(f"//{request.host}").hostname in {"127.0.0.1", "localhost"}
    if origin != request.host or not here:
        raise Refused(403, "forms are taken from these pages only")
    return world.user(request.form.get("login", ""))


def _overview(world: World, blueprint: Blueprint) -> None:
    @blueprint.get("/")
    def front() -> str:
        found = list(world.repositories.values())
        return render_template("front.html", repositories=found, page_of=page_of)

    @blueprint.get("/<owner>/<name>")
    def repository(owner: str, name: str) -> str:
        one = world.repository(f"{owner}/{name}")
        tip = one.git.branch(one.default_branch)
        return render_template(
            "repository.html",
            repository=one,
            commits=one.git.commits(tip, limit=MOST) if tip else [],
            page_of=page_of,
            web_url=world.web_url,
        )

    @blueprint.get("/_deliveries")
    def deliveries() -> str:
        parts = [
            (
                f"{one.event} {one.action or ''} {one.status_code} {one.status} {one.guid}",
                json.dumps(json.loads(one.body), indent=1)[:2000],
            )
            for app in world.apps.values()
            for one in app.deliveries[::-1][:MOST]
        ]
        return render_template("text.html", heading="Deliveries", parts=parts)


def _threads(world: World, blueprint: Blueprint) -> None:
    @blueprint.get("/<owner>/<name>/pull/<int:number>")
    @blueprint.get("/<owner>/<name>/issues/<int:number>")
    def thread(owner: str, name: str, number: int) -> str:
        with world.lock:
            one = issue_of(world.repository(f"{owner}/{name}"), number)
            return render_template("thread.html", **_shown(world, one))

    @blueprint.post("/<owner>/<name>/issues/<int:number>/_comment")
    def comment(owner: str, name: str, number: int) -> WerkzeugResponse:
        with world.lock:
            one = issue_of(world.repository(f"{owner}/{name}"), number)
            issues.comment(world, one, _poster(world), request.form.get("body", ""))
            return redirect(page_of(one), 303)

    @blueprint.get("/<owner>/<name>/pull/<int:number>.diff")
    def diff(owner: str, name: str, number: int) -> Response:
        pull = issue_of(world.repository(f"{owner}/{name}"), number).pull
        if pull is None:
            raise Refused(404, "Not Found")
        text = pull.base.git.run("diff", "-M", "--full-index", merge_base(pull), pull.head_sha)
        return Response(text, content_type="text/plain; charset=utf-8")


def _shown(world: World, one: Issue) -> Json:
    pull, repository = one.pull, one.repository
    reviews = [each for each in pull.reviews if each.submitted] if pull else []
    conversation: list[tuple[object, str, object]] = [
        *((each.created, "comment", each) for each in one.comments),
        *((each.submitted, "review", each) for each in reviews),
    ]

    def threads_of(review: Review) -> list[Thread]:
        every = pull.threads if pull else []
        return [each for each in every if each.comments[0].review_id == review.id]

    return {
        "issue": one,
        "pull": pull,
        "repository": repository,
        "conversation": sorted(conversation, key=lambda each: str(each[0])),
        "threads_of": threads_of,
        "runs": _runs(repository, pull.head_sha) if pull else [],
        "files": changes(pull.base.git, merge_base(pull), pull.head_sha)[:MOST] if pull else [],
        "logins": _people(world),
    }


def _runs(repository: Repository, sha: str) -> list[CheckRun]:
    suites = [one for one in repository.suites if one.head_sha == sha]
    ordered = sorted(suites, key=lambda one: one.app.slug == ACTIONS)
    return [run for one in ordered for run in one.runs]


def _checks(world: World, blueprint: Blueprint) -> None:
    def find(owner: str, name: str, number: int) -> tuple[Repository, CheckRun]:
        repository = world.repository(f"{owner}/{name}")
        for suite in repository.suites:
            for run in suite.runs:
                if run.id == number:
                    return repository, run
        raise Refused(404, "Not Found")

    @blueprint.get("/<owner>/<name>/runs/<int:number>")
    def check(owner: str, name: str, number: int) -> str:
        repository, run = find(owner, name, number)
        logins = _people(world)
        return render_template("check.html", repository=repository, run=run, logins=logins)

    @blueprint.post("/<owner>/<name>/runs/<int:number>/_press")
    def press(owner: str, name: str, number: int) -> WerkzeugResponse:
        with world.lock:
            repository, run = find(owner, name, number)
            asked: Json = {"requested_action": {"identifier": request.form.get("identifier", "")}}
            who, app = _poster(world), run.suite.app
            checks.tell_run(world, repository, run, "requested_action", who, more=asked, only=app)
            return redirect(f"/{repository.full_name}/runs/{run.id}", 303)

    @blueprint.get("/<owner>/<name>/actions/runs/<int:number>")
    @blueprint.get("/<owner>/<name>/actions/runs/<int:number>/job/<int:job>")
    def actions(owner: str, name: str, number: int, job: int | None = None) -> str:
        repository = world.repository(f"{owner}/{name}")
        parts = [
            (f"{each.name}: {each.conclusion or each.status}", each.log.decode(errors="replace"))
            for run in repository.runs
            if run.id == number
            for each in run.jobs
            if job in {None, each.id}
        ]
        return render_template("text.html", heading=f"Workflow run {number}", parts=parts)


def _git(world: World, blueprint: Blueprint) -> None:
    @blueprint.get("/<owner>/<name>/commit/<sha>")
    @blueprint.get("/<owner>/<name>/commit/<sha>/checks")
    def commit(owner: str, name: str, sha: str) -> str:
        git = world.repository(f"{owner}/{name}").git
        found = git.resolve(sha)
        if found is None:
            raise Refused(404, "Not Found")
        one = git.commit(found)
        diff = git.run("diff", "-M", parent_or_empty(one), found).decode(errors="replace")
        title = f"{one.author.name} <{one.author.email}>, {one.author.date}"
        return render_template(
            "text.html", heading=f"Commit {found[:12]}", parts=[(title, one.message), ("", diff)]
        )

    @blueprint.get("/<owner>/<name>/blob/<rev>/<path:path>")
    @blueprint.get("/<owner>/<name>/raw/<rev>/<path:path>")
    def blob(owner: str, name: str, rev: str, path: str) -> Response:
        git = world.repository(f"{owner}/{name}").git
        try:
            entry = git.at(rev, path) if git.resolve(rev) else None
        except GitRefused:
            entry = None
        if entry is None or entry.kind != "blob":
            raise Refused(404, "Not Found")
        return Response(git.blob(entry.sha), content_type="text/plain; charset=utf-8")


__all__ = ["routes"]
