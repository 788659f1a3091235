"""The dashboard shows what the store holds, escaped, to those who may look."""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient
from pydantic import SecretStr
from werkzeug.serving import make_server

from regreen.adapters.clock import SystemClock
from regreen.adapters.store.connection import engine_for
from regreen.adapters.store.database import Database
from regreen.bot.feedback import OutcomeStore
from regreen.bot.jobs.event_jobs import make_orders
from regreen.bot.jobs.serialization import serialize_work
from regreen.bot.open_tasks import list_open_tasks
from regreen.cli.why import download_capsule
from regreen.dashboard.pages import make_dashboard
from regreen.domain.errors import UserError
from regreen.domain.events import (
    Actor,
    CheckFailed,
    CheckPassed,
    FixRequest,
    RepositoryRef,
    Tick,
    Work,
)
from regreen.domain.github import Permission, SignedInUser
from regreen.domain.models import Cost, SentPart
from regreen.domain.records import (
    AuditEntry,
    DeliveryRecord,
    JobOutcome,
    JobState,
    LedgerLine,
    Order,
    ResultDocument,
)
from regreen.domain.settings import Settings
from regreen.domain.state_records import (
    Approval,
    DashboardSession,
    Dismissal,
    FindingOutcome,
    LastValidConfig,
    OpenRepair,
    OutcomeKind,
    PendingPatch,
    RepositorySchedules,
    ScheduleState,
    StoredCapsule,
)
from regreen.secrets.redaction import redact_secrets
from tests.jobs import accept, claim

_NOW = datetime.now(UTC)
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
_LISTS = [
    "/jobs",
    "/reviews",
    "/fixes",
    "/bisections",
    "/causes",
    "/proofs",
    "/deliveries",
    "/ledger",
    "/audit",
]
_PAGES = ["/", *_LISTS, "/calibration"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    database = Database(engine_for(f"sqlite:///{tmp_path / 'x.sqlite'}"), SystemClock())
    database.create_or_upgrade_tables()
    yield database
    database.engine.dispose()


class _Hub:
    """GitHub's sign-in: everybody is who their code says."""

    def __init__(self, people: Mapping[str, Mapping[str, Permission]]) -> None:
        self.people = people

    def address(self, callback: str, state: str) -> str:
        return f"https://hub.example/authorize?redirect_uri={callback}&state={state}"

    def person(self, code: str, callback: str) -> SignedInUser:
        assert callback == "http://localhost/signed-in"
        return SignedInUser(code, self.people[code])


def _app(
    store: Database,
    auth: str | None = None,
    hub: _Hub | None = None,
    public_url: str = "http://localhost",
) -> Flask:
    app = Flask("test")
    secret = SecretStr(auth) if auth else None
    settings = Settings(_env_file=None, dashboard_auth=secret, public_url=public_url)

    def order(orders: tuple[Order, ...]) -> None:
        store.store_orders(orders)

    app.register_blueprint(
        make_dashboard(
            store, settings, SystemClock(), order=order, sign_in=hub, web_url="https://hub.example"
        )
    )
    return app


def _operator(store: Database) -> FlaskClient:
    """A browser whose person has given the operator's token."""
    client = _app(store, "opensesame").test_client()
    client.environ_base["HTTP_AUTHORIZATION"] = "Bearer opensesame"
    return client


def _order(repo: str = "o/r", name: str = "1", kind: str = "fix") -> Order:
    ask = FixRequest(RepositoryRef(repo, 1, 1, "main"), 1, on_pull=True, hint="", asked_by="ann")
    return Order(f"{kind}/{repo}/1/{name}", "fix", repo, 1, 1, "work", repo, 1, serialize_work(ask))


def fill_with_hostile_words(store: Database, repo: str = HOSTILE, words: str = HOSTILE) -> str:
    """A job with a result of each kind, in which every text is hostile; the job's id."""
    evil = FixRequest(
        RepositoryRef(words, 1, 1, "main"), 1, on_pull=True, hint=words, asked_by=words
    )
    order = _order(repo, words)
    accept(store, DeliveryRecord(words, words, repo, serialize_work(evil), _NOW), [order])
    store.note_progress(order.id, words)
    store.log(AuditEntry(_NOW, order.id, repo, 1, words, words, words))
    sent = (SentPart(words, words, words),)
    store.charge(LedgerLine(_NOW, order.id, repo, 1, words, words, Cost(0.5, 1, 2, 3, 4), sent))
    finding = dict.fromkeys(("title", "body", "path", "rule", "severity", "suggestion"), words)
    seen = {"kind": words, "command": words, "excerpt": words, "head": words}
    body: dict[str, object] = {
        "summary": words, "outcome": words, "patch": f"+{words}", "svg": f"<svg>{words}</svg>", "cause": words,
        "attempts": [{"rung": words, "summary": words, "patch": words, "detail": words, "trail": [words]}],
        "gate": {"verdict": words, "reasons": [{"check": words, "detail": words}]}, "risk": words,
        "before": {"command": words, "failures": [{"test": words, "path": words}]}, "hints": [words],
        "findings": [{**finding, "evidence": [seen]}], "withheld": [{**finding, "reason": words}],
        "not_reviewed": [{"path": words, "reason": words}], "scores": {words: 1}, "head": words,
        "culprit": {"sha": words, "subject": words}, "notes": [words], "probability": 0.99,
        "posterior": [{"sha": words, "p": 0.9}, {"sha": "b", "p": 0.1}], "range": {"merges": 0, "bad": words},
        "observations": [{"sha": words, "outcome": "fail", "reason": words}],
        "later_runs": [{"sha": words, "outcome": "pass", "reason": words, "part": "revert"}], "runs_made": words,
        "walkthrough": [{"path": words, "text": words, "added": 2, "removed": 1}],
        "coverage": {"new_lines": 3, "covered": 2, "uncovered": [{"path": words, "lines": [1]}]},
        "narrowing": [{"sha": words, "outcome": words, "best": words, "probability": 0.9, "left": 2, "columns": [0.9, 0.1]}],
    }  # fmt: skip
    run = {"where": words, "outcome": words, "signature": words}
    cause = {"verdict": words, "reason": words, "checks": [words], "action": words, "repeat": words, "runs": [run]}  # fmt: skip
    test = dict.fromkeys(("test", "base", "head", "verdict", "reason"), words)
    body |= {"causes": [cause], "seconds": 90.0, "verdict": words, "reason": words}
    for kind in ("review", "fix", "bisect", "why"):
        store.save_document(ResultDocument(kind, repo, 1, "s", order.id, _NOW, body))
    fault = {"path": words, "line": 3, "change": words, "killed_by": None}
    proof = body | {"tests": [test], "mutants": [fault, fault | {"killed_by": words}]}
    store.save_document(ResultDocument("prove", repo, 1, "s", order.id, _NOW, proof))
    store.save(ScheduleState(repo, "nightly", red="1", issue=7, issues=(7,)))
    OutcomeStore(store).record_outcome(
        FindingOutcome(repo, 1, "f", words, 0.9, "up", _NOW.isoformat())
    )
    return order.id


def _token(page: str) -> str:
    found = re.search(r'name="form_token" value="(\w+)"', page)
    assert found is not None
    return found[1]


def _signed_in(app: Flask, who: str) -> FlaskClient:
    client = app.test_client()
    going = client.get("/sign-in?to=/audit")
    state = going.headers["Location"].rpartition("state=")[2]
    back = client.get(f"/signed-in?code={who}&state={state}")
    assert (back.status_code, back.headers["Location"]) == (303, "/audit")
    return client


@pytest.mark.parametrize(
    "page", [*_PAGES, f"/jobs/fix/{HOSTILE}/1/{HOSTILE}", f"/deliveries/{HOSTILE}"]
)
def test_nothing_from_outside_becomes_markup(store: Database, page: str) -> None:
    fill_with_hostile_words(store)
    answer = _operator(store).get(page)
    assert answer.status_code == 200
    assert "<script>alert" not in answer.text
    assert "<img src=x" not in answer.text
    assert answer.text.count("<script") == 1
    links = re.findall(r'(?:href|action)="([^"]*)"', answer.text)
    assert all(
        re.match(r"/(?!/)|https://hub\.example/|#(?:content|unread)$", link) for link in links
    )
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy


def test_a_job_shows_everything_behind_its_results(store: Database) -> None:
    fill_with_hostile_words(store, "o/r")
    shown = _operator(store).get(f"/jobs/fix/o/r/1/{HOSTILE}").text
    for part in ("Withheld", "Evidence: ", "Strategies tried", "Each step (1)", "Patch safety checks", "Search progress", "Test runs", "What it touches", "Sent to a model", "Audit", "Job input", "Step by step"):  # fmt: skip
        assert part in shown
    assert "https://hub.example/o/r/issues/1" in shown
    assert 'href="https://hub.example/o/r/commit/' not in shown  # that was no commit


def test_a_repairs_page_says_whose_commit_broke_it_and_how_sure_that_is(store: Database) -> None:
    job = _order()
    store.store_orders([job])
    culprit = {"sha": "c" * 40, "subject": "Count income", "author": "Emi", "probability": 0.991}
    body = {"outcome": "fixed", "culprit": culprit}
    store.save_document(ResultDocument("fix", "o/r", 1, "s", job.id, _NOW, body))
    shown = _operator(store).get(f"/jobs/{job.id}").text
    assert "</a> Count income by Emi, 99.1%</dd>" in shown


def test_a_reviews_page_names_an_exception_once_and_a_score_shows_code(store: Database) -> None:
    job = replace(_order(), id="review/o/r/1/1", kind="review")
    store.store_orders([job])
    failure = {"test": "t", "kind": "AssertionError", "message": "AssertionError: 5 != 6"}
    tests = {"command": "pytest", "exit_code": 1, "failures": [failure]}
    notes = {"coverage": "1 of 2 lines run by `pytest -q`"}
    body = {"tests": tests, "scores": {"coverage": 50}, "score_notes": notes}
    store.save_document(ResultDocument("review", "o/r", 1, "s", job.id, _NOW, body))
    shown = _operator(store).get(f"/jobs/{job.id}").text
    assert "</code> AssertionError: 5 != 6</li>" in shown
    assert "run by <code>pytest -q</code>" in shown


def test_each_attempt_shows_what_was_run_what_came_out_and_what_the_gate_said(
    store: Database,
) -> None:
    job = _order()
    store.store_orders([job])
    failure = {"test": "test_sum", "kind": "AssertionError", "message": "5 != 6"}
    reasons = [{"check": "tests_weakened", "detail": "an assertion is gone", "level": "deny"}]
    body: dict[str, object] = {
        "outcome": "gave_up", "before": {"command": "pytest -q", "failures": []},
        "attempts": [
            {"rung": "revert", "summary": "took `c0ffee` back", "outcome": "still_red", "after": {"exit_code": 1, "reruns": 1, "failures": [failure]}},
            {"rung": "model", "summary": "skip it", "outcome": "denied", "gate": {"verdict": "deny", "reasons": reasons}},
        ],
    }  # fmt: skip
    store.save_document(ResultDocument("fix", "o/r", 1, "s", job.id, _NOW, body))
    shown = _operator(store).get(f"/jobs/{job.id}").text
    first, second = re.findall(r"<article.*?</article>", shown, re.DOTALL)
    for part in ("<code>c0ffee</code>", "<code>pytest -q</code>, exit 1 in 1 fresh run<", "test_sum", "5 != 6"):  # fmt: skip
        assert part in first
        assert part not in second
    assert "an assertion is gone" in second


def test_what_a_finding_quotes_is_shown_without_its_credentials(store: Database) -> None:
    job, token = _order(), "ghp_" + "a1B2" * 9
    store.store_orders([job])
    seen = {"kind": "test", "command": f"curl {token}", "excerpt": token, "head": token}
    finding = {"title": "`x` is `y`", "body": token, "suggestion": token, "evidence": [seen]}
    store.save_document(
        ResultDocument("review", "o/r", 1, "s", job.id, _NOW, {"findings": [finding]})
    )
    shown = _operator(store).get(f"/jobs/{job.id}").text
    assert token not in shown
    assert "<code>x</code> is <code>y</code>" in shown


@pytest.mark.parametrize(
    ("date", "shown"),
    [
        ("2026-11-22T01:09:52+05:00", ">2026-11-21 20:09:52 UTC</time>"),
        (f"{HOSTILE}", "&lt;script&gt;alert(1)"),
    ],
)
def test_the_author_s_time_is_one_that_the_reader_s_zone_can_be_put_on(
    date: str, shown: str, store: Database
) -> None:
    job = _order()
    store.store_orders([job])
    culprit = {"sha": "c0ffee", "subject": "x", "author": "ann", "date": date}
    store.save_document(ResultDocument("bisect", "o/r", 1, "s", job.id, _NOW, {"culprit": culprit}))
    page = _operator(store).get(f"/jobs/{job.id}").text
    assert shown in page
    assert "<dt>author</dt><dd>ann</dd>\n<dt>written</dt>" in page


def test_what_a_person_reads_first_is_one_line(store: Database) -> None:
    job = _order()
    store.store_orders([job])
    failure = {"test": "test_sum", "message": "5 != 6\n- 5\n+ 6"}
    fix = {"before": {"command": "pytest", "failures": [failure]}}
    store.save_document(ResultDocument("fix", "o/r", 1, "s", job.id, _NOW, fix))
    assert '<td data-label="message">5 != 6</td>' in _operator(store).get(f"/jobs/{job.id}").text
    ran = {"command": "pytest -k odd", "notes": ["it passed at the bad end"], "range": {"bad": "b"}}
    store.save_document(ResultDocument("bisect", "o/r", 1, "s", job.id, _NOW, ran))
    shown = _operator(store).get("/bisections").text
    assert shown.count("pytest -k odd") == 1
    assert "it passed at the bad end" in shown
    ran["headline"] = "not reproduced: the command did not fail"
    store.save_document(ResultDocument("bisect", "o/r", 1, "s", job.id, _NOW, ran))
    assert "not reproduced: the command did not fail" in _operator(store).get("/bisections").text


def test_the_page_of_an_answer_says_what_to_do(store: Database) -> None:
    job = _order(name="w")
    store.store_orders([job])
    cause = {"verdict": "change", "do": "fix", "checks": ["test"], "runs": [], "action": ""}
    body = {"causes": [cause], "base": "main", "seconds": 9.0}
    store.save_document(ResultDocument("why", "o/r", 5, "s", job.id, _NOW, body))
    shown = _operator(store).get(f"/jobs/{job.id}").text
    assert "Repair it on this branch, or comment <code>/fix</code>." in shown


def test_results_outlive_the_job_that_found_them(store: Database) -> None:
    job = fill_with_hostile_words(store, "o/r")
    store.end(job, "done", "fixed")
    store.prune(_NOW + timedelta(days=1))
    assert store.job(job) is None
    shown = _operator(store).get(f"/jobs/{job}")
    assert shown.status_code == 200
    assert "Strategies tried" in shown.text


def test_a_job_without_a_recorded_call_claims_no_more_than_that(store: Database) -> None:
    # an answer may have been remembered, and a request without an answer is not recorded
    store.save_document(ResultDocument("review", "o/r", 1, "1@a", "j", _NOW, {}))
    part = _operator(store).get("/jobs/j").text.partition('<h2 id="sent">')[2]
    assert '<p class="none">No call to a model is recorded for this job.</p>' in part


def test_a_line_hidden_in_each_of_two_calls_counts_once(store: Database) -> None:
    store.save_document(ResultDocument("review", "o/r", 1, "1@a", "j", _NOW, {}))
    for masked in (2, 3):
        cost = Cost(0.5, 1, 2, 3, 4)
        store.charge(LedgerLine(_NOW, "j", "o/r", 1, "review", "m", cost, masked=masked))
    part = _operator(store).get("/jobs/j").text.partition('<h2 id="sent">')[2]
    assert "credentials hidden in up to 3 lines of a call." in part


def test_empty_pages_and_unknown_jobs(store: Database) -> None:
    client = _operator(store)
    assert all('<p class="none">No' in client.get(page).text for page in _LISTS)
    assert "Unknown filter words" in client.get("/jobs?words=x").text
    lost = client.get("/no-such-page")
    assert (lost.status_code, "Page not found" in lost.text) == (404, True)
    assert "No repository yet." in client.get("/").text
    assert client.get("/jobs/none").status_code == 404


def test_the_first_page_sums_up_each_repository(store: Database) -> None:
    fill_with_hostile_words(store, "o/r")
    tick = Order("tick/o/r/-/9", "tick", "o/r", None, 1, "work", "o/r", 1, "{}")
    store.store_orders([tick])
    store.end(tick.id, "done", "#7, found", outcome="red")
    shown = _operator(store).get("/").text
    assert 'href="https://hub.example/o/r/issues/7"' in shown
    assert "$0.50 of $20.00" in shown
    assert ">red<" in shown
    assert "median time to the answer 90 s" in shown
    store.save(LastValidConfig("o/r", "budget: {usd_per_month: 300}"))
    assert "$0.50 of $300.00" in _operator(store).get("/").text


def test_the_first_page_says_what_needs_a_person(store: Database) -> None:
    store.save(ScheduleState("o/r", "nightly", red="f" * 40, issue=7, issues=(7,)))
    culprit = {"sha": "c" * 40, "subject": "Count income", "author": "Emi"}
    body = {"outcome": "found", "culprit": culprit, "probability": 0.997, "opened": 7}
    store.save_document(ResultDocument("bisect", "o/r", None, "s", "tick/o/r/-/1", _NOW, body))
    store.save(OpenRepair("o/r", "quarters", 3))
    fix = {"outcome": "fixed", "title": "Sum up", "author": "emi", "opened": 3}
    store.save_document(ResultDocument("fix", "o/r", 2, "s", "fix/o/r/2/1", _NOW, fix))
    store.save(PendingPatch("o/r", "9", 0.0, "+x", "main", "a" * 40, "Fix it", "", False))
    failed = _order(name="77")
    store.store_orders([failed])
    store.end(failed.id, "failed", "no such revision")
    for shown in (_operator(store).get(page).text for page in ("/", "/repositories/o/r")):
        plain = re.sub("</?code>", "`", shown)
        assert "The schedule `nightly` fails at `ffffffffffff` since `cccccccccccc`" in plain
        assert "Count income” by Emi, 99.7%" in shown
        assert f'href="https://hub.example/o/r/commit/{"c" * 40}"' in shown
        assert "Review the draft that repairs `quarters` “Sum up” by emi" in plain
        assert 'href="https://hub.example/o/r/issues/3"' in shown
        assert "A patch for `main` at `aaaaaaaaaaaa` waits for `/approve`: Fix it" in plain
        assert "failed: no such revision" in shown
        assert ">draft opened<" in shown
        assert ">fixed<" not in shown


def test_a_red_branch_and_the_draft_that_repairs_it_are_one_task(store: Database) -> None:
    store.save(ScheduleState("o/r", "nightly", red="f" * 40, issue=7, issues=(7,)))
    store.save(OpenRepair("o/r", "main", 8))
    culprit = {"sha": "c" * 40, "subject": "Count income", "author": "Emi"}
    found = {"outcome": "found", "culprit": culprit, "opened": 7}
    store.save_document(ResultDocument("bisect", "o/r", None, "s", "tick/1", _NOW, found))
    fix = {"outcome": "fixed", "title": "main", "opened": 8, "culprit": culprit}
    store.save_document(ResultDocument("fix", "o/r", None, "s", "fix/1", _NOW, fix))
    (task,) = list_open_tasks(store, _NOW, lambda _: True)
    assert task.text.endswith("by Emi; review draft #8, which repairs it")
    shown = _operator(store).get("/").text
    assert re.search(r'issues/7"[^>]*>o/r#7</a> → <a href="[^"]*issues/8"', shown)
    store.save_document(ResultDocument("fix", "o/r", None, "s", "fix/1", _NOW, fix | {"culprit": {"sha": "d" * 40}}))  # fmt: skip
    assert len(list_open_tasks(store, _NOW, lambda _: True)) == 2


def test_a_review_that_saw_the_merge_base_fail_needs_a_person(store: Database) -> None:
    body = {"headline": "1 test failing without the change too", "base_branch": "main"}
    review = ResultDocument("review", "o/r", 4, "4@a", "review/o/r/4/1", _NOW, body)
    store.save_document(replace(review, body=body | {"fail_on_base": ["t.py::test_a"]}))
    (task,) = list_open_tasks(store, _NOW, lambda _: True)
    said = (
        "Tests fail at the merge base with `main` too, not only in this pull request: t.py::test_a"
    )
    assert (task.state, task.text, task.number) == ("red", said, 4)
    store.save_document(replace(review, body=body | {"fail_on_base": []}))
    assert list_open_tasks(store, _NOW, lambda _: True) == []


@pytest.mark.parametrize(("conclusion", "mark"), [("success", "proven"), ("neutral", "weak proof")])
def test_a_proof_is_marked_as_whole_only_where_its_check_is_green(
    store: Database, conclusion: str, mark: str
) -> None:
    body = {"verdict": "proven", "headline": "Proven, but", "conclusion": conclusion}
    store.save_document(ResultDocument("prove", "o/r", 4, "s", "prove/o/r/4/1", _NOW, body))
    assert f">{mark}</span>" in _operator(store).get("/proofs").text


def test_each_repository_says_how_much_needs_a_person_and_no_more_than_a_dozen_are_listed(
    store: Database,
) -> None:
    for repo, count in (("o/busy", 13), ("o/some", 1), ("o/none", 0)):
        store.charge(LedgerLine(_NOW, "j", repo, 1, "review", "m", Cost(0.5, 1, 2, 3, 4)))
        for number in range(count):
            store.save(
                PendingPatch(repo, str(number), 0.0, "+x", "main", "a" * 40, "Fix", "", False)
            )
    shown = _operator(store).get("/").text
    assert shown.count("waits for <code>/approve</code>") == 12
    assert "And 2 more; each repository" in shown
    cells = re.findall(
        r'/repositories/o(?:%2F|/)(\w+)">.*?data-label="needs you">(.*?)</td>', shown, re.DOTALL
    )
    assert {name: re.sub("<[^>]+>", "", cell) for name, cell in cells} == {
        "busy": "13",
        "some": "1",
        "none": "no",
    }
    assert [name for name, _ in cells] == ["busy", "some", "none"], "what needs a person is first"


def test_a_patch_for_a_branch_is_approved_at_its_commits_check(store: Database) -> None:
    for at, sha in ((1.0, "a" * 40), (2.0, "b" * 40)):
        store.save(PendingPatch("o/r", f"@{sha}", at, "+x", "main", sha, "Fix it", "", False))
    store.save(LastValidConfig("o/r", ""))
    fix = {"outcome": "needs_human", "patch": "+x"}
    store.save_document(ResultDocument("fix", "o/r", None, "s", "fix/1", _NOW, fix))
    shown = re.sub("</?code>", "`", _operator(store).get("/repositories/o/r").text)
    button = "waits for the button “Approve” of the check `Regreen repair`: Fix it"
    assert f"A patch for `main` at `bbbbbbbbbbbb` {button}" in shown
    assert f"An older patch for `main` at `aaaaaaaaaaaa` {button}" in shown
    assert f'href="https://hub.example/o/r/commit/{"b" * 40}/checks"' in shown
    store.remove(PendingPatch, repo="o/r", place=f"@{'a' * 40}")
    repair = re.sub("</?code>", "`", _operator(store).get("/jobs/fix/1").text)
    assert f"A patch for `main` at `bbbbbbbbbbbb` {button}" in repair
    assert f'href="https://hub.example/o/r/commit/{"b" * 40}/checks"' in repair


def _keep_answer(store: Database, verdict: str, outcome: str, hours: float) -> None:
    """An answer to a failed check of a change for main, which ran the base branch."""
    tests = ["test_sum", "test_tax"] if outcome == "fail" else []
    run = {"where": "base", "outcome": outcome, "tests": tests}
    cause = {"verdict": verdict, "do": "wait", "runs": [run, run]}
    body = {"causes": [cause], "base": "main", "head": "a" * 40, "verdict": verdict, "seconds": 9.0}
    at = datetime.now(UTC) - timedelta(hours=hours)
    store.save_document(ResultDocument("why", "o/r", 5, f"s{hours}", f"why/{hours}", at, body))


def test_without_feedback_the_percentages_are_called_a_prior(store: Database) -> None:
    shown = _operator(store).get("/calibration").text
    assert "No feedback yet, so the percentages of findings are a prior" in shown


def test_a_repository_says_whether_fewer_checks_fail_and_what_was_flaky(store: Database) -> None:
    def answer(days: int, verdict: str, checks: int, tests: list[str]) -> None:
        run = {"where": "head", "outcome": "fail", "tests": tests}
        cause = {"verdict": verdict, "do": "rerun", "runs": [run], "checks": ["c"] * checks}
        body = {"causes": [cause], "base": "main", "verdict": verdict, "seconds": 9.0}
        at = datetime.now(UTC) - timedelta(days=days)
        store.save_document(ResultDocument("why", "o/r", 5, f"s{days}", f"w/{days}", at, body))

    def shown() -> str:
        return re.sub("</?code>", "`", _operator(store).get("/repositories/o/r").text)

    answer(2, "flaky", 1, ["test_net"])
    answer(9, "flaky", 1, ["test_net", "test_disk"])
    assert "red checks a week" not in shown(), "nothing is known of the weeks before"
    assert "Flaky in the last 4 weeks: `test_net` (2 times), `test_disk` (1 time)." in shown()
    answer(30, "change", 6, ["test_sum"])
    assert "red checks a week" not in shown(), "of the 4 weeks before, only the last days are known"
    answer(57, "change", 9, ["test_sum"])
    assert "Better than before: 0.5 red checks a week in the last 4 weeks, 1.5 in the 4 weeks before." in shown()  # fmt: skip
    assert "`test_sum`" not in shown()
    answer(3, "change", 10, ["test_sum"])
    assert "Worse than before: 3.0 red checks a week" in shown()


def test_a_base_branch_that_an_answer_saw_fail_needs_a_person_until_it_passes(
    store: Database,
) -> None:
    _keep_answer(store, "main", "fail", 2)
    shown = _operator(store).get("/").text
    failed = "Tests fail on <code>main</code> too, not only in this pull request"
    assert f"{failed}: test_sum (+1 more)" in shown
    assert 'href="/jobs/why/2"' in shown
    _keep_answer(store, "change", "pass", 1)
    shown = _operator(store).get("/").text
    assert "Nothing waits for you." in shown
    assert "no red branch" not in shown, "branches without a schedule are not watched"


def test_each_commit_that_broke_the_base_is_a_task_with_its_own_tests_and_draft(
    store: Database,
) -> None:
    def cause(test: str, since: str, verdict: str = "main", do: str = "wait") -> dict[str, object]:
        run = {"where": "base", "outcome": "fail", "tests": [test]}
        found = {"sha": since * 40} if since else None
        return {"verdict": verdict, "do": do, "since": found, "runs": [run]}

    causes = [
        cause("test_new", "", "change"),
        cause("test_repaired", "a", do="rebase"),
        cause("test_sum", ""),
        cause("test_tax", "c"),
        cause("test_fee", "c"),
    ]
    body = {"causes": causes, "base": "main", "verdict": "main", "seconds": 9.0}
    store.save_document(ResultDocument("why", "o/r", 5, "s", "why/1", _NOW, body))
    store.save(OpenRepair("o/r", "main", 8))
    fix = {"outcome": "fixed", "title": "main", "opened": 8, "culprit": {"sha": "c" * 40}}
    store.save_document(ResultDocument("fix", "o/r", None, "s", "fix/1", _NOW, fix))
    tasks = list_open_tasks(store, _NOW, lambda _: True)
    fail = "Tests fail on `main` too, not only in this pull request"
    assert [(task.text, task.culprit, task.draft) for task in tasks] == [
        (f"{fail}: test_sum", "", None),
        (
            f"{fail}, since `cccccccccccc`: test_tax (+1 more); review draft #8, which repairs it",
            "c" * 40,
            8,
        ),
    ]


def test_a_culprit_on_the_default_branch_needs_a_person_until_the_same_search_finds_none(
    store: Database,
) -> None:
    culprit = {"sha": "c" * 40, "subject": "Count income", "author": "Emi"}
    pull, undo = {"number": 12, "author": "emi"}, f"git revert {'c' * 12}"
    found = {"culprit": culprit, "probability": 0.997, "undo": undo, "culprit_pull": pull}
    text = (
        "pytest -q fails on main since cccccccccccc “Count income” by Emi (#12 by emi), 99.7%; "
        "revert it with git revert cccccccccccc"
    )
    steps: tuple[tuple[int, dict[str, object], bool], ...] = (
        (4, {**found, "branch": ""}, False),  # a commit of a pull request is its author's
        (3, {**found, "branch": "main"}, True),
        (2, {"culprit": None, "branch": ""}, True),
        (1, {"culprit": None, "branch": "main"}, False),
    )
    for hours, body, is_listed in steps:
        at = datetime.now(UTC) - timedelta(hours=hours)
        whole = {"command": "pytest -q", **body}
        store.save_document(ResultDocument("bisect", "o/r", 9, f"{hours}", f"b/{hours}", at, whole))
        shown = re.sub("<[^>]+>", "", _operator(store).get("/").text)
        assert (text in shown) is is_listed, hours


def _keep_event(store: Database, work: Work, outcome: JobOutcome = "") -> None:
    (order,) = make_orders(work, f"{work}")
    store.store_orders([order])
    store.end(order.id, "done", "done", outcome=outcome)


@pytest.mark.parametrize("by", ["CI", "a schedule"])
def test_a_culprit_needs_nobody_once_its_branch_is_green_again(store: Database, by: str) -> None:
    where, ann, bad, good = (
        RepositoryRef("o/r", 1, 1, "main"),
        Actor("ann", is_bot=False),
        "b" * 40,
        "d" * 40,
    )

    def is_listed() -> bool:
        return "Count income" in _operator(store).get("/").text.partition("Recent activity")[0]

    def passes(name: str, sha: str, branch: str = "main", run: int = 1) -> None:
        _keep_event(store, CheckPassed(where, name, sha, branch, fork=False, run_id=run))

    def fails(name: str, run: int = 1) -> None:
        work = CheckFailed(where, ann, name, bad, "main", run_id=run, attempt=1, pulls=())
        _keep_event(store, work)

    culprit = {"sha": "c" * 40, "subject": "Count income", "author": "Emi"}
    body = {"command": "pytest -q", "culprit": culprit, "branch": "main", "range": {"good": "a" * 40, "bad": bad}}  # fmt: skip
    at = datetime.now(UTC) - timedelta(hours=1)
    store.save_document(ResultDocument("bisect", "o/r", 9, "s", "b/1", at, body))
    passes("Pages", good)
    assert is_listed(), "a workflow that never failed may run other tests"
    if by == "a schedule":
        tests = (("nightly", "pytest -q"), ("other", "make"))
        schedules = [{"name": name, "cron": "0 3 * * *", "branch": "main", "test": test} for name, test in tests]  # fmt: skip
        store.save(RepositorySchedules("o/r", 1, 1, "main", json.dumps(schedules)))
        looks: tuple[tuple[str, JobOutcome, bool], ...] = (
            ("other", "green", True),
            ("nightly", "red", True),
            ("nightly", "green", False),
        )
        for name, outcome, still in looks:
            _keep_event(store, Tick(where, name, outcome), outcome)
            assert is_listed() is still
        return
    fails("CI")
    passes("CI", bad)
    assert is_listed(), "what the search covered ran again"
    fails("Types")
    passes("CI", good)
    passes("Types", good, branch="next")
    assert is_listed(), "another workflow is still red here"
    passes("Types", good)
    assert not is_listed()
    fails("Types", run=2)
    assert is_listed()
    passes("Types", "e" * 40, run=1)
    assert is_listed(), "an older commit ran again"
    passes("Types", good, run=3)
    assert not is_listed()
    slower = body | {"slower": 1.2}
    store.save_document(ResultDocument("bisect", "o/r", 9, "s", "b/1", at, slower))
    assert is_listed(), "a workflow that passes may be as slow as before"


def test_a_red_branch_that_no_repair_was_found_for_needs_a_person(store: Database) -> None:
    for hours, outcome in ((2, "gave_up"), (1, "already_green")):
        body = {"outcome": outcome, "title": "main"}
        at = datetime.now(UTC) - timedelta(hours=hours)
        store.save_document(ResultDocument("fix", "o/r", None, outcome, outcome, at, body))
        is_listed = "fails, and no repair was found" in _operator(store).get("/").text
        assert is_listed is (outcome == "gave_up")


def test_a_red_branch_whose_repair_was_only_observed_needs_a_person(store: Database) -> None:
    body = {"outcome": "fixed", "title": "main", "patch": "-a", "observed": True}
    store.save_document(ResultDocument("fix", "o/r", None, "s", "f/1", datetime.now(UTC), body))
    page = _operator(store).get("/").text
    assert "fails, and a repair was found, which is only shown" in page
    assert ">would open a draft<" in page


def test_a_forks_commit_waits_until_somebody_approves_it(store: Database) -> None:
    sha, now = "a" * 40, datetime.now(UTC)
    body = {"head": sha, "title": "Add tax", "waits_for_approval": True}
    store.save_document(ResultDocument("review", "o/r", 5, "5@a", "review/5", now, body))
    shown = re.sub("</?code>", "`", _operator(store).get("/").text)
    assert "A fork&#39;s code at `aaaaaaaaaaaa` waits for `/approve`: Add tax" in shown
    store.save(Approval("o/r", 5, sha, "ann"))
    assert "waits for <code>" not in _operator(store).get("/").text


def test_the_first_page_tells_a_schedule_that_has_not_run_from_none(store: Database) -> None:
    fill_with_hostile_words(store, "o/r")
    store.remove(ScheduleState, repo="o/r")
    assert "no schedule</span>" in _operator(store).get("/").text
    nightly = {"name": "nightly", "cron": "0 3 * * *", "branch": "main", "test": "pytest -q"}
    store.save(RepositorySchedules("o/r", 1, 1, "main", json.dumps([nightly])))
    shown = _operator(store).get("/").text
    assert "not run yet" in shown
    assert "no schedule</span>" not in shown


def test_the_cost_page_has_a_total(store: Database) -> None:
    for _ in range(2):
        store.charge(LedgerLine(_NOW, "j", "o/r", 1, "ask", "m", Cost(0.25, 1, 2, 3, 4)))
    assert "<p>$0.500 for 2 calls.</p>" in _operator(store).get("/ledger").text


def test_a_failure_needs_nobody_once_the_same_was_asked_again_and_done(store: Database) -> None:
    failed = _order(name="77")
    store.store_orders([failed])
    store.end(failed.id, "failed", "no such revision")
    assert "no such revision" in _operator(store).get("/").text
    again = _order(name="78")
    store.store_orders([again])
    store.end(again.id, "done", "found")
    assert "no such revision" not in _operator(store).get("/").text
    ends: tuple[JobState, ...] = ("failed", "done")
    for number, state in enumerate(ends):
        tick = Order(
            f"tick/o/r/-/{number}", "tick", "o/r", None, 1, "work", f"o/r/{number}", 1, "{}"
        )
        store.store_orders([tick])
        store.end(tick.id, state, "no such branch")
    assert "no such branch" in _operator(store).get("/").text, "another schedule was done"


def test_a_repositorys_page_shows_how_much_of_new_code_the_tests_ran(store: Database) -> None:
    for number, covered in ((1, 2), (2, 8), (3, 0)):
        body = {"coverage": {"new_lines": 10 if covered else 0, "covered": covered}, "title": "T"}
        at = _NOW + timedelta(minutes=number)
        store.save_document(ResultDocument("review", "o/r", number, f"{number}@a", "j", at, body))
    page = _operator(store).get("/repositories/o/r").text
    assert "The tests ran 10 of 20 new lines (50%) in the last 2 reviews; in the latest 8 of 10." in page  # fmt: skip
    assert re.findall(r"<title>(#\d: \d of 10)</title>", page) == ["#1: 2 of 10", "#2: 8 of 10"]


def _touched_rows(page: str) -> list[str]:
    """The rows of the table of what a change touches, without markup."""
    part = page.partition("<h3>What it touches</h3>")[2].partition("</table>")[0]
    rows = [re.sub(r"</?(?:code|span)[^>]*>", "", row) for row in part.split("<tr>")[2:]]
    return [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in rows]


def test_a_reviews_page_draws_what_the_change_touches(store: Database) -> None:
    coverage: dict[str, object] = {
        "new_lines": 7,
        "covered": 5,
        "uncovered": [{"path": "b.py", "lines": [2, 3]}],
        "measured": ["a.py", "b.py"],
    }
    body: dict[str, object] = {
        "walkthrough": [
            {"path": "a.py", "text": "adds `f`; +1 -0", "added": 1, "removed": 0},
            {"path": "b.py", "text": "changes `g`; +6 -3", "added": 6, "removed": 3},
            {"path": "d.md", "text": "+1 -0", "added": 1, "removed": 0},
        ],
        "findings": [{"path": "b.py", "title": "Wrong"}],
        "coverage": coverage,
        "not_reviewed": [{"path": "c.lock", "reason": "lock file", "by_policy": True}],
    }
    store.save_document(ResultDocument("review", "o/r", 1, "1@a", "j", _NOW, body))
    shown = _operator(store).get("/jobs/j").text
    assert _touched_rows(shown) == [
        "b.py +6 -3 changes g 1 2 lines",
        "a.py +1 -0 adds f none none",
        "d.md +1 -0 none not measured",
        "c.lock not reviewed: lock file",
    ]
    assert 'aria-label="6 lines added, 3 removed"' in shown
    coverage.pop("measured")  # a review stored before does not say what was measured
    store.save_document(ResultDocument("review", "o/r", 1, "1@b", "k", _NOW, body))
    shown = _operator(store).get("/jobs/k").text
    assert [row.rpartition(" ")[2] for row in _touched_rows(shown)[:3]] == ["lines", "none", "none"]
    assert _touched_rows(shown)[1] == "a.py +1 -0 adds f none"


def test_a_reviews_page_cuts_only_a_size_that_its_column_shows(store: Database) -> None:
    sized = [
        {"path": "c.ts", "text": "renamed from old.ts, +6 -3", "added": 6, "removed": 3},
        {"path": "d.md", "text": "+3 -1", "added": 3, "removed": 1},
    ]
    # As a walkthrough was stored before it held the counts.
    before = [
        {"path": "e.py", "text": "adds `f`; changes `g`; +1 -0"},
        {"path": "f.py", "text": "adds `h`; +2 -0"},
    ]
    for job, steps in (("j", sized), ("k", before)):
        document = ResultDocument("review", "o/r", 1, f"1@{job}", job, _NOW, {"walkthrough": steps})
        store.save_document(document)
    assert _touched_rows(_operator(store).get("/jobs/j").text) == [
        "c.ts +6 -3 renamed from old.ts none",
        "d.md +3 -1 none",
    ]
    shown = _operator(store).get("/jobs/k").text
    assert _touched_rows(shown) == [
        "e.py adds f; changes g; +1 -0 none",
        "f.py adds h; +2 -0 none",
    ]
    assert 'class="size"' not in shown


def test_a_repositorys_page_says_when_each_schedule_runs_and_how_it_stands(store: Database) -> None:
    nightly = {"name": "nightly", "cron": "0 3 * * *", "branch": "main", "test": "pytest -q"}
    weekly = {"name": "weekly", "cron": "0 4 * * 1", "branch": "next", "test": "tox"}
    known = RepositorySchedules("o/r", 1, 1, "main", json.dumps([nightly, weekly]))
    store.save(known)
    store.save(ScheduleState("o/r", "nightly", red="f" * 40, issue=7, issues=(7,)))
    fill_with_hostile_words(store, "o/r")
    shown = _operator(store).get("/repositories/o/r").text
    rows = re.findall(r"<tr>.*?</tr>", shown, re.DOTALL)
    (first,) = [row for row in rows if "0 3 * * *" in row]
    (second,) = [row for row in rows if "0 4 * * 1" in row]
    assert ">red<" in first
    assert re.search(r"<time[^>]*>\d{4}-\d\d-\d\d 03:00:00 UTC", first)
    assert "has not run" in second
    store.remove(RepositorySchedules, repo="o/r")
    assert "0 3 * * *" not in _operator(store).get("/repositories/o/r").text, "it runs no more"
    assert "next" in second


def test_a_schedule_that_waits_is_not_shown_as_running_and_says_when_it_ran_last(
    store: Database,
) -> None:
    nightly = {"name": "nightly", "cron": "0 3 * * *", "branch": "main", "test": "pytest -q"}
    store.save(RepositorySchedules("o/r", 1, 1, "main", json.dumps([nightly])))
    event = serialize_work(Tick(RepositoryRef("o/r", 1, 1, "main"), "nightly", "2026-01-01"))
    tick = Order("tick/o/r/-/9", "tick", "o/r", None, 1, "work", "o/r", 1, event)
    care = Order("care/o/r/-/1", "care", "o/r", None, 1, "work", "o/r", 1, "{}")
    store.store_orders([tick, care])
    shown = _operator(store).get("/").text
    assert ">running<" not in shown
    running, waiting = shown.partition("<h2>Running jobs</h2>")[2].split("<h2>Waiting jobs</h2>")
    assert "None." in running
    assert tick.id in waiting
    assert care.id not in waiting
    assert "not run yet" in _operator(store).get("/repositories/o/r").text
    claim(store, tick.id, "w")
    (last,) = re.findall(
        'data-label="last run">(.*?)</td>', _operator(store).get("/repositories/o/r").text
    )
    assert "<time" in last
    assert "<h2>Waiting jobs</h2>" not in _operator(store).get("/").text
    store.end(tick.id, "done", "red: #5, c0ffee broke it", outcome="red")
    assert 'title="red: #5, c0ffee broke it"' in _operator(store).get("/").text


def test_a_patch_that_was_approved_no_longer_needs_a_person(store: Database) -> None:
    gate = {"verdict": "needs_human", "reasons": []}
    fix = {"outcome": "needs_human", "patch": "+x", "gate": gate}
    store.save_document(ResultDocument("fix", "o/r", 2, "s", "fix/1", _NOW, fix))
    pages = ("/", "/jobs/fix/1")
    assert all("needs human" in _operator(store).get(page).text for page in pages)
    opened = fix | {"opened": 3, "approved_by": "ann"}
    store.save_document(ResultDocument("fix", "o/r", 2, "s", "fix/1", _NOW, opened))
    for shown in (_operator(store).get(page).text for page in pages):
        assert "approved by ann</span>" in shown
        assert "needs human" not in shown.partition("The whole result")[0]


def test_what_was_red_in_ci_alone_is_not_called_a_flaky_test(store: Database) -> None:
    runs = [{"outcome": "pass"}]
    cause = {"verdict": "flaky", "reason": "red in CI", "runs": runs, "checks": ["test"]}
    body = {**cause, "causes": [cause], "seconds": 9.0}
    store.save_document(ResultDocument("why", "o/r", 5, "s", "why/1", datetime.now(UTC), body))
    whose = "a flaky test or CI&#39;s environment"
    assert f"caused this month by {whose} (1)" in _operator(store).get("/repositories/o/r").text
    assert f">{whose}</span> red in CI" in _operator(store).get("/jobs/why/1").text


def test_an_answer_where_nothing_failed_is_called_that_and_is_no_red_check(store: Database) -> None:
    quiet = {"verdict": "unknown", "reason": "it passed", "do": "look", "checks": [], "runs": []}
    red = quiet | {"verdict": "change", "reason": "it broke", "checks": ["test", "lint"]}
    for number, cause in enumerate([quiet, quiet, red]):
        body = {**cause, "causes": [cause], "seconds": 9.0}
        at = datetime.now(UTC)
        store.save_document(
            ResultDocument("why", "o/r", number, f"s{number}", f"w{number}", at, body)
        )
        told = "caused this month by" in _operator(store).get("/").text
        assert told is (cause is red)
    assert "caused this month by the change (2); median" in _operator(store).get("/").text
    assert _operator(store).get("/causes").text.count(">nothing failed</span>") == 2
    assert ">nothing failed</span>" in _operator(store).get("/jobs/w0").text


def test_red_checks_are_counted_by_week_and_by_whose_failure_they_were(store: Database) -> None:
    page = "/repositories/o/r"
    monday = _NOW - timedelta(days=_NOW.weekday())
    none = "No failed check of a pull request was answered in the last 8 weeks."
    given = [
        (0, "change", ["test", "lint", "docs"]),
        (0, "flaky", ["test"]),
        (0, "change", []),  # nothing had failed
        (2, "main", ["test"]),
        (2, "world", ["test"]),
        (9, "change", ["test"]),
    ]
    for number, (weeks, verdict, checks) in enumerate(given[::-1]):
        cause = {"verdict": verdict, "checks": checks, "runs": []}
        body = {"causes": [cause], "verdict": verdict, "seconds": 9.0}
        at = min(_NOW, monday - timedelta(weeks=weeks))
        store.save_document(
            ResultDocument("why", "o/r", 5, f"s{number}", f"why/{number}", at, body)
        )
        if not number:
            assert none in _operator(store).get(page).text, "nine weeks ago is no trend"
    shown = _operator(store).get(page).text
    table = shown.partition('<caption class="hidden">Red checks')[2].partition("</table>")[0]
    cells = [re.sub("<[^>]*>", "", c).strip() for c in re.findall("<td.*?</td>", table, re.DOTALL)]
    rows = [cells[i : i + 7] for i in range(0, len(cells), 7)]
    assert [row[1:] for row in rows[:3]] == [
        ["4", "3", "0", "1", "0", "0"],
        ["0", "0", "0", "0", "0", "0"],
        ["2", "0", "1", "0", "0", "1"],
    ]
    assert (len(rows), rows[0][0]) == (8, f"{monday.date()}")
    assert none not in shown


def test_a_week_with_too_many_red_checks_to_count_is_shown_with_a_note(
    store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regreen.dashboard.pages._MAX_ROWS", 3)
    note = f"Only the latest 3 answers count here, since {_NOW.date()}."
    body = {"causes": [{"verdict": "change", "checks": ["test"]}], "seconds": 9.0}
    for number in range(4):
        store.save_document(ResultDocument("why", "o/r", 5, f"s{number}", f"{number}", _NOW, body))
        page = _operator(store).get("/repositories/o/r").text
        assert (note in page) is (number >= 2)
    shown = _operator(store).get("/repositories/o/r").text
    assert 'aria-label="3 red checks"' in shown
    assert "No failed check of a pull request was answered" not in shown


def test_a_package_that_was_new_or_left_is_named_alike_everywhere(store: Database) -> None:
    culprit = {"sha": "c" * 40, "subject": "Add six", "author": "ann"}
    for job, old, new in (("j", None, "2.0"), ("k", "1.0", None)):
        package = {"path": "requirements.txt", "name": "six", "old": old, "new": new}
        body = {"outcome": "found", "culprit": culprit, "dependency": package}
        store.save_document(ResultDocument("bisect", "o/r", 1, job, job, _NOW, body))
    client = _operator(store)
    shown = client.get("/bisections").text
    assert "six absent -&gt; 2.0, in cccccccccccc Add six" in shown
    assert "six 1.0 -&gt; removed, in cccccccccccc Add six" in shown
    assert "six absent -&gt; 2.0, in requirements.txt" in client.get("/jobs/j").text


def test_a_run_without_a_rejected_suspect_names_it(store: Database) -> None:
    run = {"sha": "d" * 40, "outcome": "fail", "reason": "exit 1", "part": "revert"}
    body = {"culprit": {"sha": "c" * 40}, "range": {"bad": "b" * 40}, "later_runs": [{**run, "part": "suspect", "reverted": "a" * 40}, run]}  # fmt: skip
    store.save_document(ResultDocument("bisect", "o/r", 1, "s", "j", _NOW, body))
    shown = re.sub(r"<[^>]+>", "", _operator(store).get("/jobs/j").text)
    reverted = re.findall(r"bbbbbbbbbbbb with (\w+) reverted", shown)
    assert reverted == ["aaaaaaaaaaaa", "cccccccccccc"], "the second was stored before"


def test_a_bisection_over_no_commit_shows_no_empty_picture(store: Database) -> None:
    body = {"outcome": "not_reproduced", "command": "true", "svg": "<svg/>", "range": {"bad": "b" * 40, "commits": 0}}  # fmt: skip
    store.save_document(ResultDocument("bisect", "o/r", 4, "s", "bisect/o/r/4/1", _NOW, body))
    shown = _operator(store).get("/jobs/bisect/o/r/4/1").text
    assert "data:image" not in shown
    assert "Most likely commits" not in shown
    body["range"] = {"bad": "b" * 40, "commits": 3}
    store.save_document(ResultDocument("bisect", "o/r", 4, "s", "bisect/o/r/4/1", _NOW, body))
    assert "data:image" in _operator(store).get("/jobs/bisect/o/r/4/1").text


def test_a_failed_job_is_seen_behind_a_hundred_failed_maintenance_jobs(store: Database) -> None:
    failed = _order(name="77")
    store.store_orders([failed])
    store.end(failed.id, "failed", "no such revision")
    for number in range(100):
        care = Order(f"care/{number}", "care", "", None, 1, "work", "", 1, "{}")
        store.store_orders([care])
        store.end(care.id, "failed", "disk full")
    shown = _operator(store).get("/").text
    assert "failed: no such revision" in shown
    assert "disk full" not in shown


def test_a_proofs_page_lists_the_faults_that_no_test_notices(store: Database) -> None:
    job = fill_with_hostile_words(store, "o/r", "words")
    shown = _operator(store).get(f"/jobs/{job}").text
    assert (
        "1 of 2 faults that were put into the changed lines are not noticed by the changed test files"
        in shown
    )
    assert shown.count("<code>words:3</code>") == 1


def test_a_repository_of_others_is_not_there(store: Database) -> None:
    fill_with_hostile_words(store, "o/secret")
    client = _signed_in(_app(store, "x", _Hub({"ann": {"o/r": "write"}})), "ann")
    assert client.get("/repositories/o/secret").status_code == 404
    assert "o/secret" not in client.get("/").text


def test_what_is_still_open_or_dismissed_of_earlier_pushes_stands_among_the_findings(
    store: Database,
) -> None:
    job = fill_with_hostile_words(store, "o/r", "words")
    one = {"title": "t", "severity": "high", "path": "a.py", "line": 3, "side": "RIGHT"}
    withheld = [
        {**one, "fingerprint": "f1", "reason": "duplicate"},
        {**one, "fingerprint": "f2", "reason": "dismissed"},
    ]
    body = {
        "withheld": withheld,
        "still_open": ["f1"],
        "head": "a" * 40,
        "walkthrough": [{"path": "a.py", "text": "changes", "added": 1, "removed": 0}],
    }
    store.save_document(ResultDocument("review", "o/r", 1, "s", job, _NOW, body))
    store.save(Dismissal("o/r", 1, "f2", "ann", ""))
    shown = _operator(store).get(f"/jobs/{job}").text
    assert "1 still open" in shown
    assert "Withheld, " not in shown
    assert '<td data-label="findings">2</td>' in shown
    assert shown.count("by ann") == 1


def test_a_dismissed_finding_is_marked_and_maintenance_is_hidden(store: Database) -> None:
    job = fill_with_hostile_words(store, "o/r", "words")
    finding = {
        "title": "t",
        "fingerprint": "f1",
        "severity": "high",
        "path": "a.py",
        "line": 3,
        "side": "RIGHT",
    }
    body = {"findings": [finding], "head": "a" * 40, "snippets": {"f1": "    3  eval(x)"}}
    store.save_document(ResultDocument("review", "o/r", 1, "s", job, _NOW, body))
    store.save(Dismissal("o/r", 1, "f1", "ann", "only admins reach it"))
    shown = _operator(store).get(f"/jobs/{job}").text
    assert ">dismissed</span>" in shown
    assert re.search(r"by ann <time [^<]*>[\d :UTC-]+</time>: only admins reach it", shown)
    assert f'href="https://hub.example/o/r/blob/{"a" * 40}/a.py#L3"' in shown
    assert "eval(x)" in shown
    store.store_orders([Order("care/x", "care", "", None, 1, "work", "", 1, "{}")])
    assert "care/x" not in _operator(store).get("/jobs").text
    assert "care/x" in _operator(store).get("/jobs?kind=care").text


def test_a_list_goes_on_where_the_page_before_ended(store: Database) -> None:
    store.store_orders([_order(name=f"{n:03}") for n in range(120)])
    client, seen, at = _operator(store), [], "/jobs?repo=o/r&state=waiting"
    while at:
        shown = client.get(at).text
        seen += re.findall(r'href="/jobs/fix/o/r/1/(\d+)"', shown)
        older = re.search(r'href="([^"]+)" rel="next"', shown)
        at = older[1].replace("&amp;", "&") if older else ""
    assert seen == [f"{n:03}" for n in reversed(range(120))]
    assert "No entry matches these filters." in client.get("/jobs?q=nowhere").text
    assert client.get("/jobs?after=x,y&number=x").status_code == 200


@pytest.mark.parametrize("page", ["jobs", "ledger", "audit", "deliveries", "reviews"])
@pytest.mark.parametrize("number", ["9" * 23, "-" + "9" * 23, "9" * 5000])
def test_a_number_that_no_database_holds_is_no_place_in_a_list(
    store: Database, page: str, number: str
) -> None:
    client = _operator(store)
    assert client.get(f"/{page}?after=1,{number}").status_code == 200
    assert client.get(f"/{page}?after={number},1&number={number}").status_code == 200


def test_nobody_looks_without_a_token_or_a_sign_in_whatever_they_call_this_machine(
    store: Database,
) -> None:
    client = _app(store).test_client()
    for name in ("localhost", "127.0.0.1:8000", "[::1]", "regreen.example.org"):
        answer = client.get("/", headers={"Host": name}, environ_overrides={"REMOTE_ADDR": "127.0.0.1"})  # fmt: skip
        assert (answer.status_code, "dashboard-token" in answer.text) == (401, True)


def _routes(app: Flask, job: str, delivery: str) -> list[tuple[str, str]]:
    """Every method and address of the dashboard, with real ids in it."""
    found = []
    for rule in app.url_map.iter_rules():
        if rule.endpoint.startswith("dashboard."):
            address = re.sub(r"<path:job_id>", job, re.sub(r"<path:delivery_id>", delivery, rule.rule))  # fmt: skip
            found += [(method, address) for method in (rule.methods or ()) if method != "OPTIONS"]
    return found


def test_nobody_gets_anything_out_of_any_address_that_is_not_theirs(store: Database) -> None:
    """Every route there is, so that one that comes later is in it: without a sign-in, and with one for nothing."""
    job = fill_with_hostile_words(store, "o/other")
    accept(store, DeliveryRecord("d9", "push", "o/other", "{}", _NOW), [])
    app = _app(store, hub=_Hub({"eve": {"o/eves": "admin"}}))
    plain = job.partition("<")[0] + "1"
    store.store_orders([_order("o/other")])
    eve = _signed_in(app, "eve")
    told = {"form_token": _token(eve.get("/").text)}
    routes = _routes(app, plain, "d9")
    assert len(routes) > 20
    for method, address in routes:
        if address in {"/sign-in", "/signed-in"}:
            continue
        stranger = app.test_client().open(address, method=method)
        assert stranger.status_code == 401, (method, address)
        assert "o/other" not in stranger.text
        if address == "/sign-out":
            continue
        hers = eve.open(address, method=method, data=told if method == "POST" else None)
        assert "o/other" not in hers.text.replace(address, ""), (method, address)
        assert hers.status_code == (404 if "/" in address[1:] else 200), (method, address)
        assert hers.headers["Cache-Control"] == "no-store"
        assert "default-src 'none'" in hers.headers["Content-Security-Policy"]
    kept = store.job(plain)
    assert kept is not None
    assert kept.state == "waiting"
    assert [a.action for a in store.actions() if a.asked_by == "eve"] == ["signed in"]


def test_a_capsule_is_for_those_who_may_read_its_repository(store: Database) -> None:
    store.save(StoredCapsule("o/private", "aa", "{}", public=False))
    store.save(StoredCapsule("o/public", "bb", "{}", public=True))
    app = _app(store, hub=_Hub({"ann": {"o/private": "read"}, "eve": {"o/eves": "admin"}}))
    stranger, ann, eve = app.test_client(), _signed_in(app, "ann"), _signed_in(app, "eve")
    private, public = "/capsules/aa.json", "/capsules/bb.json"
    assert [who.get(private).status_code for who in (stranger, ann, eve)] == [401, 200, 404]
    assert [who.get(public).status_code for who in (stranger, ann, eve)] == [200, 200, 200]
    server = make_server("127.0.0.1", 0, app)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        address = f"http://127.0.0.1:{server.server_port}{private}"
        with pytest.raises(
            UserError, match="sign in, save the file, and run `regreen replay FILE`"
        ):
            download_capsule(address)
    finally:
        server.shutdown()


@pytest.mark.parametrize(
    "to",
    ["//evil.example", "/\\evil.example", "https://evil.example", "javascript:alert(1)", "/\t/evil.example", "\\\\evil.example", "/\r\nSet-Cookie:x=1", "evil.example", "", " //evil.example"],
)  # fmt: skip
def test_a_sign_in_leads_back_to_our_own_pages_only(store: Database, to: str) -> None:
    client = _app(store, hub=_Hub({"ann": {}})).test_client()
    going = client.get("/sign-in", query_string={"to": to})
    state = going.headers["Location"].rpartition("state=")[2]
    back = client.get(f"/signed-in?code=ann&state={state}")
    assert (back.status_code, back.headers["Location"]) == (303, "/")
    assert back.headers["Cache-Control"] == "no-store"


def test_each_sign_in_is_a_new_session_and_the_one_before_ends(store: Database) -> None:
    app = _app(store, hub=_Hub({"ann": {}, "bob": {}}))
    client = app.test_client()
    client.set_cookie("regreen", "planted")  # by somebody who would like to share the session
    for who in ("ann", "bob"):
        state = client.get("/sign-in").headers["Location"].rpartition("state=")[2]
        client.get(f"/signed-in?code={who}&state={state}")
        cookie = client.get_cookie("regreen")
        assert cookie is not None
        assert cookie.value != "planted"
        assert cookie.http_only
    (session,) = store.find_all(DashboardSession)
    assert session.login == "bob"
    planted = app.test_client()
    planted.set_cookie("regreen", "planted")
    assert planted.get("/").status_code == 401


def test_a_state_that_was_used_or_made_up_is_refused(store: Database) -> None:
    client = _app(store, hub=_Hub({"ann": {}})).test_client()
    state = client.get("/sign-in").headers["Location"].rpartition("state=")[2]
    assert client.get(f"/signed-in?code=ann&state={state}").status_code == 303
    assert client.get(f"/signed-in?code=ann&state={state}").status_code == 403
    for cookie in ("[" * 4000, "[]", "7", "{}", "null", '{"state": "", "to": "/"}'):
        client.set_cookie("regreen-state", cookie, path="/signed-in")
        assert client.get("/signed-in?code=ann&state=").status_code == 403


def test_with_a_token_everybody_who_has_it(store: Database) -> None:
    client = _app(store, "opensesame").test_client()
    basic = base64.b64encode(b"me:opensesame").decode()
    wrong = base64.b64encode(b"me:guess").decode()
    assert client.get("/").status_code == 401
    assert client.get("/", headers={"Authorization": f"Basic {basic}"}).status_code == 200
    assert client.get("/", headers={"Authorization": f"Basic {wrong}"}).status_code == 401
    assert client.get("/", headers={"Authorization": "Basic \xff"}).status_code == 401
    assert client.get("/", headers={"Authorization": "Bearer opensesame"}).status_code == 200


def test_who_signs_in_sees_what_they_may_read_on_github_and_no_more(store: Database) -> None:
    mine, other = (
        fill_with_hostile_words(store, "o/mine"),
        fill_with_hostile_words(store, "o/other"),
    )
    accept(store, DeliveryRecord("d", "push", "o/mine", "{}", _NOW), [])
    accept(store, DeliveryRecord("e", "push", "o/other", "{}", _NOW), [])
    app = _app(store, hub=_Hub({"ann": {"o/mine": "read"}}))
    assert app.test_client().get("/jobs").status_code == 401
    client = _signed_in(app, "ann")
    for page in _PAGES:
        shown = client.get(page).text
        assert "o/other" not in shown
        assert "o/mine" in shown
    assert client.get(f"/jobs/{mine}").status_code == 200
    assert client.get(f"/jobs/{other}").status_code == 404
    assert client.get("/jobs?repo=o/other").text.count("/jobs/fix") == 0
    token = _token(client.get("/").text)
    told = {"form_token": token}
    assert client.post(f"/jobs/{mine}/cancel", data=told).status_code == 403  # reads only
    assert client.post(f"/jobs/{other}/cancel", data=told).status_code == 404
    assert client.post("/sign-out", data=told).status_code == 303
    assert client.get("/jobs").status_code == 401


def test_a_sign_in_lasts_an_hour_and_cannot_be_begun_elsewhere(store: Database) -> None:
    app = _app(store, hub=_Hub({"ann": {}}))
    stranger = app.test_client()
    assert stranger.get("/signed-in?code=ann&state=guess").status_code == 403
    assert stranger.get("/sign-in?to=//evil.example").status_code == 303
    client = _signed_in(app, "ann")
    (session,) = store.find_all(DashboardSession)
    store.save(replace(session, until=(_NOW - timedelta(seconds=1)).isoformat()))
    assert client.get("/").status_code == 401
    assert store.find_all(DashboardSession) == []


def test_a_person_with_write_access_cancels_and_repeats(store: Database) -> None:
    job = _order()
    accept(store, DeliveryRecord("d1", "issue_comment", "o/r", job.event, _NOW), [job])  # fmt: skip
    client = _signed_in(_app(store, hub=_Hub({"ann": {"o/r": "write"}})), "ann")
    told = {"form_token": _token(client.get(f"/jobs/{job.id}").text)}
    assert client.post(f"/jobs/{job.id}/cancel", data=told).status_code == 303
    ended = store.job(job.id)
    assert ended is not None
    assert ended.state == "cancelled"
    shown = re.sub("<[^>]+>|\\s+", " ", client.get(f"/jobs/{job.id}").text)
    assert re.search(r"cancelled +by ann from the dashboard +20\d\d-.+; it had not started", shown)
    replayed = client.post("/deliveries/d1/replay", data=told)
    (new,) = store.jobs(states=("waiting",))
    assert replayed.headers["Location"] == f"/jobs/{new.id}"
    assert client.post(f"/jobs/{job.id}/again", data=told).status_code == 303
    assert [a.action for a in store.actions()] == ["replayed", "replayed", "cancelled", "signed in"]
    assert {a.asked_by for a in store.actions()} == {"ann"}


def test_a_form_of_another_site_is_refused(store: Database) -> None:
    job = _order()
    store.store_orders([job])
    client = _operator(store)
    told, address = {"form_token": _token(client.get(f"/jobs/{job.id}").text)}, f"/jobs/{job.id}/cancel"  # fmt: skip
    assert client.post(address).status_code == 403
    assert client.post(address, data={"form_token": "0" * 64}).status_code == 403
    assert client.post(address, data=told, headers={"Origin": "https://evil.example"}).status_code == 403  # fmt: skip
    assert client.post(address, data=told, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403  # fmt: skip
    assert client.post(address, data=told, headers={"Origin": "http://localhost"}).status_code == 303  # fmt: skip


def test_the_plots_are_tables_too(store: Database) -> None:
    outcomes = OutcomeStore(store)
    for n in range(20):
        how: OutcomeKind = "up" if n % 10 else "down"
        outcomes.record_outcome(
            FindingOutcome("o/r", n, "f", "ruff/F821", 0.9, how, _NOW.isoformat())
        )
    shown = _operator(store).get("/calibration").text
    assert 'role="img"' in shown
    assert '<td data-label="share right">0.90</td>' in shown
    assert "90%" in shown


@pytest.mark.parametrize(
    "secret",
    [
        "ghp_" + "a1B2" * 9,
        "ghs_123456_eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiIxIn0.c2lnbmF0dXJl",
        "github_pat_" + "a1B2_" * 12,
        "sk-ant-api03-" + "x" * 40,
        "AKIA" + "A1B2" * 4,
        "xoxb-1234567890-abcdef",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-def_1",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_secrets_are_taken_out(secret: str) -> None:
    shown = redact_secrets(f"before {secret} after")
    assert secret not in shown
    assert shown.startswith("before ")
    assert shown.endswith(" after")


def test_credentials_in_addresses_and_headers() -> None:
    assert redact_secrets("https://ann:pw@host/x") == "https://[hidden]@host/x"
    assert "abc12345" not in redact_secrets("Authorization: token abc12345")
    assert redact_secrets("-----BEGIN CERTIFICATE----- x") == "-----BEGIN CERTIFICATE----- x"
    assert redact_secrets("nothing to hide: https://host/x") == "nothing to hide: https://host/x"
