"""Runs jobs of public repositories' workflows in the sandbox, as planned, at the revision given.

    python benchmarks/reproduce.py REPOSITORY WORKFLOW JOB [STEP] [--matrix KEY=VALUE]...

Prints one line: the job, its verdict (`passes` where upstream is green), the failures, the seconds.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from regreen.actions.expressions.evaluation import to_string
from regreen.actions.job_plan import JobPlan
from regreen.actions.step_trial import make_step_trial
from regreen.actions.workflow import plan_workflow
from regreen.adapters.git.repository import GitRepository
from regreen.adapters.sandbox.selection import choose_sandbox
from regreen.domain.errors import OutsideError, SetupFailed, UserError
from regreen.runs.trial import prepare_environment
from tests.reproduction import reproduce_failure


def main() -> None:
    options = arguments()
    git, sandbox = GitRepository.open(options.repository), choose_sandbox()
    rev = git.resolve("HEAD")
    text = git.show(rev, options.workflow)
    assert text is not None, options.workflow
    plans = plan_workflow(text.decode(), job=options.job, files=lambda path: git.show(rev, path))
    job = chosen(plans, dict(one.split("=", 1) for one in options.matrix), sandbox.pythons())
    started = time.monotonic()
    try:
        trial = make_step_trial(
            job, options.step, pythons=sandbox.pythons(), timeout=options.timeout
        )
        if options.prepare:
            prepare_environment(trial, rev, git=git, sandbox=sandbox)
        if options.show:
            print(trial.setup, "\n--- command\n", trial.command[-1])
        if options.prepare:
            print(f"prepared {job.name} ({time.monotonic() - started:.0f} s)")
            return
        seen = reproduce_failure(trial, rev, git=git, sandbox=sandbox, runs=1)
        said = f"{seen.verdict}: {seen.detail}"
        if options.show:
            print("\n--- output\n" + "\n".join(run.output[-6000:] for run in seen.runs))
        if seen.runs and seen.runs[0].result.exit_code == 0:
            said = "passes"
    except (UserError, OutsideError) as error:
        said = f"{type(error).__name__}: {error}"
        if isinstance(error, SetupFailed):
            print("\n--- setup\n" + error.output[-6000:])
    print(
        f"{options.repository.parent.name} {options.job} [{job.name}]: {said[:300]} ({time.monotonic() - started:.0f} s)"
    )


def chosen(plans: tuple[JobPlan, ...], wanted: dict[str, str], pythons: tuple[str, ...]) -> JobPlan:
    fitting = [
        job
        for job in plans
        if all(to_string(job.matrix.get(key)) == value for key, value in wanted.items())
        and job.supported
    ] or list(plans)
    return next((job for job in fitting if job.python in (None, "3", *pythons)), fitting[0])


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository", type=Path)
    parser.add_argument("workflow")
    parser.add_argument("job")
    parser.add_argument("step", nargs="?", type=int)
    parser.add_argument("--matrix", action="append", default=[])
    parser.add_argument("--timeout", type=float, default=420.0)
    parser.add_argument("--prepare", action="store_true", help="only what needs a network")
    parser.add_argument("--show", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
