"""A webhook payload becomes one of our events, or None where it does not concern us."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import cast

from regreen.webhooks.events import (
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
    PullRequestChanged,
    Pushed,
    RepositoryChanged,
    ThreadChanged,
    Where,
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
_FAILED = {"failure", "timed_out", "startup_failure"}
_LONGEST_NAME = 200  # GitHub allows 39 and 100 characters
_ACTIONS_APP = "github-actions"


class Malformed(ValueError):
    """The payload is not what GitHub sends; the text names the place."""


def parse(name: str, payload: object) -> Event | None:
    """The event that a delivery of kind `name` tells of; None where it is not for us.

    Raises:
        Malformed: the payload has no such shape.
    """
    if not isinstance(payload, dict):
        raise Malformed("the payload is not a JSON object")
    reader = _READERS.get(name)
    return reader(_Node(payload, "")) if reader else None


class _Node:
    """A JSON object with typed access; what is not as expected is `Malformed`, with its place."""

    def __init__(self, data: Mapping[str, object], at: str) -> None:
        self._data = data
        self._at = at

    def _missing(self, key: str, kind: str) -> Malformed:
        return Malformed(f"{self._at}/{key} is not {kind}")

    def text(self, key: str) -> str:
        value = self._data.get(key)
        if not isinstance(value, str):
            raise self._missing(key, "a string")
        return _storable(value)

    def text_or(self, key: str, default: str = "") -> str:
        value = self._data.get(key)
        return default if value is None else self.text(key)

    def number(self, key: str, below: int = 2**63) -> int:
        value = self._data.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < below:
            raise self._missing(key, "a number")
        return value

    def issue(self) -> int:
        """The number of an issue or pull request, which fits a column of numbers."""
        return self.number("number", below=2**31)

    def has(self, key: str) -> bool:
        return self._data.get(key) is not None

    def flag(self, key: str) -> bool:
        return self._data.get(key) is True

    def node(self, key: str) -> _Node:
        found = self.node_or_none(key)
        if found is None:
            raise self._missing(key, "an object")
        return found

    def node_or_none(self, key: str) -> _Node | None:
        value = self._data.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self._missing(key, "an object")
        return _Node(value, f"{self._at}/{key}")

    def nodes(self, key: str) -> tuple[_Node, ...]:
        value = self._data.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self._missing(key, "a list of objects")
        return tuple(_Node(item, f"{self._at}/{key}/{i}") for i, item in enumerate(value))


def _storable(text: str) -> str:
    """JSON can spell what no database and no UTF-8 file takes: NUL, and half a surrogate pair."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _where(root: _Node) -> Where:
    repository = root.node("repository")
    installation = root.node_or_none("installation")
    return Where(
        repo=_full_name(repository),
        repo_id=repository.number("id"),
        installation=installation.number("id") if installation else 0,
        default_branch=repository.text_or("default_branch", "main"),
    )


def _full_name(repository: _Node) -> str:
    name = repository.text("full_name")
    if (
        len(name) > _LONGEST_NAME
        or name.count("/") != 1
        or not all(_is_plain(part) for part in name.split("/"))
    ):
        raise Malformed("/repository/full_name is not OWNER/NAME")
    return name


def _is_plain(part: str) -> bool:
    """GitHub's own alphabet for owners and repositories: safe in a path and in a URL."""
    return part not in {"", ".", ".."} and all(
        c.isascii() and (c.isalnum() or c in "-_.") for c in part
    )


def _sha(node: _Node, key: str) -> str:
    sha = node.text(key)
    if len(sha) not in {40, 64} or not all(c in "0123456789abcdef" for c in sha):
        msg = f"{key} is not a commit id"
        raise Malformed(msg)
    return sha


def _actor(node: _Node | None) -> Actor:
    """Deleted accounts are null in payloads: GitHub shows them as "ghost"."""
    if node is None:
        return Actor("ghost", is_bot=False)
    return Actor(node.text("login")[:_LONGEST_NAME], is_bot=node.text_or("type", "User") == "Bot")


def _pulls(node: _Node) -> tuple[int, ...]:
    return tuple(pull.issue() for pull in node.nodes("pull_requests"))


def _is_fork(pull: _Node) -> bool:
    """A head repository that is gone counts as a fork: less is allowed there."""
    head = pull.node("head").node_or_none("repo")
    base = pull.node("base").node_or_none("repo")
    return head is None or base is None or head.number("id") != base.number("id")


def _pull_request(root: _Node) -> Event | None:
    action = root.text("action")
    if action not in _PULL_CHANGES:
        return None
    if action == "edited":
        changes = root.node_or_none("changes")
        if changes is None or not any(changes.node_or_none(k) for k in ("base", "title", "body")):
            return None
    pull = root.node("pull_request")
    return PullRequestChanged(
        where=_where(root),
        actor=_actor(root.node_or_none("sender")),
        number=pull.issue(),
        change=cast("PullChange", action),
        head_sha=_sha(pull.node("head"), "sha"),
        head_ref=pull.node("head").text("ref"),
        base_ref=pull.node("base").text("ref"),
        author=_actor(pull.node_or_none("user")),
        draft=pull.flag("draft"),
        fork=_is_fork(pull),
        merged=pull.flag("merged"),
    )


def _issue_comment(root: _Node) -> Event | None:
    action = root.text("action")
    if action not in {"created", "edited"}:
        return None
    issue, comment = root.node("issue"), root.node("comment")
    return CommentPosted(
        where=_where(root),
        actor=_actor(root.node_or_none("sender")),
        number=issue.issue(),
        on_pull=issue.node_or_none("pull_request") is not None,
        review=False,
        comment_id=comment.number("id"),
        body=comment.text_or("body"),
        association=comment.text_or("author_association", "NONE"),
        edited=action == "edited",
    )


def _review_comment(root: _Node) -> Event | None:
    action = root.text("action")
    if action not in {"created", "edited"}:
        return None
    pull, comment = root.node("pull_request"), root.node("comment")
    return CommentPosted(
        where=_where(root),
        actor=_actor(root.node_or_none("sender")),
        number=pull.issue(),
        on_pull=True,
        review=True,
        comment_id=comment.number("id"),
        body=comment.text_or("body"),
        association=comment.text_or("author_association", "NONE"),
        edited=action == "edited",
        reply_to=comment.number("in_reply_to_id") if comment.has("in_reply_to_id") else None,
    )


def _thread(root: _Node) -> Event | None:
    action = root.text("action")
    if action not in {"resolved", "unresolved"}:
        return None
    return ThreadChanged(
        where=_where(root),
        actor=_actor(root.node_or_none("sender")),
        number=root.node("pull_request").issue(),
        comments=tuple(c.number("id") for c in root.node("thread").nodes("comments")),
        resolved=action == "resolved",
    )


def _workflow_run(root: _Node) -> Event | None:
    if root.text("action") != "completed":
        return None
    run, where = root.node("workflow_run"), _where(root)
    conclusion = run.text_or("conclusion")
    name, branch = run.text_or("name"), run.text_or("head_branch")
    if conclusion == "success":
        return CheckPassed(where, name, _sha(run, "head_sha"), branch)
    if conclusion not in _FAILED:
        return None
    head = run.node_or_none("head_repository")
    return CheckFailed(
        where=where,
        actor=_actor(root.node_or_none("sender")),
        name=name,
        head_sha=_sha(run, "head_sha"),
        head_branch=branch,
        run_id=run.number("id"),
        attempt=run.number("run_attempt") if run.has("run_attempt") else 1,
        pulls=_pulls(run),
        fork=head is not None and head.number("id") != where.repo_id,
    )


def _check_run(root: _Node) -> Event | None:
    action = root.text("action")
    run = root.node("check_run")
    actor = _actor(root.node_or_none("sender"))
    if action == "rerequested":
        return CheckRerequested(_where(root), actor, _sha(run, "head_sha"), _pulls(run))
    if action == "requested_action":
        pressed = root.node("requested_action").text("identifier")
        return ButtonPressed(_where(root), actor, pressed, _sha(run, "head_sha"), _pulls(run))
    if action != "completed" or run.text_or("conclusion") not in _FAILED:
        return None
    app = run.node_or_none("app")
    slug = app.text_or("slug") if app else ""
    if slug == _ACTIONS_APP:
        return None  # its workflow_run event says the same, once a run instead of once a job
    suite = run.node_or_none("check_suite")
    return CheckFailed(
        where=_where(root),
        actor=actor,
        name=run.text_or("name"),
        head_sha=_sha(run, "head_sha"),
        head_branch=suite.text_or("head_branch") if suite else "",
        run_id=None,
        attempt=1,
        pulls=_pulls(run),
        app=slug,
    )


def _check_suite(root: _Node) -> Event | None:
    if root.text("action") != "rerequested":
        return None
    suite = root.node("check_suite")
    actor = _actor(root.node_or_none("sender"))
    return CheckRerequested(_where(root), actor, _sha(suite, "head_sha"), _pulls(suite))


def _merge_group(root: _Node) -> Event | None:
    if root.text("action") != "checks_requested":
        return None
    return MergeGroupRequested(_where(root), _sha(root.node("merge_group"), "head_sha"))


def _push(root: _Node) -> Event | None:
    ref = root.text("ref")
    if not ref.startswith("refs/heads/"):
        return None
    return Pushed(
        where=_where(root),
        actor=_actor(root.node_or_none("sender")),
        branch=ref.removeprefix("refs/heads/"),
        after=_sha(root, "after"),
    )


def _installation(root: _Node) -> Event | None:
    installation = root.node("installation")
    account = installation.node_or_none("account")
    added = root.nodes("repositories_added") or root.nodes("repositories")
    return InstallationChanged(
        installation=installation.number("id"),
        account=account.text_or("login") if account else "",
        change=root.text("action"),
        added=tuple(_full_name(r) for r in added),
        removed=tuple(_full_name(r) for r in root.nodes("repositories_removed")),
    )


def _repository(root: _Node) -> Event | None:
    action = root.text("action")
    if action not in {"renamed", "transferred", "archived", "unarchived", "deleted"}:
        return None
    where = _where(root)
    return RepositoryChanged(where, action, _name_before(root, where.repo))


def _name_before(root: _Node, repo: str) -> str | None:
    changes = root.node_or_none("changes")
    if changes is None:
        return None
    owner, _, name = repo.partition("/")
    renamed, moved = changes.node_or_none("repository"), changes.node_or_none("owner")
    if renamed is not None:
        return f"{owner}/{renamed.node('name').text('from')}"
    if moved is not None:
        old = moved.node("from")
        account = old.node_or_none("user") or old.node_or_none("organization")
        return f"{account.text('login')}/{name}" if account else None
    return None


def _ping(root: _Node) -> Event | None:
    return Pinged(root.text_or("zen"))


_READERS: Mapping[str, Callable[[_Node], Event | None]] = MappingProxyType(
    {
        "pull_request": _pull_request,
        "issue_comment": _issue_comment,
        "pull_request_review_comment": _review_comment,
        "pull_request_review_thread": _thread,
        "workflow_run": _workflow_run,
        "check_run": _check_run,
        "check_suite": _check_suite,
        "merge_group": _merge_group,
        "push": _push,
        "installation": _installation,
        "installation_repositories": _installation,
        "repository": _repository,
        "ping": _ping,
    }
)
