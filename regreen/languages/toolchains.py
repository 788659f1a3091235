"""Projects set up, tested and measured by their language's own tools, as rows of `toolchains.toml` say; mutants of trees."""

from __future__ import annotations

import posixpath
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files as package_files
from typing import TYPE_CHECKING, Any

from regreen.code.file_languages import parser_for
from regreen.code.symbols import node_text, walk_nodes
from regreen.domain.environments import (
    Environment,
    Inferred,
    ProjectCommit,
    ReadText,
    RepositoryFiles,
)
from regreen.domain.languages import ListedTest, MeasuredFile, SourceEdit
from regreen.domain.models import Failure
from regreen.logs.ci_log import read_failures
from regreen.packages.dependency import find_first_line_with, get_table, parse_json_object

if TYPE_CHECKING:
    from tree_sitter import Node


@dataclass(frozen=True, slots=True)
class _Way:
    """How a project is set up and tested where `file` is at its root."""

    file: str
    setup: str
    test: str
    script: str = ""


@dataclass(frozen=True, slots=True)
class TableProjects:
    """The projects of a language of the table; `name` is its row."""

    name: str

    @property
    def test_programs(self) -> Collection[str]:
        """The programs that run tests, by the word that each is called by first."""
        programs: list[str] = _load_table()[self.name]["test_programs"]
        return programs

    def rate_tree(self, files: RepositoryFiles) -> int:
        """2 where a file of the table is at the root."""
        return 2 if self._find_way(files) else 0

    def infer_environments(self, commit: ProjectCommit) -> Iterator[Environment]:
        """The first way whose file is there; its test only where the project's scripts have one."""
        files = commit.files
        way = self._find_way(files)
        if way is None:
            return
        place = f"{way.file}:1"
        test: Inferred | None = Inferred(way.test, place)
        if way.script:
            text = files.read(way.script)
            script = get_table(parse_json_object(text), "scripts").get("test")
            has_tests = isinstance(script, str) and "no test specified" not in script
            line = find_first_line_with(text, '"test"')
            test = Inferred(way.test, f"{way.script}:{line}") if has_tests else None
        tool = way.test.split()[0].removeprefix("./")
        setup = way.setup.replace("{manager}", self._choose_package_manager(way, files))
        for part, text in _load_table()[self.name].get("parts", {}).items():
            setup = setup.replace(f"{{{part}}}", text)
        yield Environment(self.name, Inferred(tool, place), Inferred(setup, place), test)

    def _choose_package_manager(self, way: _Way, files: RepositoryFiles) -> str:
        """The package of the manager that wrote the lock file, in the version that package.json names for it."""
        lock = files.read(way.file)
        rows = _load_table()[self.name].get("managers", {}).get(way.file, ())
        package, version = next((row[1:] for row in rows if row[0] in lock), ("", ""))
        named = parse_json_object(files.read("package.json")).get("packageManager")
        found = re.match(r"(\w{1,20})@(\d[\w.-]{0,40})", named) if isinstance(named, str) else None
        if found and way.file.startswith(found[1]):
            version = found[2]
        return f"{package}@{version}"

    def _find_way(self, files: RepositoryFiles) -> _Way | None:
        ways = (_Way(**row) for row in _load_table()[self.name]["ways"])
        return next((way for way in ways if way.file in files.paths), None)


def find_debian_packages(program: str) -> str:
    """The packages of Debian that bring a language's own tool; "" for any other program."""
    return str(_load_table()["debian"].get(program, ""))


_FOLDER = ".regreen"
_TREE = "/work"
_LCOV_ROW = re.compile(
    r"^(?:SF:(?P<path>.{1,4096})|DA:(?P<line>\d{1,7}),(?P<hits>\d{1,18})(?:,.*)?)$", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class TableCoverage:
    """Coverage by programs of `box_programs/` that write an LCOV trace; `name` is its row in the table."""

    name: str

    @property
    def needs(self) -> str:
        """What a project or its toolchain must have to be measured, in words."""
        return str(self._row.get("needs", ""))

    @property
    def report_path(self) -> str:
        """The LCOV trace."""
        return f"{_FOLDER}/{self.name}.lcov"

    @property
    def report_command(self) -> tuple[str, ...]:
        """What writes the trace."""
        return tuple(self._row["report"])

    def make_programs(self, paths: Sequence[str]) -> Mapping[str, bytes]:
        """The programs of the row, and the list of the files that are measured."""
        folder = package_files(__package__) / "box_programs"
        programs: dict[str, str] = self._row["programs"]
        listed = "\n".join(path for path in paths if "\n" not in path)
        return {
            f"{_FOLDER}/{self.name}.paths": f"{listed}\n".encode("utf-8", "surrogateescape"),
            **{
                f"{_FOLDER}/{place}": (folder / name).read_bytes()
                for place, name in programs.items()
            },
        }

    def extend_environment(self, env: Mapping[str, str], *, traced: bool) -> dict[str, str]:
        """`env` with what starts the measurement, where the run is traced."""
        added: dict[str, str] = self._row.get("environment", {}) if traced else {}
        values = {
            name: value.replace("{}", env.get(name, ""))
            .replace("{folder}", f"{_TREE}/{_FOLDER}")
            .strip()
            for name, value in added.items()
        }
        return {**env, **values}

    def parse_report(self, data: bytes) -> dict[str, MeasuredFile] | None:
        """The lines of each file, of which the trace may have several records; None without any."""
        hits: dict[str, dict[int, int]] = {}
        lines: dict[int, int] = {}
        for row in _LCOV_ROW.finditer(data.decode("utf-8", "surrogateescape")):
            if row["path"]:
                lines = hits.setdefault(row["path"].removeprefix(f"{_TREE}/"), {})
            else:
                number = int(row["line"])
                lines[number] = lines.get(number, 0) + int(row["hits"])
        found = {
            path: MeasuredFile(
                frozenset(ran), frozenset(n for n, times in ran.items() if not times), (), ()
            )
            for path, ran in hits.items()
        }
        return found or None

    @property
    def _row(self) -> dict[str, Any]:
        row: dict[str, Any] = _load_table()["coverage"][self.name]
        return row


_SECTION = "@regreen "


@dataclass(frozen=True, slots=True)
class TableFileTests:
    """Test files run by the runners of the table; `name` is its row, `grammars` what may parse its files."""

    name: str
    grammars: tuple[str, ...]

    def list_tests(self, text: str) -> dict[str, ListedTest]:
        """The tests of a file by title; those of one title together."""
        import tree_sitter

        found: dict[str, ListedTest] = {}
        root, grammar = _parse(text, self.grammars)
        language = parser_for(grammar).language
        assert language is not None  # noqa: S101 - it was made with one
        query = tree_sitter.Query(language, self._row["cases"])
        for _, captures in tree_sitter.QueryCursor(query).matches(root):
            title = node_text(captures["title"][0])
            parts = sorted(captures["case"], key=lambda node: node.start_byte)
            case = "\n".join(map(node_text, parts))
            before = found.get(title)
            source = f"{before.source if before else ''}{case}"
            body = case.replace(title, "", 1)  # "should add" asserts nothing
            asserts = re.search(self._row["asserts"], body) is not None
            asserts = asserts or (before is not None and before.asserts)
            line = before.line if before else parts[-1].start_point[0] + 1
            found[title] = ListedTest(source, line, asserts)
        return found

    def has_tests(self, text: str) -> bool:
        """Whether something in the text looks like the call or the name of a test."""
        return re.search(self._row["calls"], text) is not None

    def run_files(
        self, command_line: str, paths: Sequence[str], read: ReadText
    ) -> tuple[str, ...] | None:
        """A shell script that marks what each file (or folder, where those are run) prints."""
        manifest = self._row["manifest"]
        runs: dict[str, list[str]] = {}
        for path in paths:
            place = posixpath.dirname(path)
            while place and read(posixpath.join(place, manifest)) is None:
                place = posixpath.dirname(place)
            document = parse_json_object(read(posixpath.join(place, manifest)) or "")
            script = str(get_table(document, "scripts").get("test"))
            run = self._make_runner_command(script) or self._make_runner_command(command_line)
            if run is None:
                return None
            inside = posixpath.relpath(path, place or ".")
            line = run.replace("{files}", shlex.quote(inside))
            folder = posixpath.dirname(inside)
            stem = posixpath.splitext(inside)[0]
            stem = folder if posixpath.basename(stem) == "main" else stem
            line = line.replace("{folder}", shlex.quote(f"./{folder}"))
            line = line.replace("{stem}", shlex.quote(posixpath.basename(stem)))
            binaries = f"PATH={_TREE}/{shlex.quote(place)}/node_modules/.bin:{_TREE}/node_modules/.bin:$PATH"
            runs.setdefault(f"cd {_TREE}/{shlex.quote(place)}; {binaries}; {line}", []).append(path)
        parts = [
            f"echo {shlex.quote(_SECTION + chr(9).join(own))}; ({line}) 2>&1 </dev/null || ended=1"
            for line, own in runs.items()
        ]
        return ("sh", "-c", "; ".join(["ended=0", *parts, "exit $ended"]))

    def read_results(
        self, output: str, titles: Mapping[str, Sequence[str]]
    ) -> tuple[dict[str, str], tuple[Failure, ...]]:
        """Titles are found at the end of what a runner calls a test, which may begin with its suites."""
        words: dict[str, str] = {}
        failures: list[Failure] = []
        for section in f"\n{output}".split(f"\n{_SECTION}")[1:]:
            head, _, text = section.partition("\n")
            outcomes = dict(self._read_outcomes(text))
            # a test with parts has no words of its own
            failed = sorted(read_failures(text), key=lambda one: not one.message)
            for path in head.split("\t"):
                known = sorted(titles.get(path, ()), key=len, reverse=True)
                for name, word in outcomes.items():
                    title = _find_title(name, known) or name
                    if words.get(f"{path}::{title}") != "failed":
                        words[f"{path}::{title}"] = word
                for failure in failed:
                    title = _find_title(failure.test, known)
                    named = f"{path}::{title}" if title else path
                    failures.append(replace(failure, test=named))
                    if title:
                        words[named] = "failed"
        return words, tuple(failures)

    def _read_outcomes(self, text: str) -> Iterator[tuple[str, str]]:
        patterns = {word: re.compile(self._row[word]) for word in ("passed", "skipped", "failed")}
        for line in text.split("\n"):
            for word, pattern in patterns.items():
                if found := pattern.match(line[:1000]):
                    yield found["name"], word

    def _make_runner_command(self, command_line: str) -> str | None:
        for runner in self._row["runners"]:
            if found := re.search(runner["match"], command_line[:2000]):
                run: str = runner["run"]
                for key, value in found.groupdict().items():
                    run = run.replace(f"{{{key}}}", value.strip())
                return run
        return None

    @property
    def _row(self) -> dict[str, Any]:
        row: dict[str, Any] = _load_table()["tests"][self.name]
        return row


def _find_title(name: str, titles: Sequence[str]) -> str:
    """The title that a runner's name for a test, or for a part of it, ends with; "" where it is none of these."""
    ends = (rf"(?:^|::|[\s›>]){re.escape(title)}(?:/.{{1,400}})?$" for title in titles)
    return next(
        (title for title, end in zip(titles, ends, strict=True) if re.search(end, name)), ""
    )


def _parse(text: str, grammars: Sequence[str]) -> tuple[Node, str]:
    """The tree by the first grammar that finds no error, else by the last."""
    data = text.encode("utf-8", "surrogateescape")
    trees = [(parser_for(x).parse(data).root_node, x) for x in grammars]
    return next((tree for tree in trees if not tree[0].has_error), trees[-1])


_PAIRS = (
    "== !=, === !==, < >=, > <=, && ||, + -, * /, += -=, ++ --, true false"  # each for the other
)
_OPPOSITES = {
    old: new for pair in _PAIRS.split(", ") for old, new in (pair.split(), reversed(pair.split()))
}
_OPERATIONS = frozenset(
    {
        "binary_expression",
        "augmented_assignment_expression",
        "compound_assignment_expr",
        "update_expression",
        "assignment_statement",
        "inc_statement",
        "dec_statement",
    }
)
_CONDITIONALS = frozenset({"if_statement", "if_expression"})
_NUMBER = re.compile(r"\d{1,9}")
_MAX_KINDS_A_LINE = 4


@dataclass(frozen=True, slots=True)
class TreeMutants:
    """Small faults found in a syntax tree, by what the grammars of most languages have in common."""

    grammars: tuple[str, ...]

    def __call__(self, text: str, lines: Sequence[int], most: int = 12) -> list[SourceEdit]:
        """Faults in the given lines, at most a few of different kinds in each; none where the text has errors."""
        root, _ = _parse(text, self.grammars)
        wanted, taken = set(lines) - _find_lines_of_inner_tests(root), Counter[int]()
        kinds: dict[tuple[int, str], SourceEdit] = {}
        data = text.encode("utf-8", "surrogateescape")
        for node in walk_nodes(root) if not root.has_error else ():
            line = node.start_point[0] + 1
            for place, new, kind in _find_faults(node) if line in wanted else ():
                if (line, kind) not in kinds and taken[line] < _MAX_KINDS_A_LINE:
                    taken[line] += 1
                    start = len(data[: place.start_byte].decode("utf-8", "surrogateescape"))
                    stop = start + len(node_text(place))
                    kinds[line, kind] = SourceEdit(start, stop, new, kind, line, 0.5)
        return [kinds[key] for key in sorted(kinds, key=lambda k: lines.index(k[0]))][:most]

    def parses(self, text: str) -> bool:
        """Whether one of the grammars finds no error in a text."""
        return not _parse(text, self.grammars)[0].has_error


def _find_lines_of_inner_tests(root: Node) -> set[int]:
    """The lines of what an attribute of Rust marks as a test, beside the code that it tests."""
    lines: set[int] = set()
    for node in walk_nodes(root):
        if node.type == "attribute_item" and re.search(r"\btest\b", node_text(node)):
            end = node.next_named_sibling or node
            lines.update(range(node.start_point[0] + 1, end.end_point[0] + 2))
    return lines


def _find_faults(node: Node) -> Iterator[tuple[Node, str, str]]:
    """What is replaced, by what, and the kind of the fault."""
    if node.type in _OPERATIONS:
        signs = (c for c in node.children if not c.is_named and node_text(c) in _OPPOSITES)
        if (sign := next(signs, None)) is not None:
            yield sign, _OPPOSITES[node_text(sign)], "operator"
    elif node.type in _CONDITIONALS and (test := node.child_by_field_name("condition")):
        inner = test.named_children[0] if test.type == "parenthesized_expression" else test
        if not inner.type.startswith("let_"):  # a pattern of Rust is no value
            yield inner, f"!({node_text(inner)})", "negation"
    elif node.type in {"true", "false"}:
        yield node, _OPPOSITES[node_text(node)], "boolean"
    elif not node.children and _NUMBER.fullmatch(node_text(node)):
        yield node, str(int(node_text(node)) + 1), "constant"
    elif node.type == "expression_statement" and node_text(node).endswith((")", ");")):
        yield node, "{}", "deletion"


@cache
def _load_table() -> dict[str, Any]:
    return tomllib.loads((package_files(__package__) / "toolchains.toml").read_text("utf-8"))
