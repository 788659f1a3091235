"""Slips that one expression shows: arguments in the wrong place or form, conditions and ranges that are always the same."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from regreen.models import Severity
from regreen.reviewers.slips import Found, inside

ALWAYS, JOINED, CALLED, MONTH = "always-true", "texts-joined", "called-at-once", "minutes-for-months"  # fmt: skip
FLAGS, NEVER, PLACES = "flags-for-count", "empty-range", "placeholders"
SAYS: dict[str, tuple[Severity, float, str]] = {
    ALWAYS: ("high", 0.93, "Each side of `or` is a condition of its own: the comparison has to stand on both."),
    JOINED: ("medium", 0.85, "Two texts side by side are one; where every line is an entry, two entries are lost for one."),
    CALLED: ("high", 0.95, "The work is done in this thread, and the new one has nothing to do."),
    MONTH: ("medium", 0.95, "The text shows the minute where a reader takes it for the month."),
    FLAGS: ("medium", 0.95, "A flag is a number: so many matches are replaced, and the flag has no effect."),
    NEVER: ("medium", 0.88, "Nothing runs for it; counting down needs a negative step."),
    PLACES: ("high", 0.93, "When this line runs the database refuses the statement."),
}  # fmt: skip
_MONTH = re.compile(r"%[Yy][-/.]?%M(?![:%]?%S)|%d[-/.]%M[-/.]%[Yy]|%M[-/.]%d[-/.]%[Yy]")
_QUOTED_SQL = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)


def slips_of_expressions(tree: ast.Module) -> Iterator[Found]:
    """Every such place in a Python file."""
    nothing = _returning_nothing(tree)
    for node in ast.walk(tree):
        match node:
            case ast.If() | ast.While() | ast.IfExp():
                yield from _always(node.test)
            case ast.comprehension():
                for test in node.ifs:
                    yield from _always(test)
            case ast.List() | ast.Tuple() | ast.Set():
                yield from _joined(node.elts)
            case ast.Call():
                yield from _of_call(node, nothing)
            case _:
                pass


def _always(test: ast.expr) -> Iterator[Found]:
    """`x == 1 or 2`: a constant that is true stands where a comparison is meant."""
    match test:
        case ast.BoolOp(op=ast.Or(), values=[ast.Compare(), *others]):
            for value in others:
                if isinstance(value, ast.Constant) and value.value and value.value is not True:
                    shown = ast.unparse(value)
                    yield test, f"`or {shown}` makes this condition true whatever stands before", ALWAYS  # fmt: skip
                    return
        case _:
            pass


def _joined(elements: Sequence[ast.expr]) -> Iterator[Found]:
    """Two words on two lines of a list of words, without the comma between them."""
    words = [e for e in elements if isinstance(e, ast.Constant) and isinstance(e.value, str)]
    if len(words) < 3 or len(words) != len(elements):
        return
    spread = [e for e in words if e.end_lineno != e.lineno]
    if len(spread) != 1 or len({e.lineno for e in words}) != len(words):
        return
    one = spread[0]
    plain = all(re.fullmatch(r"[\w./:-]{1,40}", str(e.value)) for e in words)
    if plain and one.end_lineno == one.lineno + 1 and one.col_offset == words[0].col_offset:
        yield one, f"No comma: these two lines are one text, `{str(one.value)[:60]}`", JOINED


def _returning_nothing(tree: ast.Module) -> set[str]:
    """Plain functions at the top of the module that never return a value."""
    return {
        n.name
        for n in tree.body
        if isinstance(n, ast.FunctionDef)
        and not n.decorator_list
        and not any(isinstance(i, ast.Yield | ast.YieldFrom) or (isinstance(i, ast.Return) and i.value) for i in inside(n))
    }  # fmt: skip


def _of_call(node: ast.Call, nothing: set[str]) -> Iterator[Found]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in {"Thread", "Process", "Timer"}:
        yield from _called(node, nothing)
    elif look := _CALLS.get(name):
        yield from look(node)


def _called(node: ast.Call, nothing: set[str]) -> Iterator[Found]:
    for keyword in node.keywords:
        match keyword:
            case ast.keyword(
                arg="target" | "function", value=ast.Call(func=ast.Name(id=called))
            ) if called in nothing:
                what = f"`{called}` is called here and now, and its None becomes the target"
                yield keyword.value, what, CALLED
            case _:
                pass


def _month(node: ast.Call) -> Iterator[Found]:
    for argument in node.args:
        match argument:
            case ast.Constant(value=str(form)) if _MONTH.search(form):
                yield argument, "`%M` are minutes: the month is `%m`", MONTH
            case _:
                pass


def _flags(node: ast.Call) -> Iterator[Found]:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=attr), args=[_, _, *others]):
            match others if attr == "split" else others[1:]:
                case [ast.Attribute(value=ast.Name(id="re"), attr=flag)] if flag.isupper():
                    what = f"`re.{flag}` stands where the count stands: give it as `flags=`"
                    yield node, what, FLAGS
                case _:
                    pass
        case _:
            pass


def _empty(node: ast.Call) -> Iterator[Found]:
    bounds = [_number(a) for a in node.args]
    if len(bounds) in {2, 3} and None not in bounds:
        start, stop, step = (*bounds, 1)[:3]
        if start is not None and stop is not None and step and (stop - start) * step < 0:
            yield node, f"`{ast.unparse(node)}` is empty", NEVER


def _number(node: ast.expr) -> int | None:
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return -value
        case _:
            return None


def _places(node: ast.Call) -> Iterator[Found]:
    """As many values as the statement has places for them, where both stand in the call."""
    match node.args:
        case [ast.Constant(value=str(statement)), ast.Tuple(elts=values) | ast.List(elts=values)]:
            if any(isinstance(v, ast.Starred) for v in values):
                return
            bare = _QUOTED_SQL.sub("", statement)
            asked = bare.count("?") or len(re.findall(r"(?<!%)%s", bare))
            if asked and asked != len(values) and not re.search(r"\?\d|\?\||\?&|%\(", bare):
                yield node, f"the statement asks for {asked} values and is given {len(values)}", PLACES  # fmt: skip
        case _:
            pass


_CALLS = {
    "strftime": _month,
    "strptime": _month,
    "sub": _flags,
    "subn": _flags,
    "split": _flags,
    "range": _empty,
    "execute": _places,
}
