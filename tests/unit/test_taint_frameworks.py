"""Taint in the idioms of web frameworks, servers and command lines: what would be posted, and what must not be."""

from __future__ import annotations

import pytest

from regreen.taint.analysis import analyse_program, flow_confidence
from regreen.taint.program import Program
from tests.unit import apps_safe, apps_vulnerable, flows_safe, flows_vulnerable

POSTED = 0.8
UNPOSTED = {"log-injection"}


def found(code: str, least: float = POSTED) -> set[str]:
    flows = analyse_program(Program.from_files({"app/views.py": code}), ["app/views.py"]).flows
    return {f.rule for f in flows if flow_confidence(f.rule, f.origin, certain=f.certain) >= least}


@pytest.mark.parametrize(("rule", "code"), flows_vulnerable.CASES + apps_vulnerable.CASES)
def test_harm_is_found(rule: str, code: str) -> None:
    assert rule in found(code, 0.4 if rule in UNPOSTED else POSTED)


@pytest.mark.parametrize(("rule", "code"), flows_safe.CASES + apps_safe.CASES)
def test_what_the_documentation_advises_is_left_alone(rule: str, code: str) -> None:
    assert found(code) == set(), f"safe against {rule}"
