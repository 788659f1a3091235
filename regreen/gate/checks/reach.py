"""Checks 8 and 9: new access to network, processes and environment, and the size of a patch."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from regreen.code.file_change import CheckReason, PatchedFile, ReasonLevel
from regreen.code.paths import is_source
from regreen.gate.facts import (
    documentation_nodes,
    exclude_tests_and_documents,
    find_gained_line,
    find_nodes,
)
from regreen.gate.words import find_broken_rules, name_set, suffix_group, word_pattern


def check_reach(files: Sequence[PatchedFile]) -> list[CheckReason]:
    """Check 8: network, processes, evaluation and environment that the file did not use before."""
    return [
        CheckReason("reach", f"{file.path} {what}", level)
        for file in exclude_tests_and_documents(files)
        for what, level in (_find_new_uses(file) if file.has_syntax_tree else _find_commands(file))
    ]


def _find_new_uses(file: PatchedFile) -> Iterator[tuple[str, ReasonLevel]]:
    before, after = _used_names(file.old_tree), _used_names(file.new_tree)
    used = after - before
    network, executes = used & name_set("network_modules"), used & name_set("executing_names")
    environment = name_set("environment_names")
    if network and after & environment:
        yield f"reads the environment and gains network access ({_join_names(network)})", "deny"
    elif network:
        yield f"gains network access ({_join_names(network)})", "needs_human"
    if executes:
        yield f"gains ways to run code ({_join_names(executes)})", "needs_human"
    if used & environment:
        yield "starts to read the environment", "needs_human"
    if addresses := set(_find_addresses(file.new_tree)) - set(_find_addresses(file.old_tree)):
        yield f"gains the address {min(addresses)}", "needs_human"
    if file.path.endswith("setup.py") and find_gained_line(file, word_pattern("install_hooks")):
        yield "gains code that runs on installation", "needs_human"


def _find_commands(file: PatchedFile) -> Iterator[tuple[str, ReasonLevel]]:
    is_data = file.suffix in suffix_group("no_commands")
    if is_data and not file.path.endswith("package.json"):
        return
    for rule in find_broken_rules(file, "commands"):
        yield rule.says, rule.level
    address = word_pattern("web_addresses").search(file.added_text)
    if address and address.group(0) not in (file.old or ""):
        yield f"gains the address {address.group(0)[:80]}", "needs_human"


def _used_names(tree: ast.Module | None) -> set[str]:
    """The used modules and functions that reach outside; `urllib.parse` and its like only parse addresses."""
    harmless = name_set("address_modules")
    found: set[str] = set()
    for node in find_nodes(tree, ast.AST):
        match node:
            case ast.Import(names=aliases):
                found |= {
                    alias.name.split(".")[0] for alias in aliases if alias.name not in harmless
                }
            case ast.ImportFrom(module=str() as module, level=0):
                names = {f"{module}.{alias.name}" for alias in node.names}
                if module not in harmless and not names <= harmless:
                    found.add(module.split(".")[0])
                found |= names
            case ast.Call(func=ast.Name(id=name)):
                found.add(name)
            case ast.Attribute(value=ast.Name(id=owner), attr=attribute):
                name = f"{owner}.{attribute}"
                found.add(name)
                if owner == "urllib" and name not in harmless:
                    found.add("urllib")  # `import urllib.parse` makes its siblings reachable too
            case _:
                pass
    reach = ("network_modules", "executing_names", "environment_names")
    return found & frozenset().union(*map(name_set, reach))


def _find_addresses(tree: ast.Module | None) -> Iterator[str]:
    documents = documentation_nodes(tree)
    for node in find_nodes(tree, ast.Constant):
        if isinstance(node.value, str) and id(node) not in documents:
            for found in word_pattern("web_addresses").finditer(node.value[:2000]):
                yield found.group(0)[:80]


def _join_names(names: Collection[str]) -> str:
    return ", ".join(sorted(names))


def check_size(
    files: Sequence[PatchedFile], *, max_lines: int, max_files: int = 3
) -> list[CheckReason]:
    """Check 9: the size that a person can read at a glance; tests and documents do not count."""
    source = [file for file in files if is_source(file.path)]
    lines = sum(max(len(file.added_lines), len(file.removed_lines)) for file in source)
    reasons: list[CheckReason] = []
    if lines > max_lines:
        what = f"{lines} lines change; more than {max_lines} need a person's eye"
        reasons.append(CheckReason("size", what))
    if len(source) > max_files:
        what = f"{len(source)} files change; more than {max_files} need a person's eye"
        reasons.append(CheckReason("size", what))
    removed = sum(len(file.removed_lines) for file in source)
    if removed > 10 and not any(file.added_lines for file in source):
        reasons.append(CheckReason("size", f"it only takes away: {removed} lines"))
    for file in source:
        gone = find_public_names(file.old_tree) - find_public_names(file.new_tree)
        if gone and (file.new is None or file.new_tree is not None):
            what = f"{file.path} no longer defines {_join_names(gone)}"
            reasons.append(CheckReason("size", what))
    return reasons


def find_public_names(tree: ast.Module | None) -> set[str]:
    """The functions and classes that a module offers, methods included."""
    found: set[str] = set()
    for node in tree.body if tree else ():
        if isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        ) and not node.name.startswith("_"):
            found.add(node.name)
            for inner in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(
                    inner, ast.FunctionDef | ast.AsyncFunctionDef
                ) and not inner.name.startswith("_"):
                    found.add(f"{node.name}.{inner.name}")
    return found
