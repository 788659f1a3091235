"""The recipe rung: failures with a known remedy, recognised from the command and its output."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace

from regreen.code.file_change import PatchedFile, is_layout_only
from regreen.code.hunks import diff_files
from regreen.code.paths import is_test
from regreen.domain.environments import ReadText
from regreen.domain.errors import SetupFailed
from regreen.fixers.case import (
    JudgeProposal,
    PatchVerdict,
    Proposal,
    RepairCase,
    RungName,
    RungResult,
)
from regreen.fixers.recipes.declare_dependency import (
    find_derived_locks,
    propose_build_requirements,
    propose_manifests,
)
from regreen.fixers.recipes.lock_files_and_snapshots import make_lock_remedies
from regreen.fixers.recipes.remedy import (
    ChangedFiles,
    run_remedy,
    run_script_in_box,
    write_with_network,
)
from regreen.fixers.recipes.task_runners import expand_command
from regreen.fixers.recipes.tool_output import (
    add_unsafe_fixes,
    find_remedies_in_output,
    find_suggested_commands,
    make_style_remedy,
    make_whitespace_remedy,
    remove_unused_suppressions,
)
from regreen.fixers.recipes.version_pins import (
    FREEZE_SCRIPT,
    LIST_SCRIPT,
    VERSIONS_PATH,
    cap_version,
    find_blamed_distributions,
    find_manifests,
    find_suspect_modules,
    find_version,
    find_version_bounds,
    parse_installed_modules,
    replace_pin,
)
from regreen.languages.python.missing_modules import (
    MissingDistribution,
    find_missing_distributions,
    is_own_module,
)
from regreen.languages.test_commands import names_each_test
from regreen.shell.fixing_tools import (
    Remedy,
    asks_for_new_files,
    find_generator_remedies,
    find_remedies,
    fixes_files_itself,
    split_folder,
)

_MAX_SUSPECTS = 2  # each costs one or two setups
_TEST_DATA_APPROVAL = (
    "the repository's own command wrote test data anew: look whether it is the wanted one"
)


class RecipeRung:
    """Formatters, safe lint fixes, lock files, missing dependencies, pins, snapshots, generated files."""

    name: RungName = "recipe"

    def __init__(self) -> None:
        self.troubles: list[str] = []
        self._found = False

    def propose_fix(self, case: RepairCase, judge: JudgeProposal) -> RungResult:
        """Try each remedy that the failure suggests."""
        best: PatchVerdict | None = None
        tried = 0
        for proposal in self._unique_proposals(case):
            tried += 1
            judgement = judge(proposal)
            if judgement.outcome == "accepted":
                return RungResult(judgement, outcome="accepted")
            if judgement.is_accepted and best is None:
                best, self._found = judgement, True
        if best is not None:
            return RungResult(best, outcome=best.outcome)
        none = "; ".join(self.troubles)[:400] or "no recipe knows this failure"
        return RungResult(note="" if tried else none)

    def _unique_proposals(self, case: RepairCase) -> Iterator[Proposal]:
        proposed: set[str] = set()
        for proposal in self._all_proposals(case):
            if proposal.patch and proposal.patch not in proposed:
                proposed.add(proposal.patch)
                yield proposal

    def _all_proposals(self, case: RepairCase) -> Iterator[Proposal]:
        files = [entry.path for entry in case.git.tree(case.rev)]
        read = _make_reader(case)
        for remedy in _find_remedies(case, files, read):
            try:
                changed = run_remedy(case, remedy)
            except SetupFailed as error:
                self.troubles.append(f"{_describe_remedy(case, remedy)} could not be run: {error}")
                continue
            summary = f"ran {_describe_remedy(case, remedy)}"
            if remedy.name == "itself":
                summary = "kept what the command itself wrote"
            approval = remedy.approval or _approval_reason(case, remedy, changed)
            patch = _make_patch(case, changed)
            yield Proposal(self.name, patch, summary, remedy.cause, approval=approval)
        if unused := remove_unused_suppressions(case.before.failures, read):
            words = "comments that silence a checker have nothing left to silence"
            yield Proposal(
                self.name, _make_patch(case, _encode_texts(unused)), "removed them", words
            )
        yield from self._propose_declarations(case, files, read)
        if case.setup_failed:
            yield from self._propose_moved_pins(case, files, read)
        else:
            yield from self._propose_version_caps(case, files, read)

    def _propose_declarations(
        self, case: RepairCase, files: list[str], read: ReadText
    ) -> Iterator[Proposal]:
        missing = find_missing_distributions(case.output, files)
        if not missing:
            return
        setup = case.trial.setup or ""
        found = (
            propose_build_requirements(missing, read)
            if case.setup_failed
            else propose_manifests(missing, files, read, setup)
        )
        for changed, cause in found:
            if self._found:
                return  # each needs a person's approval: only the likeliest place is proposed
            summary = f"declared it in {', '.join(changed)}"
            whole = {**_encode_texts(changed), **self._rebuild_locks(case, changed, files, read)}
            yield Proposal(self.name, _make_patch(case, whole), summary, cause)

    def _rebuild_locks(
        self, case: RepairCase, changed: Mapping[str, str], files: list[str], read: ReadText
    ) -> ChangedFiles:
        """The lock files made from changed manifests, regenerated by their tools."""
        setup = case.trial.setup or "true"
        laid = _encode_texts(changed)
        made: dict[str, bytes] = {}
        for path in changed:
            for lock, script in find_derived_locks(path, files, read, setup):
                case.say(f"recipe: {lock} anew")
                # a stale lock stops the setup after the lock's tool was installed
                text = write_with_network(case, laid, f"({setup}) || true\n{script}", lock)
                if text:
                    made[lock] = text.encode()
        return made

    def _propose_moved_pins(
        self, case: RepairCase, files: list[str], read: ReadText
    ) -> Iterator[Proposal]:
        """Loosen one pin that the installer complains about, and pin the version that it then chooses."""
        setup = case.trial.setup or "true"
        for name in find_blamed_distributions(case.output) or self._find_blamed_verbosely(case):
            for path in find_manifests(files):
                text = read(path) or ""
                free = replace_pin(text, name, "")
                if free is None:
                    continue
                case.say(f"recipe: what would be taken for {name} in {path}")
                script = f"({setup}) && {FREEZE_SCRIPT}"
                frozen = write_with_network(case, {path: free.encode()}, script, VERSIONS_PATH)
                version = find_version(frozen, name)
                after = replace_pin(text, name, f"=={version}") if version else None
                if after and after != text:
                    what = f"the version of {name} that {path} pins"
                    cause = f"{what} cannot be installed with the rest"
                    patch = _make_patch(case, {path: after.encode()})
                    yield Proposal(self.name, patch, f"pinned {name} to {version} in {path}", cause)

    def _propose_version_caps(
        self, case: RepairCase, files: list[str], read: ReadText
    ) -> Iterator[Proposal]:
        """Exclude the release of a dependency that the failure points at."""
        names = [
            name
            for name in find_suspect_modules(case.before.failures, case.output, read)
            if not is_own_module(name, files)
        ]
        if not names:
            return
        brought = parse_installed_modules(run_script_in_box(case, LIST_SCRIPT))
        for name in names[:_MAX_SUSPECTS]:
            distribution, releases = find_version_bounds(name, brought)
            for release in releases:
                if self._found:
                    return
                version = brought.get(name, ("", "of today"))[1]
                cause = f"the code does not fit {distribution} {version}"
                summary = f"kept {distribution} below {release} in"
                for path in find_manifests(files):
                    after = cap_version(path, read(path) or "", distribution, release)
                    if after is not None:
                        changed = {path: after}
                        break
                else:
                    package = MissingDistribution(distribution, name, bound=f"<{release}")
                    added = propose_manifests([package], files, read, case.trial.setup or "")
                    changed, _ = next(added, ({}, ""))
                if changed:
                    whole = {
                        **_encode_texts(changed),
                        **self._rebuild_locks(case, changed, files, read),
                    }
                    yield Proposal(
                        self.name,
                        _make_patch(case, whole),
                        f"{summary} {', '.join(changed)}",
                        cause,
                    )

    def _find_blamed_verbosely(self, case: RepairCase) -> tuple[str, ...]:
        """Run a quiet installer again without its quiet options, so that it names the distribution."""
        setup = case.trial.setup or ""
        loud = re.sub(r"(?<=\s)(?:-q+|--quiet)(?=\s|$)", "", setup)
        if loud == setup:
            return ()
        case.say("recipe: the setup again, aloud")
        return find_blamed_distributions(
            write_with_network(case, {}, f"({loud}) > {VERSIONS_PATH} 2>&1; true", VERSIONS_PATH)
        )


def describe_remedies(case: RepairCase) -> list[str]:
    """Descriptions of the remedies that the tool offers; its complaint if it offers none."""
    read = _make_reader(case)
    calls = [
        *find_remedies(*expand_command(case.trial.command_line, read)),
        *find_remedies_in_output(case.output, case.before.failures),
    ]
    calls += find_suggested_commands(_command_script(case), case.output)
    offered = [f"{call.cause}: run {_describe_remedy(case, call)}" for call in calls[:3]]
    messages = [
        f"{failure.path or failure.test}: {failure.message[:200]}"
        for failure in case.before.failures[:3]
    ]
    return offered or messages or [f"it says: {' '.join(case.output.splitlines()[-3:])[-300:]}"]


def _find_remedies(case: RepairCase, files: list[str], read: ReadText) -> Iterator[Remedy]:
    """The remedies, cheapest and most certain first; each is run only if those before did not help."""
    script = _command_script(case)
    folder, _ = split_folder(case.trial.command_line)
    setup = case.trial.setup or ""
    locks = list(make_lock_remedies(script, case.output, files, setup, folder=folder, read=read))
    if case.setup_failed:
        yield from locks
        return
    scripts = expand_command(case.trial.command_line, read)
    whole = "\n".join(scripts)
    checkers = find_remedies(*scripts)
    yield from checkers
    for remedy in find_remedies_in_output(case.output, case.before.failures):
        yield remedy
        if folder:
            yield replace(remedy, script=f"cd {shlex.quote(folder)}\n{remedy.script}")
    yield from locks
    if style := make_style_remedy(whole, case.before.failures):
        yield style
    if blanks := make_whitespace_remedy(case.before.failures):
        yield blanks
    itself = Remedy(
        "itself",
        script,
        "what is committed is not what the command itself writes",
        untracked=asks_for_new_files(whole),
    )
    wrote = fixes_files_itself(whole) or "files were modified by this hook" in case.output
    if wrote:
        yield itself
    yield from find_suggested_commands(script, case.output)
    yield from add_unsafe_fixes(checkers, case.output)
    if not names_each_test(case.trial, case.output):
        yield from find_generator_remedies(*scripts)
        if not wrote:
            yield itself


def _describe_remedy(case: RepairCase, remedy: Remedy) -> str:
    """A remedy in one line, with its folder."""
    whole = case.trial.command_line if remedy.script == _command_script(case) else remedy.script
    folder, rest = split_folder(whole)
    line = remedy.title or next((line for line in rest.splitlines() if line.strip(" ()")), rest)
    return f"{line.strip()} in {folder.rstrip('/')}" if folder else line.strip()


def _command_script(case: RepairCase) -> str:
    """The command as a shell script."""
    trial = case.trial
    return trial.command_line if trial.title is None else shlex.join(trial.command)


def _approval_reason(case: RepairCase, remedy: Remedy, changed: ChangedFiles) -> str | None:
    """The reason for an approval: the repository's own commands may write expected results."""
    if remedy.name not in {"itself", "told"}:
        return None
    tests = {path: data for path, data in changed.items() if is_test(path)}
    is_layout = all(_is_layout_only(case, path, data) for path, data in tests.items())
    return None if is_layout else _TEST_DATA_APPROVAL


def _is_layout_only(case: RepairCase, path: str, data: bytes) -> bool:
    before = (case.git.show(case.rev, path) or b"").decode("utf-8", "replace")
    after = data.decode("utf-8", "replace")
    return before.split() == after.split() or is_layout_only(PatchedFile(path, before, after))


def _make_reader(case: RepairCase) -> ReadText:
    def read(path: str) -> str | None:
        data = case.git.show(case.rev, path)
        return None if data is None else data.decode("utf-8", "replace")

    return read


def _encode_texts(changed: Mapping[str, str]) -> ChangedFiles:
    return {path: text.encode() for path, text in changed.items()}


def _make_patch(case: RepairCase, changed: ChangedFiles) -> str:
    """The changes of a remedy as a patch; empty if it changed nothing that may change."""
    after: dict[str, bytes | None] = {
        path: data for path, data in changed.items() if path not in case.trial.overlay
    }
    try:
        return diff_files({path: case.git.show(case.rev, path) for path in after}, after)
    except UnicodeDecodeError:
        return ""
