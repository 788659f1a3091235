"""The three call paths of docs/architecture.md, traced: each story passes through the modules that the page names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from regreen import isolation
from regreen.domain.events import PullRequestChanged
from regreen.domain.models import Finding
from regreen.fixers.case import FixResult, PatchVerdict, Proposal, RungResult
from regreen.fixers.verify_patch import AppliedPatch, PatchVerification
from tests.stories.call_tracing import trace_modules
from tests.stories.story import Story
from tests.stories.test_fixes import needs_sandbox
from tests.stories.test_fixes import (
    test_red_ci_becomes_a_verified_draft_and_is_not_doubled as repair_red_ci,
)
from tests.stories.test_reviews import FAULT

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
MOST_MODULES = 9


@pytest.fixture(autouse=True)
def _analyze_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    # A child process is not traced; what it would do is done here.
    monkeypatch.setattr(isolation._server_pool, "is_child", True)


def _documented(name: str) -> set[str]:
    """The modules that the page names in the paragraph of a path."""
    (paragraph,) = re.findall(rf"^\*\*{name}\.\*\* (.*)$", PAGE.read_text(), re.MULTILINE)
    return set(re.findall(r"`([\w/]+\.py)`", paragraph))


def test_a_delivery(story: Story) -> None:
    with trace_modules(PullRequestChanged) as modules:
        pull = story.pull(FAULT)
        story.deliver()
        story.work()
    assert pull.checks
    assert "webhooks/parse.py" in modules
    assert set(modules) <= _documented("A delivery")
    assert len(modules) <= MOST_MODULES


def test_a_finding(story: Story) -> None:
    pull = story.pull(FAULT)
    with trace_modules(Finding) as modules:
        story.work()
    assert pull.remarks
    assert "reviewers/findings.py" in modules
    assert set(modules) <= _documented("A finding")
    assert len(modules) <= MOST_MODULES


@needs_sandbox
@pytest.mark.sandbox
def test_a_patch(story: Story) -> None:
    kinds = (Proposal, RungResult, AppliedPatch, PatchVerification, PatchVerdict, FixResult)
    with trace_modules(*kinds) as modules:
        repair_red_ci(story)
    assert "fixers/verify_patch.py" in modules
    assert set(modules) <= _documented("A patch")
    assert len(modules) <= MOST_MODULES
