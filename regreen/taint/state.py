"""What holds at one point of a program: names, objects on the heap, what was checked of tainted values; and how ways are joined."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from regreen.taint.values import (
    BOTTOM,
    EVERY_SINK,
    TOP,
    AbstractValue,
    AccessPath,
    Key,
    Reference,
    Taint,
    join_values,
    mark_safe,
    project_part,
)

MAX_ITEMS = 64
CheckedFacts = Mapping[AccessPath, frozenset[str]]


@dataclass(frozen=True, slots=True)
class HeapObject:
    """A mutable object. `items` None: the order is lost and `rest` stands for every element.

    `entries` are attributes, dictionary entries and the like; `rest` is what an unknown key may give.
    `filled` says that something is surely in it, though it may not be known what.
    """

    kind: str
    of: Reference | None = None
    items: tuple[AbstractValue, ...] | None = ()
    entries: Mapping[Key, AbstractValue] = field(default_factory=dict)
    rest: AbstractValue = BOTTOM
    filled: bool = False

    def with_entry(self, key: Key, value: AbstractValue) -> HeapObject:
        """The object with one entry set."""
        if len(self.entries) >= MAX_ITEMS and key not in self.entries:
            return replace(self, rest=join_values(self.rest, value))
        return replace(self, entries={**self.entries, key: value})

    @property
    def known_emptiness(self) -> bool | None:
        """Whether a list, a dictionary or a set is empty; None when both can be."""
        if self.filled or self.items:
            return False
        return True if self.items == () and not self.entries and self.rest == BOTTOM else None

    def any_element(self) -> AbstractValue:
        """What any of its elements may be."""
        return join_values(self.rest, *(self.items or ()), *self.entries.values())


def _join_heap_objects(left: HeapObject, right: HeapObject) -> HeapObject:
    """An object that is one of these two."""
    if left is right or left == right:
        return left
    keys = {**left.entries, **right.entries}
    missing = left.rest if left.rest != BOTTOM else BOTTOM
    entries = {
        key: join_values(left.entries.get(key, missing), right.entries.get(key, right.rest))
        for key in keys
    }
    rest = join_values(left.rest, right.rest)
    filled = left.known_emptiness is False and right.known_emptiness is False
    if left.items is not None and right.items is not None and len(left.items) == len(right.items):
        items = tuple(join_values(a, b) for a, b in zip(left.items, right.items, strict=True))
        return HeapObject(left.kind, left.of, items, entries, rest, filled)
    rest = join_values(rest, *(left.items or ()), *(right.items or ()))
    return HeapObject(left.kind, left.of, None, entries, rest, filled)


@dataclass(slots=True)
class AbstractState:
    """The state of one path. Mutable while the path is executed; `fork` it at a branch."""

    names: dict[str, AbstractValue]
    heap: dict[Key, HeapObject]
    checked: dict[AccessPath, frozenset[str]]
    shared: Mapping[Key, HeapObject]
    answers: dict[str, HelperAnswer] = field(default_factory=dict)

    def fork(self) -> AbstractState:
        """A copy to walk another way with."""
        return AbstractState(
            dict(self.names), dict(self.heap), dict(self.checked), self.shared, dict(self.answers)
        )

    def find_object(self, key: Key) -> HeapObject | None:
        """The object of this key, made here or by a module's body."""
        found = self.heap.get(key)
        return self.shared.get(key) if found is None else found

    def known_elements(self, value: AbstractValue) -> tuple[AbstractValue, ...] | None:
        """The items of a list whose every item is known in order; None otherwise."""
        handles = value.heap_keys()
        if value.taints or len(handles) != 1 or len(value.things) != 1:
            return None
        heap_object = self.find_object(handles[0])
        if heap_object is None or heap_object.kind not in {"list", "tuple", "set"}:
            return None
        return heap_object.items

    def any_element(self, value: AbstractValue) -> AbstractValue:
        """What any element may be."""
        found = [heap_object.any_element() for heap_object in self.find_objects(value)]
        if value.taints:
            found.append(project_part(value, "element"))
        return join_values(*found) if found else TOP

    def collect_taints(self, *values: AbstractValue, depth: int = 0) -> frozenset[Taint]:
        """The taints of these values and of everything in them."""
        taints = frozenset[Taint]().union(
            *(self.with_checks_applied(value).taints for value in values)
        )
        if depth > 3:
            return taints
        held = [
            heap_object.any_element()
            for value in values
            for heap_object in self.find_objects(value)
        ]
        return taints | self.collect_taints(*held, depth=depth + 1) if held else taints

    def find_objects(self, value: AbstractValue) -> list[HeapObject]:
        """The objects that a value may be."""
        found = (self.find_object(key) for key in value.heap_keys())
        return [heap_object for heap_object in found if heap_object is not None]

    def make_callee_state(self, names: dict[str, AbstractValue]) -> AbstractState:
        """The state inside a function that is called here."""
        return AbstractState(names, self.heap, self.checked, self.shared)

    def replace_with(self, other: AbstractState) -> None:
        """Become what `other` is."""
        self.names, self.heap, self.checked = other.names, other.heap, other.checked
        self.answers = other.answers

    def mark_checked(self, mark: AccessPath, classes: frozenset[str]) -> None:
        """Record that the value of this mark was found harmless for these sinks."""
        self.checked[mark] = self.checked.get(mark, frozenset()) | classes

    def with_checks_applied(self, value: AbstractValue) -> AbstractValue:
        """The value with everything that was checked of it."""
        if not self.checked or not value.taints:
            return value
        harmful = set()
        for taint in value.taints:
            safe = taint.safe
            for length in range(1, len(taint.mark) + 1):
                safe |= self.checked.get(taint.mark[:length], frozenset())
            if EVERY_SINK not in safe:
                harmful.add(taint if safe == taint.safe else replace(taint, safe=safe))
        if not harmful:
            return mark_safe(value, frozenset({EVERY_SINK}))
        return replace(value, taints=frozenset(harmful))


def _join_facts(left: CheckedFacts, right: CheckedFacts) -> dict[AccessPath, frozenset[str]]:
    """What was checked on each of two ways."""
    return {
        mark: both
        for mark, classes in left.items()
        if (both := _intersect_sinks(classes, right.get(mark, frozenset())))
    }


def _intersect_sinks(left: frozenset[str], right: frozenset[str]) -> frozenset[str]:
    if EVERY_SINK in left:
        return right
    if EVERY_SINK in right:
        return left
    return left & right


@dataclass(frozen=True, slots=True)
class HelperAnswer:
    """What was checked if the result is true, and if it is false.

    `parts` says the same of each element of an answer such as `(ok, message)`.
    """

    yes: CheckedFacts = field(default_factory=dict)
    no: CheckedFacts = field(default_factory=dict)
    parts: tuple[HelperAnswer, ...] = ()

    def __bool__(self) -> bool:
        """Whether it holds any check."""
        return bool(self.yes or self.no or any(self.parts))


def summarize_returns(
    ways: Sequence[tuple[bool | None, Sequence[bool | None], AbstractState]],
) -> HelperAnswer:
    """The answer of a function, by its returns: truth, truth of each element, what holds there."""
    yes = _intersect_facts(way.checked for verdict, _, way in ways if verdict is not False)
    no = _intersect_facts(way.checked for verdict, _, way in ways if verdict is not True)
    width = min((len(parts) for _, parts, _ in ways), default=0)
    parts = tuple(
        summarize_returns([(each[n], (), way) for _, each, way in ways]) for n in range(width)
    )
    return HelperAnswer(yes, no, parts)


def _intersect_facts(checked: Iterable[CheckedFacts]) -> CheckedFacts:
    """What was checked on every path; an impossible result implies nothing."""
    found: CheckedFacts | None = None
    for facts in checked:
        found = facts if found is None else _join_facts(found, facts)
    return dict(found or {})


def record_checked_facts(facts: CheckedFacts, state: AbstractState) -> None:
    """Let the state know what was checked."""
    for mark, classes in facts.items():
        state.mark_checked(mark, classes)


def find_new_facts(
    before: AbstractState, after: AbstractState | None
) -> dict[AccessPath, frozenset[str]]:
    """What was checked between two states."""
    if after is None:
        return {}
    return {m: c for m, c in after.checked.items() if before.checked.get(m) != c}


def find_tested_expression(test: ast.expr) -> tuple[ast.expr, bool | None, bool | None]:
    """The expression whose truth is tested, and its value if the test holds and if it fails.

    `check(x) is None` asks `check(x)`: where it holds, that is false; where it fails, that is true.
    """
    holds: bool | None = True
    fails: bool | None = False
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        other = test.comparators[0]
        if isinstance(other, ast.Constant) and (
            other.value is None or other.value in {True, False}
        ):
            same = bool(other.value)
            holds, fails = same, not same
            if isinstance(test.ops[0], ast.IsNot | ast.NotEq):
                holds, fails = fails, holds
            elif not isinstance(test.ops[0], ast.Is | ast.Eq):
                return test, None, None
            test = test.left
    while isinstance(test, ast.Await | ast.NamedExpr):
        test = test.value
    return test, holds, fails


def join_states(states: list[AbstractState]) -> AbstractState | None:
    """What holds where several ways meet; None when no way leads here."""
    if not states:
        return None
    first = states[0]
    for other in states[1:]:
        first = _join_pair(first, other)
    return first


def _join_pair(left: AbstractState, right: AbstractState) -> AbstractState:
    if left is right:
        return left
    differs = left.checked != right.checked
    names = (
        {name: left.with_checks_applied(value) for name, value in left.names.items()}
        if differs
        else dict(left.names)
    )
    for name, value in right.names.items():
        mine = names.get(name)
        if mine is value:
            continue
        theirs = right.with_checks_applied(value) if differs else value
        names[name] = theirs if mine is None else join_values(mine, theirs)
    heap = dict(left.heap)
    for key, heap_object in right.heap.items():
        here = heap.get(key)
        if here is not heap_object:  # nearly all are the same on both ways
            heap[key] = heap_object if here is None else _join_heap_objects(here, heap_object)
    answers = {n: a for n, a in left.answers.items() if right.answers.get(n) is a}
    if differs:
        answers |= _infer_answers(left, right)
    return AbstractState(
        names, heap, _join_facts(left.checked, right.checked), left.shared, answers
    )


def _infer_answers(left: AbstractState, right: AbstractState) -> dict[str, HelperAnswer]:
    """The names that are true on one way and false on the other: `errors` is empty only where nothing was wrong."""
    found: dict[str, HelperAnswer] = {}
    for name, mine in left.names.items():
        theirs = right.names.get(name)
        if theirs is None or mine.taints or theirs.taints:
            continue
        verdicts = (_truth_in_state(left, mine), _truth_in_state(right, theirs))
        if verdicts in {(None, None), (True, True), (False, False)}:
            continue
        yes = _facts_implied_by_truth(name, True, verdicts, left, right)
        no = _facts_implied_by_truth(name, False, verdicts, left, right)
        if yes or no:
            found[name] = HelperAnswer(yes, no)
    return found


def _facts_implied_by_truth(
    name: str,
    wanted: bool,
    verdicts: tuple[bool | None, bool | None],
    left: AbstractState,
    right: AbstractState,
) -> CheckedFacts:
    """What holds wherever the name has this truth."""
    found: CheckedFacts | None = None
    for verdict, way in zip(verdicts, (left, right), strict=True):
        if verdict is not None and verdict is not wanted:
            continue
        facts = dict(way.checked)
        known = way.answers.get(name)
        if verdict is None and known is not None:
            for mark, classes in (known.yes if wanted else known.no).items():
                facts[mark] = facts.get(mark, frozenset()) | classes
        found = facts if found is None else _join_facts(found, facts)
    return found or {}


def _truth_in_state(state: AbstractState, value: AbstractValue) -> bool | None:
    """Whether a constant, a list or a dictionary counts as true here."""
    known = value.known_constants
    if known is not None:
        verdicts = {bool(constant) for constant in known}
        return verdicts.pop() if len(verdicts) == 1 else None
    handles = value.heap_keys()
    heap_object = state.find_object(handles[0]) if len(handles) == 1 == len(value.things) else None
    if (
        heap_object is None
        or heap_object.kind not in {"list", "dict", "set"}
        or heap_object.known_emptiness is None
    ):
        return None
    return not heap_object.known_emptiness
