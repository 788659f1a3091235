"""Every attack that `regreen doctor` makes, on every backend, each with its positive control."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from regreen.adapters.sandbox.attacks.attack import (
    CANARY,
    HOST_ATTACKS,
    HostAttack,
    find_breach,
    find_host_breach,
    prepare_targets,
    self_test,
)
from regreen.adapters.sandbox.attacks.box_programs import ATTACKS, Attack
from tests.contract.sandboxes import BACKENDS, plain_env, sandbox_or_skip

pytestmark = [pytest.mark.sandbox, pytest.mark.soak]
CONTROLLED = [one for one in ATTACKS if one.control != "never"]


def named(one: Attack | HostAttack) -> str:
    return one.name.replace(" ", "-")


@pytest.mark.parametrize("kind", BACKENDS)
@pytest.mark.parametrize("one", ATTACKS, ids=named)
def test_the_box_holds(kind: str, one: Attack) -> None:
    sandbox = sandbox_or_skip(kind)
    with prepare_targets() as out:
        assert find_breach(sandbox, plain_env(kind), one, out) == ""


@pytest.mark.parametrize("kind", BACKENDS)
@pytest.mark.parametrize("one", HOST_ATTACKS, ids=named)
def test_the_host_walks_into_no_trap(kind: str, one: HostAttack) -> None:
    assert find_host_breach(sandbox_or_skip(kind), plain_env(kind), one) == ""


@pytest.mark.parametrize("kind", BACKENDS)
def test_the_quick_test_holds(kind: str) -> None:
    assert self_test(sandbox_or_skip(kind)) == ""


@pytest.mark.parametrize("one", CONTROLLED, ids=named)
def test_outside_of_a_box_the_attack_gets_something(one: Attack, tmp_path: Path) -> None:
    if one.control == "root" and os.geteuid() != 0:
        pytest.skip("only root gets anything out of this attack")
    with prepare_targets() as out, (tmp_path / "inherited").open("w") as inherited:
        done = subprocess.run(
            [sys.executable, "-c", out.render_program(one), "control"],
            env={"PATH": os.environ["PATH"], CANARY: out.token},
            cwd=tmp_path,
            pass_fds=(inherited.fileno(),),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert "GOT" in done.stdout, done


def test_there_are_as_many_attacks_as_we_say() -> None:
    assert len(ATTACKS) >= 20
    assert len(HOST_ATTACKS) >= 10
    names = {named(one) for one in ATTACKS} | {named(one) for one in HOST_ATTACKS}
    assert len(names) == len(ATTACKS) + len(HOST_ATTACKS)
