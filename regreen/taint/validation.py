"""What a check proves of the tainted value it looks at."""

from __future__ import annotations

import ast
import re
from collections.abc import Hashable, Iterable
from typing import TypeGuard

from regreen.taint.charset import (
    INTERESTING_CHARACTERS,
    characters_that_suffice_to_match,
    find_group_pattern,
    matchable_characters,
)
from regreen.taint.models import sources
from regreen.taint.models.sources import (
    ALL_SINKS,
    HOST_SINKS,
    HTML_SINKS,
    LINE_SINKS,
    PATH_SINKS,
    QUOTE_SINKS,
    SESSION_SINKS,
    TEXT_SINKS,
)
from regreen.taint.state import AbstractState, HeapObject
from regreen.taint.values import TOP, AbstractValue, AccessPath, mark_safe, project_part

# The folder that several paths have in common, as part of each.
COMMON_FOLDER = "common folder"
_NUMBER_TYPES = frozenset({"builtins.int", "builtins.float", "builtins.bool"})
_HOST_PARTS = ("netloc", "hostname", "host")
_ONLY_PLAIN = frozenset({"isdigit", "isalnum", "isnumeric", "isdecimal", "isidentifier", "isalpha"})
# One value of a request; the other marks are dictionaries, of which only the keys were checked.
_SINGLE_PARTS = frozenset({"key", "item", "attribute", "getlist", "split"})
_FIXED_HOST_URL = re.compile(r"https?://[^/]+/", re.IGNORECASE)
_LEADS, _TRAILS, _NO_QUOTE = "leads with a quote", "trails with a quote", "no quote inside"
_ONE_SLASH, _NOT_TWO = "leads with a slash", "does not lead with two slashes"
_CHECK_NAME = re.compile(
    r"(?i)^_?(?:is|has|check|validate|verify|ensure|assert|allowed?)_?\w*(?:safe|valid|allow|permit|trust|white|local|clean|legal)"
    r"|^_?(?:validate|sanitize|allowed)_\w+$|^url_has_allowed_host_and_scheme$|^is_safe_url$"
)


def _access_paths(value: AbstractValue) -> list[AccessPath]:
    return [taint.mark for taint in value.taints]


def is_foreign(value: AbstractValue) -> bool:
    """Whether the value can come from others than the user of the program, who controls arguments and environment."""
    return any(taint.origin in {"web", "network"} for taint in value.taints)


def _mark_all_checked(value: AbstractValue, state: AbstractState) -> None:
    for mark in _access_paths(value):
        if len(mark) > 1 and mark[-1] in [("attribute", part) for part in _HOST_PARTS]:
            state.mark_checked(mark[:-1], HOST_SINKS)
        elif len(mark) > 3 and mark[-1] == ("key", 0) and mark[-3] == ("attribute", "netloc"):
            state.mark_checked(mark[:-3], HOST_SINKS)  # `netloc.split(":")[0]`
        # Escaping letter by letter makes text harmless; it does not make it ours.
        state.mark_checked(mark, TEXT_SINKS if mark[-1] == "element" else ALL_SINKS)


def trust_decision_in_session(
    values: Iterable[AbstractValue], ways: Iterable[AbstractState]
) -> None:
    """A decision by what unknown code (a database, `authenticate`) made of a request: a session may hold what it says."""
    for taint in (
        t for value in values for t in value.taints if t.origin == "web" and not t.certain
    ):
        for way in ways:
            for length in range(1, len(taint.mark) + 1):
                way.mark_checked(taint.mark[:length], SESSION_SINKS)


def assume_authenticated(value: AbstractValue, other: AbstractValue, holds: AbstractState) -> None:
    """A field of a request equals what the program keeps: who sends it knows a secret, so the rest is theirs."""
    for mine, theirs in ((value, other), (other, value)):
        if theirs.known_constants is None and not theirs.taints:
            for mark in _access_paths(mine):
                holds.mark_checked(mark[:2], SESSION_SINKS)


def assume_equal(value: AbstractValue, other: AbstractValue, state: AbstractState) -> None:
    """`value == other`: as harmless as what it equals."""
    if not is_foreign(other):
        _mark_all_checked(value, state)
        _assume_in_folder(value, state)
    _assume_signed(other, state)
    for taint in other.taints:  # `basename(name) == name`: as harmless as what was made of it
        for mark in _access_paths(value):
            if taint.safe and taint.mark[: len(mark)] == mark:
                state.mark_checked(mark, taint.safe - {"normal"})


def _assume_in_folder(value: AbstractValue, state: AbstractState) -> None:
    """`commonpath([path, folder]) == folder`, where the path was resolved."""
    for taint in value.taints:
        if taint.mark[-1] == COMMON_FOLDER and "normal" in taint.safe:
            state.mark_checked(taint.mark[:-1], PATH_SINKS)


def _assume_signed(value: AbstractValue, state: AbstractState) -> None:
    """A message authentication code of ours was the one given: the message comes from who holds the key."""
    for name in value.external_names():
        made = sources.MAC_NAME.match(name)
        heap_object = state.find_object(("mac", made.group())) if made is not None else None
        if heap_object is not None:
            _mark_all_checked(heap_object.entries["of"], state)


def assume_empty_host(value: AbstractValue, other: AbstractValue, state: AbstractState) -> None:
    """`urlparse(x).netloc == ""`: a place on this host."""
    if other.single_text == "":
        for mark in _access_paths(value):
            if mark[-1] in [("attribute", part) for part in _HOST_PARTS]:
                state.mark_checked(mark[:-1], HOST_SINKS)


def assume_member(value: AbstractValue, container: AbstractValue, state: AbstractState) -> None:
    """`value in container`, a container of ours."""
    if container.single_text is not None:
        _assume_letters(value, container.single_text, state)
        return
    if not _holds_own_values(container, state):
        return
    letters = _letters_in_container(container, state)
    for taint in value.taints:
        if letters is not None and taint.mark[-1] == "element":
            state.mark_checked(taint.mark, sinks_safe_for_letters(letters))
        else:
            _mark_all_checked(AbstractValue(taints=frozenset({taint})), state)


def _holds_own_values(container: AbstractValue, state: AbstractState) -> bool:
    return not is_foreign(container) and not any(
        is_foreign(heap_object.any_element()) for heap_object in state.find_objects(container)
    )


def _letters_in_container(container: AbstractValue, state: AbstractState) -> frozenset[str] | None:
    """The letters that a set or a list holds; None when that is not all it may hold."""
    found: set[str] = set()
    for key in container.heap_keys():
        heap_object = state.find_object(key)
        if heap_object is None or heap_object.items is None:
            return None
        texts = [item.single_text for item in heap_object.items]
        if not texts or any(text is None or len(text) != 1 for text in texts):
            return None
        found.update(text for text in texts if text is not None)
    return frozenset(found) or None


def _assume_letters(value: AbstractValue, text: str, state: AbstractState) -> None:
    """A part of a text of ours has none but its letters."""
    for mark in _access_paths(value):
        state.mark_checked(mark, sinks_safe_for_letters(frozenset(text)))


def assume_empty_difference(value: AbstractValue, state: AbstractState) -> None:
    """`set(given) - allowed` is empty: each element is one of ours."""
    for heap_object in state.find_objects(value):
        if heap_object.kind == "difference":
            _mark_all_checked(heap_object.entries["of"], state)
            for mark, classes in _whole_text_facts(heap_object.entries["of"]).items():
                state.mark_checked(mark, classes)


def _whole_text_facts(element: AbstractValue) -> dict[AccessPath, frozenset[str]]:
    """The sinks for which a text of harmless letters is safe."""
    whole = [mark[:-1] for mark in _access_paths(element) if mark[-1] == "element"]
    return {mark: TEXT_SINKS for mark in whole if _is_single(mark)}


def _is_single(mark: AccessPath) -> bool:
    return mark[0] == "parameter" or (isinstance(mark[-1], tuple) and mark[-1][0] in _SINGLE_PARTS)


def assume_subset(value: AbstractValue, container: AbstractValue, state: AbstractState) -> None:
    """`set(given) <= allowed`."""
    for key in value.heap_keys():
        heap_object = state.find_object(key)
        if heap_object is None or heap_object.kind != "set" or not container.heap_keys():
            continue
        each = heap_object.any_element()
        assume_member(each, container, state)
        if _holds_own_values(container, state):
            letters = _letters_in_container(container, state)
            for mark, classes in _whole_text_facts(each).items():
                state.mark_checked(
                    mark, classes if letters is None else sinks_safe_for_letters(letters)
                )


def facts_of_every_element(
    many: AbstractValue, way: AbstractState
) -> dict[AccessPath, frozenset[str]]:
    """What was checked of every element of `many`: it holds for them, and for a text or list made of nothing else."""
    found: dict[AccessPath, frozenset[str]] = {}
    for mark in _access_paths(many):
        classes = way.checked.get((*mark, "element"), frozenset())
        if classes:
            found[*mark, "element"] = classes
            if _is_single(mark):
                found[mark] = classes
            if _is_split(mark[-1]):
                # Joined again by what it was split at.
                between = set(mark[-1][3]) if len(mark[-1]) > 3 else {" ", "\n"}
                found[mark[:-1]] = classes - {
                    r for r, needed in _NEEDED_CHARACTERS.items() if needed & between
                }
    return found


def _is_split(what: Hashable) -> TypeGuard[tuple[str, ...]]:
    return isinstance(what, tuple) and what[0] == "split" and isinstance(what[-1], str | int)


def assume_not_contained(
    test: ast.Compare, needle: AbstractValue, value: AbstractValue, state: AbstractState
) -> None:
    """`needle not in value`: the characters that a sink needs are missing."""
    text = needle.single_text
    if text is None or not value.taints:
        return
    classes: frozenset[str] = frozenset()
    if text in {"'", '"'}:
        classes |= QUOTE_SINKS
        inner = test.comparators[0]
        if isinstance(inner, ast.Subscript) and _is_inner_slice(inner.slice):
            for mark in _access_paths(value):
                _record_literal_fact(
                    mark[:-1] if mark and mark[-1] == ("slice", (1, -1, None)) else mark,
                    _NO_QUOTE,
                    state,
                )
    if text in {"..", "../", "/", "\\"}:
        classes |= PATH_SINKS
        _assume_no_parent_folder(value, state)
    if text in {"\n", "\r", "\r\n"}:
        classes |= LINE_SINKS
    if text in {"<", ">"}:
        classes |= HTML_SINKS
    if text in {"(", ")", "*"}:
        classes |= frozenset({"ldap-injection"})
    if text in {"//", "://", ":"}:
        classes |= HOST_SINKS
    for mark in _access_paths(value):
        state.mark_checked(mark, classes)


def _assume_no_parent_folder(value: AbstractValue, state: AbstractState) -> None:
    """`".." not in path.parts`."""
    for mark in _access_paths(value):
        if mark[-1] == ("attribute", "parts"):
            state.mark_checked(mark[:-1], PATH_SINKS)


def _is_inner_slice(node: ast.expr) -> bool:
    """`[1:-1]`."""
    if not isinstance(node, ast.Slice) or node.step is not None:
        return False
    try:
        lower = ast.literal_eval(node.lower or ast.Constant(0))
        upper = ast.literal_eval(node.upper or ast.Constant(0))
    except ValueError:
        return False
    return (lower, upper) == (1, -1)


def assume_method_true(  # noqa: C901, PLR0912
    value: AbstractValue, name: str, args: list[AbstractValue], state: AbstractState
) -> None:
    """`value.name(...)` is true."""
    text = args[0].single_text if args else None
    if name in _ONLY_PLAIN:
        _mark_all_checked(value, state)
    elif name == "issubset" and args:
        assume_subset(value, args[0], state)
    elif name == "issuperset" and args:
        assume_subset(args[0], value, state)
        assume_member(project_part(args[0], "element"), value, state)
    elif name == "is_relative_to" and args:
        assume_below_folder(value, args[0], state)
    elif name == "startswith" and args:
        if text is not None and _FIXED_HOST_URL.match(text):
            for mark in _access_paths(value):
                state.mark_checked(mark, HOST_SINKS)
        if text == "/":
            for mark in _access_paths(value):
                _record_local_fact(mark, _ONE_SLASH, state)
        for taint in value.taints:
            if "normal" in taint.safe and not is_foreign(args[0]):
                state.mark_checked(taint.mark, PATH_SINKS)
        if text in {"'", '"'}:
            for mark in _access_paths(value):
                _record_literal_fact(mark, _LEADS, state)
    elif name == "endswith" and text is not None and text.startswith("."):
        for mark in _access_paths(value):
            if mark[-1] in [("attribute", part) for part in _HOST_PARTS]:
                state.mark_checked(mark[:-1], HOST_SINKS)
    elif name == "endswith" and text in {"'", '"'}:
        for mark in _access_paths(value):
            _record_literal_fact(mark, _TRAILS, state)


def assume_below_folder(value: AbstractValue, folder: AbstractValue, state: AbstractState) -> None:
    """`folder in value.parents`, a folder of ours and a path that was resolved."""
    for taint in value.taints if not is_foreign(folder) else ():
        if "normal" in taint.safe:
            state.mark_checked(taint.mark, PATH_SINKS)


def assume_method_false(
    value: AbstractValue, name: str, args: list[AbstractValue], state: AbstractState
) -> None:
    """`value.name(...)` is false."""
    if name != "startswith" or not args:
        return
    for key in (None, *args[0].heap_keys()):
        heap_object = state.find_object(key) if key is not None else None
        options = (
            [args[0]] if key is None else list((heap_object.items if heap_object else None) or ())
        )
        if any(option.single_text == "//" for option in options):
            for mark in _access_paths(value):
                _record_local_fact(mark, _NOT_TWO, state)


def _record_local_fact(mark: AccessPath, fact: str, state: AbstractState) -> None:
    """One slash at the start and not two: a place on this host, whatever follows."""
    state.mark_checked(mark, frozenset({fact}))
    if {_ONE_SLASH, _NOT_TWO} <= state.checked[mark]:
        state.mark_checked(mark, frozenset({"open-redirect"}))


def _record_literal_fact(mark: AccessPath, fact: str, state: AbstractState) -> None:
    """Three facts together prove one quoted literal: nothing in it can be code."""
    state.mark_checked(mark, frozenset({fact}))
    if {_LEADS, _TRAILS, _NO_QUOTE} <= state.checked[mark]:
        state.mark_checked(mark, frozenset({"code-injection"}))


def assume_predicate_true(
    names: tuple[str, ...] | list[str], args: list[AbstractValue], state: AbstractState
) -> None:
    """Apply what a known predicate implies when it is true."""
    for name in names:
        last = name.rpartition(".")[2]
        if name == "builtins.isinstance" and len(args) > 1:
            if _NUMBER_TYPES >= set(_isinstance_types(args[1], state)) != set():
                _mark_all_checked(args[0], state)
        elif last in {"url_has_allowed_host_and_scheme", "is_safe_url"} and args:
            for mark in _access_paths(args[0]):
                state.mark_checked(mark, HOST_SINKS)
        elif last in {"compare_digest", "constant_time_compare"}:
            for arg in args:
                _assume_signed(arg, state)
        elif (
            name in {"re.fullmatch", "re.match"}
            and len(args) > 1
            and args[0].single_text is not None
        ):
            assume_pattern(args[0].single_text, args[1], state, whole=name == "re.fullmatch")


def _isinstance_types(value: AbstractValue, state: AbstractState) -> tuple[str, ...]:
    """The names of the types in the second argument of `isinstance`."""
    found = value.external_names()
    for key in value.heap_keys():
        heap_object = state.find_object(key)
        for item in (heap_object.items or (TOP,)) if heap_object is not None else ():
            found += item.external_names() or ("?",)
    return found


def assume_named_check(
    name: str, callee: AbstractValue, args: list[AbstractValue], state: AbstractState
) -> None:
    """A function from outside that is called a check: believed."""
    if callee.external_names() and not name.startswith("isinstance") and _CHECK_NAME.search(name):
        for arg in args:
            _mark_all_checked(arg, state)


def assume_pattern(
    pattern: str, value: AbstractValue, state: AbstractState, *, whole: bool
) -> None:
    """A regular expression matched: what it cannot match is not there."""
    if not whole and not pattern.endswith(("$", r"\Z")):
        return
    possible = matchable_characters(pattern)
    classes = sinks_safe_for_letters(possible) if possible is not None else frozenset()
    for mark in _access_paths(value):
        state.mark_checked(mark, classes)


def assume_match(heap_object: HeapObject, state: AbstractState) -> None:
    """`if m:` where `m = re.fullmatch(...)`."""
    value, pattern, how = (heap_object.entries[key] for key in ("subject", "pattern", "how"))
    if pattern.single_text is not None:
        assume_pattern(pattern.single_text, value, state, whole=how.single_text == "fullmatch")


def mark_safe_by_group(heap_object: HeapObject, part: AbstractValue, key: object) -> AbstractValue:
    """`m.group(1)`: as harmless as what that part of the pattern can match."""
    pattern = heap_object.entries["pattern"].single_text
    inner = (
        find_group_pattern(pattern, key)
        if pattern is not None and isinstance(key, int | str)
        else None
    )
    possible = matchable_characters(inner) if inner is not None else None
    return part if possible is None else mark_safe(part, sinks_safe_for_letters(possible))


def assume_no_match(heap_object: HeapObject, state: AbstractState) -> None:
    """`if not m:` where `m = re.search("[^a-z]", ...)`: none of these characters is in it."""
    value, pattern, how = (heap_object.entries[key] for key in ("subject", "pattern", "how"))
    if pattern.single_text is not None and how.single_text == "search":
        missing = characters_that_suffice_to_match(pattern.single_text)
        for mark in _access_paths(value) if missing else ():
            state.mark_checked(mark, sinks_safe_for_letters(INTERESTING_CHARACTERS - missing))


def sinks_safe_for_letters(letters: frozenset[str]) -> frozenset[str]:
    """The sinks at which a text of nothing but these letters does no harm."""
    classes = {rule for rule, needed in _NEEDED_CHARACTERS.items() if not needed & letters}
    if not any(c.isalpha() or c in "_'\"" for c in letters):
        classes.add("code-injection")  # nothing in it names anything: a sum
    return frozenset(classes)


# Without any of these characters nothing can be injected.
_NEEDED_CHARACTERS: dict[str, frozenset[str]] = {
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
BY_LETTERS = frozenset(_NEEDED_CHARACTERS)
