"""What was seen, kept: the log that a bisection resumes from, and the verdicts that later ones start with."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal, Protocol

from regreen.bisect import signature as signatures
from regreen.bisect.signature import Signature
from regreen.codebase.trial import Trial

Ran = Literal["pass", "fail", "untestable", "infra"]


class Memory(Protocol):
    """Lines of text under keys, in the order they came. `append` returns when the line would survive a crash."""

    def get(self, key: str) -> Sequence[str]:
        """Every line under `key`, oldest first."""
        ...

    def append(self, key: str, line: str) -> None:
        """One more line under `key`."""
        ...


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the command at one commit, before anybody judged it: "fail" is any failure at all.

    `inside` is how long the command itself took, without its box; `used`: that box had run other commits;
    `elsewhere`: it was no run of ours, so a failure of another kind does not say that the commit is untestable here.
    """

    sha: str
    ran: Ran
    signature: Signature | None
    seconds: float
    reason: str
    python: str | None = None
    session: str = ""
    inside: float = 0.0
    used: bool = False
    elsewhere: bool = False

    def to_line(self) -> str:
        """For `Memory`."""
        return json.dumps(
            {
                "sha": self.sha,
                "ran": self.ran,
                "signature": self.signature.to_json() if self.signature else None,
                "seconds": round(self.seconds, 3),
                "reason": self.reason,
                "python": self.python,
                "session": self.session,
            }
        )


def from_line(line: str) -> Run:
    """What `to_line` wrote."""
    value = json.loads(line)
    seen = value["signature"]
    return Run(
        value["sha"],
        value["ran"],
        signatures.from_json(seen) if seen else None,
        float(value["seconds"]),
        value["reason"],
        value.get("python"),
        value.get("session", ""),
    )


def trial_key(trial: Trial) -> str:
    """A digest of everything but the tree that a run's outcome depends on."""
    overlay = sorted((path, sha256(data).hexdigest()) for path, data in trial.overlay.items())
    parts = [
        *(trial.command, trial.setup, trial.env, overlay, trial.python, trial.image),
        *(trial.timeout, trial.scope, trial.trust),
    ]
    return sha256(json.dumps(parts).encode()).hexdigest()


def verdict_key(trial: Trial, rule: str, tree: str) -> str:
    """Under which the runs of a trial on one tree are kept; `rule` is what a failure must look like."""
    return f"verdict:{sha256(f'{trial_key(trial)}:{rule}:{tree}'.encode()).hexdigest()}"


def session_key(trial: Trial, ends: Sequence[object]) -> str:
    """Under which the log of one bisection is kept; `ends` is whatever else makes it this one."""
    return f"session:{sha256(json.dumps([trial_key(trial), *map(str, ends)]).encode()).hexdigest()}"


class Forgetful:
    """Keeps lines as long as it lives."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}

    def get(self, key: str) -> Sequence[str]:
        """Every line under `key`, oldest first."""
        return tuple(self._lines.get(key, ()))

    def append(self, key: str, line: str) -> None:
        """One more line under `key`."""
        self._lines.setdefault(key, []).append(line)


class File:
    """Keeps lines in one SQLite file; every append is on the disk when it returns."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(path, timeout=30, isolation_level=None)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=FULL")
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS lines (id INTEGER PRIMARY KEY, key TEXT NOT NULL, line TEXT NOT NULL)"
        )
        self._database.execute("CREATE INDEX IF NOT EXISTS lines_by_key ON lines (key)")

    def get(self, key: str) -> Sequence[str]:
        """Every line under `key`, oldest first."""
        rows = self._database.execute("SELECT line FROM lines WHERE key = ? ORDER BY id", (key,))
        return [str(row[0]) for row in rows]

    def append(self, key: str, line: str) -> None:
        """One more line under `key`."""
        self._database.execute("INSERT INTO lines (key, line) VALUES (?, ?)", (key, line))

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()
