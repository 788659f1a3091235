"""`regreen completion`: the words of this command line, for a shell to complete."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from regreen.domain.errors import UserError


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> int:
    """Print what makes SHELL complete commands and options."""
    from regreen.cli import cli

    kind = get_completion_class(shell)
    if kind is None:
        message = f"click knows no completion for {shell}"
        raise UserError(message)
    click.echo(kind(cli, {}, "regreen", "_REGREEN_COMPLETE").source())
    return 0
