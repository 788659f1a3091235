"""`regreen serve` as its own process group, killed at any instant and started again."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

from regreen_playground import Playground
from regreen_playground.things import App


class Nursery:
    """Forks processes that have Regreen imported already."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.soak.nursery"],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._read() == {"ready": True}

    def fork(self, argv: list[str], env: dict[str, str], log: Path) -> int:
        """Start `regreen ARGV`; its process id, which leads a group of its own."""
        return int(self._ask({"argv": argv, "env": env, "log": str(log)})["pid"])

    def wait(self, pid: int) -> None:
        """Wait until it is gone."""
        self._ask({"wait": pid})

    def close(self) -> None:
        """End."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _ask(self, what: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        found = json.loads(self._process.stdout.readline())
        assert isinstance(found, dict)
        return found


class Served:
    """One `regreen serve`, again and again under the same settings."""

    def __init__(self, nursery: Nursery, port: int, env: dict[str, str], home: Path) -> None:
        self._nursery, self._port, self._env = nursery, port, env
        self.log = home / "serve.log"
        self._pid = 0

    def start(self, *, wait: bool = True) -> None:
        """Start it, and wait until it answers."""
        argv = ["serve", "--port", str(self._port)]
        self._pid = self._nursery.fork(argv, self._env, self.log)
        if wait:
            self.answers()

    def answers(self) -> None:
        """Wait until it answers."""
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/healthz", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        raise AssertionError(self.log.read_text()[-3000:])

    def kill(self) -> None:
        """Kill it all: the parent, the web process and the job process."""
        if self._pid:
            os.killpg(self._pid, signal.SIGKILL)
            self._wait_for_all()

    def kill_parent(self) -> None:
        """Kill the parent alone; the web process and the job process notice and end by themselves."""
        os.kill(self._pid, signal.SIGKILL)
        self._wait_for_all()

    def _wait_for_all(self) -> None:
        """Wait until the parent and its children are gone: they hold the port until then."""
        self._nursery.wait(self._pid)
        deadline = time.monotonic() + 30
        with suppress(ProcessLookupError):
            while time.monotonic() < deadline:
                os.killpg(self._pid, 0)
                time.sleep(0.01)
            raise AssertionError("a child outlives its parent:\n" + self.log.read_text()[-3000:])
        self._pid = 0

    def kill_child(self, dice: random.Random) -> None:
        """Kill the web process or the job process alone; their parent starts another."""
        children = Path(f"/proc/{self._pid}/task/{self._pid}/children").read_text().split()
        if children:
            os.kill(int(dice.choice(children)), signal.SIGKILL)
            time.sleep(0.3)


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def environment(home: Path, url: str, playground: Playground, app: App, key: str) -> dict[str, str]:
    """The settings of a process that serves `app` on the playground."""
    (home / "key.pem").write_text(key)
    return {
        **os.environ,
        "REGREEN_HOME": str(home / "home"),
        "REGREEN_DATABASE_URL": url,
        "REGREEN_APP_ID": str(app.id),
        "REGREEN_PRIVATE_KEY_PATH": str(home / "key.pem"),
        "REGREEN_WEBHOOK_SECRET": app.secret,
        "REGREEN_GITHUB_API_URL": playground.api_url,
        "REGREEN_REVIEW_DELAY_S": "0",
    }
