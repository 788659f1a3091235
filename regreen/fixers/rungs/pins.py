"""Pins that no longer hold: a version that is gone, that no longer builds, or that contradicts another."""

from __future__ import annotations

import re
from collections.abc import Sequence

from packaging.utils import canonicalize_name

_NAME = r"([A-Za-z0-9][\w.-]{0,80}?)"
_BLAMED = (
    re.compile(
        rf"The user requested (?:\(constraint\) )?{_NAME}(?:\[[^\]]{{0,80}}\])?(?:[=<>~!]=?|\s|$)"
    ),
    re.compile(
        rf"(?:No matching distribution found for|satisfies the requirement) {_NAME}(?:\[[^\]]{{0,80}}\])?[=<>~!]"
    ),
    re.compile(rf"Failed building wheel for {_NAME}\s"),
    re.compile(rf"Failed to build '?{_NAME}(?:[=' ]|$)", re.MULTILINE),
    re.compile(rf"Failed to build `{_NAME}=="),
    re.compile(rf"Cannot install (?:[^\n]{{0,200}}? and )?{_NAME}=="),
    re.compile(rf"there is no version of {_NAME}[=<>~]"),
    re.compile(rf"╰─> {_NAME}\s*$", re.MULTILINE),
)
_COLLECTING = re.compile(rf"^\s*Collecting {_NAME}[=<>~]", re.MULTILINE)
_WORDS = {"See", "above", "some", "installable", "from", "build", "wheel", "wheels", "one"}
MARK = ".regreen-versions"
FREEZE = f"python -m pip list --format=freeze > {MARK} 2>/dev/null || uv pip freeze > {MARK}"


def blamed(output: str) -> tuple[str, ...]:
    """The distributions that the installer complains about, canonical, each once."""
    found = [match[1].rstrip(".") for pattern in _BLAMED for match in pattern.finditer(output)]
    if "subprocess-exited-with-error" in output and (collected := _COLLECTING.findall(output)):
        found.append(collected[-1])
    return tuple(dict.fromkeys(canonicalize_name(name) for name in found if name not in _WORDS))


def pinned_in(text: str, name: str) -> re.Match[str] | None:
    """Where a manifest pins the distribution to one version."""
    loose = re.sub(r"-", r"[-_.]+", re.escape(name).replace(r"\-", "-"))
    return re.search(
        rf"(?im)(?P<head>(?:^|[\"'\s,]){loose}(?:\[[^\]\n]{{0,80}}\])?\s*)(?P<spec>={{2,3}}\s*[\w.!+*-]+)",
        text,
    )


def loosened(text: str, name: str) -> str | None:
    """The manifest with that pin taken away; None where it has none."""
    match = pinned_in(text, name)
    return None if match is None else text[: match.start("spec")] + text[match.end("spec") :]


def repinned(text: str, name: str, version: str) -> str | None:
    """The manifest with that pin moved to `version`."""
    match = pinned_in(text, name)
    return (
        None
        if match is None
        else f"{text[: match.start('spec')]}=={version}{text[match.end('spec') :]}"
    )


def version_in(frozen: str, name: str) -> str | None:
    """The version that an installer's list names for the distribution."""
    for line in frozen.splitlines():
        found, _, version = line.strip().partition("==")
        if canonicalize_name(found) == name and re.fullmatch(r"[\w.!+-]{1,60}", version):
            return version
    return None


def manifests(files: Sequence[str]) -> list[str]:
    """The files where a pin may stand."""
    return [
        path
        for path in files
        if path.rsplit("/", 1)[-1] in {"pyproject.toml", "setup.cfg", "setup.py", "Pipfile"}
        or (path.endswith((".txt", ".in")) and re.search(r"require|constraint|reqs", path))
    ][:20]
