"""`regreen doctor`: checks this machine line by line, and attacks its sandbox."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Literal, get_args

import click

from regreen.bot.cli.options import answered_as
from regreen.bot.cli.terminal import answer
from regreen.errors import ConfigError, NoSandbox, OutsideError, UserError
from regreen.models import Check
from regreen.repo_config import CONFIG_PATH, parse_repo_config
from regreen.settings import Settings

Group = Literal["sandbox", "database", "github", "model", "config", "git"]
_OLDEST_GIT = (2, 38)  # `git merge-tree --write-tree`


@click.command("doctor")
@answered_as("form", "text", "json")
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(get_args(Group)),
    help="Only this group of checks; may be given again.",
)
@click.option(
    "--sandbox",
    "kind",
    type=click.Choice(["auto", "docker", "bwrap"]),
    default=None,
    help="Which one to attack; default: REGREEN_SANDBOX.",
)
def command(form: str, only: tuple[Group, ...], kind: str | None) -> int:
    """Check this machine, and attack its sandbox. Exit 0 when all that is required holds."""
    settings, problems = _settings()
    checks = list(problems)
    for group, check in _groups(settings, kind).items():
        if not only or group in only:
            click.echo(f"{group} ...", err=True)
            checks += check()
    if form == "json":
        click.echo(json.dumps({"version": 1, "checks": [asdict(check) for check in checks]}))
    else:
        _show(checks)
    return 0 if all(check.ok or not check.required for check in checks) else 1


def _groups(settings: Settings, kind: str | None) -> dict[Group, Callable[[], Sequence[Check]]]:
    return {
        "git": _git,
        "config": _config,
        "database": lambda: _database(settings),
        "github": lambda: _github(settings),
        "model": lambda: _model(settings),
        "sandbox": lambda: _sandbox(kind or settings.sandbox, settings.sandbox_runtime),
    }


def _settings() -> tuple[Settings, list[Check]]:
    from pydantic import ValidationError

    try:
        return Settings(), []
    except ValidationError as error:
        found = [
            Check(
                name="settings",
                group="config",
                ok=False,
                required=True,
                detail=f"REGREEN_{'_'.join(map(str, fault['loc'])).upper()}: {fault['msg']}",
                remedy="put the variable right, in the environment or in .env",
            )
            for fault in error.errors()
        ]
        return Settings.model_construct(), found


def _git() -> list[Check]:
    path = shutil.which("git")
    if path is None:
        return [
            Check("git is installed", "git", False, True, "not found", "install git 2.38 or newer")
        ]
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    words = said.split()
    number = words[2] if len(words) > 2 else "0"
    version = tuple(int(part) for part in number.split(".")[:2] if part.isdigit())
    good = version >= _OLDEST_GIT
    return [
        Check(
            "git is new enough",
            "git",
            good,
            True,
            said.strip(),
            "" if good else "install git 2.38 or newer",
        )
    ]


def _config() -> list[Check]:
    path = Path(CONFIG_PATH)
    if not path.is_file():
        return [Check(CONFIG_PATH, "config", True, False, "not there: defaults are used")]
    try:
        parse_repo_config(path.read_text("utf-8"))
    except (ConfigError, OSError, UnicodeDecodeError) as error:
        remedy = "run `regreen config check` for each line"
        return [Check(CONFIG_PATH, "config", False, False, str(error), remedy)]
    return [Check(CONFIG_PATH, "config", True, False, "valid")]


def _database(settings: Settings) -> list[Check]:
    from regreen.adapters.connection import ping

    try:
        settings.home.mkdir(parents=True, exist_ok=True)
        shown = ping(settings.database)
    except (OSError, UserError, OutsideError) as error:
        remedy = "set REGREEN_DATABASE_URL, or make REGREEN_HOME writable"
        return [Check("the database answers", "database", False, True, str(error)[:200], remedy)]
    return [Check("the database answers", "database", True, True, shown)]


def _github(settings: Settings) -> list[Check]:
    """Whether the App is set up. Nothing is required here: the command line works without one."""
    given = {
        "REGREEN_APP_ID": settings.app_id is not None,
        "REGREEN_PRIVATE_KEY": bool(settings.private_key or settings.private_key_path),
        "REGREEN_WEBHOOK_SECRET": settings.webhook_secret is not None,
    }
    missing = [name for name, is_there in given.items() if not is_there]
    if missing:
        detail = f"not set: {', '.join(missing)}"
        return [Check("the App is set up", "github", False, False, detail, "run `regreen setup`")]
    return [
        Check("the App is set up", "github", True, False, f"App {settings.app_id}"),
        _key(settings),
    ]


def _key(settings: Settings) -> Check:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        load_pem_private_key((settings.private_key_pem() or "").encode(), password=None)
    except (ValueError, TypeError, ConfigError) as error:
        remedy = "download a new key from the App's page"
        return Check("the private key can be read", "github", False, True, str(error)[:200], remedy)
    return Check("the private key can be read", "github", True, True, "an RSA key")


def _model(settings: Settings) -> list[Check]:
    if not settings.has_model:
        detail = "no key: reviewers and rungs that need a model are left out"
        remedy = "set ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL"
        return [Check("a model can be asked", "model", False, False, detail, remedy)]
    where = settings.anthropic_base_url or "the default endpoint"
    return [Check("a model can be asked", "model", True, False, f"{settings.model} at {where}")]


def _sandbox(kind: str, runtime: str | None) -> list[Check]:
    from regreen.adapters.sandbox import choose

    try:
        sandbox = choose(kind, runtime)
    except (NoSandbox, OutsideError) as error:
        reason, _, remedy = str(error).rpartition("; ")
        return [Check("a sandbox works", "sandbox", False, True, reason or remedy, remedy)]
    pythons = ", ".join(getattr(sandbox, "pythons", tuple)())
    works = Check("a sandbox works", "sandbox", True, True, f"{sandbox.name}, Python {pythons}")
    return [works, *sandbox.doctor()]


def _show(checks: Iterable[Check]) -> None:
    for check in checks:
        sign = "ok  " if check.ok else ("FAIL" if check.required else "-   ")
        answer(f"{sign} {check.group:<8} {check.name}: {check.detail}")
        if check.remedy and not check.ok:
            answer(f"              {check.remedy}")
    failed = sum(1 for check in checks if check.required and not check.ok)
    click.echo(f"{failed} of the required checks failed" if failed else "all required checks hold")
