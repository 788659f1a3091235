"""Claims become findings: anchored in the diff, named by what encloses them, with a fingerprint that lasts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from regreen.codebase.diff import FileChange
from regreen.codebase.secret_patterns import credentials, redact
from regreen.codebase.symbols import Outline, outline
from regreen.models import Finding, Withheld
from regreen.reviewers.context import Claim, ReviewContext
from regreen.reviewers.suggestion import decent, sound


@dataclass(frozen=True, slots=True)
class Candidate:
    """A finding on its way to the ranking, with the claim it came from.

    `places` are further names for it, which last where a model words the same finding anew; see `places_of`.
    """

    finding: Finding
    claim: Claim
    places: frozenset[str] = frozenset()


def settle(claims: list[Claim], context: ReviewContext) -> tuple[list[Candidate], list[Withheld]]:
    """Give every claim its place in the diff; those that have none are withheld as `outside_diff`."""
    candidates: list[Candidate] = []
    outside: list[Withheld] = []
    sources = _Sources(context)
    for claim in claims:
        file = context.change.by_path.get(claim.path)
        finding = _hushed(_finding(claim, file, sources), sources.credentials(claim, file))
        if file is None or not _is_new(claim, file):
            outside.append(Withheld(finding, "outside_diff"))
        else:
            source = sources.of(claim, file)
            places = places_of(finding, source.text if source else None)
            again = {claim.again} if claim.again else set()
            candidates.append(Candidate(finding, claim, places | again))
    return candidates, outside


def fingerprint(path: str, rule: str, code: str, symbol: str) -> str:
    """A name for a finding that stays when lines move, commits are squashed or the code is re-indented."""
    parts = "\0".join((path, rule, normalise(code), symbol))
    return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def places_of(finding: Finding, text: str | None) -> frozenset[str]:
    """What a finding is told by besides its fingerprint: a model's by the code it stands on, whatever the words.

    All of its lines together are one name, and each line that says enough to be told from others is one: the next
    reading may quote one line more or less. `text` is the file's, on the finding's side.
    """
    if text is None or not finding.rule.startswith("model/"):
        return frozenset()
    code = code_of(finding, text)
    lines = [line for line in code.split("\n") if len(normalise(line)) >= _TELLING]
    return frozenset(fingerprint(finding.path, "model", c, "") for c in (code, *lines))


def code_of(finding: Finding, text: str) -> str:
    """The lines that a finding stands on."""
    return "\n".join(text.split("\n")[finding.start_line - 1 : finding.line])


def normalise(code: str) -> str:
    """Code without what a formatter may change: white space, trailing commas, the kind of quotes."""
    squeezed = re.sub(r"\s+", "", code).replace("'", '"')
    return re.sub(r",(?=[)\]}])", "", squeezed)


_TELLING = 12
"""Letters, white space left out, from which on a line of code is hardly in a file twice for two reasons."""


def _is_new(claim: Claim, file: FileChange) -> bool:
    """Whether the claim stands on what this change brings, and where a comment can stand."""
    if file.fit(claim.start_line, claim.line, claim.side) is None:
        return False
    if claim.anywhere:
        return True
    if claim.side == "LEFT":
        return any(claim.start_line <= n <= claim.line for n in file.removed_lines)
    return file.touches(claim.start_line, claim.line)


@dataclass(frozen=True, slots=True)
class _Source:
    """One side of one file, read once for all its claims."""

    text: str
    rows: list[str]
    outline: Outline


class _Sources:
    def __init__(self, context: ReviewContext) -> None:
        self._context = context
        self._read: dict[tuple[str, str], _Source | None] = {}
        self._credentials: dict[str, dict[str, str]] = {}

    def of(self, claim: Claim, file: FileChange | None) -> _Source | None:
        """The text that a claim's lines count in."""
        path = file.old_path if file and claim.side == "LEFT" else claim.path
        key = (claim.side, path)
        if key not in self._read:
            look = self._context.after if claim.side == "RIGHT" else self._context.before
            self._read[key] = _source(path, look(path))
        return self._read[key]

    def credentials(self, claim: Claim, file: FileChange | None) -> dict[str, str]:
        """The credentials in the file that a claim is about, each with what may be shown of it."""
        source = self.of(claim, file)
        if source is None:
            return {}
        if claim.path not in self._credentials:
            self._credentials[claim.path] = credentials(source.text, claim.path)
        return self._credentials[claim.path]


def _hushed(finding: Finding, known: Mapping[str, str]) -> Finding:
    """The finding without credentials, whoever quoted the line they stand in; a suggestion with one is none."""

    def hushed(text: str) -> str:
        for value, shown in known.items():
            text = text.replace(value, shown)
        return redact(text)

    kept = finding.suggestion is None or hushed(finding.suggestion) == finding.suggestion
    return replace(
        finding,
        title=hushed(finding.title),
        body=hushed(finding.body),
        suggestion=finding.suggestion if kept else None,
        evidence=tuple(
            replace(
                one,
                excerpt=hushed(one.excerpt),
                head=one.head and hushed(one.head),
                base=one.base and hushed(one.base),
            )
            for one in finding.evidence
        ),
    )


def _source(path: str, text: str | None) -> _Source | None:
    if text is None:
        return None
    shape = outline(path, text.encode("utf-8", "surrogateescape"))
    return _Source(text, text.split("\n"), shape)


def _finding(claim: Claim, file: FileChange | None, sources: _Sources) -> Finding:
    place = file.fit(claim.start_line, claim.line, claim.side) if file else None
    start, line = place or (claim.start_line, claim.line)
    source = sources.of(claim, file)
    code, symbol = claim.code, claim.symbol
    if source is not None:
        around = source.outline.at(claim.line)
        code = code or "\n".join(source.rows[claim.start_line - 1 : claim.line])
        symbol = symbol or (around.name if around else "")
    name = fingerprint(claim.path, claim.rule, code, symbol)
    whole = (start, line) == (claim.start_line, claim.line)
    if claim.suggestion is not None and source is not None and claim.rule.startswith("model/"):
        whole = whole and decent(claim.suggestion, "\n".join(source.rows[start - 1 : line]))
    suggestion = (
        sound(claim.suggestion, file, source.text, start, line)
        if claim.suggestion is not None and whole and file and source is not None
        else None
    )
    return Finding(
        id=name[:8],
        fingerprint=name,
        dimension=claim.dimension,
        rule=claim.rule,
        severity=claim.severity,
        blocking=False,
        confidence=round(min(max(claim.confidence, 0.0), 1.0), 4),
        path=claim.path,
        start_line=start,
        line=line,
        side=claim.side,
        title=claim.title,
        body=claim.body,
        suggestion=suggestion if claim.side == "RIGHT" else None,
        evidence=claim.evidence,
        signals=claim.signals,
    )
