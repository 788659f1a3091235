"""The revert rung: find the guilty commit by bisection, and revert as little of it as is enough."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from regreen.bisect.bisection import BisectJob, run_bisection
from regreen.bisect.report import render_headline
from regreen.bisect.result import Bisection
from regreen.code.hunks import (
    ChangePiece,
    apply_pieces,
    diff_files,
    split_into_pieces,
    split_pieces_into_lines,
    undo_all_pieces,
)
from regreen.code.paths import is_document, is_source, is_test
from regreen.code.python_calls import is_module, parse_python
from regreen.domain.models import RungName
from regreen.fixers.case import (
    GuiltyCommit,
    JudgeProposal,
    PatchVerdict,
    Proposal,
    RepairCase,
    RungResult,
    find_best_patch,
)
from regreen.fixers.minimization import SubsetTest, minimize_in_batches
from regreen.fixers.warm_engine import WarmEngine
from regreen.fixers.workspace import read_original
from regreen.gate.judge import changed_files
from regreen.secrets.markdown_sanitizer import format_probability

MAX_UNASKED_LINES = 5
"""Lines that may go without a person's word."""
_MOST_TRIES = 3  # pieces that would each be enough
_MOST_ROUNDS = 4
_MOST_PIECES = 400
_MOST_CUT = 200  # lines of a part that is cut: pairing them takes the cube of their number
_TIME_SHARE = 0.5  # of the time left, for all candidates: what is found has to be verified


@dataclass(frozen=True)
class RevertedPart:
    """A part of a change whose revert is enough.

    `lines` counts what it touches; `where` names its places. `is_all`: the change has nothing else, and it is more
    than one small piece. `is_cut`: it is finer than the pieces that the change was made in.
    """

    patch: str
    lines: int
    where: str
    is_all: bool = False
    is_cut: bool = False


def split_difference(now: Mapping[str, str], then: Mapping[str, str]) -> list[ChangePiece]:
    """The pieces in which two states differ; empty if there are too many to try."""
    found = split_into_pieces(now, then)
    return found if len(found) <= _MOST_PIECES else []


def find_guilty_parts(
    case: RepairCase, now: Mapping[str, str], then: Mapping[str, str]
) -> Iterator[RevertedPart]:
    """The parts of a change whose undoing turns the command green, each found when it is asked for.

    Each piece that is enough alone, the smallest first and only a few of them; where none is, what delta debugging
    leaves of all. A part of more lines than may go unasked is offered cut down to its guilty lines first. Where the
    project's own tests have refused a part, the search begins again among those that keep the tests it broke.

    Args:
        case: the failing command, at the commit that has the change.
        now: source files as they are, by path.
        then: the same files with the change undone.
    """
    search = _PartSearch(case, now, then)
    offered: set[str] = set()
    for _ in range(_MOST_ROUNDS):
        search.reject_candidates_breaking_tests()
        for part in _search_parts(search):
            if part.patch not in offered:
                offered.add(part.patch)
                yield part
                if search.has_new_refusals():
                    break
        else:
            return


class _PartSearch:
    """Tries subsets of a change's pieces within a time limit."""

    def __init__(self, case: RepairCase, now: Mapping[str, str], then: Mapping[str, str]) -> None:
        self.now, self.then = now, then
        self.parts = split_difference(now, then)
        self._case = case
        self._left = case.stop.left * _TIME_SHARE
        self._engine = WarmEngine(case)
        self._held: frozenset[str] = frozenset()
        self._keeper: WarmEngine | None = None

    def has_new_refusals(self) -> bool:
        """Whether the project's tests have refused a part since the last check."""
        return self._case.suite is not None and self._case.suite.fallen != self._held

    @property
    def guards_suite(self) -> bool:
        """Whether candidates are also run against tests that an earlier part broke."""
        return self._keeper is not None

    def reject_candidates_breaking_tests(self) -> None:
        """Reject candidates that break a test which an earlier part broke."""
        suite = self._case.suite
        if suite is None or not self.has_new_refusals():
            return
        self._held = suite.fallen
        trial = suite.select_tests(self._held)
        if trial is not None:
            job = replace(self._case.job, trial=trial)
            wanted = dict.fromkeys(self._held, "failed")  # they have to pass, like those that fail
            self._keeper = WarmEngine(replace(self._case, job=job, passing=wanted, wide=None))

    def find_sufficient_options(self, options: Sequence[Sequence[ChangePiece]]) -> list[bool]:
        """Which subsets are enough, up to the first that is; fewer if time ran out."""
        candidates = [apply_pieces(self.now, self.then, option) for option in options]
        sound = [
            at for at, candidate in enumerate(candidates) if _still_compiles(self.now, candidate)
        ]
        undecided, most = sound, 1
        while True:
            green, reached = self._find_green_candidates(
                self._engine, candidates, undecided, len(options), most=most
            )
            is_over = not green  # none is left, or no time
            if self._keeper is not None and green:
                # it collects the tests once for all that are given: several cost little more than one
                green, decided = self._find_green_candidates(
                    self._keeper, candidates, green, reached, most=1
                )
                is_over = decided < reached
                reached = decided
            if green or is_over or reached >= len(options):
                return [at in green for at in range(reached)]
            undecided, most = [at for at in sound if at >= reached], most * 4

    def _find_green_candidates(
        self,
        engine: WarmEngine,
        candidates: Sequence[Mapping[str, str]],
        tried: Sequence[int],
        reached: int,
        *,
        most: int,
    ) -> tuple[list[int], int]:
        """The first `most` green candidates among those tried, and up to which index all are decided."""
        started = self._case.stop.now()
        verdicts = engine.try_all(
            [candidates[at] for at in tried], most_green=most, seconds=self._left
        )
        self._left -= self._case.stop.now() - started
        green = [at for at, verdict in zip(tried, verdicts, strict=False) if verdict.green]
        return green, tried[len(verdicts)] if len(verdicts) < len(tried) else reached


def _search_parts(search: _PartSearch) -> Iterator[RevertedPart]:
    now, then = search.now, search.then
    none = True
    for guilty in _find_guilty_sets(search.parts, search.find_sufficient_options):
        none = False
        whole = _make_reverted_part(now, then, guilty, is_all=len(guilty) == len(search.parts))
        if MAX_UNASKED_LINES < whole.lines <= _MOST_CUT:
            lines = split_pieces_into_lines(guilty, now, then)
            enough = len(lines) > 1 and any(search.find_sufficient_options([lines]))
            cut = _make_reverted_part(
                now,
                then,
                minimize_in_batches(lines, search.find_sufficient_options) if enough else lines,
                is_cut=True,
            )
            if cut.lines < whole.lines:
                yield cut
        yield whole
    if (
        none
        and search.guards_suite
        and sum(piece.line_count for piece in search.parts) <= _MOST_CUT
    ):
        # no set of whole hunks is enough: only some lines of a hunk have to go
        lines = split_pieces_into_lines(search.parts, now, then)
        least = minimize_in_batches(lines, search.find_sufficient_options)
        if len(least) < len(lines):
            yield _make_reverted_part(now, then, least, is_cut=True)


def _find_guilty_sets(
    parts: list[ChangePiece], test: SubsetTest[ChangePiece]
) -> Iterator[list[ChangePiece]]:
    rest = sorted(parts, key=lambda piece: piece.line_count)
    found = 0
    while rest and found < _MOST_TRIES:
        verdicts = test([[piece] for piece in rest])
        at = next((number for number, good in enumerate(verdicts) if good), None)
        if at is None:
            break
        found += 1
        yield [rest[at]]
        rest = rest[at + 1 :]
    if not found and len(parts) > 1 and any(test([parts])):
        yield minimize_in_batches(parts, test)


def _make_reverted_part(
    now: Mapping[str, str],
    then: Mapping[str, str],
    guilty: Sequence[ChangePiece],
    *,
    is_all: bool = False,
    is_cut: bool = False,
) -> RevertedPart:
    changed = apply_pieces(now, then, guilty)
    patch = diff_files(
        {path: text.encode() for path, text in now.items()},
        {path: text.encode() for path, text in changed.items()},
    )
    where = ", ".join(f"{piece.path}:{piece.i1 + 1}" for piece in guilty[:4])
    lines = sum(piece.line_count for piece in guilty)
    return RevertedPart(
        patch, lines, where, is_all and (len(guilty) > 1 or lines > MAX_UNASKED_LINES), is_cut
    )


def _still_compiles(now: Mapping[str, str], changed: Mapping[str, str]) -> bool:
    """Whether every Python file still parses: half a statement is not worth a run."""
    return all(
        parse_python(text) is not None
        for path, text in changed.items()
        if is_module(path) and parse_python(now[path]) is not None
    )


_MAX_SUSPECTS = 3
_BISECT_TIME_SHARE = 0.5  # share of the time left; the next rungs need the rest
_BISECT_JOBS = (
    2  # most of a commit's time is a setup, which waits for downloads and uses one processor
)


class RevertRung:
    """Reverts the bisected culprit: whole, its source alone, or its hunks on the failing path."""

    name: RungName = "revert"

    def propose_fix(self, case: RepairCase, judge: JudgeProposal) -> RungResult:
        """Bisect, then try the reverts in order."""
        if case.stop.left < 30:
            return RungResult(note="no time left to bisect")
        if (only := _find_only_commit(case)) is not None:
            hint = f"the change is one commit, {only.sha[:12]} ({only.subject}), and its base is not red in this way"
            note = "the change is one commit; taking it back would undo the whole change"
            return RungResult(hints=(hint,), note=note, culprit=only, cause=_describe_cause(only))
        found = _bisect_failure(case)
        suspects = _find_suspects(case, found)
        if not suspects:
            return RungResult(note=f"bisection: {render_headline(found)}")
        hints = tuple(
            f"the bisection blames {commit.sha[:12]} ({commit.subject}), probability {format_probability(commit.probability or 0.0)}"
            for commit in suspects
        )
        best: PatchVerdict | None = None
        for culprit in suspects:
            judged: list[PatchVerdict] = []
            judgement = find_best_patch(
                _propose_reverts(case, culprit), partial(_judge_and_append, judged, judge)
            )
            hints += _describe_second_cause(case, culprit, judged)
            if judgement is not None and judgement.outcome == "accepted":
                return RungResult(
                    judgement, hints, "", "accepted", culprit, _describe_cause(culprit)
                )
            best = best or judgement
        alone = suspects[0] if len(suspects) == 1 else None
        if best is not None:
            return RungResult(
                best, hints, "", best.outcome, best.proposal.culprit, best.proposal.cause
            )
        note = "taking the commit back does not apply, or does not help"
        return RungResult(
            None, hints, note, "nothing_proposed", alone, _describe_cause(alone) if alone else None
        )


def _find_suspects(case: RepairCase, found: Bisection) -> list[GuiltyCommit]:
    """The culprit, or the few suspects that the search left; their reverts decide."""
    if found.culprit is not None:
        return [GuiltyCommit.read_commit(case.git, found.culprit.sha, found.probability)]
    if found.outcome != "narrowed" or len(found.credible_set) > _MAX_SUSPECTS:
        return []
    return [
        GuiltyCommit.read_commit(case.git, suspect.sha, suspect.probability)
        for suspect in found.credible_set
    ]


def _judge_and_append(
    judged: list[PatchVerdict], judge: JudgeProposal, proposal: Proposal
) -> PatchVerdict:
    judged.append(judge(proposal))
    return judged[-1]


def _describe_second_cause(
    case: RepairCase, culprit: GuiltyCommit, judged: Sequence[PatchVerdict]
) -> tuple[str, ...]:
    """A hint where taking the commit back mends some of what fails, and not the rest: two causes."""
    before = {failure.test for failure in case.before.failures}
    for verdict in judged:
        rest = {failure.test for failure in verdict.after.failures} if verdict.after else set()
        if verdict.outcome == "still_red" and rest and rest < before:
            mended, others = ", ".join(sorted(before - rest)[:3]), ", ".join(sorted(rest)[:3])
            return (
                f"there are two causes: without {culprit.sha[:12]} ({culprit.subject}) {mended} passes, and {others} still fails; bisect each by its own tests",
            )
    return ()


def _describe_cause(culprit: GuiltyCommit) -> str:
    return f"{culprit.sha[:12]} ({culprit.subject}) broke it"


def _propose_reverts(case: RepairCase, culprit: GuiltyCommit) -> Iterator[Proposal]:
    """Reverts of this commit: whole or in some files, then the smallest parts that are enough.

    A part of a commit may be more, or less, than its fault: a person has to agree, unless it is a few lines.
    """
    cause, short = _describe_cause(culprit), culprit.sha[:12]
    for patch, summary in _make_revert_patches(case, culprit.sha):
        yield Proposal("revert", patch, summary, cause, culprit)
    case.say(f"looking for the parts of {short} whose removal is enough")
    asks = f"only a part of {short} is taken back; look whether the rest still makes sense"
    for part in find_guilty_parts(case, *_find_standing_changes(case, culprit.sha)):
        summary = f"undid {_count_lines(part)} of {short} at {part.where}"
        approval = None if part.lines <= MAX_UNASKED_LINES else asks
        yield Proposal("revert", part.patch, summary, cause, culprit, approval=approval)


def _bisect_failure(case: RepairCase) -> Bisection:
    job = BisectJob(
        trial=case.trial,
        good=case.base,
        bad=case.rev,
        max_minutes=max(0.5, case.stop.left * _BISECT_TIME_SHARE / 60),
        verify=False,
        resume=case.job.memory is not None,
        reuse=False,
        jobs=_BISECT_JOBS,
    )
    return run_bisection(
        job,
        git=case.git,
        sandbox=case.sandbox,
        memory=case.job.memory,
        cancel=case.stop.cancel,
        progress=case.say,
    )


def _find_standing_changes(case: RepairCase, sha: str) -> tuple[dict[str, str], dict[str, str]]:
    """The files that the commit broke something in: as they are now, and with the commit's remaining lines undone."""
    now: dict[str, str] = {}
    then: dict[str, str] = {}
    parents = case.git.commit(sha).parents
    if not parents:  # the first commit has no earlier state
        return now, then
    for path in _select_revertible_paths(case.git.changed_paths(sha)):
        text = read_original(case, path)
        before, since = case.git.show(parents[0], path), case.git.show(sha, path)
        if text is None or before is None or since is None:
            continue
        now[path] = text
        then[path] = undo_all_pieces(
            text, before.decode("utf-8", "replace"), since.decode("utf-8", "replace")
        )
    return now, then


def _select_revertible_paths(paths: Sequence[str]) -> tuple[str, ...]:
    """The sources among the paths of a commit, or its tests where it changes no source: then they are what it broke."""
    code = [path for path in paths if not is_document(path)]
    return tuple([path for path in code if not is_test(path)] or code)


def _find_only_commit(case: RepairCase) -> GuiltyCommit | None:
    """The only commit of the change under repair, if it has one: bisection is then not needed."""
    commits = case.git.commits(case.base, case.rev) if case.base is not None else []
    return GuiltyCommit.read_commit(case.git, commits[0].sha) if len(commits) == 1 else None


def _make_revert_patches(case: RepairCase, sha: str) -> Iterator[tuple[str, str]]:
    """Patches that revert `sha`, the whole commit first unless it contains tests."""
    paths = case.git.changed_paths(sha)
    sources = _select_revertible_paths(paths)
    framed = tuple(
        dict.fromkeys(
            frame.path
            for failure in case.before.failures
            for frame in failure.frames
            if frame.path in sources
        )
    )
    tests = [path for path in paths if is_test(path)]
    choices: list[tuple[tuple[str, ...], str]] = []
    if sources:
        kind = "test" if is_test(sources[0]) else "source"
        choices.append((sources, f"reverted the {kind} changes of {sha[:12]}"))
    if len(framed) < len(sources) and framed:
        choices.append((framed, f"reverted {sha[:12]} in the files on the failing path"))
    whole: tuple[tuple[str, ...], str] = ((), f"reverted {sha[:12]}")
    choices.insert(len(choices) if tests else 0, whole)
    made: set[str] = set()
    for chosen, summary in choices:
        commit = case.git.revert(sha, case.rev, paths=chosen)
        patch = case.git.diff(case.rev, commit) if commit else ""
        if patch and patch not in made:
            made.add(patch)
            yield patch, summary


# The shrink rung: the part of the change whose revert makes the command green.
#
# A few lines may be published; more need a person, who knows whether the rest still makes sense.

_MOST_LINES = 20  # lines that may be proposed to a person


class ShrinkRung:
    """Delta-debugs the change under repair; proposes a patch only if it reverts few lines."""

    name: RungName = "shrink"

    def propose_fix(self, case: RepairCase, judge: JudgeProposal) -> RungResult:
        """Find the smallest part to revert; propose it if it is small, else pass it on as a hint."""
        if case.base is None:
            note = "no base was given, so there is no change to shrink"
            return RungResult(note=note, outcome="skipped")
        now, then = _read_changed_sources(case)
        if not split_difference(now, then):
            none = now == then
            return RungResult(
                note="the change touches no existing source" if none else "the change is too large"
            )
        hints: list[str] = []
        refused: PatchVerdict | None = None
        for part in find_guilty_parts(case, now, then):
            hints.append(
                f"taking back {_count_lines(part)} of the change ({part.where}) makes the command green:\n{part.patch[:3000]}"
            )
            if part.lines > _MOST_LINES or part.is_all:
                note = (
                    f"the guilty part of the change has {part.lines} lines: too much to take back"
                )
                return RungResult(hints=tuple(hints), note=note)
            judgement = judge(self._make_proposal(part))
            if judgement.is_accepted:
                return RungResult(judgement, tuple(hints), outcome=judgement.outcome)
            refused = judgement
        if refused is not None:
            return RungResult(hints=tuple(hints), outcome=refused.outcome)
        return RungResult(note="taking the change's source back does not help")

    def _make_proposal(self, part: RevertedPart) -> Proposal:
        small = part.lines <= MAX_UNASKED_LINES
        asks = f"takes back {_count_lines(part)} of the change: look whether the rest still makes sense"
        return Proposal(
            self.name,
            part.patch,
            f"took back {part.lines} of the change's lines at {part.where}",
            f"the change at {part.where} broke it",
            approval=None if small else asks,
        )


def _count_lines(part: RevertedPart) -> str:
    return f"{part.lines} line{'s' if part.lines != 1 else ''}"


def _read_changed_sources(case: RepairCase) -> tuple[dict[str, str], dict[str, str]]:
    """The change's source files, after and before it."""
    now: dict[str, str] = {}
    then: dict[str, str] = {}
    assert case.base is not None  # noqa: S101 - the caller has looked
    for file in changed_files(case.git, case.base, case.rev):
        mine = is_source(file.path) and file.path not in case.trial.overlay and not file.binary
        if mine and file.old is not None and file.new is not None:
            now[file.path], then[file.path] = file.new, file.old
    return now, then
