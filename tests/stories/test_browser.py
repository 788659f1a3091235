"""The dashboard in a real browser: signing in, following, cancelling, repeating, on a desk and on a phone.

Set REGREEN_PICTURES to a directory to keep what was seen.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from urllib.parse import quote

import pytest
from pydantic import SecretStr
from regreen_playground.loopback import Loopback

from regreen.app.wiring import Application, build_app
from regreen.bot.feedback import OutcomeStore
from regreen.code.file_change import CheckReason
from regreen.domain.models import Cost, Failure
from regreen.domain.records import JobRecord, LedgerLine, ResultDocument
from regreen.domain.state_records import FindingOutcome
from regreen.fixers.case import Attempt, FixResult, InitialFailure, PatchedRuns
from regreen.gate.judge import GateReport
from tests.jobs import run_job
from tests.stories.browser import CHROMIUM, DESK, DRIVER, PHONE, Browser, axe
from tests.stories.conftest import Tell
from tests.stories.story import REPO, Story
from tests.stories.test_bisections import _history
from tests.stories.test_fixes import needs_sandbox
from tests.stories.test_reviews import FAULT
from tests.unit.test_dashboard import HOSTILE, fill_with_hostile_words

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="chromium and chromium-driver are not installed"),
]  # fmt: skip
_LISTS = ("/", "/jobs", "/reviews", "/fixes", "/bisections", "/deliveries", "/calibration", "/ledger", "/audit")  # fmt: skip
_PATCH = "--- a/shop/prices.py\n+++ b/shop/prices.py\n@@ -4,3 +4,3 @@\n def total(prices):\n-    return sum(prices[1:])\n+    return sum(prices)\n"


class Scene:
    """A story whose dashboard is served, and somebody before it."""

    def __init__(self, story: Story, browser: Browser) -> None:
        self.story, self.browser = story, browser
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        story.app.hook_url = f"{self.url}/webhooks/github"
        settings = story._settings.model_copy(
            update={
                "public_url": self.url,
                "client_id": story.app.client_id,
                "client_secret": SecretStr(story.app.client_secret),
            }
        )
        self.app: Application = build_app(settings, clock=story.clock, sandbox=story._sandbox)
        self._server = Loopback(self.app.wsgi, port)

    def close(self) -> None:
        self._server.close()
        self.app.close()

    def sign_in(self, who: str = "alice") -> None:
        self.browser.go(self.url)
        self.browser.click("Sign in with GitHub")
        self.browser.click(who)
        self.browser.sees("Sign out")

    def runs(self, job: JobRecord) -> threading.Thread:
        """A worker takes the job."""
        thread = threading.Thread(target=run_job, args=(self.app.runner, job.id))
        thread.start()
        return thread

    def asked(self, words: str) -> JobRecord:
        """Somebody asks for work in an issue; the job that waits for a worker."""
        self.story.says("alice", words, on=self.story.issue("It is broken"))
        self.story.deliver()
        for job in self.app.store.jobs(states=("waiting",)):
            if job.kind not in {"fix", "bisect"}:
                run_job(self.app.runner, job.id)
        (job,) = self.app.store.jobs(states=("waiting",))
        return job

    def picture(self, name: str, *, whole: bool = False) -> None:
        where = os.environ.get("REGREEN_PICTURES")
        if where:
            Path(where).mkdir(parents=True, exist_ok=True)
            self.browser.picture(Path(where) / f"{name}.png", whole=whole)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    made = Browser()
    yield made
    made.close()


@pytest.fixture
def scene(tell: Tell, browser: Browser) -> Iterator[Scene]:
    story = tell(None)
    story.configures("review: {enabled: true}\n")
    story.work()
    browser.size(DESK)
    browser.colours("light")
    made = Scene(story, browser)
    yield made
    made.close()


def _keep_fix(scene: Scene) -> str:
    """A repair with everything that one can have."""
    job, store, at = "fix/acme/shop/1/x", scene.app.store, scene.story.clock.now()
    failure = Failure("tests.test_prices.TotalTest.test_sum", "AssertionError", "5 != 6", "tests/test_prices.py", 8)  # fmt: skip
    trail = ('run {"command": "python -m unittest -q tests.test_prices"}\n-> exit 1\nAssertionError: 5 != 6 ' + "x" * 200,)  # fmt: skip
    fix = FixResult(
        outcome="fixed", rung="model", patch=_PATCH, cause="The first price was left out.",
        before=InitialFailure("python -m unittest -q tests.test_prices", 1, (failure,)), after=PatchedRuns(0, 3),
        gate=GateReport("allow", (CheckReason("minimal", "every hunk is needed"),)), seconds=41.5, cost=Cost(0.031, 4, 9000, 800, 7000),
        attempts=(
            Attempt("recipe", "no recipe fits an AssertionError", "nothing_proposed", 0.2),
            Attempt("template", "another slice", "still_red", 3.1, patch=_PATCH.replace("sum(prices)", "sum(prices[:])"), detail="2 of 3 runs red"),
            Attempt("model", "sum over all prices", "accepted", 38.0, 0.031, _PATCH, "green in 3 fresh runs", trail),
        ),
    )  # fmt: skip
    store.save_document(ResultDocument("fix", REPO, 1, job, job, at, {"version": 1, **asdict(fix)}))
    store.charge(LedgerLine(at, job, REPO, 1, "fix", "scripted", fix.cost))
    for n in range(40):
        outcome = FindingOutcome(REPO, n, "f", "ruff/F821", 0.82 + n % 4 * 0.04, "up" if n % 8 else "down", at.isoformat())  # fmt: skip
        OutcomeStore(store).record_outcome(outcome)
    return job


def test_who_signs_in_lands_where_they_wanted_to_go(scene: Scene) -> None:
    pull = scene.story.pull(FAULT)
    scene.story.work()
    scene.browser.go(f"{scene.url}/reviews?repo={REPO}")
    scene.browser.click("Sign in with GitHub")
    scene.browser.click("alice")
    scene.browser.sees(f"{REPO}#{pull.number}")
    assert scene.browser.path == "/reviews"
    scene.browser.click(f"{REPO}#{pull.number}")
    scene.browser.sees("Withheld")
    scene.picture("review", whole=True)
    shown = scene.browser.run("return document.querySelector('time').textContent")
    assert "6:00:00 PM" in shown  # nine in UTC is six in the evening in Tokyo
    scene.browser.click("Sign out")
    scene.browser.sees("Sign in with GitHub")


def test_a_stranger_sees_nothing(scene: Scene) -> None:
    scene.sign_in("mallory")
    scene.browser.sees("No repository yet")
    scene.browser.go(f"{scene.url}/jobs")
    assert REPO not in scene.browser.text


@needs_sandbox
@pytest.mark.sandbox
def test_a_bisection_is_followed_while_it_runs(scene: Scene) -> None:
    culprit = _history(scene.story)
    job = scene.asked('/bisect test="sleep 0.5; python -m unittest -q tests.test_prices"')
    scene.sign_in()
    scene.browser.go(f"{scene.url}/jobs/{job.id}")
    scene.browser.run("window.isTheSame = true")
    worker = scene.runs(job)
    scene.browser.sees("likeliest")  # with nobody loading the page again
    assert scene.browser.run("return window.isTheSame") is True
    scene.picture("bisection-live")
    worker.join(timeout=120)
    scene.browser.sees("Search progress")
    scene.browser.sees(culprit[:12])
    assert scene.browser.run("return document.querySelector('main img').naturalWidth") > 0
    scene.picture("bisection", whole=True)


@needs_sandbox
@pytest.mark.sandbox
def test_a_job_is_cancelled_from_its_page(scene: Scene) -> None:
    job = scene.asked('/bisect test="sleep 300"')
    scene.sign_in()
    scene.browser.go(f"{scene.url}/jobs/{job.id}")
    worker = scene.runs(job)
    scene.browser.sees("running")
    scene.browser.click("Cancel this job")
    scene.browser.sees("cancelled")
    scene.app.runner.propagate_cancellations()  # a worker does this every second
    worker.join(timeout=30)
    assert not worker.is_alive()
    assert [a.asked_by for a in scene.app.store.actions() if a.action == "cancelled"] == ["alice"]


def test_a_delivery_is_replayed(scene: Scene) -> None:
    pull = scene.story.pull(FAULT)
    scene.story.work()
    scene.sign_in()
    scene.browser.click("Deliveries")
    came = next(d for d in scene.app.store.deliveries() if d.name == "pull_request")
    scene.browser.click(came.id)
    scene.browser.click("Replay")
    scene.browser.sees("waiting")
    before = len(pull.reviews)
    scene.app.run_due_jobs()
    scene.browser.sees("done")
    assert len(pull.reviews) == before  # it was done before, and is not said twice


def test_a_repair_is_read_on_a_phone(scene: Scene) -> None:
    job = _keep_fix(scene)
    scene.browser.size(PHONE)
    scene.sign_in()
    scene.browser.go(f"{scene.url}/jobs/{job}")
    scene.browser.sees("Strategies tried")
    widths = scene.browser.run("return [document.documentElement.scrollWidth, innerWidth]")
    assert widths[0] <= widths[1]
    scene.browser.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    for words in ("AssertionError: 5 != 6", "2 of 3 runs red", "every hunk is needed"):
        scene.browser.sees(words)
    assert scene.browser.run("return document.documentElement.scrollWidth") <= PHONE[0]
    scene.picture("repair-phone")


def test_everybody_can_use_every_page(scene: Scene, tmp_path: Path) -> None:
    checker = axe(tmp_path)
    if checker is None:
        pytest.skip("axe-core cannot be fetched from its registry here")
    pull = scene.story.pull(FAULT)
    scene.story.work()
    job = _keep_fix(scene)
    (review,) = scene.app.store.documents(kind="review", number=pull.number)
    scene.sign_in()
    pages = (*_LISTS, "/jobs/none", f"/jobs/{job}", f"/jobs/{review.job}")  # fmt: skip
    faults = []
    for scheme in ("light", "dark"):
        scene.browser.colours(scheme)
        for page in pages:
            scene.browser.go(scene.url + page)
            scene.browser.run(checker)
            found = scene.browser.run_async("const done = arguments[arguments.length - 1]; axe.run().then(r => done(r.violations))")  # fmt: skip
            faults += [
                (scheme, page, one["id"], [n["html"][:120] for n in one["nodes"]][:3])
                for one in found
            ]
            if page in {"/", "/calibration"}:
                scene.picture(f"{page.strip('/') or 'overview'}-{scheme}")
    assert faults == []


def test_whatever_a_repository_is_full_of_no_page_is_wider_than_the_screen(scene: Scene) -> None:
    job = fill_with_hostile_words(scene.app.store, REPO, " ".join((HOSTILE, "A" * 900, "\u202eright to left", "\x1b[31m")))  # fmt: skip
    scene.sign_in()
    for size in (DESK, PHONE):
        scene.browser.size(size)
        for page in (*_LISTS, f"/jobs/{quote(job)}"):
            scene.browser.go(scene.url + page)
            scene.browser.run("document.querySelectorAll('details').forEach(d => d.open = true)")
            assert scene.browser.run("return document.documentElement.scrollWidth") <= size[0], page
            assert scene.browser.run("return document.images.length") <= 1, "a bisection's picture"
            assert scene.browser.run("return document.scripts.length") == 1
