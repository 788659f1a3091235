"""What `regreen fix` calls fixed, and what waits for a person: a red default branch, and a commit that broke it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from regreen.cli import cli
from tests.unit.repairs import CALC, GREEN, SETUP, Repository, sandbox_or_skip

pytestmark = pytest.mark.sandbox
NO_GUARD = CALC.replace("    if not values:\n        return 0\n", "")
CHECK_LINES = "import sys\n\nbad = [line for line in open('pkg/calc.py') if len(line) > 60]\nsys.exit(bool(bad))\n"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    sandbox_or_skip()
    made = Repository(tmp_path / "repo")
    made.commit("start", {**GREEN, "ci/lines.py": CHECK_LINES})
    return made


def fixed(repository: Repository, *command: str, rungs: str = "recipe,revert") -> dict[str, Any]:
    argv = ["fix", "--repo", str(repository.path), "--setup", SETUP, "--no-model", "--rungs", rungs,
            "--format", "json", "--", *command]  # fmt: skip
    done = CliRunner().invoke(cli, argv, standalone_mode=False, catch_exceptions=False)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def waiting_for(document: dict[str, Any]) -> str:
    reasons = document["gate"]["reasons"] if document["gate"] else []
    return " ".join(one["detail"] for one in reasons if one["level"] == "needs_human")


def test_a_check_of_form_is_not_answered_by_a_revert(repository: Repository) -> None:
    repository.commit("add doubles", {"pkg/calc.py": CALC + f"\n\ndef double(n):\n    return n * 2  # {'twice ' * 9}\n"})  # fmt: skip
    document = fixed(repository, "python", "ci/lines.py")
    assert (document["outcome"], document["patch"]) == ("gave_up", None)
    assert (
        document["attempts"][-1]["summary"] == "a check of form is not answered by other behaviour"
    )
    assert document["hints"]


SPELLING = """import re, sys

for number, line in enumerate(open("pkg/calc.py"), 1):
    if word := re.search(r"\\b(?:reslt|valuez)\\b", line):
        right = {"reslt": "result", "valuez": "values"}[word[0]]
        sys.exit(f"pkg/calc.py [line {number}]: one reads <{word[0]}> here, and '{right}' is the house's word")
"""


@pytest.mark.slow
def test_what_an_error_suggests_is_tried_one_error_after_the_other_and_waits(
    repository: Repository,
) -> None:
    wrong = CALC.replace("result = 0", "reslt = 0").replace("if not values", "if not valuez")
    repository.commit("sums anew", {"pkg/calc.py": wrong, "ci/words.py": SPELLING})
    document = fixed(repository, "python", "ci/words.py")
    assert (document["outcome"], document["rung"]) == ("needs_human", "recipe")
    assert "found by trying what the error suggests" in waiting_for(document)
    lines = [line for line in document["patch"].splitlines() if line.startswith("+ ")]
    assert lines == ["+    result = 0", "+    if not values:"]


def test_a_revert_that_loses_nothing_is_published(repository: Repository) -> None:
    repository.commit("tidy up", {"pkg/calc.py": NO_GUARD})
    document = fixed(repository, "pytest", "-q", rungs="revert")
    assert (document["outcome"], waiting_for(document)) == ("fixed", "")


@pytest.mark.slow
def test_a_revert_that_loses_an_option_waits(repository: Repository) -> None:
    option = "\n\nOPTIONS = {'--plain': str}\n"
    repository.commit("print plainly", {"pkg/calc.py": NO_GUARD + option, "CHANGES.md": "`--plain`\n"})  # fmt: skip
    document = fixed(repository, "pytest", "-q", rungs="revert")
    assert document["outcome"] == "needs_human"
    assert "this would be lost: what CHANGES.md says of it" in waiting_for(document)
    whole = next(one["gate"] for one in document["attempts"] if "reverted" in one["summary"])
    assert "--plain of pkg/calc.py" in str(whole["reasons"])
    assert "OPTIONS" not in document["patch"]  # the smallest that works is offered


def test_of_a_commit_that_broke_its_own_tests_the_line_is_given_back(
    repository: Repository,
) -> None:
    then = "from pkg.calc import total\n\nRATES = (1, 2)\n\n\ndef test_rates():\n    assert total(RATES) == 3\n"
    now = then.replace("RATES = (1, 2)\n\n\n", "\n").replace("== 3", "== 1 + 2")
    repository.commit("rates", {"tests/test_rates.py": then})
    repository.commit("say it as a sum", {"tests/test_rates.py": now, "README.md": "Sums.\n"})
    repository.commit("more readme", {"README.md": "Sums of numbers.\n"})
    document = fixed(repository, "pytest", "-q", rungs="revert")
    assert (document["outcome"], document["rung"]) == ("needs_human", "revert")
    lines = [line for line in document["patch"].splitlines() if line[:1] in "+-"]
    assert "+RATES = (1, 2)" in lines
    assert not any("README" in line or "== 3" in line for line in lines)


@pytest.mark.slow
def test_taking_back_a_value_that_a_test_did_not_expect_waits(repository: Repository) -> None:
    stock = "def lines():\n    return ['apple', 'pear']\n"
    test = "import unittest\n\nfrom pkg.stock import lines\n\n\nclass TestLines(unittest.TestCase):\n    def test_lines(self):\n        self.assertEqual('\\n'.join(lines()), 'apple\\npear')\n"
    repository.commit("count", {"pkg/stock.py": stock, "tests/test_stock.py": test})
    repository.commit("more", {"pkg/stock.py": stock.replace("'pear'", "'plum'")})
    document = fixed(repository, "python", "-m", "pytest", "-q", rungs="revert,shrink,template")
    assert document["outcome"] == "needs_human"
    assert waiting_for(document) == "this would be lost: the value 'plum' of pkg/stock.py"
    ends = [(one["rung"], one["outcome"]) for one in document["attempts"][-2:]]
    assert ends == [("shrink", "skipped"), ("template", "skipped")]


@pytest.mark.slow
def test_a_revert_of_what_mended_something_waits(repository: Repository) -> None:
    repository.commit("tidy up\n\nFixes #7", {"pkg/calc.py": NO_GUARD})
    document = fixed(repository, "pytest", "-q", rungs="revert")
    assert document["outcome"] == "needs_human"
    assert "says that it repaired something: Fixes #7" in waiting_for(document)


@pytest.mark.slow
def test_a_test_that_never_passed_is_no_reason_for_a_revert(repository: Repository) -> None:
    hidden = CALC + "\n\n_READY = False\n"
    test = "import pytest\n\nfrom pkg import calc\n\n\ndef test_later():\n    if not calc._READY:\n        pytest.skip()\n    assert calc.mean([1]) == 2\n"
    repository.commit("prepare", {"pkg/calc.py": hidden, "tests/test_later.py": test})
    repository.commit("say that it is ready", {"pkg/calc.py": hidden.replace("False", "True")})
    document = fixed(repository, "pytest", "-q", rungs="revert")
    assert document["outcome"] == "needs_human"
    assert waiting_for(document) == "what fails did not pass before the change that is taken back"


@pytest.mark.slow
def test_tests_that_cannot_be_read_leave_a_revert_to_a_person(repository: Repository) -> None:
    repository.commit("half of it", {"tests/test_other.py": "import nothing_of_the_kind\n"})
    repository.commit("tidy up", {"pkg/calc.py": NO_GUARD})
    command = "cd . && python -m pytest -q tests/test_calc.py"
    document = fixed(repository, command, rungs="revert")
    assert document["outcome"] == "needs_human"
    assert waiting_for(document).startswith(f"not all of the project's tests ran: {command} (3 tests: ")  # fmt: skip


@pytest.mark.slow
def test_a_test_that_compares_with_a_recorded_file_leaves_the_revert_to_a_person(
    repository: Repository,
) -> None:
    wanted = "from pathlib import Path\n\nfrom pkg.calc import mean\n\n\ndef test_page():\n    assert str(mean([])) == Path('tests/page.txt').read_text()\n"
    repository.commit("record", {"tests/test_page.py": wanted, "tests/page.txt": "0", "tests/test_calc.py": None})  # fmt: skip
    repository.commit("tidy up", {"pkg/calc.py": CALC.replace("return 0\n", "return 0.0\n")})
    document = fixed(repository, "pytest", "-q", rungs="revert")
    assert document["outcome"] == "needs_human"
    assert "tests/test_page.py::test_page looks at tests/page.txt" in waiting_for(document)


UNITTESTS = """import unittest

from pkg.calc import mean, total


class Calc(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([1, 2, 3]), 6)

    def test_mean_of_nothing(self):
        self.assertEqual(mean([]), 0)
"""
IN_UNITTEST = {"tests/__init__.py": "", "tests/test_calc.py": UNITTESTS, "pyproject.toml": None}


def test_tests_of_unittest_are_listened_to_like_those_of_pytest(repository: Repository) -> None:
    repository.commit("use unittest", IN_UNITTEST)
    repository.commit("tidy up", {"pkg/calc.py": NO_GUARD})
    document = fixed(repository, "python", "-m", "unittest", rungs="revert")
    assert (document["outcome"], waiting_for(document)) == ("fixed", "")


@pytest.mark.slow
def test_a_unittest_that_never_passed_is_no_reason_for_a_revert(repository: Repository) -> None:
    later = (
        UNITTESTS
        + "\n    def test_later(self):\n        if not calc._READY:\n            self.skipTest('later')\n        self.assertEqual(mean([]), 1)\n"
    )
    later = later.replace("from pkg.calc", "from pkg import calc\nfrom pkg.calc")
    hidden = CALC + "\n\n_READY = False\n"
    repository.commit("use unittest", {**IN_UNITTEST, "tests/test_calc.py": later, "pkg/calc.py": hidden})  # fmt: skip
    repository.commit("say that it is ready", {"pkg/calc.py": hidden.replace("False", "True")})
    document = fixed(repository, "python", "-m", "unittest", rungs="revert")
    assert document["outcome"] == "needs_human"
    assert waiting_for(document) == "what fails did not pass before the change that is taken back"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("runner", "test"),
    [
        ("pytest -q", "def test_words():\n    assert 'whilst' not in Path('pkg/calc.py').read_text()\n"),
        ("python -m unittest", "import unittest\n\n\nclass Words(unittest.TestCase):\n    def test_words(self):\n        self.assertNotIn('whilst', Path('pkg/calc.py').read_text())\n"),
    ],
)  # fmt: skip
def test_a_test_that_reads_sources_leaves_the_revert_to_a_person(
    repository: Repository, runner: str, test: str
) -> None:
    text = f"from pathlib import Path\n\n{test}"
    repository.commit("no old words", {**IN_UNITTEST, "tests/test_words.py": text})
    other = CALC.replace("result = 0", "result = 0  # whilst nothing is added").replace(
        "return total(values) /", "return float(total(values)) /"
    )
    repository.commit("always give a float", {"pkg/calc.py": other})
    document = fixed(repository, *runner.split(), rungs="revert")
    assert document["outcome"] == "needs_human"
    assert "looks at pkg/calc.py" in waiting_for(document)


@pytest.mark.slow
def test_a_value_that_a_document_written_later_speaks_of_is_missed(repository: Repository) -> None:
    given = NO_GUARD.replace("    return total(values) /", "    if not values:\n        return getattr(values, 'empty_value', None)\n    return total(values) /")  # fmt: skip
    repository.commit("let the caller choose", {"pkg/calc.py": given})
    repository.commit("say how", {"docs/calc.md": "`empty_value` is the mean of nothing.\n"})
    document = fixed(repository, "pytest", "-q", rungs="revert")
    assert document["outcome"] == "needs_human"
    assert "empty_value, of which docs/calc.md speaks" in waiting_for(document)


@pytest.mark.slow
def test_a_patch_that_only_its_step_was_run_with_waits_and_names_what_ran(
    repository: Repository,
) -> None:
    files = dict.fromkeys(("tests/test_calc.py", "pyproject.toml"), None)
    repository.commit("no tests", {**files, "pkg/calc.py": "import os\n" + CALC})
    lint = "pip install -q ruff"
    argv = ["fix", "--repo", str(repository.path), "--setup", lint, "--no-model", "--rungs", "recipe",
            "--format", "json", "--", "ruff check --select F401 pkg"]  # fmt: skip
    document = json.loads(CliRunner().invoke(cli, argv, standalone_mode=False).stdout)
    assert document["outcome"] == "needs_human"
    assert "run with the patch: ruff check --select F401 pkg (no test is known in it)" in waiting_for(document)  # fmt: skip


@pytest.mark.slow
def test_a_formatter_needs_no_tests(repository: Repository) -> None:
    repository.commit("no tests", {"tests/test_calc.py": None, "pkg/calc.py": CALC.replace("result = 0", "result=0")})  # fmt: skip
    argv = ["fix", "--repo", str(repository.path), "--setup", "pip install -q ruff", "--no-model", "--rungs", "recipe",
            "--format", "json", "--", "ruff format --check pkg"]  # fmt: skip
    document = json.loads(CliRunner().invoke(cli, argv, standalone_mode=False).stdout)
    assert (document["outcome"], waiting_for(document)) == ("fixed", "")


@pytest.mark.slow
@pytest.mark.parametrize("place", ["tests/test_old.py", "pkg/old.py"])
def test_the_name_that_an_error_gives_is_published_unless_tests_change(
    repository: Repository, place: str
) -> None:
    warn = "import warnings\n\n\ndef dated():\n    warnings.warn('`dated` was renamed, use `fresh` instead', DeprecationWarning, stacklevel=2)\n    return 1\n\n\ndef fresh():\n    return 1\n"
    use = "from pkg import names\n\n\ndef test_one():\n    assert names.dated() == 1\n"
    call = "from pkg.old import test_one  # noqa: F401\n" if place == "pkg/old.py" else ""
    files = {"pkg/names.py": warn, place: use, **({"tests/test_old.py": call} if call else {})}
    repository.commit("use names", files)
    document = fixed(repository, "python", "-W", "error", "-m", "pytest", "-q", rungs="recipe")
    assert "names.fresh() == 1" in document["patch"]
    assert document["outcome"] == ("fixed" if call else "needs_human")
    assert ("tests are written otherwise" in waiting_for(document)) == (not call)


GENERATED = {
    "gen.py": "open('table.py', 'w').write('VALUE = ' + open('value.txt').read())\n",
    "value.txt": "1\n",
    "table.py": "VALUE = 1\n",
    ".github/workflows/ci.yml": (Path(__file__).parent.parent / "data/workflows/other_jobs.yml").read_text(),
}  # fmt: skip


@pytest.mark.parametrize(
    ("value", "outcome", "numbers"), [("2", "fixed", "passed"), ("3", "denied", "broken")]
)
def test_the_other_jobs_of_the_workflow_are_held_against_a_patch(
    repository: Repository, value: str, outcome: str, numbers: str
) -> None:
    repository.commit("generate", GENERATED)
    repository.commit("raise the value", {"value.txt": f"{value}\n"})
    workflow = str(repository.path / ".github/workflows/ci.yml")
    argv = ["fix", "--repo", str(repository.path), "--no-model", "--rungs", "recipe", "--format", "json",
            "--workflow", workflow, "--job", "generated", "--step", "2"]  # fmt: skip
    done = CliRunner().invoke(cli, argv, standalone_mode=False, catch_exceptions=False)
    document = json.loads(done.stdout)
    assert document["outcome"] == outcome
    told = [one["detail"] for one in document["gate"]["reasons"] if one["check"] == "other_jobs"]
    assert told == (["numbers: exit 1"] if numbers == "broken" else [])
    ends = {one["name"]: one["outcome"] for one in document["other_jobs"]}
    if outcome == "fixed":
        assert ends == {"the rest of generated": "red", "numbers": numbers, "always red": "red_before", "mac": "not_run"}  # fmt: skip
