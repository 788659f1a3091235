"""What a check proves of the tainted value it looks at."""

from __future__ import annotations

import ast
import re
from collections.abc import Hashable
from typing import TypeGuard

from regreen.codebase.taint import library
from regreen.codebase.taint.charset import INTERESTING, any_of, can_match, group
from regreen.codebase.taint.library import ALL, HOSTS, HTML, LINES, PATH, QUOTES, TEXTUAL
from regreen.codebase.taint.state import Heaped, State
from regreen.codebase.taint.values import UNKNOWN, Mark, Value, made_safe, part_of

# The folder that several paths have in common, as part of each.
COMMON_FOLDER = "common folder"
_NUMBERS = frozenset({"builtins.int", "builtins.float", "builtins.bool"})
_HOST_PARTS = ("netloc", "hostname", "host")
_ONLY_PLAIN = frozenset({"isdigit", "isalnum", "isnumeric", "isdecimal", "isidentifier", "isalpha"})
# One value of a request; the other marks stand for dictionaries, of which only the keys were looked at.
_SINGLE = frozenset({"key", "item", "attribute", "getlist", "split"})
_HOSTED = re.compile(r"https?://[^/]+/", re.IGNORECASE)
_LEADS, _TRAILS, _NO_QUOTE = "leads with a quote", "trails with a quote", "no quote inside"
_ONE_SLASH, _NOT_TWO = "leads with a slash", "does not lead with two slashes"
_CHECKS = re.compile(
    r"(?i)^_?(?:is|has|check|validate|verify|ensure|assert|allowed?)_?\w*(?:safe|valid|allow|permit|trust|white|local|clean|legal)"
    r"|^_?(?:validate|sanitize|allowed)_\w+$|^url_has_allowed_host_and_scheme$|^is_safe_url$"
)


def _marks(value: Value) -> list[Mark]:
    return [taint.mark for taint in value.taints]


def is_foreign(value: Value) -> bool:
    """Whether others than who runs the program had a hand in it; its arguments and environment are its own."""
    return any(taint.origin in {"web", "network"} for taint in value.taints)


def _all_checked(value: Value, state: State) -> None:
    for mark in _marks(value):
        if len(mark) > 1 and mark[-1] in [("attribute", part) for part in _HOST_PARTS]:
            state.check(mark[:-1], HOSTS)
        elif len(mark) > 3 and mark[-1] == ("key", 0) and mark[-3] == ("attribute", "netloc"):
            state.check(mark[:-3], HOSTS)  # `netloc.split(":")[0]`
        # Escaping letter by letter makes text harmless; it does not make it ours.
        state.check(mark, TEXTUAL if mark[-1] == "element" else ALL)


def equals(value: Value, other: Value, state: State) -> None:
    """`value == other`: as harmless as what it equals."""
    if not is_foreign(other):
        _all_checked(value, state)
        _in_folder(value, state)
    signed(other, state)
    for taint in other.taints:  # `basename(name) == name`: as harmless as what was made of it
        for mark in _marks(value):
            if taint.safe and taint.mark[: len(mark)] == mark:
                state.check(mark, taint.safe - {"normal"})


def _in_folder(value: Value, state: State) -> None:
    """`commonpath([path, folder]) == folder`, where the path was resolved."""
    for taint in value.taints:
        if taint.mark[-1] == COMMON_FOLDER and "normal" in taint.safe:
            state.check(taint.mark[:-1], PATH)


def signed(value: Value, state: State) -> None:
    """A message authentication code of ours was the one given: the message comes from who holds the key."""
    for name in value.names():
        made = library.MAC.match(name)
        heaped = state.at(("mac", made.group())) if made is not None else None
        if heaped is not None:
            _all_checked(heaped.entries["of"], state)


def empty(value: Value, other: Value, state: State) -> None:
    """`urlparse(x).netloc == ""`: a place on this host."""
    if other.text == "":
        for mark in _marks(value):
            if mark[-1] in [("attribute", part) for part in _HOST_PARTS]:
                state.check(mark[:-1], HOSTS)


def member(value: Value, container: Value, state: State) -> None:
    """`value in container`, a container of ours."""
    if container.text is not None:
        _letters(value, container.text, state)
        return
    if not _is_ours(container, state):
        return
    letters = _alphabet(container, state)
    for taint in value.taints:
        if letters is not None and taint.mark[-1] == "element":
            state.check(taint.mark, without(letters))
        else:
            _all_checked(Value(taints=frozenset({taint})), state)


def _is_ours(container: Value, state: State) -> bool:
    held = [state.at(key) for key in container.handles()]
    return not is_foreign(container) and not any(
        is_foreign(heaped.anything()) for heaped in held if heaped is not None
    )


def _alphabet(container: Value, state: State) -> frozenset[str] | None:
    """The letters that a set or a list holds; None when that is not all it may hold."""
    found: set[str] = set()
    for key in container.handles():
        heaped = state.at(key)
        if heaped is None or heaped.items is None:
            return None
        texts = [item.text for item in heaped.items]
        if not texts or any(text is None or len(text) != 1 for text in texts):
            return None
        found.update(text for text in texts if text is not None)
    return frozenset(found) or None


def _letters(value: Value, text: str, state: State) -> None:
    """A part of a text of ours has none but its letters."""
    for mark in _marks(value):
        state.check(mark, without(frozenset(text)))


def nothing_left(value: Value, state: State) -> None:
    """`set(given) - allowed` is empty: each element is one of ours."""
    for key in value.handles():
        heaped = state.at(key)
        if heaped is not None and heaped.kind == "difference":
            _all_checked(heaped.entries["of"], state)
            for mark, classes in _made_of(heaped.entries["of"]).items():
                state.check(mark, classes)


def _made_of(element: Value) -> dict[Mark, frozenset[str]]:
    """What it says of a text that each of its letters is harmless."""
    whole = [mark[:-1] for mark in _marks(element) if mark[-1] == "element"]
    return {mark: TEXTUAL for mark in whole if _is_single(mark)}


def _is_single(mark: Mark) -> bool:
    return mark[0] == "parameter" or (isinstance(mark[-1], tuple) and mark[-1][0] in _SINGLE)


def subset(value: Value, container: Value, state: State) -> None:
    """`set(given) <= allowed`."""
    for key in value.handles():
        heaped = state.at(key)
        if heaped is None or heaped.kind != "set" or not container.handles():
            continue
        each = heaped.anything()
        member(each, container, state)
        if _is_ours(container, state):
            letters = _alphabet(container, state)
            for mark, classes in _made_of(each).items():
                state.check(mark, classes if letters is None else without(letters))


def of_each(many: Value, way: State) -> dict[Mark, frozenset[str]]:
    """What was checked of every element of `many`: it holds for them, and for a text or list made of nothing else."""
    found: dict[Mark, frozenset[str]] = {}
    for mark in _marks(many):
        classes = way.checked.get((*mark, "element"), frozenset())
        if classes:
            found[*mark, "element"] = classes
            if _is_single(mark):
                found[mark] = classes
            if _is_split(mark[-1]):
                # Joined again by what it was split at.
                between = set(mark[-1][3]) if len(mark[-1]) > 3 else {" ", "\n"}
                found[mark[:-1]] = classes - {
                    r for r, needed in _NEEDED.items() if needed & between
                }
    return found


def _is_split(what: Hashable) -> TypeGuard[tuple[str, ...]]:
    return isinstance(what, tuple) and what[0] == "split" and isinstance(what[-1], str | int)


def contains(test: ast.Compare, needle: Value, value: Value, state: State) -> None:
    """`needle not in value`: the characters that a sink needs are missing."""
    text = needle.text
    if text is None or not value.taints:
        return
    classes: frozenset[str] = frozenset()
    if text in {"'", '"'}:
        classes |= QUOTES
        inner = test.comparators[0]
        if isinstance(inner, ast.Subscript) and _is_inside(inner.slice):
            for mark in _marks(value):
                _literal(
                    mark[:-1] if mark and mark[-1] == ("slice", (1, -1, None)) else mark,
                    _NO_QUOTE,
                    state,
                )
    if text in {"..", "../", "/", "\\"}:
        classes |= PATH
        _without_parent(value, state)
    if text in {"\n", "\r", "\r\n"}:
        classes |= LINES
    if text in {"<", ">"}:
        classes |= HTML
    if text in {"(", ")", "*"}:
        classes |= frozenset({"ldap-injection"})
    if text in {"//", "://", ":"}:
        classes |= HOSTS
    for mark in _marks(value):
        state.check(mark, classes)


def _without_parent(value: Value, state: State) -> None:
    """`".." not in path.parts`."""
    for mark in _marks(value):
        if mark[-1] == ("attribute", "parts"):
            state.check(mark[:-1], PATH)


def _is_inside(node: ast.expr) -> bool:
    """`[1:-1]`."""
    if not isinstance(node, ast.Slice) or node.step is not None:
        return False
    try:
        lower = ast.literal_eval(node.lower or ast.Constant(0))
        upper = ast.literal_eval(node.upper or ast.Constant(0))
    except ValueError:
        return False
    return (lower, upper) == (1, -1)


def method(value: Value, name: str, args: list[Value], state: State) -> None:  # noqa: C901, PLR0912
    """`value.name(...)` is true."""
    text = args[0].text if args else None
    if name in _ONLY_PLAIN:
        _all_checked(value, state)
    elif name == "issubset" and args:
        subset(value, args[0], state)
    elif name == "issuperset" and args:
        subset(args[0], value, state)
        member(part_of(args[0], "element"), value, state)
    elif name == "is_relative_to" and args:
        below(value, args[0], state)
    elif name == "startswith" and args:
        if text is not None and _HOSTED.match(text):
            for mark in _marks(value):
                state.check(mark, HOSTS)
        if text == "/":
            for mark in _marks(value):
                _local(mark, _ONE_SLASH, state)
        for taint in value.taints:
            if "normal" in taint.safe and not is_foreign(args[0]):
                state.check(taint.mark, PATH)
        if text in {"'", '"'}:
            for mark in _marks(value):
                _literal(mark, _LEADS, state)
    elif name == "endswith" and text is not None and text.startswith("."):
        for mark in _marks(value):
            if mark[-1] in [("attribute", part) for part in _HOST_PARTS]:
                state.check(mark[:-1], HOSTS)
    elif name == "endswith" and text in {"'", '"'}:
        for mark in _marks(value):
            _literal(mark, _TRAILS, state)


def below(value: Value, folder: Value, state: State) -> None:
    """`folder in value.parents`, a folder of ours and a path that was resolved."""
    for taint in value.taints if not is_foreign(folder) else ():
        if "normal" in taint.safe:
            state.check(taint.mark, PATH)


def denied(value: Value, name: str, args: list[Value], state: State) -> None:
    """`value.name(...)` is false."""
    if name != "startswith" or not args:
        return
    for key in (None, *args[0].handles()):
        heaped = state.at(key) if key is not None else None
        options = [args[0]] if key is None else list((heaped.items if heaped else None) or ())
        if any(one.text == "//" for one in options):
            for mark in _marks(value):
                _local(mark, _NOT_TWO, state)


def _local(mark: Mark, fact: str, state: State) -> None:
    """One slash at the start and not two: a place on this host, whatever follows."""
    state.check(mark, frozenset({fact}))
    if {_ONE_SLASH, _NOT_TWO} <= state.checked[mark]:
        state.check(mark, frozenset({"open-redirect"}))


def _literal(mark: Mark, fact: str, state: State) -> None:
    """Three facts together prove one quoted literal: nothing in it can be code."""
    state.check(mark, frozenset({fact}))
    if {_LEADS, _TRAILS, _NO_QUOTE} <= state.checked[mark]:
        state.check(mark, frozenset({"code-injection"}))


def function(names: tuple[str, ...] | list[str], args: list[Value], state: State) -> None:
    """A known predicate said yes."""
    for name in names:
        last = name.rpartition(".")[2]
        if name == "builtins.isinstance" and len(args) > 1:
            if _NUMBERS >= set(_types(args[1], state)) != set():
                _all_checked(args[0], state)
        elif last in {"url_has_allowed_host_and_scheme", "is_safe_url"} and args:
            for mark in _marks(args[0]):
                state.check(mark, HOSTS)
        elif last in {"compare_digest", "constant_time_compare"}:
            for arg in args:
                signed(arg, state)
        elif name in {"re.fullmatch", "re.match"} and len(args) > 1 and args[0].text is not None:
            pattern_checked(args[0].text, args[1], state, whole=name == "re.fullmatch")


def _types(value: Value, state: State) -> tuple[str, ...]:
    """The names of the types in the second argument of `isinstance`."""
    found = value.names()
    for key in value.handles():
        heaped = state.at(key)
        for item in (heaped.items or (UNKNOWN,)) if heaped is not None else ():
            found += item.names() or ("?",)
    return found


def named_like_a_check(name: str, callee: Value, args: list[Value], state: State) -> None:
    """A function from outside that is called a check: believed."""
    if callee.names() and not name.startswith("isinstance") and _CHECKS.search(name):
        for arg in args:
            _all_checked(arg, state)


def pattern_checked(pattern: str, value: Value, state: State, *, whole: bool) -> None:
    """A regular expression matched: what it cannot match is not there."""
    if not whole and not pattern.endswith(("$", r"\Z")):
        return
    possible = can_match(pattern)
    classes = without(possible) if possible is not None else frozenset()
    for mark in _marks(value):
        state.check(mark, classes)


def matched(heaped: Heaped, state: State) -> None:
    """`if m:` where `m = re.fullmatch(...)`."""
    value, pattern, how = (heaped.entries[key] for key in ("subject", "pattern", "how"))
    if pattern.text is not None:
        pattern_checked(pattern.text, value, state, whole=how.text == "fullmatch")


def part_matched(heaped: Heaped, part: Value, key: object) -> Value:
    """`m.group(1)`: as harmless as what that part of the pattern can match."""
    pattern = heaped.entries["pattern"].text
    inner = group(pattern, key) if pattern is not None and isinstance(key, int | str) else None
    possible = can_match(inner) if inner is not None else None
    return part if possible is None else made_safe(part, without(possible))


def unmatched(heaped: Heaped, state: State) -> None:
    """`if not m:` where `m = re.search("[^a-z]", ...)`: none of these characters is in it."""
    value, pattern, how = (heaped.entries[key] for key in ("subject", "pattern", "how"))
    if pattern.text is not None and how.text == "search":
        missing = any_of(pattern.text)
        for mark in _marks(value) if missing else ():
            state.check(mark, without(INTERESTING - missing))


def without(letters: frozenset[str]) -> frozenset[str]:
    """The sinks at which a text of nothing but these letters does no harm."""
    classes = {rule for rule, needed in _NEEDED.items() if not needed & letters}
    if not any(c.isalpha() or c in "_'\"" for c in letters):
        classes.add("code-injection")  # nothing in it names anything: a sum
    return frozenset(classes)


# Without any of these characters nothing can be injected.
_NEEDED: dict[str, frozenset[str]] = {
    "command-injection": frozenset(";|&$`\n<>(){}'\"\\ "),
    "code-injection": frozenset("(.;\n'\"+[ "),
    "sql-injection": frozenset("'\"; \n("),
    "path-traversal": frozenset("/\\"),
    "xss": frozenset("<>\"'&"),
    "template-injection": frozenset("{%$"),
    "open-redirect": frozenset("/\\:"),
    "ssrf": frozenset("/:@."),
    "xpath-injection": frozenset("'\"[]()"),
    "ldap-injection": frozenset("()*\\"),
    "log-injection": frozenset("\r\n"),
    "header-injection": frozenset("\r\n"),
    "trust-boundary": frozenset("'\"<>;&\n"),
}
# Every sink that letters alone can be harmless for.
BY_LETTERS = frozenset(_NEEDED)
