"""What a repository sets: `.github/regreen.yml`, its schema, and its faults with their lines. Read once and passed on."""

from __future__ import annotations

import difflib
import json
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from regreen.errors import ConfigError, Problem
from regreen.yaml_faults import fault

CONFIG_PATH = ".github/regreen.yml"

Rung = Literal["recipe", "revert", "shrink", "template", "model"]
RUNGS: tuple[Rung, ...] = get_args(Rung)


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


def _glob(value: str) -> str:
    if value.startswith("/") or ".." in PurePosixPath(value).parts:
        msg = "a path pattern is relative to the repository and has no '..'"
        raise ValueError(msg)
    return value


Glob = Annotated[str, BeforeValidator(_glob)]
DimensionName = Literal["correctness", "security", "style", "coverage"]


class ReviewConfig(_Section):
    """How pull requests are reviewed."""

    enabled: bool = True
    """Review pull requests at all."""
    drafts: bool = False
    """Review drafts too."""
    min_confidence: float = Field(0.8, ge=0.0, le=1.0)
    """Post a finding only from this confidence on; what stays below is on the dashboard."""
    max_comments: int = Field(5, ge=0, le=50)
    """Inline comments on the first review."""
    max_comments_per_push: int = Field(2, ge=0, le=50)
    """Inline comments on each later push."""
    dimensions: tuple[DimensionName, ...] = ("correctness", "security", "style", "coverage")
    """What to look at."""
    ignore: tuple[Glob, ...] = ("vendor/**",)
    """Paths that are not reviewed."""
    blocking: Literal["none", "critical", "high", "medium", "low"] = "none"
    """From which severity on a finding makes the check run fail."""
    instructions: str = Field("", max_length=4000)
    """What reviewers should know about this repository."""
    code_scanning: bool = False
    """Hand the findings to GitHub's code scanning too, as SARIF."""


class TestsConfig(_Section):
    """How the tests are run."""

    setup: str = ""
    """Shell command that installs what the tests need; the only one with a network."""
    command: str = ""
    """Shell command that runs the tests."""
    image: str | None = None
    """Container image to run them in; default: a slim Python."""
    timeout_minutes: float = Field(15, gt=0, le=360)
    """Time for one run of the command."""
    allow_packages: tuple[str, ...] = ()
    """Packages that pull requests and repairs may bring in though few projects use them."""
    allow_indexes: tuple[str, ...] = ()
    """Hosts beside the public registries that they may install from."""
    allow_network: bool = False
    """A CI job that cannot work without a network is run again with one, and the report says so; otherwise none has one while its tests run."""


class FixConfig(_Section):
    """How failing CI is repaired."""

    enabled: bool = True
    """Repair at all."""
    on: tuple[Literal["ci_failure", "command"], ...] = ("ci_failure", "command")
    """What starts a repair."""
    rungs: tuple[Rung, ...] = RUNGS
    """Which rungs of the ladder may be used, in order."""
    protected_paths: tuple[Glob, ...] = (".github/**",)
    """Paths that only a person may change: a patch that touches them waits for `/approve`."""
    max_changed_lines: int = Field(40, ge=1, le=2000)
    """A larger patch waits for `/approve`."""


class Schedule(_Section):
    """One look at a branch, again and again."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")
    """A name for it, unique in this file."""
    cron: str
    """When: five cron fields, UTC."""
    branch: str = Field("main", min_length=1, max_length=255)
    """Which branch."""
    test: str = Field(min_length=1)
    """Shell command that must pass."""
    lookback_days: int = Field(14, ge=1, le=365)
    """How far back the search for the first bad commit may go."""

    @field_validator("cron")
    @classmethod
    def _is_cron(cls, value: str) -> str:
        from croniter import croniter

        if len(value.split()) != 5 or not croniter.is_valid(value):
            msg = f"{value!r} is not five cron fields, such as '0 3 * * *'"
            raise ValueError(msg)
        return value


class BisectConfig(_Section):
    """How regressions are searched for."""

    schedules: tuple[Schedule, ...] = ()
    """Regular looks at a branch."""
    revert_pr: bool = False
    """Open a revert pull request when the culprit is verified."""

    @field_validator("schedules")
    @classmethod
    def _names_differ(cls, value: tuple[Schedule, ...]) -> tuple[Schedule, ...]:
        names = [s.name for s in value]
        if len(set(names)) != len(names):
            msg = "two schedules have the same name"
            raise ValueError(msg)
        return value


class CommandsConfig(_Section):
    """Slash-commands."""

    allow: Literal["read", "triage", "write", "maintain", "admin"] = "write"
    """The least permission that may give commands."""
    prefix: str = Field("/", min_length=1, max_length=20, pattern=r"^\S+$")
    """What a command starts with."""


class BudgetConfig(_Section):
    """What the model may cost, in US dollars. Hard limits."""

    usd_per_pull_request: float = Field(1.0, ge=0)
    """For one pull request."""
    usd_per_day: float = Field(20.0, ge=0)
    """For this repository in a day."""
    usd_per_month: float | None = Field(None, ge=0)
    """For this repository in a calendar month; none: as much as its days allow."""


class RepoConfig(_Section):
    """`.github/regreen.yml`, read from the default branch only."""

    review: ReviewConfig = ReviewConfig()
    """How pull requests are reviewed."""
    tests: TestsConfig = TestsConfig()
    """How the tests are run."""
    fix: FixConfig = FixConfig()
    """How failing CI is repaired."""
    bisect: BisectConfig = BisectConfig()
    """How regressions are searched for."""
    commands: CommandsConfig = CommandsConfig()
    """Slash-commands."""
    budget: BudgetConfig = BudgetConfig()
    """What the model may cost."""


def config_schema() -> dict[str, Any]:
    """The JSON schema of `.github/regreen.yml`."""
    schema = RepoConfig.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Regreen's .github/regreen.yml",
        **{k: v for k, v in schema.items() if k != "title"},
    }


def parse_repo_config(text: str) -> RepoConfig:
    """Read `.github/regreen.yml`.

    Raises:
        ConfigError: it is no YAML, or has unknown keys or bad values; each with its line.
    """
    data, lines = _load(text)
    if data is None:
        return RepoConfig()
    if not isinstance(data, dict):
        raise ConfigError(
            (Problem(1, "", "the file must hold a mapping such as 'review: {drafts: true}'"),)
        )
    try:
        # Through JSON, strictly: YAML's own objects must not decide what a value is.
        sections = {k: v for k, v in _json_ready(data).items() if v is not None}
        return RepoConfig.model_validate_json(json.dumps(sections, default=str), strict=True)
    except ValidationError as error:
        problems = tuple(_problem(e["loc"], e["type"], e["msg"], lines) for e in error.errors())
        raise ConfigError(tuple(sorted(problems, key=lambda p: p.line))) from None


def _json_ready(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _json_ready(v) for k, v in value.items()}
    return [_json_ready(v) for v in value] if isinstance(value, list) else value


def _load(text: str) -> tuple[object, dict[tuple[str | int, ...], int]]:
    if len(text) > 256 * 1024:
        raise ConfigError((Problem(1, "", "the file is larger than 256 KiB"),))
    yaml = YAML(typ="rt", pure=True)
    yaml.max_depth = 50
    try:
        node = yaml.compose(text)
        data = YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError, RecursionError) as error:
        line, what = fault(text, error)
        raise ConfigError((Problem(line, "", what),)) from None
    lines: dict[tuple[str | int, ...], int] = {}
    _walk(node, (), lines, frozenset())
    return data, lines


def _walk(
    node: Any,
    at: tuple[str | int, ...],
    lines: dict[tuple[str | int, ...], int],
    above: frozenset[int],
) -> None:
    """Note the line of every key and item under `node`; `above` holds the ids of the nodes it stands in."""
    if node is None:
        return
    line = node.start_mark.line + 1
    if id(node) in above:
        raise ConfigError((Problem(line, ".".join(map(str, at)), "an alias that contains itself"),))
    if len(lines) > 10_000:
        raise ConfigError((Problem(line, "", "too many keys"),))
    above |= {id(node)}
    lines.setdefault(at, line)
    if node.id == "mapping":
        for key, value in node.value:
            lines[(*at, str(key.value))] = key.start_mark.line + 1
            _walk(value, (*at, str(key.value)), lines, above)
    elif node.id == "sequence":
        for i, value in enumerate(node.value):
            _walk(value, (*at, i), lines, above)


def _problem(
    loc: tuple[str | int, ...], kind: str, message: str, lines: dict[tuple[str | int, ...], int]
) -> Problem:
    at = next((lines[loc[:n]] for n in range(len(loc), -1, -1) if loc[:n] in lines), 1)
    key = ".".join(str(part) for part in loc)
    if kind != "extra_forbidden":
        return Problem(at, key, message.removeprefix("Value error, "))
    known = _keys_at(loc[:-1])
    near = difflib.get_close_matches(str(loc[-1]), known, n=1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'?" if near else "known here: " + ", ".join(known)
    return Problem(at, key, f"unknown key; {hint}")


def _keys_at(loc: tuple[str | int, ...]) -> list[str]:
    model: type[BaseModel] = RepoConfig
    for part in loc:
        if isinstance(part, int):
            continue
        annotation = model.model_fields[part].annotation
        inner = [a for a in (annotation, *get_args(annotation)) if isinstance(a, type)]
        models = [a for a in inner if issubclass(a, BaseModel)]
        if not models:
            return []
        model = models[0]
    return list(model.model_fields)
