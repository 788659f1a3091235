"""Walking statements: what each does to the state, and whether the path goes on after it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from regreen.codebase.taint import calls, cases, entries, expressions, guards, heap, sinks, targets
from regreen.codebase.taint.meeting import join_states
from regreen.codebase.taint.run import DEEPEST_NESTING, Frame, Run, module_value
from regreen.codebase.taint.state import State
from regreen.codebase.taint.values import (
    NONE,
    UNKNOWN,
    ClassRef,
    FunctionRef,
    Imported,
    Value,
    constant,
    external,
    part_of,
    thing,
)

_MOST_UNROLLED = 6


def execute(run: Run, frame: Frame, body: Sequence[ast.stmt], state: State) -> bool:
    """Walk statements in order; False when no path comes out at the end."""
    if run.nesting >= DEEPEST_NESTING:
        run.unfinished.add(frame.path)
        return True
    run.nesting += 1
    try:
        return all(_statement(run, frame, node, state) for node in body)
    finally:
        run.nesting -= 1


def _statement(run: Run, frame: Frame, node: ast.stmt, state: State) -> bool:  # noqa: C901, PLR0911, PLR0912
    run.tick()
    match node:
        case ast.Expr():
            expressions.evaluate(run, frame, node.value, state)
            return not calls.never_returns(run, frame, node.value, state)
        case ast.Assign():
            _assign(run, frame, node, state)
        case ast.AnnAssign():
            if node.value is not None:
                value = expressions.evaluate(run, frame, node.value, state)
                targets.assign(run, frame, node.target, value, state)
        case ast.AugAssign():
            targets.augment(run, frame, node, state)
        case ast.Return():
            _return(run, frame, node, state)
            return False
        case ast.Raise():
            if node.exc is not None:
                expressions.evaluate(run, frame, node.exc, state)
            return False
        case ast.If():
            return _if(run, frame, node, state)
        case ast.For() | ast.AsyncFor():
            return _for(run, frame, node, state)
        case ast.While():
            return _while(run, frame, node, state)
        case ast.Try() | ast.TryStar():
            return _try(run, frame, node, state)
        case ast.With() | ast.AsyncWith():
            return _with(run, frame, node, state)
        case ast.Match():
            return _match(run, frame, node, state)
        case ast.Break():
            frame.breaks.append(state.fork())
            return False
        case ast.Continue():
            frame.continues.append(state.fork())
            return False
        case ast.Assert():
            true, _ = guards.branch(run, frame, node.test, state)
            if true is not None:
                state.take(true)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            _define(run, frame, node, state)
        case ast.Import() | ast.ImportFrom():
            _import(run, frame, node, state)
        case ast.Global() | ast.Nonlocal():
            frame.globals.update(node.names)
        case ast.Delete():
            for target in node.targets:
                if isinstance(target, ast.Name):
                    state.names.pop(target.id, None)
        case _:
            pass
    return True


def _assign(run: Run, frame: Frame, node: ast.Assign, state: State) -> None:
    before = len(run.answers)
    value = expressions.evaluate(run, frame, node.value, state)
    told = guards.kept_answer(run, frame, node.value, run.answers[before:], state)
    del run.answers[before:]
    for target in node.targets:
        targets.assign(run, frame, target, value, state)
        targets.keep_answer(target, told, state)


def _return(run: Run, frame: Frame, node: ast.Return, state: State) -> None:
    if node.value is None:
        frame.returns.append((NONE, state.fork()))
        return
    if guards.is_answer(node.value):
        # A helper that says whether something is fine: keep what is known for each answer apart.
        true, false = guards.branch(run, frame, node.value, state)
        for way, answer in ((true, True), (false, False)):
            if way is not None:
                frame.returns.append((constant(value=answer), way))
        return
    value = expressions.evaluate(run, frame, node.value, state)
    if frame.entry is not None:
        sinks.response(run, frame, node, value, state)
    frame.returns.append((value, state.fork()))


def _if(run: Run, frame: Frame, node: ast.If, state: State) -> bool:
    ways: list[State] = []
    rest = state
    # A long elif chain is nested in its tree: walk it flat.
    while True:
        true, false = guards.branch(run, frame, node.test, rest)
        if true is not None and execute(run, frame, node.body, true):
            ways.append(true)
        if false is None:
            break
        rest = false
        if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
            node = node.orelse[0]
            continue
        if execute(run, frame, node.orelse, rest):
            ways.append(rest)
        break
    return _meet(state, ways)


def _meet(state: State, ways: list[State]) -> bool:
    joined = join_states(ways)
    if joined is None:
        return False
    state.take(joined)
    return True


def _for(run: Run, frame: Frame, node: ast.For | ast.AsyncFor, state: State) -> bool:
    iterable = expressions.evaluate(run, frame, node.iter, state)
    exact = heap.elements(state, iterable)
    outer_breaks, outer_continues = frame.breaks, frame.continues
    frame.breaks = []
    if exact is not None and len(exact) <= _MOST_UNROLLED:
        alive = _unrolled(run, frame, node, exact, state)
    else:
        element = heap.element(frame, node, iterable, state)
        alive = _repeated(run, frame, node.body, state, (node.target, element))
    if alive:
        alive = execute(run, frame, node.orelse, state)
    ways = frame.breaks
    frame.breaks, frame.continues = outer_breaks, outer_continues
    return _meet(state, [*ways, *([state.fork()] if alive else [])])


def _unrolled(
    run: Run, frame: Frame, node: ast.For | ast.AsyncFor, items: tuple[Value, ...], state: State
) -> bool:
    for item in items:
        frame.continues = []
        targets.assign(run, frame, node.target, item, state)
        alive = execute(run, frame, node.body, state)
        if not _meet(state, [*frame.continues, *([state.fork()] if alive else [])]):
            return False
    return True


def _repeated(
    run: Run,
    frame: Frame,
    body: Sequence[ast.stmt],
    state: State,
    element: tuple[ast.expr, Value] | None,
) -> bool:
    """Walk a loop's body until nothing new is learnt (twice, then constants are let go, then once more)."""
    for turn in range(3):
        before = state.fork()
        frame.continues = []
        if element is not None:
            targets.assign(run, frame, element[0], element[1], state)
        alive = execute(run, frame, body, state)
        ways = [*frame.continues, *([state.fork()] if alive else []), before]
        _meet(state, ways)
        changed = [name for name, value in state.names.items() if before.names.get(name) != value]
        if not changed and state.heap == before.heap:
            break
        if turn:
            for name in changed:
                value = state.names[name]
                if value.constants:
                    state.names[name] = replace(value, constants=None)
    return True


def _while(run: Run, frame: Frame, node: ast.While, state: State) -> bool:
    outer_breaks, outer_continues = frame.breaks, frame.continues
    frame.breaks = []
    true, false = guards.branch(run, frame, node.test, state)
    ways = [false] if false is not None else []
    if true is not None:
        _repeated(run, frame, node.body, true, None)
        _, done = guards.branch(run, frame, node.test, true)
        if done is not None:
            ways.append(done)
    if ways:
        _meet(state, ways)
        ways = [state.fork()] if execute(run, frame, node.orelse, state) else []
    ways += frame.breaks
    frame.breaks, frame.continues = outer_breaks, outer_continues
    return _meet(state, ways)


def _try(run: Run, frame: Frame, node: ast.Try | ast.TryStar, state: State) -> bool:
    at_any_point = [state.fork()]
    alive = True
    for statement in node.body:
        alive = _statement(run, frame, statement, state)
        if not alive:
            break
        if len(at_any_point) < 12:
            at_any_point.append(state.fork())
    ways: list[State] = []
    if alive and execute(run, frame, node.orelse, state):
        ways.append(state.fork())
    thrown = join_states(at_any_point)
    for handler in node.handlers:
        caught = thrown.fork() if thrown is not None else state.fork()
        if handler.name:
            caught.names[handler.name] = UNKNOWN
        if execute(run, frame, handler.body, caught):
            ways.append(caught)
    if not ways:
        if node.finalbody and thrown is not None:
            execute(run, frame, node.finalbody, thrown)
        return False
    _meet(state, ways)
    return execute(run, frame, node.finalbody, state)


def _with(run: Run, frame: Frame, node: ast.With | ast.AsyncWith, state: State) -> bool:
    for item in node.items:
        value = expressions.evaluate(run, frame, item.context_expr, state)
        if item.optional_vars is not None:
            targets.assign(
                run, frame, item.optional_vars, heap.entered(run, frame, value, node, state), state
            )
    return execute(run, frame, node.body, state)


def _match(run: Run, frame: Frame, node: ast.Match, state: State) -> bool:
    subject = expressions.evaluate(run, frame, node.subject, state)
    ways: list[State] = []
    for case in node.cases:
        fits = cases.pattern_fits(run, frame, case.pattern, subject, state)
        if fits is False:
            continue
        way = state.fork()
        for capture in ast.walk(case.pattern):
            if isinstance(capture, ast.MatchAs | ast.MatchStar) and capture.name:
                whole = isinstance(capture, ast.MatchAs) and capture is case.pattern
                way.names[capture.name] = (
                    subject if whole else part_of(subject, ("match", capture.name))
                )
        cases.matched(case.pattern, subject, way)
        entered: State | None = way
        if case.guard is not None:
            entered, _ = guards.branch(run, frame, case.guard, way)
            fits = None
        if entered is not None and execute(run, frame, case.body, entered):
            ways.append(entered)
        if fits:
            return _meet(state, ways)
    return _meet(state, [*ways, state.fork()])


def _define(
    run: Run,
    frame: Frame,
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef,
    state: State,
) -> None:
    closure = frame.closure
    if isinstance(node, ast.ClassDef):
        state.names[node.name] = thing(ClassRef(node, frame.path, closure))
        for item in node.body:
            if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
                entries.queue(run, FunctionRef(item, frame.path, closure), node)
        return
    function = FunctionRef(node, frame.path, closure)
    state.names[node.name] = thing(function)
    entries.queue(run, function, None)


def _import(run: Run, frame: Frame, node: ast.Import | ast.ImportFrom, state: State) -> None:
    if isinstance(node, ast.Import):
        for alias in node.names:
            wanted = alias.name if alias.asname else alias.name.split(".")[0]
            found = run.program.find(wanted, frame.path)
            name = alias.asname or wanted
            state.names[name] = module_value(found) if found is not None else external(wanted)
        return
    source = node.module or ""
    found = run.program.find(source, frame.path, node.level)
    for alias in node.names:
        name = alias.asname or alias.name
        if alias.name == "*":
            if found is not None:
                state.names.update(expressions.exported(run, found))
            continue
        if found is None:
            state.names[name] = external(f"{source or '?'}.{alias.name}")
        else:
            state.names[name] = thing(Imported(found, alias.name))
