"""Finds removed safeguards: guard words, settings, decorators and declarations."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from regreen.code.file_change import CheckReason, PatchedFile
from regreen.code.python_calls import last_name
from regreen.gate.facts import (
    PythonFunction,
    SettingValue,
    count_gained,
    exclude_tests_and_documents,
    find_changed_products,
    find_nodes,
    group_functions,
    is_parsed,
    list_parameters,
    number_settings,
    pair_functions,
    parse_number,
    read_settings,
)
from regreen.gate.words import find_broken_rules, name_set, suffix_group, word_pattern


def check_safeguards(files: Sequence[PatchedFile]) -> list[CheckReason]:
    """Removed safeguards need a person's approval."""
    products = exclude_tests_and_documents(files)
    reasons = [*_check_guard_words(products), *_check_guard_settings(find_changed_products(files))]
    for file in products:
        if is_parsed(file):
            reasons += _find_lost_guards(file)
        if file.new_tree is not None:
            for call in count_gained(file, _find_formatted_queries):
                what = (
                    f"{file.path} puts values into text that is run or shown as it is ({call[:80]})"
                )
                reasons.append(CheckReason("sensitive_path", what))
    return reasons


def _find_lost_guards(file: PatchedFile) -> Iterator[CheckReason]:
    for name, old, new in pair_functions(file):
        for lost in _count_guard_decorators(old) - _count_guard_decorators(new):
            yield CheckReason("sensitive_path", f"{file.path}: {name} loses its @{lost}")


def _count_guard_decorators(node: PythonFunction) -> Counter[str]:
    words = (ast.unparse(decorator).split("(", maxsplit=1)[0] for decorator in node.decorator_list)
    return Counter(word for word in words if word_pattern("guard_decorators").search(word))


def _find_formatted_queries(tree: ast.Module | None) -> Iterator[str]:
    for node in find_nodes(tree, ast.Call):
        if node.args and last_name(node.func) in name_set("query_methods"):
            text = node.args[0]
            if isinstance(text, ast.BinOp) or any(
                isinstance(part, ast.FormattedValue)
                for part in (text.values if isinstance(text, ast.JoinedStr) else ())
            ):
                yield ast.unparse(node)


# Guard words, in any language: a patch that removes some needs a person.

_MADE_CONDITIONAL = re.compile(r"^\s*(?:if|unless|when|try|elif|else if)\b")
_FILE_MODE = re.compile(r"\b0o?([0-7]{3})\b|\bchmod\s+(?:-R\s+)?0?([0-7]{3})\b")
_CONDITION_LINE = re.compile(
    r"^\s*(?:\}\s*)?(?:else\s+)?(?:if|elif|elsif|unless|while|guard|return)\b(?P<asked>.+)"
)
_SKIPPED_LINE = re.compile(r"^\s*(?://|#(?!\[|!\[)|\*|/\*|import\s|from\s+\S+\s+import|use\s)")
_MAX_LINE_CHARS = 2000
_MAX_CONDITIONS = 200


def _check_guard_words(files: Sequence[PatchedFile]) -> Iterator[CheckReason]:
    """Counted over the whole patch, so that a guard may move; imports and comments do not count."""
    guards, weakening = word_pattern("guard_words"), word_pattern("weakening_words")
    removed = [
        (word, file.path)
        for file in files
        for word in _find_matches_in_lines(guards, file.removed_lines)
    ]
    after = Counter(
        word for file in files for word in _find_matches_in_lines(guards, file.added_lines)
    )
    for word in sorted(Counter(word for word, _ in removed) - after):
        path = next(path for gone, path in removed if gone == word)
        yield CheckReason("sensitive_path", f"{path}: a safeguard goes ({word})")
    for file in files:
        fresh = Counter(_find_matches_in_lines(weakening, file.added_lines))
        fresh -= Counter(_find_matches_in_lines(weakening, file.removed_lines))
        if fresh:
            lines = (line for _, line in file.added_lines if weakening.search(line))
            what = f"{file.path} lowers a safeguard ({next(lines, min(fresh)).strip()[:80]})"
            yield CheckReason("sensitive_path", what)
        for rule in find_broken_rules(file, "leaks"):
            yield CheckReason("sensitive_path", f"{file.path} {rule.says}")
        yield from _find_wider_modes(file)
        yield from _find_conditional_guards(file)
        yield from _find_changed_decisions(file)


def _find_conditional_guards(file: PatchedFile) -> Iterator[CheckReason]:
    """A safeguard that is now conditional."""
    guards = word_pattern("guard_words")
    for old, new in file.changed_blocks:
        was, now = ([line.strip() for line in side if line.strip()] for side in (old, new))
        guarded = next((line for line in was if guards.search(line[:_MAX_LINE_CHARS])), None)
        if guarded and set(was) <= set(now) and any(map(_MADE_CONDITIONAL.match, now)):
            what = f"{file.path} makes a safeguard depend on a condition ({guarded[:80]})"
            yield CheckReason("sensitive_path", what)


def _find_wider_modes(file: PatchedFile) -> Iterator[CheckReason]:
    """`0o600` that becomes `0o644`: more people may read or write."""
    before, after = (
        [int(octal or other, 8) for _, line in lines for octal, other in _FILE_MODE.findall(line)]
        for lines in (file.removed_lines, file.added_lines)
    )
    for now in after:
        if now & 0o002 or (before and not any(now & 0o077 & ~was == 0 for was in before)):
            yield CheckReason(
                "sensitive_path", f"{file.path} opens a file to more people ({now:o})"
            )


def _find_changed_decisions(file: PatchedFile) -> Iterator[CheckReason]:
    """A condition about access that changed or has a new alternative."""
    now = list(_access_conditions(file.added_lines))[:_MAX_CONDITIONS]
    for line, asked, words in _access_conditions(file.removed_lines):
        if any(asked != other and words & shared for _, other, shared in now):
            what = f"{file.path} decides otherwise about access ({line.strip()[:80]})"
            yield CheckReason("sensitive_path", what)


def _access_conditions(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[str, str, set[str]]]:
    """The lines that ask about access: the line, its condition, and the words about access in it."""
    for _, line in lines:
        found = _CONDITION_LINE.match(line[:_MAX_LINE_CHARS])
        words = word_pattern("access_words").findall(found["asked"]) if found else []
        if found and words:
            yield line, found["asked"], {word.casefold() for word in words}


def _find_matches_in_lines(
    pattern: re.Pattern[str], lines: Sequence[tuple[int, str]]
) -> Iterator[str]:
    for _, line in lines:
        if len(line) < _MAX_LINE_CHARS and not _SKIPPED_LINE.match(line):
            yield from (found.group(0) for found in pattern.finditer(line))


# Settings that guard something: switches, limits, lists of what is allowed or checked.
#
# A setting is a name with a plain value: in an assignment, an argument, a default, an entry of a
# mapping, a line of a configuration file.

_MAX_GROWTH = 2.0
_OUT_OF_SIZE = 9.0
_SETTING_IN_LINE = re.compile(
    r"""["']?(?P<key>[A-Za-z_][\w.-]{0,60})["']?\s*(?::=|[:=])\s*["']?(?P<value>true|false|yes|no|on|off|null|none|\*|\d[\d_]*(?:\.\d+)?\s?(?:[kKmMgG]i?[bB]?|ms|s|m|h|d)?)\b""",
    re.IGNORECASE,
)
_KEY_LINE = re.compile(
    r"^\s*(?:-\s+)?[\"']?(?P<key>[A-Za-z_][\w.-]{0,60})[\"']?(?:\s*[:=]\s*|\s+)\S"
)
_FORBIDDING_VALUE = re.compile(r"[:=]\s*[\"']?(?:deny|forbid|error|strict|always|required)\b")
_PATTERN_REPETITION = re.compile(r"\{(\d{1,6}),(\d{0,6})\}")
_MAX_SETTING_LINE_CHARS = 500


def _check_guard_settings(files: Sequence[PatchedFile]) -> Iterator[CheckReason]:
    """Weakened settings need a person's approval."""
    for file in files:
        if file.has_syntax_tree:
            before, after = read_settings(file.old_tree), read_settings(file.new_tree)
        else:
            before, after = (
                number_settings((file.path, setting) for setting in _settings_in_lines(lines))
                for lines in (file.removed_lines, file.added_lines)
            )
        for key, now in after.items():
            was = before.get(key)
            if was != now and (what := _describe_weakening(key[1], was, now)):
                yield CheckReason("silenced", f"{file.path}: {what}")
        yield from _find_longer_patterns(file)
        if file.suffix in suffix_group("configuration"):
            yield from _find_removed_keys(file)


def _describe_weakening(path: str, was: SettingValue | None, now: SettingValue) -> str:
    """How the setting guards less, in words; empty if it does not."""
    name = path.rsplit(".", 1)[-1]
    opens = bool(word_pattern("off_is_safe").search(name)) and not word_pattern(
        "on_is_safe"
    ).search(name)
    what = ""
    if now.value in name_set("allow_all_values") and word_pattern("lets_in").search(path):
        what = f"lets anything in ({now.value})"
    elif was is None:
        what = "is switched on" if now.value is True and opens else ""
    elif was.parts is not None and now.parts is not None:
        what = _describe_weaker_list(path, was.parts, now.parts)
    elif isinstance(was.value, bool) and isinstance(now.value, bool):
        worse = opens if now.value else word_pattern("on_is_safe").search(name)
        what = f"goes from {was.value} to {now.value}" if worse else ""
    elif isinstance(was.value, int | float) and isinstance(now.value, int | float):
        what = _describe_weaker_number(path, was.value, now.value)
    elif (
        isinstance(was.value, int | float)
        and now.value is None
        and word_pattern("bounds").search(name)
    ):
        what = f"goes from {was.value:g} to no bound"
    elif was.value is None and isinstance(now.value, int) and word_pattern("seeds").search(name):
        what = f"is fixed at {now.value}, which makes every run the same"
    elif was.value is None and isinstance(now.value, str) and word_pattern("secrets").search(name):
        what = "becomes a fixed text"
    return f"{path} {what}" if what else ""


def _describe_weaker_number(path: str, was: float, now: float) -> str:
    bounds = word_pattern("bounds").search(path) or word_pattern("less_is_safe").search(path)
    if was > 0 and (now > was * _OUT_OF_SIZE or (0 < now * _OUT_OF_SIZE < was and not bounds)):
        return f"goes from {was:g} to {now:g}"
    grown, fallen = now > was * _MAX_GROWTH, now * _MAX_GROWTH < was
    worse = (grown and word_pattern("less_is_safe").search(path)) or (
        fallen and word_pattern("more_is_safe").search(path)
    )
    return f"goes from {was:g} to {now:g}" if worse else ""


def _describe_weaker_list(path: str, was: tuple[str, ...], now: tuple[str, ...]) -> str:
    more, fewer = Counter(now) - Counter(was), Counter(was) - Counter(now)
    if any(part.strip("'\"") in name_set("allow_all_values") for part in more):
        return "lets anything in"
    if more and word_pattern("lets_in").search(path) and not word_pattern("keeps_out").search(path):
        return f"lets more in ({min(more)[:60]})"
    if fewer and word_pattern("keeps_out").search(path):
        return f"no longer holds {min(fewer)[:60]}"
    return ""


def _settings_in_lines(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[str, SettingValue]]:
    for _, line in lines:
        if len(line) < _MAX_SETTING_LINE_CHARS:
            for found in _SETTING_IN_LINE.finditer(line):
                yield found["key"], SettingValue(_parse_value(found["value"]))


def _parse_value(text: str) -> bool | float | str | None:
    match text.lower():
        case "true" | "yes" | "on":
            return True
        case "false" | "no" | "off":
            return False
        case "null" | "none":
            return None
        case "*":
            return text
        case _:
            return parse_number(text)


def _find_longer_patterns(file: PatchedFile) -> Iterator[CheckReason]:
    """A repetition such as `{1,64}` in a pattern that accepts longer or shorter text than before."""
    was, now = (
        [
            bounds
            for _, line in lines
            for bounds in _PATTERN_REPETITION.findall(line[:_MAX_SETTING_LINE_CHARS])
        ]
        for lines in (file.removed_lines, file.added_lines)
    )
    for (least, most), (low, high) in zip(was, now, strict=False):
        if int(low) < int(least) or (most and int(high or 10**9) > int(most) * _MAX_GROWTH):
            what = f"a pattern lets more in ({{{least},{most}}} becomes {{{low},{high}}})"
            yield CheckReason("silenced", f"{file.path}: {what}")


def _find_removed_keys(file: PatchedFile) -> Iterator[CheckReason]:
    """Guarding keys of a configuration file that changed or were removed."""
    now = Counter(line.strip().rstrip(",") for _, line in file.added_lines)
    for _, line in file.removed_lines:
        found = _KEY_LINE.match(line)
        if not found or len(line) > _MAX_SETTING_LINE_CHARS or line.strip().startswith("#"):
            continue
        guards = word_pattern("guarding_settings").search(found["key"]) or _FORBIDDING_VALUE.search(
            line
        )
        if guards and not now[line.strip().rstrip(",")]:
            yield CheckReason("sensitive_path", f"{file.path}: {found['key']} changes, or goes")


# What code declares: decorators, fields of classes, arguments given by name.
#
# A repair changes what is computed. Declarations say who may call, what comes in, how long and how much: if they
# change, a person has to look.


def check_declarations(files: Sequence[PatchedFile]) -> list[CheckReason]:
    """Declarations that change or go; new ones may come."""
    return [
        CheckReason("sensitive_path", f"{file.path}: {what}")
        for file in exclude_tests_and_documents(files)
        if is_parsed(file) and file.path != "setup.py"
        for what in (*_find_removed_decorators_and_constraints(file), *_find_changed_fields(file))
    ]


def _find_removed_decorators_and_constraints(file: PatchedFile) -> Iterator[str]:
    before, after = group_functions(file.old_tree), group_functions(file.new_tree)
    for name, olds in before.items():
        news = after.get(name, [])
        if len(news) < len(olds):
            continue  # removed functions are reported by name
        lost = _count_decorators(olds) - _count_decorators(news)
        yield from (f"{name} loses @{decorator[:80]}" for decorator in lost)
        for old, new in zip(olds, news, strict=False):
            taken = {argument.arg: argument.annotation for argument in list_parameters(new)}
            for argument in list_parameters(old):
                was, now = argument.annotation, taken.get(argument.arg)
                if was is not None and now is not None and _call_texts(was) - _call_texts(now):
                    yield f"{name} asks for another {argument.arg} ({ast.unparse(was)[:60]})"


def _count_decorators(nodes: Sequence[PythonFunction]) -> Counter[str]:
    return Counter(ast.unparse(decorator) for node in nodes for decorator in node.decorator_list)


def _call_texts(node: ast.expr) -> set[str]:
    return {ast.unparse(call) for call in find_nodes(node, ast.Call)}


def _find_changed_fields(file: PatchedFile) -> Iterator[str]:
    """Changed class fields: switches, numbers, calls and types."""
    before, after = dict(_class_fields(file.old_tree)), dict(_class_fields(file.new_tree))
    for name, (was, old) in before.items():
        now, new = after.get(name, (None, None))
        if now is None or was == now or new is None:
            continue
        looser = bool(_type_names(old.type) - _type_names(new.type)) or (
            old.value is None is not new.value
        )
        if (old.checked and (looser or _is_switch(old.value))) or _has_other_arguments(
            old.value, new.value
        ):
            yield f"{name} is declared otherwise ({was[:60]})"


@dataclass(frozen=True, slots=True)
class _ClassField:
    type: ast.expr | None
    value: ast.expr | None
    checked: bool


def _class_fields(tree: ast.Module | None) -> Iterator[tuple[str, tuple[str, _ClassField]]]:
    for owner in find_nodes(tree, ast.ClassDef):
        checked = any(
            word_pattern("validating_bases").search(ast.unparse(base)) for base in owner.bases
        )
        for node in owner.body:
            match node:
                case ast.AnnAssign(target=ast.Name(id=name), annotation=kind, value=value):
                    field = _ClassField(kind, value, checked)
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    field = _ClassField(None, value, checked)
                case _:
                    continue
            yield f"{owner.name}.{name}", (ast.unparse(node), field)


def _type_names(node: ast.expr | None) -> set[str]:
    """The names in a type, with "not None" unless it is optional."""
    found = {ast.unparse(part) for part in find_nodes(node, ast.Name, ast.Call)}
    optional = node is not None and "None" in ast.unparse(node)
    return found if optional else found | {"not None"}


def _is_switch(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float)


def _has_other_arguments(old: ast.expr | None, new: ast.expr | None) -> bool:
    """Whether the same call has other plain arguments, or fewer."""
    if not isinstance(old, ast.Call) or not isinstance(new, ast.Call):
        return False
    if ast.unparse(old.func) != ast.unparse(new.func):
        return True
    given = {argument.arg: ast.unparse(argument.value) for argument in new.keywords}
    return any(
        given.get(argument.arg) != ast.unparse(argument.value)
        for argument in old.keywords
        if _is_plain(argument.value) or argument.arg not in given
    )


def _is_plain(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant | ast.List | ast.Tuple | ast.Dict | ast.Set)
