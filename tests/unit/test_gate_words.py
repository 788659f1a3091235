"""The table of the gate's words, and the facts that its rules read."""

from __future__ import annotations

import ast

import pytest

from regreen.code.file_change import PatchedFile
from regreen.gate.facts import count_gained, find_nodes, pair_functions, read_settings
from regreen.gate.words import find_broken_rules, load_gate_words, name_set, word_pattern


def test_no_row_of_the_table_is_empty() -> None:
    words = load_gate_words()
    assert all(words.names.values())
    assert not [name for name, pattern in words.patterns.items() if pattern.search("")]
    rules = [rule for family in words.line_rules.values() for rule in family]
    assert not [rule.says for rule in rules if rule.pattern.search("")]


@pytest.mark.parametrize(
    ("path", "old", "new", "says"),
    [
        ("a.py", "x = 1\n", "x = 1  # noqa\n", ["switches the linter off"]),
        ("a.py", "x = 1  # noqa\n", "x = 2  # noqa\n", []),
        ("a.py", "x = 1  # noqa\ny = 1\n", "y = 1\nx = 1  # noqa\n", []),
        ("run.sh", "make\n", "make || true\n", ["turns a failing command into a passing one"]),
        ("a.py", "x = 1\n", "x = 'make || true'\n", []),
    ],
)
def test_a_line_rule_counts_what_is_new(path: str, old: str, new: str, says: list[str]) -> None:
    found = find_broken_rules(PatchedFile(path, old, new), "suppressed")
    assert [rule.says for rule in found] == says


def test_names_are_exact_and_families_are_patterns() -> None:
    assert "comparison_methods" not in name_set("comparison_methods")
    assert "__eq__" in name_set("comparison_methods")
    assert word_pattern("on_is_safe").search("VERIFY_SSL")


def test_facts_tell_what_there_is_more_of() -> None:
    file = PatchedFile("a.py", "def f(): return 1\n", "def f(): return 1 or 1\ndef g(): pass\n")
    gained = count_gained(file, lambda tree: (n.value for n in find_nodes(tree, ast.Constant)))
    assert gained == {1: 1}
    assert [name for name, _, _ in pair_functions(file)] == ["f"]


def test_functions_of_one_name_are_paired_in_their_order() -> None:
    old = "if win32:\n    def f(): return 0\nelse:\n    def f(): return 1\n"

    def values(new: str) -> list[tuple[str, str]]:
        pairs = pair_functions(PatchedFile("a.py", old, new))
        return [(ast.unparse(was.body[0]), ast.unparse(now.body[0])) for _, was, now in pairs]

    same = [("return 0", "return 0"), ("return 1", "return 1")]
    assert values(f"import os\n{old}") == same
    assert values("def f(): return 2\n") == [("return 1", "return 2")]
    assert values(f"def f(): return 2\n{old}") == [("return 0", "return 2"), *same]


def test_settings_are_told_apart_by_scope_name_and_order() -> None:
    tree = ast.parse("limit = 3\ndef f(limit=4):\n    g(limit=5)\n    g(limit=6 * 2)\n")
    values = {key: setting.value for key, setting in read_settings(tree).items()}
    assert values == {
        ("", "limit", 1): 3,
        (".f", "limit", 1): 4,
        (".f", "limit", 2): 5,
        (".f", "limit", 3): 12,
    }
