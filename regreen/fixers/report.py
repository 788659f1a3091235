"""A repair in words: for a terminal, and as markdown for a pull request's body."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from regreen.codebase.inert import span
from regreen.fixers.case import Attempt, Fix
from regreen.models import Failure

_OUTCOMES = {
    "fixed": "fixed",
    "flaky": "flaky: the same commit is now green, now red",
    "not_reproduced": "not reproduced",
    "gave_up": "no honest fix found",
    "needs_human": "a patch works, and needs a person's approval",
    "denied": "a patch made it green, and the gate refused it",
    "out_of_budget": "out of budget before a fix was found",
    "already_green": "green already",
}
_LONGEST = 60_000
_LISTED = 10


def text(result: Fix) -> str:
    """The result for a terminal."""
    return "\n".join(_text(result))


def _text(result: Fix) -> Iterator[str]:
    head = _OUTCOMES[result.outcome]
    yield f"{head} (by the {result.rung} rung)" if result.rung else head
    if result.reason:
        yield f"  {result.reason}"
    yield f"command: {result.before.command} (exit {_code(result.before.exit_code)})"
    for failure in result.before.failures[:_LISTED]:
        yield "  " + failure_line(failure).replace("\n", "\n      ")
    if len(result.before.failures) > _LISTED:
        yield f"  and {len(result.before.failures) - _LISTED} more"
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


def markdown(result: Fix, *, branch: str | None = None) -> str:
    """The result as markdown: everything here was computed, nothing was taken on trust.

    Where the patch is on a `branch`, it is fetched from there; a pull request shows its own diff.
    """
    body = "\n".join(_markdown(result, branch=branch))
    return (
        body
        if len(body) <= _LONGEST
        else body[:_LONGEST] + "\n\n(cut: the whole report is on the dashboard)"
    )


def _markdown(result: Fix, *, branch: str | None) -> Iterator[str]:
    accepted = next(
        (one for one in result.attempts if one.patch and one.patch == result.patch), None
    )
    how = f", by the *{result.rung}* rung" if result.rung else ""
    what = f": {plain(accepted.summary)}" if accepted and accepted.summary else ""
    yield f"**{_OUTCOMES[result.outcome]}**{how}{what}"
    if result.reason:
        yield f"\n{plain(result.reason)}"
    if result.cause:
        yield f"\n**Cause.** {_sentence(result.cause)}"
    if result.culprit and result.culprit.sha[:12] not in (result.cause or ""):
        yield f"\n**Broken by** {span(result.culprit.sha[:12])} {plain(result.culprit.subject)}"
    yield from _proof(result)
    yield from _gate(result)
    if result.reflection:
        yield f"\n**Looking back.** {plain(result.reflection)}"
    if result.hints and result.outcome != "fixed":
        yield "\n**Hints.**"
        yield from (f"- {plain(hint)}" for hint in result.hints[:10])
    if result.cost.calls:
        yield f"\nCost: ${result.cost.usd:.2f}, {result.cost.calls} model calls; {result.seconds:.0f} s."
    if result.before.failures:
        told = "\n".join(failure_line(failure) for failure in result.before.failures[:20])
        yield _folded("How it failed", fenced(told))
    yield from _tried(result.attempts)
    if result.patch:
        yield _folded("Try it by hand", fenced("\n".join(_by_hand(result, branch)), "sh"))
        if branch is None:
            yield _folded("The patch", fenced(result.patch, "diff"))


def _proof(result: Fix) -> Iterator[str]:
    """Before and after, as a table that is read at a glance."""
    lines = result.before.command.strip().splitlines() or ["the command"]
    command = span(lines[0] + (" …" if len(lines) > 1 else ""), 120).replace("|", "\\|")
    at = f" at {span(result.rev[:12])}" if result.rev else ""
    yield "\n| | exit | fails |\n| --- | --- | --- |"
    yield f"| {command}{at} | {_code(result.before.exit_code)} | {_listed(result.before.failures)} |"
    if result.after is None:
        return
    times = f"with the patch, {result.after.reruns} times, each in a fresh box"
    left = _listed(result.after.failures) if result.after.failures else "nothing"
    yield f"| {times} | {_code(result.after.exit_code)} | {left} |"
    if result.after.kept:
        kept = result.after.kept
        before = "the one test" if kept == 1 else f"the {kept} tests"
        yield f"| {before} that passed before, with the patch | | nothing |"
    if result.strength and result.strength.mutants:
        killed, made = result.strength.killed, result.strength.mutants
        yield f"| {made} faults put into the patched lines, one at a time | | {killed} are noticed by the tests |"


def _listed(failures: Sequence[Failure]) -> str:
    if not failures:
        return "the command"
    names = ", ".join(plain(one.test or one.path or one.kind)[:80] for one in failures[:2])
    more = f" and {len(failures) - 2} more" if len(failures) > 2 else ""
    return f"{len(failures)}: {names}{more}"


_VERDICTS = {
    "allow": "**The gate** held the patch against what cheats do, and let it through.",
    "needs_human": "**A person has to agree**, because:",
    "deny": "**The gate** refused it, because:",
}


def _gate(result: Fix) -> Iterator[str]:
    if result.gate is None:
        return
    yield f"\n{_VERDICTS[result.gate.verdict]}"
    weighing = [one for one in result.gate.reasons if one.level in {"deny", "needs_human"}]
    notes = [one for one in result.gate.reasons if one not in weighing]
    yield from (f"- {_sentence(one.detail)} ({one.check})" for one in weighing)
    if notes:
        yield f"{'' if result.gate.verdict == 'allow' else chr(10)}To know:"
        yield from (f"- {_sentence(one.detail)} ({one.check})" for one in notes[:8])


def _by_hand(result: Fix, branch: str | None) -> Iterator[str]:
    yield f"git checkout {result.rev[:12] or '(the commit that failed)'}"
    if result.setup and len(result.setup) < 600:
        yield result.setup
    yield f"{result.before.command.strip()}  # exit {_code(result.before.exit_code)}"
    yield (
        f"git fetch origin {branch} && git checkout FETCH_HEAD"
        if branch
        else "git apply fix.patch  # the patch below, as a file"
    )
    yield f"{result.before.command.strip()}  # exit {_code(result.after.exit_code if result.after else None)}"


def _tried(attempts: Sequence[Attempt]) -> Iterator[str]:
    if attempts:
        rows = ["| rung | what | outcome | seconds | $ |", "| --- | --- | --- | --- | --- |"]
        for attempt in attempts:
            why = f": {plain(attempt.detail)[:160]}" if attempt.detail else ""
            told = f"{attempt.outcome.replace('_', ' ')}{why}"
            rows.append(
                f"| {attempt.rung} | {plain(attempt.summary)} | {told} | {attempt.seconds:.0f} | {attempt.usd:.2f} |"
            )
        yield _folded(f"What was tried ({len(attempts)})", "\n".join(rows))


def _folded(title: str, inner: str) -> str:
    return f"\n<details><summary>{title}</summary>\n\n{inner}\n\n</details>"


def _sentence(words: str) -> str:
    told = plain(words)
    return told[:1].upper() + told[1:]


def failure_line(failure: Failure) -> str:
    """One failure on one line."""
    place = f"{failure.path}:{failure.line}" if failure.path and failure.line else ""
    where = f" ({place})" if place and not failure.test.startswith(place) else ""
    kind = "" if failure.test.endswith(f": {failure.kind}") else f"{failure.kind}: "
    return f"{failure.test}: {kind}{failure.message[:200]}{where}"


def plain(words: str) -> str:
    """Words from outside, as one line that can hold no markup, mention or table cell."""
    one = " ".join(words.split())[:600]
    for char, instead in (
        ("&", "&amp;"),
        ("<", "&lt;"),
        ("|", "\\|"),
        ("@", "@\u200b"),
        ("`", "'"),
        ("#", "#\u200b"),
        ("[", "\\["),
        ("!", "\\!"),
    ):
        one = one.replace(char, instead)
    return one


def fenced(words: str, language: str = "") -> str:
    """Words inside a fence that they cannot close."""
    fence = "```"
    while fence in words:
        fence += "`"
    return f"{fence}{language}\n{words.rstrip()}\n{fence}"


def _code(code: int | None) -> str:
    return "none" if code is None else str(code)
