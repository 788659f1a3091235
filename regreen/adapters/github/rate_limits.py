"""GitHub's limits on creating content, kept by all our processes together.

Apart from the requester, since the store of the web process counts the turns, and that process loads no client.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from regreen.domain.github import RateLimited
from regreen.domain.ports import Clock

RateLimits = Sequence[tuple[float, int]]
"""Seconds, and how many turns within them."""

TakeTurn = Callable[[str, RateLimits, float], float]
"""Takes the next turn of a name; the seconds until it comes. Longer than the last argument: none was taken."""

CONTENT_LIMITS: RateLimits = ((1.0, 1), (60.0, 80), (3600.0, 500))
_LONGEST_WAIT_S = 30.0


class WritePacer:
    """80 writes a minute and 500 an hour, one second apart; GitHub blocks clients that exceed them.

    https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api
    """

    def __init__(self, clock: Clock, turn: TakeTurn, name: str) -> None:
        self._clock = clock
        self._turn = turn
        self._name = name

    def wait_turn(self) -> None:
        """Wait for the turn of one more write.

        Raises:
            RateLimited: the turn comes so late that the job should make room for others.
        """
        wait = self._turn(self._name, CONTENT_LIMITS, _LONGEST_WAIT_S)
        if wait > _LONGEST_WAIT_S:
            msg = f"GitHub allows {CONTENT_LIMITS[-1][1]} writes an hour; the next is due in {wait:.0f} s"
            raise RateLimited(msg, retry_after=wait)
        if wait > 0:
            self._clock.sleep(wait)


def seconds_until_next_turn(past: Sequence[float], limits: RateLimits, now: float) -> float:
    """How long the next turn has to wait; `past` are the earlier turns, newest first, some in the future."""
    waits = [past[most - 1] + span - now for span, most in limits if len(past) >= most]
    return max(0.0, *waits) if waits else 0.0
