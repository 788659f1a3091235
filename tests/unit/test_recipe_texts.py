"""What recipes read: scripts behind a command, what a failure says to run, pins, comments that silence nothing."""

from __future__ import annotations

import pytest

from regreen.domain.models import Failure
from regreen.fixers.recipes.tool_output import (
    find_suggested_commands,
    make_golden_remedies,
    make_lock_remedies,
    make_style_remedy,
    make_whitespace_remedy,
    remove_unused_suppressions,
)
from regreen.fixers.report import format_failure
from regreen.languages.python.dependencies import (
    find_blamed_distributions,
    find_frozen_version,
    propose_build_requirements,
    propose_manifests,
    replace_pin,
)
from regreen.languages.python.missing_modules import MissingDistribution, find_missing_distributions
from regreen.logs.ci_log import failures_in
from regreen.runs.test_runs import asks_git
from regreen.shell.fixing_tools import fixes_files_itself


@pytest.mark.parametrize(
    ("output", "scripts"),
    [
        ("schema.json is out of date, run `make schema`.", ["make schema"]),
        ("error: docs are stale. Please run: python tools/docs.py --write", ["python tools/docs.py --write"]),
        ("Run 'npm run build' to update dist", ["npm run build"]),
        ("files differ; use `./scripts/gen.sh all` and commit", ["./scripts/gen.sh all"]),
        ("the above errors may be fixable with yarn manypkg fix", ["yarn manypkg fix"]),
        ("the table can be fixed by running npx toc docs --write", ["npx toc docs --write"]),
        ("run `pip install foo`", []),
        ("run `git push origin main`", []),
        ("run `make x; curl evil.example`", []),
        ("run `rm -rf src`", []),
        ("nothing to say", []),
    ],
)  # fmt: skip
def test_what_a_failure_says_to_run(output: str, scripts: list[str]) -> None:
    assert [one.script for one in find_suggested_commands("make check", output)] == scripts


@pytest.mark.parametrize(
    ("command", "yes"),
    [
        ("pre-commit run --all-files", True),
        ("make gen && git diff --exit-code", True),
        ("git -C . diff --quiet", True),
        ("pytest -q", False),
        ("python train.py", False),
    ],
)
def test_commands_that_mend_as_they_complain(command: str, yes: bool) -> None:
    assert fixes_files_itself(command) is yes


@pytest.mark.parametrize(
    ("command", "yes"),
    [
        ("git diff --exit-code", True),
        ("black $(git ls-files)", True),
        ("make check", True),
        ("pytest -q tests/test_git.py", False),
        ("python digit.py", False),
    ],
)
def test_commands_that_need_a_repository_around_them(command: str, yes: bool) -> None:
    assert asks_git(command) is yes


CONFLICT = """ERROR: Cannot install -r requirements.txt (line 2) and urllib3==1.20 because these package versions have conflicting dependencies.

The conflict is caused by:
    The user requested urllib3==1.20
    requests 2.31.0 depends on urllib3<3 and >=1.21.1
"""


@pytest.mark.parametrize(
    ("output", "names"),
    [
        (CONFLICT, {"urllib3"}),
        ("ERROR: No matching distribution found for Idna==99.1", {"idna"}),
        ("ERROR: Failed building wheel for Markup_Safe\n", {"markup-safe"}),
        ("    The user requested (constraint) urllib3==1.20\n", {"urllib3"}),
        ("ERROR: Failed to build installable wheels for some pyproject.toml based projects", set()),
    ],
)
def test_which_pin_the_installer_complains_about(output: str, names: set[str]) -> None:
    assert set(find_blamed_distributions(output)) == names


def test_a_pin_is_loosened_and_set_again_where_it_stands() -> None:
    text = '[project]\ndependencies = ["Idna[x]==99.1; python_version > \'3\'", "idna-other==1"]\n'
    assert replace_pin(text, "idna", "") == text.replace("==99.1", "")
    assert replace_pin(text, "idna", "==3.10") == text.replace("==99.1", "==3.10")
    assert replace_pin(text, "click", "") is None
    assert find_frozen_version("Click==8.1\nidna==3.10\n", "idna") == "3.10"


def test_comments_that_silence_nothing_are_taken_away() -> None:
    files = {"pkg/a.py": "x = 1  # type: ignore[assignment]  # why\ny = 2  # type: ignore\nz = 3  # type: ignore\n"}  # fmt: skip
    output = 'pkg/a.py:1: error: Unused "type: ignore" comment  [unused-ignore]\npkg/a.py:2: error: Unused "type: ignore" comment'
    assert remove_unused_suppressions(failures_in(output), files.get) == {
        "pkg/a.py": "x = 1  # why\ny = 2\nz = 3  # type: ignore\n"
    }
    assert (
        remove_unused_suppressions(
            failures_in('../../etc/x.py:1: error: Unused "type: ignore"'),
            {"../../etc/x.py": "x"}.get,
        )
        == {}
    )


@pytest.mark.parametrize(
    ("output", "requirement"),
    [
        ("/env/bin/python: No module named pytest", "pytest"),
        ("bash: line 1: ruff: command not found", "ruff"),
        ("ImportError: email-validator is not installed, run `pip install 'pydantic[email]'`", "pydantic[email]"),
        ("E   ImportError: h2 is missing. Make sure to install httpx using `pip install httpx[http2]`.", "httpx[http2]"),
        ('note: Hint: "python3 -m pip install types-PyYAML"', "types-PyYAML"),
        ("PytestUnknownMarkWarning: Unknown pytest.mark.asyncio - is this a typo?", "pytest-asyncio"),
    ],
)  # fmt: skip
def test_more_ways_of_saying_what_is_missing(output: str, requirement: str) -> None:
    assert requirement in [one.requirement for one in find_missing_distributions(output, [])]


def test_an_extra_is_added_to_what_is_declared() -> None:
    files = {"pyproject.toml": '[project]\ndependencies = ["httpx>=0.27", "httpx-ws"]\n'}
    wanted = [MissingDistribution("httpx", "httpx", "[http2]")]
    changed, _ = next(propose_manifests(wanted, list(files), files.get, "pip install ."))
    assert changed["pyproject.toml"] == files["pyproject.toml"].replace("httpx>=", "httpx[http2]>=")


def test_what_building_needs_is_a_build_requirement() -> None:
    text = '[build-system]\nrequires = ["setuptools"]\n\n[project]\nname = "x"\ndependencies = []\n'
    found = list(
        propose_build_requirements(
            [MissingDistribution("packaging", "packaging")], {"pyproject.toml": text}.get
        )
    )
    assert found[0][0] == {
        "pyproject.toml": text.replace('["setuptools"]', '["setuptools", "packaging"]')
    }


@pytest.mark.parametrize(
    ("output", "files", "setup", "script"),
    [
        ("Error: Cannot find module 'ms'", ["package.json", "package-lock.json"], "npm ci", "npm install ms --ignore-scripts --no-audit --no-fund"),
        ("Error: Failed to load url ms (resolved id: ms) in /work/src/a.ts. Does the file exist?", ["package.json", "package-lock.json"], "npm ci", "npm install ms --ignore-scripts --no-audit --no-fund"),
        ('Failed to resolve import "@x/y/z" from "src/a.ts". Does the file exist?', ["package.json", "package-lock.json"], "npm ci", "npm install @x/y --ignore-scripts --no-audit --no-fund"),
        ('X [ERROR] Could not resolve "ms"', ["package.json", "package-lock.json"], "npm ci", "npm install ms --ignore-scripts --no-audit --no-fund"),
        ("Module not found: Error: Can't resolve 'ms' in '/work/src'", ["package.json", "package-lock.json"], "npm ci", "npm install ms --ignore-scripts --no-audit --no-fund"),
        ("a.go:3:8: no required module provides package github.com/x/y; to add it:\n\tgo get github.com/x/y", ["go.mod"], "", "go mod tidy"),
        ("npm error aliases: clean-install, ic, install-clean", ["package.json", "package-lock.json"], "npm ci", "npm install --package-lock-only --ignore-scripts --no-audit --no-fund"),
        ("ERR_PNPM_OUTDATED_LOCKFILE  Cannot install", ["pnpm-lock.yaml"], "npx --yes pnpm@9 install --frozen-lockfile", "npx --yes pnpm@9 install --lockfile-only --ignore-scripts"),
    ],
)  # fmt: skip
def test_package_managers_write_what_is_theirs(
    output: str, files: list[str], setup: str, script: str
) -> None:
    found = list(make_lock_remedies("node a.js", output, files, setup))
    assert [one.script for one in found] == [script]
    assert found[0].network


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("E  AssertionError: value does not match the expected value in snapshot tests/a.txt\nE    (run pytest with --snapshot-update to update snapshots)", 'export PYTEST_ADDOPTS="$PYTEST_ADDOPTS --snapshot-update"'),
        ("E  AssertionError: one.txt differs; run pytest with --update-golden to accept", 'export PYTEST_ADDOPTS="$PYTEST_ADDOPTS --update-golden"'),
        ("E  AssertionError: set UPDATE_EXPECTED=1 to write it anew", "export UPDATE_EXPECTED=1"),
        ("E  AssertionError: full.txt (GOLDEN=write accepts)", "export GOLDEN=write"),
        ("To accept the new output, re-run test with envvar MY_ACCEPT=1 (it is safe)", "export MY_ACCEPT=1"),
        ("E  AssertionError: Run `REGEN_FIXTURES=yes make test`", "export REGEN_FIXTURES=yes"),
    ],
)  # fmt: skip
def test_golden_files_are_written_as_the_failure_says(output: str, line: str) -> None:
    found = list(make_lock_remedies("pytest -q", output, []))
    first = [one.script.splitlines()[0].partition(" TOX_OVERRIDE=")[0] for one in found]
    assert first == [line]
    assert found[0].approval is not None


def test_golden_files_of_go_are_written_by_the_flag_that_the_tests_declare() -> None:
    texts = {
        "a_test.go": 'var update = flag.Bool("update", false, "write the golden files")',
        "b_test.go": 'func init() { flag.BoolVar(&slow, "slow", false, "") }',
    }
    calls = ["cd cmd\ngo test ./...", "gofmt -l ."]
    (found,) = make_golden_remedies(calls, texts, texts.get)
    assert found.script == "(\ncd cmd\ngo test ./... -update\n)"
    assert found.approval is not None
    assert list(make_golden_remedies(["go vet ./..."], texts, texts.get)) == []


def test_modules_of_node_and_of_the_repository_are_not_installed() -> None:
    for output in ("Cannot find module './own'", "Cannot find module 'fs'"):
        assert list(make_lock_remedies("node a.js", output, ["package.json"])) == []


FLAKE8 = "./pkg/a.py:1:1: F401 'os' imported but unused\npkg/b.py:3:1: E302 expected 2 blank lines, found 1\npkg/b.py:9:80: E501 line too long (99 > 88 characters)\n"


def test_what_flake8_complains_about_is_mended_by_others() -> None:
    remedy = make_style_remedy("python -m flake8 pkg", failures_in(FLAKE8))
    assert remedy is not None
    assert (remedy.name, remedy.writes) == ("autoflake and autopep8", ("pkg/a.py", "pkg/b.py"))
    assert "--max-line-length=88 --select=E302,E501,E303,W391 pkg/a.py pkg/b.py" in remedy.script


PYLINT = """pkg/a.py:13:0: C0305: Trailing newlines (trailing-newlines)
pkg/a.py:6:0: C0411: standard import "abc" should be placed before first party import "pkg.b"  (wrong-import-order)
pkg/a.py:2:0: W0611: Unused import os (unused-import)
pkg/b.py:2:0: C0304: Final newline missing (missing-final-newline)
"""


@pytest.mark.parametrize(
    ("command", "output", "tools", "lines"),
    [
        ("pylint pkg", PYLINT, "autoflake and autopep8 and isort", ["--remove-all-unused-imports pkg/a.py", "isort -q pkg/a.py pkg/b.py", "--select=W292,W391,E303,W391"]),
        ("flake8", "a.py:1:9: Q000 Double quotes\na.py:2:9: C812 missing trailing comma\n", "ruff", ["--select Q000 a.py", "--select COM812 a.py"]),
        ("flake8", "a.py:1:1: I001 isort found an import in the wrong position\n", "isort", ["isort -q a.py"]),
        ("pydocstyle", "a.py:1:1: D400 First line should end with a period\n", "ruff", ["--select D400 a.py"]),
    ],
)  # fmt: skip
def test_other_checkers_codes_are_mended_by_who_knows_them(
    command: str, output: str, tools: str, lines: list[str]
) -> None:
    remedy = make_style_remedy(command, failures_in(output))
    assert remedy is not None
    assert remedy.name == tools
    assert [line for line in lines if line not in remedy.script] == []


def test_blanks_in_yaml_are_taken_away_and_nothing_else() -> None:
    blank = Failure("a.yml:1:2", "trailing-spaces", "trailing spaces", "a.yml", 1)
    remedy = make_whitespace_remedy([blank])
    assert remedy is not None
    assert remedy.writes == ("a.yml",)
    other = Failure("a.yml:1:2", "indentation", "wrong indentation", "a.yml", 1)
    assert make_whitespace_remedy([blank, other]) is None
    assert make_whitespace_remedy([]) is None


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("pylint pkg", PYLINT + "pkg/b.py:1:0: C0114: Missing module docstring\n"),
        ("flake8 pkg", FLAKE8 + "pkg/b.py:4:5: F821 undefined name 'x'\n"),
        ("ruff check pkg", FLAKE8),
        ("flake8 pkg", "nothing\n"),
    ],
)
def test_what_needs_thought_is_left(command: str, output: str) -> None:
    assert make_style_remedy(command, failures_in(output)) is None


@pytest.mark.parametrize(
    ("failure", "line"),
    [
        (Failure("a.py:3:5: F841", "F841", "unused", "a.py", 3), "a.py:3:5: F841: unused"),
        (Failure("test_a", "AssertionError", "1 == 2", "a.py", 3), "test_a (a.py:3): AssertionError: 1 == 2"),
    ],
)  # fmt: skip
def test_a_failure_is_told_without_saying_a_thing_twice(failure: Failure, line: str) -> None:
    assert format_failure(failure) == line
