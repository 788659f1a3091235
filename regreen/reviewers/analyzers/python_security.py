"""Security of Python: untrusted values that reach a place where they do harm, and ruff's security rules."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from regreen.code.paths import is_example, is_test
from regreen.code.python_calls import is_module, module_stem
from regreen.code.symbols import Definition, read_outline, read_sources
from regreen.domain.models import UnreadFile
from regreen.languages.python.imports import ModuleMap, imported_files
from regreen.reviewers.analyzers import bundled_checkers
from regreen.reviewers.analyzers.baseline import (
    RUFF_SECURITY_RULES,
    Diagnostic,
    make_analyzer_claim,
    replace_single_match,
    select_new_diagnostics,
)
from regreen.reviewers.analyzers.correctness import base_python_texts, head_python_texts
from regreen.reviewers.context import Claim, ReviewContext, ReviewerReport
from regreen.secrets.markdown_sanitizer import count_noun
from regreen.taint.analysis import TAINT_RULES, TaintAnalysis, analyse_program, flow_confidence
from regreen.taint.interpreter import TaintFlow
from regreen.taint.program import Program, may_begin

_MAX_CALLERS = 40
_MAX_CALLER_STEPS = 3
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
        # tests and examples do dangerous things on purpose: nothing that is followed there is ever sure enough to be said
        followed = [*(path for path in changed if not _is_demonstration(path)), *around]
        spans = _find_affected_functions(context, followed)
        _read_imported_files(context, followed)
        head = analyse_program(
            _make_program(context, head=True),
            followed,
            _ANALYSIS_SECONDS,
            lambda path, line, begins: any(
                first <= line <= last and (begins or touched)
                for first, last, touched in spans[path]
            ),
        )
        claims = [_make_claim(flow, context) for flow in _find_new_flows(context, head, around)]
        claims += _find_ruff_claims(context, changed)
        unread = tuple(
            UnreadFile(path, why) for path, why in sorted(head.unread.items()) if path in changed
        )
        count = count_noun(len(changed) - len(unread), "Python file")
        is_read = len(unread) < len(changed)
        return ReviewerReport(
            tuple(claims),
            read=f"taint analysis and ruff's S rules on {count}" if is_read else "",
            unread=unread,
        )


def _read_imported_files(context: ReviewContext, paths: Sequence[str]) -> None:
    """Read what these files import, and what that imports, at once: the analysis asks for one file at a time."""
    modules = ModuleMap.from_paths(e.path for e in context.head_tree if is_module(e.path))
    wave: Collection[str] = paths
    context.read_files(wave)
    for _ in range(2):
        texts = ((path, context.head_text(path) or "") for path in wave)
        wave = {found for path, text in texts for found in imported_files(text, path, modules)}
        context.read_files(wave)


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


_WORD = re.compile(r"[A-Za-z_]\w*")
_STORED_NAME = re.compile(
    r"(?:\.[ \t]*|^)([A-Za-z_]\w*)[ \t]*(?::[^=\n]{1,80})?=(?!=)|[\"']([A-Za-z_]\w{2,40})[\"']"
)
"""What a line sets for code elsewhere: an attribute, a name of the module, or a value under a key."""


def _find_affected_functions(
    context: ReviewContext, paths: Sequence[str]
) -> dict[str, list[tuple[int, int, bool]]]:
    """By file, the lines of the functions that lead to the change by any name, and whether it touches them.

    A flow that the change brings has a step on an added line: its walk begins in that function, or in one that names it,
    its class, or what it stores.
    """
    units: list[tuple[str, Definition, str, set[str]]] = []
    names: set[str] = set()
    for path in paths:
        text = context.head_text(path) or ""
        rows = text.split("\n")
        file = context.change.by_path.get(path)
        for number in file.added_lines if file else ():
            names |= {
                n for found in _STORED_NAME.findall(rows[number - 1][:1000]) for n in found if n
            }
        for definition in read_outline(path, text.encode("utf-8", "surrogateescape")).definitions:
            if definition.kind == "constant":
                continue
            is_class = definition.kind == "class"
            body = rows[definition.start - 1 : definition.start + 2 if is_class else definition.end]
            words = set(_WORD.findall("\n".join(body))) - {definition.short_name}
            units.append((path, definition, _called_name(definition), words))
            if not is_class and file and file.touches_lines(definition.start, definition.end):
                names |= {definition.short_name, _called_name(definition)}
    for _ in range(_MAX_CALLER_STEPS):
        names |= {called for _, _, called, words in units if not words.isdisjoint(names)}
    spans: dict[str, list[tuple[int, int, bool]]] = {path: [] for path in paths}
    for path, definition, called, words in units:
        if definition.kind != "class" and (called in names or not words.isdisjoint(names)):
            file = context.change.by_path.get(path)
            touched = file is not None and file.touches_lines(definition.start, definition.end)
            spans[path].append((definition.start, definition.end, touched))
    return spans


def _called_name(definition: Definition) -> str:
    """The name by which code elsewhere leads to a definition: the class of a special method."""
    owner, _, name = definition.name.rpartition(".")
    return owner.rpartition(".")[2] if owner and name.startswith("__") else name


def _find_new_flows(
    context: ReviewContext, head: TaintAnalysis, around: list[str]
) -> list[TaintFlow]:
    """Flows with a step on an added line that the merge base did not have."""
    touching = {
        _commentable_place(flow, context): flow
        for flow in head.flows
        if _commentable_place(flow, context) is not None
    }

    @cache
    def base_flows() -> Sequence[TaintFlow]:
        before = [file.old_path for file in context.change.files if is_module(file.old_path)]
        return analyse_program(
            _make_program(context, head=False), [*before, *around], _ANALYSIS_SECONDS
        ).flows

    if any(flow.origin == "code" for flow in touching.values()):
        removed = {
            (file.old_path, line) for file in context.change.files for line in file.removed_lines
        }
        gone = [flow for flow in base_flows() if (flow.path, flow.line) in removed]
        for place, flow in list(touching.items()):
            if flow.origin != "code":
                continue
            # a misuse whose line was edited, or moved as it is, is not new
            stays = (one for one in gone if _is_same_misuse(one, flow, context))
            if (same := next(stays, None)) is not None:
                gone.remove(same)
                del touching[place]
    hits = [_flow_diagnostic(flow, place) for place, flow in touching.items() if place is not None]
    by_hit = {
        (hit.rule, hit.path, hit.line): flow
        for hit, flow in zip(hits, touching.values(), strict=True)
    }
    new = select_new_diagnostics(
        context,
        hits,
        lambda: [_flow_diagnostic(f, (f.rule, f.path, f.line)) for f in base_flows()],
    )
    return [by_hit[hit.rule, hit.path, hit.line] for hit in new]


def _is_same_misuse(before: TaintFlow, after: TaintFlow, context: ReviewContext) -> bool:
    """Whether a misuse stands in the same file as before, or in another one with its line as it was."""
    if (before.rule, before.sink) != (after.rule, after.sink):
        return False
    file = context.change.by_path.get(after.path)
    if before.path == (file.old_path if file is not None else after.path):
        return True
    was, now = (
        (text or "").split("\n")[line - 1 : line]
        for text, line in (
            (context.base_text(before.path), before.line),
            (context.head_text(after.path), after.line),
        )
    )
    return bool(was) and [line.strip() for line in was] == [line.strip() for line in now]


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
    return prior * 0.5 if _is_demonstration(flow.path) else prior


def _is_demonstration(path: str) -> bool:
    return is_test(path) or is_example(path)


def _find_ruff_claims(context: ReviewContext, changed: Mapping[str, str]) -> list[Claim]:
    rules = tuple(RUFF_SECURITY_RULES)
    found = [h for h in bundled_checkers.run_ruff(changed, rules) if h.rule in RUFF_SECURITY_RULES]
    new = select_new_diagnostics(
        context, found, lambda: bundled_checkers.run_ruff(base_python_texts(context), rules)
    )
    return [_make_ruff_claim(hit, changed[hit.path].split("\n")) for hit in new]


def _make_ruff_claim(hit: Diagnostic, rows: Sequence[str]) -> Claim:
    rule = RUFF_SECURITY_RULES[hit.rule]
    sure = rule.confidence * (0.3 if _is_demonstration(hit.path) else 1.0)
    message = hit.message.split("\n", maxsplit=1)[0].strip().rstrip(".")
    return make_analyzer_claim(
        f"ruff/{hit.rule}",
        rule.severity,
        hit.path,
        (hit.line, hit.end_line),
        dimension="security",
        title=message,
        body=f"{rule.why} (CWE-{rule.cwe})",
        confidence=sure,
        excerpt=message,
        source=f"ruff ({hit.rule})",
        base="not reported",
        suggestion=replace_single_match(rows[hit.line - 1 : hit.end_line], rule.mend),
    )
