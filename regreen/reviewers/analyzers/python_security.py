"""Security of Python: untrusted values that reach a place where they do harm, and ruff's security rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from regreen.code.paths import is_example, is_test
from regreen.code.python_calls import is_module, module_stem
from regreen.code.symbols import read_sources
from regreen.domain.models import UnreadFile
from regreen.reviewers.analyzers import bundled_checkers
from regreen.reviewers.analyzers.baseline import (
    RUFF_SECURITY_RULES,
    Diagnostic,
    make_analyzer_claim,
    new_diagnostics,
)
from regreen.reviewers.analyzers.correctness import base_python_texts, head_python_texts
from regreen.reviewers.context import Claim, ReviewContext, ReviewerReport
from regreen.taint.analysis import TAINT_RULES, TaintAnalysis, analyse_program, flow_confidence
from regreen.taint.interpreter import TaintFlow
from regreen.taint.program import Program, may_begin

_MAX_CALLERS = 40
_ANALYSIS_SECONDS = 15.0
_TOOL_NAME = "regreen taint analysis"


@dataclass(frozen=True, slots=True)
class PythonSecurity:
    """Taint analysis over what the change touches, with ruff's S rules as a floor."""

    name: str = "security"

    def run(self, context: ReviewContext) -> ReviewerReport:
        """Report the flows and misuses that this change brings."""
        texts = head_python_texts(context)
        changed = {path: text for path, text in texts.items() if is_module(path)}
        if not changed:
            return ReviewerReport()
        context.report_progress(f"following untrusted values through {len(changed)} files")
        around = _find_callers(context, changed)
        head = analyse_program(
            _make_program(context, head=True), [*changed, *around], _ANALYSIS_SECONDS
        )
        claims = [_make_claim(flow, context) for flow in _find_new_flows(context, head, around)]
        claims += _find_ruff_claims(context, changed)
        unread = tuple(
            UnreadFile(path, why) for path, why in sorted(head.unread.items()) if path in changed
        )
        return ReviewerReport(
            tuple(claims),
            read=f"taint analysis and ruff's S rules on {len(changed) - len(unread)} Python files",
            unread=unread,
        )


def _make_program(context: ReviewContext, *, head: bool) -> Program:
    tree = context.head_tree if head else context.base_tree
    paths = {entry.path for entry in tree if is_module(entry.path) and entry.mode.startswith("100")}
    if not tree and head:
        paths = {file.path for file in context.change.files if is_module(file.path)}
    return Program(context.head_text if head else context.base_text, frozenset(paths))


def _find_callers(context: ReviewContext, changed: Mapping[str, str]) -> list[str]:
    """Files that import a changed module and where untrusted values enter: a sink that was added is reached from here."""
    if context.git is None:
        return []
    names = {module_stem(path) for path in changed}
    words = [re.escape(name.encode()) for name in sorted(names) if name.isidentifier()]
    if not words:
        return []
    importing = re.compile(
        rb"^[ \t]*(?:from|import)\b[^\n]*\b(?:" + b"|".join(words) + rb")\b", re.MULTILINE
    )

    def wanted(path: str) -> bool:
        return is_module(path) and path not in changed and not _is_demonstration(path)

    found = [
        path
        for path, data in read_sources(context.git, context.head, wanted)
        if importing.search(data) and may_begin(data)
    ]
    near = {path.rpartition("/")[0] for path in changed}
    return sorted(found, key=lambda path: (path.rpartition("/")[0] not in near, path))[
        :_MAX_CALLERS
    ]


def _find_new_flows(
    context: ReviewContext, head: TaintAnalysis, around: list[str]
) -> list[TaintFlow]:
    """Flows with a step on an added line that the merge base did not have."""
    touching = {
        _commentable_place(flow, context): flow
        for flow in head.flows
        if _commentable_place(flow, context) is not None
    }
    hits = [_flow_diagnostic(flow, place) for place, flow in touching.items() if place is not None]
    by_hit = {
        (hit.rule, hit.path, hit.line): flow
        for hit, flow in zip(hits, touching.values(), strict=True)
    }

    def base_hits() -> list[Diagnostic]:
        before = [file.old_path for file in context.change.files if is_module(file.old_path)]
        base = analyse_program(
            _make_program(context, head=False), [*before, *around], _ANALYSIS_SECONDS
        )
        return [_flow_diagnostic(flow, (flow.rule, flow.path, flow.line)) for flow in base.flows]

    new = new_diagnostics(context, hits, base_hits)
    return [by_hit[hit.rule, hit.path, hit.line] for hit in new]


def _commentable_place(flow: TaintFlow, context: ReviewContext) -> tuple[str, str, int] | None:
    """The place for a comment: the last step of the flow that the change touches, else the sink."""
    for step in reversed(flow.steps):
        file = context.change.by_path.get(step.path)
        if file is not None and file.touches_lines(step.line, step.line):
            return (flow.rule, step.path, step.line)
    file = context.change.by_path.get(flow.path)
    if file is not None and file.touches_lines(flow.line, flow.end_line):
        return (flow.rule, flow.path, flow.line)
    return None


def _flow_diagnostic(flow: TaintFlow, place: tuple[str, str, int]) -> Diagnostic:
    rule, path, line = place
    end = flow.end_line if (path, line) == (flow.path, flow.line) else line
    return Diagnostic(rule, path, line, end, flow.sink)


def _make_claim(flow: TaintFlow, context: ReviewContext) -> Claim:
    rule = TAINT_RULES[flow.rule]
    place = _commentable_place(flow, context) or (flow.rule, flow.path, flow.line)
    _, path, line = place
    end = flow.end_line if (path, line) == (flow.path, flow.line) else line
    origin = f"{flow.origin_what} reaches {flow.sink}" if flow.origin != "code" else flow.sink
    body = f"{rule.harm} {rule.mend} (CWE-{rule.cwe})"
    if len(flow.steps) > 1:
        way = [f"{n}. `{s.path}:{s.line}` {s.what}" for n, s in enumerate(flow.steps, 1)]
        body += "\n\nFrom source to sink:\n" + "\n".join(way)
    shown = "\n".join((context.head_text(path) or "").split("\n")[line - 1 : end])[:500]
    return make_analyzer_claim(
        f"taint/{flow.rule}",
        rule.severity,
        path,
        (line, end),
        dimension="security",
        title=f"{rule.title}: {origin}",
        body=body,
        confidence=_flow_confidence(flow),
        excerpt=shown,
        source=_TOOL_NAME,
        head=origin,
        base="not reported",
    )


def _flow_confidence(flow: TaintFlow) -> float:
    prior = flow_confidence(flow.rule, flow.origin, certain=flow.certain)
    # Tests and examples do dangerous things on purpose.
    return prior * 0.5 if _is_demonstration(flow.path) else prior


def _is_demonstration(path: str) -> bool:
    return is_test(path) or is_example(path)


def _find_ruff_claims(context: ReviewContext, changed: Mapping[str, str]) -> list[Claim]:
    rules = tuple(RUFF_SECURITY_RULES)
    found = [h for h in bundled_checkers.run_ruff(changed, rules) if h.rule in RUFF_SECURITY_RULES]
    new = new_diagnostics(
        context, found, lambda: bundled_checkers.run_ruff(base_python_texts(context), rules)
    )
    return [_make_ruff_claim(hit) for hit in new]


def _make_ruff_claim(hit: Diagnostic) -> Claim:
    rule = RUFF_SECURITY_RULES[hit.rule]
    sure = rule.confidence * (0.3 if _is_demonstration(hit.path) else 1.0)
    message = hit.message.split("\n", maxsplit=1)[0].strip().rstrip(".")
    return make_analyzer_claim(
        f"ruff/{hit.rule}", rule.severity, hit.path, (hit.line, hit.end_line), dimension="security",
        title=message, body=f"{rule.why} (CWE-{rule.cwe})", confidence=sure,
        excerpt=message, source=f"ruff ({hit.rule})", base="not reported",
    )  # fmt: skip
