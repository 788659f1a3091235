"""Jobs that run side by side spend from one purse: what one could still cost is not there for another."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import SecretStr
from regreen_playground.model import Answer, ScriptedModel
from regreen_playground.things import Json

from regreen.adapters.clock import SystemClock
from regreen.adapters.store.connection import engine_for
from regreen.adapters.store.database import Database
from regreen.app.wiring import JobModelFactory
from regreen.bot.jobs.runner import Job
from regreen.domain.errors import OutOfBudget
from regreen.domain.models import Message, ModelRequest
from regreen.domain.ports import Model
from regreen.domain.records import JobRecord
from regreen.domain.repo_config import BudgetConfig, RepoConfig
from regreen.domain.settings import Settings

NOW = datetime(2026, 3, 2, tzinfo=UTC)


def job(store: Database, name: str) -> Job:
    record = JobRecord(
        id=name, kind="review", repo="acme/shop", number=1, installation=1, queue="review", key="k", priority=0, event="{}", replaces=None,
        state="running", attempts=1, created=NOW, due=NOW, started=NOW, ended=None, worker=None, note="", progress="", usd=0.0,
    )  # fmt: skip
    return Job(record, threading.Event(), store)


def asked(model: Model, text: str) -> str:
    return model.ask(ModelRequest("t", "s", (Message("user", text),), max_tokens=100)).text


@pytest.mark.parametrize(
    "budget",
    [BudgetConfig(usd_per_day=0.004), BudgetConfig(usd_per_month=0.004)],
    ids=["day", "month"],
)
def test_reviews_of_forks_leave_half_of_the_budget_to_others(
    tmp_path: Path, budget: BudgetConfig
) -> None:
    engine = engine_for(f"sqlite:///{tmp_path / 'regreen.sqlite'}")
    store = Database(engine, SystemClock())
    store.create_or_upgrade_tables()
    with ScriptedModel(lambda _: "fine") as far:
        settings = Settings(
            _env_file=None, anthropic_base_url=far.url, anthropic_api_key=SecretStr("k"), model="claude-sonnet-5"
        )  # fmt: skip
        models, config = JobModelFactory(settings, store, SystemClock()), RepoConfig(budget=budget)
        forks = models(job(store, "a"), "acme/shop", 1, config, fork=True)
        others = models(job(store, "b"), "acme/shop", 2, config)
        assert forks is not None
        assert others is not None
        with pytest.raises(OutOfBudget):
            asked(forks[0], "quick")
        assert asked(others[0], "quick") == "fine"
    engine.dispose()


@pytest.mark.parametrize(
    "budget",
    [
        BudgetConfig(usd_per_day=0.004),
        BudgetConfig(usd_per_month=0.004),
        BudgetConfig(usd_per_pull_request=0.004),
    ],
    ids=["the day", "the month", "the pull request"],
)
def test_what_a_call_under_way_could_cost_is_not_there_for_another_job(
    tmp_path: Path, budget: BudgetConfig
) -> None:
    engine = engine_for(f"sqlite:///{tmp_path / 'regreen.sqlite'}")
    store = Database(engine, SystemClock())
    store.create_or_upgrade_tables()
    go_on = threading.Event()

    def answer(request: Json) -> Answer:
        if "slow" in str(request):
            assert go_on.wait(60)
        return "fine"

    with ScriptedModel(answer) as far:
        settings = Settings(
            _env_file=None, anthropic_base_url=far.url, anthropic_api_key=SecretStr("k"), model="claude-sonnet-5"
        )  # fmt: skip
        models, config = JobModelFactory(settings, store, SystemClock()), RepoConfig(budget=budget)
        made = [
            models(job(store, name), repo, 1, config)
            for name, repo in (("a", "acme/shop"), ("b", "acme/shop"), ("c", "acme/mill"))
        ]
        first, second, elsewhere = (m[0] for m in made if m is not None)
        said: list[str] = []
        slow = threading.Thread(target=lambda: said.append(asked(first, "slow")))
        slow.start()
        try:
            while not far.asked:
                time.sleep(0.01)
            with pytest.raises(OutOfBudget, match="is left"):
                asked(second, "quick")
            assert asked(elsewhere, "quick") == "fine"
        finally:
            go_on.set()
            slow.join()
        assert said == ["fine"]
        assert asked(second, "quick") == "fine", "what the first did cost leaves room"
    engine.dispose()
