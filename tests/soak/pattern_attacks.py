"""All regular expressions of a package, and for each the texts that make a backtracking engine slow.

A text is made from the pattern's own parse tree: what leads to a repetition, then the repetition's body many times (or
the way to it many times, which is what makes an unanchored search start again and again), then what cannot match.
"""

from __future__ import annotations

import ast
import functools
import gc
import importlib
import inspect
import itertools
import multiprocessing
import pkgutil
import re
import resource
import time
import types
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

_CALLS = {"compile", "search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split"}
_ANCHORED = {"match", "fullmatch"}
_UNKNOWN = "value"
"""What stands for a part of a pattern that is only known when the program runs."""
_LENGTHS = (60, 200, 600, 2_000, 6_000)
_NOISE_S = 0.001
_MOST_RATIO = 6.0
_ENDS = ("\x01",)
_CPU_S = 5
_PATIENCE_S = 1.0
"""For all attacks on one pattern together; the short ones come first."""
_LINEAR_S = 0.00000006
_HOPELESS_S = 0.0001
"""For each letter: a linear pattern takes a thousandth of that."""
_LETTERS = "a0 \n\t.-_/\\\"'=:,;<([{A"
_SMALL_BOUND = 300
_REPEATS = (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT)


@dataclass(frozen=True, slots=True)
class Used:
    """One pattern of the product: where it stands, and by which methods, where it only ever starts where a text does."""

    place: str
    pattern: re.Pattern[str]
    anchored: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Slow:
    """A pattern and a text on which four times the length took `ratio` times as long."""

    used: Used
    attack: str
    ratio: float

    def __str__(self) -> str:
        return f"{self.used.place}: {self.used.pattern.pattern[:100]!r} on {self.attack}: {self.ratio:.0f} times"


# Which patterns there are


def patterns_of(package: str) -> list[Used]:
    """Every pattern of a package: what its modules hold, and what its functions give to `re`."""
    modules = [
        package,
        *(
            m.name
            for m in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}.")
        ),
    ]
    loaded = [
        importlib.import_module(name)
        for name in modules
        if not name.endswith("__main__") and ".migrations" not in name  # these run when imported
    ]
    trees = {m: ast.parse(Path(m.__file__ or "").read_text("utf-8")) for m in loaded}
    used = {m.__name__: _methods(tree) for m, tree in trees.items()}
    found: dict[tuple[str, int], Used] = {}
    for module, tree in trees.items():
        for place, pattern, name in itertools.chain(_held(module), _given(module, tree)):
            anchored = (
                frozenset({name} & _ANCHORED)
                if name in _CALLS
                else _anchored(name, module.__name__, used)
            )
            key = (pattern.pattern, pattern.flags)
            known = found.get(key)
            if known is None or (known.anchored and not anchored and ".compile:" not in place):
                found[key] = Used(place, pattern, anchored)
    return list(found.values())


def _methods(tree: ast.AST) -> dict[str, set[str]]:
    """What is called of each name, "" where the name itself goes somewhere else."""
    methods: dict[str, set[str]] = defaultdict(set)
    called = set()
    on_texts = {  # `habit.split(",")` splits a text, `_COMMA.split(habit)` by a pattern
        id(node.func)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and (not node.args or isinstance(node.args[0], ast.Constant))
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in _CALLS:
            called.add(id(node.value))
            if not (node.attr == "split" and id(node) in on_texts):
                methods[_name(node.value)].add(node.attr)
    for node in ast.walk(tree):
        is_read = isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)
        if is_read and id(node) not in called:
            methods[_name(node)].add("")
    return methods


def _anchored(name: str, module: str, used: dict[str, dict[str, set[str]]]) -> frozenset[str]:
    """How a name's patterns are held against a text's start; a table's by the names that stand for its rows."""
    public = not name.startswith("_")
    methods = {
        m for where, names in used.items() if public or where == module for m in names.get(name, ())
    }
    if "" in methods:
        rows = (
            names for where, names in used.items() if where == module or (public and name in names)
        )
        methods |= {
            m
            for names in rows
            for n, called in names.items()
            if n.islower() and n != "re"
            for m in called
        }
        methods.discard("")
    return frozenset(methods if methods <= _ANCHORED else ())


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def _as_text(pattern: re.Pattern[str] | re.Pattern[bytes]) -> re.Pattern[str]:
    """A pattern over bytes as one over text that takes the same steps."""
    if isinstance(pattern.pattern, str):
        return re.compile(pattern.pattern, pattern.flags)
    return re.compile(pattern.pattern.decode("latin-1"), pattern.flags | re.ASCII)


def _held(module: types.ModuleType) -> Iterator[tuple[str, re.Pattern[str], str]]:
    """The patterns that a module's names lead to, through whatever holds them, and the name."""
    for name, value in vars(module).items():
        seen: set[int] = set()
        held = value() if _is_table(value) else value
        waiting = [] if name.startswith("__") else [held]
        while waiting:
            one = waiting.pop()
            if id(one) in seen or isinstance(one, types.ModuleType):
                continue
            seen.add(id(one))
            if isinstance(one, re.Pattern):
                yield f"{module.__name__}.{name}", _as_text(one), name
            elif isinstance(one, type):
                waiting += vars(one).values() if one.__module__ == module.__name__ else ()
            elif isinstance(one, types.FunctionType):
                own = one.__module__ == module.__name__
                waiting += [*(one.__defaults__ or ()), *(one.__closure__ or ())] if own else ()
            elif one is held or _holds(one):
                waiting += gc.get_referents(one)


def _is_table(value: Any) -> bool:
    """Whether it is read when it is first needed."""
    return (
        isinstance(value, functools._lru_cache_wrapper) and not inspect.signature(value).parameters
    )


def _holds(value: object) -> bool:
    return type(value).__module__.partition(".")[0] in {"builtins", "functools", "types", "regreen"}


def _given(module: types.ModuleType, tree: ast.AST) -> Iterator[tuple[str, re.Pattern[str], str]]:
    """The patterns that stand in a call of `re`, and the method, or else the name that they are kept under."""
    chained = {
        id(node.value): node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in _CALLS
    }
    kept = {
        id(inner): _name(node.targets[0] if isinstance(node, ast.Assign) else node.target)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for inner in ast.walk(node.value)
    }
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        if not (
            isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and node.func.attr in _CALLS
        ):
            continue
        text = _evaluated(node.args[0], module)
        flags = [k.value for k in node.keywords if k.arg == "flags"]
        places = {"compile": 1, "sub": 4, "subn": 4, "split": 3}
        flags += node.args[places.get(node.func.attr, 2) :]
        if isinstance(text, str | bytes):
            given = _evaluated(flags[0], module) if flags else 0
            method = node.func.attr
            name = (
                chained.get(id(node)) or kept.get(id(node), "") if method == "compile" else method
            )
            place = f"{module.__name__}.{method}:{node.lineno}"
            yield place, _as_text(re.compile(text, given)), name or method


def _evaluated(node: ast.expr, module: types.ModuleType) -> Any:
    """What an expression is in its module; the parts of it that only a running program knows are one word."""
    try:
        return eval(compile(ast.Expression(node), "?", "eval"), dict(vars(module)))  # noqa: S307  # our own source
    except Exception:  # noqa: BLE001  # names of a function's body
        if isinstance(node, ast.JoinedStr):
            return "".join(str(_evaluated(part, module)) for part in node.values)
        if isinstance(node, ast.FormattedValue):
            return _evaluated(node.value, module)
        if isinstance(node, ast.BinOp):
            parts = [_evaluated(side, module) for side in (node.left, node.right)]
            return "".join(x.decode() if isinstance(x, bytes) else str(x) for x in parts)
        return node.value if isinstance(node, ast.Constant) else _UNKNOWN


# What makes one slow


def is_surely_linear(used: Used) -> bool:
    """Whether the parse tree alone shows it: nothing repeats without a bound, or one thing does after a fixed start."""
    tree = parser.parse(used.pattern.pattern, used.pattern.flags & ~re.DEBUG)
    return _open_repeats(tree) <= (1 if used.anchored else 0)


def _open_repeats(tree: Any, times: int = 1) -> int:
    count = 0
    for op, value in tree:
        if op in _REPEATS:
            is_open = value[1] is ops.MAXREPEAT or value[1] > _SMALL_BOUND
            inner = 2 if is_open or value[1] > 1 else times
            count += (times if is_open else 0) + _open_repeats(value[2], inner)
        for part in _inner(op, value):
            count += _open_repeats(part, times)
    return count


def attacks_on(pattern: re.Pattern[str]) -> Iterator[tuple[str, str, str]]:
    """Each attack as what stands before, what is repeated, and what stands behind."""
    tree = parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    letters = _letters(tree)
    made: set[tuple[str, str, str]] = set()
    for before, bodies in _repeats(tree, "", letters):
        for body in bodies:
            ways = [
                ("", body),
                (before, body),
                ("", before + body),
                ("", before),
                (before + body, before),
            ]
            for (start, pumped), end in itertools.product(ways, _ENDS):
                if pumped:
                    made.add((start[:200], pumped[:200], end))
        made |= {(before + a, b, "\x01") for a, b in itertools.permutations(bodies[:3], 2)}
    yield from sorted(made, key=lambda one: (len(one[1]), one))


def _repeats(tree: Any, before: str, letters: str) -> Iterator[tuple[str, list[str]]]:
    """Each repetition that has no small bound: a text that leads to it, and texts that it takes."""
    for op, value in tree:
        if op in _REPEATS:
            least, most, body = value
            if most is ops.MAXREPEAT or most > _SMALL_BOUND:
                yield before, _bodies(body, letters)
            yield from _repeats(body, before, letters)
            before += _sample(body) * max(least, 0)
        else:
            for inner in _inner(op, value):
                yield from _repeats(inner, before, letters)
            before += _sample([(op, value)])


def _bodies(body: Any, letters: str) -> list[str]:
    """What may be pumped: the body's shortest text, and each of the letters that it takes."""
    found = [_sample(body)]
    if len(body) == 1 and body[0][0] in {ops.IN, ops.ANY, ops.NOT_LITERAL, ops.LITERAL}:
        found += [letter for letter in letters if _takes(body[0], letter)]
    else:
        for op, value in body:
            if op in _REPEATS and len(value[2]) == 1:
                found += [letter for letter in letters if _takes(value[2][0], letter)][:4]
    return list(dict.fromkeys(one for one in found if one))[:14]


def _letters(tree: Any) -> str:
    """The letters that the pattern itself names, then common ones."""
    named: dict[str, None] = {}

    def walk(part: Any) -> None:
        for op, value in part:
            if op in {ops.LITERAL, ops.NOT_LITERAL}:
                named[chr(value)] = None
            elif op is ops.IN:
                walk([item for item in value if item[0] is ops.LITERAL])
            elif op in _REPEATS:
                walk(value[2])
            for inner in _inner(op, value):
                walk(inner)

    walk(tree)
    return "".join(dict.fromkeys([*_LETTERS[:8], *list(named)[:25], *_LETTERS]))


def _inner(op: Any, value: Any) -> Any:
    if op is ops.SUBPATTERN:
        return [value[-1]]
    if op is ops.BRANCH:
        return value[1]
    if op in {ops.ASSERT, ops.ASSERT_NOT}:
        return [value[1]]
    if op is ops.ATOMIC_GROUP:
        return [value]
    if op is ops.GROUPREF_EXISTS:
        return [part for part in value[1:] if part]
    return []


def _takes(item: Any, letter: str) -> bool:
    op, value = item
    if op is ops.ANY:
        return letter != "\n"
    if op is ops.LITERAL:
        return chr(value) == letter
    if op is ops.NOT_LITERAL:
        return chr(value) != letter
    if op is not ops.IN:
        return False
    refused = bool(value) and value[0][0] is ops.NEGATE
    return any(_in_class(part, letter) for part in value) != refused


def _in_class(part: Any, letter: str) -> bool:
    op, value = part
    if op is ops.LITERAL:
        return chr(value) == letter
    if op is ops.RANGE:
        return bool(value[0] <= ord(letter) <= value[1])
    if op is ops.CATEGORY:
        code = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}[str(value).rpartition("_")[2]]
        return bool(re.match(code, letter)) != ("_NOT_" in str(value))
    return False


def _sample(tree: Any) -> str:
    """A short text that the tree takes, as far as that can be told without its assertions."""
    text = ""
    for op, value in tree:
        if op is ops.LITERAL:
            text += chr(value)
        elif op in {ops.ANY, ops.NOT_LITERAL, ops.IN}:
            text += next((c for c in "a0 _\n\t-.=\"'/:" if _takes((op, value), c)), _first(value))
        elif op in _REPEATS:
            text += _sample(value[2]) * value[0]
        elif op is ops.BRANCH:
            text += min((_sample(branch) for branch in value[1]), key=len)
        elif op in {ops.SUBPATTERN, ops.ATOMIC_GROUP}:
            text += "".join(_sample(inner) for inner in _inner(op, value))
    return text


def _first(items: Any) -> str:
    for op, value in items if isinstance(items, list) else ():
        if op is ops.LITERAL:
            return chr(value)
        if op is ops.RANGE:
            return chr(value[0])
    return "a"


# How slow


def slow_among(used: Iterable[Used], processes: int = 2) -> list[Slow]:
    """The patterns that do not run in linear time, each with the worst text found for it."""
    waiting = [one for one in used if not is_surely_linear(one)]
    context = multiprocessing.get_context("fork")
    found: list[Slow] = []
    running: list[tuple[Any, Connection, list[Used]]] = []
    while waiting or running:
        while waiting and len(running) < processes:
            share, waiting = waiting[:10], waiting[10:]
            ours, theirs = context.Pipe(duplex=False)
            child = context.Process(target=_judge, args=(share, theirs))
            child.start()
            theirs.close()
            running.append((child, ours, share))
        child, ours, share = running.pop(0)
        for one in list(share):
            try:
                answer: Slow | None = ours.recv()
            except EOFError:  # the processor time of the child is used up
                found.append(Slow(one, "a text of some kilobytes", float("inf")))
                share.remove(one)
                waiting += share
                break
            share.remove(one)
            if answer is not None:
                found.append(answer)
        child.join()
    return found


def _judge(share: list[Used], answers: Connection) -> None:
    for one in share:
        spent = int(time.process_time())
        resource.setrlimit(resource.RLIMIT_CPU, (spent + _CPU_S, resource.RLIM_INFINITY))
        answers.send(slowest(one))


def slowest(used: Used) -> Slow | None:
    """The first attack that costs over six times as much for four times the text; None where none does."""
    until = time.thread_time() + _PATIENCE_S
    for start, pumped, end in attacks_on(used.pattern):
        if time.thread_time() > until:
            break
        attack = f"{start!r} + {pumped!r} * n + {end!r}"
        for length in _LENGTHS:  # what explodes is met early, what is quick is done early
            seconds = _seconds(used, start, pumped, end, length)
            if seconds > max(_HOPELESS_S * length, 10 * _NOISE_S):
                return Slow(used, f"{attack} of {length}", float("inf"))
            if length >= 600 and seconds < _LINEAR_S * length:
                break
            if seconds < _NOISE_S or (length < _LENGTHS[-1] and seconds < 20 * _NOISE_S):
                continue
            ratio = _ratio(used, start, pumped, end, length)
            if ratio > _MOST_RATIO:
                return Slow(used, attack, ratio)
    return None


def _ratio(used: Used, start: str, pumped: str, end: str, length: int) -> float:
    """The lowest of some ratios, so that one disturbance is not taken for growth."""
    best = float("inf")
    for _ in range(4):
        small = max(_seconds(used, start, pumped, end, length) for _ in range(2))
        best = min(best, _seconds(used, start, pumped, end, 4 * length) / small)
        if best <= _MOST_RATIO:
            break
    return best


def _seconds(used: Used, start: str, pumped: str, end: str, length: int) -> float:
    text = start + pumped * (length // len(pumped)) + end
    began = time.thread_time()  # the process's clock is coarse where its time is limited
    if "fullmatch" in used.anchored:
        used.pattern.fullmatch(text)
    elif used.anchored:
        used.pattern.match(text)
    else:
        for _ in used.pattern.finditer(text):
            pass
    return time.thread_time() - began
