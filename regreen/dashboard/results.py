"""One result with everything behind it: a review's findings, a repair's attempts, a bisection's runs."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from regreen.code.markdown_sanitizer import count_noun
from regreen.domain.records import ResultDocument

_HIDDEN_KEYS = {"svg"}
_MAX_HEATMAP_RUNS = 60
_MAX_LIKELY_COMMITS = 10
_WIDTH, _ROW_HEIGHT, _LEFT = 720, 16, 30


@dataclass(frozen=True, slots=True)
class ResultSummary:
    """A result: a word for its badge, one line, and the pull request or issue that it opened."""

    document: ResultDocument
    verdict: str
    headline: str

    @property
    def title(self) -> str:
        """What people call the subject: a pull request's title, or the branch or command."""
        body = self.document.body
        return str(body.get("title") or body.get("command") or "")[:200]

    @property
    def author(self) -> str:
        """The pull request's author."""
        return str(self.document.body.get("author") or "")

    @property
    def opened(self) -> int | None:
        """The number of the pull request or issue that this work opened."""
        number = self.document.body.get("opened")
        return number if isinstance(number, int) else None


@dataclass(frozen=True, slots=True)
class _Heatmap:
    """How a bisection narrowed: a row a run, a column a commit or a few, the darker the likelier.

    `cells` holds x, y and opacity of what is not next to nothing.
    """

    rows: int
    commits: int
    width: int
    height: int
    cell_width: float
    cells: list[tuple[float, int, float]]


@dataclass(frozen=True, slots=True)
class ResultView:
    """What the page of a result shows besides its document."""

    summary: ResultSummary
    whole: str
    likeliest: Sequence[Mapping[str, Any]]
    heatmap: _Heatmap | None
    picture: str


CAUSE_WORDS = {"change": "the change", "main": "the base branch", "world": "a package", "neighbour": "another change", "infrastructure": "the CI machine", "flaky": "a flaky test", "unknown": "not found"}  # fmt: skip
"""Who or what caused a failed check, by the verdict of its cause."""


def summarize_result(document: ResultDocument) -> ResultSummary:
    """One word and one line on what came out."""
    body = document.body
    verdict = str(body.get("outcome") or "done").replace("_", " ")
    match document.kind:
        case "review":
            verdict = _name_review_verdict(body)
            return ResultSummary(document, verdict, _describe_review(body)[:300])
        case "fix":
            return ResultSummary(document, verdict, _describe_fix(body)[:300])
        case "bisect":
            return ResultSummary(document, verdict, _describe_bisection(body)[:300])
        case "why" | "prove":
            verdict = str(body.get("verdict") or "unknown").replace("_", " ")
            verdict = CAUSE_WORDS.get(verdict, verdict)
            return ResultSummary(document, verdict, str(body.get("reason") or "")[:300])


def view_result(document: ResultDocument) -> ResultView:
    """Everything that the page of a result shows."""
    body = document.body
    shown = {key: value for key, value in body.items() if key not in _HIDDEN_KEYS}
    points = [p for p in body.get("posterior") or () if isinstance(p, dict)]
    return ResultView(
        summarize_result(document),
        whole=json.dumps(shown, indent=2, ensure_ascii=False),
        likeliest=[
            point
            for place, point in enumerate(sorted(points, key=lambda p: -float(p.get("p") or 0)))
            if place < 3 or (place < _MAX_LIKELY_COMMITS and float(point.get("p") or 0) >= 0.005)
        ],
        heatmap=_lay_out_heatmap(body),
        picture=b64encode(str(body.get("svg") or "").encode()).decode(),
    )


def _name_review_verdict(body: Mapping[str, Any]) -> str:
    tests = _as_mapping(body.get("tests"))
    if tests and tests.get("exit_code") != 0:
        return "tests fail"
    if body.get("findings"):
        return count_noun(len(body["findings"]), "finding")
    left = [*(body.get("skipped") or ()), *(body.get("not_reviewed") or ())]
    gaps = [e for e in left if isinstance(e, dict) and e.get("by_policy") is False]
    return "not reviewed" if gaps else "no findings"


def _describe_review(body: Mapping[str, Any]) -> str:
    withheld = len(body.get("withheld", ()))
    held = f" {withheld} withheld." if withheld else ""
    return str(body.get("summary", "")).partition("\n\n")[0] + held


def _describe_fix(body: Mapping[str, Any]) -> str:
    parts = (body.get("cause"), body.get("reason"))
    return " ".join(str(part) for part in parts if part)


def _describe_bisection(body: Mapping[str, Any]) -> str:
    culprit, share = _as_mapping(body.get("culprit")), body.get("probability")
    if not culprit:
        return str(body.get("command") or "")
    sure = f" ({share:.1%})" if isinstance(share, float) else ""
    return f"{str(culprit.get('sha', ''))[:12]} {culprit.get('subject', '')} by {culprit.get('author', '')}{sure}"


def _lay_out_heatmap(body: Mapping[str, Any]) -> _Heatmap | None:
    steps = [step for step in body.get("narrowing") or () if isinstance(step, dict)]
    runs = [[_as_number(mass) for mass in step.get("columns") or ()] for step in steps]
    runs = runs[:_MAX_HEATMAP_RUNS]
    if not runs or not all(runs):
        return None
    columns = len(runs[0])
    cell_width = min(48.0, _WIDTH / columns)
    return _Heatmap(
        rows=len(runs),
        commits=len(body.get("posterior") or ()),
        width=max(160, _LEFT + int(columns * cell_width) + 4),
        height=(len(runs) + 1) * _ROW_HEIGHT + 10,
        cell_width=cell_width,
        cells=[
            (_LEFT + column * cell_width, row * _ROW_HEIGHT, max(0.06, mass**0.5))
            for row, masses in enumerate(runs)
            for column, mass in enumerate(masses)
            if mass >= 0.002
        ],
    )


def _as_number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _as_mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
