"""How a search narrowed, run by run: what was believed after each, as a picture and as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from regreen.bot.dashboard.html import Safe, fold, table, tag, text, wide

_MOST_RUNS = 60
_WIDE, _ROW, _LEFT = 720, 16, 30


def narrowing(body: Mapping[str, Any]) -> Safe:
    """The belief after each run, of the first so many; nothing where the document does not hold it."""
    steps = [one for one in body.get("narrowing") or () if isinstance(one, dict)]
    if not steps:
        return Safe("")
    rows = (
        (
            at,
            tag("code", str(one.get("sha"))[:12]),
            str(one.get("outcome")),
            tag("code", str(one.get("best"))[:12]) if one.get("best") else "none of them",
            f"{_number(one.get('probability')):.1%}",
            str(one.get("left")),
        )
        for at, one in enumerate(steps, 1)
    )
    head = ("run", "at", "outcome", "likeliest then", "probability", "commits left, about")
    columns = [[_number(mass) for mass in one.get("columns") or ()] for one in steps[:_MOST_RUNS]]
    commits = len(body.get("posterior") or ())
    return text(
        tag("h3", "How it narrowed"),
        _picture(columns, commits) if all(columns) else "",
        fold("The same as a table", table(head, rows, caption="The belief after each run")),
    )


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


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
    drawn = tag("svg", *parts, viewBox=f"0 0 {width} {height}", width=str(min(width, 1100)), role="img", aria_label=label, class_="plot")  # fmt: skip
    return wide(drawn, "How it narrowed")
