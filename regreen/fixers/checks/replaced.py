"""Parts of other modules that a patch replaces at run time: clocks, builtins, whatever a name stands for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from regreen.fixers.checks.change import FileChange, Reason

_PATCHED = {
    "time",
    "random",
    "unittest",
    "builtins",
    "datetime",
    "sys",
    "os",
    "pytest",
    "math",
    "asyncio",
    "threading",
}


def replaced_parts(file: FileChange) -> Iterator[Reason]:
    """Assignments into modules: `time.time = ...`, `setattr(random, ...)`."""
    before = [ast.dump(node) for node in _module_writes(file.old_tree)]
    for node in _module_writes(file.new_tree):
        if ast.dump(node) not in before:
            yield Reason(
                "special_case",
                f"{file.path}:{node.lineno} replaces a part of another module at run time",
            )


def _module_writes(tree: ast.Module | None) -> Iterator[ast.stmt | ast.expr]:
    modules = {
        (alias.asname or alias.name).split(".")[0]
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, ast.Import)
        for alias in node.names
    } & _PATCHED
    imported = _imported_names(tree)
    for statement in tree.body if tree else ():
        # on import, and into what comes from elsewhere: whoever imports this next sees another program
        if isinstance(statement, ast.Assign) and any(
            isinstance(target, ast.Attribute) and _root(target) in imported - modules
            for target in statement.targets
        ):
            yield statement
    for node in ast.walk(tree) if tree else ():
        if (
            isinstance(node, ast.Assign)
            and any(
                _writes_into(target, modules) or _writes_names(target) for target in node.targets
            )
        ) or (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "setattr"
            and node.args
            and _root(node.args[0]) in modules
        ):
            yield node


def _imported_names(tree: ast.Module | None) -> set[str]:
    return {
        (alias.asname or alias.name).split(".")[0]
        for node in (tree.body if tree else ())
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }


def _writes_into(target: ast.expr, modules: set[str]) -> bool:
    """`sys.path`, `os.environ[...]` and the streams are ordinary; a module's functions are not."""
    if not isinstance(target, ast.Attribute) or _root(target) not in modules:
        return False
    return target.attr not in {
        "path",
        "stdout",
        "stderr",
        "stdin",
        "argv",
        "dont_write_bytecode",
    }


def _writes_names(target: ast.expr) -> bool:
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


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
