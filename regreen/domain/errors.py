"""Errors that are not bugs: what a person can correct, and failures of outside systems."""

from __future__ import annotations

from dataclasses import dataclass


class UserError(Exception):
    """An error that somebody can correct. The text is shown to that person, so it says what to do."""


class NotStarted(UserError):
    """Work that a setting or a used-up budget refuses: nothing was run, so nothing failed."""


class NotARepository(UserError):
    """The path holds no git repository (command line: exit 3)."""


class NoSandbox(UserError):
    """No safe place to run untrusted code exists here; the text names the remedy (command line: exit 3)."""


class SetupFailed(UserError):
    """The setup command failed. `output` is its tail, for the report."""

    def __init__(self, message: str, output: str = "") -> None:
        super().__init__(message)
        self.output = output


class OutOfBudget(UserError):
    """The next model call could cost more than is left. An answer, not a crash: callers report what they have."""


class Cancelled(UserError):
    """The caller cancelled the work."""


class AnalysisFailed(UserError):
    """Reading untrusted data reached a limit or broke; the text is the reason, as in "took more than 20 s"."""


class OutsideError(Exception):
    """GitHub, the model, git's remote or the sandbox engine failed; raised by adapters, retried by jobs.

    `retry_after` is in seconds, None if the other side gave none.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ConfigError(ValueError):
    """An invalid configuration. `problems` has one entry for each fault, in the order of the file."""

    def __init__(self, problems: tuple[ConfigProblem, ...]) -> None:
        super().__init__("; ".join(str(p) for p in problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """One fault in a configuration file: its 1-based line, the key, the fault and how to correct it."""

    line: int
    key: str
    message: str

    def __str__(self) -> str:
        return (
            f"line {self.line}: {self.key}: {self.message}"
            if self.key
            else f"line {self.line}: {self.message}"
        )
