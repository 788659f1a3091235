"""How a search narrowed, run by run: the posterior after each, as a picture and as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from regreen.bot.dashboard.html import Safe, fold, table, tag, text

_MOST_COMMITS = 600
_MOST_RUNS = 60
_COLUMNS = 120
_WIDE, _ROW, _LEFT = 720, 16, 30


def narrowing(body: Mapping[str, Any]) -> Safe:
    """The belief after each run, replayed from the observations; nothing where history has merges.

    A straight range is all that the document's order of commits describes; for a graph only the end is kept.
    """
    points = [str(p.get("sha")) for p in body.get("posterior") or ()]
    runs = [o for o in body.get("observations") or () if o.get("outcome") in {"fail", "pass"}]
    merges = (body.get("range") or {}).get("merges")
    if merges or not 2 <= len(points) <= _MOST_COMMITS or not runs or body.get("find_fix"):
        return Safe("")
    steps = _replayed(points, runs[:_MOST_RUNS])
    rows = (
        (at, sha[:12], outcome, best[:12], f"{sure:.1%}", left)
        for at, (sha, outcome, best, sure, left, _) in enumerate(steps, 1)
    )
    head = ("run", "at", "outcome", "likeliest then", "probability", "commits that hold 95%")
    return text(
        tag("h3", "How it narrowed"),
        _picture([masses for *_, masses in steps], len(points)),
        fold("The same as a table", table(head, rows, caption="The belief after each run")),
    )


def _replayed(
    points: list[str], runs: list[Mapping[str, Any]]
) -> list[tuple[str, str, str, float, int, list[float]]]:
    from regreen.bisect.graph import BEFORE, line
    from regreen.bisect.search import Search

    search, places = Search(line(len(points))), {sha: at for at, sha in enumerate(points)}
    steps = []
    for run in runs:
        sha, failed = str(run.get("sha")), run.get("outcome") == "fail"
        search.observe(places.get(sha, BEFORE), failed=failed)
        belief = search.posterior()
        best = max(range(len(points)), key=belief.__getitem__)
        total, left = 0.0, 0
        for share in sorted(belief, reverse=True):
            total, left = total + share, left + 1
            if total >= 0.95 * sum(belief):
                break
        word = "fail" if failed else "pass"
        steps.append((sha, word, points[best], belief[best], left, _columns(belief)))
    return steps


def _columns(belief: list[float]) -> list[float]:
    size = -(-len(belief) // _COLUMNS)
    return [sum(belief[at : at + size]) for at in range(0, len(belief), size)]


def _picture(steps: list[list[float]], commits: int) -> Safe:
    """A row a run, a column a commit (or a few), the darker the likelier."""
    cell = min(48.0, _WIDE / len(steps[0]))
    width, height = max(160, _LEFT + int(len(steps[0]) * cell) + 4), (len(steps) + 1) * _ROW + 10
    parts = []
    for row, masses in enumerate(steps):
        y = row * _ROW
        parts.append(tag("text", row + 1, x="0", y=str(y + _ROW - 2)))
        for column, mass in enumerate(masses):
            if mass >= 0.002:
                parts.append(
                    tag("rect", x=f"{_LEFT + column * cell:.1f}", y=str(y), width=f"{cell:.1f}", height=str(_ROW - 2),
                        class_="dot", fill_opacity=f"{max(0.06, mass ** 0.5):.2f}")
                )  # fmt: skip
    parts.append(tag("text", "older", x=str(_LEFT), y=str(height - 6)))
    parts.append(tag("text", "newer", x=str(width - 2), y=str(height - 6), text_anchor="end"))
    label = f"A row for each of {len(steps)} runs, the oldest above; {commits} commits from left to right, darker where the culprit is likelier"
    return tag("svg", *parts, viewBox=f"0 0 {width} {height}", width=str(min(width, 1100)), role="img", aria_label=label, class_="plot")  # fmt: skip
