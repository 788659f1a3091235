"""A machine whose sandbox does not hold: it reviews, and runs nothing of anybody's."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from threading import Event

import pytest

from regreen.adapters.sandbox.selection import choose_sandbox
from regreen.bot.sandbox_trust import SandboxProvider
from regreen.domain.errors import NoSandbox
from regreen.domain.models import BoxLimits, DoctorCheck, EnvSpec, PreparedEnv
from regreen.domain.ports import Box, Sandbox
from tests.stories.conftest import Tell
from tests.stories.story import DASHBOARD_TOKEN, REPO, Story, StoryClock, shown_job
from tests.stories.test_reviews import FAULT

_TESTS = 'tests: {command: "python -m unittest -q"}\n'


class _Leaky:
    """A backend that is there, and that nothing may ever be let into."""

    name = "leaky"

    def prepare(
        self, spec: EnvSpec, tree: Iterable[bytes], cancel: Event | None = None
    ) -> PreparedEnv:
        raise AssertionError("foreign code was let in", spec, tree, cancel)

    def open(self, env: PreparedEnv, tree: Iterable[bytes], limits: BoxLimits | None = None) -> Box:
        raise AssertionError("foreign code was let in", env, tree, limits)

    def pythons(self) -> tuple[str, ...]:
        return ("3.11",)

    def doctor(self) -> list[DoctorCheck]:
        return []


def _leaky() -> SandboxProvider:
    return SandboxProvider(
        _Leaky, lambda _: "reads the host's files: GOT /etc/shadow", StoryClock()
    )


def _none() -> SandboxProvider:
    def choose() -> Sandbox:
        raise NoSandbox("nothing here can run foreign code; install Docker")

    return SandboxProvider(choose, lambda _: "", StoryClock())


@pytest.fixture
def leaky(tell: Tell) -> Story:
    story = tell(None, _leaky())
    story.configures(_TESTS)
    return story


def test_reviews_go_on(leaky: Story) -> None:
    pull = leaky.pull(FAULT)
    leaky.work()
    assert pull.remarks
    assert "no sandbox" in (pull.check.summary or "")


def test_a_fix_is_refused_and_only_the_operator_reads_which_attack_got_through(
    leaky: Story,
) -> None:
    pull = leaky.pull(draft=True)
    said = leaky.says("alice", "/fix", on=pull)
    leaky.work()
    (answer,) = pull.comments
    assert "the sandbox of Regreen's machine does not hold, so no foreign code is run" in answer
    shown = [answer, shown_job(leaky, "fix"), *(one.summary or "" for one in leaky.state.checks_on(REPO, pull.raw.head_sha))]  # fmt: skip
    assert not any("shadow" in text for text in shown)
    attack = "the sandbox 'leaky' does not hold (reads the host's files: GOT /etc/shadow)"
    assert attack in leaky.regreen.services.sandbox.describe_missing()
    assert leaky.reactions(said) == ["eyes", "confused"]


def test_a_bisection_is_refused_where_there_is_no_sandbox(tell: Tell) -> None:
    story = tell(None, _none())
    issue = story.issue("Broken")
    story.says("alice", '/bisect test="true"', on=issue)
    story.work()
    assert "nothing here can run foreign code; install Docker" in issue.comments[0]


def test_the_dashboard_says_so_from_the_start(leaky: Story) -> None:
    leaky.regreen.enqueue_startup_work()
    leaky.work()
    page = leaky.regreen.wsgi.test_client()
    first = page.get("/", headers={"Authorization": f"Bearer {DASHBOARD_TOKEN}"}).text
    assert "No repairs and no bisections, reviews run no tests: the sandbox" in first
    leaky.pull()
    leaky.work()
    first = page.get("/", headers={"Authorization": f"Bearer {DASHBOARD_TOKEN}"}).text
    assert "see <code>regreen doctor</code></p>" in first
    assert "Nothing waits for you, but the operator has to repair the sandbox" in first
    assert "sandbox: the sandbox 'leaky' does not hold" in page.get("/readyz").text


def test_the_sandbox_is_swept_at_start_and_every_hour(tell: Tell) -> None:
    swept: list[int] = []

    class Sweeping(_Leaky):
        def sweep(self) -> int:
            swept.append(1)
            return 0

    story = tell(None, SandboxProvider(Sweeping, lambda _: "", StoryClock()))
    story.regreen.enqueue_startup_work()
    story.work()
    for _ in range(2):
        story.passes(hours=1)
        story.regreen.enqueue_due_work()
        story.regreen.enqueue_due_work()
        story.work()
    assert len(swept) == 3


def test_a_machine_that_was_mended_is_found_again() -> None:
    clock, through = StoryClock(), ["a leak"]
    sandboxes = SandboxProvider(_Leaky, lambda _: through[0], clock)
    assert "a leak" in sandboxes.describe_missing()
    through[0] = ""
    assert "a leak" in sandboxes.describe_missing(), "not attacked anew for every question"
    clock.sleep(601)
    assert sandboxes.describe_missing() == ""


def test_a_repair_nobody_asked_for_says_quietly_why_it_broke_down(leaky: Story) -> None:
    pull = leaky.pull(FAULT)
    leaky.ci_fails(pull.raw.head_sha, job="test", steps=["Test"], failed="Test", log=b"red\n")
    leaky.work()
    assert pull.checks["Regreen repair"] == "neutral"
    assert "does not hold" in (pull.check.summary or "")
    assert "shadow" not in (pull.check.summary or "")
    assert pull.comments == []


def test_a_draft_hears_nothing_of_it(leaky: Story) -> None:
    pull = leaky.pull(draft=True)
    leaky.ci_fails(pull.raw.head_sha, job="test", steps=["Test"], failed="Test", log=b"red\n")
    leaky.work()
    assert pull.checks == {}
    assert pull.comments == []


def test_a_start_soon_after_another_one_trusts_its_proof(tmp_path: Path) -> None:
    clock, attacks = StoryClock(), list[str]()

    def attack(sandbox: Sandbox) -> str:
        attacks.append(sandbox.name)
        return ""

    def started() -> SandboxProvider:
        return SandboxProvider(_Leaky, attack, clock, tmp_path / "held")

    assert started().describe_missing() == ""
    assert started().describe_missing() == ""
    assert attacks == ["leaky"]
    clock.pass_time(timedelta(minutes=31))
    assert started().describe_missing() == ""
    assert attacks == ["leaky"] * 2
    (tmp_path / "held").write_text("another backend 2026-03-02T09:31:00+00:00\n")
    assert started().describe_missing() == ""
    assert attacks == ["leaky"] * 3, "what was proven was another sandbox"


def test_a_sandbox_that_does_not_hold_leaves_no_proof(tmp_path: Path) -> None:
    proof = tmp_path / "held"
    leaks = SandboxProvider(_Leaky, lambda _: "reads the host's files", StoryClock(), proof)
    assert "does not hold" in leaks.describe_missing()
    assert not proof.exists()


def test_a_setting_that_cannot_be_used_is_what_is_missing() -> None:
    wrong = SandboxProvider(
        lambda: choose_sandbox("docker", setup_hosts="10.0.0.0/8"), lambda _: "", StoryClock()
    )
    assert "REGREEN_SETUP_HOSTS: '10.0.0.0/8' is no host" in wrong.describe_missing()
