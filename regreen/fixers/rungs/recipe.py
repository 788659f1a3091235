"""The recipe rung: failures with a known remedy, recognised from the command and its output, mended by their own tool."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from regreen.codebase.trial import Trial, prepare
from regreen.errors import SetupFailed
from regreen.fixers.case import Case, Climbed, Judge, Judgement, Proposal, RungName
from regreen.fixers.diffs import diff_files
from regreen.fixers.rungs.locks import lock_remedies
from regreen.fixers.rungs.missing import Read, additions, missing_in
from regreen.fixers.rungs.tools import Remedy, remedies
from regreen.models import Env, EnvSpec
from regreen.ports import Box

_MAX_FILE = 16 * 1024 * 1024
_SUMS = "find . -type f -not -path './.git/*' -not -path '*/__pycache__/*' -exec sha1sum {} + 2>/dev/null | LC_ALL=C sort -k 2"
_MARK = "--regreen-changed--"


class Recipe:
    """Formatters, safe lint fixes, lock files, missing dependencies, snapshots."""

    name: RungName = "recipe"

    def climb(self, case: Case, judge: Judge) -> Climbed:
        """Try each remedy the failure suggests; several together where each mends only a part."""
        best: Judgement | None = None
        tried = 0
        for proposal in self._proposals(case):
            tried += 1
            judgement = judge(proposal)
            if judgement.outcome == "accepted":
                return Climbed(judgement, outcome="accepted")
            if judgement.stands and best is None:
                best = judgement
        if best is not None:
            return Climbed(best, outcome=best.outcome)
        return Climbed(note="" if tried else "no recipe knows this failure")

    def _proposals(self, case: Case) -> Iterator[Proposal]:
        files = [entry.path for entry in case.git.tree(case.rev)]
        known = [
            *remedies(case.before.command, case.output),
            *lock_remedies(case.before.command, case.output, files),
        ]
        seen: set[str] = set()
        for remedy in known:
            patch = _patch_of(case, remedy)
            if patch and patch not in seen:
                seen.add(patch)
                yield Proposal(
                    self.name,
                    patch,
                    f"ran {remedy.script.splitlines()[0]}",
                    remedy.cause,
                    approval=remedy.approval,
                )
        missing = missing_in(case.output, files)
        if missing:
            for changed, cause in additions(missing, files, _reader(case), case.trial.setup or ""):
                before = {path: case.git.show(case.rev, path) for path in changed}
                after: dict[str, bytes | None] = {
                    path: text.encode() for path, text in changed.items()
                }
                yield Proposal(
                    self.name,
                    diff_files(before, after),
                    f"declared it in {', '.join(changed)}",
                    cause,
                )


def _reader(case: Case) -> Read:
    def read(path: str) -> str | None:
        data = case.git.show(case.rev, path)
        return None if data is None else data.decode("utf-8", "replace")

    return read


def _patch_of(case: Case, remedy: Remedy) -> str:
    """What the remedy changes, as a patch; empty where it changes nothing that is in the repository."""
    case.stop.check()
    known = {
        entry.path: entry for entry in case.git.tree(case.rev) if entry.mode in {"100644", "100755"}
    }
    try:
        changed = _run_with_network(case, remedy) if remedy.network else _run(case, remedy)
    except SetupFailed as error:
        case.say(f"{remedy.name}: {error}")
        return ""
    before = {path: case.git.show(case.rev, path) for path in changed if path in known}
    after: dict[str, bytes | None] = {
        path: data
        for path, data in changed.items()
        if path in known and path not in case.trial.overlay
    }
    try:
        return diff_files(before, after)
    except UnicodeDecodeError:
        return ""


def _run(case: Case, remedy: Remedy) -> dict[str, bytes]:
    env = _env(case, case.trial)
    with case.sandbox.open(
        env, case.git.archive(case.rev, case.trial.overlay), case.trial.limits
    ) as box:
        return _changes(box, case, remedy.script)


def _changes(box: Box, case: Case, script: str) -> dict[str, bytes]:
    before = "/tmp/regreen-before"  # noqa: S108 - inside the box
    lines = f"{_SUMS} > {before}\n({script}\n) >/tmp/regreen-said 2>&1 </dev/null\necho {shlex.quote(_MARK)}\n{_SUMS} | diff {before} - | grep '^>' | cut -c 3-\n"
    result = box.run(
        ["sh", "-c", lines],
        timeout=case.trial.timeout,
        env=dict(case.trial.env),
        cancel=case.stop.cancel,
    )
    changed: dict[str, bytes] = {}
    for line in result.stdout.partition(_MARK)[2].splitlines():
        path = line[40:].strip().removeprefix("./")
        data = box.read(path, _MAX_FILE) if path and not line.startswith("\\") else None
        if data is not None and len(data) < _MAX_FILE:
            changed[path] = data
    return changed


def _run_with_network(case: Case, remedy: Remedy) -> dict[str, bytes]:
    """Run the remedy as a part of the setup: the only phase that has a network; then read the locks back."""
    trial = case.trial
    setup = f"({trial.setup or 'true'}) || true\n{remedy.script}"
    spec = EnvSpec(
        image=trial.image,
        python=trial.python,
        setup=setup,
        inputs=case.git.tree_id(case.rev) or case.rev,
        trust=trial.trust,
        scope=trial.scope,
        env=trial.env,
    )
    env = case.sandbox.prepare(spec, case.git.archive(case.rev, trial.overlay), case.stop.cancel)
    wanted = [entry.path for entry in case.git.tree(case.rev) if _is_lock(entry.path)]
    changed: dict[str, bytes] = {}
    with case.sandbox.open(env, case.git.archive(case.rev, trial.overlay), trial.limits) as box:
        for path in wanted:
            data = box.read(path, _MAX_FILE)
            if data is not None and len(data) < _MAX_FILE and data != case.git.show(case.rev, path):
                changed[path] = data
    return changed


def _is_lock(path: str) -> bool:
    name = path.rsplit("/", 1)[-1]
    return (
        name.endswith((".lock", "-lock.json", "-lock.yaml"))
        or name in {"go.sum", "go.mod", "npm-shrinkwrap.json"}
        or (name.endswith(".txt") and "requirements" in path)
    )


def _env(case: Case, trial: Trial) -> Env:
    return prepare(trial, case.rev, git=case.git, sandbox=case.sandbox, cancel=case.stop.cancel)
