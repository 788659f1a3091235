"""Log lines on standard error: for people or as JSON, each with the job that it is about, no secret in any."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Literal

from regreen.codebase.redaction import Clean, hiding, redact_known
from regreen.records import JobRecord

Format = Literal["text", "json"]

_job: ContextVar[JobRecord | None] = ContextVar("job", default=None)


def log_to_stderr(form: Format = "text", own: Iterable[str] = ()) -> None:
    """Have log lines on standard error, ours and those of the libraries; `own` secrets are in none of them."""
    clean = hiding(own, redact_known)
    handler = logging.StreamHandler()
    handler.addFilter(_bind)
    handler.setFormatter(_Json(clean) if form == "json" else _Text(clean))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


@contextmanager
def about(job: JobRecord) -> Iterator[None]:
    """Every line from here on carries this job, its repository and its number."""
    token = _job.set(job)
    try:
        yield
    finally:
        _job.reset(token)


def _bind(record: logging.LogRecord) -> bool:
    record.regreen_job = _job.get()
    return True


def _job_of(record: logging.LogRecord) -> JobRecord | None:
    found = getattr(record, "regreen_job", None)
    return found if isinstance(found, JobRecord) else None


class _Text(logging.Formatter):
    """A line for people; the redaction is the last thing before it leaves the process."""

    def __init__(self, clean: Clean) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._clean = clean

    def format(self, record: logging.LogRecord) -> str:
        job, line = _job_of(record), super().format(record)
        told = f"{line} [{job.id}]" if job is not None and job.id not in line else line
        return self._clean(told)


class _Json(logging.Formatter):
    """One JSON object a line, for a collector."""

    def __init__(self, clean: Clean) -> None:
        super().__init__()
        self._clean = clean

    def format(self, record: logging.LogRecord) -> str:
        job = _job_of(record)
        said: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._clean(record.getMessage()),
        }
        if job is not None:
            said |= {"job": job.id, "kind": job.kind, "repo": job.repo, "number": job.number}
            said |= {"attempt": job.attempts}
        if record.exc_info:
            said["traceback"] = self._clean(self.formatException(record.exc_info))
        return json.dumps(said, ensure_ascii=False)
