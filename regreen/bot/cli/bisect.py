"""`regreen bisect`: the commit that broke a test, flaky or not, with its proof."""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import replace
from pathlib import Path
from shutil import get_terminal_size
from threading import Event
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from regreen.bot.cli.arguments import check_folder_of, overlay_of, variables_of
from regreen.bot.cli.options import answered_as, run_in
from regreen.bot.cli.terminal import answer, is_screen, say
from regreen.errors import Cancelled, UserError

if TYPE_CHECKING:
    from regreen.bisect.hunt import View
    from regreen.bisect.report import Bisection

_STOPPED = 130
_EXAMPLES = """\b
Examples:
  regreen bisect --good v1.4 -- pytest -q tests/test_api.py
  regreen bisect --setup "pip install -e .[test]" -- pytest -q     (no good commit known)
  regreen bisect --good v1.4 --overlay /tmp/new_test.py -- python new_test.py

Exit code: 0 a commit was found, or a set that no run can tell apart; 1 there is none; 2 wrong usage; 3 no sandbox or
no repository. After an interruption the same command with --resume goes on.
"""
_ANSWERS = frozenset({"found", "narrowed"})
_BARS = " ▁▂▃▄▅▆▇█"
_NARROWEST, _WIDEST = 8, 40  # of them side by side


@click.command("bisect", epilog=_EXAMPLES)
@click.option(
    "--repo", type=click.Path(path_type=Path), default=Path(), metavar="DIR", help="The repository."
)
@click.option(
    "--good", metavar="REV", help="Where the command passed; left out: found by going back."
)
@click.option("--bad", default="HEAD", metavar="REV", help="Where it fails.")
@click.option("--first-parent", is_flag=True, help="Take each merge as one step.")
@click.option(
    "--jobs", type=click.IntRange(1, 64), default=1, metavar="K", help="Tests that run at once."
)
@click.option(
    "--confidence",
    type=click.FloatRange(0.5, 0.9999),
    default=0.99,
    metavar="P",
    help="Name a commit at this probability.",
)
@click.option(
    "--max-tests", type=click.IntRange(min=1), metavar="N", help="Stop after so many runs."
)
@click.option(
    "--max-minutes",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help="Stop after so long.",
)
@click.option(
    "--setup",
    metavar="CMD",
    help="A shell command that installs what COMMAND needs; it alone has a network. Run once for commits alike.",
)
@click.option(
    "--env",
    "variables",
    multiple=True,
    metavar="K=V",
    help="A variable for the setup and the command.",
)
@click.option(
    "--overlay", multiple=True, metavar="FILE[:DEST]", help="A file to lay over every checkout."
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=900.0,
    metavar="S",
    help="For one run.",
)
@click.option(
    "--signature",
    default="auto",
    metavar="auto|exit|REGEX",
    help="Which failures count: those like the one at --bad, any, or those whose output matches.",
)
@click.option("--find-fix", is_flag=True, help="Look for the commit that repaired it.")
@click.option(
    "--slower",
    type=click.FloatRange(min=1, min_open=True),
    metavar="X",
    help="A run that passes but takes X times longer than at --good counts as a failure.",
)
@click.option("--no-verify", is_flag=True, help="Do not prove the culprit.")
@click.option(
    "--python", metavar="X.Y", help="The Python to run with; left out: chosen by running both ends."
)
@run_in("kind")
@click.option("--resume", is_flag=True, help="Go on where the same bisection was interrupted.")
@click.option("--fresh", is_flag=True, help="Take no verdict from earlier bisections.")
@answered_as("form", "text", "json", "markdown")
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.svg",
    help="Draw the answer.",
)
@click.argument("argv", nargs=-1, type=click.UNPROCESSED, required=True, metavar="-- COMMAND...")
def command(
    *,
    repo: Path,
    good: str | None,
    bad: str,
    first_parent: bool,
    jobs: int,
    confidence: float,
    max_tests: int | None,
    max_minutes: float | None,
    setup: str | None,
    variables: tuple[str, ...],
    overlay: tuple[str, ...],
    timeout: float,
    signature: str,
    find_fix: bool,
    slower: float | None,
    no_verify: bool,
    python: str | None,
    kind: str,
    resume: bool,
    fresh: bool,
    form: str,
    plot: Path | None,
    argv: tuple[str, ...],
) -> int:
    """Find the commit that broke COMMAND.

    COMMAND runs at the root of a checkout, in a sandbox: exit 0 is good, 125 cannot be tested here, anything else
    fails. Nothing in your working tree is touched.
    """
    from regreen.adapters import sandbox as sandboxes
    from regreen.adapters.git import GitRepository
    from regreen.bisect import endpoints, report, runner
    from regreen.bisect.memory import File
    from regreen.bisect.run import BisectJob, bisect
    from regreen.bot.environment import read_settings, writable_home
    from regreen.codebase.trial import Trial

    check_folder_of(plot, "--plot")
    runner.pattern(signature)
    trial = Trial(
        command=argv,
        setup=setup,
        env=tuple(sorted(variables_of(variables))),
        overlay=overlay_of(overlay),
        timeout=timeout,
        python=python,
    )
    git = GitRepository.open(repo)
    if slower is not None and good is None:
        raise UserError("--slower needs --good: the commit whose time is the measure")
    endpoints.resolve(good, bad, find_fix=find_fix, git=git)
    job = BisectJob(
        trial=replace(trial, scope=f"local:{git.git_dir.name}"),
        good=good,
        bad=bad,
        first_parent=first_parent,
        jobs=jobs,
        confidence=confidence,
        max_tests=max_tests,
        max_minutes=max_minutes,
        signature=signature,
        find_fix=find_fix,
        slower=slower,
        verify=not no_verify,
        resume=resume,
        reuse=not fresh,
    )
    screen = _Screen(live=is_screen(sys.stderr))
    cancel = Event()
    memory = File(writable_home(read_settings()) / "bisect.db")
    earlier = _set_by_signals(cancel)
    try:
        found = bisect(
            job,
            git=git,
            sandbox=sandboxes.choose(kind),
            memory=memory,
            progress=screen.say,
            watch=screen.show,
            cancel=cancel,
        )
    except Cancelled:
        screen.say("stopped; the same command with --resume goes on from here")
        return _STOPPED
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
        screen.close()
        memory.close()
    if plot:
        plot.write_text(report.svg(found), encoding="utf-8")
    _print(found, form)
    return 0 if found.outcome in _ANSWERS else 1


def _set_by_signals(cancel: Event) -> dict[signal.Signals, Any]:
    """Let Ctrl-C end what runs, cleanly; pressed again, it ends everything. Returns the handlers there were."""

    def stop(number: int, frame: FrameType | None) -> None:
        if cancel.is_set():
            signal.default_int_handler(number, frame)
        cancel.set()

    return {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}


def _print(found: Bisection, form: str) -> None:
    from regreen.bisect import report

    if form == "json":
        click.echo(json.dumps(report.document(found)))
    else:
        is_text = form == "text"
        answer(report.text(found) if is_text else report.markdown(found), headline=is_text)


class _Screen:
    """Progress on standard error: one line a step, and on a terminal a live line below them."""

    def __init__(self, *, live: bool) -> None:
        self._live = live
        self._status = ""

    def say(self, line: str) -> None:
        self._wipe()
        say(line)
        self._draw()

    def show(self, view: View) -> None:
        self._wipe()
        best = f"{view.best[:12]} {view.probability:.0%}" if view.best else "none of them"
        told = (
            f"~{view.left} left, {best}, {view.tests} tests, {_time(view.seconds)}, "
            f"~{_time(view.remaining)} to go"
        )
        # One line, or what was drawn could not be wiped again.
        columns = get_terminal_size().columns - 1
        bars = min(_WIDEST, columns - len(told) - len("good  bad  "))
        drawn = f"good {_sparkline(view.bars, bars)} bad  " if bars >= _NARROWEST else ""
        self._status = (drawn + told)[:columns]
        self._draw()

    def close(self) -> None:
        self._wipe()
        self._status = ""

    def _draw(self) -> None:
        if self._live and self._status:
            click.echo(f"\r{self._status}", err=True, nl=False)

    def _wipe(self) -> None:
        if self._live and self._status:
            click.echo("\r\x1b[K", err=True, nl=False)


def _time(seconds: float) -> str:
    """A duration as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _sparkline(posterior: tuple[float, ...], width: int) -> str:
    """The posterior as a row of little bars."""
    if not posterior:
        return ""
    size = -(-len(posterior) // width)
    masses = [sum(posterior[at : at + size]) for at in range(0, len(posterior), size)]
    most = max(*masses, 1e-9)
    return "".join(_BARS[round(8 * mass / most)] for mass in masses)
