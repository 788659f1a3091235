"""What models cost and what they take: `model_prices.toml`, and the operator's own price."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib import resources

from regreen.domain.errors import UserError


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """US dollars per million tokens."""

    input: float
    output: float
    cache_read: float
    cache_write: float

    def __mul__(self, factor: float) -> ModelPrice:
        every = (self.input, self.output, self.cache_read, self.cache_write)
        return ModelPrice(*(value * factor for value in every))


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model of the table: its price at the global endpoint, and the options that it takes."""

    price: ModelPrice
    effort: bool
    strict: bool


@dataclass(frozen=True, slots=True)
class ModelTable:
    """The table, with the day for which it was true."""

    date: date
    regional_factor: float
    strict_providers: frozenset[str]
    models: dict[str, ListedModel]


@cache
def load_table() -> ModelTable:
    """The models whose prices are known."""
    text = resources.files(__package__).joinpath("model_prices.toml").read_text("utf-8")
    data = tomllib.loads(text)
    models = {
        row["name"]: ListedModel(
            ModelPrice(row["input"], row["output"], row["cache_read"], row["cache_write"]),
            row.get("effort", False),
            row.get("strict", False),
        )
        for row in data["models"]
    }
    strict = frozenset(data["strict_providers"])
    return ModelTable(data["date"], data["regional_factor"], strict, models)


def find_listed_model(model: str) -> ListedModel | None:
    """The table's row for a model by any provider's name for it; None if there is none."""
    found = re.search(
        r"(?:^|[./])(claude-[a-z]+-\d(?:-\d)?)(?:$|[@:]|-(?:\d{8}|v\d|latest))", model
    )
    return load_table().models.get(found[1]) if found is not None else None


def parse_price(text: str) -> ModelPrice:
    """A price as INPUT,OUTPUT in US dollars per million tokens; reading a cache costs a tenth, writing it a quarter more.

    Raises:
        UserError: it is not two numbers of at least 0.
    """
    number = r"\d{1,6}(?:\.\d{1,6})?"
    if (found := re.fullmatch(rf"\s*({number})\s*,\s*({number})\s*", text)) is None:
        message = f"REGREEN_MODEL_PRICE {text[:40]!r}: write INPUT,OUTPUT in dollars per million tokens, such as 3,15 (0,0: free)"
        raise UserError(message)
    read, written = float(found[1]), float(found[2])
    return ModelPrice(read, written, read / 10, read * 1.25)
