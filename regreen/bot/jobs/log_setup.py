"""Logging to standard error, for people or as JSON: each line names its job and contains no secret."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Literal

from regreen.domain.records import JobRecord
from regreen.secrets.redaction import CleanText, make_value_hider, redact_quickly

LogFormat = Literal["text", "json"]

_current_job: ContextVar[JobRecord | None] = ContextVar("job", default=None)


def log_to_stderr(form: LogFormat = "text", own: Iterable[str] = ()) -> None:
    """Set up log lines on standard error for Regreen and its libraries; `own` are secrets to remove."""
    clean = make_value_hider(own, redact_quickly)
    handler = logging.StreamHandler()
    handler.addFilter(_bind_job)
    handler.setFormatter(_JsonFormatter(clean) if form == "json" else _TextFormatter(clean))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("alembic").setLevel(logging.WARNING)


@contextmanager
def log_context(job: JobRecord) -> Iterator[None]:
    """Attach this job, its repository and its number to every later line of this thread."""
    token = _current_job.set(job)
    try:
        yield
    finally:
        _current_job.reset(token)


def _bind_job(record: logging.LogRecord) -> bool:
    record.regreen_job = _current_job.get()
    return True


def _job_of(record: logging.LogRecord) -> JobRecord | None:
    job = getattr(record, "regreen_job", None)
    return job if isinstance(job, JobRecord) else None


class _TextFormatter(logging.Formatter):
    """A line for people. Redaction is the last step.

    Only tracebacks have further lines, and those are indented: untrusted text cannot imitate a log line.
    """

    def __init__(self, clean: CleanText) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._clean = clean

    def format(self, record: logging.LogRecord) -> str:
        job, line = _job_of(record), super().format(record)
        text = f"{line} [{job.id}]" if job is not None and job.id not in line else line
        return self._clean(text)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        record.message = _escape_control(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        return "\n".join(
            f"  {_escape_control(line)}" for line in super().formatException(ei).split("\n")
        )


def _escape_control(text: str) -> str:
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


class _JsonFormatter(logging.Formatter):
    """One JSON object a line, for a collector."""

    def __init__(self, clean: CleanText) -> None:
        super().__init__()
        self._clean = clean

    def format(self, record: logging.LogRecord) -> str:
        job = _job_of(record)
        fields: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._clean(record.getMessage()),
        }
        if job is not None:
            fields |= {"job": job.id, "kind": job.kind, "repo": job.repo, "number": job.number}
            fields |= {"attempt": job.attempts}
        if record.exc_info:
            fields["traceback"] = self._clean(self.formatException(record.exc_info))
        return json.dumps(fields, ensure_ascii=False)
