"""The sandboxes that work on this machine, for the tests that need one."""

from __future__ import annotations

import atexit
import functools
import io
import os
import tarfile
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from regreen.adapters.sandbox.bubblewrap.bubblewrap_sandbox import BwrapSandbox
from regreen.adapters.sandbox.selection import choose_sandbox
from regreen.domain.errors import NoSandbox
from regreen.domain.models import EnvSpec, PreparedEnv
from regreen.domain.ports import Sandbox
from tests.contract.e2b_stand_in import KEY, Service, serve_stand_in

BACKENDS = ("docker", "bwrap")
ALL_BACKENDS = (*BACKENDS, "e2b")


@functools.cache
def backend(kind: str) -> Sandbox | str:
    """The sandbox of this kind, or the reason why there is none here."""
    try:
        if kind == "e2b":
            stand_in()
        return choose_sandbox(kind)
    except NoSandbox as error:
        return str(error)


@functools.cache
def stand_in() -> Service:
    """The stand-in of the remote service, to which the SDK's own variables lead from now on."""
    local = choose_sandbox("bwrap")
    assert isinstance(local, BwrapSandbox)
    until_exit = ExitStack()
    atexit.register(until_exit.close)
    home = Path(until_exit.enter_context(tempfile.TemporaryDirectory()))
    home.chmod(0o755)
    service = until_exit.enter_context(serve_stand_in(home, local))
    os.environ.update(E2B_API_KEY=KEY, E2B_API_URL=service.url, E2B_SANDBOX_URL=service.url)
    return service


def sandbox_or_skip(kind: str) -> Sandbox:
    found = backend(kind)
    if isinstance(found, str):
        pytest.skip(f"no {kind} here: {found}")
    return found


def usual_sandbox() -> Sandbox:
    """The one for tests that only need some box: bubblewrap, which costs a tenth of a container, else Docker.

    The tests in this folder hold both to the same contract.
    """
    if isinstance(box := backend("bwrap"), str):
        box = sandbox_or_skip("docker")
    return box


@functools.cache
def plain_env(kind: str) -> PreparedEnv:
    return sandbox_or_skip(kind).prepare(EnvSpec(), ())


def tree(files: Mapping[str, str]) -> tuple[bytes]:
    """A tar stream as `git archive` makes it: owned by root, without directories."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content.encode()), 0o644
            tar.addfile(entry, io.BytesIO(content.encode()))
    return (buffer.getvalue(),)
