"""What is inferred about a repository's environment, and from which file and line."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from time import process_time

import pytest

from regreen.domain.environments import Environment, RepositoryFiles
from regreen.domain.errors import AnalysisFailed
from regreen.environment.inference import infer_environments
from regreen.languages.python.project_setup import infer_python_setups
from regreen.packages.setup_command import find_needs
from regreen.packages.setup_guard import SourceTree, find_refusals
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
    tmp_path: Path, files: Mapping[str, str], command: str = "", *, days: int = 0
) -> tuple[Environment, ...]:
    repository = Repository(tmp_path / "repo")
    rev = repository.commit("start", dict(files))
    git = repository.open()
    today = git.commit(rev).date.date() + timedelta(days=days)
    return infer_environments(git, rev, pythons=HERE, today=today, command=command)


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


def test_the_job_that_runs_the_tests_comes_first(tmp_path: Path) -> None:
    files = {**TEST, "pyproject.toml": EXTRAS, ".github/workflows/ci.yml": WORKFLOW}
    first = infer(tmp_path, files)[0]
    assert first.setup is not None
    assert first.setup.value.splitlines()[-1] == "pip install -e .[tests]"
    assert first.setup.source == ".github/workflows/ci.yml:16"
    assert first.test is not None
    assert first.test.value == "pytest -x tests"
    assert first.python in {"3.10", "3.12"}


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
        ({"pnpm-lock.yaml": "", "package.json": '{"scripts": {"test": "vitest run"}}'}, "javascript", "npx --yes pnpm install", "npm test"),
        ({"go.mod": "module a\n"}, "go", "go mod download", "go test ./..."),
        ({"Cargo.toml": '[package]\nname = "a"\n'}, "rust", "cargo fetch", "cargo test"),
        ({"pom.xml": "<project/>"}, "java", "mvn", "mvn"),
        ({**TEST, "uv.lock": "", "pyproject.toml": '[project]\nname = "a"\n[dependency-groups]\ntest = []\n'}, "python", "python -m pip install -q uv\nuv sync -q --active --frozen --group test", "python -m pytest -q"),
        ({**TEST, "tox.ini": "[testenv]\ndeps =\n  mock\n  old: six\ncommands = python -m unittest discover {posargs}\n"}, "python", "python -m pip install", "python -m unittest discover"),
        ({**TEST, "Makefile": "test: build\n\tpython -m pytest tests --cov\n"}, "python", "python -m pip install", "python -m pytest -q tests"),
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


def test_hostile_manifests_name_nothing_for_the_shell(tmp_path: Path) -> None:
    text = '[project]\nname = "a"\ndependencies = ["x; touch /tmp/y", "$(id)", "git+https://example.org/a"]\n[project.optional-dependencies]\n"test;id" = []\ntest = ["`id`"]\n'
    for environment in infer(tmp_path, {**TEST, "pyproject.toml": text}):
        assert environment.setup is not None
        for word in ("touch", "$(", "`", ";id", "example.org"):
            assert word not in environment.setup.value


def test_the_guard_judges_an_inferred_setup_like_any_other(tmp_path: Path) -> None:
    files = {**TEST, "pyproject.toml": EXTRAS.replace("freezegun", "freezgun-helper-x")}
    *_, last = infer(tmp_path, files)
    assert last.setup is not None
    tree = SourceTree(dict.fromkeys(files, "1"), lambda path: files[path].encode())
    refused = find_refusals(last.setup.value, (), tree, SourceTree({}, lambda _: None))
    assert "freezgun-helper-x" in str(refused)
    assert not find_needs(last.setup.value, files, lambda path: files[path].encode()).everything


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
