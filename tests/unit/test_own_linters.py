"""The repository's own linters: which ones, in which versions, and what they said."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from regreen.reviewers.analyzers.own_linters import (
    find_configured_linters,
    node_setup_command,
    parse_lint_output,
)

HOOKS = """repos:
  - repo: https://github.com/psf/black-pre-commit-mirror
    rev: 24.4.2
    hooks:
      - id: black
  - repo: https://github.com/astral-sh/ruff-pre-commit
    rev: "v0.6.1"
    hooks:
    - id: ruff
      args: [--fix]
    -   id: ruff-format
  - repo: local
    hooks:
      - id: mypy
"""


@pytest.mark.parametrize(
    ("files", "tools"),
    [
        ({".pre-commit-config.yaml": HOOKS}, [("ruff", "0.6.1"), ("ruff format", "0.6.1"), ("black", "24.4.2"), ("mypy", "")]),
        ({"pyproject.toml": "[tool.black]\nline-length = 88\n[tool.ruff.format]\nquote-style = 'single'\n"},
         [("ruff", ""), ("ruff format", ""), ("black", "")]),
        ({"setup.cfg": "[flake8]\nmax-line-length = 99\n[isort]\n", "requirements-dev.txt": "flake8==6.1.0\nisort>=5\n"},
         [("isort", ""), ("flake8", "6.1.0")]),
        ({"mypy.ini": "[mypy]\n", "uv.lock": 'version = 1\n\n[[package]]\nname = "mypy"\nversion = "1.11.2"\n'}, [("mypy", "1.11.2")]),
        ({"eslint.config.mjs": "", "package.json": '{"prettier": {"semi": false}}'}, [("eslint", ""), ("prettier", "")]),
        ({"biome.json": "{}", "pyproject.toml": "[tool", "package.json": "["}, [("biome", "")]),
        ({".pre-commit-config.yaml": "repos:\n- repo: https://github.com/zizmorcore/zizmor-pre-commit\n  rev: v1.32.0\n  hooks:\n  - id: zizmor\n"},
         [("zizmor", "1.32.0")]),
        ({"sub/.flake8": "", "pyproject.toml": "tool = 1\n"}, []),
    ],
)  # fmt: skip
def test_the_tools_are_those_that_the_root_sets_up(
    files: Mapping[str, str], tools: list[tuple[str, str]]
) -> None:
    assert [(c.linter.name, c.version) for c in find_configured_linters(files, files.get)] == tools


def test_node_tools_come_from_the_lock_without_their_scripts() -> None:
    assert node_setup_command(["package-lock.json"]).startswith("npm ci --ignore-scripts")
    assert node_setup_command(["yarn.lock"]).startswith(
        "yarn install --frozen-lockfile --ignore-scripts"
    )
    assert node_setup_command(["pnpm-lock.yaml"]).startswith(
        "pnpm install --frozen-lockfile --ignore-scripts"
    )
    assert node_setup_command(["package.json"]) == ""


@pytest.mark.parametrize(
    ("prints", "output", "rows"),
    [
        ("json", '[{"filename": "/work/a.py", "location": {"row": 3}, "code": "E501", "message": "long"}]', [("a.py", 3, 3, "E501")]),
        ("json", '[{"filePath": "/work/a.js", "messages": [{"line": 2, "endLine": 4, "ruleId": "no-undef", "message": "x"}]}]',
         [("a.js", 2, 4, "no-undef")]),
        ("json", "[1, {}, null]", []),
        ("json", "", []),
        ("lines", "./a.py:7:1: F401 unused\nnoise\n", [("a.py", 7, 7, "F401")]),
        ("lines", "************* Module a\na.py:3:0: unused-import Unused import os\n", [("a.py", 3, 3, "unused-import")]),
        ("lines", "a.py:3:5: error: Name \"x\" is not defined  [name-defined]\na.py:3:5: note: see\n", [("a.py", 3, 3, "name-defined")]),
        ("diff", "--- a.py\t2024-01-01\n+++ a.py\t2024-01-01\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", [("a.py", 2, 2, "format")]),
        ("diff", "--- /work/a.py:before\n+++ /work/a.py:after\n@@ -1,2 +1,1 @@\n-b\n-c\n+B\n", [("a.py", 1, 2, "format")]),
        ("names", "[warn] x\nsrc/a.ts\n", [("src/a.ts", 1, 1, "format")]),
        ("annotations", "::error title=lint/suspicious/noDebugger,file=a.js,line=4,endLine=4,col=1,endColumn=9::This is x\n",
         [("a.js", 4, 4, "lint/suspicious/noDebugger")]),
        ("annotations", "::error file=./.github/workflows/a.yml,line=7,title=template-injection::a.yml:7: code injection via template expansion\n",
         [(".github/workflows/a.yml", 7, 7, "template-injection")]),
        ("annotations", "::error file=a.yml,line=x,title=y::z\n::warning title=t,file=a.yml::no line\n::error ::\n", []),
    ],
)  # fmt: skip
def test_every_way_of_printing_is_read(
    prints: str, output: str, rows: list[tuple[str, int, int, str]]
) -> None:
    assert [(h.path, h.line, h.end_line, h.rule) for h in parse_lint_output(output, prints)] == rows
