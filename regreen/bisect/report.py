"""What was found, put together and told: text for a terminal, markdown for a comment, SVG for a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from regreen.bisect import plot
from regreen.bisect.endpoints import Ends
from regreen.bisect.graph import BEFORE
from regreen.bisect.hunt import Hunt
from regreen.bisect.log import Log
from regreen.bisect.memory import Run
from regreen.bisect.result import (
    Bisection,
    Culprit,
    Dependency,
    Observation,
    Outcome,
    Point,
    RatesSeen,
    Searched,
    Suspect,
    Verified,
)
from regreen.bisect.runner import Judge
from regreen.bisect.search import calibrated, stated
from regreen.ports import Git

__all__ = ["Bisection", "assemble", "headline", "markdown", "svg", "text"]

_UNKNOWN = (0.5, 0.0, 1.0)
_LISTED = 10


def assemble(
    hunt: Hunt | None,
    outcome: Outcome,
    verified: Verified | None,
    *,
    ends: Ends,
    log: Log,
    judge: Judge,
    confidence: float,
    notes: tuple[str, ...],
    git: Git,
    builds: int,
    seconds: float,
) -> Bisection:
    """The document of a bisection; `hunt` is None where the broken end never failed."""
    judge = hunt.judge if hunt else judge
    observations = tuple(
        seen
        for reused, runs in ((True, log.reused), (False, log.runs))
        for run in runs
        if (seen := _observation(judge, run, reused=reused)).outcome != "untestable"
        or not run.elsewhere
    )
    untestable = tuple(
        dict.fromkeys(seen.sha for seen in observations if seen.outcome == "untestable")
    )
    wanted = judge.wanted[0].text if judge.wanted else None
    if hunt is None:
        return Bisection(
            outcome, None, 0.0, (), verified, None, len(log.runs), builds, len(log.runs), untestable,
            _flat_rates(observations), Searched(ends.good, ends.bad, 0, 0), observations, (), seconds,
            signature=wanted, notes=notes,
        )  # fmt: skip
    history = hunt.history
    best, probability = hunt.state.best()
    blamed = best if outcome == "found" else BEFORE
    merge = history.merged_by(blamed) if blamed != BEFORE else None
    credible = (
        hunt.state.credible(confidence) if outcome in {"found", "narrowed", "undecided"} else []
    )
    computed = [*hunt.state.posterior(), hunt.state.none + hunt.state.before]
    said = stated(computed)
    nowhere = {"none": hunt.state.none, "before": hunt.state.before}
    return Bisection(
        outcome,
        _culprit(git, history.shas[blamed]) if blamed != BEFORE else None,
        calibrated(nowhere.get(outcome, probability)),
        tuple(Suspect(history.shas[at], said[at]) for at, _ in credible),
        verified,
        history.shas[merge] if merge is not None else None,
        len(log.runs),
        builds,
        hunt.rounds + len(log.runs) - hunt.searched,
        untestable,
        _rates(hunt),
        Searched(hunt.good, ends.bad, len(history), history.merges),
        observations,
        tuple(_points(hunt, computed, said)),
        seconds,
        signature=wanted,
        notes=notes,
        narrowing=tuple(hunt.narrowing),
    )


def document(found: Bisection) -> dict[str, Any]:
    """The published JSON; what only pictures need (how the search narrowed, how commits descend) stays out."""
    shown = {"version": 1, **asdict(found)}
    del shown["narrowing"]
    shown["posterior"] = [{"sha": point.sha, "p": point.p} for point in found.posterior]
    return shown


def headline(found: Bisection) -> str:
    """The answer in one sentence."""
    verb = "repaired" if found.find_fix else "broke"
    match found.outcome:
        case "found":
            assert found.culprit is not None  # noqa: S101 - what `found` means
            how = "verified" if _is_proven(found) else "likely"
            return (
                f"{found.culprit.sha[:12]} {verb} it ({how}, {found.probability:.1%}): "
                f"{found.culprit.subject}"
            )
        case "narrowed":
            return f"one of {len(found.credible_set)} commits {verb} it; the tests cannot tell them apart"
        case "none":
            return (
                f"no commit of this range {verb} it ({found.probability:.1%}): "
                "the test behaves alike at both ends"
            )
        case "before":
            sure = f"({found.probability:.1%})"
            return (
                f"it failed before this range already {sure}; give an older --good"
                if found.range.good
                else f"it failed at the oldest commit already {sure}: nothing in this history broke it"
            )
        case "not_reproduced":
            last = found.observations[-1] if found.observations else None
            why = f" ({last.reason})" if last and last.outcome == "untestable" else ""
            return f"not reproduced: the command did not fail where it should{why}"
        case "undecided":
            likeliest = found.credible_set[0] if found.credible_set else None
            hint = (
                f": likeliest {likeliest.sha[:12]}, {likeliest.probability:.1%}"
                if likeliest
                else ""
            )
            return f"undecided after {found.tests} tests{hint}"


def text(found: Bisection) -> str:
    """For a terminal."""
    lines = [headline(found), ""]
    if found.culprit:
        lines += [f"  author   {found.culprit.author}, {found.culprit.date}"]
    if found.via_merge:
        lines += [f"  merged   by {found.via_merge}"]
    if found.dependency:
        lines += [f"  package  {_package(found.dependency)}"]
    if found.verified:
        lines += [f"  proof    {found.verified.detail}"]
    if found.outcome in {"narrowed", "undecided"}:
        lines += [
            f"  suspect  {suspect.sha[:12]} {suspect.probability:.1%}"
            for suspect in found.credible_set[:_LISTED]
        ]
        if len(found.credible_set) > _LISTED:
            lines += [f"           and {len(found.credible_set) - _LISTED} more"]
    lines += [
        f"  failing  {_share(found.rates.fail_if_bad)} of runs with it, {_share(found.rates.fail_if_good)} without"
    ]
    if found.signature:
        lines += [f"  looks    {found.signature}"]
    good = found.range.good[:12] if found.range.good else "the beginning"
    lines += [
        f"  range    {good}..{found.range.bad[:12]}: {_extent(found.range)}",
        f"  cost     {found.tests} tests in {found.rounds} rounds, {found.builds} environment{'' if found.builds == 1 else 's'}, "
        f"{found.seconds:.0f} s" + (f", Python {found.python}" if found.python else ""),
    ]
    if found.untestable:
        lines += [f"  skipped  {len(found.untestable)} commits could not be tested"]
    lines += [f"  note     {note}" for note in found.notes]
    return "\n".join(lines)


def markdown(found: Bisection) -> str:
    """For a comment."""
    lines = [f"**{_escape(headline(found))}**", ""]
    if found.culprit:
        lines += [
            f"- commit `{found.culprit.sha}` by {_escape(found.culprit.author)}, {found.culprit.date}"
        ]
    if found.via_merge:
        lines += [f"- merged by `{found.via_merge}`"]
    if found.dependency:
        lines += [f"- package: {_escape(_package(found.dependency))}"]
    if found.verified:
        lines += [f"- proof: {_escape(found.verified.detail)}"]
    if found.outcome in {"narrowed", "undecided"}:
        lines += [
            f"- suspect `{one.sha[:12]}` {one.probability:.1%}"
            for one in found.credible_set[:_LISTED]
        ]
    lines += [
        f"- fails in {_share(found.rates.fail_if_bad)} of runs with it, in {_share(found.rates.fail_if_good)} without",
        f"- {found.tests} tests over {_extent(found.range)}, "
        f"{found.builds} environment{'' if found.builds == 1 else 's'}, {found.seconds:.0f} s",
    ]
    if found.untestable:
        lines += [f"- {len(found.untestable)} commits could not be tested"]
    lines += [f"- {_escape(note)}" for note in found.notes]
    lines += [
        "",
        "<details><summary>Every run</summary>",
        "",
        "| commit | outcome | why | seconds |",
        "| --- | --- | --- | --- |",
    ]
    lines += [
        f"| `{seen.sha[:12]}` | {seen.outcome} | {_escape(seen.reason)[:120]} | {seen.seconds:.1f} |"
        for seen in found.observations[-200:]
    ]
    return "\n".join([*lines, "", "</details>"])


def svg(found: Bisection) -> str:
    """The posterior over history, as a picture."""
    return plot.svg(found, headline(found))


def _is_proven(found: Bisection) -> bool:
    return found.verified is not None and found.verified.ok and "revert" in found.verified.by


def _observation(judge: Judge, run: Run, *, reused: bool) -> Observation:
    outcome, reason = judge(run)
    shown = run.signature.text if run.signature else None
    return Observation(run.sha, outcome, shown, round(run.seconds, 3), reason, reused)


def _culprit(git: Git, sha: str) -> Culprit:
    commit = git.commit(sha)
    return Culprit(sha, commit.subject, commit.author, commit.date.isoformat())


def _points(hunt: Hunt, computed: Sequence[float], said: Sequence[float]) -> Iterable[Point]:
    """Each commit with what is stated of it; what is stated of the likeliest one is stated of its descendants too."""
    history, best = hunt.history, max(range(len(computed)), key=computed.__getitem__)
    doubt = 1 - computed[best]
    scale = (1 - said[best]) / doubt if doubt > 0 and best < len(history) else 1.0
    for at, sha in enumerate(history.shas):
        has = scale * hunt.state.contains(at)
        if best < len(history) and history.contains[at] >> best & 1:
            has += said[best] - scale * computed[best]
        broken = round(1 - has if hunt.find_fix else has, 4)
        yield Point(sha, said[at], broken, history.parents[at])


def _rates(hunt: Hunt) -> RatesSeen:
    bad, good = (_summary(rates) for rates in hunt.state.failure_rates())
    if not hunt.find_fix:
        return RatesSeen(bad, good)
    return RatesSeen(_complement(good), _complement(bad))


def _flat_rates(observations: tuple[Observation, ...]) -> RatesSeen:
    counted = [seen for seen in observations if seen.outcome in {"pass", "fail"}]
    if not counted:
        return RatesSeen(_UNKNOWN, _UNKNOWN)
    share = sum(seen.outcome == "fail" for seen in counted) / len(counted)
    return RatesSeen((share, 0.0, 1 - 0.05 ** (1 / len(counted))), _UNKNOWN)


def _summary(rates: list[tuple[float, float]]) -> tuple[float, float, float]:
    """Mean and the bounds of the middle 90 %."""
    total = sum(mass for _, mass in rates)
    if total <= 0:
        return _UNKNOWN
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


def _complement(rates: tuple[float, float, float]) -> tuple[float, float, float]:
    mean, low, high = rates
    return round(1 - mean, 4), round(1 - high, 4), round(1 - low, 4)


def _share(rates: tuple[float, float, float]) -> str:
    mean, low, high = rates
    return f"{mean:.0%}" if high - low < 0.005 else f"{mean:.0%} ({low:.0%} to {high:.0%})"


def _extent(span: Searched) -> str:
    commits, merges = ("" if number == 1 else "s" for number in (span.commits, span.merges))
    return f"{span.commits} commit{commits}, {span.merges} merge{merges}"


def _package(one: Dependency) -> str:
    return f"{one.name} {one.old or 'absent'} -> {one.new or 'removed'} ({one.probability:.1%}, in {one.path})"


def _escape(words: str) -> str:
    """Keep words from becoming markup, mentions or table cells."""
    for sign in "\\`*_[]<>|#":
        words = words.replace(sign, f"\\{sign}")
    return words.replace("@", "@\u200b").replace("\n", " ")
