"""The posterior over history as an SVG: bars of probability over the commits, a mark for each run below."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from regreen.bisect.result import Bisection, Point

_WIDTH, _HEIGHT = 860, 300
_LEFT, _RIGHT, _TOP, _FLOOR = 52, 18, 56, 220
_BARS = 400
_COLOURS = {"fail": "#c62828", "pass": "#2e7d32", "untestable": "#9e9e9e", "infra": "#9e9e9e"}


def svg(found: Bisection, title: str) -> str:
    """The picture; `title` stands above it."""
    bars = _binned(found.posterior)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        'font-family="system-ui, sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="24" font-size="15" font-weight="600">{escape(_cut(title, 105))}</text>',
        f'<text x="{_LEFT}" y="43" fill="#616161">{escape(_subtitle(found))}</text>',
    ]
    parts += _axis(found)
    parts += _columns(bars)
    parts += _marks(found)
    parts += _legend()
    return "\n".join([*parts, "</svg>"]) + "\n"


def _subtitle(found: Bisection) -> str:
    merges = f", {found.range.merges} merges" if found.range.merges else ""
    return f"{found.tests} tests over {found.range.commits} commits{merges}, {found.seconds:.0f} s"


def _binned(posterior: Sequence[Point]) -> list[tuple[float, float, float, str]]:
    """Bars as (left, width, probability, what): neighbours share one where there are too many."""
    if not posterior:
        return []
    size = -(-len(posterior) // _BARS)
    width = (_WIDTH - _LEFT - _RIGHT) / len(posterior)
    bars: list[tuple[float, float, float, str]] = []
    for start in range(0, len(posterior), size):
        chunk = posterior[start : start + size]
        best = max(chunk, key=lambda point: point.p)
        bars.append(
            (_LEFT + start * width, len(chunk) * width, sum(p.p for p in chunk), best.sha[:12])
        )
    return bars


def _axis(found: Bisection) -> list[str]:
    good = found.range.good[:9] if found.range.good else "oldest"
    right = _WIDTH - _RIGHT
    lines = [
        f'<line x1="{_LEFT}" y1="{y}" x2="{right}" y2="{y}" stroke="#e0e0e0"/>'
        f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end" fill="#616161">{share:.0%}</text>'
        for share, y in ((1.0, _TOP + 8), (0.5, (_TOP + 8 + _FLOOR) / 2), (0.0, _FLOOR))
    ]
    lines.append(
        f'<text x="{_LEFT}" y="{_FLOOR + 50}" fill="#616161">{escape(good)} (good, older)</text>'
    )
    bad = found.range.bad[:9]
    lines.append(
        f'<text x="{right}" y="{_FLOOR + 50}" text-anchor="end" fill="#616161">{escape(bad)} (bad, newer)</text>'
    )
    return lines


def _columns(bars: Sequence[tuple[float, float, float, str]]) -> list[str]:
    room = _FLOOR - _TOP - 8
    columns: list[str] = []
    for left, width, probability, name in bars:
        height = room * min(1.0, probability)
        if height < 0.2:
            continue
        drawn = max(width, 3.0)
        columns.append(
            f'<rect x="{left + width / 2 - drawn / 2:.1f}" y="{_FLOOR - height:.1f}" width="{drawn:.1f}" '
            f'height="{height:.1f}" fill="#1565c0"><title>{name}: {probability:.1%}</title></rect>'
        )
    if bars:
        left, width, probability, name = max(bars, key=lambda bar: bar[2])
        end = left > _WIDTH / 2
        anchor, at = ("end", left - 6) if end else ("start", left + width + 6)
        height = room * min(1.0, probability)
        columns.append(
            f'<text x="{at:.1f}" y="{max(_FLOOR - height + 12, _TOP + 20):.1f}" text-anchor="{anchor}" '
            f'font-weight="600">{name} {probability:.0%}</text>'
        )
    return columns


def _marks(found: Bisection) -> list[str]:
    """One dot a run, under its commit; runs at the same commit go down in a column."""
    places = {point.sha: at for at, point in enumerate(found.posterior)}
    if not places:
        return []
    width = (_WIDTH - _LEFT - _RIGHT) / len(places)
    stacked: dict[str, int] = {}
    marks: list[str] = []
    for seen in found.observations:
        level = stacked.get(seen.sha, 0)
        stacked[seen.sha] = level + 1
        if level > 3:
            continue
        at = places.get(seen.sha)
        x = _LEFT - 4 if at is None else _LEFT + (at + 0.5) * width
        marks.append(
            f'<circle cx="{x:.1f}" cy="{_FLOOR + 9 + 7 * level}" r="3" fill="{_COLOURS[seen.outcome]}">'
            f"<title>{seen.sha[:12]} {seen.outcome}: {escape(_cut(seen.reason, 120))}</title></circle>"
        )
    return marks


def _legend() -> list[str]:
    entries = (
        ("fail", "failed as at the bad end"),
        ("pass", "passed"),
        ("untestable", "could not be tested"),
    )
    parts = [
        f'<text x="{_LEFT}" y="{_HEIGHT - 8}" fill="#616161">bars: probability of each commit</text>'
    ]
    x = _LEFT + 230
    for outcome, words in entries:
        parts.append(
            f'<circle cx="{x}" cy="{_HEIGHT - 12}" r="4" fill="{_COLOURS[outcome]}"/>'
            f'<text x="{x + 9}" y="{_HEIGHT - 8}" fill="#616161">{words}</text>'
        )
        x += 30 + 7 * len(words)
    return parts


def _cut(words: str, length: int) -> str:
    return words if len(words) <= length else words[: length - 1] + "…"
