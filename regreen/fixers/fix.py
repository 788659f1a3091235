"""The ladder: triage, then rung after rung, cheapest first, until one patch makes the command green honestly."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Event

from regreen.errors import NoSandbox, OutOfBudget, OutsideError, UserError
from regreen.fixers.case import (
    RUNGS,
    Attempt,
    AttemptOutcome,
    Before,
    Case,
    Climbed,
    Culprit,
    Fix,
    FixJob,
    FixOutcome,
    Judgement,
    Proposal,
    RungName,
)
from regreen.fixers.engine import Engine
from regreen.fixers.finish import minimised, strength
from regreen.fixers.gate import ATTEMPTS_A_HEAD
from regreen.fixers.rungs.rung import Rung
from regreen.fixers.smaller import smaller
from regreen.fixers.stop import Stop
from regreen.fixers.suite import suite_of
from regreen.fixers.triage import Triage, look_wider, red_base, triage
from regreen.fixers.verify_patch import Verified, verify
from regreen.models import Cost
from regreen.ports import Git, Model, Sandbox

__all__ = ["RUNGS", "Fix", "FixJob", "fix"]


def rung_called(name: RungName) -> Rung:
    """The rung of that name; each is loaded only when it is climbed."""
    match name:
        case "recipe":
            from regreen.fixers.rungs.recipe import Recipe

            return Recipe()
        case "revert":
            from regreen.fixers.rungs.revert import Revert

            return Revert()
        case "model":
            from regreen.fixers.rungs.model import ModelRung

            return ModelRung()
        case "shrink":
            from regreen.fixers.rungs.shrink import Shrink

            return Shrink()
        case "template":
            from regreen.fixers.rungs.template import Template

            return Template()


def fix(
    job: FixJob,
    *,
    git: Git,
    sandbox: Sandbox,
    model: Model | None,
    progress: Callable[[str], None] | None = None,
    cancel: Event | None = None,
    now: Callable[[], float] = time.monotonic,
) -> Fix:
    """Make the job's command pass at its commit, or say why not.

    Raises:
        UserError: the revision is unknown.
        Cancelled: `cancel` was set.
        OutsideError: the sandbox engine failed.
    """
    say = progress or (lambda _: None)
    started = now()
    stop = Stop(started + job.max_minutes * 60, cancel, now)
    rev = git.resolve(job.rev)
    base = _base(git, job, rev)
    if job.trial.base is None:
        # what a repair wants installed is compared with the commit that it repairs, whoever's that is; the
        # command that installs is not the repair's, and has run there already
        rules = replace(job.trial.rules, trusts_command=True)
        tests = job.tests and replace(job.tests, base=rev, rules=rules)
        job = replace(job, trial=replace(job.trial, base=rev, rules=rules), tests=tests)
    if job.attempts_before >= ATTEMPTS_A_HEAD:
        reason = f"{job.attempts_before} repairs were tried at this commit already; push a new one, or take the last patch up by hand"
        return Fix("gave_up", before=Before(job.trial.shown, None), reason=reason)
    say(f"running {job.trial.shown} at {rev[:12]}, {job.reruns} times")
    seen = triage(job, rev, git=git, sandbox=sandbox, stop=stop.check)
    if seen.trial is not None:
        job = replace(job, trial=seen.trial)
    if seen.outcome is not None:
        return Fix(seen.outcome, before=seen.before, reason=seen.reason, seconds=now() - started)
    if base is not None and base != rev:
        say(f"running it at the base {base[:12]}")
        if not_ours := red_base(seen, job, base, git=git, sandbox=sandbox):
            hint = f"look for who broke the base: regreen bisect --bad {base[:12]} -- {job.trial.shown}"
            return Fix(
                "gave_up",
                before=seen.before,
                reason=not_ours,
                hints=(hint,),
                seconds=now() - started,
            )
    if seen.setup_failed:
        job = replace(job, rungs=tuple(name for name in job.rungs if name == "recipe"))
    else:
        seen = look_wider(seen, job.trial, rev, git=git, sandbox=sandbox, seconds=stop.left)
    case = _case(job, rev, base, seen, git=git, sandbox=sandbox, model=model, stop=stop, say=say)
    climbed = _Ladder(case).climb()
    setup = _by_hand(job.trial.asked or job.trial.setup or "")
    reason = climbed.reason or seen.reason
    return replace(climbed, reason=reason, seconds=now() - started, rev=rev, setup=setup)


def _by_hand(setup: str) -> str:
    """The setup as a person would type it."""
    return "\n".join(line for line in setup.splitlines() if line.strip() not in {"", "cd /work"})


def _base(git: Git, job: FixJob, rev: str) -> str | None:
    """Where the change starts: the merge base, so that what others did to the base does not count."""
    if job.base is None:
        return None
    base = git.resolve(job.base)
    return git.merge_base(base, rev) or base


def _case(
    job: FixJob,
    rev: str,
    base: str | None,
    seen: Triage,
    *,
    git: Git,
    sandbox: Sandbox,
    model: Model | None,
    stop: Stop,
    say: Callable[[str], None],
) -> Case:
    suite = suite_of(
        job.trial,
        rev,
        configured=job.tests,
        heard=seen.tests,
        git=git,
        sandbox=sandbox,
        stop=stop,
    )
    return Case(
        job=job,
        rev=rev,
        base=base if base != rev else None,
        before=seen.before,
        output=seen.output,
        passing=seen.tests,
        git=git,
        sandbox=sandbox,
        model=model,
        stop=stop,
        say=say,
        hints=(job.hint,) if job.hint else (),
        flaky=seen.flaky,
        wide=seen.wide,
        setup_failed=seen.setup_failed,
        suite=None if seen.wide is not None or seen.setup_failed else suite,
    )


class _Ladder:
    """Climbs the rungs of one case and keeps what each of them did."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.attempts: list[Attempt] = []
        self.hints: list[str] = list(case.hints)
        self.judged: list[Judgement] = []
        self.cost = Cost()
        self.culprit: Culprit | None = None
        self.cause: str | None = None
        self.made_small = False
        self.standing: Judgement | None = None

    def climb(self) -> Fix:
        """Try the rungs in the order of the job."""
        ended: AttemptOutcome = "nothing_proposed"
        for name in self.case.job.rungs:
            if self.case.stop.left <= 0:
                ended = "out_of_budget"
                self._note(name, "skipped", "no time left")
                continue
            standing = self.standing
            if name == "model" and standing is not None and standing.proposal.rung == "recipe":
                self._note(name, "skipped", "a recipe mends it, once a person agrees")
                continue
            climbed = self._rung(name)
            judgement = climbed.judgement
            if climbed.outcome in {"out_of_budget", "gave_up", "denied"}:
                ended = climbed.outcome
            if judgement is not None and judgement.outcome == "accepted":
                return self._result("fixed", judgement)
            if judgement is not None and judgement.stands and standing is None:
                self.standing = judgement
        if self.standing is not None:
            return self._result("needs_human", self.standing)
        self._make_small()
        return self._result(self._no(ended), None)

    def _make_small(self) -> None:
        """Say once how small the failure can be made, for the model or for whoever goes on by hand."""
        case = self.case
        if self.made_small or case.flaky or case.setup_failed or case.stop.left < 60:
            return
        self.made_small = True
        found = smaller(
            case.job.trial,
            case.rev,
            case.before.failures,
            git=case.git,
            sandbox=case.sandbox,
            cancel=case.stop.cancel,
        )
        self.hints += [found] if found else []

    def _no(self, ended: AttemptOutcome) -> FixOutcome:
        if any(
            judgement.outcome == "denied" and judgement.after is not None
            for judgement in self.judged
        ):
            return "denied"
        return "out_of_budget" if ended == "out_of_budget" else "gave_up"

    def _rung(self, name: RungName) -> Climbed:
        rung = rung_called(name)
        if name == "model" and self.case.model is None:
            why = "no model is configured"
            self._note(name, "skipped", why)
            return Climbed(note=why)
        if name == "model":
            self._make_small()
        self.case.say(f"rung {name}")
        started = self.case.stop.now()
        before = len(self.attempts)
        case = replace(self.case, hints=tuple(self.hints), culprit=self.culprit)
        try:
            climbed = rung.climb(case, self._judge)
        except OutOfBudget as error:
            climbed = Climbed(note=str(error), outcome="out_of_budget")
        except NoSandbox:
            raise
        except UserError as error:
            climbed = Climbed(note=str(error))
        except OutsideError as error:
            if self.standing is None:
                raise  # another try may find more
            climbed = Climbed(note=str(error), outcome="infra")
        self.hints += [hint for hint in climbed.hints if hint not in self.hints]
        self.cost += climbed.cost
        self.culprit = climbed.culprit or self.culprit
        self.cause = climbed.cause or self.cause
        if len(self.attempts) == before or climbed.note:
            seconds = self.case.stop.now() - started if len(self.attempts) == before else 0.0
            spent = climbed.cost.usd if len(self.attempts) == before else 0.0
            self._note(
                name,
                climbed.outcome,
                climbed.note or "nothing to propose",
                seconds=seconds,
                usd=spent,
                trail=climbed.trail,
            )
        return climbed

    def _note(
        self,
        name: RungName,
        outcome: AttemptOutcome,
        summary: str,
        *,
        seconds: float = 0.0,
        usd: float = 0.0,
        trail: Sequence[str] = (),
    ) -> None:
        self.attempts.append(Attempt(name, summary, outcome, seconds, usd, trail=tuple(trail)))

    def _judge(self, proposal: Proposal) -> Judgement:
        """Verify and gate one proposal, keep it among the attempts, and leave out what it does not need."""
        judgement, verified = self._tried(proposal)
        if judgement.stands and proposal.rung == "model" and self.case.stop.left > 30:
            smaller = minimised(verified.applied.files, Engine(self.case))
            if smaller:
                words = f"{proposal.summary}, without the hunks it does not need"
                again, checked = self._tried(replace(proposal, patch=smaller, summary=words))
                if again.outcome in {judgement.outcome, "accepted"}:
                    judgement, verified = again, checked
        if judgement.stands and proposal.rung != "recipe" and self.case.stop.left > 30:
            measured = strength(_after(self.case, verified), verified.applied.files)
            judgement = replace(judgement, strength=measured)
        return judgement

    def _tried(self, proposal: Proposal) -> tuple[Judgement, Verified]:
        self.case.stop.check()
        started = self.case.stop.now()
        verified = verify(self.case, proposal.patch, proposal.rung, approval=proposal.approval)
        judgement = _judgement(proposal, verified)
        self.judged.append(judgement)
        seconds = self.case.stop.now() - started
        self.attempts.append(
            Attempt(
                proposal.rung,
                proposal.summary,
                judgement.outcome,
                seconds,
                proposal.usd,
                proposal.patch,
                judgement.why,
                proposal.trail,
                judgement.after,
                judgement.gate,
            )
        )
        self.case.say(f"{proposal.rung}: {proposal.summary}: {judgement.outcome}")
        return judgement, verified

    def _result(self, outcome: FixOutcome, judgement: Judgement | None) -> Fix:
        denied = next((one for one in reversed(self.judged) if one.outcome == "denied"), None)
        shown = judgement or (denied if outcome == "denied" else None)
        proposal = judgement.proposal if judgement else None
        return Fix(
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
        )


def _after(case: Case, verified: Verified) -> Case:
    """The case with the patch in: every test that failed is expected to pass there."""
    tests = {test: "failed" if word == "failed" else word for test, word in case.passing.items()}
    return replace(case, rev=verified.applied.commit or case.rev, passing=tests)


def _judgement(proposal: Proposal, verified: Verified) -> Judgement:
    report = verified.report
    weighing = [reason for reason in report.reasons if reason.level in {"deny", "needs_human"}]
    why = "; ".join(f"{reason.check}: {reason.detail}" for reason in weighing[:6])
    if verified.applied.commit is None:
        return Judgement(proposal, "does_not_apply", why, None, report)
    match report.verdict:
        case "allow":
            return Judgement(proposal, "accepted", why, verified.after, report)
        case "needs_human":
            return Judgement(proposal, "needs_human", why, verified.after, report)
        case "deny":
            red = any(
                reason.check == "verified" for reason in report.reasons if reason.level == "deny"
            )
            return Judgement(
                proposal, "still_red" if red else "denied", why, verified.after, report
            )
