"""Builds the application: settings -> adapters -> bot."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from regreen.adapters.clock import SystemClock
from regreen.adapters.git.mirrors import GitMirrors
from regreen.adapters.github.client import GitHubApp
from regreen.adapters.github.requester import CallMonitor
from regreen.adapters.model.anthropic_client import AnthropicModel, LedgerEntry
from regreen.adapters.model.endpoints import ModelEndpoint
from regreen.adapters.sandbox.attacks.attack import self_test
from regreen.adapters.sandbox.retention import GiB
from regreen.adapters.sandbox.selection import choose_sandbox
from regreen.adapters.store.database import Database
from regreen.adapters.traces import TracedModel, TracedSandbox, make_traces
from regreen.app.metrics import MetricCounters
from regreen.app.web import DeliveryIntake, make_web_application, open_store
from regreen.bot.flows import maintenance
from regreen.bot.handle import EventHandler
from regreen.bot.jobs.engine import JobWorker, find_due_ticks
from regreen.bot.jobs.event_jobs import make_orders
from regreen.bot.jobs.runner import Job, JobRunner, run_due_jobs
from regreen.bot.sandbox_trust import SandboxProvider
from regreen.bot.services import Services
from regreen.domain.errors import OutsideError, UserError
from regreen.domain.events import Maintenance
from regreen.domain.github import App as GitHubSide
from regreen.domain.models import Cost, Retention
from regreen.domain.ports import Clock, Model, NoTraces, Traces
from regreen.domain.records import LedgerLine, Order, Store
from regreen.domain.repo_config import RepoConfig
from regreen.domain.settings import Settings
from regreen.domain.state_records import ServiceState
from regreen.reviewers.reviewer_table import REVIEWERS, ReviewerTable
from regreen.secrets.redaction import CleanText, make_value_hider

if TYPE_CHECKING:
    from flask import Flask
from collections.abc import Mapping
from urllib.parse import urlsplit

import requests

# Sends a JSON document to an address that the operator names.

_TIMEOUT_S = 15


def post_json(url: str, body: Mapping[str, object]) -> None:
    """Post a document; the address, which may be a secret, is in no message.

    Raises:
        OutsideError: it cannot be reached, or refuses.
    """
    try:
        requests.post(url, json=body, timeout=_TIMEOUT_S).raise_for_status()
    except requests.RequestException as error:
        response = error.response
        what = f"answers {response.status_code}" if response is not None else "does not answer"
        message = f"{urlsplit(url).hostname} {what}"
        raise OutsideError(message) from None


_HEARTBEAT_SECONDS = 10.0
_DIGEST_HOUR = 7  # UTC


def build_app(
    settings: Settings,
    *,
    worker: str = "main",
    clock: Clock | None = None,
    github: GitHubSide | None = None,
    sandbox: SandboxProvider | None = None,
    reviewers: ReviewerTable = REVIEWERS,
) -> Application:
    """Wire the App.

    Args:
        settings: the operator's.
        worker: the id of this process, unique among processes.
        clock: the time, for tests.
        github: the App on GitHub; default: by the settings.
        sandbox: the sandbox; default: by the settings, and only if it holds against its own attacks.
        reviewers: what reads a change.

    Raises:
        UserError: a setting is missing or wrong.
        OutsideError: the database does not answer.
    """
    clock = clock or SystemClock()
    clean = make_value_hider(settings.secret_values())
    store = open_store(settings, clock)
    traces, meters = make_traces(settings.otlp_endpoint), MetricCounters(store)
    boxes = sandbox or SandboxProvider(
        lambda: choose_sandbox(
            settings.sandbox,
            settings.sandbox_runtime,
            settings.setup_hosts,
            exact=settings.needs_exact_sandbox,
        ),
        self_test,
        clock,
        settings.home / "sandbox-held",
        Retention(
            settings.environment_days,
            settings.environment_gigabytes * GiB,
            settings.environment_count,
        ),
    )
    intake = DeliveryIntake(store, clock, settings)
    services = Services(
        app=github
        or _make_github_side(
            settings, store, clock, CallMonitor(traces, meters.record_rate_limit), clean
        ),
        store=store,
        clock=clock,
        settings=settings,
        mirrors=GitMirrors(settings.home / "mirrors", traces),
        sandbox=boxes.with_tracing(lambda inner: TracedSandbox(inner, traces, meters.count_box)),
        model=JobModelFactory(settings, store, clock, traces),
        post_json=post_json,
        order=intake.enqueue_orders,
        reviewers=reviewers,
    )
    return Application(services, store, intake, worker=worker, traces=traces, meters=meters)


def _make_github_side(
    settings: Settings, store: Database, clock: Clock, watch: CallMonitor, clean: CleanText
) -> GitHubSide:
    key = settings.private_key_pem()
    if settings.app_id is None or key is None:
        raise UserError(
            "REGREEN_APP_ID and REGREEN_PRIVATE_KEY are not set; `regreen setup` registers the App"
        )
    return GitHubApp(
        app_id=settings.app_id,
        private_key=key,
        api_url=settings.github_api_url,
        clock=clock,
        turn=store.take_turn,
        watch=watch,
        clean=clean,
    )


class Application:
    """The wired App: `wsgi` receives webhooks, a worker or `work` runs the jobs."""

    def __init__(
        self,
        services: Services,
        store: Database,
        intake: DeliveryIntake,
        *,
        worker: str,
        traces: Traces,
        meters: MetricCounters,
    ) -> None:
        self.services = services
        self.store = store
        self.intake = intake
        self._traces = traces
        self._meters = meters
        handler = EventHandler(services)
        self.runner = JobRunner(
            store=store,
            clock=services.clock,
            handle=handler,
            failed=handler.report_failure,
            worker=worker,
            stopped=handler.end_stopped_job,
            traces=traces,
            hand_over=meters.flush_metrics,
        )

    @cached_property
    def wsgi(self) -> Flask:
        """The web application."""
        return make_web_application(
            self.services.settings, self.store, self.services.clock, self.intake
        )

    def enqueue_orders(self, work: tuple[Order, ...]) -> None:
        """Enqueue work without a delivery."""
        self.intake.enqueue_orders(work)

    def enqueue_due_work(self) -> int:
        """Order due schedules and maintenance; return how many orders. Call it every few seconds."""
        services = self.services
        now = services.clock.now()
        last = services.store.find(ServiceState, name="tick")
        after = datetime.fromisoformat(last.value) if last else now
        # the ids contain the hour and the day, so every process may order this
        upkeep = make_orders(Maintenance("redeliver"), f"redeliver/{now:%Y-%m-%dT%H}")
        upkeep += make_orders(Maintenance("sandbox"), f"sandbox/{now:%Y-%m-%dT%H}")
        upkeep += make_orders(Maintenance("branches"), f"branches/{now:%Y-%m-%dT%H}")
        upkeep += make_orders(Maintenance("prune"), f"prune/{now:%Y-%m-%d}")
        if (
            services.settings.digest_url and now.hour >= _DIGEST_HOUR
        ):  # once a week: Monday's, or a later day's after a pause
            upkeep += make_orders(Maintenance("digest"), f"digest/{now:%G-W%V}")
        self.enqueue_orders(upkeep)
        ticks = find_due_ticks(maintenance.load_stored_schedules(services), after, now)
        for tick in ticks:
            self.enqueue_orders(make_orders(tick, f"{tick.schedule}/{tick.due}"))
        services.store.save(ServiceState("tick", now.isoformat()))
        return len(ticks)

    def enqueue_startup_work(self) -> None:
        """Order the work of a start: attack the sandbox, ask for missed deliveries, read schedules."""
        now = f"{self.services.clock.now():%Y-%m-%dT%H:%M}"
        self.enqueue_orders(make_orders(Maintenance("sandbox"), f"sandbox/start/{now}"))
        self.enqueue_orders(make_orders(Maintenance("redeliver"), f"redeliver/start/{now}"))
        self.enqueue_orders(make_orders(Maintenance("schedules"), f"schedules/start/{now}"))

    def run_due_jobs(self, until: datetime | None = None) -> int:
        """Run every due job in this thread, for stories and commands; return how many ran."""
        self.intake.dispatch_deliveries()
        return run_due_jobs(self.runner, until or self.services.clock.now())

    def send_heartbeats_until(self, ended: threading.Event) -> None:
        """Register as a worker, so that no other one takes over jobs that run here."""

        def beat() -> None:
            while not ended.wait(_HEARTBEAT_SECONDS):
                with suppress(OutsideError):  # the next heartbeat tries again
                    self.store.record_heartbeat(self.runner.worker)

        self.store.record_heartbeat(self.runner.worker)
        threading.Thread(target=beat, name="regreen-beat", daemon=True).start()

    def make_worker(self) -> JobWorker:
        """The worker for this process; `start` it after any fork."""
        return JobWorker(
            store=self.store,
            runner=self.runner,
            clock=self.services.clock,
            home=self.services.settings.home,
            dispatch=self.intake.dispatch_deliveries,
            tick=self.enqueue_due_work,
        )

    def close(self) -> None:
        """Write the counts and traces, and close the database."""
        self._meters.flush_metrics()
        self._traces.close()
        self.intake.close()


# The model of one job: capped by the repository's budget, its answers remembered, its cost recorded.

_FORK_BUDGET_SHARE = 0.5
"""Reviews of forks' pull requests stop where this share of the day's or month's budget is spent."""
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)


class JobModelFactory:
    """Makes models; satisfies `services.ModelFactory`."""

    def __init__(
        self, settings: Settings, store: Store, clock: Clock, traces: Traces | None = None
    ) -> None:
        self._traces = traces or NoTraces()
        self._endpoint = ModelEndpoint.from_settings(settings)
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._spending: WeakKeyDictionary[AnthropicModel, tuple[str, int | None]] = (
            WeakKeyDictionary()
        )

    def __call__(
        self, job: Job, repo: str, number: int | None, config: RepoConfig, *, fork: bool = False
    ) -> tuple[Model, Callable[[], Cost]] | None:
        """A model for a job and a function for its cost so far; None if the operator configured none."""
        if self._endpoint is None:
            return None
        spent, share = _AttemptCost(), _FORK_BUDGET_SHARE if fork else 1.0
        model = AnthropicModel(
            self._endpoint,
            budget_usd=lambda: self._remaining_budget(model, repo, number, config, share),
            lock=self._lock,
            recall=self._store.cached_answer,
            remember=self._store.cache_answer,
            ledger=lambda entry: self._record_cost(job, repo, number, entry, spent),
        )
        with self._lock:
            self._spending[model] = (repo, number)
        return TracedModel(model, self._traces), lambda: spent.cost

    def _remaining_budget(
        self, model: AnthropicModel, repo: str, number: int | None, config: RepoConfig, share: float
    ) -> float:
        """The remaining budget: the least of the day's, the month's and the pull request's.

        The possible cost of other jobs' calls in this process is subtracted; the model limits its own calls.
        """
        others = [(at, m.reserved) for m, at in self._spending.items() if m is not model]
        today = self._clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
        reserved = sum(usd for (name, _), usd in others if name == repo)
        left = config.budget.usd_per_day * share - self._store.total_spent(repo, today) - reserved
        if config.budget.usd_per_month is not None:
            month = self._store.total_spent(repo, today.replace(day=1))
            left = min(left, config.budget.usd_per_month * share - month - reserved)
        if number is None:
            return left
        reserved = sum(usd for at, usd in others if at == (repo, number))
        of_pull = (
            config.budget.usd_per_pull_request
            - self._store.total_spent(repo, _EARLIEST, number)
            - reserved
        )
        return min(left, of_pull)

    def _record_cost(
        self, job: Job, repo: str, number: int | None, entry: LedgerEntry, spent: _AttemptCost
    ) -> None:
        spent.cost += entry.cost
        if entry.remembered:
            return
        job.reset_attempts()
        self._store.charge(
            LedgerLine(
                at=self._clock.now(),
                job=job.record.id,
                repo=repo,
                number=number,
                purpose=entry.purpose,
                model=entry.model,
                cost=entry.cost,
                sent=entry.sent,
                masked=entry.masked,
            )
        )


class _AttemptCost:
    """The cost of one job's calls in this attempt."""

    def __init__(self) -> None:
        self.cost = Cost()
