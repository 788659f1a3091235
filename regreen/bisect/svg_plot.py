"""A bisection as an SVG: the whole range as a strip from good to bad, and the important commits one by one."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from regreen.bisect.result import Bisection, Observation, RangePoint

_WIDTH, _HEIGHT = 860, 446
_LEFT, _RIGHT = 56, 18
_TOP, _FLOOR = 66, 146  # the whole range
_NEAR_TOP, _NEAR_FLOOR = 264, 344  # the important commits
_LANE, _LANES = 14, 6  # parallel lines of history: their distance, and how many are drawn
_MAX_BARS, _MAX_CLOSE_COMMITS = 400, 25
_NEIGHBOURS = 4
_MAX_STACKED_DOTS = 4
_TITLE, _SUBJECT = 88, 110
_OUTCOME_COLOURS = {
    "fail": "#c62828",
    "pass": "#2e7d32",
    "untestable": "#9e9e9e",
    "infra": "#9e9e9e",
}
_GREY, _BLUE = "#616161", "#1565c0"
_THEME = (
    "<style>@media (prefers-color-scheme: dark) { "
    'rect[fill="#ffffff"] { fill: #1a2027 } text { fill: #e4e9ee } [fill="#616161"] { fill: #a3adb8 } '
    '[stroke="#616161"] { stroke: #a3adb8 } [stroke="#e0e0e0"] { stroke: #39424c } [fill="#1565c0"] { fill: #7cb8ff } }</style>'
)
"""In a dark page the picture has dark ground and light letters."""
_AXIS_SCALES = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)


def render_plot(result: Bisection, title: str) -> str:
    """The picture with `title` above it."""
    head, _, subject = title.partition(": ")
    lanes = (
        _assign_lanes(result.posterior, *_choose_window(result.posterior))
        if result.range.merges
        else ()
    )
    height = _HEIGHT + (_LANE * (max(lanes) + 2) if lanes else 0)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        'font-family="system-ui, sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        _THEME,
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="24" font-size="16" font-weight="600">{escape(_shorten_text(head, _TITLE))}</text>',
        f'<text x="{_LEFT}" y="44" fill="{_GREY}">{escape(_shorten_text(subject or _format_subtitle(result), _SUBJECT))}</text>',
    ]
    if result.posterior:
        parts += [*_draw_whole_range(result), *_draw_neighbourhood(result, lanes)]
    parts += _draw_legend(_format_subtitle(result) if subject else "", height)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _format_subtitle(result: Bisection) -> str:
    count = result.range.merges
    merges = f", {count} merge{'' if count == 1 else 's'}" if count else ""
    return (
        f"{result.tests} tests over {result.range.commits} commits{merges}, {result.seconds:.0f} s"
    )


# --- the whole range -------------------------------------------------------------------------------


def _draw_whole_range(result: Bisection) -> list[str]:
    """The probability over the range, below it the strip, below that a dot for each run."""
    count = len(result.posterior)
    width = (_WIDTH - _LEFT - _RIGHT) / count
    size = -(-count // _MAX_BARS)
    chunks = [result.posterior[at : at + size] for at in range(0, count, size)]
    masses = [sum(point.p for point in chunk) for chunk in chunks]
    scale = _choose_scale(max(masses))
    parts = _draw_axis(_TOP, _FLOOR, scale)
    for at, (chunk, mass) in enumerate(zip(chunks, masses, strict=True)):
        drawn = max(len(chunk) * width, 3.0)
        middle = _LEFT + (at * size + len(chunk) / 2) * width
        best = max(chunk, key=lambda point: point.p)
        name = f"{best.sha[:12]} {_format_percent(best.p)}"
        if len(chunk) > 1:
            name = f"{len(chunk)} commits {_format_percent(mass)}, {name}"
        parts += _draw_bar(middle, drawn, mass / scale, name, (_TOP, _FLOOR))
    parts += _draw_strip(chunks, width)
    parts += _draw_dots(
        result.observations, {p.sha: at for at, p in enumerate(result.posterior)}, width
    )
    good = result.range.good[:12] if result.range.good else "the beginning"
    right = _WIDTH - _RIGHT
    return [
        *parts,
        f'<text x="{_LEFT}" y="{_FLOOR + 66}" fill="{_GREY}">{escape(good)}, older</text>',
        f'<text x="{right}" y="{_FLOOR + 66}" text-anchor="end" fill="{_GREY}">'
        f"{escape(result.range.bad[:12])}, newer</text>",
    ]


def _draw_strip(chunks: Sequence[Sequence[RangePoint]], width: float) -> list[str]:
    """A colour from green (works) to red (broken), by the chance that a commit (of several, the newest) is broken."""
    parts: list[str] = []
    at = 0
    for chunk in chunks:
        parts.append(
            f'<rect x="{_LEFT + at * width:.1f}" y="{_FLOOR + 3}" width="{len(chunk) * width + 0.4:.1f}" '
            f'height="12" fill="{_blend_colour(chunk[-1].broken)}"/>'
        )
        at += len(chunk)
    return parts


def _draw_dots(
    observations: Sequence[Observation], places: dict[str, int], width: float
) -> list[str]:
    """One dot for each run below its commit; further runs at the same commit are stacked."""
    stacked: dict[str, int] = {}
    marks: list[str] = []
    for run in observations:
        level = stacked.get(run.sha, 0)
        stacked[run.sha] = level + 1
        if level >= _MAX_STACKED_DOTS:
            continue
        at = places.get(run.sha)
        x = _LEFT - 5 if at is None else _LEFT + (at + 0.5) * width
        marks.append(_draw_dot(x, _FLOOR + 22 + 8 * level, run))
    return marks


# --- the important commits -------------------------------------------------------------------------


def _draw_neighbourhood(result: Bisection, lanes: Sequence[int]) -> list[str]:
    """The likeliest commit and its neighbours, one named column each; with merges, lines of descent."""
    first, last = _choose_window(result.posterior)
    shown = result.posterior[first:last]
    floor = _NEAR_FLOOR + (_LANE * (max(lanes) + 2) if lanes else 0)
    width = min(60.0, (_WIDTH - _LEFT - _RIGHT) / len(shown))
    scale = _choose_scale(max(point.p for point in shown))
    caption = "the likeliest commit and its neighbours" if len(shown) > 1 else "the only commit"
    lines = "; below, how they descend: green works, red is broken" if lanes else ""
    parts = [
        f'<text x="{_LEFT}" y="{_NEAR_TOP - 20}" fill="{_GREY}">Closer: {caption}, in the order of history{lines}</text>',
        *_draw_axis(_NEAR_TOP, _NEAR_FLOOR, scale),
        *_draw_descent(result.posterior, first, lanes, width),
    ]
    best = max(shown, key=lambda point: point.p)
    runs: dict[str, list[Observation]] = {}
    for run in result.observations:
        runs.setdefault(run.sha, []).append(run)
    for at, point in enumerate(shown):
        x = _LEFT + (at + 0.5) * width
        name = f"{point.sha[:12]} {_format_percent(point.p)}"
        parts += _draw_bar(x, width * 0.7, point.p / scale, name, (_NEAR_TOP, _NEAR_FLOOR))
        if point.p / scale > 0.03:
            y = max(_NEAR_FLOOR - (_NEAR_FLOOR - _NEAR_TOP) * point.p / scale - 4, _NEAR_TOP - 2)
            parts.append(
                f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" font-size="11">{_format_percent(point.p)}</text>'
            )
        mine = runs.get(point.sha, [])
        parts += [
            _draw_dot(x, floor + 9 + 8 * k, observation)
            for k, observation in enumerate(mine[:_MAX_STACKED_DOTS])
        ]
        bold = ' font-weight="700"' if point is best else f' fill="{_GREY}"'
        y = floor + 48
        parts.append(
            f'<text transform="translate({x + 4:.1f} {y}) rotate(-35)" text-anchor="end" font-size="10"'
            f"{bold}>{point.sha[:7]}</text>"
        )
    return parts


def _assign_lanes(posterior: Sequence[RangePoint], first: int, last: int) -> tuple[int, ...]:
    """The lane of each commit of a window, 0 the uppermost: a first parent stays on the lane of its child."""
    waits: list[int | None] = []  # for each lane, the commit that it leads to
    lanes: dict[int, int] = {}
    for at in reversed(range(first, last)):
        mine = [lane for lane, wanted in enumerate(waits) if wanted == at]
        lane = mine[0] if mine else _find_free_lane(waits)
        for taken in mine[1:]:
            waits[taken] = None
        lanes[at] = lane
        main, *others = posterior[at].parents or (-1,)
        waits[lane] = main if main >= first else None
        for other in others:
            if other >= first and other not in waits:
                waits[_find_free_lane(waits)] = other
    return tuple(min(lanes[at], _LANES - 1) for at in range(first, last))


def _find_free_lane(waits: list[int | None]) -> int:
    if None not in waits:
        waits.append(None)
    return waits.index(None)


def _draw_descent(
    posterior: Sequence[RangePoint], first: int, lanes: Sequence[int], width: float
) -> list[str]:
    """The commits of a window in the colours of the strip, with lines to their parents."""
    places = [
        (_LEFT + (at + 0.5) * width, _NEAR_FLOOR + _LANE * (lane + 1))
        for at, lane in enumerate(lanes)
    ]
    edges, marks = [], []
    for point, (x, y) in zip(posterior[first:], places, strict=False):
        for parent in point.parents:
            start = places[parent - first] if parent >= first else (_LEFT - 8.0, y)
            edges.append(_draw_edge(start, (x, y), width))
        marks.append(
            f'<circle cx="{x:.1f}" cy="{y}" r="5" fill="{_blend_colour(point.broken)}" stroke="{_GREY}">'
            f"<title>{point.sha[:12]} is broken: {_format_percent(point.broken)}</title></circle>"
        )
    return edges + marks


def _draw_edge(start: tuple[float, int], end: tuple[float, int], width: float) -> str:
    """A line from a parent to its child along the lower of their lanes, which is the branch's own."""
    (left, from_y), (right, to_y) = start, end
    turn = min(right - left, width)
    bend = left + turn if to_y > from_y else right - turn  # where it leaves or joins the upper lane
    middle = (left + bend) / 2 if to_y > from_y else (bend + right) / 2
    path = (
        f"C{middle:.1f} {from_y} {middle:.1f} {to_y} {bend:.1f} {to_y} L{right:.1f} {to_y}"
        if to_y > from_y
        else f"L{bend:.1f} {from_y} C{middle:.1f} {from_y} {middle:.1f} {to_y} {right:.1f} {to_y}"
    )
    return f'<path d="M{left:.1f} {from_y} {path}" fill="none" stroke="{_GREY}"/>'


def _choose_window(posterior: Sequence[RangePoint]) -> tuple[int, int]:
    """The bounds of the window: around the likeliest commit, wider while its neighbours matter."""
    best = max(range(len(posterior)), key=lambda at: posterior[at].p)
    first, last = max(0, best - _NEIGHBOURS), min(len(posterior), best + _NEIGHBOURS + 1)
    while last - first < min(_MAX_CLOSE_COMMITS, len(posterior)):
        older = posterior[first - 1].p if first else -1.0
        newer = posterior[last].p if last < len(posterior) else -1.0
        if max(older, newer) < 0.01 * posterior[best].p:
            break
        first, last = (first - 1, last) if older >= newer else (first, last + 1)
    return first, last


# --- pieces ----------------------------------------------------------------------------------------


def _draw_axis(top: int, floor: int, scale: float) -> list[str]:
    right = _WIDTH - _RIGHT
    return [
        f'<line x1="{_LEFT}" y1="{y}" x2="{right}" y2="{y}" stroke="#e0e0e0"/>'
        f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end" fill="{_GREY}" font-size="11">{_format_percent(share)}</text>'
        for share, y in ((scale, top), (scale / 2, (top + floor) / 2), (0.0, floor))
    ]


def _draw_bar(
    middle: float, width: float, share: float, name: str, panel: tuple[int, int]
) -> list[str]:
    top, floor = panel
    height = (floor - top) * min(1.0, share)
    if height < 0.2:
        return []
    return [
        f'<rect x="{middle - width / 2:.1f}" y="{floor - height:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}" fill="{_BLUE}"><title>{escape(name)}</title></rect>'
    ]


def _draw_dot(x: float, y: float, run: Observation) -> str:
    label = escape(_shorten_text(f"{run.sha[:12]} {run.outcome}: {run.reason}", 140))
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" fill="{_OUTCOME_COLOURS[run.outcome]}">'
        f"<title>{label}</title></circle>"
    )


def _draw_legend(left: str, height: int) -> list[str]:
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
            f'<circle cx="{x}" cy="{y - 4}" r="4" fill="{_OUTCOME_COLOURS[outcome]}"/>'
            f'<text x="{x + 9}" y="{y}" fill="{_GREY}">{words}</text>'
        )
        x += 28 + 7 * len(words)
    if left:
        right = _WIDTH - _RIGHT
        parts.append(
            f'<text x="{right}" y="{y}" text-anchor="end" fill="{_GREY}">{escape(left)}</text>'
        )
    return parts


def _choose_scale(highest: float) -> float:
    """The smallest round share above every bar."""
    return min((share for share in _AXIS_SCALES if share >= highest), default=1.0)


def _format_percent(share: float) -> str:
    """A share for people; rounding never claims certainty."""
    if 0.995 <= share < 1:
        return f"{share:.1%}" if share < 0.9995 else ">99.9%"
    return f"{share:.0%}" if share >= 0.01 or share == 0 else f"{share:.1%}"


def _blend_colour(share: float) -> str:
    """A colour between works and broken."""
    works, unsure, broken = (129, 199, 132), (255, 245, 200), (229, 115, 115)
    start, end, part = (
        (works, unsure, 2 * share) if share < 0.5 else (unsure, broken, 2 * share - 1)
    )
    mixed = (round(a + (b - a) * part) for a, b in zip(start, end, strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)


def _shorten_text(words: str, length: int) -> str:
    return words if len(words) <= length else words[: length - 1] + "…"
