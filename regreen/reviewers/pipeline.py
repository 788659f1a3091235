"""A review: select what to read, let every reviewer read it, and rank the claims: which are posted, and in which order."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Literal

from regreen import isolation
from regreen.code.diff import Change, FileChange, parse_bounded
from regreen.code.file_languages import language_of
from regreen.code.path_settings import (
    list_ignored,
    review_settings,
    with_dimensions_of_all_paths,
    without_confidence_by_path,
)
from regreen.code.paths import is_test
from regreen.code.symbol_index import OutlineStore
from regreen.domain.errors import AnalysisFailed, Cancelled, OutsideError, SetupFailed, UserError
from regreen.domain.job_control import ContextThreadPool, DeadlineEvent
from regreen.domain.models import (
    DIMENSIONS,
    Cost,
    CoverageReport,
    Dimension,
    Evidence,
    Finding,
    ModelAnswer,
    ModelRequest,
    Review,
    ReviewTestRun,
    Severity,
    SkippedReviewer,
    UnreadFile,
    WalkthroughStep,
    WithheldFinding,
    WithheldReason,
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
    DimensionScore,
    ReviewContext,
    Reviewer,
    ReviewerReport,
    ReviewMemory,
)
from regreen.reviewers.findings import Candidate, anchor_claims
from regreen.reviewers.reviewer_table import REVIEWERS, ReviewerTable
from regreen.reviewers.scope import (
    MAX_FILE_BYTES,
    UNREADABLE_REASON,
    ReviewScope,
    rate_risk_of_change,
    select_files,
)
from regreen.reviewers.summary import (
    describe_definitions,
    list_over_budget,
    list_unsure,
    summarise_change,
    walk_through,
)
from regreen.runs.trial import Trial
from regreen.secrets.markdown_sanitizer import count_noun

# Which findings are posted, and in which order: duplicates merged, thresholds, budget, blocking. Pure.

SEVERITIES: tuple[Severity, ...] = ("critical", "high", "medium", "low")
PROVEN_DISCOUNT = 0.10
"""How much less sure a proven security or data-loss finding may be (0.80 becomes 0.70)."""


@dataclass(frozen=True, slots=True)
class RankingPolicy:
    """The repository's policy for findings; `config` has what differs by path."""

    min_confidence: float = 0.8
    max_comments: int = 5
    blocking: Literal["none", "critical", "high", "medium", "low"] = "none"
    config: RepoConfig = field(default_factory=RepoConfig)

    def wants(self, finding: Finding) -> bool:
        """Whether this dimension is looked at where the finding is."""
        wanted = review_settings(self.config, finding.path).dimensions
        return not self.config.paths or finding.dimension in wanted

    def for_path(self, path: str) -> RankingPolicy:
        """The policy for the findings in a file."""
        settings = review_settings(self.config, path)
        if settings is self.config.review:
            return self
        changed = settings.min_confidence != self.config.review.min_confidence
        least = settings.min_confidence if changed else self.min_confidence
        return replace(self, min_confidence=least, blocking=settings.blocking)


@dataclass(frozen=True, slots=True)
class Ranking:
    """The posted findings in order, and the withheld ones.

    Those in `standing` were posted earlier and still hold, those in `dismissed` too, but a person turned them down.
    """

    findings: tuple[Finding, ...]
    withheld: tuple[WithheldFinding, ...]
    standing: tuple[Finding, ...] = ()
    dismissed: tuple[Finding, ...] = ()


def rank_findings(
    candidates: Sequence[Candidate], policy: RankingPolicy, memory: ReviewMemory | None = None
) -> Ranking:
    """Merge, filter, sort and limit the candidates."""
    memory = memory or ReviewMemory()
    withheld: list[WithheldFinding] = []
    merged, doubles = _merge_candidates([c for c in candidates if policy.wants(c.finding)])
    withheld += [WithheldFinding(d, "duplicate") for d in doubles]
    accepted: list[Finding] = []
    again: dict[WithheldReason, dict[str, Finding]] = {"duplicate": {}, "dismissed": {}}
    for candidate in merged:
        finding = candidate.finding
        here = policy.for_path(finding.path)
        reason = _withheld_reason(candidate, here, memory)
        if reason in again:
            known = memory.dismissed if reason == "dismissed" else memory.posted
            finding = memory.name_as_posted(finding, candidate.names & known)
            again[reason].setdefault(finding.fingerprint, finding)
        if reason:
            withheld.append(WithheldFinding(finding, reason))
        else:
            accepted.append(replace(finding, blocking=_is_blocking(finding.severity, here)))
    accepted.sort(key=_sort_key)
    withheld += [WithheldFinding(f, "budget") for f in accepted[policy.max_comments :]]
    withheld.sort(key=lambda w: _sort_key(w.finding))
    return Ranking(
        tuple(accepted[: policy.max_comments]),
        tuple(withheld),
        standing=tuple(again["duplicate"].values()),
        dismissed=tuple(again["dismissed"].values()),
    )


def _withheld_reason(
    candidate: Candidate, policy: RankingPolicy, memory: ReviewMemory
) -> WithheldReason | None:
    finding, claim = candidate.finding, candidate.claim
    if candidate.names & memory.dismissed:
        return "dismissed"
    if candidate.names & memory.posted:
        return "duplicate"
    proof = claim.signals.proof if claim.signals is not None else "not_run"
    if proof in {"proven", "disproven"}:  # what was run decides, whatever readers think
        return None if proof == "proven" else "confidence"
    least = memory.threshold_for(finding.rule, policy.min_confidence)
    if claim.proven and (finding.dimension == "security" or claim.data_loss):
        least -= PROVEN_DISCOUNT
    # what is true of the code as before is not caused by this change
    as_before = claim.signals is not None and claim.signals.verdict == "as_before"
    if as_before or finding.confidence < least - 1e-9:
        return "confidence"
    if finding.dimension == "style" and not claim.quotes:
        return "confidence"  # taste is not posted, only rules that the repository itself wrote down
    return None


def _is_blocking(severity: Severity, policy: RankingPolicy) -> bool:
    return policy.blocking != "none" and SEVERITIES.index(severity) <= SEVERITIES.index(
        policy.blocking
    )


def _sort_key(finding: Finding) -> tuple[bool, bool, int, float, bool, float, str, int]:
    """What people would act on first, then the more severe; among equals, loud failures, which people meet at once."""
    worth = finding.signals.worth if finding.signals is not None else "yes"
    return (
        not finding.blocking,
        worth in {"perhaps", "no"},
        SEVERITIES.index(finding.severity),
        -round(finding.confidence, 1),
        finding.rule not in _LOUD_RULES,
        -finding.confidence,
        finding.path,
        finding.line,
    )


def _merge_candidates(candidates: Sequence[Candidate]) -> tuple[list[Candidate], list[Finding]]:
    """One candidate for each fault: the strongest, with more confidence for each further tool that reports it."""
    merged: list[Candidate] = []
    by_path: dict[str, list[int]] = {}
    doubles: list[Finding] = []
    for candidate in sorted(candidates, key=lambda c: _sort_key(c.finding)):
        places = by_path.setdefault(candidate.finding.path, [])
        at = next((i for i in places if _is_same_fault(merged[i], candidate)), None)
        if at is None:
            places.append(len(merged))
            merged.append(candidate)
        else:
            merged[at] = _join_candidates(merged[at], candidate)
            doubles.append(candidate.finding)
    return merged, doubles


def _is_same_fault(first: Candidate, second: Candidate) -> bool:
    a, b = first.finding, second.finding
    if a.fingerprint == b.fingerprint:
        return True
    if (a.path, a.side, a.dimension) != (b.path, b.side, b.dimension):
        return False
    if a.start_line > b.line or b.start_line > a.line:
        return False
    # A tool's rule says what is wrong; "wrong results" in two claims of a model says nothing: whether they have
    # one cause was settled before, by the readings and the verification.
    same_rule = a.rule == b.rule and not a.rule.startswith("model/")
    return same_rule or _are_alike(a, b)


def _are_alike(a: Finding, b: Finding) -> bool:
    """Whether two findings on the same lines are about the same fault: same code, same harm or same words."""
    named_a, named_b = set(_QUOTED_CODE.findall(a.title)), set(_QUOTED_CODE.findall(b.title))
    if named_a and named_b:
        return bool(named_a & named_b)
    if a.body and a.body == b.body:
        return True
    words_a, words_b = set(_WORD.findall(a.title.lower())), set(_WORD.findall(b.title.lower()))
    return 2 * len(words_a & words_b) >= len(words_a | words_b) > 0


def _join_candidates(first: Candidate, second: Candidate) -> Candidate:
    a, b = first.finding, second.finding
    confidence = a.confidence
    evidence = a.evidence
    if a.rule.split("/")[0] != b.rule.split("/")[0]:  # the same tool twice is no second witness
        confidence = min(0.99, 1 - (1 - a.confidence) * (1 - b.confidence))
        evidence = (*a.evidence, Evidence("vote", f"{b.rule} says it too: {b.title}"))
    finding = replace(
        a,
        confidence=round(confidence, 4),
        evidence=evidence,
        suggestion=a.suggestion
        or (b.suggestion if (a.start_line, a.line) == (b.start_line, b.line) else None),
    )
    claim = replace(
        first.claim,
        proven=first.claim.proven or second.claim.proven,
        data_loss=first.claim.data_loss or second.claim.data_loss,
        quotes=first.claim.quotes or second.claim.quotes,
    )
    return Candidate(finding, claim, first.places)


_LOUD_RULES = frozenset({"model/crash", "model/hang", "model/broken-caller"})
_QUOTED_CODE = re.compile(r"`([^`\n]{1,80})`")
_WORD = re.compile(r"[a-z_]{3,}")


# A score from 0 to 100 for each dimension with its basis, or none with the reason.

_COST_BY_SEVERITY: dict[Severity, int] = {"critical": 60, "high": 30, "medium": 15, "low": 5}
_FAILING_TESTS_COST = _COST_BY_SEVERITY["critical"]


def compute_scores(
    reports: Sequence[tuple[Dimension, ReviewerReport]],
    findings: Sequence[Finding],
    withheld: Sequence[WithheldFinding],
    context: ReviewContext,
    tests: ReviewTestRun | None = None,
) -> tuple[dict[Dimension, int | None], dict[Dimension, str]]:
    """Each dimension's score and what it is made of. A finding costs by its severity, weighted by its confidence.

    A finding that is not sure enough costs nothing, and the words beside the score count it. One that a person dismissed, or that is over the
    budget of comments, is in `findings`: the code is as it was, and the author of a change can dismiss what is said of
    it. Failing tests cost correctness as much as a critical finding, unless all of them fail at the merge base too.
    """
    unsure = list_unsure(withheld)
    scores = {
        d: _score_dimension(d, reports, findings, context, tests, unsure=unsure) for d in DIMENSIONS
    }
    return {d: s.value for d, s in scores.items()}, {d: s.rests_on for d, s in scores.items()}


def _count_by_severity(findings: Iterable[Finding]) -> list[str]:
    """How many there are of each severity, the worst first."""
    counts = Counter(f.severity for f in findings)
    return [f"{counts[s]} {s}" for s in _COST_BY_SEVERITY if counts[s]]


def _score_dimension(
    dimension: Dimension,
    reports: Sequence[tuple[Dimension, ReviewerReport]],
    findings: Sequence[Finding],
    context: ReviewContext,
    tests: ReviewTestRun | None,
    *,
    unsure: Sequence[Finding],
) -> DimensionScore:
    own = [r for d, r in reports if dimension in {d, *r.reads_also}]
    reported = [r.scores[dimension] for _, r in reports if dimension in r.scores]
    if reported:
        return reported[0]
    if dimension not in context.config.review.dimensions:
        return DimensionScore(None, "switched off by review.dimensions")
    read = [r.read for r in own if r.read]
    skipped = [s for r in own for s in r.skipped]
    if not read or not context.files:
        return DimensionScore(None, _missing_score_reason(skipped, context))
    mine = [f for f in findings if f.dimension == dimension]
    lost = sum(_COST_BY_SEVERITY[f.severity] * _finding_weight(f) for f in mine)
    made_of = _count_by_severity(mine)
    if dimension == "correctness" and tests and not tests.passed:
        if tests.fails_without_change:
            made_of.insert(0, "failing tests, which fail without the change too, not counted")
        else:
            lost += _FAILING_TESTS_COST
            made_of.insert(0, "failing tests")
    no_model = ", no model" if any(s.reviewer == "model" and s.by_policy for s in skipped) else ""
    if all(r.is_narrow for r in own if r.read):
        return DimensionScore(None, "; ".join([*made_of, f"only {', '.join(read)}{no_model}"]))
    by = count_noun(len(read), "reviewer" if context.model else "analyzer")
    note = ", ".join(made_of) or "no finding"
    if left_out := _count_by_severity(f for f in unsure if f.dimension == dimension):
        note = f"{', '.join(made_of) or 'no finding posted'}; {', '.join(left_out)} withheld as not sure enough, not counted"
    note += f"; {by}{no_model}: {'; '.join(read)}"
    if no_model and (left := _files_only_for_model(context)):
        note += f"; not read: {', '.join(left[:3])}{', …' if len(left) > 3 else ''}"
    if not_done := [s.reviewer for s in skipped if not (no_model and s.reviewer == "model")]:
        note += "; not done: " + ", ".join(not_done)
    return DimensionScore(max(0, round(100 - lost)), note)


def _finding_weight(finding: Finding) -> float:
    """Zero below even odds, full weight at certainty."""
    return max(0.0, 2 * finding.confidence - 1)


def _missing_score_reason(skipped: Sequence[SkippedReviewer], context: ReviewContext) -> str:
    if not context.files:
        return "no file of this change is read"
    reasons = (f"model: {s.reason}" if s.reviewer == "model" else s.reason for s in skipped)
    return "; ".join(dict.fromkeys(reasons)) or "nothing here reads this"


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
OUT_OF_TIME = "the time was over"
MAX_DIFF_FILES = 20_000
MAX_DIFF_BYTES = 64 * 1024 * 1024
NO_REPOSITORY = "a bare patch: no repository to read around it"


FindUnsaid = Callable[
    [Sequence[Finding], Sequence[UnreadFile], Sequence[SkippedReviewer]], Sequence[Finding]
]
"""The findings posted earlier that a review neither says again nor shows to be fixed."""


@dataclass(frozen=True)
class ReviewJob:
    """What to review. `base` and `head` are revisions; with `diff` (a bare patch) they may be empty.

    `tests` says how the tests run; they run only with `run_tests`; `no_tests` is why they must not.
    `find_claim_tests` is called once a model's claim is to be tested, `find_sandbox` once a compiler is to run;
    `may_run`: compilers may run the change's own code, such as build scripts.
    `body` ends with the texts of the `linked_issues`. `max_comments` limits this review, on later pushes to less. `index` caches what is read of the repository.
    `weights` calibrates a model's claims. `cpu_seconds` is the CPU time of all analyzers together; those that are not
    done by then are skipped.
    """

    base: str = ""
    head: str = ""
    diff: str | None = None
    title: str = ""
    body: str = ""
    linked_issues: tuple[int, ...] = ()
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
    find_unsaid: FindUnsaid | None = None,
    progress: Callable[[str], None] | None = None,
    cancel: Event | None = None,
    deadline: float | None = None,
    reviewers: ReviewerTable = REVIEWERS,
) -> Review:
    """Review a change. Nothing is posted and nothing outside is changed.

    What `find_unsaid` returns still stands, as if this review had found it again.

    At `deadline`, a moment of the monotonic clock, the reviewers that are at work are skipped with `OUT_OF_TIME` as
    their reason; what was found until then is the review.

    Raises:
        UserError: a revision is unknown, or there is neither a repository nor a patch.
        Cancelled: `cancel` was set.
    """
    started = time.monotonic()
    stop = cancel if deadline is None else DeadlineEvent(deadline, cancel)
    meter = CostMeter(model, stop) if model is not None else None
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
    reports = _run_reviewers(replace(context, cancel=stop), reviewers)
    ranking, reports = _rank_isolated(context, reports, _make_policy(job), memory)
    unread, skipped = _collect_unread(read, reports), _collect_skipped(context, reports)
    if find_unsaid is not None:
        said = (*ranking.findings, *(w.finding for w in ranking.withheld))
        unsaid = find_unsaid(said, unread, skipped)
        ranking = replace(
            ranking,
            withheld=(*ranking.withheld, *(WithheldFinding(f, "duplicate") for f in unsaid)),
            standing=(*ranking.standing, *unsaid),
        )
    findings = (*ranking.findings, *list_over_budget(ranking.withheld))
    holds = (*findings, *ranking.standing, *ranking.dismissed)
    tests = next((r.tests for _, r in reports if r.tests), None)
    valued, notes = compute_scores(reports, holds, ranking.withheld, context, tests)
    return Review(
        base=context.base,
        head=context.head,
        merge_base=context.merge_base,
        summary=summarise_change(
            context,
            read.scope,
            findings,
            _find_about(reports) or describe_definitions(read.walkthrough, len(context.files)),
            standing=len(ranking.standing),
            not_read=unread,
            tests=tests,
            withheld=ranking.withheld,
            skipped=skipped,
        ),
        risk="high"
        if tests and not (tests.passed or tests.fails_without_change)
        else rate_risk_of_change(context.files, holds),
        scores=valued,
        findings=ranking.findings,
        withheld=ranking.withheld,
        not_reviewed=unread,
        skipped=skipped,
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
        config=with_dimensions_of_all_paths(job.config),
        title=job.title,
        body=job.body,
        linked_issues=job.linked_issues,
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
        config=job.config if job.min_confidence is None else without_confidence_by_path(job.config),
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
    context.report_progress(
        f"reading {count_noun(len(context.files), 'file')} with {len(reviewers)} analyzers"
    )
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
    except Cancelled:
        return [_explain_out_of_time(context)] * len(reviewers)
    return [_read_report(e) for e in ended]


def _explain_out_of_time(context: ReviewContext) -> AnalysisFailed:
    """Why a reviewer was stopped.

    Raises:
        Cancelled: it was not the time, but the caller.
    """
    if isinstance(context.cancel, DeadlineEvent) and context.cancel.is_over:
        return AnalysisFailed(OUT_OF_TIME)
    raise Cancelled("the review was stopped")


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
    except (Cancelled, AnalysisFailed) as error:
        why = error if isinstance(error, AnalysisFailed) else _explain_out_of_time(context)
        return ReviewerReport(skipped=(SkippedReviewer(reviewer.name, str(why)),))
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
