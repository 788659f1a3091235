"""The boxes of one bisection: fresh ones opened ahead of need and closed behind our back, and used ones emptied.

A box costs more than most tests. So whoever knows which commits come next says so (`expect`), and the search, whose
runs are evidence and no verdict, goes through boxes that are emptied between two commits (`run_again`).
"""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from threading import Event, Lock

from regreen.codebase.in_git import argv_of
from regreen.codebase.trial import Trial, prepare
from regreen.errors import OutsideError, SetupFailed, UserError
from regreen.models import Env, RunResult
from regreen.pool import Pool
from regreen.ports import Box, Git, Sandbox

_HANDS = 2  # threads that open and close
_MOST_USES = 100  # of one box: its engine keeps something of every command
_Opened = tuple[Box, Env]


@dataclass
class _Used:
    box: Box
    env: Env
    uses: int = 0


class Boxes:
    """Opens and closes boxes for a bisection; many threads may ask at once.

    Args:
        git: the repository.
        sandbox: where boxes come from.
        cancel: stops what is being prepared.
        in_turn: open and close nothing while something runs, for what runs is timed.
    """

    def __init__(
        self, git: Git, sandbox: Sandbox, cancel: Event | None = None, *, in_turn: bool = False
    ) -> None:
        self._git, self._sandbox, self._cancel = git, sandbox, cancel
        self._in_turn = in_turn
        self._hands = Pool(_HANDS, thread_name_prefix="regreen-boxes")
        self._lock = Lock()
        self._plain: dict[tuple[object, ...], Env] = {}
        self._ahead: dict[tuple[Trial, str], Future[_Opened]] = {}
        self._idle: list[_Used] = []
        self._spare: dict[str, Future[Box]] = {}

    def prepared(self, trial: Trial, sha: str) -> Env:
        """The environment of a trial at a commit; asked for once where no commit can change it.

        Raises:
            SetupFailed: the setup failed at this commit.
            OutsideError: the sandbox failed.
        """
        key = (trial.python, trial.image, trial.env, trial.trust, trial.scope)
        if trial.setup is None and key in self._plain:
            return self._plain[key]
        env = prepare(trial, sha, git=self._git, sandbox=self._sandbox, cancel=self._cancel)
        if trial.setup is None:
            self._plain[key] = env
        return env

    def expect(self, trial: Trial, sha: str) -> None:
        """A fresh box at this commit will be asked for: begin to open it."""
        key = (trial, sha)
        with self._lock:
            if key not in self._ahead and not self._in_turn:
                self._ahead[key] = self._hands.submit(self._open, trial, sha)

    def expect_search(self, trial: Trial, sha: str) -> None:
        """The search is about to begin, its commits like this one: begin to open an empty box for it."""
        if trial.setup is not None or self._in_turn:
            return
        env = self.prepared(trial, sha)
        with self._lock:
            if env.image not in self._spare and not self._idle:
                self._spare[env.image] = self._hands.submit(
                    self._sandbox.open, env, (), trial.limits
                )

    def run(self, trial: Trial, sha: str) -> tuple[RunResult, Env]:
        """Run the trial at a commit in a box in which nothing ran before.

        Raises:
            SetupFailed: the setup failed at this commit.
            OutsideError: the sandbox failed.
        """
        with self._lock:
            ready = self._ahead.pop((trial, sha), None)
        box, env = ready.result() if ready is not None else self._open(trial, sha)
        try:
            result = box.run(
                argv_of(trial), timeout=trial.timeout, env=dict(trial.env), cancel=self._cancel
            )
        finally:
            self._let_go(box)
        return result, env

    def run_again(self, trial: Trial, sha: str) -> tuple[RunResult, Env]:
        """Run the trial at a commit in a box that ran other commits, emptied, where there is one.

        Raises:
            SetupFailed: the setup failed at this commit.
            OutsideError: the sandbox failed.
        """
        env = self.prepared(trial, sha)
        used = self._take(env) or _Used(self._spare_or_new(env, trial), env)
        used.uses += 1
        keep = False
        try:
            result = used.box.afresh(
                self._git.archive(sha, trial.overlay),
                argv_of(trial),
                timeout=trial.timeout,
                env=dict(trial.env),
                cancel=self._cancel,
            )
            keep = result.ended == "exit" and used.uses < _MOST_USES
        finally:
            if keep:
                with self._lock:
                    self._idle.append(used)
            else:
                self._let_go(used.box)
        return result, env

    def close(self) -> None:
        """Close every box, also those that nobody asked for."""
        with self._lock:
            ahead = [*self._ahead.values()]
            spare = [*self._spare.values()]
            idle, self._idle = self._idle, []
        for opening in ahead:
            if not opening.cancel():
                with suppress(SetupFailed, OutsideError, UserError):
                    opening.result()[0].close()
        for opened in spare:
            if not opened.cancel():
                with suppress(OutsideError, UserError):
                    opened.result().close()
        for one in idle:
            self._let_go(one.box)
        self._hands.shutdown()

    def forget(self) -> None:
        """Ask the sandbox for environments anew: one that we knew may be gone."""
        self._plain.clear()

    def _let_go(self, box: Box) -> None:
        if self._in_turn:
            box.close()
        else:
            self._hands.submit(box.close)

    def _open(self, trial: Trial, sha: str) -> _Opened:
        env = self.prepared(trial, sha)
        return self._sandbox.open(env, self._git.archive(sha, trial.overlay), trial.limits), env

    def _take(self, env: Env) -> _Used | None:
        """A used box of this environment; the others are closed, for neighbours in history seldom differ twice."""
        with self._lock:
            fitting = [one for one in self._idle if one.env.image == env.image]
            others = [one for one in self._idle if one.env.image != env.image]
            found = fitting.pop() if fitting else None
            self._idle = fitting if others else [one for one in self._idle if one is not found]
        for one in others:
            self._let_go(one.box)
        return found

    def _spare_or_new(self, env: Env, trial: Trial) -> Box:
        with self._lock:
            spare = self._spare.pop(env.image, None)
        if spare is not None:
            with suppress(OutsideError):
                return spare.result()
        return self._sandbox.open(env, (), trial.limits)
