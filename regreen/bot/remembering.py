"""What was said on a pull request: no finding twice, its thread resolved when it is gone, none back once dismissed."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection
from dataclasses import asdict, astuple, dataclass
from datetime import datetime

from regreen.errors import OutsideError, UserError
from regreen.forge import GitHub
from regreen.models import Finding, Review, Side, Signals
from regreen.records import Store
from regreen.reviewers.findings import code_of, normalise, places_of
from regreen.reviewers.learning import How, Outcome
from regreen.reviewers.memory import Known, Memory

_MOST_CODE = 2000
_log = logging.getLogger(__name__)

TextOf = Callable[[str, Side], str | None]
"""A file's text at the reviewed head (RIGHT) or before the change (LEFT); None where there is no such file."""


@dataclass(frozen=True, slots=True)
class Said:
    """A finding that was posted: enough to know it again, and to see that it is gone. A row of the store."""

    id: str
    title: str
    path: str = ""
    rule: str = ""
    dimension: str = ""
    places: str = ""
    code: str = ""
    confidence: float = 0.8
    signals: str = ""
    suggestion: str = ""
    side: Side = "RIGHT"

    def outcome(self, repo: str, number: int, fingerprint: str, how: How, at: datetime) -> Outcome:
        """What became of it."""
        signals = Signals(**json.loads(self.signals)) if self.signals else None
        return Outcome(
            repo, number, fingerprint, self.rule, self.confidence, how, at.isoformat(), signals
        )

    def was_applied(self, text: str | None) -> bool:
        """Whether a file now holds what was suggested, in place of what was remarked on."""
        if text is None or not self.suggestion:
            return False
        now = normalise(text)
        return self.suggestion in now and self.code not in now


class Remembered:
    """What was posted and dismissed on one pull request; `subject` is "owner/name#number"."""

    def __init__(self, store: Store, subject: str) -> None:
        self._store = store
        self._posted = f"posted/{subject}"
        self._dismissed = f"dismissed/{subject}"
        self._open = f"to-resolve/{subject}"

    def posted(self) -> dict[str, Said]:
        """Every finding that stands on the pull request, by fingerprint."""
        return {key: Said(*json.loads(value)) for key, value in self._store.items(self._posted)}

    def open_ones(self) -> list[Said]:
        """Every finding that stands and that nobody turned down."""
        dismissed = self._turned_down()
        return [said for name, said in self.posted().items() if name not in dismissed]

    def memory(self, *, full: bool) -> Memory:
        """For a review; `full`: as if nothing had been posted. What was dismissed stays dismissed."""
        posted, dismissed = self.posted(), self._turned_down()
        said = {k: p for k, p in posted.items() if k in dismissed or not full}
        return Memory(
            frozenset() if full else frozenset(_names(posted, posted)),
            frozenset(dismissed | _names(posted, dismissed)),
            known=tuple(
                Known(key, one.path, one.title, one.code)
                for key, one in said.items()
                if one.rule.startswith("model/")
            ),
        )

    def _turned_down(self) -> set[str]:
        return {key for key, _ in self._store.items(self._dismissed)}

    def remember(self, finding: Finding, text_of: TextOf) -> None:
        """A finding was posted."""
        text = text_of(finding.path, finding.side)
        said = Said(
            finding.id,
            finding.title,
            finding.path,
            finding.rule,
            finding.dimension,
            " ".join(sorted(places_of(finding, text))),
            self._code(finding, text, text_of),
            finding.confidence,
            json.dumps(asdict(finding.signals)) if finding.signals else "",
            normalise(finding.suggestion or "")[:_MOST_CODE],
            finding.side,
        )
        self._store.put(self._posted, finding.fingerprint, json.dumps(astuple(said)))
        self._store.delete(self._open, finding.fingerprint)

    @staticmethod
    def _code(finding: Finding, text: str | None, text_of: TextOf) -> str:
        """The code that a finding stands or falls with; none where lines that were taken away stand elsewhere too."""
        code = normalise(code_of(finding, text))[:_MOST_CODE] if text is not None else ""
        if finding.side == "RIGHT":
            return code
        now = text_of(finding.path, "RIGHT")
        return "" if now is not None and code in normalise(now) else code

    def standing(self, found: Review) -> tuple[Finding, ...]:
        """What was posted earlier and is still there: it is not said again, and the check is not green."""
        posted = self.posted()
        names = _names(posted, posted)
        kept = {w.finding.fingerprint: w.finding for w in found.withheld if w.reason == "duplicate"}
        new = {f.fingerprint for f in found.findings}
        return tuple(
            finding
            for name, finding in kept.items()
            if name not in new and (name in names or _place_in(finding, posted))
        )

    def gone(self, found: Review, text_of: TextOf) -> set[str]:
        """The posted findings that this review would have found again if they were still there.

        What was dismissed is kept, so that it is known again when its code is only changed a little.
        """
        there = [*found.findings, *(w.finding for w in found.withheld)]
        names = {f.fingerprint for f in there}
        unread = {u.path for u in found.not_reviewed}
        skipped = {s.reviewer.partition("/")[0] for s in found.skipped}
        posted = self.posted()
        known = _names(posted, posted)
        new = [
            f for f in there if not known & {f.fingerprint, *places_of(f, text_of(f.path, f.side))}
        ]
        dismissed = self._turned_down()
        return {
            name
            for name, said in posted.items()
            if name not in names
            and name not in dismissed
            and said.path
            and said.path not in unread
            and _is_gone(said, new, text_of(said.path, "RIGHT"), skipped)
        }

    def dismiss(self, fingerprint: str, login: str, reason: str) -> None:
        """Somebody turned a finding down: it never returns."""
        self._store.put(self._dismissed, fingerprint, json.dumps([login, reason[:500]]))

    def undo_dismissal(self, fingerprint: str, reason: str) -> None:
        """Take back a dismissal that was made for this reason."""
        known = self._store.get(self._dismissed, fingerprint)
        if known is not None and json.loads(known)[1] == reason:
            self._store.delete(self._dismissed, fingerprint)

    def close(self, github: GitHub, number: int, fingerprints: Collection[str]) -> None:
        """Resolve the threads of findings that are gone or turned down, and those that could not be the last time."""
        left = {key for key, _ in self._store.items(self._open)}
        wanted = left | set(fingerprints)
        if not wanted:
            return
        if resolve_threads(github, number, wanted):
            for name in left:
                self._store.delete(self._open, name)
        else:
            for name in wanted - left:
                self._store.put(self._open, name, "")

    def forget(self, fingerprints: Collection[str]) -> None:
        """These are gone: if they come back, that is news."""
        for name in fingerprints:
            self._store.delete(self._posted, name)


def resolve_threads(github: GitHub, number: int, fingerprints: Collection[str]) -> bool:
    """Resolve the threads that findings of ours opened; whether that could be done. It is worth no job's failure."""
    try:
        for thread in github.threads(number):
            first = thread.comments[0].body if thread.comments else ""
            if not thread.resolved and any(f"finding:{name}" in first for name in fingerprints):
                github.resolve(thread.id)
    except (OutsideError, UserError) as error:
        _log.warning("threads of %s#%d stay open: %s", github.repo, number, error)
        return False
    return True


def _names(posted: dict[str, Said], chosen: Collection[str]) -> set[str]:
    there = [name for name in chosen if name in posted]
    return {*there, *(place for name in there for place in posted[name].places.split())}


def _place_in(finding: Finding, posted: dict[str, Said]) -> bool:
    """A model's finding that was worded anew: known by its file, tool and dimension."""
    return any(
        (said.path, said.dimension) == (finding.path, finding.dimension)
        and said.rule.startswith("model/")
        and finding.rule.startswith("model/")
        for said in posted.values()
    )


def _is_gone(said: Said, new: Collection[Finding], text: str | None, skipped: set[str]) -> bool:
    """An analyzer that says it no more is believed; a model only where the code itself is gone.

    And not even then where it says something `new` of the same file, which may be the same fault on other code. What
    a model missed of the code before is gone once that code is back.
    """
    if text is None:
        return said.side == "RIGHT"
    changed = bool(said.code) and (said.code in normalise(text)) is (said.side == "LEFT")
    if said.rule.startswith("model/"):
        reworded = any(f.path == said.path and f.rule.startswith("model/") for f in new)
        return changed and not reworded
    tool = said.rule.partition("/")[0]
    return changed or not skipped & {tool, said.dimension}
