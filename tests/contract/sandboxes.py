"""The sandboxes that work on this machine, for the tests that need one."""

from __future__ import annotations

import functools
import io
import tarfile
from collections.abc import Mapping

import pytest

from regreen.adapters.sandbox.selection import choose_sandbox
from regreen.domain.errors import NoSandbox
from regreen.domain.models import EnvSpec, PreparedEnv
from regreen.domain.ports import Sandbox

BACKENDS = ("docker", "bwrap")


@functools.cache
def backend(kind: str) -> Sandbox | str:
    """The sandbox of this kind, or the reason why there is none here."""
    try:
        return choose_sandbox(kind)
    except NoSandbox as error:
        return str(error)


def sandbox_or_skip(kind: str) -> Sandbox:
    found = backend(kind)
    if isinstance(found, str):
        pytest.skip(f"no {kind} here: {found}")
    return found


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
