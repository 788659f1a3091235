"""The rules of other analyzers whose findings are reported: `trusted_rules.toml`, which explains its columns."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from regreen.domain.models import Severity


@dataclass(frozen=True, slots=True)
class AnalyzerRule:
    """A row of the table."""

    severity: Severity
    confidence: float
    why: str
    cwe: int = 0


def _load_rules() -> dict[str, Mapping[str, AnalyzerRule]]:
    table = resources.files("regreen.reviewers.analyzers").joinpath("trusted_rules.toml")
    return {
        tool: {code: AnalyzerRule(**row) for code, row in rows.items()}
        for tool, rows in tomllib.loads(table.read_text("utf-8")).items()
    }


_RULES = _load_rules()
RUFF_RULES, PYRIGHT_RULES = _RULES["ruff"], _RULES["basedpyright"]
RUFF_SECURITY_RULES = _RULES["ruff_security"]

_BUILT_IN = r"(?:Literal\[[^\]\n]{1,80}\]|int|str|bytes|float|bool|list\[[^\"\n]{1,80}\]|dict\[[^\"\n]{1,80}\]|set\[[^\"\n]{1,80}\])"
_PLAIN_TYPES = re.compile(rf'not supported for types "{_BUILT_IN}" and "{_BUILT_IN}"')
_VALUE_RULES = frozenset({"reportOperatorIssue", "reportAttributeAccessIssue", "reportIndexIssue"})


def rule_confidence(rule: AnalyzerRule, code: str, message: str) -> float:
    """A rule's confidence, raised where its words leave no doubt of the types: a coroutine, or built-in ones."""
    if code == "reportGeneralTypeIssues" and "cannot appear after fields with default" in message:
        return 0.95
    if code in _VALUE_RULES and "CoroutineType[" in message:
        return 0.92
    if code == "reportOperatorIssue" and _PLAIN_TYPES.search(message):
        return 0.86
    return rule.confidence
