"""Delta debugging: nothing that can be left out is left in."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from regreen.domain.models import Failure
from regreen.fixers.minimization import (
    MinimalFailure,
    failure_signature,
    format_minimal_failure,
    minimize_items,
    remove_statements,
    statement_bodies,
    statement_spans,
)


@given(st.sets(st.integers(0, 40), max_size=5))
def test_exactly_what_is_needed_is_kept(needed: set[int]) -> None:
    def still_fails(some: Sequence[int]) -> bool:
        return needed <= set(some)

    assert minimize_items(range(41), still_fails) == sorted(needed)


def test_numbers_do_not_make_a_failure_another_one() -> None:
    one = Failure("t", "KeyError", "at 0x7f12: 3 items\nmore")
    assert failure_signature(one)[0] == "KeyError"
    assert failure_signature(Failure("t", "E", "line 3")) == failure_signature(
        Failure("t", "E", "line 9")
    )


SOURCE = '''class TestA:
    def test_x(self):
        """Words."""
        a = 1
        b = [
            2,
        ]
        assert a == 2
'''


def test_statements_are_cut_by_their_lines() -> None:
    spans = statement_spans(SOURCE, "t.py::TestA::test_x[1]")
    assert spans == [(4, 4), (5, 7), (8, 8)]
    cut = remove_statements(SOURCE, spans, [(4, 4), (8, 8)])
    assert "b = [" not in cut
    ast.parse(cut)
    ast.parse(remove_statements(SOURCE, spans, []))


def test_a_test_that_is_not_there_has_no_statements() -> None:
    assert statement_spans(SOURCE, "t.py::test_y") == []
    assert statement_spans("def (", "t.py::test_y") == []
    assert statement_spans(f"def test_y():\n    assert {'-' * 200_000}1\n", "t.py::test_y") == []


def test_blocks_inside_the_test_are_cut_too() -> None:
    source = "def test_x():\n    a = 1\n    with open(a) as f:\n        f.read()\n        g(f)\n"
    assert statement_bodies(source, "t.py::test_x") == [[(2, 2), (3, 5)], [(4, 4), (5, 5)]]


def test_a_unittest_is_found_by_its_dotted_name() -> None:
    source = "class T:\n    def test_x(self):\n        a = 1\n        b = 2\n"
    assert statement_spans(source, "pkg.mod.T.test_x") == [(3, 3), (4, 4)]


def test_what_is_left_is_said_with_the_selection() -> None:
    small = MinimalFailure(
        "t.py::test_x", ("E", ""), ("t.py::test_x",), "t.py", "def test_x():\n    f()\n", 3
    )
    assert (
        format_minimal_failure(small)
        == "t.py::test_x fails the same way with 3 statements fewer; it takes only:\n    f()"
    )
