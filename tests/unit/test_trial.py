"""A command at a commit: what its setup depends on, and what a run says before anybody asks which tests failed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from regreen import isolation
from regreen.domain.errors import SetupFailed
from regreen.domain.models import RunResult
from regreen.packages.setup_guard import InstallPolicy
from regreen.runs.trial import Trial, find_missing_tool, make_env_spec
from tests.unit.repairs import Repository


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


def test_what_a_commits_setup_depends_on_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = Repository(tmp_path / "repo")
    first = repository.commit("start", {"requirements.txt": "six\n", "a.py": ""})
    second = repository.commit("more", {"requirements.txt": "six\ntqdm\n"})
    git, asked = repository.open(), []
    run = isolation.run_in_child

    def count(function: Callable[..., Any], *args: Any) -> Any:
        asked.append(function)
        return run(function, *args)

    monkeypatch.setattr(isolation, "run_in_child", count)
    trial = Trial(("true",), setup="pip install -r requirements.txt")
    laid = replace(trial, overlay={"requirements.txt": b"attrs\n"})
    digests = [
        make_env_spec(one, rev, git=git).inputs
        for one, rev in ((trial, first), (trial, second), (laid, second))
    ]
    assert len(set(digests)) == len(asked) == 3
    again = [make_env_spec(trial, rev, git=git).inputs for rev in (first, second)]
    assert again == digests[:2]
    assert len(asked) == 3
    # a name may mean another commit the next time
    assert make_env_spec(trial, first[:12], git=git).inputs == digests[0]
    assert make_env_spec(trial, first[:12], git=git).inputs == digests[0]
    assert len(asked) == 5


def test_what_one_policy_allows_is_not_remembered_for_another(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    base = repository.commit("start", {"requirements.txt": "six\n"})
    rev = repository.commit("more", {"requirements.txt": "six\nleftpadder-x\n"})
    git = repository.open()
    strict = Trial(("true",), setup="pip install -r requirements.txt", base=base)
    open_to_it = replace(strict, rules=InstallPolicy(packages=frozenset({"leftpadder-x"})))
    for _ in range(2):
        assert make_env_spec(open_to_it, rev, git=git).checked
        with pytest.raises(SetupFailed, match="leftpadder-x"):
            make_env_spec(strict, rev, git=git)
        assert make_env_spec(replace(strict, base=rev), rev, git=git).checked
