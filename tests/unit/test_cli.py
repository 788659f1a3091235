"""The command line's manners: one helpful line, the promised exit code, and no waiting for `--help`."""

from __future__ import annotations

import json
import os
import shlex
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from regreen.cli import COMMANDS, cli, describe_refusal, main
from regreen.cli.doctor import check_wsl, read_proof, write_proof
from regreen.domain.models import DoctorCheck


def regreen(*args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "regreen", *args],
        capture_output=True,
        text=True,
        cwd=cwd,
        check=False,
    )


@pytest.mark.parametrize("words", [["--help"], ["review", "--help"]])
def test_help_loads_nothing_that_the_commands_need(words: list[str]) -> None:
    probe = (
        f"import sys\nfrom regreen.cli import main\ntry:\n    main({words})\nexcept SystemExit as e:\n    code = e.code\n"
        "print('LOADED', sorted({'flask', 'github', 'anthropic', 'docker', 'sqlalchemy', 'pydantic'} & set(sys.modules)), code)"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert "LOADED [] 0" in done.stdout
    assert words[1:] or all(name in done.stdout for name in COMMANDS)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_explains_itself(name: str) -> None:
    done = regreen(name, "--help")
    assert done.returncode == 0, done.stderr
    assert "Usage: regreen" in done.stdout
    assert "Examples:" in done.stdout


def _every_option(name: str, command: click.Command) -> Iterator[tuple[str, click.Option]]:
    yield from ((name, one) for one in command.params if isinstance(one, click.Option))
    if isinstance(command, click.Group):
        for each in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), each)
            assert found is not None
            yield from _every_option(f"{name} {each}", found)


def test_every_option_says_what_it_is_for() -> None:
    options = list(_every_option("regreen", cli))
    assert len(options) > 80
    assert [(name, one.opts) for name, one in options if not one.help] == []


@pytest.mark.parametrize(
    "args",
    [
        ("revew",),
        ("review", "--nope"),
        ("bisect",),
        ("config", "chek"),
        ("review", "--repo", "/nonexistent"),
        ("fix",),
        ("fix", "--repo", "/nonexistent", "--", "true"),
        ("fix", "--patch-out", "/nonexistent/a.patch", "--", "true"),
        ("review", "--sarif-out", "/nonexistent/a.sarif"),
        ("replay", "http://example.org/capsule.json"),
        ("review", "--diff", "/dev/null", "--head", "HEAD"),
        ("bisect", "--plot", "/proc/a.svg", "--", "true"),
        ("fix", "--overlay", f"{__file__}:.git/config", "--", "true"),
        ("gate", "--repo", "/nonexistent", "--base", "HEAD", "--patch", "-"),
        ("sandbox", "--env", "x", "--", "true"),
        ("review", "--diff", __file__),
    ],
)
def test_a_mistake_is_answered_in_one_line(args: tuple[str, ...]) -> None:
    done = regreen(*args)
    assert done.returncode in {2, 3}
    assert done.stdout == ""
    assert done.stderr.startswith("regreen: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("review",), 2, "no commits yet"),
        (("bisect", "--", "true"), 2, "no commits yet"),
        (("fix", "--", "true"), 2, "no commits yet"),
        (("review", "--repo", "nowhere"), 3, "nowhere does not exist"),
        (("fix", "--repo", "nowhere", "--", "true"), 3, "nowhere does not exist"),
        (("bisect", "--repo", "file", "--", "true"), 3, "file is not a folder"),
    ],
)
def test_a_repository_without_commits_or_none_at_all_is_named_as_what_it_is(
    args: tuple[str, ...], code: int, said: str, tmp_path: Path
) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "file").touch()
    done = regreen(*args, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_full_disk_is_answered_in_one_line(tmp_path: Path) -> None:
    workflow = tmp_path / "ci.yml"
    workflow.write_text("on: push\njobs: {a: {runs-on: ubuntu-latest, steps: [{run: make}]}}\n")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "regreen", "plan", str(workflow)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 3
    assert done.stderr.startswith("regreen: No space left on device; free some space")
    assert done.stderr.count("\n") == 1


def test_a_closed_output_is_no_bug() -> None:
    command = f"exec {shlex.quote(sys.executable)} -m regreen ci-log /dev/null >&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_damaged_store_and_a_locked_folder_are_no_bugs(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_bytes(b"no database" * 500)
    with pytest.raises(sqlite3.DatabaseError) as damaged:
        sqlite3.connect(tmp_path / "a.db").execute("select * from sqlite_master")
    assert "`regreen clean runs answers index`" in (describe_refusal(damaged.value) or "")
    with pytest.raises(sqlite3.OperationalError) as locked:
        sqlite3.connect(tmp_path / "none" / "a.db")
    assert "REGREEN_HOME" in (describe_refusal(locked.value) or "")
    assert describe_refusal(ValueError("a bug")) is None
    assert describe_refusal(FileNotFoundError(2, "No such file or directory")) is None


def test_the_doctor_shows_a_folder_that_nobody_can_write(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "regreen", "doctor", "--only", "sandbox", "--format", "json"],
        env=os.environ | {"REGREEN_HOME": "/proc/nowhere", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    (check,) = json.loads(done.stdout)["checks"]
    assert "/proc/nowhere" in check["detail"]
    assert check["remedy"] == "set REGREEN_HOME to a folder of your own"


def test_a_patch_without_hunks_is_none_and_an_empty_one_changes_nothing(tmp_path: Path) -> None:
    patch, empty = tmp_path / "a.patch", tmp_path / "b.patch"
    patch.write_text("@@ -1 +1 @@\n neither file nor change\n")
    empty.touch()
    assert "holds no unified diff" in regreen("review", "--diff", str(patch)).stderr
    done = regreen("review", "--diff", str(empty), "--format", "json")
    assert json.loads(done.stdout)["findings"] == []


def test_a_valid_configuration_passes_and_a_broken_one_is_explained_line_by_line(
    tmp_path: Path,
) -> None:
    good, bad = tmp_path / "good.yml", tmp_path / "bad.yml"
    good.write_text("review: {drafts: true}\n")
    bad.write_text("reveiw: {}\nfix: {on: [push]}\n")
    assert regreen("config", "check", str(good)).returncode == 0
    done = regreen("config", "check", str(bad))
    assert done.returncode == 2
    assert "bad.yml:1: reveiw: unknown key; did you mean 'review'?" in done.stderr
    document = json.loads(regreen("config", "check", "--format", "json", str(bad)).stdout)
    assert [p["line"] for p in document["problems"]] == [1, 2]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("[tool]\nx = 1\n", 1, "not YAML but TOML or INI"),
        ("a: [1\nb: 2\n", 2, "a `[` or `{` is opened before this and not closed"),
        ("a: 1\n\tb: 2\n", 2, "never with tabs"),
        ('a: 1\nb: "open\nc: 3\n', 2, "a quote is opened here and never closed"),
        ("a: b: c\n", 1, "quote the value, or put the key on a line of its own (`a: b: c`)"),
        ("a:\n  - x\n b: 1\n", 3, "see how far it is indented"),
        ("a: *nowhere\n", 1, "whose `&anchor` is nowhere above"),
        ("a: 1\nb: \x00\n", 2, "is this a text file?"),
        ("run: |\n  [tool]\n  x = 1\n`b\n", 4, "(`'b`)"),
    ],
)
def test_what_is_no_yaml_is_told_in_words_of_its_writer(
    text: str, line: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.yml"
    file.write_text(text)
    for words, begins in (
        (["plan", str(file)], f"regreen: {file}: line {line}: not YAML"),
        (["config", "check", str(file)], f"{file}:{line}: not YAML"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(words)
        out, err = capsys.readouterr()
        assert (ended.value.code, out, err.count("\n")) == (2, "", 1)
        assert err.startswith(begins)
        assert said in err


def test_a_workflow_without_jobs_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text("on: push\njobs: {}\n")
    done = regreen("plan", "a.yml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no job under `jobs:`" in done.stderr


DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("kind", "page"), [("schema", "regreen.schema.json"), ("reference", "configuration.md")]
)
def test_what_the_documents_say_is_what_the_program_says(kind: str, page: str) -> None:
    done = regreen("config", kind)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (DOCS / page).read_text(), f"regreen config {kind} > docs/{page}"


def test_a_taken_port_is_answered_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = regreen("playground", "--port", str(taken.getsockname()[1]), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert "choose another with --port" in done.stderr


@pytest.mark.parametrize(
    ("url", "said"),
    [("foo://x", "foo is not supported; use sqlite or postgresql"), ("nonsense", "is no database URL"), ("sqlite://", "needs a file")],
)  # fmt: skip
def test_a_database_that_is_none_is_answered_before_anything_starts(
    url: str, said: str, tmp_path: Path
) -> None:
    key = rsa.generate_private_key(65537, 2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    env = {"REGREEN_APP_ID": "1", "REGREEN_PRIVATE_KEY": pem, "REGREEN_WEBHOOK_SECRET": "x", "REGREEN_DATABASE_URL": url, "REGREEN_HOME": str(tmp_path)}  # fmt: skip
    done = subprocess.run([sys.executable, "-m", "regreen", "serve", "--port", "0"], cwd=tmp_path, env=os.environ | env, capture_output=True, text=True, check=False, timeout=60)  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr


@pytest.mark.parametrize(
    ("words", "option"),
    [(("setup",), "--public-url"), (("setup", "--public-url", "https://x.example", "--headless"), "--code")],
)  # fmt: skip
def test_setup_with_nobody_to_ask_says_which_option_answers(
    words: tuple[str, ...], option: str, tmp_path: Path
) -> None:
    done = subprocess.run([sys.executable, "-m", "regreen", *words], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert f"regreen: {option} is required when not running in a terminal" in done.stderr


@pytest.mark.parametrize(
    ("release", "is_told"),
    [
        ("5.15.153.1-microsoft-standard-WSL2", True),
        ("4.4.0-19041-Microsoft", True),
        ("6.8.0-45-generic", False),
    ],
)
def test_the_doctor_says_that_wsl_is_untried(release: str, is_told: bool) -> None:
    rows = check_wsl(release)
    assert [(row.ok, row.required) for row in rows] == [(False, False)] * is_told
    assert all(release in row.detail and "not been tried" in row.detail for row in rows)


def test_the_doctor_keeps_a_dated_proof_of_what_was_withstood(tmp_path: Path) -> None:
    proof, now, key = tmp_path / "proof.json", datetime(2026, 11, 1, tzinfo=UTC), ["1", "docker"]
    held = DoctorCheck("reads /etc/shadow", "sandbox", True, True, "held")
    write_proof(proof, key, [held], now)
    summary = read_proof(proof, key, now + timedelta(days=2))[0]
    assert (summary.ok, summary.detail) == (True, "1 of 1 held at 2026-11-01 00:00 UTC")
    assert read_proof(proof, ["2", "docker"], now) == [], "another version proves nothing"
    assert read_proof(proof, key, now + timedelta(days=31)) == [], "it is too old"
    assert read_proof(proof, key, now - timedelta(days=1)) == [], "it is from the future"
    write_proof(proof, key, [held, replace(held, ok=False)], now)
    assert read_proof(proof, key, now) == [], "an attack got through"
    proof.write_text("[1]")
    assert read_proof(proof, key, now) == []


def test_a_plan_begins_with_how_much_can_be_reproduced(tmp_path: Path) -> None:
    workflow = tmp_path / "ci.yml"
    workflow.write_text(
        "on: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n    strategy: {matrix: {n: [1, 2, 3, 4, 5]}}\n"
        "    steps: [{run: pytest}]\n  other:\n    runs-on: windows-latest\n    steps: [{run: dir}]\n"
    )
    said = regreen("plan", str(workflow)).stdout
    assert said.startswith("5 of 6 jobs can be reproduced\n")
    assert "test (1), test (2), test (3), test (4) and 1 more: can be reproduced" in said
    assert said.count("pytest") == 1
    assert "  blocked by: " in said
    assert said.count("  instead: `regreen fix -- COMMAND` ") == 1, "of the one that is blocked"
