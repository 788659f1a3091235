"""Runs a remedy in the sandbox and brings back the files that it wrote, as far as they belong to the repository."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Set
from dataclasses import replace
from types import MappingProxyType

from regreen.codebase.in_git import asks_git, in_git
from regreen.codebase.trial import Trial, prepare, spec_of
from regreen.errors import SetupFailed
from regreen.fixers.case import Case
from regreen.fixers.rungs.tools import Remedy
from regreen.ports import Box

Changes = Mapping[str, bytes]
_MAX_FILE = 16 * 1024 * 1024
_SUMS = "find . -type f -not -path './.git/*' -not -path '*/__pycache__/*' -not -path '*/node_modules/*' -exec sha1sum {} + 2>/dev/null | LC_ALL=C sort -k 2"
_MARK = "--regreen-changed--"
# What the setup wrote already: a generator may have run there.
_LEFT = r"""cut -d " " -f 2- "$HOME/.regreen-laid/list" 2>/dev/null | tr '\n' '\0' | xargs -0 -r sha1sum 2>/dev/null"""
# What HEAD does not have; the command may have told git of it already (`git add -N .`).
_UNTRACKED = (
    "(git -c core.quotePath=false diff --name-only --diff-filter=A HEAD; "
    "git -c core.quotePath=false ls-files --others --exclude-standard) 2>/dev/null"
)
# Tools that the job's own runners keep to themselves are found too, after those of the environment; the first two in
# whichever folder a remedy runs.
_PATHS = (
    'PATH="$PATH:node_modules/.bin:.venv/bin:$(echo /work/node_modules/.bin /work/.tox/*/bin /work/.nox/*/bin /work/.venv/bin'
    " ~/.cache/pre-commit/*/py_env*/bin ~/.cache/prek/hooks/*/bin ~/.local/share/hatch/env/virtual/*/*/*/bin"
    ' ~/.cache/pypoetry/virtualenvs/*/bin ~/.local/share/virtualenvs/*/bin ~/.local/bin | tr " " ":")"; export PATH'
)


def mended_by(case: Case, remedy: Remedy) -> Changes:
    """The tracked files as the remedy leaves them.

    Raises:
        SetupFailed: it could not be run.
    """
    case.stop.check()
    tracked = frozenset(
        entry.path for entry in case.git.tree(case.rev) if entry.mode in {"100644", "100755"}
    )
    if not remedy.network:
        return _in_box(case, remedy, tracked)
    changed = _with_network(case, remedy)
    return {path: changed[path] for path in changed if path in tracked or path in remedy.writes}


def written_with_network(case: Case, laid: Changes, script: str, path: str) -> str:
    """Lay files over the tree, run a script in the network phase, and read one file that it wrote."""
    trial = replace(case.trial, overlay=MappingProxyType({**case.trial.overlay, **laid}))
    try:
        with _prepared(case, trial, script) as box:
            data = box.read(path, _MAX_FILE)
    except SetupFailed as error:
        case.say(f"recipe: {error}")
        return ""
    return (data or b"").decode("utf-8", "replace")


def said_in_box(case: Case, script: str) -> str:
    """What a script prints in the environment of the failing command, without a network."""
    env = prepare(case.trial, case.rev, git=case.git, sandbox=case.sandbox, cancel=case.stop.cancel)
    archive = case.git.archive(case.rev, case.trial.overlay)
    with case.sandbox.open(env, archive, case.trial.limits) as box:
        lines = f"{_PATHS}\n{script}"
        result = box.run(
            ("bash", "-c", lines), timeout=60, env=dict(case.trial.env), cancel=case.stop.cancel
        )
        return result.stdout


def _in_box(case: Case, remedy: Remedy, tracked: Set[str]) -> dict[str, bytes]:
    env = prepare(case.trial, case.rev, git=case.git, sandbox=case.sandbox, cancel=case.stop.cancel)
    archive = case.git.archive(case.rev, case.trial.overlay)
    with case.sandbox.open(env, archive, case.trial.limits) as box:
        return _changes(box, case, remedy, tracked)


def _changes(box: Box, case: Case, remedy: Remedy, tracked: Set[str]) -> dict[str, bytes]:
    """The tracked files that differ from the tree; new ones too, where the command asks git for those."""
    before = "/tmp/regreen-before"  # noqa: S108 - inside the box
    mark = f"echo {shlex.quote(_MARK)}"
    lines = (
        f"{_SUMS} > {before}\n{_PATHS}\n(\n{remedy.script}\n) >/tmp/regreen-said 2>&1 </dev/null\n"
        f"{mark}\n{_SUMS} | diff {before} - | grep '^>' | cut -c 3-\n{_LEFT}\n{mark}\n{_UNTRACKED}\n"
    )
    argv = ("bash", "-c", lines)
    result = box.run(
        in_git(argv) if remedy.untracked or asks_git(remedy.script) else argv,
        timeout=case.trial.timeout,
        env=dict(case.trial.env),
        cancel=case.stop.cancel,
    )
    if result.ended != "exit":
        return {}
    sums, _, untracked = result.stdout.partition(_MARK)[2].partition(_MARK)
    wanted = tracked | set(untracked.splitlines() if remedy.untracked else ())
    changed: dict[str, bytes] = {}
    for line in sums.splitlines():
        path = line[40:].strip().removeprefix("./")
        known = path in wanted and not line.startswith("\\")
        data = box.read(path, _MAX_FILE) if known else None
        if data is not None and len(data) < _MAX_FILE:
            changed[path] = data
    return changed


def _with_network(case: Case, remedy: Remedy) -> dict[str, bytes]:
    """Run the remedy as a part of the setup: the only phase that has a network; then read what it wrote."""
    tracked = [entry.path for entry in case.git.tree(case.rev)]
    wanted = [*(path for path in tracked if _is_lock(path)), *remedy.writes]
    changed: dict[str, bytes] = {}
    setup = f"({case.trial.setup or 'true'}) || true\n{remedy.script}"
    with _prepared(case, case.trial, setup) as box:
        for path in dict.fromkeys(wanted):
            data = box.read(path, _MAX_FILE)
            if data is not None and len(data) < _MAX_FILE and data != case.git.show(case.rev, path):
                changed[path] = data
    return changed


def _prepared(case: Case, trial: Trial, setup: str) -> Box:
    # what the tree asks for is judged as ever; what the remedy runs is ours
    asked = trial.asked if trial.asked is not None else trial.setup
    limit = min(trial.setup_timeout, max(30.0, case.stop.left))
    with_remedy = replace(trial, setup=setup, asked=asked or "", setup_timeout=limit)
    spec = spec_of(with_remedy, case.rev, git=case.git, inputs=_inputs(case, trial))
    # an archive is a stream: one that was read to prepare is empty by the time a box opens
    archive = case.git.archive(case.rev, trial.overlay)
    env = case.sandbox.prepare(spec, archive, case.stop.cancel)
    return case.sandbox.open(env, case.git.archive(case.rev, trial.overlay), trial.limits)


def _inputs(case: Case, trial: Trial) -> str:
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
