"""Finds what a patch replaces or hides: modules, parts of modules, comparisons, characters."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Sequence

from regreen.code.file_change import CheckReason, PatchedFile
from regreen.code.paths import is_document, is_test
from regreen.code.python_calls import is_package, last_name
from regreen.gate.facts import (
    count_gained,
    drop_docstring,
    find_new_nodes,
    find_nodes,
    literal_parts,
    pair_functions,
    walk_functions,
)
from regreen.gate.words import find_broken_rules, name_set
from regreen.languages.python.imports import shadowed_module, top_module

_IMPORT_ROOTS = ("src/", "lib/", "tests/", "test/")


def check_shadowing(files: Sequence[PatchedFile], tree: Sequence[str]) -> list[CheckReason]:
    """No new module takes the name of a standard module, of a test tool or of a well-known library."""
    reasons: list[CheckReason] = []
    gone = {file.path for file in files if file.new is None}
    for file in files:
        twin = shadowed_module(file.path)
        if file.old is None and twin in set(tree) - gone:
            what = f"{file.path} stands in front of {twin}, which nobody imports any more"
            reasons.append(CheckReason("special_case", what, "deny"))
        same = [
            path for path in tree if path != file.path and _file_name(path) == _file_name(file.path)
        ]
        if file.old is None and same and is_test(file.path) and not is_package(file.path):
            what = f"{file.path} has the name of the test {same[0]}, in whose place it may be run"
            reasons.append(CheckReason("special_case", what))
        name = _module_name(file.path) if file.old is None and file.new is not None else ""
        if not name or any(path.startswith((f"{name}/", f"src/{name}/")) for path in tree):
            continue
        if name in name_set("test_tool_modules") or name in sys.stdlib_module_names:
            what = f"{file.path} hides the module {name}, which others import by that name"
            reasons.append(CheckReason("special_case", what, "deny"))
        elif name in name_set("library_modules"):
            what = f"{file.path} stands in front of the library {name}"
            reasons.append(CheckReason("special_case", what))
    return reasons


def _file_name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _module_name(path: str) -> str:
    """The name by which a file at an import root is imported; empty for files inside packages."""
    for root in _IMPORT_ROOTS:
        path = path.removeprefix(root)
    match path.split("/"):
        case ["node_modules", folder, *_]:
            return folder
        case _:
            return top_module(path)


def check_hidden_text(files: Sequence[PatchedFile]) -> list[CheckReason]:
    """No hidden characters that make a line read differently from how it runs."""
    return [
        CheckReason("special_case", f"{file.path}:{rule.number} {rule.says}", "deny")
        for file in files
        if not is_document(file.path)
        for rule in find_broken_rules(file, "hidden")
    ]


# Monkeypatches: parts of other modules that a patch replaces at run time.


def find_monkeypatches(file: PatchedFile) -> Iterator[CheckReason]:
    """Assignments into modules: `time.time = ...`, `setattr(random, ...)`."""
    for node in find_new_nodes(file, _find_module_writes):
        what = f"{file.path}:{node.lineno} replaces a part of another module at run time"
        yield CheckReason("special_case", what)


def _find_module_writes(tree: ast.Module | None) -> Iterator[ast.stmt | ast.expr]:
    modules = _imported_names(find_nodes(tree, ast.Import)) & name_set("patched_modules")
    others = _imported_names(tree.body if tree else ()) - modules
    for statement in tree.body if tree else ():
        # at import time into an imported object: it changes the program for every later importer
        if isinstance(statement, ast.Assign) and any(
            isinstance(target, ast.Attribute) and _root_name(target) in others
            for target in statement.targets
        ):
            yield statement
    for node in find_nodes(tree, ast.Assign, ast.Call):
        match node:
            case ast.Assign(targets=targets):
                if any(
                    _writes_into_module(target, modules) or _writes_through_namespace(target)
                    for target in targets
                ):
                    yield node
            case ast.Call(func=ast.Name(id="setattr"), args=[owner, *_]):
                if _root_name(owner) in modules:
                    yield node
            case _:
                pass


def _imported_names(nodes: Iterable[ast.AST]) -> set[str]:
    return {
        (alias.asname or alias.name).split(".")[0]
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }


def _writes_into_module(target: ast.expr, modules: set[str]) -> bool:
    """`sys.path`, `os.environ[...]` and the streams are ordinary; a module's functions are not."""
    if not isinstance(target, ast.Attribute) or _root_name(target) not in modules:
        return False
    return target.attr not in name_set("writable_attributes")


def _writes_through_namespace(target: ast.expr) -> bool:
    """`globals()["f"] = ...`, `sys.modules["m"] = ...`, `thing.__dict__["f"] = ...`."""
    match target:
        case ast.Subscript(value=ast.Call(func=ast.Name(id="globals" | "vars" | "locals"))):
            return True
        case ast.Subscript(value=ast.Attribute(attr="modules" | "__dict__" | "__builtins__")):
            return True
        case ast.Attribute(attr="__code__" | "__class__" | "__defaults__"):
            return True
        case _:
            return False


def _root_name(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


# Comparison methods: they decide what the tests' == means.


def find_odd_comparisons(file: PatchedFile) -> Iterator[CheckReason]:
    """New or weakened `__eq__` and similar methods, however they are written."""
    methods = name_set("comparison_methods")
    before = {node: old for _, old, node in pair_functions(file)}
    for name, node in walk_functions(file.new_tree):
        old = before.get(node)
        is_same = old is not None and ast.dump(old) == ast.dump(node)
        if is_same or name.rsplit(".", 1)[-1] not in methods:
            continue
        body = drop_docstring(node.body)
        always = (
            len(body) == 1
            and isinstance(body[0], ast.Return)
            and bool(literal_parts(body[0].value))
        )
        if always:
            what = "answers the same whatever is compared"
            yield CheckReason("special_case", f"{file.path}: {name} {what}", "deny")
        elif old is None and file.old is not None:
            what = "is new; it decides what the tests' == means"
            yield CheckReason("special_case", f"{file.path}: {name} {what}")
    for find, what in (
        (_find_posing_classes, "poses as a plain value and answers for it"),
        (_find_assigned_comparisons, "is set as a value; it decides what the tests' == means"),
    ):
        for name in count_gained(file, find):
            yield CheckReason("special_case", f"{file.path}: {name} {what}")


def _find_posing_classes(tree: ast.Module | None) -> Iterator[str]:
    """Subclasses of builtin types that define their own length, content or text."""
    for node in find_nodes(tree, ast.ClassDef):
        if any(last_name(base) in name_set("builtin_types") for base in node.bases):
            for part in node.body:
                if isinstance(part, ast.FunctionDef) and part.name in name_set("behaviour_methods"):
                    yield f"{node.name}.{part.name}"


def _find_assigned_comparisons(tree: ast.Module | None) -> Iterator[str]:
    """Comparisons that are no `def`: `__eq__ = ...`, `C.__eq__ = ...`, `type("C", (), {"__eq__": ...})`, `setattr`."""
    for node in find_nodes(tree, ast.AST):
        match node:
            case ast.Assign(targets=targets):
                names = [last_name(target) for target in targets]
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
        if not plain:
            yield from (name for name in names if name in name_set("comparison_methods"))
