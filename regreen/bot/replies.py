"""The one answer to a comment: a line for each of its commands, edited as the work goes on."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from regreen.bot import say
from regreen.bot.asks import CommentRef
from regreen.codebase.redaction import redact
from regreen.errors import OutsideError, UserError
from regreen.forge import GitHub, Reaction
from regreen.records import Store

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reply:
    """Answers the comment `ref` on issue or pull request `number`; without one, speaks once for `subject`."""

    github: GitHub
    store: Store
    number: int
    ref: CommentRef | None
    subject: str

    def say(self, text: str) -> None:
        """Put `text` as this command's part of the answer, and post it."""
        line = self.ref.line if self.ref else 0
        self.store.put(self._space, f"{line:03}", redact(text))
        body = "\n\n".join(part for _, part in sorted(self.store.items(self._space)))
        mark = say.marker("reply", self._key)
        if self.ref is not None and self.ref.review:
            self.github.reply(self.number, self.ref.id, mark, body)
        else:
            self.github.comment(self.number, mark, body)

    def react(self, reaction: Reaction) -> None:
        """Show on the comment how far it is. No reaction is worth a job's failure."""
        if self.ref is None:
            return
        try:
            self.github.react(self.ref.id, reaction, review=self.ref.review)
        except (OutsideError, UserError) as error:
            _log.warning("no reaction on comment %d: %s", self.ref.id, error)

    @property
    def _key(self) -> str:
        return f"comment-{self.ref.id}" if self.ref else self.subject

    @property
    def _space(self) -> str:
        return f"reply/{self.github.repo}#{self.number}/{self._key}"[:300]
