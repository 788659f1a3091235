"""A repair in words: for a terminal, and as markdown for a pull request's body."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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


def text(result: Fix) -> str:
    """The result for a terminal."""
    return "\n".join(_text(result))


def _text(result: Fix) -> Iterator[str]:
    head = _OUTCOMES[result.outcome]
    yield f"{head} (by the {result.rung} rung)" if result.rung else head
    if result.reason:
        yield f"  {result.reason}"
    yield f"command: {result.before.command} (exit {_code(result.before.exit_code)})"
    for failure in result.before.failures[:10]:
        yield f"  {failure_line(failure)}"
    if result.cause:
        yield f"cause: {result.cause}"
    if result.after:
        yield f"after: green in {result.after.reruns} fresh runs"
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


def markdown(result: Fix) -> str:
    """The result as the body of a pull request: everything here was computed, nothing was taken on trust."""
    body = "\n".join(_markdown(result))
    return (
        body
        if len(body) <= _LONGEST
        else body[:_LONGEST] + "\n\n(cut: the whole report is on the dashboard)"
    )


def _markdown(result: Fix) -> Iterator[str]:
    yield f"**{_OUTCOMES[result.outcome]}**" + (
        f", by the *{result.rung}* rung" if result.rung else ""
    )
    if result.reason:
        yield f"\n{plain(result.reason)}"
    if result.cause:
        yield f"\n**Cause.** {plain(result.cause)}"
    yield "\n| | exit | failing |\n| --- | --- | --- |"
    yield f"| before | {_code(result.before.exit_code)} | {len(result.before.failures) or 'the command'} |"
    if result.after:
        yield f"| after, {result.after.reruns} fresh runs | {_code(result.after.exit_code)} | {len(result.after.failures)} |"
    yield f"\nCommand:\n{fenced(result.before.command, 'sh')}"
    if result.before.failures:
        yield fenced("\n".join(failure_line(failure) for failure in result.before.failures[:20]))
    if result.strength and result.strength.mutants:
        yield f"\n{result.strength.killed} of {result.strength.mutants} mutants of the changed lines are noticed by the tests."
    if result.gate:
        yield f"\n**Gate: {result.gate.verdict}.**"
        for reason in result.gate.reasons:
            yield f"- {reason.check}: {plain(reason.detail)}"
    if result.reflection:
        yield f"\n**Looking back.** {plain(result.reflection)}"
    yield from _tried(result.attempts)
    if result.hints:
        yield "\n**Hints.**"
        yield from (f"- {plain(hint)}" for hint in result.hints[:10])
    if result.cost.calls:
        yield f"\nCost: ${result.cost.usd:.2f}, {result.cost.calls} model calls; {result.seconds:.0f} s."
    if result.patch:
        yield (
            "\n<details><summary>Patch</summary>\n\n"
            + fenced(result.patch, "diff")
            + "\n\n</details>"
        )
        yield "\nBy hand: check the commit out, `git apply` the patch, run the command."


def _tried(attempts: Sequence[Attempt]) -> Iterator[str]:
    if attempts:
        yield "\n<details><summary>What was tried</summary>\n\n| rung | what | outcome | seconds | $ |\n| --- | --- | --- | --- | --- |"
        for attempt in attempts:
            yield f"| {attempt.rung} | {plain(attempt.summary)} | {attempt.outcome} | {attempt.seconds:.0f} | {attempt.usd:.2f} |"
        yield "\n</details>"


def failure_line(failure: Failure) -> str:
    """One failure on one line."""
    where = f" ({failure.path}:{failure.line})" if failure.path and failure.line else ""
    return f"{failure.test}: {failure.kind}: {failure.message[:200]}{where}"


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
