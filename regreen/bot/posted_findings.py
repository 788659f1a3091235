"""Posted findings of a pull request: none is posted twice, fixed ones are resolved, dismissed ones stay away."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime

from pydantic import TypeAdapter

from regreen.bot.messages.markup import has_marker
from regreen.domain.errors import OutsideError, UserError
from regreen.domain.github import GitHub
from regreen.domain.models import Finding, Review, Side, SkippedReviewer, UnreadFile
from regreen.domain.records import Store
from regreen.domain.state_records import (
    Dismissal,
    FindingOutcome,
    OutcomeKind,
    PostedFinding,
    StateRecord,
    UnresolvedThread,
)
from regreen.reviewers.context import EarlierFinding, ReviewMemory
from regreen.reviewers.findings import finding_code, keys_by_quoted_code, normalise_code

_MAX_CODE_CHARS = 2000
_log = logging.getLogger(__name__)

TextOf = Callable[[str, Side], str | None]
"""A file's text at the reviewed head (RIGHT) or before the change (LEFT); None where there is no such file."""


def make_outcome(finding: PostedFinding, how: OutcomeKind, at: datetime) -> FindingOutcome:
    """The outcome of a posted finding."""
    return FindingOutcome(
        finding.repo,
        finding.number,
        finding.fingerprint,
        finding.rule,
        finding.confidence,
        how,
        at.isoformat(),
        finding.signals,
    )


def was_applied(finding: PostedFinding, text: str | None) -> bool:
    """Whether a file now contains the suggestion in place of the criticised code."""
    if text is None or not finding.suggestion:
        return False
    now = normalise_code(text)
    return finding.suggestion in now and finding.code not in now


class PostedFindings:
    """What was posted and dismissed on one pull request."""

    def __init__(self, store: Store, repo: str, number: int) -> None:
        self._store = store
        self._repo = repo
        self._number = number

    def load_posted(self) -> dict[str, PostedFinding]:
        """Every finding that is posted on the pull request, by fingerprint."""
        posted = self._store.find_all(PostedFinding, repo=self._repo, number=self._number)
        return {finding.fingerprint: finding for finding in posted}

    def open_findings(self) -> list[PostedFinding]:
        """Every posted finding that nobody dismissed."""
        dismissed = self.dismissed_names()
        return [finding for name, finding in self.load_posted().items() if name not in dismissed]

    def find_shown(self, github: GitHub, head: str) -> set[str]:
        """The findings with an open thread on the pull request, if its newest review was of this head; else none."""
        newest = self._store.documents(kind="review", repo=self._repo, number=self._number, limit=1)
        if not newest or newest[0].body.get("head") != head:
            return set()
        ours = {one.id for one in github.review_comments(self._number) if one.ours}
        threads = [
            thread
            for thread in github.threads(self._number)
            if thread.comments and not thread.resolved and thread.comments[0].id in ours
        ]
        return {
            name
            for name in self.load_posted()
            if any(has_marker(t.comments[0].body, "finding", name) for t in threads)
        }

    def review_memory(self, *, full: bool, shown: Collection[str] = ()) -> ReviewMemory:
        """What a review must know; `full`: as if only what is `shown` had been posted. Dismissed findings stay dismissed."""
        posted, dismissed = self.load_posted(), self.dismissed_names()
        remembered = {k: p for k, p in posted.items() if k in dismissed or k in shown or not full}
        # a place that several findings share names the dismissed one: the review is asked for it first
        ordered = sorted(posted, key=lambda name: name in dismissed)
        return ReviewMemory(
            frozenset(_finding_names(posted, shown if full else posted)),
            frozenset(dismissed | _finding_names(posted, dismissed)),
            known=tuple(
                EarlierFinding(key, finding.path, finding.title, finding.code)
                for key, finding in remembered.items()
                if finding.rule.startswith("model/")
            ),
            fingerprints={place: name for name in ordered for place in posted[name].places.split()}
            | {name: name for name in ordered},
        )

    def dismissals(self) -> dict[str, Dismissal]:
        """What somebody dismissed here, by fingerprint."""
        dismissed = self._store.find_all(Dismissal, repo=self._repo, number=self._number)
        return {dismissal.fingerprint: dismissal for dismissal in dismissed}

    def dismissed_names(self) -> set[str]:
        """The fingerprints of the findings that somebody dismissed here."""
        return set(self.dismissals())

    def record_posted(self, finding: Finding, text_of: TextOf) -> None:
        """Record that a finding was posted."""
        text = text_of(finding.path, finding.side)
        self._store.save(
            PostedFinding(
                repo=self._repo,
                number=self._number,
                fingerprint=finding.fingerprint,
                id=finding.id,
                title=finding.title,
                path=finding.path,
                rule=finding.rule,
                dimension=finding.dimension,
                places=" ".join(sorted(keys_by_quoted_code(finding, text))),
                code=self._relevant_code(finding, text, text_of),
                confidence=finding.confidence,
                signals=finding.signals,
                suggestion=normalise_code(finding.suggestion or "")[:_MAX_CODE_CHARS],
                side=finding.side,
            )
        )
        self._forget(UnresolvedThread, finding.fingerprint)

    @staticmethod
    def _relevant_code(finding: Finding, text: str | None, text_of: TextOf) -> str:
        """The code whose removal fixes a finding; "" if the same lines also stand elsewhere."""
        code = (
            normalise_code(finding_code(finding, text))[:_MAX_CODE_CHARS]
            if text is not None
            else ""
        )
        if finding.side == "RIGHT":
            return code
        now = text_of(finding.path, "RIGHT")
        return "" if now is not None and code in normalise_code(now) else code

    def still_standing(self, review: Review) -> tuple[Finding, ...]:
        """Findings that were posted earlier and still hold, dismissed or not, with the id and title of their threads."""
        posted = self.load_posted()
        again = {
            w.finding.fingerprint: w.finding
            for w in review.withheld
            if w.reason in {"duplicate", "dismissed"}
        }
        new = {f.fingerprint for f in review.findings}
        return tuple(
            replace(finding, id=posted[name].id, title=posted[name].title)
            for name, finding in again.items()
            if name not in new and name in posted
        )

    def find_gone(self, review: Review, text_of: TextOf) -> set[str]:
        """The posted findings that are fixed: this review would have found them again.

        Dismissed ones are kept, so that they are recognised when their code changes a little.
        """
        findings = [*review.findings, *(w.finding for w in review.withheld)]
        missing = self._list_missing(findings)
        return self._choose_fixed(missing, findings, review.not_reviewed, review.skipped, text_of)

    def find_unsaid(
        self,
        findings: Sequence[Finding],
        not_reviewed: Sequence[UnreadFile],
        skipped: Sequence[SkippedReviewer],
        *,
        text_of: TextOf,
    ) -> list[Finding]:
        """The open findings that a review does not say again although their code stands, at their present lines."""
        posted = self.load_posted()
        if not posted:
            return []
        missing = self._list_missing(findings)
        missing -= self._choose_fixed(missing, findings, not_reviewed, skipped, text_of)
        model = [f for f in findings if f.rule.startswith("model/")] if missing else []
        said_of = {k for f in model for k in keys_by_quoted_code(f, text_of(f.path, f.side))}
        left: set[str] = set()
        # what is said of the same code now, in other words, stands for all that was said of it
        for name in reversed(posted):
            places = set(posted[name].places.split())
            stands = name in missing and _stands(posted[name], text_of)
            if stands and said_of.isdisjoint(places):
                left.add(name)
                said_of |= places
        if not left:
            return []
        documents = self._store.documents(kind="review", repo=self._repo, number=self._number)
        said = {
            one["fingerprint"]: one
            for document in reversed(documents)
            for one in (*document.body["withheld"], *document.body["findings"])
            if one["fingerprint"] in left
        }
        reader = TypeAdapter(Finding)
        return [
            _move_to_code(reader.validate_python(one), posted[name], text_of)
            for name, one in sorted(said.items())
        ]

    def _list_missing(self, findings: Sequence[Finding]) -> set[str]:
        """The open findings that are not among `findings`."""
        names = {f.fingerprint for f in findings}
        return self.load_posted().keys() - names - self.dismissed_names()

    def _choose_fixed(
        self,
        missing: Collection[str],
        findings: Sequence[Finding],
        not_reviewed: Sequence[UnreadFile],
        skipped: Sequence[SkippedReviewer],
        text_of: TextOf,
    ) -> set[str]:
        """Those of the missing ones that are fixed."""
        if not missing:
            return set()
        unread = {u.path for u in not_reviewed}
        tools = {s.reviewer.partition("/")[0] for s in skipped}
        posted = self.load_posted()
        known = _finding_names(posted, posted)
        new = [
            f
            for f in findings
            if f.rule.startswith("model/")
            and not known & {f.fingerprint, *keys_by_quoted_code(f, text_of(f.path, f.side))}
        ]
        return {
            name
            for name in missing
            if (finding := posted[name]).path
            and finding.path not in unread
            and _is_gone(finding, new, text_of(finding.path, "RIGHT"), tools)
        }

    def dismiss(self, fingerprint: str, login: str, reason: str) -> None:
        """Record a dismissal: the finding never returns."""
        self._store.save(Dismissal(self._repo, self._number, fingerprint, login, reason[:500]))

    def undo_dismissal(self, fingerprint: str, reason: str = "") -> None:
        """Undo a dismissal; with a `reason` only one that was made for it."""
        self._forget(Dismissal, fingerprint, **({"reason": reason} if reason else {}))

    def close_threads(self, github: GitHub, number: int, fingerprints: Collection[str]) -> None:
        """Resolve the threads of fixed and dismissed findings, and those that could not be resolved before."""
        unresolved = self._store.find_all(UnresolvedThread, repo=self._repo, number=self._number)
        left = {thread.fingerprint for thread in unresolved}
        wanted = left | set(fingerprints)
        if not wanted:
            return
        if resolve_threads(github, number, wanted):
            for name in left:
                self._forget(UnresolvedThread, name)
        else:
            for name in wanted - left:
                self._store.save(UnresolvedThread(self._repo, self._number, name))

    def forget_findings(self, fingerprints: Collection[str]) -> None:
        """Forget findings: if they come back, they are posted again."""
        for name in fingerprints:
            self._forget(PostedFinding, name)

    def _forget(self, kind: type[StateRecord], fingerprint: str, **values: str) -> None:
        self._store.remove(
            kind, repo=self._repo, number=self._number, fingerprint=fingerprint, **values
        )


def resolve_threads(
    github: GitHub, number: int, fingerprints: Collection[str], *, reopen: bool = False
) -> bool:
    """Resolve the threads of our findings, or open them again; return whether that worked. A failure does not fail the job."""
    try:
        for thread in github.threads(number):
            first = thread.comments[0].body if thread.comments else ""
            if thread.resolved is reopen and any(
                has_marker(first, "finding", name) for name in fingerprints
            ):
                github.resolve(thread.id, reopen=reopen)
    except (OutsideError, UserError) as error:
        _log.warning("threads of %s#%d stay as they are: %s", github.repo, number, error)
        return False
    return True


def _finding_names(posted: dict[str, PostedFinding], chosen: Collection[str]) -> set[str]:
    present = [name for name in chosen if name in posted]
    return {*present, *(place for name in present for place in posted[name].places.split())}


def _stands(posted: PostedFinding, text_of: TextOf) -> bool:
    """Whether the code of a finding is known, and is as it was."""
    text = text_of(posted.path, posted.side) if posted.path else None
    return text is not None and bool(posted.code) and posted.code in normalise_code(text)


def _move_to_code(finding: Finding, posted: PostedFinding, text_of: TextOf) -> Finding:
    """A finding at the lines where its code stands now, the nearest of several."""
    lines = (text_of(finding.path, finding.side) or "").split("\n")
    span = finding.line - finding.start_line
    starts = [
        first
        for first in range(1, len(lines) - span + 1)
        if posted.code and normalise_code("\n".join(lines[first - 1 : first + span])) == posted.code
    ]
    start = min(starts, key=lambda n: abs(n - finding.start_line), default=finding.start_line)
    return replace(finding, start_line=start, line=start + span)


def _is_gone(
    posted: PostedFinding, new: Collection[Finding], text: str | None, skipped: set[str]
) -> bool:
    """Whether a finding is fixed: an analyzer's when it is not reported again, a model's when its code is gone.

    A model's finding stays if the model reports a `new` one in the same file, which may be the same fault on other
    code. A finding about removed code is fixed once that code is back.
    """
    if text is None:
        return posted.side == "RIGHT"
    changed = bool(posted.code) and (posted.code in normalise_code(text)) is (posted.side == "LEFT")
    if posted.rule.startswith("model/"):
        reworded = any(f.path == posted.path and f.rule.startswith("model/") for f in new)
        return changed and not reworded
    tool = posted.rule.partition("/")[0]
    return changed or not skipped & {tool, posted.dimension}
