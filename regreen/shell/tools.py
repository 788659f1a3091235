"""What is known of the programs in shell commands (`tools.toml`): wrappers, runners, options that take a value."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from regreen.shell.parse import ASSIGNMENT


@dataclass(frozen=True, slots=True)
class FixingTool:
    """A row of `[fixing]`."""

    cause: str
    drop: Sequence[str] = ()
    drop_values: Sequence[str] = ()
    add: Sequence[str] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    approval: str | None = None
    unsafe: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class FixingCompiler:
    """A row of `[[compilers]]`; `keep` of None keeps every word of the call."""

    name: str
    says: str
    calls: Sequence[str]
    guess: str
    script: str = ""
    asks: str | None = None
    keep: Sequence[str] | None = None
    keep_values: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ToolTable:
    """The table of `tools.toml`; its comments describe each field."""

    wrappers: Mapping[str, frozenset[str]]
    wrapper_words: Mapping[str, int]
    runner_calls: tuple[tuple[str, ...], ...]
    runner_flags: frozenset[str]
    runner_values: frozenset[str]
    programs: Mapping[str, frozenset[str]]
    option_values: Mapping[str, frozenset[str]]
    installs: Mapping[str, Sequence[str]]
    fetching: Mapping[str, str]
    test_suites: Sequence[str]
    fixing: Mapping[str, FixingTool]
    compilers: Sequence[FixingCompiler]


@cache
def load_tools() -> ToolTable:
    """Read the table that comes with the program."""
    document = tomllib.loads((files("regreen.shell") / "tools.toml").read_text())
    runners = document["runners"]
    return ToolTable(
        wrappers={name: frozenset(values) for name, values in document["wrappers"].items()},
        wrapper_words=document["wrapper_words"],
        runner_calls=tuple(tuple(call.split()) for call in runners["calls"]),
        runner_flags=frozenset(runners["flags"]),
        runner_values=frozenset(runners["values"]),
        programs={name: frozenset(values) for name, values in document["programs"].items()},
        option_values={
            name: frozenset(values) for name, values in document["option_values"].items()
        },
        installs=document["installs"],
        fetching=document["fetching"],
        test_suites=document["test_suites"]["patterns"],
        fixing={name: FixingTool(**row) for name, row in document["fixing"].items()},
        compilers=tuple(FixingCompiler(**row) for row in document["compilers"]),
    )


def split_wrappers(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split `sudo -u me A=1 timeout 60 pip install x` into the assignments and wrappers, and the call behind them."""
    tools = load_tools()
    at = 0
    while at < len(words):
        name = words[at].rsplit("/", 1)[-1]
        if ASSIGNMENT.fullmatch(words[at]):
            at += 1
        elif name == "command" and words[at + 1 : at + 2] in (["-v"], ["-V"]):
            break  # only looks the program up
        elif name in tools.wrappers:
            at = _skip_options(words, at + 1, tools.wrappers[name])
            at += tools.wrapper_words.get(name, 0)
        else:
            break
    return list(words[:at]), list(words[at:])


def _skip_options(words: Sequence[str], at: int, with_value: frozenset[str]) -> int:
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in with_value else 1
    return at


def split_runner(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split `time uv run --frozen ruff check .` into wrappers and runners, and the call behind them."""
    tools = load_tools()
    before, rest = split_wrappers(words)
    if rest[:1] == ["find"] and {"-exec", "-execdir"} & set(rest):
        at = next(at for at, word in enumerate(rest, 1) if word in {"-exec", "-execdir"})
        return [*before, *rest[:at]], rest[at:]
    while call := _find_runner_call(rest):
        at = len(call)
        while at < len(rest) and rest[at] in tools.runner_flags | tools.runner_values:
            at += 2 if rest[at] in tools.runner_values else 1
        wrappers, inner = split_wrappers(rest[at:])
        before, rest = [*before, *rest[:at], *wrappers], inner
    return before, rest


def _find_runner_call(words: Sequence[str]) -> tuple[str, ...]:
    start = (normalise_program(words[0]), *words[1:3]) if words else ()
    calls = load_tools().runner_calls
    return next((call for call in calls if start[: len(call)] == call), ())


def normalise_program(word: str) -> str:
    """The name of a program without its folder and Python's version: `/env/bin/pip3.12` is `pip`."""
    name = word.rsplit("/", 1)[-1]
    return re.sub(r"^(?:(pip|python)[\d.]*|pypy[\d.]*|py)$", lambda use: use[1] or "python", name)


def resolve_module_program(words: Sequence[str]) -> tuple[str, list[str]]:
    """The program of a call and its arguments; `python3 -I -m pip x` and `uv pip x` are pip's x."""
    if not words:
        return ":", []
    word = words[0]
    is_local = "/" in word and "/bin/" not in word and not word.startswith(("/", "$"))
    name = word if is_local else normalise_program(word)
    arguments = list(words[1:])
    if name == "python":
        at = 0
        while (
            at < len(arguments) and re.match(r"-[^mc-]*$", arguments[at]) and arguments[at] != "-"
        ):
            at += 2 if arguments[at] in load_tools().option_values["python"] else 1
        module = (
            re.fullmatch(r"-[bBdEhiIOPqRsSuvx]*m(.*)", arguments[at])
            if at < len(arguments)
            else None
        )
        if module is not None:
            called = [module[1], *arguments[at + 1 :]] if module[1] else arguments[at + 1 :]
            return resolve_module_program(called) if called else (name, arguments)
    if name == "uv":
        at = _skip_options(arguments, 0, load_tools().option_values["uv"])
        if arguments[at : at + 1] == ["pip"]:
            return "pip", [*arguments[:at], *arguments[at + 1 :]]
    return name, arguments
