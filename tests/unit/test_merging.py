"""Which claims are one: those that surely have one cause, whoever makes them and in whatever words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from regreen.code.diff import parse
from regreen.reviewers.model.claims import merge_claims, read_claims
from tests.unit.test_readers import EMPTY, EQUALS, claims_of, finding


def test_two_ways_to_say_the_same_become_one_claim_with_two_readers() -> None:
    diff = "--- a/ls.py\n+++ b/ls.py\n@@ -1,2 +1,2 @@\n def match(script):\n-    return False\n+    return 'ls' in script\n"
    files: Sequence[Any] = parse(diff).files
    one = read_claims({"findings": [finding()]}, "trace", files)
    two = read_claims(
        {"findings": [finding(title="substring test makes match accept curls", line=1)]},
        "compare",
        files,
    )
    other = read_claims(
        {"findings": [finding(title="None crashes", happens="TypeError for script None", line=2)]},
        "compare",
        files,
    )
    merged = merge_claims([*one, *two, *other])
    assert [m.readers for m in merged] == [("trace", "compare"), ("compare",)]


def test_two_causes_on_one_line_stay_two_whoever_names_them() -> None:
    both = merge_claims([*claims_of("trace", EMPTY, EQUALS), *claims_of("compare", EQUALS, EMPTY)])
    assert sorted((m.title[:20], len(m.readers)) for m in both) == [
        ("aliases cannot parse", 2),
        ("aliases raises Value", 2),
    ]
    apart = merge_claims([*claims_of("trace", EMPTY), *claims_of("compare", EQUALS)])
    assert len(apart) == 2


def test_what_the_other_reader_saw_beside_it_is_kept_when_two_claims_become_one() -> None:
    other = finding(input="script = 'tools'", sure=0.5)
    (one,) = merge_claims([*claims_of("trace", finding()), *claims_of("compare", other)])
    assert one.readers == ("trace", "compare")
    assert [o.input for o in one.others] == ["script = 'tools'"]
    assert "tools" in one.full_text


TIMEOUT = finding(
    title="open_tcp maps timeouts to ConnectError instead of ConnectTimeout",
    input="timeout={'connect': 0.001}, a host that does not answer",
    happens="fail_after raises TimeoutError, a subclass of OSError; the first that fits is OSError",
    should="ConnectTimeout, as before",
    mend="Put TimeoutError before OSError in both maps.",
)
TIMEOUT_TOO = TIMEOUT | {
    "title": "open_tcp raises ConnectError on a timeout, since TimeoutError is an OSError",
    "input": "a pool with a connect timeout that passes",
    "happens": "TimeoutError is an OSError and OSError is the first key, so ConnectError is raised",
    "should": "ConnectTimeout.",
    "mend": "List TimeoutError first.",
    "kind": "broken-caller",
}


def test_one_fault_in_other_words_and_of_another_kind_is_one() -> None:
    (one,) = merge_claims([*claims_of("trace", TIMEOUT), *claims_of("compare", TIMEOUT_TOO)])
    assert one.readers == ("trace", "compare")


@pytest.mark.parametrize("number", [None, "2", 0, -1, 3, True, 2.0])
def test_an_example_that_is_none_changes_nothing(number: object) -> None:
    other = finding(input="script = 'tools'", sure=0.5)
    (one,) = merge_claims([*claims_of("trace", finding()), *claims_of("compare", other)])
    assert one.with_example(number) == one
