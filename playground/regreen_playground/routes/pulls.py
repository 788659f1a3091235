"""Pull request routes."""

from __future__ import annotations

from regreen_playground.acts import pulls, pushes
from regreen_playground.difflines import changes
from regreen_playground.routes.wire import Api, Reply, RepoCall, listed, optional, text_of, texts
from regreen_playground.shape import commits as shape_commits
from regreen_playground.shape import pulls as shape
from regreen_playground.shape.people import user
from regreen_playground.things import Json, Pull, Repository
from regreen_playground.world import Refused, World

MOST_FILES = 3000


def the_pull(call: RepoCall, number: int) -> Pull:
    """The pull a route names.

    Raises:
        Refused: there is none (404).
    """
    found = call.repo.pulls.get(number)
    if found is None:
        raise Refused(404, "Not Found")
    return found


def routes(world: World) -> Api:
    """The routes."""
    api = Api(world, "pulls")
    _reading(api)
    _changing(api)
    _asking(api)
    return api


def _reading(api: Api) -> None:
    @api.on("GET", "/pulls", "pull_requests:read")
    def every(call: RepoCall) -> object:
        state, head, base = call.asked("state", "open"), call.asked("head"), call.asked("base")
        found = [
            one
            for one in call.repo.pulls.values()
            if state in ("all", one.issue.state)
            and (not base or one.base_ref == base)
            and (not head or head == f"{one.head.owner.login}:{one.head_ref}")
        ]
        if call.asked("sort") == "updated":
            found.sort(key=lambda one: one.issue.updated)
        newest_first = call.asked("direction", "asc" if call.asked("sort") else "desc") == "desc"
        ordered = found[::-1] if newest_first else found
        return listed([shape.pull(call.world, one) for one in ordered])

    @api.on("GET", "/pulls/<int:number>", "pull_requests:read")
    def get(call: RepoCall, number: int) -> object:
        one = the_pull(call, number)
        span = (shape.merge_base(one), one.head_sha)
        if call.wants("diff"):
            return Reply(200, raw=one.base.git.run("diff", "-M", "--full-index", *span))
        if call.wants("patch"):
            return Reply(200, raw=one.base.git.run("format-patch", "--stdout", "..".join(span)))
        return shape.full_pull(call.world, one)

    @api.on("GET", "/pulls/<int:number>/files", "pull_requests:read")
    def files(call: RepoCall, number: int) -> object:
        one = the_pull(call, number)
        found = changes(one.base.git, shape.merge_base(one), one.head_sha)[:MOST_FILES]
        shown = [shape_commits.file(call.world, call.repo, each, one.head_sha) for each in found]
        return listed(shown)

    @api.on("GET", "/pulls/<int:number>/commits", "pull_requests:read")
    def commits(call: RepoCall, number: int) -> object:
        one = the_pull(call, number)
        found = one.base.git.commits(one.head_sha, f"^{one.base_sha}")[::-1][:250]
        return listed([shape_commits.commit(call.world, call.repo, each) for each in found])

    @api.on("GET", "/pulls/<int:number>/merge", "pull_requests:read")
    def is_merged(call: RepoCall, number: int) -> object:
        if the_pull(call, number).merged is None:
            raise Refused(404, "Not Found")
        return Reply(204)


def _changing(api: Api) -> None:
    @api.on("POST", "/pulls", "pull_requests:write")
    def create(call: RepoCall) -> object:
        body = call.body()
        head, ref = _head(call, text_of(body, "head", "PullRequest"))
        made = pulls.open_pull(
            call.world,
            call.repo,
            call.user,
            head=head,
            head_ref=ref,
            base_ref=text_of(body, "base", "PullRequest"),
            title=text_of(body, "title", "PullRequest"),
            body=optional(body, "body"),
            draft=body.get("draft") is True,
            maintainer_can_modify=body.get("maintainer_can_modify") is not False,
            app=call.app,
        )
        return Reply(201, shape.full_pull(call.world, made))

    @api.on("PATCH", "/pulls/<int:number>", "pull_requests:write")
    def update(call: RepoCall, number: int) -> object:
        one, body = the_pull(call, number), call.body()
        state = optional(body, "state")
        if state not in {None, "open", "closed"}:
            raise Refused(422, "Validation Failed", ["state is invalid"])
        pulls.update(
            call.world,
            one,
            call.user,
            title=optional(body, "title"),
            body=optional(body, "body"),
            state=state,
            base_ref=optional(body, "base"),
        )
        return shape.full_pull(call.world, one)

    @api.on("PUT", "/pulls/<int:number>/merge", "contents:write")
    def merge(call: RepoCall, number: int) -> object:
        one, body = the_pull(call, number), call.body()
        before = call.repo.git.refs()
        sha = pulls.merge(
            call.world,
            one,
            call.user,
            sha=optional(body, "sha"),
            message=optional(body, "commit_title"),
            squash=body.get("merge_method") == "squash",
        )
        pushes.moved(call.world, call.repo, before, call.user)
        return {"sha": sha, "merged": True, "message": "Pull Request successfully merged"}


def _head(call: RepoCall, named: str) -> tuple[Repository, str]:
    owner, colon, ref = named.partition(":")
    if not colon or owner.lower() == call.repo.owner.login.lower():
        return call.repo, ref if colon else named
    for one in call.world.repositories.values():
        if one.parent is call.repo and one.owner.login.lower() == owner.lower():
            return one, ref
    detail: Json = {"resource": "PullRequest", "field": "head", "code": "invalid"}
    raise Refused(422, "Validation Failed", [detail])


def _asking(api: Api) -> None:
    @api.on("GET", "/pulls/<int:number>/requested_reviewers", "pull_requests:read")
    def asked(call: RepoCall, number: int) -> object:
        one = the_pull(call, number)
        return {"users": [user(call.world, who) for who in one.reviewers], "teams": []}

    @api.on("POST", "/pulls/<int:number>/requested_reviewers", "pull_requests:write")
    def ask(call: RepoCall, number: int) -> object:
        one = the_pull(call, number)
        for login in texts(call.body(), "reviewers"):
            if login.lower() not in call.world.users:
                raise Refused(422, "Reviews may only be requested from collaborators.")
            pulls.request_reviewer(call.world, one, call.world.user(login), call.user)
        return Reply(201, shape.pull(call.world, one))

    @api.on("DELETE", "/pulls/<int:number>/requested_reviewers", "pull_requests:write")
    def forget(call: RepoCall, number: int) -> object:
        one = the_pull(call, number)
        gone = {login.lower() for login in texts(call.body(), "reviewers")}
        one.reviewers = [who for who in one.reviewers if who.login.lower() not in gone]
        return shape.pull(call.world, one)
