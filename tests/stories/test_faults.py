"""GitHub fails in every way it can: before a write took effect, after it did, in the middle of an answer."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from regreen.playground.application import is_api
from regreen.playground.loopback import Wsgi
from tests.stories.conftest import app_key, checked, violations
from tests.stories.story import SeenPull, Story
from tests.stories.test_reviews import FAULT


class Flaky:
    """Stands before the playground's API and breaks a share of the exchanges, repeatably."""

    def __init__(self, inside: Wsgi, share: float, seed: int) -> None:
        self._inside = inside
        self.share = share
        self._dice = random.Random(seed)
        self.broken: Counter[str] = Counter()

    def __call__(self, environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        if not is_api(environ["PATH_INFO"]) or self._dice.random() >= self.share:
            return self._inside(environ, start)
        kind = self._dice.choice(["before", "after", "truncated", "limited", "secondary"])
        self.broken[kind] += 1
        headers = [("Content-Type", "application/json")]
        if kind == "before":
            start("502 Bad Gateway", headers)
            return [b'{"message": "Server Error"}']
        if kind == "limited":
            start("429 Too Many Requests", [*headers, ("Retry-After", "1")])
            return [b'{"message": "You have exceeded a secondary rate limit"}']
        if kind == "secondary":
            start("403 Forbidden", [*headers, ("Retry-After", "1")])
            return [b'{"message": "You have exceeded a secondary rate limit"}']
        return self._after(environ, start, kind)

    def _after(self, environ: dict[str, Any], start: Any, kind: str) -> Iterable[bytes]:
        """The request takes effect, and the answer is lost or cut."""
        said: list[tuple[str, list[tuple[str, str]]]] = []

        def remember(
            status: str, headers: list[tuple[str, str]], *_: object
        ) -> Callable[..., None]:
            said.append((status, headers))
            return lambda _data: None

        body = b"".join(self._inside(environ, remember))
        if kind == "after":
            start("502 Bad Gateway", [("Content-Type", "application/json")])
            return [b'{"message": "Server Error"}']
        status, headers = said[0]
        cut = body[: len(body) // 2]
        kept = [(k, v) for k, v in headers if k.lower() != "content-length"]
        start(status, [*kept, ("Content-Length", str(len(cut)))])
        return [cut]


@pytest.mark.parametrize("seed", range(4))
def test_every_job_ends_right_and_nothing_is_doubled(tmp_path: Path, seed: int) -> None:
    log = tmp_path / "violations.jsonl"
    flaky: list[Flaky] = []

    def wrap(application: Wsgi) -> Wsgi:
        flaky.append(Flaky(checked(log)(application), 0.0, seed))
        return flaky[0]

    story = Story(tmp_path, wrap, None, app_key())
    story.work()
    flaky[0].share = 0.08
    pull = story.pull(FAULT)
    story.says("alice", "/config\n/help", on=pull)
    issue = story.issue("Slow")
    story.says("mallory", "/fix", on=issue)
    for _ in range(3):
        story.work()
        story.passes(hours=1)
    assert flaky[0].broken.total() > 0
    flaky[0].share = 0.0
    _right(story, pull)
    assert issue.comments == ["@mallory, only people with write access may do that."]
    story.end()
    assert violations(log) == []


def _right(story: Story, pull: SeenPull) -> None:
    failed = [(j.id, j.note) for j in story.regreen.store.jobs() if j.state == "failed"]
    assert failed == []
    assert len(pull.reviews) == 1
    assert len(pull.comments) == 1
    assert pull.checks == {"Regreen": "neutral"}
    assert len(story.state.checks_on(pull.raw.base.full_name, pull.raw.head_sha)) == 1
