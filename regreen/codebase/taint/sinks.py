"""Where untrusted values do harm."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from regreen.codebase.taint import library, pages
from regreen.codebase.taint.run import Frame, Run
from regreen.codebase.taint.sink_table import (
    BY_METHOD,
    BY_NAME,
    LDAP3_METHODS,
    LDAP_METHODS,
    SHELLS,
    XML_LIBRARIES,
    XPATH_METHODS,
    Where,
)
from regreen.codebase.taint.state import Heaped, State
from regreen.codebase.taint.values import External, Handle, Taint, Value, join

_SECRET_NAME = re.compile(
    r"(?i)(?:^|_)(?:session|cookie|token|secret|password|passwd|pwd|otp|nonce|salt|api_?key|csrf|auth|pin|captcha|"
    r"reset_?code|verification_?code|remember_?me|private_?key|secret_?key|encryption_?key|iv)(?:$|_|s$|id$)"
)
_AUTHORITY = re.compile(
    r"(?i)user|role|admin|staff|owner|account|group|perm|priv|auth|logged|login|tenant|member|scope|identity|customer"
)
_SESSIONS = re.compile(r"(?:^|\.)(?:session|mysession|user_session|sessions)$")
_ORDINARY = frozenset({"web", "network", "argv", "environment", "input", "file"})


@dataclass(frozen=True, slots=True)
class Arguments:
    """A call's evaluated arguments."""

    positional: tuple[Value, ...] = ()
    keywords: dict[str, Value] = field(default_factory=dict)
    spread: Value | None = None

    def get(self, *where: int | str) -> Value | None:
        """The first of these arguments that is given."""
        for one in where:
            if isinstance(one, int):
                if one < len(self.positional):
                    return self.positional[one]
            elif one in self.keywords:
                return self.keywords[one]
        return self.spread

    def all(self) -> tuple[Value, ...]:
        """Every argument."""
        spread = (self.spread,) if self.spread is not None else ()
        return (*self.positional, *self.keywords.values(), *spread)


def deep(state: State, value: Value, depth: int = 0) -> frozenset[Taint]:
    """The taints of a value and of everything in it."""
    taints = state.baked(value).taints
    if depth > 3:
        return taints
    for key in value.handles():
        heaped = state.at(key)
        if heaped is not None:
            taints |= deep(state, heaped.anything(), depth + 1)
    return taints


def harmful(taints: Iterable[Taint], rule: str) -> frozenset[Taint]:
    """Those that were not made safe for this sink. Predictable numbers only matter where a secret is made."""
    return frozenset(
        t
        for t in taints
        if rule not in t.safe and (t.origin in _ORDINARY) == (rule != "weak-random")
    )


def check(  # noqa: PLR0917
    run: Run, frame: Frame, node: ast.Call, names: tuple[str, ...], args: Arguments, state: State
) -> None:
    """Report what reaches a sink in this call."""
    for name in names:
        method = name.rpartition(".")[2]
        for where in (*BY_NAME.get(name, ()), *BY_METHOD.get(method, ())):
            _check(run, frame, node, name, where, args, state)
        if method in LDAP_METHODS and "ldap" in _source_text(run, frame):
            # ldap3 takes (base, filter), python-ldap (base, scope, filter)
            first = (1, "search_filter") if method in LDAP3_METHODS else (2, "filterstr")
            filters = Where("ldap-injection", (*first, "search_filter", "filterstr"))
            _check(run, frame, node, name, filters, args, state)
        if method in XPATH_METHODS and name.startswith(XML_LIBRARIES):
            where = Where("xpath-injection", (0, "path", "match"))
            _check(run, frame, node, name, where, args, state)
        if method == "set_cookie":
            _cookie(run, frame, node, args, state)


def _source_text(run: Run, frame: Frame) -> str:
    module = run.program.module(frame.path)
    return module.text if module is not None else ""


def _check(  # noqa: PLR0917
    run: Run, frame: Frame, node: ast.Call, name: str, where: Where, args: Arguments, state: State
) -> None:
    value = args.get(*where.arguments)
    if value is None or not _applies(where, args, state):
        return
    if where.rule == "command-injection" and not where.by_shell and not _is_shell(args):
        value = _program(state, value)
    if where.rule == "path-traversal":
        value = _without_buffers(state, value)
    if where.rule == "xss":
        value = pages.body(state, value)
        if where.when == "html" and pages.is_retyped(frame.node, node):
            return
    taints = harmful(deep(state, value), where.rule)
    if taints and not _harmless_prefix(where.rule, value):
        run.report(where.rule, frame.path, node, f"`{_readable(name)}(...)`", taints)


def _without_buffers(state: State, value: Value) -> Value:
    """A file in memory is no path, whatever is in it."""
    held = [(one, state.at(one.key)) for one in value.things if isinstance(one, Handle)]
    buffers = {one for one, heaped in held if heaped is not None and heaped.kind == "buffer"}
    return replace(value, things=value.things - buffers) if buffers else value


def parsed(  # noqa: PLR0917
    run: Run, frame: Frame, node: ast.Call, parser: Heaped, args: Arguments, state: State
) -> None:
    """`parser.parse(document)`, where the parser was told to follow external entities."""
    document = args.get(0, "source")
    if document is not None and "external entities" in parser.entries:
        taints = harmful(deep(state, document), "xxe")
        run.report("xxe", frame.path, node, "`parse(...)` with external entities on", taints)


def _readable(name: str) -> str:
    return name.removeprefix("builtins.").removeprefix("?.").replace("()", "")


def _applies(where: Where, args: Arguments, state: State) -> bool:  # noqa: PLR0911
    match where.when:
        case "":
            return True
        case "unsafe-loader":
            loader = args.get(1, "Loader")
            return loader is None or not any(
                "Safe" in name or "Base" in name for name in loader.names()
            )
        case "parser-resolves-entities":
            parser = args.get(1, "parser")
            return parser is not None and any(
                (heaped := state.at(key)) is not None and "external entities" in heaped.entries
                for key in parser.handles()
            )
        case "html":
            kind = args.get("content_type", "mimetype", "media_type")
            text = kind.text if kind is not None else None
            return kind is None or (
                text is not None and any(part in text for part in pages.HTML_TYPES)
            )
        case "html-only":
            kind = args.get("content_type", "mimetype")
            return kind is not None and "html" in (kind.text or "")
        case "unfiltered":
            chosen = args.keywords.get("filter")
            return chosen is None or chosen.text == "fully_trusted"
        case "full-load":
            return args.keywords.get("weights_only", Value()).only != (True,)
        case _:
            return False


def _is_shell(args: Arguments) -> bool:
    shell = args.keywords.get("shell")
    return shell is not None and shell.only != (False,)


def _program(state: State, value: Value) -> Value:
    """Without a shell only the program, and what follows a shell's -c, can be turned into a command."""
    risky: list[Value] = []
    for key in value.handles():
        heaped = state.at(key)
        if heaped is None:
            continue
        if heaped.items is None:
            texts = {
                t
                for v in (*heaped.entries.values(), heaped.rest)
                for t in (v.known or ())
                if isinstance(t, str)
            }
            if texts & SHELLS and texts & {"-c", "/c", "/C"}:
                risky.append(heaped.anything())
            continue
        if not heaped.items:
            continue
        first, *rest = heaped.items
        risky.append(first)
        if any(
            isinstance(word, str) and word.rpartition("/")[2] in SHELLS
            for word in first.known or ()
        ):
            risky.extend(rest)
    own = (
        Value(value.constants, value.taints)
        if value.taints and not value.prefix
        else Value(frozenset())
    )
    return join(own, *risky)


def _harmless_prefix(rule: str, value: Value) -> bool:
    return rule in library.bounded(value.prefix)


def response(run: Run, frame: Frame, node: ast.Return, value: Value, state: State) -> None:
    """A handler's return value becomes a page."""
    if frame.entry is None or not frame.entry.html:
        return
    taints = harmful(state.baked(pages.body(state, value)).taints, "xss")
    if taints and not _is_response(value) and not pages.is_other_kind(state, value):
        run.report("xss", frame.path, node, "the page returned", taints)


def _is_response(value: Value) -> bool:
    return any(
        isinstance(thing, External)
        and thing.name.endswith("()")
        and not library.makes_text(thing.name)
        for thing in value.things
    )


def named(run: Run, frame: Frame, node: ast.AST, name: str, value: Value) -> None:
    """A predictable value gets the name of a secret."""
    if _SECRET_NAME.search(name):
        run.report(
            "weak-random", frame.path, node, f"`{name}`", harmful(value.taints, "weak-random")
        )


def stored_attribute(  # noqa: PLR0917
    run: Run, frame: Frame, target: ast.Attribute, owner: Value, value: Value, state: State
) -> None:
    """`owner.attribute = value`."""
    named(run, frame, target, target.attr, value)
    if target.attr == "location":
        taints = harmful(deep(state, value), "open-redirect")
        if not _harmless_prefix("open-redirect", value) and any(
            "response" in n.lower() for n in owner.names()
        ):
            run.report("open-redirect", frame.path, target, "the Location header", taints)


def stored_item(  # noqa: PLR0917
    run: Run,
    frame: Frame,
    target: ast.Subscript,
    owner: Value,
    key: Value,
    value: Value,
    state: State,
) -> None:
    """`owner[key] = value`: a session, headers, an environment."""
    name = _name_of(target.value)
    if _is_session(owner, name):
        # A cart or a language from the request is what sessions are for; who somebody is, is not.
        stored = join(key, value) if _AUTHORITY.search(key.text or "") else key
        taints = harmful(deep(state, stored), "trust-boundary")
        run.report("trust-boundary", frame.path, target, f"`{name}[...]`", taints)
    if _SECRET_NAME.search(name.rpartition(".")[2]) or _SESSIONS.search(name):
        weak = harmful(deep(state, value), "weak-random")
        run.report("weak-random", frame.path, target, f"`{name}[...]`", weak)
    if name.rpartition(".")[2] == "headers":
        taints = harmful(deep(state, join(key, value)), "header-injection")
        run.report("header-injection", frame.path, target, f"`{name}[...]`", taints)


def _is_session(owner: Value, name: str) -> bool:
    return (
        any(n in {"flask.session", "web.request.session", "quart.session"} for n in owner.names())
        or name == "request.session"
    )


def _name_of(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    return ".".join(reversed(parts))


def _cookie(run: Run, frame: Frame, node: ast.Call, args: Arguments, state: State) -> None:
    value = args.get(1, "value")
    if value is not None:
        weak = harmful(deep(state, value), "weak-random")
        run.report("weak-random", frame.path, node, "`set_cookie(...)`", weak)
