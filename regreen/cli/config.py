"""`regreen config check` and `regreen config schema`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from regreen.cli.options import format_option
from regreen.cli.terminal import report_progress
from regreen.code.repo_config_file import config_schema, parse_repo_config
from regreen.domain.errors import ConfigError, UserError
from regreen.domain.repo_config import CONFIG_PATH
from regreen.domain.settings import Settings


@click.group("config")
def command() -> None:
    """Check .github/regreen.yml, or print its JSON schema."""


@command.command("check")
@click.argument("file", default=CONFIG_PATH, type=click.Path(path_type=Path))
@format_option("fmt", "text", "json")
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
                report_progress(f"{file}:{p.line}: {p.key + ': ' if p.key else ''}{p.message}")
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


@command.command("reference")
def reference() -> int:
    """Print the reference of every option, in Markdown."""
    click.echo(_render_reference(), nl=False)
    return 0


def _render_reference() -> str:
    schema = config_schema()
    parts = [
        "# Configuration\n\nPrinted by `regreen config reference`.\n\n## `.github/regreen.yml`\n\n"
        "Read from the default branch only; below it, the organisation's default at the same path in its `.github` "
        "repository. Everything is optional; unknown keys are refused with the nearest right one.\n"
    ]
    for name, about in schema["properties"].items():
        section = schema["$defs"][about["$ref"].rsplit("/", 1)[1]]
        parts.append(f"\n### `{name}`\n\n{section['description']}\n\n" + _render_table(section))
    parts.append(
        "\n#### One entry of `bisect.schedules`\n\n" + _render_table(schema["$defs"]["Schedule"])
    )
    parts.append(
        "\n## The operator's settings\n\nEnvironment variables. `serve`, `worker`, `setup`, `redeliver` and `doctor` also read lines `NAME=VALUE` "
        "from the file that `--config` names, else from `REGREEN_HOME/regreen.env` (mode 600); the environment wins. "
        "`REGREEN_HOME` itself comes from the environment only. Nothing is read from the working directory or a repository.\n\n"
    )
    parts.append("| variable | default | what |\n| --- | --- | --- |\n")
    for field, info in Settings.model_fields.items():
        variable = str(info.validation_alias or f"REGREEN_{field.upper()}")
        default = "" if info.default is None else f"`{info.default}`"
        parts.append(f"| `{variable}` | {default} | {info.description} |\n")
    return "".join(parts)


def _render_table(section: dict[str, Any]) -> str:
    rows = ["| key | default | what |\n", "| --- | --- | --- |\n"]
    for key, about in section["properties"].items():
        default = f"`{json.dumps(about['default'])}`" if "default" in about else "required"
        rows.append(f"| `{key}` | {default} | {about['description']} |\n")
    return "".join(rows)
