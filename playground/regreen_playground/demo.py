"""Plays the whole main job on loopback: the real App, as its own process, against a playground."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import requests

from regreen.domain.errors import NoSandbox, OutsideError
from regreen_playground import runner, scenario
from regreen_playground.news import News
from regreen_playground.scenario import REPO
from regreen_playground.server import Playground, serve
from regreen_playground.things import App, Comment, Pull

Say = Callable[[str], None]
START_S = 60.0
# Only a slow machine comes near it.
ACT_S = 600.0


@dataclass(frozen=True, slots=True)
class Played:
    """How the demo went: what was missed (nothing, if all went well), and where to look."""

    missed: tuple[str, ...]
    playground: str
    dashboard: str


@dataclass(slots=True)
class _Stage:
    playground: Playground
    app: App
    url: str
    home: Path
    process: subprocess.Popen[bytes]
    news: News
    say: Say
    missed: list[str] = field(default_factory=list)

    def tell(self) -> None:
        """Say what is new."""
        for line in self.news.fresh():
            self.say(f"    {line}")

    def wait(self, what: str, seen: Callable[[], bool], seconds: float = ACT_S) -> bool:
        """Wait until something is seen, telling the news meanwhile; False (and noted) where it never was."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.tell()
            if seen():
                self.tell()
                return True
            if self.process.poll() is not None:
                msg = f"the App ended by itself; its log is {self.log}"
                raise OutsideError(msg)
            time.sleep(0.2)
        self.missed.append(what)
        self.say(f"  NOT SEEN within {seconds:.0f} s: {what}")
        return False

    @property
    def log(self) -> Path:
        """The App's log."""
        return self.home / "regreen.log"


def play(
    *, port: int = 0, keep: bool = False, say: Say, acts: Sequence[int] = (1, 2, 3, 4)
) -> Played:
    """Play the acts.

    Args:
        port: the playground's; 0 takes a free one.
        keep: leave playground and App running until interrupted.
        say: takes each line as it happens.
        acts: which, by number.

    Raises:
        NoSandbox: no sandbox works here, and all of the acts need one.
        OutsideError: the App does not start.
    """
    acts, left_out = _choose_acts(acts, say)
    home = Path(tempfile.mkdtemp(prefix="regreen-demo-"))
    with serve(port) as playground:
        stage = _set(playground, home, say)
        try:
            _begin(stage)
            for number in acts:
                _act(stage, number)
            if left_out:
                say(f"\n{left_out} `regreen doctor` says what a sandbox needs here.")
            _close(stage, keep=keep)
        except (KeyboardInterrupt, SystemExit):
            _stop(stage.process)
            shutil.rmtree(home, ignore_errors=True)
            raise
        finally:
            _stop(stage.process)
    if stage.missed:
        say(f"The App's log is kept: {stage.log}")
    else:
        shutil.rmtree(home, ignore_errors=True)
    return Played(tuple(stage.missed), playground.url, stage.url)


def _choose_acts(acts: Sequence[int], say: Say) -> tuple[Sequence[int], str]:
    """The acts that can be played with the settings that the App will have, and why the others are left out.

    Raises:
        NoSandbox: none of them can.
    """
    from regreen.adapters.sandbox.attacks.attack import is_approximate, self_test
    from regreen.adapters.sandbox.selection import choose_sandbox

    try:
        sandbox = choose_sandbox(
            os.environ.get("REGREEN_SANDBOX") or "auto", os.environ.get("REGREEN_SANDBOX_RUNTIME")
        )
        if not (unfit := self_test(sandbox)):
            approximate = " (with approximate limits)" if is_approximate(sandbox) else ""
            say(f"Sandbox: {sandbox.name}{approximate}")
            return acts, ""
    except NoSandbox as error:
        unfit = str(error)
    possible = [number for number in acts if number in _WITHOUT_SANDBOX]
    if not possible:
        raise NoSandbox(unfit)
    say(f"Sandbox: none. {unfit}")
    titles = "; ".join(ACTS[number][0] for number in acts if number not in possible)
    return possible, f"Left out, because code would have to run: {titles}." if titles else ""


def _set(playground: Playground, home: Path, say: Say) -> _Stage:
    state = playground.state
    say(f"Playground: {playground.url}")
    repository = scenario.build(state, state.now())
    main = repository.git.branch("main") or ""
    history = repository.git.text("rev-list", "--count", "main")
    say(f"Repository: {playground.url}/{REPO}, {history} commits")
    state.run_ci(REPO, main, runner.run(repository.git, main), by="ada")
    where = _free_port()
    url = f"http://127.0.0.1:{where}"
    app, key = state.app("Regreen", hook_url=f"{url}/webhooks/github", owner="orchard")
    process = _start(playground, app, key, home, where)
    news = News(state, app)
    return _Stage(playground, app, url, home, process, news, say)


def _begin(stage: _Stage) -> None:
    _until_ready(stage)
    stage.say(f"App: {stage.url} (process {stage.process.pid}, log {stage.log})")
    stage.playground.state.install(stage.app, REPO)
    heard = "the installation is heard of"
    stage.wait(heard, lambda: _answered(stage.app, "installation"), 30)


def _start(
    playground: Playground, app: App, key: str, home: Path, port: int
) -> subprocess.Popen[bytes]:
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("REGREEN_")},
        "REGREEN_APP_ID": str(app.id),
        "REGREEN_PRIVATE_KEY": key,
        "REGREEN_WEBHOOK_SECRET": app.secret,
        "REGREEN_GITHUB_API_URL": playground.api_url,
        "REGREEN_HOME": str(home),
        "REGREEN_PUBLIC_URL": f"http://127.0.0.1:{port}",
        "REGREEN_REVIEW_DELAY_S": "1",
        "REGREEN_SANDBOX_APPROXIMATE": "1",  # all code here is the playground's own
        **{
            name: os.environ[name]
            for name in ("REGREEN_MODEL", "REGREEN_SANDBOX", "REGREEN_SANDBOX_RUNTIME")
            if name in os.environ
        },
    }
    argv = [sys.executable, "-m", "regreen", "serve", "--port", str(port)]
    with (home / "regreen.log").open("wb") as log:
        return subprocess.Popen(argv, env=env, stdout=log, stderr=subprocess.STDOUT, cwd=home)


def _until_ready(stage: _Stage) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        if stage.process.poll() is not None:
            tail = stage.log.read_text(errors="replace")[-2000:]
            msg = f"the App did not start: {tail}"
            raise OutsideError(msg)
        try:
            if requests.get(f"{stage.url}/healthz", timeout=2).ok:
                return
        except requests.RequestException:
            time.sleep(0.2)
    msg = f"the App did not answer within {START_S:.0f} s"
    raise OutsideError(msg)


def _act(stage: _Stage, number: int) -> None:
    title, act = ACTS[number]
    stage.say(f"\nAct {number}: {title}")
    began = time.monotonic()
    act(stage)
    stage.say(f"  ({time.monotonic() - began:.0f} s)")


def _review(stage: _Stage) -> None:
    state = stage.playground.state
    sha = scenario.commits(state, "currency", scenario.CURRENCY)[-1]
    state.run_ci(REPO, sha, runner.run(state.repository(REPO).git, sha), by="chloe")
    pull = state.open_pull(
        REPO,
        "currency",
        by="chloe",
        title="Convert currencies and check limits",
        body="Converts amounts by the rates of the day. A limit that was passed is an error.",
    )
    stage.wait("a review with comments on lines", lambda: bool(pull.threads))
    stage.wait("a finished check run", lambda: _checked(stage, pull), 60)
    for thread in pull.threads:
        first = thread.comments[0]
        title = next((line for line in first.body.splitlines() if line.strip()), "")
        stage.say(f"    {first.path}:{first.line}  {title[:100]}")


def _repair(stage: _Stage) -> None:
    state = stage.playground.state
    git = state.repository(REPO).git
    sha = scenario.commits(state, "quarters", scenario.QUARTERS)[-1]
    pull = state.open_pull(
        REPO, "quarters", by="emi", title="Sum up by quarter", body="Adds quarterly sums."
    )
    state.run_ci(REPO, sha, runner.run(git, sha), event="pull_request", by="emi")

    def made() -> Pull | None:
        return _by(stage, ignore=pull)

    def waits() -> bool:
        return any("needs your approval" in (one.body or "") for one in pull.issue.comments)

    stage.wait("a repair", lambda: made() is not None or waits())
    if made() is None and waits():
        state.comment(pull, "/approve", by="chloe")
    if stage.wait("a draft pull request with the repair", lambda: made() is not None):
        patch = made()
        assert patch is not None  # noqa: S101 - just seen
        reports = runner.run(git, patch.head_sha)
        state.run_ci(REPO, patch.head_sha, reports, event="pull_request", by=stage.app.bot.login)
        ended = ", ".join(f"'{one.name}' {one.conclusion}" for one in reports)
        stage.tell()
        stage.say(f"    CI on the repair #{patch.number}: {ended}")


def _bisection(stage: _Stage) -> None:
    state = stage.playground.state
    issue = state.open_issue(
        REPO,
        "checks/roundtrip.py fails on main",
        "`python checks/roundtrip.py` says that notes are changed. It used to pass.",
        by="chloe",
    )
    asked = state.comment(issue, '/bisect test="python checks/roundtrip.py"', by="chloe")
    stage.wait(
        "the first bad commit is named",
        lambda: any("Tidy notes" in one.body for one in _said(stage, issue.comments)),
    )
    stage.wait("the command gets its last reaction", lambda: len(asked.reactions) > 1, 30)
    before = len(_said(stage, issue.comments))
    state.comment(issue, "/fix", by="mallory")
    stage.wait("the stranger is refused", lambda: len(_said(stage, issue.comments)) > before, 60)


def _schedule(stage: _Stage) -> None:
    state = stage.playground.state
    known = set(state.repository(REPO).issues)
    scenario.commits(state, "main", scenario.LATELY)
    # Every minute instead of every night, so that nobody has to wait for three o'clock.
    scenario.commits(state, "main", scenario.SCHEDULE.replace("{cron}", "* * * * *"))
    stage.say("    six commits are pushed to main, then the schedule's configuration")

    def found() -> bool:
        fresh = [one for n, one in state.repository(REPO).issues.items() if n not in known]
        return any(one.user is stage.app.bot and one.pull is None for one in fresh)

    stage.wait("an issue that names the culprit", found)
    # The schedule is taken back, so that a demo that is kept does not test main for ever.
    scenario.commits(
        state,
        "main",
        scenario.SCHEDULE_OFF,
    )


def _close(stage: _Stage, *, keep: bool) -> None:
    say, state = stage.say, stage.playground.state
    say("\nWhere to look:")
    for number, issue in state.repository(REPO).issues.items():
        page = "pull" if issue.pull else "issues"
        say(f"  {stage.playground.url}/{REPO}/{page}/{number}  {issue.title}")
    token = (stage.home / "dashboard-token").read_text()
    say(f"  {stage.url}/  the dashboard (any user name, password {token})")
    spent = _spent(stage.url)
    say(f"Cost: ${spent:.2f} for model calls" if spent is not None else "Cost: not known")
    if state.surprises:
        stage.missed += [one.splitlines()[0] for one in state.surprises]
    for one in stage.missed:
        say(f"MISSED: {one}")
    if keep:
        say("Everything keeps running; Ctrl-C ends it.")
        try:
            stage.process.wait()
        except KeyboardInterrupt:
            say("stopped")


def _spent(url: str) -> float | None:
    """What model calls have cost, by the App's own metrics; None where it does not say."""
    try:
        lines = requests.get(f"{url}/metrics", timeout=10).text.splitlines()
    except requests.RequestException:
        return None
    values = [line.split()[-1] for line in lines if line.startswith("regreen_model_usd ")]
    return float(values[0]) if values else None


def _checked(stage: _Stage, pull: Pull) -> bool:
    runs = stage.playground.state.checks_on(REPO, pull.head_sha)
    return bool(runs) and all(run.status == "completed" for run in runs)


def _by(stage: _Stage, ignore: Pull) -> Pull | None:
    for one in stage.playground.state.repository(REPO).pulls.values():
        if one is not ignore and one.issue.user is stage.app.bot:
            return one
    return None


def _said(stage: _Stage, comments: list[Comment]) -> list[Comment]:
    return [one for one in comments if one.user is stage.app.bot]


def _answered(app: App, event: str) -> bool:
    return any(one.event == event and one.status_code for one in app.deliveries)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


_WITHOUT_SANDBOX = (1,)
ACTS: dict[int, tuple[str, Callable[[_Stage], None]]] = {
    1: ("a pull request is reviewed", _review),
    2: ("failing CI is repaired", _repair),
    3: ("a regression is found; a stranger is refused", _bisection),
    4: ("a schedule finds main red", _schedule),
}
