"""Comprehensions: what they make, and what is known when all, none or some elements pass their test."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from regreen.codebase.taint import answers, checks, expressions, guards, heap, targets
from regreen.codebase.taint.run import Frame, Run
from regreen.codebase.taint.state import Heaped, State
from regreen.codebase.taint.values import NOTHING, UNKNOWN, Mark, Value, join, tainted

Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


def built(run: Run, frame: Frame, node: Comprehension, state: State) -> Value:
    """The container that a comprehension makes."""
    inner = state.fork()
    alive: State | None = inner
    unfit: Mapping[Mark, frozenset[str]] = {}
    for generator in node.generators:
        iterable = expressions.evaluate(run, frame, generator.iter, inner)
        element = heap.element(frame, generator.iter, iterable, inner)
        targets.assign(run, frame, generator.target, element, inner)
        for condition in generator.ifs:
            alive, refused = guards.branch(run, frame, condition, inner)
            if alive is None:
                return heap.allocate(frame, node, Heaped("list"), state)
            if refused is not None and len(node.generators) == len(generator.ifs) == 1:
                unfit = checks.of_each(iterable, refused)
            inner = alive
    if isinstance(node, ast.DictComp):
        key = expressions.evaluate(run, frame, node.key, inner)
        value = join(
            expressions.evaluate(run, frame, node.value, inner),
            tainted(key.taints) if key.taints else NOTHING,
        )
        made = Heaped("dict", rest=join(value, UNKNOWN))
    else:
        value = expressions.evaluate(run, frame, node.elt, inner)
        made = Heaped("list", items=None, rest=value)
    state.heap.update(inner.heap)
    found = heap.allocate(frame, node, made, state)
    if unfit:
        # Empty, it says that every element failed the test: `bad = [k for k in given if k not in known]`.
        run.unfit.update(dict.fromkeys(found.handles(), unfit))
    return found


def all_hold(run: Run, frame: Frame, listed: ast.expr, state: State) -> None:
    """`all(is_fine(one) for one in many)` is true."""
    _for_each(run, frame, listed, state, holds=True)


def some_holds(run: Run, frame: Frame, listed: ast.expr, state: State) -> None:
    """`any(one == x for one in known)` is true: what that says of anything but the element holds."""
    if not isinstance(listed, ast.GeneratorExp | ast.ListComp) or len(listed.generators) != 1:
        return
    (generator,) = listed.generators
    inner, before = state.fork(), len(run.answers)
    many = expressions.evaluate(run, frame, generator.iter, inner)
    if not many.taints:
        element = heap.element(frame, listed, many, inner)
        targets.assign(run, frame, generator.target, element, inner)
        true, _ = guards.branch(run, frame, listed.elt, inner)
        answers.tell(answers.gained(state, true), state)
    del run.answers[before:]


def none_holds(run: Run, frame: Frame, listed: ast.expr, state: State) -> None:
    """`any(is_bad(one) for one in many)` is false."""
    _for_each(run, frame, listed, state, holds=False)


def _for_each(run: Run, frame: Frame, listed: ast.expr, state: State, *, holds: bool) -> None:
    if not isinstance(listed, ast.GeneratorExp | ast.ListComp) or len(listed.generators) != 1:
        return
    (generator,) = listed.generators
    if generator.ifs:
        return
    inner = state.fork()
    before = len(run.answers)
    many = expressions.evaluate(run, frame, generator.iter, inner)
    element = heap.element(frame, listed, many, inner)
    targets.assign(run, frame, generator.target, element, inner)
    ways = guards.branch(run, frame, listed.elt, inner)
    del run.answers[before:]
    way = ways[0] if holds else ways[1]
    for mark, classes in checks.of_each(many, way).items() if way is not None else ():
        state.check(mark, classes)
