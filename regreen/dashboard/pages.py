"""The dashboard's pages and their addresses: what came in, what runs, what was found, what it cost; cancelling and repeating."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from math import sqrt
from statistics import median
from typing import Any, get_args
from urllib.parse import quote

from flask import Blueprint, Response, abort, g, redirect, request
from werkzeug.wrappers import Response as AnyResponse

from regreen.bot.feedback import OutcomeStore
from regreen.bot.jobs.engine import find_next_cron_time
from regreen.bot.jobs.event_jobs import make_orders
from regreen.bot.jobs.serialization import deserialize_work
from regreen.bot.messages import name_repair
from regreen.bot.open_tasks import (
    MAINTENANCE_KINDS,
    OpenTask,
    describe_patch,
    list_open_tasks,
    name_job,
    read_schedules,
)
from regreen.bot.repository_settings import was_observed
from regreen.code.repo_config_file import parse_repo_config
from regreen.dashboard.authentication import CAPSULES_PATH, Authenticator
from regreen.dashboard.rendering import (
    Viewer,
    format_json,
    format_subject,
    name_cause,
    render_message,
    render_page,
)
from regreen.domain.errors import ConfigError, UserError
from regreen.domain.github import SignIn
from regreen.domain.list_queries import (
    DashboardStore,
    ListQuery,
    Page,
    RepositoryMonth,
    ScheduleRun,
)
from regreen.domain.models import SentPart
from regreen.domain.ports import Clock
from regreen.domain.records import (
    ENDED_STATES,
    AuditEntry,
    JobKind,
    JobRecord,
    JobState,
    LedgerLine,
    Order,
    ResultDocument,
)
from regreen.domain.repo_config import BudgetConfig, RepoConfig, Schedule
from regreen.domain.settings import Settings
from regreen.domain.state_records import (
    Dismissal,
    FindingOutcome,
    LastValidConfig,
    PendingPatch,
    RepositorySchedules,
    ScheduleState,
    ServiceState,
    StoredCapsule,
    WithheldWrite,
)
from regreen.domain.text_limits import format_seconds
from regreen.packages.lock_edits import PackageUpgrade
from regreen.reviewers.learning import (
    CalibrationBin,
    RuleStats,
    calibration_bins,
    rule_statistics,
)
from regreen.secrets.markdown_sanitizer import count_noun, format_probability

# One result with everything behind it: a review's findings, a repair's attempts, a bisection's runs.

_HIDDEN_KEYS = {"svg"}
_MAX_HEATMAP_RUNS = 60
_MAX_MODEL_CALLS = 300
_MAX_LIKELY_COMMITS = 10
_WIDTH, _ROW_HEIGHT, _LEFT = 720, 16, 30


@dataclass(frozen=True, slots=True)
class ResultSummary:
    """A result: a word for its badge, one line, and the pull request or issue that it opened."""

    document: ResultDocument
    verdict: str
    headline: str

    @property
    def title(self) -> str:
        """What people call the subject: a pull request's title, or the branch or command."""
        body = self.document.body
        return str(body.get("title") or body.get("command") or "")[:200]

    @property
    def author(self) -> str:
        """The pull request's author."""
        return str(self.document.body.get("author") or "")

    @property
    def seconds(self) -> object:
        """How long the work took; a proof keeps its parts, of which the time of the tests is inside another."""
        spent = self.document.body.get("seconds")
        if not isinstance(spent, dict):
            return spent
        return sum(_as_number(value) for part, value in spent.items() if part != "tests")

    @property
    def opened(self) -> int | None:
        """The number of the pull request or issue that this work opened."""
        number = self.document.body.get("opened")
        return number if isinstance(number, int) else None


@dataclass(frozen=True, slots=True)
class _Heatmap:
    """How a bisection narrowed: a row a run, a column a commit or a few, the darker the likelier.

    `cells` holds x, y and opacity of what is not next to nothing.
    """

    rows: int
    commits: int
    width: int
    height: int
    cell_width: float
    cells: list[tuple[float, int, float]]


@dataclass(frozen=True, slots=True)
class ResultView:
    """What the page of a result shows besides its document."""

    summary: ResultSummary
    whole: str
    likeliest: Sequence[Mapping[str, Any]]
    heatmap: _Heatmap | None
    picture: str


def summarize_result(document: ResultDocument) -> ResultSummary:
    """One word and one line on what came out."""
    body = document.body
    is_observed, is_opened = bool(body.get("observed")), bool(body.get("opened"))
    outcome = str(body.get("outcome") or "done")
    verdict = name_repair(outcome, is_observed=is_observed, is_opened=is_opened)
    if body.get("outcome") == "needs_human" and body.get("opened"):
        verdict = " by ".join(str(s) for s in ("approved", body.get("approved_by")) if s)
    match document.kind:
        case "review":
            verdict = _name_review_verdict(body)
            return ResultSummary(document, verdict, _describe_review(body)[:300])
        case "fix":
            return ResultSummary(document, verdict, _describe_fix(body)[:300])
        case "bisect":
            verdict = "culprit found" if verdict == "found" else verdict
            return ResultSummary(document, verdict, _describe_bisection(body)[:300])
        case "why" | "prove":
            verdict = "tests fail" if body.get("failing") else name_cause(body)
            if verdict == "proven" and body.get("conclusion") == "neutral":
                verdict = "weak proof"  # most faults pass unnoticed, and green would hide that
            line = str(body.get("headline") or body.get("reason") or "")
            return ResultSummary(document, verdict, line[:300])


def view_result(document: ResultDocument) -> ResultView:
    """Everything that the page of a result shows."""
    body = document.body
    shown = {key: value for key, value in body.items() if key not in _HIDDEN_KEYS}
    points = [p for p in body.get("posterior") or () if isinstance(p, dict)]
    return ResultView(
        summarize_result(document),
        whole=json.dumps(shown, indent=2, ensure_ascii=False),
        likeliest=[
            point
            for place, point in enumerate(sorted(points, key=lambda p: -float(p.get("p") or 0)))
            if place < 3 or (place < _MAX_LIKELY_COMMITS and float(point.get("p") or 0) >= 0.005)
        ],
        heatmap=_lay_out_heatmap(body),
        picture=b64encode(str(body.get("svg") or "").encode()).decode(),
    )


def _name_review_verdict(body: Mapping[str, Any]) -> str:
    tests = _as_mapping(body.get("tests"))
    if tests and tests.get("exit_code") != 0:
        return "tests fail"
    over_budget = [w for w in body.get("withheld") or () if _is_over_budget(w)]
    everything = (*(body.get("findings") or ()), *over_budget)
    dismissed = body.get("dismissed") or ()
    found = [f for f in everything if _as_mapping(f).get("fingerprint") not in dismissed]
    if found:
        return count_noun(len(found), "finding")
    if body.get("still_open"):
        return f"{len(body['still_open'])} still open"
    left = [*(body.get("skipped") or ()), *(body.get("not_reviewed") or ())]
    gaps = [e for e in left if isinstance(e, dict) and e.get("by_policy") is False]
    return "not reviewed" if gaps else "no findings"


def _describe_review(body: Mapping[str, Any]) -> str:
    shown = {"budget", "duplicate", "dismissed"}  # among the findings, or said of an earlier push
    reasons = [_as_mapping(entry).get("reason") for entry in body.get("withheld") or ()]
    withheld = sum(reason not in shown for reason in reasons)
    held = f" {withheld} withheld." if withheld else ""
    headline = body.get("headline")
    lead = f"{headline}." if headline else str(body.get("summary", "")).partition("\n\n")[0]
    return lead + held


def _is_over_budget(withheld: object) -> bool:
    """Whether this finding has no comment on its line, and is one of the review's findings all the same."""
    return _as_mapping(withheld).get("reason") == "budget"


def _describe_fix(body: Mapping[str, Any]) -> str:
    parts = (body.get("cause"), body.get("reason"))
    return " ".join(str(part) for part in parts if part)


def _describe_bisection(body: Mapping[str, Any]) -> str:
    culprit, share = _as_mapping(body.get("culprit")), body.get("probability")
    if not culprit:
        return str(body.get("headline") or next(iter(body.get("notes") or ()), ""))
    sure = f" ({format_probability(share)})" if isinstance(share, float) else ""
    package: Mapping[str, Any] = _as_mapping(body.get("dependency"))
    moved = ""
    if package:
        name = str(package.get("name"))
        moved = f"{PackageUpgrade(name, package.get('old'), package.get('new'))}, in "
    return f"{moved}{str(culprit.get('sha', ''))[:12]} {culprit.get('subject', '')} by {culprit.get('author', '')}{sure}"


def _lay_out_heatmap(body: Mapping[str, Any]) -> _Heatmap | None:
    steps = [step for step in body.get("narrowing") or () if isinstance(step, dict)]
    runs = [[_as_number(mass) for mass in step.get("columns") or ()] for step in steps]
    runs = runs[:_MAX_HEATMAP_RUNS]
    if not runs or not all(runs):
        return None
    columns = len(runs[0])
    cell_width = min(48.0, _WIDTH / columns)
    return _Heatmap(
        rows=len(runs),
        commits=len(body.get("posterior") or ()),
        width=max(160, _LEFT + int(columns * cell_width) + 4),
        height=(len(runs) + 1) * _ROW_HEIGHT + 10,
        cell_width=cell_width,
        cells=[
            (_LEFT + column * cell_width, row * _ROW_HEIGHT, max(0.06, mass**0.5))
            for row, masses in enumerate(runs)
            for column, mass in enumerate(masses)
            if mass >= 0.002
        ],
    )


def _as_number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _as_mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


_HEALTH_PERIOD = timedelta(days=30)
_MAX_HEALTH_MARKS = 14
_MAX_ROWS = 500
_RED_WEEKS = 8
_TREND_PERIOD = timedelta(weeks=4)
_MAX_COVERAGE_REVIEWS = 100
_MAX_COVERAGE_MARKS = 30


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
    """A repository's row. `looks` are the last ones, the newest last; `is_scheduled`: a schedule is configured."""

    month: RepositoryMonth
    budget: BudgetConfig
    looks: list[_HealthMark]
    regressions: list[_Regression]
    is_scheduled: bool = False


def _list_tasks(
    shelf: DashboardStore, reader: Viewer, now: datetime, repo: str = ""
) -> list[OpenTask]:
    return list_open_tasks(shelf, now, lambda name: reader.may_see(name) and repo in {"", name})


def _list_coverage(shelf: DashboardStore, repo: str) -> list[ResultDocument]:
    """The latest reviews of a repository that measured what the tests ran of the new lines, the newest last."""
    page = shelf.list_documents(ListQuery(repo=repo, kind="review", limit=_MAX_COVERAGE_REVIEWS))
    measured = [d for d in page.rows if _as_mapping(d.body.get("coverage")).get("new_lines")]
    return measured[:_MAX_COVERAGE_MARKS][::-1]


def _list_activity(shelf: DashboardStore, reader: Viewer, repo: str = "") -> list[ResultSummary]:
    page = shelf.list_documents(ListQuery(repos=reader.repos, repo=repo, limit=15))
    return [summarize_result(document) for document in page.rows]


def _list_repositories(
    shelf: DashboardStore, reader: Viewer, now: datetime, web_url: str
) -> list[_RepositoryLine]:
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    months = shelf.months(today.replace(day=1), today)
    months = [m for m in months if m.repo and reader.may_see(m.repo)]
    looks: dict[str, list[_HealthMark]] = {}
    for run in shelf.schedule_runs(now - _HEALTH_PERIOD):
        marks = looks.setdefault(run.repo, []) if reader.may_see(run.repo) else None
        if marks is not None and len(marks) < _MAX_HEALTH_MARKS:
            marks.append(_HealthMark(run, run.outcome or run.state))
    regressions: dict[str, list[_Regression]] = {}
    for state in shelf.find_all(ScheduleState):
        if state.red and reader.may_see(state.repo):
            regressions.setdefault(state.repo, []).append(_describe_regression(state, web_url))
    known = {repo: RepositoryMonth(repo) for repo in looks} | {m.repo: m for m in months}
    configs = {known.repo: known.text for known in shelf.find_all(LastValidConfig)}
    scheduled = {one.repo for one in shelf.find_all(RepositorySchedules) if read_schedules(one)}
    return [
        _RepositoryLine(
            month,
            _parse_config(configs.get(repo)).budget,
            looks.get(repo, [])[::-1],
            regressions.get(repo, []),
            is_scheduled=repo in scheduled,
        )
        for repo, month in sorted(known.items())
    ]


def _load_answers(
    shelf: DashboardStore, reader: Viewer, repo: str = ""
) -> Sequence[ResultDocument]:
    """The latest answers to failed checks, the newest first."""
    query = ListQuery(repos=reader.repos, repo=repo, kind="why", limit=_MAX_ROWS)
    return shelf.list_documents(query).rows


def _count_red_checks(
    answers: Sequence[ResultDocument], now: datetime
) -> list[tuple[datetime, int, Counter[str]]]:
    """For each of the last weeks the failed checks that were answered, in total and by verdict; [] without any."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    monday = midnight - timedelta(days=now.weekday())
    starts = [monday - timedelta(weeks=week) for week in range(_RED_WEEKS)]
    if len(answers) >= _MAX_ROWS:  # of an earlier week some may not be among them
        starts = [start for start in starts if start > answers[-1].at] or starts[:1]
    counts: dict[datetime, Counter[str]] = {start: Counter() for start in starts}
    for answer in answers:
        for start in [start for start in starts if start <= answer.at][:1]:
            for cause in answer.body["causes"]:
                counts[start][cause["verdict"]] += len(cause.get("checks") or ())
    weeks = [(start, count.total(), count) for start, count in counts.items()]
    return weeks if any(total for _, total, _ in weeks) else []


def _describe_trend(answers: Sequence[ResultDocument], now: datetime) -> list[str]:
    """Whether fewer checks of pull requests fail than before, and which tests were flaky; [] where nothing tells."""
    counts, flaky = [0, 0], Counter[str]()
    for answer in answers:
        age = max(0, (now - answer.at) // _TREND_PERIOD)
        for cause in answer.body["causes"] if age < 2 else ():
            counts[age] += len(cause.get("checks") or ())
            if age == 0 and cause["verdict"] == "flaky":
                runs = (run for run in cause.get("runs") or () if run.get("where") == "head")
                flaky.update({test for run in runs for test in run.get("tests") or () if test})
    lines = []
    oldest = min((answer.at for answer in answers), default=now)
    # an answer before both periods shows that both were watched throughout, and are not cut off
    if now - oldest > 2 * _TREND_PERIOD:
        new, old = (f"{count / (_TREND_PERIOD / timedelta(weeks=1)):.1f}" for count in counts)
        word = "As before"
        if counts[0] != counts[1]:
            word = "Better than before" if counts[0] < counts[1] else "Worse than before"
        lines.append(
            f"{word}: {new} red checks a week in the last 4 weeks, {old} in the 4 weeks before."
        )
    elif len(answers) >= _MAX_ROWS:
        lines.append(f"Only the latest {len(answers)} answers count here, since {oldest.date()}.")
    if flaky:
        named = ", ".join(
            f"`{test[:200]}` ({count_noun(n, 'time')})" for test, n in flaky.most_common(5)
        )
        more = f" and {len(flaky) - 5} more" if len(flaky) > 5 else ""
        lines.append(f"Flaky in the last 4 weeks: {named}{more}.")
    return lines


def _summarize_causes(answers: Sequence[ResultDocument], now: datetime) -> str:
    """Whose this month's failed checks were, and how long their answers took; "" without any."""
    month = [d.body for d in answers if (d.at.year, d.at.month) == (now.year, now.month)]
    red = [body for body in month if any(cause.get("checks") for cause in body["causes"])]
    if not red:
        return ""
    causes = [cause for body in red for cause in body["causes"]]
    counts = Counter(name_cause(one) for one in causes for _ in one.get("checks") or ())
    whose = ", ".join(f"{word} ({count})" for word, count in counts.most_common())
    seconds = median(float(body.get("waited") or body["seconds"]) for body in red)
    return f"caused this month by {whose}; median time to the answer {format_seconds(seconds)}."


def show_overview(shelf: DashboardStore, reader: Viewer, now: datetime, web_url: str) -> Response:
    """What needs a person, what happened lately, every repository on one line, and what runs now."""
    repositories = _list_repositories(shelf, reader, now, web_url)
    sandbox = shelf.find(ServiceState, name="sandbox")
    tasks = _list_tasks(shelf, reader, now)
    urgent = {task.repo for task in tasks}
    repositories.sort(key=lambda line: line.month.repo not in urgent)
    live = ListQuery(repos=reader.repos, hidden=MAINTENANCE_KINDS, limit=20)
    return render_page(
        "overview.html",
        "Overview",
        reader,
        tasks=tasks,
        activity=_list_activity(shelf, reader),
        repositories=repositories,
        total=sum(line.month.usd for line in repositories) if repositories else None,
        running=shelf.list_jobs(replace(live, state="running")).rows,
        waiting=shelf.list_jobs(replace(live, state="waiting")).rows,
        sandbox_problem=sandbox.value if sandbox else None,
        causes=_summarize_causes(_load_answers(shelf, reader), now),
    )


def show_repository(
    shelf: DashboardStore, reader: Viewer, repo: str, now: datetime, web_url: str
) -> Response | None:
    """A repository's page: its health, what needs a person, what happened, what it cost; None where there is none."""
    lines = [x for x in _list_repositories(shelf, reader, now, web_url) if x.month.repo == repo]
    activity = _list_activity(shelf, reader, repo) if reader.may_see(repo) else []
    if not lines and not activity:
        return None
    tasks, answers = _list_tasks(shelf, reader, now, repo), _load_answers(shelf, reader, repo)
    return render_page(
        "repository.html",
        repo,
        reader,
        schedules=_list_schedules(shelf, repo, now),
        line=lines[0] if lines else _RepositoryLine(RepositoryMonth(repo), BudgetConfig(), [], []),
        tasks=tasks,
        activity=activity,
        causes=_summarize_causes(answers, now),
        red_weeks=_count_red_checks(answers, now),
        trend=_describe_trend(answers, now),
        coverage=_list_coverage(shelf, repo) if reader.may_see(repo) else [],
    )


def _list_schedules(
    shelf: DashboardStore, repo: str, now: datetime
) -> list[tuple[Schedule, ScheduleState | None, datetime | None, datetime | None]]:
    """The repository's schedules that run, how each stands if it has run, and when each ran last and runs next."""
    known = shelf.find(RepositorySchedules, repo=repo)
    states = {s.schedule: s for s in shelf.find_all(ScheduleState, repo=repo)}
    listed = read_schedules(known) if known else ()
    ticks = shelf.list_jobs(ListQuery(repo=repo, kind="tick", limit=_MAX_ROWS)).rows[::-1]
    last = {json.loads(job.event).get("schedule"): job.started for job in ticks if job.started}
    return [
        (one, states.get(one.name), last.get(one.name), find_next_cron_time(one.cron, now))
        for one in listed
    ]


def _describe_regression(state: ScheduleState, web_url: str) -> _Regression:
    is_linked = web_url and state.issue is not None
    address = f"{web_url}/{quote(state.repo)}/issues/{state.issue}" if is_linked else ""
    where = f"#{state.issue}" if state.issue is not None else state.red[:12]
    return _Regression(f"{state.schedule}: {where}", address)


def _parse_config(text: str | None) -> RepoConfig:
    """The configuration last read from a repository, the default where it has none."""
    try:
        return parse_repo_config(text) if text else RepoConfig()
    except (ConfigError, UserError):  # an older version took it
        return RepoConfig()


_Z_SCORE = 1.645  # the middle 90 % of a normal distribution


@dataclass(frozen=True, slots=True)
class _PlottedBin:
    """Findings of about the same confidence; the true share lies from `least` to `most` nine times in ten."""

    low: float
    high: float
    count: int
    right: int
    mean: float
    share: float
    least: float
    most: float
    radius: float


def show_calibration(shelf: DashboardStore, reader: Viewer) -> Response:
    """What people made of the posted findings, against the confidence that these had."""
    repo = request.args.get("repo", "").strip()
    visible = [o for o in OutcomeStore(shelf).list_outcomes() if reader.may_see(o.repo)]
    outcomes = [o for o in visible if not repo or o.repo == repo]
    return render_page(
        "calibration.html",
        "Calibration",
        reader,
        repos=sorted({o.repo for o in visible}),
        bins=[_plot_bin(bin_) for bin_ in calibration_bins(outcomes)],
        rules=_list_rules(outcomes, shelf),
    )


def _list_rules(
    outcomes: list[FindingOutcome], shelf: DashboardStore
) -> list[tuple[str, RuleStats]]:
    """Acceptance by repository and rule, with the confidence that each needs by now: as `/stats` says it there."""
    configs = {known.repo: known.text for known in shelf.find_all(LastValidConfig)}
    rules = []
    for repo in sorted({o.repo for o in outcomes}):
        default = _parse_config(configs.get(repo)).review.min_confidence
        _, needed = OutcomeStore(shelf).learned_thresholds(repo, default)
        rules += [(repo, rule) for rule in rule_statistics(outcomes, needed, repo, default)]
    return rules


def _plot_bin(bin_: CalibrationBin) -> _PlottedBin:
    """Where a bin stands in the plot, with Wilson's interval for its share."""
    n, share = bin_.count, bin_.right / bin_.count
    scale = 1 + _Z_SCORE**2 / n
    middle = (share + _Z_SCORE**2 / (2 * n)) / scale
    half = _Z_SCORE / scale * sqrt(share * (1 - share) / n + _Z_SCORE**2 / (4 * n**2))
    return _PlottedBin(
        low=bin_.low,
        high=bin_.high,
        count=n,
        right=bin_.right,
        mean=bin_.mean,
        share=share,
        least=max(0.0, middle - half),
        most=min(1.0, middle + half),
        radius=min(9.0, 3 + sqrt(n) / 2),
    )


_HINT, _RESULTS_HINT = "in the newest 5,000", "in the newest 2,000"
_QUERY_FIELDS = ("repo", "number", "kind", "state", "q", "after")
_TEXT: tuple[str, ...] = ()  # a filter without options


@dataclass(frozen=True, slots=True)
class RecordList:
    """One list: its template, the fields of its filter form with their options, and who reads its rows."""

    title: str
    template: str
    fields: Mapping[str, tuple[str, ...]]
    read: Callable[[DashboardStore, ListQuery], Page[Any]]
    hint: str = _HINT
    empty: str = "Nothing yet."

    def show(self, shelf: DashboardStore, reader: Viewer) -> Response:
        """The page, within what the reader may see."""
        page = self.read(shelf, _query_from_address(reader))
        unknown = sorted(set(request.args) - {*self.fields, "after"})
        is_narrowed = any(request.args.values())
        empty = "No entry matches these filters." if is_narrowed else self.empty
        if unknown:
            empty = f"Unknown filter {', '.join(unknown)[:80]}; known: {', '.join(self.fields)}."
            page = Page([])
        return render_page(self.template, self.title, reader, list=self, page=page, empty=empty)


_EMPTY_LISTS = {
    "review": "No review yet. Open a pull request in an installed repository, or comment /review on one.",
    "fix": "No repair yet. One starts when CI fails on a pull request, or with the comment /fix.",
    "bisect": "No bisection yet. Comment /bisect on an issue, or set bisect.schedules in .github/regreen.yml.",
    "why": "No failed check was answered yet. The first that fails on a pull request is, or comment /why on one.",
    "prove": "No tests were judged yet. Those of the next pull request that changes tests are, or comment /prove on one.",
}


def _list_results(title: str, kind: str) -> RecordList:
    def read(shelf: DashboardStore, query: ListQuery) -> Page[Any]:
        page = shelf.list_documents(replace(query, kind=kind))
        return Page([summarize_result(document) for document in page.rows], page.after)

    fields = {"q": _TEXT, "repo": _TEXT, "number": _TEXT}
    return RecordList(title, "results.html", fields, read, _RESULTS_HINT, _EMPTY_LISTS[kind])


_SUBJECT_FIELDS = {"q": _TEXT, "repo": _TEXT, "number": _TEXT, "kind": _TEXT}
RECORD_LISTS = {
    "/jobs": RecordList(
        "Jobs",
        "jobs.html",
        {**_SUBJECT_FIELDS, "kind": get_args(JobKind), "state": get_args(JobState)},
        lambda shelf, query: shelf.list_jobs(replace(query, hidden=MAINTENANCE_KINDS)),
        empty="No job yet. One starts with the next pull request, failing check or command.",
    ),
    "/reviews": _list_results("Reviews", "review"),
    "/fixes": _list_results("Fixes", "fix"),
    "/bisections": _list_results("Bisections", "bisect"),
    "/causes": _list_results("Red checks", "why"),
    "/proofs": _list_results("Proofs", "prove"),
    "/deliveries": RecordList(
        "Deliveries",
        "deliveries.html",
        {"q": _TEXT, "repo": _TEXT, "kind": _TEXT},
        lambda shelf, query: shelf.list_deliveries(query),
    ),
    "/ledger": RecordList(
        "Cost",
        "ledger.html",
        _SUBJECT_FIELDS,
        lambda shelf, query: shelf.list_ledger(query),
        empty="No call to a model is recorded, so nothing was paid.",
    ),
    "/audit": RecordList(
        "Audit", "audit.html", _SUBJECT_FIELDS, lambda shelf, query: shelf.list_actions(query)
    ),
}


def _query_from_address(reader: Viewer) -> ListQuery:
    """What the address asks for, within what the reader may see."""
    asked = {key: request.args.get(key, "").strip()[:200] for key in _QUERY_FIELDS}
    number = asked["number"].lstrip("#")
    return ListQuery(
        repos=reader.repos,
        repo=asked["repo"],
        number=int(number) if number.isdecimal() and len(number) < 10 else None,
        kind=asked["kind"],
        state=asked["state"],
        words=asked["q"],
        after=asked["after"],
    )


def show_job(shelf: DashboardStore, reader: Viewer, job_id: str, web_url: str) -> Response | None:
    """A job's page or, where it is forgotten, that of its results; None where there is neither."""
    job = shelf.job(job_id)
    documents = [d for d in shelf.results_of(job_id) if reader.may_see(d.repo)]
    results = [view_result(document) for document in documents]
    calls = shelf.list_ledger(ListQuery(job=job_id, limit=_MAX_MODEL_CALLS)).rows
    if job is None:
        if not documents:
            return None
        title = format_subject(documents[0].repo, documents[0].number)
        dismissed = _list_dismissed(shelf, documents)
        return render_page(
            "job.html",
            title,
            reader,
            results=results,
            dismissed=dismissed,
            approvals=_list_approvals(shelf, documents),
            calls=calls,
            sent=_list_sent(calls),
        )
    if not reader.may_see(job.repo):
        return None
    return render_page(
        "job.html",
        f"{name_job(job)} {format_subject(job.repo, job.number)}",
        reader,
        job=job,
        order=format_json(job.event),
        is_live=job.state not in ENDED_STATES,
        steps=shelf.list_job_progress(job_id),
        links=_list_github_links(job, documents, web_url),
        results=results,
        dismissed=_list_dismissed(shelf, documents),
        approvals=_list_approvals(shelf, documents),
        withheld=sorted(shelf.find_all(WithheldWrite, job=job_id), key=lambda one: one.at),
        calls=calls,
        sent=_list_sent(calls),
        actions=shelf.list_actions(ListQuery(job=job_id)).rows,
    )


def _list_sent(calls: Sequence[LedgerLine]) -> dict[SentPart, list[str]]:
    """What the calls held, each part once, with the purposes that it was sent for."""
    parts: dict[SentPart, list[str]] = {}
    for line in reversed(calls):
        for part in line.sent:
            purposes = parts.setdefault(part, [])
            purposes += [line.purpose] if line.purpose not in purposes else []
    return parts


def _list_dismissed(shelf: DashboardStore, documents: list[ResultDocument]) -> dict[str, Dismissal]:
    """What somebody dismissed of the findings in these results, by fingerprint."""
    return {
        dismissal.fingerprint: dismissal
        for d in documents
        if d.kind == "review" and d.number is not None
        for dismissal in shelf.find_all(Dismissal, repo=d.repo, number=d.number)
    }


def _list_approvals(shelf: DashboardStore, documents: list[ResultDocument]) -> dict[str, OpenTask]:
    """The patches of these repairs that wait for an approval, and where it is given."""
    return {
        pending.patch: describe_patch(pending)
        for d in documents
        if d.kind == "fix"
        for pending in shelf.find_all(PendingPatch, repo=d.repo)
    }


def _list_github_links(
    job: JobRecord, documents: list[ResultDocument], web_url: str
) -> list[tuple[str, str]]:
    """Address and words of the ways to GitHub: the pull request or issue, the commit that was found."""
    if not web_url or not job.repo:
        return []
    base = f"{web_url}/{quote(job.repo)}"
    links = [(base, job.repo)]
    if job.number is not None:
        # GitHub sends an issue's address on to the pull request where it is one
        links.append((f"{base}/issues/{job.number}", f"#{job.number}"))
    for document in documents:
        if isinstance(opened := document.body.get("opened"), int):
            links.append((f"{base}/issues/{opened}", f"opened #{opened}"))
        culprit = document.body.get("culprit") or {}
        sha = str(culprit.get("sha") or document.body.get("head") or "")
        if sha.isalnum():
            links.append((f"{base}/commit/{sha}", sha[:12]))
    return list(dict.fromkeys(links))


OrderWork = Callable[[tuple[Order, ...]], None]


@dataclass(frozen=True)
class _PageActions:
    """What cancelling and repeating need: the store, the time, and where work is ordered."""

    shelf: DashboardStore
    clock: Clock
    order: OrderWork

    def log_action(self, action: str, job: str, repo: str, detail: str) -> None:
        """Write into the audit log what a reader did."""
        reader: Viewer = g.reader
        entry = f"{detail} from the dashboard"
        self.shelf.log(AuditEntry(self.clock.now(), job, repo, None, reader.name, action, entry))

    def repeat_event(self, event: str, what: str, repo: str) -> AnyResponse:
        """Order once more what an event leads to; the browser goes to the job that does it."""
        reader: Viewer = g.reader
        try:
            placed = make_orders(deserialize_work(event), f"replay/{time.time_ns()}")
        except UserError as error:
            return render_message("Not repeated", str(error), reader, status=409)
        if not placed:
            message = "This event asks for nothing, so there is nothing to repeat."
            return render_message(
                "Nothing to do", message, reader, link=("/deliveries", "Deliveries")
            )
        self.order(placed)
        self.log_action("replayed", placed[0].id, repo, what)
        return redirect(f"/jobs/{quote(placed[0].id)}", 303)


def make_dashboard(
    shelf: DashboardStore,
    settings: Settings,
    clock: Clock,
    *,
    order: OrderWork,
    sign_in: SignIn | None = None,
    web_url: str = "",
) -> Blueprint:
    """The pages, each for those who may see it.

    Args:
        shelf: what is shown.
        settings: the operator's: the token that opens everything, and our own address.
        clock: the time.
        order: takes the work that somebody wants repeated.
        sign_in: how people sign in with GitHub; None: the token, or this machine.
        web_url: where people see GitHub.
    """
    pages = Blueprint("dashboard", __name__)
    token = settings.dashboard_auth.get_secret_value() if settings.dashboard_auth else None
    Authenticator(shelf, clock, token, sign_in, settings.public_url or "").protect_pages(pages)

    def add(path: str, title: str, show: Callable[[Viewer], Response]) -> None:
        pages.add_url_rule(path, title, lambda: show(g.reader))

    add("/", "Overview", lambda reader: show_overview(shelf, reader, clock.now(), web_url))
    add("/calibration", "Calibration", lambda reader: show_calibration(shelf, reader))
    pages.before_request(lambda: g.__setattr__("web_url", web_url))
    pages.before_request(lambda: g.__setattr__("observes", partial(was_observed, shelf, settings)))

    @pages.get("/repositories/<owner>/<name>")
    def repository(owner: str, name: str) -> Response:
        page = show_repository(shelf, g.reader, f"{owner}/{name}", clock.now(), web_url)
        if page is None:
            abort(404)
        return page

    @pages.get(f"{CAPSULES_PATH}<digest>.json")
    def capsule(digest: str) -> AnyResponse:
        kept = shelf.find_all(StoredCapsule, digest=digest)
        found = next((one for one in kept if one.public or g.reader.may_see(one.repo)), None)
        if found is None:
            abort(404)
        return AnyResponse(found.text, mimetype="application/json")

    for path, records in RECORD_LISTS.items():
        add(path, records.title, partial(records.show, shelf))
    actions = _PageActions(shelf, clock, order)
    _add_job_routes(pages, actions, web_url)
    _add_delivery_routes(pages, actions)
    pages.app_errorhandler(404)(_show_not_found)
    return pages


def _add_job_routes(pages: Blueprint, actions: _PageActions, web_url: str) -> None:
    shelf = actions.shelf

    # ids hold slashes; the two acts are told apart by their ending, not by another level of the address
    @pages.get("/jobs/<path:job_id>")
    def job(job_id: str) -> Response:
        page = show_job(shelf, g.reader, job_id, web_url)
        if page is None:
            abort(404)
        return page

    @pages.post("/jobs/<path:job_id>/cancel")
    def cancel(job_id: str) -> AnyResponse:
        found = shelf.job(job_id)
        _require_may_act(found.repo if found else None, is_there=found is not None)
        if shelf.cancel_jobs([job_id], f"cancelled by {g.reader.name} from the dashboard"):
            actions.log_action("cancelled", job_id, found.repo if found else "", job_id)
        return redirect(f"/jobs/{quote(job_id)}", 303)

    @pages.post("/jobs/<path:job_id>/again")
    def again(job_id: str) -> AnyResponse:
        found = shelf.job(job_id)
        _require_may_act(found.repo if found else None, is_there=found is not None)
        assert found is not None  # noqa: S101 - `_require_may_act` has looked
        return actions.repeat_event(found.event, f"job {job_id}", found.repo)


def _add_delivery_routes(pages: Blueprint, actions: _PageActions) -> None:
    shelf = actions.shelf

    @pages.get("/deliveries/<path:delivery_id>")
    def delivery(delivery_id: str) -> Response:
        reader: Viewer = g.reader
        found = shelf.delivery(delivery_id)
        if found is None or not reader.may_see(found.repo):
            abort(404)
        title, event = f"Delivery {delivery_id}", format_json(found.event)
        return render_page("delivery.html", title, reader, delivery=found, event=event)

    @pages.post("/deliveries/<path:delivery_id>/replay")
    def replay(delivery_id: str) -> AnyResponse:
        found = shelf.delivery(delivery_id)
        _require_may_act(found.repo if found else None, is_there=found is not None)
        assert found is not None  # noqa: S101 - `_require_may_act` has looked
        return actions.repeat_event(found.event, f"delivery {delivery_id}", found.repo or "")


def _require_may_act(repo: str | None, *, is_there: bool) -> None:
    """Go on only where the reader may act; what they may not see is not there for them."""
    reader: Viewer = g.reader
    if not is_there or not reader.may_see(repo):
        abort(404)
    if not reader.may_act(repo):
        abort(403)


def _show_not_found(_error: object) -> Response:
    message = f"Page not found, or you do not have access: {request.path}"
    return render_message("Not found", message, g.get("reader"), status=404, link=("/", "Overview"))
