"""What a failure looks like, and which failures are alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from regreen.adapters.git.repository import GitRepository
from regreen.bisect.commit_runner import FailureJudge, compile_signature
from regreen.bisect.proof import _test_revert
from regreen.bisect.verdict_memory import CommitRun
from regreen.domain.errors import UserError
from regreen.domain.models import RunEnding, RunResult
from regreen.logs.failure_signature import (
    FailureSignature,
    from_json,
    hide_credentials,
    matches_any,
    read_signature,
)
from tests.checkout import Checkout

TRACEBACK = """Traceback (most recent call last):
  File "/work/check.py", line 3, in <module>
    thing.check()
  File "/work/thing.py", line {line}, in check
    raise {kind}("{message}")
{kind}: {message}
"""
PYTEST = """
    def test_a():
>       assert add(1, 2) == 3
E       assert 4 == 3

tests/test_a.py:5: AssertionError
=========================== short test summary info ============================
FAILED tests/test_a.py::test_a - AssertionError: assert 4 == 3
"""


def failure(
    output: str = "", code: int = 1, ended: RunEnding = "exit", stderr: str = ""
) -> RunResult:
    return RunResult(ended, code if ended == "exit" else None, output, stderr, False, 1.0)


def raised(kind: str, message: str, line: int = 2) -> FailureSignature:
    return read_signature(failure(stderr=TRACEBACK.format(kind=kind, message=message, line=line)))


def test_a_traceback_is_read() -> None:
    seen = raised("ValueError", "no such thing at 0x7f21 (17)")
    assert (seen.kind, seen.message, seen.frame) == (
        "ValueError",
        "no such thing at 0x7f21 (17)",
        "thing.py:check",
    )


def test_a_module_that_python_cannot_run_is_a_missing_module() -> None:
    seen = read_signature(failure(stderr="/usr/bin/python3.11: No module named pytst\n"))
    assert seen.text == "ModuleNotFoundError: No module named 'pytst'"
    package = "/usr/bin/python3.11: No module named shop.__main__; 'shop' is a package and cannot be run\n"
    seen = read_signature(failure(stderr=package))
    assert (seen.kind, seen.text) == ("", package.strip())


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("", "exit 1"),
        ("written '  two  ', read 'two'\n", "written '  two  ', read 'two'"),
        ("\x1b[31mchecking\x1b[0m\nerror: 2 rows lost\nmake: *** [check] Error 1\n", "error: 2 rows lost"),
        ("a.py:1:8: F401 [*] `os` imported but unused\nFound 1 error.\n", "a.py:1:8: F401 [*] `os` imported but unused"),
        ("F401 [*] `os` imported but unused\n --> a.py:1:8\nFound 1 error.\n", "F401 [*] `os` imported but unused"),
    ],
)  # fmt: skip
def test_a_command_without_a_summary_is_shown_by_its_telling_line(output: str, line: str) -> None:
    seen = read_signature(failure(output))
    assert seen.text == line
    assert matches_any(seen, [read_signature(failure("other words\n"))]), "only for people"


def test_a_test_without_an_exception_keeps_its_summary() -> None:
    bare = "E       assert 7 == 3\nFAILED tests/test_a.py::test_a - assert 7 == 3\n"
    assert read_signature(failure(bare)).text == "tests/test_a.py::test_a: assert 7 == 3"


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (raised("ValueError", "a"), raised("ValueError", "a", line=90), True),
        (raised("ValueError", "a"), raised("KeyError", "a"), False),
        (read_signature(failure("TypeError f() missing 1 argument\n")), read_signature(failure("KeyError 'x'\n")), False),
        (read_signature(failure("TypeError f() takes 2\n")), read_signature(failure("TypeError f() takes 3\n")), True),
        (read_signature(failure()), read_signature(failure("hello\n")), True),
        (read_signature(failure()), read_signature(failure(code=2)), False),
        (read_signature(failure()), raised("ImportError", "no module"), False),
        (read_signature(failure(PYTEST)), read_signature(failure(PYTEST.replace("4", "5"))), True),
        (read_signature(failure(PYTEST)), read_signature(failure(PYTEST.replace("test_a", "test_b"))), False),
        (read_signature(failure(PYTEST)), read_signature(failure("ERROR tests/test_a.py - ImportError: x\n", 2)), False),
        (read_signature(failure("--- FAIL: TestX (0.00s)\n")), read_signature(failure("--- FAIL: TestX (0.09s)\n")), True),
        (read_signature(failure(ended="timeout")), read_signature(failure(ended="timeout")), True),
        (read_signature(failure(ended="timeout")), read_signature(failure()), False),
    ],
)  # fmt: skip
def test_failures_are_alike_or_not(
    one: FailureSignature, other: FailureSignature, alike: bool
) -> None:
    assert matches_any(one, [other]) is alike
    assert matches_any(other, [one]) is alike


def test_a_signature_survives_the_log() -> None:
    seen = read_signature(failure(PYTEST))
    assert from_json(seen.to_json()) == seen


def test_only_the_failure_looked_for_counts() -> None:
    wanted, other = raised("ValueError", "a"), raised("KeyError", "b")
    judge = FailureJudge("auto").with_example(CommitRun("s", "fail", wanted, 1.0, "exit 1"))
    assert judge(CommitRun("s", "fail", wanted, 1.0, "exit 1"))[0] == "fail"
    assert judge(CommitRun("s", "fail", other, 1.0, "exit 1")) == (
        "untestable",
        "failed differently: KeyError: b in thing.py:check",
    )
    assert FailureJudge("exit")(CommitRun("s", "fail", other, 1.0, "exit 1"))[0] == "fail"
    assert judge(CommitRun("s", "infra", None, 1.0, "the engine is gone"))[0] == "infra"


def test_a_bad_pattern_is_refused_in_words() -> None:
    with pytest.raises(UserError, match="no regular expression"):
        compile_signature("(")


def test_hostile_output_is_read_quickly() -> None:
    read_signature(failure("A" * 60_000 + "\n" + "Error" * 9_000 + "\n" + '  File "' * 9_000))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("ImportError: cannot import name 'a' from 'lib'", "ImportError: cannot import name 'b' from 'lib'", False),
        ("ImportError: cannot import name 'a' from 'lib'", "ImportError: cannot import name 'a' from 'lib.x'", True),
        ("AttributeError: module 'm' has no attribute 'a'", "AttributeError: module 'm' has no attribute 'b'", False),
        ("AttributeError: 'A' object has no attribute 'a'", "AttributeError: 'B' object has no attribute 'a'", True),
        ("TypeError: f() missing 1 required positional argument: 'x'", "TypeError: f() missing 2 required positional arguments: 'y' and 'z'", False),
        ("TypeError: unhashable type", "TypeError: unhashable type", True),
        ("KeyError: 'a'", "KeyError: 'b'", False),
    ],
)  # fmt: skip
def test_an_error_about_another_name_is_another_error(one: str, other: str, same: bool) -> None:
    where = 'Traceback (most recent call last):\n  File "/work/check.py", line 3, in <module>\n'
    seen, wanted = (read_signature(failure(stderr=f"{where}{text}\n")) for text in (one, other))
    assert matches_any(seen, [wanted]) == same


def test_each_test_is_held_against_what_it_said_itself() -> None:
    bad = read_signature(
        failure(
            "FAILED t.py::a - ValueError: no total\nFAILED t.py::b - KeyError: 'x'\nKeyError: 'x'\n"
        )
    )
    same = read_signature(failure("FAILED t.py::a - ValueError: no total\nValueError: no total\n"))
    other = read_signature(
        failure("FAILED t.py::a - ImportError: cannot import name 'total'\nKeyError: 'x'\n")
    )
    assert matches_any(same, [bad])
    assert not matches_any(other, [bad])
    assert from_json(json.loads(json.dumps(bad.to_json()))) == bad


def test_the_files_of_a_traceback_are_kept_innermost_first() -> None:
    seen = read_signature(failure("shop/cart.py:12: in add\nshop/prices.py:3: ValueError\n"))
    assert seen.paths == ("shop/prices.py", "shop/cart.py")


def test_the_count_that_ends_unittest_is_no_test() -> None:
    output = "FAIL: test_a (tests.test_a.T.test_a)\nAssertionError: 1 != 2\n\nRan 2 tests in 0.1s\n\nFAILED (failures=1)\n"
    assert read_signature(failure(stderr=output)).tests == ("test_a (tests.test_a.T.test_a)",)


def test_a_kept_failure_holds_no_credential_and_still_is_the_same_failure() -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    live = FailureSignature("exit", 1, (f"test_a.py::test_x[{token}]",), "ValueError", f"{token} is bad")  # fmt: skip
    kept = hide_credentials(live)
    assert token not in repr(kept)
    assert matches_any(live, [kept])
    assert matches_any(kept, [live])
    other = FailureSignature("exit", 1, (f"test_a.py::test_y[{token}]",), "ValueError", f"{token} is bad")  # fmt: skip
    assert not matches_any(other, [kept])


def test_a_warning_is_not_shown_in_the_place_of_the_error_and_the_shown_line_is_not_compared() -> (
    None
):
    said = "all.c:3:4: warning: unused variable 'x'\nall.c:9:1: error: expected ';' after {}\n"
    first, second = (read_signature(failure(said.format(word))) for word in ("a", "b"))
    assert first.line == "all.c:9:1: error: expected ';' after a"
    assert (first.line == second.line, first == second) == (False, True)
    said = "b.py:1: DeprecationWarning: old\nsrc/a.py:9:1: F821 undefined name\nsrc/errors.py:3:1: W291 blanks\n"
    assert read_signature(failure(said)).line == "src/a.py:9:1: F821 undefined name"


def test_each_of_several_tests_keeps_its_own_message() -> None:
    rows = [f"FAILED tests/test_a.py::test_{n} - assert {n} == 9" for n in range(4)]
    two, four = (read_signature(failure("\n".join(rows[:count]))).text for count in (2, 4))
    first = "tests/test_a.py::test_0: assert 0 == 9 | tests/test_a.py::test_1: assert 1 == 9"
    assert two == first
    assert four == f"{first} | tests/test_a.py::test_2: assert 2 == 9 | and 1 more"
    blocks = [f"FAIL: test_{n} (t.T)\n---\nAssertionError: {n} != 9" for n in range(2)]
    last = read_signature(failure("\n".join(blocks))).text
    assert last == "test_0 (t.T) | test_1 (t.T): AssertionError: 1 != 9"


def test_a_revert_that_conflicts_is_said_in_one_sentence(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path / "clone")
    checkout.commit("begin", a_py="1\n")
    bad = checkout.commit("break", a_py="2\n")
    tip = checkout.commit("go on", a_py="3\n")
    git = GitRepository.open(checkout.root, home=tmp_path / "home")
    never: Any = None
    result = _test_revert(never, bad, git, never, tip)
    assert (
        result.detail
        == f"reverting it conflicts on {tip[:12]}, or touches a link or a submodule, even for the source files alone"
    )
