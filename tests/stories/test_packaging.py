"""What somebody gets who installs Regreen from a wheel, runs it as an Action, by systemd or by compose."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from ruamel.yaml import YAML

from tests.stories.test_operator_settings import listening
from tests.unit.changes import ENV
from tests.unit.changes import Story as Repository

TOP = Path(__file__).parents[2]


def loaded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = YAML(typ="safe").load((TOP / name).read_text())
    return found


MARK = "import os, pathlib\npathlib.Path(os.environ['MARK']).write_text(__file__)\n"
HOSTILE = {
    **{f"{name}.py": MARK for name in ("shlex", "subprocess", "json", "sitecustomize", "usercustomize", "venv", "pip", "regreen", "click", "hatchling")},
    ".env": "ANTHROPIC_BASE_URL=http://127.0.0.1:9\nREGREEN_SANDBOX=nonsense\n",
    "regreen.env": "REGREEN_SANDBOX=nonsense\n",
    "pip.conf": "[global]\nindex-url = http://127.0.0.1:9/\n",
    "setup.cfg": "[install]\nprefix = /proc/nowhere\n[easy_install]\nindex_url = http://127.0.0.1:9/\n",
    "requirements.lock": "evil==1.0\n",
}  # fmt: skip


def named_step(name: str) -> dict[str, Any]:
    steps = loaded("action.yml")["runs"]["steps"]
    return next(step for step in steps if step.get("name") == name)


def run_step(name: str, env: dict[str, str], workspace: Path) -> subprocess.CompletedProcess[str]:
    """As GitHub runs a step whose shell is bash: in the folder that it names, else in the workspace."""
    step = named_step(name)
    where = step.get("working-directory", str(workspace)).replace("${{ runner.temp }}", env["RUNNER_TEMP"])  # fmt: skip
    told = {"GITHUB_WORKSPACE": str(workspace), "GITHUB_ACTION_PATH": str(TOP), "MARK": str(Path(env["RUNNER_TEMP"]).parent / "ran")}  # fmt: skip
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        env=os.environ | env | told, cwd=where, capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip


def event(tmp_path: Path, body: str | None) -> dict[str, str]:
    """The file in which a runner finds what happened."""
    file = tmp_path / "event.json"
    file.write_text(json.dumps({"pull_request": {"body": body}}))
    return {"GITHUB_EVENT_PATH": str(file)}


@pytest.fixture
def runner(tmp_path: Path) -> dict[str, str]:
    """A hosted runner on which the Action's first step has installed Regreen."""
    home = tmp_path / "temp" / "regreen" / "bin"
    home.mkdir(parents=True)
    (home / "regreen").write_text(f'#!/bin/sh\nexec {sys.executable} -I -m regreen "$@"\n')
    (home / "regreen").chmod(0o755)
    return ENV | event(tmp_path, None) | {
        "RUNNER_TEMP": str(tmp_path / "temp"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"), "HOME": str(tmp_path),
        "ANTHROPIC_API_KEY": "", "REGREEN_ARGS": "", "MIN_CONFIDENCE": "0.8", "SARIF": "regreen.sarif", "FAIL": "true", "POST": "false", "GITHUB_TOKEN": "",
    }  # fmt: skip


def pull_request(tmp_path: Path, files: dict[str, str]) -> tuple[Repository, dict[str, str]]:
    """A checkout of a pull request that brings these files and a fault; what GitHub says of it."""
    repo = Repository(tmp_path / "repo")
    repo.change(
        {"a.py": "def f(x):\n    return x\n"}, {"a.py": "def f(x):\n    return y\n"} | files
    )
    base, head = repo.run("rev-parse", "main", "HEAD").split()
    return repo, {"BASE": base, "HEAD": head, "TITLE": "Return y"}


def test_nothing_that_the_action_prints_of_a_pull_request_is_a_command_to_the_runner(
    runner: dict[str, str], tmp_path: Path
) -> None:
    """Given progress with a runner's commands in it, when the step runs twice, then each run stops commands by a token of its own."""
    said = ["##[add-mask]1", "::error file=a.py::Owned", "::stop-commands::"]
    program = tmp_path / "temp" / "regreen" / "bin" / "regreen"
    program.write_text("".join(["#!/bin/sh\n", *(f"echo '{line}' >&2\n" for line in said), "exit 1\n"]))  # fmt: skip
    tokens = set()
    for _ in range(2):
        done = run_step("Review", runner | {"BASE": "a", "HEAD": "b", "TITLE": ""}, tmp_path)
        first, *between, last = done.stderr.splitlines()
        token = first.removeprefix("::stop-commands::")
        assert (done.returncode, done.stdout, between, last) == (1, "", said, f"::{token}::")
        assert re.fullmatch(r"[0-9a-f]{64}", token)
        tokens.add(token)
    assert len(tokens) == 2


@pytest.mark.slow
def test_the_action_reviews_a_pull_request(runner: dict[str, str], tmp_path: Path) -> None:
    repo, pull = pull_request(tmp_path, {})
    pull |= {"TITLE": "$(touch owned) `touch owned`\n; touch owned"}
    refused = run_step(
        "Review", runner | pull | {"REGREEN_ARGS": "--no-model '; touch owned'"}, repo.root
    )
    assert refused.returncode == 2, refused.stderr
    assert "touch owned" in refused.stderr  # one word, which `regreen review` does not know
    done = run_step(
        "Review", runner | pull | {"REGREEN_ARGS": "--no-model --max-comments 3"}, repo.root
    )
    assert done.returncode == 0, done.stderr
    assert "Undefined name" in (tmp_path / "summary.md").read_text()
    assert '"ruff/F821"' in (repo.root / "regreen.sarif").read_text()
    assert list(tmp_path.rglob("owned")) == []


def test_the_action_runs_and_believes_nothing_of_the_checkout(
    runner: dict[str, str], tmp_path: Path
) -> None:
    repo, pull = pull_request(tmp_path, HOSTILE)
    (repo.root / "regreen.sarif").symlink_to(tmp_path / "outside")
    body = event(tmp_path, "Fixes it. \ud800" + "x" * 300_000)
    with listening() as stranger, listening() as world:
        (repo.root / ".env").write_text(f"ANTHROPIC_BASE_URL={stranger.url}\n")
        key = {"ANTHROPIC_API_KEY": "sk-ant-SECRET-OF-THE-PROJECT", "HTTPS_PROXY": world.url}
        done = run_step("Review", runner | pull | body | key, repo.root)
    assert done.returncode == 0, done.stderr
    assert "Undefined name" in (tmp_path / "summary.md").read_text()
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "outside").exists()
    assert (stranger.heard, len(world.heard) > 0) == ([], True)


def test_the_action_refuses_options_with_an_unclosed_quote(
    runner: dict[str, str], tmp_path: Path
) -> None:
    repo, pull = pull_request(tmp_path, {})
    done = run_step("Review", runner | pull | {"REGREEN_ARGS": "--setup 'make"}, repo.root)
    assert (done.returncode, "::error::the input args has an unclosed quote" in done.stdout) == (2, True)  # fmt: skip


def test_the_action_writes_nothing_through_a_folder_that_is_a_link(
    runner: dict[str, str], tmp_path: Path
) -> None:
    repo, pull = pull_request(tmp_path, {})
    (repo.root / "reports").symlink_to(tmp_path)
    done = run_step("Review", runner | pull | {"SARIF": "reports/x.sarif"}, repo.root)
    assert (done.returncode, "leads out of the workspace" in done.stdout) == (2, True)
    assert not (tmp_path / "x.sarif").exists()


@pytest.mark.slow
def test_the_action_installs_in_a_hostile_checkout(runner: dict[str, str], tmp_path: Path) -> None:
    repo, _ = pull_request(tmp_path, HOSTILE)
    shutil.rmtree(tmp_path / "temp" / "regreen")
    done = run_step("Install", runner | {"HOME": str(Path.home())}, repo.root)
    if "No matching distribution" in done.stderr or "ConnectionError" in done.stderr:
        pytest.skip(f"no package index answers: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "ran").exists()
    installed = tmp_path / "temp" / "regreen" / "bin" / "regreen"
    assert subprocess.run([installed, "--version"], capture_output=True, check=True).stdout


def test_the_action_builds_nothing_that_it_downloads() -> None:
    """A source distribution would run its own build, with dependencies that nothing pins."""
    script = named_step("Install")["run"]
    assert script.count("packaging/action.txt") == script.count("--only-binary=:all:") == 1


def test_the_action_on_another_event_says_what_to_do(
    runner: dict[str, str], tmp_path: Path
) -> None:
    done = run_step("Review", runner | {"BASE": "", "HEAD": "", "TITLE": ""}, tmp_path)
    assert (done.returncode, done.stdout.strip()) == (
        2,
        "::error::run this on pull_request, after actions/checkout with fetch-depth: 0",
    )


def test_the_wheel_holds_all_that_a_machine_without_this_checkout_needs(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=TOP, check=True, capture_output=True,
    )  # fmt: skip
    wheel = next(tmp_path.glob("*.whl"))
    target = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    packed = {str(p.relative_to(target)) for p in target.rglob("*") if p.is_file()}
    tracked = subprocess.run(
        ["git", "ls-files", "regreen"], cwd=TOP, check=True, capture_output=True, text=True
    ).stdout.split()
    assert not set(tracked) - packed
    assert {name.partition("/")[0].partition("-")[0] for name in packed} == {"regreen"}
    # Lines of this second copy are not to be counted.
    bare = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    done = subprocess.run(
        [sys.executable, "-m", "regreen", "config", "schema"],
        cwd=tmp_path, env=bare | {"PYTHONPATH": str(target)}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert '"$schema"' in done.stdout


def link_requirements(place: Path, *extras: str) -> None:
    """Fill a folder with the packages that an installation of Regreen with these extras has."""
    wanted, seen = [Requirement(f"regreen[{','.join(extras)}]")], set[str]()
    place.mkdir()
    (place / "regreen").symlink_to(TOP / "regreen")
    while wanted:
        needed = wanted.pop()
        if str(needed) in seen:
            continue
        seen.add(str(needed))
        found = distribution(needed.name)
        marked = [Requirement(text) for text in found.requires or ()]
        wanted += [
            one for one in marked
            if one.marker is None or any(one.marker.evaluate({"extra": e}) for e in {"", *needed.extras})
        ]  # fmt: skip
        for top in {file.parts[0] for file in found.files or () if file.parts[0] != ".."}:
            if needed.name != "regreen" and not (place / top).is_symlink():
                (place / top).symlink_to(str(found.locate_file(top)))


def run_with_packages(place: Path, cwd: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """`regreen`, which sees the packages of this folder and no others."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("COV", "REGREEN_"))}  # fmt: skip
    return subprocess.run(
        [sys.executable, "-S", "-m", "regreen", *options],
        cwd=cwd, env=bare | {"PYTHONPATH": str(place), "HOME": str(cwd)}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def test_the_command_line_needs_none_of_the_apps_packages(tmp_path: Path) -> None:
    """Given an installation without extras, when commands run, then only the App's name an extra."""
    repo, pull = pull_request(tmp_path, {})
    site = tmp_path / "site"
    link_requirements(site)
    assert not (site / "sqlalchemy").exists()
    reviewed = run_with_packages(site, repo.root, "review", "--no-model", "--base", pull["BASE"])
    assert (reviewed.returncode, "Undefined name `y`" in reviewed.stdout) == (0, True), reviewed
    for name in ("serve", "worker", "redeliver"):
        refused = run_with_packages(site, repo.root, name, *(["x"] if name == "redeliver" else []))
        assert (refused.returncode, "pip install 'regreen[app]'" in refused.stderr) == (2, True), refused  # fmt: skip
    checked = run_with_packages(site, repo.root, "doctor", "--only", "database")
    assert (checked.returncode, "pip install 'regreen[app]'" in checked.stdout) == (0, True), (
        checked
    )


def test_the_extra_app_brings_what_the_app_needs(tmp_path: Path) -> None:
    site = tmp_path / "site"
    link_requirements(site, "app")
    checked = run_with_packages(site, tmp_path, "doctor", "--only", "database")
    assert (checked.returncode, "ok   database" in checked.stdout) == (0, True), checked
    served = run_with_packages(site, tmp_path, "serve", "--port", "0")
    assert "REGREEN_APP_ID" in served.stderr, served


def commit_with_hook(repo: Repository, tmp_path: Path, *options: str) -> str:
    """What `git commit` prints where the hook is installed as pre-commit runs it."""
    (hook,) = YAML(typ="safe").load((TOP / ".pre-commit-hooks.yaml").read_text())
    assert hook["pass_filenames"] is False
    programs = tmp_path / "programs"
    programs.mkdir()
    for file, line in (
        (programs / "regreen", f'{sys.executable} -I -m regreen "$@"'),
        (repo.root / ".git/hooks/pre-commit", shlex.join(shlex.split(hook["entry"]))),
    ):
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\nexec {line}\n")
        file.chmod(0o755)
    done = subprocess.run(
        ["git", "commit", *options, "-m", "x"],
        cwd=repo.root, env=os.environ | ENV | {"PATH": f"{programs}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_hook_reviews_what_is_about_to_be_committed(tmp_path: Path) -> None:
    repo = Repository(tmp_path / "repo")
    repo.change({"a.py": "def f(x):\n    return x\n"}, {"b.py": "x = 1\n"})
    (repo.root / "a.py").write_text("def f(x):\n    return y\n")
    (repo.root / "untracked.py").write_text("def f(x):\n    return z\n")
    printed = commit_with_hook(repo, tmp_path, "-a")
    assert "Undefined name `y`" in printed
    assert "Undefined name `z`" not in printed


def test_the_hook_lets_the_first_commit_of_a_repository_pass(tmp_path: Path) -> None:
    repo = Repository(tmp_path / "repo")
    (repo.root / "a.py").write_text("x = 1\n")
    repo.run("add", "a.py")
    assert "first commit of a repository is not reviewed" in commit_with_hook(repo, tmp_path)


@pytest.mark.parametrize("name", ["compose.yml", "compose.postgres.yml"])
def test_compose_asks_for_what_only_the_operator_knows(name: str, tmp_path: Path) -> None:
    services = loaded(f"packaging/{name}")["services"]
    for service in (s for n, s in services.items() if n != "database"):
        assert service["cap_drop"] == ["ALL"]
        assert service["read_only"] is True
    compose = shutil.which("docker-compose")
    if compose is None:
        pytest.skip("docker-compose is not installed")
    place = tmp_path / "packaging"
    shutil.copytree(TOP / "packaging", place)
    (tmp_path / "env").write_text("")
    check = [compose, "-f", str(place / name), "config", "--quiet"]
    bare = {k: v for k, v in os.environ.items() if k not in {"DOCKER_GID", "POSTGRES_PASSWORD"}} | {"ENV_FILE": str(tmp_path / "env")}  # fmt: skip
    asked = subprocess.run(check, env=bare, check=False, capture_output=True, text=True)
    assert asked.returncode != 0
    assert "a password of your own" in asked.stderr or "stat -c %g" in asked.stderr
    subprocess.run(check, env=bare | {"DOCKER_GID": "1", "POSTGRES_PASSWORD": "x"}, check=True)


def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed")
    text = (TOP / "packaging" / "regreen.service").read_text()
    unit = tmp_path / "regreen.service"
    unit.write_text(text.replace("/opt/regreen/bin/regreen", "/bin/true"))
    done = subprocess.run([analyze, "verify", str(unit)], check=False, capture_output=True, text=True)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
