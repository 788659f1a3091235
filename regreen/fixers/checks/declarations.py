"""What code declares: decorators, fields of classes, arguments given by name.

A repair mends what is computed. What is declared says who may call, what comes in, how long and how much: where that
changes, a person looks.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from regreen.fixers.checks.change import FileChange, Reason
from regreen.fixers.checks.functions import Function, functions
from regreen.fixers.checks.paths import is_document, is_test

# Classes whose fields check what comes in.
_CHECKS = re.compile(r"Model|Schema|Settings|Form|Serializer|Struct|Document|Resource|Table")


def declarations_kept(files: Sequence[FileChange]) -> list[Reason]:
    """Declarations that change or go; new ones may come."""
    return [
        Reason("sensitive_path", f"{file.path}: {what}")
        for file in files
        if not is_test(file.path) and not is_document(file.path) and file.path != "setup.py"
        if file.old_tree is not None and file.new_tree is not None
        for what in (*_signatures(file), *_fields(file), *_named_arguments(file))
    ]


def _signatures(file: FileChange) -> Iterator[str]:
    before, after = _by_name(file.old_tree), _by_name(file.new_tree)
    for name, olds in before.items():
        news = after.get(name, [])
        if len(news) < len(olds):
            continue  # functions that go are told of by their names
        lost = _decorators(olds) - _decorators(news)
        yield from (f"{name} loses @{one[:80]}" for one in lost)
        for old, new in zip(olds, news, strict=False):
            taken = {one.arg: one.annotation for one in _arguments(new)}
            for argument in _arguments(old):
                was, now = argument.annotation, taken.get(argument.arg)
                if was is not None and now is not None and _calls(was) - _calls(now):
                    yield f"{name} asks for another {argument.arg} ({ast.unparse(was)[:60]})"


def _by_name(tree: ast.Module | None) -> dict[str, list[Function]]:
    """A property and its setter go by one name."""
    found: dict[str, list[Function]] = {}
    for name, node in functions(tree):
        found.setdefault(name, []).append(node)
    return found


def _decorators(nodes: Sequence[Function]) -> Counter[str]:
    return Counter(ast.unparse(one) for node in nodes for one in node.decorator_list)


def _arguments(node: Function) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _calls(node: ast.expr) -> set[str]:
    return {ast.unparse(one) for one in ast.walk(node) if isinstance(one, ast.Call)}


def _fields(file: FileChange) -> Iterator[str]:
    """Fields of classes: switches and numbers, what is made by a call, and the types of what comes in."""
    before, after = dict(_declared(file.old_tree)), dict(_declared(file.new_tree))
    for name, (was, old) in before.items():
        now, new = after.get(name, (None, None))
        if now is None or was == now or new is None:
            continue
        looser = bool(_names(old.type) - _names(new.type)) or (old.value is None is not new.value)
        if (old.checked and (looser or _is_switch(old.value))) or _given_less(old.value, new.value):
            yield f"{name} is declared otherwise ({was[:60]})"


@dataclass(frozen=True, slots=True)
class _Field:
    type: ast.expr | None
    value: ast.expr | None
    checked: bool


def _declared(tree: ast.Module | None) -> Iterator[tuple[str, tuple[str, _Field]]]:
    for owner in ast.walk(tree) if tree else ():
        if not isinstance(owner, ast.ClassDef):
            continue
        checked = any(_CHECKS.search(ast.unparse(base)) for base in owner.bases)
        for node in owner.body:
            match node:
                case ast.AnnAssign(target=ast.Name(id=name), annotation=kind, value=value):
                    field = _Field(kind, value, checked)
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    field = _Field(None, value, checked)
                case _:
                    continue
            yield f"{owner.name}.{name}", (ast.unparse(node), field)


def _names(node: ast.expr | None) -> set[str]:
    """The names that a type consists of, and None where it may be missing (as one name fewer)."""
    found = (
        {ast.unparse(one) for one in ast.walk(node) if isinstance(one, ast.Name | ast.Call)}
        if node
        else set()
    )
    optional = node is not None and "None" in ast.unparse(node)
    return found if optional else found | {"not None"}


def _is_switch(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float)


def _given_less(old: ast.expr | None, new: ast.expr | None) -> bool:
    """The same call with other plain arguments, or with fewer of them."""
    if not isinstance(old, ast.Call) or not isinstance(new, ast.Call):
        return False
    if ast.unparse(old.func) != ast.unparse(new.func):
        return True
    given = {one.arg: ast.unparse(one.value) for one in new.keywords}
    return any(
        given.get(one.arg) != ast.unparse(one.value)
        for one in old.keywords
        if _is_plain(one.value) or one.arg not in given
    )


def _named_arguments(file: FileChange) -> Iterator[str]:
    """Plain values given by name that change or go, of calls that stay."""
    before, after = _calls_by_name(file.old_tree), _calls_by_name(file.new_tree)
    for callee, was in before.items():
        lost, gained = was - after.get(callee, Counter()), after.get(callee, Counter()) - was
        for call in lost:
            if gained and not any(set(call) <= set(one) for one in gained):
                kept = {pair for one in gained for pair in one}
                gone = next((pair for pair in call if pair not in kept), call[0])
                yield f"{callee}(...) is no longer given {gone[:60]}"


def _calls_by_name(tree: ast.Module | None) -> dict[str, Counter[tuple[str, ...]]]:
    found: dict[str, Counter[tuple[str, ...]]] = {}
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Call):
            given = tuple(
                f"{one.arg}={ast.unparse(one.value)}"
                for one in node.keywords
                if one.arg and _is_plain(one.value) and not _is_number(one.value)
            )
            if given:
                found.setdefault(ast.unparse(node.func), Counter())[given] += 1
    return found


def _is_number(node: ast.expr) -> bool:
    """Numbers are held against each other as settings."""
    return isinstance(node, ast.Constant) and type(node.value) in {int, float}


def _is_plain(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant | ast.List | ast.Tuple | ast.Dict | ast.Set)
