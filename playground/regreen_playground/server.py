"""Serves a playground on loopback: `with serve() as playground: ...`."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from regreen.domain.ports import Clock
from regreen_playground.application import PREFIX, build
from regreen_playground.loopback import Loopback, Wsgi
from regreen_playground.outbox import Postman, Transport, over_http
from regreen_playground.state import State


class Playground:
    """A running playground. `url` is its web root, `api_url` what an App is given as API address."""

    def __init__(
        self,
        *,
        port: int = 0,
        root: Path | None = None,
        clock: Clock | None = None,
        deliver: bool = True,
        transport: Transport = over_http,
        wrap: Callable[[Wsgi], Wsgi] | None = None,
    ) -> None:
        self._temporary = None if root else Path(tempfile.mkdtemp(prefix="playground-"))
        self.state = State(root or self._temporary or Path(), clock)
        application: Wsgi = build(self.state)
        self._loopback = Loopback(wrap(application) if wrap else application, port, "playground")
        self.url = self._loopback.url
        self.api_url = self.url + PREFIX
        self.state.web_url, self.state.api_url = self.url, self.api_url
        self._postman = Postman(self.state, transport) if deliver else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop serving and remove what was temporary."""
        if self._postman is not None:
            self._postman.close()
        self._loopback.close()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)


def serve(
    port: int = 0,
    root: Path | None = None,
    *,
    clock: Clock | None = None,
    deliver: bool = True,
    transport: Transport = over_http,
    wrap: Callable[[Wsgi], Wsgi] | None = None,
) -> Playground:
    """Start a playground on loopback.

    Args:
        port: 0 takes a free one.
        root: where the bare repositories live; a temporary directory if not given.
        clock: the time tokens age by.
        deliver: send webhooks in the background; without it they wait for `state.flush()`.
        transport: how a webhook is posted.
        wrap: laid around the application (a recorder, a checker).
    """
    return Playground(
        port=port, root=root, clock=clock, deliver=deliver, transport=transport, wrap=wrap
    )
