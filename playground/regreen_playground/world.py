"""Everything that exists in the playground, and how to find it."""

from __future__ import annotations

import itertools
import re
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from regreen.domain.ports import Clock
from regreen_playground.things import (
    LEVELS,
    App,
    Comment,
    Delivery,
    Installation,
    Issue,
    Level,
    Repository,
    ReviewComment,
    Thread,
    Token,
    User,
)


class Refused(Exception):
    """GitHub says no: the status, the message and what is listed under `errors`."""

    def __init__(
        self,
        status: int,
        message: str,
        errors: list[object] | None = None,
        *,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.errors = errors
        self.headers = headers or {}


class SystemClock:
    """The machine's time."""

    def now(self) -> datetime:
        """The time now, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Fault:
    """What a fault hook may answer instead of the playground: wait, then fail (status 0: go on as usual)."""

    delay_s: float = 0.0
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    message: str = "Server Error"


FaultHook = Callable[[str, str], Fault | None]


class World:
    """The records, under one lock; `api_url` and `web_url` are what its links begin with."""

    def __init__(self, root: Path, clock: Clock | None = None) -> None:
        self.root = root
        self.clock: Clock = clock or SystemClock()
        self.lock = threading.RLock()
        self.api_url = "http://127.0.0.1/api/v3"
        self.web_url = "http://127.0.0.1"
        self.users: dict[str, User] = {}
        self.repositories: dict[str, Repository] = {}
        self.apps: dict[int, App] = {}
        self.installations: dict[int, Installation] = {}
        self.tokens: dict[str, Token] = {}
        self.manifests: dict[str, dict[str, object]] = {}
        self.codes: dict[str, tuple[App, User, str]] = {}
        self.signed_in: dict[str, tuple[App, User]] = {}
        self.outbox: list[Delivery] = []
        self.signed: dict[str, bytes] = {}
        self.fault: FaultHook | None = None
        self.surprises: list[str] = []
        self.requests: list[tuple[str, str, int]] = []
        self.posted = threading.Event()
        self._ids = itertools.count(1001)

    def new_id(self) -> int:
        """A number nothing else has."""
        return next(self._ids)

    def now(self) -> datetime:
        """The time now, to the second, as GitHub keeps it."""
        return self.clock.now().replace(microsecond=0)

    def user(self, login: str) -> User:
        """The account with this login.

        Raises:
            Refused: there is none (404).
        """
        found = self.users.get(login.lower())
        if found is None:
            raise Refused(404, "Not Found")
        return found

    def add_user(self, login: str, kind: str = "User", *, name: str = "", email: str = "") -> User:
        """The account with this login, made if new."""
        known = self.users.get(login.lower())
        if known is not None:
            return known
        number = self.new_id()
        made = User(
            id=number,
            login=login,
            type="Bot" if kind == "Bot" else "Organization" if kind == "Organization" else "User",
            name=name or login,
            email=email or f"{number}+{login}@users.noreply.example.com",
            token="ghp_" + secrets.token_hex(18),
            created=self.now(),
        )
        self.users[login.lower()] = made
        return made

    def has(self, repository: Repository) -> bool:
        """Whether the repository still exists."""
        return repository in self.repositories.values()

    def repository(self, full_name: str) -> Repository:
        """The repository OWNER/NAME.

        Raises:
            Refused: there is none (404).
        """
        found = self.repositories.get(full_name.lower())
        if found is None:
            raise Refused(404, "Not Found")
        return found

    def app_by_slug(self, slug: str) -> App:
        """The App with this slug.

        Raises:
            Refused: there is none (404).
        """
        for app in self.apps.values():
            if app.slug == slug:
                return app
        raise Refused(404, "Not Found")

    def installations_on(self, repository: Repository) -> list[Installation]:
        """The installations that cover a repository."""
        return [one for one in self.installations.values() if one.covers(repository)]


def level(repository: Repository, user: User) -> Level:
    """What a user may do in a repository."""
    if user is repository.owner:
        return "admin"
    given = repository.collaborators.get(user.login.lower())
    return given or ("none" if repository.private else "read")


def at_least(repository: Repository, user: User, needed: Level) -> bool:
    """Whether a user's level reaches `needed`."""
    return LEVELS.index(level(repository, user)) >= LEVELS.index(needed)


def association(repository: Repository, user: User) -> str:
    """The author association GitHub shows beside a name."""
    if user is repository.owner:
        return "OWNER"
    if user.login.lower() in repository.collaborators:
        return "COLLABORATOR"
    wrote = any(issue.user is user for issue in repository.pulls_merged_issues())
    return "CONTRIBUTOR" if wrote else "NONE"


def issue_of(repository: Repository, number: int) -> Issue:
    """The issue (or the issue half of a pull) with a number.

    Raises:
        Refused: there is none (404).
    """
    found = repository.issues.get(number)
    if found is None:
        raise Refused(404, "Not Found")
    return found


def comment_of(repository: Repository, number: int) -> tuple[Issue, Comment]:
    """An issue comment and where it stands.

    Raises:
        Refused: there is none (404).
    """
    for issue in repository.issues.values():
        for comment in issue.comments:
            if comment.id == number:
                return issue, comment
    raise Refused(404, "Not Found")


def thread_of(repository: Repository, comment_id: int) -> tuple[int, Thread, ReviewComment]:
    """A review comment, its thread and its pull's number.

    Raises:
        Refused: there is none (404).
    """
    for number, pull in repository.pulls.items():
        for thread in pull.threads:
            for comment in thread.comments:
                if comment.id == comment_id:
                    return number, thread, comment
    raise Refused(404, "Not Found")


def slug_of(name: str) -> str:
    """An App's slug: its name in lower case, dashes for the rest."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
