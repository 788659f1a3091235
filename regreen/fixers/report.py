"""Renders a repair: for a terminal, and as Markdown for a pull request's body."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from regreen.code.diff import parse
from regreen.domain.models import Failure
from regreen.environment.preparation import render_environment
from regreen.fixers.case import (
    Attempt,
    AttemptOutcome,
    FixResult,
    GuiltyCommit,
    Hypothesis,
    OtherJobRun,
)
from regreen.secrets import markdown_sanitizer
from regreen.secrets.markdown_sanitizer import code_span, count_noun, format_probability

_OUTCOME_TEXTS = {
    "fixed": "fixed",
    "flaky": "flaky: the same commit sometimes passes and sometimes fails; make the test reliable, or quarantine it",
    "not_reproduced": "not reproduced",
    "gave_up": "no fix found",
    "needs_human": "a patch works and needs a person's approval",
    "denied": "a patch made the command pass, but the patch safety checks refused it",
    "out_of_budget": "the budget was used up before a fix was found",
    "already_green": "the command passes; nothing to fix",
}
_ATTEMPT_OUTCOMES = {
    "still_red": "still fails",
    "nothing_proposed": "no patch",
    "needs_human": "needs approval",
}
_GATE_WORDS = {"allow": "passed", "deny": "refused", "needs_human": "a person has to decide"}
_MAX_SHOWN_FILES = 5
_MAX_REPORT_CHARS = 60_000
_MAX_FAILURES = 10


def format_text(result: FixResult) -> str:
    """The result for a terminal."""
    return "\n".join(_text_lines(result))


def _text_lines(result: FixResult) -> Iterator[str]:
    head = _OUTCOME_TEXTS[result.outcome]
    yield f"{head} ({result.rung})" if result.rung else head
    if result.reason:
        yield f"  {result.reason}"
    yield f"command: {result.before.command} (exit {_format_exit_code(result.before.exit_code)})"
    for failure in result.before.failures[:_MAX_FAILURES]:
        yield "  " + format_failure(failure).replace("\n", "\n      ")
    if len(result.before.failures) > _MAX_FAILURES:
        yield f"  and {len(result.before.failures) - _MAX_FAILURES} more"
    if result.cause:
        yield f"cause: {result.cause}"
    if result.after:
        number = result.after.kept
        passes = "passes" if number == 1 else "pass"
        kept = f"; {count_noun(number, 'test')} that passed before still {passes}" if number else ""
        yield f"after: passes in {result.after.reruns} fresh runs{kept}"
    if result.gate:
        yield f"patch safety checks: {_GATE_WORDS[result.gate.verdict]}"
        for reason in result.gate.reasons:
            yield f"  {reason.check}: {reason.detail}"
    yield from (f"{name}: {end}" for name, end in _describe_other_jobs(result.other_jobs))
    for attempt in result.attempts:
        if result.outcome == "fixed" and attempt.patch != result.patch:
            continue  # what did not help is in the JSON
        yield f"tried {attempt.rung}: {attempt.summary}: {name_attempt_outcome(attempt.outcome)} ({attempt.seconds:.0f} s)"
    yield from (
        f"hypothesis {one.outcome}: {one.claim} ({one.experiment})" for one in result.hypotheses
    )
    for hint in result.hints:
        yield f"hint: {hint}"
    yield from (f"repeat {what}: {command}" for what, command in _label_repeat_commands(result))
    if result.patch:
        yield "apply it: run the same command with --apply, or `git apply` the patch below; undo it with `git apply -R`"
        yield ""
        yield result.patch.rstrip("\n")


def format_markdown(
    result: FixResult, *, branch: str | None = None, is_waiting: bool = False, fetch: str = ""
) -> str:
    """The result as markdown: everything here was computed, nothing was taken on trust.

    Where the patch is on a `branch`, it is fetched from there; a pull request shows its own diff. `is_waiting`: the
    text above says that the patch waits for approval, and why. `fetch` brings a fork's commits to a clone.
    """
    body = "\n".join(_markdown_lines(result, branch=branch, is_waiting=is_waiting, fetch=fetch))
    return (
        body
        if len(body) <= _MAX_REPORT_CHARS
        else body[:_MAX_REPORT_CHARS] + "\n\n(cut: the whole report is on the dashboard)"
    )


def describe_changed_files(patch: str) -> str:
    """The files that a patch changes, each with how many lines come and go; "" without a patch."""
    files = parse(patch).files
    shown = ", ".join(
        f"{code_span(f.path, 200)} (+{len(f.added_lines)} -{len(f.removed_lines)})"
        for f in files[:_MAX_SHOWN_FILES]
    )
    left = len(files) - _MAX_SHOWN_FILES
    more = f" and {count_noun(left, 'more file')}" if left > 0 else ""
    return f"The patch changes {shown}{more}." if files else ""


def describe_blame(culprit: GuiltyCommit) -> str:
    """Who made the commit and when, and how sure a bisection is of it, as far as it is known."""
    who = f"by {culprit.author} on {culprit.date[:10]}" if culprit.author else ""
    share = culprit.probability
    sure = "" if share is None else f"probability {format_probability(share)}"
    return ", ".join(filter(None, (who, sure)))


def _markdown_lines(
    result: FixResult, *, branch: str | None, is_waiting: bool, fetch: str
) -> Iterator[str]:
    yield _first_line(result, branch=branch, is_waiting=is_waiting)
    # on a branch, or where the patch waits, the paragraph above has named them
    if result.patch and branch is None and not is_waiting:
        yield f"\n{describe_changed_files(result.patch)}"
    yield from _cause_lines(result)
    yield from _proof_table(result)
    if result.after and not _ran_tests(result):
        yield "\nNot checked: the project's tests were not run with this patch, because no test command is known beside the command that failed."
    yield from _gate_lines(result)
    yield from _other_job_lines(result)
    if result.reflection:
        yield f"\n**Summary.** {_sanitize_text(result.reflection)}"
    if result.hints and result.outcome != "fixed":
        yield "\n**Hints.**"
        yield from (f"- {_sanitize_text(hint)}" for hint in result.hints[:10])
    if result.before.failures:
        failures = "\n".join(format_failure(failure) for failure in result.before.failures[:20])
        yield _make_details("How it failed", _make_code_block(failures))
    yield from _hypothesis_lines(result.hypotheses)
    yield from _attempts_table(result.attempts, result.cost.describe(result.seconds))
    if labelled := list(_label_repeat_commands(result)):
        rows = [f"# repeat {what}\n{command}" for what, command in labelled]
        yield _make_details("Repeat what ran", _make_code_block("\n".join(rows), "sh"))
    if result.patch:
        yield _make_details(
            "Apply, check and undo it by hand",
            _make_code_block("\n".join(_manual_steps(result, branch, fetch)), "sh"),
        )
        if branch is None:
            yield _make_details("The patch", _fence_patch(result.patch))
    if shown := render_environment(result.environment):
        yield f"\n{shown}"


def _cause_lines(result: FixResult) -> Iterator[str]:
    """Why it fails, and which commit broke it, with how sure that is."""
    culprit, cause = result.culprit, result.cause or ""
    blame = _sanitize_text(describe_blame(culprit)) if culprit else ""
    if culprit and result.rung == "revert":
        about = ", ".join(filter(None, (_sanitize_text(culprit.subject), blame)))
        yield (
            f"\n{code_span(culprit.sha[:12])} ({about}) broke it, and this takes it back. If that change was "
            "meant, close this and update the failing tests instead."
        )
    if result.rung == "shrink":
        yield (
            "\nThis takes back a part of the change. If that part was meant, close this and update the failing "
            "tests instead."
        )
    if result.reason:
        yield f"\n{_sanitize_text(result.reason)}"
    if cause and not (result.rung == "revert" and culprit):
        origin = f" (the commit is {blame})" if culprit and culprit.sha[:12] in cause else ""
        yield f"\n**Cause.** {_sanitize_sentence(cause)}{origin if blame else ''}"
    if culprit and culprit.sha[:12] not in cause:
        about = " ".join(filter(None, (_sanitize_text(culprit.subject), blame and f"({blame})")))
        yield f"\n**Broken by** {code_span(culprit.sha[:12])} {about}"


def _first_line(result: FixResult, *, branch: str | None, is_waiting: bool) -> str:
    """The outcome and what was done; what waits, or is on a branch, has its headline above."""
    accepted = next(
        (one for one in result.attempts if one.patch and one.patch == result.patch), None
    )
    what = _sanitize_text(accepted.summary) if accepted else ""
    if is_waiting or branch:
        return f"The patch: {what or result.rung or 'see below'}"
    head = f"**{_sanitize_sentence(_OUTCOME_TEXTS[result.outcome])}**"
    return f"{head}: {what}" if what else f"{head} ({result.rung})" if result.rung else head


_OTHER_JOB_OUTCOMES = {
    "passed": "passes",
    "red_before": "fails with and without the patch",
    "red": "fails; it was never reached before",
    "broken": "fails, and passes without the patch",
    "not_run": "not run",
}


def _describe_other_jobs(runs: Sequence[OtherJobRun]) -> Iterator[tuple[str, str]]:
    for run in runs:
        word = _OTHER_JOB_OUTCOMES[run.outcome]
        yield run.name, f"{word}: {run.detail}" if run.detail else word


def _label_repeat_commands(result: FixResult) -> Iterator[tuple[str, str]]:
    """The commands that repeat a run, each with what it repeats."""
    both = len(result.repeat) == 2
    yield from zip(
        ("the failure", "the run with the patch") if both else ("it",), result.repeat, strict=False
    )


def _other_job_lines(result: FixResult) -> Iterator[str]:
    if result.other_jobs:
        yield "\n**Other jobs of the workflow, with the patch:**\n"
    for name, end in _describe_other_jobs(result.other_jobs):
        yield f"- {_sanitize_text(name)}: {_sanitize_text(end)}"


def _proof_table(result: FixResult) -> Iterator[str]:
    """A table of the runs before and after the patch; none where the command did not run."""
    before = result.before
    if not before.command or (before.exit_code is None and not before.failures):
        return
    lines = result.before.command.strip().splitlines()
    command = _escape_cell(code_span(lines[0] + (" …" if len(lines) > 1 else ""), 120))
    at = f" at {code_span(result.rev[:12])}" if result.rev else ""
    yield "\n| | exit | fails |\n| --- | --- | --- |"
    yield f"| {command}{at} | {_format_exit_code(result.before.exit_code)} | {_list_failures(result.before.failures) if result.before.failures or result.before.exit_code else 'nothing'} |"
    if result.after is None:
        return
    times = f"with the patch, {result.after.reruns} times, each in a fresh sandbox"
    left = _list_failures(result.after.failures) if result.after.failures else "nothing"
    yield f"| {times} | {_format_exit_code(result.after.exit_code)} | {left} |"
    if result.after.kept:
        kept = result.after.kept
        tests = "the one test" if kept == 1 else f"the {kept} tests"
        yield f"| {tests} that passed before, with the patch | | nothing |"
    if result.strength and result.strength.mutants:
        killed, made = result.strength.killed, result.strength.mutants
        yield f"| {made} faults put into the patched lines, one at a time | | {killed} are noticed by the tests |"


def _ran_tests(result: FixResult) -> bool:
    """Whether tests ran with the patch, or the safety checks or other jobs say what is known of them."""
    told = [failure.names_test for failure in result.before.failures]
    told += [reason.check == "suite" for reason in (result.gate.reasons if result.gate else ())]
    told += [run.outcome == "passed" for run in result.other_jobs]
    return any(told) or bool(result.after and result.after.kept)


def _list_failures(failures: Sequence[Failure]) -> str:
    if not failures:
        return "the command"
    names = ", ".join(
        _escape_cell(
            markdown_sanitizer.escape_line(failure.test or failure.path or failure.kind, 80)
        )
        for failure in failures[:2]
    )
    more = f" and {len(failures) - 2} more" if len(failures) > 2 else ""
    return f"{len(failures)}: {names}{more}"


_VERDICT_TEXTS = {
    "allow": "**Patch safety checks passed:** the tests and their configuration are unchanged, none is skipped or weakened, "
    "no exception is swallowed, and no sensitive file or new dependency is touched.",
    "needs_human": "What the patch safety checks leave to a person:\n",
    "deny": "**Patch safety checks refused it:**",
}


def _gate_lines(result: FixResult) -> Iterator[str]:
    if result.gate is None:
        return
    yield f"\n{_VERDICT_TEXTS[result.gate.verdict]}"
    weighing = [reason for reason in result.gate.reasons if reason.level in {"deny", "needs_human"}]
    notes = [reason for reason in result.gate.reasons if reason not in weighing]
    yield from (f"- {_sanitize_sentence(reason.detail)}" for reason in weighing)
    if notes:
        yield f"{'' if result.gate.verdict == 'allow' else chr(10)}Notes:"
        yield from (f"- {_sanitize_sentence(note.detail)}" for note in notes[:8])


def _manual_steps(result: FixResult, branch: str | None, fetch: str) -> Iterator[str]:
    if fetch:
        yield fetch
    yield f"git checkout {result.rev[:12] or '(the commit that failed)'}"
    if result.setup and len(result.setup) < 600:
        yield result.setup
    yield f"{result.before.command.strip()}  # exit {_format_exit_code(result.before.exit_code)}"
    yield (
        f"git fetch origin {branch} && git checkout FETCH_HEAD"
        if branch
        else "git apply fix.patch  # the patch below, as a file"
    )
    yield f"{result.before.command.strip()}  # exit {_format_exit_code(result.after.exit_code if result.after else None)}"
    yield (
        "# after merging, undo it: the button Revert of this pull request, or git revert COMMIT (of a merge: -m 1)"
        if branch
        else "git apply -R fix.patch  # takes the patch back"
    )


def _hypothesis_lines(hypotheses: Sequence[Hypothesis]) -> Iterator[str]:
    if hypotheses:
        rows = ["| hypothesis | experiment | outcome |", "| --- | --- | --- |"]
        for one in hypotheses:
            command = _escape_cell(code_span(one.experiment, 160)) if one.experiment else ""
            rows.append(
                f"| {_escape_cell(_sanitize_text(one.claim))} | {command} | {one.outcome} |"
            )
        yield _make_details(f"Hypotheses ({len(hypotheses)})", "\n".join(rows))


def _attempts_table(attempts: Sequence[Attempt], cost: str) -> Iterator[str]:
    if attempts:
        rows = ["| strategy | what | outcome | seconds | $ |", "| --- | --- | --- | --- | --- |"]
        for attempt in attempts:
            detail = attempt.detail
            for reason in attempt.gate.reasons if attempt.gate else ():
                # the names of checks are for the JSON document and the terminal
                detail = detail.replace(f"{reason.check}: {reason.detail}", reason.detail)
            why = f": {_escape_cell(markdown_sanitizer.escape_line(detail, 160))}" if detail else ""
            result = f"{name_attempt_outcome(attempt.outcome)}{why}"
            rows.append(
                f"| {attempt.rung} | {_escape_cell(_sanitize_text(attempt.summary))} | {result} | {attempt.seconds:.0f} | {attempt.usd:.2f} |"
            )
        yield _make_details(
            f"What was tried ({len(attempts)}), and its cost", "\n".join([*rows, "", cost])
        )
    else:
        yield f"\n<sub>{cost}</sub>"


def name_attempt_outcome(outcome: AttemptOutcome) -> str:
    """How an attempt ended, in words."""
    return _ATTEMPT_OUTCOMES.get(outcome, outcome.replace("_", " "))


def _make_details(title: str, inner: str) -> str:
    return f"\n<details><summary>{title}</summary>\n\n{inner}\n\n</details>"


_LITERAL_START = re.compile(r"[0-9a-f]{12}\b|\S*[/.]\S")
"""A commit or a path, which keeps its letters."""


def _sanitize_sentence(words: str) -> str:
    return capitalize_sentence(_sanitize_text(words))


def capitalize_sentence(sentence: str) -> str:
    """A text with a capital at its start, where that is no commit or path."""
    return sentence if _LITERAL_START.match(sentence) else sentence[:1].upper() + sentence[1:]


def format_failure(failure: Failure) -> str:
    """One failure on one line."""
    place = f"{failure.path}:{failure.line}" if failure.path and failure.line else ""
    where = f" ({place})" if place and not failure.test.startswith(place) else ""
    text = failure.message if failure.test.endswith(f": {failure.kind}") else failure.summary
    return f"{failure.test}{where}: {text[:220]}"  # a message can end with the marks of a diff


def _sanitize_text(words: str) -> str:
    return markdown_sanitizer.escape_line(words, 600)


def _escape_cell(markdown: str) -> str:
    """Markdown for a table cell. A pipe after a backslash becomes an entity, since the backslash would undo its escaping."""
    return markdown.replace("\\|", "\\│").replace("|", "\\|")


def _make_code_block(words: str, language: str = "") -> str:
    return markdown_sanitizer.code_block(words, language, limit=len(words))


def _fence_patch(patch: str) -> str:
    """The patch in a fence that it cannot close."""
    fence = "```"
    while fence in patch:
        fence += "`"
    return f"{fence}diff\n{patch.rstrip()}\n{fence}"


def _format_exit_code(code: int | None) -> str:
    return "cut off" if code is None else str(code)
