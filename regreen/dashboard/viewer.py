"""Who looks at the dashboard, and what they may see and do there."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

FORM_TOKEN_FIELD = "form_token"  # noqa: S105


@dataclass(frozen=True, slots=True)
class Viewer:
    """Somebody who may look. `reads` None is the operator, who sees everything.

    `secret` is what the tokens in their forms are made from; `session` is where their sign-in is kept.
    """

    name: str
    secret: bytes
    reads: frozenset[str] | None = None
    writes: frozenset[str] = frozenset()
    session: str = ""

    @property
    def repos(self) -> tuple[str, ...] | None:
        """The repositories to show, None for all."""
        return None if self.reads is None else tuple(sorted(self.reads))

    def may_see(self, repo: str | None) -> bool:
        """Whether what belongs to a repository may be shown; what belongs to none is the operator's."""
        return self.reads is None or repo in self.reads

    def may_act(self, repo: str | None) -> bool:
        """Whether this reader may cancel and repeat what belongs to a repository: as GitHub's right to write."""
        return self.reads is None or repo in self.writes

    def form_token(self) -> str:
        """What a form of ours carries, and a page of somebody else cannot know."""
        return hmac.new(self.secret, b"form:" + self.name.encode(), hashlib.sha256).hexdigest()

    def has_form_token(self, token: str) -> bool:
        """Whether a form comes from one of this reader's pages."""
        return hmac.compare_digest(token.encode(), self.form_token().encode())
