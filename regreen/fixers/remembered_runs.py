"""Boxes that answer from memory what they answered before, so that an interrupted repair runs nothing twice.

A box is known by its environment, its limits, its tree and the first thing that is asked of it, and by how many such
boxes the repair had before it. Its answers are stored in order. While a later repair asks the same in the same order,
no box is opened; where it asks something else, the box is opened and all that was asked before is done again.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from tempfile import SpooledTemporaryFile
from threading import Event, Lock
from types import TracebackType
from typing import IO, Protocol, Self

from regreen.bisect.verdict_memory import VerdictMemory
from regreen.domain.models import BoxLimits, DoctorCheck, EnvSpec, PreparedEnv, RunResult
from regreen.domain.ports import Box, Sandbox

_RUN_PREFIX = "fix-run:"
_KEPT_DAYS = 14
_SPOOL_BYTES = 16 * 1024**2
_CHUNK_BYTES = 1 << 18
_LISTEN_SECONDS = "REGREEN_LISTEN_SECONDS"
"""A variable that depends on the time that is left, and says nothing of what is run."""


class RunMemory(VerdictMemory, Protocol):
    """A memory that can also forget."""

    def forget(self, start: str, end: str) -> None:
        """Remove the lines under every key from `start` to before `end`."""
        ...


class RepairSession:
    """The runs of one repair, kept until it has an answer; satisfies `VerdictMemory` for them.

    Args:
        memory: where they are kept.
        key: what makes it the same repair.
        fresh: forget what an interrupted one left.
    """

    def __init__(self, memory: RunMemory, key: str, *, fresh: bool = False) -> None:
        self._memory, self._key = memory, key
        today = datetime.now(UTC)
        memory.forget(_RUN_PREFIX, f"{_RUN_PREFIX}{today - timedelta(days=_KEPT_DAYS):%Y%m%d}")
        left = (*memory.get(key), "")[-2 if memory.get(key) else -1]
        self.continues = bool(left) and not fresh
        self._name = left if left and not fresh else f"{today:%Y%m%d}-{uuid.uuid4().hex}"
        if not self.continues:
            memory.forget(f"{_RUN_PREFIX}{left}:", f"{_RUN_PREFIX}{left};")
            memory.append(key, self._name)

    def get(self, key: str) -> Sequence[str]:
        """Every line of this repair under `key`, oldest first."""
        return self._memory.get(f"{_RUN_PREFIX}{self._name}:{key}")

    def append(self, key: str, line: str) -> None:
        """Append one line under `key`."""
        self._memory.append(f"{_RUN_PREFIX}{self._name}:{key}", line)

    def end(self) -> None:
        """Forget the runs, because the repair has its answer."""
        self._memory.append(self._key, "")
        self._memory.forget(f"{_RUN_PREFIX}{self._name}:", f"{_RUN_PREFIX}{self._name};")


class RememberingSandbox:
    """See `ports.Sandbox`; its boxes answer from `memory` what they can."""

    def __init__(self, sandbox: Sandbox, memory: VerdictMemory) -> None:
        self.name = sandbox.name
        self._sandbox, self._memory = sandbox, memory
        self._boxes: Counter[str] = Counter()
        self._lock = Lock()

    def prepare(
        self, spec: EnvSpec, tree: Iterable[bytes], cancel: Event | None = None
    ) -> PreparedEnv:
        """See `ports.Sandbox`: environments are kept by the sandbox itself."""
        return self._sandbox.prepare(spec, tree, cancel)

    def pythons(self) -> tuple[str, ...]:
        """See `ports.Sandbox`."""
        return self._sandbox.pythons()

    def doctor(self) -> list[DoctorCheck]:
        """See `ports.Sandbox`."""
        return self._sandbox.doctor()

    def open(self, env: PreparedEnv, tree: Iterable[bytes], limits: BoxLimits | None = None) -> Box:
        """A box that is opened when it cannot answer from memory; one with a network never can."""
        if limits is not None and limits.network:
            return self._sandbox.open(env, tree, limits)
        spool, digest = _spool_tree(tree)
        about = f"{env.backend} {env.key} {limits} {digest}"

        def find_log(first: str) -> str:
            key = _digest(about, first)
            with self._lock:
                self._boxes[key] += 1
                return f"box:{key}:{self._boxes[key]}"

        def open_box() -> Box:
            return self._sandbox.open(env, _read_chunks(spool), limits)

        return _RememberingBox(open_box, find_log, self._memory, spool)


class _RememberingBox:
    """See `ports.Box`."""

    def __init__(
        self,
        open_box: Callable[[], Box],
        find_log: Callable[[str], str],
        memory: VerdictMemory,
        spool: IO[bytes],
    ) -> None:
        self._open_box, self._find_log, self._memory, self._spool = (
            open_box,
            find_log,
            memory,
            spool,
        )
        self._box: Box | None = None
        self._past: list[Callable[[Box], object]] = []  # what an opened box has to be told again
        self._asked = ""  # a digest of what was asked and written since the last answer
        self._log = ""
        self._answers: list[tuple[str, str]] = []
        self._is_remembered = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """See `ports.Box`."""
        self._spool.close()
        if self._box is not None:
            self._box.close()

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str] | None = None,
        cwd: str = "/work",
        stdin: bytes | None = None,
        cancel: Event | None = None,
    ) -> RunResult:
        """See `ports.Box`. A run that reached a limit is not remembered: another time it may not."""

        def perform(box: Box) -> RunResult:
            return box.run(argv, timeout=timeout, env=env, cwd=cwd, stdin=stdin, cancel=cancel)

        variables = sorted(item for item in (env or {}).items() if item[0] != _LISTEN_SECONDS)
        stored = self._recall(perform, "run", argv, variables, cwd, stdin)
        if stored is not None:
            return RunResult(**json.loads(stored))
        result = perform(self._go_live())
        self._store(json.dumps(asdict(result)) if result.ended == "exit" else None)
        return result

    def reset_and_run(
        self,
        tree: Iterable[bytes],
        argv: Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str] | None = None,
        cancel: Event | None = None,
    ) -> RunResult:
        """See `ports.Box`. Never remembered here: bisections, which alone use it, do that themselves."""
        box = self._go_live()
        self._store(None)
        return box.reset_and_run(tree, argv, timeout=timeout, env=env, cancel=cancel)

    def read(self, path: str, limit: int = 1024 * 1024) -> bytes | None:
        """See `ports.Box`."""

        def perform(box: Box) -> bytes | None:
            return box.read(path, limit)

        stored = self._recall(perform, "read", path, limit)
        if stored is not None:
            content = json.loads(stored)
            return None if content is None else base64.b64decode(content)
        data = perform(self._go_live())
        self._store(json.dumps(None if data is None else base64.b64encode(data).decode("ascii")))
        return data

    def write(self, files: Mapping[str, bytes]) -> None:
        """See `ports.Box`."""
        self._asked = _digest(self._asked, sorted(files.items()))
        if self._box is not None:
            self._box.write(files)
        else:
            kept = dict(files)
            self._past.append(lambda box: box.write(kept))

    def _recall(self, perform: Callable[[Box], object], *question: object) -> str | None:
        """The stored answer; None where there is none, or the box is open already."""
        self._asked = _digest(self._asked, *question)
        if not self._log:
            self._log = self._find_log(self._asked)
            lines = (json.loads(line) for line in self._memory.get(self._log))
            self._answers = [(asked, answer) for asked, answer in lines]
        if self._box is not None or not self._answers:
            return None
        asked, answer = self._answers[0]
        if asked != self._asked:
            self._is_remembered = False  # what is stored behind this would not follow from it
            return None
        del self._answers[0]
        self._past.append(perform)
        self._asked = ""
        return answer

    def _store(self, answer: str | None) -> None:
        """Store what was answered; after something that is not stored nothing can be."""
        self._is_remembered = self._is_remembered and answer is not None
        if self._is_remembered:
            self._memory.append(self._log, json.dumps([self._asked, answer]))
        self._asked = ""

    def _go_live(self) -> Box:
        if self._box is None:
            self._box = self._open_box()
            self._spool.close()
            for perform in self._past:
                perform(self._box)
            self._past.clear()
        return self._box


def _spool_tree(tree: Iterable[bytes]) -> tuple[IO[bytes], str]:
    """A tar stream in a file, to be read later, and its digest."""
    spool = SpooledTemporaryFile(max_size=_SPOOL_BYTES)  # noqa: SIM115 - the box closes it
    digest = sha256()
    for chunk in tree:
        digest.update(chunk)
        spool.write(chunk)
    return spool, digest.hexdigest()


def _read_chunks(spool: IO[bytes]) -> Iterator[bytes]:
    spool.seek(0)
    while chunk := spool.read(_CHUNK_BYTES):
        yield chunk


def _digest(*parts: object) -> str:
    return sha256(repr(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]
