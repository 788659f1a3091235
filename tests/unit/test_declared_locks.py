"""Lock files of yarn, pnpm and Go: what they hold, and what a manifest beside them lacks there."""

from __future__ import annotations

from pathlib import Path

import pytest

from regreen.packages.manifests_and_locks import read_declared
from tests.unit.changes import Files, Story

YARN = """# yarn lockfile v1


"@babel/core@^7.0.0", "@babel/core@^7.1.0":
  version "7.2.0"
  resolved "https://mirror.example.org/@babel/core/-/core-7.2.0.tgz#abc"
  integrity sha512-x==
  dependencies:
    ms "2.0.0"

ms@2.0.0:
  version "2.0.0"
"""
BERRY = """__metadata:
  version: 6

"ms@npm:^2.0.0":
  version: 2.1.3
  resolution: "ms@npm:2.1.3"
  checksum: aa
  languageName: node

"app@workspace:.":
  version: 0.0.0-use.local
"""
PNPM = """lockfileVersion: '9.0'

importers:

  .:
    dependencies:
      ms:
        specifier: ^2.0.0
        version: 2.1.3

packages:

  '@babel/core@7.2.0':
    resolution: {integrity: sha512-x==}

  /ms/2.1.3:
    resolution: {tarball: https://mirror.example.org/ms.tgz}
"""
GO_SUM = "example.com/a v1.0.0 h1:x=\nexample.com/a v1.0.0/go.mod h1:y=\nexample.com/b v0.1.0/go.mod h1:z=\n"


@pytest.mark.parametrize(
    ("path", "text", "held", "hosts"),
    [
        ("yarn.lock", YARN, [("@babel/core", True), ("ms", False)], ["https://mirror.example.org"]),
        ("yarn.lock", BERRY, [("ms", True)], []),
        ("pnpm-lock.yaml", PNPM, [("@babel/core", True), ("ms", False)], ["https://mirror.example.org"]),
        ("go.sum", GO_SUM, [("example.com/a", True), ("example.com/b", True)], []),
    ],
)  # fmt: skip
def test_a_lock_says_what_it_holds(
    path: str, text: str, held: list[tuple[str, bool]], hosts: list[str]
) -> None:
    found = read_declared(path, text)
    assert [(d.name, d.hashed) for d in found.dependencies] == held
    assert [address for address, _ in found.indexes] == hosts
    assert found.is_lock


def said(root: Path, before: Files, after: Files) -> list[tuple[str, str]]:
    story = Story(root / "repo")
    story.change(before, after)
    rules = ("dependencies/lock-mismatch", "dependencies/index-changed", "dependencies/hash-lost")
    return [(f.rule, f.path) for f in story.review().findings if f.rule in rules]


def test_a_manifest_that_is_ahead_of_its_lock_is_said(tmp_path: Path) -> None:
    old, new = '{"dependencies": {\n"ms": "2"\n}}', '{"dependencies": {\n"ms": "2",\n"debug": "4"\n}}'  # fmt: skip
    for number, lock in enumerate(({"yarn.lock": YARN}, {"pnpm-lock.yaml": PNPM})):
        found = said(tmp_path / str(number), {"package.json": old, **lock}, {"package.json": new})
        assert found == [("dependencies/lock-mismatch", "package.json")]
    mod = "module example.com/m\n\nrequire example.com/a v1.0.0\n"
    more = f"{mod}require example.com/c v1.0.0\n"
    found = said(tmp_path / "go", {"go.mod": mod, "go.sum": GO_SUM}, {"go.mod": more})
    assert found == [("dependencies/lock-mismatch", "go.mod")]


def test_a_lock_that_comes_from_elsewhere_or_loses_a_sum_is_said(tmp_path: Path) -> None:
    usual = YARN.replace('  resolved "https://mirror.example.org/@babel/core/-/core-7.2.0.tgz#abc"\n', "")  # fmt: skip
    assert said(tmp_path / "a", {"yarn.lock": usual}, {"yarn.lock": YARN}) == [
        ("dependencies/index-changed", "yarn.lock")
    ]
    assert said(
        tmp_path / "b", {"yarn.lock": YARN}, {"yarn.lock": YARN.replace("  integrity sha512-x==\n", "")}
    ) == [("dependencies/hash-lost", "yarn.lock")]  # fmt: skip
