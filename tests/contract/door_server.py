"""The webhook endpoint alone behind our HTTP server: `python door_server.py PORT`."""

from __future__ import annotations

import socket
import sys

from flask import Flask

from regreen.app.server import HttpServer
from regreen.webhooks import receive

SECRET = "behind the door"


def main() -> None:
    """Serve until a signal ends it."""
    flask = Flask("door")
    flask.register_blueprint(receive.make_blueprint(secrets=[SECRET], accept=lambda _: True))
    HttpServer(flask, socket.create_server(("127.0.0.1", int(sys.argv[1])))).run()


if __name__ == "__main__":
    main()
