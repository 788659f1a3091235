"""Calling what the repository defines: functions, methods, classes."""

from __future__ import annotations

import ast

from regreen.taint import conditions
from regreen.taint.interpreter import DEEPEST_CALL, CallFrame, Interpreter
from regreen.taint.models import form_models
from regreen.taint.namespaces import class_member
from regreen.taint.state import (
    AbstractState,
    HeapObject,
    HelperAnswer,
    join_states,
    summarize_returns,
)
from regreen.taint.values import (
    BOTTOM,
    NONE_VALUE,
    TOP,
    AbstractValue,
    CallArguments,
    ClassRef,
    ExternalRef,
    FunctionRef,
    ObjectRef,
    TrailStep,
    add_step,
    join_values,
    make_reference,
    make_tainted,
    mark_uncertain,
)


def invoke_callee(
    interp: Interpreter, node: ast.AST, callee: AbstractValue, args: CallArguments
) -> AbstractValue:
    """Call functions and classes of the repository."""
    found: list[AbstractValue] = []
    for ref in callee.things:
        if isinstance(ref, FunctionRef):
            found.append(_inline_call(interp, node, ref, args))
        elif isinstance(ref, ClassRef):
            found.append(make_instance(interp, node, ref, args))
        elif isinstance(ref, ExternalRef) and isinstance(node, ast.Call):
            found.append(interp.call_library(node, (ref.name,), args, TOP))
    if found:
        return join_values(*found)
    taints = args.taints
    return mark_uncertain(make_tainted(taints)) if taints else TOP


def make_instance(
    interp: Interpreter, node: ast.AST, cls: ClassRef, args: CallArguments
) -> AbstractValue:
    """A new object of the class, its `__init__` run."""
    checked = form_models.make_checked_object(interp, node, cls, args)
    if checked is not None:
        return checked
    key = (id(node), id(cls.node), interp.frame.context)
    interp.state.heap[key] = HeapObject("instance", of=cls, rest=BOTTOM)
    value = make_reference(ObjectRef(key))
    made = class_member(interp.run, cls, "__init__", value)
    if any(isinstance(ref, FunctionRef) for ref in made.things):
        interp.invoke_callee(node, made, args)
        return value
    fields = [
        item.target.id
        for item in cls.node.body
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    ]
    heaped = interp.state.heap[key]
    for name, given in (*zip(fields, args.positional, strict=False), *args.keywords.items()):
        heaped = heaped.with_entry(name, given)
    interp.state.heap[key] = heaped
    made = class_member(interp.run, cls, "__post_init__", value)
    if any(isinstance(ref, FunctionRef) for ref in made.things):
        interp.invoke_callee(node, made, CallArguments())
    return value


def _inline_call(
    interp: Interpreter, node: ast.AST, function: FunctionRef, args: CallArguments
) -> AbstractValue:
    """Walk a function's body with these arguments."""
    interp.run.closures[interp.frame.closure] = (interp.state.names, interp.frame.outer)
    if interp.run.stack.count(function.node) > 1 or len(interp.run.stack) >= interp.run.deepest:
        taints = interp.state.collect_taints(*args.all_arguments())
        return mark_uncertain(make_tainted(taints)) if taints else TOP
    # Behind a handler every call counts (a factory decides which class is meant); elsewhere most do not.
    # What makes an object is always followed: its methods are called with what it was given.
    making = getattr(function.node, "name", "") in {"__init__", "__post_init__"}
    worth_it = making or interp.run.entry is not None or interp.run.may_bring_taint(function)
    if not worth_it and not _is_interesting(interp.state, function, args):
        return TOP
    here = TrailStep(
        interp.frame.path,
        getattr(node, "lineno", 1),
        f"passed to `{getattr(function.node, 'name', 'lambda')}`",
    )
    names = _bound_arguments(interp, function, args, here)
    inner = CallFrame(
        function.module,
        function.node,
        (*interp.frame.context, id(node))[-DEEPEST_CALL:],
        0,
        function.closure,
    )
    if function.node is interp.run.handler:
        inner.entry, interp.run.reached = interp.run.entry, True
    inner.closure = interp.run.new_closure(names, function.closure)
    body = interp.state.make_callee_state(names)
    if isinstance(node, ast.Call):
        _hand_answers(interp, node, function, body)
    interp.run.stack.append(function.node)
    nesting, interp.run.nesting, before = interp.run.nesting, 0, len(interp.run.answers)
    try:
        value = walk_body(interp.run.interpret(inner, body), function)
    finally:
        interp.run.stack.pop()
        interp.run.nesting = nesting
    del interp.run.answers[before:]
    if inner.answer:
        interp.run.answers.append((node, inner.answer))
    interp.state.heap, interp.state.checked = body.heap, body.checked
    return value


def _hand_answers(
    interp: Interpreter, node: ast.Call, function: FunctionRef, body: AbstractState
) -> None:
    """`require(name.isalnum())`: when the helper tests its parameter, it tests what was asked here."""
    names = [a.arg for a in (*function.node.args.posonlyargs, *function.node.args.args)]
    given = node.args
    for name, asked in zip(names[function.owner is not None :], given, strict=False):
        if isinstance(asked, ast.Starred):
            return
        answer = conditions.predict_answer(interp, asked, [])
        if answer is not None:
            body.answers[name] = answer


def _is_interesting(state: AbstractState, function: FunctionRef, args: CallArguments) -> bool:
    """Whether a call gets something worth following: an untrusted value, or code to call."""
    given = (
        args.all_arguments() if function.owner is None else (*args.all_arguments(), function.owner)
    )
    return any(
        state.collect_taints(value)
        or any(isinstance(t, FunctionRef | ClassRef) for t in value.things)
        for value in given
    )


def walk_body(interp: Interpreter, function: FunctionRef) -> AbstractValue:
    """Walk a body and join its returns; `body` becomes what holds after the call."""
    if isinstance(function.node, ast.Lambda):
        return interp.evaluate(function.node.body)
    alive = interp.execute(function.node.body)
    ways = list(interp.frame.returns)
    if alive:
        ways.append((NONE_VALUE, interp.state.fork()))
    interp.run.closures[interp.frame.closure] = (interp.state.names, interp.frame.outer)
    if interp.frame.yields:
        made = HeapObject("list", items=None, rest=join_values(*interp.frame.yields))
        return interp.allocate_object(function.node, made)
    if not ways:
        return BOTTOM
    interp.frame.answer = _summarize_answer(ways)
    joined = join_states([way for _, way in ways])
    values = [way.apply_checks(value) for value, way in ways]
    if joined is not None:
        interp.state.replace_with(joined)
    return join_values(*values)


def _summarize_answer(
    ways: list[tuple[AbstractValue, AbstractState]],
) -> HelperAnswer | None:
    """For a helper that answers yes or no: what was checked on the way to each."""
    if not any(way.checked for _, way in ways):
        return None
    return summarize_returns(
        [
            (
                conditions.evaluate_truth(way, value),
                [conditions.evaluate_truth(way, part) for part in way.known_elements(value) or ()],
                way,
            )
            for value, way in ways
        ]
    )


def _bound_arguments(
    interp: Interpreter, function: FunctionRef, args: CallArguments, here: TrailStep
) -> dict[str, AbstractValue]:
    node = function.node
    names: dict[str, AbstractValue] = {}
    positional = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
    given = list(args.positional)
    if function.owner is not None:
        given.insert(0, function.owner)
    for name, value in zip(positional, given, strict=False):
        names[name] = add_step(value, here)
    rest = given[len(positional) :]
    if node.args.vararg is not None:
        packed = HeapObject("tuple", items=tuple(add_step(v, here) for v in rest))
        names[node.args.vararg.arg] = interp.allocate_object(node.args.vararg, packed)
    known = {*positional, *(a.arg for a in node.args.kwonlyargs)}
    extra = HeapObject("dict")
    for name, value in args.keywords.items():
        if name in known:
            names[name] = add_step(value, here)
        else:
            extra = extra.with_entry(name, add_step(value, here))
    if node.args.kwarg is not None:
        names[node.args.kwarg.arg] = interp.allocate_object(node.args.kwarg, extra)
    for name, default in _parameter_defaults(node):
        if name not in names:
            # Only what needs no evaluation in another scope.
            names[name] = interp.evaluate(default) if isinstance(default, ast.Constant) else TOP
    for name in known - names.keys():
        names[name] = args.spread if args.spread is not None else TOP
    return names


def _parameter_defaults(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
) -> list[tuple[str, ast.expr]]:
    positional = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
    found = list(zip(reversed(positional), reversed(node.args.defaults), strict=False))
    found += [
        (a.arg, d)
        for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        if d is not None
    ]
    return found
