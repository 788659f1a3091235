from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from regreen.domain.errors import SetupFailed
from regreen.domain.job_control import StopCondition
from regreen.fixers.case import InitialFailure, RepairCase
from regreen.fixers.recipes.tool_output import find_remedies_in_output, make_lock_remedies
from regreen.fixers.rungs.recipe_rung import run_remedy
from regreen.languages.python.dependencies import propose_manifests
from regreen.languages.python.missing_modules import MissingDistribution, find_missing_distributions
from regreen.logs.ci_log import failures_in
from regreen.packages.setup_guard import InstallPolicy
from regreen.shell.fixing_tools import find_remedies
from tests.unit.repairs import Repository, job, sandbox_or_skip


@pytest.mark.parametrize(
    ("command", "script"),
    [
        ("ruff format --check .", "ruff format ."),
        ("ruff format --check --diff src tests", "ruff format src tests"),
        ("ruff check .", "ruff check --fix ."),
        ("ruff check --output-format github --no-fix src", "ruff check --fix src"),
        ("ruff check --output-format=github src", "ruff check --fix src"),
        ("uv run --frozen ruff format --check", "uv run --frozen ruff format"),
        ("python -m black --check --diff .", "python -m black ."),
        ("python3.12 -m isort --check-only --diff .", "python3.12 -m isort ."),
        ("isort -c src", "isort src"),
        ("npx prettier --check '**/*.ts'", "npx prettier --write '**/*.ts'"),
        ("npx eslint src", "npx eslint --fix src"),
        ("cargo fmt --all -- --check", "cargo fmt --all --"),
        ("gofmt -l .", "gofmt -w ."),
        ("biome ci .", "biome check --write ."),
        ("autoflake --check -r .", "autoflake --in-place -r ."),
        ("CI=1 black --check .", "black ."),
        ("poetry run black . --check", "poetry run black ."),
        ("env CI=1 ruff check .", "env CI=1 ruff check --fix ."),
        ("nbqa black --check .", "nbqa black ."),
        ("golangci-lint run ./...", "golangci-lint run --fix ./..."),
        ("./gradlew spotlessCheck", "./gradlew spotlessApply"),
        ("mvn -B spotless:check", "mvn -B spotless:apply"),
        ("mix format --check-formatted", "mix format"),
        ("gofmt -s -l cmd", "gofmt -w -s cmd"),
        ("go mod tidy -diff", "go mod tidy"),
        ("tombi format --offline --check a.toml", "tombi format --offline a.toml"),
        ("license-eye header check -c x.yaml", "license-eye header fix -c x.yaml"),
        ("just --unstable --fmt --check", "just --unstable --fmt"),
        ("npx tsfmt --verify src/a.ts", "npx tsfmt -r src/a.ts"),
    ],
)
def test_a_call_that_checks_becomes_a_call_that_writes(command: str, script: str) -> None:
    assert find_remedies(command)[0].script == script


@pytest.mark.parametrize(
    "command",
    [
        "pytest -q",
        "mypy src",
        "echo ruff",
        "python -m pytest",
        "make test",
        "ruff --version",
        "just lint",
    ],
)
def test_other_commands_have_no_remedy(command: str) -> None:
    assert find_remedies(command) == ()


def test_several_checks_are_mended_together_too() -> None:
    found = [one.script for one in find_remedies("ruff check . && ruff format --check .")]
    assert "ruff check --fix . || true && ruff format . || true" in " ".join(found[0].split())
    assert found[1:] == ["ruff check --fix .", "ruff format ."]


@pytest.mark.parametrize(
    ("output", "script"),
    [
        (
            "would reformat /work/pkg/a.py\nOh no!\n1 file would be reformatted.",
            "black -q pkg/a.py",
        ),
        ("Would reformat: pkg/a b.py\n1 file would be reformatted", "ruff format 'pkg/a b.py'"),
        ("\x1b]0;a title without an end\nwould reformat pkg/a.py\n\x07", "black -q pkg/a.py"),
        (
            "ERROR: /work/pkg/a.py Imports are incorrectly sorted and/or formatted.",
            "isort pkg/a.py",
        ),
        (
            "Checking formatting...\n[warn] src/a.ts\n[warn] Code style issues found in the above file.",
            "npx --no-install prettier --write src/a.ts",
        ),
        (
            "pkg/a.py:1:8: F401 [*] `os` imported but unused\nFound 1 error.\n[*] 1 fixable with the `--fix` option.",
            "ruff check --fix pkg/a.py",
        ),
    ],
)
def test_a_tool_behind_make_is_known_by_what_it_prints(output: str, script: str) -> None:
    assert next(find_remedies_in_output(output, failures_in(output))).script == script


def test_paths_from_the_output_cannot_become_options() -> None:
    evil = "would reformat --evil=1\nwould reformat ../../etc/passwd\nwould reformat /etc/passwd"
    assert list(find_remedies_in_output(evil, failures_in(evil))) == []
    assert (
        next(find_remedies_in_output("would reformat a;rm -rf.py", ())).script
        == "black -q 'a;rm -rf.py'"
    )


@pytest.mark.parametrize(
    ("output", "lock", "script"),
    [
        (
            "error: The lockfile at `uv.lock` needs to be updated, but `--locked` was provided.",
            "uv.lock",
            "uv lock",
        ),
        (
            "pyproject.toml changed significantly since poetry.lock was last generated.",
            "poetry.lock",
            "poetry lock --no-update 2>/dev/null || poetry lock",
        ),
        (
            "error: lockfile had changes, but lockfile is frozen",
            "bun.lock",
            "npx --no-install bun install --lockfile-only --ignore-scripts 2>/dev/null || bun install --lockfile-only --ignore-scripts",
        ),
        (
            "ERROR! requirements/base.txt was not regenerated after changes in requirements/base.in.",
            "requirements/base.txt",
            "pip-compile-multi --no-upgrade",
        ),
        (
            "WARNING: Lockfile doesn't satisfy the project requirements, packages may be outdated",
            "pdm.lock",
            "pdm lock --update-reuse",
        ),
        (
            "npm error `npm ci` can only install packages when your package.json and package-lock.json are in sync.",
            "package-lock.json",
            "npm install --package-lock-only --ignore-scripts --no-audit --no-fund",
        ),
    ],
)
def test_stale_locks_are_written_by_their_own_tool(output: str, lock: str, script: str) -> None:
    remedy = next(iter(make_lock_remedies("ci", output, {lock})))
    assert (remedy.script, remedy.network) == (script, True)
    assert list(make_lock_remedies("ci", output, {"other"})) == []


@pytest.mark.parametrize("trusts_command", [False, True])
@pytest.mark.parametrize(
    ("command", "output", "refused"),
    [
        ("node a.js", "Error: Cannot find module 'zz-unheard-of'", "`zz-unheard-of`"),
        ("pip-compile --check -i https://evil.example/simple", "stale", "evil.example"),
    ],
)
def test_what_a_failure_wants_installed_passes_the_guard(
    tmp_path: Path, command: str, output: str, refused: str, *, trusts_command: bool
) -> None:
    repository = Repository(tmp_path / "repo")
    base = repository.commit("start", {"package.json": "{}\n", "a.js": ""})
    rev = repository.commit("use it", {"a.js": 'require("zz-unheard-of")\n'})
    asked = job(rev, "bash", "-c", command, setup="true")
    rules = InstallPolicy(trusts_command=trusts_command)
    trial = replace(asked.trial, trust="pull_request", base=base, rules=rules)
    case = RepairCase(
        replace(asked, trial=trial),
        rev, InitialFailure(output, 1), {}, repository.open(), sandbox_or_skip(), StopCondition(time.monotonic() + 60),
    )  # fmt: skip
    (remedy,) = make_lock_remedies(command, output, ["package.json", "a.js"])
    with pytest.raises(SetupFailed, match=refused):
        run_remedy(case, remedy)


def test_snapshots_need_a_person() -> None:
    remedy = next(
        iter(
            make_lock_remedies(
                "pytest -q", "--- snapshot report summary ---\n1 snapshot failed.", set()
            )
        )
    )
    assert remedy.approval


@pytest.mark.parametrize(
    ("output", "missing"),
    [
        (
            "E   ModuleNotFoundError: No module named 'yaml'",
            [MissingDistribution("PyYAML", "yaml")],
        ),
        (
            "E   ModuleNotFoundError: No module named 'attrs_extra.sub'",
            [MissingDistribution("attrs-extra", "attrs_extra")],
        ),
        ("E   ModuleNotFoundError: No module named 'pkg.other'", []),
        ("E   ModuleNotFoundError: No module named 'json.x'", []),
        ("E       fixture 'mocker' not found", [MissingDistribution("pytest-mock", "mocker")]),
        ("error: unrecognized arguments: --cov=pkg", [MissingDistribution("pytest-cov", "--cov")]),
    ],
)
def test_what_is_missing(output: str, missing: list[MissingDistribution]) -> None:
    assert list(find_missing_distributions(output, ["pkg/__init__.py"])) == missing


@pytest.mark.parametrize(
    ("folder", "count"), [("backend", 0), ("examples", 1), ("tests", 1), ("vendor", 1)]
)
def test_a_module_that_only_an_example_has_is_missing(folder: str, count: int) -> None:
    output = "ModuleNotFoundError: No module named 'yaml'"
    found = find_missing_distributions(output, [f"{folder}/yaml/__init__.py", "pkg/__init__.py"])
    assert len(found) == count


YAML = [MissingDistribution("PyYAML", "yaml")]


@pytest.mark.parametrize(
    ("files", "setup", "changed"),
    [
        ({"requirements.txt": "click\n"}, "pip install -r requirements.txt", {"requirements.txt": "click\nPyYAML\n"}),
        ({"requirements.txt": "click"}, "pip install -r requirements.txt", {"requirements.txt": "click\nPyYAML\n"}),
        (
            {"pyproject.toml": '[project]\nname = "x"\ndependencies = ["click"]\n', "x/a.py": "import yaml\n"},
            "pip install .",
            {"pyproject.toml": '[project]\nname = "x"\ndependencies = ["click", "PyYAML"]\n'},
        ),
        (
            {"pyproject.toml": '[project]\nname = "x"\ndependencies = [\n    "click>=8",  # command line\n]\n', "x/a.py": "import yaml\n"},
            "pip install .",
            {"pyproject.toml": '[project]\nname = "x"\ndependencies = [\n    "click>=8",  # command line\n    "PyYAML",\n]\n'},
        ),
        (
            {"pyproject.toml": '[project]\nname = "x"\ndependencies = []\n[project.optional-dependencies]\ntest = ["pytest"]\n', "tests/test_a.py": "import yaml\n"},
            "pip install -e .[test]",
            {"pyproject.toml": '[project]\nname = "x"\ndependencies = []\n[project.optional-dependencies]\ntest = ["pytest", "PyYAML"]\n'},
        ),
        (
            {"pyproject.toml": '[project]\nname = "x"\n', "x/a.py": "import yaml\n"},
            "pip install .",
            {"pyproject.toml": '[project]\ndependencies = ["PyYAML"]\nname = "x"\n'},
        ),
        (
            {"setup.py": 'setup(\n    install_requires=["click"],\n)\n', "x/a.py": "import yaml\n"},
            "pip install .",
            {"setup.py": 'setup(\n    install_requires=["click", "PyYAML"],\n)\n'},
        ),
        (
            {"setup.cfg": "[options]\ninstall_requires =\n    click\n\n[flake8]\nx = 1\n", "x/a.py": "import yaml\n"},
            "pip install .",
            {"setup.cfg": "[options]\ninstall_requires =\n    click\n    PyYAML\n\n[flake8]\nx = 1\n"},
        ),
    ],
)  # fmt: skip
def test_the_manifest_that_the_setup_installs_gains_it(
    files: dict[str, str], setup: str, changed: dict[str, str]
) -> None:
    found = next(propose_manifests(YAML, list(files), files.get, setup))
    assert found[0] == changed


def test_what_is_declared_already_is_not_added_again() -> None:
    files = {"requirements.txt": "pyyaml>=6\n"}
    assert (
        list(propose_manifests(YAML, list(files), files.get, "pip install -r requirements.txt"))
        == []
    )
