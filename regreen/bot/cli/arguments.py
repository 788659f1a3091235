"""What several commands take in the same words: --env K=V, --overlay FILE[:DEST], a file to write to, the configuration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from regreen.codebase.trial import Trial
from regreen.errors import ConfigError, UserError
from regreen.ports import Git
from regreen.repo_config import CONFIG_PATH, RepoConfig, parse_repo_config


def variables_of(items: Sequence[str]) -> tuple[tuple[str, str], ...]:
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


def overlay_of(items: Sequence[str]) -> dict[str, bytes]:
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


def check_folder_of(file: Path | None, option: str) -> None:
    """Make sure, before the work, that its result can be written.

    Raises:
        UserError: the folder is not there.
    """
    if file is not None and not file.absolute().parent.is_dir():
        message = f"{option} {file}: there is no such folder"
        raise UserError(message)


def config_at(git: Git, rev: str) -> RepoConfig:
    """The configuration as `rev` has it: the base of a change, so that the change cannot loosen its own rules.

    Raises:
        UserError: it is no valid configuration.
    """
    data = git.show(rev, CONFIG_PATH, 256 * 1024)
    if data is None:
        return RepoConfig()
    try:
        return parse_repo_config(data.decode("utf-8", "replace"))
    except ConfigError as error:
        message = f"{CONFIG_PATH} at {rev[:12]}: {error}"
        raise UserError(message) from error


def suite_at(
    git: Git, rev: str, *, setup: str | None, env: tuple[tuple[str, str], ...], python: str | None
) -> Trial | None:
    """How the configuration at `rev` says that all tests run, prepared by its own setup or else by `setup`."""
    tests = config_at(git, rev).tests
    if not tests.command:
        return None
    return Trial(
        ("bash", "-c", tests.command),
        setup=tests.setup or setup,
        env=env,
        timeout=tests.timeout_minutes * 60,
        image=tests.image,
        python=python,
    )
