"""Builds the real thing: settings -> adapters -> bot -> web application."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from typing import Any

from flask import Blueprint, Flask

from regreen.adapters.attacks import self_test
from regreen.adapters.clock import SystemClock
from regreen.adapters.connection import engine_for
from regreen.adapters.database import Database
from regreen.adapters.door import Door
from regreen.adapters.github import GitHubApp
from regreen.adapters.github_people import GitHubSignIn
from regreen.adapters.github_watch import Watch
from regreen.adapters.retention import GiB, Retention
from regreen.adapters.sandbox import choose
from regreen.adapters.traces import traces_to
from regreen.bot import care
from regreen.bot.accepting import GroupCommit
from regreen.bot.admission import Admission
from regreen.bot.asks import Care
from regreen.bot.dashboard.pages import dashboard
from regreen.bot.desk import Desk
from regreen.bot.envelope import pack
from regreen.bot.handle import Handler
from regreen.bot.health import acknowledgements, health
from regreen.bot.inline import InlineEngine
from regreen.bot.meters import Meters
from regreen.bot.mirrors import Mirrors
from regreen.bot.models import Models
from regreen.bot.plan import orders
from regreen.bot.registering import web_url_of
from regreen.bot.running import Runner
from regreen.bot.sandboxes import Sandboxes
from regreen.bot.schedule import due
from regreen.bot.watched import WatchedSandbox
from regreen.codebase.redaction import Clean, hiding
from regreen.errors import OutsideError, UserError
from regreen.forge import App as GitHubSide
from regreen.ports import Clock, Traces
from regreen.records import DeliveryRecord, Order
from regreen.settings import Settings
from regreen.webhooks import receive
from regreen.webhooks.events import Event, InstallationChanged, Pinged

MAIN_WORKER = "main"
_TICKS = "ticks"


def build(
    settings: Settings,
    *,
    worker: str = MAIN_WORKER,
    durable: bool = True,
    clock: Clock | None = None,
    github: GitHubSide | None = None,
    sandbox: Sandboxes | None = None,
) -> App:
    """Wire the App.

    Args:
        settings: the operator's.
        worker: the id under which this process works; one process an id.
        durable: False puts jobs in the store alone, to be run by `App.work` in the caller's thread.
        clock: the time, for tests.
        github: the App on GitHub; default: by the settings.
        sandbox: the sandbox; default: by the settings, and only where it holds its own attacks.

    Raises:
        UserError: a setting is missing or wrong.
        OutsideError: the database does not answer.
    """
    clock = clock or SystemClock()
    engine = engine_for(settings.database)
    clean = hiding(settings.secrets())
    store = Database(engine, clock, clean)
    _create(store)
    traces, meters = traces_to(settings.otlp_endpoint), Meters(store)
    boxes = sandbox or Sandboxes(
        lambda: choose(settings.sandbox, settings.sandbox_runtime),
        self_test,
        clock,
        settings.home / "sandbox-held",
        Retention(
            settings.environment_days,
            settings.environment_gigabytes * GiB,
            settings.environment_count,
        ),
    )
    desk = Desk(
        app=github or _github(settings, store, clock, Watch(traces, meters.limit), clean),
        store=store,
        clock=clock,
        settings=settings,
        mirrors=Mirrors(settings.home / "mirrors", traces),
        sandbox=boxes.watched(lambda held: WatchedSandbox(held, traces, meters.box_opened)),
        model=Models(settings, store, clock, traces),
    )
    return App(desk, store, worker=worker, durable=durable, traces=traces, meters=meters)


def _create(store: Database) -> None:
    try:
        store.create()
    except OutsideError as error:
        where = store.engine.url.render_as_string()  # the password is left out
        message = (
            f"the database {where} cannot be used ({error}); start it, or set REGREEN_DATABASE_URL to one that "
            "answers (without it, SQLite below REGREEN_HOME is used); `regreen doctor` tries it"
        )
        raise OutsideError(message) from error


def _github(
    settings: Settings, store: Database, clock: Clock, watch: Watch, clean: Clean
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
        turn=store.turn,
        watch=watch,
        clean=clean,
    )


class App:
    """The wired App: `wsgi` takes webhooks, a worker or `work` does what they ask for."""

    def __init__(
        self,
        desk: Desk,
        store: Database,
        *,
        worker: str,
        durable: bool,
        traces: Traces,
        meters: Meters,
    ) -> None:
        self.desk = desk
        self.store = store
        self._traces = traces
        self._meters = meters
        handler = Handler(desk, self.order)
        self.runner = Runner(
            store=store,
            clock=desk.clock,
            handle=handler,
            failed=handler.failed,
            worker=worker,
            stopped=handler.stopped,
            traces=traces,
            hand_over=meters.hand_over,
        )
        self.acknowledged = acknowledgements()
        self._sqlite: Door | None = None
        self._durable = durable
        self._admission = Admission(desk.clock, desk.settings.jobs_per_installation)

    @cached_property
    def wsgi(self) -> Flask:
        """The web application."""
        return web(self)

    @cached_property
    def _door(self) -> GroupCommit:
        queue, path = self._queue, self.store.engine.url.database
        if self.store.engine.dialect.name != "sqlite" or path is None or queue.rows is None:
            return GroupCommit(lambda items: self.store.accept_all(items, queue.enqueue))
        door = self._sqlite = Door(path, self.desk.clock)
        return GroupCommit(lambda items: door.accept_all(items, queue.rows))

    @cached_property
    def _queue(self) -> Any:
        if not self._durable:
            return InlineEngine(self.store, self.runner)
        from regreen.bot.jobs import Queue

        return Queue(self.store.engine)

    def accept(self, delivery: receive.Delivery) -> bool:
        """Make a delivery and its jobs durable; False where it was there already."""
        work = orders(delivery.event, delivery.id, delay=self.desk.settings.review_delay_s)
        record = DeliveryRecord(
            id=delivery.id,
            name=delivery.name,
            repo=_repo_of(delivery.event),
            # packed once: an event with work is packed in its order already
            event=work[0].event if work else pack(delivery.event),
            received=self.desk.clock.now(),
        )
        with self.acknowledged.time():
            return self._door.accept(record, self._admission.admit(work))

    def order(self, work: tuple[Order, ...]) -> None:
        """Enqueue work that no delivery brought."""
        self.store.order(self._admission.admit(work), self._queue.enqueue)

    def tick(self) -> int:
        """Order what schedules and our own upkeep are due for; how much that is. Call it every few seconds."""
        desk = self.desk
        now = desk.clock.now()
        last = desk.store.get(_TICKS, "last")
        after = datetime.fromisoformat(last) if last else now
        ticks = due(care.schedules(desk), after, now)
        found = [order for tick in ticks for order in orders(tick, f"{tick.schedule}/{tick.due}")]
        # the hour and the day are part of the ids, so every process may order this
        found += orders(Care("redeliver"), f"redeliver/{now:%Y-%m-%dT%H}")
        found += orders(Care("sandbox"), f"sandbox/{now:%Y-%m-%dT%H}")
        found += orders(Care("branches"), f"branches/{now:%Y-%m-%dT%H}")
        found += orders(Care("prune"), f"prune/{now:%Y-%m-%d}")
        self.order(tuple(found))
        desk.store.put(_TICKS, "last", now.isoformat())
        return len(ticks)

    def begin(self) -> None:
        """Order what a start needs: the sandbox tried, missed deliveries again, schedules read anew."""
        now = f"{self.desk.clock.now():%Y-%m-%dT%H:%M}"
        self.order(orders(Care("sandbox"), f"sandbox/start/{now}"))
        self.order(orders(Care("redeliver"), f"redeliver/start/{now}"))
        self.order(orders(Care("schedules"), f"schedules/start/{now}"))

    def work(self, until: datetime | None = None) -> int:
        """Run every job that is due, here and now; only without a durable engine. How many ran."""
        engine = self._queue
        assert isinstance(engine, InlineEngine)  # noqa: S101 - `build(durable=False)`
        return engine.work(until or self.desk.clock.now())

    def worker(self) -> Any:
        """The worker for this process; `start` it after any fork."""
        from regreen.bot.jobs import Worker

        return Worker(
            engine=self.store.engine,
            store=self.store,
            runner=self.runner,
            clock=self.desk.clock,
            home=self.desk.settings.home,
            tick=self.tick,
        )

    def close(self) -> None:
        """Bring away what was counted and traced, and let go of the database."""
        self._meters.hand_over()
        self._traces.close()
        if self._sqlite is not None:
            self._sqlite.close()
        if self._durable and "_queue" in self.__dict__:
            self._queue.close()
        self.store.engine.dispose()


def web(app: App) -> Flask:
    """The web application: the webhook door, health, metrics, the dashboard."""
    flask = Flask("regreen", static_folder=None, template_folder=None)
    secret = app.desk.settings.webhook_secret
    secrets = secret.get_secret_value().split() if secret else []
    flask.register_blueprint(receive.blueprint(secrets=secrets, accept=app.accept))
    flask.register_blueprint(_dashboard(app))
    flask.register_blueprint(health(app.desk, app.store, app.acknowledged))
    return flask


def _dashboard(app: App) -> Blueprint:
    settings = app.desk.settings
    web_url = web_url_of(settings.github_api_url)
    people: GitHubSignIn | None = None
    if settings.client_id and settings.client_secret and settings.public_url:
        secret = settings.client_secret.get_secret_value()
        people = GitHubSignIn(
            settings.client_id, secret, web_url=web_url, api_url=settings.github_api_url
        )
    return dashboard(
        app.store, settings, app.desk.clock, order=app.order, sign_in=people, web_url=web_url
    )


def _repo_of(event: Event) -> str | None:
    if isinstance(event, InstallationChanged | Pinged):
        return None
    return event.where.repo
