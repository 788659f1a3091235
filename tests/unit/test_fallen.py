"""Which tests a patch broke, and which of those that are gone are no surprise."""

from __future__ import annotations

import pytest

from regreen.runs.test_runs import find_regressed_tests


@pytest.mark.parametrize(
    ("test", "path", "missed"),
    [
        ("tests/test_a.py::test_one", "tests/test_a.py", False),
        ("tests/test_a.py::A::test_one", "tests/test_a.py", False),
        ("tests/test_a.py::test_one", "tests/test_b.py", True),
        ("tests.test_a.A.test_one", "tests/test_a.py", False),
        ("test_a.A.test_one", "tests/test_a.py", False),  # `unittest discover -s tests`
        ("tests.test_a.A.test_one", "tests/test_b.py", True),
        ("a.A.test_one", "tests/test_a.py", True),
    ],
)
def test_tests_that_are_openly_taken_back_are_not_missed(
    test: str, path: str, *, missed: bool
) -> None:
    assert find_regressed_tests({test: "passed"}, {}, given_up=[path]) == (
        {test: "gone"} if missed else {}
    )
