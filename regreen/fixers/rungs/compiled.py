"""Requirements that pip-compile or uv made out of others: the command in their heading makes them anew."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Collection, Iterator

from regreen.fixers.rungs.task_runners import Read
from regreen.fixers.rungs.tools import Remedy

_HEADING = re.compile(r"^#[ \t]{1,8}((?:uv pip compile|pip-compile)\b[^\n]{0,400})$", re.MULTILINE)
_HOME = "/tmp/regreen-compile"  # noqa: S108 - inside the box
_FORBIDDEN = ("--index-url", "--extra-index-url", "--find-links", "--trusted-host", "--config", "--upgrade", "-i", "-f", "-U")  # fmt: skip


def recompiled(files: Collection[str], read: Read, said: str = "") -> Iterator[Remedy]:
    """Remedies that compile requirements anew; those that `said` (setup and command) names first."""
    paths = [
        path
        for path in files
        if path.endswith(".txt") and posixpath.basename(path) != "LICENSE.txt"
    ]
    for path in sorted(paths, key=lambda path: (path not in said, path))[:40]:
        script = compiling(path, read(path) or "")
        if script:
            cause = f"{path} is not what its source comes to"
            yield Remedy(
                "pip-compile",
                script,
                cause,
                network=True,
                writes=(path,),
                title=heading(read(path) or ""),
            )


def heading(text: str) -> str:
    """The command that a compiled file says it was made by; empty where it says none."""
    match = _HEADING.search(text[:2000])
    return match[1].strip() if match else ""


def source_of(path: str, text: str, files: Collection[str]) -> str | None:
    """The file of the tree that a compiled one was made from; None where it is not one, or from several."""
    words = _words(heading(text))
    folder = posixpath.dirname(path)
    named = [
        word for word in words if word.endswith((".in", "pyproject.toml", "setup.py", "setup.cfg"))
    ]
    for name in named if len(named) == 1 else ():
        for place in (name, posixpath.join(folder, posixpath.basename(name))):
            if place in files:
                return place
    return None


def compiling(path: str, text: str) -> str:
    """A script that compiles the file anew, by the tool that made it, in an environment of its own; empty where none did."""
    words = _words(heading(text))
    if not words or any(word.partition("=")[0] in _FORBIDDEN for word in words):
        return ""
    package = "uv" if words[0] == "uv" else "pip-tools"
    folder, name = posixpath.split(path)
    sources = [word for word in words if word.endswith(".in")]
    inside = bool(folder and sources and "/" not in sources[0])  # it was made in its own folder
    is_default = words[0] != "uv" and [f"{one[:-3]}.txt" for one in sources] == [name]
    if not is_default and not any(word.startswith(("-o", "--output-file")) for word in words):
        words += ["--output-file", name if inside else path]
    there = f"cd {shlex.quote(folder)}\n" if inside else ""
    return (
        f"unset PIP_CONSTRAINT UV_CONSTRAINT\npython -m venv {_HOME} && {_HOME}/bin/pip install -q {package} || exit 1\n"
        f"{there}PATH={_HOME}/bin:$PATH {shlex.join(words)}"
    )


def _words(line: str) -> list[str]:
    """The command's words; none where it holds more than plain ones."""
    if not re.fullmatch(r"[\w ./=,:@^~<>+-]*", line):
        return []
    return line.split()
