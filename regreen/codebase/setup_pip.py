"""What `pip install` needs of a tree: requirement files with all they include, and projects installed in place."""

from __future__ import annotations

import re
from collections.abc import Sequence

from regreen.codebase.requirement_file import Line, included, lines_of, text_of
from regreen.codebase.setup_needs import (
    ANYWHERE,
    EVERYTHING,
    NOTHING,
    Needs,
    Read,
    editable,
    inside,
    patterns,
)

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\s*(\[[^\]/]*\])?\s*([(<>=!~;].*)?", re.DOTALL)
URL = re.compile(
    r"(?:[A-Za-z0-9._-]+(?:\[[^\]]*\])?\s*@\s*)?(?:git|hg|svn|bzr)?\+?(?:https?|ssh|git)://.*"
)
_ARCHIVE = re.compile(r".*\.(whl|zip|tar\.gz|tgz|tar\.bz2|tar\.xz)", re.IGNORECASE)
WITH_VALUE = frozenset({
    "-i", "--index-url", "--extra-index-url", "--default-index", "--index", "--target", "-t", "--prefix", "--root",
    "--platform", "--python-version", "--implementation", "--abi", "--only-binary", "--no-binary", "--progress-bar",
    "--cache-dir", "--log", "--timeout", "--retries", "--trusted-host", "--cert", "--python", "-p",
    "--upgrade-strategy", "--upgrade-package", "-P", "--root-user-action", "--config-settings", "-C",
    "--resolution", "--exclude-newer", "--use-feature", "--use-deprecated", "--report", "--src", "--prerelease",
})  # fmt: skip
FILES = {"-r": "-r", "--requirement": "-r", "--requirements": "-r", "-c": "-c", "--constraint": "-c",
          "--constraints": "-c", "--build-constraint": "-c", "-b": "-c", "--override": "-c"}  # fmt: skip


def of_pip(arguments: Sequence[str], read: Read | None) -> Needs:
    """What a pip command with these arguments needs."""
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
        return NOTHING
    if rest[0] == "sync":
        rest = ["install", *(word for name in rest[1:] for word in ("-r", name))]
    if rest[0] not in {"install", "download", "wheel"}:
        return EVERYTHING
    found = NOTHING
    words = iter(split_options(rest[1:]))
    for word in words:
        if word in FILES:
            found |= _of_requirements(next(words, ""), read)
        elif word in {"-e", "--editable"}:
            found |= _of_editable_target(next(words, ""), read)
        elif word == "--group":
            next(words, "")
            found |= Needs(paths=frozenset({"pyproject.toml"}))
        elif word in {"-f", "--find-links"}:
            found |= NOTHING if "://" in next(words, "") else EVERYTHING
        elif word in WITH_VALUE:
            next(words, "")
        elif not word.startswith("-"):
            found |= _of_target(word)
    return found


def split_options(words: Sequence[str]) -> list[str]:
    """`--requirement=x` and `-rx` as two words each."""
    found: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        if word.startswith("--") and equals:
            found += [name, value]
        elif re.match(r"-[rce][^-]", word):
            found += [word[:2], word[2:]]
        else:
            found.append(word)
    return found


def _of_target(word: str) -> Needs:
    """A positional argument of pip: a name, an address, or a path."""
    if URL.fullmatch(word):
        return NOTHING
    return NOTHING if NAME.fullmatch(word) and not _ARCHIVE.fullmatch(word) else EVERYTHING


def _of_editable_target(word: str, read: Read | None) -> Needs:
    if URL.fullmatch(word):
        return NOTHING
    folder = word.split("[", 1)[0].removeprefix("file:")
    place = inside("", folder)
    return EVERYTHING if place is None else editable(place, read)


def _of_requirements(path: str, read: Read | None) -> Needs:
    """A requirements or constraints file with all that it includes."""
    if "://" in path:
        return NOTHING
    start = inside("", path)
    if start is None:
        return EVERYTHING
    if read is None:
        return Needs(paths=frozenset({start}), patterns=_INCLUDABLE)
    seen: set[str] = set()
    found = NOTHING
    queue = [start]
    while queue:
        file = queue.pop()
        if file in seen:
            continue
        seen.add(file)
        for line in lines_of(text_of(read(file) or b"")):
            found |= _of_line(line, read)
            queue += included(line, file)
    return found | Needs(paths=frozenset(seen))


def _of_line(line: Line, read: Read | None) -> Needs:
    """What one line of a requirements file needs itself."""
    found = _of_target(line.requirement) if line.requirement else NOTHING
    for name, value in line.options:
        if name in {"-r", "-c"} and "://" not in value and inside("", value) is None:
            found |= EVERYTHING
        elif name == "-f":
            found |= NOTHING if "://" in value else EVERYTHING
        elif name == "-e":
            # pip takes an editable path from where it runs, not from where the file lies
            found |= _of_editable_target(value, read)
    return found


# Without the files' content, every file that could be included counts.
_INCLUDABLE = patterns(
    ANYWHERE + r"[^/]*(require|constraint|depend|reqs?\b)[^/]*",
    ANYWHERE + r"[^/]*\.(txt|in|pip|lock)",
    r"[^/]*(require|constraint|depend)[^/]*/.*",
    ANYWHERE + r"(pyproject\.toml|setup\.py|setup\.cfg)",
)
