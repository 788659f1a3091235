"""Security of JavaScript and TypeScript: values of a web request that reach a place where they do harm, and weak cryptography."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from regreen.code.file_languages import language_of, parser_for
from regreen.code.paths import is_example, is_test
from regreen.code.symbols import SCRIPT_FUNCTIONS, node_text, walk_nodes
from regreen.domain.models import Severity, UnreadFile
from regreen.languages.script import is_script
from regreen.reviewers.analyzers.baseline import (
    Diagnostic,
    make_analyzer_claim,
    select_new_diagnostics,
)
from regreen.reviewers.analyzers.script_names import ScriptProgram, is_read_script
from regreen.reviewers.context import Claim, ReviewContext, ReviewerReport
from regreen.secrets.markdown_sanitizer import count_noun
from regreen.taint.analysis import TAINT_RULES, flow_confidence
from regreen.taint.script.flows import ScriptFlow, ScriptFunction, find_script_flows

if TYPE_CHECKING:
    from tree_sitter import Node

_SPACE = re.compile(r"\s+")
_MAX_HANDLERS = 40
_MAY_HANDLE = re.compile(r"\b(?:req|request|ctx|context|c)\b|@(?:Query|Body|Param|Headers|Req)\b")
_MAY_HARM = re.compile(
    r"query|exec|spawn|eval|Function|readFile|writeFile|Stream|unlink|redirect|send|write|fetch|axios|got|prepare|raw|Raw|rm|open|get"
)
_MAX_TEXT = 2000


class ScriptSecurity:
    """Follows values from the request of a web framework through each changed file, and looks for weak cryptography."""

    name = "data flow of scripts"

    def run(self, context: ReviewContext) -> ReviewerReport:
        """Report the flows and misuses that this change brings."""
        files = [f.path for f in context.files if f.status != "deleted" and _is_followed(f.path)]
        if not files:
            return ReviewerReport()
        texts = {p: text for p in files if (text := context.head_text(p)) is not None}
        program = ScriptProgram(context, context.head) if context.git else None
        by_hit: dict[Diagnostic, ScriptFlow] = {}
        unread: list[UnreadFile] = []
        for path in [*files, *(_find_handlers(program, files) if program else ())]:
            text = texts.get(path) if path in texts or program is None else program.texts.get(path)
            flows = _find_flows(path, text, program) if text is not None else None
            if flows is None and path in files:
                unread.append(UnreadFile(path, "does not parse, or is nested too deeply"))
            by_hit |= {hit: flow for flow in flows or () if (hit := _place_flow(flow, context))}

        def base_hits() -> list[Diagnostic]:
            before = ScriptProgram(context, context.merge_base)
            old = [f.old_path for f in context.change.files if is_script(f.old_path)]
            paths = [*old, *_find_handlers(before, old)]
            flows = [
                x
                for p in paths
                if (text := before.texts.get(p))
                for x in _find_flows(p, text, before) or ()
            ]
            return [
                Diagnostic(f.rule, *place, place[1], f.sink)
                for f in flows
                for place in {(f.path, f.line), *f.steps}
            ]

        new = select_new_diagnostics(context, list(by_hit), base_hits)
        claims = [_make_claim(hit, by_hit[hit], context) for hit in new]
        misuses = {h: row for p, text in texts.items() for h, row in find_crypto_misuses(p, text)}

        def base_misuses() -> list[Diagnostic]:
            old = [f.old_path for f in context.change.files if is_script(f.old_path)]
            return [
                hit for p in old for hit, _ in find_crypto_misuses(p, context.base_text(p) or "")
            ]

        wrong = select_new_diagnostics(context, list(misuses), base_misuses)
        claims += [_make_misuse_claim(h, misuses[h], context) for h in wrong]
        read = f"untrusted values followed from {count_noun(len(files) - len(unread), 'JavaScript and TypeScript file')}"
        return ReviewerReport(tuple(claims), read=read, unread=tuple(unread))


def _is_followed(path: str) -> bool:
    return is_read_script(path) and not (is_test(path) or is_example(path))


def _find_handlers(program: ScriptProgram, files: Sequence[str]) -> list[str]:
    """Unchanged files that use a changed module, itself or by way of another, and may hold handlers of requests."""
    found = (
        program.find_importers(files, rounds=2)
        if _MAY_HARM.search("".join(program.texts.get(p, "") for p in files))
        else []
    )
    return [p for p in found if _is_followed(p) and _MAY_HANDLE.search(program.texts[p])][
        :_MAX_HANDLERS
    ]


def _find_flows(path: str, text: str, program: ScriptProgram | None) -> list[ScriptFlow] | None:
    def find_function(path: str, receiver: str, name: str) -> ScriptFunction | None:
        file = program.file(path) if program is not None else None
        if program is None or file is None:
            return None
        found = program.find_named(receiver, name, file, loose=True)
        return (
            ScriptFunction(found.path, program.texts[found.path], found.node)
            if found and _is_followed(found.path)
            else None
        )

    return find_script_flows(path, text, find_function if program else None)


def _place_flow(flow: ScriptFlow, context: ReviewContext) -> Diagnostic | None:
    """A flow at the first of its places that the change touches: the call that does harm, then the way to it backwards."""
    ends = (flow.path, flow.line, flow.end_line)
    for path, first, last in (ends, *((p, n, n) for p, n in reversed(flow.steps))):
        file = context.change.by_path.get(path)
        if file is not None and file.touches_lines(first, last):
            return Diagnostic(flow.rule, path, first, last, flow.sink)
    return None


def _make_claim(hit: Diagnostic, flow: ScriptFlow, context: ReviewContext) -> Claim:
    rule = TAINT_RULES[flow.rule]
    origin = f"`{flow.source}` of the request reaches {flow.sink}"
    rows = (context.head_text(hit.path) or "").split("\n")
    places = [*flow.steps, (flow.path, flow.line)]
    steps = [f"`{flow.source}`", *("handed on" for _ in places[1:-1]), flow.sink]
    way = "\n".join(
        f"{i}. `{p}:{n}` {w}" for i, ((p, n), w) in enumerate(zip(places, steps, strict=True), 1)
    )
    return make_analyzer_claim(
        f"taint/{flow.rule}",
        rule.severity,
        hit.path,
        (hit.line, hit.end_line),
        dimension="security",
        title=f"{rule.title}: {origin}",
        body=f"{rule.harm} {flow.mend} (CWE-{rule.cwe})\n\n{way}",
        confidence=flow_confidence(flow.rule, "web", certain=True),
        excerpt="\n".join(rows[hit.line - 1 : hit.end_line])[:500],
        source="regreen taint analysis",
        head=origin,
        base="not reported",
    )


# Weak cryptography and switched-off checks, by the table.


@dataclass(frozen=True, slots=True)
class _Misuse:
    rule: str
    severity: Severity
    confidence: float
    cwe: int
    title: str
    mend: str
    call: re.Pattern[str]
    set: re.Pattern[str]
    given: re.Pattern[str]
    near: re.Pattern[str]
    unless: re.Pattern[str]


@cache
def _load_misuses() -> tuple[_Misuse, ...]:
    table = resources.files("regreen.reviewers.analyzers").joinpath("script_security.toml")
    never, patterns = "(?!)", ("call", "set", "given", "near", "unless")
    rows = tomllib.loads(table.read_text("utf-8"))["misuses"]
    plain = {"call": never, "set": never, "given": "", "near": "", "unless": never}
    return tuple(
        _Misuse(**{**row, **{p: re.compile(row.get(p, plain[p])) for p in patterns}})
        for row in rows
    )


def find_crypto_misuses(path: str, text: str) -> Iterator[tuple[Diagnostic, _Misuse]]:
    """The places of a JavaScript or TypeScript file that the table describes."""
    language = language_of(path)
    if language is None or not text:
        return
    for node in walk_nodes(
        parser_for(language).parse(text.encode("utf-8", "surrogateescape")).root_node
    ):
        fields = {
            "call_expression": ("function", "arguments"),
            "pair": ("key", "value"),
            "assignment_expression": ("left", "right"),
            "variable_declarator": ("name", "value"),
        }
        if node.type not in fields:
            continue
        name, value = (_squeeze(node.child_by_field_name(f)) for f in fields[node.type])
        if node.type == "call_expression":
            value = value.removeprefix("(").removesuffix(")")
        for row in _load_misuses():
            named = row.call if node.type == "call_expression" else row.set
            if named.fullmatch(name.strip("'\"")) and row.given.search(value):
                around = _describe_surroundings(node)
                if row.near.search(around) and not row.unless.search(around):
                    line = node.start_point[0] + 1
                    yield Diagnostic(row.rule, path, line, line, row.title), row
                    break


def _squeeze(node: Node | None) -> str:
    return _SPACE.sub("", node_text(node)[:_MAX_TEXT])


def _describe_surroundings(node: Node) -> str:
    """The statement around, without the bodies of functions, and the name of the function around it."""
    inner, outer = node, node.parent
    text = ""
    while outer is not None:
        if outer.type == "object":
            text += _squeeze(outer) + " "
        if inner.type in SCRIPT_FUNCTIONS:
            named = (
                inner.child_by_field_name("name")
                or outer.child_by_field_name("name")
                or outer.child_by_field_name("key")
                or outer.child_by_field_name("left")
            )
            return f"{text}{node_text(named)[:100]}"
        if outer.type in {"statement_block", "program", "class_body"}:
            text += node_text(inner)[:300] + " "
        inner, outer = outer, outer.parent
    return text


def _make_misuse_claim(hit: Diagnostic, row: _Misuse, context: ReviewContext) -> Claim:
    rows = (context.head_text(hit.path) or "").split("\n")
    return make_analyzer_claim(
        f"script/{row.rule}",
        row.severity,
        hit.path,
        (hit.line, hit.end_line),
        dimension="security",
        title=row.title,
        body=f"{row.mend} (CWE-{row.cwe})",
        confidence=row.confidence,
        excerpt="\n".join(rows[hit.line - 1 : hit.end_line])[:500],
        source="table of weak cryptography",
        base="not reported",
    )
