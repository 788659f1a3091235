"""What the interpreter knows of a value: constants it may be, where it is tainted from, which objects it may be."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace

Scalar = str | bytes | int | float | bool | None
Key = Hashable
# (source, extraction, extraction...): what a part of an untrusted value was taken from.
Mark = tuple[Hashable, ...]

MOST_CONSTANTS = 8
MOST_THINGS = 12
MOST_TAINTS = 12
LONGEST_CONSTANT = 4096
LONGEST_TRAIL = 24
EVERYTHING = "*"


@dataclass(frozen=True, slots=True)
class Step:
    """One place on the way from source to sink."""

    path: str
    line: int
    what: str


@dataclass(frozen=True, slots=True)
class Trail:
    """The way a tainted value took, newest step first."""

    step: Step
    before: Trail | None = None
    length: int = 1

    def then(self, step: Step) -> Trail:
        """This way, one step further; the middle of a very long way is not kept."""
        same_line = (step.path, step.line) == (self.step.path, self.step.line)
        if self.length >= LONGEST_TRAIL or (same_line and not step.what.startswith("passed")):
            return self
        return Trail(step, self, self.length + 1)

    def steps(self) -> tuple[Step, ...]:
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

    mark: Mark
    origin: str
    safe: frozenset[str] = frozenset()
    certain: bool = True
    trail: Trail = field(default=Trail(Step("", 0, "")), compare=False, hash=False)


@dataclass(frozen=True, slots=True)
class External:
    """Something from outside the repository, by its dotted name; `()` in it is a call's result."""

    name: str


@dataclass(frozen=True, slots=True)
class ModuleRef:
    """A module of the repository."""

    name: str


@dataclass(frozen=True, slots=True)
class Imported:
    """A name of a module that nobody has used yet: most imports never need their module read."""

    module: str
    name: str


@dataclass(frozen=True, slots=True)
class FunctionRef:
    """A function of the repository; `closure` finds the names around it, `owner` the object it is bound to."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    module: str
    closure: int = 0
    owner: Value | None = None


@dataclass(frozen=True, slots=True)
class ClassRef:
    """A class of the repository."""

    node: ast.ClassDef
    module: str
    closure: int = 0


@dataclass(frozen=True, slots=True)
class Handle:
    """A mutable object; what it holds is in the state's heap."""

    key: Key


@dataclass(frozen=True, slots=True)
class Bound:
    """A method of something that is no object of the repository: `text.split`, `request.args.get`."""

    value: Value
    name: str


Thing = External | ModuleRef | Imported | FunctionRef | ClassRef | Handle | Bound
Constants = frozenset[tuple[type, Scalar]]


@dataclass(frozen=True, slots=True)
class Value:
    """An abstract value. `constants` None means: could be anything.

    `prefix` is text that a string surely starts with.
    """

    constants: Constants | None = None
    taints: frozenset[Taint] = frozenset()
    things: frozenset[Thing] = frozenset()
    prefix: str = ""

    @property
    def known(self) -> tuple[Scalar, ...] | None:
        """Every constant it may be, when it can be nothing else."""
        if self.constants is None or self.things or self.taints:
            return None
        return tuple(value for _, value in self.constants)

    @property
    def only(self) -> tuple[Scalar, ...]:
        """The one constant it is, as a tuple of one; empty when it is not surely one."""
        known = self.known
        return known if known is not None and len(known) == 1 else ()

    @property
    def text(self) -> str | None:
        """The one string it is."""
        only = self.only
        return only[0] if only and isinstance(only[0], str) else None

    def names(self) -> tuple[str, ...]:
        """Dotted names of the outside things it may be."""
        return tuple(thing.name for thing in self.things if isinstance(thing, External))

    def handles(self) -> tuple[Key, ...]:
        """Keys of the heap objects it may be."""
        return tuple(thing.key for thing in self.things if isinstance(thing, Handle))


UNKNOWN = Value()
NOTHING = Value(frozenset())


def constant(value: Scalar) -> Value:
    """The value that is exactly this constant."""
    if isinstance(value, str | bytes) and len(value) > LONGEST_CONSTANT:
        return UNKNOWN
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 512:
        return UNKNOWN
    return Value(frozenset({(type(value), value)}))


NONE = constant(None)


def constants(values: Iterable[Scalar]) -> Value:
    """The value that is one of these constants."""
    return join(*(constant(value) for value in values))


def thing(one: Thing) -> Value:
    """The value that is this object."""
    return Value(frozenset(), things=frozenset({one}))


def external(name: str) -> Value:
    """The value that is this thing from outside; its contents are not known."""
    return Value(None, things=frozenset({External(name[:200])}))


def join(*values: Value) -> Value:
    """What a value is that is one of these."""
    if not values:
        return NOTHING
    first = values[0]
    if all(other is first or other == first for other in values[1:]):
        return first
    taints = frozenset[Taint]().union(*(v.taints for v in values))
    things = frozenset[Thing]().union(*(v.things for v in values))
    merged: Constants | None = frozenset()
    for value in values:
        known = merged is not None and value.constants is not None
        merged = (merged or frozenset()) | (value.constants or frozenset()) if known else None
    if merged is not None and len(merged) > MOST_CONSTANTS:
        merged = None
    return Value(merged, _fewer(taints), _few_things(things), _common_prefix(values))


def _fewer(taints: frozenset[Taint]) -> frozenset[Taint]:
    if len(taints) <= MOST_TAINTS:
        return taints
    ranked = sorted(
        taints, key=lambda t: (not t.certain, len(t.safe), t.trail.length, repr(t.mark))
    )
    return frozenset(ranked[:MOST_TAINTS])


def _few_things(things: frozenset[Thing]) -> frozenset[Thing]:
    return things if len(things) <= MOST_THINGS else frozenset()


def _common_prefix(values: Iterable[Value]) -> str:
    prefixes = []
    for value in values:
        if value.prefix:
            prefixes.append(value.prefix)
            continue
        known = value.known
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
    return first[: min(same, LONGEST_CONSTANT)]


def tainted(taints: Iterable[Taint], prefix: str = "") -> Value:
    """An unknown value with these taints."""
    return Value(None, frozenset(taints), prefix=prefix)


def made_safe(value: Value, classes: frozenset[str]) -> Value:
    """The value after something made it harmless for some sinks."""
    if not value.taints or not classes:
        return value
    if EVERYTHING in classes:
        return replace(
            value, taints=frozenset(), constants=None if value.taints else value.constants
        )
    return replace(value, taints=frozenset(replace(t, safe=t.safe | classes) for t in value.taints))


_BACK = frozenset({"http_referer", "referer"})


def part_of(value: Value, what: Hashable) -> Value:
    """Something taken out of a tainted value: a guard on the whole holds for it, not the other way round."""
    if not value.taints:
        return UNKNOWN
    found = tainted(_extract(t, what) for t in value.taints)
    if isinstance(what, tuple) and what[0] == "key" and str(what[1]).lower() in _BACK:
        return made_safe(found, frozenset({"open-redirect"}))  # back to where the visitor came from
    return found


def key_of(value: Value) -> Value | None:
    """For an element of `.items()` its key, marked as a loop over the dictionary itself would."""
    marks = [taint.mark for taint in value.taints]
    if not all(
        len(m) > 2 and m[-1] == "element" and isinstance(m[-2], tuple) and m[-2][:1] == ("items",)
        for m in marks
    ):
        return None
    return tainted(replace(t, mark=(*t.mark[:-2], "element")) for t in value.taints)


def _extract(taint: Taint, what: Hashable) -> Taint:
    if len(taint.mark) >= 6 or taint.mark[-1] == what:
        return taint
    return replace(taint, mark=(*taint.mark, what))


def decoded(value: Value, site: Hashable) -> Value:
    """A tainted value in another shape: what was checked before no longer holds."""
    taints = (
        replace(t, mark=((*t.mark, "decoded", site)[-6:]), safe=frozenset()) for t in value.taints
    )
    return tainted(taints) if value.taints else UNKNOWN


def doubtful(value: Value) -> Value:
    """A tainted value that went through code that could not be followed."""
    return replace(value, taints=frozenset(replace(t, certain=False) for t in value.taints))


def moved(value: Value, step: Step) -> Value:
    """The value with one more step on the way of each taint."""
    if not value.taints:
        return value
    return replace(
        value, taints=frozenset(replace(t, trail=t.trail.then(step)) for t in value.taints)
    )
