"""Makes mutants: small faults in given lines, which good tests of these lines notice."""

from __future__ import annotations

import ast
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Event
from types import MappingProxyType

from regreen.code.file_change import PatchedFile
from regreen.code.paths import is_source
from regreen.domain.job_control import StopCondition
from regreen.domain.languages import SourceEdit
from regreen.domain.ports import Git, Sandbox
from regreen.fixers.case import FixJob, InitialFailure, RepairCase
from regreen.fixers.warm_engine import WarmEngine
from regreen.gate.judge import changed_files
from regreen.languages.registry import TEST_LISTENERS, find_mutation, find_test_tools
from regreen.runs.test_runs import run_fresh
from regreen.runs.trial import Trial

# The quality of a generated test: it passes on the change, and fails for mutants of the changed lines.

_MOST_MUTANTS = 12
_RUNS_ON_HEAD = 2


@dataclass(frozen=True, slots=True)
class GeneratedTestQuality:
    """The result of measuring a generated test. `problem` says why it is dropped; None if it is good."""

    problem: str | None = None
    mutants: int = 0
    killed: int = 0


def measure_test(
    trial: Trial,
    base: str,
    head: str,
    path: str,
    code: str,
    *,
    git: Git,
    sandbox: Sandbox,
    about: str = "",
    cancel: Event | None = None,
    seconds: float = 60.0,
) -> GeneratedTestQuality:
    """Run a new test twice on `head`, then on mutants of what changed since `base`.

    `trial` says how the repository's tests are prepared; its command is not used. `about` is the one source file that
    the test is for; where it is empty, all that the change touched.
    """
    tools = find_test_tools(path)
    if tools is None:
        return GeneratedTestQuality(f"nothing here runs {path} as a test")
    laid = replace(
        trial,
        command=tools.run_file(path),
        overlay=MappingProxyType({**trial.overlay, path: code.encode()}),
        title=None,
    )
    tests: dict[str, str] = {}
    for _ in range(_RUNS_ON_HEAD):
        run = run_fresh(
            laid, head, git=git, sandbox=sandbox, listeners=TEST_LISTENERS, cancel=cancel
        )
        if not run.is_green:
            return GeneratedTestQuality(run.output[-4000:] or "the test did not pass")
        tests = {test: word for test, word in run.tests.items() if word == "passed"}
    if not tests:
        return GeneratedTestQuality("nothing in this file is a test that runs and passes")
    faults = _make_faults(changed_files(git, base, head), git, head, about)
    if not faults:
        return GeneratedTestQuality("the change holds no line in which a fault could be put")
    # the engine runs the "failing" tests first: here those are the new ones, which a fault should turn red
    case = RepairCase(
        FixJob(laid, head),
        head,
        InitialFailure(laid.command_line, 0),
        dict.fromkeys(tests, "failed"),
        git,
        sandbox,
        StopCondition(time.monotonic() + 2 * seconds, cancel),
    )
    verdicts = WarmEngine(case).try_all(
        [{where: edit.apply_to(text)} for where, text, edit in faults], seconds=seconds
    )
    alive = [fault for fault, verdict in zip(faults, verdicts, strict=False) if verdict.green]
    killed = len(verdicts) - len(alive)
    if not killed:
        return GeneratedTestQuality(_describe_unnoticed_faults(alive), len(verdicts), 0)
    return GeneratedTestQuality(None, len(verdicts), killed)


def _make_faults(
    files: Sequence[PatchedFile], git: Git, head: str, about: str
) -> list[tuple[str, str, SourceEdit]]:
    """Faults in the changed lines; in the whole functions around them where the lines themselves hold none."""
    found: list[tuple[str, str, SourceEdit]] = []
    wider: list[tuple[str, str, SourceEdit]] = []
    for file in files:
        make_mutants = find_mutation(file.path, warm=True)
        if (
            file.new is None
            or make_mutants is None
            or not is_source(file.path)
            or (about and file.path != about)
        ):
            continue
        changed = [number for number, _ in file.added_lines]
        found += [(file.path, file.new, edit) for edit in make_mutants(file.new, changed)]
        around = _lines_of_functions(file, changed)
        wider += [(file.path, file.new, edit) for edit in make_mutants(file.new, around)]
    make_mutants = find_mutation(about, warm=True)
    if make_mutants is not None and not found:
        text = (git.show(head, about) or b"").decode("utf-8", "replace")
        every = list(range(1, text.count("\n") + 2))
        wider += [(about, text, edit) for edit in make_mutants(text, every)]
    return (found or wider)[:_MOST_MUTANTS]


def _lines_of_functions(file: PatchedFile, changed: Sequence[int]) -> list[int]:
    lines: set[int] = set()
    for node in ast.walk(file.new_tree) if file.new_tree else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            span = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            if any(number in span for number in changed):
                lines.update(span)
    return sorted(lines)


def _describe_unnoticed_faults(alive: Sequence[tuple[str, str, SourceEdit]]) -> str:
    shown = [
        f"{path}:{edit.line}: {edit.apply_to(text).splitlines()[edit.line - 1].strip()[:120]}"
        for path, text, edit in alive[:5]
    ]
    return (
        "the test passes, but it passes just as well with each of these faults in the code; assert what the code does:\n"
        + "\n".join(shown)
    )
