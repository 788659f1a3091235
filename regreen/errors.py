"""The two kinds of error that are not bugs: what a person can put right, and what the outside world did."""

from __future__ import annotations

from dataclasses import dataclass


class UserError(Exception):
    """Someone can put it right. The text is shown to that person, so it says what to do."""


class NotARepository(UserError):
    """The path holds no git repository (command line: exit 3)."""


class NoSandbox(UserError):
    """Nothing here can run foreign code safely; the text names the remedy (command line: exit 3)."""


class SetupFailed(UserError):
    """The setup command ended badly. `output` is its tail, for the report."""

    def __init__(self, message: str, output: str = "") -> None:
        super().__init__(message)
        self.output = output


class OutOfBudget(UserError):
    """The next model call would cost more than is left. An answer, not a crash: callers report what they have."""


class Cancelled(UserError):
    """Somebody asked for the work to stop."""


class OutsideError(Exception):
    """GitHub, the model, git's remote or the sandbox engine failed; raised by adapters, retried by jobs.

    `retry_after` is in seconds, None where the other side did not say.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ConfigError(ValueError):
    """A configuration that cannot be used. `problems` has one entry a fault, in the order of the file."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("; ".join(str(p) for p in problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault in a configuration file: its 1-based line, the key, what is wrong and how to put it right."""

    line: int
    key: str
    message: str

    def __str__(self) -> str:
        return (
            f"line {self.line}: {self.key}: {self.message}"
            if self.key
            else f"line {self.line}: {self.message}"
        )
