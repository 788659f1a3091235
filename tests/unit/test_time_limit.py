"""A command ends at its limit, with one whole answer, whatever it is doing."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from regreen.cli.options import time_limit_option
from regreen.cli.terminal import report_progress
from regreen.domain.job_control import TimeLimit
from regreen.fixers.ladder import fix_failure
from tests.unit.repairs import Repository, job, sandbox_or_skip

SECONDS = 3.0
SCRIPT = """
import sys, threading, time
import click
from regreen.cli.options import time_limit_option
from regreen.domain.job_control import OutOfTime

watcher_answers = threading.Event()

def answer_late(options, reason, seconds):
    watcher_answers.set()
    time.sleep(60 if options["stuck"] == "answering" else 0.1)
    return '{"late": true}'

@click.command()
@time_limit_option(answer_late, default=SECONDS / 60, least=click.FloatRange(min=0))
@click.argument("stuck")
def command(limit, stuck):
    if stuck == "thread":
        threading.Thread(target=time.sleep, args=(60,)).start()
        limit.begin_answer()
        click.echo('{"late": false}')
        return 7
    try:
        time.sleep(60)
    except OutOfTime:
        if stuck == "done meanwhile":
            watcher_answers.wait()
            limit.begin_answer()
            click.echo('{"late": false}')
            return 7
        time.sleep(60)

sys.exit(command.main(standalone_mode=False, obj=time.monotonic()))
"""


def run(work: Callable[[TimeLimit], int], seconds: float = SECONDS) -> tuple[str, int, float]:
    def answer_late(_options: Mapping[str, Any], reason: str, _seconds: float) -> str:
        return f"late: {reason}"

    @click.command()
    @time_limit_option(answer_late, least=click.FloatRange(min=0), late_code=5)
    def command(limit: TimeLimit) -> int:
        return work(limit)

    started = time.monotonic()
    done = CliRunner().invoke(command, ["--max-minutes", str(seconds / 60)], standalone_mode=False)
    return done.stdout, int(done.return_value or 0), time.monotonic() - started


def sleep_on(_limit: TimeLimit) -> int:
    try:
        time.sleep(60)
    except Exception:  # noqa: BLE001 - the work's own handlers do not hold up the end
        time.sleep(60)
    return 0


def test_a_call_that_nothing_cancels_is_left_before_the_limit() -> None:
    said, code, took = run(sleep_on)
    assert said.startswith("late: the 0.05 minutes were over")
    assert code == 5
    assert took < SECONDS


def test_the_reason_has_what_failed_before_the_stage_that_was_cut_off() -> None:
    def set_up_again(limit: TimeLimit) -> int:
        report_progress("the setup inferred from a failed: still downloading torch")
        report_progress("setting up as inferred from b")
        return sleep_on(limit)

    said, _, _ = run(set_up_again)
    assert said == (
        "late: the 0.05 minutes were over while setting up as inferred from b "
        "(the setup inferred from a failed: still downloading torch)\n"
    )


def test_an_answer_that_has_begun_is_not_interrupted() -> None:
    def answer(limit: TimeLimit) -> int:
        assert limit.begin_answer()
        while limit.deadline + 0.5 > time.monotonic():
            time.sleep(0.05)
        click.echo("the answer")
        return 0

    assert run(answer)[:2] == ("the answer\n", 0)


def test_work_that_is_cancelled_by_the_limit_is_late_and_not_stopped_by_the_user() -> None:
    def wait(limit: TimeLimit) -> int:
        while not limit.cancel.is_set():
            time.sleep(0.02)
        from regreen.domain.errors import Cancelled

        raise Cancelled("cancelled")

    said, code, took = run(wait)
    assert (said[:5], code) == ("late:", 5)
    assert took < SECONDS


@pytest.mark.parametrize(
    ("stuck", "code", "late"),
    [("thread", 7, False), ("unwinding", 1, True), ("done meanwhile", 1, True)],
)
def test_a_process_that_cannot_end_by_itself_is_ended_at_the_limit(
    stuck: str, code: int, late: bool
) -> None:
    script = SCRIPT.replace("SECONDS", "5.0")
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-c", script, stuck], capture_output=True, check=False)
    assert time.monotonic() - started < 5.0 + 1.0  # the interpreter's own start is not counted here
    assert (done.returncode, json.loads(done.stdout)) == (code, {"late": late})


def test_an_answer_that_takes_too_long_does_not_pass_the_limit() -> None:
    script = SCRIPT.replace("SECONDS", "5.0")
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", script, "answering"], capture_output=True, check=False
    )
    assert time.monotonic() - started < 5.0 + 1.0  # the interpreter's own start is not counted here
    assert (done.returncode, done.stdout) == (1, b"")


def test_a_process_that_calls_a_command_lives_on_after_its_limit() -> None:
    code = (
        "import time\nfrom regreen.cli import main\ntry:\n"
        "    main(['env', '--repo', '/nowhere', '--max-minutes', '0.1'])\n"
        "except SystemExit as ended:\n    print('ended', ended.code, flush=True)\n"
        "time.sleep(8)\nprint('alive')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "ended 3\nalive\n"), done.stderr


LIST = """import sys
whole = "apple\\npear\\n"
if "--check" in sys.argv:
    sys.exit(open("fruits.txt").read() != whole)
open("fruits.txt", "w").write(whole)
"""


@pytest.mark.sandbox
def test_a_patch_that_waits_for_a_person_stands_when_the_time_ends_behind_it(
    tmp_path: Path,
) -> None:
    repository = Repository(tmp_path / "repo")
    rev = repository.commit("list the fruits", {"list.py": LIST, "fruits.txt": "apple\n"})
    said: list[str] = []

    def jump_once_a_patch_waits() -> float:
        return time.monotonic() + 3600 * any("needs_human" in line for line in said)

    found = fix_failure(
        job(rev, "python3", "list.py", "--check", setup=None, reruns=1, rungs=("recipe", "revert")),
        git=repository.open(),
        sandbox=sandbox_or_skip(),
        model=None,
        progress=said.append,
        now=jump_once_a_patch_waits,
    )
    assert (found.outcome, found.rung) == ("needs_human", "recipe")
    assert found.patch is not None
    assert "+pear" in found.patch
