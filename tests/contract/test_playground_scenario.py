"""The demo's repository: a history that is what the acts say it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from regreen_playground import Playground, runner, scenario, serve

from regreen.code.repo_config_file import parse_repo_config


@pytest.fixture
def playground(tmp_path: Path) -> Iterator[Playground]:
    with serve(root=tmp_path, deliver=False) as made:
        scenario.build(made.state, made.state.now())
        yield made


def ends(playground: Playground, sha: str) -> list[str]:
    git = playground.state.repository(scenario.REPO).git
    return [report.conclusion for report in runner.run(git, sha)]


def test_the_history_has_branches_and_people(playground: Playground) -> None:
    git = playground.state.repository(scenario.REPO).git
    commits = git.commits("refs/heads/main")
    assert len(commits) >= 40
    assert sum(len(one.parents) > 1 for one in commits) >= 5
    assert len({one.author.name for one in commits}) == 5


def test_main_is_green_and_each_act_breaks_what_it_says(playground: Playground) -> None:
    state = playground.state
    git = state.repository(scenario.REPO).git
    assert ends(playground, git.branch("main") or "") == ["success"]
    for branch, text, ended in (
        ("currency", scenario.CURRENCY, "success"),
        ("quarters", scenario.QUARTERS, "failure"),
        ("main", scenario.LATELY, "failure"),
    ):
        assert ends(playground, scenario.commits(state, branch, text)[-1]) == [ended]


def test_a_failed_step_leaves_a_log_like_githubs(playground: Playground) -> None:
    sha = scenario.commits(playground.state, "quarters", scenario.QUARTERS)[-1]
    (report,) = runner.run(playground.state.repository(scenario.REPO).git, sha)
    assert ("Run tests", "failure") in report.steps
    assert b"##[error]Process completed with exit code 1." in report.log
    assert b"FAIL: test_passed (tests.test_budget.LeftTest" in report.log


def test_the_configuration_is_valid_before_and_after(playground: Playground) -> None:
    state = playground.state
    scenario.commits(state, "main", scenario.SCHEDULE.replace("{cron}", "* * * * *"))
    scenario.commits(state, "main", scenario.SCHEDULE_OFF)
    git = state.repository(scenario.REPO).git
    entry = git.at("main", ".github/regreen.yml")
    assert entry is not None
    config = parse_repo_config(git.blob(entry.sha).decode())
    assert [one.cron for one in config.bisect.schedules] == ["0 3 * * *"]


def test_a_history_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(ValueError, match="not in the format"):
        scenario.read("=== nobody | Nothing\n")
    with pytest.raises(ValueError, match="a swap has a line"):
        scenario.read("=== ada 1 | One\n--- swap a.py\nold\n")
