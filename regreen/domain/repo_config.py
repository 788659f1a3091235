"""The settings of `.github/regreen.yml`, as values."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from regreen.domain.models import RUNG_ORDER, RungName

CONFIG_PATH = ".github/regreen.yml"


class _ConfigSection(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


def _check_glob(value: str) -> str:
    if value.startswith("/") or ".." in PurePosixPath(value).parts:
        msg = "a path pattern is relative to the repository and has no '..'"
        raise ValueError(msg)
    return value


GlobPattern = Annotated[str, BeforeValidator(_check_glob)]
Mode = Literal["act", "observe"]
DimensionName = Literal["correctness", "security", "style", "coverage"]


class ReviewConfig(_ConfigSection):
    """How pull requests are reviewed."""

    enabled: bool = True
    """Review pull requests at all."""
    drafts: bool = False
    """Review drafts too."""
    run_tests: bool = True
    """Run the tests of a pull request, as configured below or else as inferred from the repository's files."""
    min_confidence: float = Field(0.8, ge=0.0, le=1.0)
    """Post a finding only from this confidence on; what stays below is on the dashboard."""
    max_comments: int = Field(5, ge=0, le=50)
    """Inline comments on the first review."""
    max_comments_per_push: int = Field(2, ge=0, le=50)
    """Inline comments on each later push."""
    dimensions: tuple[DimensionName, ...] = ("correctness", "security", "style", "coverage")
    """What to look at."""
    ignore: tuple[GlobPattern, ...] = ("vendor/**",)
    """Paths that are not reviewed."""
    blocking: Literal["none", "critical", "high", "medium", "low"] = "none"
    """From which severity on a finding makes the check run fail."""
    instructions: str = Field("", max_length=4000)
    """What reviewers should know about this repository."""
    code_scanning: bool = False
    """Hand the findings to GitHub's code scanning too, as SARIF."""


class TestsConfig(_ConfigSection):
    """How the tests are run."""

    setup: str = ""
    """Shell command that installs what the tests need, the only one with a network; default: inferred."""
    command: str = ""
    """Shell command that runs the tests; default: inferred."""
    image: str | None = None
    """Container image to run them in; default: a slim Python."""
    timeout_minutes: float = Field(15, gt=0, le=360)
    """Time for one run of the command, and for preparing an inferred environment in a review."""
    allow_packages: tuple[str, ...] = ()
    """Packages that pull requests and repairs may bring in though few projects use them."""
    allow_indexes: tuple[str, ...] = ()
    """Hosts beside the public registries that they may install from."""
    allow_network: bool = False
    """A CI job that cannot work without a network is run again with one, and the report says so; otherwise none has one while its tests run."""


class FixConfig(_ConfigSection):
    """How failing CI is repaired."""

    enabled: bool = True
    """Repair at all."""
    on: tuple[Literal["ci_failure", "command"], ...] = ("ci_failure", "command")
    """What starts a repair."""
    rungs: tuple[RungName, ...] = RUNG_ORDER
    """Which rungs of the ladder may be used, in order."""
    protected_paths: tuple[GlobPattern, ...] = (".github/**",)
    """Paths that only a person may change: a patch that touches them waits for `/approve`."""
    max_changed_lines: int = Field(40, ge=1, le=2000)
    """A larger patch waits for `/approve`."""


class WhyConfig(_ConfigSection):
    """How failed checks of pull requests are answered: whose failure it is."""

    enabled: bool = True
    """Answer failed checks unasked; `/why` works all the same."""
    rerun: Literal["once", "never"] = "once"
    """Whether failed jobs of GitHub Actions run again when a flaky test or the infrastructure was the cause."""


class ProveConfig(_ConfigSection):
    """How it is asked whether a change's tests prove it."""

    enabled: bool = True
    """Judge the tests of every pull request that is reviewed; `/prove` works all the same."""
    required: bool = False
    """Let the check run fail where the tests do not discriminate or were weakened, and post one for every pull request."""
    mutants: int = Field(40, ge=0, le=1000)
    """How many faults are put into the changed lines at most."""
    minutes: float = Field(5, gt=0, le=120)
    """How long these faults may take."""


class Schedule(_ConfigSection):
    """One regular run on a branch."""

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
    slower: float | None = Field(None, gt=1, le=100)
    """A test that passes but takes so many times longer than before that time counts as broken too."""

    @field_validator("cron")
    @classmethod
    def _check_cron(cls, value: str) -> str:
        from croniter import CroniterBadDateError, croniter

        if len(value.split()) != 5 or not croniter.is_valid(value):
            msg = f"{value!r} is not five cron fields, such as '0 3 * * *'"
            raise ValueError(msg)
        try:
            croniter(value).get_prev()
        except CroniterBadDateError:
            msg = f"{value!r} names a date that does not exist; '0 3 * * *' is every day at three"
            raise ValueError(msg) from None
        return value


class BisectConfig(_ConfigSection):
    """How regressions are searched for."""

    schedules: tuple[Schedule, ...] = ()
    """Regular looks at a branch."""
    revert_pr: bool = False
    """Open a revert pull request when the culprit is verified and a repair by the revert would need no person."""
    jobs: int = Field(1, ge=1, le=16)
    """How many commits are tested at once; never more than the machine has processors."""

    @field_validator("schedules")
    @classmethod
    def _check_names_differ(cls, value: tuple[Schedule, ...]) -> tuple[Schedule, ...]:
        names = [s.name for s in value]
        if len(set(names)) != len(names):
            msg = "two schedules have the same name"
            raise ValueError(msg)
        return value


class CommandsConfig(_ConfigSection):
    """Slash-commands."""

    allow: Literal["read", "triage", "write", "maintain", "admin"] = "write"
    """The least permission that may give commands."""
    prefix: str = Field("/", min_length=1, max_length=20, pattern=r"^\S+$")
    """What a command starts with."""


class BudgetConfig(_ConfigSection):
    """What the model may cost, in US dollars, and how long work may take. Hard limits."""

    usd_per_pull_request: float = Field(1.0, ge=0)
    """For one pull request."""
    usd_per_day: float = Field(20.0, ge=0)
    """For this repository in a day. Reviews of forks' pull requests stop at half of it."""
    usd_per_month: float | None = Field(None, ge=0)
    """For this repository in a calendar month; none: as much as its days allow."""
    minutes_per_day: float = Field(600.0, ge=0)
    """How long this repository's jobs may take in a day (UTC), together. What runs is not stopped; nothing more begins."""


class PathReviewConfig(_ConfigSection):
    """What differs from `review` for these files."""

    min_confidence: float | None = Field(None, ge=0.0, le=1.0)
    """Post a finding only from this confidence on."""
    dimensions: tuple[DimensionName, ...] | None = None
    """What to look at."""
    blocking: Literal["none", "critical", "high", "medium", "low"] | None = None
    """From which severity on a finding makes the check run fail."""
    instructions: str = Field("", max_length=4000)
    """What reviewers should know about these files, besides `review.instructions`."""
    ignore: tuple[GlobPattern, ...] = ()
    """What is not reviewed among them, besides `review.ignore`: patterns below the folder that this path begins with."""


class PathTestsConfig(_ConfigSection):
    """How the tests of these files are run, in place of `tests`, where a change touches them."""

    setup: str = ""
    """Shell command that installs what these tests need."""
    command: str = ""
    """Shell command that runs these tests, from the repository's root."""
    image: str | None = None
    """Container image to run them in."""
    timeout_minutes: float | None = Field(None, gt=0, le=360)
    """Time for one run of the command."""


class PathFixConfig(_ConfigSection):
    """What differs from `fix` for these files."""

    enabled: bool = True
    """Repair these files; otherwise a patch that touches them waits for `/approve`."""
    protected_paths: tuple[GlobPattern, ...] = ()
    """What only a person may change among them, besides `fix.protected_paths`: patterns below the folder that this path begins with."""
    max_changed_lines: int | None = Field(None, ge=1, le=2000)
    """A larger patch waits for `/approve`, where a pull request touches these files; the least of several counts."""


class PathBudgetConfig(_ConfigSection):
    """What the model may cost for a pull request that touches these files."""

    usd_per_pull_request: float | None = Field(None, ge=0)
    """For one pull request; the least of several counts, the repository's among them."""


class PathConfig(_ConfigSection):
    """Settings for the files below a path of a monorepo."""

    review: PathReviewConfig = PathReviewConfig()
    """What differs from `review`."""
    tests: PathTestsConfig = PathTestsConfig()
    """How the tests of these files are run."""
    fix: PathFixConfig = PathFixConfig()
    """What differs from `fix`."""
    budget: PathBudgetConfig = PathBudgetConfig()
    """What the model may cost, and how long work may take."""


class RepoConfig(_ConfigSection):
    """`.github/regreen.yml`, read from the default branch only."""

    review: ReviewConfig = ReviewConfig()
    """How pull requests are reviewed."""
    tests: TestsConfig = TestsConfig()
    """How the tests are run."""
    fix: FixConfig = FixConfig()
    """How failing CI is repaired."""
    why: WhyConfig = WhyConfig()
    """How failed checks are answered."""
    prove: ProveConfig = ProveConfig()
    """How the tests of a pull request are judged."""
    bisect: BisectConfig = BisectConfig()
    """How regressions are searched for."""
    commands: CommandsConfig = CommandsConfig()
    """Slash-commands."""
    budget: BudgetConfig = BudgetConfig()
    """What the model may cost."""
    mode: Mode = "act"
    """`observe` computes everything, shows it on the dashboard and writes nothing to GitHub; unset: as the organisation's file says."""
    paths: dict[GlobPattern, PathConfig] = {}
    """Settings for parts of a monorepo, by a path pattern such as `services/api/**`; the last pattern that matches a file wins."""
