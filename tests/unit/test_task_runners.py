"""What hides behind the names that projects give to their checks, and how a script that checks comes to write."""

from __future__ import annotations

import subprocess

import pytest

from regreen.fixers.recipes.task_runners import expand_command
from regreen.fixers.recipes.tool_output import add_unsafe_fixes, find_remedies_in_output
from regreen.shell.fixing_tools import find_generator_remedies, find_remedies, fixes_files_itself

NOX = """import nox


@nox.session(name="style", tags=["check"])
def lint(session):
    session.install("black")
    session.run("black", "--check", "-l", "100", "src")
    session.run("pytest", *session.posargs)


@nox.session
def tests(session):
    session.run("isort", "-c", "src")
"""
TOX = """[base]
paths = src tests

[testenv]
commands = pytest

[testenv:style]
commands =
    isort --check {posargs:src}
    - {envpython} -m black --check {[base]paths}
"""
TOX_TOML = (
    '[env.style]\ncommands = [["ruff", "format", "--check", "src"], ["black", "--check", "a b"]]\n'
)
HATCH = """[tool.hatch.envs.lint.scripts]
style = "black --check -S {args:src}"
all = ["style", "isort -c {args:.}"]
"""
TASKS = """[tool.poe.tasks]
style = "ruff check --select I pkg"
check = ["style", { cmd = "black --check pkg" }]
both = { sequence = ["style"] }

[tool.pdm.scripts]
lint = {composite = ["isort -c pkg"]}

[tool.taskipy.tasks]
lint = "black --check ."
"""
JUST = "src := 'pkg'\n\nlint:\n    ruff format --check {{src}}\n"
TASKFILE = "version: '3'\ntasks:\n  lint:\n    deps: [order]\n    cmds:\n      - black --check .\n      - task: more\n  order: isort -c .\n  more: {cmds: [{cmd: ruff check pkg}]}\n"
INVOKE = "from invoke import task\n\n\n@task\ndef check_style(c):\n    c.run('black --check pkg')\n"
PACKAGE = '{"scripts": {"check": "run-s \'check:*\'", "check:a": "prettier -c src", "check:b": "eslint src"}}'
HOOKS = """repos:
  - repo: https://example.org/mirror
    hooks: [{id: other}]
  - repo: local
    hooks:
      - {id: ruff, name: ruff, entry: ruff check --select I, language: system, types: [python], args: [--preview]}
      - {id: gen, name: gen, entry: black --check, language: python, files: '^src/', pass_filenames: true}
      - {id: whole, name: whole, entry: isort -c ., language: system, pass_filenames: false}
"""


@pytest.mark.parametrize(
    ("command", "files", "scripts"),
    [
        ("nox -s style", {"noxfile.py": NOX}, ["black -l 100 src"]),
        ("python -m nox -t check -R", {"noxfile.py": NOX}, ["black -l 100 src"]),
        ("nox", {"noxfile.py": NOX}, ["black -l 100 src", "isort src"]),
        ("tox -e style", {"tox.ini": TOX}, ["isort src", "python -m black src tests"]),
        ("uvx tox -qe style", {"tox.ini": TOX}, ["isort src", "python -m black src tests"]),
        ("tox run -e style", {"tox.toml": TOX_TOML}, ["ruff format src", "black 'a b'"]),
        ("hatch run lint:all", {"pyproject.toml": HATCH}, ["black -S src", "isort ."]),
        ("uv run poe check", {"pyproject.toml": TASKS}, ["black pkg", "ruff check --fix --select I pkg"]),
        ("poe both", {"pyproject.toml": TASKS}, ["ruff check --fix --select I pkg"]),
        ("pdm run lint", {"pyproject.toml": TASKS}, ["isort pkg"]),
        ("poetry run task lint", {"pyproject.toml": TASKS}, ["black ."]),
        ("task lint", {"Taskfile.yml": TASKFILE}, ["black .", "isort .", "ruff check --fix pkg"]),
        ("inv check-style", {"tasks.py": INVOKE}, ["black pkg"]),
        ("just lint", {"justfile": JUST}, ["ruff format 'pkg'"]),
        ("npm run check", {"package.json": PACKAGE}, ["prettier --write src", "eslint --fix src"]),
        ("pre-commit run -a", {".pre-commit-config.yaml": HOOKS}, [
            "ruff check --fix --select I --preview $(git ls-files '*.py')",
            "black $(git ls-files | grep -E '^src/')",
            "isort .",
        ]),
        ("pre-commit run whole", {".pre-commit-config.yaml": HOOKS}, ["isort ."]),
        ("bash -c 'black --check pkg'", {}, ["black pkg"]),
        ("make -C web style", {"web/Makefile": "style:\n\tprettier -c .\n"}, ["cd web\nprettier --write ."]),
        ("npm --prefix web run lint", {"web/package.json": '{"scripts": {"lint": "eslint src"}}'}, ["cd web\neslint --fix src"]),
        ("cd web\nnpm run lint", {"web/package.json": '{"scripts": {"lint": "eslint src"}}'}, ["cd web\neslint --fix src"]),
        ("cd a && cd b && black --check .", {}, ["cd a/b\nblack ."]),
    ],
)  # fmt: skip
def test_the_checkers_behind_a_task(
    command: str, files: dict[str, str], scripts: list[str]
) -> None:
    found = [one.script for one in find_remedies(*expand_command(command, files.get))]
    assert [script for script in scripts if script not in found] == []


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("tox -e style", {"tox.ini": "[testenv\ncommands = black --check ."}),
        ("poe check", {"pyproject.toml": "[tool.poe"}),
        ("poe check", {"pyproject.toml": "[tool.poe]\ntasks = 3"}),
        ("nox -s style", {"noxfile.py": "def ("}),
        ("task lint", {"Taskfile.yml": "tasks: [}"}),
        ("task lint", {"Taskfile.yml": "tasks: 3"}),
        ("pre-commit run", {".pre-commit-config.yaml": "repos: [3, {repo: local, hooks: 3}]"}),
        ("run-s 'a:*'", {"package.json": "[]"}),
        ("npm run a", {"package.json": '{"scripts": {"a": "npm run b", "b": "npm run a"}}'}),
    ],
)
def test_files_that_cannot_be_read_hide_nothing(command: str, files: dict[str, str]) -> None:
    assert find_remedies(*expand_command(command, files.get)) == ()


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
