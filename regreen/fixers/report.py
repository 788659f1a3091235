"""Renders a repair: for a terminal, and as Markdown for a pull request's body."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from regreen.code import markdown_sanitizer
from regreen.code.markdown_sanitizer import code_span
from regreen.domain.models import Failure
from regreen.environment.preparation import render_environment
from regreen.fixers.case import Attempt, FixResult

_OUTCOME_TEXTS = {
    "fixed": "fixed",
    "flaky": "flaky: the same commit is now green, now red",
    "not_reproduced": "not reproduced",
    "gave_up": "no honest fix found",
    "needs_human": "a patch works, and needs a person's approval",
    "denied": "a patch made it green, and the gate refused it",
    "out_of_budget": "out of budget before a fix was found",
    "already_green": "green already",
}
_MAX_REPORT_CHARS = 60_000
_MAX_FAILURES = 10


def format_text(result: FixResult) -> str:
    """The result for a terminal."""
    return "\n".join(_text_lines(result))


def _text_lines(result: FixResult) -> Iterator[str]:
    head = _OUTCOME_TEXTS[result.outcome]
    yield f"{head} (by the {result.rung} rung)" if result.rung else head
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
        kept = (
            f"; the {result.after.kept} tests that passed before pass still"
            if result.after.kept
            else ""
        )
        yield f"after: green in {result.after.reruns} fresh runs{kept}"
    if result.gate:
        yield f"gate: {result.gate.verdict}"
        for reason in result.gate.reasons:
            yield f"  {reason.check}: {reason.detail}"
    for attempt in result.attempts:
        yield f"tried {attempt.rung}: {attempt.summary}: {attempt.outcome} ({attempt.seconds:.0f} s)"
    for hint in result.hints:
        yield f"hint: {hint}"
    if result.patch:
        yield ""
        yield result.patch.rstrip("\n")


def format_markdown(result: FixResult, *, branch: str | None = None) -> str:
    """The result as markdown: everything here was computed, nothing was taken on trust.

    Where the patch is on a `branch`, it is fetched from there; a pull request shows its own diff.
    """
    body = "\n".join(_markdown_lines(result, branch=branch))
    return (
        body
        if len(body) <= _MAX_REPORT_CHARS
        else body[:_MAX_REPORT_CHARS] + "\n\n(cut: the whole report is on the dashboard)"
    )


def _markdown_lines(result: FixResult, *, branch: str | None) -> Iterator[str]:
    accepted = next(
        (attempt for attempt in result.attempts if attempt.patch and attempt.patch == result.patch),
        None,
    )
    how = f", by the *{result.rung}* rung" if result.rung else ""
    what = f": {_sanitize_text(accepted.summary)}" if accepted and accepted.summary else ""
    yield f"**{_OUTCOME_TEXTS[result.outcome]}**{how}{what}"
    if result.reason:
        yield f"\n{_sanitize_text(result.reason)}"
    if result.cause:
        yield f"\n**Cause.** {_capitalize_sentence(result.cause)}"
    if result.culprit and result.culprit.sha[:12] not in (result.cause or ""):
        yield f"\n**Broken by** {code_span(result.culprit.sha[:12])} {_sanitize_text(result.culprit.subject)}"
    yield from _proof_table(result)
    yield from _gate_lines(result)
    if result.reflection:
        yield f"\n**Looking back.** {_sanitize_text(result.reflection)}"
    if result.hints and result.outcome != "fixed":
        yield "\n**Hints.**"
        yield from (f"- {_sanitize_text(hint)}" for hint in result.hints[:10])
    if result.cost.calls:
        yield f"\nCost: ${result.cost.usd:.2f}, {result.cost.calls} model calls; {result.seconds:.0f} s."
    if result.before.failures:
        told = "\n".join(format_failure(failure) for failure in result.before.failures[:20])
        yield _make_details("How it failed", _make_code_block(told))
    yield from _attempts_table(result.attempts)
    if result.patch:
        yield _make_details(
            "Try it by hand", _make_code_block("\n".join(_manual_steps(result, branch)), "sh")
        )
        if branch is None:
            yield _make_details("The patch", _fence_patch(result.patch))
    if shown := render_environment(result.environment):
        yield f"\n{shown}"


def _proof_table(result: FixResult) -> Iterator[str]:
    """A table of the runs before and after the patch."""
    lines = result.before.command.strip().splitlines() or ["the command"]
    command = _escape_cell(code_span(lines[0] + (" …" if len(lines) > 1 else ""), 120))
    at = f" at {code_span(result.rev[:12])}" if result.rev else ""
    yield "\n| | exit | fails |\n| --- | --- | --- |"
    yield f"| {command}{at} | {_format_exit_code(result.before.exit_code)} | {_list_failures(result.before.failures)} |"
    if result.after is None:
        return
    times = f"with the patch, {result.after.reruns} times, each in a fresh box"
    left = _list_failures(result.after.failures) if result.after.failures else "nothing"
    yield f"| {times} | {_format_exit_code(result.after.exit_code)} | {left} |"
    if result.after.kept:
        kept = result.after.kept
        before = "the one test" if kept == 1 else f"the {kept} tests"
        yield f"| {before} that passed before, with the patch | | nothing |"
    if result.strength and result.strength.mutants:
        killed, made = result.strength.killed, result.strength.mutants
        yield f"| {made} faults put into the patched lines, one at a time | | {killed} are noticed by the tests |"


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
    "allow": "**The gate** held the patch against what cheats do, and let it through.",
    "needs_human": "**A person has to agree**, because:",
    "deny": "**The gate** refused it, because:",
}


def _gate_lines(result: FixResult) -> Iterator[str]:
    if result.gate is None:
        return
    yield f"\n{_VERDICT_TEXTS[result.gate.verdict]}"
    weighing = [reason for reason in result.gate.reasons if reason.level in {"deny", "needs_human"}]
    notes = [reason for reason in result.gate.reasons if reason not in weighing]
    yield from (f"- {_capitalize_sentence(reason.detail)} ({reason.check})" for reason in weighing)
    if notes:
        yield f"{'' if result.gate.verdict == 'allow' else chr(10)}To know:"
        yield from (f"- {_capitalize_sentence(note.detail)} ({note.check})" for note in notes[:8])


def _manual_steps(result: FixResult, branch: str | None) -> Iterator[str]:
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


def _attempts_table(attempts: Sequence[Attempt]) -> Iterator[str]:
    if attempts:
        rows = ["| rung | what | outcome | seconds | $ |", "| --- | --- | --- | --- | --- |"]
        for attempt in attempts:
            why = (
                f": {_escape_cell(markdown_sanitizer.escape_line(attempt.detail, 160))}"
                if attempt.detail
                else ""
            )
            result = f"{attempt.outcome.replace('_', ' ')}{why}"
            rows.append(
                f"| {attempt.rung} | {_escape_cell(_sanitize_text(attempt.summary))} | {result} | {attempt.seconds:.0f} | {attempt.usd:.2f} |"
            )
        yield _make_details(f"What was tried ({len(attempts)})", "\n".join(rows))


def _make_details(title: str, inner: str) -> str:
    return f"\n<details><summary>{title}</summary>\n\n{inner}\n\n</details>"


def _capitalize_sentence(words: str) -> str:
    sentence = _sanitize_text(words)
    return sentence[:1].upper() + sentence[1:]


def format_failure(failure: Failure) -> str:
    """One failure on one line."""
    place = f"{failure.path}:{failure.line}" if failure.path and failure.line else ""
    where = f" ({place})" if place and not failure.test.startswith(place) else ""
    kind = "" if failure.test.endswith(f": {failure.kind}") else f"{failure.kind}: "
    return f"{failure.test}: {kind}{failure.message[:200]}{where}"


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
    return "none" if code is None else str(code)
