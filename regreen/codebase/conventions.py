"""What a repository's Python does as a habit, counted; and where new code leaves the habit."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from regreen.codebase.python_code import Function

Habit = Literal[
    "functions are snake_case",
    "classes are CapWords",
    "messages go to logging, not print",
    "handlers name their exception",
    "names are imported one by one, not with *",
    "imports are absolute",
    "functions have annotations",
    "functions have docstrings",
    "files are read and written with pathlib",
]
ENOUGH = 30
SURE = 0.95


@dataclass(frozen=True, slots=True)
class Sighting:
    """One place where a habit is kept or left; `line` is 1-based."""

    habit: Habit
    kept: bool
    line: int
    what: str


@dataclass(frozen=True)
class Habits:
    """How often each habit was kept and left in the code that was there before."""

    kept: Counter[Habit] = field(default_factory=Counter)
    left: Counter[Habit] = field(default_factory=Counter)

    def support(self, habit: Habit) -> tuple[int, int]:
        """How often it was kept, and of how many."""
        return self.kept[habit], self.kept[habit] + self.left[habit]

    def holds(self, habit: Habit) -> bool:
        """Whether it is a habit at all: seen often enough, and nearly always kept."""
        kept, total = self.support(habit)
        return total >= ENOUGH and kept >= SURE * total


def learn(trees: Iterable[ast.Module]) -> Habits:
    """Count the habits of a repository."""
    habits = Habits()
    for tree in trees:
        for seen in sightings(tree):
            (habits.kept if seen.kept else habits.left)[seen.habit] += 1
    return habits


def sightings(tree: ast.Module) -> Iterator[Sighting]:
    """Every place in a file that keeps or leaves one of the habits."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _function(node)
            case ast.ClassDef():
                capital = _CAP_WORDS.fullmatch(node.name) is not None
                yield Sighting("classes are CapWords", capital, node.lineno, node.name)
            case ast.Call():
                yield from _call(node)
            case ast.ExceptHandler():
                named = node.type is not None
                yield Sighting("handlers name their exception", named, node.lineno, "except:")
            case ast.ImportFrom():
                star = any(a.name == "*" for a in node.names)
                whole = f"from {'.' * node.level}{node.module or ''} import"
                yield Sighting(
                    "names are imported one by one, not with *", not star, node.lineno, whole
                )
                yield Sighting("imports are absolute", node.level == 0, node.lineno, whole)
            case _:
                pass


def _function(node: Function) -> Iterator[Sighting]:
    if node.name.startswith(("visit_", "setUp", "tearDown", "assert", "do_", "__")):
        return  # a framework chose these names
    snake = _SNAKE.fullmatch(node.name) is not None
    yield Sighting("functions are snake_case", snake, node.lineno, node.name)
    if node.name.startswith("_"):
        return
    arguments = [a for a in node.args.args if a.arg not in {"self", "cls"}]
    annotated = node.returns is not None and all(a.annotation for a in arguments)
    yield Sighting("functions have annotations", annotated, node.lineno, node.name)
    if not node.name.startswith("test"):
        documented = ast.get_docstring(node, clean=False) is not None
        yield Sighting("functions have docstrings", documented, node.lineno, node.name)


def _call(node: ast.Call) -> Iterator[Sighting]:
    match node.func:
        case ast.Name(id="print"):
            yield Sighting("messages go to logging, not print", False, node.lineno, "print")
        case ast.Name(id="open"):
            yield Sighting("files are read and written with pathlib", False, node.lineno, "open")
        case ast.Attribute(value=ast.Name(id=name), attr=attr) if (
            name.lower() in {"log", "logger", "logging", "_log", "_logger"} and attr in _LEVELS
        ):
            yield Sighting("messages go to logging, not print", True, node.lineno, f"{name}.{attr}")
        case ast.Attribute(attr="read_text" | "write_text" | "read_bytes" | "write_bytes" as attr):
            yield Sighting("files are read and written with pathlib", True, node.lineno, attr)
        case _:
            pass


_LEVELS = frozenset({"debug", "info", "warning", "error", "exception", "critical", "log"})
_SNAKE = re.compile(r"_*[a-z0-9]+(?:_+[a-z0-9]+)*_*")
_CAP_WORDS = re.compile(r"_*[A-Z][A-Za-z0-9]*_*")
