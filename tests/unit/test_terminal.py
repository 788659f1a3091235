"""What reaches a person's terminal of foreign text."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

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
