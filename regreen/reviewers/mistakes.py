"""Mistakes that no linter is sure of by the line alone: they show in what the function does with the value."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from string import Formatter

from regreen.codebase.python_code import Function, parse_python
from regreen.codebase.sources import sources
from regreen.models import Evidence, Severity
from regreen.reviewers import slips, slips_of_expressions
from regreen.reviewers.context import Claim, Report, ReviewContext
from regreen.reviewers.correctness import python_after, python_before
from regreen.reviewers.fresh import Hit, fresh, where_said

_GROW = frozenset(
    {"append", "extend", "insert", "add", "update", "setdefault", "pop", "remove", "discard", "clear", "popitem"}
)  # fmt: skip
_LOGS = frozenset({"debug", "info", "warning", "error", "critical", "exception", "print"})
_MEANT = re.compile(r"(?i)^_|cache|memo|registry|shared|static")
_FILLED = re.compile(r"\.format(?:_map)?\(|Template|\.substitute\(|vformat|\bpartial\(")

SHARED, UNFILLED, UNAWAITED = "shared-default", "unfilled-text", "not-awaited"
MISSPELT = "no-such-attribute"
_SAYS: dict[str, tuple[Severity, float, str]] = {
    SHARED: ("medium", 0.85, "The default is made once, so what one call puts into it is there in the next."),
    UNFILLED: ("medium", 0.87, "Without an `f` before the quotes the braces stay as they are, in what people read."),
    UNAWAITED: ("high", 0.93, "Without `await` this is the coroutine itself: always true, and no value to reckon with."),
    MISSPELT: ("high", 0.9, "When this line runs it raises `AttributeError`."),
    **slips.SAYS,
    **slips_of_expressions.SAYS,
}  # fmt: skip


class Mistakes:
    """Reads each changed function for defaults that it changes and texts that it forgot to fill."""

    name = "mistakes"

    def run(self, context: ReviewContext) -> Report:
        """Report what is new against the merge base."""
        files = python_after(context)
        found = [hit for path, text in files.items() for hit in mistakes(path, text)]
        new = fresh(
            context,
            found,
            lambda: [h for p, t in python_before(context).items() for h in mistakes(p, t)],
            sure=lambda h: h.rule in {UNAWAITED, MISSPELT, *slips.SAYS},
        )
        bases = _bases(context) if any(h.rule == MISSPELT for h in new) else set()
        return Report(
            tuple(
                _claim(hit, context)
                for hit in new
                if hit.rule != MISSPELT or not bases & set(_QUOTED.findall(hit.message))
            )
        )


_BASES = re.compile(rb"^[ \t]{0,40}class[ \t]+\w{1,100}[ \t]{0,4}\(([^)]{1,400})\)", re.MULTILINE)
_QUOTED = re.compile(r"`(\w+)`")


def _bases(context: ReviewContext) -> set[str]:
    """Every name that some class of the repository has as a base: others complete what such a class lacks."""
    if context.git is None:
        return set()
    found: set[str] = set()
    for _, data in sources(context.git, context.head, lambda p: p.endswith(".py")):
        for match in _BASES.finditer(data):
            found.update(re.findall(r"\w+", match[1].decode("ascii", "replace")))
    return found


def mistakes(path: str, text: str) -> Iterator[Hit]:
    """Every such place in a file."""
    tree = parse_python(text)
    if tree is None:
        return
    yield from _unawaited(path, tree)
    yield from _misspelt(path, tree)
    for place, what, rule in chain(slips.slips(tree), slips_of_expressions.slips_of_expressions(tree)):  # fmt: skip
        yield Hit(rule, path, place.lineno, place.end_lineno or place.lineno, what)
    for node in ast.walk(tree):
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


def _unawaited(path: str, tree: ast.Module) -> Iterator[Hit]:
    """Coroutines of this module that are tested, reckoned with or looked into instead of awaited."""
    times = Counter(name for node in ast.walk(tree) for name in bound_here(node))
    coroutines = {
        n.name
        for n in tree.body
        if isinstance(n, ast.AsyncFunctionDef) and times[n.name] == 1 and not n.decorator_list
        and not any(isinstance(inner, ast.Yield) for inner in ast.walk(n))
    }  # fmt: skip
    for node in ast.walk(tree) if coroutines else ():
        for value in _used_at_once(node):
            if (
                isinstance(value, ast.Call)
                and isinstance(value.func, ast.Name)
                and value.func.id in coroutines
            ):
                end = value.end_lineno or value.lineno
                yield Hit(UNAWAITED, path, value.lineno, end, f"`{value.func.id}(...)` is not awaited")  # fmt: skip


def bound_here(node: ast.AST) -> Iterator[str]:
    """The name that this one node binds, wherever it stands."""
    if isinstance(node, Function | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.alias):
        yield (node.asname or node.name).split(".", maxsplit=1)[0]


def _used_at_once(node: ast.AST) -> Iterator[ast.expr]:
    """What a node tests, reckons with or looks into."""
    match node:
        case ast.If() | ast.While() | ast.IfExp() | ast.Assert():
            yield node.test
        case ast.BoolOp():
            yield from node.values
        case ast.UnaryOp():
            yield node.operand
        case ast.BinOp():
            yield from (node.left, node.right)
        case ast.Compare():
            yield from (node.left, *node.comparators)
        case ast.Subscript():
            yield node.value
        case ast.For():
            yield node.iter
        case _:
            pass


def _misspelt(path: str, tree: ast.Module) -> Iterator[Hit]:
    """`self.x` in a class without bases that nothing in its module ever gives an `x`."""
    given = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load)}  # fmt: skip
    texts = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}  # fmt: skip
    inherited = {ast.unparse(b).rpartition(".")[2] for n in ast.walk(tree) if isinstance(n, ast.ClassDef) for b in n.bases}  # fmt: skip
    for node in tree.body:
        if not isinstance(node, ast.ClassDef) or not _is_closed(node) or node.name in inherited:
            continue
        known = given | texts | {name for child in node.body for name in _members(child)} | _OF_ALL
        for inner in _methods_names(node):
            if inner.attr not in known and not inner.attr.startswith("__"):
                what = f"`self.{inner.attr}` is given by nothing: `{node.name}` has no base and never sets it"
                yield Hit(MISSPELT, path, inner.lineno, inner.lineno, what)


_OF_ALL = frozenset(dir(object)) | frozenset({"__dict__", "__annotations__", "__slots__", "__name__"})  # fmt: skip
_OPEN = frozenset({"__getattr__", "__getattribute__", "__slots__"})


def _is_closed(node: ast.ClassDef) -> bool:
    """Whether all that its objects have stands in the class itself: no base, no decorator, nothing dynamic."""
    if node.bases or node.keywords or node.decorator_list or "mixin" in node.name.lower():
        return False
    if any(name in _OPEN for child in node.body for name in _members(child)):
        return False
    used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return not used & {"setattr", "vars", "hasattr", "getattr", "globals"} and not any(
        isinstance(n, ast.Attribute) and n.attr in {"__dict__", "update_wrapper", "__new__"}
        for n in ast.walk(node)
    )


def _members(child: ast.stmt) -> Iterator[str]:
    for inner in [child] if isinstance(child, Function | ast.ClassDef) else ast.walk(child):
        yield from bound_here(inner)


def _methods_names(node: ast.ClassDef) -> Iterator[ast.Attribute]:
    """What plain methods read of `self`."""
    for method in node.body:
        if not isinstance(method, Function) or method.decorator_list or not method.args.args:
            continue
        own = method.args.args[0].arg
        tried = {id(n) for t in ast.walk(method) if isinstance(t, ast.Try) for s in t.body for n in ast.walk(s)}  # fmt: skip
        if own != "self" or any(
            isinstance(n, ast.Name) and n.id == own and not isinstance(n.ctx, ast.Load)
            for n in ast.walk(method)
        ):
            continue
        for inner in ast.walk(method):
            if (
                isinstance(inner, ast.Attribute)
                and isinstance(inner.ctx, ast.Load)
                and isinstance(inner.value, ast.Name)
                and inner.value.id == own
                and id(inner) not in tried
            ):
                yield inner


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
        *where_said(context, hit),
        title=hit.message,
        body=why,
        confidence=confidence,
        evidence=(Evidence("analyzer", shown, "mistakes", head=hit.message, base="not there"),),
        anywhere=True,  # `fresh` has looked
    )
