"""A case of the recipe class as GitHub would have run it: its workflow, and the log that the run leaves behind."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

from benchmarks.recipe_cases import RecipeCase
from regreen.actions.phases import make_prefetch_script
from regreen.actions.step_trial import JOB_LIMITS
from regreen.adapters.git.repository import GitRepository
from regreen.adapters.sandbox.selection import choose_sandbox
from regreen.domain.errors import SetupFailed
from regreen.runs.test_runs import wrap_in_repository
from regreen.runs.trial import Trial, open_box

_RUNNER = "/home/runner/work/thing/thing"
_SAID = '"$HOME/.said-by-setup"'
_CUT = "--8<-- the failing step --8<--"


def ci(case: RecipeCase, repo: Path, sandbox: str) -> tuple[str, ...]:
    """The arguments that hand a case over as a failed job: writes the workflow and the log beside the repository."""
    workflow, log = repo.parent / "ci.yml", repo.parent / "job.log"
    workflow.write_text(_workflow(case))
    log.write_text(
        "".join(f"2026-05-05T10:00:00.1234567Z {line}\n" for line in _log(case, repo, sandbox))
    )
    return ("--workflow", str(workflow), "--job", "check", "--log", str(log))


def _workflow(case: RecipeCase) -> str:
    last = f"uses: {case.uses}" if case.uses else f"run: {_block(case.command)}"
    node = "npm" in case.setup
    tool = "setup-node@v4" if node else "setup-python@v5"
    asked = 'node-version: "22"' if node else f'python-version: "{case.python}"'
    setup = "" if case.uses else f"      - run: {_block(case.setup)}\n"
    folder = f"    defaults:\n      run:\n        working-directory: {case.folder}\n"
    return (
        f"on: [push]\njobs:\n  check:\n    runs-on: ubuntu-latest\n{folder if case.folder != '.' else ''}    steps:\n"
        f"      - uses: actions/checkout@v4\n      - uses: actions/{tool}\n        with:\n          {asked}\n{setup}"
        f"      - {last}\n"
    )


def _block(script: str) -> str:
    return "|\n" + textwrap.indent(script, " " * 10)


def _log(case: RecipeCase, repo: Path, sandbox: str) -> Iterator[str]:
    """The job's log, from a run of the same steps."""
    said, failed = _run(case, repo, sandbox)
    before, _, after = said.replace("/work/", f"{_RUNNER}/").partition(f"{_CUT}\n")
    if not case.uses:
        yield from _step(case.setup, before)
    if not failed:
        yield from _step(case.uses.splitlines()[0] if case.uses else case.command, after)
    yield "##[error]Process completed with exit code 1."


def _step(command: str, said: str) -> Iterator[str]:
    lines = command.splitlines()
    yield f"##[group]Run {lines[0]}"
    yield from (f"\x1b[36;1m{line}\x1b[0m" for line in lines)
    yield "shell: /usr/bin/bash -e {0}"
    yield "##[endgroup]"
    yield from said.splitlines()


def _run(case: RecipeCase, repo: Path, sandbox: str) -> tuple[str, bool]:
    """What setup and command print, and whether it is the setup that fails."""
    folder = f"cd /work/{case.folder}"
    prepared = f"{case.setup}\n{make_prefetch_script(case.command)}"  # what the command would fetch while it runs
    setup = f"{folder}\n(set -e\n{prepared}\n) >{_SAID} 2>&1 || {{ cat {_SAID}; exit 1; }}"
    command = f"cat {_SAID}; echo '{_CUT}'; {folder}\nexec 2>&1\nset -e\n{case.command}"
    python = None if "npm" in case.setup else case.python
    trial = Trial(
        wrap_in_repository(("bash", "-c", command)),
        setup=setup,
        env=(("CI", "true"), ("UV_OFFLINE", "1")),
        timeout=120,
        python=python,
        limits=JOB_LIMITS,
    )
    git = GitRepository.open(repo)
    try:
        with open_box(trial, git.resolve("HEAD"), git=git, sandbox=choose_sandbox(sandbox)) as box:
            return box.run(trial.command, timeout=trial.timeout, env=dict(trial.env)).stdout, False
    except SetupFailed as error:
        return error.output, True
