"""How a Python project is set up and tested: what its manifests, lock files, task runners and workflows say.

The setups are shell lines. Nothing is run here, and no file of the project is imported.
"""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from configparser import ConfigParser
from configparser import Error as ConfigError
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cache
from importlib.resources import files as package_files

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from regreen.code.config_loaders import load_toml
from regreen.code.paths import is_test
from regreen.code.python_calls import is_module
from regreen.code.python_compat import UnparsableSource, parse_python_or_explain
from regreen.domain.environments import (
    Environment,
    Inferred,
    ProjectCommit,
    RepositoryFiles,
    open_files,
)
from regreen.domain.errors import AnalysisFailed
from regreen.domain.ports import Git
from regreen.languages.python.missing_modules import find_imports_of_build, find_imports_of_tests
from regreen.languages.python.test_tools import COLLECTORS
from regreen.packages.dependency import find_first_line_with, get_list, get_table
from regreen.packages.manifests_and_locks import read_declared
from regreen.packages.popular_names import is_popular
from regreen.packages.python_version import choose_python_version, convert_poetry_bounds
from regreen.packages.requirement_file import read_requirement_lines
from regreen.packages.runner_installs import read_runner_file
from regreen.packages.setup_command import (
    IMPORT_FROM_SRC,
    IN_PLACE_OR_FAILED,
    UNBUILT_MARK,
    WRITE_ONLY_WHEELS,
    WRITE_PINS,
)
from regreen.packages.setup_inputs import resolve_path_in_tree
from regreen.shell.called_scripts import expand_make_rules
from regreen.shell.parse import find_commands
from regreen.shell.tools import normalise_program, resolve_module_program, split_runner

# A Python that has just come out lacks wheels, and projects that run on it.
_MATURITY = timedelta(days=180)
_SLACK = timedelta(days=7)  # a commit may need what came out a few days after it
_MANIFESTS = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile", "tox.ini")
_PYTHON = "python"
_PYTEST_COMMAND = "python -m pytest -q"
_COLLECTED = re.compile(r"(?:.*/)?(?:test_[^/]*|[^/]*_test)\.py")
_DOCTEST = re.compile(r"(?m)^[ \t]*>>> \S")
_DEFINES_TEST = re.compile(r"(?m)^\s{0,8}def test|^class \w{1,80}\([\w., ]{0,200}TestCase\b")
# what a tox command takes from its caller, and for which environments it is: `py{36,37}: pytest [] tests`
_TOX_CONDITIONS = re.compile(
    r"\{posargs:?([^{}]{0,200})\}|\[\]|(?m:^[ \t]*[\w{},!.-]{1,100}:(?=[ \t]))"
)
_TEST_SCRIPT = re.compile(r"(?:[^ ]*/)?(?:(?:run_?)?tests?\.py(?: |$)|manage\.py test(?: |$))")
_MAX_TEST_FILES = 50
_MAX_REQUIREMENTS = 40
_NAME_IN_ADDRESS = re.compile(
    r"#(?:[^\s#]{0,200}&)?egg=([A-Za-z0-9][\w.-]{0,80}?)(?:-[\d.]{1,20})?(?=[\[&\s;]|$)"
)
_MAX_INCLUDED_FILES = 200
_MAX_NESTED_LISTS = 8
_REQUIREMENTS_FILES = tuple(
    re.compile(
        rf"(?<![\w.-])(?:[\w.-]++/)?(?=[\w.-]*{word})(?=[\w.-]*requirements)[\w.-]*\.(?:txt|in)"
        rf"|{word}s?/requirements[\w.-]*\.txt|requirements/{word}(?:s|ing)?\.(?:txt|in)"
    )
    for word in ("test", "dev")
)
_OWN_EXTRAS = re.compile(r"(?m)^[ \t]*(?:-e[ \t]*)?(?:\.|\{toxinidir\})\[([\w., -]{1,200})\]")
PIP_INSTALL = "python -m pip install -q --prefer-binary"  # building takes minutes, and compilers
_UV_INSTALL = (
    "uv pip install"  # which says what it downloads and builds: a setup that is killed was at that
)
_UV_INSTALLS = re.compile(rf"{_UV_INSTALL}(?: --exclude-newer-package [\w=-]+)*")
_LATER_INSTALLS = re.compile(rf"{_UV_INSTALLS.pattern} --exclude-newer [\d-]+")
# A commit may need what was released after it, and uv refuses some old releases (metadata or archives of before a
# standard) that have a later one.
_LATER = timedelta(days=365)
# uv's program serves older Pythons than its package says; Python 3.6 comes with a pip that does not find the package.
_GET_UV = "python -m pip install -q --ignore-requires-python uv"
_PIP_THAT_GETS_UV = "python -m pip install -q 'pip>=21,<22'"  # an older pip takes no wheel of uv
NOT_INSTALLED = (
    "not installed: "  # what a setup prints before a requirement that it goes on without
)
_WHEELS = "/tmp/wheels.txt"  # noqa: S108 - in the box
# The newest version that a box's own repository is tagged with, by `runs/test_runs.py`.
_PRETENDED_VERSION = "999.0.0"


@dataclass(frozen=True, slots=True)
class _Knowledge:
    """The table of `projects.toml`; its comments describe each field."""

    releases: Mapping[str, date]
    test_programs: Mapping[str, str]
    test_groups: re.Pattern[str]
    not_for_tests: re.Pattern[str]
    version_variables: Mapping[str, str]
    editable_from: Mapping[str, date]
    test_runner: Sequence[str]
    built_for: Mapping[str, Mapping[str, date]]
    pinning_locks: Sequence[str]
    slow_to_build: Sequence[str]


@cache
def _load_knowledge() -> _Knowledge:
    table = tomllib.loads((package_files(__package__) / "projects.toml").read_text("utf-8"))
    return _Knowledge(
        table["releases"],
        table["test_programs"],
        re.compile(table["test_groups"], re.IGNORECASE),
        re.compile("|".join(table["not_for_tests"]), re.IGNORECASE),
        table["version_variables"],
        table["editable_from"],
        table["test_runner"],
        table["built_for"],
        table["pinning_locks"],
        table["slow_to_build"],
    )


class PythonProjects:
    """Python projects: pip, uv, Poetry and PDM; tests that pytest or another program of the table runs."""

    name = _PYTHON

    @property
    def test_programs(self) -> Collection[str]:
        """The programs that run Python tests, by the word that each is called by first."""
        return _load_knowledge().test_programs

    def rate_tree(self, files: RepositoryFiles) -> int:
        """3 for a manifest and tests, 1 for a manifest or some code."""
        if any(name in files.paths for name in _MANIFESTS):
            return 3 if any(is_module(path) and is_test(path) for path in files.paths) else 1
        return int(any(map(is_module, files.paths)))

    def infer_environments(self, commit: ProjectCommit) -> Iterator[Environment]:
        """From the job of a workflow that tests, then from the manifests, the most faithful first."""
        files, command = commit.files, commit.command
        interpreter = _infer_interpreter(commit)
        version = interpreter.value if interpreter else None
        test = _infer_test_command(files)
        plain = Environment(self.name, interpreter, test=test, python=version)
        before = commit.day + _SLACK if commit.day else None
        if (from_job := self._use_workflow_job(commit, plain, before)) is not None:
            yield from_job
            # what the project's own CI runs with is surer than a manifest's word, also where the job's setup fails
            version = from_job.python
            plain = replace(plain, interpreter=from_job.interpreter, python=version)
        has_manifest = any(name in files.paths for name in _MANIFESTS)
        if has_manifest or _names_collector(command) or (test and not command):
            # without a manifest it is set up for what runs the tests
            asks = "the command" if command or test is None else test.source
            found = infer_python_setups(files, version, before, asks)
            setups = [replace(plain, setup=x) for x in found]
            yield from setups[:-1]
            yield replace(setups[-1], is_fallback=len(setups) > 1)

    def _use_workflow_job(
        self, commit: ProjectCommit, plain: Environment, before: date | None
    ) -> Environment | None:
        job = commit.find_job(
            _is_test_call, lambda python: (python != plain.python, python not in commit.versions)
        )
        if job is None:
            return None
        setup = job.setup
        if before is not None:
            day = before.isoformat()
            setup = f"export PIP_UPLOADED_PRIOR_TO={day} UV_EXCLUDE_NEWER={day}\n{setup}"
        if _names_collector(commit.command) and not _names_collector(job.test):
            setup = f"{setup}\npython -m pip install -q pytest"
        setup_from = Inferred(setup, job.source)
        test = Inferred(_reduce_to_test_call(job.test, commit.files), job.source)
        if job.version and job.version in commit.versions:
            interpreter = Inferred(job.version, job.source)
            plain = replace(plain, interpreter=interpreter, python=job.version)
        return replace(plain, setup=setup_from, test=test)


def _reduce_to_test_call(script: str, files: RepositoryFiles) -> str:
    """The test call alone of a script that wraps it or does more, where neither folder nor variables are changed."""
    commands = list(find_commands(script))
    calls = [one.arguments for one in commands if _is_test_call(one.arguments)]
    if not calls or re.search(r"(?m)(?:^|[;&(])[ \t]*(?:cd|pushd|export|\w+=)", script):
        return script
    words = _without_coverage(split_runner(calls[0])[1])
    if len(commands) == 1 and words == list(calls[0]):
        return script
    return _plain_test_call(words, files)


def _names_collector(command: str) -> bool:
    return any(name in command for name in COLLECTORS)


def _infer_interpreter(commit: ProjectCommit) -> Inferred | None:
    newest = _newest_mature_python(commit.versions, commit.day) if commit.day else None
    version = choose_python_version(commit.git, commit.rev, commit.versions, newest)
    if version is None:
        return None
    for path in (".python-version", "pyproject.toml", "setup.cfg", "setup.py"):
        text = commit.files.read(path)
        for mark in (
            f"Python :: {version}",
            "requires-python",
            "python_requires",
            "python =",
            version,
        ):
            if mark in text:
                return Inferred(version, f"{path}:{find_first_line_with(text, mark)}")
    return Inferred(version, "the commit's date")


def _newest_mature_python(pythons: Sequence[str], day: date) -> str | None:
    releases = _load_knowledge().releases
    known = sorted((one for one in pythons if one in releases), key=lambda one: releases[one])
    fitting = [one for one in known if releases[one] + _MATURITY <= day]
    return next(reversed(fitting), next(iter(known), None))


def _is_test_call(words: Sequence[str]) -> bool:
    """Whether a call runs Python tests: a program of the table, or a script that is named for it."""
    name, arguments = resolve_module_program(_without_coverage(split_runner(words)[1]))
    if name == _PYTHON:
        return _TEST_SCRIPT.match(" ".join(arguments)) is not None
    return name in _load_knowledge().test_programs


def _without_coverage(words: Sequence[str]) -> list[str]:
    """`coverage run --branch -m pytest x` as `pytest x`."""
    if list(words[:2]) == ["coverage", "run"] and "-m" in words:
        return list(words[words.index("-m") + 1 :])
    return list(words)


# -- the test command of task runners --------------------------------------------------------------------------------


def _infer_test_command(files: RepositoryFiles) -> Inferred | None:
    """The call of a task runner that tests, else pytest over what the tree has of tests."""
    for path, script in _read_test_targets(files):
        for command in find_commands(script):
            words = _without_coverage(split_runner(command.arguments)[1])
            if not words or not _is_test_call(words):
                continue
            if "{" not in (call := _plain_test_call(words, files)):
                return Inferred(call, f"{path}:{find_first_line_with(files.read(path), words[0])}")
    tests = sorted(path for path in files.paths if is_module(path) and is_test(path))
    return Inferred(_plain_test_call(["pytest"], files), tests[0]) if tests else None


def _plain_test_call(words: list[str], files: RepositoryFiles) -> str:
    """The call without options of plugins that may be missing: which files it names is what counts."""
    name, arguments = resolve_module_program(words)
    if name in COLLECTORS:
        if named := [word for word in arguments if _holds_tests(word, files)]:
            return shlex.join([*_PYTEST_COMMAND.split(), *named])
        found = _find_uncollected(files)
        texts = [files.read(path) for path in found]
        has_examples = any(map(_DOCTEST.search, texts)) and not any(
            map(_DEFINES_TEST.search, texts)
        )
        options = ["--doctest-modules"] if has_examples else []
        return shlex.join([*_PYTEST_COMMAND.split(), *options, *found])
    if normalise_program(words[0]) == _PYTHON:
        return shlex.join([_PYTHON, *words[1:]])
    return shlex.join(
        [_PYTHON, "-m", _load_knowledge().test_programs.get(words[0], words[0]), *words[1:]]
    )


def _find_uncollected(files: RepositoryFiles) -> list[str]:
    """The test files where pytest would collect none by itself, because all have other names than it looks for."""
    tests = sorted(path for path in files.paths if is_module(path) and is_test(path))
    configured = any("python_files" in files.read(path) for path in (*_MANIFESTS, "pytest.ini"))
    if configured or any(map(_COLLECTED.fullmatch, tests)):
        return []
    named = [path for path in tests if path.endswith(("test.py", "tests.py"))]
    found = named or [path for path in tests if _DEFINES_TEST.search(files.read(path))]
    return found[:_MAX_TEST_FILES]


def _holds_tests(word: str, files: RepositoryFiles) -> bool:
    """Whether a word of a command names a file or folder in which the tree has tests."""
    place = word.removeprefix("./").partition("::")[0].rstrip("/")
    inside = (path for path in files.paths if path == place or path.startswith(f"{place}/"))
    return bool(place) and any(is_module(path) and is_test(path) for path in inside)


def _read_test_targets(files: RepositoryFiles) -> Iterator[tuple[str, str]]:
    """What the test targets of tox, nox, make and just run, as shell text."""
    testenv = read_section(files.read("tox.ini"), "testenv")
    script = _TOX_CONDITIONS.sub(lambda one: one[1] or "", testenv.get("commands", ""))
    yield (
        "tox.ini",
        script.replace("{toxinidir}/", "").replace("{envpython}", _PYTHON),
    )
    calls = re.findall(r"session\.run\(([^)]{1,500})\)", files.read("noxfile.py"))
    for call in calls:
        yield "noxfile.py", shlex.join(re.findall(r"[\"']([^\"'\n]{1,200})[\"']", call))
    for path in ("Makefile", "GNUmakefile", "makefile", "justfile"):
        for target in ("test", "tests", "check"):
            if path in files.paths:
                yield path, expand_make_rules(files.read(path), [target])


# -- setups from the manifests ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _PythonProject:
    """What the manifests declare: groups of the standard tables, requirements with their places.

    `own` are those that installing the project brings along, `requirements` the others.
    """

    is_installable: bool
    place: str
    extras: tuple[str, ...]
    groups: tuple[str, ...]
    own: tuple[tuple[str, str], ...]
    requirements: tuple[tuple[str, str], ...]


def make_test_setup(git: Git, rev: str) -> str:
    """The same, in this process."""
    files = open_files(git, rev)
    project = _read_project(files)
    return "\n".join(
        _requirement_lines((*project.own, *project.requirements), _Installer(PIP_INSTALL))
    )


def is_named_in_manifests(distribution: str, files: RepositoryFiles) -> bool:
    """Whether a manifest names a distribution at all, if only for what is optional."""
    return bool(_find_naming_manifest(distribution, files))


def _find_naming_manifest(distribution: str, files: RepositoryFiles) -> str:
    loose = re.sub(r"[-_.]+", "[-_.]", canonicalize_name(distribution))
    # where a requirement stands, no word of a description or key of a dictionary: first on a line or in quotes, before its version
    name = re.compile(
        rf"(?:^|[\"'=:,])[ \t]{{0,20}}{loose}[ \t]{{0,20}}(?:$|[\r\[<>=!~;@,#]|[\"'](?![ \t]{{0,20}}:)|\([ \t]{{0,20}}[<>=!~])",
        re.IGNORECASE | re.MULTILINE,
    )
    return next((path for path in _MANIFESTS if name.search(files.read(path))), "")


def list_test_requirements(files: RepositoryFiles) -> frozenset[str]:
    """The canonical names of what the manifests declare for the project and its tests, and pytest."""
    project = _read_project(files)
    words = (
        re.split(r"[^\w.-]", word, maxsplit=1)[0]
        for word, _ in (*project.own, *project.requirements)
    )
    return frozenset({"pytest", *map(canonicalize_name, words)})


def infer_python_setups(
    files: RepositoryFiles, python: str | None, before: date | None, asks: str = "the command"
) -> Iterator[Inferred]:
    """Setups from the manifests, the most faithful first: with a lock file, the project with its extras, its requirements.

    Args:
        files: the commit's tree.
        python: the interpreter ("3.11").
        before: versions are those of this day, where the commit is old.
        asks: where it is known from what runs, which is all there is without a manifest.
    """
    project = _read_project(files)
    named = _find_named_imports(files, project)
    is_old = python in _load_knowledge().built_for
    start = ["set -e", *([_PIP_THAT_GETS_UV] if is_old else []), _GET_UV]
    start += _version_lines(files)
    if "uv.lock" in files.paths and "pyproject.toml" in files.paths:
        words = [f" --extra {word}" for word in project.extras]
        words += [f" --group {word}" for word in project.groups]
        sync = f"uv sync -q --active --frozen{''.join(words)}"
        more = [
            *_lines_that_pin_versions("uv.lock"),
            _make_install_line([word for word, _ in named], _Installer(_UV_INSTALL)),
        ]
        yield Inferred("\n".join([*start, sync, *(more if named else [])]), "uv.lock:1")
    project = replace(project, requirements=(*project.requirements, *named))
    # bytecode as pip leaves it: else a suite that makes warnings errors fails over its dependencies' sources
    if not is_old:  # which uv's way of compiling does not know
        start.append("export UV_COMPILE_BYTECODE=1")
    start += _lines_that_take_wheels()
    if before is not None:
        start.append(f"export UV_EXCLUDE_NEWER={before.isoformat()}")
    install = _make_installer(before, python)
    if project.is_installable:
        # no setuptools for Python 3.6 builds in place as uv asks
        by_pip = is_old and "setup.py" in files.paths
        imported = (one.distribution for one in find_imports_of_build(files))
        tools = [*dict.fromkeys(["setuptools", "wheel", *imported])]
        # what `setup.py` asks for before it runs, too: pip would take the newest
        needed = dict.fromkeys([*tools, *_read_setup_script(files.read("setup.py")).build])
        get_tools = _make_install_line([*needed], install)
        in_place, lines = install, []
        if len(tools) > 2 and "build-system" not in files.read("pyproject.toml"):
            # an isolated build would not find what `setup.py` imports
            lines.append(get_tools)
            in_place = _Installer(*(f"{way} --no-build-isolation" for way in install.list_ways()))
        lines += _install_project(project, install, in_place, by_pip=by_pip)
        lines += _requirement_lines(project.requirements, install)
        # what needs the project itself may have brought another version of it along; an old `setup.py` may import what
        # its requirements files bring
        # `mkdir` fails where the mark is there; the reader of setups knows it, and not every test of a shell
        again = PIP_INSTALL if by_pip else in_place.as_of_day
        build = f"{get_tools}; {PIP_INSTALL} --no-build-isolation -e ."
        lines.append(f"{again}{IN_PLACE_OR_FAILED}{{ {build}; }}")
        places = _list_source_places(project.requirements, project.place)
        for lock in filter(files.paths.__contains__, _load_knowledge().pinning_locks):
            pinned = [*start, *_lines_that_pin_versions(lock), *lines]
            yield Inferred("\n".join(pinned), f"{lock}:1, {places}")
        yield Inferred("\n".join([*start, *lines]), places)
    wanted = (*project.own, *project.requirements)
    lines = [*start, *_requirement_lines(wanted, install)]
    if any(path.startswith("src/") and path.endswith("/__init__.py") for path in files.paths):
        lines.append(f"python -c '{IMPORT_FROM_SRC}'")
    yield Inferred("\n".join(lines), _list_source_places(wanted, "") or asks)


def _lines_that_take_wheels() -> list[str]:
    """Makes pip and uv take what is slow to build as wheels alone, which both read in a file of constraints."""
    names = _load_knowledge().slow_to_build
    return [
        shlex.join([_PYTHON, "-c", WRITE_ONLY_WHEELS, _WHEELS, *names]),
        f"export UV_CONSTRAINT={_WHEELS} PIP_CONSTRAINT={_WHEELS}",
    ]


def _lines_that_pin_versions(lock: str) -> list[str]:
    """Makes the versions of a lock file count for what is installed after it, without the tool that wrote it."""
    return [
        shlex.join([_PYTHON, "-c", WRITE_PINS, lock, "/tmp/pins.txt"]),  # noqa: S108 - in the box
        "export UV_CONSTRAINT=/tmp/pins.txt PIP_CONSTRAINT=/tmp/pins.txt",
    ]


def _list_source_places(requirements: Iterable[tuple[str, str]], first: str) -> str:
    """The files that requirements come from, each with the line of the first."""
    places: dict[str, str] = {}
    for place in (first, *(place for _, place in requirements)):
        places.setdefault(place.partition(":")[0], place)
    return ", ".join(place for place in places.values() if place)


@dataclass(frozen=True, slots=True)
class _Installer:
    """What installs in the versions of the commit's day, and of a year later where that fails; "" for no such way."""

    as_of_day: str
    later: str = ""

    def list_ways(self) -> list[str]:
        """Both, without the one that is not there."""
        return [way for way in (self.as_of_day, self.later) if way]

    def install_either(self, words: str) -> str:
        """The first of both ways that succeeds with these words."""
        return " || ".join(f"{way} {words}" for way in self.list_ways())


def _make_installer(before: date | None, python: str | None) -> _Installer:
    as_of_day = _installer_command_as_of(before, python)
    if before is None:
        return _Installer(as_of_day)
    later = before + _LATER
    if released := _load_knowledge().releases.get(python or ""):
        later = max(later, released + _MATURITY)  # before it came out nothing has wheels for it
    return _Installer(
        as_of_day, f"{_installer_command_as_of(later, python)} --exclude-newer {later}"
    )


def _read_installer(setup: str) -> _Installer:
    """What a setup installs by; pip where it has no other."""
    found, later = _UV_INSTALLS.search(setup), _LATER_INSTALLS.search(setup)
    return _Installer(found[0], later[0] if later else "") if found else _Installer(PIP_INSTALL)


def _installer_command_as_of(before: date | None, python: str | None) -> str:
    """What installs in the versions of a day; with the later build tools that build packages of before PEP 517 and PEP 660.

    A pytest of before its interpreter cannot rewrite the assertions of that.
    """
    if before is None:
        return _UV_INSTALL
    known = _load_knowledge()
    days = {**known.editable_from, **known.built_for.get(python or "", {})}
    if released := known.releases.get(python or ""):
        days |= dict.fromkeys(known.test_runner, released + _MATURITY)
    newer = (f" --exclude-newer-package {name}={day}" for name, day in days.items() if day > before)
    return f"{_UV_INSTALL}{''.join(newer)}"


def _install_project(
    project: _PythonProject, install: _Installer, in_place: _Installer, *, by_pip: bool
) -> Iterator[str]:
    """The project in place; by pip where uv cannot build it, and with as many requirements of its extras as can be had.

    Before pip, which knows no day, come the requirements. Where the project cannot be built yet, that is marked.
    """
    own = [word for word, _ in project.own]
    before_pip = f"{_make_install_line(own, install).rstrip(';')}; " if own else ""
    pip = f"{PIP_INSTALL} -e . || mkdir -p {UNBUILT_MARK}"
    extras = f"[{','.join(project.extras)}]" if project.extras else ""
    place = shlex.quote(f".{extras}")
    note = f"{shlex.join(['echo', f'{NOT_INSTALLED}.{extras}'])}; " if extras else ""
    if by_pip:
        # a wheel is built as uv asks: it brings the requirements, and pip puts the tree in its place
        yield f"{in_place.install_either(place)} || {{ {note}{before_pip}:; }}"
        yield pip
    elif extras:
        singly = " ".join(_install_singly(word, install) for word in own)
        plain = f"{in_place.as_of_day} -e . || {{ {before_pip}{pip}; }}"
        yield f"{in_place.install_either(f'-e {place}')} || {{ {note}{plain}; {singly} }}"
    else:
        yield f"{in_place.install_either('-e .')} || {{ {before_pip}{pip}; }}"


def make_install_line(requirements: Sequence[str], setup: str = "") -> str:
    """The shell line that installs what can be had of the requirements after `setup`, as of the day that it says."""
    return _make_install_line(requirements, _read_installer(setup))


def _make_install_line(requirements: Sequence[str], install: _Installer) -> str:
    singly = " ".join(_install_singly(word, install) for word in requirements)
    if len(requirements) == 1:
        return singly
    return f"{install.install_either(shlex.join(requirements))} || {{ {singly} }}"


def _install_singly(requirement: str, install: _Installer) -> str:
    """One requirement, else without its bounds, else by pip (uv refuses some old wheels), else a line that says so."""
    name = re.match(r"[\w.-]*(?:\[[\w,. -]*\])?", requirement)
    bare = name[0] if name else requirement
    calls = dict.fromkeys(
        (
            (install.as_of_day, requirement),
            (install.later or install.as_of_day, requirement),
            (install.as_of_day, bare),
            (PIP_INSTALL, bare),
        )
    )
    ways = [f"{way} {shlex.quote(word)}" for way, word in calls]
    return f"{' || '.join(ways)} || {shlex.join(['echo', NOT_INSTALLED + requirement])};"


def _requirement_lines(requirements: Iterable[tuple[str, str]], install: _Installer) -> list[str]:
    words = [word for word, _ in requirements if word != "pytest"]
    return [f"{install.as_of_day} pytest", *([_make_install_line(words, install)] if words else [])]


def _version_lines(files: RepositoryFiles) -> list[str]:
    """The project's version for build tools that would ask git; an unpacked release says it itself."""
    if "PKG-INFO" in files.paths:
        return []
    text = "\n".join(map(files.read, ("pyproject.toml", "setup.py", "setup.cfg")))
    found = {
        variable for mark, variable in _load_knowledge().version_variables.items() if mark in text
    }
    return [f"export {variable}={_PRETENDED_VERSION}" for variable in sorted(found)]


# -- what the manifests say ------------------------------------------------------------------------------------------


def _read_project(files: RepositoryFiles) -> _PythonProject:
    pyproject = _load_toml(files.read("pyproject.toml"))
    extras, groups = _read_groups(files, pyproject)
    place = next(
        (name for name in ("pyproject.toml", "setup.py", "setup.cfg") if name in files.paths), ""
    )
    is_installable = "setup.py" in files.paths or bool(
        get_table(pyproject, "build-system") or get_table(pyproject, "project").get("name")
    )
    line = 1
    if extras:
        line = find_first_line_with(files.read(place), extras[0])
    known = {path.removeprefix("src/").split("/")[0].lower() for path in files.paths}
    own = _select_requirements(_requirements_of_project(files, pyproject), known)
    wanted = _select_requirements(_find_requirements(files, pyproject), known)
    return _PythonProject(
        is_installable, f"{place}:{line}" if place else "", extras, groups, own, wanted
    )


def _find_named_imports(
    files: RepositoryFiles, project: _PythonProject
) -> tuple[tuple[str, str], ...]:
    """What the tests import and a manifest names somewhere, in an extra of the product say."""
    named = (
        (one.distribution, _find_naming_manifest(one.distribution, files))
        for one in find_imports_of_tests(files)
    )
    have = (
        re.split(r"[^\w.-]", word, maxsplit=1)[0]
        for word, _ in (*project.own, *project.requirements)
    )
    known = {name.lower().replace("-", "_") for name in have}
    return _select_requirements([(name, place) for name, place in named if place], known)


def _select_requirements(
    listed: Iterable[tuple[str, str]], known: set[str]
) -> tuple[tuple[str, str], ...]:
    """Those that an index serves and a test run may need; each name is added to `known`, so that it is taken once."""
    found: list[tuple[str, str]] = []
    for written, where in listed:
        requirement = _keep_index_requirement(written)
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower().replace("-", "_")
        skipped = _load_knowledge().not_for_tests.fullmatch(name.replace("_", "-"))
        if name and not skipped and name not in known:
            known.add(name)
            found.append((requirement, where))
    return tuple(found[:_MAX_REQUIREMENTS])


def _keep_index_requirement(written: str) -> str:
    """A requirement that an index serves, as pip takes it; of one that pip cannot read, the name; "" for any other.

    What stands at an address no box may reach: the release of that name, where many projects use it, takes its place.
    """
    try:
        requirement = Requirement(written)
    except InvalidRequirement:
        if "://" in written:
            named = _NAME_IN_ADDRESS.search(written)
            return named[1] if named and is_popular("pypi", named[1]) else ""
        name = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", written)
        return name[0].rstrip("._-") if name else ""
    if requirement.url is None:
        return written.strip()
    return requirement.name if is_popular("pypi", requirement.name) else ""


def _read_groups(
    files: RepositoryFiles, pyproject: dict[str, object]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the extras and of the dependency groups that are for tests."""
    poetry = get_table(get_table(pyproject, "tool"), "poetry")
    extras = [*get_table(get_table(pyproject, "project"), "optional-dependencies")]
    extras += get_table(poetry, "extras")
    extras += read_section(files.read("setup.cfg"), "options.extras_require")
    extras += _read_setup_script(files.read("setup.py")).extras
    groups = [*get_table(pyproject, "dependency-groups"), *get_table(poetry, "group")]
    groups += get_table(get_table(get_table(pyproject, "tool"), "pdm"), "dev-dependencies")
    testenv = read_section(files.read("tox.ini"), "testenv")
    keys = ("extras", "dependency_groups")
    texts = [testenv.get("deps", ""), *map(files.read, _find_requirements_files(files))]
    listed = [testenv.get(key, "") for key in keys]
    listed += [found for text in texts for found in _OWN_EXTRAS.findall(text)]
    named = {word for text in listed for word in re.findall(r"[\w.-]+", text)}
    return _select_groups(extras, named), _select_groups(groups, named)


def _select_groups(names: Iterable[object], named: Iterable[str] = ()) -> tuple[str, ...]:
    """Those that are for tests by their names, or because a task runner names them; none that reads as an option."""
    pattern = _load_knowledge().test_groups
    plain = dict.fromkeys(name for name in names if isinstance(name, str) and name[:1] != "-")
    return tuple(name for name in plain if name in named or pattern.fullmatch(name))


def _find_requirements(
    files: RepositoryFiles, pyproject: dict[str, object]
) -> Iterator[tuple[str, str]]:
    """Requirements as they are written, with the place of each."""
    seen: set[str] = set()
    for path in _find_requirements_files(files):
        yield from _list_requirements_with_includes(files, path, seen)
    text = files.read("pyproject.toml")
    for written in _pyproject_groups(pyproject):
        yield written, f"pyproject.toml:{find_first_line_with(text, written[:40])}"
    yield from _tox_requirements(files, seen)
    text = files.read("noxfile.py")
    sessions = _find_test_sessions(text)
    for package in read_runner_file("noxfile.py", text).dependencies:
        tests = not sessions or any(package.line in lines for lines in sessions)
        if package.source == "index" and tests:
            yield f"{package.name}{package.spec}", f"noxfile.py:{package.line}"
    text = files.read("setup.py")
    for written in _read_setup_script(text).tests:
        yield written, f"setup.py:{find_first_line_with(text, written)}"
    yield from _requirements_declared_in(files, "Pipfile")


def _find_test_sessions(noxfile: str) -> list[range]:
    """The lines of each session of nox that runs tests."""
    try:
        nodes = list(ast.walk(parse_python_or_explain(noxfile)))
    except (UnparsableSource, RecursionError, ValueError):
        return []
    sessions = (node for node in nodes if isinstance(node, ast.FunctionDef))
    return [
        range(session.lineno, (session.end_lineno or 0) + 1)
        for session in sessions
        if any(
            _is_test_call(_literal_strings(call.args))
            for call in ast.walk(session)
            if isinstance(call, ast.Call)
        )
    ]


def _find_requirements_files(files: RepositoryFiles) -> list[str]:
    """The requirements files for tests, else for development, and the one at the root."""
    paths = sorted(path for path in files.paths if not _is_compiled(path, files.paths))
    found = ([path for path in paths if kind.fullmatch(path)] for kind in _REQUIREMENTS_FILES)
    return [*next((listed for listed in found if listed), []), "requirements.txt"]


def _requirements_of_project(
    files: RepositoryFiles, pyproject: dict[str, object]
) -> Iterator[tuple[str, str]]:
    """What installing the project brings along."""
    project = get_table(pyproject, "project")
    poetry = get_table(get_table(pyproject, "tool"), "poetry")
    written = [*get_list(project, "dependencies")]
    for name in _select_groups(get_table(project, "optional-dependencies")):
        written += get_list(get_table(project, "optional-dependencies"), name)
    written += _poetry_names_and_bounds(get_table(poetry, "dependencies"))
    text = files.read("pyproject.toml")
    for item in written:
        if isinstance(item, str):
            yield item, f"pyproject.toml:{find_first_line_with(text, item[:40])}"
    yield from _requirements_declared_in(files, "setup.cfg")
    text = files.read("setup.py")
    for item in _read_setup_script(text).own:
        yield item, f"setup.py:{find_first_line_with(text, item)}"


def _requirements_declared_in(files: RepositoryFiles, path: str) -> Iterator[tuple[str, str]]:
    for package in read_declared(path, files.read(path)).dependencies:
        if package.source == "index":
            spec = package.spec if package.spec[:1] in set("<>=!~") else ""
            yield f"{package.name}{spec}", f"{path}:{package.line}"


def _tox_requirements(files: RepositoryFiles, seen: set[str]) -> Iterator[tuple[str, str]]:
    """What tox's default environment installs, without the lines of single environments ("py27: mock")."""
    text = files.read("tox.ini")
    for line in read_section(text, "testenv").get("deps", "").splitlines():
        word = line.strip()
        if word.startswith("-r"):
            listed = resolve_path_in_tree("", word[2:].strip().removeprefix("{toxinidir}/"))
            yield from _list_requirements_with_includes(files, listed or "", seen)
        elif word and not re.match(r"[-{#.]|[\w{},!.-]+:\s", word):
            yield word, f"tox.ini:{find_first_line_with(text, word)}"


def _list_requirements_with_includes(
    files: RepositoryFiles, path: str, seen: set[str]
) -> Iterator[tuple[str, str]]:
    """The lines of a requirements file, and of those that it includes; each file is read once and added to `seen`.

    Raises:
        AnalysisFailed: there are too many of them.
    """
    reading = [_read_requirements_file(files, path, seen)]
    while reading:
        written, place = next(reading[-1], ("", ""))
        if place:
            yield written, place
        elif written:
            reading.append(_read_requirements_file(files, written, seen))
        else:
            reading.pop()


def _read_requirements_file(
    files: RepositoryFiles, path: str, seen: set[str]
) -> Iterator[tuple[str, str]]:
    """The lines of one requirements file with their places; an included file has none."""
    if path in seen or path not in files.paths:
        return
    seen.add(path)
    if len(seen) > _MAX_INCLUDED_FILES:
        message = f"more than {_MAX_INCLUDED_FILES} requirements files include each other ({path})"
        raise AnalysisFailed(message)
    folder = path.rpartition("/")[0]
    for line in read_requirement_lines(files.read(path)):
        if line.requirement:
            yield line.requirement, f"{path}:{line.number}"
        for name, value in line.options:
            if name == "-r" and (included := resolve_path_in_tree(folder, value)):
                yield included, ""


def _is_compiled(path: str, every: Collection[str]) -> bool:
    """Whether pip-compile made the file out of one beside it: its pins are of a day, the other says what is wanted."""
    return path.endswith(".txt") and f"{path.removesuffix('.txt')}.in" in every


def _pyproject_groups(pyproject: dict[str, object]) -> Iterator[str]:
    """The requirements of the groups that are for tests, in the standard table and in those of the project tools."""
    tool = get_table(pyproject, "tool")
    poetry = get_table(tool, "poetry")
    written: list[object] = []
    for table in (
        get_table(pyproject, "dependency-groups"),
        get_table(get_table(tool, "pdm"), "dev-dependencies"),
    ):
        for name in _select_groups(table):
            written += get_list(table, name)
    written += get_list(get_table(tool, "uv"), "dev-dependencies")
    for env in get_table(get_table(tool, "hatch"), "envs").values():
        for key in ("dependencies", "extra-dependencies"):
            written += get_list(env, key) if isinstance(env, dict) else []
    written += _poetry_names_and_bounds(get_table(poetry, "dev-dependencies"))
    for name in _select_groups(get_table(poetry, "group")):
        group = get_table(get_table(poetry, "group"), name)
        written += _poetry_names_and_bounds(get_table(group, "dependencies"))
    yield from (item for item in written if isinstance(item, str))


def _poetry_names_and_bounds(table: Mapping[str, object]) -> Iterator[str]:
    """The rows of a table of Poetry's as requirements; what is not had from an index has no bound."""
    for name, row in table.items():
        version = row.get("version") if isinstance(row, dict) else row
        extras = ",".join(map(str, get_list(row, "extras"))) if isinstance(row, dict) else ""
        if name != _PYTHON:
            bounds = convert_poetry_bounds(version) if isinstance(version, str) else ""
            yield f"{name}{f'[{extras}]' if extras else ''}{bounds}"


@dataclass(frozen=True, slots=True)
class _SetupScript:
    """What `setup.py` says in literals; the file is never run. `build` is what it needs in order to be run."""

    extras: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    build: tuple[str, ...] = ()


def _read_setup_script(text: str) -> _SetupScript:
    try:
        nodes = list(ast.walk(parse_python_or_explain(text)))
    except (UnparsableSource, RecursionError, ValueError):
        return _SetupScript()
    assigned = {
        target.id: node.value
        for node in nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    extras: list[str] = []
    found: dict[str, list[str]] = {"tests": [], "own": [], "build": []}
    for node in nodes:
        if isinstance(node, ast.keyword):
            name, keys = node.arg or "", None
        elif isinstance(node, ast.Assign):
            target = node.targets[0]
            keys = target.slice if isinstance(target, ast.Subscript) else None
            target = target.value if isinstance(target, ast.Subscript) else target
            name = target.id if isinstance(target, ast.Name) else ""
        else:
            continue
        if "extras" in name.lower():
            extras += _literal_strings([keys] if keys else getattr(node.value, "keys", []))
        elif name == "setup_requires":
            found["build"] += _literal_items(node.value, assigned)
        elif "test" in name.lower() and name != "test_suite":
            found["tests"] += _literal_items(node.value, assigned)
        elif name == "install_requires":
            found["own"] += _literal_items(node.value, assigned)
    return _SetupScript(tuple(extras), *map(tuple, found.values()))


def _literal_items(node: ast.expr, assigned: Mapping[str, ast.expr], depth: int = 0) -> list[str]:
    """The literal strings of a list, also where it is put together from lists and from names of lists."""
    if depth > _MAX_NESTED_LISTS:
        return []
    if isinstance(node, ast.Name) and node.id in assigned:
        return _literal_items(assigned[node.id], assigned, depth + 1)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = (node.left, node.right)
        return [item for part in parts for item in _literal_items(part, assigned, depth + 1)]
    return _literal_strings(getattr(node, "elts", []))


def _literal_strings(nodes: Iterable[ast.expr | None]) -> list[str]:
    values = (node.value for node in nodes if isinstance(node, ast.Constant))
    return [value for value in values if isinstance(value, str)]


def read_section(text: str, section: str) -> dict[str, str]:
    """A section of an ini file; empty where it has none, or cannot be read."""
    parser = ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
        return dict(parser.items(section)) if parser.has_section(section) else {}
    except (ConfigError, ValueError):
        return {}


def _load_toml(text: str) -> dict[str, object]:
    try:
        return load_toml(text)
    except tomllib.TOMLDecodeError:
        return {}
