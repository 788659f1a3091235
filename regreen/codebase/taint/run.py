"""One analysis while it runs: budget, call stack, what was found."""

from __future__ import annotations

import ast
import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from regreen.codebase.taint.answers import Answer
from regreen.codebase.taint.program import Program
from regreen.codebase.taint.state import Heaped, State
from regreen.codebase.taint.talking import talking
from regreen.codebase.taint.values import (
    FunctionRef,
    Key,
    Mark,
    ModuleRef,
    Step,
    Taint,
    Value,
    external,
    join,
    thing,
)

if TYPE_CHECKING:
    from regreen.codebase.taint.routes import Route

DEEPEST_CALL = 7
DEEPEST_NESTING = 60
NODES_PER_ROOT = 30_000


class OutOfSteps(Exception):
    """This root takes too long; what was found until here stands."""


@dataclass(frozen=True, slots=True)
class Flow:
    """An untrusted value that reaches a place where it does harm."""

    rule: str
    path: str
    line: int
    end_line: int
    sink: str
    origin: str
    origin_what: str
    certain: bool
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """How a function is reached from outside: which framework, its paths where all are fixed, its routes where known."""

    framework: str
    paths: tuple[str, ...] = ()
    html: bool = True
    routes: tuple[str, ...] = ()


@dataclass(slots=True)
class Frame:
    """One function (or module body) being walked."""

    path: str
    node: ast.AST
    context: tuple[Hashable, ...]
    closure: int
    outer: int = 0
    entry: Entry | None = None
    returns: list[tuple[Value, State]] = field(default_factory=list)
    breaks: list[State] = field(default_factory=list)
    continues: list[State] = field(default_factory=list)
    yields: list[Value] = field(default_factory=list)
    answer: Answer | None = None
    globals: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Run:
    """Everything that lives as long as one analysis."""

    program: Program
    deadline: float
    flows: dict[tuple[str, str, int], Flow] = field(default_factory=dict)
    environments: dict[str, dict[str, Value]] = field(default_factory=dict)
    shared: dict[Key, Heaped] = field(default_factory=dict)
    closures: dict[int, tuple[dict[str, Value], int]] = field(default_factory=dict)
    pending: list[tuple[FunctionRef, ast.ClassDef | None]] = field(default_factory=list)
    queued: set[tuple[ast.AST, int]] = field(default_factory=set)
    stack: list[ast.AST] = field(default_factory=list)
    entry: Entry | None = None
    handler: ast.AST | None = None
    reached: bool = False
    frames: int = 0
    left: int = NODES_PER_ROOT
    deepest: int = DEEPEST_CALL
    nesting: int = 0
    unfinished: set[str] = field(default_factory=set)
    members: dict[ast.ClassDef, dict[str, ast.expr | ast.stmt]] = field(default_factory=dict)
    kinds: dict[ast.ClassDef, str] = field(default_factory=dict)
    routes: dict[str, list[Route]] = field(default_factory=dict)
    tables: list[str] | None = None
    unfit: dict[Key, Mapping[Mark, frozenset[str]]] = field(default_factory=dict)
    talking: dict[str, frozenset[str]] = field(default_factory=dict)
    answers: list[tuple[ast.AST, Answer]] = field(default_factory=list)

    def tick(self) -> None:
        """Count one node."""
        self.left -= 1
        if self.left < 0 or (self.left & 255 == 0 and time.monotonic() > self.deadline):
            raise OutOfSteps

    def may_bring_taint(self, function: FunctionRef) -> bool:
        """Whether a function, or what it calls, speaks of anything that untrusted values come from."""
        names = talking(self.program, function.module, self.talking)
        if isinstance(function.node, ast.Lambda):
            return bool(names)
        return function.node.name in names

    def new_closure(self, names: dict[str, Value], outer: int) -> int:
        """A number for the names of a frame, so that inner functions find them."""
        self.frames += 1
        self.closures[self.frames] = (names, outer)
        return self.frames

    def report(
        self, rule: str, path: str, node: ast.AST, sink: str, taints: frozenset[Taint]
    ) -> None:
        """Remember a flow; of several at one place the surest and shortest is kept."""
        if not taints:
            return
        line = getattr(node, "lineno", 1)
        end = getattr(node, "end_lineno", line) or line
        best = min(
            taints, key=lambda t: (not t.certain, t.origin != "web", t.trail.length, repr(t.mark))
        )
        steps = (*best.trail.steps(), Step(path, line, sink))
        flow = Flow(rule, path, line, end, sink, best.origin, steps[0].what, best.certain, steps)
        key = (rule, path, line)
        before = self.flows.get(key)
        if before is None or (flow.certain, -len(flow.steps)) > (
            before.certain,
            -len(before.steps),
        ):
            self.flows[key] = flow


def lookup(run: Run, frame: Frame, state: State, name: str) -> Value:
    """What a name means here: local, from around, global, built in."""
    value = state.names.get(name)
    if value is not None:
        return value
    closure = frame.outer
    while closure:
        names, closure = run.closures.get(closure, ({}, 0))
        if name in names:
            return names[name]
    value = run.environments.get(frame.path, {}).get(name)
    return external(f"builtins.{name}") if value is None else value


def module_value(path: str) -> Value:
    """A module of the repository as a value."""
    return thing(ModuleRef(path))


def merge_into(names: dict[str, Value], name: str, value: Value) -> None:
    """A weak update of a name that other code may read at any time."""
    before = names.get(name)
    names[name] = value if before is None else join(before, value)
