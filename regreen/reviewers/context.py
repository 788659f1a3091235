"""What a reviewer is given, and what it gives back: the protocol that every reviewer satisfies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from threading import Event
from typing import Protocol

from regreen.codebase.diff import Change, FileChange
from regreen.codebase.graph import Graph
from regreen.codebase.index import Store, build
from regreen.codebase.language import PARSED, language_of
from regreen.codebase.trial import Trial
from regreen.models import (
    CoverageReport,
    Dimension,
    Evidence,
    Severity,
    Side,
    Signals,
    Skipped,
    TreeEntry,
    Unread,
)
from regreen.ports import Git, Model, Sandbox
from regreen.repo_config import RepoConfig
from regreen.reviewers.calibrate import PRIOR, Weights
from regreen.reviewers.memory import Known
from regreen.reviewers.scope import LARGEST_FILE

_KEPT = 64 * 1024 * 1024
"""Bytes of files that a review holds on to; what is over is read again when it is asked for again."""
_READ_ANEW = 1500
"""With nothing kept from earlier, a call graph of more files than this costs more than it is worth."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a reviewer believes to be wrong at one place; whether it is said is decided in `rank`.

    Lines are 1-based and of the head's file on side RIGHT, of the merge base's on side LEFT. `confidence` is the
    prior: the share of such claims that hold. `symbol` is the function or class around the place (found when left
    empty). `code` is what makes two claims of one rule differ besides their place, default: the lines' text.
    `proven` says that something was run and showed it. `quotes` is the repository's own rule, which style needs.
    `signals` is what a model's claim rests on, `again` the fingerprint of what was said before of the same cause.
    `anywhere` lets a claim stand on a line that the change did not add (a caller it breaks, say); it is anchored at
    `path`/`line` all the same, so it must lie inside a hunk.
    """

    dimension: Dimension
    rule: str
    severity: Severity
    path: str
    start_line: int
    line: int
    title: str
    body: str
    confidence: float
    side: Side = "RIGHT"
    suggestion: str | None = None
    evidence: tuple[Evidence, ...] = ()
    symbol: str = ""
    code: str = ""
    proven: bool = False
    data_loss: bool = False
    quotes: str = ""
    anywhere: bool = False
    signals: Signals | None = None
    again: str = ""


@dataclass(frozen=True, slots=True)
class Score:
    """A dimension's score, 0 to 100, and what it rests on; `value` None says why there is none."""

    value: int | None
    rests_on: str


@dataclass(frozen=True, slots=True)
class Report:
    """What one reviewer found, what it could not read, and what it did not do at all.

    `read` describes in a few words what the claims (or their absence) rest on ("ruff and basedpyright on 4 files");
    it becomes part of the note beside the dimension's score. `about` says what the change does, in a sentence, by who
    has read it. `scores` overrides the score that is otherwise
    computed from the claims.
    """

    claims: tuple[Claim, ...] = ()
    read: str = ""
    unread: tuple[Unread, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    scores: Mapping[Dimension, Score] = field(default_factory=dict)
    coverage: CoverageReport | None = None
    about: str = ""


@dataclass
class _Read:
    """What was read of the repository so far: trees by revision, texts by blob, bytes there is still room for."""

    entries: dict[str, dict[str, TreeEntry]] = field(default_factory=dict)
    texts: dict[str, str | None] = field(default_factory=dict)
    room: int = _KEPT


@dataclass(frozen=True)
class ReviewContext:
    """One change and all that may be looked at to judge it. Values only: no network, no credential.

    `files` are the files selected for review (generated, vendored, lock and binary ones left out, riskiest first);
    `change` holds all of them. `git` is None when a bare patch is reviewed. `tests` says how tests run, None where
    nobody said it; `run_tests` whether that is wanted. `index` keeps what was read of the repository's structure;
    `weights` is what a model's claims are weighed with, `known` what a model said of this change before.
    """

    change: Change
    files: tuple[FileChange, ...]
    base: str
    head: str
    merge_base: str
    git: Git | None = None
    sandbox: Sandbox | None = None
    model: Model | None = None
    config: RepoConfig = field(default_factory=RepoConfig)
    title: str = ""
    body: str = ""
    tests: Trial | None = None
    run_tests: bool = False
    cancel: Event | None = None
    progress: Callable[[str], None] | None = None
    index: Store | None = None
    weights: Weights = PRIOR
    known: tuple[Known, ...] = ()
    _read: _Read = field(default_factory=_Read, repr=False, compare=False)

    def after(self, path: str) -> str | None:
        """A file's text at the head; None where there is none, or it is binary, or too large."""
        return self._at(self.head, path) if self.git else self.change.text_after(path)

    def before(self, path: str) -> str | None:
        """A file's text at the merge base (`path` as the base names it)."""
        return self._at(self.merge_base, path) if self.git else None

    @property
    def tree(self) -> tuple[TreeEntry, ...]:
        """Every file at the head, sorted by path; empty for a bare patch."""
        return self._tree(self.head)

    @property
    def base_tree(self) -> tuple[TreeEntry, ...]:
        """Every file at the merge base, sorted by path; empty for a bare patch."""
        return self._tree(self.merge_base)

    @cached_property
    def graph(self) -> Graph | None:
        """Who calls whom at the head; None for a bare patch, and where reading that many files anew costs too much."""
        structured = sum(language_of(e.path) in PARSED for e in self.tree)
        if self.git is None or (self.index is None and structured > _READ_ANEW):
            return None
        return Graph(build(self.git, self.head, self.index).outlines)

    def say(self, text: str) -> None:
        """Tell whoever waits what is being done."""
        if self.progress:
            self.progress(text)

    def read_ahead(self) -> None:
        """Read both sides of the change's files from one process instead of one each, as far as they are kept."""
        if self.git is None:
            return
        after, before = self._entries(self.head), self._entries(self.merge_base)
        found = [after.get(f.path) for f in self.change.files]
        found += [before.get(f.old_path) for f in self.change.files]
        ids = dict.fromkeys(e.sha for e in found if e is not None and self._keep(e))
        for sha, data in zip(ids, self.git.blobs(list(ids)), strict=True):
            self._read.texts[sha] = _text(data)

    def _tree(self, rev: str) -> tuple[TreeEntry, ...]:
        return tuple(self._entries(rev).values()) if self.git else ()

    def _entries(self, rev: str) -> dict[str, TreeEntry]:
        if rev not in self._read.entries:
            assert self.git is not None  # noqa: S101 - the callers have looked
            self._read.entries[rev] = {e.path: e for e in self.git.tree(rev)}
        return self._read.entries[rev]

    def _at(self, rev: str, path: str) -> str | None:
        entry = self._entries(rev).get(path)
        if entry is None or entry.size is None or entry.size > LARGEST_FILE:
            return None
        if entry.sha in self._read.texts:
            return self._read.texts[entry.sha]
        assert self.git is not None  # noqa: S101 - the callers have looked
        text = _text(next(self.git.blobs([entry.sha])))
        if self._keep(entry):
            self._read.texts[entry.sha] = text
        return text

    def _keep(self, entry: TreeEntry) -> bool:
        """Whether there is still room to keep this file; if so it is taken."""
        size = entry.size
        if size is None or size > min(LARGEST_FILE, self._read.room):
            return False
        self._read.room -= size
        return True


def _text(data: bytes | None) -> str | None:
    if data is None or b"\0" in data[:8000]:
        return None
    return data.decode("utf-8", "surrogateescape")


class Reviewer(Protocol):
    """Reads a change for one kind of fault. One file, one line in the table in `review.py`.

    Never raises for what the change holds: a file it cannot read goes to `Report.unread`, a tool it lacks to
    `Report.skipped`.
    """

    @property
    def name(self) -> str:
        """What it is called in progress lines and in `Review.skipped`."""
        ...

    def run(self, context: ReviewContext) -> Report:
        """Look at `context.files` and report."""
        ...
