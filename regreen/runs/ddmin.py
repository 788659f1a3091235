"""Delta debugging (Zeller's ddmin): the part of a list that is needed, with no item that can be left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
SubsetTest = Callable[[Sequence[Sequence[Item]]], list[bool]]
"""Tries several parts at once, in their order. It may stop after the first that holds, or where time ran out."""


def minimize_in_batches(
    items: Sequence[Item], test: SubsetTest[Item], *, parts_alone: bool = True
) -> list[Item]:
    """The items that still test true, from which none can be left out.

    Args:
        items: what is there. All together must test true; otherwise the answer does, unless it is all of them again.
        test: tries a batch of parts.
        parts_alone: try each part by itself too, not only all the others without it: a quick way to few items,
            worth it where a batch costs little more than one run.
    """
    current = list(items)
    pieces = 2
    while len(current) > 1:
        size = max(1, len(current) // pieces)
        starts = range(0, len(current), size)
        parts = [current[at : at + size] for at in starts] if parts_alone else []
        others = [current[:at] + current[at + size :] for at in starts]
        options = parts if len(parts) == 2 else [*parts, *others]
        verdicts = test(options)
        hit = next((number for number, holds in enumerate(verdicts) if holds), None)
        if hit is not None:
            current = options[hit]
            pieces = 2 if hit < len(parts) else max(2, pieces - 1)
        elif size == 1 or len(verdicts) < len(options):
            break
        else:
            pieces = min(len(current), pieces * 2)
    return current


def minimize_items(
    items: Sequence[Item], still_fails: Callable[[Sequence[Item]], bool]
) -> list[Item]:
    """The items without which it no longer fails, found one run at a time.

    Args:
        items: what is there; all together must fail.
        still_fails: tries a part of them, in their order.
    """
    if items and still_fails([]):
        return []

    def test_in_turn(options: Sequence[Sequence[Item]]) -> list[bool]:
        verdicts: list[bool] = []
        for option in options:
            verdicts.append(still_fails(option))
            if verdicts[-1]:
                break
        return verdicts

    return minimize_in_batches(items, test_in_turn, parts_alone=False)
