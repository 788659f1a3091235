"""Each fact is decided in one place: what a path is, what a credential looks like, how a command says "not here"."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import regreen

PRODUCT = Path(regreen.__file__).parent
PATHS = {"code/paths.py"}
SECRETS = {"secrets/credential_formats.py", "secrets/credential_detection.py", "secrets/redaction.py"}  # fmt: skip

# A folder ends with "/": all its modules may contain it. Data flow and packages are tables of their languages.
LANGUAGE_TABLES = {"languages/", "code/", "logs/", "packages/", "shell/", "taint/"}

# A pattern that is searched in the texts of the code (docstrings aside), and the modules that may contain it.
TEXTS = {
    "a test's folder": (r"__tests__|testdata|__mocks__|__fixtures__|testsuite$", PATHS),
    "test support": (
        r"\bconftest\b",
        # what pytest prints, what a program under test may name, and where a fixture counts
        PATHS | {"logs/python_tests.py", "gate/checks/test_names.py", "reviewers/analyzers/python_contracts.py"},
    ),
    "a document": (r"(?i)changelog|newsfragments|whats_new", PATHS),
    "a copy of somebody's code": (r"third_party|bower_components|_vendor\b", PATHS),
    "a generated file": (r"@generated|_pb2|do not \(?\??:?\(?edit", PATHS),
    "how to give a command more time": (r"give --max-minutes", {"cli/options.py"}),
    "codes for a terminal": (r"\\x1b", {"domain/text_limits.py"}),
    "security by a path's words": (r"\brbac\b|\bauthn\b", PATHS),
    "how a language's files end": (
        r"^\.(?:pyi?|pyw|[cm]?[jt]sx?|go|rs|java)$",
        LANGUAGE_TABLES | {"actions/driver.py"},  # the file for a step whose `shell` is Python
    ),
    "which language a file has": (
        r"^(?:python|javascript|typescript|tsx|golang|go|rust|java)$",
        LANGUAGE_TABLES
        | {
            # words of workflows: shells, setup actions, ecosystems; programs that steps run
            "actions/driver.py", "actions/phases.py", "actions/steps.py", "actions/known/",
            "fixers/recipes/task_runners.py",  # pre-commit's word for a hook
            # the interpreter of a box
            "adapters/sandbox/docker/", "bisect/verdict_memory.py", "runs/capsule.py",
            "adapters/sandbox/host.py",  # programs of this machine
            # the fence around a generated test
            "bot/messages/", "reviewers/document.py",
        },
    ),
    "a test runner": (
        r"^(?:pytest|py\.test|unittest|jest|vitest|mocha)$",
        LANGUAGE_TABLES
        | {
            "reviewers/analyzers/vacuous_tests.py",  # what a call in a test may belong to
        },
    ),
    "a token's prefix": (r"gh\[?p[a-z]*\]?_|github_pat_|glpat|AKIA|sk-ant-|xox[\[a-z]", SECRETS),
}  # fmt: skip
NUMBERS = {"a command that cannot be tried": (125, {"runs/trial.py"})}
IMPORTS = {
    "YAML that strangers wrote": (
        "ruamel.yaml",
        {
            "code/config_loaders.py",
            "code/workflow_document.py",
            "code/repo_config_file.py",
            "bot/repository_settings.py",  # writes it
            "cli/env.py",  # writes it
            "reviewers/findings.py",  # compares the values of two texts
            "reviewers/analyzers/syntax.py",  # parses to find a fault, makes no values
        },
    )
}
DEFINITIONS = {
    "whether a path is a test": (r"_?is_test(?:_path|_file)?", PATHS),
    "whether a path is a document": (r"_?is_(?:document|doc|changelog)", PATHS),
    "whether a path is source": (r"_?is_source(?:_file)?", PATHS),
    "delta debugging": (
        r"_?(?:ddmin|minimize_(?:items|pieces|in_batches))",
        {"fixers/minimization.py"},
    ),
}


@cache
def modules() -> dict[str, list[ast.AST]]:
    return {
        path.relative_to(PRODUCT).as_posix(): list(ast.walk(ast.parse(path.read_text("utf-8"))))
        for path in PRODUCT.rglob("*.py")
    }


@cache
def constants() -> dict[str, list[object]]:
    """The texts and numbers in each module's code, documentation aside."""
    found: dict[str, list[object]] = {}
    for name, nodes in modules().items():
        bodies = (getattr(node, "body", None) for node in nodes)
        documentation = {
            id(statement.value)
            for body in bodies
            for statement in (body if isinstance(body, list) else [])
            if isinstance(statement, ast.Expr)
        }
        found[name] = [
            node.value
            for node in nodes
            if isinstance(node, ast.Constant) and id(node) not in documentation
        ]
    return found


@pytest.mark.parametrize("fact", TEXTS)
def test_a_text_stands_only_where_its_fact_is_decided(fact: str) -> None:
    pattern, deciding = TEXTS[fact]
    found = {
        name
        for name, values in constants().items()
        for value in values
        if isinstance(value, str) and re.search(pattern, value)
    }
    allowed = {name for name in found if name.startswith(tuple(deciding))}
    assert allowed
    assert found == allowed


@pytest.mark.parametrize("fact", NUMBERS)
def test_a_number_stands_only_where_its_fact_is_decided(fact: str) -> None:
    number, deciding = NUMBERS[fact]
    found = {
        name
        for name, values in constants().items()
        if any(type(value) is int and value == number for value in values)
    }
    assert found == deciding


@pytest.mark.parametrize("fact", IMPORTS)
def test_a_library_is_used_only_where_its_fact_is_decided(fact: str) -> None:
    library, deciding = IMPORTS[fact]
    found = {
        name
        for name, nodes in modules().items()
        for node in nodes
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(library)
    }
    assert found == deciding


@pytest.mark.parametrize("fact", DEFINITIONS)
def test_a_function_is_defined_only_where_its_fact_is_decided(fact: str) -> None:
    pattern, deciding = DEFINITIONS[fact]
    found = {
        name
        for name, nodes in modules().items()
        for node in nodes
        if isinstance(node, ast.FunctionDef) and re.fullmatch(pattern, node.name)
    }
    assert found <= deciding
