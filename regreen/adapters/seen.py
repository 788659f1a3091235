"""What GitHub answered lately, with its ETag: asked again, it says "not modified", and that does not count as a request."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

_MOST = 200
_LARGEST = 48 * 1024
_ALTOGETHER = 1024 * 1024

Key = tuple[str, ...]
Answer = tuple[Mapping[str, str], Any]


class Seen:
    """Small answers, the latest ones, shared by all clients of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[Key, tuple[str, Answer]] = OrderedDict()
        self._sizes: dict[Key, int] = {}

    def get(self, key: Key) -> tuple[str, Answer] | None:
        """The ETag and the answer."""
        with self._lock:
            return self._kept.get(key)

    def put(self, key: Key, answer: Answer) -> None:
        """Remember an answer that has an ETag and is not large."""
        headers, data = answer
        tag = headers.get("etag")
        if not tag or data is None or (size := len(json.dumps(data))) > _LARGEST:
            return
        with self._lock:
            self._kept[key] = (tag, answer)
            self._kept.move_to_end(key)
            self._sizes[key] = size
            while len(self._kept) > _MOST or sum(self._sizes.values()) > _ALTOGETHER:
                oldest, _ = self._kept.popitem(last=False)
                del self._sizes[oldest]
