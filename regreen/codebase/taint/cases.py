"""What a `case` of a `match` takes, and what it says of the subject."""

from __future__ import annotations

import ast

from regreen.codebase.taint import checks, expressions, guards
from regreen.codebase.taint.run import Frame, Run
from regreen.codebase.taint.state import State
from regreen.codebase.taint.values import UNKNOWN, Value, constant


def pattern_fits(
    run: Run, frame: Frame, pattern: ast.pattern, subject: Value, state: State
) -> bool | None:
    """Whether a `case` takes the subject; None when it may."""
    match pattern:
        case ast.MatchValue():
            value = expressions.evaluate(run, frame, pattern.value, state)
            return guards.compare(ast.Eq(), subject, value, state)
        case ast.MatchSingleton():
            return guards.compare(ast.Is(), subject, constant(pattern.value), state)
        case ast.MatchOr():
            verdicts = [pattern_fits(run, frame, one, subject, state) for one in pattern.patterns]
            if True in verdicts:
                return True
            return None if None in verdicts else False
        case ast.MatchAs():
            return (
                True
                if pattern.pattern is None
                else pattern_fits(run, frame, pattern.pattern, subject, state)
            )
        case _:
            return None


def matched(pattern: ast.pattern, subject: Value, state: State) -> None:
    """What a `case` of constants says of a tainted subject."""
    while isinstance(pattern, ast.MatchAs) and pattern.pattern is not None:
        pattern = pattern.pattern
    options = pattern.patterns if isinstance(pattern, ast.MatchOr) else [pattern]
    if all(
        isinstance(one, ast.MatchValue) and isinstance(one.value, ast.Constant) for one in options
    ):
        checks.equals(subject, UNKNOWN, state)
