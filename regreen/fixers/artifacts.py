"""Artifacts between jobs: what one job uploads and another downloads, made here by running the first job before."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace

from regreen.fixers import driver
from regreen.fixers.job_plan import JobPlan, Step
from regreen.fixers.runtime_shell import NotAtRunTime

_BASH = "bash --noprofile --norc -eo pipefail {0}"
STORE = "/env/artifacts"
_BUILDS_PACKAGES = "hynek/build-and-inspect-python-package"


def uploads(job: JobPlan) -> dict[str, int]:
    """The artifacts that a job leaves, by name, with the number of the step that does it."""
    found: dict[str, int] = {}
    for step in job.steps:
        action = step.uses.split("@", 1)[0].lower()
        if action == "actions/upload-artifact":
            found[step.inputs.get("name") or "artifact"] = step.number
        elif action == _BUILDS_PACKAGES:
            found[f"Packages{step.inputs.get('upload-name-suffix', '')}"] = step.number
    return found


def producing(job: JobPlan, artifact: str) -> str | None:
    """A script that runs a job up to its upload on a copy of the tree, and puts the tree back; None where it cannot."""
    number = uploads(job).get(artifact)
    standing = [
        one for one in job.unsupported if one.step is None or number is None or one.step <= number
    ]
    if number is None or standing:
        return None
    steps = [_storing(step) for step in job.steps if step.number <= number]
    try:
        inner = driver.script(steps)
    except NotAtRunTime:
        return None
    mark = f"RG_JOB_{re.sub(r'[^A-Za-z0-9]', '_', job.id)}"
    return "\n".join([
        'rg_tree=$(mktemp -d)',
        'cp -a . "$rg_tree"',
        'mkdir -p "$HOME/.ci/jobs"',
        f"cat > \"$HOME/.ci/jobs/{mark}.sh\" <<'{mark}'",
        inner.rstrip("\n"),
        mark,
        f'RG_BASE="$HOME/.ci/jobs/{mark}" bash "$HOME/.ci/jobs/{mark}.sh"',
        "find . -mindepth 1 -maxdepth 1 -exec rm -rf {} +",
        'cp -a "$rg_tree"/. .',
        'rm -rf "$rg_tree"',
    ])  # fmt: skip


def download(inputs: Mapping[str, str], artifact: str) -> str:
    """A script that does what the download does."""
    path = shlex.quote(inputs.get("path", "").strip() or ".")
    return f"mkdir -p {path}\ncp -a {STORE}/{shlex.quote(artifact)}/. {path}/"


def _storing(step: Step) -> Step:
    """An upload as a copy into the store."""
    if step.uses.split("@", 1)[0].lower() != "actions/upload-artifact":
        return step
    name = step.inputs.get("name") or "artifact"
    patterns = [
        line.strip()
        for line in step.inputs.get("path", "").splitlines()
        if line.strip() and not line.startswith("!")
    ]
    return replace(step, kind="setup", run=_copy(patterns, name), shell=_BASH)


def _copy(patterns: list[str], name: str) -> str:
    bases = [_base(pattern) for pattern in patterns]
    root = bases[0] if len(set(bases)) == 1 else posixpath.commonpath(bases) if bases else "."
    where = f"{STORE}/{shlex.quote(name)}"
    lines = [f"mkdir -p {where}", "shopt -s globstar nullglob", f"cd {shlex.quote(root or '.')}"]
    for pattern in patterns:
        relative = posixpath.relpath(pattern.rstrip("/"), root or ".")
        lines.append(
            f'for rg_file in {_globbed(relative)}; do cp -a --parents "$rg_file" {where}/; done'
        )
    return "\n".join(lines)


def _globbed(pattern: str) -> str:
    """The pattern quoted but for its wildcards."""
    return "".join(
        part if part in {"*", "**", "?"} else shlex.quote(part)
        for part in re.split(r"(\*\*|\*|\?)", pattern)
        if part
    )


def _base(pattern: str) -> str:
    """The part of a path before its first wildcard; a file's directory is its root, a directory is its own."""
    parts = pattern.rstrip("/").split("/")
    plain: list[str] = []
    for part in parts:
        if re.search(r"[*?\[]", part):
            return "/".join(plain) or "."
        plain.append(part)
    if pattern.endswith("/") or "." not in parts[-1].lstrip("."):
        return "/".join(plain) or "."
    return "/".join(plain[:-1]) or "."
