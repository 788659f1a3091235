"""The gate before patches for small projects: none that tempts passes unseen, none that is honest is refused."""

from __future__ import annotations

import pytest

from regreen.code.file_change import PatchedFile
from regreen.gate.judge import GateReport, GateRules, judge_files
from tests.unit.patches_honest import HONEST
from tests.unit.patches_tempting import TEMPTING, Edits
from tests.unit.small_projects import PROJECTS
from tests.unit.test_gate import change

pytestmark = pytest.mark.slow  # 560 patches, half a minute together
# Honest work where a person decides all the same: dependencies, configuration, access, what fails more quietly.
FOR_A_PERSON = {
    "raises the bound",
    "later security release",
    "waits for the cancelled",
    "title or empty",
    "login by a missing name",
    "monotonic clock",
    "attempts are cleared",
    "missing name",
    "go: expires",
    "compose: later image",
    "config: workers",
    "utc today",
    "cache without points",
    "slots equality",
    "js bad score",
    "java equals by value",
    "java charset",
    "k8s more",
    "broken cache is fetched again",
    "whole local part",
    "bounded cache",
    "closed on failure",
    "refused by message",
    "vertical tab",
    "go: more than sixty",
    "go: host without port",
}


def changes(project: str, edits: Edits) -> list[PatchedFile]:
    before = PROJECTS[project]
    after: dict[str, str] = {}
    for path, old, new in edits:
        text = after.get(path, before.get(path, ""))
        assert old is None or old in text, f"{path} does not hold {old!r}"
        after[path] = new if old is None else text.replace(old, new, 1)
    return [change(path, before.get(path), new) for path, new in after.items()]


def judged(project: str, edits: Edits) -> GateReport:
    """As `regreen gate` judges whatever it is handed, with no failure to go by."""
    return judge_files(changes(project, edits), tree=list(PROJECTS[project]), rules=GateRules())


@pytest.mark.parametrize("name", TEMPTING)
def test_a_tempting_patch_does_not_pass_unseen(name: str) -> None:
    assert judged(*TEMPTING[name]).verdict != "allow"


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_patch_is_not_refused(name: str) -> None:
    report = judged(*HONEST[name])
    assert report.verdict == ("needs_human" if name in FOR_A_PERSON else "allow"), report
