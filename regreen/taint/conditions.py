"""Conditions: whether they hold, and what is known of tainted values where they do."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from regreen.taint import heap, secrecy, validation
from regreen.taint.interpreter import Interpreter
from regreen.taint.state import (
    AbstractState,
    HeapObject,
    HelperAnswer,
    find_new_facts,
    find_tested_expression,
    join_states,
    record_checked_facts,
)
from regreen.taint.values import (
    AbstractValue,
    BoundMethod,
    ExternalRef,
    Scalar,
    join_values,
    make_constant,
    make_constants,
)

_COMPARISON_OPERATORS: dict[type[ast.cmpop], Callable[[Any, Any], object]] = {
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
_TEXT_NODES = (ast.JoinedStr, ast.BinOp, ast.Subscript, ast.Constant)
_PREDICATE_NAME = re.compile(
    r"_?(?:is_?[a-z]|has_|can_|may_|should_|starts_?with|ends_?with|any\b|all\b|bool\b|isinstance|compare_digest|"
    r"constant_time_compare|full_?match|url_has|verify|valid|check)"
)
_ADDRESS_KEYWORDS = frozenset({"url", "target"})
_NEGATIVE_OPERATORS = (ast.NotEq, ast.NotIn, ast.IsNot)


def branch_states(
    interp: Interpreter, test: ast.expr
) -> tuple[AbstractState | None, AbstractState | None]:
    """Two states: where the test holds, and where it does not; None for a way that cannot be taken."""
    match test:
        case ast.UnaryOp(op=ast.Not()):
            true, false = interp.branch_states(test.operand)
            return false, true
        case ast.BoolOp():
            return _branch_boolean_chain(interp, test)
        case ast.Call(func=ast.Name(id="bool"), args=[asked], keywords=[]):
            return interp.branch_states(asked)
        case _:
            pass
    before = len(interp.run.answers)
    value = interp.evaluate(test)
    given = interp.run.answers[before:]
    del interp.run.answers[before:]
    verdict = evaluate_truth(interp.state, value)
    true, false = refine_states(interp, test)
    _apply_implications_of_test(test, given, true, false)
    return (None if verdict is False else true), (None if verdict is True else false)


def _apply_implications_of_test(
    test: ast.expr,
    given: list[tuple[ast.AST, HelperAnswer]],
    true: AbstractState,
    false: AbstractState,
) -> None:
    """A helper looked at its argument, now or when its answer was kept: what it found out holds for each answer."""
    about, holds, fails = find_tested_expression(test)
    found = next((answer for node, answer in reversed(given) if node is about), None)
    if isinstance(about, ast.Name):
        found = true.answers.get(about.id)
    if found is None:
        return
    for way, verdict in ((true, holds), (false, fails)):
        if verdict is not None:
            record_checked_facts(found.yes if verdict else found.no, way)


def find_implications_of_truth(
    interp: Interpreter, node: ast.expr, given: list[tuple[ast.AST, HelperAnswer]]
) -> HelperAnswer | None:
    """What a test of an assigned value implies: `ok = is_fine(x)`, `ok = x in known`."""
    called = node.value if isinstance(node, ast.Await) else node
    for asked, answer in reversed(given):
        if asked is called:
            return answer
    if not is_truth_expression(node):
        return None
    before = len(interp.run.answers)
    ways = refine_states if isinstance(node, ast.Call) else branch_states
    true, false = ways(interp.fork(), node)
    del interp.run.answers[before:]
    found = HelperAnswer(
        find_new_facts(interp.state, true),
        find_new_facts(interp.state, false),
    )
    return found or None


def _branch_boolean_chain(
    interp: Interpreter, test: ast.BoolOp
) -> tuple[AbstractState | None, AbstractState | None]:
    is_or = isinstance(test.op, ast.Or)
    leaves: list[AbstractState] = []
    way: AbstractState | None = interp.state
    for operand in test.values:
        if way is None:
            break
        true, false = interp.with_state(way).branch_states(operand)
        left, way = (true, false) if is_or else (false, true)
        if left is not None:
            leaves.append(left)
    joined = join_states(leaves)
    return (joined, way) if is_or else (way, joined)


def refine_states(interp: Interpreter, test: ast.expr) -> tuple[AbstractState, AbstractState]:
    """The state where the test holds and where it does not, for a test that was already evaluated."""
    true, false = interp.state.fork(), interp.state.fork()
    match test:
        case ast.Compare() if len(test.ops) == 1:
            _refine_comparison(interp, test, true, false)
        case ast.Call():
            validation.trust_decision_in_session(
                (_evaluate_without_recording_answers(interp.with_state(true), test),), (true, false)
            )
            _refine_true_call(interp.with_state(true), test)
            _refine_false_call(interp.with_state(false), test)
        case ast.Name() | ast.NamedExpr() | ast.BinOp() | ast.Attribute():
            _refine_truthiness(interp, test, true, false)
        case ast.UnaryOp(op=ast.Not()):
            true, false = refine_states(interp, test.operand)
            return false, true
        case _:
            pass
    return true, false


def is_truth_expression(node: ast.expr) -> bool:
    """Whether a returned expression is a truth value; `given or default` gives one of its operands instead."""
    match node:
        case ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.BoolOp(op=ast.And()):
            return not isinstance(node.values[-1], _TEXT_NODES)
        case ast.BoolOp():
            return all(_is_truth_operand(operand) for operand in node.values)
        case ast.Call():
            return _is_truth_operand(node)
        case _:
            return False


def _is_truth_operand(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        return _PREDICATE_NAME.match(name) is not None
    return is_truth_expression(node) or (
        isinstance(node, ast.Constant) and isinstance(node.value, bool)
    )


def _refine_comparison(
    interp: Interpreter, test: ast.Compare, true: AbstractState, false: AbstractState
) -> None:
    op = test.ops[0]
    holds, fails = (false, true) if isinstance(op, _NEGATIVE_OPERATORS) else (true, false)
    here = interp.with_state(true)
    left = _evaluate_without_recording_answers(here, test.left)
    right = _evaluate_without_recording_answers(here, test.comparators[0])
    if isinstance(op, ast.Eq | ast.NotEq):
        secrecy.record_keys_compared_with_request(here, test.left, test.comparators[0])
        validation.assume_authenticated(left, right, holds)
    validation.trust_decision_in_session((left, right), (true, false))
    if isinstance(op, ast.Eq | ast.NotEq | ast.Is | ast.IsNot):
        validation.assume_equal(left, right, holds)
        validation.assume_equal(right, left, holds)
        _assume_name_is_constant(test.left, right, holds)
        validation.assume_empty_host(left, right, holds)
        if right.single_constant == (None,):
            _assume_pattern_matched(left, fails)
            _assume_pattern_not_matched(left, holds)
            _exclude_empty_constants(test.left, fails, keep_falsy=True)
    elif isinstance(op, ast.In | ast.NotIn):
        inside = test.comparators[0]
        if isinstance(inside, ast.Attribute) and inside.attr == "parents":
            validation.assume_below_folder(
                _evaluate_without_recording_answers(interp.with_state(holds), inside.value),
                left,
                holds,
            )
        validation.assume_member(left, right, holds)
        validation.assume_not_contained(test, left, right, fails)
    elif isinstance(op, ast.LtE | ast.Lt):
        validation.assume_subset(left, right, holds)
    elif isinstance(op, ast.GtE | ast.Gt):
        validation.assume_subset(right, left, holds)


def _assume_name_is_constant(node: ast.expr, value: AbstractValue, state: AbstractState) -> None:
    if isinstance(node, ast.Name) and value.single_constant and node.id in state.names:
        known = state.names[node.id]
        if not known.things:
            state.names[node.id] = value


def _exclude_empty_constants(
    node: ast.expr, state: AbstractState, *, keep_falsy: bool = False
) -> None:
    """Where a name was found to hold something, it is none of the empty constants it could have been."""
    if not isinstance(node, ast.Name):
        return
    value = state.names.get(node.id)
    if value is not None and value.constants:
        left = {
            (t, constant)
            for t, constant in value.constants
            if constant is not None and (constant or keep_falsy)
        }
        if left and len(left) < len(value.constants):
            state.names[node.id] = replace(value, constants=frozenset(left))


def _evaluate_without_recording_answers(interp: Interpreter, node: ast.expr) -> AbstractValue:
    """What was already evaluated, once more, for its taints alone."""
    before = len(interp.run.answers)
    value = interp.fork().evaluate(node)
    del interp.run.answers[before:]
    return value


def _refine_true_call(interp: Interpreter, test: ast.Call) -> None:
    given = [
        *test.args,
        *(k.value for k in test.keywords if k.arg in _ADDRESS_KEYWORDS and not test.args),
    ]
    args = [_evaluate_without_recording_answers(interp, arg) for arg in given]
    if isinstance(test.func, ast.Attribute):
        owner = _evaluate_without_recording_answers(interp, test.func.value)
        validation.assume_method_true(owner, test.func.attr, args, interp.state)
        names = [f"{name}.{test.func.attr}" for name in owner.external_names()]
        validation.assume_predicate_true(names, args, interp.state)
        if test.func.attr in {"match", "fullmatch"}:
            _assume_pattern_matched(_evaluate_without_recording_answers(interp, test), interp.state)
        return
    callee = _evaluate_without_recording_answers(interp, test.func)
    if "builtins.all" in callee.external_names() and len(test.args) == 1:
        _assume_condition_of_each_element(interp, test.args[0], holds=True)
    if "builtins.any" in callee.external_names() and len(test.args) == 1:
        _assume_any_call_true(interp, test.args[0])
    validation.assume_predicate_true(callee.external_names(), args, interp.state)
    if isinstance(test.func, ast.Name):
        validation.assume_named_check(test.func.id, callee, args, interp.state)


def _refine_false_call(interp: Interpreter, test: ast.Call) -> None:
    if isinstance(test.func, ast.Name) and test.func.id == "any" and len(test.args) == 1:
        _assume_condition_of_each_element(interp, test.args[0], holds=False)
    if isinstance(test.func, ast.Attribute) and test.func.attr == "search":
        _assume_pattern_not_matched(_evaluate_without_recording_answers(interp, test), interp.state)
    if isinstance(test.func, ast.Attribute) and test.func.attr == "startswith":
        owner = _evaluate_without_recording_answers(interp, test.func.value)
        args = [_evaluate_without_recording_answers(interp, arg) for arg in test.args]
        validation.assume_method_false(owner, test.func.attr, args, interp.state)


def _refine_truthiness(
    interp: Interpreter,
    test: ast.Name | ast.NamedExpr | ast.BinOp | ast.Attribute,
    true: AbstractState,
    false: AbstractState,
) -> None:
    node = test.target if isinstance(test, ast.NamedExpr) else test
    value = _evaluate_without_recording_answers(interp.with_state(true), node)
    validation.trust_decision_in_session((value,), (true, false))
    _exclude_empty_constants(node, true)
    _assume_pattern_matched(value, true)
    _assume_pattern_not_matched(value, false)
    validation.assume_empty_host(value, make_constant(""), false)
    validation.assume_empty_difference(value, false)
    if isinstance(node, ast.Name) and value.taints and not value.things:
        false.names[node.id] = make_constants(("", None))
    for key in value.heap_keys():
        for mark, classes in interp.run.refused_elements.get(key, {}).items():
            false.mark_checked(mark, classes)


def _assume_pattern_matched(value: AbstractValue, true: AbstractState) -> None:
    for heap_object in true.find_objects(value):
        if heap_object.kind == "match":
            validation.assume_match(heap_object, true)


def _assume_pattern_not_matched(value: AbstractValue, false: AbstractState) -> None:
    for heap_object in false.find_objects(value):
        if heap_object.kind == "match":
            validation.assume_no_match(heap_object, false)


def evaluate_truth(state: AbstractState, value: AbstractValue) -> bool | None:
    """Whether a value counts as true; None when both can be."""
    known = value.known_constants
    if known is not None:
        verdicts = {bool(constant) for constant in known}
        return verdicts.pop() if len(verdicts) == 1 else None
    if value.constants == frozenset() and not value.taints:
        handles = value.heap_keys()
        if len(handles) == 1 and len(value.things) == 1:
            return _truth_of_heap_object(state.find_object(handles[0]))
        if (
            value.things
            and not any(isinstance(ref, ExternalRef | BoundMethod) for ref in value.things)
            and not handles
        ):
            return True
    return None


def _truth_of_heap_object(heap_object: HeapObject | None) -> bool | None:
    if heap_object is None or heap_object.kind == "match":
        return None
    if heap_object.kind == "list" and (heap_object.items is not None or heap_object.filled):
        return not heap_object.known_emptiness
    return True if heap_object.kind == "instance" else None


def evaluate_comparison_or_negation(
    interp: Interpreter, node: ast.Compare | ast.UnaryOp
) -> AbstractValue:
    """A comparison or a negation as a value."""
    if isinstance(node, ast.UnaryOp):
        verdict = evaluate_truth(interp.state, interp.evaluate(node.operand))
        return _make_truth_value(None if verdict is None else not verdict)
    left = interp.evaluate(node.left)
    verdicts: list[bool | None] = []
    for op, comparator in zip(node.ops, node.comparators, strict=True):
        right = interp.evaluate(comparator)
        verdicts.append(compare_values(op, left, right, interp.state))
        left = right
    if False in verdicts:
        return make_constant(value=False)
    return _make_truth_value(None if None in verdicts else True)


def _make_truth_value(verdict: bool | None) -> AbstractValue:
    return (
        join_values(make_constant(value=True), make_constant(value=False))
        if verdict is None
        else make_constant(value=verdict)
    )


def compare_values(
    op: ast.cmpop, left: AbstractValue, right: AbstractValue, state: AbstractState
) -> bool | None:
    """Whether the comparison holds; None when both can be."""
    if isinstance(op, ast.In | ast.NotIn) and right.heap_keys():
        return _compare_membership(op, left, right, state)
    if isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq) and (
        left.single_constant == (None,) or right.single_constant == (None,)
    ):
        other = right if left.single_constant == (None,) else left
        if (
            other.constants == frozenset()
            and other.things
            and not other.taints
            and not _is_foreign(other)
            and not _is_match(other, state)
        ):
            return isinstance(op, ast.IsNot | ast.NotEq)
    a, b = left.known_constants, right.known_constants
    if not a or not b:
        return None
    verdicts = {_compare_scalars(op, x, y) for x in a for y in b}
    return verdicts.pop() if len(verdicts) == 1 else None


def _is_match(value: AbstractValue, state: AbstractState) -> bool:
    """What a regular expression found, which may be nothing."""
    return any(heap_object.kind == "match" for heap_object in state.find_objects(value))


def _is_foreign(value: AbstractValue) -> bool:
    return any(isinstance(ref, ExternalRef | BoundMethod) for ref in value.things)


def _compare_membership(
    op: ast.cmpop, left: AbstractValue, right: AbstractValue, state: AbstractState
) -> bool | None:
    if not left.single_constant or len(right.heap_keys()) != 1 or len(right.things) != 1:
        return None
    heap_object = state.find_object(right.heap_keys()[0])
    if heap_object is None:
        return None
    if heap_object.kind == "dict":
        if left.single_constant[0] in heap_object.entries:
            return isinstance(op, ast.In)
        return None
    if heap_object.items is None or any(not item.single_constant for item in heap_object.items):
        return None
    found = any(item.single_constant == left.single_constant for item in heap_object.items)
    return found == isinstance(op, ast.In)


def _compare_scalars(op: ast.cmpop, left: Scalar, right: Scalar) -> bool | None:
    try:
        return bool(_COMPARISON_OPERATORS[type(op)](left, right))
    except TypeError:
        return None


def _assume_any_call_true(interp: Interpreter, listed: ast.expr) -> None:
    """`any(one == x for one in known)` is true: its implications hold for everything except the element."""
    if not isinstance(listed, ast.GeneratorExp | ast.ListComp) or len(listed.generators) != 1:
        return
    (generator,) = listed.generators
    inner, before = interp.fork(), len(interp.run.answers)
    many = inner.evaluate(generator.iter)
    if not many.taints:
        inner.assign_target(generator.target, heap.make_loop_element(inner, listed, many))
        true, _ = inner.branch_states(listed.elt)
        record_checked_facts(find_new_facts(interp.state, true), interp.state)
    del interp.run.answers[before:]


def _assume_condition_of_each_element(
    interp: Interpreter, listed: ast.expr, *, holds: bool
) -> None:
    """`all(is_fine(one) for one in many)` is true, or `any(is_bad(one) for one in many)` is false."""
    if not isinstance(listed, ast.GeneratorExp | ast.ListComp) or len(listed.generators) != 1:
        return
    (generator,) = listed.generators
    if generator.ifs:
        return
    inner, before = interp.fork(), len(interp.run.answers)
    many = inner.evaluate(generator.iter)
    inner.assign_target(generator.target, heap.make_loop_element(inner, listed, many))
    ways = inner.branch_states(listed.elt)
    del interp.run.answers[before:]
    way = ways[0] if holds else ways[1]
    for mark, classes in (
        validation.facts_of_every_element(many, way).items() if way is not None else ()
    ):
        interp.state.mark_checked(mark, classes)
