"""Reads the operator's settings, and reports a fault in one line."""

from __future__ import annotations

import logging
import os
import secrets
from pathlib import Path

from pydantic import SecretStr, ValidationError

from regreen.bot.jobs.log_setup import log_to_stderr
from regreen.domain.errors import ConfigError, UserError
from regreen.domain.private_folders import make_private, require_private, write_private
from regreen.domain.settings import Settings

SETTINGS_FILE = "regreen.env"
DASHBOARD_FILE = "dashboard-token"

_log = logging.getLogger(__name__)


def prepare_process(settings: Settings, config: Path | None) -> None:
    """Prepare a start of `serve` or `worker`: private files, logging, and a warning about an ignored `.env`."""
    os.umask(0o077)
    log_to_stderr(settings.log_format, settings.secret_values())
    stray = Path(".env").absolute()
    if stray.exists() and (config is None or stray != config.absolute()):
        place = settings.home / SETTINGS_FILE
        _log.warning(
            "%s is not read: move it to %s (chmod 600), or name it with --config", stray, place
        )


def with_dashboard_token(settings: Settings) -> Settings:
    """The settings with a dashboard token: the operator's, or one that is created once and kept in the home folder.

    Raises:
        UserError: other users can read the token's file.
    """
    if settings.dashboard_auth is not None:
        return settings
    file = settings.home / DASHBOARD_FILE
    if not file.exists():
        write_private(file, secrets.token_urlsafe(24))
    require_private(file)
    return settings.model_copy(update={"dashboard_auth": SecretStr(file.read_text().strip())})


def load_app_settings(config: Path | None = None) -> Settings:
    """The settings with what the App cannot start without: its id, a private key, a data folder.

    Raises:
        UserError: one is missing or invalid.
    """
    settings = load_operator_settings(config)
    try:
        key = settings.private_key_pem()
    except ConfigError as error:
        raise UserError("; ".join(f"{p.key}: {p.message}" for p in error.problems)) from error
    if settings.app_id is None or not key:
        message = (
            "REGREEN_APP_ID and REGREEN_PRIVATE_KEY are not set; `regreen setup` registers the App"
        )
        raise UserError(message)
    if "PRIVATE KEY-----" not in key:
        message = "REGREEN_PRIVATE_KEY holds no private key (PEM); download one from the App's page"
        raise UserError(message)
    make_private(settings.home)
    return settings


def load_operator_settings(config: Path | None = None) -> Settings:
    """The settings of operator commands, from the environment and `config`, else `REGREEN_HOME/regreen.env`.

    Raises:
        UserError: a value or the file is invalid.
    """
    home = read_settings().home
    file = config or home / SETTINGS_FILE
    if config is None and file.exists():
        require_private(file)
    settings = read_settings(file)
    if settings.home != home:
        message = f"{file} sets REGREEN_HOME to another folder; set it in the environment"
        raise UserError(message)
    return settings


def read_settings(file: Path | None = None) -> Settings:
    """The settings from the environment, and from `file` if a command names one.

    Raises:
        UserError: a value is invalid, or the file cannot be read.
    """
    try:
        return Settings(_env_file=file)
    except ValidationError as error:
        faults = [
            f"REGREEN_{'_'.join(map(str, fault['loc'])).upper()}: {fault['msg'].removeprefix('Value error, ')}"
            for fault in error.errors()
        ]
        raise UserError("; ".join(faults)) from None
    except (OSError, UnicodeDecodeError) as error:
        message = f"cannot read {file}: {getattr(error, 'strerror', None) or 'it is not UTF-8'}"
        raise UserError(message) from error
