"""The packages that a manifest or lock file declares, with their sources: one reader for each kind of file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from configparser import ConfigParser
from configparser import Error as ConfigError
from dataclasses import replace
from urllib.parse import unquote, urlsplit

from regreen.code.config_loaders import load_toml
from regreen.code.python_compat import UnparsableSource
from regreen.domain.text_limits import MAX_LINE, without_long_lines
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
from regreen.packages.python_manifests import (
    read_pipfile,
    read_pyproject,
    read_python_lock,
    read_requirements,
    read_setup_cfg,
    read_setup_py,
    read_uv_indexes,
)

_INSTALL_HOOKS = ("preinstall", "install", "postinstall", "prepare", "preprepare", "postprepare")


def read_package_json(text: str) -> DeclaredPackages:
    """The manifest of npm."""
    data = json.loads(text)
    packages: list[Dependency] = []
    for group in ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies"):
        for name, spec in get_table(data, group).items():
            line = find_first_line_with(text, f'"{name}"', ":")
            packages.append(_make_npm_dependency(name, str(spec), line))
    packages += _read_overrides(data, text)
    hooks = [
        (n, str(c), find_first_line_with(text, f'"{n}"'))
        for n, c in get_table(data, "scripts").items()
        if n in _INSTALL_HOOKS
    ]
    registry = get_table(data, "publishConfig").get("registry")
    return DeclaredPackages(
        tuple(packages),
        ((str(registry), find_first_line_with(text, "registry")),) if registry else (),
        tuple(hooks),
    )


def _read_overrides(data: object, text: str) -> list[Dependency]:
    """Overrides of transitive packages that are no plain version, in the syntax of npm, yarn and pnpm."""
    places = [
        get_table(data, "overrides"),
        get_table(data, "resolutions"),
        get_table(get_table(data, "pnpm"), "overrides"),
    ]
    packages: list[Dependency] = []
    while places:
        for key, spec in places.pop().items():
            if isinstance(spec, dict):
                places.append(spec)
                continue
            name = re.sub(r"(?<=.)@.*", "", key.rpartition(">")[2].removeprefix("**/"))
            package = _make_npm_dependency(
                name, str(spec), find_first_line_with(text, f'"{key}"', ":")
            )
            if package.source != "index" or package.name != name:
                packages.append(package)
    return packages


def _make_npm_dependency(name: str, spec: str, line: int) -> Dependency:
    if spec.startswith("npm:"):
        return Dependency(spec[4:].rpartition("@")[0] or spec[4:], "npm", spec, line=line)
    source: DependencySource = "index"
    if spec.startswith(VCS_PREFIXES) or re.fullmatch(r"[\w.-]+/[\w.-]+(?:#.*)?", spec):
        source = "vcs"
    elif spec.startswith(("http://", "https://")):
        source = "url"
    elif spec.startswith(("file:", "link:", "workspace:", "portal:", "./", "../")):
        source = "path"
    if source == "index":
        return Dependency(name, "npm", spec, line=line)
    return Dependency(name, "npm", "", source, spec, line)


def read_package_lock(text: str) -> DeclaredPackages:
    """The lock file of npm, any version."""
    data = json.loads(text)
    packages: list[Dependency] = []
    hooks: list[tuple[str, str, int]] = []
    indexes: dict[str, int] = {}
    strange: list[tuple[str, str, int]] = []
    lines = {
        line.strip().rstrip(":{ ").strip('"'): n
        for n, line in enumerate(text.split("\n"), 1)
        if line.rstrip().endswith(": {")
    }
    for path, entry in (get_table(data, "packages") or get_table(data, "dependencies")).items():
        if not path or not isinstance(entry, dict) or entry.get("link"):
            continue
        name = str(entry.get("name") or path.rpartition("node_modules/")[2])
        line = lines.get(path, 1)
        where = str(entry.get("resolved") or "")
        source: DependencySource = "vcs" if where.startswith(VCS_PREFIXES) else "index"
        host = urlsplit(where).hostname
        if source == "index" and host and not is_usual_index(host):
            indexes.setdefault(f"https://{host}", line)
        folder, dash, _ = unquote(urlsplit(where).path).partition("/-/")
        if dash and not folder.lower().endswith(f"/{name.lower()}"):
            strange.append((name, where, line))
        sums = frozenset(str(entry.get("integrity") or "").split())
        version, hashed = str(entry.get("version", "")), "integrity" in entry
        origin = where if source == "vcs" else ""
        packages.append(Dependency(name, "npm", version, source, origin, line, hashed, sums))
        if entry.get("hasInstallScript"):
            hooks.append((name, "an install script", line))
    return DeclaredPackages(
        tuple(packages), tuple(indexes.items()), tuple(hooks), tuple(strange), is_lock=True
    )


def read_go_mod(text: str) -> DeclaredPackages:
    """Go's `go.mod` with its replacements."""
    packages: list[Dependency] = []
    for number, line in enumerate(text.split("\n"), 1):
        words = line.partition("//")[0].split()
        words = words[1:] if words[:1] in (["require"], ["replace"]) else words
        arrow = words.index("=>") if "=>" in words[1:3] else 0
        if arrow and len(words) - arrow in {2, 3}:
            source: DependencySource = "path" if words[arrow + 1].startswith((".", "/")) else "vcs"
            packages.append(Dependency(words[0], "go", "", source, words[arrow + 1], number))
        elif (
            len(words) == 2 and words[1].startswith("v") and "." in words[0].partition("/")[0][1:-1]
        ):
            packages.append(Dependency(words[0], "go", words[1], line=number))
    return DeclaredPackages(tuple(packages))


def read_cargo_toml(text: str) -> DeclaredPackages:
    """Cargo's manifest."""
    data = load_toml(text)
    tables = [
        get_table(data, key) for key in ("dependencies", "dev-dependencies", "build-dependencies")
    ]
    tables += [get_table(get_table(data, "workspace"), "dependencies"), get_table(data, "replace")]
    tables += [patch for patch in get_table(data, "patch").values() if isinstance(patch, dict)]
    packages: list[Dependency] = []
    for name, spec in (item for table in tables for item in table.items()):
        package = str(spec.get("package", name)) if isinstance(spec, dict) else name
        plain = Dependency(package, "cargo", str(spec), line=find_first_line_with(text, name))
        packages.append(with_source_from_table(plain, spec, text))
    return DeclaredPackages(tuple(packages))


def read_cargo_lock(text: str) -> DeclaredPackages:
    """Cargo's lock file."""
    packages = []
    for row in get_list(load_toml(text), "package"):
        if isinstance(row, dict):
            where = str(row.get("source", ""))
            source: DependencySource = "vcs" if where.startswith("git+") else "index"
            name, version = str(row.get("name")), str(row.get("version"))
            sums = frozenset({f"sha256:{row['checksum']}"} if "checksum" in row else ())
            origin, line = (
                where if source == "vcs" else "",
                find_first_line_with(text, f'name = "{name}"'),
            )
            packages.append(
                Dependency(name, "cargo", version, source, origin, line, bool(sums), sums)
            )
    return DeclaredPackages(tuple(packages), is_lock=True)


def read_gemfile(text: str) -> DeclaredPackages:
    """Bundler's `Gemfile`."""
    packages: list[Dependency] = []
    indexes: list[tuple[str, int]] = []
    for number, line in enumerate(text.split("\n"), 1):
        gem = re.match(r"""\s*gem\s+["']([\w.-]+)["'](.*)""", line)
        source = re.match(r"""\s*source\s+["'](\S+?)["']""", line)
        if gem is not None:
            where = re.search(r"""(?:git|github|path):\s*["']([^"']+)""", gem[2])
            kind: DependencySource = "path" if "path:" in gem[2] else "vcs"
            origin = where[1] if where else ""
            packages.append(
                Dependency(gem[1], "rubygems", "", kind if where else "index", origin, number)
            )
        if source is not None:
            indexes.append((source[1], number))
    return DeclaredPackages(tuple(packages), tuple(indexes))


# The lock files of yarn, pnpm and Go: which packages, from which hosts, with or without a checksum.

_YARN_HEADER = re.compile(r"^\"?(@?[^@\s\"]+)@([^\n]{1,2000}):\s*$")
_PNPM_HEADER = re.compile(
    r"^ {2}['\"]?/?(@?[\w.-]+(?:/[\w.-]+)??)[@/](\d[^'\"\s():]{0,100})[^:\s]{0,300}['\"]?:\s*$"
)
_CHECKSUM_LINE = re.compile(r"^\s+(?:integrity|checksum)[: ]|\bintegrity: ")
_ADDRESS = re.compile(r"(?:resolved\s+\"|tarball:\s*['\"]?)(https?://[^\s\"'#},]{1,500})")
_CHECKSUM = re.compile(r"\bsha\d+-[A-Za-z0-9+/=]+")
_GO_SUM = re.compile(r"^(\S{1,300}) (v[^\s/]{1,100})(?:/go\.mod)? h1:")


def read_yarn_lock(text: str) -> DeclaredPackages:
    """Yarn's lock file, version 1 or later."""
    return _read_lock_blocks(text, _YARN_HEADER)


def read_pnpm_lock(text: str) -> DeclaredPackages:
    """Pnpm's lock file; its importers are skipped, because only its packages have addresses."""
    return _read_lock_blocks(text, _PNPM_HEADER)


def read_go_sum(text: str) -> DeclaredPackages:
    """Go's sums: every module whose code or manifest is verified."""
    packages: dict[tuple[str, str], Dependency] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if match := _GO_SUM.match(line):
            sums = frozenset({f"{'manifest' if '/go.mod ' in line else 'h1'}:{line.split()[-1]}"})
            known = packages.get((match[1], match[2]))
            package = known or Dependency(match[1], "go", match[2], line=number, hashed=True)
            packages[match[1], match[2]] = replace(package, sums=package.sums | sums)
    return DeclaredPackages(tuple(packages.values()), is_lock=True)


def _read_lock_blocks(text: str, header: re.Pattern[str]) -> DeclaredPackages:
    """A header for each package, and indented below it its source and its checksum."""
    packages: list[Dependency] = []
    indexes: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if match := header.match(line):
            if match[1] != "__metadata" and "@workspace:" not in line and "@file:" not in line:
                packages.append(Dependency(match[1], "npm", match[2][:100], line=number))
            continue
        if packages and _CHECKSUM_LINE.search(line):
            packages[-1] = replace(packages[-1], hashed=True)
            # yarn's headers name a range, so another checksum may belong to another version
            if header is _PNPM_HEADER and (summed := _CHECKSUM.search(line)) is not None:
                packages[-1] = replace(packages[-1], sums=frozenset({summed[0]}))
        if address := _ADDRESS.search(line):
            host = urlsplit(address[1]).hostname
            if host and not is_usual_index(host):
                indexes.setdefault(f"https://{host}", number)
    return DeclaredPackages(tuple(packages), tuple(indexes.items()), is_lock=True)


# Configuration files of installers that name their package sources: pip, uv, npm, yarn and Cargo.

# `@scope:registry=...`, `registry=...`
_NPM_REGISTRY = re.compile(r"^\s*(@[\w.-]+:)?registry\s*=\s*[\"']?(https?://[^\s\"']+)")
_YARN_REGISTRY = re.compile(r"^(\s*)(?:npmRegistryServer:|registry)\s+[\"']?(https?://[^\s\"']+)")


def read_pip_conf(text: str) -> DeclaredPackages:
    """`pip.conf` or `pip.ini`."""
    parser = ConfigParser(interpolation=None, strict=False)
    parser.read_string(text)
    indexes = [
        (address if key == "index-url" else f"extra:{address}", find_first_line_with(text, address))
        for section in parser.sections()
        for key in ("index-url", "extra-index-url", "find-links")
        for address in parser.get(section, key, fallback="").split()
    ]
    return DeclaredPackages(indexes=tuple(indexes))


def read_uv_toml(text: str) -> DeclaredPackages:
    """`uv.toml`."""
    return DeclaredPackages(indexes=tuple(read_uv_indexes(load_toml(text), text)))


def read_npmrc(text: str) -> DeclaredPackages:
    """`.npmrc`; a registry of one scope serves that scope only."""
    return _read_indexes_by_line(text, _NPM_REGISTRY)


def read_yarnrc(text: str) -> DeclaredPackages:
    """`.yarnrc` or `.yarnrc.yml`; an indented registry belongs to a scope."""
    return _read_indexes_by_line(text, _YARN_REGISTRY)


def _read_indexes_by_line(text: str, pattern: re.Pattern[str]) -> DeclaredPackages:
    indexes = [
        (f"scoped:{match[2]}" if match[1] else match[2], number)
        for number, line in enumerate(text.split("\n"), 1)
        if (match := pattern.match(line))
    ]
    return DeclaredPackages(indexes=tuple(indexes))


def read_cargo_config(text: str) -> DeclaredPackages:
    """`.cargo/config.toml`: replacements of the default registry, and registries with names."""
    data = load_toml(text)
    sources = get_table(data, "source")
    replaced = {
        str(source["replace-with"])
        for source in sources.values()
        if isinstance(source, dict) and "replace-with" in source
    }
    indexes: list[tuple[str, int]] = []
    for name, source in sources.items():
        address = str(source.get("registry") or "") if isinstance(source, dict) else ""
        if address and name in replaced:
            indexes.append((address.removeprefix("sparse+"), find_first_line_with(text, address)))
    for source in get_table(data, "registries").values():
        address = str(source.get("index") or "") if isinstance(source, dict) else ""
        if address:
            indexes.append(
                (f"scoped:{address.removeprefix('sparse+')}", find_first_line_with(text, address))
            )
    return DeclaredPackages(indexes=tuple(indexes))


_MAX_CHARACTERS = 5_000_000
UNREAD_REASONS = ("too large", f"too long in some line (over {MAX_LINE:,} characters)")
_REQUIREMENTS_PATH = re.compile(
    r"(?i)(?:^|/)(?:[\w.-]{0,200}requirements[\w.-]{0,200}\.(?:txt|in)|requirements/[\w.-]{1,200}\.(?:txt|in)|constraints[\w.-]{0,200}\.txt|(?:[\w.-]{0,200}[-_.])?(?:reqs|deps)(?:[-_.][\w.-]{0,200})?\.(?:txt|in))$"
)


def is_manifest(path: str) -> bool:
    """Whether `read_declared` can read packages from such a file."""
    return _find_reader(path) is not None


def read_declared(path: str, text: str) -> DeclaredPackages:
    """What the file declares; `problem` says why it cannot be read, completely or in part."""
    reader = _find_reader(path)
    if reader is None:
        return DeclaredPackages()
    if len(text) > _MAX_CHARACTERS:
        return DeclaredPackages(problem=UNREAD_REASONS[0])
    short = without_long_lines(text)
    if short != text and not path.endswith((".json", ".py")):  # those are parsed whole
        return replace(read_declared(path, short), problem=UNREAD_REASONS[1])
    try:
        return reader(text)
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
        ConfigError,
        UnparsableSource,
    ) as error:
        return DeclaredPackages(problem=f"not readable: {str(error)[:120]}")


def _find_reader(path: str) -> Callable[[str], DeclaredPackages] | None:
    name = path.rpartition("/")[2].lower()
    if _REQUIREMENTS_PATH.search(path):
        return read_requirements
    if name.endswith((".lock",)) and name in {"poetry.lock", "uv.lock", "pdm.lock", "cargo.lock"}:
        return read_cargo_lock if name == "cargo.lock" else read_python_lock
    if path.endswith((".cargo/config.toml", ".cargo/config")):
        return read_cargo_config
    return _READER_BY_NAME.get(name)


_READER_BY_NAME: dict[str, Callable[[str], DeclaredPackages]] = {
    "pyproject.toml": read_pyproject,
    "setup.cfg": read_setup_cfg,
    "setup.py": read_setup_py,
    "pipfile": read_pipfile,
    "package.json": read_package_json,
    "package-lock.json": read_package_lock,
    "npm-shrinkwrap.json": read_package_lock,
    "yarn.lock": read_yarn_lock,
    "pnpm-lock.yaml": read_pnpm_lock,
    "go.mod": read_go_mod,
    "go.sum": read_go_sum,
    "cargo.toml": read_cargo_toml,
    "gemfile": read_gemfile,
    "pip.conf": read_pip_conf,
    "pip.ini": read_pip_conf,
    "uv.toml": read_uv_toml,
    ".npmrc": read_npmrc,
    ".yarnrc": read_yarnrc,
    ".yarnrc.yml": read_yarnrc,
}


def read_declared_versions(path: str, text: str | None) -> dict[str, str]:
    """Dependency name to its version and source, for manifests with a reader."""
    if text is None:
        return {}
    return {
        normalise_name(entry.ecosystem, entry.name): f"{entry.spec}{entry.where}"
        for entry in read_declared(path, text).dependencies
    }
