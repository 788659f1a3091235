"""Where untrusted values do harm."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import resources

from regreen.taint import secrecy
from regreen.taint.interpreter import Interpreter
from regreen.taint.models import sources
from regreen.taint.state import AbstractState, HeapObject
from regreen.taint.values import (
    WEAK_HASH,
    WEAK_RANDOM,
    AbstractValue,
    CallArguments,
    ExternalRef,
    ObjectRef,
    Taint,
    join_values,
)

_AUTHORITY_NAME = re.compile(
    r"(?i)user|role|admin|staff|owner|account|group|perm|priv|auth|logged|login|tenant|member|scope|identity|customer"
)
_SESSION_OBJECTS = frozenset(
    {
        "flask.session",
        "web.request.session",
        "quart.session",
        "cherrypy.session",
        "aiohttp_session.get_session()",
    }
)
_UPLOAD_ATTRIBUTES = frozenset({"files", "FILES"})


_SHELL_PROGRAMS = frozenset(
    {"sh", "bash", "zsh", "dash", "ksh", "cmd.exe", "cmd", "powershell", "pwsh", "powershell.exe"}
)
_XML_LIBRARIES = ("xml.etree.", "lxml.etree.", "lxml.objectify.", "defusedxml.")


@dataclass(frozen=True, slots=True)
class SinkSpec:
    """A rule, the arguments it looks at (the first that is given), and on what condition."""

    rule: str
    arguments: tuple[int | str, ...] = (0,)
    when: str = ""
    by_shell: bool = False


def _load_sinks(named_by: str) -> dict[str, tuple[SinkSpec, ...]]:
    """The rows of `sinks.toml` by the names of their calls, or of their methods."""
    text = resources.files("regreen.taint.models").joinpath("sinks.toml").read_text("utf-8")
    found: dict[str, tuple[SinkSpec, ...]] = {}
    for row in tomllib.loads(text)["sinks"]:
        spec = SinkSpec(
            row["rule"],
            tuple(row.get("arguments", (0,))),
            row.get("when", ""),
            row.get("by_shell", False),
        )
        for name in row.get(named_by, ()):
            found[name] = (*found.get(name, ()), spec)
    return found


_SINKS_BY_NAME, _SINKS_BY_METHOD = _load_sinks("calls"), _load_sinks("methods")


def _harmful_taints(taints: Iterable[Taint], rule: str) -> frozenset[Taint]:
    """Those that were not made safe for this sink. Predictable numbers and hashes matter where a secret is made."""
    return frozenset(
        t for t in taints if rule not in t.safe and t.origin not in {WEAK_RANDOM, WEAK_HASH}
    )


def _report_unsafe_taints(
    interp: Interpreter, rule: str, node: ast.AST, sink: str, value: AbstractValue
) -> None:
    """Report what of a value was not made safe for this sink."""
    taints = _harmful_taints(interp.state.collect_taints(value), rule)
    interp.report_flow(rule, node, sink, taints)


def check_sinks(
    interp: Interpreter, node: ast.Call, names: tuple[str, ...], args: CallArguments
) -> None:
    """Report what reaches a sink in this call."""
    for name in names:
        method = name.rpartition(".")[2]
        for where in (*_SINKS_BY_NAME.get(name, ()), *_SINKS_BY_METHOD.get(method, ())):
            _report_sink_argument(interp, node, name, where, args)
        if method in {"compare_digest", "constant_time_compare"} and len(node.args) == 2:
            secrecy.record_keys_compared_with_request(interp, node.args[0], node.args[1])
        if method in secrecy.STORING_METHODS and not name.startswith("?"):
            taints = interp.state.collect_taints(*args.all_arguments())
            place = ("named", name.removesuffix(f".{method}"))
            secrecy.record_stored_weak_secret(interp, node, f"`{name}(...)`", [place], taints)
        if method == "update" and name.removesuffix(".update") in _SESSION_OBJECTS:
            held = interp.state.collect_taints(*args.all_arguments())
            _check_session(interp, node, "session.update(...)", held)
    for keyword, given in args.keywords.items():
        _check_record_field(interp, node, keyword, given)


def _source_text(interp: Interpreter) -> str:
    module = interp.run.program.load_module(interp.frame.path)
    return module.text if module is not None else ""


def _report_sink_argument(
    interp: Interpreter, node: ast.Call, name: str, spec: SinkSpec, args: CallArguments
) -> None:
    value = args.find_argument(*spec.arguments)
    if value is None or not _sink_condition_holds(interp, spec, name, args):
        return
    if spec.rule == "command-injection" and not spec.by_shell and not _is_shell(args):
        value = _part_run_as_program(interp.state, value)
    # what an archive of the client unpacks to is named inside of it
    if spec.rule == "path-traversal" and spec.when != "unfiltered":
        value = _remove_file_objects(interp.state, value)
    if spec.rule == "secret":
        secrecy.report_weak_secrets(
            interp, node, f"`{_readable_name(name)}(...)`", interp.state.collect_taints(value)
        )
        return
    if spec.rule == "xss":
        value = _response_body(interp.state, value)
        if spec.when == "html" and _gets_other_content_type_later(interp.frame.node, node):
            return
    if not _harmless_prefix(spec.rule, value):
        _report_unsafe_taints(interp, spec.rule, node, f"`{_readable_name(name)}(...)`", value)


def _remove_file_objects(state: AbstractState, value: AbstractValue) -> AbstractValue:
    """A file in memory and an upload are no paths, whatever is in them; the name of an upload is one."""
    held = [(ref, state.find_object(ref.key)) for ref in value.things if isinstance(ref, ObjectRef)]
    buffers = {
        ref for ref, heap_object in held if heap_object is not None and heap_object.kind == "buffer"
    }
    paths = frozenset(t for t in value.taints if not _is_upload(t))
    return replace(value, things=value.things - buffers, taints=paths)


def _is_upload(taint: Taint) -> bool:
    parts = {part[1] for part in taint.mark if isinstance(part, tuple) and part[0] == "attribute"}
    if parts & {"filename", "name"}:
        return False
    return bool(parts & {"file", "stream"}) or (
        len(taint.mark) > 2 and taint.mark[1] in _UPLOAD_ATTRIBUTES
    )


def check_parse_call(
    interp: Interpreter, node: ast.Call, parser: HeapObject, args: CallArguments
) -> None:
    """`parser.parse(document)`, where the parser is configured to follow external entities."""
    document = args.find_argument(0, "source")
    if document is not None and "external entities" in parser.entries:
        _report_unsafe_taints(
            interp, "xxe", node, "`parse(...)` with external entities on", document
        )


def _readable_name(name: str) -> str:
    return name.removeprefix("builtins.").removeprefix("?.").replace("()", "")


def _sink_condition_holds(  # noqa: PLR0911
    interp: Interpreter, spec: SinkSpec, name: str, args: CallArguments
) -> bool:
    match spec.when:
        case "":
            return True
        case "unsafe-loader":
            loader = args.find_argument(1, "Loader")
            return loader is None or not any(
                "Safe" in name or "Base" in name for name in loader.external_names()
            )
        case "parser-resolves-entities":
            parser = args.find_argument(1, "parser")
            return parser is not None and any(
                "external entities" in heap_object.entries
                for heap_object in interp.state.find_objects(parser)
            )
        case "html":
            kind = args.find_argument("content_type", "mimetype", "media_type")
            text = kind.single_text if kind is not None else None
            return kind is None or (text is not None and any(part in text for part in HTML_TYPES))
        case "html-only":
            kind = args.find_argument("content_type", "mimetype")
            return kind is not None and "html" in (kind.single_text or "")
        case "unfiltered":
            chosen = args.keywords.get("filter")
            return chosen is None or chosen.single_text == "fully_trusted"
        case "set-cookie":
            header = args.find_argument(0)
            return header is not None and (header.single_text or "").lower() == "set-cookie"
        case "full-load":
            return args.keywords.get("weights_only", AbstractValue()).single_constant != (True,)
        case "ldap-module":
            return "ldap" in _source_text(interp)
        case "xml-library":
            return name.startswith(_XML_LIBRARIES)
        case _:
            return False


def _is_shell(args: CallArguments) -> bool:
    shell = args.keywords.get("shell")
    return shell is not None and shell.single_constant != (False,)


def _part_run_as_program(state: AbstractState, value: AbstractValue) -> AbstractValue:
    """Without a shell only the program, and what follows a shell's -c, can be turned into a command."""
    risky: list[AbstractValue] = []
    for heap_object in state.find_objects(value):
        if heap_object.items is None:
            texts = {
                t
                for v in (*heap_object.entries.values(), heap_object.rest)
                for t in (v.known_constants or ())
                if isinstance(t, str)
            }
            if texts & _SHELL_PROGRAMS and texts & {"-c", "/c", "/C"}:
                risky.append(heap_object.any_element())
            continue
        if not heap_object.items:
            continue
        first, *rest = heap_object.items
        risky.append(first)
        if any(
            isinstance(word, str) and word.rpartition("/")[2] in _SHELL_PROGRAMS
            for word in first.known_constants or ()
        ):
            risky.extend(rest)
    own = (
        AbstractValue(value.constants, value.taints)
        if value.taints and not value.prefix
        else AbstractValue(frozenset())
    )
    return join_values(own, *risky)


def _harmless_prefix(rule: str, value: AbstractValue) -> bool:
    return rule in sources.sinks_safe_by_prefix(value.prefix)


def check_response(interp: Interpreter, node: ast.Return, value: AbstractValue) -> None:
    """A handler's return value becomes a page."""
    if interp.frame.entry is None or not interp.frame.entry.html:
        return
    taints = _harmful_taints(
        interp.state.with_checks_applied(_response_body(interp.state, value)).taints, "xss"
    )
    if taints and not _is_response(value) and not _declares_other_content_type(interp.state, value):
        interp.report_flow("xss", node, "the page returned", taints)


def _is_response(value: AbstractValue) -> bool:
    return any(
        isinstance(thing, ExternalRef)
        and thing.name.endswith("()")
        and not sources.makes_text(thing.name)
        for thing in value.things
    )


def _check_record_field(
    interp: Interpreter, node: ast.AST, name: str, value: AbstractValue
) -> None:
    """A predictable value becomes a field of a record."""
    taints = interp.state.collect_taints(value)
    secrecy.check_secret_name(interp, node, name, taints)
    secrecy.record_stored_weak_secret(interp, node, f"`{name}`", [("field", name)], taints)


def check_stored_attribute(
    interp: Interpreter, target: ast.Attribute, owner: AbstractValue, value: AbstractValue
) -> None:
    """`owner.attribute = value`."""
    _check_record_field(interp, target, target.attr, value)
    if (
        target.attr == "location"
        and not _harmless_prefix("open-redirect", value)
        and any("response" in n.lower() for n in owner.external_names())
    ):
        _report_unsafe_taints(interp, "open-redirect", target, "the Location header", value)


def check_stored_item(
    interp: Interpreter,
    target: ast.Subscript,
    owner: AbstractValue,
    key: AbstractValue,
    value: AbstractValue,
) -> None:
    """`owner[key] = value`: a session, headers, an environment."""
    name, held = _target_name(target.value), interp.state.collect_taints(value)
    if _is_session(owner, name):
        # A cart or a language from the request belongs in a session; an identity does not.
        stored = join_values(key, value) if _AUTHORITY_NAME.search(key.single_text or "") else key
        _report_unsafe_taints(interp, "trust-boundary", target, f"`{name}[...]`", stored)
        _check_session(interp, target, f"`{name}[...]`", held)
    secrecy.check_secret_name(interp, target, key.single_text or "", held)
    places = secrecy.storage_keys(interp.run, owner, target.value)
    secrecy.record_stored_weak_secret(interp, target, f"`{name}[...]`", places, held)
    if name.rpartition(".")[2] == "headers":
        _report_unsafe_taints(
            interp, "header-injection", target, f"`{name}[...]`", join_values(key, value)
        )


def _check_session(interp: Interpreter, node: ast.AST, sink: str, held: frozenset[Taint]) -> None:
    numbers = (taint for taint in held if taint.origin == WEAK_RANDOM)
    secrecy.report_weak_secrets(interp, node, sink, numbers)


def _is_session(owner: AbstractValue, name: str) -> bool:
    return bool(_SESSION_OBJECTS & set(owner.external_names())) or name == "request.session"


def _target_name(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    return ".".join(reversed(parts))


# Whether what a handler answers is a page that a browser would run.

HTML_TYPES = ("html", "svg")
_CONTENT_TYPE_NAMES = frozenset({"mimetype", "content_type", "media_type"})


def _response_body(state: AbstractState, value: AbstractValue) -> AbstractValue:
    """The page in `(page, status, headers)`; other containers become JSON."""
    parts = [AbstractValue(value.constants, value.taints)]
    parts += [
        heap_object.items[0]
        for heap_object in state.find_objects(value)
        if heap_object.kind == "tuple" and heap_object.items
    ]
    return join_values(*parts) if value.heap_keys() else value


def _declares_other_content_type(state: AbstractState, value: AbstractValue) -> bool:
    """`(body, status, {"Content-Type": "text/plain"})`: nothing that a browser reads as a page."""
    responses = [
        heap_object for heap_object in state.find_objects(value) if heap_object.kind == "tuple"
    ]
    parts = [part for response in responses for part in response.items or ()]
    for headers in (heap_object for part in parts for heap_object in state.find_objects(part)):
        for name, held in headers.entries.items():
            if str(name).lower() == "content-type" and held.single_text is not None:
                return not any(kind in held.single_text for kind in HTML_TYPES)
    return False


def _gets_other_content_type_later(function: ast.AST, made: ast.Call) -> bool:
    """`r = make_response(x)`, and then `r.mimetype = "text/plain"` or `r.headers["Content-Type"] = ...`."""
    statements = [node for node in ast.walk(function) if isinstance(node, ast.Assign)]
    names = {
        target.id
        for node in statements
        if node.value is made
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    kinds = [kind for node in statements if names for kind in _assigned_content_types(node, names)]
    return bool(kinds) and not any(word in kind for kind in kinds for word in HTML_TYPES)


def _assigned_content_types(node: ast.Assign, names: set[str]) -> Iterator[str]:
    """The kind of content that an assignment gives to one of these responses."""
    if not isinstance(node.value, ast.Constant) or not isinstance(node.value.value, str):
        return
    for target in node.targets:
        place: ast.expr = target
        if isinstance(target, ast.Attribute) and target.attr in _CONTENT_TYPE_NAMES:
            place = target.value
        elif isinstance(target, ast.Subscript) and _is_content_type(target.slice):
            held = target.value
            place = (
                held.value if isinstance(held, ast.Attribute) and held.attr == "headers" else held
            )
        else:
            continue
        if isinstance(place, ast.Name) and place.id in names:
            yield node.value.value.lower()


def _is_content_type(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and str(node.value).lower() == "content-type"
