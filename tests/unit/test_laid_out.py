"""Files laid out for analyzers: what cannot be read is said, and a full disk is no clean result."""

from __future__ import annotations

import resource

import pytest

from regreen.domain.errors import OutsideError
from regreen.isolation import run_in_child
from regreen.reviewers.analyzers import bundled_checkers
from regreen.reviewers.analyzers.baseline import Diagnostic
from regreen.reviewers.analyzers.bundled_checkers import UNREAD_RULE

UNDEFINED = "def f(x):\n    return y\n"
RULES = ("reportUndefinedVariable",)


def found(hits: list[Diagnostic]) -> list[tuple[str, str]]:
    return sorted((h.path, h.rule) for h in hits)


def test_a_folder_named_like_our_configuration_hides_nothing() -> None:
    files = {"regreen-bundled_checkers.json/x.py": UNDEFINED, "pyproject.toml/x.py": UNDEFINED}
    assert found(bundled_checkers.run_pyright(files, tuple(files), RULES)) == [
        ("pyproject.toml/x.py", RULES[0]),
        ("regreen-bundled_checkers.json/x.py", RULES[0]),
    ]


def test_a_file_too_complex_for_the_type_checker_is_unread_and_the_others_are_read() -> None:
    chain = "def g(x):\n    if x == 0:\n        return 0\n"
    chain += "".join(f"    elif x == {n}:\n        return {n}\n" for n in range(5000))
    files = {"chain.py": chain, "fault.py": UNDEFINED}
    hits = bundled_checkers.run_pyright(files, tuple(files), RULES)
    assert found(hits) == [("chain.py", UNREAD_RULE), ("fault.py", RULES[0])]
    assert "too complex for basedpyright" in [h.message for h in hits]


@pytest.mark.parametrize("path", ["a" * 300 + ".py", "x.py/inside.py", "caf\udce9.py"])
def test_a_path_that_the_disk_refuses_is_unread_and_the_others_are_read(path: str) -> None:
    hits = bundled_checkers.run_ruff({"x.py": UNDEFINED, path: UNDEFINED}, ("F821",))
    assert found(hits) == sorted([("x.py", "F821"), (path, UNREAD_RULE)])


def read_where_the_disk_takes_little() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    bundled_checkers.run_ruff({"large.py": "x = 1\n" * 1000}, ("F821",))


def test_a_disk_that_takes_no_more_is_an_error_and_no_clean_result() -> None:
    with pytest.raises(OutsideError, match="cannot write the files to read to"):
        run_in_child(read_where_the_disk_takes_little)
