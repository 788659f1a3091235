"""Reads the events of `go test -json` as the lines that `go test` prints."""

from __future__ import annotations

import json


class GoEvents:
    """Turns events into plain lines, and says whose they are where tests run side by side."""

    def __init__(self) -> None:
        self._test: tuple[str, str] | None = None

    def lines(self, line: str) -> list[str] | None:
        """The lines that an event stands for; None where the line is no event."""
        if not (line.startswith("{") and '"Action":"' in line[:400]):
            return None
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(event, dict):
            return None
        action, test = event.get("Action"), _text(event, "Test")
        if action == "fail" and test:
            return [f"--- FAIL: {test} (0.00s)"]
        if action not in {"output", "build-output"}:
            return []
        said = _text(event, "Output").rstrip("\n")
        return [*self._turn(_text(event, "Package"), test, said), said]

    def _turn(self, package: str, test: str, said: str) -> list[str]:
        """The line that `go test -v` prints where the output of another test follows."""
        now = (package, test)
        if not test or now == self._test or said.startswith(("===", "---", "panic:")):
            return []
        self._test = now
        return [f"=== NAME  {test}"]


def _text(event: dict[str, object], key: str) -> str:
    value = event.get(key)
    return value if isinstance(value, str) else ""
