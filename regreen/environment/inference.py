"""Infers how a repository is set up and tested: from its workflow, manifests, task runners, devcontainer or Dockerfile.

Pure functions over a read-only view of a commit's tree. The files are untrusted, so `infer_environments` reads them in
a child with limits. Nothing is run here: `environment.preparation` tries what was inferred, in order.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from regreen import isolation
from regreen.actions.called_scripts import expand_rules
from regreen.actions.job_plan import JobPlan
from regreen.actions.phases import runs_tests
from regreen.actions.step_trial import make_plain_step
from regreen.actions.workflow import plan_workflow
from regreen.code.paths import is_test
from regreen.code.python_calls import is_module
from regreen.code.workflow_document import WorkflowError
from regreen.domain.errors import UserError
from regreen.domain.ports import Git
from regreen.environment.knowledge import Inferred, RepositoryFiles, load_knowledge, open_files
from regreen.environment.python_setup import infer_python_setups, read_section
from regreen.packages.dependency import find_line, get_table
from regreen.packages.python_version import choose_python_version
from regreen.shell.parse import find_commands
from regreen.shell.tools import identify_tool, load_tools, split_runner

# From this age on, requirements without a bound mean the versions of the commit's day, give or take a week.
_OLD = timedelta(days=120)
_SLACK = timedelta(days=7)
# A Python that has just come out lacks wheels, and projects that run on it.
_PYTHON_MATURITY = timedelta(days=180)
_WORKFLOW = re.compile(r"\.github/workflows/[^/]+\.ya?ml")
_MAX_WORKFLOWS = 20
_PYTHON_MANIFESTS = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile", "tox.ini")  # fmt: skip
_INDENT = "\n" + " " * 13
_PYTEST_COMMAND = "python -m pytest -q"


@dataclass(frozen=True, slots=True)
class Environment:
    """How a repository is set up and tested at one commit: each value with the file and line that it comes from.

    `interpreter` is a version of Python, or the language's own tool where it is not Python; `image` a container image.
    `is_fallback`: a part of the environment before it, worth a try only where that cannot be set up.
    """

    language: str
    interpreter: Inferred | None = None
    setup: Inferred | None = None
    test: Inferred | None = None
    image: Inferred | None = None
    is_fallback: bool = False

    @property
    def python(self) -> str | None:
        """The version of Python to run with, where one was inferred."""
        is_python = self.language == load_knowledge().python
        return self.interpreter.value if is_python and self.interpreter else None

    def make_document(self) -> dict[str, object]:
        """The environment as the JSON documents show it."""
        parts = {
            "interpreter": self.interpreter,
            "setup": self.setup,
            "test": self.test,
            "image": self.image,
        }
        first = self.setup or self.test or self.interpreter or self.image
        return {
            "source": first.source if first else "nothing",
            "language": self.language,
            **{name: part.value if part else None for name, part in parts.items()},
            "sources": {name: part.source for name, part in parts.items() if part},
        }

    def describe(self) -> Iterator[str]:
        """The environment in lines for people."""
        for name in ("interpreter", "image", "setup", "test"):
            part: Inferred | None = getattr(self, name)
            if part is not None:
                # what is tried where the first way fails is for the shell
                lines = [line.partition(" || ")[0] for line in part.value.splitlines()]
                yield f"{name:<12} {_INDENT.join(lines)}  (from {part.source})"


def infer_environments(
    git: Git, rev: str, *, pythons: Sequence[str], today: date, command: str = ""
) -> tuple[Environment, ...]:
    """The environments to try at `rev`, the likeliest first; none where nothing says how anything is set up.

    Args:
        git: the repository.
        rev: the commit.
        pythons: the interpreters that boxes have ("3.11").
        today: decides whether the commit is old.
        command: the command to be run, where it is known; "" where it is to be inferred, too.

    Raises:
        AnalysisFailed: the files could not be read within the limits.
    """
    with isolation.name_failed_input("the repository's manifests"):
        return isolation.run_in_child(_infer, git, rev, tuple(pythons), today, command)


def _infer(
    git: Git, rev: str, pythons: tuple[str, ...], today: date, command: str
) -> tuple[Environment, ...]:
    if _needs_nothing(command):
        return ()
    files = open_files(git, rev)
    language = _language_of_command(command) or _language_of_tree(files)
    committed = git.commit(rev).date.date()
    before = committed + _SLACK if today - committed > _OLD else None
    found: list[Environment] = []
    if language == load_knowledge().python:
        python = _infer_python(git, rev, files, pythons, committed if before else None)
        test = _infer_python_test(files)
        plain = Environment(language, python, None, test)
        found += _from_workflows(files, plain, pythons, before, command)
        has_manifest = any(name in files.paths for name in _PYTHON_MANIFESTS)
        if has_manifest or _names_collector(command) or (test and not command):
            setups = [*infer_python_setups(files, python.value if python else None, before)]
            found += [replace(plain, setup=setup) for setup in setups]
            found[-1] = replace(found[-1], is_fallback=len(setups) > 1)
    elif language:
        found += _from_toolchain(files, language)
    if not found:
        found += [*_from_devcontainer(files), *_from_dockerfile(files)]
    return tuple(dict.fromkeys(found))


def _needs_nothing(command: str) -> bool:
    """Whether a command only looks at files, as `grep` and `test` do."""
    names = [identify_tool(split_runner(one.arguments)[1])[0] for one in find_commands(command)]
    return bool(names) and load_tools().programs["quiet"].issuperset(names)


def _names_collector(command: str) -> bool:
    return any(name in command for name in load_knowledge().collectors)


def _language_of_command(command: str) -> str:
    programs = load_knowledge().test_programs
    names = (identify_tool(split_runner(one.arguments)[1])[0] for one in find_commands(command))
    return next((programs[name] for name in names if name in programs), "")


def _language_of_tree(files: RepositoryFiles) -> str:
    rows = load_knowledge().toolchains
    other = next((row.language for row in rows if row.file in files.paths), "")
    if any(name in files.paths for name in _PYTHON_MANIFESTS):
        has_tests = any(is_module(path) and is_test(path) for path in files.paths)
        return load_knowledge().python if has_tests or not other else other
    has_code = any(map(is_module, files.paths))
    return other or (load_knowledge().python if has_code else "")


def _infer_python(
    git: Git, rev: str, files: RepositoryFiles, pythons: Sequence[str], committed: date | None
) -> Inferred | None:
    newest = _newest_mature_python(pythons, committed) if committed else None
    version = choose_python_version(git, rev, pythons, newest)
    if version is None:
        return None
    for path in (".python-version", "pyproject.toml", "setup.cfg", "setup.py"):
        text = files.read(path)
        for mark in (f"Python :: {version}", "requires-python", "python_requires", "python =", version):  # fmt: skip
            if mark in text:
                return Inferred(version, f"{path}:{find_line(text, mark)}")
    return Inferred(version, "the commit's date")


def _newest_mature_python(pythons: Sequence[str], day: date) -> str | None:
    releases = load_knowledge().python_releases
    fitting = [one for one in pythons if one in releases and releases[one] + _PYTHON_MATURITY <= day]  # fmt: skip
    return max(fitting, key=lambda one: releases[one], default=None)


# -- workflows -------------------------------------------------------------------------------------------------------


def _from_workflows(
    files: RepositoryFiles,
    plain: Environment,
    pythons: Sequence[str],
    before: date | None,
    command: str,
) -> Iterator[Environment]:
    """The job that runs the tests, where its steps are plain commands: of a matrix the cell nearest to the interpreter."""

    def read(path: str) -> bytes | None:
        return files.read(path).encode() if path in files.paths else None

    for path in sorted(filter(_WORKFLOW.fullmatch, files.paths))[:_MAX_WORKFLOWS]:
        try:
            jobs = plan_workflow(files.read(path), files=read)
        except (WorkflowError, UserError):
            continue
        usable = [job for job in jobs if job.supported and not job.services]
        usable.sort(key=lambda job: _rank_job(job, plain.python, pythons))
        for job in usable:
            step = next((one for one in job.steps if runs_tests(one) and _finds_test(one.run)), None)  # fmt: skip
            found = make_plain_step(job, step) if step is not None else None
            if step is None or found is None:
                continue
            setup, test = found
            source = f"{path}:{find_line(files.read(path), step.run.strip().splitlines()[0])}"
            if before is not None:
                day = before.isoformat()
                setup = f"export PIP_UPLOADED_PRIOR_TO={day} UV_EXCLUDE_NEWER={day}\n{setup}"
            if _names_collector(command) and not _names_collector(test):
                setup = f"{setup}\npython -m pip install -q pytest"
            python = Inferred(job.python, source) if job.python in pythons and job.python else None
            yield replace(
                plain,
                interpreter=python or plain.interpreter,
                setup=Inferred(setup, source),
                test=Inferred(test, source),
            )
            return


def _rank_job(job: JobPlan, python: str | None, pythons: Sequence[str]) -> tuple[bool, bool]:
    return (job.python != python, job.python not in pythons)


def _finds_test(script: str) -> bool:
    return any(_is_test_call(one.arguments) for one in find_commands(script))


def _is_test_call(words: Sequence[str]) -> bool:
    """Whether a call runs Python tests: a program of the table, or a script that is named for it."""
    name, arguments = identify_tool(_without_coverage(split_runner(words)[1]))
    if name == load_knowledge().python:
        return bool(arguments) and re.search(r"(?:^|/)(?:run_?)?tests?\.py$", arguments[0]) is not None  # fmt: skip
    return load_knowledge().test_programs.get(name) == load_knowledge().python


def _without_coverage(words: Sequence[str]) -> list[str]:
    """`coverage run --branch -m pytest x` as `pytest x`."""
    if list(words[:2]) == ["coverage", "run"] and "-m" in words:
        return list(words[words.index("-m") + 1 :])
    return list(words)


# -- the test command of task runners --------------------------------------------------------------------------------


def _infer_python_test(files: RepositoryFiles) -> Inferred | None:
    """The call of a task runner that tests, else pytest over what the tree has of tests."""
    for path, script in _read_targets(files):
        for command in find_commands(script):
            words = _without_coverage(split_runner(command.arguments)[1])
            if words and "{" not in " ".join(words) and _is_test_call(words):
                source = f"{path}:{find_line(files.read(path), words[0])}"
                return Inferred(_plain_test_call(words, files), source)
    tests = sorted(path for path in files.paths if is_module(path) and is_test(path))
    return Inferred(_PYTEST_COMMAND, tests[0]) if tests else None


def _plain_test_call(words: list[str], files: RepositoryFiles) -> str:
    """The call without options of plugins that may be missing: which files it names is what counts."""
    name, arguments = identify_tool(words)
    if name in load_knowledge().collectors:
        folders = {path.partition("/")[0] for path in files.paths}
        named = [word for word in arguments if word.strip("/").partition("/")[0] in folders]
        return shlex.join([*_PYTEST_COMMAND.split(), *named])
    program = load_knowledge().python
    return shlex.join(words if words[0] == program else [program, "-m", *words])


def _read_targets(files: RepositoryFiles) -> Iterator[tuple[str, str]]:
    """What the test targets of tox, nox, make and just run, as shell text."""
    testenv = read_section(files.read("tox.ini"), "testenv")
    script = re.sub(r"\{posargs[^}]{0,200}\}", "", testenv.get("commands", ""))
    yield (
        "tox.ini",
        script.replace("{toxinidir}/", "").replace("{envpython}", load_knowledge().python),
    )
    calls = re.findall(r"session\.run\(([^)]{1,500})\)", files.read("noxfile.py"))
    for call in calls:
        yield "noxfile.py", shlex.join(re.findall(r"[\"']([^\"'\n]{1,200})[\"']", call))
    for path in ("Makefile", "GNUmakefile", "makefile", "justfile"):
        for target in ("test", "tests", "check"):
            if path in files.paths:
                yield path, expand_rules(files.read(path), [target])


# -- other languages, containers -------------------------------------------------------------------------------------


def _from_toolchain(files: RepositoryFiles, language: str) -> Iterator[Environment]:
    for row in load_knowledge().toolchains:
        if row.language != language or row.file not in files.paths:
            continue
        test: Inferred | None = Inferred(row.test, f"{row.file}:1")
        if row.script:
            text = files.read(row.script)
            script = get_table(_load_json(text), "scripts").get("test")
            has_tests = isinstance(script, str) and "no test specified" not in script
            line = find_line(text, '"test"')
            test = Inferred(row.test, f"{row.script}:{line}") if has_tests else None
        tool = row.test.split()[0].removeprefix("./")
        place = f"{row.file}:1"
        yield Environment(language, Inferred(tool, place), Inferred(row.setup, place), test)
        return


_JSON_COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*|,(?=\s*[}\]])')


def _from_devcontainer(files: RepositoryFiles) -> Iterator[Environment]:
    for path in (".devcontainer/devcontainer.json", ".devcontainer.json"):
        text = files.read(path)
        document = _load_json(_JSON_COMMENT.sub(lambda found: found[1] or "", text))
        image, setup = document.get("image"), document.get("postCreateCommand")
        if isinstance(setup, list):
            setup = shlex.join(map(str, setup))
        if isinstance(image, str) or isinstance(setup, str):
            yield Environment(
                "",
                setup=Inferred(setup, f"{path}:{find_line(text, 'postCreateCommand')}") if isinstance(setup, str) else None,
                image=Inferred(image, f"{path}:{find_line(text, 'image')}") if isinstance(image, str) else None,
            )  # fmt: skip
            return


def _load_json(text: str) -> dict[str, object]:
    try:
        document = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


_DOCKERFILE_STAGE = re.compile(r"(?im)^FROM[ \t]+(?:--\S+[ \t]+)?(\S+)(?:[ \t]+AS[ \t]+(\S+))?")


def _from_dockerfile(files: RepositoryFiles) -> Iterator[Environment]:
    text = files.read("Dockerfile").replace("\\\n", " ")
    stages: dict[str, str] = {}
    images: list[str] = []
    for written, name in _DOCKERFILE_STAGE.findall(text):
        image = stages.get(written.lower(), written)
        stages[name.lower()] = image
        if image != "scratch" and "$" not in image:
            images.append(image)
    steps = re.findall(r"(?im)^RUN[ \t]+(?!\[|--)(.+)$", text)
    if images:
        line = find_line(text, images[-1])
        setup = Inferred("\n".join(steps), "Dockerfile:1") if steps else None
        yield Environment("", setup=setup, image=Inferred(images[-1], f"Dockerfile:{line}"))
