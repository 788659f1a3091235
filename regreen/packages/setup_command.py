"""Determines which files of the tree the result of a setup command depends on; if in doubt, all.

The answer is the key of cached environments. Too many files only cost time; too few would run a commit in the
environment of another, so every unknown command depends on everything.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Sequence

from regreen.packages.requirement_file import files_needed_by_pip
from regreen.packages.setup_inputs import (
    ANY_FOLDER,
    NEEDS_EVERYTHING,
    NEEDS_NOTHING,
    ReadFile,
    SetupInputs,
    compile_patterns,
    editable_needs,
)
from regreen.shell.parse import parse_script
from regreen.shell.tools import resolve_module_program, split_wrappers


def find_needs(setup: str, paths: Collection[str], read: ReadFile | None = None) -> SetupInputs:
    """What a shell command depends on in a tree with `paths`."""
    needs = NEEDS_NOTHING
    script = parse_script(setup)
    if not script.is_plain:
        return NEEDS_EVERYTHING
    for command in script.commands:
        needs |= _command_needs(command.arguments, paths, read)
        if needs.everything:
            return NEEDS_EVERYTHING
    return needs


def _command_needs(
    words: Sequence[str], paths: Collection[str], read: ReadFile | None
) -> SetupInputs:
    name, arguments = resolve_module_program(split_wrappers(words)[1])
    match name:
        case "pip":
            needs = files_needed_by_pip(arguments, read)
        case "python":
            needs = _python_needs(arguments, read)
        case "npm" | "yarn" | "pnpm":
            needs = _node_needs(arguments, paths, read)
        case "uv" | "poetry" | "pdm" | "pipenv":
            needs = _project_tool_needs(arguments, read)
        case "bundle" | "cargo" | "go":
            needs = _fetcher_needs(name, arguments)
        case "cd":
            needs = NEEDS_NOTHING if list(arguments) in ([], ["."], ["/work"]) else NEEDS_EVERYTHING
        case _ if name in _HARMLESS_COMMANDS and not any("./" in word for word in arguments):
            needs = NEEDS_NOTHING
        case _:
            needs = NEEDS_EVERYTHING
    return needs


def _project_tool_needs(arguments: Sequence[str], read: ReadFile | None) -> SetupInputs:
    verb = arguments[0] if arguments else ""
    if verb not in {"install", "sync"} or "--no-editable" in arguments:
        return NEEDS_EVERYTHING
    return editable_needs("", read)


def _fetcher_needs(name: str, arguments: Sequence[str]) -> SetupInputs:
    """Tools that download the packages of a manifest and build nothing of the tree."""
    verbs, patterns = _FETCH_COMMANDS[name]
    return SetupInputs(patterns=patterns) if tuple(arguments) in verbs else NEEDS_EVERYTHING


# Writes the versions of a lock file of Poetry or PDM as constraints. A package that it lists in several versions, each
# for a platform, stays free. It runs in the box at every commit, also under Pythons that have no reader of TOML; what
# a lock may ask for is judged by `python_manifests.read_python_lock`.
WRITE_PINS = (
    "import re, sys; lock, pins = sys.argv[1:]; "
    r"""found = set(re.findall(r"(?m)^name = .([A-Za-z0-9][\w.-]*).\nversion = .([\w.+!-]+).$", open(lock, encoding="utf-8").read())); """
    "names = [name for name, _ in found]; "
    r"""open(pins, "w").writelines(f"{name}=={version}\n" for name, version in found if names.count(name) == 1)"""
)


def _python_needs(arguments: Sequence[str], read: ReadFile | None) -> SetupInputs:
    if list(arguments[:2]) == ["-c", WRITE_PINS]:
        return SetupInputs(paths=frozenset(arguments[2:3]))
    if list(arguments[:2]) == ["setup.py", "develop"]:
        return editable_needs("", read)
    return NEEDS_NOTHING if list(arguments) in (["-V"], ["--version"]) else NEEDS_EVERYTHING


_HARMLESS_COMMANDS = frozenset(
    {
        "true",
        ":",
        "echo",
        "printf",
        "set",
        "export",
        "unset",
        "umask",
        "ulimit",
        "mkdir",
        "apt-get",
        "apt",
        "apk",
        "dnf",
        "yum",
        "pipx",
        "rustup",
        "ensurepip",
        "venv",
        "virtualenv",
        "date",
        "pwd",
        "uname",
        "which",
        "type",
        "sleep",
        "exit",
    }
)


_FETCH_COMMANDS: dict[str, tuple[frozenset[tuple[str, ...]], frozenset[re.Pattern[str]]]] = {
    "bundle": (
        frozenset({(), ("install",)}),
        compile_patterns(
            ANY_FOLDER + r"Gemfile(\.lock)?",
            ANY_FOLDER + r"[^/]{0,255}\.gemspec",
            ANY_FOLDER + r"version\.rb",
        ),
    ),
    "cargo": (
        frozenset({("fetch",), ("fetch", "--locked")}),
        compile_patterns(
            ANY_FOLDER + r"Cargo\.(toml|lock)",
            r"\.cargo/.*",
            ANY_FOLDER + r"(src/)?(lib|main)\.rs",
        ),
    ),
    "go": (
        frozenset({("mod", "download")}),
        compile_patterns(ANY_FOLDER + r"go\.(mod|sum|work|work\.sum)"),
    ),
}


_NODE_INPUTS = compile_patterns(
    ANY_FOLDER
    + r"(package\.json|package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|bun\.lockb?)",
    ANY_FOLDER + r"(pnpm-workspace\.yaml|\.npmrc|\.yarnrc(\.yml)?|\.pnpmfile\.c?js|\.nvmrc)",
    r"\.yarn/.*",
)
_NODE_SCRIPTS = re.compile(r'"(?:pre|post)?(?:install|prepare)"\s*:|"file:')


def _node_needs(
    arguments: Sequence[str], paths: Collection[str], read: ReadFile | None
) -> SetupInputs:
    verb = next((word for word in arguments if not word.startswith("-")), "install")
    if verb not in {"install", "i", "ci", "add"}:
        return NEEDS_NOTHING if verb in {"config", "cache", "set"} else NEEDS_EVERYTHING
    if read is not None:
        for path in paths:
            if posixpath.basename(path) == "package.json":
                text = (read(path) or b"").decode("utf-8", errors="replace")
                if _NODE_SCRIPTS.search(text):
                    return NEEDS_EVERYTHING
    return SetupInputs(patterns=_NODE_INPUTS)
