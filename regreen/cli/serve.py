"""`regreen serve`: webhooks, dashboard and jobs, started by one command; `worker`: one more process for jobs; `redeliver`."""

from __future__ import annotations

from pathlib import Path

import click

from regreen.cli.options import config_option, require_app
from regreen.domain.events import Event, Work


@click.command()
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option("--port", default=8080, type=click.IntRange(0, 65535), help="0: a free one.")
@config_option()
def command(host: str, port: int, config: Path | None) -> int:
    """Run the App: webhooks and dashboard in one process, jobs in another."""
    require_app()
    from regreen.app.server import serve
    from regreen.app.settings_loader import load_app_settings, prepare_process, with_dashboard_token

    settings = with_dashboard_token(load_app_settings(config))
    prepare_process(settings, config)
    return serve(settings, host=host, port=port)


@click.command("worker")
@click.option(
    "--id",
    "name",
    default=None,
    help="The worker's id, unique among all; default: host name and process id.",
)
@config_option()
def worker_command(name: str | None, config: Path | None) -> int:
    """Run one more worker on the same database, until a signal ends it."""
    require_app()
    import os
    import socket

    from regreen.app.server import MAIN_WORKER, run_jobs
    from regreen.app.settings_loader import load_app_settings, prepare_process

    worker = name or f"{socket.gethostname()}-{os.getpid()}"
    if worker == MAIN_WORKER:
        message = f"'{MAIN_WORKER}' is the id of `regreen serve`; choose another"
        raise click.BadParameter(message, param_hint="--id")
    settings = load_app_settings(config)
    prepare_process(settings, config)
    run_jobs(settings, worker=worker)
    return 0


@click.command("redeliver")
@click.argument("delivery")
@click.option("--event", default=None, help="The event's name, for a file (X-GitHub-Event).")
@config_option()
def redeliver_command(delivery: str, event: str | None, config: Path | None) -> int:
    """Run one webhook delivery again: a DELIVERY_ID we have, or a FILE that holds a payload."""
    require_app()
    import os
    import socket
    import threading
    import time

    from regreen.app.settings_loader import load_app_settings, prepare_process
    from regreen.app.wiring import build_app
    from regreen.bot.jobs.event_jobs import make_orders
    from regreen.bot.jobs.serialization import deserialize_work

    settings = load_app_settings(config)
    prepare_process(settings, config)
    worker = f"redeliver-{socket.gethostname()}-{os.getpid()}"
    app = build_app(settings, worker=worker)
    ended = threading.Event()
    try:
        work: Work | None = _event_from_file(Path(delivery), event) if event else None
        if work is None:
            kept = app.store.delivery(delivery)
            if kept is None:
                hint = " (a file needs --event)" if Path(delivery).exists() else ""
                message = f"no delivery {delivery!r} in the database{hint}"
                raise click.UsageError(message)
            work = deserialize_work(kept.event)
        placed = make_orders(work, f"redelivered/{delivery}/{time.time_ns()}")
        app.send_heartbeats_until(ended)
        for order in placed:
            click.echo(f"running {order.id}", err=True)
            app.enqueue_orders((order,))
            job = app.runner.claim(job_id=order.id)
            if job is not None:
                app.runner.run(job)
            done = app.store.job(order.id)
            click.echo(f"{done.state}: {done.note}" if done else "gone")
        if not placed:
            click.echo("this delivery asks for nothing")
        return 0
    finally:
        ended.set()
        app.close()


def _event_from_file(path: Path, event: str) -> Event:
    import json

    from regreen.domain.errors import UserError
    from regreen.webhooks.parse import MalformedPayload, parse

    try:
        found = parse(event, json.loads(path.read_bytes()))
    except OSError as error:
        message = f"cannot read {path}: {error.strerror}"
        raise UserError(message) from error
    except (ValueError, MalformedPayload) as error:
        message = f"{path} holds no {event} payload: {error}"
        raise UserError(message) from error
    if found is None:
        message = f"{path}: a {event} of this kind is not for us"
        raise UserError(message)
    return found
