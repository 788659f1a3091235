"""Assembles and renders the result of a bisection: text for a terminal, Markdown for a comment, SVG for a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from regreen.bisect import svg_plot
from regreen.bisect.commit_graph import BEFORE_RANGE, RangeEnds
from regreen.bisect.commit_runner import FailureJudge
from regreen.bisect.result import (
    Bisection,
    BisectionOutcome,
    BlamedCommit,
    BlamedDependency,
    CulpritVerification,
    FailureRates,
    Observation,
    RangePoint,
    SearchedRange,
    Suspect,
)
from regreen.bisect.run_log import RunLog
from regreen.bisect.search import calibrate_distribution, calibrate_probability
from regreen.bisect.session import BisectSession
from regreen.bisect.verdict_memory import CommitRun
from regreen.domain.ports import Git

__all__ = [
    "Bisection",
    "assemble_bisection",
    "render_headline",
    "render_markdown",
    "render_svg",
    "render_text",
]

_UNKNOWN_RATE = (0.5, 0.0, 1.0)
_MAX_LISTED = 10
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
            outcome, None, 0.0, (), verified, None, len(log.runs), builds, len(log.runs), untestable,
            _flat_rates(observations), SearchedRange(ends.good, ends.bad, 0, 0), observations, (), seconds,
            signature=wanted, notes=notes,
        )  # fmt: skip
    history = session.history
    best, probability = session.state.likeliest_commit()
    blamed = best if outcome == "found" else BEFORE_RANGE
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
        _make_culprit(git, history.shas[blamed]) if blamed != BEFORE_RANGE else None,
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
    )


def render_document(result: Bisection) -> dict[str, Any]:
    """The published JSON, without what only pictures need (how the search narrowed, how commits descend)."""
    shown = {"version": 1, **asdict(result)}
    del shown["narrowing"]
    shown["posterior"] = [{"sha": point.sha, "p": point.p} for point in result.posterior]
    return shown


def render_headline(result: Bisection) -> str:
    """The result in one sentence."""
    verb = "repaired" if result.find_fix else "broke"
    match result.outcome:
        case "found":
            assert result.culprit is not None  # noqa: S101 - what `found` means
            how = "verified" if _is_proven(result) else "likely"
            return (
                f"{result.culprit.sha[:12]} {verb} it ({how}, {result.probability:.1%}): "
                f"{result.culprit.subject}"
            )
        case "narrowed":
            return f"one of {len(result.credible_set)} commits {verb} it; the tests cannot tell them apart"
        case "none":
            return (
                f"no commit of this range {verb} it ({result.probability:.1%}): "
                "the test behaves alike at both ends"
            )
        case "before":
            sure = f"({result.probability:.1%})"
            return _describe_older_failure(result, sure)
        case "not_reproduced":
            last = result.observations[-1] if result.observations else None
            why = f" ({last.reason})" if last and last.outcome == "untestable" else ""
            return f"not reproduced: the command did not fail where it should{why}"
        case "undecided":
            likeliest = result.credible_set[0] if result.credible_set else None
            hint = (
                f": likeliest {likeliest.sha[:12]}, {likeliest.probability:.1%}"
                if likeliest
                else ""
            )
            return f"undecided after {result.tests} runs{hint}"


def _describe_older_failure(result: Bisection, sure: str) -> str:
    """Why the search has no culprit where the older end fails, too, and what to do about it."""
    if (result.signature or "").startswith(("ModuleNotFoundError", "ImportError")):
        return f"a module is missing at both ends {sure} ({result.signature}): check its name, let --setup install it, or see `regreen env`"
    if result.range.good:
        return f"the command fails at the good end, too {sure}; give an older --good"
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
        lines += [f"  verified {result.verified.detail}"]
    if result.outcome in {"narrowed", "undecided"}:
        lines += [
            f"  suspect  {suspect.sha[:12]} {suspect.probability:.1%}"
            for suspect in result.credible_set[:_MAX_LISTED]
        ]
        if len(result.credible_set) > _MAX_LISTED:
            lines += [f"           and {len(result.credible_set) - _MAX_LISTED} more"]
    if result.culprit:
        lines += [f"  failing  {_describe_rates(result)}"]
    if result.signature:
        lines += [f"  looks    {result.signature}"]
    good = result.range.good[:12] if result.range.good else "the beginning"
    lines += [
        f"  range    {good}..{result.range.bad[:12]}"
        + (f": {_format_extent(result.range)}" if result.range.commits else ""),
        f"  cost     {result.tests} runs in {result.rounds} rounds, {result.builds} environment{'' if result.builds == 1 else 's'}, "
        f"{result.seconds:.0f} s" + (f", Python {result.python}" if result.python else ""),
    ]
    if result.untestable:
        lines += [f"  skipped  {len(result.untestable)} commits could not be tested"]
    lines += [f"  note     {note}" for note in result.notes]
    lines += [f"  repeat   {result.repeat}"] if result.repeat else []
    return "\n".join(lines)


def render_markdown(result: Bisection) -> str:
    """Render for a comment."""
    lines = [f"**{_escape_markup(render_headline(result))}**", ""]
    if result.culprit:
        lines += [
            f"- commit `{result.culprit.sha}` by {_escape_markup(result.culprit.author)}, {result.culprit.date}"
        ]
    if result.via_merge:
        lines += [f"- merged by `{result.via_merge}`"]
    if result.dependency:
        lines += [f"- package: {_escape_markup(_format_package(result.dependency))}"]
    if result.verified:
        lines += [f"- verified: {_escape_markup(result.verified.detail)}"]
    if result.outcome in {"narrowed", "undecided"}:
        lines += [
            f"- suspect `{suspect.sha[:12]}` {suspect.probability:.1%}"
            for suspect in result.credible_set[:_MAX_LISTED]
        ]
    lines += [f"- estimated failure rate: {_describe_rates(result)}"] if result.culprit else []
    lines += [
        f"- {result.tests} runs over {_format_extent(result.range)}, "
        f"{result.builds} environment{'' if result.builds == 1 else 's'}, {result.seconds:.0f} s",
    ]
    if result.untestable:
        lines += [f"- {len(result.untestable)} commits could not be tested"]
    lines += [f"- {_escape_markup(note)}" for note in result.notes]
    lines += [f"- repeat it: `{result.repeat}`"] if result.repeat else []
    lines += _posterior_plot(result)
    lines += [
        "",
        "<details><summary>Every run</summary>",
        "",
        "| commit | outcome | why | seconds |",
        "| --- | --- | --- | --- |",
    ]
    lines += [
        f"| `{run.sha[:12]}` | {run.outcome} | {_escape_markup(run.reason)[:120]} | {run.seconds:.1f} |"
        for run in result.observations[-200:]
    ]
    return "\n".join([*lines, "", "</details>"])


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
        outcomes.setdefault(run.sha, set()).add(run.outcome)
    rows, last = [], -1
    for at in sorted(shown):
        point = result.posterior[at]
        if at > last + 1:
            rows.append(f"... {_format_commit_count(at - last - 1)}")
        bar = (
            "█" * max(1, round(point.p * _BAR_CHARACTERS))
            if point.p >= _MIN_VISIBLE_PROBABILITY
            else ""
        )
        ran = "/".join(sorted(outcomes.get(point.sha, ()))) or "not run"
        rows.append(f"{point.sha[:12]} {point.p:6.1%} {bar:<{_BAR_CHARACTERS}} {ran}".rstrip())
        last = at
    if last < len(result.posterior) - 1:
        rows.append(f"... {_format_commit_count(len(result.posterior) - 1 - last)}")
    return ["", "Probability of each commit, oldest first:", "", "```text", *rows, "```"]


def _format_commit_count(number: int) -> str:
    """A number of commits in words."""
    return f"{number} commit{'' if number == 1 else 's'}"


def render_svg(result: Bisection) -> str:
    """The posterior over history as a picture."""
    return svg_plot.render_plot(result, render_headline(result))


def _is_proven(result: Bisection) -> bool:
    return result.verified is not None and result.verified.ok and "revert" in result.verified.by


def _make_observation(judge: FailureJudge, run: CommitRun, *, reused: bool) -> Observation:
    outcome, reason = judge(run)
    shown = run.signature.text if run.signature else None
    return Observation(run.sha, outcome, shown, round(run.seconds, 3), reason, reused)


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
    commits, merges = ("" if number == 1 else "s" for number in (span.commits, span.merges))
    return f"{span.commits} commit{commits}, {span.merges} merge{merges}"


def _format_package(dependency: BlamedDependency) -> str:
    return f"{dependency.name} {dependency.old or 'absent'} -> {dependency.new or 'removed'} ({dependency.probability:.1%}, in {dependency.path})"


def _escape_markup(words: str) -> str:
    """Escape words that could become markup, mentions or table cells."""
    for sign in "\\`*_[]<>|#":
        words = words.replace(sign, f"\\{sign}")
    return words.replace("@", "@\u200b").replace("\n", " ")
