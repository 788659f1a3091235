"""The web process: stores deliveries, serves health, metrics and the dashboard.

Nothing here parses repository content or imports code that does: `Application` does that in another process.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from flask import Blueprint, Flask

from regreen.adapters.store.connection import engine_for
from regreen.adapters.store.database import Database
from regreen.adapters.store.inbox import DeliveryInbox
from regreen.app.metrics import make_acknowledgement_histogram, make_health_blueprint
from regreen.bot.jobs.event_jobs import FairQueue, make_orders
from regreen.bot.jobs.serialization import deserialize_work, serialize_work
from regreen.dashboard.pages import make_dashboard
from regreen.domain.errors import OutsideError, UserError
from regreen.domain.events import Event, InstallationChanged, Pinged
from regreen.domain.github import SignIn
from regreen.domain.ports import Clock
from regreen.domain.records import DeliveryRecord, Order
from regreen.domain.settings import Settings
from regreen.secrets.redaction import make_value_hider
from regreen.webhooks import receive

_DISPATCH_BATCH_SIZE = 100

_log = logging.getLogger(__name__)


def open_store(settings: Settings, clock: Clock) -> Database:
    """The database with its tables created or migrated.

    Raises:
        OutsideError: the database does not answer.
    """
    store = Database(
        engine_for(settings.database), clock, make_value_hider(settings.secret_values())
    )
    try:
        store.create_or_upgrade_tables()
    except OutsideError as error:
        where = store.engine.url.render_as_string()  # without the password
        message = (
            f"the database {where} cannot be used ({error}); start it, or set REGREEN_DATABASE_URL to one that "
            "answers (without it, SQLite below REGREEN_HOME is used); `regreen doctor` tries it"
        )
        raise OutsideError(message) from error
    return store


class DeliveryIntake:
    """Accepts deliveries and orders: a delivery is one row, which a worker turns into jobs.

    Args:
        store: where they are stored.
        clock: the time.
        settings: the operator's.
    """

    def __init__(self, store: Database, clock: Clock, settings: Settings) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._admission = FairQueue(clock, settings.jobs_per_installation)
        self._group_commit = GroupCommit(DeliveryInbox(store.engine).accept_all)
        self.acknowledged = make_acknowledgement_histogram()

    def accept_delivery(self, delivery: receive.WebhookDelivery) -> bool:
        """Store a delivery; False if it is stored already."""
        record = DeliveryRecord(
            id=delivery.id,
            name=delivery.name,
            repo=_repo_from_event(delivery.event),
            event=serialize_work(delivery.event),
            received=self._clock.now(),
        )
        with self.acknowledged.time():
            return self._group_commit.accept_delivery(record)

    def dispatch_deliveries(self) -> None:
        """Turn the pending deliveries into jobs. One that cannot be is logged and set aside: the others go on.

        Raises:
            OutsideError: the database does not answer; every delivery stays.
        """
        size = _DISPATCH_BATCH_SIZE
        while True:
            try:
                if self._store.dispatch_deliveries(self._decide_orders, size) < size:
                    return
            except OutsideError:
                raise
            except Exception:  # noqa: BLE001 - one delivery must not hold up the others
                # A batch is one transaction: find the guilty delivery alone.
                if size > 1:
                    size = 1
                    continue
                _log.exception("delivery %s is set aside", self._store.reject_oldest_delivery())
                size = _DISPATCH_BATCH_SIZE

    def _decide_orders(self, delivery: DeliveryRecord) -> tuple[Order, ...]:
        try:
            work = deserialize_work(delivery.event)
        except UserError as error:
            _log.warning("delivery %s asks for nothing: %s", delivery.id, error)
            return ()
        orders = make_orders(work, delivery.id, delay=self._settings.review_delay_s)
        return self._admission.admit_orders(orders)

    def enqueue_orders(self, work: tuple[Order, ...]) -> None:
        """Enqueue work without a delivery."""
        self._store.store_orders(self._admission.admit_orders(work))

    def close(self) -> None:
        """Close the database."""
        self._store.engine.dispose()


def make_web_application(
    settings: Settings, store: Database, clock: Clock, intake: DeliveryIntake
) -> Flask:
    """The web application: webhook endpoint, health, metrics, dashboard."""
    flask = Flask("regreen", static_folder=None, template_folder=None)
    secret = settings.webhook_secret
    secrets = secret.get_secret_value().split() if secret else []
    flask.register_blueprint(receive.make_blueprint(secrets=secrets, accept=intake.accept_delivery))
    flask.register_blueprint(_make_dashboard(settings, store, clock, intake))
    flask.register_blueprint(make_health_blueprint(store, clock, intake.acknowledged))
    return flask


def _make_dashboard(
    settings: Settings, store: Database, clock: Clock, intake: DeliveryIntake
) -> Blueprint:
    web_url = settings.github.web_url
    people: SignIn | None = None
    if settings.client_id and settings.client_secret and settings.public_url:
        from regreen.adapters.github.tokens import GitHubSignIn

        secret = settings.client_secret.get_secret_value()
        people = GitHubSignIn(
            settings.client_id, secret, web_url=web_url, api_url=settings.github_api_url
        )
    return make_dashboard(
        store, settings, clock, order=intake.enqueue_orders, sign_in=people, web_url=web_url
    )


def _repo_from_event(event: Event) -> str | None:
    if isinstance(event, InstallationChanged | Pinged):
        return None
    return event.where.repo


# Group commit: deliveries that arrive together share one transaction, and each is answered after the commit.
#
# SQLite has one writer at a time; threads that wait for it back off for up to a second. Here one thread writes for
# all that wait, and one flush to disk serves every delivery that came meanwhile. A thread that finds no writer becomes
# the writer: no other thread has to wake up before it gets its answer.

_MAX_BATCH_SIZE = 64
_LONGEST_WAIT_S = 8.0  # GitHub hangs up after ten seconds

AcceptBatch = Callable[[Sequence[DeliveryRecord]], list[bool]]
"""Writes them all or none. It has to give up by itself before GitHub does: nobody stops who writes."""


@dataclass(eq=False)
class _PendingDelivery:
    delivery: DeliveryRecord
    woken: threading.Event = field(default_factory=threading.Event)
    """Set when it is decided, or when it is this one's turn to write."""
    is_new: bool | None = None
    error: OutsideError | None = None

    @property
    def is_decided(self) -> bool:
        return self.is_new is not None or self.error is not None


class GroupCommit:
    """Makes one of many threads the writer."""

    def __init__(self, accept_all: AcceptBatch, longest_wait_s: float = _LONGEST_WAIT_S) -> None:
        self._accept_all = accept_all
        self._longest_wait_s = longest_wait_s
        self._lock = threading.Lock()
        self._queue: deque[_PendingDelivery] = deque()
        self._is_writing = False

    def accept_delivery(self, delivery: DeliveryRecord) -> bool:
        """Store a delivery; False if it is stored already.

        Raises:
            OutsideError: it was not stored, or not in time; if it is stored later, the next one is a duplicate.
        """
        waiting = _PendingDelivery(delivery)
        with self._lock:
            self._queue.append(waiting)
            writes, self._is_writing = not self._is_writing, True
        if not writes:
            self._await_turn(waiting)
        if not waiting.is_decided:
            self._write_batch()
        if waiting.error is not None:
            raise waiting.error
        return waiting.is_new is True

    def _await_turn(self, waiting: _PendingDelivery) -> None:
        if waiting.woken.wait(self._longest_wait_s):
            return
        with self._lock:
            if waiting.woken.is_set():
                return  # stored at the last moment
            if waiting in self._queue:
                self._queue.remove(waiting)
        raise OutsideError("the database takes too long")

    def _write_batch(self) -> None:
        """Write all waiting deliveries, the caller's own first, and pass the role on."""
        with self._lock:
            batch = [self._queue.popleft() for _ in range(min(_MAX_BATCH_SIZE, len(self._queue)))]
        try:
            self._commit_batch(batch)
        finally:
            with self._lock:
                self._is_writing = bool(self._queue)
                if self._queue:
                    self._queue[0].woken.set()
            for waiting in batch:
                if not waiting.is_decided:  # after any failure, nobody is told that it was stored
                    waiting.error = OutsideError("the delivery was not written")
                waiting.woken.set()

    def _commit_batch(self, batch: Sequence[_PendingDelivery]) -> None:
        try:
            answers = self._accept_all([w.delivery for w in batch])
        except OutsideError as error:
            for waiting in batch:
                waiting.error = error
        except Exception:  # noqa: BLE001 - see below
            # One delivery that cannot be written must not fail the others.
            if len(batch) > 1:
                for waiting in batch:
                    self._commit_batch([waiting])
                return
            _log.exception("delivery %s cannot be written", batch[0].delivery.id)
            batch[0].error = OutsideError("the delivery cannot be written")
        else:
            for waiting, is_new in zip(batch, answers, strict=True):
                waiting.is_new = is_new
