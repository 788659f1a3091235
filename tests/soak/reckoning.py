"""What must hold after any number of kills: nothing lost, nothing said twice, nothing finished done again."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from regreen_playground.model import ScriptedModel
from regreen_playground.things import App, Comment, Pull, Repository

from regreen.adapters.store.connection import engine_for

_HUNTS = "SELECT key, line FROM observations WHERE key LIKE 'session:%'"
POISON = "stopped after 5 attempts that did not end"


def live_jobs(url: str, besides: str = "") -> int:
    """How many jobs have not ended, those of one kind left out."""
    query = "SELECT kind FROM jobs WHERE state IN ('waiting', 'running')"
    return sum(kind != besides for (kind,) in _rows(url, query))


def drain(url: str, seconds: float) -> None:
    """Wait until every job has ended."""
    deadline = time.monotonic() + seconds
    while (left := live_jobs(url)) and time.monotonic() < deadline:
        time.sleep(1)
    query = (
        "SELECT id, state, attempts, note, progress FROM jobs WHERE state IN ('waiting', 'running')"
    )
    assert left == 0, _rows(url, query)


def jobs_by_kind(url: str) -> dict[str, int]:
    """How many jobs of each kind and state there are."""
    rows = _rows(url, "SELECT kind, state, count(*) FROM jobs GROUP BY kind, state")
    return {f"{kind} {state}": int(count) for kind, state, count in rows}


def most_attempts(url: str) -> int:
    """How often one job was begun without getting further."""
    return int(_rows(url, "SELECT max(attempts) FROM jobs")[0][0])


def nothing_is_lost(url: str, app: App) -> None:
    """Every delivery that was acknowledged is there; a job that failed says why."""
    acknowledged = {d.guid for d in app.deliveries if d.status_code == 202}
    kept = {str(row[0]) for row in _rows(url, "SELECT id FROM deliveries")}
    assert acknowledged <= kept
    notes = "SELECT id, note FROM jobs WHERE state = 'failed' OR note LIKE '%inside Regreen%'"
    wrong = [row for row in _rows(url, notes) if not row[1].startswith((POISON, "gave up after"))]
    assert wrong == [], wrong


def nothing_is_doubled(repository: Repository) -> None:
    """No comment, review, check run, branch, pull request or issue of ours stands twice."""
    ours = [i for i in repository.issues.values() if i.user.type == "Bot"]
    issues = [_marker(i.body or "") for i in ours if i.pull is None]
    heads = [p.head_ref for p in repository.pulls.values() if p.issue in ours and not p.merged]
    _once(issues, f"issues of {repository.full_name}")
    open_heads = [p.head_ref for p in repository.pulls.values() if p.issue in ours]
    _once(open_heads, f"pull requests of {repository.full_name}")
    branches = [r for r in repository.git.refs("refs/heads/") if "/regreen/" in r]
    assert {b.removeprefix("refs/heads/") for b in branches} <= set(heads) | set(open_heads)
    for issue in repository.issues.values():
        _once(_markers(issue.comments), f"comments on {repository.full_name}#{issue.number}")
        for comment in issue.comments:
            reactions = [r.content for r in comment.reactions if r.user.type == "Bot"]
            _once(reactions, f"reactions on {comment.id}")
    for pull in repository.pulls.values():
        _pull_is_right(repository, pull)


def _pull_is_right(repository: Repository, pull: Pull) -> None:
    place = f"{repository.full_name}#{pull.number}"
    _once([_marker(r.body) for r in pull.reviews if r.body and r.app], f"reviews of {place}")
    runs = [r for s in repository.suites if s.head_sha == pull.head_sha for r in s.runs]
    mine = [r for r in runs if r.suite.app.slug == "regreen"]
    _once([str(r.external_id) for r in mine], f"checks of {place}")
    assert all(r.status == "completed" for r in mine), f"checks of {place} that never ended"


def nothing_finished_runs_again(url: str, model: ScriptedModel, answers: dict[str, str]) -> None:
    """No bisection begins anew, no run of one is made twice, no answer that was kept is asked for again.

    Args:
        url: the database.
        model: what was asked.
        answers: the text that was given to each request, by the request; of one asked twice, the first.
    """
    begun: Counter[str] = Counter()
    for key, line in _rows(url, _HUNTS):
        if json.loads(line).get("begins"):
            begun[str(key)] += 1
    assert [key for key, times in begun.items() if times > 1] == []
    kept = {json.loads(str(row[0]))["text"] for row in _rows(url, "SELECT answer FROM answers")}
    asked = Counter(json.dumps(a, sort_keys=True) for a in model.asked)
    twice = [answers[request] for request, times in asked.items() if times > 1]
    assert [text for text in twice if text in kept] == []


def _markers(comments: Iterable[Comment]) -> list[str]:
    return [_marker(c.body) for c in comments if c.user.type == "Bot"]


def _marker(body: str) -> str:
    at = body.rfind("<!-- regreen:")
    assert at >= 0, f"ours, and without a marker: {body[:200]}"
    return body[at:]


def _once(found: list[str], what: str) -> None:
    twice = {one: times for one, times in Counter(found).items() if times > 1}
    assert twice == {}, f"{what}: {twice}"


def _rows(url: str, query: str) -> list[tuple[Any, ...]]:
    engine = engine_for(url)
    try:
        with engine.connect() as connection:
            return [tuple(row) for row in connection.execute(sa.text(query))]
    finally:
        engine.dispose()
