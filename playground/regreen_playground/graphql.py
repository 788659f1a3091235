"""The GraphQL a bot cannot do without: review threads (read, reply, resolve), hiding comments, moving branches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from flask import Blueprint, Response
from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
    Undefined,
    parse,
    value_from_ast_untyped,
)

from regreen_playground.acts import pushes, reviews
from regreen_playground.routes.callers import identify, visible
from regreen_playground.routes.wire import Call, any_body, respond
from regreen_playground.shape.people import when
from regreen_playground.things import Comment, Json, Pull, Repository, ReviewComment, Thread, User
from regreen_playground.world import Refused, World, at_least

# A value of the graph: plain, or worked out from its arguments.
Lazy = Callable[[Json], object]
Node = dict[str, object]
MINIMIZED = {"SPAM", "ABUSE", "OFF_TOPIC", "OUTDATED", "DUPLICATE", "RESOLVED", "LOW_QUALITY"}


class NotFound(GraphQLError):
    """The node does not exist, or this caller may not know it."""


class Forbidden(GraphQLError):
    """The caller lacks a permission."""


class Unprocessable(GraphQLError):
    """The request is well formed, and the state of the repository does not allow it."""


def routes(world: World) -> Blueprint:
    """POST /graphql and /api/graphql."""
    blueprint = Blueprint("graphql", __name__)

    def answer() -> Response:
        with world.lock:
            caller = identify(world)
            if caller.user is None:
                raise Refused(401, "This endpoint requires you to be authenticated.")
            body = any_body()
            if not isinstance(body, dict) or not isinstance(body.get("query"), str):
                raise Refused(400, "A query attribute must be specified and must be a string.")
            return respond(_run(Call(world, caller), body))

    blueprint.add_url_rule("/graphql", "root", answer, methods=["POST"])
    blueprint.add_url_rule("/api/graphql", "ghes", answer, methods=["POST"])
    return blueprint


def _run(call: Call, body: Json) -> Json:
    variables = body.get("variables")
    known = variables if isinstance(variables, dict) else {}
    kinds: dict[type[GraphQLError], str] = {
        NotFound: "NOT_FOUND",
        Forbidden: "FORBIDDEN",
        Unprocessable: "UNPROCESSABLE",
    }
    try:
        document = parse(str(body["query"]))
        chosen = _choose_operation(document, body.get("operationName"))
        return {"data": _Executor(document, chosen, known).pick(_root(call), chosen.selection_set)}
    except GraphQLError as error:
        told: Json = {"message": error.message}
        if type(error) in kinds:
            told["type"] = kinds[type(error)]
        else:
            call.world.surprises.append(f"graphql: {error.message}")
        return {"data": None, "errors": [told]}


def _choose_operation(document: DocumentNode, name: object) -> OperationDefinitionNode:
    operations = [d for d in document.definitions if isinstance(d, OperationDefinitionNode)]
    for operation in operations:
        if not name or (operation.name is not None and operation.name.value == name):
            return operation
    raise GraphQLError("No operation of that name")


class _Executor:
    """Picks what a selection asks for out of nodes, working out what is lazy."""

    def __init__(
        self, document: DocumentNode, operation: OperationDefinitionNode, variables: Json
    ) -> None:
        self._fragments = {
            d.name.value: d for d in document.definitions if isinstance(d, FragmentDefinitionNode)
        }
        defaults = {
            d.variable.name.value: value_from_ast_untyped(d.default_value)
            for d in operation.variable_definitions or ()
            if d.default_value is not None
        }
        self._variables = {**defaults, **variables}

    def pick(self, node: Node, selection: SelectionSetNode | None) -> Json:
        out: Json = {}
        for part in selection.selections if selection is not None else ():
            if isinstance(part, FieldNode):
                out[(part.alias or part.name).value] = self._value(node, part)
            elif isinstance(part, FragmentSpreadNode):
                if part.name.value not in self._fragments:
                    msg = f"Fragment {part.name.value} was used, but not defined"
                    raise GraphQLError(msg)
                out |= self._pick_on(node, self._fragments[part.name.value])
            elif isinstance(part, InlineFragmentNode):
                out |= self._pick_on(node, part)
        return out

    def _pick_on(self, node: Node, fragment: FragmentDefinitionNode | InlineFragmentNode) -> Json:
        on = fragment.type_condition.name.value if fragment.type_condition else None
        if on in {None, node["__typename"], "Node", "Actor", "Comment", "Minimizable"}:
            return self.pick(node, fragment.selection_set)
        return {}

    def _value(self, node: Node, part: FieldNode) -> object:
        name = part.name.value
        if name not in node:
            msg = f"Field '{name}' doesn't exist on type '{node['__typename']}' here"
            raise GraphQLError(msg)
        value = node[name]
        if callable(value):
            given = {
                each.name.value: value_from_ast_untyped(each.value, self._variables)
                for each in part.arguments or ()
            }
            value = value({key: each for key, each in given.items() if each is not Undefined})
        return self._shaped(value, part.selection_set)

    def _shaped(self, value: object, selection: SelectionSetNode | None) -> object:
        if isinstance(value, dict):
            return self.pick(value, selection)
        if isinstance(value, list):
            return [self._shaped(each, selection) for each in value]
        return value


def _root(call: Call) -> Node:
    return {
        "__typename": "Query",
        "viewer": _actor(call.user),
        "repository": partial(_find_repository, call),
        "node": partial(_find_node, call),
        "rateLimit": {"__typename": "RateLimit", "limit": 5000, "remaining": 4999, "cost": 1},
        "resolveReviewThread": partial(_resolve_thread, call, True),
        "unresolveReviewThread": partial(_resolve_thread, call, False),
        "addPullRequestReviewThreadReply": partial(_reply, call),
        "updateRefs": partial(_update_refs, call),
        "minimizeComment": partial(_minimize, call),
        "unminimizeComment": partial(_unminimize, call),
    }


def _may(call: Call, repository: Repository, needs: str, method: str = "GET") -> None:
    """Check one permission, as GraphQL words the refusals."""
    try:
        visible(call.world, call.caller, repository.full_name, needs, method)
    except Refused as error:
        if error.status == 404:
            raise NotFound("Could not resolve to a Repository.") from None
        raise Forbidden(error.message) from None


def _find_repository(call: Call, arguments: Json) -> Node:
    full_name = f"{arguments.get('owner')}/{arguments.get('name')}"
    found = call.world.repositories.get(full_name.lower())
    if found is None:
        msg = f"Could not resolve to a Repository with the name '{full_name}'."
        raise NotFound(msg)
    _may(call, found, "metadata:read")
    return _repository(call, found)


def _repository(call: Call, one: Repository) -> Node:
    def pull(arguments: Json) -> Node:
        found = one.pulls.get(int(str(arguments.get("number"))))
        if found is None:
            raise NotFound("Could not resolve to a PullRequest.")
        _may(call, one, "pull_requests:read")
        return _pull(call, found)

    return {
        "__typename": "Repository",
        "id": f"R_{one.id}",
        "databaseId": one.id,
        "name": one.name,
        "nameWithOwner": one.full_name,
        "pullRequest": pull,
    }


def _pull(call: Call, one: Pull) -> Node:
    return {
        "__typename": "PullRequest",
        "id": f"PR_{one.id}",
        "number": one.number,
        "title": one.issue.title,
        "state": "MERGED" if one.merged else one.issue.state.upper(),
        "isDraft": one.draft,
        "headRefOid": one.head_sha,
        "reviewThreads": partial(
            _connection, [_thread(call, one, each) for each in one.threads], "ReviewThread"
        ),
    }


def _thread(call: Call, on: Pull, one: Thread) -> Node:
    first, mine = one.comments[0], call.user
    may_resolve = call.caller.token is not None or at_least(on.base, mine, "write")
    return {
        "__typename": "PullRequestReviewThread",
        "id": f"PRRT_{one.id}",
        "isResolved": one.resolved_by is not None,
        "isOutdated": one.outdated,
        "isCollapsed": one.resolved_by is not None,
        "path": first.path,
        "line": first.line,
        "startLine": first.start_line,
        "originalLine": first.original_line,
        "diffSide": first.side,
        "subjectType": first.subject.upper(),
        "resolvedBy": _actor(one.resolved_by) if one.resolved_by else None,
        "viewerCanResolve": may_resolve,
        "viewerCanReply": True,
        "comments": partial(
            _connection, [_line_comment(call, on, each) for each in one.comments], "ReviewComment"
        ),
        "pullRequest": lambda _: _pull(call, on),
    }


def _line_comment(call: Call, on: Pull, one: ReviewComment) -> Node:
    page = f"{call.world.web_url}/{on.base.full_name}/pull/{on.number}#discussion_r{one.id}"
    return {
        "__typename": "PullRequestReviewComment",
        "id": f"PRRC_{one.id}",
        "databaseId": one.id,
        "fullDatabaseId": str(one.id),
        "path": one.path,
        "line": one.line,
        **_comment(one, page),
        "reactions": partial(
            _connection,
            [{"__typename": "Reaction", "content": _emoji(x.content)} for x in one.reactions],
            "Reaction",
        ),
    }


def _comment(one: Comment | ReviewComment, page: str) -> Node:
    return {
        "body": one.body,
        "url": page,
        "createdAt": when(one.created),
        "author": _actor(one.user),
        "isMinimized": one.minimized is not None,
        "minimizedReason": one.minimized.lower() if one.minimized else None,
    }


def _emoji(content: str) -> str:
    return {"+1": "THUMBS_UP", "-1": "THUMBS_DOWN"}.get(content, content.upper())


def _actor(one: User) -> Node:
    return {
        "__typename": one.type,
        "login": one.login.removesuffix("[bot]"),
        "id": f"U_{one.id}",
        "databaseId": one.id,
    }


def _connection(items: list[Node], kind: str, arguments: Json) -> Node:
    """A page of a list, with the cursor that leads on."""
    after, first, last = (arguments.get(word) for word in ("after", "first", "last"))
    if first is None and last is None:
        raise GraphQLError("You must provide a `first` or `last` value to properly paginate")
    start = int(str(after)) if after else 0
    size = int(str(first)) if first is not None else len(items)
    part = items[start : start + size]
    if last is not None:
        part = part[-int(str(last)) :]
    more = start + len(part) < len(items) and last is None
    info: Node = {
        "__typename": "PageInfo",
        "hasNextPage": more,
        "hasPreviousPage": start > 0,
        "startCursor": str(start),
        "endCursor": str(start + len(part)) if part else None,
    }
    edges = [{"__typename": f"{kind}Edge", "node": each, "cursor": ""} for each in part]
    return {
        "__typename": f"{kind}Connection",
        "totalCount": len(items),
        "nodes": part,
        "edges": edges,
        "pageInfo": info,
    }


def _input(arguments: Json) -> Json:
    given = arguments.get("input")
    return given if isinstance(given, dict) else {}


def _threads(world: World) -> list[tuple[Pull, Thread]]:
    return [
        (pull, thread)
        for repository in world.repositories.values()
        for pull in repository.pulls.values()
        for thread in pull.threads
    ]


def _find_thread(call: Call, node_id: object, method: str) -> tuple[Pull, Thread]:
    for pull, thread in _threads(call.world):
        if f"PRRT_{thread.id}" == node_id:
            need = "pull_requests:read" if method == "GET" else "pull_requests:write"
            _may(call, pull.base, need, method)
            return pull, thread
    msg = f"Could not resolve to a node with the global id of '{node_id}'"
    raise NotFound(msg)


def _find_node(call: Call, arguments: Json) -> Node:
    node_id = str(arguments.get("id"))
    if node_id.startswith("PRRT_"):
        return _thread(call, *_find_thread(call, node_id, "GET"))
    for repository in call.world.repositories.values():
        for pull in repository.pulls.values():
            if f"PR_{pull.id}" == node_id:
                _may(call, repository, "pull_requests:read")
                return _pull(call, pull)
    msg = f"Could not resolve to a node with the global id of '{node_id}'"
    raise NotFound(msg)


def _resolve_thread(call: Call, resolved: bool, arguments: Json) -> Node:
    pull, thread = _find_thread(call, _input(arguments).get("threadId"), "POST")
    # https://github.com/orgs/community/discussions/44650
    _may(call, pull.base, "contents:write", "POST")
    reviews.resolve(call.world, pull, thread, call.user, resolved)
    return {"__typename": "Payload", "thread": _thread(call, pull, thread)}


def _reply(call: Call, arguments: Json) -> Node:
    given = _input(arguments)
    node_id = given.get("pullRequestReviewThreadId")
    pull, thread = _find_thread(call, node_id, "POST")
    made = reviews.reply(call.world, pull, thread, call.user, str(given.get("body")), app=call.app)
    return {"__typename": "Payload", "comment": _line_comment(call, pull, made)}


def _update_refs(call: Call, arguments: Json) -> Node:
    given = _input(arguments)
    at = f"{given.get('repositoryId')}"
    found = next((r for r in call.world.repositories.values() if f"R_{r.id}" == at), None)
    if found is None:
        msg = f"Could not resolve to a node with the global id of '{at}'"
        raise NotFound(msg)
    _may(call, found, "contents:write", "POST")
    before, updates = found.git.refs(), _listed(given.get("refUpdates"))
    for update in updates:
        ref, old, new = str(update["name"]), update.get("beforeOid"), str(update["afterOid"])
        known = before.get(ref, pushes.ZERO)
        if old not in {None, known}:
            msg = f"Reference update failed: {ref} is at {known}, not at {old}"
            raise Unprocessable(msg)
        if new != pushes.ZERO and found.git.kind(new) != "commit":
            msg = f"Reference update failed: {new} is no commit"
            raise Unprocessable(msg)
        forward = pushes.ZERO in {known, new} or found.git.merge_base(known, new) == known
        if not forward and update.get("force") is not True:
            raise Unprocessable("Reference update failed: not a fast forward")
    for update in updates:
        if update["afterOid"] == pushes.ZERO:
            found.git.delete_ref(str(update["name"]))
        else:
            found.git.set_ref(str(update["name"]), str(update["afterOid"]))
    pushes.moved(call.world, found, before, call.user)
    return {"__typename": "UpdateRefsPayload", "clientMutationId": given.get("clientMutationId")}


def _listed(value: object) -> list[Json]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _find_comment(call: Call, node_id: object) -> tuple[Comment | ReviewComment, str]:
    for repository in call.world.repositories.values():
        for issue in repository.issues.values():
            for comment in issue.comments:
                if f"IC_{comment.id}" == node_id:
                    needs = "issues:write pull_requests:write"
                    _may(call, repository, needs, "POST")
                    return comment, "IssueComment"
        for pull in repository.pulls.values():
            for thread in pull.threads:
                for line in thread.comments:
                    if f"PRRC_{line.id}" == node_id:
                        _may(call, repository, "pull_requests:write", "POST")
                        return line, "PullRequestReviewComment"
    msg = f"Could not resolve to a node with the global id of '{node_id}'"
    raise NotFound(msg)


def _minimize(call: Call, arguments: Json) -> Node:
    given = _input(arguments)
    comment, kind = _find_comment(call, given.get("subjectId"))
    if given.get("classifier") not in MINIMIZED:
        raise GraphQLError("classifier is not one GitHub knows")
    comment.minimized = str(given["classifier"])
    return {"__typename": "Payload", "minimizedComment": _minimized(comment, kind)}


def _unminimize(call: Call, arguments: Json) -> Node:
    comment, kind = _find_comment(call, _input(arguments).get("subjectId"))
    comment.minimized = None
    return {"__typename": "Payload", "unminimizedComment": _minimized(comment, kind)}


def _minimized(comment: Comment | ReviewComment, kind: str) -> Node:
    return {
        "__typename": kind,
        "id": str(comment.id),
        "isMinimized": comment.minimized is not None,
        "minimizedReason": comment.minimized,
    }
