"""Settings by path: which hold for a file, and which tests a change asks for."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from regreen.bot.repository_settings import config_to_yaml
from regreen.cli import cli
from regreen.code.path_settings import (
    find_instructions,
    list_ignored,
    narrow_limits,
    review_settings,
    select_tests,
)
from regreen.code.repo_config_file import config_schema, parse_repo_config
from regreen.domain.errors import ConfigError
from tests.unit.repairs import Repository, sandbox_or_skip

_MONOREPO = """\
review: {min_confidence: 0.7, instructions: be kind}
tests: {setup: make deps, command: make test, timeout_minutes: 10}
paths:
  "services/**":
    review: {min_confidence: 0.9, blocking: high, instructions: no globals}
    tests: {command: pytest services, timeout_minutes: 5}
  "services/api/**":
    review: {blocking: none}
    tests: {command: go test ./..., setup: go mod download, image: golang}
  "web/**":
    tests: {command: npm test}
  "docs/**": {review: {dimensions: [style]}}
"""


def test_of_the_patterns_that_cover_a_file_the_last_that_names_a_key_wins() -> None:
    config = parse_repo_config(_MONOREPO)
    for path, expected in {
        "setup.py": (0.7, "none", 4),
        "services/jobs/run.py": (0.9, "high", 4),
        "services/api/main.go": (0.9, "none", 4),
        "docs/conf.py": (0.7, "none", 1),
    }.items():
        found = review_settings(config, path)
        assert (found.min_confidence, found.blocking, len(found.dimensions)) == expected, path


_LIMITED = """\
review: {ignore: ["vendor/**"]}
fix: {protected_paths: [".github/**"], max_changed_lines: 40}
budget: {usd_per_pull_request: 2.0}
paths:
  "services/**":
    review: {ignore: ["generated/**"]}
    fix: {max_changed_lines: 60}
    budget: {usd_per_pull_request: 0.5}
  "services/api/*.go":
    fix: {max_changed_lines: 10, protected_paths: ["schema/**"]}
    budget: {usd_per_pull_request: 3.0}
  "legal/**": {fix: {enabled: false}}
"""


@pytest.mark.parametrize(
    ("changed", "lines", "dollars"),
    [(["setup.py"], 40, 2.0), ([], 40, 2.0), (["services/a.py"], 40, 0.5), (["services/api/a.go", "setup.py"], 10, 0.5)],
)  # fmt: skip
def test_the_least_limit_of_what_is_touched_counts(
    changed: list[str], lines: int, dollars: float
) -> None:
    config = narrow_limits(parse_repo_config(_LIMITED), changed)
    assert (config.fix.max_changed_lines, config.budget.usd_per_pull_request) == (lines, dollars)
    protected = (".github/**", "services/api/schema/**", "legal/**")
    assert config.fix.protected_paths == protected, "whatever is touched"


def test_what_a_path_ignores_lies_below_its_folder() -> None:
    assert list_ignored(parse_repo_config(_LIMITED)) == ("vendor/**", "services/generated/**")


def test_reviewers_are_told_what_holds_for_the_files_they_read() -> None:
    config = parse_repo_config(_MONOREPO)
    assert find_instructions(config, ["web/a.ts"]) == "be kind"
    assert find_instructions(config, ["services/a.py"]) == "be kind\n\nFor services/**: no globals"


@pytest.mark.parametrize(
    ("changed", "setup", "command", "image", "minutes"),
    [
        (["Makefile"], "make deps", "make test", None, 10),
        (["services/api/main.go"], "go mod download", "go test ./...", "golang", 10),
        (["services/run.py", "README.md"], "", "pytest services", None, 5),
        (["README.md"], "make deps", "make test", None, 10),
        (["docs/conf.py"], "make deps", "make test", None, 10),
        # of two images neither can run the other's
        (["services/run.py", "services/api/main.go"], "make deps", "make test", None, 10),
        ([], "make deps", "make test", None, 10),
    ],
)
def test_only_the_tests_of_what_is_touched_are_run(
    changed: list[str], setup: str, command: str, image: str | None, minutes: float
) -> None:
    tests = select_tests(parse_repo_config(_MONOREPO), changed).tests
    assert (tests.setup, tests.command, tests.image, tests.timeout_minutes) == (
        setup,
        command,
        image,
        minutes,
    )


@pytest.mark.parametrize(("second", "code"), [("true", 0), ("exit 3", 3)])
def test_several_commands_run_one_after_the_other_and_one_failure_is_enough(
    second: str, code: int
) -> None:
    text = f'paths: {{"a/**": {{tests: {{command: "echo a # one"}}}}, "b/**": {{tests: {{command: "{second}"}}}}}}'
    tests = select_tests(parse_repo_config(text), ["b/x.py", "a/x.py"]).tests
    done = subprocess.run(
        ["bash", "-c", tests.command], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (code, "a\n")
    assert tests.timeout_minutes == 30


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('paths:\n  "a/**":\n    tests: {commands: x}', "3: paths.a/**.tests.commands: unknown key; did you mean 'command'?"),
        ('paths: {"a/**": {why: {}}}', "1: paths.a/**.why: unknown key; known here: review, tests, fix, budget"),
        ('paths:\n  "../b/**": {}', "2: "),
        ('paths: {"a/**": {review: {min_confidence: 2}}}', "1: paths.a/**.review.min_confidence: "),
    ],
)  # fmt: skip
def test_a_fault_below_a_pattern_has_its_line_and_the_nearest_key(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as told:
        parse_repo_config(text)
    (found,) = told.value.problems
    assert f"{found.line}: {found.key + ': ' if found.key else ''}{found.message}".startswith(problem)  # fmt: skip


def test_the_schema_knows_the_same_keys(tmp_path: Path) -> None:
    from ruamel.yaml import YAML

    jsonschema.validate(YAML(typ="safe").load(_MONOREPO), config_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"paths": {"a/**": {"why": {}}}}, config_schema())
    shown = config_to_yaml(parse_repo_config(_MONOREPO))
    assert parse_repo_config(shown).paths == parse_repo_config(_MONOREPO).paths
    assert "null" not in shown.partition("paths:")[2]
    file = tmp_path / "regreen.yml"
    file.write_text(_MONOREPO)
    done = CliRunner().invoke(cli, ["config", "check", str(file)], standalone_mode=False)
    assert done.stdout == f"{file}: valid\n"


_BROKEN = "def read(text):\n    assert (text, 'empty')\n    return text\n"
_SAFE = "def read(text):\n    return text\n"


@pytest.fixture
def monorepo(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "repo")
    config = (
        "tests: {setup: 'true', command: 'echo whole; false'}\n"
        "paths:\n"
        '  "api/**": {review: {blocking: low}, tests: {setup: "true", command: "test -e api/read.py"}}\n'
        '  "tools/**": {review: {min_confidence: 1.0}}\n'
        '  "web/**": {review: {dimensions: [style]}}\n'
    )
    files = {f"{part}/read.py": _SAFE for part in ("api", "tools", "web", "other")}
    made.commit("start", {".github/regreen.yml": config, **files})
    made.commit("check", dict.fromkeys(files, _BROKEN))
    return made


def review(repository: Repository, *argv: str) -> tuple[int, dict[str, dict[str, bool]]]:
    """The exit code, and for each file its posted findings and whether they block."""
    words = ["review", "--repo", str(repository.path), "--base", "HEAD~1", "--head", "HEAD", "--no-model", "--format", "json", *argv]  # fmt: skip
    done = CliRunner().invoke(cli, words, standalone_mode=False, catch_exceptions=False)
    found: dict[str, dict[str, bool]] = {}
    for row in json.loads(done.stdout)["findings"]:
        found.setdefault(row["path"], {})[row["rule"]] = row["blocking"]
    return int(done.return_value or 0), found


def test_a_review_posts_and_blocks_by_the_settings_of_each_file(monorepo: Repository) -> None:
    code, found = review(monorepo)
    assert found == {"api/read.py": {"ruff/F631": True}, "other/read.py": {"ruff/F631": False}}
    assert code == 1
    _, found = review(monorepo, "--min-confidence", "0.1")
    assert "tools/read.py" in found, "the command line wins"


@pytest.mark.sandbox
def test_a_review_runs_the_tests_of_what_the_change_touches(monorepo: Repository) -> None:
    sandbox_or_skip()
    head = monorepo.commit("api alone", {"api/read.py": _SAFE})
    words = ["review", "--repo", str(monorepo.path), "--base", f"{head}~1", "--no-model", "--run-tests", "--format", "json"]  # fmt: skip
    done = CliRunner().invoke(cli, words, standalone_mode=False, catch_exceptions=False)
    environment = json.loads(done.stdout)["environment"]
    assert (environment["test"], environment["source"]) == (
        "test -e api/read.py",
        ".github/regreen.yml",
    )
