"""GitHub's limits on creating content, kept by every process of ours together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from regreen.forge import Paced
from regreen.ports import Clock

Limits = Sequence[tuple[float, int]]
"""Seconds, and how many turns within them."""

Turn = Callable[[str, Limits, float], float]
"""Takes the next turn of a name; the seconds until it comes. Longer than the last argument: none was taken."""

LIMITS: Limits = ((1.0, 1), (60.0, 80), (3600.0, 500))
_LONGEST_WAIT_S = 30.0


class Pace:
    """80 a minute and 500 an hour, one second apart; whoever goes on past them is locked out.

    https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api
    """

    def __init__(self, clock: Clock, turn: Turn, name: str) -> None:
        self._clock = clock
        self._turn = turn
        self._name = name

    def wait(self) -> None:
        """Wait for the turn of one more write.

        Raises:
            Paced: it comes so late that the job had better make room for others.
        """
        wait = self._turn(self._name, LIMITS, _LONGEST_WAIT_S)
        if wait > _LONGEST_WAIT_S:
            msg = f"GitHub allows {LIMITS[-1][1]} writes an hour; the next is due in {wait:.0f} s"
            raise Paced(msg, retry_after=wait)
        if wait > 0:
            self._clock.sleep(wait)


def wait_for(past: Sequence[float], limits: Limits, now: float) -> float:
    """How long the next turn has to wait; `past` are the turns so far, newest first, some in the future."""
    waits = [past[most - 1] + span - now for span, most in limits if len(past) >= most]
    return max(0.0, *waits) if waits else 0.0
