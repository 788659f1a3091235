"""What reaches a person's terminal of foreign text."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from regreen.bot.cli import main
from regreen.bot.cli.terminal import harmless


def test_foreign_text_cannot_steer_the_terminal() -> None:
    title = "\x1b]0;owned\x07\x1b[2Jfix\u009b31m\udcff"
    assert harmless(title) == "\ufffd]0;owned\ufffd\ufffd[2Jfix\ufffd31m\ufffd"
    assert harmless("two\n\tlines, żółć") == "two\n\tlines, żółć"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_learns_the_words(shell: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "regreen", "completion", shell], capture_output=True, text=True, check=True
    )  # fmt: skip
    assert f"_REGREEN_COMPLETE={shell}_complete" in done.stdout


def test_a_shell_asks_for_the_words_that_fit() -> None:
    asked = os.environ | {"_REGREEN_COMPLETE": "bash_complete", "COMP_WORDS": "regreen bis", "COMP_CWORD": "1"}  # fmt: skip
    code = "from regreen.bot.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], env=asked, capture_output=True, text=True, check=False)  # fmt: skip
    assert done.stdout.split() == ["plain,bisect"]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["revew"], "there is no command 'revew'; did you mean `regreen review`?"),
        (["xyzzy"], "there is no command 'xyzzy'; `regreen --help` lists them"),
        (["review", "--formt", "json"], "No such option '--formt'. Did you mean '--format'? `regreen review --help` shows how it is called"),
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
