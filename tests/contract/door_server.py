"""The door alone behind our gunicorn worker: `python door_server.py PORT`; a request may take two seconds."""

from __future__ import annotations

import sys
from typing import Any

from flask import Flask
from gunicorn.app.base import BaseApplication  # type: ignore[import-untyped]

from regreen.bot.slow_clients import InTime, plain_body
from regreen.webhooks import receive

SECRET = "behind the door"


class _Quick(InTime):
    request_s = 2.0


class _Server(BaseApplication):  # type: ignore[misc]
    def load_config(self) -> None:
        for key, value in {
            "bind": [f"127.0.0.1:{sys.argv[1]}"],
            "worker_class": _Quick,
            "threads": 4,
            "loglevel": "error",
        }.items():
            self.cfg.set(key, value)

    def load(self) -> Any:
        flask = Flask("door")
        flask.register_blueprint(receive.blueprint(secrets=[SECRET], accept=lambda _: True))
        return plain_body(flask)


if __name__ == "__main__":
    _Server().run()
