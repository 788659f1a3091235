"""What people read of a proof: the line of the check run, and the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from regreen.bot.messages.causes import describe_repetition
from regreen.bot.messages.markup import (
    add_verdict,
    code_span,
    count_noun,
    explain_neutral,
    inline_prose,
    to_plain_line,
)
from regreen.domain.github import CheckRun, Conclusion
from regreen.domain.models import Cost
from regreen.proofs.prove import ProofResult

PROOF_CHECK = "regreen/prove"
_MAX_TITLE_CHARS = 140
_MAX_ROWS = 20
_UNJUDGED = "what could not be judged blocks nothing"
_TESTS_FAIL = "tests fail at this commit"
_RED_HEAD = f"{_TESTS_FAIL}, which is for the project's own CI to block"
UNJUDGED_FAULTS = f"faults in the changed lines are not judged: {_TESTS_FAIL}"
_MOSTLY_UNNOTICED = (
    "more than half of the faults that were tried pass unnoticed, and no weak proof blocks a merge"
)


def describe_mutants(result: ProofResult, show_path: Callable[[str], str] = str) -> str:
    """How many faults in the changed lines no test of the changed test files noticed; "" where none was tried.

    `show_path` makes of a path, which comes from the pull request, what may stand in the text.
    """
    by = _name_test_files(result, show_path)
    lived, total = _count_faults(result)
    how = f"{lived} of {total} faults in the changed lines are not" if lived else ""
    how = how or (f"all {total} faults in the changed lines are" if total else "")
    not_run = _describe_functions_not_run(result, show_path)
    parts = [f"{how} noticed by {by}"] if how else []
    return "; ".join([*parts, *([f"{not_run} by {by}"] if not_run else [])])


def _count_faults(result: ProofResult) -> tuple[int, int]:
    """How many faults no test noticed, and how many were tried, in what the tests run."""
    tried = [mutant for mutant in result.mutants if mutant.is_run]
    return sum(mutant.killed_by is None for mutant in tried), len(tried)


def _describe_functions_not_run(result: ProofResult, show: Callable[[str], str] = str) -> str:
    """The changed functions that none of the tests runs; "" where they run all."""
    names = list(dict.fromkeys(one.function for one in result.mutants if not one.is_run))
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    verb = "is" if len(names) == 1 else "are"
    return f"{', '.join(map(show, names[:3]))}{more} {verb} not run" if names else ""


def _name_test_files(result: ProofResult, show_path: Callable[[str], str]) -> str:
    paths = {test.test.partition("::")[0] for test in result.tests}
    return show_path(next(iter(paths))) if len(paths) == 1 else "the changed test files"


def _name_verdict(verdict: str) -> str:
    return verdict.replace("_", " ")


def describe_extent(result: ProofResult) -> str:
    """How much of the change the tests prove, where faults in it pass unnoticed; "" where all of it."""
    show_name = partial(code_span, limit=100)
    if result.verdict != "proven" or not (head := _name_extent(result, show_name)):
        return ""
    noticed: dict[str, bool] = {}
    for mutant in result.mutants:
        if (name := mutant.function) and mutant.is_run:
            noticed[name] = noticed.get(name, False) or mutant.killed_by is not None
    silent = [name for name, is_noticed in noticed.items() if not is_noticed]
    names = ", ".join(map(show_name, silent[:5]))
    more = f" and {len(silent) - 5} more" if len(silent) > 5 else ""
    where = f", all of those in {names}{more}" if silent else ""
    test = f", or a test of {names}{more}" if silent else ""
    step = f" Add an assertion that fails with the faults below{test}."
    border = f" A proof is weak where more than half do.{step}" if _is_weak(result) else ""
    return f"**{head}**{where}.{border}"


def _name_extent(result: ProofResult, show: Callable[[str], str] = str) -> str:
    """What the tests leave open of the change; "" for nothing."""
    lived, total = _count_faults(result)
    not_run = _describe_functions_not_run(result, show)
    not_run += " by its tests" if not_run else ""
    if _is_weak(result):
        needing = sum(test.verdict == "proven" for test in result.tests)
        tests = f"{count_noun(needing, 'test')} need{'s' if needing == 1 else ''} the change"
        weak = f"Weak proof: {tests}, {lived} of {total} faults pass unnoticed"
        return "; ".join(filter(None, [weak, not_run]))
    faults = f"{lived} of {total} faults in the changed lines would pass unnoticed" if lived else ""
    parts = [part for part in (not_run, faults) if part]
    return f"Proven, but {', and '.join(parts)}" if parts else ""


def _is_weak(result: ProofResult) -> bool:
    """Whether more than half of the faults that were tried pass unnoticed."""
    lived, tried = _count_faults(result)
    return result.verdict == "proven" and 2 * lived > tried


def format_proof(result: ProofResult) -> str:
    """The report on the terminal."""
    extent = _name_extent(result) if result.verdict == "proven" else ""
    verdict = extent[:1].lower() + extent[1:] or _name_verdict(result.verdict)
    lines = [f"{verdict}: {result.reason}", ""]
    for test in result.tests:
        lines += [f"  {test.test}", f"    {_name_verdict(test.verdict)}: {test.reason}"]
    lived = [one for one in result.mutants if one.killed_by is None and one.is_run]
    if mutants_line := describe_mutants(result):
        lines += ["", f"{mutants_line}:" if lived else mutants_line]
        lines += [f"  {mutant.path}:{mutant.line}: {mutant.change}" for mutant in lived]
    if not_run := len(result.mutants) - _count_faults(result)[1]:
        lines.append(
            f"{not_run} more {'fault is' if not_run == 1 else 'faults are'} in functions that are not run"
        )
    if result.mutants:
        lines.append("only the changed test files were run; other tests may fail at this commit")
    if result.claims:
        lines += ["", "claims:"]
    holds = {True: "holds", False: "does not hold", None: "not known"}
    lines += [f"  {claim.text}: {holds[claim.holds]} ({claim.reason})" for claim in result.claims]
    if result.census:
        lines += ["", "what the change takes from the tests:"]
    lines += [f"  {reason.check}: {reason.detail}" for reason in result.census]
    spent = ", ".join(f"{name} {value:.1f} s" for name, value in result.seconds.items())
    return "\n".join([*lines, "", spent])


def proof_check(
    head_sha: str,
    result: ProofResult,
    *,
    required: bool,
    repeat: str = "",
    page: str = "",
    failing: Sequence[str] = (),
    earlier: str = "",
) -> CheckRun:
    """The verdict on a pull request's tests; it fails only where it is `required` and they do not hold.

    `earlier` names the commit and time at which it was judged, where nothing ran now. It is neutral where most of the faults that were tried pass unnoticed. `failing` are the tests that fail at this commit: then it is never green, and says nothing of faults, which those
    tests might notice once they pass.
    """
    is_empty = result.verdict == "nothing_to_prove"
    unjudged = "" if not failing else _TESTS_FAIL if is_empty else UNJUDGED_FAULTS
    result = judge_at_commit(result, failing)
    is_weak = _is_weak(result)
    is_held = result.verdict in {"proven", "nothing_to_prove"} and not failing and not is_weak
    held: Conclusion = "success" if is_held else "neutral"
    failed = required and result.verdict in {"not_discriminating", "refused"}
    title = to_plain_line(_make_title(result, unjudged), _MAX_TITLE_CHARS)
    rows = [
        f"- {code_span(test.test, 200)}: **{_name_verdict(test.verdict)}**, {inline_prose(test.reason, 500)}"
        for test in result.tests[:_MAX_ROWS]
    ]
    single = result.verdict == "proven" and len(rows) == 1  # then its row says it all
    reason, extent = inline_prose(result.reason), describe_extent(result)
    verdict = reason if extent else f"**{_name_verdict(result.verdict).capitalize()}**: {reason}"
    parts = ["\n".join(rows)] if single else [verdict, "\n".join(rows)]
    parts.insert(0, extent)
    show_path = partial(code_span, limit=200)
    if mutants_line := describe_mutants(result, show_path):
        unnoticed = _list_unnoticed(result)
        if extent:  # the first line has the numbers
            by = _name_test_files(result, show_path)
            mutants_line = f"these faults are not noticed by {by}" if unnoticed else ""
        end = ":\n\n" if unnoticed else "." if mutants_line else ""
        how = (
            " (each line below was put in the place of the one in the change, and none of these tests failed)"
            if unnoticed
            else ""
        )
        parts.append(mutants_line[:1].upper() + mutants_line[1:] + how + end + "\n".join(unnoticed))
    elif result.verdict == "proven" and not unjudged:
        parts.append("No fault was tried in the changed lines.")
    if unjudged:
        names = ", ".join(code_span(name, 100) for name in failing[:5])
        more = f" and {len(failing) - 5} more" if len(failing) > 5 else ""
        parts.append(f"{unjudged[:1].upper()}{unjudged[1:]} ({names}{more}). Repair them first.")
    holds = {True: "holds", False: "does not hold", None: "not known"}
    parts += [
        "\n".join(
            f"- {code_span(claim.text, 100)}: {holds[claim.holds]}, {inline_prose(claim.reason, 300)}"
            for claim in result.claims[:_MAX_ROWS]
        )
    ]
    parts += ["\n".join(f"- {inline_prose(one.detail, 300)}" for one in result.census[:_MAX_ROWS])]
    if held == "neutral" and not failed:
        why = "`prove.required` is false, so no proof blocks a merge"
        why = _UNJUDGED if result.verdict == "inconclusive" else why
        why = _MOSTLY_UNNOTICED if is_weak else why
        parts.append(explain_neutral(_RED_HEAD if failing else why))
    spent = sum(result.seconds.values()) - result.seconds.get("tests", 0)  # which are in the proof
    cost = Cost().describe(spent)  # and it asks no model
    parts.append(
        f"Judged at {earlier}; nothing that this rests on has changed since, so nothing ran again. {cost.replace('Cost', 'Cost then')}"
        if earlier
        else cost
    )
    summary = "\n\n".join([*(part for part in parts if part), *describe_repetition(repeat)])
    check = CheckRun(
        PROOF_CHECK,
        head_sha,
        _make_id(head_sha),
        title,
        summary,
        "failure" if failed else held,
        details_url=page,
    )
    return add_verdict(check, result.verdict, tests=len(result.tests))


def judge_at_commit(result: ProofResult, failing: Sequence[str]) -> ProofResult:
    """The result; where tests fail at the commit, without what rests on faults that no test noticed."""
    if not failing:
        return result
    why = UNJUDGED_FAULTS
    tests = tuple(
        replace(test, verdict="inconclusive", reason=why)
        if test.verdict == "not_discriminating"
        else test
        for test in result.tests
    )
    result = replace(result, mutants=(), tests=tests)
    if result.verdict == "not_discriminating":
        return replace(result, verdict="inconclusive", reason=why)
    return result


def _make_title(result: ProofResult, unjudged: str) -> str:
    proven = [test.test.rpartition("::")[2] for test in result.tests if test.verdict == "proven"]
    if result.verdict != "proven" or not proven:
        red = f"; {unjudged}" if unjudged == _TESTS_FAIL else ""
        return f"{_name_verdict(result.verdict).capitalize()}: {result.reason}{red}"
    others = f" and {len(proven) - 1} more" if len(proven) > 1 else ""
    mutants_line = unjudged or describe_mutants(result)
    if not unjudged and (extent := _name_extent(result)):
        return extent
    return f"Proven by {proven[0]}{others}" + (f"; {mutants_line}" if mutants_line else "")


def _list_unnoticed(result: ProofResult) -> list[str]:
    """A row for each line with faults that no test noticed, with the first of them."""
    lines: dict[tuple[str, int], list[str]] = {}
    for one in result.mutants:
        if one.killed_by is None and one.is_run:
            lines.setdefault((one.path, one.line), []).append(one.change)
    return [
        f"- {code_span(f'{path}:{line}', 200)}: {code_span(changes[0], 150)}"
        + (f" and {len(changes) - 1} more" if len(changes) > 1 else "")
        for (path, line), changes in list(lines.items())[:_MAX_ROWS]
    ]


def unproven_check(head_sha: str, reason: str, repeat: str) -> CheckRun:
    """The tests could not be judged, and why."""
    title = to_plain_line(f"Inconclusive: {reason}", _MAX_TITLE_CHARS)
    neutral = explain_neutral(_UNJUDGED)
    summary = "\n\n".join([inline_prose(reason), neutral, *describe_repetition(repeat)])
    check = CheckRun(PROOF_CHECK, head_sha, _make_id(head_sha), title, summary, "neutral")
    return add_verdict(check, "inconclusive")


def _make_id(head_sha: str) -> str:
    return f"prove-{head_sha[:24]}"
