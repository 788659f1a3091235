"""The way to a Docker engine, and whether it is one that can hold a box to its limits."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regreen.errors import NoSandbox

if TYPE_CHECKING:
    from docker import APIClient


def connect(version: str = "auto") -> APIClient:
    """A connection for one thread: the SDK's sessions are not made to be shared.

    Raises:
        NoSandbox: there is no engine, or we may not use it.
    """
    import docker
    from docker.errors import DockerException
    from docker.utils import kwargs_from_env

    settings = kwargs_from_env()
    own = Path(os.environ.get("XDG_RUNTIME_DIR", ""), "docker.sock")
    if "base_url" not in settings and not Path("/var/run/docker.sock").exists() and own.is_socket():
        settings["base_url"] = f"unix://{own}"
    try:
        return docker.APIClient(version=version, timeout=60, **settings)
    except (DockerException, OSError) as error:
        raise NoSandbox(_no_engine(error)) from error


def refuse_if_weak(client: APIClient, info: Mapping[str, Any], runtime: str | None) -> None:
    """See that the engine can hold a box to its limits.

    Raises:
        NoSandbox: it cannot, or does not know the runtime.
    """
    if not client.base_url.startswith("http+docker://"):
        raise NoSandbox(
            "only a Docker engine on this machine is supported; unset DOCKER_HOST, or point it at a unix socket"
        )
    missing = [name for name in ("MemoryLimit", "PidsLimit", "CpuCfsQuota") if not info.get(name)]
    if not any("seccomp" in option for option in info.get("SecurityOptions") or ()):
        missing.append("seccomp")
    if missing or info.get("OSType") != "linux":
        msg = (
            f"the Docker engine cannot hold a box to its limits (missing: {', '.join(missing) or 'Linux'}); "
            "use a rootful engine, or cgroup v2 with delegation"
        )
        raise NoSandbox(msg)
    runtimes = info.get("Runtimes") or {}
    if runtime and runtime not in runtimes:
        msg = (
            f"Docker knows no runtime {runtime!r} (it has {', '.join(sorted(runtimes))}); "
            "add it to /etc/docker/daemon.json"
        )
        raise NoSandbox(msg)


def _no_engine(error: Exception) -> str:
    reason = str(error)
    if "Permission denied" in reason:
        return "you may not use the Docker engine; join the docker group (usermod -aG docker $USER), log in again"
    if "No such file" in reason or "Connection refused" in reason:
        return "no Docker engine is running; start one (systemctl start docker)"
    return f"the Docker engine cannot be used: {reason[:200]}"
