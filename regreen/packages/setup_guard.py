"""The dependency guard: judges what a pull request or a model may install, before anything is downloaded.

It compares the requests of the setup command and of the files that the setup installs from with those of a
trusted tree. Requests that the trusted tree makes pass. Any other name must be popular, any other
address allowed, and an existing hash must stay.

The guard judges requests, not the behaviour of code: a build script of the tree runs freely in the setup, and
the sandbox contains it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from regreen.code.config_loaders import load_toml
from regreen.packages.dependency import (
    DeclaredPackages,
    Dependency,
    get_list,
    get_table,
    is_usual_index,
    plain_address,
)
from regreen.packages.install_requests import (
    ADDRESS_PATTERN,
    InstallRequests,
    find_install_requests,
    follow_includes,
)
from regreen.packages.manifests_and_locks import UNREAD_REASONS, is_manifest, read_declared
from regreen.packages.popular_names import (
    Ecosystem,
    find_confusable_package,
    is_popular,
    is_valid_package_name,
    normalise_name,
    popular_names,
)
from regreen.packages.requirement_file import decode_text, read_requirement_lines
from regreen.packages.runner_installs import is_runner_file, read_runner_file
from regreen.packages.setup_command import find_setup_inputs
from regreen.packages.setup_inputs import ReadFile, SetupInputs, resolve_path_in_tree

if TYPE_CHECKING:
    from regreen.domain.repo_config import TestsConfig

_CONFIGURATION_FILES = frozenset(
    {
        "pip.conf",
        "pip.ini",
        "uv.toml",
        ".npmrc",
        ".yarnrc",
        ".yarnrc.yml",
        "bunfig.toml",
        "poetry.toml",
        ".pypirc",
        ".condarc",
    }
)
# Lock files whose packages are not read, but whose addresses are all checked.
_ADDRESSED_LOCKS = frozenset({"uv.lock", "yarn.lock", "pnpm-lock.yaml", "Pipfile.lock", "bun.lock"})
_UNCHECKED_SOURCE = re.compile(
    r"(?im)^[ \t]*(?:--)?(?:trusted-host|allow-insecure-host|strict-ssl\s*+=\s*+false|cert\s*+=\s*+false)\b.*$"
)
_INSECURE_VARIABLE = re.compile(r"(?i)(?:PIP_TRUSTED_HOST|UV_INSECURE_HOST|npm_config_strict_ssl)")
_FILE_VARIABLE = re.compile(
    r"(?i)(?:PIP_(?:REQUIREMENT|CONSTRAINT)|UV_(?:REQUIREMENT|CONSTRAINT|OVERRIDE|BUILD_CONSTRAINT)S?)"
)
_JVM_BUILD_FILE = re.compile(
    r"(?s)(?:.*/)?(?:pom\.xml|settings\.xml|gradle\.properties|mvnw|gradlew|[^/]*\.(?:gradle|gradle\.kts|versions\.toml)"
    r"|(?:gradle|\.mvn|buildSrc)/.*)"
)
_MAX_FILES = 400


@dataclass(frozen=True, slots=True)
class SourceTree:
    """A tree to read: its files with their blob ids, and a function that reads one."""

    files: Mapping[str, str]
    read: ReadFile


@dataclass(frozen=True, slots=True)
class InstallPolicy:
    """What passes although the trusted tree does not request it.

    Attributes:
        packages: names that the default branch's configuration allows.
        indexes: hosts that it allows.
        trusts_command: the setup command comes from the default branch's configuration, not from the tree.
        images: container images that it allows.
    """

    packages: frozenset[str] = frozenset()
    indexes: frozenset[str] = frozenset()
    trusts_command: bool = False
    images: frozenset[str] = frozenset()

    @classmethod
    def from_config(cls, tests: TestsConfig, *, trusts_command: bool = True) -> Self:
        """What the default branch's configuration says of it."""
        return cls(
            frozenset(tests.allow_packages),
            frozenset(host.lower() for host in tests.allow_indexes),
            trusts_command,
            frozenset({tests.image} if tests.image else ()),
        )


@dataclass(frozen=True, slots=True)
class InstallRefusal:
    """Something that may not be installed: its name, the place of the request, the reason."""

    what: str
    where: str
    why: str


def find_refusals(
    setup: str,
    env: Collection[tuple[str, str]],
    tree: SourceTree,
    base: SourceTree | None,
    rules: InstallPolicy = InstallPolicy(),
) -> tuple[InstallRefusal, ...]:
    """Every objection to running `setup` on `tree`; `base` is the trusted tree, if there is one."""
    return tuple(dict.fromkeys(_SetupGuard(tree, base, rules).find_refusals(setup, env)))


def find_changed_inputs(setup: str, tree: SourceTree, base: SourceTree) -> tuple[str, ...]:
    """The files from which `setup` installs, its scripts and build backends included, that differ from the base's."""
    return tuple(sorted(_SetupGuard(tree, base, InstallPolicy()).find_changed_inputs(setup)))


def explain_refusals(refusals: Collection[InstallRefusal]) -> str:
    """The refusals as text: the name, the reason, the remedy."""
    shown = "; ".join(
        f"{refusal.what} ({refusal.where}) {refusal.why}" for refusal in list(refusals)[:3]
    )
    more = f"; and {len(refusals) - 3} more" if len(refusals) > 3 else ""
    return (
        f"{shown}{more}. If it is meant: a maintainer adds it on the default branch, "
        "or to `tests.allow_packages` or `tests.allow_indexes` in .github/regreen.yml there"
    )


@dataclass
class _SetupGuard:
    tree: SourceTree
    base: SourceTree | None
    rules: InstallPolicy
    _known: list[TrustedSources] = field(default_factory=list)

    def find_changed_inputs(self, setup: str) -> set[str]:
        requests = find_install_requests(setup, self.tree.read, self.tree.files.keys())
        named = follow_includes(requests.requirement_files, self.tree.read)
        wanted = find_setup_inputs(setup, self.tree.files.keys(), self.tree.read)
        builds = (
            ()
            if requests.build_arguments is None
            else self._changed_builds(requests.build_arguments)
        )
        called = (
            path
            for path in (*requests.scripts, *self._find_backends(wanted))
            if self._is_changed(path)
        )
        return {*self._select_files(wanted, named, requests), *builds, *called}

    def _find_backends(self, wanted: SetupInputs) -> Iterator[str]:
        """The files of build backends that the installed projects bring along (PEP 517's `backend-path`)."""
        for path in self.tree.files:
            if posixpath.basename(path) != "pyproject.toml" or not wanted.includes(path):
                continue
            try:
                system = get_table(
                    load_toml(decode_text(self.tree.read(path) or b"")), "build-system"
                )
            except ValueError:
                continue
            module = str(system.get("build-backend", "")).partition(":")[0].replace(".", "/")
            for folder in get_list(system, "backend-path"):
                place = resolve_path_in_tree(posixpath.dirname(path), f"{folder}/{module}")
                yield from (
                    file
                    for file in self.tree.files
                    if file == f"{place}.py" or file.startswith(f"{place}/")
                )

    def find_refusals(
        self, setup: str, env: Collection[tuple[str, str]]
    ) -> Iterator[InstallRefusal]:
        requests = find_install_requests(setup, self.tree.read, self.tree.files.keys())
        written = () if self.rules.trusts_command else (*env, *requests.variables)
        listed = {
            place
            for name, value in written
            if _FILE_VARIABLE.fullmatch(name)
            for word in value.split()
            for place in requests.find_possible_paths(word)
        }
        named = follow_includes(requests.requirement_files | listed, self.tree.read)
        in_tree = {script for script in requests.scripts if self._is_changed(script)}
        for word in requests.words:
            if not self._is_trusted_command(word.where, in_tree):
                yield from self._check_package(
                    Dependency(word.name, word.ecosystem, ""), word.where, is_lock=False
                )
        for command, where in requests.unread:
            if not self._is_trusted_command(where, in_tree) and not self._is_command_known(command):
                yield InstallRefusal(f"`{command[:80]}`", where, "may install what cannot be told")
        for address, where in requests.addresses:
            if not self._is_trusted_command(where, in_tree):
                yield from self._check_address(address, where)
        for name, value in written:
            if is_installer_variable(name):
                yield from self._check_variable(name, value)
        if requests.build_arguments is not None and not self.rules.trusts_command:
            yield from self._check_jvm_build(requests.build_arguments)
        wanted = find_setup_inputs(setup, self.tree.files.keys(), self.tree.read)
        for path in self._select_files(wanted, named, requests):
            yield from self._check_file(
                path, is_requirements=path in named, runs=bool(requests.runners)
            )

    def _check_jvm_build(self, named: Collection[str]) -> Iterator[InstallRefusal]:
        """Files of Maven and Gradle are programs: what they install is known only where the trusted tree has them."""
        for path in self._changed_builds(named):
            why = "is changed, and what Maven or Gradle installs from it cannot be told without `tests.setup`"
            yield InstallRefusal(f"`{path}`", "the tree", why)

    def _changed_builds(self, named: Collection[str]) -> list[str]:
        paths = sorted({*self.tree.files, *(self.base.files if self.base else ())})
        wanted = (path for path in paths if path in named or _JVM_BUILD_FILE.fullmatch(path))
        return [path for path in wanted if self._is_changed(path)]

    def _check_variable(self, name: str, value: str) -> Iterator[InstallRefusal]:
        """The value of a variable that an installer reads, or the file of the tree that it names."""
        where = f"the variable {name}"
        for address in ADDRESS_PATTERN.findall(value):
            yield from self._check_address(address, where)
        is_insecure = (
            _INSECURE_VARIABLE.fullmatch(name) and name not in self._trusted_sources().words
        )
        if is_insecure and value not in {"", "0"}:
            yield InstallRefusal(name, "a variable of the setup", "would let an index go unchecked")
        place = resolve_path_in_tree("", value.strip())
        if place and place in self.tree.files and self._is_changed(place):
            for address in ADDRESS_PATTERN.findall(decode_text(self.tree.read(place) or b"")):
                yield from self._check_address(address, f"{place}, which {where} names")

    # -- which files ------------------------------------------------------------------------------------------

    def _select_files(
        self, wanted: SetupInputs, named: set[str], requests: InstallRequests
    ) -> list[str]:
        """The files that differ from the trusted tree's and from which the setup may install."""
        reading = [
            path
            for path in self.tree.files
            if path in named
            or posixpath.basename(path) in _CONFIGURATION_FILES
            or (_is_readable(path) and (requests.runners or wanted.includes(path)))
            or (requests.runners and is_runner_file(path))
            or (requests.clones_submodules and path == ".gitmodules")
        ]
        for path in tuple(reading):
            reading += self._referenced_requirement_files(path)
        return [path for path in dict.fromkeys(reading) if self._is_changed(path)]

    def _referenced_requirement_files(self, path: str) -> set[str]:
        """Requirement files with any name that a project's table refers to: `{file = [...]}`, `file: x`."""
        if posixpath.basename(path) not in {"pyproject.toml", "setup.cfg"}:
            return set()
        text = decode_text(self.tree.read(path) or b"")
        lines = re.findall(r"(?m)^[^#\n]{0,400}\bfile[ \t]{0,40}[:=][ \t]*(.+)$", text)
        folder = posixpath.dirname(path)
        names = {name for line in lines for name in re.findall(r"[\w./-]+", line)}
        places = {posixpath.normpath(posixpath.join(folder, name)) for name in names}
        return follow_includes(
            {p for p in places if p in self.tree.files and p.endswith((".txt", ".in"))},
            self.tree.read,
        )

    def _is_changed(self, path: str) -> bool:
        return self.base is None or self.base.files.get(path) != self.tree.files.get(path)

    def _is_trusted_command(self, where: str, changed_scripts: Collection[str]) -> bool:
        """Whether a trusted person wrote the command."""
        if where == "the setup command":
            return self.rules.trusts_command
        return where not in changed_scripts

    def _is_command_known(self, command: str) -> bool:
        """Whether the trusted tree has all words of a command where it installs."""
        return self._trusted_sources().words >= set(_WORD.findall(command))

    # -- one file ---------------------------------------------------------------------------------------------

    def _check_file(
        self, path: str, *, is_requirements: bool, runs: bool
    ) -> Iterator[InstallRefusal]:
        text = decode_text(self.tree.read(path) or b"")
        content = self.base.read(path) if self.base is not None else None
        before = decode_text(content) if content is not None else ""
        new_unchecked = set(_UNCHECKED_SOURCE.findall(text)) - set(
            _UNCHECKED_SOURCE.findall(before)
        )
        for line in sorted(new_unchecked):
            yield InstallRefusal(f"`{line.strip()[:80]}`", path, "would let an index go unchecked")
        name = posixpath.basename(path)
        if name in _CONFIGURATION_FILES | _ADDRESSED_LOCKS or path in {"tox.ini", ".gitmodules"}:
            for address in (
                _one_address_per_host(ADDRESS_PATTERN.findall(text))
                if name in _ADDRESSED_LOCKS
                else ADDRESS_PATTERN.findall(text)
            ):
                yield from self._check_address(address, path)
        if runs and is_runner_file(path):
            yield from self._check_declared(
                read_runner_file(path, text), read_runner_file(path, before), path
            )
        only_runs = is_runner_file(path) and not is_manifest(path) and not is_requirements
        if name in _CONFIGURATION_FILES or path == ".gitmodules" or only_runs:
            return
        if name in _ADDRESSED_LOCKS and not is_manifest(path):
            return
        as_path = path if is_manifest(path) and not is_requirements else "requirements.txt"
        new, old = read_declared(as_path, text), read_declared(as_path, before)
        if new.problem == UNREAD_REASONS[1] or (
            new.problem == UNREAD_REASONS[0] and not old.problem
        ):
            yield InstallRefusal(path, "the tree", f"is {new.problem} to be read")
        yield from self._check_declared(new, old, path)
        if (
            as_path == "requirements.txt"
            and _requires_hashes(before)
            and not _requires_hashes(text)
        ):
            yield InstallRefusal(
                "`--require-hashes`", path, "is gone: what is installed would not be checked"
            )

    def _check_declared(
        self, new: DeclaredPackages, old: DeclaredPackages, path: str
    ) -> Iterator[InstallRefusal]:
        before = {_package_key(one): one for one in old.dependencies}
        for one in new.dependencies:
            was = before.get(_package_key(one))
            if was is None or (was.source, normalise_address(was.where)) != (
                one.source,
                normalise_address(one.where),
            ):
                yield from self._check_package(one, path, is_lock=new.is_lock)
            if was is not None and was.hashed and not one.hashed and one.source != "path":
                yield InstallRefusal(
                    f"`{one.name[:80]}`",
                    path,
                    "has lost its hash: what is installed would not be checked",
                )
        known = {address for address, _ in old.indexes}
        for address, _ in new.indexes:
            plain = plain_address(address)
            if address not in known and ("://" in plain or "$" in plain):
                yield from self._check_address(plain, path)

    # -- one request ------------------------------------------------------------------------------------------

    def _check_package(
        self, package: Dependency, where: str, *, is_lock: bool
    ) -> Iterator[InstallRefusal]:
        if package.source == "path":
            return
        if package.source != "index":
            yield from self._check_address(package.where, where, of=package.name)
            return
        ecosystem, name = package.ecosystem, package.name
        if is_popular(ecosystem, name) or normalise_name(ecosystem, name) in self._allowed_names(
            ecosystem
        ):
            return
        why = _describe_objection_to_name(ecosystem, name, is_lock=is_lock)
        if why and not self._trusted_sources().has_package(ecosystem, name):
            yield InstallRefusal(f"`{name[:80]}`", where, why)

    def _check_address(self, address: str, where: str, of: str = "") -> Iterator[InstallRefusal]:
        host = address_host(address)
        if host in self.rules.indexes:
            return
        direct = bool(of) or address.startswith(("git", "hg+", "svn+", "bzr+", "ssh"))
        if not direct and host and is_usual_index(host) and address.startswith("https://"):
            return
        if self._trusted_sources().has_address(address):
            return
        shown = re.sub(r"//[^/@\s]+@", "//…@", address)[:120]
        if of:
            yield InstallRefusal(
                f"`{of[:80]}`", where, f"would come from {shown}, not from an index"
            )
        else:
            yield InstallRefusal(f"`{shown}`", where, "is no address that packages may come from")

    def _allowed_names(self, ecosystem: Ecosystem) -> frozenset[str]:
        return frozenset(normalise_name(ecosystem, name) for name in self.rules.packages)

    def _trusted_sources(self) -> TrustedSources:
        """The trusted tree's requests; only read when something must be compared with them."""
        if not self._known:
            base = self.base
            known = (
                TrustedSources.read_tree(base.files.keys(), base.read, _MAX_FILES)
                if base is not None
                else TrustedSources()
            )
            self._known.append(known)
        return self._known[0]


def _describe_objection_to_name(ecosystem: Ecosystem, name: str, *, is_lock: bool) -> str:
    """The objection to a name that is neither popular nor known; "" if there is none."""
    if not is_valid_package_name(ecosystem, name):
        return "is no package name"
    if (similar := find_confusable_package(ecosystem, name)) is not None:
        return f"looks like the popular `{similar.of}` ({similar.how})"
    # A lock file names dependencies of popular packages, too; there is no list of those.
    if is_lock or not popular_names(ecosystem):
        return ""
    return "is new here and not among the packages that many projects use"


def _package_key(package: Dependency) -> tuple[str, str]:
    return package.ecosystem, normalise_name(package.ecosystem, package.name)


def _is_readable(path: str) -> bool:
    return is_manifest(path) or posixpath.basename(path) in _ADDRESSED_LOCKS


def _one_address_per_host(addresses: list[str]) -> Collection[str]:
    """Of thousands in a lock file, one for each route to each host."""
    return {
        (address.partition("://")[0], address_host(address)): address
        for address in reversed(addresses)
    }.values()


def _requires_hashes(text: str) -> bool:
    return any("--require-hashes" in line.flags for line in read_requirement_lines(text))


def is_installer_variable(name: str) -> bool:
    """Whether an installer reads such a variable."""
    return (
        re.match(
            r"(?i)(?:PIP|UV|NPM|YARN|PNPM|BUN|POETRY|PIPENV|PIPX|PDM|HATCH|TOX|NOX|CONDA|CARGO|BUNDLE|GEM)_"
            r"|GO(?:PROXY|FLAGS|NOSUMDB|NOSUMCHECK|INSECURE|SUMDB|PRIVATE|NOPROXY)$|(?:https?|all)_proxy$",
            name,
        )
        is not None
    )


# The requests of a trusted tree: names from its manifests, words and addresses from its installing files.

# Other files in which a repository says what it installs.
_INSTALL_FILE = re.compile(
    r"(?i)(?:\.github/.*\.ya?ml|\.gitlab-ci\.yml|\.circleci/config\.yml|\.travis\.yml|azure-pipelines\.yml"
    r"|(?:[^/]+/){0,2}(?:tox\.ini|noxfile\.py|GNUmakefile|Makefile|justfile|Dockerfile[^/]*|[^/]+\.sh"
    r"|package\.json|\.gitmodules|pip\.conf|uv\.toml|\.npmrc|\.yarnrc|\.yarnrc\.yml|bunfig\.toml|poetry\.toml|\.pre-commit-config\.yaml))"
)
_INSTALL_LINE = re.compile(
    r"(?i)\b(?:install|add|sync|dlx|tool run|npx|uvx|pipx|inject|deps|requires?|index|registry|curl|wget|clone|with)\b|://"
)
# `repository: owner/name` of a checkout in a workflow.
_CHECKED_OUT = re.compile(r"\brepository:[ \t]*[\"']?([\w.-]+/[\w.-]+)")
_INSECURE_SETTING = re.compile(
    r"(?i)\b(?:PIP_TRUSTED_HOST|UV_INSECURE_HOST|npm_config_strict_ssl)\b"
)
_OWN_NAME = re.compile(r"""(?m)^name\s*=\s*["']([\w.-]+)["']""")
_WORD = re.compile(r"[^\s'\"`,;()\[\]<>=!~|&]+")
_ADDRESS = re.compile(r"(?:[a-z]{1,20}\+)?[a-z]{2,5}://[^\s'\"`|;)>\]]+")


@dataclass(frozen=True)
class TrustedSources:
    """Names by ecosystem, and the words and addresses of commands."""

    names: frozenset[tuple[str, str]] = frozenset()
    words: frozenset[str] = frozenset()
    places: frozenset[str] = frozenset()

    @classmethod
    def read_tree(cls, paths: Collection[str], read: ReadFile, most: int) -> Self:
        """Read the files of a tree that declare installs, up to a limit, those nearest the root first."""
        names: set[tuple[str, str]] = set()
        words: set[str] = set()
        places: set[str] = set()
        chosen = [path for path in paths if is_manifest(path) or _INSTALL_FILE.fullmatch(path)]
        for path in sorted(chosen, key=lambda path: (path.count("/"), path))[:most]:
            text = decode_text(read(path) or b"")
            declared = read_declared(path, text)
            names |= {
                (package.ecosystem, normalise_name(package.ecosystem, package.name))
                for package in declared.dependencies
            }
            places |= {
                normalise_address(package.where)
                for package in declared.dependencies
                if package.where
            }
            places |= {normalise_address(plain_address(address)) for address, _ in declared.indexes}
            places |= {normalise_address(address) for address in _ADDRESS.findall(text)}
            if path.startswith(".github/"):
                places |= {f"github.com/{name}".lower() for name in _CHECKED_OUT.findall(text)}
            if path.endswith("pyproject.toml"):  # extras that name their own project
                names |= {
                    ("pypi", normalise_name("pypi", name)) for name in _OWN_NAME.findall(text)
                }
            if _INSTALL_FILE.fullmatch(path):
                words |= set(_INSECURE_SETTING.findall(text))
                words |= set(_find_install_words(text, everywhere=path.endswith("tox.ini")))
        return cls(frozenset(names), frozenset(words), frozenset(places))

    def has_package(self, ecosystem: Ecosystem, name: str) -> bool:
        """Whether the trusted tree requests this name."""
        plain = normalise_name(ecosystem, name)
        return (ecosystem, plain) in self.names or name in self.words or plain in self.words

    def has_address(self, address: str) -> bool:
        """Whether the trusted tree uses this source; another revision of it is the same source."""
        return normalise_address(address) in self.places


def normalise_address(address: str) -> str:
    """An address without its scheme, revision and fragment."""
    if "://" not in address:
        return (
            address.partition("#")[0].partition("@")[0]
            if not address.startswith("git@")
            else address
        )
    host, path = _split_address(address)
    return f"{host}{path.partition('@')[0]}".rstrip("/").removesuffix(".git").lower()


def address_host(address: str) -> str:
    """The host of an address; "" if it has none."""
    return _split_address(address)[0].rpartition("@")[2].partition(":")[0].lower()


def _split_address(address: str) -> tuple[str, str]:
    """Host and path of anything that looks like an address."""
    rest = address.partition("://")[2]
    whole = re.split(r"[?#]", rest, maxsplit=1)[0]
    host, slash, path = whole.partition("/")
    return host, slash + path


def _find_install_words(text: str, *, everywhere: bool) -> Iterator[str]:
    for line in text.replace("\\\n", " ").splitlines():
        if everywhere or _INSTALL_LINE.search(line):
            yield from _WORD.findall(line)
