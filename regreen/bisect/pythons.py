"""Which Python to bisect with: the one under which the broken end fails and the other end can pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from regreen.bisect.endpoints import refuse_lacking
from regreen.bisect.log import Log
from regreen.bisect.memory import Run
from regreen.bisect.runner import Runner
from regreen.bisect.signature import Signature, is_environmental, matches
from regreen.codebase.manifests import python_for
from regreen.ports import Git, Sandbox

_WITHOUT_FILES = 2
_OLD = (3, 8)  # before this, installers and tools of today rarely work


@dataclass(frozen=True)
class Chosen:
    """The runner with its interpreter; `notes` say what was tried."""

    runner: Runner
    notes: tuple[str, ...] = ()


def settle(
    runner: Runner,
    *,
    git: Git,
    sandbox: Sandbox,
    log: Log,
    broken: str,
    fixed: str | None,
    say: Callable[[str], None],
    lacking: tuple[str, ...] = (),
) -> Chosen:
    """Choose the interpreter by running both ends; the runs under the chosen one go to the log.

    What looks like the wrong interpreter (an import or syntax error, a setup that fails or exit 125 at either end,
    the same exception at both) makes the next one be tried: the repository's own choice first, the sandbox's default,
    then from new to old. An import that fails alike under two interpreters, and not at the other end, is the code's
    doing. Where none does better, the first that ran stays. Where files are `lacking` that the tree
    should have, they are the likelier reason, and no more than two are tried.

    Raises:
        UserError: the ends cannot be run, and files are missing.
    """
    if runner.trial.python or runner.trial.image:
        return Chosen(runner)
    if log.runs:
        return Chosen(runner.with_python(log.python))
    tried: list[str] = []
    fallback: tuple[Runner, list[Run]] | None = None
    suspect: tuple[Runner, list[Run]] | None = None
    known: set[str | None] = set()
    for python in _candidates(git, sandbox, broken):
        if python in known:
            continue
        attempt = runner.with_python(python)
        runs = _at_ends(attempt, broken, fixed, hopeful=not tried)
        known |= {python, runs[0].python}
        if suspect and _is_alike([suspect[1][0], runs[0]]):
            fallback, tried = suspect, []
            break
        suspect = suspect or _suspected(attempt, runs)
        if not _is_foreign(runs[0]):
            fits = not _is_foreign(runs[-1]) and not _is_alike(runs)
            if fallback is None or fits:
                fallback = (attempt, runs)
            if fits:
                break
        against = _against(runs)
        tried.append(f"not Python {runs[0].python or python}: {against}")
        say(tried[-1])
        if len(tried) >= _WITHOUT_FILES:
            refuse_lacking(lacking, against)
    if fallback is None:
        fallback = (runner, [runner(broken)])
    chosen, runs = fallback
    for run in runs:
        log.record(run)
        say(f"{run.sha[:12]} {_shown(run)}, {run.seconds:.1f} s, an end of the range")
    notes = (*tried, f"tested with Python {runs[0].python}") if tried else ()
    return Chosen(chosen, notes)


def _at_ends(attempt: Runner, broken: str, fixed: str | None, *, hopeful: bool) -> list[Run]:
    """A run at the broken end; one at the other, unless the first already says that this is the wrong interpreter.

    Boxes are opened ahead as long as nothing speaks against the interpreter.
    """
    if hopeful and fixed is not None:
        attempt.expect(broken)
        attempt.expect(fixed)
    runs = [attempt(broken)]
    if not _is_foreign(runs[0]):
        attempt.expect_search(broken)
    if fixed is not None and (not _is_foreign(runs[0]) or (hopeful and runs[0].ran == "fail")):
        runs.append(attempt(fixed))
    return runs


def _candidates(git: Git, sandbox: Sandbox, rev: str) -> list[str | None]:
    """Interpreters in the order to try them; None is the sandbox's default."""
    available = list(sandbox.pythons())
    declared: str | None = python_for(git, rev, available)
    older = sorted(available, key=_number, reverse=True)
    if declared is None:
        return [None, *older]
    first = [declared, None] if _number(declared) >= _OLD else [None, declared]
    return [*first, *(python for python in older if python != declared)]


def _suspected(attempt: Runner, runs: list[Run]) -> tuple[Runner, list[Run]] | None:
    """An attempt whose ends differ, though by an error that an interpreter may be behind."""
    return (attempt, runs) if _is_foreign(runs[0]) and runs[-1].ran == "pass" else None


def _against(runs: Sequence[Run]) -> str:
    """What speaks against an interpreter."""
    told = runs[0] if _is_foreign(runs[0]) else runs[-1]
    where = "both ends" if _is_alike(runs) else told.sha[:12]
    return f"at {where} {_shown(told)}"


def _is_foreign(run: Run) -> bool:
    return run.ran == "untestable" or is_environmental(run.signature)


def _is_alike(runs: Sequence[Run]) -> bool:
    """Whether both ends raise the same exception: as well the interpreter's doing as the code's."""
    if len(runs) < 2:
        return False
    one, other = runs[0].signature, runs[-1].signature
    return bool(one and other and one.kind and matches(one, [other])) and not _is_assertion(one)


def _is_assertion(signature: Signature | None) -> bool:
    return signature is not None and signature.kind == "AssertionError"


def _shown(run: Run) -> str:
    return run.signature.text if run.signature else f"{run.ran} ({run.reason})"


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
