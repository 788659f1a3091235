"""The model of the command line: what the environment configures, capped, its answers kept for the next time."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from regreen.domain.ports import Model

if TYPE_CHECKING:
    from regreen.adapters.model.anthropic_client import LedgerEntry

_ANSWER_TTL_SECONDS = 30 * 24 * 3600.0


def make_model(max_usd: float) -> Model | None:
    """The model that the environment configures, None where there is none.

    It spends `max_usd` at most. The very same question to the same endpoint is answered from `REGREEN_HOME` for
    a month, so a command given twice is paid for once.
    """
    from regreen.adapters.model.anthropic_client import AnthropicModel
    from regreen.adapters.model.endpoints import ModelEndpoint
    from regreen.app.settings_loader import read_settings
    from regreen.domain.private_folders import make_private

    settings = read_settings()
    endpoint = ModelEndpoint.from_settings(settings)
    if endpoint is None:
        return None
    spent = [0.0]

    def charge(entry: LedgerEntry) -> None:
        spent[0] += entry.cost.usd

    answers = ModelAnswerCache(make_private(settings.home) / "answers.sqlite", endpoint.place)
    return AnthropicModel(
        endpoint,
        budget_usd=lambda: max_usd - spent[0],
        recall=answers.recall_answer,
        remember=answers.remember_answer,
        ledger=charge,
    )


class ModelAnswerCache:
    """Answers of one endpoint in an SQLite file, for several threads."""

    def __init__(self, path: Path, endpoint: str) -> None:
        self._endpoint = endpoint
        self._lock = threading.Lock()
        self._database = sqlite3.connect(
            path, timeout=30, isolation_level=None, check_same_thread=False
        )
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS answers "
            "(endpoint TEXT, key TEXT, answer TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (endpoint, key))"
        )
        self._database.execute(
            "DELETE FROM answers WHERE at < ?", (time.time() - _ANSWER_TTL_SECONDS,)
        )

    def recall_answer(self, key: str) -> str | None:
        """What was answered, None where nothing was."""
        query = "SELECT answer FROM answers WHERE endpoint = ? AND key = ?"
        with self._lock:
            row = self._database.execute(query, (self._endpoint, key)).fetchone()
        return str(row[0]) if row else None

    def remember_answer(self, key: str, answer: str) -> None:
        """Keep an answer."""
        row = (self._endpoint, key, answer, time.time())
        with self._lock:
            self._database.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)", row)
