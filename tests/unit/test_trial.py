"""What a run of a command says, before anybody asks which tests failed."""

from __future__ import annotations

import pytest

from regreen.domain.models import RunResult
from regreen.runs.trial import find_missing_tool


@pytest.mark.parametrize(
    ("command", "stderr", "tool"),
    [
        ("python -m pytest -q", "/env/bin/python: No module named pytest\n", "pytest"),
        ("python3 -m tox", "/usr/bin/python3: No module named tox", "tox"),
        # a module of the repository's own that is gone is a failure like any other
        ("python -m shop.total", "/env/bin/python: No module named shop.total\n", None),
        ("python -m pytest -q", "E   ModuleNotFoundError: No module named 'shop'\n", None),
        ("pytest -q", "No module named pytest", None),
    ],
)
def test_a_tool_that_the_box_lacks_is_told_from_a_failure(
    command: str, stderr: str, tool: str | None
) -> None:
    result = RunResult("exit", 1, "", stderr, False, 0.1)
    assert find_missing_tool(command.split(), result) == tool
