"""What repairs, bisections and a model's answers say."""

from __future__ import annotations

from regreen.bot.say.markup import code, counted, flat, foreign, marker, one_line, span
from regreen.fixers.case import Fix
from regreen.forge import CheckRun
from regreen.models import Cost

REPAIR_CHECK = "Regreen repair"


def fix_title(check: str, found: Fix) -> str:
    """The title of a patch pull request, and its commit's subject: at most 72 characters."""
    test = found.before.failures[0].test if found.before.failures else check
    title = f"Make {flat(test) or 'the check'} pass again"
    return title if len(title) <= 72 else title[:71] + "…"


def fix_body(found: Fix, step: str, url: str, report: str) -> str:
    """The body of a patch pull request: what was red, the proof, and what a reader should do."""
    red = f"[{one_line(step)}]({url})" if url else span(step)
    head = f"{red} failed. This patch makes it pass; nothing was merged, and a person decides."
    return "\n\n".join([head, report, marker("fix", found.rung or "none")])


def fix_opened(number: int, cause: str) -> str:
    """Where the patch is."""
    tail = f" Cause: {one_line(cause)}" if cause else ""
    return f"A verified patch is in #{number}, as a draft.{tail}"


def fix_waits(report: str) -> str:
    """A patch that only a person may let through."""
    return f"A patch works, and needs your approval: `/approve` opens it as a draft.\n\n{report}"


def not_repaired(head_sha: str, external_id: str, reason: str) -> CheckRun:
    """A repair that nobody asked for and that came to nothing: said once, quietly, on the commit itself."""
    return CheckRun(
        name=REPAIR_CHECK,
        head_sha=head_sha,
        external_id=external_id,
        title="No repair was possible",
        summary=reason,
        conclusion="neutral",
    )


def fix_by_hand(report: str) -> str:
    """A patch that a person has to agree to, where nobody can be asked to."""
    return f"A patch works, and a person has to agree to it. It is below; nothing was pushed.\n\n{report}"


def approval_too_late(approved: str, head: str) -> str:
    """`/approve` for a patch that was made for an older commit."""
    return (
        f"The patch was made and shown for {span(approved[:12])}, and the branch is at {span(head[:12])} now, so the"
        " approval does not hold. `/fix` tries again there."
    )


def fix_for_fork(report: str) -> str:
    """A patch for a branch that is somebody else's."""
    return (
        "A verified patch is below. The branch is a fork's, so nothing was pushed: who owns it can `git apply` it."
        f"\n\n{report}"
    )


def no_fix(step: str, report: str) -> str:
    """No patch, and why."""
    return f"No patch for {span(step)}.\n\n{report}"


def bisected(report: str, revert: int | None = None) -> str:
    """What a bisection found out, and the draft that takes the culprit back."""
    if revert is None:
        return report
    return f"{report}\n\n#{revert} takes that commit back, as a draft; a person decides."


def revert_title(subject: str) -> str:
    """The title of a revert's pull request."""
    title = f"Revert “{flat(subject)}”"
    return title if len(title) <= 72 else title[:71] + "…"


def revert_body(command: str, report: str) -> str:
    """Why a commit is taken back, and what was run on the result."""
    head = "This takes back the commit that broke a test. On the branch with this revert it passes:"
    return "\n\n".join([head, code(command, "sh"), report])


def regression_title(branch: str, subject: str | None) -> str:
    """The title of a regression's issue."""
    if subject is None:
        return f"{flat(branch)} is red"
    return f"{flat(branch)} is red since “{flat(subject, 120)}”"


def regression_body(schedule: str, test: str, report: str) -> str:
    """A regression's issue: what failed, and the commit that broke it."""
    head = f"The schedule {span(schedule)} found this test failing:"
    tail = "This issue is closed by itself when the test passes again."
    return "\n\n".join([head, code(test, "sh"), report, tail])


def green_again(schedule: str, sha: str) -> str:
    """A regression is over."""
    return f"Green again at {sha[:12]}: the schedule {span(schedule)} passes."


def needless_fix(branch: str, sha: str) -> str:
    """A draft of ours that is not needed any more."""
    return f"{span(branch)} is green again at {sha[:12]} without this patch: closing it."


def answered(text: str, cost: Cost, *, code: bool) -> str:
    """A model's answer, with nothing in it that acts, links, pings or hides; `code`: it was shown the code, too."""
    seen = "this page and the code around the change" if code else "this page alone"
    return f"{foreign(text, 12_000)}\n\n<sub>A model's answer, from {seen} · ${cost.usd:.3f}</sub>"


def proposed_test(path: str, source: str, why: str, command: str) -> str:
    """A test that was run."""
    parts = [f"A test for this change: {one_line(why)}", f"{span(path)}:"]
    parts += [
        code(source, "python", 20_000),
        f"It was run in the sandbox and passes: {span(command)}.",
    ]
    return "\n\n".join(parts)


def no_test(rounds: int) -> str:
    """No test came out."""
    return f"No test came out of {counted(rounds, 'attempt')} that passes on this change."
