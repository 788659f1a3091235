"""What Python's manifests and lock files declare."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from configparser import ConfigParser
from urllib.parse import urlsplit

from regreen.codebase.dependency import (
    VCS,
    Declared,
    Dependency,
    Source,
    is_usual_index,
    line_of,
    rows,
    source_kind,
    sourced,
    table,
)
from regreen.codebase.fstrings import parse_python

_REQUIREMENT = re.compile(
    r"^([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*(?:@\s*(\S+)|([^;#]*))"
)


def requirements(text: str) -> Declared:
    """A requirements or constraints file, continued lines joined."""
    found: list[Dependency] = []
    indexes: list[tuple[str, int]] = []
    pending, start = "", 0
    for number, raw in enumerate([*text.split("\n"), ""], 1):
        line = re.sub(r"(?:^|\s)#.*$", "", raw.rstrip("\r")).strip()
        start = start or number
        if line.endswith("\\"):
            pending += line[:-1] + " "
            continue
        whole, at = pending + line, start
        pending, start = "", 0
        if not whole:
            continue
        option = re.match(r"(?:--(extra-)?index-url|-i|--find-links|-f)[ =]\s*(\S+)", whole)
        if option is not None:
            indexes.append(
                (f"extra:{option[2]}" if option[1] or "-f" in whole[:12] else option[2], at)
            )
            continue
        one = requirement(whole, at)
        if one is not None:
            found.append(one)
    return Declared(tuple(found), tuple(indexes))


def requirement(text: str, line: int = 1) -> Dependency | None:
    """One requirement as pip writes it; None for options and empty lines."""
    plain = re.sub(r"^(?:-e|--editable)[ =]\s*", "", text.strip())
    if plain.startswith("-") or not plain:
        return None
    hashed = "--hash" in plain
    plain = plain.split(" --hash")[0].strip()
    if plain.startswith(VCS) or re.match(r"https?://|file:", plain):
        egg = re.search(r"#(?:.*&)?egg=([\w.-]+)", plain)
        name = (
            egg[1]
            if egg
            else urlsplit(plain)
            .path.rstrip("/")
            .rpartition("/")[2]
            .removesuffix(".git")
            .partition("@")[0]
        )
        return Dependency(
            name or plain,
            "pypi",
            "",
            "vcs" if plain.startswith(VCS) else "url",
            plain,
            line,
            hashed,
        )
    if plain.startswith((".", "/")) or re.match(r"[\w.-]+/", plain):
        return Dependency(plain, "pypi", "", "path", plain, line, hashed)
    match = _REQUIREMENT.match(plain)
    if match is None:
        return Dependency(plain.split()[0], "pypi", plain, line=line, hashed=hashed)
    name, where, spec = match.groups()
    if where:
        source: Source = (
            "vcs" if where.startswith(VCS) else "path" if where.startswith("file:") else "url"
        )
        return Dependency(name, "pypi", "", source, where, line, hashed or "#sha256=" in where)
    return Dependency(name, "pypi", (spec or "").strip(), line=line, hashed=hashed)


def pyproject(text: str) -> Declared:
    """`pyproject.toml`: the standard tables, Poetry's and uv's."""
    data = tomllib.loads(text)
    project, tool = table(data, "project"), table(data, "tool")
    texts: list[object] = [
        *rows(project, "dependencies"),
        *rows(table(data, "build-system"), "requires"),
    ]
    for group in table(project, "optional-dependencies").values():
        texts += group if isinstance(group, list) else []
    for group in table(data, "dependency-groups").values():
        texts += group if isinstance(group, list) else []
    texts += rows(table(tool, "uv"), "dev-dependencies")
    found = [
        one
        for item in texts
        if isinstance(item, str) and (one := requirement(item, line_of(text, item[:40])))
    ]
    found += _poetry(table(tool, "poetry"), text)
    sources = table(table(tool, "uv"), "sources")
    found = [sourced(one, sources.get(one.name), text) for one in found]
    return Declared(tuple(found), tuple(_pyproject_indexes(tool, text)))


def _poetry(poetry: dict[str, object], text: str) -> list[Dependency]:
    tables = [table(poetry, "dependencies"), table(poetry, "dev-dependencies")]
    tables += [table(group, "dependencies") for group in table(poetry, "group").values()]
    return [
        sourced(
            Dependency(
                name, "pypi", spec if isinstance(spec, str) else "", line=line_of(text, name)
            ),
            spec,
            text,
        )
        for table in tables
        for name, spec in table.items()
        if name != "python"
    ]


def _pyproject_indexes(tool: dict[str, object], text: str) -> Iterator[tuple[str, int]]:
    found = [
        *rows(table(tool, "uv"), "index"),
        *rows(table(tool, "poetry"), "source"),
        *rows(table(tool, "pdm"), "source"),
    ]
    for row in found:
        if isinstance(row, dict) and isinstance(row.get("url"), str):
            yield (f"extra:{row['url']}", line_of(text, row["url"]))
    uv = table(tool, "uv")
    for key in ("index-url", "extra-index-url", "find-links"):
        value = uv.get(key)
        for address in value if isinstance(value, list) else [value]:
            if isinstance(address, str):
                yield (
                    address if key == "index-url" else f"extra:{address}",
                    line_of(text, address),
                )


def setup_cfg(text: str) -> Declared:
    """`setup.cfg`."""
    parser = ConfigParser(interpolation=None, strict=False)
    parser.read_string(text)
    blocks = [
        parser.get("options", key, fallback="")
        for key in ("install_requires", "setup_requires", "tests_require")
    ]
    if parser.has_section("options.extras_require"):
        blocks += [value for _, value in parser.items("options.extras_require")]
    lines = [
        line.strip()
        for block in blocks
        for line in block.split("\n")
        if line.strip() and not line.strip().startswith("#")
    ]
    return Declared(tuple(one for line in lines if (one := requirement(line, line_of(text, line)))))


def setup_py(text: str) -> Declared:
    """What `setup.py` says literally; it is never run."""
    wanted = {"install_requires", "setup_requires", "tests_require", "extras_require"}
    found: list[Dependency] = []
    for node in ast.walk(parse_python(text)):
        named = isinstance(node, ast.keyword) and node.arg in wanted
        assigned = isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and "requires" in t.id.lower() for t in node.targets
        )
        if isinstance(node, ast.keyword | ast.Assign) and (named or assigned):
            for written, line in _literals(node.value):
                one = requirement(written, line)
                if one is not None and re.search(r"[\w.-]", written):
                    found.append(one)
    return Declared(tuple(found))


def _literals(node: ast.expr) -> Iterator[tuple[str, int]]:
    """The requirements that an expression spells out, each with its line; what it computes or reads is left alone."""
    match node:
        case ast.Constant(value=str(text)):
            for offset, row in enumerate(text.split("\n")):
                yield row, node.lineno + offset
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            for part in parts:
                yield from _literals(part)
        case ast.Dict(values=parts):  # the keys of extras_require are names of extras
            for part in parts:
                yield from _literals(part)
        case ast.BinOp(left=left, right=right) | ast.IfExp(body=left, orelse=right):
            yield from _literals(left)
            yield from _literals(right)
        case ast.Starred(value=part):
            yield from _literals(part)
        case ast.Call(func=ast.Attribute(value=part, attr="split" | "splitlines")):
            yield from _literals(part)
        case _:
            return


def python_lock(text: str) -> Declared:
    """`uv.lock`, `poetry.lock` or `pdm.lock`."""
    data = tomllib.loads(text)
    found: list[Dependency] = []
    indexes: dict[str, int] = {}
    starts = {
        m[1]: text.count("\n", 0, m.start()) + 1
        for m in re.finditer(r'(?m)^name = "([^"]+)"', text)
    }
    for row in rows(data, "package"):
        if not isinstance(row, dict):
            continue
        name, line = str(row.get("name", "")), starts.get(str(row.get("name", "")), 1)
        source = table(row, "source")
        kind, where = "index", ""
        if "git" in source or source.get("type") == "git":
            kind, where = "vcs", str(source.get("git") or source.get("url"))
        elif any(
            key in source for key in ("editable", "virtual", "directory", "path")
        ) or source.get("type") in {"directory", "file"}:
            kind = "path"
        elif "url" in source and source.get("type") in {None, "url"}:
            kind, where = "url", str(source["url"])
        registry = str(source.get("registry") or "")
        if registry and not is_usual_index(urlsplit(registry).hostname or "") and "://" in registry:
            indexes.setdefault(registry, line)
        hashed = "hash" in repr((row.get("sdist"), row.get("wheels"), row.get("files")))
        found.append(
            Dependency(
                name, "pypi", str(row.get("version", "")), source_kind(kind), where, line, hashed
            )
        )
    return Declared(tuple(found), tuple(indexes.items()), is_lock=True)


def pipfile(text: str) -> Declared:
    """Pipenv's `Pipfile`."""
    data = tomllib.loads(text)
    found = [
        sourced(Dependency(name, "pypi", str(spec), line=line_of(text, name)), spec, text)
        for group in ("packages", "dev-packages")
        for name, spec in table(data, group).items()
    ]
    indexes = [
        (f"extra:{row['url']}", line_of(text, str(row["url"])))
        for row in rows(data, "source")
        if isinstance(row, dict) and "url" in row
    ]
    return Declared(tuple(found), tuple(indexes))
