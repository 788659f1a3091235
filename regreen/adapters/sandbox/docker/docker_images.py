"""The images of boxes: found, pulled, built, stored as environments, and removed when unused."""

from __future__ import annotations

import hashlib
import io
import math
import os
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regreen.adapters.sandbox.retention import (
    GiB,
    StoredEnvironment,
    UsageLedger,
    choose_environments_to_remove,
)
from regreen.domain.errors import NoSandbox, OutsideError, UserError
from regreen.domain.models import Retention
from regreen.packages.container_image import expand_image_name

if TYPE_CHECKING:
    from docker import APIClient

ENV_REPOSITORY = "regreen-env"
BASE_REPOSITORY = "regreen-base"
LABEL_PREFIX = "regreen."
PULLED_REPOSITORY = "regreen-pulled"
_TOOLS_REPOSITORY = "regreen-tools"
_SLIM_IMAGE = "python:{}-slim"
_SKELETON_REPOSITORY = "regreen-skeleton"
_OWN_IMAGES = "docker.io/library/regreen-"
MAX_IMAGE_BYTES = 10 * GiB
# Trusted code alone: Debian's own packages, as root, before anything of a repository is near.
_TOOLS_DOCKERFILE = """FROM {}
RUN {{ command -v git && command -v make; }} >/dev/null || \\
    {{ apt-get update && apt-get install -y --no-install-recommends git make && rm -rf /var/lib/apt/lists/*; }}
"""


class DockerImages:
    """The engine's images. `ledger` knows when an environment was last used: the engine does not."""

    def __init__(
        self, client: APIClient, ledger: UsageLedger, max_image_bytes: int = MAX_IMAGE_BYTES
    ) -> None:
        self._max_image_bytes = max_image_bytes
        self._client = client
        self._ledger = ledger
        self._has_registry: bool | None = None  # unknown until something was asked for
        # images that the tools could not be put into: not tried at every box
        self._bare: set[str] = set()

    def mark_used(self, tag: str) -> None:
        """Record the use of an image."""
        self._ledger.mark_used(tag)

    def list_environments(self) -> list[StoredEnvironment]:
        """The prepared environments, each with its size beyond its base, and the images below them."""
        sizes = {str(image["Id"]): int(image["Size"]) for image in self._client.images(all=True)}
        environments = []
        prepared = self._client.images(filters={"label": f"{LABEL_PREFIX}python"})
        ours = (ENV_REPOSITORY, BASE_REPOSITORY, PULLED_REPOSITORY, _TOOLS_REPOSITORY)
        pulled = self._client.images(name=PULLED_REPOSITORY)
        for image in (*prepared, *pulled, *self._client.images(name=_TOOLS_REPOSITORY)):
            for tag in image.get("RepoTags") or ():
                if tag.partition(":")[0] in ours:
                    own = int(image["Size"]) - sizes.get(str(image.get("ParentId")), 0)
                    environments.append(
                        StoredEnvironment(
                            tag, max(own, 0), self._ledger.find_last_use(tag, image["Created"])
                        )
                    )
        return environments

    def prune_environments(self, rules: Retention) -> int:
        """Remove unused and surplus environments; return how many."""
        return len(
            self.remove(choose_environments_to_remove(self.list_environments(), rules, time.time()))
        )

    def remove(self, environments: Iterable[StoredEnvironment]) -> list[StoredEnvironment]:
        """Remove these; return the ones that are gone. The engine keeps those that are in use."""
        from docker.errors import APIError

        removed = []
        for env in environments:
            try:
                # Not by force: the engine keeps what a container, or another image, still stands on.
                self._client.remove_image(env.name)
            except APIError:
                continue
            repository, _, version = env.name.partition(":")
            if repository == BASE_REPOSITORY:
                with suppress(APIError):
                    self._client.remove_image(f"{_SKELETON_REPOSITORY}:{version}")
            self._ledger.forget_environment(env.name)
            removed.append(env)
        return removed

    def import_skeleton_image(self, root: bytes, tag: str) -> str:
        """A skeleton's root as an image."""
        from docker.errors import APIError

        try:
            self._client.import_image_from_data(root, repository=_SKELETON_REPOSITORY, tag=tag)
        except APIError as error:
            msg = f"Docker could not import the skeleton image: {error}"
            raise OutsideError(msg) from error
        return f"{_SKELETON_REPOSITORY}:{tag}"

    def find_image(self, image: str) -> str | None:
        """The id of a local image."""
        info = self.inspect_image(image)
        return None if info is None else str(info["Id"])

    def inspect_image(self, image: str) -> Mapping[str, Any] | None:
        """The engine's description of an image; None if it has none."""
        from docker.errors import DockerException, NotFound
        from requests.exceptions import RequestException

        try:
            info: Mapping[str, Any] = self._client.inspect_image(image)  # type: ignore[no-untyped-call]
        except NotFound:
            return None
        except (DockerException, RequestException) as error:
            msg = f"Docker did not answer: {error}"
            raise OutsideError(msg) from error
        return info

    def find_slim_image(self, version: str) -> str | None:
        """The official slim image of a Python, if it is local or can be pulled."""
        image = _SLIM_IMAGE.format(version)
        if self.find_image(image) is not None:
            return self._build_image_with_tools(image)
        if self._has_registry is False:
            return None
        try:
            self._pull_image(image)
        except (UserError, OutsideError):
            self._has_registry = False
            return None
        return self._build_image_with_tools(image)

    def list_slim_pythons(self, versions: Sequence[str]) -> tuple[str, ...]:
        """Those of these Pythons, the oldest first, that have a slim image here; all where a registry has the others."""
        from docker.errors import DockerException
        from requests.exceptions import RequestException

        local = [v for v in versions if self.find_image(_SLIM_IMAGE.format(v)) is not None]
        missing = [v for v in versions if v not in local]
        if missing and self._has_registry is None:
            try:
                self._client.inspect_distribution(_SLIM_IMAGE.format(missing[-1]))  # type: ignore[no-untyped-call]
                self._has_registry = True
            except (DockerException, RequestException):
                self._has_registry = False
        return tuple(local if local and not self._has_registry else versions)

    def _build_image_with_tools(self, image: str) -> str:
        """The slim image with git and make, built once; without them if no package index answers."""
        from docker.errors import DockerException
        from requests.exceptions import RequestException

        tag = f"{_TOOLS_REPOSITORY}:{image.replace(':', '-')}"
        if self.find_image(tag) is not None:
            self._ledger.mark_used(tag)
            return tag
        if image in self._bare:
            return image
        try:
            steps = self._client.build(
                fileobj=io.BytesIO(_TOOLS_DOCKERFILE.format(image).encode()),
                tag=tag,
                rm=True,
                forcerm=True,
                decode=True,
            )
            built = not any("error" in step for step in steps)
        except (DockerException, RequestException):
            built = False
        if built and self.find_image(tag) is not None:
            self._ledger.mark_used(tag)
            return tag
        self._bare.add(image)
        return image

    def ensure_image(self, image: str, timeout: float = math.inf) -> str:
        """The id of an image, pulled if it is not local; a pulled image gets a name of ours, so that it is pruned.

        Args:
            image: its name, never an id or a name of ours: those are environments of other repositories, too.
            timeout: seconds for the pull.

        Raises:
            UserError: it is no such name, the registry does not have it, it is too large, or takes too long.
            OutsideError: the registry cannot be reached.
        """
        image = expand_image_name(image)
        if image.startswith(_OWN_IMAGES):
            msg = f"the image {image!r} is one of Regreen's own"
            raise UserError(msg)
        if (image_id := self.find_image(image)) is not None:
            return image_id
        version = hashlib.sha256(image.encode()).hexdigest()[:40]
        if (image_id := self.find_image(f"{PULLED_REPOSITORY}:{version}")) is None:
            image_id = self._pull_image(image, timeout)
            self._client.tag(image_id, PULLED_REPOSITORY, version)
            self._client.remove_image(image, noprune=True)
        self._ledger.mark_used(f"{PULLED_REPOSITORY}:{version}")
        return image_id

    def _pull_image(self, image: str, timeout: float = math.inf) -> str:
        from docker.errors import APIError, DockerException, NotFound
        from requests.exceptions import RequestException

        name, _, tag = image.rpartition(":")
        is_tagged = bool(name) and "/" not in tag and "@" not in image
        client = connect_engine(self._client.api_version)  # closed to stop a pull that is under way
        try:
            events = client.pull(
                name if is_tagged else image,
                tag if is_tagged else (None if "@" in image else "latest"),
                stream=True,
                decode=True,
            )
            self._watch_pull(image, events, time.monotonic() + timeout)
        except NotFound as error:
            msg = f"there is no image {image!r}"
            raise UserError(msg) from error
        except (DockerException, RequestException) as error:
            reason = error.explanation if isinstance(error, APIError) else error
            msg = f"the image {image!r} could not be pulled: {reason}"
            raise OutsideError(msg) from error
        finally:
            client.close()
        info = self.inspect_image(image)
        if info is None:
            msg = f"the image {image!r} could not be pulled"
            raise OutsideError(msg)
        if int(info["Size"]) > self._max_image_bytes:
            self._client.remove_image(image, force=True)
            raise UserError(self._describe_too_large_image(image))
        return str(info["Id"])

    def _watch_pull(self, image: str, events: Iterable[Mapping[str, Any]], deadline: float) -> None:
        layers: dict[str, int] = {}
        for event in events:
            if time.monotonic() > deadline:
                msg = f"the image {image!r} could not be pulled in time"
                raise UserError(msg)
            if "error" in event:
                msg = f"the image {image!r} could not be pulled: {event['error']}"
                raise OutsideError(msg)
            total = (event.get("progressDetail") or {}).get("total") or 0
            layers[event.get("id", "")] = max(total, layers.get(event.get("id", ""), 0))
            if sum(layers.values()) > self._max_image_bytes:
                raise UserError(self._describe_too_large_image(image))

    def _describe_too_large_image(self, image: str) -> str:
        most = self._max_image_bytes / GiB
        return f"the image {image!r} is larger than {most:.1f} GiB; if you trust it, `docker pull` it by hand"

    def commit_container(self, container: str, tag: str, labels: Mapping[str, str]) -> str:
        """Store a container's files as an image; return its id."""
        from docker.errors import DockerException
        from requests.exceptions import RequestException

        repository, _, version = tag.partition(":")
        try:
            committed = connect_engine(self._client.api_version).commit(
                container,
                repository=repository,
                tag=version,
                conf={"Labels": {LABEL_PREFIX + name: value for name, value in labels.items()}},
            )
        except (DockerException, RequestException) as error:
            msg = f"Docker could not keep the environment: {error}"
            raise OutsideError(msg) from error
        return str(committed["Id"])


# The connection to a Docker engine, and whether it can enforce the limits of a box.


def connect_engine(version: str = "auto") -> APIClient:
    """A connection for one thread: the SDK's sessions are not made to be shared.

    Raises:
        NoSandbox: there is no engine, or access is denied.
    """
    import docker
    from docker.errors import DockerException
    from docker.utils import kwargs_from_env

    settings = kwargs_from_env()
    if "base_url" not in settings and (found := _find_socket()):
        settings["base_url"] = found
    try:
        _try_socket(settings.get("base_url") or "unix:///var/run/docker.sock")
        return docker.APIClient(version=version, timeout=60, **settings)
    except (DockerException, OSError) as error:
        raise NoSandbox(_describe_missing_engine(error)) from error


def _try_socket(address: str) -> None:
    """Connect once, and close: the SDK leaves a socket open that it cannot connect."""
    if address.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as one:
            one.settimeout(60)
            one.connect(f"/{address.removeprefix('unix://').lstrip('/')}")


def _find_socket() -> str | None:
    """The engine's address where DOCKER_HOST names none: that of the chosen context, else a socket; None: the default.

    Podman serves the same API (`systemctl --user start podman.socket`).
    """
    from docker.context import ContextAPI
    from docker.errors import DockerException

    with suppress(DockerException, OSError, ValueError, KeyError):
        context = ContextAPI.get_current_context()
        if context.Name != "default":
            return str(context.Host)
    own = Path(os.environ.get("XDG_RUNTIME_DIR", "/nonexistent"))
    sockets = [
        Path("/var/run/docker.sock"),
        own / "docker.sock",
        own / "podman/podman.sock",
        Path("/run/podman/podman.sock"),
    ]
    there = [path for path in sockets if path.is_socket()]
    usable = [path for path in there if os.access(path, os.W_OK)]
    return f"unix://{(usable or there)[0]}" if there else None


def refuse_engine_without_limits(
    client: APIClient, info: Mapping[str, Any], runtime: str | None
) -> None:
    """Check that the engine can enforce the limits of a box.

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


def _describe_missing_engine(error: Exception) -> str:
    reason = str(error)
    if "Permission denied" in reason:
        return "you may not use the Docker engine; join the docker group (usermod -aG docker $USER), log in again"
    if "No such file" in reason or "Connection refused" in reason:
        return "no Docker engine is running; start one (systemctl start docker)"
    return f"the Docker engine cannot be used: {reason[:200]}"
