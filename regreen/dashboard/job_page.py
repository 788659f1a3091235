"""One job: what it is about, what it does now, what came out of it, what it cost."""

from __future__ import annotations

from urllib.parse import quote

from flask import Response

from regreen.dashboard.rendering import format_json, format_subject, render_page
from regreen.dashboard.results import view_result
from regreen.dashboard.viewer import Viewer
from regreen.domain.list_queries import DashboardStore, ListQuery
from regreen.domain.records import ENDED_STATES, JobKind, JobRecord, ResultDocument

_KIND_TITLES: dict[JobKind, str] = {
    "review": "Review of",
    "fix": "Repair of",
    "bisect": "Bisection of",
    "comment": "Answer in",
    "tick": "Schedule of",
    "care": "Upkeep",
}


def show_job(shelf: DashboardStore, reader: Viewer, job_id: str, web_url: str) -> Response | None:
    """A job's page or, where it is forgotten, that of its results; None where there is neither."""
    job = shelf.job(job_id)
    documents = [d for d in shelf.results_of(job_id) if reader.may_see(d.repo)]
    results = [view_result(document) for document in documents]
    if job is None:
        if not documents:
            return None
        title = format_subject(documents[0].repo, documents[0].number)
        return render_page("job.html", title, reader, results=results)
    if not reader.may_see(job.repo):
        return None
    took = (job.ended - job.started).total_seconds() if job.ended and job.started else None
    return render_page(
        "job.html",
        f"{_KIND_TITLES[job.kind]} {format_subject(job.repo, job.number)}",
        reader,
        job=job,
        order=format_json(job.event),
        is_live=job.state not in ENDED_STATES,
        took=took,
        steps=shelf.list_job_progress(job_id),
        links=_list_github_links(job, documents, web_url),
        results=results,
        calls=shelf.list_ledger(ListQuery(job=job_id)).rows,
        actions=shelf.list_actions(ListQuery(job=job_id)).rows,
    )


def _list_github_links(
    job: JobRecord, documents: list[ResultDocument], web_url: str
) -> list[tuple[str, str]]:
    """Address and words of the ways to GitHub: the pull request or issue, the commit that was found."""
    if not web_url or not job.repo:
        return []
    base = f"{web_url}/{quote(job.repo)}"
    links = [(base, job.repo)]
    if job.number is not None:
        # GitHub sends an issue's address on to the pull request where it is one
        links.append((f"{base}/issues/{job.number}", f"#{job.number}"))
    for document in documents:
        culprit = document.body.get("culprit") or {}
        sha = str(culprit.get("sha") or document.body.get("head") or "")
        if sha.isalnum():
            links.append((f"{base}/commit/{sha}", sha[:12]))
    return links
