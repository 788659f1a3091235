"""Lock files and snapshots that are out of step with what they are made from: which tool writes them anew."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator

from regreen.codebase.packages import look_alike
from regreen.fixers.rungs.compiled import recompiled
from regreen.fixers.rungs.task_runners import Read
from regreen.fixers.rungs.tools import Remedy
from regreen.fixers.shell_words import simple_commands, split_runner

POETRY_LOCK = "poetry lock --no-update 2>/dev/null || poetry lock"
_STALE: tuple[tuple[re.Pattern[str], str, str, str], ...] = (
    (
        re.compile(r"lockfile at `?uv\.lock`? needs to be updated|The lockfile .{0,40}needs to be updated|Unable to find lockfile at `uv\.lock`"),
        "uv.lock", "uv lock", "uv.lock does not match pyproject.toml",
    ),
    (
        re.compile(r"pyproject\.toml changed significantly since poetry\.lock|poetry\.lock is not (?:consistent|up to date)"),
        "poetry.lock", POETRY_LOCK, "poetry.lock does not match pyproject.toml",
    ),
    (re.compile(r"pdm\.lock|[Ll]ock ?file (?:hash doesn't match|doesn't satisfy the project)"), "pdm.lock", "pdm lock --update-reuse", "pdm.lock does not match pyproject.toml"),
    (re.compile(r"Pipfile\.lock \([0-9a-f]+\) out of date|Pipfile\.lock out of date"), "Pipfile.lock", "pipenv lock", "Pipfile.lock does not match Pipfile"),
    (
        re.compile(r"`?npm ci`? can only install packages when your package\.json and package-lock\.json|npm (?:ERR!|error) (?:code EUSAGE|cipm can only install)|package-lock\.json.{0,60}are not in sync|npm (?:ERR!|error) aliases: clean-install"),
        "package-lock.json", "npm install --package-lock-only --ignore-scripts --no-audit --no-fund", "package-lock.json does not match package.json",
    ),
    (re.compile(r"ERR_PNPM_OUTDATED_LOCKFILE"), "pnpm-lock.yaml", "pnpm install --lockfile-only --ignore-scripts", "pnpm-lock.yaml does not match package.json"),
    (re.compile(r"lockfile needs to be updated, but yarn was run with `--frozen-lockfile`|YN0028"), "yarn.lock", "yarn install --mode=update-lockfile 2>/dev/null || yarn install --ignore-scripts", "yarn.lock does not match package.json"),
    (re.compile(r"lock file .{0,120}Cargo\.lock needs to be updated but --locked|cannot update the lock file"), "Cargo.lock", "cargo update --workspace", "Cargo.lock does not match Cargo.toml"),
    (re.compile(r"missing go\.sum entry|go\.sum file is missing|updates to go\.(?:mod|sum) needed|go: updating go\.mod|run 'go mod tidy'"), "go.sum", "go mod tidy", "go.mod and go.sum do not match the imports"),
    (re.compile(r"your lockfile.{0,80}frozen|lockfile (?:is|was) not up.to.date", re.IGNORECASE), "uv.lock", "uv lock", "the lock file does not match its manifest"),
)  # fmt: skip
_SNAPSHOT: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"\d+ snapshots? failed\.|snapshot report summary", re.IGNORECASE),
        "--snapshot-update",
    ),
    (re.compile(r"inline-snapshot|--inline-snapshot=|inline_snapshot"), "--inline-snapshot=fix"),
    (re.compile(r"FILES DIFFER|data_regression|file_regression|--force-regen"), "--force-regen"),
)
# Golden files of a project's own: the message of the failure says how to write them anew.
_OFFERED = re.compile(
    r"(?i:\bwith|\buse|\bpass|\badd|\brun|\busing|\bpytest) [`'\"]?(?:pytest )?(--[\w-]{0,30}(?:update|regen|accept|record|bless|overwrite|rewrite|refresh|snapshot)[\w-]{0,30}(?:=\w+)?)"
)
_VARIABLE = re.compile(
    r"(?i:\bset|\bwith|\bexport|\brun|\buse) [`'\"]?([A-Z][A-Z0-9_]{0,30}(?:UPDATE|REGEN|ACCEPT|RECORD|BLESS|OVERWRITE|REWRITE|REFRESH)[A-Z0-9_]{0,30}|(?:UPDATE|REGEN|ACCEPT|RECORD|BLESS|OVERWRITE|REWRITE|REFRESH)[A-Z0-9_]{0,30})(?:=(\w{1,10}))?"
)
_UNHASHED = re.compile(
    r"In --require-hashes mode, all requirements must have their versions pinned"
)
_JEST = re.compile(
    r"obsolete snapshot|\d+ snapshots? failed from|› \d+ snapshots? failed|toMatch(?:Inline)?Snapshot"
)
_VITEST = re.compile(r"Snapshots\s+\d+ failed|Snapshot `[^`\n]{1,200}` mismatched")
_ANEW = "snapshots were written anew: look whether the new output is the wanted one"
_NODE_MODULE = re.compile(
    r"Cannot find (?:module|package) '((?:@[\w.-]{1,60}/)?[A-Za-z0-9][\w.-]{0,80})(?:/[^'\n]{0,200})?'"
)
_NODE_OWN = frozenset(
    [
        "assert",
        "buffer",
        "child_process",
        "cluster",
        "console",
        "crypto",
        "dgram",
        "dns",
        "events",
        "fs",
        "http",
        "http2",
        "https",
        "module",
        "net",
        "os",
        "path",
        "perf_hooks",
        "process",
        "querystring",
        "readline",
        "stream",
        "string_decoder",
        "timers",
        "tls",
        "tty",
        "url",
        "util",
        "v8",
        "vm",
        "worker_threads",
        "zlib",
        "test",
    ]
)
_GO_GET = re.compile(r"no required module provides package [\w./~-]{1,200}|to add it:\s+go get ")


def lock_remedies(
    command: str,
    output: str,
    files: Collection[str],
    setup: str = "",
    *,
    folder: str = "",
    read: Read = lambda path: None,  # noqa: ARG005
) -> Iterator[Remedy]:
    """Regenerations that the failure asks for; they need the network, so they run in the preparation phase."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", output)
    for pattern, lock, script, cause in _STALE:
        if pattern.search(text):
            for place in _folders(lock, files, f"{setup}\n{command}"):
                there = f"cd {shlex.quote(place)}\n" if place else ""
                whole = there + as_called(script, setup)
                yield Remedy(lock, whole, cause, network=True, writes=(f"{place}{lock}",))
    if _UNHASHED.search(text):
        yield from recompiled(files, read, f"{setup}\n{command}")
    for words in simple_commands(command):
        _, call = split_runner(words)
        if call[:1] == ["pip-compile"]:
            kept = [word for word in call if word not in {"--check", "--dry-run", "-n"}]
            yield Remedy(
                "pip-compile",
                shlex.join(kept),
                "the compiled requirements do not match their source",
                network=True,
            )
        if call[:2] == ["uv", "lock"] and {"--check", "--locked"} & set(call):
            yield Remedy(
                "uv.lock", "uv lock", "uv.lock does not match pyproject.toml", network=True
            )
    yield from _declared(text, files)
    yield from _snapshots(command, text, folder)


def as_called(script: str, setup: str) -> str:
    """The lock's own tool, called the way the setup calls it: `npx --yes pnpm@9 install`."""
    tool = script.split(maxsplit=1)[0]
    called = re.search(rf"((?:npx (?:--?\w+ )*|corepack ){tool}(?:@[\w.^~-]+)?) ", setup)
    return script.replace(f"{tool} ", f"{called[1]} ", 1) if called else script


def _declared(output: str, files: Collection[str]) -> Iterator[Remedy]:
    """Modules that are imported and not declared, where the package manager itself adds them."""
    if "package.json" in files:
        for name in dict.fromkeys(_NODE_MODULE.findall(output)):
            if name in _NODE_OWN or look_alike("npm", name) is not None:
                continue
            lock = "package-lock.json" in files
            script = f"npm install {shlex.quote(name)} {'' if lock else '--no-package-lock '}--ignore-scripts --no-audit --no-fund"
            yield Remedy(
                name,
                script,
                f"{name} is imported but package.json does not declare it",
                network=True,
                writes=("package.json",),
            )
    if "go.mod" in files and _GO_GET.search(output):
        cause = "a package is imported that go.mod does not require"
        yield Remedy("go.mod", "go mod tidy", cause, network=True, writes=("go.mod", "go.sum"))


def _snapshots(command: str, output: str, folder: str) -> Iterator[Remedy]:
    cause = "the stored snapshots differ from what the code gives"
    if "pytest" in command or "pytest" in output:
        known = [flag for pattern, flag in _SNAPSHOT if pattern.search(output)]
        for flag in dict.fromkeys([*known, *_OFFERED.findall(output)]):
            yield _with_flag(flag, command, cause)
    if variable := _VARIABLE.search(output):
        script = f"export {variable[1]}={variable[2] or 1}\n{command}"
        yield Remedy("snapshots", script, cause, approval=_ANEW, untracked=True)
    there = f"cd {shlex.quote(folder)}\n" if folder else ""
    if _VITEST.search(output):
        script = f"{there}npx --no-install vitest run -u"
        yield Remedy("snapshots", script, cause, approval=_ANEW)
    elif _JEST.search(output):
        script = f"{there}npx --no-install jest --ci=false -u"
        yield Remedy("snapshots", script, cause, approval=_ANEW)


def _with_flag(flag: str, command: str, cause: str) -> Remedy:
    script = f'export PYTEST_ADDOPTS="$PYTEST_ADDOPTS {flag}"\n{command}'
    return Remedy("snapshots", script, cause, approval=_ANEW, title=f"the command with {flag}")


def _folders(lock: str, files: Collection[str], said: str) -> list[str]:
    """Where such a lock lies ("web/", or nothing for the root): those that are spoken of, or else all."""
    if lock == "go.sum" and "go.mod" in files:
        return [""]
    found = [
        path.removesuffix(lock)
        for path in sorted(files, key=lambda path: (path.count("/"), path))
        if path == lock or path.endswith(f"/{lock}")
    ]
    named = [
        one
        for one in found
        if one and re.search(rf"(?<![\w/]){re.escape(one.rstrip('/'))}\b", said)
    ]
    return (named or found)[:3]
