"""What the names of modules and classes of the repository mean."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace

from regreen.code.python_calls import is_module
from regreen.taint.interpreter import AnalysisRun, CallFrame, OutOfSteps
from regreen.taint.state import AbstractState
from regreen.taint.values import (
    BOTTOM,
    TOP,
    AbstractValue,
    ClassRef,
    ExternalRef,
    FunctionRef,
    ModuleRef,
    Reference,
    UnresolvedImport,
    join_values,
    make_external,
    make_reference,
)


def module_value(path: str) -> AbstractValue:
    """A module of the repository as a value."""
    return make_reference(ModuleRef(path))


def module_environment(run: AnalysisRun, path: str) -> dict[str, AbstractValue]:
    """The names of a module after its body was executed once."""
    if path in run.environments:
        return run.environments[path]
    names: dict[str, AbstractValue] = {"__name__": TOP, "__file__": TOP}
    run.environments[path] = names
    module = run.program.load_module(path) if is_module(path) else None
    if module is None:
        return names
    frame = CallFrame(path, module.tree, (path,), run.register_closure(names, 0))
    state = AbstractState(names, {}, {}, run.shared)
    stack, run.stack, left, run.left = run.stack, [], run.left, max(run.left, 1) + 20_000
    nesting, run.nesting, entry, run.entry = run.nesting, 0, run.entry, None
    try:
        run.interpret(frame, state).execute(module.tree.body)
    except OutOfSteps:
        run.unfinished.add(path)
    finally:
        run.stack, run.left, run.nesting, run.entry = stack, left, nesting, entry
    names.update(state.names)
    run.shared.update(state.heap)
    return names


def exported_names(run: AnalysisRun, path: str) -> dict[str, AbstractValue]:
    """What `from module import *` brings."""
    names = module_environment(run, path)
    return {name: value for name, value in names.items() if not name.startswith("_")}


def resolve_imports(run: AnalysisRun, value: AbstractValue, depth: int = 0) -> AbstractValue:
    """The value with the names that it was imported by looked up."""
    waiting = [ref for ref in value.things if isinstance(ref, UnresolvedImport)]
    if not waiting or depth > 12:
        return value
    rest = replace(value, things=value.things - set(waiting))
    found = [module_member(run, ref.module, ref.name, depth + 1) for ref in waiting]
    return join_values(*found) if rest == BOTTOM else join_values(rest, *found)


def module_member(run: AnalysisRun, path: str, name: str, depth: int = 0) -> AbstractValue:
    """`module.name`."""
    value = module_environment(run, path).get(name)
    if value is not None:
        return resolve_imports(run, value, depth)
    inside = run.program.find_submodule(path, name)
    return module_value(inside) if inside is not None else TOP


def resolve_bases(run: AnalysisRun, cls: ClassRef) -> Iterator[Reference]:
    """What a class is made from."""
    environment = module_environment(run, cls.module)
    for base in cls.node.bases:
        yield from _base_class(run, environment, base).things


def class_member(
    run: AnalysisRun, cls: ClassRef, name: str, bound: AbstractValue | None, depth: int = 0
) -> AbstractValue:
    """A class's attribute, looked up along its bases; methods come bound."""
    environment = module_environment(run, cls.module)
    item = _class_members_by_name(run, cls.node).get(name)
    if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
        kinds = {d.id for d in item.decorator_list if isinstance(d, ast.Name)}
        owner = (
            None
            if "staticmethod" in kinds
            else make_reference(cls)
            if "classmethod" in kinds
            else bound
        )
        return make_reference(FunctionRef(item, cls.module, cls.closure, owner))
    if isinstance(item, ast.expr):
        return _evaluate_class_attribute(run, cls, item)
    if depth > 5:
        return TOP
    outside: list[AbstractValue] = []
    for base in cls.node.bases:
        value = _base_class(run, environment, base)
        for ref in value.things:
            if isinstance(ref, ClassRef) and ref != cls:
                found = class_member(run, ref, name, bound, depth + 1)
                if found.things:
                    return found
            elif isinstance(ref, ExternalRef):
                outside.append(make_external(f"{ref.name}.{name}"))
    return join_values(*outside) if outside else TOP


def _class_members_by_name(run: AnalysisRun, node: ast.ClassDef) -> dict[str, ast.expr | ast.stmt]:
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


def _base_class(
    run: AnalysisRun, environment: Mapping[str, AbstractValue], base: ast.expr
) -> AbstractValue:
    """What a base class is: a name, or a name in modules."""
    if isinstance(base, ast.Name):
        return resolve_imports(run, environment.get(base.id, TOP))
    if not isinstance(base, ast.Attribute):
        return TOP
    found: list[AbstractValue] = []
    for ref in _base_class(run, environment, base.value).things:
        if isinstance(ref, ModuleRef):
            found.append(resolve_imports(run, module_member(run, ref.name, base.attr)))
        elif isinstance(ref, ExternalRef):
            found.append(make_external(f"{ref.name}.{base.attr}"))
    return join_values(*found) if found else TOP


def _evaluate_class_attribute(run: AnalysisRun, cls: ClassRef, node: ast.expr) -> AbstractValue:
    frame = CallFrame(cls.module, cls.node, (cls.module, id(cls.node)), 0)
    names = dict(module_environment(run, cls.module))
    state = AbstractState(names, {}, {}, run.shared)
    value = run.interpret(frame, state).evaluate(node)
    run.shared.update(state.heap)
    return value


def is_property(function: FunctionRef) -> bool:
    """Whether reading the attribute calls the function."""
    return isinstance(function.node, ast.FunctionDef) and any(
        (isinstance(d, ast.Name) and d.id in {"property", "cached_property"})
        or (isinstance(d, ast.Attribute) and d.attr == "cached_property")
        for d in function.node.decorator_list
    )
