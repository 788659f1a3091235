"""Text for a person's terminal, which foreign text (file names, commit subjects, output) must not steer."""

from __future__ import annotations

import os
import re
import sys
import time
from threading import Event, Lock, Thread
from typing import TextIO

import click

_CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_WORD_COLOURS = {
    "ok": "green",
    "FAIL": "red",
    "fixed": "green",
    "allow": "green",
    "deny": "red",
    "needs_human": "yellow",
    "critical": "red",
    "high": "red",
    "medium": "yellow",
    "low": "cyan",
}
_COLOURED_WORD = re.compile(
    r"^(?:(?P<verdict>ok|FAIL|fixed|allow|deny|needs_human)|(?P<place>.+?:\d+: )(?P<severity>critical|high|medium|low))(?= |$)",
    re.MULTILINE,
)


_silenced = Event()  # of the process, like the stream: progress is reported from many threads


def silence_progress(_context: click.Context, _option: click.Parameter, value: bool) -> None:
    """Print no progress until the command ends, if `value`; a callback of click."""
    if value:
        _silenced.set()
        _context.call_on_close(_silenced.clear)


def strip_control_characters(text: str) -> str:
    """The text without control characters and without bytes that are no text."""
    return _CONTROL_CHARACTERS.sub("\N{REPLACEMENT CHARACTER}", text)


def report_note(line: str) -> None:
    """One line on standard error that is no stage of the work, unless the user wants none."""
    if not _silenced.is_set():
        click.echo(strip_control_characters(line), err=True)


def report_warning(line: str) -> None:
    """One line on standard error that changes what the answer means: shown also where the user wants no progress."""
    click.echo(strip_control_characters(line), err=True)


def report_progress(line: str) -> None:
    """One line of progress on standard error with the time since the first, unless the user wants none.

    A stage that lasts says so every ten seconds, until the next one or the answer. Credentials in it are hidden.
    """
    from regreen.secrets.redaction import redact_secrets

    shown = redact_secrets(strip_control_characters(line))
    with _stage.lock:
        _stage.begin(shown, is_shown=not _silenced.is_set())


class _Stage:
    """What the command does now, said again while it lasts."""

    def __init__(self) -> None:
        self.lock = Lock()
        self._started = time.monotonic()
        self._stopped: Event | None = None
        self.line = self.before = ""

    def begin(self, line: str, *, is_shown: bool) -> None:
        """Say what begins, with the seconds that the command has taken."""
        self.end()
        self.before, self.line = self.line, line
        if not is_shown:
            return
        if self._stopped is None:
            self._started = time.monotonic()
        click.echo(self._stamp(line), err=True)
        self._stopped = Event()
        Thread(target=self._repeat, args=(line, self._stopped), daemon=True).start()

    def end(self) -> None:
        """Say nothing more of the stage."""
        if self._stopped is not None:
            self._stopped.set()

    def _repeat(self, line: str, stopped: Event) -> None:
        while not stopped.wait(_SECONDS_BETWEEN_LINES):
            click.echo(self._stamp(f"... still {line}"), err=True)

    def _stamp(self, line: str) -> str:
        seconds = time.monotonic() - self._started
        return f"[{seconds:3.0f} s] {line}" if seconds >= 1 else line


def end_progress() -> None:
    """Report nothing more of the stage that was reported last."""
    with _stage.lock:
        _stage.end()


def read_stage() -> str:
    """What was reported last as being done, and what failed right before it; "" before anything was."""
    doing, before = (line.partition("\n")[0] for line in (_stage.line, _stage.before))
    return f"{doing} ({before})" if " failed: " in before else doing


_SECONDS_BETWEEN_LINES = 10.0
_stage = _Stage()


def shows_live_progress() -> bool:
    """Whether a line of progress may be drawn again and again."""
    return is_capable_terminal(sys.stderr) and not _silenced.is_set()


def print_answer(words: str, *, headline: bool = False) -> None:
    """What was asked for, on standard output; coloured where a person looks at it, its first line bold if it is one."""
    end_progress()
    words = strip_control_characters(words).rstrip("\n")
    if is_capable_terminal(sys.stdout) and not os.environ.get("NO_COLOR"):  # https://no-color.org
        words = _colour_text(words, headline=headline)
    click.echo(words)


def is_capable_terminal(stream: TextIO | None) -> bool:
    """Whether a stream goes to a terminal that can do more than print line after line; None: it was closed."""
    return stream is not None and stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _colour_text(words: str, *, headline: bool) -> str:
    painted = _COLOURED_WORD.sub(_colour_word, words)
    first, newline, rest = painted.partition("\n")
    is_plain = headline and first in words
    return (click.style(first, bold=True) if is_plain else first) + newline + rest


def _colour_word(found: re.Match[str]) -> str:
    word = found["verdict"] or found["severity"]
    return (found["place"] or "") + click.style(word, fg=_WORD_COLOURS[word], bold=True)
