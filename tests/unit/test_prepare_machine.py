"""`scripts/prepare_machine.sh` on the machines of five package managers, which programs that stand in for them act out."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "prepare_machine.sh"
SHELLS = [shell for shell in (("dash",), ("busybox", "sh"), ("bash",)) if shutil.which(shell[0])]
# What installs all that `demo` wants on a machine that has nothing.
COMMANDS = {
    "apt-get": "apt-get install -y -qq --no-install-recommends git make python3 python3-venv bubblewrap util-linux",
    "dnf": "dnf install -y -q git make python3 bubblewrap util-linux",
    "pacman": "pacman -S --needed --noconfirm git make python bubblewrap util-linux",
    "apk": "apk add -q git make python3 bubblewrap util-linux-misc setpriv",
    "brew": "brew install git make python@3.13",
}


def run(
    folder: Path,
    *,
    manager: str = "",
    user: int = 0,
    shell: Sequence[str] = ("sh",),
    there: Sequence[str] = (),
    goal: str = "demo",
) -> tuple[int, str, str]:
    """Run the script where no more than the manager and `there` is on PATH; also what the manager was told."""
    programs, told = folder / "bin", folder / "told"
    shutil.rmtree(programs, ignore_errors=True)
    programs.mkdir()
    told.write_text("")
    for name in ("sh", "tr", "env"):
        (programs / name).symlink_to(str(shutil.which(name)))
    bodies = {
        "id": f"echo {user}",
        manager: f'echo "{manager} $*" >> {told}\ncase " $* " in *" git "*) ;; *) exit 0 ;; esac\n'
        f"for name in git make bwrap prlimit setpriv python3; do ln -sf {shutil.which('true')} {programs}/$name; done",
        **dict.fromkeys(there, "exit 0"),
    }
    for name in filter(None, bodies):
        (programs / name).write_text(f"#!/bin/sh\nPATH={os.defpath}\n{bodies[name]}\n")
        (programs / name).chmod(0o755)
    done = subprocess.run(
        [str(shutil.which(shell[0])), *shell[1:], str(SCRIPT), goal],
        env={"PATH": str(programs), "PYTHON": "python3"}, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stderr, told.read_text()


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@pytest.mark.parametrize("manager", COMMANDS)
def test_what_is_missing_is_installed_with_root_rights(
    manager: str, shell: Sequence[str], tmp_path: Path
) -> None:
    code, said, told = run(tmp_path, manager=manager, shell=shell)
    assert (code, told.splitlines()[-1]) == (0, COMMANDS[manager]), said
    assert "git (reading repositories)" in said


@pytest.mark.parametrize("manager", COMMANDS)
def test_an_ordinary_user_gets_one_command_to_paste(manager: str, tmp_path: Path) -> None:
    code, said, told = run(tmp_path, manager=manager, user=1000)
    before = "" if manager == "brew" else "sudo "
    command = COMMANDS[manager].replace("apt-get install", "env DEBIAN_FRONTEND=noninteractive apt-get install")  # fmt: skip
    assert (code, told) == (3, ""), said
    assert "to install it, paste:\n  " in said
    assert said.rstrip().endswith(f"{before}{command}")


def test_where_only_a_sandbox_is_missing_the_demo_goes_on(tmp_path: Path) -> None:
    needed = ("git", "make", "python3")
    code, said, told = run(tmp_path, manager="apk", user=1000, there=needed)
    assert (code, told) == (0, "")
    assert "sudo apk add -q bubblewrap util-linux-misc setpriv\n" in said
    assert "going on without" in said


def test_an_engine_that_answers_is_a_sandbox(tmp_path: Path) -> None:
    assert run(tmp_path, manager="brew", user=1000, there=("git", "make", "python3", "docker")) == (0, "", "")  # fmt: skip


def test_without_a_known_package_manager_it_says_so(tmp_path: Path) -> None:
    code, said, _ = run(tmp_path)
    assert code == 3
    assert said.endswith("install it by hand: no package manager that is known here (apt, dnf, pacman, apk, brew)\n")  # fmt: skip
