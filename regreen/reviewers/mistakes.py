"""Mistakes that no linter is sure of by the line alone: they show in what the function does with the value."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from string import Formatter

from regreen.codebase.python_code import Function, parse_python
from regreen.models import Evidence, Severity
from regreen.reviewers.context import Claim, Report, ReviewContext
from regreen.reviewers.correctness import python_after, python_before
from regreen.reviewers.fresh import Hit, fresh

_GROW = frozenset(
    {"append", "extend", "insert", "add", "update", "setdefault", "pop", "remove", "discard", "clear", "popitem"}
)  # fmt: skip
_LOGS = frozenset({"debug", "info", "warning", "error", "critical", "exception", "print"})
_MEANT = re.compile(r"(?i)^_|cache|memo|registry|shared|static")
_FILLED = re.compile(r"\.format(?:_map)?\(|Template|\.substitute\(|vformat|\bpartial\(")

SHARED, UNFILLED = "shared-default", "unfilled-text"
_SAYS: dict[str, tuple[Severity, float, str]] = {
    SHARED: ("medium", 0.85, "The default is made once, so what one call puts into it is there in the next."),
    UNFILLED: ("medium", 0.87, "Without an `f` before the quotes the braces stay as they are, in what people read."),
}  # fmt: skip


class Mistakes:
    """Reads each changed function for defaults that it changes and texts that it forgot to fill."""

    name = "mistakes"

    def run(self, context: ReviewContext) -> Report:
        """Report what is new against the merge base."""
        files = python_after(context)
        found = [hit for path, text in files.items() for hit in mistakes(path, text)]
        new = fresh(context, found, lambda: [h for p, t in python_before(context).items() for h in mistakes(p, t)])  # fmt: skip
        return Report(tuple(_claim(hit, context) for hit in new))


def mistakes(path: str, text: str) -> Iterator[Hit]:
    """Every such place in a file."""
    tree = parse_python(text)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, Function):
            yield from _shared_defaults(path, node)
            if not _FILLED.search(ast.unparse(node)):
                yield from _unfilled(path, node)


def _shared_defaults(path: str, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Hit]:
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args]
    pairs = list(zip(reversed(named), reversed(arguments.defaults), strict=False))
    pairs += [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d]
    for argument, default in pairs:
        if not _is_mutable(default) or _MEANT.search(argument.arg):
            continue
        place = _changed_in(function, argument.arg)
        if place is not None:
            what = f"`{argument.arg}` defaults to one shared `{ast.unparse(default)}`, which line {place} changes"
            yield Hit(SHARED, path, argument.lineno, default.end_lineno or default.lineno, what)


def _is_mutable(node: ast.expr) -> bool:
    if isinstance(node, ast.List | ast.Dict | ast.Set):
        return True
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"list", "dict", "set", "defaultdict", "Counter", "deque"}
    )


def _changed_in(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> int | None:
    """The first line that changes the object the argument holds; None where it may hold another by then."""
    changed: list[int] = []
    for node in ast.walk(function):
        match node:
            case ast.Name(id=found, ctx=ast.Store()) if found == name:
                return None
            case ast.Call(func=ast.Attribute(value=ast.Name(id=found), attr=method)):
                if found == name and method in _GROW:
                    changed.append(node.lineno)
            case ast.Subscript(value=ast.Name(id=found), ctx=ast.Store() | ast.Del()):
                if found == name:
                    changed.append(node.lineno)
            case _:
                pass
    return min(changed, default=None)


def _unfilled(path: str, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Hit]:
    known = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
    known |= {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
    for node in ast.walk(function):
        text = _said(node)
        if text is None:
            continue
        fields = _fields(text.value if isinstance(text.value, str) else "")
        if fields and fields <= known:
            shown = ", ".join(f"{{{f}}}" for f in sorted(fields))
            end = text.end_lineno or text.lineno
            yield Hit(UNFILLED, path, text.lineno, end, f"`{shown}` stands in a text that nothing fills")  # fmt: skip


def _said(node: ast.AST) -> ast.Constant | None:
    """The text that a statement raises, logs or prints as its only argument."""
    call = node.exc if isinstance(node, ast.Raise) else node
    if not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords:
        return None
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if not isinstance(node, ast.Raise) and name not in _LOGS:
        return None
    text = call.args[0]
    return text if isinstance(text, ast.Constant) and isinstance(text.value, str) else None


def _fields(text: str) -> set[str]:
    """The plain names in braces; none where a brace is anything else."""
    try:
        parts = list(Formatter().parse(text))
    except ValueError:
        return set()
    names = [name for _, name, _, _ in parts if name is not None]
    return set(names) if all(n.isidentifier() for n in names) else set()


def _claim(hit: Hit, context: ReviewContext) -> Claim:
    severity, confidence, why = _SAYS[hit.rule]
    rows = (context.after(hit.path) or "").split("\n")
    shown = "\n".join(rows[hit.line - 1 : hit.end_line])[:500]
    return Claim(
        "correctness",
        f"mistakes/{hit.rule}",
        severity,
        hit.path,
        hit.line,
        hit.end_line,
        title=hit.message,
        body=why,
        confidence=confidence,
        evidence=(Evidence("analyzer", shown, "mistakes", head=hit.message, base="not there"),),
    )
