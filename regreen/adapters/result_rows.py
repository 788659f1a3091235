"""What work cost and what came out of it: the model's answers, the ledger, documents, the audit log."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from regreen.adapters import tables as t
from regreen.adapters.rows import Rows, time_of
from regreen.codebase.redaction import redact_all
from regreen.models import Cost
from regreen.records import Action, Document, LedgerLine


class ResultRows(Rows):
    """The part of the store that is shown to people."""

    # The model's answers and the ledger

    def answer(self, key: str) -> str | None:
        """A model's answer by its request's hash."""
        with self._begin() as connection:
            query = sa.select(t.answers.c.answer).where(t.answers.c.key == key)
            return connection.execute(query).scalar_one_or_none()

    def keep_answer(self, key: str, answer: str) -> None:
        """Remember a model's answer."""
        row = {"key": key, "answer": answer, "at": self._now()}
        with self._begin() as connection:
            connection.execute(self._insert(t.answers).values(row).on_conflict_do_nothing())

    def charge(self, line: LedgerLine) -> None:
        """Write a model call to the ledger."""
        row = {
            "at": line.at.timestamp(),
            "job": line.job,
            "repo": line.repo,
            "number": line.number,
            "purpose": line.purpose,
            "model": line.model,
            "usd": line.cost.usd,
            "calls": line.cost.calls,
            "input_tokens": line.cost.input_tokens,
            "output_tokens": line.cost.output_tokens,
            "cached_tokens": line.cost.cached_tokens,
        }
        with self._begin() as connection:
            connection.execute(sa.insert(t.ledger).values(row))

    def spent(self, repo: str, since: datetime, number: int | None = None) -> float:
        """What model calls cost since then, in US dollars."""
        where = [t.ledger.c.repo == repo, t.ledger.c.at >= since.timestamp()]
        where += [t.ledger.c.number == number] if number is not None else []
        with self._begin() as connection:
            total = connection.execute(
                sa.select(sa.func.coalesce(sa.func.sum(t.ledger.c.usd), 0.0)).where(*where)
            ).scalar_one()
        return float(total)

    def ledger(self, limit: int = 100) -> list[LedgerLine]:
        """The latest model calls."""
        query = sa.select(t.ledger).order_by(t.ledger.c.id.desc()).limit(limit)
        with self._begin() as connection:
            return [line_of(row) for row in connection.execute(query)]

    # Documents

    def keep(self, document: Document) -> None:
        """Keep a result, credentials taken out; the same kind, repository and subject replaces."""
        row = {
            "kind": document.kind,
            "repo": document.repo,
            "subject": document.subject,
            "number": document.number,
            "job": document.job,
            "at": document.at.timestamp(),
            "body": json.dumps(
                redact_all(json.loads(json.dumps(document.body, default=str)), self._clean)
            ),
        }
        changes = {k: row[k] for k in ("number", "job", "at", "body")}
        with self._begin() as connection:
            connection.execute(
                self._insert(t.documents)
                .values(row)
                .on_conflict_do_update(index_elements=["kind", "repo", "subject"], set_=changes)
            )

    def documents(
        self,
        *,
        kind: str | None = None,
        repo: str | None = None,
        number: int | None = None,
        limit: int = 50,
    ) -> list[Document]:
        """The latest results."""
        where = [t.documents.c.kind == kind] if kind is not None else []
        where += [t.documents.c.repo == repo] if repo is not None else []
        where += [t.documents.c.number == number] if number is not None else []
        query = sa.select(t.documents).where(*where).order_by(t.documents.c.at.desc()).limit(limit)
        with self._begin() as connection:
            return [document_of(row) for row in connection.execute(query)]

    # The audit log

    def log(self, action: Action) -> None:
        """Append to the audit log."""
        row = {
            "at": action.at.timestamp(),
            "job": action.job,
            "repo": action.repo,
            "number": action.number,
            "asked_by": action.asked_by,
            "action": action.action,
            "detail": self._clean(action.detail),
        }
        with self._begin() as connection:
            connection.execute(sa.insert(t.actions).values(row))

    def actions(self, *, repo: str | None = None, limit: int = 200) -> list[Action]:
        """The latest lines of the audit log."""
        where = [t.actions.c.repo == repo] if repo is not None else []
        query = sa.select(t.actions).where(*where).order_by(t.actions.c.id.desc()).limit(limit)
        with self._begin() as connection:
            return [action_of(row) for row in connection.execute(query)]


def line_of(row: Any) -> LedgerLine:
    """A ledger's row as a value."""
    cost = Cost(row.usd, row.calls, row.input_tokens, row.output_tokens, row.cached_tokens)
    return LedgerLine(time_of(row.at), row.job, row.repo, row.number, row.purpose, row.model, cost)


def document_of(row: Any) -> Document:
    """A result's row as a value."""
    return Document(
        kind=row.kind,
        repo=row.repo,
        number=row.number,
        subject=row.subject,
        job=row.job,
        at=time_of(row.at),
        body=json.loads(row.body),
    )


def action_of(row: Any) -> Action:
    """An audit row as a value."""
    return Action(
        time_of(row.at), row.job, row.repo, row.number, row.asked_by, row.action, row.detail
    )
