"""What a patch answers where the program used to fail: defaults, empty values, wider nets, fixed waits."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from regreen.fixers.checks.change import FileChange, Reason
from regreen.fixers.checks.functions import constants, functions
from regreen.fixers.checks.paths import is_document, is_test
from regreen.fixers.checks.silence import is_quiet, suppressed

_BUGS = {"AttributeError", "TypeError", "NameError", "AssertionError", "RuntimeError", "ArithmeticError", "LookupError"}  # fmt: skip
_ANY_ERROR = {"Exception", "BaseException"}
_WAITS = re.compile(
    r"\b(?:time|asyncio|trio|anyio|gevent)\.sleep\(\s*[\d._]*[1-9]|\bsleep\(\s*[\d._]*[1-9]|\bThread\.sleep\(|\btime\.Sleep\(|\bthread::sleep\(|\bsetTimeout\(|^\s*sleep\s+\d"
)
_DULLED = re.compile(
    r"\berrstate\(|\bnan_to_num\(|\berrors\s*=\s*[\"'](?:ignore|replace|coerce)|\bon_bad_lines\s*=\s*[\"'](?:skip|warn)|\bcheck\s*=\s*False|\bsilent\s*=\s*True"
    r"|\.exception\(\)\s+is\s+(?:not\s+)?None|\bnot\s+\w+\.exception\(\)|\ballSettled\(|\bfillna\(|\bDEVNULL\b|2>\s*/dev/null|\.(?:en|de)code\([^)\n]{0,80}[\"'](?:ignore|replace|xmlcharrefreplace)|\?\?\s*(?:\d|[\"'`\[{])"
)
_LONG_NUMBER = 7


def failures_kept(files: Sequence[FileChange]) -> list[Reason]:
    """What was seen to fail still has to: an answer in its place is for a person to see."""
    reasons: list[Reason] = []
    for file in files:
        if is_test(file.path) or is_document(file.path) or file.old is None or file.new is None:
            continue
        reasons += _words(file)
        if file.old_tree is not None and file.new_tree is not None:
            reasons += _defaults_instead(file)
            reasons += _empty_instead(file)
            reasons += _handlers(file)
            reasons += _suppressors(file)
            reasons += _wider_nets(file)
            reasons += _left_out(file)
            reasons += _numbers_instead(file)
            reasons += _tuned(file)
    return reasons


def _words(file: FileChange) -> Iterator[Reason]:
    for pattern, what in (
        (_WAITS, "waits a fixed time"),
        (_DULLED, "keeps errors from being seen"),
    ):
        now = [line for _, line in file.added if pattern.search(line)]
        if len(now) > sum(bool(pattern.search(line)) for _, line in file.removed):
            yield Reason("silenced", f"{file.path}: {what} ({now[0].strip()[:80]})")


def _defaults_instead(file: FileChange) -> Iterator[Reason]:
    """`d["k"]` that becomes `d.get("k", "")`: the lookup does not fail any more."""
    gone = Counter(_lookups(file.old_tree)) - Counter(_lookups(file.new_tree))
    fresh = Counter(_soft_lookups(file.new_tree)) - Counter(_soft_lookups(file.old_tree))
    keys = {key for _, key in fresh}
    for owner, key in gone:
        if key in keys:
            what = f"a lookup that could fail answers a default now ({owner[:40]}[{key[:40]}])"
            yield Reason("size", f"{file.path}: {what}")


def _lookups(tree: ast.Module | None) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            yield ast.unparse(node.value), ast.unparse(node.slice)


def _soft_lookups(tree: ast.Module | None) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree) if tree else ():
        match node:
            case ast.Call(
                func=ast.Attribute(value=owner, attr="get" | "pop" | "setdefault"), args=[key, *_]
            ):
                yield ast.unparse(owner), ast.unparse(key)
            case ast.Call(func=ast.Name(id="getattr"), args=[owner, key, _]):
                yield ast.unparse(owner), ast.unparse(key)
            case _:
                pass


def _empty_instead(file: FileChange) -> Iterator[Reason]:
    """`return load()` that becomes `return load() if there else {}`, or `load() or {}`."""
    stood = Counter(_calls_alone(file.old_tree)) - Counter(_calls_alone(file.new_tree))
    for node in ast.walk(file.new_tree or ast.Module([], [])):
        match node:
            case ast.IfExp(body=call, orelse=other) if _is_nothing(other):
                pass
            case ast.IfExp(body=other, orelse=call) if _is_nothing(other):
                pass
            case ast.BoolOp(op=ast.Or(), values=[call, other]) if _is_nothing(other):
                pass
            case _:
                continue
        if ast.unparse(call) in stood:
            what = f"{file.path}:{node.lineno} answers nothing where it called {ast.unparse(call)[:60]}"
            yield Reason("size", what)


def _calls_alone(tree: ast.Module | None) -> Iterator[str]:
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Return | ast.Assign | ast.AnnAssign) and isinstance(
            node.value, ast.Call
        ):
            yield ast.unparse(node.value)


def _is_nothing(node: ast.expr) -> bool:
    """A constant, or an empty collection."""
    match node:
        case ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[]):
            return True
        case ast.Call(args=[], keywords=[], func=ast.Name(id="set" | "dict" | "list" | "tuple")):
            return True
        case _:
            return bool(constants(node))


def _handlers(file: FileChange) -> Iterator[Reason]:
    """New handlers that answer a number or a text of their own, or that hide what only mistakes raise."""
    before = {ast.dump(node) for node in _handlers_of(file.old_tree)}
    for node in _handlers_of(file.new_tree):
        if ast.dump(node) in before or any(isinstance(one, ast.Raise) for one in ast.walk(node)):
            continue
        where = f"{file.path}:{node.lineno}"
        answers = [
            one
            for statement in node.body
            if isinstance(statement, ast.Return | ast.Assign) and statement.value is not None
            for one in constants(statement.value)
        ]
        if any(one not in _EMPTY for one in answers):
            yield Reason("size", f"{where} answers {answers[0][:40]} in place of an error")
        elif answers or is_quiet(node.body):
            what = ast.unparse(node.type)[:60] if node.type else "anything"
            yield Reason("size", f"{where} goes on after {what} as if nothing had been")
        names = {_last(one) for one in _kinds(node.type)}
        if names & _BUGS and not _uses(node):
            yield Reason(
                "silenced",
                f"{where} goes on after {', '.join(sorted(names & _BUGS))}, which mistakes raise",
            )


def _suppressors(file: FileChange) -> Iterator[Reason]:
    fresh = Counter(_let_go(file.new_tree)) - Counter(_let_go(file.old_tree))
    for text in fresh:
        yield Reason("size", f"{file.path}: goes on as if nothing had been ({text[:80]})")


def _let_go(tree: ast.Module | None) -> Iterator[str]:
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.With | ast.AsyncWith) and suppressed(node) is not None:
            yield ast.unparse(node.items[0])


_EMPTY = {"None", "False", "True", "''", "b''"}


def _uses(node: ast.ExceptHandler) -> bool:
    """Whether the handler does something with what it caught."""
    return node.name is not None and any(
        isinstance(one, ast.Name) and one.id == node.name
        for part in node.body
        for one in ast.walk(part)
    )


def _left_out(file: FileChange) -> Iterator[Reason]:
    """`if key not in table: continue` before `table[key]`: what failed is left out now."""
    before = {ast.dump(node) for node in _skips(file.old_tree)}
    looked_up = set(_lookups(file.old_tree))
    for node in _skips(file.new_tree):
        match node.test:
            case ast.Compare(left=key, ops=[ast.NotIn()], comparators=[owner]) if (
                (ast.unparse(owner), ast.unparse(key)) in looked_up
            ) and ast.dump(node) not in before:
                what = f"passes over {ast.unparse(key)[:40]} where the lookup failed"
                yield Reason("size", f"{file.path}:{node.lineno} {what}")
            case _:
                pass


def _skips(tree: ast.Module | None) -> Iterator[ast.If]:
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.If) and isinstance(
            node.body[-1], ast.Continue | ast.Return | ast.Pass
        ):
            yield node


def _numbers_instead(file: FileChange) -> Iterator[Reason]:
    """`x / (n or 1)`: a number that stands in for one that is zero or missing."""
    fresh = Counter(_stand_ins(file.new_tree)) - Counter(_stand_ins(file.old_tree))
    for text in fresh:
        yield Reason("size", f"{file.path}: a fixed number stands in ({text[:60]})")


def _stand_ins(tree: ast.Module | None) -> Iterator[str]:
    for node in ast.walk(tree) if tree else ():
        match node:
            case ast.BoolOp(
                op=ast.Or(), values=[*_, ast.Constant(value=int() | float() as number)]
            ) if number and not isinstance(number, bool):
                yield ast.unparse(node)
            case _:
                pass


def _wider_nets(file: FileChange) -> Iterator[Reason]:
    """`on=(OSError,)` that becomes `on=(Exception,)`: errors are chosen by value, too."""
    fresh = Counter(_any_errors(file.new_tree)) - Counter(_any_errors(file.old_tree))
    if fresh:
        yield Reason("silenced", f"{file.path}: {min(fresh)} is named as what may be caught")


def _any_errors(tree: ast.Module | None) -> Iterator[str]:
    for node in ast.walk(tree) if tree else ():
        match node:
            case ast.arguments(defaults=defaults, kw_defaults=others):
                values = [*defaults, *(one for one in others if one is not None)]
            case ast.keyword(value=value) | ast.Assign(value=value):
                values = [value]
            case _:
                continue
        for value in values:
            parts = value.elts if isinstance(value, ast.Tuple) else [value]
            yield from (_last(one) for one in parts if _last(one) in _ANY_ERROR)


def _tuned(file: FileChange) -> Iterator[Reason]:
    """A new factor of many digits is mostly worked out from the answer that is wanted."""
    fresh = set(_long_numbers(file.new_tree)) - set(_long_numbers(file.old_tree))
    for number in sorted(fresh):
        yield Reason("special_case", f"{file.path} brings in {number}, a number of many digits")


def _long_numbers(tree: ast.Module | None) -> Iterator[str]:
    for name, function in functions(tree):
        for node in ast.walk(function):
            if isinstance(node, ast.Constant) and isinstance(node.value, float):
                digits = repr(node.value).split("e")[0].replace(".", "").strip("0")
                if len(digits) >= _LONG_NUMBER:
                    yield f"{node.value!r} (in {name})"


def _handlers_of(tree: ast.Module | None) -> Iterator[ast.ExceptHandler]:
    return (
        node for node in (ast.walk(tree) if tree else ()) if isinstance(node, ast.ExceptHandler)
    )


def _kinds(node: ast.expr | None) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node] if node else []


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
