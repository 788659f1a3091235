"""Whether a patch that works is published by itself, decided over facts: what was checked, what ran, what would be lost."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from regreen.code.file_change import PatchedFile, is_layout_only, is_same_document
from regreen.domain.job_control import StopCondition
from regreen.domain.models import Failure, StackFrame
from regreen.fixers.case import InitialFailure, RepairCase
from regreen.fixers.rungs.recipe_rung import _reason_for_approval
from regreen.gate.publishing import (
    PatchFacts,
    classify_check,
    find_fix_claim,
    find_losses,
    find_reasons_to_wait,
)
from regreen.shell.fixing_tools import Remedy
from tests.unit.repairs import Repository, job, sandbox_or_skip

REVERT = PatchFacts("revert", "pytest -q (2 tests: a, b)", "behaviour", is_whole=True)


@pytest.mark.parametrize(
    ("facts", "waits_for"),
    [
        (REVERT, ""),
        (replace(REVERT, rung="shrink"), ""),
        (replace(REVERT, check="form"), "runs no tests of behaviour"),
        (replace(REVERT, check="unclear", why_unclear="a reads a.txt"), "not known that the command tests behaviour: a reads a.txt"),
        (replace(REVERT, passed_before=False), "what fails did not pass before"),
        (replace(REVERT, is_whole=False), "not all of the project's tests ran: pytest -q (2 tests: a, b)"),
        (replace(REVERT, is_whole=False, alone="they cannot run here"), "only the failing step was held against it: they cannot run here; run with the patch: pytest -q (2 tests: a, b)"),
        (replace(REVERT, lost=("--plain of cli.py",)), "this would be lost: --plain of cli.py"),
        (replace(REVERT, mended="Fix #3"), "says that it repaired something: Fix #3"),
        # what takes nothing back is asked one thing only: whether more than the failing step was held against it
        (PatchFacts("model", "make check", is_whole=True), ""),
        (PatchFacts("recipe", "make check", is_whole=True), ""),
        (PatchFacts(None, "make check", is_whole=True), ""),
        (PatchFacts("recipe", "make check", is_whole=True, unnoticed=("a.py:3",)), "no test notices what was changed at a.py:3"),
        (PatchFacts("model", "make check", alone="no tests"), "only the failing step"),
        (PatchFacts("recipe", "make check", alone="no tests"), "only the failing step"),
        (PatchFacts("template", "make check", alone="no tests"), "only the failing step"),
        (PatchFacts(None, "make check", alone="no tests"), "only the failing step"),
        (PatchFacts("recipe", "make check", alone="no tests", is_layout=True), ""),
    ],
)  # fmt: skip
def test_what_a_patch_waits_for(facts: PatchFacts, waits_for: str) -> None:
    reasons = find_reasons_to_wait(facts)
    assert len(reasons) == bool(waits_for)
    assert all(waits_for in one.detail and one.level == "needs_human" for one in reasons)


ONE = Failure("tests/test_a.py::test_one", "AssertionError", "assert 1 == 2")
HEARD = {"tests/test_a.py::test_one": "failed", "tests/test_a.py::test_two": "passed"}
ALONE = {"tests/test_a.py::test_one": ("tests/__pycache__", ".pytest_cache/x")}
TREE = frozenset({"a.py", "tests/test_a.py", "tests/wanted.txt", "ci/look.py", "README.md"})
CRASH = 'Traceback (most recent call last):\n  File "/work/a.py", line 3, in a\n    1 / 0\nZeroDivisionError: division by zero\n'


def crashed_in(path: str) -> Failure:
    return Failure("", "ZeroDivisionError", "division by zero", frames=(StackFrame(path, 3, "a"),))


@pytest.mark.parametrize(
    ("failures", "heard", "touched", "output", "kind"),
    [
        ((ONE,), HEARD, ALONE, "", "behaviour"),
        ((Failure("tests/test_a.py", "ImportError", "no b"),), {"tests/test_b.py::test": "passed"}, {}, "", "behaviour"),
        ((ONE,), HEARD, {}, "", "unclear"),  # it ran in another process, and nobody saw what it read
        ((ONE,), HEARD, {"tests/test_a.py::test_one": ("tests/wanted.txt",)}, "", "unclear"),
        ((ONE,), HEARD, {"tests/test_a.py::test_one": ("the program git",)}, "", "unclear"),
        ((ONE,), HEARD, {"tests/test_a.py::test_one": ("no test function", "the program x")}, "", "form"),
        ((ONE,), HEARD, ALONE, "E   AssertionError: a.py:1:1: F401 'os' imported but unused\n", "form"),
        ((ONE,), HEARD, {"tests/test_a.py::test_one": ("README.md",)}, "", "form"),
        ((ONE,), HEARD, ALONE, "1 snapshot failed.\n", "form"),
        ((), {}, {}, "    not ok 1 - rows\n      source: |\n        t.matchSnapshot(rows(), 'rows')\n", "form"),
        ((), {}, {}, "snapshot assertion for 'rows' failed in line 4\ntest rows ... FAILED\n", "form"),
        ((), {}, {}, "  Did not match snapshot\n  1 test failed\n", "form"),
        ((ONE,), HEARD, ALONE, "E   the page doesn't match the stored snapshot\n", "form"),
        ((ONE,), HEARD, ALONE, "a.py:3: error: Incompatible return value type  [return-value]\n", "form"),
        ((), {"tests/test_a.py::test_two": "passed"}, {}, "", "form"),  # all pass, and it fails: a threshold
        ((), {}, {}, "would reformat a.py\n", "form"),
        ((), {}, {}, "words.txt: not in order\n", "form"),
        ((), {}, {}, "", "form"),
        ((crashed_in("a.py"),), {}, {}, CRASH, "unclear"),
        ((), {}, {}, "--- FAIL: TestOne (0.00s)\n    a_test.go:3: no\nFAIL\n", "unclear"),
    ],
)  # fmt: skip
def test_what_a_command_checks_is_told_by_what_ran(
    failures: tuple[Failure, ...],
    heard: dict[str, str],
    touched: dict[str, tuple[str, ...]],
    output: str,
    kind: str,
) -> None:
    found, _ = classify_check(failures, heard, touched, output, given=False, tracked=TREE)
    assert found == kind


def test_a_program_of_the_callers_own_is_a_specification() -> None:
    assert classify_check((), {}, {}, "", given=True, tracked=TREE)[0] == "unclear"


CLI = 'import os\n\n\ndef run(argv, limit):\n    """Runs it."""\n    plain = "--plain" in argv\n    return plain, os.environ.get("SHOP_RATE"), _half(limit)\n\n\ndef _half(n):\n    return n // 2\n'


@pytest.mark.parametrize(
    ("after", "lost"),
    [
        (CLI.replace('"--plain" in argv', "False"), ("--plain of cli.py", "what cli.py does with argv")),
        (CLI.replace('os.environ.get("SHOP_RATE")', "1"), ("SHOP_RATE of cli.py",)),
        (CLI.replace("argv, limit", "argv").replace("(limit)", "(1)"), ("the parameter limit of run",)),
        (CLI.replace("Runs it.", "Runs."), ("the documentation 'Runs it.' of cli.py",)),
        (CLI.replace("run(", "start("), ("run of cli.py",)),
        (CLI.replace("_half", "_third"), ("_half of cli.py",)),
        (CLI.replace("_half(limit)", "_half(1)"), ("what cli.py does with limit",)),
        (CLI.replace("_half(limit)", "'--limit', _half(1)").replace("argv, limit", "argv"), ("the parameter limit of run", "what cli.py does with limit")),
        (CLI.replace("n // 2", "n / 2"), ()),
    ],
)  # fmt: skip
def test_what_people_know_of_is_missed(after: str, lost: tuple[str, ...]) -> None:
    assert find_losses([PatchedFile("cli.py", CLI, after)], [], {"_half"}) == lost


def test_a_helper_that_nobody_else_calls_is_not_missed() -> None:
    change = PatchedFile("cli.py", CLI, CLI.replace("_half", "_third"))
    assert find_losses([change], [], set()) == ()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # what is worked out stays, and nothing does anything with it
        ("    rest = 0\n    return n // 2 + rest\n", "    rest = 0\n    return n // 2\n"),
        ("    rest: int = 0\n    return n // 2 + rest\n", "    rest: int = 0\n    return n // 2\n"),
    ],
)
def test_a_value_that_nothing_reads_any_more_is_missed(before: str, after: str) -> None:
    change = PatchedFile("cli.py", f"def half(n):\n{before}", f"def half(n):\n{after}")
    assert find_losses([change], [], ()) == ("what cli.py does with rest",)


def test_a_constant_that_stays_may_be_read_by_others() -> None:
    rate = "RATE = 16\n\n\ndef tax(price):\n    return price * RATE\n"
    assert find_losses([PatchedFile("tax.py", rate, rate.replace("* RATE", "* 19"))], [], ()) == ()


LINES = "def lines(n):\n    return ['apple', 'pear', 'plum'][:n]\n"
PLUM = "the value 'plum' of lines.py"


@pytest.mark.parametrize(
    ("now", "then", "said", "lost"),
    [
        (LINES, LINES.replace(", 'plum'", ""), "AssertionError: 3 != 2", (PLUM,)),
        (LINES, LINES.replace("'plum'", "'plums'"), "assert 'plum' == 'plums'", (PLUM,)),
        (LINES, LINES.replace("'plum'", "'plums'"), "assert 3 == 2", ()),
        ("ALL = [one, two]\n", "ALL = [one]\n", "", ("the value two of lines.py",)),
        ("ALL = {1: one, 2: two}\n", "ALL = {1: one}\n", "", ("the value 2 of lines.py",)),
        ("RATE = 16\n", "RATE = 19\n", "assert 16 == 19", ("the value 16 of lines.py",)),
        ("print(range(1, n))\n", "print(range(n))\n", "assert 1 == 0", ()),
        ("log('off')\n", "pass\n", "", ("the value 'off' of lines.py",)),
    ],
)
def test_a_value_that_the_change_wrote_down_is_missed(
    now: str, then: str, said: str, lost: tuple[str, ...]
) -> None:
    assert find_losses([PatchedFile("lines.py", now, then)], [], (), {}, said) == lost


def test_what_came_with_documents_is_known() -> None:
    change = PatchedFile("cli.py", CLI, CLI.replace("// 2", "// 3"))
    came = [PatchedFile("cli.py", "", CLI), PatchedFile("CHANGELOG.md", "", "Runs.\n")]
    assert find_losses([change], came, ()) == ("what CHANGELOG.md says of it",)


@pytest.mark.parametrize(
    ("was", "lost"),
    [
        ("It runs.", ("what the documentation of run says of it",)),
        ("Runs it.", ()),  # no word of the change
    ],
)
def test_a_docstring_that_came_with_it_and_stays_is_no_longer_true(
    was: str, lost: tuple[str, ...]
) -> None:
    part = PatchedFile("cli.py", CLI, CLI.replace("return plain", "return not plain"))
    assert (
        find_losses([part], [PatchedFile("cli.py", CLI.replace("Runs it.", was), CLI)], ()) == lost
    )
    elsewhere = PatchedFile("cli.py", CLI, CLI.replace("n // 2", "n / 2"))
    assert (
        find_losses([elsewhere], [PatchedFile("cli.py", CLI.replace("Runs it.", was), CLI)], ())
        == ()
    )


def test_a_docstring_stays_true_of_the_definition_that_stays() -> None:
    doc = '"""Runs it."""'
    twice = f"if win:\n    def run():\n        {doc}\n        return 1\nelse:\n    def run():\n        {doc}\n        return 2\n"
    without = PatchedFile("cli.py", twice.replace(doc, ""), twice)
    elsewhere = PatchedFile("cli.py", f"{twice}x = y\n", f"{twice}x = z\n")
    assert find_losses([elsewhere], [without], ()) == ()
    first = PatchedFile("cli.py", twice, twice.replace("return 1", "return one"))
    assert "what the documentation of run says of it" in find_losses([first], [without], ())


def test_what_a_later_document_speaks_of_is_missed() -> None:
    rows = "def rows(given):\n    return given.get('page_size', 20)\n"
    change = PatchedFile("rows.py", rows, rows.replace("given.get('page_size', 20)", "20"))
    docs = {"docs/rows.md": "Set `page_size = 50` for long pages.\n", "README.md": "given rows\n"}
    assert find_losses([change], [], (), docs) == (
        "what rows.py does with given", "the value 'page_size' of rows.py", "page_size, of which docs/rows.md speaks",
    )  # fmt: skip


def test_a_documented_name_that_stands_elsewhere_is_not_missed() -> None:
    change = PatchedFile("bill.py", "from cart import total\n\nALL = total([])\n", "ALL = 0\n")
    docs = {"README.md": "`total` adds.\n"}
    assert find_losses([change], [], {"total"}, docs) == ()


def test_tests_that_go_are_missed() -> None:
    gone = PatchedFile("tests/test_cli.py", "def test():\n    pass\n", None)
    assert find_losses([gone], [], ()) == ("tests in tests/test_cli.py",)


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("Fix rounding", "Fix rounding"),
        ("Round to the nearest\n\nCloses #41", "Closes #41"),
        ("Move on\n\nresolves acme/shop#4", "resolves acme/shop#4"),
        ("Stay below the root (CVE-2024-1)", "Stay below the root (CVE-2024-1)"),
        ("security: no links", "security: no links"),
        ("Mend a regression", "Mend a regression"),
        ("bugfix", "bugfix"),
        ("Add a prefix to fixtures", ""),
        ("Close the window politely", ""),
        ("Tidy up (#41)", ""),
    ],
)
def test_a_message_says_whether_something_was_mended(message: str, line: str) -> None:
    assert find_fix_claim(message) == line


@pytest.mark.parametrize(
    ("path", "old", "new", "same"),
    [
        ("a.py", "x = [1,2]\n", "x = [1, 2]\n", True),
        ("a.py", "x = (1)\n", "x = (1,)\n", False),
        ("a.ts", "let a = 'b'\n", 'let a = "b";\n', True),
        ("a.ts", "let a = 1\n", "let a = 2\n", False),
        ("a.ts", None, "let a = 2\n", False),
    ],
)
def test_what_is_only_written_otherwise(path: str, old: str | None, new: str, *, same: bool) -> None:  # fmt: skip
    assert is_layout_only(PatchedFile(path, old, new)) == same


@pytest.mark.parametrize(
    ("path", "old", "new", "same"),
    [
        ("pyproject.toml", "[b]\nx = 1\ny = [1, 2]\n[a]\n", "[a]\n[b]\ny = [1, 2]\nx = 1\n", True),
        ("pyproject.toml", "y = ['b', 'a']\n", "y = ['a', 'b']\n", False),
        ("pyproject.toml", "[[t]]\nn = 1\n[[t]]\nn = 2\n", "[[t]]\nn = 2\n[[t]]\nn = 1\n", False),
        ("pyproject.toml", "x = 1\n", "x = true\n", False),
        ("pyproject.toml", "x = 1\n", "x = 1.0\n", False),
        ("pyproject.toml", "x = \n", "x = \n\n", False),
        ("a.json", '{"b": {"d": 1, "c": [1, 2]}, "a": 2}', '{"a": 2, "b": {"c": [1, 2], "d": 1}}', True),
        ("a.json", '{"b": [1, 2]}', '{"b": [2, 1]}', False),
        ("a.json", '{"b": [{"x": 1, "y": 2}]}', '{"b": [{"y": 2, "x": 1}]}', True),
        ("a.json", "[" * 100_000, "[" * 100_001, False),
        ("package.json", '{"name": "a", "bin": {"x": "1", "y": "2"}}', '{"bin": {"y": "2", "x": "1"}, "name": "a"}', True),
        ("package.json", '{"exports": {"import": "b", "default": "a"}}', '{"exports": {"default": "a", "import": "b"}}', False),
        ("a.ini", "a = 1\nb = 2\n", "b = 2\na = 1\n", False),
    ],
)  # fmt: skip
def test_a_document_is_the_same_in_whatever_order_its_tables_say_it(path: str, old: str, new: str, *, same: bool) -> None:  # fmt: skip
    assert is_same_document(path, old, new) == same


@pytest.mark.parametrize(
    ("path", "new", "waits"),
    [
        ("pyproject.toml", "[a]\n[b]\nx = ['d', 'c']\n", False),
        ("pyproject.toml", "[a]\n[b]\nx = ['c', 'd']\n", True),
        ("data.json", '{"a": [2, 1], "b": 3}', False),
        ("data.json", '{"a": [1, 2], "b": 3}', True),
        ("tests/want.json", '{"a": [2, 1], "b": 3}', True),
    ],
)  # fmt: skip
def test_what_an_unknown_tool_sorts_waits_only_where_it_says_something_else(
    tmp_path: Path, path: str, new: str, *, waits: bool
) -> None:
    repository = Repository(tmp_path / "repo")
    data = '{"b": 3, "a": [2, 1]}'
    rev = repository.commit("start", {"pyproject.toml": "[b]\nx = ['d', 'c']\n[a]\n",
                                      "data.json": data, "tests/want.json": data})  # fmt: skip
    case = RepairCase(
        job(rev, "sorter", "--check"), rev, InitialFailure("", 1), {}, repository.open(),
        sandbox_or_skip(), StopCondition(time.monotonic() + 300),
    )  # fmt: skip
    sorter = Remedy("sorter", "sorter --fix", "not sorted", unknown=True)
    reason = _reason_for_approval(case, sorter, {path: new.encode()})
    assert (reason is not None) == waits
