"""Turns claims into findings: anchored in the diff, named by their enclosing symbol, with a lasting fingerprint."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from regreen.code.config_loaders import load_toml
from regreen.code.diff import FileChange, apply_suggestion
from regreen.code.python_calls import parse_syntax_tree
from regreen.code.symbols import Outline, read_outline
from regreen.domain.models import Finding, WithheldFinding
from regreen.languages.registry import has_capability
from regreen.reviewers.context import Claim, ReviewContext
from regreen.secrets import markdown_sanitizer
from regreen.secrets.credential_detection import mask_credentials, masks_by_credential


@dataclass(frozen=True, slots=True)
class Candidate:
    """A finding on its way to the ranking, with the claim it came from.

    `places` are further names for it, which stay when a model words the finding differently; see `keys_by_quoted_code`.
    """

    finding: Finding
    claim: Claim
    places: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """Its fingerprint and its places."""
        return self.places | {self.finding.fingerprint}


def anchor_claims(
    claims: list[Claim], context: ReviewContext
) -> tuple[list[Candidate], list[WithheldFinding]]:
    """Place every claim in the diff; those without a place are withheld as `outside_diff`."""
    candidates: list[Candidate] = []
    outside: list[WithheldFinding] = []
    sources = _SourceCache(context)
    for claim in claims:
        file = context.change.by_path.get(claim.path)
        finding = _mask_credentials(
            _make_finding(claim, file, sources), sources.find_credentials(claim, file)
        )
        if file is None or not _is_new(claim, file):
            outside.append(WithheldFinding(finding, "outside_diff"))
        else:
            source = sources.source_for(claim, file)
            places = keys_by_quoted_code(finding, source.text if source else None)
            again = {claim.again} if claim.again else set()
            candidates.append(Candidate(finding, claim, places | again))
    return candidates, outside


def make_fingerprint(path: str, rule: str, code: str, symbol: str) -> str:
    """A name for a finding that survives moved lines, squashed commits and re-indentation."""
    parts = "\0".join((path, rule, normalise_code(code), symbol))
    return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def keys_by_quoted_code(finding: Finding, text: str | None) -> frozenset[str]:
    """The names of a finding besides its fingerprint: a model's by its code, whatever the words.

    All of its lines together are one name, and each distinctive line is one: the next reading may quote one line
    more or less. `text` is the file's, on the finding's side.
    """
    if text is None or not finding.rule.startswith("model/"):
        return frozenset()
    code = finding_code(finding, text)
    lines = [
        line for line in code.split("\n") if len(normalise_code(line)) >= _MIN_TELLING_CHARACTERS
    ]
    return frozenset(make_fingerprint(finding.path, "model", c, "") for c in (code, *lines))


def finding_code(finding: Finding, text: str) -> str:
    """The lines of a finding."""
    return "\n".join(text.split("\n")[finding.start_line - 1 : finding.line])


def normalise_code(code: str) -> str:
    """Code without what a formatter may change: white space, trailing commas, the kind of quotes."""
    squeezed = re.sub(r"\s+", "", code).replace("'", '"')
    return re.sub(r",(?=[)\]}])", "", squeezed)


_MIN_TELLING_CHARACTERS = 12
"""Length without white space from which a line of code identifies its place in a file."""


def _is_new(claim: Claim, file: FileChange) -> bool:
    """Whether the claim is about this change and at a place that can hold a comment."""
    if file.fit_to_hunk(claim.start_line, claim.line, claim.side) is None:
        return False
    if claim.anywhere:
        return True
    if claim.side == "LEFT":
        return any(claim.start_line <= n <= claim.line for n in file.removed_lines)
    return file.touches_lines(claim.start_line, claim.line)


@dataclass(frozen=True, slots=True)
class _SourceSide:
    """One side of one file, read once for all its claims."""

    text: str
    rows: list[str]
    outline: Outline


class _SourceCache:
    def __init__(self, context: ReviewContext) -> None:
        self._context = context
        self._read: dict[tuple[str, str], _SourceSide | None] = {}
        self._credentials: dict[str, dict[str, str]] = {}

    def source_for(self, claim: Claim, file: FileChange | None) -> _SourceSide | None:
        """The text that a claim's line numbers refer to."""
        path = file.old_path if file and claim.side == "LEFT" else claim.path
        key = (claim.side, path)
        if key not in self._read:
            look = self._context.head_text if claim.side == "RIGHT" else self._context.base_text
            self._read[key] = _make_source(path, look(path))
        return self._read[key]

    def find_credentials(self, claim: Claim, file: FileChange | None) -> dict[str, str]:
        """The credentials in a claim's file, each with its masked form."""
        source = self.source_for(claim, file)
        if source is None:
            return {}
        if claim.path not in self._credentials:
            self._credentials[claim.path] = masks_by_credential(source.text, claim.path)
        return self._credentials[claim.path]


def _mask_credentials(finding: Finding, known: Mapping[str, str]) -> Finding:
    """The finding without credentials, wherever they are quoted; a suggestion with one is dropped."""

    def hushed(text: str) -> str:
        for value, shown in known.items():
            text = text.replace(value, shown)
        return mask_credentials(text)

    is_clean = finding.suggestion is None or hushed(finding.suggestion) == finding.suggestion
    return replace(
        finding,
        title=hushed(finding.title),
        body=hushed(finding.body),
        suggestion=finding.suggestion if is_clean else None,
        evidence=tuple(
            replace(
                evidence,
                excerpt=hushed(evidence.excerpt),
                head=evidence.head and hushed(evidence.head),
                base=evidence.base and hushed(evidence.base),
            )
            for evidence in finding.evidence
        ),
    )


def _make_source(path: str, text: str | None) -> _SourceSide | None:
    if text is None:
        return None
    shape = read_outline(path, text.encode("utf-8", "surrogateescape"))
    return _SourceSide(text, text.split("\n"), shape)


def _make_finding(claim: Claim, file: FileChange | None, sources: _SourceCache) -> Finding:
    place = file.fit_to_hunk(claim.start_line, claim.line, claim.side) if file else None
    start, line = place or (claim.start_line, claim.line)
    source = sources.source_for(claim, file)
    code, symbol = claim.code, claim.symbol
    if source is not None:
        around = source.outline.definition_at(claim.line)
        code = code or "\n".join(source.rows[claim.start_line - 1 : claim.line])
        symbol = symbol or (around.name if around else "")
    name = make_fingerprint(claim.path, claim.rule, code, symbol)
    whole = (start, line) == (claim.start_line, claim.line)
    if claim.suggestion is not None and source is not None and claim.rule.startswith("model/"):
        whole = whole and is_safe_to_commit_unread(
            claim.suggestion, "\n".join(source.rows[start - 1 : line])
        )
    suggestion = (
        trim_suggestion_or_reject(claim.suggestion, file, source.text, start, line)
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


# A suggestion is shown only if it can be committed unchanged and the file still parses.

MAX_SUGGESTION_LINES = 5
_MAX_TEXT_CHARACTERS = 1000
_SLASH_COMMAND = re.compile(r"^[ \t]*/[A-Za-z]", re.MULTILINE)
_ACTING_CODE = re.compile(
    r"://|\b(?:import|require|include|__import__|importlib|eval|exec|compile|execfile|system|popen|spawn\w*|fork|subprocess"
    r"|child_process|socket|urlopen|urllib|requests|httpx?|fetch|curl|wget|netcat|nc|ssh|base64|b64decode|fromhex|pickle"
    r"|loads|marshal|ctypes|getattr|setattr|globals|environ|getenv|process\.env|chmod|rmtree|unlink|powershell|bash|sh)\b"
)


def trim_suggestion_or_reject(
    suggestion: str, file: FileChange, text: str, start: int, line: int
) -> str | None:
    """The suggestion, without repeated neighbouring lines; None if it must not be shown."""
    rows = text.split("\n")
    if (
        not file.can_suggest(start, line)
        or line > len(rows)
        or line - start >= MAX_SUGGESTION_LINES
    ):
        return None
    new = suggestion.removesuffix("\n").split("\n") if suggestion else []
    new = _drop_repeated_neighbours(new, rows, start, line)
    old = [x.removesuffix("\r") for x in rows[start - 1 : line]]
    if new == old or len(new) > MAX_SUGGESTION_LINES:
        return None
    mended = "\n".join(new)
    after = apply_suggestion(text, start, line, mended)
    if after is None or (is_well_formed(file.path, text) and not is_well_formed(file.path, after)):
        return None
    return mended


def is_safe_to_commit_unread(suggestion: str, replaced: str) -> bool:
    """Whether a model's suggestion is safe to commit with one click and a quick glance.

    Hidden characters, addresses, and names that run, load or send something must stand in the replaced lines already.
    No line may look like a bot's command: not every bot recognises a code fence.
    """
    if (
        markdown_sanitizer.remove_hidden(suggestion) != suggestion
        or len(suggestion) > _MAX_TEXT_CHARACTERS
    ):
        return False
    if _SLASH_COMMAND.search(suggestion):
        return False
    had = set(_ACTING_CODE.findall(replaced.lower()))
    return all(word in had for word in _ACTING_CODE.findall(suggestion.lower()))


def is_well_formed(path: str, text: str) -> bool:
    """Whether the file is well-formed, as far as its kind can be checked; True otherwise."""
    try:
        if has_capability(path, "syntax tree", stubs=True):
            parse_syntax_tree(text.encode("utf-8", "surrogateescape"))
        elif path.endswith(".json"):
            json.loads(text)
        elif path.endswith(".toml"):
            load_toml(text)
        elif path.endswith((".yml", ".yaml")):
            _parse_yaml(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _parse_yaml(text: str) -> None:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        list(YAML(typ="safe", pure=True).parse(text))
    except YAMLError as error:
        raise ValueError(str(error)) from error


def _drop_repeated_neighbours(new: list[str], rows: list[str], start: int, line: int) -> list[str]:
    """Drop a first or last line that repeats the line above or below: committed, it would be doubled."""
    above = rows[start - 2].removesuffix("\r") if start >= 2 else None
    below = rows[line].removesuffix("\r") if line < len(rows) else None
    old = [x.removesuffix("\r") for x in rows[start - 1 : line]]
    if (
        len(new) > 1
        and above is not None
        and above.strip()
        and new[0] == above
        and new[0] != old[0]
    ):
        new = new[1:]
    if (
        len(new) > 1
        and below is not None
        and below.strip()
        and new[-1] == below
        and new[-1] != old[-1]
    ):
        new = new[:-1]
    return new
