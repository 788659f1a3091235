"""Functions in child processes: whatever happens to one, its caller goes on with the reason in words."""

from __future__ import annotations

import ast
import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from regreen import isolation
from regreen.domain.errors import AnalysisFailed, Cancelled, OutsideError, UserError
from regreen.isolation import Budget, ChildCall, ChildLimits, run_in_child, run_in_children

TIGHT = ChildLimits(cpu=1, seconds=30, memory=400, result=1)
_USED_UP = r"^not started: the 1 s of CPU time for all of them are used up$"
SHORT = ChildLimits(cpu=30, seconds=1, memory=400, result=1)


def compute_forever() -> None:
    while True:
        pass


def wait_forever() -> None:
    threading.Event().wait()


def take_two_gigabytes() -> int:
    return len(bytearray(2 << 30))


def read_address_zero() -> None:
    ctypes.string_at(0)


def look_up_nothing() -> None:
    known: dict[str, str] = {}
    known["the missing key"]


def answer_two_mebibytes() -> bytes:
    return bytes(2 << 20)


def leave() -> None:
    os._exit(7)


def hold_open(pipe: str) -> None:
    """Say on the pipe that we run, then start a program that keeps the pipe open, and wait for it."""
    writer = os.open(pipe, os.O_WRONLY)
    os.write(writer, b"started\n")
    subprocess.run(["sleep", "1000"], pass_fds=[writer], check=False)


def hold_open_below(pipe: str) -> None:
    run_in_children([ChildCall(hold_open, (pipe,), ChildLimits())], concurrent=1)


def kill_the_starter(pipe: str) -> None:
    os.open(pipe, os.O_WRONLY)
    os.kill(os.getppid(), signal.SIGKILL)
    wait_forever()


def describe(results: list[Callable[[], object]]) -> list[str]:
    def describe_one(value: Callable[[], object]) -> str:
        try:
            return str(value())
        except AnalysisFailed as error:
            return str(error)

    return [describe_one(one) for one in results]


def add(one: int, other: int) -> int:
    return one + other


def add_and_fail() -> list[str]:
    calls = [
        ChildCall(add, (1, 2), TIGHT),
        ChildCall(compute_forever, (), TIGHT),
        ChildCall(take_two_gigabytes, (), TIGHT),
        ChildCall(add, (3, 4), TIGHT),
    ]
    return describe([ended.get_value for ended in run_in_children(calls, concurrent=2)])


def compute_beside(budget: Budget) -> list[str]:
    calls = [ChildCall(compute_forever, (), ChildLimits()), *[ChildCall(add, (1, 2), TIGHT)] * 2]
    return describe(
        [ended.get_value for ended in run_in_children(calls, concurrent=1, budget=budget)]
    )


def refuse(kind: str) -> None:
    raise OutsideError("the disk is full", 30) if kind == "outside" else UserError("name a branch")


@pytest.mark.parametrize(
    ("function", "limits", "reason"),
    [
        (compute_forever, TIGHT, "took more than 1 s of CPU time"),
        (wait_forever, SHORT, "took more than 1 s"),
        (take_two_gigabytes, TIGHT, "needed more than 400 MiB of memory"),
        (read_address_zero, TIGHT, "was ended by signal 11 (Segmentation fault)"),
        (look_up_nothing, TIGHT, "failed: KeyError"),
        (answer_two_mebibytes, TIGHT, "its result is larger than 1 MiB"),
        (leave, TIGHT, "ended with status 7"),
    ],
)
def test_a_function_that_goes_wrong_costs_its_own_result_alone(
    function: Callable[[], object], limits: ChildLimits, reason: str
) -> None:
    with pytest.raises(AnalysisFailed) as failed:
        run_in_child(function, limits=limits)
    assert str(failed.value) == reason
    assert run_in_child(add, 1, 2) == 3


def test_what_children_share_of_cpu_time_is_used_up_once_for_all() -> None:
    budget = Budget(1)
    assert run_in_child(add, 1, 2, budget=budget) == 3
    with pytest.raises(AnalysisFailed, match=r"^took more than 1 s of CPU time$"):
        run_in_child(compute_forever, budget=budget)
    with pytest.raises(AnalysisFailed, match=_USED_UP):
        run_in_child(add, 1, 2, budget=budget)


def test_what_a_child_has_started_is_spent_too() -> None:
    budget = Budget(1)
    done, *others = run_in_child(compute_beside, Budget(1), budget=budget)
    assert done == "took more than 1 s of CPU time"
    assert [re.match(_USED_UP, reason) is not None for reason in others] == [True, True]
    with pytest.raises(AnalysisFailed, match=_USED_UP):
        run_in_child(add, 1, 2, budget=budget)


def test_a_bug_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(AnalysisFailed):
        run_in_child(look_up_nothing)
    assert 'in look_up_nothing\n    known["the missing key"]' in caplog.text


def test_errors_that_are_no_bugs_arrive_as_they_were_raised() -> None:
    with pytest.raises(UserError, match="name a branch"):
        run_in_child(refuse, "user")
    with pytest.raises(OutsideError, match="the disk is full") as failed:
        run_in_child(refuse, "outside")
    assert failed.value.retry_after == 30


def test_children_of_a_child_fail_one_by_one() -> None:
    assert run_in_child(add_and_fail) == [
        "3",
        "took more than 1 s of CPU time",
        "needed more than 400 MiB of memory",
        "7",
    ]


def test_only_a_child_forks_directly() -> None:
    with pytest.raises(RuntimeError, match="one thread"):
        run_in_children([ChildCall(add, (1, 2), TIGHT)], concurrent=1)


@pytest.mark.parametrize("function", [hold_open, hold_open_below])
def test_what_is_cancelled_ends_with_all_that_it_started(
    function: Callable[[str], None], tmp_path: Path
) -> None:
    pipe, cancel = _pipe(tmp_path), threading.Event()

    def cancel_once_started() -> None:
        with pipe.open() as reader:
            reader.readline()
            cancel.set()
            reader.read()  # ends when nobody holds the pipe open any more

    watching = threading.Thread(target=cancel_once_started)
    watching.start()
    with pytest.raises(Cancelled):
        run_in_child(function, str(pipe), cancel=cancel)
    watching.join()


@pytest.mark.parametrize("function", [hold_open, hold_open_below])
def test_what_takes_too_long_ends_with_all_that_it_started(
    function: Callable[[str], None], tmp_path: Path
) -> None:
    pipe = _pipe(tmp_path)
    both = os.open(pipe, os.O_RDWR)  # the child need not wait for a reader
    with pytest.raises(AnalysisFailed, match="took more than 1 s"):
        run_in_child(function, str(pipe), limits=SHORT)
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)) as reader:
        os.set_blocking(reader.fileno(), True)
        os.close(both)
        reader.read()  # ends when nobody holds the pipe open any more


@pytest.mark.parametrize("name", ["hold_open", "hold_open_below"])
def test_nothing_outlives_a_caller_that_is_killed(name: str, tmp_path: Path) -> None:
    pipe = _pipe(tmp_path)
    program = f"from {__name__} import *; run_in_child({name}, {str(pipe)!r})"
    root = Path(__file__).parents[2]
    with (
        subprocess.Popen([sys.executable, "-c", program], cwd=root) as caller,
        pipe.open() as reader,
    ):
        assert reader.readline() == "started\n"
        caller.kill()
        assert reader.read() == ""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a child ends at its limits")
def test_a_child_ends_with_the_process_that_forked_it(tmp_path: Path) -> None:
    pipe = _pipe(tmp_path)
    both = os.open(pipe, os.O_RDWR)
    with pytest.raises(AnalysisFailed, match="was killed"):
        run_in_child(kill_the_starter, str(pipe), limits=ChildLimits(seconds=1000))
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)) as reader:
        os.set_blocking(reader.fileno(), True)
        os.close(both)
        reader.read()
    assert run_in_child(add, 1, 2) == 3


def parent_and_modules() -> tuple[int, bool]:
    return os.getppid(), "this" in sys.modules


def test_a_server_that_was_started_early_has_the_module_and_takes_the_next_call() -> None:
    isolation._server_pool.close_all()
    isolation.start_server("this")
    (server,) = isolation._server_pool._idle
    assert run_in_child(parent_and_modules) == (server._process.pid, True)


def test_a_server_that_could_not_import_its_module_is_replaced() -> None:
    isolation._server_pool.close_all()
    isolation.start_server("there_is_no_such_module")
    (server,) = isolation._server_pool._idle
    server._process.wait(30)
    assert run_in_child(parent_and_modules)[1] is False


def test_a_child_gets_no_credential_from_the_environment() -> None:
    program = "from regreen.isolation import run_in_child as run; from os import getenv; print(run(getenv, 'KEY'), run(getenv, 'PATH'))"
    environment = {"PATH": "/usr/bin:/bin", "KEY": "secret"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "None /usr/bin:/bin\n"


def raise_read_text() -> None:
    raise ValueError("read \x1b[31mred")


def test_the_traceback_of_a_bug_steers_no_terminal() -> None:
    program = "from regreen.isolation import run_in_child; from tests.unit.test_isolation import raise_read_text; run_in_child(raise_read_text)"
    top = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=top, capture_output=True, text=True, check=False
    )
    assert r"ValueError: read \x1b[31mred" in done.stderr
    assert "\x1b" not in done.stderr


def _pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


# What reads untrusted text, by the module in which a job asks for it.
_READERS = {
    "bisect/bisection.py": ["apply_first_upgrades", "find_upgrades"],
    "bot/flows/answer.py": ["_read_change_context"],
    "bot/flows/failed_job.py": ["_add_planned_trial", "_read_signature", "plan_workflow"],
    "cli/fix.py": ["_plan_trial"],
    "cli/plan.py": ["plan_workflow"],
    "code/hunks.py": ["_find_pieces"],
    "environment/inference.py": ["_infer_environments_now"],
    "environment/preparation.py": ["_read_lacks"],
    "fixers/case.py": ["classify_check"],
    "fixers/rungs/recipe_rung.py": [
        "complete_change",
        "follow_change",
        "fill_left_places",
        "rewrite_examples",
        "drop_strict_xfails",
        "propose_named_edits",
        "propose_small_edits",
        "tools.declare_bound",
        "tools.find_derived_locks",
        "tools.find_suspects",
        "tools.make_search_script",
        "tools.move_pin",
        "tools.propose_declarations",
        "tools.propose_free_pins",
        "tools.move_imports",
    ],
    "fixers/rungs/template_rung.py": [
        "_select_likely_edits",
        "_sort_by_new_lint_findings",
        "make_mutants",
    ],
    "fixers/verify_patch.py": ["_run_gate", "_find_layout_and_losses"],
    "fixers/warm_engine.py": ["_parse_rows"],
    "languages/python/dependencies.py": ["make_test_setup"],
    "logs/ci_log.py": ["_parse_file", "failures_in"],
    "reviewers/analyzers/coverage.py": ["tool.parse_report"],
}


@pytest.mark.parametrize(
    ("module", "reader"), [(module, name) for module, names in _READERS.items() for name in names]
)
def test_untrusted_text_is_read_in_a_child_process_only(module: str, reader: str) -> None:
    tree = ast.parse((Path(__file__).parents[2] / "regreen" / module).read_text("utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    direct = [node.lineno for node in calls if ast.unparse(node.func) == reader]
    in_child = [
        node.lineno
        for node in calls
        if ast.unparse(node.func).endswith("run_in_child")
        and ast.unparse(node.args[0]).removeprefix("partial(").split(",")[0] == reader
    ]
    reads_in_child = {
        inner.lineno
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef) and outer.name in _READERS[module]
        for inner in ast.walk(outer)
        if isinstance(inner, ast.Call)
    }
    assert in_child
    assert set(direct) <= reads_in_child
