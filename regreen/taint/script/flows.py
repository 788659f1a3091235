"""Untrusted values in JavaScript and TypeScript: from a web request to a call that does harm, within one file.

Functions are read statement by statement; a value goes on into functions of the same file. What a call of anything else
gives is trusted, and so is what a condition has looked at: this says too little rather than too much.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from regreen.code.file_languages import language_of, parser_for
from regreen.code.symbols import SCRIPT_FUNCTIONS, node_text, walk_nodes

if TYPE_CHECKING:
    from tree_sitter import Node

_MAX_CALLS = 3
_MAX_STEPS = 200_000
_MAX_TEXT = 400
_SPACE = re.compile(r"\s+")
_STATEMENT = re.compile(
    r"(?i)[`'\"]\s*(?:select\b.{1,300}?\bfrom|insert\s+into|update\b.{1,200}?\bset|delete\s+from|replace\s+into|"
    r"drop\s+table|with\b.{1,300}?\bselect)\b",
    re.DOTALL,
)
_TAG = re.compile(r"<[a-zA-Z!/]")
_JOINING = frozenset(
    {"template_string", "template_substitution", "parenthesized_expression", "await_expression", "as_expression",
     "non_null_expression", "satisfies_expression", "array", "object", "pair", "spread_element", "subscript_expression",
     "sequence_expression", "ternary_expression"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ScriptFlow:
    """An untrusted value that reaches a harmful call: the rule, 1-based lines, the source's and the call's text."""

    rule: str
    line: int
    end_line: int
    source_line: int
    source: str
    sink: str
    mend: str


@dataclass(frozen=True, slots=True)
class _Taint:
    line: int
    source: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class _Sink:
    rule: str
    calls: re.Pattern[str]
    mend: str
    argument: int = 0
    needs: str = ""
    form: str = ""
    options: str = ""
    without: str = ""


@cache
def _load_models() -> tuple[dict[str, Any], tuple[_Sink, ...]]:
    table = tomllib.loads(
        resources.files("regreen.taint.script").joinpath("models.toml").read_text("utf-8")
    )
    sinks = tuple(_Sink(**{**row, "calls": re.compile(row["calls"])}) for row in table["sinks"])
    return table, sinks


def find_script_flows(path: str, text: str) -> list[ScriptFlow] | None:
    """The flows of one JavaScript or TypeScript file; None where it does not parse or is nested too deeply."""
    try:
        return _find_flows(path, text)
    except RecursionError:
        return None


def _find_flows(path: str, text: str) -> list[ScriptFlow] | None:
    language = language_of(path)
    if language is None:
        return None
    root = parser_for(language).parse(text.encode("utf-8", "surrogateescape")).root_node
    if root.has_error:
        return None
    reader = _FlowReader(text)
    for node in walk_nodes(root):
        if node.type in SCRIPT_FUNCTIONS and (name := _function_name(node)):
            reader.functions[name] = None if name in reader.functions else node
    for node in walk_nodes(root):
        if node.type in SCRIPT_FUNCTIONS:
            reader.read_function(node, _request_values(node), 0)
    return sorted(reader.flows.values(), key=lambda f: (f.line, f.rule))


def _function_name(node: Node) -> str:
    named = node.child_by_field_name("name")
    parent = node.parent
    if named is None and parent is not None and parent.type == "variable_declarator":
        named = parent.child_by_field_name("name")
    return node_text(named)


def _parameters(node: Node) -> list[Node]:
    listed = node.child_by_field_name("parameters") or node.child_by_field_name("parameter")
    if listed is None:
        return []
    return (
        [listed]
        if listed.type == "identifier"
        else [c for c in listed.named_children if c.type != "comment"]
    )


def _bound_names(node: Node | None) -> list[str]:
    if node is None:
        return []
    kinds = {"identifier", "shorthand_property_identifier_pattern"}
    pattern = node.child_by_field_name("pattern") or node
    return [node_text(n) for n in walk_nodes(pattern) if n.type in kinds]


def _request_values(node: Node) -> dict[str, _Taint]:
    """The parameters that a framework fills from the request."""
    table, _ = _load_models()
    found: dict[str, _Taint] = {}
    for parameter in _parameters(node):
        marks = [
            node_text(c).lstrip("@").split("(")[0]
            for c in parameter.named_children
            if c.type == "decorator"
        ]
        if any(m in table["decorators"] for m in marks):
            line = parameter.start_point[0] + 1
            found |= {
                name: _Taint(line, name)
                for name in _bound_names(parameter.child_by_field_name("pattern"))
            }
    return found


@dataclass
class _FlowReader:
    text: str
    functions: dict[str, Node | None] = field(default_factory=dict)
    flows: dict[tuple[str, int, str], ScriptFlow] = field(default_factory=dict)
    steps: int = 0

    def read_function(self, node: Node, values: dict[str, _Taint], depth: int) -> None:
        """Follow the values through a function's body, nested functions aside unless they close over them."""
        requests = {n for p in _parameters(node) for n in _bound_names(p)} & {
            *_load_models()[0]["request_names"]
        }
        body = node.child_by_field_name("body")
        if body is not None and (requests or values):
            self._read(body, dict(values), frozenset(requests), depth)

    def _read(
        self, node: Node, env: dict[str, _Taint], requests: frozenset[str], depth: int
    ) -> None:
        self.steps += 1
        if self.steps > _MAX_STEPS:
            return
        if node.type in SCRIPT_FUNCTIONS:
            inner = {n for p in _parameters(node) for n in _bound_names(p)}
            env = {k: v for k, v in env.items() if k not in inner}
            requests -= (
                inner & requests if inner & {*_load_models()[0]["request_names"]} else frozenset()
            )
        elif node.type in {
            "if_statement",
            "ternary_expression",
            "switch_statement",
            "while_statement",
        }:
            self._trust_checked(node, env)
        for child in node.named_children:
            self._read(child, env, requests, depth)
        if node.type == "variable_declarator":
            self._bind(
                node.child_by_field_name("name"), node.child_by_field_name("value"), env, requests
            )
        elif node.type in {"assignment_expression", "augmented_assignment_expression"}:
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            if left is not None and left.type == "identifier":
                kept = env.get(node_text(left)) if node.type.startswith("augmented") else None
                self._bind(left, right, env, requests)
                if kept:
                    env.setdefault(node_text(left), kept)
        elif node.type in {"call_expression", "new_expression"}:
            self._read_call(node, env, requests, depth)

    def _trust_checked(self, node: Node, env: dict[str, _Taint]) -> None:
        condition = node.child_by_field_name("condition") or node.child_by_field_name("value")
        said = node_text(condition)
        if node.type == "switch_statement" or re.search(_load_models()[0]["checks"], said[:2000]):
            names = {*re.findall(r"[A-Za-z_$][\w$]*", said)}
            for name in [
                n
                for n, taint in env.items()
                if n in names or _SPACE.sub("", taint.source) in _SPACE.sub("", said)
            ]:
                env.pop(name)
            env |= {
                f"={_SPACE.sub('', x)}": _Taint(0, "")
                for x in re.findall(r"[\w$]+(?:\.[\w$]+)+", said)
            }

    def _bind(
        self,
        name: Node | None,
        value: Node | None,
        env: dict[str, _Taint],
        requests: frozenset[str],
    ) -> None:
        taint = self._taint_of(value, env, requests)
        for bound in _bound_names(name):
            env.pop(bound, None)
            if taint:
                env[bound] = taint

    def _taint_of(
        self, node: Node | None, env: dict[str, _Taint], requests: frozenset[str]
    ) -> _Taint | None:
        if node is None:
            return None
        self.steps += 1
        kind = node.type
        if kind in {"identifier", "shorthand_property_identifier"}:
            return env.get(node_text(node))
        if kind in {"member_expression", "subscript_expression", "call_expression"}:
            follow = self._taint_of_result if kind == "call_expression" else self._taint_of_member
            return follow(node, env, requests)
        joins = node_text(node.child_by_field_name("operator")) in {"+", "||", "??"}
        if kind not in _JOINING and not (kind == "binary_expression" and joins):
            return None
        parts = node.named_children[1:] if kind == "ternary_expression" else node.named_children
        found = next((t for c in parts if (t := self._taint_of(c, env, requests))), None)
        if found and kind in {"template_string", "binary_expression"}:
            leaves = [x for c in parts for x in (c, *c.named_children)]
            inner = next((t.text for x in leaves if (t := env.get(node_text(x)))), "")
            return _Taint(found.line, found.source, (node_text(node) + inner)[:4000])
        return found

    def _taint_of_member(
        self, node: Node, env: dict[str, _Taint], requests: frozenset[str]
    ) -> _Taint | None:
        said = _SPACE.sub("", node_text(node)[:_MAX_TEXT]).replace("?.", ".")
        if f"={said}" in env:
            return None
        root = said.split(".", maxsplit=1)[0]
        if root in requests and re.fullmatch(_load_models()[0]["sources"], said):
            return _Taint(node.start_point[0] + 1, said)
        if node_text(node.child_by_field_name("property")) == "length":
            return None
        return self._taint_of(node.child_by_field_name("object"), env, requests)

    def _taint_of_result(
        self, node: Node, env: dict[str, _Taint], requests: frozenset[str]
    ) -> _Taint | None:
        function, arguments = (
            node.child_by_field_name("function"),
            node.child_by_field_name("arguments"),
        )
        if function is None or arguments is None:
            return None
        said = _SPACE.sub("", node_text(function)[:_MAX_TEXT])
        keeps = _load_models()[0]["keeps"]
        if said in keeps:
            return next(
                (t for c in arguments.named_children if (t := self._taint_of(c, env, requests))),
                None,
            )
        method = f".{said.rpartition('.')[2]}"
        if method in keeps:
            return self._taint_of(function.child_by_field_name("object"), env, requests)
        root = said.split(".", maxsplit=1)[0]
        if root in requests and re.fullmatch(
            r"\w+(?:\.req)?\.(?:param|query|header|get|json|text)", said
        ):
            return _Taint(node.start_point[0] + 1, said)
        return None

    def _read_call(
        self, node: Node, env: dict[str, _Taint], requests: frozenset[str], depth: int
    ) -> None:
        function = node.child_by_field_name("function") or node.child_by_field_name("constructor")
        arguments = node.child_by_field_name("arguments")
        if function is None or arguments is None or arguments.type != "arguments":
            return
        given = [c for c in arguments.named_children if c.type != "comment"]
        said = _SPACE.sub("", node_text(function)[:_MAX_TEXT])
        taints = [self._taint_of(c, env, requests) for c in given]
        for sink in _load_models()[1]:
            at = sink.argument if sink.argument >= 0 else len(given) - 1
            taint = taints[at] if 0 <= at < len(given) else None
            if taint and sink.calls.fullmatch(said) and self._is_harmful(sink, given, at, taint):
                line, end = node.start_point[0] + 1, node.end_point[0] + 1
                shown = f"`{said[-80:]}`"
                flow = ScriptFlow(
                    sink.rule,
                    line,
                    min(end, line + 5),
                    taint.line,
                    taint.source[:80],
                    shown,
                    sink.mend,
                )
                self.flows.setdefault((sink.rule, line, said), flow)
        target = self.functions.get(said.rpartition(".")[2] if said.startswith("this.") else said)
        if target is not None and depth < _MAX_CALLS and any(taints):
            names = [_bound_names(p) for p in _parameters(target)]
            passed = {n: t for bound, t in zip(names, taints, strict=False) if t for n in bound}
            self.read_function(target, passed, depth + 1)

    def _is_harmful(self, sink: _Sink, given: list[Node], at: int, taint: _Taint) -> bool:
        others = _SPACE.sub(
            "", "".join(node_text(c) for i, c in enumerate(given) if i != at)[:2000]
        )
        if sink.needs and not re.search(
            rf"['\"](?:node:)?{sink.needs}(?:/promises)?['\"]", self.text
        ):
            return False
        if (sink.options and sink.options not in others) or (
            sink.without and sink.without in others
        ):
            return False
        argument = node_text(given[at])[:4000]
        built = taint.text or ""
        match sink.form:
            case "sql":
                return _STATEMENT.search(built) is not None
            case "markup":
                return _TAG.search(built) is not None
            case "address":
                begins = built or argument
                return not begins.startswith(("'", '"', "`")) or begins.startswith("`${")
            case _:
                return True
