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

LARGEST_FILE = 1024 * 1024
"""Files above this many bytes are not read whole by any reviewer."""
_READ_ANEW = 1500
"""With nothing kept from earlier, a call graph of more files than this costs more than it is worth."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a reviewer believes to be wrong at one place; whether it is said is decided in `rank`.

    Lines are 1-based and of the head's file on side RIGHT, of the merge base's on side LEFT. `confidence` is the
    prior: the share of such claims that hold. `symbol` is the function or class around the place (found when left
    empty). `code` is what makes two claims of one rule differ besides their place, default: the lines' text.
    `proven` says that something was run and showed it. `quotes` is the repository's own rule, which style needs.
    `signals` is what a model's claim rests on. `anywhere` lets a claim stand on a line that the change did not add (a caller it breaks, say); it is anchored at
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


@dataclass(frozen=True)
class ReviewContext:
    """One change and all that may be looked at to judge it. Values only: no network, no credential.

    `files` are the files selected for review (generated, vendored, lock and binary ones left out, riskiest first);
    `change` holds all of them. `git` is None when a bare patch is reviewed. `tests` says how tests run, None where
    nobody said it; `run_tests` whether that is wanted. `index` keeps what was read of the repository's structure;
    `weights` is what a model's claims are weighed with.
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
    _texts: dict[tuple[str, str], str | None] = field(
        default_factory=dict, repr=False, compare=False
    )

    def after(self, path: str) -> str | None:
        """A file's text at the head; None where there is none, or it is binary, or too large."""
        return self._text(self.head, path) if self.git else self.change.text_after(path)

    def before(self, path: str) -> str | None:
        """A file's text at the merge base (`path` as the base names it)."""
        return self._text(self.merge_base, path) if self.git else None

    @cached_property
    def tree(self) -> tuple[TreeEntry, ...]:
        """Every file at the head; empty for a bare patch."""
        return tuple(self.git.tree(self.head)) if self.git else ()

    @cached_property
    def base_tree(self) -> tuple[TreeEntry, ...]:
        """Every file at the merge base; empty for a bare patch."""
        return tuple(self.git.tree(self.merge_base)) if self.git else ()

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

    def _text(self, rev: str, path: str) -> str | None:
        key = (rev, path)
        if key not in self._texts:
            assert self.git is not None  # noqa: S101 - the callers have looked
            data = self.git.show(rev, path, LARGEST_FILE)
            self._texts[key] = (
                None
                if data is None or b"\0" in data[:8000]
                else data.decode("utf-8", "surrogateescape")
            )
        return self._texts[key]


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
