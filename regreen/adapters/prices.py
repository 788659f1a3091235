"""What models cost: the one table, for caps and the ledger."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens."""

    input: float
    output: float
    cache_read: float
    cache_write: float


# By the longest prefix of the model's name; https://platform.claude.com/docs/en/about-claude/pricing, 2026-11.
# A model that is not listed is priced as the dearest, so that a cap holds for it too.
PRICES = {
    "claude-haiku-5-5": Price(0.5, 2.5, 0.05, 0.625),
    "claude-haiku": Price(1.0, 5.0, 0.10, 1.25),
    "claude-sonnet-5": Price(2.0, 10.0, 0.20, 2.5),
    "claude-sonnet": Price(3.0, 15.0, 0.30, 3.75),
    "claude-opus-5-5": Price(4.0, 20.0, 0.40, 5.0),
    "claude-opus": Price(5.0, 25.0, 0.50, 6.25),
    "": Price(10.0, 50.0, 1.0, 12.5),
}


def price_of(model: str) -> Price:
    """What a model costs, by the longest known prefix of its name."""
    return PRICES[max((p for p in PRICES if model.startswith(p)), key=len)]
