"""Facts about a patch: the files that count, their syntax before and after, and what was added."""

from __future__ import annotations

import ast
import operator
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar, overload

from regreen.code.file_change import PatchedFile
from regreen.code.paths import is_document, is_test
from regreen.code.python_calls import iterate_top_statements, last_name

PythonFunction = ast.FunctionDef | ast.AsyncFunctionDef
Tree = ast.AST | None
Node = TypeVar("Node", bound=ast.AST)
OtherNode = TypeVar("OtherNode", bound=ast.AST)
Fact = TypeVar("Fact", bound=Hashable)
_MAX_CACHED_TREES = 64


def exclude_tests_and_documents(files: Sequence[PatchedFile]) -> list[PatchedFile]:
    """The files that are neither tests nor documents."""
    return [file for file in files if not is_test(file.path) and not is_document(file.path)]


def find_changed_products(files: Sequence[PatchedFile]) -> list[PatchedFile]:
    """The product files that were there before the patch and are there after it."""
    return [
        file
        for file in exclude_tests_and_documents(files)
        if file.old is not None and file.new is not None
    ]


def is_parsed(file: PatchedFile) -> bool:
    """Whether the file is Python that parses before and after."""
    return file.old_tree is not None and file.new_tree is not None


def count_gained(
    file: PatchedFile, find: Callable[[ast.Module | None], Iterable[Fact]]
) -> Counter[Fact]:
    """The facts that `find` yields more often after the patch than before."""
    return Counter(find(file.new_tree)) - Counter(find(file.old_tree))


def find_new_nodes(
    file: PatchedFile, find: Callable[[ast.Module | None], Iterable[Node]]
) -> Iterator[Node]:
    """The nodes that `find` yields after the patch and not before it."""
    before = {ast.dump(node) for node in find(file.old_tree)}
    return (node for node in find(file.new_tree) if ast.dump(node) not in before)


def find_gained_line(file: PatchedFile, pattern: re.Pattern[str]) -> tuple[int, str] | None:
    """The first added line that matches, if the added lines have more matches than the removed ones."""
    gained = sum(len(pattern.findall(line)) for _, line in file.added_lines)
    if gained <= sum(len(pattern.findall(line)) for _, line in file.removed_lines):
        return None
    return next(found for found in file.added_lines if pattern.search(found[1]))


@lru_cache(maxsize=_MAX_CACHED_TREES)
def _list_nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree))


@overload
def find_nodes(tree: Tree, kind: type[Node], /) -> Iterator[Node]: ...
@overload
def find_nodes(
    tree: Tree, kind: type[Node], other: type[OtherNode], /
) -> Iterator[Node | OtherNode]: ...
def find_nodes(tree: Tree, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of some kinds in a tree, the outer before the inner; a module is walked once."""
    nodes = _list_nodes(tree) if isinstance(tree, ast.Module) else ast.walk(tree) if tree else ()
    return (node for node in nodes if isinstance(node, kinds))


def find_functions(tree: ast.Module | None) -> dict[str, PythonFunction]:
    """Every function by its dotted name, the last where several have the same."""
    return dict(walk_functions(tree))


def pair_functions(file: PatchedFile) -> Iterator[tuple[str, PythonFunction, PythonFunction]]:
    """The functions that stand before and after the patch: name, before, after.

    Definitions of one name are paired from the last backwards; surplus new ones are compared with the first old one.
    """
    before, after = group_functions(file.old_tree), group_functions(file.new_tree)
    for name in after:
        old, new = before.get(name, []), after[name]
        for place, node in enumerate(new, len(old) - len(new)):
            if old:
                yield name, old[max(0, place)], node


def group_functions(tree: ast.Module | None) -> dict[str, list[PythonFunction]]:
    """Every function by its dotted name: a property and its setter share one, as do those of an `if` and its `else`."""
    found: dict[str, list[PythonFunction]] = {}
    for name, node in walk_functions(tree):
        found.setdefault(name, []).append(node)
    return found


def walk_functions(tree: ast.Module | None) -> Iterator[tuple[str, PythonFunction]]:
    """Every function with its dotted name, methods, inner functions and those under a condition included."""

    def visit(body: Sequence[ast.stmt], prefix: str) -> Iterator[tuple[str, PythonFunction]]:
        for node in iterate_top_statements(body):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{prefix}{node.name}", node
                yield from visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.ClassDef):
                yield from visit(node.body, f"{prefix}{node.name}.")

    yield from visit(tree.body if tree else [], "")


def walk_scopes(tree: Tree, scope: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Every node with the dotted name of the function or class that it stands in."""
    for node in ast.iter_child_nodes(tree) if tree else ():
        name = (
            node.name
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            else ""
        )
        yield scope, node
        yield from walk_scopes(node, f"{scope}.{name}" if name else scope)


def walk_defaults(node: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    """The parameters that have a default, with it."""
    plain = [*node.posonlyargs, *node.args]
    pairs = [
        *zip(plain[len(plain) - len(node.defaults) :], node.defaults, strict=True),
        *zip(node.kwonlyargs, node.kw_defaults, strict=True),
    ]
    yield from ((argument.arg, default) for argument, default in pairs if default is not None)


def drop_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements without the docstring."""
    first = body[0] if body else None
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return body[1:] if documented else body


def literal_parts(node: ast.expr | None) -> list[str]:
    """The literals of an expression of literals only; empty if it computes anything."""
    match node:
        case ast.Constant(value=value):
            return [repr(value)]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return [repr(-value)]
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            inner = [literal_parts(part) for part in parts]
            return [item for literals in inner for item in literals] if all(inner) else []
        case ast.Dict(keys=keys, values=values):
            inner = [literal_parts(part) for part in (*keys, *values) if part is not None]
            return [item for literals in inner for item in literals] if all(inner) else []
        case _:
            return []


def list_parameters(node: PythonFunction) -> list[ast.arg]:
    """The parameters other than `*args` and `**kwargs`."""
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def documentation_nodes(tree: Tree) -> set[int]:
    """The ids of expressions that stand alone, such as docstrings."""
    return {id(node.value) for node in find_nodes(tree, ast.Expr)}


_MAX_ABSOLUTE = 1e9
_ARITHMETIC: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


def evaluate_number(node: ast.expr) -> float | None:
    """The value of an expression of numbers only; None if it contains anything else or is too large."""
    match node:
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=int() | float() as value):
            return value if abs(value) < _MAX_ABSOLUTE else None
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            first, second = evaluate_number(left), evaluate_number(right)
            if first is None or second is None:
                return None
            return _ARITHMETIC[type(op)](first, second)
        case _:
            return None


# Settings: names with plain values, in assignments, arguments, defaults and mappings.

_UNIT_FACTORS = {"k": 1e3, "m": 1e6, "g": 1e9}
_NUMBER_WITH_UNIT = re.compile(r"(\d[\d_]*(?:\.\d+)?)\s?([kKmMgG]?)")
_NUMBER_TEXT = re.compile(r"(\d+)(?:\s*/\s*\w+|\s*[kKmMgG][bB]?)$")


@dataclass(frozen=True, slots=True)
class SettingValue:
    """The plain value (None if missing or not readable) or the list items of a setting."""

    value: bool | float | str | None
    parts: tuple[str, ...] | None = None


SettingKey = tuple[str, str, int]


def read_settings(tree: ast.Module | None) -> dict[SettingKey, SettingValue]:
    """The settings of a module by scope, name and number among those of that name."""
    return number_settings(
        (scope, pair) for scope, node in walk_scopes(tree) for pair in _settings_of_node(node)
    )


def number_settings(
    found: Iterable[tuple[str, tuple[str, SettingValue]]],
) -> dict[SettingKey, SettingValue]:
    """Number the settings: several values of one name in a scope are distinguished by their order."""
    counts: Counter[tuple[str, str]] = Counter()
    settings: dict[SettingKey, SettingValue] = {}
    for scope, (name, setting) in found:
        counts[scope, name] += 1
        settings[scope, name, counts[scope, name]] = setting
    return settings


def _settings_of_node(node: ast.AST) -> Iterator[tuple[str, SettingValue]]:
    match node:
        case (
            ast.Assign(targets=[target], value=value)
            | ast.AnnAssign(target=target, value=ast.expr() as value)
        ):
            if name := _target_name(target):
                yield from _nested_settings(name, value)
        case ast.keyword(arg=str() as name, value=value):
            yield from _nested_settings(name, value)
        case ast.arguments():
            for name, value in walk_defaults(node):
                yield from _nested_settings(name, value)
        case ast.Call(func=func, args=args) if last_name(func):
            for place, value in enumerate(args):
                if isinstance(value, ast.Constant) and isinstance(value.value, int | float):
                    yield f"{last_name(func)}.{place}", _parse_setting(value)
        case _:
            return


def _nested_settings(name: str, value: ast.expr) -> Iterator[tuple[str, SettingValue]]:
    if isinstance(value, ast.Dict):
        for key, inner in zip(value.keys, value.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield from _nested_settings(f"{name}.{key.value}", inner)
    else:
        yield name, _parse_setting(value)


def _parse_setting(value: ast.expr) -> SettingValue:
    match value:
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return SettingValue(None, tuple(ast.unparse(part) for part in parts))
        case ast.Constant(value=bool() | int() | float() as plain):
            return SettingValue(plain)
        case ast.BinOp():
            return SettingValue(evaluate_number(value))
        case ast.Constant(value=str() as text):
            number = _NUMBER_TEXT.match(text)
            return SettingValue(parse_number(text.split("/", 1)[0]) if number else text)
        case _:
            return SettingValue(None)


def _target_name(target: ast.expr) -> str:
    match target:
        case ast.Subscript(slice=ast.Constant(value=str() as name)):
            return name
        case _:
            return last_name(target)


def parse_number(text: str) -> float:
    """A number with or without a unit of size; 0 where there is none."""
    found = _NUMBER_WITH_UNIT.match(text)
    if found is None:
        return 0.0
    return float(found[1].replace("_", "")) * _UNIT_FACTORS.get(found[2].lower(), 1)
