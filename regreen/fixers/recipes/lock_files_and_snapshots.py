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
from regreen.languages.python.dependencies import make_compile_script, read_heading_command
from regreen.packages.popular_names import look_alike
from regreen.shell.called_scripts import use_setup_call
from regreen.shell.fixing_tools import Remedy
from regreen.shell.parse import find_commands
from regreen.shell.tools import split_runner

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
    if any(runner in f"{command}\n{output}" for runner in _load_table()["snapshot_runners"]):
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
