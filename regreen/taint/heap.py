"""Reading and changing what a value holds: lists, dictionaries, configuration parsers, buffers, objects on the heap."""

from __future__ import annotations

import ast
from dataclasses import replace

from regreen.taint import namespaces
from regreen.taint.interpreter import Interpreter
from regreen.taint.models import sources
from regreen.taint.state import MAX_ITEMS, AbstractState, HeapObject
from regreen.taint.values import (
    BOTTOM,
    NONE_VALUE,
    TOP,
    AbstractValue,
    CallArguments,
    ClassRef,
    ExternalRef,
    FunctionRef,
    Key,
    ObjectRef,
    TrailStep,
    add_step,
    join_values,
    make_constant,
    make_external,
    make_reference,
    make_tainted,
)


def make_loop_element(interp: Interpreter, node: ast.AST, value: AbstractValue) -> AbstractValue:
    """What a loop over the value meets."""
    keyed = [h for h in interp.state.find_objects(value) if h.kind == "dict"]
    if keyed and not value.taints:
        return TOP
    received = (sources.make_received_message(interp, n, node) for n in value.external_names())
    found = join_values(interp.state.any_element(value), *(r for r in received if r is not None))
    line = getattr(node, "lineno", 1)
    return (
        add_step(found, TrailStep(interp.frame.path, line, "an element of it"))
        if found.taints
        else found
    )


def flatten_to_text(state: AbstractState, value: AbstractValue) -> AbstractValue:
    """A value as part of a text: what it holds is printed, too."""
    if not value.heap_keys():
        return value
    taints = state.collect_taints(value)
    return make_tainted(taints, value.prefix) if taints else TOP


def value_bound_by_with(interp: Interpreter, value: AbstractValue, node: ast.AST) -> AbstractValue:
    """What `with value as x` binds."""
    found: list[AbstractValue] = []
    for key in value.heap_keys():
        heap_object = interp.state.find_object(key)
        if heap_object is not None and isinstance(heap_object.of, ClassRef):
            made = namespaces.class_member(
                interp.run, heap_object.of, "__enter__", make_reference(ObjectRef(key))
            )
            if any(isinstance(ref, FunctionRef) for ref in made.things):
                found.append(interp.invoke_callee(node, made, CallArguments()))
    return join_values(*found) if found else value


def store_item(
    owner: AbstractValue, key: AbstractValue, value: AbstractValue, state: AbstractState
) -> None:
    """`owner[key] = value`."""
    handles = owner.heap_keys()
    for handle in handles:
        heap_object = state.find_object(handle)
        if heap_object is not None:
            state.heap[handle] = set_item(heap_object, key, value, sure=len(handles) == 1)


def store_slice(owner: AbstractValue, value: AbstractValue, state: AbstractState) -> None:
    """`owner[a:b] = value`."""
    for handle in owner.heap_keys():
        heap_object = state.find_object(handle)
        if heap_object is not None:
            inside = join_values(state.any_element(value), heap_object.any_element())
            state.heap[handle] = replace(heap_object, items=None, rest=inside)


def extend_in_place(before: AbstractValue, added: AbstractValue, state: AbstractState) -> bool:
    """`some_list += other`: in place."""
    handles = before.heap_keys()
    if not handles:
        return False
    items = state.known_elements(added)
    for handle in handles:
        heap_object = state.find_object(handle)
        if heap_object is None or heap_object.kind not in {"list", "set"}:
            continue
        if items is not None and heap_object.items is not None and len(handles) == 1:
            state.heap[handle] = replace(heap_object, items=(*heap_object.items, *items))
        else:
            rest = join_values(heap_object.any_element(), state.any_element(added))
            state.heap[handle] = replace(heap_object, items=None, rest=rest)
    return True


def make_pattern(interp: Interpreter, node: ast.Call, text: AbstractValue) -> AbstractValue:
    """A compiled regular expression."""
    made = HeapObject("pattern", of=ExternalRef("re.compile()"), entries={"pattern": text})
    return interp.allocate_object(node, made)


def make_message_authentication_code(
    interp: Interpreter, node: ast.Call, args: CallArguments
) -> AbstractValue:
    """A message authentication code, which knows its message; none where the sender chooses the key."""
    key, message = args.find_argument(0, "key"), args.find_argument(1, "msg")
    if key is None or any(taint.origin == "web" for taint in key.taints):
        return make_external("hmac.new()")
    name = f"hmac()@{interp.frame.path}:{node.lineno}:{node.col_offset}@"
    interp.state.heap["mac", name] = HeapObject("mac", entries={"of": message or TOP})
    return make_external(name)


def load_framework_attribute(state: AbstractState, name: str, attr: str) -> AbstractValue | None:
    """An attribute that was set on something of the framework's: `flask.g.user`."""
    heap_object = state.find_object(("carried", name))
    return heap_object.entries.get(attr) if heap_object is not None else None


def store_framework_attribute(
    state: AbstractState, name: str, attr: str, value: AbstractValue
) -> None:
    """Remember such an attribute."""
    heap_object = state.find_object(("carried", name)) or HeapObject("instance")
    state.heap["carried", name] = heap_object.with_entry(attr, value)


READING_METHODS = frozenset(
    {"get", "pop", "popitem", "setdefault", "values", "items", "copy", "getvalue", "read"}
)


def join_entry(heap_object: HeapObject, key: Key, value: AbstractValue) -> AbstractValue:
    """What an entry holds that may or may not have been set."""
    return join_values(heap_object.entries.get(key, heap_object.rest), value)


def get_item(heap_object: HeapObject, key: AbstractValue) -> AbstractValue:
    """What `container[key]` gives."""
    only = key.single_constant
    if heap_object.kind in {"list", "tuple"}:
        if heap_object.items is not None and only and isinstance(only[0], int):
            if -len(heap_object.items) <= only[0] < len(heap_object.items):
                return heap_object.items[only[0]]
            return TOP
        return heap_object.any_element()
    if only:
        return heap_object.entries.get(only[0], heap_object.rest)
    known = key.known_constants
    if known:
        return join_values(
            *(heap_object.entries.get(constant, heap_object.rest) for constant in known)
        )
    return heap_object.any_element()


def set_item(
    heap_object: HeapObject, key: AbstractValue, value: AbstractValue, *, sure: bool
) -> HeapObject:
    """The container after `container[key] = value`."""
    only = key.single_constant
    if heap_object.kind in {"list", "tuple"}:
        if heap_object.items is None:
            return replace(heap_object, rest=join_values(heap_object.rest, value))
        if (
            only
            and isinstance(only[0], int)
            and -len(heap_object.items) <= only[0] < len(heap_object.items)
        ):
            items = list(heap_object.items)
            items[only[0]] = value if sure else join_values(items[only[0]], value)
            return replace(heap_object, items=tuple(items))
        return replace(heap_object, items=None, rest=join_values(heap_object.any_element(), value))
    if only and sure:
        return replace(heap_object.with_entry(only[0], value), filled=True)
    if only:
        return heap_object.with_entry(only[0], join_entry(heap_object, only[0], value))
    return replace(heap_object, rest=join_values(heap_object.rest, value))


def _append_item(
    heap_object: HeapObject, value: AbstractValue, at: int | None = None
) -> HeapObject:
    """A list with one element more."""
    if heap_object.items is None or len(heap_object.items) >= MAX_ITEMS:
        return replace(
            heap_object, items=None, rest=join_values(heap_object.any_element(), value), filled=True
        )
    items = list(heap_object.items)
    items.insert(len(items) if at is None else at, value)
    return replace(heap_object, items=tuple(items))


def call_container_method(  # noqa: PLR0911
    kind_of: HeapObject,
    method: str,
    args: tuple[AbstractValue, ...],
    keywords: dict[str, AbstractValue],
) -> tuple[HeapObject, AbstractValue] | None:
    """The object after a method call, and what the call gives; None where the method is not known."""
    heap_object = kind_of
    match heap_object.kind:
        case "list" | "tuple":
            return _call_list_method(heap_object, method, args)
        case "dict":
            return _call_dict_method(heap_object, method, args, keywords)
        case "config":
            return _call_configparser_method(heap_object, method, args, keywords)
        case "buffer":
            return _call_buffer_method(heap_object, method, args)
        case "set":
            if method in {"add", "update"} and args:
                return replace(
                    heap_object, items=None, rest=join_values(heap_object.any_element(), args[0])
                ), NONE_VALUE
            if method == "pop":
                return heap_object, heap_object.any_element()
        case _:
            return None
    return None


def _call_list_method(  # noqa: C901, PLR0911, PLR0912
    heap_object: HeapObject, method: str, args: tuple[AbstractValue, ...]
) -> tuple[HeapObject, AbstractValue] | None:
    items = heap_object.items
    match method:
        case "append" | "appendleft" if args:
            return _append_item(
                heap_object, args[0], 0 if method == "appendleft" else None
            ), NONE_VALUE
        case "insert" if len(args) > 1:
            only = args[0].single_constant
            if only and isinstance(only[0], int):
                return _append_item(heap_object, args[1], only[0]), NONE_VALUE
            return replace(
                heap_object, items=None, rest=join_values(heap_object.any_element(), args[1])
            ), NONE_VALUE
        case "pop" | "popleft":
            at = -1 if method == "pop" else 0
            if args:
                only = args[0].single_constant
                if not only or not isinstance(only[0], int):
                    return replace(
                        heap_object, items=None, rest=heap_object.any_element()
                    ), heap_object.any_element()
                at = only[0]
            if items is None or not -len(items) <= at < len(items):
                return replace(heap_object, filled=False), heap_object.any_element()
            left = list(items)
            taken = left.pop(at)
            return replace(heap_object, items=tuple(left)), taken
        case "clear":
            return replace(heap_object, items=(), rest=BOTTOM, filled=False), NONE_VALUE
        case "reverse":
            return replace(
                heap_object, items=items[::-1] if items is not None else None
            ), NONE_VALUE
        case "sort" | "remove":
            return replace(
                heap_object, items=None, rest=heap_object.any_element(), filled=False
            ), NONE_VALUE
        case "copy":
            return None
        case "index" | "count":
            return heap_object, TOP
        case _:
            return None


def _call_dict_method(  # noqa: PLR0911
    heap_object: HeapObject,
    method: str,
    args: tuple[AbstractValue, ...],
    keywords: dict[str, AbstractValue],
) -> tuple[HeapObject, AbstractValue] | None:
    match method:
        case "get" if args:
            default = args[1] if len(args) > 1 else keywords.get("default", NONE_VALUE)
            only = args[0].single_constant
            if only and only[0] in heap_object.entries:
                return heap_object, heap_object.entries[only[0]]
            if only and heap_object.rest == BOTTOM:
                return heap_object, default
            return heap_object, join_values(get_item(heap_object, args[0]), default)
        case "pop" | "setdefault" if args:
            default = args[1] if len(args) > 1 else NONE_VALUE
            only = args[0].single_constant
            found = heap_object.entries.get(only[0]) if only else None
            given = found if found is not None else join_values(heap_object.rest, default)
            if method == "setdefault" and only and found is None:
                return heap_object.with_entry(only[0], given), given
            if method == "pop" and only and found is not None:
                left = {k: v for k, v in heap_object.entries.items() if k != only[0]}
                return replace(heap_object, entries=left, filled=False), given
            return replace(heap_object, filled=False), given if only else join_values(
                heap_object.any_element(), default
            )
        case "clear":
            return replace(heap_object, entries={}, rest=BOTTOM, filled=False), NONE_VALUE
        case "values":
            return heap_object, heap_object.any_element()
        case "update":
            rest = join_values(heap_object.rest, *args) if args else heap_object.rest
            updated = replace(heap_object, rest=rest)
            for name, value in keywords.items():
                updated = updated.with_entry(name, value)
            return updated, NONE_VALUE
        case _:
            return None


def _call_configparser_method(  # noqa: PLR0911
    heap_object: HeapObject,
    method: str,
    args: tuple[AbstractValue, ...],
    keywords: dict[str, AbstractValue],
) -> tuple[HeapObject, AbstractValue] | None:
    """`configparser`: entries by (section, option), options case-folded as it does."""
    if method in {"add_section", "remove_section", "remove_option"}:
        return heap_object, NONE_VALUE
    if method in {"read", "read_file", "read_string", "read_dict"}:
        source = args[0] if args and method in {"read_string", "read_dict"} else BOTTOM
        return replace(
            heap_object, rest=join_values(heap_object.rest, TOP, make_tainted(source.taints))
        ), TOP
    if method in {"getint", "getfloat", "getboolean", "has_option", "has_section", "sections"}:
        return heap_object, TOP
    if method not in {"get", "set"} or len(args) < 2:
        return None
    section, option = args[0].single_constant, args[1].single_constant
    key = (section[0], str(option[0]).lower()) if section and option else None
    if method == "set":
        value = args[2] if len(args) > 2 else NONE_VALUE
        if key is None:
            return replace(heap_object, rest=join_values(heap_object.rest, value)), NONE_VALUE
        return heap_object.with_entry(key, value), NONE_VALUE
    fallback = keywords.get("fallback", BOTTOM)
    if key is not None:
        found = heap_object.entries.get(key)
        return heap_object, found if found is not None else join_values(
            heap_object.rest, fallback, TOP
        )
    return heap_object, join_values(heap_object.any_element(), fallback)


def _call_buffer_method(
    heap_object: HeapObject, method: str, args: tuple[AbstractValue, ...]
) -> tuple[HeapObject, AbstractValue] | None:
    """`io.StringIO` and its like: one text that grows."""
    content = heap_object.entries.get("content", make_constant(""))
    match method:
        case "write" | "writelines" if args:
            grown = AbstractValue(
                None,
                content.taints | args[0].taints,
                prefix=content.prefix or content.single_text or "",
            )
            if (
                not grown.taints
                and content.single_text is not None
                and args[0].single_text is not None
            ):
                grown = make_constant(content.single_text + args[0].single_text)
            return heap_object.with_entry("content", grown), TOP
        case "getvalue" | "read" | "readline" | "getbuffer":
            return heap_object, content
        case "truncate" | "close":
            return heap_object, NONE_VALUE
        case _:
            return None
