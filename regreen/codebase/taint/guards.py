"""Conditions: whether they hold, and what is known of tainted values where they do."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from regreen.codebase.taint import answers, checks, comprehensions, expressions
from regreen.codebase.taint.meeting import join_states
from regreen.codebase.taint.run import Frame, Run
from regreen.codebase.taint.state import Heaped, State
from regreen.codebase.taint.values import (
    Bound,
    External,
    Scalar,
    Value,
    constant,
    constants,
    join,
)

_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], object]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.eq,
    ast.IsNot: operator.ne,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_TEXTS = (ast.JoinedStr, ast.BinOp, ast.Subscript, ast.Constant)
_PREDICATES = re.compile(
    r"_?(?:is_?[a-z]|has_|can_|may_|should_|starts_?with|ends_?with|any\b|all\b|bool\b|isinstance|compare_digest|"
    r"constant_time_compare|full_?match|url_has|verify|valid|check)"
)
_ADDRESSES = frozenset({"url", "target"})
_NEGATIVE = (ast.NotEq, ast.NotIn, ast.IsNot)


def branch(
    run: Run, frame: Frame, test: ast.expr, state: State
) -> tuple[State | None, State | None]:
    """Two states: where the test holds, and where it does not; None for a way that cannot be taken."""
    match test:
        case ast.UnaryOp(op=ast.Not()):
            true, false = branch(run, frame, test.operand, state)
            return false, true
        case ast.BoolOp():
            return _chained(run, frame, test, state)
        case ast.Call(func=ast.Name(id="bool"), args=[asked], keywords=[]):
            return branch(run, frame, asked, state)
        case _:
            pass
    before = len(run.answers)
    value = expressions.evaluate(run, frame, test, state)
    given = run.answers[before:]
    del run.answers[before:]
    verdict = truthiness(state, value)
    true, false = refined(run, frame, test, state)
    _answered(test, given, true, false)
    return (None if verdict is False else true), (None if verdict is True else false)


def _answered(
    test: ast.expr, given: list[tuple[ast.AST, answers.Answer]], true: State, false: State
) -> None:
    """A helper looked at its argument, now or when its answer was kept: what it found out holds for each answer."""
    about, holds, fails = answers.asked(test)
    found = next((one for node, one in reversed(given) if node is about), None)
    if isinstance(about, ast.Name):
        found = true.answers.get(about.id)
    if found is None:
        return
    for way, said in ((true, holds), (false, fails)):
        if said is not None:
            answers.tell(found.yes if said else found.no, way)


def kept_answer(
    run: Run,
    frame: Frame,
    node: ast.expr,
    given: list[tuple[ast.AST, answers.Answer]],
    state: State,
) -> answers.Answer | None:
    """What a value that is being given a name will say when it is tested: `ok = is_fine(x)`, `ok = x in known`."""
    called = node.value if isinstance(node, ast.Await) else node
    for asked, one in reversed(given):
        if asked is called:
            return one
    if not is_answer(node):
        return None
    quiet, before = state.fork(), len(run.answers)
    ways = refined if isinstance(node, ast.Call) else branch
    true, false = ways(run, frame, node, quiet)
    del run.answers[before:]
    found = answers.Answer(answers.gained(state, true), answers.gained(state, false))
    return found or None


def _chained(
    run: Run, frame: Frame, test: ast.BoolOp, state: State
) -> tuple[State | None, State | None]:
    is_or = isinstance(test.op, ast.Or)
    leaves: list[State] = []
    way: State | None = state
    for operand in test.values:
        if way is None:
            break
        true, false = branch(run, frame, operand, way)
        left, way = (true, false) if is_or else (false, true)
        if left is not None:
            leaves.append(left)
    joined = join_states(leaves)
    return (joined, way) if is_or else (way, joined)


def refined(run: Run, frame: Frame, test: ast.expr, state: State) -> tuple[State, State]:
    """The state where the test holds and where it does not, for a test that was already evaluated."""
    true, false = state.fork(), state.fork()
    match test:
        case ast.Compare() if len(test.ops) == 1:
            _compared(run, frame, test, true, false)
        case ast.Call():
            _called(run, frame, test, true)
            _refused(run, frame, test, false)
        case ast.Name() | ast.NamedExpr() | ast.BinOp() | ast.Attribute():
            _truthy(run, frame, test, true, false)
        case ast.UnaryOp(op=ast.Not()):
            true, false = refined(run, frame, test.operand, state)
            return false, true
        case _:
            pass
    return true, false


def is_answer(node: ast.expr) -> bool:
    """Whether a returned expression says yes or no; `given or default` gives one of its operands instead."""
    match node:
        case ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.BoolOp(op=ast.And()):
            return not isinstance(node.values[-1], _TEXTS)
        case ast.BoolOp():
            return all(_says_yes(one) for one in node.values)
        case ast.Call():
            return _says_yes(node)
        case _:
            return False


def _says_yes(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        return _PREDICATES.match(name) is not None
    return is_answer(node) or (isinstance(node, ast.Constant) and isinstance(node.value, bool))


def _compared(run: Run, frame: Frame, test: ast.Compare, true: State, false: State) -> None:
    op = test.ops[0]
    holds, fails = (false, true) if isinstance(op, _NEGATIVE) else (true, false)
    left = _quietly(run, frame, test.left, true)
    right = _quietly(run, frame, test.comparators[0], true)
    if isinstance(op, ast.Eq | ast.NotEq | ast.Is | ast.IsNot):
        checks.equals(left, right, holds)
        checks.equals(right, left, holds)
        _narrow(test.left, right, holds)
        checks.empty(left, right, holds)
        if right.only == (None,):
            _matches(left, fails)
            _no_match(left, holds)
            _drop_empty(test.left, fails, keep_falsy=True)
    elif isinstance(op, ast.In | ast.NotIn):
        inside = test.comparators[0]
        if isinstance(inside, ast.Attribute) and inside.attr == "parents":
            checks.below(_quietly(run, frame, inside.value, holds), left, holds)
        checks.member(left, right, holds)
        checks.contains(test, left, right, fails)
    elif isinstance(op, ast.LtE | ast.Lt):
        checks.subset(left, right, holds)
    elif isinstance(op, ast.GtE | ast.Gt):
        checks.subset(right, left, holds)


def _narrow(node: ast.expr, value: Value, state: State) -> None:
    if isinstance(node, ast.Name) and value.only and node.id in state.names:
        known = state.names[node.id]
        if not known.things:
            state.names[node.id] = value


def _drop_empty(node: ast.expr, state: State, *, keep_falsy: bool = False) -> None:
    """Where a name was found to hold something, it is none of the empty constants it could have been."""
    if not isinstance(node, ast.Name):
        return
    value = state.names.get(node.id)
    if value is not None and value.constants:
        left = {(t, one) for t, one in value.constants if one is not None and (one or keep_falsy)}
        if left and len(left) < len(value.constants):
            state.names[node.id] = replace(value, constants=frozenset(left))


def _quietly(run: Run, frame: Frame, node: ast.expr, state: State) -> Value:
    """What was already evaluated, once more, for its taints alone."""
    quiet = state.fork()
    before = len(run.answers)
    value = expressions.evaluate(run, frame, node, quiet)
    del run.answers[before:]
    return value


def _called(run: Run, frame: Frame, test: ast.Call, true: State) -> None:
    given = [*test.args, *(k.value for k in test.keywords if k.arg in _ADDRESSES and not test.args)]
    args = [_quietly(run, frame, arg, true) for arg in given]
    if isinstance(test.func, ast.Attribute):
        owner = _quietly(run, frame, test.func.value, true)
        checks.method(owner, test.func.attr, args, true)
        names = [f"{name}.{test.func.attr}" for name in owner.names()]
        checks.function(names, args, true)
        if test.func.attr in {"match", "fullmatch"}:
            _matches(_quietly(run, frame, test, true), true)
        return
    callee = _quietly(run, frame, test.func, true)
    if "builtins.all" in callee.names() and len(test.args) == 1:
        comprehensions.all_hold(run, frame, test.args[0], true)
    if "builtins.any" in callee.names() and len(test.args) == 1:
        comprehensions.some_holds(run, frame, test.args[0], true)
    checks.function(callee.names(), args, true)
    if isinstance(test.func, ast.Name):
        checks.named_like_a_check(test.func.id, callee, args, true)


def _refused(run: Run, frame: Frame, test: ast.Call, false: State) -> None:
    if isinstance(test.func, ast.Name) and test.func.id == "any" and len(test.args) == 1:
        comprehensions.none_holds(run, frame, test.args[0], false)
    if isinstance(test.func, ast.Attribute) and test.func.attr == "search":
        _no_match(_quietly(run, frame, test, false), false)
    if isinstance(test.func, ast.Attribute) and test.func.attr == "startswith":
        owner = _quietly(run, frame, test.func.value, false)
        args = [_quietly(run, frame, arg, false) for arg in test.args]
        checks.denied(owner, test.func.attr, args, false)


def _truthy(
    run: Run,
    frame: Frame,
    test: ast.Name | ast.NamedExpr | ast.BinOp | ast.Attribute,
    true: State,
    false: State,
) -> None:
    node = test.target if isinstance(test, ast.NamedExpr) else test
    value = _quietly(run, frame, node, true)
    _drop_empty(node, true)
    _matches(value, true)
    _no_match(value, false)
    checks.empty(value, constant(""), false)
    checks.nothing_left(value, false)
    if isinstance(node, ast.Name) and value.taints and not value.things:
        false.names[node.id] = constants(("", None))
    for key in value.handles():
        for mark, classes in run.unfit.get(key, {}).items():
            false.check(mark, classes)


def _matches(value: Value, true: State) -> None:
    for key in value.handles():
        heaped = true.at(key)
        if heaped is not None and heaped.kind == "match":
            checks.matched(heaped, true)


def _no_match(value: Value, false: State) -> None:
    for key in value.handles():
        heaped = false.at(key)
        if heaped is not None and heaped.kind == "match":
            checks.unmatched(heaped, false)


def truthiness(state: State, value: Value) -> bool | None:
    """Whether a value counts as true; None when both can be."""
    known = value.known
    if known is not None:
        verdicts = {bool(one) for one in known}
        return verdicts.pop() if len(verdicts) == 1 else None
    if value.constants == frozenset() and not value.taints:
        handles = value.handles()
        if len(handles) == 1 and len(value.things) == 1:
            return _held_truth(state.at(handles[0]))
        if (
            value.things
            and not any(isinstance(one, External | Bound) for one in value.things)
            and not handles
        ):
            return True
    return None


def _held_truth(heaped: Heaped | None) -> bool | None:
    if heaped is None or heaped.kind == "match":
        return None
    if heaped.kind == "list" and (heaped.items is not None or heaped.filled):
        return not heaped.emptiness
    return True if heaped.kind == "instance" else None


def truth_value(run: Run, frame: Frame, node: ast.Compare | ast.UnaryOp, state: State) -> Value:
    """A comparison or a negation as a value."""
    if isinstance(node, ast.UnaryOp):
        verdict = truthiness(state, expressions.evaluate(run, frame, node.operand, state))
        return _answer(None if verdict is None else not verdict)
    left = expressions.evaluate(run, frame, node.left, state)
    verdicts: list[bool | None] = []
    for op, comparator in zip(node.ops, node.comparators, strict=True):
        right = expressions.evaluate(run, frame, comparator, state)
        verdicts.append(compare(op, left, right, state))
        left = right
    if False in verdicts:
        return constant(value=False)
    return _answer(None if None in verdicts else True)


def _answer(verdict: bool | None) -> Value:
    return (
        join(constant(value=True), constant(value=False))
        if verdict is None
        else constant(value=verdict)
    )


def compare(op: ast.cmpop, left: Value, right: Value, state: State) -> bool | None:
    """Whether the comparison holds; None when both can be."""
    if isinstance(op, ast.In | ast.NotIn) and right.handles():
        return _membership(op, left, right, state)
    if isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq) and (
        left.only == (None,) or right.only == (None,)
    ):
        other = right if left.only == (None,) else left
        if (
            other.constants == frozenset()
            and other.things
            and not other.taints
            and not _foreign(other)
            and not _is_match(other, state)
        ):
            return isinstance(op, ast.IsNot | ast.NotEq)
    a, b = left.known, right.known
    if not a or not b:
        return None
    verdicts = {_holds(op, x, y) for x in a for y in b}
    return verdicts.pop() if len(verdicts) == 1 else None


def _is_match(value: Value, state: State) -> bool:
    """What a regular expression found, which may be nothing."""
    held = [state.at(key) for key in value.handles()]
    return any(heaped is not None and heaped.kind == "match" for heaped in held)


def _foreign(value: Value) -> bool:
    return any(isinstance(one, External | Bound) for one in value.things)


def _membership(op: ast.cmpop, left: Value, right: Value, state: State) -> bool | None:
    if not left.only or len(right.handles()) != 1 or len(right.things) != 1:
        return None
    heaped = state.at(right.handles()[0])
    if heaped is None:
        return None
    if heaped.kind == "dict":
        if left.only[0] in heaped.entries:
            return isinstance(op, ast.In)
        return None
    if heaped.items is None or any(not item.only for item in heaped.items):
        return None
    found = any(item.only == left.only for item in heaped.items)
    return found == isinstance(op, ast.In)


def _holds(op: ast.cmpop, left: Scalar, right: Scalar) -> bool | None:
    try:
        return bool(_COMPARED[type(op)](left, right))
    except TypeError:
        return None
