"""A review: select what to read, let every reviewer read it, rank the claims."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field, replace
from threading import Event

from regreen import isolation
from regreen.code.diff import Change, FileChange, parse_bounded
from regreen.code.file_languages import language_of
from regreen.code.path_settings import list_ignored, wanted_dimensions, without_confidence
from regreen.code.paths import is_test
from regreen.code.symbol_index import OutlineStore
from regreen.domain.errors import AnalysisFailed, Cancelled, OutsideError, SetupFailed, UserError
from regreen.domain.job_control import ContextThreadPool
from regreen.domain.models import (
    DIMENSIONS,
    Cost,
    CoverageReport,
    Dimension,
    ModelAnswer,
    ModelRequest,
    Review,
    SkippedReviewer,
    UnreadFile,
    WalkthroughStep,
)
from regreen.domain.ports import Git, Model, Sandbox
from regreen.domain.repo_config import RepoConfig
from regreen.isolation import ChildLimits
from regreen.languages.registry import find_gaps, find_language, has_capability
from regreen.reviewers.calibration import PRIOR_WEIGHTS, Weights
from regreen.reviewers.context import (
    CallingReviewer,
    Claim,
    ClaimTests,
    ReviewContext,
    Reviewer,
    ReviewerReport,
    ReviewMemory,
)
from regreen.reviewers.findings import anchor_claims
from regreen.reviewers.ranking import Ranking, RankingPolicy, compute_scores, rank_findings
from regreen.reviewers.reviewer_table import REVIEWERS, ReviewerTable
from regreen.reviewers.scope import (
    MAX_FILE_BYTES,
    UNREADABLE_REASON,
    ReviewScope,
    risk_of,
    select_files,
)
from regreen.reviewers.summary import summarise_change, walk_through
from regreen.runs.trial import Trial

_log = logging.getLogger(__name__)
# Wall time is many times the CPU time, so that a busy machine ends no work.
_CHANGE_LIMITS = ChildLimits(cpu=20, seconds=300, memory=512)
_ANALYZER_LIMITS = ChildLimits(cpu=10, seconds=240, memory=400)
_LIMITS_BY_REVIEWER = {
    # It counts its own time, and reports what it has not read.
    "security": ChildLimits(cpu=40, seconds=240, memory=400),
    # Node reserves some 600 MiB that it does not use; its heap has its own limit.
    "basedpyright": ChildLimits(cpu=45, seconds=240, memory=1536),
    "oxlint": ChildLimits(cpu=45, seconds=240, memory=1536),
    # They hold all scripts of the repository.
    "names in JavaScript and TypeScript": ChildLimits(cpu=30, seconds=240, memory=768),
    "data flow of scripts": ChildLimits(cpu=30, seconds=240, memory=768),
}
_ALL_ANALYZERS_LIMITS = ChildLimits(cpu=20, seconds=600, memory=512, result=256)
_ANALYZERS_AT_ONCE = 2
_LARGE_CHANGE = 16 * 1024
"""Characters of one file's diff from which on it is left out where an analyzer has failed."""
_LONG_LINE = 1000
_MAX_CLAIMS = 500
MAX_DIFF_FILES = 20_000
MAX_DIFF_BYTES = 64 * 1024 * 1024
NO_REPOSITORY = "a bare patch: no repository to read around it"


@dataclass(frozen=True)
class ReviewJob:
    """What to review. `base` and `head` are revisions; with `diff` (a bare patch) they may be empty.

    `tests` says how the tests run; they run only with `run_tests`; `no_tests` is why they must not.
    `find_claim_tests` is called once a model's claim is to be tested, `find_sandbox` once a compiler is to run;
    `may_run`: compilers may run the change's own code, such as build scripts.
    `max_comments` limits this review; callers lower it on later pushes. `index` caches what is read of the repository.
    `weights` calibrates a model's claims. `cpu_seconds` is the CPU time of all analyzers together; those that are not
    done by then are skipped.
    """

    base: str = ""
    head: str = ""
    diff: str | None = None
    title: str = ""
    body: str = ""
    config: RepoConfig = field(default_factory=RepoConfig)
    min_confidence: float | None = None
    max_comments: int | None = None
    tests: Trial | None = None
    run_tests: bool = False
    no_tests: str = ""
    find_claim_tests: Callable[[], ClaimTests] | None = None
    find_sandbox: Callable[[], Sandbox | None] | None = None
    may_run: bool = False
    index: OutlineStore | None = None
    weights: Weights = PRIOR_WEIGHTS
    cpu_seconds: int = 90


def review_change(
    job: ReviewJob,
    *,
    git: Git | None,
    sandbox: Sandbox | None,
    model: Model | None,
    memory: ReviewMemory | None = None,
    progress: Callable[[str], None] | None = None,
    cancel: Event | None = None,
    reviewers: ReviewerTable = REVIEWERS,
) -> Review:
    """Review a change. Nothing is posted and nothing outside is changed.

    Raises:
        UserError: a revision is unknown, or there is neither a repository nor a patch.
        Cancelled: `cancel` was set.
    """
    started = time.monotonic()
    meter = CostMeter(model, cancel) if model is not None else None
    known = replace(
        job, find_claim_tests=None, find_sandbox=None
    )  # a child process prepares no tests
    read = isolation.run_in_child(_read_change, known, git, limits=_CHANGE_LIMITS, cancel=cancel)
    context = replace(
        read.context,
        sandbox=sandbox,
        model=meter,
        find_claim_tests=job.find_claim_tests,
        find_sandbox=job.find_sandbox,
        known=memory.known if memory is not None else (),
        progress=progress,
        cancel=cancel,
        budget=isolation.Budget(job.cpu_seconds),
    )
    reports = _run_reviewers(context, reviewers)
    ranking, reports = _rank_isolated(context, reports, _make_policy(job), memory)
    holds = (*ranking.findings, *ranking.standing)
    tests = next((r.tests for _, r in reports if r.tests), None)
    valued, notes = compute_scores(reports, holds, ranking.withheld, context, tests)
    unread = _collect_unread(read, reports)
    return Review(
        base=context.base,
        head=context.head,
        merge_base=context.merge_base,
        summary=summarise_change(
            context,
            read.scope,
            ranking.findings,
            _find_about(reports),
            standing=len(ranking.standing),
            not_read=unread,
            tests=tests,
        ),
        risk="high" if tests and not tests.passed else risk_of(context.files, holds),
        scores=valued,
        findings=ranking.findings,
        withheld=ranking.withheld,
        not_reviewed=unread,
        skipped=_collect_skipped(context, reports),
        coverage=_find_coverage(reports),
        cost=meter.cost if meter is not None else Cost(),
        seconds=round(time.monotonic() - started, 3),
        score_notes=notes,
        tests=tests,
        walkthrough=read.walkthrough,
    )


@dataclass(frozen=True, slots=True)
class _ReadChange:
    """A change, the files selected from it, and the unreadable ones among them."""

    context: ReviewContext
    scope: ReviewScope
    walkthrough: tuple[WalkthroughStep, ...]
    unreadable: tuple[UnreadFile, ...]


def read_change(
    job: ReviewJob, git: Git | None, *, sandbox: Sandbox | None, cancel: Event | None = None
) -> ReviewContext:
    """The context for the reviewers of this job, built in a child process; without a model."""
    read = isolation.run_in_child(_read_change, job, git, limits=_CHANGE_LIMITS, cancel=cancel)
    return replace(read.context, sandbox=sandbox, cancel=cancel)


def _read_change(job: ReviewJob, git: Git | None) -> _ReadChange:
    context, scope = make_context(job, git=git, sandbox=None, model=None)
    unreadable = tuple(
        UnreadFile(f.path, UNREADABLE_REASON)
        for f in context.files
        if git and f.status != "deleted" and context.head_text(f.path) is None
    )
    return _ReadChange(context.for_child_process(), scope, walk_through(context), unreadable)


def _rank_isolated(
    context: ReviewContext,
    reports: list[tuple[Dimension, ReviewerReport]],
    policy: RankingPolicy,
    memory: ReviewMemory | None,
) -> tuple[Ranking, list[tuple[Dimension, ReviewerReport]]]:
    """The ranking of all claims; if it fails, of those about files of usual size."""
    context = replace(context, budget=None)  # claims that were found are ranked, whatever they cost
    try:
        return context.run_isolated(
            _rank_claims, _collect_claims(reports), policy, memory, limits=_CHANGE_LIMITS
        ), reports
    except AnalysisFailed as error:
        large = _find_large_files(context)
        why = f"large, and the findings could not be ranked with those in it: {error}"
        unread = ReviewerReport(unread=tuple(UnreadFile(path, why) for path in sorted(large)))
    partial = [
        (d, replace(r, claims=tuple(c for c in r.claims if c.path not in large)))
        for d, r in reports
    ]
    ranking = context.run_isolated(
        _rank_claims, _collect_claims(partial), policy, memory, limits=_CHANGE_LIMITS
    )
    return ranking, [*partial, ("correctness", unread)]


def _collect_claims(reports: Sequence[tuple[Dimension, ReviewerReport]]) -> list[Claim]:
    return [c for _, report in reports for c in report.claims]


def _rank_claims(
    context: ReviewContext, claims: list[Claim], policy: RankingPolicy, memory: ReviewMemory | None
) -> Ranking:
    candidates, outside = anchor_claims(claims, context)
    ranking = rank_findings(candidates, policy, memory)
    return replace(ranking, withheld=(*ranking.withheld, *outside))


def make_context(
    job: ReviewJob, *, git: Git | None, sandbox: Sandbox | None, model: Model | None
) -> tuple[ReviewContext, ReviewScope]:
    """The context for the reviewers of this job, and the selected files."""
    if git is None:
        if job.diff is None:
            message = "nothing to review: give a repository (--repo) or a patch (--diff)"
            raise UserError(message)
        base = head = merge_base = ""
        change = parse_bounded(job.diff)
    else:
        base, head = git.resolve(job.base), git.resolve(job.head)
        merge_base = git.merge_base(base, head) or base
        change = Change(())
    whole = ReviewContext(
        change=change,
        files=(),
        base=base,
        head=head,
        merge_base=merge_base,
        git=git,
        sandbox=sandbox,
        model=model,
        config=wanted_dimensions(job.config),
        title=job.title,
        body=job.body,
        tests=job.tests,
        run_tests=job.run_tests,
        no_tests=job.no_tests,
        may_run=job.may_run,
        index=job.index,
        weights=job.weights,
    )
    if git is not None:
        whole = replace(whole, change=_read_diff(whole, git))
    whole.read_ahead()
    sizes = {entry.path: entry.size for entry in whole.head_tree if entry.size is not None}
    scope = select_files(
        whole.change, ignore=list_ignored(job.config), text_of=whole.head_text, sizes=sizes
    )
    return replace(whole, files=scope.files), scope


def _read_diff(context: ReviewContext, git: Git) -> Change:
    """The change, without the content of files that are too large, or too many, to compare and parse."""
    before = {e.path: e for e in context.base_tree}
    after = {e.path: e for e in context.head_tree}
    changed = {
        path: max((before[path].size or 0) if path in before else 0, e.size or 0)
        for path, e in (before | after).items()
        if before.get(path) != after.get(path)
    }
    paths: list[str] = []
    left = MAX_DIFF_BYTES
    for path, size in sorted(changed.items(), key=lambda item: item[1]):
        left -= size
        if size <= MAX_FILE_BYTES and left >= 0 and len(paths) < MAX_DIFF_FILES:
            paths.append(path)
    if len(paths) == len(changed):
        return parse_bounded(git.diff(context.merge_base, context.head))
    left_out = changed.keys() - set(paths)
    files = [
        FileChange(
            path,
            path,
            "deleted" if path not in after else "modified" if path in before else "added",
            problem=UNREADABLE_REASON
            if size > MAX_FILE_BYTES
            else "the change is too large to be compared whole",
        )
        for path, size in changed.items()
        if path in left_out
    ]
    paths.sort()
    for at in range(0, len(paths), 500):
        diff = git.diff(context.merge_base, context.head, paths=paths[at : at + 500])
        files += parse_bounded(diff).files
    return Change(tuple(files))


def _make_policy(job: ReviewJob) -> RankingPolicy:
    config = job.config.review
    return RankingPolicy(
        min_confidence=config.min_confidence if job.min_confidence is None else job.min_confidence,
        max_comments=config.max_comments if job.max_comments is None else job.max_comments,
        blocking=config.blocking,
        config=job.config if job.min_confidence is None else without_confidence(job.config),
    )


def _run_reviewers(
    context: ReviewContext, reviewers: ReviewerTable
) -> list[tuple[Dimension, ReviewerReport]]:
    """Run the reviewers of every wanted dimension in parallel; the reports are in the table's order.

    Reviewers that need a model or the sandbox run here and read in children of their own; all
    others are children of one process, which has read the change's files for them.
    """
    chosen = [row for row in reviewers if row[0] in context.config.review.dimensions]
    if not context.change.files:
        return []
    outside = [r for _, r in chosen if isinstance(r, CallingReviewer) and r.calls_out(context)]
    isolated = [r for _, r in chosen if r not in outside]
    with ContextThreadPool(max_workers=4, thread_name_prefix="review") as pool:
        waiting = {id(r): pool.submit(_run_in_parent, r, context) for r in outside}
        reports = {
            id(r): report
            for r, report in zip(isolated, _run_analyzers(isolated, context), strict=True)
        }
        reports |= {key: future.result() for key, future in waiting.items()}
    return [(d, _limit_claims(reports[id(r)])) for d, r in chosen]


def _run_analyzers(reviewers: list[Reviewer], context: ReviewContext) -> list[ReviewerReport]:
    """The reports of the analyzers, each from a child process; all are skipped if their parent failed."""
    if not reviewers:
        return []
    context.report_progress(f"reading {len(context.files)} files with {len(reviewers)} analyzers")
    first = _try_analyzers(reviewers, context)
    failed = [
        r
        for r, report in zip(reviewers, first, strict=True)
        if not isinstance(report, ReviewerReport)
    ]
    large = _find_large_files(context)
    again = iter(_try_analyzers(failed, context.without_files(large)) if large else ())
    return [
        report
        if isinstance(report, ReviewerReport)
        else _partial_report(r, report, next(again, report), large)
        for r, report in zip(reviewers, first, strict=True)
    ]


def _try_analyzers(
    reviewers: list[Reviewer], context: ReviewContext
) -> Sequence[ReviewerReport | AnalysisFailed]:
    """The report of each analyzer, or its failure."""
    if not reviewers:
        return ()
    try:
        ended = context.run_isolated(_analyze_all, reviewers, limits=_ALL_ANALYZERS_LIMITS)
    except AnalysisFailed as error:
        return [error] * len(reviewers)
    return [_read_report(e) for e in ended]


def _analyze_all(context: ReviewContext, reviewers: list[Reviewer]) -> list[isolation.ChildResult]:
    context.read_ahead()
    calls = [
        isolation.ChildCall(
            _run_with_translated_errors,
            (r, context),
            _LIMITS_BY_REVIEWER.get(r.name, _ANALYZER_LIMITS),
        )
        for r in reviewers
    ]
    return isolation.run_in_children(calls, concurrent=_ANALYZERS_AT_ONCE, budget=context.budget)


def _read_report(ended: isolation.ChildResult) -> ReviewerReport | AnalysisFailed:
    try:
        report = ended.get_value()
    except AnalysisFailed as error:
        return error
    assert isinstance(report, ReviewerReport)  # noqa: S101 - what `_run` returns
    return report


def _find_large_files(context: ReviewContext) -> frozenset[str]:
    """The files that may have made an analyzer fail: those with much text or long lines, else the largest."""
    sizes, long = dict[str, int](), set[str]()
    for file in context.change.files:
        lengths = [len(line.text) for hunk in file.hunks for line in hunk.lines]
        sizes[file.path] = sum(lengths) + len(lengths)
        if max(lengths, default=0) > _LONG_LINE:
            long.add(file.path)
    large = long | {path for path, size in sizes.items() if size > _LARGE_CHANGE}
    return frozenset(large or sorted(sizes, key=lambda path: sizes[path])[1:][-1:])


def _partial_report(
    reviewer: Reviewer,
    error: AnalysisFailed,
    report: ReviewerReport | AnalysisFailed,
    left_out: Set[str],
) -> ReviewerReport:
    """The report of a reviewer that failed once, without the large files."""
    if not isinstance(report, ReviewerReport):
        return ReviewerReport(skipped=(SkippedReviewer(reviewer.name, str(error)),))
    why = f"large, and {reviewer.name} failed on the change with it: {error}"
    return replace(report, unread=(*report.unread, *(UnreadFile(p, why) for p in sorted(left_out))))


def _run_with_translated_errors(reviewer: Reviewer, context: ReviewContext) -> ReviewerReport:
    """One reviewer's report; a skipped one if its error says why."""
    if context.cancel is not None and context.cancel.is_set():
        raise Cancelled("the review was stopped")
    context.report_progress(f"reading: {reviewer.name}")
    try:
        return reviewer.run(context)
    except (Cancelled, AnalysisFailed):
        raise
    except OutsideError as error:  # of a program that reads the change
        raise AnalysisFailed(str(error)) from error
    except SetupFailed as error:
        tail = error.output.strip().splitlines()[-1:] or [""]
        reason = f"{error} {tail[0][:200]}".strip()
    except UserError as error:
        reason = str(error)
    return ReviewerReport(skipped=(SkippedReviewer(reviewer.name, reason),))


def _run_in_parent(reviewer: Reviewer, context: ReviewContext) -> ReviewerReport:
    """The report of a reviewer that runs in this process."""
    try:
        return _run_with_translated_errors(reviewer, context)
    except Cancelled:
        raise
    except AnalysisFailed as error:
        return ReviewerReport(skipped=(SkippedReviewer(reviewer.name, str(error)),))
    except Exception as error:  # noqa: BLE001 - a bug: it costs this report, not the others
        _log.exception("the reviewer %s failed", reviewer.name)
        return ReviewerReport(
            skipped=(SkippedReviewer(reviewer.name, f"failed: {type(error).__name__}"),)
        )


def _limit_claims(report: ReviewerReport) -> ReviewerReport:
    """A report with no more claims than a review can handle, the surest first."""
    if len(report.claims) <= _MAX_CLAIMS:
        return report
    surest = sorted(report.claims, key=lambda c: -c.confidence)[:_MAX_CLAIMS]
    return replace(report, claims=tuple(surest))


def _collect_unread(
    read: _ReadChange, reports: Sequence[tuple[Dimension, ReviewerReport]]
) -> tuple[UnreadFile, ...]:
    """Every unreadable file once, with the first reason given."""
    unread = {u.path: u for u in read.unreadable}
    unread |= {u.path: u for _, r in reversed(reports) for u in reversed(r.unread)}
    unread |= {u.path: u for u in read.scope.unread}
    return tuple(sorted(unread.values(), key=lambda u: u.path))


def _collect_skipped(
    context: ReviewContext, reports: Sequence[tuple[Dimension, ReviewerReport]]
) -> tuple[SkippedReviewer, ...]:
    skipped = [s for _, r in reports for s in r.skipped]
    wanted = context.config.review.dimensions
    skipped += [
        SkippedReviewer(d, "switched off by review.dimensions", by_policy=True)
        for d in DIMENSIONS
        if d not in wanted
    ]
    if context.git is None:
        skipped.append(SkippedReviewer("repository", NO_REPOSITORY))
    if (
        context.model is None
        and "correctness" in wanted
        and (files := _files_only_for_model(context))
    ):
        more = f" and {len(files) - 5} more" if len(files) > 5 else ""
        names = ", ".join(files[:5])
        reason = "beyond their syntax and the names they share, only a model reads"
        skipped.append(SkippedReviewer("correctness", f"{reason} {names}{more}", by_policy=True))
    followed = [f.path for f in context.files if not is_test(f.path)]
    if "security" in wanted and (titles := find_gaps(followed, "data flow")):
        titled = f"not followed in {' and '.join(titles)}"
        skipped.append(SkippedReviewer("data flow", titled, by_policy=True))
    return tuple(dict.fromkeys(skipped))


def _files_only_for_model(context: ReviewContext) -> list[str]:
    """Note code in a language that no correctness analyzer reads."""
    return [
        f.path
        for f in context.files
        if language_of(f.path) not in {"config", None}
        and not has_capability(f.path, "bug patterns", stubs=True)
        and ((language := find_language(f.path)) is None or language.compiler is None)
    ]


def _find_about(reports: Sequence[tuple[Dimension, ReviewerReport]]) -> str:
    return next((r.about for _, r in reports if r.about), "")


def _find_coverage(reports: Sequence[tuple[Dimension, ReviewerReport]]) -> CoverageReport | None:
    return next((r.coverage for _, r in reports if r.coverage), None)


# The total cost of a review's model calls.


class CostMeter:
    """A model that adds up its calls under a lock, because readings run in parallel.

    After `cancel` is set, no call is made.
    """

    def __init__(self, model: Model, cancel: threading.Event | None = None) -> None:
        self._model = model
        self._cancel = cancel
        self._lock = threading.Lock()
        self.cost = Cost()

    def ask(self, request: ModelRequest) -> ModelAnswer:
        """Ask the wrapped model.

        Raises:
            Cancelled: the work was cancelled, so nothing more is paid for.
        """
        if self._cancel is not None and self._cancel.is_set():
            raise Cancelled("the review was stopped")
        answer = self._model.ask(request)
        with self._lock:
            self.cost += answer.cost
        return answer
