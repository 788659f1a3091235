"""What a bisection found as an SVG: the whole range as a strip from good to bad, and the commits that matter one by one."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from regreen.bisect.result import Bisection, Observation, Point

_WIDTH, _HEIGHT = 860, 446
_LEFT, _RIGHT = 56, 18
_TOP, _FLOOR = 66, 146  # the whole range
_NEAR_TOP, _NEAR_FLOOR = 264, 344  # the commits that matter
_LANE, _LANES = 14, 6  # lines of history side by side: how far apart, how many are drawn
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
    lanes = _lanes(found.posterior, *_window(found.posterior)) if found.range.merges else ()
    height = _HEIGHT + (_LANE * (max(lanes) + 2) if lanes else 0)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        'font-family="system-ui, sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="24" font-size="16" font-weight="600">{escape(_cut(head, _TITLE))}</text>',
        f'<text x="{_LEFT}" y="44" fill="{_GREY}">{escape(_cut(subject or _subtitle(found), _SUBJECT))}</text>',
    ]
    if found.posterior:
        parts += [*_whole(found), *_near(found, lanes)]
    parts += _legend(_subtitle(found) if subject else "", height)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _subtitle(found: Bisection) -> str:
    count = found.range.merges
    merges = f", {count} merge{'' if count == 1 else 's'}" if count else ""
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
    parts += _strip(chunks, width)
    parts += _dots(found.observations, {p.sha: at for at, p in enumerate(found.posterior)}, width)
    good = found.range.good[:12] if found.range.good else "the beginning"
    right = _WIDTH - _RIGHT
    return [
        *parts,
        f'<text x="{_LEFT}" y="{_FLOOR + 66}" fill="{_GREY}">{escape(good)}, older</text>',
        f'<text x="{right}" y="{_FLOOR + 66}" text-anchor="end" fill="{_GREY}">'
        f"{escape(found.range.bad[:12])}, newer</text>",
    ]


def _strip(chunks: Sequence[Sequence[Point]], width: float) -> list[str]:
    """Green where it works, red where it is broken, by the chance that a commit (of some, the newest) is broken."""
    parts: list[str] = []
    at = 0
    for chunk in chunks:
        parts.append(
            f'<rect x="{_LEFT + at * width:.1f}" y="{_FLOOR + 3}" width="{len(chunk) * width + 0.4:.1f}" '
            f'height="12" fill="{_blend(chunk[-1].broken)}"/>'
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


def _near(found: Bisection, lanes: Sequence[int]) -> list[str]:
    """The likeliest commit and those around it, one column each, with their names; with merges, how they descend."""
    first, last = _window(found.posterior)
    shown = found.posterior[first:last]
    floor = _NEAR_FLOOR + (_LANE * (max(lanes) + 2) if lanes else 0)
    width = min(60.0, (_WIDTH - _LEFT - _RIGHT) / len(shown))
    scale = _scale(max(point.p for point in shown))
    what = "the likeliest commit and its neighbours" if len(shown) > 1 else "the only commit"
    lines = "; below, how they descend: green works, red is broken" if lanes else ""
    parts = [
        f'<text x="{_LEFT}" y="{_NEAR_TOP - 20}" fill="{_GREY}">Closer: {what}, in the order of history{lines}</text>',
        *_axis(_NEAR_TOP, _NEAR_FLOOR, scale),
        *_descent(found.posterior, first, lanes, width),
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
        parts += [_dot(x, floor + 9 + 8 * k, one) for k, one in enumerate(mine[:_STACK])]
        bold = ' font-weight="700"' if point is best else f' fill="{_GREY}"'
        y = floor + 48
        parts.append(
            f'<text transform="translate({x + 4:.1f} {y}) rotate(-35)" text-anchor="end" font-size="10"'
            f"{bold}>{point.sha[:7]}</text>"
        )
    return parts


def _lanes(posterior: Sequence[Point], first: int, last: int) -> tuple[int, ...]:
    """The line that each commit of a window is drawn on, 0 the uppermost: a first parent goes on on its child's."""
    waits: list[int | None] = []  # for each line, the commit that it leads to
    lanes: dict[int, int] = {}
    for at in reversed(range(first, last)):
        mine = [lane for lane, wanted in enumerate(waits) if wanted == at]
        lane = mine[0] if mine else _free(waits)
        for taken in mine[1:]:
            waits[taken] = None
        lanes[at] = lane
        main, *others = posterior[at].parents or (-1,)
        waits[lane] = main if main >= first else None
        for other in others:
            if other >= first and other not in waits:
                waits[_free(waits)] = other
    return tuple(min(lanes[at], _LANES - 1) for at in range(first, last))


def _free(waits: list[int | None]) -> int:
    if None not in waits:
        waits.append(None)
    return waits.index(None)


def _descent(
    posterior: Sequence[Point], first: int, lanes: Sequence[int], width: float
) -> list[str]:
    """The commits of a window, in the colours of the strip, with lines to their parents."""
    places = [
        (_LEFT + (at + 0.5) * width, _NEAR_FLOOR + _LANE * (lane + 1))
        for at, lane in enumerate(lanes)
    ]
    edges, marks = [], []
    for point, (x, y) in zip(posterior[first:], places, strict=False):
        for parent in point.parents:
            start = places[parent - first] if parent >= first else (_LEFT - 8.0, y)
            edges.append(_edge(start, (x, y), width))
        marks.append(
            f'<circle cx="{x:.1f}" cy="{y}" r="5" fill="{_blend(point.broken)}" stroke="{_GREY}">'
            f"<title>{point.sha[:12]} is broken: {_percent(point.broken)}</title></circle>"
        )
    return edges + marks


def _edge(start: tuple[float, int], end: tuple[float, int], width: float) -> str:
    """A line from a parent to its child: along the lower of their two lines, which is the branch's own."""
    (left, from_y), (right, to_y) = start, end
    turn = min(right - left, width)
    bend = left + turn if to_y > from_y else right - turn  # where it leaves or joins the upper one
    middle = (left + bend) / 2 if to_y > from_y else (bend + right) / 2
    path = (
        f"C{middle:.1f} {from_y} {middle:.1f} {to_y} {bend:.1f} {to_y} L{right:.1f} {to_y}"
        if to_y > from_y
        else f"L{bend:.1f} {from_y} C{middle:.1f} {from_y} {middle:.1f} {to_y} {right:.1f} {to_y}"
    )
    return f'<path d="M{left:.1f} {from_y} {path}" fill="none" stroke="{_GREY}"/>'


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


def _legend(left: str, height: int) -> list[str]:
    entries = (
        ("fail", "failed as at the bad end"),
        ("pass", "passed"),
        ("untestable", "could not be tested"),
    )
    y = height - 14
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
