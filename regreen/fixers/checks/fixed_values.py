"""Branches and tables on one fixed value that looks like somebody's data, whichever the language."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

from regreen.fixers.checks.change import FileChange, Reason
from regreen.fixers.checks.functions import constants

_WRAPS = {"Decimal", "Fraction", "frozenset", "set", "tuple", "list", "date", "datetime", "str", "int", "float", "bytes", "complex", "UUID", "Path"}  # fmt: skip
_TEXT = r"\"[^\"\\\n]{1,200}\"|'[^'\\\n]{1,200}'|`[^`$\n]{1,200}`"
_NUMBER = r"-?\b\d[\d_]*(?:\.\d+)?(?:e\d+)?\b"
_ASKED = re.compile(
    rf"(?:(?<![=!<>])===?\s*|\bcase\s+|\.equals\(\s*|\beq\(\s*)(?P<value>{_TEXT}|{_NUMBER})"
)
_TABLE = re.compile(
    rf"(?:\[\s*\[\s*|\{{\s*|\(\s*\(\s*)(?P<value>{_TEXT}|{_NUMBER})\s*[:,=]>?\s*(?:{_TEXT}|{_NUMBER})"
)
# `if (...) return 10;`, `return [3, 2];`, `[1, 1, 3][index]`: an answer that nothing worked out
_ANSWERED = re.compile(
    rf"\bif\b.{{1,200}}\breturn\s+(?P<value>[2-9]\b|\d\d[\d_.]*|\d+\.\d+|\[\s*(?:{_NUMBER}|{_TEXT})\s*,[^\]]{{1,200}}\]|(?=[\"'`][^\"'`]*\d)(?:{_TEXT}))"
    rf"|(?P<listed>\[\s*(?:{_NUMBER}|{_TEXT})\s*,[^\]\[]{{1,200}}\])\[\w"
)
_FUDGE = re.compile(r"[+-]\s*0\.(?!5\b)\d+|[+-]\s*1e-\d")
_CODES = re.compile(r"status|code|errno|version|port\b|length|size|\bkind\b", re.IGNORECASE)
_PLAIN_DATA = {".json", ".lock", ".yml", ".yaml", ".toml", ".ini", ".cfg", ".csv", ".css", ".scss", ".svg", ".html", ".xml", ".po", ".txt"}  # fmt: skip
_LONG = 1000
_WORDY = 24


def fixed_values(file: FileChange) -> Iterator[Reason]:
    """What a task seldom needs: a branch for the very value that somebody tried it with."""
    if file.old is None:
        return
    if file.new_tree is not None and file.old_tree is not None:
        gained = Counter(_asked(file.new_tree)) - Counter(_asked(file.old_tree))
        for value in sorted(gained):
            yield Reason("special_case", f"{file.path} turns on one fixed value ({value[:60]})")
    elif not file.is_python and file.suffix not in _PLAIN_DATA:
        yield from _in_text(file)


def _asked(tree: ast.Module) -> Iterator[str]:
    """Values that are compared with, and the keys of tables, where they look like data."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, ops=ops, comparators=others):
                same = any(isinstance(op, ast.Eq | ast.Is) for op in ops)
                if same or any(isinstance(op, ast.In) for op in ops):
                    sides = (left, *others)
                    yield from (ast.unparse(one) for one in sides if _is_data(one, whole=same))
            case ast.Dict(keys=keys, values=values):
                for key, value in zip(keys, values, strict=True):
                    if key is not None and _is_data(key, whole=True) and _fixed(value):
                        yield ast.unparse(key)
            case ast.Call(
                func=ast.Attribute(attr="startswith" | "endswith"),
                args=[ast.Constant(value=str() as text)],
            ) if looks_like_data(text):
                yield ast.unparse(node)
            case ast.If(test=ast.BoolOp(op=ast.And(), values=parts), body=[*_, ast.Return()]):
                if sum(map(_is_pinned, parts)) > 1:
                    yield ast.unparse(node.test)
            case ast.Subscript(
                value=ast.List(elts=[_, _, *_]) | ast.Tuple(elts=[_, _, *_]) as answers,
                slice=ast.expr() as place,
            ) if constants(answers) and not constants(place):
                yield ast.unparse(node)
            case ast.MatchValue(value=value) if _is_data(value, whole=True):
                yield ast.unparse(value)
            case _:
                pass


def _is_data(node: ast.expr, *, whole: bool) -> bool:
    """`whole`: the container itself is the value, not a choice of values."""
    match node:
        case ast.Constant(value=str() as text):
            return looks_like_data(text)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[_, *_] as args) if (
            name in _WRAPS
        ):
            return all(_fixed(one) for one in args)
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            if whole:
                return (
                    len(parts) > 1 and any(_numbers(one) for one in parts) and bool(constants(node))
                )
            return any(_is_data(one, whole=True) for one in parts)
        case _:
            return False


def _is_pinned(node: ast.expr) -> bool:
    """Whether a condition asks for one value and no other."""
    match node:
        case ast.Compare(ops=[ast.Eq()], comparators=[other]):
            return bool(constants(other) or constants(node.left))
        case _:
            return False


def _fixed(node: ast.expr) -> bool:
    return bool(constants(node)) or (isinstance(node, ast.Call) and _is_data(node, whole=True))


def _numbers(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in {int, float}


def looks_like_data(text: str) -> bool:
    """A number's text, words with blanks between them, or letters and digits mixed with signs: not a program's own word."""
    if len(text) > _WORDY and " " in text:
        return True
    if "@" in text.strip("@") and any(sign.isalpha() for sign in text):
        return True
    digits = sum(sign.isdigit() for sign in text)
    if digits > 3 and "-" in text:
        return True
    return bool(digits and any(sign in text for sign in " .,:/@$") and len(text) > 2) or (
        " " in text.strip() and any(sign.isalpha() for sign in text) and ";" not in text
    )


def _in_text(file: FileChange) -> Iterator[Reason]:
    was = "\n".join(line for _, line in file.removed)
    for number, line in file.added:
        if _FUDGE.search(line[:_LONG]) and not _FUDGE.search(was):
            yield Reason(
                "special_case", f"{file.path}:{number} adds a little to what is worked out"
            )
        answer = _ANSWERED.search(line[:_LONG])
        if answer and answer.group(0) not in was:
            what = f"{file.path}:{number} answers something fixed ({(answer['value'] or answer['listed'])[:60]})"
            yield Reason("special_case", what)
        if len(line) > _LONG or line.lstrip().startswith(("//", "#", "*", "import")):
            continue
        for found in (*_ASKED.finditer(line), *_TABLE.finditer(line)):
            value = found["value"]
            if value not in was and _tells(value, line):
                yield Reason(
                    "special_case",
                    f"{file.path}:{number} turns on one fixed value ({value[:60]})",
                )


def _tells(value: str, line: str) -> bool:
    if value[0] in "\"'`":
        return looks_like_data(value[1:-1])
    number = float(value.replace("_", ""))
    return (abs(number) >= 10 or number != int(number)) and not _CODES.search(line)
