"""What the interpreter knows of a value: constants it may be, where it is tainted from, which objects it may be."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace

Scalar = str | bytes | int | float | bool | None
Key = Hashable
# (source, extraction, extraction...): what a part of an untrusted value was taken from.
AccessPath = tuple[Hashable, ...]

MAX_CONSTANTS = 8
MAX_REFERENCES = 12
MAX_TAINTS = 12
MAX_CONSTANT_LENGTH = 4096
MAX_TRAIL_STEPS = 24
EVERY_SINK = "*"
# Origins that are no danger to what reads a value, but to what is kept secret by it.
WEAK_RANDOM, WEAK_HASH = "weak-random", "weak-hash"


@dataclass(frozen=True, slots=True)
class TrailStep:
    """One place on the way from source to sink."""

    path: str
    line: int
    what: str


@dataclass(frozen=True, slots=True)
class Trail:
    """The way a tainted value took, newest step first."""

    step: TrailStep
    before: Trail | None = None
    length: int = 1

    def append_step(self, step: TrailStep) -> Trail:
        """This way, one step further; the middle of a very long way is not kept."""
        same_line = (step.path, step.line) == (self.step.path, self.step.line)
        if self.length >= MAX_TRAIL_STEPS or (same_line and not step.what.startswith("passed")):
            return self
        return Trail(step, self, self.length + 1)

    def list_steps(self) -> tuple[TrailStep, ...]:
        """The steps from source to here."""
        found = []
        here: Trail | None = self
        while here is not None:
            found.append(here.step)
            here = here.before
        return tuple(reversed(found))


@dataclass(frozen=True, slots=True)
class Taint:
    """One untrusted origin of a value, what it was made safe for, and the way it came.

    `certain` is False once it went through code that could not be followed.
    """

    mark: AccessPath
    origin: str
    safe: frozenset[str] = frozenset()
    certain: bool = True
    trail: Trail = field(default=Trail(TrailStep("", 0, "")), compare=False, hash=False)


@dataclass(frozen=True, slots=True)
class ExternalRef:
    """Something from outside the repository, by its dotted name; `()` in it is a call's result."""

    name: str


@dataclass(frozen=True, slots=True)
class ModuleRef:
    """A module of the repository."""

    name: str


@dataclass(frozen=True, slots=True)
class UnresolvedImport:
    """A module's name that is not used yet: most imports never need their module."""

    module: str
    name: str


@dataclass(frozen=True, slots=True)
class FunctionRef:
    """A function of the repository; `closure` finds the names around it, `owner` the object it is bound to."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    module: str
    closure: int = 0
    owner: AbstractValue | None = None


@dataclass(frozen=True, slots=True)
class ClassRef:
    """A class of the repository."""

    node: ast.ClassDef
    module: str
    closure: int = 0


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """A mutable object; what it holds is in the state's heap."""

    key: Key


@dataclass(frozen=True, slots=True)
class BoundMethod:
    """A method of something that is no object of the repository: `text.split`, `request.args.get`."""

    value: AbstractValue
    name: str


Reference = (
    ExternalRef | ModuleRef | UnresolvedImport | FunctionRef | ClassRef | ObjectRef | BoundMethod
)
ConstantSet = frozenset[tuple[type, Scalar]]


@dataclass(frozen=True, slots=True)
class AbstractValue:
    """An abstract value. `constants` None means: could be anything.

    `prefix` is text that a string surely starts with.
    """

    constants: ConstantSet | None = None
    taints: frozenset[Taint] = frozenset()
    things: frozenset[Reference] = frozenset()
    prefix: str = ""

    @property
    def known_constants(self) -> tuple[Scalar, ...] | None:
        """Every constant it may be, when it can be nothing else."""
        if self.constants is None or self.things or self.taints:
            return None
        return tuple(value for _, value in self.constants)

    @property
    def single_constant(self) -> tuple[Scalar, ...]:
        """The one constant it is, as a tuple of one; empty if it is not certainly one."""
        known = self.known_constants
        return known if known is not None and len(known) == 1 else ()

    @property
    def single_text(self) -> str | None:
        """The one string it is."""
        only = self.single_constant
        return only[0] if only and isinstance(only[0], str) else None

    def external_names(self) -> tuple[str, ...]:
        """Dotted names of the outside things it may be."""
        return tuple(thing.name for thing in self.things if isinstance(thing, ExternalRef))

    def heap_keys(self) -> tuple[Key, ...]:
        """Keys of the heap objects it may be."""
        return tuple(thing.key for thing in self.things if isinstance(thing, ObjectRef))


TOP = AbstractValue()
BOTTOM = AbstractValue(frozenset())


def make_constant(value: Scalar) -> AbstractValue:
    """The value that is exactly this constant."""
    if isinstance(value, str | bytes) and len(value) > MAX_CONSTANT_LENGTH:
        return TOP
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 512:
        return TOP
    return AbstractValue(frozenset({(type(value), value)}))


NONE_VALUE = make_constant(None)


def make_constants(values: Iterable[Scalar]) -> AbstractValue:
    """The value that is one of these constants."""
    return join_values(*(make_constant(value) for value in values))


def make_reference(ref: Reference) -> AbstractValue:
    """The value that is this object."""
    return AbstractValue(frozenset(), things=frozenset({ref}))


def make_external(name: str) -> AbstractValue:
    """The value that is this thing from outside; its contents are not known."""
    return AbstractValue(None, things=frozenset({ExternalRef(name[:200])}))


def join_values(*values: AbstractValue) -> AbstractValue:
    """What a value is that is one of these."""
    if not values:
        return BOTTOM
    first = values[0]
    if all(other is first or other == first for other in values[1:]):
        return first
    taints = frozenset[Taint]().union(*(v.taints for v in values))
    things = frozenset[Reference]().union(*(v.things for v in values))
    merged: ConstantSet | None = frozenset()
    for value in values:
        known = merged is not None and value.constants is not None
        merged = (merged or frozenset()) | (value.constants or frozenset()) if known else None
    if merged is not None and len(merged) > MAX_CONSTANTS:
        merged = None
    return AbstractValue(
        merged, _limit_taints(taints), _limit_references(things), _common_prefix(values)
    )


def _limit_taints(taints: frozenset[Taint]) -> frozenset[Taint]:
    if len(taints) <= MAX_TAINTS:
        return taints
    ranked = sorted(
        taints, key=lambda t: (not t.certain, len(t.safe), t.trail.length, repr(t.mark))
    )
    return frozenset(ranked[:MAX_TAINTS])


def _limit_references(things: frozenset[Reference]) -> frozenset[Reference]:
    return things if len(things) <= MAX_REFERENCES else frozenset()


def _common_prefix(values: Iterable[AbstractValue]) -> str:
    prefixes = []
    for value in values:
        if value.prefix:
            prefixes.append(value.prefix)
            continue
        known = value.known_constants
        if known is None:
            return ""
        texts = [item for item in known if isinstance(item, str)]
        prefixes.extend(texts)
    if not prefixes:
        return ""
    first, last = min(prefixes), max(prefixes)
    same = next(
        (i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first)
    )
    return first[: min(same, MAX_CONSTANT_LENGTH)]


def make_tainted(taints: Iterable[Taint], prefix: str = "") -> AbstractValue:
    """An unknown value with these taints."""
    return AbstractValue(None, frozenset(taints), prefix=prefix)


def mark_safe(value: AbstractValue, classes: frozenset[str]) -> AbstractValue:
    """The value after something made it harmless for some sinks."""
    if not value.taints or not classes:
        return value
    if EVERY_SINK in classes:
        return replace(
            value, taints=frozenset(), constants=None if value.taints else value.constants
        )
    return replace(value, taints=frozenset(replace(t, safe=t.safe | classes) for t in value.taints))


_REFERER_HEADERS = frozenset({"http_referer", "referer"})


def project_part(value: AbstractValue, what: Hashable) -> AbstractValue:
    """Something taken out of a tainted value: a guard on the whole holds for it, not the other way round."""
    if not value.taints:
        return TOP
    found = make_tainted(_extend_path(t, what) for t in value.taints)
    if isinstance(what, tuple) and what[0] == "key" and str(what[1]).lower() in _REFERER_HEADERS:
        return mark_safe(found, frozenset({"open-redirect"}))  # back to where the visitor came from
    return found


def key_of_items_element(value: AbstractValue) -> AbstractValue | None:
    """For an element of `.items()` its key, marked as a loop over the dictionary itself would."""
    marks = [taint.mark for taint in value.taints]
    if not all(
        len(m) > 2 and m[-1] == "element" and isinstance(m[-2], tuple) and m[-2][:1] == ("items",)
        for m in marks
    ):
        return None
    return make_tainted(replace(t, mark=(*t.mark[:-2], "element")) for t in value.taints)


def _extend_path(taint: Taint, what: Hashable) -> Taint:
    if len(taint.mark) >= 6 or taint.mark[-1] == what:
        return taint
    return replace(taint, mark=(*taint.mark, what))


def mark_decoded(value: AbstractValue, site: Hashable) -> AbstractValue:
    """A tainted value in another shape: what was checked before no longer holds."""
    taints = (
        replace(t, mark=((*t.mark, "decoded", site)[-6:]), safe=frozenset()) for t in value.taints
    )
    return make_tainted(taints) if value.taints else TOP


def mark_uncertain(value: AbstractValue) -> AbstractValue:
    """A tainted value that went through code that could not be followed."""
    return replace(value, taints=frozenset(replace(t, certain=False) for t in value.taints))


def add_step(value: AbstractValue, step: TrailStep) -> AbstractValue:
    """The value with one more step on the way of each taint."""
    if not value.taints:
        return value
    return replace(
        value, taints=frozenset(replace(t, trail=t.trail.append_step(step)) for t in value.taints)
    )


@dataclass(frozen=True, slots=True)
class CallArguments:
    """A call's evaluated arguments."""

    positional: tuple[AbstractValue, ...] = ()
    keywords: dict[str, AbstractValue] = field(default_factory=dict)
    spread: AbstractValue | None = None

    def find_argument(self, *where: int | str) -> AbstractValue | None:
        """The first of these arguments that is given."""
        for place in where:
            if isinstance(place, int):
                if place < len(self.positional):
                    return self.positional[place]
            elif place in self.keywords:
                return self.keywords[place]
        return self.spread

    def all_arguments(self) -> tuple[AbstractValue, ...]:
        """Every argument."""
        spread = (self.spread,) if self.spread is not None else ()
        return (*self.positional, *self.keywords.values(), *spread)

    @property
    def taints(self) -> frozenset[Taint]:
        """The taints of every argument, without those of what it holds."""
        return frozenset[Taint]().union(*(value.taints for value in self.all_arguments()))
