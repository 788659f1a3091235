"""Runs a failed step again in the sandbox and says whether the same failure came back."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Event
from typing import Literal

from regreen.codebase.trial import Trial, prepare
from regreen.errors import SetupFailed, UserError
from regreen.fixers import driver
from regreen.fixers.ci_log import CiLog, failures_in, parse
from regreen.fixers.phases import Phases, phases
from regreen.fixers.workflow import JobPlan, Step
from regreen.models import Env, Failure, Limits, RunResult, Trust
from regreen.ports import Git, Sandbox

Verdict = Literal["reproduced", "flaky", "not_reproduced", "unsupported", "infra"]


@dataclass(frozen=True)
class Run:
    """One run of the command in a fresh box."""

    ended: str
    exit_code: int | None
    failures: tuple[Failure, ...]
    output: str
    seconds: float

    @property
    def failed(self) -> bool:
        """It ran to its end and failed; a command that could not be tried (125) did not."""
        return self.ended in {"exit", "timeout", "oom", "flood"} and self.exit_code not in {
            0,
            driver.COULD_NOT_GET_THERE,
        }


@dataclass(frozen=True)
class Reproduction:
    """Whether the failure came back.

    `rate` is the share of runs that failed; `failures` are those of the failing runs, each once; `detail` is one
    sentence for people; `base` says how the same command does on the base: None where nobody asked.
    """

    verdict: Verdict
    detail: str
    failures: tuple[Failure, ...] = ()
    runs: tuple[Run, ...] = ()
    rate: float = 0.0
    base: Literal["green", "red", "red_otherwise"] | None = None


def failed_step(
    job: JobPlan, name: str | None = None, number: int | None = None, command: str = ""
) -> Step | None:
    """The planned step that a log or the API means: by name, else by its command, else by number.

    GitHub counts the job's own set-up as step 1, so that its numbers are one more than the file's; names decide first.
    """
    runnable = [step for step in job.steps if step.kind != "skip" and step.run.strip()]
    for wanted in (name, command and f"Run {command.splitlines()[0]}"):
        if not wanted:
            continue
        bare = wanted.removeprefix("Run ").strip()
        for step in runnable:
            first = next(iter(step.run.strip().splitlines()), "").strip()
            if step.name == wanted or bare in {step.name, first, step.uses}:
                return step
    return next((step for step in runnable if step.number == number), None)


def default_step(job: JobPlan) -> Step | None:
    """The step most likely to be meant where nobody said: the last one that runs a test or a check."""
    from regreen.fixers.steps import looks_like_a_test

    runs = [step for step in job.steps if step.kind == "run"] or [
        step for step in job.steps if step.run and step.kind != "skip"
    ]
    return next(
        (step for step in reversed(runs) if looks_like_a_test(step)), runs[-1] if runs else None
    )


def trial_for(
    job: JobPlan,
    step: Step | int | None = None,
    *,
    timeout: float | None = None,
    trust: Trust = "local",
    scope: str = "local",
    pythons: Sequence[str] = (),
    limits: Limits | None = None,
    constraints: Sequence[str] = (),
) -> Trial:
    """The trial that runs one step of a job as GitHub did.

    Args:
        job: the plan of one matrix cell.
        step: the step that failed (or its number in the plan); the last test-like one where None.
        timeout: seconds for the command; the job's own limit where None.
        trust: whose code this is, for the environment's cache.
        scope: the repository, for the environment's cache.
        pythons: the interpreters that the sandbox has ("3.11"); a plan that asks for another is refused by name.
        limits: the box's limits.
        constraints: `name==version` of the day, from the log; pip and uv are held to them.

    Raises:
        Unsupported: the job needs what cannot be had here; the text names it.
    """
    chosen = _chosen(job, step)
    standing = [one for one in job.unsupported if one.step is None or one.step <= chosen.number]
    if standing:
        message = "; ".join(f"unsupported: {one.what}, because {one.why}" for one in standing)
        raise Unsupported(message)
    cut = phases(job.steps, chosen.number)
    constraints_env = _constrained(constraints)
    minutes = chosen.timeout_minutes or job.timeout_minutes
    seconds = timeout if timeout is not None else min((minutes or 30.0) * 60, 3600.0)
    overlay = {_CONSTRAINTS: "\n".join(constraints).encode() + b"\n"} if constraints else {}
    plain = _plain_command(cut)
    return Trial(
        command=("bash", "-c", plain if plain is not None else _command(cut, chosen.number)),
        setup=_setup(cut),
        env=(*_runner_env(cut.command[-1] if plain is not None else None), *constraints_env),
        overlay=overlay,
        timeout=seconds,
        python=_python(job, chosen.number, pythons),
        image=job.image if "/" in job.image or ":" in job.image else None,
        trust=trust,
        scope=scope,
        limits=limits or Limits(),
    )


class Unsupported(UserError):
    """A job that cannot be run here; the text names what stands in the way."""


def _chosen(job: JobPlan, step: Step | int | None) -> Step:
    if isinstance(step, Step):
        return step
    found = (
        default_step(job)
        if step is None
        else next((one for one in job.steps if one.number == step), None)
    )
    if found is None or not found.run.strip():
        message = f"job {job.id!r} has no such step to run; it has {', '.join(str(one.number) for one in job.steps if one.run)}"
        raise UserError(message)
    return found


_CONSTRAINTS = ".regreen-constraints.txt"


def _constrained(constraints: Sequence[str]) -> tuple[tuple[str, str], ...]:
    if not constraints:
        return ()
    return (("PIP_CONSTRAINT", f"/work/{_CONSTRAINTS}"), ("UV_CONSTRAINT", f"/work/{_CONSTRAINTS}"))


def _python(job: JobPlan, until: int, available: Sequence[str]) -> str | None:
    asked = [step.python for step in job.steps if step.python and step.number <= until]
    if not asked:
        return None
    wanted = asked[-1]
    if wanted == "3":
        return max(available, key=_version, default=None)
    if available and wanted not in available:
        message = f"unsupported: Python {wanted}, because this machine has {', '.join(available)}"
        raise Unsupported(message)
    return wanted


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


def _setup(cut: Phases) -> str | None:
    if not any(step.kind != "skip" and step.run.strip() for step in cut.setup):
        return None
    if (plain := _plain(cut.setup)) is not None:
        return plain
    return _as_file(driver.script(cut.setup))


def _command(cut: Phases, target: int) -> str:
    fresh = (
        not any(step.kind != "skip" and step.run.strip() for step in cut.setup)
        or _plain(cut.setup) is not None
    )
    return driver.script(cut.command, target=target, fresh=fresh)


def _runner_env(step: Step | None) -> tuple[tuple[str, str], ...]:
    """What the runner sets; and what the step sets, where no driver does it."""
    return tuple((driver.RUNNER_ENV | (step.env if step is not None else {})).items())


def _plain_command(cut: Phases) -> str | None:
    """A command of one simple step as its own script, so that people read what ran; None where it takes more."""
    steps = [step for step in cut.command if step.kind != "skip" and step.run.strip()]
    if len(steps) != 1 or (cut.setup and _setup(cut) is not None and _plain(cut.setup) is None):
        return None
    step = steps[0]
    if _needs_runner(step):
        return None
    lines = step.run.strip("\n")
    options = []
    if "\n" in lines.strip() or ";" in lines or step.timeout_minutes:
        options.append("set -e")
    if "pipefail" in step.shell and "|" in lines:
        options = ["set -e -o pipefail"]
    if step.working_directory != ".":
        options.append(f"cd {shlex.quote(step.working_directory)}")
    return "\n".join([*options, lines])


def _needs_runner(step: Step) -> bool:
    """Whether a step asks for more than a shell: the runner's files, values of the run, another shell."""
    return (
        any(word in step.run for word in _MEDDLES)
        or not step.shell.startswith("bash")
        or step.condition not in {"success()", "true"}
        or any("${{" in value for value in step.env.values())
    )


def _as_file(script: str) -> str:
    """The driver as a file, so that its own standard input stays free."""
    mark = "REGREEN_DRIVER_END"
    return f'cat > "$HOME/.ci-driver.sh" <<\'{mark}\'\n{script}{mark}\nbash "$HOME/.ci-driver.sh"'


_MEDDLES = ("GITHUB_", "${{", "RUNNER_", "sudo", "apt", "<<", "node")


def _plain(steps: Sequence[Step]) -> str | None:
    """A setup of simple steps as the simple lines they are: then its result is keyed by the manifests it reads.

    None where a step needs the runner's bookkeeping.
    """
    lines = ["set -e"]
    exported: dict[str, str] = {}
    for step in steps:
        if step.kind == "skip" or not step.run.strip():
            continue
        if _needs_runner(step) or step.continues or step.working_directory != ".":
            return None
        changed = {
            name: value
            for name, value in ({"CI": "true"} | step.env).items()
            if exported.get(name) != value
        }
        lines += [f"export {name}={shlex.quote(value)}" for name, value in changed.items()]
        lines += [f"unset {name}" for name in exported if name not in step.env and name != "CI"]
        exported = {"CI": "true"} | step.env
        lines.append(step.run)
    return "\n".join(lines)


# --- running it -------------------------------------------------------------------------------------------------------


def reproduce(
    trial: Trial,
    rev: str,
    *,
    git: Git,
    sandbox: Sandbox,
    runs: int = 3,
    cancel: Event | None = None,
    expected: CiLog | None = None,
    base: str | None = None,
) -> Reproduction:
    """Run the trial `runs` times in fresh boxes and say whether the failure came back.

    Args:
        trial: from `trial_for`, or any.
        rev: the failing revision.
        git: the repository.
        sandbox: where it runs.
        runs: how often, at least once.
        cancel: set to stop.
        expected: what CI's log said; then the same tests must fail, not just any.
        base: a revision to compare with; its own failure is told apart.
    """
    try:
        env = prepare(trial, rev, git=git, sandbox=sandbox, cancel=cancel)
    except SetupFailed as error:
        return _setup_failed(error, expected)
    seen = tuple(
        run_once(trial, rev, env, git=git, sandbox=sandbox, cancel=cancel)
        for _ in range(max(1, runs))
    )
    result = verdict(seen, expected)
    if base is None or result.verdict not in {"reproduced", "flaky"}:
        return result
    return replace(
        result, base=_on_base(trial, base, result, git=git, sandbox=sandbox, cancel=cancel)
    )


def run_once(
    trial: Trial, rev: str, env: Env, *, git: Git, sandbox: Sandbox, cancel: Event | None = None
) -> Run:
    """One run in a fresh box, its output read into failures."""
    with sandbox.open(env, git.archive(rev, trial.overlay), trial.limits) as box:
        result = box.run(trial.command, timeout=trial.timeout, env=dict(trial.env), cancel=cancel)
    return read_run(result)


def read_run(result: RunResult) -> Run:
    """What a run's output tells."""
    output = result.stdout + ("\n" + result.stderr if result.stderr else "")
    failures: tuple[Failure, ...] = ()
    if not result.passed:
        failures = failures_in(output)
        if not failures and result.ended == "exit":
            failures = parse(output.encode()).failures
    return Run(result.ended, result.exit_code, failures, output, result.seconds)


def verdict(runs: Sequence[Run], expected: CiLog | None = None) -> Reproduction:
    """Judge runs of one command against what CI saw; pure."""
    if (missing := _unsupported_in(runs)) is not None:
        return Reproduction("unsupported", missing, runs=tuple(runs))
    if any(run.ended in {"infra", "cancelled"} for run in runs):
        return Reproduction("infra", "the sandbox itself failed or was stopped", runs=tuple(runs))
    failing = [run for run in runs if run.failed]
    rate = len(failing) / len(runs) if runs else 0.0
    failures = _once(failing)
    if not failing:
        return Reproduction("not_reproduced", _why_not(runs), runs=tuple(runs))
    matching = [run for run in failing if same_failure(run.failures, expected)]
    if not matching:
        detail = f"it failed, but otherwise than in CI: {_shown(failures)}"
        return Reproduction("not_reproduced", detail, failures, tuple(runs), rate)
    rate = len(matching) / len(runs)
    if len(matching) < len(runs) or not _agree(matching):
        detail = f"failed in {len(matching)} of {len(runs)} runs: {_shown(failures)}"
        return Reproduction("flaky", detail, failures, tuple(runs), rate)
    return Reproduction(
        "reproduced",
        f"failed the same way in {len(runs)} of {len(runs)} runs: {_shown(failures)}",
        failures,
        tuple(runs),
        rate,
    )


def same_failure(found: Sequence[Failure], expected: CiLog | None) -> bool:
    """Whether a run shows what CI's log shows: the same failing ids, or as many of them as were looked for.

    Where the log names no test, the kinds and the first line of the message decide; where it says nothing, any
    failure will do.
    """
    if expected is None or not expected.failures:
        return True
    wanted = {failure.test for failure in expected.failures if failure.test}
    if wanted:
        return bool(wanted & {failure.test for failure in found})
    kinds = {failure.kind for failure in expected.failures}
    return not found or bool(kinds & {failure.kind for failure in found})


def _agree(runs: Sequence[Run]) -> bool:
    """Whether every run failed in the same tests."""
    return len({frozenset(failure.test for failure in run.failures) for run in runs}) == 1


def _once(runs: Sequence[Run]) -> tuple[Failure, ...]:
    found: dict[tuple[str, str], Failure] = {}
    for run in runs:
        for failure in run.failures:
            found.setdefault((failure.test, failure.kind), failure)
    return tuple(found.values())


def _shown(failures: Sequence[Failure]) -> str:
    names = [failure.test or failure.kind for failure in failures[:3]]
    more = f" and {len(failures) - 3} more" if len(failures) > 3 else ""
    return (", ".join(names) or "no failure that a tool named") + more


def _why_not(runs: Sequence[Run]) -> str:
    if all(run.exit_code == driver.COULD_NOT_GET_THERE for run in runs) and runs:
        return "an earlier step failed, so the failing step was never reached"
    return f"it passed in {len(runs)} of {len(runs)} runs"


def _unsupported_in(runs: Sequence[Run]) -> str | None:
    for run in runs:
        for line in run.output.splitlines():
            if driver.UNSUPPORTED_MARK in line:
                return line[line.index(driver.UNSUPPORTED_MARK) :].removeprefix("regreen: ")
    return None


def _setup_failed(error: SetupFailed, expected: CiLog | None) -> Reproduction:
    """The network phase failed: the failure itself where CI failed there too, else a reason why not."""
    log = parse(error.output.encode())
    if driver.UNSUPPORTED_MARK in error.output:
        at = error.output.index(driver.UNSUPPORTED_MARK)
        return Reproduction(
            "unsupported", error.output[at:].splitlines()[0].removeprefix("regreen: ")
        )
    failures = log.failures or (Failure("", "setup", str(error)),)
    run = Run("exit", 1, failures, error.output, 0.0)
    if log.kind == "infra":
        return Reproduction(
            "infra", f"the setup failed for its surroundings: {_shown(failures)}", failures, (run,)
        )
    if expected is not None and expected.failures and same_failure(failures, expected):
        return Reproduction(
            "reproduced",
            f"the setup fails as it did in CI: {_shown(failures)}",
            failures,
            (run,),
            1.0,
        )
    return Reproduction(
        "not_reproduced",
        f"the setup failed before the step was reached: {_shown(failures)}",
        failures,
        (run,),
    )


def _on_base(
    trial: Trial,
    base: str,
    result: Reproduction,
    *,
    git: Git,
    sandbox: Sandbox,
    cancel: Event | None,
) -> Literal["green", "red", "red_otherwise"]:
    """How the base does: green, red in the same tests, or red in others."""
    try:
        env = prepare(trial, base, git=git, sandbox=sandbox, cancel=cancel)
    except SetupFailed:
        return "red_otherwise"
    run = run_once(trial, base, env, git=git, sandbox=sandbox, cancel=cancel)
    if not run.failed:
        return "green"
    ours = {failure.test for failure in result.failures}
    return "red" if ours <= {failure.test for failure in run.failures} else "red_otherwise"


__all__ = ["Reproduction", "Run", "Unsupported", "failed_step", "reproduce", "trial_for", "verdict"]
