"""What a patch makes of comparing: the tests' == means what the compared objects say it means."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from regreen.fixers.checks.change import FileChange, Reason
from regreen.fixers.checks.functions import constants, functions, without_docstring

_COMPARES = {
    "__eq__",
    "__ne__",
    "__hash__",
    "__bool__",
    "__lt__",
    "__le__",
    "__gt__",
    "__ge__",
    "__contains__",
    "__instancecheck__",
}

_BUILTIN = {"list", "dict", "set", "tuple", "str", "bytes", "int", "float", "frozenset", "object"}
_SPEAKS = {"__len__", "__iter__", "__getitem__", "__getattr__", "__getattribute__", "__float__", "__int__", "__round__", "__abs__", "__class__"}  # fmt: skip


def odd_comparisons(file: FileChange) -> Iterator[Reason]:
    """New or weakened `__eq__` and its kin, however they are written."""
    before = {name: ast.dump(node) for name, node in functions(file.old_tree)}
    for name, node in functions(file.new_tree):
        if name.rsplit(".", 1)[-1] not in _COMPARES or before.get(name) == ast.dump(node):
            continue
        body = without_docstring(node.body)
        always = (
            len(body) == 1 and isinstance(body[0], ast.Return) and bool(constants(body[0].value))
        )
        if always:
            what = "answers the same whatever is compared"
            yield Reason("special_case", f"{file.path}: {name} {what}", "deny")
        elif name not in before and file.old is not None:
            what = "is new; it decides what the tests' == means"
            yield Reason("special_case", f"{file.path}: {name} {what}")
    for name in Counter(_posing(file.new_tree)) - Counter(_posing(file.old_tree)):
        what = "poses as a plain value and answers for it"
        yield Reason("special_case", f"{file.path}: {name} {what}")
    for name in Counter(_handed_over(file.new_tree)) - Counter(_handed_over(file.old_tree)):
        what = "is set as a value; it decides what the tests' == means"
        yield Reason("special_case", f"{file.path}: {name} {what}")


def _posing(tree: ast.Module | None) -> Iterator[str]:
    """Classes made from a builtin type that say for themselves how long they are, what they hold or how they read."""
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.ClassDef) and any(_name(base) in _BUILTIN for base in node.bases):
            yield from (
                f"{node.name}.{part.name}"
                for part in node.body
                if isinstance(part, ast.FunctionDef) and part.name in _SPEAKS
            )


def _handed_over(tree: ast.Module | None) -> Iterator[str]:
    """Comparisons that are no `def`: `__eq__ = ...`, `C.__eq__ = ...`, `type("C", (), {"__eq__": ...})`, `setattr`."""
    for node in ast.walk(tree) if tree else ():
        match node:
            case ast.Assign(targets=targets):
                names = [_name(target) for target in targets]
            case ast.Dict(keys=keys):
                names = [str(key.value) for key in keys if isinstance(key, ast.Constant)]
            case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value=value), *_]):
                names = [str(value)]
            case _:
                continue
        # `__hash__ = None` and a parent's own method are how Python wants it written
        plain = isinstance(node, ast.Assign) and isinstance(
            node.value, ast.Constant | ast.Attribute | ast.Name
        )
        yield from (name for name in names if name in _COMPARES and not plain)


def _name(target: ast.expr) -> str:
    if isinstance(target, ast.Attribute):
        return target.attr
    return target.id if isinstance(target, ast.Name) else ""
