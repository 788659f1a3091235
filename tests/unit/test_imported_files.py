"""What a module imports is read from the lines that import alone."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from regreen.languages.python.imports import ModuleMap, imported_files

MODULES = ModuleMap.from_paths(["box/__init__.py", "box/lid.py", "box/parts/__init__.py", "box/parts/bolt.py"])  # fmt: skip


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import box.lid as lid, os\n", {"box/__init__.py", "box/lid.py"}),
        ("from box import (  # all (of it)\n    lid,\n    parts,\n)\n", {"box/__init__.py", "box/lid.py", "box/parts/__init__.py"}),
        ("def f():\n    from .parts import bolt; import os\n", {"box/__init__.py", "box/parts/__init__.py", "box/parts/bolt.py"}),
        ("from box \\\n    import lid\n", {"box/__init__.py", "box/lid.py"}),
        ("try: import box\nexcept ImportError: box = None\n", {"box/__init__.py"}),
        ("from box import (\n", set()),
        ("x = 1; from box import lid\n", {"box/__init__.py", "box/lid.py"}),
        ("try:\n    x = 1\nexcept ImportError: import box.lid\n", {"box/__init__.py", "box/lid.py"}),
        ("from.parts import bolt\n", {"box/__init__.py", "box/parts/__init__.py", "box/parts/bolt.py"}),
        ("\ufeffimport box.lid\n", {"box/__init__.py", "box/lid.py"}),
        ("import os; import box.lid; x = 1\n", {"box/__init__.py", "box/lid.py"}),
        ("\x0cimport box.lid\r\n", {"box/__init__.py", "box/lid.py"}),
        (f"from box import ({', '.join(f'name_{at}' for at in range(1000))}, lid)\n", {"box/__init__.py", "box/lid.py"}),
        ("x = 'import box'\n# import box.lid\n", set()),
    ],
)  # fmt: skip
def test_a_line_that_imports_names_the_files(text: str, found: set[str]) -> None:
    assert set(imported_files(text, "box/use.py", MODULES)) == found


def test_the_lines_say_what_the_whole_tree_says() -> None:
    top = Path(__file__).parents[2]
    paths = [str(path.relative_to(top)) for path in (top / "regreen").rglob("*.py")]
    modules = ModuleMap.from_paths(paths)
    for path in paths:
        text = (top / path).read_text("utf-8")
        tree = ast.parse(text)
        imports = [x for x in ast.walk(tree) if isinstance(x, ast.Import | ast.ImportFrom)]
        lines = "\n".join(map(ast.unparse, imports))
        found = set(imported_files(text, path, modules))
        assert found == set(imported_files(lines, path, modules)), path


@pytest.mark.parametrize(
    "text",
    [
        "from box import (\n" * 20_000,
        "from box import (\n" * 20_000 + ")",
        "from box import (  # one)\n" * 20_000,
        "from box import (\n" + "    name,  # what it is\n" * 20_000,
        "import box \\\n" * 20_000,
        "import box;" * 20_000,
    ],
)
def test_imports_without_an_end_are_read_in_time(text: str) -> None:
    # far below the time limit of a test
    assert set(imported_files(text, "a.py", MODULES)) <= {"box/__init__.py", "box/lid.py"}
