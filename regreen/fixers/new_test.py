"""Whether a generated test is worth keeping: it passes on the change, and notices faults put into the changed lines."""

from __future__ import annotations

import ast
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Event
from types import MappingProxyType

from regreen.codebase.trial import Trial
from regreen.fixers.case import Before, Case, FixJob
from regreen.fixers.checks.change import FileChange
from regreen.fixers.checks.paths import is_source
from regreen.fixers.engine import Engine
from regreen.fixers.faults import mutants
from regreen.fixers.gate import changed_files
from regreen.fixers.runs import run_fresh
from regreen.fixers.stop import Stop
from regreen.fixers.templates import Edit
from regreen.ports import Git, Sandbox

_MOST_MUTANTS = 12
_RUNS = 2


@dataclass(frozen=True, slots=True)
class Worth:
    """What running a new test showed. `problem` says why it is not kept; None where it is."""

    problem: str | None = None
    mutants: int = 0
    killed: int = 0


def weigh(
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
) -> Worth:
    """Run a new test on `head`, twice, and on heads with a fault in what changed since `base`.

    `trial` says how the repository's tests are prepared; its command is not used. `about` is the one source file that
    the test is for; where it is empty, all that the change touched.
    """
    laid = replace(
        trial,
        command=("python", "-m", "pytest", "-q", path),
        overlay=MappingProxyType({**trial.overlay, path: code.encode()}),
        title=None,
    )
    tests: dict[str, str] = {}
    for _ in range(_RUNS):
        seen = run_fresh(laid, head, git=git, sandbox=sandbox, listen=True, cancel=cancel)
        if not seen.green:
            return Worth(seen.output[-4000:] or "the test did not pass")
        tests = {test: word for test, word in seen.tests.items() if word == "passed"}
    if not tests:
        return Worth("nothing in this file is a test that runs and passes")
    faults = _faults(changed_files(git, base, head), git, head, about)
    if not faults:
        return Worth("the change holds no line of Python in which a fault could be put")
    case = _case(laid, head, tests, git=git, sandbox=sandbox, cancel=cancel, seconds=seconds)
    verdicts = Engine(case).try_all(
        [{where: edit.on(text)} for where, text, edit in faults], seconds=seconds
    )
    alive = [fault for fault, verdict in zip(faults, verdicts, strict=False) if verdict.green]
    killed = len(verdicts) - len(alive)
    if not killed:
        return Worth(_unmoved(alive), len(verdicts), 0)
    return Worth(None, len(verdicts), killed)


def _faults(
    files: Sequence[FileChange], git: Git, head: str, about: str
) -> list[tuple[str, str, Edit]]:
    """Faults in the changed lines; in the whole functions around them where the lines themselves hold none."""
    found: list[tuple[str, str, Edit]] = []
    wider: list[tuple[str, str, Edit]] = []
    for file in files:
        if (
            file.new is None
            or not file.is_python
            or not is_source(file.path)
            or (about and file.path != about)
        ):
            continue
        changed = [number for number, _ in file.added]
        found += [(file.path, file.new, edit) for edit in mutants(file.new, changed, _MOST_MUTANTS)]
        around = _around(file, changed)
        wider += [(file.path, file.new, edit) for edit in mutants(file.new, around, _MOST_MUTANTS)]
    if about and not found:
        text = (git.show(head, about) or b"").decode("utf-8", "replace")
        every = list(range(1, text.count("\n") + 2))
        wider += [(about, text, edit) for edit in mutants(text, every, _MOST_MUTANTS)]
    return (found or wider)[:_MOST_MUTANTS]


def _around(file: FileChange, changed: Sequence[int]) -> list[int]:
    lines: set[int] = set()
    for node in ast.walk(file.new_tree) if file.new_tree else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            span = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            if any(number in span for number in changed):
                lines.update(span)
    return sorted(lines)


def _case(
    trial: Trial,
    head: str,
    tests: dict[str, str],
    *,
    git: Git,
    sandbox: Sandbox,
    cancel: Event | None,
    seconds: float,
) -> Case:
    """The engine asks the "failing" tests first: here those are the new ones, which a fault should turn red."""
    asked = dict.fromkeys(tests, "failed")
    stop = Stop(time.monotonic() + 2 * seconds, cancel)
    return Case(
        FixJob(trial, head), head, None, Before(trial.shown, 0), "", asked, git, sandbox, None, stop, lambda _: None
    )  # fmt: skip


def _unmoved(alive: Sequence[tuple[str, str, Edit]]) -> str:
    shown = [
        f"{path}:{edit.line}: {edit.on(text).splitlines()[edit.line - 1].strip()[:120]}"
        for path, text, edit in alive[:5]
    ]
    return (
        "the test passes, but it passes just as well with each of these faults in the code; assert what the code does:\n"
        + "\n".join(shown)
    )
