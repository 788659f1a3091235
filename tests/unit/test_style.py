from __future__ import annotations

from pathlib import Path

import pytest

from regreen.domain.models import Review
from tests.unit.changes import Files, Story

LOGGED = (
    "import logging\n\nlog = logging.getLogger(__name__)\n\n\ndef run(n):\n"
    + "    log.info('x')\n" * 8
)
HABIT: Files = {f"pkg/m{n}.py": LOGGED for n in range(5)}
PRINTS = {"pkg/new.py": "def show(n):\n    print(n)\n"}


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path / "repo")


def style(result: Review) -> tuple[list[str], list[str]]:
    """Rules posted, rules withheld."""
    posted = [f.rule for f in result.findings if f.dimension == "style"]
    return posted, [w.finding.rule for w in result.withheld if w.finding.dimension == "style"]


def test_a_habit_alone_is_never_posted(story: Story) -> None:
    story.change(HABIT, PRINTS)
    result = story.review()
    assert style(result) == ([], ["convention/messages-go-to-logging"])
    (kept,) = [w.finding for w in result.withheld if w.finding.dimension == "style"]
    assert "40 of 40 places" in kept.body


def test_style_is_not_scored_where_no_habit_was_learned(story: Story) -> None:
    story.change({"pkg/old.py": "X = 1\n"}, PRINTS)
    assert story.review().scores["style"] is None


def test_a_habit_that_the_repository_wrote_down_is_posted_with_the_quote(story: Story) -> None:
    story.change({**HABIT, "CONTRIBUTING.md": "# How\n- Never use print: log it.\n"}, PRINTS)
    result = story.review()
    assert style(result) == (["convention/messages-go-to-logging"], [])
    (said,) = [f for f in result.findings if f.dimension == "style"]
    assert 'CONTRIBUTING.md says: "Never use print: log it"' in said.body


def test_a_line_of_over_4000_characters_states_no_rule(story: Story) -> None:
    story.change({**HABIT, "CONTRIBUTING.md": f"{'Log. ' * 800}. Never use print.\n"}, PRINTS)
    assert style(story.review())[0] == []


def test_a_rule_that_nobody_keeps_is_not_enforced(story: Story) -> None:
    habit = {**HABIT, "pkg/loud.py": "print(1)\n" * 20, "CONTRIBUTING.md": "Never use print.\n"}
    story.change(habit, PRINTS)
    assert style(story.review()) == ([], [])


def test_a_rule_that_the_change_itself_writes_does_not_count(story: Story) -> None:
    story.change(HABIT, {**PRINTS, "CONTRIBUTING.md": "Never use print.\n"})
    assert style(story.review())[0] == []


def test_the_repositorys_own_linter_waits_for_the_sandbox(story: Story) -> None:
    story.change({"pyproject.toml": "[tool.ruff]\n"}, PRINTS)
    skipped = {s.reviewer: s.reason for s in story.review().skipped}
    assert "ruff is configured" in skipped["the repository's linters"]


@pytest.mark.parametrize(
    ("path", "line", "suggested"),
    [
        ("src/pkg/sub/new.py", "from . import odd\n", "from pkg.sub import odd"),
        ("src/pkg/sub/new.py", "from ..m1 import (  # both\n    a,\n    b,\n)\n", "from pkg.m1 import (  # both"),
        ("src/pkg/sub/__init__.py", "from .odd import a\n", "from pkg.sub.odd import a"),
        ("src/pkg/sub/new.py", "from ... import odd\n", None),  # beyond the outermost package
        ("src/loose/new.py", "from . import odd\n", None),  # the package has no __init__.py
    ],
)  # fmt: skip
def test_a_relative_import_where_the_rule_wants_absolute_ones_comes_with_its_mending(
    story: Story, path: str, line: str, suggested: str | None
) -> None:
    habit: Files = {f"src/pkg/m{n}.py": f"from pkg.sub import a{n}\n" * 40 for n in range(2)}
    inits = {"src/pkg/__init__.py": "", "src/pkg/sub/__init__.py": "", "src/pkg/sub/odd.py": "a = 1\n"}  # fmt: skip
    story.change({**habit, **inits, "CONTRIBUTING.md": "Use absolute imports.\n"}, {path: line})
    (found,) = [f for f in story.review().findings if f.dimension == "style"]
    assert found.suggestion == suggested
