"""Checks 1 and 6 to 9: what may be applied, where a person decides, and what a patch does to the dependencies; new access to network, processes and environment; the size of a patch."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence

from regreen.code.file_change import CheckReason, PatchedFile, ReasonLevel
from regreen.code.paths import (
    describe_sensitivity,
    is_document,
    is_generated,
    is_lock_file,
    is_source,
    is_test,
    is_vendored,
    matches_glob,
)
from regreen.gate.facts import (
    documentation_nodes,
    exclude_tests_and_documents,
    find_gained_line,
    find_nodes,
)
from regreen.gate.words import find_broken_rules, name_set, suffix_group, word_pattern
from regreen.packages import manifests_and_locks as manifests
from regreen.packages.concerns import Concern, find_concerns
from regreen.packages.manifests_and_locks import is_manifest
from regreen.packages.popular_names import normalise_name
from regreen.secrets.credential_detection import find_secrets

# Checks 1 and 6: what may be applied, and where a person decides.

_CONFIGURATION_SUFFIXES = {
    ".yml",
    ".yaml",
    ".tf",
    ".tfvars",
    ".hcl",
    ".conf",
    ".ini",
    ".cfg",
    ".env",
    ".properties",
    ".toml",
    ".nix",
}
_MANIFEST_NAMES = {
    "pyproject.toml",
    "setup.cfg",
    "Cargo.toml",
    "Pipfile",
    "poetry.toml",
    "uv.toml",
    "pubspec.yaml",
    "pnpm-workspace.yaml",
}
_DATA_DIRS = {"locale", "locales", "i18n", "translations", "lang", "data", "examples"}
_SCRIPT_SUFFIXES = {"", ".sh", ".bash", ".zsh", ".fish", ".bat", ".cmd", ".ps1", ".mk"}
_RUNS_CHECKS = re.compile(
    r"^[^#\n]{0,300}\b(?:pytest|unittest|nosetests|tox|nox|(?:go|cargo|npm|pnpm|yarn|mvn|gradle\w*|dotnet|mix|swift|rake|make|bundle exec)\s+(?:run\s+)?(?:test|check|lint|vet|clippy|verify)\w*"
    r"|jest|vitest|mocha|rspec|phpunit|ctest|bats|prove|shellcheck|ruff|flake8|pylint|mypy|pyright|eslint|tsc|golangci-lint|hadolint|bandit|semgrep)\b",
    re.MULTILINE,
)
_CHECK_NAME = re.compile(
    r"(?:^|[_-])(?:run_?)?(?:tests?|checks?|lint|ci|verify)(?:[_.-]|$)", re.IGNORECASE
)
_LICENCE_NAME = re.compile(r"(?i)(licen[cs]e|copying|notice)")


def find_unappliable_files(files: Sequence[PatchedFile], tree: Sequence[str]) -> list[CheckReason]:
    """Check 1: text only, regular files only, no new path that differs from another only in case."""
    taken = {path.casefold(): path for path in tree}
    reasons = [
        CheckReason("applies", f"{file.path} {what}", "deny")
        for file in files
        for what in _find_obstacles(file, taken.get(file.path.casefold(), file.path))
    ]
    return reasons or (
        [] if files else [CheckReason("applies", "the patch changes nothing", "deny")]
    )


def _find_obstacles(file: PatchedFile, twin: str) -> Iterator[str]:
    """Why a file cannot be applied; `twin` is the tracked path that is the same but for case."""
    if file.binary:
        yield "is binary; a patch may change text only"
    if file.new is not None and file.new_mode not in {"100644", "100755"}:
        yield f"would become a link or a submodule (mode {file.new_mode})"
    elif file.old is not None and file.new is not None and file.old_mode != file.new_mode:
        yield f"changes its mode from {file.old_mode} to {file.new_mode}"
    if file.old is None and twin != file.path:
        yield f"differs from {twin} only in case"
    if {"..", ".git"} & set(file.path.split("/")) or file.path.startswith("/"):
        yield "lies outside the repository's files"


def find_sensitive_files(
    files: Sequence[PatchedFile], protected: Sequence[str], *, by_tool: bool = False
) -> list[CheckReason]:
    """Check 6: files where a person decides; generated files may change if their own tool wrote them (`by_tool`)."""
    reasons: list[CheckReason] = []
    for file in files:
        what = _sensitivity_reason(file, protected, by_tool=by_tool)
        if what:
            reasons.append(CheckReason("sensitive_path", f"{file.path}: {what}"))
    return [*reasons, *_find_added_credentials(files)]


def _find_added_credentials(files: Sequence[PatchedFile]) -> Iterator[CheckReason]:
    found = [
        (file, credential)
        for file in files
        for credential in find_secrets(file.added_text, file.path)
    ]
    moved = {
        credential.digest
        for file in (files if found else ())
        for credential in find_secrets(file.old or "", file.path)
    }
    for file, credential in found:
        if credential.digest not in moved:
            level: ReasonLevel = "deny" if credential.has_known_format else "needs_human"
            what = (
                f"{file.path} adds what looks like a secret ({credential.kind} {credential.masked})"
            )
            yield CheckReason("sensitive_path", what, level)


def _is_check_script(file: PatchedFile) -> bool:
    """Whether a script is named after checks or runs a checker."""
    name = file.path.rsplit("/", 1)[-1]
    if file.suffix not in _SCRIPT_SUFFIXES or is_document(file.path):
        return False
    return bool(_CHECK_NAME.search(name) or _RUNS_CHECKS.search(file.old or file.new or ""))


def _sensitivity_reason(file: PatchedFile, protected: Sequence[str], *, by_tool: bool) -> str:
    path = file.path
    if matches_glob(path, protected):
        return "the repository's configuration protects this path"
    if _is_check_script(file):
        return "decides how the project is built or checked"
    what = describe_sensitivity(path)
    if what or is_test(path) or is_document(path):
        return what
    name, folders = path.rsplit("/", 1)[-1], set(path.split("/")[:-1])
    configures = (
        file.suffix in _CONFIGURATION_SUFFIXES
        and name not in _MANIFEST_NAMES
        and not folders & _DATA_DIRS
    )
    same = (
        by_tool or (file.old or "").split() == (file.new or "").split()
    )  # only its layout changed
    kinds = (
        (configures and file.old and not same, "says how the program is set up and run"),
        (is_vendored(path), "belongs to somebody else; it is copied here"),
        (_LICENCE_NAME.match(name), "is the licence"),
        (
            not by_tool and is_generated(path, file.old),
            "is generated; its source should change instead",
        ),
    )
    return next((what for holds, what in kinds if holds), "")


_HASH_ENTRY = re.compile(r"--hash=|sha(?:256|512)[:-]")
_REQUESTED_EXTRA = re.compile(r"([A-Za-z0-9][\w.-]{0,80})\[([\w,. -]{1,80})\]")
_TRUSTED_HOST_OPTION = "--trusted-host"


def check_dependencies(
    files: Sequence[PatchedFile], *, rung: str | None = None
) -> list[CheckReason]:
    """Check 7: no package from elsewhere, no lost hash; a person sees new names; only tools write lock files."""
    return [
        CheckReason("dependencies", f"{file.path}{what}", level)
        for file in files
        for what, level in (
            _check_lock(file, rung)
            if is_lock_file(file.path)
            else _check_manifest(file)
            if is_manifest(file.path)
            else ()
        )
    ]


def _check_lock(file: PatchedFile, rung: str | None) -> Iterator[tuple[str, ReasonLevel]]:
    if rung == "model":
        yield " may only be written by its own tool", "deny"
    elif rung != "recipe":
        yield " changes; regenerate it with its own tool to compare", "needs_human"
    if _loses_all_hashes(file):
        yield " loses hashes", "deny"


def _check_manifest(file: PatchedFile) -> Iterator[tuple[str, ReasonLevel]]:
    old, new = file.old or "", file.new or ""
    for concern in find_concerns(file.path, file.old, new):
        level = _weigh_concern(concern)
        if level is not None:
            yield f": {concern.detail}", level
    if new.count(_TRUSTED_HOST_OPTION) > old.count(_TRUSTED_HOST_OPTION):
        yield " trusts a host without a certificate", "deny"
    if _loses_all_hashes(file):
        yield " loses hashes", "deny"
    before = manifests.read_declared_versions(file.path, file.old)
    after = manifests.read_declared_versions(file.path, file.new)
    for name in sorted(after.keys() - before.keys()):
        yield f" adds the dependency {name}", "needs_human"
    for name in sorted(before.keys() & after.keys()):
        if before[name] != after[name]:
            versions = f"from {before[name] or 'any'} to {after[name] or 'any'}"
            yield f" changes {name} {versions}", "needs_human"
    for name, extra in sorted(_find_extras(new) - _find_extras(old)):
        if name in after:
            yield f" asks for {name} with the extra {extra}", "needs_human"
    for name in sorted(before.keys() - after.keys()):
        yield f" drops the dependency {name}", "needs_human"


def _find_extras(text: str) -> set[tuple[str, str]]:
    """The (distribution, extra) pairs that are requested; extras add packages."""
    return {
        (normalise_name("pypi", name), extra.strip())
        for name, extras in _REQUESTED_EXTRA.findall(text)
        for extra in extras.split(",")
        if extra.strip()
    }


def _weigh_concern(concern: Concern) -> ReasonLevel | None:
    """The level of a concern about a patch that was not asked to add packages."""
    match concern.kind:
        case "look-alike" | "invalid-name" | "index-changed" | "not-from-an-index" | "hash-lost":
            return "deny"
        case "no-such-version" | "hash-changed" | "other-archive":
            return "deny"
        case "yanked" | "deprecated":
            return "needs_human"
        case "install-hook":
            return "deny" if concern.severity == "high" else "needs_human"
        case "unreadable" | "lock-mismatch" | "not-locked":
            return "needs_human"
        case "unknown":
            # a name that no index knows; others are reported as new dependencies anyway
            return "deny" if concern.severity == "critical" else None


def _loses_all_hashes(file: PatchedFile) -> bool:
    """Whether the file had hashes and has none now."""
    return (
        file.new is not None
        and bool(_HASH_ENTRY.search(file.old or ""))
        and not _HASH_ENTRY.search(file.new)
    )


# Checks 8 and 9: what a patch reaches, and its size.


def check_reach(files: Sequence[PatchedFile]) -> list[CheckReason]:
    """Check 8: network, processes, evaluation and environment that the file did not use before."""
    return [
        CheckReason("reach", f"{file.path} {what}", level)
        for file in exclude_tests_and_documents(files)
        for what, level in (_find_new_uses(file) if file.has_syntax_tree else _find_commands(file))
    ]


def _find_new_uses(file: PatchedFile) -> Iterator[tuple[str, ReasonLevel]]:
    before, after = _used_names(file.old_tree), _used_names(file.new_tree)
    used = after - before
    network, executes = used & name_set("network_modules"), used & name_set("executing_names")
    environment = name_set("environment_names")
    if network and after & environment:
        yield f"reads the environment and gains network access ({_join_names(network)})", "deny"
    elif network:
        yield f"gains network access ({_join_names(network)})", "needs_human"
    if executes:
        yield f"gains ways to run code ({_join_names(executes)})", "needs_human"
    if used & environment:
        yield "starts to read the environment", "needs_human"
    if addresses := set(_find_addresses(file.new_tree)) - set(_find_addresses(file.old_tree)):
        yield f"gains the address {min(addresses)}", "needs_human"
    if file.path.endswith("setup.py") and find_gained_line(file, word_pattern("install_hooks")):
        yield "gains code that runs on installation", "needs_human"


def _find_commands(file: PatchedFile) -> Iterator[tuple[str, ReasonLevel]]:
    is_data = file.suffix in suffix_group("no_commands")
    if is_data and not file.path.endswith("package.json"):
        return
    for rule in find_broken_rules(file, "commands"):
        yield rule.says, rule.level
    address = word_pattern("web_addresses").search(file.added_text)
    if address and address.group(0) not in (file.old or ""):
        yield f"gains the address {address.group(0)[:80]}", "needs_human"


def _used_names(tree: ast.Module | None) -> set[str]:
    """The used modules and functions that reach outside; `urllib.parse` and its like only parse addresses."""
    harmless = name_set("address_modules")
    found: set[str] = set()
    for node in find_nodes(tree, ast.AST):
        match node:
            case ast.Import(names=aliases):
                found |= {
                    alias.name.split(".")[0] for alias in aliases if alias.name not in harmless
                }
            case ast.ImportFrom(module=str() as module, level=0):
                names = {f"{module}.{alias.name}" for alias in node.names}
                if module not in harmless and not names <= harmless:
                    found.add(module.split(".")[0])
                found |= names
            case ast.Call(func=ast.Name(id=name)):
                found.add(name)
            case ast.Attribute(value=ast.Name(id=owner), attr=attribute):
                name = f"{owner}.{attribute}"
                found.add(name)
                if owner == "urllib" and name not in harmless:
                    found.add("urllib")  # `import urllib.parse` makes its siblings reachable too
            case _:
                pass
    reach = ("network_modules", "executing_names", "environment_names")
    return found & frozenset().union(*map(name_set, reach))


def _find_addresses(tree: ast.Module | None) -> Iterator[str]:
    documents = documentation_nodes(tree)
    for node in find_nodes(tree, ast.Constant):
        if isinstance(node.value, str) and id(node) not in documents:
            for found in word_pattern("web_addresses").finditer(node.value[:2000]):
                yield found.group(0)[:80]


def _join_names(names: Collection[str]) -> str:
    return ", ".join(sorted(names))


def check_size(
    files: Sequence[PatchedFile], *, max_lines: int, max_files: int = 3
) -> list[CheckReason]:
    """Check 9: the size that a person can read at a glance; tests and documents do not count."""
    source = [file for file in files if is_source(file.path)]
    lines = sum(max(len(file.added_lines), len(file.removed_lines)) for file in source)
    reasons: list[CheckReason] = []
    if lines > max_lines:
        what = f"{lines} lines change; more than {max_lines} need a person's eye"
        reasons.append(CheckReason("size", what))
    if len(source) > max_files:
        what = f"{len(source)} files change; more than {max_files} need a person's eye"
        reasons.append(CheckReason("size", what))
    removed = sum(len(file.removed_lines) for file in source)
    if removed > 10 and not any(file.added_lines for file in source):
        reasons.append(CheckReason("size", f"it only takes away: {removed} lines"))
    for file in source:
        gone = find_public_names(file.old_tree) - find_public_names(file.new_tree)
        if gone and (file.new is None or file.new_tree is not None):
            what = f"{file.path} no longer defines {_join_names(gone)}"
            reasons.append(CheckReason("size", what))
    return reasons


def find_public_names(tree: ast.Module | None) -> set[str]:
    """The functions and classes that a module offers, methods included."""
    found: set[str] = set()
    for node in tree.body if tree else ():
        if isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        ) and not node.name.startswith("_"):
            found.add(node.name)
            for inner in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(
                    inner, ast.FunctionDef | ast.AsyncFunctionDef
                ) and not inner.name.startswith("_"):
                    found.add(f"{node.name}.{inner.name}")
    return found
