"""The dashboard's addresses: what came in, what runs, what was found, what it cost; cancelling and repeating."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote

from flask import Blueprint, Response, abort, g, redirect, request
from werkzeug.wrappers import Response as AnyResponse

from regreen.bot.jobs.event_jobs import make_orders
from regreen.bot.jobs.serialization import deserialize_work
from regreen.dashboard.authentication import Authenticator
from regreen.dashboard.calibration_page import show_calibration
from regreen.dashboard.job_page import show_job
from regreen.dashboard.lists import RECORD_LISTS
from regreen.dashboard.overview import show_overview
from regreen.dashboard.rendering import format_json, render_message, render_page
from regreen.dashboard.viewer import Viewer
from regreen.domain.errors import UserError
from regreen.domain.github import SignIn
from regreen.domain.list_queries import DashboardStore
from regreen.domain.ports import Clock
from regreen.domain.records import AuditEntry, Order
from regreen.domain.settings import Settings

OrderWork = Callable[[tuple[Order, ...]], None]


@dataclass(frozen=True)
class _PageActions:
    """What cancelling and repeating need: the store, the time, and where work is ordered."""

    shelf: DashboardStore
    clock: Clock
    order: OrderWork

    def log_action(self, action: str, job: str, repo: str, detail: str) -> None:
        """Write into the audit log what a reader did."""
        reader: Viewer = g.reader
        entry = f"{detail} from the dashboard"
        self.shelf.log(AuditEntry(self.clock.now(), job, repo, None, reader.name, action, entry))

    def repeat_event(self, event: str, what: str, repo: str) -> AnyResponse:
        """Order once more what an event leads to; the browser goes to the job that does it."""
        reader: Viewer = g.reader
        try:
            placed = make_orders(deserialize_work(event), f"replay/{time.time_ns()}")
        except UserError as error:
            return render_message("Not repeated", str(error), reader, status=409)
        if not placed:
            message = "This event asks for nothing, so there is nothing to repeat."
            return render_message(
                "Nothing to do", message, reader, link=("/deliveries", "Deliveries")
            )
        self.order(placed)
        self.log_action("replayed", placed[0].id, repo, what)
        return redirect(f"/jobs/{quote(placed[0].id)}", 303)


def make_dashboard(
    shelf: DashboardStore,
    settings: Settings,
    clock: Clock,
    *,
    order: OrderWork,
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
    Authenticator(shelf, clock, token, sign_in, settings.public_url or "").protect_pages(pages)

    def add(path: str, title: str, show: Callable[[Viewer], Response]) -> None:
        pages.add_url_rule(path, title, lambda: show(g.reader))

    add("/", "Overview", lambda reader: show_overview(shelf, reader, clock.now(), web_url))
    add("/calibration", "Calibration", lambda reader: show_calibration(shelf, reader))
    for path, records in RECORD_LISTS.items():
        add(path, records.title, partial(records.show, shelf))
    actions = _PageActions(shelf, clock, order)
    _add_job_routes(pages, actions, web_url)
    _add_delivery_routes(pages, actions)
    pages.register_error_handler(404, _show_not_found)
    return pages


def _add_job_routes(pages: Blueprint, actions: _PageActions, web_url: str) -> None:
    shelf = actions.shelf

    # ids hold slashes; the two acts are told apart by their ending, not by another level of the address
    @pages.get("/jobs/<path:job_id>")
    def job(job_id: str) -> Response:
        page = show_job(shelf, g.reader, job_id, web_url)
        if page is None:
            abort(404)
        return page

    @pages.post("/jobs/<path:job_id>/cancel")
    def cancel(job_id: str) -> AnyResponse:
        found = shelf.job(job_id)
        _require_may_act(found.repo if found else None, is_there=found is not None)
        if shelf.cancel_job(job_id):
            actions.log_action("cancelled", job_id, found.repo if found else "", job_id)
        return redirect(f"/jobs/{quote(job_id)}", 303)

    @pages.post("/jobs/<path:job_id>/again")
    def again(job_id: str) -> AnyResponse:
        found = shelf.job(job_id)
        _require_may_act(found.repo if found else None, is_there=found is not None)
        assert found is not None  # noqa: S101 - `_require_may_act` has looked
        return actions.repeat_event(found.event, f"job {job_id}", found.repo)


def _add_delivery_routes(pages: Blueprint, actions: _PageActions) -> None:
    shelf = actions.shelf

    @pages.get("/deliveries/<path:delivery_id>")
    def delivery(delivery_id: str) -> Response:
        reader: Viewer = g.reader
        found = shelf.delivery(delivery_id)
        if found is None or not reader.may_see(found.repo):
            abort(404)
        title, event = f"Delivery {delivery_id}", format_json(found.event)
        return render_page("delivery.html", title, reader, delivery=found, event=event)

    @pages.post("/deliveries/<path:delivery_id>/replay")
    def replay(delivery_id: str) -> AnyResponse:
        found = shelf.delivery(delivery_id)
        _require_may_act(found.repo if found else None, is_there=found is not None)
        assert found is not None  # noqa: S101 - `_require_may_act` has looked
        return actions.repeat_event(found.event, f"delivery {delivery_id}", found.repo or "")


def _require_may_act(repo: str | None, *, is_there: bool) -> None:
    """Go on only where the reader may act; what they may not see is not there for them."""
    reader: Viewer = g.reader
    if not is_there or not reader.may_see(repo):
        abort(404)
    if not reader.may_act(repo):
        abort(403)


def _show_not_found(_error: object) -> Response:
    message = f"There is nothing at {request.path}, or it is not for you to see."
    return render_message("Not found", message, g.get("reader"), status=404, link=("/", "Overview"))
