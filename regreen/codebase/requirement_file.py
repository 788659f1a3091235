"""A requirements or constraints file, read as pip reads it: what it names, and which options it sets.

Whoever wants to get a name past a reader writes what only the installer understands, so the encoding, the line
ends, the continuations and the shortened options here are pip's own.
"""

from __future__ import annotations

import codecs
import posixpath
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from regreen.codebase.setup_needs import inside

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CODING = re.compile(rb"coding[:=]\s*([-\w.]+)")
_SHORT = {
    "--requirement": "-r", "--constraint": "-c", "--editable": "-e", "--find-links": "-f", "--index-url": "-i",
    "--pypi-url": "-i",
}  # fmt: skip
_WITH_VALUE = (
    "--requirement", "--constraint", "--editable", "--find-links", "--index-url", "--pypi-url", "--extra-index-url",
    "--trusted-host", "--no-binary", "--only-binary", "--use-feature",
)  # fmt: skip
_ALONE = ("--no-index", "--pre", "--prefer-binary", "--require-hashes")


@dataclass(frozen=True, slots=True)
class Line:
    """One logical line. Options by their shortest name; those with a value among `options`, the others in `flags`."""

    number: int
    requirement: str
    options: tuple[tuple[str, str], ...] = ()
    flags: frozenset[str] = frozenset()


def text_of(content: bytes) -> str:
    """The file's text in the encoding that pip would take it for."""
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return content[len(mark) :].decode(encoding, errors="replace")
    for line in content.split(b"\n", 2)[:2]:
        named = _CODING.search(line) if line.startswith(b"#") else None
        if named is not None:
            try:
                return content.decode(named[1].decode("ascii"), errors="replace")
            except LookupError:
                break
    return content.decode("utf-8", errors="replace")


def lines_of(text: str) -> Iterator[Line]:
    """What the file says, continued lines joined, comments left out."""
    for number, line in _joined(text):
        requirement, options, flags = _split(line)
        yield Line(number, requirement, options, flags)


def included(line: Line, path: str) -> list[str]:
    """The files of the tree that a line of `path` includes."""
    places = [
        inside(posixpath.dirname(path), value)
        for name, value in line.options
        if name in {"-r", "-c"} and "://" not in value
    ]
    return [place for place in places if place]


def _joined(text: str) -> Iterator[tuple[int, str]]:
    pending, start = "", 0
    for number, raw in enumerate([*text.splitlines(), ""], 1):
        start = start or number
        comment = re.match(r"\s*#", raw)
        if raw.endswith("\\") and not comment:
            pending += raw[:-1]
            continue
        # pip joins first and drops comments then; a comment line ends what was continued
        whole = re.sub(r"(?:^|\s)#.*$", "", pending + (" " if comment and pending else "") + raw)
        if whole.strip():
            yield start, whole.strip()
        pending, start = "", 0


def _split(line: str) -> tuple[str, tuple[tuple[str, str], ...], frozenset[str]]:
    """The requirement before the first option, then the options: `pkg --hash=x`, `--pre -i URL`."""
    words = line.split()
    first = next((at for at, word in enumerate(words) if word.startswith("-")), len(words))
    requirement = " ".join(words[:first])
    options: list[tuple[str, str]] = []
    flags: set[str] = set()
    rest = iter(_shell_words(" ".join(words[first:])))
    for word in rest:
        name, value = _option(word)
        if name in _ALONE:
            flags.add(name)
        elif name in _SHORT.values() or name in _WITH_VALUE or name == "--hash":
            options.append((name, value if value is not None else next(rest, "")))
    return requirement, tuple(options), frozenset(flags)


def _option(word: str) -> tuple[str, str | None]:
    """`--index-url=x`, `--index x`, `-ix`: the option's shortest name, and its value where it is glued on."""
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        fitting = [one for one in (*_WITH_VALUE, *_ALONE, "--hash") if one.startswith(name)]
        full = name if name in fitting or not fitting else fitting[0]
        return _SHORT.get(full, full), value if equals else None
    if word[:2] in _SHORT.values():
        return word[:2], word[2:].removeprefix("=") or None
    return word, None


def _shell_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # a quote that is not closed
        return text.split()
