"""Chooses the sandbox: Docker, or bubblewrap if it holds everything; a remote one only if it is named."""

from __future__ import annotations

import os
import shutil
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from regreen.adapters.sandbox.egress_proxy import HOSTS_VARIABLE
from regreen.adapters.sandbox.retention import UsageLedger
from regreen.domain.errors import NoSandbox, UserError
from regreen.domain.ports import Sandbox
from regreen.domain.private_folders import cache_home, make_private

SANDBOX_KINDS = ("auto", "docker", "bwrap", "e2b")


def choose_sandbox(
    kind: str = "auto",
    runtime: str | None = None,
    setup_hosts: str | None = None,
    *,
    exact: bool = False,
) -> Sandbox:
    """The sandbox to use.

    Args:
        kind: "docker", "bwrap", "e2b", or "auto": Docker where there is an engine, else bubblewrap where it passes
            its own attacks.
        runtime: another OCI runtime that the Docker engine knows ("runsc", "kata"); for "e2b" the template.
        setup_hosts: private hosts that a setup may reach; None: as `REGREEN_SETUP_HOSTS` has it.
        exact: refuse a sandbox whose limits on memory are approximate: where other people's code runs.

    Raises:
        NoSandbox: none works here; the text names the remedy.
        UserError: `kind` or `setup_hosts` is invalid.
    """
    from regreen.adapters.sandbox.egress_proxy import parse_allowed_hosts

    hosts = os.environ.get(HOSTS_VARIABLE, "") if setup_hosts is None else setup_hosts
    parse_allowed_hosts(hosts)  # a setting that is wrong is named before what this machine lacks
    match kind:
        case "docker":
            return _connect_docker(runtime, hosts)
        case "bwrap":
            return _connect_bwrap(hosts, exact)
        case "e2b":
            return _connect_e2b(runtime, hosts, exact)
        case "auto":
            return _first_available(runtime, hosts, exact)
        case _:
            message = f"unknown sandbox {kind!r}; use one of {', '.join(SANDBOX_KINDS)}"
            raise UserError(message)


def _first_available(runtime: str | None, hosts: str, exact: bool) -> Sandbox:
    try:
        return _connect_docker(runtime, hosts)
    except NoSandbox as without_docker:
        try:
            return _connect_bwrap(hosts, exact)
        except NoSandbox as without_bwrap:
            message = (
                f"no sandbox works here. Docker: {without_docker}. bubblewrap: {without_bwrap}"
            )
            raise NoSandbox(message) from without_bwrap


def _connect_docker(runtime: str | None, hosts: str) -> Sandbox:
    from regreen.adapters.sandbox.docker.docker_sandbox import DockerSandbox

    return DockerSandbox.connect(
        runtime, ledger=UsageLedger(environments_home() / "used"), setup_hosts=hosts
    )


def _connect_bwrap(hosts: str, exact: bool) -> Sandbox:
    """Bubblewrap, after it has held the quick attacks on this boot of this kernel, memory included."""
    from regreen.adapters.sandbox.attacks.attack import self_test
    from regreen.adapters.sandbox.bubblewrap.bubblewrap_sandbox import BwrapSandbox

    sandbox = BwrapSandbox.connect(environments_home(), setup_hosts=hosts)
    if exact and sandbox.why_approximate:
        message = (
            f"bubblewrap bounds memory only approximately here ({sandbox.why_approximate}), which is for your own code "
            "on the command line; for pull requests use Docker, or run as root"
        )
        raise NoSandbox(message)
    passed = environments_home() / f"held-{_self_test_key()}"
    if not passed.exists():
        if broken := self_test(sandbox):
            message = f"bubblewrap does not hold here ({broken}); use Docker"
            raise NoSandbox(message)
        passed.touch()
    return sandbox


def _connect_e2b(template: str | None, hosts: str, exact: bool) -> Sandbox:
    if find_spec("e2b") is None:
        raise NoSandbox("the SDK of E2B is not installed; run `pip install 'regreen[e2b]'`")
    from regreen.adapters.sandbox.e2b_sandbox import E2BSandbox

    if exact:
        message = (
            f"{E2BSandbox.why_approximate}, and it is for your own code on the command line; "
            "for pull requests use Docker"
        )
        raise NoSandbox(message)
    ledger = UsageLedger(environments_home() / "used-e2b")
    return E2BSandbox.connect(template or "base", ledger, hosts)


def _self_test_key() -> str:
    """The key of the self-test's outcome: this boot, and the attacked programs."""
    from regreen.adapters.sandbox import egress_proxy as egress
    from regreen.adapters.sandbox import seccomp
    from regreen.adapters.sandbox.attacks import box_programs as attack_programs
    from regreen.adapters.sandbox.bubblewrap import box_limiter as limiter
    from regreen.adapters.sandbox.bubblewrap import bubblewrap_backend as bwrap_box
    from regreen.adapters.sandbox.bubblewrap import bubblewrap_sandbox as bubblewrap
    from regreen.adapters.sandbox.bubblewrap import control_group

    digest = sha256(Path("/proc/sys/kernel/random/boot_id").read_bytes())
    digest.update(control_group.explain_unavailable().encode())
    digest.update(Path(shutil.which("bwrap") or os.devnull).read_bytes())
    digest.update(attack_programs.ATTACKS_SOURCE.encode())
    for module in (attack_programs, bubblewrap, bwrap_box, egress, limiter, seccomp):
        digest.update(Path(module.__file__ or os.devnull).read_bytes())
    return digest.hexdigest()[:32]


def environments_home() -> Path:
    """The folder of environments for a sandbox without an engine."""
    return make_private(cache_home()) / "sandbox"
