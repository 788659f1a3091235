"""Untrusted values in JavaScript and TypeScript: from a web request to a call that does harm.

Functions are read statement by statement; a value goes on into the functions that a call surely means, in other files too,
and comes back with what they return. What a call of anything else gives is trusted, and so is what a condition has looked
at: this says too little rather than too much.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from regreen.code.file_languages import language_of, parser_for
from regreen.code.symbols import SCRIPT_FUNCTIONS, node_text, walk_nodes

if TYPE_CHECKING:
    from tree_sitter import Node

_MAX_CALLS = 4
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
    {
        "template_string",
        "template_substitution",
        "parenthesized_expression",
        "await_expression",
        "as_expression",
        "non_null_expression",
        "satisfies_expression",
        "array",
        "object",
        "pair",
        "spread_element",
        "subscript_expression",
        "sequence_expression",
        "ternary_expression",
    }
)

_URL = "\0url"
"""The text of a request's address as an object, of which only the parameters are untrusted."""
Place = tuple[str, int]
"""A path and a line."""


@dataclass(frozen=True, slots=True)
class ScriptFunction:
    """A function of a file, as the caller of `find_script_flows` resolves a call to it."""

    path: str
    text: str
    node: Node


FindFunction = Callable[[str, str, str], ScriptFunction | None]
"""Finds the function that a file's call means: its path, what stands before the dot, the name."""


@dataclass(frozen=True, slots=True)
class ScriptFlow:
    """An untrusted value that reaches a harmful call: the rule, where, the source's and the call's text.

    `steps` are the source and the calls that hand the value on.
    """

    rule: str
    path: str
    line: int
    end_line: int
    source: str
    sink: str
    mend: str
    steps: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class _Taint:
    source: str
    text: str = ""
    steps: tuple[Place, ...] = ()


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


def find_script_flows(
    path: str, text: str, find_function: FindFunction | None = None
) -> list[ScriptFlow] | None:
    """The flows that begin in a JavaScript or TypeScript file; None where it does not parse or is nested too deeply.

    `find_function` resolves calls of functions of other files; without it they are not followed.
    """
    try:
        return _find_flows(path, text, find_function)
    except RecursionError:
        return None


def _find_flows(path: str, text: str, find: FindFunction | None) -> list[ScriptFlow] | None:
    language = language_of(path)
    if language is None:
        return None
    root = parser_for(language).parse(text.encode("utf-8", "surrogateescape")).root_node
    if root.has_error:
        return None
    run = _Run(find)
    reader = run.get_or_make_reader(path, text, root)
    for node in walk_nodes(root):
        if node.type in SCRIPT_FUNCTIONS:
            reader.read_function(node, _taints_of_framework_parameters(path, node), 0)
    return sorted(run.flows.values(), key=lambda f: (f.path, f.line, f.rule))


def _function_name(node: Node) -> str:
    named = node.child_by_field_name("name")
    parent = node.parent
    if named is None and parent is not None and parent.type == "variable_declarator":
        named = parent.child_by_field_name("name")
    return node_text(named)


def _list_parameters(node: Node) -> list[Node]:
    listed = node.child_by_field_name("parameters") or node.child_by_field_name("parameter")
    if listed is None:
        return []
    return (
        [listed]
        if listed.type == "identifier"
        else [c for c in listed.named_children if c.type != "comment"]
    )


def _names_bound_by_pattern(node: Node | None) -> list[str]:
    if node is None:
        return []
    kinds = {"identifier", "shorthand_property_identifier_pattern"}
    pattern = node.child_by_field_name("pattern") or node
    return [node_text(n) for n in walk_nodes(pattern) if n.type in kinds]


def _pair_parameters_with_values(parameter: Node, value: Node) -> Iterator[tuple[list[str], Node]]:
    """The names of a parameter with what is given for them; an object that is taken apart, key by key."""
    pattern = parameter.child_by_field_name("pattern") or parameter
    if pattern.type != "object_pattern" or value.type != "object":
        yield _names_bound_by_pattern(parameter), value
        return
    given = {
        node_text(p.child_by_field_name("key") or p): p.child_by_field_name("value") or p
        for p in value.named_children
    }
    for part in pattern.named_children:
        key = node_text(part.child_by_field_name("key") or part.child_by_field_name("left") or part)
        if key in given:
            yield _names_bound_by_pattern(part.child_by_field_name("value") or part), given[key]


_ANSWER_NAMES = frozenset({"res", "response", "reply", "req", "request", "next", "h"})


def _taints_of_framework_parameters(path: str, node: Node) -> dict[str, _Taint]:
    """The parameters that a framework fills from the request: decorated ones, and parts of a request taken apart."""
    table, _ = _load_models()
    found: dict[str, _Taint] = {}
    parameters = _list_parameters(node)
    beside = {n for p in parameters for n in _names_bound_by_pattern(p)[:1]} & _ANSWER_NAMES
    for parameter in parameters:
        steps = ((path, parameter.start_point[0] + 1),)
        pattern = parameter.child_by_field_name("pattern") or parameter
        marks = [
            node_text(c).lstrip("@").split("(")[0]
            for c in parameter.named_children
            if c.type == "decorator"
        ]
        if any(m in table["decorators"] for m in marks):
            found |= {name: _Taint(name, steps=steps) for name in _names_bound_by_pattern(pattern)}
        elif pattern.type == "object_pattern" and beside:
            for part in pattern.named_children:
                key = node_text(part.child_by_field_name("key") or part)
                if key in table["request_parts"]:
                    local = part.child_by_field_name("value") or part
                    found |= {
                        name: _Taint(key, steps=steps) for name in _names_bound_by_pattern(local)
                    }
    return found


@dataclass
class _Run:
    """What the readers of all files share."""

    find: FindFunction | None
    flows: dict[tuple[str, str, int, str], ScriptFlow] = field(default_factory=dict)
    readers: dict[str, _FlowReader] = field(default_factory=dict)
    results: dict[tuple[object, ...], _Taint | None] = field(default_factory=dict)
    steps: int = 0

    def get_or_make_reader(self, path: str, text: str, root: Node) -> _FlowReader:
        if path not in self.readers:
            while root.parent is not None:
                root = root.parent
            reader = self.readers[path] = _FlowReader(self, path, text)
            for node in walk_nodes(root):
                if node.type in SCRIPT_FUNCTIONS and (name := _function_name(node)):
                    reader.functions[name] = None if name in reader.functions else node
                elif node.type == "variable_declarator":
                    reader.add_promisified_name(node)
        return self.readers[path]


@dataclass
class _FlowReader:
    run: _Run
    path: str
    text: str
    functions: dict[str, Node | None] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    depth: int = 0
    returned: list[_Taint] = field(default_factory=list)

    def add_promisified_name(self, node: Node) -> None:
        """`const run = promisify(exec)` is another name of `exec`."""
        value = node.child_by_field_name("value")
        text = _SPACE.sub("", node_text(value)[:_MAX_TEXT])
        if made := re.fullmatch(r"(?:\w+\.)?promisify\(([\w.]+)\)", text):
            self.aliases[node_text(node.child_by_field_name("name"))] = made[1]

    def read_function(self, node: Node, values: dict[str, _Taint], depth: int) -> _Taint | None:
        """Follow the values through a function's body; what it returns. Nested functions see what they close over."""
        requests = {n for p in _list_parameters(node) for n in _names_bound_by_pattern(p)} & {
            *_load_models()[0]["request_names"]
        }
        body = node.child_by_field_name("body")
        if body is None or not (requests or values):
            return None
        before = self.depth, self.returned
        self.depth, self.returned = depth, []
        env = dict(values)
        self._read_node(body, env, frozenset(requests))
        if body.type != "statement_block" and (
            taint := self._taint_of_expression(body, env, frozenset(requests))
        ):
            self.returned.append(taint)
        result = next(iter(self.returned), None)
        self.depth, self.returned = before
        return result

    def _read_node(self, node: Node, env: dict[str, _Taint], requests: frozenset[str]) -> None:
        self.run.steps += 1
        if self.run.steps > _MAX_STEPS:
            return
        returned = self.returned
        if node.type in SCRIPT_FUNCTIONS:
            inner = {n for p in _list_parameters(node) for n in _names_bound_by_pattern(p)}
            env = {k: v for k, v in env.items() if k not in inner}
            requests -= (
                inner & requests if inner & {*_load_models()[0]["request_names"]} else frozenset()
            )
            self.returned = []
        elif node.type in {
            "if_statement",
            "ternary_expression",
            "switch_statement",
            "while_statement",
        }:
            self._trust_names_in_condition(node, env)
        for child in node.named_children:
            self._read_node(child, env, requests)
        self.returned = returned
        if node.type == "variable_declarator":
            self._bind_names(
                node.child_by_field_name("name"), node.child_by_field_name("value"), env, requests
            )
        elif node.type in {"assignment_expression", "augmented_assignment_expression"}:
            self._read_assignment(node, env, requests)
        elif node.type == "return_statement":
            taint = next(
                (
                    t
                    for c in node.named_children
                    if (t := self._taint_of_expression(c, env, requests))
                ),
                None,
            )
            if taint:
                self.returned.append(taint)
        elif node.type in {"call_expression", "new_expression"}:
            self._read_call(node, env, requests)
            self._trust_arguments_of_check(node, env)

    def _read_assignment(
        self, node: Node, env: dict[str, _Taint], requests: frozenset[str]
    ) -> None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or left.type != "identifier":
            return
        augmented, name = node.type.startswith("augmented"), node_text(left)
        kept = env.get(name) if augmented else None
        begun = env.get(f"~{name}") if augmented else None
        self._bind_names(left, right, env, requests)
        if kept:
            env.setdefault(name, kept)
        elif begun and (taint := env.get(name)):
            env[name] = replace(taint, text=begun.text + taint.text)
        elif begun:
            env[f"~{name}"] = begun

    def _trust_arguments_of_check(self, node: Node, env: dict[str, _Taint]) -> None:
        """What a call that stands alone and is named as a check was given is trusted from there on."""
        above = (
            node.parent.parent
            if node.parent is not None and node.parent.type == "await_expression"
            else node.parent
        )
        name = node_text(node.child_by_field_name("function"))
        if (
            above is None
            or above.type != "expression_statement"
            or not re.search(_load_models()[0]["trusted_names"], name)
        ):
            return
        for given in walk_nodes(node):
            if given.type == "identifier":
                env.pop(node_text(given), None)

    def _trust_names_in_condition(self, node: Node, env: dict[str, _Taint]) -> None:
        condition = node.child_by_field_name("condition") or node.child_by_field_name("value")
        condition_text = node_text(condition)
        if node.type == "switch_statement" or re.search(
            _load_models()[0]["checks"], condition_text[:2000]
        ):
            names = {*re.findall(r"[A-Za-z_$][\w$]*", condition_text)}
            for name in [
                n
                for n, taint in env.items()
                if n in names
                or (taint.source and _SPACE.sub("", taint.source) in _SPACE.sub("", condition_text))
            ]:
                env.pop(name)
            env |= {
                f"={_SPACE.sub('', x)}": _Taint("")
                for x in re.findall(r"(?<![\w$])[\w$]++(?:\.[\w$]++)+", condition_text)
            }

    def _bind_names(
        self,
        name: Node | None,
        value: Node | None,
        env: dict[str, _Taint],
        requests: frozenset[str],
    ) -> None:
        taint = self._taint_of_expression(value, env, requests)
        taken_apart = name is not None and name.type == "object_pattern"
        for bound in _names_bound_by_pattern(name):
            env.pop(bound, None)
            env.pop(f"~{bound}", None)
            if (taint and taint.text != _URL) or (taint and not taken_apart):
                env[bound] = taint
            elif not taint and value is not None and value.type in {"string", "template_string"}:
                env[f"~{bound}"] = _Taint("", node_text(value)[:_MAX_TEXT])
            elif taint and bound == "searchParams":
                env[bound] = replace(taint, text="")

    def _taint_of_expression(
        self, node: Node | None, env: dict[str, _Taint], requests: frozenset[str]
    ) -> _Taint | None:
        if node is None:
            return None
        self.run.steps += 1
        kind = node.type
        if kind in {"identifier", "shorthand_property_identifier"}:
            return env.get(node_text(node))
        if follow := {
            "call_expression": self._taint_of_result,
            "new_expression": self._taint_of_result,
            "member_expression": self._taint_of_member,
            "subscript_expression": self._taint_of_member,
        }.get(kind):
            return follow(node, env, requests)
        joins = node_text(node.child_by_field_name("operator")) in {"+", "||", "??"}
        if kind not in _JOINING and not (kind == "binary_expression" and joins):
            return None
        parts = node.named_children[1:] if kind == "ternary_expression" else node.named_children
        found = next((t for c in parts if (t := self._taint_of_expression(c, env, requests))), None)
        if found and kind in {"template_string", "binary_expression"}:
            leaves = [x for c in parts for x in (c, *c.named_children)]
            words = [node_text(x) for x in leaves if x.type == "identifier"]
            inner = "".join(t.text for w in words for n in (w, f"~{w}") if (t := env.get(n)))
            return replace(found, text=(node_text(node) + inner)[:4000])
        return found

    def _taint_of_member(
        self, node: Node, env: dict[str, _Taint], requests: frozenset[str]
    ) -> _Taint | None:
        text = _SPACE.sub("", node_text(node)[:_MAX_TEXT]).replace("?.", ".")
        if f"={text}" in env:
            return None
        root = text.split(".", maxsplit=1)[0]
        if root in requests and re.fullmatch(_load_models()[0]["sources"], text):
            return self._make_source(node, text)
        name = node_text(node.child_by_field_name("property"))
        found = self._taint_of_expression(node.child_by_field_name("object"), env, requests)
        if name == "length" or found is None:
            return None
        if found.text == _URL:
            return replace(found, text="") if name == "searchParams" else None
        return found

    def _make_source(self, node: Node, expression: str) -> _Taint:
        return _Taint(expression, steps=((self.path, node.start_point[0] + 1),))

    def _taint_of_address(self, node: Node, requests: frozenset[str]) -> _Taint | None:
        """`new URL(request.url)`, whose parameters the sender chose."""
        given = node.child_by_field_name("arguments")
        text = _SPACE.sub("", node_text(given)[:_MAX_TEXT])
        found = re.match(r"\((\w+)\.(?:req\.)?url\b", text)
        if (
            node_text(node.child_by_field_name("constructor")) == "URL"
            and found
            and found[1] in requests
        ):
            return replace(self._make_source(node, text[1:-1]), text=_URL)
        return None

    def _taint_of_result(
        self, node: Node, env: dict[str, _Taint], requests: frozenset[str]
    ) -> _Taint | None:
        if node.type == "new_expression":
            return self._taint_of_address(node, requests)
        function, arguments = (
            node.child_by_field_name("function"),
            node.child_by_field_name("arguments"),
        )
        if function is None or arguments is None:
            return None
        callee = _SPACE.sub("", node_text(function)[:_MAX_TEXT])
        keeps = _load_models()[0]["keeps"]
        if callee in keeps:
            return next(
                (
                    t
                    for c in arguments.named_children
                    if (t := self._taint_of_expression(c, env, requests))
                ),
                None,
            )
        method = f".{callee.rpartition('.')[2]}"
        if method in keeps:
            return self._taint_of_expression(function.child_by_field_name("object"), env, requests)
        root = callee.split(".", maxsplit=1)[0]
        if root in requests and re.fullmatch(
            r"\w+(?:\.req)?\.(?:param|query|header|get|json|text)", callee
        ):
            return self._make_source(node, callee)
        return self._follow_call(node, callee, env, requests)

    def _follow_call(
        self, node: Node, callee: str, env: dict[str, _Taint], requests: frozenset[str]
    ) -> _Taint | None:
        """Read the function that a call means with its arguments; what it returns of them."""
        arguments = node.child_by_field_name("arguments")
        given = [c for c in arguments.named_children if c.type != "comment"] if arguments else []
        if self.depth >= _MAX_CALLS or not any(
            self._taint_of_expression(c, env, requests) for c in given
        ):
            return None
        receiver, _, name = callee.rpartition(".")
        mine = receiver in {"", "this"}
        own = self.functions.get(name) if mine else None
        target = ScriptFunction(self.path, self.text, own) if own is not None else None
        if target is None and self.run.find is not None and not (mine and name in self.functions):
            target = self.run.find(self.path, receiver, name)
        if target is None:
            return None
        here = (self.path, node.start_point[0] + 1)
        passed = {
            n: replace(t, steps=(*t.steps, here))
            for parameter, value in zip(_list_parameters(target.node), given, strict=False)
            for names, part in _pair_parameters_with_values(parameter, value)
            if (t := self._taint_of_expression(part, env, requests)) and t.text != _URL
            for n in names
        }
        key = (
            target.path,
            target.node.start_byte,
            *((n, t.source, t.text) for n, t in passed.items()),
        )
        if key not in self.run.results:
            self.run.results[key] = None
            reader = self.run.get_or_make_reader(target.path, target.text, target.node)
            self.run.results[key] = reader.read_function(target.node, passed, self.depth + 1)
        result = self.run.results[key]
        return None if re.search(_load_models()[0]["trusted_names"], name) else result

    def _read_call(self, node: Node, env: dict[str, _Taint], requests: frozenset[str]) -> None:
        function = node.child_by_field_name("function") or node.child_by_field_name("constructor")
        arguments = node.child_by_field_name("arguments")
        if function is None or arguments is None or arguments.type != "arguments":
            return
        given = [c for c in arguments.named_children if c.type != "comment"]
        callee = _SPACE.sub("", node_text(function)[:_MAX_TEXT])
        callee = self.aliases.get(callee, callee)
        taints = [self._taint_of_expression(c, env, requests) for c in given]
        for sink in _load_models()[1]:
            at = sink.argument if sink.argument >= 0 else len(given) - 1
            taint = taints[at] if 0 <= at < len(given) else None
            if (
                taint
                and taint.text != _URL
                and sink.calls.fullmatch(callee)
                and self._is_harmful(sink, given, at, taint)
            ):
                line, end = node.start_point[0] + 1, node.end_point[0] + 1
                shown = f"`{callee[-80:]}`"
                flow = ScriptFlow(
                    sink.rule,
                    self.path,
                    line,
                    min(end, line + 5),
                    taint.source[:80],
                    shown,
                    sink.mend,
                    taint.steps,
                )
                self.run.flows.setdefault((sink.rule, self.path, line, callee), flow)
        self._follow_call(node, callee, env, requests)

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
