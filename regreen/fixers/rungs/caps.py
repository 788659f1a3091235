"""Releases that the code does not fit: which distribution a failure points at, and the bound that keeps the release out."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from regreen.fixers.checks.change import parse_python
from regreen.fixers.checks.dependencies import declared
from regreen.fixers.rungs.task_runners import Read
from regreen.models import Failure

MARK = ".regreen-brought"
# What each importable name comes from, and at which version; the environment of uv and poetry too, if there is one.
LIST = f"""for py in /work/.venv/bin/python python; do
"$py" -c '
from importlib.metadata import packages_distributions, version
for top, names in packages_distributions().items():
    print(top, names[0], version(names[0]))' 2>/dev/null && break
done > {MARK}; cat {MARK}"""
_FROM = re.compile(
    r"cannot import name '[^'\n]{1,100}' from (?:partially initialized module )?'([A-Za-z_]\w*)[\w.]*' \([^)\n]*(?:site|dist)-packages/"
)
_INSIDE = re.compile(r"No module named '([A-Za-z_]\w*)\.[\w.]+'")
_OF_MODULE = re.compile(r"module '([A-Za-z_]\w*)[\w.]*' has no attribute")
_FOREIGN = re.compile(r"(?:site|dist)-packages/([A-Za-z_]\w*)(?:/|\.py)")
# Fixtures that a plugin had, and took away with a release.
_FIXTURE = re.compile(r"fixture '(event_loop|loop|unused_port|test_client|test_server)' not found")
_HAD = {"event_loop": "pytest_asyncio", "loop": "pytest_aiohttp", "unused_port": "pytest_aiohttp", "test_client": "pytest_aiohttp", "test_server": "pytest_aiohttp"}  # fmt: skip
_WORDS = re.compile(
    r"\b(?:removed|no longer|moved to|has been moved|deprecated|renamed|unexpected keyword argument)\b",
    re.IGNORECASE,
)
_KINDS = frozenset({"ImportError", "AttributeError"})
_NEVER = frozenset({"pytest", "_pytest", "pluggy", "importlib_metadata", "coverage"})


def suspects(failures: Sequence[Failure], output: str, read: Read) -> tuple[str, ...]:
    """The imported names whose distribution the failures point at, the surest first.

    Args:
        failures: what failed, with the frames of each.
        output: what the command printed.
        read: gives a file of the repository.
    """
    found = [match[1] for kind in (_FROM, _INSIDE, _OF_MODULE) for match in kind.finditer(output)]
    found += [_HAD[match[1]] for match in _FIXTURE.finditer(output)]
    for failure in failures[:50]:
        kind = failure.kind.rpartition(".")[2]
        telling = kind in _KINDS or bool(_WORDS.search(failure.message))
        if not telling or "'NoneType'" in failure.message:
            continue
        inner = failure.frames[-1] if failure.frames else None
        where = _FOREIGN.search(inner.path) if inner else None
        if where:
            found.append(where[1])
        elif _WORDS.search(failure.message) and failure.path and failure.line:
            found += _named_at(read(failure.path) or "", failure.line)
    named = dict.fromkeys(one for one in found if one not in _NEVER)
    return tuple(one for one in named if one not in sys.stdlib_module_names)


def _named_at(text: str, line: int) -> Iterator[str]:
    """The modules that the names on a line were imported from."""
    tree = parse_python(text)
    source: dict[str, str] = {}
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            source.update({one.asname or one.name: node.module.split(".")[0] for one in node.names})
        elif isinstance(node, ast.Import):
            tops = (
                (one.asname or one.name.split(".")[0], one.name.split(".")[0]) for one in node.names
            )
            source.update(tops)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Name) and node.lineno == line and node.id in source:
            yield source[node.id]


def brought_by(listed: str) -> Mapping[str, tuple[str, str]]:
    """What `LIST` printed: importable name to distribution and version."""
    rows = (line.split() for line in listed.splitlines())
    return {row[0]: (row[1], row[2]) for row in rows if len(row) == 3}


def bounds(name: str, brought: Mapping[str, tuple[str, str]]) -> tuple[str, tuple[str, ...]]:
    """The distribution behind an imported name, and the releases to stay below, the newest first."""
    distribution, text = brought.get(name, ("", ""))
    try:
        version = Version(text)
    except InvalidVersion:
        return distribution, ()
    if version.major == 0:
        return distribution, (f"0.{version.minor}",) if version.minor else ()
    return distribution, tuple(str(one) for one in (version.major, version.major - 1) if one > 0)


def capped(path: str, text: str, name: str, bound: str) -> str | None:
    """The manifest with the distribution held below `bound`; None where it does not name it, or bounds it already."""
    key = canonicalize_name(name)
    before = declared(path, text)
    if key not in before or re.search(r"[<^]|==|~=", before[key]):
        return None
    loose = re.sub(r"[-_.]+", "[-_.]+", re.escape(name).replace(r"\-", "-").replace(r"\.", "."))
    line = re.compile(
        rf"(?im)(?P<head>(?:^|[\"'\s,]){loose}(?:\[[^\]\n]{{0,80}}\])?)(?P<gap>[ \t]*)(?P<spec>(?:[<>!]=?[^\"'\n;#,\]]*,?[ \t]*)*)(?=[\"';#\]\n]|$)"
    )
    of_table = re.compile(
        rf"(?im)^(?P<head>[\"']?{loose}[\"']?[ \t]*=[ \t]*[\"'])(?P<gap>)(?P<spec>[^\"'\n]*)"
    )
    for pattern in (of_table, line):
        for match in pattern.finditer(text):
            spec = match["spec"].rstrip(" ,").replace("*", "")
            new = (
                f"{match['head']}{match['gap'] if spec else ''}{spec}{',' if spec else ''}<{bound}"
            )
            rest = (
                match["spec"][len(match["spec"].rstrip()) :]
                if spec
                else (match["gap"] if text[match.end() : match.end() + 1] in {"#", ";"} else "")
            )
            after = f"{text[: match.start()]}{new}{rest}{text[match.end() :]}"
            if f"<{bound}" in declared(path, after).get(key, ""):
                return after
    return None
