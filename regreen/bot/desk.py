"""What every flow needs at hand: the outside world behind its ports, the store, and the settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from regreen.bot.configuration import Loaded, load
from regreen.bot.mirrors import Mirrors
from regreen.bot.running import Job
from regreen.bot.sandboxes import Sandboxes
from regreen.codebase.redaction import redact
from regreen.errors import NoSandbox
from regreen.forge import App, GitHub, Repository, Scope
from regreen.models import Cost
from regreen.ports import Clock, Model, Sandbox
from regreen.records import Action, Store
from regreen.repo_config import RepoConfig
from regreen.settings import Settings
from regreen.webhooks.events import Where

ModelFor = Callable[[Job, str, int | None, RepoConfig], tuple[Model, Callable[[], Cost]] | None]
"""A model for one job, capped by what its repository may still spend, and what it has cost; None: no model."""


@dataclass(frozen=True)
class Desk:
    """The collaborators of every flow."""

    app: App
    store: Store
    clock: Clock
    settings: Settings
    mirrors: Mirrors
    sandbox: Sandboxes
    model: ModelFor

    def github(self, where: Where, scope: Scope) -> GitHub:
        """A client for the event's repository."""
        installation = where.installation or self.app.installation_of(where.repo)
        return self.app.github(where.repo, installation, scope)

    def config(self, where: Where, github: GitHub, repository: Repository) -> Loaded:
        """The repository's configuration."""
        return load(
            github, repository, app=self.app, installation=where.installation, store=self.store
        )

    def sandbox_or_none(self) -> Sandbox | None:
        """The sandbox, None where none holds here: reviews go on without."""
        try:
            return self.sandbox()
        except NoSandbox:
            return None

    def log(self, job: Job, asked_by: str, action: str, detail: str = "") -> None:
        """Write one line of the audit log."""
        record = job.record
        self.store.log(
            Action(
                at=self.clock.now(),
                job=record.id,
                repo=record.repo,
                number=record.number,
                asked_by=asked_by,
                action=action,
                detail=redact(detail)[:2000],
            )
        )

    def page(self, job: Job) -> str:
        """Where a job is shown, empty where the dashboard has no public address."""
        base = self.settings.public_url
        return f"{base.rstrip('/')}/jobs/{job.record.id}" if base else ""

    def today(self) -> datetime:
        """The start of the day, UTC: budgets count from here."""
        return self.clock.now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
