"""What a bisection has seen, kept before the next step is chosen: a search that is killed walks the same way."""

from __future__ import annotations

from collections.abc import Sequence

from regreen.records import Store


class BisectMemory:
    """Satisfies `bisect.memory.Memory` with the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, key: str) -> Sequence[str]:
        """Every line under `key`, oldest first."""
        return self._store.lines(f"bisect/{key}")

    def append(self, key: str, line: str) -> None:
        """One more line under `key`."""
        self._store.append(f"bisect/{key}", line)
