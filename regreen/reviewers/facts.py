"""What a project says of where it runs: versions of Python, versions of the packages that a change uses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from regreen.codebase.declared import declared
from regreen.codebase.diff import FileChange
from regreen.codebase.manifests import python_versions
from regreen.reviewers.context import ReviewContext

_MANIFESTS = (
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "requirements.txt",
    "package.json",
    "go.mod",
)
_MOST = 12
_MODULE = re.compile(r"(?m)^\s*(?:import|from)\s+([A-Za-z_]\w*)")
_PACKAGE = re.compile(r"""(?:from|require\()\s*['"](@?[\w./-]{1,100})['"]""")


def facts(context: ReviewContext, files: Sequence[FileChange]) -> str:
    """Up to three lines; "" where the project says nothing that bears on these files."""
    if context.git is None:
        return ""
    return "\n".join((*_python(context, files), *_packages(context, files)))


def _python(context: ReviewContext, files: Sequence[FileChange]) -> Iterator[str]:
    assert context.git is not None  # noqa: S101 - `facts` has looked
    if not any(f.path.endswith(".py") for f in files):
        return
    allowed, tested = python_versions(context.git, context.head)
    if allowed:
        yield f"Python that the project allows: {allowed}"
    if tested:
        ordered = sorted(tested, key=lambda v: tuple(map(int, v.split("."))))
        yield f"Python that it says it supports: {', '.join(ordered)}"


def _packages(context: ReviewContext, files: Sequence[FileChange]) -> Iterator[str]:
    texts = [text for f in files if (text := context.after(f.path)) is not None]
    used = {_plain(name) for text in texts for name in _MODULE.findall(text) + _PACKAGE.findall(text)}  # fmt: skip
    found: dict[str, str] = {}
    for path in _MANIFESTS:
        text = context.after(path) if used else None
        for package in declared(path, text).dependencies if text is not None else ():
            if _plain(package.name) in used and package.spec:
                found.setdefault(package.name, package.spec)
    if found:
        yield "Versions that it asks for: " + ", ".join(
            f"{name} {spec}"[:60] for name, spec in sorted(found.items())[:_MOST]
        )


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")
