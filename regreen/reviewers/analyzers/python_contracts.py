"""Contracts with the rest of the repository: callers that a changed signature breaks, removed names still used."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from regreen.code.diff import FileChange
from regreen.code.paths import is_test
from regreen.code.python_calls import (
    CallableDefinition,
    FunctionNode,
    ModuleInterface,
    is_module,
    last_name,
    parse_python,
    read_module,
)
from regreen.code.symbols import read_sources
from regreen.languages.python.imports import ModuleMap, ModuleUse, find_uses
from regreen.reviewers.analyzers.baseline import (
    BrokenUse,
    broken_caller_claim,
    refused_call_claim,
    removed_name_claim,
    require_repository,
)
from regreen.reviewers.context import Claim, ReviewContext, ReviewerReport
from regreen.secrets.markdown_sanitizer import count_noun


class PythonContracts:
    """Compares removed names and changed signatures with their uses in the repository."""

    name = "contracts"

    def run(self, context: ReviewContext) -> ReviewerReport:
        """Report broken callers and removed names that are still used, each with the place that breaks."""
        if context.git is None:
            return require_repository(self.name)
        files = [f for f in context.files if is_module(f.path)]
        changes = [c for f in files if (c := _read_change(f, context))]
        wanted = [c for c in changes if c.signatures or c.removed or c.gone]
        if not files:
            return ReviewerReport()
        read = f"calls in, and callers of, {count_noun(len(files), 'Python file')}"
        places = list(_find_uses(context, wanted)) if wanted else []
        claims = [claim for c in wanted for claim in _make_claims(c, places)]
        claims += _find_refused_calls(context, files)
        return ReviewerReport(claims=tuple(claims), read=read)


@dataclass(frozen=True)
class _ModuleChange:
    """The changed and removed names of one file."""

    file: FileChange
    signatures: dict[str, tuple[CallableDefinition, CallableDefinition]] = field(
        default_factory=dict
    )
    removed: dict[str, int] = field(default_factory=dict)
    gone: bool = False
    fixtures: frozenset[str] = frozenset()


def _read_change(file: FileChange, context: ReviewContext) -> _ModuleChange | None:
    was = context.base_text(file.old_path)
    before, after = _read_module(was), _read_module(context.head_text(file.path))
    if before is None or file.status in {"added", "copied"}:
        return None
    if file.status == "deleted":
        return _ModuleChange(file, removed=dict(before.definitions), gone=True)
    if after is None:
        return None
    signatures = {
        name: (old, after.callables[name])
        for name, old in before.callables.items()
        if name in after.callables and old.parameters != after.callables[name].parameters
    }
    removed = {
        name: line
        for name, line in before.definitions.items()
        if name not in after.names and not after.open and line in file.removed_lines
    }
    return _ModuleChange(
        file, signatures, removed, fixtures=removed_fixtures(was or "", after, removed)
    )


def _read_module(text: str | None) -> ModuleInterface | None:
    tree = parse_python(text) if text is not None else None
    return read_module(tree) if tree else None


def _find_uses(context: ReviewContext, changes: Sequence[_ModuleChange]) -> Iterator[NamedUse]:
    """Every place at the head that uses a name in question; only files that contain the word are parsed."""
    assert context.git is not None  # noqa: S101 - `run` has looked
    names = {n.rpartition(".")[2] for c in changes for n in c.signatures} - {"__init__"}
    names |= {
        n.rpartition(".")[0] for c in changes for n in c.signatures if n.endswith(".__init__")
    }
    names |= {n for c in changes for n in c.removed}
    words = [n.encode() for n in names if n]
    paths = [e.path for e in context.head_tree]
    gone = {c.file.old_path for c in changes if c.gone}
    modules = ModuleMap.from_paths([*paths, *gone])
    removed = {(c.file.old_path, n) for c in changes for n in c.removed}
    fixtures = {(c.file.old_path, n) for c in changes for n in c.fixtures}
    yield from find_settings_uses(context, modules, removed)
    yield from find_fixture_uses(context, fixtures)
    for path, data in read_sources(context.git, context.head, is_module):
        if not any(w in data for w in words):
            continue
        tree = parse_python(data)
        rows = data.decode("utf-8", "surrogateescape").split("\n")
        if tree:
            yield from find_patch_uses(tree, path, rows, modules, removed)
        for use in find_uses(tree, path, modules) if tree else ():
            yield NamedUse(path, use, rows[use.line - 1].strip() if use.line <= len(rows) else "")


def _make_claims(change: _ModuleChange, places: Sequence[NamedUse]) -> Iterator[Claim]:
    path = change.file.path
    for name, (old, new) in change.signatures.items():
        broken = [
            BrokenUse(p.path, p.use.line, p.code, why)
            for p in places
            if (p.use.module, p.use.name) == (path, name)
            and p.use.passed is not None
            and old.parameters.explain_refusal(p.use.passed) is None
            and (why := new.parameters.explain_refusal(p.use.passed))
            and not p.use.guarded
        ]
        if broken and not _is_inner_duplicate(name, change):
            lines, shown = (new.line, max(new.line, new.end)), (old.shown, new.shown)
            effect = "raises `TypeError`"
            yield broken_caller_claim(change.file, new.name, lines, shown, broken, effect)
    for name, line in change.removed.items():
        left = [
            BrokenUse(p.path, p.use.line, p.code)
            for p in places
            if p.use.module == change.file.old_path
            and p.use.name.split(".", maxsplit=1)[0] == name
            and p.path != path
            and not p.use.guarded
            and (change.gone or change.file.old_path == path)
        ]
        if left:
            yield removed_name_claim(change.file, name, line, left, confidence=0.92)


def _find_refused_calls(context: ReviewContext, files: Sequence[FileChange]) -> Iterator[Claim]:
    """Calls on added lines that the definition they certainly mean refuses."""
    modules = ModuleMap.from_paths(e.path for e in context.head_tree)
    known: dict[str, ModuleInterface | None] = {}
    for file in files:
        text = context.head_text(file.path) if file.added_lines else None
        tree = parse_python(text) if text is not None else None
        for use in find_uses(tree, file.path, modules) if tree else ():
            if use.passed is None or use.guarded or use.line not in file.added_lines:
                continue
            if use.module not in known:
                known[use.module] = _read_module(context.head_text(use.module))
            there = known[use.module]
            target = there.callables.get(use.name) if there else None
            why = target.parameters.explain_refusal(use.passed) if target else None
            if target and why:
                code = (text or "").split("\n")[use.line - 1].strip()
                yield refused_call_claim(file.path, use.line, code, target.shown, use.module, why)


def _is_inner_duplicate(name: str, change: _ModuleChange) -> bool:
    """Whether the change of `C.__init__` is reported as that of `C`."""
    return name.endswith(".__init__") and name.removesuffix(".__init__") in change.signatures


# Uses without an import: texts for `mock.patch`, entry points, fixtures.

_SETTINGS_FILE = re.compile(r"(?:^|/)(?:pyproject\.toml|setup\.cfg|setup\.py)$")
_ENTRY_POINT = re.compile(r"[\"'=]\s*([A-Za-z_][\w.]{0,200}):([A-Za-z_]\w{0,100})\b")
_DOTTED_NAME = re.compile(r"([A-Za-z_][\w.]{0,200})[.:]([A-Za-z_]\w{0,100})")
_TEXT_FUNCTIONS = frozenset(
    {"getLogger", "print", "debug", "info", "warning", "error", "Command", "deprecated"}
)
_PLUGIN_FIXTURES = frozenset(
    """client db mocker app settings rf admin_client live_server event_loop benchmark snapshot faker requests_mock
    httpx_mock freezer page browser loop aiohttp_client session request testdir pytester httpserver celery_app""".split()  # noqa: SIM905 - reads better without quotes
)
"""Fixtures that well-known plugins bring under the same name."""


@dataclass(frozen=True, slots=True)
class NamedUse:
    """A line that uses a name of another file, as it stands there."""

    path: str
    use: ModuleUse
    code: str


def find_settings_uses(
    context: ReviewContext, modules: ModuleMap, removed: Set[tuple[str, str]]
) -> Iterator[NamedUse]:
    """Entry points (`package.module:name`) of what is removed. `removed`: path and name."""
    for entry in context.head_tree if removed else ():
        text = context.head_text(entry.path) if _SETTINGS_FILE.search(entry.path) else None
        for number, row in enumerate((text or "").split("\n"), 1):
            for match in _ENTRY_POINT.finditer(row[:1000]):
                path = modules.find_path(match[1])
                if path and (path, match[2]) in removed:
                    yield NamedUse(entry.path, ModuleUse(path, match[2], number, None), row.strip())


def find_patch_uses(
    tree: ast.Module,
    path: str,
    rows: Sequence[str],
    modules: ModuleMap,
    removed: Set[tuple[str, str]],
) -> Iterator[NamedUse]:
    """Arguments such as `"package.module.name"` that name what is removed, as `mock.patch` takes them."""
    for node in ast.walk(tree) if removed else ():
        if not isinstance(node, ast.Call) or last_name(node.func) in _TEXT_FUNCTIONS:
            continue
        for argument in (*node.args, *(k.value for k in node.keywords)):
            if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
                continue
            match = _DOTTED_NAME.fullmatch(argument.value)
            target = modules.find_path(match[1]) if match else None
            if match and target and (target, match[2]) in removed:
                yield NamedUse(
                    path,
                    ModuleUse(target, match[2], argument.lineno, None),
                    rows[argument.lineno - 1].strip(),
                )


def removed_fixtures(
    before: str, after: ModuleInterface, removed: Mapping[str, int]
) -> frozenset[str]:
    """Names of pytest fixtures among what is removed; not those that a plugin may give instead."""
    had = _fixture_names(parse_python(before)) if removed and "fixture" in before else frozenset()
    renamed = any(name not in had for name in after.definitions)
    return frozenset(n for n in had & removed.keys() if renamed or n not in _PLUGIN_FIXTURES)


def find_fixture_uses(context: ReviewContext, fixtures: Set[tuple[str, str]]) -> Iterator[NamedUse]:
    """Tests below a conftest that use a fixture which it no longer defines, and no other file either."""
    if context.git is None or not fixtures:
        return
    wanted = {
        (path.rpartition("/")[0], name): path
        for path, name in fixtures
        if path.endswith("conftest.py")
    }
    names = {name for _, name in wanted}
    found: list[NamedUse] = []
    for path, data in read_sources(context.git, context.head, is_module):
        if not any(n.encode() in data for n in names):
            continue
        tree = parse_python(data)
        names -= _fixture_names(tree)
        rows = data.decode("utf-8", "surrogateescape").split("\n")
        for node in ast.walk(tree) if tree and is_test(path) else ():
            if not isinstance(node, FunctionNode) or not node.name.startswith("test"):
                continue
            given = " ".join(ast.unparse(d) for d in node.decorator_list)
            for argument in node.args.args:
                for (folder, name), origin in wanted.items():
                    if (
                        name == argument.arg
                        and name not in given
                        and path.startswith(f"{folder}/" if folder else "")
                    ):
                        use = ModuleUse(origin, name, node.lineno, None)
                        found.append(NamedUse(path, use, rows[node.lineno - 1].strip()))
    yield from (p for p in found if p.use.name in names)


def _fixture_names(tree: ast.Module | None) -> frozenset[str]:
    """Fixtures of a file by the names that tests ask for."""
    found: set[str] = set()
    for node in ast.walk(tree) if tree else ():
        for decorator in node.decorator_list if isinstance(node, FunctionNode) else ():
            call = decorator.func if isinstance(decorator, ast.Call) else decorator
            if last_name(call) == "fixture":
                keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
                named = [k.value for k in keywords if k.arg == "name"]
                found.update(str(v.value) for v in named if isinstance(v, ast.Constant))
                found.update([] if named else [node.name])  # type: ignore[attr-defined]
    return frozenset(found)
