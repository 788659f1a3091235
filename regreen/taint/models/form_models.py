"""What a declared form, serializer or model makes of the data that it is given: its fields, each as it was checked."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from regreen.code.python_calls import parse_syntax_tree
from regreen.taint import namespaces, validation
from regreen.taint.interpreter import AnalysisRun, Interpreter
from regreen.taint.models import sources
from regreen.taint.models.sources import ALL_SINKS
from regreen.taint.state import AbstractState, HeapObject
from regreen.taint.values import (
    BOTTOM,
    TOP,
    AbstractValue,
    CallArguments,
    ClassRef,
    ExternalRef,
    FunctionRef,
    ObjectRef,
    join_values,
    make_reference,
    project_part,
)

PLAIN_TYPES = frozenset(
    {
        "int",
        "float",
        "bool",
        "UUID",
        "UUID1",
        "UUID3",
        "UUID4",
        "UUID5",
        "date",
        "datetime",
        "time",
        "Decimal",
        "timedelta",
        "Session",
        "AsyncSession",
        "BackgroundTasks",
        "Response",
        "IPv4Address",
        "IPv6Address",
        "IPvAnyAddress",
        "Enum",
        "conint",
        "confloat",
        "condecimal",
        "condate",
        "PositiveInt",
        "NegativeInt",
        "NonNegativeInt",
        "NonPositiveInt",
        "PositiveFloat",
        "NegativeFloat",
        "NonNegativeFloat",
        "NonPositiveFloat",
        "FiniteFloat",
        "StrictInt",
        "StrictBool",
        "StrictFloat",
        "AwareDatetime",
        "NaiveDatetime",
        "PastDate",
        "FutureDate",
        "ByteSize",
        "Literal",
    }
)
_WRAPPER_TYPES = frozenset(
    {"Optional", "Union", "list", "List", "set", "Set", "tuple", "Tuple", "frozenset", "Sequence"}
)
_PATTERN_KEYWORDS = frozenset({"pattern", "regex"})


def is_harmless_type(annotation: ast.expr) -> bool:
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


def find_field_pattern(annotation: ast.expr | None, default: ast.expr | None) -> str | None:
    """The regular expression that a text is matched against: `constr(pattern=...)`, `Field(pattern=...)`."""
    for place in (annotation, default):
        for node in ast.walk(place) if place is not None else ():
            if not isinstance(node, ast.Call):
                continue
            for keyword in node.keywords:
                if keyword.arg in _PATTERN_KEYWORDS and isinstance(keyword.value, ast.Constant):
                    return keyword.value.value if isinstance(keyword.value.value, str) else None
    return None


def is_enumeration(cls: ast.ClassDef) -> bool:
    """Whether a value of this class can only be one of its own members."""
    bases = {_last_name(base) for base in cls.bases}
    return bool(bases & {"Enum", "StrEnum", "IntEnum", "TextChoices", "IntegerChoices"})


def list_model_fields(cls: ast.ClassDef) -> Iterator[tuple[str, ast.expr, ast.expr | None]]:
    """The fields of a model: name, annotation, default."""
    for item in cls.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            yield item.target.id, item.annotation, item.value


_MAX_CLASS_DEPTH = 6
_LIBRARY_BASES = (
    (re.compile(r"django\.forms\.(?:\w+\.)?(?:Base|Model)?Form\Z"), "django"),
    (re.compile(r"rest_framework\.serializers\.\w*Serializer\Z"), "rest"),
    (re.compile(r"(?:flask_wtf|wtforms)\.(?:\w+\.)?(?:Base|Flask)?Form\Z"), "wtforms"),
    (re.compile(r"marshmallow\.(?:\w+\.)?Schema\Z"), "marshmallow"),
    (re.compile(r"pydantic\.(?:\w+\.)?BaseModel\Z"), "pydantic"),
)
# Fields that give a number, a date, an identifier or one of a list: nothing that the sender could write freely.
_HARMLESS_FIELD = re.compile(
    r"(?:Integer|Int|Float|Decimal|Number|Boolean|Bool|Date|DateTime|Time|Duration|TimeDelta|UUID|IP|IPAddress|Choice|"
    r"Select|Radio|Enum|PrimaryKeyRelated|ModelChoice)(?:Range|Multiple)?(?:Field)?\Z"
)
_FIELD_PREFIX = re.compile(
    r"^(?:Null|Typed|Generic|Aware|Naive|Strict|Multiple|ModelMultiple|Slug|Many)+(?=[A-Z])"
)
_SLUG_PATTERN = r"^[-a-zA-Z0-9_]+\Z"
_LIMITING_VALIDATORS = frozenset({"AnyOf", "OneOf", "NumberRange", "UUID", "IPAddress"})
_PATTERN_VALIDATORS = frozenset({"RegexValidator", "Regexp", "RegexField"})
_VALIDATING_METHODS = frozenset({"model_validate", "parse_obj", "model_validate_json", "parse_raw"})


@dataclass(frozen=True, slots=True)
class _DeclaredField:
    """A field as it is declared: the call that makes it, or its annotation with a default."""

    name: str
    call: ast.Call | None = None
    annotation: ast.expr | None = None
    default: ast.expr | None = None


def _model_kind(run: AnalysisRun, cls: ClassRef, depth: int = 0) -> str:
    """Which library checks what an object of this class is given; empty for a class like any other."""
    known = run.kinds.get(cls.node)
    if known is None:
        run.kinds[cls.node] = ""  # a class that is its own base
        known = run.kinds[cls.node] = _find_kind(run, cls, depth)
    return known


def _find_kind(run: AnalysisRun, cls: ClassRef, depth: int) -> str:
    for ref in namespaces.resolve_bases(run, cls) if depth < _MAX_CLASS_DEPTH else ():
        if isinstance(ref, ClassRef):
            if found := _model_kind(run, ref, depth + 1):
                return found
        elif isinstance(ref, ExternalRef):
            for pattern, name in _LIBRARY_BASES:
                if pattern.match(ref.name):
                    return name
    return ""


def make_checked_object(
    interp: Interpreter, node: ast.AST, cls: ClassRef, args: CallArguments
) -> AbstractValue | None:
    """A new object of the class with its checked fields; None where no library checks them."""
    of = _model_kind(interp.run, cls)
    if not of:
        return None
    key = (id(node), id(cls.node), interp.frame.context)
    whole = make_reference(ObjectRef(key))
    interp.state.heap[key] = HeapObject("instance", of=cls, rest=BOTTOM)
    match of:
        case "django":
            _store_checked_data(interp, cls, args.find_argument(0, "data"), key, "cleaned_data")
        case "rest":
            data = args.keywords.get("data") or args.find_argument(1)
            for name in ("validated_data", "data"):
                _store_checked_data(interp, cls, data, key, name)
        case "wtforms":
            mark = ("flask.request", "form")
            implicit = sources.make_untrusted_value(interp, node, "web", mark, "`request.form`")
            _store_checked_data(
                interp, cls, args.find_argument(0, "formdata") or implicit, key, "data"
            )
            _bind_wtforms_fields(interp.state, key)
        case "pydantic":
            _bind_model_arguments(interp, cls, args, key)
        case _:
            pass
    return whole


def call_model_validator(
    interp: Interpreter, node: ast.AST, cls: ClassRef, name: str, args: CallArguments
) -> AbstractValue | None:
    """`Model.model_validate(data)`; None for any other method."""
    if (
        name not in _VALIDATING_METHODS
        or _model_kind(interp.run, cls) != "pydantic"
        or not args.positional
    ):
        return None
    given = args.positional[0]
    entries = next(
        (h.entries for k in given.heap_keys() if (h := interp.state.find_object(k)) is not None), {}
    )
    named = {k: v for k, v in entries.items() if isinstance(k, str)}
    return make_checked_object(
        interp, node, cls, CallArguments((), named, given if given.taints else None)
    )


def call_schema_load(
    interp: Interpreter, handle: ObjectRef, cls: ClassRef, name: str, args: CallArguments
) -> AbstractValue | None:
    """`Schema().load(data)`; None for any other method."""
    if (
        name not in {"load", "loads"}
        or _model_kind(interp.run, cls) != "marshmallow"
        or not args.positional
    ):
        return None
    _store_checked_data(interp, cls, args.positional[0], handle.key, "loaded")
    heap_object = interp.state.find_object(handle.key)
    return heap_object.entries["loaded"] if heap_object is not None else None


def check_model_fields(interp: Interpreter, cls: ClassRef, value: AbstractValue) -> None:
    """A model that the framework fills with `value` before the handler runs, after its own validators."""
    if _model_kind(interp.run, cls) != "pydantic":
        return
    for declared in _declared_fields(interp.run, cls):
        held = project_part(value, ("attribute", declared.name))
        result = _apply_validators(interp, cls, declared.name, held, value)
        _mark_field_checked_like(held, result, interp.state)


def _mark_field_checked_like(
    before: AbstractValue, after: AbstractValue, state: AbstractState
) -> None:
    """The field now holds `after`: what that is harmless for, the field is."""
    after = state.with_checks_applied(after)
    if after == BOTTOM:
        return  # no way came out
    safe = (
        frozenset.intersection(*(taint.safe for taint in after.taints))
        if after.taints
        else ALL_SINKS
    )
    for taint in before.taints:
        state.mark_checked(taint.mark, safe)


def _store_checked_data(
    interp: Interpreter, cls: ClassRef, data: AbstractValue | None, key: object, name: str
) -> None:
    """Let the object hold its checked data under this name, and then run its own validators."""
    cleaned = (key, name)
    interp.state.heap[cleaned] = HeapObject("dict", rest=TOP)
    _set_object_entry(interp.state, key, name, make_reference(ObjectRef(cleaned)))
    whole = make_reference(ObjectRef(key))
    for declared in _declared_fields(interp.run, cls):
        value = _find_form_field(data, declared.name, interp.state)
        if _is_harmless_field(declared):
            value = TOP
        for pattern in _validator_patterns(declared):
            if pattern.startswith(("^", r"\A")):
                validation.assume_pattern(pattern, value, interp.state, whole=False)
        _set_object_entry(
            interp.state, cleaned, declared.name, interp.state.with_checks_applied(value)
        )
        checked = _apply_validators(interp, cls, declared.name, value, whole)
        _set_object_entry(
            interp.state, cleaned, declared.name, interp.state.with_checks_applied(checked)
        )


def _bind_model_arguments(
    interp: Interpreter, cls: ClassRef, args: CallArguments, key: object
) -> None:
    """An object of a model that was made by hand: its types are enforced."""
    whole = make_reference(ObjectRef(key))
    for declared in _declared_fields(interp.run, cls):
        value = args.keywords.get(declared.name)
        if value is None and args.spread is not None:
            value = project_part(args.spread, ("key", declared.name))
        if value is None:
            continue
        if declared.annotation is not None and is_harmless_type(declared.annotation):
            value = TOP
        pattern = find_field_pattern(declared.annotation, declared.default)
        if pattern is not None and pattern.startswith(("^", r"\A")):
            validation.assume_pattern(pattern, value, interp.state, whole=False)
        _set_object_entry(interp.state, key, declared.name, interp.state.with_checks_applied(value))
        checked = _apply_validators(interp, cls, declared.name, value, whole)
        _set_object_entry(
            interp.state, key, declared.name, interp.state.with_checks_applied(checked)
        )


def _set_object_entry(state: AbstractState, key: object, name: str, value: AbstractValue) -> None:
    heap_object = state.find_object(key)
    if heap_object is not None:
        state.heap[key] = heap_object.with_entry(name, value)


def _bind_wtforms_fields(state: AbstractState, key: object) -> None:
    """WTForms: `form.name.data`."""
    heap_object = state.find_object((key, "data"))
    for name, value in heap_object.entries.items() if heap_object is not None else ():
        state.heap[key, name] = HeapObject("instance", entries={"data": value})
        _set_object_entry(state, key, str(name), make_reference(ObjectRef((key, name))))


def _find_form_field(data: AbstractValue | None, name: str, state: AbstractState) -> AbstractValue:
    if data is None:
        return TOP
    held = [
        h.entries[name]
        for k in data.heap_keys()
        if (h := state.find_object(k)) and name in h.entries
    ]
    return (
        join_values(*held, *([project_part(data, ("key", name))] if data.taints else []))
        if held or data.taints
        else TOP
    )


def _declared_fields(run: AnalysisRun, cls: ClassRef, depth: int = 0) -> Iterator[_DeclaredField]:
    """The fields of a class and of its bases in the repository."""
    for ref in namespaces.resolve_bases(run, cls) if depth < _MAX_CLASS_DEPTH else ():
        if isinstance(ref, ClassRef) and ref != cls:
            yield from _declared_fields(run, ref, depth + 1)
    for name, annotation, default in list_model_fields(cls.node):
        yield _DeclaredField(name, None, annotation, default)
    for item in cls.node.body:
        if isinstance(item, ast.Assign) and isinstance(item.value, ast.Call):
            for target in item.targets:
                if isinstance(target, ast.Name):
                    yield _DeclaredField(target.id, item.value)


def _is_harmless_field(declared: _DeclaredField) -> bool:
    if declared.call is None:
        return declared.annotation is not None and is_harmless_type(declared.annotation)
    name = _call_name(declared.call)
    return _HARMLESS_FIELD.match(_FIELD_PREFIX.sub("", name)) is not None or any(
        _call_name(call) in _LIMITING_VALIDATORS for call in _validator_calls(declared.call)
    )


def _validator_patterns(declared: _DeclaredField) -> Iterator[str]:
    """The regular expressions that a field's text was searched for."""
    for call in (
        (declared.call, *_validator_calls(declared.call)) if declared.call is not None else ()
    ):
        if _call_name(call) == "SlugField":
            yield _SLUG_PATTERN
        if _call_name(call) not in _PATTERN_VALIDATORS:
            continue
        places = [*call.args[:1], *(k.value for k in call.keywords if k.arg in {"regex", "regexp"})]
        for place in places:
            inner = place.args[0] if isinstance(place, ast.Call) and place.args else place
            if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                yield inner.value


def _validator_calls(call: ast.Call) -> list[ast.Call]:
    """The calls in `validators=[...]`."""
    places = [k.value for k in call.keywords if k.arg in {"validators", "validate"}]
    places += [arg for arg in call.args if isinstance(arg, ast.List)]
    listed = [e for p in places for e in (p.elts if isinstance(p, ast.List | ast.Tuple) else [p])]
    return [element for element in listed if isinstance(element, ast.Call)]


def _call_name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _apply_validators(
    interp: Interpreter, cls: ClassRef, name: str, value: AbstractValue, whole: AbstractValue
) -> AbstractValue:
    """The field after the class's own methods looked at it; one that raises never gives a value."""
    for method in _class_methods(interp.run, cls):
        names = _fields_named_by_validator(method)
        if name in names or "*" in names:
            value = _call_validator(interp, cls, method, [value], whole)
        elif method.name == f"clean_{name}":
            value = _call_validator(interp, cls, method, [], whole)
        elif method.name == f"validate_{name}":
            # WTForms passes the field, whose text is in `data`, and ignores the result.
            if _model_kind(interp.run, cls) == "rest":
                value = _call_validator(interp, cls, method, [value], whole)
            else:
                key = (id(method), "field")
                interp.state.heap[key] = HeapObject("instance", entries={"data": value})
                _call_validator(interp, cls, method, [make_reference(ObjectRef(key))], whole)
    return value


def _class_methods(run: AnalysisRun, cls: ClassRef, depth: int = 0) -> Iterator[ast.FunctionDef]:
    for ref in namespaces.resolve_bases(run, cls) if depth < _MAX_CLASS_DEPTH else ():
        if isinstance(ref, ClassRef) and ref != cls:
            yield from _class_methods(run, ref, depth + 1)
    yield from (item for item in cls.node.body if isinstance(item, ast.FunctionDef))


def _fields_named_by_validator(method: ast.FunctionDef) -> set[str]:
    """The fields that `@field_validator("a", "b")` names."""
    found: set[str] = set()
    for decorator in method.decorator_list:
        if isinstance(decorator, ast.Call) and _call_name(decorator) in {
            "field_validator",
            "validator",
            "validates",
        }:
            found |= {str(arg.value) for arg in decorator.args if isinstance(arg, ast.Constant)}
    return found


def _call_validator(
    interp: Interpreter,
    cls: ClassRef,
    method: ast.FunctionDef,
    given: list[AbstractValue],
    whole: AbstractValue,
) -> AbstractValue:
    function = FunctionRef(method, cls.module, cls.closure)
    takes = len(method.args.posonlyargs) + len(method.args.args)
    static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in method.decorator_list)
    positional = tuple(given if static else [whole, *given])[:takes]
    return interp.invoke_callee(method, make_reference(function), CallArguments(positional))
