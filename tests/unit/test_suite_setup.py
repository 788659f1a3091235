"""What a repository says that its tests want to have installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from regreen.languages.python.dependencies import PythonDependencies
from regreen.packages.setup_command import find_setup_inputs
from tests.unit.repairs import Repository

PYPROJECT = """
[project]
dependencies = ["click>=8"]
[project.optional-dependencies]
test = ["freezegun"]
docs = ["sphinx"]
[dependency-groups]
dev = ["ruff", "hypothesis>=6,<7", {include-group = "test"}]
lint = ["pylint"]
"""


def words(tmp_path: Path, **files: str) -> list[str]:
    repository = Repository(tmp_path / "repo")
    names = {name.replace("__", "/").replace("_dot_", "."): text for name, text in files.items()}
    rev = repository.commit("start", names)
    setup = PythonDependencies().make_test_setup(repository.open(), rev)
    assert not find_setup_inputs(setup, names).everything  # the environment outlives a patch
    first, *more = setup.splitlines()
    assert first.endswith(" pytest")
    return more[0].partition(" || ")[0].split()[6:] if more else []


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"README_dot_md": "hello"}, []),
        ({"pyproject_dot_toml": PYPROJECT}, ["click>=8", "freezegun", "hypothesis>=6,<7"]),
        ({"requirements-test_dot_txt": "nose\npyyaml<6\nflake8\n"}, ["nose", "pyyaml<6"]),
        ({"requirements__tests_dot_in": "attrs\n", "requirements__tests_dot_txt": "attrs==20.3.0\nzipp==3.4.0\n"}, ["attrs"]),
        ({"test-requirements_dot_txt": "mock\n", "dev-requirements_dot_txt": "ipython\n"}, ["mock"]),
        ({"tox_dot_ini": "[testenv]\ndeps =\n    pytest-mock\n    coverage\n"}, ["pytest-mock"]),
        ({"Pipfile": '[dev-packages]\npytest-httpbin = "==0.0.7"\npysocks = "*"\n'}, ["pytest-httpbin==0.0.7", "pysocks"]),
        ({"setup_dot_cfg": "[options]\ninstall_requires =\n    idna\n    mine\n", "mine__a_dot_py": ""}, ["idna"]),
        ({"requirements-test_dot_txt": "git+https://example.org/a/b#egg=b\nx; touch /tmp/y\n"}, ["x"]),
        ({"pyproject_dot_toml": "not [ toml"}, []),
        ({"requirements__test_dot_txt": "-r ../base.txt\n-r ./more.txt\n", "base_dot_txt": "attrs\n", "requirements__more_dot_txt": "idna\n"}, ["attrs", "idna"]),
        ({"tox_dot_ini": "[testenv]\ndeps =\n    -r ./base.txt\n    -r ../outside.txt\n", "base_dot_txt": "attrs\n"}, ["attrs"]),
    ],
)  # fmt: skip
def test_what_the_tests_want(tmp_path: Path, files: dict[str, str], found: list[str]) -> None:
    assert [word.strip("'") for word in words(tmp_path, **files)] == found


@pytest.mark.timeout(60)
def test_each_requirements_file_is_read_once(tmp_path: Path) -> None:
    chain = {f"part{n}_dot_txt": f"-r part{n + 1}.txt\n-r part{n + 1}.txt\n" for n in range(28)}
    files = {**chain, "requirements_dot_txt": "-r part0.txt\n", "part28_dot_txt": "attrs\n"}
    assert words(tmp_path, **files) == ["attrs"]
