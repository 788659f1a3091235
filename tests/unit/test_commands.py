"""The grammar of slash-commands, and who may give them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regreen.bot.commands import NAMES, Command, Unclear, commands_in, may
from regreen.forge import PERMISSIONS


def _names(body: str, prefix: str = "/") -> list[str]:
    return [c.name if isinstance(c, Command) else "?" for c in commands_in(body, prefix)]


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("/review", ["review"]),
        ("  /review full  ", ["review"]),
        ("/FIX", ["fix"]),
        ("thanks!\n/fix\nand\n/cancel", ["fix", "cancel"]),
        ("/fix\r\n/review\r\n", ["fix", "review"]),
        ("please /fix this", []),
        ("> /fix", []),
        ("    /fix", []),
        ("\t/fix", []),
        ("```\n/fix\n```", []),
        ("~~~~\n/fix\n~~~\n/fix\n~~~~\n/review", ["review"]),
        ("```\n/fix", []),
        ("`/fix`", []),
        ("<!-- \n/fix\n-->\n/help", ["help"]),
        ("<!-- note -->\n/help", ["help"]),
        ("/usr/bin/python is broken", []),
        ("/lgtm\n/assign @ann", []),
        ("/", []),
        ("//fix", []),
        ("", []),
    ],
)
def test_where_a_command_is_one(body: str, names: list[str]) -> None:
    assert _names(body) == names


def test_another_prefix() -> None:
    assert _names("@regreen fix\n/fix", "@regreen") == ["fix"]


def test_bisect_takes_shell_quoting() -> None:
    (command,) = commands_in("""/bisect good=v1.0 bad=main test="pytest -k 'a b'" """)
    assert isinstance(command, Command)
    assert command.options == {"good": "v1.0", "bad": "main", "test": "pytest -k 'a b'"}


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("/reviw", "there is no `/reviw`; did you mean `/review`?"),
        ("/bisct", "there is no `/bisct`; did you mean `/bisect`?"),
        ("/frobnicate", "there is no `/frobnicate`; `/help` lists what there is"),
        ("/ask", "what is the question? `/ask QUESTION`"),
        ("/review everything", "`everything` is not understood; it goes `/review [full]`"),
        ("/help me", "`me` is not understood; it goes `/help`"),
        ('/bisect test="open', "a quotation mark is not closed"),
        ("/bisect good=--output=x", "`good=` wants a commit, branch or tag"),
        (
            "/bisect good=",
            '`good=` is not understood; it goes `/bisect [good=REV] [bad=REV] [test="CMD"]`',
        ),
        ("/test ../../etc/passwd", "`../../etc/passwd` is not understood; it goes `/test [path]`"),
    ],
)
def test_what_is_wrong_is_said_with_what_is_right(body: str, problem: str) -> None:
    (found,) = commands_in(body)
    assert isinstance(found, Unclear)
    assert found.problem == problem


def test_at_most_ten_in_one_comment() -> None:
    assert len(commands_in("/help\n" * 50)) == 10


def test_the_permission_table() -> None:
    who = {has for has in PERMISSIONS if may("fix", has, "write")}
    assert who == {"write", "maintain", "admin"}
    assert may("help", "none", "admin")
    assert not may("approve", "triage", "read")
    assert may("review", "read", "read")
    assert not any(may(name, "none", "write") for name in NAMES if name != "help")


@given(st.text(max_size=400))
def test_no_comment_breaks_the_grammar(body: str) -> None:
    commands_in(body)


def test_a_hostile_comment_is_read_fast() -> None:
    started = time.monotonic()
    commands_in("`" * 30_000 + "\n" + "/bisect " + '"' * 30_001 + "\n" + "<!--" * 10_000)
    assert time.monotonic() - started < 1.0
