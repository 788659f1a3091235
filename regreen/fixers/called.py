"""Reads what a step's command calls in the repository: scripts, make rules, npm scripts, a level or two deep."""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Iterator

from regreen.fixers.job_plan import Files
from regreen.fixers.shell_words import simple_commands

_DEEPEST = 3
_LARGEST = 200_000


def called(script: str, directory: str, files: Files, depth: int = 0) -> str:
    """The text of what the script calls in the tree; "" where it calls nothing there.

    Args:
        script: a step's commands.
        directory: where it runs, relative to the tree.
        files: gives a file of the tree.
        depth: how many calls led here.
    """
    if depth >= _DEEPEST or directory.startswith("/"):
        return ""
    found: list[str] = []
    for words in _commands(script):
        text = text_of(words, directory, files)
        if text:
            found += [text, called(text, directory, files, depth + 1)]
    return "\n".join(part for part in found if part)


_PREFIXES = frozenset({"sudo", "time", "exec", "env", "xvfb-run", "command"})


def _commands(script: str) -> Iterator[list[str]]:
    for words in simple_commands(script):
        at = 0
        while at < len(words) and (re.fullmatch(r"\w+=.*", words[at]) or words[at] in _PREFIXES):
            at += 1
        if words[at:]:
            yield words[at:]


def text_of(words: list[str], directory: str, files: Files) -> str:
    """What one simple command, taken apart into words, runs in the tree; "" where that is nothing, or cannot be read."""
    name, arguments = words[0], words[1:]
    match name:
        case "make" | "gmake":
            return _made(arguments, directory, files)
        case "just":
            return _ruled(arguments, directory, files, ("justfile", "Justfile", ".justfile"))
        case "npm" | "yarn" | "pnpm" | "bun":
            return _npm_script(arguments, directory, files)
        case "bash" | "sh" | "zsh" | "source" | ".":
            path = next((word for word in arguments if not word.startswith("-")), "")
            return _shell_text(path, directory, files, sure=True)
        case _ if "/" in name:
            return _shell_text(name, directory, files)
        case _:
            return ""


def _read(path: str, directory: str, files: Files) -> str | None:
    inside = posixpath.normpath(posixpath.join(directory, path))
    if inside.startswith(("/", "..")) or "$" in inside or "*" in inside:
        return None
    content = files(inside)
    if content is None or len(content) > _LARGEST or b"\0" in content[:1000]:
        return None
    return content.decode("utf-8", "replace")


def _shell_text(path: str, directory: str, files: Files, *, sure: bool = False) -> str:
    text = _read(path, directory, files) if path else None
    if text is None:
        return ""
    first = text.split("\n", 1)[0]
    return (
        text if sure or path.endswith(".sh") or re.match(r"#!.*\b(?:ba|z|da)?sh\b", first) else ""
    )


def _npm_script(arguments: list[str], directory: str, files: Files) -> str:
    plain = [word for word in arguments if not word.startswith("-")]
    if not plain:
        return ""
    name = plain[1] if plain[0] in {"run", "run-script"} and len(plain) > 1 else plain[0]
    name = {"t": "test", "tst": "test"}.get(name, name)
    text = _read("package.json", directory, files)
    try:
        manifest = json.loads(text or "{}")
    except ValueError:
        return ""
    scripts = manifest.get("scripts") if isinstance(manifest, dict) else None
    if not isinstance(scripts, dict):
        return ""
    wanted = (scripts.get(one) for one in (f"pre{name}", name, f"post{name}"))
    return "\n".join(one for one in wanted if isinstance(one, str))


# --- rules --------------------------------------------------------------------------------------------------------


def _made(arguments: list[str], directory: str, files: Files) -> str:
    if "-C" in arguments[:-1]:
        at = arguments.index("-C")
        directory = posixpath.normpath(posixpath.join(directory, arguments[at + 1]))
        arguments = arguments[:at] + arguments[at + 2 :]
    text = _ruled(arguments, directory, files, ("GNUmakefile", "makefile", "Makefile"))
    return f"cd {shlex.quote(directory)}\n{text}" if text and directory not in {"", "."} else text


def _ruled(arguments: list[str], directory: str, files: Files, names: tuple[str, ...]) -> str:
    text = next(
        (found for name in names if (found := _read(name, directory, files)) is not None), None
    )
    if text is None:
        return ""
    targets = [word for word in arguments if not word.startswith("-") and "=" not in word]
    given = dict(
        word.split("=", 1) for word in arguments if "=" in word and not word.startswith("-")
    )
    return rules(text, targets, given)


_RULE = re.compile(r"^(?P<names>[^\s:#=][^:=#]{0,300}?)\s*::?(?!=)\s*(?P<needs>[^=#]*)(?:#.*)?$")
_SET = re.compile(r"^(?:export\s+)?(?P<name>\w+)\s*(?::{0,2}|\?)=\s*(?P<value>[^#]*)")
_USE = re.compile(r"\$[({](\w+)[)}]|\{\{ ?(\w+) ?\}\}")


def rules(text: str, targets: list[str], given: dict[str, str] | None = None) -> str:
    """What the rules of a Makefile (or justfile) for these targets run, prerequisites first; the first rule where none is named."""
    recipes: dict[str, tuple[list[str], list[str]]] = {}
    values: dict[str, str] = {}
    now: list[list[str]] = []
    for line in text.replace("\\\n", " ").splitlines():
        if line[:1] in {"\t", " "} and now:
            for recipe in now:
                recipe.append(line.strip().lstrip("@-+"))
        elif assigned := _SET.match(line):
            values.setdefault(assigned["name"], assigned["value"].strip())
            now = []
        elif rule := _RULE.match(line):
            now = []
            for name in rule["names"].split():
                needs, recipe = recipes.setdefault(name, ([], []))
                needs += rule["needs"].replace("|", " ").split()
                now.append(recipe)
        elif line.strip():
            now = []
    first = next((name for name in recipes if not name.startswith(".")), None)
    values.update(given or {})
    found: list[str] = []
    _follow(targets or ([first] if first else []), recipes, found, set())
    return "\n".join(_filled(line, values) for line in found)


def _follow(
    targets: list[str],
    recipes: dict[str, tuple[list[str], list[str]]],
    found: list[str],
    seen: set[str],
) -> None:
    for target in targets:
        if target in recipes and target not in seen and len(seen) < 200:
            seen.add(target)
            needs, recipe = recipes[target]
            _follow(needs, recipes, found, seen)
            found += recipe


def _filled(line: str, values: dict[str, str]) -> str:
    for _ in range(3):
        line = _USE.sub(lambda use: values.get(use[1] or use[2], use[0]), line)[:4000]
    return line.replace("$$", "$")
