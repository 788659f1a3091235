"""Reads what a step's command calls in the repository: scripts, make rules, npm scripts, a level or two deep."""

from __future__ import annotations

import json
import posixpath
import re
import shlex

from regreen.domain.environments import ReadFile
from regreen.shell.parse import find_commands
from regreen.shell.tools import split_wrappers

_MAX_DEPTH = 3
_MAX_SCRIPT_BYTES = 200_000


def read_called_scripts(script: str, directory: str, files: ReadFile, depth: int = 0) -> str:
    """The text of what the script calls in the tree; "" where it calls nothing there.

    Args:
        script: a step's commands.
        directory: where it runs, relative to the tree.
        files: gives a file of the tree.
        depth: how many calls led here.
    """
    if depth >= _MAX_DEPTH or directory.startswith("/"):
        return ""
    found: list[str] = []
    for command in find_commands(script):
        _, words = split_wrappers(command.arguments)
        text = _read_called_text(words, directory, files) if words else ""
        if text:
            found += [text, read_called_scripts(text, directory, files, depth + 1)]
    return "\n".join(part for part in found if part)


def _read_called_text(words: list[str], directory: str, files: ReadFile) -> str:
    """What one simple command, taken apart into words, runs in the tree; "" where that is nothing, or cannot be read."""
    name, arguments = words[0], words[1:]
    match name:
        case "make" | "gmake":
            return _make_recipes(arguments, directory, files)
        case "just":
            return _read_recipes(arguments, directory, files, ("justfile", "Justfile", ".justfile"))
        case "npm" | "yarn" | "pnpm" | "bun":
            return _npm_script(arguments, directory, files)
        case "bash" | "sh" | "zsh" | "source" | ".":
            path = next((word for word in arguments if not word.startswith("-")), "")
            return _shell_text(path, directory, files, sure=True)
        case _ if "/" in name:
            return _shell_text(name, directory, files)
        case _:
            return ""


def _read_script(path: str, directory: str, files: ReadFile) -> str | None:
    inside = posixpath.normpath(posixpath.join(directory, path))
    if inside.startswith(("/", "..")) or "$" in inside or "*" in inside:
        return None
    content = files(inside)
    if content is None or len(content) > _MAX_SCRIPT_BYTES or b"\0" in content[:1000]:
        return None
    return content.decode("utf-8", "replace")


def _shell_text(path: str, directory: str, files: ReadFile, *, sure: bool = False) -> str:
    text = _read_script(path, directory, files) if path else None
    if text is None:
        return ""
    first = text.split("\n", 1)[0]
    return (
        text if sure or path.endswith(".sh") or re.match(r"#!.*\b(?:ba|z|da)?sh\b", first) else ""
    )


def _npm_script(arguments: list[str], directory: str, files: ReadFile) -> str:
    plain = [word for word in arguments if not word.startswith("-")]
    if not plain:
        return ""
    name = plain[1] if plain[0] in {"run", "run-script"} and len(plain) > 1 else plain[0]
    name = {"t": "test", "tst": "test"}.get(name, name)
    text = _read_script("package.json", directory, files)
    try:
        manifest = json.loads(text or "{}")
    except ValueError:
        return ""
    scripts = manifest.get("scripts") if isinstance(manifest, dict) else None
    if not isinstance(scripts, dict):
        return ""
    wanted = (scripts.get(script) for script in (f"pre{name}", name, f"post{name}"))
    return "\n".join(linter for linter in wanted if isinstance(linter, str))


# --- rules --------------------------------------------------------------------------------------------------------


def _make_recipes(arguments: list[str], directory: str, files: ReadFile) -> str:
    if "-C" in arguments[:-1]:
        at = arguments.index("-C")
        directory = posixpath.normpath(posixpath.join(directory, arguments[at + 1]))
        arguments = arguments[:at] + arguments[at + 2 :]
    text = _read_recipes(arguments, directory, files, ("GNUmakefile", "makefile", "Makefile"))
    return f"cd {shlex.quote(directory)}\n{text}" if text and directory not in {"", "."} else text


def _read_recipes(
    arguments: list[str], directory: str, files: ReadFile, names: tuple[str, ...]
) -> str:
    text = next(
        (found for name in names if (found := _read_script(name, directory, files)) is not None),
        None,
    )
    if text is None:
        return ""
    targets = [word for word in arguments if not word.startswith("-") and "=" not in word]
    given = dict(
        word.split("=", 1) for word in arguments if "=" in word and not word.startswith("-")
    )
    return expand_make_rules(text, targets, given)


_RULE_LINE = re.compile(
    r"^(?P<names>[^\s:#=][^:=#]{0,300}?)\s*::?(?!=)\s*(?P<needs>[^=#]*)(?:#.*)?$"
)
_VARIABLE_ASSIGNMENT = re.compile(
    r"^(?:export\s+)?(?P<name>\w+)\s*(?::{0,2}|\?)=\s*(?P<value>[^#]*)"
)
_VARIABLE_USE = re.compile(r"\$[({](\w+)[)}]|\{\{ ?(\w+) ?\}\}")


def expand_make_rules(text: str, targets: list[str], given: dict[str, str] | None = None) -> str:
    """What the rules of a Makefile (or justfile) for these targets run, prerequisites first; the first rule where none is named."""
    recipes: dict[str, tuple[list[str], list[str]]] = {}
    values: dict[str, str] = {}
    now: list[list[str]] = []
    for line in text.replace("\\\n", " ").splitlines():
        if line[:1] in {"\t", " "} and now:
            for recipe in now:
                recipe.append(line.strip().lstrip("@-+"))
        elif assigned := _VARIABLE_ASSIGNMENT.match(line):
            values.setdefault(assigned["name"], assigned["value"].strip())
            now = []
        elif rule := _RULE_LINE.match(line):
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
    _collect_recipes(targets or ([first] if first else []), recipes, found, set())
    return "\n".join(_expand_variables(line, values) for line in found)


def _collect_recipes(
    targets: list[str],
    recipes: dict[str, tuple[list[str], list[str]]],
    found: list[str],
    known: set[str],
) -> None:
    for target in targets:
        if target in recipes and target not in known and len(known) < 200:
            known.add(target)
            needs, recipe = recipes[target]
            _collect_recipes(needs, recipes, found, known)
            found += recipe


def _expand_variables(line: str, values: dict[str, str]) -> str:
    for _ in range(3):
        line = _VARIABLE_USE.sub(lambda use: values.get(use[1] or use[2], use[0]), line)[:4000]
    return line.replace("$$", "$")


def call_tool_as_in_setup(script: str, setup: str) -> str:
    """The script with its tool called as the setup calls it: `npx --yes pnpm@9 install`, `~/.bin/pnpm install`."""
    tool = script.split(maxsplit=1)[0]
    called = re.search(
        rf"((?:npx (?:--?\w+ ){{0,9}}|corepack |(?<![^\s;&|(])[\w./~-]{{0,200}}/){tool}(?:@[\w.^~-]+)?) ",
        setup,
    )
    return script.replace(f"{tool} ", f"{called[1]} ", 1) if called else script
