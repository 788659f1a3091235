"""Replies to commands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from regreen.bot.messages.markup import code_span, count_noun, fence_code, inline_prose
from regreen.bot.messages.reviews import describe_unusable_config
from regreen.domain.errors import ConfigProblem
from regreen.domain.repo_config import CONFIG_PATH
from regreen.reviewers.learning import CalibrationBin, RuleStats


def command_refused(login: str, allow: str) -> str:
    """The author lacks the permission for the command."""
    return f"@{login}, only people with {allow} access may do that."


def command_not_run(reason: str) -> str:
    """The command was understood and is not carried out."""
    return f"That was not done: {inline_prose(reason)}."


def too_many_commands(login: str) -> str:
    """The author has given too many commands."""
    return f"@{login}, that is more than 30 commands in an hour; go on a little later."


def command_unclear(problem: str) -> str:
    """The command cannot be parsed."""
    return f"That is not clear: {problem}"


def help_text(usage: Iterable[str], prefix: str) -> str:
    """The list of commands."""
    lines = [f"- {code_span(prefix + u)}" for u in usage]
    return "\n".join(["What I understand:", "", *lines])


def jobs_cancelled(count: int) -> str:
    """The result of `/cancel`."""
    return (
        f"Stopped {count_noun(count, 'job')}." if count else "Nothing is running or waiting here."
    )


def nothing_to_retry() -> str:
    """`/retry` without a failed job."""
    return "Nothing here has failed or was cancelled."


def job_retried(kind: str) -> str:
    """`/retry` has restarted a job."""
    return f"Trying the {kind} again."


def model_missing(request: str) -> str:
    """The command needs a model, and none is configured."""
    return (
        f"{request} needs a language model, and this Regreen has none: its operator has not set "
        "`ANTHROPIC_API_KEY` or `ANTHROPIC_BASE_URL`. `/review`, `/fix` and `/bisect` work without."
    )


def finding_dismissed(title: str) -> str:
    """The finding was dismissed."""
    return f"Dismissed: {inline_prose(title)}. It will not be raised again."


def unknown_finding(wanted: str, known: Sequence[tuple[str, str]]) -> str:
    """`/dismiss` with an unknown id; `known` are the ids and titles."""
    if not known:
        return "There is no finding here to dismiss."
    question = f"There is no finding {code_span(wanted, 40)}." if wanted else "Which finding?"
    rows = [f"- {code_span(name, 40)} {inline_prose(title)}" for name, title in known[:20]]
    return "\n".join([f"{question} Here are:", "", *rows])


def work_started(work: str) -> str:
    """The first text of a reply that will be edited."""
    return f"On it: {work}."


def job_failed(reason: str, job: str) -> str:
    """A failed job in one sentence."""
    return f"That did not work: {inline_prose(reason)}. (job `{job}`)"


def job_cancelled() -> str:
    """A cancelled job."""
    return "Stopped."


def config_shown(yaml: str, source: str, problems: Sequence[ConfigProblem]) -> str:
    """The configuration in force and its origin."""
    where = {
        "repository": f"`{CONFIG_PATH}` on the default branch",
        "organisation": f"`{CONFIG_PATH}` of the organisation's `.github` repository",
        "defaults": "the defaults; the repository has no file of its own",
        "last valid": "the last valid file; the present one cannot be read",
    }[source]
    marked = "" if source == "defaults" else "; what is marked is a default that it does not name"
    parts = [f"In force here, from {where}{marked}:", fence_code(yaml, "yaml", 20_000)]
    parts += [describe_unusable_config(problems)] if problems else []
    return "\n\n".join(parts)


def nothing_to_approve() -> str:
    """`/approve` with nothing to approve."""
    return "Nothing here waits for an approval."


def fork_approved(sha: str) -> str:
    """`/approve` on a fork's pull request."""
    return f"Approved: the tests of `{sha[:12]}` may be run in the sandbox. Reviewing again."


def statistics_report(
    rows: Sequence[RuleStats], bins: Sequence[CalibrationBin], default: float
) -> str:
    """How often the findings of each rule were right here, and how well the confidence is calibrated."""
    if not rows:
        return (
            "Nothing is known yet: no finding here was applied, mended, dismissed, resolved or voted on. "
            f"Every rule needs {default:.2f}."
        )
    table = ["| rule | outcomes | right | needs now |", "| --- | --- | --- | --- |"]
    table += [
        f"| {code_span(r.rule)} | {r.count} | {r.right} | {r.threshold:.2f} |" for r in rows[:50]
    ]
    plot = ["| stated confidence | findings | right |", "| --- | --- | --- |"]
    plot += [
        f"| {b.low:.2f} to {b.high:.2f} | {b.count} | {b.right} ({b.right / b.count:.0%}, stated {b.mean:.0%}) |"
        for b in bins
    ]
    head = "What became of the findings in this repository:"
    return "\n\n".join([head, "\n".join(table), "\n".join(plot)])
