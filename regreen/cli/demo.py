"""`regreen demo`: plays the whole main job on loopback; `regreen playground`: serves the local GitHub alone."""

from __future__ import annotations

import signal
import sys
from threading import Event

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


@click.command("playground")
@click.option("--port", default=8090, type=click.IntRange(0, 65535), help="0: a free one.")
@click.option(
    "--hook-url",
    default="http://127.0.0.1:8080/webhooks/github",
    metavar="URL",
    help="Where it sends webhooks: `regreen serve`.",
)
@click.option("--empty", is_flag=True, help="Without the demo's repository and App.")
def playground_command(port: int, hook_url: str, empty: bool) -> int:
    """Serve the local GitHub, with the demo's repository and a registered App."""
    require_playground()
    from regreen_playground import scenario
    from regreen_playground.server import serve

    with serve(port) as playground:
        click.echo(f"Playground: {playground.url}")
        if not empty:
            state = playground.state
            scenario.build(state, state.now())
            app, key = state.app("Regreen", hook_url=hook_url, owner="orchard")
            folder = state.root / "regreen.pem"
            folder.write_text(key)
            state.install(app, scenario.REPO)
            click.echo("Settings for `regreen serve`:")
            click.echo(f"REGREEN_GITHUB_API_URL={playground.api_url}")
            click.echo(f"REGREEN_APP_ID={app.id}")
            click.echo(f"REGREEN_PRIVATE_KEY_PATH={folder}")
            click.echo(f"REGREEN_WEBHOOK_SECRET={app.secret}")
            for login in scenario.PEOPLE:
                click.echo(f"token of {login}: {state.person(login).token}")
        click.echo("Ctrl-C ends it.")
        Event().wait()
    return 0
