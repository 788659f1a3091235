"""Methods of text, and the library calls that need a model of their own."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from regreen.taint import charset, heap, namespaces, secrecy, validation
from regreen.taint.interpreter import Interpreter
from regreen.taint.models import sources
from regreen.taint.state import AbstractState, HeapObject
from regreen.taint.values import (
    BOTTOM,
    MAX_CONSTANT_LENGTH,
    TOP,
    AbstractValue,
    CallArguments,
    ClassRef,
    ExternalRef,
    FunctionRef,
    Key,
    ModuleRef,
    Scalar,
    Taint,
    join_values,
    make_constant,
    make_external,
    make_reference,
    make_tainted,
    mark_safe,
    project_part,
)

_KEEPS_PREFIX = frozenset({"rstrip", "encode", "decode", "ljust", "expandtabs", "removesuffix"})
_PURE_METHODS = frozenset(
    {
        "lower",
        "upper",
        "strip",
        "lstrip",
        "rstrip",
        "title",
        "capitalize",
        "casefold",
        "swapcase",
        "split",
        "replace",
        "startswith",
        "endswith",
        "find",
        "rfind",
        "index",
        "count",
        "isdigit",
        "isalpha",
        "isalnum",
        "encode",
        "decode",
        "removeprefix",
        "removesuffix",
        "zfill",
    }
)
_MAX_LETTERS = 256
_TEMPLATE_RENDERERS = re.compile(
    r"jinja2\.(?:(?:Environment|Escaping)\(\)\.(?:from_string|get_template)|Template)\(\)\.render(?:_async)?"
)
_SAFE_CONVERTERS = frozenset({"builtins.int", "builtins.float", "builtins.bool", "uuid.UUID"})
_REPLACEMENT_SINKS: tuple[tuple[str, frozenset[str]], ...] = (
    ("'", sources.QUOTE_SINKS),
    ('"', sources.QUOTE_SINKS),
    ("<", sources.HTML_SINKS),
    ("\n", sources.LINE_SINKS),
    ("\r", sources.LINE_SINKS),
    ("/", sources.PATH_SINKS),
    ("(", frozenset({"ldap-injection"})),
    ("*", frozenset({"ldap-injection"})),
)


def call_known_text_method(
    owner: AbstractValue, name: str, args: CallArguments, state: AbstractState
) -> AbstractValue | None:
    """A method of a text that is known, or partly known; None when it is no text of ours."""
    texts = owner.known_constants
    if not texts or not all(isinstance(text, str | bytes) for text in texts):
        return None
    if name in _PURE_METHODS:
        return _call_method_on_constants(texts, name, args)
    if name in {"format", "format_map"}:
        taints = state.collect_taints(*args.all_arguments())
        prefix = str(texts[0]).split("{", 1)[0] if len(texts) == 1 else ""
        return make_tainted(taints, prefix) if taints else AbstractValue(None, prefix=prefix)
    if name == "join" and args.positional:
        return _join_parts(texts, args.positional[0], state)
    return None


def _join_parts(
    separators: tuple[Scalar, ...], parts: AbstractValue, state: AbstractState
) -> AbstractValue:
    """`separator.join(parts)`."""
    items = state.known_elements(parts)
    taints = state.collect_taints(state.any_element(parts) if parts.taints else parts)
    if not any(mark in str(text) for text in separators for mark in " ,\n"):
        taints = secrecy.compose_draws(
            make_tainted(taints)
        ).taints  # several draws in one word, not a list of what was drawn
    if items is None or len(separators) != 1 or not isinstance(separators[0], str):
        return make_tainted(taints) if taints else TOP
    separator = separators[0]
    texts = [item.single_text for item in items]
    if not taints and all(text is not None for text in texts):
        return make_constant(
            separator.join(text for text in texts if text is not None)[:MAX_CONSTANT_LENGTH]
        )
    prefix = ""
    for text, item in zip(texts, items, strict=True):
        prefix += item.prefix if text is None else text + separator
        if text is None:
            break
    return AbstractValue(None, taints, prefix=prefix)


def _call_method_on_constants(
    texts: tuple[Scalar, ...], name: str, args: CallArguments
) -> AbstractValue | None:
    plain = [arg.single_constant for arg in args.positional]
    if args.keywords or args.spread is not None or any(not only for only in plain):
        taints = args.taints
        return make_tainted(taints) if taints and name == "replace" else TOP
    values: list[AbstractValue] = []
    for text in texts:
        function: Callable[..., object] | None = getattr(text, name, None)
        if function is None or name in {"zfill", "split"}:
            return TOP
        try:
            result = function(*(only[0] for only in plain))
        except (TypeError, ValueError, LookupError):
            return TOP
        if not isinstance(result, str | bytes | int | bool):
            return TOP
        values.append(make_constant(result))
    return join_values(*values)


def call_tainted_method(
    owner: AbstractValue, name: str, args: CallArguments, node: ast.Call
) -> AbstractValue:
    """A method of an untrusted value."""
    others = args.taints
    if sources.gives_no_text(name):
        weak = frozenset(t for t in owner.taints if t.origin == "weak-random")
        return make_tainted(weak) if weak else TOP
    if name in sources.EXTRACTORS:
        return _call_lookup_method(owner, name, args, node)
    if name == "replace" and len(args.positional) > 1:
        return _replace_text(owner, args, others)
    if name in {"resolve", "absolute"}:
        normal = mark_safe(owner, frozenset({"normal"}))
        return AbstractValue(None, normal.taints | others, owner.things, owner.prefix)
    prefix = owner.prefix if name in _KEEPS_PREFIX else ""
    if name in {"joinpath", "with_name", "with_suffix"} and owner.things:
        return AbstractValue(None, owner.taints | others, owner.things, owner.prefix)
    return make_tainted(owner.taints | others, prefix)


def _call_lookup_method(
    owner: AbstractValue, name: str, args: CallArguments, node: ast.Call
) -> AbstractValue:
    converter = args.keywords.get("type")
    if converter is not None and set(converter.external_names()) & _SAFE_CONVERTERS:
        return TOP
    if name == "keys":
        return make_tainted(owner.taints)
    key = args.positional[0].single_constant if args.positional else ()
    what = (
        ("key", key[0])
        if key and name in {"get", "getlist", "pop", "getall"}
        else (name, node.lineno, node.col_offset, *key[:1])
    )
    value = project_part(owner, what)
    if name in {"get", "pop"} and len(args.positional) > 1:
        return join_values(value, args.positional[1])
    return value


def _replace_text(
    owner: AbstractValue, args: CallArguments, others: frozenset[Taint]
) -> AbstractValue:
    old, new = args.positional[0].single_text, args.positional[1].single_text
    value = make_tainted(owner.taints | others)
    if old is None or new is None:
        return value
    for character, classes in _REPLACEMENT_SINKS:
        doubled = character in "'\"" and new == character * 2
        if old == character and (character not in new or doubled):
            value = mark_safe(value, classes if not doubled else frozenset({"sql-injection"}))
    return value


def call_modelled_function(  # noqa: C901, PLR0911, PLR0912
    interp: Interpreter, node: ast.Call, name: str, args: CallArguments
) -> AbstractValue | None:
    """What these calls give; None for those without a model."""
    first = args.find_argument(0)
    match name:
        case (
            "configparser.ConfigParser"
            | "configparser.RawConfigParser"
            | "configparser.SafeConfigParser"
        ):
            return interp.allocate_object(node, HeapObject("config"))
        case "socket.socket().accept" | "socket.create_server().accept":
            accepted = (make_external("socket.socket()"), TOP)
            return interp.allocate_object(node, HeapObject("tuple", items=accepted))
        case "functools.partial" if first is not None:
            bound = HeapObject(
                "partial",
                items=args.positional[1:],
                entries={"function": first, **{("given", k): v for k, v in args.keywords.items()}},
            )
            return interp.allocate_object(node, bound)
        case "io.StringIO" | "io.BytesIO":
            content: dict[Key, AbstractValue] = {
                "content": first if first is not None else make_constant("")
            }
            return interp.allocate_object(node, HeapObject("buffer", entries=content))
        case "xml.sax.make_parser" | "lxml.etree.XMLParser" | "lxml.etree.HTMLParser":
            made = HeapObject("parser", of=ExternalRef(f"{name}()"))
            for option in ("resolve_entities", "load_dtd"):
                value = args.keywords.get(option)
                if value is not None and value.single_constant == (True,):
                    made = made.with_entry("external entities", make_constant(value=True))
            return interp.allocate_object(node, made)
        case (
            "builtins.list"
            | "builtins.tuple"
            | "collections.deque"
            | "builtins.sorted"
            | "builtins.reversed"
        ):
            ordered = name not in {"builtins.sorted", "builtins.reversed"}
            return interp.allocate_object(
                node, _make_list_of_elements(first, interp.state, ordered=ordered)
            )
        case "builtins.set" | "builtins.frozenset":
            return interp.allocate_object(node, _make_set(first, interp.state))
        case "builtins.dict" | "collections.OrderedDict" | "collections.defaultdict":
            if args.positional:
                return None
            return interp.allocate_object(
                node,
                HeapObject("dict", entries={name: args.keywords[name] for name in args.keywords}),
            )
        case "builtins.str" | "builtins.bytes" | "builtins.bytearray" if first is not None:
            made_of = _convert_to_str(interp.state, first)
            several = name != "builtins.str" and len(args.all_arguments()) == 1
            return secrecy.compose_draws(made_of) if several else made_of
        case "builtins.len" if first is not None:
            return _compute_length(interp.state, first)
        case "builtins.getattr" if len(args.positional) > 1:
            return _call_getattr(interp, node, args)
        case "builtins.isinstance":
            return join_values(make_constant(value=True), make_constant(value=False))
        case "builtins.int" | "builtins.float":
            return make_number_value(args.all_arguments())
        case "builtins.map" | "builtins.filter" if len(args.positional) > 1:
            element = interp.state.any_element(args.positional[1])
            result = element
            if name == "builtins.map":
                result = interp.invoke_callee(node, args.positional[0], CallArguments((element,)))
            return interp.allocate_object(node, HeapObject("list", items=None, rest=result))
        case "re.fullmatch" | "re.match" | "re.search" if len(args.positional) > 1:
            return make_match(interp, node, args.positional[0], args.positional[1], name)
        case "re.compile" if first is not None:
            return heap.make_pattern(interp, node, first)
        case "re.sub" if len(args.positional) > 2:
            return _substitute_pattern(args)
        case "os.path.join" | "posixpath.join":
            return _joined_path(args)
        case "pathlib.Path" | "pathlib.PurePath" | "pathlib.PosixPath":
            taints = args.taints
            text = (first.single_text or first.prefix) if first is not None else ""
            return AbstractValue(None, taints, make_external("pathlib.Path()").things, text or "")
        case "os.path.commonpath" | "os.path.commonprefix":
            held = interp.state.collect_taints(*args.all_arguments())
            return make_tainted(replace(t, mark=(*t.mark, validation.COMMON_FOLDER)) for t in held)
        case "os.path.realpath" | "os.path.abspath" | "os.path.normpath" if first is not None:
            safe = mark_safe(first, frozenset({"normal"}))
            return AbstractValue(None, safe.taints, prefix=first.prefix or first.single_text or "")
        case "jinja2.Environment":
            chosen = args.keywords.get("autoescape")
            escapes = chosen is not None and chosen.single_constant != (False,)
            return make_external("jinja2.Escaping()" if escapes else "jinja2.Environment()")
        case "hmac.new" | "hmac.digest":
            return heap.make_message_authentication_code(interp, node, args)
        case "flask.make_response" if first is not None:
            return make_external("flask.make_response()")
        case _ if _TEMPLATE_RENDERERS.fullmatch(name):
            return _render_template(name, args, interp.state)
        case _:
            return None


def _render_template(name: str, args: CallArguments, state: AbstractState) -> AbstractValue:
    """A page made from a template of ours with these values."""
    taints = state.collect_taints(*args.all_arguments())
    page = make_tainted(taints) if taints else TOP
    return mark_safe(page, sources.HTML_SINKS) if name.startswith("jinja2.Escaping") else page


def _make_list_of_elements(
    given: AbstractValue | None, state: AbstractState, *, ordered: bool
) -> HeapObject:
    """`list(given)`, and what else keeps the elements, in their order or not."""
    items = state.known_elements(given) if given is not None else ()
    if items is not None and ordered:
        return HeapObject("list", items=items)
    rest = state.any_element(given) if given is not None else BOTTOM
    return HeapObject("list", items=None, rest=rest)


def _make_set(given: AbstractValue | None, state: AbstractState) -> HeapObject:
    """`set(given)`; of a text its letters."""
    if given is None:
        return HeapObject("set")
    if given.single_text is not None:
        letters = sorted(set(given.single_text))[:_MAX_LETTERS]
        return HeapObject("set", items=tuple(make_constant(letter) for letter in letters))
    items = state.known_elements(given)
    rest = BOTTOM if items is not None else state.any_element(given)
    return HeapObject("set", items=items, rest=rest)


def make_match(
    interp: Interpreter, node: ast.Call, pattern: AbstractValue, subject: AbstractValue, how: str
) -> AbstractValue:
    """What `re.match` gives: an object that knows what it was matched against, and by which function."""
    entries: dict[Key, AbstractValue] = {
        "pattern": pattern,
        "subject": subject,
        "how": make_constant(how.rpartition(".")[2]),
    }
    return interp.allocate_object(node, HeapObject("match", entries=entries))


def _convert_to_str(state: AbstractState, value: AbstractValue) -> AbstractValue:
    if value.single_constant and not isinstance(value.single_constant[0], bytes):
        return make_constant(str(value.single_constant[0]))
    taints = state.collect_taints(value)
    return AbstractValue(None, taints, prefix=value.prefix)


def _compute_length(state: AbstractState, value: AbstractValue) -> AbstractValue:
    items = state.known_elements(value)
    if items is not None:
        return make_constant(len(items))
    text = value.single_text
    return make_constant(len(text)) if text is not None else TOP


def make_number_value(given: Iterable[AbstractValue]) -> AbstractValue:
    """A number made of these: it is no text, but it may have been predictable."""
    weak = frozenset(t for value in given for t in value.taints if t.origin == "weak-random")
    return make_tainted(weak) if weak else TOP


def _call_getattr(interp: Interpreter, node: ast.Call, args: CallArguments) -> AbstractValue:
    owner, name = args.positional[0], args.positional[1]
    if name.single_text is not None and name.single_text.isidentifier():
        fake = ast.copy_location(ast.Attribute(node.args[0], name.single_text, ast.Load()), node)
        return interp.read_attribute(fake, owner)
    # Which one is not known: any class or function of the module may be meant.
    found: list[AbstractValue] = []
    for ref in owner.things:
        if isinstance(ref, ModuleRef):
            members = namespaces.module_environment(interp.run, ref.name).values()
            found.extend(
                make_reference(t)
                for value in members
                for t in value.things
                if isinstance(t, ClassRef | FunctionRef) and t.module == ref.name
            )
    return join_values(*found[:12]) if found else project_part(owner, ("attribute", "?"))


def _substitute_pattern(args: CallArguments) -> AbstractValue:
    pattern, new, value = (
        args.positional[0].single_text,
        args.positional[1].single_text,
        args.positional[2],
    )
    result = make_tainted(value.taints | args.positional[1].taints)
    if pattern is None or new is None or not value.taints:
        return result if result.taints else TOP
    removed = charset.characters_of_simple_pattern(pattern)
    if removed is None:
        return result
    classes = validation.sinks_safe_for_letters(
        (charset.INTERESTING_CHARACTERS - removed) | set(new)
    )
    return mark_safe(result, sources.ALL_SINKS if classes >= validation.BY_LETTERS else classes)


def _joined_path(args: CallArguments) -> AbstractValue:
    taints = args.taints
    first = args.positional[0] if args.positional else TOP
    texts = [arg.single_text for arg in args.positional]
    if all(text is not None for text in texts) and texts:
        return make_constant(
            "/".join(text for text in texts if text is not None)[:MAX_CONSTANT_LENGTH]
        )
    start = first.single_text or first.prefix
    return AbstractValue(None, taints, prefix=f"{start}/" if start and first.single_text else start)


def set_parser_feature(parser: HeapObject, args: CallArguments) -> HeapObject:
    """A SAX parser after `setFeature(feature, value)`."""
    feature = args.find_argument(0, "name")
    state = args.find_argument(1, "state")
    if feature is None or state is None:
        return parser
    named = any(
        name.endswith(("feature_external_ges", "feature_external_pes"))
        for name in feature.external_names()
    )
    if named or "external-general-entities" in (feature.single_text or ""):
        entries = {k: v for k, v in parser.entries.items() if k != "external entities"}
        if state.single_constant in ((True,), (1,)):
            entries["external entities"] = make_constant(value=True)
        return replace(parser, entries=entries)
    return parser
