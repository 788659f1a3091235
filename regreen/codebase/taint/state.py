"""What holds at one point of a program: names, objects on the heap, and what was checked of tainted values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from regreen.codebase.taint.values import (
    EVERYTHING,
    NOTHING,
    Key,
    Mark,
    Thing,
    Value,
    join,
    made_safe,
)

if TYPE_CHECKING:
    from regreen.codebase.taint.answers import Answer

MOST_ITEMS = 64
Facts = Mapping[Mark, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Heaped:
    """A mutable object. `items` None: the order is lost and `rest` stands for every element.

    `entries` are attributes, dictionary entries and the like; `rest` is what an unknown key may give.
    `filled` says that something is surely in it, though it may not be known what.
    """

    kind: str
    of: Thing | None = None
    items: tuple[Value, ...] | None = ()
    entries: Mapping[Key, Value] = field(default_factory=dict)
    rest: Value = NOTHING
    filled: bool = False

    def with_entry(self, key: Key, value: Value) -> Heaped:
        """The object with one entry set."""
        if len(self.entries) >= MOST_ITEMS and key not in self.entries:
            return replace(self, rest=join(self.rest, value))
        return replace(self, entries={**self.entries, key: value})

    @property
    def emptiness(self) -> bool | None:
        """Whether a list, a dictionary or a set is empty; None when both can be."""
        if self.filled or self.items:
            return False
        return True if self.items == () and not self.entries and self.rest == NOTHING else None

    def anything(self) -> Value:
        """What any of its elements may be."""
        return join(self.rest, *(self.items or ()), *self.entries.values())


def join_heaped(one: Heaped, other: Heaped) -> Heaped:
    """An object that is one of these two."""
    if one is other or one == other:
        return one
    keys = {**one.entries, **other.entries}
    missing = one.rest if one.rest != NOTHING else NOTHING
    entries = {
        key: join(one.entries.get(key, missing), other.entries.get(key, other.rest)) for key in keys
    }
    rest = join(one.rest, other.rest)
    filled = one.emptiness is False and other.emptiness is False
    if one.items is not None and other.items is not None and len(one.items) == len(other.items):
        items = tuple(join(a, b) for a, b in zip(one.items, other.items, strict=True))
        return Heaped(one.kind, one.of, items, entries, rest, filled)
    rest = join(rest, *(one.items or ()), *(other.items or ()))
    return Heaped(one.kind, one.of, None, entries, rest, filled)


@dataclass(slots=True)
class State:
    """One path's knowledge. Mutable while a path is walked; `fork` before taking two ways."""

    names: dict[str, Value]
    heap: dict[Key, Heaped]
    checked: dict[Mark, frozenset[str]]
    shared: Mapping[Key, Heaped]
    answers: dict[str, Answer] = field(default_factory=dict)

    def fork(self) -> State:
        """A copy to walk another way with."""
        return State(
            dict(self.names), dict(self.heap), dict(self.checked), self.shared, dict(self.answers)
        )

    def at(self, key: Key) -> Heaped | None:
        """The object of this key, made here or by a module's body."""
        found = self.heap.get(key)
        return self.shared.get(key) if found is None else found

    def frame(self, names: dict[str, Value]) -> State:
        """The state inside a function that is called here."""
        return State(names, self.heap, self.checked, self.shared)

    def take(self, other: State) -> None:
        """Become what `other` is."""
        self.names, self.heap, self.checked = other.names, other.heap, other.checked
        self.answers = other.answers

    def check(self, mark: Mark, classes: frozenset[str]) -> None:
        """Remember that what this mark stands for was found harmless for these sinks."""
        self.checked[mark] = self.checked.get(mark, frozenset()) | classes

    def baked(self, value: Value) -> Value:
        """The value with everything that was checked of it."""
        if not self.checked or not value.taints:
            return value
        kept = set()
        for taint in value.taints:
            safe = taint.safe
            for length in range(1, len(taint.mark) + 1):
                safe |= self.checked.get(taint.mark[:length], frozenset())
            if EVERYTHING not in safe:
                kept.add(taint if safe == taint.safe else replace(taint, safe=safe))
        if not kept:
            return made_safe(value, frozenset({EVERYTHING}))
        return replace(value, taints=frozenset(kept))


def both_checked(one: Facts, other: Facts) -> dict[Mark, frozenset[str]]:
    """What was checked on each of two ways."""
    return {
        mark: both
        for mark, classes in one.items()
        if (both := _both(classes, other.get(mark, frozenset())))
    }


def _both(one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    if EVERYTHING in one:
        return other
    if EVERYTHING in other:
        return one
    return one & other
