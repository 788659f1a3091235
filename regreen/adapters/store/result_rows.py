"""Cost and results: the model's answers, the ledger, documents, the audit log."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from regreen.adapters.store import tables as t
from regreen.adapters.store.connection import StoreRows, datetime_from_seconds
from regreen.domain.models import Cost
from regreen.domain.records import AuditEntry, LedgerLine, ResultDocument
from regreen.secrets.redaction import redact_all


class ResultRows(StoreRows):
    """The part of the store with results for people."""

    # The model's answers and the ledger

    def cached_answer(self, key: str) -> str | None:
        """A model's answer by its request's hash."""
        with self._begin_transaction() as connection:
            query = sa.select(t.answers.c.answer).where(t.answers.c.key == key)
            return connection.execute(query).scalar_one_or_none()

    def cache_answer(self, key: str, answer: str) -> None:
        """Remember a model's answer."""
        row = {"key": key, "answer": answer, "at": self._current_seconds()}
        with self._begin_transaction() as connection:
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
        with self._begin_transaction() as connection:
            connection.execute(sa.insert(t.ledger).values(row))

    def total_spent(self, repo: str, since: datetime, number: int | None = None) -> float:
        """The cost of model calls since then, in US dollars."""
        where = [t.ledger.c.repo == repo, t.ledger.c.at >= since.timestamp()]
        where += [t.ledger.c.number == number] if number is not None else []
        with self._begin_transaction() as connection:
            total = connection.execute(
                sa.select(sa.func.coalesce(sa.func.sum(t.ledger.c.usd), 0.0)).where(*where)
            ).scalar_one()
        return float(total)

    def ledger(self, limit: int = 100) -> list[LedgerLine]:
        """The latest model calls."""
        query = sa.select(t.ledger).order_by(t.ledger.c.id.desc()).limit(limit)
        with self._begin_transaction() as connection:
            return [ledger_line_from_row(row) for row in connection.execute(query)]

    # Documents

    def save_document(self, document: ResultDocument) -> None:
        """Store a result without credentials; it replaces one of the same kind, repository and subject."""
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
        with self._begin_transaction() as connection:
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
    ) -> list[ResultDocument]:
        """The latest results."""
        where = [t.documents.c.kind == kind] if kind is not None else []
        where += [t.documents.c.repo == repo] if repo is not None else []
        where += [t.documents.c.number == number] if number is not None else []
        query = sa.select(t.documents).where(*where).order_by(t.documents.c.at.desc()).limit(limit)
        with self._begin_transaction() as connection:
            return [document_from_row(row) for row in connection.execute(query)]

    # The audit log

    def log(self, action: AuditEntry) -> None:
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
        with self._begin_transaction() as connection:
            connection.execute(sa.insert(t.actions).values(row))

    def actions(self, *, repo: str | None = None, limit: int = 200) -> list[AuditEntry]:
        """The latest lines of the audit log."""
        where = [t.actions.c.repo == repo] if repo is not None else []
        query = sa.select(t.actions).where(*where).order_by(t.actions.c.id.desc()).limit(limit)
        with self._begin_transaction() as connection:
            return [action_from_row(row) for row in connection.execute(query)]


def ledger_line_from_row(row: Any) -> LedgerLine:
    """A ledger's row as a value."""
    cost = Cost(row.usd, row.calls, row.input_tokens, row.output_tokens, row.cached_tokens)
    return LedgerLine(
        datetime_from_seconds(row.at), row.job, row.repo, row.number, row.purpose, row.model, cost
    )


def document_from_row(row: Any) -> ResultDocument:
    """A result's row as a value."""
    return ResultDocument(
        kind=row.kind,
        repo=row.repo,
        number=row.number,
        subject=row.subject,
        job=row.job,
        at=datetime_from_seconds(row.at),
        body=json.loads(row.body),
    )


def action_from_row(row: Any) -> AuditEntry:
    """An audit row as a value."""
    return AuditEntry(
        datetime_from_seconds(row.at),
        row.job,
        row.repo,
        row.number,
        row.asked_by,
        row.action,
        row.detail,
    )
