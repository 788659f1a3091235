"""Says how small a failure can be made: the fewest tests that show it, and the statements of the test that it takes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from threading import Event

from regreen.codebase.trial import Trial
from regreen.errors import OutsideError, SetupFailed
from regreen.fixers.minimise import Minimal, minimise, statement_spans
from regreen.models import Failure
from regreen.ports import Git, Sandbox

_MOST_TRIES = 10
_MOST_LINES = 12


def smaller(
    trial: Trial,
    rev: str,
    failures: Sequence[Failure],
    *,
    git: Git,
    sandbox: Sandbox,
    cancel: Event | None = None,
) -> str | None:
    """One sentence, and a few lines of test, for the first failing test; None where nothing smaller is known.

    Args:
        trial: the command that fails.
        rev: the failing revision.
        failures: what fails, in the order it was printed.
        git: the repository.
        sandbox: where it runs.
        cancel: set to stop.
    """
    first = next((one for one in failures if _is_test(one)), None)
    if first is None:
        return None
    try:
        found = minimise(
            trial, rev, first, git=git, sandbox=sandbox, max_tries=_MOST_TRIES, cancel=cancel
        )
    except (SetupFailed, OutsideError):
        return None
    return said(found)


def _is_test(failure: Failure) -> bool:
    if "::" in failure.test:
        return failure.test.partition("::")[0].endswith(".py")
    of_python = (failure.path or "").endswith(".py")
    return of_python and failure.test.count(".") >= 2 and not re.search(r"[\s:]", failure.test)


def said(found: Minimal) -> str | None:
    """What people and the model read of a smaller failure; None where it is as large as it was."""
    if found.source is None:
        return None
    spans = statement_spans(found.source, found.test)
    lines = found.source.splitlines()
    body = [line for first, last in spans for line in lines[first - 1 : last] if line.strip()]
    if not body or len(body) > _MOST_LINES:
        return None
    shown = " ".join(found.selection)
    needed = "\n".join(body)
    return f"{shown} fails the same way with {found.removed} statements fewer; it takes only:\n{needed}"
