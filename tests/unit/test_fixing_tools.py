"""How a call that checks becomes a call that writes, and which calls of a command are seen."""

from __future__ import annotations

import subprocess

import pytest

from regreen.fixers.recipes.tool_output import add_unsafe_fixes, find_remedies_in_output
from regreen.shell.called_scripts import use_setup_call
from regreen.shell.fixing_tools import find_generator_remedies, find_remedies, fixes_files_itself


@pytest.mark.parametrize(
    ("command", "script"),
    [
        ('for f in $(git ls-files "*.py"); do black --check -q "$f" || exit 1; done',
         'for f in $(git ls-files "*.py"); do black -q "$f" || true || true; done'),
        ("git ls-files '*.py' | xargs -0 isort -c", "git ls-files '*.py' | xargs -0 isort || true"),
        ("find src -name '*.py' -exec black --check -q {} +", "find src -name '*.py' -exec black -q {} +"),
        ("echo 'a; black --check b'; black --check c", "black c"),
        ("pytest -q && (cd src && black --check .)", "true && (cd src && black . || true)"),
        ("if ! ruff format --check src; then echo no; exit 1; fi",
         "if ! ruff format src || true; then echo no; true; fi"),
    ],
)  # fmt: skip
def test_a_checker_is_turned_round_where_it_stands(command: str, script: str) -> None:
    found = [" ".join(one.script.split()) for one in find_remedies(command)]
    assert script in found


def test_words_that_a_tool_chose_are_left_until_the_layout_alone_does_not_help() -> None:
    found = find_remedies("black --check . && codespell docs")
    assert [one.approval is not None for one in found] == [False, True, False, True]


def test_several_scripts_are_mended_together() -> None:
    found = find_remedies("black --check a", "cd web\nprettier -c .")
    assert found[0].script.count("(\nblack a\n)\n(\ncd web\nprettier --write .\n)") == 2


def test_what_is_written_for_a_shell_is_read_by_one() -> None:
    whole = "(black --check a || exit 1)\nisort -c a && (cd b; black --check .)"
    for remedy in find_remedies(whole, "cd web\nprettier -c ."):
        read = subprocess.run(
            ["bash", "-n", "-c", f"(\n{remedy.script}\n)"], capture_output=True, check=False
        )
        assert read.stderr == b"", remedy.script
        assert "((" not in remedy.script


def test_fixes_that_ruff_calls_unsafe_are_for_a_person() -> None:
    said = "F841 Local variable `x` is assigned to but never used\nNo fixes available (1 hidden fix can be enabled with the `--unsafe-fixes` option)."
    newer = "Found 1 error.\n[*] 1 fixable with `--fix` (2 unsafe fixes available with `--fix --unsafe-fixes`)"
    for output in (said, newer):
        found = list(add_unsafe_fixes(find_remedies("uv run ruff check src"), output))
        assert [one.script for one in found] == ["uv run ruff check --fix --unsafe-fixes src"]
        assert found[0].approval is not None
    assert list(add_unsafe_fixes(find_remedies("ruff check src"), "Found 1 error.")) == []


def test_ruff_says_in_two_ways_that_it_can_fix() -> None:
    place = "F401 [*] `os` imported but unused\n --> pkg/a.py:1:8\n"
    for end in (
        "[*] 1 fixable with the `--fix` option.",
        "[*] 1 fixable with `--fix` (1 unsafe fix available with `--fix --unsafe-fixes`)",
    ):
        assert [one.script for one in find_remedies_in_output(place + end, ())] == [
            "ruff check --fix pkg/a.py"
        ]


@pytest.mark.parametrize(
    ("command", "scripts"),
    [
        ("python tools/gen.py --check --all", ["python tools/gen.py --all"]),
        ("python manage.py makemigrations --check --dry-run", ["python manage.py makemigrations"]),
        ("uv run python -m tools.gen --check", ["uv run python -m tools.gen"]),
        ("node scripts/gen.mjs --check", ["node scripts/gen.mjs"]),
        ("poetry check --lock --verify", []),
        ("cd docs && ./toc.sh --check", ["cd docs\n./toc.sh"]),
        ("black --check .", []),
        ("cargo publish --dry-run", []),
        ("git diff --check", []),
    ],
)
def test_a_script_that_was_told_only_to_look(command: str, scripts: list[str]) -> None:
    assert [one.script for one in find_generator_remedies(command)] == scripts


@pytest.mark.parametrize(
    "command", ["python -m pre_commit run -a", "requirements-txt-fixer reqs.txt", "uvx prek run"]
)
def test_hooks_leave_the_files_as_they_want_them(command: str) -> None:
    assert fixes_files_itself(command)


@pytest.mark.parametrize(
    ("setup", "script"),
    [
        ("npx --yes pnpm@9 install --frozen-lockfile", "npx --yes pnpm@9 lock"),
        ("cd web && /opt/x/.bin/pnpm install", "/opt/x/.bin/pnpm lock"),
        ("pnpm install", "pnpm lock"),
    ],
)
def test_a_lock_is_written_by_the_tool_that_the_setup_calls(setup: str, script: str) -> None:
    assert use_setup_call("pnpm lock", setup) == script
