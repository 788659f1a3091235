"""GitHub fails in every way it can, and every job ends right: nothing is doubled, nothing is left undone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from regreen_playground.acts import owners
from regreen_playground.outbox import Answer
from regreen_playground.things import ReviewComment

from regreen.domain.state_records import RepositorySchedules
from tests.stories.conftest import app_key, checked, violations
from tests.stories.flaky import KINDS, Flaky
from tests.stories.story import REPO, SeenPull, Story, missing_sandbox
from tests.stories.test_events import _NIGHTLY
from tests.stories.test_reviews import FAULT


class Weather:
    """A story over a GitHub whose share of broken exchanges can be set."""

    def __init__(self, home: Path, seed: int, kinds: Sequence[str] = KINDS) -> None:
        self._kinds = kinds
        self._log = home / "violations.jsonl"
        self._flaky: list[Flaky] = []
        self._seed = seed
        self.story = Story(home, self._wrap, None, app_key(), missing_sandbox())
        self.story.work()

    def _wrap(self, application: object) -> Flaky:
        self._flaky.append(Flaky(checked(self._log)(application), 0.0, self._seed))  # type: ignore[arg-type]
        return self._flaky[0]

    def turns_bad(self, share: float = 0.15) -> None:
        """From now on this share of exchanges breaks."""
        self._flaky[0].share = share
        self._flaky[0].kinds = self._kinds
        self._flaky[0].breaks_next = share > 0

    def passes(self) -> None:
        """Everything is tried again while it is bad, and once more when it is good."""
        for _ in range(3):
            self.story.work()
            self.story.passes(hours=1)
        assert self._flaky[0].broken.total() > 0
        self._flaky[0].share = 0.0
        self.story.work()

    def ends(self) -> None:
        """Whatever happened, no job failed and no exchange was against GitHub's description."""
        jobs = self.story.regreen.store.jobs()
        unfinished = [j for j in jobs if j.state not in {"done", "superseded"}]
        # a job that waited when its repository was renamed goes on as another
        lost = [j for j in unfinished if not any(f"renamed/{j.id}" in other.id for other in jobs)]
        assert [(j.id, j.note) for j in lost] == []
        self.story.end()
        assert violations(self._log) == []


def seeds(count: int) -> list[Any]:
    """One each time, the others in the long suite."""
    return [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, count))]


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(6))
def test_reviews_and_commands_end_right(tmp_path: Path, seed: int) -> None:
    reviews_and_commands(Weather(tmp_path, seed))


def reviews_and_commands(weather: Weather) -> None:
    """A review, commands that are obeyed and one that is refused."""
    story = weather.story
    weather.turns_bad()
    pull = story.pull(FAULT)
    story.says("alice", "/config\n/help", on=pull)
    issue = story.issue("Slow")
    story.says("mallory", "/fix", on=issue)
    weather.passes()
    _reviewed_once(story, pull)
    assert len(pull.comments) == 1
    assert issue.comments == ["> `/fix`\n\n@mallory, only people with write access may do that."]
    weather.ends()


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(4))
def test_pushes_dismissals_and_buttons_end_right(tmp_path: Path, seed: int) -> None:
    pushes_dismissals_and_buttons(Weather(tmp_path, 100 + seed))


def pushes_dismissals_and_buttons(weather: Weather) -> None:
    """A second review, a button, a command and the merge queue."""
    story = weather.story
    pull = story.pull(FAULT)
    story.work()
    check = pull.check
    weather.turns_bad()
    story.pushes(pull, {"shop/more.py": "X = 1\n"})
    story.state.press(check, "explain", by="alice")
    story.says("alice", "/review", on=pull)
    story.state.queue_merge(pull.raw)
    weather.passes()
    first: list[ReviewComment] = [thread.comments[0] for thread in pull.raw.threads]
    assert len({(one.path, one.line, one.body) for one in first}) == len(first)
    runs = story.state.checks_on("acme/shop", pull.raw.head_sha)
    assert {run.status for run in runs} == {"completed"}
    assert len(runs) == len({run.external_id for run in runs})
    weather.ends()


@pytest.mark.parametrize("seed", seeds(4))
def test_what_owners_do_and_upkeep_end_right(tmp_path: Path, seed: int) -> None:
    owners_and_upkeep(Weather(tmp_path, 400 + seed))


def owners_and_upkeep(weather: Weather) -> None:
    """A schedule is learnt, a delivery is missed, a repository renamed; hours pass."""
    story = weather.story
    weather.turns_bad()
    story.configures(_NIGHTLY)
    story.work()
    pull = story.pull(FAULT)
    story.state.flush(lambda *_: Answer(502, {}, ""))
    owners.rename(story.state, story.state.repository(REPO), "store")
    for _ in range(4):
        story.passes(hours=1)
        story.regreen.enqueue_due_work()
        story.work()
    weather.passes()
    assert [s.repo for s in story.regreen.store.find_all(RepositorySchedules)] == ["acme/store"]
    assert len(pull.reviews) == 1
    assert pull.checks == {"Regreen": "neutral"}
    story.app.deliveries[:] = [d for d in story.app.deliveries if d.status_code < 300]
    weather.ends()


def _reviewed_once(story: Story, pull: SeenPull) -> None:
    assert len(pull.reviews) == 1
    assert pull.checks == {"Regreen": "neutral"}
    assert len(story.state.checks_on(pull.raw.base.full_name, pull.raw.head_sha)) == 1
