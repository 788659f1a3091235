"""GitHub's latest answers with their ETags: an unchanged one costs no request of the rate limit."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_MAX_ENTRIES = 200
_MAX_ENTRY_BYTES = 48 * 1024
_MAX_TOTAL_BYTES = 1024 * 1024

CacheKey = tuple[str, ...]
CachedAnswer = tuple[Mapping[str, str], Any]


class EtagCache:
    """Small recent answers, shared by all clients of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[CacheKey, tuple[str, CachedAnswer]] = OrderedDict()
        self._sizes: dict[CacheKey, int] = {}

    def get(self, key: CacheKey) -> tuple[str, CachedAnswer] | None:
        """The ETag and the answer."""
        with self._lock:
            return self._kept.get(key)

    def put(self, key: CacheKey, answer: CachedAnswer) -> None:
        """Store an answer that has an ETag and is not large."""
        headers, data = answer
        tag = headers.get("etag")
        if not tag or data is None or (size := len(json.dumps(data))) > _MAX_ENTRY_BYTES:
            return
        with self._lock:
            self._kept[key] = (tag, answer)
            self._kept.move_to_end(key)
            self._sizes[key] = size
            while len(self._kept) > _MAX_ENTRIES or sum(self._sizes.values()) > _MAX_TOTAL_BYTES:
                oldest, _ = self._kept.popitem(last=False)
                del self._sizes[oldest]


# Recent writes to GitHub by their marker: lists lag behind, and a lagging list would lead to a second write.

_MAX_REMEMBERED_WRITES = 2000


@dataclass(frozen=True, slots=True)
class WriteRecord:
    """GitHub's id of the write, and the number of annotations of a check run."""

    id: int
    so_far: str = ""


class WriteCache:
    """Shared by all clients of a process. After a restart GitHub's lists are read, which are up to date by then."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, ...], WriteRecord] = OrderedDict()

    def get(self, *key: str) -> WriteRecord | None:
        """The write under this key."""
        with self._lock:
            return self._kept.get(key)

    def put(self, wrote: WriteRecord, *key: str) -> None:
        """Store a write."""
        with self._lock:
            self._kept[key] = wrote
            self._kept.move_to_end(key)
            while len(self._kept) > _MAX_REMEMBERED_WRITES:
                self._kept.popitem(last=False)

    def forget(self, *key: str) -> None:
        """Forget a write whose object is gone."""
        with self._lock:
            self._kept.pop(key, None)
