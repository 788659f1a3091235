"""`regreen review`: reads a change and says what it can back up."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from regreen.adapters.git import GitRepository
from regreen.bot.cli.arguments import config_at, variables_of
from regreen.bot.cli.model import model_of
from regreen.bot.cli.options import answered_as
from regreen.bot.cli.terminal import answer, say
from regreen.bot.environment import read_settings
from regreen.codebase.diff import parse
from regreen.codebase.index import SqliteStore
from regreen.codebase.trial import Trial
from regreen.errors import NoSandbox, UserError
from regreen.models import Review
from regreen.ports import Sandbox
from regreen.repo_config import RepoConfig
from regreen.reviewers.review import ReviewJob, review

WORKTREE = "WORKTREE"
_DEFAULTS = ("origin/HEAD", "upstream/HEAD", "origin/main", "origin/master", "main", "master")


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
@answered_as("fmt", "text", "json", "sarif", "markdown")
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
@click.option("--no-model", is_flag=True, help="Ask no model.")
@click.option(
    "--run-tests/--no-run-tests", default=None, help="Run the tests in the sandbox, for coverage."
)
@click.option("--setup", default=None, help="Shell command that installs what the tests need.")
@click.option("--env", "envs", multiple=True, metavar="K=V", help="Environment of the tests.")
def command(
    *,
    repo: Path | None,
    base: str | None,
    head: str | None,
    diff_file: str | None,
    title: str,
    body: str,
    fmt: str,
    sarif_out: Path | None,
    min_confidence: float | None,
    max_comments: int | None,
    no_model: bool,
    run_tests: bool | None,
    setup: str | None,
    envs: tuple[str, ...],
) -> int:
    """Read a change and say what can be backed up. Exit 1 only for blocking findings."""
    environment = variables_of(envs)
    diff = _read_diff(diff_file) if diff_file is not None else None
    git = _repository(repo, needed=diff is None)
    base_sha, head_sha = _revisions(git, repo or Path.cwd(), base, head, diff)
    config = config_at(git, base_sha) if git else RepoConfig()
    wants_tests = run_tests if run_tests is not None else False
    job = ReviewJob(
        base=base_sha,
        head=head_sha,
        diff=diff if git is None else None,
        title=title,
        body=body,
        config=config,
        min_confidence=min_confidence,
        max_comments=max_comments,
        tests=_tests(config, setup, environment) if git else None,
        run_tests=wants_tests,
        index=None if no_model else SqliteStore(read_settings().home / "index.sqlite"),
    )
    model = None if no_model else model_of(config.budget.usd_per_pull_request)
    # a model's claims are tried by running: worth a sandbox wherever somebody said how tests run
    for_claims = model is not None and run_tests is not False and _knows_tests(config, setup)
    result = review(
        job,
        git=git,
        sandbox=_sandbox(wants_tests or for_claims),
        model=model,
        progress=say,
    )
    if fmt in {"json", "sarif"}:
        click.echo(_shown(result, fmt), nl=False)
    else:
        answer(_shown(result, fmt), headline=fmt == "text")
    if sarif_out is not None:
        _write(sarif_out, _shown(result, "sarif"))
    return 1 if any(f.blocking for f in result.findings) else 0


def _shown(result: Review, fmt: str) -> str:
    from regreen.reviewers import document, sarif

    match fmt:
        case "json":
            return json.dumps(document.document(result), indent=2) + "\n"
        case "sarif":
            return json.dumps(sarif.sarif(result), indent=2) + "\n"
        case "markdown":
            return document.markdown(result)
        case _:
            return document.text(result)


def _write(place: Path, text: str) -> None:
    try:
        place.write_text(text, encoding="utf-8")
    except OSError as error:
        message = f"cannot write {place}: {error.strerror}"
        raise UserError(message) from error


def _read_diff(name: str) -> str:
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        message = f"cannot read the patch {name}: {error.strerror}"
        raise UserError(message) from error
    text = data.decode("utf-8", "surrogateescape")
    if text.strip() and not parse(text).files:
        message = f"{'standard input' if name == '-' else name} holds no unified diff; make one with `git diff`"
        raise UserError(message)
    return text


def _repository(repo: Path | None, *, needed: bool) -> GitRepository | None:
    """The repository; with a patch only when one is named."""
    if not needed and repo is None:
        return None
    return GitRepository.open(repo or Path.cwd())


def _revisions(
    git: GitRepository | None, where: Path, base: str | None, head: str | None, diff: str | None
) -> tuple[str, str]:
    """The two commits to compare. A patch over a repository is applied onto the base."""
    if git is None:
        return "", ""
    if diff is not None:
        if head is not None:
            message = "--diff and --head exclude each other: the patch is the head"
            raise UserError(message)
        base_sha = git.resolve(base or "HEAD")
        if not diff.strip():
            return base_sha, base_sha
        head_sha = git.apply(base_sha, diff, "The patch under review")
        if head_sha is None:
            message = f"the patch does not apply to {base or 'HEAD'}; name the commit it was made for with --base"
            raise UserError(message)
        return base_sha, head_sha
    head_sha = git.resolve("HEAD" if head in {None, WORKTREE} else head or "HEAD")
    base_sha = git.resolve(base) if base else _default_base(git, head_sha)
    if head == WORKTREE:
        head_sha = git.snapshot(where, head_sha)
    return base_sha, head_sha


def _default_base(git: GitRepository, head: str) -> str:
    """The default branch, upstream's before our own; none where the head stands on it."""
    for name in _DEFAULTS:
        try:
            sha = git.resolve(name)
        except UserError:
            continue
        if sha != head:
            return sha
    message = "cannot tell what this change goes into; name it, for instance with --base HEAD~1"
    raise UserError(message)


def _tests(
    config: RepoConfig, setup: str | None, environment: tuple[tuple[str, str], ...]
) -> Trial:
    """How the tests run: as the configuration says, else pytest."""
    return Trial(
        command=("bash", "-c", config.tests.command or "python -m pytest -q"),
        setup=setup or config.tests.setup or None,
        env=environment,
        timeout=config.tests.timeout_minutes * 60,
        image=config.tests.image,
    )


def _knows_tests(config: RepoConfig, setup: str | None) -> bool:
    return bool(config.tests.command or config.tests.setup or setup)


def _sandbox(wanted: bool) -> Sandbox | None:
    """The sandbox, where tests are to run. Without one everything else is read all the same."""
    if not wanted:
        return None
    from regreen.adapters.sandbox import choose

    try:
        settings = read_settings()
        return choose(settings.sandbox, settings.sandbox_runtime)
    except NoSandbox as error:
        click.echo(f"no tests are run: {error}", err=True)
        return None
