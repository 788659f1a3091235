"""Prepared environments go when nobody has used them for long, and stay while somebody does."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from regreen.adapters.sandbox.bubblewrap.bubblewrap_sandbox import BwrapSandbox
from regreen.adapters.sandbox.docker.docker_images import ENV_REPOSITORY
from regreen.adapters.sandbox.docker.docker_sandbox import DockerSandbox
from regreen.adapters.sandbox.retention import UsageLedger
from regreen.domain.errors import OutsideError, SetupFailed
from regreen.domain.models import EnvSpec, PreparedEnv
from tests.contract.sandboxes import sandbox_or_skip

pytestmark = pytest.mark.sandbox
_LONG_AGO = time.time() - 30 * 86400


def aged(used: Path, name: str) -> None:
    """As if it had last been used a month ago."""
    os.utime(used / name.replace("/", "_"), (_LONG_AGO, _LONG_AGO))


@pytest.fixture(params=["docker", "bwrap"])
def kept(
    request: pytest.FixtureRequest, tmp_path: Path
) -> tuple[DockerSandbox | BwrapSandbox, Path]:
    """A sandbox with a ledger of its own: no other test's environments are old for it."""
    sandbox_or_skip(request.param)
    used = tmp_path / "used"
    if request.param == "docker":
        return DockerSandbox.connect(ledger=UsageLedger(used)), used
    return BwrapSandbox.connect(tmp_path), used


def test_nothing_is_left_of_a_setup_that_failed_in_folders_that_it_closed(tmp_path: Path) -> None:
    sandbox_or_skip("bwrap")
    sandbox = BwrapSandbox.connect(tmp_path)
    closed = "mkdir -p /env/a/.b; touch /env/a/.b/c /env/.d; chmod 0 /env/a/.b /env/a; exit 1"
    with pytest.raises(SetupFailed, match="exited with 1"):
        sandbox.prepare(EnvSpec(setup=closed), ())
    assert [*tmp_path.rglob("unfinished/*/*")] == []


def test_what_another_process_removed_meanwhile_is_passed_over(tmp_path: Path) -> None:
    sandbox_or_skip("bwrap")
    sandbox = BwrapSandbox.connect(tmp_path)
    sandbox.prepare(EnvSpec(setup="true"), ())
    listed = sandbox.list_environments()
    assert sandbox.remove(listed) == listed
    assert sandbox.remove(listed) == []


@pytest.mark.slow
def test_an_environment_that_nobody_used_for_a_month_goes(
    kept: tuple[DockerSandbox | BwrapSandbox, Path], tmp_path: Path
) -> None:
    sandbox, used = kept
    sandbox.prune()  # what is one too many on this machine already
    # unlike any other's, and written to where the environment is kept
    spec = EnvSpec(setup=f"head -c 3000000 /dev/zero > /env/large; : {tmp_path.name} {time.time()}")
    env = sandbox.prepare(spec, ())
    name = _name(env)
    (listed,) = [one for one in sandbox.list_environments() if one.name == name]
    assert listed.size > 2_900_000
    sandbox.prune()
    assert name in {one.name for one in sandbox.list_environments()}

    with sandbox.open(env, ()) as box:
        aged(used, name)
        sandbox.prune()
        assert name in {one.name for one in sandbox.list_environments()}, "it is in use"
        assert box.run(["test", "-s", "/env/large"], timeout=30).passed
    aged(used, name)
    assert sandbox.prune() >= 1
    assert name not in {one.name for one in sandbox.list_environments()}
    with pytest.raises(OutsideError, match="prepare it again"):
        sandbox.open(env, ())
    sandbox.prepare(spec, ())
    aged(used, name)
    assert sandbox.prune() >= 1


@pytest.mark.parametrize("backend", ["docker", "bwrap"])
def test_two_workers_may_prepare_the_same_environment_at_once(backend: str, tmp_path: Path) -> None:
    sandbox_or_skip(backend)

    def worker() -> DockerSandbox | BwrapSandbox:
        if backend == "docker":
            return DockerSandbox.connect(ledger=UsageLedger(tmp_path / "used"))
        return BwrapSandbox.connect(tmp_path)

    spec = EnvSpec(setup=f"sleep 1; echo made > /env/made; : {tmp_path.name} {time.time()}")
    workers = [worker(), worker()]
    with ThreadPoolExecutor(2) as pool:
        envs = list(pool.map(lambda one: one.prepare(spec, ()), workers))
    for one, env in zip(workers, envs, strict=True):
        with one.open(env, ()) as box:
            assert box.run(["cat", "/env/made"], timeout=30).stdout == "made\n"


def _name(env: PreparedEnv) -> str:
    return f"{ENV_REPOSITORY}:{env.key}" if env.backend == "docker" else env.key
