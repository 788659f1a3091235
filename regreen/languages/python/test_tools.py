"""Python's tests: pytest and unittest, how they are listened to, selected, named and measured."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any

from regreen.code.python_calls import is_module
from regreen.domain.languages import MeasuredFile
from regreen.domain.ports import BOX_HOME

COLLECTORS = frozenset({"pytest", "py.test"})
# Not in the tree: plugins that check files would check these.
_FOLDER = f"{BOX_HOME}/.regreen-listen"
_PYTEST_OUTPUT = re.compile(
    r"={3} (?:test session starts|short test summary info|.{0,200}(?:passed|failed|error)s?\b.{0,100}) ?={3,}"
)
_UNITTEST_OUTPUT = re.compile(r"(?m)^Ran \d+ tests? in ")
_PYTEST_WORD = re.compile(r"(?:^|[\s/])(?:pytest|py\.test)(?:\s|$)")
_NODE_ID = re.compile(r"^(?P<path>[^:\n]+?\.py)::(?P<names>[^\[\n]+)")
_TEST_MODULE = re.compile(r"(?:.*/)?(?:tests?\w*|\w+_tests?)\.py")
_NAMED_TESTS = re.compile(
    r"::|\s-k[\s=]|\s--(?:deselect|lf|last-failed|sw)\b|tests?[\w-]{0,200}\.py\b"
)
_PAST_ERRORS = "--continue-on-collection-errors"
_INTERRUPTED = re.compile(r"Interrupted: \d+ errors? during collection")
SETUP_CFG = "setup.cfg"
# pytest 4.0 and later end with this where the file has no [tool:pytest] (`_pytest/config/findpaths.py`).
REFUSED_SECTION = "[pytest] section in setup.cfg files is no longer supported"
# The project's own environment where uv or venv made one, else the box's.
_OWN_PYTHON = 'if [ -x .venv/bin/python ]; then exec .venv/bin/python "$@"; fi; exec python "$@"'
_OWN_SEARCH_PATH = re.compile(r"""(?<![\w$-])PYTHONPATH=["']?(?=[^\s"';&|])""")
_PLUGIN_NOT_FOUND = re.compile(
    r"""(?:Error importing plugin|No module named) ["']?regreen_listen"""
)
_LOADING_OPTIONS = frozenset({"-o", "-c", "-p", "--rootdir", "--confcutdir", "--import-mode"})
_CALLS_PROGRAM = ".regreen-calls.py"
_MAX_CALLS_CHARACTERS = 60_000
_CALLS_OUTPUT = re.compile(
    rf"(?m)^regreen-calls (cut|all) (\{{[^\n]{{0,{_MAX_CALLS_CHARACTERS}}}\}})$"
)
_PROGRAMS = files("regreen.languages.python").joinpath("box_programs")


class PythonTestListener:
    """Listens to pytest as a plugin, and to unittest from `sitecustomize`."""

    output = f"{_FOLDER}/heard.txt"

    def read_programs(self) -> Mapping[str, bytes]:
        """The files to write into the box, by path."""
        names = ("regreen_listen.py", "sitecustomize.py")
        return {f"{_FOLDER}/{name}": _PROGRAMS.joinpath(name).read_bytes() for name in names}

    def extend_environment(self, env: Mapping[str, str], seconds: float | None) -> dict[str, str]:
        """`env` with what starts the programs."""
        path = ":".join(part for part in (env.get("PYTHONPATH", ""), _FOLDER) if part)
        limit = {} if seconds is None else {"REGREEN_LISTEN_SECONDS": f"{seconds:.1f}"}
        options = f"{env.get('PYTEST_ADDOPTS', '')} -p regreen_listen".strip()
        # pytest before 2.8 reads no PYTEST_ADDOPTS; a plugin that is named twice is loaded once
        plugins = ",".join(filter(None, (env.get("PYTEST_PLUGINS"), "regreen_listen")))
        return {
            **env,
            "PYTHONPATH": path,
            **limit,
            "PYTEST_ADDOPTS": options,
            "PYTEST_PLUGINS": plugins,
        }

    def extend_command(self, command: Sequence[str]) -> tuple[str, ...]:
        """A `PYTHONPATH=src pytest` would hide the plugin that the environment names."""
        return tuple(_OWN_SEARCH_PATH.sub(rf"\g<0>{_FOLDER}:", word) for word in command)

    def kept_tests_from_starting(self, output: str) -> bool:
        """Whether pytest looked for the plugin and did not find it, as where a script sets its search path."""
        return _PLUGIN_NOT_FOUND.search(output) is not None


class PythonTestTools:
    """pytest, and unittest where it can be heard."""

    listener = PythonTestListener()

    def names_each_test(self, command_line: str, output: str = "") -> bool:
        """Whether pytest runs behind the command, by its words or by its output."""
        return bool(_PYTEST_WORD.search(command_line) or _PYTEST_OUTPUT.search(output))

    def can_listen(self, command_line: str, output: str) -> bool:
        """Whether tests run behind the command that tell how each of them ends."""
        return self.names_each_test(command_line, output) or bool(_UNITTEST_OUTPUT.search(output))

    def find_plain_call(self, command: Sequence[str]) -> tuple[str, ...] | None:
        """The words of a command that is one plain call of pytest; None for anything more."""
        argv = tuple(command)
        if len(argv) == 3 and argv[0] in {"bash", "sh"} and argv[1] in {"-c", "-ec", "-lc"}:
            if re.search(r"[|&;<>`$(){}\n*?~]", argv[2].strip()):
                return None
            try:
                argv = tuple(shlex.split(argv[2]))
            except ValueError:
                return None
        words = [word for word in argv[:4] if not word.startswith("-")]
        return argv if any(map(_is_pytest, words)) else None

    def widen(self, command: Sequence[str], *, past_errors: bool = False) -> tuple[str, ...] | None:
        """The same pytest over everything it collects by default; None where the command is no narrow pytest call."""
        argv = self.find_plain_call(command)
        if argv is None:
            return None
        at = next(i for i, word in enumerate(argv) if _is_pytest(word))
        kept: list[str] = []
        narrow = False
        words = iter(argv[at + 1 :])
        for word in words:
            if word in {"-k", "-m", "--deselect", "--maxfail"}:
                next(words, None)
                narrow = True
            elif word in {"-x", "--exitfirst", "--lf", "--ff", "--sw"} or word.startswith(
                ("-k", "--maxfail")
            ):
                narrow = True
            elif word in {"-p", "-c", "-o", "-n", "-W", "--rootdir", "--confcutdir"}:
                kept += [word, *(value for value in (next(words, None),) if value is not None)]
            elif word.startswith("-"):
                kept.append(word)
            else:
                narrow = True
        kept += [_PAST_ERRORS] if past_errors else []
        return (*argv[: at + 1], *kept) if narrow else None

    def find_collection(self, command: Sequence[str]) -> tuple[str, ...] | None:
        """The same plain call of pytest, without running what it collects."""
        argv = self.find_plain_call(command)
        return (*argv, "--collect-only") if argv and not COLLECTORS.isdisjoint(argv) else None

    def go_past_errors(self, command: Sequence[str], output: str) -> tuple[str, ...] | None:
        """The same plain call of pytest, which also runs the rest where files cannot be collected; None for no such way.

        It passes where the call passes. A pytest of before 3.0 does so by itself and knows no such option.
        """
        argv = self.find_plain_call(command)
        stops = argv is not None and _INTERRUPTED.search(output) is not None
        return (*argv, _PAST_ERRORS) if argv is not None and stops else None

    def names_some(self, command_line: str) -> bool:
        """Whether the command line names some of the tests only."""
        return _NAMED_TESTS.search(command_line) is not None

    def run_file(self, path: str, *, once: bool = False, plain: bool = False) -> tuple[str, ...]:
        """The command that runs one test file.

        `once`: up to the first failure, leaving nothing behind; `plain`: without the options that the project has set.
        """
        options = ("-x", "-p", "no:cacheprovider") if once else ()
        own = ("-o", "addopts=") if plain else ()
        return ("python", "-m", "pytest", "-q", *options, *own, path)

    def is_collected(self, path: str) -> bool:
        """Whether pytest may collect tests from a file."""
        return _TEST_MODULE.fullmatch(path) is not None

    def run_suite(self, *, plain: bool = False) -> tuple[str, ...]:
        """The command that runs all tests; `plain` without the options that the project has set."""
        options = ("-p", "no:cacheprovider", _PAST_ERRORS)
        own = ("-o", "addopts=", "-o", "python_files=test*.py *_test.py tests.py") if plain else ()
        return ("python", "-m", "pytest", "-q", *options, *own)

    def run_tests(self, tests: Sequence[str], like: Sequence[str] = ()) -> tuple[str, ...]:
        """Pytest runs what has a node id, unittest what has a dotted name.

        A plain call of pytest, `like`, gives its options that say how tests are loaded: without them they may not start.
        """
        by_node = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly")
        if not any("::" in test for test in tests):
            return ("sh", "-c", _OWN_PYTHON, "sh", "-m", "unittest", *tests)
        loads: list[str] = []
        words = iter(self.find_plain_call(like) or ())
        for word in words:
            if word in _LOADING_OPTIONS:
                loads += [word, *(value for value in (next(words, None),) if value is not None)]
            elif word.startswith(tuple(f"{option}=" for option in _LOADING_OPTIONS)):
                loads.append(word)
        return ("sh", "-c", _OWN_PYTHON, "sh", *by_node, *loads, *tests)

    def run_functions(
        self, python: Sequence[str], functions: Sequence[str], paths: Sequence[str]
    ) -> tuple[str, ...]:
        """Pytest on some files, cut down to functions named like these; all where none is named.

        Not by node id: one that does not exist ends the run, and a file that cannot be read must not.
        """
        named = ("-k", " or ".join(functions)) if functions else ()
        options = ("--tb=short", "--maxfail=0", _PAST_ERRORS)
        plain = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
        return (*(python or ("python",)), *plain, *options, *named, *paths)

    def call_functions(
        self, python: Sequence[str], rows: Sequence[Mapping[str, Any]], seconds: float
    ) -> tuple[tuple[str, ...], Mapping[str, bytes]]:
        """The command that calls functions with made-up arguments, and the files that it needs in the tree."""
        limits = {"seconds": seconds, "characters": _MAX_CALLS_CHARACTERS}
        spec = json.dumps({"functions": rows, **limits})
        program = _PROGRAMS.joinpath("generated_calls.py").read_bytes()
        files = {_CALLS_PROGRAM: program, f"{_CALLS_PROGRAM}.json": spec.encode()}
        called = (*(python or ("python",)), _CALLS_PROGRAM, f"{_CALLS_PROGRAM}.json")
        return ("env", "PYTHONHASHSEED=0", *called), files

    def read_calls(self, output: str) -> tuple[dict[str, str], bool]:
        """What each call of `call_functions` gave, and whether some are left out; the text is foreign, its last line counts."""
        found = _CALLS_OUTPUT.findall(output)
        word, text = found[-1] if found else ("all", "{}")
        try:
            calls = json.loads(text)
        except (ValueError, RecursionError):
            return {}, False
        return {str(call)[:200]: str(result)[:400] for call, result in calls.items()}, word == "cut"

    def name_test(self, path: str, name: str) -> str:
        """The node id of a test."""
        return "::".join((path, *name.split(".")))

    def split_name(self, test: str) -> tuple[str, str]:
        """The file and the function of a node id; both "" for other names."""
        node = _NODE_ID.match(test)
        return (node["path"], node["names"].split("::")[-1].strip()) if node else ("", "")

    def is_test_name(self, test: str, path: str) -> bool:
        """Whether this is a node id, or the dotted name of a test that failed in a module."""
        if "::" in test:
            return is_module(test.partition("::")[0])
        return is_module(path) and test.count(".") >= 2 and not re.search(r"[\s:]", test)

    def find_test_files(self, word: str) -> list[str]:
        """The files that a dotted name may mean: the module itself, or the module that holds a class or a test."""
        if "::" in word:
            return [word.partition("::")[0]]
        if "/" in word:
            return []
        parts = PurePosixPath(word.replace(".", "/")).parts
        return ["/".join(parts[:size]) + ".py" for size in range(len(parts), 0, -1)]


class PythonWarmDriver:
    """Collects once with pytest, and forks for each candidate."""

    def read_program(self) -> bytes:
        """The program for the box."""
        return _PROGRAMS.joinpath("engine_driver.py").read_bytes()

    def find_interpreter(self, command: Sequence[str]) -> tuple[str, ...] | None:
        """The Python behind a plain pytest command; None where the command is more than that."""
        argv = PYTHON_TESTS.find_plain_call(command)
        if argv is None:
            return None
        at = next(i for i, word in enumerate(argv) if _is_pytest(word))
        before = argv[:at]
        if before[-1:] == ("-m",):
            return before[:-1]
        folder = argv[at].rpartition("/")[0]
        return (*before, f"{folder}/python" if folder else "python")


PYTHON_TESTS = PythonTestTools()


def rename_pytest_section(setup_cfg: bytes) -> bytes:
    """setup.cfg with the name that pytest asks for in `REFUSED_SECTION`: the same settings."""
    return re.sub(rb"(?m)^\[pytest\]", b"[tool:pytest]", setup_cfg)


def _is_pytest(word: str) -> bool:
    return word.rsplit("/", 1)[-1] in COLLECTORS


_COVERAGE_FOLDER = ".regreen"


class PythonCoverage:
    """Makes every Python in the box trace the given files."""

    needs = ""
    report_path = f"{_COVERAGE_FOLDER}/report.json"
    report_command = (
        "sh",
        "-c",
        "exec $(command -v python || command -v python3) .regreen/report.py",
    )

    def make_programs(self, paths: Sequence[str]) -> Mapping[str, bytes]:
        """coverage.py itself, what starts it, and what writes the report."""
        include = "".join(f"\n    /work/{path}" for path in paths)
        config = (
            "[run]\nbranch = True\nparallel = True\ndynamic_context = test_function\n"
            f"disable_warnings = no-data-collected\ninclude ={include}\n"
        )
        full_paths = json.dumps([f"/work/{path}" for path in paths])
        own = {
            f"{_COVERAGE_FOLDER}/coveragerc": config.encode("utf-8", "surrogateescape"),
            f"{_COVERAGE_FOLDER}/data/.keep": b"",
            f"{_COVERAGE_FOLDER}/site/sitecustomize.py": _START_CODE.encode(),
            f"{_COVERAGE_FOLDER}/report.py": _REPORT_CODE.replace("PATHS", full_paths).encode(
                "utf-8", "replace"
            ),
        }
        return {**own, **_coverage_package()}

    def extend_environment(self, env: Mapping[str, str], *, traced: bool) -> dict[str, str]:
        """`env` with what the report needs and, where the run is traced, with what starts the tracer."""
        start = {"COVERAGE_PROCESS_START": f"/work/{_COVERAGE_FOLDER}/coveragerc"} if traced else {}
        rest = f":{env['PYTHONPATH']}" if env.get("PYTHONPATH") else ""
        return {
            **env,
            "PYTHONPATH": f"/work/{_COVERAGE_FOLDER}/site{rest}",
            "COVERAGE_FILE": f"/work/{_COVERAGE_FOLDER}/data/coverage",
            **start,
        }

    def parse_report(self, data: bytes) -> dict[str, MeasuredFile] | None:
        """Read what the box wrote; None for anything else, since the tests could write there too."""
        try:
            rows = json.loads(data)
            return {str(p).removeprefix("/work/"): _parse_file(row) for p, row in rows.items()}
        except (ValueError, TypeError, LookupError, OverflowError, AttributeError, RecursionError):
            return None


_START_CODE = """\
try:
    import coverage
    coverage.process_startup()
except Exception:  # an older Python than coverage.py knows: the tests still run
    pass
"""
_REPORT_CODE = """\
import json, os, coverage
os.chdir("/work")
cov = coverage.Coverage(config_file="/work/.regreen/coveragerc")
cov.combine(["/work/.regreen/data"], strict=True)
data = cov.get_data()
out = {}
for path in PATHS:
    try:
        _, statements, excluded, missing, _ = cov.analysis2(path)
    except Exception as error:
        continue
    arcs = {}
    try:
        arcs = cov._analyze(path).missing_branch_arcs()
    except Exception:
        pass
    contexts = sorted({c for cs in data.contexts_by_lineno(path).values() for c in cs if c})
    out[path] = {
        "statements": statements, "missing": missing, "tests": contexts[:50],
        "branches": [[a, b] for a, bs in arcs.items() for b in bs],
    }
with open("/work/.regreen/report.json", "w") as file:
    json.dump(out, file)
"""


@cache
def _coverage_package() -> Mapping[str, bytes]:
    """Our own coverage.py as files: nothing has to be installed in the box."""
    import coverage

    root = Path(coverage.__file__).parent
    wanted = [
        p for p in root.rglob("*") if p.suffix in {".py", ".so"} and "htmlfiles" not in p.parts
    ]
    return {
        f"{_COVERAGE_FOLDER}/site/coverage/{p.relative_to(root).as_posix()}": p.read_bytes()
        for p in wanted
    }


def _parse_file(row: dict[str, Any]) -> MeasuredFile:
    return MeasuredFile(
        statements=frozenset(int(n) for n in row["statements"]),
        missing=frozenset(int(n) for n in row["missing"]),
        branches=tuple((int(a), int(b)) for a, b in row["branches"]),
        tests=tuple(str(t)[:200] for t in row["tests"][:50]),
    )
