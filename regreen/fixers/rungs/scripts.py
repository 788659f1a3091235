"""What hides behind `npm run lint` or `make check`: the script's own lines, read from the repository."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Sequence

from regreen.fixers.rungs.tools import simple_commands

Read = Callable[[str], str | None]
_DEEPEST = 4
_RUNNERS = {"npm", "pnpm", "yarn", "bun"}
_OWN_WORDS = {"install", "ci", "add", "exec", "dlx", "x", "i", "run", "run-script"}
_VARIABLE = re.compile(r"^([A-Za-z_][\w-]*)\s*[:?]?=\s*([^\n]*)$", re.MULTILINE)
_USE = re.compile(r"\$[({]([A-Za-z_][\w-]*)[)}]")


def spelled_out(command: str, read: Read, depth: int = 0) -> str:
    """The command with what its scripts and make targets run, a line each, after it."""
    lines = [command]
    if depth < _DEEPEST:
        for words in simple_commands(command):
            body = _behind(words, read)
            if body:
                lines.append(spelled_out(body, read, depth + 1))
    return "\n".join(lines)


def _behind(words: Sequence[str], read: Read) -> str:
    name = words[0].rsplit("/", 1)[-1]
    if name in _RUNNERS:
        return _package_script(words[1:], read)
    if name in {"make", "gmake"}:
        return _make_lines(words[1:], read)
    if name in {"bash", "sh", "."} or words[0].startswith("./"):
        path = next((word for word in words if word.endswith(".sh") or word.startswith("./")), "")
        return read(path.removeprefix("./")) or "" if path else ""
    if name == "tox":
        return _tox_commands(words[1:], read)
    return ""


def _package_script(words: Sequence[str], read: Read) -> str:
    try:
        scripts = json.loads(read("package.json") or "{}").get("scripts", {})
    except (ValueError, AttributeError):
        return ""
    plain = [word for word in words if not word.startswith("-")]
    if plain[:1] in (["run"], ["run-script"]):
        plain = plain[1:]
    elif plain and plain[0] in _OWN_WORDS:
        return ""
    body = scripts.get(plain[0]) if plain and isinstance(scripts, dict) else None
    return body if isinstance(body, str) else ""


def _make_lines(words: Sequence[str], read: Read) -> str:
    text = next(
        (found for name in ("Makefile", "makefile", "GNUmakefile") if (found := read(name))), ""
    )
    variables = {name: value.strip() for name, value in _VARIABLE.findall(text)}
    targets = [word for word in words if not word.startswith("-") and "=" not in word]
    if not targets:
        first = re.search(r"^([\w-][\w.-]*)\s*:(?!=)", text, re.MULTILINE)
        targets = [first[1]] if first else []
    lines: list[str] = []
    waiting, seen = list(targets), set[str]()
    while waiting and len(seen) < 30:
        target = waiting.pop(0)
        if target in seen:
            continue
        seen.add(target)
        rule = re.search(
            rf"^{re.escape(target)}\s*:(?!=)([^\n]*)\n((?:\t[^\n]*\n?|\n)*)", text, re.MULTILINE
        )
        if rule:
            waiting += rule[1].split("#")[0].split()
            lines += [line.strip().lstrip("@-") for line in rule[2].splitlines() if line.strip()]
    body = "\n".join(lines)
    for _ in range(3):
        body = _USE.sub(lambda match: variables.get(match[1], match[0]), body)
    return body.replace("$$", "$")


def _tox_commands(words: Sequence[str], read: Read) -> str:
    """The commands of the named environments, as far as they are written out."""
    at = next((number for number, word in enumerate(words) if word == "-e"), None)
    names = words[at + 1].split(",") if at is not None and at + 1 < len(words) else []
    text = read("tox.ini") or ""
    found: list[str] = []
    for name in names:
        section = re.search(rf"^\[testenv:{re.escape(name)}\]([^\[]*)", text, re.MULTILINE)
        block = (
            re.search(r"^commands\s*=([^\n]*(?:\n[ \t]+[^\n]*)*)", section[1], re.MULTILINE)
            if section
            else None
        )
        if block:
            found += [line.strip() for line in block[1].splitlines() if line.strip()]
    return "\n".join(line for line in found if _readable(line))


def _readable(line: str) -> bool:
    try:
        return bool(shlex.split(line)) and "{" not in line
    except ValueError:
        return False
