"""What a bisection has seen, kept before the next step is chosen: a search that is killed walks the same way."""

from __future__ import annotations

from collections.abc import Sequence

from regreen.bot.running import Job


class BisectMemory:
    """Satisfies `bisect.memory.Memory` with the store."""

    def __init__(self, job: Job) -> None:
        self._store = job.store
        self._job = job

    def get(self, key: str) -> Sequence[str]:
        """Every line under `key`, oldest first."""
        return self._store.lines(f"bisect/{key}")

    def append(self, key: str, line: str) -> None:
        """One more line under `key`."""
        self._store.append(f"bisect/{key}", line)
        self._job.got_further()
