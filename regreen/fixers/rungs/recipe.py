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
from regreen.fixers.rungs.caps import LIST, bounds, brought_by, capped, suspects
from regreen.fixers.rungs.declaring import additions, build_additions, made_from
from regreen.fixers.rungs.locks import lock_remedies
from regreen.fixers.rungs.missing import Missing, is_own, missing_in
from regreen.fixers.rungs.pins import (
    FREEZE,
    MARK,
    blamed,
    loosened,
    manifests,
    repinned,
    version_in,
)
from regreen.fixers.rungs.printed import printed, with_unsafe
from regreen.fixers.rungs.remedy import Changes, mended_by, said_in_box, written_with_network
from regreen.fixers.rungs.scripts import bodies
from regreen.fixers.rungs.style_codes import blank_remedy, style_remedy
from regreen.fixers.rungs.suppressions import without_unused
from regreen.fixers.rungs.task_runners import Read
from regreen.fixers.rungs.told import told
from regreen.fixers.rungs.tools import (
    Remedy,
    asks_for_new_files,
    in_folder,
    mends_itself,
    remedies,
    unlooking,
)
from regreen.fixers.runs import uses_pytest

_SUSPECTS = 2  # each costs a setup, or two
_LOOK = "the repository's own command wrote test data anew: look whether it is the wanted one"


class Recipe:
    """Formatters, safe lint fixes, lock files, missing dependencies, pins, snapshots, generated files."""

    name: RungName = "recipe"

    def __init__(self) -> None:
        self.troubles: list[str] = []
        self._found = False

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
                best, self._found = judgement, True
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
        else:
            yield from self._capped(case, files, read)

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
            if self._found:
                return  # a person has to agree to any of them: the likeliest place is shown
            summary = f"declared it in {', '.join(changed)}"
            whole = {**_bytes(changed), **self._made_anew(case, changed, files, read)}
            yield Proposal(self.name, _patch(case, whole), summary, cause)

    def _made_anew(
        self, case: Case, changed: Mapping[str, str], files: list[str], read: Read
    ) -> Changes:
        """The locks that follow from changed manifests, written by their own tool."""
        setup = case.trial.setup or "true"
        laid = _bytes(changed)
        made: dict[str, bytes] = {}
        for path in changed:
            for lock, script in made_from(path, files, read, setup):
                case.say(f"recipe: {lock} anew")
                # a lock that is out of date stops the setup: what installs its tool has run by then
                text = written_with_network(case, laid, f"({setup}) || true\n{script}", lock)
                if text:
                    made[lock] = text.encode()
        return made

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

    def _capped(self, case: Case, files: list[str], read: Read) -> Iterator[Proposal]:
        """Keep out the release of a dependency that the failure points at: the code was written for an older one."""
        names = [
            name
            for name in suspects(case.before.failures, case.output, read)
            if not is_own(name, files)
        ]
        if not names:
            return
        brought = brought_by(said_in_box(case, LIST))
        for name in names[:_SUSPECTS]:
            distribution, releases = bounds(name, brought)
            for release in releases:
                if self._found:
                    return
                version = brought.get(name, ("", "of today"))[1]
                cause = f"the code does not fit {distribution} {version}"
                summary = f"kept {distribution} below {release} in"
                for path in manifests(files):
                    after = capped(path, read(path) or "", distribution, release)
                    if after is not None:
                        changed = {path: after}
                        break
                else:
                    one = Missing(distribution, name, bound=f"<{release}")
                    added = additions([one], files, read, case.trial.setup or "")
                    changed, _ = next(added, ({}, ""))
                if changed:
                    whole = {**_bytes(changed), **self._made_anew(case, changed, files, read)}
                    yield Proposal(
                        self.name, _patch(case, whole), f"{summary} {', '.join(changed)}", cause
                    )

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
    folder, _ = in_folder(case.trial.shown)
    setup = case.trial.setup or ""
    locks = list(lock_remedies(script, case.output, files, setup, folder=folder, read=read))
    if case.setup_failed:
        yield from locks
        return
    scripts = bodies(case.trial.shown, read)
    whole = "\n".join(scripts)
    checkers = remedies(*scripts)
    yield from checkers
    for remedy in printed(case.output):
        yield remedy
        if folder:
            yield replace(remedy, script=f"cd {shlex.quote(folder)}\n{remedy.script}")
    yield from locks
    if style := style_remedy(whole, case.output):
        yield style
    if blanks := blank_remedy(case.before.failures):
        yield blanks
    itself = Remedy(
        "itself",
        script,
        "what is committed is not what the command itself writes",
        untracked=asks_for_new_files(whole),
    )
    wrote = mends_itself(whole) or "files were modified by this hook" in case.output
    if wrote:
        yield itself
    yield from told(script, case.output)
    yield from with_unsafe(checkers, case.output)
    if not uses_pytest(case.trial, case.output):
        yield from unlooking(*scripts)
        if not wrote:
            yield itself


def _named(case: Case, remedy: Remedy) -> str:
    """A remedy as people read it: one line, and where it runs."""
    whole = case.trial.shown if remedy.script == _script(case) else remedy.script
    folder, rest = in_folder(whole)
    line = remedy.title or next((line for line in rest.splitlines() if line.strip(" ()")), rest)
    return f"{line.strip()} in {folder.rstrip('/')}" if folder else line.strip()


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
