"""Turns people's reactions to findings on one pull request into outcomes and lasting dismissals."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from regreen.bot.jobs.runner import Job
from regreen.bot.messages.markup import has_marker
from regreen.bot.posted_findings import (
    PostedFindings,
    make_outcome,
    resolve_threads,
    was_applied,
)
from regreen.bot.services import Services
from regreen.domain.errors import OutsideError, UserError
from regreen.domain.events import ThreadChanged
from regreen.domain.github import PERMISSION_LEVELS, REVIEW_SCOPE, GitHub, ReviewComment
from regreen.domain.records import Store
from regreen.domain.state_records import (
    FindingOutcome,
    OutcomeKind,
    PostedFinding,
)
from regreen.reviewers.calibration import Weights
from regreen.reviewers.learning import (
    OUTCOME_PRIORITY,
    CalibrationBin,
    calibration_bins,
    classify_reply,
    learn_thresholds,
    learn_weights,
    with_present_confidence,
)

RESOLVED_REASON = "its thread was resolved"
_DISMISSING_OUTCOMES: frozenset[OutcomeKind] = frozenset({"down", "denied"})
_UNDONE_OUTCOMES: tuple[OutcomeKind, ...] = ("dismissed", "resolved")

TextOf = Callable[[str], str | None]


def record_dismissed(services: Services, finding: PostedFinding) -> None:
    """Record a dismissal by `/dismiss` or by the button."""
    outcome = make_outcome(finding, "dismissed", services.clock.now())
    OutcomeStore(services.store).record_outcome(outcome)


def withdraw_dismissal(services: Services, github: GitHub, finding: PostedFinding) -> bool:
    """Raise a dismissed finding again: nothing is learned from its dismissal, and its thread is open.

    Returns whether a thumb or a reply against it still stands, which the next review reads again.
    """
    PostedFindings(services.store, finding.repo, finding.number).undo_dismissal(finding.fingerprint)
    outcomes = OutcomeStore(services.store)
    for how in _UNDONE_OUTCOMES:
        outcomes.withdraw_outcome(finding.repo, finding.number, finding.fingerprint, how)
    resolve_threads(github, finding.number, {finding.fingerprint}, reopen=True)
    left = outcomes.find_outcome(finding.repo, finding.number, finding.fingerprint)
    return left is not None and left.how in _DISMISSING_OUTCOMES


def collect_feedback(services: Services, job: Job, github: GitHub, number: int) -> None:
    """Read thumbs and replies on our findings. A thumb down or a denial dismisses the finding for good."""
    remembered = PostedFindings(services.store, github.repo, number)
    posted = remembered.load_posted()
    if not posted:
        return
    outcomes = OutcomeStore(services.store)
    known = remembered.dismissals()
    for fingerprint, answer in read_feedback(github, number, set(posted)).items():
        how = answer.how
        outcomes.record_outcome(make_outcome(posted[fingerprint], how, services.clock.now()))
        if how in _DISMISSING_OUTCOMES:
            if fingerprint not in known:  # else it is kept who dismissed it first, and when
                remembered.dismiss(fingerprint, answer.login, answer.words)
                what = f"{posted[fingerprint].id}, {answer.words}"
                services.log_action(job, answer.login, "dismissed", what)
            remembered.close_threads(github, number, {fingerprint})


def record_fixed(services: Services, findings: Iterable[PostedFinding], text_of: TextOf) -> None:
    """Record findings that are gone: the suggestion was applied, or the code was changed in another way."""
    outcomes = OutcomeStore(services.store)
    for finding in findings:
        how: OutcomeKind = "applied" if was_applied(finding, text_of(finding.path)) else "mended"
        outcomes.record_outcome(make_outcome(finding, how, services.clock.now()))


def dismiss_by_thread(services: Services, job: Job, event: ThreadChanged) -> str:
    """Dismiss a finding whose thread a person with write access resolved, until the thread is reopened."""
    if event.actor.is_bot:
        return "ignored: a bot resolved or reopened the thread"
    github = services.github_client(event.where, REVIEW_SCOPE)
    allowed = github.permission(event.actor.login)
    if PERMISSION_LEVELS.index(allowed) < PERMISSION_LEVELS.index("write"):
        return f"ignored: {event.actor.login} has no write access"
    remembered = PostedFindings(services.store, event.where.repo, event.number)
    outcomes = OutcomeStore(services.store)
    word = "resolved" if event.resolved else "reopened"
    ours = [r for r in github.review_comments(event.number) if r.ours and r.id in event.comments]
    findings = {
        f: finding
        for f, finding in remembered.load_posted().items()
        if any(has_marker(r.body, "finding", f) for r in ours)
    }
    for fingerprint, finding in findings.items():
        if event.resolved:
            outcomes.record_outcome(make_outcome(finding, "resolved", services.clock.now()))
            remembered.dismiss(fingerprint, event.actor.login, RESOLVED_REASON)
        else:
            outcomes.withdraw_outcome(event.where.repo, event.number, fingerprint, "resolved")
            remembered.undo_dismissal(fingerprint, RESOLVED_REASON)
        action = "dismissed" if event.resolved else "dismissal taken back"
        services.log_action(job, event.actor.login, action, f"{finding.id}, its thread was {word}")
    return f"{word} by {event.actor.login}: {len(findings)} findings"


# Outcomes of findings: read from GitHub, kept in the store, used by thresholds, `/stats` and the dashboard.

_MIN_FEEDBACK_PERMISSION = PERMISSION_LEVELS.index("write")
_log = logging.getLogger(__name__)


class OutcomeStore:
    """Every outcome, one for each finding: the strongest signal, and the later of two equal ones."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def record_outcome(self, outcome: FindingOutcome) -> None:
        """Record a finding's outcome unless a stronger one is recorded."""
        known = self.find_outcome(outcome.repo, outcome.number, outcome.fingerprint)
        if known is None or OUTCOME_PRIORITY.index(known.how) >= OUTCOME_PRIORITY.index(
            outcome.how
        ):
            self._store.save(outcome)

    def withdraw_outcome(self, repo: str, number: int, fingerprint: str, how: OutcomeKind) -> None:
        """Forget an outcome of this kind, for example when a resolved thread is reopened."""
        self._store.remove(
            FindingOutcome, repo=repo, number=number, fingerprint=fingerprint, how=how
        )

    def list_outcomes(self, repo: str = "") -> list[FindingOutcome]:
        """The outcomes of one repository, or all of them."""
        return self._store.find_all(FindingOutcome, **({"repo": repo} if repo else {}))

    def learned_thresholds(self, repo: str, default: float) -> tuple[Weights, dict[str, float]]:
        """The weights of model claims, and the minimum confidence of each rule that differs from the default.

        Only outcomes of the same owner count: feedback of others changes nothing in a repository.
        """
        known = self._store.find_all(FindingOutcome, repos_of=repo.partition("/")[0])
        now = learn_weights(known)
        return now, learn_thresholds(with_present_confidence(known, now), repo, default)

    def find_outcome(self, repo: str, number: int, fingerprint: str) -> FindingOutcome | None:
        """The outcome of one finding; None where there is none."""
        return self._store.find(FindingOutcome, repo=repo, number=number, fingerprint=fingerprint)

    def calibration_bins(self, repo: str = "") -> tuple[CalibrationBin, ...]:
        """The stated confidence and the observed outcomes, for the dashboard's plot."""
        return calibration_bins(self.list_outcomes(repo))


@dataclass(frozen=True, slots=True)
class FindingAnswer:
    """What a person said of a finding, and in which way."""

    how: OutcomeKind
    login: str
    words: str = ""


def read_feedback(github: GitHub, number: int, fingerprints: set[str]) -> dict[str, FindingAnswer]:
    """What people with write access answered to these findings, by reaction or reply.

    A failure to read feedback is logged and otherwise ignored.
    """
    try:
        remarks = github.review_comments(number)
        by_id = {
            r.id: name
            for r in remarks
            if r.ours
            for name in fingerprints
            if has_marker(r.body, "finding", name)
        }
        if not by_id:
            return {}
        teaches = _FeedbackAuthors(github)
        answers: dict[str, FindingAnswer] = {}
        for remark in remarks:
            if (found := _find_outcome_of_comment(remark, by_id, teaches)) is None:
                continue
            name, answer = found
            known = answers.get(name)
            if known is None or OUTCOME_PRIORITY.index(answer.how) <= OUTCOME_PRIORITY.index(
                known.how
            ):
                answers[name] = answer
    except (OutsideError, UserError) as error:
        _log.warning("feedback on %s#%d is not read: %s", github.repo, number, error)
        return {}
    return answers


class _FeedbackAuthors:
    """Whose feedback counts: people with write access."""

    def __init__(self, github: GitHub) -> None:
        self._github = github
        self._known: dict[str, bool] = {}

    def __call__(self, login: str) -> bool:
        if login not in self._known:
            has = self._github.permission(login)
            self._known[login] = PERMISSION_LEVELS.index(has) >= _MIN_FEEDBACK_PERMISSION
        return self._known[login]


def _find_outcome_of_comment(
    remark: ReviewComment, by_id: dict[int, str], teaches: _FeedbackAuthors
) -> tuple[str, FindingAnswer] | None:
    """The finding that a comment says something about, and what it says, by reaction or by reply."""
    if remark.id in by_id:
        if login := next(filter(teaches, remark.down), ""):
            return by_id[remark.id], FindingAnswer("down", login, "with a thumb down")
        login = next(filter(teaches, remark.up), "")
        return (by_id[remark.id], FindingAnswer("up", login)) if login else None
    if remark.reply_to not in by_id or remark.by_bot:
        return None
    outcome = classify_reply(remark.body)
    if outcome is None or not teaches(remark.author):
        return None
    said = " ".join(x for x in remark.body.split("\n") if not x.lstrip().startswith(">"))
    words = f"by a reply, {' '.join(said.split())[:200]}"
    return by_id[remark.reply_to], FindingAnswer(outcome, remark.author, words)
