"""What was written to GitHub lately, by its marker: lists lag behind, and a list that lags would have it written twice."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

_MOST = 2000


@dataclass(frozen=True, slots=True)
class Wrote:
    """GitHub's id of it, and how many annotations of a check run it has."""

    id: int
    so_far: str = ""


class Written:
    """Shared by all clients of a process. After a restart GitHub's lists are asked, which have caught up by then."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, ...], Wrote] = OrderedDict()

    def get(self, *key: str) -> Wrote | None:
        """What was written under this key."""
        with self._lock:
            return self._kept.get(key)

    def put(self, wrote: Wrote, *key: str) -> None:
        """Remember it."""
        with self._lock:
            self._kept[key] = wrote
            self._kept.move_to_end(key)
            while len(self._kept) > _MOST:
                self._kept.popitem(last=False)

    def forget(self, *key: str) -> None:
        """It is not there any more."""
        with self._lock:
            self._kept.pop(key, None)
