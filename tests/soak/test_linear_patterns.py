"""No pattern of the product can be made slow: four times the text costs at most six times the processor time."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.soak.pattern_attacks import Used, patterns_of, slow_among, slowest

pytestmark = pytest.mark.soak

_QUADRATIC = [
    r"\d+\.",
    r"(?m)^\s*name",
    r"[\w.-]+\.[\w.-]+\s",
    r"a.*b",
    r"\w++!",
    r"<!--.*?-->",
    r"\s+$",
    r"(?:\S+ )*nox",
    r"x\s*-?\s*:",
]
_WORSE = [r"(a+)+b", r"(?:a|aa)+b", r"(?:\w+\s?)*:", r"\w+\w+\w+!", r"(?:.*,)*;"]
_LINEAR = [
    r"abc",
    r"\d{1,40}\.",
    r"(?m)^[ \t]*name",
    r"(?<!\w)\w++!",
    r"^\s*name",
    r"[^\n]{0,200}b",
    r"gh[ps]_\w{36}",
    r"(?i)error|warning",
    r"\s{0,4}[:=]\s{0,4}",
]


@pytest.mark.parametrize("pattern", [*_QUADRATIC, *_WORSE])
def test_the_sweep_finds_a_slow_pattern(pattern: str) -> None:
    (found,) = slow_among([Used("here", re.compile(pattern))])
    assert found.ratio > 6


@pytest.mark.parametrize("pattern", _LINEAR)
def test_the_sweep_lets_a_linear_pattern_be(pattern: str) -> None:
    assert slowest(Used("here", re.compile(pattern))) is None


def test_a_pattern_that_is_only_matched_at_the_start_is_judged_so() -> None:
    assert slowest(Used("here", re.compile(r"\d+\."), anchored=frozenset({"match"}))) is None


def test_patterns_are_found_wherever_they_are() -> None:
    places = {used.place for used in patterns_of("regreen")}
    assert "regreen.secrets.redaction._NAMED_SECRET" in places  # a constant
    assert "regreen.adapters.git.tar_stream._LFS_POINTER" in places  # over bytes
    assert any(p.endswith(".CREDENTIAL_FORMATS") for p in places)  # in values of a table
    assert any(p.startswith("regreen.packages.manifests_and_locks.match:") for p in places)


def test_how_a_pattern_is_used_is_found_for_tables_variables_and_calls() -> None:
    anchored = {used.place.partition(":")[0]: used.anchored for used in patterns_of("regreen")}
    # the table's rows
    assert anchored["regreen.reviewers.analyzers.style._load_habit_statements"] == {"match"}
    # a function's variable
    assert anchored["regreen.reviewers.analyzers.correctness.compile"] == {"match"}
    assert anchored["regreen.fixers.recipes.tool_output._TYPE_IGNORE_COMMENT"] == set()


_MATCHED_IN_FULL = {
    "setup_command._FETCH_COMMANDS": "rows of `SetupInputs.patterns`, which `setup_guard` matches in full",
    "setup_command._NODE_INPUTS": "as above",
    "setup_inputs.compile": "as above",
    "requirement_file._INCLUDABLE_FILES": "as above",
    "requirement_file.REQUIREMENT_URL": "its two uses",
}
"""Patterns whose use the sweep cannot follow, and what uses them."""

_CUT_SHORT = {
    "regreen.taint.charset._PATTERN_PIECE": "every search is behind the comparison with `_MAX_PATTERN_LENGTH`",
    "regreen.languages.python.dependencies._REQUIREMENTS_PATH": "matched with paths, of at most some kilobytes",
}
"""Patterns that are slow on long texts, and why they see none."""


def _as_used(one: Used) -> Used:
    name = one.place.removeprefix("regreen.packages.").partition(":")[0]
    return replace(one, anchored=frozenset({"fullmatch"})) if name in _MATCHED_IN_FULL else one


@pytest.mark.timeout(3600)
def test_every_pattern_runs_in_linear_time() -> None:
    used = [_as_used(one) for one in patterns_of("regreen")]
    assert len(used) > 900
    slow = slow_among(one for one in used if one.place not in _CUT_SHORT)
    assert [str(one) for one in slow] == []
