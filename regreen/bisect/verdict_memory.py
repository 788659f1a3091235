"""Stores the runs of bisections: the log from which one resumes, and the verdicts with which later ones start."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Literal, Protocol

from regreen.logs import failure_signature as signatures
from regreen.logs.failure_signature import FailureSignature
from regreen.runs.trial import UNTESTABLE_EXIT_CODE, Trial
from regreen.secrets.redaction import redact_secrets

RunVerdict = Literal["pass", "fail", "untestable", "infra"]
UNTESTABLE_REASON = f"exit {UNTESTABLE_EXIT_CODE}"
"""Why a run counts for no side where the command itself said so."""


class VerdictMemory(Protocol):
    """Lines of text under keys, in order. `append` returns when the line is durable."""

    def get(self, key: str) -> Sequence[str]:
        """Every line under `key`, oldest first."""
        ...

    def append(self, key: str, line: str) -> None:
        """Append one line under `key`."""
        ...


@dataclass(frozen=True, slots=True)
class CommitRun:
    """One run of the command at one commit before it is judged: "fail" is any failure.

    `inside` is the command's own time in seconds, without its box; `used`: the box had run other commits;
    `elsewhere`: the run was CI's, so a failure of another kind does not make the commit untestable here. `missing_tool`
    is a program that the box lacks; a run that was remembered does not say it.
    """

    sha: str
    ran: RunVerdict
    signature: FailureSignature | None
    seconds: float
    reason: str
    python: str | None = None
    session: str = ""
    inside: float = 0.0
    used: bool = False
    elsewhere: bool = False
    missing_tool: str = ""

    def to_line(self) -> str:
        """Serialize for `VerdictMemory`, without credentials."""
        hidden = signatures.hide_credentials(self.signature) if self.signature else None
        return json.dumps(
            {
                "sha": self.sha,
                "ran": self.ran,
                "signature": hidden.to_json() if hidden else None,
                "seconds": round(self.seconds, 3),
                "reason": redact_secrets(self.reason),
                "python": self.python,
                "session": self.session,
            }
        )


def from_line(line: str) -> CommitRun:
    """Parse what `to_line` wrote."""
    value = json.loads(line)
    signature = value["signature"]
    return CommitRun(
        value["sha"],
        value["ran"],
        signatures.from_json(signature) if signature else None,
        float(value["seconds"]),
        value["reason"],
        value.get("python"),
        value.get("session", ""),
    )


def trial_key(trial: Trial) -> str:
    """A digest of everything except the tree that determines a run's outcome."""
    overlay = sorted((path, sha256(data).hexdigest()) for path, data in trial.overlay.items())
    parts = [
        *(trial.command, trial.setup, trial.env, overlay, trial.python, trial.image),
        *(trial.timeout, trial.scope, trial.trust),
    ]
    if trial.carried:
        parts.append(sorted((p, sha256(data).hexdigest()) for p, data in trial.carried.items()))
    return sha256(json.dumps(parts).encode()).hexdigest()


def verdict_key(trial: Trial, rule: str, tree: str) -> str:
    """The key for the runs of a trial on one tree; `rule` is the rule for failures."""
    return f"verdict:{sha256(f'{trial_key(trial)}:{rule}:{tree}'.encode()).hexdigest()}"


def session_key(trial: Trial, ends: Sequence[object]) -> str:
    """The key for the log of one bisection; `ends` are the rest of its identity."""
    return f"session:{sha256(json.dumps([trial_key(trial), *map(str, ends)]).encode()).hexdigest()}"


class TransientVerdictMemory:
    """Keeps lines in memory only."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}

    def get(self, key: str) -> Sequence[str]:
        """Every line under `key`, oldest first."""
        return tuple(self._lines.get(key, ()))

    def append(self, key: str, line: str) -> None:
        """Append one line under `key`."""
        self._lines.setdefault(key, []).append(line)


class SqliteVerdictMemory:
    """Keeps lines in one SQLite file; every append is on disk when it returns."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = Lock()  # a repair's boxes are opened by several threads
        self._database = sqlite3.connect(
            path, timeout=30, isolation_level=None, check_same_thread=False
        )
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=FULL")
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS lines (id INTEGER PRIMARY KEY, key TEXT NOT NULL, line TEXT NOT NULL)"
        )
        self._database.execute("CREATE INDEX IF NOT EXISTS lines_by_key ON lines (key)")

    def get(self, key: str) -> Sequence[str]:
        """Every line under `key`, oldest first."""
        with self._lock:
            rows = self._database.execute(
                "SELECT line FROM lines WHERE key = ? ORDER BY id", (key,)
            )
            return [str(row[0]) for row in rows]

    def append(self, key: str, line: str) -> None:
        """Append one line under `key`."""
        with self._lock:
            self._database.execute("INSERT INTO lines (key, line) VALUES (?, ?)", (key, line))

    def forget(self, start: str, end: str) -> None:
        """Remove the lines under every key from `start` to before `end`."""
        with self._lock:
            self._database.execute("DELETE FROM lines WHERE key >= ? AND key < ?", (start, end))

    def close(self) -> None:
        """Close the file."""
        self._database.close()
