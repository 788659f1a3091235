"""The review as SARIF 2.1.0, as GitHub's code scanning takes it."""

from __future__ import annotations

from typing import Any

from regreen import __version__
from regreen.codebase import inert
from regreen.models import Finding, Review, Severity
from regreen.reviewers.document import document

_LEVEL: dict[Severity, str] = {
    "critical": "error",
    "high": "error",
    "medium": "warning",
    "low": "note",
}
_SCORE: dict[Severity, str] = {"critical": "9.5", "high": "8.0", "medium": "5.0", "low": "2.0"}
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
MOST_RESULTS = 5000
"""What GitHub shows of one run."""


def sarif(review: Review) -> dict[str, Any]:
    """One run with the findings that would be posted. LEFT findings are left out: SARIF knows the head alone."""
    clean = document(review)
    posted = [f for f in review.findings if f.side == "RIGHT"][:MOST_RESULTS]
    texts = {f["fingerprint"]: f for f in clean["findings"]}
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "Regreen",
                        "semanticVersion": __version__,
                        "rules": _rules(posted, texts),
                    }
                },
                "columnKind": "utf16CodeUnits",
                "invocations": [
                    {
                        "executionSuccessful": True,
                        "toolExecutionNotifications": [
                            {
                                "level": "note",
                                "message": {"text": f"not read: {u['path']}: {u['reason']}"},
                            }
                            for u in clean["not_reviewed"]
                        ]
                        + [
                            {
                                "level": "note",
                                "message": {"text": f"skipped: {s['reviewer']}: {s['reason']}"},
                            }
                            for s in clean["skipped"]
                        ],
                    }
                ],
                "results": [_result(f, texts[f.fingerprint]) for f in posted],
            }
        ],
    }


def _rules(findings: list[Finding], texts: dict[str, Any]) -> list[dict[str, Any]]:
    first = {f.rule: f for f in reversed(findings)}
    return [
        {
            "id": rule,
            "shortDescription": {"text": _told(texts[f.fingerprint]["title"])[:1000]},
            "defaultConfiguration": {"level": _LEVEL[f.severity]},
            "properties": {"tags": [f.dimension]}
            | ({"security-severity": _SCORE[f.severity]} if f.dimension == "security" else {}),
        }
        for rule, f in sorted(first.items())
    ]


def _told(message: str) -> str:
    """A message in which nothing is a link: those that show SARIF make one of `[words](address)`."""
    rows = (inert.flat(row, 4000).replace("](", "]\u200b(") for row in message.split("\n"))
    return "\n".join(rows)


def _result(finding: Finding, text: dict[str, Any]) -> dict[str, Any]:
    from urllib.parse import quote

    return {
        "ruleId": finding.rule,
        "level": _LEVEL[finding.severity],
        "message": {"text": _told(f"{text['title']}\n\n{text['body']}".strip())},
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
