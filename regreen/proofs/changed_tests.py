"""Which tests a change adds or alters, and what of the change belongs to them."""

from __future__ import annotations

import ast
import builtins
import contextlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from regreen.code.file_change import PatchedFile, is_layout_only
from regreen.code.paths import is_lock_file, is_source, is_test, is_test_config
from regreen.code.python_calls import (
    FunctionNode,
    is_module,
    iterate_top_statements,
    last_name,
    parse_python,
)
from regreen.domain.languages import FileTestTools
from regreen.domain.ports import Git
from regreen.gate.facts import find_functions, walk_functions
from regreen.gate.judge import changed_files
from regreen.gate.words import name_set
from regreen.languages.python.imports import ModuleMap, imported_files
from regreen.languages.registry import find_file_tests, find_mutation, find_test_tools
from regreen.packages.manifests_and_locks import is_manifest
from regreen.reviewers.analyzers.vacuous_tests import explain_hollow

_WORD = re.compile(r"[A-Za-z_]\w{0,100}")
_MAX_DATA_USERS = 3
_MAX_HELPER_MODULES = 8
_MAX_CALL_STEPS = 3
_MAX_COMPARED_FUNCTIONS = 6
_MAX_CALLS_OF_TESTS = 10
_MAX_READ_TESTS = 200
_MAX_LITERAL = 400
_WORDS = re.compile(r"\w+|[^\w\s{}'\"]")
_BUILTINS = frozenset(dir(builtins))


@dataclass(frozen=True, slots=True)
class ChangedTest:
    """A test function that is new or altered; without `function` all tests of a file, which are made at run time.

    `hollow` says why none of its assertions can fail, "" where one can. `asks_new`: it names or expects something that it
    did not before; otherwise it is only written in another way.
    """

    test: str
    path: str
    function: str
    hollow: str = ""
    asks_new: bool = True


@dataclass(frozen=True, slots=True)
class ChangeParts:
    """A change, taken apart.

    `tests` are new or altered; `support` are the paths that go with them (test files, their data and configuration,
    manifests); `sources` are the changed files of the product that can be mutated, `other_sources` those that cannot.
    `new_names` are the identifiers that the product's files have only after the change. `unparsed` are test files that
    no parser of their language reads, so that it is not known which of their tests are new.
    """

    tests: tuple[ChangedTest, ...]
    support: tuple[str, ...]
    sources: tuple[PatchedFile, ...]
    other_sources: tuple[str, ...]
    new_names: frozenset[str]
    unparsed: tuple[str, ...] = ()

    @property
    def changes_source(self) -> bool:
        """Whether anything of the product changes."""
        return bool(self.sources or self.other_sources)


def divide_change(git: Git, base: str, head: str) -> ChangeParts:
    """Take a change apart. It parses files of the repository: call it in a child process."""
    files = [file for file in changed_files(git, base, head) if not is_layout_only(file)]
    support = [file for file in files if _is_support(file.path)]
    product = [file for file in files if is_source(file.path) and not _is_support(file.path)]
    product = [file for file in product if not file.path.startswith(".")]
    sources = tuple(file for file in product if find_mutation(file.path) and file.new is not None)
    modules_of = ModuleMap.from_paths(entry.path for entry in git.tree(head))
    tests = [
        test
        for file in support
        for test in _find_changed(file, _find_imported_checks(git, head, file, modules_of))
    ]
    data = [
        file.path
        for file in support
        if is_test(file.path) and not file.has_syntax_tree and file.new is not None
    ]
    modules = [
        file.path
        for file in support
        if is_test(file.path) and file.has_syntax_tree and file.new_tree
    ]
    unparsed = [
        file.path
        for file in support
        if is_test(file.path) and file.has_syntax_tree and file.new and file.new_tree is None
    ]
    if (data or modules) and not tests:
        tests = list(_find_data_users(git, head, data, modules))
    if modules and not tests:  # pytest reads a file that is named to it, whatever its settings are
        tests = [
            test
            for file in support
            if is_test(file.path)
            for test in _find_changed(
                file, _find_imported_checks(git, head, file, modules_of), any_name=True
            )
        ]
    old = {word for file in product for word in _WORD.findall(file.old or "")}
    new = {word for file in sources for word in _WORD.findall(file.added_text)}
    new |= {
        word
        for file in sources
        for word in file.path.removesuffix(file.suffix).split("/")
        if file.old is None
    }
    return ChangeParts(
        tuple(tests),
        tuple(file.path for file in support if file.new is not None),
        sources,
        tuple(file.path for file in product if file not in sources),
        frozenset(new - old),
        tuple(unparsed),
    )


def list_changed_calls(git: Git, head: str, sources: Sequence[PatchedFile]) -> list[dict[str, Any]]:
    """The public functions that a change rewrites, or that use what it rewrites, with all that calls are made up from.

    Each row has `path`, `modules` (names by which the file may be imported), `function`, `calls` (literal arguments that
    tests give it) and `constants` of its code. It parses files of the repository: call it in a child process.
    """
    rows: list[dict[str, Any]] = []
    entries = git.tree(head)
    modules = ModuleMap.from_paths(entry.path for entry in entries).by_name
    for file in sources:
        before, after = find_functions(file.old_tree), find_functions(file.new_tree)
        touched = {
            _short(name)
            for name, node in after.items()
            if name not in before or ast.dump(before[name]) != ast.dump(node)
        }
        for _ in range(_MAX_CALL_STEPS):
            touched |= {_short(name) for name, node in after.items() if _uses(node) & touched}
        for name, node in after.items():
            old = before.get(name)
            public = not any(part.startswith("_") for part in (name, *file.path.split("/")[:-1]))
            if (
                old is None
                or name not in touched
                or not public
                or "." in name
                or ast.dump(node.args) != ast.dump(old.args)
                or len(rows) == _MAX_COMPARED_FUNCTIONS
            ):
                continue
            values = {
                repr(part.value)
                for part in (*ast.walk(old), *ast.walk(node))
                if isinstance(part, ast.Constant) and isinstance(part.value, int | float | str)
            }
            row: dict[str, Any] = {
                "path": file.path,
                "modules": [module for module, path in modules.items() if path == file.path],
                "function": name,
                "calls": [],
                "constants": sorted(value for value in values if len(value) < _MAX_LITERAL)[:30],
            }
            rows.append(row)
    wanted: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        wanted.setdefault(row["function"], []).append(row)
    paths = [entry.path for entry in entries if wanted and is_module(entry.path)]
    for path in [path for path in paths if is_test(path)][:_MAX_READ_TESTS]:
        text = (git.show(head, path) or b"").decode("utf-8", "replace")
        if any(name in text for name in wanted):
            for name, call in _find_literal_calls(parse_python(text)):
                for calls in (row["calls"] for row in wanted.get(name, ())):
                    if len(calls) < _MAX_CALLS_OF_TESTS and call not in calls:
                        calls.append(call)
    return rows


def _find_literal_calls(tree: ast.Module | None) -> Iterator[tuple[str, str]]:
    """The last name of what is called, and the arguments as a literal, of calls in which they are literals."""
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Call) and all(one.arg for one in node.keywords):
            named = ", ".join(f"{one.arg!r}: {ast.unparse(one.value)}" for one in node.keywords)
            plain = ", ".join(map(ast.unparse, node.args))
            text = f"([{plain}], {{{named}}})"
            if len(text) < _MAX_LITERAL:
                with contextlib.suppress(ValueError, TypeError, SyntaxError):
                    ast.literal_eval(text)
                    yield last_name(node.func), text


def _is_support(path: str) -> bool:
    return is_test(path) or is_test_config(path) or is_manifest(path) or is_lock_file(path)


def _find_imported_checks(
    git: Git, head: str, file: PatchedFile, modules: ModuleMap
) -> frozenset[str]:
    """The functions of other test modules that assert something, where a test module imports from them."""
    left, read, found = [(file.path, file.new or "")], {file.path}, set[str]()
    while left and len(read) <= _MAX_HELPER_MODULES:
        path, text = left.pop(0)
        if not is_module(path):
            continue
        for imported in imported_files(text, path, modules):
            if imported in read or not (is_test(imported) or "test" in imported.split("/")[-1]):
                continue
            read.add(imported)
            helper = (git.show(head, imported) or b"").decode("utf-8", "replace")
            left.append((imported, helper))
            found |= _find_checks(parse_python(helper))
    return frozenset(found)


def _find_checks(tree: ast.Module | None) -> set[str]:
    """The functions of a module that assert something, or call one of it that does; methods as `self.name`."""
    functions = {
        f"self.{_short(name)}" if "." in name else name: node
        for name, node in walk_functions(tree)
        if not _short(name).startswith("test")
    }
    found: set[str] = set()
    for _ in range(_MAX_CALL_STEPS):
        found |= {name for name, node in functions.items() if not explain_hollow(node, found)}
    return found


def _find_changed(
    file: PatchedFile, imported: frozenset[str] = frozenset(), *, any_name: bool = False
) -> Iterator[ChangedTest]:
    """The test functions of a file that are new, read otherwise, or use something of the file that is.

    `imported` are functions of other modules that assert something. `any_name`: the file need not be called as pytest
    wants it.
    """
    runner = find_file_tests(file.path)
    if runner is not None and is_test(file.path) and file.new is not None:
        yield from _find_changed_titles(file, file.new, runner)
    tools = find_test_tools(file.path)
    if tools is None or file.new_tree is None:
        return
    if not (any_name or tools.is_collected(file.path)):
        return
    before, after = _definitions(file.old_tree), _definitions(file.new_tree)
    altered = {name for name, nodes in after.items() if _dump(before.get(name)) != _dump(nodes)}
    asking = {
        name for name in altered if _read_words(after[name]) - _read_words(before.get(name, ()))
    }
    functions = dict(walk_functions(file.new_tree))
    helpers = {
        name: node for name, node in functions.items() if not _short(name).startswith("test")
    }

    def spread(names: set[str]) -> set[str]:
        """What a test uses by its bare name: fixtures, helpers, constants, and attributes of its own class."""
        touched = {_short(name) for name in names}
        for _ in helpers:
            more = {_short(name) for name, node in helpers.items() if _uses(node) & touched}
            if more <= touched:
                break
            touched |= more
        return touched

    def is_reached(name: str, node: FunctionNode, names: set[str], touched: set[str]) -> bool:
        around = name.rpartition(".")[0]
        prepared = {around, *(f"{around}.{setup}" for setup in name_set("setup_functions"))}
        return bool(name in names or _uses(node) & touched or (around and prepared & names))

    touched, asked = spread(altered), spread(asking)
    checking = imported | _find_checks(file.new_tree)
    for name, node in functions.items():
        if not _short(name).startswith("test"):
            continue
        if is_reached(name, node, altered, touched):
            yield ChangedTest(
                tools.name_test(file.path, name),
                file.path,
                node.name,
                explain_hollow(node, checking),
                is_reached(name, node, asking, asked),
            )


def _find_changed_titles(
    file: PatchedFile, new: str, runner: FileTestTools
) -> Iterator[ChangedTest]:
    """The tests of a file whose source is new or otherwise; the file as a whole where something around them is."""
    before, after = runner.list_tests(file.old or ""), runner.list_tests(new)
    sources = {title: test.source for title, test in before.items()}
    altered = [title for title, test in after.items() if sources.get(title) != test.source]
    for title in altered:
        old, now = (
            Counter(_WORDS.findall(source))
            for source in (sources.get(title, ""), after[title].source)
        )
        hollow = "" if after[title].asserts else "it asserts nothing"
        yield ChangedTest(f"{file.path}::{title}", file.path, title, hollow, bool(now - old))
    if not altered and runner.has_tests(new):
        yield ChangedTest(file.path, file.path, "")


def _dump(nodes: Sequence[ast.AST] | None) -> list[str] | None:
    return None if nodes is None else [ast.dump(node) for node in nodes]


def _read_words(nodes: Sequence[ast.AST]) -> Counter[str]:
    """The names and values of a definition; its own variables, and what every module has, are left out."""
    parts = [part for node in nodes for part in ast.walk(node)]
    stored = (x.id for x in parts if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store))
    own = _BUILTINS.union(stored)
    names = (_read_name(part) for part in parts)
    texts = [name for name in names if name not in own]
    texts += [repr(part.value) for part in parts if isinstance(part, ast.Constant)]
    texts += ["-" for part in parts if isinstance(part, ast.USub)]
    return Counter(word for text in texts for word in _WORDS.findall(text))


def _read_name(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
            return name
        case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name
        case ast.keyword(arg=str(name)):
            return name
        case _:
            return ""


def _short(name: str) -> str:
    return name.rsplit(".", 1)[-1]


def _uses(node: FunctionNode) -> set[str]:
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    names |= {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}
    own = (one for one in ast.walk(node) if isinstance(one, ast.Attribute))
    return names | {
        one.attr for one in own if isinstance(one.value, ast.Name) and one.value.id == "self"
    }


def _definitions(tree: ast.Module | None) -> dict[str, Sequence[ast.AST]]:
    """Functions, class headers with their fields, and constants of a module, by dotted name.

    Those under a condition are among them, and so are the classes and functions that a function makes.
    """
    found: dict[str, list[ast.AST]] = {}

    def visit(body: Sequence[ast.stmt], prefix: str, *, in_function: bool = False) -> None:
        for node in iterate_top_statements(body):
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    found.setdefault(f"{prefix}{node.name}", []).append(node)
                    if not node.name.startswith("test"):
                        visit(node.body, f"{prefix}{node.name}.", in_function=True)
                case ast.ClassDef():
                    heads = [*node.bases, *node.keywords, *node.decorator_list]
                    found.setdefault(f"{prefix}{node.name}", []).extend(heads)
                    visit(node.body, f"{prefix}{node.name}.")
                case (
                    ast.Assign(targets=[ast.Name(id=name)])
                    | ast.AnnAssign(target=ast.Name(id=name))
                ) if not in_function:
                    found.setdefault(f"{prefix}{name}", []).append(node)
                case _:
                    pass

    visit(tree.body if tree else [], "")
    return dict(found)


def _find_data_users(
    git: Git, head: str, data: Sequence[str], modules: Sequence[str]
) -> Iterator[ChangedTest]:
    """All tests of the few files that name changed test data or its folder, import a changed module, or are one."""
    words = {part for path in data for part in (path.split("/")[-1], *path.split("/")[-2:-1])}
    words -= {"tests", "test"}
    stems = [re.escape(path.split("/")[-1].partition(".")[0]) for path in modules]
    imports = (
        re.compile(rf"(?m)^\s{{0,20}}(?:from|import)\s[^\n]{{0,200}}\b(?:{'|'.join(stems)})\b")
        if stems
        else None
    )
    left = _MAX_DATA_USERS
    for entry in git.tree(head):
        tools = find_test_tools(entry.path)
        if left and tools is not None and tools.is_collected(entry.path):
            text = (git.show(head, entry.path) or b"").decode("utf-8", "replace")
            if (
                entry.path in modules
                or any(word in text for word in words)
                or (imports and imports.search(text))
            ):
                left -= 1
                found = list(_find_changed(PatchedFile(entry.path, None, text)))
                made = entry.path in modules or not found
                yield from [ChangedTest(entry.path, entry.path, "")] if made else found
