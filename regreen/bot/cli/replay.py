"""`regreen replay`: one delivery again, from the database or from a file."""

from __future__ import annotations

from pathlib import Path

import click

from regreen.bot.asks import Work
from regreen.webhooks.events import Event


@click.command()
@click.argument("delivery")
@click.option("--event", default=None, help="The event's name, for a file (X-GitHub-Event).")
def command(delivery: str, event: str | None) -> int:
    """Run one webhook delivery again: a DELIVERY_ID we have, or a FILE that holds a payload."""
    import time

    from regreen.bot.app import build
    from regreen.bot.envelope import unpack
    from regreen.bot.environment import app_settings
    from regreen.bot.plan import orders

    app = build(app_settings(), worker="replay", durable=False)
    try:
        work: Work | None = _from_file(Path(delivery), event) if event else None
        if work is None:
            kept = app.store.delivery(delivery)
            if kept is None:
                hint = " (a file needs --event)" if Path(delivery).exists() else ""
                message = f"no delivery {delivery!r} in the database{hint}"
                raise click.UsageError(message)
            work = unpack(kept.event)
        placed = orders(work, f"replay/{delivery}/{time.time_ns()}")
        app.order(placed)
        for order in placed:
            click.echo(f"running {order.id}", err=True)
            app.runner.run(order.id)
            done = app.store.job(order.id)
            click.echo(f"{done.state}: {done.note}" if done else "gone")
        if not placed:
            click.echo("this delivery asks for nothing")
        return 0
    finally:
        app.close()


def _from_file(path: Path, event: str) -> Event:
    import json

    from regreen.errors import UserError
    from regreen.webhooks.parse import Malformed, parse

    try:
        found = parse(event, json.loads(path.read_bytes()))
    except OSError as error:
        message = f"cannot read {path}: {error.strerror}"
        raise UserError(message) from error
    except (ValueError, Malformed) as error:
        message = f"{path} holds no {event} payload: {error}"
        raise UserError(message) from error
    if found is None:
        message = f"{path}: a {event} of this kind is not for us"
        raise UserError(message)
    return found
