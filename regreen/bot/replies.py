"""The one reply to a comment: one line for each command, edited as the work goes on."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from regreen.bot import messages as say
from regreen.bot.messages.markup import code_span, inline_prose
from regreen.domain.errors import OutsideError, UserError
from regreen.domain.events import CommentRef
from regreen.domain.github import GitHub, Reaction
from regreen.domain.records import Store
from regreen.domain.state_records import ReplyPart
from regreen.secrets.redaction import redact_secrets

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CommandReply:
    """Replies to the comment `ref` on issue or pull request `number`; without one, posts once for `subject`."""

    github: GitHub
    store: Store
    number: int
    ref: CommentRef | None
    subject: str

    def post_text(self, text: str) -> None:
        """Set this command's part of the reply, and post the reply."""
        line = self.ref.line if self.ref else 0
        if self.ref and self.ref.command:
            given = self.ref.command
            asked = (
                code_span(given, 200) if self.ref.id else f"The button **{inline_prose(given)}**"
            )
            text = f"> {asked}\n\n{text}"
        repo, number, thread = self.github.repo, self.number, self._key
        self.store.save(ReplyPart(repo, number, thread, line, redact_secrets(text)))
        mark, body = say.make_marker("reply", thread), _join_parts(self.store, repo, number, thread)
        if self.ref is not None and self.ref.review:
            self.github.reply(self.number, self.ref.id, mark, body)
        else:
            self.github.post_comment(self.number, mark, body)

    def decline(self, text: str) -> None:
        """Answer that the command was not carried out."""
        self.post_text(text)
        self.show_reaction("confused")

    def show_reaction(self, reaction: Reaction) -> None:
        """Show the progress as a reaction on the comment. A failure does not fail the job."""
        if not self.ref or not self.ref.id:
            return
        try:
            self.github.react(self.ref.id, reaction, review=self.ref.review)
        except (OutsideError, UserError) as error:
            _log.warning("no reaction on comment %d: %s", self.ref.id, error)

    @property
    def _key(self) -> str:
        return f"comment-{self.ref.id}" if self.ref and self.ref.id else self.subject


def settle_waiting_patches(
    github: GitHub, store: Store, number: int, outcome: say.PatchOutcome, *, on_pull: bool
) -> None:
    """Write into our earlier replies what became of the patch that they say to wait. A failure does not fail the job."""
    repo = github.repo
    for part in store.find_all(ReplyPart, repo=repo, number=number):
        text = say.settle_waiting_patch(part.text, outcome)
        if text == part.text:
            continue
        store.save(replace(part, text=text))
        mark = say.make_marker("reply", part.thread)
        body = _join_parts(store, repo, number, part.thread)
        try:
            remarks = github.review_comments(number) if on_pull else []
            if thread := next((one.id for one in remarks if one.ours and mark in one.body), 0):
                github.reply(number, thread, mark, body)
            else:
                github.post_comment(number, mark, body)
        except (OutsideError, UserError) as error:
            _log.warning("a reply on %s#%d stays as it is: %s", repo, number, error)


def _join_parts(store: Store, repo: str, number: int, thread: str) -> str:
    parts = store.find_all(ReplyPart, repo=repo, number=number, thread=thread)
    return "\n\n".join(part.text for part in sorted(parts, key=lambda part: part.line))
