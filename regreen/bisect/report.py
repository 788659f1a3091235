"""Assembles and renders the result of a bisection: text for a terminal, Markdown for a comment, SVG for a picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from html import escape
from statistics import median
from typing import Any

from regreen.bisect.commit_graph import BEFORE_RANGE, RangeEnds
from regreen.bisect.commit_runner import FailureJudge, read_factor
from regreen.bisect.result import (
    Bisection,
    BisectionOutcome,
    BlamedCommit,
    BlamedDependency,
    CulpritVerification,
    FailureRates,
    Observation,
    RangePoint,
    RunPart,
    SearchedRange,
    Suspect,
)
from regreen.bisect.run_log import RunLog
from regreen.bisect.search import calibrate_distribution, calibrate_probability
from regreen.bisect.session import BisectSession
from regreen.bisect.verdict_memory import CommitRun
from regreen.domain.models import Cost
from regreen.domain.ports import Git
from regreen.domain.text_limits import format_seconds
from regreen.packages.lock_edits import PackageUpgrade
from regreen.secrets.markdown_sanitizer import code_span, count_noun, format_probability

# A bisection as an SVG: the whole range as a strip from good to bad, and the important commits one by one.

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
    merges = f", {count_noun(count, 'merge')}" if count else ""
    runs, commits = count_noun(result.runs, "run"), count_noun(result.range.commits, "commit")
    return f"{runs} over {commits}{merges}, {result.seconds:.0f} s"


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
        return format_probability(share)
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


RUN_PARTS: dict[RunPart, str] = {
    "search": "to search",
    "proof": "to confirm",
    "revert": "with the culprit reverted",
    "suspect": "with an earlier suspect reverted",
    "package": "with single packages",
    "interpreter": "under other interpreters",
}
"""What runs were for, in the order in which a report lists them."""
_UNKNOWN_RATE = (0.5, 0.0, 1.0)
_MAX_LISTED = 10
_MAX_LISTED_RUNS = 200
_MIN_VISIBLE_PROBABILITY = 0.005  # a smaller probability has no bar
_MAX_PLOTTED_ROWS = 15
_BAR_CHARACTERS = 30  # characters of a bar for certainty


def assemble_bisection(
    session: BisectSession | None,
    outcome: BisectionOutcome,
    verified: CulpritVerification | None,
    *,
    ends: RangeEnds,
    log: RunLog,
    judge: FailureJudge,
    confidence: float,
    notes: tuple[str, ...],
    git: Git,
    builds: int,
    seconds: float,
) -> Bisection:
    """The result of a bisection; `session` is None if the bad end never failed."""
    judge = session.judge if session else judge
    observations = tuple(
        observation
        for reused, runs in ((True, log.reused), (False, log.runs))
        for run in runs
        if (observation := _make_observation(judge, run, reused=reused)).outcome != "untestable"
        or not run.elsewhere
    )
    untestable = tuple(
        dict.fromkeys(
            observation.sha for observation in observations if observation.outcome == "untestable"
        )
    )
    wanted = judge.wanted[0].text if judge.wanted else None
    if session is None:
        return Bisection(
            outcome,
            None,
            0.0,
            (),
            verified,
            None,
            len(log.runs),
            builds,
            len(log.runs),
            untestable,
            _flat_rates(observations),
            SearchedRange(ends.good, ends.bad, 0, 0),
            observations,
            (),
            seconds,
            signature=wanted,
            notes=notes,
            later_runs=_list_later_runs(None, log, judge),
        )
    history = session.history
    best, probability = session.state.likeliest_commit()
    blamed = best if outcome == "found" else BEFORE_RANGE
    culprit = history.shas[blamed] if blamed != BEFORE_RANGE else None
    merge = history.merged_by(blamed) if blamed != BEFORE_RANGE else None
    credible = (
        session.state.credible_set(confidence)
        if outcome in {"found", "narrowed", "undecided"}
        else []
    )
    computed = [*session.state.commit_probabilities(), session.state.none + session.state.before]
    stated = calibrate_distribution(computed)
    nowhere = {"none": session.state.none, "before": session.state.before}
    return Bisection(
        outcome,
        _make_culprit(git, culprit) if culprit else None,
        calibrate_probability(nowhere.get(outcome, probability)),
        tuple(Suspect(history.shas[at], stated[at]) for at, _ in credible),
        verified,
        history.shas[merge] if merge is not None else None,
        len(log.runs),
        builds,
        session.rounds + len(log.runs) - session.searched,
        untestable,
        _estimate_rates(session),
        SearchedRange(session.good, ends.bad, len(history), history.merges),
        observations,
        tuple(_make_points(session, computed, stated)),
        seconds,
        signature=wanted,
        notes=notes,
        narrowing=tuple(session.narrowing),
        later_runs=_list_later_runs(culprit, log, judge),
    )


def _list_later_runs(
    culprit: str | None, log: RunLog, judge: FailureJudge
) -> tuple[Observation, ...]:
    """The runs that the search does not count; those without a commit that is not the culprit stand apart."""
    runs = [
        replace(
            _make_observation(judge, run, part=part if reverted in {None, culprit} else "suspect"),
            reverted=reverted,
        )
        for part, run, reverted in log.later
    ]
    return tuple(sorted(runs, key=lambda run: list(RUN_PARTS).index(run.part)))


def render_document(result: Bisection) -> dict[str, Any]:
    """The published JSON, without what only pictures need (how the search narrowed, how commits descend)."""
    shown = {"version": 1, **asdict(result)}
    del shown["narrowing"]
    shown["posterior"] = [{"sha": point.sha, "p": point.p} for point in result.posterior]
    return shown


def describe_runs(result: Bisection) -> str:
    """How many runs there were, and for what: every report counts them alike, and as many as it lists."""
    counts = Counter({"search": result.tests}) + Counter(run.part for run in result.later_runs)
    parts = [f"{counts[part]} {words}" for part, words in RUN_PARTS.items() if counts[part]]
    whole = count_noun(counts.total(), "run") + (f": {', '.join(parts)}" if len(parts) > 1 else "")
    known = sum(run.reused for run in result.observations)
    return whole + (f" ({count_noun(known, 'more run')} known before)" if known else "")


def measure_slowdown(result: Bisection) -> float | None:
    """How many times as long as at the good end the command takes with the culprit; None if it was not timed.

    Without a culprit the time is that at the bad end.
    """
    if result.slower is None:
        return None
    sha = result.culprit.sha if result.culprit else result.range.bad
    runs = (*result.observations, *result.later_runs)
    slow = (read_factor(run.reason) for run in runs if run.sha == sha and run.outcome == "fail")
    factors = [factor for factor in slow if factor is not None]
    return median(factors) if factors else None


def render_headline(result: Bisection, *, is_named: bool = False) -> str:
    """The result in one sentence; `is_named`: it follows the name of the command where there is a culprit."""
    verb = "repaired" if result.find_fix else "broke"
    what = f"made it {'faster' if result.find_fix else 'slower'}" if result.slower else f"{verb} it"
    match result.outcome:
        case "found":
            assert result.culprit is not None  # noqa: S101 - what `found` means
            how = "verified" if _is_proven(result) else "likely"
            package = f"{_name_upgrade(result.dependency)}, in " if result.dependency else ""
            factor = measure_slowdown(result)
            what += f", {factor:.1f} times as long" if factor else ""
            blamed = f"{package}{result.culprit.sha[:12]}"
            does = "passes" if result.find_fix else "fails"
            head = f"{does} since {blamed}" if is_named else f"{blamed} {what}"
            return f"{head} ({how}, {format_probability(result.probability)}): {result.culprit.subject}"
        case "narrowed":
            return f"one of {len(result.credible_set)} commits {what}; the tests cannot tell them apart"
        case "none":
            return (
                f"no commit of this range {what} ({format_probability(result.probability)}): "
                "the test behaves alike at both ends"
            )
        case "before":
            sure = f"({format_probability(result.probability)})"
            return _describe_older_failure(result, sure)
        case "not_reproduced":
            return _describe_missing_failure(result)
        case "undecided":
            likeliest = result.credible_set[0] if result.credible_set else None
            hint = (
                f": likeliest {likeliest.sha[:12]}, {format_probability(likeliest.probability)}"
                if likeliest
                else ""
            )
            return f"undecided after {count_noun(result.runs, 'run')}{hint}"


def _describe_missing_failure(result: Bisection) -> str:
    if not result.observations:
        return "the time was over before the command had run once"
    last = result.observations[-1]
    why = f" ({last.reason})" if last.outcome == "untestable" else ""
    bad = [run for run in result.observations if run.sha == result.range.bad]
    passes = sum(run.outcome == "pass" for run in bad)
    seen = f"; it passes in {count_noun(passes, 'run')} there" if passes else ""
    fails = "was not slower" if result.slower else "did not fail"
    return f"not reproduced: the command {fails} where it should{why}{seen}. Check the command, or name a commit where it fails as the bad one"


def _describe_older_failure(result: Bisection, sure: str) -> str:
    """Why the search has no culprit where the older end fails, too, and what to do about it."""
    if (result.signature or "").startswith(("ModuleNotFoundError", "ImportError")):
        return f"a module is missing at both ends {sure} ({result.signature}): check its name, let --setup install it, or see `regreen env`"
    if result.range.good:
        ends = {result.range.bad, result.range.good}
        passed = any(run.outcome == "pass" and run.sha in ends for run in result.observations)
        flaky = ", or it is flaky: it passes there in some runs" if passed else ""
        return f"the command fails at the good end, too {sure}: name an older commit as the good one{flaky}"
    return f"the command fails at the oldest commit, too {sure}: no commit of this history broke it"


def render_text(result: Bisection) -> str:
    """Render for a terminal."""
    lines = [render_headline(result), ""]
    if result.culprit:
        lines += [f"  author   {result.culprit.author}, {result.culprit.date}"]
    if result.via_merge:
        lines += [f"  merged   by {result.via_merge}"]
    if result.dependency:
        lines += [f"  package  {_format_package(result.dependency)}"]
    if result.verified:
        lines += [f"  {'verified' if _is_proven(result) else 'rerun   '} {result.verified.detail}"]
    if result.outcome in {"narrowed", "undecided"}:
        lines += [
            f"  suspect  {suspect.sha[:12]} {format_probability(suspect.probability)}"
            for suspect in result.credible_set[:_MAX_LISTED]
        ]
        if len(result.credible_set) > _MAX_LISTED:
            lines += [f"           and {len(result.credible_set) - _MAX_LISTED} more"]
    if result.culprit:
        lines += [f"  {'slow   ' if result.slower else 'failing'}  {_describe_rates(result)}"]
    if result.signature and not result.slower:
        lines += [f"  looks    {result.signature}"]
    good = result.range.good[:12] if result.range.good else "the beginning"
    lines += [
        f"  range    {good}..{result.range.bad[:12]}"
        + (f": {_format_extent(result.range)}" if result.range.commits else ""),
        f"  ran      {describe_runs(result)}",
        f"  cost     {count_noun(result.rounds, 'round')}, {count_noun(result.builds, 'environment')}, {result.seconds:.0f} s"
        + (f", Python {result.python}" if result.python else ""),
    ]
    if result.untestable:
        lines += [f"  skipped  {count_noun(len(result.untestable), 'commit')} could not be tested"]
    lines += [f"  note     {note}" for note in result.notes]
    lines += [f"  repeat   {result.repeat}"] if result.repeat else []
    return "\n".join(lines)


def render_markdown(result: Bisection, next_steps: str = "") -> str:
    """Render for a comment; `next_steps` is Markdown that follows the headline."""
    command = "" if result.slower or result.outcome != "found" else code_span(result.command, 120)
    headline = _escape_markup(render_headline(result, is_named=bool(command)))
    lines = [f"**{command} {headline}**" if command else f"**{headline}**", ""]
    lines += [next_steps, ""] if next_steps else []
    if result.outcome != "found":  # the headline of a culprit names it
        lines += [f"- command: {code_span(result.command, 120)}"]
    failures = [] if result.slower else (result.signature or "").split(" | ")
    lines += [f"- fails with: {code_span(failure)}" for failure in failures if failure.strip()]
    if result.culprit:
        lines += [  # outside of a code span GitHub makes the commit a link
            f"- commit {result.culprit.sha} by {_escape_markup(result.culprit.author)}, {_format_date(result.culprit.date)}"
        ]
    if result.via_merge:
        lines += [f"- merged by `{result.via_merge}`"]
    if result.dependency:
        lines += [f"- package: {_escape_markup(_format_package(result.dependency))}"]
    if result.verified:
        how = "verified" if _is_proven(result) else "run again"
        lines += [f"- {how}: {_escape_markup(result.verified.detail)}"]
    if result.outcome in {"narrowed", "undecided"}:
        lines += [
            f"- suspect `{suspect.sha[:12]}` {format_probability(suspect.probability)}"
            for suspect in result.credible_set[:_MAX_LISTED]
        ]
    lines += (
        [
            f"- estimated rate of {'slow runs' if result.slower else 'failures'}: {_describe_rates(result)}"
        ]
        if result.culprit
        else []
    )
    over = f"searched {_format_extent(result.range)}" if result.range.commits else "ran"
    lines += [
        f"- {describe_runs(result)}",
        f"- {over} for {format_seconds(result.seconds)}; {count_noun(result.builds, 'environment')} prepared for it",
    ]
    untested = _describe_untested(result)
    lines += [f"- not tested: {untested}"] if untested else []
    lines += [f"- {_escape_markup(note)}" for note in result.notes]
    lines += [f"- repeat it: `{result.repeat}`"] if result.repeat else []
    lines += _posterior_plot(result)
    return "\n".join([*lines, "", *_list_runs(result)])


def _describe_untested(result: Bisection) -> str:
    """Which commits of the range were not run, and which could not be tested; "" for none."""
    ran = {run.sha for run in result.observations}
    left = sum(point.sha not in ran for point in result.posterior)
    whole = count_noun(len(result.posterior), "commit")
    parts = [f"{left} of {whole}, because the runs of the others suffice"] if left else []
    skipped = count_noun(len(result.untestable), "commit")
    parts += [f"{skipped} could not be tested"] if result.untestable else []
    return "; ".join(parts)


def _list_runs(result: Bisection) -> list[str]:
    """A folded table of the runs: first those that were known before, then as many as were counted."""
    rows = [
        f"| {'known before' if run.reused else RUN_PARTS[run.part]} | {_name_commit(result, run)} | {_name_outcome(result, run)} "
        f"| {_escape_markup(_explain_outcome(run))[:120]} | {run.seconds:.1f} |"
        for run in (*result.observations, *result.later_runs)
    ]
    cut = f" (the last {_MAX_LISTED_RUNS})" if len(rows) > _MAX_LISTED_RUNS else ""
    return [
        f"<details><summary>{describe_runs(result)}{cut}</summary>",
        "",
        "| run | commit | outcome | why | seconds |",
        "| --- | --- | --- | --- | --- |",
        *rows[-_MAX_LISTED_RUNS:],
        "",
        Cost().describe(result.seconds),  # a search asks no model
        "",
        "</details>",
    ]


def _name_commit(result: Bisection, run: Observation) -> str:
    """The commit of a run; a revert is a commit that nobody else has."""
    if run.reverted is None:
        return f"`{run.sha[:12]}`"
    if run.reverted == result.range.bad:
        return f"`{run.reverted[:12]}` with its change reverted"
    return f"`{result.range.bad[:12]}` with `{run.reverted[:12]}` reverted"


def _explain_outcome(run: Observation) -> str:
    """Why a run counts as it does: what it printed, where its exit code says no more than that it failed."""
    return run.signature if run.signature and run.reason.startswith("exit ") else run.reason


def _name_outcome(result: Bisection, run: Observation) -> str:
    """How a run ended; a command that is only slower does not fail."""
    timed = {"fail": "slower", "pass": "not slower"} if result.slower else {}
    return timed.get(run.outcome, run.outcome)


def _posterior_plot(result: Bisection) -> list[str]:
    """The probability of each commit as bars of text, because comments on GitHub show no generated picture."""
    likely = [
        at for at, point in enumerate(result.posterior) if point.p >= _MIN_VISIBLE_PROBABILITY
    ]
    if not likely:
        return []
    shown = {at + beside for at in likely for beside in (-1, 0, 1)} & {
        *range(len(result.posterior))
    }
    shown = set(sorted(shown, key=lambda at: -result.posterior[at].p)[:_MAX_PLOTTED_ROWS])
    outcomes: dict[str, set[str]] = {}
    for run in result.observations:
        outcomes.setdefault(run.sha, set()).add(_name_outcome(result, run))
    rows, last = [], -1
    for at in sorted(shown):
        point = result.posterior[at]
        if at > last + 1:
            rows.append(f"... {count_noun(at - last - 1, 'commit')}")
        bar = (
            "█" * max(1, round(point.p * _BAR_CHARACTERS))
            if point.p >= _MIN_VISIBLE_PROBABILITY
            else ""
        )
        ran = "/".join(sorted(outcomes.get(point.sha, ()))) or "not run"
        rows.append(
            f"{point.sha[:12]} {format_probability(point.p):>6} {bar:<{_BAR_CHARACTERS}} {ran}".rstrip()
        )
        last = at
    if last < len(result.posterior) - 1:
        rows.append(f"... {count_noun(len(result.posterior) - 1 - last, 'commit')}")
    return ["", "Probability of each commit, oldest first:", "", "```text", *rows, "```"]


def render_svg(result: Bisection) -> str:
    """The posterior over history as a picture."""
    return render_plot(result, render_headline(result))


def _is_proven(result: Bisection) -> bool:
    return result.verified is not None and result.verified.ok and "revert" in result.verified.by


def _make_observation(
    judge: FailureJudge, run: CommitRun, *, reused: bool = False, part: RunPart = "search"
) -> Observation:
    outcome, reason = judge(run)
    shown = run.signature.text if run.signature else None
    return Observation(run.sha, outcome, shown, round(run.seconds, 3), reason, reused, part)


def _make_culprit(git: Git, sha: str) -> BlamedCommit:
    commit = git.commit(sha)
    return BlamedCommit(sha, commit.subject, commit.author, commit.date.isoformat())


def _make_points(
    session: BisectSession, computed: Sequence[float], stated: Sequence[float]
) -> Iterable[RangePoint]:
    """Each commit with its reported probability; the correction of the likeliest one applies to its descendants too."""
    history, best = session.history, max(range(len(computed)), key=computed.__getitem__)
    doubt = 1 - computed[best]
    scale = (1 - stated[best]) / doubt if doubt > 0 and best < len(history) else 1.0
    for at, sha in enumerate(history.shas):
        has = scale * session.state.containment_probability(at)
        if best < len(history) and history.contains[at] >> best & 1:
            has += stated[best] - scale * computed[best]
        broken = round(1 - has if session.find_fix else has, 4)
        yield RangePoint(sha, stated[at], broken, history.parents[at])


def _estimate_rates(session: BisectSession) -> FailureRates:
    bad, good = (_summarize_rates(rates) for rates in session.state.failure_rates())
    if not session.find_fix:
        return FailureRates(bad, good)
    return FailureRates(_complement_rates(good), _complement_rates(bad))


def _flat_rates(observations: tuple[Observation, ...]) -> FailureRates:
    counted = [run for run in observations if run.outcome in {"pass", "fail"}]
    if not counted:
        return FailureRates(_UNKNOWN_RATE, _UNKNOWN_RATE)
    share = sum(run.outcome == "fail" for run in counted) / len(counted)
    return FailureRates((share, 0.0, 1 - 0.05 ** (1 / len(counted))), _UNKNOWN_RATE)


def _summarize_rates(rates: list[tuple[float, float]]) -> tuple[float, float, float]:
    """Mean and bounds of the middle 90 %."""
    total = sum(mass for _, mass in rates)
    if total <= 0:
        return _UNKNOWN_RATE
    mean = sum(rate * mass for rate, mass in rates) / total
    low = high = rates[-1][0]
    below = 0.0
    found_low = False
    for rate, mass in rates:
        below += mass / total
        if not found_low and below >= 0.05:
            low, found_low = rate, True
        if below >= 0.95:
            high = rate
            break
    return round(mean, 4), round(low, 4), round(high, 4)


def _complement_rates(rates: tuple[float, float, float]) -> tuple[float, float, float]:
    mean, low, high = rates
    return round(1 - mean, 4), round(1 - high, 4), round(1 - low, 4)


def _describe_rates(result: Bisection) -> str:
    rates = result.rates
    return f"{_format_rate(rates.fail_if_bad)} with this commit, {_format_rate(rates.fail_if_good)} without (90% interval)"


def _format_rate(rates: tuple[float, float, float]) -> str:
    mean, low, high = rates
    return f"{mean:.0%}" if high - low < 0.005 else f"{mean:.0%} ({low:.0%} to {high:.0%})"


def _format_extent(span: SearchedRange) -> str:
    return f"{count_noun(span.commits, 'commit')}, {count_noun(span.merges, 'merge')}"


def _format_date(date: str) -> str:
    return f"{datetime.fromisoformat(date).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _name_upgrade(dependency: BlamedDependency) -> str:
    return str(PackageUpgrade(dependency.name, dependency.old, dependency.new))


def _format_package(dependency: BlamedDependency) -> str:
    return f"{_name_upgrade(dependency)} ({format_probability(dependency.probability)}, in {dependency.path})"


def _escape_markup(words: str) -> str:
    """Escape words that could become markup, mentions or table cells."""
    for sign in "\\`*_[]<>|#":
        words = words.replace(sign, f"\\{sign}")
    return words.replace("@", "@\u200b").replace("\n", " ")
