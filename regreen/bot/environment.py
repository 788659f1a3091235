"""Reads the operator's settings, and says in one line what is wrong with them."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import ValidationError

from regreen.errors import ConfigError, UserError
from regreen.settings import Settings


def writable_home(settings: Settings) -> Path:
    """Where things are kept, made if need be.

    Raises:
        UserError: nothing can be kept there.
    """
    home = settings.home
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        message = f"cannot write to {home} ({reason}); set REGREEN_HOME to a folder of yours"
        raise UserError(message) from error
    if not os.access(home, os.W_OK | os.X_OK):
        message = f"cannot write to {home}; set REGREEN_HOME to a folder of yours"
        raise UserError(message)
    return home


def app_settings(env_file: Path | None = None) -> Settings:
    """The settings, with what the App cannot start without: its id, a private key, a folder to keep things in.

    Raises:
        UserError: one is missing or cannot be used.
    """
    settings = read_settings(env_file)
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
    writable_home(settings)
    return settings


def read_settings(env_file: Path | None = None) -> Settings:
    """The settings, from the environment and `env_file` (default: `.env` in the current folder).

    Raises:
        UserError: a value cannot be used.
    """
    try:
        return Settings(_env_file=env_file or ".env")
    except ValidationError as error:
        first = error.errors()[0]
        name = "REGREEN_" + "_".join(str(part).upper() for part in first["loc"])
        message = f"{name}: {first['msg'].removeprefix('Value error, ')}"
        raise UserError(message) from None
