"""What a repository asks of pull requests, read from its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from regreen.adapters.git.repository import GitRepository
from regreen.bot.flows.conventions import (
    PullRequestCustoms,
    _owner_pattern_covers,
    read_conventions,
)
from tests.checkout import Checkout


@pytest.mark.parametrize(
    ("pattern", "covered", "other"),
    [
        ("*", ("a.py", "d/e.py"), ()),
        ("*.js", ("a.js", "d/e.js"), ("a.py",)),
        ("/build/logs/", ("build/logs/a", "build/logs/b/c"), ("x/build/logs/a", "build/logs")),
        ("docs/*", ("docs/a.md",), ("docs/b/c.md", "x/docs/a.md")),
        ("apps/", ("apps/a", "x/apps/b/c"), ("apps",)),
        ("**/logs", ("logs/a", "x/y/logs/b"), ("logs2/a",)),
        ("/docs/**/api.md", ("docs/api.md", "docs/a/b/api.md"), ("api.md",)),
        ("**/**/**/**/**", (), ("a/b",)),
    ],
)
def test_patterns_of_code_owners(
    pattern: str, covered: tuple[str, ...], other: tuple[str, ...]
) -> None:
    assert all(_owner_pattern_covers(pattern, path) for path in covered)
    assert not any(_owner_pattern_covers(pattern, path) for path in other)


@pytest.mark.parametrize(
    ("typed", "title", "fitted"),
    [
        (False, "Fix 2 tests: a, …", "Fix 2 tests: a, …"),
        (True, "Fix 2 tests: a, …", "fix: 2 tests: a, …"),
        (True, "Revert “Tidy”", "revert: “Tidy”"),
    ],
)
def test_titles(typed: bool, title: str, fitted: str) -> None:
    assert PullRequestCustoms(typed=typed).adapt_title(title) == fitted


def test_a_template_without_headings_comes_after_the_report() -> None:
    owners = (("*", ("@all",)), ("a.py", ()))
    customs = PullRequestCustoms(template="Thank you!", owners=owners)
    assert customs.adapt_body("Report.", ("a.py",)) == "Report.\n\nThank you!"
    assert (
        customs.adapt_body("Report.", ("b.py",)) == "Report.\n\nCode owners: `@all`.\n\nThank you!"
    )


@pytest.mark.parametrize(
    ("template", "kept"),
    [
        ("## What\n<!-- say it -->\n\nWhy\n", "## What\n\n\nWhy"),
        ("## What\n<!-- never closed\n\n## Checklist\n- [ ] docs\n", "## What"),
        ("## What\n<!<!-- x -->-- hidden\n", "## What\n hidden"),
    ],
)
def test_a_comment_in_a_template_hides_nothing_of_the_report(
    tmp_path: Path, template: str, kept: str
) -> None:
    checkout = Checkout(tmp_path / "repo")
    head = checkout.commit("Begin", **{".github/pull_request_template.md": template})
    seen = read_conventions(GitRepository.open(checkout.root), head)
    assert seen.template == kept
    body = seen.adapt_body("The report.", ("a.py",))
    assert "<!--" not in body
    assert "The report." in body


def test_commits_and_files_show_what_a_repository_asks_for(tmp_path: Path) -> None:
    checkout, head = Checkout(tmp_path / "repo"), ""
    git = GitRepository.open(checkout.root)
    for number in range(6):
        head = checkout.commit(f"fix(core): step {number}\n\nSigned-off-by: A <a@b>", a=str(number))
    seen = read_conventions(git, head)
    assert (seen.sign_off, seen.typed, seen.template) == (True, True, "")
    for number in range(9):
        head = checkout.commit(f"Step {number}", a=f"{number}.")
    seen = read_conventions(git, head)
    assert (seen.sign_off, seen.typed) == (False, False)
