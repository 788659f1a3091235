"""What a review's model calls have cost together."""

from __future__ import annotations

import threading

from regreen.errors import Cancelled
from regreen.models import Cost, ModelAnswer, ModelRequest
from regreen.ports import Model


class Meter:
    """A model that adds up what it is asked; readings run side by side, so it counts under a lock.

    Once `cancel` is set it is asked nothing more.
    """

    def __init__(self, model: Model, cancel: threading.Event | None = None) -> None:
        self._model = model
        self._cancel = cancel
        self._lock = threading.Lock()
        self.cost = Cost()

    def ask(self, request: ModelRequest) -> ModelAnswer:
        """Pass the question on.

        Raises:
            Cancelled: the work was stopped: what is not asked is not paid for.
        """
        if self._cancel is not None and self._cancel.is_set():
            raise Cancelled("the review was stopped")
        answer = self._model.ask(request)
        with self._lock:
            self.cost += answer.cost
        return answer
