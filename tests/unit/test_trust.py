"""The one decision on whose code runs: nothing that runs code is built around it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import regreen.bot

_BOT = Path(regreen.bot.__file__).parent


@pytest.mark.parametrize(("made", "by"), [("Clearance", "trust.py"), ("Trial", "trials.py")])
def test_what_runs_code_is_made_in_one_place(made: str, by: str) -> None:
    """A new flow that runs code gets its `Trial` from `tests_of` or `red_of_run`, which take a clearance's word."""
    makers = [
        path.name
        for path in _BOT.rglob("*.py")
        if re.search(rf"(?<!class )\b{made}\(", path.read_text())
    ]
    assert makers == [by]


def test_whom_an_environment_serves_is_said_by_a_clearance_alone() -> None:
    literal = re.compile(r'trust="|scope=f?"|"default_branch"')
    assert [p.name for p in _BOT.rglob("*.py") if literal.search(p.read_text())] == ["trust.py"]
