"""`regreen doctor`: checks this machine, and shows the dated result of attacking its sandbox."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, get_args

import click

from regreen import __version__
from regreen.cli.options import (
    config_option,
    defaults_file,
    format_option,
    load_defaults,
    require_app,
    sandbox_option,
)
from regreen.cli.terminal import print_answer
from regreen.code.repo_config_file import parse_repo_config
from regreen.domain.errors import ConfigError, OutsideError, UserError
from regreen.domain.models import DoctorCheck
from regreen.domain.private_folders import make_private
from regreen.domain.repo_config import CONFIG_PATH
from regreen.domain.settings import Settings

CheckGroup = Literal["sandbox", "database", "github", "model", "config", "git"]
_PROOF_AGE = timedelta(days=30)
_MAX_PROOF_CHARS = 1_000_000
_MIN_GIT_VERSION = (2, 38)  # `git merge-tree --write-tree`


@click.command("doctor")
@format_option("form", "text", "json")
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(get_args(CheckGroup)),
    help="Only this group of checks; may be given again.",
)
@click.option(
    "--attack", is_flag=True, help="Attack the sandbox again instead of showing the last result."
)
@click.option("-v", "--verbose", is_flag=True, help="Every check, each attack included.")
@sandbox_option("kind", default=None)
@config_option()
def command(
    form: str,
    only: tuple[CheckGroup, ...],
    *,
    attack: bool,
    verbose: bool,
    kind: str | None,
    config: Path | None,
) -> int:
    """Check this machine. The sandbox is attacked the first time, and again with --attack. Exit 0 when all that is required holds."""
    settings, problems = _check_settings(config)
    checks = list(problems)
    for group, check in _make_check_groups(settings, kind, attack=attack).items():
        if not only or group in only:
            click.echo(f"{group} ...", err=True)
            checks += check()
    if form == "json":
        click.echo(json.dumps({"version": 1, "checks": [asdict(check) for check in checks]}))
    else:
        _print_checks(checks, verbose=verbose)
    return 0 if all(check.ok or not check.required for check in checks) else 1


def _make_check_groups(
    settings: Settings, kind: str | None, *, attack: bool
) -> dict[CheckGroup, Callable[[], Sequence[DoctorCheck]]]:
    return {
        "git": _check_git,
        "config": _check_config,
        "database": lambda: _check_database(settings),
        "github": lambda: _check_github(settings),
        "model": lambda: _check_model_settings(settings),
        "sandbox": lambda: _check_sandbox(settings, kind or settings.sandbox, attack=attack),
    }


def _check_settings(config: Path | None) -> tuple[Settings, list[DoctorCheck]]:
    from regreen.app.settings_loader import load_operator_settings

    try:
        return load_operator_settings(config), []
    except UserError as error:
        remedy = "put it right, in the environment or in the file"
        found = DoctorCheck(
            "settings", "config", ok=False, required=True, detail=str(error), remedy=remedy
        )
        return Settings.model_construct(home=Path("~/.regreen").expanduser()), [found]


def _check_git() -> list[DoctorCheck]:
    path = shutil.which("git")
    if path is None:
        return [
            DoctorCheck(
                "git is installed", "git", False, True, "not found", "install git 2.38 or newer"
            )
        ]
    version_text = subprocess.run(
        [path, "--version"], capture_output=True, text=True, check=False
    ).stdout
    words = version_text.split()
    number = words[2] if len(words) > 2 else "0"
    version = tuple(int(part) for part in number.split(".")[:2] if part.isdigit())
    good = version >= _MIN_GIT_VERSION
    return [
        DoctorCheck(
            "git is new enough",
            "git",
            good,
            True,
            version_text.strip(),
            "" if good else "install git 2.38 or newer",
        )
    ]


def _check_config() -> list[DoctorCheck]:
    return [_check_repository_config(), _check_defaults(), _check_languages()]


def _check_defaults() -> DoctorCheck:
    """Which file holds the user's defaults."""
    file, name = defaults_file(), "the user's defaults"
    try:
        load_defaults("doctor")
    except UserError as error:
        return DoctorCheck(name, "config", False, False, str(error), "put the file right")
    return DoctorCheck(
        name, "config", True, False, str(file) if file.is_file() else f"none ({file} is not there)"
    )


def _check_languages() -> DoctorCheck:
    """What is done for the languages of the repository at hand, or for all of them outside of one."""
    from regreen.adapters.git.repository import GitRepository
    from regreen.languages.registry import describe_support

    paths: list[str] = []
    with suppress(UserError, OutsideError, OSError):
        git = GitRepository.open(Path.cwd())
        paths = [entry.path for entry in git.tree(git.resolve("HEAD"))]
    name = "what is done for each language"
    return DoctorCheck(name, "config", True, False, describe_support(paths))


def _check_repository_config() -> DoctorCheck:
    from regreen.adapters.git.repository import GitRepository

    root = Path()
    with suppress(UserError, OutsideError):
        root = GitRepository.find_work_tree(root)
    path = root / CONFIG_PATH
    if not path.is_file():
        return DoctorCheck(CONFIG_PATH, "config", True, False, "not there: defaults are used")
    try:
        parse_repo_config(path.read_text("utf-8"))
    except (ConfigError, OSError, UnicodeDecodeError) as error:
        remedy = "run `regreen config check` for each line"
        return DoctorCheck(CONFIG_PATH, "config", False, False, str(error), remedy)
    return DoctorCheck(CONFIG_PATH, "config", True, False, "valid")


def _check_database(settings: Settings) -> list[DoctorCheck]:
    try:
        require_app()
    except UserError as error:
        detail = "not tried: `serve` is not installed here; the command line needs no database"
        remedy = str(error).rpartition(": ")[2]
        return [DoctorCheck("the database answers", "database", False, False, detail, remedy)]
    from regreen.adapters.store.connection import ping_database

    try:
        make_private(settings.home)
        shown = ping_database(settings.database)
    except (OSError, UserError, OutsideError) as error:
        remedy = "set REGREEN_DATABASE_URL, or make REGREEN_HOME writable"
        return [
            DoctorCheck("the database answers", "database", False, True, str(error)[:200], remedy)
        ]
    return [DoctorCheck("the database answers", "database", True, True, shown)]


def _check_github(settings: Settings) -> list[DoctorCheck]:
    """Whether the App is set up. Nothing is required here: the command line works without one."""
    given = {
        "REGREEN_APP_ID": settings.app_id is not None,
        "REGREEN_PRIVATE_KEY": bool(settings.private_key or settings.private_key_path),
        "REGREEN_WEBHOOK_SECRET": settings.webhook_secret is not None,
    }
    missing = [name for name, is_there in given.items() if not is_there]
    if missing:
        detail = f"not set: {', '.join(missing)}"
        return [
            DoctorCheck("the GitHub App", "github", False, False, detail, "run `regreen setup`")
        ]
    return [
        DoctorCheck("the GitHub App", "github", True, False, f"App {settings.app_id}"),
        _check_private_key(settings),
    ]


def _check_private_key(settings: Settings) -> DoctorCheck:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        load_pem_private_key((settings.private_key_pem() or "").encode(), password=None)
    except (ValueError, TypeError, ConfigError) as error:
        remedy = "download a new key from the App's page"
        return DoctorCheck(
            "the private key can be read", "github", False, True, str(error)[:200], remedy
        )
    return DoctorCheck("the private key can be read", "github", True, True, "an RSA key")


def _check_model_settings(settings: Settings) -> list[DoctorCheck]:
    if not settings.has_model:
        detail = "no key: what needs a model is left out"
        remedy = "set ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL or REGREEN_MODEL_PROVIDER"
        return [DoctorCheck("a model can be asked", "model", False, False, detail, remedy)]
    from regreen.adapters.model.endpoints import ModelEndpoint

    name = "a model can be asked"
    try:
        endpoint = ModelEndpoint.from_settings(settings)
        assert endpoint is not None  # noqa: S101 - there is a model
        endpoint.open_client()
    except UserError as error:
        reason, _, remedy = str(error).rpartition("; ")
        return [DoctorCheck(name, "model", False, True, reason or remedy, remedy)]
    where = f"{endpoint.place or 'the default endpoint'}, which was not asked"
    return [DoctorCheck(name, "model", True, False, f"{settings.model} at {where}")]


def check_wsl(release: str) -> list[DoctorCheck]:
    """A line where the kernel of this name is that of the Windows Subsystem for Linux."""
    if "microsoft" not in release.lower():
        return []
    detail = f"{release}: Regreen has not been tried here; the attacks below say what its sandbox withstands"
    remedy = "expect version 2 with Docker or bubblewrap inside to work, and version 1 not to"
    return [DoctorCheck("Windows Subsystem for Linux", "sandbox", False, False, detail, remedy)]


def _check_sandbox(settings: Settings, kind: str, *, attack: bool) -> list[DoctorCheck]:
    from regreen.adapters.sandbox.selection import choose_sandbox

    try:
        sandbox = choose_sandbox(kind, settings.sandbox_runtime, settings.setup_hosts)
    except (UserError, OutsideError) as error:  # UserError: no sandbox, or no folder for it
        reason, _, remedy = str(error).rpartition("; ")
        failed = DoctorCheck("a sandbox works", "sandbox", False, True, reason or remedy, remedy)
        return [*check_wsl(platform.release()), failed]
    pythons = ", ".join(getattr(sandbox, "pythons", tuple)())
    works = DoctorCheck(
        "a sandbox works", "sandbox", True, True, f"{sandbox.name}, Python {pythons}"
    )
    proof = settings.home / "sandbox-proof.json"
    key = [__version__, sandbox.name, platform.release(), settings.sandbox_runtime]
    attacks = [] if attack else read_proof(proof, key, datetime.now(UTC))
    if not attacks:
        click.echo("  attacking the sandbox, about a minute ...", err=True)
        attacks = sandbox.doctor()
        write_proof(proof, key, attacks, datetime.now(UTC))
    return [*check_wsl(platform.release()), works, *attacks]


def read_proof(path: Path, key: Sequence[str | None], now: datetime) -> list[DoctorCheck]:
    """The attacks that this sandbox withstood within the last month, the summary with its date; none without a proof."""
    try:
        kept = json.loads(path.read_text("utf-8")[:_MAX_PROOF_CHARS])
        at = datetime.fromisoformat(kept["at"])
        checks = [DoctorCheck(**check) for check in kept["checks"]]
    except (OSError, ValueError, TypeError, KeyError):
        return []
    if kept.get("key") != list(key) or not timedelta() <= now - at < _PROOF_AGE or not checks:
        return []
    summary = f"{sum(c.ok for c in checks)} of {len(checks)} held at {at:%Y-%m-%d %H:%M} UTC"
    return [DoctorCheck("attacks", "sandbox", True, True, summary), *checks]


def write_proof(
    path: Path, key: Sequence[str | None], checks: Sequence[DoctorCheck], now: datetime
) -> None:
    """Keep a result in which every required attack was withstood; any other is forgotten."""
    with suppress(OSError):
        path.unlink(missing_ok=True)
        if checks and all(check.ok or not check.required for check in checks):
            make_private(path.parent)
            body = {"at": now.isoformat(), "key": list(key), "checks": [asdict(c) for c in checks]}
            path.write_text(json.dumps(body), "utf-8")


def _print_checks(checks: Sequence[DoctorCheck], *, verbose: bool) -> None:
    """A line for each group, and for what fails or is missing; every check with `verbose`."""
    for check in checks if verbose else _choose_lines(checks):
        sign = "ok  " if check.ok else ("FAIL" if check.required else "-   ")
        print_answer(f"{sign} {check.group:<8} {check.name}: {check.detail}")
        if check.remedy and not check.ok:
            print_answer(f"              {check.remedy}")
    failed = sum(1 for check in checks if check.required and not check.ok)
    click.echo(f"{failed} of the required checks failed" if failed else "all required checks hold")


def _choose_lines(checks: Sequence[DoctorCheck]) -> Iterable[DoctorCheck]:
    for group in get_args(CheckGroup):
        own = [check for check in checks if check.group == group]
        bad = [check for check in own if check.required and not check.ok]
        weak = [check for check in own if not check.ok][:1]
        if bad or not own:
            yield from bad
        elif group == "sandbox" and len(own) > 1:
            works = next((c for c in own if c.name == "a sandbox works"), own[0])
            dated = next((c.detail for c in own if c.name == "attacks"), "")
            attacks = sum(c.ok for c in own if c is not works)
            held = dated or f"{attacks} of {len(own) - 1} attacks held just now"
            yield replace(works, detail=f"{works.detail}; attacks: {held}")
            yield from weak
        else:
            yield (weak or own)[0]
