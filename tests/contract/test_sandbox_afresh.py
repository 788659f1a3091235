"""A used box made as good as new: what one command left, the next does not find."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from regreen.domain.errors import OutsideError
from regreen.domain.models import RunResult
from regreen.domain.ports import Box
from tests.contract.sandboxes import ALL_BACKENDS, plain_env, sandbox_or_skip, tree

pytestmark = [pytest.mark.sandbox, pytest.mark.timeout(120)]

TREE = {"hello.txt": "hello\n", "src/deep/file.txt": "deep\n"}


@pytest.fixture(scope="module", params=ALL_BACKENDS)
def box(request: pytest.FixtureRequest) -> Iterator[Box]:
    kind: str = request.param
    with sandbox_or_skip(kind).open(plain_env(kind), ()) as opened:
        yield opened


def run(box: Box, script: str, **env: str) -> RunResult:
    return box.reset_and_run(tree(TREE), ["sh", "-c", script], timeout=30, env=env)


def test_the_tree_the_variables_and_the_exit_code_are_those_of_a_fresh_box(box: Box) -> None:
    done = run(box, 'pwd; cat hello.txt "$NAME"; exit 3', NAME="src/deep/file.txt")
    assert (done.ended, done.exit_code, done.stdout) == ("exit", 3, "/work\nhello\ndeep\n")
    assert run(box, "cat").stdout == "", "standard input is empty"
    assert run(box, "echo $HOME; touch $HOME/x", HOME="/tmp").stdout == "/tmp\n"


def test_no_file_is_left_wherever_it_was_put(box: Box) -> None:
    hidden = "mkdir -p q/.w; touch q/.w/x /tmp/x /dev/shm/x /home/regreen/.x hello.txt.orig; chmod 0 q/.w q; chmod 0 /work"
    assert run(box, hidden).passed
    left = run(box, "find /work /tmp /dev/shm /home/regreen -type f -o -name 'q*' | sort")
    assert left.stdout.split() == ["/work/hello.txt", "/work/src/deep/file.txt"]


def test_no_process_is_left_however_it_hides(box: Box) -> None:
    begin = "(setsid sh -c 'while :; do echo x > /tmp/alive; sleep 0.05; done' >/dev/null 2>&1 &); sleep 0.2; test -e /tmp/alive"
    assert run(box, begin).passed
    assert run(box, "sleep 0.3; test ! -e /tmp/alive").passed


def test_a_file_that_a_commit_no_longer_has_is_gone(box: Box) -> None:
    assert box.reset_and_run(tree({"old.txt": "1"}), ["test", "-e", "old.txt"], timeout=30).passed
    assert box.reset_and_run(
        tree({"new.txt": "1"}), ["test", "!", "-e", "old.txt"], timeout=30
    ).passed


def test_much_in_and_much_out_goes_through_whole(box: Box) -> None:
    big = {"big.txt": "0123456789abcdef\n" * 300_000}
    done = box.reset_and_run(tree(big), ["sh", "-c", "wc -c < big.txt; cat big.txt"], timeout=60)
    assert done.passed
    assert done.stdout.startswith("5100000\n0123456789abcdef\n")


@pytest.mark.parametrize("kind", ALL_BACKENDS)
def test_a_command_that_ends_everything_ends_its_own_box_alone(kind: str) -> None:
    sandbox = sandbox_or_skip(kind)
    with sandbox.open(plain_env(kind), ()) as box:
        try:
            run(box, "kill -9 -1")  # may end before its start is reported
            done = run(box, "echo again")
        except OutsideError:
            return
        assert done.ended == "infra" or done.stdout == "again\n"


@pytest.mark.parametrize("kind", ALL_BACKENDS)
def test_what_takes_too_long_is_killed_with_the_box(kind: str) -> None:
    sandbox = sandbox_or_skip(kind)
    with sandbox.open(plain_env(kind), ()) as box:
        done = box.reset_and_run(tree(TREE), ["sleep", "60"], timeout=0.5)
        assert done.ended == "timeout"
        assert done.seconds < 5
        with pytest.raises(OutsideError):
            box.reset_and_run(tree(TREE), ["true"], timeout=5)
