"""Cutting a job into what needs a network and what must do without."""

from __future__ import annotations

import pytest

from regreen.actions.job_plan import PlannedStep
from regreen.actions.phases import (
    make_offline_script,
    make_prefetch_script,
    split_phases,
    split_script,
)
from regreen.actions.workflow import plan_workflow
from regreen.shell.install_lines import installs_anything, split_leading_installs


def step(run: str, number: int = 1, shell: str = "bash -e {0}") -> PlannedStep:
    return PlannedStep(number, f"step {number}", "run", run, shell, {}, ".")


@pytest.mark.parametrize(
    "script",
    [
        "pip install -e .[test]", "python -m pip install tox", "uv sync --group dev", "npm ci", "yarn", "poetry install", "sudo apt-get install -y gcc",
        "pnpm install --frozen-lockfile", "cargo fetch", "go mod download", "bundle install", "git clone https://example.org/x", "cd x && pip install y",
    ],
)  # fmt: skip
def test_installing_needs_a_network(script: str) -> None:
    assert installs_anything(script)


@pytest.mark.parametrize(
    "script",
    [
        "pytest -q",
        "tox -e py",
        "npm test",
        "make test",
        "python -m unittest",
        "echo pipx",
        "./install-check.sh",
        "npm run lint",
        "ruff check",
    ],
)
def test_testing_does_not(script: str) -> None:
    assert not installs_anything(script)


@pytest.mark.parametrize(
    ("script", "install", "test"),
    [
        ("pip install x\npytest", "pip install x", "pytest"),
        ("pip install x && pytest -q", "pip install x", "pytest -q"),
        ("export A=1\npip install x\npytest", "export A=1\npip install x", "export A=1\npytest"),
        ("cd sub\npip install \\\n  x\npytest", "cd sub\npip install \\\n  x", "cd sub\npytest"),
        ("pytest", "", "pytest"),
        ("pip install x", "pip install x", ":"),
        (
            "pip install x\nif true; then\n pytest\nfi",
            "pip install x",
            "if true; then\n pytest\nfi",
        ),
    ],
)
def test_a_script_that_installs_and_tests_is_split(script: str, install: str, test: str) -> None:
    assert split_script(step(script)) == (install, test)


@pytest.mark.parametrize(
    ("script", "warm"),
    [
        ("tox -e py312 -- -k x", "tox -e py312 --notest"), ("python -m tox run -f lint", "python -m tox -f lint --notest"),
        ("nox -s tests", "nox -s tests --install-only"), ("uv run --group dev pytest -q", "uv run --group dev python -c pass"),
        ("uv run tox -e py", "uv run tox -e py --notest"), ("pre-commit run -a", "pre-commit install-hooks"), ("cargo test", "cargo fetch"),
        ("go test ./...", "go mod download"), ("uvx --with a ruff check", "uvx --with a --from ruff python -c pass"), ("uvx nox -s lint -- x", "uvx nox -s lint --install-only"), ("pipx run nox -s tests", "pipx run nox -s tests --install-only"), ("pytest", ""), ("hatch run test:all", "hatch env create test"), ("hatch run +py=3.12 test:cov --x", "hatch run +py=3.12 test:python -c pass"),
    ],
)  # fmt: skip
def test_tools_that_install_while_testing_are_warmed_up(script: str, warm: str) -> None:
    assert make_prefetch_script(script) == warm


def test_nox_is_told_to_take_what_is_there() -> None:
    assert make_offline_script("nox -s tests") == "nox ${RG_NOX:--R} -s tests"
    assert make_offline_script("echo nox") == "echo nox"


def test_steps_before_the_last_install_run_with_it() -> None:
    steps = (
        step("echo a", 1),
        step("pip install x", 2),
        step("echo b", 3),
        step("pytest", 4),
        step("echo after", 5),
    )
    cut = split_phases(steps, 4)
    assert [one.number for one in cut.setup] == [1, 2]
    assert [one.number for one in cut.command] == [3, 4]


def test_a_step_that_installs_itself_stands_in_both() -> None:
    cut = split_phases((step("pip install x\npytest", 1),), 1)
    assert (cut.setup[0].run, cut.command[0].run) == ("pip install x", "pytest")


def test_a_real_workflow_is_cut_after_its_last_install() -> None:
    text = "on: push\njobs: {a: {runs-on: ubuntu-latest, steps: [{uses: actions/checkout@v4}, {uses: astral-sh/setup-uv@v5}, {run: uv sync}, {run: pytest}]}}"
    cut = split_phases(plan_workflow(text)[0].steps, 4)
    assert [one.number for one in cut.command] == [4]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ('bash -c "pip install x"', True),
        ("retry 3 npm ci", True),
        ("if ! command -v uv; then pip install uv; fi", True),
        ("X=$(curl -s https://example.org)", True),
        ("mvn -B dependency:go-offline", True),
        ("bash -e <<EOF\npip install x\nEOF", True),
        ("{ npm install --global x", True),
        ("if ! pip install x; then", True),
        ("linux) pip install x", True),
        ("done && pip install x", True),
        ("tox run -e py --notest", True),
        ("cat > notes.txt <<EOF\npip install x\nEOF", False),
        ("echo 'run pip install x first'", False),
        ('./notify "$(pip freeze)"', False),
        ("tox -e py && go test ./... && dpkg -l", False),
    ],
)
def test_commands_are_told_from_text(script: str, expected: bool) -> None:
    assert installs_anything(script) == expected


@pytest.mark.parametrize(
    ("command", "installs", "rest"),
    [
        ("npm ci && npm run build && npm test", "npm ci", "npm run build && npm test"),
        ("cd web && npm ci && npm i x && npm test", "(cd web && npm ci && npm i x)", "cd web && npm test"),
        ("A=1 pip install -e . && A=1 pytest -k 'a && b'", "A=1 pip install -e .", "A=1 pytest -k 'a && b'"),
        *((whole, "", whole) for whole in (
            "npm ci", "npm test", "npm test && npm ci", "cd web && npm test", "npm ci; npm test", "npm ci || true && npm test",
            "(npm ci) && npm test", "npm ci > log && npm test", "pip install $(cat list) && pytest", "if true; then npm ci && npm test; fi",
        )),
    ],
)  # fmt: skip
def test_what_a_command_installs_first_is_told_from_what_it_runs(
    command: str, installs: str, rest: str
) -> None:
    assert split_leading_installs(command) == (installs, rest)
