"""Security of JavaScript and TypeScript: values of a web request that reach a place where they do harm, and weak cryptography."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
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
    new_diagnostics,
)
from regreen.reviewers.context import Claim, ReviewContext, ReviewerReport
from regreen.taint.analysis import TAINT_RULES, flow_confidence
from regreen.taint.script.flows import ScriptFlow, find_script_flows

if TYPE_CHECKING:
    from tree_sitter import Node

_SPACE = re.compile(r"\s+")
_MAX_TEXT = 2000


class ScriptSecurity:
    """Follows values from the request of a web framework through each changed file, and looks for weak cryptography."""

    name = "data flow of scripts"

    def run(self, context: ReviewContext) -> ReviewerReport:
        """Report the flows that this change brings."""
        files = [
            f
            for f in context.files
            if is_script(f.path)
            and f.status != "deleted"
            and not (is_test(f.path) or is_example(f.path) or f.path.endswith(".d.ts"))
        ]
        by_hit: dict[Diagnostic, ScriptFlow] = {}
        unread: list[UnreadFile] = []
        for file in files:
            text = context.head_text(file.path)
            flows = find_script_flows(file.path, text) if text is not None else None
            if flows is None:
                unread.append(UnreadFile(file.path, "does not parse, or is nested too deeply"))
            for flow in flows or ():
                starts = file.touches_lines(flow.source_line, flow.source_line)
                ends = file.touches_lines(flow.line, flow.end_line)
                first, last = (flow.source_line,) * 2 if starts and not ends else (flow.line, flow.end_line)  # fmt: skip
                by_hit[Diagnostic(flow.rule, file.path, first, last, flow.sink)] = flow

        def base_hits() -> list[Diagnostic]:
            texts = {
                f.old_path: text
                for f in context.change.files
                if is_script(f.old_path) and (text := context.base_text(f.old_path)) is not None
            }
            return [
                Diagnostic(flow.rule, path, flow.line, flow.end_line, flow.sink)
                for path, text in texts.items()
                for flow in find_script_flows(path, text) or ()
            ]

        claims = [
            _make_claim(h, by_hit[h], context)
            for h in new_diagnostics(context, list(by_hit), base_hits)
        ]
        misuses = {
            hit: row
            for f in files
            for hit, row in find_misuses(f.path, context.head_text(f.path) or "")
        }

        def base_misuses() -> list[Diagnostic]:
            old = [f.old_path for f in context.change.files if is_script(f.old_path)]
            return [hit for p in old for hit, _ in find_misuses(p, context.base_text(p) or "")]

        claims += [
            _make_misuse_claim(h, misuses[h], context)
            for h in new_diagnostics(context, list(misuses), base_misuses)
        ]
        read = f"untrusted values followed within {len(files) - len(unread)} JavaScript and TypeScript files"  # fmt: skip
        return ReviewerReport(
            tuple(claims),
            read=read if files else "",
            unread=tuple(unread),
        )


def _make_claim(hit: Diagnostic, flow: ScriptFlow, context: ReviewContext) -> Claim:
    rule = TAINT_RULES[flow.rule]
    origin = f"`{flow.source}` of the request reaches {flow.sink}"
    rows = (context.head_text(hit.path) or "").split("\n")
    way = f"\n\n1. `{hit.path}:{flow.source_line}` `{flow.source}`\n2. `{hit.path}:{flow.line}` {flow.sink}"
    return make_analyzer_claim(
        f"taint/{flow.rule}",
        rule.severity,
        hit.path,
        (hit.line, hit.end_line),
        dimension="security",
        title=f"{rule.title}: {origin}",
        body=f"{rule.harm} {flow.mend} (CWE-{rule.cwe}){way}",
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


def find_misuses(path: str, text: str) -> Iterator[tuple[Diagnostic, _Misuse]]:
    """The places of a JavaScript or TypeScript file that the table describes."""
    language = language_of(path)
    if language is None or not text:
        return
    for node in walk_nodes(
        parser_for(language).parse(text.encode("utf-8", "surrogateescape")).root_node
    ):
        fields = {"call_expression": ("function", "arguments"), "pair": ("key", "value"), "assignment_expression": ("left", "right"), "variable_declarator": ("name", "value")}  # fmt: skip
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
    said = ""
    while outer is not None:
        if outer.type == "object":
            said += _squeeze(outer) + " "
        if inner.type in SCRIPT_FUNCTIONS:
            named = inner.child_by_field_name("name") or outer.child_by_field_name("name") or outer.child_by_field_name("key") or outer.child_by_field_name("left")  # fmt: skip
            return f"{said}{node_text(named)[:100]}"
        if outer.type in {"statement_block", "program", "class_body"}:
            said += node_text(inner)[:300] + " "
        inner, outer = outer, outer.parent
    return said


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
