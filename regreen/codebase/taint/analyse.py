"""The way in: which flows from untrusted input to harm a repository's files hold."""

from __future__ import annotations

import ast
import time
from collections.abc import Iterable
from dataclasses import dataclass

from regreen.codebase.taint import entries, expressions, handlers, invocation
from regreen.codebase.taint.program import Program
from regreen.codebase.taint.run import (
    DEEPEST_CALL,
    NODES_PER_ROOT,
    Entry,
    Flow,
    Frame,
    OutOfSteps,
    Run,
)
from regreen.codebase.taint.sinks import Arguments
from regreen.codebase.taint.state import State
from regreen.codebase.taint.values import ClassRef, FunctionRef, Value, thing

# What takes too many steps is walked again with calls followed no further than this.
_SHALLOW = 3


@dataclass(frozen=True, slots=True)
class Analysis:
    """The flows found, and the files that were not (wholly) read, with why."""

    flows: tuple[Flow, ...]
    unread: dict[str, str]


def analyse(program: Program, paths: Iterable[str], seconds: float = 60.0) -> Analysis:
    """Walk every function of these files, and what they call anywhere in the program."""
    run = Run(program, time.monotonic() + seconds)
    unread: dict[str, str] = {}
    for path in paths:
        if time.monotonic() > run.deadline:
            unread[path] = "out of time"
            continue
        module = program.module(path)
        if module is None:
            unread[path] = program.unread.get(path, "not readable")
            continue
        try:
            _walk_module(run, path)
        except RecursionError:
            unread[path] = "nested too deeply"
    for path in run.unfinished & set(paths):
        unread.setdefault(path, "too complex to follow everywhere")
    flows = sorted(run.flows.values(), key=lambda flow: (flow.path, flow.line, flow.rule))
    return Analysis(tuple(flows), unread)


def _walk_module(run: Run, path: str) -> None:
    run.left = NODES_PER_ROOT
    expressions.environment(run, path)
    wanted = [item for item in run.pending if item[0].module == path]
    run.pending = [item for item in run.pending if item[0].module != path]
    while wanted:
        function, owner = wanted.pop(0)
        _walk_root(run, function, owner)
        wanted += [item for item in run.pending if item[0].module == path]
        run.pending = [item for item in run.pending if item[0].module != path]


def _walk_root(run: Run, function: FunctionRef, owner: ast.ClassDef | None) -> None:
    for run.deepest in (DEEPEST_CALL, _SHALLOW):
        if _walked(run, function, owner):
            return
    run.unfinished.add(function.module)


def _walked(run: Run, function: FunctionRef, owner: ast.ClassDef | None) -> bool:
    """Walk one function by itself; False when that took too many steps."""
    run.left, run.nesting, run.stack = NODES_PER_ROOT, 0, [function.node]
    entry = entries.entry_of(run, function, owner)
    frame = Frame(function.module, function.node, (id(function.node),), 0, function.closure, entry)
    state = State({}, {}, {}, run.shared)
    run.entry = entry
    try:
        bound = _self(run, frame, function, owner, entry, state)
        state.names = entries.arguments(function, entry, frame, bound)
        if entry is not None:
            handlers.prepare(run, frame, function, owner, state)
            handlers.hooks(run, frame, function, state)
        if entry is None or not handlers.decorated(run, frame, function, state):
            frame.closure = run.new_closure(state.names, function.closure)
            invocation.walk(run, frame, function, state)
            run.closures[frame.closure] = (state.names, function.closure)
    except OutOfSteps:
        return False
    finally:
        run.entry = None
        run.answers.clear()
    return True


def _self(  # noqa: PLR0917
    run: Run,
    frame: Frame,
    function: FunctionRef,
    owner: ast.ClassDef | None,
    entry: Entry | None,
    state: State,
) -> Value | None:
    if owner is None or isinstance(function.node, ast.Lambda):
        return None
    if any(
        isinstance(d, ast.Name) and d.id == "staticmethod" for d in function.node.decorator_list
    ):
        return None
    cls = ClassRef(owner, function.module, function.closure)
    if any(isinstance(d, ast.Name) and d.id == "classmethod" for d in function.node.decorator_list):
        return thing(cls)
    value = invocation.instance(run, frame, owner, cls, Arguments(), state)
    if entry is not None:
        entries.give_request(value, entry.framework, frame, function.node.lineno, state)
    return value
