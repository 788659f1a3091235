"""Security of JavaScript and TypeScript: values of a web request that reach a place where they do harm."""

from __future__ import annotations

from regreen.code.paths import is_example, is_test
from regreen.domain.models import UnreadFile
from regreen.languages.script import is_script
from regreen.reviewers.analyzers.baseline import (
    Diagnostic,
    make_analyzer_claim,
    new_diagnostics,
)
from regreen.reviewers.context import Claim, ReviewContext, ReviewerReport
from regreen.taint.analysis import TAINT_RULES, flow_confidence
from regreen.taint.script.flows import ScriptFlow, find_script_flows


class ScriptSecurity:
    """Follows values from the request of a web framework through each changed file."""

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

        new = new_diagnostics(context, list(by_hit), base_hits)
        read = f"untrusted values followed within {len(files) - len(unread)} JavaScript and TypeScript files"  # fmt: skip
        return ReviewerReport(
            tuple(_make_claim(hit, by_hit[hit], context) for hit in new),
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
