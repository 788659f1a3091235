"""Chromium, driven by the WebDriver protocol: what a person sees and clicks."""

from __future__ import annotations

import base64
import os
import shutil
import socket
import subprocess
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import requests

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--lang=en-GB")  # fmt: skip
PHONE, DESK = (390, 844), (1280, 900)


class Browser:
    """One window. Whatever is waited for comes within `patience` seconds, or the test fails."""

    def __init__(self, patience: float = 60) -> None:
        self._patience = patience
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        assert DRIVER is not None
        self._home = tempfile.TemporaryDirectory(prefix="browser-")
        self._driver = subprocess.Popen(
            [DRIVER, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=os.environ | {"HOME": self._home.name, "TZ": "Asia/Tokyo"},
        )  # fmt: skip
        self._url = f"http://127.0.0.1:{port}"
        self.until(self._is_up)
        options = {"binary": CHROMIUM, "args": [*_FLAGS, f"--user-data-dir={self._home.name}/data"]}
        wanted = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}}
        made = requests.post(f"{self._url}/session", json=wanted, timeout=120).json()["value"]
        self._url += f"/session/{made['sessionId']}"
        self.size(DESK)

    def close(self) -> None:
        """Close the window and end the driver."""
        requests.delete(self._url, timeout=30)
        self._driver.terminate()
        self._driver.wait()
        self._home.cleanup()

    def go(self, url: str) -> None:
        """Open an address."""
        self._send("url", {"url": url})

    def click(self, words: str) -> None:
        """Click the first link or button that says this."""
        path = f'//*[self::a or self::button][normalize-space(.)="{words}"]'
        found: list[str] = []

        def there() -> bool:
            found[:] = [e[_ELEMENT] for e in self._send("elements", {"using": "xpath", "value": path})]  # fmt: skip
            return bool(found)

        self.until(there)
        self._send(f"element/{found[0]}/click", {})

    def run(self, script: str, *values: object) -> Any:
        """Run a script in the page (the page's own policy does not bind it); what it returns."""
        return self._send("execute/sync", {"script": script, "args": list(values)})

    def run_async(self, script: str) -> Any:
        """The same for a script that calls its last argument when it is done."""
        return self._send("execute/async", {"script": script, "args": []})

    @property
    def text(self) -> str:
        """What is to be read on the page."""
        return str(self.run("return document.body.innerText"))

    @property
    def path(self) -> str:
        """Where the browser is."""
        return str(self.run("return location.pathname"))

    def sees(self, words: str) -> None:
        """Wait until the page says this."""
        self.until(lambda: words in self.text, lambda: f"{words!r} in {self.path}: {self.text}")

    def until(self, holds: Callable[[], bool], what: Callable[[], str] = lambda: "it") -> None:
        """Wait until something holds."""
        end = time.monotonic() + self._patience
        while not holds():
            assert time.monotonic() < end, f"never seen: {what()}"
            threading.Event().wait(0.2)

    def size(self, size: tuple[int, int]) -> None:
        """Be a screen of this size."""
        width, height = size
        self._command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)  # fmt: skip

    def colours(self, scheme: str) -> None:
        """Prefer "light" or "dark"."""
        wanted = [{"name": "prefers-color-scheme", "value": scheme}]
        self._command("Emulation.setEmulatedMedia", features=wanted)

    def picture(self, to: Path, *, whole: bool = False) -> None:
        """Keep what is to be seen."""
        shot = self._command("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        to.write_bytes(base64.b64decode(shot["data"]))

    def _command(self, name: str, **params: object) -> Any:
        return self._send("goog/cdp/execute", {"cmd": name, "params": params})

    def _send(self, path: str, body: object) -> Any:
        answer = requests.post(f"{self._url}/{path}", json=body, timeout=120).json()["value"]
        assert not (isinstance(answer, dict) and "stacktrace" in answer), answer["message"]
        return answer

    def _is_up(self) -> bool:
        try:
            return bool(requests.get(f"{self._url}/status", timeout=5).ok)
        except requests.RequestException:
            return False


def axe(home: Path) -> str | None:
    """The accessibility checker's script, from its package; None where it is not to be had."""
    npm = shutil.which("npm")
    if npm is None:
        return None
    asked = [npm, "pack", "axe-core@4", "--silent", "--pack-destination", str(home)]
    done = subprocess.run(asked, cwd=home, capture_output=True, text=True, timeout=120, check=False)
    packed = sorted(home.glob("axe-core-*.tgz"))
    if done.returncode or not packed:
        return None
    with tarfile.open(packed[-1]) as archive:
        member = archive.extractfile("package/axe.min.js")
        assert member is not None
        return member.read().decode()
