"""What every sandbox promises, asked of the real ones."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Timer

import pytest

from regreen.domain.errors import Cancelled, OutsideError, SetupFailed, UserError
from regreen.domain.models import BoxLimits, EnvSpec
from regreen.domain.ports import BOX_HOME, Box, Sandbox
from tests.contract.sandboxes import ALL_BACKENDS, BACKENDS, plain_env, sandbox_or_skip, tree

pytestmark = pytest.mark.sandbox
MiB = 1024**2


@pytest.fixture(params=ALL_BACKENDS)
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    return sandbox_or_skip(request.param)


@pytest.fixture(params=BACKENDS)
def local_sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """One that applies the limits of each box; a remote box has those of its template."""
    return sandbox_or_skip(request.param)


@pytest.fixture
def box(sandbox: Sandbox) -> Iterator[Box]:
    with sandbox.open(plain_env(sandbox.name), tree({"a.txt": "one", "src/b.txt": "two"})) as made:
        yield made


def sh(box: Box, script: str, timeout: float = 30.0) -> str:
    done = box.run(["sh", "-c", script], timeout=timeout)
    assert done.ended == "exit", done
    return done.stdout


def test_the_tree_is_there_and_belongs_to_the_command(box: Box) -> None:
    assert (
        sh(box, "cat a.txt src/b.txt; echo x >> a.txt; cat a.txt; pwd; id -u")
        == "onetwoonex\n/work\n1000\n"
    )


def test_an_exit_code_is_told_as_a_shell_would(box: Box) -> None:
    assert box.run(["sh", "-c", "exit 7"], timeout=30).exit_code == 7
    assert box.run(["sh", "-c", "exit 128"], timeout=30).exit_code == 128
    assert box.run(["no-such-program"], timeout=30).exit_code == 127
    assert box.run(["true"], timeout=30, cwd="/no/such/place").exit_code == 126
    assert box.run(["sh", "-c", "kill -9 $$"], timeout=30).exit_code == 137
    assert box.run(["sh", "-c", "kill -9 $$"], timeout=30).ended == "exit"


def test_output_comes_apart_and_input_goes_in(box: Box) -> None:
    done = box.run(["sh", "-c", "cat; echo err >&2"], timeout=30, stdin=b"in" * 100_000)
    assert (done.stderr, len(done.stdout), done.truncated) == ("err\n", 64 * 1024, True)
    assert done.stdout.startswith("inin")
    assert done.stdout.endswith("inin")
    assert "bytes left out" in done.stdout


def test_bytes_that_are_no_text_are_replaced(box: Box) -> None:
    assert sh(box, r"printf '\377\000ok'") == "\N{REPLACEMENT CHARACTER}\0ok"


def test_variables_are_given_and_nothing_else_comes_in(sandbox: Sandbox, box: Box) -> None:
    done = box.run(["env"], timeout=30, env={"A": "b c\nd"})
    names = {line.partition("=")[0] for line in done.stdout.splitlines() if "=" in line}
    assert "A=b c\nd" in done.stdout
    assert names <= {
        "A", "PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LANG", "VIRTUAL_ENV", "HOSTNAME", "PWD", "OLDPWD",
        "PIP_DISABLE_PIP_VERSION_CHECK", "PIP_NO_INPUT", "_", "SHLVL",
    }  # fmt: skip


def test_python_and_pip_are_the_asked_ones_and_pytest_is_not_there(sandbox: Sandbox) -> None:
    version = sandbox.pythons()[0]
    env = sandbox.prepare(EnvSpec(python=version), ())
    with sandbox.open(env, ()) as box:
        assert f"Python {version}." in sh(box, "python --version 2>&1")
        assert f"Python {version}." in sh(box, "python3 --version 2>&1")
        assert f"python {version})" in sh(box, "pip --version")
        assert box.run(["python", "-m", "pytest"], timeout=30).exit_code == 1


def test_home_and_tmp_can_be_written_and_shells_and_git_are_there(box: Box) -> None:
    assert sh(
        box,
        "echo 1 > $HOME/x; echo 2 > $TMPDIR/y; cat $HOME/x $TMPDIR/y; git init -q . && ls .git/HEAD",
    )


@pytest.mark.parametrize(
    "call", ["go version", "cargo --version", "java -version", "javac -version"]
)
def test_this_machines_toolchains_start(local_sandbox: Sandbox, call: str) -> None:
    if shutil.which(call.split(maxsplit=1)[0]) is None:
        pytest.skip(f"{call.split(maxsplit=1)[0]} is not installed here")
    spec = EnvSpec(host_programs=True)
    with local_sandbox.open(local_sandbox.prepare(spec, tree({})), tree({})) as box:
        done = box.run(call.split(), timeout=60)
        assert done.passed, done
        assert sh(box, "ls /etc/maven/settings.xml 2>/dev/null; true") == ""


def test_files_are_read_and_written(box: Box) -> None:
    box.write({"new/deep/file.txt": b"hello", "a.txt": b"changed"})
    assert box.read("new/deep/file.txt") == b"hello"
    assert box.read("/work/a.txt", 3) == b"cha"
    assert box.read("nothing") is None
    assert box.read("src") is None
    assert box.read("nul\0byte") is None


def test_files_are_written_into_the_home_directory(box: Box) -> None:
    box.write({f"{BOX_HOME}/tools/a.txt": b"home", "a.txt": b"tree"})
    assert (box.read(f"{BOX_HOME}/tools/a.txt"), box.read("a.txt")) == (b"home", b"tree")
    assert sh(box, 'cat "$HOME/tools/a.txt"; ls tools 2>/dev/null; true') == "home"


def test_files_cannot_be_written_elsewhere(box: Box) -> None:
    for path in ("../x", "/etc/x", "a/../../x", "", f"{BOX_HOME}/../x", BOX_HOME):
        with pytest.raises(UserError):
            box.write({path: b""})


def test_what_no_system_can_run_is_refused(box: Box) -> None:
    for argv in ([], [""], ["a\0b"]):
        with pytest.raises(UserError):
            box.run(argv, timeout=1)
    with pytest.raises(UserError):
        box.run(["true"], timeout=1, env={"A=B": "c"})


def test_a_timeout_kills_the_box_for_good(box: Box) -> None:
    begun = time.monotonic()
    done = box.run(["sh", "-c", "echo early; trap '' TERM; sleep 600"], timeout=1.0)
    assert (done.ended, done.exit_code, done.stdout) == ("timeout", None, "early\n")
    assert time.monotonic() - begun < 10
    with pytest.raises(OutsideError, match="longer than"):
        box.run(["true"], timeout=1)
    with pytest.raises(OutsideError):
        box.read("a.txt")


def test_a_cancel_kills_the_box_for_good(box: Box) -> None:
    stop = Event()
    Timer(0.5, stop.set).start()
    assert box.run(["sleep", "600"], timeout=60, cancel=stop).ended == "cancelled"
    with pytest.raises(Cancelled):
        box.run(["true"], timeout=1)


def test_a_cancel_that_came_before_is_seen(box: Box) -> None:
    stop = Event()
    stop.set()
    assert box.run(["true"], timeout=60, cancel=stop).ended == "cancelled"


def test_a_flood_is_cut_off(sandbox: Sandbox) -> None:
    with sandbox.open(plain_env(sandbox.name), (), BoxLimits(flood=MiB, output=1000)) as box:
        done = box.run(["sh", "-c", "echo first; exec yes"], timeout=60)
    assert (done.ended, done.truncated) == ("flood", True)
    assert done.stdout.startswith("first\n")
    assert len(done.stdout) <= 1000


def test_running_out_of_memory_is_told_from_being_killed(sandbox: Sandbox) -> None:
    if sandbox.name != "docker" and getattr(sandbox_or_skip("bwrap"), "why_approximate", None):
        pytest.skip("with approximate limits a process that wants too much memory fails by itself")
    with sandbox.open(plain_env(sandbox.name), (), BoxLimits(memory=96 * MiB)) as box:
        hog = "bytearray(700 * 1024 * 1024)"
        assert box.run(["python3", "-c", hog], timeout=60).ended == "oom"
        assert box.run(["sh", "-c", "kill -9 $$"], timeout=60).ended == "exit"
        # a child's end in memory shortage is the command's failure ...
        assert box.run(["sh", "-c", f"python3 -c '{hog}' || exit 3"], timeout=60).ended == "oom"
        # ... unless the command came to terms with it
        assert box.run(["sh", "-c", f"python3 -c '{hog}'; exit 0"], timeout=60).exit_code == 0


def test_files_that_fill_the_memory_end_as_oom(local_sandbox: Sandbox) -> None:
    limits = BoxLimits(memory=64 * MiB, disk=512 * MiB)
    with local_sandbox.open(plain_env(local_sandbox.name), (), limits) as box:
        assert box.run(["sh", "-c", "cat /dev/zero > big"], timeout=60).ended == "oom"


def test_a_full_disk_is_the_commands_own_error(local_sandbox: Sandbox) -> None:
    with local_sandbox.open(plain_env(local_sandbox.name), (), BoxLimits(disk=MiB)) as box:
        done = box.run(["sh", "-c", "cat /dev/zero > big"], timeout=60)
        assert int(sh(box, "stat -c %s big")) <= MiB
    assert (done.ended, done.exit_code) == ("exit", 1)
    assert "No space left" in done.stderr


def test_no_place_takes_more_than_its_limit(local_sandbox: Sandbox) -> None:
    places = {"/work": MiB, "/tmp": 2 * MiB, "/home/regreen": 2 * MiB, "/dev/shm": MiB}
    with local_sandbox.open(
        plain_env(local_sandbox.name), (), BoxLimits(disk=MiB, tmp=2 * MiB)
    ) as box:
        for place, limit in places.items():
            sh(box, f"cat /dev/zero > {place}/big 2>/dev/null; true")
            assert int(sh(box, f"stat -c %s {place}/big")) <= limit


def test_a_tree_that_does_not_fit_is_said(local_sandbox: Sandbox) -> None:
    for size in (2 * MiB, 8 * MiB):  # the box itself has no room; it is not even sent to the box
        with pytest.raises(UserError, match="more disk"):
            local_sandbox.open(
                plain_env(local_sandbox.name), tree({"big": "x" * size}), BoxLimits(disk=MiB)
            )


def test_limits_too_low_for_anything_are_refused(sandbox: Sandbox) -> None:
    with pytest.raises(UserError, match="memory of at least"):
        sandbox.open(plain_env(sandbox.name), (), BoxLimits(memory=1000))


FAR = "import urllib.request; urllib.request.urlopen('http://10.0.0.1/', timeout=20)"


def test_a_box_has_no_network(box: Box) -> None:
    assert "Network is unreachable" in box.run(["python", "-c", FAR], timeout=30).stderr


def test_a_box_knows_its_own_address(local_sandbox: Sandbox) -> None:
    ask = "import socket; print(socket.gethostbyname(socket.gethostname()))"
    with local_sandbox.open(plain_env(local_sandbox.name), tree({})) as box:
        assert box.run(["python", "-c", ask], timeout=30).stdout == "127.0.0.1\n"


def test_a_box_that_is_allowed_to_reaches_no_private_address(local_sandbox: Sandbox) -> None:
    allowed = BoxLimits(network=True)
    with local_sandbox.open(plain_env(local_sandbox.name), tree({}), allowed) as reaching:
        done = reaching.run(["python", "-c", FAR], timeout=30)
    assert (done.ended, done.exit_code) == ("exit", 1)
    assert "HTTP Error 403: Private address refused" in done.stderr


def test_a_command_that_closes_its_output_is_waited_for(box: Box) -> None:
    assert box.run(["sh", "-c", "exec >&- 2>&-; sleep 1; exit 4"], timeout=30).exit_code == 4


def test_a_daemon_that_holds_the_output_is_not_waited_for(box: Box) -> None:
    begun = time.monotonic()
    assert box.run(["sh", "-c", "setsid sleep 600 & exit 5"], timeout=60).exit_code == 5
    assert time.monotonic() - begun < 20


def test_a_source_of_the_tree_that_fails_is_not_hidden(sandbox: Sandbox) -> None:
    def broken() -> Iterator[bytes]:
        yield tree({"a": "b"})[0][:512]
        raise OutsideError("git went away")

    with pytest.raises(OutsideError):
        sandbox.open(plain_env(sandbox.name), broken())


def test_boxes_run_side_by_side(sandbox: Sandbox) -> None:
    env = plain_env(sandbox.name)

    def one(number: int) -> str:
        with sandbox.open(env, tree({"n": str(number)})) as box:
            return sh(box, "cat n")

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, range(8))) == [str(n) for n in range(8)]


PROJECT = {
    "pyproject.toml": '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
    '[project]\nname = "sample"\nversion = "1"\n[tool.setuptools]\npy-modules = ["sample"]\n',
    "sample.py": "number = 1\n",
    "stamp.txt": "original\n",
}
# Builds nothing from an index, so that these tests need no network.
SETUP = (
    "mkdir -p sample.egg-info $HOME/.config && echo made > sample.egg-info/PKG-INFO && echo kept > $HOME/.config/x"
    " && echo stamped > stamp.txt && git describe --tags > version.txt"
    " && cp sample.py $(python -c 'import sysconfig; print(sysconfig.get_path(\"purelib\"))')/installed.py"
)


def test_what_a_setup_left_is_in_every_later_box(sandbox: Sandbox) -> None:
    spec = EnvSpec(setup=SETUP, inputs="one", scope="tests")
    env = sandbox.prepare(spec, tree(PROJECT))
    with sandbox.open(env, tree(PROJECT)) as box:
        assert sh(box, "cat sample.egg-info/PKG-INFO $HOME/.config/x stamp.txt version.txt") == (
            "made\nkept\nstamped\nv999.0.0\n"
        )
        assert sh(
            box, "python -c 'import installed; print(installed.number)'; ls -d .git 2>&1"
        ).startswith("1\n")
        assert box.run(["test", "-e", ".git"], timeout=30).exit_code == 1
    # another commit whose own file differs from what the setup saw keeps its own file
    later = PROJECT | {"stamp.txt": "later\n"}
    with sandbox.open(env, tree(later)) as box:
        assert sh(box, "cat stamp.txt sample.egg-info/PKG-INFO") == "later\nmade\n"


def test_an_environment_is_found_again_without_running_anything(sandbox: Sandbox) -> None:
    spec = EnvSpec(setup=SETUP, inputs="one", scope="tests")
    sandbox.prepare(spec, tree(PROJECT))

    def never() -> Iterator[bytes]:
        raise AssertionError("the tree was asked for")
        yield b""

    begun = time.monotonic()
    sandbox.prepare(spec, never())
    assert time.monotonic() - begun < 5


def test_trust_and_scope_keep_environments_apart(sandbox: Sandbox) -> None:
    keys = {
        sandbox.prepare(
            EnvSpec(setup="true", inputs="x", trust=trust, scope=scope), tree({"a": "b"})
        ).key
        for trust in ("default_branch", "pull_request")
        for scope in ("one/repo", "other/repo")
    }
    assert len(keys) == 4


def test_a_setup_that_fails_says_why(sandbox: Sandbox) -> None:
    with pytest.raises(SetupFailed, match="exited with 3: cannot go on") as failed:
        sandbox.prepare(EnvSpec(setup="echo begun; echo cannot go on; exit 3"), tree({"a": "b"}))
    assert failed.value.output == "begun\ncannot go on\n"


def test_a_setup_has_a_deadline_and_can_be_cancelled(sandbox: Sandbox) -> None:
    with pytest.raises(SetupFailed, match="took too long"):
        sandbox.prepare(EnvSpec(setup="sleep 600", timeout_s=2.0), tree({"a": "b"}))
    stop = Event()
    stop.set()
    with pytest.raises(Cancelled):
        sandbox.prepare(EnvSpec(setup="sleep 601"), tree({"a": "b"}), stop)


def test_a_pull_request_may_not_ask_for_a_look_alike(sandbox: Sandbox) -> None:
    spec = EnvSpec(setup="pip install reqeusts", trust="pull_request", scope="tests")
    with pytest.raises(SetupFailed, match="looks like the popular `requests`"):
        sandbox.prepare(spec, tree({"a": "b"}))


def test_a_python_that_is_not_there_is_said(sandbox: Sandbox) -> None:
    with pytest.raises(UserError, match=r"3\.99"):
        sandbox.prepare(EnvSpec(python="3.99"), ())


def test_closing_twice_is_fine_and_a_closed_box_is_gone(sandbox: Sandbox) -> None:
    box = sandbox.open(plain_env(sandbox.name), ())
    box.close()
    box.close()
    with pytest.raises(OutsideError):
        box.run(["true"], timeout=1)


def test_nothing_is_left_when_regreen_itself_is_killed(local_sandbox: Sandbox) -> None:
    marker = f"regreen-test-{os.getpid()}-{local_sandbox.name}"
    program = textwrap.dedent(f"""
        from regreen.adapters.sandbox.selection import choose_sandbox
        from regreen.domain.models import EnvSpec
        sandbox = choose_sandbox({local_sandbox.name!r})
        with sandbox.open(sandbox.prepare(EnvSpec(), ()), ()) as box:
            print("open", flush=True)
            box.run(["sh", "-c", "sleep 600; : {marker}"], timeout=600)
    """)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == b"open\n"
        _wait_for(lambda: _running(marker))
        killed.kill()
    _wait_for(lambda: not _running(marker))


def _running(marker: str) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes()
        except OSError:
            continue
        if marker.encode() in command and b"regreen.adapters" not in command:
            return True
    return False


def _wait_for(condition: object) -> None:
    assert callable(condition)
    deadline = time.monotonic() + 30
    pause = Event()
    while not condition():
        assert time.monotonic() < deadline
        pause.wait(0.1)
