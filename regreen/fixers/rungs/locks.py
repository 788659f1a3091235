"""Lock files and snapshots that are out of step with what they are made from: which tool writes them anew."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator

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
        re.compile(r"`?npm ci`? can only install packages when your package\.json and package-lock\.json|npm ERR! (?:code EUSAGE|cipm can only install)|package-lock\.json.{0,60}are not in sync"),
        "package-lock.json", "npm install --package-lock-only --ignore-scripts --no-audit --no-fund", "package-lock.json does not match package.json",
    ),
    (re.compile(r"ERR_PNPM_OUTDATED_LOCKFILE"), "pnpm-lock.yaml", "pnpm install --lockfile-only --ignore-scripts", "pnpm-lock.yaml does not match package.json"),
    (re.compile(r"lockfile needs to be updated, but yarn was run with `--frozen-lockfile`|YN0028"), "yarn.lock", "yarn install --mode=update-lockfile 2>/dev/null || yarn install --ignore-scripts", "yarn.lock does not match package.json"),
    (re.compile(r"lock file .{0,120}Cargo\.lock needs to be updated but --locked|cannot update the lock file"), "Cargo.lock", "cargo update --workspace", "Cargo.lock does not match Cargo.toml"),
    (re.compile(r"missing go\.sum entry|updates to go\.(?:mod|sum) needed|go: updating go\.mod|run 'go mod tidy'"), "go.sum", "go mod tidy", "go.mod and go.sum do not match the imports"),
    (re.compile(r"your lockfile.{0,80}frozen|lockfile (?:is|was) not up.to.date", re.IGNORECASE), "uv.lock", "uv lock", "the lock file does not match its manifest"),
)  # fmt: skip
_SNAPSHOT: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"\d+ snapshots? failed\.|snapshot report summary", re.IGNORECASE),
        "--snapshot-update",
    ),
    (re.compile(r"inline-snapshot|--inline-snapshot="), "--inline-snapshot=fix"),
)


def lock_remedies(command: str, output: str, files: Collection[str]) -> Iterator[Remedy]:
    """Regenerations that the failure asks for; they need the network, so they run in the preparation phase."""
    for pattern, lock, script, cause in _STALE:
        if pattern.search(output) and _present(lock, files):
            yield Remedy(lock, script, cause, network=True)
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
    if "pytest" in command or "pytest" in output:
        for pattern, flag in _SNAPSHOT:
            if pattern.search(output):
                script = f'export PYTEST_ADDOPTS="$PYTEST_ADDOPTS {flag}"\n{command}'
                yield Remedy(
                    "snapshots",
                    script,
                    "the stored snapshots differ from what the code gives",
                    approval="snapshots were written anew: look whether the new output is the wanted one",
                )
    if (
        re.search(r"obsolete snapshot|\d+ snapshots? failed from|› \d+ snapshots? failed", output)
        and "jest" in f"{command}{output}".lower()
    ):
        yield Remedy(
            "snapshots",
            "npx --no-install jest --ci=false -u",
            "the stored snapshots differ from what the code gives",
            approval="snapshots were written anew: look whether the new output is the wanted one",
        )


def _present(lock: str, files: Collection[str]) -> bool:
    return any(path == lock or path.endswith(f"/{lock}") for path in files)
