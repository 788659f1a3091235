"""What a framework does before it calls a handler: checks the fields that are declared, calls what is depended on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from regreen.codebase.taint import (
    checks,
    entries,
    expressions,
    fields,
    forms,
    heap,
    invocation,
    routes,
    sources,
)
from regreen.codebase.taint.library import ALL
from regreen.codebase.taint.run import Frame, Run
from regreen.codebase.taint.sinks import Arguments
from regreen.codebase.taint.state import State
from regreen.codebase.taint.values import (
    NOTHING,
    UNKNOWN,
    ClassRef,
    FunctionRef,
    Imported,
    Value,
    part_of,
    thing,
)

_DEEPEST = 4
_HOOKS = frozenset({"before_request", "before_app_request"})
_DEPENDS = frozenset({"Depends", "Security"})


def prepare(
    run: Run, frame: Frame, function: FunctionRef, owner: ast.ClassDef | None, state: State
) -> None:
    """Put into the state what is known of a handler's parameters when it starts."""
    if run.entry is not None and run.entry.framework == "django":
        for name, pattern in routes.patterns(run, function, owner).items():
            checks.pattern_checked(pattern, state.names.get(name, UNKNOWN), state, whole=True)
    if owner is not None and getattr(function.node, "name", "") == "form_valid":
        _form(run, frame, function, owner, state)
    for given, default in _parameters(function.node):
        annotation = _meaning(run, function.module, given.annotation)
        argument = ast.copy_location(ast.arg(given.arg, annotation), given)
        if annotation is not given.annotation and annotation and fields.is_plain(annotation):
            state.names[argument.arg] = UNKNOWN
        wanted = _dependency(argument, default)
        if wanted is not None:
            state.names[argument.arg] = _provided(run, frame, function, wanted, argument, state, 0)
            continue
        value = state.names[argument.arg]
        _check_pattern(argument.annotation, default, value, state)
        for cls in _classes(run, function.module, argument.annotation):
            if fields.is_choice(cls.node):
                state.names[argument.arg] = UNKNOWN
            else:
                _check_fields(run, cls, value, state, 0)
                forms.check(run, frame, cls, value, state)


def hooks(run: Run, frame: Frame, function: FunctionRef, state: State) -> None:
    """Call what the module has called before each request."""
    module = run.program.module(function.module)
    if module is None or (
        "before_request" not in module.text and "before_app_request" not in module.text
    ):
        return
    for node in module.tree.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node is function.node:
            continue
        names = {ast.unparse(one).rpartition(".")[2] for one in node.decorator_list}
        if names & _HOOKS:
            hook = thing(FunctionRef(node, function.module, function.closure))
            invocation.invoke(run, frame, node, hook, Arguments(), state)


def decorated(run: Run, frame: Frame, function: FunctionRef, state: State) -> bool:
    """Call a handler as its decorators of the repository have it called; False where they never do.

    The parameters are in the state's names.
    """
    if isinstance(function.node, ast.Lambda):
        return False
    scope = State(dict(expressions.environment(run, function.module)), state.heap, {}, state.shared)
    held = thing(function)
    for node in reversed(function.node.decorator_list):
        callee = expressions.evaluate(run, frame, node, scope)
        if callee.things and all(isinstance(one, FunctionRef) for one in callee.things):
            held = invocation.invoke(run, frame, node, callee, Arguments((held,)), state)
    if held == thing(function) or not all(isinstance(one, FunctionRef) for one in held.things):
        return False
    positional = [a.arg for a in (*function.node.args.posonlyargs, *function.node.args.args)]
    first = positional[:1] if positional[:1] in (["self"], ["request"]) else []
    rest = {name: value for name, value in state.names.items() if name not in first}
    given = Arguments(tuple(state.names[name] for name in first), rest)
    run.handler, run.reached, stack, run.stack = function.node, False, run.stack, []
    try:
        invocation.invoke(run, frame, function.node, held, given, state)
    finally:
        run.handler, run.stack = None, stack
    return run.reached


def _meaning(run: Run, module: str, annotation: ast.expr | None) -> ast.expr | None:
    """An annotation, or what it was defined as: `Page = Annotated[int, Query()]`, here or where it comes from."""
    if not isinstance(annotation, ast.Name):
        return annotation
    held = expressions.environment(run, module).get(annotation.id, UNKNOWN)
    place, name = next(
        ((one.module, one.name) for one in held.things if isinstance(one, Imported)),
        (module, annotation.id),
    )
    found = run.program.module(place) if place.endswith(".py") else None
    for statement in found.tree.body if found is not None else ():
        targets = (
            statement.targets
            if isinstance(statement, ast.Assign)
            else [getattr(statement, "target", None)]
        )
        named = any(isinstance(one, ast.Name) and one.id == name for one in targets)
        value = getattr(statement, "value", None)
        if named and isinstance(value, ast.Subscript):
            return value
    return annotation


def _form(run: Run, frame: Frame, function: FunctionRef, owner: ast.ClassDef, state: State) -> None:
    """What Django hands to `form_valid`: the view's form, filled from the request."""
    names = [argument.arg for argument in function.node.args.args]
    cls = ClassRef(owner, function.module, function.closure)
    for one in invocation.class_member(run, cls, "form_class", None).things:
        if isinstance(one, ClassRef) and len(names) > 1:
            line = owner.lineno
            data = sources.source("web", ("web.request", "POST"), "`request.POST`", frame, line)
            filled = forms.made(run, frame, owner, one, Arguments((data,)), state)
            state.names[names[1]] = filled or UNKNOWN


def _parameters(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    positional = [*node.args.posonlyargs, *node.args.args]
    missing = len(positional) - len(node.args.defaults)
    yield from zip(positional, [None] * missing + list(node.args.defaults), strict=True)
    yield from zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)


def _classes(run: Run, module: str, annotation: ast.expr | None) -> list[ClassRef]:
    """The repository's classes that an annotation names."""
    if annotation is None:
        return []
    names = expressions.environment(run, module)
    found: list[ClassRef] = []
    for node in ast.walk(annotation):
        if isinstance(node, ast.Name) and node.id in names:
            kind = expressions.resolved(run, names[node.id])
            found.extend(one for one in kind.things if isinstance(one, ClassRef))
    return found


def _check_fields(run: Run, cls: ClassRef, value: Value, state: State, depth: int) -> None:
    """A model of the repository: its numbers and choices are checked before the handler runs."""
    for name, annotation, default in fields.declared(cls.node):
        held = part_of(value, ("attribute", name))
        inner = _classes(run, cls.module, annotation)
        if fields.is_plain(annotation) or (
            inner and all(fields.is_choice(one.node) for one in inner)
        ):
            for taint in held.taints:
                state.check(taint.mark, ALL)
            continue
        _check_pattern(annotation, default, held, state)
        if depth < _DEEPEST:
            for one in inner:
                _check_fields(run, one, held, state, depth + 1)
    if depth < _DEEPEST:
        for base in cls.node.bases:
            for one in _classes(run, cls.module, base):
                _check_fields(run, one, value, state, depth + 1)


def _check_pattern(
    annotation: ast.expr | None, default: ast.expr | None, value: Value, state: State
) -> None:
    pattern = fields.pattern_of(annotation, default)
    # Declared patterns may match anywhere in the text unless they say where it begins and ends.
    if pattern is not None and pattern.startswith(("^", r"\A")):
        checks.pattern_checked(pattern, value, state, whole=False)


def _dependency(argument: ast.arg, default: ast.expr | None) -> ast.expr | None:
    """What `Depends(...)` names; for `Depends()` the type of the parameter."""
    places = [default] if default is not None else []
    annotation = argument.annotation
    if isinstance(annotation, ast.Subscript) and isinstance(annotation.slice, ast.Tuple):
        places += annotation.slice.elts[1:]
        annotation = annotation.slice.elts[0]
    for place in places:
        if isinstance(place, ast.Call) and _is_depends(place.func):
            return place.args[0] if place.args else annotation
    return None


def _is_depends(node: ast.expr) -> bool:
    return ast.unparse(node).rpartition(".")[2] in _DEPENDS


def _provided(  # noqa: PLR0917
    run: Run,
    frame: Frame,
    function: FunctionRef,
    wanted: ast.expr,
    node: ast.AST,
    state: State,
    depth: int,
) -> Value:
    """What the framework hands in: the dependency called with what it asks of the request itself."""
    if depth >= _DEEPEST or run.entry is None:
        return UNKNOWN
    scope = State(dict(expressions.environment(run, function.module)), state.heap, {}, state.shared)
    made: list[Value] = []
    for one in expressions.evaluate(run, frame, wanted, scope).things:
        if isinstance(one, FunctionRef):
            called: FunctionRef | None = one
        elif isinstance(one, ClassRef):
            held = invocation.class_member(run, one, "__init__", UNKNOWN).things
            called = next((it for it in held if isinstance(it, FunctionRef)), None)
        else:
            continue
        given = _given(run, frame, called, state, depth) if called is not None else {}
        args = Arguments((), given)
        value = invocation.invoke(run, frame, node, thing(one), args, state)
        made.append(heap.any_element(state, value) if _yields(called) else value)
    return made[0] if len(made) == 1 else UNKNOWN


def _given(
    run: Run, frame: Frame, function: FunctionRef, state: State, depth: int
) -> dict[str, Value]:
    owner = UNKNOWN if function.owner is not None else None
    names = entries.arguments(function, run.entry, frame, owner)
    given: dict[str, Value] = {}
    for index, (argument, default) in enumerate(_parameters(function.node)):
        if index == 0 and owner is not None:
            continue
        wanted = _dependency(argument, default)
        given[argument.arg] = (
            names.get(argument.arg, NOTHING)
            if wanted is None
            else _provided(run, frame, function, wanted, argument, state, depth + 1)
        )
    return given


def _yields(function: FunctionRef | None) -> bool:
    return function is not None and any(
        isinstance(node, ast.Yield) for node in ast.walk(function.node)
    )
