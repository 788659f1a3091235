"""Replies to commands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from regreen.bot.messages.markup import code_span, count_noun, fence_code, inline_prose
from regreen.bot.messages.reviews import describe_unusable_config
from regreen.domain.errors import ConfigProblem
from regreen.domain.records import JobRecord
from regreen.domain.repo_config import CONFIG_PATH
from regreen.reviewers.learning import CalibrationBin, RuleStats

_JOB_NAMES = {
    "review": "the review",
    "fix": "the repair",
    "bisect": "the bisection",
    "why": "the search for a cause",
    "prove": "the proof",
    "comment": "the answer to a command",
}


def command_refused(login: str, allow: str) -> str:
    """The author lacks the permission for the command."""
    return f"@{login}, only people with {allow} access may do that."


def command_not_run(reason: str) -> str:
    """The command was understood and is not carried out."""
    return f"Not done: {inline_prose(reason)}."


def too_many_commands(login: str) -> str:
    """The author has given too many commands."""
    return f"@{login}, you have given more than 30 commands in the last hour. Try again later."


def command_unclear(problem: str) -> str:
    """The command cannot be parsed."""
    return f"Unclear command: {problem}"


def help_text(usage: Iterable[tuple[str, str]], prefix: str) -> str:
    """The list of commands, each with what it does."""
    lines = [f"- {code_span(prefix + u)}: {what}" for u, what in usage]
    head = "Available commands (write one at the start of a line):"
    return "\n".join([head, "", *lines])


def jobs_cancelled(kinds: Sequence[str]) -> str:
    """The result of `/cancel`; `kinds` are those of the jobs that it stopped."""
    if not kinds:
        return "No job is running or waiting here."
    names = [_JOB_NAMES.get(kind, "other work") for kind in kinds]
    return f"Stopped {count_noun(len(kinds), 'job')}: {', '.join(names)}."


def nothing_to_retry() -> str:
    """`/retry` without a failed job."""
    return "No job failed or was cancelled here, so there is nothing to retry."


def jobs_retried(kinds: Sequence[str]) -> str:
    """`/retry` has restarted jobs of these kinds."""
    return f"Running again: {', '.join(_JOB_NAMES.get(kind, 'other work') for kind in kinds)}."


def model_missing(request: str) -> str:
    """The command needs a model, and none is configured."""
    return f"{request} needs a language model, and none is configured. `/review`, `/fix`, `/why`, `/prove` and `/bisect` work without one."


def ask_for_test_command(request: str) -> str:
    """The command needs to run tests, and nobody has said how; `request` is how its comment would say it, or ""."""
    say = f"Write {code_span(request)}, or set" if request else "Set"
    question = "Which test?" if request else "How do the tests run?"
    return f"{question} {say} `tests.command` in `{CONFIG_PATH}`."


def finding_dismissed(
    title: str, undo: str, author: str = "", check: str = "", reason: str = ""
) -> str:
    """The finding was dismissed for a `reason`; `undo` takes that back; `author`: who did, where the change is their own.

    `check` is "CONCLUSION: TITLE" of the check run since then.
    """
    own = f" {code_span(author)}, who dismissed it, is the author of this change." if author else ""
    why = f" ({inline_prose(reason, 200)})" if reason.strip() else ""
    return f"Dismissed{why}: {inline_prose(title)}. It will not be raised again; {code_span(undo)} takes that back.{own}{_describe_check_now(check)}"


def _describe_check_now(check: str) -> str:
    conclusion, _, headline = check.partition(": ")
    now = f" The check `Regreen` is {code_span(conclusion)} now: {inline_prose(headline)}."
    return now if check else ""


def finding_restored(title: str, login: str, check: str = "", *, is_answered: bool) -> str:
    """`/undismiss` has taken the dismissal by `login` back; `is_answered`: a thumb or reply against it still stands.

    `check` is as for `finding_dismissed`.
    """
    who = f" (was dismissed by {code_span(login)})" if login else ""
    head = f"Counts again: {inline_prose(title)}{who}.{_describe_check_now(check)}"
    if not is_answered:
        return head
    return f"{head} The thumb or reply that dismissed it still stands: take it back, or the next review dismisses it again."


def unknown_finding(wanted: str, known: Sequence[tuple[str, str]], *, undo: bool = False) -> str:
    """`/dismiss` or `/undismiss` with an unknown id; `known` are the ids and titles that can be named."""
    if not known:
        return f"There is no {'dismissed finding here' if undo else 'finding here to dismiss'}."
    kind = "dismissed finding" if undo else "finding"
    question = f"There is no {kind} {code_span(wanted, 40)}." if wanted else f"Which {kind}?"
    rows = [f"- {code_span(name, 40)} {inline_prose(title)}" for name, title in known[:20]]
    return "\n".join([f"{question} {'Dismissed here' if undo else 'Findings here'}:", "", *rows])


def work_started(work: str) -> str:
    """The first text of a reply that will be edited."""
    return f"In progress: {work}."


def job_failed(reason: str, job: JobRecord, page: str = "", *, is_answer: bool = False) -> str:
    """A failed or refused job in one sentence; `page` is its address on the dashboard; `is_answer`: a model was asked."""
    name = "the answer" if is_answer else _JOB_NAMES.get(job.kind, "the job")
    kind = name.capitalize()
    details = f"[details]({page})" if page else ""
    if job.outcome == "refused":
        return f"{kind} was not started: {inline_prose(reason)}.{details and f' ({details})'}"
    details = details or f"Regreen's log has the details, under {code_span(job.id)}"
    return f"{kind} failed: {inline_prose(reason)}. ({details})"


def job_cancelled(job: JobRecord | None) -> str:
    """A cancelled job, and who or what cancelled it where that is known."""
    note = job.note if job and job.state == "cancelled" else "cancelled"
    return f"{inline_prose(note[:1].upper() + note[1:])}."


def config_shown(yaml: str, source: str, problems: Sequence[ConfigProblem]) -> str:
    """The configuration in force and its origin."""
    where = {
        "repository": f"`{CONFIG_PATH}` on the default branch",
        "organisation": f"`{CONFIG_PATH}` of the organisation's `.github` repository",
        "defaults": "the defaults; the default branch has no "
        f"`{CONFIG_PATH}`" + (" that can be read" if problems else ""),
        "last valid": "the last valid file; the present one cannot be read",
    }[source]
    marked = "" if source == "defaults" else "; `# default` marks what the file does not set"
    parts = [f"Effective configuration, from {where}{marked}:", fence_code(yaml, "yaml", 20_000)]
    parts += (
        [describe_unusable_config(problems, has_valid=source == "last valid")] if problems else []
    )
    return "\n\n".join(parts)


def nothing_to_approve(draft: int | None = None) -> str:
    """`/approve` with nothing to approve; `draft` is the number of a draft of ours that it was written on."""
    how = f" To accept #{draft}, mark it ready for review and merge it." if draft else ""
    return f"Nothing here is waiting for approval.{how}"


def fork_approved(sha: str) -> str:
    """`/approve` on a fork's pull request."""
    return f"Approved: the tests of `{sha[:12]}` may run in the sandbox. A new review has started."


def statistics_report(
    rows: Sequence[RuleStats], bins: Sequence[CalibrationBin], default: float
) -> str:
    """How often the findings of each rule were right here, and how well the confidence is calibrated."""
    if not rows:
        return (
            "No feedback yet: no finding here was applied, fixed, dismissed, resolved or voted on. "
            f"All rules use the configured confidence threshold ({default:.2f})."
        )
    table = ["| rule | outcomes | right | threshold |", "| --- | --- | --- | --- |"]
    table += [
        f"| {code_span(r.rule)} | {r.count} | {r.right} | {r.threshold:.2f} |" for r in rows[:50]
    ]
    plot = ["| stated confidence | findings | right |", "| --- | --- | --- |"]
    plot += [
        f"| {b.low:.2f} to {b.high:.2f} | {b.count} | {b.right} ({b.right / b.count:.0%}, stated {b.mean:.0%}) |"
        for b in bins
    ]
    head = "Feedback on the findings in this repository:"
    return "\n\n".join([head, "\n".join(table), "\n".join(plot)])
