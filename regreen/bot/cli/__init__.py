"""The `regreen` command: one module a subcommand, loaded only when it is called for."""

from __future__ import annotations

import difflib
import importlib
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from regreen import __version__
from regreen.bot.cli.examples import examples
from regreen.bot.cli.terminal import harmless
from regreen.errors import NoSandbox, NotARepository, OutsideError, UserError

COMMANDS = {
    "review": "reads a change and says what it can back up",
    "bisect": "finds the commit that broke a test, flaky or not",
    "fix": "makes a failing command pass, with proof",
    "gate": "judges a patch: allow, needs_human or deny",
    "plan": "says how a workflow file would be reproduced",
    "ci-log": "reads the failures out of a CI job's log",
    "sandbox": "runs one command in the sandbox",
    "doctor": "checks this machine and attacks its sandbox",
    "config": "checks .github/regreen.yml, prints its schema",
    "serve": "runs the App: webhooks, dashboard, workers",
    "worker": "runs one more worker on the same database",
    "setup": "registers the GitHub App",
    "replay": "runs one webhook delivery again",
    "demo": "plays the whole main job on loopback",
    "playground": "serves the local GitHub alone",
    "completion": "prints what a shell needs to complete these words",
}


class _Lazy(click.Group):
    """Imports a subcommand's module when it is used, so that `--help` stays instant."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"regreen.bot.cli.{cmd_name.replace('-', '_')}")
        command = module.command
        assert isinstance(command, click.Command)  # noqa: S101 - narrows importlib's Any
        command.epilog = command.epilog or examples(cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which one was meant."""
        if args and args[0] not in COMMANDS:
            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            meant = f"did you mean `regreen {near[0]}`?" if near else "`regreen --help` lists them"
            ctx.fail(f"there is no command {args[0]!r}; {meant}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "show_default": True}
)
@click.version_option(__version__, prog_name="regreen")
def cli() -> None:
    """Regreen turns red back to green."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 the answer is no, 2 wrong usage, 3 the environment failed."""
    try:
        code = cli.main(
            args=list(argv) if argv is not None else None,
            prog_name="regreen",
            standalone_mode=False,
        )
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(2)
    except click.ClickException as error:
        _fail(2, _plain(error))
    except (NoSandbox, NotARepository, OutsideError) as error:
        _fail(3, str(error))
    except UserError as error:
        _fail(2, str(error))
    except (KeyboardInterrupt, click.Abort):
        _fail(130, "stopped")
    sys.exit(code if isinstance(code, int) else 0)


def _plain(error: click.ClickException) -> str:
    """What was wrong with the words that were typed, and where the right ones stand."""
    said = re.sub(
        r"is not a valid integer( range)?\b", "is not a whole number", error.format_message()
    )
    said = re.sub(r"is not a valid float( range)?\b", "is not a number", said).rstrip(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None or context.parent is None:
        return said
    joint = " " if said.endswith("?") else "; "
    return f"{said}{joint}`{context.command_path} --help` shows how it is called"


def _fail(code: int, message: str) -> NoReturn:
    one_line = harmless(" ".join(message.split()))
    click.echo(f"regreen: {one_line}", err=True)
    sys.exit(code)
