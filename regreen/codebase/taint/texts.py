"""Methods of text, and the library calls that need a model of their own."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from regreen.codebase.taint import charset, checks, expressions, heap, invocation, library, sinks
from regreen.codebase.taint.run import Frame, Run
from regreen.codebase.taint.sinks import Arguments
from regreen.codebase.taint.state import Heaped, State
from regreen.codebase.taint.values import (
    LONGEST_CONSTANT,
    NOTHING,
    UNKNOWN,
    ClassRef,
    External,
    FunctionRef,
    Key,
    ModuleRef,
    Scalar,
    Taint,
    Value,
    constant,
    external,
    join,
    made_safe,
    part_of,
    tainted,
    thing,
)

_KEEPS_PREFIX = frozenset({"rstrip", "encode", "decode", "ljust", "expandtabs", "removesuffix"})
_PURE = frozenset(
    {
        "lower", "upper", "strip", "lstrip", "rstrip", "title", "capitalize", "casefold", "swapcase", "split",
        "replace", "startswith", "endswith", "find", "rfind", "index", "count", "isdigit", "isalpha", "isalnum",
        "encode", "decode", "removeprefix", "removesuffix", "zfill",
    }
)  # fmt: skip
_MOST_LETTERS = 256
_RENDERED = re.compile(
    r"jinja2\.(?:(?:Environment|Escaping)\(\)\.(?:from_string|get_template)|Template)\(\)\.render(?:_async)?"
)
_CONVERTERS = frozenset({"builtins.int", "builtins.float", "builtins.bool", "uuid.UUID"})
_REPLACED: tuple[tuple[str, frozenset[str]], ...] = (
    ("'", library.QUOTES),
    ('"', library.QUOTES),
    ("<", library.HTML),
    ("\n", library.LINES),
    ("\r", library.LINES),
    ("/", library.PATH),
    ("(", frozenset({"ldap-injection"})),
    ("*", frozenset({"ldap-injection"})),
)


def method(owner: Value, name: str, args: Arguments, state: State) -> Value | None:
    """A method of a text that is known, or partly known; None when it is no text of ours."""
    texts = owner.known
    if not texts or not all(isinstance(text, str | bytes) for text in texts):
        return None
    if name in _PURE:
        return _computed(texts, name, args)
    if name in {"format", "format_map"}:
        taints = frozenset[Taint]().union(*(sinks.deep(state, arg) for arg in args.all()))
        prefix = str(texts[0]).split("{", 1)[0] if len(texts) == 1 else ""
        return tainted(taints, prefix) if taints else Value(None, prefix=prefix)
    if name == "join" and args.positional:
        return _joined(texts, args.positional[0], state)
    return None


def _joined(separators: tuple[Scalar, ...], parts: Value, state: State) -> Value:
    """`separator.join(parts)`."""
    items = heap.elements(state, parts)
    taints = sinks.deep(state, heap.any_element(state, parts) if parts.taints else parts)
    if items is None or len(separators) != 1 or not isinstance(separators[0], str):
        return tainted(taints) if taints else UNKNOWN
    separator = separators[0]
    texts = [item.text for item in items]
    if not taints and all(text is not None for text in texts):
        return constant(
            separator.join(text for text in texts if text is not None)[:LONGEST_CONSTANT]
        )
    prefix = ""
    for text, item in zip(texts, items, strict=True):
        prefix += item.prefix if text is None else text + separator
        if text is None:
            break
    return Value(None, taints, prefix=prefix)


def _computed(texts: tuple[Scalar, ...], name: str, args: Arguments) -> Value | None:
    plain = [arg.only for arg in args.positional]
    if args.keywords or args.spread is not None or any(not only for only in plain):
        taints = frozenset[Taint]().union(*(arg.taints for arg in args.all()))
        return tainted(taints) if taints and name == "replace" else UNKNOWN
    values: list[Value] = []
    for text in texts:
        function: Callable[..., object] | None = getattr(text, name, None)
        if function is None or name in {"zfill", "split"}:
            return UNKNOWN
        try:
            result = function(*(only[0] for only in plain))
        except (TypeError, ValueError, LookupError):
            return UNKNOWN
        if not isinstance(result, str | bytes | int | bool):
            return UNKNOWN
        values.append(constant(result))
    return join(*values)


def tainted_method(owner: Value, name: str, args: Arguments, node: ast.Call) -> Value:
    """A method of an untrusted value."""
    others = frozenset[Taint]().union(*(arg.taints for arg in args.all()))
    if library.gives_no_text(name):
        weak = frozenset(t for t in owner.taints if t.origin == "weak-random")
        return tainted(weak) if weak else UNKNOWN
    if name in library.EXTRACTORS:
        return _extracted(owner, name, args, node)
    if name == "replace" and len(args.positional) > 1:
        return _replaced(owner, args, others)
    if name in {"resolve", "absolute"}:
        normal = made_safe(owner, frozenset({"normal"}))
        return Value(None, normal.taints | others, owner.things, owner.prefix)
    prefix = owner.prefix if name in _KEEPS_PREFIX else ""
    if name in {"joinpath", "with_name", "with_suffix"} and owner.things:
        return Value(None, owner.taints | others, owner.things, owner.prefix)
    return tainted(owner.taints | others, prefix)


def _extracted(owner: Value, name: str, args: Arguments, node: ast.Call) -> Value:
    converter = args.keywords.get("type")
    if converter is not None and set(converter.names()) & _CONVERTERS:
        return UNKNOWN
    if name == "keys":
        return tainted(owner.taints)
    key = args.positional[0].only if args.positional else ()
    what = (
        ("key", key[0])
        if key and name in {"get", "getlist", "pop", "getall"}
        else (name, node.lineno, node.col_offset, *key[:1])
    )
    value = part_of(owner, what)
    if name in {"get", "pop"} and len(args.positional) > 1:
        return join(value, args.positional[1])
    return value


def _replaced(owner: Value, args: Arguments, others: frozenset[Taint]) -> Value:
    old, new = args.positional[0].text, args.positional[1].text
    value = tainted(owner.taints | others)
    if old is None or new is None:
        return value
    for character, classes in _REPLACED:
        doubled = character in "'\"" and new == character * 2
        if old == character and (character not in new or doubled):
            value = made_safe(value, classes if not doubled else frozenset({"sql-injection"}))
    return value


def modelled(  # noqa: C901, PLR0911, PLR0912, PLR0917
    run: Run, frame: Frame, node: ast.Call, name: str, args: Arguments, state: State
) -> Value | None:
    """What these calls give; None for those without a model."""
    first = args.get(0)
    match name:
        case (
            "configparser.ConfigParser"
            | "configparser.RawConfigParser"
            | "configparser.SafeConfigParser"
        ):
            return heap.allocate(frame, node, Heaped("config"), state)
        case "socket.socket().accept" | "socket.create_server().accept":
            accepted = (external("socket.socket()"), UNKNOWN)
            return heap.allocate(frame, node, Heaped("tuple", items=accepted), state)
        case "functools.partial" if first is not None:
            bound = Heaped(
                "partial",
                items=args.positional[1:],
                entries={"function": first, **{("given", k): v for k, v in args.keywords.items()}},
            )
            return heap.allocate(frame, node, bound, state)
        case "io.StringIO" | "io.BytesIO":
            content: dict[Key, Value] = {"content": first if first is not None else constant("")}
            return heap.allocate(frame, node, Heaped("buffer", entries=content), state)
        case "xml.sax.make_parser" | "lxml.etree.XMLParser" | "lxml.etree.HTMLParser":
            made = Heaped("parser", of=External(f"{name}()"))
            for option in ("resolve_entities", "load_dtd"):
                value = args.keywords.get(option)
                if value is not None and value.only == (True,):
                    made = made.with_entry("external entities", constant(value=True))
            return heap.allocate(frame, node, made, state)
        case (
            "builtins.list"
            | "builtins.tuple"
            | "collections.deque"
            | "builtins.sorted"
            | "builtins.reversed"
        ):
            ordered = name not in {"builtins.sorted", "builtins.reversed"}
            return heap.allocate(frame, node, _list_of(first, state, ordered=ordered), state)
        case "builtins.set" | "builtins.frozenset":
            return heap.allocate(frame, node, _set_of(first, state), state)
        case "builtins.dict" | "collections.OrderedDict" | "collections.defaultdict":
            if args.positional:
                return None
            return heap.allocate(
                frame,
                node,
                Heaped("dict", entries={name: args.keywords[name] for name in args.keywords}),
                state,
            )
        case "builtins.str" | "builtins.bytes" | "builtins.bytearray" if first is not None:
            return _as_text(state, first)
        case "builtins.len" if first is not None:
            return _length(state, first)
        case "builtins.getattr" if len(args.positional) > 1:
            return _getattr(run, frame, node, args, state)
        case "builtins.isinstance":
            return join(constant(value=True), constant(value=False))
        case "builtins.int" | "builtins.float":
            return number(args.all())
        case "builtins.map" | "builtins.filter" if len(args.positional) > 1:
            element = heap.any_element(state, args.positional[1])
            result = element
            if name == "builtins.map":
                result = invocation.invoke(
                    run, frame, node, args.positional[0], Arguments((element,)), state
                )
            return heap.allocate(frame, node, Heaped("list", items=None, rest=result), state)
        case "re.fullmatch" | "re.match" | "re.search" if len(args.positional) > 1:
            return match(frame, node, args.positional[0], args.positional[1], state, name)
        case "re.compile" if first is not None:
            return heap.pattern(frame, node, first, state)
        case "re.sub" if len(args.positional) > 2:
            return _substituted(args)
        case "os.path.join" | "posixpath.join":
            return _joined_path(args)
        case "pathlib.Path" | "pathlib.PurePath" | "pathlib.PosixPath":
            taints = frozenset[Taint]().union(*(arg.taints for arg in args.all()))
            text = (first.text or first.prefix) if first is not None else ""
            return Value(None, taints, external("pathlib.Path()").things, text or "")
        case "os.path.commonpath" | "os.path.commonprefix":
            held = frozenset[Taint]().union(*(sinks.deep(state, arg) for arg in args.all()))
            return tainted(replace(t, mark=(*t.mark, checks.COMMON_FOLDER)) for t in held)
        case "os.path.realpath" | "os.path.abspath" | "os.path.normpath" if first is not None:
            safe = made_safe(first, frozenset({"normal"}))
            return Value(None, safe.taints, prefix=first.prefix or first.text or "")
        case "jinja2.Environment":
            chosen = args.keywords.get("autoescape")
            escapes = chosen is not None and chosen.only != (False,)
            return external("jinja2.Escaping()" if escapes else "jinja2.Environment()")
        case "hmac.new" | "hmac.digest":
            return heap.authenticated(frame, node, args, state)
        case "flask.make_response" if first is not None:
            return external("flask.make_response()")
        case _ if _RENDERED.fullmatch(name):
            return _rendered(name, args, state)
        case _:
            return None


def _rendered(name: str, args: Arguments, state: State) -> Value:
    """A page made from a template of ours with these values."""
    taints = frozenset[Taint]().union(*(sinks.deep(state, arg) for arg in args.all()))
    page = tainted(taints) if taints else UNKNOWN
    return made_safe(page, library.HTML) if name.startswith("jinja2.Escaping") else page


def _list_of(given: Value | None, state: State, *, ordered: bool) -> Heaped:
    """`list(given)`, and what else keeps the elements, in their order or not."""
    items = heap.elements(state, given) if given is not None else ()
    if items is not None and ordered:
        return Heaped("list", items=items)
    rest = heap.any_element(state, given) if given is not None else NOTHING
    return Heaped("list", items=None, rest=rest)


def _set_of(given: Value | None, state: State) -> Heaped:
    """`set(given)`; of a text its letters."""
    if given is None:
        return Heaped("set")
    if given.text is not None:
        letters = sorted(set(given.text))[:_MOST_LETTERS]
        return Heaped("set", items=tuple(constant(letter) for letter in letters))
    items = heap.elements(state, given)
    rest = NOTHING if items is not None else heap.any_element(state, given)
    return Heaped("set", items=items, rest=rest)


def match(  # noqa: PLR0917
    frame: Frame, node: ast.Call, pattern: Value, subject: Value, state: State, how: str
) -> Value:
    """What `re.match` gives: an object that knows what it was matched against, and by which function."""
    entries: dict[Key, Value] = {
        "pattern": pattern,
        "subject": subject,
        "how": constant(how.rpartition(".")[2]),
    }
    return heap.allocate(frame, node, Heaped("match", entries=entries), state)


def _as_text(state: State, value: Value) -> Value:
    if value.only and not isinstance(value.only[0], bytes):
        return constant(str(value.only[0]))
    taints = sinks.deep(state, value)
    return Value(None, taints, prefix=value.prefix)


def _length(state: State, value: Value) -> Value:
    items = heap.elements(state, value)
    if items is not None:
        return constant(len(items))
    text = value.text
    return constant(len(text)) if text is not None else UNKNOWN


def number(given: Iterable[Value]) -> Value:
    """A number made of these: it is no text, but it may have been predictable."""
    weak = frozenset(t for value in given for t in value.taints if t.origin == "weak-random")
    return tainted(weak) if weak else UNKNOWN


def _getattr(run: Run, frame: Frame, node: ast.Call, args: Arguments, state: State) -> Value:
    owner, name = args.positional[0], args.positional[1]
    if name.text is not None and name.text.isidentifier():
        fake = ast.copy_location(ast.Attribute(node.args[0], name.text, ast.Load()), node)
        return expressions.attribute(run, frame, fake, owner, state)
    # Which one is not known: any class or function of the module may be meant.
    found: list[Value] = []
    for one in owner.things:
        if isinstance(one, ModuleRef):
            members = expressions.environment(run, one.name).values()
            found.extend(
                thing(t) for value in members for t in value.things
                if isinstance(t, ClassRef | FunctionRef) and t.module == one.name
            )  # fmt: skip
    return join(*found[:12]) if found else part_of(owner, ("attribute", "?"))


def _substituted(args: Arguments) -> Value:
    pattern, new, value = args.positional[0].text, args.positional[1].text, args.positional[2]
    result = tainted(value.taints | args.positional[1].taints)
    if pattern is None or new is None or not value.taints:
        return result if result.taints else UNKNOWN
    removed = charset.one_of(pattern)
    if removed is None:
        return result
    classes = checks.without((charset.INTERESTING - removed) | set(new))
    return made_safe(result, library.ALL if classes >= checks.BY_LETTERS else classes)


def _joined_path(args: Arguments) -> Value:
    taints = frozenset[Taint]().union(*(arg.taints for arg in args.all()))
    first = args.positional[0] if args.positional else UNKNOWN
    texts = [arg.text for arg in args.positional]
    if all(text is not None for text in texts) and texts:
        return constant("/".join(text for text in texts if text is not None)[:LONGEST_CONSTANT])
    start = first.text or first.prefix
    return Value(None, taints, prefix=f"{start}/" if start and first.text else start)


def featured(parser: Heaped, args: Arguments) -> Heaped:
    """A SAX parser after `setFeature(feature, value)`."""
    feature = args.get(0, "name")
    state = args.get(1, "state")
    if feature is None or state is None:
        return parser
    named = any(
        name.endswith(("feature_external_ges", "feature_external_pes")) for name in feature.names()
    )
    if named or "external-general-entities" in (feature.text or ""):
        entries = {k: v for k, v in parser.entries.items() if k != "external entities"}
        if state.only in ((True,), (1,)):
            entries["external entities"] = constant(value=True)
        return replace(parser, entries=entries)
    return parser
