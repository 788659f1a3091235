"""The files that `pip install` needs: requirement files with all their includes, and projects installed in place."""

from __future__ import annotations

import re
from collections.abc import Sequence

from regreen.packages.requirement_file import (
    RequirementLine,
    decode_text,
    included_files,
    read_lines,
)
from regreen.packages.setup_inputs import (
    ANY_FOLDER,
    NEEDS_EVERYTHING,
    NEEDS_NOTHING,
    ReadFile,
    SetupNeeds,
    compile_patterns,
    editable_needs,
    path_in_tree,
)
from regreen.shell.tools import load_tools

REQUIREMENT_NAME = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]*\s*+(\[[^\]/]*\]\s*+)?([(<>=!~;].*)?", re.DOTALL
)
REQUIREMENT_URL = re.compile(
    r"(?:[A-Za-z0-9._-]+(?:\[[^\]]*\])?\s*@\s*)?(?:git|hg|svn|bzr)?\+?(?:https?|ssh|git)://.*"
)
_ARCHIVE_NAME = re.compile(r".*\.(whl|zip|tar\.gz|tgz|tar\.bz2|tar\.xz)", re.IGNORECASE)
FILE_OPTIONS = {"-r": "-r", "--requirement": "-r", "--requirements": "-r", "-c": "-c", "--constraint": "-c",
          "--constraints": "-c", "--build-constraint": "-c", "-b": "-c", "--override": "-c"}  # fmt: skip


def pip_needs(arguments: Sequence[str], read: ReadFile | None) -> SetupNeeds:
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
        return NEEDS_NOTHING
    if rest[0] == "sync":
        rest = ["install", *(word for name in rest[1:] for word in ("-r", name))]
    if rest[0] not in {"install", "download", "wheel"}:
        return NEEDS_EVERYTHING
    needs = NEEDS_NOTHING
    words = iter(split_options(rest[1:]))
    for word in words:
        if word in FILE_OPTIONS:
            needs |= _requirement_file_needs(next(words, ""), read)
        elif word in {"-e", "--editable"}:
            needs |= _editable_target_needs(next(words, ""), read)
        elif word == "--group":
            next(words, "")
            needs |= SetupNeeds(paths=frozenset({"pyproject.toml"}))
        elif word in {"-f", "--find-links"}:
            needs |= NEEDS_NOTHING if "://" in next(words, "") else NEEDS_EVERYTHING
        elif word in load_tools().option_values["pip"]:
            next(words, "")
        elif not word.startswith("-"):
            needs |= _target_needs(word)
    return needs


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


def _target_needs(word: str) -> SetupNeeds:
    """A positional argument of pip: a name, an address, or a path."""
    if REQUIREMENT_URL.fullmatch(word):
        return NEEDS_NOTHING
    return (
        NEEDS_NOTHING
        if REQUIREMENT_NAME.fullmatch(word) and not _ARCHIVE_NAME.fullmatch(word)
        else NEEDS_EVERYTHING
    )


def _editable_target_needs(word: str, read: ReadFile | None) -> SetupNeeds:
    if REQUIREMENT_URL.fullmatch(word):
        return NEEDS_NOTHING
    folder = word.split("[", 1)[0].removeprefix("file:")
    place = path_in_tree("", folder)
    return NEEDS_EVERYTHING if place is None else editable_needs(place, read)


def _requirement_file_needs(path: str, read: ReadFile | None) -> SetupNeeds:
    """A requirements or constraints file with all files that it includes."""
    if "://" in path:
        return NEEDS_NOTHING
    start = path_in_tree("", path)
    if start is None:
        return NEEDS_EVERYTHING
    if read is None:
        return SetupNeeds(paths=frozenset({start}), patterns=_INCLUDABLE_FILES)
    known: set[str] = set()
    needs = NEEDS_NOTHING
    queue = [start]
    while queue:
        file = queue.pop()
        if file in known:
            continue
        known.add(file)
        for line in read_lines(decode_text(read(file) or b"")):
            needs |= _line_needs(line, read)
            queue += included_files(line, file)
    return needs | SetupNeeds(paths=frozenset(known))


def _line_needs(line: RequirementLine, read: ReadFile | None) -> SetupNeeds:
    """The files that one line of a requirements file needs."""
    needs = _target_needs(line.requirement) if line.requirement else NEEDS_NOTHING
    for name, value in line.options:
        if name in {"-r", "-c"} and "://" not in value and path_in_tree("", value) is None:
            needs |= NEEDS_EVERYTHING
        elif name == "-f":
            needs |= NEEDS_NOTHING if "://" in value else NEEDS_EVERYTHING
        elif name == "-e":
            # pip resolves an editable path from its working directory, not from the file's folder
            needs |= _editable_target_needs(value, read)
    return needs


# Without the files' content, every file that could be included counts.
_INCLUDABLE_FILES = compile_patterns(
    ANY_FOLDER + r"[^/]{0,255}(require|constraint|depend|reqs?\b)[^/]{0,255}",
    ANY_FOLDER + r"[^/]{0,255}\.(txt|in|pip|lock)",
    r"[^/]{0,255}(require|constraint|depend)[^/]{0,255}/.*",
    ANY_FOLDER + r"(pyproject\.toml|setup\.py|setup\.cfg)",
)
