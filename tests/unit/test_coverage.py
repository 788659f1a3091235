from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from regreen.domain.ports import Sandbox
from regreen.domain.repo_config import RepoConfig, ReviewConfig
from regreen.languages.python.test_tools import PythonCoverage
from regreen.languages.toolchains import TableCoverage
from regreen.runs.trial import Trial
from tests.contract.sandboxes import usual_sandbox
from tests.unit.changes import Files, Story

BEFORE: Files = {
    "shop/__init__.py": "",
    "shop/price.py": "def price(n):\n    return n\n",
    "tests/test_price.py": "from shop.price import price\n\nassert price(2) == 2\n",
}
AFTER = """\
def price(n, vip=False):
    if vip:
        discount = 0.1
        return n * (1 - discount)
    if n < 0:
        raise ValueError(n)
    return n
"""
RUN = Trial(
    command=("sh", "-c", "PYTHONPATH=$PYTHONPATH:. python3 tests/test_price.py"), timeout=120
)


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path / "repo")


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    return usual_sandbox()


@pytest.mark.sandbox
def test_new_lines_that_no_test_runs_are_named(story: Story, sandbox: Sandbox) -> None:
    story.change(BEFORE, {"shop/price.py": AFTER, "shop/unused.py": "x = 1\ny = 2\n"})
    result = story.review(sandbox=sandbox, tests=RUN, run_tests=True)
    assert result.coverage is not None, result.skipped
    assert {u.path: u.lines for u in result.coverage.uncovered} == {
        "shop/price.py": (3, 4, 6),
        "shop/unused.py": (1, 2),
    }
    assert (result.coverage.new_lines, result.coverage.covered) == (8, 3)
    assert set(result.coverage.measured) == {"shop/price.py", "shop/unused.py"}
    assert result.scores["coverage"] == 38
    assert "3 of 8" in result.score_notes["coverage"]
    assert not [f for f in result.findings if f.dimension == "coverage"], "coverage is no comment"


@pytest.mark.sandbox
def test_failing_tests_are_said_beside_the_score(story: Story, sandbox: Sandbox) -> None:
    story.change(BEFORE, {"shop/price.py": AFTER.replace("return n\n", "return n + 1\n")})
    result = story.review(sandbox=sandbox, tests=RUN, run_tests=True)
    assert "the tests failed (exit 1)" in result.score_notes["coverage"]


@pytest.mark.sandbox
def test_failing_tests_are_the_first_thing_said(story: Story, sandbox: Sandbox) -> None:
    test = "import unittest\nfrom shop.price import price\n\nclass PriceTest(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(price(2), 2)\n"
    before: Files = {**BEFORE, "tests/__init__.py": "", "tests/test_price.py": test}
    story.change(before, {"shop/price.py": AFTER.replace("return n\n", "return n + 1\n")})
    command = ("python3", "-m", "unittest", "discover", "-s", "tests", "-t", ".")
    result = story.review(sandbox=sandbox, tests=Trial(command, timeout=120), run_tests=True)
    assert result.tests is not None
    assert [f.test for f in result.tests.failures] == ["tests.test_price.PriceTest.test_it"]
    assert result.summary.startswith("The tests fail (1 test: tests.test_price.PriceTest.test_it).")
    assert (result.risk, result.scores["correctness"]) == ("high", 40)


@pytest.mark.sandbox
def test_what_fails_without_the_change_too_is_not_charged_to_it(
    story: Story, sandbox: Sandbox
) -> None:
    test = "import unittest\nfrom shop.price import price\n\nclass PriceTest(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(price(2), 2)\n\n    def test_old(self):\n        self.assertEqual(price(2), 3)\n"
    before: Files = {**BEFORE, "tests/__init__.py": "", "tests/test_price.py": test}
    run = Trial(("python3", "-m", "unittest", "discover", "-s", "tests", "-t", "."), timeout=120)
    story.change(before, {"shop/price.py": AFTER})
    result = story.review(sandbox=sandbox, tests=run, run_tests=True)
    assert result.tests is not None
    assert result.tests.fail_on_base == ("tests.test_price.PriceTest.test_old",)
    assert result.summary.startswith("The tests fail, without the change too (1 test: ")
    assert (result.risk, result.scores["correctness"]) == ("low", 100)
    assert "not counted" in result.score_notes["correctness"]

    story.change({}, {"shop/price.py": AFTER.replace("return n\n", "return n + 2\n")})
    result = story.review(sandbox=sandbox, tests=run, run_tests=True)
    assert result.tests is not None
    assert len(result.tests.failing) == 2
    assert result.tests.fail_on_base == ("tests.test_price.PriceTest.test_old",)
    assert result.tests.others_on_base == {"tests.test_price.PriceTest.test_it": "passes"}
    assert result.summary.startswith("The tests fail (2 tests: ")
    assert (result.risk, result.scores["correctness"]) == ("high", 40)


_FIRST_MADE = """import unittest
from shop import price

class FirstTest(unittest.TestCase):
    def test_a(self):
        price.MADE.append(1)

    def test_b(self):
        self.assertEqual(price.price(2), len(price.MADE) + 1)
"""


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("test", "before", "after", "there"),
    [
        # alone, the test fails for what does not run before it, with the same words
        (_FIRST_MADE, "MADE = []\n\ndef price(n):\n    return n\n", "MADE = []\n\ndef price(n):\n    return n + 1\n", "passes"),
        # without the change it fails for something else
        (
            "import unittest\nfrom shop import price\n\nclass FirstTest(unittest.TestCase):\n    def test_b(self):\n        self.assertEqual(price.price(2), 2)\n",
            "def price(n):\n    return undefined\n",
            "def price(n):\n    return n + 1\n",
            "fails otherwise",
        ),
    ],
    ids=["fails alone", "fails otherwise"],
)  # fmt: skip
def test_what_does_not_fail_alike_without_the_change_is_charged_to_it(
    story: Story, sandbox: Sandbox, *, test: str, before: str, after: str, there: str
) -> None:
    files = {"shop/__init__.py": "", "tests/__init__.py": "", "tests/test_price.py": test}
    story.change({**files, "shop/price.py": before}, {"shop/price.py": after})
    run = Trial(("python", "-m", "pytest", "-q"), setup="pip install -q pytest", timeout=120)
    result = story.review(sandbox=sandbox, tests=run, run_tests=True)
    assert result.tests is not None
    assert result.tests.failing == ("tests/test_price.py::FirstTest::test_b",)
    assert (result.tests.fail_on_base, result.scores["correctness"]) == ((), 40)
    assert result.tests.others_on_base == {"tests/test_price.py::FirstTest::test_b": there}


_OLD = (
    "import unittest\n\nclass OldTest(unittest.TestCase):\n    def test_old(self):\n        pass\n"
)


@pytest.mark.sandbox
def test_what_passes_beside_a_failing_test_of_its_file_is_known_to_pass(
    story: Story, sandbox: Sandbox
) -> None:
    test = "from shop import price\n\n\ndef test_old():\n    assert price.price(2) == 3\n\n\ndef test_new():\n    assert price.price(2) == 2\n"
    story.change(
        {**BEFORE, "tests/test_price.py": test},
        {"shop/price.py": AFTER.replace("return n\n", "return n + 2\n")},
    )
    run = Trial(("python", "-m", "pytest", "-q"), setup="pip install -q pytest", timeout=120)
    result = story.review(sandbox=sandbox, tests=run, run_tests=True)
    assert result.tests is not None
    assert result.tests.fail_on_base == ("tests/test_price.py::test_old",)
    assert result.tests.others_on_base == {"tests/test_price.py::test_new": "passes"}


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("base", "words"),
    [
        ({}, ("tests.test_new",)),
        # the run of the merge base is green and names no test
        ({"tests/test_old.py": _OLD}, ("discover", "-q", "-s", "tests")),
        ({"tests/test_old.py": _OLD, "tests/test_new.py": _OLD}, ("-q",)),
    ],
)
def test_a_failing_test_that_the_merge_base_lacks_was_not_run_there(
    base: Files, words: tuple[str, ...], story: Story, sandbox: Sandbox
) -> None:
    test = "import unittest\n\nclass NewTest(unittest.TestCase):\n    def test_it(self):\n        self.fail()\n"
    before: Files = {**BEFORE, "tests/__init__.py": "", **base}
    story.change(before, {"shop/price.py": AFTER, "tests/test_new.py": test})
    run = Trial(("python3", "-m", "unittest", *words), timeout=120)
    result = story.review(sandbox=sandbox, tests=run, run_tests=True)
    assert result.tests is not None
    assert set(result.tests.others_on_base.values()) == {"not run"}


@pytest.mark.sandbox
def test_tests_that_never_start_python_leave_no_score(story: Story, sandbox: Sandbox) -> None:
    story.change(BEFORE, {"shop/price.py": AFTER})
    result = story.review(sandbox=sandbox, tests=Trial(("true",), timeout=60), run_tests=True)
    assert result.scores["coverage"] is None
    assert any(s.reviewer == "coverage" and "no coverage" in s.reason for s in result.skipped)


@pytest.mark.parametrize(("wanted", "reason"), [(False, "not asked for"), (True, "no sandbox")])
def test_without_a_run_the_reason_is_said(story: Story, wanted: bool, reason: str) -> None:
    story.change(BEFORE, {"shop/price.py": AFTER})
    result = story.review(tests=RUN, run_tests=wanted)
    assert result.scores["coverage"] is None
    assert any(s.reviewer == "coverage" and reason in s.reason for s in result.skipped)
    assert result.summary.startswith("No findings (no model; tests not run).")


def test_tests_that_nobody_wants_or_needs_are_not_missed(story: Story) -> None:
    config = RepoConfig(review=ReviewConfig(run_tests=False))
    story.change(BEFORE, {"shop/price.py": AFTER})
    assert story.review(config=config).summary.startswith("No findings (no model).")
    story.change(BEFORE, {"style.css": "a { color: red }\n"})
    assert story.review().summary.startswith("No findings (no model).")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}x",
        b'{"a": 1}',
        b'{"a": {"statements": ["x"]}}',
        b"[" * 100_000,
        b'{"a": {"statements": [1e999], "missing": [], "branches": [], "tests": []}}',
    ],
)
def test_what_the_box_wrote_may_be_anything(data: bytes) -> None:
    assert PythonCoverage().parse_report(data) is None


CART = "// what is bought\nexport function total(prices) {\n  return prices.reduce((a, b) => a + b, 0);\n}\n"
CART_AFTER = (
    CART
    + """\

/* what is
   taken off */
export function discount(price, vip) {
  if (vip) {
    const tenth = price / 10;
    return price - tenth;
  }
  return price;
}

export const unused = (x) => {
  return x + 1;
};
"""
)
CART_TEST = """\
import assert from "node:assert";
import test from "node:test";
import { discount, total } from "../src/cart.js";

test("total", () => assert.equal(total([1, 2]), 3));
test("discount", () => assert.equal(discount(2, false), 2));
"""


@pytest.mark.sandbox
def test_new_lines_of_javascript_are_measured_without_a_package(
    story: Story, sandbox: Sandbox
) -> None:
    before: Files = {"package.json": '{"type": "module"}', "src/cart.js": CART}
    after: Files = {
        "src/cart.js": CART_AFTER,
        "src/never.js": "export const never = 1;\n",
        "test/cart.test.js": CART_TEST,
    }
    story.change(before, after)
    run = Trial(("node", "--test", "test/"), timeout=60)
    result = story.review(sandbox=sandbox, tests=run, run_tests=True)
    assert result.coverage is not None, result.skipped
    assert {u.path: u.lines for u in result.coverage.uncovered} == {
        "src/cart.js": (10, 11, 17),
        "src/never.js": (1,),
    }
    assert (result.coverage.new_lines, result.coverage.covered) == (8, 4)


@pytest.mark.sandbox
def test_javascript_that_was_transformed_is_not_measured(story: Story, sandbox: Sandbox) -> None:
    loader = 'const fs = require("fs");\nrequire.extensions[".js"] = (m, f) => m._compile("/**/" + fs.readFileSync(f, "utf8"), f);\n'
    start = 'require("./loader.cjs");\nrequire("./a.js");\nimport("./b.mjs");\n'
    before: Files = {"loader.cjs": loader, "run.cjs": start, "a.js": "1;\n", "b.mjs": "1;\n"}
    change = "1;\nif (2 > 3) {\n  console.log(4);\n}\n"
    story.change(before, {"a.js": change, "b.mjs": change})
    run = Trial(("node", "run.cjs"), timeout=60)
    result = story.review(sandbox=sandbox, tests=run, run_tests=True)
    assert result.coverage is not None, result.skipped
    assert {u.path: u.lines for u in result.coverage.uncovered} == {"b.mjs": (3,)}


def test_an_lcov_trace_adds_up_the_records_of_a_file() -> None:
    text = "TN:\nSF:/work/a.ts\nDA:1,0\nDA:2,0\nend_of_record\nSF:/work/a.ts\nDA:1,3\nDA:2,0\nend_of_record\n"
    measured = TableCoverage("javascript").parse_report(text.encode())
    assert measured is not None
    assert measured["a.ts"].statements == {1, 2}
    assert measured["a.ts"].missing == {2}
    assert TableCoverage("javascript").parse_report(b"\xff[]") is None


DATA = Path(__file__).parent.parent / "data" / "coverage"


def read_files(place: Path) -> Files:
    return {
        p.relative_to(place).as_posix(): p.read_bytes() for p in place.rglob("*") if p.is_file()
    }


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        # without the lines that hold a brace, a comment or a declaration only
        ("go test ./...", ({"never/never.go": (4,), "price/price.go": (10, 15)}, 6)),
        ("cargo test --offline", ({"src/lib.rs": (8, 11, 12, 18, 19, 20)}, 12)),
        # JaCoCo's own report of these lines, as the project's build would leave it
        ("mkdir -p target/site/jacoco && cp jacoco.xml target/site/jacoco/", ({"src/main/java/app/Prices.java": (6, 12)}, 5)),
    ],
    ids=["go", "rust", "java"],
)  # fmt: skip
def test_new_lines_are_measured_by_the_toolchain(
    command: str, expected: object, story: Story, sandbox: Sandbox, request: pytest.FixtureRequest
) -> None:  # fmt: skip
    if shutil.which(command.split(maxsplit=1)[0]) is None:
        pytest.skip(f"{command.split(maxsplit=1)[0]} is not on this machine")
    place = DATA / request.node.callspec.id
    story.change(read_files(place / "before"), read_files(place / "after"))
    run = Trial(("sh", "-c", command), timeout=120)
    result = story.review(sandbox=sandbox, tests=run, run_tests=True)
    if result.coverage is None and any("llvm-tools" in s.reason for s in result.skipped):
        pytest.skip("no llvm-profdata here reads what this rustc writes")
    assert result.coverage is not None, result.skipped
    uncovered = {u.path: u.lines for u in result.coverage.uncovered}
    assert (uncovered, result.coverage.new_lines) == expected


@pytest.mark.sandbox
def test_a_go_test_that_fails_only_because_it_is_measured_is_not_called_failing(
    story: Story, sandbox: Sandbox
) -> None:
    if shutil.which("go") is None:
        pytest.skip("go is not on this machine")
    flag = 'package {}\n\nimport "flag"\n\nvar Port = flag.Int("port", 1, "")\n'
    test = 'package a\n\nimport "testing"\n\nfunc TestPort(t *testing.T) {}\n'
    before: Files = {"go.mod": "module m\n\ngo 1.19\n"}
    one: Files = {"a/a.go": flag.format("a"), "a/a_test.go": test}
    story.change(before, {**one, "b/b.go": flag.format("b")})
    run = Trial(("sh", "-c", "go test ./..."), timeout=120)
    result = story.review(sandbox=sandbox, tests=run, run_tests=True)
    assert result.tests is not None
    assert result.tests.exit_code == 0
    (skipped,) = (s.reason for s in result.skipped if s.reviewer == "coverage")
    assert "a `go test` passes only without the measurement" in skipped


@pytest.mark.sandbox
def test_each_language_of_a_change_is_measured_or_named(story: Story, sandbox: Sandbox) -> None:
    before: Files = {**BEFORE, "package.json": '{"type": "module"}', "src/cart.js": CART}
    after: Files = {"shop/price.py": AFTER, "src/cart.js": CART_AFTER, "lib/a.go": "package a\n"}
    story.change(before, {**after, "test/cart.test.js": CART_TEST})
    command = "PYTHONPATH=$PYTHONPATH:. python3 tests/test_price.py && node --test test/"
    run = Trial(("sh", "-c", command), timeout=120)
    result = story.review(sandbox=sandbox, tests=run, run_tests=True)
    assert result.coverage is not None, result.skipped
    assert {u.path: u.lines for u in result.coverage.uncovered} == {
        "shop/price.py": (3, 4, 6),
        "src/cart.js": (10, 11, 17),
    }
    (skipped,) = (s.reason for s in result.skipped if s.reviewer == "coverage")
    assert skipped.startswith("the tests left no coverage of Go behind: no `go test` was run")
