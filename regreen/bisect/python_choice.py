"""Which Python to bisect with: the one under which the broken end fails and the other end can pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from regreen.bisect.commit_graph import refuse_missing_content
from regreen.bisect.commit_runner import TrialRunner
from regreen.bisect.run_log import RunLog
from regreen.bisect.verdict_memory import CommitRun
from regreen.domain.ports import Git, Sandbox
from regreen.logs.failure_signature import FailureSignature, is_environmental, matches_any
from regreen.packages.python_version import choose_python_version

_WITHOUT_FILES = 2
_ALIKE = 2  # interpreters after which the oldest is asked whether it is about interpreters at all
_OLDEST_USABLE_PYTHON = (3, 8)  # before this, current installers and tools rarely work


@dataclass(frozen=True)
class PythonChoice:
    """The runner with its interpreter; `notes` list the attempts."""

    runner: TrialRunner
    notes: tuple[str, ...] = ()


def choose_python(
    runner: TrialRunner,
    *,
    git: Git,
    sandbox: Sandbox,
    log: RunLog,
    broken: str,
    fixed: str | None,
    say: Callable[[str], None],
    lacking: tuple[str, ...] = (),
) -> PythonChoice:
    """Choose the interpreter by running both ends; the runs under the chosen one go to the log.

    Signs of a wrong interpreter (an import or syntax error, a failing setup or exit 125 at either end,
    the same exception at both) make the next one be tried: the repository's own choice first, the sandbox's default,
    then from new to old. An import that fails alike under two interpreters, and not at the other end, is the fault
    of the code; a module that the first two interpreters and the oldest lack is missing altogether. If none does better, the first that ran stays. If files are `lacking` that the tree
    should have, they are the likelier reason, and at most two interpreters are tried.

    Raises:
        UserError: the ends cannot be run, and files are missing.
    """
    if runner.trial.python or runner.trial.image:
        return PythonChoice(runner)
    if log.runs:
        return PythonChoice(runner.with_python(log.python))
    search = _InterpreterSearch(runner, broken, fixed, say, lacking)
    search.try_in_turn(_list_candidates(git, sandbox, broken))
    chosen, runs = search.best or (runner, [runner(broken)])
    for run in runs:
        log.record_run(run)
        say(f"bad commit {run.sha[:12]}: {_describe_run(run)}, {run.seconds:.1f} s")
    tried = search.tried
    notes = (*tried, f"tested with Python {runs[0].python}") if tried else ()
    return PythonChoice(chosen, notes)


@dataclass
class _InterpreterSearch:
    """Tries interpreters; `best` is the chosen one with its runs, `tried` says what is against the others."""

    runner: TrialRunner
    broken: str
    fixed: str | None
    say: Callable[[str], None]
    lacking: tuple[str, ...]
    tried: list[str] = field(default_factory=list)
    best: tuple[TrialRunner, list[CommitRun]] | None = None

    def try_in_turn(self, candidates: Sequence[str | None]) -> None:
        """Run the ends under one after the other, until one fits or none can be at fault."""
        first: tuple[TrialRunner, list[CommitRun]] | None = None
        suspect: tuple[TrialRunner, list[CommitRun]] | None = None
        known: set[str | None] = set()
        for python in (one for one in candidates if one not in known):
            if self.tried:
                self.say(f"trying Python {python or 'of the sandbox'}")
            attempt = self.runner.with_python(python)
            runs = _run_ends(attempt, self.broken, self.fixed, hopeful=not self.tried)
            known |= {python, runs[0].python}
            first = first or (attempt, runs)
            if suspect and _is_alike([suspect[1][0], runs[0]]):
                self.best, self.tried = suspect, []
                return
            suspect = suspect or _as_suspect(attempt, runs)
            if not _is_foreign(runs[0]):
                fits = not _is_foreign(runs[-1]) and not _is_alike(runs)
                if self.best is None or fits:
                    self.best = (attempt, runs)
                if fits:
                    return
            self._reject(runs, python)
            if len(self.tried) == _ALIKE and self._is_missing_everywhere(first[1][0], runs[0], candidates[-1]):  # fmt: skip
                self.best, self.tried = first, []
                return

    def _reject(self, runs: Sequence[CommitRun], python: str | None) -> None:
        against = _describe_objection(runs)
        self.tried.append(f"not Python {runs[0].python or python}: {against}")
        self.say(self.tried[-1])
        if len(self.tried) >= _WITHOUT_FILES:
            refuse_missing_content(self.lacking, against)

    def _is_missing_everywhere(
        self, first: CommitRun, second: CommitRun, oldest: str | None
    ) -> bool:
        """Whether two interpreters and the oldest lack the same module: none of them can be at fault then."""
        if not _misses_same_module(first, second):
            return False
        return _misses_same_module(first, self.runner.with_python(oldest)(self.broken))


def _run_ends(
    attempt: TrialRunner, broken: str, fixed: str | None, *, hopeful: bool
) -> list[CommitRun]:
    """Run the bad end, and the other end unless the first run already rules the interpreter out.

    Boxes are opened ahead while nothing rules the interpreter out.
    """
    if hopeful and fixed is not None:
        attempt.prepare_run(broken)
        attempt.prepare_run(fixed)
    runs = [attempt(broken)]
    if not _is_foreign(runs[0]):
        attempt.expect_search(broken)
    if fixed is not None and (not _is_foreign(runs[0]) or (hopeful and runs[0].ran == "fail")):
        runs.append(attempt(fixed))
    return runs


def _list_candidates(git: Git, sandbox: Sandbox, rev: str) -> list[str | None]:
    """Interpreters in the order to try them; None is the sandbox's default."""
    available = list(sandbox.pythons())
    declared: str | None = choose_python_version(git, rev, available)
    older = sorted(available, key=_version_number, reverse=True)
    if declared is None:
        return [None, *older]
    first = (
        [declared, None] if _version_number(declared) >= _OLDEST_USABLE_PYTHON else [None, declared]
    )
    return [*first, *(python for python in older if python != declared)]


def _as_suspect(
    attempt: TrialRunner, runs: list[CommitRun]
) -> tuple[TrialRunner, list[CommitRun]] | None:
    """Whether the ends differ, though by an error that may come from the interpreter."""
    return (attempt, runs) if _is_foreign(runs[0]) and runs[-1].ran == "pass" else None


def _describe_objection(runs: Sequence[CommitRun]) -> str:
    """Why an interpreter is ruled out."""
    example = runs[0] if _is_foreign(runs[0]) else runs[-1]
    where = "both ends" if _is_alike(runs) else example.sha[:12]
    return f"at {where} {_describe_run(example)}"


def _is_foreign(run: CommitRun) -> bool:
    return run.ran == "untestable" or is_environmental(run.signature)


def _is_alike(runs: Sequence[CommitRun]) -> bool:
    """Whether both ends raise the same exception, which may come from the interpreter or from the code."""
    if len(runs) < 2:
        return False
    first, last = runs[0].signature, runs[-1].signature
    return bool(first and last and first.kind and matches_any(first, [last])) and not _is_assertion(
        first
    )


def _misses_same_module(first: CommitRun, second: CommitRun) -> bool:
    one, other = first.signature, second.signature
    return bool(one and other and one.kind == "ModuleNotFoundError" and matches_any(one, [other]))


def _is_assertion(signature: FailureSignature | None) -> bool:
    return signature is not None and signature.kind == "AssertionError"


def _describe_run(run: CommitRun) -> str:
    return run.signature.text if run.signature else f"{run.ran} ({run.reason})"


def _version_number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
