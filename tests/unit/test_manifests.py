"""What a setup depends on, and which Python a repository wants."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regreen.domain.models import TreeEntry
from regreen.packages.manifests_and_locks import read_declared
from regreen.packages.python_version import choose_python_version, digest_setup_inputs

FILES = {
    "pyproject.toml": '[project]\nname = "x"\nversion = "1"\n',
    "setup.cfg": "",
    "requirements.txt": "-r more/base.txt\n-c constraints.txt\npytest\n",
    "more/base.txt": "attrs>=22 ; python_version > '3'\n",
    "constraints.txt": "attrs<99\n",
    "src/x/__init__.py": "",
    "src/x/core.py": "a = 1\n",
    "src/x/fast.c": "int a;",
    "tests/test_x.py": "",
    "docs/index.txt": "",
    "package.json": '{"name": "x"}',
    "package-lock.json": "{}",
    "go.mod": "",
    "Makefile": "",
}


def digest(setup: str, files: Mapping[str, str], *, reading: bool = True) -> str:
    tree = [
        TreeEntry(path, "100644", hashlib.sha1(content.encode()).hexdigest(), len(content))  # noqa: S324
        for path, content in sorted(files.items())
    ]
    read = (lambda path: files[path].encode() if path in files else None) if reading else None
    return digest_setup_inputs(setup, tree, read)


def depends(setup: str, files: Mapping[str, str] = FILES, *, reading: bool = True) -> set[str]:
    """The files whose change changes the digest."""
    before = digest(setup, files, reading=reading)
    return {
        path
        for path in files
        if digest(setup, {**files, path: files[path] + "\n# changed"}, reading=reading) != before
    }


@pytest.mark.parametrize(
    "setup",
    [
        "pip install pytest",
        "pip  install   -U pip 'attrs>=20' hypothesis[cli]==6.1",
        "python -m pip install -q pytest && python3.11 -m pip install coverage; pip3 install tox",
        "FOO=1 pip install pytest >/dev/null 2>&1",
        "uv pip install pytest # and no more",
        "pip install git+https://example.org/a/b#egg=b https://example.org/a.whl",
        "pip install -i https://index.example/simple --no-cache-dir pytest",
        "apt-get install -y libfoo && true",
        "python -m venv .venv",
        "set -e\nexport A=1\npip install \\\n  pytest",
        "npm config set x y",
        "",
    ],
)
def test_named_packages_depend_on_nothing(setup: str) -> None:
    assert depends(setup) == set()
    assert digest(setup, FILES) == ""


@pytest.mark.parametrize(
    "setup",
    [
        "pip install .",
        "pip install ./src",
        "pip install .[test]",
        "pip install x.whl",
        "pip install -r requirements.txt .",
        "python setup.py install",
        "python setup.py build_ext --inplace",
        "make",
        "make deps && pip install pytest",
        "./bootstrap.sh",
        "bash tools/setup.sh",
        "cd src && pip install pytest",
        "pip install $(cat requirements.txt)",
        "pip install `cat x`",
        "pip install -r $REQ",
        "xargs pip install < requirements.txt",
        "pip install pytest 'unclosed",
        "if true; then make; fi",
        "pip install -f ./wheels pytest",
        "pip install -r ../outside.txt",
        "tox --notest",
        "npm run build",
        "uv sync --no-editable",
        "pip install -r /etc/requirements.txt",
    ],
)
def test_what_copies_the_tree_or_is_unknown_depends_on_all_of_it(setup: str) -> None:
    assert depends(setup) == set(FILES)


@pytest.mark.parametrize(
    "setup",
    [
        "pip install -r requirements.txt",
        "pip install -rrequirements.txt",
        "pip install --requirement=requirements.txt",
        "pip  install\t-r  ./requirements.txt  pytest",
        "pip install -U pip; pip install -r requirements.txt && echo done",
    ],
)
def test_a_requirements_file_depends_on_what_it_includes(setup: str) -> None:
    assert depends(setup) == {"requirements.txt", "more/base.txt", "constraints.txt"}


def test_without_the_content_whatever_could_be_included_counts() -> None:
    found = depends("pip install -r requirements.txt", reading=False)
    assert {"requirements.txt", "more/base.txt", "constraints.txt"} <= found
    assert not found & {"src/x/core.py", "tests/test_x.py", "Makefile"}


def test_requirements_that_include_each_other_end() -> None:
    files = {"a.txt": "-r b.txt\n", "b.txt": "-r a.txt\n", "c.py": ""}
    assert depends("pip install -r a.txt", files) == {"a.txt", "b.txt"}


def test_a_requirements_file_can_install_the_tree_itself() -> None:
    assert depends("pip install -r r.txt", {**FILES, "r.txt": ".\n"}) == {*FILES, "r.txt"}
    editable = depends("pip install -r r.txt", {**FILES, "r.txt": "-e .[dev]\n"})
    assert "pyproject.toml" in editable
    assert "src/x/core.py" not in editable


@pytest.mark.parametrize(
    "setup",
    ["pip install -e .", "pip install -e '.[test]' pytest", "pip install --editable=.", "uv sync",
     "python setup.py develop", "poetry install", "pdm install --dev"],
)  # fmt: skip
def test_an_editable_install_depends_on_manifests_and_compiled_sources(setup: str) -> None:
    found = depends(setup)
    assert {"pyproject.toml", "setup.cfg", "requirements.txt", "src/x/fast.c"} <= found
    assert not found & {"src/x/core.py", "src/x/__init__.py", "tests/test_x.py", "docs/index.txt"}


def test_a_version_kept_in_the_package_counts() -> None:
    files = {**FILES, "setup.cfg": "[metadata]\nversion = attr: x.__version__\n"}
    assert "src/x/__init__.py" in depends("pip install -e .", files)


def test_python_that_gets_compiled_counts_as_a_whole() -> None:
    files = {**FILES, "setup.py": "from mypyc.build import mypycify\n"}
    assert depends("pip install -e .", files) == set(files)


@pytest.mark.parametrize(
    ("commands", "is_whole"),
    [
        ("cmdclass={'test': PyTest}", False),
        ('cmdclass = {\n    "test": PyTest,\n    "build_docs": docs.Build,\n}', False),
        ("cmdclass={'test': PyTest, 'build': Build}", True),
        ("cmdclass={'test': PyTest, **more}", True),
        ("cmdclass={'develop': Develop}", True),
        ("cmdclass={'test': make('develop')}", True),
        ("cmdclass={}\ncmdclass['test'] = PyTest", True),
        ("cmdclass=versioneer.get_cmdclass()", True),
    ],
)
def test_commands_that_no_installation_runs_decide_nothing(
    commands: str, *, is_whole: bool
) -> None:
    files = {**FILES, "setup.py": f"from setuptools import setup\nsetup(\n    name='x',\n    {commands},\n)\n"}  # fmt: skip
    assert (depends("pip install -e .", files) == set(files)) == is_whole


def test_node_packages_depend_on_their_manifests() -> None:
    assert depends("npm ci") == {"package.json", "package-lock.json"}
    prepared = {**FILES, "package.json": '{"scripts": {"prepare": "tsc"}}'}
    assert depends("npm ci", prepared) == set(FILES)


def test_go_modules_depend_on_their_manifests() -> None:
    assert depends("go mod download") == {"go.mod"}


def test_the_order_of_the_tree_does_not_matter() -> None:
    assert digest("make", FILES) == digest("make", dict(reversed(FILES.items())))


@given(st.text(max_size=60))
def test_no_command_breaks_it(setup: str) -> None:
    digest(setup, {"a": "b"})


@given(
    st.lists(
        st.sampled_from(
            ["pip", "install", "-r", "-e", ".", "&&", ";", "x", "--", "'", "$", "(", ")", "-c"]
        )
    )
)
def test_no_pip_command_breaks_it(words: list[str]) -> None:
    digest(" ".join(words), FILES)


# -- which Python ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tree:
    """The one question of a repository that is asked here."""

    files: Mapping[str, str]

    def show(self, rev: str, path: str, limit: int = 0) -> bytes | None:  # noqa: ARG002 - the port's
        return self.files[path].encode() if path in self.files else None


HERE = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13")


def chosen(**files: str) -> str | None:
    tree = Tree(
        {name.replace("_hyphen_", "-").replace("__", "."): text for name, text in files.items()}
    )
    return choose_python_version(tree, "HEAD", HERE)  # type: ignore[arg-type]


def test_a_pinned_version_wins() -> None:
    assert (
        chosen(
            __python_hyphen_version="3.9.7\n",
            pyproject__toml='[project]\nrequires-python = ">=3.8"',
        )
        == "3.9"
    )


def test_a_repository_that_does_not_say_gets_the_default() -> None:
    assert chosen() is None
    assert chosen(pyproject__toml="not [ toml") is None


@pytest.mark.parametrize(
    ("wanted", "found"),
    [(">=3.8", "3.13"), (">=3.8,<3.11", "3.10"), ("==3.9.*", "3.9"), (">=3.8.1,<3.9", "3.8"), ("~=3.10", "3.13"),
     (">=3.14", None), ("<3", None)],
)  # fmt: skip
def test_the_newest_that_the_range_allows(wanted: str, found: str | None) -> None:
    assert chosen(pyproject__toml=f'[project]\nrequires-python = "{wanted}"\n') == found


def test_classifiers_say_what_was_tried() -> None:
    text = '[project]\nrequires-python = ">=3.8"\nclassifiers = ["Programming Language :: Python :: 3.10"]\n'
    assert chosen(pyproject__toml=text) == "3.10"


def test_older_manifests_are_read_too() -> None:
    assert chosen(setup__cfg="[options]\npython_requires = >=3.8, <3.10\n") == "3.9"
    assert chosen(setup__py="setup(python_requires='>=3.8,<3.12')") == "3.11"
    assert chosen(pyproject__toml='[tool.poetry.dependencies]\npython = "^3.8"\n') == "3.13"
    assert chosen(pyproject__toml='[tool.poetry.dependencies]\npython = "~3.8"\n') == "3.8"


def test_where_nothing_that_was_tried_is_to_be_had_the_nearest_is_taken() -> None:
    old = "setup(classifiers=['Programming Language :: Python :: 2.7', 'Programming Language :: Python :: 3.4'])"
    assert chosen(setup__py=old) == "3.8"
    assert chosen(setup__py=old.replace("3.4", "3.14")) == "3.13"


def test_a_requirement_of_setup_cfg_may_go_on_behind_comments() -> None:
    text = "[options]\ninstall_requires =\n  attrs >= 22; \\\n    # not there\n    python_implementation != 'PyPy'\n  click\n"
    found = read_declared("setup.cfg", text).dependencies
    assert [(one.name, one.line) for one in found] == [("attrs", 3), ("click", 6)]
