"""What people read of a failure's cause: the JSON document, the text on the terminal, the check run."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from regreen.bot.messages.markup import (
    add_verdict,
    code_span,
    count_noun,
    explain_neutral,
    fence_code,
    fold_details,
    inline_prose,
    to_plain_line,
)
from regreen.causes.investigation import RedCause
from regreen.code.file_languages import language_of
from regreen.domain.github import CheckRun, Conclusion
from regreen.domain.models import Cost
from regreen.logs.failure_signature import strip_varying_text
from regreen.runs.capsule import find_outcome

CAUSE_CHECK = "regreen/why"
_RUN_ENDS = {"pass": "passed", "fail": "failed", "infra": "could not be run"}
_DOTTED_NAME = re.compile(r"\w+(?:\.\w+)+")
_MAX_TITLE_CHARS = 140
_MAX_SHOWN_RUNS = 12
_MAX_COMMAND_CHARS = 600
_MAX_REPEAT_LINE = 160
_REPEAT_TITLE = "Reproduce"
# the cause that an answer is named after, where the failing checks have several
_GRAVITY = ("change", "main", "world", "unknown", "neighbour", "infrastructure", "flaky")
RerunOutcome = Literal["asked", "off", "observed", "again", "refused", "elsewhere", "nothing"]
_HEADINGS = {
    "change": "This change broke it",
    "main": "The base branch fails too",
    "world": "A new version of a package broke it",
    "unknown": "Cause not found",
    "neighbour": "Another change broke it",
    "infrastructure": "The CI machine failed",
    "flaky": "Flaky",
}
_UNREPRODUCED = "Not reproduced here: flaky, or CI's environment differs"
_MAYBE_MADE_FLAKY = "Flaky, perhaps since this change"
_WHY_NEUTRAL = "it says why other checks failed, and blocks nothing even where it is required"
_WHY_NEUTRAL_APPROVED = "it warns of what a merge would bring, and blocks none, required or not"
NO_CHECK = "the tests"
"""What stands for a failed check where none is known: they are run then."""
_NEXT_STEP_QUIET = (
    "Nothing to repair: start CI if it has not run, and comment `/why` once it fails."
)
_ADVICE = {
    "fix": "Repair it on this branch, or {way}.",
    "rebase": "It is repaired on {where} already: rebase on it.",
    "wait": "The change is not the cause: the failure goes away when {where} is repaired and this branch is updated from it.{revert}",
    "look": "A person has to look at it.",
}
_ADVICE_MAYBE_MADE_FLAKY = "Whether the change made it flaky is not known. Look at what the change does to what this test runs: when the test passes once more, that shows nothing."


def make_cause_document(found: RedCause, capsule: str | None = None) -> dict[str, Any]:
    """The JSON document of a cause; `capsule` is where its capsule is."""
    package = found.package
    return {
        "version": 1,
        "verdict": found.verdict,
        "reason": found.reason,
        "since": {"sha": found.since} if found.since else None,
        "rate": [round(value, 4) for value in found.rate] if found.rate else None,
        "package": {"name": package.name, "from": package.old, "to": package.new}
        if package
        else None,
        "do": found.do,
        "runs": [
            {
                "where": one.where,
                "outcome": find_outcome(one.run),
                "seconds": round(one.run.result.seconds, 1),
                "signature": one.signature.text if one.signature else None,
                "tests": list(one.signature.tests) if one.signature else [],
            }
            for one in found.runs
        ],
        "capsule": capsule,
    }


def format_cause(document: Mapping[str, Any]) -> str:
    """The text on the terminal."""
    lines = [f"{document['verdict']}: {document['reason']}"]
    lines += [f"  do: {document['do']}: {advise(document, way='run `regreen fix`')}"]
    lines += [f"  {_UNREPRODUCED}"] if is_unreproduced(document) else []
    lines += [f"  {_MAYBE_MADE_FLAKY}"] if may_be_made_flaky(document) else []
    lines += [f"  {text}" for text in (_describe_rate(document),) if text]
    lines += [
        ": ".join(
            filter(None, (f"  {_name_place(run)} {_RUN_ENDS[run['outcome']]}", run["signature"]))
        )
        for run in document["runs"]
    ]
    lines += [f"  command: {document['command']}"] if document.get("command") else []
    capsule = document["capsule"]
    return "\n".join([*lines, *([f"  repeat it: regreen replay {capsule}"] if capsule else [])])


def _name_place(run: Mapping[str, Any]) -> str:
    return str(run["where"]).replace("_", " ")


def reproduce_cause(base: str, head: str, setup: str, command: Sequence[str]) -> str:
    """The command that asks for a cause again on another machine; "" where no line holds it."""
    return make_command(("why", "--base", base[:12], "--head", head[:12]), setup, command)


def make_command(asked: Sequence[str], setup: str, command: Sequence[str]) -> str:
    """`regreen` with what is asked of it, a setup and a command, as one line; "" where no line holds it."""
    given = ("--setup", setup) if setup else ()
    text = shlex.join(("regreen", *asked, *given, "--", *command))
    return text if len(text) <= _MAX_COMMAND_CHARS and "\n" not in text else ""


def order_causes(causes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The causes, the one that an answer is named after first."""
    return sorted(causes, key=lambda one: _GRAVITY.index(one["verdict"]))


def cause_check(
    head_sha: str,
    causes: Sequence[Mapping[str, Any]],
    page: str = "",
    *,
    branch: str = "",
    seconds: float = 0.0,
) -> CheckRun:
    """The answer to the failed checks of a commit: one line, and a card for each cause; `branch` is the base.

    `seconds` is how long the answer took.

    A cause is its JSON document with `checks` (the names of the checks that it failed; none where nothing failed), `action` (what was done about it,
    in Markdown of ours: `rerun_note`, `regression_note`, `repair_note`), `rerun` (what became of that, where it was wanted) and `repeat` (a command).
    """
    ordered = order_causes(causes)
    first, more = ordered[0], f" (and {len(causes) - 1} more)" if len(causes) > 1 else ""
    title = to_plain_line(_make_title(first), _MAX_TITLE_CHARS - len(more)) + more
    *others, last = ordered
    is_quiet = not any(one["checks"] for one in causes)
    why = "no check failed that it could explain" if is_quiet else _WHY_NEUTRAL
    cards = [_format_card(one, branch) for one in others]
    closing = explain_neutral(why)
    if any(one["runs"] for one in causes):
        closing = (
            f"<sub>{Cost().describe(seconds)}</sub>\n\n{closing}"  # no model is asked for a cause
        )
    summary = "\n\n".join([*cards, _format_card(last, branch, closing)])
    check = CheckRun(
        CAUSE_CHECK, head_sha, f"why-{head_sha[:24]}", title, summary, "neutral", details_url=page
    )
    facts = [
        {key: one[key] for key in ("verdict", "do", "since", "rate", "package", "checks")}
        for one in ordered
    ]
    return add_verdict(check, first["verdict"], causes=facts)


def _make_title(cause: Mapping[str, Any]) -> str:
    """The cause in a line that GitHub does not cut: which tests the change broke, where that is all that is known."""
    runs = [run for run in cause["runs"] if run["where"] == "head"]
    names = list(dict.fromkeys(test for run in runs for test in run.get("tests", ())))
    if cause["verdict"] != "change" or not names or "; " in cause["reason"] or not cause["checks"]:
        return f"{_name_cause(cause)}: {cause['reason']}"
    short = names[0].partition(" (")[0].rpartition("::")[2]
    if _DOTTED_NAME.fullmatch(short) and language_of(short) is None:
        short = short.rpartition(".")[2]
    many = f"{len(names)} tests: {short} and {len(names) - 1} more" if len(names) > 1 else short
    failed = sum(run["outcome"] == "fail" for run in runs)
    # a base without the test may be green, too: the reason tells
    known = {
        "green on the base": ", base passes",
        "absent on the base": ", not there on the base",
        "skipped on the base": ", skipped on the base",
    }
    base = next((words for seen, words in known.items() if seen in cause["reason"]), "")
    verb = "fail" if len(names) > 1 else "fails"
    return f"This change broke {many} ({verb} {failed} of {len(runs)}{base})"


def approval_check(
    head_sha: str,
    branch: str,
    behind: int,
    found: RedCause | None,
    *,
    repeat: str = "",
    page: str = "",
    seconds: float = 0.0,
) -> CheckRun:
    """What the tests of an approved change say on its base `branch`, `behind` commits later; None found: they pass."""
    cost = f"<sub>{Cost().describe(seconds)}</sub>"
    start = f"Approved on a base {count_noun(behind, 'commit')} old"
    text = f"The tests ran on GitHub's merge of this change with {branch} as it is now"
    conclusion: Conclusion = "neutral"
    if found is None:
        title = f"{start}; its tests pass with today's {branch}"
        verdict, conclusion = "passes", "success"
        head = f"**The tests of this change pass with {code_span(branch, 100)} as it is now**, although its base is {count_noun(behind, 'commit')} old."
        parts = [head, inline_prose(f"{text}."), cost, *describe_repetition(repeat)]
    else:
        more = {"checks": ["the tests"], "action": "", "repeat": repeat}
        cause = make_cause_document(found) | more
        title, verdict = f"{start}; with today's {branch} {found.reason}", found.verdict
        if found.verdict == "change":  # whether it fails on its own base was not run
            step = f"{branch} has moved since: update this branch from it, and see whether the change fails by itself."
            cause |= {"heading": f"This change fails with today's {branch}"}
            cause |= {"action": inline_prose(step)}
        head = f"**Approved, and with {code_span(branch, 100)} as it is now the tests fail.** Merge nothing before that is settled."
        where = inline_prose(f"{text} (below: head), and on {branch} alone (base).")
        closing = f"{cost}\n\n{explain_neutral(_WHY_NEUTRAL_APPROVED)}"
        parts = [head, where, _format_card(cause, branch, closing)]
    check = CheckRun(
        CAUSE_CHECK,
        head_sha,
        f"why-{head_sha[:24]}",
        to_plain_line(title, _MAX_TITLE_CHARS),
        "\n\n".join(parts),
        conclusion,
        details_url=page,
    )
    return add_verdict(check, verdict, behind=behind)


def _format_card(cause: Mapping[str, Any], branch: str, closing: str = "") -> str:
    """One cause; `closing` comes before the command that repeats it."""
    checks = ", ".join(code_span(name, 100) for name in cause["checks"][:5])
    more = f" and {len(cause['checks']) - 5} more" if len(cause["checks"]) > 5 else ""
    parts = [f"**{inline_prose(_name_cause(cause))}**: {inline_prose(cause['reason'])}"]
    failed = f"Failed: {checks}{more}."
    if cause["checks"] == [NO_CHECK]:
        failed = "No CI job is known to have failed here, so Regreen ran the tests itself."
    told = f"{failed} {advise(cause, branch)}".rstrip()
    parts += [told if checks else _NEXT_STEP_QUIET]
    parts += [text for text in (_describe_rate(cause), cause["action"]) if text]
    runs = _list_runs(cause["runs"])
    parts += ["What ran, each in a fresh sandbox:\n\n" + "\n".join(runs)] if runs else []
    parts += [closing] if closing else []
    return "\n\n".join([*parts, *describe_repetition(cause["repeat"])])


def _name_cause(cause: Mapping[str, Any]) -> str:
    """The heading of a cause, which a package is named in with its versions; of an answer without a failed check, that."""
    package = cause["package"] if cause["verdict"] == "world" else None
    moved = package and f"{package['name']} {package['from']} -> {package['to']}"
    heading = f"{moved} broke it" if moved else _HEADINGS[cause["verdict"]]
    heading = cause.get("heading") or heading
    heading = _UNREPRODUCED if is_unreproduced(cause) else heading
    heading = _MAYBE_MADE_FLAKY if may_be_made_flaky(cause) else heading
    return heading if cause["checks"] else "Nothing failed"


def advise(cause: Mapping[str, Any], branch: str = "", *, way: str = "comment `/fix`") -> str:
    """What to do about a cause; `way` is how Regreen is asked to repair it."""
    package = cause.get("package") if cause["verdict"] == "world" else None
    where = code_span(branch, 100) if branch else "the base branch"
    if cause.get("do") == "rerun":
        whose = "The change is not the cause." if cause["verdict"] == "infrastructure" else ""
        if is_unreproduced(cause):
            whose = "It did not fail here, so whether the change is the cause is not known."
        elif cause.get("checks") == [NO_CHECK] and cause["verdict"] == "flaky":
            whose = f"Nothing is to do in this change: repair or quarantine the test on {where}."
        step = "" if cause.get("rerun") in {"asked", "nothing"} else "Run the failed jobs again."
        return f"{whose} {step}".strip()
    if may_be_made_flaky(cause):
        return _ADVICE_MAYBE_MADE_FLAKY
    if cause.get("do") == "fix" and cause.get("action"):
        return ""  # the open draft that repairs it follows
    if not package:
        since = "" if cause.get("action") else (cause.get("since") or {}).get("sha", "")[:12]
        revert = f" A revert of {since} there may do it." if since else ""
        text = _ADVICE.get(cause.get("do", ""), "")
        return text.format(where=where, way=way, revert=revert)
    held = code_span(f"{package['name']} {package['from']}", 200)
    return f"No change here causes it: hold it at {held}, or adapt the code to the new version."


def _list_runs(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each place and way to end, with how many of the runs there ended so, in the words of the first."""
    ends: dict[tuple[str, ...], list[str]] = {}
    for run in runs:
        text = run["signature"] or ""
        key = (_name_place(run), run["outcome"], strip_varying_text(text))
        ends.setdefault(key, []).append(text)
    whole = Counter(map(_name_place, runs))
    return [
        f"- {where}: {outcome} in {len(texts)} of {count_noun(whole[where], 'run')}"
        + (f", {code_span(texts[0], 500)}" if texts[0] else "")
        for (where, outcome, _), texts in list(ends.items())[:_MAX_SHOWN_RUNS]
    ]


def describe_repetition(command: str) -> list[str]:
    """How a result is repeated: a line, or a fold for a long command; nothing where there is no command for it."""
    if len(command) > _MAX_REPEAT_LINE:
        return [fold_details(_REPEAT_TITLE, fence_code(command, "sh"))]
    return [f"<sub>{_REPEAT_TITLE}: {code_span(command, 700)}</sub>"] if command else []


def has_repetition(text: str) -> bool:
    """Whether a text has that."""
    return any(f"{mark}{_REPEAT_TITLE}" in text for mark in ("<sub>", "<summary>"))


def is_unreproduced(cause: Mapping[str, Any]) -> bool:
    """Whether a test is called flaky that was red in CI alone: CI's environment may be the cause as well."""
    seen = {run["outcome"] for run in cause.get("runs") or ()}
    return cause.get("verdict") == "flaky" and "fail" not in seen


def may_be_made_flaky(cause: Mapping[str, Any]) -> bool:
    """Whether the change may have made a test flaky: it is linked to the test, which was not seen to fail on the base."""
    return (cause.get("verdict"), cause.get("do")) == ("flaky", "look")


def _describe_rate(cause: Mapping[str, Any]) -> str:
    if not cause["rate"]:
        return ""
    _, low, high = cause["rate"]
    # the base runs a test that the change made flaky at another rate
    of_head = may_be_made_flaky(cause)
    count = sum(not of_head or run["where"] == "head" for run in cause["runs"])
    runs = f"{count_noun(count, 'run')} {'of head' if of_head else 'here'}"
    start = "The test fails"
    if is_unreproduced(cause):
        start, runs = "If it is flaky, the test fails", f"{runs} and the red one in CI"
    return f"{start} in {low:.0%} to {high:.0%} of its runs (90% interval, from {runs})."


def regression_note(schedule: str, issue: int) -> str:
    """The open issue about the base branch that may be about this failure."""
    return f"The schedule {code_span(schedule, 100)} fails too: #{issue}."


def repair_note(number: int, branch: str) -> str:
    """The open draft that repairs the failing branch."""
    return f"Draft #{number} repairs the branch {code_span(branch, 200)}: review and merge it if you agree."


def rerun_note(outcome: RerunOutcome, attempt: int = 1) -> str:
    """What became of running failed jobs again, of which this was the `attempt`."""
    notes: dict[RerunOutcome, str] = {
        "asked": "The failed jobs were asked to run once more.",
        "off": "The failed jobs were not run again: why.rerun is never.",
        "observed": "The failed jobs were not run again: Regreen only observes this repository.",
        "again": f"The failed jobs were not run again: this was attempt {attempt} already.",
        "refused": "The failed jobs could not be run again: GitHub refused it. Where this installation has not accepted the permission actions: write, an owner accepts it on its page in GitHub's settings.",
        "elsewhere": "This CI is not GitHub Actions: run it again where it runs.",
        "nothing": "",
    }
    return notes[outcome]
