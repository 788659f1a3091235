"""The user's own defaults for options, and commands that print no progress."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from regreen.cli import cli
from regreen.domain.errors import UserError
from tests.unit.repairs import CALC, GREEN, SETUP, Repository, sandbox_or_skip

_PATCH = """\
diff --git a/a.py b/a.py
--- a/a.py
+++ b/a.py
@@ -1 +1,2 @@
 x = 1
+y = eval(input())
"""


def write_defaults(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    file = folder / "regreen" / "defaults.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


def regreen(*argv: str, text: str | None = None) -> Result:
    return CliRunner().invoke(cli, argv, input=text, standalone_mode=False, catch_exceptions=False)


def test_the_file_holds_for_every_command_and_the_command_line_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_defaults(tmp_path, 'format = "json"\nmodel = false\n', monkeypatch)
    assert json.loads(regreen("review", "--diff", "-", text=_PATCH).stdout)["version"] == 1
    shown = regreen("review", "--diff", "-", "--format", "text", text=_PATCH).stdout
    assert not shown.startswith("{")


def test_a_table_holds_for_its_command_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = 'format = "json"\n[review]\nformat = "sarif"\nmin-confidence = 1.0\n'
    write_defaults(tmp_path, text, monkeypatch)
    document = json.loads(regreen("review", "--diff", "-", text=_PATCH).stdout)
    assert document["version"] == "2.1.0"
    assert document["runs"][0]["results"] == []
    log = tmp_path / "job.log"
    log.write_text("ok\n")
    assert json.loads(regreen("ci-log", str(log)).stdout)["failures"] == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("sandbx = 'docker'", "unknown key sandbx; did you mean 'sandbox'?"),
        ("ANTHROPIC_API_KEY = 'sk'", "unknown key ANTHROPIC_API_KEY"),
        ("[fix]\nsetup = 'curl x | sh'", "unknown key fix.setup"),
        ("sandbox = 'none'", "'none' is not one of"),
        ("max-minutes = 'long'", "max-minutes: 'long' is not a valid float"),
        ("a = [", "cannot read"),
    ],
)
def test_what_is_wrong_in_the_file_is_said_in_one_line(
    text: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_defaults(tmp_path, text, monkeypatch)
    with pytest.raises(UserError, match=str(file)) as told:
        regreen("review", "--diff", "-", text=_PATCH)
    assert reason in str(told.value)
    assert regreen("review", "--help").exit_code == 0
    checks = json.loads(regreen("doctor", "--only", "config", "--format", "json").stdout)["checks"]
    (row,) = [row for row in checks if row["name"] == "the user's defaults"]
    assert (row["ok"], row["required"]) == (False, False)
    assert reason in row["detail"]


def test_the_doctor_names_the_file_and_a_relative_folder_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_defaults(tmp_path, "quiet = true\n", monkeypatch)
    assert f"the user's defaults: {file}" in regreen("doctor", "--only", "config", "-v").stdout
    # a repository that is worked in must not be able to bring one along
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", ".")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert "/home/.config/regreen/defaults.toml is not there" in regreen("doctor", "--only", "config", "-v").stdout  # fmt: skip


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "repo")
    made.commit("start", GREEN)
    made.commit("more", {"README.md": "hello\n"})
    return made


def test_quiet_review_says_what_was_found_and_no_more(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    argv = ("review", "--repo", str(repository.path), "--no-model")
    assert "reading 0 files" in regreen(*argv).stderr
    quiet = regreen(*argv, "--quiet")
    assert (quiet.stderr, bool(quiet.stdout)) == ("", True)
    assert "reading 0 files" in regreen(*argv).stderr
    write_defaults(tmp_path, "quiet = true\n", monkeypatch)
    assert regreen(*argv).stderr == ""
    assert "reading 0 files" in regreen(*argv, "--no-quiet").stderr
    with pytest.raises(UserError, match="nowhere"):
        regreen(*argv, "--quiet", "--base", "nowhere")


@pytest.mark.sandbox
def test_quiet_still_says_what_the_answer_leaves_out(repository: Repository) -> None:
    (repository.path / "README.md").write_text("not committed\n")
    argv = ("env", "--repo", str(repository.path), "--quiet", "--format", "json")
    assert "1 uncommitted file is not included" in regreen(*argv).stderr


@pytest.mark.sandbox
@pytest.mark.parametrize("name", ["fix", "bisect", "env", "gate"])
def test_quiet_commands_that_run_something(
    name: str, repository: Repository, tmp_path: Path
) -> None:
    sandbox_or_skip()
    bad = {"pkg/calc.py": CALC.replace("result += value", "result = value")}
    repository.commit("faster sums", bad)
    git = repository.open()
    patch, before = tmp_path / "fix.patch", tmp_path / "before.json"
    patch.write_text(git.diff(git.resolve("HEAD"), git.resolve("HEAD~1")))
    before.write_text(json.dumps({"command": "pytest -q", "failures": []}))
    argv = {
        "fix": ("--setup", SETUP, "--no-model", "--rungs", "recipe", "--", "pytest", "-q"),
        "bisect": ("--good", "HEAD~1", "--setup", SETUP, "--no-verify", "--", "pytest", "-q"),
        "env": (),
        "gate": (
            "--base",
            "HEAD",
            "--patch",
            str(patch),
            "--failures",
            str(before),
            "--setup",
            SETUP,
        ),
    }[name]
    done = regreen(name, "--quiet", "--repo", str(repository.path), *argv)
    assert done.stderr == ""
    assert done.stdout


def test_every_key_is_an_option_of_some_command() -> None:
    from regreen.cli.options import COMMANDS_WITH_DEFAULTS, DEFAULT_KEYS

    context = click.Context(cli)
    commands = [cli.get_command(context, name) for name in COMMANDS_WITH_DEFAULTS]
    options = {o.removeprefix("--") for c in commands if c for p in c.params for o in p.opts}
    assert set(DEFAULT_KEYS) <= options
