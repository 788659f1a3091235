"""Why a text is no YAML, in words for whoever wrote it: the line, what is wrong there, what to do."""

from __future__ import annotations

import re

from ruamel.yaml.error import MarkedYAMLError, YAMLError

_TABLE = re.compile(r"\[\[?[\w.\-\"' ]+\]\]?\s*(?:#.*)?$")
_ASSIGNED = re.compile(r"[\w.\-\"']+\s*=\s*\S")
_SHOWN = 60

# What the parser says (its context and its problem), and what that means to somebody who writes the file.
_MEANINGS = (
    (re.compile(r"cannot start any token"), "this character cannot begin a value; quote the value, and indent with spaces, never with tabs"),
    (re.compile(r"quoted scalar.*(?:end of stream|document separator)"), "a quote is opened here and never closed"),
    (re.compile(r"flow (?:sequence|mapping)"), "a `[` or `{` is opened before this and not closed; a `,` may be missing"),
    (re.compile(r"mapping values are not allowed"), "a `:` where no key can stand; quote the value, or put the key on a line of its own"),
    (re.compile(r"could not find expected ':'"), "a key without its `:`"),
    (re.compile(r"expected <block end>|expected '<document start>'"), "this line does not go with those above it; see how far it is indented, and whether a `key:` is missing"),
    (re.compile(r"undefined alias"), "a `*alias` whose `&anchor` is nowhere above; quote the value if the `*` is meant"),
)  # fmt: skip


def fault(text: str, error: YAMLError | ValueError | RecursionError) -> tuple[int, str]:
    """The line, counted from 1, and what is wrong there.

    Args:
        text: what was read.
        error: what the reader said of it.
    """
    lines = text.splitlines()
    if _is_toml(lines):
        return 1, "not YAML but TOML or INI; write `key: value`"
    if isinstance(error, RecursionError):
        return 1, "not YAML: nested too deeply"
    if not isinstance(error, MarkedYAMLError):
        binary = re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", text)
        said = (str(error).splitlines() or [type(error).__name__])[0]
        if binary is None:
            return 1, f"not YAML: {said}"
        line = text.count("\n", 0, binary.start()) + 1
        return line, f"not YAML: a control character ({binary[0]!r}); is this a text file?"
    said = " ".join(part for part in (error.context, error.problem) if part)
    meant = next((words for pattern, words in _MEANINGS if pattern.search(said)), said)
    mark = error.problem_mark or error.context_mark
    if meant.startswith("a quote") and error.context_mark is not None:
        mark = error.context_mark
    at = mark.line if mark is not None else 0
    shown = lines[at].strip().replace("`", "'")[:_SHOWN] if at < len(lines) else ""
    return at + 1, f"not YAML: {meant}" + (f" (`{shown}`)" if shown else "")


def _is_toml(lines: list[str]) -> bool:
    said = [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
    begins = bool(said) and (_TABLE.match(said[0]) or _ASSIGNED.match(said[0]))
    return bool(begins) and any(map(_ASSIGNED.match, said))
