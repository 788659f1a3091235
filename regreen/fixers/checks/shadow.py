"""What a patch puts in front of something else: a module with a taken name, characters that a reader cannot see."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence

from regreen.fixers.checks.change import FileChange, Reason
from regreen.fixers.checks.paths import is_document, is_test

_TOOLS = frozenset(
    {"pytest", "_pytest", "pluggy", "unittest", "coverage", "hypothesis", "nose", "mock", "tox", "nox", "xdist", "pip", "setuptools",
     "mypy", "ruff", "black", "flake8", "pylint", "jest", "vitest", "mocha", "chai"}
)  # fmt: skip
_LIBRARIES = frozenset(
    {"numpy", "pandas", "scipy", "requests", "httpx", "aiohttp", "flask", "django", "click", "yaml", "attr", "attrs", "pydantic",
     "sqlalchemy", "jinja2", "werkzeug", "six", "dateutil", "urllib3", "boto3", "lxml", "bs4", "PIL", "matplotlib", "sklearn", "torch",
     "redis", "celery", "fastapi", "starlette", "rich", "typer", "packaging", "typing_extensions", "simplejson", "cryptography"}
)  # fmt: skip
_ROOTS = ("src/", "lib/", "tests/", "test/")
# Marks that reorder or hide text make a reviewer read another program than the one that runs.
_REORDERS = re.compile("[\u202a-\u202e\u2066-\u2069]")
_COOKIE = re.compile(
    r"^[ \t\f]*#.*?coding[:=][ \t]*(?!utf-?8|ascii|latin-?1|iso-8859-1\b)[-\w.]+", re.IGNORECASE
)
# A remark to whoever judges the patch, person or program, is no part of a repair.
_ADDRESSES = re.compile(
    r"(?:#|//|/\*|<!--|--)[^\n]{0,200}\b(?:reviewers?|bots?|assistants?|LLMs?|AI|regreen|language models?|the gate)\b[^\n]{0,200}\b(?:approved?|allow|accept|answer|ignore|skip|pass|safe|trust)",
    re.IGNORECASE,
)
_INVISIBLE = re.compile("[\u200b-\u200f\u2060-\u2064\u00ad\ufeff\U000e0000-\U000e007f]")


def nothing_shadowed(files: Sequence[FileChange], tree: Sequence[str]) -> list[Reason]:
    """No new module takes the name of a standard module, of a test tool or of a well-known library."""
    reasons: list[Reason] = []
    gone = {file.path for file in files if file.new is None}
    for file in files:
        twin = f"{file.path.removesuffix('/__init__.py')}.py"
        if file.old is None and twin != f"{file.path}.py" and twin in set(tree) - gone:
            what = f"{file.path} stands in front of {twin}, which nobody imports any more"
            reasons.append(Reason("special_case", what, "deny"))
        same = [path for path in tree if path != file.path and _name(path) == _name(file.path)]
        if file.old is None and same and is_test(file.path) and _name(file.path) != "__init__.py":
            what = f"{file.path} has the name of the test {same[0]}, in whose place it may be run"
            reasons.append(Reason("special_case", what))
        name = _module(file.path) if file.old is None and file.new is not None else ""
        if not name or any(path.startswith((f"{name}/", f"src/{name}/")) for path in tree):
            continue
        if name in _TOOLS or name in sys.stdlib_module_names:
            what = f"{file.path} hides the module {name}, which others import by that name"
            reasons.append(Reason("special_case", what, "deny"))
        elif name in _LIBRARIES:
            what = f"{file.path} stands in front of the library {name}"
            reasons.append(Reason("special_case", what))
    return reasons


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _module(path: str) -> str:
    """The name by which a file at an import root is imported; empty for files inside packages."""
    for root in _ROOTS:
        path = path.removeprefix(root)
    match path.split("/"):
        case [name] if name.endswith((".py", ".so", ".pyd")):
            return name.split(".", maxsplit=1)[0]
        case [folder, "__init__.py"]:
            return folder
        case ["node_modules", folder, *_]:
            return folder
        case _:
            return ""


def nothing_hidden(files: Sequence[FileChange]) -> list[Reason]:
    """No line that reads otherwise than it runs."""
    return [reason for file in files if not is_document(file.path) for reason in _hidden(file)]


def _hidden(file: FileChange) -> Iterator[Reason]:
    for pattern, what in (
        (_REORDERS, "holds marks that change the order in which text is shown"),
        (_INVISIBLE, "holds characters that cannot be seen"),
        (_COOKIE, "is written in an encoding that hides what it says"),
        (_ADDRESSES, "speaks to whoever judges the patch"),
    ):
        now = sum(len(pattern.findall(line)) for _, line in file.added)
        then = sum(len(pattern.findall(line)) for _, line in file.removed)
        if now > then:
            number = next(number for number, line in file.added if pattern.search(line))
            yield Reason("special_case", f"{file.path}:{number} {what}", "deny")
