"""What a later review makes of findings that were posted and that it does not say again."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import pytest

from regreen.adapters.clock import SystemClock
from regreen.adapters.store.connection import engine_for
from regreen.adapters.store.database import Database
from regreen.bot.posted_findings import PostedFindings
from regreen.domain.models import Finding
from regreen.domain.records import ResultDocument

OLD = "def mean(xs):\n    return sum(xs[1:]) / len(xs) * 2\n"
MENDED = "def mean(xs):\n    return sum(xs) / max(len(xs), 1)\n\n\ndef last(ys):\n    return ys[0] + ys[len(ys)]\n"


def make_finding(name: str, line: int, path: str = "a.py") -> Finding:
    return Finding(name, name, "correctness", "model/wrong-result", "high", False, 0.9, path, line, line, "RIGHT", name, "why")  # fmt: skip


class Repository:
    """Findings of one pull request, in a database, and the file that they are about."""

    def __init__(self, url: str) -> None:
        database = Database(engine_for(url), SystemClock())
        database.create_or_upgrade_tables()
        self.store, self.text = database, OLD
        self.posted = PostedFindings(database, "o/r", 1)

    def post(self, *findings: Finding) -> None:
        for finding in findings:
            self.posted.record_posted(finding, self.read)
        body = {"findings": [asdict(f) for f in findings], "withheld": []}
        self.store.save_document(
            ResultDocument("review", "o/r", 1, "1@a", "j", datetime.now(UTC), body)
        )

    def read(self, path: str, side: str) -> str | None:
        assert side == "RIGHT"
        return self.text if path == "a.py" else None

    def list_unsaid(self, *said: Finding) -> list[tuple[str, int]]:
        found = self.posted.find_unsaid(said, [], [], text_of=self.read)
        return [(finding.id, finding.line) for finding in found]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(f"sqlite:///{tmp_path}/r.sqlite")


def test_what_is_not_said_again_of_unchanged_code_is_open_where_it_stands(
    repository: Repository,
) -> None:
    assert repository.list_unsaid(make_finding("B", 2)) == []
    repository.post(make_finding("A", 2))
    repository.text = f"import os\n\n\n{OLD}"
    assert repository.list_unsaid() == [("A", 5)]
    assert repository.list_unsaid(make_finding("A", 5)) == []


def test_what_stood_on_code_that_changed_is_not_open_whatever_is_new_in_its_file(
    repository: Repository,
) -> None:
    repository.post(make_finding("A", 2))
    repository.text = MENDED
    assert repository.list_unsaid(make_finding("B", 6)) == []


def test_the_same_code_in_other_words_is_open_once(repository: Repository) -> None:
    repository.post(make_finding("A", 2), make_finding("B", 2))
    assert repository.list_unsaid() == [("B", 2)]
    assert repository.list_unsaid(make_finding("C", 2)) == []
