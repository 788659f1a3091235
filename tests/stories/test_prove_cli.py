"""What a developer sees who types `regreen prove`, in a real repository with a real sandbox."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from regreen.cli import cli
from regreen.proofs.prove import ProofJob, ProofResult, prove_change
from regreen.runs.trial import Trial
from tests.stories.test_fix_resume import CountingSandbox
from tests.unit.repairs import SETUP, Repository, sandbox_or_skip

pytestmark = pytest.mark.sandbox
BEFORE = "def divide(a, b):\n    return a // b\n\n\ndef half(a):\n    return a / 2\n"
AFTER = """\
def divide(a, b):
    if b == 0:
        return None
    return a / b


def third(a):
    return a / 3


def half(a):
    return a / 2
"""
TESTS = """\
import calc


def test_divide():
    assert calc.divide(1, 2) == 0.5


def test_zero():
    assert calc.divide(1, 0) is None


def test_zero_hollow():
    assert calc.divide(1, 0) == calc.divide(1, 0)


def test_swallowed():
    try:
        assert calc.divide(1, 2) == 0.5
    except Exception:
        pass


def test_alarm():
    try:
        calc.divide(1, 0)
    except Exception:
        raise AssertionError("it failed")


def test_third():
    assert calc.third(9) == 3


def test_red():
    assert calc.divide(1, 2) == 1
"""


def _prove(made: Repository, base: str, *more: str) -> dict[str, Any]:
    options = ("--repo", str(made.path), "--base", base, "--setup", "true", "--format", "json")
    done = CliRunner().invoke(
        cli, ["prove", *options, *more], standalone_mode=False, catch_exceptions=False
    )
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """An empty repository, and a `REGREEN_HOME` of its own."""
    sandbox_or_skip()
    monkeypatch.setenv("REGREEN_HOME", str(tmp_path / "home"))
    return Repository(tmp_path / "repo")


def test_each_new_test_is_judged_by_how_it_ends_without_the_change(made: Repository) -> None:
    base = made.commit("base", {"calc.py": BEFORE, "conftest.py": ""})
    made.commit("divide", {"calc.py": AFTER, "tests/test_calc.py": TESTS})
    options = ("--repo", str(made.path), "--base", base, "--head", "HEAD", "--setup", SETUP, "--format", "json")  # fmt: skip
    done = CliRunner().invoke(cli, ["prove", *options, "--title", "Fix #7"], standalone_mode=False, catch_exceptions=False)  # fmt: skip
    document = json.loads(done.stdout)
    seen = {test["test"].partition("::")[2]: (test["base"], test["head"], test["verdict"]) for test in document["tests"]}  # fmt: skip
    assert seen == {
        "test_divide": ("fail", "pass", "proven"),
        "test_zero": ("fail", "pass", "proven"),
        "test_zero_hollow": ("error", "pass", "inconclusive"),
        "test_swallowed": ("pass", "pass", "not_discriminating"),
        "test_alarm": ("error", "pass", "inconclusive"),
        "test_third": ("missing", "pass", "proven"),
        "test_red": ("error", "fail", "inconclusive"),
    }
    assert (document["verdict"], done.return_value) == ("proven", 0)
    assert [(claim["text"], claim["holds"]) for claim in document["claims"]] == [("Fix #7", True)]
    assert {mutant["path"] for mutant in document["mutants"]} == {"calc.py"}
    assert any(mutant["killed_by"] for mutant in document["mutants"])
    lines = (made.path / "calc.py").read_text().splitlines()
    for mutant in document["mutants"]:
        above = [x for x in lines[: mutant["line"]] if x.startswith("def ")]
        assert above[-1].startswith(f"def {mutant['function']}(")
    words = ["replay", document["capsule"], "--repo", str(made.path)]
    again = CliRunner().invoke(cli, words, standalone_mode=False, catch_exceptions=False)
    assert (again.stdout.split()[0], again.return_value) == ("same", 0)


def test_a_function_that_no_test_runs_is_told_from_one_whose_faults_no_test_notices(
    made: Repository,
) -> None:
    functions = "".join(f"\n\ndef {name}(a, b):\n    if a > b:\n        return a\n    return b\n" for name in ("largest", "called", "spare"))  # fmt: skip
    test = "import calc\n\n\ndef test_largest():\n    calc.called(1, 2)\n    assert calc.largest(2, 1) == 2\n    assert calc.largest(1, 2) == 2\n"
    base = made.commit("base", {"calc.py": "LIMIT = 1\n", "conftest.py": ""})
    made.commit("largest", {"calc.py": "LIMIT = 1\n" + functions, "tests/test_calc.py": test})
    options = ("--repo", str(made.path), "--base", base, "--setup", SETUP, "--format")
    told = [CliRunner().invoke(cli, ["prove", *options, form], standalone_mode=False, catch_exceptions=False).stdout for form in ("json", "text")]  # fmt: skip
    faults = json.loads(told[0])["mutants"]
    assert {one["function"] for one in faults if not one["is_run"]} == {"spare"}
    assert {one["function"] for one in faults if one["killed_by"] is None} >= {"called", "spare"}
    assert "spare is not run by tests/test_calc.py" in told[1]
    listed = [int(line) for line in re.findall(r"^  calc\.py:(\d+):", told[1], re.MULTILINE)]
    first = f"LIMIT = 1\n{functions}".splitlines().index("def spare(a, b):") + 1
    assert listed
    assert max(listed) < first


@pytest.mark.parametrize("changed", [{"calc.py": AFTER}, {"tests/test_calc.py": TESTS}])
def test_a_change_with_nothing_to_prove_is_not_set_up(
    made: Repository, changed: dict[str, str]
) -> None:
    base = made.commit("base", {"calc.py": BEFORE})
    made.commit("divide", changed)
    options = ("--repo", str(made.path), "--base", base, "--setup", "exit 3", "--format", "json")
    done = CliRunner().invoke(cli, ["prove", *options, "--title", "Fix #7"], standalone_mode=False, catch_exceptions=False)  # fmt: skip
    document = json.loads(done.stdout)
    assert (document["verdict"], done.return_value) == ("nothing_to_prove", 0)
    assert document["environment"] is None
    assert [claim["text"] for claim in document["claims"]] == ["Fix #7"]


def test_the_tests_of_a_project_that_uses_unittest_are_judged_too(made: Repository) -> None:
    base = made.commit("base", {"calc.py": BEFORE, "test_half.py": "import unittest\n"})
    case = "import unittest\n\nimport calc\n\n\nclass Zero(unittest.TestCase):\n    def test_zero(self):\n        self.assertIsNone(calc.divide(1, 0))\n"
    made.commit("divide", {"calc.py": AFTER, "test_calc.py": case})
    (test,) = _prove(made, base)["tests"]
    assert (test["base"], test["head"], test["verdict"]) == ("fail", "pass", "proven")


def test_a_test_file_that_cannot_be_read_leaves_the_proof_open(made: Repository) -> None:
    base = made.commit("base", {"calc.py": BEFORE})
    old = "def test_zero():\n    print 'for Python 2'\n"
    made.commit("divide", {"calc.py": AFTER, "tests/test_calc.py": old})
    document = _prove(made, base)
    assert document["verdict"] == "inconclusive"
    assert document["reason"] == "tests/test_calc.py cannot be parsed as Python 3"


def test_a_section_that_pytest_calls_otherwise_today_keeps_no_test_from_running(
    made: Repository,
) -> None:
    old = "[metadata]\nname = calc\n\n[pytest]\nusefixtures = zero\n"
    fixture = "import pytest\n\n\n@pytest.fixture\ndef zero(request):\n    request.node.zero = 0\n"
    base = made.commit("base", {"calc.py": BEFORE, "setup.cfg": old, "tests/conftest.py": fixture})
    test = "import calc\n\n\ndef test_zero(request):\n    assert calc.divide(1, request.node.zero) is None\n"
    made.commit("divide", {"calc.py": AFTER, "tests/test_calc.py": test})
    (found,) = _prove(made, base)["tests"]
    assert (found["base"], found["head"], found["verdict"]) == ("fail", "pass", "proven")


def test_what_is_mended_in_a_manifest_is_proven_with_the_manifest_as_it_was(
    made: Repository,
) -> None:
    base = made.commit("base", {"calc.py": BEFORE, "pyproject.toml": "[project]\nname = 'calc'\n"})
    script = "[project]\nname = 'calc'\nscripts = {calc = 'calc:main'}\n"
    test = "from pathlib import Path\n\n\ndef test_script():\n    assert 'calc:main' in Path('pyproject.toml').read_text()\n"
    main = BEFORE + "\n\ndef main():\n    print(half(2))\n"
    made.commit("script", {"calc.py": main, "pyproject.toml": script, "tests/test_calc.py": test})
    document = _prove(made, base)
    (found,) = document["tests"]
    assert (found["base"], found["head"], found["verdict"]) == ("fail", "pass", "proven")
    words = ["replay", document["capsule"], "--repo", str(made.path)]
    again = CliRunner().invoke(cli, words, standalone_mode=False, catch_exceptions=False)
    assert again.stdout.split()[0] == "same"


def test_lines_for_another_python_say_nothing_of_a_test(made: Repository) -> None:
    base = made.commit("base", {"calc.py": BEFORE})
    old = BEFORE.replace(
        "    return a / 2\n",
        "    if sys.version_info < (3,):\n        return a / 2.0\n    return a / 2\n",
    )
    test = "import calc\n\n\ndef test_half():\n    assert calc.half(3) == 1.5\n"
    made.commit("fix", {"calc.py": f"import sys\n\n\n{old}", "tests/test_calc.py": test})
    (found,) = _prove(made, base)["tests"]
    assert (found["base"], found["head"], found["verdict"]) == ("pass", "pass", "inconclusive")
    assert "depends on the Python or the platform: calc.py:" in found["reason"]


def test_a_test_without_an_assertion_that_is_only_written_otherwise_asks_nothing(
    made: Repository,
) -> None:
    old = "import calc\n\n\ndef test_half():\n    result = calc.half(2)\n"
    base = made.commit("base", {"calc.py": BEFORE, "tests/test_calc.py": old})
    new = old.replace("result = ", "")
    made.commit("lint", {"calc.py": BEFORE.replace("a / 2", "a * 0.5"), "tests/test_calc.py": new})
    (test,) = _prove(made, base)["tests"]
    assert (test["base"], test["verdict"]) == ("pass", "nothing_to_prove")


def test_a_test_that_does_not_end_without_the_change_proves_it(made: Repository) -> None:
    before = "def drain(rows):\n    while rows:\n        pass\n    return len(rows)\n"
    base = made.commit("base", {"calc.py": before})
    test = "import calc\n\n\ndef test_empty():\n    assert calc.drain([]) == 0\n\n\ndef test_drain():\n    assert calc.drain([1]) == 0\n\n\ndef test_more():\n    assert calc.drain([1, 2]) == 0\n"
    after = before.replace("pass", "rows.pop()")
    head = made.commit("drain", {"calc.py": after, "tests/test_calc.py": test})
    trial = Trial(("python", "-m", "pytest"), setup=SETUP, timeout=60)
    job = ProofJob(trial, base, head, mutants=0, stuck_seconds=8)
    result = prove_change(job, git=made.open(), sandbox=sandbox_or_skip())
    found = {one.test.partition("::")[2]: (one.verdict, one.reason) for one in result.tests}
    assert found["test_drain"][0] == "proven"
    assert "it does not end in 8 s" in found["test_drain"][1]
    assert found["test_empty"][0] == "nothing_to_prove"
    assert found["test_more"][0] == "inconclusive"
    assert (
        "tests/test_calc.py::test_drain, which runs before it, does not end"
        in found["test_more"][1]
    )


COMPILED = """\
from pathlib import Path

assert Path(__file__).with_name("fast.so").exists(), "it is not built"
"""


@pytest.mark.parametrize(
    ("start", "build", "verdict", "why"),
    [
        ("", "true", "nothing_to_prove", "notices faults in the changed lines"),
        (COMPILED, "cd /env/lib/python3*/site-packages/calc && touch fast.so", "inconclusive", "could not be tried"),
    ],
)  # fmt: skip
def test_faults_are_put_into_the_tree_where_a_copy_of_it_is_installed(
    start: str, build: str, verdict: str, why: str, made: Repository
) -> None:
    manifest = '[project]\nname = "calc"\nversion = "1"\n[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
    files = {"pyproject.toml": manifest, "src/calc/__init__.py": start + BEFORE}
    base = made.commit("base", {**files, "tests/test_calc.py": ""})
    test = "import calc\n\n\ndef test_half():\n    assert calc.half(3) == 1.5\n"
    files["src/calc/__init__.py"] = (start + BEFORE).replace("a / 2", "a * 0.5")
    made.commit("faster", {**files, "tests/test_calc.py": test})
    setup = (
        f"pip install -q pytest setuptools wheel\npip install -q --no-build-isolation .\n{build}"
    )
    (found,) = _prove(made, base, "--setup", setup)["tests"]
    assert (found["base"], found["head"], found["verdict"]) == ("pass", "pass", verdict)
    assert why in found["reason"]


def test_four_runs_look_up_two_environments_and_large_tests_have_no_capsule(
    made: Repository,
) -> None:
    base = made.commit("base", {"calc.py": BEFORE})
    test = "import calc\n\n\ndef test_zero():\n    assert calc.divide(1, 0) is None\n"
    trial = Trial(("python", "-m", "pytest"), setup=SETUP, timeout=60)

    def prove(text: str) -> tuple[ProofResult, CountingSandbox]:
        head = made.commit("divide", {"calc.py": AFTER, "tests/test_calc.py": text})
        sandbox = CountingSandbox(sandbox_or_skip())
        job = ProofJob(trial, base, head, mutants=0)
        return prove_change(job, git=made.open(), sandbox=sandbox), sandbox

    small, sandbox = prove(test)
    assert (small.verdict, small.capsule is not None) == ("proven", True)
    assert (sandbox.prepared, sandbox.opened) == (3, 4)  # a box of the base says what it holds
    large, sandbox = prove(test + "# as generated test files are\n" * 8000)
    assert (large.verdict, large.capsule) == ("proven", None)
    assert (sandbox.prepared, sandbox.opened) == (2, 4)


def test_what_does_not_end_with_the_change_is_told_from_what_does_not_run(made: Repository) -> None:
    base = made.commit("base", {"calc.py": BEFORE})
    test = "import time\n\nimport calc\n\n\ndef test_half():\n    assert calc.half(2) == 1\n\n\ndef test_slow():\n    time.sleep(120)\n"
    head = made.commit("divide", {"calc.py": AFTER, "tests/test_calc.py": test})
    trial = Trial(("python", "-m", "pytest"), setup=SETUP, timeout=8)
    job = ProofJob(trial, base, head, mutants=0)
    result = prove_change(job, git=made.open(), sandbox=sandbox_or_skip())
    assert result.verdict == "inconclusive"
    assert "the tests did not end with the change (timeout)" in result.reason


CLAMP = """\
def clamp(x: int, low: int = 0, high: int = 10) -> int:
    {body}


def join(words, sep=", "):
    {join}


def share(a: float, b: float) -> float:
    return {share}
"""
CLAMP_TEST = """\
from calc import clamp, join


def test_clamp():
    assert clamp(3) == 3
    assert join(["a", "b"]) == "a, b"


def show_nothing():
    return clamp(None)
"""


@pytest.mark.parametrize(
    ("body", "join", "holds", "why"),
    [
        ("return max(low, min(high, x or 0))", "return sep.join(tuple(words))", True, "1 tests pass before and after, and 58 made-up calls of 3 changed functions give the same"),
        ("return max(low, min(x, 10))", "return sep.join(words)", False, "calc.clamp(2, high=0): 0 before, 2 now"),
        ("return max(low, min(x, high))", "return sep.join(sorted(words))", False, "calc.join(['b', 'a']): 'b, a' before, 'a, b' now"),
    ],
)  # fmt: skip
def test_a_refactoring_is_held_against_calls_that_no_test_makes(
    body: str, join: str, holds: bool, why: str, made: Repository
) -> None:
    before = CLAMP.format(body="return max(low, min(x, high))", join="return sep.join(words)", share="(a + b) / 3")  # fmt: skip
    base = made.commit("base", {"calc.py": before, "test_calc.py": CLAMP_TEST})
    made.commit("refactor", {"calc.py": CLAMP.format(body=body, join=join, share="a / 3 + b / 3")})
    document = _prove(made, base, "--title", "Refactor calc", "--setup", SETUP)
    (claim,) = document["claims"]
    assert (document["verdict"], claim["holds"], claim["reason"]) == (
        "nothing_to_prove",
        holds,
        why,
    )


SCRIPT = """\
export function discount(price, percent) {
  return %s;
}
%s"""
SCRIPT_TESTS = """\
import { test } from "node:test";
import assert from "node:assert";
import * as prices from "../prices.js";

test("takes a share off", () => {
  assert.equal(prices.discount(200, 10), 180);
});
test("is a number", () => {
  assert.ok(prices.discount(200, 10) !== null);
});
test("runs", () => {
  prices.discount(200, 10);
});
"""
HALF_TESTS = """\
import { describe, it } from "node:test";
import assert from "node:assert";
import { half } from "../prices.js";

describe("half", () => {
  it("halves", () => { assert.equal(half(8), 4); });
});
"""
PACKAGE = '{"name": "shop", "type": "module", "scripts": {"test": "node --test"}}'


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_each_new_test_of_a_javascript_change_is_judged(made: Repository) -> None:
    before = SCRIPT % ("price - percent", "")
    after = SCRIPT % ("price - (price * percent) / 100", "export const half = (a) => a / 2;\n")
    base = made.commit("base", {"package.json": PACKAGE, "prices.js": before})
    tests = {"test/prices.test.js": SCRIPT_TESTS, "test/half.test.js": HALF_TESTS}
    made.commit("discount", {"prices.js": after, **tests})
    document = _prove(made, base)
    seen = {test["test"]: (test["base"], test["verdict"]) for test in document["tests"]}
    assert seen == {
        "test/half.test.js::halves": ("missing", "proven"),
        "test/prices.test.js::takes a share off": ("fail", "proven"),
        "test/prices.test.js::is a number": ("pass", "nothing_to_prove"),
        "test/prices.test.js::runs": ("pass", "not_discriminating"),
    }
    assert all(mutant["killed_by"] for mutant in document["mutants"])


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_a_javascript_test_that_notices_no_fault_does_not_prove_the_change(
    made: Repository,
) -> None:
    base = made.commit("base", {"package.json": PACKAGE, "prices.js": SCRIPT % ("price - 1", "")})
    loose = SCRIPT_TESTS.replace(
        "prices.discount(200, 10), 180", "typeof prices.discount(9, 1), 'number'"
    )
    made.commit("discount", {"prices.js": SCRIPT % ("price - 2", ""), "test/a.test.js": loose})
    document = _prove(made, base)
    assert document["verdict"] == "not_discriminating"
    assert "with 'return price + 2;' in prices.js:2 too" in document["reason"]
