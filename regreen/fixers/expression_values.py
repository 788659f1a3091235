"""How GitHub's values turn into truth, numbers and text, and how they compare."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from regreen.errors import UserError


class ExpressionError(UserError):
    """An expression that GitHub would refuse too; the text says where."""


class EvaluationFailed(ExpressionError):
    """A well-formed expression that refuses its values, so that only the job it stands in fails."""


class _Unknown:
    """The value that only the run itself knows."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown()

Value: TypeAlias = "bool | float | str | list[Value] | dict[str, Value] | _Unknown | None"
Context: TypeAlias = Mapping[str, Value]


def truthy(value: Value) -> bool:
    """False for false, 0, '', null and NaN; true for all else."""
    if isinstance(value, float):
        return value != 0 and not math.isnan(value)
    if isinstance(value, (list, dict)):
        return True
    return bool(value)


def to_number(value: Value) -> float:  # noqa: PLR0911 - one line a kind of value
    """GitHub's coercion to a number; NaN where there is none."""
    if value is None:
        return 0.0
    if isinstance(value, (bool, int, float)):
        return float(value)
    if not isinstance(value, str):
        return math.nan
    text = value.strip()
    if not text:
        return 0.0
    for prefix, base, digits in (("0x", 16, r"[0-9a-fA-F]+"), ("0o", 8, r"[0-7]+")):
        if text.startswith(prefix) and re.fullmatch(digits, text[2:]):
            return float(_signed_32(int(text[2:30], base)))
    if re.fullmatch(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?|[+-]?Infinity", text):
        return float(text)
    return math.nan


def _signed_32(number: int) -> int:
    """Hexadecimal and octal numbers are 32 bits wide and have a sign."""
    number &= 0xFFFFFFFF
    return number - 0x100000000 if number >= 0x80000000 else number


def to_string(value: Value) -> str:
    """A value as it appears inside text."""
    if value is None or value is UNKNOWN:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return _number_text(float(value))
    if isinstance(value, str):
        return value
    return "Array" if isinstance(value, list) else "Object"


def _number_text(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0:
        return "0"
    text = f"{number:.15g}"
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa}E{int(exponent):+03d}" if e else mantissa


def equal(left: Value, right: Value) -> bool:
    """GitHub's loose equality: strings without case, other types by number, arrays and objects by identity."""
    if isinstance(left, str) and isinstance(right, str):
        return folded(left) == folded(right)
    if isinstance(left, (list, dict)) or isinstance(right, (list, dict)):
        return left is right
    if left is None and right is None:
        return True
    return to_number(left) == to_number(right)


def folded(text: str) -> str:
    """Text without case, letter by letter as .NET's ordinal comparison does it."""
    if text.isascii():
        return text.upper()
    return "".join(
        up if len(up := one.upper()) == 1 and not (one > "\x7f" > up) else one for one in text
    )


def _less(left: Value, right: Value) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        return folded(left) < folded(right)
    return to_number(left) < to_number(right)


def _same_or(compare: Callable[[Value, Value], bool], left: Value, right: Value) -> bool:
    if isinstance(left, (list, dict)) or isinstance(right, (list, dict)):
        return left is right
    return compare(left, right) or equal(left, right)


COMPARE: Final[dict[str, Callable[[Value, Value], bool]]] = {
    "==": equal,
    "!=": lambda a, b: not equal(a, b),
    "<": _less,
    "<=": lambda a, b: _same_or(_less, a, b),
    ">": lambda a, b: _less(b, a),
    ">=": lambda a, b: _same_or(lambda x, y: _less(y, x), a, b),
}
