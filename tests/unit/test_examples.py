"""Examples of documents that expect what the code no longer prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from regreen.fixers.ladder import fix_failure
from regreen.fixers.recipes.tool_output import drop_strict_xfails, rewrite_examples
from tests.unit.repairs import Repository, job, sandbox_or_skip

README = """# Box

    >>> 1 + 1
    2
    >>> for at in range(2):
    ...     print(at)
    0
    {0}
    >>> None
    >>> print("a"); print(); print("b")
    a
    {1}
"""
STALE = README.format("7", "c")
NOW = README.format("1", "<BLANKLINE>\n    b")
COMMANDS = {
    "doctest": [sys.executable, "-m", "doctest", "README.md"],
    "pytest": [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--doctest-glob=*.md", "--doctest-continue-on-failure"],
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_a_document_gets_what_its_examples_print(tmp_path: Path, name: str) -> None:
    (tmp_path / "README.md").write_text(STALE)
    run = subprocess.run(COMMANDS[name], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 1, run.stdout
    said = run.stdout.replace(f"{tmp_path}/", "/work/")
    found = rewrite_examples(said, ["README.md"], {"README.md": STALE}.get)
    assert found == {"README.md": NOW}


def test_code_errors_and_addresses_are_no_results() -> None:
    said = 'File "{0}", line 1, in x\nFailed example:\n    f()\nExpected:\n    1\nGot:\n    {1}\n'
    text = ">>> f()\n1\n"
    for path, got in (("a.py", "2"), ("a.md", "<f at 0x7f>"), ("a.md", "Traceback (most recent)")):
        assert rewrite_examples(said.format(path, got), [path], {path: text}.get) == {}
    other = ">>> f()\n3\n"
    assert rewrite_examples(said.format("a.md", "2"), ["a.md"], {"a.md": other}.get) == {}


@pytest.mark.sandbox
def test_new_results_wait_for_a_person(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    text = ">>> from box import lift\n>>> lift(2)\n{0}\n"
    repository.commit("start", {"box.py": "def lift(n):\n    return n\n", "USE.md": text.format(2)})
    rev = repository.commit("Lift twice", {"box.py": "def lift(n):\n    return n * 2\n"})
    asked = job(rev, "python3", "-m", "doctest", "USE.md", setup=None, reruns=1, rungs=("recipe",))
    found = fix_failure(asked, git=repository.open(), sandbox=sandbox_or_skip(), model=None)
    assert (found.outcome, found.cause) == (
        "needs_human",
        "examples of a document expect what the code does not print",
    )
    assert "-2\n+4\n" in (found.patch or "")


def test_a_test_that_passes_loses_the_mark_that_it_fails(tmp_path: Path) -> None:
    marked = 'import pytest\n\n\n@pytest.mark.xfail(\n    strict=True,\n    reason="#12",\n)\ndef test_{0}():\n    assert {1}\n'
    text = f"{marked.format('mended', 1)}\n\n{marked.format('broken', 0)}"
    (tmp_path / "test_box.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    found = drop_strict_xfails(run.stdout, ["test_box.py"], {"test_box.py": text}.get)
    assert found["test_box.py"].count("xfail") == 1
    assert "pytest\n\n\ndef test_mended" in found["test_box.py"]


def test_insets_of_an_expectation_are_read_in_time() -> None:
    said = "Expected:\n" + "        x: 1\n" * 60 + "Received:\n" + "Expected:\n" + " " * 4000 + "\n"
    assert rewrite_examples(said, ["a.md"], {"a.md": ""}.get) == {}


def test_a_mark_of_one_case_or_of_another_class_stays() -> None:
    text = """import pytest


class TestBox:
    @pytest.mark.xfail
    def test_lift(self):
        pass


@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.xfail)])
def test_lift(x):
    pass
"""
    said = "____ TestBox.test_lift ____\n[XPASS(strict)] \nFAILED test_box.py::TestBox::test_lift\n"
    found = drop_strict_xfails(said, ["test_box.py"], {"test_box.py": text}.get)
    assert found == {"test_box.py": text.replace("    @pytest.mark.xfail\n", "")}


def test_what_may_stand_for_any_text_stays_and_line_ends_stay() -> None:
    said = (
        'File "a.md", line 1, in a.md\nFailed example:\n    f()\nExpected:\n    {0}\nGot:\n    2\n'
    )
    assert rewrite_examples(said.format("1..."), ["a.md"], {"a.md": ">>> f()\n1...\n"}.get) == {}
    found = rewrite_examples(said.format("1"), ["a.md"], {"a.md": ">>> f()\r\n1\r\n"}.get)
    assert found == {"a.md": ">>> f()\r\n2\r\n"}
