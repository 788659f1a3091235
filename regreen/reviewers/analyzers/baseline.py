"""An analyzer's claims: only what a change brings, which is its hits at the head less those at the merge base.

Code that only moved, within its file or to another, keeps its hits and is not blamed for them.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from regreen.code.diff import FileChange
from regreen.code.paths import is_test
from regreen.domain.models import Dimension, Evidence, Severity, Side, SkippedReviewer
from regreen.reviewers.context import Claim, ReviewContext, ReviewerReport
from regreen.reviewers.findings import normalise_code

_PRIOR_STRENGTH = 10
"""How many comments a confidence that was set by hand is worth."""


@dataclass(frozen=True, slots=True)
class AnalyzerRule:
    """A row of the table; `mend`: the pattern and replacement that repair the lines of a hit, where it is found once."""

    severity: Severity
    confidence: float
    why: str
    cwe: int = 0
    sign: str = ""
    mend: tuple[str, str] | None = None


def _make_rule(row: dict[str, Any]) -> AnalyzerRule:
    """A rule whose stated confidence is moved by what was measured: `measured` has how many of its comments were right."""
    right, posted = row.pop("measured", (0, 0))
    moved = (row["confidence"] * _PRIOR_STRENGTH + right) / (_PRIOR_STRENGTH + posted)
    return AnalyzerRule(**{**row, "confidence": round(moved, 3)})


def _load_rules() -> dict[str, Mapping[str, AnalyzerRule]]:
    table = resources.files("regreen.reviewers.analyzers").joinpath("trusted_rules.toml")
    return {
        tool: {code: _make_rule(row) for code, row in rows.items()}
        for tool, rows in tomllib.loads(table.read_text("utf-8")).items()
    }


_RULES = _load_rules()
RUFF_RULES, PYRIGHT_RULES = _RULES["ruff"], _RULES["basedpyright"]
RUFF_SECURITY_RULES = _RULES["ruff_security"]
SCRIPT_RULES = {tool: _RULES[tool] for tool in ("tsc", "untyped", "oxlint")}

_BUILT_IN = r"(?:Literal\[[^\]\n]{1,80}\]|int|str|bytes|float|bool|list\[[^\"\n]{1,80}\]|dict\[[^\"\n]{1,80}\]|set\[[^\"\n]{1,80}\])"
_PLAIN_TYPES = re.compile(rf'not supported for types "{_BUILT_IN}" and "{_BUILT_IN}"')
_VALUE_RULES = frozenset({"reportOperatorIssue", "reportAttributeAccessIssue", "reportIndexIssue"})


def rule_confidence(rule: AnalyzerRule, code: str, message: str) -> float:
    """A rule's confidence, raised where its words leave no doubt of the types: a coroutine, or built-in ones."""
    if code == "reportGeneralTypeIssues" and "cannot appear after fields with default" in message:
        return 0.95
    if code in _VALUE_RULES and "CoroutineType[" in message:
        return 0.92
    if code == "reportOperatorIssue" and _PLAIN_TYPES.search(message):
        return 0.86
    return rule.confidence


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One hit of an analyzer: its rule, place (1-based lines) and words; `suggestion` is what its lines should be."""

    rule: str
    path: str
    line: int
    end_line: int
    message: str
    severity: str = ""
    suggestion: str | None = None


_MAX_MENDED_CHARACTERS = 400


def replace_single_match(rows: Sequence[str], mend: tuple[str, str] | None) -> str | None:
    """These rows with the one place that a pattern finds in them replaced; None where it finds none or several."""
    text = "\n".join(row.removesuffix("\r") for row in rows)
    if mend is None or len(text) > _MAX_MENDED_CHARACTERS:
        return None
    mended, count = re.subn(*mend, text)
    return mended if count == 1 else None


def make_analyzer_claim(
    rule: str,
    severity: Severity,
    path: str,
    lines: tuple[int, int],
    *,
    title: str,
    body: str,
    confidence: float,
    excerpt: str,
    source: str,
    head: str | None = None,
    base: str | None = "not there",
    dimension: Dimension = "correctness",
    side: Side = "RIGHT",
    symbol: str = "",
    code: str = "",
    quotes: str = "",
    anywhere: bool = False,
    suggestion: str | None = None,
) -> Claim:
    """A claim with one piece of evidence: what the analyzer `source` saw.

    `excerpt`, `head` (the title where None) and `base` belong to the evidence, everything else to the `Claim`.
    """
    shown = Evidence("analyzer", excerpt, source, head=head or title, base=base)
    return Claim(
        dimension,
        rule,
        severity,
        path,
        *lines,
        title,
        body,
        confidence,
        side,
        evidence=(shown,),
        symbol=symbol,
        code=code,
        quotes=quotes,
        anywhere=anywhere,
        suggestion=suggestion,
    )


def select_new_diagnostics(
    context: ReviewContext,
    head_hits: Sequence[Diagnostic],
    base_hits: Callable[[], Sequence[Diagnostic]],
    *,
    sure: Callable[[Diagnostic], bool] = lambda _hit: False,
) -> list[Diagnostic]:
    """The head's hits that the merge base did not have, compared by rule and by the code of their lines.

    On added lines these are all of them; on other lines of the changed files, those of `sure` rules, which an edit
    elsewhere in the file caused (see `commentable_range`). `base_hits` is only called when there is something to compare; its paths are the base's.
    The change's own files, deleted ones included, should be in it, so that moved code is recognised.
    """
    touched = [h for h in head_hits if _touches_change(context, h)]
    beside = [
        h
        for h in head_hits
        if sure(h) and not _touches_change(context, h) and _is_changed(context, h)
    ]
    if not beside and not find_base_files(context, touched):
        return touched
    before = Counter(_diagnostic_key(h, context.base_text(h.path)) for h in base_hits())
    untouched = Counter(
        _diagnostic_key(h, context.head_text(h.path))
        for h in head_hits
        if not _touches_change(context, h)
    )
    caused = untouched - before
    old = before - untouched  # what still stands where it stood cannot have moved as well
    new: list[Diagnostic] = []
    for hit in touched:
        key = _diagnostic_key(hit, context.head_text(hit.path))
        if old[key] > 0:
            old[key] -= 1
        else:
            new.append(hit)
    for hit in beside:
        key = _diagnostic_key(hit, context.head_text(hit.path))
        if caused[key] > 0:
            caused[key] -= 1
            new.append(hit)
    return new


def find_base_files(context: ReviewContext, hits: Sequence[Diagnostic]) -> set[str]:
    """The changed files that had the code of one of these hits; no other file of the base can have such a hit."""
    codes = {_diagnostic_key(hit, context.head_text(hit.path))[1] for hit in hits}
    before = {f.old_path for f in context.change.files if f.status != "added"} if codes else set()
    texts = {
        path: normalise_code(text)
        for path in before
        if (text := context.base_text(path)) is not None
    }
    return {path for path, text in texts.items() if any(code in text for code in codes)}


def _is_changed(context: ReviewContext, hit: Diagnostic) -> bool:
    file = context.change.by_path.get(hit.path)
    return file is not None and file.changed_line_count > 0


def commentable_range(context: ReviewContext, hit: Diagnostic) -> tuple[int, int]:
    """The lines for a comment on a hit: its own lines, or the nearest added line if the diff does not show them."""
    file = context.change.by_path.get(hit.path)
    if file is None or file.can_anchor(hit.line, hit.end_line, "RIGHT") or not file.added_lines:
        return hit.line, hit.end_line
    near = min(file.added_lines, key=lambda n: abs(n - hit.line))
    return near, near


def _touches_change(context: ReviewContext, hit: Diagnostic) -> bool:
    file = context.change.by_path.get(hit.path)
    return file is not None and file.touches_lines(hit.line, hit.end_line)


def _diagnostic_key(hit: Diagnostic, text: str | None) -> tuple[str, str]:
    rows = (text or "").split("\n")
    return hit.rule, normalise_code("\n".join(rows[hit.line - 1 : hit.end_line]))


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


def refused_call_claim(  # noqa: PLR0917
    path: str, line: int, code: str, signature: str, module: str, why: str
) -> Claim:
    """A new call that its target refuses; `why` as Python would say it."""
    return make_analyzer_claim(
        "contracts/refused-call",
        "high",
        path,
        (line, line),
        title=f"This call raises `TypeError`: {why}",
        body=f"`{signature}` in {module} is what `{code[:160]}` calls.",
        confidence=0.9,
        excerpt=code[:300],
        source="call graph",
        head=why,
        base="not there",
        code=code,
    )


def _claim_confidence(places: Sequence[BrokenUse]) -> float:
    return 0.9 if any(not is_test(p.path) for p in places) else 0.85


def _format_places(places: Sequence[BrokenUse]) -> str:
    return "\n".join(f"{p.path}:{p.line}: {p.code[:200]}" for p in places[:_MAX_SHOWN_PLACES])
