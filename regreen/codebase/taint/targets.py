"""Putting values somewhere: names, attributes, subscripts, unpacking."""

from __future__ import annotations

import ast

from regreen.codebase.taint import arithmetic, containers, expressions, heap, sinks, sources
from regreen.codebase.taint.answers import Answer
from regreen.codebase.taint.run import Frame, Run, merge_into
from regreen.codebase.taint.state import State
from regreen.codebase.taint.values import (
    External,
    ModuleRef,
    Step,
    Value,
    key_of,
    moved,
    part_of,
)


def assign(run: Run, frame: Frame, target: ast.expr, value: Value, state: State) -> None:
    """Let `target` hold `value`."""
    match target:
        case ast.Name():
            _name(run, frame, target, value, state)
        case ast.Attribute():
            _attribute(run, frame, target, value, state)
        case ast.Subscript():
            _subscript(run, frame, target, value, state)
        case ast.Tuple() | ast.List():
            _unpack(run, frame, target.elts, value, state)
        case ast.Starred():
            assign(run, frame, target.value, value, state)
        case _:
            pass


def _name(run: Run, frame: Frame, target: ast.Name, value: Value, state: State) -> None:
    if value.taints:
        value = moved(value, Step(frame.path, target.lineno, f"`{target.id}`"))
        sinks.named(run, frame, target, target.id, value)
    if target.id in frame.globals:
        merge_into(run.environments.setdefault(frame.path, {}), target.id, value)
    state.names[target.id] = value
    state.answers.pop(target.id, None)


def keep_answer(target: ast.expr, told: Answer | None, state: State) -> None:
    """Remember what the value that `target` now holds says of what was looked at to make it."""
    if told is None:
        return
    if isinstance(target, ast.Name):
        state.answers[target.id] = told
    elif isinstance(target, ast.Tuple | ast.List) and len(target.elts) == len(told.parts):
        for part, one in zip(target.elts, told.parts, strict=True):
            keep_answer(part, one, state)


def _attribute(run: Run, frame: Frame, target: ast.Attribute, value: Value, state: State) -> None:
    owner = expressions.evaluate(run, frame, target.value, state)
    sinks.stored_attribute(run, frame, target, owner, value, state)
    handles = owner.handles()
    for key in handles:
        heaped = state.at(key)
        if heaped is not None:
            held = value if len(handles) == 1 else containers.either(heaped, target.attr, value)
            state.heap[key] = heaped.with_entry(target.attr, held)
    for thing in owner.things:
        if isinstance(thing, ModuleRef):
            merge_into(expressions.environment(run, thing.name), target.attr, value)
        elif isinstance(thing, External) and thing.name in sources.CARRIERS:
            heap.carry(state, thing.name, target.attr, value)


def _subscript(run: Run, frame: Frame, target: ast.Subscript, value: Value, state: State) -> None:
    owner = expressions.evaluate(run, frame, target.value, state)
    key = expressions.evaluate(run, frame, target.slice, state)
    sinks.stored_item(run, frame, target, owner, key, value, state)
    if isinstance(target.slice, ast.Slice):
        heap.put_anywhere(owner, part_of(value, "slice") if value.taints else value, state)
        return
    heap.put(owner, key, value, state)


def _unpack(run: Run, frame: Frame, parts: list[ast.expr], value: Value, state: State) -> None:
    items = heap.elements(state, value)
    starred = any(isinstance(part, ast.Starred) for part in parts)
    if items is not None and len(items) == len(parts) and not starred:
        for part, item in zip(parts, items, strict=True):
            assign(run, frame, part, item, state)
        return
    for index, part in enumerate(parts):
        if not value.taints:
            item = heap.any_element(state, value)
        elif index == 0 and (key := key_of(value)) is not None:
            item = key
        else:
            item = part_of(value, ("item", index))
        assign(run, frame, part, item, state)


def augment(run: Run, frame: Frame, node: ast.AugAssign, state: State) -> None:
    """`target op= value`."""
    reading = ast.copy_location(_as_load(node.target), node.target)
    before = expressions.evaluate(run, frame, reading, state)
    added = expressions.evaluate(run, frame, node.value, state)
    if isinstance(node.op, ast.Add) and heap.extended(before, added, state):
        return
    value = arithmetic.combined(frame, node, node.op, before, added, state)
    assign(run, frame, node.target, value, state)


def _as_load(target: ast.Name | ast.Attribute | ast.Subscript) -> ast.expr:
    match target:
        case ast.Name():
            return ast.Name(target.id, ast.Load())
        case ast.Attribute():
            return ast.Attribute(target.value, target.attr, ast.Load())
        case ast.Subscript():
            return ast.Subscript(target.value, target.slice, ast.Load())
