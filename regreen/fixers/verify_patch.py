"""The experiment behind every verdict: a patch applied to clean commits, run in fresh boxes, tests restored."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from regreen.codebase.diff import parse
from regreen.codebase.trial import Trial
from regreen.errors import SetupFailed, UserError
from regreen.fixers.case import After, Case
from regreen.fixers.checks.change import FileChange, Reason, parse_python
from regreen.fixers.checks.paths import is_source, is_test, is_test_config
from regreen.fixers.engine import Engine
from regreen.fixers.gate import GateReport, Proof, Rules, changed_files, gate
from regreen.fixers.runs import Seen, fallen, in_words, run_fresh, uses_pytest
from regreen.models import Failure
from regreen.ports import Git


@dataclass(frozen=True)
class Applied:
    """A patch as a commit, with what it changed; `commit` is None where it does not apply."""

    commit: str | None
    files: tuple[FileChange, ...] = ()
    trouble: str = ""


@dataclass(frozen=True)
class Verified:
    """How a patch fared."""

    applied: Applied
    report: GateReport
    after: After | None = None
    seen: Seen | None = None


def apply(git: Git, rev: str, patch: str) -> Applied:
    """Apply a patch to `rev` among git's objects; no work tree is touched."""
    try:
        commit = git.apply(rev, patch, "regreen: candidate")
    except UserError as error:
        return Applied(None, trouble=str(error))
    if commit is None:
        broken = next((one for one in parse(patch).files if one.problem), None)
        why = f": {broken.path}: {broken.problem}" if broken else ""
        return Applied(None, trouble=f"the patch does not apply to this commit{why}")
    return Applied(commit, changed_files(git, rev, commit))


def verify(case: Case, patch: str, rung: str, *, approval: str | None = None) -> Verified:
    """Judge the patch by looking, and if it may stand, by running it."""
    applied = apply(case.git, case.rev, patch)
    if applied.commit is None:
        return Verified(applied, GateReport("deny", (Reason("applies", applied.trouble, "deny"),)))
    rules = Rules(
        rung=rung,
        protected=case.job.protected_paths,
        max_changed_lines=case.job.max_changed_lines,
        given_tests=case.job.given_tests,
        attempts_before=case.job.attempts_before,
        approval=approval,
    )
    silent = _judge(case, applied, rules, Proof(0, 0))
    if silent.verdict == "deny":
        return Verified(applied, silent)
    if rung == "recipe" and case.suite is not None and not case.suite.is_configured:
        case = replace(case, suite=None)  # a tool's own work, and no tests but those that we found
    proof, after, seen = prove(case, applied, restore=rung not in {"revert", "recipe"})
    return Verified(applied, _judge(case, applied, rules, proof), after, seen)


def _judge(case: Case, applied: Applied, rules: Rules, proof: Proof) -> GateReport:
    return gate(
        applied.files,
        tree=[entry.path for entry in case.git.tree(case.rev)],
        failures=case.before.failures,
        tests=failing_sources(case.git, case.rev, case.trial, case.before.failures),
        change=changed_files(case.git, case.base, case.rev)
        if case.base and rules.rung == "model"
        else (),
        rules=rules,
        proof=proof,
    )


def prove(
    case: Case, applied: Applied, *, restore: bool = True
) -> tuple[Proof, After, Seen | None]:
    """Run the failed command in fresh boxes, then compare how every test ended with how it ended before.

    Where the command runs few of the project's tests or none, the others are held against the patch last.
    """
    assert applied.commit is not None  # noqa: S101 - callers have looked
    trial = restored(case.git, case.rev, case.trial, applied.files) if restore else case.trial
    touched = (one.path for one in applied.files if is_test(one.path))
    taken_back = frozenset() if restore else frozenset(touched)
    runs = case.job.reruns
    green = 0
    seen: Seen | None = None
    red: list[str] = []
    slowest = 0.0
    try:
        for _ in range(runs):
            case.stop.check()
            seen = run_fresh(
                trial, applied.commit, git=case.git, sandbox=case.sandbox, cancel=case.stop.cancel
            )
            slowest = max(slowest, seen.result.seconds)
            if not seen.green:
                red = _still_red(case.before.failures, seen)
                break
            green += 1
        if not red and case.passing:
            red = _broken(case, trial, applied.commit, taken_back)
    except SetupFailed as error:
        red = [f"the setup fails with the patch: {error}"]
    idle = () if red or not restore else _idle_tests(case, applied)
    untested = None if red or not restore else _untested(case, applied)
    held = None
    if case.suite is not None and not red:
        held = case.suite.hold(applied.commit, trial.overlay, taken_back)
    after = After(
        seen.result.exit_code if seen else None,
        green,
        seen.failures if seen and not seen.green else (),
        kept=0 if red else _passed(case),
    )
    proof = Proof(runs, green, tuple(red), untested=untested, idle_tests=idle, suite=held)
    return proof, after, seen


def _passed(case: Case) -> int:
    return sum(word == "passed" and test not in case.flaky for test, word in case.passing.items())


@dataclass(frozen=True)
class Look:
    """One run of the failing command over a candidate, for its author to learn from."""

    green: bool
    failing: frozenset[str]
    words: str


def quick_look(case: Case, patch: str) -> Look:
    """Apply and run once in a fresh box with the original tests: no verdict, only what would be seen."""
    applied = apply(case.git, case.rev, patch)
    if applied.commit is None:
        return Look(False, frozenset(), applied.trouble)
    trial = restored(case.git, case.rev, case.trial, applied.files)
    try:
        seen = run_fresh(
            trial, applied.commit, git=case.git, sandbox=case.sandbox, cancel=case.stop.cancel
        )
    except SetupFailed as error:
        return Look(False, frozenset(), f"the setup fails with the patch: {error}")
    if seen.green:
        return Look(True, frozenset(), "green: the failing command exits 0")
    lines = _still_red(case.before.failures, seen)
    return Look(False, seen.failing, "\n".join([*lines, "", seen.output[-4000:]]))


def _still_red(before: Sequence[Failure], seen: Seen) -> list[str]:
    if seen.result.ended != "exit":
        return [
            f"the command did not end by itself: {seen.result.ended} {seen.result.detail}".strip()
        ]
    known = {failure.test for failure in before}
    fresh = [failure for failure in seen.failures if failure.test not in known]
    still = [failure for failure in seen.failures if failure.test in known]
    lines = [f"newly failing: {failure.test}: {failure.message[:160]}" for failure in fresh[:5]]
    lines += [f"still failing: {failure.test}: {failure.message[:160]}" for failure in still[:5]]
    return lines or [f"the command still exits with {seen.result.exit_code}"]


def _broken(case: Case, trial: Trial, commit: str, given_up: frozenset[str]) -> list[str]:
    """Tests that passed before and do not pass now, twice: failing, skipped or gone, flaky ones left out."""
    wide = replace(case.wide, overlay=trial.overlay) if case.wide is not None else trial
    if not uses_pytest(wide):
        wide = trial
    broken: dict[str, str] = {}
    for first in (True, False):
        seen = run_fresh(
            wide, commit, git=case.git, sandbox=case.sandbox, listen=True, cancel=case.stop.cancel
        )
        if first and not seen.tests:
            return [] if seen.green else ["the whole suite could not be run with the patch"]
        now = fallen(case.passing, seen.tests, flaky=case.flaky, given_up=given_up)
        broken = {test: word for test, word in now.items() if first or test in broken}
        if (
            not broken
        ):  # what fell once and stands again says more of a busy machine than of the patch
            break
    return in_words(broken)


def restored(git: Git, rev: str, trial: Trial, files: Sequence[FileChange]) -> Trial:
    """The trial with every existing test that a patch touched laid back as it was."""
    back: dict[str, bytes] = {}
    for file in files:
        if file.old is not None and (is_test(file.path) or is_test_config(file.path)):
            was = git.show(rev, file.path)
            if was is not None and not _only_gains(file):
                back[file.path] = was
    return replace(trial, overlay=MappingProxyType({**back, **trial.overlay})) if back else trial


def _only_gains(file: FileChange) -> bool:
    """A test file that only gains lines runs as patched: its new tests are part of the claim."""
    return file.new is not None and not any(line.strip() for _, line in file.removed)


def _idle_tests(case: Case, applied: Applied) -> tuple[str, ...]:
    """New tests of the patch that pass without the rest of it: they show nothing."""
    brought = {
        file.path: file.new.encode()
        for file in applied.files
        if is_test(file.path) and file.new is not None
    }
    if not brought or not uses_pytest(case.trial, case.output):
        return ()
    wide = case.wide or case.trial
    laid = replace(wide, overlay=MappingProxyType({**wide.overlay, **brought}))
    seen = run_fresh(
        laid, case.rev, git=case.git, sandbox=case.sandbox, listen=True, cancel=case.stop.cancel
    )
    return tuple(
        test for test, word in seen.tests.items() if word == "passed" and test not in case.passing
    )


def _untested(case: Case, applied: Applied) -> tuple[str, ...] | None:
    """Changed lines that no formerly failing test runs; None where nothing can be traced."""
    engine = Engine(replace(case, rev=applied.commit or case.rev))
    if not engine.is_warm:
        return None
    run: dict[str, set[int]] = {}
    for _, lines in engine.spectrum(most=0):
        for path, numbers in lines.items():
            run.setdefault(path, set()).update(numbers)
    if not run:
        return None
    missed: list[str] = []
    for file in applied.files:
        if file.is_python and is_source(file.path) and file.new_tree is not None:
            starts = {node.lineno for node in ast.walk(file.new_tree) if isinstance(node, ast.stmt)}
            numbers = [number for number, _ in file.added if number in starts]
            missed += [
                f"{file.path}:{number}"
                for number in numbers
                if number not in run.get(file.path, set())
            ]
    return tuple(missed)


_NODE = re.compile(r"^(?P<path>[^:\n]+?\.py)::(?P<names>[^\[\n]+)")


def failing_sources(git: Git, rev: str, trial: Trial, failures: Sequence[Failure]) -> list[str]:
    """The sources of the failing tests: the function, where it can be found, with the module's tables that it names."""
    found: list[str] = []
    shown: set[str] = set()
    for failure in failures[:20]:
        node = _NODE.match(failure.test)
        path = (
            node.group("path")
            if node
            else failure.path
            if failure.path and is_test(failure.path)
            else None
        )
        if path is None:
            continue
        data = trial.overlay.get(path) or git.show(rev, path)
        text = data.decode("utf-8", "replace") if data else ""
        name = node.group("names").split("::")[-1].strip() if node else ""
        source = function_source(text, name)
        if source:
            shown.add(path)
            source = "\n\n".join([source, *_tables(text, source)])
        found.append(source or ("" if len(text) > 20_000 else text))
    named = [path for path in trial.overlay if path in trial.shown and path not in shown]
    found += [trial.overlay[path].decode("utf-8", "replace")[:20_000] for path in named]
    return [text for text in dict.fromkeys(found) if text]


def _tables(text: str, source: str) -> list[str]:
    """The module-level values that a test takes its cases from."""
    named = {
        node.id
        for node in ast.walk(parse_python(source) or ast.Module([], []))
        if isinstance(node, ast.Name)
    }
    tree = parse_python(text)
    return [
        ast.unparse(node)[:20_000]
        for node in (tree.body if tree else ())
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id in named for target in node.targets)
    ]


def function_source(text: str, name: str) -> str:
    """One function of a module with its decorators, as text; empty where it is not there."""
    tree = parse_python(text)
    lines = text.splitlines()
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            start = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            body = "\n".join(lines[start - 1 : node.end_lineno])
            indent = len(body) - len(body.lstrip(" "))
            return "\n".join(line[indent:] for line in body.splitlines())
    return ""
