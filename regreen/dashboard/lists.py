"""The long lists: jobs, deliveries, results, model calls, the audit log. Their filters stand in the address."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

from flask import Response, request

from regreen.dashboard.rendering import render_page
from regreen.dashboard.results import summarize_result
from regreen.dashboard.viewer import Viewer
from regreen.domain.list_queries import DashboardStore, ListQuery, Page
from regreen.domain.records import JobKind, JobState

_HINT, _RESULTS_HINT = "in the newest 5,000", "in the newest 2,000"
_QUERY_FIELDS = ("repo", "number", "kind", "state", "q", "after")
_TEXT: tuple[str, ...] = ()  # a filter without options


@dataclass(frozen=True, slots=True)
class RecordList:
    """One list: its template, the fields of its filter form with their options, and who reads its rows."""

    title: str
    template: str
    fields: Mapping[str, tuple[str, ...]]
    read: Callable[[DashboardStore, ListQuery], Page[Any]]
    hint: str = _HINT

    def show(self, shelf: DashboardStore, reader: Viewer) -> Response:
        """The page, within what the reader may see."""
        page = self.read(shelf, _query_from_address(reader))
        is_narrowed = any(request.args.values())
        empty = "Nothing fits these filters." if is_narrowed else "Nothing yet."
        return render_page(self.template, self.title, reader, list=self, page=page, empty=empty)


def _list_results(title: str, kind: str) -> RecordList:
    def read(shelf: DashboardStore, query: ListQuery) -> Page[Any]:
        page = shelf.list_documents(replace(query, kind=kind))
        return Page([summarize_result(document) for document in page.rows], page.after)

    fields = {"q": _TEXT, "repo": _TEXT, "number": _TEXT}
    return RecordList(title, "results.html", fields, read, _RESULTS_HINT)


_SUBJECT_FIELDS = {"q": _TEXT, "repo": _TEXT, "number": _TEXT, "kind": _TEXT}
RECORD_LISTS = {
    "/jobs": RecordList(
        "Jobs",
        "jobs.html",
        {**_SUBJECT_FIELDS, "kind": get_args(JobKind), "state": get_args(JobState)},
        lambda shelf, query: shelf.list_jobs(query),
    ),
    "/reviews": _list_results("Reviews", "review"),
    "/fixes": _list_results("Fixes", "fix"),
    "/bisections": _list_results("Bisections", "bisect"),
    "/deliveries": RecordList(
        "Deliveries",
        "deliveries.html",
        {"q": _TEXT, "repo": _TEXT, "kind": _TEXT},
        lambda shelf, query: shelf.list_deliveries(query),
    ),
    "/ledger": RecordList(
        "Cost", "ledger.html", _SUBJECT_FIELDS, lambda shelf, query: shelf.list_ledger(query)
    ),
    "/audit": RecordList(
        "Audit", "audit.html", _SUBJECT_FIELDS, lambda shelf, query: shelf.list_actions(query)
    ),
}


def _query_from_address(reader: Viewer) -> ListQuery:
    """What the address asks for, within what the reader may see."""
    asked = {key: request.args.get(key, "").strip()[:200] for key in _QUERY_FIELDS}
    number = asked["number"].lstrip("#")
    return ListQuery(
        repos=reader.repos,
        repo=asked["repo"],
        number=int(number) if number.isdecimal() and len(number) < 10 else None,
        kind=asked["kind"],
        state=asked["state"],
        words=asked["q"],
        after=asked["after"],
    )
