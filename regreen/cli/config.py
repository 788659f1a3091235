"""`regreen config`: checks a configuration, prints its schema; `regreen completion`: the words of this command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from regreen.cli.options import COMMANDS_WITH_DEFAULTS, DEFAULT_KEYS, format_option
from regreen.cli.terminal import report_note
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
        reason = (
            f"{error.strerror}; name the file, or write one with `regreen init`"
            if isinstance(error, OSError)
            else "not UTF-8 text; save it as UTF-8"
        )
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
                report_note(f"{file}:{p.line}: {p.key + ': ' if p.key else ''}{p.message}")
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
        if "$ref" not in about:
            continue
        section = schema["$defs"][about["$ref"].rsplit("/", 1)[1]]
        parts.append(f"\n### `{name}`\n\n{section['description']}\n\n" + _render_table(section))
    parts.append(
        "\n#### One entry of `bisect.schedules`\n\n" + _render_table(schema["$defs"]["Schedule"])
    )
    parts.append(
        f"\n### `paths`\n\n{schema['properties']['paths']['description']} For each key the last pattern counts that covers a file "
        "and names the key. Where a change touches such files, their tests are run in place of the repository's.\n\n"
        "Without such settings, projects in folders of their own are found by their manifests: those that a change touches, or that "
        "a command names (`cd web && npm test`), are set up and tested in their folders; a folder in the language of the "
        "project at the root is a part of that.\n\n"
        '```yaml\npaths:\n  "services/api/**":\n    tests: {setup: "pip install -e services/api[test]", command: "pytest -q services/api"}\n'
        '    review: {min_confidence: 0.9, blocking: high}\n  "docs/**": {review: {dimensions: [style]}}\n```\n'
    )
    for name in ("review", "tests", "fix", "budget"):
        kind = f"Path{name.capitalize()}Config"
        section = schema["$defs"][kind]
        parts.append(
            f"\n#### `{name}` of a path\n\n{section['description']}\n\n{_render_table(section)}"
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
    keys = ", ".join(f"`{key}`" for key in DEFAULT_KEYS)
    commands = ", ".join(f"`{name}`" for name in COMMANDS_WITH_DEFAULTS)
    parts.append(
        "\n## Your own defaults\n\n`$XDG_CONFIG_HOME/regreen/defaults.toml` (else `~/.config/regreen/defaults.toml`) holds defaults for the "
        f"options of {commands}. Its keys are {keys}: those at the top hold for every command that takes them, those of a table "
        "such as `[fix]` for that command.\n\nThe command line wins; `model = false` is `--no-model`. An unknown key is an error. "
        "`regreen doctor -v` names the file. Nothing else is read from it: no operator's setting, and no command to run.\n\n"
        '```toml\nsandbox = "bwrap"\nquiet = true\n\n[fix]\nmax-minutes = 10\nmodel = false\n```\n'
    )
    return "".join(parts)


def _render_table(section: dict[str, Any]) -> str:
    rows = ["| key | default | what |\n", "| --- | --- | --- |\n"]
    for key, about in section["properties"].items():
        default = f"`{json.dumps(about['default'])}`" if "default" in about else "required"
        rows.append(f"| `{key}` | {default} | {about['description']} |\n")
    return "".join(rows)


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> int:
    """Print what makes SHELL complete commands and options."""
    from click.shell_completion import get_completion_class

    from regreen.cli import cli

    kind = get_completion_class(shell)
    if kind is None:
        message = f"click knows no completion for {shell}"
        raise UserError(message)
    click.echo(kind(cli, {}, "regreen", "_REGREEN_COMPLETE").source())
    return 0
