"""The texts of repairs, bisections and a model's answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from regreen.bisect.report import measure_slowdown, render_markdown
from regreen.bisect.result import Bisection
from regreen.bot.messages.causes import describe_repetition, has_repetition, make_command
from regreen.bot.messages.markup import (
    add_verdict,
    code_span,
    count_noun,
    explain_neutral,
    fence_code,
    format_time,
    inline_prose,
    make_marker,
    sanitize_markdown,
    to_plain_line,
)
from regreen.code.file_languages import language_of
from regreen.domain.github import Button, CheckRun, after_fetch
from regreen.domain.models import Cost
from regreen.domain.repo_config import CONFIG_PATH, Schedule
from regreen.environment.preparation import render_environment
from regreen.fixers.case import FixResult, GuiltyCommit
from regreen.fixers.report import capitalize_sentence, describe_blame, describe_changed_files
from regreen.gate.publishing import TAKES_BACK
from regreen.secrets.markdown_sanitizer import defuse_ci_skips

REPAIR_CHECK = "Regreen repair"
REGRESSION_LABEL = "regression"
_WAITING_MARK = make_marker("waits")
"""Hidden before and behind what says that a patch waits, which is replaced by what becomes of the patch."""
_WHY_NEUTRAL = "the check that failed decides, and this one only offers a repair"


_WHEN_OBSERVED = {"fixed": "would open a draft", "needs_human": "would ask for approval"}


def name_repair(outcome: str, *, is_observed: bool, is_opened: bool) -> str:
    """A repair's outcome in words, which fixes nothing before a person merges it.

    `is_observed`: nothing was written, so it says what would have been done; `is_opened`: as a draft pull request.
    """
    if outcome == "fixed" and not is_observed:
        return "draft opened" if is_opened else "repair found"
    return (is_observed and _WHEN_OBSERVED.get(outcome)) or outcome.replace("_", " ")


def fix_or_revert_title(check: str, fix: FixResult) -> str:
    """The title of a patch pull request, and its commit's subject: at most 72 characters."""
    tests = list(dict.fromkeys(f.test for f in fix.before.failures if f.test))
    is_tests = all(failure.names_test for failure in fix.before.failures)
    number = count_noun(len(tests), "test" if is_tests else "failure")
    if fix.rung == "revert" and fix.culprit and fix.culprit.subject:
        tail = f" (fixes {number})" if tests else ""
        subject = to_plain_line(defuse_ci_skips(fix.culprit.subject))
        return f"{_cut_line(f'Revert “{subject}', 71 - len(tail))}”{tail}"
    if len(tests) > 1:
        return _cut_line(f"Fix {number}: {to_plain_line(tests[0])}, …", 72)
    what = tests[0] if tests else check
    if tests and not is_tests:  # a place and a rule do not say what is wrong
        what += f": {next(f.message for f in fix.before.failures if f.test)}"
    return _cut_line(f"Fix {to_plain_line(what).rstrip(': ') or 'the check'}", 72)


def _cut_line(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def fix_body(
    fix: FixResult,
    failing: str,
    url: str,
    report: str,
    *,
    place: str,
    is_step: bool = False,
    issue: int | None = None,
) -> str:
    """The body of a patch pull request: the failure, the proof, what to review, and how to refuse.

    `failing` is what is red at `place` (a pull request, or a branch); `is_step`: a step of a CI job. `issue` asked for it.
    """
    red = f"[{inline_prose(failing)}]({url})" if url else code_span(failing)
    red = f"The CI step {red}" if is_step else red
    wanted = f" (for #{issue})" if issue is not None else ""
    head = f"{red} fails on {place}{wanted}; with this patch it passes. {describe_changed_files(fix.patch or '')}"
    head = f"{head.rstrip()} Review and merge it if you agree; it is a draft until then."
    return "\n\n".join([head, report, _REFUSE_FIX, make_marker("fix", fix.rung or "none")])


_REFUSE_FIX = (
    "To refuse this repair, close it. That is not remembered: when CI fails again, or on `/fix`, another may be opened; "
    f"`fix.on` in `{CONFIG_PATH}` says when Regreen repairs unasked."
)


def approved_body(login: str, at: datetime, body: str) -> str:
    """The body of a patch pull request that a person has approved."""
    return f"Approved by @{login} on {format_time(at)}.\n\n{body}"


def fix_report(fix: FixResult, report: str, fetch: str = "") -> str:
    """What was tried and seen, and the command that does it again, where a line holds it."""
    return "\n\n".join([report, *describe_repetition(reproduce_fix(fix, fetch))])


def reproduce_fix(fix: FixResult, fetch: str = "") -> str:
    """The command that makes the same repair in a clone of the repository; "" where no line holds it.

    `fetch` brings a fork's commits there.
    """
    command = fix.before.command.strip()
    if not fix.rev or not command:
        return ""
    again = make_command(("fix", "--rev", fix.rev[:12]), fix.setup, ("sh", "-c", command))
    return after_fetch(fetch, again)


def describe_origin(culprit: GuiltyCommit, *, is_own: bool) -> str:
    """Whose commit broke it, and how sure that is; `is_own`: it is one of the pull request that is repaired."""
    parts = ["a commit of this pull request"] * is_own + [describe_blame(culprit)]
    return ", ".join(filter(None, parts))


_SHOWN_COMMAND = 80


def describe_claim(fix: FixResult, about: str = "") -> str:
    """What a patch does, and what was run to see it; the text begins with a verb. `about` is the commit that is reverted."""
    runs = fix.after.reruns if fix.after else 0
    seen = f" ({count_noun(runs, 'run')}, each in a fresh sandbox)" if runs else ""
    command = fix.before.command.strip()
    is_short = 0 < len(command) <= _SHOWN_COMMAND and "\n" not in command
    failing = code_span(command) if is_short else "the failing command"
    if fix.rung not in TAKES_BACK:
        return f"makes {failing} pass{seen}"
    author = fix.culprit.author if fix.culprit and not about else ""
    whose = "a commit" if fix.rung == "revert" else "a part of this change"
    by = f" by {inline_prose(author)}" if author else ""
    how = next((one.summary for one in fix.attempts if one.patch and one.patch == fix.patch), "")
    if about and fix.culprit:
        what = how.removeprefix("reverted ") or fix.culprit.sha[:12]
        return f"reverts {inline_prose(what)} ({about}), which broke it. With it {failing} passes{seen}"
    how = f": {inline_prose(how)}" if how else ""
    return f"takes back {whose}{by}{how}. With it {failing} passes{seen}"


def fix_opened(
    number: int,
    cause: str,
    *,
    branch: str,
    fix: FixResult,
    patch: str = "",
    body: str = "",
    is_edited: bool = False,
    is_own: bool = False,
) -> str:
    """Where the patch of `fix` is, what it does, the `branch` that it repairs, and the files that it changes.

    `is_own`: the commit that broke it is one of the pull request that is repaired. It says so if the text, `body`, has the command that reproduces it. `is_edited`: somebody changed its title and text,
    which stay.
    """
    cause, about, culprit = cause.rstrip("."), "", fix.culprit
    if culprit is not None and culprit.sha[:12] in cause:
        origin = describe_origin(culprit, is_own=is_own)
        if fix.rung == "revert":
            about = inline_prose("; ".join(filter(None, (culprit.subject, origin))))
            cause = ""
        elif origin:
            cause = f"{cause}. It is {origin}"
    tail = f" {inline_prose(capitalize_sentence(cause))}." if cause else ""
    note = " Its title and text were edited, so they stay as they are." if is_edited else ""
    where = (
        "; its text has the command that reproduces it"
        if has_repetition(body) and not is_edited
        else ""
    )
    close = "close it if that change was meant" if fix.rung in TAKES_BACK else "close it"
    how = f"Review and merge #{number} if you agree, or {close}{where}."
    draft = f"It merges into the branch {code_span(branch)}."
    changes = f" {describe_changed_files(patch)}" if patch else ""
    cost = f"\n\n<sub>{fix.cost.describe(fix.seconds)}</sub>" if fix.before.command else ""
    return f"Draft #{number} {describe_claim(fix, about)}. {draft}{changes}{note}{tail} {how}{cost}"


def fix_withheld(reason: str, claim: str, report: str) -> str:
    """A patch whose draft somebody has changed."""
    return f"The patch below {claim}. It is only shown here: {reason}.\n\n{report}"


def fix_awaits_approval(fix: FixResult, step: str, report: str, *, by_button: bool = False) -> str:
    """A patch that needs approval, by command or by the button of its check run: what it repairs, and why it waits."""
    how = "The button **Approve**" if by_button else "`/approve`"
    what = code_span(_name_failing(fix, step), 200)
    waits = f" works and waits for approval**{inline_prose(_explain_wait(fix))}. Nothing was pushed. {how} opens it as a draft."
    changes = describe_changed_files(fix.patch or "")
    if fix.rung in TAKES_BACK:
        changes = f"It {describe_claim(fix)}. {changes}"
    return f"**A patch for {what}{_WAITING_MARK}{waits}{_WAITING_MARK} {changes}\n\n{report}"


@dataclass(frozen=True, slots=True)
class PatchOutcome:
    """What became of a patch that waited: the end of its headline, and what follows that."""

    headline: str
    more: str = ""


def settle_waiting_patch(text: str, outcome: PatchOutcome) -> str:
    """The text of a reply with what became of the patch that it said to wait; any other text stays as it is."""
    before, mark, rest = text.partition(_WAITING_MARK)
    after = rest.partition(_WAITING_MARK)[2]
    return f"{before} {outcome.headline}.**{outcome.more}{after}" if mark else text


def describe_approval(login: str, at: datetime, number: int) -> PatchOutcome:
    """What became of a patch that somebody approved."""
    who = f"was approved by {code_span(login)} on {format_time(at)}"
    return PatchOutcome(who, f" It is in draft #{number}.")


def describe_late_approval(login: str, at: datetime, head: str) -> PatchOutcome:
    """What became of a patch that somebody approved after the branch had moved on."""
    when = f"when {code_span(login)} approved it on {format_time(at)}"
    why = f" The branch was at {code_span(head[:12])} {when}. `/fix` tries again there."
    return PatchOutcome("was not opened", why)


def describe_replacement(at: datetime) -> PatchOutcome:
    """What became of a patch that a later repair replaced."""
    return PatchOutcome(f"was replaced by that of a later repair on {format_time(at)}")


def _name_failing(fix: FixResult, step: str) -> str:
    return next((f.test for f in fix.before.failures if f.test), step)


def _explain_wait(fix: FixResult) -> str:
    """Why a patch waits: the first reason that the patch safety checks gave."""
    reasons = fix.gate.reasons if fix.gate else ()
    why = next((one.detail for one in reasons if one.level == "needs_human"), fix.reason)
    return f": {why.rstrip('.')}" if why else ""


def repair_approval_check(
    head_sha: str, external_id: str, fix: FixResult, step: str, report: str
) -> CheckRun:
    """A repair of a branch that needs approval, with the button for it."""
    what = f"A repair of {_name_failing(fix, step)} waits for approval"
    title = _cut_line(to_plain_line(f"{what}{_explain_wait(fix)}"), 140)
    check = _make_repair_check(head_sha, external_id, title, report, "needs_approval")
    return replace(check, buttons=(Button("Approve", "Open this patch as a draft PR", "approve"),))


def opened_repair_check(head_sha: str, external_id: str, number: int, text: str) -> CheckRun:
    """Where the repair is, once it was approved or a later attempt found it; `text` is that of `fix_opened`."""
    title = f"The repair is in #{number}"
    return _make_repair_check(head_sha, external_id, title, text, "repaired", pull=number)


def approval_too_early() -> str:
    """`/approve` for a patch that another one has replaced meanwhile."""
    return "A newer patch was made after that approval. Review it, and approve it if it is right."


def failed_repair_check(head_sha: str, external_id: str, report: str, fix: FixResult) -> CheckRun:
    """An automatic repair without a result, reported once on the commit."""
    if fix.before.command.strip():
        is_missed = fix.outcome == "not_reproduced"
        title = "The failure was not reproduced here" if is_missed else "No repair was found"
        return _make_repair_check(head_sha, external_id, title, report, "no_repair")
    return _make_repair_check(
        head_sha, external_id, "The repair could not be tried", report, "not_tried"
    )


def broken_repair_check(
    head_sha: str,
    external_id: str,
    reason: str,
    *,
    number: int | None,
    page: str,
    is_refused: bool,
) -> CheckRun:
    """An automatic repair that an error ended, or that was refused: nothing is known about the commit."""
    title = "The repair was not started" if is_refused else "The repair could not be finished"
    what = "This" if is_refused else "This error"
    details = f" [Details]({page})." if page else ""
    text = f"**{title}**: {inline_prose(reason.rstrip('.'))}. {what} says nothing about the commit.{details}"
    where = f"#{number}" if number is not None else "an issue, for the default branch,"
    text = f"{text}\n\nOnce the cause is gone, the comment `/fix` on {where} tries again."
    return _make_repair_check(head_sha, external_id, title, text, "not_finished")


def _make_repair_check(
    head_sha: str, external_id: str, title: str, text: str, verdict: str, **facts: object
) -> CheckRun:
    text = f"{text}\n\n{explain_neutral(_WHY_NEUTRAL)}"
    check = CheckRun(REPAIR_CHECK, head_sha, external_id, title, text, "neutral")
    return add_verdict(check, verdict, **facts)


def approval_too_late(approved: str, head: str) -> str:
    """`/approve` for a patch that was made for an older commit."""
    return (
        f"The patch was made and shown for {code_span(approved[:12])}, and the branch is at {code_span(head[:12])} now, so the"
        " approval does not hold. `/fix` tries again there."
    )


def fix_for_fork(claim: str, report: str) -> str:
    """A patch for a branch that Regreen cannot push to."""
    return (
        f"The patch below {claim}. This branch belongs to a fork, so nothing was pushed. "
        "Its owner can apply the patch with `git apply`."
        f"\n\n{report}"
    )


def fix_not_found(fix: FixResult, step: str, report: str) -> str:
    """No patch, and the reason."""
    if fix.outcome == "already_green":
        return report
    if not fix.before.command:
        head = f"**Nothing was run**: {inline_prose(fix.reason)}."
        how = f"Set `tests.command` in `{CONFIG_PATH}` on the default branch, then write `/fix` again."
        shown = render_environment(fix.environment)
        return "\n\n".join([head, how, *([shown] if shown else [])])
    return f"No patch for {code_span(step)} was made.\n\n{report}"


def bisection_body(
    bisection: Bisection,
    revert: int | None = None,
    page: str = "",
    note: str = "",
    fetch: str = "",
) -> str:
    """The result of a bisection: the culprit, how to revert it, a `note`, what ran, and the link to the pictures.

    `fetch` brings a fork's commits to a clone.
    """
    steps = [note] if note else []
    if revert is not None:
        steps.insert(0, f"Draft #{revert} reverts that commit. Review and merge it if you agree.")
    elif command := undo_culprit(bisection):
        steps.insert(0, f"Revert it with `{command}`.")
    elif _is_revert_in_vain(bisection):
        was_run = any(one.part == "revert" for one in bisection.later_runs)
        why = "Reverting it does not help" if was_run else "It cannot be reverted cleanly"
        steps.insert(0, f"{why}: repair it by hand.")
    parts = [render_markdown(bisection, "\n\n".join(steps))]
    if environment := render_environment(bisection.environment):
        parts.append(environment)
    links = [f"[every run and the plots]({page})"] if page else []
    if again := reproduce_bisection(bisection, fetch):
        links.append(f"reproduce: {code_span(again, 700)}")
    parts += [f"<sub>{' · '.join(links)}</sub>"] if links else []
    return "\n\n".join(parts)


def undo_culprit(bisection: Bisection) -> str:
    """The command that reverts the culprit; "" where none was found, or where the proof says that it does not help."""
    culprit = bisection.culprit
    if culprit is None or bisection.outcome != "found" or _is_revert_in_vain(bisection):
        return ""
    is_merge = any(p.sha == culprit.sha and len(p.parents) > 1 for p in bisection.posterior)
    return f"git revert {'-m 1 ' if is_merge else ''}{culprit.sha[:12]}"


def _is_revert_in_vain(bisection: Bisection) -> bool:
    """Whether the culprit was proven otherwise, after a revert of it had conflicted or had not helped."""
    proof = bisection.verified
    return proof is not None and proof.ok and "revert" not in proof.by


def reproduce_bisection(bisection: Bisection, fetch: str = "") -> str:
    """The command that makes the same bisection in a clone of the repository; "" where no line holds it."""
    command, span = bisection.command.strip(), bisection.range
    if not command:
        return ""
    good = ("--good", span.good[:12]) if span.good else ()
    slower = ("--slower", f"{bisection.slower:g}") if bisection.slower else ()
    asked = ("bisect", *good, "--bad", span.bad[:12], *slower)
    return after_fetch(fetch, make_command(asked, "", ("sh", "-c", command)))


def describe_culprit_pull(number: int, author: str) -> str:
    """Which pull request brought the culprit, and whose it is."""
    return f"The commit came with #{number} by @{author}."


def revert_title(subject: str) -> str:
    """The title of a revert's pull request."""
    title = f"Revert “{to_plain_line(subject)}”"
    return title if len(title) <= 72 else title[:71] + "…"


def revert_body(command: str, bisection: Bisection) -> str:
    """Why a commit is reverted, what was run on the result, and the command that repeats the search."""
    what, is_now = "broke a test", "the command passes"
    if bisection.slower:
        what, is_now = "made a command slower", "it is as fast as before"
    head = f"This reverts the commit that {what}. With the revert on this branch {is_now}:"
    judged = "It passed the same safety checks as a repair. To undo it after merging, use the button Revert of this pull request."
    repeat = describe_repetition(reproduce_bisection(bisection))
    refuse = "To refuse this revert, close it: Regreen opens no second one for this commit."
    parts = [head, fence_code(command, "sh"), judged, render_markdown(bisection), *repeat, refuse]
    return "\n\n".join(parts)


def regression_title(branch: str, bisection: Bisection) -> str:
    """The title of a regression's issue."""
    factor, culprit = measure_slowdown(bisection), bisection.culprit
    is_what = "slower" if bisection.slower else "red"
    since = f" since “{to_plain_line(culprit.subject, 120)}”" if culprit else ""
    times = f": {factor:.1f} times as long" if factor else ""
    return f"{to_plain_line(branch)} is {is_what}{since}{times}"


def describe_regression(schedule: str, test: str, bisection: Bisection) -> str:
    """What failed, for a regression's issue."""
    factor, good = measure_slowdown(bisection), bisection.range.good or ""
    does = f"takes {factor:.1f} times as long as at {code_span(good[:12])}" if factor else "fails"
    parts = [
        f"The schedule {code_span(schedule)} found that this command {does}:",
        fence_code(test, "sh"),
    ]
    again = "is as fast as before" if bisection.slower else "passes again"
    parts.append(f"This issue closes automatically when the command {again}.")
    return "\n\n".join(parts)


def regression_over(schedule: Schedule, sha: str) -> str:
    """The regression is fixed, and the command that shows it."""
    again = "passes, as fast as before," if schedule.slower else "passes again"
    return f"Fixed: the schedule {code_span(schedule.name)} {again} at {sha[:12]}. It ran {code_span(schedule.test, 300)}."


def needless_fix(branch: str, sha: str) -> str:
    """A draft of ours that is not needed any more."""
    return f"{code_span(branch)} passes again at {sha[:12]} without this patch, so it is closed."


def answer_body(text: str, cost: Cost, *, code: bool, seconds: float) -> str:
    """A model's answer without active markup, links, mentions or hidden text; `code`: the model saw code."""
    material = "this page and the code around the change" if code else "this page alone"
    about = f"A model's answer, from {material} · {cost.describe(seconds)}"
    return f"{sanitize_markdown(text, 12_000)}\n\n<sub>{about}</sub>"


def proposed_test(
    path: str, source: str, why: str, command: str, *, cost: Cost, seconds: float
) -> str:
    """A generated test that was run."""
    parts = [f"Proposed test for this change: {inline_prose(why)}", f"{code_span(path)}:"]
    parts += [
        fence_code(source, language_of(path) or "", 20_000),
        f"It was run in the sandbox and passes: {code_span(command)}.",
        f"<sub>A model wrote it · {cost.describe(seconds)}</sub>",
    ]
    return "\n\n".join(parts)


def test_not_found(rounds: int, cost: Cost, seconds: float) -> str:
    """No test was generated."""
    tried = f"No test was found that passes on this change ({count_noun(rounds, 'attempt')} by a model)."
    return f"{tried}\n\n<sub>{cost.describe(seconds)}</sub>"
