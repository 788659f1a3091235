"""The dashboard's addresses: what came in, what runs, what was found, what it cost; cancelling and repeating."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote

from flask import Blueprint, Response, abort, g, redirect, request
from werkzeug.wrappers import Response as AnyResponse

from regreen.bot.dashboard import lists
from regreen.bot.dashboard.calibration import calibration_page
from regreen.bot.dashboard.doors import Doors
from regreen.bot.dashboard.frame import act, page
from regreen.bot.dashboard.html import Safe, code, facts, fold, link, tag, text, when
from regreen.bot.dashboard.job import job_page, pretty
from regreen.bot.dashboard.overview import overview
from regreen.bot.dashboard.reader import Reader
from regreen.bot.envelope import unpack
from regreen.bot.plan import orders
from regreen.errors import UserError
from regreen.forge import SignIn
from regreen.listing import Shelf
from regreen.ports import Clock
from regreen.records import Action, Order
from regreen.settings import Settings

Place = Callable[[tuple[Order, ...]], None]


@dataclass(frozen=True)
class _Counter:
    """What the acts need: the shelf, the time, and where work is ordered."""

    shelf: Shelf
    clock: Clock
    order: Place

    def note(self, action: str, job: str, repo: str, detail: str) -> None:
        """Write into the audit log what a reader did."""
        reader: Reader = g.reader
        told = f"{detail} from the dashboard"
        self.shelf.log(Action(self.clock.now(), job, repo, None, reader.name, action, told))

    def repeat(self, event: str, what: str, repo: str) -> AnyResponse:
        """Order once more what an event leads to; the browser goes to the job that does it."""
        reader: Reader = g.reader
        try:
            placed = orders(unpack(event), f"replay/{time.time_ns()}")
        except UserError as error:
            return page("Not repeated", tag("p", str(error)), reader=reader, status=409)
        if not placed:
            said = tag("p", "This event asks for nothing, so there is nothing to repeat.")
            back = tag("p", link("/deliveries", "Deliveries"))
            return page("Nothing to do", said, back, reader=reader)
        self.order(placed)
        self.note("replayed", placed[0].id, repo, what)
        return redirect(f"/jobs/{quote(placed[0].id)}", 303)


def dashboard(
    shelf: Shelf,
    settings: Settings,
    clock: Clock,
    *,
    order: Place,
    sign_in: SignIn | None = None,
    web_url: str = "",
) -> Blueprint:
    """The pages, each for those who may see it.

    Args:
        shelf: what is shown.
        settings: the operator's: the token that opens everything, and our own address.
        clock: the time.
        order: takes the work that somebody wants repeated.
        sign_in: how people sign in with GitHub; None: the token, or this machine.
        web_url: where people see GitHub.
    """
    pages = Blueprint("dashboard", __name__)
    token = settings.dashboard_auth.get_secret_value() if settings.dashboard_auth else None
    Doors(shelf, clock, token, sign_in, settings.public_url or "").guard(pages)

    def add(path: str, title: str, body: Callable[[Reader], Safe]) -> None:
        def show() -> Response:
            return page(title, body(g.reader), reader=g.reader)

        pages.add_url_rule(path, title, show)

    add("/", "Overview", lambda reader: overview(shelf, reader, clock.now(), web_url))
    add("/jobs", "Jobs", lambda reader: lists.jobs(shelf, reader))
    add("/reviews", "Reviews", lambda reader: lists.results(shelf, reader, "review"))
    add("/fixes", "Fixes", lambda reader: lists.results(shelf, reader, "fix"))
    add("/bisections", "Bisections", lambda reader: lists.results(shelf, reader, "bisect"))
    add("/deliveries", "Deliveries", lambda reader: lists.deliveries(shelf, reader))
    add("/calibration", "Calibration", lambda reader: calibration_page(shelf, reader))
    add("/ledger", "Cost", lambda reader: lists.ledger(shelf, reader))
    add("/audit", "Audit", lambda reader: lists.audit(shelf, reader))
    counter = _Counter(shelf, clock, order)
    _one_job(pages, counter, web_url)
    _one_delivery(pages, counter)
    pages.register_error_handler(404, _missing)
    return pages


def _one_job(pages: Blueprint, counter: _Counter, web_url: str) -> None:
    shelf = counter.shelf

    # ids hold slashes; the two acts are told apart by their ending, not by another level of the address
    @pages.get("/jobs/<path:job_id>")
    def job(job_id: str) -> Response:
        found = job_page(shelf, g.reader, job_id, web_url)
        if found is None:
            abort(404)
        title, body = found
        return page(title, body, reader=g.reader)

    @pages.post("/jobs/<path:job_id>/cancel")
    def cancel(job_id: str) -> AnyResponse:
        found = shelf.job(job_id)
        _may(found.repo if found else None, is_there=found is not None)
        if shelf.cancel_job(job_id):
            counter.note("cancelled", job_id, found.repo if found else "", job_id)
        return redirect(f"/jobs/{quote(job_id)}", 303)

    @pages.post("/jobs/<path:job_id>/again")
    def again(job_id: str) -> AnyResponse:
        found = shelf.job(job_id)
        _may(found.repo if found else None, is_there=found is not None)
        assert found is not None  # noqa: S101 - `_may` has looked
        return counter.repeat(found.event, f"job {job_id}", found.repo)


def _one_delivery(pages: Blueprint, counter: _Counter) -> None:
    shelf = counter.shelf

    @pages.get("/deliveries/<path:delivery_id>")
    def delivery(delivery_id: str) -> Response:
        reader: Reader = g.reader
        found = shelf.delivery(delivery_id)
        if found is None or not reader.may_see(found.repo):
            abort(404)
        named = facts(
            (("event", found.name), ("repository", found.repo), ("came", when(found.received)))
        )
        replay = act(reader, f"/deliveries/{quote(delivery_id, safe='')}/replay", "Replay")
        parts = (named, replay if reader.may_act(found.repo) else "")
        parsed = fold("The event, as it was read", code(pretty(found.event), "The event"), open_=True)  # fmt: skip
        return page(f"Delivery {delivery_id}", *parts, parsed, reader=reader)

    @pages.post("/deliveries/<path:delivery_id>/replay")
    def replay(delivery_id: str) -> AnyResponse:
        found = shelf.delivery(delivery_id)
        _may(found.repo if found else None, is_there=found is not None)
        assert found is not None  # noqa: S101 - `_may` has looked
        return counter.repeat(found.event, f"delivery {delivery_id}", found.repo or "")


def _may(repo: str | None, *, is_there: bool) -> None:
    """Go on only where the reader may act; what they may not see is not there for them."""
    reader: Reader = g.reader
    if not is_there or not reader.may_see(repo):
        abort(404)
    if not reader.may_act(repo):
        abort(403)


def _missing(_error: object) -> Response:
    words = text(tag("p", f"There is nothing at {request.path}, or it is not for you to see."))
    return page("Not found", words, tag("p", link("/", "Overview")), reader=g.get("reader"), status=404)  # fmt: skip
