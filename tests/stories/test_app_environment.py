"""A repository that says nothing about its tests: the App infers how they are set up and run, and says from where."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.stories.conftest import Tell
from tests.stories.story import REPO, SHOP, SeenPull, Story, proven_sandbox
from tests.stories.test_environment import BROKEN, PYPROJECT
from tests.stories.test_fixes import needs_sandbox
from tests.stories.test_trust import Prepared
from tests.unit.repairs import CALC, GREEN

pytestmark = [pytest.mark.sandbox, needs_sandbox]
_CHANGED = {"pkg/calc.py": CALC.replace("    return result\n", "    return result  # all\n")}
_RAN = "Test coverage of new lines: 100% (1 of 1)."
_MORE = PYPROJECT.replace('["pytest", "iniconfig"]', '["pytest"]\ndev = ["iniconfig"]')
_UNKNOWN = _MORE.replace('"iniconfig"', '"freezgun-helper-x"')
_WORKFLOW = """\
on: push
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - run: pip install pytest freezgun-helper-x
      - run: python -m pytest -q
"""
_LOG = "pkg/calc.py: FAILED\n##[error]Process completed with exit code 1.\n"


def _begin(story: Story) -> Story:
    """Replace the shop by a project with a manifest, and no word of Regreen."""
    gone = {path: None for path in SHOP if path != "README.md"}
    story.commits({**gone, **GREEN, "pyproject.toml": PYPROJECT}, message="Begin")
    story.work()
    return story


@pytest.fixture
def project(story: Story) -> Story:
    return _begin(story)


def _stored(story: Story, kind: str) -> dict[str, Any]:
    (document, *_) = story.regreen.store.documents(kind=kind, repo=REPO, limit=1)
    return dict(document.body)


def _summary(pull: SeenPull) -> str:
    return pull.check.summary or ""


def test_the_tests_of_a_pull_request_run_as_inferred(project: Story) -> None:
    pull = project.pull(_CHANGED)
    project.work()
    assert _RAN in _summary(pull)
    assert "Environment inferred from pyproject.toml:8" in _summary(pull)
    environment = _stored(project, "review")["environment"]
    assert "-e '.[test]'" in environment["setup"]
    assert environment["sources"]["setup"] == "pyproject.toml:8"
    assert environment["test"] == "python -m pytest -q"


def test_a_setup_that_a_change_brings_along_is_used_once_it_is_asked_for(project: Story) -> None:
    pull = project.pull({**_CHANGED, "pyproject.toml": _MORE})
    project.work()
    base = project.state.repository(REPO).git.branch("main") or ""
    assert f"inferred from the base {base[:12]}: this change says something else (pyproject.toml:" in _summary(pull)  # fmt: skip
    assert "-e '.[test]'" in _stored(project, "review")["environment"]["setup"]
    project.says("alice", "/review", on=pull)
    project.work()
    assert "says something else" not in _summary(pull)
    assert "-e '.[test,dev]'" in _stored(project, "review")["environment"]["setup"]
    assert _RAN in _summary(pull)


def test_a_change_of_what_the_setup_reads_is_named_until_it_is_asked_for(project: Story) -> None:
    more = PYPROJECT.replace('"iniconfig"]', '"iniconfig", "attrs"]')
    pull = project.pull({**_CHANGED, "pyproject.toml": more})
    project.work()
    assert "and reads pyproject.toml, which this change alters" in _summary(pull)
    assert _RAN in _summary(pull)
    project.says("alice", "/review", on=pull)
    project.work()
    assert "which this change alters" not in _summary(pull)


def test_a_setup_of_a_pull_request_passes_the_guard(project: Story) -> None:
    pull = project.pull({**_CHANGED, "pyproject.toml": _UNKNOWN})
    project.says("alice", "/review", on=pull)
    project.work()
    assert _RAN not in _summary(pull)
    assert "freezgun-helper-x" in _summary(pull)
    assert "tests.allow_packages" in _summary(pull)


def test_a_workflow_that_a_pull_request_brings_along_is_judged_too(project: Story) -> None:
    pull = project.pull({**_CHANGED, ".github/workflows/ci.yml": _WORKFLOW})
    project.says("alice", "/review", on=pull)
    project.work()
    assert "the setup was not run" in _summary(pull)
    assert "tests.allow_packages" in _summary(pull)
    assert "Environment inferred from pyproject.toml:8" in _summary(pull)


def test_a_forks_changed_setup_is_not_used_before_it_is_approved(tell: Tell) -> None:
    prepared: list[tuple[str, str]] = []
    watched = proven_sandbox().with_tracing(lambda sandbox: Prepared(sandbox, prepared))
    story = _begin(tell(None, watched))
    pull = story.fork_pull({**_CHANGED, "pyproject.toml": _MORE})
    story.says("mallory", "/review", on=pull)
    story.work()
    assert prepared == []
    assert "its code is not run before a person with write access" in _summary(pull)
    assert _stored(story, "review")["environment"] is None
    story.says("alice", "/approve", on=pull)
    story.work()
    assert _RAN in _summary(pull)
    assert "-e '.[test,dev]'" in _stored(story, "review")["environment"]["setup"]
    assert set(prepared) == {("pull_request", f"{REPO}/fork/{pull.number}")}


def test_red_ci_that_has_no_workflow_here_is_repaired_as_inferred(project: Story) -> None:
    sha = project.commits({"pkg/calc.py": BROKEN}, message="Sum faster")
    project.ci_fails(sha, job="test", steps=["Test"], failed="Test", log=_LOG)
    project.work()
    (patch,) = project.pulls
    assert patch.raw.draft
    assert "Environment inferred from pyproject.toml:8" in patch.body
    assert _stored(project, "fix")["environment"]["sources"]["test"] == "tests/test_calc.py"


def test_ci_that_fails_where_the_tests_pass_is_not_said_to_be_green(project: Story) -> None:
    sha = project.commits({"README.md": "# More\n"})
    project.ci_fails(sha, job="deploy", steps=["Deploy"], failed="Deploy", log=_LOG)
    project.work()
    (check,) = project.state.checks_on(REPO, sha)
    assert check.title == "The failure was not reproduced here", "no repair was looked for"
    assert "is not in the repository; `python -m pytest -q` passes here" in (check.summary or "")


@pytest.mark.parametrize("command", ["/bisect", '/bisect test="python -m pytest -q tests"'])
def test_bisect_needs_no_setup(project: Story, command: str) -> None:
    culprit = project.commits({"pkg/calc.py": BROKEN}, message="Sum faster")
    project.commits({"README.md": "# More\n"})
    issue = project.issue("Sums are wrong")
    project.says("alice", command, on=issue)
    project.work()
    assert f"` fails since {culprit[:12]} (verified, " in issue.comments[0]
    assert "Environment inferred from pyproject.toml:8" in issue.comments[0]
    assert "-e '.[test]'" in _stored(project, "bisect")["environment"]["setup"]


@pytest.mark.parametrize("kind", ["bisect", "fix"])
def test_commands_run_the_tests_of_the_part_that_a_pull_request_touches(
    project: Story, kind: str
) -> None:
    project.configures(
        "tests: {setup: 'true', command: python -c 0}\n"
        'paths: {"pkg/**": {tests: {setup: "true", command: "python -m tests.test_calc"}}}\n'
    )
    pull = project.pull({"pkg/calc.py": BROKEN})
    project.work()
    project.says("alice", f"/{kind}", on=pull)
    project.work()
    assert _stored(project, kind)["environment"]["test"] == "python -m tests.test_calc"


def test_who_may_not_write_has_no_setup_of_a_change_used(project: Story) -> None:
    project.configures("commands: {allow: triage}\n")
    project.grants("tina", "triage")
    pull = project.pull({**_CHANGED, "pyproject.toml": _MORE})
    for command, kind in (("/review", "review"), ("/fix", "fix")):
        project.says("tina", command, on=pull)
        project.work()
        assert "-e '.[test]'" in _stored(project, kind)["environment"]["setup"]
    project.says("alice", "/fix", on=pull)
    project.work()
    assert "-e '.[test,dev]'" in _stored(project, "fix")["environment"]["setup"]


def test_a_command_that_cannot_start_is_reported_as_that(project: Story) -> None:
    project.configures("tests: {setup: 'true', command: nosuchprogram --all}\n")
    pull, issue = project.pull(_CHANGED), project.issue("Broken")
    project.says("alice", "/fix", on=pull)
    project.says("alice", "/bisect", on=issue)
    project.work()
    for said in (_summary(pull), pull.comments[0], issue.comments[0]):
        assert "nosuchprogram is not installed" in said


def test_a_setup_that_hangs_is_killed_at_the_limit(project: Story) -> None:
    hangs = {"setup.py": "import time\n\ntime.sleep(600)\n", "pyproject.toml": None}
    project.commits({**hangs, ".github/regreen.yml": "tests: {timeout_minutes: 0.2}\n"})
    pull, started = project.pull(_CHANGED), time.monotonic()
    project.work()
    assert time.monotonic() - started < 120
    assert "the setup inferred from setup.py:1 failed" in _summary(pull)


def test_reviews_can_do_without_running_the_tests(project: Story) -> None:
    project.configures("review: {run_tests: false}\n")
    pull = project.pull(_CHANGED)
    project.work()
    assert _RAN not in _summary(pull)
    assert "review.run_tests is off" in _summary(pull)


def test_tests_of_parts_with_different_images_are_said_not_to_be_run(project: Story) -> None:
    rows = (f'  "{name}/**": {{tests: {{command: pytest {name}, image: "python:3.{minor}"}}}}\n' for name, minor in (("pkg", 12), ("web", 13)))  # fmt: skip
    project.commits({".github/regreen.yml": "paths:\n" + "".join(rows)}, message="Configure")
    project.work()
    pull = project.pull({**_CHANGED, "web/a.py": "A = 1\n"})
    project.work()
    assert "the tests were not run: the change touches parts whose tests need different images" in _summary(pull)  # fmt: skip
    assert _stored(project, "review")["environment"] is None
