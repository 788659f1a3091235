"""What an expression may be."""

from __future__ import annotations

import ast
import string
from collections.abc import Sequence
from dataclasses import replace

from regreen.codebase.taint import (
    arithmetic,
    calls,
    comprehensions,
    containers,
    fields,
    guards,
    heap,
    invocation,
    sources,
    statements,
    targets,
    texts,
)
from regreen.codebase.taint.library import PATH
from regreen.codebase.taint.run import (
    DEEPEST_NESTING,
    Frame,
    OutOfSteps,
    Run,
    lookup,
    module_value,
)
from regreen.codebase.taint.sinks import Arguments
from regreen.codebase.taint.state import Heaped, State
from regreen.codebase.taint.values import (
    NOTHING,
    UNKNOWN,
    Bound,
    ClassRef,
    External,
    FunctionRef,
    Handle,
    Imported,
    ModuleRef,
    Scalar,
    Value,
    constant,
    external,
    join,
    made_safe,
    part_of,
    tainted,
    thing,
)

_FILE_NAMES = frozenset({"name", "stem", "suffix"})


def evaluate(run: Run, frame: Frame, node: ast.expr, state: State) -> Value:
    """What `node` may be here; calls in it happen."""
    run.tick()
    if run.nesting >= DEEPEST_NESTING:
        run.unfinished.add(frame.path)
        return UNKNOWN
    run.nesting += 1
    try:
        return _evaluate(run, frame, node, state)
    finally:
        run.nesting -= 1


def _evaluate(run: Run, frame: Frame, node: ast.expr, state: State) -> Value:  # noqa: C901, PLR0911, PLR0912
    match node:
        case ast.Constant():
            return (
                UNKNOWN
                if isinstance(node.value, complex) or node.value is ...
                else constant(node.value)
            )
        case ast.Name():
            return state.baked(resolved(run, lookup(run, frame, state, node.id)))
        case ast.Attribute():
            return attribute(run, frame, node, evaluate(run, frame, node.value, state), state)
        case ast.Call():
            return calls.call(run, frame, node, state)
        case ast.JoinedStr():
            return arithmetic.concatenated(_pieces(run, frame, node, state))
        case ast.FormattedValue():
            value = evaluate(run, frame, node.value, state)
            return texts.number([value]) if _is_numeric(node.format_spec) else value
        case ast.BinOp():
            return _binary(run, frame, node, state)
        case ast.Subscript():
            return _subscript(run, frame, node, state)
        case ast.IfExp():
            return _conditional(run, frame, node, state)
        case ast.BoolOp():
            return _either(run, frame, node, state)
        case ast.UnaryOp():
            return _unary(run, frame, node, state)
        case ast.Compare():
            return guards.truth_value(run, frame, node, state)
        case ast.List() | ast.Tuple() | ast.Set():
            return _sequence(run, frame, node, state)
        case ast.Dict():
            return _dict(run, frame, node, state)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            return comprehensions.built(run, frame, node, state)
        case ast.Lambda():
            return thing(
                FunctionRef(node, frame.path, run.new_closure(dict(state.names), frame.outer))
            )
        case ast.NamedExpr():
            value = evaluate(run, frame, node.value, state)
            targets.assign(run, frame, node.target, value, state)
            return value
        case ast.Await() | ast.Starred():
            return evaluate(run, frame, node.value, state)
        case ast.Yield() | ast.YieldFrom():
            if node.value is not None:
                frame.yields.append(evaluate(run, frame, node.value, state))
            return UNKNOWN
        case _:
            return UNKNOWN


def _is_numeric(spec: ast.expr | None) -> bool:
    """`{n:d}` raises for anything but a number."""
    if not isinstance(spec, ast.JoinedStr) or not spec.values:
        return False
    last = spec.values[-1]
    return isinstance(last, ast.Constant) and str(last.value)[-1:] in arithmetic.NUMERIC


def _pieces(run: Run, frame: Frame, node: ast.JoinedStr, state: State) -> list[Value]:
    pieces = [evaluate(run, frame, part, state) for part in node.values]
    return [heap.as_text(state, piece) for piece in pieces]


def _binary(run: Run, frame: Frame, node: ast.BinOp, state: State) -> Value:
    """`a + b + c + ...` nests to the left, hundreds deep at times: walked flat."""
    chain: list[ast.BinOp] = []
    first: ast.expr = node
    while isinstance(first, ast.BinOp):
        chain.append(first)
        first = first.left
    value = evaluate(run, frame, first, state)
    for one in reversed(chain):
        value = arithmetic.combined(
            frame, one, one.op, value, evaluate(run, frame, one.right, state), state
        )
    return value


def _sequence(run: Run, frame: Frame, node: ast.List | ast.Tuple | ast.Set, state: State) -> Value:
    kind = {ast.List: "list", ast.Tuple: "tuple", ast.Set: "set"}[type(node)]
    items: list[Value] = []
    exact = True
    for element in node.elts:
        value = evaluate(run, frame, element, state)
        if isinstance(element, ast.Starred):
            spread = heap.elements(state, value)
            if spread is None:
                exact = False
                spread = (heap.any_element(state, value),)
            items.extend(spread)
        else:
            items.append(value)
    if exact and len(items) <= 256:
        return heap.allocate(frame, node, Heaped(kind, items=tuple(items)), state)
    rest = join(*items) if items else NOTHING
    return heap.allocate(frame, node, Heaped(kind, items=None, rest=rest), state)


def _dict(run: Run, frame: Frame, node: ast.Dict, state: State) -> Value:
    heaped = Heaped("dict")
    for key_node, value_node in zip(node.keys, node.values, strict=True):
        value = evaluate(run, frame, value_node, state)
        if key_node is None:
            heaped = replace(
                heaped, rest=join(heaped.rest, heap.any_element(state, value), UNKNOWN)
            )
            continue
        key = evaluate(run, frame, key_node, state)
        heaped = containers.stored(heaped, key, value, sure=True)
        if key.taints:
            heaped = replace(heaped, rest=join(heaped.rest, tainted(key.taints)))
    return heap.allocate(frame, node, heaped, state)


def _conditional(run: Run, frame: Frame, node: ast.IfExp, state: State) -> Value:
    true, false = guards.branch(run, frame, node.test, state)
    values: list[Value] = []
    for way, branch in ((true, node.body), (false, node.orelse)):
        if way is not None:
            values.append(way.baked(evaluate(run, frame, branch, way)))
            state.heap.update(way.heap)
    return join(*values)


def _either(run: Run, frame: Frame, node: ast.BoolOp, state: State) -> Value:
    """`a or b`, `a and b`: any operand that can be the answer."""
    values: list[Value] = []
    way: State | None = state.fork()
    for operand in node.values:
        if way is None:
            break
        value = evaluate(run, frame, operand, way)
        state.heap.update(way.heap)
        verdict = guards.truthiness(way, value)
        last = operand is node.values[-1]
        stops = verdict is True if isinstance(node.op, ast.Or) else verdict is False
        goes_on = verdict is False if isinstance(node.op, ast.Or) else verdict is True
        if last or not goes_on:
            values.append(value)
        if stops:
            break
        true, false = guards.refined(run, frame, operand, way)
        way = false if isinstance(node.op, ast.Or) else true
    return join(*values)


def _unary(run: Run, frame: Frame, node: ast.UnaryOp, state: State) -> Value:
    if isinstance(node.op, ast.Not):
        return guards.truth_value(run, frame, node, state)
    value = evaluate(run, frame, node.operand, state)
    only = value.only
    if only and isinstance(only[0], int | float):
        number = only[0]
        if isinstance(node.op, ast.USub):
            return constant(-number)
        if isinstance(node.op, ast.Invert) and isinstance(number, int):
            return constant(-number - 1)
    return UNKNOWN


def _subscript(run: Run, frame: Frame, node: ast.Subscript, state: State) -> Value:
    value = evaluate(run, frame, node.value, state)
    if isinstance(node.slice, ast.Slice):
        return _slice(run, frame, node.slice, value, state)
    key = evaluate(run, frame, node.slice, state)
    found: list[Value] = []
    for handle in value.handles():
        heaped = state.at(handle)
        if heaped is not None:
            found.append(containers.item(heaped, key))
    if value.taints:
        only = key.only
        found.append(
            part_of(value, ("key", only[0]) if only else ("item", node.lineno, node.col_offset))
        )
    texts = value.known
    if texts and key.known is not None:
        found.extend(_indexed(text, index) for text in texts for index in key.known)
    found.extend(external(f"{name}[]") for name in value.names() if not value.taints)
    return state.baked(join(*found)) if found else UNKNOWN


def _indexed(text: Scalar, index: Scalar) -> Value:
    if isinstance(text, str) and isinstance(index, int) and -len(text) <= index < len(text):
        return constant(text[index])
    return UNKNOWN


def _slice(run: Run, frame: Frame, node: ast.Slice, value: Value, state: State) -> Value:
    bounds: list[int | None] = []
    exact = True
    for part in (node.lower, node.upper, node.step):
        if part is None:
            bounds.append(None)
            continue
        only = evaluate(run, frame, part, state).only
        if only and isinstance(only[0], int) and (part is not node.step or only[0]):
            bounds.append(only[0])
        else:
            exact = False
    items = heap.elements(state, value)
    if exact and items is not None:
        return heap.allocate(frame, node, Heaped("list", items=items[slice(*bounds)]), state)
    text = value.text
    if exact and text is not None:
        return constant(text[slice(*bounds)])
    if value.handles():
        return heap.allocate(
            frame,
            node,
            Heaped("list", items=None, rest=heap.any_element(state, value)),
            state,
        )
    # The beginning that is known is text of ours: what is cut out of it is, too.
    if exact and value.prefix and bounds[1] is not None and 0 <= bounds[1] <= len(value.prefix):
        return constant(value.prefix[slice(*bounds)])
    return part_of(value, ("slice", tuple(bounds) if exact else (node.lineno, node.col_offset)))


def attribute(run: Run, frame: Frame, node: ast.Attribute, owner: Value, state: State) -> Value:
    """`owner.attr`."""
    found: list[Value] = []
    for one in owner.things:
        match one:
            case ModuleRef():
                found.append(member(run, one.name, node.attr))
            case External():
                value = heap.carried(state, one.name, node.attr)
                if one.name == "string" and isinstance(getattr(string, node.attr, None), str):
                    value = constant(getattr(string, node.attr))
                value = value or sources.attribute(
                    one.name, node.attr, frame, node.lineno, run.entry
                )
                if value is not None:
                    found.append(value)
                elif not owner.taints:
                    found.append(external(f"{one.name}.{node.attr}"))
            case Handle():
                found.extend(_held(run, frame, one, node, state))
            case ClassRef() if node.attr == "__members__" and fields.is_choice(one.node):
                found.append(heap.allocate(frame, node, Heaped("dict", rest=UNKNOWN), state))
            case ClassRef():
                found.append(invocation.class_member(run, one, node.attr, None))
            case FunctionRef() | Bound() | Imported():
                pass
    if owner.taints:
        part = part_of(owner, ("attribute", node.attr))
        one_name = node.attr in _FILE_NAMES and "pathlib.Path()" in owner.names()
        found.append(made_safe(part, PATH) if one_name else part)
    return state.baked(join(*found)) if found else UNKNOWN


def _held(
    run: Run, frame: Frame, handle: Handle, node: ast.Attribute, state: State
) -> Sequence[Value]:
    heaped = state.at(handle.key)
    if heaped is None:
        return ()
    if node.attr in heaped.entries:
        return (heaped.entries[node.attr],)
    if isinstance(heaped.of, ClassRef):
        value = invocation.class_member(run, heaped.of, node.attr, thing(handle))
        if any(
            isinstance(one, FunctionRef) and invocation.is_property(one) for one in value.things
        ):
            return (invocation.invoke(run, frame, node, value, Arguments(), state),)
        return (value,)
    if isinstance(heaped.of, External):
        return (external(f"{heaped.of.name}.{node.attr}"),)
    return (heaped.rest,) if heaped.rest != NOTHING else ()


def environment(run: Run, path: str) -> dict[str, Value]:
    """The names of a module, after its body was walked once."""
    if path in run.environments:
        return run.environments[path]
    names: dict[str, Value] = {"__name__": UNKNOWN, "__file__": UNKNOWN}
    run.environments[path] = names
    module = run.program.module(path) if path.endswith(".py") else None
    if module is None:
        return names
    frame = Frame(path, module.tree, (path,), run.new_closure(names, 0))
    state = State(names, {}, {}, run.shared)
    stack, run.stack, left, run.left = run.stack, [], run.left, max(run.left, 1) + 20_000
    nesting, run.nesting, entry, run.entry = run.nesting, 0, run.entry, None
    try:
        statements.execute(run, frame, module.tree.body, state)
    except OutOfSteps:
        run.unfinished.add(path)
    finally:
        run.stack, run.left, run.nesting, run.entry = stack, left, nesting, entry
    names.update(state.names)
    run.shared.update(state.heap)
    return names


def exported(run: Run, path: str) -> dict[str, Value]:
    """What `from module import *` brings."""
    names = environment(run, path)
    return {name: value for name, value in names.items() if not name.startswith("_")}


def resolved(run: Run, value: Value, depth: int = 0) -> Value:
    """The value with the names that it was imported by looked up."""
    waiting = [one for one in value.things if isinstance(one, Imported)]
    if not waiting or depth > 12:
        return value
    rest = replace(value, things=value.things - set(waiting))
    found = [member(run, one.module, one.name, depth + 1) for one in waiting]
    return join(*found) if rest == NOTHING else join(rest, *found)


def member(run: Run, path: str, name: str, depth: int = 0) -> Value:
    """`module.name`."""
    value = environment(run, path).get(name)
    if value is not None:
        return resolved(run, value, depth)
    inside = run.program.submodule(path, name)
    return module_value(inside) if inside is not None else UNKNOWN
