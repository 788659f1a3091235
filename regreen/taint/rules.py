"""The kinds of harm that taint flows do: `models/rules.toml`, with a weakness of the CWE and a remedy for each."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib import resources

from regreen.domain.models import Severity


@dataclass(frozen=True, slots=True)
class TaintRule:
    """A row of the table."""

    cwe: int
    title: str
    severity: Severity
    confidence: float
    harm: str
    mend: str


_TABLE = tomllib.loads(
    resources.files("regreen.taint.models").joinpath("rules.toml").read_text("utf-8")
)
TAINT_RULES = {name: TaintRule(**row) for name, row in _TABLE["rules"].items()}
ORIGIN_CONFIDENCE: dict[str, float] = _TABLE["origin_confidence"]
DOUBTFUL_CONFIDENCE = 0.65


def flow_confidence(rule: str, origin: str, *, certain: bool) -> float:
    """The share of such flows that are real defects."""
    prior = TAINT_RULES[rule].confidence * ORIGIN_CONFIDENCE.get(origin, 0.5)
    return round(prior if certain else prior * DOUBTFUL_CONFIDENCE, 3)
