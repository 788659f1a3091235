"""What the remote sandbox promises beyond the contract of all sandboxes, tried against a stand-in of the service."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from threading import Event, Timer

import pytest

from regreen.adapters.sandbox.e2b_sandbox import LEASE_S, E2BSandbox
from regreen.adapters.sandbox.selection import choose_sandbox, environments_home
from regreen.domain.errors import NoSandbox, OutsideError, UserError
from regreen.domain.models import EnvSpec, Retention
from tests.contract.e2b_stand_in import KEY, Service
from tests.contract.sandboxes import plain_env, sandbox_or_skip, stand_in, tree

pytestmark = pytest.mark.sandbox


@pytest.fixture
def sandbox() -> E2BSandbox:
    found = sandbox_or_skip("e2b")
    assert isinstance(found, E2BSandbox)
    return found


@pytest.fixture
def service(sandbox: E2BSandbox) -> Service:
    """The stand-in, with the requests of this test alone."""
    plain_env("e2b")
    stand_in().asked.clear()
    return stand_in()


def test_a_box_gets_no_network_and_ends_by_itself(sandbox: E2BSandbox, service: Service) -> None:
    with sandbox.open(plain_env("e2b"), ()):
        (machine,) = service.machines.values()
        assert machine.asked["allow_internet_access"] is False
        assert machine.asked["network"]["allowPublicTraffic"] is False
        assert (machine.asked["timeout"], machine.asked["autoPause"]) == (LEASE_S, False)
    assert (service.machines, service.faults) == ({}, [])


def test_a_setup_reaches_no_private_address_and_is_told_no_credential(
    sandbox: E2BSandbox, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://user:hunter2secret@index.example/simple")
    monkeypatch.setenv("REGREEN_INDEX_CREDENTIALS", "1")
    env = sandbox.prepare(EnvSpec(setup="env > $HOME/env.txt", scope="told"), tree({"a": "b"}))
    with sandbox.open(env, ()) as box:
        seen = box.run(["sh", "-c", "cat $HOME/env.txt /proc/*/environ; env"], timeout=30).stdout
    setup = next(
        json.loads(body)
        for what, _, body in service.asked
        if what == "POST /v2/sandboxes" and json.loads(body)["allow_internet_access"]
    )
    assert {"10.0.0.0/8", "169.254.0.0/16", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/3"} <= set(setup["network"]["denyOut"])  # fmt: skip
    assert "VIRTUAL_ENV=/env" in seen
    assert "hunter2secret" not in seen + str(service.asked)
    # The key opens the control API, and reaches no machine.
    assert KEY not in seen
    inside = [headers | {"body": body.hex()} for what, headers, body in service.asked if "/process." in what]  # fmt: skip
    assert inside
    assert KEY not in str(inside)
    assert KEY.encode().hex() not in str(inside)


def test_what_a_killed_regreen_leaves_ends_with_its_lease(service: Service) -> None:
    program = textwrap.dedent("""
        from regreen.adapters.sandbox.selection import choose_sandbox, environments_home
        from regreen.domain.models import EnvSpec
        sandbox = choose_sandbox("e2b")
        with sandbox.open(sandbox.prepare(EnvSpec(), ()), ()) as box:
            print("open", flush=True)
            box.run(["sleep", "600"], timeout=600)
    """)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == b"open\n"
        killed.kill()
    service.advance(LEASE_S - 60)
    assert len(service.machines) == 1
    service.advance(61)
    assert service.machines == {}


def test_a_box_that_the_service_ends_is_no_failing_command(
    sandbox: E2BSandbox, service: Service
) -> None:
    with sandbox.open(plain_env("e2b"), ()) as box:
        Timer(1.0, lambda: service.kill(next(iter(service.machines)))).start()
        begun = time.monotonic()
        assert box.run(["sleep", "600"], timeout=60).ended == "infra"
        assert time.monotonic() - begun < 30
        with pytest.raises(OutsideError, match="the box ended"):
            box.run(["true"], timeout=5)


def test_a_stream_that_breaks_off_is_no_failing_command(
    sandbox: E2BSandbox, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sandbox.open(plain_env("e2b"), ()) as box:
        monkeypatch.setattr(service, "breaks_off", True)
        begun = time.monotonic()
        # The script that says how the command ended is killed before it can.
        assert box.run(["sh", "-c", "kill -9 $PPID"], timeout=60).ended == "infra"
        assert time.monotonic() - begun < 30
    with pytest.raises(OutsideError, match="could not be prepared"):
        sandbox.prepare(EnvSpec(python="3"), ())


def test_a_command_that_kills_the_script_around_it_fails(
    sandbox: E2BSandbox, service: Service
) -> None:
    with sandbox.open(plain_env("e2b"), ()) as box:
        done = box.run(["sh", "-c", "kill -9 $PPID"], timeout=60)
        assert (done.ended, done.exit_code) == ("exit", 137)
    assert service.faults == []


def test_a_forged_end_gathers_no_output(sandbox: E2BSandbox, service: Service) -> None:
    """Given a command that begins the word on its end and writes on, when it is read, then little is held."""
    forge = "import os; m = open(f'/proc/{os.getppid()}/cmdline','rb').read().split(b'\\0'); m = next(p for p in m if p[:1] == b'\\x1e'); os.write(1, m); [os.write(1, b'x' * 4096) for _ in range(8192)]"
    with sandbox.open(plain_env("e2b"), ()) as box:
        begun = time.process_time()
        done = box.run(["python3", "-c", forge], timeout=120)
        assert (done.ended, done.passed) == ("exit", False)
        assert time.process_time() - begun < 9
    assert service.faults == []


def test_a_service_that_refuses_the_key_is_named(
    sandbox: E2BSandbox, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("E2B_API_KEY", "e2b_" + "0" * 40)
    with pytest.raises(OutsideError, match="Unauthorized"):
        sandbox.prepare(EnvSpec(setup="true"), ())


def test_it_is_used_only_with_a_key_and_for_ones_own_code(
    sandbox: E2BSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NoSandbox, match="on the command line"):
        choose_sandbox("e2b", exact=True)
    with pytest.raises(NoSandbox, match="private hosts"):
        choose_sandbox("e2b", setup_hosts="index.corp")
    monkeypatch.delenv("E2B_API_KEY")
    with pytest.raises(NoSandbox, match="E2B_API_KEY is not set"):
        choose_sandbox("e2b")
    assert choose_sandbox("auto").name != "e2b"


def test_what_it_cannot_do_is_said(sandbox: E2BSandbox) -> None:
    with pytest.raises(UserError, match="has no images"):
        sandbox.prepare(EnvSpec(image="python:3.12"), ())
    with sandbox.open(plain_env("e2b"), ()) as box:
        for argv in (["echo", "x" * 130_000], ["echo", "\udcff"]):
            with pytest.raises(UserError, match="the remote sandbox takes"):
                box.run(argv, timeout=5)
        assert box.run(["echo", "x" * 100_000], timeout=20).passed


def test_doctor_says_what_was_tried_and_what_is_not_enforced(sandbox: E2BSandbox) -> None:
    checks = {check.name: check for check in sandbox.doctor()}
    assert "a local stand-in" in checks["the service was reached in our tests"].detail
    assert "not enforced: the limits on memory" in checks["limits are exact"].detail
    assert checks["a box has no network and no rights"].ok, checks


def test_unused_environments_are_deleted_at_the_service(
    sandbox: E2BSandbox, service: Service
) -> None:
    kept = set(service.snapshots)
    service.snapshots["team/regreen-of-another-machine:default"] = service.home
    sandbox.prepare(EnvSpec(setup="true", scope="surplus"), tree({"a": "b"}))
    assert len(service.snapshots) == len(kept) + 2
    assert sandbox.prune(Retention(days=1000, count=1)) == 0, "used within the hour"
    for entry in (environments_home() / "used-e2b").iterdir():
        os.utime(entry, (1, 1))
    assert sandbox.prune(Retention(days=1000)) >= 1
    assert "team/regreen-of-another-machine:default" in service.snapshots
    shared = sandbox.prepare(EnvSpec(setup="true", scope="shared"), tree({"a": "b"}))
    (environments_home() / "used-e2b" / shared.key).unlink()  # another machine made it
    sandbox.open(sandbox.prepare(EnvSpec(setup="true", scope="shared"), tree({"a": "b"})), ()).close()  # fmt: skip
    assert not (environments_home() / "used-e2b" / shared.key).exists(), "it is not ours to delete"
    del service.snapshots["team/regreen-of-another-machine:default"]
    plain_env.cache_clear()


def test_a_cancelled_box_is_killed_at_the_service(sandbox: E2BSandbox, service: Service) -> None:
    stop = Event()
    box = sandbox.open(plain_env("e2b"), ())
    Timer(0.5, stop.set).start()
    assert box.run(["sleep", "600"], timeout=60, cancel=stop).ended == "cancelled"
    assert service.machines == {}
