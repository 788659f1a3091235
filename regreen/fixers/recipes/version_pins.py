"""Finds and changes version pins: versions that are gone, do not build or conflict, and releases that break the code."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from regreen.code.python_calls import parse_python
from regreen.domain.environments import ReadText
from regreen.domain.models import Failure
from regreen.gate.checks.dependencies import read_declared_versions

_NAME_PATTERN = r"([A-Za-z0-9][\w.-]{0,80}?)"
_BLAMED_PATTERNS = (
    re.compile(
        rf"The user requested (?:\(constraint\) )?{_NAME_PATTERN}(?:\[[^\]]{{0,80}}\])?(?:[=<>~!]=?|\s|$)"
    ),
    re.compile(
        rf"(?:No matching distribution found for|satisfies the requirement) {_NAME_PATTERN}(?:\[[^\]]{{0,80}}\])?[=<>~!]"
    ),
    re.compile(rf"Failed building wheel for {_NAME_PATTERN}\s"),
    re.compile(rf"Failed to build '?{_NAME_PATTERN}(?:[=' ]|$)", re.MULTILINE),
    re.compile(rf"Failed to build `{_NAME_PATTERN}=="),
    re.compile(rf"Cannot install (?:[^\n]{{0,200}}? and )?{_NAME_PATTERN}=="),
    re.compile(rf"there is no version of {_NAME_PATTERN}[=<>~]"),
    re.compile(rf"╰─> {_NAME_PATTERN}\s*$", re.MULTILINE),
)
_COLLECTING_LINE = re.compile(rf"^[ \t]*Collecting {_NAME_PATTERN}[=<>~]", re.MULTILINE)
_NON_NAMES = {"See", "above", "some", "installable", "from", "build", "wheel", "wheels", "one"}
VERSIONS_PATH = ".regreen-versions"
FREEZE_SCRIPT = f"python -m pip list --format=freeze > {VERSIONS_PATH} 2>/dev/null || uv pip freeze > {VERSIONS_PATH}"


def find_blamed_distributions(output: str) -> tuple[str, ...]:
    """The canonical names of the distributions that the installer complains about."""
    found = [
        match[1].rstrip(".") for pattern in _BLAMED_PATTERNS for match in pattern.finditer(output)
    ]
    if "subprocess-exited-with-error" in output and (collected := _COLLECTING_LINE.findall(output)):
        found.append(collected[-1])
    return tuple(dict.fromkeys(canonicalize_name(name) for name in found if name not in _NON_NAMES))


def find_pin(text: str, name: str) -> re.Match[str] | None:
    """The place where a manifest pins the distribution to one version."""
    loose = re.sub(r"-", r"[-_.]+", re.escape(name).replace(r"\-", "-"))
    return re.search(
        rf"(?im)(?P<head>(?:^|[\"'\s,]){loose}(?:\[[^\]\n]{{0,80}}\])?\s*)(?P<spec>={{2,3}}\s*[\w.!+*-]+)",
        text,
    )


def replace_pin(text: str, name: str, pin: str) -> str | None:
    """The manifest with another pin ("" for none) for the distribution; None if it has none."""
    match = find_pin(text, name)
    return match and f"{text[: match.start('spec')]}{pin}{text[match.end('spec') :]}"


def find_version(frozen: str, name: str) -> str | None:
    """The version of the distribution in an installer's list."""
    for line in frozen.splitlines():
        found, _, version = line.strip().partition("==")
        if canonicalize_name(found) == name and re.fullmatch(r"[\w.!+-]{1,60}", version):
            return version
    return None


def find_manifests(files: Sequence[str]) -> list[str]:
    """The files that may contain a pin."""
    return [
        path
        for path in files
        if path.rsplit("/", 1)[-1] in {"pyproject.toml", "setup.cfg", "setup.py", "Pipfile"}
        or (path.endswith((".txt", ".in")) and re.search(r"require|constraint|reqs", path))
    ][:20]


# Releases that break the code: the distribution that a failure points at, and the bound that excludes the release.

LIST_PATH = ".regreen-brought"
# Prints the distribution and version behind each importable name, also in the environment of uv or poetry.
LIST_SCRIPT = f"""for py in /work/.venv/bin/python python; do
"$py" -c '
from importlib.metadata import packages_distributions, version
for top, names in packages_distributions().items():
    print(top, names[0], version(names[0]))' 2>/dev/null && break
done > {LIST_PATH}; cat {LIST_PATH}"""
_FAILED_IMPORT = re.compile(
    r"cannot import name '[^'\n]{1,100}' from (?:partially initialized module )?'([A-Za-z_]\w*+)[\w.]*+' \([^)\n]{0,1000}(?:site|dist)-packages/"
)
_MISSING_SUBMODULE = re.compile(r"No module named '([A-Za-z_]\w*)\.[\w.]+'")
_OF_MODULE = re.compile(r"module '([A-Za-z_]\w*+)[\w.]*+' has no attribute")
_SITE_PACKAGES_MODULE = re.compile(r"(?:site|dist)-packages/([A-Za-z_]\w*)(?:/|\.py)")
# Fixtures that a plugin removed in a release.
_MISSING_FIXTURE = re.compile(
    r"fixture '(event_loop|loop|unused_port|test_client|test_server)' not found"
)
_FORMER_FIXTURE_PLUGIN = {"event_loop": "pytest_asyncio", "loop": "pytest_aiohttp", "unused_port": "pytest_aiohttp", "test_client": "pytest_aiohttp", "test_server": "pytest_aiohttp"}  # fmt: skip
_REMOVAL_WORDS = re.compile(
    r"\b(?:removed|no longer|moved to|has been moved|deprecated|renamed|unexpected keyword argument)\b",
    re.IGNORECASE,
)
_SUSPECT_ERRORS = frozenset({"ImportError", "AttributeError"})
_EXEMPT_MODULES = frozenset({"pytest", "_pytest", "pluggy", "importlib_metadata", "coverage"})


def find_suspect_modules(
    failures: Sequence[Failure], output: str, read: ReadText
) -> tuple[str, ...]:
    """The imported modules whose distributions the failures point at, the most certain first.

    Args:
        failures: what failed, with the frames of each.
        output: what the command printed.
        read: gives a file of the repository.
    """
    found = [
        match[1]
        for kind in (_FAILED_IMPORT, _MISSING_SUBMODULE, _OF_MODULE)
        for match in kind.finditer(output)
    ]
    found += [_FORMER_FIXTURE_PLUGIN[match[1]] for match in _MISSING_FIXTURE.finditer(output)]
    for failure in failures[:50]:
        kind = failure.kind.rpartition(".")[2]
        telling = kind in _SUSPECT_ERRORS or bool(_REMOVAL_WORDS.search(failure.message))
        if not telling or "'NoneType'" in failure.message:
            continue
        inner = failure.frames[-1] if failure.frames else None
        where = _SITE_PACKAGES_MODULE.search(inner.path) if inner else None
        if where:
            found.append(where[1])
        elif _REMOVAL_WORDS.search(failure.message) and failure.path and failure.line:
            found += _find_modules_at_line(read(failure.path) or "", failure.line)
    named = dict.fromkeys(module for module in found if module not in _EXEMPT_MODULES)
    return tuple(module for module in named if module not in sys.stdlib_module_names)


def _find_modules_at_line(text: str, line: int) -> Iterator[str]:
    """The modules from which the names on a line were imported."""
    tree = parse_python(text)
    source: dict[str, str] = {}
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            source.update(
                {alias.asname or alias.name: node.module.split(".")[0] for alias in node.names}
            )
        elif isinstance(node, ast.Import):
            tops = (
                (alias.asname or alias.name.split(".")[0], alias.name.split(".")[0])
                for alias in node.names
            )
            source.update(tops)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Name) and node.lineno == line and node.id in source:
            yield source[node.id]


def parse_installed_modules(listed: str) -> Mapping[str, tuple[str, str]]:
    """The output of `LIST_SCRIPT`: importable name to distribution and version."""
    rows = (line.split() for line in listed.splitlines())
    return {row[0]: (row[1], row[2]) for row in rows if len(row) == 3}


def find_version_bounds(
    name: str, brought: Mapping[str, tuple[str, str]]
) -> tuple[str, tuple[str, ...]]:
    """The distribution behind a module, and the releases to stay below, the newest first."""
    distribution, text = brought.get(name, ("", ""))
    try:
        version = Version(text)
    except InvalidVersion:
        return distribution, ()
    if version.major == 0:
        return distribution, (f"0.{version.minor}",) if version.minor else ()
    return distribution, tuple(
        str(major) for major in (version.major, version.major - 1) if major > 0
    )


def cap_version(path: str, text: str, name: str, bound: str) -> str | None:
    """The manifest with the distribution below `bound`; None if it does not declare it, or bounds it already."""
    key = canonicalize_name(name)
    before = read_declared_versions(path, text)
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
            if f"<{bound}" in read_declared_versions(path, after).get(key, ""):
                return after
    return None
