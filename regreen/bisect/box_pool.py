"""The boxes of one bisection: fresh ones opened ahead and closed in the background, used ones emptied.

Opening a box costs more than most tests. So callers announce the next commits (`expect`), and the runs of the search,
which are evidence and no verdict, use boxes that are emptied between two commits (`run_again`).
"""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from threading import Event, Lock

from regreen.domain.errors import OutsideError, SetupFailed, UserError
from regreen.domain.job_control import ContextThreadPool
from regreen.domain.models import PreparedEnv, RunResult
from regreen.domain.ports import Box, Git, Sandbox
from regreen.runs.test_runs import trial_argv
from regreen.runs.trial import Trial, prepare_environment

_POOL_THREADS = 2  # threads that open and close boxes
_MAX_USES = 100  # of one box: the engine keeps some state for every command
_OpenedBox = tuple[Box, PreparedEnv]


@dataclass
class _UsedBox:
    box: Box
    env: PreparedEnv
    uses: int = 0


class BoxPool:
    """Opens and closes boxes for a bisection; safe for several threads.

    Args:
        git: the repository.
        sandbox: where boxes come from.
        cancel: stops preparations.
        in_turn: open and close nothing during a run, because the run is timed.
    """

    def __init__(
        self, git: Git, sandbox: Sandbox, cancel: Event | None = None, *, in_turn: bool = False
    ) -> None:
        self._git, self._sandbox, self._cancel = git, sandbox, cancel
        self._in_turn = in_turn
        self._hands = ContextThreadPool(_POOL_THREADS, thread_name_prefix="regreen-boxes")
        self._lock = Lock()
        self._plain: dict[tuple[object, ...], PreparedEnv] = {}
        self._ahead: dict[tuple[Trial, str], Future[_OpenedBox]] = {}
        self._idle: list[_UsedBox] = []
        self._spare: dict[str, Future[Box]] = {}

    def prepare_environment(self, trial: Trial, sha: str) -> PreparedEnv:
        """The environment of a trial at a commit; requested once if no commit can change it.

        Raises:
            SetupFailed: the setup failed at this commit.
            OutsideError: the sandbox failed.
        """
        key = (trial.python, trial.image, trial.env, trial.trust, trial.scope)
        if trial.setup is None and key in self._plain:
            return self._plain[key]
        env = prepare_environment(
            trial, sha, git=self._git, sandbox=self._sandbox, cancel=self._cancel
        )
        if trial.setup is None:
            self._plain[key] = env
        return env

    def open_ahead(self, trial: Trial, sha: str) -> None:
        """Start to open a fresh box at this commit for a later run."""
        key = (trial, sha)
        with self._lock:
            if key not in self._ahead and not self._in_turn:
                self._ahead[key] = self._hands.submit(self._open_box, trial, sha)

    def expect_search(self, trial: Trial, sha: str) -> None:
        """Start to open an empty box for a search over commits like this one."""
        if trial.setup is not None or self._in_turn:
            return
        env = self.prepare_environment(trial, sha)
        with self._lock:
            if env.image not in self._spare and not self._idle:
                self._spare[env.image] = self._hands.submit(
                    self._sandbox.open, env, (), trial.limits
                )

    def run_trial(self, trial: Trial, sha: str) -> tuple[RunResult, PreparedEnv]:
        """Run the trial at a commit in a box that ran nothing before.

        Raises:
            SetupFailed: the setup failed at this commit.
            OutsideError: the sandbox failed.
        """
        with self._lock:
            ready = self._ahead.pop((trial, sha), None)
        box, env = ready.result() if ready is not None else self._open_box(trial, sha)
        try:
            result = box.run(
                trial_argv(trial), timeout=trial.timeout, env=dict(trial.env), cancel=self._cancel
            )
        finally:
            self._close_box(box)
        return result, env

    def run_again(self, trial: Trial, sha: str) -> tuple[RunResult, PreparedEnv]:
        """Run the trial at a commit in an emptied box that ran other commits, if there is one.

        Raises:
            SetupFailed: the setup failed at this commit.
            OutsideError: the sandbox failed.
        """
        env = self.prepare_environment(trial, sha)
        used = self._take_used_box(env) or _UsedBox(self._take_spare_or_open(env, trial), env)
        used.uses += 1
        keep = False
        try:
            result = used.box.reset_and_run(
                self._git.archive(sha, trial.read_overlay(sha, self._git)),
                trial_argv(trial),
                timeout=trial.timeout,
                env=dict(trial.env),
                cancel=self._cancel,
            )
            keep = result.ended == "exit" and used.uses < _MAX_USES
        finally:
            if keep:
                with self._lock:
                    self._idle.append(used)
            else:
                self._close_box(used.box)
        return result, env

    def close(self) -> None:
        """Close every box, including those that were never used."""
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
        for used in idle:
            self._close_box(used.box)
        self._hands.shutdown()

    def forget_environments(self) -> None:
        """Request environments again: a cached one may have been removed."""
        self._plain.clear()

    def _close_box(self, box: Box) -> None:
        if self._in_turn:
            box.close()
        else:
            self._hands.submit(box.close)

    def _open_box(self, trial: Trial, sha: str) -> _OpenedBox:
        env = self.prepare_environment(trial, sha)
        tree = self._git.archive(sha, trial.read_overlay(sha, self._git))
        return self._sandbox.open(env, tree, trial.limits), env

    def _take_used_box(self, env: PreparedEnv) -> _UsedBox | None:
        """A used box of this environment. If none fits, the others are closed: environments rarely change back."""
        with self._lock:
            fitting = [used for used in self._idle if used.env.image == env.image]
            others = [used for used in self._idle if used.env.image != env.image]
            taken = fitting.pop() if fitting else None
            self._idle = fitting if others else [used for used in self._idle if used is not taken]
        for used in others:
            self._close_box(used.box)
        return taken

    def _take_spare_or_open(self, env: PreparedEnv, trial: Trial) -> Box:
        with self._lock:
            spare = self._spare.pop(env.image, None)
        if spare is not None:
            with suppress(OutsideError):
                return spare.result()
        return self._sandbox.open(env, (), trial.limits)
