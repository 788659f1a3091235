"""Reads the operator's settings, and says in one line what is wrong with them."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from regreen.errors import UserError
from regreen.settings import Settings


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
