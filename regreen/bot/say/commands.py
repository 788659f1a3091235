"""What a command is answered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from regreen.bot.say.markup import code, counted, one_line, span
from regreen.bot.say.reviews import broken_config
from regreen.errors import Problem
from regreen.repo_config import CONFIG_PATH
from regreen.reviewers.learning import Bin, RuleStats


def refused(login: str, allow: str) -> str:
    """Somebody may not give commands here."""
    return f"@{login}, only people with {allow} access may do that."


def too_many(login: str) -> str:
    """Somebody gives more commands than one person needs."""
    return f"@{login}, that is more than 30 commands in an hour; go on a little later."


def unclear(problem: str) -> str:
    """A command that cannot be read."""
    return f"That is not clear: {problem}"


def help_text(usage: Iterable[str], prefix: str) -> str:
    """What can be asked for."""
    lines = [f"- {span(prefix + u)}" for u in usage]
    return "\n".join(["What I understand:", "", *lines])


def cancelled(count: int) -> str:
    """What `/cancel` did."""
    return f"Stopped {counted(count, 'job')}." if count else "Nothing is running or waiting here."


def nothing_to_retry() -> str:
    """`/retry` where nothing failed."""
    return "Nothing here has failed or was cancelled."


def retried(kind: str) -> str:
    """`/retry` put a job back."""
    return f"Trying the {kind} again."


def no_model(what: str) -> str:
    """A command that only a model can obey, where there is none."""
    return (
        f"{what} needs a language model, and this Regreen has none: its operator has not set "
        "`ANTHROPIC_API_KEY` or `ANTHROPIC_BASE_URL`. `/review`, `/fix` and `/bisect` work without."
    )


def dismissed(title: str) -> str:
    """A finding was turned down."""
    return f"Dismissed: {one_line(title)}. It will not be raised again."


def unknown_finding(wanted: str, known: Sequence[tuple[str, str]]) -> str:
    """`/dismiss` with an id that is none of ours; `known` are ids and titles."""
    if not known:
        return "There is no finding here to dismiss."
    asked = f"There is no finding {span(wanted, 40)}." if wanted else "Which finding?"
    rows = [f"- {span(name, 40)} {one_line(title)}" for name, title in known[:20]]
    return "\n".join([f"{asked} Here are:", "", *rows])


def on_it(what: str) -> str:
    """The first words of an answer that will be edited."""
    return f"On it: {what}."


def failed(reason: str, job: str) -> str:
    """A job that ended badly, in one sentence."""
    return f"That did not work: {one_line(reason)}. (job `{job}`)"


def was_cancelled() -> str:
    """A job somebody stopped."""
    return "Stopped."


def config_shown(yaml: str, source: str, problems: Sequence[Problem]) -> str:
    """The configuration in force, and where it comes from."""
    where = {
        "repository": f"`{CONFIG_PATH}` on the default branch",
        "organisation": f"`{CONFIG_PATH}` of the organisation's `.github` repository",
        "defaults": "the defaults; the repository has no file of its own",
        "last valid": "the last valid file; the present one cannot be read",
    }[source]
    marked = "" if source == "defaults" else "; what is marked is a default that it does not name"
    parts = [f"In force here, from {where}{marked}:", code(yaml, "yaml", 20_000)]
    parts += [broken_config(problems)] if problems else []
    return "\n\n".join(parts)


def nothing_to_approve() -> str:
    """`/approve` where nothing waits for it."""
    return "Nothing here waits for an approval."


def fork_approved(sha: str) -> str:
    """`/approve` on a fork's pull request."""
    return f"Approved: the tests of `{sha[:12]}` may be run in the sandbox. Reviewing again."


def statistics(rows: Sequence[RuleStats], bins: Sequence[Bin], default: float) -> str:
    """How often the findings of each rule were right here, and how well confidence was meant."""
    if not rows:
        return (
            "Nothing is known yet: no finding here was applied, mended, dismissed, resolved or voted on. "
            f"Every rule needs {default:.2f}."
        )
    table = ["| rule | outcomes | right | needs now |", "| --- | --- | --- | --- |"]
    table += [f"| {span(r.rule)} | {r.count} | {r.right} | {r.threshold:.2f} |" for r in rows[:50]]
    plot = ["| stated confidence | findings | right |", "| --- | --- | --- |"]
    plot += [
        f"| {b.low:.2f} to {b.high:.2f} | {b.count} | {b.right} ({b.right / b.count:.0%}, stated {b.mean:.0%}) |"
        for b in bins
    ]
    head = "What became of the findings in this repository:"
    return "\n\n".join([head, "\n".join(table), "\n".join(plot)])
