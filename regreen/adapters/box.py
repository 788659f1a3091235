"""One box, whatever holds it: runs commands under watch, kills it whole, and never trusts what comes out.

What differs between Docker and bubblewrap is behind `Cell`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from secrets import token_hex
from threading import Event, Thread
from types import TracebackType
from typing import Self

from regreen.adapters import boxes, scripts
from regreen.adapters.cell import Cell, CellGoneError, Running
from regreen.adapters.relay import Relay, start_relay
from regreen.adapters.watch import Stream, Tap, watch
from regreen.errors import Cancelled, OutsideError, UserError
from regreen.models import Ended, Limits, RunResult


class CellBox:
    """See `ports.Box`."""

    def __init__(
        self, cell: Cell, limits: Limits, variables: Mapping[str, str] | None = None
    ) -> None:
        self.cell = cell
        self._variables = dict(variables or {})
        self._limits = limits
        self._ooms = 0
        self._dead = ""
        self._cancelled = False
        self._relay: Relay | None = None
        self._asked_for_relay = cell.quick

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str] | None = None,
        cwd: str = scripts.WORK,
        stdin: bytes | None = None,
        cancel: Event | None = None,
    ) -> RunResult:
        """Run one command; see `ports.Box.run`.

        Raises:
            Cancelled: an earlier command of this box was cancelled.
            OutsideError: this box is gone.
            UserError: the command cannot be run anywhere (empty, or with a NUL byte).
        """
        boxes.check_command(argv, env or {})
        return self.execute(
            boxes.in_shell(argv, cwd),
            timeout=timeout,
            env=env or {},
            stdin=None if stdin is None else (stdin,),
            cancel=cancel,
        )

    def execute(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str],
        stdin: Iterable[bytes] | None = None,
        cancel: Event | None = None,
        tap: Tap | None = None,
    ) -> RunResult:
        """Run argv as it is, a stream on its standard input, its output into `tap`."""
        self._refuse_if_dead()
        begun = time.monotonic()
        tap = tap or Tap(self._limits.output, self._limits.flood)
        if cancel is not None and cancel.is_set():
            self._kill("cancelled")
            return boxes.result("cancelled", None, tap, begun, "cancelled before it began")
        try:
            running = self.cell.start(
                argv,
                boxes.environment(self.cell.path) | self._variables | dict(env),
                stdin is not None,
            )
        except CellGoneError as error:
            return self._gone(tap, begun, f"the command could not be started: {error}")
        tap.start(running.chunks())
        feeder = _Feeder(running, stdin)
        ended = self._watched(running, tap, begun, timeout=timeout, cancel=cancel)
        if ended.ended not in boxes.WHY:
            feeder.raise_if_failed()
        return ended

    def _watched(
        self, running: Running, tap: Tap, begun: float, *, timeout: float, cancel: Event | None
    ) -> RunResult:
        """Wait for a command; what ends it before it has ended takes the box along."""
        why = watch(tap, timeout=timeout, cancel=cancel, has_exited=lambda: _has_exited(running))
        if why is not None:
            self._kill(why)
            tap.join(5.0)
            return boxes.result(why, None, tap, begun, boxes.WHY[why])
        return self._ended(running, tap, begun)

    def afresh(
        self,
        tree: Iterable[bytes],
        argv: Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str] | None = None,
        cancel: Event | None = None,
    ) -> RunResult:
        """Empty the box, lay `tree` out in it, and run one command; see `ports.Box.afresh`.

        Raises:
            Cancelled: an earlier command of this box was cancelled.
            OutsideError: this box is gone, or could not be made new.
        """
        boxes.check_command(argv, env or {})
        self._refuse_if_dead()
        mark = token_hex(16)
        since = time.monotonic()
        tap = Tap(self._limits.output, self._limits.flood)
        try:
            running = self._start_afresh(mark, argv, self._variables | dict(env or {}))
        except CellGoneError as error:
            return self._gone(tap, since, f"the command could not be started: {error}")
        begun = _Begun(mark)
        tap.start(begun.behind(running.chunks()))
        feeder = _Feeder(running, tree)
        if not begun.wait(tap.news, boxes.HELPER_TIMEOUT_S, cancel):
            feeder.raise_if_failed()
            self._kill("cancelled" if cancel is not None and cancel.is_set() else "timeout")
            if self._cancelled:
                return boxes.result("cancelled", None, tap, since, boxes.WHY["cancelled"])
            message = (
                f"the box could not be made new: {tap.out.text()[-200:]}{tap.err.text()[-300:]}"
            )
            raise OutsideError(message)
        return self._watched(running, tap, begun.at, timeout=timeout, cancel=cancel)

    def _start_afresh(self, mark: str, argv: Sequence[str], env: Mapping[str, str]) -> Running:
        """Start our script, through an agent in the box where the engine's own way takes long."""
        if not self._asked_for_relay:
            self._asked_for_relay = True
            self._relay = start_relay(self.cell)
        own = boxes.environment(self.cell.path)
        if self._relay is None:
            return self.cell.start(boxes.afresh(mark, argv, env, kills=True), own, True)
        self._relay.clear()
        return self._relay.start(boxes.afresh(mark, argv, env, kills=False), own, True)

    def read(self, path: str, limit: int = 1024 * 1024) -> bytes | None:
        """The first bytes of a regular file in the box; see `ports.Box.read`."""
        self._refuse_if_dead()
        if not boxes.can_be_read(path, limit):
            return None
        tap = Tap(limit, limit + 65536)
        read = self.execute(
            boxes.reading(path, limit), timeout=boxes.HELPER_TIMEOUT_S, env={}, tap=tap
        )
        return tap.out.bytes() if read.passed else None

    def write(self, files: Mapping[str, bytes]) -> None:
        """Put files into the box; see `ports.Box.write`.

        Raises:
            UserError: a path leads out of /work, or there is no room.
            OutsideError: the box could not take them (a folder is in the way).
        """
        self._unpack(["/bin/sh", "-c", scripts.WRITE], (boxes.pack(files),))

    def lay_out(self, tree: Iterable[bytes], *, from_setup: bool) -> None:
        """Put the tree at /work, with what the environment's setup had left there.

        Raises:
            UserError: there is no room for it.
            OutsideError: the box could not take it.
        """
        tar = boxes.begun(tree)
        if tar is not None or from_setup:
            kind = "none" if tar is None else "tree"
            self._unpack(["/bin/sh", "-c", scripts.UNPACK, "sh", kind], tar)

    def lay_out_file(self, path: str) -> None:
        """As `lay_out`, with the tar as a file that the box can see."""
        self._unpack(["/bin/sh", "-c", scripts.UNPACK, "sh", "tree", path], None)

    def _unpack(self, argv: Sequence[str], tar: Iterable[bytes] | None) -> None:
        """Run a script of ours that takes a tar stream; anything but exit 0 is an error."""
        done = self.execute(argv, timeout=boxes.HELPER_TIMEOUT_S, env={}, stdin=tar)
        if not done.passed:
            said = " ".join((done.stderr or done.stdout or done.detail).split())[-300:]
            if done.ended == "oom" or "No space left" in said or "Wrote only" in said:
                message = (
                    f"the tree does not fit into the box; give it more disk or memory ({said})"
                )
                raise UserError(message)
            message = f"files could not be put into the box ({done.ended}): {said}"
            raise OutsideError(message)

    def close(self) -> None:
        """Kill whatever runs and leave nothing behind."""
        self._dead = self._dead or "it was closed"
        self.cell.destroy()

    def _ended(self, running: Running, tap: Tap, begun: float) -> RunResult:
        try:
            code = running.exit_code()
        except CellGoneError:
            return self._gone(tap, begun, "the box ended while the command ran")
        if code != 0 and self._oom_happened():
            return boxes.result("oom", None, tap, begun, boxes.out_of_memory(self._limits))
        return boxes.result("exit", code, tap, begun)

    def _oom_happened(self) -> bool:
        count = self.cell.oom_kills()
        happened = count > self._ooms
        self._ooms = max(count, self._ooms)
        return happened

    def _gone(self, tap: Tap, begun: float, detail: str) -> RunResult:
        """The cell ended though we did not end it: by its memory limit, or by somebody else."""
        ended: Ended = "infra"
        if self._oom_happened() or self.cell.died_of_memory():
            ended, detail = "oom", boxes.out_of_memory(self._limits)
        self._dead = self._dead or detail
        self.cell.destroy()
        return boxes.result(ended, None, tap, begun, detail)

    def _kill(self, why: Ended) -> None:
        self._dead = boxes.WHY[why]
        self._cancelled = why == "cancelled"
        self.cell.destroy()

    def _refuse_if_dead(self) -> None:
        if self._cancelled:
            msg = "this box was cancelled; nothing can run in it any more"
            raise Cancelled(msg)
        if self._dead:
            message = f"this box is gone: {self._dead}"
            raise OutsideError(message)


class _Begun:
    """Tells when the mark has been printed: what comes before it is ours, what follows is the command's."""

    def __init__(self, mark: str) -> None:
        self.at = 0.0
        self._mark = f"{mark}\n".encode()
        self._seen = Event()

    def behind(self, chunks: Iterable[tuple[Stream, bytes]]) -> Iterator[tuple[Stream, bytes]]:
        """The stream, without the mark."""
        head = b""
        for stream, chunk in chunks:
            if stream == 2 or self._seen.is_set():
                yield stream, chunk
                continue
            head += chunk
            if head.startswith(self._mark):
                self.at = time.monotonic()
                self._seen.set()
                yield stream, head[len(self._mark) :]
            elif not self._mark.startswith(head):
                yield stream, head
                head = b""

    def wait(self, ended: Event, timeout: float, cancel: Event | None) -> bool:
        """Whether it came, before the stream's end, a cancel, or the time is up."""
        deadline = time.monotonic() + timeout
        while not self._seen.wait(0.05):
            if ended.is_set() or (cancel is not None and cancel.is_set()):
                break
            if time.monotonic() >= deadline:
                break
        return self._seen.is_set()


class _Feeder:
    """Sends standard input from a thread of its own, so that a command that does not read cannot block us."""

    def __init__(self, running: Running, chunks: Iterable[bytes] | None) -> None:
        self._error: Exception | None = None
        if chunks is not None:
            Thread(
                target=self._send, args=(running, chunks), daemon=True, name="regreen-feed"
            ).start()

    def raise_if_failed(self) -> None:
        """Let an error of the stream's own source (git, a file of the tree) reach the caller."""
        if self._error is not None:
            raise self._error

    def _send(self, running: Running, chunks: Iterable[bytes]) -> None:
        try:
            running.feed(chunks)
        except Exception as error:  # noqa: BLE001 - carried over to the thread that waits
            self._error = error
            with suppress(OSError):
                running.feed(())


def _has_exited(running: Running) -> bool:
    try:
        return running.exit_code() is not None
    except CellGoneError:
        return True
