"""Checks 8 and 9: new ways out of the program, and how much a patch changes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from regreen.fixers.checks.change import FileChange, Reason
from regreen.fixers.checks.paths import is_document, is_source, is_test

_NETWORK = {
    "socket",
    "requests",
    "urllib",
    "urllib2",
    "urllib3",
    "http",
    "httpx",
    "aiohttp",
    "ftplib",
    "smtplib",
    "telnetlib",
    "paramiko",
    "websocket",
    "websockets",
}
_WORDS_ONLY = {"urllib.parse", "urllib.error", "http.HTTPStatus", "http.HTTPMethod"}
"""Parts of the network's modules that only name or take apart: nothing leaves through them."""
_EXECUTES = {
    "subprocess",
    "ctypes",
    "pickle",
    "marshal",
    "dill",
    "base64",
    "pty",
    "cffi",
    "runpy",
    "code",
    "codeop",
}
_CALLS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "os.system",
    "os.popen",
    "os.execv",
    "os.execvp",
    "os.spawnv",
    "importlib.import_module",
    "os.fork",
}
_ENVIRONMENT = {"os.environ", "os.getenv", "os.environb"}
_ADDRESS = re.compile(
    r"\bhttps?://(?!(?:docs\.|www\.w3\.org|example\.|json-schema\.org|schemas?\.|localhost|127\.0\.0\.1))[\w.-]{3,200}|\b(?:\d{1,3}\.){3}\d{1,3}\b"
)
_SHELL = re.compile(r"\b(?:curl|wget|nc|bash -i|/dev/tcp/|eval|base64 -d)\b")
_INSTALL = re.compile(r"cmdclass|\"(?:pre|post)?install\"\s*:|\"prepare\"\s*:|setup_requires")


def no_new_reach(files: Sequence[FileChange]) -> list[Reason]:
    """Check 8: network, processes, evaluation and environment that the file did not use before."""
    reasons: list[Reason] = []
    for file in files:
        if is_document(file.path) or is_test(file.path):
            continue
        reasons.extend(_python(file) if file.is_python else _other(file))
    return reasons


def _python(file: FileChange) -> Iterator[Reason]:
    used = _uses(file.new_tree) - _uses(file.old_tree)
    network, executes = used & _NETWORK, used & (_EXECUTES | _CALLS)
    if network and (used & _ENVIRONMENT or _uses(file.new_tree) & _ENVIRONMENT):
        yield Reason(
            "reach",
            f"{file.path} reads the environment and gains network access ({_list(network)})",
            "deny",
        )
    elif network:
        yield Reason("reach", f"{file.path} gains network access ({_list(network)})")
    if executes:
        yield Reason("reach", f"{file.path} gains ways to run code ({_list(executes)})")
    if used & _ENVIRONMENT:
        yield Reason("reach", f"{file.path} starts to read the environment")
    new = set(_addresses(file.new_tree)) - set(_addresses(file.old_tree))
    if new:
        yield Reason("reach", f"{file.path} gains the address {min(new)}")
    if file.path.endswith("setup.py") and len(_INSTALL.findall(file.new or "")) > len(
        _INSTALL.findall(file.old or "")
    ):
        yield Reason("reach", f"{file.path} gains code that runs on installation")


def _other(file: FileChange) -> Iterator[Reason]:
    if file.suffix in {
        ".lock",
        ".json",
        ".txt",
        ".toml",
        ".cfg",
        ".csv",
        ".svg",
        ".html",
        ".css",
    } and not file.path.endswith("package.json"):
        return
    for pattern, what in (
        (_SHELL, "runs or fetches foreign code"),
        (_INSTALL, "runs code on installation"),
    ):
        if len(pattern.findall(file.added_text)) > sum(
            len(pattern.findall(line)) for _, line in file.removed
        ):
            yield Reason("reach", f"{file.path} {what}")
    address = _ADDRESS.search(file.added_text)
    if address and address.group(0) not in (file.old or ""):
        yield Reason("reach", f"{file.path} gains the address {address.group(0)[:80]}")


def _uses(tree: ast.Module | None) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Import):
            found |= {one.name.split(".")[0] for one in node.names if one.name not in _WORDS_ONLY}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            if node.module not in _WORDS_ONLY and not names <= _WORDS_ONLY:
                found.add(node.module.split(".")[0])
            found |= names
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found.add(node.func.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{node.value.id}.{node.attr}"
            found.add(name)
            if node.value.id == "urllib" and name not in _WORDS_ONLY:
                found.add("urllib")  # `import urllib.parse` makes its siblings reachable too
    return found & (_NETWORK | _EXECUTES | _CALLS | _ENVIRONMENT)


def _addresses(tree: ast.Module | None) -> Iterator[str]:
    documentation = {
        id(node.value)
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree) if tree else ():
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in documentation
        ):
            for found in _ADDRESS.finditer(node.value[:2000]):
                yield found.group(0)[:80]


def _list(names: set[str]) -> str:
    return ", ".join(sorted(names))


def small_enough(
    files: Sequence[FileChange], *, max_lines: int, max_files: int = 3
) -> list[Reason]:
    """Check 9: what a person can read at a glance; tests and documents do not count."""
    source = [file for file in files if is_source(file.path)]
    lines = sum(max(len(file.added), len(file.removed)) for file in source)
    reasons: list[Reason] = []
    if lines > max_lines:
        reasons.append(
            Reason("size", f"{lines} lines change; more than {max_lines} need a person's eye")
        )
    if len(source) > max_files:
        reasons.append(
            Reason("size", f"{len(source)} files change; more than {max_files} need a person's eye")
        )
    added, removed = (
        sum(len(file.added) for file in source),
        sum(len(file.removed) for file in source),
    )
    if not added and removed > 10:
        reasons.append(Reason("size", f"it only takes away: {removed} lines"))
    for file in source:
        gone = public_names(file.old_tree) - public_names(file.new_tree)
        if (gone and file.new_tree is not None) or (file.new is None and gone):
            reasons.append(Reason("size", f"{file.path} no longer defines {_list(gone)}"))
    return reasons


def public_names(tree: ast.Module | None) -> set[str]:
    """The functions and classes that a module offers, methods included."""
    found: set[str] = set()
    for node in tree.body if tree else ():
        if isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        ) and not node.name.startswith("_"):
            found.add(node.name)
            for inner in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(
                    inner, ast.FunctionDef | ast.AsyncFunctionDef
                ) and not inner.name.startswith("_"):
                    found.add(f"{node.name}.{inner.name}")
    return found
