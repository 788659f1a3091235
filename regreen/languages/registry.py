"""All languages that have an adapter. A new language is a value here, or a module beside this one where it needs code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from regreen.code.file_languages import is_stub, language_of
from regreen.domain.languages import (
    CAPABILITIES,
    Capability,
    DependencyTools,
    Language,
    MakeEdits,
    ProjectTools,
    TestTools,
)
from regreen.languages.go import GO
from regreen.languages.python.adapter import PYTHON
from regreen.languages.quarantine import MarkerAbove
from regreen.languages.script import JAVASCRIPT, TYPESCRIPT
from regreen.languages.toolchains import TableProjects

_OUTLINE_ONLY: frozenset[Capability] = frozenset(
    {"contracts", "syntax tree", "checkers", "bug patterns", "data flow", "conventions", "assertions", "test results",
     "coverage", "edits", "mutants", "warm engine", "dependencies"}
)  # fmt: skip
JAVA = Language(
    title="Java",
    files=frozenset({"java"}),
    manifests=frozenset({"pom.xml", "build.gradle", "build.gradle.kts"}),
    gaps=_OUTLINE_ONLY,
    projects=TableProjects("java"),
    quarantine=MarkerAbove("@org.junit.jupiter.api.Disabled({reason})"),
)
RUST = Language(
    title="Rust",
    files=frozenset({"rust"}),
    manifests=frozenset({"Cargo.toml"}),
    gaps=_OUTLINE_ONLY,
    projects=TableProjects("rust"),
    quarantine=MarkerAbove("#[ignore = {reason}]"),
)
LANGUAGES: tuple[Language, ...] = (PYTHON, JAVASCRIPT, TYPESCRIPT, GO, RUST, JAVA)
DEPENDENCIES: tuple[DependencyTools, ...] = tuple(
    x.dependencies for x in LANGUAGES if x.dependencies
)
PROJECTS: tuple[ProjectTools, ...] = tuple(dict.fromkeys(x.projects for x in LANGUAGES))


def find_language(path: str) -> Language | None:
    """The adapter of a file's language, None where there is none."""
    name = language_of(path)
    return next((language for language in LANGUAGES if name in language.files), None)


def has_capability(path: str, capability: Capability, *, stubs: bool = False) -> bool:
    """Whether a capability reads this file; files that only declare types are left out unless `stubs`."""
    language = find_language(path)
    return language is not None and language.has(capability) and (stubs or not is_stub(path))


def find_test_tools(path: str) -> TestTools | None:
    """What runs a test file, None where its language's tests cannot be run one by one."""
    language = find_language(path)
    return language.tests if language is not None else None


def find_edits(path: str) -> MakeEdits | None:
    """What makes edits of a file that may repair it, None where its language has none."""
    language = find_language(path)
    return language.make_edits if language is not None else None


def find_mutation(path: str) -> MakeEdits | None:
    """What puts faults into a file, None where its language has no mutants or the file only declares types."""
    language = find_language(path) if not is_stub(path) else None
    return language.make_mutants if language is not None else None


def detect_languages(paths: Sequence[str]) -> tuple[Language, ...]:
    """The languages of a tree: those with a manifest in it, and those of its files."""
    written = {language_of(path) for path in paths}
    return tuple(x for x in LANGUAGES if x.is_used_in(paths) or written & x.files)


def find_gaps(paths: Iterable[str], capability: Capability) -> list[str]:
    """The titles of the languages of these files that lack a capability."""
    found = {language for path in paths if (language := find_language(path)) is not None}
    return [x.title for x in LANGUAGES if x in found and not x.has(capability)]


def describe_support(paths: Sequence[str]) -> str:
    """What is done for the languages of a tree, or for all where it has none; those with the same gaps together."""
    titles: dict[frozenset[Capability], list[str]] = {}
    for language in detect_languages(paths) or LANGUAGES:
        titles.setdefault(language.gaps, []).append(language.title)
    return "; ".join(
        f"{', '.join(names)}: {_describe_capabilities(gaps)}" for gaps, names in titles.items()
    )


def _describe_capabilities(gaps: frozenset[Capability]) -> str:
    return ", ".join(x for x in CAPABILITIES if x not in gaps) if gaps else "everything"
