"""The dependency guard: what a pull request or a model may have installed, judged before anything is downloaded.

Three things are compared: what the setup command asks for, what the files ask for that it installs from, and the
same in a tree that is trusted. What the trusted tree already asks for passes. Of the rest, a name has to be one
that many projects use, an address one that was allowed, and a hash that was there has to stay.

This judges what is asked for, not what code does: a build script of the tree runs in the setup as it likes, and
the sandbox is what holds it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from regreen.codebase.declared import declared, is_manifest
from regreen.codebase.declared_runners import is_runner_file, of_runner
from regreen.codebase.dependency import Declared, Dependency, is_usual_index, plain_address
from regreen.codebase.known_before import Known, host_of, place_of
from regreen.codebase.packages import Ecosystem, is_popular, is_valid, look_alike, normal, popular
from regreen.codebase.requirement_file import lines_of, text_of
from regreen.codebase.setup_command import needs
from regreen.codebase.setup_needs import Needs, Read, inside
from regreen.codebase.setup_wishes import ADDRESS, Wishes, follow, wishes

_CONFIGURATION = frozenset({
    "pip.conf", "pip.ini", "uv.toml", ".npmrc", ".yarnrc", ".yarnrc.yml", "bunfig.toml", "poetry.toml", ".pypirc",
    ".condarc",
})  # fmt: skip
# Lock files whose packages need no reading here, but each of whose addresses is followed.
_ADDRESSED = frozenset({"uv.lock", "yarn.lock", "pnpm-lock.yaml", "Pipfile.lock", "bun.lock"})
_UNCHECKED = re.compile(
    r"(?im)^\s*(?:--)?(?:trusted-host|allow-insecure-host|strict-ssl\s*=\s*false|cert\s*=\s*false)\b.*$"
)
_INSECURE_VARIABLE = re.compile(r"(?i)(?:PIP_TRUSTED_HOST|UV_INSECURE_HOST|npm_config_strict_ssl)")
_FILE_VARIABLE = re.compile(
    r"(?i)(?:PIP_(?:REQUIREMENT|CONSTRAINT)|UV_(?:REQUIREMENT|CONSTRAINT|OVERRIDE|BUILD_CONSTRAINT)S?)"
)
_MOST_FILES = 400


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree to read: its files with their blob ids, and how one is read."""

    files: Mapping[str, str]
    read: Read


@dataclass(frozen=True, slots=True)
class Rules:
    """What passes although the trusted tree does not have it.

    Attributes:
        packages: names that the default branch's configuration allows.
        indexes: hosts that it allows.
        trusts_command: the setup command comes from the default branch's configuration, not from the tree.
    """

    packages: frozenset[str] = frozenset()
    indexes: frozenset[str] = frozenset()
    trusts_command: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that may not be installed: what, where it is asked for, why not."""

    what: str
    where: str
    why: str


def refusals(
    setup: str,
    env: Collection[tuple[str, str]],
    tree: Tree,
    base: Tree | None,
    rules: Rules = Rules(),
) -> tuple[Refusal, ...]:
    """Everything that stands against running `setup` on `tree`; `base` is the tree that is trusted, if one is."""
    return tuple(dict.fromkeys(_Guard(tree, base, rules).judge(setup, env)))


def explained(found: Collection[Refusal]) -> str:
    """The refusal in words: the name, why, and what to do."""
    shown = "; ".join(f"{one.what} ({one.where}) {one.why}" for one in list(found)[:3])
    more = f"; and {len(found) - 3} more" if len(found) > 3 else ""
    return (
        f"{shown}{more}. If it is meant: a maintainer adds it on the default branch, "
        "or to `tests.allow_packages` or `tests.allow_indexes` in .github/regreen.yml there"
    )


@dataclass
class _Guard:
    tree: Tree
    base: Tree | None
    rules: Rules
    _known: list[Known] = field(default_factory=list)

    def judge(self, setup: str, env: Collection[tuple[str, str]]) -> Iterator[Refusal]:
        asked = wishes(setup, self.tree.read)
        written = () if self.rules.trusts_command else (*env, *asked.variables)
        listed = {
            place
            for name, value in written
            if _FILE_VARIABLE.fullmatch(name)
            for word in value.split()
            for place in asked.places(word)
        }
        named = follow(asked.requirement_files | listed, self.tree.read)
        in_tree = {script for script in asked.scripts if self._changed(script)}
        for word in asked.words:
            if not self._trusted(word.where, in_tree):
                yield from self._package(
                    Dependency(word.name, word.ecosystem, ""), word.where, is_lock=False
                )
        for address, where in asked.addresses:
            if not self._trusted(where, in_tree):
                yield from self._address(address, where)
        for name, value in written:
            if is_installers(name):
                yield from self._variable(name, value)
        wanted = needs(setup, self.tree.files.keys(), self.tree.read)
        for path in self._files(wanted, named, asked):
            yield from self._file(path, is_requirements=path in named, runs=bool(asked.runners))

    def _variable(self, name: str, value: str) -> Iterator[Refusal]:
        """What a variable that an installer reads says, or the file of the tree that it names."""
        where = f"the variable {name}"
        for address in ADDRESS.findall(value):
            yield from self._address(address, where)
        is_insecure = _INSECURE_VARIABLE.fullmatch(name) and name not in self._before().words
        if is_insecure and value not in {"", "0"}:
            yield Refusal(name, "a variable of the setup", "would let an index go unchecked")
        place = inside("", value.strip())
        if place and place in self.tree.files and self._changed(place):
            for address in ADDRESS.findall(text_of(self.tree.read(place) or b"")):
                yield from self._address(address, f"{place}, which {where} names")

    # -- which files ------------------------------------------------------------------------------------------

    def _files(self, wanted: Needs, named: set[str], asked: Wishes) -> list[str]:
        """Files that differ from the trusted tree's, and that the setup may install from."""
        reading = [
            path
            for path in self.tree.files
            if path in named
            or posixpath.basename(path) in _CONFIGURATION
            or (_is_read(path) and (asked.runners or _counts(path, wanted)))
            or (asked.runners and is_runner_file(path))
            or (asked.clones_submodules and path == ".gitmodules")
        ]
        for path in tuple(reading):
            reading += self._pointed_at(path)
        return [path for path in dict.fromkeys(reading) if self._changed(path)]

    def _pointed_at(self, path: str) -> set[str]:
        """Requirement files by any name that a project's own table points at: `{file = [...]}`, `file: x`."""
        if posixpath.basename(path) not in {"pyproject.toml", "setup.cfg"}:
            return set()
        text = text_of(self.tree.read(path) or b"")
        found = re.findall(r"(?m)^[^#\n]*\bfile\s*[:=]\s*(.+)$", text)
        folder = posixpath.dirname(path)
        names = {name for line in found for name in re.findall(r"[\w./-]+", line)}
        places = {posixpath.normpath(posixpath.join(folder, name)) for name in names}
        return follow(
            {p for p in places if p in self.tree.files and p.endswith((".txt", ".in"))},
            self.tree.read,
        )

    def _changed(self, path: str) -> bool:
        return self.base is None or self.base.files.get(path) != self.tree.files.get(path)

    def _trusted(self, where: str, changed_scripts: Collection[str]) -> bool:
        """Whether a command was written by somebody who is trusted."""
        if where == "the setup command":
            return self.rules.trusts_command
        return where not in changed_scripts

    # -- one file ---------------------------------------------------------------------------------------------

    def _file(self, path: str, *, is_requirements: bool, runs: bool) -> Iterator[Refusal]:
        text = text_of(self.tree.read(path) or b"")
        content = self.base.read(path) if self.base is not None else None
        before = text_of(content) if content is not None else ""
        new_unchecked = set(_UNCHECKED.findall(text)) - set(_UNCHECKED.findall(before))
        for line in sorted(new_unchecked):
            yield Refusal(f"`{line.strip()[:80]}`", path, "would let an index go unchecked")
        name = posixpath.basename(path)
        if name in _CONFIGURATION | _ADDRESSED or path in {"tox.ini", ".gitmodules"}:
            for address in (
                _one_a_host(ADDRESS.findall(text)) if name in _ADDRESSED else ADDRESS.findall(text)
            ):
                yield from self._address(address, path)
        if runs and is_runner_file(path):
            yield from self._declared(of_runner(path, text), of_runner(path, before), path)
        only_runs = is_runner_file(path) and not is_manifest(path) and not is_requirements
        if name in _CONFIGURATION or path == ".gitmodules" or only_runs:
            return
        if name in _ADDRESSED and not is_manifest(path):
            return
        as_path = path if is_manifest(path) and not is_requirements else "requirements.txt"
        new, old = declared(as_path, text), declared(as_path, before)
        if new.problem == "too large" and not old.problem:
            yield Refusal(path, "the tree", "is too large to be read")
        yield from self._declared(new, old, path)
        if (
            as_path == "requirements.txt"
            and _requires_hashes(before)
            and not _requires_hashes(text)
        ):
            yield Refusal(
                "`--require-hashes`", path, "is gone: what is installed would not be checked"
            )

    def _declared(self, new: Declared, old: Declared, path: str) -> Iterator[Refusal]:
        before = {_key(one): one for one in old.dependencies}
        for one in new.dependencies:
            was = before.get(_key(one))
            if was is None or (was.source, place_of(was.where)) != (
                one.source,
                place_of(one.where),
            ):
                yield from self._package(one, path, is_lock=new.is_lock)
            if was is not None and was.hashed and not one.hashed and one.source != "path":
                yield Refusal(
                    f"`{one.name[:80]}`",
                    path,
                    "has lost its hash: what is installed would not be checked",
                )
        known = {address for address, _ in old.indexes}
        for address, _ in new.indexes:
            plain = plain_address(address)
            if address not in known and ("://" in plain or "$" in plain):
                yield from self._address(plain, path)

    # -- one wish ---------------------------------------------------------------------------------------------

    def _package(self, one: Dependency, where: str, *, is_lock: bool) -> Iterator[Refusal]:
        if one.source == "path":
            return
        if one.source != "index":
            yield from self._address(one.where, where, of=one.name)
            return
        ecosystem, name = one.ecosystem, one.name
        if is_popular(ecosystem, name) or normal(ecosystem, name) in self._allowed(ecosystem):
            return
        why = _against(ecosystem, name, is_lock=is_lock)
        if why and not self._before().has_package(ecosystem, name):
            yield Refusal(f"`{name[:80]}`", where, why)

    def _address(self, address: str, where: str, of: str = "") -> Iterator[Refusal]:
        host = host_of(address)
        if host in self.rules.indexes:
            return
        direct = bool(of) or address.startswith(("git", "hg+", "svn+", "bzr+", "ssh"))
        if not direct and host and is_usual_index(host) and address.startswith("https://"):
            return
        if self._before().has_address(address):
            return
        shown = re.sub(r"//[^/@\s]+@", "//…@", address)[:120]
        if of:
            yield Refusal(f"`{of[:80]}`", where, f"would come from {shown}, not from an index")
        else:
            yield Refusal(f"`{shown}`", where, "is no address that packages may come from")

    def _allowed(self, ecosystem: Ecosystem) -> frozenset[str]:
        return frozenset(normal(ecosystem, name) for name in self.rules.packages)

    def _before(self) -> Known:
        """What the trusted tree asks for; read only when something has to be compared with it."""
        if not self._known:
            base = self.base
            known = (
                Known.of(base.files.keys(), base.read, _MOST_FILES) if base is not None else Known()
            )
            self._known.append(known)
        return self._known[0]


def _against(ecosystem: Ecosystem, name: str, *, is_lock: bool) -> str:
    """What stands against a name that is neither popular nor known from before; "" where nothing does."""
    if not is_valid(ecosystem, name):
        return "is no package name"
    if (alike := look_alike(ecosystem, name)) is not None:
        return f"looks like the popular `{alike.of}` ({alike.how})"
    # A lock file names what the popular packages bring along; elsewhere there is no list to compare with.
    if is_lock or not popular(ecosystem):
        return ""
    return "is new here and not among the packages that many projects use"


def _key(one: Dependency) -> tuple[str, str]:
    return one.ecosystem, normal(one.ecosystem, one.name)


def _is_read(path: str) -> bool:
    return is_manifest(path) or posixpath.basename(path) in _ADDRESSED


def _one_a_host(addresses: list[str]) -> Collection[str]:
    """Of the thousands in a lock file, one for each way to each host."""
    return {
        (address.partition("://")[0], host_of(address)): address for address in reversed(addresses)
    }.values()


def _counts(path: str, wanted: Needs) -> bool:
    return (
        wanted.everything
        or path in wanted.paths
        or any(rule.fullmatch(path) for rule in wanted.patterns)
    )


def _requires_hashes(text: str) -> bool:
    return any("--require-hashes" in line.flags for line in lines_of(text))


def is_installers(name: str) -> bool:
    """Whether an installer reads such a variable."""
    return (
        re.match(
            r"(?i)(?:PIP|UV|NPM|YARN|PNPM|BUN|POETRY|PIPENV|PIPX|PDM|HATCH|TOX|NOX|CONDA|CARGO|BUNDLE|GEM)_"
            r"|GO(?:PROXY|FLAGS|NOSUMDB|NOSUMCHECK|INSECURE|SUMDB|PRIVATE|NOPROXY)$|(?:https?|all)_proxy$",
            name,
        )
        is not None
    )
