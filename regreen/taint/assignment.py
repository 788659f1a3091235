"""Putting values somewhere: names, attributes, subscripts, unpacking."""

from __future__ import annotations

import ast

from regreen.taint import arithmetic, heap, namespaces, secrecy, sinks
from regreen.taint.interpreter import Interpreter
from regreen.taint.models import sources
from regreen.taint.state import AbstractState, HelperAnswer
from regreen.taint.values import (
    AbstractValue,
    ExternalRef,
    ModuleRef,
    TrailStep,
    add_step,
    join_values,
    project_key,
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
        _merge_into(interp.run.environments.setdefault(interp.frame.path, {}), target.id, value)
    interp.state.names[target.id] = value
    interp.state.answers.pop(target.id, None)


def store_answer(target: ast.expr, answer: HelperAnswer | None, state: AbstractState) -> None:
    """Record what the value of `target` implies about the values that it was computed from."""
    if answer is None:
        return
    if isinstance(target, ast.Name):
        state.answers[target.id] = answer
    elif isinstance(target, ast.Tuple | ast.List) and len(target.elts) == len(answer.parts):
        for part, part_answer in zip(target.elts, answer.parts, strict=True):
            store_answer(part, part_answer, state)


def _assign_attribute(interp: Interpreter, target: ast.Attribute, value: AbstractValue) -> None:
    owner = interp.evaluate(target.value)
    sinks.check_stored_attribute(interp, target, owner, value)
    handles = owner.heap_keys()
    for key in handles:
        heaped = interp.state.find_object(key)
        if heaped is not None:
            held = value if len(handles) == 1 else heap.join_entry(heaped, target.attr, value)
            interp.state.heap[key] = heaped.with_entry(target.attr, held)
    if not handles and isinstance(target.value, ast.Name) and secrecy.is_weak(value):
        interp.state.names[f"{target.value.id}.{target.attr}"] = value
    for thing in owner.things:
        if isinstance(thing, ModuleRef):
            _merge_into(namespaces.module_environment(interp.run, thing.name), target.attr, value)
        elif isinstance(thing, ExternalRef) and thing.name in sources.REQUEST_CARRIERS:
            heap.store_framework_attribute(interp.state, thing.name, target.attr, value)


def _assign_subscript(interp: Interpreter, target: ast.Subscript, value: AbstractValue) -> None:
    owner = interp.evaluate(target.value)
    key = interp.evaluate(target.slice)
    sinks.check_stored_item(interp, target, owner, key, value)
    if isinstance(target.slice, ast.Slice):
        heap.store_anywhere(
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
        elif index == 0 and (key := project_key(value)) is not None:
            item = key
        else:
            item = project_part(value, ("item", index))
        interp.assign_target(part, item)


def assign_augmented(interp: Interpreter, node: ast.AugAssign) -> None:
    """`target op= value`."""
    reading = ast.copy_location(_as_load(node.target), node.target)
    before = interp.evaluate(reading)
    added = interp.evaluate(node.value)
    if isinstance(node.op, ast.Add) and heap.extend_in_place(before, added, interp.state):
        return
    value = arithmetic.combine_operands(interp, node, node.op, before, added)
    interp.assign_target(node.target, value)


def _as_load(target: ast.Name | ast.Attribute | ast.Subscript) -> ast.expr:
    match target:
        case ast.Name():
            return ast.Name(target.id, ast.Load())
        case ast.Attribute():
            return ast.Attribute(target.value, target.attr, ast.Load())
        case ast.Subscript():
            return ast.Subscript(target.value, target.slice, ast.Load())


def _merge_into(names: dict[str, AbstractValue], name: str, value: AbstractValue) -> None:
    """A weak update of a name that other code may read at any time."""
    before = names.get(name)
    names[name] = value if before is None else join_values(before, value)
