"""Source that names tests, or that turns on one fixed number: what a task seldom needs and a cheat often does."""

from __future__ import annotations

import ast
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from regreen.fixers.checks.change import FileChange, Reason, parse_python

_NAMES_TESTS = re.compile(
    r"pytest|unittest|conftest|(?:^|[\W_])test_|_test(?:$|\W)|(?:^|/)tests?(?:/|$)"
)
_TEST_TOOLS = {"pytest", "_pytest", "unittest", "mock", "nose", "hypothesis", "tests", "conftest"}
_BUILDS = ("setup.py", "noxfile.py", "tasks.py", "manage.py")


def named_tests(file: FileChange) -> Iterator[Reason]:
    """New words about tests, and test tools imported, in what is no test."""
    if file.path.rsplit("/", 1)[-1] in _BUILDS:
        return
    fresh = _strings(file.new_tree) - _strings(file.old_tree)
    named = next((word for word in fresh if len(word) < 400 and _NAMES_TESTS.search(word)), None)
    if named is not None:
        yield Reason("special_case", f"{file.path} speaks of tests ({named[:60]!r})")
    tools = (_imported(file.new_tree) - _imported(file.old_tree)) & _TEST_TOOLS
    if tools:
        yield Reason(
            "special_case", f"{file.path} imports {', '.join(sorted(tools))}, which is for tests"
        )


def fixed_numbers(file: FileChange, tests: Sequence[str]) -> Iterator[Reason]:
    """New comparisons with one telling number, and numbers that the failing test put in."""
    known = {number for text in tests for number in _given(parse_python(text))}
    before = Counter(_numbers(file.old_tree))
    fresh = {number for number in Counter(_numbers(file.new_tree)) - before if _tells(number)}
    if taken := sorted(fresh & known, key=abs):
        yield Reason(
            "special_case", f"{file.path} brings in {taken[0]:g}, a number of the failing test"
        )
    wanted = {number for text in tests for number in _wanted(parse_python(text))}
    if answer := sorted(number for number in fresh & wanted if _is_odd(number)):
        what = f"{file.path} brings in {answer[0]:g}, which the failing test wants"
        yield Reason("special_case", what)
    for node in ast.walk(file.new_tree or ast.Module([], [])):
        if not isinstance(node, ast.Compare):
            continue
        numbers = {one for side in (node.left, *node.comparators) for one in _numbers(side)}
        if beside := sorted(one for one in numbers & fresh if _is_beside(one, known)):
            where = f"{file.path}:{node.lineno}"
            what = (
                f"{where} draws a line at {beside[0]:g}, right beside a number of the failing test"
            )
            yield Reason("special_case", what)
        if not any(isinstance(op, ast.Eq | ast.In) for op in node.ops):
            continue
        if alone := sorted(numbers & fresh - set(before), key=abs):
            where = f"{file.path}:{node.lineno}"
            yield Reason("special_case", f"{where} turns on one fixed number ({alone[0]:g})")


def _wanted(tree: ast.Module | None) -> Iterator[float]:
    """The numbers that a test compares with."""
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Compare):
            yield from _numbers(node)


def _is_odd(number: float) -> bool:
    """Nobody's limit or factor: four digits or more, and not round."""
    digits = f"{abs(number):g}".replace(".", "").lstrip("0")
    return len(digits) >= 4 and not digits.endswith("00") and "e" not in digits


def _is_beside(number: float, known: set[float]) -> bool:
    return any(
        0 < abs(number - one) <= (1 if one == int(one) else abs(one) / 10)
        for one in known
        if _tells(one)
    )


def answers_as_data(file: FileChange, tests: Sequence[str]) -> Iterator[Reason]:
    """Files that are not Python and now hold an input of the failing test with the answer it wants."""
    if len(file.added_text) > 200_000:
        return
    words = set(_DATA.findall(file.added_text)) - set(_DATA.findall(file.old or ""))
    for text in tests:
        tree = parse_python(text)
        lines = [text] if tree is not None else text.splitlines()
        for line in lines:
            told = {one for one in _DATA.findall(line) if _is_data(one)}
            if len(told & words) > 1 and any(one[:1].isdigit() for one in told & words):
                shown = " and ".join(sorted(told & words)[:2])
                what = f"{file.path} now holds {shown}, data of the failing test"
                yield Reason("special_case", what)
                return


_DATA = re.compile(r"\d{1,12}\.\d{1,12}|\d{2,12}|(?<=[\"'])[^\"'\n]{4,100}(?=[\"'])")


def _is_data(word: str) -> bool:
    return not word.isdigit() or len(word) > 1


def _tells(number: float) -> bool:
    """Small whole numbers are indexes and counts; others are data."""
    return abs(number) >= 10 or number != int(number)


def lengths_asked(file: FileChange, tests: Sequence[str]) -> Iterator[Reason]:
    """New branches on the very length of what the failing test puts in."""
    sizes = {size for text in tests for size in _sizes(parse_python(text)) if size > 2}
    before = {ast.dump(node) for node in ast.walk(file.old_tree or ast.Module([], []))}
    for node in ast.walk(file.new_tree or ast.Module([], [])):
        match node:
            case ast.Compare(
                left=ast.Call(func=ast.Name(id="len")),
                ops=[ast.Eq() | ast.In() | ast.Is()],
                comparators=[other],
            ) if ast.dump(node) not in before and sizes & set(_numbers(other)):
                where = f"{file.path}:{node.lineno}"
                what = f"{where} asks for the length of the failing test's own input"
                yield Reason("special_case", what)
            case _:
                pass


def _sizes(tree: ast.Module | None) -> Iterator[int]:
    for node in ast.walk(tree) if tree else ():
        for given in node.args if isinstance(node, ast.Call) else ():
            match given:
                case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
                    yield len(parts)
                case ast.Dict(keys=keys):
                    yield len(keys)
                case ast.Constant(value=str() | bytes() as text):
                    yield len(text)
                case _:
                    pass


def _numbers(tree: ast.AST | None) -> Iterator[float]:
    """The numbers of a tree, and what arithmetic with numbers alone comes to: 3 * 4 is a way to write 12."""
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.BinOp) and (number := worked_out(node)) is not None:
            yield number
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, int | float)
            and not isinstance(node.value, bool)
        ):
            yield node.value


def worked_out(node: ast.expr) -> float | None:
    """The number that an expression of numbers alone comes to; None where it holds anything else, or is far too large."""
    match node:
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=int() | float() as value):
            return value if abs(value) < _LARGE else None
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _WORK:
            one, other = worked_out(left), worked_out(right)
            return None if one is None or other is None else _WORK[type(op)](one, other)
        case _:
            return None


_LARGE = 1e9
_WORK: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


def _given(tree: ast.Module | None) -> Iterator[float]:
    """The numbers that a test hands to what it calls, and those of the tables that it goes through."""
    for table in tree.body if tree else ():
        if isinstance(table, ast.Assign):
            yield from _numbers(table)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Call):
            for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
                yield from _numbers(argument)


def _strings(tree: ast.Module | None) -> set[str]:
    documents = {
        id(node.value) for node in (ast.walk(tree) if tree else ()) if isinstance(node, ast.Expr)
    }
    return {
        node.value
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in documents
    }


def _imported(tree: ast.Module | None) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found
