"""What reaches a person's terminal of foreign text."""

from __future__ import annotations

from regreen.bot.cli.terminal import harmless


def test_foreign_text_cannot_steer_the_terminal() -> None:
    title = "\x1b]0;owned\x07\x1b[2Jfix\u009b31m\udcff"
    assert harmless(title) == "\ufffd]0;owned\ufffd\ufffd[2Jfix\ufffd31m\ufffd"
    assert harmless("two\n\tlines, żółć") == "two\n\tlines, żółć"
