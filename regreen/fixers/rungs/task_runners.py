"""What task runners run under a name, read from their own files: tox, nox, hatch, poe, pdm, just and the like."""

from __future__ import annotations

import ast
import configparser
import fnmatch
import json
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence

from regreen.codebase.dependency import table
from regreen.codebase.workflow_document import NotYaml, loaded
from regreen.fixers.checks.change import parse_python

Read = Callable[[str], str | None]
_VALUED = frozenset({"-e", "--env", "-s", "--session", "--sessions", "-t", "--tags", "-c", "--conf", "-f", "--file", "-d", "--dir", "-C"})  # fmt: skip


def task_lines(words: Sequence[str], read: Read) -> str:
    """The commands, a line each, that `words` make a task runner run; empty where it is none, or cannot be read."""
    name = words[0].rsplit("/", 1)[-1]
    try:
        return "\n".join(_LINES[name](list(words[1:]), read)) if name in _LINES else ""
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return ""


def _plain(words: Sequence[str]) -> list[str]:
    """The words that are neither options nor their values."""
    return [
        word
        for before, word in zip(["", *words], words, strict=False)
        if not word.startswith("-") and before not in _VALUED
    ]


def _named(words: Sequence[str], *options: str) -> list[str]:
    """What an option names: `-e lint,style`, `--env=lint`, `-qe lint`."""
    found: list[str] = []
    for at, word in enumerate(words):
        if word in options or re.fullmatch(rf"-[a-z]+{options[0][1:]}", word):
            found += words[at + 1 : at + 2]
        elif word.startswith(tuple(f"{option}=" for option in options)):
            found.append(word.partition("=")[2])
    return [name for one in found for name in one.split(",")]


# -- tox -------------------------------------------------------------------------------------------------------------


def _tox(words: list[str], read: Read) -> Iterator[str]:
    names = _named(words, "-e", "--env")
    for path in ("tox.ini", "setup.cfg"):
        text = read(path) or ""
        if "[testenv" in text:
            yield from _tox_ini(text, names)
    tables = [tomllib.loads(read("tox.toml") or "")]
    tool = table(table(tomllib.loads(read("pyproject.toml") or ""), "tool"), "tox")
    old = tool.get("legacy_tox_ini")
    if isinstance(old, str):
        yield from _tox_ini(old, names)
    for whole in (*tables, tool):
        for name in names:
            commands = table(table(whole, "env"), name).get("commands", [])
            for command in commands if isinstance(commands, list) else []:
                yield shlex.join(str(one) for one in command if isinstance(one, str))


def _tox_ini(text: str, names: Sequence[str]) -> Iterator[str]:
    parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    for name in names:
        section = f"testenv:{name}" if parser.has_section(f"testenv:{name}") else "testenv"
        commands = parser.get(section, "commands", fallback="") or ""
        for line in commands.replace("\\\n", " ").splitlines():
            yield _filled(line.strip().lstrip("-! "), parser)


def _filled(line: str, parser: configparser.ConfigParser) -> str:
    """The line with tox's substitutions made, as far as a reader can make them."""
    for _ in range(4):
        line = re.sub(
            r"\{\[([^\]{}]{1,80})\]([^{}]{1,80})\}",
            lambda use: " ".join((parser.get(use[1], use[2], fallback="") or "").split()),
            line,
        )[:4000]
    line = re.sub(r"\{posargs(?::([^{}]*))?\}|\[\]", lambda use: use[1] or "", line)
    line = re.sub(r"\{(?:toxinidir|tox_root)\}/?", "./", line)
    return re.sub(
        r"\{(?:envpython|env_python|envbindir\}/python|env_bin_dir\}/python)\}?", "python", line
    )


# -- nox and invoke --------------------------------------------------------------------------------------------------


def _nox(words: list[str], read: Read) -> Iterator[str]:
    names = [
        re.sub(r"[-(].*", "", one) for one in _named(words, "-s", "--session", "--sessions")
    ] + _plain(words)
    for function in _functions(read("noxfile.py") or ""):
        if names and not {function.name, *_titles(function)} & {
            *names,
            *(n.replace("-", "_") for n in names),
        }:
            continue
        for call in _calls_of(function, {"run", "run_always", "run_install"}):
            plain = [one for one in call.args if not isinstance(one, ast.Starred)]
            texts = [
                one.value
                for one in plain
                if isinstance(one, ast.Constant) and isinstance(one.value, str)
            ]
            if texts and len(texts) == len(plain):
                yield shlex.join(texts)


def _invoke(words: list[str], read: Read) -> Iterator[str]:
    names = {name.replace("-", "_") for name in _plain(words)}
    for function in _functions(read("tasks.py") or ""):
        if function.name in names:
            for call in _calls_of(function, {"run"}):
                first = call.args[0] if call.args else None
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    yield first.value


def _functions(text: str) -> Iterator[ast.FunctionDef]:
    tree = parse_python(text)
    yield from (node for node in (tree.body if tree else ()) if isinstance(node, ast.FunctionDef))


def _calls_of(function: ast.FunctionDef, methods: set[str]) -> Iterator[ast.Call]:
    for node in ast.walk(function):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in methods
        ):
            yield node


def _titles(function: ast.FunctionDef) -> Iterator[str]:
    """The names and tags that a session's decorator gives it."""
    for one in function.decorator_list:
        for keyword in one.keywords if isinstance(one, ast.Call) else ():
            if keyword.arg in {"name", "tags"}:
                yield from (
                    node.value
                    for node in ast.walk(keyword.value)
                    if isinstance(node, ast.Constant) and isinstance(node.value, str)
                )


# -- tasks in tables -------------------------------------------------------------------------------------------------


def _hatch(words: list[str], read: Read) -> Iterator[str]:
    plain = (
        [word for word in _plain(words[1:]) if not word.startswith("+")]
        if words[:1] == ["run"]
        else []
    )
    if not plain:
        return
    environment, _, script = plain[0].rpartition(":")
    environment = environment or "default"
    whole = tomllib.loads(read("hatch.toml") or "") or table(
        table(tomllib.loads(read("pyproject.toml") or ""), "tool"), "hatch"
    )
    scripts = table(table(table(whole, "envs"), environment), "scripts")
    for line in _listed(scripts.get(script)):
        filled = re.sub(r"\{args(?::([^{}]*))?\}", lambda use: use[1] or "", line.lstrip("- "))
        first = filled.split(maxsplit=1)[0] if filled.split() else ""
        yield f"hatch run {environment}:{filled}" if first in scripts else filled


def _poe(words: list[str], read: Read) -> Iterator[str]:
    whole = table(table(tomllib.loads(read("pyproject.toml") or ""), "tool"), "poe")
    whole = whole or tomllib.loads(read("poe_tasks.toml") or "")
    yield from _of_table(table(whole, "tasks"), _plain(words)[:1], "poe")


def _tool_scripts(tool: str, key: str, call: str) -> Callable[[list[str], Read], Iterator[str]]:
    """A runner whose tasks stand in `[tool.NAME]` of pyproject.toml."""

    def lines(words: list[str], read: Read) -> Iterator[str]:
        document = tomllib.loads(read("pyproject.toml") or "")
        plain = [word for word in _plain(words) if word != "run"][:1]
        yield from _of_table(table(table(table(document, "tool"), tool), key), plain, call)

    return lines


def _of_table(tasks: Mapping[str, object], names: Sequence[str], call: str) -> Iterator[str]:
    """A task as these runners write it: a line, a list of other tasks, or a table with one of both."""
    for name in names:
        task = tasks.get(name)
        if isinstance(task, dict):
            steps = (
                task.get("sequence")
                or task.get("composite")
                or task.get("chain")
                or task.get("depends-on")
            )
            task = steps or task.get("cmd") or task.get("shell")
            if isinstance(task, list) and task and not steps:
                task = shlex.join(str(word) for word in task)
        if isinstance(task, str):
            yield task
            continue
        for one in task if isinstance(task, list) else ():
            if isinstance(one, dict):
                yield from _of_table({"": one}, [""], call)
            else:
                first = str(one).split(maxsplit=1)[0]
                yield f"{call} {one}" if first in tasks else str(one)


def _go_task(words: list[str], read: Read) -> Iterator[str]:
    """go-task's Taskfile, or taskipy's table."""
    text = next((found for path in ("Taskfile.yml", "Taskfile.yaml") if (found := read(path))), "")
    if not text:
        yield from _tool_scripts("taskipy", "tasks", "task")(words, read)
        return
    try:
        document = loaded(text)
    except NotYaml:
        return
    tasks = document.get("tasks", {}) if isinstance(document, dict) else {}
    for name in _plain(words) or ["default"]:
        task = tasks.get(name)
        if isinstance(task, dict):
            yield from (f"task {one}" for one in task.get("deps", []) if isinstance(one, str))
            commands = task.get("cmds", task.get("cmd", []))
        else:
            commands = task
        for one in _listed(commands):
            yield one
        for one in commands if isinstance(commands, list) else ():
            if isinstance(one, dict):
                yield f"task {one['task']}" if "task" in one else str(one.get("cmd", ""))


def _listed(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _run_all(words: list[str], read: Read) -> Iterator[str]:
    """npm-run-all, run-s and run-p: other scripts of the package, by patterns."""
    scripts = json.loads(read("package.json") or "{}").get("scripts", {})
    for pattern in _plain(words):
        glob = pattern.replace(":**", ":*")
        yield from (f"npm run {name}" for name in scripts if fnmatch.fnmatchcase(name, glob))


# -- hooks -----------------------------------------------------------------------------------------------------------


def _hooks(words: list[str], read: Read) -> Iterator[str]:
    """The hooks that stand in the repository itself, over the files that they are for."""
    if "run" not in words:
        return
    wanted = [word for word in _plain(words) if word != "run"]
    try:
        document = loaded(read(".pre-commit-config.yaml") or read("prek.yaml") or "{}")
    except NotYaml:
        return
    for repo in document.get("repos", []) if isinstance(document, dict) else ():
        for hook in repo.get("hooks", []) if repo.get("repo") == "local" else ():
            if hook.get("language") not in {"system", "python", "unsupported", "node"}:
                continue
            if not wanted or hook.get("id") in wanted:
                yield " ".join(
                    [
                        str(hook.get("entry", "")),
                        *(shlex.quote(str(one)) for one in hook.get("args", [])),
                        _over(hook),
                    ]
                ).strip()


def _over(hook: Mapping[str, object]) -> str:
    if hook.get("pass_filenames") is False:
        return ""
    types = {str(one) for key in ("types", "types_or") for one in _listed(hook.get(key))}
    files = hook.get("files")
    if isinstance(files, str) and files:
        return f"$(git ls-files | grep -E {shlex.quote(files)})"
    return "$(git ls-files '*.py')" if types & {"python", "pyi"} else "$(git ls-files)"


_LINES: Mapping[str, Callable[[list[str], Read], Iterator[str]]] = {
    "tox": _tox,
    "nox": _nox,
    "hatch": _hatch,
    "poe": _poe,
    "pdm": _tool_scripts("pdm", "scripts", "pdm"),
    "rye": _tool_scripts("rye", "scripts", "rye"),
    "pixi": _tool_scripts("pixi", "tasks", "pixi"),
    "task": _go_task,
    "invoke": _invoke,
    "inv": _invoke,
    "run-s": _run_all,
    "run-p": _run_all,
    "npm-run-all": _run_all,
    "npm-run-all2": _run_all,
    "pre-commit": _hooks,
    "pre_commit": _hooks,
    "prek": _hooks,
}
