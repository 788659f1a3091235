"""`regreen review`: reads a change and says what it can back up."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from regreen.cli.env import complete_local_trial
from regreen.cli.options import (
    SHALLOW_MESSAGE,
    WORKTREE,
    env_option,
    find_merge_base,
    format_option,
    keep_capsule,
    load_config_at,
    parse_variables,
    quiet_option,
    require_writable_file,
    resolve_revision,
    sandbox_option,
    time_limit_option,
)
from regreen.cli.terminal import print_answer, report_note, report_progress
from regreen.domain.errors import NoSandbox, UserError
from regreen.domain.job_control import TimeLimit

if TYPE_CHECKING:
    from regreen.adapters.git.repository import GitRepository
    from regreen.code.symbol_index import SqliteOutlineStore
    from regreen.domain.models import Review
    from regreen.domain.ports import Sandbox
    from regreen.domain.repo_config import RepoConfig
    from regreen.environment.preparation import CompletedTrial
    from regreen.reviewers.context import ClaimTests
    from regreen.runs.trial import Trial

_SETUP_MINUTES = 10.0
_SETUP_SHARE = 0.7  # of the limit: what only reads the change needs time, too
_RANKING_SECONDS, _RANKING_SHARE = 20.0, 0.25
_LATE_CODE = 3
_MAX_DESCRIPTION = 65_536
_DEFAULT_BASES = ("origin/HEAD", "upstream/HEAD", "origin/main", "origin/master", "main", "master")


def _answer_late(options: Mapping[str, Any], reason: str, seconds: float) -> str:
    from regreen.domain.models import Cost, Review, SkippedReviewer

    late = Review(
        options["base"] or "",
        options["head"] or "HEAD",
        "",
        f"Not reviewed: {reason}.",
        "high",
        {},
        (),
        (),
        (),
        (SkippedReviewer("review", reason),),
        None,
        Cost(),
        seconds,
    )
    return _format_review(late, options["fmt"]).rstrip("\n")


@click.command("review")
@click.option(
    "--repo", type=click.Path(path_type=Path), default=None, help="The repository; default: here."
)
@click.option(
    "--base", default=None, help="What the change goes into; default: the default branch."
)
@click.option(
    "--head", default=None, help="The change; default HEAD. WORKTREE: files as they stand."
)
@click.option(
    "--diff", "diff_file", default=None, help="Review a patch instead: a file, or - for stdin."
)
@click.option("--title", default="", help="The pull request's title.")
@click.option("--body", default="", help="The pull request's description.")
@click.option(
    "--body-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file that holds it.",
)
@format_option("fmt", "text", "json", "sarif", "markdown")
@click.option(
    "--sarif-out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    help="Write SARIF to this file too.",
)
@click.option(
    "--min-confidence",
    type=click.FloatRange(0, 1),
    default=None,
    help="Report from this confidence on.",
)
@click.option(
    "--max-comments", type=click.IntRange(min=0), default=None, help="Report at most so many."
)
@click.option("--model/--no-model", "use_model", default=True, help="Ask the configured model.")
@click.option(
    "--max-usd",
    type=click.FloatRange(min=0),
    default=None,
    metavar="X",
    help="What model calls may cost; default, and at most: budget.usd_per_pull_request.",
)
@click.option(
    "--run-tests/--no-run-tests",
    default=None,
    help="Run all tests in the sandbox, for coverage; --no-run-tests: nor those of a model's claims.",
)
@click.option("--setup", default=None, help="Shell command that installs what the tests need.")
@env_option("envs", "Environment of the tests.")
@click.option(
    "--post",
    is_flag=True,
    help="Write the review on the workflow's pull request, with GITHUB_TOKEN.",
)
@time_limit_option(_answer_late, default=30.0, late_code=_LATE_CODE)
@quiet_option()
@sandbox_option("kind", default=None)
def command(
    *,
    repo: Path | None,
    base: str | None,
    head: str | None,
    diff_file: str | None,
    title: str,
    body: str,
    body_file: Path | None,
    fmt: str,
    sarif_out: Path | None,
    min_confidence: float | None,
    max_comments: int | None,
    use_model: bool,
    max_usd: float | None,
    run_tests: bool | None,
    setup: str | None,
    envs: tuple[str, ...],
    post: bool,
    limit: TimeLimit,
    kind: str | None,
) -> int:
    """Read a change and say what can be backed up. Exit 1 only for blocking findings."""
    from regreen.isolation import start_server

    start_server("regreen.reviewers.pipeline")  # it imports what the next lines import, beside them

    from regreen.cli.model import make_model
    from regreen.code.path_settings import find_changed_paths, narrow_limits, select_tests
    from regreen.domain.repo_config import RepoConfig
    from regreen.packages.setup_guard import InstallPolicy
    from regreen.reviewers.pipeline import OUT_OF_TIME, ReviewJob, review_change

    environment = parse_variables(envs)
    require_writable_file(sarif_out, "--sarif-out")
    post_finished = _prepare_posting() if post else None
    diff = _read_diff(diff_file) if diff_file is not None else None
    git = _open_repository(repo, needed=diff is None)
    base_sha, head_sha = resolve_change(git, repo or Path.cwd(), base, head, diff)
    config = load_config_at(git, base_sha) if git else RepoConfig()
    if git and config.paths:
        changed = find_changed_paths(git, base_sha, head_sha)
        config = narrow_limits(select_tests(config, changed), changed)
    wants_tests = run_tests if run_tests is not None else False
    cap = config.budget.usd_per_pull_request
    model = make_model(cap if max_usd is None else min(cap, max_usd)) if use_model else None
    if use_model and model is None:
        report_note("no model is configured; `regreen doctor` says what to set")
    tests = None
    if git and run_tests is not False and (wants_tests or model is not None):
        # what the change asks for beyond the base has to pass the dependency guard
        trial = replace(
            _make_trial(config, setup, environment),
            base=base_sha,
            rules=InstallPolicy.from_config(config.tests),
        )
        tests = LocalTests(
            git,
            config,
            trial,
            head_sha,
            kind,
            exact=post or "GITHUB_ACTIONS" in os.environ,
            asked=wants_tests,
            limit=limit,
            repo=repo or Path(),
        )
    run = tests.completed if tests and wants_tests else None
    job = ReviewJob(
        base=base_sha,
        head=head_sha,
        diff=diff if git is None else None,
        title=title,
        body=_read_description(body_file) if body_file else body,
        config=config,
        min_confidence=min_confidence,
        max_comments=max_comments,
        tests=run.trial if run else None,
        run_tests=wants_tests,
        find_claim_tests=tests.find_claim_tests if tests and model is not None else None,
        find_sandbox=partial(_choose_sandbox, kind, exact=post or "GITHUB_ACTIONS" in os.environ),
        may_run=run_tests is not False,
        index=_open_index(),
    )
    result = review_change(
        job,
        git=git,
        sandbox=tests.sandbox if tests and wants_tests else None,
        model=model,
        progress=report_progress,
        cancel=limit.cancel,
        deadline=_find_reading_deadline(limit),
    )
    limit.begin_answer()
    result = replace(result, environment=tests.document if tests else None)
    if fmt in {"json", "sarif"}:
        click.echo(_format_review(result, fmt), nl=False)
    else:
        print_answer(_format_review(result, fmt), headline=fmt == "text")
    if sarif_out is not None:
        sarif_out.write_text(_format_review(result, "sarif"), encoding="utf-8")
    if post_finished is not None:
        click.echo(post_finished(result), err=True)
    if any(f.blocking for f in result.findings):
        return 1
    return _LATE_CODE if any(s.reason == OUT_OF_TIME for s in result.skipped) else 0


def _find_reading_deadline(limit: TimeLimit) -> float:
    """When the reviewers stop, so that time is left to rank and show what was found until then."""
    left = 60 * limit.minutes_left
    return limit.deadline - min(_RANKING_SECONDS, _RANKING_SHARE * left)


def _open_index() -> SqliteOutlineStore | None:
    """What earlier reviews kept, which saves time; None where the home cannot be used."""
    from regreen.app.settings_loader import read_settings
    from regreen.code.symbol_index import SqliteOutlineStore
    from regreen.domain.private_folders import make_private

    with suppress(UserError):
        return SqliteOutlineStore(make_private(read_settings().home) / "index.sqlite")
    return None


def _prepare_posting() -> Callable[[Review], str]:
    """What writes a finished review on the workflow's pull request and says how that went.

    Raises:
        UserError: this is no workflow for a pull request.
    """
    from regreen.adapters.github.client import connect_with_token
    from regreen.bot.flows.review import WORKFLOW_LOGIN, post_review, read_target

    target = read_target()
    github = connect_with_token(
        target.repo, target.token, api_url=target.api_url, login=WORKFLOW_LOGIN
    )
    return lambda review: post_review(github, target, review)


def _format_review(result: Review, fmt: str) -> str:
    from regreen.reviewers import document

    match fmt:
        case "json":
            return json.dumps(document.make_document(result), indent=2) + "\n"
        case "sarif":
            return json.dumps(document.make_sarif(result), indent=2) + "\n"
        case "markdown":
            return document.format_markdown(result)
        case _:
            return document.format_text(result)


def _read_description(file: Path) -> str:
    """The first 65,536 characters of the file, which is as long as GitHub lets a description be."""
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            return opened.read(_MAX_DESCRIPTION)
    except OSError as error:
        message = f"cannot read {file}: {error.strerror}"
        raise UserError(message) from error


def _read_diff(name: str) -> str:
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        message = f"cannot read the patch {name}: {error.strerror}"
        raise UserError(message) from error
    text = data.decode("utf-8", "surrogateescape")
    if text.strip() and re.search("^(?:diff --git |--- )", text, re.MULTILINE) is None:
        message = f"{'standard input' if name == '-' else name} holds no unified diff; make one with `git diff`"
        raise UserError(message)
    return text


def _open_repository(repo: Path | None, *, needed: bool) -> GitRepository | None:
    """The repository; with a patch only when one is named."""
    from regreen.adapters.git.repository import GitRepository

    if not needed and repo is None:
        return None
    return GitRepository.open(repo or Path.cwd())


def resolve_change(
    git: GitRepository | None, where: Path, base: str | None, head: str | None, diff: str | None
) -> tuple[str, str]:
    """The two commits to compare. A patch over a repository is applied onto the base."""
    if diff is not None and head is not None:
        message = "--diff and --head exclude each other: the patch is the head"
        raise UserError(message)
    if git is None:
        return "", ""
    if diff is not None:
        base_sha = git.resolve(base or "HEAD")
        if not diff.strip():
            return base_sha, base_sha
        head_sha = git.apply(base_sha, diff, "The patch under review")
        if head_sha is None:
            message = f"the patch does not apply to {base or 'HEAD'}; name the commit it was made for with --base"
            raise UserError(message)
        return base_sha, head_sha
    at_head = git.resolve("HEAD" if head in {None, WORKTREE} else head or "HEAD")
    if base is None and head is None:
        return _choose_range(git, where, at_head)
    standing = git.commit_work_tree(where, at_head) if head == WORKTREE else at_head
    start = git.resolve(base) if base else _default_base(git, at_head)
    if start is None and standing == at_head:
        message = "no base branch found; name a base, such as --base HEAD~1"
        raise UserError(message)
    start = start or at_head
    find_merge_base(git, start, standing)  # refuses a clone that is too shallow for it
    return start, standing


def _choose_range(git: GitRepository, where: Path, head: str) -> tuple[str, str]:
    """What there is to review where nothing is named: the branch, else uncommitted changes, else the last commit.

    Raises:
        UserError: the history is one commit, and nothing is uncommitted.
    """
    base = _default_base(git, head)
    if base is not None and (find_merge_base(git, base, head) or base) != head:
        report_note(f"reviewing the commits since {base[:12]}, the default branch")
        resolve_revision(git, where, "HEAD")
        return base, head
    try:
        standing = git.commit_work_tree(where, head)
    except UserError:  # no working tree, as in a bare repository
        standing = head
    if git.tree_id(standing) != git.tree_id(head):
        report_note(f"reviewing the uncommitted changes against HEAD {head[:12]}")
        return head, standing
    parents = git.commit(head).parents
    if not parents and git.is_shallow():
        raise UserError(SHALLOW_MESSAGE)
    if not parents:
        raise UserError(
            "the history has one commit, and nothing is uncommitted: there is no change to review; name one with --base and --head, or pass a patch with --diff"
        )
    report_note(f"reviewing the last commit {head[:12]}: nothing is newer than the default branch")
    return parents[0], head


def _default_base(git: GitRepository, head: str) -> str | None:
    """The default branch, upstream's before our own, where the head does not stand on it."""
    for name in _DEFAULT_BASES:
        try:
            sha = git.resolve(name)
        except UserError:
            continue
        if sha != head:
            return sha
    return None


def _make_trial(
    config: RepoConfig, setup: str | None, environment: tuple[tuple[str, str], ...]
) -> Trial:
    """How the tests run as the configuration says; the rest is inferred."""
    from regreen.runs.trial import Trial

    return Trial(
        command=("bash", "-c", config.tests.command) if config.tests.command else (),
        setup=setup,
        env=environment,
        timeout=config.tests.timeout_minutes * 60,
        image=config.tests.image,
    )


@dataclass
class LocalTests:
    """The tests of the repository under review, prepared when they are first asked for.

    `exact`: refuse a sandbox with approximate limits, for other people's code. `asked`: somebody asked for test runs.
    """

    git: GitRepository
    config: RepoConfig
    trial: Trial
    head: str
    kind: str | None
    exact: bool
    asked: bool
    limit: TimeLimit
    repo: Path = Path()
    document: dict[str, object] | None = None

    @cached_property
    def sandbox(self) -> Sandbox | None:
        """The sandbox. Without one everything else is read all the same."""
        return _choose_sandbox(self.kind, exact=self.exact)

    @cached_property
    def completed(self) -> CompletedTrial | None:
        """How the tests run; None without a sandbox."""
        if self.sandbox is None:
            return None
        from regreen.code.path_settings import find_changed_paths

        base = self.trial.base or ""
        # from the merge base: what the change itself says about its setup is part of what is under review
        source = self.git.merge_base(base, self.head) or base
        done = complete_local_trial(
            self.trial,
            source,
            git=self.git,
            sandbox=self.sandbox,
            given=self.config.tests,
            minutes=min(_SETUP_MINUTES, _SETUP_SHARE * self.limit.minutes_left),
            cancel=self.limit.cancel,
            change=self.head if self.head != source else None,
            touched=find_changed_paths(self.git, base, self.head) if base else (),
        )
        self.document = done.document
        usual = ("bash", "-c", "python -m pytest -q")
        return replace(done, trial=replace(done.trial, command=done.trial.command or usual))

    def find_claim_tests(self) -> ClaimTests:
        """How a model's claims are tested, or why they are not."""
        from regreen.bot.flows.review import is_fork_event
        from regreen.reviewers.context import ClaimTests

        if self.exact and not self.asked and is_fork_event():
            return ClaimTests(reason="nothing of a fork runs in a workflow without --run-tests")
        done = self.completed
        if done is None:
            return ClaimTests(
                reason="no sandbox works here, and the code of a change runs nowhere else"
            )
        # what a runner of CI keeps is gone with it
        keep = None if self.exact else partial(keep_capsule, repo=self.repo)
        return ClaimTests(done.trial, self.sandbox, done.reason_unready, done.doubt, keep)


def _choose_sandbox(kind: str | None, *, exact: bool) -> Sandbox | None:
    from regreen.adapters.sandbox.selection import choose_sandbox
    from regreen.app.settings_loader import read_settings

    try:
        settings = read_settings()
        return choose_sandbox(
            kind or settings.sandbox, settings.sandbox_runtime, settings.setup_hosts, exact=exact
        )
    except NoSandbox as error:
        click.echo(f"no tests are run: {error}", err=True)
        return None
