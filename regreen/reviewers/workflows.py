"""Workflow files: what a change of them lets a stranger do."""

from __future__ import annotations

from dataclasses import dataclass

from regreen.codebase.diff import FileChange
from regreen.codebase.workflow_document import NotYaml, Risk, is_workflow
from regreen.codebase.workflow_risks import risks
from regreen.models import Evidence, Unread
from regreen.reviewers.context import Claim, Report, ReviewContext


@dataclass(frozen=True, slots=True)
class Workflows:
    """Compares the risks of each changed workflow before and after."""

    name: str = "workflows"

    def run(self, context: ReviewContext) -> Report:
        """Report the risks that this change brings."""
        claims: list[Claim] = []
        unread: list[Unread] = []
        files = [f for f in context.change.files if f.status != "deleted" and is_workflow(f.path)]
        for file in files:
            after = context.after(file.path)
            if after is None:
                unread.append(Unread(file.path, "workflow not readable"))
                continue
            try:
                found = risks(after)
            except NotYaml as error:
                unread.append(Unread(file.path, str(error)))
                continue
            known = _before(context, file)
            claims += [_claim(file, one) for one in found if (one.rule, one.key) not in known]
        return Report(
            tuple(claims),
            read=f"{len(files)} workflow files" if files else "",
            unread=tuple(unread),
        )


def _before(context: ReviewContext, file: FileChange) -> set[tuple[str, str]]:
    before = context.before(file.old_path) if file.status != "added" else None
    if before is None:
        return set()
    try:
        return {(one.rule, one.key) for one in risks(before)}
    except NotYaml:
        return set()


def _claim(file: FileChange, risk: Risk) -> Claim:
    line = next((number for number in risk.lines if file.touches(number, number)), risk.lines[0])
    return Claim(
        "security",
        f"workflows/{risk.rule}",
        risk.severity,
        file.path,
        line,
        line,
        title=risk.title,
        body=risk.body,
        confidence=risk.confidence,
        evidence=(
            Evidence(
                "analyzer", risk.title, "regreen workflows", head=risk.title, base="not there"
            ),
        ),
        code=f"{risk.rule} {risk.key}",
    )
