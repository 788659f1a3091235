"""Expressions inside a plan: what is put in, what is left for the run, what is taken to have held."""

from __future__ import annotations

from collections.abc import Mapping

from regreen.fixers.expressions import (
    UNKNOWN,
    Binary,
    Call,
    Index,
    Literal,
    Name,
    Node,
    Not,
    Value,
    condition,
    decide,
    fill,
    reduce,
    show,
    split,
    to_string,
    truthy,
    value_of,
)
from regreen.fixers.workflow_yaml import WorkflowError

Context = dict[str, Value]
Mappings = dict[str, Value]

_AT_RUN_TIME = frozenset({"steps", "env", "job"})


def text_of(value: Value, context: Context, *, keep: bool = False) -> str:
    """Text with what is known put in. With `keep`, what the run will know stays `${{ }}`; the rest is empty."""
    if not isinstance(value, str):
        return to_string(value)
    if "${{" not in value:
        return value
    parts = []
    for part in fill(value, context):
        if isinstance(part, str):
            parts.append(part)
        elif keep and (_runtime(part) or from_other_jobs(part)):
            parts.append("${{ " + show(_emptied(part)) + " }}")
        else:
            known = _folded(_emptied(part))
            parts.append(to_string(known.value) if isinstance(known, Literal) else "")
    return "".join(parts)


def _emptied(node: Node) -> Node:
    """An expression in which what will never be known here (secrets, variables) is empty."""
    match node:
        case Index() if not _runtime(node) and not from_other_jobs(node):
            return Literal(None)
        case Index(of, key):
            return Index(of, key)
        case Not(of):
            return _folded(Not(_emptied(of)))
        case Binary(operator, left, right):
            return _folded(Binary(operator, _emptied(left), _emptied(right)))
        case Call(name, arguments):
            return _folded(Call(name, tuple(_emptied(one) for one in arguments)))
        case Name() | Literal():
            return node


def _folded(node: Node) -> Node:
    """Work out what became known; contexts stay as they are."""
    return reduce(node, _EVERYTHING_UNKNOWN)


_EVERYTHING_UNKNOWN: Context = dict.fromkeys(
    (
        "github",
        "env",
        "vars",
        "secrets",
        "inputs",
        "needs",
        "job",
        "runner",
        "steps",
        "matrix",
        "strategy",
        "jobs",
    ),
    UNKNOWN,
)


def _runtime(node: Node) -> bool:
    """Whether the run here will know a part of this: outputs of steps, the environment, how it went so far."""
    match node:
        case Name(name):
            return name.lower() in _AT_RUN_TIME
        case Index(of, key):
            return _runtime(of) or (key is not None and _runtime(key))
        case Not(of):
            return _runtime(of)
        case Binary(_, left, right):
            return _runtime(left) or _runtime(right)
        case Call(name, arguments):
            return name in {"success", "failure", "always", "cancelled"} or any(
                _runtime(one) for one in arguments
            )
        case Literal():
            return False


def asked(asked: Value, context: Context) -> Node:
    """A step's condition; what depends on GitHub alone is taken to have held, for the run did happen."""
    known = asked if isinstance(asked, (str, bool, float)) else None
    rest = condition(known, {**context, "always()": True, "cancelled()": False})
    return decide(_assumed(rest))


def _assumed(node: Node) -> Node:
    """Three values to two: a comparison nobody here can decide is taken as true."""
    match node:
        case Binary(operator, left, right) if operator in {"&&", "||"}:
            return _folded(Binary(operator, _assumed(left), _assumed(right)))
        case Binary() | Index() | Name() | Call() if not _runtime(node):
            return _of_secrets(node)
        case Not(of) if not _runtime(of):
            return Literal(True)
        case Not(of):
            return _folded(Not(_assumed(of)))
        case _:
            return node


def _of_secrets(node: Node) -> Node:
    """There are no secrets here, so what asks for one is decided; anything else is taken to have held."""
    if "secrets." in show(node) and isinstance(known := _folded(_emptied(node)), Literal):
        return Literal(truthy(known.value))
    return Literal(True)


def joined(gate: Node, asked: Node) -> Node:
    """A composite action's steps run where the action runs."""
    plain = Call("success", ())
    if gate == plain:
        return asked
    return gate if asked == plain else decide(Binary("&&", gate, asked))


def is_false(node: Node) -> bool:
    """Whether a condition is known not to hold."""
    return isinstance(node, Literal) and not truthy(node.value)


def environment(declared: Value, context: Context, known: Mapping[str, str]) -> dict[str, str]:
    """A level's `env:` with what is known put in; what the run will know stays an expression."""
    values = {}
    scope: Context = {**context, "env": dict(known) if known else context.get("env", {})}
    if isinstance(declared, str):
        declared = deep_value(declared, context)
    for name, value in mapping(declared).items():
        values[name] = text_of(value, scope, keep=True)
    return values


def deep_value(value: Value, context: Context) -> Value:
    """A value of the document, evaluated through and through."""
    if isinstance(value, str) and "${{" in value:
        return value_of(value, context)
    if isinstance(value, list):
        return [deep_value(one, context) for one in value]
    if isinstance(value, dict):
        return {key: deep_value(one, context) for key, one in value.items()}
    return value


def is_dynamic(matrix: Value) -> bool:
    """Whether another job computes the matrix."""
    if matrix is UNKNOWN:
        return True
    if isinstance(matrix, dict):
        return any(one is UNKNOWN for one in matrix.values())
    return False


def mapping(value: Value) -> Mappings:
    """The mapping, or an empty one where there is none."""
    return value if isinstance(value, dict) else {}


def need_mapping(value: Value, what: str) -> Mappings:
    """The mapping.

    Raises:
        WorkflowError: it is something else.
    """
    if not isinstance(value, dict):
        message = f"{what} must be a mapping"
        raise WorkflowError(message)
    return value


def unresolved(script: str) -> list[str]:
    """Names in a script whose values come from another job, so that even the run here will not know them."""
    if "${{" not in script:
        return []
    return sorted({name for part in _nodes(script) for name in from_other_jobs(part)})


def _nodes(text: str) -> list[Node]:
    return [part for part in split(text) if not isinstance(part, str)]


def from_other_jobs(node: Node) -> set[str]:
    """Names in an expression that come from another job."""
    match node:
        case Index(of, key):
            root: Node = node
            while isinstance(root, Index):
                root = root.of
            if isinstance(root, Name):
                return {show(node)} if root.name.lower() in {"needs", "jobs"} else set()
            return from_other_jobs(of) | (from_other_jobs(key) if key is not None else set())
        case Not(of):
            return from_other_jobs(of)
        case Binary(_, left, right):
            return from_other_jobs(left) | from_other_jobs(right)
        case Call(_, arguments):
            return {name for one in arguments for name in from_other_jobs(one)}
        case Literal() | Name():
            return set()
