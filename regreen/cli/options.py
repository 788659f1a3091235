"""Options that several commands have, with the same words in each."""

from __future__ import annotations

import difflib
import functools
import importlib.util
import os
import shlex
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

import click

from regreen.cli.terminal import print_answer, read_stage, report_warning, silence_progress
from regreen.domain.errors import Cancelled, ConfigError, UserError
from regreen.domain.job_control import OutOfTime, TimeLimit

if TYPE_CHECKING:
    from regreen.adapters.git.repository import GitRepository
    from regreen.domain.ports import Git
    from regreen.domain.repo_config import RepoConfig
    from regreen.runs.capsule import Capsule
    from regreen.runs.trial import Trial

WORKTREE = "WORKTREE"
SHALLOW_MESSAGE = "this clone is shallow and lacks the commit that the change starts from; run `git fetch --unshallow` first"
_Command = TypeVar("_Command", bound=Callable[..., Any])


def format_option(name: str, *shapes: str) -> Callable[[_Command], _Command]:
    """`--format`; the first shape is the default."""
    kind = click.Choice(shapes)
    return click.option(
        "--format", name, type=kind, default=shapes[0], help="How the answer is printed."
    )


_SANDBOXES = ("auto", "docker", "bwrap", "e2b")


def store_capsule(capsule: Capsule) -> Path:
    """Write a capsule into REGREEN_HOME, and return its path."""
    from regreen.app.settings_loader import read_settings
    from regreen.runs.capsule import write_capsule

    return write_capsule(capsule, read_settings().home / "capsules")


def format_replay(place: Path, repo: Path) -> str:
    """What `regreen replay` takes to repeat a capsule of `repo`, as a shell reads it."""
    return shlex.join([str(place), *(() if repo == Path() else ("--repo", str(repo)))])


def keep_capsule(capsule: Capsule, repo: Path) -> str:
    """Write a capsule into REGREEN_HOME; returns the command that repeats it."""
    return f"regreen replay {format_replay(store_capsule(capsule), repo)}"


def quiet_option() -> Callable[[_Command], _Command]:
    """`--quiet`: results and errors, no progress."""
    return click.option(
        "--quiet/--no-quiet",
        "-q",
        expose_value=False,
        callback=silence_progress,
        help="Print no progress, only results and errors.",
    )


def sandbox_option(name: str, default: str | None = "auto") -> Callable[[_Command], _Command]:
    """`--sandbox`; without a default the operator's setting holds."""
    kind = click.Choice(_SANDBOXES)
    return click.option(
        "--sandbox",
        name,
        type=kind,
        default=default,
        help="Where foreign code runs; auto: Docker, else bubblewrap; e2b: remotely.",
    )


def config_option(*, exists: bool = True) -> Callable[[_Command], _Command]:
    """`--config`, for the commands that read the operator's settings from a file."""
    kind = click.Path(exists=exists, dir_okay=False, path_type=Path)
    return click.option(
        "--config", type=kind, help="The file with the settings; default: REGREEN_HOME/regreen.env."
    )


AnswerLate = Callable[[Mapping[str, Any], str, float], str]


_MORE_TIME = "give --max-minutes more, or --setup a quicker one"


def time_limit_option(
    answer_late: AnswerLate,
    *,
    default: float | None = 20.0,
    fallback: float | None = None,
    least: click.FloatRange | None = None,
    help_text: str = "Stop after so long.",
    late_code: int = 1,
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """`--max-minutes`; the command receives it as `limit`, and is ended at the limit.

    Args:
        answer_late: what is printed where the time is over before there is an answer: from the other options with
            what the command has noted as `limit.known`, the reason, and the seconds that were taken.
        default: as `--help` shows it.
        fallback: the limit where none is given and `default` is None; None for no limit.
        least: what may be given.
        help_text: of the option.
        late_code: the exit code of that answer.
    """
    kind = least or click.FloatRange(min=0.1)

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        @click.option("--max-minutes", type=kind, default=default, metavar="N", help=help_text)
        @functools.wraps(command)
        def run(*, max_minutes: float | None, **others: Any) -> int:
            began = click.get_current_context().find_root().obj
            minutes = max_minutes or fallback
            limit = TimeLimit(minutes, began or time.monotonic(), is_chosen=max_minutes is not None)
            code = late_code

            def answer() -> None:
                doing = read_stage()
                reason = f"the {minutes:g} minutes were over{' while ' if doing else ''}{doing}"
                report_warning(f"{reason}; {_MORE_TIME}")
                seconds = time.monotonic() - limit.began
                print_answer(answer_late({**others, "known": limit.known}, reason, seconds))

            def end_process() -> None:
                # however long the answer takes: no process outlives its limit
                latest = threading.Timer(limit.seconds_to_end, os._exit, (code,))
                latest.daemon = True
                latest.start()
                if limit.begin_answer():
                    answer()
                os._exit(code)

            with limit.enforce(end_process, to_the_end=began is not None):
                try:
                    code = command(limit=limit, **others)
                except (OutOfTime, Cancelled):
                    if not limit.cancel.is_set():
                        raise
                    if limit.begin_answer():
                        answer()
                else:
                    # a review's readers stop before the limit, so that what they found is shown; its code says so
                    says_late = late_code != 1 and code == late_code
                    if code and (limit.cancel.is_over or says_late):
                        report_warning(f"the {minutes:g} minutes were over; {_MORE_TIME}")
            return code

        return run

    return decorate


def repo_option() -> Callable[[_Command], _Command]:
    """`--repo`; this folder is the default."""
    kind = click.Path(path_type=Path)
    return click.option("--repo", type=kind, default=Path(), metavar="DIR", help="The repository.")


def env_option(
    name: str = "env", text: str = "A variable for the setup and the command."
) -> Callable[[_Command], _Command]:
    """`--env`, which can be given several times; `parse_variables` reads its values."""
    return click.option("--env", name, multiple=True, metavar="K=V", help=text)


@dataclass(frozen=True)
class TrialOptions:
    """What the options of a command say about how its trial runs."""

    setup: str | None
    variables: tuple[tuple[str, str], ...]
    overlay_items: tuple[str, ...]
    timeout: float

    @functools.cached_property
    def overlay(self) -> dict[str, bytes]:
        """The files of --overlay, read when they are first needed.

        Raises:
            UserError: a file cannot be read, or would land outside the checkout.
        """
        return _read_overlay(self.overlay_items)

    def make_trial(self, command: tuple[str, ...], *, python: str | None = None) -> Trial:
        """The trial that runs `command` as the options say."""
        from regreen.runs.trial import Trial

        return self.extend_trial(Trial(command, setup=self.setup, python=python))

    def extend_trial(self, trial: Trial) -> Trial:
        """A planned trial with the variables, the files and the time limit of the options."""
        return replace(
            trial,
            env=(*trial.env, *self.variables),
            timeout=self.timeout,
            overlay={**trial.overlay, **self.overlay},
        )

    def load_suite_trial(
        self, git: Git, rev: str, python: str | None, *, setup: str | None = None
    ) -> Trial | None:
        """How the configuration at `rev` says that all tests run, prepared by its own setup or else by the command's."""
        tests = load_config_at(git, rev).tests
        if not tests.command:
            return None
        from regreen.runs.trial import Trial

        return Trial(
            ("bash", "-c", tests.command),
            setup=tests.setup or self.setup or setup,
            env=self.variables,
            timeout=tests.timeout_minutes * 60,
            image=tests.image,
            python=python,
        )


def trial_options(
    *,
    setup_text: str = "Run once, with network, before the command.",
    overlay_text: str = "A file to lay over every checkout.",
    timeout: click.FloatRange | None = None,
    timeout_text: str = "For one run of the command.",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--setup`, `--env`, `--overlay` and `--timeout`; the command receives them as `options`."""
    seconds = timeout or click.FloatRange(min=0.1)

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @click.option("--setup", metavar="CMD", help=setup_text)
        @env_option()
        @click.option("--overlay", multiple=True, metavar="FILE[:DEST]", help=overlay_text)
        @click.option("--timeout", type=seconds, default=900.0, metavar="S", help=timeout_text)
        @functools.wraps(command)
        def run(
            *,
            setup: str | None,
            env: tuple[str, ...],
            overlay: tuple[str, ...],
            timeout: float,
            **others: Any,
        ) -> Any:
            options = TrialOptions(setup, parse_variables(env), overlay, timeout)
            return command(options=options, **others)

        return run

    return decorate


def require_extra(name: str, module: str, purpose: str) -> None:
    """Check that an extra of the distribution is installed; `module` is one that only it brings.

    Raises:
        UserError: it is not; the text says how to install it.
    """
    if importlib.util.find_spec(module) is None:
        message = f"{purpose} is not installed: run `pip install 'regreen[{name}]'`"
        raise UserError(message)


def require_app() -> None:
    """Check that the App's packages are installed.

    Raises:
        UserError: they are not.
    """
    require_extra("app", "sqlalchemy", "what the App needs (web server and database)")


def require_playground() -> None:
    """Check that the local GitHub is installed.

    Raises:
        UserError: it is not.
    """
    if importlib.util.find_spec("regreen_playground") is None:
        raise UserError(
            "the playground is not installed: run `pip install ./playground` in a checkout of Regreen"
        )


def parse_variables(items: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Read the values of --env.

    Raises:
        UserError: one is no pair.
    """
    pairs: list[tuple[str, str]] = []
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name:
            message = f"--env {item!r} is not K=V"
            raise UserError(message)
        pairs.append((name, value))
    return tuple(pairs)


def _read_overlay(items: Sequence[str]) -> dict[str, bytes]:
    """Read the files of --overlay, by where they go: DEST, or their own name at the root.

    Raises:
        UserError: a file cannot be read, or would land outside the checkout or in its `.git`.
    """
    laid: dict[str, bytes] = {}
    for item in items:
        name, _, place = item.partition(":")
        source = Path(name)
        target = PurePosixPath(place or source.name)
        if target.is_absolute() or not target.parts or {"..", ".git"} & set(target.parts):
            message = (
                f"--overlay {item!r}: write FILE or FILE:DEST, DEST a path inside the checkout"
            )
            raise UserError(message)
        try:
            laid[target.as_posix()] = source.read_bytes()
        except OSError as error:
            message = f"--overlay {name}: {error.strerror or error}"
            raise UserError(message) from error
    return laid


def require_writable_file(file: Path | None, option: str) -> None:
    """Make sure, before the work, that its result can be written.

    Raises:
        UserError: the folder is not there, or it or the file cannot be written.
    """
    if file is None:
        return
    folder = file.absolute().parent
    if not folder.is_dir():
        message = f"{option} {file}: there is no such folder"
        raise UserError(message)
    try:
        with file.open("ab") if file.exists() else tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        message = f"{option} {file}: it cannot be written ({error.strerror}); name another place"
        raise UserError(message) from error


def resolve_revision(git: GitRepository, repo: Path, rev: str) -> str:
    """The commit that `rev` names; for WORKTREE one with the files as they stand, on top of HEAD.

    Where HEAD is meant and files are uncommitted, a line says that they are not included.

    Raises:
        UserError: there is no such revision, or no working tree.
    """
    head = git.resolve("HEAD" if rev == WORKTREE else rev)
    if rev not in {WORKTREE, "HEAD"}:
        return head
    try:
        standing = git.commit_work_tree(repo, head)
    except UserError:
        if rev == WORKTREE:
            raise
        return head
    if git.tree_id(standing) == git.tree_id(head):
        return head
    if rev == WORKTREE:
        return standing
    number = len(git.changed_paths(standing))
    files, them = (
        ("1 uncommitted file is", "it")
        if number == 1
        else (f"{number} uncommitted files are", "them")
    )
    report_warning(f"{files} not included; commit {them}, or name {WORKTREE} as the revision")
    return head


def find_merge_base(git: Git, base: str, head: str) -> str | None:
    """Where a change left its base; None if they have no common history.

    Raises:
        UserError: this clone is too shallow to tell.
    """
    found = git.merge_base(base, head)
    if found is None and git.is_shallow():
        raise UserError(SHALLOW_MESSAGE)
    return found


def load_config_at(git: Git, rev: str) -> RepoConfig:
    """The configuration as `rev` has it: the base of a change, so that the change cannot loosen its own rules.

    Raises:
        UserError: it is no valid configuration.
    """
    from regreen.code.repo_config_file import parse_repo_config
    from regreen.domain.repo_config import CONFIG_PATH, RepoConfig

    data = git.show(rev, CONFIG_PATH, 256 * 1024)
    if data is None:
        return RepoConfig()
    try:
        return parse_repo_config(data.decode("utf-8", "replace"))
    except ConfigError as error:
        message = f"{CONFIG_PATH} at {rev[:12]}: {error}"
        raise UserError(message) from error


# The user's own defaults for options: a file in the user's configuration folder, never in a repository.

DEFAULT_KEYS: dict[str, click.ParamType[Any]] = {
    "sandbox": click.Choice(_SANDBOXES),
    "format": click.Choice(["text", "json", "markdown", "sarif"]),
    "quiet": click.BOOL,
    "model": click.BOOL,
    "run-tests": click.BOOL,
    "max-minutes": click.FloatRange(min=0, min_open=True),
    "max-usd": click.FloatRange(min=0),
    "max-tests": click.IntRange(min=1),
    "jobs": click.IntRange(min=1),
    "timeout": click.FloatRange(min=0.1),
    "confidence": click.FloatRange(0, 1),
    "min-confidence": click.FloatRange(0, 1),
    "max-comments": click.IntRange(min=0),
}
COMMANDS_WITH_DEFAULTS = (
    "review",
    "bisect",
    "fix",
    "env",
    "init",
    "gate",
    "prove",
    "sandbox",
    "doctor",
    "plan",
    "ci-log",
)


def defaults_file() -> Path:
    """Where the user's defaults are read from, whether or not there is such a file."""
    # https://specifications.freedesktop.org/basedir-spec: a relative path counts as none
    named = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    folder = named if named.is_absolute() else Path("~/.config").expanduser()
    return folder / "regreen" / "defaults.toml"


def load_defaults(name: str) -> dict[str, object]:
    """What the user's file says of a command: values by the option's name, without dashes.

    Keys of the command's own table win over those at the top, which hold for every command that takes them.

    Raises:
        UserError: the file cannot be read, or a key or value is unknown.
    """
    from regreen.code.config_loaders import load_toml

    file = defaults_file()
    if not file.is_file():
        return {}
    try:
        document = load_toml(file.read_text("utf-8"))
    except (OSError, ValueError) as error:  # no UTF-8, no TOML
        message = f"cannot read {file}: {error}"
        raise UserError(message) from error
    found: dict[str, object] = {}
    own: dict[str, object] = {}
    for key, value in document.items():
        if key in COMMANDS_WITH_DEFAULTS and isinstance(value, Mapping):
            table = {
                inner: _convert_default(file, f"{key}.", inner, word)
                for inner, word in value.items()
            }
            own |= table if key == name else {}
        else:
            found[key] = _convert_default(file, "", key, value)
    return found | own


def _convert_default(file: Path, prefix: str, key: str, value: object) -> object:
    kind = DEFAULT_KEYS.get(key)
    if kind is None:
        known = [*DEFAULT_KEYS, *(() if prefix else COMMANDS_WITH_DEFAULTS)]
        near = difflib.get_close_matches(key, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(known)}"
        message = f"{file}: unknown key {prefix}{key}; {hint}"
        raise UserError(message)
    try:
        return kind.convert(value, None, None)
    except click.BadParameter as error:
        message = f"{file}: {prefix}{key}: {error.message}"
        raise UserError(message) from error


def select_defaults_of_command(
    command: click.Command, defaults: Mapping[str, object]
) -> dict[str, object]:
    """The defaults that a command has options for, as click's `default_map` takes them."""
    mapped: dict[str, object] = {}
    for option in command.params:
        for key in (name.removeprefix("--") for name in option.opts):
            value = defaults.get(key)
            is_unknown = isinstance(option.type, click.Choice) and value not in option.type.choices
            if key in defaults and option.name and not is_unknown:
                mapped[option.name] = value
    return mapped
