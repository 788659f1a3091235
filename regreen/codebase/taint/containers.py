"""Lists, dictionaries, configuration parsers, buffers: what their methods do to them."""

from __future__ import annotations

from dataclasses import replace

from regreen.codebase.taint.state import MOST_ITEMS, Heaped
from regreen.codebase.taint.values import (
    NONE,
    NOTHING,
    UNKNOWN,
    Key,
    Value,
    constant,
    join,
    tainted,
)

READS = frozenset(
    {"get", "pop", "popitem", "setdefault", "values", "items", "copy", "getvalue", "read"}
)


def either(heaped: Heaped, key: Key, value: Value) -> Value:
    """What an entry holds that may or may not have been set."""
    return join(heaped.entries.get(key, heaped.rest), value)


def item(heaped: Heaped, key: Value) -> Value:
    """What `container[key]` gives."""
    only = key.only
    if heaped.kind in {"list", "tuple"}:
        if heaped.items is not None and only and isinstance(only[0], int):
            if -len(heaped.items) <= only[0] < len(heaped.items):
                return heaped.items[only[0]]
            return UNKNOWN
        return heaped.anything()
    if only:
        return heaped.entries.get(only[0], heaped.rest)
    known = key.known
    if known:
        return join(*(heaped.entries.get(one, heaped.rest) for one in known))
    return heaped.anything()


def stored(heaped: Heaped, key: Value, value: Value, *, sure: bool) -> Heaped:
    """The container after `container[key] = value`."""
    only = key.only
    if heaped.kind in {"list", "tuple"}:
        if heaped.items is None:
            return replace(heaped, rest=join(heaped.rest, value))
        if only and isinstance(only[0], int) and -len(heaped.items) <= only[0] < len(heaped.items):
            items = list(heaped.items)
            items[only[0]] = value if sure else join(items[only[0]], value)
            return replace(heaped, items=tuple(items))
        return replace(heaped, items=None, rest=join(heaped.anything(), value))
    if only and sure:
        return replace(heaped.with_entry(only[0], value), filled=True)
    if only:
        return heaped.with_entry(only[0], either(heaped, only[0], value))
    return replace(heaped, rest=join(heaped.rest, value))


def put_in(heaped: Heaped, value: Value, at: int | None = None) -> Heaped:
    """A list with one element more."""
    if heaped.items is None or len(heaped.items) >= MOST_ITEMS:
        return replace(heaped, items=None, rest=join(heaped.anything(), value), filled=True)
    items = list(heaped.items)
    items.insert(len(items) if at is None else at, value)
    return replace(heaped, items=tuple(items))


def mutate(  # noqa: PLR0911
    kind_of: Heaped, method: str, args: tuple[Value, ...], keywords: dict[str, Value]
) -> tuple[Heaped, Value] | None:
    """The object after a method call, and what the call gives; None where the method is not known."""
    heaped = kind_of
    match heaped.kind:
        case "list" | "tuple":
            return _list(heaped, method, args)
        case "dict":
            return _dict(heaped, method, args, keywords)
        case "config":
            return _config(heaped, method, args, keywords)
        case "buffer":
            return _buffer(heaped, method, args)
        case "set":
            if method in {"add", "update"} and args:
                return replace(heaped, items=None, rest=join(heaped.anything(), args[0])), NONE
            if method == "pop":
                return heaped, heaped.anything()
        case _:
            return None
    return None


def _list(heaped: Heaped, method: str, args: tuple[Value, ...]) -> tuple[Heaped, Value] | None:  # noqa: C901, PLR0911, PLR0912
    items = heaped.items
    match method:
        case "append" | "appendleft" if args:
            return put_in(heaped, args[0], 0 if method == "appendleft" else None), NONE
        case "insert" if len(args) > 1:
            only = args[0].only
            if only and isinstance(only[0], int):
                return put_in(heaped, args[1], only[0]), NONE
            return replace(heaped, items=None, rest=join(heaped.anything(), args[1])), NONE
        case "pop" | "popleft":
            at = -1 if method == "pop" else 0
            if args:
                only = args[0].only
                if not only or not isinstance(only[0], int):
                    return replace(heaped, items=None, rest=heaped.anything()), heaped.anything()
                at = only[0]
            if items is None or not -len(items) <= at < len(items):
                return replace(heaped, filled=False), heaped.anything()
            left = list(items)
            taken = left.pop(at)
            return replace(heaped, items=tuple(left)), taken
        case "clear":
            return replace(heaped, items=(), rest=NOTHING, filled=False), NONE
        case "reverse":
            return replace(heaped, items=items[::-1] if items is not None else None), NONE
        case "sort" | "remove":
            return replace(heaped, items=None, rest=heaped.anything(), filled=False), NONE
        case "copy":
            return None
        case "index" | "count":
            return heaped, UNKNOWN
        case _:
            return None


def _dict(  # noqa: PLR0911
    heaped: Heaped, method: str, args: tuple[Value, ...], keywords: dict[str, Value]
) -> tuple[Heaped, Value] | None:
    match method:
        case "get" if args:
            default = args[1] if len(args) > 1 else keywords.get("default", NONE)
            only = args[0].only
            if only and only[0] in heaped.entries:
                return heaped, heaped.entries[only[0]]
            if only and heaped.rest == NOTHING:
                return heaped, default
            return heaped, join(item(heaped, args[0]), default)
        case "pop" | "setdefault" if args:
            default = args[1] if len(args) > 1 else NONE
            only = args[0].only
            found = heaped.entries.get(only[0]) if only else None
            given = found if found is not None else join(heaped.rest, default)
            if method == "setdefault" and only and found is None:
                return heaped.with_entry(only[0], given), given
            if method == "pop" and only and found is not None:
                left = {k: v for k, v in heaped.entries.items() if k != only[0]}
                return replace(heaped, entries=left, filled=False), given
            return replace(heaped, filled=False), given if only else join(
                heaped.anything(), default
            )
        case "clear":
            return replace(heaped, entries={}, rest=NOTHING, filled=False), NONE
        case "values":
            return heaped, heaped.anything()
        case "update":
            rest = join(heaped.rest, *args) if args else heaped.rest
            updated = replace(heaped, rest=rest)
            for name, value in keywords.items():
                updated = updated.with_entry(name, value)
            return updated, NONE
        case _:
            return None


def _config(  # noqa: PLR0911
    heaped: Heaped, method: str, args: tuple[Value, ...], keywords: dict[str, Value]
) -> tuple[Heaped, Value] | None:
    """`configparser`: entries by (section, option), options case-folded as it does."""
    if method in {"add_section", "remove_section", "remove_option"}:
        return heaped, NONE
    if method in {"read", "read_file", "read_string", "read_dict"}:
        source = args[0] if args and method in {"read_string", "read_dict"} else NOTHING
        return replace(heaped, rest=join(heaped.rest, UNKNOWN, tainted(source.taints))), UNKNOWN
    if method in {"getint", "getfloat", "getboolean", "has_option", "has_section", "sections"}:
        return heaped, UNKNOWN
    if method not in {"get", "set"} or len(args) < 2:
        return None
    section, option = args[0].only, args[1].only
    key = (section[0], str(option[0]).lower()) if section and option else None
    if method == "set":
        value = args[2] if len(args) > 2 else NONE
        if key is None:
            return replace(heaped, rest=join(heaped.rest, value)), NONE
        return heaped.with_entry(key, value), NONE
    fallback = keywords.get("fallback", NOTHING)
    if key is not None:
        found = heaped.entries.get(key)
        return heaped, found if found is not None else join(heaped.rest, fallback, UNKNOWN)
    return heaped, join(heaped.anything(), fallback)


def _buffer(heaped: Heaped, method: str, args: tuple[Value, ...]) -> tuple[Heaped, Value] | None:
    """`io.StringIO` and its like: one text that grows."""
    content = heaped.entries.get("content", constant(""))
    match method:
        case "write" | "writelines" if args:
            grown = Value(
                None, content.taints | args[0].taints, prefix=content.prefix or content.text or ""
            )
            if not grown.taints and content.text is not None and args[0].text is not None:
                grown = constant(content.text + args[0].text)
            return heaped.with_entry("content", grown), UNKNOWN
        case "getvalue" | "read" | "readline" | "getbuffer":
            return heaped, content
        case "truncate" | "close":
            return heaped, NONE
        case _:
            return None
