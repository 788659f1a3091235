"""The dashboard: what came in, what runs, what was found, what it cost. Reads the store, changes nothing."""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import b64encode
from collections.abc import Callable, Iterable
from datetime import datetime

from flask import Blueprint, Response, abort, request

from regreen.bot.care import SANDBOX_NOTE
from regreen.bot.dashboard.html import Safe, link, table, tag, text
from regreen.bot.dashboard.style import STYLE
from regreen.codebase.redaction import redact
from regreen.records import Document, JobRecord, Store
from regreen.settings import Settings

_STYLE_HASH = "sha256-" + b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
_POLICY = (
    f"default-src 'none'; style-src '{_STYLE_HASH}'; img-src data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_LOOPBACK = frozenset({"127.0.0.1", "::1"})
_PAGES = (
    ("/", "Jobs"),
    ("/reviews", "Reviews"),
    ("/fixes", "Fixes"),
    ("/bisections", "Bisections"),
    ("/deliveries", "Deliveries"),
    ("/ledger", "Cost"),
    ("/audit", "Audit"),
)


def dashboard(store: Store, settings: Settings) -> Blueprint:
    """The pages, behind the operator's token; without one, for this machine only."""
    pages = Blueprint("dashboard", __name__)
    secret = settings.dashboard_auth.get_secret_value() if settings.dashboard_auth else None

    @pages.before_request
    def check() -> Response | None:
        return None if _may_look(secret) else _ask()

    def page(path: str, title: str, body: Callable[[], Safe]) -> None:
        def show() -> Response:
            return _page(title, body())

        pages.add_url_rule(path, title, show)

    page("/", "Jobs", lambda: Safe(_warning(store) + _jobs(store.jobs(limit=100))))
    page("/deliveries", "Deliveries", lambda: _deliveries(store))
    page("/reviews", "Reviews", lambda: _documents(store.documents(kind="review")))
    page("/fixes", "Fixes", lambda: _documents(store.documents(kind="fix")))
    page("/bisections", "Bisections", lambda: _documents(store.documents(kind="bisect")))
    page("/ledger", "Cost", lambda: _ledger(store))
    page("/audit", "Audit", lambda: _audit(store))

    @pages.get("/jobs/<path:job_id>")
    def job(job_id: str) -> Response:
        found = store.job(job_id)
        if found is None:
            abort(404)
        return _page(f"Job {job_id}", _job(found, store))

    return pages


def _may_look(secret: str | None) -> bool:
    if secret is None:
        # a proxy in front would make everybody local; it says so with this header
        return request.remote_addr in _LOOPBACK and "X-Forwarded-For" not in request.headers
    given = request.authorization
    if given is None:
        return False
    said = given.token if given.type == "bearer" else given.password
    return hmac.compare_digest((said or "").encode(), secret.encode())


def _ask() -> Response:
    answer = Response("This page needs the token in REGREEN_DASHBOARD_AUTH.\n", status=401)
    answer.mimetype = "text/plain"
    answer.headers["WWW-Authenticate"] = 'Basic realm="regreen", charset="UTF-8"'
    return answer


def _page(title: str, body: Safe) -> Response:
    menu = tag("nav", *(link(path, name) for path, name in _PAGES))
    head = tag(
        "head",
        Safe('<meta charset="utf-8"><meta name="viewport" content="width=device-width">'),
        tag("title", f"{title} · Regreen"),
        Safe(f"<style>{STYLE}</style>"),
    )
    whole = tag("html", head, tag("body", menu, tag("main", tag("h1", title), body)), lang="en")
    answer = Response("<!doctype html>\n" + whole, mimetype="text/html")
    answer.headers["Content-Security-Policy"] = _POLICY
    answer.headers["X-Content-Type-Options"] = "nosniff"
    answer.headers["Referrer-Policy"] = "no-referrer"
    answer.headers["Cache-Control"] = "no-store"
    return answer


def _warning(store: Store) -> Safe:
    """What the operator has to know first: without a sandbox nothing is repaired or bisected."""
    missing = store.get(*SANDBOX_NOTE)
    if not missing:
        return Safe("")
    return tag(
        "p", f"No repairs and no bisections, reviews run no tests: {missing}", class_="failed"
    )


def _jobs(jobs: Iterable[JobRecord]) -> Safe:
    rows = (
        (
            _time(j.created),
            link(f"/jobs/{j.id}", j.kind),
            _place(j.repo, j.number),
            tag("span", j.state, class_=f"state {j.state}"),
            j.progress if j.state == "running" else j.note,
            _dollars(j.usd),
        )
        for j in jobs
    )
    return table(("when", "job", "where", "state", "what", "cost"), rows)


def _job(job: JobRecord, store: Store) -> Safe:
    took = (job.ended - job.started).total_seconds() if job.ended and job.started else None
    facts = (
        ("state", tag("span", job.state, class_=f"state {job.state}")),
        ("what came out", job.note),
        ("doing", job.progress),
        ("where", _place(job.repo, job.number)),
        ("ordered", _time(job.created)),
        ("attempts", job.attempts),
        ("worker", job.worker),
        ("took", f"{took:.1f} s" if took is not None else ""),
        ("cost", _dollars(job.usd)),
    )
    shown = [_document(d) for d in store.documents(repo=job.repo) if d.job == job.id]
    ordered = tag("details", tag("summary", "The order"), tag("pre", _pretty(job.event)))
    return text(table(("", ""), facts), *shown, ordered)


def _deliveries(store: Store) -> Safe:
    rows = ((_time(d.received), d.name, d.repo, d.id) for d in store.deliveries())
    return table(("when", "event", "repository", "delivery"), rows)


def _documents(documents: Iterable[Document]) -> Safe:
    rows = (
        (
            _time(d.at),
            link(f"/jobs/{d.job}", _place(d.repo, d.number)),
            _headline(d),
            f"{float(d.body.get('seconds') or 0):.1f} s",
        )
        for d in documents
    )
    return table(("when", "where", "what", "took"), rows)


def _headline(document: Document) -> str:
    body = document.body
    match document.kind:
        case "review":
            return f"{len(body.get('findings', ()))} findings: {body.get('summary', '')}"[:200]
        case "fix":
            return f"{body.get('outcome')} {body.get('rung') or ''} {body.get('reason', '')}"[:200]
        case "bisect":
            culprit = body.get("culprit") or {}
            who = f"{str(culprit.get('sha', ''))[:12]} {culprit.get('subject', '')}"
            return f"{body.get('outcome')} {float(body.get('probability') or 0):.3f} {who}"[:200]


def _document(document: Document) -> Safe:
    shown = {k: v for k, v in document.body.items() if k != "svg"}
    parts = [tag("h2", document.kind), tag("p", _headline(document))]
    if document.kind == "bisect":
        parts.append(_plot(document))
    if document.kind == "fix":
        parts.append(_attempts(document))
    whole = tag("pre", _pretty(json.dumps(shown)))
    return text(*parts, tag("details", tag("summary", "Everything"), whole))


def _plot(document: Document) -> Safe:
    svg = str(document.body.get("svg") or "")
    if not svg:
        return Safe("")
    encoded = b64encode(svg.encode()).decode()
    # as an image, so that nothing inside it could ever run
    return Safe(f'<img alt="the posterior" src="data:image/svg+xml;base64,{encoded}">')


def _attempts(document: Document) -> Safe:
    rows = (
        (a.get("rung"), a.get("summary"), a.get("outcome"), f"{float(a.get('seconds') or 0):.0f} s")
        for a in document.body.get("attempts", ())
    )
    patch = document.body.get("patch")
    shown = tag("pre", redact(str(patch))) if patch else Safe("")
    return text(table(("rung", "tried", "outcome", "took"), rows), shown)


def _ledger(store: Store) -> Safe:
    rows = (
        (
            _time(line.at),
            _place(line.repo, line.number),
            line.purpose,
            line.model,
            line.cost.input_tokens,
            line.cost.output_tokens,
            line.cost.cached_tokens,
            _dollars(line.cost.usd),
        )
        for line in store.ledger()
    )
    return table(("when", "where", "for", "model", "in", "out", "cached", "cost"), rows)


def _audit(store: Store) -> Safe:
    rows = (
        (_time(a.at), a.asked_by or "-", a.action, _place(a.repo, a.number), a.detail)
        for a in store.actions()
    )
    return table(("when", "who", "what", "where", "detail"), rows)


def _place(repo: str, number: int | None) -> str:
    return repo if number is None else f"{repo}#{number}"


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S")


def _dollars(usd: float) -> str:
    return f"${usd:.3f}" if usd else ""


def _pretty(document: str) -> str:
    return redact(json.dumps(json.loads(document), indent=2, ensure_ascii=False))
