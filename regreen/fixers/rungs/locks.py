"""Lock files and snapshots that are out of step with what they are made from: which tool writes them anew."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator

from regreen.codebase.packages import look_alike
from regreen.fixers.rungs.tools import Remedy, simple_commands, split_runner

_STALE: tuple[tuple[re.Pattern[str], str, str, str], ...] = (
    (
        re.compile(r"lockfile at `?uv\.lock`? needs to be updated|The lockfile .{0,40}needs to be updated|Unable to find lockfile at `uv\.lock`"),
        "uv.lock", "uv lock", "uv.lock does not match pyproject.toml",
    ),
    (
        re.compile(r"pyproject\.toml changed significantly since poetry\.lock|poetry\.lock is not (?:consistent|up to date)"),
        "poetry.lock", "poetry lock --no-update 2>/dev/null || poetry lock", "poetry.lock does not match pyproject.toml",
    ),
    (re.compile(r"pdm\.lock|Lock file hash doesn't match"), "pdm.lock", "pdm lock --update-reuse", "pdm.lock does not match pyproject.toml"),
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
    command: str, output: str, files: Collection[str], setup: str = ""
) -> Iterator[Remedy]:
    """Regenerations that the failure asks for; they need the network, so they run in the preparation phase."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", output)
    for pattern, lock, script, cause in _STALE:
        if pattern.search(text) and (_present(lock, files) or lock == "go.sum"):
            yield Remedy(lock, _as_called(script, setup), cause, network=True, writes=(lock,))
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
    yield from _snapshots(command, text)


def _as_called(script: str, setup: str) -> str:
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


def _snapshots(command: str, output: str) -> Iterator[Remedy]:
    cause = "the stored snapshots differ from what the code gives"
    if "pytest" in command or "pytest" in output:
        for pattern, flag in _SNAPSHOT:
            if pattern.search(output):
                script = f'export PYTEST_ADDOPTS="$PYTEST_ADDOPTS {flag}"\n{command}'
                yield Remedy("snapshots", script, cause, approval=_ANEW)
    if _VITEST.search(output):
        yield Remedy("snapshots", "npx --no-install vitest run -u", cause, approval=_ANEW)
    elif _JEST.search(output):
        script = "npx --no-install jest --ci=false -u"
        yield Remedy("snapshots", script, cause, approval=_ANEW)


def _present(lock: str, files: Collection[str]) -> bool:
    return any(path == lock or path.endswith(f"/{lock}") for path in files)
