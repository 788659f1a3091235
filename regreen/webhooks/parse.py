"""Turns a webhook payload into an event, or None if Regreen ignores it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import cast

from regreen.domain.events import (
    Actor,
    ButtonPressed,
    CheckFailed,
    CheckPassed,
    CheckRerequested,
    CommentPosted,
    Event,
    InstallationChanged,
    MergeGroupRequested,
    Pinged,
    PullChange,
    PullRequestApproved,
    PullRequestChanged,
    Pushed,
    RepositoryChanged,
    RepositoryRef,
    ThreadChanged,
)

_PULL_CHANGES = {
    "opened",
    "synchronize",
    "reopened",
    "ready_for_review",
    "converted_to_draft",
    "edited",
    "closed",
}
_FAILED_CONCLUSIONS = {"failure", "timed_out", "startup_failure"}
_MAX_NAME_CHARS = 200  # GitHub allows 39 and 100 characters
_ACTIONS_APP = "github-actions"


class MalformedPayload(ValueError):
    """The payload does not have GitHub's shape; the text names the place."""


def parse(name: str, payload: object) -> Event | None:
    """The event of a delivery of kind `name`; None if Regreen ignores it.

    Raises:
        MalformedPayload: the payload has another shape.
    """
    if not isinstance(payload, dict):
        raise MalformedPayload("the payload is not a JSON object")
    reader = _EVENT_PARSERS.get(name)
    return reader(_JsonObject(payload, "")) if reader else None


class _JsonObject:
    """A JSON object with typed access; unexpected values raise `MalformedPayload` with their place."""

    def __init__(self, data: Mapping[str, object], at: str) -> None:
        self._data = data
        self._at = at

    def _malformed_key(self, key: str, kind: str) -> MalformedPayload:
        return MalformedPayload(f"{self._at}/{key} is not {kind}")

    def read_text(self, key: str) -> str:
        value = self._data.get(key)
        if not isinstance(value, str):
            raise self._malformed_key(key, "a string")
        return _replace_unstorable_characters(value)

    def read_text_or(self, key: str, default: str = "") -> str:
        value = self._data.get(key)
        return default if value is None else self.read_text(key)

    def read_number(self, key: str, below: int = 2**63) -> int:
        value = self._data.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < below:
            raise self._malformed_key(key, "a number")
        return value

    def read_issue_number(self) -> int:
        """The number of an issue or pull request, within an integer column's range."""
        return self.read_number("number", below=2**31)

    def has_key(self, key: str) -> bool:
        return self._data.get(key) is not None

    def read_flag(self, key: str) -> bool:
        return self._data.get(key) is True

    def read_node(self, key: str) -> _JsonObject:
        node = self.read_node_or_none(key)
        if node is None:
            raise self._malformed_key(key, "an object")
        return node

    def read_node_or_none(self, key: str) -> _JsonObject | None:
        value = self._data.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self._malformed_key(key, "an object")
        return _JsonObject(value, f"{self._at}/{key}")

    def read_nodes(self, key: str) -> tuple[_JsonObject, ...]:
        value = self._data.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self._malformed_key(key, "a list of objects")
        return tuple(_JsonObject(item, f"{self._at}/{key}/{i}") for i, item in enumerate(value))


def _replace_unstorable_characters(text: str) -> str:
    """JSON may contain text that no database and no UTF-8 file accepts: NUL, and half a surrogate pair."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _parse_repository_ref(root: _JsonObject) -> RepositoryRef:
    repository = root.read_node("repository")
    installation = root.read_node_or_none("installation")
    return RepositoryRef(
        repo=_parse_full_name(repository),
        repo_id=repository.read_number("id"),
        installation=installation.read_number("id") if installation else 0,
        default_branch=repository.read_text_or("default_branch", "main"),
    )


def _parse_full_name(repository: _JsonObject) -> str:
    name = repository.read_text("full_name")
    if (
        len(name) > _MAX_NAME_CHARS
        or name.count("/") != 1
        or not all(_is_safe_name(part) for part in name.split("/"))
    ):
        raise MalformedPayload("/repository/full_name is not OWNER/NAME")
    return name


def _is_safe_name(part: str) -> bool:
    """GitHub's characters for owners and repositories: safe in a path and in a URL."""
    return part not in {"", ".", ".."} and all(
        c.isascii() and (c.isalnum() or c in "-_.") for c in part
    )


def _parse_sha(node: _JsonObject, key: str) -> str:
    sha = node.read_text(key)
    if len(sha) not in {40, 64} or not all(c in "0123456789abcdef" for c in sha):
        msg = f"{key} is not a commit id"
        raise MalformedPayload(msg)
    return sha


def _parse_actor(node: _JsonObject | None) -> Actor:
    """Deleted accounts are null in payloads: GitHub shows them as "ghost"."""
    if node is None:
        return Actor("ghost", is_bot=False)
    return Actor(
        node.read_text("login")[:_MAX_NAME_CHARS], is_bot=node.read_text_or("type", "User") == "Bot"
    )


def _parse_pull_numbers(node: _JsonObject) -> tuple[int, ...]:
    return tuple(pull.read_issue_number() for pull in node.read_nodes("pull_requests"))


def _is_fork(pull: _JsonObject) -> bool:
    """A deleted head repository counts as a fork, which has fewer permissions."""
    head = pull.read_node("head").read_node_or_none("repo")
    base = pull.read_node("base").read_node_or_none("repo")
    return head is None or base is None or head.read_number("id") != base.read_number("id")


def _parse_pull_request(root: _JsonObject) -> Event | None:
    action = root.read_text("action")
    if action not in _PULL_CHANGES:
        return None
    if action == "edited":
        changes = root.read_node_or_none("changes")
        if changes is None or not any(
            changes.read_node_or_none(k) for k in ("base", "title", "body")
        ):
            return None
    pull = root.read_node("pull_request")
    return PullRequestChanged(
        where=_parse_repository_ref(root),
        actor=_parse_actor(root.read_node_or_none("sender")),
        number=pull.read_issue_number(),
        change=cast("PullChange", action),
        head_sha=_parse_sha(pull.read_node("head"), "sha"),
        head_ref=pull.read_node("head").read_text("ref"),
        base_ref=pull.read_node("base").read_text("ref"),
        author=_parse_actor(pull.read_node_or_none("user")),
        draft=pull.read_flag("draft"),
        fork=_is_fork(pull),
        merged=pull.read_flag("merged"),
        at=pull.read_text_or("updated_at"),
    )


def _parse_issue_comment(root: _JsonObject) -> Event | None:
    issue = root.read_node("issue")
    return _parse_comment(root, issue, on_pull=issue.read_node_or_none("pull_request") is not None)


def _parse_review_comment(root: _JsonObject) -> Event | None:
    return _parse_comment(root, root.read_node("pull_request"), on_pull=True, review=True)


def _parse_comment(
    root: _JsonObject, on: _JsonObject, *, on_pull: bool, review: bool = False
) -> Event | None:
    action = root.read_text("action")
    if action not in {"created", "edited"}:
        return None
    comment, changes = root.read_node("comment"), root.read_node_or_none("changes")
    change = changes.read_node_or_none("body") if changes else None
    edited = action == "edited"
    if edited and change is None:
        return None
    return CommentPosted(
        where=_parse_repository_ref(root),
        actor=_parse_actor(root.read_node_or_none("sender")),
        number=on.read_issue_number(),
        on_pull=on_pull,
        review=review,
        comment_id=comment.read_number("id"),
        body=comment.read_text_or("body"),
        association=comment.read_text_or("author_association", "NONE"),
        edited=edited,
        reply_to=comment.read_number("in_reply_to_id")
        if comment.has_key("in_reply_to_id")
        else None,
        author=_parse_actor(comment.read_node_or_none("user")),
        before=change.read_text_or("from") if edited and change else "",
        at=comment.read_text_or("updated_at" if edited else "created_at"),
    )


def _parse_review(root: _JsonObject) -> Event | None:
    review = root.read_node("review")
    if root.read_text("action") != "submitted" or review.read_text_or("state") != "approved":
        return None
    pull = root.read_node("pull_request")
    return PullRequestApproved(
        where=_parse_repository_ref(root),
        actor=_parse_actor(review.read_node_or_none("user")),
        number=pull.read_issue_number(),
        head_sha=_parse_sha(pull.read_node("head"), "sha"),
    )


def _parse_thread(root: _JsonObject) -> Event | None:
    action = root.read_text("action")
    if action not in {"resolved", "unresolved"}:
        return None
    return ThreadChanged(
        where=_parse_repository_ref(root),
        actor=_parse_actor(root.read_node_or_none("sender")),
        number=root.read_node("pull_request").read_issue_number(),
        comments=tuple(
            c.read_number("id") for c in root.read_node("thread").read_nodes("comments")
        ),
        resolved=action == "resolved",
    )


def _parse_workflow_run(root: _JsonObject) -> Event | None:
    if root.read_text("action") != "completed":
        return None
    run, where = root.read_node("workflow_run"), _parse_repository_ref(root)
    conclusion = run.read_text_or("conclusion")
    name, branch = run.read_text_or("name"), run.read_text_or("head_branch")
    if conclusion == "success":
        path, fork = run.read_text_or("path").partition("@")[0], _is_run_of_fork(run, where)
        return CheckPassed(
            where, name, _parse_sha(run, "head_sha"), branch, fork, path, run.read_number("id")
        )
    if conclusion not in _FAILED_CONCLUSIONS:
        return None
    return CheckFailed(
        where=where,
        actor=_parse_actor(root.read_node_or_none("sender")),
        name=name,
        head_sha=_parse_sha(run, "head_sha"),
        head_branch=branch,
        run_id=run.read_number("id"),
        attempt=run.read_number("run_attempt") if run.has_key("run_attempt") else 1,
        pulls=_parse_pull_numbers(run),
        fork=_is_run_of_fork(run, where),
    )


def _is_run_of_fork(run: _JsonObject, where: RepositoryRef) -> bool:
    """A deleted head repository counts as a fork, which has fewer permissions."""
    head = run.read_node_or_none("head_repository")
    return head is None or head.read_number("id") != where.repo_id


def _parse_check_run(root: _JsonObject) -> Event | None:
    action = root.read_text("action")
    run = root.read_node("check_run")
    actor = _parse_actor(root.read_node_or_none("sender"))
    if action == "rerequested":
        return CheckRerequested(
            _parse_repository_ref(root),
            actor,
            _parse_sha(run, "head_sha"),
            _parse_pull_numbers(run),
        )
    if action == "requested_action":
        pressed = root.read_node("requested_action").read_text("identifier")
        return ButtonPressed(
            _parse_repository_ref(root),
            actor,
            pressed,
            _parse_sha(run, "head_sha"),
            _parse_pull_numbers(run),
        )
    if action != "completed" or run.read_text_or("conclusion") not in _FAILED_CONCLUSIONS:
        return None
    app = run.read_node_or_none("app")
    slug = app.read_text_or("slug") if app else ""
    if slug == _ACTIONS_APP:
        return None  # its workflow_run event says the same, once for a run instead of once for each job
    suite = run.read_node_or_none("check_suite")
    return CheckFailed(
        where=_parse_repository_ref(root),
        actor=actor,
        name=run.read_text_or("name"),
        head_sha=_parse_sha(run, "head_sha"),
        head_branch=suite.read_text_or("head_branch") if suite else "",
        run_id=None,
        attempt=1,
        pulls=_parse_pull_numbers(run),
        app=slug,
    )


def _parse_check_suite(root: _JsonObject) -> Event | None:
    if root.read_text("action") != "rerequested":
        return None
    suite = root.read_node("check_suite")
    actor = _parse_actor(root.read_node_or_none("sender"))
    return CheckRerequested(
        _parse_repository_ref(root),
        actor,
        _parse_sha(suite, "head_sha"),
        _parse_pull_numbers(suite),
    )


def _parse_status(root: _JsonObject) -> Event | None:
    """A commit status; its sender is whoever reports CI, and it names branches but no pull request."""
    if root.read_text("state") not in {"failure", "error"}:
        return None
    branches = root.read_nodes("branches")
    return CheckFailed(
        where=_parse_repository_ref(root),
        actor=_parse_actor(root.read_node_or_none("sender")),
        name=root.read_text_or("context"),
        head_sha=_parse_sha(root, "sha"),
        head_branch=branches[0].read_text("name") if len(branches) == 1 else "",
        run_id=None,
        attempt=1,
        pulls=(),
        is_status=True,
    )


def _parse_merge_group(root: _JsonObject) -> Event | None:
    if root.read_text("action") != "checks_requested":
        return None
    group = root.read_node("merge_group")
    base, head = _parse_sha(group, "base_sha"), _parse_sha(group, "head_sha")
    return MergeGroupRequested(_parse_repository_ref(root), head, base, group.read_text("head_ref"))


def _parse_push(root: _JsonObject) -> Event | None:
    ref = root.read_text("ref")
    if not ref.startswith("refs/heads/"):
        return None
    return Pushed(
        where=_parse_repository_ref(root),
        actor=_parse_actor(root.read_node_or_none("sender")),
        branch=ref.removeprefix("refs/heads/"),
        after=_parse_sha(root, "after"),
    )


def _parse_installation(root: _JsonObject) -> Event | None:
    installation = root.read_node("installation")
    account = installation.read_node_or_none("account")
    change = root.read_text("action")
    added = root.read_nodes("repositories_added") or root.read_nodes("repositories")
    removed = root.read_nodes("repositories_removed")
    return InstallationChanged(
        installation=installation.read_number("id"),
        account=account.read_text_or("login") if account else "",
        change=change,
        added=tuple(_parse_full_name(r) for r in added),
        removed=tuple(_parse_full_name(r) for r in removed),
        removed_ids=tuple(r.read_number("id") for r in (added if change == "deleted" else removed)),
    )


def _parse_repository(root: _JsonObject) -> Event | None:
    action = root.read_text("action")
    if action not in {"renamed", "transferred", "archived", "unarchived", "deleted"}:
        return None
    where = _parse_repository_ref(root)
    return RepositoryChanged(where, action, _previous_name(root, where.repo))


def _previous_name(root: _JsonObject, repo: str) -> str | None:
    changes = root.read_node_or_none("changes")
    if changes is None:
        return None
    owner, _, name = repo.partition("/")
    renamed, moved = changes.read_node_or_none("repository"), changes.read_node_or_none("owner")
    if renamed is not None:
        return f"{owner}/{renamed.read_node('name').read_text('from')}"
    if moved is not None:
        old = moved.read_node("from")
        account = old.read_node_or_none("user") or old.read_node_or_none("organization")
        return f"{account.read_text('login')}/{name}" if account else None
    return None


def _parse_ping(root: _JsonObject) -> Event | None:
    return Pinged(root.read_text_or("zen"))


_EVENT_PARSERS: Mapping[str, Callable[[_JsonObject], Event | None]] = MappingProxyType(
    {
        "pull_request": _parse_pull_request,
        "issue_comment": _parse_issue_comment,
        "pull_request_review": _parse_review,
        "pull_request_review_comment": _parse_review_comment,
        "pull_request_review_thread": _parse_thread,
        "workflow_run": _parse_workflow_run,
        "check_run": _parse_check_run,
        "check_suite": _parse_check_suite,
        "merge_group": _parse_merge_group,
        "status": _parse_status,
        "push": _parse_push,
        "installation": _parse_installation,
        "installation_repositories": _parse_installation,
        "repository": _parse_repository,
        "ping": _parse_ping,
    }
)
