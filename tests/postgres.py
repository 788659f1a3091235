"""A real PostgreSQL for the tests that need one."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a fresh PostgreSQL, started for this run; it refuses to run as root."""
    if shutil.which("initdb") is None or shutil.which("pg_ctl") is None:
        pytest.skip("PostgreSQL (initdb, pg_ctl) is not installed")
    # not below pytest's own folder: that is closed to the user PostgreSQL has to run as
    home = Path(tempfile.mkdtemp(prefix="regreen-postgres-"))
    as_user: list[str] = []
    if os.geteuid() == 0:
        user = pwd.getpwnam("nobody")
        os.chown(home, user.pw_uid, user.pw_gid)
        as_user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    def run(*argv: str) -> None:
        done = subprocess.run(
            [*as_user, *argv], cwd=home, check=False, capture_output=True, timeout=120
        )
        if done.returncode != 0:
            pytest.skip(f"PostgreSQL does not start here: {done.stderr.decode()[-300:]}")

    data = home / "data"
    run("initdb", "-D", str(data), "-U", "regreen", "-A", "trust", "-E", "UTF8")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={home}"
    run("pg_ctl", "-D", str(data), "-w", "-l", str(home / "log"), "-o", options, "start")
    yield f"postgresql://regreen@127.0.0.1:{port}/postgres"
    run("pg_ctl", "-D", str(data), "-w", "-m", "immediate", "stop")
    shutil.rmtree(home)
