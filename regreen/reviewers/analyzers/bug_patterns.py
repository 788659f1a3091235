"""Bug patterns that need more than one line: how a function uses a value decides."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import chain
from string import Formatter

from regreen.code.python_calls import FunctionNode, is_module, parse_python
from regreen.code.symbols import read_sources
from regreen.domain.models import Severity
from regreen.reviewers.analyzers.baseline import (
    Diagnostic,
    commentable_range,
    make_analyzer_claim,
    replace_single_match,
    select_new_diagnostics,
)
from regreen.reviewers.analyzers.correctness import base_python_texts, head_python_texts
from regreen.reviewers.context import Claim, ReviewContext, ReviewerReport

# Bugs that show in one function although each line is correct: spent iterators, closed files, discarded results.

BugPlace = tuple[ast.expr | ast.stmt, str, str]
"""A place, what is wrong there, and the rule."""

_TEXT_METHODS = frozenset(
    {
        "replace",
        "strip",
        "lstrip",
        "rstrip",
        "lower",
        "upper",
        "title",
        "capitalize",
        "casefold",
        "removeprefix",
        "removesuffix",
        "zfill",
    }
)
_IN_PLACE = frozenset({"sort", "append", "extend", "insert", "reverse", "clear"})
_CONSUMING_FUNCTIONS = frozenset(
    {"sum", "list", "tuple", "set", "dict", "frozenset", "sorted", "max", "min", "len"}
)
_PURE_FUNCTIONS = _CONSUMING_FUNCTIONS | {
    "abs",
    "int",
    "str",
    "float",
    "bool",
    "isinstance",
    "repr",
    "range",
    "round",
    "zip",
    "enumerate",
}


def find_statement_bugs(tree: ast.Module) -> Iterator[BugPlace]:
    """All bugs of these patterns in a Python file."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _check_function(node)
            case ast.ClassDef():
                yield from _check_class(node, tree)
            case ast.For():
                yield from _check_loop(node)
            case _:
                pass


def _check_function(node: FunctionNode) -> Iterator[BugPlace]:
    own = list(walk_own_nodes_of_function(node))
    once = _single_assignments(node, own)
    yield from _find_discarded_results(own, once)
    yield from _find_uncaptured_output(own, once)
    yield from _find_endless_recursion(node, own)
    for block in _statement_blocks(node):
        yield from _find_spent_generators(block, once)
        yield from _find_lazy_reads_after_close(block, once)


def walk_own_nodes_of_function(node: FunctionNode) -> Iterator[ast.AST]:
    """The nodes of a function, without those of functions and classes in it."""
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        one = waiting.pop()
        yield one
        if not isinstance(one, FunctionNode | ast.ClassDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(one))


def _single_assignments(node: FunctionNode, own: Sequence[ast.AST]) -> dict[str, ast.expr]:
    """The names of a function that have exactly one assignment, with its value."""
    times: dict[str, int] = {a.arg: 1 for a in ast.walk(node.args) if isinstance(a, ast.arg)}
    values: dict[str, ast.expr] = {}
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load):
            times[one.id] = times.get(one.id, 0) + 1
        elif isinstance(one, ast.Global | ast.Nonlocal):
            times |= dict.fromkeys(one.names, 2)
    for one in own:
        if (
            isinstance(one, ast.Assign)
            and len(one.targets) == 1
            and isinstance(one.targets[0], ast.Name)
        ):
            values[one.targets[0].id] = one.value
    return {name: value for name, value in values.items() if times[name] == 1}


def _is_text(value: ast.expr | None) -> bool:
    match value:
        case ast.Constant(value=str()) | ast.JoinedStr():
            return True
        case ast.Call(func=ast.Name(id="str")):
            return True
        case ast.Call(func=ast.Attribute(attr=attr, value=inner)):
            return attr in {"lower", "upper", "casefold", "capitalize", "decode", "read_text"} or (
                attr in _TEXT_METHODS | {"format", "join"} and _is_text(inner)
            )
        case _:
            return False


def _is_list(value: ast.expr | None) -> bool:
    match value:
        case ast.List() | ast.ListComp():
            return True
        case ast.Call(func=ast.Name(id="list" | "sorted")):
            return True
        case _:
            return False


def _find_discarded_results(
    own: Sequence[ast.AST], once: dict[str, ast.expr]
) -> Iterator[BugPlace]:
    for node in own:
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr))):
                if attr in _TEXT_METHODS and _is_text(once.get(name)):
                    yield (
                        node,
                        f"`{name}.{attr}(...)` changes nothing: its result is thrown away",
                        "result-discarded",
                    )
            case ast.Assign(
                targets=[ast.Name(id=kept)],
                value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)),
            ):
                first = [
                    n
                    for n in own
                    if isinstance(n, ast.Assign)
                    and isinstance(n.targets[0], ast.Name)
                    and n.targets[0].id == name
                    and n is not node
                ]
                is_list = _is_list(once.get(name)) or (
                    kept == name and len(first) == 1 and _is_list(first[0].value)
                )
                if attr in _IN_PLACE and is_list:
                    yield (
                        node,
                        f"`{kept}` is None from here on: `{attr}` changes the list itself and returns nothing",
                        "method-returns-none",
                    )
            case _:
                pass


def _find_uncaptured_output(
    own: Sequence[ast.AST], once: dict[str, ast.expr]
) -> Iterator[BugPlace]:
    """`run(...)` without `capture_output` whose output is then used."""
    runs = set()
    for name, value in once.items():
        match value:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="subprocess"), attr="run"), keywords=given
            ):
                if not {k.arg for k in given} & {"capture_output", "stdout", None}:
                    runs.add(name)
            case _:
                pass
    for inner in own if runs else ():
        match inner:
            case ast.Attribute(
                value=ast.Attribute(value=ast.Name(id=name), attr="stdout"), attr=attr
            ) if name in runs:
                yield (
                    inner,
                    f"`{name}.stdout` is None, so it has no `{attr}`: the command's output is not captured",
                    "output-not-captured",
                )
            case _:
                pass


def _find_endless_recursion(node: FunctionNode, own: Sequence[ast.AST]) -> Iterator[BugPlace]:
    """A property that reads itself; a function without side effects that calls itself with its own arguments."""
    arguments = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
    if any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list):
        acts = any(isinstance(n, ast.Call | ast.Assign) for n in own)
        for inner in node.body if not acts else ():
            match inner:
                case ast.Return(value=ast.Attribute(value=ast.Name(id=me), attr=attr)):
                    if [me] == arguments and attr == node.name:
                        yield inner, f"`{node.name}` reads itself, without end", "calls-itself"
                case _:
                    pass
        return
    if (
        not arguments
        or arguments[0] in {"self", "cls"}
        or node.args.vararg
        or node.args.kwarg
        or node.args.kwonlyargs
        or node.decorator_list
    ):
        return
    stored = {n.id for n in own if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    if any(isinstance(n, ast.Import | ast.ImportFrom) for n in own) or node.name in stored:
        return  # the name may be another function's here
    calls = [n for n in own if isinstance(n, ast.Call)]
    again = [c for c in calls if isinstance(c.func, ast.Name) and c.func.id == node.name]
    others = [
        c
        for c in calls
        if c not in again and not (isinstance(c.func, ast.Name) and c.func.id in _PURE_FUNCTIONS)
    ]
    acts = any(
        isinstance(n, ast.Await | ast.Yield | ast.YieldFrom | ast.Global | ast.Nonlocal)
        for n in own
    )
    acts |= any(
        isinstance(n, ast.Attribute | ast.Subscript) and not isinstance(n.ctx, ast.Load)
        for n in own
    )
    for call in again if not others and not acts and not stored & set(arguments) else ():
        passed = [a.id if isinstance(a, ast.Name) else None for a in call.args]
        if passed == arguments and not call.keywords:
            yield (
                call,
                f"`{node.name}` calls itself with what it was given, without end",
                "calls-itself",
            )


def _statement_blocks(node: FunctionNode) -> Iterator[list[ast.stmt]]:
    for inner in (node, *walk_own_nodes_of_function(node)):
        for part in ("body", "orelse", "finalbody"):
            block = getattr(inner, part, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block


def _find_spent_generators(
    block: Sequence[ast.stmt], once: dict[str, ast.expr]
) -> Iterator[BugPlace]:
    """A generator that two consecutive statements exhaust."""
    for at, statement in enumerate(block):
        name = _assigned_name(statement)
        if name is None or not isinstance(once.get(name), ast.GeneratorExp):
            continue
        walked: list[ast.stmt] = []
        for later in block[at + 1 :]:
            if _consumes_name(later, name):
                walked.append(later)
            if len(walked) == 2:
                yield (
                    walked[1],
                    f"`{name}` is a generator, and line {walked[0].lineno} has walked it to its end: nothing is left here",
                    "iterator-is-spent",
                )
                break
            if isinstance(later, ast.Return | ast.Raise):
                break


def _assigned_name(statement: ast.stmt) -> str | None:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case _:
            return None


def _consumes_name(statement: ast.stmt, name: str) -> bool:
    """Whether a statement certainly iterates over all of the name's value."""
    match statement:
        case ast.For(iter=ast.Name(id=found), body=body):
            left = (ast.Break, ast.Return, ast.Raise)
            return found == name and not any(isinstance(n, left) for s in body for n in ast.walk(s))
        case ast.Assign() | ast.Return() | ast.Expr() | ast.AugAssign():
            return any(_is_consumer(n, name) for n in _walk_certainly_evaluated(statement))
        case _:
            return False


def _walk_certainly_evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that a statement certainly evaluates: none behind a condition, in a lambda or in a comprehension's body."""
    yield node
    match node:
        case ast.IfExp() | ast.BoolOp() | ast.Lambda() | ast.GeneratorExp():
            return
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _walk_certainly_evaluated(child)


def _is_consumer(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=walker), args=[ast.Name(id=found), *_]):
            return walker in _CONSUMING_FUNCTIONS and found == name
        case ast.Call(
            func=ast.Name(id=walker), args=[ast.GeneratorExp(generators=[first, *_]), *_]
        ):
            return (
                walker in _CONSUMING_FUNCTIONS
                and isinstance(first.iter, ast.Name)
                and first.iter.id == name
            )
        case ast.ListComp(generators=[first, *_]) | ast.SetComp(generators=[first, *_]):
            return isinstance(first.iter, ast.Name) and first.iter.id == name
        case _:
            return False


def _find_lazy_reads_after_close(
    block: Sequence[ast.stmt], once: dict[str, ast.expr]
) -> Iterator[BugPlace]:
    """A lazy reader of a file that is iterated after the `with` has closed the file."""
    for at, statement in enumerate(block):
        match statement:
            case ast.With(
                items=[
                    ast.withitem(
                        context_expr=ast.Call(func=ast.Name(id="open")),
                        optional_vars=ast.Name(id=file),
                    )
                ],
                body=body,
            ):
                lazy = {
                    name
                    for one in body
                    if (name := _assigned_name(one)) and _reads_lazily(once.get(name), file)
                }
            case _:
                continue
        for later in block[at + 1 :]:
            for name in sorted(lazy):
                if _consumes_name(later, name) or any(
                    _is_consumer(n, name) for n in _walk_certainly_evaluated(later)
                ):
                    yield (
                        later,
                        f"`{name}` reads `{file}` only when it is walked, and line {body[-1].end_lineno} was the last with the file open",
                        "file-is-closed",
                    )
                    lazy.discard(name)


def _reads_lazily(value: ast.expr | None, file: str) -> bool:
    match value:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="csv"), attr="reader" | "DictReader"),
            args=[ast.Name(id=found), *_],
        ):
            return found == file
        case ast.Call(func=ast.Name(id="map" | "filter"), args=[_, ast.Name(id=found)]):
            return found == file
        case ast.Call(func=ast.Name(id="enumerate"), args=[ast.Name(id=found), *_]):
            return found == file
        case ast.GeneratorExp(generators=[first, *_]):
            return isinstance(first.iter, ast.Name) and first.iter.id == file
        case _:
            return False


def _check_loop(node: ast.For) -> Iterator[BugPlace]:
    yield from _find_index_overruns(node)
    yield from _find_shrinking_loops(node)


def _find_shrinking_loops(node: ast.For) -> Iterator[BugPlace]:
    """A loop that removes elements from the container it iterates over, and continues."""
    match node.iter:
        case ast.Call(func=ast.Attribute(value=walked, attr="items" | "keys" | "values"), args=[]):
            is_dict = True
        case ast.Name() | ast.Attribute() as walked:
            is_dict = False
        case _:
            return
    whole, first = ast.unparse(walked), node.target
    if isinstance(first, ast.Tuple) and first.elts:
        first = first.elts[0]
    own = [n for s in node.body for n in ast.walk(s)]
    if any(
        isinstance(n, ast.Name | ast.Attribute)
        and not isinstance(n.ctx, ast.Load)
        and ast.unparse(n) == whole
        for n in own
    ):
        return
    leaves = [n.lineno for n in own if isinstance(n, ast.Break | ast.Return | ast.Raise)]
    for statement in own:
        match statement:
            case ast.Delete(targets=[ast.Subscript(value=held, slice=key)]):
                taken = is_dict or ast.unparse(key) == ast.unparse(first)
            case ast.Expr(
                value=ast.Call(func=ast.Attribute(value=held, attr="pop"), args=[key, *_])
            ):
                taken = is_dict or ast.unparse(key) == ast.unparse(first)
            case ast.Expr(
                value=ast.Call(func=ast.Attribute(value=held, attr="remove"), args=[key])
            ):
                taken = not is_dict and ast.unparse(key) == ast.unparse(first)
            case _:
                continue
        if taken and ast.unparse(held) == whole and not any(n >= statement.lineno for n in leaves):
            yield (
                statement,
                f"`{whole}` loses an entry here while line {node.lineno} walks it",
                "shrinks-under-its-loop",
            )


def _find_index_overruns(node: ast.For) -> Iterator[BugPlace]:
    """`for i in range(len(x) + 1)` that reads `x[i]` without a check."""
    match node:
        case ast.For(
            target=ast.Name(id=at),
            iter=ast.Call(
                func=ast.Name(id="range"),
                args=[
                    ast.BinOp(
                        left=ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=held)]),
                        op=ast.Add(),
                        right=ast.Constant(value=int(more)),
                    )
                ],
            ),
        ) if more > 0:
            pass
        case _:
            return
    inside = [n for s in node.body for n in ast.walk(s)]
    if any(isinstance(n, ast.If | ast.IfExp | ast.Try | ast.BoolOp | ast.Break) for n in inside):
        return
    for one in inside:
        match one:
            case ast.Subscript(value=ast.Name(id=found), slice=ast.Name(id=index), ctx=ast.Load()):
                if found == held and index == at:
                    yield (
                        one,
                        f"`{held}[{at}]` is one past the end in the last round",
                        "one-past-the-end",
                    )
                    return
            case ast.Call(func=ast.Attribute(value=ast.Name(id=found), attr=attr)):
                if found == held and attr in _IN_PLACE:
                    return
            case _:
                pass


def _check_class(node: ast.ClassDef, tree: ast.Module) -> Iterator[BugPlace]:
    """A constructor that does not call its base's, although a method reads an attribute that only the base sets."""
    bases = {b.id for b in node.bases if isinstance(b, ast.Name)}
    known = {c.name: c for c in tree.body if isinstance(c, ast.ClassDef)}
    own = next(
        (f for f in node.body if isinstance(f, ast.FunctionDef) and f.name == "__init__"), None
    )
    if own is None or len(node.bases) != 1 or not bases <= known.keys() or not bases:
        return
    base = known[bases.pop()]
    made = next(
        (f for f in base.body if isinstance(f, ast.FunctionDef) and f.name == "__init__"), None
    )
    if made is None or any(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "__init__"
        for n in ast.walk(own)
    ):
        return
    everywhere = _names_of_assigned_attributes(base, made) | {
        n for c in (node, base) for s in c.body for n in _member_names(s)
    }
    missing = _names_of_assigned_attributes(made) - _names_of_assigned_attributes(node) - everywhere
    for inner in ast.walk(node):
        match inner:
            case ast.Attribute(value=ast.Name(id="self"), attr=attr, ctx=ast.Load()) if (
                attr in missing
            ):
                yield (
                    own,
                    f"`self.{attr}` is read in line {inner.lineno} and only `{base.name}.__init__` sets it, which is not called",
                    "base-not-made",
                )
                return
            case _:
                pass


def _names_of_assigned_attributes(node: ast.AST, without: ast.AST | None = None) -> set[str]:
    left = {id(n) for n in ast.walk(without)} if without is not None else set()
    return {
        n.attr
        for n in ast.walk(node)
        if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load) and id(n) not in left
    }


# Bugs inside one expression: arguments in the wrong place or form, conditions and ranges that never vary.

_MINUTE_AS_MONTH = re.compile(r"%[Yy][-/.]?%M(?![:%]?%S)|%d[-/.]%M[-/.]%[Yy]|%M[-/.]%d[-/.]%[Yy]")
_QUOTED_SQL = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)


def find_expression_bugs(tree: ast.Module) -> Iterator[BugPlace]:
    """All bugs of these patterns in a Python file."""
    nothing = _functions_without_result(tree)
    for node in ast.walk(tree):
        match node:
            case ast.If() | ast.While() | ast.IfExp():
                yield from _find_always_true(node.test)
            case ast.comprehension():
                for test in node.ifs:
                    yield from _find_always_true(test)
            case ast.List() | ast.Tuple() | ast.Set():
                yield from _find_joined_texts(node.elts)
            case ast.Call():
                yield from _check_call(node, nothing)
            case _:
                pass


def _find_always_true(test: ast.expr) -> Iterator[BugPlace]:
    """`x == 1 or 2`: a true constant where a comparison is meant."""
    match test:
        case ast.BoolOp(op=ast.Or(), values=[ast.Compare(), *others]):
            for value in others:
                if isinstance(value, ast.Constant) and value.value and value.value is not True:
                    shown = ast.unparse(value)
                    yield (
                        test,
                        f"`or {shown}` makes this condition true whatever stands before",
                        "always-true",
                    )
                    return
        case _:
            pass


def _find_joined_texts(elements: Sequence[ast.expr]) -> Iterator[BugPlace]:
    """Two words on two lines of a list of words, without a comma between them."""
    words = [e for e in elements if isinstance(e, ast.Constant) and isinstance(e.value, str)]
    if len(words) < 3 or len(words) != len(elements):
        return
    spread = [e for e in words if e.end_lineno != e.lineno]
    if len(spread) != 1 or len({e.lineno for e in words}) != len(words):
        return
    word = spread[0]
    plain = all(re.fullmatch(r"[\w./:-]{1,40}", str(e.value)) for e in words)
    if plain and word.end_lineno == word.lineno + 1 and word.col_offset == words[0].col_offset:
        yield (
            word,
            f"No comma: these two lines are one text, `{str(word.value)[:60]}`",
            "texts-joined",
        )


def _functions_without_result(tree: ast.Module) -> set[str]:
    """Plain functions at the top of the module that never return a value."""
    return {
        n.name
        for n in tree.body
        if isinstance(n, ast.FunctionDef)
        and not n.decorator_list
        and not any(
            isinstance(i, ast.Yield | ast.YieldFrom) or (isinstance(i, ast.Return) and i.value)
            for i in walk_own_nodes_of_function(n)
        )
    }


def _check_call(node: ast.Call, nothing: set[str]) -> Iterator[BugPlace]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in {"Thread", "Process", "Timer"}:
        yield from _find_called_targets(node, nothing)
    elif look := _CALL_CHECKS.get(name):
        yield from look(node)


def _find_called_targets(node: ast.Call, nothing: set[str]) -> Iterator[BugPlace]:
    for keyword in node.keywords:
        match keyword:
            case ast.keyword(
                arg="target" | "function", value=ast.Call(func=ast.Name(id=called))
            ) if called in nothing:
                what = f"`{called}` is called here and now, and its None becomes the target"
                yield keyword.value, what, "called-at-once"
            case _:
                pass


def _find_minute_as_month(node: ast.Call) -> Iterator[BugPlace]:
    for argument in node.args:
        match argument:
            case ast.Constant(value=str(form)) if _MINUTE_AS_MONTH.search(form):
                yield argument, "`%M` are minutes: the month is `%m`", "minutes-for-months"
            case _:
                pass


def _find_misplaced_flags(node: ast.Call) -> Iterator[BugPlace]:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=attr), args=[_, _, *others]):
            match others if attr == "split" else others[1:]:
                case [ast.Attribute(value=ast.Name(id="re"), attr=flag)] if flag.isupper():
                    what = f"`re.{flag}` stands where the count stands: give it as `flags=`"
                    yield node, what, "flags-for-count"
                case _:
                    pass
        case _:
            pass


def _find_empty_ranges(node: ast.Call) -> Iterator[BugPlace]:
    bounds = [_number_value(a) for a in node.args]
    if len(bounds) in {2, 3} and None not in bounds:
        start, stop, step = (*bounds, 1)[:3]
        if start is not None and stop is not None and step and (stop - start) * step < 0:
            yield node, f"`{ast.unparse(node)}` is empty", "empty-range"


def _number_value(node: ast.expr) -> int | None:
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return -value
        case _:
            return None


def _find_placeholder_mismatch(node: ast.Call) -> Iterator[BugPlace]:
    """A statement with more or fewer placeholders than values, if the call contains both."""
    match node.args:
        case [ast.Constant(value=str(statement)), ast.Tuple(elts=values) | ast.List(elts=values)]:
            if any(isinstance(v, ast.Starred) for v in values):
                return
            bare = _QUOTED_SQL.sub("", statement)
            asked = bare.count("?") or len(re.findall(r"(?<!%)%s", bare))
            if asked and asked != len(values) and not re.search(r"\?\d|\?\||\?&|%\(", bare):
                yield (
                    node,
                    f"the statement asks for {asked} values and is given {len(values)}",
                    "placeholders",
                )
        case _:
            pass


_CALL_CHECKS = {
    "strftime": _find_minute_as_month,
    "strptime": _find_minute_as_month,
    "sub": _find_misplaced_flags,
    "subn": _find_misplaced_flags,
    "split": _find_misplaced_flags,
    "range": _find_empty_ranges,
    "execute": _find_placeholder_mismatch,
}


_MUTATING_METHODS = frozenset(
    {
        "append",
        "extend",
        "insert",
        "add",
        "update",
        "setdefault",
        "pop",
        "remove",
        "discard",
        "clear",
        "popitem",
    }
)
_MESSAGE_FUNCTIONS = frozenset(
    {"debug", "info", "warning", "error", "critical", "exception", "print"}
)
_INTENDED_DEFAULT = re.compile(r"(?i)^_|cache|memo|registry|shared|static")
_FORMATTING_CALL = re.compile(r"\.format(?:_map)?\(|Template|\.substitute\(|vformat|\bpartial\(")


@dataclass(frozen=True, slots=True)
class _BugPattern:
    """A row of `bug_patterns.toml`, which explains its fields."""

    severity: Severity
    confidence: float
    why: str
    caused_elsewhere: bool = False
    mend: tuple[str, str] | None = None


@cache
def _load_patterns() -> dict[str, _BugPattern]:
    table = resources.files("regreen.reviewers.analyzers").joinpath("bug_patterns.toml")
    rows = tomllib.loads(table.read_text("utf-8"))
    return {name: _BugPattern(**row) for name, row in rows.items()}


class BugPatterns:
    """Looks for bug patterns in each changed Python file."""

    name = "mistakes"

    def run(self, context: ReviewContext) -> ReviewerReport:
        """Report what is new against the merge base."""
        files = head_python_texts(context)
        found = [hit for path, text in files.items() for hit in find_bug_patterns(path, text)]
        new = select_new_diagnostics(
            context,
            found,
            lambda: [
                h for p, t in base_python_texts(context).items() for h in find_bug_patterns(p, t)
            ],
            sure=lambda h: _load_patterns()[h.rule].caused_elsewhere,
        )
        bases = (
            _find_base_names(context) if any(h.rule == "no-such-attribute" for h in new) else set()
        )
        return ReviewerReport(
            tuple(
                _make_claim(hit, context)
                for hit in new
                if hit.rule != "no-such-attribute"
                or not bases & set(_QUOTED_NAME.findall(hit.message))
            )
        )


_CLASS_BASES = re.compile(
    rb"^[ \t]{0,40}class[ \t]+\w{1,100}[ \t]{0,4}\(([^)]{1,400})\)", re.MULTILINE
)
_QUOTED_NAME = re.compile(r"`(\w+)`")


def _find_base_names(context: ReviewContext) -> set[str]:
    """The names of all base classes in the repository: a subclass may define what its base lacks."""
    if context.git is None:
        return set()
    found: set[str] = set()
    for _, data in read_sources(context.git, context.head, is_module):
        for match in _CLASS_BASES.finditer(data):
            found.update(re.findall(r"\w+", match[1].decode("ascii", "replace")))
    return found


def find_bug_patterns(path: str, text: str) -> Iterator[Diagnostic]:
    """All bugs of these patterns in a file."""
    tree = parse_python(text)
    if tree is None:
        return
    yield from _find_unawaited(path, tree)
    yield from _find_unknown_attributes(path, tree)
    for place, what, rule in chain(find_statement_bugs(tree), find_expression_bugs(tree)):
        yield Diagnostic(rule, path, place.lineno, place.end_lineno or place.lineno, what)
    for node in ast.walk(tree):
        if isinstance(node, FunctionNode):
            yield from _find_shared_defaults(path, node)
            if not _FORMATTING_CALL.search(ast.unparse(node)):
                yield from _find_unfilled_texts(path, node)


def _find_shared_defaults(
    path: str, function: ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[Diagnostic]:
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args]
    pairs = list(zip(reversed(named), reversed(arguments.defaults), strict=False))
    pairs += [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d]
    for argument, default in pairs:
        if not _is_mutable(default) or _INTENDED_DEFAULT.search(argument.arg):
            continue
        place = _find_mutation(function, argument.arg)
        if place is not None:
            what = f"`{argument.arg}` defaults to one shared `{ast.unparse(default)}`, which line {place} changes"
            yield Diagnostic(
                "shared-default", path, argument.lineno, default.end_lineno or default.lineno, what
            )


def _is_mutable(node: ast.expr) -> bool:
    if isinstance(node, ast.List | ast.Dict | ast.Set):
        return True
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"list", "dict", "set", "defaultdict", "Counter", "deque"}
    )


def _find_mutation(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> int | None:
    """The first line that mutates the argument's object; None if the name is bound to another object."""
    changed: list[int] = []
    for node in ast.walk(function):
        match node:
            case ast.Name(id=found, ctx=ast.Store()) if found == name:
                return None
            case ast.Call(func=ast.Attribute(value=ast.Name(id=found), attr=method)):
                if found == name and method in _MUTATING_METHODS:
                    changed.append(node.lineno)
            case ast.Subscript(value=ast.Name(id=found), ctx=ast.Store() | ast.Del()):
                if found == name:
                    changed.append(node.lineno)
            case _:
                pass
    return min(changed, default=None)


def _find_unfilled_texts(
    path: str, function: ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[Diagnostic]:
    known = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
    known |= {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
    for node in ast.walk(function):
        text = _message_text(node)
        if text is None:
            continue
        fields = _placeholder_names(text.value if isinstance(text.value, str) else "")
        if fields and fields <= known:
            shown = ", ".join(f"{{{f}}}" for f in sorted(fields))
            end = text.end_lineno or text.lineno
            yield Diagnostic(
                "unfilled-text",
                path,
                text.lineno,
                end,
                f"`{shown}` stands in a text that nothing fills",
            )


def _find_unawaited(path: str, tree: ast.Module) -> Iterator[Diagnostic]:
    """Coroutines of this module that are used as operands, conditions or containers instead of being awaited."""
    times = Counter(name for node in ast.walk(tree) for name in names_bound_by_node(node))
    coroutines = {
        n.name
        for n in tree.body
        if isinstance(n, ast.AsyncFunctionDef)
        and times[n.name] == 1
        and not n.decorator_list
        and not any(isinstance(inner, ast.Yield) for inner in ast.walk(n))
    }
    for node in ast.walk(tree) if coroutines else ():
        for value in _operands_of_node(node):
            if (
                isinstance(value, ast.Call)
                and isinstance(value.func, ast.Name)
                and value.func.id in coroutines
            ):
                end = value.end_lineno or value.lineno
                yield Diagnostic(
                    "not-awaited", path, value.lineno, end, f"`{value.func.id}(...)` is not awaited"
                )


def names_bound_by_node(node: ast.AST) -> Iterator[str]:
    """The name that this node itself binds."""
    if isinstance(node, FunctionNode | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.alias):
        yield (node.asname or node.name).split(".", maxsplit=1)[0]


def _operands_of_node(node: ast.AST) -> Iterator[ast.expr]:
    """The operands, conditions and containers that a node uses."""
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


def _find_unknown_attributes(path: str, tree: ast.Module) -> Iterator[Diagnostic]:
    """`self.x` in a class without bases, where nothing in the module assigns an attribute `x`."""
    given = {
        n.attr
        for n in ast.walk(tree)
        if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load)
    }
    texts = {
        n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    }
    inherited = {
        ast.unparse(b).rpartition(".")[2]
        for n in ast.walk(tree)
        if isinstance(n, ast.ClassDef)
        for b in n.bases
    }
    for node in tree.body:
        if (
            not isinstance(node, ast.ClassDef)
            or not _has_only_own_members(node)
            or node.name in inherited
        ):
            continue
        known = (
            given
            | texts
            | {name for child in node.body for name in _member_names(child)}
            | _UNIVERSAL_ATTRIBUTES
        )
        for inner in _self_attributes_read(node):
            if inner.attr not in known and not inner.attr.startswith("__"):
                what = f"`self.{inner.attr}` is given by nothing: `{node.name}` has no base and never sets it"
                yield Diagnostic("no-such-attribute", path, inner.lineno, inner.lineno, what)


_UNIVERSAL_ATTRIBUTES = frozenset(dir(object)) | frozenset(
    {"__dict__", "__annotations__", "__slots__", "__name__"}
)
_DYNAMIC_MEMBERS = frozenset({"__getattr__", "__getattribute__", "__slots__"})


def _has_only_own_members(node: ast.ClassDef) -> bool:
    """Whether the class alone defines its objects' attributes: no base, no decorator, nothing dynamic."""
    if node.bases or node.keywords or node.decorator_list or "mixin" in node.name.lower():
        return False
    if any(name in _DYNAMIC_MEMBERS for child in node.body for name in _member_names(child)):
        return False
    used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return not used & {"setattr", "vars", "hasattr", "getattr", "globals"} and not any(
        isinstance(n, ast.Attribute) and n.attr in {"__dict__", "update_wrapper", "__new__"}
        for n in ast.walk(node)
    )


def _member_names(child: ast.stmt) -> Iterator[str]:
    for inner in [child] if isinstance(child, FunctionNode | ast.ClassDef) else ast.walk(child):
        yield from names_bound_by_node(inner)


def _self_attributes_read(node: ast.ClassDef) -> Iterator[ast.Attribute]:
    """The attributes of `self` that undecorated methods read."""
    for method in node.body:
        if not isinstance(method, FunctionNode) or method.decorator_list or not method.args.args:
            continue
        own = method.args.args[0].arg
        tried = {
            id(n)
            for t in ast.walk(method)
            if isinstance(t, ast.Try)
            for s in t.body
            for n in ast.walk(s)
        }
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


def _message_text(node: ast.AST) -> ast.Constant | None:
    """The text that is the only argument of a raised, logged or printed message."""
    call = node.exc if isinstance(node, ast.Raise) else node
    if not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords:
        return None
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if not isinstance(node, ast.Raise) and name not in _MESSAGE_FUNCTIONS:
        return None
    text = call.args[0]
    return text if isinstance(text, ast.Constant) and isinstance(text.value, str) else None


def _placeholder_names(text: str) -> set[str]:
    """The plain names in braces; none where a brace is anything else."""
    try:
        parts = list(Formatter().parse(text))
    except ValueError:
        return set()
    names = [name for _, name, _, _ in parts if name is not None]
    return set(names) if all(n.isidentifier() for n in names) else set()


def _make_claim(hit: Diagnostic, context: ReviewContext) -> Claim:
    pattern = _load_patterns()[hit.rule]
    rows = (context.head_text(hit.path) or "").split("\n")
    own = rows[hit.line - 1 : hit.end_line]
    place = commentable_range(context, hit)
    return make_analyzer_claim(
        f"mistakes/{hit.rule}",
        pattern.severity,
        hit.path,
        place,
        title=hit.message,
        body=pattern.why,
        confidence=pattern.confidence,
        excerpt="\n".join(own)[:500],
        source="the table of frequent mistakes",
        # `select_new_diagnostics` has decided that the change causes it
        anywhere=True,
        suggestion=replace_single_match(own, pattern.mend)
        if place == (hit.line, hit.end_line)
        else None,
    )
