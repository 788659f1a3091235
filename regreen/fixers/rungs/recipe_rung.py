"""The recipe rung: failures with a known remedy, recognised from the command and its output,
and run in a box that gives back the files they changed.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from types import MappingProxyType

from regreen.code.file_change import PatchedFile, is_layout_only, is_same_document
from regreen.code.file_languages import language_of
from regreen.code.hunks import diff_files
from regreen.code.paths import is_test
from regreen.domain.environments import ReadText
from regreen.domain.errors import AnalysisFailed, SetupFailed
from regreen.domain.job_control import ContextThreadPool
from regreen.domain.languages import CompletedChange, DependencyTools
from regreen.domain.models import RungName
from regreen.domain.ports import Box, Git
from regreen.fixers.case import (
    GuiltyCommit,
    JudgeProposal,
    PatchVerdict,
    Proposal,
    RepairCase,
    RungResult,
)
from regreen.fixers.recipes.left_places import fill_left_places
from regreen.fixers.recipes.named_edits import (
    EditedFiles,
    find_named_lines,
    propose_named_edits,
    write_failures,
)
from regreen.fixers.recipes.recorded_calls import RecordedToolCalls, record_calls
from regreen.fixers.recipes.renamed_definitions import follow_change
from regreen.fixers.recipes.small_edits import propose_small_edits
from regreen.fixers.recipes.tool_output import (
    drop_strict_xfails,
    find_compiler_remedies,
    find_remedies_in_output,
    find_suggested_commands,
    make_golden_remedies,
    make_lock_remedies,
    make_recording_remedy,
    make_style_remedy,
    make_whitespace_remedy,
    remove_unused_suppressions,
    rewrite_examples,
)
from regreen.isolation import run_in_child
from regreen.languages.python.forgotten_callers import complete_change
from regreen.languages.registry import DEPENDENCIES, names_each_test
from regreen.runs.test_runs import CommandRun, asks_git, run_in_box, wrap_in_repository
from regreen.runs.trial import Trial, make_env_spec
from regreen.shell.documented_options import (
    asks_to_check,
    derive_remedies,
    find_recording_options,
    make_help_script,
    read_options,
)
from regreen.shell.fixing_tools import (
    Remedy,
    add_unsafe_fixes,
    asks_for_new_files,
    combine_remedies,
    find_generator_remedies,
    find_recorded_remedies,
    find_remedies,
    fixes_files_itself,
    make_comparison_remedy,
    split_folder,
)

ChangedFiles = Mapping[str, bytes]
_SAID = "the error suggests a small edit, and with it the command passes"
_TRIED = "the edit was found by trying what the error suggests: look whether it is meant"
_DROPPED = "something that the error names was removed: look whether it is to stay in another form"
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
_BACKUP_ENDINGS = (".bak", ".orig", ".rej", "~")
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


def run_and_read_file(
    case: RepairCase, laid: ChangedFiles, setup: str, path: str, more: str = ""
) -> str:
    """Run a variant of the setup and `more` over a tree with these files, and read one file that they wrote."""
    trial = replace(case.trial, overlay=MappingProxyType({**case.trial.overlay, **laid}))
    try:
        with _open_prepared_box(case, trial, setup, more) as box:
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
            ("bash", "-c", lines), timeout=120, env=dict(case.trial.env), cancel=case.stop.cancel
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
    new = untracked.splitlines() if remedy.untracked else ()
    wanted = tracked | {path for path in new if not path.endswith(_BACKUP_ENDINGS)}
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
    wanted = [*(path for path in tracked if _may_hold_versions(path)), *remedy.writes]
    changed: dict[str, bytes] = {}
    setup = f"({case.trial.setup or 'true'}) || true"
    with _open_prepared_box(case, case.trial, setup, remedy.script) as box:
        for path in dict.fromkeys(wanted):
            data = box.read(path, _MAX_FILE)
            if data is not None and len(data) < _MAX_FILE and data != case.git.show(case.rev, path):
                changed[path] = data
    return changed


def _open_prepared_box(case: RepairCase, trial: Trial, setup: str, more: str) -> Box:
    limit = min(trial.setup_timeout, max(30.0, case.stop.left))
    prepared = replace(trial, setup=setup, asked=trial.judged_setup, setup_timeout=limit)
    if more:  # names and addresses in it may come from the output, the command or the tree
        prepared = prepared.add_to_setup(more)
    spec = make_env_spec(prepared, case.rev, git=case.git, inputs=_setup_inputs(case, trial))
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


def _may_hold_versions(path: str) -> bool:
    name = path.rsplit("/", 1)[-1]
    return (
        name.endswith((".lock", "-lock.json", "-lock.yaml"))
        or name in {"go.sum", "go.mod", "npm-shrinkwrap.json"}
        or (name.endswith(".txt") and "requirements" in path)
    )


_MAX_SUSPECTS = 2  # each costs one or two setups
_ACCEPTED_FINDINGS = re.compile(
    r"(?i)baseline|(?:allow|deny|skip|white|black)[_-]?list|ignore|accepted|known|suppress|exempt|audit|todo"
)
_ACCEPTED_APPROVAL = "a list of what is accepted was written anew: look whether each entry may be"
_TEST_DATA_APPROVAL = (
    "the repository's own command wrote test data anew: look whether it is the wanted one"
)


_EXAMPLES_APPROVAL = "examples were written anew: look whether the code is to print that"


class RecipeRung:
    """Formatters, safe lint fixes, lock files, missing dependencies, pins, snapshots, generated files."""

    name: RungName = "recipe"

    def __init__(self) -> None:
        self.troubles: list[str] = []
        self._found = False
        self._calls: RecordedToolCalls | None = None

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
        is_form = not case.setup_failed and case.check[0] == "form"
        hints = _describe_remedies(case, self._record_tool_calls(case)) if is_form else ()
        return RungResult(hints=hints, note="" if tried else none)

    def _record_tool_calls(self, case: RepairCase) -> RecordedToolCalls:
        """What the command comes to call; tests of behaviour call nothing that writes files."""
        if self._calls is None:
            is_behaviour = case.check[0] == "behaviour"
            self._calls = RecordedToolCalls() if is_behaviour else record_calls(case)
        return self._calls

    def _unique_proposals(self, case: RepairCase) -> Iterator[Proposal]:
        proposed: set[str] = set()
        for proposal in self._all_proposals(case):
            if proposal.patch and proposal.patch not in proposed:
                proposed.add(proposal.patch)
                yield proposal

    def _all_proposals(self, case: RepairCase) -> Iterator[Proposal]:
        files = [entry.path for entry in case.git.tree(case.rev)]
        read = _make_reader(case)
        yield from self._propose_forgotten_callers(case)
        named = self._find_named_edits(case, files, read)
        # no box has to be opened to find them
        yield from (self._propose_named_edit(case, one) for one in named if one.of_lines)
        unsafe: list[Remedy] = []
        list_calls = partial(self._record_tool_calls, case)
        yield from self._run_remedies(case, _find_remedies(case, files, read, list_calls, unsafe))
        if unused := remove_unused_suppressions(case.before.failures, read):
            words = "comments that silence a checker have nothing left to silence"
            yield Proposal(
                self.name, _make_patch(case, _encode_texts(unused)), "removed them", words
            )
        suggested = [one for one in named if not one.of_lines and any(e.asks for e in one.edits)]
        yield from (
            self._propose_named_edit(case, one)
            for one in named
            if not one.of_lines and one not in suggested
        )
        yield from self._propose_moved_imports(case, files, read)
        for tools in DEPENDENCIES:
            by_pins = self._propose_moved_pins if case.setup_failed else self._propose_version_caps
            for propose in (self._propose_declarations, by_pins):
                try:
                    yield from propose(case, files, read, tools)
                except AnalysisFailed as error:
                    self.troubles.append(f"the manifests could not be read: {error}")
        yield from self._propose_left_places(case)
        yield from self._propose_examples(case, files, read)
        if not self._found:
            yield from self._run_remedies(case, unsafe)
        # each needs a person's approval, as what was found before may
        yield from (self._propose_named_edit(case, one) for one in suggested if not self._found)
        yield from self._propose_small_edits(case, read)

    def _run_remedies(self, case: RepairCase, remedies: Iterable[Remedy]) -> Iterator[Proposal]:
        """What each remedy changes."""
        for remedy in remedies:
            try:
                changed = run_remedy(case, remedy)
            except SetupFailed as error:
                self.troubles.append(f"{_describe_remedy(case, remedy)} could not be run: {error}")
                continue
            summary = f"ran {_describe_remedy(case, remedy)}"
            if remedy.name == "itself":
                summary = "kept what the command itself wrote"
            approval = remedy.approval or _reason_for_approval(case, remedy, changed)
            patch = _make_patch(case, changed)
            yield Proposal(self.name, patch, summary, remedy.cause, approval=approval)

    def _propose_forgotten_callers(self, case: RepairCase) -> Iterator[Proposal]:
        """Follow what a commit renamed, moved or gave other arguments to the callers that it forgot."""
        try:
            made = run_in_child(complete_change, case.git, case.rev, case.base, case.output)
        except AnalysisFailed as error:
            self.troubles.append(f"callers could not be looked for: {error}")
            return
        if made is not None:
            words = f"followed it to its callers: {made.summary}"
            proposal = self._propose_for_commit(case, made, words, "callers")
            yield replace(proposal, completes=True)
        try:
            followed = run_in_child(
                follow_change, case.git, case.rev, case.base, case.output, _find_places(case)
            )
        except AnalysisFailed as error:
            self.troubles.append(f"what was renamed could not be looked for: {error}")
            return
        if followed is not None:
            words = f"followed it to what uses it: {followed.summary}"
            yield self._propose_for_commit(case, followed, words, "callers")

    def _propose_left_places(self, case: RepairCase) -> Iterator[Proposal]:
        """What a commit wrote elsewhere, written where it left the old; what it added, where its siblings are listed."""
        if self._found:
            return
        is_asserted = bool(_ASSERTION.search(case.output))
        try:
            found = run_in_child(
                partial(fill_left_places, is_asserted=is_asserted),
                case.git,
                case.rev,
                case.base,
                case.output,
                _find_places(case),
            )
        except AnalysisFailed as error:
            self.troubles.append(f"what a commit left out could not be looked for: {error}")
            return
        for made in found:
            yield self._propose_for_commit(case, made, made.summary, "places")
            if self._found:
                return

    def _propose_examples(
        self, case: RepairCase, files: list[str], read: ReadText
    ) -> Iterator[Proposal]:
        """Documents with what their examples print now, and tests without a mark that they outgrew."""
        try:
            unmarked = run_in_child(drop_strict_xfails, case.output, files, read)
            if unmarked and not self._found:
                cause = "a test passes that is marked as one that fails"
                yield self._make_rename_proposal(case, unmarked, "dropped the mark", cause, None)
            examples = run_in_child(rewrite_examples, case.output, files, read)
        except AnalysisFailed as error:
            self.troubles.append(f"examples could not be read: {error}")
            return
        if examples and not self._found:
            cause = "examples of a document expect what the code does not print"
            patch = _make_patch(case, _encode_texts(examples))
            words = "wrote what the examples print"
            yield Proposal(self.name, patch, words, cause, approval=_EXAMPLES_APPROVAL)

    def _propose_for_commit(
        self, case: RepairCase, made: CompletedChange, words: str, left: str
    ) -> Proposal:
        """The rest of what a commit did, which `left` something as it was."""
        culprit = GuiltyCommit.read_commit(case.git, made.culprit)
        asks = "another reading is possible: look whether this is what the change means"
        cause = f"{made.culprit[:12]} ({culprit.subject}) left {left} as they were"
        proposal = self._make_rename_proposal(
            case, made.texts, words, cause, asks if made.is_guess else None
        )
        return replace(proposal, culprit=culprit)

    def _find_named_edits(
        self, case: RepairCase, files: list[str], read: ReadText
    ) -> list[EditedFiles]:
        """What the error says to write: lines, and the names that stand for others."""
        try:
            return run_in_child(
                propose_named_edits, case.output, case.before.failures, set(files), read
            )
        except AnalysisFailed as error:
            self.troubles.append(f"names could not be replaced: {error}")
            return []

    def _propose_named_edit(self, case: RepairCase, edited: EditedFiles) -> Proposal:
        words = ", ".join(
            f"{one.new} instead of {one.old}" if one.old else one.new for one in edited.edits
        )
        cause = "; ".join(dict.fromkeys(one.cause for one in edited.edits))
        asks = "; ".join(dict.fromkeys(one.asks for one in edited.edits if one.asks)) or None
        return self._make_rename_proposal(case, edited.texts, f"wrote {words}"[:200], cause, asks)

    def _propose_moved_imports(
        self, case: RepairCase, files: list[str], read: ReadText
    ) -> Iterator[Proposal]:
        """Import names from where they are now."""
        for tools in () if case.setup_failed else DEPENDENCIES:
            try:
                search = run_in_child(tools.make_search_script, case.output, files, read)
                listed = run_script_in_box(case, search) if search else ""
                moved = run_in_child(tools.move_imports, listed, files, read) if listed else {}
            except AnalysisFailed as error:
                self.troubles.append(f"moved names could not be looked for: {error}")
                continue
            if moved:
                cause = "a package no longer offers a name where it is imported from"
                words = "imported it from where it is now"
                yield self._make_rename_proposal(case, moved, words, cause, None)

    def _propose_small_edits(self, case: RepairCase, read: ReadText) -> Iterator[Proposal]:
        """Edits that the failure suggests and with which the command passes; each needs a person's approval."""
        found = iter(()) if self._found else find_working_edits(case, read)
        try:
            for edits in found:
                changed = {
                    path: None if text is None else text.encode()
                    for path, text in edits.texts.items()
                }
                words = ", ".join(dict.fromkeys(edits.words))[:200]
                asks = _DROPPED if edits.drops else _TRIED
                yield Proposal(self.name, _make_patch(case, changed), words, _SAID, approval=asks)
                if self._found:
                    return
        except AnalysisFailed as error:
            self.troubles.append(f"no edits could be derived from the output: {error}")

    def _make_rename_proposal(
        self, case: RepairCase, texts: Mapping[str, str], summary: str, cause: str, asks: str | None
    ) -> Proposal:
        if any(map(is_test, texts)):
            asks = "tests are written otherwise: look whether they still ask for the same"
        patch = _make_patch(case, _encode_texts(texts))
        return Proposal(self.name, patch, summary, cause, approval=asks)

    def _propose_declarations(
        self, case: RepairCase, files: list[str], read: ReadText, tools: DependencyTools
    ) -> Iterator[Proposal]:
        found = run_in_child(
            partial(tools.propose_declarations, setup_failed=case.setup_failed),
            case.output,
            files,
            read,
            case.trial.setup or "",
        )
        for changed, cause in found:
            if self._found:
                return  # each needs a person's approval: only the likeliest place is proposed
            summary = f"declared it in {', '.join(changed)}"
            whole = self._add_regenerated_locks(case, changed, files, read, tools)
            yield Proposal(self.name, _make_patch(case, whole), summary, cause)

    def _add_regenerated_locks(
        self,
        case: RepairCase,
        changed: Mapping[str, str],
        files: list[str],
        read: ReadText,
        tools: DependencyTools,
    ) -> ChangedFiles:
        """Changed manifests with the lock files made from them, regenerated by their tools."""
        setup = case.trial.setup or "true"
        laid = _encode_texts(changed)
        made: dict[str, bytes] = {}
        for path in changed:
            for lock, script in run_in_child(tools.find_derived_locks, path, files, read, setup):
                case.say(f"recipe: {lock} anew")
                # a stale lock stops the setup after the lock's tool was installed
                text = run_and_read_file(case, laid, f"({setup}) || true", lock, script)
                if text:
                    made[lock] = text.encode()
        return {**laid, **made}

    def _propose_moved_pins(
        self, case: RepairCase, files: list[str], read: ReadText, tools: DependencyTools
    ) -> Iterator[Proposal]:
        """Loosen one pin that the installer complains about, and pin the version that it then chooses."""
        setup = case.trial.setup or "true"
        for name in tools.find_blamed(case.output) or self._find_blamed_verbosely(case, tools):
            for path, free in run_in_child(tools.propose_free_pins, name, files, read):
                case.say(f"recipe: what would be taken for {name} in {path}")
                script = f"({setup}) && {tools.list_versions_script}"
                listed = run_and_read_file(case, {path: free.encode()}, script, tools.versions_path)
                text = read(path) or ""
                moved = run_in_child(tools.move_pin, text, name, listed)
                if moved is not None and moved[0] != text:
                    after, version = moved
                    what = f"the version of {name} that {path} pins"
                    cause = f"{what} cannot be installed with the rest"
                    patch = _make_patch(case, {path: after.encode()})
                    yield Proposal(self.name, patch, f"pinned {name} to {version} in {path}", cause)

    def _propose_version_caps(
        self, case: RepairCase, files: list[str], read: ReadText, tools: DependencyTools
    ) -> Iterator[Proposal]:
        """Exclude the release of a dependency that the failure points at."""
        failures = case.before.failures
        names = run_in_child(tools.find_suspects, failures, case.output, files, read)
        if not names:
            return
        listed = run_script_in_box(case, tools.list_modules_script)
        for name in names[:_MAX_SUSPECTS]:
            bounds = tools.find_bounds(name, listed)
            for release in bounds.releases:
                if self._found:
                    return
                cause = f"the code does not fit {bounds.distribution} {bounds.version}"
                setup = case.trial.setup or ""
                changed = run_in_child(tools.declare_bound, bounds, release, files, read, setup)
                if changed:
                    whole = self._add_regenerated_locks(case, changed, files, read, tools)
                    where = ", ".join(changed)
                    summary = f"kept {bounds.distribution} below {release} in {where}"
                    yield Proposal(self.name, _make_patch(case, whole), summary, cause)

    def _find_blamed_verbosely(self, case: RepairCase, tools: DependencyTools) -> tuple[str, ...]:
        """Run a quiet installer again without its quiet options, so that it names the distribution."""
        setup = case.trial.setup or ""
        loud = re.sub(r"(?<=\s)(?:-q+|--quiet)(?=\s|$)", "", setup)
        if loud == setup:
            return ()
        case.say("recipe: the setup again, aloud")
        path = tools.versions_path
        return tools.find_blamed(run_and_read_file(case, {}, f"({loud}) > {path} 2>&1; true", path))


def _find_places(case: RepairCase) -> dict[str, set[int]]:
    """The lines of tracked files that the failure names."""
    files = {entry.path for entry in case.git.tree(case.rev)}
    return find_named_lines(case.output, case.before.failures, files)


def _describe_remedies(case: RepairCase, recorded: RecordedToolCalls) -> tuple[str, ...]:
    """Descriptions of the remedies that the tool offers; its complaint if it offers none."""
    calls = [
        *find_remedies(case.trial.command_line, *recorded.known),
        *find_remedies_in_output(case.output, case.before.failures),
        *find_suggested_commands(_command_script(case), case.output),
    ]
    offered = tuple(f"{call.cause}: run {_describe_remedy(case, call)}" for call in calls[:3])
    messages = tuple(
        f"{failure.path or failure.test}: {failure.message[:200]}"
        for failure in case.before.failures[:3]
    )
    last_lines = f"it says: {' '.join(case.output.splitlines()[-3:])[-300:]}"
    return offered or messages or (last_lines,)


def _find_remedies(
    case: RepairCase,
    files: list[str],
    read: ReadText,
    list_calls: Callable[[], RecordedToolCalls],
    unsafe: list[Remedy],
) -> Iterator[Remedy]:
    """The remedies, cheapest and most certain first; each is run only if those before did not help.

    Those that tools call unsafe come into `unsafe`: where the code is meant, an edit elsewhere may be lacking.
    """
    script = _command_script(case)
    folder, _ = split_folder(case.trial.command_line)
    setup = case.trial.setup or ""
    locks = list(make_lock_remedies(script, case.output, files, setup, folder=folder, read=read))
    if case.setup_failed:
        yield from locks
        return
    direct = find_remedies(case.trial.command_line)
    yield from direct
    yield from locks
    recorded = list_calls()
    scripts = (case.trial.command_line, *recorded.known)
    whole = "\n".join(scripts)
    checkers = (*direct, *find_recorded_remedies(recorded.known))
    yield from (one for one in checkers[len(direct) :] if one not in direct)
    for remedy in find_remedies_in_output(case.output, case.before.failures):
        yield remedy
        if folder:
            yield replace(remedy, script=f"cd {shlex.quote(folder)}\n{remedy.script}")
    yield from find_compiler_remedies(case.output, scripts)
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
    yield from _read_documented_options(case, recorded, checkers)
    yield from _read_test_options(case)
    yield from make_golden_remedies(recorded.known, files, read)
    unsafe += add_unsafe_fixes(checkers)
    if not names_each_test(case.trial, case.output):
        yield from find_generator_remedies(*scripts)
        if comparison := make_comparison_remedy(script, scripts):
            yield comparison
        if not wrote:
            yield itself


def _read_documented_options(
    case: RepairCase, recorded: RecordedToolCalls, known: Sequence[Remedy]
) -> Iterator[Remedy]:
    """The remedies that the tools which failed describe in their own help."""
    first = [list(known[:1])]
    # a tool that only prints what it would change may end well: the command looks at what it printed
    silent = () if recorded.failed else filter(asks_to_check, recorded.passed)
    for call in (*recorded.failed, *islice(silent, _MAX_SILENT)):
        found = list(derive_remedies(call, run_script_in_box(case, make_help_script(call))))
        yield from found
        first.append(found[:1])
    yield from combine_remedies(first)


_MAX_SILENT = 3
_EXPECTED_RESULTS = re.compile(
    r"(?i)snapshot|golden|approv|baseline|recorded|regression|expected|examples?\b"
)


def _read_test_options(case: RepairCase) -> Iterator[Remedy]:
    """The command with an option of a plugin of pytest that writes expected results anew."""
    if names_each_test(case.trial, case.output) and _EXPECTED_RESULTS.search(case.output):
        printed = run_script_in_box(case, "python -m pytest --help 2>/dev/null </dev/null")
        for option in list(dict.fromkeys(find_recording_options(read_options(printed))))[:3]:
            yield make_recording_remedy(option, _command_script(case))


def _describe_remedy(case: RepairCase, remedy: Remedy) -> str:
    """A remedy in one line, with its folder."""
    whole = case.trial.command_line if remedy.script == _command_script(case) else remedy.script
    folder, rest = split_folder(whole)
    line = remedy.title or next((line for line in rest.splitlines() if line.strip(" ()")), rest)
    line = re.sub(r"/work/\.\w+/[^/\s]+/bin/", "", line.strip())  # a task runner's own environment
    return f"{line} in {folder.rstrip('/')}" if folder else line


def _command_script(case: RepairCase) -> str:
    """The command as a shell script."""
    trial = case.trial
    return trial.command_line if trial.title is None else shlex.join(trial.command)


def _reason_for_approval(case: RepairCase, remedy: Remedy, changed: ChangedFiles) -> str | None:
    """The reason for an approval: the repository's own commands may write expected results."""
    if any(_ACCEPTED_FINDINGS.search(path.rsplit("/", 1)[-1]) for path in changed):
        return _ACCEPTED_APPROVAL
    if remedy.name not in {"itself", "told"} and not remedy.unknown:
        return None
    tests = {
        path: data
        for path, data in changed.items()
        if is_test(path) or (remedy.unknown and language_of(path) in {None, "config"})
    }
    is_layout = all(_is_layout_only(case, path, data) for path, data in tests.items())
    return None if is_layout else _TEST_DATA_APPROVAL


def _is_layout_only(case: RepairCase, path: str, data: bytes) -> bool:
    before = (case.git.show(case.rev, path) or b"").decode("utf-8", "replace")
    after = data.decode("utf-8", "replace")
    if before.split() == after.split() or is_layout_only(PatchedFile(path, before, after)):
        return True
    if is_test(path):  # the order of an expected result is part of it
        return False
    try:
        return run_in_child(is_same_document, path, before, after)
    except AnalysisFailed:
        return False


def _make_reader(case: RepairCase) -> ReadText:
    return partial(_read_text, case.git, case.rev)


def _read_text(git: Git, rev: str, path: str) -> str | None:
    data = git.show(rev, path)
    return None if data is None else data.decode("utf-8", "replace")


def _encode_texts(changed: Mapping[str, str]) -> ChangedFiles:
    return {path: text.encode() for path, text in changed.items()}


def _make_patch(case: RepairCase, changed: Mapping[str, bytes | None]) -> str:
    """The changes of a remedy as a patch; empty if it changed nothing that may change."""
    after: dict[str, bytes | None] = {
        path: data for path, data in changed.items() if path not in case.trial.overlay
    }
    try:
        return diff_files({path: case.git.show(case.rev, path) for path in after}, after)
    except UnicodeDecodeError:
        return ""


# Small edits that a failure suggests, each tried in a fresh sandbox until the command passes or the time is over.

_MOST_EDITS = 16  # of one error
_MOST_ROUNDS = 6  # errors, one after the other
_BOXES = 2  # at a time
_LEAST_RUN_SECONDS = 10.0
_TIME_SHARE = 0.25  # of the time that is left
_MOST_SECONDS = 150.0
# pytest, node and vitest, jest, Rust, Go, JUnit
_ASSERTION = re.compile(
    r"(?m)^E {3,20}(?:assert\b|AssertionError)|^[ \t]{0,40}AssertionError\b|\bexpect\(received\)"
    r"|^(?:thread [^\n]{1,200} panicked at ')?assertion[: ][^\n]{0,200}failed|^[ \t]{0,40}--- FAIL: |^(?:java\.lang\.AssertionError|org\.[\w.]{1,80}(?:ComparisonFailure|AssertionFailedError))\b"
)


@dataclass(frozen=True, slots=True)
class WorkingEdits:
    """Edits with which the command passes, as files (None: the path goes), and how each is told."""

    texts: Mapping[str, str | None]
    words: tuple[str, ...]
    drops: bool


def find_working_edits(case: RepairCase, read: ReadText) -> Iterator[WorkingEdits]:
    """Edits with which the failing command passes once, those first that assume least.

    An edit that does away with an error and brings no other is kept, and the search goes on from what is said then.

    Raises:
        AnalysisFailed: the output could not be read within the limits.
    """
    if case.setup_failed or _ASSERTION.search(case.output):
        return  # a test that asks for another value names no edit
    ends = case.stop.now() + min(_MOST_SECONDS, case.stop.left * _TIME_SHARE)
    modes = {entry.path: entry.mode for entry in case.git.tree(case.rev)}
    paths = {path for path, mode in modes.items() if mode in {"100644", "100755"}}
    made = WorkingEdits({}, (), drops=False)
    output = case.output + write_failures(case.before.failures)
    for _ in range(_MOST_ROUNDS):
        reader = partial(_read_edited, made.texts, read)
        command = case.trial.command_line
        edits = run_in_child(propose_small_edits, output, paths, reader, _MOST_EDITS, command)
        more = [
            WorkingEdits(
                {**made.texts, **one.texts}, (*made.words, one.words), made.drops or one.drops
            )
            for one in edits
            if not case.trial.overlay.keys() & one.texts.keys()
        ]
        step: tuple[WorkingEdits, str] | None = None
        for now, run in _run_each(case, more, modes, ends):
            if run.is_green:
                yield now
            elif step is None and _is_a_step(output, run.output):
                step = now, run.output + write_failures(run.failures)
                if len(_list_errors(run.output)) < len(_list_errors(output)):
                    break
        if step is None or case.stop.now() > ends:
            return
        made, output = step


def _run_each(
    case: RepairCase, every: Sequence[WorkingEdits], modes: Mapping[str, str], ends: float
) -> Iterator[tuple[WorkingEdits, CommandRun]]:
    """Each with its run, in their order, several at a time, until the time is over."""
    for at in range(0, len(every), _BOXES):
        if case.stop.now() > ends:
            return
        some = every[at : at + _BOXES]
        # an edit may make a command wait for ever
        limit = min(case.trial.timeout, max(_LEAST_RUN_SECONDS, ends - case.stop.now()))
        trial = replace(case.trial, timeout=limit)
        with ContextThreadPool(_BOXES) as pool:
            runs = [pool.submit(_run_with_edits, case, trial, one.texts, modes) for one in some]
        yield from ((one, run.result()) for one, run in zip(some, runs, strict=True))


def _read_edited(edited: Mapping[str, str | None], read: ReadText, path: str) -> str | None:
    return edited[path] if path in edited else read(path)


def _run_with_edits(
    case: RepairCase, trial: Trial, texts: Mapping[str, str | None], modes: Mapping[str, str]
) -> CommandRun:
    """Run the command once in a fresh sandbox of the environment that there is; nothing is set up for the edits."""
    with case.open_box() as box:
        box.write({path: text.encode() for path, text in texts.items() if text is not None})
        gone = [path for path, text in texts.items() if text is None]
        started = [path for path in texts if modes.get(path) == "100755" and path not in gone]
        script = f"rm -f -- {shlex.join(gone)}; chmod +x -- {shlex.join(started)}"
        if gone or started:
            box.run(("sh", "-c", script), timeout=30, env={}, cancel=case.stop.cancel)
        return run_in_box(box, trial, cancel=case.stop.cancel)


_WITH_PLACE = re.compile(r"\.\w{1,8}\W{1,4}(?:line |on line |at )?\d")
_WITH_WORD = re.compile(r"(?i)\w{0,40}error\b|\b(?:fatal|invalid|unknown)\b")
_FRAME = re.compile(r'\s{0,8}(?:File "|at )')


def _list_errors(output: str) -> Counter[str]:
    """The lines that tell of errors, without their numbers."""
    lines = [line[:400] for line in output[-100_000:].splitlines()]
    told = [
        line
        for line in lines
        if _WITH_WORD.search(line) or (_WITH_PLACE.search(line) and not _FRAME.match(line))
    ]
    told = told or lines[-8:]
    return Counter(re.sub(r"\d+", "#", line) for line in told)


def _is_a_step(before: str, after: str) -> bool:
    """Whether the first error is gone and no other came; a tool that tells of one error only may tell of the next."""
    old, new = _list_errors(before), _list_errors(after)
    if not old or not new:
        return False
    first = next(iter(old))
    if old.total() == new.total() == 1:
        return new != old or _list_places(before) != _list_places(after)
    return new[first] < old[first] and not new - old


def _list_places(output: str) -> list[str]:
    return re.findall(r"\.\w{1,8}\W{1,4}(?:line |on line |at )?\d{1,6}", output[-100_000:])
