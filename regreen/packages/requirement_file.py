"""A requirements file or a call of pip, parsed as pip parses it: names and options.

An attacker could hide a name in syntax that only the installer understands, so the rules for encoding, line
ends, continuations and abbreviated options here are pip's own.
"""

from __future__ import annotations

import codecs
import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from regreen.packages.setup_inputs import (
    ALL_INPUTS,
    ANY_FOLDER,
    NO_INPUTS,
    ReadFile,
    SetupInputs,
    compile_patterns,
    find_editable_inputs,
    resolve_path_in_tree,
)
from regreen.shell.tools import load_tools

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CODING_COMMENT = re.compile(rb"coding[:=]\s*([-\w.]+)")
_SHORT_OPTIONS = {
    "--requirement": "-r",
    "--constraint": "-c",
    "--editable": "-e",
    "--find-links": "-f",
    "--index-url": "-i",
    "--pypi-url": "-i",
}
_WITH_VALUE = (
    "--requirement",
    "--constraint",
    "--editable",
    "--find-links",
    "--index-url",
    "--pypi-url",
    "--extra-index-url",
    "--trusted-host",
    "--no-binary",
    "--only-binary",
    "--use-feature",
)
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


def read_requirement_lines(text: str) -> Iterator[RequirementLine]:
    """The logical lines: continued lines joined, comments removed."""
    for number, line in _join_lines(text):
        yield _parse_line(number, line)


def included_files(line: RequirementLine, path: str) -> list[str]:
    """The files of the tree that a line of `path` includes."""
    places = [
        resolve_path_in_tree(posixpath.dirname(path), value)
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


def _parse_line(number: int, line: str) -> RequirementLine:
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
    return RequirementLine(number, requirement, tuple(options), frozenset(flags))


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


REQUIREMENT_NAME = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]*\s*+(\[[^\]/]*\]\s*+)?([(<>=!~;].*)?", re.DOTALL
)
REQUIREMENT_URL = re.compile(
    r"(?:[A-Za-z0-9._-]+(?:\[[^\]]*\])?\s*@\s*)?(?:git|hg|svn|bzr)?\+?(?:https?|ssh|git)://.*"
)
_ARCHIVE_NAME = re.compile(r".*\.(whl|zip|tar\.gz|tgz|tar\.bz2|tar\.xz)", re.IGNORECASE)
FILE_OPTIONS = {
    "-r": "-r",
    "--requirement": "-r",
    "--requirements": "-r",
    "-c": "-c",
    "--constraint": "-c",
    "--constraints": "-c",
    "--build-constraint": "-c",
    "-b": "-c",
    "--override": "-c",
}


def find_pip_inputs(arguments: Sequence[str], read: ReadFile | None) -> SetupInputs:
    """The files that a pip command with these arguments needs."""
    rest = [
        word for word in arguments if word not in {"-q", "-v", "--quiet", "--verbose", "--no-input"}
    ]
    if not rest or rest[0] in {
        "--version",
        "-V",
        "list",
        "freeze",
        "check",
        "cache",
        "config",
        "uninstall",
        "help",
    }:
        return NO_INPUTS
    if rest[0] == "sync":
        rest = ["install", *(word for name in rest[1:] for word in ("-r", name))]
    if rest[0] not in {"install", "download", "wheel"}:
        return ALL_INPUTS
    inputs = NO_INPUTS
    words = iter(split_options(rest[1:]))
    for word in words:
        if word in FILE_OPTIONS:
            inputs |= _find_requirement_file_inputs(next(words, ""), read)
        elif word in {"-e", "--editable"}:
            inputs |= _find_editable_argument_inputs(next(words, ""), read)
        elif word == "--group":
            next(words, "")
            inputs |= SetupInputs(paths=frozenset({"pyproject.toml"}))
        elif word in {"-f", "--find-links"}:
            inputs |= NO_INPUTS if "://" in next(words, "") else ALL_INPUTS
        elif word in load_tools().option_values["pip"]:
            next(words, "")
        elif not word.startswith("-"):
            inputs |= _find_target_inputs(word)
    return inputs


def split_options(words: Sequence[str]) -> list[str]:
    """`--requirement=x` and `-rx` as two words each."""
    parts: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        if word.startswith("--") and equals:
            parts += [name, value]
        elif re.match(r"-[rce][^-]", word):
            parts += [word[:2], word[2:]]
        else:
            parts.append(word)
    return parts


def _find_target_inputs(word: str) -> SetupInputs:
    """A positional argument of pip: a name, an address, or a path."""
    if REQUIREMENT_URL.fullmatch(word):
        return NO_INPUTS
    return (
        NO_INPUTS
        if REQUIREMENT_NAME.fullmatch(word) and not _ARCHIVE_NAME.fullmatch(word)
        else ALL_INPUTS
    )


def _find_editable_argument_inputs(word: str, read: ReadFile | None) -> SetupInputs:
    if REQUIREMENT_URL.fullmatch(word):
        return NO_INPUTS
    folder = word.split("[", 1)[0].removeprefix("file:")
    place = resolve_path_in_tree("", folder)
    return ALL_INPUTS if place is None else find_editable_inputs(place, read)


def _find_requirement_file_inputs(path: str, read: ReadFile | None) -> SetupInputs:
    """A requirements or constraints file with all files that it includes."""
    if "://" in path:
        return NO_INPUTS
    start = resolve_path_in_tree("", path)
    if start is None:
        return ALL_INPUTS
    if read is None:
        return SetupInputs(paths=frozenset({start}), patterns=_INCLUDABLE_FILES)
    known: set[str] = set()
    inputs = NO_INPUTS
    queue = [start]
    while queue:
        file = queue.pop()
        if file in known:
            continue
        known.add(file)
        for line in read_requirement_lines(decode_text(read(file) or b"")):
            inputs |= _find_line_inputs(line, read)
            queue += included_files(line, file)
    return inputs | SetupInputs(paths=frozenset(known))


def _find_line_inputs(line: RequirementLine, read: ReadFile | None) -> SetupInputs:
    """The files that one line of a requirements file needs."""
    inputs = _find_target_inputs(line.requirement) if line.requirement else NO_INPUTS
    for name, value in line.options:
        if name in {"-r", "-c"} and "://" not in value and resolve_path_in_tree("", value) is None:
            inputs |= ALL_INPUTS
        elif name == "-f":
            inputs |= NO_INPUTS if "://" in value else ALL_INPUTS
        elif name == "-e":
            # pip resolves an editable path from its working directory, not from the file's folder
            inputs |= _find_editable_argument_inputs(value, read)
    return inputs


# Without the files' content, every file that could be included counts.
_INCLUDABLE_FILES = compile_patterns(
    ANY_FOLDER + r"[^/]{0,255}(require|constraint|depend|reqs?\b)[^/]{0,255}",
    ANY_FOLDER + r"[^/]{0,255}\.(txt|in|pip|lock)",
    r"[^/]{0,255}(require|constraint|depend)[^/]{0,255}/.*",
    ANY_FOLDER + r"(pyproject\.toml|setup\.py|setup\.cfg)",
)
