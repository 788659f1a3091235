"""`regreen serve` with a clock that runs faster: `python -m tests.soak.fast_serve PORT FACTOR`."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime, timedelta

from regreen.app.server import serve
from regreen.app.settings_loader import load_app_settings
from regreen.bot.jobs.log_setup import log_to_stderr


class FastClock:
    """So many seconds a second."""

    def __init__(self, factor: float) -> None:
        self._factor = factor
        self._began = time.monotonic()
        self._at = datetime.now(UTC)

    def now(self) -> datetime:
        """The hastened time."""
        return self._at + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        """The hastened seconds."""
        return (time.monotonic() - self._began) * self._factor

    def sleep(self, seconds: float) -> None:
        """Sleep as much less."""
        time.sleep(seconds / self._factor)


def main() -> None:
    """Serve until a signal ends it."""
    port, factor = int(sys.argv[1]), float(sys.argv[2])
    settings = load_app_settings()
    log_to_stderr(settings.log_format)
    serve(settings, host="127.0.0.1", port=port, clock=FastClock(factor))


if __name__ == "__main__":
    main()
