"""`regreen bisect`: the commit that broke a test, flaky or not, with its proof."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import get_terminal_size
from threading import Event
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from regreen.cli.env import complete_local_trial
from regreen.cli.options import (
    TrialOptions,
    format_option,
    keep_capsule,
    quiet_option,
    repo_option,
    require_writable_file,
    resolve_revision,
    sandbox_option,
    time_limit_option,
    trial_options,
)
from regreen.cli.terminal import print_answer, report_progress, shows_live_progress
from regreen.domain.errors import Cancelled, UserError
from regreen.domain.job_control import DeadlineEvent, TimeLimit
from regreen.domain.text_limits import format_seconds

if TYPE_CHECKING:
    from regreen.bisect.result import Bisection
    from regreen.bisect.session import SearchView

_EXIT_INTERRUPTED = 130
_SETUP_MINUTES = 30.0  # for trying an inferred setup where no limit is given
_EXAMPLES = """\b
Examples:
  regreen bisect --good v1.4 -- pytest -q tests/test_api.py
  regreen bisect --setup "pip install -e .[test]" -- pytest -q     (no good commit known)
  regreen bisect --good v1.4 --overlay /tmp/new_test.py -- python new_test.py

Exit code: 0 a commit was found, or a set that no run can tell apart; 1 there is none; 2 wrong usage; 3 no sandbox or
no repository. After an interruption the same command with --resume goes on.
"""
_SUCCESS_OUTCOMES = frozenset({"found", "narrowed"})
_SPARKLINE_BARS = " ▁▂▃▄▅▆▇█"
_NARROWEST, _WIDEST = 8, 40  # of them side by side


def _answer_late(options: Mapping[str, Any], reason: str, seconds: float) -> str:
    from regreen.bisect.result import STOPPED_AT_LIMIT, Bisection, FailureRates, SearchedRange
    from regreen.runs.trial import Trial

    late = Bisection(
        outcome="not_reproduced",
        culprit=None,
        probability=0.0,
        credible_set=(),
        verified=None,
        via_merge=None,
        tests=0,
        builds=0,
        rounds=0,
        untestable=(),
        rates=FailureRates((0.0, 0.0, 1.0), (0.0, 0.0, 1.0)),
        range=SearchedRange(options["good"], options["bad"], 0, 0),
        observations=(),
        posterior=(),
        seconds=seconds,
        command=Trial(options["argv"]).command_line,
        find_fix=options["find_fix"],
        notes=(STOPPED_AT_LIMIT, reason),
    )
    return _format_result(late, options["form"])


@click.command("bisect", epilog=_EXAMPLES)
@repo_option()
@click.option(
    "--good", metavar="REV", help="Where the command passed; left out: found by going back."
)
@click.option(
    "--bad",
    default="HEAD",
    metavar="REV",
    help="Where it fails; WORKTREE: the files as they stand.",
)
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
@time_limit_option(_answer_late, default=None, least=click.FloatRange(min=0, min_open=True))
@trial_options(
    setup_text="A shell command that installs what COMMAND needs; it alone has a network. Its result is cached between commits with the same dependencies.",
    timeout=click.FloatRange(min=0, min_open=True),
    timeout_text="For one run.",
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
@sandbox_option("kind")
@click.option("--resume", is_flag=True, help="Go on where the same bisection was interrupted.")
@click.option("--fresh", is_flag=True, help="Take no verdict from earlier bisections.")
@format_option("form", "text", "json", "markdown")
@quiet_option()
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
    limit: TimeLimit,
    options: TrialOptions,
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
    from regreen.adapters.git.repository import GitRepository
    from regreen.adapters.sandbox import selection as sandboxes
    from regreen.app.settings_loader import read_settings
    from regreen.bisect import commit_graph, commit_runner, report
    from regreen.bisect.bisection import BisectJob, run_bisection
    from regreen.bisect.verdict_memory import SqliteVerdictMemory
    from regreen.domain.private_folders import make_private

    require_writable_file(plot, "--plot")
    commit_runner.compile_signature(signature)
    trial = options.make_trial(argv, python=python)
    trial = replace(trial, env=tuple(sorted(trial.env)))
    git = GitRepository.open(repo)
    if slower is not None and good is None:
        raise UserError("--slower needs --good: the commit whose time is the measure")
    bad = resolve_revision(git, repo, bad)
    commit_graph.resolve_range(good, bad, find_fix=find_fix, git=git)
    job = BisectJob(
        trial=trial,
        good=good,
        bad=bad,
        first_parent=first_parent,
        jobs=jobs,
        confidence=confidence,
        max_tests=max_tests,
        signature=signature,
        find_fix=find_fix,
        slower=slower,
        verify=not no_verify,
        resume=resume,
        reuse=not fresh,
    )
    screen = _ProgressDisplay(live=shows_live_progress())
    sandbox = sandboxes.choose_sandbox(kind)
    memory = SqliteVerdictMemory(make_private(read_settings().home) / "bisect.db")
    cancel = Event()
    earlier = _set_event_on_signals(cancel)
    minutes = limit.minutes_left if limit.is_chosen else _SETUP_MINUTES
    both = DeadlineEvent(limit.deadline, cancel)
    try:
        done = complete_local_trial(
            trial, bad, git=git, sandbox=sandbox, minutes=minutes, cancel=both
        )
        local = replace(done.trial, scope=f"local:{git.git_dir.name}")
        found = run_bisection(
            replace(job, trial=local, max_minutes=limit.minutes_left if limit.is_chosen else None),
            git=git,
            sandbox=sandbox,
            memory=memory,
            progress=screen.print_line,
            watch=screen.show_view,
            cancel=cancel,
            keep=partial(keep_capsule, repo=repo),
        )
    except Cancelled:
        if not cancel.is_set():
            raise
        screen.close()
        click.echo("stopped; the same command with --resume goes on from here", err=True)
        return _EXIT_INTERRUPTED
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
        screen.close()
        memory.close()
    limit.begin_answer()
    _print_result(replace(found, environment=done.document), form)
    if plot:
        plot.write_text(report.render_svg(found), encoding="utf-8")
    return 0 if found.outcome in _SUCCESS_OUTCOMES else 1


def _set_event_on_signals(cancel: Event) -> dict[signal.Signals, Any]:
    """Let Ctrl-C end what runs, cleanly; pressed again, it ends everything. Returns the handlers there were."""

    def stop(number: int, frame: FrameType | None) -> None:
        if cancel.is_set():
            signal.default_int_handler(number, frame)
        cancel.set()

    return {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}


def _print_result(found: Bisection, form: str) -> None:
    if form == "json":
        click.echo(_format_result(found, form))
    else:
        print_answer(_format_result(found, form), headline=form == "text")


def _format_result(found: Bisection, form: str) -> str:
    from regreen.bisect import report
    from regreen.secrets.redaction import redact_all, redact_secrets

    if form == "json":
        return json.dumps(redact_all(report.render_document(found)))
    return redact_secrets(
        report.render_text(found) if form == "text" else report.render_markdown(found)
    )


class _ProgressDisplay:
    """Progress on standard error: one line a step, and on a terminal a live line below them."""

    def __init__(self, *, live: bool) -> None:
        self._live = live
        self._status = ""

    def print_line(self, line: str) -> None:
        self._clear_status()
        report_progress(line)
        self._draw_status()

    def show_view(self, view: SearchView) -> None:
        self._clear_status()
        best = f"{view.best[:12]} {view.probability:.0%}" if view.best else "none of them"
        status = (
            f"~{view.left} left, {best}, {view.tests} tests, {format_seconds(view.seconds)}, "
            f"~{format_seconds(view.remaining)} to go"
        )
        # One line, or what was drawn could not be wiped again.
        columns = get_terminal_size().columns - 1
        bars = min(_WIDEST, columns - len(status) - len("good  bad  "))
        drawn = f"good {_draw_sparkline(view.bars, bars)} bad  " if bars >= _NARROWEST else ""
        self._status = (drawn + status)[:columns]
        self._draw_status()

    def close(self) -> None:
        self._clear_status()
        self._status = ""

    def _draw_status(self) -> None:
        if self._live and self._status:
            click.echo(f"\r{self._status}", err=True, nl=False)

    def _clear_status(self) -> None:
        if self._live and self._status:
            click.echo("\r\x1b[K", err=True, nl=False)


def _draw_sparkline(posterior: tuple[float, ...], width: int) -> str:
    """The posterior as a row of little bars."""
    if not posterior:
        return ""
    size = -(-len(posterior) // width)
    masses = [sum(posterior[at : at + size]) for at in range(0, len(posterior), size)]
    most = max(*masses, 1e-9)
    return "".join(_SPARKLINE_BARS[round(8 * mass / most)] for mass in masses)
