"""Bounds before parsing: what strangers wrote is refused, or left out by name, before it takes time or memory."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from regreen.code.config_loaders import InvalidYaml, load_toml, load_yaml
from regreen.code.diff import MAX_FILE_LINES, parse_bounded
from regreen.code.repo_config_file import parse_repo_config
from regreen.code.symbols import EMPTY_OUTLINE, read_outline
from regreen.code.workflow_document import WorkflowError, load_workflow
from regreen.domain.errors import ConfigError
from regreen.isolation import ChildLimits, run_in_child
from regreen.reviewers.analyzers.syntax import DocumentTooDeep, find_syntax_fault
from tests.unit.changes import Story

ALIASES = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
YAML_BOMBS = {
    "aliases of aliases": ALIASES + "on: *i\n",
    "an alias as a key": ALIASES + "? *i\n: 1\n",
    "an alias that holds itself": "on: &a [*a]\n",
    "brackets": "on: " + "[" * 50_000,
    "deep blocks": "\n".join(" " * n + "a:" for n in range(600)),
}
TOML_BOMBS = {
    "a key of many parts": ".".join("a" * 20_000) + " = 1\n",
    "a short key of many parts": "a" + ".a" * 60 + " = 1\n",
    "a table of many parts": f"[{'.'.join('a' * 3000)}]\n",
    "quoted parts": " . ".join(["'a'"] * 60) + " = 1\n",
    "arrays": "a = " + "[" * 50_000,
    "a long line": f"a = '{'x' * 20_000}'\n",
}


def readers_that_refuse(text: str) -> list[str]:
    refusing = []
    for reader in (load_yaml, load_workflow, parse_repo_config):
        try:
            reader(text)
        except (InvalidYaml, WorkflowError, ConfigError) as error:
            refusing.append(type(error).__name__)
    return refusing


@pytest.mark.parametrize("name", YAML_BOMBS)
def test_each_reader_of_yaml_refuses_a_bomb(name: str) -> None:
    refusing = run_in_child(readers_that_refuse, YAML_BOMBS[name], limits=ChildLimits(cpu=10))
    assert refusing == ["InvalidYaml", "WorkflowError", "ConfigError"]


@pytest.mark.parametrize("name", TOML_BOMBS)
def test_toml_that_would_take_all_memory_is_refused_before_it_is_read(name: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError):
        load_toml(TOML_BOMBS[name])
    with pytest.raises(DocumentTooDeep):  # our limit, not the author's fault
        find_syntax_fault("a.toml", TOML_BOMBS[name])


def test_toml_that_people_write_is_read() -> None:
    text = 'version = "1.2.3"\n[tool.a.b."c.d"]\nx = { y.z = [[1, 2], [3]] }\n'
    assert load_toml(text) == tomllib.loads(text)


@pytest.mark.parametrize("text", [b"a" + b".b()" * 100_000, b"{[" * 100_000])
def test_code_that_is_nested_or_broken_without_end_takes_little_time(text: bytes) -> None:
    assert (
        run_in_child(read_outline, "a.ts", b"function f() {}\n" + text, limits=ChildLimits(cpu=5))
        == EMPTY_OUTLINE
    )


def test_a_long_chain_of_calls_that_people_write_is_read() -> None:
    assert len(read_outline("a.ts", b"a" + b".b()" * 100).calls) == 100


def test_a_diff_that_is_too_long_is_named_and_the_others_are_read() -> None:
    def added(path: str, lines: int) -> str:
        return (
            f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n"
            f"@@ -0,0 +1,{lines} @@\n" + "+\n" * lines
        )

    change = parse_bounded(added("a.py", 3) + added("b.py", MAX_FILE_LINES) + added("c.py", 2))
    assert {f.path: (len(f.added_lines), f.problem is None) for f in change.files} == {
        "a.py": (3, True),
        "b.py": (0, False),
        "c.py": (2, True),
    }


def test_a_file_is_read_in_the_encoding_that_it_declares(tmp_path: Path) -> None:
    fault = b"def f():\n    return undefined\n"
    story = Story(tmp_path / "repo")
    story.change(
        {"a.py": "x = 1\n"},
        {
            "bom.py": b"\xef\xbb\xbf" + fault,
            "declared.py": b"# -*- coding: latin-1 -*-\nNAME = 'caf\xe9'\n" + fault,
            "undeclared.py": b"NAME = 'caf\xe9'\n" + fault,
            "unknown.py": b"# coding: latin-77\nNAME = 'caf\xe9'\n" + fault,
        },
    )
    review = story.review()
    assert {(f.path, f.line) for f in review.findings} == {("bom.py", 2), ("declared.py", 4)}
    reason = "not UTF-8, and it declares no known encoding"
    unread = {u.path: u.reason for u in review.not_reviewed}
    assert unread == {"undeclared.py": reason, "unknown.py": reason}


def test_a_huge_file_is_named_and_the_fault_beside_it_is_reported(tmp_path: Path) -> None:
    story = Story(tmp_path / "repo")
    story.change(
        {"a.py": "x = 1\n", "was.py": "\n" * 2_000_000},
        {
            "a.py": "x = y\n",
            "b.py": "\n" * 40_000_000,
            "c.py": "\n" * 900_000,
            "was.py": "\n" * 2_000_001,
        },
    )
    found = story.review()
    assert [f.rule for f in found.findings] == ["ruff/F821"]
    assert {u.path: u.reason for u in found.not_reviewed} == {
        "b.py": "could not be read: larger than 1 MiB, or no text",
        "c.py": "could not be read: its diff is longer than 20,000 lines, or all together 300,000",
        "was.py": "could not be read: larger than 1 MiB, or no text",
    }
