"""What is noticed of each call to GitHub: how long it took, and how much of the rate limit it left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from regreen.listing import Limit
from regreen.ports import NoTraces, Traces

Heard = Callable[[Mapping[str, object]], None]
"""Takes the headers of an answer, their names in lower case."""


@dataclass(frozen=True)
class Watch:
    """Looks on while one credential is used. `owner` says whose limit it is: GitHub keeps one for each installation.

    https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
    """

    traces: Traces = field(default_factory=NoTraces)
    limit: Callable[[Limit], None] = lambda _: None
    owner: str = "app"

    def of(self, owner: str) -> Watch:
        """The same for another credential."""
        return replace(self, owner=owner)

    @contextmanager
    def call(self, verb: str, path: str) -> Iterator[Heard]:
        """One exchange; give it the headers of what came back."""
        about = {"http.request.method": verb, "url.path": path, "regreen.github.owner": self.owner}
        with self.traces.span("GitHub", about):
            yield self._headers

    def _headers(self, headers: Mapping[str, object]) -> None:
        try:
            left = int(str(headers["x-ratelimit-remaining"]))
            most = int(str(headers["x-ratelimit-limit"]))
            resets = float(str(headers["x-ratelimit-reset"]))
        except (KeyError, ValueError):
            return  # Enterprise Server can be without limits
        self.limit(Limit(self.owner, str(headers.get("x-ratelimit-resource", "core")), left, most, resets))  # fmt: skip
