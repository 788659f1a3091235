"""The recipe rung: failures with a known remedy, recognised from the command and its output, mended by their own tool."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace

from regreen.errors import SetupFailed
from regreen.fixers.case import Case, Climbed, Judge, Judgement, Proposal, RungName
from regreen.fixers.checks.change import parse_python
from regreen.fixers.checks.paths import is_test
from regreen.fixers.diffs import diff_files
from regreen.fixers.rungs.locks import lock_remedies
from regreen.fixers.rungs.missing import additions, build_additions, missing_in
from regreen.fixers.rungs.pins import (
    FREEZE,
    MARK,
    blamed,
    loosened,
    manifests,
    repinned,
    version_in,
)
from regreen.fixers.rungs.remedy import Changes, mended_by, written_with_network
from regreen.fixers.rungs.scripts import Read, spelled_out
from regreen.fixers.rungs.style_codes import style_remedy
from regreen.fixers.rungs.suppressions import without_unused
from regreen.fixers.rungs.told import told
from regreen.fixers.rungs.tools import Remedy, asks_for_new_files, mends_itself, remedies

_LOOK = "the repository's own command wrote test data anew: look whether it is the wanted one"


class Recipe:
    """Formatters, safe lint fixes, lock files, missing dependencies, pins, snapshots, generated files."""

    name: RungName = "recipe"

    def __init__(self) -> None:
        self.troubles: list[str] = []

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
        none = "; ".join(self.troubles)[:400] or "no recipe knows this failure"
        return Climbed(note="" if tried else none)

    def _proposals(self, case: Case) -> Iterator[Proposal]:
        seen: set[str] = set()
        for proposal in self._all(case):
            if proposal.patch and proposal.patch not in seen:
                seen.add(proposal.patch)
                yield proposal

    def _all(self, case: Case) -> Iterator[Proposal]:
        files = [entry.path for entry in case.git.tree(case.rev)]
        read = _reader(case)
        for remedy in _remedies(case, files, read):
            try:
                changed = mended_by(case, remedy)
            except SetupFailed as error:
                self.troubles.append(f"{_named(case, remedy)} could not be run: {error}")
                continue
            yield Proposal(
                self.name,
                _patch(case, changed),
                "kept what the command itself wrote"
                if remedy.name == "itself"
                else f"ran {_named(case, remedy)}",
                remedy.cause,
                approval=remedy.approval or _approval(case, remedy, changed),
            )
        if unused := without_unused(case.output, read):
            words = "comments that silence a checker have nothing left to silence"
            yield Proposal(self.name, _patch(case, _bytes(unused)), "removed them", words)
        yield from self._declared(case, files, read)
        if case.setup_failed:
            yield from self._repinned(case, files, read)

    def _declared(self, case: Case, files: list[str], read: Read) -> Iterator[Proposal]:
        missing = missing_in(case.output, files)
        if not missing:
            return
        setup = case.trial.setup or ""
        found = (
            build_additions(missing, read)
            if case.setup_failed
            else additions(missing, files, read, setup)
        )
        for changed, cause in found:
            summary = f"declared it in {', '.join(changed)}"
            yield Proposal(self.name, _patch(case, _bytes(changed)), summary, cause)

    def _repinned(self, case: Case, files: list[str], read: Read) -> Iterator[Proposal]:
        """Loosen one pin that the installer complains about, see what it takes instead, and pin that."""
        setup = case.trial.setup or "true"
        for name in blamed(case.output) or self._blamed_aloud(case):
            for path in manifests(files):
                text = read(path) or ""
                free = loosened(text, name)
                if free is None:
                    continue
                case.say(f"recipe: what would be taken for {name} in {path}")
                laid = {path: free.encode()}
                frozen = written_with_network(case, laid, f"({setup}) && {FREEZE}", MARK)
                version = version_in(frozen, name)
                after = repinned(text, name, version) if version else None
                if after and after != text:
                    cause = (
                        f"the version of {name} that {path} pins cannot be installed with the rest"
                    )
                    summary = f"pinned {name} to {version} in {path}"
                    yield Proposal(self.name, _patch(case, {path: after.encode()}), summary, cause)

    def _blamed_aloud(self, case: Case) -> tuple[str, ...]:
        """An installer that was told to be quiet does not name what it stumbles over: ask it again."""
        setup = case.trial.setup or ""
        loud = re.sub(r"(?<=\s)(?:-q+|--quiet)(?=\s|$)", "", setup)
        if loud == setup:
            return ()
        case.say("recipe: the setup again, aloud")
        return blamed(written_with_network(case, {}, f"({loud}) > {MARK} 2>&1; true", MARK))


def _remedies(case: Case, files: list[str], read: Read) -> Iterator[Remedy]:
    """What may mend it, cheapest and surest first; each is only run when the ones before did not help."""
    script = _script(case)
    locks = list(lock_remedies(script, case.output, files, case.trial.setup or ""))
    if case.setup_failed:
        yield from locks
        return
    folder, shown = _in_folder(case.trial.shown)
    whole = spelled_out(shown, lambda path: read(f"{folder}{path}"))
    for remedy in remedies(whole, case.output):
        yield remedy
        if folder:
            yield replace(remedy, script=f"cd {shlex.quote(folder)}\n{remedy.script}")
    yield from locks
    if style := style_remedy(whole, case.output):
        yield style
    if mends_itself(whole):
        yield Remedy(
            "itself",
            script,
            "what is committed is not what the command itself writes",
            untracked=asks_for_new_files(whole),
        )
    yield from told(script, case.output)


def _named(case: Case, remedy: Remedy) -> str:
    whole = remedy.script == _script(case)
    shown = case.trial.shown if whole else remedy.script
    return remedy.title or shown.splitlines()[0]


_CD = re.compile(r"\s*cd\s+([\w./-]{1,200}?)/?\s*(?:\n|&&|;)\s*")


def _in_folder(command: str) -> tuple[str, str]:
    """The folder that a command goes to first ("web/", or nothing), and the rest of it."""
    match = _CD.match(command)
    if match is None or match[1].startswith(("/", "..")):
        return "", command
    return f"{match[1].removeprefix('./')}/", command[match.end() :]


def _script(case: Case) -> str:
    """The command as the shell has it; a step of a workflow is shown to people by its title."""
    trial = case.trial
    return trial.shown if trial.title is None else shlex.join(trial.command)


def _approval(case: Case, remedy: Remedy, changed: Changes) -> str | None:
    """Commands of the repository's own may write anything: expected results are for a person to look at."""
    if remedy.name not in {"itself", "told"}:
        return None
    return (
        _LOOK
        if any(
            is_test(path) and not _layout_only(case, path, data) for path, data in changed.items()
        )
        else None
    )


def _layout_only(case: Case, path: str, data: bytes) -> bool:
    before = (case.git.show(case.rev, path) or b"").decode("utf-8", "replace")
    after = data.decode("utf-8", "replace")
    if before.split() == after.split():
        return True
    one, other = parse_python(before), parse_python(after)
    if not path.endswith(".py") or one is None or other is None:
        return False
    from ast import dump

    return dump(one) == dump(other)


def _reader(case: Case) -> Read:
    def read(path: str) -> str | None:
        data = case.git.show(case.rev, path)
        return None if data is None else data.decode("utf-8", "replace")

    return read


def _bytes(changed: Mapping[str, str]) -> Changes:
    return {path: text.encode() for path, text in changed.items()}


def _patch(case: Case, changed: Changes) -> str:
    """What a remedy changed, as a patch; empty where it changed nothing that may change."""
    after: dict[str, bytes | None] = {
        path: data for path, data in changed.items() if path not in case.trial.overlay
    }
    try:
        return diff_files({path: case.git.show(case.rev, path) for path in after}, after)
    except UnicodeDecodeError:
        return ""
