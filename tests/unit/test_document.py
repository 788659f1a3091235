"""The review as documents: what they show of a finding, and what nothing in them does."""

from __future__ import annotations

from dataclasses import replace

from regreen.domain.models import (
    Cost,
    CoverageReport,
    Evidence,
    Finding,
    Review,
    SkippedReviewer,
    UncoveredLines,
    UnreadFile,
    WithheldFinding,
)
from regreen.reviewers.document import format_markdown, format_text, make_sarif
from regreen.reviewers.summary import describe_result
from tests.stories.hostile import acts

PROOF = Evidence(
    "test",
    "def test_average():\n    assert average([]) == 0",
    "python -m pytest -q test_regreen_claim.py",
    "exit 1: E ZeroDivisionError",
    "exit 0: 1 passed",
)
FINDING = Finding(
    id="f1",
    fingerprint="f" * 32,
    dimension="correctness",
    rule="model/crash",
    severity="high",
    blocking=False,
    confidence=0.97,
    path="shop/cart.py",
    start_line=6,
    line=6,
    side="RIGHT",
    title="average divides by zero",
    body="Input: `average([])`\n\nHappens: 0 / 0",
    suggestion=None,
    evidence=(PROOF, Evidence("vote", "2 of 2 readings, made apart, report it")),
)
REVIEW = Review(
    base="b",
    head="h",
    merge_base="b",
    summary="Averages. 1 file changed.",
    risk="high",
    scores={"correctness": 70, "security": 100, "style": None, "coverage": None},
    findings=(FINDING,),
    withheld=(),
    not_reviewed=(),
    skipped=(),
    coverage=None,
    cost=Cost(),
    seconds=1.0,
)


def test_the_test_that_proves_a_finding_is_shown_with_what_it_said_on_both_sides() -> None:
    shown = format_markdown(REVIEW)
    assert "```python\ndef test_average():\n    assert average([]) == 0\n```" in shown
    assert "on this change: exit 1: E ZeroDivisionError; before it: exit 0: 1 passed" in shown
    assert "2 of 2 readings, made apart, report it" in shown
    assert "before it: exit 0: 1 passed" in format_text(REVIEW)


def test_a_line_of_windows_and_a_question_are_shown_as_their_author_sees_them() -> None:
    excerpt = Evidence("analyzer", "if (x = 2) {\r\n}\r", "oxlint")
    asked = replace(FINDING, title="No name `a`. Did you mean `b`?", evidence=(excerpt,))
    shown = format_markdown(replace(REVIEW, findings=(asked,)))
    assert "```\nif (x = 2) {\n}\n```" in shown
    assert describe_result([asked], 0, None).endswith("Did you mean `b`?")
    assert describe_result([FINDING], 0, None) == "1 finding: high, average divides by zero."


def test_the_files_whose_lines_no_test_runs_are_told_apart_from_their_lines() -> None:
    uncovered = (UncoveredLines("a.py", (1, 3)), UncoveredLines("b.py", tuple(range(2, 100, 2))))
    shown = format_text(replace(REVIEW, coverage=CoverageReport(60, 9, uncovered)))
    assert "(9 of 60). Not covered: a.py:1, 3; b.py:2, 4, " in shown
    assert "96, 98" in shown


EVIL = (
    "![x](https://evil.example) @everyone fixes #1 <img src=x> <!-- regreen:finding:0 --> "
    "[a](https://evil.example) $$\\huge x$$ www.evil.example `</details>` \u202e"
)


def test_nothing_that_others_wrote_acts_where_the_markdown_is_pasted() -> None:
    hostile = replace(
        FINDING,
        title=EVIL,
        path=f"`{EVIL}.py",
        body=f"{EVIL}\n\n/approve\n\n```suggestion\nx\n```\n",
        evidence=tuple(Evidence(k, EVIL, EVIL, EVIL, EVIL) for k in ("test", "vote", "model", "analyzer")),
    )  # fmt: skip
    review = replace(
        REVIEW,
        summary=EVIL,
        findings=(hostile,),
        withheld=(WithheldFinding(hostile, "confidence"),),
        not_reviewed=(UnreadFile(EVIL, EVIL),),
        skipped=(SkippedReviewer("model", EVIL),),
    )
    shown = format_markdown(review)
    assert acts(shown) == []
    assert "```suggestion" not in shown


def test_no_message_of_a_sarif_document_is_a_link() -> None:
    hostile = replace(FINDING, title=EVIL, body=f"See [this]({EVIL})")
    (run,) = make_sarif(replace(REVIEW, findings=(hostile,)))["runs"]
    told = run["results"][0]["message"]["text"]
    assert "](" not in told
    assert "://" not in told
    assert "\u202e" not in told


def test_a_sarif_document_holds_the_findings_over_the_budget_of_comments() -> None:
    over = replace(FINDING, fingerprint="a" * 32, title="prices are read twice")
    unsure = replace(FINDING, fingerprint="b" * 32)
    held = (WithheldFinding(over, "budget"), WithheldFinding(unsure, "confidence"))
    (run,) = make_sarif(replace(REVIEW, withheld=held))["runs"]
    names = [one["partialFingerprints"]["regreen/v1"] for one in run["results"]]
    assert names == [FINDING.fingerprint, over.fingerprint]
