"""The grammar of slash-commands, and who may give them."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regreen.bot.command_handler import (
    COMMAND_NAMES,
    Command,
    UnclearCommand,
    may_give_command,
    parse_commands,
)
from regreen.domain.github import PERMISSION_LEVELS
from tests.growth import growth


def _names(body: str, prefix: str = "/") -> list[str]:
    return [c.name if isinstance(c, Command) else "?" for c in parse_commands(body, prefix)]


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
        ("> a\n/fix", []),
        ("- a\n/fix", []),
        ("- a\n  ```\n  /fix\n  ```", []),
        ("<pre>\n\n/fix\n\n</pre>", []),
        ("text <!--\n/fix\n-->", []),
        ("[//]: # (\n/fix\n)", []),
        ('[a](/b "\n/fix\n")', []),
        ("`a\n/fix\nb`", []),
        ("*a\n/fix\nb*", []),
        ("[a\n/fix](/b)", []),
        ("/ask what is `a\n/fix` ?", ["ask"]),
        ("a | b\n--|--\n/fix | c", []),
        ("<details><summary>more</summary>\n\n/fix\n\n</details>", ["fix"]),
        ("\ue0000\ue000/fix", []),
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
    (command,) = parse_commands("""/bisect good=v1.0 bad=main test="pytest -k 'a b'" """)
    assert isinstance(command, Command)
    assert command.options == {"good": "v1.0", "bad": "main", "test": "pytest -k 'a b'"}


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("/reviw", "there is no `/reviw`. Did you mean `/review`?"),
        ("/bisct", "there is no `/bisct`. Did you mean `/bisect`?"),
        ("/frobnicate", "there is no `/frobnicate`; `/help` lists what there is"),
        ("/ask", "what is the question? `/ask QUESTION`"),
        ("/review everything", "`everything` is not understood; it goes `/review [full]`"),
        ("/explain a3fc953f", "`/explain` takes no ID; write it in the finding's thread"),
        ("/help me", "`me` is not understood; it goes `/help`"),
        ('/bisect test="open', "a quotation mark is not closed"),
        ("/bisect good=--output=x", "`good=` wants a commit, branch or tag"),
        (
            "/bisect good=",
            '`good=` is not understood; it goes `/bisect [good=REV] [bad=REV] [test="CMD"] [slower=X]`',
        ),
        ("/test ../../etc/passwd", "`../../etc/passwd` is not understood; it goes `/test [path]`"),
    ],
)
def test_what_is_wrong_is_said_with_what_is_right(body: str, problem: str) -> None:
    (found,) = parse_commands(body)
    assert isinstance(found, UnclearCommand)
    assert found.problem == problem


def test_at_most_ten_in_one_comment() -> None:
    assert len(parse_commands("/help\n" * 50)) == 10


def test_the_permission_table() -> None:
    who = {has for has in PERMISSION_LEVELS if may_give_command("fix", has, "write")}
    assert who == {"write", "maintain", "admin"}
    assert may_give_command("help", "none", "admin")
    assert not may_give_command("approve", "triage", "read")
    assert may_give_command("review", "read", "read")
    assert not any(
        may_give_command(name, "none", "write") for name in COMMAND_NAMES if name != "help"
    )


def test_what_runs_a_forks_code_takes_write_access_whatever_is_configured() -> None:
    for name in ("fix", "bisect", "test", "approve"):
        assert not may_give_command(name, "triage", "read", fork=True)
        assert may_give_command(name, "write", "read", fork=True)
    assert may_give_command("review", "read", "read", fork=True)


@given(st.text(max_size=400))
def test_no_comment_breaks_the_grammar(body: str) -> None:
    parse_commands(body)


@pytest.mark.parametrize(
    "hostile", ["`", "<!--", "![", "> ", "*", "_a*", "[a](", "<a ", "/fix `\n", "[a]: b\n"]
)
def test_a_hostile_comment_is_read_in_linear_time(hostile: str) -> None:
    cost = growth(
        lambda size: partial(parse_commands, "/help\n" + hostile * (size // len(hostile)))
    )
    assert cost < 6
