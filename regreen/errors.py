"""The two kinds of error that are not bugs: what a person can put right, and what the outside world did."""

from __future__ import annotations


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
