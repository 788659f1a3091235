"""The revert rung: find the commit that broke it by bisection, and take that commit back, as little of it as works."""

from __future__ import annotations

from collections.abc import Iterator

from regreen.bisect.report import headline
from regreen.bisect.result import Bisection
from regreen.bisect.run import BisectJob, bisect
from regreen.fixers.case import Case, Climbed, Culprit, Judge, Judgement, Proposal, RungName
from regreen.fixers.checks.paths import is_test
from regreen.fixers.hunks import all_taken_off
from regreen.fixers.take_back import UNASKED, guilty_parts
from regreen.fixers.workspace import original

_FEW = 3
_SHARE = 0.5  # of the time left: the rungs above need the rest


class Revert:
    """Revert of the bisected culprit: whole, then its source alone, then its hunks on the failing path."""

    name: RungName = "revert"

    def climb(self, case: Case, judge: Judge) -> Climbed:
        """Bisect, then try one revert after the other."""
        if case.stop.left < 30:
            return Climbed(note="no time left to bisect")
        if (only := _only_commit(case)) is not None:
            hint = f"the change is one commit, {only.sha[:12]} ({only.subject}), and its base is not red in this way"
            note = "the change is one commit; taking it back would undo the whole change"
            return Climbed(hints=(hint,), note=note, culprit=only, cause=_cause(only))
        found = _bisect(case)
        suspects = _suspects(case, found)
        if not suspects:
            return Climbed(note=f"bisection: {headline(found)}")
        hints = tuple(
            f"the bisection blames {one.sha[:12]} ({one.subject}), probability {probability:.1%}"
            for one, probability in suspects
        )
        best: Judgement | None = None
        for culprit, _ in suspects:
            judgement = _best_revert(case, culprit, judge)
            if judgement is not None and judgement.outcome == "accepted":
                return Climbed(judgement, hints, "", "accepted", culprit, _cause(culprit))
            best = best or judgement
        alone = suspects[0][0] if len(suspects) == 1 else None
        if best is not None:
            return Climbed(
                best, hints, "", best.outcome, best.proposal.culprit, best.proposal.cause
            )
        note = "taking the commit back does not apply, or does not help"
        return Climbed(
            None, hints, note, "nothing_proposed", alone, _cause(alone) if alone else None
        )


def _suspects(case: Case, found: Bisection) -> list[tuple[Culprit, float]]:
    """The culprit; where the search could only narrow it down, the few commits that are left: a revert decides."""
    if found.culprit is not None:
        return [(Culprit(found.culprit.sha, found.culprit.subject), found.probability)]
    if found.outcome != "narrowed" or len(found.credible_set) > _FEW:
        return []
    return [
        (Culprit(one.sha, case.git.commit(one.sha).subject), one.probability)
        for one in found.credible_set
    ]


def _cause(culprit: Culprit) -> str:
    return f"{culprit.sha[:12]} ({culprit.subject}) broke it"


def _best_revert(case: Case, culprit: Culprit, judge: Judge) -> Judgement | None:
    """The first revert of this commit that is accepted, else the first that a person may accept."""
    cause = _cause(culprit)
    best: Judgement | None = None
    for patch, summary in _reverts(case, culprit.sha):
        judgement = judge(Proposal("revert", patch, summary, cause, culprit))
        if judgement.outcome == "accepted":
            return judgement
        if judgement.stands and best is None:
            best = judgement
    part = _partly(case, culprit, cause, judge)
    return part if part is not None and (best is None or part.outcome == "accepted") else best


def _bisect(case: Case) -> Bisection:
    job = BisectJob(
        trial=case.trial,
        good=case.job.good or case.base,
        bad=case.rev,
        max_minutes=max(0.5, case.stop.left * _SHARE / 60),
        verify=False,
    )
    return bisect(
        job, git=case.git, sandbox=case.sandbox, cancel=case.stop.cancel, progress=case.say
    )


def _partly(case: Case, culprit: Culprit, cause: str, judge: Judge) -> Judgement | None:
    """The least part of the commit that still stands and whose undoing helps, the first that is accepted.

    A part of a commit may be more, or less, than its fault: a person has to agree, unless it is a few lines and the
    project's tests are there to say that the rest does without them.
    """
    best: Judgement | None = None
    for part in guilty_parts(case, *_standing(case, culprit.sha)):
        short = culprit.sha[:12]
        small = part.lines <= UNASKED and case.tests_hold()
        asks = f"only a part of {short} is taken back; look whether the rest still makes sense"
        judgement = judge(
            Proposal(
                "revert",
                part.patch,
                f"undid {part.lines} line{'s' if part.lines != 1 else ''} of {short} at {part.where}",
                cause,
                culprit,
                approval=None if small else asks,
            )
        )
        if judgement.outcome == "accepted":
            return judgement
        if judgement.stands and best is None:
            best = judgement
    return best


def _standing(case: Case, sha: str) -> tuple[dict[str, str], dict[str, str]]:
    """The source files that the commit changed, as they are now, and with all of it undone that still stands."""
    now: dict[str, str] = {}
    then: dict[str, str] = {}
    parents = case.git.commit(sha).parents
    if not parents:  # the first commit: nothing was there before it to go back to
        return now, then
    for path in case.git.changed_paths(sha):
        text = original(case, path)
        before, since = case.git.show(parents[0], path), case.git.show(sha, path)
        if text is None or before is None or since is None or is_test(path) or _is_log(path):
            continue
        now[path] = text
        then[path] = all_taken_off(
            text, before.decode("utf-8", "replace"), since.decode("utf-8", "replace")
        )
    return now, then


def _only_commit(case: Case) -> Culprit | None:
    """The one commit of the change under repair: then a revert is no repair of it, and nothing needs bisecting."""
    commits = case.git.commits(case.base, case.rev) if case.base is not None else []
    return Culprit(commits[0].sha, commits[0].subject) if len(commits) == 1 else None


def _reverts(case: Case, sha: str) -> Iterator[tuple[str, str]]:
    """Patches that take `sha` back, the whole commit first unless it brought tests along."""
    paths = case.git.changed_paths(sha)
    sources = tuple(path for path in paths if not is_test(path) and not _is_log(path))
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
        choices.append((sources, f"reverted the source changes of {sha[:12]}"))
    if len(framed) < len(sources) and framed:
        choices.append((framed, f"reverted {sha[:12]} in the files on the failing path"))
    whole: tuple[tuple[str, ...], str] = ((), f"reverted {sha[:12]}")
    choices.insert(len(choices) if tests else 0, whole)
    seen: set[str] = set()
    for chosen, summary in choices:
        commit = case.git.revert(sha, case.rev, paths=chosen)
        patch = case.git.diff(case.rev, commit) if commit else ""
        if patch and patch not in seen:
            seen.add(patch)
            yield patch, summary


def _is_log(path: str) -> bool:
    """Changelogs conflict more than anything else, and nothing depends on them."""
    name = path.rsplit("/", 1)[-1].lower()
    return name.startswith(("changelog", "changes", "history", "news")) or name.endswith(
        (".md", ".rst")
    )
