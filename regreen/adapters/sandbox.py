"""Chooses the sandbox of this machine: Docker, or bubblewrap where it holds everything. There is no third way."""

from __future__ import annotations

import os
import shutil
from hashlib import sha256
from pathlib import Path

from regreen.adapters.retention import Ledger
from regreen.errors import NoSandbox, UserError
from regreen.ports import Sandbox

KINDS = ("auto", "docker", "bwrap")


def choose(kind: str = "auto", runtime: str | None = None) -> Sandbox:
    """The sandbox to use.

    Args:
        kind: "docker", "bwrap", or "auto": Docker where there is an engine, else bubblewrap where it passes
            its own attacks.
        runtime: another OCI runtime that the Docker engine knows ("runsc", "kata").

    Raises:
        NoSandbox: none works here; the text names the remedy.
        UserError: no such kind.
    """
    match kind:
        case "docker":
            return _docker(runtime)
        case "bwrap":
            return _bwrap()
        case "auto":
            return _first(runtime)
        case _:
            message = f"unknown sandbox {kind!r}; use one of {', '.join(KINDS)}"
            raise UserError(message)


def _first(runtime: str | None) -> Sandbox:
    try:
        return _docker(runtime)
    except NoSandbox as without_docker:
        try:
            return _bwrap()
        except NoSandbox as without_bwrap:
            message = f"nothing here can run foreign code safely. Docker: {without_docker}. Else: {without_bwrap}"
            raise NoSandbox(message) from without_bwrap


def _docker(runtime: str | None) -> Sandbox:
    from regreen.adapters.docker import DockerSandbox

    return DockerSandbox.connect(runtime, ledger=Ledger(_home() / "used"))


def _bwrap() -> Sandbox:
    """Bubblewrap, once it has held the quick attacks on this boot of this kernel, memory included."""
    from regreen.adapters.attacks import self_test
    from regreen.adapters.bubblewrap import BwrapSandbox

    sandbox = BwrapSandbox.connect(_home())
    passed = _home() / f"held-{_boot()}"
    if not passed.exists():
        if broken := self_test(sandbox):
            message = f"bubblewrap does not hold here ({broken}); use Docker"
            raise NoSandbox(message)
        passed.touch()
    return sandbox


def _boot() -> str:
    """What the outcome of the self-test depends on: this boot, and what is attacked."""
    from regreen.adapters import attack_programs, bubblewrap, bwrap_box, seccomp

    digest = sha256(Path("/proc/sys/kernel/random/boot_id").read_bytes())
    digest.update(Path(shutil.which("bwrap") or os.devnull).read_bytes())
    for module in (attack_programs, bubblewrap, bwrap_box, seccomp):
        digest.update(Path(module.__file__ or os.devnull).read_bytes())
    return digest.hexdigest()[:32]


def _home() -> Path:
    """Where environments are kept that have no engine to keep them."""
    home = os.environ.get("REGREEN_HOME")
    return Path(home) / "sandbox" if home else Path.home() / ".cache" / "regreen" / "sandbox"
