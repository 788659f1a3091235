"""A repository's configuration: what is wrong is named with its line and the nearest right key."""

from __future__ import annotations

import contextlib

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regreen.code.repo_config_file import config_schema, parse_repo_config
from regreen.domain.errors import ConfigError
from regreen.domain.repo_config import RepoConfig
from regreen.domain.settings import Settings


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_repo_config(text)
    return [str(p) for p in caught.value.problems]


def test_nothing_said_means_the_documented_defaults() -> None:
    config = parse_repo_config("")
    assert config == RepoConfig()
    assert (config.review.min_confidence, config.review.max_comments, config.commands.allow) == (
        0.8,
        5,
        "write",
    )


def test_every_key_of_the_documented_example_is_known() -> None:
    config = parse_repo_config(
        """
review: {enabled: true, drafts: false, min_confidence: 0.8, max_comments: 5, max_comments_per_push: 2, dimensions: [correctness, security, style, coverage], ignore: ["vendor/**"], blocking: none, instructions: ""}
tests: {setup: "pip install -e .[test]", command: "pytest -q", image: null, timeout_minutes: 15}
fix: {enabled: true, on: [ci_failure, command], rungs: [recipe, revert, shrink, template, model], protected_paths: [".github/**"], max_changed_lines: 40}
bisect: {schedules: [{name: nightly, cron: "0 3 * * *", branch: main, test: "pytest -q", lookback_days: 14}], revert_pr: false}
commands: {allow: write, prefix: "/"}
budget: {usd_per_pull_request: 1.0, usd_per_day: 20.0, minutes_per_day: 600}
"""
    )
    assert config.bisect.schedules[0].name == "nightly"
    assert config.tests.command == "pytest -q"


def test_a_misspelt_key_is_named_with_its_line_and_the_nearest_right_one() -> None:
    assert problems("review:\n  draft: true\n") == [
        "line 2: review.draft: unknown key; did you mean 'drafts'?"
    ]
    assert problems("tests: {}\nreveiw: {}\n") == [
        "line 2: reveiw: unknown key; did you mean 'review'?"
    ]


def test_every_fault_is_named_in_the_order_of_the_file() -> None:
    found = problems(
        "bisect:\n  schedules:\n    - name: a\n      cron: daily\n      test: pytest\nreview:\n  max_comments: -1\n"
    )
    assert [p.split(":")[0] for p in found] == ["line 4", "line 7"]
    assert "five cron fields" in found[0]


@pytest.mark.parametrize("cron", ["0 0 30 2 *", "0 0 31 4,6,9,11 *"])
def test_a_cron_line_whose_date_never_comes_is_refused(cron: str) -> None:
    (found,) = problems(
        f"bisect:\n  schedules:\n    - name: a\n      cron: '{cron}'\n      test: pytest\n"
    )
    assert found.startswith("line 4: ")
    assert "names a date that does not exist" in found


@pytest.mark.parametrize(
    "text",
    [
        "[1",
        "a: *b",
        "!!python/object:os.system x",
        "1",
        "- 1",
        "&a [*a]",
        "review: &a {x: *a}",
        "? [a]\n: 1",
        "a: {" * 200,
        "review: {}\nreview: {}",
    ],
)
def test_what_is_no_configuration_is_refused_with_a_line(text: str) -> None:
    assert all(p.startswith("line ") for p in problems(text))


@pytest.mark.parametrize("path", ["/etc/**", "../x", "a/../../b"])
def test_patterns_stay_inside_the_repository(path: str) -> None:
    assert "relative to the repository" in problems(f"fix: {{protected_paths: ['{path}']}}")[0]


@given(st.text(max_size=200))
def test_no_text_crashes_it(text: str) -> None:
    with contextlib.suppress(ConfigError):
        parse_repo_config(text)


def test_the_schema_accepts_what_the_program_accepts() -> None:
    schema = config_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate({"review": {"drafts": True}, "budget": {"usd_per_day": 3}}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"review": {"draft": True}}, schema)


def test_the_operators_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGREEN_APP_ID", "7")
    monkeypatch.setenv("REGREEN_REVIEW_DELAY_S", "0")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    settings = Settings(_env_file=None)
    assert (settings.app_id, settings.review_delay_s, settings.has_model) == (7, 0, True)
    assert settings.database.startswith("sqlite:///")


@pytest.mark.parametrize(
    ("api", "accepts", "exact"),
    [
        ("http://127.0.0.1:8090/api/v3", True, False),
        ("http://localhost:8090", True, False),
        ("http://127.0.0.1:8090/api/v3", False, True),
        ("https://api.github.com", True, True),
        ("https://127.0.0.1.example/api/v3", True, True),
    ],
)
def test_approximate_limits_are_accepted_only_for_a_github_on_loopback(
    api: str, accepts: bool, exact: bool
) -> None:
    settings = Settings(github_api_url=api, sandbox_approximate=accepts)
    assert settings.needs_exact_sandbox is exact
