"""The shape that keeps the code readable: small folders, no circles, names that say what they mean."""

from __future__ import annotations

import ast
import re
import runpy
from functools import cache
from pathlib import Path
from typing import Any

_SCRIPT = Path(__file__).parents[2] / "scripts" / "measure_structure.py"
_MEASURE = runpy.run_path(str(_SCRIPT), run_name="measure_structure")


@cache
def counted() -> Any:
    return _MEASURE["count_package"](_SCRIPT.parents[1] / "regreen")


def test_a_folder_can_be_held_in_mind() -> None:
    most = _MEASURE["MAX_MODULES_IN_FOLDER"]
    assert {folder: n for folder, n in counted().folders.items() if n > most} == {}


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert _MEASURE["find_circles"](counted().imports) == []


def test_most_names_have_more_than_one_word() -> None:
    counts = counted()
    assert len(counts.one_word_functions) <= 0.15 * counts.functions
    assert len(counts.one_word_methods) <= 0.40 * counts.methods


def test_a_public_class_name_is_used_once() -> None:
    assert [name for name, n in counted().classes.items() if n > 1] == []


_POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)(?:[*+?]|\{\d+(?:,\d*)?\})\+")


def test_no_pattern_repeats_a_group_possessively() -> None:
    # Python before 3.11.5, as Debian 12 has it, matches such groups wrongly (CPython's issue 106052); atomic ones it does
    top = Path(__file__).parents[2] / "regreen"
    texts = {path: path.read_text("utf-8") for path in top.rglob("*.toml")}
    for path in top.rglob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text("utf-8")))
        words = [node.value for node in nodes if isinstance(node, ast.Constant)]
        texts[path] = "\n".join(word for word in words if isinstance(word, str))
    wrong = [path.name for path, text in texts.items() if _POSSESSIVE_GROUP.search(text)]
    assert wrong == []


def test_product_code_is_formatted_without_exception() -> None:
    # the size that is reported is that of code at 100 columns: a line that the formatter leaves alone would hide some
    top = Path(__file__).parents[2]
    files = [path for name in ("regreen", "playground") for path in (top / name).rglob("*.py")]
    skipping = [p.name for p in files if re.search(r"# fmt: *(?:skip|off)", p.read_text("utf-8"))]
    assert skipping == []
