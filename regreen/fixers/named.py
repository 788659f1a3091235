"""Which definitions of the repository the failing tests name: imports followed first, then whatever is called so."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from regreen.codebase.python_uses import Modules
from regreen.codebase.symbols import Definition, outline
from regreen.fixers.case import Case
from regreen.fixers.checks.change import parse_python
from regreen.fixers.checks.paths import is_source
from regreen.fixers.workspace import original

_HOPS = 5
_HEARD = 2
_LARGEST = 400_000
_TELLING = range(6, 81)
"""Characters of a text that says where it comes from."""
_WORD = re.compile(r"[A-Za-z_]\w{2,60}")
_SPOKEN = re.compile(
    r"[A-Za-z]\w*(?=\()|(?<=['\"`])[A-Za-z_]\w{2,60}(?=['\"`(.])|\b(?=\w*[a-z0-9]_?[A-Z_])[A-Za-z_]\w{2,60}"
)
"""Words of a message that are names of code: called, in quotes, or written as no word of English is."""
_ASIDE = {"docs", "doc", "examples", "example", "scripts", "tools", "benchmarks", "vendor"}


def named(case: Case, tests: Sequence[str], limit: int = 6) -> list[tuple[str, Definition]]:
    """Definitions (path, definition) that the tests name, the most telling first.

    What a test file imports, or reaches through an imported module, is known for sure, also through packages that hand it
    on; of these the ones that most failing tests use come first. Then what writes a text that the tests expect, then
    other names, looked for anywhere, the narrowest first.

    Args:
        case: the failure.
        tests: the sources of the failing tests, without their imports.
        limit: how many names of the tests; two more at most that their failures speak of.
    """
    used = Counter(name for text in tests for name in set(_used(text)))
    sources = dict(_sources(case))
    sure = {name: home for name, home in _imported(case, tests).items() if used[name]}
    ranked = [sure[name] for name in sorted(sure, key=lambda one: (-used[one], one))]
    found = [*dict.fromkeys([*ranked[: limit - 2], *_quoting(sources, tests)])][:limit]
    said = "\n".join(one.message for one in case.before.failures).strip() or case.output
    spoken = {match[0] for match in _SPOKEN.finditer(said[-3000:])}
    homes = _everywhere(sources, used.keys() - sure.keys(), spoken - sure.keys())

    def rank(name: str) -> tuple[int, int]:
        return len(homes[name]), -len(name)

    own = sorted((name for name in homes if name in used), key=rank)[: max(0, limit - len(found))]
    heard = sorted((name for name in homes if name not in used), key=rank)[:_HEARD]
    for name in [*own, *heard]:
        found += [one for one in homes[name][:2] if one not in found]
    return found


def is_aside(path: str) -> bool:
    """Whether it lies in a folder that ships along but is not the product."""
    return path.split("/", maxsplit=1)[0] in _ASIDE


def _used(text: str) -> Iterator[str]:
    """Names that are read, dotted ones whole and in parts; a keyword of a call is no name, nor is a string."""
    tree = parse_python(text)
    if tree is None:
        yield from _WORD.findall(text)
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


def _imported(case: Case, tests: Sequence[str]) -> dict[str, tuple[str, Definition]]:
    """What the names in the failing tests' files stand for, as far as their imports tell."""
    modules = Modules.of([entry.path for entry in case.git.tree(case.rev)])
    files = {one.test.partition("::")[0] for one in case.before.failures}
    files |= {one.path for one in case.before.failures if one.path}
    found: dict[str, tuple[str, Definition]] = {}
    for path in sorted(file for file in files if file.endswith(".py") and not is_source(file)):
        for local, source, name in _imports(case, path, modules):
            homes = [(local, name)] if name else []
            if not name:  # a module: what the tests read from it
                read = {
                    text for one in tests for text in _used(one) if text.startswith(f"{local}.")
                }
                homes = [(text, text.removeprefix(f"{local}.")) for text in sorted(read)]
            for called, wanted in homes:
                home = _home(case, source, wanted, modules)
                if home is not None:
                    found.setdefault(called, home)
    return found


def _imports(case: Case, path: str, modules: Modules) -> Iterator[tuple[str, str, str]]:
    """(local name, file, name there); the last is empty where the local name is the module itself."""
    tree = parse_python(original(case, path) or "")
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Import):
            for alias in node.names:
                if file := modules.path(alias.name):
                    yield alias.asname or alias.name, file, ""
        elif isinstance(node, ast.ImportFrom) and (source := modules.absolute(node, path)):
            for alias in node.names:
                local = alias.asname or alias.name
                if file := modules.path(f"{source}.{alias.name}"):
                    yield local, file, ""
                elif file := modules.path(source):
                    yield local, file, alias.name


def _home(
    case: Case, path: str, name: str, modules: Modules, hops: int = _HOPS
) -> tuple[str, Definition] | None:
    """Where a name of a module is defined, packages that only hand it on left behind."""
    for one in _defined(case, path):
        if one.name == name:
            return path, one
    first, _, rest = name.partition(".")
    for local, source, there in _imports(case, path, modules) if hops else ():
        if local in {first, "*"}:
            wanted = ".".join(part for part in (there.replace("*", first), rest) if part)
            if wanted and (found := _home(case, source, wanted, modules, hops - 1)):
                return found
    return None


def _quoting(
    sources: Mapping[str, str], tests: Sequence[str], most: int = 3
) -> list[tuple[str, Definition]]:
    """Functions that hold a text of the tests letter by letter: where few do, they are what makes or reads it."""
    texts = {
        node.value
        for one in tests
        for node in ast.walk(parse_python(one) or ast.Module([], []))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and len(node.value) in _TELLING
        and "\n" not in node.value
    }
    holding: dict[str, list[tuple[str, Definition]]] = {}
    for path, source in sources.items() if texts else ():
        lines = source.splitlines() if any(text in source for text in texts) else []
        shape = outline(path, source.encode()) if lines else None
        for number, line in enumerate(lines, 1):
            around = shape.at(number) if shape else None
            for text in texts if around else ():
                if text in line and around and around.kind != "class":
                    holding.setdefault(text, []).append((path, around))
    few = [set(homes) for text, homes in sorted(holding.items(), key=lambda one: -len(one[0])) if len(set(homes)) <= 2]  # fmt: skip
    return [*dict.fromkeys(home for homes in few for home in sorted(homes, key=str))][:most]


def _sources(case: Case) -> Iterator[tuple[str, str]]:
    """The product's own Python files with their texts, read at once: one by one takes two processes each."""
    entries = [
        entry
        for entry in case.git.tree(case.rev)
        if entry.path.endswith(".py") and is_source(entry.path) and not is_aside(entry.path)
    ]
    for entry, data in zip(entries, case.git.blobs([one.sha for one in entries]), strict=True):
        if data is not None and len(data) <= _LARGEST:
            yield entry.path, data.decode("utf-8", "replace")


def _everywhere(
    sources: Mapping[str, str], used: Collection[str], spoken: Collection[str]
) -> dict[str, list[tuple[str, Definition]]]:
    """Definitions of these names in any module; a spoken name may be written in another case (YEAR_OF_WEEK)."""
    homes: dict[str, list[tuple[str, Definition]]] = {}
    plain = {_plain(name) for name in spoken}
    for path, text in sources.items():
        for one in outline(path, text.encode()).definitions:
            known = one.short in used or _plain(one.short) in plain
            if known and len(one.short) > 2 and one.kind != "constant":
                homes.setdefault(one.short, []).append((path, one))
    return homes


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _defined(case: Case, path: str) -> Sequence[Definition]:
    text = original(case, path)
    if text is None or len(text) > _LARGEST:
        return ()
    return outline(path, text.encode()).definitions
