"""Readers for Python's manifests and lock files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from configparser import ConfigParser
from dataclasses import replace
from urllib.parse import urlsplit

from regreen.code.config_loaders import load_toml
from regreen.code.python_compat import parse_python_or_explain
from regreen.packages.dependency import (
    VCS_PREFIXES,
    DeclaredPackages,
    Dependency,
    DependencySource,
    find_first_line_with,
    get_list,
    get_table,
    is_usual_index,
    with_source_from_table,
)
from regreen.packages.popular_names import normalise_name
from regreen.packages.requirement_file import read_requirement_lines

_REQUIREMENT = re.compile(
    r"^([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*(?:@\s*(\S+)|([^;#]*))"
)


_URL = re.compile(r"https?://[^'\"\s]+")
_CHECKSUM = re.compile(r"\b(?:sha\d+|md5|blake2b):\w+")
# Commands of setuptools that run on a user's machine, beside building.
_INSTALL_COMMANDS = frozenset({"install", "develop", "egg_info", "easy_install", "build_py"})
_EXTERNAL_CALL = re.compile(
    r"^(?:os\.(?:system|popen)|subprocess\.\w+|urllib\.request\.\w+|urlopen|requests\.\w+|exec|eval|socket\.\w+)$"
)


def read_requirements(text: str) -> DeclaredPackages:
    """A requirements or constraints file, read as pip reads it."""
    packages: list[Dependency] = []
    indexes: list[tuple[str, int]] = []
    for line in read_requirement_lines(text):
        hashed = any(name == "--hash" for name, _ in line.options)
        named = [line.requirement, *(value for name, value in line.options if name == "-e")]
        for written in named:
            package = parse_requirement(written, line.number)
            if package is not None:
                packages.append(replace(package, hashed=package.hashed or hashed))
        indexes += [
            (value if name == "-i" else f"extra:{value}", line.number)
            for name, value in line.options
            if name in {"-i", "-f", "--extra-index-url"}
        ]
    return DeclaredPackages(tuple(packages), tuple(indexes))


def parse_requirement(text: str, line: int = 1) -> Dependency | None:
    """One requirement as pip writes it; None for options and empty lines."""
    plain = re.sub(r"^(?:-e|--editable)[ =]\s*", "", text.strip())
    if plain.startswith("-") or not plain:
        return None
    hashed = "--hash" in plain
    plain = plain.split(" --hash")[0].strip()
    source: DependencySource = "vcs" if plain.startswith(VCS_PREFIXES) else "url"
    if source == "vcs" or re.match(r"https?://|file:", plain):
        egg = re.search(r"(?<![^&#])egg=([\w.-]+)", plain.partition("#")[2])
        last = urlsplit(plain).path.rstrip("/").rpartition("/")[2]
        name = egg[1] if egg else last.removesuffix(".git").partition("@")[0]
        return Dependency(name or plain, "pypi", "", source, plain, line, hashed)
    if plain.startswith((".", "/")) or re.match(r"[\w.-]+/", plain):
        return Dependency(plain, "pypi", "", "path", plain, line, hashed)
    match = _REQUIREMENT.match(plain)
    if match is None:
        return Dependency(plain.split()[0], "pypi", plain, line=line, hashed=hashed)
    name, where, spec = match.groups()
    if where:
        source = "path" if where.startswith("file:") else "url"
        source = "vcs" if where.startswith(VCS_PREFIXES) else source
        return Dependency(name, "pypi", "", source, where, line, hashed or "#sha256=" in where)
    return Dependency(name, "pypi", (spec or "").strip(), line=line, hashed=hashed)


def read_pyproject(text: str) -> DeclaredPackages:
    """`pyproject.toml`: the standard tables, and those of Poetry and uv."""
    data = load_toml(text)
    project, tool = get_table(data, "project"), get_table(data, "tool")
    texts: list[object] = [
        *get_list(project, "dependencies"),
        *get_list(get_table(data, "build-system"), "requires"),
    ]
    groups = [
        get_table(project, "optional-dependencies"),
        get_table(data, "dependency-groups"),
        get_table(get_table(tool, "pdm"), "dev-dependencies"),
    ]
    texts += [text for tables in groups for name in tables for text in get_list(tables, name)]
    uv = get_table(tool, "uv")
    for key in ("dev-dependencies", "override-dependencies", "constraint-dependencies"):
        texts += get_list(uv, key)
    environments = get_table(get_table(tool, "hatch"), "envs")
    for environment in (get_table(environments, name) for name in environments):
        texts += get_list(environment, "dependencies")
        texts += get_list(environment, "extra-dependencies")
    packages = [
        package
        for item in texts
        if isinstance(item, str)
        and (package := parse_requirement(item, find_first_line_with(text, item[:40])))
    ]
    packages += _read_poetry(get_table(tool, "poetry"), text)
    sources = {
        normalise_name("pypi", name): spec for name, spec in get_table(uv, "sources").items()
    }
    packages = [
        _with_first_direct_source(package, sources.get(normalise_name("pypi", package.name)), text)
        for package in packages
    ]
    return DeclaredPackages(tuple(packages), tuple(_read_pyproject_indexes(tool, text)))


def _with_first_direct_source(package: Dependency, source: object, text: str) -> Dependency:
    """A dependency with its source; of several sources, one for each platform, the first that is no index."""
    specs = source if isinstance(source, list) else [source]
    origins = [with_source_from_table(package, spec, text) for spec in specs]
    return next((it for it in origins if it.source != "index"), package)


def _read_poetry(poetry: dict[str, object], text: str) -> list[Dependency]:
    tables = [get_table(poetry, "dependencies"), get_table(poetry, "dev-dependencies")]
    tables += [get_table(group, "dependencies") for group in get_table(poetry, "group").values()]
    packages: list[Dependency] = []
    for name, spec in (item for table in tables for item in table.items() if item[0] != "python"):
        version = spec if isinstance(spec, str) else ""
        package = Dependency(name, "pypi", version, line=find_first_line_with(text, name))
        packages.append(_with_first_direct_source(package, spec, text))
    return packages


def _read_pyproject_indexes(tool: dict[str, object], text: str) -> Iterator[tuple[str, int]]:
    yield from _read_index_rows(get_list(get_table(tool, "uv"), "index"), text)
    for name in ("poetry", "pdm"):
        yield from _read_index_rows(get_list(get_table(tool, name), "source"), text)
    yield from read_uv_indexes({**get_table(tool, "uv"), "index": []}, text)


def _read_index_rows(rows: Sequence[object], text: str) -> Iterator[tuple[str, int]]:
    for row in rows:
        if isinstance(row, dict) and isinstance(row.get("url"), str):
            yield (f"extra:{row['url']}", find_first_line_with(text, row["url"]))


def read_uv_indexes(uv: dict[str, object], text: str) -> Iterator[tuple[str, int]]:
    """The indexes in uv's table, in `pyproject.toml` or `uv.toml`."""
    yield from _read_index_rows(get_list(uv, "index"), text)
    for place in (uv, get_table(uv, "pip")):
        for key in ("index-url", "default-index", "extra-index-url", "find-links"):
            value = place.get(key)
            for address in value if isinstance(value, list) else [value]:
                if isinstance(address, str):
                    first = key in {"index-url", "default-index"}
                    yield (
                        address if first else f"extra:{address}",
                        find_first_line_with(text, address),
                    )


def read_setup_cfg(text: str) -> DeclaredPackages:
    """`setup.cfg`."""
    parser = ConfigParser(interpolation=None, strict=False)
    parser.read_string(text)
    keys = ("install_requires", "setup_requires", "tests_require")
    blocks = [parser.get("options", key, fallback="") for key in keys]
    if parser.has_section("options.extras_require"):
        blocks += [value for _, value in parser.items("options.extras_require")]
    lines = (line.strip() for block in blocks for line in block.split("\n"))
    kept = "\n".join(line for line in lines if line and not line.startswith(("#", "file:")))
    packages = [
        package
        for line in kept.replace("\\\n", "").split("\n")
        if (
            package := parse_requirement(
                line, find_first_line_with(text, line.partition(";")[0].strip())
            )
        )
    ]
    places = [
        (f"extra:{address}", find_first_line_with(text, address))
        for key in ("index_url", "index-url", "find_links", "find-links")
        for address in parser.get("easy_install", key, fallback="").split()
    ]
    return DeclaredPackages(tuple(packages), tuple(places))


def read_setup_py(text: str) -> DeclaredPackages:
    """The literal requirements in `setup.py`, which is never run."""
    wanted = {"install_requires", "setup_requires", "tests_require", "extras_require"}
    packages: list[Dependency] = []
    for node in ast.walk(parse_python_or_explain(text)):
        named = isinstance(node, ast.keyword) and node.arg in wanted
        assigned = isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and "requires" in t.id.lower() for t in node.targets
        )
        if isinstance(node, ast.keyword | ast.Assign) and (named or assigned):
            for written, line in _find_literals(node.value):
                package = parse_requirement(written, line)
                if package is not None and re.search(r"[\w.-]", written):
                    packages.append(package)
    return DeclaredPackages(tuple(packages), hooks=tuple(_find_install_actions(text)))


def _find_install_actions(text: str) -> Iterator[tuple[str, str, int]]:
    """What a `setup.py` with its own install command runs or fetches."""
    for cls in ast.walk(parse_python_or_explain(text)):
        if not isinstance(cls, ast.ClassDef):
            continue
        bases = {ast.unparse(base).rpartition(".")[2].lower() for base in cls.bases}
        if not bases & _INSTALL_COMMANDS:
            continue
        for node in ast.walk(cls):
            if isinstance(node, ast.Call) and _EXTERNAL_CALL.match(ast.unparse(node.func)):
                yield (f"setup.py: {cls.name}", ast.unparse(node)[:200], node.lineno)


def _find_literals(node: ast.expr) -> Iterator[tuple[str, int]]:
    """The literal requirements in an expression, each with its line; computed ones are left out."""
    match node:
        case ast.Constant(value=str(text)):
            for offset, row in enumerate(text.split("\n")):
                yield row, node.lineno + offset
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            for part in parts:
                yield from _find_literals(part)
        case ast.Dict(values=parts):  # the keys of extras_require are names of extras
            for part in parts:
                yield from _find_literals(part)
        case ast.BinOp(left=left, right=right) | ast.IfExp(body=left, orelse=right):
            yield from _find_literals(left)
            yield from _find_literals(right)
        case ast.Starred(value=part):
            yield from _find_literals(part)
        case ast.Call(func=ast.Attribute(value=part, attr="split" | "splitlines")):
            yield from _find_literals(part)
        case _:
            return


def read_python_lock(text: str) -> DeclaredPackages:
    """`uv.lock`, `poetry.lock` or `pdm.lock`."""
    data = load_toml(text)
    packages: list[Dependency] = []
    indexes: dict[str, int] = {}
    starts = {
        m[1]: text.count("\n", 0, m.start()) + 1
        for m in re.finditer(r'(?m)^name = "([^"]+)"', text)
    }
    for row in get_list(data, "package"):
        if not isinstance(row, dict):
            continue
        name, line = str(row.get("name", "")), starts.get(str(row.get("name", "")), 1)
        source = get_table(row, "source")
        kind: DependencySource = "index"
        where = ""
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
        for host in {urlsplit(url).hostname or "" for url in _URL.findall(archives)}:
            if not is_usual_index(host) and host != urlsplit(registry).hostname:
                indexes.setdefault(f"https://{host}", line)
        if registry and not is_usual_index(urlsplit(registry).hostname or "") and "://" in registry:
            indexes.setdefault(registry, line)
        packages.append(
            Dependency(
                name,
                "pypi",
                str(row.get("version", "")),
                kind,
                where,
                line,
                "hash" in archives,
                frozenset(_CHECKSUM.findall(archives)),
            )
        )
    return DeclaredPackages(tuple(packages), tuple(indexes.items()), is_lock=True)


def read_pipfile(text: str) -> DeclaredPackages:
    """Pipenv's `Pipfile`."""
    data = load_toml(text)
    packages = [
        with_source_from_table(
            Dependency(name, "pypi", str(spec), line=find_first_line_with(text, name)), spec, text
        )
        for group in ("packages", "dev-packages")
        for name, spec in get_table(data, group).items()
    ]
    indexes = _read_index_rows(get_list(data, "source"), text)
    return DeclaredPackages(tuple(packages), tuple(indexes))
