"""`regreen worker`: one more process that runs jobs from the same database."""

from __future__ import annotations

import click


@click.command()
@click.option(
    "--id",
    "name",
    default=None,
    help="The worker's id, unique among all; default: host name and process id.",
)
def command(name: str | None) -> int:
    """Run one more worker on the same database, until a signal ends it."""
    import os
    import signal
    import socket
    import threading

    from regreen.adapters import heap
    from regreen.bot.app import MAIN_WORKER, build
    from regreen.bot.environment import app_settings
    from regreen.bot.logs import log_to_stderr

    worker = name or f"{socket.gethostname()}-{os.getpid()}"
    if worker == MAIN_WORKER:
        message = f"'{MAIN_WORKER}' is the id of `regreen serve`; choose another"
        raise click.BadParameter(message, param_hint="--id")
    settings = app_settings()
    log_to_stderr(settings.log_format, settings.secrets())
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    heap.use_few_arenas()
    app = build(settings, worker=worker)
    running = app.worker()
    running.start()
    click.echo(f"worker {worker} is running", err=True)
    ended.wait()
    running.stop()
    app.close()
    return 0
