"""What the manifests and lock files of npm, Go, Cargo and Bundler declare."""

from __future__ import annotations

import json
import re
import tomllib
from urllib.parse import unquote, urlsplit

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

_HOOKS = ("preinstall", "install", "postinstall", "prepare", "preprepare", "postprepare")


def package_json(text: str) -> Declared:
    """The manifest of npm."""
    data = json.loads(text)
    found: list[Dependency] = []
    for group in ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies"):
        for name, spec in table(data, group).items():
            found.append(_npm(name, str(spec), line_of(text, f'"{name}"', ":")))
    found += _overridden(data, text)
    hooks = [
        (n, str(c), line_of(text, f'"{n}"'))
        for n, c in table(data, "scripts").items()
        if n in _HOOKS
    ]
    registry = table(data, "publishConfig").get("registry")
    return Declared(
        tuple(found),
        ((str(registry), line_of(text, "registry")),) if registry else (),
        tuple(hooks),
    )


def _overridden(data: object, text: str) -> list[Dependency]:
    """What stands for packages that others ask for, where it is no plain version: npm's, yarn's and pnpm's spelling."""
    places = [
        table(data, "overrides"), table(data, "resolutions"), table(table(data, "pnpm"), "overrides")
    ]  # fmt: skip
    found: list[Dependency] = []
    while places:
        for key, spec in places.pop().items():
            if isinstance(spec, dict):
                places.append(spec)
                continue
            name = re.sub(r"(?<=.)@.*", "", key.rpartition(">")[2].removeprefix("**/"))
            one = _npm(name, str(spec), line_of(text, f'"{key}"', ":"))
            if one.source != "index" or one.name != name:
                found.append(one)
    return found


def _npm(name: str, spec: str, line: int) -> Dependency:
    if spec.startswith("npm:"):
        return Dependency(spec[4:].rpartition("@")[0] or spec[4:], "npm", spec, line=line)
    if spec.startswith(VCS) or re.fullmatch(r"[\w.-]+/[\w.-]+(?:#.*)?", spec):
        return Dependency(name, "npm", "", "vcs", spec, line)
    if spec.startswith(("http://", "https://")):
        return Dependency(name, "npm", "", "url", spec, line)
    if spec.startswith(("file:", "link:", "workspace:", "portal:", "./", "../")):
        return Dependency(name, "npm", "", "path", spec, line)
    return Dependency(name, "npm", spec, line=line)


def package_lock(text: str) -> Declared:
    """The lock file of npm, any version."""
    data = json.loads(text)
    found: list[Dependency] = []
    hooks: list[tuple[str, str, int]] = []
    indexes: dict[str, int] = {}
    strange: list[tuple[str, str, int]] = []
    lines = {
        line.strip().rstrip(":{ ").strip('"'): n
        for n, line in enumerate(text.split("\n"), 1)
        if line.rstrip().endswith(": {")
    }
    for path, entry in (table(data, "packages") or table(data, "dependencies")).items():
        if not path or not isinstance(entry, dict) or entry.get("link"):
            continue
        name = str(entry.get("name") or path.rpartition("node_modules/")[2])
        line = lines.get(path, 1)
        where = str(entry.get("resolved") or "")
        source: Source = "vcs" if where.startswith(VCS) else "index"
        host = urlsplit(where).hostname
        if source == "index" and host and not is_usual_index(host):
            indexes.setdefault(f"https://{host}", line)
        folder, dash, _ = unquote(urlsplit(where).path).partition("/-/")
        if dash and not folder.lower().endswith(f"/{name.lower()}"):
            strange.append((name, where, line))
        found.append(
            Dependency(
                name,
                "npm",
                str(entry.get("version", "")),
                source,
                where if source == "vcs" else "",
                line,
                "integrity" in entry,
                frozenset(str(entry.get("integrity") or "").split()),
            )
        )
        if entry.get("hasInstallScript"):
            hooks.append((name, "an install script", line))
    return Declared(
        tuple(found), tuple(indexes.items()), tuple(hooks), tuple(strange), is_lock=True
    )


def go_mod(text: str) -> Declared:
    """Go's `go.mod`, replacements included."""
    found: list[Dependency] = []
    for number, line in enumerate(text.split("\n"), 1):
        plain = line.partition("//")[0].strip().removeprefix("require ").strip()
        replaced = re.match(r"(?:replace\s+)?(\S+)(?:\s+v\S+)?\s+=>\s+(\S+)(?:\s+v\S+)?$", plain)
        if replaced is not None:
            source: Source = "path" if replaced[2].startswith((".", "/")) else "vcs"
            found.append(Dependency(replaced[1], "go", "", source, replaced[2], number))
            continue
        match = re.match(r"([\w.-]+\.[\w.-]+(?:/\S+)?)\s+(v\S+)$", plain)
        if match is not None:
            found.append(Dependency(match[1], "go", match[2], line=number))
    return Declared(tuple(found))


def cargo_toml(text: str) -> Declared:
    """Cargo's manifest."""
    data = tomllib.loads(text)
    tables = [
        table(data, key) for key in ("dependencies", "dev-dependencies", "build-dependencies")
    ]
    tables += [table(table(data, "workspace"), "dependencies"), table(data, "replace")]
    tables += [one for one in table(data, "patch").values() if isinstance(one, dict)]
    found = [
        sourced(
            Dependency(
                str(spec.get("package", name)) if isinstance(spec, dict) else name,
                "cargo",
                str(spec),
                line=line_of(text, name),
            ),
            spec,
            text,
        )
        for table in tables
        for name, spec in table.items()
    ]
    return Declared(tuple(found))


def cargo_lock(text: str) -> Declared:
    """Cargo's lock file."""
    found = []
    for row in rows(tomllib.loads(text), "package"):
        if isinstance(row, dict):
            where = str(row.get("source", ""))
            kind = "vcs" if where.startswith("git+") else "index"
            found.append(
                Dependency(
                    str(row.get("name")),
                    "cargo",
                    str(row.get("version")),
                    source_kind(kind),
                    where if kind == "vcs" else "",
                    line_of(text, f'name = "{row.get("name")}"'),
                    "checksum" in row,
                    frozenset({f"sha256:{row['checksum']}"}) if "checksum" in row else frozenset(),
                )
            )
    return Declared(tuple(found), is_lock=True)


def gemfile(text: str) -> Declared:
    """Bundler's `Gemfile`."""
    found: list[Dependency] = []
    indexes: list[tuple[str, int]] = []
    for number, line in enumerate(text.split("\n"), 1):
        gem = re.match(r"""\s*gem\s+["']([\w.-]+)["'](.*)""", line)
        source = re.match(r"""\s*source\s+["'](\S+?)["']""", line)
        if gem is not None:
            where = re.search(r"""(?:git|github|path):\s*["']([^"']+)""", gem[2])
            kind = "index" if where is None else "path" if "path:" in gem[2] else "vcs"
            found.append(
                Dependency(
                    gem[1], "rubygems", "", source_kind(kind), where[1] if where else "", number
                )
            )
        if source is not None:
            indexes.append((source[1], number))
    return Declared(tuple(found), tuple(indexes))
