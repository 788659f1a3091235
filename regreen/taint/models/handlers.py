"""What a framework does before it calls a handler: checks the declared fields, calls the dependencies and hooks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from regreen.code.python_calls import is_module
from regreen.taint import namespaces, validation
from regreen.taint.interpreter import AnalysisRun, Interpreter
from regreen.taint.models import entry_points, form_models, sources
from regreen.taint.models.sources import ALL_SINKS
from regreen.taint.state import AbstractState
from regreen.taint.values import (
    BOTTOM,
    TOP,
    AbstractValue,
    CallArguments,
    ClassRef,
    FunctionRef,
    UnresolvedImport,
    make_reference,
    project_part,
)

_MAX_DEPENDENCY_DEPTH = 4
_REQUEST_HOOKS = frozenset({"before_request", "before_app_request"})
_DEPENDENCY_CALLS = frozenset({"Depends", "Security"})


def prepare_parameters(
    interp: Interpreter, function: FunctionRef, owner: ast.ClassDef | None
) -> None:
    """Put into the state what is known of a handler's parameters when it starts."""
    if interp.run.entry is not None:
        entry_points.assume_route_patterns(interp, function, owner)
    if owner is not None and getattr(function.node, "name", "") == "form_valid":
        _bind_view_form(interp, function, owner)
    for given, default in _list_parameters(function.node):
        annotation = _resolve_annotation(interp.run, function.module, given.annotation)
        argument = ast.copy_location(ast.arg(given.arg, annotation), given)
        if (
            annotation is not given.annotation
            and annotation
            and form_models.is_harmless_type(annotation)
        ):
            interp.state.names[argument.arg] = TOP
        wanted = _find_dependency(argument, default)
        if wanted is not None:
            interp.state.names[argument.arg] = _call_dependency(
                interp, function, wanted, argument, 0
            )
            continue
        value = interp.state.names[argument.arg]
        _check_pattern(argument.annotation, default, value, interp.state)
        for cls in _annotation_classes(interp.run, function.module, argument.annotation):
            if form_models.is_enumeration(cls.node):
                interp.state.names[argument.arg] = TOP
            else:
                _check_fields(interp, cls, value, 0)
                form_models.check_model_fields(interp, cls, value)


def call_request_hooks(interp: Interpreter, function: FunctionRef) -> None:
    """Call what the module has called before each request."""
    module = interp.run.program.load_module(function.module)
    if module is None or (
        "before_request" not in module.text and "before_app_request" not in module.text
    ):
        return
    for node in module.tree.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node is function.node:
            continue
        names = {ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list}
        if names & _REQUEST_HOOKS:
            hook = make_reference(FunctionRef(node, function.module, function.closure))
            interp.invoke_callee(node, hook, CallArguments())


def call_through_own_decorators(interp: Interpreter, function: FunctionRef) -> bool:
    """Call a handler as its decorators of the repository have it called; False where they never do.

    The parameters are in the state's names.
    """
    if isinstance(function.node, ast.Lambda):
        return False
    scope = AbstractState(
        dict(namespaces.module_environment(interp.run, function.module)),
        interp.state.heap,
        {},
        interp.state.shared,
    )
    held = make_reference(function)
    for node in reversed(function.node.decorator_list):
        callee = interp.with_state(scope).evaluate(node)
        if callee.things and all(isinstance(ref, FunctionRef) for ref in callee.things):
            held = interp.invoke_callee(node, callee, CallArguments((held,)))
    if held == make_reference(function) or not all(
        isinstance(ref, FunctionRef) for ref in held.things
    ):
        return False
    positional = [a.arg for a in (*function.node.args.posonlyargs, *function.node.args.args)]
    first = positional[:1] if positional[:1] in (["self"], ["request"]) else []
    rest = {name: value for name, value in interp.state.names.items() if name not in first}
    given = CallArguments(tuple(interp.state.names[name] for name in first), rest)
    interp.run.handler, interp.run.reached, stack, interp.run.stack = (
        function.node,
        False,
        interp.run.stack,
        [],
    )
    try:
        interp.invoke_callee(function.node, held, given)
    finally:
        interp.run.handler, interp.run.stack = None, stack
    return interp.run.reached


def _resolve_annotation(
    run: AnalysisRun, module: str, annotation: ast.expr | None
) -> ast.expr | None:
    """An annotation, or what it was defined as: `Page = Annotated[int, Query()]`, here or where it comes from."""
    if not isinstance(annotation, ast.Name):
        return annotation
    held = namespaces.module_environment(run, module).get(annotation.id, TOP)
    place, name = next(
        ((ref.module, ref.name) for ref in held.things if isinstance(ref, UnresolvedImport)),
        (module, annotation.id),
    )
    found = run.program.load_module(place) if is_module(place) else None
    for statement in found.tree.body if found is not None else ():
        targets = (
            statement.targets
            if isinstance(statement, ast.Assign)
            else [getattr(statement, "target", None)]
        )
        named = any(isinstance(target, ast.Name) and target.id == name for target in targets)
        value = getattr(statement, "value", None)
        if named and isinstance(value, ast.Subscript):
            return value
    return annotation


def _bind_view_form(interp: Interpreter, function: FunctionRef, owner: ast.ClassDef) -> None:
    """What Django hands to `form_valid`: the view's form, filled from the request."""
    names = [argument.arg for argument in function.node.args.args]
    cls = ClassRef(owner, function.module, function.closure)
    for ref in namespaces.class_member(interp.run, cls, "form_class", None).things:
        if isinstance(ref, ClassRef) and len(names) > 1:
            mark = ("web.request", "POST")
            data = sources.make_untrusted_value(interp, owner, "web", mark, "`request.POST`")
            filled = form_models.make_checked_object(interp, owner, ref, CallArguments((data,)))
            interp.state.names[names[1]] = filled or TOP


def _list_parameters(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    positional = [*node.args.posonlyargs, *node.args.args]
    missing = len(positional) - len(node.args.defaults)
    yield from zip(positional, [None] * missing + list(node.args.defaults), strict=True)
    yield from zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)


def _annotation_classes(
    run: AnalysisRun, module: str, annotation: ast.expr | None
) -> list[ClassRef]:
    """The repository's classes that an annotation names."""
    if annotation is None:
        return []
    names = namespaces.module_environment(run, module)
    found: list[ClassRef] = []
    for node in ast.walk(annotation):
        if isinstance(node, ast.Name) and node.id in names:
            kind = namespaces.resolve_imports(run, names[node.id])
            found.extend(ref for ref in kind.things if isinstance(ref, ClassRef))
    return found


def _check_fields(interp: Interpreter, cls: ClassRef, value: AbstractValue, depth: int) -> None:
    """A model of the repository: its numbers and choices are checked before the handler runs."""
    for name, annotation, default in form_models.list_model_fields(cls.node):
        held = project_part(value, ("attribute", name))
        inner = _annotation_classes(interp.run, cls.module, annotation)
        if form_models.is_harmless_type(annotation) or (
            inner and all(form_models.is_enumeration(model.node) for model in inner)
        ):
            for taint in held.taints:
                interp.state.mark_checked(taint.mark, ALL_SINKS)
            continue
        _check_pattern(annotation, default, held, interp.state)
        if depth < _MAX_DEPENDENCY_DEPTH:
            for model in inner:
                _check_fields(interp, model, held, depth + 1)
    if depth < _MAX_DEPENDENCY_DEPTH:
        for base in cls.node.bases:
            for model in _annotation_classes(interp.run, cls.module, base):
                _check_fields(interp, model, value, depth + 1)


def _check_pattern(
    annotation: ast.expr | None,
    default: ast.expr | None,
    value: AbstractValue,
    state: AbstractState,
) -> None:
    pattern = form_models.find_field_pattern(annotation, default)
    # Declared patterns may match anywhere in the text unless they are anchored.
    if pattern is not None and pattern.startswith(("^", r"\A")):
        validation.assume_pattern(pattern, value, state, whole=False)


def _find_dependency(argument: ast.arg, default: ast.expr | None) -> ast.expr | None:
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
    return ast.unparse(node).rpartition(".")[2] in _DEPENDENCY_CALLS


def _call_dependency(
    interp: Interpreter, function: FunctionRef, wanted: ast.expr, node: ast.AST, depth: int
) -> AbstractValue:
    """The value that the framework injects: the dependency, called with its own values from the request."""
    if depth >= _MAX_DEPENDENCY_DEPTH or interp.run.entry is None:
        return TOP
    scope = AbstractState(
        dict(namespaces.module_environment(interp.run, function.module)),
        interp.state.heap,
        {},
        interp.state.shared,
    )
    made: list[AbstractValue] = []
    for ref in interp.with_state(scope).evaluate(wanted).things:
        if isinstance(ref, FunctionRef):
            called: FunctionRef | None = ref
        elif isinstance(ref, ClassRef):
            held = namespaces.class_member(interp.run, ref, "__init__", TOP).things
            called = next((it for it in held if isinstance(it, FunctionRef)), None)
        else:
            continue
        given = _dependency_arguments(interp, called, depth) if called is not None else {}
        args = CallArguments((), given)
        value = interp.invoke_callee(node, make_reference(ref), args)
        made.append(interp.state.any_element(value) if _is_generator(called) else value)
    return made[0] if len(made) == 1 else TOP


def _dependency_arguments(
    interp: Interpreter, function: FunctionRef, depth: int
) -> dict[str, AbstractValue]:
    owner = TOP if function.owner is not None else None
    names = entry_points.make_parameter_values(interp, function, owner)
    given: dict[str, AbstractValue] = {}
    for index, (argument, default) in enumerate(_list_parameters(function.node)):
        if index == 0 and owner is not None:
            continue
        wanted = _find_dependency(argument, default)
        given[argument.arg] = (
            names.get(argument.arg, BOTTOM)
            if wanted is None
            else _call_dependency(interp, function, wanted, argument, depth + 1)
        )
    return given


def _is_generator(function: FunctionRef | None) -> bool:
    return function is not None and any(
        isinstance(node, ast.Yield) for node in ast.walk(function.node)
    )
