"""Reads a setup command: which files of the tree its result depends on. In doubt, all of them.

The answer keys cached environments. Too much only costs time; too little would run a commit in the environment
of another, so every command that is not known here counts as depending on everything.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Sequence

from regreen.codebase.setup_needs import (
    ANYWHERE,
    EVERYTHING,
    NOTHING,
    Needs,
    Read,
    editable,
    patterns,
)
from regreen.codebase.setup_pip import of_pip
from regreen.codebase.setup_shell import simple_commands, tool_of, without_prefix


def needs(setup: str, paths: Collection[str], read: Read | None = None) -> Needs:
    """What a shell command depends on, in a tree that holds `paths`."""
    found = NOTHING
    for argv in simple_commands(setup):
        if argv is None:
            return EVERYTHING
        found |= _of_command(argv, paths, read)
        if found.everything:
            return EVERYTHING
    return found


def _of_command(words: Sequence[str], paths: Collection[str], read: Read | None) -> Needs:
    name, arguments = tool_of(without_prefix(words))
    match name:
        case "pip":
            found = of_pip(arguments, read)
        case "python":
            found = _of_python(arguments, read)
        case "npm" | "yarn" | "pnpm":
            found = _of_node(arguments, paths, read)
        case "uv" | "poetry" | "pdm" | "pipenv":
            found = _of_project_tool(arguments, read)
        case "bundle" | "cargo" | "go":
            found = _of_fetcher(name, arguments)
        case "cd":
            found = NOTHING if list(arguments) in ([], ["."], ["/work"]) else EVERYTHING
        case _ if name in _HARMLESS and not any("./" in word for word in arguments):
            found = NOTHING
        case _:
            found = EVERYTHING
    return found


def _of_project_tool(arguments: Sequence[str], read: Read | None) -> Needs:
    verb = arguments[0] if arguments else ""
    if verb not in {"install", "sync"} or "--no-editable" in arguments:
        return EVERYTHING
    return editable("", read)


def _of_fetcher(name: str, arguments: Sequence[str]) -> Needs:
    """Tools that download what a manifest names, and build nothing of the tree."""
    verbs, patterns = _FETCHERS[name]
    return Needs(patterns=patterns) if tuple(arguments) in verbs else EVERYTHING


def _of_python(arguments: Sequence[str], read: Read | None) -> Needs:
    if list(arguments[:2]) == ["setup.py", "develop"]:
        return editable("", read)
    return NOTHING if list(arguments) in (["-V"], ["--version"]) else EVERYTHING


_HARMLESS = frozenset({
    "true", ":", "echo", "printf", "set", "export", "unset", "umask", "ulimit", "mkdir", "apt-get", "apt", "apk",
    "dnf", "yum", "pipx", "rustup", "ensurepip", "venv", "virtualenv", "date", "pwd", "uname", "which", "type",
    "sleep", "exit",
})  # fmt: skip


_FETCHERS: dict[str, tuple[frozenset[tuple[str, ...]], frozenset[re.Pattern[str]]]] = {
    "bundle": (
        frozenset({(), ("install",)}),
        patterns(
            ANYWHERE + r"Gemfile(\.lock)?",
            ANYWHERE + r"[^/]*\.gemspec",
            ANYWHERE + r"version\.rb",
        ),
    ),
    "cargo": (
        frozenset({("fetch",), ("fetch", "--locked")}),
        patterns(
            ANYWHERE + r"Cargo\.(toml|lock)",
            r"\.cargo/.*",
            ANYWHERE + r"(src/)?(lib|main)\.rs",
        ),
    ),
    "go": (
        frozenset({("mod", "download")}),
        patterns(ANYWHERE + r"go\.(mod|sum|work|work\.sum)"),
    ),
}


_NODE = patterns(
    ANYWHERE
    + r"(package\.json|package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|bun\.lockb?)",
    ANYWHERE + r"(pnpm-workspace\.yaml|\.npmrc|\.yarnrc(\.yml)?|\.pnpmfile\.c?js|\.nvmrc)",
    r"\.yarn/.*",
)
_NODE_SCRIPTS = re.compile(r'"(?:pre|post)?(?:install|prepare)"\s*:|"file:')


def _of_node(arguments: Sequence[str], paths: Collection[str], read: Read | None) -> Needs:
    verb = next((word for word in arguments if not word.startswith("-")), "install")
    if verb not in {"install", "i", "ci", "add"}:
        return NOTHING if verb in {"config", "cache", "set"} else EVERYTHING
    if read is not None:
        for path in paths:
            if posixpath.basename(path) == "package.json":
                text = (read(path) or b"").decode("utf-8", errors="replace")
                if _NODE_SCRIPTS.search(text):
                    return EVERYTHING
    return Needs(patterns=_NODE)
