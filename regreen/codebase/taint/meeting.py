"""Where several ways through a function come together: what holds on each, and what a value still says of its way."""

from __future__ import annotations

from regreen.codebase.taint.answers import Answer
from regreen.codebase.taint.state import Facts, State, both_checked, join_heaped
from regreen.codebase.taint.values import Value, join


def join_states(states: list[State]) -> State | None:
    """What holds where several ways meet; None when no way leads here."""
    if not states:
        return None
    first = states[0]
    for other in states[1:]:
        first = _meet(first, other)
    return first


def _meet(one: State, other: State) -> State:
    if one is other:
        return one
    differs = one.checked != other.checked
    names = (
        {name: one.baked(value) for name, value in one.names.items()}
        if differs
        else dict(one.names)
    )
    for name, value in other.names.items():
        mine = names.get(name)
        if mine is value:
            continue
        theirs = other.baked(value) if differs else value
        names[name] = theirs if mine is None else join(mine, theirs)
    heap = dict(one.heap)
    for key, heaped in other.heap.items():
        here = heap.get(key)
        if here is not heaped:  # nearly all are the same on both ways
            heap[key] = heaped if here is None else join_heaped(here, heaped)
    answers = {n: a for n, a in one.answers.items() if other.answers.get(n) is a}
    if differs:
        answers |= _told(one, other)
    return State(names, heap, both_checked(one.checked, other.checked), one.shared, answers)


def _told(one: State, other: State) -> dict[str, Answer]:
    """The names that are true on one way and false on the other: `errors` is empty only where nothing was wrong."""
    found: dict[str, Answer] = {}
    for name, mine in one.names.items():
        theirs = other.names.get(name)
        if theirs is None or mine.taints or theirs.taints:
            continue
        verdicts = (_verdict(one, mine), _verdict(other, theirs))
        if verdicts in {(None, None), (True, True), (False, False)}:
            continue
        yes = _where(name, True, verdicts, one, other)
        no = _where(name, False, verdicts, one, other)
        if yes or no:
            found[name] = Answer(yes, no)
    return found


def _where(
    name: str, wanted: bool, verdicts: tuple[bool | None, bool | None], one: State, other: State
) -> Facts:
    """What holds wherever the name has this truth."""
    found: Facts | None = None
    for verdict, way in zip(verdicts, (one, other), strict=True):
        if verdict is not None and verdict is not wanted:
            continue
        facts = dict(way.checked)
        known = way.answers.get(name)
        if verdict is None and known is not None:
            for mark, classes in (known.yes if wanted else known.no).items():
                facts[mark] = facts.get(mark, frozenset()) | classes
        found = facts if found is None else both_checked(found, facts)
    return found or {}


def _verdict(state: State, value: Value) -> bool | None:
    """Whether a constant, a list or a dictionary counts as true here."""
    known = value.known
    if known is not None:
        verdicts = {bool(one) for one in known}
        return verdicts.pop() if len(verdicts) == 1 else None
    handles = value.handles()
    heaped = state.at(handles[0]) if len(handles) == 1 == len(value.things) else None
    if heaped is None or heaped.kind not in {"list", "dict", "set"} or heaped.emptiness is None:
        return None
    return not heaped.emptiness
