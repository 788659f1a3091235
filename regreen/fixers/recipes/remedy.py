"""Runs a remedy in the sandbox and returns the repository's files that it changed."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Set
from dataclasses import replace
from types import MappingProxyType

from regreen.domain.errors import SetupFailed
from regreen.domain.ports import Box
from regreen.fixers.case import RepairCase
from regreen.runs.git_in_box import asks_git, wrap_in_repository
from regreen.runs.trial import Trial, make_env_spec
from regreen.shell.fixing_tools import Remedy

ChangedFiles = Mapping[str, bytes]
_MAX_FILE = 16 * 1024 * 1024
_CHECKSUM_SCRIPT = "find . -type f -not -path './.git/*' -not -path '*/__pycache__/*' -not -path '*/node_modules/*' -exec sha1sum {} + 2>/dev/null | LC_ALL=C sort -k 2"
_CHANGED_MARKER = "--regreen-changed--"
# Files that the setup wrote already: a generator may have run there.
_LEFTOVER_SCRIPT = r"""cut -d " " -f 2- "$HOME/.regreen-laid/list" 2>/dev/null | tr '\n' '\0' | xargs -0 -r sha1sum 2>/dev/null"""
# Files that HEAD lacks; the command may have added them already (`git add -N .`).
_UNTRACKED_SCRIPT = (
    "(git -c core.quotePath=false diff --name-only --diff-filter=A HEAD; "
    "git -c core.quotePath=false ls-files --others --exclude-standard) 2>/dev/null"
)
# Also finds tools in the environments of the job's runners, after those of the environment; the first two in
# the folder in which a remedy runs.
_PATH_PREFIX = (
    'PATH="$PATH:node_modules/.bin:.venv/bin:$(echo /work/node_modules/.bin /work/.tox/*/bin /work/.nox/*/bin /work/.venv/bin'
    " ~/.cache/pre-commit/*/py_env*/bin ~/.cache/prek/hooks/*/bin ~/.local/share/hatch/env/virtual/*/*/*/bin"
    ' ~/.cache/pypoetry/virtualenvs/*/bin ~/.local/share/virtualenvs/*/bin ~/.local/bin | tr " " ":")"; export PATH'
)


def run_remedy(case: RepairCase, remedy: Remedy) -> ChangedFiles:
    """The tracked files that the remedy changed.

    Raises:
        SetupFailed: it could not be run.
    """
    case.stop.check_cancelled()
    tracked = frozenset(
        entry.path for entry in case.git.tree(case.rev) if entry.mode in {"100644", "100755"}
    )
    if not remedy.network:
        with case.open_box() as box:
            return _read_changed_files(box, case, remedy, tracked)
    changed = _run_with_network(case, remedy)
    return {path: changed[path] for path in changed if path in tracked or path in remedy.writes}


def write_with_network(case: RepairCase, laid: ChangedFiles, script: str, path: str) -> str:
    """Run a script in the network phase over a tree with these files, and read one file that it wrote."""
    trial = replace(case.trial, overlay=MappingProxyType({**case.trial.overlay, **laid}))
    try:
        with _open_prepared_box(case, trial, script) as box:
            data = box.read(path, _MAX_FILE)
    except SetupFailed as error:
        case.say(f"recipe: {error}")
        return ""
    return (data or b"").decode("utf-8", "replace")


def run_script_in_box(case: RepairCase, script: str) -> str:
    """What a script prints in the environment of the failing command, without a network."""
    with case.open_box() as box:
        lines = f"{_PATH_PREFIX}\n{script}"
        result = box.run(
            ("bash", "-c", lines), timeout=60, env=dict(case.trial.env), cancel=case.stop.cancel
        )
        return result.stdout


def _read_changed_files(
    box: Box, case: RepairCase, remedy: Remedy, tracked: Set[str]
) -> dict[str, bytes]:
    """The tracked files that differ from the tree, and new files if the remedy writes such."""
    before = "/tmp/regreen-before"  # noqa: S108 - inside the box
    mark = f"echo {shlex.quote(_CHANGED_MARKER)}"
    lines = (
        f"{_CHECKSUM_SCRIPT} > {before}\n{_PATH_PREFIX}\n(\n{remedy.script}\n) >/tmp/regreen-said 2>&1 </dev/null\n"
        f"{mark}\n{_CHECKSUM_SCRIPT} | diff {before} - | grep '^>' | cut -c 3-\n{_LEFTOVER_SCRIPT}\n{mark}\n{_UNTRACKED_SCRIPT}\n"
    )
    argv = ("bash", "-c", lines)
    result = box.run(
        wrap_in_repository(argv) if remedy.untracked or asks_git(remedy.script) else argv,
        timeout=case.trial.timeout,
        env=dict(case.trial.env),
        cancel=case.stop.cancel,
    )
    if result.ended != "exit":
        return {}
    sums, _, untracked = result.stdout.partition(_CHANGED_MARKER)[2].partition(_CHANGED_MARKER)
    wanted = tracked | set(untracked.splitlines() if remedy.untracked else ())
    changed: dict[str, bytes] = {}
    for line in sums.splitlines():
        path = line[40:].strip().removeprefix("./")
        known = path in wanted and not line.startswith("\\")
        data = box.read(path, _MAX_FILE) if known else None
        if data is not None and len(data) < _MAX_FILE:
            changed[path] = data
    return changed


def _run_with_network(case: RepairCase, remedy: Remedy) -> dict[str, bytes]:
    """Run the remedy as part of the setup, the only phase with a network, then read what it wrote."""
    tracked = [entry.path for entry in case.git.tree(case.rev)]
    wanted = [*(path for path in tracked if _is_lock(path)), *remedy.writes]
    changed: dict[str, bytes] = {}
    setup = f"({case.trial.setup or 'true'}) || true\n{remedy.script}"
    with _open_prepared_box(case, case.trial, setup) as box:
        for path in dict.fromkeys(wanted):
            data = box.read(path, _MAX_FILE)
            if data is not None and len(data) < _MAX_FILE and data != case.git.show(case.rev, path):
                changed[path] = data
    return changed


def _open_prepared_box(case: RepairCase, trial: Trial, setup: str) -> Box:
    # the guard judges what the tree asks for; the remedy's own commands are trusted
    requested = trial.asked if trial.asked is not None else trial.setup
    limit = min(trial.setup_timeout, max(30.0, case.stop.left))
    with_remedy = replace(trial, setup=setup, asked=requested or "", setup_timeout=limit)
    spec = make_env_spec(with_remedy, case.rev, git=case.git, inputs=_setup_inputs(case, trial))
    # an archive is a stream that can be read once
    archive = case.git.archive(case.rev, trial.overlay)
    env = case.sandbox.prepare(spec, archive, case.stop.cancel)
    return case.sandbox.open(env, case.git.archive(case.rev, trial.overlay), trial.limits)


def _setup_inputs(case: RepairCase, trial: Trial) -> str:
    from hashlib import sha256

    laid = sha256()
    for path in sorted(trial.overlay):
        laid.update(path.encode() + b"\0" + trial.overlay[path] + b"\0")
    return f"{case.git.tree_id(case.rev) or case.rev} {laid.hexdigest()}"


def _is_lock(path: str) -> bool:
    name = path.rsplit("/", 1)[-1]
    return (
        name.endswith((".lock", "-lock.json", "-lock.yaml"))
        or name in {"go.sum", "go.mod", "npm-shrinkwrap.json"}
        or (name.endswith(".txt") and "requirements" in path)
    )
