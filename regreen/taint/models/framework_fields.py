"""What a framework makes of a declared field before a handler sees it: a number, one of a few choices, a checked text."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from regreen.code.python_calls import parse_syntax_tree

PLAIN_TYPES = frozenset(
    {"int", "float", "bool", "UUID", "UUID1", "UUID3", "UUID4", "UUID5", "date", "datetime", "time", "Decimal", "timedelta",
     "Session", "AsyncSession", "BackgroundTasks", "Response", "IPv4Address", "IPv6Address", "IPvAnyAddress", "Enum",
     "conint", "confloat", "condecimal", "condate", "PositiveInt", "NegativeInt", "NonNegativeInt", "NonPositiveInt",
     "PositiveFloat", "NegativeFloat", "NonNegativeFloat", "NonPositiveFloat", "FiniteFloat", "StrictInt", "StrictBool",
     "StrictFloat", "AwareDatetime", "NaiveDatetime", "PastDate", "FutureDate", "ByteSize", "Literal"}
)  # fmt: skip
_WRAPPER_TYPES = frozenset(
    {"Optional", "Union", "list", "List", "set", "Set", "tuple", "Tuple", "frozenset", "Sequence"}
)
_PATTERN_KEYWORDS = frozenset({"pattern", "regex"})


def is_plain(annotation: ast.expr) -> bool:
    """Whether only numbers, dates, identifiers and listed choices can stand here."""
    kinds = list(_type_names(annotation))
    return bool(kinds) and all(kind in PLAIN_TYPES for kind in kinds)


def _type_names(node: ast.expr) -> Iterator[str]:
    """The names of the types that a value may have, without what wraps or constrains them."""
    match node:
        case ast.Constant(value=None):
            return
        case ast.Constant(value=str(text)):
            try:
                body = parse_syntax_tree(text.strip()).body
                yield from _type_names(body[0].value) if isinstance(body[0], ast.Expr) else ("?",)
            except (SyntaxError, ValueError, IndexError):
                yield "?"
        case ast.Name(id="None"):
            return
        case ast.Name() | ast.Attribute():
            yield _last_name(node)
        case ast.BinOp(op=ast.BitOr()):
            yield from _type_names(node.left)
            yield from _type_names(node.right)
        case ast.Call():
            yield _last_name(node.func)
        case ast.Subscript():
            yield from _subscript_type_names(node)
        case _:
            yield "?"


def _subscript_type_names(node: ast.Subscript) -> Iterator[str]:
    name = _last_name(node.value)
    inside = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if name == "Annotated":
        yield from _type_names(inside[0])
    elif name == "Literal":
        yield name
    elif name in _WRAPPER_TYPES:
        for item in inside:
            if not (isinstance(item, ast.Constant) and item.value is ...):
                yield from _type_names(item)
    else:
        yield "?"


def _last_name(node: ast.expr) -> str:
    return ast.unparse(node).rpartition(".")[2]


def find_pattern(annotation: ast.expr | None, default: ast.expr | None) -> str | None:
    """The regular expression that a text is matched against: `constr(pattern=...)`, `Field(pattern=...)`."""
    for place in (annotation, default):
        for node in ast.walk(place) if place is not None else ():
            if not isinstance(node, ast.Call):
                continue
            for keyword in node.keywords:
                if keyword.arg in _PATTERN_KEYWORDS and isinstance(keyword.value, ast.Constant):
                    return keyword.value.value if isinstance(keyword.value.value, str) else None
    return None


def is_choice(cls: ast.ClassDef) -> bool:
    """Whether a value of this class can only be one of its own members."""
    bases = {_last_name(base) for base in cls.bases}
    return bool(bases & {"Enum", "StrEnum", "IntEnum", "TextChoices", "IntegerChoices"})


def list_model_fields(cls: ast.ClassDef) -> Iterator[tuple[str, ast.expr, ast.expr | None]]:
    """The fields of a model: name, annotation, default."""
    for item in cls.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            yield item.target.id, item.annotation, item.value
