"""Credential formats that come from a published rule set: conversion of its rules, and what the table made of them finds."""

from __future__ import annotations

import random
import re
import string
import tomllib
from importlib import resources
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

from regreen.secrets.credential_detection import find_secrets
from regreen.secrets.redaction import redact_secrets
from scripts.make_credential_formats import MAX_REPEATS, convert_pattern, make_row

TABLE = resources.files("regreen.secrets").joinpath("published_formats.toml").read_text("utf-8")
PUBLISHED: dict[str, dict[str, Any]] = tomllib.loads(TABLE)
_PRINTABLE = [chr(code) for code in range(33, 127)]


def draw_match(pattern: str, rng: random.Random) -> str:
    """A random text that a pattern matches, with few of the repetitions that it leaves open."""
    return "".join(_draw(parser.parse(pattern), rng))


def _draw(tree: Any, rng: random.Random) -> list[str]:
    drawn: list[str] = []
    for op, value in tree:
        match op:
            case ops.LITERAL:
                drawn.append(chr(value))
            case ops.ANY:
                drawn.append(rng.choice(string.ascii_letters))
            case ops.IN:
                letters = "".join(_PRINTABLE)
                inside = re.compile(_as_class(value), re.ASCII)
                drawn.append(rng.choice([letter for letter in letters if inside.match(letter)]))
            case ops.MAX_REPEAT:
                least, most, body = value
                for _ in range(rng.randint(least, min(most, least + 10))):
                    drawn += _draw(body, rng)
            case ops.SUBPATTERN:
                drawn += _draw(value[3], rng)
            case ops.BRANCH:
                drawn += _draw(rng.choice(value[1]), rng)
            case ops.AT:
                pass
            case _:
                raise AssertionError(op)
    return drawn


def _as_class(items: Any) -> str:
    made = ""
    for op, value in items:
        match op:
            case ops.LITERAL:
                made += re.escape(chr(value))
            case ops.RANGE:
                made += f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
            case ops.CATEGORY:
                made += {ops.CATEGORY_DIGIT: r"\d", ops.CATEGORY_WORD: r"\w"}[value]
            case _:
                raise AssertionError(op)
    return f"[{made}]"


def test_a_credential_of_any_published_format_is_found_named_and_hidden() -> None:
    missed, shown = [], []
    for rule, row in PUBLISHED.items():
        rng = random.Random(rule)
        values = [draw_match(row["pattern"], rng) for _ in range(10)]
        found = [find_secrets(f'x = "{value}"', "src/app.py") for value in values]
        if sum(any(s.confidence >= 0.8 and s.has_known_format for s in each) for each in found) < 9:
            missed.append(rule)
        if any(value in redact_secrets(f"sent {value} away") for value in values):
            shown.append(rule)
    assert missed == []
    assert shown == []
    assert len(PUBLISHED) > 100


def test_no_published_pattern_repeats_without_a_limit_and_all_contain_a_hint() -> None:
    for rule, row in PUBLISHED.items():
        assert not re.search(r"(?<!\\)[*+](?![^\[]*\])|,\}", row["pattern"]), rule
        value = draw_match(row["pattern"], random.Random(rule)).lower()
        assert any(hint in value for hint in row["hints"]), rule


def test_a_test_key_of_a_published_rule_keeps_the_name_and_confidence_of_our_row() -> None:
    value = draw_match(PUBLISHED["easypost-test-api-token"]["pattern"], random.Random(1))
    (found,) = find_secrets(f'x = "{value}"', "src/app.py")
    assert (found.kind, found.confidence) == ("test key", 0.82)


def test_the_table_carries_the_licence_of_its_rules() -> None:
    assert "MIT License" in TABLE
    assert "The above copyright notice and this permission notice shall be included" in TABLE


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (r"a(?i)b|c", r"a(?i:b)|(?i:c)"),
        (r"(x(?i)[a-z]{2})y", r"(?:x(?i:[a-z]{2}))y"),
        (r"(?P<alg>q)+[+*]\+", rf"(?:q){{1,{MAX_REPEATS}}}[+*]\+"),
        (r"[[:alnum:]]{14,}\z", rf"[A-Za-z0-9]{{14,{MAX_REPEATS}}}\Z"),
        (r"b*?", f"b{{0,{MAX_REPEATS}}}"),
    ],
)
def test_a_pattern_of_go_becomes_one_of_python_with_limits(theirs: str, ours: str) -> None:
    assert convert_pattern(theirs) == ours
    re.compile(ours)


_END = r"""(?:[\x60'"\s;]|\\[nr]|$)"""
_NAMED = r"""[\w.-]{0,50}?(?:acme)(?:[ \t\w.-]{0,20})[\s'"]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}"""


@pytest.mark.parametrize(
    ("regex", "pattern"),
    [
        (rf"\b(acme_[a-z]{{30}}){_END}", "acme_[a-z]{30}"),
        # behind the product's name, but known by sight
        (rf"(?i){_NAMED}(NRX-[a-z0-9]{{27}}){_END}", "(?i:NRX-[a-z0-9]{27})"),
        # one alternative of two is anything
        (r"\b(acm_[a-f]{40}|[a-f0-9]{40})\b", "acm_[a-f]{40}"),
    ],
)
def test_a_rule_becomes_the_pattern_of_the_value(regex: str, pattern: str) -> None:
    row = make_row({"id": "acme-api-key", "description": "Found an Acme API Key.", "regex": regex})
    assert not isinstance(row, str)
    assert (row.kind, row.pattern) == ("Acme API key", pattern)


def test_a_rule_whose_value_could_be_anything_becomes_none() -> None:
    rule = {"id": "acme-id", "description": "", "regex": rf"(?i){_NAMED}([a-z0-9]{{32}})"}
    assert make_row(rule) == "no fixed text identifies the value"
