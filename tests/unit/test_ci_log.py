"""Reading CI logs: over a hundred real ones, wrapped as GitHub wraps them, and anything hostile."""

from __future__ import annotations

import io
import json
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regreen.isolation import ChildLimits
from regreen.logs.ci_log import (
    clean_line,
    extract_command_output,
    failures_in,
    parse_log,
    read_failures,
    read_lines,
    read_log,
)

LOGS = Path(__file__).parents[1] / "data" / "logs"
EXPECTED: dict[str, dict[str, Any]] = json.loads((LOGS / "expected.json").read_text())


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_every_failing_id_is_found_and_none_invented(name: str) -> None:
    wanted = EXPECTED[name]
    log = parse_log((LOGS / f"{name}.log").read_bytes())
    assert (log.kind, log.exit_code) == (wanted["kind"], wanted["exit_code"])
    assert log.failures
    if wanted["tests"] is not None:
        found = [failure.test for failure in log.failures]
        assert set(wanted["tests"]) <= set(found)
        if wanted["exact"]:
            assert sorted(found) == sorted(wanted["tests"])


def test_the_step_is_the_one_whose_process_failed() -> None:
    log = parse_log((LOGS / "pytest-py9-plain.log").read_bytes())
    assert log.step.startswith("Run python -m pytest")
    assert log.command.startswith("python -m pytest")


def test_a_failure_carries_its_place_its_kind_and_what_was_said() -> None:
    log = parse_log((LOGS / "pytest-py9-plain.log").read_bytes())
    wrong = next(one for one in log.failures if one.test.endswith("test_wrong"))
    assert (wrong.kind, wrong.path, wrong.line) == ("AssertionError", "test_calc.py", 8)
    assert wrong.message.startswith("assert 3 == 4")


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("pytest-py9-plain", "web-1  | "),
        ("jest29", "web:test: "),
        ("vitest2", "@shop/web:test: "),
        ("jest29-projects", "packages/web test: "),
        ("mypy-py9", "api_1   | "),
    ],
)
def test_whose_line_it_is_does_not_hide_what_it_says(name: str, prefix: str) -> None:
    text = (LOGS / f"{name}.log").read_text()
    prefixed = [line if "##[" in line else prefix + _unstamped(line) for line in text.split("\n")]
    found = [one.test for one in failures_in("\n".join(prefixed))]
    assert sorted(found) == sorted(EXPECTED[name]["tests"])


def _unstamped(line: str) -> str:
    return line.partition(" ")[2]


def test_a_name_as_long_as_the_line_heads_its_failure() -> None:
    first = read_failures((LOGS / "pytest-long-name.log").read_text())[0]
    assert (first.kind, first.path, first.line) == ("AssertionError", "test_z.py", 4)


def test_an_error_far_below_its_heading_is_read() -> None:
    deep = "".join(
        f"src/app.py:{line}: in call\n    await self.app(scope)\n" for line in range(300)
    )
    output = (
        f"=== FAILURES ===\n___ test_c ___\na/test_b.py:9: in test_c\n    run()\n{deep}a/test_b.py:20: in check\n    assert a.b\nE   AttributeError: no b\n"
        "=== short test summary info ===\nFAILED a/test_b.py::test_c\n1 failed in 0.1s\n"
    )
    (failure,) = failures_in(output)
    assert (failure.kind, failure.path, failure.line) == ("AttributeError", "a/test_b.py", 20)
    assert failure.message == "AttributeError: no b"


@pytest.mark.parametrize("has_summary", [True, False])
def test_a_heading_may_be_the_whole_id(has_summary: bool) -> None:
    test = f"a/test_b.py::test_c[<b>-{'x.y' * 30}]"
    summary = f"=== short test summary info ===\nFAILED {test}\n" if has_summary else ""
    output = f"=== FAILURES ===\n_ {test} _\na/test_b.py:9: in test_c\n    assert a\nE   AssertionError: no\n{summary}=== 1 failed in 0.1s ===\n"
    (failure,) = failures_in(output)
    assert (failure.test, failure.kind, failure.line) == (test, "AssertionError", 9)


def test_plain_output_needs_no_wrapping() -> None:
    output = "FAILED\n=== short test summary info ===\nFAILED a/test_b.py::test_c - ValueError: no\n1 failed in 0.1s\n"
    assert [(one.test, one.kind) for one in failures_in(output)] == [
        ("a/test_b.py::test_c", "ValueError")
    ]


@pytest.mark.parametrize(
    "output", ["", "all fine\n", "2 passed in 0.01s\n", "OK\n", "Success: no issues found\n"]
)
def test_nothing_is_found_where_nothing_failed(output: str) -> None:
    assert failures_in(output) == ()


def test_a_green_job_has_no_failures() -> None:
    log = (
        "2026-10-01T12:00:00.1234567Z ##[group]Run pytest\n"
        "2026-10-01T12:00:00.1234567Z ##[endgroup]\n"
        "2026-10-01T12:00:01.1234567Z 3 passed, error handling checked, in 0.10s\n"
        "2026-10-01T12:00:02.1234567Z Cleaning up orphan processes\n"
    )
    assert parse_log(log.encode()).failures == ()


def test_an_unknown_tool_degrades_to_its_error_block() -> None:
    log = parse_log((LOGS / "shell-unknown.log").read_bytes())
    assert "the frobnicator is out of frobs" in log.failures[0].message


def test_a_log_cut_off_in_the_middle_still_tells_what_it_holds() -> None:
    whole = (LOGS / "pytest-py9-plain.log").read_bytes()
    cut = whole[: whole.index(b"short test summary info") - 200]
    log = parse_log(cut)
    assert log.truncated
    assert "test_calc.py::TestAdd::test_wrong" in [failure.test for failure in log.failures]


def test_the_first_failed_step_counts_not_a_later_one() -> None:
    log = (
        "2026-10-01T12:00:00.1Z ##[group]Run ruff check .\n2026-10-01T12:00:00.1Z ##[endgroup]\n"
        "2026-10-01T12:00:00.1Z a.py:1:8: F401 [*] `os` imported but unused\n"
        "2026-10-01T12:00:00.1Z ##[error]Process completed with exit code 1.\n"
        "2026-10-01T12:00:00.1Z ##[group]Run ./report.sh\n2026-10-01T12:00:00.1Z ##[endgroup]\n"
        "2026-10-01T12:00:00.1Z ##[error]Process completed with exit code 9.\n"
    )
    seen = parse_log(log.encode())
    assert (seen.step, seen.kind, seen.exit_code) == ("Run ruff check .", "lint", 1)


def test_a_named_step_is_taken_at_its_word() -> None:
    log = "job\tUnit tests\t2026-10-01T12:00:00.1Z FAIL: test_a (m.T)\n"
    assert parse_log(log.encode(), step="Unit tests").step == "Unit tests"


@pytest.mark.parametrize(
    "line",
    [
        "##[error]The runner has received a shutdown signal. This can happen when the runner service is stopped.",
        "OSError: [Errno 28] No space left on device",
        "curl: (6) Could not resolve host: example.org",
    ],
)
def test_a_dead_machine_is_nobodys_bug(line: str) -> None:
    log = f"##[group]Run make\n##[endgroup]\n{line}\n##[error]Process completed with exit code 1.\n"
    assert parse_log(log.encode()).kind == "infra"


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        ("\x1b[31mred\x1b[0m\r\n", "red"),
        ("10%\r50%\rdone\n", "done"),
        ("\x1b]8;;http://x\x07link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;FAILED t.py::test_a - no end\n", "0;FAILED t.py::test_a - no end"),
        ("tail  \t\n", "tail"),
    ],
)
def test_colours_and_overwritten_text_are_gone(raw: str, seen: str) -> None:
    assert clean_line(raw) == seen


@pytest.mark.soak
def test_a_hundred_megabytes_pass_through_in_little_memory() -> None:
    tracemalloc.start()
    try:
        log = parse_log(_flood(4 * 1024 * 1024))
        small = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert log.failures[0].test == "t.py::test_end"
    assert small < 16 * 1024 * 1024


def _flood(size: int) -> Iterator[bytes]:
    yield b"##[group]Run pytest\n##[endgroup]\n"
    line = b"2026-10-01T12:00:00.1234567Z tests/test_many.py::test_one PASSED   [ 12%] some words to fill the line\n"
    for _ in range(size // len(line)):
        yield line
    yield b"=== short test summary info ===\nFAILED t.py::test_end - KeyError\n".splitlines(
        keepends=True
    )[0]
    yield b"FAILED t.py::test_end - KeyError\n"
    yield b"##[error]Process completed with exit code 1.\n"


def test_millions_of_empty_lines_hide_no_failure() -> None:
    end = b"=== short test summary info ===\nFAILED t.py::test_end - KeyError\n"
    log = read_log(b"\n" * 4_000_000 + b" \r\n" * 100_000 + end, limits=ChildLimits(20, 60, 1024))
    assert [failure.test for failure in log.failures] == ["t.py::test_end"]


def test_blanks_that_end_a_long_line_are_not_taken_for_empty_lines() -> None:
    stream = io.BytesIO(b"\n" * 200 + b" " * 100_000 + b"\nFAILED t.py::test_end - KeyError\n")
    assert list(read_lines(stream))[-2:] == [
        b" " * (100_000 - 65_536) + b"\n",
        b"FAILED t.py::test_end - KeyError\n",
    ]


def test_a_line_without_an_end_does_not_fill_the_memory() -> None:
    stream = io.BytesIO(b"x" * 3_000_000 + b"\nFAILED\n")
    assert max(len(line) for line in read_lines(stream)) <= 65_536
    assert parse_log(read_lines(io.BytesIO(b"(" * 500_000))) is not None


_WORDS = st.sampled_from([
    "FAILED ", "ERROR ", "=== FAILURES ===", "___ x ___", "E   ", "a.py:1: ", "##[group]Run x", "##[error]", "Traceback (most recent call last):",
    '  File "a.py", line 9', "test_a (m.T)", "FAIL: ", "=" * 70, "-" * 70, "--- FAIL: T (0.0s)", "error[E1]: x", " --> a.rs:1:2", "● a › b", " FAIL  a.ts > b",
    "\n", "\n", "\n", " - ", "::", "[", "]", "(", ")", "\x1b[", "\r", "\ufeff", "short test summary info", "1 failed in 0.1s", "npm ERR! code E1", "panic: x",
    "nox > * x: failed", "hook....Failed", "- hook id: x", "2026-10-01T12:00:00.1Z ", "9" * 30, "error: ",
])  # fmt: skip


@settings(max_examples=100, deadline=2000)
@given(st.lists(_WORDS | st.text(max_size=20), max_size=60))
def test_no_log_crashes_it(parts: list[str]) -> None:
    text = "".join(parts)
    parse_log(text.encode("utf-8", "replace"))
    failures_in(text)


@settings(max_examples=100, deadline=2000)
@given(st.binary(max_size=400))
def test_no_bytes_crash_it(raw: bytes) -> None:
    parse_log(raw)


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        " ",
        "(",
        "[",
        "::",
        " - ",
        "a.py:1:",
        "=",
        "_",
        "\x1b[",
        "\x1b]",
        "9",
        "/",
        "a b ",
        "- ",
        "● ",
        "> ",
        "Failed",
        "...",
        "`",
    ],
)
def test_no_line_stalls_it(unit: str) -> None:
    line = (unit * 5_000)[:5_000]
    text = "\n".join(
        prefix + line
        for prefix in (
            "",
            "FAILED ",
            "E ",
            "ERROR ",
            " FAIL  a.ts > ",
            "=== ",
            "___ ",
            "error: ",
            "  ",
            "FAIL: ",
        )
    )
    started = time.process_time()
    parse_log(f"=== short test summary info ===\n{text}\n".encode())
    failures_in(text)
    assert time.process_time() - started < 3


def test_the_output_of_a_command_is_what_its_step_printed() -> None:
    log = (LOGS / "pytest-py9-plain.log").read_bytes()
    command = parse_log(log).command
    printed = extract_command_output(log, command)
    assert "short test summary" in printed
    assert "Syncing repository" not in printed
    assert "##[" not in printed
    assert extract_command_output(log, "make nothing") == ""


RACE = """\
==================
WARNING: DATA RACE
Read at 0x00c00001c0a8 by goroutine 8:
  example.org/app/cache.(*Cache).Get()
      /home/runner/work/app/app/cache/cache.go:21 +0x44

Previous write at 0x00c00001c0a8 by goroutine 7:
  example.org/app/cache.(*Cache).Put()
      /home/runner/work/app/app/cache/cache.go:15 +0x64
==================
--- FAIL: TestParallel (0.00s)
    testing.go:1398: race detected during execution of test
FAIL
FAIL\texample.org/app/cache\t0.015s
"""
NODE_TAP = """\
TAP version 13
# Subtest: totals the cart
not ok 1 - totals the cart
  ---
  duration_ms: 0.74475
  location: '/home/runner/work/app/app/test/cart.test.mjs:3:1'
  failureType: 'testCodeFailure'
  error: |-
    Expected values to be strictly equal:

    10 !== 12
  code: 'ERR_ASSERTION'
  name: 'AssertionError'
  expected: 12
  actual: 10
  operator: 'strictEqual'
  stack: |-
    TestContext.<anonymous> (file:///home/runner/work/app/app/test/cart.test.mjs:4:10)
    Test.runInAsyncScope (node:async_hooks:206:9)
  ...
1..1
# fail 1
"""
JUNIT_4 = """\
JUnit version 4.13.2
..E
Time: 0.012
There was 1 failure:
1) totals(shop.CartTest)
java.lang.AssertionError: expected:<12> but was:<10>
\tat org.junit.Assert.assertEquals(Assert.java:633)
\tat shop.CartTest.totals(CartTest.java:21)

FAILURES!!!
Tests run: 2,  Failures: 1
"""
CYPRESS = """\
  1 passing (1s)
  1 failing

  1) cart
       totals:
     AssertionError: expected 10 to equal 12
      at Context.eval (webpack://app/./cypress/e2e/cart.cy.js:7:22)
"""
UVU = """\
\x1b[47m Cart \x1b[49m ✘ • \x1b[31m  (1 / 2)
  \x1b[41m FAIL \x1b[49m\x1b[47m Cart \x1b[49m \x1b[2m"\x1b[22mtotals\x1b[2m"\x1b[22m
    price is not defined
\x1b[90m
    at total (/work/src/cart.js:48:4)
    at Object.handler (/work/test/cart.js:23:18)
    at Number.runner (/work/node_modules/uvu/dist/index.js:77:16)\x1b[39m

 Other • (1 / 1)

  Total:     3
"""


@pytest.mark.parametrize(
    ("log", "where", "message"),
    [
        (UVU, ("Cart totals", "error", "src/cart.js", 48), "price is not defined"),
        (RACE, ("TestParallel", "data race", "cache/cache.go", 21), "race detected"),
        (NODE_TAP, ("totals the cart", "AssertionError", "test/cart.test.mjs", 4), "Expected values to be strictly equal:\n10 !== 12"),
        (JUNIT_4, ("shop.CartTest.totals", "AssertionError", "CartTest.java", 21), "expected:<12> but was:<10>"),
        (JUNIT_4.replace("1) totals(", "1) totals[Number: any (1)]("), ("shop.CartTest.totals[Number: any (1)]", "AssertionError", "CartTest.java", 21), "expected:<12> but was:<10>"),
        (CYPRESS, ("cart totals", "AssertionError", "cypress/e2e/cart.cy.js", 7), "expected 10 to equal 12"),
    ],
    ids=["uvu", "go test -race", "node --test, TAP", "JUnit 4", "JUnit 4, parametrised", "cypress"],
)  # fmt: skip
def test_a_runner_names_test_kind_and_place(
    log: str, where: tuple[str, str, str, int], message: str
) -> None:
    (failure,) = read_failures(log)
    assert (failure.test, failure.kind, failure.path, failure.line) == where
    assert message in failure.message


def test_the_class_under_test_is_not_taken_for_the_class_of_the_test() -> None:
    log = (
        "[ERROR] app.CalculatorTest.divides -- Time elapsed: 0.01 s <<< ERROR!\n"
        "java.lang.ArithmeticException: / by zero\n"
        "\tat app.Calculator.divide(Calculator.java:7)\n"
        "\tat app.CalculatorTest.divides(CalculatorTest.java:12)\n"
    )
    (failure,) = read_failures(log)
    assert (failure.path, failure.line) == ("CalculatorTest.java", 12)
