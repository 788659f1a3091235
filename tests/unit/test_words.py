"""What people read on GitHub, on the dashboard and in reports has no private words."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
_TABLE = tomllib.loads((TOP / "tests/data/private_words.toml").read_text())
_WORDS: dict[str, str] = _TABLE["words"]
_TEXTS = [
    *sorted((TOP / "regreen/bot").rglob("*.py")),
    *sorted((TOP / "regreen/dashboard/templates").glob("*.html")),
    *(TOP / "regreen" / name for name in ("fixers/report.py", "bisect/report.py", "reviewers/summary.py", "reviewers/document.py")),
    *sorted((TOP / "regreen/cli").glob("*.py")),
]  # fmt: skip
_JINJA = re.compile(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
_NOT_PROSE = re.compile(r"[\w./-]*")


def _sentences(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a module, without its docstrings and keys; the words of a template, without its code."""
    text = path.read_text()
    if path.suffix == ".html":
        plain = _JINJA.sub(lambda found: "\n" * found[0].count("\n"), text)
        yield from enumerate(plain.splitlines(), 1)
        return
    tree = ast.parse(text)
    documented = (ast.Module, ast.FunctionDef, ast.ClassDef)
    docstrings = {id(node.body[0].value) for node in ast.walk(tree) if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)}  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and id(node.value) in docstrings:
            continue
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.Constant) or not isinstance(child.value, str):
                continue
            if id(child) not in docstrings and not _NOT_PROSE.fullmatch(child.value):
                yield child.lineno, child.value


@pytest.mark.parametrize("path", _TEXTS, ids=lambda p: str(p.relative_to(TOP)))
def test_no_private_word_reaches_a_reader(path: Path) -> None:
    found = [
        f"line {line}: {match[0]!r}: write {plain!r}"
        for line, text in _sentences(path)
        for word, plain in _WORDS.items()
        if (match := re.search(word, text, re.IGNORECASE))
    ]
    assert found == []


@pytest.mark.parametrize("page", [TOP / "README.md", *sorted((TOP / "docs").glob("*.md"))], ids=lambda p: str(p.relative_to(TOP)))  # fmt: skip
def test_no_private_word_stands_in_a_document(page: Path) -> None:
    found = [
        f"line {number}: {match[0]!r}: write {_WORDS[word]!r}"
        for number, line in enumerate(page.read_text().splitlines(), 1)
        for word in _TABLE["documents"]
        if (match := re.search(word, line, re.IGNORECASE))
    ]
    assert found == []
