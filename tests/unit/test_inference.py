"""What is inferred about a repository's environment, and from which file and line."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from time import process_time

import pytest

from regreen.domain.environments import Environment, RepositoryFiles
from regreen.domain.errors import AnalysisFailed, SetupFailed
from regreen.domain.models import RunResult
from regreen.environment.inference import infer_environments
from regreen.environment.preparation import (
    describe_failure,
    describe_start,
    render_environment,
)
from regreen.languages.python.dependencies import PythonDependencies
from regreen.languages.python.project_setup import infer_python_setups, is_named_in_manifests
from regreen.logs.failure_signature import find_telling_line
from regreen.packages.python_version import convert_poetry_bounds
from regreen.packages.setup_command import WRITE_PINS, find_setup_inputs
from regreen.packages.setup_guard import InstallPolicy, SourceTree, find_refusals
from regreen.runs.test_runs import CommandRun
from regreen.runs.trial import Trial
from tests.unit.repairs import Repository

HERE = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13")
TEST = {"tests/test_a.py": "def test_a():\n    pass\n"}
EXTRAS = (
    '[project]\nname = "shop"\nversion = "1"\nrequires-python = ">=3.9"\ndependencies = ["click"]\n'
    '[project.optional-dependencies]\ndocs = ["sphinx"]\ntests = ["freezegun"]\n'
)
WORKFLOW = (
    "on: push\njobs:\n  lint:\n    runs-on: ubuntu-latest\n    steps:\n      - run: pip install ruff\n      - run: ruff check\n"
    "  test:\n    runs-on: ubuntu-latest\n    strategy: {matrix: {python: ['3.10', '3.12']}}\n    steps:\n"
    "      - uses: actions/checkout@v4\n      - uses: actions/setup-python@v5\n        with: {python-version: '${{ matrix.python }}'}\n"
    "      - run: pip install -e .[tests]\n      - run: pytest -x tests\n"
)


def infer(
    tmp_path: Path,
    files: Mapping[str, str],
    command: str = "",
    *,
    days: int = 0,
    pythons: Sequence[str] = HERE,
    touched: Sequence[str] = (),
) -> tuple[Environment, ...]:
    repository = Repository(tmp_path / "repo")
    rev = repository.commit("start", dict(files))
    git = repository.open()
    today = git.commit(rev).date.date() + timedelta(days=days)
    return infer_environments(
        git, rev, pythons=pythons, today=today, command=command, touched=touched
    )


def test_extras_for_tests_are_installed_with_the_project(tmp_path: Path) -> None:
    first, fallback = infer(tmp_path, {**TEST, "pyproject.toml": EXTRAS})
    assert first.setup is not None
    assert "-e '.[tests]'" in first.setup.value
    assert first.setup.source == "pyproject.toml:8"
    assert first.interpreter is not None
    assert (first.interpreter.value, first.interpreter.source) == ("3.13", "pyproject.toml:4")
    assert first.test is not None
    assert (first.test.value, first.test.source) == ("python -m pytest -q", "tests/test_a.py")
    assert fallback.is_fallback
    assert fallback.setup is not None
    assert "click" in fallback.setup.value
    assert "freezegun" in fallback.setup.value
    assert "sphinx" not in fallback.setup.value


@pytest.mark.parametrize(("command", "source"), [("", "tests/test_a.py"), ("pytest -q", "the command")])  # fmt: skip
def test_without_a_manifest_it_is_set_up_for_what_runs(
    command: str, source: str, tmp_path: Path
) -> None:
    (found,) = infer(tmp_path, TEST, command)
    assert found.setup is not None
    assert found.setup.source == source


def test_lists_that_setup_py_puts_together_are_read(tmp_path: Path) -> None:
    setup_py = (
        "from setuptools import setup\nmore = ['attrs']\nbase = ['click'] + more\n"
        "setup(install_requires=['six'] + base, setup_requires=['pytest-runner'], tests_require=more)\n"
    )
    first, fallback = infer(tmp_path, {**TEST, "setup.py": setup_py})
    assert fallback.setup is not None
    assert "uv pip install six click attrs" in fallback.setup.value
    assert first.setup is not None
    # pip would take the newest release of what `setup.py` asks for before it runs
    assert "uv pip install setuptools wheel pytest-runner || " in first.setup.value


def test_what_is_slow_to_build_is_taken_as_a_wheel(tmp_path: Path) -> None:
    first = infer(tmp_path, {**TEST, "requirements.txt": "numpy\n"})[0].setup
    assert first is not None
    lines = first.value.splitlines()
    writes = next(number for number, line in enumerate(lines) if "--only-binary" in line)
    written = tmp_path / "wheels.txt"
    # as the box runs it, with a place of this test's own
    script = lines[writes].replace("/tmp/wheels.txt", str(written)).removeprefix("python ")
    subprocess.run(["sh", "-c", f"{shlex.quote(sys.executable)} {script}"], check=True)
    assert "--only-binary numpy\n" in written.read_text()
    assert (
        lines[writes + 1] == "export UV_CONSTRAINT=/tmp/wheels.txt PIP_CONSTRAINT=/tmp/wheels.txt"
    )


def test_progress_shows_the_start_of_a_setup_line_with_very_many_words(tmp_path: Path) -> None:
    found = infer(tmp_path, {**TEST, "requirements.txt": "numpy\n"})[0]
    assert found.setup is not None
    longest = max(found.setup.value.splitlines(), key=len)
    shown = "\n".join(found.describe())
    assert len(longest) > 500
    assert max(map(len, shown.splitlines())) < 200
    start, _, rest = next(x for x in shown.splitlines() if " words more" in x).partition(" ... (")
    assert longest.startswith(start.strip())
    assert len(start.split()) + int(rest.split()[0]) == len(longest.split())
    assert "uv pip install" in shown


def test_a_variable_that_the_tests_miss_has_the_value_that_the_repository_gives_it() -> None:
    tools = PythonDependencies()
    tox = "[testenv]\nsetenv =\n    DJANGO_SETTINGS_MODULE=tests.settings\n    sqlite: TEST_DB=sqlite\n    PIP_TEST_INDEX=x\n    HOME=/y\n"
    files = tree({**TEST, "tox.ini": tox})
    unset = "You must either define the environment variable DJANGO_SETTINGS_MODULE or call settings.configure()"
    assert tools.find_variables(unset, files) == (("DJANGO_SETTINGS_MODULE", "tests.settings"),)
    assert tools.find_undeclared(unset, files) == ("pytest-django",)
    assert tools.find_variables("KeyError: 'TEST_DB'", files) == (("TEST_DB", "sqlite"),)
    manage = 'os.environ["DJANGO_SETTINGS_MODULE"] = "shop.settings"\n'
    project = tree({**TEST, "project/manage.py": manage})
    assert tools.find_variables(unset, project) == (("DJANGO_SETTINGS_MODULE", "shop.settings"),)
    # a setup sees the variables, too: what steers its tools is never taken from output
    assert tools.find_variables("KeyError: 'PIP_TEST_INDEX'\nKeyError: 'HOME'", files) == ()


def test_a_module_beside_the_tests_is_made_importable_and_not_had_from_an_index() -> None:
    tools = PythonDependencies()
    output = "E   ModuleNotFoundError: No module named 'common'\n"
    files = tree({**TEST, "tests/__init__.py": "", "tests/common.py": ""})
    assert tools.find_undeclared(output, files) == ()
    assert tools.find_variables(output, files) == (("PYTHONPATH", "/work/tests"),)
    inside = tree({"pkg/common.py": "", "pkg/common_test.py": "from common import *\n"})
    assert tools.find_undeclared(output, inside) == ()
    assert tools.find_variables(output, inside) == (("PYTHONPATH", "/work/pkg"),)
    assert tools.find_undeclared(output, tree(TEST)) == ("common",)
    assert tools.find_variables(output, tree(TEST)) == ()


def test_the_release_of_an_index_takes_the_place_of_an_address(tmp_path: Path) -> None:
    wanted = (
        "click @ git+https://git.example/click\ngit+https://git.example/attrs@v1#egg=attrs\n"
        "nobody-uses-this @ git+https://git.example/x\n"
    )
    setup = infer(tmp_path, {**TEST, "requirements.txt": wanted})[-1].setup
    assert setup is not None
    assert "uv pip install click attrs" in setup.value
    assert "nobody-uses-this" not in setup.value


def test_python_3_6_first_gets_a_pip_that_takes_wheels_of_uv(tmp_path: Path) -> None:
    files = {**TEST, "setup.py": "from setuptools import setup\nsetup(python_requires='<3.7')\n"}
    setup = infer(tmp_path, files, pythons=("3.6", "3.12"))[0].setup
    assert setup is not None
    # pip 18.1, which Python 3.6 brings, satisfies "pip<22" and knows no wheel for manylinux2014
    assert setup.value.splitlines()[1] == "python -m pip install -q 'pip>=21,<22'"
    assert (
        "UV_COMPILE_BYTECODE" not in setup.value
    )  # uv compiles by what `py_compile` has since Python 3.7
    newer = infer(tmp_path / "newer", files, pythons=("3.7",))[0].setup
    assert newer is not None
    assert "UV_COMPILE_BYTECODE" in newer.value


def test_python_3_6_installs_a_project_with_setup_py_by_pip(tmp_path: Path) -> None:
    """The last setuptools for it (59.6) lacks `build_editable`, which uv calls."""

    def infer_setup(version: str) -> str:
        setup_py = f"from setuptools import setup\nsetup(python_requires='=={version}.*', install_requires=['click>7'])\n"
        files = {**TEST, "setup.py": setup_py}
        setup = infer(tmp_path / version, files, pythons=(version,))[0].setup
        return setup.value if setup else ""

    in_place = re.compile(r"(uv pip|-m pip) install [^|;\n]*? -e ")
    old, newer = infer_setup("3.6"), infer_setup("3.7")
    assert set(in_place.findall(old)) == {"-m pip"}
    assert set(in_place.findall(newer)) == {"uv pip", "-m pip"}
    # pip would take the newest of what the project needs
    assert re.search(r"(?s)uv pip install 'click>7'.* -m pip install [^|]* -e \.", old)
    # a wheel of the project brings what `setup.py` computes, of the commit's day
    assert old.index("uv pip install .") < old.index("uv pip install 'click>7'")


def test_old_source_releases_are_built_by_a_later_setuptools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2015-01-31T00:00:00Z")
    files = {**TEST, "setup.py": "from setuptools import setup\nsetup()\n", "requirements.txt": "mock==1.0\n"}  # fmt: skip
    first = infer(tmp_path, files, days=4000)[0]
    setup = first.setup
    assert setup is not None
    assert first.python == "3.8"  # the oldest here, where all are younger than the commit
    # a pytest of 2015 cannot rewrite assertions under it: "Call constructor takes either 0 or 3 positional arguments"
    assert "--exclude-newer-package pytest=2020-04-11" in setup.value
    installs = re.findall(r"uv pip install.*? (?:-e|pytest|mock)\b", setup.value)
    assert len(installs) >= 3
    # without the later wheel: "TypeError: expected str, bytes or os.PathLike object, not NoneType"
    later = "--exclude-newer-package setuptools=2023-09-01 --exclude-newer-package wheel=2023-09-01"
    assert all(later in line for line in installs if "--no-deps" not in line)
    install = PythonDependencies().install(["attrs"], setup.value)
    assert later in install
    # Twisted 20.3 is an archive that uv does not take, the metadata of pandas 0.23 a text that it does not; and nothing of
    # before Python 3.8 has wheels for it
    in_place = next(line for line in setup.value.splitlines() if " -e . ||" in line).split(" || ")
    then = " --exclude-newer-package pytest=2020-04-11 --exclude-newer-package py=2020-04-11"
    assert in_place[1] == in_place[0].replace(f"{then} -e .", " --exclude-newer 2020-04-11 -e .")
    assert "--exclude-newer 2020-04-11 attrs" in install
    old = infer(tmp_path / "old", files, pythons=("3.6",), days=4000)[0].setup
    assert old is not None
    # MarkupSafe 1.0 needs `Feature`, rdflib-jsonld 0.4 needs 2to3
    assert "--exclude-newer-package setuptools=2020-02-28" in old.value


def test_what_setup_py_imports_is_there_when_it_builds(tmp_path: Path) -> None:
    build = "import os\nimport helpers\nfrom Cython.Build import cythonize\nfrom setuptools import setup\nsetup()\n"
    files = {**TEST, "setup.py": build, "helpers.py": ""}
    setup = infer(tmp_path, files)[0].setup
    assert setup is not None
    tools, in_place, *_ = [x for x in setup.value.splitlines() if x.startswith("uv pip")]
    assert tools.startswith("uv pip install setuptools wheel Cython || { ")
    assert "python -m pip install -q --prefer-binary Cython ||" in tools
    assert in_place.startswith("uv pip install --no-build-isolation -e . ||")
    # numpy of that day has no wheel: only the one of a year later, or what pip finds, can be installed
    old = infer(
        tmp_path / "old", {**TEST, "setup.py": "import numpy\n"}, pythons=("3.8",), days=3000
    )
    whole, loose = [one.setup.value for one in old if one.setup][:2]
    line = next(x for x in whole.splitlines() if "setuptools wheel numpy" in x)
    assert re.search(r"\|\| uv pip install --exclude-newer \S+ setuptools wheel numpy", line)
    assert "setuptools wheel numpy" not in loose
    # a tool that cannot be had leaves the last build of the project to be tried all the same
    last = next(x for x in whole.splitlines() if "--no-deps -e ." in x)
    assert "echo 'not installed: numpy'; }; python -m pip install" in last
    declared = {**files, "pyproject.toml": "[build-system]\nrequires = ['setuptools', 'cython']\n"}
    isolated = infer(tmp_path / "declared", declared)[0].setup
    assert isolated is not None
    assert "uv pip install -e . ||" in isolated.value


def test_the_job_that_runs_the_tests_comes_first(tmp_path: Path) -> None:
    files = {**TEST, "pyproject.toml": EXTRAS, ".github/workflows/ci.yml": WORKFLOW}
    first = infer(tmp_path, files)[0]
    assert first.setup is not None
    assert first.setup.value.splitlines()[-1] == "pip install -e .[tests]"
    assert first.setup.source == ".github/workflows/ci.yml:16"
    assert first.test is not None
    assert first.test.value == "pytest -x tests"
    assert first.python in {"3.10", "3.12"}


def test_the_manifests_are_tried_with_the_interpreter_of_the_job(tmp_path: Path) -> None:
    workflow = WORKFLOW.replace("['3.10', '3.12']", "['3.10']")
    files = {**TEST, "pyproject.toml": EXTRAS}
    assert infer(tmp_path / "alone", files)[0].python == "3.13"
    found = infer(tmp_path, {**files, ".github/workflows/ci.yml": workflow})
    assert len(found) > 1
    assert {one.python for one in found} == {"3.10"}


def test_an_old_commit_gets_the_versions_and_the_interpreter_of_its_day(tmp_path: Path) -> None:
    files = {**TEST, "setup.py": "from setuptools import setup\nsetup(name='shop', extras_require={'test': ['mock']})\n"}  # fmt: skip
    first = infer(tmp_path, files, days=400)[0]
    assert first.setup is not None
    assert "export UV_EXCLUDE_NEWER=2" in first.setup.value
    assert "-e '.[test]'" in first.setup.value
    assert first.interpreter is not None
    assert first.interpreter.source == "the commit's date"
    assert infer(tmp_path / "new", files)[0].interpreter is None


@pytest.mark.parametrize(
    ("files", "language", "setup", "test"),
    [
        ({"package.json": '{"scripts": {"test": "jest"}}', "package-lock.json": "{}"}, "javascript", "npm ci", "npm test"),
        ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'}, "javascript", "npm install", None),
        ({"pnpm-lock.yaml": "", "package.json": '{"scripts": {"test": "vitest run"}}'}, "javascript", "npm install -g --prefix /env --no-audit --no-fund pnpm@10 && pnpm install --frozen-lockfile", "npm test"),
        ({"pnpm-lock.yaml": "lockfileVersion: '6.0'\n", "package.json": '{"packageManager": "pnpm@8.15.4+sha256.abc", "scripts": {"test": "x"}}'}, "javascript", "npm install -g --prefix /env --no-audit --no-fund pnpm@8.15.4 && pnpm", "npm test"),
        ({"yarn.lock": "__metadata:\n", "package.json": '{"packageManager": "yarn@3.2.0", "scripts": {"test": "x"}}'}, "javascript", "npm install -g --prefix /env --no-audit --no-fund @yarnpkg/cli-dist@3.2.0 && yarn", "npm test"),
        ({"yarn.lock": "", "package.json": '{"packageManager": "pnpm@9;x", "scripts": {"test": "x"}}'}, "javascript", "npm install -g --prefix /env --no-audit --no-fund yarn@1 && yarn", "npm test"),
        ({"go.mod": "module a\n"}, "go", "go mod download", "go test ./..."),
        ({"Cargo.toml": '[package]\nname = "a"\n'}, "rust", "cargo fetch", "cargo test"),
        ({"pom.xml": "<project/>"}, "java", "find . -name pom.xml", "mvn"),
        ({"build.gradle": "", "gradlew": ""}, "java", "echo 'allprojects {", "./gradlew --no-daemon --offline test"),
        ({"build.gradle.kts": ""}, "java", "echo 'allprojects {", "gradle --no-daemon --offline test"),
        ({**TEST, "uv.lock": "", "pyproject.toml": '[project]\nname = "a"\n[dependency-groups]\ntest = []\n'}, "python", "python -m pip install -q --ignore-requires-python uv\nuv sync -q --active --frozen --group test", "python -m pytest -q"),
        ({**TEST, "tox.ini": "[testenv]\ndeps =\n  mock\n  old: six\ncommands = python -m unittest discover {posargs}\n"}, "python", "python -m pip install", "python -m unittest discover"),
        ({**TEST, "Makefile": "test: build\n\tpython -m pytest tests --cov\n"}, "python", "python -m pip install", "python -m pytest -q tests"),
        ({**TEST, "tox.ini": "[testenv]\ncommands =\n  !lint: py.test [] tests/test_a.py --junitxml={envname}.xml\n  lint: flake8\n"}, "python", "python -m pip install", "python -m pytest -q tests/test_a.py"),
        ({**TEST, "tox.ini": "[testenv]\ncommands = python manage.py test -v2 {posargs:tests}\n"}, "python", "python -m pip install", "python manage.py test -v2 tests"),
        ({**TEST, "Makefile": "test:\n\tpython3 run_tests.py\n"}, "python", "python -m pip install", "python run_tests.py"),
        ({**TEST, "tox.ini": "[testenv]\ndeps = nose\ncommands = nosetests --verbose\n"}, "python", "python -m pip install", "python -m nose --verbose"),
        ({".devcontainer.json": '{\n// box\n"image": "a/b:1",\n"postCreateCommand": "make deps"}'}, "", "make deps", None),
        ({"Dockerfile": "FROM alpine:3\nRUN apk add x\n"}, "", "apk add x", None),
    ],
)  # fmt: skip
def test_each_source_is_read(
    tmp_path: Path, files: dict[str, str], language: str, setup: str, test: str | None
) -> None:
    found = infer(tmp_path, files)
    first = found[0]
    assert first.language == language
    assert first.setup is not None
    assert first.setup.value.removeprefix("set -e\n").startswith(setup)
    assert (first.test.value if first.test else "").startswith(test or "")
    assert (test is None) == (first.test is None)


@pytest.mark.parametrize(
    ("files", "command"),
    [({}, ""), ({"README.md": "x"}, "python check.py"), ({**TEST, "pyproject.toml": EXTRAS}, "grep -q x README.md"), ({**TEST}, "python check.py")],
)  # fmt: skip
def test_nothing_is_set_up_where_nothing_asks_for_it(
    tmp_path: Path, files: dict[str, str], command: str
) -> None:
    assert infer(tmp_path, {**files, "x": "y"}, command) == ()


@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")
def test_a_lock_of_cargo_that_is_out_of_date_stays_as_it_is_committed(tmp_path: Path) -> None:
    """Else `cargo test --locked` would be green here and red elsewhere."""
    stale = 'version = 4\n\n[[package]]\nname = "shop"\nversion = "1.0.0"\n'
    files = {
        "Cargo.toml": '[package]\nname = "shop"\nversion = "1.1.0"\nedition = "2021"\n',
        "Cargo.lock": stale,
        "src/lib.rs": "",
    }
    setup = infer(tmp_path / "read", files)[0].setup
    assert setup is not None
    Repository(tmp_path / "tree").commit("start", files)
    subprocess.run(["bash", "-c", setup.value], cwd=tmp_path / "tree", check=True)
    assert (tmp_path / "tree" / "Cargo.lock").read_text() == stale


def test_hostile_manifests_name_nothing_for_the_shell(tmp_path: Path) -> None:
    text = '[project]\nname = "a"\ndependencies = ["x; touch /tmp/y", "$(id)", "git+https://example.org/a"]\n[project.optional-dependencies]\n"test;id" = []\ntest = ["`id`"]\n'
    for environment in infer(tmp_path, {**TEST, "pyproject.toml": text}):
        assert environment.setup is not None
        for word in ("touch", "$(", "`", ";id", "example.org"):
            assert word not in environment.setup.value


@pytest.mark.parametrize(
    ("manifest", "is_whole"),
    [
        ("from setuptools import setup\nsetup(name='a')\n", False),
        (
            "from setuptools import setup\nsetup(name='a', extras_require={'test': ['click']})\n",
            False,
        ),
        ("from setuptools import setup, Extension\nsetup(name='a', ext_modules=[])\n", True),
        ("from setuptools import setup\nimport tools.gen\nsetup(name='a')\n", True),
    ],
)
def test_an_old_project_that_is_in_place_at_last_depends_on_its_manifests_alone(
    tmp_path: Path, manifest: str, *, is_whole: bool
) -> None:
    files = {**TEST, "setup.py": manifest, "a.py": "", "tools/gen.py": ""}
    first = infer(tmp_path, files, pythons=("3.6",), days=2000)[0]
    assert first.setup is not None
    setup = first.setup.value
    assert re.search(r"uv pip install [^\n]* '?\.(\[test\]')? \|\|", setup), setup
    read = {path: text.encode() for path, text in files.items()}.get
    found = find_setup_inputs(setup, files, read)
    assert found.everything == is_whole
    assert is_whole or (found.includes("setup.py") and not found.includes("a.py"))
    # a copy that no installation in place replaces is made from the whole tree, whatever a comment says
    cut, _, last = setup.rpartition("\n")
    for other in (
        cut,
        f"{cut}\n# {last}",
        f"{cut}\necho '{last}'",
        setup.replace("set -e", "true", 1),
    ):
        assert find_setup_inputs(other, files, read).everything
    assert not find_setup_inputs(f"# {last}", files, read).everything


def test_the_guard_judges_an_inferred_setup_like_any_other(tmp_path: Path) -> None:
    files = {**TEST, "pyproject.toml": EXTRAS.replace("freezegun", "freezgun-helper-x")}
    *_, last = infer(tmp_path, files)
    assert last.setup is not None
    tree = SourceTree(dict.fromkeys(files, "1"), lambda path: files[path].encode())
    refused = find_refusals(last.setup.value, (), tree, SourceTree({}, lambda _: None))
    assert "freezgun-helper-x" in str(refused)
    assert not find_setup_inputs(
        last.setup.value, files, lambda path: files[path].encode()
    ).everything


@pytest.mark.parametrize("lock", ["poetry.lock", "pdm.lock", "uv.lock"])
def test_what_a_lock_files_tool_installs_is_judged_and_identifies_the_environment(
    lock: str,
) -> None:
    manifest = EXTRAS.replace("freezegun", "freezgun-helper-x")
    files = {"pyproject.toml": manifest, lock: "", "shop.py": ""}
    setup = next(infer_python_setups(tree(files), "3.11", None)).value
    shown = SourceTree(dict.fromkeys(files, "1"), lambda path: files.get(path, "").encode())
    base = SourceTree({}, lambda _: None)
    refused = find_refusals(setup, (), shown, base, InstallPolicy(trusts_command=False))
    assert "freezgun-helper-x" in str(refused)
    assert not find_setup_inputs(setup, files, lambda path: files.get(path, "").encode()).everything


def test_a_commit_of_the_future_is_not_old(tmp_path: Path) -> None:
    first = infer(tmp_path, {**TEST, "pyproject.toml": EXTRAS}, days=-30)[0]
    assert first.setup is not None
    assert "EXCLUDE_NEWER" not in first.setup.value


def test_a_name_that_reads_as_an_option_is_no_extra(tmp_path: Path) -> None:
    tox = "[testenv]\nextras =\n    --all\n    mine\n"
    extras = EXTRAS + '"--all" = ["x"]\nmine = ["attrs"]\n'
    for lock in ({}, {"uv.lock": ""}):
        files = {**TEST, **lock, "pyproject.toml": extras, "tox.ini": tox}
        first = infer(tmp_path / str(len(lock)), files)[0]
        assert first.setup is not None
        assert "mine" in first.setup.value
        assert "--all" not in first.setup.value


@pytest.mark.parametrize(
    ("dockerfile", "image"),
    [
        ("FROM alpine:3 AS Base\nFROM base as test\nRUN x\n", "alpine:3"),
        ("FROM --platform=linux/amd64 alpine:3\nRUN x\nFROM scratch\nCOPY a a\n", "alpine:3"),
        ("ARG V\nFROM alpine:3\nFROM alpine:${V}\n", "alpine:3"),
        ("FROM scratch AS empty\nFROM empty\n", None),
    ],
)
def test_a_dockerfile_names_the_last_image_that_can_be_had(
    tmp_path: Path, dockerfile: str, image: str | None
) -> None:
    found = infer(tmp_path, {"Dockerfile": dockerfile})
    assert [one.image.value for one in found if one.image] == ([image] if image else [])


@pytest.mark.timeout(60)
def test_many_requirements_files_are_told_from_compiled_ones_in_linear_time() -> None:
    files = dict.fromkeys((f"data/{n}.txt" for n in range(20_000)), "")
    paths = frozenset({*files, "requirements/test.txt", "requirements/test.in"})
    read = {"requirements/test.in": "attrs\n", "requirements/test.txt": "attrs==1\n"}
    started = process_time()
    *_, last = infer_python_setups(
        RepositoryFiles(paths, lambda path: read.get(path, "")), None, None
    )
    assert " attrs" in last.value
    assert "attrs==1" not in last.value
    assert process_time() - started < 5


def chain(length: int) -> dict[str, str]:
    """Requirements files of which each includes the next."""
    files = {f"r{n}.txt": f"-r r{n + 1}.txt\n" for n in range(1, length)}
    return {**TEST, "requirements.txt": "-r r1.txt\nclick\n", **files, f"r{length}.txt": "attrs\n"}


def test_requirements_files_that_include_each_other_are_read_to_the_end(tmp_path: Path) -> None:
    *_, last = infer(tmp_path, chain(150))
    assert last.setup is not None
    assert " attrs click" in last.setup.value


def test_requirements_files_that_include_each_other_too_often_are_a_clear_answer(
    tmp_path: Path,
) -> None:
    with pytest.raises(AnalysisFailed, match="more than 200 requirements files include each other"):
        infer(tmp_path, chain(1_100))


STUBS = {
    "python": '#!/bin/sh\ncase "$*" in *gone*) exit 1;; esac\n',
    "uv": '#!/bin/sh\ncase "$*" in *gone*|*by-pip*|*-e*.\\[*|*bounded==*) exit 1;; esac\necho "$*" >> installed\n',
}


def test_a_requirement_that_cannot_be_had_is_left_out_alone_and_named(tmp_path: Path) -> None:
    for name, text in STUBS.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    wanted = EXTRAS.replace('["freezegun"]', '["freezegun", "gone==1", "bounded==2", "by-pip==1"]')
    files = {"pyproject.toml": wanted, "tox.ini": "[testenv]\ndeps =\n  mock\n  gone-too>1\n"}
    for setup in infer_python_setups(tree(files), "3.11", None):
        done = subprocess.run(
            ["bash", "-c", setup.value],
            cwd=tmp_path,
            env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        left_out = PythonDependencies().find_uninstalled(done.stdout, setup.value)
        assert {"gone==1", "gone-too>1"} <= set(left_out)
        assert "by-pip==1" not in left_out
        installed = (tmp_path / "installed").read_text().split()
        assert {"freezegun", "mock", "bounded"} <= set(installed)
        (tmp_path / "installed").unlink()
    assert (
        PythonDependencies().find_uninstalled("not installed: rm -rf x", "uv pip install y") == ()
    )


def tree(files: Mapping[str, str]) -> RepositoryFiles:
    return RepositoryFiles(frozenset(files), lambda path: files.get(path, ""))


@pytest.mark.parametrize(
    ("run", "test"),
    [
        ("pytest -x tests", "pytest -x tests"),
        ("coverage run -m pytest --cov=shop tests", "python -m pytest -q tests"),
        ("poetry run pytest docs tests/", "python -m pytest -q tests/"),
        ("|\n          pytest -n auto\n          coverage xml", "python -m pytest -q"),
        ("|\n          cd tests\n          pytest -n auto", "cd tests\npytest -n auto"),
        ("A=1 coverage run -m pytest", "A=1 coverage run -m pytest"),
    ],
)
def test_the_test_call_of_a_workflow_is_taken_without_what_wraps_it(
    tmp_path: Path, run: str, test: str
) -> None:
    workflow = WORKFLOW.replace("pytest -x tests", run)
    first = infer(tmp_path, {**TEST, "docs/a.md": "", ".github/workflows/ci.yml": workflow})[0]
    assert first.test is not None
    assert first.test.value.removeprefix("set -e\n").strip() == test


@pytest.mark.parametrize(
    ("paths", "more"),
    [
        (("test.py", "setup.py"), " test.py"),
        (("shop/tests/a_tests.py", "shop/tests/b_tests.py"), " shop/tests/a_tests.py shop/tests/b_tests.py"),
        (("test.py", "tests/test_a.py"), ""),
        (("test.py", "pytest.ini"), ""),
    ],
)  # fmt: skip
def test_tests_that_pytest_would_not_collect_are_named(
    tmp_path: Path, paths: tuple[str, ...], more: str
) -> None:
    files = {**dict.fromkeys(paths, ""), "requirements.txt": "mock\n"}
    if "pytest.ini" in paths:
        files["pytest.ini"] = "[pytest]\npython_files = *.py\n"
    first = infer(tmp_path, files)[0]
    assert first.test is not None
    assert first.test.value == f"python -m pytest -q{more}"


@pytest.mark.parametrize(
    ("more", "option"), [("", " --doctest-modules"), ("def test_it(): ...\n", "")]
)
def test_examples_are_run_where_tests_are_nothing_else(
    tmp_path: Path, more: str, option: str
) -> None:
    examples = f'"""\n>>> 1 + 1\n2\n"""\n{more}'
    first = infer(tmp_path, {"shop/test.py": examples, "requirements.txt": "mock\n"})[0]
    assert first.test is not None
    assert first.test.value == f"python -m pytest -q{option} shop/test.py"


def test_a_task_runners_folder_without_tests_is_not_tested_alone(tmp_path: Path) -> None:
    tox = "[testenv]\ncommands =\n  pytest --doctest-modules shop/ {posargs}\n"
    first = infer(tmp_path, {**TEST, "shop/__init__.py": "", "tox.ini": tox})[0]
    assert first.test is not None
    assert first.test.value == "python -m pytest -q"


LOCK = """
[[package]]
name = "click"
version = "8.1.3"

[[package]]
name = "numpy"
version = "1.26.0"

[[package]]
name = "numpy"
version = "2.0.0"
"""


@pytest.mark.parametrize("lock", ["poetry.lock", "pdm.lock"])
def test_a_lock_bounds_what_the_manifests_ask_for_without_its_tool(
    lock: str, tmp_path: Path
) -> None:
    (tmp_path / lock).write_text(LOCK)
    files = {"pyproject.toml": EXTRAS, lock: LOCK}
    first = next(infer_python_setups(tree(files), "3.11", None))
    line = next(line for line in first.value.splitlines() if line.endswith(" /tmp/pins.txt"))
    words = [sys.executable, *shlex.split(line)[1:-1], "pins"]
    subprocess.run(words, cwd=tmp_path, check=True)
    assert "UV_CONSTRAINT=/tmp/pins.txt" in first.value
    assert (tmp_path / "pins").read_text() == "click==8.1.3\n", (
        "numpy has a version for each platform"
    )
    assert not find_refusals(first.value, (), SourceTree({}, lambda _: b""), SourceTree({}, lambda _: b""), InstallPolicy(trusts_command=False))  # fmt: skip


@pytest.mark.parametrize(
    ("written", "bounds"),
    [("^1.2.3", ">=1.2.3,<2"), ("^0.2.3", ">=0.2.3,<0.3"), ("^0.0.3", ">=0.0.3,<0.0.4"), ("~1.2.3", ">=1.2.3,<1.3"),
     ("~1", ">=1,<2"), ("^0", ">=0,<1"), ("*", ""), ("1.2", "==1.2"), ("1.2.*", "==1.2.*"), (">=1,<2", ">=1,<2"),
     ("^2 || ^3", ""), ("^3.8,<3.12", ">=3.8,<4,<3.12")],
)  # fmt: skip
def test_poetrys_bounds_are_those_of_the_packaging_standard(written: str, bounds: str) -> None:
    assert convert_poetry_bounds(written) == bounds


def test_of_noxs_sessions_those_count_that_run_tests() -> None:
    noxfile = (
        "import nox\n@nox.session\ndef tests(session):\n    session.install('attrs')\n    session.run('pytest', *session.posargs)\n"
        "@nox.session\ndef docs(session):\n    session.install('pdm', 'install', '-G', 'doc')\n    session.run('make', 'html')\n"
    )
    *_, last = infer_python_setups(tree({"noxfile.py": noxfile}), "3.11", None)
    assert "attrs" in last.value
    assert "doc" not in last.value


@pytest.mark.parametrize("lock", ["uv.lock", "poetry.lock", "none"])
def test_what_tests_import_and_an_extra_of_the_product_names_is_installed(lock: str) -> None:
    about = "[project]\ndescription = 'A shop with attrs, for all'"
    manifest = EXTRAS.replace("[project]", about, 1) + 'yaml = ["PyYAML"]\nlint = ["ruff"]\n'
    source = "import yaml\nimport click\nimport shop\nimport attr\nimport a\n"
    files = {"pyproject.toml": manifest, "shop.py": "", "tests/test_a.py": source, lock: LOCK}
    setup = next(infer_python_setups(tree(files), "3.11", None)).value
    assert "uv pip install PyYAML" in setup.replace("freezegun ", "")
    assert not {"attrs", "a", "ruff"} & set(setup.split()), "no manifest requires them"


@pytest.mark.parametrize(
    ("path", "text", "is_named"),
    [
        ("pyproject.toml", "dependencies = ['attrs (>=2,<3)']", True),
        ("requirements.txt", "click\r\nattrs\r\n", True),
        ("pyproject.toml", "description = 'attrs (the classes)'", False),
        ("setup.py", "entry_points={'attrs': ['shop = shop.plugin']}", False),
    ],
)
def test_a_requirement_is_named_in_a_list_or_first_on_a_line_and_not_as_a_key(
    path: str, text: str, is_named: bool
) -> None:
    assert is_named_in_manifests("attrs", tree({path: text})) == is_named


def test_requirements_of_poetrys_groups_keep_their_bounds_and_extras() -> None:
    manifest = '[tool.poetry]\nname = "shop"\n[tool.poetry.dev-dependencies]\npytest-cov = "^2.8"\nmoto = {version = "~3.1", extras = ["s3"]}\n[build-system]\nrequires = ["poetry-core"]\n'
    *_, last = infer_python_setups(tree({"pyproject.toml": manifest}), "3.8", None)
    assert "'pytest-cov>=2.8,<3' 'moto[s3]>=3.1,<3.2'" in last.value


def test_all_that_the_tests_import_and_nothing_declares_is_added_at_once() -> None:
    text = "import os\nimport yaml\nfrom click import x\nimport helpers\nimport freezegun\nif x:\n  import six\nSAMPLE = '''\\nimport numpy\\n'''\n"
    files = {"pyproject.toml": EXTRAS, "tests/test_a.py": text, "tests/helpers.py": ""}
    output = "E   ModuleNotFoundError: No module named 'yaml'\n"
    found = PythonDependencies().find_undeclared(output, tree(files))
    assert found == ("PyYAML",)
    more = {**files, "tests/test_b.py": "import attr\n"}
    assert PythonDependencies().find_undeclared(output, tree(more)) == ("PyYAML", "attrs")
    assert PythonDependencies().find_undeclared("1 failed", tree(more)) == ()


def test_what_is_added_has_the_versions_of_the_setups_day() -> None:
    install = PythonDependencies().install
    assert install(["attrs"], "export UV_EXCLUDE_NEWER=2020-01-01\nuv pip install x").startswith("uv pip install")  # fmt: skip
    assert install(["attrs"], "pip install x").startswith("python -m pip install")


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("bash: line 1: go: command not found", "go is not installed in the sandbox: install it on this machine (on Debian: apt-get install golang-go)"),
        ("sh: 1: mvn: not found", "apt-get install maven"),
        ("noise\nerror: No solution found", "error: No solution found"),
        ("Installing\n\n  RuntimeError\n\n  77│ chosen = max(links)\n\nUnable to find a candidate for x\n", "Unable to find a candidate for x"),
        ("it stopped here\n\n", "it stopped here"),
        ("npm error code 1\nnpm error     RequestError: no answer from a.example\nnpm error     at process.task (node:task:95:5)\nnpm error A log\n", "(RequestError: no answer from a.example)"),
        ("the hook said npm error 7: cannot go on\nbye\n", "(the hook said npm error 7: cannot go on)"),
        ("at least one index cannot be reached\nbye\n", "(at least one index cannot be reached)"),
        ("warning: Failed to hardlink files; copied\n/env/dist.py:479: UserWarning: an ERROR is no version\nrunning build_ext\nerror: [Errno 2] No such file: 'a.so'\nERROR: Command errored out with exit status 1: python -c 'import io'\n", "(error: [Errno 2] No such file: 'a.so')"),
        ("error: No solution\n  cause: Because old==1 has invalid metadata, it cannot be used.\nhint: `old` was filtered\n", "Because old==1 has invalid metadata"),
    ],
)  # fmt: skip
def test_a_setup_that_failed_has_a_reason(output: str, reason: str) -> None:
    assert reason in describe_failure(SetupFailed("the setup exited with 1: x", output))


def test_an_old_pips_last_line_is_no_reason() -> None:
    last = "ERROR: Command errored out with exit status 1: python -c 'import io'"
    error = SetupFailed(f"the setup exited with 1: {last}", f"error: no x.so\n{last}\n")
    assert describe_failure(error) == "the setup exited with 1 (error: no x.so)"


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        ("E   KeyError: local('a')\nDuring handling of the above exception, another exception occurred:\nE     File \"{WORK}/shop/a.py\", line 3\nE       lambda (k, v): 1\nE   SyntaxError: invalid syntax\nDuring handling of the above exception, another exception occurred:\nE   _pytest.config.ConftestImportFailure: x\n", "SyntaxError: invalid syntax (shop/a.py, line 3)"),
        ("E   ImportError: no a\n___ ERROR collecting b ___\nE   KeyError: 'x'\nDuring handling of the above exception, another exception occurred:\nE   ValueError: y\n", "ImportError: no a"),
        ("E   assert 1 == 2\nTypeError: x\n", "assert 1 == 2"),
    ],
)  # fmt: skip
def test_a_report_names_what_was_raised_last_and_where_code_is_in_error(report: str, reason: str) -> None:  # fmt: skip
    output = f"___ ERROR collecting a ___\n{report}1 error in 0.2 seconds"
    assert find_telling_line(output.replace("{WORK}", "/work")) == reason


def test_a_setup_that_was_killed_was_at_something() -> None:
    at = "Resolved 3 packages in 1s\nDownloading numpy (16.0MiB)\nDownloading six (1KiB)\n Downloaded six\n   Building wrapt==1.0\n"
    error = SetupFailed(
        "the setup took too long (35 seconds): Building wrapt==1.0", f"   Building old==1\n{at}"
    )
    assert describe_failure(error) == "the setup took too long (35 seconds): still downloading numpy, building wrapt==1.0"  # fmt: skip


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("Traceback\n    raise Plugin(\npluggy.PluginValidationError: unknown hook 'x'\n", "pluggy.PluginValidationError: unknown hook 'x'"),
        ("E   ModuleNotFoundError: No module named 'a'\nE   ValueError: b\n", "ModuleNotFoundError: No module named 'a'"),
        ("____ ERROR collecting a.py ____\nE   Exit: no suite\n", "Exit: no suite"),
        ("____ ERROR collecting a.py ____\nSuite not found\n", "Suite not found"),
        ('INTERNALERROR> Traceback (most recent call last):\nINTERNALERROR>   File "a.py", line 3, in main\nINTERNALERROR>     session.exit_error()\nINTERNALERROR> SystemExit: 2\nmainloop: caught\n', "SystemExit: 2"),
        ("ERROR: usage: pytest [options]\npytest: error: unrecognized arguments: --cov\n  rootdir: /work\n", "before any test: pytest: error: unrecognized arguments: --cov"),
        ("no tests ran in 0.01s", "it exits with 5 before any test: no tests ran in 0.01s"),
        ("", "it exits with 5 before any test: it printed nothing"),
    ],
)  # fmt: skip
def test_a_command_that_cannot_start_has_a_reason(output: str, reason: str) -> None:
    result = RunResult("exit", 5, output, "", False, 1.0)
    run = CommandRun(result, ())
    assert reason in (describe_start(Trial(("python", "-m", "pytest")), run) or "")


@pytest.mark.parametrize(
    "files",
    [{"tox.ini": "[testenv]\ndeps =\n    .[docs]\n    mock\n"}, {"requirements.txt": "-e .[docs]\nmock\n"}],
)  # fmt: skip
def test_the_extras_that_a_test_run_asks_for_are_installed(files: dict[str, str]) -> None:
    first = next(infer_python_setups(tree({"pyproject.toml": EXTRAS, **files}), "3.11", None))
    assert "-e '.[docs,tests]'" in first.value
    assert "--no-deps -e ." in first.value.splitlines()[-1]


def test_a_folder_of_headers_or_data_is_no_module_of_the_repository() -> None:
    files = {"setup.py": "", "tests/test_a.py": "import yaml\nimport freezegun\n"}
    output = "E   ModuleNotFoundError: No module named 'yaml'\n"
    find = PythonDependencies().find_undeclared
    data = {"src/yaml/parser.h": "", "data/freezegun.json": ""}
    assert find(output, tree({**files, **data})) == ("PyYAML", "freezegun")
    code = {"src/yaml/parser.pyx": "", "data/freezegun.py": ""}
    assert find(output, tree({**files, **code})) == ()


def test_what_the_product_imports_is_added_only_where_a_manifest_names_it() -> None:
    files = {"pyproject.toml": EXTRAS, "shop.py": "import yaml\n"}
    output = "E   ModuleNotFoundError: No module named 'yaml'\n"
    find = PythonDependencies().find_undeclared
    assert find(output, tree(files)) == ()
    # the code of a manual is no product
    manual = {"pyproject.toml": EXTRAS, "docs/conf.py": "import yaml\n"}
    assert find(output, tree(manual)) == ("PyYAML",)
    # its own package in a folder of any name is not had from an index
    assert (
        find(output.replace("yaml", "numpy"), tree({**files, "python/numpy/__init__.py": ""})) == ()
    )
    # a part of a package bears the name only below that
    for part in ("shop/formats/yaml", "python/shop/formats/yaml"):
        own = {f"{part.partition('/formats')[0]}/__init__.py": "", f"{part}/__init__.py": ""}
        assert find(output, tree({**manual, **own})) == ("PyYAML",)
    assert find(output, tree({**files, "setup.cfg": "yaml = pyyaml>=5\n"})) == ("PyYAML",)


def test_a_failed_setups_reason_has_no_colours_and_is_no_heading() -> None:
    output = "[\x1b[1;31mERROR\x1b[m] [ERROR] Some problems were encountered:\n[ERROR] Plugin a:b could not be resolved\n\x1b[0m\x1b[0m"
    reason = describe_failure(SetupFailed("the setup exited with 1: \x1b[0m", output))
    assert reason == "the setup exited with 1 ([ERROR] Plugin a:b could not be resolved)"


def test_a_lock_bounds_versions_and_nothing_else(tmp_path: Path) -> None:
    """What a constraint file reads is no more than a name and a version, whatever text the lock holds."""
    lock, pins = tmp_path / "poetry.lock", tmp_path / "pins.txt"
    hostile = [
        ("six @ https://evil.example/six-1.0.tar.gz #", "1"),
        ("--extra-index-url https://evil.example/simple #", "1"),
        ("six", "1 @ https://evil.example/six.zip"),
    ]
    notes = "".join(f'name = "{name}"\nversion = "{version}"\n' for name, version in hostile)
    lock.write_text(
        f'[[package]]\nname = "idna"\nversion = "3.7"\n\n[metadata]\nnote = """\n{notes}"""\n'
    )
    subprocess.run([sys.executable, "-c", WRITE_PINS, str(lock), str(pins)], check=True)
    assert pins.read_text().split() == ["idna==3.7"]


MONOREPO = {
    "services/api/pyproject.toml": '[project]\nname = "api"\n',
    "services/api/tests/test_a.py": "def test_a():\n    pass\n",
    "web/package.json": '{"name": "web", "scripts": {"test": "vitest run"}}',
    "web/src/a.ts": "export const a = 1;\n",
    "web/examples/tiny/package.json": '{"name": "tiny", "scripts": {"test": "vitest run"}}',
    "tools/limit/go.mod": "module example.com/limit\n",
    "README.md": "# shop\n",
}


@pytest.mark.parametrize(
    ("touched", "command", "places"),
    [
        (["web/src/a.ts"], "", ["web"]),
        (["web/examples/tiny/a.js"], "", ["web"]),
        (["tools/limit/a.go", "web/package.json", "README.md"], "", ["tools/limit", "web"]),
        ([], "", ["services/api", "tools/limit", "web"]),
        ([], "cd web && npm test", ["web"]),
        ([], "npm --prefix web test", ["web"]),
        ([], "go -C tools/limit test ./...", ["tools/limit"]),
        (["services/api/a.py"], "npm -C web test", ["web"]),
    ],
)
def test_of_several_projects_those_are_set_up_that_a_change_touches(
    touched: list[str], command: str, places: list[str], tmp_path: Path
) -> None:
    first = infer(tmp_path, MONOREPO, command, touched=touched)[0]
    assert first.setup is not None
    folders = re.findall(r"(?m)^cd /work.(\S+)$", first.setup.value)
    assert folders == places
    assert first.setup.source.startswith(f"{places[0]}/")


def test_a_project_in_a_folder_imports_from_its_own_sources(tmp_path: Path) -> None:
    tree = {"api/requirements.txt": "", "api/src/shop/__init__.py": "", "api/tests/test_a.py": "def test_a():\n    pass\n", "web/package.json": "{}"}  # fmt: skip
    (first, *_) = infer(tmp_path, tree, touched=["api/src/shop/__init__.py"])
    assert first.setup is not None
    assert "/src" not in first.setup.value.replace("api/src", "")
    (line,) = (x for x in first.setup.value.split("\n") if "regreen-src.pth" in x)
    assert "abspath" in line


def test_the_tests_of_two_projects_fail_where_one_does(tmp_path: Path) -> None:
    (first, *_) = infer(tmp_path, MONOREPO, touched=["web/a.ts", "tools/limit/a.go"])
    assert first.test is not None
    assert first.test.value.startswith(
        f"failed=0\n( cd {'/work'}/tools/limit && go test ./...\n) || "
    )
    assert first.test.value.endswith("\nexit $failed")
    script = re.sub(r"cd /work.\S+ && (?:go|npm) test[^\n]*", "{}", first.test.value)
    ends = [
        subprocess.run(["sh", "-c", script.format(*words)], check=False).returncode
        for words in (("true", "true"), ("false", "true"), ("true", "false"))
    ]
    assert ends == [0, 1, 1]


def test_a_project_at_the_root_is_tried_alone_where_both_cannot_be_set_up(tmp_path: Path) -> None:
    files = {"setup.py": "from setuptools import setup\nsetup()\n", **TEST, **MONOREPO}
    both = infer(tmp_path, files, touched=["shop.py", "web/src/a.ts"])
    assert [bool(one.setup and "npm" in one.setup.value) for one in both][:1] == [True]
    assert both[-1].is_fallback
    assert both[-1].language == "python"


def test_a_workspace_of_the_root_is_no_project_of_its_own(tmp_path: Path) -> None:
    files = {
        "package.json": '{"workspaces": ["web"], "scripts": {"test": "npm test -ws"}}',
        "web/package.json": MONOREPO["web/package.json"],
        "web/src/a.ts": "",
    }
    (first, *_) = infer(tmp_path, files, touched=["web/src/a.ts"])
    assert first.setup is not None
    assert "cd " not in first.setup.value


def test_projects_in_folders_are_set_up_for_tests_at_the_root(tmp_path: Path) -> None:
    project = "from setuptools import setup\nsetup()\n"
    files = {**TEST, "core/setup.py": project, "more/setup.py": project, "web/package.json": "{}"}
    first, *_, last = infer(tmp_path, files, "python -m pytest -q")
    assert first.setup is not None
    assert re.findall(r"(?m)^cd /work/?(\S*)$", first.setup.value) == ["", "core", "more"]
    assert first.setup.value.count(" -e . ||") >= 2
    assert last.setup is not None
    assert last.is_fallback
    assert " -e ." not in last.setup.value
    # a manifest at the root says what the whole needs
    (alone, *_) = infer(tmp_path / "root", {**files, "setup.py": project}, "python -m pytest -q")
    assert alone.setup is not None
    assert "cd /work" not in alone.setup.value


def test_an_inferred_environment_is_shown_with_one_step_on_each_line() -> None:
    setup = "false 'a; b' && echo no || { echo \\; \"c && d\"; echo e; } # f; g"
    document = "cat <<A; x\nA"
    sources = {"setup": "tox.ini:3", "test": "tox.ini:9"}
    text = render_environment({"sources": sources, "setup": setup, "test": document})
    shown = text.partition("# setup, from tox.ini:3\n")[2].partition("\n```")[0]
    steps, test = shown.split("\n# test, from tox.ini:9\n")
    assert steps == "false 'a; b' &&\necho no ||\n{\necho \\; \"c && d\";\necho e;\n} # f; g"
    assert test == document
    written, broken = (
        subprocess.run(["sh", "-c", one], capture_output=True, check=True, text=True).stdout
        for one in (setup, steps)
    )
    assert written == broken == "; c && d\ne\n"
