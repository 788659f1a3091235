"""Counts what the size and the names of the product are held to; `python scripts/measure_structure.py [--list]`.

Lines are those of `regreen/**/*.py` as they stand (formatted at 100 columns), data tables apart. A one-word name has
one word between underscores; decorated functions and dunder names are left out. `--list` also prints what counts.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
TABLES = (".toml", ".json", ".csv", ".gz", ".scm")
MAX_MODULES_IN_FOLDER = 20


@dataclass
class Counts:
    """What was counted, with the places."""

    lines: int = 0
    docstring_lines: int = 0
    modules: int = 0
    functions: int = 0
    methods: int = 0
    one_word_functions: list[str] = field(default_factory=list)
    one_word_methods: list[str] = field(default_factory=list)
    classes: Counter[str] = field(default_factory=Counter)
    folders: Counter[str] = field(default_factory=Counter)
    imports: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))


def count_package(package: Path) -> Counts:
    """Count every module below a package."""
    counts = Counts()
    modules = {module_name(path): path for path in sorted(package.rglob("*.py"))}
    for name, path in modules.items():
        text = path.read_text("utf-8")
        tree = ast.parse(text)
        counts.lines += len(text.splitlines())
        counts.modules += bool(text.strip())
        counts.folders[str(path.parent.relative_to(ROOT))] += 1
        counts.imports[name] = {m for m in imported_modules(tree, modules) if m != name}
        count_names(tree, str(path.relative_to(ROOT)), counts)
    return counts


def module_name(path: Path) -> str:
    """The dotted name of a file of this repository."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imported_modules(tree: ast.Module, modules: dict[str, Path]) -> Iterator[str]:
    """The package's own modules that a module imports when it is loaded itself."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name for name in [*inner, node.module] if name in modules)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)


def count_names(tree: ast.Module, path: str, counts: Counts) -> None:
    """Add the functions, classes and docstrings of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            doc = ast.get_docstring(node, clean=False)
            counts.docstring_lines += 0 if doc is None else doc.count("\n") + 1
        if isinstance(node, ast.ClassDef):
            counts.classes[node.name] += not node.name.startswith("_")
    for owner, functions in ((None, tree.body), *((c.name, c.body) for c in classes_of(tree))):
        for node in functions:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if node.decorator_list or node.name.startswith("__"):
                continue
            is_one_word = "_" not in node.name.strip("_")
            place = f"{path}: {owner + '.' if owner else ''}{node.name}"
            if owner is None:
                counts.functions += 1
                counts.one_word_functions += [place] * is_one_word
            else:
                counts.methods += 1
                counts.one_word_methods += [place] * is_one_word


def classes_of(tree: ast.Module) -> list[ast.ClassDef]:
    """Every class of a module, inner ones included."""
    return [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


def find_circles(imports: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import each other (strongly connected components, Tarjan 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    circles: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for target in imports.get(name, ()):
            if target not in index:
                visit(target)
                low[name] = min(low[name], low[target])
            elif target in stack:
                low[name] = min(low[name], index[target])
        if low[name] == index[name]:
            at = stack.index(name)
            group, stack[at:] = stack[at:], []
            if len(group) > 1:
                circles.append(sorted(group))

    for name in imports:
        if name not in index:
            visit(name)
    return circles


def main() -> None:
    """Print the counts."""
    package = ROOT / "regreen"
    counts = count_package(package)
    tables = [p for p in package.rglob("*") if p.suffix in TABLES]
    table_lines = sum(len(p.read_bytes().splitlines()) for p in tables if p.suffix != ".gz")
    full = {f: n for f, n in counts.folders.items() if n > MAX_MODULES_IN_FOLDER}
    repeated = sorted(name for name, n in counts.classes.items() if n > 1)
    circles = find_circles(counts.imports)
    share = counts.docstring_lines / counts.lines
    rows = {
        "product lines": f"{counts.lines} (tables apart: {table_lines})",
        "docstring lines": f"{counts.docstring_lines} ({share:.1%})",
        "modules that are not empty": str(counts.modules),
        f"folders of more than {MAX_MODULES_IN_FOLDER} modules": str(full or "none"),
        "import circles": str([len(c) for c in circles] or "none"),
        "one-word functions": percent(len(counts.one_word_functions), counts.functions),
        "one-word methods": percent(len(counts.one_word_methods), counts.methods),
        "public class names used more than once": f"{len(repeated)} {' '.join(repeated)}",
    }
    for name, value in rows.items():
        print(f"{name:42} {value}")
    if "--list" in sys.argv:
        print(*counts.one_word_functions, *counts.one_word_methods, *circles, sep="\n")


def percent(part: int, whole: int) -> str:
    """A share with both numbers."""
    return f"{part} of {whole} ({part / max(1, whole):.0%})"


if __name__ == "__main__":
    main()
