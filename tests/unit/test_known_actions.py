"""The table of known actions: every row is well-formed, and says what the code that reads it understands."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from importlib import resources
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from regreen.actions.known.lookup import ACTION_FUNCTIONS, KnownActionRow, find_action_meaning

TABLE: dict[str, list[dict[str, Any]]] = tomllib.loads(
    resources.files("regreen.actions.known").joinpath("known_actions.toml").read_text()
)
ROWS = [{"kind": kind, **row} for kind, rows in TABLE.items() for row in rows]


def _row(said: dict[str, Any]) -> KnownActionRow:
    KnownActionRow(**said)  # refuses what is no field
    return TypeAdapter(KnownActionRow).validate_python(said)


def _shown(row: dict[str, Any]) -> str:
    return " ".join(row.get("actions", ["?"]))[:60]


def _none(_: str) -> None:
    return None


@pytest.mark.parametrize("said", ROWS, ids=_shown)
def test_a_row_has_the_fields_and_the_types_that_its_kind_has(said: dict[str, Any]) -> None:
    row = _row(said)
    common = {"kind", "actions"}
    allowed = {"why"} | ({"outputs"} if row.kind == "skip" else set())
    if row.kind == "setup":
        allowed = {"does", "inputs"} if row.does else {"why", "install", "tool", "run", "asks"}
        allowed |= {"package", "version"} if row.install else set()
    assert set(said) <= common | allowed
    assert row.actions
    assert row.why or row.tool or row.does, "people are told what it is"
    assert bool(row.install) == bool(row.tool)
    assert not row.version or row.install == "pip", "only pip is told a version"
    assert row.run or not row.asks


def test_a_row_with_an_unknown_field_or_a_wrong_type_is_refused() -> None:
    for wrong in ({"whi": "a slip"}, {"asks": "yes, please"}, {"install": "brew"}):
        with pytest.raises((ValidationError, TypeError)):
            _row({"kind": "setup", "actions": ["a/b"], **wrong})


def test_every_action_is_named_once_and_as_it_is_looked_up() -> None:
    names = Counter(name for row in ROWS for name in row["actions"])
    assert [name for name, times in names.items() if times > 1] == []
    assert [
        name for name in names if not re.fullmatch(r"[a-z0-9_.-]+(?:/[a-z0-9_.-]+)+", name)
    ] == []


def test_rows_name_functions_that_there_are_and_every_function_is_named() -> None:
    assert {row["does"] for row in ROWS if "does" in row} == set(ACTION_FUNCTIONS)


@pytest.mark.parametrize("said", [row for row in ROWS if row["kind"] == "setup"], ids=_shown)
def test_what_a_row_takes_from_inputs_is_written_as_it_is_read(said: dict[str, Any]) -> None:
    for text in (said.get("run", ""), *said.get("inputs", {}).values()):
        rest = re.sub(r"\{[\w-]+(?:(?:, | \+ )[\w-]+)*(?: \| [^{}]+)?\}", "", text)
        assert not set("{}") & set(rest), text


@pytest.mark.parametrize(
    ("uses", "inputs", "run"),
    [
        ("psf/black@stable", {}, "black --check --diff ."),
        ("psf/black@stable", {"src": "lib", "options": "--check"}, "black --check lib"),
        ("PyPA/hatch@install", {"version": "1.14.0"}, "'hatch==1.14.0'"),
        ("j178/prek-action@v1", {"extra-args": "a", "extra_args": "b"}, "prek a b"),
        ("pre-commit/action@v3", {"extra_args": "a", "extra-args": "b"}, "--color=always a"),
        ("creyd/prettier_action@v4", {"prettier_options": "--check\na"}, "/bin/prettier --check a"),
        ("oven-sh/setup-bun@v2", {"bun-version": "1.2.3", "version": "9"}, "bun@1.2.3"),
        ("dominikh/staticcheck-action@v1", {"args": "./cmd"}, "\nstaticcheck ./cmd"),
        ("bnjbvr/cargo-machete@main", {}, "\ncargo machete"),
        ("ruby/setup-ruby@v1", {}, "command -v ruby "),
    ],
)
def test_a_row_becomes_the_script_that_it_describes(
    uses: str, inputs: dict[str, str], run: str
) -> None:
    what = find_action_meaning(uses, inputs, _none)
    assert what.kind == "setup"
    assert run in what.run


def test_actions_that_are_left_out_or_cannot_be_had_say_why() -> None:
    left_out = find_action_meaning("tj-actions/changed-files@v45", {}, _none)
    assert (left_out.kind, left_out.outputs["any_changed"]) == ("skip", "true")
    assert find_action_meaning("azure/login@v2", {}, _none).why == "needs a credential"
    assert (
        find_action_meaning("nobody/knows@v1", {}, _none).why
        == "what this action does is not known here"
    )
