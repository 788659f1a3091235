"""The formats of credentials that have a recognisable form, with their checks.

They are the rows of `credential_formats.toml` and, for those that name a rule, of `published_formats.toml`.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import string
import tomllib
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase


@dataclass(frozen=True, slots=True)
class CredentialFormat:
    """A row of the tables, which explain its fields. `check` gives the confidence of a match, 0 to drop it."""

    kind: str
    hints: tuple[str, ...]
    expression: str
    confidence: float = 0.95
    check: Callable[[str], float] | None = None
    min_entropy: float = 0.0

    @property
    def pattern(self) -> re.Pattern[str]:
        """What finds it. Few of two hundred are ever asked for, and `re` keeps those."""
        return re.compile(self.expression)


FormatHints = Sequence[tuple[str, CredentialFormat]]
"""Formats, each with a text that stands in its matches; a format that has several hints stands there several times."""


def has_valid_crc32(token: str) -> bool:
    """Whether the last six letters are the checksum of the rest, as GitHub and npm write it."""
    body = token.rpartition("_")[2]
    number = zlib.crc32(body[:-6].encode())
    digits = ""
    while number:
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return digits.rjust(6, "0") == body[-6:]


def _score_checksum(token: str) -> float:
    """A wrong checksum is reported too: 36 random letters are hardly an accident."""
    return 0.99 if has_valid_crc32(token) else 0.89


def _decode_json_part(part: str) -> object:
    try:
        return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return None


def _score_jwt(token: str) -> float:
    """A JSON web token whose header and claims can be read, and that is not the well-known example."""
    header, claims = (_decode_json_part(part) for part in token.split(".")[:2])
    if not isinstance(header, dict) or "alg" not in header or str(header["alg"]).lower() == "none":
        return 0.0
    if not isinstance(claims, dict):
        return 0.0
    if str(claims.get("sub")) == "1234567890" or "example" in json.dumps(claims)[:2000].lower():
        return 0.0
    return 0.88


def _score_app_jwt(token: str) -> float:
    return (
        0.97
        if isinstance(_decode_json_part(token.split("_", 2)[2].partition(".")[0]), dict)
        else 0.85
    )


_CHECKS = {"checksum": _score_checksum, "jwt": _score_jwt, "app_jwt": _score_app_jwt}


def _load_formats() -> Iterator[CredentialFormat]:
    published = _read_table("published_formats.toml")
    for row in _read_table("credential_formats.toml")["formats"]:
        own = {key: row[key] for key in ("kind", "confidence") if key in row}
        if "check" in row:
            own["check"] = _CHECKS[row["check"]]
        if "pattern" in row:
            yield _make_format({"hints": [row["hint"]], "pattern": row["pattern"]} | own)
        for rule in row.get("rules", ()):
            yield _make_format(published.pop(rule) | own)
    for row in published.values():
        yield _make_format(row)


def _read_table(name: str) -> dict[str, Any]:
    table = resources.files("regreen.secrets").joinpath(name)
    return tomllib.loads(table.read_text("utf-8"))


def _make_format(row: dict[str, Any]) -> CredentialFormat:
    expression = rf"(?<![A-Za-z0-9_])(?:{row['pattern']})(?![A-Za-z0-9_])"
    hints = tuple(hint.lower() for hint in row["hints"])
    rest = {key: row[key] for key in row if key != "pattern"}
    return CredentialFormat(**rest | {"expression": expression, "hints": hints})


CREDENTIAL_FORMATS = tuple(_load_formats())
FORMATS_BY_HINT: FormatHints = [(hint, form) for form in CREDENTIAL_FORMATS for hint in form.hints]


def find_possible_formats(text: str, among: FormatHints = FORMATS_BY_HINT) -> FormatHints:
    """The formats whose hints stand in a text: for most texts very few."""
    lowered = text.lower()
    return [pair for pair in among if pair[0] in lowered]
