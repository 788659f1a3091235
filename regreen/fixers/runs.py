"""Runs of the failing command in fresh boxes, listening to each test where pytest is behind it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from threading import Event
from types import MappingProxyType

from regreen.codebase.in_git import argv_of
from regreen.codebase.trial import Trial, open_box
from regreen.fixers.ci_log import failures_in
from regreen.models import Failure, RunResult
from regreen.ports import Box, Git, Sandbox

UNTESTABLE = 125
_FOLDER = ".regreen-listen"
_STOPPED = "stopped"
_LISTENER = f'''
import os
import time

_HERE = os.path.dirname(os.path.abspath(__file__))
_MINE = os.environ.setdefault("REGREEN_LISTENER", str(os.getpid())) == str(os.getpid())
_UNTIL = time.monotonic() + float(os.environ.get("REGREEN_LISTEN_SECONDS", "inf"))
_SESSION = []


def pytest_sessionstart(session):
    _SESSION[:] = [session]


def pytest_runtest_logfinish(nodeid):
    if _MINE and _SESSION and time.monotonic() > _UNTIL and not _SESSION[0].shouldstop:
        _SESSION[0].shouldstop = "out of time"
        with open(os.path.join(_HERE, "{_FOLDER}.txt"), "a", encoding="utf-8") as file:
            file.write("{_STOPPED}\\t\\n")


def pytest_runtest_logreport(report):
    if not _MINE or "PYTEST_XDIST_WORKER" in os.environ:
        return
    if report.when != "call" and report.outcome == "passed":
        return
    word = "xfailed" if getattr(report, "wasxfail", None) is not None else report.outcome
    with open(os.path.join(_HERE, "{_FOLDER}.txt"), "a", encoding="utf-8") as file:
        file.write(word + "\\t" + report.nodeid.replace("\\n", " ") + "\\n")
'''
_PYTEST_OUTPUT = re.compile(
    r"={3,} (?:test session starts|.{0,200}(?:passed|failed|error)s?\b.{0,100}) ?={3,}"
)
_PYTEST_WORD = re.compile(r"(?:^|[\s/])(?:pytest|py\.test)(?:\s|$)")


@dataclass(frozen=True)
class Seen:
    """One run: how it ended, what failed, and (where pytest could be listened to) how each test ended.

    `stopped`: pytest was told to stop before its last test, for its time was over.
    """

    result: RunResult
    failures: tuple[Failure, ...] = ()
    tests: Mapping[str, str] = field(default_factory=dict)
    stopped: bool = False

    @property
    def green(self) -> bool:
        """The command exited 0."""
        return self.result.passed

    @property
    def output(self) -> str:
        """Both streams, as a person at a terminal would have seen them."""
        return f"{self.result.stdout}\n{self.result.stderr}".strip()

    @property
    def failing(self) -> frozenset[str]:
        """The ids of what failed."""
        told = frozenset(test for test, word in self.tests.items() if word == "failed")
        return told or frozenset(failure.test for failure in self.failures)

    @property
    def counts(self) -> bool:
        """Whether the run says anything about the code: infrastructure and "cannot be tried" do not."""
        return (
            self.result.ended not in {"infra", "cancelled"} and self.result.exit_code != UNTESTABLE
        )


def run_fresh(
    trial: Trial,
    rev: str,
    *,
    git: Git,
    sandbox: Sandbox,
    listen: bool = False,
    seconds: float | None = None,
    cancel: Event | None = None,
) -> Seen:
    """Run the command once in a fresh box at `rev`; pytest, where it is listened to, for so many seconds at most."""
    with open_box(trial, rev, git=git, sandbox=sandbox, cancel=cancel) as box:
        return run_in(box, trial, listen=listen, seconds=seconds, cancel=cancel)


def run_in(
    box: Box,
    trial: Trial,
    *,
    listen: bool = False,
    seconds: float | None = None,
    cancel: Event | None = None,
) -> Seen:
    """Run the command in a box that is open already."""
    env = dict(trial.env)
    if listen:
        box.write({f"{_FOLDER}/regreen_listen.py": _LISTENER.encode()})
        env["PYTHONPATH"] = ":".join(
            part for part in (env.get("PYTHONPATH", ""), f"/work/{_FOLDER}") if part
        )
        if seconds is not None:
            env["REGREEN_LISTEN_SECONDS"] = f"{seconds:.1f}"
        env["PYTEST_ADDOPTS"] = f"{env.get('PYTEST_ADDOPTS', '')} -p regreen_listen".strip()
    result = box.run(argv_of(trial), timeout=trial.timeout, env=env, cancel=cancel)
    heard = listen and result.ended == "exit"  # a box that was stopped cannot be read any more
    told = box.read(f"{_FOLDER}/{_FOLDER}.txt", 8 * 1024 * 1024) if heard else None
    output = f"{result.stdout}\n{result.stderr}"
    failures = () if result.passed else failures_in(output)
    stopped = f"{_STOPPED}\t".encode() in (told or b"")
    return Seen(result, failures, MappingProxyType(_outcomes(told or b"")), stopped)


def _outcomes(told: bytes) -> dict[str, str]:
    """The worst word heard about each test: a teardown that fails outweighs the call that passed."""
    rank = {"passed": 0, "xfailed": 1, "skipped": 1, "failed": 2}
    found: dict[str, str] = {}
    for line in told.decode("utf-8", "replace").splitlines():
        word, _, test = line.partition("\t")
        if word in rank and rank[word] >= rank.get(found.get(test, "passed"), 0):
            found[test] = word
    return found


def uses_pytest(trial: Trial, output: str = "") -> bool:
    """Whether pytest runs behind the command, by its words or by its output."""
    return bool(_PYTEST_WORD.search(trial.shown) or _PYTEST_OUTPUT.search(output))


def simple_pytest(trial: Trial) -> tuple[str, ...] | None:
    """The argv of a command that is one plain call of pytest; None for anything more."""
    argv = trial.command
    if len(argv) == 3 and argv[0] in {"bash", "sh"} and argv[1] in {"-c", "-ec", "-lc"}:
        if re.search(r"[|&;<>`$(){}\n*?~]", argv[2].strip()):
            return None
        try:
            argv = tuple(shlex.split(argv[2]))
        except ValueError:
            return None
    words = [word for word in argv[:4] if not word.startswith("-")]
    return argv if any(word.rsplit("/", 1)[-1] in {"pytest", "py.test"} for word in words) else None


def widened(trial: Trial) -> Trial | None:
    """The same pytest over everything it collects by default; None where the command is no narrow pytest call."""
    argv = simple_pytest(trial)
    if argv is None:
        return None
    at = next(i for i, word in enumerate(argv) if word.rsplit("/", 1)[-1] in {"pytest", "py.test"})
    kept: list[str] = []
    narrow = False
    words = iter(argv[at + 1 :])
    for word in words:
        if word in {"-k", "-m", "--deselect", "--maxfail"}:
            next(words, None)
            narrow = True
        elif word in {"-x", "--exitfirst", "--lf", "--ff", "--sw"} or word.startswith(
            ("-k", "--maxfail")
        ):
            narrow = True
        elif word in {"-p", "-c", "-o", "-n", "-W", "--rootdir", "--confcutdir"}:
            kept += [word, *(value for value in (next(words, None),) if value is not None)]
        elif word.startswith("-"):
            kept.append(word)
        else:
            narrow = True
    return replace(trial, command=(*argv[: at + 1], *kept)) if narrow else None


def fallen(
    before: Mapping[str, str],
    after: Mapping[str, str],
    *,
    flaky: Collection[str] = (),
    given_up: Collection[str] = (),
) -> dict[str, str]:
    """The tests that passed before and do not pass after, and how each ends now ("gone" where it no longer runs).

    Args:
        before: how each test ended.
        after: how they end now.
        flaky: tests that do not count.
        given_up: test files that are openly taken back; that their tests are gone is no surprise.
    """
    ends = {test: after.get(test, "gone") for test, word in before.items() if word == "passed"}
    return {
        test: now
        for test, now in ends.items()
        if now != "passed"
        and test not in flaky
        and not (now == "gone" and test.partition("::")[0] in given_up)
    }


def in_words(broken: Mapping[str, str]) -> list[str]:
    """One line for each fallen test, ten at the most."""
    return [
        f"passed before, {'is gone' if now == 'gone' else now} now: {test}"
        for test, now in list(broken.items())[:10]
    ]


_NAMED_TESTS = re.compile(
    r"::|\s-k[\s=]|\s--(?:deselect|lf|last-failed|sw)\b|[\w-]*tests?[\w-]*\.py\b"
)
_OTHER_RUNNERS = re.compile(
    r"\b(?:npm|yarn|pnpm|bun)(?: run)? t(?:est)?\b|\b(?:go|cargo|mix|dotnet|gradlew?|mvnw?|swift|deno) (?:\S+ )*test\b"
    r"|\b(?:jest|vitest|mocha|rspec|phpunit|ctest|nose2?|nosetests)\b|\bunittest(?:\s+discover\b|(?:\s+-\w+)*\s*$)"
)


def runs_all(trial: Trial, heard: Mapping[str, str]) -> bool:
    """Whether the command is the project's tests as a whole, as far as its words tell: exit 0 then means all of them.

    `heard` is how each test ended that pytest ran behind it.
    """
    if simple_pytest(trial) is not None:
        return widened(trial) is None
    narrow = _NAMED_TESTS.search(trial.shown) is not None
    return not narrow and (bool(heard) or _OTHER_RUNNERS.search(trial.shown) is not None)
