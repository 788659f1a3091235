"""The gate: fourteen checks that a patch has to pass, each a function of values.

Ten read the patch alone. Those that run code are made in `verify_patch` and passed in as a `PatchProof`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from regreen.code.file_change import CheckReason, PatchedFile
from regreen.code.paths import is_source
from regreen.domain.models import Failure
from regreen.domain.ports import Git
from regreen.gate.checks.lint import check_lint
from regreen.gate.checks.overfitting import check_overfitting
from regreen.gate.checks.removed_behaviour import check_refusals, check_removed_behaviour
from regreen.gate.checks.safeguards import check_declarations, check_safeguards
from regreen.gate.checks.shadowing import check_hidden_text, check_shadowing
from regreen.gate.checks.silenced_errors import check_fallbacks, check_silenced_errors
from regreen.gate.checks.tests_kept import check_assertions, check_existing_tests
from regreen.gate.checks.touched_files import (
    check_dependencies,
    check_reach,
    check_size,
    find_sensitive_files,
    find_unappliable_files,
)
from regreen.gate.publishing import TAKES_BACK, PatchFacts, find_reasons_to_wait
from regreen.secrets.markdown_sanitizer import count_noun

GateVerdict = Literal["allow", "needs_human", "deny"]
PROTECTED_PATHS: tuple[str, ...] = (".github/**",)
MAX_CHANGED_LINES = 40
ATTEMPTS_A_HEAD = 3
TOO_SLOW = 2.0
RUNNING_CHECKS = ("verified", "necessary", "evidence")


@dataclass(frozen=True, slots=True)
class GateReport:
    """The verdict on a patch, with every reason that a check gave."""

    verdict: GateVerdict
    reasons: tuple[CheckReason, ...] = ()


@dataclass(frozen=True, slots=True)
class SuiteComparison:
    """The results of the project's own tests with a patch, beside the failing command.

    `kept` of them passed before and pass still; `broken` says, one line each, what no longer does; `why` says why
    they could not be asked. `is_part`: some of them did not run.
    """

    command: str
    kept: int = 0
    broken: tuple[str, ...] = ()
    why: str = ""
    is_part: bool = False


@dataclass(frozen=True, slots=True)
class PatchProof:
    """The results of running the patch; None for a field that was not tried.

    `red` says, one line each, what was still or newly failing. `slower` is how many times as long it takes.
    `unneeded` names hunks without which everything stays green. `untested` are changed lines that no failing test
    runs. `idle_tests` are new tests that pass without the patch. `suite` is None where the failing command runs all
    tests by itself. `facts` decide whether it may be published.
    """

    runs: int
    green: int
    red: tuple[str, ...] = ()
    slower: float = 0.0
    unneeded: tuple[str, ...] = ()
    untested: tuple[str, ...] | None = None
    idle_tests: tuple[str, ...] = ()
    suite: SuiteComparison | None = None
    facts: PatchFacts | None = None


@dataclass(frozen=True, slots=True)
class GateRules:
    """What the repository allows, and who made the patch (None: not known, a person perhaps)."""

    rung: str | None = None
    protected: tuple[str, ...] = PROTECTED_PATHS
    max_changed_lines: int = MAX_CHANGED_LINES
    given_tests: tuple[str, ...] = ()
    attempts_before: int = 0
    approval: str | None = None


def judge_files(
    files: Sequence[PatchedFile],
    *,
    tree: Sequence[str] = (),
    failures: Sequence[Failure] = (),
    tests: Sequence[str] = (),
    change: Sequence[PatchedFile] = (),
    rules: GateRules | None = None,
    proof: PatchProof | None = None,
) -> GateReport:
    """Judge a patch.

    Args:
        files: what the patch does to each file.
        tree: every path that exists before it.
        failures: what the patch is to mend.
        tests: the sources of the failing tests.
        change: what the change under repair did (a pull request's own diff), to see a mere taking back.
        rules: limits and origin.
        proof: what running it showed.
    """
    rules = rules or GateRules()
    rung = rules.rung
    machine, tool = rung in {"shrink", "template", "model"}, rung == "recipe"
    failing = tuple(failure.test for failure in failures)
    reasons = [
        *find_unappliable_files(files, tree),
        *check_hidden_text(files),
        *check_shadowing(files, tree),
    ]
    if rung != "revert":
        reasons += check_existing_tests(
            files, machine=machine, tool=tool, failing=failing, given=rules.given_tests
        )
        reasons += check_assertions(files, person=rung is None)
    reasons += check_silenced_errors(files, [failure.kind for failure in failures], tree)
    reasons += check_overfitting(files, tests)
    reasons += find_sensitive_files(files, rules.protected, by_tool=tool)
    reasons += [] if tool else check_safeguards(files)
    reasons += check_dependencies(files, rung=rung)
    reasons += check_reach(files)
    if rung not in {"revert", "recipe"}:
        reasons += check_size(files, max_lines=rules.max_changed_lines)
    reasons += [] if rung == "revert" else check_lint(files)
    if rung in TAKES_BACK:
        reasons += check_refusals(files)
    elif not tool:
        reasons += _check_kept_behaviour(files)
    reasons += _check_reverted_change(files, change, rules)
    reasons += _check_attempts(rules)
    reasons += _check_proof(proof)
    if machine:
        # A person may have a reason for what looks like a trick; a machine has to find another way.
        reasons = [
            replace(reason, level="deny") if _is_trick(reason) else reason for reason in reasons
        ]
    if proof is not None and proof.facts is not None:
        reasons += find_reasons_to_wait(proof.facts)
    if rules.approval:
        reasons.append(CheckReason("approval", rules.approval))
    return GateReport(_verdict_of_reasons(reasons), tuple(dict.fromkeys(reasons)))


def _check_kept_behaviour(files: Sequence[PatchedFile]) -> list[CheckReason]:
    """Behaviour that a repair has to keep; a revert removes such things with the change."""
    return [
        *check_refusals(files),
        *check_fallbacks(files),
        *check_declarations(files),
        *check_removed_behaviour(files),
    ]


def _is_trick(reason: CheckReason) -> bool:
    tricks = {"special_case", "silenced", "takes_back"}
    return reason.level == "needs_human" and reason.check in tricks


def _verdict_of_reasons(reasons: Sequence[CheckReason]) -> GateVerdict:
    levels = {reason.level for reason in reasons}
    if "deny" in levels:
        return "deny"
    return "needs_human" if "needs_human" in levels else "allow"


def _check_reverted_change(
    files: Sequence[PatchedFile], change: Sequence[PatchedFile], rules: GateRules
) -> list[CheckReason]:
    """Reverting the feature is not a repair, except for the rungs that declare it."""
    if rules.rung in {*TAKES_BACK, "recipe"} or not change:
        return []
    own = {file.path: file for file in change if is_source(file.path)}
    changed = sum(len(file.added_lines) + len(file.removed_lines) for file in own.values())
    undone = extra = 0
    for file in files:
        origin = own.get(file.path)
        was_added = {line for _, line in origin.added_lines} if origin else set()
        was_removed = {line for _, line in origin.removed_lines} if origin else set()
        for lines, origins in ((file.removed_lines, was_added), (file.added_lines, was_removed)):
            is_undone = [line in origins for _, line in lines if line.strip()]
            undone += sum(is_undone)
            extra += len(is_undone) - sum(is_undone)
    if not undone or extra:
        return []
    if undone * 2 > changed > 5:
        what = "it only takes the change under repair back, and most of it"
        return [CheckReason("takes_back", what, "deny")]
    return [CheckReason("takes_back", "it only takes part of the change under repair back")]


def _check_attempts(rules: GateRules) -> list[CheckReason]:
    if rules.attempts_before < ATTEMPTS_A_HEAD:
        return []
    what = f"{rules.attempts_before} attempts were made at this commit already"
    return [CheckReason("rate", what, "deny")]


def _check_proof(proof: PatchProof | None) -> Iterator[CheckReason]:
    if proof is None:
        why = "not made: it runs code, and no failing command was given"
        yield from (CheckReason(check, why, "not_made") for check in RUNNING_CHECKS)
        return
    yield from (CheckReason("verified", line, "deny") for line in proof.red)
    if not proof.red and proof.green < proof.runs:
        what = f"green in {proof.green} of {proof.runs} fresh runs only"
        yield CheckReason("verified", what, "deny")
    if proof.slower > TOO_SLOW:
        what = f"what is run takes {proof.slower:.1f} times as long as before"
        yield CheckReason("verified", what)
    if proof.suite is not None:
        yield from _check_suite(proof.suite)
    elif proof.facts is not None and proof.facts.is_layout:
        what = "the project's tests were not run: the patch changes layout, comments or documents alone"
        yield CheckReason("suite", what, "note")
    for hunk in proof.unneeded:
        yield CheckReason("necessary", f"everything stays green without {hunk}")
    for test in proof.idle_tests:
        what = f"the new test {test} passes without the patch too, so it shows nothing"
        yield CheckReason("tests_unchanged", what, "note")
    if proof.untested:
        what = f"weak evidence: no failing test runs {', '.join(proof.untested[:5])}"
        yield CheckReason("evidence", what, "note")


def _check_suite(suite: SuiteComparison) -> Iterator[CheckReason]:
    """Report the project's own tests: the failing command alone may test little."""
    for line in suite.broken[:5]:
        what = f"the project's own tests ({suite.command}): {line}"
        yield CheckReason("suite", what, "deny")
    if suite.broken or suite.why:
        return  # publishing decides about a suite that could not run
    what = "the project's own tests end as before"
    if suite.kept:
        passes = "passes" if suite.kept == 1 else "pass"
        what = f"{count_noun(suite.kept, 'test')} that passed before still {passes}"
    yield CheckReason("suite", f"{what} ({suite.command})", "note")


def changed_files(git: Git, before: str, after: str) -> tuple[PatchedFile, ...]:
    """The changed files between two commits."""
    old = {entry.path: entry for entry in git.tree(before)}
    new = {entry.path: entry for entry in git.tree(after)}
    found: list[PatchedFile] = []
    for path in sorted(old.keys() | new.keys()):
        was_entry, other = old.get(path), new.get(path)
        if (
            was_entry is not None
            and other is not None
            and (was_entry.sha, was_entry.mode) == (other.sha, other.mode)
        ):
            continue
        was, was_binary = _decode_text(git.show(before, path) if was_entry else None)
        now, now_binary = _decode_text(git.show(after, path) if other else None)
        found.append(
            PatchedFile(
                path,
                was if was_entry else None,
                now if other else None,
                was_entry.mode if was_entry else None,
                other.mode if other else None,
                was_binary or now_binary,
            )
        )
    return tuple(found)


def _decode_text(data: bytes | None) -> tuple[str, bool]:
    if data is None:
        return "", False
    if b"\0" in data:
        return "", True
    try:
        return data.decode("utf-8"), False
    except UnicodeDecodeError:
        return data.decode("latin-1"), False
