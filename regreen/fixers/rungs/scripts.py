"""What hides behind `npm run lint`, `make check` or `nox -s lint`: the script's own lines, read from the repository."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterator, Sequence

from regreen.fixers.called import text_of
from regreen.fixers.job_plan import Files
from regreen.fixers.rungs.task_runners import Read, task_lines
from regreen.fixers.shell_words import simple_commands, split_runner

_DEEPEST = 4
_MOST = 40
_FOLDERS = {
    "npm": ("--prefix", "-C"),
    "pnpm": ("--dir", "-C"),
    "yarn": ("--cwd",),
    "just": ("--working-directory", "-d"),
}
_NOT_SCRIPTS = {"install", "i", "ci", "add", "exec", "dlx", "x", "create", "init", "publish"}


def bodies(command: str, read: Read) -> list[str]:
    """The command, then each script that it runs, one behind the other; those in a folder of their own begin with `cd`."""
    return list(_followed(command, read, ".", 0))[:_MOST]


def _followed(command: str, read: Read, folder: str, depth: int) -> Iterator[str]:
    yield command
    if depth >= _DEEPEST:
        return
    for words in simple_commands(command):
        if words[0] == "cd" and len(words) > 1 and not words[1].startswith(("/", "..", "$", "-")):
            folder = posixpath.normpath(posixpath.join(folder, words[1]))
        for text in _behind(words, _within(folder, read)):
            whole = (
                text if folder == "." or text == command else f"cd {shlex.quote(folder)}\n{text}"
            )
            yield from _followed(whole, read, "." if whole != text else folder, depth + 1)


def _within(folder: str, read: Read) -> Read:
    if folder == ".":
        return read
    return lambda path: read(f"{folder}/{path}".removeprefix("./"))


def _behind(words: Sequence[str], read: Read) -> Iterator[str]:
    """What the words run, whatever runs them: `uv run poe lint` is looked at as `poe lint` too."""
    before, _ = split_runner(words)
    for start in range(min(len(before) + 1, len(words))):
        call = list(words[start:])
        name = call[0].rsplit("/", 1)[-1]
        if name in {"bash", "sh"} and "-c" in call[1:-1]:
            yield call[call.index("-c", 1) + 1]
            return
        if name in {"npm", "pnpm", "yarn", "bun"} and _NOT_SCRIPTS & set(call[1:3]):
            continue
        inner, call = _own_folder(name, call)
        there = _within(inner, read)
        text = task_lines(call, there) or text_of(call, ".", _as_files(there))
        if text:
            yield text if inner == "." else f"cd {shlex.quote(inner)}\n{text}"
            return


def _own_folder(name: str, call: list[str]) -> tuple[str, list[str]]:
    """The folder that an option names, and the call without it: `npm --prefix web run lint`."""
    for option in _FOLDERS.get(name, ()):
        if option in call[1:-1]:
            at = call.index(option)
            folder = call[at + 1].rstrip("/")
            rest = [*call[:at], *call[at + 2 :]]
            return ("." if folder.startswith(("/", "..", "$")) else folder), rest
    return ".", call


def _as_files(read: Read) -> Files:
    def files(path: str) -> bytes | None:
        text = read(path)
        return None if text is None else text.encode()

    return files
