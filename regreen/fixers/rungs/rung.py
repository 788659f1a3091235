"""What every rung of the ladder offers."""

from __future__ import annotations

from typing import Protocol

from regreen.fixers.case import Case, Climbed, Judge, RungName


class Rung(Protocol):
    """One way of making a failing command pass."""

    @property
    def name(self) -> RungName:
        """The name it has in reports and in the configuration."""
        ...

    def climb(self, case: Case, judge: Judge) -> Climbed:
        """Propose patches to `judge` until one stands or nothing is left to try."""
        ...
