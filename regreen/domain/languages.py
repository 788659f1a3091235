"""What a programming language is to Regreen: one adapter in `regreen/languages/`, described by these types.

No other code asks which language a file has: it asks the file's adapter for a capability.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, get_args

from regreen.domain.environments import Environment, ProjectCommit, ReadText, RepositoryFiles
from regreen.domain.models import Failure
from regreen.domain.ports import Git

Capability = Literal[
    "outline",
    "contracts",
    "syntax tree",
    "checkers",
    "bug patterns",
    "data flow",
    "conventions",
    "assertions",
    "test results",
    "changed tests",
    "coverage",
    "edits",
    "mutants",
    "warm engine",
    "dependencies",
]
"""What Regreen can do with a language.

- outline: definitions, calls and imports of a file, for the call graph
- contracts: uses that no longer fit what a change removed or altered
- syntax tree: an exact tree, which the gate and the repairs compare
- checkers: a type checker and a linter whose trusted rules are held against the merge base
- bug patterns, data flow, conventions, assertions (of tests that can no longer fail): reviewers of that name
- test results: how each test ended; some tests selected by name
- changed tests: those of a change run with and without it
- coverage: which lines the tests run
- edits: small changes of a line that may repair it
- mutants: small faults put into lines on purpose
- warm engine: many candidates against the tests for the price of one collection
- dependencies: what a failure says is missing is declared and installed
"""
CAPABILITIES: tuple[Capability, ...] = get_args(Capability)


@dataclass(frozen=True, slots=True)
class CompletedChange:
    """Files by path, with what a commit did elsewhere and left out in them.

    `culprit` is the commit; `is_guess`: another reading is possible.
    """

    culprit: str
    texts: Mapping[str, str]
    summary: str
    is_guess: bool


@dataclass(frozen=True, slots=True)
class SourceEdit:
    """Replace `text[start:stop]` by `new`; `prior` is how likely such an edit is a repair, `line` is 1-based."""

    start: int
    stop: int
    new: str
    name: str
    line: int
    prior: float

    def apply_to(self, text: str) -> str:
        """The text with the edit made."""
        return text[: self.start] + self.new + text[self.stop :]


class TestListener(Protocol):
    """Programs laid into a box beside the tests; they write down how each test ends."""

    @property
    def output(self) -> str:
        """The file of the box in which the results are found after the run."""
        ...

    def read_programs(self) -> Mapping[str, bytes]:
        """The files to write into the box, by path."""
        ...

    def extend_environment(self, env: Mapping[str, str], seconds: float | None) -> dict[str, str]:
        """`env` with what starts the programs; the tests are told to stop after so many seconds."""
        ...

    def extend_command(self, command: Sequence[str]) -> tuple[str, ...]:
        """The command with the programs found also where its words set the search path themselves."""
        ...

    def kept_tests_from_starting(self, output: str) -> bool:
        """Whether the programs were not found, so that no test could start."""
        ...


class TestTools(Protocol):
    """Runs, selects and names tests. A command is its words, a command line its text."""

    @property
    def listener(self) -> TestListener:
        """What hears how each test ends."""
        ...

    def names_each_test(self, command_line: str, output: str = "") -> bool:
        """Whether a runner whose tests have stable names is behind the command, by its words or its output."""
        ...

    def can_listen(self, command_line: str, output: str) -> bool:
        """Whether the listener hears the tests behind the command."""
        ...

    def find_plain_call(self, command: Sequence[str]) -> tuple[str, ...] | None:
        """The words of a command that is one plain call of the runner; None for anything more."""
        ...

    def widen(self, command: Sequence[str], *, past_errors: bool = False) -> tuple[str, ...] | None:
        """The same runner over all tests it collects; None where the command is no narrow plain call.

        `past_errors`: also where some of the files cannot be collected.
        """
        ...

    def find_collection(self, command: Sequence[str]) -> tuple[str, ...] | None:
        """The same plain call, which only collects the tests; None where it cannot."""
        ...

    def go_past_errors(self, command: Sequence[str], output: str) -> tuple[str, ...] | None:
        """The same plain call, which runs the rest where some files cannot be collected; None where it does, or cannot.

        `output`: what the call said when it stopped.
        """
        ...

    def names_some(self, command_line: str) -> bool:
        """Whether the command line names some of the tests only."""
        ...

    def is_collected(self, path: str) -> bool:
        """Whether the runner may collect tests from a file."""
        ...

    def run_suite(self, *, plain: bool = False) -> tuple[str, ...]:
        """The command that runs all tests; `plain` without the options that the project has set."""
        ...

    def run_file(self, path: str, *, once: bool = False) -> tuple[str, ...]:
        """The command that runs one test file; `once`: up to the first failure, leaving nothing behind."""
        ...

    def run_tests(self, tests: Sequence[str], like: Sequence[str] = ()) -> tuple[str, ...]:
        """The command that runs exactly these tests, in this order; with the options of `like`, a command, that say how tests are loaded."""
        ...

    def name_test(self, path: str, name: str) -> str:
        """The name that the runner gives to a test, from its file and its dotted name in the file's outline."""
        ...

    def split_name(self, test: str) -> tuple[str, str]:
        """The file that the test's name begins with and the short name of the test in it; both "" for other names."""
        ...

    def is_test_name(self, test: str, path: str) -> bool:
        """Whether this is a name by which `run_tests` finds a test; `path` is where its failure was seen."""
        ...

    def find_test_files(self, word: str) -> list[str]:
        """The files that may hold the test of this name, the likeliest first."""
        ...


@dataclass(frozen=True, slots=True)
class ListedTest:
    """A test as it stands in a file from a 1-based line on; `asserts`: something in it may be an assertion."""

    source: str
    line: int
    asserts: bool


class FileTestTools(Protocol):
    """Runs whole test files by the project's own runner, in languages whose tests are not listened to one by one.

    A test's name is `PATH::TITLE`, its title what stands in the file.
    """

    def list_tests(self, text: str) -> dict[str, ListedTest]:
        """The tests of a file by title; those whose title is made at run time are left out."""
        ...

    def has_tests(self, text: str) -> bool:
        """Whether a file seems to hold tests, those of titles made at run time too."""
        ...

    def run_files(
        self, command_line: str, paths: Sequence[str], read: ReadText
    ) -> tuple[str, ...] | None:
        """The command that runs these files; None where the project's command is none of a known runner."""
        ...

    def read_results(
        self, output: str, titles: Mapping[str, Sequence[str]]
    ) -> tuple[dict[str, str], tuple[Failure, ...]]:
        """How each test ended, and what failed, by such names; what failed outside all tests under its file's path."""
        ...


@dataclass(frozen=True, slots=True)
class MeasuredFile:
    """Coverage of one file: its executable lines, those not run, branches not taken, tests that ran it."""

    statements: frozenset[int]
    missing: frozenset[int]
    branches: tuple[tuple[int, int], ...]
    tests: tuple[str, ...]


class CoverageTool(Protocol):
    """Measures which lines of some files the tests run."""

    @property
    def needs(self) -> str:
        """What a project or its toolchain must have to be measured, in words; "" for nothing."""
        ...

    @property
    def report_path(self) -> str:
        """The file below /work that `report_command` writes."""
        ...

    @property
    def report_command(self) -> tuple[str, ...]:
        """Run after the tests, in the same box and not traced."""
        ...

    def make_programs(self, paths: Sequence[str]) -> Mapping[str, bytes]:
        """What is written into the box before the tests, by path; programs in .regreen/bin come first on the PATH."""
        ...

    def extend_environment(self, env: Mapping[str, str], *, traced: bool) -> dict[str, str]:
        """`env` with what the report needs and, where the run is traced, with what starts the tracer."""
        ...

    def parse_report(self, data: bytes) -> dict[str, MeasuredFile] | None:
        """Read the report by path; None for anything else, since the tests may write there too."""
        ...


@dataclass(frozen=True, slots=True)
class CompilerFinding:
    """What a compiler or its linter says of some lines (1-based) of a file; `rule` is its own word for that.

    `unresolved`: a name is not found, and a package that is not at hand may be what declares it.
    """

    rule: str
    path: str
    line: int
    end_line: int
    message: str
    unresolved: bool = False


@dataclass(frozen=True, slots=True)
class CompilerRun:
    """One run of a compiler over a tree, in a box without network.

    `setup` prepares the box once, with `programs` (by path) as its tree; `command` is a shell command at the tree's
    root, with `files` laid over it. `runs_code` names what of the repository the compiler itself would run.
    """

    command: str
    setup: str = ""
    programs: Mapping[str, bytes] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    runs_code: str = ""


class CompilerTools(Protocol):
    """Compiles a tree with the language's own tools, and reads what they say."""

    @property
    def program(self) -> str:
        """The program without which nothing is compiled."""
        ...

    def plan_run(
        self, changed: Collection[str], paths: Collection[str], read: ReadText
    ) -> CompilerRun:
        """How the parts of a tree that hold the changed files are compiled; `paths` are all of its files."""
        ...

    def parse_output(self, output: str) -> Iterable[CompilerFinding]:
        """What the command has printed to its standard output."""
        ...


class WarmDriver(Protocol):
    """A program for the box that tries many candidates after one collection of the tests."""

    def read_program(self) -> bytes:
        """The program, to be written into the box."""
        ...

    def find_interpreter(self, command: Sequence[str]) -> tuple[str, ...] | None:
        """What runs the program in the environment of the tests; None where the command is no plain call."""
        ...


class ProjectTools(Protocol):
    """Says how the projects of a language are set up and tested."""

    @property
    def name(self) -> str:
        """The language as documents name it."""
        ...

    @property
    def test_programs(self) -> Collection[str]:
        """The programs that run its tests, by the word that each is called by first."""
        ...

    def rate_tree(self, files: RepositoryFiles) -> int:
        """How surely a tree is a project in the language: the highest wins; 0 for none."""
        ...

    def infer_environments(self, commit: ProjectCommit) -> Iterable[Environment]:
        """The environments to try, the likeliest first."""
        ...


@dataclass(frozen=True, slots=True)
class VersionBounds:
    """The distribution behind a module with its version, and the releases to stay below, the newest first."""

    module: str
    distribution: str
    version: str
    releases: tuple[str, ...]


class DependencyTools(Protocol):
    """Knows what a project's setup installs, what it lacks, and how its manifests declare, pin and bound that.

    What reads manifests of the repository is called in a child process.
    """

    @property
    def install_test_runner(self) -> str:
        """The shell line that installs what runs the tests."""
        ...

    def make_test_setup(self, git: Git, rev: str) -> str:
        """Shell lines that install the test runner and what the project's tests want, as far as it can be had."""
        ...

    def find_undeclared(self, output: str, files: RepositoryFiles) -> tuple[str, ...]:
        """Requirements that the tests lack by their output; not what the product itself lacks."""
        ...

    def find_variables(self, output: str, files: RepositoryFiles) -> tuple[tuple[str, str], ...]:
        """The variables that the output misses and the repository gives a value."""
        ...

    def install(self, requirements: Sequence[str], setup: str = "") -> str:
        """The shell line that installs what can be had of the requirements after `setup`."""
        ...

    def find_uninstalled(self, output: str, setup: str) -> tuple[str, ...]:
        """The requirements of `setup` that its output says it went on without."""
        ...

    @property
    def versions_path(self) -> str:
        """The file below /work that `list_versions_script` writes."""
        ...

    @property
    def list_versions_script(self) -> str:
        """The script that lists the installed versions."""
        ...

    @property
    def list_modules_script(self) -> str:
        """The script that prints which distribution and version is behind each importable name."""
        ...

    def find_unneeded_by_product(
        self, output: str, paths: Sequence[str], read: ReadText
    ) -> tuple[str, ...]:
        """What the output says is missing, where only tests import it all."""
        ...

    def propose_declarations(
        self, output: str, paths: Sequence[str], read: ReadText, setup: str, *, setup_failed: bool
    ) -> list[tuple[dict[str, str], str]]:
        """Changed manifests that declare what the output says is missing, the likeliest first, each with its cause."""
        ...

    def make_search_script(self, output: str, paths: Sequence[str], read: ReadText) -> str:
        """The script that prints where names that cannot be imported any more are now; empty if there are none."""
        ...

    def move_imports(self, listed: str, paths: Sequence[str], read: ReadText) -> dict[str, str]:
        """The files that import such names, importing them from where that script found them."""
        ...

    def find_derived_locks(
        self, path: str, paths: Collection[str], read: ReadText, setup: str
    ) -> list[tuple[str, str]]:
        """The lock files made from a manifest, each with the script that regenerates it."""
        ...

    def find_blamed(self, output: str) -> tuple[str, ...]:
        """The names of what the installer complains about."""
        ...

    def propose_free_pins(
        self, name: str, paths: Sequence[str], read: ReadText
    ) -> list[tuple[str, str]]:
        """The manifests that pin a name to one version, each with its text without the pin."""
        ...

    def move_pin(self, text: str, name: str, listed: str) -> tuple[str, str] | None:
        """The manifest with the version that `list_versions_script` wrote, and that version."""
        ...

    def find_suspects(
        self, failures: Sequence[Failure], output: str, paths: Sequence[str], read: ReadText
    ) -> list[str]:
        """Installed modules that the failures point at, the most certain first."""
        ...

    def find_bounds(self, module: str, listed: str) -> VersionBounds:
        """The releases to stay below; `listed` is what `list_modules_script` printed."""
        ...

    def declare_bound(
        self, bounds: VersionBounds, release: str, paths: Sequence[str], read: ReadText, setup: str
    ) -> dict[str, str]:
        """The changed manifests that keep a distribution below a release; empty where none can."""
        ...


MakeEdits = Callable[[str, Sequence[int]], list[SourceEdit]]
"""Small edits of the given 1-based lines of a text, each of which changes what the code does."""


ImportMoved = Callable[[str, str, str, tuple[str, str]], str]
"""For a file's path and text, a name, and the files that had and have it: the text that imports it from there."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Language:
    """One language's adapter.

    Attributes:
        title: how people write the language's name.
        files: the names of its rows in `code/languages.toml`, which say how its files end.
        manifests: files that make a folder a project in this language.
        projects: how its projects are set up and tested.
        gaps: the capabilities it lacks. A field that is None belongs to a declared gap.
        compiler: what compiles its files in a box; None where nothing does, or where its checkers do that work.
        import_moved: None where nothing follows what moved to another file.
    """

    title: str
    files: frozenset[str]
    manifests: frozenset[str]
    gaps: frozenset[Capability]
    projects: ProjectTools
    tests: TestTools | None = None
    file_tests: FileTestTools | None = None
    coverage: CoverageTool | None = None
    parses: Callable[[str], bool] | None = None
    make_edits: MakeEdits | None = None
    make_mutants: MakeEdits | None = None
    warm_driver: WarmDriver | None = None
    dependencies: DependencyTools | None = None
    compiler: CompilerTools | None = None
    import_moved: ImportMoved | None = None

    def has(self, capability: Capability) -> bool:
        """Whether the language has a capability."""
        return capability not in self.gaps

    def is_used_in(self, paths: Collection[str]) -> bool:
        """Whether a tree with these paths holds a project in this language, by its manifests."""
        return any(path.rsplit("/", 1)[-1] in self.manifests for path in paths)
