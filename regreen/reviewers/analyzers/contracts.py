"""The claims about broken contracts: a name that is removed and still used, a call that no longer fits."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass

from regreen.code.diff import FileChange
from regreen.code.paths import is_test
from regreen.domain.models import SkippedReviewer
from regreen.reviewers.analyzers.baseline import make_analyzer_claim
from regreen.reviewers.context import Claim, ReviewerReport

_MAX_SHOWN_PLACES = 3


@dataclass(frozen=True, slots=True)
class BrokenUse:
    """A place at the head that relies on what the change took away; `why` it fails, for a call."""

    path: str
    line: int
    code: str
    why: str = ""


def require_repository(name: str) -> ReviewerReport:
    """The report of a reviewer that cannot work on a patch alone."""
    reason = "needs the repository, not a patch alone"
    return ReviewerReport(skipped=(SkippedReviewer(name, reason),))


def removed_name_claim(
    file: FileChange, name: str, line: int, places: Sequence[BrokenUse], *, confidence: float = 0
) -> Claim:
    """A name that the change removes at this line of the base, or its whole module (""), and that is still used."""
    places = list({(p.path, p.line): p for p in places}.values())
    first = places[0]
    what = f"`{name}`" if name else f"`{posixpath.basename(file.old_path)}`"
    how = "removed" if name or file.status == "deleted" else "moved away"
    more = f" ({len(places)} places in all)" if len(places) > 1 else ""
    return make_analyzer_claim(
        "contracts/removed-still-used",
        "high",
        file.path,
        (line, line),
        title=f"{what} is {how} here and still used in {first.path}",
        body=f"`{first.code[:160]}` in {first.path}:{first.line}{more} no longer finds it.",
        confidence=confidence or _claim_confidence(places),
        side="LEFT",
        excerpt=_format_places(places),
        source="uses in the repository",
        head="not defined",
        base="defined",
        symbol=name,
        code=name or file.old_path,
    )


def broken_caller_claim(  # noqa: PLR0917
    file: FileChange,
    name: str,
    lines: tuple[int, int],
    signatures: tuple[str, str],
    places: Sequence[BrokenUse],
    effect: str,
) -> Claim:
    """Calls that no longer fit: `lines` are the definition's, `effect` is what such a call does."""
    first = places[0]
    callers = f"the call in {first.path}" if len(places) == 1 else f"{len(places)} of its callers"
    return make_analyzer_claim(
        "contracts/broken-caller",
        "high",
        file.path,
        lines,
        title=f"`{name}` no longer accepts {callers}",
        body=f"It was `{signatures[0]}` and is now `{signatures[1]}`. `{first.code[:160]}` in "
        f"{first.path}:{first.line} {effect}: {first.why}.",
        confidence=_claim_confidence(places),
        excerpt=_format_places(places),
        source="call graph",
        head=first.why,
        base="the call was accepted",
        symbol=name,
        code=name,
        anywhere=True,
    )


def _claim_confidence(places: Sequence[BrokenUse]) -> float:
    return 0.9 if any(not is_test(p.path) for p in places) else 0.85


def _format_places(places: Sequence[BrokenUse]) -> str:
    return "\n".join(f"{p.path}:{p.line}: {p.code[:200]}" for p in places[:_MAX_SHOWN_PLACES])
