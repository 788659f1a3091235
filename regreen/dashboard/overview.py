"""The first page: each repository's health, what is broken, what was done this month and what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import quote

from flask import Response

from regreen.code.repo_config_file import parse_repo_config
from regreen.dashboard.rendering import render_page
from regreen.dashboard.viewer import Viewer
from regreen.domain.errors import ConfigError, UserError
from regreen.domain.list_queries import DashboardStore, ListQuery, RepositoryMonth, ScheduleRun
from regreen.domain.repo_config import BudgetConfig
from regreen.domain.state_records import LastValidConfig, ScheduleState, ServiceState

_HEALTH_PERIOD = timedelta(days=30)
_MAX_HEALTH_MARKS = 14
_DEFAULT_BUDGET = BudgetConfig()


@dataclass(frozen=True, slots=True)
class _HealthMark:
    """One scheduled look at a repository, and the word for its state."""

    run: ScheduleRun
    state: str


@dataclass(frozen=True, slots=True)
class _Regression:
    """An open regression; `address` is empty where no issue is known."""

    title: str
    address: str


@dataclass(frozen=True, slots=True)
class _RepositoryLine:
    """A repository's row. `looks` are the last ones, the newest last."""

    month: RepositoryMonth
    budget: BudgetConfig
    looks: list[_HealthMark]
    regressions: list[_Regression]


def show_overview(shelf: DashboardStore, reader: Viewer, now: datetime, web_url: str) -> Response:
    """Every repository on one line, above them what the operator has to know, below them what goes on now."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    months = shelf.months(today.replace(day=1), today)
    months = [m for m in months if m.repo and reader.may_see(m.repo)]
    looks: dict[str, list[_HealthMark]] = {}
    for run in shelf.schedule_runs(now - _HEALTH_PERIOD):
        if reader.may_see(run.repo):
            looks.setdefault(run.repo, []).append(_HealthMark(run, _run_state_word(run)))
    regressions: dict[str, list[_Regression]] = {}
    for state in shelf.find_all(ScheduleState):
        if state.red and reader.may_see(state.repo):
            regressions.setdefault(state.repo, []).append(_describe_regression(state, web_url))
    known = {repo: RepositoryMonth(repo) for repo in looks} | {m.repo: m for m in months}
    configs = {known.repo: known.text for known in shelf.find_all(LastValidConfig)}
    sandbox = shelf.find(ServiceState, name="sandbox")
    running = shelf.list_jobs(ListQuery(repos=reader.repos, state="running", limit=20)).rows
    waiting = shelf.list_jobs(ListQuery(repos=reader.repos, state="waiting", limit=20)).rows
    return render_page(
        "overview.html",
        "Overview",
        reader,
        repositories=[
            _RepositoryLine(
                month,
                _parse_budget(configs.get(repo)),
                looks.get(repo, [])[:_MAX_HEALTH_MARKS][::-1],
                regressions.get(repo, []),
            )
            for repo, month in sorted(known.items())
        ],
        total=sum(m.usd for m in months) if months else None,
        current_jobs=[*running, *waiting],
        sandbox_problem=sandbox.value if sandbox else None,
        web_url=web_url,
    )


def _run_state_word(look: ScheduleRun) -> str:
    if look.state in {"waiting", "running"}:
        return "running"
    if look.state != "done":
        return look.state
    first = look.note.partition(":")[0].split(" ")[0]
    return {"still": "red", "failed": "flaky"}.get(first, first or "done")


def _describe_regression(state: ScheduleState, web_url: str) -> _Regression:
    is_linked = web_url and state.issue is not None
    address = f"{web_url}/{quote(state.repo)}/issues/{state.issue}" if is_linked else ""
    return _Regression(f"{state.schedule}: #{state.issue}", address)


def _parse_budget(config: str | None) -> BudgetConfig:
    """The budget by the configuration last read from a repository, the default where it has none."""
    try:
        return parse_repo_config(config).budget if config else _DEFAULT_BUDGET
    except (ConfigError, UserError):  # an older version took it
        return _DEFAULT_BUDGET
