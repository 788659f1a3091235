"""Finds stale lock files and snapshots, and the commands that regenerate them."""

from __future__ import annotations

import posixpath
import re
import shlex
import tomllib
from collections.abc import Collection, Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from regreen.domain.environments import ReadText
from regreen.packages.popular_names import look_alike
from regreen.shell.fixing_tools import Remedy
from regreen.shell.parse import find_commands
from regreen.shell.tools import split_runner

POETRY_LOCK = "poetry lock --no-update 2>/dev/null || poetry lock"
# Golden files of a project's own: the message of the failure says how to regenerate them.
_OFFERED_FLAG = re.compile(
    r"(?i:\bwith|\buse|\bpass|\badd|\brun|\busing|\bpytest) [`'\"]?(?:pytest )?(--[\w-]{0,30}(?:update|regen|accept|record|bless|overwrite|rewrite|refresh|snapshot)[\w-]{0,30}(?:=\w+)?)"
)
_OFFERED_VARIABLE = re.compile(
    r"(?i:\bset|\bwith|\bexport|\brun|\buse) [`'\"]?([A-Z][A-Z0-9_]{0,30}(?:UPDATE|REGEN|ACCEPT|RECORD|BLESS|OVERWRITE|REWRITE|REFRESH)[A-Z0-9_]{0,30}|(?:UPDATE|REGEN|ACCEPT|RECORD|BLESS|OVERWRITE|REWRITE|REFRESH)[A-Z0-9_]{0,30})(?:=(\w{1,10}))?"
)
_UNHASHED_REQUIREMENT = re.compile(
    r"In --require-hashes mode, all requirements must have their versions pinned"
)
_JEST_SNAPSHOT = re.compile(
    r"obsolete snapshot|\d snapshots? failed from|› \d{1,9} snapshots? failed|toMatch(?:Inline)?Snapshot"
)
_VITEST_SNAPSHOT = re.compile(r"Snapshots\s+\d+ failed|Snapshot `[^`\n]{1,200}` mismatched")
_SNAPSHOT_APPROVAL = "snapshots were written anew: look whether the new output is the wanted one"
_NODE_MODULE = re.compile(
    r"Cannot find (?:module|package) '((?:@[\w.-]{1,60}/)?[A-Za-z0-9][\w.-]{0,80})(?:/[^'\n]{0,200})?'"
)
_GO_GET = re.compile(r"no required module provides package [\w./~-]{1,200}|to add it:\s+go get ")


@cache
def _load_table() -> dict[str, Any]:
    text = (files("regreen.fixers") / "recipes/stale_files.toml").read_text()
    return tomllib.loads(text)


@cache
def _stale_locks() -> list[tuple[re.Pattern[str], str, str, str]]:
    """Each row: what a tool prints, the lock file, the script that regenerates it, and the cause in words."""
    rows = _load_table()["stale_lock"]
    return [(re.compile(row["pattern"]), row["lock"], row["script"], row["cause"]) for row in rows]


@cache
def _snapshot_flags() -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(row["pattern"]), row["flag"]) for row in _load_table()["snapshot"]]


def make_lock_remedies(
    command: str,
    output: str,
    paths: Collection[str],
    setup: str = "",
    *,
    folder: str = "",
    read: ReadText = lambda path: None,  # noqa: ARG005
) -> Iterator[Remedy]:
    """The regenerations that the failure asks for; they need the network, so they run in the setup phase."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", output)
    for pattern, lock, script, cause in _stale_locks():
        if pattern.search(text):
            for place in _find_lock_folders(lock, paths, f"{setup}\n{command}"):
                there = f"cd {shlex.quote(place)}\n" if place else ""
                whole = there + use_setup_call(script, setup)
                yield Remedy(lock, whole, cause, network=True, writes=(f"{place}{lock}",))
    if _UNHASHED_REQUIREMENT.search(text):
        yield from make_recompile_remedies(paths, read, f"{setup}\n{command}")
    for words in (found.arguments for found in find_commands(command)):
        _, call = split_runner(words)
        if call[:1] == ["pip-compile"]:
            arguments = [word for word in call if word not in {"--check", "--dry-run", "-n"}]
            yield Remedy(
                "pip-compile",
                shlex.join(arguments),
                "the compiled requirements do not match their source",
                network=True,
            )
        if call[:2] == ["uv", "lock"] and {"--check", "--locked"} & set(call):
            yield Remedy(
                "uv.lock", "uv lock", "uv.lock does not match pyproject.toml", network=True
            )
    yield from _add_undeclared_modules(text, paths)
    yield from _make_snapshot_remedies(command, text, folder)


def use_setup_call(script: str, setup: str) -> str:
    """The script with its tool called as the setup calls it: `npx --yes pnpm@9 install`."""
    tool = script.split(maxsplit=1)[0]
    called = re.search(rf"((?:npx (?:--?\w+ ){{0,9}}|corepack ){tool}(?:@[\w.^~-]+)?) ", setup)
    return script.replace(f"{tool} ", f"{called[1]} ", 1) if called else script


def _add_undeclared_modules(output: str, paths: Collection[str]) -> Iterator[Remedy]:
    """Modules that are imported and not declared, where the package manager itself adds them."""
    if "package.json" in paths:
        for name in dict.fromkeys(_NODE_MODULE.findall(output)):
            if (
                name in _load_table()["node"]["builtin_modules"]
                or look_alike("npm", name) is not None
            ):
                continue
            lock = "package-lock.json" in paths
            script = f"npm install {shlex.quote(name)} {'' if lock else '--no-package-lock '}--ignore-scripts --no-audit --no-fund"
            yield Remedy(
                name,
                script,
                f"{name} is imported but package.json does not declare it",
                network=True,
                writes=("package.json",),
            )
    if "go.mod" in paths and _GO_GET.search(output):
        cause = "a package is imported that go.mod does not require"
        yield Remedy("go.mod", "go mod tidy", cause, network=True, writes=("go.mod", "go.sum"))


def _make_snapshot_remedies(command: str, output: str, folder: str) -> Iterator[Remedy]:
    cause = "the stored snapshots differ from what the code gives"
    if "pytest" in command or "pytest" in output:
        known = [flag for pattern, flag in _snapshot_flags() if pattern.search(output)]
        for flag in dict.fromkeys([*known, *_OFFERED_FLAG.findall(output)]):
            yield _remedy_with_flag(flag, command, cause)
    if variable := _OFFERED_VARIABLE.search(output):
        script = f"export {variable[1]}={variable[2] or 1}\n{command}"
        yield Remedy("snapshots", script, cause, approval=_SNAPSHOT_APPROVAL, untracked=True)
    there = f"cd {shlex.quote(folder)}\n" if folder else ""
    if _VITEST_SNAPSHOT.search(output):
        script = f"{there}npx --no-install vitest run -u"
        yield Remedy("snapshots", script, cause, approval=_SNAPSHOT_APPROVAL)
    elif _JEST_SNAPSHOT.search(output):
        script = f"{there}npx --no-install jest --ci=false -u"
        yield Remedy("snapshots", script, cause, approval=_SNAPSHOT_APPROVAL)


def _remedy_with_flag(flag: str, command: str, cause: str) -> Remedy:
    script = f'export PYTEST_ADDOPTS="$PYTEST_ADDOPTS {flag}"\n{command}'
    return Remedy(
        "snapshots", script, cause, approval=_SNAPSHOT_APPROVAL, title=f"the command with {flag}"
    )


def _find_lock_folders(lock: str, paths: Collection[str], commands: str) -> list[str]:
    """The folders of such a lock ("web/", or "" for the root): those that the commands name, or else all."""
    if lock == "go.sum" and "go.mod" in paths:
        return [""]
    found = [
        path.removesuffix(lock)
        for path in sorted(paths, key=lambda path: (path.count("/"), path))
        if path == lock or path.endswith(f"/{lock}")
    ]
    named = [
        place
        for place in found
        if place and re.search(rf"(?<![\w/]){re.escape(place.rstrip('/'))}\b", commands)
    ]
    return (named or found)[:3]


# Requirements that pip-compile or uv compiled: the command in their heading regenerates them.

_HEADING_COMMAND = re.compile(
    r"^#[ \t]{1,8}((?:uv pip compile|pip-compile)\b[^\n]{0,400})$", re.MULTILINE
)
_VENV_PATH = "/tmp/regreen-compile"  # noqa: S108 - inside the box
_FORBIDDEN_OPTIONS = ("--index-url", "--extra-index-url", "--find-links", "--trusted-host", "--config", "--upgrade", "-i", "-f", "-U")  # fmt: skip


def make_recompile_remedies(
    paths: Collection[str], read: ReadText, commands: str = ""
) -> Iterator[Remedy]:
    """Remedies that recompile requirements; those that `commands` (setup and command) name first."""
    texts = [
        path
        for path in paths
        if path.endswith(".txt") and posixpath.basename(path) != "LICENSE.txt"
    ]
    for path in sorted(texts, key=lambda path: (path not in commands, path))[:40]:
        script = make_compile_script(path, read(path) or "")
        if script:
            cause = f"{path} is not what its source comes to"
            yield Remedy(
                "pip-compile",
                script,
                cause,
                network=True,
                writes=(path,),
                title=read_heading_command(read(path) or ""),
            )


def read_heading_command(text: str) -> str:
    """The command in the heading of a compiled file; empty if there is none."""
    match = _HEADING_COMMAND.search(text[:2000])
    return match[1].strip() if match else ""


def find_source_file(path: str, text: str, paths: Collection[str]) -> str | None:
    """The source of a compiled file; None if it has none, or several."""
    words = _split_command(read_heading_command(text))
    folder = posixpath.dirname(path)
    named = [
        word for word in words if word.endswith((".in", "pyproject.toml", "setup.py", "setup.cfg"))
    ]
    for name in named if len(named) == 1 else ():
        for place in (name, posixpath.join(folder, posixpath.basename(name))):
            if place in paths:
                return place
    return None


def make_compile_script(path: str, text: str) -> str:
    """A script that recompiles the file with its tool in a new environment; empty if it was not compiled."""
    words = _split_command(read_heading_command(text))
    if not words or any(word.partition("=")[0] in _FORBIDDEN_OPTIONS for word in words):
        return ""
    package = "uv" if words[0] == "uv" else "pip-tools"
    folder, name = posixpath.split(path)
    sources = [word for word in words if word.endswith(".in")]
    inside = bool(folder and sources and "/" not in sources[0])  # it was compiled in its own folder
    is_default = words[0] != "uv" and [f"{source[:-3]}.txt" for source in sources] == [name]
    if not is_default and not any(word.startswith(("-o", "--output-file")) for word in words):
        words += ["--output-file", name if inside else path]
    there = f"cd {shlex.quote(folder)}\n" if inside else ""
    return (
        f"unset PIP_CONSTRAINT UV_CONSTRAINT\npython -m venv {_VENV_PATH} && {_VENV_PATH}/bin/pip install -q {package} || exit 1\n"
        f"{there}PATH={_VENV_PATH}/bin:$PATH {shlex.join(words)}"
    )


def _split_command(line: str) -> list[str]:
    """The words of the command; none if it contains shell syntax."""
    if not re.fullmatch(r"[\w ./=,:@^~<>+-]*", line):
        return []
    return line.split()
