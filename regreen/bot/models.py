"""The model for one job: capped by the repository's budget, its answers remembered, its cost written down."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from weakref import WeakKeyDictionary

from regreen.adapters.anthropic import AnthropicModel, LedgerEntry
from regreen.bot.running import Job
from regreen.bot.watched import WatchedModel
from regreen.models import Cost
from regreen.ports import Clock, Model, NoTraces, Traces
from regreen.records import LedgerLine, Store
from regreen.repo_config import RepoConfig
from regreen.settings import Settings

_EVER = datetime(2000, 1, 1, tzinfo=UTC)


class Models:
    """Makes models; satisfies `desk.ModelFor`."""

    def __init__(
        self, settings: Settings, store: Store, clock: Clock, traces: Traces | None = None
    ) -> None:
        self._traces = traces or NoTraces()
        self._settings = settings
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._spending: WeakKeyDictionary[AnthropicModel, tuple[str, int | None]] = (
            WeakKeyDictionary()
        )

    def __call__(
        self, job: Job, repo: str, number: int | None, config: RepoConfig
    ) -> tuple[Model, Callable[[], Cost]] | None:
        """A model for a job and what it has cost so far; None where the operator gave none."""
        if not self._settings.has_model:
            return None
        spent = _Spent()
        model = AnthropicModel(
            api_key=_secret(self._settings),
            name=self._settings.model,
            fallback=self._settings.fallback_model,
            base_url=self._settings.anthropic_base_url,
            budget_usd=lambda: self._left(model, repo, number, config),
            lock=self._lock,
            recall=self._store.answer,
            remember=self._store.keep_answer,
            ledger=lambda entry: self._charge(job, repo, number, entry, spent),
        )
        with self._lock:
            self._spending[model] = (repo, number)
        return WatchedModel(model, self._traces), lambda: spent.cost

    def _left(
        self, model: AnthropicModel, repo: str, number: int | None, config: RepoConfig
    ) -> float:
        """What may still be spent: the tightest of the day's, the month's and the pull request's budget.

        What the calls of other jobs in this process could still cost is left out; `model` sees to its own.
        """
        others = [(at, m.reserved) for m, at in self._spending.items() if m is not model]
        today = self._clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
        held = sum(usd for (name, _), usd in others if name == repo)
        left = config.budget.usd_per_day - self._store.spent(repo, today) - held
        if config.budget.usd_per_month is not None:
            month = self._store.spent(repo, today.replace(day=1))
            left = min(left, config.budget.usd_per_month - month - held)
        if number is None:
            return left
        held = sum(usd for at, usd in others if at == (repo, number))
        of_pull = config.budget.usd_per_pull_request - self._store.spent(repo, _EVER, number) - held
        return min(left, of_pull)

    def _charge(
        self, job: Job, repo: str, number: int | None, entry: LedgerEntry, spent: _Spent
    ) -> None:
        spent.cost += entry.cost
        if entry.remembered:
            return
        job.got_further()
        self._store.charge(
            LedgerLine(
                at=self._clock.now(),
                job=job.record.id,
                repo=repo,
                number=number,
                purpose=entry.purpose,
                model=entry.model,
                cost=entry.cost,
            )
        )


class _Spent:
    """What one job's calls have cost in this attempt."""

    def __init__(self) -> None:
        self.cost = Cost()


def _secret(settings: Settings) -> str | None:
    key = settings.anthropic_api_key
    return key.get_secret_value() if key else None
