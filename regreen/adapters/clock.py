"""The real time."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class SystemClock:
    """Satisfies `ports.Clock` with the machine's clock."""

    def now(self) -> datetime:
        """The time now, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds of a monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)
