"""What a patch must survive before anybody sees it: fourteen checks, each a function of values.

Ten look at the patch alone. Those that run code are made elsewhere (`verify_patch`) and come in as a `Proof`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from regreen.fixers.checks.change import FileChange, Reason
from regreen.fixers.checks.declarations import declarations_kept
from regreen.fixers.checks.dependencies import dependencies_kept
from regreen.fixers.checks.fallbacks import failures_kept
from regreen.fixers.checks.limits import limits_kept
from regreen.fixers.checks.lint import lint_clean
from regreen.fixers.checks.paths import applies_well, is_source, is_test, sensitive
from regreen.fixers.checks.reach import no_new_reach, small_enough
from regreen.fixers.checks.refusals import refusals_kept
from regreen.fixers.checks.safeguards import safeguards_kept
from regreen.fixers.checks.shadow import nothing_hidden, nothing_shadowed
from regreen.fixers.checks.silence import nothing_silenced
from regreen.fixers.checks.special import no_special_case
from regreen.fixers.checks.taken_away import nothing_taken_away
from regreen.fixers.checks.tests_kept import assertions_kept, existing_tests_kept
from regreen.models import Failure
from regreen.ports import Git

Verdict = Literal["allow", "needs_human", "deny"]
PROTECTED: tuple[str, ...] = (".github/**",)
MAX_CHANGED_LINES = 40
ATTEMPTS_A_HEAD = 3
RUNNING_CHECKS = ("verified", "necessary", "evidence")


@dataclass(frozen=True, slots=True)
class GateReport:
    """The verdict on a patch, with every reason that a check gave."""

    verdict: Verdict
    reasons: tuple[Reason, ...] = ()


_TAKING_BACK = frozenset({"revert", "shrink", "template"})


@dataclass(frozen=True, slots=True)
class Held:
    """What the project's own tests said of a patch, beside the failing command.

    `kept` of them passed before and pass still; `broken` says, one line each, what no longer does; `why` says why
    they could not be asked. `in_doubt`: they could be without the patch, and with it they said nothing. `unheard`:
    there are some, and none of them could be run at all.
    """

    command: str
    kept: int = 0
    broken: tuple[str, ...] = ()
    why: str = ""
    in_doubt: bool = False
    unheard: bool = False


@dataclass(frozen=True, slots=True)
class Proof:
    """What running the patch showed; None where that was not tried.

    `red` says, one line each, what was still or newly failing. `unneeded` names hunks without which everything
    stays green. `untested` are changed lines that no failing test runs. `idle_tests` are new tests that pass
    without the patch. `suite` is None where the failing command runs all tests by itself.
    """

    runs: int
    green: int
    red: tuple[str, ...] = ()
    slower: float | None = None
    unneeded: tuple[str, ...] = ()
    untested: tuple[str, ...] | None = None
    idle_tests: tuple[str, ...] = ()
    suite: Held | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """What the repository allows, and who made the patch (None: not known, a person perhaps)."""

    rung: str | None = None
    protected: tuple[str, ...] = PROTECTED
    max_changed_lines: int = MAX_CHANGED_LINES
    given_tests: tuple[str, ...] = ()
    attempts_before: int = 0
    approval: str | None = None


def gate(
    files: Sequence[FileChange],
    *,
    tree: Sequence[str] = (),
    failures: Sequence[Failure] = (),
    tests: Sequence[str] = (),
    change: Sequence[FileChange] = (),
    rules: Rules | None = None,
    proof: Proof | None = None,
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
    rules = rules or Rules()
    machine = rules.rung in {"shrink", "template", "model"}
    failing = tuple(failure.test for failure in failures)
    reasons = [
        *applies_well(files, tree),
        *nothing_hidden(files),
        *nothing_shadowed(files, tree),
        *(_revert_tests(files) if rules.rung == "revert" else ()),
        *(
            ()
            if rules.rung == "revert"
            else (
                *existing_tests_kept(
                    files,
                    machine=machine,
                    tool=rules.rung == "recipe",
                    failing=failing,
                    given=rules.given_tests,
                ),
                *assertions_kept(files, person=rules.rung is None),
            )
        ),
        *nothing_silenced(files, [failure.kind for failure in failures]),
        *no_special_case(files, tests),
        *sensitive(files, rules.protected, by_tool=rules.rung == "recipe"),
        *(() if rules.rung in {"revert", "recipe"} else safeguards_kept(files)),
        *dependencies_kept(files, rung=rules.rung),
        *no_new_reach(files),
        *(
            ()
            if rules.rung in {"revert", "recipe"}
            else small_enough(files, max_lines=rules.max_changed_lines)
        ),
        *(() if rules.rung == "revert" else lint_clean(files)),
        *(() if rules.rung in {"revert", "shrink", "recipe"} else _kept(files)),
        *_taken_back(files, change, rules),
        *_rate(rules),
        *_proven(proof, rules.rung),
    ]
    if machine:
        # A person may have a reason for what looks like a trick; a program is asked to find another way.
        reasons = [replace(one, level="deny") if _is_trick(one) else one for one in reasons]
    if rules.approval:
        reasons.append(Reason("approval", rules.approval))
    return GateReport(_verdict(reasons), tuple(dict.fromkeys(reasons)))


def _kept(files: Sequence[FileChange]) -> list[Reason]:
    """What a change for the better leaves in place; a change that is taken back takes such things with it."""
    return [
        *limits_kept(files),
        *refusals_kept(files),
        *failures_kept(files),
        *declarations_kept(files),
        *nothing_taken_away(files),
    ]


def _is_trick(reason: Reason) -> bool:
    return reason.level == "needs_human" and reason.check in {
        "special_case",
        "silenced",
        "takes_back",
    }


def _verdict(reasons: Sequence[Reason]) -> Verdict:
    levels = {reason.level for reason in reasons}
    if "deny" in levels:
        return "deny"
    return "needs_human" if "needs_human" in levels else "allow"


def _revert_tests(files: Sequence[FileChange]) -> list[Reason]:
    """A revert may take back tests that came with the commit, if a person agrees."""
    touched = [file.path for file in files if is_test(file.path)]
    return (
        [
            Reason(
                "tests_unchanged",
                f"takes back the tests that came with the commit: {', '.join(touched[:5])}",
            )
        ]
        if touched
        else []
    )


def _taken_back(
    files: Sequence[FileChange], change: Sequence[FileChange], rules: Rules
) -> list[Reason]:
    """Undoing the feature is not a repair: only the rungs that say so may take a change back."""
    if rules.rung in {"revert", "shrink", "recipe"} or not change:
        return []
    own = {file.path: file for file in change if is_source(file.path)}
    brought = sum(len(file.added) + len(file.removed) for file in own.values())
    undone = extra = 0
    for file in files:
        origin = own.get(file.path)
        was_added = {line for _, line in origin.added} if origin else set()
        was_removed = {line for _, line in origin.removed} if origin else set()
        undone += sum(line in was_added for _, line in file.removed if line.strip())
        undone += sum(line in was_removed for _, line in file.added if line.strip())
        extra += sum(line not in was_removed for _, line in file.added if line.strip())
        extra += sum(line not in was_added for _, line in file.removed if line.strip())
    if not undone or extra:
        return []
    if undone * 2 > brought > 5:
        return [
            Reason(
                "takes_back", "it only takes the change under repair back, and most of it", "deny"
            )
        ]
    return [Reason("takes_back", "it only takes part of the change under repair back")]


def _rate(rules: Rules) -> list[Reason]:
    if rules.attempts_before >= ATTEMPTS_A_HEAD:
        return [
            Reason(
                "rate", f"{rules.attempts_before} attempts were made at this commit already", "deny"
            )
        ]
    return []


def _proven(proof: Proof | None, rung: str | None) -> list[Reason]:
    if proof is None:
        return [
            Reason(check, "not made: it runs code, and no failing command was given", "not_made")
            for check in RUNNING_CHECKS
        ]
    reasons = [Reason("verified", line, "deny") for line in proof.red]
    if not proof.red and proof.green < proof.runs:
        reasons.append(
            Reason("verified", f"green in {proof.green} of {proof.runs} fresh runs only", "deny")
        )
    if proof.slower is not None and proof.slower > 2:
        reasons.append(
            Reason("verified", f"the command takes {proof.slower:.1f} times as long as before")
        )
    reasons += _suite(proof.suite, rung) if proof.suite is not None else []
    reasons += [
        Reason("necessary", f"everything stays green without {hunk}", "note")
        for hunk in proof.unneeded
    ]
    reasons += [
        Reason(
            "tests_unchanged",
            f"the new test {test} passes without the patch too, so it shows nothing",
            "note",
        )
        for test in proof.idle_tests
    ]
    if proof.untested:
        reasons.append(
            Reason(
                "evidence",
                f"weak evidence: no failing test runs {', '.join(proof.untested[:5])}",
                "note",
            )
        )
    return reasons


def _suite(held: Held, rung: str | None) -> list[Reason]:
    """The failing command alone says little where it is no test of the project's."""
    if held.broken:
        tests = f"the project's own tests ({held.command})"
        return [Reason("suite", f"{tests}: {line}", "deny") for line in held.broken[:5]]
    if held.why:
        words = f"only the failing step was held against it: {held.why}"
        # of the changes taken back for a lone check alone, most broke something that only the tests knew
        doubt = held.in_doubt or (held.unheard and rung in _TAKING_BACK)
        return [Reason("suite", words, "needs_human" if doubt else "note")]
    if held.kept:
        words = (
            f"{held.kept} of the project's own tests that passed before pass still ({held.command})"
        )
    else:
        words = f"the project's own tests end as before ({held.command})"
    return [Reason("suite", words, "note")]


def changed_files(git: Git, before: str, after: str) -> tuple[FileChange, ...]:
    """What lies between two commits, read from git's own trees."""
    old = {entry.path: entry for entry in git.tree(before)}
    new = {entry.path: entry for entry in git.tree(after)}
    found: list[FileChange] = []
    for path in sorted(old.keys() | new.keys()):
        one, other = old.get(path), new.get(path)
        if one is not None and other is not None and (one.sha, one.mode) == (other.sha, other.mode):
            continue
        was, was_binary = _text(git.show(before, path) if one else None)
        now, now_binary = _text(git.show(after, path) if other else None)
        found.append(
            FileChange(
                path,
                was if one else None,
                now if other else None,
                one.mode if one else None,
                other.mode if other else None,
                was_binary or now_binary,
            )
        )
    return tuple(found)


def _text(data: bytes | None) -> tuple[str, bool]:
    if data is None:
        return "", False
    if b"\0" in data:
        return "", True
    try:
        return data.decode("utf-8"), False
    except UnicodeDecodeError:
        return data.decode("latin-1"), False
