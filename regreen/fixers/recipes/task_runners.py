"""Reads from the files of task runners (tox, nox, hatch, poe, pdm and others) what a call of them runs."""

from __future__ import annotations

import ast
import configparser
import fnmatch
import json
import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence

from regreen.actions.job_plan import Files
from regreen.code.config_loaders import InvalidYaml, load_toml, load_yaml
from regreen.code.python_calls import parse_python
from regreen.domain.environments import ReadText
from regreen.packages.dependency import get_table
from regreen.shell.called_scripts import read_called_text
from regreen.shell.parse import find_commands
from regreen.shell.tools import load_tools, split_runner


def read_task_commands(words: Sequence[str], read: ReadText) -> str:
    """The commands, one a line, that a call of a task runner runs; empty if it is none or cannot be read."""
    name = words[0].rsplit("/", 1)[-1]
    try:
        return (
            "\n".join(_COMMAND_READERS[name](list(words[1:]), read))
            if name in _COMMAND_READERS
            else ""
        )
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return ""


def _drop_options(words: Sequence[str]) -> list[str]:
    """The words that are neither options nor their values."""
    with_value = load_tools().option_values["task_runners"]
    return [
        word
        for before, word in zip(["", *words], words, strict=False)
        if not word.startswith("-") and before not in with_value
    ]


def _option_values(words: Sequence[str], *options: str) -> list[str]:
    """The values of an option: `-e lint,style`, `--env=lint`, `-qe lint`."""
    found: list[str] = []
    for at, word in enumerate(words):
        if word in options or re.fullmatch(rf"-[a-z]+{options[0][1:]}", word):
            found += words[at + 1 : at + 2]
        elif word.startswith(tuple(f"{option}=" for option in options)):
            found.append(word.partition("=")[2])
    return [name for value in found for name in value.split(",")]


# -- tox -------------------------------------------------------------------------------------------------------------


def _tox_commands(words: list[str], read: ReadText) -> Iterator[str]:
    names = _option_values(words, "-e", "--env")
    for path in ("tox.ini", "setup.cfg"):
        text = read(path) or ""
        if "[testenv" in text:
            yield from _tox_ini_commands(text, names)
    tables = [load_toml(read("tox.toml") or "")]
    tool = get_table(get_table(load_toml(read("pyproject.toml") or ""), "tool"), "tox")
    old = tool.get("legacy_tox_ini")
    if isinstance(old, str):
        yield from _tox_ini_commands(old, names)
    for whole in (*tables, tool):
        for name in names:
            commands = get_table(get_table(whole, "env"), name).get("commands", [])
            for command in commands if isinstance(commands, list) else []:
                yield shlex.join(str(word) for word in command if isinstance(word, str))


def _tox_ini_commands(text: str, names: Sequence[str]) -> Iterator[str]:
    parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    for name in names:
        section = f"testenv:{name}" if parser.has_section(f"testenv:{name}") else "testenv"
        commands = parser.get(section, "commands", fallback="") or ""
        for line in commands.replace("\\\n", " ").splitlines():
            yield _expand_tox_line(line.strip().lstrip("-! "), parser)


def _expand_tox_line(line: str, parser: configparser.ConfigParser) -> str:
    """The line with the substitutions of tox that can be made without running it."""
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


def _nox_commands(words: list[str], read: ReadText) -> Iterator[str]:
    names = [
        re.sub(r"[-(].*", "", session)
        for session in _option_values(words, "-s", "--session", "--sessions")
    ] + _drop_options(words)
    for function in _module_functions(read("noxfile.py") or ""):
        if names and not {function.name, *_session_names(function)} & {
            *names,
            *(n.replace("-", "_") for n in names),
        }:
            continue
        for call in _find_method_calls(function, {"run", "run_always", "run_install"}):
            plain = [argument for argument in call.args if not isinstance(argument, ast.Starred)]
            texts = [
                argument.value
                for argument in plain
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
            ]
            if texts and len(texts) == len(plain):
                yield shlex.join(texts)


def _invoke_commands(words: list[str], read: ReadText) -> Iterator[str]:
    names = {name.replace("-", "_") for name in _drop_options(words)}
    for function in _module_functions(read("tasks.py") or ""):
        if function.name in names:
            for call in _find_method_calls(function, {"run"}):
                first = call.args[0] if call.args else None
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    yield first.value


def _module_functions(text: str) -> Iterator[ast.FunctionDef]:
    tree = parse_python(text)
    yield from (node for node in (tree.body if tree else ()) if isinstance(node, ast.FunctionDef))


def _find_method_calls(function: ast.FunctionDef, methods: set[str]) -> Iterator[ast.Call]:
    for node in ast.walk(function):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in methods
        ):
            yield node


def _session_names(function: ast.FunctionDef) -> Iterator[str]:
    """The names and tags that a session's decorator gives it."""
    for decorator in function.decorator_list:
        for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
            if keyword.arg in {"name", "tags"}:
                yield from (
                    node.value
                    for node in ast.walk(keyword.value)
                    if isinstance(node, ast.Constant) and isinstance(node.value, str)
                )


# -- tasks in tables -------------------------------------------------------------------------------------------------


def _hatch_commands(words: list[str], read: ReadText) -> Iterator[str]:
    plain = (
        [word for word in _drop_options(words[1:]) if not word.startswith("+")]
        if words[:1] == ["run"]
        else []
    )
    if not plain:
        return
    environment, _, script = plain[0].rpartition(":")
    environment = environment or "default"
    whole = load_toml(read("hatch.toml") or "") or get_table(
        get_table(load_toml(read("pyproject.toml") or ""), "tool"), "hatch"
    )
    scripts = get_table(get_table(get_table(whole, "envs"), environment), "scripts")
    for line in _as_list(scripts.get(script)):
        filled = re.sub(r"\{args(?::([^{}]*))?\}", lambda use: use[1] or "", line.lstrip("- "))
        first = filled.split(maxsplit=1)[0] if filled.split() else ""
        yield f"hatch run {environment}:{filled}" if first in scripts else filled


def _poe_commands(words: list[str], read: ReadText) -> Iterator[str]:
    whole = get_table(get_table(load_toml(read("pyproject.toml") or ""), "tool"), "poe")
    whole = whole or load_toml(read("poe_tasks.toml") or "")
    yield from _task_commands(get_table(whole, "tasks"), _drop_options(words)[:1], "poe")


def _make_table_reader(
    tool: str, key: str, call: str
) -> Callable[[list[str], ReadText], Iterator[str]]:
    """A reader for a runner whose tasks are in `[tool.NAME]` of pyproject.toml."""

    def lines(words: list[str], read: ReadText) -> Iterator[str]:
        document = load_toml(read("pyproject.toml") or "")
        plain = [word for word in _drop_options(words) if word != "run"][:1]
        yield from _task_commands(
            get_table(get_table(get_table(document, "tool"), tool), key), plain, call
        )

    return lines


def _task_commands(tasks: Mapping[str, object], names: Sequence[str], call: str) -> Iterator[str]:
    """The commands of a task: a line, a list of other tasks, or a table with either."""
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
        for step in task if isinstance(task, list) else ():
            if isinstance(step, dict):
                yield from _task_commands({"": step}, [""], call)
            else:
                first = str(step).split(maxsplit=1)[0]
                yield f"{call} {step}" if first in tasks else str(step)


def _taskfile_commands(words: list[str], read: ReadText) -> Iterator[str]:
    """go-task's Taskfile, or taskipy's table."""
    text = next((found for path in ("Taskfile.yml", "Taskfile.yaml") if (found := read(path))), "")
    if not text:
        yield from _make_table_reader("taskipy", "tasks", "task")(words, read)
        return
    try:
        document = load_yaml(text)
    except InvalidYaml:
        return
    tasks = document.get("tasks", {}) if isinstance(document, dict) else {}
    for name in _drop_options(words) or ["default"]:
        task = tasks.get(name)
        if isinstance(task, dict):
            yield from (
                f"task {dependency}"
                for dependency in task.get("deps", [])
                if isinstance(dependency, str)
            )
            commands = task.get("cmds", task.get("cmd", []))
        else:
            commands = task
        yield from _as_list(commands)
        for step in commands if isinstance(commands, list) else ():
            if isinstance(step, dict):
                yield f"task {step['task']}" if "task" in step else str(step.get("cmd", ""))


def _as_list(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _run_all_commands(words: list[str], read: ReadText) -> Iterator[str]:
    """npm-run-all, run-s and run-p: other scripts of the package, by patterns."""
    scripts = json.loads(read("package.json") or "{}").get("scripts", {})
    for pattern in _drop_options(words):
        glob = pattern.replace(":**", ":*")
        yield from (f"npm run {name}" for name in scripts if fnmatch.fnmatchcase(name, glob))


# -- hooks -----------------------------------------------------------------------------------------------------------


def _local_hook_commands(words: list[str], read: ReadText) -> Iterator[str]:
    """The commands of local hooks, with the files that they apply to."""
    if "run" not in words:
        return
    wanted = [word for word in _drop_options(words) if word != "run"]
    try:
        document = load_yaml(read(".pre-commit-config.yaml") or read("prek.yaml") or "{}")
    except InvalidYaml:
        return
    for repo in document.get("repos", []) if isinstance(document, dict) else ():
        for hook in repo.get("hooks", []) if repo.get("repo") == "local" else ():
            if hook.get("language") not in {"system", "python", "unsupported", "node"}:
                continue
            if not wanted or hook.get("id") in wanted:
                yield " ".join(
                    [
                        str(hook.get("entry", "")),
                        *(shlex.quote(str(argument)) for argument in hook.get("args", [])),
                        _hook_files(hook),
                    ]
                ).strip()


def _hook_files(hook: Mapping[str, object]) -> str:
    if hook.get("pass_filenames") is False:
        return ""
    types = {str(kind) for key in ("types", "types_or") for kind in _as_list(hook.get(key))}
    files = hook.get("files")
    if isinstance(files, str) and files:
        return f"$(git ls-files | grep -E {shlex.quote(files)})"
    return "$(git ls-files '*.py')" if types & {"python", "pyi"} else "$(git ls-files)"


_COMMAND_READERS: Mapping[str, Callable[[list[str], ReadText], Iterator[str]]] = {
    "tox": _tox_commands,
    "nox": _nox_commands,
    "hatch": _hatch_commands,
    "poe": _poe_commands,
    "pdm": _make_table_reader("pdm", "scripts", "pdm"),
    "rye": _make_table_reader("rye", "scripts", "rye"),
    "pixi": _make_table_reader("pixi", "tasks", "pixi"),
    "task": _taskfile_commands,
    "invoke": _invoke_commands,
    "inv": _invoke_commands,
    "run-s": _run_all_commands,
    "run-p": _run_all_commands,
    "npm-run-all": _run_all_commands,
    "npm-run-all2": _run_all_commands,
    "pre-commit": _local_hook_commands,
    "pre_commit": _local_hook_commands,
    "prek": _local_hook_commands,
}


# Expands `npm run lint`, `make check` or `nox -s lint` to the script's lines.

_MAX_DEPTH = 4
_MAX_SCRIPTS = 40
_FOLDER_OPTIONS = {
    "npm": ("--prefix", "-C"),
    "pnpm": ("--dir", "-C"),
    "yarn": ("--cwd",),
    "just": ("--working-directory", "-d"),
}
_NOT_SCRIPTS = {"install", "i", "ci", "add", "exec", "dlx", "x", "create", "init", "publish"}


def expand_command(command: str, read: ReadText) -> list[str]:
    """The command, then each script that it runs; a script in another folder begins with `cd`."""
    return list(_follow_scripts(command, read, ".", 0))[:_MAX_SCRIPTS]


def _follow_scripts(command: str, read: ReadText, folder: str, depth: int) -> Iterator[str]:
    yield command
    if depth >= _MAX_DEPTH:
        return
    for words in (found.arguments for found in find_commands(command)):
        if words[0] == "cd" and len(words) > 1 and not words[1].startswith(("/", "..", "$", "-")):
            folder = posixpath.normpath(posixpath.join(folder, words[1]))
        for text in _find_script_body(words, _read_in_folder(folder, read)):
            whole = (
                text if folder == "." or text == command else f"cd {shlex.quote(folder)}\n{text}"
            )
            yield from _follow_scripts(whole, read, "." if whole != text else folder, depth + 1)


def _read_in_folder(folder: str, read: ReadText) -> ReadText:
    if folder == ".":
        return read
    return lambda path: read(f"{folder}/{path}".removeprefix("./"))


def _find_script_body(words: Sequence[str], read: ReadText) -> Iterator[str]:
    """The scripts that a call runs, also through a wrapper: `uv run poe lint` counts as `poe lint`."""
    before, _ = split_runner(words)
    for start in range(min(len(before) + 1, len(words))):
        call = list(words[start:])
        name = call[0].rsplit("/", 1)[-1]
        if name in {"bash", "sh"} and "-c" in call[1:-1]:
            yield call[call.index("-c", 1) + 1]
            return
        if name in {"npm", "pnpm", "yarn", "bun"} and _NOT_SCRIPTS & set(call[1:3]):
            continue
        inner, call = _split_folder_option(name, call)
        there = _read_in_folder(inner, read)
        text = read_task_commands(call, there) or read_called_text(call, ".", _make_files(there))
        if text:
            yield text if inner == "." else f"cd {shlex.quote(inner)}\n{text}"
            return


def _split_folder_option(name: str, call: list[str]) -> tuple[str, list[str]]:
    """The folder of an option, and the call without the option: `npm --prefix web run lint`."""
    for option in _FOLDER_OPTIONS.get(name, ()):
        if option in call[1:-1]:
            at = call.index(option)
            folder = call[at + 1].rstrip("/")
            rest = [*call[:at], *call[at + 2 :]]
            return ("." if folder.startswith(("/", "..", "$")) else folder), rest
    return ".", call


def _make_files(read: ReadText) -> Files:
    def files(path: str) -> bytes | None:
        text = read(path)
        return None if text is None else text.encode()

    return files
