"""How the tests of a repository run in a flow: as the configuration says, and for the rest as its files say."""

from __future__ import annotations

from dataclasses import replace

from regreen.bot.jobs.runner import Job
from regreen.bot.services import Services
from regreen.bot.trust import Clearance
from regreen.code.path_settings import find_changed_paths, select_tests
from regreen.domain.github import PERMISSION_LEVELS, GitHub
from regreen.domain.ports import Mirror
from regreen.domain.repo_config import RepoConfig
from regreen.environment.preparation import CompletedTrial, complete_trial
from regreen.packages.setup_guard import InstallPolicy
from regreen.runs.trial import Trial


def complete_tests(
    services: Services,
    job: Job,
    git: Mirror,
    config: RepoConfig,
    cleared: Clearance,
    *,
    github: GitHub,
    rev: str,
    base: str,
    minutes: float | None = None,
    command: str | None = None,
    asked_by: str = "",
) -> CompletedTrial:
    """The trial of the repository's tests, or of `command`, at `rev`; its command is empty where nothing names one.

    What a pull request itself says about its environment is used only where somebody with write access asked for it
    (`asked_by`) or approved it; otherwise the environment is inferred from the merge base with `base`, and a note says
    so where that makes a difference. Packages that `base` does not ask for are installed only as the configuration
    allows, whose `paths` decide which tests are the change's. `minutes` are those of the tests where None is given.

    Raises:
        NoSandbox: none works here.
        Cancelled: the job was cancelled.
    """
    config = select_config(git, config, base, rev)
    head = git.resolve(rev)
    # a commit on no branch of ours has been approved: else there was no clearance
    may_use = not git.is_on_branch(head) or _may_write(github, asked_by)
    source = head if may_use else git.merge_base(base, head) or git.resolve(base)
    done = complete_trial(
        _make_trial(config, cleared, base, command or ""),
        source,
        tests=config.tests,
        git=git,
        sandbox=services.sandbox(),
        minutes=config.tests.timeout_minutes if minutes is None else minutes,
        today=services.clock.now().date(),
        say=job.report_progress,
        cancel=job.cancel,
        change=head if head != source else None,
        touched=find_changed_paths(git, base, rev),
    )
    if done.trial.setup != (config.tests.setup or None):
        left = max(1.0, done.minutes_left * 60)
        done = replace(
            done, trial=replace(done.trial, setup_timeout=min(done.trial.setup_timeout, left))
        )
    if done.altered:
        return done.add_note(
            f"the setup is inferred from the base {source[:12]} and reads {done.altered}, which this change alters: a "
            "test may fail for that until a person with write access asks"
        )
    if not done.unused:
        return done
    return done.add_note(
        f"the environment is inferred from the base {source[:12]}: this change says something else ({done.unused}), "
        "which is used once a person with write access asks for it"
    )


def select_config(git: Mirror, config: RepoConfig, base: str, rev: str) -> RepoConfig:
    """The configuration with the tests that what `rev` changes since `base` asks for."""
    return select_tests(config, find_changed_paths(git, base, rev)) if config.paths else config


def _may_write(github: GitHub, login: str) -> bool:
    levels = PERMISSION_LEVELS
    return bool(login) and levels.index(github.permission(login)) >= levels.index("write")


def make_suite_trial(
    config: RepoConfig,
    cleared: Clearance,
    git: Mirror,
    *,
    rev: str,
    base: str,
    like: Trial | None = None,
) -> Trial | None:
    """The trial of all tests for what `rev` changes, None where the configuration does not name them; a missing setup is that of `like`."""
    config = select_config(git, config, base, rev)
    if not config.tests.command:
        return None
    suite = _make_trial(config, cleared, base, config.tests.command)
    suite = replace(suite, setup=config.tests.setup or None, image=config.tests.image)
    if like is None or suite.setup:
        return suite
    return replace(suite, setup=like.setup, python=like.python, image=like.image, rules=like.rules)


def _make_trial(config: RepoConfig, cleared: Clearance, base: str, command: str) -> Trial:
    return Trial(
        command=("bash", "-c", command) if command else (),
        timeout=config.tests.timeout_minutes * 60,
        trust=cleared.trust,
        scope=cleared.scope,
        base=base,
        rules=InstallPolicy.from_config(config.tests),
    )
