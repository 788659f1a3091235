"""The ladder: triage, then the rungs, cheapest first, until one patch passes the gate; then the workflow's other jobs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Event
from typing import Literal, Protocol

from regreen.actions.other_jobs import OtherJob
from regreen.code.file_change import CheckReason
from regreen.code.path_settings import find_changed_paths
from regreen.domain.errors import Cancelled, NoSandbox, OutOfBudget, OutsideError, UserError
from regreen.domain.job_control import DeadlineEvent, StopCondition
from regreen.domain.models import Cost, RungName
from regreen.domain.ports import Git, Model, Sandbox
from regreen.domain.text_limits import format_seconds
from regreen.environment.preparation import describe_start
from regreen.fixers.case import (
    QUICK_MINUTES,
    Attempt,
    AttemptOutcome,
    FixJob,
    FixOutcome,
    FixResult,
    GuiltyCommit,
    Hypothesis,
    InitialFailure,
    JudgeProposal,
    MutationScore,
    OtherJobOutcome,
    OtherJobRun,
    PatchVerdict,
    Proposal,
    RepairCase,
    RungResult,
)
from regreen.fixers.minimization import describe_smaller_failure, measure_strength
from regreen.fixers.report import name_attempt_outcome
from regreen.fixers.triage import (
    explain_red_base,
    find_refused_lock,
    make_case,
    triage_failure,
)
from regreen.fixers.verify_patch import PatchVerification, apply_patch, verify_proposal
from regreen.gate.judge import ATTEMPTS_A_HEAD, GateReport
from regreen.gate.publishing import TAKES_BACK
from regreen.runs.capsule import ExpectedOutcome, KeepCapsule, expect_runs, make_capsule
from regreen.runs.test_runs import CommandRun
from regreen.runs.trial import Trial, describe_missing_tool, find_missing_tool

# Holds another job of the failing workflow against a patch: what passes without the patch has to pass with it.

_MIN_SECONDS = 30.0
_TIME_SHARE = 0.2  # of the time that is left, for each run


def run_other_job(case: RepairCase, other: OtherJob, commit: str) -> OtherJobRun:
    """Run the job at `commit`, which has the patch; where it fails, also without the patch, and once more with it."""
    if other.trial is None:
        return OtherJobRun(other.name, "not_run", other.why)
    if case.stop.left < _MIN_SECONDS:
        return OtherJobRun(other.name, "not_run", "no time left")
    seconds = case.stop.left * _TIME_SHARE
    case.say(f"running {other.name} with the patch, at most {seconds:.0f} seconds")
    trial = replace(
        other.trial,
        base=case.trial.base,
        rules=case.trial.rules,
        timeout=min(other.trial.timeout, seconds),
        setup_timeout=min(other.trial.setup_timeout, seconds),
    )
    seen = _run_trial_of_job(case, trial, commit)
    outcome: OtherJobOutcome = "broken"
    if seen.is_green or not seen.is_conclusive:
        outcome = "passed" if seen.is_green else "not_run"
    elif other.is_rest:
        outcome = "red"
    elif not (before := _run_trial_of_job(case, trial, case.rev)).is_green:
        if not before.is_conclusive:
            return OtherJobRun(
                other.name, "broken", f"{seen.detail}; without the patch {before.detail}"
            )
        outcome = "red_before"
    elif _run_trial_of_job(case, trial, commit).is_green:
        return OtherJobRun(other.name, "passed", "in the second of two runs")
    return OtherJobRun(other.name, outcome, seen.detail)


@dataclass(frozen=True, slots=True)
class _JobRun:
    is_green: bool
    is_conclusive: bool = True
    detail: str = ""


def _run_trial_of_job(case: RepairCase, trial: Trial, rev: str) -> _JobRun:
    try:
        run = case.run_fresh(trial, rev)
    except NoSandbox:
        raise
    except Cancelled:
        if case.stop.left > 0:
            raise
        return _JobRun(False, False, "no time left")
    except UserError as error:
        return _JobRun(False, False, f"it cannot be prepared here: {error}")
    if run.is_green:
        return _JobRun(True)
    if run.result.ended != "exit" or not run.is_conclusive:
        end = run.result.detail or run.result.ended
        return _JobRun(False, False, f"it did not come to its end here: {end}")
    if tool := find_missing_tool(trial.command, run.result):
        return _JobRun(False, False, describe_missing_tool(tool, setup=trial.setup))
    names = ", ".join(sorted(run.failing)[:3])
    return _JobRun(False, True, names or f"exit {run.result.exit_code}")


_QUICK_COMMAND = 120.0

__all__ = ["QUICK_MINUTES", "FixJob", "FixResult", "fix_failure"]


_SURE = 0.95  # a bisection that finds one commit states more, one that leaves several suspects less
_STAGES: dict[RungName, str] = {
    "recipe": "recipes for known failures",
    "revert": "to find and revert the commit that broke it",
    "shrink": "parts of the change",
    "template": "one-line edits",
    "model": "the model",
}


def load_rung(name: RungName) -> Rung:
    """The rung of that name; each is imported only when it is used."""
    match name:
        case "recipe":
            from regreen.fixers.rungs.recipe_rung import RecipeRung

            return RecipeRung()
        case "revert":
            from regreen.fixers.rungs.revert_rung import RevertRung

            return RevertRung()
        case "model":
            from regreen.fixers.rungs.model_rung import ModelRung

            return ModelRung()
        case "shrink":
            from regreen.fixers.rungs.revert_rung import ShrinkRung

            return ShrinkRung()
        case "template":
            from regreen.fixers.rungs.template_rung import TemplateRung

            return TemplateRung()


def fix_failure(
    job: FixJob,
    *,
    git: Git,
    sandbox: Sandbox,
    model: Model | None,
    progress: Callable[[str], None] | None = None,
    cancel: Event | None = None,
    now: Callable[[], float] = time.monotonic,
    keep: KeepCapsule | None = None,
    on_reproduced: Callable[[InitialFailure], None] | None = None,
) -> FixResult:
    """Make the job's command pass at its commit, or say why not.

    `on_reproduced` is called with the failure once it was seen here, before a repair is looked for.

    Raises:
        UserError: the revision is unknown.
        Cancelled: `cancel` was set.
        OutsideError: the sandbox engine failed.
    """
    started = now()
    limit = DeadlineEvent(started + job.max_minutes * 60, cancel, now)
    stop = StopCondition(started + job.max_minutes * 60, limit, now)
    progress_lines: list[str] = []

    def say(line: str) -> None:
        progress_lines.append(line)
        if progress is not None:
            progress(line)

    trial = job.trial
    try:
        result, trial = _fix_or_cancel(
            job,
            git=git,
            sandbox=sandbox,
            model=model,
            say=say,
            stop=stop,
            keep=keep,
            on_reproduced=on_reproduced,
        )
    except Cancelled:
        if cancel is not None and cancel.is_set():
            raise
        doing = f", while {progress_lines[-1]}" if progress_lines else ""
        reason = f"the time was over before the failure was understood{doing}"
        before = InitialFailure(job.trial.command_line, None)
        result = FixResult("out_of_budget", before=before, reason=reason)
    return replace(
        result, seconds=now() - started, rev=git.resolve(job.rev), setup=trial.setup_to_type
    )


def _fix_or_cancel(
    job: FixJob,
    *,
    git: Git,
    sandbox: Sandbox,
    model: Model | None,
    say: Callable[[str], None],
    stop: StopCondition,
    keep: KeepCapsule | None,
    on_reproduced: Callable[[InitialFailure], None] | None,
) -> tuple[FixResult, Trial]:
    """The repair, and the trial that it ran; `Cancelled` where the time is over before there is a result."""
    started = stop.now()
    rev = git.resolve(job.rev)
    base = _find_merge_base(git, job, rev)
    if job.trial.base is None:
        # packages that a repair asks for are compared with those of the repaired commit; the command that
        # installs is not the repair's own and has run there already
        rules = replace(job.trial.rules, trusts_command=True)
        tests = job.tests and replace(job.tests, base=rev, rules=rules)
        job = replace(job, trial=replace(job.trial, base=rev, rules=rules), tests=tests)
    if job.attempts_before >= ATTEMPTS_A_HEAD:
        reason = f"{job.attempts_before} repairs were tried at this commit already; push a new one, or take the last patch up by hand"
        before = InitialFailure(job.trial.command_line, None)
        return FixResult("gave_up", before=before, reason=reason), job.trial
    first = "preparing the environment, then " if job.trial.setup else ""
    say(f"{first}running {job.trial.command_line} at {rev[:12]}, {job.reruns} times")
    triage = triage_failure(job, rev, git=git, sandbox=sandbox, stop=stop)
    triage = find_refused_lock(job, triage, rev, git=git, sandbox=sandbox, stop=stop)
    if triage.trial is not None:
        job = replace(job, trial=triage.trial)
    if triage.outcome is not None:
        stopped = FixResult(triage.outcome, before=triage.before, reason=triage.reason)
        return stopped, job.trial
    if on_reproduced is not None:
        on_reproduced(triage.before)
    if base is not None and base != rev:
        say(f"running it at the base {base[:12]}")
        if not_ours := explain_red_base(
            triage, job, base, git=git, sandbox=sandbox, cancel=stop.cancel
        ):
            hint = f"look for who broke the base: regreen bisect --bad {base[:12]} -- {job.trial.command_line}"
            not_mended = FixResult("gave_up", before=triage.before, reason=not_ours, hints=(hint,))
            return not_mended, job.trial
    if triage.setup_failed:
        job = replace(job, rungs=tuple(name for name in job.rungs if name == "recipe"))
    is_quick = triage.red is not None and triage.red.result.seconds < _QUICK_COMMAND
    if job.quick_minutes is not None and model is None and is_quick:
        stop = _with_earlier_deadline(stop, started + 60 * job.quick_minutes)
    say(f"looking for a repair, {format_seconds(stop.left)} at most")
    case = make_case(job, rev, triage, git=git, sandbox=sandbox, stop=stop)
    case = replace(case, base=base if base != rev else None, model=model, say=say)
    result = _Ladder(case).run_rungs()
    keep = keep if stop.left > 0 else None
    reason = result.reason or triage.reason or _explain_end(result, job.trial, triage.red)
    repeat = tuple(_store_capsules(case, triage.red, result, keep)) if keep and triage.red else ()
    return replace(result, reason=reason, repeat=repeat), job.trial


_ENDS: dict[FixOutcome, str] = {
    "gave_up": "no patch was found",
    "out_of_budget": "the time or the money was over before a patch was found",
    "denied": "the gate refused the patch",
}


def _explain_end(result: FixResult, trial: Trial, red: CommandRun | None) -> str:
    """Why there is no patch: what the command ends with where it names nothing that fails, and which rung stopped why."""
    if result.outcome not in _ENDS:
        return ""  # the patch, its cause and the gate's reasons say it
    names_nothing = red is not None and not red.tests and not result.before.failures
    unnamed = describe_start(trial, red) if red is not None and names_nothing else ""
    telling = (one for one in result.attempts if one.outcome in {result.outcome, "skipped"})
    last = next(telling, None)
    ending = (
        f"{_ENDS[result.outcome]} ({last.rung}: {last.detail or last.summary})"
        if last
        else _ENDS[result.outcome]
    )
    return "; ".join(filter(None, (unnamed, ending)))


def _store_capsules(
    case: RepairCase, red: CommandRun, result: FixResult, keep: KeepCapsule
) -> Iterator[str]:
    """Store the capsules of the failure and of the run with the patch; yield the commands that repeat them."""
    wanted = [(case.job.trial, expect_runs([red]))]
    if result.patch and result.after and result.after.exit_code == 0:
        commit = apply_patch(case.git, case.rev, result.patch).commit
        paths = find_changed_paths(case.git, case.rev, commit) if commit else []
        files = {
            path: data
            for path in paths
            if commit and (data := case.git.show(commit, path)) is not None
        }
        if files.keys() == set(
            paths
        ):  # a capsule can lay files over a checkout, and take none away
            patched = replace(case.job.trial, overlay={**case.job.trial.overlay, **files})
            wanted.append(
                (patched, ExpectedOutcome("pass", result.after.reruns, result.after.reruns))
            )
    for trial, expected in wanted:
        try:
            capsule = make_capsule(
                "fix", trial, case.rev, expected, git=case.git, sandbox=case.sandbox
            )
        except (UserError, Cancelled) as error:
            case.say(f"no capsule was made: {error}")
            continue
        if command := keep(capsule):
            yield command


def _with_earlier_deadline(stop: StopCondition, deadline: float) -> StopCondition:
    """The same with an earlier deadline."""
    earlier = min(stop.deadline, deadline)
    return StopCondition(earlier, DeadlineEvent(earlier, stop.cancel, stop.now), stop.now)


def _find_merge_base(git: Git, job: FixJob, rev: str) -> str | None:
    """The merge base, where the change starts: later commits of the base branch do not count."""
    if job.base is None:
        return None
    base = git.resolve(job.base)
    return git.merge_base(base, rev) or base


class _Ladder:
    """Runs the rungs of one case and records each attempt."""

    def __init__(self, case: RepairCase) -> None:
        self.case = case
        self.attempts: list[Attempt] = []
        self.hints: list[str] = list(case.hints)
        self.judged: list[PatchVerdict] = []
        self.finished: list[PatchVerdict] = []  # those whose every check came to its end
        self.cost = Cost()
        self.culprit: GuiltyCommit | None = None
        self.cause: str | None = None
        self.hypotheses: tuple[Hypothesis, ...] = ()
        self.made_small = False
        self.standing: PatchVerdict | None = None

    def run_rungs(self) -> FixResult:
        """Try the rungs in the order of the job."""
        ended: AttemptOutcome = "nothing_proposed"
        for name in self.case.job.rungs:
            if self.case.stop.left <= 0:
                ended = "out_of_budget"
                self._record_skip(name, "no time left")
                continue
            standing = self.standing
            if standing is not None and (name != "model" or standing.proposal.rung == "recipe"):
                # what the tool itself offers, or a part of the culprit: no guess may be published past it
                self._record_skip(
                    name, f"a {standing.proposal.rung} repairs it, once a person agrees"
                )
                continue
            if name == "shrink" and self._has_denied_reverts():
                self._record_skip(name, "taking back the commit that broke it was refused")
                continue
            if name in {*TAKES_BACK, "template"} and self._checks_form():
                self._record_skip(name, "a check of form is not answered by other behaviour")
                continue
            result = self._run_rung(name)
            judgement = result.judgement
            if result.outcome in {"out_of_budget", "gave_up", "denied"}:
                ended = result.outcome
            if judgement is not None and judgement.outcome == "accepted":
                return self._make_result("fixed", judgement)
            if judgement is not None and judgement.is_accepted:
                self.standing = standing or judgement
        if self.standing is not None:
            return self._make_result("needs_human", self.standing)
        self._minimize_failure()
        return self._make_result(self._outcome_without_patch(ended), None)

    def _checks_form(self) -> bool:
        """Whether the command checks form only."""
        return not self.case.setup_failed and self.case.check[0] == "form"

    def _minimize_failure(self) -> None:
        """Add a minimized failure to the hints once, for the model or for a person."""
        case = self.case
        if self.made_small or case.flaky or case.setup_failed or case.stop.left < 60:
            return
        self.made_small = True
        found = describe_smaller_failure(
            case.job.trial,
            case.rev,
            case.before.failures,
            git=case.git,
            sandbox=case.sandbox,
            cancel=case.stop.cancel,
        )
        self.hints += [found] if found else []

    def _outcome_without_patch(self, ended: AttemptOutcome) -> FixOutcome:
        if any(verdict.outcome == "denied" and verdict.after for verdict in self.judged):
            return "denied"
        return "out_of_budget" if ended == "out_of_budget" else "gave_up"

    def _has_denied_reverts(self) -> bool:
        """Whether the culprit is sure, and taking it or a part of it back repairs the failure but breaks something else."""
        culprit = self.culprit
        is_sure = culprit is not None and (culprit.probability or 0.0) >= _SURE
        return is_sure and any(
            verdict.outcome == "denied" and verdict.proposal.culprit == culprit
            for verdict in self.judged
        )

    def _describe_stage(self, name: RungName) -> str:
        """What is tried now, and what comes next if that finds nothing."""
        rungs = self.case.job.rungs
        later = rungs[rungs.index(name) + 1 :] if name in rungs else ()
        return f"trying {_STAGES[name]}" + (f" (next: {_STAGES[later[0]]})" if later else "")

    def _run_rung(self, name: RungName) -> RungResult:
        rung = load_rung(name)
        if name == "model" and self.case.model is None:
            why = "no model is configured"
            self._record_skip(name, why)
            return RungResult(note=why)
        if name == "model":
            self._minimize_failure()
        self.case.say(self._describe_stage(name))
        started = self.case.stop.now()
        before, judged_before = len(self.attempts), len(self.finished)
        case = replace(self.case, hints=tuple(self.hints), culprit=self.culprit)
        try:
            result = rung.propose_fix(case, self._judge_and_minimize)
        except OutOfBudget as error:
            result = RungResult(note=str(error), outcome="out_of_budget")
        except NoSandbox:
            raise
        except UserError as error:
            over = isinstance(error, Cancelled) and self.case.stop.left <= 0
            result = (
                RungResult(note="no time left", outcome="out_of_budget")
                if over
                else RungResult(note=str(error))
            )
        except OutsideError as error:
            if self.standing is None:
                raise  # another try may find more
            result = RungResult(note=str(error), outcome="infra")
        if result.judgement is None and result.outcome == "out_of_budget":
            # the time was over while the next patch was looked for: what was accepted before still stands
            accepted = (one for one in self.finished[judged_before:] if one.is_accepted)
            result = replace(result, judgement=next(accepted, None))
        self.hints += [hint for hint in result.hints if hint not in self.hints]
        self.cost += result.cost
        self.culprit = result.culprit or self.culprit
        self.cause = result.cause or self.cause
        self.hypotheses += result.hypotheses
        if len(self.attempts) == before or result.note:
            own = len(self.attempts) == before  # else its attempts hold time and cost
            seconds = self.case.stop.now() - started if own else 0.0
            spent = result.cost.usd if own else 0.0
            note = result.note or "nothing to propose"
            attempt = Attempt(name, note, result.outcome, seconds, spent, trail=result.trail)
            self.attempts.append(attempt)
        return result

    def _record_skip(self, name: RungName, summary: str) -> None:
        self.attempts.append(Attempt(name, summary, "skipped"))

    def _judge_and_minimize(self, proposal: Proposal) -> PatchVerdict:
        """Verify and judge one proposal, and drop the hunks that it does not need."""
        judgement, verified = self._verify_proposal(proposal)
        if judgement.is_accepted and verified.smaller:
            words = f"{proposal.summary}, without the hunks it does not need"
            again, checked = self._verify_proposal(
                replace(proposal, patch=verified.smaller, summary=words)
            )
            if again.is_accepted:
                judgement, verified = again, checked
        if judgement.is_accepted and self.case.job.other_jobs:
            judgement = self._run_other_jobs_and_judge(judgement, verified)
        if judgement.is_accepted and proposal.rung != "recipe" and self.case.stop.left > 30:
            try:
                measured = measure_strength(
                    _case_with_patch(self.case, verified), verified.applied.files
                )
                judgement = self._add_strength_to_verdict(judgement, measured)
            except Cancelled:  # the patch is proven; how strong the tests are stays unknown
                self.case.say("no time left to measure what the tests notice")
        self.finished.append(judgement)
        return judgement

    def _add_strength_to_verdict(
        self, judgement: PatchVerdict, measured: MutationScore | None
    ) -> PatchVerdict:
        """Leave a patch to a person whose lines no test notices."""
        weighed = replace(judgement, strength=measured)
        if measured is None or measured.killed or not measured.mutants:
            return weighed
        words = f"no test notices any of {measured.mutants} faults in the patched lines"
        return self._replace_verdict_by_refusal(
            weighed, "needs_human", [CheckReason("evidence", words)]
        )

    def _replace_verdict_by_refusal(
        self,
        judgement: PatchVerdict,
        outcome: Literal["needs_human", "denied"],
        reasons: Sequence[CheckReason],
    ) -> PatchVerdict:
        """The verdict with further reasons, in place of the one that was recorded."""
        every = (*(judgement.gate.reasons if judgement.gate else ()), *reasons)
        gate = GateReport("deny" if outcome == "denied" else "needs_human", every)
        why = "; ".join(f"{reason.check}: {reason.detail}" for reason in reasons)
        held = replace(judgement, outcome=outcome, why=why, gate=gate)
        patch = judgement.proposal.patch
        self.judged = [held if one.proposal.patch == patch else one for one in self.judged]
        self.attempts = [
            replace(one, outcome=outcome, detail=why, gate=gate) if one.patch == patch else one
            for one in self.attempts
        ]
        return held

    def _run_other_jobs_and_judge(
        self, judgement: PatchVerdict, verified: PatchVerification
    ) -> PatchVerdict:
        """Run the workflow's other jobs with the patch; one that it breaks refuses it."""
        seen = tuple(
            run_other_job(self.case, other, verified.applied.commit or self.case.rev)
            for other in self.case.job.other_jobs
        )
        held = replace(judgement, other_jobs=seen)
        broken = [one for one in seen if one.outcome == "broken"]
        if broken:
            reasons = [
                CheckReason("other_jobs", f"{one.name}: {one.detail}", "deny") for one in broken
            ]
            return self._replace_verdict_by_refusal(held, "denied", reasons)
        return held

    def _verify_proposal(self, proposal: Proposal) -> tuple[PatchVerdict, PatchVerification]:
        self.case.stop.check_cancelled()
        started = self.case.stop.now()
        self.case.say(f"trying {proposal.rung}: {proposal.summary}")
        verified = verify_proposal(self.case, proposal)
        judgement = _make_verdict(proposal, verified)
        self.judged.append(judgement)
        seconds = self.case.stop.now() - started
        self.attempts.append(_make_attempt(judgement, seconds))
        end = name_attempt_outcome(judgement.outcome)
        self.case.say(f"{proposal.rung}: {proposal.summary}: {end}")
        return judgement, verified

    def _make_result(self, outcome: FixOutcome, judgement: PatchVerdict | None) -> FixResult:
        denied = next(
            (verdict for verdict in reversed(self.judged) if verdict.outcome == "denied"), None
        )
        shown = judgement or (denied if outcome == "denied" else None)
        proposal = judgement.proposal if judgement else None
        return FixResult(
            outcome,
            rung=proposal.rung if proposal else None,
            patch=proposal.patch if proposal else None,
            cause=proposal.cause if proposal else self.cause,
            culprit=(proposal.culprit if proposal else None) or self.culprit,
            before=self.case.before,
            after=judgement.after if judgement else None,
            gate=shown.gate if shown else None,
            attempts=tuple(self.attempts),
            hints=tuple(self.hints),
            cost=self.cost,
            reflection=proposal.reflection if proposal else None,
            strength=judgement.strength if judgement else None,
            other_jobs=judgement.other_jobs if judgement else (),
            hypotheses=self.hypotheses,
        )


def _case_with_patch(case: RepairCase, verified: PatchVerification) -> RepairCase:
    """The case at the patched commit, where every test that failed has to pass."""
    tests = {test: "failed" if word == "failed" else word for test, word in case.passing.items()}
    return replace(case, rev=verified.applied.commit or case.rev, passing=tests)


def _make_attempt(judged: PatchVerdict, seconds: float) -> Attempt:
    made = judged.proposal
    tried = Attempt(made.rung, made.summary, judged.outcome, seconds, made.usd, made.patch)
    return replace(tried, detail=judged.why, trail=made.trail, after=judged.after, gate=judged.gate)


def _make_verdict(proposal: Proposal, verified: PatchVerification) -> PatchVerdict:
    report = verified.report
    weighing = [reason for reason in report.reasons if reason.level in {"deny", "needs_human"}]
    why = "; ".join(f"{reason.check}: {reason.detail}" for reason in weighing[:6])
    if verified.applied.commit is None:
        return PatchVerdict(proposal, "does_not_apply", why, None, report)
    outcome: AttemptOutcome = "accepted" if report.verdict == "allow" else "needs_human"
    if report.verdict == "deny":
        red = any(reason.check == "verified" and reason.level == "deny" for reason in weighing)
        outcome = "still_red" if red else "denied"
    return PatchVerdict(proposal, outcome, why, verified.after, report)


# The protocol of the rungs.


class Rung(Protocol):
    """One way to make a failing command pass."""

    @property
    def name(self) -> RungName:
        """The name it has in reports and in the configuration."""
        ...

    def propose_fix(self, case: RepairCase, judge: JudgeProposal) -> RungResult:
        """Propose patches to `judge` until one is accepted or nothing is left to try."""
        ...
