"""What the answer of a helper, or of a test that was kept in a name, says of the values it looked at."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from regreen.codebase.taint.state import Facts, State, both_checked
from regreen.codebase.taint.values import Mark


@dataclass(frozen=True, slots=True)
class Answer:
    """What was checked where the answer counts as true, and where as false.

    `parts` says the same of each element of an answer such as `(ok, message)`.
    """

    yes: Facts = field(default_factory=dict)
    no: Facts = field(default_factory=dict)
    parts: tuple[Answer, ...] = ()

    def __bool__(self) -> bool:
        """Whether it says anything."""
        return bool(self.yes or self.no or any(self.parts))


def answer(ways: Sequence[tuple[bool | None, Sequence[bool | None], State]]) -> Answer:
    """The answer of a function, by its returns: truth, truth of each element, what holds there."""
    yes = _common(way.checked for verdict, _, way in ways if verdict is not False)
    no = _common(way.checked for verdict, _, way in ways if verdict is not True)
    width = min((len(parts) for _, parts, _ in ways), default=0)
    parts = tuple(answer([(each[n], (), way) for _, each, way in ways]) for n in range(width))
    return Answer(yes, no, parts)


def _common(checked: Iterable[Facts]) -> Facts:
    """What was checked on every way; nothing is said of an answer that cannot be given."""
    found: Facts | None = None
    for one in checked:
        found = one if found is None else both_checked(found, one)
    return dict(found or {})


def tell(facts: Facts, state: State) -> None:
    """Let the state know what was checked."""
    for mark, classes in facts.items():
        state.check(mark, classes)


def gained(before: State, after: State | None) -> dict[Mark, frozenset[str]]:
    """What was checked between two states."""
    if after is None:
        return {}
    return {m: c for m, c in after.checked.items() if before.checked.get(m) != c}


def asked(test: ast.expr) -> tuple[ast.expr, bool | None, bool | None]:
    """The expression whose truth is asked for, and what it is where the test holds and where it fails.

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
