"""Verifies a patch: applied to a clean commit, run in fresh boxes with the tests restored."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Event
from types import MappingProxyType

from regreen.code.diff import parse
from regreen.code.file_change import CheckReason, PatchedFile, is_layout_only
from regreen.code.hunks import apply_pieces, split_into_pieces
from regreen.code.paths import is_document, is_source, is_test, is_test_config
from regreen.code.python_calls import is_module, parse_python
from regreen.domain.errors import AnalysisFailed, SetupFailed, UserError
from regreen.domain.models import Failure
from regreen.domain.ports import Git
from regreen.fixers.case import PatchedRuns, Proposal, RepairCase
from regreen.fixers.minimization import minimize_patch
from regreen.fixers.warm_engine import WarmEngine
from regreen.gate.judge import (
    TOO_SLOW,
    GateReport,
    GateRules,
    PatchProof,
    changed_files,
    judge_files,
)
from regreen.gate.publishing import TAKES_BACK, PatchFacts, find_fix_claim, find_losses
from regreen.isolation import ChildLimits, run_in_child
from regreen.languages.registry import names_each_test, runs_all, split_test_name
from regreen.runs.test_runs import CommandRun, describe_regressions, find_regressed_tests
from regreen.runs.trial import Trial

_GATE_LIMITS = ChildLimits(cpu=30, seconds=300, memory=1024)


@dataclass(frozen=True)
class AppliedPatch:
    """A patch as a commit, with what it changed; `commit` is None where it does not apply."""

    commit: str | None
    files: tuple[PatchedFile, ...] = ()
    trouble: str = ""


@dataclass(frozen=True)
class FailureContext:
    """What a patch is judged against: the failures at a revision; `base` is set if the change under repair is known."""

    git: Git
    rev: str
    trial: Trial
    failures: tuple[Failure, ...]
    base: str | None = None


@dataclass(frozen=True)
class PatchVerification:
    """The result of verifying a patch."""

    applied: AppliedPatch
    report: GateReport
    after: PatchedRuns | None = None
    smaller: str = ""


@dataclass(frozen=True)
class PatchEvidence:
    """What the runs of a patch showed; `smaller` is the patch without unneeded hunks, if it has any."""

    proof: PatchProof
    after: PatchedRuns
    smaller: str = ""


def apply_patch(git: Git, rev: str, patch: str) -> AppliedPatch:
    """Apply a patch to `rev` among git's objects; no work tree is touched."""
    try:
        commit = git.apply(rev, patch, "regreen: candidate")
    except UserError as error:
        return AppliedPatch(None, trouble=str(error))
    if commit is None:
        return AppliedPatch(
            None, trouble=f"the patch does not apply to this commit{_describe_patch_error(patch)}"
        )
    return AppliedPatch(commit, changed_files(git, rev, commit))


def _describe_patch_error(patch: str) -> str:
    try:
        broken = next((file for file in run_in_child(parse, patch).files if file.problem), None)
    except AnalysisFailed as error:
        return f": it could not be read: {error}"
    return f": {broken.path}: {broken.problem}" if broken else ""


def verify_proposal(case: RepairCase, proposal: Proposal) -> PatchVerification:
    """Judge the patch statically, and if it is not denied, by running it."""
    applied = apply_patch(case.git, case.rev, proposal.patch)
    if applied.commit is None:
        return PatchVerification(
            applied, GateReport("deny", (CheckReason("applies", applied.trouble, "deny"),))
        )
    rules = GateRules(
        rung=proposal.rung,
        protected=case.job.protected_paths,
        max_changed_lines=case.job.max_changed_lines,
        given_tests=case.job.given_tests,
        attempts_before=case.job.attempts_before,
        approval=proposal.approval,
    )
    silent = _judge_applied(case, applied, rules, PatchProof(0, 0))
    if silent.verdict == "deny":
        return PatchVerification(applied, silent)
    proven = run_patch(case, applied, proposal)
    report = _judge_applied(case, applied, rules, proven.proof)
    facts = proven.proof.facts
    if report.verdict == "allow" and facts is not None and facts.rung in TAKES_BACK:
        # this run at the culprit's parent is needed only if no other reason asks for a person
        start, _, _ = _find_reverted_range(case, proposal)
        passed = bool(start) and _passed_at_revision(case, start)
        proof = replace(proven.proof, facts=replace(facts, passed_before=passed))
        report = _judge_applied(case, applied, rules, proof)
    return PatchVerification(applied, report, proven.after, proven.smaller)


def _judge_applied(
    case: RepairCase, applied: AppliedPatch, rules: GateRules, proof: PatchProof
) -> GateReport:
    subject = FailureContext(case.git, case.rev, case.trial, case.before.failures, case.base)
    return judge_change(subject, applied.files, rules, proof, case.stop.cancel)


def judge_change(
    subject: FailureContext,
    files: Sequence[PatchedFile],
    rules: GateRules,
    proof: PatchProof | None,
    cancel: Event | None = None,
) -> GateReport:
    """Judge a patch in a child process; see `gate`. A patch that cannot be judged within the limits is denied."""
    # a MappingProxyType cannot be pickled
    trial = replace(subject.trial, overlay=dict(subject.trial.overlay))
    subject = replace(subject, trial=trial)
    try:
        return run_in_child(
            _run_gate, subject, files, rules, proof, limits=_GATE_LIMITS, cancel=cancel
        )
    except AnalysisFailed as error:
        return GateReport(
            "deny", (CheckReason("judged", f"it could not be judged: {error}", "deny"),)
        )


def _run_gate(
    subject: FailureContext,
    files: Sequence[PatchedFile],
    rules: GateRules,
    proof: PatchProof | None,
) -> GateReport:
    git, rev, base = subject.git, subject.rev, subject.base
    return judge_files(
        files,
        tree=[entry.path for entry in git.tree(rev)],
        failures=subject.failures,
        tests=find_failing_sources(git, rev, subject.trial, subject.failures),
        change=changed_files(git, base, rev) if base and rules.rung == "model" else (),
        rules=rules,
        proof=proof,
    )


def run_patch(case: RepairCase, applied: AppliedPatch, proposal: Proposal | None) -> PatchEvidence:
    """Run the failed command in fresh boxes, then compare how every test ended with how it ended before.

    Where the command runs few of the project's tests or none, the others are held against the patch last.
    Nothing is proposed where the patch is somebody's own.
    """
    assert applied.commit is not None  # noqa: S101 - callers have looked
    rung = proposal.rung if proposal else None
    restore = rung not in {"revert", "recipe"}
    trial = restore_tests(case.git, case.rev, case.trial, applied.files) if restore else case.trial
    touched = (file.path for file in applied.files if is_test(file.path))
    taken_back = frozenset() if restore else frozenset(touched)
    runs = case.job.reruns
    green = 0
    run: CommandRun | None = None
    red: list[str] = []
    slower = 0.0
    try:
        for number in range(1, runs + 1):
            case.stop.check_cancelled()
            live = case.job.live if number == runs else None
            run = case.run_fresh(trial, applied.commit, sandbox=live)
            if not run.is_green:
                red = _describe_still_failing(case.before.failures, run)
                break
            green += 1
        if not red and case.passing:
            red, slower = _find_broken_tests(case, trial, applied.commit, taken_back)
    except SetupFailed as error:
        red = [f"the setup fails with the patch: {error}"]
    idle = () if red or not restore else _find_idle_tests(case, applied)
    untested = None if red or not restore else _find_untested_lines(case, applied)
    smaller, unneeded = "", tuple[str, ...]()
    if not red and rung not in {*TAKES_BACK, "recipe"}:
        smaller, unneeded = minimize_patch(applied.files, WarmEngine(case))
    facts = None if red else _collect_facts(case, applied, proposal)
    held = None
    if case.suite is not None and not red and not (facts and facts.is_layout):
        case.say("comparing the project's own tests without and with the patch")
        held = case.suite.compare_patch(applied.commit, trial.overlay, taken_back)
    if facts and held:
        facts = replace(facts, alone=held.why, is_whole=not held.why and not held.is_part)
    is_watched = proposal is not None and (proposal.completes or rung == "revert")
    if facts and is_watched and not (held and held.broken):
        facts = replace(facts, unnoticed=_find_unnoticed_pieces(case, applied))
    after = PatchedRuns(
        run.result.exit_code if run else None,
        green,
        run.failures if run and not run.is_green else (),
        kept=0 if red else _count_passing(case),
    )
    proof = PatchProof(runs, green, tuple(red), slower, unneeded, untested, idle, held, facts)
    return PatchEvidence(proof, after, smaller)


def _collect_facts(
    case: RepairCase, applied: AppliedPatch, proposal: Proposal | None
) -> PatchFacts:
    """The facts that decide about publishing, without the suite's result."""
    names = sorted(test for test, word in case.passing.items() if word in {"passed", "failed"})
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    tests = (
        f"{len(names)} tests: {', '.join(names[:5])}{more}" if names else "no test is known in it"
    )
    # nothing ran before the patch, and the command runs only some tests: the rest is unknown
    blind = case.setup_failed and not runs_all(case.trial, {})
    takes_back = proposal is not None and proposal.rung in TAKES_BACK
    start, end, shas = (
        _find_reverted_range(case, proposal) if proposal and takes_back else ("", "", ())
    )
    failure_text = (
        "\n".join(failure.message for failure in case.before.failures) if takes_back else None
    )
    try:
        is_layout, lost = run_in_child(
            _find_layout_and_losses,
            case.git,
            applied.commit or case.rev,
            applied.files,
            (start, end),
            failure_text,
            limits=_GATE_LIMITS,
            cancel=case.stop.cancel,
        )
    except AnalysisFailed as error:
        is_layout, lost = False, (f"what could not be read: {error}",)
    facts = PatchFacts(
        rung=proposal.rung if proposal else None,
        ran=f"{case.trial.command_line} ({tests})",
        alone="nothing could be run before the patch" if blind else "",
        is_whole=not blind,
        is_layout=proposal is not None and proposal.rung == "recipe" and is_layout,
    )
    if not takes_back:
        return facts
    check, why = case.check
    mended = next(filter(None, (find_fix_claim(case.git.message(sha)) for sha in shas)), "")
    return replace(facts, check=check, why_unclear=why, lost=lost, mended=mended)


def _find_layout_and_losses(
    git: Git,
    rev: str,
    files: Sequence[PatchedFile],
    span: tuple[str, str],
    failure_text: str | None,
) -> tuple[bool, tuple[str, ...]]:
    """Whether the patch changes no behaviour, and what is lost if it reverts a range; `failure_text` is what failed then."""
    is_layout = all(map(_is_inert_text, files))
    if failure_text is None:
        return is_layout, ()
    came_with = changed_files(git, *span) if span[0] else ()
    return is_layout, find_losses(
        files, came_with, *_read_words_outside_patch(git, rev, files), failure_text
    )


def _is_inert_text(file: PatchedFile) -> bool:
    """Whether the change of this file changes no behaviour."""
    return is_document(file.path) or is_layout_only(file)


def _find_reverted_range(case: RepairCase, proposal: Proposal) -> tuple[str, str, tuple[str, ...]]:
    """Start, end and commits of the range that is reverted; empty if the start is unknown."""
    if proposal.culprit is not None:
        sha = proposal.culprit.sha
        return next(iter(case.git.commit(sha).parents), ""), sha, (sha,)
    start = case.base or ""
    commits = case.git.commits(start, case.rev) if start else []
    return start, case.rev, tuple(commit.sha for commit in commits)


def _read_words_outside_patch(
    git: Git, rev: str, files: Sequence[PatchedFile]
) -> tuple[frozenset[str], dict[str, str]]:
    """The words of the sources that the patch does not touch, and all documents."""
    mine = {file.path for file in files}
    endings = tuple(file.suffix for file in files if file.suffix)
    tree = git.tree(rev)
    read = [
        entry
        for entry in tree
        if is_document(entry.path)
        or ((is_module(entry.path) or entry.path.endswith(endings)) and entry.path not in mine)
    ]
    texts = git.blobs([entry.sha for entry in read])
    words: set[str] = set()
    documents: dict[str, str] = {}
    for entry, data in zip(read, texts, strict=True):
        text = data.decode("utf-8", "replace") if data else ""
        if is_document(entry.path):
            documents[entry.path] = text
        else:
            words.update(re.findall(r"\w+", text))
    return frozenset(words), documents


def _passed_at_revision(case: RepairCase, rev: str) -> bool:
    """Whether each failing test passed at an earlier commit; for a module that fails to load, any of its tests."""
    try:
        run = case.run_fresh(case.trial, rev, listen=True)
    except SetupFailed:
        return False
    passed = {test for test, word in run.tests.items() if word == "passed"}
    passed |= {test.partition("::")[0] for test in passed}
    failing = case.red.failing if case.red else frozenset[str]()
    return bool(failing) and failing <= passed


def _count_passing(case: RepairCase) -> int:
    return sum(word == "passed" and test not in case.flaky for test, word in case.passing.items())


@dataclass(frozen=True)
class CandidateRun:
    """One run of the failing command with a candidate, as feedback for its author."""

    green: bool
    failing: frozenset[str]
    words: str


def run_candidate(case: RepairCase, patch: str) -> CandidateRun:
    """Apply the patch and run once in a fresh box with the original tests; no verdict."""
    applied = apply_patch(case.git, case.rev, patch)
    if applied.commit is None:
        return CandidateRun(False, frozenset(), applied.trouble)
    trial = restore_tests(case.git, case.rev, case.trial, applied.files)
    try:
        run = case.run_fresh(trial, applied.commit)
    except SetupFailed as error:
        return CandidateRun(False, frozenset(), f"the setup fails with the patch: {error}")
    if run.is_green:
        return CandidateRun(True, frozenset(), "green: the failing command exits 0")
    lines = _describe_still_failing(case.before.failures, run)
    return CandidateRun(False, run.failing, "\n".join([*lines, "", run.output[-4000:]]))


def _describe_still_failing(before: Sequence[Failure], run: CommandRun) -> list[str]:
    if run.result.ended != "exit":
        return [
            f"the command did not end by itself: {run.result.ended} {run.result.detail}".strip()
        ]
    known = {failure.test for failure in before}
    fresh = [failure for failure in run.failures if failure.test not in known]
    still = [failure for failure in run.failures if failure.test in known]
    lines = [f"newly failing: {failure.test}: {failure.message[:160]}" for failure in fresh[:5]]
    lines += [f"still failing: {failure.test}: {failure.message[:160]}" for failure in still[:5]]
    return lines or [f"the command still exits with {run.result.exit_code}"]


def _find_broken_tests(
    case: RepairCase, trial: Trial, commit: str, given_up: frozenset[str]
) -> tuple[list[str], float]:
    """Tests that passed before and do not pass now, twice: failing, skipped or gone, flaky ones left out.

    And how many times as long the tests take that ran before as well, where that is so twice.
    """
    wide = replace(case.wide, overlay=trial.overlay) if case.wide is not None else trial
    if not names_each_test(wide):
        wide = trial
    broken: dict[str, str] = {}
    slower = math.inf
    for first in (True, False):
        run = case.run_fresh(wide, commit, listen=True)
        if first and not run.tests:
            return [] if run.is_green else ["the whole suite could not be run with the patch"], 0.0
        slower = min(slower, _slowdown_factor(case.red, run))
        now = find_regressed_tests(case.passing, run.tests, flaky=case.flaky, given_up=given_up)
        broken = {test: word for test, word in now.items() if first or test in broken}
        if not broken and slower <= TOO_SLOW:
            break  # a test that failed once only says more about a busy machine than about the patch
    return describe_regressions(broken), slower


def _slowdown_factor(before: CommandRun | None, after: CommandRun) -> float:
    """How many times as long the tests of both runs take; less than a second more is nothing."""
    both = before.took.keys() & after.took.keys() if before else ()
    was, now = (sum(run.took[test] for test in both) for run in (before or after, after))
    return now / max(was, 0.5) if now - was > 1 else 1.0


def restore_tests(git: Git, rev: str, trial: Trial, files: Sequence[PatchedFile]) -> Trial:
    """The trial with the tests and test settings that a patch changed as they were; what only gains lines stays patched."""
    back: dict[str, bytes] = {}
    for file in files:
        if file.old is not None and (is_test(file.path) or is_test_config(file.path)):
            was = git.show(rev, file.path)
            if was is not None and not _only_adds_lines(file):
                back[file.path] = was
    return replace(trial, overlay=MappingProxyType({**back, **trial.overlay})) if back else trial


def _only_adds_lines(file: PatchedFile) -> bool:
    """Whether a test file only gains lines; then it runs as patched."""
    return file.new is not None and not any(line.strip() for _, line in file.removed_lines)


def _find_idle_tests(case: RepairCase, applied: AppliedPatch) -> tuple[str, ...]:
    """New tests of the patch that pass without the rest of the patch."""
    brought = {
        file.path: file.new.encode()
        for file in applied.files
        if is_test(file.path) and file.new is not None
    }
    if not brought or not names_each_test(case.trial, case.output):
        return ()
    wide = case.wide or case.trial
    laid = replace(wide, overlay=MappingProxyType({**wide.overlay, **brought}))
    run = case.run_fresh(laid, case.rev, listen=True)
    return tuple(
        test for test, word in run.tests.items() if word == "passed" and test not in case.passing
    )


def _find_untested_lines(case: RepairCase, applied: AppliedPatch) -> tuple[str, ...] | None:
    """Changed lines that no formerly failing test runs; None where nothing can be traced."""
    engine = WarmEngine(replace(case, rev=applied.commit or case.rev))
    if not engine.is_warm:
        return None
    run: dict[str, set[int]] = {}
    for _, lines in engine.trace_tests(most=0):
        for path, numbers in lines.items():
            run.setdefault(path, set()).update(numbers)
    if not run:
        return None
    missed: list[str] = []
    for file in applied.files:
        if file.has_syntax_tree and is_source(file.path) and file.new_tree is not None:
            starts = {node.lineno for node in ast.walk(file.new_tree) if isinstance(node, ast.stmt)}
            numbers = [number for number, _ in file.added_lines if number in starts]
            missed += [
                f"{file.path}:{number}"
                for number in numbers
                if number not in run.get(file.path, set())
            ]
    return tuple(missed)


def _find_unnoticed_pieces(case: RepairCase, applied: AppliedPatch) -> tuple[str, ...]:
    """The places of the patch that can be undone, each alone, while every test stays green."""
    code = [file for file in applied.files if file.has_syntax_tree and file.old is not None]
    now = {file.path: file.new or "" for file in code}
    then = {file.path: file.old or "" for file in code}
    pieces = split_into_pieces(now, then)
    engine = WarmEngine(replace(case, rev=applied.commit or case.rev))
    undone = [{**now, **apply_pieces(now, then, [piece])} for piece in pieces]
    noticed = [not verdict.green for verdict in engine.try_all(undone, seconds=60)]
    noticed += [False] * (len(pieces) - len(noticed))  # not tried in time
    both = zip(pieces, noticed, strict=True)
    return tuple(f"{piece.path}:{piece.i1 + 1}" for piece, is_noticed in both if not is_noticed)


def find_failing_sources(
    git: Git, rev: str, trial: Trial, failures: Sequence[Failure]
) -> list[str]:
    """The sources of the failing tests: the function if it is found, with the module's case tables that it names."""
    found: list[str] = []
    shown: set[str] = set()
    for failure in failures[:20]:
        path, name = split_test_name(failure.test)
        path = path or (failure.path if failure.path and is_test(failure.path) else "") or ""
        if not path:
            continue
        data = trial.overlay.get(path) or git.show(rev, path)
        text = data.decode("utf-8", "replace") if data else ""
        source = find_function_source(text, name)
        if source:
            shown.add(path)
            source = "\n\n".join([source, *_find_case_tables(text, source)])
        found.append(source or ("" if len(text) > 20_000 else text))
    named = [path for path in trial.overlay if path in trial.command_line and path not in shown]
    found += [trial.overlay[path].decode("utf-8", "replace")[:20_000] for path in named]
    return [text for text in dict.fromkeys(found) if text]


def _find_case_tables(text: str, source: str) -> list[str]:
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


def find_function_source(text: str, name: str) -> str:
    """One function of a module with its decorators, as text; empty where it is not there."""
    tree = parse_python(text)
    lines = text.splitlines()
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            start = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            body = "\n".join(lines[start - 1 : node.end_lineno])
            indent = len(body) - len(body.lstrip(" "))
            return "\n".join(line[indent:] for line in body.splitlines())
    return ""
