"""Determines which files of the tree the result of a setup command depends on; if in doubt, all.

The answer is the key of cached environments. Too many files only cost time; too few would run a commit in the
environment of another, so every unknown command depends on everything.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Sequence

from regreen.packages.requirement_file import find_pip_inputs
from regreen.packages.setup_inputs import (
    ALL_INPUTS,
    ANY_FOLDER,
    NO_INPUTS,
    ReadFile,
    SetupInputs,
    compile_patterns,
    find_editable_inputs,
)
from regreen.shell.parse import ShellCommand, parse_script
from regreen.shell.tools import resolve_module_program, split_wrappers


def find_setup_inputs(
    setup: str, paths: Collection[str], read: ReadFile | None = None
) -> SetupInputs:
    """What a shell command depends on in a tree with `paths`."""
    inputs = NO_INPUTS
    script = parse_script(setup)
    if not script.is_plain:
        return ALL_INPUTS
    is_in_place = _ends_in_place(setup, script.commands) and not _imports_tree(paths, read)
    for command in script.commands:
        words = list(command.arguments)
        if is_in_place and words[:3] == ["uv", "pip", "install"]:
            extras = re.fullmatch(r"\.(?:\[[\w,.-]{1,200}\])?", words[-1])
            if extras and words[-2] not in {"-e", "--editable"}:
                words[-1:] = ["-e", "."]
        inputs |= _find_command_inputs(words, paths, read)
        if inputs.everything:
            return ALL_INPUTS
    return inputs


def _ends_in_place(setup: str, commands: Sequence[ShellCommand]) -> bool:
    """Whether a setup is an inferred one that either fails or leaves the project installed in place."""
    calls = [list(command.arguments) for command in commands]
    marks = [at for at, call in enumerate(calls) if call == ["mkdir", UNBUILT_MARK]]
    return (
        IN_PLACE_OR_FAILED in setup
        and len(marks) == 1
        and calls[0] == ["set", "-e"]
        and calls[marks[0] - 1][-3:] == ["--no-deps", "-e", "."]
        and calls[-1][-2:] == ["-e", "."]
    )


def _imports_tree(paths: Collection[str], read: ReadFile | None) -> bool:
    """Whether `setup.py` imports or runs other files of the tree, which may decide what is installed."""
    text = (read("setup.py") or b"").decode("utf-8", "replace") if read else ""
    names = set(re.findall(r"(?m)^[ \t]*(?:from|import)[ \t]+(\w{1,100})", text))
    own = {path.split("/")[0].removesuffix(".py") for path in paths if path.endswith(".py")}
    return (
        bool(names & (own - {"setup"}))
        or re.search(r"\brunpy\b|import_module|__import__", text) is not None
    )


def _find_command_inputs(
    words: Sequence[str], paths: Collection[str], read: ReadFile | None
) -> SetupInputs:
    name, arguments = resolve_module_program(split_wrappers(words)[1])
    match name:
        case "pip":
            inputs = find_pip_inputs(arguments, read)
        case "python":
            inputs = _find_python_inputs(arguments, read)
        case "npm" | "yarn" | "pnpm":
            inputs = _find_node_inputs(arguments, paths, read)
        case "uv" | "poetry" | "pdm" | "pipenv":
            inputs = _find_project_tool_inputs(arguments, read)
        case "bundle" | "cargo" | "go":
            inputs = _find_fetcher_inputs(name, arguments)
        case "cd":
            inputs = NO_INPUTS if list(arguments) in ([], ["."], ["/work"]) else ALL_INPUTS
        case _ if name in _HARMLESS_COMMANDS and not any("./" in word for word in arguments):
            inputs = NO_INPUTS
        case _:
            inputs = ALL_INPUTS
    return inputs


def _find_project_tool_inputs(arguments: Sequence[str], read: ReadFile | None) -> SetupInputs:
    verb = arguments[0] if arguments else ""
    if verb not in {"install", "sync"} or "--no-editable" in arguments:
        return ALL_INPUTS
    return find_editable_inputs("", read)


def _find_fetcher_inputs(name: str, arguments: Sequence[str]) -> SetupInputs:
    """Tools that download the packages of a manifest and build nothing of the tree."""
    verbs, patterns = _FETCH_COMMANDS[name]
    return SetupInputs(patterns=patterns) if tuple(arguments) in verbs else ALL_INPUTS


# Writes the versions of a lock file of Poetry or PDM as constraints. A package that it lists in several versions, each
# for a platform, stays free. It runs in the box at every commit, also under Pythons that have no reader of TOML; what
# a lock may ask for is judged by `python_manifests.read_python_lock`.
WRITE_PINS = (
    "import re, sys; lock, pins = sys.argv[1:]; "
    r"""found = set(re.findall(r"(?m)^name = .([A-Za-z0-9][\w.-]*).\nversion = .([\w.+!-]+).$", open(lock, encoding="utf-8").read())); """
    "names = [name for name, _ in found]; "
    r"""open(pins, "w").writelines(f"{name}=={version}\n" for name, version in found if names.count(name) == 1)"""
)


# Lets Python import from `src`, where the project itself is not installed.
IMPORT_FROM_SRC = 'import os, site; open(site.getsitepackages()[0] + "/regreen-src.pth", "w").write(os.path.abspath("src"))'
# The end of an inferred setup that begins with `set -e`. The last installation in place may fail only if an earlier one
# succeeded; otherwise the command behind it must succeed. So the project is in place, and a copy that uv installed
# before, for its requirements, is gone.
UNBUILT_MARK = "/tmp/unbuilt"  # noqa: S108 - in the box: there where the project could not be built at first
IN_PLACE_OR_FAILED = f" --no-deps -e . || mkdir {UNBUILT_MARK} 2>/dev/null || "


# Writes names as constraints that refuse to build these packages.
WRITE_ONLY_WHEELS = (
    "import sys; rows = [f'--only-binary {name}' for name in sys.argv[2:]]; "
    "print(*rows, sep=chr(10), file=open(sys.argv[1], 'w'))"
)


def _find_python_inputs(arguments: Sequence[str], read: ReadFile | None) -> SetupInputs:
    if list(arguments[:2]) == ["-c", WRITE_PINS]:
        return SetupInputs(paths=frozenset(arguments[2:3]))
    if list(arguments[:2]) in (["-c", WRITE_ONLY_WHEELS], ["-c", IMPORT_FROM_SRC]):
        return NO_INPUTS
    if list(arguments[:2]) == ["setup.py", "develop"]:
        return find_editable_inputs("", read)
    return NO_INPUTS if list(arguments) in (["-V"], ["--version"]) else ALL_INPUTS


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


def _find_node_inputs(
    arguments: Sequence[str], paths: Collection[str], read: ReadFile | None
) -> SetupInputs:
    verb = next((word for word in arguments if not word.startswith("-")), "install")
    if verb not in {"install", "i", "ci", "add"}:
        return NO_INPUTS if verb in {"config", "cache", "set"} else ALL_INPUTS
    if read is not None:
        for path in paths:
            if posixpath.basename(path) == "package.json":
                text = (read(path) or b"").decode("utf-8", errors="replace")
                if _NODE_SCRIPTS.search(text):
                    return ALL_INPUTS
    return SetupInputs(patterns=_NODE_INPUTS)
