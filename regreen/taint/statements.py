"""The transfer functions of statements and assignments: the effect on the state, and whether the path continues."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from regreen.taint import (
    arithmetic,
    conditions,
    heap,
    namespaces,
    secrecy,
    sinks,
    validation,
)
from regreen.taint.interpreter import DEEPEST_NESTING, Interpreter
from regreen.taint.models import entry_points, sources
from regreen.taint.namespaces import module_value
from regreen.taint.state import AbstractState, HelperAnswer, join_states
from regreen.taint.values import (
    NONE_VALUE,
    TOP,
    AbstractValue,
    ClassRef,
    ExternalRef,
    FunctionRef,
    ModuleRef,
    TrailStep,
    UnresolvedImport,
    add_step,
    join_values,
    key_of_items_element,
    make_constant,
    make_external,
    make_reference,
    project_part,
)


def assign_target(interp: Interpreter, target: ast.expr, value: AbstractValue) -> None:
    """Let `target` hold `value`."""
    match target:
        case ast.Name():
            _assign_name(interp, target, value)
        case ast.Attribute():
            _assign_attribute(interp, target, value)
        case ast.Subscript():
            _assign_subscript(interp, target, value)
        case ast.Tuple() | ast.List():
            _assign_unpacked(interp, target.elts, value)
        case ast.Starred():
            interp.assign_target(target.value, value)
        case _:
            pass


def _assign_name(interp: Interpreter, target: ast.Name, value: AbstractValue) -> None:
    if value.taints:
        value = add_step(value, TrailStep(interp.frame.path, target.lineno, f"`{target.id}`"))
        secrecy.check_secret_name(interp, target, target.id, value.taints)
    if target.id in interp.frame.globals:
        _join_into_name(interp.run.environments.setdefault(interp.frame.path, {}), target.id, value)
    interp.state.names[target.id] = value
    interp.state.answers.pop(target.id, None)


def record_answer_of_target(
    target: ast.expr, answer: HelperAnswer | None, state: AbstractState
) -> None:
    """Record what the value of `target` implies about the values that it was computed from."""
    if answer is None:
        return
    if isinstance(target, ast.Name):
        state.answers[target.id] = answer
    elif isinstance(target, ast.Tuple | ast.List) and len(target.elts) == len(answer.parts):
        for part, part_answer in zip(target.elts, answer.parts, strict=True):
            record_answer_of_target(part, part_answer, state)


def _assign_attribute(interp: Interpreter, target: ast.Attribute, value: AbstractValue) -> None:
    owner = interp.evaluate(target.value)
    sinks.check_stored_attribute(interp, target, owner, value)
    handles = owner.heap_keys()
    for key in handles:
        heap_object = interp.state.find_object(key)
        if heap_object is not None:
            held = value if len(handles) == 1 else heap.join_entry(heap_object, target.attr, value)
            interp.state.heap[key] = heap_object.with_entry(target.attr, held)
    if not handles and isinstance(target.value, ast.Name) and secrecy.is_weak(value):
        interp.state.names[f"{target.value.id}.{target.attr}"] = value
    for thing in owner.things:
        if isinstance(thing, ModuleRef):
            _join_into_name(
                namespaces.module_environment(interp.run, thing.name), target.attr, value
            )
        elif isinstance(thing, ExternalRef) and thing.name in sources.REQUEST_CARRIERS:
            heap.store_framework_attribute(interp.state, thing.name, target.attr, value)


def _assign_subscript(interp: Interpreter, target: ast.Subscript, value: AbstractValue) -> None:
    owner = interp.evaluate(target.value)
    key = interp.evaluate(target.slice)
    sinks.check_stored_item(interp, target, owner, key, value)
    if isinstance(target.slice, ast.Slice):
        heap.store_slice(
            owner, project_part(value, "slice") if value.taints else value, interp.state
        )
        return
    heap.store_item(owner, key, value, interp.state)


def _assign_unpacked(interp: Interpreter, parts: list[ast.expr], value: AbstractValue) -> None:
    items = interp.state.known_elements(value)
    starred = any(isinstance(part, ast.Starred) for part in parts)
    if items is not None and len(items) == len(parts) and not starred:
        for part, item in zip(parts, items, strict=True):
            interp.assign_target(part, item)
        return
    for index, part in enumerate(parts):
        if not value.taints:
            item = interp.state.any_element(value)
        elif index == 0 and (key := key_of_items_element(value)) is not None:
            item = key
        else:
            item = project_part(value, ("item", index))
        interp.assign_target(part, item)


def assign_augmented(interp: Interpreter, node: ast.AugAssign) -> None:
    """`target op= value`."""
    reading = ast.copy_location(_as_load_expression(node.target), node.target)
    before = interp.evaluate(reading)
    added = interp.evaluate(node.value)
    if isinstance(node.op, ast.Add) and heap.extend_in_place(before, added, interp.state):
        return
    value = arithmetic.combine_operands(interp, node, node.op, before, added)
    interp.assign_target(node.target, value)


def _as_load_expression(target: ast.Name | ast.Attribute | ast.Subscript) -> ast.expr:
    match target:
        case ast.Name():
            return ast.Name(target.id, ast.Load())
        case ast.Attribute():
            return ast.Attribute(target.value, target.attr, ast.Load())
        case ast.Subscript():
            return ast.Subscript(target.value, target.slice, ast.Load())


def _join_into_name(names: dict[str, AbstractValue], name: str, value: AbstractValue) -> None:
    """A weak update of a name that other code may read at any time."""
    before = names.get(name)
    names[name] = value if before is None else join_values(before, value)


_MAX_UNROLLED_ITEMS = 6


def execute_body(interp: Interpreter, body: Sequence[ast.stmt]) -> bool:
    """Walk statements in order; False when no path comes out at the end."""
    if interp.run.nesting >= DEEPEST_NESTING:
        interp.run.unfinished.add(interp.frame.path)
        return True
    interp.run.nesting += 1
    try:
        return all(_execute_statement(interp, node) for node in body)
    finally:
        interp.run.nesting -= 1


def _execute_statement(interp: Interpreter, node: ast.stmt) -> bool:  # noqa: C901, PLR0911, PLR0912
    interp.run.spend_step()
    match node:
        case ast.Expr():
            interp.evaluate(node.value)
            return not _never_returns(interp, node.value)
        case ast.Assign():
            _execute_assign(interp, node)
        case ast.AnnAssign():
            if node.value is not None:
                value = interp.evaluate(node.value)
                interp.assign_target(node.target, value)
        case ast.AugAssign():
            assign_augmented(interp, node)
        case ast.Return():
            _execute_return(interp, node)
            return False
        case ast.Raise():
            if node.exc is not None:
                interp.evaluate(node.exc)
            return False
        case ast.If():
            return _execute_if(interp, node)
        case ast.For() | ast.AsyncFor():
            return _execute_for(interp, node)
        case ast.While():
            return _execute_while(interp, node)
        case ast.Try() | ast.TryStar():
            return _execute_try(interp, node)
        case ast.With() | ast.AsyncWith():
            return _execute_with(interp, node)
        case ast.Match():
            return _execute_match(interp, node)
        case ast.Break():
            interp.frame.breaks.append(interp.state.fork())
            return False
        case ast.Continue():
            interp.frame.continues.append(interp.state.fork())
            return False
        case ast.Assert():
            true, _ = interp.branch_states(node.test)
            if true is not None:
                interp.state.replace_with(true)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            _execute_definition(interp, node)
        case ast.Import() | ast.ImportFrom():
            _execute_import(interp, node)
        case ast.Global() | ast.Nonlocal():
            interp.frame.globals.update(node.names)
        case ast.Delete():
            for target in node.targets:
                if isinstance(target, ast.Name):
                    interp.state.names.pop(target.id, None)
        case _:
            pass
    return True


def _execute_assign(interp: Interpreter, node: ast.Assign) -> None:
    before = len(interp.run.answers)
    value = interp.evaluate(node.value)
    answer = conditions.find_implications_of_truth(interp, node.value, interp.run.answers[before:])
    del interp.run.answers[before:]
    for target in node.targets:
        interp.assign_target(target, value)
        record_answer_of_target(target, answer, interp.state)


def _execute_return(interp: Interpreter, node: ast.Return) -> None:
    if node.value is None:
        interp.frame.returns.append((NONE_VALUE, interp.state.fork()))
        return
    if conditions.is_truth_expression(node.value):
        # A helper that checks something: keep the knowledge for each result apart.
        true, false = interp.branch_states(node.value)
        for way, answer in ((true, True), (false, False)):
            if way is not None:
                interp.frame.returns.append((make_constant(value=answer), way))
        return
    value = interp.evaluate(node.value)
    if interp.frame.entry is not None:
        sinks.check_response(interp, node, value)
    interp.frame.returns.append((value, interp.state.fork()))


def _execute_if(interp: Interpreter, node: ast.If) -> bool:
    ways: list[AbstractState] = []
    rest = interp.state
    # A long elif chain is nested in its tree: walk it flat.
    while True:
        true, false = interp.with_state(rest).branch_states(node.test)
        if true is not None and interp.with_state(true).execute(node.body):
            ways.append(true)
        if false is None:
            break
        rest = false
        if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
            node = node.orelse[0]
            continue
        if interp.with_state(rest).execute(node.orelse):
            ways.append(rest)
        break
    return _replace_state_with_join(interp.state, ways)


def _replace_state_with_join(state: AbstractState, ways: list[AbstractState]) -> bool:
    joined = join_states(ways)
    if joined is None:
        return False
    state.replace_with(joined)
    return True


def _execute_for(interp: Interpreter, node: ast.For | ast.AsyncFor) -> bool:
    iterable = interp.evaluate(node.iter)
    exact = interp.state.known_elements(iterable)
    outer_breaks, outer_continues = interp.frame.breaks, interp.frame.continues
    interp.frame.breaks = []
    if exact is not None and len(exact) <= _MAX_UNROLLED_ITEMS:
        alive = _execute_unrolled(interp, node, exact)
    else:
        element = heap.make_loop_element(interp, node, iterable)
        alive = _execute_repeated(interp, node.body, (node.target, element))
    if alive:
        alive = interp.execute(node.orelse)
    ways = interp.frame.breaks
    interp.frame.breaks, interp.frame.continues = outer_breaks, outer_continues
    return _replace_state_with_join(
        interp.state, [*ways, *([interp.state.fork()] if alive else [])]
    )


def _execute_unrolled(
    interp: Interpreter, node: ast.For | ast.AsyncFor, items: tuple[AbstractValue, ...]
) -> bool:
    for item in items:
        interp.frame.continues = []
        interp.assign_target(node.target, item)
        alive = interp.execute(node.body)
        if not _replace_state_with_join(
            interp.state, [*interp.frame.continues, *([interp.state.fork()] if alive else [])]
        ):
            return False
    return True


def _execute_repeated(
    interp: Interpreter, body: Sequence[ast.stmt], element: tuple[ast.expr, AbstractValue] | None
) -> bool:
    """Walk a loop's body until nothing new is learnt (twice, then constants are let go, then once more)."""
    for turn in range(3):
        before = interp.state.fork()
        interp.frame.continues = []
        if element is not None:
            interp.assign_target(element[0], element[1])
        alive = interp.execute(body)
        ways = [*interp.frame.continues, *([interp.state.fork()] if alive else []), before]
        _replace_state_with_join(interp.state, ways)
        changed = [
            name for name, value in interp.state.names.items() if before.names.get(name) != value
        ]
        if not changed and interp.state.heap == before.heap:
            break
        if turn:
            for name in changed:
                value = interp.state.names[name]
                if value.constants:
                    interp.state.names[name] = replace(value, constants=None)
    return True


def _execute_while(interp: Interpreter, node: ast.While) -> bool:
    outer_breaks, outer_continues = interp.frame.breaks, interp.frame.continues
    interp.frame.breaks = []
    true, false = interp.branch_states(node.test)
    ways = [false] if false is not None else []
    if true is not None:
        _execute_repeated(interp.with_state(true), node.body, None)
        _, done = interp.with_state(true).branch_states(node.test)
        if done is not None:
            ways.append(done)
    if ways:
        _replace_state_with_join(interp.state, ways)
        ways = [interp.state.fork()] if interp.execute(node.orelse) else []
    ways += interp.frame.breaks
    interp.frame.breaks, interp.frame.continues = outer_breaks, outer_continues
    return _replace_state_with_join(interp.state, ways)


def _execute_try(interp: Interpreter, node: ast.Try | ast.TryStar) -> bool:
    at_any_point = [interp.state.fork()]
    alive = True
    for statement in node.body:
        alive = _execute_statement(interp, statement)
        if not alive:
            break
        if len(at_any_point) < 12:
            at_any_point.append(interp.state.fork())
    ways: list[AbstractState] = []
    if alive and interp.execute(node.orelse):
        ways.append(interp.state.fork())
    thrown = join_states(at_any_point)
    for handler in node.handlers:
        caught = thrown.fork() if thrown is not None else interp.state.fork()
        if handler.name:
            caught.names[handler.name] = TOP
        if interp.with_state(caught).execute(handler.body):
            ways.append(caught)
    if not ways:
        if node.finalbody and thrown is not None:
            interp.with_state(thrown).execute(node.finalbody)
        return False
    _replace_state_with_join(interp.state, ways)
    return interp.execute(node.finalbody)


def _execute_with(interp: Interpreter, node: ast.With | ast.AsyncWith) -> bool:
    for item in node.items:
        value = interp.evaluate(item.context_expr)
        if item.optional_vars is not None:
            interp.assign_target(item.optional_vars, heap.value_bound_by_with(interp, value, node))
    return interp.execute(node.body)


def _execute_match(interp: Interpreter, node: ast.Match) -> bool:
    subject = interp.evaluate(node.subject)
    ways: list[AbstractState] = []
    for case in node.cases:
        fits = _case_matches_subject(interp, case.pattern, subject)
        if fits is False:
            continue
        way = interp.state.fork()
        for capture in ast.walk(case.pattern):
            if isinstance(capture, ast.MatchAs | ast.MatchStar) and capture.name:
                whole = isinstance(capture, ast.MatchAs) and capture is case.pattern
                way.names[capture.name] = (
                    subject if whole else project_part(subject, ("match", capture.name))
                )
        _assume_case_matched(case.pattern, subject, way)
        entered: AbstractState | None = way
        if case.guard is not None:
            entered, _ = interp.with_state(way).branch_states(case.guard)
            fits = None
        if entered is not None and interp.with_state(entered).execute(case.body):
            ways.append(entered)
        if fits:
            return _replace_state_with_join(interp.state, ways)
    return _replace_state_with_join(interp.state, [*ways, interp.state.fork()])


def _execute_definition(
    interp: Interpreter, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
) -> None:
    closure = interp.frame.closure
    if isinstance(node, ast.ClassDef):
        interp.state.names[node.name] = make_reference(ClassRef(node, interp.frame.path, closure))
        for item in node.body:
            if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
                entry_points.queue_function(
                    interp.run, FunctionRef(item, interp.frame.path, closure), node
                )
        return
    function = FunctionRef(node, interp.frame.path, closure)
    interp.state.names[node.name] = make_reference(function)
    entry_points.queue_function(interp.run, function, None)


def _execute_import(interp: Interpreter, node: ast.Import | ast.ImportFrom) -> None:
    if isinstance(node, ast.Import):
        for alias in node.names:
            wanted = alias.name if alias.asname else alias.name.split(".")[0]
            found = interp.run.program.find_module(wanted, interp.frame.path)
            name = alias.asname or wanted
            interp.state.names[name] = (
                module_value(found) if found is not None else make_external(wanted)
            )
        return
    source = node.module or ""
    found = interp.run.program.find_module(source, interp.frame.path, node.level)
    for alias in node.names:
        name = alias.asname or alias.name
        if alias.name == "*":
            if found is not None:
                interp.state.names.update(namespaces.exported_names(interp.run, found))
            continue
        if found is None:
            interp.state.names[name] = make_external(f"{source or '?'}.{alias.name}")
        else:
            interp.state.names[name] = make_reference(UnresolvedImport(found, alias.name))


# The condition of a `case`, and what it implies about the subject.


def _case_matches_subject(
    interp: Interpreter, pattern: ast.pattern, subject: AbstractValue
) -> bool | None:
    """Whether a `case` takes the subject; None when it may."""
    match pattern:
        case ast.MatchValue():
            value = interp.evaluate(pattern.value)
            return conditions.compare_values(ast.Eq(), subject, value, interp.state)
        case ast.MatchSingleton():
            return conditions.compare_values(
                ast.Is(), subject, make_constant(pattern.value), interp.state
            )
        case ast.MatchOr():
            verdicts = [
                _case_matches_subject(interp, option, subject) for option in pattern.patterns
            ]
            if True in verdicts:
                return True
            return None if None in verdicts else False
        case ast.MatchAs():
            return (
                True
                if pattern.pattern is None
                else _case_matches_subject(interp, pattern.pattern, subject)
            )
        case _:
            return None


def _assume_case_matched(
    pattern: ast.pattern, subject: AbstractValue, state: AbstractState
) -> None:
    """What a `case` of constants implies about a tainted subject."""
    while isinstance(pattern, ast.MatchAs) and pattern.pattern is not None:
        pattern = pattern.pattern
    options = pattern.patterns if isinstance(pattern, ast.MatchOr) else [pattern]
    if all(
        isinstance(option, ast.MatchValue) and isinstance(option.value, ast.Constant)
        for option in options
    ):
        validation.assume_equal(subject, TOP, state)


_NON_RETURNING = frozenset(
    {
        "flask.abort",
        "werkzeug.exceptions.abort",
        "sys.exit",
        "os._exit",
        "builtins.exit",
        "builtins.quit",
        "os.abort",
        "quart.abort",
        "bottle.abort",
        "pytest.fail",
        "pytest.skip",
    }
)


def _never_returns(interp: Interpreter, node: ast.expr) -> bool:
    """Whether a statement of this expression ends the path."""
    if not isinstance(node, ast.Call):
        return False
    func = node.func
    if isinstance(func, ast.Name):
        callee = namespaces.resolve_imports(interp.run, interp.lookup_name(func.id))
        return bool(callee.things) and all(
            isinstance(t, ExternalRef) and t.name in _NON_RETURNING for t in callee.things
        )
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
        owner = namespaces.resolve_imports(interp.run, interp.lookup_name(func.value.id))
        return any(f"{name}.{func.attr}" in _NON_RETURNING for name in owner.external_names())
    return False
