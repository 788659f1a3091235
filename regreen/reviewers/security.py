"""Security of Python: untrusted values that reach a place where they do harm, and ruff's security rules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from regreen.codebase.sources import sources
from regreen.codebase.taint.analyse import Analysis, analyse
from regreen.codebase.taint.program import Program
from regreen.codebase.taint.rules import RULES, confidence
from regreen.codebase.taint.run import Flow
from regreen.codebase.taint.talking import may_begin
from regreen.models import Evidence, Unread
from regreen.reviewers import ruff
from regreen.reviewers.context import Claim, Report, ReviewContext
from regreen.reviewers.fresh import Hit, fresh
from regreen.reviewers.ruff_security import RULES as RUFF_RULES

_MOST_CALLERS = 40
_SECONDS = 60.0
_TOOL = "regreen taint analysis"


@dataclass(frozen=True, slots=True)
class Security:
    """Taint analysis over what the change touches, with ruff's S rules as a floor."""

    name: str = "security"

    def run(self, context: ReviewContext) -> Report:
        """Report the flows and misuses that this change brings."""
        changed = _python(context)
        if not changed:
            return Report()
        context.say(f"following untrusted values through {len(changed)} files")
        around = _callers(context, changed)
        head = analyse(_program(context, head=True), [*changed, *around], _SECONDS)
        claims = [_claim(flow, context) for flow in _new_flows(context, head, around)]
        claims += _from_ruff(context, changed)
        unread = tuple(
            Unread(path, why) for path, why in sorted(head.unread.items()) if path in changed
        )
        return Report(
            tuple(claims),
            read=f"taint analysis and ruff's S rules on {len(changed) - len(unread)} Python files",
            unread=unread,
        )


def _python(context: ReviewContext) -> dict[str, str]:
    return {
        file.path: text
        for file in context.files
        if file.path.endswith(".py")
        and file.status != "deleted"
        and (text := context.after(file.path)) is not None
    }


def _program(context: ReviewContext, *, head: bool) -> Program:
    tree = context.tree if head else context.base_tree
    paths = {
        entry.path for entry in tree if entry.path.endswith(".py") and entry.mode.startswith("100")
    }
    if not tree and head:
        paths = {file.path for file in context.change.files if file.path.endswith(".py")}
    return Program(context.after if head else context.before, frozenset(paths))


def _callers(context: ReviewContext, changed: Mapping[str, str]) -> list[str]:
    """Files that import a changed module and where untrusted values enter: a sink that was added is reached from here."""
    if context.git is None:
        return []
    names = {
        path.removesuffix(".py").removesuffix("/__init__").rpartition("/")[2] for path in changed
    }
    words = [re.escape(name.encode()) for name in sorted(names) if name.isidentifier()]
    if not words:
        return []
    importing = re.compile(
        rb"^[ \t]*(?:from|import)\b[^\n]*\b(?:" + b"|".join(words) + rb")\b", re.MULTILINE
    )

    def wanted(path: str) -> bool:
        return path.endswith(".py") and path not in changed and not _is_test(path)

    found = [
        path
        for path, data in sources(context.git, context.head, wanted)
        if importing.search(data) and may_begin(data)
    ]
    near = {path.rpartition("/")[0] for path in changed}
    return sorted(found, key=lambda path: (path.rpartition("/")[0] not in near, path))[
        :_MOST_CALLERS
    ]


def _new_flows(context: ReviewContext, head: Analysis, around: list[str]) -> list[Flow]:
    """Flows with a step on an added line that the merge base did not have."""
    touching = {
        _place(flow, context): flow for flow in head.flows if _place(flow, context) is not None
    }
    hits = [_hit(flow, place) for place, flow in touching.items() if place is not None]
    by_hit = {
        (hit.rule, hit.path, hit.line): flow
        for hit, flow in zip(hits, touching.values(), strict=True)
    }

    def base_hits() -> list[Hit]:
        before = [file.old_path for file in context.change.files if file.old_path.endswith(".py")]
        base = analyse(_program(context, head=False), [*before, *around], _SECONDS)
        return [_hit(flow, (flow.rule, flow.path, flow.line)) for flow in base.flows]

    new = fresh(context, hits, base_hits)
    return [by_hit[hit.rule, hit.path, hit.line] for hit in new]


def _place(flow: Flow, context: ReviewContext) -> tuple[str, str, int] | None:
    """Where to say it: the sink if the change touches it, else the last step of the way that it does."""
    for step in reversed(flow.steps):
        file = context.change.by_path.get(step.path)
        if file is not None and file.touches(step.line, step.line):
            return (flow.rule, step.path, step.line)
    file = context.change.by_path.get(flow.path)
    if file is not None and file.touches(flow.line, flow.end_line):
        return (flow.rule, flow.path, flow.line)
    return None


def _hit(flow: Flow, place: tuple[str, str, int]) -> Hit:
    rule, path, line = place
    end = flow.end_line if (path, line) == (flow.path, flow.line) else line
    return Hit(rule, path, line, end, flow.sink)


def _claim(flow: Flow, context: ReviewContext) -> Claim:
    rule = RULES[flow.rule]
    place = _place(flow, context) or (flow.rule, flow.path, flow.line)
    _, path, line = place
    end = flow.end_line if (path, line) == (flow.path, flow.line) else line
    origin = f"{flow.origin_what} reaches {flow.sink}" if flow.origin != "code" else flow.sink
    body = f"{rule.harm} {rule.mend} (CWE-{rule.cwe})"
    if len(flow.steps) > 1:
        way = [f"{n}. `{s.path}:{s.line}` {s.what}" for n, s in enumerate(flow.steps, 1)]
        body += "\n\nFrom source to sink:\n" + "\n".join(way)
    shown = "\n".join((context.after(path) or "").split("\n")[line - 1 : end])[:500]
    return Claim(
        "security",
        f"taint/{flow.rule}",
        rule.severity,
        path,
        line,
        end,
        title=f"{rule.title}: {origin}",
        body=body,
        confidence=_prior(flow),
        evidence=(Evidence("analyzer", shown, _TOOL, head=origin, base="not reported"),),
    )


def _prior(flow: Flow) -> float:
    prior = confidence(flow.rule, flow.origin, certain=flow.certain)
    # Tests and examples do dangerous things on purpose.
    return prior * 0.5 if _is_test(flow.path) else prior


def _is_test(path: str) -> bool:
    parts = path.lower().split("/")
    return any(
        part in {"test", "tests", "testing", "examples", "example", "docs", "benchmarks"}
        for part in parts[:-1]
    ) or (parts[-1].startswith(("test_", "conftest")) or parts[-1].endswith("_test.py"))


def _from_ruff(context: ReviewContext, changed: Mapping[str, str]) -> list[Claim]:
    found = [hit for hit in ruff.hits(changed, tuple(RUFF_RULES)) if hit.rule != ruff.SYNTAX]
    new = fresh(context, found, lambda: ruff.hits(_before(context), tuple(RUFF_RULES)))
    return [_ruff_claim(hit) for hit in _without_syntax(new)]


def _without_syntax(hits: Iterable[Hit]) -> list[Hit]:
    return [hit for hit in hits if hit.rule in RUFF_RULES]


def _before(context: ReviewContext) -> dict[str, str]:
    return {
        file.old_path: text
        for file in context.change.files
        if file.old_path.endswith(".py") and (text := context.before(file.old_path)) is not None
    }


def _ruff_claim(hit: Hit) -> Claim:
    rule = RUFF_RULES[hit.rule]
    sure = rule.confidence * (0.3 if _is_test(hit.path) else 1.0)
    message = hit.message.split("\n", maxsplit=1)[0].strip().rstrip(".")
    shown = Evidence("analyzer", message, f"ruff ({hit.rule})", head=message, base="not reported")
    return Claim(
        "security", f"ruff/{hit.rule}", rule.severity, hit.path, hit.line, hit.end_line,
        title=message, body=f"{rule.why} (CWE-{rule.cwe})", confidence=sure, evidence=(shown,),
    )  # fmt: skip
