"""The language of stories: verbs of people on GitHub, and what they see afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from flask.testing import FlaskClient
from pydantic import SecretStr
from regreen_playground import Playground, serve
from regreen_playground.loopback import Wsgi
from regreen_playground.model import Answer, Script, ScriptedModel
from regreen_playground.outbox import Answer as Posted
from regreen_playground.state import Files
from regreen_playground.things import CheckRun, Comment, Issue, Job, Level, Pull, WorkflowRun

from regreen.adapters.clock import SystemClock
from regreen.adapters.sandbox.attacks.attack import self_test
from regreen.adapters.sandbox.selection import choose_sandbox
from regreen.app.wiring import Application as RegreenApp
from regreen.app.wiring import build_app
from regreen.bot.sandbox_trust import SandboxProvider
from regreen.domain.errors import NoSandbox
from regreen.domain.ports import Sandbox
from regreen.domain.settings import Settings
from regreen.reviewers.analyzers.correctness import Pyright
from regreen.reviewers.reviewer_table import REVIEWERS

DASHBOARD_TOKEN = "the operator's word"
REPO = "acme/shop"
START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
SHOP: Files = {
    "README.md": "# Shop\n",
    "shop/__init__.py": "",
    "shop/prices.py": (
        '"""Prices."""\n\n\ndef total(prices):\n    """The sum of all prices."""\n'
        "    result = 0\n    for price in prices:\n        result += price\n    return result\n"
    ),
    "tests/__init__.py": "",
    "tests/test_prices.py": (
        "import unittest\n\nfrom shop.prices import total\n\n\n"
        "class TotalTest(unittest.TestCase):\n    def test_sum(self):\n"
        "        self.assertEqual(total([1, 2, 3]), 6)\n"
    ),
}


# A shop of whose tests no file says anything.
UNTESTED: Files = {"tests/test_prices.py": None, "tests/__init__.py": None}


@cache
def proven_sandbox() -> SandboxProvider:
    """This machine's sandbox, attacked once for all stories."""
    return SandboxProvider(lambda: choose_sandbox("bwrap"), self_test, SystemClock())


def _refuse_sandbox() -> Sandbox:
    raise NoSandbox("this story runs no code")


def missing_sandbox() -> SandboxProvider:
    """A machine without a sandbox: for stories that are not about running code."""
    return SandboxProvider(_refuse_sandbox, self_test, SystemClock())


class StoryClock:
    """Time that moves only when the story says so."""

    def __init__(self) -> None:
        self._now = START
        self._ticks = 0.0

    def now(self) -> datetime:
        """The story's time."""
        return self._now

    def monotonic(self) -> float:
        """The story's time as seconds."""
        return self._ticks

    def sleep(self, seconds: float) -> None:
        """Pass the time at once."""
        self.pass_time(timedelta(seconds=seconds))

    def pass_time(self, span: timedelta) -> None:
        """Move on."""
        self._now += span
        self._ticks += span.total_seconds()


class SeenPull:
    """A pull request as a person sees it."""

    def __init__(self, story: Story, pull: Pull) -> None:
        self._story = story
        self.raw = pull

    @property
    def number(self) -> int:
        """Its number."""
        return self.raw.number

    @property
    def title(self) -> str:
        """Its title."""
        return self.raw.issue.title

    @property
    def body(self) -> str:
        """Its description."""
        return self.raw.issue.body or ""

    @property
    def state(self) -> str:
        """open, closed or merged."""
        return "merged" if self.raw.merged else self.raw.issue.state

    @property
    def comments(self) -> list[str]:
        """What Regreen said under it, hidden markers left out."""
        return [_visible(one.body) for one in self.raw.issue.comments if one.user.type == "Bot"]

    @property
    def reviews(self) -> list[str]:
        """The bodies of Regreen's reviews."""
        return [_visible(one.body) for one in self.raw.reviews if one.app and one.body]

    @property
    def remarks(self) -> list[tuple[str, int | None, str]]:
        """Regreen's first comments on lines: path, line, text."""
        return [
            (one.comments[0].path, one.comments[0].line, _visible(one.comments[0].body))
            for one in self.raw.threads
            if one.comments[0].user.type == "Bot"
        ]

    @property
    def checks(self) -> dict[str, str]:
        """Regreen's checks on its head: name to conclusion (or status while under way)."""
        runs = self._story.state.checks_on(self.raw.base.full_name, self.raw.head_sha)
        return {run.name: run.conclusion or run.status for run in runs}

    @property
    def check(self) -> CheckRun:
        """Regreen's newest check run on its head."""
        return self._story.state.checks_on(self.raw.base.full_name, self.raw.head_sha)[-1]


class SeenIssue:
    """An issue as a person sees it."""

    def __init__(self, issue: Issue) -> None:
        self.raw = issue

    @property
    def title(self) -> str:
        """Its title."""
        return self.raw.title

    @property
    def body(self) -> str:
        """Its text."""
        return _visible(self.raw.body or "")

    @property
    def state(self) -> str:
        """Open or closed."""
        return self.raw.state

    @property
    def comments(self) -> list[str]:
        """What Regreen said under it, hidden markers left out."""
        return [_visible(one.body) for one in self.raw.comments if one.user.type == "Bot"]


class Story:
    """A playground with a repository, and Regreen installed on it. Nothing happens before `work()`."""

    def __init__(
        self,
        home: Path,
        wrap: Callable[[Wsgi], Wsgi],
        answers: Script | list[Answer] | None,
        keys: tuple[str, bytes],
        sandbox: SandboxProvider | None = None,
        *,
        collector: str | None = None,
        types: bool = False,
    ) -> None:
        """`types` lets the type checker read too: two seconds of CPU for each review."""
        self.clock = StoryClock()
        self.playground: Playground = serve(
            root=home / "github", clock=self.clock, deliver=False, wrap=wrap
        )
        self.state = self.playground.state
        self.state.create(REPO, SHOP)
        self.state.grant("alice", REPO, "write")
        self.state.person("mallory")
        self.app, key = self.state.app(
            "Regreen", hook_url="http://regreen/webhooks/github", keys=keys
        )
        self.model = ScriptedModel(answers) if answers is not None else None
        self._settings = Settings(
            _env_file=None,
            app_id=self.app.id,
            private_key=SecretStr(key),
            webhook_secret=SecretStr(self.app.secret),
            github_api_url=self.playground.api_url,
            home=home / "regreen",
            dashboard_auth=SecretStr(DASHBOARD_TOKEN),
            review_delay_s=0,
            anthropic_base_url=self.model.url if self.model else None,
            anthropic_api_key=SecretStr("scripted") if self.model else None,
            otlp_endpoint=collector,
        )
        self._sandbox = sandbox or proven_sandbox()
        self._reviewers = tuple(r for r in REVIEWERS if types or not isinstance(r[1], Pyright))
        self.regreen: RegreenApp = self._build()
        self.state.install(self.app, REPO)
        self._deliver_to(self.regreen)

    def _build(self) -> RegreenApp:
        return build_app(
            self._settings, clock=self.clock, sandbox=self._sandbox, reviewers=self._reviewers
        )

    def _deliver_to(self, regreen: RegreenApp) -> None:
        regreen.wsgi.testing = True
        self._door: FlaskClient = regreen.wsgi.test_client()

    def restart(self) -> None:
        """Stop Regreen and start it again on the same database."""
        self.regreen.close()
        self.regreen = self._build()
        self._deliver_to(self.regreen)

    # What people do.

    def pull(
        self,
        files: Files | None = None,
        *,
        by: str = "alice",
        title: str = "Sell in bulk",
        body: str | None = None,
        branch: str = "change",
        draft: bool = False,
    ) -> SeenPull:
        """Push a branch and open a pull request."""
        changed = files if files is not None else {"shop/bulk.py": "BULK = 100\n"}
        self.state.commit(REPO, changed, branch=branch, message=title, by=by)
        made = self.state.open_pull(REPO, branch, by=by, title=title, body=body, draft=draft)
        return SeenPull(self, made)

    def fork_pull(
        self, files: Files | None = None, *, by: str = "mallory", draft: bool = False
    ) -> SeenPull:
        """Somebody without a right forks the repository, pushes there, and opens a pull request."""
        name = self.state.fork(REPO, by).full_name
        changed = files if files is not None else {"shop/new.py": "NEW = 1\n"}
        self.state.commit(name, changed, branch="change", by=by)
        made = self.state.open_pull(
            REPO, "change", by=by, title="Mine", draft=draft, from_fork=name
        )
        return SeenPull(self, made)

    def issue(self, title: str, body: str | None = None, *, by: str = "alice") -> SeenIssue:
        """Open an issue."""
        return SeenIssue(self.state.open_issue(REPO, title, body, by=by))

    def says(self, login: str, text: str, on: SeenPull | SeenIssue) -> Comment:
        """Somebody comments."""
        return self.state.comment(on.raw, text, by=login)

    def pushes(
        self, pull: SeenPull, files: Files, *, by: str = "alice", message: str = "More"
    ) -> str:
        """Somebody pushes to a pull request's branch."""
        name = pull.raw.head.full_name
        return self.state.commit(name, files, branch=pull.raw.head_ref, message=message, by=by)

    def commits(self, files: Files, *, by: str = "alice", message: str = "Change") -> str:
        """Somebody pushes to the main branch."""
        return self.state.commit(REPO, files, message=message, by=by)

    def configures(self, text: str) -> str:
        """Somebody pushes `.github/regreen.yml` to the main branch."""
        return self.commits({".github/regreen.yml": text}, message="Configure Regreen")

    def grants(self, login: str, level: Level) -> None:
        """The owner gives somebody a permission."""
        self.state.grant(login, REPO, level)

    def ci_fails(self, sha: str, **how: object) -> WorkflowRun:
        """A workflow run on a commit fails: job=, steps=, failed=, log=."""
        return self.state.fail_ci(REPO, sha, **how)  # type: ignore[arg-type]

    def passes(self, **span: float) -> None:
        """Time goes by (hours=, minutes=, days=)."""
        self.clock.pass_time(timedelta(**span))

    # What happens then.

    def deliver(self) -> int:
        """GitHub delivers the webhooks that wait; how many."""
        delivered = self.state.flush(self._post)
        self.regreen.intake.dispatch_deliveries()
        return delivered

    def work(self) -> None:
        """Webhooks arrive and jobs run, until there is nothing left to do."""
        for _ in range(50):
            delivered = self.deliver()
            worked = self.regreen.run_due_jobs()
            if not delivered and not worked:
                return
        raise AssertionError("Regreen keeps itself busy: fifty rounds and no end")

    def _post(self, url: str, headers: Mapping[str, str], body: bytes) -> Posted:  # noqa: ARG002
        # Jobs run in the order of arrival: no two deliveries arrive in the same microsecond.
        self.clock.pass_time(timedelta(milliseconds=1))
        got = self._door.post("/webhooks/github", data=body, headers=dict(headers))
        return Posted(got.status_code, dict(got.headers), got.text)

    # What a person sees.

    @property
    def pulls(self) -> list[SeenPull]:
        """Every pull request."""
        return [SeenPull(self, one) for one in self.state.repository(REPO).pulls.values()]

    @property
    def issues(self) -> list[SeenIssue]:
        """Every issue that is no pull request."""
        found = self.state.repository(REPO).issues.values()
        return [SeenIssue(one) for one in found if one.pull is None]

    def reactions(self, to: Comment) -> list[str]:
        """The reactions Regreen left."""
        return [one.content for one in to.reactions if one.user.type == "Bot"]

    def jobs(self) -> list[Job]:
        """Every job of every workflow run."""
        return [job for run in self.state.repository(REPO).runs for job in run.jobs]

    def end(self) -> None:
        """Close everything; the story fails if anything unforeseen happened on the way."""
        refused = [
            (one.event, one.status_code, one.response)
            for one in self.app.deliveries
            if one.status != "pending" and one.status_code >= 300
        ]
        crashed = [
            (job.kind, job.note)
            for job in self.regreen.store.jobs()
            if "went wrong inside Regreen" in job.note
        ]
        self.regreen.close()
        self.playground.close()
        if self.model is not None:
            self.model.close()
            assert self.model.surprises == []
        assert self.state.surprises == []
        assert refused == []
        assert crashed == []


def shown_page(story: Story, path: str) -> str:
    """A page of the dashboard, as its operator sees it."""
    header = {"Authorization": f"Bearer {DASHBOARD_TOKEN}"}
    return story.regreen.wsgi.test_client().get(path, headers=header).text


def shown_job(story: Story, kind: str) -> str:
    """The page of the newest job of a kind."""
    job = max((j for j in story.regreen.store.jobs() if j.kind == kind), key=lambda j: j.created)
    return shown_page(story, f"/jobs/{job.id}")


def _visible(text: str) -> str:
    """A comment without its hidden HTML comments."""
    shown = text
    while "<!--" in shown:
        head, _, rest = shown.partition("<!--")
        shown = head + rest.partition("-->")[2]
    return shown.strip()
