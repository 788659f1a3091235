"""A requirements or constraints file, parsed as pip parses it: names and options.

An attacker could hide a name in syntax that only the installer understands, so the rules for encoding, line
ends, continuations and abbreviated options here are pip's own.
"""

from __future__ import annotations

import codecs
import posixpath
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from regreen.packages.setup_inputs import path_in_tree

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CODING_COMMENT = re.compile(rb"coding[:=]\s*([-\w.]+)")
_SHORT_OPTIONS = {
    "--requirement": "-r", "--constraint": "-c", "--editable": "-e", "--find-links": "-f", "--index-url": "-i",
    "--pypi-url": "-i",
}  # fmt: skip
_WITH_VALUE = (
    "--requirement", "--constraint", "--editable", "--find-links", "--index-url", "--pypi-url", "--extra-index-url",
    "--trusted-host", "--no-binary", "--only-binary", "--use-feature",
)  # fmt: skip
_FLAG_OPTIONS = ("--no-index", "--pre", "--prefer-binary", "--require-hashes")


@dataclass(frozen=True, slots=True)
class RequirementLine:
    """One logical line. Options under their shortest name; those with a value in `options`, the others in `flags`."""

    number: int
    requirement: str
    options: tuple[tuple[str, str], ...] = ()
    flags: frozenset[str] = frozenset()


def decode_text(content: bytes) -> str:
    """The file's text in the encoding that pip would use."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return content[len(mark) :].decode(encoding, errors="replace")
    for line in content.split(b"\n", 2)[:2]:
        named = _CODING_COMMENT.search(line) if line.startswith(b"#") else None
        if named is not None:
            try:
                return content.decode(named[1].decode("ascii"), errors="replace")
            except LookupError:
                break
    return content.decode("utf-8", errors="replace")


def read_lines(text: str) -> Iterator[RequirementLine]:
    """The logical lines: continued lines joined, comments removed."""
    for number, line in _join_lines(text):
        requirement, options, flags = _split_options(line)
        yield RequirementLine(number, requirement, options, flags)


def included_files(line: RequirementLine, path: str) -> list[str]:
    """The files of the tree that a line of `path` includes."""
    places = [
        path_in_tree(posixpath.dirname(path), value)
        for name, value in line.options
        if name in {"-r", "-c"} and "://" not in value
    ]
    return [place for place in places if place]


def _join_lines(text: str) -> Iterator[tuple[int, str]]:
    pending, start = "", 0
    for number, raw in enumerate([*text.splitlines(), ""], 1):
        start = start or number
        comment = re.match(r"\s*#", raw)
        if raw.endswith("\\") and not comment:
            pending += raw[:-1]
            continue
        # pip joins lines before it drops comments; a comment line ends a continuation
        whole = re.sub(r"(?:^|\s)#.*$", "", pending + (" " if comment and pending else "") + raw)
        if whole.strip():
            yield start, whole.strip()
        pending, start = "", 0


def _split_options(line: str) -> tuple[str, tuple[tuple[str, str], ...], frozenset[str]]:
    """The requirement before the first option, then the options: `pkg --hash=x`, `--pre -i URL`."""
    words = line.split()
    first = next((at for at, word in enumerate(words) if word.startswith("-")), len(words))
    requirement = " ".join(words[:first])
    options: list[tuple[str, str]] = []
    flags: set[str] = set()
    rest = iter(_split_shell_words(" ".join(words[first:])))
    for word in rest:
        name, value = _parse_option(word)
        if name in _FLAG_OPTIONS:
            flags.add(name)
        elif name in _SHORT_OPTIONS.values() or name in _WITH_VALUE or name == "--hash":
            options.append((name, value if value is not None else next(rest, "")))
    return requirement, tuple(options), frozenset(flags)


def _parse_option(word: str) -> tuple[str, str | None]:
    """`--index-url=x`, `--index x`, `-ix`: the option's shortest name, and its value if attached."""
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        fitting = [
            option for option in (*_WITH_VALUE, *_FLAG_OPTIONS, "--hash") if option.startswith(name)
        ]
        full = name if name in fitting or not fitting else fitting[0]
        return _SHORT_OPTIONS.get(full, full), value if equals else None
    if word[:2] in _SHORT_OPTIONS.values():
        return word[:2], word[2:].removeprefix("=") or None
    return word, None


def _split_shell_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # an unclosed quote
        return text.split()
