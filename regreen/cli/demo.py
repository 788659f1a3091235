"""`regreen demo`: plays the whole main job on loopback."""

from __future__ import annotations

import signal
import sys

import click

from regreen.cli.options import require_playground


@click.command()
@click.option("--keep", is_flag=True, help="Leave everything running at the end.")
@click.option(
    "--port", default=0, type=click.IntRange(0, 65535), help="The playground's port; 0: a free one."
)
@click.option(
    "--act",
    "acts",
    multiple=True,
    type=click.IntRange(1, 4),
    help="Only this act; may be given again. Default: all four.",
)
def command(keep: bool, port: int, acts: tuple[int, ...]) -> int:
    """Play the whole main job on loopback, against the playground."""
    require_playground()
    from regreen_playground.demo import play

    # What ends the demo ends the App that it started too.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    played = play(port=port, keep=keep, say=click.echo, acts=acts or (1, 2, 3, 4))
    return 1 if played.missed else 0
