"""A review: choose what to read, let every reviewer read it, rank what they say."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from threading import Event

from regreen.codebase.diff import parse
from regreen.codebase.index import Store
from regreen.codebase.language import language_of
from regreen.codebase.trial import Trial
from regreen.errors import Cancelled, OutsideError, SetupFailed, UserError
from regreen.models import (
    DIMENSIONS,
    Cost,
    CoverageReport,
    Dimension,
    Review,
    Skipped,
    Unread,
)
from regreen.pool import Pool
from regreen.ports import Git, Model, Sandbox
from regreen.repo_config import RepoConfig
from regreen.reviewers.calibrate import PRIOR, Weights
from regreen.reviewers.context import Report, ReviewContext, Reviewer
from regreen.reviewers.findings import settle
from regreen.reviewers.memory import Memory
from regreen.reviewers.meter import Meter
from regreen.reviewers.rank import Policy, rank
from regreen.reviewers.scope import UNREADABLE, Scope, risk_of, select
from regreen.reviewers.score import scores
from regreen.reviewers.summary import summary
from regreen.reviewers.table import REVIEWERS, Table

NO_REPOSITORY = "a bare patch: no repository to read around it"


@dataclass(frozen=True)
class ReviewJob:
    """What to review. `base` and `head` are revisions; with `diff` (a bare patch) they may be empty.

    `tests` says how the tests run (and what they need); they are run only with `run_tests`. `max_comments` is the
    budget of this review, for the caller to lower on later pushes. `index` keeps what is read of the repository.
    `weights` is what outcomes have taught about a model's claims.
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
    index: Store | None = None
    weights: Weights = PRIOR


def review(
    job: ReviewJob,
    *,
    git: Git | None,
    sandbox: Sandbox | None,
    model: Model | None,
    memory: Memory | None = None,
    progress: Callable[[str], None] | None = None,
    cancel: Event | None = None,
    reviewers: Table = REVIEWERS,
) -> Review:
    """Review a change. Nothing is posted and nothing outside is changed.

    Raises:
        UserError: a revision is unknown, or there is neither a repository nor a patch.
        Cancelled: `cancel` was set.
    """
    started = time.monotonic()
    meter = Meter(model, cancel) if model is not None else None
    context, scope = context_of(job, git=git, sandbox=sandbox, model=meter)
    known = memory.known if memory is not None else ()
    context = replace(context, progress=progress, cancel=cancel, known=known)
    reports = _read(context, reviewers)
    claims = [c for _, report in reports for c in report.claims]
    candidates, outside = settle(claims, context)
    ranking = rank(candidates, _policy(job), memory)
    withheld = (*ranking.withheld, *outside)
    holds = (*ranking.findings, *ranking.standing)
    valued, notes = scores(reports, holds, withheld, context)
    unread = _unread(context, scope, reports)
    return Review(
        base=context.base,
        head=context.head,
        merge_base=context.merge_base,
        summary=summary(
            context,
            scope,
            ranking.findings,
            _about(reports),
            standing=len(ranking.standing),
            unread={u.path for u in unread},
        ),
        risk=risk_of(context.files, holds),
        scores=valued,
        findings=ranking.findings,
        withheld=withheld,
        not_reviewed=unread,
        skipped=_skipped(context, reports),
        coverage=_coverage(reports),
        cost=meter.cost if meter is not None else Cost(),
        seconds=round(time.monotonic() - started, 3),
        score_notes=notes,
    )


def context_of(
    job: ReviewJob, *, git: Git | None, sandbox: Sandbox | None, model: Model | None
) -> tuple[ReviewContext, Scope]:
    """What the reviewers of this job are given, and what of the change was selected."""
    if git is None:
        if job.diff is None:
            message = "nothing to review: give a repository (--repo) or a patch (--diff)"
            raise UserError(message)
        base = head = merge_base = ""
        change = parse(job.diff)
    else:
        base, head = git.resolve(job.base), git.resolve(job.head)
        merge_base = git.merge_base(base, head) or base
        change = parse(git.diff(merge_base, head))
    whole = ReviewContext(
        change=change,
        files=(),
        base=base,
        head=head,
        merge_base=merge_base,
        git=git,
        sandbox=sandbox,
        model=model,
        config=job.config,
        title=job.title,
        body=job.body,
        tests=job.tests,
        run_tests=job.run_tests,
        index=job.index,
        weights=job.weights,
    )
    whole.read_ahead()
    sizes = {entry.path: entry.size for entry in whole.tree if entry.size is not None}
    scope = select(change, ignore=job.config.review.ignore, text_of=whole.after, sizes=sizes)
    return replace(whole, files=scope.files), scope


def _policy(job: ReviewJob) -> Policy:
    config = job.config.review
    return Policy(
        min_confidence=config.min_confidence if job.min_confidence is None else job.min_confidence,
        max_comments=config.max_comments if job.max_comments is None else job.max_comments,
        blocking=config.blocking,
    )


def _read(context: ReviewContext, reviewers: Table) -> list[tuple[Dimension, Report]]:
    """Let the reviewers of every wanted dimension read, side by side; their order is the table's."""
    chosen = [row for row in reviewers if row[0] in context.config.review.dimensions]
    if not context.change.files:
        return []
    with Pool(max_workers=4, thread_name_prefix="review") as pool:
        waiting = [(d, pool.submit(_run, reviewer, context)) for d, reviewer in chosen]
        return [(d, w.result()) for d, w in waiting]


def _run(reviewer: Reviewer, context: ReviewContext) -> Report:
    if context.cancel is not None and context.cancel.is_set():
        raise Cancelled("the review was stopped")
    context.say(f"reading: {reviewer.name}")
    try:
        return reviewer.run(context)
    except Cancelled:
        raise
    except SetupFailed as error:
        tail = error.output.strip().splitlines()[-1:] or [""]
        return Report(skipped=(Skipped(reviewer.name, f"{error} {tail[0][:200]}".strip()),))
    except (UserError, OutsideError) as error:
        return Report(skipped=(Skipped(reviewer.name, str(error)),))


def _unread(
    context: ReviewContext, scope: Scope, reports: Sequence[tuple[Dimension, Report]]
) -> tuple[Unread, ...]:
    """Every file somebody could not read, once, with the first reason given."""
    found = {
        f.path: Unread(f.path, UNREADABLE)
        for f in context.files
        if context.git and f.status != "deleted" and context.after(f.path) is None
    }
    found |= {u.path: u for _, r in reversed(reports) for u in reversed(r.unread)}
    found |= {u.path: u for u in scope.unread}
    return tuple(sorted(found.values(), key=lambda u: u.path))


def _skipped(
    context: ReviewContext, reports: Sequence[tuple[Dimension, Report]]
) -> tuple[Skipped, ...]:
    found = [s for _, r in reports for s in r.skipped]
    wanted = context.config.review.dimensions
    found += [Skipped(d, "not wanted by the configuration") for d in DIMENSIONS if d not in wanted]
    if context.git is None:
        found.append(Skipped("repository", NO_REPOSITORY))
    if context.model is None and "correctness" in wanted and (files := _only_for_a_model(context)):
        more = f" and {len(files) - 5} more" if len(files) > 5 else ""
        names = ", ".join(files[:5])
        what = "beyond their syntax and the names they share, only a model reads"
        found.append(Skipped("correctness", f"{what} {names}{more}"))
    return tuple(dict.fromkeys(found))


def _only_for_a_model(context: ReviewContext) -> list[str]:
    """Code in a language that no correctness analyzer here reads."""
    return [f.path for f in context.files if language_of(f.path) not in {"python", "config", None}]


def _about(reports: Sequence[tuple[Dimension, Report]]) -> str:
    return next((r.about for _, r in reports if r.about), "")


def _coverage(reports: Sequence[tuple[Dimension, Report]]) -> CoverageReport | None:
    return next((r.coverage for _, r in reports if r.coverage), None)
