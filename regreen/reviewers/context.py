"""The input and the output of a reviewer, and the protocol that every reviewer satisfies."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Event
from typing import TYPE_CHECKING, Protocol, TypeVar, TypeVarTuple, runtime_checkable

from regreen.code.diff import Change, FileChange
from regreen.code.file_languages import has_outline
from regreen.code.symbol_index import CallGraph, OutlineStore, build_index
from regreen.domain.models import (
    CoverageReport,
    Dimension,
    Evidence,
    Finding,
    ReviewTestRun,
    Severity,
    Side,
    Signals,
    SkippedReviewer,
    TreeEntry,
    UnreadFile,
)
from regreen.domain.ports import Git, Model, Sandbox
from regreen.domain.repo_config import RepoConfig
from regreen.isolation import DEFAULT_LIMITS, Budget, ChildLimits, run_in_child
from regreen.reviewers.calibration import PRIOR_WEIGHTS, Weights
from regreen.reviewers.scope import MAX_FILE_BYTES

if TYPE_CHECKING:
    from regreen.runs.capsule import KeepCapsule
    from regreen.runs.trial import Trial

_R = TypeVar("_R")
_Ts = TypeVarTuple("_Ts")
_MAX_KEPT_BYTES = 64 * 1024 * 1024
"""Bytes of files that a review caches; other files are read again when they are needed again."""
_MAX_NEW_READS = 1500
"""With nothing kept from earlier, a call graph of more files than this costs more than it is worth."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A fault that a reviewer believes in, at one place; `ranking` decides whether it is posted.

    Lines are 1-based and of the head's file on side RIGHT, of the merge base's on side LEFT. `confidence` is the
    prior: the share of such claims that are true. `symbol` is the enclosing function or class (found if left
    empty). `code` distinguishes claims of one rule besides their place, default: the lines' text.
    `proven`: a run has shown it. `quotes` is the repository's own rule, which style needs.
    `signals` is a model's support for the claim, `again` the fingerprint of an earlier finding with the same cause.
    `anywhere` allows a line that the change did not add (a caller that it breaks); the claim is still anchored at
    `path`/`line`, which must lie inside a hunk.
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
class DimensionScore:
    """A dimension's score, 0 to 100, and its basis; if `value` is None, the basis says why."""

    value: int | None
    rests_on: str


@dataclass(frozen=True, slots=True)
class ReviewerReport:
    """The claims of one reviewer, the files that it could not read, and the steps that it skipped.

    `read` describes the basis of the claims in a few words ("ruff and basedpyright on 4 files") for the note beside
    the dimension's score; `is_narrow`: it looked for one thing alone, on which no score rests. `reads_also` are other
    dimensions that it read for. `about` says in a sentence what the change does. `scores` overrides the score that is
    otherwise computed from the claims.
    """

    claims: tuple[Claim, ...] = ()
    read: str = ""
    is_narrow: bool = False
    reads_also: tuple[Dimension, ...] = ()
    unread: tuple[UnreadFile, ...] = ()
    skipped: tuple[SkippedReviewer, ...] = ()
    scores: Mapping[Dimension, DimensionScore] = field(default_factory=dict)
    coverage: CoverageReport | None = None
    about: str = ""
    tests: ReviewTestRun | None = None


@dataclass
class _ReadCache:
    """What was read of the repository: trees by revision, texts by blob, and the remaining bytes."""

    entries: dict[str, dict[str, TreeEntry]] = field(default_factory=dict)
    texts: dict[str, str | None] = field(default_factory=dict)
    room: int = _MAX_KEPT_BYTES


@dataclass(frozen=True, slots=True)
class ClaimTests:
    """How and where the test of a claim runs; `reason` is why none can, `doubt` why one may fail for its environment.

    `keep` stores what repeats a proof; None where nobody could fetch it.
    """

    trial: Trial | None = None
    sandbox: Sandbox | None = None
    reason: str = ""
    doubt: str = ""
    keep: KeepCapsule | None = None


@dataclass(frozen=True)
class ReviewContext:
    """One change and everything needed to judge it. Values only: no network, no credential.

    `files` are the files selected for review (generated, vendored, lock and binary ones left out, riskiest first);
    `change` contains all of them. `git` is None for a bare patch. `tests` says how tests run, None if
    unknown; `run_tests` whether to run them, `no_tests` why not; `find_claim_tests` prepares what a model's claims are
    tested in, None where they are not; `find_sandbox` gives what compilers run in, and `may_run` whether they may run
    the change's own code (build scripts). `index` caches the repository's structure; `weights` calibrates a model's claims, `known` are a model's earlier findings on this change. `hidden` are
    paths that are read at neither side. `budget` is the CPU time that all reviewers of the change share.
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
    linked_issues: tuple[int, ...] = ()
    tests: Trial | None = None
    run_tests: bool = False
    no_tests: str = ""
    find_claim_tests: Callable[[], ClaimTests] | None = None
    find_sandbox: Callable[[], Sandbox | None] | None = None
    may_run: bool = False
    cancel: Event | None = None
    progress: Callable[[str], None] | None = None
    index: OutlineStore | None = None
    weights: Weights = PRIOR_WEIGHTS
    known: tuple[EarlierFinding, ...] = ()
    hidden: frozenset[str] = frozenset()
    budget: Budget | None = None
    _read: _ReadCache = field(default_factory=_ReadCache, repr=False, compare=False)

    def head_text(self, path: str) -> str | None:
        """A file's text at the head; None if it does not exist, is binary, or too large."""
        return self._read_text(self.head, path) if self.git else self.change.added_file_text(path)

    def base_text(self, path: str) -> str | None:
        """A file's text at the merge base (`path` as the base names it)."""
        return self._read_text(self.merge_base, path) if self.git else None

    @property
    def head_tree(self) -> tuple[TreeEntry, ...]:
        """Every file at the head, sorted by path; empty for a bare patch."""
        return self._read_tree(self.head)

    @property
    def base_tree(self) -> tuple[TreeEntry, ...]:
        """Every file at the merge base, sorted by path; empty for a bare patch."""
        return self._read_tree(self.merge_base)

    @cached_property
    def call_graph(self) -> CallGraph | None:
        """The call graph at the head; None for a bare patch, or if reading that many new files costs too much."""
        structured = sum(has_outline(e.path) for e in self.head_tree)
        if self.git is None or (self.index is None and structured > _MAX_NEW_READS):
            return None
        return CallGraph(build_index(self.git, self.head, self.index).outlines)

    def for_child_process(self) -> ReviewContext:
        """The same change for a child process: without model, sandbox, progress and caches."""
        return replace(
            self,
            sandbox=None,
            model=None,
            find_claim_tests=None,
            find_sandbox=None,
            cancel=None,
            progress=None,
            _read=_ReadCache(),
        )

    def without_files(self, paths: Set[str]) -> ReviewContext:
        """The same change without these files, which can be read at neither side."""
        change = Change(tuple(f for f in self.change.files if f.path not in paths))
        files = tuple(f for f in self.files if f.path not in paths)
        return replace(
            self, change=change, files=files, hidden=self.hidden | paths, _read=_ReadCache()
        )

    def run_isolated(
        self,
        function: Callable[[ReviewContext, *_Ts], _R],
        *args: *_Ts,
        limits: ChildLimits = DEFAULT_LIMITS,
    ) -> _R:
        """Call `function` with this context and `args` in a child process; see `isolation.run`."""
        return run_in_child(
            function,
            self.for_child_process(),
            *args,
            limits=limits,
            cancel=self.cancel,
            budget=self.budget,
        )

    def report_progress(self, text: str) -> None:
        """Report progress to the caller."""
        if self.progress:
            self.progress(text)

    def read_ahead(self) -> None:
        """Read both sides of the change's files with one process, as far as the cache has room."""
        if self.git is None:
            return
        after, before = self._entries_by_path(self.head), self._entries_by_path(self.merge_base)
        entries = [after.get(f.path) for f in self.change.files]
        entries += [before.get(f.old_path) for f in self.change.files]
        self._read_entries(entries)

    def read_files(self, paths: Iterable[str]) -> None:
        """Read these files of the head with one process, as far as the cache has room."""
        if self.git is not None:
            there = self._entries_by_path(self.head)
            self._read_entries([there.get(path) for path in paths])

    def _read_entries(self, entries: Sequence[TreeEntry | None]) -> None:
        assert self.git is not None  # noqa: S101 - the callers have looked
        new = (e for e in entries if e is not None and e.sha not in self._read.texts)
        ids = dict.fromkeys(e.sha for e in new if self._reserve_room(e))
        for sha, data in zip(ids, self.git.blobs(list(ids)), strict=True):
            self._read.texts[sha] = _decode_text(data)

    def _read_tree(self, rev: str) -> tuple[TreeEntry, ...]:
        return tuple(self._entries_by_path(rev).values()) if self.git else ()

    def _entries_by_path(self, rev: str) -> dict[str, TreeEntry]:
        if rev not in self._read.entries:
            assert self.git is not None  # noqa: S101 - the callers have looked
            self._read.entries[rev] = {
                e.path: e for e in self.git.tree(rev) if e.path not in self.hidden
            }
        return self._read.entries[rev]

    def _read_text(self, rev: str, path: str) -> str | None:
        entry = self._entries_by_path(rev).get(path)
        if entry is None or entry.size is None or entry.size > MAX_FILE_BYTES:
            return None
        if entry.sha in self._read.texts:
            return self._read.texts[entry.sha]
        assert self.git is not None  # noqa: S101 - the callers have looked
        text = _decode_text(next(self.git.blobs([entry.sha])))
        if self._reserve_room(entry):
            self._read.texts[entry.sha] = text
        return text

    def _reserve_room(self, entry: TreeEntry) -> bool:
        """Reserve room for this file in the cache; False if there is none."""
        size = entry.size
        if size is None or size > min(MAX_FILE_BYTES, self._read.room):
            return False
        self._read.room -= size
        return True


def _decode_text(data: bytes | None) -> str | None:
    if data is None or b"\0" in data[:8000]:
        return None
    with suppress(UnicodeDecodeError):
        return data.decode()
    with suppress(SyntaxError, UnicodeDecodeError, LookupError):
        # what a comment at the top declares, as Python, Ruby and editors read it
        return data.decode(tokenize.detect_encoding(io.BytesIO(data).readline)[0])
    return data.decode("utf-8", "surrogateescape")


class Reviewer(Protocol):
    """Reads a change for one kind of fault. One module, one line in `reviewer_table.py`.

    Never raises for the content of a change: an unreadable file goes to `ReviewerReport.unread`, a missing tool to
    `ReviewerReport.skipped`.
    """

    @property
    def name(self) -> str:
        """The name in progress lines and in `Review.skipped`."""
        ...

    def run(self, context: ReviewContext) -> ReviewerReport:
        """Review `context.files` and report."""
        ...


@runtime_checkable
class CallingReviewer(Protocol):
    """A reviewer that may need the model or the sandbox, which only the parent process has."""

    def calls_out(self, context: ReviewContext) -> bool:
        """Whether this change needs them. The reviewer then runs in the parent, and reads by `run_isolated`."""
        ...


# Earlier findings: which are posted, which a person dismissed, and the required confidence of each rule.


@dataclass(frozen=True, slots=True)
class EarlierFinding:
    """A model's earlier finding on this pull request, for recognising the same one in other words.

    `code` is its code without white space.
    """

    fingerprint: str
    path: str
    title: str
    code: str = ""


@dataclass(frozen=True)
class ReviewMemory:
    """The names (fingerprints and places) of a pull request's findings, and the thresholds learnt from feedback.

    `posted` are findings that stand on the pull request, `dismissed` those that a person turned down (they
    never return); `known` are a model's. `thresholds` change the required confidence, by rule, then by its tool.
    `fingerprints` gives the fingerprint that a finding was posted under, by each of its names.
    """

    posted: frozenset[str] = frozenset()
    dismissed: frozenset[str] = frozenset()
    thresholds: Mapping[str, float] = field(default_factory=dict)
    known: tuple[EarlierFinding, ...] = ()
    fingerprints: Mapping[str, str] = field(default_factory=dict)

    def name_as_posted(self, finding: Finding, names: Set[str]) -> Finding:
        """A finding that was found again, under the name by which its thread and people's commands know it."""
        # a whole fingerprint says more than a place, which findings can share
        known = sorted(
            names & self.fingerprints.keys(), key=lambda n: (self.fingerprints[n] != n, n)
        )
        name = self.fingerprints[known[0]] if known else finding.fingerprint
        return replace(finding, fingerprint=name, id=name[:8])

    def threshold_for(self, rule: str, default: float) -> float:
        """The required confidence of this rule in this repository."""
        return self.thresholds.get(
            rule, self.thresholds.get(rule.split("/", maxsplit=1)[0], default)
        )
