"""What a bisection found as an SVG: the whole range as a strip from good to bad, and the commits that matter one by one."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import accumulate

from regreen.bisect.result import Bisection, Observation, Point

_WIDTH, _HEIGHT = 860, 440
_LEFT, _RIGHT = 56, 18
_TOP, _FLOOR = 66, 146  # the whole range
_NEAR_TOP, _NEAR_FLOOR = 258, 338  # the commits that matter
_BARS, _NEAR = 400, 25
_AROUND = 4
_STACK = 4
_TITLE, _SUBJECT = 88, 110
_COLOURS = {"fail": "#c62828", "pass": "#2e7d32", "untestable": "#9e9e9e", "infra": "#9e9e9e"}
_GREY, _BLUE = "#616161", "#1565c0"
_SCALES = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)


def svg(found: Bisection, title: str) -> str:
    """The picture; `title` stands above it."""
    head, _, subject = title.partition(": ")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        'font-family="system-ui, sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="24" font-size="16" font-weight="600">{escape(_cut(head, _TITLE))}</text>',
        f'<text x="{_LEFT}" y="44" fill="{_GREY}">{escape(_cut(subject or _subtitle(found), _SUBJECT))}</text>',
    ]
    if found.posterior:
        parts += [*_whole(found), *_near(found)]
    parts += _legend(_subtitle(found) if subject else "")
    return "\n".join([*parts, "</svg>"]) + "\n"


def _subtitle(found: Bisection) -> str:
    merges = f", {found.range.merges} merges" if found.range.merges else ""
    return f"{found.tests} tests over {found.range.commits} commits{merges}, {found.seconds:.0f} s"


# --- the whole range -------------------------------------------------------------------------------


def _whole(found: Bisection) -> list[str]:
    """Probability over the range, under it the strip, under that a dot for each run."""
    count = len(found.posterior)
    width = (_WIDTH - _LEFT - _RIGHT) / count
    size = -(-count // _BARS)
    chunks = [found.posterior[at : at + size] for at in range(0, count, size)]
    masses = [sum(point.p for point in chunk) for chunk in chunks]
    scale = _scale(max(masses))
    parts = _axis(_TOP, _FLOOR, scale)
    for at, (chunk, mass) in enumerate(zip(chunks, masses, strict=True)):
        drawn = max(len(chunk) * width, 3.0)
        middle = _LEFT + (at * size + len(chunk) / 2) * width
        best = max(chunk, key=lambda point: point.p)
        name = f"{best.sha[:12]} {_percent(best.p)}"
        if len(chunk) > 1:
            name = f"{len(chunk)} commits {_percent(mass)}, {name}"
        parts += _bar(middle, drawn, mass / scale, name, (_TOP, _FLOOR))
    parts += _strip(found.posterior, chunks, width)
    parts += _dots(found.observations, {p.sha: at for at, p in enumerate(found.posterior)}, width)
    good = found.range.good[:12] if found.range.good else "the beginning"
    right = _WIDTH - _RIGHT
    return [
        *parts,
        f'<text x="{_LEFT}" y="{_FLOOR + 66}" fill="{_GREY}">{escape(good)}, older</text>',
        f'<text x="{right}" y="{_FLOOR + 66}" text-anchor="end" fill="{_GREY}">'
        f"{escape(found.range.bad[:12])}, newer</text>",
    ]


def _strip(
    posterior: Sequence[Point], chunks: Sequence[Sequence[Point]], width: float
) -> list[str]:
    """Green where it works, red where it is broken, by the chance that it broke at or before a commit."""
    broken = list(accumulate(point.p for point in posterior))
    parts: list[str] = []
    at = 0
    for chunk in chunks:
        share = min(1.0, broken[at + len(chunk) - 1])
        parts.append(
            f'<rect x="{_LEFT + at * width:.1f}" y="{_FLOOR + 3}" width="{len(chunk) * width + 0.4:.1f}" '
            f'height="12" fill="{_blend(share)}"/>'
        )
        at += len(chunk)
    return parts


def _dots(runs: Sequence[Observation], places: dict[str, int], width: float) -> list[str]:
    """One dot a run, under its commit; further runs at the same commit stand below it."""
    stacked: dict[str, int] = {}
    marks: list[str] = []
    for seen in runs:
        level = stacked.get(seen.sha, 0)
        stacked[seen.sha] = level + 1
        if level >= _STACK:
            continue
        at = places.get(seen.sha)
        x = _LEFT - 5 if at is None else _LEFT + (at + 0.5) * width
        marks.append(_dot(x, _FLOOR + 22 + 8 * level, seen))
    return marks


# --- the commits that matter -----------------------------------------------------------------------


def _near(found: Bisection) -> list[str]:
    """The likeliest commit and those around it, one column each, with their names."""
    first, last = _window(found.posterior)
    shown = found.posterior[first:last]
    width = min(60.0, (_WIDTH - _LEFT - _RIGHT) / len(shown))
    scale = _scale(max(point.p for point in shown))
    what = "the likeliest commit and its neighbours" if len(shown) > 1 else "the only commit"
    parts = [
        f'<text x="{_LEFT}" y="{_NEAR_TOP - 14}" fill="{_GREY}">Closer: {what}, in the order of history</text>',
        *_axis(_NEAR_TOP, _NEAR_FLOOR, scale),
    ]
    best = max(shown, key=lambda point: point.p)
    runs: dict[str, list[Observation]] = {}
    for seen in found.observations:
        runs.setdefault(seen.sha, []).append(seen)
    for at, point in enumerate(shown):
        x = _LEFT + (at + 0.5) * width
        name = f"{point.sha[:12]} {_percent(point.p)}"
        parts += _bar(x, width * 0.7, point.p / scale, name, (_NEAR_TOP, _NEAR_FLOOR))
        if point.p / scale > 0.03:
            y = max(_NEAR_FLOOR - (_NEAR_FLOOR - _NEAR_TOP) * point.p / scale - 4, _NEAR_TOP - 2)
            parts.append(
                f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" font-size="11">{_percent(point.p)}</text>'
            )
        mine = runs.get(point.sha, [])
        parts += [_dot(x, _NEAR_FLOOR + 9 + 8 * k, one) for k, one in enumerate(mine[:_STACK])]
        bold = ' font-weight="700"' if point is best else f' fill="{_GREY}"'
        y = _NEAR_FLOOR + 48
        parts.append(
            f'<text transform="translate({x + 4:.1f} {y}) rotate(-35)" text-anchor="end" font-size="10"'
            f"{bold}>{point.sha[:7]}</text>"
        )
    return parts


def _window(posterior: Sequence[Point]) -> tuple[int, int]:
    """From where to where to look closer: around the best, wider while what is next to it matters."""
    best = max(range(len(posterior)), key=lambda at: posterior[at].p)
    first, last = max(0, best - _AROUND), min(len(posterior), best + _AROUND + 1)
    while last - first < min(_NEAR, len(posterior)):
        older = posterior[first - 1].p if first else -1.0
        newer = posterior[last].p if last < len(posterior) else -1.0
        if max(older, newer) < 0.01 * posterior[best].p:
            break
        first, last = (first - 1, last) if older >= newer else (first, last + 1)
    return first, last


# --- pieces ----------------------------------------------------------------------------------------


def _axis(top: int, floor: int, scale: float) -> list[str]:
    right = _WIDTH - _RIGHT
    return [
        f'<line x1="{_LEFT}" y1="{y}" x2="{right}" y2="{y}" stroke="#e0e0e0"/>'
        f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end" fill="{_GREY}" font-size="11">{_percent(share)}</text>'
        for share, y in ((scale, top), (scale / 2, (top + floor) / 2), (0.0, floor))
    ]


def _bar(middle: float, width: float, share: float, name: str, panel: tuple[int, int]) -> list[str]:
    top, floor = panel
    height = (floor - top) * min(1.0, share)
    if height < 0.2:
        return []
    return [
        f'<rect x="{middle - width / 2:.1f}" y="{floor - height:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}" fill="{_BLUE}"><title>{escape(name)}</title></rect>'
    ]


def _dot(x: float, y: float, seen: Observation) -> str:
    said = escape(_cut(f"{seen.sha[:12]} {seen.outcome}: {seen.reason}", 140))
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" fill="{_COLOURS[seen.outcome]}">'
        f"<title>{said}</title></circle>"
    )


def _legend(left: str) -> list[str]:
    entries = (
        ("fail", "failed as at the bad end"),
        ("pass", "passed"),
        ("untestable", "could not be tested"),
    )
    y = _HEIGHT - 14
    parts = [
        f'<rect x="{_LEFT}" y="{y - 9}" width="9" height="9" fill="{_BLUE}"/>'
        f'<text x="{_LEFT + 14}" y="{y}" fill="{_GREY}">probability</text>'
    ]
    x = _LEFT + 96
    for outcome, words in entries:
        parts.append(
            f'<circle cx="{x}" cy="{y - 4}" r="4" fill="{_COLOURS[outcome]}"/>'
            f'<text x="{x + 9}" y="{y}" fill="{_GREY}">{words}</text>'
        )
        x += 28 + 7 * len(words)
    if left:
        right = _WIDTH - _RIGHT
        parts.append(
            f'<text x="{right}" y="{y}" text-anchor="end" fill="{_GREY}">{escape(left)}</text>'
        )
    return parts


def _scale(highest: float) -> float:
    """The smallest round share that the bars fit under."""
    return min((share for share in _SCALES if share >= highest), default=1.0)


def _percent(share: float) -> str:
    """A share as people read it; certainty is never claimed by rounding."""
    if 0.995 <= share < 1:
        return f"{share:.1%}" if share < 0.9995 else ">99.9%"
    return f"{share:.0%}" if share >= 0.01 or share == 0 else f"{share:.1%}"


def _blend(share: float) -> str:
    """A colour between works and broken."""
    works, unsure, broken = (129, 199, 132), (255, 245, 200), (229, 115, 115)
    one, other, part = (
        (works, unsure, 2 * share) if share < 0.5 else (unsure, broken, 2 * share - 1)
    )
    mixed = (round(a + (b - a) * part) for a, b in zip(one, other, strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)


def _cut(words: str, length: int) -> str:
    return words if len(words) <= length else words[: length - 1] + "…"
