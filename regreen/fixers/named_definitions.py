"""Finds the definitions that the failing tests name: first through imports, then by name alone."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from regreen.code.paths import is_example, is_source, is_vendored
from regreen.code.python_calls import is_module, parse_python
from regreen.code.symbols import Definition, read_outline
from regreen.fixers.case import RepairCase
from regreen.fixers.workspace import read_original
from regreen.languages.python.imports import ModuleMap

_MAX_IMPORT_HOPS = 5
_MAX_SAME_NAME = 2
_MAX_FILE_CHARS = 400_000
_QUOTED_LENGTHS = range(6, 81)
"""Characters of a text that says where it comes from."""
_NAME_PATTERN = re.compile(r"[A-Za-z_]\w{2,60}")
_MENTIONED_NAME = re.compile(
    r"[A-Za-z]\w{0,80}(?=\()|(?<=['\"`])[A-Za-z_]\w{2,60}(?=['\"`(.])|\b(?=\w*[a-z0-9]_?[A-Z_])[A-Za-z_]\w{2,60}"
)
"""Words of a message that are names of code: called, in quotes, or written as no word of English is."""


def find_named_definitions(
    case: RepairCase, tests: Sequence[str], limit: int = 6
) -> list[tuple[str, Definition]]:
    """The definitions (path, definition) that the tests name, the most relevant first.

    What a test file imports, or reaches through an imported module, is known for sure, also through packages that hand it
    on; of these the ones that most failing tests use come first. Then what writes a text that the tests expect, then
    other names, looked for anywhere, the narrowest first.

    Args:
        case: the failure.
        tests: the sources of the failing tests, without their imports.
        limit: how many names of the tests; two more at most that their failures speak of.
    """
    used = Counter(name for text in tests for name in set(_find_used_names(text)))
    sources = dict(_read_product_sources(case))
    sure = {name: home for name, home in _resolve_imported_names(case, tests).items() if used[name]}
    ranked = [sure[name] for name in sorted(sure, key=lambda name: (-used[name], name))]
    found = [*dict.fromkeys([*ranked[: limit - 2], *_find_quoting_functions(sources, tests)])][
        :limit
    ]
    message = "\n".join(failure.message for failure in case.before.failures).strip() or case.output
    spoken = {match[0] for match in _MENTIONED_NAME.finditer(message[-3000:])}
    homes = _find_definitions_by_name(sources, used.keys() - sure.keys(), spoken - sure.keys())

    def rank(name: str) -> tuple[int, int]:
        return len(homes[name]), -len(name)

    own = sorted((name for name in homes if name in used), key=rank)[: max(0, limit - len(found))]
    mentioned = sorted((name for name in homes if name not in used), key=rank)[:_MAX_SAME_NAME]
    for name in [*own, *mentioned]:
        found += [home for home in homes[name][:2] if home not in found]
    return found


def is_outside_product(path: str) -> bool:
    """Whether the path is vendored, an example or a script rather than the product."""
    return is_vendored(path) or is_example(path) or path.startswith(("scripts/", "tools/"))


def _find_used_names(text: str) -> Iterator[str]:
    """The names that are read, dotted names whole and in parts; keywords of calls do not count."""
    tree = parse_python(text)
    if tree is None:
        yield from _NAME_PATTERN.findall(text)
        return
    own = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }
    own |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in own:
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
            yield ast.unparse(node)


def _resolve_imported_names(
    case: RepairCase, tests: Sequence[str]
) -> dict[str, tuple[str, Definition]]:
    """The definitions behind the names that the failing tests' files import."""
    modules = ModuleMap.from_paths([entry.path for entry in case.git.tree(case.rev)])
    files = {failure.test.partition("::")[0] for failure in case.before.failures}
    files |= {failure.path for failure in case.before.failures if failure.path}
    found: dict[str, tuple[str, Definition]] = {}
    for path in sorted(file for file in files if is_module(file) and not is_source(file)):
        for local, source, name in _read_imports(case, path, modules):
            homes = [(local, name)] if name else []
            if not name:  # the attributes of a module that the tests read
                read = {
                    text
                    for test in tests
                    for text in _find_used_names(test)
                    if text.startswith(f"{local}.")
                }
                homes = [(text, text.removeprefix(f"{local}.")) for text in sorted(read)]
            for called, wanted in homes:
                home = _find_definition(case, source, wanted, modules)
                if home is not None:
                    found.setdefault(called, home)
    return found


def _read_imports(
    case: RepairCase, path: str, modules: ModuleMap
) -> Iterator[tuple[str, str, str]]:
    """(local name, file, name there); the last is empty where the local name is the module itself."""
    tree = parse_python(read_original(case, path) or "")
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Import):
            for alias in node.names:
                if file := modules.find_path(alias.name):
                    yield alias.asname or alias.name, file, ""
        elif isinstance(node, ast.ImportFrom) and (source := modules.resolve_relative(node, path)):
            for alias in node.names:
                local = alias.asname or alias.name
                if file := modules.find_path(f"{source}.{alias.name}"):
                    yield local, file, ""
                elif file := modules.find_path(source):
                    yield local, file, alias.name


def _find_definition(
    case: RepairCase, path: str, name: str, modules: ModuleMap, hops: int = _MAX_IMPORT_HOPS
) -> tuple[str, Definition] | None:
    """Where a name of a module is defined, followed through re-exports."""
    for definition in _definitions_in(case, path):
        if definition.name == name:
            return path, definition
    first, _, rest = name.partition(".")
    for local, source, there in _read_imports(case, path, modules) if hops else ():
        if local in {first, "*"}:
            wanted = ".".join(part for part in (there.replace("*", first), rest) if part)
            if wanted and (found := _find_definition(case, source, wanted, modules, hops - 1)):
                return found
    return None


def _find_quoting_functions(
    sources: Mapping[str, str], tests: Sequence[str], most: int = 3
) -> list[tuple[str, Definition]]:
    """Functions that contain a string of the tests: if only a few do, they produce or read it."""
    texts = {
        node.value
        for test in tests
        for node in ast.walk(parse_python(test) or ast.Module([], []))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and len(node.value) in _QUOTED_LENGTHS
        and "\n" not in node.value
    }
    holding: dict[str, list[tuple[str, Definition]]] = {}
    for path, source in sources.items() if texts else ():
        lines = source.splitlines() if any(text in source for text in texts) else []
        shape = read_outline(path, source.encode()) if lines else None
        for number, line in enumerate(lines, 1):
            around = shape.definition_at(number) if shape else None
            for text in texts if around else ():
                if text in line and around and around.kind != "class":
                    holding.setdefault(text, []).append((path, around))
    few = [set(homes) for text, homes in sorted(holding.items(), key=lambda item: -len(item[0])) if len(set(homes)) <= 2]  # fmt: skip
    return [*dict.fromkeys(home for homes in few for home in sorted(homes, key=str))][:most]


def _read_product_sources(case: RepairCase) -> Iterator[tuple[str, str]]:
    """The product's Python files with their texts, read with one git process."""
    entries = [
        entry
        for entry in case.git.tree(case.rev)
        if is_module(entry.path) and is_source(entry.path) and not is_outside_product(entry.path)
    ]
    for entry, data in zip(entries, case.git.blobs([entry.sha for entry in entries]), strict=True):
        if data is not None and len(data) <= _MAX_FILE_CHARS:
            yield entry.path, data.decode("utf-8", "replace")


def _find_definitions_by_name(
    sources: Mapping[str, str], used: Collection[str], spoken: Collection[str]
) -> dict[str, list[tuple[str, Definition]]]:
    """Definitions of these names in any module; names from a message may differ in case (YEAR_OF_WEEK)."""
    homes: dict[str, list[tuple[str, Definition]]] = {}
    plain = {_normalize_name(name) for name in spoken}
    for path, text in sources.items():
        for definition in read_outline(path, text.encode()).definitions:
            known = definition.short_name in used or _normalize_name(definition.short_name) in plain
            if known and len(definition.short_name) > 2 and definition.kind != "constant":
                homes.setdefault(definition.short_name, []).append((path, definition))
    return homes


def _normalize_name(name: str) -> str:
    return name.replace("_", "").lower()


def _definitions_in(case: RepairCase, path: str) -> Sequence[Definition]:
    text = read_original(case, path)
    if text is None or len(text) > _MAX_FILE_CHARS:
        return ()
    return read_outline(path, text.encode()).definitions
