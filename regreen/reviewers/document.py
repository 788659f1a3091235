"""The review as documents: JSON as in docs/interface.md, text for a terminal, Markdown, SARIF."""

from __future__ import annotations

import html
from collections import Counter
from dataclasses import asdict, replace
from typing import Any

from regreen import __version__
from regreen.domain.models import Evidence, Finding, Review, Severity
from regreen.environment.preparation import render_environment
from regreen.reviewers.summary import (
    WITHHELD_WORDS,
    describe_coverage,
    list_all_findings,
    list_over_budget,
    list_unreviewed,
)
from regreen.secrets import markdown_sanitizer


def make_document(review: Review) -> dict[str, Any]:
    """The JSON document; every string in it is valid Unicode."""
    data = asdict(review)
    data["withheld"] = [{**asdict(w.finding), "reason": w.reason} for w in review.withheld]
    cleaned = _clean_strings({"version": 1, **data})
    assert isinstance(cleaned, dict)  # noqa: S101 - what went in
    return cleaned


def format_text(review: Review) -> str:
    """The review for a terminal."""
    lines = [review.summary, "", f"Risk: {review.risk}. Scores:"]
    lines += [*(f"  {row}" for row in _score_lines(review)), ""]
    for finding in review.findings:
        lines += _finding_lines(finding)
    over = [
        f"over the limit of comments: {_finding_lines(f)[0]}"
        for f in list_over_budget(review.withheld)
    ]
    lines += [*over, ""] if over else []
    if review.coverage:
        lines.append(_coverage_line(review))
    lines += [f"withheld: {_count_withheld(review)}"] if review.withheld else []
    lines += [f"not reviewed: {_escape_newlines(n)}: {why}" for n, why in list_unreviewed(review)]
    return _replace_surrogates("\n".join(lines).rstrip() + "\n")


def format_markdown(review: Review) -> str:
    """The review as GitHub renders it; text by others cannot link, mention, refer, draw or hide."""
    lines = [
        *(
            row
            for p in review.summary.split("\n\n")
            for row in (markdown_sanitizer.escape_line(p, 2000), "")
        ),
        f"**Risk** {review.risk}",
        "",
        *(f"- {markdown_sanitizer.escape_line(row)}" for row in _score_lines(review)),
        "",
    ]
    for finding in review.findings:
        lines += [
            f"### {markdown_sanitizer.escape_line(finding.title)}",
            f"{markdown_sanitizer.code_span(f'{finding.path}:{_format_span(finding)}')} · {finding.severity} · {finding.dimension} · "
            f"{markdown_sanitizer.code_span(finding.rule)} · confidence {finding.confidence:.2f}"
            + (" · **blocking**" if finding.blocking else ""),
            "",
            markdown_sanitizer.sanitize_markdown(finding.body),
            "",
        ]
        lines += [row for e in finding.evidence for row in _format_evidence(e)]
        lines += _suggestion_block(finding)
    if review.coverage:
        lines += [markdown_sanitizer.escape_line(_coverage_line(review), 20_000), ""]
    lines += _format_details(
        "Withheld",
        [
            f"{markdown_sanitizer.code_span(f'{w.finding.path}:{w.finding.line}')} {markdown_sanitizer.escape_line(w.finding.title)} ({WITHHELD_WORDS[w.reason]})"
            for w in review.withheld
        ],
    )
    lines += _format_details(
        "Not reviewed",
        [
            f"{markdown_sanitizer.code_span(name)}: {markdown_sanitizer.escape_line(reason)}"
            for name, reason in list_unreviewed(review)
        ],
    )
    lines.append(render_environment(review.environment))
    return _replace_surrogates("\n".join(lines).rstrip() + "\n")


def _format_evidence(evidence: Evidence) -> list[str]:
    """The evidence of a finding: a command in a fold of its own, a statement in a line."""
    if evidence.is_statement:
        return [markdown_sanitizer.sanitize_markdown(evidence.excerpt), ""]
    title = markdown_sanitizer.to_plain_line(
        f"Evidence ({evidence.kind}): {_format_run(evidence)}"
    ).removesuffix(": ")
    if not evidence.excerpt.strip():
        return [markdown_sanitizer.escape_line(title), ""]
    language = "python" if evidence.kind == "test" else ""
    block = markdown_sanitizer.code_block(evidence.excerpt, language)
    shown = html.escape(title.rstrip(":"), quote=False)
    return [f"<details><summary>{shown}</summary>", "", block, "", "</details>", ""]


def _format_run(evidence: Evidence) -> str:
    """The command, and its result on both sides."""
    parts = [evidence.command or ""]
    parts += [f"on this change: {evidence.head}"] if evidence.head else []
    parts += [f"before it: {evidence.base}"] if evidence.base else []
    return "; ".join(s for s in parts if s)


def fence_block(content: str, info: str = "") -> str:
    """A fenced block whose fence is longer than any run of backticks inside."""
    longest = run = 0
    for letter in content:
        run = run + 1 if letter == "`" else 0
        longest = max(longest, run)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{info}\n{content}\n{ticks}"


def _finding_lines(finding: Finding) -> list[str]:
    mark = " [blocking]" if finding.blocking else ""
    lines = [
        f"{_escape_newlines(finding.path)}:{_format_span(finding)}: {finding.severity} {finding.title} "
        f"({finding.rule}, {finding.confidence:.2f}){mark}",
        *(f"    {row}" for row in finding.body.split("\n")),
        *(f"    {row}" for e in finding.evidence if (row := _format_run(e))),
    ]
    if finding.suggestion is not None:
        lines += ["    suggestion:", *(f"    | {row}" for row in finding.suggestion.split("\n"))]
    return [*lines, ""]


def _suggestion_block(finding: Finding) -> list[str]:
    if finding.suggestion is None:
        return []
    return [fence_block(finding.suggestion, "suggestion"), ""]


def _format_details(title: str, rows: list[str]) -> list[str]:
    if not rows:
        return []
    shown = [f"- {row}" for row in rows[:100]]
    more = [f"- and {len(rows) - 100} more"] if len(rows) > 100 else []
    return [
        f"<details><summary>{title} ({len(rows)})</summary>",
        "",
        *shown,
        *more,
        "",
        "</details>",
        "",
    ]


def _coverage_line(review: Review) -> str:
    assert review.coverage  # noqa: S101 - the callers have looked
    report = review.coverage
    where = "; ".join(
        f"{u.path}:{markdown_sanitizer.format_line_ranges(u.lines, len(u.lines))}"
        for u in report.uncovered
    )
    return describe_coverage(report, review.tests) + (f" Not covered: {where}" if where else "")


def _escape_newlines(path: str) -> str:
    return path.replace("\n", "\\n")


def _format_span(finding: Finding) -> str:
    if finding.start_line == finding.line:
        return str(finding.line)
    return f"{finding.start_line}-{finding.line}"


def _score_lines(review: Review) -> list[str]:
    """Each score with what it is made of."""
    return [
        f"{d} {'not scored' if v is None else v}: {review.score_notes.get(d, '')}".rstrip(": ")
        for d, v in review.scores.items()
    ]


def _count_withheld(review: Review) -> str:
    counts = Counter(entry.reason for entry in review.withheld)
    return ", ".join(f"{n} {WITHHELD_WORDS[reason]}" for reason, n in counts.items())


def _clean_strings(value: Any) -> Any:
    if isinstance(value, str):
        return _replace_surrogates(value)
    if isinstance(value, dict):
        return {_clean_strings(k): _clean_strings(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_clean_strings(v) for v in value]
    return value


def _replace_surrogates(value: str) -> str:
    """Replace bytes that are no text (lone surrogates internally) by U+FFFD."""
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


# The review as SARIF 2.1.0 for GitHub's code scanning.

_LEVEL_BY_SEVERITY: dict[Severity, str] = {
    "critical": "error",
    "high": "error",
    "medium": "warning",
    "low": "note",
}
_SCORE_BY_SEVERITY: dict[Severity, str] = {
    "critical": "9.5",
    "high": "8.0",
    "medium": "5.0",
    "low": "2.0",
}
_SCHEMA_URL = "https://json.schemastore.org/sarif-2.1.0.json"
MAX_RESULTS = 5000
"""What GitHub shows of one run."""


def make_sarif(review: Review) -> dict[str, Any]:
    """One run with every finding, those over the budget of comments too. LEFT ones are left out: SARIF knows only the head."""
    review = replace(review, findings=list_all_findings(review))
    clean = make_document(review)
    posted = [f for f in review.findings if f.side == "RIGHT"][:MAX_RESULTS]
    texts = {f["fingerprint"]: f for f in clean["findings"]}
    return {
        "$schema": _SCHEMA_URL,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "Regreen",
                        "semanticVersion": __version__,
                        "rules": _make_rules(posted, texts),
                    }
                },
                "columnKind": "utf16CodeUnits",
                "invocations": [
                    {
                        "executionSuccessful": True,
                        "toolExecutionNotifications": [
                            {
                                "level": "note",
                                "message": {
                                    "text": _replace_surrogates(f"not reviewed: {name}: {reason}")
                                },
                            }
                            for name, reason in list_unreviewed(review)
                        ],
                    }
                ],
                "results": [_make_result(f, texts[f.fingerprint]) for f in posted],
            }
        ],
    }


def _make_rules(findings: list[Finding], texts: dict[str, Any]) -> list[dict[str, Any]]:
    first = {f.rule: f for f in reversed(findings)}
    return [
        {
            "id": rule,
            "shortDescription": {"text": _escape_links(texts[f.fingerprint]["title"])[:1000]},
            "defaultConfiguration": {"level": _LEVEL_BY_SEVERITY[f.severity]},
            "properties": {"tags": [f.dimension]}
            | (
                {"security-severity": _SCORE_BY_SEVERITY[f.severity]}
                if f.dimension == "security"
                else {}
            ),
        }
        for rule, f in sorted(first.items())
    ]


def _escape_links(message: str) -> str:
    """A message without links: viewers of SARIF make one of `[words](address)`."""
    rows = (
        markdown_sanitizer.to_plain_line(row, 4000).replace("](", "]\u200b(")
        for row in message.split("\n")
    )
    return "\n".join(rows)


def _make_result(finding: Finding, text: dict[str, Any]) -> dict[str, Any]:
    from urllib.parse import quote

    return {
        "ruleId": finding.rule,
        "level": _LEVEL_BY_SEVERITY[finding.severity],
        "message": {"text": _escape_links(f"{text['title']}\n\n{text['body']}".strip())},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": quote(text["path"]), "uriBaseId": "%SRCROOT%"},
                    "region": {"startLine": finding.start_line, "endLine": finding.line},
                }
            }
        ],
        "partialFingerprints": {"regreen/v1": finding.fingerprint},
        "properties": {"confidence": finding.confidence, "blocking": finding.blocking},
    }
