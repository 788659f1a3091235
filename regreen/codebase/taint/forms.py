"""What a declared form, serializer or model makes of the data that it is given: its fields, each as it was checked."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from regreen.codebase.taint import checks, fields, invocation, sources
from regreen.codebase.taint.library import ALL
from regreen.codebase.taint.run import Frame, Run
from regreen.codebase.taint.sinks import Arguments
from regreen.codebase.taint.state import Heaped, State
from regreen.codebase.taint.values import (
    NOTHING,
    UNKNOWN,
    ClassRef,
    External,
    FunctionRef,
    Handle,
    Value,
    join,
    part_of,
    thing,
)

_DEEPEST = 6
_BASES = (
    (re.compile(r"django\.forms\.(?:\w+\.)?(?:Base|Model)?Form\Z"), "django"),
    (re.compile(r"rest_framework\.serializers\.\w*Serializer\Z"), "rest"),
    (re.compile(r"(?:flask_wtf|wtforms)\.(?:\w+\.)?(?:Base|Flask)?Form\Z"), "wtforms"),
    (re.compile(r"marshmallow\.(?:\w+\.)?Schema\Z"), "marshmallow"),
    (re.compile(r"pydantic\.(?:\w+\.)?BaseModel\Z"), "pydantic"),
)
# Fields that give a number, a date, an identifier or one of a list: nothing that the sender could write freely.
_HARMLESS = re.compile(
    r"(?:Integer|Int|Float|Decimal|Number|Boolean|Bool|Date|DateTime|Time|Duration|TimeDelta|UUID|IP|IPAddress|Choice|"
    r"Select|Radio|Enum|PrimaryKeyRelated|ModelChoice)(?:Range|Multiple)?(?:Field)?\Z"
)
_MULTIPLE = re.compile(
    r"^(?:Null|Typed|Generic|Aware|Naive|Strict|Multiple|ModelMultiple|Slug|Many)+(?=[A-Z])"
)
_SLUG = r"^[-a-zA-Z0-9_]+\Z"
_LISTED = frozenset({"AnyOf", "OneOf", "NumberRange", "UUID", "IPAddress"})
_PATTERNED = frozenset({"RegexValidator", "Regexp", "RegexField"})
_READERS = frozenset({"model_validate", "parse_obj", "model_validate_json", "parse_raw"})


@dataclass(frozen=True, slots=True)
class _Field:
    """A field as it is declared: the call that makes it, or its annotation with a default."""

    name: str
    call: ast.Call | None = None
    annotation: ast.expr | None = None
    default: ast.expr | None = None


def kind(run: Run, cls: ClassRef, depth: int = 0) -> str:
    """Which library checks what an object of this class is given; empty for a class like any other."""
    known = run.kinds.get(cls.node)
    if known is None:
        run.kinds[cls.node] = ""  # a class that is its own base
        known = run.kinds[cls.node] = _kind(run, cls, depth)
    return known


def _kind(run: Run, cls: ClassRef, depth: int) -> str:
    for one in invocation.bases(run, cls) if depth < _DEEPEST else ():
        if isinstance(one, ClassRef):
            if found := kind(run, one, depth + 1):
                return found
        elif isinstance(one, External):
            for pattern, name in _BASES:
                if pattern.match(one.name):
                    return name
    return ""


def made(  # noqa: PLR0917
    run: Run, frame: Frame, node: ast.AST, cls: ClassRef, args: Arguments, state: State
) -> Value | None:
    """A new object of the class with its checked fields; None where no library checks them."""
    of = kind(run, cls)
    if not of:
        return None
    key = (id(node), id(cls.node), frame.context)
    whole = thing(Handle(key))
    state.heap[key] = Heaped("instance", of=cls, rest=NOTHING)
    match of:
        case "django":
            _offer(run, frame, cls, args.get(0, "data"), key, "cleaned_data", state)
        case "rest":
            data = args.keywords.get("data") or args.get(1)
            for name in ("validated_data", "data"):
                _offer(run, frame, cls, data, key, name, state)
        case "wtforms":
            line = getattr(node, "lineno", 1)
            implicit = sources.source(
                "web", ("flask.request", "form"), "`request.form`", frame, line
            )
            _offer(run, frame, cls, args.get(0, "formdata") or implicit, key, "data", state)
            _apart(state, key)
        case "pydantic":
            _filled(run, frame, cls, args, key, state)
        case _:
            pass
    return whole


def read(  # noqa: PLR0917
    run: Run, frame: Frame, node: ast.AST, cls: ClassRef, name: str, args: Arguments, state: State
) -> Value | None:
    """`Model.model_validate(data)`; None for any other method."""
    if name not in _READERS or kind(run, cls) != "pydantic" or not args.positional:
        return None
    given = args.positional[0]
    entries = next((h.entries for k in given.handles() if (h := state.at(k)) is not None), {})
    named = {k: v for k, v in entries.items() if isinstance(k, str)}
    return made(run, frame, node, cls, Arguments((), named, given if given.taints else None), state)


def loaded(  # noqa: PLR0917
    run: Run, frame: Frame, handle: Handle, cls: ClassRef, name: str, args: Arguments, state: State
) -> Value | None:
    """`Schema().load(data)`; None for any other method."""
    if name not in {"load", "loads"} or kind(run, cls) != "marshmallow" or not args.positional:
        return None
    _offer(run, frame, cls, args.positional[0], handle.key, "loaded", state)
    heaped = state.at(handle.key)
    return heaped.entries["loaded"] if heaped is not None else None


def check(run: Run, frame: Frame, cls: ClassRef, value: Value, state: State) -> None:
    """A model that the framework fills with `value` before the handler runs: its own validators had their say."""
    if kind(run, cls) != "pydantic":
        return
    for one in _declared(run, cls):
        held = part_of(value, ("attribute", one.name))
        result = _validated(run, frame, cls, one.name, held, value, state)
        _equate(held, result, state)


def _equate(before: Value, after: Value, state: State) -> None:
    """The field now holds `after`: what that is harmless for, the field is."""
    after = state.baked(after)
    if after == NOTHING:
        return  # no way came out
    safe = frozenset.intersection(*(taint.safe for taint in after.taints)) if after.taints else ALL
    for taint in before.taints:
        state.check(taint.mark, safe)


def _offer(  # noqa: PLR0917
    run: Run, frame: Frame, cls: ClassRef, data: Value | None, key: object, name: str, state: State
) -> None:
    """Let the object hold its checked data under this name, and then run its own validators."""
    cleaned = (key, name)
    state.heap[cleaned] = Heaped("dict", rest=UNKNOWN)
    _set(state, key, name, thing(Handle(cleaned)))
    whole = thing(Handle(key))
    for one in _declared(run, cls):
        value = _given(data, one.name, state)
        if _is_harmless(one):
            value = UNKNOWN
        for pattern in _patterns(one):
            if pattern.startswith(("^", r"\A")):
                checks.pattern_checked(pattern, value, state, whole=False)
        _set(state, cleaned, one.name, state.baked(value))
        checked = _validated(run, frame, cls, one.name, value, whole, state)
        _set(state, cleaned, one.name, state.baked(checked))


def _filled(  # noqa: PLR0917
    run: Run, frame: Frame, cls: ClassRef, args: Arguments, key: object, state: State
) -> None:
    """An object of a model that was made by hand: its types are enforced."""
    whole = thing(Handle(key))
    for one in _declared(run, cls):
        value = args.keywords.get(one.name)
        if value is None and args.spread is not None:
            value = part_of(args.spread, ("key", one.name))
        if value is None:
            continue
        if one.annotation is not None and fields.is_plain(one.annotation):
            value = UNKNOWN
        pattern = fields.pattern_of(one.annotation, one.default)
        if pattern is not None and pattern.startswith(("^", r"\A")):
            checks.pattern_checked(pattern, value, state, whole=False)
        _set(state, key, one.name, state.baked(value))
        checked = _validated(run, frame, cls, one.name, value, whole, state)
        _set(state, key, one.name, state.baked(checked))


def _set(state: State, key: object, name: str, value: Value) -> None:
    heaped = state.at(key)
    if heaped is not None:
        state.heap[key] = heaped.with_entry(name, value)


def _apart(state: State, key: object) -> None:
    """WTForms: `form.name.data`."""
    heaped = state.at((key, "data"))
    for name, value in heaped.entries.items() if heaped is not None else ():
        state.heap[key, name] = Heaped("instance", entries={"data": value})
        _set(state, key, str(name), thing(Handle((key, name))))


def _given(data: Value | None, name: str, state: State) -> Value:
    if data is None:
        return UNKNOWN
    held = [h.entries[name] for k in data.handles() if (h := state.at(k)) and name in h.entries]
    return (
        join(*held, *([part_of(data, ("key", name))] if data.taints else []))
        if held or data.taints
        else UNKNOWN
    )


def _declared(run: Run, cls: ClassRef, depth: int = 0) -> Iterator[_Field]:
    """The fields of a class and of its bases in the repository."""
    for one in invocation.bases(run, cls) if depth < _DEEPEST else ():
        if isinstance(one, ClassRef) and one != cls:
            yield from _declared(run, one, depth + 1)
    for name, annotation, default in fields.declared(cls.node):
        yield _Field(name, None, annotation, default)
    for item in cls.node.body:
        if isinstance(item, ast.Assign) and isinstance(item.value, ast.Call):
            for target in item.targets:
                if isinstance(target, ast.Name):
                    yield _Field(target.id, item.value)


def _is_harmless(one: _Field) -> bool:
    if one.call is None:
        return one.annotation is not None and fields.is_plain(one.annotation)
    name = _name(one.call)
    return _HARMLESS.match(_MULTIPLE.sub("", name)) is not None or any(
        _name(call) in _LISTED for call in _validators(one.call)
    )


def _patterns(one: _Field) -> Iterator[str]:
    """The regular expressions that a field's text was searched for."""
    for call in (one.call, *_validators(one.call)) if one.call is not None else ():
        if _name(call) == "SlugField":
            yield _SLUG
        if _name(call) not in _PATTERNED:
            continue
        places = [*call.args[:1], *(k.value for k in call.keywords if k.arg in {"regex", "regexp"})]
        for place in places:
            inner = place.args[0] if isinstance(place, ast.Call) and place.args else place
            if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                yield inner.value


def _validators(call: ast.Call) -> list[ast.Call]:
    """The calls in `validators=[...]`."""
    places = [k.value for k in call.keywords if k.arg in {"validators", "validate"}]
    places += [arg for arg in call.args if isinstance(arg, ast.List)]
    listed = [e for p in places for e in (p.elts if isinstance(p, ast.List | ast.Tuple) else [p])]
    return [one for one in listed if isinstance(one, ast.Call)]


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _validated(  # noqa: PLR0917
    run: Run, frame: Frame, cls: ClassRef, name: str, value: Value, whole: Value, state: State
) -> Value:
    """The field after the class's own methods looked at it; one that raises never gives a value."""
    for method in _methods(run, cls):
        names = _names_fields(method)
        if name in names or "*" in names:
            value = _asked(run, frame, cls, method, [value], whole, state)
        elif method.name == f"clean_{name}":
            value = _asked(run, frame, cls, method, [], whole, state)
        elif method.name == f"validate_{name}":
            # WTForms hands in the field, whose text is in `data`, and takes no answer.
            if kind(run, cls) == "rest":
                value = _asked(run, frame, cls, method, [value], whole, state)
            else:
                key = (id(method), "field")
                state.heap[key] = Heaped("instance", entries={"data": value})
                _asked(run, frame, cls, method, [thing(Handle(key))], whole, state)
    return value


def _methods(run: Run, cls: ClassRef, depth: int = 0) -> Iterator[ast.FunctionDef]:
    for one in invocation.bases(run, cls) if depth < _DEEPEST else ():
        if isinstance(one, ClassRef) and one != cls:
            yield from _methods(run, one, depth + 1)
    yield from (item for item in cls.node.body if isinstance(item, ast.FunctionDef))


def _names_fields(method: ast.FunctionDef) -> set[str]:
    """The fields that `@field_validator("a", "b")` names."""
    found: set[str] = set()
    for decorator in method.decorator_list:
        if isinstance(decorator, ast.Call) and _name(decorator) in {
            "field_validator",
            "validator",
            "validates",
        }:
            found |= {str(arg.value) for arg in decorator.args if isinstance(arg, ast.Constant)}
    return found


def _asked(  # noqa: PLR0917
    run: Run,
    frame: Frame,
    cls: ClassRef,
    method: ast.FunctionDef,
    given: list[Value],
    whole: Value,
    state: State,
) -> Value:
    function = FunctionRef(method, cls.module, cls.closure)
    takes = len(method.args.posonlyargs) + len(method.args.args)
    static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in method.decorator_list)
    positional = tuple(given if static else [whole, *given])[:takes]
    return invocation.invoke(run, frame, method, thing(function), Arguments(positional), state)
