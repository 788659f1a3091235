"""The images that boxes are made from: found, pulled, built, kept as environments, and removed when nobody uses them."""

from __future__ import annotations

import io
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from regreen.adapters.docker_engine import connect
from regreen.adapters.retention import Kept, Ledger, Retention, surplus
from regreen.errors import OutsideError, UserError

if TYPE_CHECKING:
    from docker import APIClient

REPOSITORY = "regreen-env"
BASE = "regreen-base"
LABELS = "regreen."
# Trusted code alone: Debian's own packages, as root, before anything of a repository is near.
_TOOLS = """FROM {}
RUN {{ command -v git && command -v make; }} >/dev/null || \\
    {{ apt-get update && apt-get install -y --no-install-recommends git make && rm -rf /var/lib/apt/lists/*; }}
"""


class Images:
    """The engine's images. `ledger` knows when an environment was last used: the engine does not."""

    def __init__(self, client: APIClient, ledger: Ledger) -> None:
        self._client = client
        self._ledger = ledger
        self._no_registry = False
        self._bare: set[str] = (
            set()
        )  # images that the tools could not be put into: not tried at every box

    def touch(self, tag: str) -> None:
        """Note that an image is used now."""
        self._ledger.touch(tag)

    def kept(self) -> list[Kept]:
        """The prepared environments, each with what it takes beyond its base."""
        sizes = {str(one["Id"]): int(one["Size"]) for one in self._client.images(all=True)}
        found = []
        for one in self._client.images(filters={"label": f"{LABELS}python"}):
            for tag in one.get("RepoTags") or ():
                if tag.startswith((f"{REPOSITORY}:", f"{BASE}:")):
                    own = int(one["Size"]) - sizes.get(str(one.get("ParentId")), 0)
                    found.append(Kept(tag, max(own, 0), self._ledger.used(tag, one["Created"])))
        return found

    def prune(self, rules: Retention) -> int:
        """Remove environments that nobody has used for long, or that are too many; how many went."""
        from docker.errors import APIError

        removed = 0
        for one in surplus(self.kept(), rules, time.time()):
            try:
                # Not by force: the engine keeps what a container, or another image, still stands on.
                self._client.remove_image(one.name)
            except APIError:
                continue
            self._ledger.forget(one.name)
            removed += 1
        return removed

    def import_root(self, root: bytes, tag: str) -> str:
        """A skeleton's root as an image."""
        from docker.errors import APIError

        try:
            self._client.import_image_from_data(root, repository="regreen-skeleton", tag=tag)
        except APIError as error:
            msg = f"Docker could not import the skeleton image: {error}"
            raise OutsideError(msg) from error
        return f"regreen-skeleton:{tag}"

    def find(self, image: str) -> str | None:
        """The id of an image that is here."""
        seen = self.inspect(image)
        return None if seen is None else str(seen["Id"])

    def inspect(self, image: str) -> Mapping[str, Any] | None:
        """What the engine knows of an image; None where it has none."""
        from docker.errors import DockerException, NotFound
        from requests.exceptions import RequestException

        try:
            seen: Mapping[str, Any] = self._client.inspect_image(image)  # type: ignore[no-untyped-call]
        except NotFound:
            return None
        except (DockerException, RequestException) as error:
            msg = f"Docker did not answer: {error}"
            raise OutsideError(msg) from error
        return seen

    def slim(self, version: str) -> str | None:
        """The official slim image of a Python, where it is here or can be had."""
        image = f"python:{version}-slim"
        if self.find(image) is not None:
            return self._with_tools(image)
        if self._no_registry:
            return None
        try:
            self.pulled(image)
        except (UserError, OutsideError):
            self._no_registry = True
            return None
        return self._with_tools(image)

    def _with_tools(self, image: str) -> str:
        """The slim image with git and make in it, built once; without them where no package index answers."""
        from docker.errors import DockerException
        from requests.exceptions import RequestException

        tag = f"regreen-tools:{image.replace(':', '-')}"
        if self.find(tag) is not None:
            return tag
        if image in self._bare:
            return image
        try:
            steps = self._client.build(
                fileobj=io.BytesIO(_TOOLS.format(image).encode()),
                tag=tag,
                rm=True,
                forcerm=True,
                decode=True,
            )
            built = not any("error" in step for step in steps)
        except (DockerException, RequestException):
            built = False
        if built and self.find(tag) is not None:
            return tag
        self._bare.add(image)
        return image

    def pulled(self, image: str) -> str:
        """The id of an image, pulled if it is not here.

        Raises:
            UserError: the registry does not have it.
            OutsideError: the registry cannot be reached.
        """
        from docker.errors import APIError, NotFound

        if (found := self.find(image)) is not None:
            return found
        name, _, tag = image.rpartition(":")
        reference = (name, tag) if name and "/" not in tag else (image, "latest")
        try:
            self._client.pull(*reference) if "@" not in image else self._client.pull(image)
        except NotFound as error:
            msg = f"there is no image {image!r}"
            raise UserError(msg) from error
        except APIError as error:
            msg = f"the image {image!r} could not be pulled: {error.explanation}"
            raise OutsideError(msg) from error
        if (found := self.find(image)) is None:
            msg = f"the image {image!r} could not be pulled"
            raise OutsideError(msg)
        return found

    def keep(self, container: str, tag: str, labels: Mapping[str, str]) -> str:
        """Keep a container's files as an image; its id."""
        from docker.errors import DockerException
        from requests.exceptions import RequestException

        repository, _, version = tag.partition(":")
        try:
            made = connect(self._client.api_version).commit(
                container,
                repository=repository,
                tag=version,
                conf={"Labels": {LABELS + name: value for name, value in labels.items()}},
            )
        except (DockerException, RequestException) as error:
            msg = f"Docker could not keep the environment: {error}"
            raise OutsideError(msg) from error
        return str(made["Id"])
