"""The collaborators of every flow: ports to the outside, the store, the settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from regreen.bot.jobs.runner import Job
from regreen.bot.observe import observe_writes
from regreen.bot.repository_settings import LoadedConfig, load, was_observed
from regreen.bot.sandbox_trust import SandboxProvider
from regreen.domain.errors import NoSandbox, NotStarted, OutsideError
from regreen.domain.events import RepositoryRef
from regreen.domain.github import (
    READ_SCOPE,
    App,
    GitHub,
    Mirrors,
    RateLimited,
    Repository,
    TokenScope,
    after_fetch,
)
from regreen.domain.models import Cost
from regreen.domain.ports import Clock, Model, Sandbox
from regreen.domain.records import AuditEntry, Order, Store
from regreen.domain.repo_config import CONFIG_PATH, RepoConfig
from regreen.domain.settings import Settings
from regreen.domain.state_records import StoredCapsule, WithheldWrite
from regreen.reviewers.reviewer_table import REVIEWERS, ReviewerTable
from regreen.runs.capsule import Capsule, encode_capsule
from regreen.secrets.redaction import redact_secrets

_MAX_WITHHELD_CHARS = 20_000


class ModelFactory(Protocol):
    """Makes models."""

    def __call__(
        self, job: Job, repo: str, number: int | None, config: RepoConfig, *, fork: bool = False
    ) -> tuple[Model, Callable[[], Cost]] | None:
        """A model for one job, capped by the repository's budget, and a function for its cost; None: no model.

        `fork`: the job comes from a fork's pull request, so a share of the budget is reserved for others.
        """
        ...


PostJson = Callable[[str, Mapping[str, object]], None]
"""Sends a document to an address that the operator named."""
OrderWork = Callable[[tuple[Order, ...]], None]
"""Enqueues work that no delivery brings."""


@dataclass(frozen=True)
class Services:
    """The collaborators of every flow."""

    app: App
    store: Store
    clock: Clock
    settings: Settings
    mirrors: Mirrors
    sandbox: SandboxProvider
    model: ModelFactory
    post_json: PostJson
    order: OrderWork
    reviewers: ReviewerTable = REVIEWERS
    job: str = ""
    """The id of the job that these serve."""

    def github_client(self, where: RepositoryRef, scope: TokenScope) -> GitHub:
        """A client for the event's repository, which writes nothing where Regreen only observes."""
        installation = where.installation or self.app.installation_of(where.repo)
        client = self.app.github(where.repo, installation, scope)

        def keep(action: str, key: str, text: str) -> None:
            at = self.clock.now().isoformat()
            text, title = redact_secrets(text)[:_MAX_WITHHELD_CHARS], redact_secrets(action)
            self.store.save(WithheldWrite(client.repo, self.job, key[:200], at, title, text))

        def observes() -> bool:
            reader = client if "contents" in scope else read_only()
            try:
                loaded = self.load_repo_config(where, reader, reader.repository())
            except RateLimited:
                raise
            except OutsideError:  # a job that GitHub's failure ends can still say so
                return was_observed(self.store, self.settings, client.repo)
            return loaded.config.mode == "observe"

        def read_only() -> GitHub:
            return self.app.github(where.repo, installation, READ_SCOPE)

        return observe_writes(client, observes, read_only, keep, author=f"{self.app.slug}[bot]")

    def load_repo_config(
        self, where: RepositoryRef, github: GitHub, repository: Repository
    ) -> LoadedConfig:
        """The repository's configuration; the operator's list of observed repositories overrides its mode."""
        loaded = load(
            github,
            repository,
            app=self.app,
            installation=where.installation,
            store=self.store,
            now=self.clock.now(),
        )
        if self.settings.is_observed(repository.full_name):
            loaded = replace(loaded, config=loaded.config.model_copy(update={"mode": "observe"}))
        return loaded

    def require_job_minutes(self, repo: str, config: RepoConfig) -> None:
        """Let no work begin whose repository has used up its minutes of today.

        Raises:
            NotStarted: its jobs have taken `budget.minutes_per_day` minutes since midnight (UTC).
        """
        today = self.clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
        limit = config.budget.minutes_per_day
        if self.store.total_job_seconds(repo, today) >= limit * 60:
            message = f"this repository's jobs have used their {limit:g} minutes of today (`budget.minutes_per_day` in `{CONFIG_PATH}`); ask again after 00:00 UTC, or raise it"
            raise NotStarted(message)

    def measure_job(self, job: Job) -> float:
        """How many seconds the job's work has taken: the time that its check run, comment and page name."""
        return max(0.0, (self.clock.now() - job.record.began).total_seconds())

    def sandbox_or_none(self) -> Sandbox | None:
        """The sandbox, or None if none holds here: reviews run without."""
        try:
            return self.sandbox()
        except NoSandbox:
            return None

    def log_action(self, job: Job, asked_by: str, action: str, detail: str = "") -> None:
        """Write one line of the audit log."""
        record = job.record
        self.store.log(
            AuditEntry(
                at=self.clock.now(),
                job=record.id,
                repo=record.repo,
                number=record.number,
                asked_by=asked_by,
                action=action,
                detail=redact_secrets(detail)[:2000],
            )
        )

    def store_capsule(self, repository: Repository, capsule: Capsule, *, fetch: str = "") -> str:
        """Keep a capsule for those who may read the repository; the command that repeats it, "" without an address.

        A private repository's capsule is for those who are signed in, so the command names the downloaded file. `fetch`
        brings a fork's commits to a clone.
        """
        text, base = encode_capsule(capsule).decode(), self.settings.public_url
        self.store.add(
            StoredCapsule(repository.full_name, capsule.digest, text, not repository.private)
        )
        if not base:
            return ""
        name = f"{capsule.digest}.json"
        address = f"{base.rstrip('/')}/capsules/{name}"
        again = f"regreen replay {address}"
        if repository.private:
            again = f"regreen replay {name}  # download it first, signed in: {address}"
        return after_fetch(fetch, again)

    def job_page_url(self, job: str) -> str:
        """The address of a job's page, empty if the dashboard has no public address."""
        base = self.settings.public_url
        return f"{base.rstrip('/')}/jobs/{job}" if base else ""
