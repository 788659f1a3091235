"""What a trusted tree already asks for: names from its manifests, words and addresses from where it installs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Self

from regreen.codebase.declared import declared, is_manifest
from regreen.codebase.dependency import plain_address
from regreen.codebase.packages import Ecosystem, normal
from regreen.codebase.requirement_file import text_of
from regreen.codebase.setup_needs import Read

# Where else a repository says what it installs.
_INSTALLS = re.compile(
    r"(?i)(?:\.github/.*\.ya?ml|\.gitlab-ci\.yml|\.circleci/config\.yml|\.travis\.yml|azure-pipelines\.yml"
    r"|(?:[^/]+/){0,2}(?:tox\.ini|noxfile\.py|GNUmakefile|Makefile|justfile|Dockerfile[^/]*|[^/]+\.sh"
    r"|package\.json|\.gitmodules|pip\.conf|uv\.toml|\.npmrc|\.yarnrc|\.yarnrc\.yml|bunfig\.toml|poetry\.toml|\.pre-commit-config\.yaml))"
)
_INSTALL_LINE = re.compile(
    r"(?i)\b(?:install|add|sync|dlx|tool run|npx|uvx|pipx|inject|deps|requires?|index|registry|curl|wget|clone|with)\b|://"
)
# `repository: owner/name` of a checkout in a workflow.
_CHECKED_OUT = re.compile(r"\brepository:[ \t]*[\"']?([\w.-]+/[\w.-]+)")
_INSECURE = re.compile(r"(?i)\b(?:PIP_TRUSTED_HOST|UV_INSECURE_HOST|npm_config_strict_ssl)\b")
_OWN_NAME = re.compile(r"""(?m)^name\s*=\s*["']([\w.-]+)["']""")
_WORD = re.compile(r"[^\s'\"`,;()\[\]<>=!~|&]+")
_ADDRESS = re.compile(r"(?:[a-z]+\+)?[a-z]{2,5}://[^\s'\"`|;)>\]]+")


@dataclass(frozen=True)
class Known:
    """Names by ecosystem, and the words and addresses of commands."""

    names: frozenset[tuple[str, str]] = frozenset()
    words: frozenset[str] = frozenset()
    places: frozenset[str] = frozenset()

    @classmethod
    def of(cls, paths: Collection[str], read: Read, most: int) -> Self:
        """Read the files of a tree that say what it installs, at most so many, those nearest the root first."""
        names: set[tuple[str, str]] = set()
        words: set[str] = set()
        places: set[str] = set()
        chosen = [path for path in paths if is_manifest(path) or _INSTALLS.fullmatch(path)]
        for path in sorted(chosen, key=lambda path: (path.count("/"), path))[:most]:
            text = text_of(read(path) or b"")
            found = declared(path, text)
            names |= {
                (one.ecosystem, normal(one.ecosystem, one.name)) for one in found.dependencies
            }
            places |= {place_of(one.where) for one in found.dependencies if one.where}
            places |= {place_of(plain_address(address)) for address, _ in found.indexes}
            places |= {place_of(address) for address in _ADDRESS.findall(text)}
            if path.startswith(".github/"):
                places |= {f"github.com/{name}".lower() for name in _CHECKED_OUT.findall(text)}
            if path.endswith("pyproject.toml"):  # extras that name their own project
                names |= {("pypi", normal("pypi", name)) for name in _OWN_NAME.findall(text)}
            if _INSTALLS.fullmatch(path):
                words |= set(_INSECURE.findall(text))
                words |= set(_words(text, everywhere=path.endswith("tox.ini")))
        return cls(frozenset(names), frozenset(words), frozenset(places))

    def has_package(self, ecosystem: Ecosystem, name: str) -> bool:
        """Whether the trusted tree asks for this name."""
        plain = normal(ecosystem, name)
        return (ecosystem, plain) in self.names or name in self.words or plain in self.words

    def has_address(self, address: str) -> bool:
        """Whether the trusted tree takes something from there; another revision of it is the same place."""
        return place_of(address) in self.places


def place_of(address: str) -> str:
    """An address without its scheme, revision and fragment."""
    if "://" not in address:
        return (
            address.partition("#")[0].partition("@")[0]
            if not address.startswith("git@")
            else address
        )
    host, path = _parts(address)
    return f"{host}{path.partition('@')[0]}".rstrip("/").removesuffix(".git").lower()


def host_of(address: str) -> str:
    """The host of an address; "" where it has none."""
    return _parts(address)[0].rpartition("@")[2].partition(":")[0].lower()


def _parts(address: str) -> tuple[str, str]:
    """Host and path, of anything that calls itself an address."""
    rest = address.partition("://")[2]
    whole = re.split(r"[?#]", rest, maxsplit=1)[0]
    host, slash, path = whole.partition("/")
    return host, slash + path


def _words(text: str, *, everywhere: bool) -> Iterator[str]:
    for line in text.replace("\\\n", " ").splitlines():
        if everywhere or _INSTALL_LINE.search(line):
            yield from _WORD.findall(line)
