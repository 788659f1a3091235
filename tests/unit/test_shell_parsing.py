"""Given any text as a shell script, the parser describes it or leaves it, and never ends the process."""

import subprocess
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from regreen.shell.parse import find_commands, parse_script

PIECES = st.sampled_from([
    "<<", "<<-", "EOF", "'EOF'", "\n", "{", "}", "..", "1", "9" * 14, "$", "(", "))", "((", "`", "\\", '"', "'",
    "|", "&&", ";", "case", "esac", "in", "if", "then", "fi", "for", "do", "done", "[[", "]]", "=~", "x", "é",
    "\U000f0000", "\t", " ", "$((", "${", "#", "!", "@", "*", "function", "()", ">&", "<(", "\x00", "\r", "<<<", "=",
    "pip install x", "$'", "\\9", "\\ud800", "\\U7fffffff",
])  # fmt: skip


def test_a_brace_before_a_character_outside_the_scanners_tables_does_not_end_the_process() -> None:
    # In a process of its own: what fails here is a segmentation fault.
    program = "from regreen.shell.parse import parse_script; print(len(parse_script('echo {1..\\U000f0000}').commands))"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout) == (0, "1\n"), run.stderr


@settings(max_examples=300)
@given(st.lists(PIECES, max_size=40).map("".join))
def test_no_script_breaks_the_parser(script: str) -> None:
    for command in find_commands(script):
        assert 0 <= command.start <= command.end


def test_characters_beyond_ascii_are_parts_of_words_and_keep_their_places() -> None:
    script = "é=1 pip install 'naïve' \u00a0x && echo 日本"
    first, second = parse_script(script).commands
    assert first.arguments[-1] == "\u00a0x"
    assert "naïve" in first.arguments
    assert second.arguments == ["echo", "日本"]
    assert script.encode()[second.start : second.end].decode() == "echo 日本"


def test_the_escapes_of_an_ansi_c_string_are_those_of_bash() -> None:
    (command,) = find_commands(r"$'\160ip' $'\x69nstall' $'\560\U78' $'a\9' $'\ud800'")
    assert command.arguments == ["pip", "install", "px", "a9", "\ufffd"]
