"""Keeps the head and the tail of a stream that may be endless, in bounded memory."""

from __future__ import annotations

_NOTICE = "\n[... {} bytes left out ...]\n"


class HeadAndTail:
    """Takes bytes without end, keeps the first and the last half of `limit`."""

    def __init__(self, limit: int) -> None:
        self.seen = 0
        self._limit = max(limit, 0)
        self._head_room = self._limit - self._limit // 2
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        self.seen += len(chunk)
        room = self._head_room - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        # Trimmed only now and then: cutting at each chunk would copy the tail every time.
        if len(self._tail) > 2 * self._limit + 65536:
            self._trim()

    @property
    def truncated(self) -> bool:
        """Something had to be left out."""
        return self.seen > self._limit

    def bytes(self) -> bytes:
        """What was kept, with a notice where the middle is missing; never longer than the limit."""
        self._trim()
        if not self.truncated:
            return bytes(self._head + self._tail)
        room = self._limit - len(_NOTICE.format(self.seen))
        notice = _NOTICE.format(self.seen - room).encode()
        if room <= len(_NOTICE) // 2:
            return bytes(self._head[: self._limit])
        back = room // 2
        return bytes(self._head[: room - back] + notice + self._tail[len(self._tail) - back :])

    def text(self) -> str:
        """What was kept, as UTF-8 text with undecodable bytes replaced."""
        return self.bytes().decode("utf-8", errors="replace")

    def _trim(self) -> None:
        keep = self._limit // 2
        if len(self._tail) > keep:
            del self._tail[: len(self._tail) - keep]
