"""One job: what it is about, what it does now, what came out of it, what it cost."""

from __future__ import annotations

import json
from urllib.parse import quote

from regreen.bot.dashboard.frame import act
from regreen.bot.dashboard.html import (
    Content,
    Safe,
    code,
    dollars,
    facts,
    fold,
    place,
    seconds,
    state,
    table,
    tag,
    text,
    when,
)
from regreen.bot.dashboard.reader import Reader
from regreen.bot.dashboard.results import result
from regreen.codebase.redaction import redact
from regreen.listing import Shelf, Sought
from regreen.records import ENDED, Document, JobKind, JobRecord

_TITLES: dict[JobKind, str] = {
    "review": "Review of",
    "fix": "Repair of",
    "bisect": "Bisection of",
    "comment": "Answer in",
    "tick": "Schedule of",
    "care": "Upkeep",
}
_KEPT = "The job itself is forgotten by now; what it found out is kept."


def job_page(shelf: Shelf, reader: Reader, job_id: str, web_url: str) -> tuple[str, Safe] | None:
    """A job's title and page or, where it is forgotten, those of its results; None where there is neither."""
    job = shelf.job(job_id)
    results = [d for d in shelf.results_of(job_id) if reader.may_see(d.repo)]
    if job is None:
        if not results:
            return None
        told = text(tag("p", _KEPT), *(result(d) for d in results))
        return place(results[0].repo, results[0].number), told
    if not reader.may_see(job.repo):
        return None
    calls = shelf.list_ledger(Sought(job=job_id)).rows
    done = shelf.list_actions(Sought(job=job_id)).rows
    parts = [_now(shelf, job), _buttons(reader, job), _links(job, results, web_url)]
    parts += [result(d) for d in results]
    if calls:
        rows = (
            (when(c.at), c.purpose, c.model, f"{c.cost.input_tokens:,}", f"{c.cost.output_tokens:,}", dollars(c.cost.usd))
            for c in calls
        )  # fmt: skip
        head = ("when", "for", "model", "tokens in", "tokens out", "cost")
        parts += [tag("h2", "Model calls"), table(head, rows, caption="Model calls of this job")]
    if done:
        acts = ((when(a.at), a.asked_by or "-", a.action, a.detail) for a in done)
        parts += [tag("h2", "Audit"), table(("when", "who", "what", "detail"), acts, caption="Audit of this job")]  # fmt: skip
    order = fold("The order", code(pretty(job.event), "The order"))
    return f"{_TITLES[job.kind]} {place(job.repo, job.number)}", text(*parts, order)


def _now(shelf: Shelf, job: JobRecord) -> Safe:
    """How it stands; the page's script keeps this part up to date while the job has not ended."""
    took = (job.ended - job.started).total_seconds() if job.ended and job.started else None
    named = facts(
        (
            ("state", state(job.state)),
            ("what came out", job.note),
            ("doing", tag("span", job.progress, role="status") if job.state == "running" else ""),
            ("where", place(job.repo, job.number)),
            ("job", tag("code", job.id)),
            ("ordered", when(job.created)),
            ("started", when(job.started) if job.started else ""),
            ("attempts", job.attempts),
            ("worker", job.worker),
            ("took", seconds(took)),
            ("cost", dollars(job.usd)),
        )
    )
    steps = [(when(at), line) for at, line in shelf.trail(job.id)]
    is_live = job.state not in ENDED
    told = table(("when", "what"), steps, caption="Steps")
    trail: Content = ""
    if steps:  # while it runs they are the news, later they are in the way
        trail = (
            text(tag("h2", "Step by step"), told)
            if is_live
            else fold(f"Step by step ({len(steps)})", told)
        )
    hint = tag("noscript", tag("p", "Load the page again to see how it goes on.")) if is_live else ""  # fmt: skip
    return tag("section", named, trail, hint, data_live="yes" if is_live else None, aria_label="How it stands")  # fmt: skip


def _buttons(reader: Reader, job: JobRecord) -> Safe:
    if not reader.may_act(job.repo):
        return Safe("")
    address = "/jobs/" + quote(job.id)
    if job.state in ENDED:
        return act(reader, f"{address}/again", "Run again") if job.kind != "care" else Safe("")
    return act(reader, f"{address}/cancel", "Cancel this job")


def _links(job: JobRecord, results: list[Document], web_url: str) -> Safe:
    """The ways to GitHub: the pull request or issue, the commit that was found."""
    if not web_url or not job.repo:
        return Safe("")
    base = f"{web_url}/{quote(job.repo)}"
    found = [(base, job.repo)]
    if job.number is not None:
        # GitHub sends an issue's address on to the pull request where it is one
        found.append((f"{base}/issues/{job.number}", f"#{job.number}"))
    for one in results:
        culprit = one.body.get("culprit") or {}
        sha = str(culprit.get("sha") or one.body.get("head") or "")
        if sha.isalnum():
            found.append((f"{base}/commit/{sha}", sha[:12]))
    links = [text(tag("a", name, href=to, rel="noreferrer"), " ") for to, name in found]
    return tag("p", "On GitHub: ", *links)


def pretty(document: str) -> str:
    """A JSON document to be read, credentials taken out."""
    return redact(json.dumps(json.loads(document), indent=2, ensure_ascii=False))
