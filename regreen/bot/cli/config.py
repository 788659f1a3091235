"""`regreen config check` and `regreen config schema`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from regreen.errors import UserError
from regreen.settings import CONFIG_PATH, ConfigError, config_schema, parse_repo_config


@click.group("config")
def command() -> None:
    """Check .github/regreen.yml, or print its JSON schema."""


@command.command("check")
@click.argument("file", default=CONFIG_PATH, type=click.Path(path_type=Path))
@click.option(
    "--format", "fmt", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def check(file: Path, fmt: str) -> int:
    """Say whether FILE is valid, and line by line what is not. Exit 2 when it is not."""
    try:
        text = file.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        message = f"cannot read {file}: {reason}"
        raise UserError(message) from error
    try:
        config = parse_repo_config(text)
    except ConfigError as error:
        problems = [{"line": p.line, "key": p.key, "message": p.message} for p in error.problems]
        if fmt == "json":
            click.echo(
                json.dumps({"version": 1, "ok": False, "problems": problems, "config": None})
            )
        else:
            for p in error.problems:
                click.echo(f"{file}:{p.line}: {p.key + ': ' if p.key else ''}{p.message}", err=True)
        return 2
    if fmt == "json":
        document = {
            "version": 1,
            "ok": True,
            "problems": [],
            "config": config.model_dump(mode="json"),
        }
        click.echo(json.dumps(document))
    else:
        click.echo(f"{file}: valid")
    return 0


@command.command("schema")
def schema() -> int:
    """Print the JSON schema."""
    click.echo(json.dumps(config_schema(), indent=2))
    return 0
