"""One analysis while it runs: budget, call stack, what was found."""

from __future__ import annotations

import ast
import time
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from regreen.taint.program import Program, cached_tainting_names
from regreen.taint.state import AbstractState, HeapObject, HelperAnswer
from regreen.taint.values import (
    AbstractValue,
    AccessPath,
    CallArguments,
    FunctionRef,
    Key,
    ObjectRef,
    Taint,
    TrailStep,
    make_external,
    make_reference,
)

DEEPEST_CALL = 7
DEEPEST_NESTING = 60
NODES_PER_ROOT = 30_000


class OutOfSteps(Exception):
    """This root takes too long; what was found until here stands."""


@dataclass(frozen=True, slots=True)
class TaintFlow:
    """An untrusted value that reaches a place where it does harm."""

    rule: str
    path: str
    line: int
    end_line: int
    sink: str
    origin: str
    origin_what: str
    certain: bool
    steps: tuple[TrailStep, ...]


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """How a function is reached from outside: which framework, its paths where all are fixed, its routes where known."""

    framework: str
    paths: tuple[str, ...] = ()
    html: bool = True
    routes: tuple[str, ...] = ()


@dataclass(slots=True)
class CallFrame:
    """One function (or module body) under analysis."""

    path: str
    node: ast.AST
    context: tuple[Hashable, ...]
    closure: int
    outer: int = 0
    entry: EntryPoint | None = None
    returns: list[tuple[AbstractValue, AbstractState]] = field(default_factory=list)
    breaks: list[AbstractState] = field(default_factory=list)
    continues: list[AbstractState] = field(default_factory=list)
    yields: list[AbstractValue] = field(default_factory=list)
    answer: HelperAnswer | None = None
    globals: set[str] = field(default_factory=set)


@dataclass(slots=True)
class AnalysisRun:
    """Everything that lives as long as one analysis."""

    program: Program
    deadline: float
    interpreter: type[Interpreter]
    flows: dict[tuple[str, str, int], TaintFlow] = field(default_factory=dict)
    environments: dict[str, dict[str, AbstractValue]] = field(default_factory=dict)
    shared: dict[Key, HeapObject] = field(default_factory=dict)
    closures: dict[int, tuple[dict[str, AbstractValue], int]] = field(default_factory=dict)
    pending: list[tuple[FunctionRef, ast.ClassDef | None]] = field(default_factory=list)
    queued: set[tuple[ast.AST, int]] = field(default_factory=set)
    stack: list[ast.AST] = field(default_factory=list)
    entry: EntryPoint | None = None
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
    route_modules: list[str] | None = None
    refused_elements: dict[Key, Mapping[AccessPath, frozenset[str]]] = field(default_factory=dict)
    tainting_names: dict[str, frozenset[str]] = field(default_factory=dict)
    answers: list[tuple[ast.AST, HelperAnswer]] = field(default_factory=list)
    # Predictable values by where later requests find them, and the places that a request's values are compared with.
    stored_values: dict[Key, list[tuple[str, ast.AST, str, frozenset[Taint]]]] = field(
        default_factory=dict
    )
    compared_keys: set[Key] = field(default_factory=set)
    assigned: dict[ast.AST, dict[str, list[ast.expr]]] = field(default_factory=dict)

    def spend_step(self) -> None:
        """Count one node."""
        self.left -= 1
        if self.left < 0 or (self.left & 255 == 0 and time.process_time() > self.deadline):
            raise OutOfSteps

    def interpret(self, frame: CallFrame, state: AbstractState) -> Interpreter:
        """An interpreter for this frame that changes this state."""
        return self.interpreter(self, frame, state)

    def may_bring_taint(self, function: FunctionRef) -> bool:
        """Whether a function, or what it calls, mentions a source of untrusted values."""
        names = cached_tainting_names(self.program, function.module, self.tainting_names)
        if isinstance(function.node, ast.Lambda):
            return bool(names)
        return function.node.name in names

    def register_closure(self, names: dict[str, AbstractValue], outer: int) -> int:
        """A number for the names of a frame, so that inner functions find them."""
        self.frames += 1
        self.closures[self.frames] = (names, outer)
        return self.frames

    def report_flow(
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
        steps = (*best.trail.list_steps(), TrailStep(path, line, sink))
        flow = TaintFlow(
            rule, path, line, end, sink, best.origin, steps[0].what, best.certain, steps
        )
        key = (rule, path, line)
        before = self.flows.get(key)
        if before is None or (flow.certain, -len(flow.steps)) > (
            before.certain,
            -len(before.steps),
        ):
            self.flows[key] = flow


@dataclass(slots=True)
class Interpreter(ABC):
    """One function (or module body) under analysis: the run, the frame, and the state at this point.

    The abstract methods are the transfer functions; each module reaches those of the others through them.
    """

    run: AnalysisRun
    frame: CallFrame
    state: AbstractState

    @abstractmethod
    def evaluate(self, node: ast.expr) -> AbstractValue:
        """What an expression may be here; calls in it happen."""

    @abstractmethod
    def read_attribute(self, node: ast.Attribute, owner: AbstractValue) -> AbstractValue:
        """`owner.attribute`."""

    @abstractmethod
    def execute(self, body: Sequence[ast.stmt]) -> bool:
        """Walk statements in order; False when no path comes out at the end."""

    @abstractmethod
    def assign_target(self, target: ast.expr, value: AbstractValue) -> None:
        """Let `target` hold `value`."""

    @abstractmethod
    def branch_states(self, test: ast.expr) -> tuple[AbstractState | None, AbstractState | None]:
        """Two states: where the test holds, and where it does not; None for a way that cannot be taken."""

    @abstractmethod
    def invoke_callee(
        self, node: ast.AST, callee: AbstractValue, args: CallArguments
    ) -> AbstractValue:
        """Call functions and classes of the repository."""

    @abstractmethod
    def call_library(
        self,
        node: ast.Call,
        names: tuple[str, ...],
        args: CallArguments,
        callee: AbstractValue,
        *,
        checked: bool = False,
    ) -> AbstractValue:
        """A call of something outside the repository; `checked`: its sinks were examined."""

    def with_state(self, state: AbstractState) -> Interpreter:
        """The same walk on another way."""
        return type(self)(self.run, self.frame, state)

    def fork(self) -> Interpreter:
        """The same walk with a copy of the state."""
        return self.with_state(self.state.fork())

    def lookup_name(self, name: str) -> AbstractValue:
        """What a name means here: local, from around, global, built in."""
        value = self.state.names.get(name)
        if value is not None:
            return value
        closure = self.frame.outer
        while closure:
            names, closure = self.run.closures.get(closure, ({}, 0))
            if name in names:
                return names[name]
        value = self.run.environments.get(self.frame.path, {}).get(name)
        return make_external(f"builtins.{name}") if value is None else value

    def allocate_object(self, node: ast.AST, heap_object: HeapObject) -> AbstractValue:
        """A new object, made at this place in this call."""
        key = (id(node), self.frame.context)
        self.state.heap[key] = heap_object
        return make_reference(ObjectRef(key))

    def report_flow(self, rule: str, node: ast.AST, sink: str, taints: frozenset[Taint]) -> None:
        """Remember a flow into this place."""
        self.run.report_flow(rule, self.frame.path, node, sink, taints)


@dataclass(frozen=True, slots=True)
class Route:
    """One route of a web application: its address, and the handler as it is written there."""

    address: str
    view: ast.Name | ast.Attribute

    @property
    def name(self) -> str:
        """The view's own name, without its module's."""
        return self.view.attr if isinstance(self.view, ast.Attribute) else self.view.id
