"""Routes for issues, their comments, labels, and reactions on everything."""

from __future__ import annotations

from regreen_playground.acts import issues, pulls
from regreen_playground.acts.issues import HasReactions
from regreen_playground.routes.callers import MAY_NOT, allows
from regreen_playground.routes.wire import (
    Api,
    Reply,
    RepoCall,
    any_body,
    counted,
    listed,
    optional,
    text_of,
    texts,
)
from regreen_playground.shape import issues as shape
from regreen_playground.things import Issue, Json, Reaction
from regreen_playground.world import Refused, World, comment_of, issue_of, thread_of

READ = "issues:read pull_requests:read"
WRITE = "issues:write pull_requests:write"


def routes(world: World) -> Api:
    """The routes."""
    api = Api(world, "issues")
    _issues(api)
    _one_issue(api)
    _search(api)
    _comments(api)
    _labels(api)
    _labels_on(api)
    _assignees(api)
    _reactions(api)
    return api


def the_issue(call: RepoCall, number: int) -> Issue:
    """The issue a route names, if the token may touch that kind: issue or pull.

    Raises:
        Refused: there is none (404), or the permission is for the other kind (403).
    """
    found = issue_of(call.repo, number)
    token = call.caller.token
    if token is not None and found.pull is None and not allows(token.permissions, "issues:read"):
        raise Refused(403, MAY_NOT)
    return found


def _issues(api: Api) -> None:
    @api.on("GET", "/issues", "issues:read")
    def every(call: RepoCall) -> object:
        state, creator = call.asked("state", "open"), call.asked("creator").lower()
        wanted = [name.lower() for name in call.asked("labels").split(",") if name]
        found = [
            one
            for one in call.repo.issues.values()
            if state in ("all", one.state)
            and (not creator or one.user.login.lower() == creator)
            and all(name in {label.name.lower() for label in one.labels} for name in wanted)
        ]
        if call.asked("sort") == "updated":
            found.sort(key=lambda one: one.updated)
        ordered = found if call.asked("direction") == "asc" else found[::-1]
        return listed([shape.issue(call.world, one) for one in ordered])


def _one_issue(api: Api) -> None:
    @api.on("POST", "/issues", "issues:write")
    def create(call: RepoCall) -> object:
        body = call.body()
        made = issues.open_issue(
            call.world,
            call.repo,
            call.user,
            text_of(body, "title", "Issue"),
            body=optional(body, "body"),
            labels=texts(body, "labels"),
            app=call.app,
        )
        return Reply(201, shape.full_issue(call.world, made))

    @api.on("GET", "/issues/<int:number>", READ)
    def get(call: RepoCall, number: int) -> object:
        return shape.full_issue(call.world, the_issue(call, number))

    @api.on("PATCH", "/issues/<int:number>", WRITE)
    def update(call: RepoCall, number: int) -> object:
        one, body = the_issue(call, number), call.body()
        state = optional(body, "state")
        if state not in {None, "open", "closed"}:
            raise Refused(422, "Validation Failed", ["state is invalid"])
        title, text = optional(body, "title"), optional(body, "body")
        if one.pull is not None:
            pulls.update(call.world, one.pull, call.user, title=title, body=text, state=state)
        else:
            clear = "body" in body and text is None
            issues.update_issue(
                call.world, one, call.user, title=title, body=text, clear_body=clear
            )
            if state:
                reason = optional(body, "state_reason")
                issues.set_state(call.world, one, call.user, state, reason)
        if "labels" in body:
            _set_labels(call, one, texts(body, "labels"))
        return shape.full_issue(call.world, one)


def _search(api: Api) -> None:
    @api.plain("GET", "/search/issues")
    def search(call: RepoCall) -> object:
        words = call.asked("q").split()
        named = [word.partition(":")[2].lower() for word in words if word.startswith("repo:")]
        plain = [word.strip('"').lower() for word in words if ":" not in word]
        found = []
        for repo in call.world.repositories.values():
            token = call.caller.token
            seen = token.covers(repo) if token else not repo.private
            if not seen or (named and repo.full_name.lower() not in named):
                continue
            for one in repo.issues.values():
                text = f"{one.title}\n{one.body or ''}".lower()
                kind = "is:pr" if one.pull else "is:issue"
                other = {"is:pr", "is:issue"} - {kind}
                if other & set(words) or {"is:open", "is:closed"} - {f"is:{one.state}"} & set(
                    words
                ):
                    continue
                if all(word in text for word in plain):
                    found.append({**shape.issue(call.world, one), "score": 1.0})
        return counted("items", found, incomplete_results=False)


def _comments(api: Api) -> None:
    @api.on("GET", "/issues/<int:number>/comments", READ)
    def of_issue(call: RepoCall, number: int) -> object:
        one = the_issue(call, number)
        since = call.asked("since")
        shown = [shape.comment(call.world, one, each) for each in one.comments]
        return listed([each for each in shown if not since or str(each["updated_at"]) >= since])

    @api.on("POST", "/issues/<int:number>/comments", WRITE)
    def create(call: RepoCall, number: int) -> object:
        one = the_issue(call, number)
        text = text_of(call.body(), "body", "IssueComment")
        made = issues.comment(call.world, one, call.user, text, call.app)
        return Reply(201, shape.comment(call.world, one, made))

    @api.on("GET", "/issues/comments", READ)
    def of_repository(call: RepoCall) -> object:
        shown = [
            shape.comment(call.world, one, each)
            for one in call.repo.issues.values()
            for each in one.comments
        ]
        return listed(shown)

    @api.on("GET", "/issues/comments/<int:number>", READ)
    def get(call: RepoCall, number: int) -> object:
        return shape.comment(call.world, *comment_of(call.repo, number))

    @api.on("PATCH", "/issues/comments/<int:number>", WRITE)
    def update(call: RepoCall, number: int) -> object:
        on, one = comment_of(call.repo, number)
        if call.app is not None and one.user is not call.user:
            raise Refused(403, MAY_NOT)
        text = text_of(call.body(), "body", "IssueComment")
        issues.edit_comment(call.world, on, one, call.user, text)
        return shape.comment(call.world, on, one)

    @api.on("DELETE", "/issues/comments/<int:number>", WRITE)
    def delete(call: RepoCall, number: int) -> object:
        on, one = comment_of(call.repo, number)
        issues.delete_comment(call.world, on, one, call.user)
        return Reply(204)

    @api.on("GET", "/issues/<int:number>/events", READ)
    @api.on("GET", "/issues/<int:number>/timeline", READ)
    def events(call: RepoCall, number: int) -> object:
        the_issue(call, number)
        return listed([])


def _labels(api: Api) -> None:
    @api.on("GET", "/labels", READ)
    def every(call: RepoCall) -> object:
        return listed([shape.label(call.world, call.repo, x) for x in call.repo.labels.values()])

    @api.on("POST", "/labels", WRITE)
    def create(call: RepoCall) -> object:
        body = call.body()
        name = text_of(body, "name", "Label")
        if name.lower() in call.repo.labels:
            detail: Json = {"resource": "Label", "code": "already_exists", "field": "name"}
            raise Refused(422, "Validation Failed", [detail])
        made = issues.label_named(call.world, call.repo, name)
        made.color = optional(body, "color") or made.color
        made.description = optional(body, "description")
        return Reply(201, shape.label(call.world, call.repo, made))

    @api.on("GET", "/labels/<path:name>", READ)
    def get(call: RepoCall, name: str) -> object:
        found = call.repo.labels.get(name.lower())
        if found is None:
            raise Refused(404, "Not Found")
        return shape.label(call.world, call.repo, found)


def _labels_on(api: Api) -> None:
    def shown(call: RepoCall, one: Issue) -> Reply:
        return listed([shape.label(call.world, call.repo, each) for each in one.labels])

    @api.on("GET", "/issues/<int:number>/labels", READ)
    def on(call: RepoCall, number: int) -> object:
        return shown(call, the_issue(call, number))

    @api.on("POST", "/issues/<int:number>/labels", WRITE)
    def add(call: RepoCall, number: int) -> object:
        one = the_issue(call, number)
        for name in _names():
            issues.add_label(call.world, one, name, call.user)
        return shown(call, one)

    @api.on("PUT", "/issues/<int:number>/labels", WRITE)
    def put(call: RepoCall, number: int) -> object:
        one = the_issue(call, number)
        _set_labels(call, one, _names())
        return shown(call, one)

    @api.on("DELETE", "/issues/<int:number>/labels", WRITE)
    def clear(call: RepoCall, number: int) -> object:
        _set_labels(call, the_issue(call, number), [])
        return Reply(204)

    @api.on("DELETE", "/issues/<int:number>/labels/<path:name>", WRITE)
    def remove(call: RepoCall, number: int, name: str) -> object:
        one = the_issue(call, number)
        for label in one.labels:
            if label.name.lower() == name.lower():
                issues.remove_label(call.world, one, label, call.user)
                return shown(call, one)
        raise Refused(404, "Label does not exist")


def _names() -> list[str]:
    data = any_body()
    given = data.get("labels") if isinstance(data, dict) else data
    if not isinstance(given, list):
        raise Refused(422, "Validation Failed", ["labels must be a list"])
    return [str(one["name"]) if isinstance(one, dict) else str(one) for one in given]


def _set_labels(call: RepoCall, one: Issue, names: list[str]) -> None:
    keep = {name.lower() for name in names}
    for label in list(one.labels):
        if label.name.lower() not in keep:
            issues.remove_label(call.world, one, label, call.user)
    for name in names:
        issues.add_label(call.world, one, name, call.user)


def _assignees(api: Api) -> None:
    @api.on("POST", "/issues/<int:number>/assignees", WRITE)
    def assign(call: RepoCall, number: int) -> object:
        one = the_issue(call, number)
        for login in texts(call.body(), "assignees"):
            who = call.world.users.get(login.lower())
            if who is not None and who not in one.assignees:
                one.assignees.append(who)
        return Reply(201, shape.issue(call.world, one))

    @api.on("DELETE", "/issues/<int:number>/assignees", WRITE)
    def unassign(call: RepoCall, number: int) -> object:
        one = the_issue(call, number)
        gone = {login.lower() for login in texts(call.body(), "assignees")}
        one.assignees = [who for who in one.assignees if who.login.lower() not in gone]
        return shape.issue(call.world, one)


def _reactions(api: Api) -> None:
    def on_issue(call: RepoCall, number: int) -> HasReactions:
        return the_issue(call, number)

    def on_comment(call: RepoCall, number: int) -> HasReactions:
        return comment_of(call.repo, number)[1]

    def on_line(call: RepoCall, number: int) -> HasReactions:
        return thread_of(call.repo, number)[2]

    for rule, find, read, write in (
        ("/issues/<int:number>", on_issue, READ, WRITE),
        ("/issues/comments/<int:number>", on_comment, READ, WRITE),
        ("/pulls/comments/<int:number>", on_line, "pull_requests:read", "pull_requests:write"),
    ):
        _reactions_at(api, f"{rule}/reactions", find, read, write)


def _reactions_at(api: Api, rule: str, find: object, read: str, write: str) -> None:
    def target(call: RepoCall, number: int) -> HasReactions:
        assert callable(find)  # noqa: S101 - one of the three
        found: HasReactions = find(call, number)
        return found

    @api.on("GET", rule, read)
    def every(call: RepoCall, number: int) -> object:
        wanted = call.asked("content")
        found = [
            one for one in target(call, number).reactions if not wanted or one.content == wanted
        ]
        return listed([shape.reaction(call.world, one) for one in found])

    @api.on("POST", rule, write)
    def react(call: RepoCall, number: int) -> object:
        content = text_of(call.body(), "content", "Reaction")
        made, fresh = issues.react(call.world, target(call, number), call.user, content)
        return Reply(201 if fresh else 200, shape.reaction(call.world, made))

    @api.on("DELETE", f"{rule}/<int:reaction>", write)
    def delete(call: RepoCall, number: int, reaction: int) -> object:
        on = target(call, number)
        found = [one for one in on.reactions if one.id == reaction]
        if not found:
            raise Refused(404, "Not Found")
        _mine(call, found[0])
        on.reactions.remove(found[0])
        return Reply(204)


def _mine(call: RepoCall, one: Reaction) -> None:
    if one.user is not call.user:
        raise Refused(403, MAY_NOT)
