"""What a failure looks like, and which failures are alike."""

from __future__ import annotations

import json

import pytest

from regreen.bisect.memory import Run
from regreen.bisect.runner import Judge, pattern
from regreen.bisect.signature import Signature, from_json, matches, read
from regreen.errors import UserError
from regreen.models import Ended, RunResult

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


def failure(output: str = "", code: int = 1, ended: Ended = "exit", stderr: str = "") -> RunResult:
    return RunResult(ended, code if ended == "exit" else None, output, stderr, False, 1.0)


def raised(kind: str, message: str, line: int = 2) -> Signature:
    return read(failure(stderr=TRACEBACK.format(kind=kind, message=message, line=line)))


def test_a_traceback_is_read() -> None:
    seen = raised("ValueError", "no such thing at 0x7f21 (17)")
    assert (seen.kind, seen.message, seen.frame) == (
        "ValueError",
        "no such thing at # (#)",
        "thing.py:check",
    )


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (raised("ValueError", "a"), raised("ValueError", "a", line=90), True),
        (raised("ValueError", "a"), raised("KeyError", "a"), False),
        (read(failure("TypeError f() missing 1 argument\n")), read(failure("KeyError 'x'\n")), False),
        (read(failure("TypeError f() takes 2\n")), read(failure("TypeError f() takes 3\n")), True),
        (read(failure()), read(failure("hello\n")), True),
        (read(failure()), read(failure(code=2)), False),
        (read(failure()), raised("ImportError", "no module"), False),
        (read(failure(PYTEST)), read(failure(PYTEST.replace("4", "5"))), True),
        (read(failure(PYTEST)), read(failure(PYTEST.replace("test_a", "test_b"))), False),
        (read(failure(PYTEST)), read(failure("ERROR tests/test_a.py - ImportError: x\n", 2)), False),
        (read(failure("--- FAIL: TestX (0.00s)\n")), read(failure("--- FAIL: TestX (0.09s)\n")), True),
        (read(failure(ended="timeout")), read(failure(ended="timeout")), True),
        (read(failure(ended="timeout")), read(failure()), False),
    ],
)  # fmt: skip
def test_failures_are_alike_or_not(one: Signature, other: Signature, alike: bool) -> None:
    assert matches(one, [other]) is alike
    assert matches(other, [one]) is alike


def test_a_signature_survives_the_log() -> None:
    seen = read(failure(PYTEST))
    assert from_json(seen.to_json()) == seen


def test_only_the_failure_looked_for_counts() -> None:
    wanted, other = raised("ValueError", "a"), raised("KeyError", "b")
    judge = Judge("auto").learn(Run("s", "fail", wanted, 1.0, "exit 1"))
    assert judge(Run("s", "fail", wanted, 1.0, "exit 1"))[0] == "fail"
    assert judge(Run("s", "fail", other, 1.0, "exit 1")) == (
        "untestable",
        "failed differently: KeyError: b in thing.py:check",
    )
    assert Judge("exit")(Run("s", "fail", other, 1.0, "exit 1"))[0] == "fail"
    assert judge(Run("s", "infra", None, 1.0, "the engine is gone"))[0] == "infra"


def test_a_bad_pattern_is_refused_in_words() -> None:
    with pytest.raises(UserError, match="no regular expression"):
        pattern("(")


def test_hostile_output_is_read_quickly() -> None:
    read(failure("A" * 60_000 + "\n" + "Error" * 9_000 + "\n" + '  File "' * 9_000))


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
    seen, wanted = (read(failure(stderr=f"{where}{text}\n")) for text in (one, other))
    assert matches(seen, [wanted]) == same


def test_each_test_is_held_against_what_it_said_itself() -> None:
    bad = read(
        failure(
            "FAILED t.py::a - ValueError: no total\nFAILED t.py::b - KeyError: 'x'\nKeyError: 'x'\n"
        )
    )
    same = read(failure("FAILED t.py::a - ValueError: no total\nValueError: no total\n"))
    other = read(
        failure("FAILED t.py::a - ImportError: cannot import name 'total'\nKeyError: 'x'\n")
    )
    assert matches(same, [bad])
    assert not matches(other, [bad])
    assert from_json(json.loads(json.dumps(bad.to_json()))) == bad


def test_the_files_of_a_traceback_are_kept_innermost_first() -> None:
    seen = read(failure("shop/cart.py:12: in add\nshop/prices.py:3: ValueError\n"))
    assert seen.paths == ("shop/prices.py", "shop/cart.py")
