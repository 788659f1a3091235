"""All languages that have an adapter, and what they say together of a path or a command.

A new language is a value here, or a module beside this one where it needs code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from regreen.code.file_languages import is_stub, language_of
from regreen.code.python_calls import parse_python
from regreen.domain.languages import (
    CAPABILITIES,
    Capability,
    DependencyTools,
    FileTestTools,
    Language,
    MakeEdits,
    ProjectTools,
    TestListener,
    TestTools,
)
from regreen.languages.compilers import (
    JavaCompiler,
    RustCompiler,
    import_moved_in_java,
    import_moved_in_rust,
)
from regreen.languages.go import GO
from regreen.languages.python.dependencies import PythonDependencies
from regreen.languages.python.edits import make_edits, make_mutants
from regreen.languages.python.project_setup import PythonProjects
from regreen.languages.python.test_tools import PYTHON_TESTS, PythonCoverage, PythonWarmDriver
from regreen.languages.script import JAVASCRIPT, TYPESCRIPT
from regreen.languages.toolchains import TableCoverage, TableFileTests, TableProjects, TreeMutants
from regreen.runs.trial import Trial
from regreen.shell.tools import load_tools

PYTHON = Language(
    title="Python",
    files=frozenset({"python"}),
    manifests=frozenset({"pyproject.toml", "setup.py", "setup.cfg", "Pipfile", "requirements.txt"}),
    gaps=frozenset(),
    projects=PythonProjects(),
    tests=PYTHON_TESTS,
    coverage=PythonCoverage(),
    make_edits=make_edits,
    parses=lambda text: parse_python(text) is not None,
    make_mutants=make_mutants,
    warm_driver=PythonWarmDriver(),
    dependencies=PythonDependencies(),
)


_OUTLINE_ONLY: frozenset[Capability] = frozenset(
    {
        "syntax tree",
        "checkers",
        "data flow",
        "conventions",
        "assertions",
        "test results",
        "changed tests",
        "edits",
        "mutants",
        "warm engine",
        "dependencies",
    }
)
JAVA = Language(
    title="Java",
    files=frozenset({"java"}),
    manifests=frozenset({"pom.xml", "build.gradle", "build.gradle.kts"}),
    gaps=_OUTLINE_ONLY,
    projects=TableProjects("java"),
    coverage=TableCoverage("java"),
    compiler=JavaCompiler(),
    import_moved=import_moved_in_java,
)
_RUST_MUTANTS = TreeMutants(("rust",))
RUST = Language(
    title="Rust",
    files=frozenset({"rust"}),
    manifests=frozenset({"Cargo.toml"}),
    gaps=_OUTLINE_ONLY - {"assertions", "changed tests", "mutants"},
    projects=TableProjects("rust"),
    coverage=TableCoverage("rust"),
    file_tests=TableFileTests("rust", ("rust",)),
    parses=_RUST_MUTANTS.parses,
    make_mutants=_RUST_MUTANTS,
    compiler=RustCompiler(),
    import_moved=import_moved_in_rust,
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


def find_file_tests(path: str) -> FileTestTools | None:
    """What runs a test file as a whole, None where its tests are listened to one by one, or cannot be run."""
    language = find_language(path)
    return language.file_tests if language is not None else None


def find_edits(path: str) -> MakeEdits | None:
    """What makes edits of a file that may repair it, None where its language has none."""
    language = find_language(path)
    return language.make_edits if language is not None else None


def find_mutation(path: str, *, warm: bool = False) -> MakeEdits | None:
    """What puts faults into a file, None where its language has no mutants or the file only declares types.

    `warm`: only where the warm engine can try them.
    """
    language = find_language(path) if not is_stub(path) else None
    if language is None or (warm and language.warm_driver is None):
        return None
    return language.make_mutants


def parses(path: str, text: str) -> bool:
    """Whether a text is without errors in the language of a file; False where none here can tell."""
    language = find_language(path)
    return language is not None and language.parses is not None and language.parses(text)


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
    titles: dict[tuple[frozenset[Capability], bool, str], list[str]] = {}
    for language in detect_languages(paths) or LANGUAGES:
        needs = language.coverage.needs if language.coverage else ""
        key = (language.gaps, language.compiler is not None, needs)
        titles.setdefault(key, []).append(language.title)
    return "; ".join(
        f"{', '.join(names)}: {_describe_capabilities(*key)}" for key, names in titles.items()
    )


def _describe_capabilities(gaps: frozenset[Capability], compiles: bool, needs: str) -> str:
    if not gaps:
        return "everything"
    had = [x for x in CAPABILITIES if x not in gaps]
    measured = f"coverage (needs {needs})" if needs else "coverage"
    return ", ".join(
        [*(["compiler"] if compiles else []), *(measured if x == "coverage" else x for x in had)]
    )


_WITH_TESTS = tuple((language, language.tests) for language in LANGUAGES if language.tests)
TEST_LISTENERS: tuple[TestListener, ...] = tuple(tools.listener for _, tools in _WITH_TESTS)


def names_each_test(trial: Trial, output: str = "") -> bool:
    """Whether a runner whose tests have stable names is behind the command, by its words or its output."""
    return any(tools.names_each_test(trial.command_line, output) for _, tools in _WITH_TESTS)


def find_listeners(trial: Trial, output: str) -> tuple[TestListener, ...]:
    """The listeners that hear the tests behind the command, by its output."""
    return tuple(t.listener for _, t in _WITH_TESTS if t.can_listen(trial.command_line, output))


def find_plain_test_call(trial: Trial) -> tuple[str, ...] | None:
    """The argv of a command that is one plain call of a test runner; None for anything more."""
    found = (tools.find_plain_call(trial.command) for _, tools in _WITH_TESTS)
    return next((tuple(words) for words in found if words is not None), None)


def find_collection(trial: Trial) -> tuple[Language, tuple[str, ...]] | None:
    """The plain call of a test runner that only collects, with its language; None where the command is none."""
    found = ((x, tools.find_collection(trial.command)) for x, tools in _WITH_TESTS)
    return next(((x, words) for x, words in found if words is not None), None)


def go_past_errors(trial: Trial, output: str) -> Trial | None:
    """The trial that runs the rest where files cannot be collected, and passes where `trial` does; None where none is needed."""
    found = (tools.go_past_errors(trial.command, output) for _, tools in _WITH_TESTS)
    command = next((words for words in found if words is not None), None)
    return replace(trial, command=command) if command is not None else None


def is_plain_test_call(trial: Trial) -> bool:
    """Whether the command is one plain call of a test runner."""
    return find_plain_test_call(trial) is not None


def find_warm_language(trial: Trial) -> Language | None:
    """The language whose warm engine runs the tests of the command."""
    return next(
        (
            x
            for x, _ in _WITH_TESTS
            if x.warm_driver and x.warm_driver.find_interpreter(trial.command)
        ),
        None,
    )


def find_test_files(word: str) -> list[str]:
    """The files that may hold the test of this name."""
    return [path for _, tools in _WITH_TESTS for path in tools.find_test_files(word)]


def find_tools_of_test(test: str, path: str) -> TestTools | None:
    """What runs a test by its name; `path` is where its failure was seen."""
    return next((tools for _, tools in _WITH_TESTS if tools.is_test_name(test, path)), None)


def select_tests_of_trial(trial: Trial, names: Sequence[str]) -> Trial:
    """The trial with these tests alone; as it is where its command is no plain call of a runner that can."""
    tools = [find_tools_of_test(name, split_test_name(name)[0]) for name in names]
    if not (tools and tools[0] and all(tools)) or not is_plain_test_call(trial):
        return trial
    return replace(trial, command=tools[0].run_tests(names, trial.command), title=None)


def split_test_name(test: str) -> tuple[str, str]:
    """The file that a test's name begins with and its short name in it; both "" for other names."""
    found = (tools.split_name(test) for _, tools in _WITH_TESTS)
    return next((names for names in found if names[0]), ("", ""))


def widen_trial(trial: Trial, *, past_errors: bool = False) -> Trial | None:
    """The same runner over all tests it collects by default; None where the command is no narrow plain call.

    `past_errors`: also where some of the files cannot be collected.
    """
    found = (tools.widen(trial.command, past_errors=past_errors) for _, tools in _WITH_TESTS)
    command = next((words for words in found if words is not None), None)
    return replace(trial, command=command) if command is not None else None


def runs_all(trial: Trial, outcomes: Mapping[str, str]) -> bool:
    """Whether the command is the project's tests as a whole, as far as its words tell: exit 0 then means all of them.

    `outcomes` is how each test ended that a listener heard.
    """
    if is_plain_test_call(trial):
        return widen_trial(trial) is None
    narrow = any(tools.names_some(trial.command_line) for _, tools in _WITH_TESTS)
    return not narrow and (bool(outcomes) or _runs_a_suite(trial.command_line))


def _runs_a_suite(command_line: str) -> bool:
    return any(re.search(pattern, command_line) for pattern in load_tools().test_suites)
