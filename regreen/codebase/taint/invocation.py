"""Calling what the repository defines: functions, methods, classes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from regreen.codebase.taint import (
    answers,
    calls,
    expressions,
    forms,
    guards,
    heap,
    sinks,
    statements,
)
from regreen.codebase.taint.meeting import join_states
from regreen.codebase.taint.run import DEEPEST_CALL, Frame, Run
from regreen.codebase.taint.sinks import Arguments
from regreen.codebase.taint.state import Heaped, State
from regreen.codebase.taint.values import (
    NONE,
    NOTHING,
    UNKNOWN,
    ClassRef,
    External,
    FunctionRef,
    Handle,
    ModuleRef,
    Step,
    Taint,
    Thing,
    Value,
    doubtful,
    external,
    join,
    moved,
    tainted,
    thing,
)


def invoke(  # noqa: PLR0917
    run: Run, frame: Frame, node: ast.AST, callee: Value, args: Arguments, state: State
) -> Value:
    """Call functions and classes of the repository."""
    found: list[Value] = []
    for one in callee.things:
        if isinstance(one, FunctionRef):
            found.append(_inline(run, frame, node, one, args, state))
        elif isinstance(one, ClassRef):
            found.append(instance(run, frame, node, one, args, state))
        elif isinstance(one, External) and isinstance(node, ast.Call):
            found.append(calls.library_call(run, frame, node, (one.name,), args, state, UNKNOWN))
    if found:
        return join(*found)
    taints = frozenset[Taint]().union(*(arg.taints for arg in args.all()))
    return doubtful(tainted(taints)) if taints else UNKNOWN


def instance(  # noqa: PLR0917
    run: Run, frame: Frame, node: ast.AST, cls: ClassRef, args: Arguments, state: State
) -> Value:
    """A new object of the class, its `__init__` run."""
    checked = forms.made(run, frame, node, cls, args, state)
    if checked is not None:
        return checked
    key = (id(node), id(cls.node), frame.context)
    state.heap[key] = Heaped("instance", of=cls, rest=NOTHING)
    value = thing(Handle(key))
    made = class_member(run, cls, "__init__", value)
    if any(isinstance(one, FunctionRef) for one in made.things):
        invoke(run, frame, node, made, args, state)
        return value
    fields = [
        item.target.id
        for item in cls.node.body
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    ]
    heaped = state.heap[key]
    for name, given in (*zip(fields, args.positional, strict=False), *args.keywords.items()):
        heaped = heaped.with_entry(name, given)
    state.heap[key] = heaped
    made = class_member(run, cls, "__post_init__", value)
    if any(isinstance(one, FunctionRef) for one in made.things):
        invoke(run, frame, node, made, Arguments(), state)
    return value


def bases(run: Run, cls: ClassRef) -> Iterator[Thing]:
    """What a class is made from."""
    environment = expressions.environment(run, cls.module)
    for base in cls.node.bases:
        yield from _base_class(run, environment, base).things


def class_member(run: Run, cls: ClassRef, name: str, bound: Value | None, depth: int = 0) -> Value:
    """A class's attribute, looked up along its bases; methods come bound."""
    environment = expressions.environment(run, cls.module)
    item = _items(run, cls.node).get(name)
    if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
        kinds = {d.id for d in item.decorator_list if isinstance(d, ast.Name)}
        owner = None if "staticmethod" in kinds else thing(cls) if "classmethod" in kinds else bound
        return thing(FunctionRef(item, cls.module, cls.closure, owner))
    if isinstance(item, ast.expr):
        return _class_attribute(run, cls, item)
    if depth > 5:
        return UNKNOWN
    outside: list[Value] = []
    for base in cls.node.bases:
        value = _base_class(run, environment, base)
        for one in value.things:
            if isinstance(one, ClassRef) and one != cls:
                found = class_member(run, one, name, bound, depth + 1)
                if found.things:
                    return found
            elif isinstance(one, External):
                outside.append(external(f"{one.name}.{name}"))
    return join(*outside) if outside else UNKNOWN


def _items(run: Run, node: ast.ClassDef) -> dict[str, ast.expr | ast.stmt]:
    """What a class's body gives each name first: a method, or an expression."""
    known = run.members.get(node)
    if known is not None:
        return known
    found: dict[str, ast.expr | ast.stmt] = {}
    for item in node.body:
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
            found.setdefault(item.name, item)
        elif isinstance(item, ast.Assign | ast.AnnAssign) and item.value is not None:
            for target in item.targets if isinstance(item, ast.Assign) else [item.target]:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, item.value)
    run.members[node] = found
    return found


def _base_class(run: Run, environment: Mapping[str, Value], base: ast.expr) -> Value:
    """What a base class is: a name, or a name in modules."""
    if isinstance(base, ast.Name):
        return expressions.resolved(run, environment.get(base.id, UNKNOWN))
    if not isinstance(base, ast.Attribute):
        return UNKNOWN
    found: list[Value] = []
    for one in _base_class(run, environment, base.value).things:
        if isinstance(one, ModuleRef):
            found.append(expressions.resolved(run, expressions.member(run, one.name, base.attr)))
        elif isinstance(one, External):
            found.append(external(f"{one.name}.{base.attr}"))
    return join(*found) if found else UNKNOWN


def _class_attribute(run: Run, cls: ClassRef, node: ast.expr) -> Value:
    frame = Frame(cls.module, cls.node, (cls.module, id(cls.node)), 0)
    names = dict(expressions.environment(run, cls.module))
    state = State(names, {}, {}, run.shared)
    value = expressions.evaluate(run, frame, node, state)
    run.shared.update(state.heap)
    return value


def is_property(function: FunctionRef) -> bool:
    """Whether reading the attribute calls the function."""
    return isinstance(function.node, ast.FunctionDef) and any(
        (isinstance(d, ast.Name) and d.id in {"property", "cached_property"})
        or (isinstance(d, ast.Attribute) and d.attr == "cached_property")
        for d in function.node.decorator_list
    )


def _inline(  # noqa: PLR0917
    run: Run, frame: Frame, node: ast.AST, function: FunctionRef, args: Arguments, state: State
) -> Value:
    """Walk a function's body with these arguments."""
    run.closures[frame.closure] = (state.names, frame.outer)
    if run.stack.count(function.node) > 1 or len(run.stack) >= run.deepest:
        taints = frozenset[Taint]().union(*(sinks.deep(state, arg) for arg in args.all()))
        return doubtful(tainted(taints)) if taints else UNKNOWN
    # Behind a handler every call counts (a factory decides which class is meant); elsewhere most do not.
    # What makes an object is always followed: its methods are called with what it was given.
    making = getattr(function.node, "name", "") in {"__init__", "__post_init__"}
    worth_it = making or run.entry is not None or run.may_bring_taint(function)
    if not worth_it and not _is_interesting(state, function, args):
        return UNKNOWN
    here = Step(
        frame.path,
        getattr(node, "lineno", 1),
        f"passed to `{getattr(function.node, 'name', 'lambda')}`",
    )
    names = _bound_arguments(run, frame, function, args, here, state)
    inner = Frame(
        function.module,
        function.node,
        (*frame.context, id(node))[-DEEPEST_CALL:],
        0,
        function.closure,
    )
    if function.node is run.handler:
        inner.entry, run.reached = run.entry, True
    inner.closure = run.new_closure(names, function.closure)
    body = state.frame(names)
    if isinstance(node, ast.Call):
        _hand_answers(run, frame, node, function, state, body)
    run.stack.append(function.node)
    nesting, run.nesting, before = run.nesting, 0, len(run.answers)
    try:
        value = walk(run, inner, function, body)
    finally:
        run.stack.pop()
        run.nesting = nesting
    del run.answers[before:]
    if inner.answer:
        run.answers.append((node, inner.answer))
    state.heap, state.checked = body.heap, body.checked
    return value


def _hand_answers(  # noqa: PLR0917
    run: Run, frame: Frame, node: ast.Call, function: FunctionRef, state: State, body: State
) -> None:
    """`require(name.isalnum())`: when the helper tests its parameter, it tests what was asked here."""
    names = [a.arg for a in (*function.node.args.posonlyargs, *function.node.args.args)]
    given = node.args
    for name, asked in zip(names[function.owner is not None :], given, strict=False):
        if isinstance(asked, ast.Starred):
            return
        told = guards.kept_answer(run, frame, asked, [], state)
        if told is not None:
            body.answers[name] = told


def _is_interesting(state: State, function: FunctionRef, args: Arguments) -> bool:
    """Whether a call gets something worth following: an untrusted value, or code to call."""
    given = args.all() if function.owner is None else (*args.all(), function.owner)
    return any(
        sinks.deep(state, value) or any(isinstance(t, FunctionRef | ClassRef) for t in value.things)
        for value in given
    )


def walk(run: Run, inner: Frame, function: FunctionRef, body: State) -> Value:
    """Walk a body and join its returns; `body` becomes what holds after the call."""
    if isinstance(function.node, ast.Lambda):
        return expressions.evaluate(run, inner, function.node.body, body)
    alive = statements.execute(run, inner, function.node.body, body)
    ways = list(inner.returns)
    if alive:
        ways.append((NONE, body.fork()))
    run.closures[inner.closure] = (body.names, inner.outer)
    if inner.yields:
        made = Heaped("list", items=None, rest=join(*inner.yields))
        return heap.allocate(inner, function.node, made, body)
    if not ways:
        return NOTHING
    inner.answer = _answer(ways)
    joined = join_states([way for _, way in ways])
    values = [way.baked(value) for value, way in ways]
    if joined is not None:
        body.take(joined)
    return join(*values)


def _answer(ways: list[tuple[Value, State]]) -> answers.Answer | None:
    """For a helper that answers yes or no: what was checked on the way to each."""
    if not any(way.checked for _, way in ways):
        return None
    return answers.answer(
        [
            (
                guards.truthiness(way, value),
                [guards.truthiness(way, part) for part in heap.elements(way, value) or ()],
                way,
            )
            for value, way in ways
        ]
    )


def _bound_arguments(  # noqa: PLR0917
    run: Run, frame: Frame, function: FunctionRef, args: Arguments, here: Step, state: State
) -> dict[str, Value]:
    node = function.node
    names: dict[str, Value] = {}
    positional = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
    given = list(args.positional)
    if function.owner is not None:
        given.insert(0, function.owner)
    for name, value in zip(positional, given, strict=False):
        names[name] = moved(value, here)
    rest = given[len(positional) :]
    if node.args.vararg is not None:
        packed = Heaped("tuple", items=tuple(moved(v, here) for v in rest))
        names[node.args.vararg.arg] = heap.allocate(frame, node.args.vararg, packed, state)
    known = {*positional, *(a.arg for a in node.args.kwonlyargs)}
    extra = Heaped("dict")
    for name, value in args.keywords.items():
        if name in known:
            names[name] = moved(value, here)
        else:
            extra = extra.with_entry(name, moved(value, here))
    if node.args.kwarg is not None:
        names[node.args.kwarg.arg] = heap.allocate(frame, node.args.kwarg, extra, state)
    for name, default in _defaults(node):
        if name not in names:
            names[name] = constant_default(run, frame, default, state)
    for name in known - names.keys():
        names[name] = args.spread if args.spread is not None else UNKNOWN
    return names


def _defaults(
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


def constant_default(run: Run, frame: Frame, node: ast.expr, state: State) -> Value:
    """A parameter's default; only what needs no evaluation in another scope."""
    if isinstance(node, ast.Constant):
        return expressions.evaluate(run, frame, node, state)
    return UNKNOWN
