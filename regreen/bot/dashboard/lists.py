"""The long lists: jobs, deliveries, results, model calls, the audit log. Their filters stand in the address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args
from urllib.parse import quote

from flask import request

from regreen.bot.dashboard.frame import filters, pager
from regreen.bot.dashboard.html import Safe, dollars, link, place, seconds, state, table, text, when
from regreen.bot.dashboard.reader import Reader
from regreen.bot.say.markup import counted
from regreen.listing import Shelf, Sought
from regreen.records import Document, JobKind, JobState

_KINDS: tuple[str, ...] = get_args(JobKind)
_STATES: tuple[str, ...] = get_args(JobState)
_HINT, _RESULTS_HINT = "in the newest 5,000", "in the newest 2,000"


def sought(reader: Reader, **fixed: str) -> Sought:
    """What the address asks for, within what the reader may see."""
    asked = {key: request.args.get(key, "").strip()[:200] for key in _FIELDS}
    number = asked["number"].lstrip("#")
    return Sought(
        repos=reader.repos,
        repo=asked["repo"],
        number=int(number) if number.isdecimal() and len(number) < 10 else None,
        kind=fixed.get("kind", asked["kind"]),
        state=asked["state"],
        words=asked["q"],
        after=asked["after"],
    )


_FIELDS = ("repo", "number", "kind", "state", "q", "after")


def jobs(shelf: Shelf, reader: Reader) -> Safe:
    """Every job, the newest first."""
    found = shelf.list_jobs(sought(reader))
    rows = (
        (
            when(job.created),
            link(job_address(job.id), job.kind),
            _narrowed(job.repo, job.number),
            state(job.state),
            job.progress if job.state == "running" else job.note[:300],
            dollars(job.usd),
        )
        for job in found.rows
    )
    above = filters({"q": (), "repo": (), "number": (), "kind": _KINDS, "state": _STATES}, _HINT)
    shown = table(("when", "job", "where", "state", "what", "cost"), rows, caption="Jobs", none=_none())  # fmt: skip
    return text(above, shown, pager(found.after))


def deliveries(shelf: Shelf, reader: Reader) -> Safe:
    """Every webhook delivery that was accepted."""
    found = shelf.list_deliveries(sought(reader))
    rows = (
        (when(d.received), d.name, d.repo, link("/deliveries/" + quote(d.id, safe=""), d.id))
        for d in found.rows
    )
    shown = table(("when", "event", "repository", "delivery"), rows, caption="Deliveries", none=_none())  # fmt: skip
    return text(filters({"q": (), "repo": (), "kind": ()}, _HINT), shown, pager(found.after))


def results(shelf: Shelf, reader: Reader, kind: str) -> Safe:
    """Reviews, fixes or bisections."""
    found = shelf.list_documents(sought(reader, kind=kind))
    rows = (
        (
            when(d.at),
            link(job_address(d.job), place(d.repo, d.number)),
            state(verdict(d)),
            headline(d),
            seconds(d.body.get("seconds")),
        )
        for d in found.rows
    )
    shown = table(("when", "where", "outcome", "what", "took"), rows, caption="Results", none=_none())  # fmt: skip
    return text(
        filters({"q": (), "repo": (), "number": ()}, _RESULTS_HINT), shown, pager(found.after)
    )


def ledger(shelf: Shelf, reader: Reader) -> Safe:
    """Every model call, with its tokens and what it cost."""
    found = shelf.list_ledger(sought(reader))
    rows = (
        (
            when(line.at),
            link(job_address(line.job), place(line.repo, line.number) or "job"),
            line.purpose,
            line.model,
            f"{line.cost.input_tokens:,}",
            f"{line.cost.output_tokens:,}",
            f"{line.cost.cached_tokens:,}",
            dollars(line.cost.usd),
        )
        for line in found.rows
    )
    head = ("when", "where", "for", "model", "tokens in", "tokens out", "cached", "cost")
    above = filters({"q": (), "repo": (), "number": (), "kind": ()}, _HINT)
    return text(above, table(head, rows, caption="Model calls", none=_none()), pager(found.after))


def audit(shelf: Shelf, reader: Reader) -> Safe:
    """What was done, and who asked for it."""
    found = shelf.list_actions(sought(reader))
    rows = (
        (
            when(a.at),
            a.asked_by or "-",
            a.action,
            _narrowed(a.repo, a.number),
            a.detail,
            link(job_address(a.job), "job") if a.job else "",
        )
        for a in found.rows
    )
    above = filters({"q": (), "repo": (), "number": (), "kind": ()}, _HINT)
    head = ("when", "who", "what", "where", "detail", "by")
    return text(above, table(head, rows, caption="Audit log", none=_none()), pager(found.after))


def job_address(job_id: str) -> str:
    """Where a job is shown."""
    return "/jobs/" + quote(job_id)


def verdict(document: Document) -> str:
    """One word on what came out."""
    if document.kind == "review":
        return str(document.body.get("risk") or "reviewed")
    return str(document.body.get("outcome") or "done")


def headline(document: Document) -> str:
    """One line on what came out."""
    body = document.body
    match document.kind:
        case "review":
            kept = len(body.get("withheld", ()))
            held = f", {kept} withheld" if kept else ""
            posted = counted(len(body.get("findings", ())), "finding")
            return f"{posted}{held}: {body.get('summary', '')}"[:300]
        case "fix":
            said = (body.get("rung"), body.get("cause"), body.get("reason"))
            return ": ".join(str(part) for part in said if part)[:300]
        case "bisect":
            culprit = _mapping(body.get("culprit"))
            share = body.get("probability")
            sure = f"{share:.1%} " if isinstance(share, float) and culprit else ""
            return f"{sure}{str(culprit.get('sha', ''))[:12]} {culprit.get('subject', '')}"[:300]


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _narrowed(repo: str, number: int | None) -> Safe:
    if not repo:
        return Safe("")
    more = f"&number={number}" if number is not None else ""
    return link(f"/jobs?repo={quote(repo, safe='')}{more}", place(repo, number))


def _none() -> str:
    is_narrowed = any(request.args.values())
    return "Nothing fits these filters." if is_narrowed else "Nothing yet."
