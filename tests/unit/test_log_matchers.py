"""The table of what tools say in logs: every row is well-formed and finds what its example shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

import pytest
from pydantic import TypeAdapter

from regreen.logs.problem_matchers import MatcherRow, MatchReader, load_rows
from tests.growth import growth

EVERY = [(table, row) for table, found in load_rows().items() for row, _ in found]
FINDING = [(table, row) for table, row in EVERY if row.collects or not (row.opens or row.skips)]
NAMES = [f"{table} {number} {row.tool}" for number, (table, row) in enumerate(FINDING)]


def _read(table: str, lines: list[str]) -> MatchReader:
    reader = MatchReader(table, "lint")
    for line in lines:
        reader.feed(line)
    return reader


@pytest.mark.parametrize(("table", "row"), FINDING, ids=NAMES)
def test_a_row_finds_the_failure_of_its_example_in_the_last_line(
    table: str, row: MatcherRow
) -> None:
    *before, last = row.example.splitlines()
    below: list[str] = []
    if row.collects:  # the last line is one of those that the failure is told in
        below = [last]
        *before, last = before
    assert _read(table, before).failures() == []
    (failure,) = _read(table, [*before, last, *below]).failures()
    assert failure.test == row.finds
    # the last lines of the log stand in for it, or, where a test has no more, its place
    assert failure.message or table == "environments" or (table == "tests" and not row.collects)
    pattern = next(pattern for one, pattern in load_rows()[table] if one == row)
    found = pattern.match(last)
    assert found is not None, "another row found it"
    own = row.kind or found.groupdict().get("code") or row.code
    if own and not row.collects:
        assert failure.kind == own


def test_rows_have_the_types_that_are_declared() -> None:
    for _, row in EVERY:
        TypeAdapter(MatcherRow).validate_python(asdict(row))


def test_what_a_row_waits_for_or_closes_is_opened_by_a_row_of_its_table() -> None:
    for table, row in EVERY:
        opened = {one.opens for one, _ in load_rows()[table]} | {""}
        assert {row.after, row.closes} <= opened, row


def test_only_rows_that_find_something_say_so() -> None:
    for _, row in EVERY:
        finds = row.collects or not (row.opens or row.skips)
        assert finds == bool(row.example) >= bool(row.finds), row
        assert finds or not (row.code or row.message or row.kind or row.test), row
        assert not row.gathers or row.opens, row
        assert not row.within or row.after, row


def test_a_finding_belongs_to_the_line_right_above_it() -> None:
    head, place = "F401 `os` imported but unused", " --> src/a.py:1:8"
    assert len(_read("lint", [head, place]).failures()) == 1
    assert _read("lint", [head, "", place]).failures() == []
    assert _read("lint", [place]).failures() == []


def test_findings_below_a_file_end_with_it() -> None:
    finding = "  3:7  error  'x' is never used  no-unused-vars"
    found = _read("lint", ["src/a.ts", finding, "", "src/b.ts", finding, "Done.", finding])
    assert [failure.path for failure in found.failures()] == ["src/a.ts", "src/b.ts"]
    assert _read("lint", ["src/a.ts", "F401 `os` imported", finding]).failures() == []
    warned = _read("lint", ["src/a.ts", finding.replace("error", "warning")])
    assert warned.failures() == []


def test_every_file_of_a_diff_would_be_reformatted_once() -> None:
    diff = ["+++ b/src/a.py\t2026-01-01", "+++ src/b.py"]
    one = _read("lint", [*diff, "2 files would be reformatted", "2 files would be reformatted"])
    assert [failure.path for failure in one.failures()] == ["src/a.py", "src/b.py"]
    many = _read("lint", [f"+++ b/{number}.py" for number in range(9_000)])
    many.feed("9000 files would be reformatted")
    assert len(many.failures()) == 201, "a log cannot make it remember more"


def test_a_warning_takes_its_heading_with_it() -> None:
    heading = "src/a.ts:3:7 lint/style/useConst ━━━━━━━━━━"
    assert _read("web", [heading, "  ! Only a warning.", "  × Nobody's."]).failures() == []


@pytest.mark.parametrize(
    ("table", "before", "head", "repeated", "tail"),
    [
        ("builds", [], "a.cs(1,", "1", ": error CS1: no bracket"),
        ("web", ["a.css"], " 0:0 ✖ a", " ", "!"),
    ],
)
def test_four_times_the_line_costs_no_more_than_about_four_times_the_time(
    table: str, before: list[str], head: str, repeated: str, tail: str
) -> None:
    def work(size: int) -> Callable[[], object]:
        line = f"{head}{repeated * size}{tail}"
        return lambda: _read(table, [*before, line])

    assert growth(work, small=1_000) < 8
