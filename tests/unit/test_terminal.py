"""What reaches a person's terminal of foreign text."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from regreen.bisect.session import SearchView
from regreen.cli import main
from regreen.cli.bisect import _ProgressDisplay
from regreen.cli.terminal import strip_control_characters
from regreen.domain.models import Failure
from regreen.fixers.case import Attempt, FixResult, InitialFailure
from regreen.fixers.report import format_text
from regreen.gate.judge import GateReport


def test_foreign_text_cannot_steer_the_terminal() -> None:
    title = "\x1b]0;owned\x07\x1b[2Jfix\u009b31m\udcff"
    assert strip_control_characters(title) == "\ufffd]0;owned\ufffd\ufffd[2Jfix\ufffd31m\ufffd"
    assert strip_control_characters("two\n\tlines, żółć") == "two\n\tlines, żółć"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_learns_the_words(shell: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "regreen", "completion", shell], capture_output=True, text=True, check=True
    )  # fmt: skip
    assert f"_REGREEN_COMPLETE={shell}_complete" in done.stdout


def test_a_shell_asks_for_the_words_that_fit() -> None:
    asked = os.environ | {"_REGREEN_COMPLETE": "bash_complete", "COMP_WORDS": "regreen bis", "COMP_CWORD": "1"}  # fmt: skip
    code = "from regreen.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], env=asked, capture_output=True, text=True, check=False)  # fmt: skip
    assert done.stdout.split() == ["plain,bisect"]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["revew"], "there is no command 'revew'; did you mean `regreen review`?"),
        (["xyzzy"], "there is no command 'xyzzy'; `regreen --help` lists them"),
        (["review", "--formatt", "json"], "No such option '--formatt'. Did you mean '--format'? `regreen review --help` shows how it is called"),
        (["bisect"], "Missing argument '-- COMMAND...'; `regreen bisect --help` shows how it is called"),
        (["fix", "--max-usd", "much", "--", "true"], "'much' is not a number; `regreen fix --help` shows how it is called"),
        (["sandbox", "--memory", "10X", "--", "true"], "'10X' is not a whole number; `regreen sandbox --help` shows how it is called"),
    ],
)  # fmt: skip
def test_a_slip_is_answered_in_one_line_that_says_what_was_meant(
    typed: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(typed)
    assert stopped.value.code == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("regreen: ")
    assert err.strip().endswith(said)


def _on_a_screen(*words: str, cwd: Path, **env: str) -> str:
    """What a person's terminal is sent."""
    ours, theirs = pty.openpty()
    clean = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    done = subprocess.Popen(
        [sys.executable, "-m", "regreen", *words],
        cwd=cwd, env=clean | {"TERM": "xterm", "REGREEN_HOME": str(cwd)} | env, stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while True:
        try:
            more = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        shown += more
        if not more:
            break
    done.wait()
    os.close(ours)
    return shown.decode()


@pytest.mark.parametrize(
    ("env", "is_coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colours_are_for_those_who_look_and_want_them(
    env: dict[str, str], is_coloured: bool, tmp_path: Path
) -> None:
    shown = _on_a_screen("doctor", "--only", "git", cwd=tmp_path, **env)
    assert ("\x1b[" in shown) == is_coloured
    assert "git is new enough" in shown


def test_a_pipe_gets_no_colours(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "regreen", "doctor", "--only", "git"]
    done = subprocess.run(argv, cwd=tmp_path, env=os.environ | {"TERM": "xterm"}, capture_output=True, check=False)  # fmt: skip
    assert b"git is new enough" in done.stdout
    assert b"\x1b" not in done.stdout


@pytest.mark.parametrize("form", [(), ("--format", "json")])
def test_what_a_file_spells_with_escapes_reaches_no_terminal(
    form: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "ci.yml").write_text('on: push\njobs:\n  x:\n    runs-on: ubuntu-latest\n    name: "a\\ud800b\\x9b31m\\e[2J"\n    steps: [{run: "true"}]\n')  # fmt: skip
    (tmp_path / "job.log").write_bytes(b"=== FAILURES ===\n___ test_a ___\nE   assert \x1b[2J\xff\x9b 1 == 2\n\na.py:3: AssertionError\nFAILED a.py::test_a - assert \xc2\x9b2J\n")  # fmt: skip
    for words in (("plan", "ci.yml"), ("ci-log", "job.log")):
        done = subprocess.run([sys.executable, "-m", "regreen", *words, *form], cwd=tmp_path, capture_output=True, check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr
        told = done.stdout.decode()
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", told)
        assert "test_a" in told or "a" in told


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_the_live_line_stays_one_line(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    _ProgressDisplay(live=True).show_view(
        SearchView(7, 12, "f" * 40, 0.5, (0.01,) * 100, 61.0, 1200.0)
    )
    drawn = capsys.readouterr().err.lstrip("\r")
    assert 0 < len(drawn) < columns
    assert ("good " in drawn) == (columns >= 80)


def test_a_repair_tells_each_failure_as_one_block_and_how_many_it_leaves_out() -> None:
    failures = tuple(Failure(f"test_{n}", "AssertionError", "4 != 3\nat index 0") for n in range(12))  # fmt: skip
    told = format_text(
        FixResult("gave_up", before=InitialFailure("pytest -q", 1, failures))
    ).splitlines()
    assert told[2] == "  test_0: AssertionError: 4 != 3"
    assert told[3] == "      at index 0"
    assert told[22] == "  and 2 more"


def test_a_repair_says_in_words_what_the_checks_and_its_attempts_came_to() -> None:
    tried = Attempt("revert", "took it back", "still_red", 3.0)
    told = format_text(
        FixResult(
            "gave_up",
            before=InitialFailure("pytest -q", 1),
            attempts=(tried, replace(tried, outcome="needs_human")),
            gate=GateReport("allow", ()),
        )
    )
    assert "\npatch safety checks: passed\n" in told
    assert told.endswith("took it back: still fails (3 s)\ntried revert: took it back: needs approval (3 s)")  # fmt: skip


_TYPED = {
    "bash": 'eval "$(regreen completion bash)"; COMP_WORDS=(regreen bis); COMP_CWORD=1; _regreen_completion regreen; echo "${COMPREPLY[@]}"',
    "zsh": "autoload -U compinit; compinit -D; eval \"$(regreen completion zsh)\"; whence -w _regreen_completion; _REGREEN_COMPLETE=zsh_complete COMP_WORDS='regreen bis' COMP_CWORD=1 regreen",
    "fish": "regreen completion fish | source; complete -C 'regreen bis'",
}


@pytest.mark.parametrize("shell", _TYPED)
def test_a_real_shell_completes_a_command(shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "regreen").write_text(f'#!/bin/sh\nexec {sys.executable} -m regreen "$@"\n')
    (tmp_path / "regreen").chmod(0o755)
    env = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)}  # fmt: skip
    typed = {"bash": ["--norc", "-c"], "zsh": ["-f", "-c"], "fish": ["--no-config", "-c"]}[shell]
    done = subprocess.run([program, *typed, _TYPED[shell]], env=env, capture_output=True, text=True, check=False, timeout=60)  # fmt: skip
    assert "bisect" in done.stdout, done.stderr
    assert "not found" not in done.stdout
