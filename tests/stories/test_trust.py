"""Strangers send code: what is run, for whom, at which commit, and with which token."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Event

import pytest
from regreen_playground.acts import owners
from regreen_playground.acts.actions import JobReport
from regreen_playground.outbox import Answer

from regreen.bot.open_tasks import list_open_tasks
from regreen.domain.github import FIX_SCOPE, RESOLVE_SCOPE, REVIEW_SCOPE
from regreen.domain.models import BoxLimits, DoctorCheck, EnvSpec, PreparedEnv
from regreen.domain.ports import Box, Sandbox
from tests.stories.conftest import Tell
from tests.stories.story import REPO, UNTESTED, SeenPull, Story, proven_sandbox
from tests.stories.test_fixes import needs_sandbox
from tests.stories.test_reviews import FAULT

TESTS = 'prove: {enabled: false}\ntests: {command: "python -m unittest"}\n'
_RAN = "Test coverage of new lines: 100% (1 of 1)."
_RED = (JobReport("lint", (("Lint", "failure"),), b"F401\n"),)
TESTED = {
    "shop/new.py": "NEW = 1\n",
    "tests/test_new.py": (
        "import unittest\n\nfrom shop.new import NEW\n\n\nclass NewTest(unittest.TestCase):\n"
        "    def test_new(self):\n        self.assertEqual(NEW, 1)\n"
    ),
}


class Prepared:
    """This machine's sandbox, and a list of whom each environment was prepared for."""

    def __init__(self, inner: Sandbox, seen: list[tuple[str, str]]) -> None:
        self._inner, self._seen, self.name = inner, seen, inner.name

    def prepare(
        self, spec: EnvSpec, tree: Iterable[bytes], cancel: Event | None = None
    ) -> PreparedEnv:
        self._seen.append((spec.trust, spec.scope))
        return self._inner.prepare(spec, tree, cancel)

    def open(self, env: PreparedEnv, tree: Iterable[bytes], limits: BoxLimits | None = None) -> Box:
        return self._inner.open(env, tree, limits)

    def pythons(self) -> tuple[str, ...]:
        return self._inner.pythons()

    def doctor(self) -> list[DoctorCheck]:
        return self._inner.doctor()


def _watched(tell: Tell) -> tuple[Story, list[tuple[str, str]]]:
    seen: list[tuple[str, str]] = []
    story = tell(None, proven_sandbox().with_tracing(lambda sandbox: Prepared(sandbox, seen)))
    story.configures(TESTS)
    story.work()
    return story, seen


def _summary(pull: SeenPull) -> str:
    return pull.check.summary or ""


def _says_approve_then_the_author_pushes(story: Story, pull: SeenPull, command: str) -> str:
    story.passes(minutes=1)
    story.says("alice", command, on=pull)
    seen = pull.raw.head_sha
    story.passes(minutes=1)
    story.pushes(pull, {"shop/new.py": "import evil\n"}, by="mallory")
    story.work()
    return seen


# Whose code runs


@needs_sandbox
@pytest.mark.sandbox
def test_a_forks_code_runs_once_its_commit_is_approved_and_no_other(tell: Tell) -> None:
    story, prepared = _watched(tell)
    pull = story.fork_pull(TESTED)
    story.work()
    assert prepared == []
    assert "`/approve` on its pull request" in _summary(pull)
    assert len(_approvals(story)) == 1
    story.says("alice", "/approve", on=pull)
    story.work()
    assert _RAN in _summary(pull)
    assert _approvals(story) == []
    before = len(prepared)
    story.pushes(pull, {"shop/new.py": "NEW = 1 \n"}, by="mallory")
    story.work()
    assert _RAN not in _summary(pull)
    assert len(prepared) == before


def _approvals(story: Story) -> list[str]:
    """What the first page lists as waiting for an approval."""
    tasks = list_open_tasks(story.regreen.store, story.clock.now(), lambda _: True)
    return [task.text for task in tasks if task.state == "waiting"]


@needs_sandbox
@pytest.mark.sandbox
def test_environments_of_main_of_pull_requests_and_of_each_fork_are_kept_apart(tell: Tell) -> None:
    story, prepared = _watched(tell)
    main, ours = story.issue("Broken"), story.pull(TESTED, branch="ours", draft=True)
    theirs = story.fork_pull(TESTED, draft=True)
    others = story.fork_pull(TESTED, by="trudy", draft=True)
    story.work()
    scopes = []
    for where in (main, ours, theirs, others):
        prepared.clear()
        story.says("alice", '/bisect test="false"', on=where)
        story.work()
        scopes.append(set(prepared))
    fork = f"{REPO}/fork"
    assert scopes == [
        {("default_branch", REPO)},
        {("pull_request", REPO)},
        {("pull_request", f"{fork}/{theirs.number}")},
        {("pull_request", f"{fork}/{others.number}")},
    ]


@needs_sandbox
@pytest.mark.sandbox
def test_a_repair_of_main_keeps_its_patched_trees_away_from_mains_environments(tell: Tell) -> None:
    story, prepared = _watched(tell)
    issue = story.issue("Broken")
    story.says("alice", "/fix", on=issue)
    story.work()
    assert set(prepared) == {("pull_request", f"{REPO}/repair")}


def test_a_run_of_a_fork_that_is_gone_starts_no_repair(tell: Tell) -> None:
    story, prepared = _watched(tell)
    pull = story.fork_pull(TESTED)
    story.work()
    story.state.close(pull.raw)
    fork = story.state.repository("mallory/shop")
    owners.delete(story.state, fork)
    story.state.run_ci(REPO, pull.raw.head_sha, _RED, branch="main", head=fork)
    story.work()
    (note,) = [job.note for job in story.regreen.store.jobs(kinds=("fix",))]
    assert note in {"the branch has moved on", "a fork: nothing can be pushed there"}
    assert prepared == []


@needs_sandbox
@pytest.mark.sandbox
def test_a_strangers_commit_is_not_run_from_an_issue_either(tell: Tell) -> None:
    story, prepared = _watched(tell)
    pull, issue = story.fork_pull(TESTED), story.issue("Broken")
    story.work()
    story.says("alice", f'/bisect bad={pull.raw.head_sha} test="true"', on=issue)
    story.work()
    assert "The bisection was not started: " in issue.comments[0]
    assert "is on no branch of this repository" in issue.comments[0]
    assert "log" not in issue.comments[0], "Regreen's log has no more to say"
    assert prepared == []


# Who may


@pytest.mark.parametrize(
    "command", ["/fix", "/why", "/prove", '/bisect test="true"', "/test", "/approve"]
)
def test_on_a_forks_pull_request_running_code_takes_write_access(tell: Tell, command: str) -> None:
    story, prepared = _watched(tell)
    story.configures(TESTS + "commands: {allow: read}\n")
    story.grants("mallory", "read")
    pull = story.fork_pull(TESTED, draft=True)
    story.says("mallory", command, on=pull)
    story.work()
    assert pull.comments == [
        f"> `{command}`\n\n@mallory, only people with write access may do that."
    ]
    assert prepared == []


@needs_sandbox
@pytest.mark.sandbox
def test_on_a_branch_of_ours_the_configuration_says_who_may(story: Story) -> None:
    story.commits(UNTESTED)
    story.configures("commands: {allow: read}\n")
    story.grants("mallory", "read")
    pull = story.pull(draft=True)
    story.says("mallory", "/fix", on=pull)
    story.work()
    assert "no workflow run has failed at this commit" in pull.comments[0]


# Which commit


@pytest.mark.parametrize("command", ["/approve", "/fix", '/bisect test="true"'])
def test_a_command_is_for_the_commit_that_its_author_saw(tell: Tell, command: str) -> None:
    story, prepared = _watched(tell)
    pull = story.fork_pull(TESTED, draft=True)
    story.work()
    seen = _says_approve_then_the_author_pushes(story, pull, command)
    (answer,) = pull.comments
    assert seen[:12] in answer
    assert f"the head is {pull.raw.head_sha[:12]} now" in answer
    assert prepared == []


def test_a_command_that_comes_late_is_for_the_commit_of_its_time(tell: Tell) -> None:
    story, prepared = _watched(tell)
    pull = story.fork_pull(TESTED, draft=True)
    story.passes(minutes=1)
    story.work()
    said = story.says("alice", "/approve", on=pull)
    said.created = said.updated = story.state.now()
    story.passes(minutes=1)
    story.pushes(pull, {"shop/new.py": "import evil\n"}, by="mallory")
    waiting = story.app.deliveries
    waiting.sort(key=lambda one: one.event == "issue_comment")  # the push is told of first
    story.work()
    assert "and the head is" in pull.comments[0]
    assert prepared == []


def test_an_approval_may_name_its_commit(story: Story) -> None:
    pull = story.fork_pull(draft=True)
    story.work()
    _says_approve_then_the_author_pushes(story, pull, "/approve")
    head = pull.raw.head_sha
    story.says("alice", f"/approve {head[:12]}", on=pull)
    story.work()
    assert f"the tests of `{head[:12]}` may run" in pull.comments[-1]
    story.says("alice", f"/approve {'0' * 12}", on=pull)
    story.work()
    assert "was given for 000000000000" in pull.comments[-1]


# Edited comments


def test_an_edit_by_somebody_else_runs_nothing(story: Story) -> None:
    story.state.person("renovate[bot]").type = "Bot"
    issue = story.issue("Broken")
    said = story.says("renovate[bot]", "- [ ] /config", on=issue)
    theirs = story.says("mallory", "Hello", on=issue)
    story.work()
    story.state.edit(said, "- [x]\n/config", by="alice")
    story.state.edit(theirs, "Hello\n/config", by="alice")
    story.work()
    assert [c for c in issue.comments if "In force" in c] == []


def test_an_edit_runs_only_what_the_comment_did_not_hold_before(story: Story) -> None:
    issue = story.issue("Broken")
    said = story.says("alice", "/config", on=issue)
    story.state.flush(lambda *_: Answer(502, {}, ""))
    story.app.deliveries.clear()
    story.state.edit(said, "/config\n/help", by="alice")
    story.work()
    assert [job.note for job in story.regreen.store.jobs(kinds=("comment",)) if job.number] == [
        "help"
    ]


# Tokens


def test_every_token_is_for_one_repository_and_the_least_that_its_job_needs(story: Story) -> None:
    story.state.create("acme/other", {"README.md": "# Other\n"})
    story.state.install(story.app, "acme/other")
    story.work()
    story.state.tokens.clear()
    pull = story.pull(FAULT)
    story.work()
    assert pull.remarks
    shop = {story.state.repository(REPO).id}
    asked = list(story.state.tokens.values())
    assert asked
    assert {frozenset(token.repositories or ()) for token in asked} <= {frozenset(shop)}
    allowed = [dict(token.permissions) for token in asked]
    assert dict(REVIEW_SCOPE) in allowed
    assert dict(FIX_SCOPE) not in allowed
    assert [a for a in allowed if a.get("contents") == "write"] in ([], [dict(RESOLVE_SCOPE)])
