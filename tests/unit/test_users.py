"""Unchanged files that a change breaks, as the type checker sees them on both sides."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from regreen.reviewers.analyzers import bundled_checkers
from regreen.reviewers.analyzers.baseline import Diagnostic
from regreen.reviewers.analyzers.correctness import (
    Pyright,
    _leave_out_tests,
    base_python_texts,
    head_python_texts,
)
from regreen.reviewers.analyzers.python_contracts import PythonContracts
from tests.unit.changes import Files, Story

PLAN = "class Plan:\n    def __init__(self) -> None:\n        self.steps = [1]\n\n    def length(self) -> int:\n        return len(self.steps)\n"
ROWS = "def rows(path):\n    head, tail = path\n    return head, tail\n"
LOAD = "def load(key):\n    return {'key': key}\n"
STATE = "from enum import Enum\n\n\nclass State(Enum):\n    OPEN = 1\n    CLOSED = 2\n"
BEFORE: Files = {
    "pkg/__init__.py": "from pkg.plan import Plan\n",
    "pkg/plan.py": PLAN,
    "pkg/rows.py": ROWS,
    "pkg/load.py": LOAD,
    "pkg/state.py": STATE,
    "use_plan.py": "from pkg import Plan\n\n\ndef show(plan: Plan) -> int:\n    return plan.length()\n",
    "use_rows.py": "from pkg.rows import rows\n\nhead, tail = rows(('a', 'b'))\n",
    "use_load.py": "from pkg.load import load\n\nprint(load('k')['key'])\n",
    "use_state.py": "from pkg.state import State\n\nprint(State.CLOSED)\n",
}


def said(folder: Path, after: Files) -> list[tuple[str, int, str, str]]:
    story = Story(folder / "repo")
    story.change(BEFORE, after)
    context = story.context()
    found = Pyright().run(context).claims
    assert all(context.change.can_anchor(c.path, c.start_line, c.line, c.side) for c in found)
    shown = [c.evidence[0].excerpt.split(": ")[0] for c in found]
    return [(c.path, c.line, c.side, place) for c, place in zip(found, shown, strict=True)]


def test_without_the_type_checker_the_review_says_what_it_did_not_look_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = Story(tmp_path / "repo")
    story.change(BEFORE, {"pkg/load.py": LOAD.replace("key):", "key, more):")})
    monkeypatch.setitem(sys.modules, "basedpyright", None)  # as where it is not installed
    report = Pyright().run(story.context())
    assert report.claims == ()
    assert "pip install 'regreen[types]'" in report.skipped[0].reason


def test_each_break_is_said_once_where_the_change_made_it(tmp_path: Path) -> None:
    after: Files = {
        "pkg/plan.py": PLAN.replace("    def length", "    @property\n    def length"),
        "pkg/rows.py": ROWS.replace("return head, tail", "return head, tail, path"),
        "pkg/load.py": "async " + LOAD,
        "pkg/state.py": STATE.replace("CLOSED", "DONE"),
    }
    assert sorted(said(tmp_path, after)) == [
        ("pkg/load.py", 1, "RIGHT", "use_load.py:3"),
        ("pkg/plan.py", 5, "RIGHT", "use_plan.py:5"),
        ("pkg/rows.py", 3, "RIGHT", "use_rows.py:3"),
        ("pkg/state.py", 6, "RIGHT", "use_state.py:3"),
    ]


@pytest.mark.parametrize(
    "after",
    [
        {"pkg/state.py": STATE + "    DONE = CLOSED\n", "pkg/plan.py": PLAN + "\n    def more(self) -> int:\n        return 1\n"},
        {"pkg/state.py": STATE.replace("CLOSED", "DONE"), "use_state.py": "from pkg.state import State\n\nprint(State.DONE)\n"},
        # moved to a base: still there, though the class itself has lost it
        {"pkg/plan.py": PLAN.replace("class Plan", "class Base") + "\n\nclass Plan(Base):\n    pass\n"},
        # a value whose kind is only told anew: what it lacks was never a name of this change
        {"pkg/load.py": "def load(key: str) -> object:\n    return {'key': key}\n"},
    ],
)  # fmt: skip
def test_what_still_fits_or_is_only_inferred_anew_is_left_alone(
    tmp_path: Path, after: Files
) -> None:
    assert said(tmp_path, after) == []


@pytest.mark.parametrize(
    ("scope", "call", "said"),
    [
        ("class Scope:\n    def __init__(self, deadline):\n        pass\n", "Scope(limit=1)", 1),
        ("class Scope:\n    def __init__(self, deadline):\n        pass\n", "Scope(deadline=1)", 0),
        (
            "class Scope(metaclass=Meta):\n    def __init__(self, a):\n        pass\n",
            "Scope(b=1)",
            0,
        ),
        ("@attrs.define\nclass Scope:\n    _a: float = 0\n", "Scope(a=1)", 0),
        ("@wrap\ndef Scope(a):\n    pass\n", "Scope()", 0),
        ("def Scope(a, *, b):\n    pass\n", "Scope(1)", 1),
    ],
)
def test_a_new_call_is_refused_where_one_plain_definition_refuses_it(
    tmp_path: Path, scope: str, call: str, said: int
) -> None:
    story = Story(tmp_path / "repo")
    before: Files = {"pkg/__init__.py": "", "pkg/scope.py": scope, "use.py": "x = 1\n"}
    story.change(before, {"use.py": f"from pkg.scope import Scope\n\nx = {call}\n"})
    found = PythonContracts().run(story.context()).claims
    assert [(c.rule, c.line) for c in found] == [("contracts/refused-call", 3)] * said


TESTS = """import unittest

import pytest

from pkg.load import load


def test_of_something_else():
    text = "it is read by nobody"
    assert text.title()


class Loaded(unittest.TestCase):
    @unittest.skip(
        "for now"
    )
    def test_nothing(self):
        assert not None


def test_key():
    assert load("k")["key"] == "k"


def test_made():
    return load


@pytest.mark.parametrize("make", [test_made])
def test_of_a_function_that_only_looks_like_a_test(make):
    assert make()
"""


def test_the_type_checker_reads_only_tests_that_the_change_can_break(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laid: dict[str, str | bytes] = {}
    run = bundled_checkers.run_pyright

    def keep(
        files: Iterable[tuple[str, str | bytes]], targets: Sequence[str], rules: Sequence[str]
    ) -> list[Diagnostic]:
        laid.update(pairs := dict(files))
        return run(pairs, targets, rules)

    monkeypatch.setattr(bundled_checkers, "run_pyright", keep)
    story = Story(tmp_path / "repo")
    story.change(
        {**BEFORE, "tests/test_load.py": TESTS},
        {"pkg/load.py": "async " + LOAD, "use_load.py": "\n"},
    )
    (claim,) = Pyright().run(story.context()).claims
    assert claim.evidence[0].excerpt == 'tests/test_load.py:22: assert load("k")["key"] == "k"'
    read = str(laid["tests/test_load.py"])
    assert "read by nobody" not in read
    assert "for now" not in read
    assert "def test_made" in read  # the decorator of another names it
    assert read.count("\n") == TESTS.count("\n")


def test_a_test_that_holds_a_function_named_like_one_is_left_out_whole(tmp_path: Path) -> None:
    app = "def test_route(client):\n    @client.app\n    def test_view():\n        return 1\n\n    assert client\n"
    story = Story(tmp_path / "repo")
    story.change({"tests/test_app.py": app}, {"tests/test_app.py": app + "\n\nX = 1\n"})
    context = story.context()
    read = _leave_out_tests(context, base_python_texts(context), head_python_texts(context))
    assert [text.strip() for text in read[0].values()] == ["pass"]


def test_a_changed_test_file_is_read_where_it_was_changed(tmp_path: Path) -> None:
    changed = TESTS.replace("text.title()", "text.title(1)").replace("import load", "import save")
    story = Story(tmp_path / "repo")
    story.change({**BEFORE, "tests/test_load.py": TESTS}, {"tests/test_load.py": changed})
    context = story.context()
    files = head_python_texts(context)
    read = _leave_out_tests(context, base_python_texts(context), files)[1]["tests/test_load.py"]
    assert "text.title(1)" in read
    assert 'load("k")' in read  # the change takes the name away
    assert "for now" not in read


def test_what_a_test_had_before_is_not_blamed_on_lines_that_are_added_to_it(tmp_path: Path) -> None:
    before = "async def close():\n    pass\n\n\ndef test_closed():\n    close()\n    assert True\n"
    after = before.replace("    assert True\n", "    assert True\n    close()\n")
    story = Story(tmp_path / "repo")
    story.change({"tests/test_close.py": before}, {"tests/test_close.py": after})
    assert [c.line for c in Pyright().run(story.context()).claims] == [8]
