"""What was said before: which findings are posted, which a person dismissed, how sure a rule has to be here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Known:
    """A model's finding that was said on this pull request, for whoever has to tell whether a new one is the same.

    `code` is what it stood on, white space taken out.
    """

    fingerprint: str
    path: str
    title: str
    code: str = ""


@dataclass(frozen=True)
class Memory:
    """The names (fingerprints and places) that count for one pull request, and what feedback made of the thresholds.

    `posted` are findings that stand on the pull request already, `dismissed` those a person turned down (they
    never return); `known` is what a model said among them. `thresholds` raises or lowers the confidence that a rule needs, by rule, then by its tool.
    """

    posted: frozenset[str] = frozenset()
    dismissed: frozenset[str] = frozenset()
    thresholds: Mapping[str, float] = field(default_factory=dict)
    known: tuple[Known, ...] = ()

    def threshold(self, rule: str, default: float) -> float:
        """The confidence that this rule's findings need in this repository."""
        return self.thresholds.get(
            rule, self.thresholds.get(rule.split("/", maxsplit=1)[0], default)
        )
