"""Projects that are set up, tested and measured by their language's own tools, as rows of `toolchains.toml` say."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files as package_files
from typing import Any

from regreen.domain.environments import (
    Environment,
    Inferred,
    ProjectCommit,
    RepositoryFiles,
)
from regreen.domain.languages import MeasuredFile
from regreen.packages.dependency import find_line, get_table, parse_json_object


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
            line = find_line(text, '"test"')
            test = Inferred(way.test, f"{way.script}:{line}") if has_tests else None
        tool = way.test.split()[0].removeprefix("./")
        setup = way.setup.replace("{manager}", self._name_manager(way, files))
        yield Environment(self.name, Inferred(tool, place), Inferred(setup, place), test)

    def _name_manager(self, way: _Way, files: RepositoryFiles) -> str:
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


@cache
def _load_table() -> dict[str, Any]:
    return tomllib.loads((package_files(__package__) / "toolchains.toml").read_text("utf-8"))
