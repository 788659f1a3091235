"""What Python's manifests and lock files declare."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from configparser import ConfigParser
from dataclasses import replace
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
from regreen.codebase.packages import normal
from regreen.codebase.requirement_file import lines_of

_REQUIREMENT = re.compile(
    r"^([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*(?:@\s*(\S+)|([^;#]*))"
)


_URLS = re.compile(r"https?://[^'\"\s]+")
_SUMS = re.compile(r"\b(?:sha\d+|md5|blake2b):\w+")
# What a command of setuptools does on a user's machine, beside building.
_ON_INSTALL = frozenset({"install", "develop", "egg_info", "easy_install", "build_py"})
_REACHES_OUT = re.compile(
    r"^(?:os\.(?:system|popen)|subprocess\.\w+|urllib\.request\.\w+|urlopen|requests\.\w+|exec|eval|socket\.\w+)$"
)


def requirements(text: str) -> Declared:
    """A requirements or constraints file, read as pip reads it."""
    found: list[Dependency] = []
    indexes: list[tuple[str, int]] = []
    for line in lines_of(text):
        hashed = any(name == "--hash" for name, _ in line.options)
        named = [line.requirement, *(value for name, value in line.options if name == "-e")]
        for written in named:
            one = requirement(written, line.number)
            if one is not None:
                found.append(replace(one, hashed=one.hashed or hashed))
        indexes += [
            (value if name == "-i" else f"extra:{value}", line.number)
            for name, value in line.options
            if name in {"-i", "-f", "--extra-index-url"}
        ]
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
    uv = table(tool, "uv")
    for key in ("dev-dependencies", "override-dependencies", "constraint-dependencies"):
        texts += rows(uv, key)
    for group in table(table(tool, "pdm"), "dev-dependencies").values():
        texts += group if isinstance(group, list) else []
    for env in table(table(tool, "hatch"), "envs").values():
        texts += (
            [*rows(env, "dependencies"), *rows(env, "extra-dependencies")]
            if isinstance(env, dict)
            else []
        )
    found = [
        one
        for item in texts
        if isinstance(item, str) and (one := requirement(item, line_of(text, item[:40])))
    ]
    found += _poetry(table(tool, "poetry"), text)
    sources = {normal("pypi", name): spec for name, spec in table(uv, "sources").items()}
    found = [_from_one_of(one, sources.get(normal("pypi", one.name)), text) for one in found]
    return Declared(tuple(found), tuple(_pyproject_indexes(tool, text)))


def _from_one_of(one: Dependency, source: object, text: str) -> Dependency:
    """A dependency with its source; of several, one a platform, the first that is no index."""
    specs = source if isinstance(source, list) else [source]
    found = [sourced(one, spec, text) for spec in specs]
    return next((it for it in found if it.source != "index"), one)


def _poetry(poetry: dict[str, object], text: str) -> list[Dependency]:
    tables = [table(poetry, "dependencies"), table(poetry, "dev-dependencies")]
    tables += [table(group, "dependencies") for group in table(poetry, "group").values()]
    return [
        _from_one_of(
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
    yield from uv_indexes({**table(tool, "uv"), "index": []}, text)


def uv_indexes(uv: dict[str, object], text: str) -> Iterator[tuple[str, int]]:
    """The indexes in uv's own table, of `pyproject.toml` or `uv.toml`."""
    for row in rows(uv, "index"):
        if isinstance(row, dict) and isinstance(row.get("url"), str):
            yield (f"extra:{row['url']}", line_of(text, row["url"]))
    for place in (uv, table(uv, "pip")):
        for key in ("index-url", "default-index", "extra-index-url", "find-links"):
            value = place.get(key)
            for address in value if isinstance(value, list) else [value]:
                if isinstance(address, str):
                    first = key in {"index-url", "default-index"}
                    yield (address if first else f"extra:{address}", line_of(text, address))


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
        if line.strip() and not line.strip().startswith(("#", "file:"))
    ]
    found = [one for line in lines if (one := requirement(line, line_of(text, line)))]
    places = [
        (f"extra:{address}", line_of(text, address))
        for key in ("index_url", "index-url", "find_links", "find-links")
        for address in parser.get("easy_install", key, fallback="").split()
    ]
    return Declared(tuple(found), tuple(places))


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
    return Declared(tuple(found), hooks=tuple(_commands(text)))


def _commands(text: str) -> Iterator[tuple[str, str, int]]:
    """What a `setup.py` that installs in a way of its own runs or fetches then."""
    for cls in ast.walk(parse_python(text)):
        if not isinstance(cls, ast.ClassDef):
            continue
        bases = {ast.unparse(base).rpartition(".")[2].lower() for base in cls.bases}
        if not bases & _ON_INSTALL:
            continue
        for node in ast.walk(cls):
            if isinstance(node, ast.Call) and _REACHES_OUT.match(ast.unparse(node.func)):
                yield (f"setup.py: {cls.name}", ast.unparse(node)[:200], node.lineno)


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
        if source.get("type") == "legacy":
            registry = str(source.get("url") or "")
        archives = repr((row.get("sdist"), row.get("wheels"), row.get("files")))
        for host in {urlsplit(url).hostname or "" for url in _URLS.findall(archives)}:
            if not is_usual_index(host) and host != urlsplit(registry).hostname:
                indexes.setdefault(f"https://{host}", line)
        if registry and not is_usual_index(urlsplit(registry).hostname or "") and "://" in registry:
            indexes.setdefault(registry, line)
        found.append(
            Dependency(
                name, "pypi", str(row.get("version", "")), source_kind(kind), where, line,
                "hash" in archives, frozenset(_SUMS.findall(archives)),
            )
        )  # fmt: skip
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
