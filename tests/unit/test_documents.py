"""Configuration that a change makes unreadable, and configuration that only looks so."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regreen.reviewers.analyzers.syntax import BrokenSyntax, find_syntax_fault, is_readable_document
from tests.unit.changes import Story


@pytest.mark.parametrize(
    ("path", "before", "after", "line"),
    [
        ("package.json", '{\n  "a": 1\n}\n', '{\n  "a": 1,\n}\n', 2),
        ("x.toml", "a = 1\n", 'a = 1\nb = ["x" "y"]\n', 2),
        ("x.toml", "a = 1\n", "a = 1\nb = [\n", 2),
        ("conf/x.yml", "a:\n  b: 1\n", "a:\n  b: 1\n c: 2\n", 3),
        (".github/workflows/ci.yml", "on: push\n", "on: push\nname: ${{ x }}: y\n", 2),
    ],
)
def test_a_file_that_can_no_longer_be_read(
    tmp_path: Path, path: str, before: str, after: str, line: int
) -> None:
    story = Story(tmp_path / "repo")
    story.change({path: before}, {path: after})
    context = story.context()
    (claim,) = BrokenSyntax().run(context).claims
    assert (claim.rule, claim.path, claim.line) == ("syntax/error", path, line)
    assert context.change.can_anchor(path, claim.start_line, claim.line)
    broken = Story(tmp_path / "other")
    broken.change({path: after}, {path: after + "\n# more\n"})
    assert BrokenSyntax().run(broken.context()).claims == (), "it could not be read before either"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.json", '{"a": [1, 2.5e3, null]}'),
        ("a.toml", "a = 1\n[b.c]\nd = 2020-01-01\n"),
        ("a.yml", "a: !Ref x\n---\nb: !!python/name:os.path\n"),
        ("chart/templates/a.yaml", "{{- if .Values.on }}\na: {{ .Values.a }}\n{{- end }}\n"),
        ("a.yml", "x: y\n" * 60_000),
        (".github/workflows/ci.yml", "on: push\nname: ${{ github.ref }}\n"),
    ],
)
def test_what_its_readers_take_has_no_fault(path: str, text: str) -> None:
    assert find_syntax_fault(path, text) is None


@pytest.mark.parametrize("path", ["tsconfig.json", "a/tsconfig.build.json", ".vscode/settings.json", "a.jsonc", "a.py", "json"])  # fmt: skip
def test_other_files_are_none_of_its_business(path: str) -> None:
    assert not is_readable_document(path)


@given(st.text(max_size=300), st.sampled_from(["a.json", "a.toml", "a.yml"]))
def test_no_text_makes_it_fail(text: str, path: str) -> None:
    found = find_syntax_fault(path, text)
    assert found is None or 1 <= found[0] <= text.count("\n") + 2
