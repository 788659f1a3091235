"""What people did with our findings on one pull request becomes outcomes, and dismissals that last."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from regreen.bot.desk import Desk
from regreen.bot.outcomes import Outcomes, heard
from regreen.bot.remembering import Remembered, Said
from regreen.forge import PERMISSIONS, REVIEW, GitHub
from regreen.reviewers.learning import How
from regreen.webhooks.events import ThreadChanged, Where

RESOLVED = "its thread was resolved"
_NEVER_AGAIN: frozenset[How] = frozenset({"down", "denied"})

TextOf = Callable[[str], str | None]


def turned_down(desk: Desk, where: Where, number: int, fingerprint: str, said: Said) -> None:
    """`/dismiss` or the button: the plainest word there is."""
    outcome = said.outcome(where.repo, number, fingerprint, "dismissed", desk.clock.now())
    Outcomes(desk.store).note(outcome)


def hear(desk: Desk, github: GitHub, number: int) -> None:
    """Read thumbs and replies under our findings. A thumb down or a denial turns the finding down for good."""
    remembered = Remembered(desk.store, f"{github.repo}#{number}")
    posted = remembered.posted()
    if not posted:
        return
    outcomes = Outcomes(desk.store)
    for fingerprint, how in heard(github, number, set(posted)).items():
        outcomes.note(
            posted[fingerprint].outcome(github.repo, number, fingerprint, how, desk.clock.now())
        )
        if how in _NEVER_AGAIN:
            remembered.dismiss(fingerprint, "", f"people said so ({how})")
            remembered.close(github, number, {fingerprint})


def mended(
    desk: Desk, repo: str, number: int, gone: Mapping[str, Said], text_of: TextOf
) -> None:  # fmt: skip
    """Findings that are not there any more: the suggestion was taken, or the code was changed otherwise."""
    outcomes = Outcomes(desk.store)
    for fingerprint, said in gone.items():
        how: How = "applied" if said.was_applied(text_of(said.path)) else "mended"
        outcomes.note(said.outcome(repo, number, fingerprint, how, desk.clock.now()))


def thread_changed(desk: Desk, event: ThreadChanged) -> str:
    """A person with write access resolved a thread of ours: its finding is not raised again, unless it is reopened."""
    if event.actor.is_bot:
        return "a bot's doing"
    github = desk.github(event.where, REVIEW)
    allowed = github.permission(event.actor.login)
    if PERMISSIONS.index(allowed) < PERMISSIONS.index("write"):
        return f"{event.actor.login} may not teach"
    remembered = Remembered(desk.store, f"{event.where.repo}#{event.number}")
    outcomes = Outcomes(desk.store)
    word = "resolved" if event.resolved else "reopened"
    ours = [r for r in github.remarks(event.number) if r.ours and r.id in event.comments]
    named = {f: said for f, said in remembered.posted().items() if any(f"finding:{f}" in r.body for r in ours)}  # fmt: skip
    for fingerprint, said in named.items():
        if event.resolved:
            outcome = said.outcome(event.where.repo, event.number, fingerprint, "resolved", desk.clock.now())  # fmt: skip
            outcomes.note(outcome)
            remembered.dismiss(fingerprint, event.actor.login, RESOLVED)
        else:
            outcomes.withdraw(event.where.repo, event.number, fingerprint, "resolved")
            remembered.undo_dismissal(fingerprint, RESOLVED)
    return f"{word} by {event.actor.login}: {len(named)} findings"
