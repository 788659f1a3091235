"""Reading and changing what a value holds, wherever on the heap that is."""

from __future__ import annotations

import ast
from dataclasses import replace

from regreen.codebase.taint import containers, invocation, sinks
from regreen.codebase.taint.run import Frame, Run
from regreen.codebase.taint.sinks import Arguments
from regreen.codebase.taint.state import Heaped, State
from regreen.codebase.taint.values import (
    UNKNOWN,
    ClassRef,
    External,
    FunctionRef,
    Handle,
    Step,
    Taint,
    Value,
    external,
    join,
    moved,
    part_of,
    tainted,
    thing,
)


def elements(state: State, value: Value) -> tuple[Value, ...] | None:
    """The items of a list whose every item is known in order; None otherwise."""
    handles = value.handles()
    if value.taints or len(handles) != 1 or len(value.things) != 1:
        return None
    heaped = state.at(handles[0])
    if heaped is None or heaped.kind not in {"list", "tuple", "set"}:
        return None
    return heaped.items


def any_element(state: State, value: Value) -> Value:
    """What any element may be."""
    found = [heaped.anything() for key in value.handles() if (heaped := state.at(key)) is not None]
    if value.taints:
        found.append(part_of(value, "element"))
    return join(*found) if found else UNKNOWN


def element(frame: Frame, node: ast.AST, value: Value, state: State) -> Value:
    """What a loop over the value meets."""
    keyed = [h for key in value.handles() if (h := state.at(key)) is not None and h.kind == "dict"]
    if keyed and not value.taints:
        return UNKNOWN
    found = any_element(state, value)
    line = getattr(node, "lineno", 1)
    return moved(found, Step(frame.path, line, "an element of it")) if found.taints else found


def deep_taints(state: State, value: Value) -> frozenset[Taint]:
    """The taints in a value and in what it holds."""
    return sinks.deep(state, value)


def as_text(state: State, value: Value) -> Value:
    """A value as part of a text: what it holds is printed, too."""
    if not value.handles():
        return value
    taints = sinks.deep(state, value)
    return tainted(taints, value.prefix) if taints else UNKNOWN


def entered(run: Run, frame: Frame, value: Value, node: ast.AST, state: State) -> Value:
    """What `with value as x` binds."""
    found: list[Value] = []
    for key in value.handles():
        heaped = state.at(key)
        if heaped is not None and isinstance(heaped.of, ClassRef):
            made = invocation.class_member(run, heaped.of, "__enter__", thing(Handle(key)))
            if any(isinstance(one, FunctionRef) for one in made.things):
                found.append(invocation.invoke(run, frame, node, made, Arguments(), state))
    return join(*found) if found else value


def put(owner: Value, key: Value, value: Value, state: State) -> None:
    """`owner[key] = value`."""
    handles = owner.handles()
    for handle in handles:
        heaped = state.at(handle)
        if heaped is not None:
            state.heap[handle] = containers.stored(heaped, key, value, sure=len(handles) == 1)


def put_anywhere(owner: Value, value: Value, state: State) -> None:
    """`owner[a:b] = value`."""
    for handle in owner.handles():
        heaped = state.at(handle)
        if heaped is not None:
            inside = join(any_element(state, value), heaped.anything())
            state.heap[handle] = replace(heaped, items=None, rest=inside)


def extended(before: Value, added: Value, state: State) -> bool:
    """`some_list += other`: in place."""
    handles = before.handles()
    if not handles:
        return False
    items = elements(state, added)
    for handle in handles:
        heaped = state.at(handle)
        if heaped is None or heaped.kind not in {"list", "set"}:
            continue
        if items is not None and heaped.items is not None and len(handles) == 1:
            state.heap[handle] = replace(heaped, items=(*heaped.items, *items))
        else:
            rest = join(heaped.anything(), any_element(state, added))
            state.heap[handle] = replace(heaped, items=None, rest=rest)
    return True


def pattern(frame: Frame, node: ast.Call, text: Value, state: State) -> Value:
    """A compiled regular expression."""
    made = Heaped("pattern", of=External("re.compile()"), entries={"pattern": text})
    return allocate(frame, node, made, state)


def authenticated(frame: Frame, node: ast.Call, args: Arguments, state: State) -> Value:
    """A message authentication code, which knows its message; none where the sender chooses the key."""
    key, message = args.get(0, "key"), args.get(1, "msg")
    if key is None or any(taint.origin == "web" for taint in key.taints):
        return external("hmac.new()")
    name = f"hmac()@{frame.path}:{node.lineno}:{node.col_offset}@"
    state.heap["mac", name] = Heaped("mac", entries={"of": message or UNKNOWN})
    return external(name)


def carried(state: State, name: str, attr: str) -> Value | None:
    """An attribute that was set on something of the framework's: `flask.g.user`."""
    heaped = state.at(("carried", name))
    return heaped.entries.get(attr) if heaped is not None else None


def carry(state: State, name: str, attr: str, value: Value) -> None:
    """Remember such an attribute."""
    heaped = state.at(("carried", name)) or Heaped("instance")
    state.heap["carried", name] = heaped.with_entry(attr, value)


def allocate(frame: Frame, node: ast.AST, heaped: Heaped, state: State) -> Value:
    """A new object, made at this place in this call."""
    key = (id(node), frame.context)
    state.heap[key] = heaped
    return thing(Handle(key))
