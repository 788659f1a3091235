"""Expressions in a plan: which are evaluated, which are left for the run, which are assumed to be true."""

from __future__ import annotations

from collections.abc import Mapping

from regreen.actions.expressions.evaluation import (
    UNKNOWN,
    BinaryOperation,
    ContextName,
    FunctionCall,
    IndexAccess,
    LiteralValue,
    Negation,
    Node,
    Value,
    evaluate_scalar,
    fill_template,
    format_node,
    is_truthy,
    reduce_condition,
    reduce_node,
    simplify_condition,
    split_template,
    to_string,
)
from regreen.code.workflow_document import WorkflowError

PlanContext = dict[str, Value]
YamlMapping = dict[str, Value]

_AT_RUN_TIME = frozenset({"steps", "env", "job"})


def fill_known_values(value: Value, context: PlanContext, *, keep_runtime: bool = False) -> str:
    """Text with known values filled in. With `keep_runtime`, what the run will know stays `${{ }}`; the rest is empty."""
    if not isinstance(value, str):
        return to_string(value)
    if "${{" not in value:
        return value
    parts = []
    for part in fill_template(value, context):
        if isinstance(part, str):
            parts.append(part)
        elif keep_runtime and (_is_known_at_run_time(part) or find_names_of_other_jobs(part)):
            parts.append("${{ " + format_node(_replace_unknowable_by_empty(part)) + " }}")
        else:
            known = _fold_known(_replace_unknowable_by_empty(part))
            parts.append(to_string(known.value) if isinstance(known, LiteralValue) else "")
    return "".join(parts)


def _replace_unknowable_by_empty(node: Node) -> Node:
    """An expression in which what will never be known here (secrets, variables) is empty."""
    match node:
        case IndexAccess() if not _is_known_at_run_time(node) and not find_names_of_other_jobs(
            node
        ):
            return LiteralValue(None)
        case IndexAccess(of, key):
            return IndexAccess(of, key)
        case Negation(of):
            return _fold_known(Negation(_replace_unknowable_by_empty(of)))
        case BinaryOperation(operator, left, right):
            return _fold_known(
                BinaryOperation(
                    operator,
                    _replace_unknowable_by_empty(left),
                    _replace_unknowable_by_empty(right),
                )
            )
        case FunctionCall(name, arguments):
            return _fold_known(
                FunctionCall(
                    name, tuple(_replace_unknowable_by_empty(argument) for argument in arguments)
                )
            )
        case ContextName() | LiteralValue():
            return node


def _fold_known(node: Node) -> Node:
    """Work out what became known; contexts stay as they are."""
    return reduce_node(node, _EVERYTHING_UNKNOWN)


_EVERYTHING_UNKNOWN: PlanContext = dict.fromkeys(
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


def _is_known_at_run_time(node: Node) -> bool:
    """Whether the run here will know a part of this: outputs of steps, the environment, how it went so far."""
    match node:
        case ContextName(name):
            return name.lower() in _AT_RUN_TIME
        case IndexAccess(of, key):
            return _is_known_at_run_time(of) or (key is not None and _is_known_at_run_time(key))
        case Negation(of):
            return _is_known_at_run_time(of)
        case BinaryOperation(_, left, right):
            return _is_known_at_run_time(left) or _is_known_at_run_time(right)
        case FunctionCall(name, arguments):
            return name in {"success", "failure", "always", "cancelled"} or any(
                _is_known_at_run_time(argument) for argument in arguments
            )
        case LiteralValue():
            return False


def reduce_step_condition(asked: Value, context: PlanContext) -> Node:
    """A step's condition; what depends on GitHub alone is assumed to be true, because the run took place."""
    known = asked if isinstance(asked, (str, bool, float)) else None
    rest = reduce_condition(known, {**context, "always()": True, "cancelled()": False})
    return simplify_condition(_assume_undecided_is_true(rest))


def _assume_undecided_is_true(node: Node) -> Node:
    """Maps three values to two: an undecidable comparison counts as true."""
    match node:
        case BinaryOperation(operator, left, right) if operator in {"&&", "||"}:
            return _fold_known(
                BinaryOperation(
                    operator, _assume_undecided_is_true(left), _assume_undecided_is_true(right)
                )
            )
        case BinaryOperation() | IndexAccess() | ContextName() | FunctionCall() if (
            not _is_known_at_run_time(node)
        ):
            return _assume_no_secrets(node)
        case Negation(of) if not _is_known_at_run_time(of):
            return LiteralValue(True)
        case Negation(of):
            return _fold_known(Negation(_assume_undecided_is_true(of)))
        case _:
            return node


def _assume_no_secrets(node: Node) -> Node:
    """Secrets are empty here, which decides conditions on them; everything else is assumed to be true."""
    if "secrets." in format_node(node) and isinstance(
        known := _fold_known(_replace_unknowable_by_empty(node)), LiteralValue
    ):
        return LiteralValue(is_truthy(known.value))
    return LiteralValue(True)


def join_conditions(gate: Node, asked: Node) -> Node:
    """A composite action's steps run where the action runs."""
    plain = FunctionCall("success", ())
    if gate == plain:
        return asked
    return gate if asked == plain else simplify_condition(BinaryOperation("&&", gate, asked))


def is_false(node: Node) -> bool:
    """Whether a condition is known not to hold."""
    return isinstance(node, LiteralValue) and not is_truthy(node.value)


def fill_environment(
    declared: Value, context: PlanContext, known: Mapping[str, str]
) -> dict[str, str]:
    """A level's `env:` with known values filled in; what the run will know stays an expression."""
    values = {}
    scope: PlanContext = {**context, "env": dict(known) if known else context.get("env", {})}
    if isinstance(declared, str):
        declared = evaluate_nested(declared, context)
    for name, value in as_mapping(declared).items():
        values[name] = fill_known_values(value, scope, keep_runtime=True)
    return values


def evaluate_nested(value: Value, context: PlanContext) -> Value:
    """A value of the document, evaluated through and through."""
    if isinstance(value, str) and "${{" in value:
        return evaluate_scalar(value, context)
    if isinstance(value, list):
        return [evaluate_nested(item, context) for item in value]
    if isinstance(value, dict):
        return {key: evaluate_nested(item, context) for key, item in value.items()}
    return value


def is_computed_matrix(matrix: Value) -> bool:
    """Whether another job computes the matrix."""
    if matrix is UNKNOWN:
        return True
    if isinstance(matrix, dict):
        return any(cell is UNKNOWN for cell in matrix.values())
    return False


def as_mapping(value: Value) -> YamlMapping:
    """The mapping, or an empty one where there is none."""
    return value if isinstance(value, dict) else {}


def require_mapping(value: Value, what: str) -> YamlMapping:
    """The mapping.

    Raises:
        WorkflowError: it is something else.
    """
    if not isinstance(value, dict):
        message = f"{what} must be a mapping"
        raise WorkflowError(message)
    return value


def find_names_from_other_jobs(script: str) -> list[str]:
    """Names in a script whose values come from another job, so that even the run here will not know them."""
    if "${{" not in script:
        return []
    return sorted(
        {name for part in _expression_nodes(script) for name in find_names_of_other_jobs(part)}
    )


def _expression_nodes(text: str) -> list[Node]:
    return [part for part in split_template(text) if not isinstance(part, str)]


def find_names_of_other_jobs(node: Node) -> set[str]:
    """Names in an expression that come from another job."""
    match node:
        case IndexAccess(of, key):
            root: Node = node
            while isinstance(root, IndexAccess):
                root = root.of
            if isinstance(root, ContextName):
                return {format_node(node)} if root.name.lower() in {"needs", "jobs"} else set()
            return find_names_of_other_jobs(of) | (
                find_names_of_other_jobs(key) if key is not None else set()
            )
        case Negation(of):
            return find_names_of_other_jobs(of)
        case BinaryOperation(_, left, right):
            return find_names_of_other_jobs(left) | find_names_of_other_jobs(right)
        case FunctionCall(_, arguments):
            return {name for argument in arguments for name in find_names_of_other_jobs(argument)}
        case LiteralValue() | ContextName():
            return set()
