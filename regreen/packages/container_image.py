"""Names of container images: their full form, and which of them a stranger's change may choose."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.resources import files

from regreen.domain.errors import UserError

IMAGE_FILES = re.compile(
    r"Dockerfile|\.devcontainer\.json|\.devcontainer/devcontainer\.json"
    r"|\.github/(?:regreen|workflows/[^/]+)\.ya?ml"
)
"""The files of a repository that name images."""

_MAX_LENGTH = 512
# https://github.com/distribution/reference, without hosts in capitals
_COMPONENT = r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?P<repository>{_COMPONENT}(?::\d{{1,5}})?(?:/{_COMPONENT})+)"
    r"(?P<tag>:\w[\w.-]{0,127})?(?P<digest>@sha256:[0-9a-f]{64})?",
    re.ASCII,
)
_NAMED = re.compile(
    r"^[ \t]*FROM[ \t]+(?:--\S+[ \t]+)?(\S+)|\b(?:image|container)[\"']?[ \t]*:[ \t]*[\"']?([^\s\"',{}]+)",
    re.IGNORECASE | re.MULTILINE,
)


def expand_image_name(image: str) -> str:
    """The full name of an image, with registry and tag: an engine takes it for nothing else, as for an image's id.

    Raises:
        UserError: it is no name of an image.
    """
    first, slash, rest = image.partition("/")
    if not slash or not (first == "localhost" or "." in first or ":" in first):
        first, rest = "docker.io", image
    if first in {"docker.io", "index.docker.io"}:
        first, rest = "docker.io", rest if "/" in rest else f"library/{rest}"
    full = f"{first}/{rest}"
    found = _REFERENCE.fullmatch(full) if len(full) <= _MAX_LENGTH else None
    if found is None:
        msg = f"{image[:100]!r} is no name of an image"
        raise UserError(msg)
    return full if found["tag"] or found["digest"] else f"{full}:latest"


def is_public_image(image: str) -> bool:
    """Whether an image of this full name is one of those that everybody can have and knows."""
    found = _REFERENCE.fullmatch(image)
    repository = found["repository"] if found else ""
    return any(
        repository.startswith(known) if known.endswith("/") else repository == known
        for known in _load_public_images()
    )


@cache
def _load_public_images() -> frozenset[str]:
    text = (files("regreen.packages") / "public_images.toml").read_text()
    return frozenset(tomllib.loads(text)["repositories"])


def find_image_names(text: str) -> Iterator[str]:
    """The full names of the images that a Dockerfile, a devcontainer, a workflow or a configuration names."""
    for built_from, named in _NAMED.findall(text):
        with suppress(UserError):
            yield expand_image_name(built_from or named)
