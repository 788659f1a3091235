"""What an ordinary user's sandbox withstands: the same attacks, made by a user without any right to Docker or root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

CHECKOUT = Path(__file__).parents[2]
pytestmark = [pytest.mark.sandbox, pytest.mark.soak]

WITHOUT_GROUPS = """
from regreen.adapters.sandbox.bubblewrap import control_group
print(control_group.explain_unavailable())
"""
FOR_PULL_REQUESTS = """
from regreen.adapters.sandbox.selection import choose_sandbox
from regreen.domain.errors import NoSandbox
try:
    print("CHOSEN", choose_sandbox("bwrap", exact=True).name)
except NoSandbox as error:
    print(error)
"""


class OrdinaryUser:
    """Runs this checkout as a user of their own."""

    def __init__(self, name: str, home: Path, python: Path) -> None:
        self._name, self._home, self._python = name, home, python

    def run(self, *arguments: str, timeout: float = 120.0) -> subprocess.CompletedProcess[str]:
        packages = sysconfig.get_path("purelib")
        env = {
            "HOME": str(self._home),
            "PATH": f"{os.defpath}:/usr/sbin",
            "PYTHONPATH": f"{CHECKOUT}:{packages}",
        }
        argv = [str(self._python), *arguments]
        if os.geteuid() == 0:
            argv = ["runuser", "-u", self._name, "--", *argv]
        return subprocess.run(
            argv,
            cwd=self._home,
            env=env,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )


@pytest.fixture(scope="module")
def user() -> Iterator[OrdinaryUser]:
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    python = find_python()
    if os.geteuid() != 0:
        yield OrdinaryUser("", Path.home(), python)
        return
    if shutil.which("useradd") is None:
        pytest.skip("useradd is not installed")
    name = f"regreen-{uuid4().hex[:8]}"
    subprocess.run(["useradd", "--create-home", name], check=True)
    try:
        user = OrdinaryUser(name, Path("/home", name), python)
        if user.run("-c", "import regreen, pytest").returncode:
            pytest.skip("another user cannot read this checkout")
        yield user
    finally:
        subprocess.run(["userdel", "--remove", name], check=False, capture_output=True)


def find_python() -> Path:
    """A Python that everybody may run, of the version that the packages were installed for."""
    own = Path(sys.executable).resolve()
    shared = Path(f"/usr/bin/python3.{sys.version_info.minor}")
    for python in (own, shared):
        if python.exists() and not python.is_relative_to("/root"):
            return python
    pytest.skip(f"{own} is root's alone, and there is no {shared}")


def test_the_attacks_by_an_ordinary_user(user: OrdinaryUser) -> None:
    tests = [str(CHECKOUT / "tests/contract" / name) for name in ("test_sandbox_attacks.py", "test_sandbox_red_team.py")]  # fmt: skip
    done = user.run(
        "-m", "pytest", "-p", "no:cacheprovider", "-c", str(CHECKOUT / "pyproject.toml"), "--rootdir", str(CHECKOUT),
        "-q", "-k", "bwrap", *tests, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    assert "passed" in done.stdout
    assert "skipped" not in done.stdout


def test_without_control_groups_the_sandbox_is_refused_for_pull_requests(
    user: OrdinaryUser,
) -> None:
    if not user.run("-c", WITHOUT_GROUPS).stdout.strip():
        pytest.skip("this user has control groups")
    said = user.run("-c", FOR_PULL_REQUESTS).stdout
    assert "only approximately" in said
    assert said.count("\n") == 1
