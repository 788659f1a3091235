"""What a review's model calls have cost together."""

from __future__ import annotations

import threading

from regreen.models import Cost, ModelAnswer, ModelRequest
from regreen.ports import Model


class Meter:
    """A model that adds up what it is asked; readings run side by side, so it counts under a lock."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._lock = threading.Lock()
        self.cost = Cost()

    def ask(self, request: ModelRequest) -> ModelAnswer:
        """Pass the question on."""
        answer = self._model.ask(request)
        with self._lock:
            self.cost += answer.cost
        return answer
