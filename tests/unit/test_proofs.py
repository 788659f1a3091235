"""Which tests a change alters, which of them cannot fail, and what its words and its diff say."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from regreen.bot.messages.proofs import format_proof, proof_check, unproven_check
from regreen.code.file_change import PatchedFile
from regreen.domain.models import Failure
from regreen.languages.python.test_tools import PYTHON_TESTS
from regreen.languages.registry import find_file_tests, find_mutation, parses
from regreen.logs.ci_log import read_failures
from regreen.proofs.changed_tests import (
    ChangedTest,
    _find_changed,
    divide_change,
    list_changed_calls,
)
from regreen.proofs.prove import (
    ProofResult,
    TestProof,
    TriedMutant,
    _classify_failure,
    _select,
    check_weakening,
    read_intent,
)
from regreen.reviewers.analyzers.vacuous_tests import explain_hollow
from tests.unit.repairs import Repository

HELPED = """\
import calc

LIMIT = {limit}


def double(a):
    return {double}


class TestSum:
    def setup_method(self):
        self.start = {start}

    def test_start(self):
        assert calc.add(self.start, 1) == 2


def test_limit():
    assert calc.add(LIMIT, 1) == 2


def test_double():
    assert double(2) == calc.add(2, 2)


def test_other():
    assert calc.add(1, 1) == 2{comment}
"""


@pytest.mark.parametrize(
    ("values", "altered"),
    [
        ({"comment": "  # plain"}, set()),
        ({"limit": "2"}, {"test_limit"}),
        ({"double": "a + a"}, {"test_double"}),
        ({"start": "0"}, {"TestSum::test_start"}),
        ({"comment": " + 0"}, {"test_other"}),
    ],
)  # fmt: skip
def test_what_a_test_uses_alters_it(values: dict[str, str], altered: set[str], tmp_path: Path) -> None:  # fmt: skip
    plain = {"limit": "1", "double": "2 * a", "start": "1", "comment": ""}
    made = Repository(tmp_path / "repo")
    base = made.commit("base", {"calc.py": "def add(a, b):\n    return a + b\n", "tests/test_calc.py": HELPED.format(**plain)})  # fmt: skip
    head = made.commit("head", {"calc.py": "def add(a, b):\n    return b + a\n", "tests/test_calc.py": HELPED.format(**plain | values)})  # fmt: skip
    parts = divide_change(made.open(), base, head)
    assert {test.test.partition("::")[2] for test in parts.tests} == altered
    assert [file.path for file in parts.sources] == ["calc.py"]


@pytest.mark.parametrize(
    "around",
    [
        "if calc.FAST:\n    {test}",
        "try:\n    import fast\nexcept ImportError:\n    pass\nelse:\n    {test}",
        "class TestA:\n    if calc.FAST:\n        {method}",
        "def make_tests(size):\n    class Tests:\n        {method}\n    return Tests\n\n\nTestFast = make_tests(1)",
    ],
)
def test_a_test_under_a_condition_or_of_a_class_that_a_function_makes_is_one(around: str) -> None:
    old, new = (
        "import calc\n\n"
        + around.format(
            test=f"def test_sum():\n        assert calc.add(1, 1) == {end}",
            method=f"def test_sum(self):\n                assert calc.add(1, 1) == {end}",
        )
        for end in ("2", "2.0")
    )
    (test,) = _find_changed(PatchedFile("tests/test_calc.py", old, new))
    assert test.function == "test_sum"


@pytest.mark.parametrize(
    ("body", "asks_new"),
    [
        ("assert calc.add(one, dict(two=2)['two']) == 3", True),
        ("assert calc.add(1, {'two': 2}['two']) == 3", False),
        ("kept = calc.add(1, {'two': 2}['two'])\n    assert kept == 3", False),
        ("if calc.add(1, dict(two=2)['two']) != 3:\n        raise AssertionError", False),
        ("assert calc.add(1, dict(two=2)['two']) == 4", True),
        ("assert calc.sub(1, dict(two=2)['two']) == 3", True),
        ("assert calc.add(1, dict(two=2)['two']) == -3", True),
        ("assert calc.add(1, dict(two=2)['two']) == 3, \"can't add\"", True),
        ("assert calc.add(1, dict(two=2)['two']) == 3, b'sum'", True),
    ],
)  # fmt: skip
def test_a_test_that_is_only_written_otherwise_asks_nothing_new(
    body: str, asks_new: bool, tmp_path: Path
) -> None:
    made = Repository(tmp_path / "repo")
    old = "import calc\n\n\ndef test_sum():\n    assert calc.add(1, dict(two=2)['two']) == 3\n"
    base = made.commit("base", {"calc.py": "A = 1\n", "tests/test_calc.py": old})
    new = f"import calc\n\n\ndef test_sum():\n    {body}\n"
    head = made.commit("head", {"calc.py": "A = 2\n", "tests/test_calc.py": new})
    assert [test.asks_new for test in divide_change(made.open(), base, head).tests] == [asks_new]


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"tests/test_cases.py": "KNOWN = {'b'}\nglobals().update(test_a=lambda: None)\n"}, ["tests/test_cases.py"]),
        ({"tests/common.py": "CASES = [1, 2]\n"}, ["tests/test_calc.py::test_all"]),
        ({"tests/helper.py": "CASES = [1, 2]\n"}, []),
        ({"tests/sums.py": "def test_sum():\n    assert 1 + 1 == 2\n"}, ["tests/sums.py::test_sum"]),
    ],
)  # fmt: skip
def test_a_change_of_what_makes_tests_is_tried_by_the_tests_that_it_makes(
    files: dict[str, str], found: list[str], tmp_path: Path
) -> None:
    made = Repository(tmp_path / "repo")
    using = "from tests.common import CASES\n\n\ndef test_all():\n    assert all(CASES)\n"
    cases = "KNOWN = set()\nglobals().update(test_a=lambda: None)\n"
    base = made.commit("base", {"calc.py": "A = 1\n", "tests/test_calc.py": using, "tests/common.py": "CASES = [1]\n", "tests/test_cases.py": cases})  # fmt: skip
    head = made.commit("head", {"calc.py": "A = 2\n", **files})
    assert [test.test for test in divide_change(made.open(), base, head).tests] == found


@pytest.mark.parametrize(
    ("helper", "call", "is_hollow"),
    [
        ("tests/helpers.py", "same(calc.add(1, 2), 3)", False),
        ("tests/helpers.py", "twice(calc.add(1, 2), 3)", False),  # it calls the one that asserts
        ("tests/helpers.py", "plain(calc.add(1, 2), 3)", True),
        ("shop/testing.py", "same(calc.add(1, 2), 3)", False),
        ("shop/helpers.py", "same(calc.add(1, 2), 3)", True),  # the product's own assertion
    ],
)
def test_a_helper_of_another_test_module_may_assert(
    helper: str, call: str, is_hollow: bool, tmp_path: Path
) -> None:
    made = Repository(tmp_path / "repo")
    helpers = "def same(a, b):\n    assert a == b\n\n\ndef twice(a, b):\n    same(a, b)\n\n\ndef plain(a, b):\n    return a == b\n"
    module = helper.removesuffix(".py").replace("/", ".")
    base = made.commit("base", {"calc.py": "A = 1\n", helper: helpers})
    test = f"from {module} import plain, same, twice\n\n\ndef test_sum():\n    {call}\n"
    head = made.commit("head", {"calc.py": "A = 2\n", "tests/test_calc.py": test})
    (found,) = divide_change(made.open(), base, head).tests
    assert bool(found.hollow) is is_hollow


def test_what_goes_with_the_tests_and_what_is_new(tmp_path: Path) -> None:
    made = Repository(tmp_path / "repo")
    base = made.commit("base", {"calc.py": "def add(a, b):\n    return a + b\n"})
    head = made.commit("head", {
        "calc.py": "def add(a, b):\n    return a + b\n\n\ndef third(c):\n    return c / 3\n",
        "tests/conftest.py": "x = 1\n", "tests/data/a.json": "{}\n", "README.md": "hello\n", "pyproject.toml": "",
        "tests/test_calc.py": "import calc\n\n\ndef test_third():\n    assert calc.third(3) == 1\n",
    })  # fmt: skip
    parts = divide_change(made.open(), base, head)
    assert set(parts.support) == {"tests/conftest.py", "tests/data/a.json", "tests/test_calc.py", "pyproject.toml"}  # fmt: skip
    assert {"third", "c"} <= parts.new_names
    assert "add" not in parts.new_names


@pytest.mark.parametrize(
    ("body", "is_hollow"),
    [
        ("assert f(1) == 2", False),
        ("with pytest.raises(ValueError):\n        f(1)", False),
        ("self.assertEqual(f(1), 2)", False),
        ("compare(f(1), 2)", False),  # a helper that asserts
        ("try:\n        f(1)\n    except ValueError:\n        assert f(2) == 3", False),
        ("try:\n        f(1)\n    except ValueError:\n        self.fail('f refuses 1')", False),
        ("try:\n        f(1)\n    except Exception as e:\n        assert str(e) == 'no'", False),
        ("try:\n        f(1)\n    except Exception:\n        self.fail('f failed')", True),
        ("try:\n        f(1)\n    except:\n        raise AssertionError('f failed')", True),
        ("try:\n        f(1)\n    except (KeyError, Exception):\n        assert False", True),
        ("f(1)", True),
        ("assert True", True),
        ("assert f(1) == f(1)", True),
        ("expected = f(1)\n    assert f(1) == expected", True),
        ("x = f(1)\n    assert f(1) == x\n    x = f(2)\n    assert f(2) == x", True),
        ("x = 1\n    assert f(1) == x\n    x = f(1)\n    assert f(1) == x", False),
        ("x = f(1)\n    g(2)\n    assert f(1) == x", False),  # what g does may change it
        ("x = f(1)\n    with g():\n        assert f(1) == x", False),
        ("eq_(f(1), 2)", False),
        ("self.compare(f(1), 2)", True),
        ("assert f(1) == 2 or True", True),
        ("assert bool(f(1)) or not bool(f(1))", True),
        ("assert isinstance(f(1), object)", True),
        ("assert bool(1 not in f(1)) or not (1 not in f(1))", True),
        ("x = f(1)\n    assert x is None or x is not None", True),
        ("assert f(1) or not f(2)", False),
        ("self.assertEqual(f(1), f(1))", True),
        ("try:\n        assert f(1) == 2\n    except AssertionError:\n        pass", True),
    ],
)
def test_a_test_without_an_assertion_that_can_fail(body: str, is_hollow: bool) -> None:
    function = ast.parse(f"def test_it(self):\n    {body}\n").body[0]
    assert isinstance(function, ast.FunctionDef)
    assert bool(explain_hollow(function, {"compare"})) is is_hollow


@pytest.mark.parametrize(
    ("kind", "message", "place", "seen"),
    [
        ("AssertionError", "AssertionError: assert 1 == 2", "tests/test_a.py", "assertion"),
        ("Failed", "Failed: DID NOT RAISE ValueError", "tests/test_a.py", "assertion"),
        ("IndentationError", "File \"<string>\", line 8\nIndentationError: expected", "calc.py", "crash"),
        ("AssertionError", "AssertionError", "pkg/a.py", "crash"),
        ("ZeroDivisionError", "ZeroDivisionError: division by zero", "pkg/a.py", "crash"),
        ("ImportError", "ImportError: cannot import name 'x'", "tests/test_a.py", "lacks"),
        ("AttributeError", "AttributeError: module 'pkg' has no attribute 'fresh'", "tests/test_a.py", "lacks"),
        ("AttributeError", "AttributeError: 'NoneType' object has no attribute 'start'", "tests/test_a.py", "crash"),
        ("TypeError", "TypeError: f() got an unexpected keyword argument 'b'", "tests/test_a.py", "lacks"),
        ("error", "fixture 'client' not found", "tests/test_a.py", "other"),
    ],
)  # fmt: skip
def test_how_a_failure_without_the_change_is_read(kind: str, message: str, place: str, seen: str) -> None:  # fmt: skip
    failure = Failure("tests/test_a.py::test_it", kind, message, place, 3)
    assert _classify_failure(failure, frozenset({"fresh"})).kind == seen


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        (["requests.exceptions.InvalidSchema: No connection adapters"], "InvalidSchema"),
        (['  File "<string>", line 8', "  else:", "  ^", "IndentationError: expected"], "IndentationError"),
        (["ValueError: a: b"], "ValueError"),
        (["werkzeug.exceptions.NotFound: 404 Not Found: The URL was not found on the server."], "NotFound"),
    ],
)  # fmt: skip
def test_an_error_of_any_name_is_read_from_a_short_traceback(lines: list[str], kind: str) -> None:
    marked = "\n".join(f"E   {line}" for line in lines)
    output = f"=== FAILURES ===\n____ test_x ____\ntests/test_a.py:3: in test_x\n    load()\ncalc.py:7: in load\n    exec(code)\n{marked}\n=== short test summary info ===\nFAILED tests/test_a.py::test_x - {{}}\n1 failed in 0.35s\n"
    for summary in (lines[0], f"{lines[0][:18]}..."):  # pytest cuts it to the width of the terminal
        (failure,) = read_failures(output.format(summary))
        assert failure.kind == kind
        assert _classify_failure(failure, frozenset()).kind == "crash"


@pytest.mark.parametrize(
    ("title", "body", "closes", "fixes", "keeps"),
    [
        ("Fix crash of empty lists", "Closes #12", ("Closes #12",), True, False),
        ("Add a page", "fixes owner/name#3 and resolves #4", ("fixes owner/name#3", "resolves #4"), True, False),
        ("Refactor the parser", "", (), False, True),
        ("cli: refactored the parser", "", (), False, True),
        ("\u267b\ufe0f REFACTOR: the parser", "", (), False, True),
        ("Internal refactor of the parser", "", (), False, True),
        ("refactor!: drop the old parser", "", (), False, False),
        ("refactor(cli)!: drop the old parser", "", (), False, False),
        ("Add a parser, refactor another", "", (), False, False),
        ("Move the reader", "There are no behaviour changes.", (), False, True),
        ("Prefix names", "see #7", (), False, False),
    ],
)  # fmt: skip
def test_what_is_promised(title: str, body: str, closes: tuple[str, ...], fixes: bool, keeps: bool) -> None:  # fmt: skip
    intent = read_intent(title, body)
    assert (intent.closes, bool(intent.fixes), bool(intent.keeps)) == (closes, fixes, keeps)


TEST = "def test_a():\n    assert f(1) == 2\n    assert f(2) == 3\n\n\ndef test_b():\n    assert f(3) == 4\n"


@pytest.mark.parametrize(
    ("path", "old", "new", "refused"),
    [
        ("tests/test_a.py", TEST, TEST.replace("    assert f(2) == 3\n", ""), True),
        ("tests/test_a.py", TEST, "import pytest\n\n\n@pytest.mark.skip\n" + TEST, True),
        ("tests/test_a.py", "def test_a():\n    assert f(1) == approx(2, rel_tol=0.1)\n", "def test_a():\n    assert f(1) == approx(2, rel_tol=0.5)\n", True),
        (".github/workflows/ci.yml", "- run: pytest\n", "- run: pytest || true\n", True),
        (".github/workflows/ci.yml", "- run: pytest\n", "- run: pytest -q\n", False),
        ("tests/test_a.py", TEST, TEST + "\n\ndef test_c():\n    assert f(4) == 5\n", False),
        ("tests/test_a.py", TEST, TEST.replace("== 4", "== 5"), False),
    ],
)  # fmt: skip
def test_a_change_that_weakens_the_tests(path: str, old: str, new: str, refused: bool) -> None:
    found = check_weakening([PatchedFile(path, old, new)])
    assert any(reason.level == "deny" for reason in found) is refused, found


SKIPPING = """\
import sys

import pytest

old = pytest.mark.skipif(sys.version_info < (3, 9), reason="old")


def make(lexer):
    class Made:
        def test_made(self):
            assert lexer("a")

    return Made


class TestAll:
    def test_one(self):
        assert f(1)

    def test_two(self):
        assert f(2)


@pytest.mark.parametrize("x", [1, 2])
def test_cases(x):
    assert f(x)
"""
SKIP = "@pytest.mark.skipif(sys.platform == 'win32', reason='w')"


@pytest.mark.parametrize(
    ("was", "now", "refused"),
    [
        # what exists is skipped now
        ("    def test_one", f"    {SKIP}\n    def test_one", True),
        ("class TestAll", f"{SKIP}\nclass TestAll", True),
        ("        def test_made", f"        {SKIP}\n        def test_made", True),
        ("    def test_one", "    @old\n    def test_one", True),
        ("[1, 2]", "[1, pytest.param(2, marks=pytest.mark.xfail)]", True),
        ("[1, 2]", "[1, pytest.param(2, marks=old)]", True),
        ("import pytest\n", "import pytest\n\npytestmark = pytest.mark.skipif(True, reason='w')\n", True),
        ("import pytest\n", "import pytest\n\nyaml = pytest.importorskip('yaml')\n", True),
        ("    def test_one(self):\n", f"    {SKIP}\n    def test_first(self):\n", True),
        ("    def test_one(self):\n", "    def setup_method(self):\n        pytest.skip('w')\n\n    def test_one(self):\n", True),
        ("class TestAll:\n    def test_one(self):\n", "def need():\n    pytest.skip('w')\n\n\nclass TestAll:\n    def test_one(self):\n        need()\n", True),
        ("class TestAll:\n    def test_one(self", "@pytest.fixture\ndef web():\n    pytest.skip('w')\n\n\nclass TestAll:\n    def test_one(self, web", True),
        ("@pytest.mark.parametrize", "TestAll = pytest.mark.skip(TestAll)\n\n\n@pytest.mark.parametrize", True),
        ("@pytest.mark.parametrize", "TestAll = old(TestAll)\n\n\n@pytest.mark.parametrize", True),
        ("[1, 2]", "[pytest.param(1 + 0, marks=pytest.mark.skip), 2]", True),
        ("[1, 2]", "[pytest.param(1, marks=old), pytest.param(2, marks=old), pytest.param(3, marks=old)]", True),
        ("    def test_one(self):\n", "    def setup_class(cls):\n        pytest.skip('w')\n\n    def test_one(self):\n", True),
        ("class TestAll:\n    def test_one(self):\n", "def test_env():\n    inner()\n\n\ndef inner():\n    pytest.skip('w')\n\n\nclass TestAll:\n    def test_one(self):\n        test_env()\n", True),
        ("class TestAll:\n    def test_one(self):\n", "class H:\n    def go():\n        pytest.skip('w')\n\n\nclass TestAll:\n    def test_one(self):\n        H.go()\n", True),
        ("class TestAll:\n", "@pytest.fixture(name='web')\ndef w():\n    pytest.skip('w')\n\n\n@pytest.mark.usefixtures('web')\nclass TestAll:\n", True),
        # what is new is
        ("    def test_one", f"    {SKIP}\n    def test_new(self):\n        assert f(3)\n\n    def test_one", False),
        ("        def test_made", f"        {SKIP}\n        def test_new(self):\n            assert lexer('b')\n\n        def test_made", False),
        ("[1, 2]", "[1, 2, pytest.param(3, marks=pytest.mark.xfail)]", False),
        ("[1, 2]", "[1, 2, pytest.param(3, marks=old)]", False),
        ("old = ", "new = dict(marks=[pytest.mark.xfail(sys.platform == 'win32')])\nold = ", False),
        ("class TestAll:\n", "if sys.platform == 'linux':\n    def test_new():\n        pytest.skip('w')\n\n\nclass TestAll:\n", False),
    ],
)  # fmt: skip
def test_a_skip_weakens_what_was_not_skipped(was: str, now: str, refused: bool) -> None:
    found = check_weakening([PatchedFile("tests/test_a.py", SKIPPING, SKIPPING.replace(was, now))])
    assert any(reason.level == "deny" for reason in found) is refused, found


def test_a_skip_that_moves_from_a_class_to_its_tests_skips_nothing_new() -> None:
    whole = SKIPPING.replace("class TestAll", f"{SKIP}\nclass TestAll")
    first = SKIPPING.replace("    def test_one", f"    {SKIP}\n    def test_one")
    second = SKIPPING.replace("    def test_two", f"    {SKIP}\n    def test_two")
    assert not check_weakening([PatchedFile("tests/test_a.py", whole, first)])
    assert check_weakening([PatchedFile("tests/test_a.py", first, second)])


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("@pytest.mark.skipif(False, reason='w')\nclass TestA:\n    def test_a(self):\n        assert f(1)\n", "class TestA:\n    @pytest.mark.skip\n    def test_a(self):\n        assert f(1)\n"),
        ("if BAD:\n    pytest.skip('w', allow_module_level=True)\n\n\ndef test_a():\n    assert f(1)\n", "@pytest.mark.skip\ndef test_a():\n    assert f(1)\n"),
        ("@pytest.mark.parametrize('x', range(1, 3))\ndef test_a(x):\n    assert f(x)\n", "@pytest.mark.parametrize('x', [pytest.param(1, marks=pytest.mark.skip), pytest.param(2, marks=pytest.mark.skip)])\ndef test_a(x):\n    assert f(x)\n"),
        ("def test_a():\n    assert f(1)\n", "def test_a():\n    assert f(1)\n\n\ntest_a = pytest.mark.skip(test_a)\n"),
    ],
)  # fmt: skip
def test_another_skip_than_the_one_that_went_is_a_new_one(was: str, now: str) -> None:
    head = "import pytest\n\n\n"
    assert check_weakening([PatchedFile("tests/test_a.py", head + was, head + now)])


def test_a_new_case_is_no_old_one_where_a_list_in_the_test_changes_too() -> None:
    was = "import pytest\n\n\n@pytest.mark.parametrize('x', [1])\ndef test_a(x):\n    wanted = [1, 2]\n    assert f(x) == wanted\n"
    now = was.replace("[1])", "[1, pytest.param(2, marks=pytest.mark.xfail)])").replace("[1, 2]\n", "[1, 3]\n")  # fmt: skip
    assert not check_weakening([PatchedFile("tests/test_a.py", was, now)])


def test_the_check_names_the_proof_and_a_line_for_each_place_that_no_test_watches() -> None:
    name = "tests/test_calc.py::LimitTest::test_limit"
    shown = TestProof(name, "fail", "pass", "proven", "it fails without the change: assert 3 == 2")
    guard = TestProof(
        "tests/test_calc.py::test_old", "pass", "pass", "nothing_to_prove", "it guards what stays"
    )
    mutants = (
        TriedMutant("calc.py", 4, "return a - b", None, "add"),
        TriedMutant("calc.py", 4, "return a * b", None, "add"),
        TriedMutant("calc.py", 9, "if x >= 1:", None, "limit"),
        TriedMutant("calc.py", 9, "if x > 2:", name, "limit"),
    )
    spent = {"environment": 1.0, "tests": 2.0, "proof": 3.5, "mutants": 0.5}
    check = proof_check("a" * 40, ProofResult("proven", f"{name}: red", (shown, guard), mutants, seconds=spent), required=False)  # fmt: skip
    assert check.title == "Weak proof: 1 test needs the change, 3 of 4 faults pass unnoticed"
    assert check.conclusion == "neutral", "most faults would pass"
    assert (
        "This check is neutral: more than half of the faults that were tried pass unnoticed, "
        in check.summary
    )
    half = proof_check("a" * 40, ProofResult("proven", "red", (shown,), mutants[2:]), required=False)  # fmt: skip
    said = format_proof(ProofResult("proven", "red", (shown,), mutants))
    assert said.startswith(
        "weak proof: 1 test needs the change, 3 of 4 faults pass unnoticed: red\n"
    )
    assert "only the changed test files were run; other tests may fail at this commit\n" in said
    assert "in functions that are not run" not in said
    untried = proof_check("a" * 40, ProofResult("proven", "red", (shown,)), required=False)
    assert "\n\nNo fault was tried in the changed lines.\n\n" in untried.summary
    assert (half.title[:22], half.conclusion) == ("Proven, but 1 of 2 fau", "success")
    assert check.summary.startswith(f"**{check.title}**, all of those in `add`. A proof is weak where more than half do. Add an assertion that fails with the faults below, or a test of `add`.\n\n{name}: red\n\n- ")  # fmt: skip
    assert (check.summary.count("3 of 4"), check.summary.count("Weak proof")) == (1, 1)
    assert (
        "\n\nThese faults are not noticed by `tests/test_calc.py` (each line below "
        in check.summary
    )
    assert "\n\nCost: no model; 5.0 s on Regreen's machine." in check.summary
    assert "- `calc.py:4`: `return a - b` and 1 more\n- `calc.py:9`: `if x >= 1:`" in check.summary
    idle = tuple(TriedMutant("calc.py", line, "pass", None, "spare", is_run=False) for line in (20, 21, 22))  # fmt: skip
    part = proof_check("a" * 40, ProofResult("proven", f"{name}: red", (shown,), (*mutants, *idle)), required=False)  # fmt: skip
    said = format_proof(ProofResult("proven", "red", (shown,), (*mutants, *idle)))
    assert "\n3 more faults are in functions that are not run\n" in said
    assert part.title == f"{check.title}; spare is not run by its tests"
    assert part.summary.startswith("**Weak proof: 1 test needs the change, 3 of 4 ")
    mixed = proof_check("a" * 40, ProofResult("proven", "red", (shown,), (*mutants[2:], *idle)), required=False)  # fmt: skip
    assert mixed.title == "Proven, but spare is not run by its tests, and 1 of 2 faults in the changed lines would pass unnoticed"  # fmt: skip
    assert "calc.py:20" not in part.summary, "what no test runs is said once"
    only = proof_check("a" * 40, ProofResult("proven", "red", (shown,), (mutants[3], *idle)), required=False)  # fmt: skip
    assert only.title == "Proven, but spare is not run by its tests"
    assert "faults" not in only.summary
    red = proof_check("a" * 40, ProofResult("proven", f"{name}: red", (shown,), mutants), required=True, failing=["test_b.test_sum"])  # fmt: skip
    assert red.conclusion == "neutral", "a commit with failing tests gets no green"
    assert red.title == "Proven by test_limit; faults in the changed lines are not judged: tests fail at this commit"  # fmt: skip
    assert "(`test_b.test_sum`). Repair them first." in red.summary
    assert "calc.py:4" not in red.summary
    assert "Proven, but" not in red.summary
    long = ProofResult("inconclusive", "the environment " * 20, (guard,))
    again = "regreen prove --base aaa --head bbb"
    for check in (proof_check("a" * 40, long, required=False, repeat=again), unproven_check("a" * 40, "no sandbox", again)):  # fmt: skip
        assert f"<sub>Reproduce: `{again}`</sub>" in check.summary
    blind = TestProof(name, "pass", "pass", "not_discriminating", "green on both, and with `x` too")
    loose = ProofResult("not_discriminating", "green on both, and with `x` too", (blind,), mutants)
    assert proof_check("a" * 40, loose, required=True).conclusion == "failure"
    open_ = proof_check("a" * 40, loose, required=True, failing=["test_b.test_sum"])
    assert open_.conclusion == "neutral"
    assert "with `x` too" not in f"{open_.title}{open_.summary}", "it rests on a fault"
    title = proof_check("a" * 40, long, required=False).title
    assert title.startswith("Inconclusive: the environment the")
    assert title.endswith((" the…", " environment…"))
    assert len(title) <= 140


@pytest.mark.parametrize(
    ("names", "own"),
    [
        (["C::test_x_0", "C::test_x_11_on_a_day", "C::test_x2"], ["C::test_x_0", "C::test_x_11_on_a_day", "C::test_x2"]),
        (["C::test_x", "C::test_x_2"], ["C::test_x"]),  # the second is a test of its own
        (["C::test_x_y", "C::test_x_0y", "D::test_x_0", "test_x_0"], []),
    ],
)  # fmt: skip
def test_a_test_that_is_made_of_each_case_has_its_number_behind_its_name(
    names: list[str], own: list[str]
) -> None:
    path = "tests/test_a.py"
    test = ChangedTest(f"{path}::C::test_x", path, "test_x")
    ended = {f"{path}::{name}": "passed" for name in names}
    assert list(_select(test, ended)) == [f"{path}::{name}" for name in own]


@pytest.mark.parametrize(
    ("names", "own"),
    [
        (["tests/test_a.py::test_x", "tests/test_a.py::test_y"], ["tests/test_a.py::test_x"]),
        (["api/tests/test_a.py::test_x[1]"], ["api/tests/test_a.py::test_x[1]"]),
        (["other/tests/test_a.py::test_x", "st_a.py::test_x"], []),
        (["api/tests/test_a.py::Sub::test_x"], ["api/tests/test_a.py::Sub::test_x"]),
    ],
)
def test_a_project_in_a_folder_calls_its_tests_by_the_paths_below_it(
    names: list[str], own: list[str]
) -> None:
    test = ChangedTest("api/tests/test_a.py::test_x", "api/tests/test_a.py", "test_x")
    assert list(_select(test, dict.fromkeys(names, "passed"))) == own


def test_a_test_of_another_folder_is_none_of_the_changed_ones() -> None:
    test = ChangedTest("api/tests/test_a.py::test_x", "api/tests/test_a.py", "test_x")
    ended = {"api/tests/test_a.py::test_x[1]": "passed", "tests/test_a.py::test_x": "failed"}
    assert _select(test, ended) == {"api/tests/test_a.py::test_x[1]": "passed"}


@pytest.mark.parametrize(
    ("path", "text", "titles"),
    [
        ("a.test.js", 'it("says \\"hi\\" twice", () => {});\nit("adds", () => {});', ["adds"]),
        ("a.test.ts", "it(`takes ${n}`, () => {});\nit(`adds`, () => {});", ["adds"]),
        ("a_test.go", "package a\n\nfunc TestMain(m *testing.M) {}\n\nfunc Testify() {}\n\nfunc TestA(t *testing.T) {}\n\nfunc Test_b(t *testing.T) {}\n", ["TestA", "Test_b"]),
        ("tests/a.rs", "use x::*;\n\nfn help() {}\n\n#[tokio::test]\n#[ignore]\nasync fn waits() {}\n\nmod rows {\n    #[test]\n    fn adds() {}\n}\n", ["waits", "adds"]),
    ],
)  # fmt: skip
def test_the_tests_of_a_file_are_those_whose_whole_title_stands_there(
    path: str, text: str, titles: list[str]
) -> None:
    tools = find_file_tests(path)
    assert tools is not None
    assert list(tools.list_tests(text)) == titles


def test_a_file_of_titles_made_at_run_time_is_judged_as_a_whole() -> None:
    text = "it.each([1, 2])('takes %s', (n) => { expect(take(n)).toBe(1); });\n"
    (found,) = _find_changed(PatchedFile("a.test.js", None, text))
    assert (found.test, found.function) == ("a.test.js", "")
    assert not list(_find_changed(PatchedFile("a.test.js", None, "// it('adds') is to come\n")))


def test_a_title_asserts_nothing() -> None:
    tools = find_file_tests("a.test.js")
    assert tools is not None
    listed = tools.list_tests('it("should add", () => { add(1, 2); });\nit("should take", () => { expect(take(1)).toBe(1); });\n')  # fmt: skip
    assert {title: test.asserts for title, test in listed.items()} == {"should add": False, "should take": True}  # fmt: skip


@pytest.mark.parametrize(
    ("path", "text", "faults"),
    [
        ("a.js", "const x = y;\nmain();", ["{}"]),
        ("a.js", "const y = true === x;\n", ["!==", "false"]),
        ("a.js", "const y: number = 1 + x;\n", ["-", "2"]),
        ("a.go", "package a\n\nfunc A() {\n\tmain()\n}\n", ["{}"]),
        ("a.rs", "fn a(x: bool) {\n    if x {\n        b();\n    }\n}\n", ["!(x)", "{}"]),
        ("a.rs", "fn a() {\n    if let Some(x) = c() {\n        x\n    }\n}\n", []),
        (
            "a.rs",
            "#[cfg(test)]\nmod tests {\n    #[test]\n    fn a() {\n        b();\n    }\n}\n",
            [],
        ),
    ],
)
def test_a_fault_is_a_text_that_still_parses(path: str, text: str, faults: list[str]) -> None:
    make_mutants = find_mutation(path)
    assert make_mutants is not None
    edits = make_mutants(text, range(1, text.count("\n") + 2))
    assert sorted(edit.new for edit in edits) == sorted(faults)
    for edit in edits:
        assert parses(path, edit.apply_to(text))
        assert edit.apply_to(text).splitlines()[edit.line - 1].strip()


def test_the_title_of_a_javascript_test_may_look_like_a_case() -> None:
    test = ChangedTest("a.test.js::takes [0]", "a.test.js", "takes [0]")
    ended = {"a.test.js::takes [0]": "failed", "a.test.js::takes [1]": "passed"}
    assert _select(test, ended) == {"a.test.js::takes [0]": "failed"}


RUNS = Path(__file__).parent.parent / "data" / "test_files"


def test_the_path_of_a_test_file_is_no_markup_in_the_check() -> None:
    path = "tests/@octocat ![x](https://evil.example/p.png) <b>/test_a.py"
    test = TestProof(f"{path}::test_a", "fail", "pass", "proven", "assert 1 == 2")
    mutants = (TriedMutant("calc.py", 4, "return 1", None),)
    check = proof_check("a" * 40, ProofResult("proven", "red", (test,), mutants), required=False)
    assert f"not noticed by `{path}`" in check.summary
    assert check.summary.count("@octocat") == check.summary.count("`tests/@octocat")


@pytest.mark.parametrize(
    ("runner", "path", "ended", "said"),
    [
        (
            "vitest",
            "test/prices.test.ts",
            {"adds": "passed", "is a share [of 100]": "failed", "is a number": "passed"},
            "AssertionError: expected 190 to be 180",
        ),
        (
            "jest",
            "test/prices.test.js",
            {"adds": "passed", "is a share [of 100]": "failed", "is a number": "passed"},
            "expect(received).toBe(expected)",
        ),
        (
            "mocha",
            "test/prices.test.js",
            {"adds": "passed", "is a share [of 100]": "failed", "is a number": "passed"},
            "AssertionError: expected 190 to equal 180",
        ),
        (
            "node",
            "test/prices.test.js",
            {"adds": "passed", "takes the discount": "failed", "is skipped": "skipped"},
            "AssertionError [ERR_ASSERTION]: 190 == 180",
        ),
        (
            "go",
            "limit/limit_test.go",
            {"TestTake": "passed", "TestRows": "failed", "TestLater": "skipped"},
            "got none of 1",
        ),
        (
            "rust",
            "tests/receipts.rs",
            {
                "takes_the_discount_off": "passed",
                "a_discount_is_at_most_the_sum": "failed",
                "nothing_is_cheap": "passed",
                "later": "skipped",
            },
            "assertion `left == right` failed",
        ),
    ],
)
def test_how_each_test_of_a_file_ended_is_read_from_what_its_runner_prints(
    runner: str, path: str, ended: dict[str, str], said: str
) -> None:
    tools = find_file_tests(path)
    assert tools is not None
    text = (RUNS / f"{runner}.txt").read_text("utf-8")
    words, failures = tools.read_results(text, {path: list(ended)})
    assert {title: words.get(f"{path}::{title}") for title in ended} == ended
    (red,) = (f"{path}::{title}" for title, word in ended.items() if word == "failed")
    first = next(one for one in failures if one.test == red)
    assert first.message.startswith(said)
    assert _classify_failure(first, frozenset()).kind == "assertion"


@pytest.mark.parametrize(
    ("script", "command"),
    [
        ("vitest run", "env  vitest run --reporter=verbose test/a.test.js"),
        (
            "tsc && NODE_ENV=test jest -i",
            "env NODE_ENV=test jest --ci --verbose --runTestsByPath test/a.test.js",
        ),
        ("cross-env TZ=UTC mocha 'test/**'", "env TZ=UTC mocha --reporter spec test/a.test.js"),
        (
            "node --import tsx --enable-source-maps --test test/*.js",
            "env  node --import tsx --enable-source-maps --test --test-reporter=spec test/a.test.js",
        ),
    ],
)
def test_one_file_is_run_by_the_runner_of_the_package_that_it_is_in(
    script: str, command: str
) -> None:
    tools = find_file_tests("web/test/a.test.js")
    assert tools is not None
    files = {"web/package.json": json.dumps({"scripts": {"test": script}})}
    called = tools.run_files("npm test", ["web/test/a.test.js"], files.get)
    assert called is not None
    assert "/web; " in called[-1]
    assert f"; {command}) 2>&1" in called[-1]
    beside = tools.run_files("cd other && npx vitest run", ["web/test/a.test.js"], files.get)
    assert beside == called, "the package's own runner, whatever the command calls elsewhere"
    many = [f"web/test/{number}.test.js" for number in range(12)]
    each = tools.run_files("npm test", many, files.get)
    assert each is not None
    assert each[-1].count("@regreen ") == 12
    unknown = {"web/package.json": '{"scripts": {"test": "react-scripts test"}}'}
    assert tools.run_files("npm test", ["web/test/a.test.js"], unknown.get) is None


@pytest.mark.parametrize(
    ("path", "target"),
    [("parts/shop/tests/receipts.rs", "receipts"), ("parts/shop/tests/web/main.rs", "web")],
)
def test_a_test_target_of_cargo_is_named_after_its_file(path: str, target: str) -> None:
    tools = find_file_tests(path)
    assert tools is not None
    called = tools.run_files("cargo test", [path], {"parts/shop/Cargo.toml": ""}.get)
    assert called is not None
    assert "/parts/shop; " in called[-1]
    assert f"; cargo test --offline --test {target}) 2>&1" in called[-1]


def test_calls_are_told_by_module_and_whole_arguments_and_give_rounded_floats(
    tmp_path: Path,
) -> None:
    made = Repository(tmp_path / "repo")
    source = "def show(x):\n    return {}\n"
    base = made.commit("base", {"a.py": source.format("x"), "b.py": source.format("x * 1")})
    long = "y" * 300
    test = f"import a\n\na.show('{long}a')\na.show('{long}b')\n" + "".join(
        f"a.show({number})\n"
        for number in ("1.0", "0.9999999999999999", "0.0", "-5.5e-17", "1", "'1.100000'", "2.5e30", "[0.3000000001, 5e-13]")
    )  # fmt: skip
    head = made.commit(
        "head",
        {"a.py": source.format("[x][0]"), "b.py": source.format("[x]"), "test_a.py": test},
    )  # fmt: skip
    git = made.open()
    rows = list_changed_calls(git, head, divide_change(git, base, head).sources)
    assert [len(row["calls"]) for row in rows] == [10, 10]
    command, files = PYTHON_TESTS.call_functions([sys.executable], rows, 20)
    for name, data in files.items():
        (made.path / name).write_bytes(data)
    done = subprocess.run(command, cwd=made.path, capture_output=True, text=True, check=False)
    calls, _ = PYTHON_TESTS.read_calls(done.stdout)
    assert sum(call.startswith(f"a.show('{long[:100]}") for call in calls) >= 2
    assert (calls["a.show(1.0)"], calls["b.show(1.0)"]) == ("1.0", "[1.0]")
    assert calls["a.show(0.9999999999999999)"] == "1.0"
    assert calls["a.show(-5.5e-17)"] == calls["a.show(0.0)"] == "0.0"
    assert (calls["a.show(1)"], calls["a.show('1.100000')"]) == ("1", "'1.100000'")
    assert calls["a.show(2.5e+30)"] == "2.5e+30"
    # a change of meaning, not of order: the tenth digit, or a small number
    assert calls["a.show([0.3000000001, 5e-13])"] == "[0.3000000001, 5e-13]"


@pytest.mark.parametrize(
    ("output", "read"),
    [
        ("regreen-calls all {\"a\": \"1\"}\n", ({"a": "1"}, False)),
        # a module that is loaded may print such a line too, and speaks first
        ("regreen-calls all {\"a\": \"0\"}\nregreen-calls cut {\"a\": \"1\"}\n", ({"a": "1"}, True)),
        ('regreen-calls all {"a":' + "[" * 50_000 + "}\n", ({}, False)),
        ("regreen-calls all {a}\n", ({}, False)),
        ("", ({}, False)),
    ],
)  # fmt: skip
def test_what_made_up_calls_gave_may_be_anything(
    output: str, read: tuple[dict[str, str], bool]
) -> None:
    assert PYTHON_TESTS.read_calls(output) == read


@pytest.mark.parametrize(("functions", "is_cut"), [(1, False), (6, True)])
def test_made_up_calls_that_give_too_much_are_left_out_and_that_is_said(
    functions: int, is_cut: bool, tmp_path: Path
) -> None:
    names = [f"f{number}" for number in range(functions)]
    text = "".join(f"def {name}(a: str, b: int):\n    return '\u00e9' * 200\n" for name in names)
    row = {"path": "m.py", "modules": ["m"], "calls": [], "constants": []}
    text += "def last(a: str):\n    open('called', 'w').close()\n"
    rows = [{**row, "function": name} for name in (*names, "last")]
    command, files = PYTHON_TESTS.call_functions((sys.executable,), rows, 20)
    for name, data in {**files, "m.py": text.encode()}.items():
        (tmp_path / name).write_bytes(data)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    calls, told = PYTHON_TESTS.read_calls(done.stdout)
    assert told == is_cut
    assert all(call in str(sorted(calls)) for call in ("f0('a', ", "f0('0', "))
    assert (len(calls) < 20 * functions) == is_cut
    assert (tmp_path / "called").exists() != is_cut
