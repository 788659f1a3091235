"""What a reader of a failure is shown of the repository first."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from regreen.domain.job_control import StopCondition
from regreen.domain.models import Failure, Message, SentPart, StackFrame
from regreen.fixers.case import FixJob, InitialFailure, RepairCase
from regreen.fixers.localization import build_context
from regreen.runs.trial import Trial
from tests.unit.repairs import Repository, job, sandbox_or_skip

pytestmark = pytest.mark.sandbox
PATHS = '''"""Paths."""

import os
from typing import (
    Any,
)


def optional(value: Any) -> Any:
    """None stays None."""
    return value if value is None else os.fspath(value)


def refused(path):
    return "#refused"
'''
# the same name elsewhere, and one that a test only has as a keyword
OTHER = '''"""Checks."""


def optional(check):
    """Another one of this name."""
    return check


def default(method):
    return method
'''
PACKAGE = "from ._paths import optional as maybe, refused\n\n__all__ = ['maybe', 'refused']\n"
TEST = """import lib
from lib import maybe


def test_maybe():
    values = [None]
    for text in values:
        assert maybe(text, default=None) is None


def test_link():
    assert lib.join("a") == "#refused"
"""


@pytest.fixture
def files() -> dict[str, str]:
    return {
        "lib/__init__.py": PACKAGE + "\n\ndef join(*parts):\n    return '/'.join(parts)\n",
        "lib/_paths.py": PATHS,
        "lib/checks.py": OTHER,
        "tests/test_lib.py": TEST,
    }


def shown(tmp_path: Path, files: Mapping[str, str], *failures: Failure) -> dict[str, str]:
    """The sections of the pack by their titles."""
    context = built(tmp_path, files, *failures)
    sections = (part.partition("\n") for part in context.text.split("## ")[1:])
    return {title: body for title, _, body in sections}


def built(
    tmp_path: Path,
    files: Mapping[str, str],
    *failures: Failure,
    before: Mapping[str, str] | None = None,
) -> Message:
    repository = Repository(tmp_path / "repo")
    base = repository.commit("before", before) if before else None
    rev = repository.commit("start", files)
    job = FixJob(Trial(("pytest", "-q")), rev)
    stop = StopCondition(time.monotonic() + 60)
    failed = InitialFailure("pytest -q", 1, failures)
    case = RepairCase(job, rev, failed, {}, repository.open(), sandbox_or_skip(), stop, base=base)
    return build_context(case)


def failing(test: str, *frames: StackFrame) -> Failure:
    words = "TypeError: optional() got an unexpected keyword argument 'default'"
    return Failure(f"tests/test_lib.py::{test}", "TypeError", words, "tests/test_lib.py", 8, frames)


def test_a_name_is_followed_through_the_package_that_hands_it_on(
    tmp_path: Path, files: dict[str, str]
) -> None:
    named = shown(tmp_path, files, failing("test_maybe"))["Source of what the failing tests name"]
    assert "lib/_paths.py:9\n    9  def optional(value: Any) -> Any:" in named
    assert named.index("lib/_paths.py:9") < named.index("lib/checks.py:4")


def test_what_is_shown_is_named_with_its_lines(tmp_path: Path, files: dict[str, str]) -> None:
    frame = StackFrame("lib/_paths.py", 9, "optional")
    sent = built(tmp_path, files, failing("test_maybe", frame)).sent
    lines = [part.lines for part in sent if part.what == "Source on the failing path"]
    assert (lines, {part.path for part in sent} >= {"lib/_paths.py"}) == (["9-11"], True)
    assert SentPart("The failing command") in sent


def test_each_file_of_a_change_that_is_too_long_to_show_whole_is_named(
    tmp_path: Path, files: dict[str, str]
) -> None:
    long = {
        name: "".join(f"x_{number} = {number}\n" for number in range(900))
        for name in ("a.py", "b.py")
    }
    sent = built(tmp_path, files | long, failing("test_maybe"), before=files).sent
    named = {part.path for part in sent if part.what == "What the change under repair did there"}
    assert named == {"a.py", "b.py"}


def test_what_a_test_reads_from_a_module_is_shown(tmp_path: Path, files: dict[str, str]) -> None:
    named = shown(tmp_path, files, failing("test_link"))["Source of what the failing tests name"]
    assert "def join(*parts):" in named


def test_the_function_that_writes_what_a_test_expects_is_shown(
    tmp_path: Path, files: dict[str, str]
) -> None:
    named = shown(tmp_path, files, failing("test_link"))["Source of what the failing tests name"]
    assert "lib/_paths.py:14\n   14  def refused(path):" in named


def test_variables_of_a_test_are_no_names_to_look_for(
    tmp_path: Path, files: dict[str, str]
) -> None:
    files["lib/checks.py"] += "\n\ndef values():\n    return []\n\n\ndef text():\n    return ''\n"
    named = shown(tmp_path, files, failing("test_maybe"))["Source of what the failing tests name"]
    assert "def values" not in named
    assert "def text" not in named


def test_a_function_of_several_frames_is_shown_once_with_all_of_them_marked(
    tmp_path: Path, files: dict[str, str]
) -> None:
    frames = (
        StackFrame("lib/_paths.py", 9, "optional"),
        StackFrame("lib/_paths.py", 11, "optional"),
    )
    sections = shown(tmp_path, files, failing("test_maybe", *frames))
    path = sections["Source on the failing path"]
    assert path.count("def optional") == 1
    assert "    9> def optional" in path
    assert "   11>     return value" in path
    assert "def optional(value" not in sections["Source of what the failing tests name"]


def test_the_imports_of_what_is_shown_are_shown(tmp_path: Path, files: dict[str, str]) -> None:
    frame = StackFrame("lib/_paths.py", 11, "optional")
    imports = shown(tmp_path, files, failing("test_maybe", frame))[
        "What that code needs of its files"
    ]
    assert "lib/_paths.py\nimport os\nfrom typing import (\n    Any,\n)\n" in imports


def test_the_kind_of_a_failure_is_said_once(tmp_path: Path, files: dict[str, str]) -> None:
    what = shown(tmp_path, files, failing("test_maybe"))["What failed"]
    assert what.count("TypeError") == 1


def test_a_package_whose_imports_go_round_is_no_trap(tmp_path: Path, files: dict[str, str]) -> None:
    files["lib/__init__.py"] = "from lib.one import maybe\n"
    files["lib/one.py"] = "from lib.two import *\n"
    files["lib/two.py"] = "from lib.one import *\n"
    assert "What failed" in shown(tmp_path, files, failing("test_maybe"))


def test_nobody_is_told_to_give_plain_functions_a_method(
    tmp_path: Path, files: dict[str, str]
) -> None:
    words = "AttributeError: 'function' object has no attribute 'maybe'"
    failure = Failure("tests/test_lib.py::test_maybe", "AttributeError", words)
    assert "What is missing, as the tests use it" not in shown(tmp_path, files, failure)


@pytest.mark.slow
def test_the_functions_that_only_failing_tests_run_are_shown_where_no_frame_leads_there(
    tmp_path: Path,
) -> None:
    repository = Repository(tmp_path / "repo")
    kept = "class Kept(dict):\n    def keep(self, name, value):\n        setattr(self, name, value)\n\n    def __setattr__(self, name, value):\n        self.__dict__[name] = value\n\n\ndef make():\n    return Kept()\n"
    tests = "from kept import make\n\n\ndef test_kept():\n    one = make()\n    one.size = 3\n    assert one['size'] == 3\n\n\ndef test_empty():\n    assert make() == {}\n"
    rev = repository.commit("start", {"kept.py": kept, "test_kept.py": tests})
    asked = job(rev, "python", "-m", "pytest", "-q")
    stop = StopCondition(time.monotonic() + 600)
    outcomes = {"test_kept.py::test_kept": "failed", "test_kept.py::test_empty": "passed"}
    failure = Failure("test_kept.py::test_kept", "KeyError", "'size'", "test_kept.py", 7)
    before = InitialFailure("python -m pytest -q", 1, (failure,))
    case = RepairCase(asked, rev, before, outcomes, repository.open(), sandbox_or_skip(), stop)  # fmt: skip
    _, _, said = build_context(case).text.partition("## Source around the most suspect")
    assert "    5>     def __setattr__(self, name, value):" in said
    assert "    6>         self.__dict__[name] = value" in said


def test_words_of_a_message_are_names_only_where_they_are_written_as_such(
    tmp_path: Path, files: dict[str, str]
) -> None:
    files["lib/checks.py"] += "\n\ndef value():\n    return 1\n\n\ndef as_path():\n    return 2\n"
    words = "AssertionError: the value of as_path differs from what refused() gave"
    failure = Failure("tests/test_lib.py::test_maybe", "AssertionError", words)
    named = shown(tmp_path, files, failure)["Source of what the failing tests name"]
    assert "def as_path" in named
    assert "def refused" in named
    assert "def value" not in named


def test_of_a_long_function_the_lines_around_the_frames_are_shown_once(
    tmp_path: Path, files: dict[str, str]
) -> None:
    body = "".join(f"    step_{number} = {number}\n" for number in range(2, 301))
    files["lib/long.py"] = f"def run():\n{body}"
    frames = (StackFrame("lib/long.py", 110, "run"), StackFrame("lib/long.py", 100, "run"))
    sections = shown(tmp_path, files, failing("test_maybe", *frames))
    path = sections["Source on the failing path"]
    assert "step_80 = 80\n" in path
    assert "  100>     step_100 = 100\n" in path
    assert path.count("step_110 = 110\n") == 1
    assert "step_79 = 79\n" not in path


def test_of_a_long_test_what_the_failure_speaks_of_is_shown(
    tmp_path: Path, files: dict[str, str]
) -> None:
    calls = [f"    assert lib.join('part{number}') == 'PART{number}'" for number in range(400)]
    files["tests/test_lib.py"] = "import lib\n\n\ndef test_all():\n" + "\n".join(calls) + "\n"
    words = "AssertionError: 'part287' != 'PART287'"
    failure = Failure("tests/test_lib.py::test_all", "AssertionError", words)
    test = shown(tmp_path, files, failure)["The failing tests"]
    assert "def test_all():" in test
    assert "...\n    assert lib.join('part281')" in test
    assert "lib.join('part287')" in test
    assert "part300" not in test


def test_a_name_is_known_in_another_case(tmp_path: Path, files: dict[str, str]) -> None:
    files["lib/checks.py"] += "\n\nclass YearOfWeek:\n    pass\n"
    words = "AssertionError: 'YEAR_OF_WEEK(d)' != 'EXTRACT(d)'"
    failure = Failure("tests/test_lib.py::test_maybe", "AssertionError", words)
    named = shown(tmp_path, files, failure)["Source of what the failing tests name"]
    assert "class YearOfWeek" in named


def test_the_values_that_the_code_names_are_shown(tmp_path: Path, files: dict[str, str]) -> None:
    files["lib/_paths.py"] = (
        "import re\n\nALLOWED = re.compile('a*')\nOTHER = 1\n\n\nclass Links:\n    HARMFUL: tuple[str, ...] = (\n"
        "        'data:',\n    )\n\n    def optional(self, value):\n"
        "        return ALLOWED.match(value) and not value.startswith(self.HARMFUL)\n"
    )
    frame = StackFrame("lib/_paths.py", 13, "optional")
    needs = shown(tmp_path, files, failing("test_maybe", frame))[
        "What that code needs of its files"
    ]
    assert "import re\n    3  ALLOWED = re.compile('a*')\n" in needs
    assert (
        "    8      HARMFUL: tuple[str, ...] = (\n    9          'data:',\n   10      )\n" in needs
    )
    assert "OTHER" not in needs
