"""`regreen serve`: webhooks, dashboard and workers in one process."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option("--port", default=8080, type=click.IntRange(0, 65535), help="0: a free one.")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="An environment file to read instead of .env.",
)
def command(host: str, port: int, config: Path | None) -> int:
    """Run the App: webhooks, dashboard, workers."""
    from regreen.bot.environment import app_settings
    from regreen.bot.server import serve

    serve(app_settings(config), host=host, port=port)
    return 0
