"""Whether a predictable number or a broken hash becomes a secret, by where the value goes.

Names count only where they were measured (`benchmarks/security.md`, "Secrets by data flow").
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from regreen.taint.interpreter import AnalysisRun, Interpreter, TaintFlow
from regreen.taint.models import sources
from regreen.taint.values import (
    WEAK_HASH,
    WEAK_RANDOM,
    AbstractValue,
    Key,
    Taint,
    TrailStep,
    make_external,
)

# What is guessed in so few attempts is no secret, however it was drawn: a die, a page, a number to guess in a game.
_MIN_OUTCOMES = 1000
_SECRET_NAME = re.compile(
    r"(?i)(?:^|_)(?:password|passwd|pwd|otp|api_?key|secret(?:_?key)?|(?<!csrf_)token)$"
)
_PASSWORD_NAME = re.compile(r"(?i)(?:^|_)(?:pass(?:word|wd|phrase)?|pwd|pw)(?:_?hash(?:ed)?)?$")
# One field of a request; its address, headers, whole body and uploads are hashed for caches and file names.
_REQUEST_FIELDS = frozenset(
    {
        "form",
        "args",
        "values",
        "json",
        "get_json",
        "POST",
        "GET",
        "query_params",
        "params",
        "forms",
        "query",
        "media",
        "post",
        "data",
    }
)
_FIELD_READERS = ("get_argument()", "get_body_argument()", "get_query_argument()")
# `cache.set(key, value)`
STORING_METHODS = frozenset({"set", "setex", "put", "setdefault"})
_ID_ATTRIBUTES = frozenset({"id", "_id", "pk"})


def make_random_value(
    interp: Interpreter, node: ast.Call, name: str, values: tuple[AbstractValue, ...]
) -> AbstractValue:
    """What a call of `random` gives: predictable, but harmless while it has few possible outcomes."""
    mark = (f"{name}()", interp.frame.path, node.lineno, node.col_offset)
    found = sources.make_untrusted_value(interp, node, WEAK_RANDOM, mark, f"`{name}()`")
    few = (
        frozenset({WEAK_RANDOM}) if _is_guessable(name.rpartition(".")[2], values) else frozenset()
    )
    return replace(found, taints=frozenset(replace(t, safe=few) for t in found.taints))


def _is_guessable(method: str, values: tuple[AbstractValue, ...]) -> bool:
    numbers = [
        only[0]
        for constant in values
        if (only := constant.single_constant) and isinstance(only[0], int)
    ]
    match method:
        case "choice" | "choices" | "sample":
            return True
        case "getrandbits" | "randbytes":
            return bool(numbers) and numbers[0] < (2 if method == "randbytes" else 10)
        case "randint" | "randrange":
            unknown = not numbers or len(numbers) < len(values)
            return unknown or abs(numbers[0] - (*numbers, 0)[1]) < _MIN_OUTCOMES
        case _:
            return False


def compose_draws(value: AbstractValue) -> AbstractValue:
    """A text that several draws make: its outcomes are many."""
    return replace(value, taints=frozenset(_as_unguessable(taint) for taint in value.taints))


def _as_unguessable(taint: Taint) -> Taint:
    return replace(taint, safe=taint.safe - {WEAK_RANDOM}) if taint.origin == WEAK_RANDOM else taint


def _unguessable_taints(taints: Iterable[Taint]) -> frozenset[Taint]:
    return frozenset(t for t in taints if t.origin == WEAK_RANDOM and WEAK_RANDOM not in t.safe)


def is_weak(value: AbstractValue) -> bool:
    """Whether a value must not become a secret."""
    return any(taint.origin in {WEAK_RANDOM, WEAK_HASH} for taint in value.taints)


def report_weak_secrets(
    interp: Interpreter, node: ast.AST, sink: str, taints: Iterable[Taint]
) -> None:
    """Report the predictable numbers and broken hashes that arrive where only a secret belongs."""
    taints = frozenset(taints)
    interp.report_flow(WEAK_RANDOM, node, sink, _unguessable_taints(taints))
    for taint in taints:
        if taint.origin == WEAK_HASH and taint.certain:
            step = TrailStep(interp.frame.path, getattr(node, "lineno", 1), sink)
            _report_broken_hash(
                interp.run, taint.trail.list_steps()[0], sink, (*taint.trail.list_steps(), step)
            )


def _report_broken_hash(
    run: AnalysisRun, made: TrailStep, sink: str, steps: tuple[TrailStep, ...]
) -> None:
    """Report a broken hash where it is made."""
    what = f"{made.what} for {sink}"
    run.flows[WEAK_HASH, made.path, made.line] = TaintFlow(
        WEAK_HASH, made.path, made.line, made.line, what, "code", made.what, True, steps
    )


def check_secret_name(
    interp: Interpreter, node: ast.AST, name: str, taints: frozenset[Taint]
) -> None:
    """Report what is given the name of a secret, or a hash that is given the name of a password."""
    if _SECRET_NAME.search(name):
        report_weak_secrets(interp, node, f"`{name}`", _unguessable_taints(taints))
    if _PASSWORD_NAME.search(name):
        report_weak_secrets(interp, node, f"`{name}`", taints - _unguessable_taints(taints))


def report_broken_password_hash(
    run: AnalysisRun, digest: AbstractValue, given: ast.expr, value: AbstractValue
) -> None:
    """Report a broken hash of a password: by its source, its name, or as one field of a request."""
    field = next((t for t in value.taints if t.certain and _is_request_field(t)), None)
    typed = any(name.startswith("getpass.getpass()") for name in value.external_names())
    for taint in digest.taints:
        made = taint.trail.list_steps()[0]
        if taint.origin != WEAK_HASH:
            continue
        if field is not None:
            _report_broken_hash(run, made, "what was sent", (*field.trail.list_steps(), made))
        elif typed or any(_PASSWORD_NAME.search(name) for name in _names_in_expression(given)):
            _report_broken_hash(run, made, "a password", (made,))


def _is_request_field(taint: Taint) -> bool:
    source, part = (*taint.mark, "")[:2]
    if isinstance(source, str) and source.endswith(_FIELD_READERS):
        return True
    return len(taint.mark) > 2 and source in sources.REQUEST_OBJECTS and part in _REQUEST_FIELDS


def _names_in_expression(node: ast.expr) -> Iterator[str]:
    """What the values that an expression is made of are called."""
    for part in ast.walk(node):
        match part:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
            case ast.Subscript(slice=ast.Constant(value=str(name))):
                yield name
            case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str(name)), *_]):
                yield name
            case _:
                pass


def record_stored_weak_secret(
    interp: Interpreter, node: ast.AST, sink: str, places: Iterable[Key], taints: Iterable[Taint]
) -> None:
    """Remember a predictable value that is put where a later request finds it."""
    if weak := _unguessable_taints(taints):
        for place in places:
            interp.run.stored_values.setdefault(place, []).append(
                (interp.frame.path, node, sink, weak)
            )


def storage_keys(run: AnalysisRun, owner: AbstractValue, target: ast.expr) -> Iterator[Key]:
    """What identifies a container, or an attribute of a record, from one request to the next."""
    yield from (("object", key) for key in owner.heap_keys() if key in run.shared)
    yield from (("named", name) for name in owner.external_names() if name)
    if isinstance(target, ast.Attribute) and target.attr not in _ID_ATTRIBUTES:
        yield ("field", target.attr)


def record_keys_compared_with_request(interp: Interpreter, left: ast.expr, right: ast.expr) -> None:
    """Record a value that is compared with one of a request: it serves as a secret."""
    left, right = _strip_conversions(left), _strip_conversions(right)
    for mine, theirs in ((left, right), (right, left)):
        value = interp.fork().evaluate(theirs)
        if any(taint.origin == "web" for taint in value.taints):
            interp.run.compared_keys.update(_storage_keys_of_value(interp.fork(), mine))


def _strip_conversions(node: ast.expr) -> ast.expr:
    """A value without what turns it into another type for a comparison."""
    match node:
        case ast.Call(func=ast.Name(id="str" | "int"), args=[inner]):
            return _strip_conversions(inner)
        case ast.Call(func=ast.Attribute(attr="encode" | "decode" | "strip", value=inner)):
            return _strip_conversions(inner)
        case _:
            return node


def _storage_keys_of_value(interp: Interpreter, node: ast.expr) -> Iterator[Key]:
    """The places that a value comes from, through the names that it has in this function."""
    waiting, followed = [node], set[str]()
    while waiting:
        interp.run.spend_step()
        match _strip_conversions(waiting.pop()):
            case ast.Call(func=ast.Attribute(attr="get" | "pop", value=owner)):
                yield from storage_keys(interp.run, interp.evaluate(owner), owner)
            case ast.Subscript(value=owner):
                yield from storage_keys(interp.run, interp.evaluate(owner), owner)
            case ast.Attribute() as field:
                yield from storage_keys(interp.run, make_external(""), field)
            case ast.Name(id=name) if name not in followed:
                followed.add(name)
                waiting += _collect_assignments(interp.run, interp.frame.node).get(name, ())
            case _:
                pass


def _collect_assignments(run: AnalysisRun, function: ast.AST) -> dict[str, list[ast.expr]]:
    """What each name of a function is given."""
    if function not in run.assigned:
        found = run.assigned[function] = {}
        for made in (node for node in ast.walk(function) if isinstance(node, ast.Assign)):
            for target in made.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(made.value)
    return run.assigned[function]


def report_stored_values(run: AnalysisRun) -> None:
    """Report the predictable values that are kept where those of a request are compared with them."""
    for place in run.compared_keys & run.stored_values.keys():
        for path, node, sink, taints in run.stored_values[place]:
            run.report_flow(WEAK_RANDOM, path, node, sink, taints)
    # For one draw that reaches several places, the nearest is reported.
    drawn_at: dict[TrailStep, TaintFlow] = {}
    for _, flow in sorted(run.flows.items()):
        if flow.rule != WEAK_RANDOM:
            continue
        best = drawn_at.setdefault(flow.steps[0], flow)
        if best is not flow:
            worse = max(flow, best, key=lambda other: (not other.certain, len(other.steps)))
            drawn_at[flow.steps[0]] = best if worse is flow else flow
            del run.flows[WEAK_RANDOM, worse.path, worse.line]
