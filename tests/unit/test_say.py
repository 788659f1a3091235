"""What people read on GitHub, word for word."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from inline_snapshot import snapshot
from markdown_it import MarkdownIt

from regreen.adapters.git.repository import GitRepository
from regreen.bisect.result import BlamedCommit, CulpritVerification, Observation
from regreen.bot import messages
from regreen.bot.feedback import dismiss_by_thread
from regreen.bot.messages.causes import format_cause
from regreen.bot.messages.markup import count_noun
from regreen.causes.investigation import BlamedPackage, RedCause
from regreen.code.file_change import CheckReason
from regreen.domain.errors import ConfigProblem
from regreen.domain.github import CheckRun
from regreen.domain.models import (
    Cost,
    CoverageReport,
    Evidence,
    Failure,
    Finding,
    Review,
    ReviewTestRun,
    Signals,
    SkippedReviewer,
    UncoveredLines,
    UnreadFile,
    WithheldFinding,
)
from regreen.domain.records import JobRecord
from regreen.domain.repo_config import RepoConfig, ReviewConfig, Schedule
from regreen.domain.state_records import Dismissal
from regreen.fixers.case import (
    Attempt,
    FixResult,
    GuiltyCommit,
    InitialFailure,
    OtherJobRun,
    PatchedRuns,
)
from regreen.fixers.report import format_markdown
from regreen.gate.judge import GateReport
from tests.checkout import Checkout
from tests.unit.test_bisect_picture import make_bisection

_FINDING = Finding(
    id="F1",
    fingerprint="abc",
    dimension="correctness",
    rule="model/off-by-one",
    severity="high",
    blocking=False,
    confidence=0.92,
    path="shop/prices.py",
    start_line=5,
    line=6,
    side="RIGHT",
    title="The last price is left out",
    body="`prices[:-1]` drops the last one: `total([1, 2])` is 1.",
    suggestion="    return sum(prices)\n",
    evidence=(Evidence("test", "AssertionError: 1 != 3", "pytest -q", "1 failed", "1 passed"),),
)
_REVIEW = Review(
    base="b" * 40,
    head="a" * 40,
    merge_base="b" * 40,
    summary="1 finding: high, The last price is left out.\n\nReviewed 1 of 1 file.",
    risk="low",
    scores={"correctness": 80, "security": 100, "style": None, "coverage": None},
    findings=(_FINDING,),
    withheld=(),
    not_reviewed=(),
    skipped=(),
    coverage=None,
    cost=Cost(),
    seconds=1.0,
    score_notes={
        "correctness": "1 high; read by a model",
        "security": "no finding; read by ruff",
        "style": "nothing reads this",
        "coverage": "the tests were not run",
    },
)
_CLEAN = replace(_REVIEW, findings=())


def test_a_finding() -> None:
    assert messages.finding_comment(_FINDING).body == snapshot("""\
**High: The last price is left out**

`prices[:-1]` drops the last one: `total([1, 2])` is 1.

<details><summary>Evidence (test): pytest -q; on this change: 1 failed; before it: 1 passed</summary>

```python
AssertionError: 1 != 3
```

</details>

```suggestion
    return sum(prices)
```

<sub>correctness · `model/off-by-one` · 92% likely to be right · wrong? `/dismiss F1`</sub>

<!-- regreen:finding:abc -->\
""")


def test_what_readers_and_a_second_reader_say_is_prose() -> None:
    told = (
        Evidence("vote", "2 of 2 readings, made apart, report it (trace, compare)"),
        Evidence("model", "A second reader finds that it holds. `total([])` divides by 0."),
    )
    body = messages.finding_comment(replace(_FINDING, evidence=told, suggestion=None)).body
    assert body.split("\n\n", 2)[2].rsplit("\n\n", 2)[0] == snapshot("""\
2 of 2 readings, made apart, report it (trace, compare).

<details><summary>What a second reader found</summary>

A second reader finds that it holds. `total([])` divides by 0.

</details>\
""")


def test_a_finding_is_likely_to_be_right_and_never_certain() -> None:
    sure = messages.finding_comment(replace(_FINDING, confidence=1.0)).body
    assert " · 99% likely to be right · " in sure


def test_a_review() -> None:
    overflow = WithheldFinding(replace(_FINDING, id="F2", title="Another"), "budget")
    coverage = CoverageReport(9, 7, (UncoveredLines("shop/prices.py", (5, 6)),))
    review = replace(_REVIEW, withheld=(overflow,), coverage=coverage)
    assert messages.review_body(review) == snapshot("""\
**1 finding: high, The last price is left out.**

- **high** `shop/prices.py:6` The last price is left out (92% likely to be right, `F1`)
- **high** `shop/prices.py:6` Another (92%, `F2`)

Beyond the limit of comments on lines: 1 in threads on their files.

Test coverage of new lines: 77% (7 of 9). Not covered: `shop/prices.py`: 5-6

<details><summary>Statistics (risk low)</summary>

Reviewed 1 of 1 file.

| score of 100 | | made of |
| --- | --- | --- |
| correctness | 80 | 1 high; read by a model |
| security | 100 | no finding; read by ruff |
| style | not scored | nothing reads this |
| coverage | not scored | the tests were not run |

Cost: no model; 1.0 s on Regreen's machine.

</details>

<sub>`/help` lists the commands · reproduce: `regreen review --base bbbbbbbbbbbb --head aaaaaaaaaaaa --run-tests`</sub>\
""")


def test_the_check_run_of_a_review() -> None:
    check = messages.review_check(_REVIEW, RepoConfig(), external_id="x", details_url="")
    title = "1 finding, worst is high: The last price is left out"
    assert (check.title, check.conclusion, check.buttons[0].label) == (title, "neutral", "Explain")
    assert check.summary == snapshot("""\
**1 finding: high, The last price is left out.**

- **high** `shop/prices.py:6` The last price is left out (92% likely to be right, `F1`)

<details><summary>Statistics (risk low)</summary>

Reviewed 1 of 1 file.

| score of 100 | | made of |
| --- | --- | --- |
| correctness | 80 | 1 high; read by a model |
| security | 100 | no finding; read by ruff |
| style | not scored | nothing reads this |
| coverage | not scored | the tests were not run |

</details>

Cost: no model; 1.0 s on Regreen's machine.

This check is neutral: `review.blocking` is `none`, so no finding blocks a merge.

Reproduce: `regreen review --base bbbbbbbbbbbb --head aaaaaaaaaaaa`

<details><summary>Verdict as JSON</summary>

```json
{
 "version": 1,
 "check": "Regreen",
 "head": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
 "verdict": "findings",
 "conclusion": "neutral",
 "findings": 1,
 "still_open": 0,
 "fixed": 0,
 "dismissed": 0,
 "worst": "high",
 "tests": null,
 "not_reviewed": []
}
```

</details>\
""")


_FAILED = ReviewTestRun(
    "pytest -q", 1, (Failure("test_a", "AssertionError", "1 != 3"), Failure("test_b", "E", ""))
)
_NO_MODEL = SkippedReviewer("model", "none is configured", by_policy=True)
_NO_TESTS = SkippedReviewer("coverage", "no sandbox", by_policy=True, tests_not_run=True)
_REFUTED = replace(_FINDING, signals=Signals(1, 1, "refuted"))
_UNSURE = (
    WithheldFinding(replace(_FINDING, severity="critical"), "confidence"),
    WithheldFinding(replace(_FINDING, severity="medium"), "confidence"),
    WithheldFinding(_REFUTED, "confidence"),
    WithheldFinding(_FINDING, "outside_diff"),
)


@pytest.mark.parametrize(
    ("review", "conclusion", "title", "verdict"),
    [
        (_CLEAN, "success", "No findings", "no_findings"),
        (replace(_CLEAN, not_reviewed=(UnreadFile("README.md", "prose", by_policy=True),)), "success", "No findings", "no_findings"),
        (replace(_CLEAN, skipped=(_NO_MODEL,)), "success", "No findings (no model)", "no_findings"),
        (replace(_CLEAN, skipped=(_NO_MODEL, _NO_TESTS)), "success", "No findings (no model; tests not run)", "no_findings"),
        (replace(_CLEAN, withheld=_UNSURE), "success", "No findings posted; 1 critical withheld as not sure enough", "no_findings"),
        (replace(_CLEAN, not_reviewed=(UnreadFile("a.py", "too large"),)), "neutral", "Not reviewed: a.py", "not_reviewed"),
        (replace(_CLEAN, withheld=_UNSURE, not_reviewed=(UnreadFile("a.py", "too large"),)), "neutral", "Not reviewed: a.py; 1 critical withheld as not sure enough", "not_reviewed"),
        (replace(_CLEAN, skipped=(SkippedReviewer("ruff", "failed"),)), "neutral", "Not reviewed: ruff", "not_reviewed"),
        (replace(_CLEAN, tests=_FAILED), "neutral", "2 tests failing", "tests_fail"),
        (replace(_CLEAN, tests=replace(_FAILED, fail_on_base=("test_b",))), "neutral", "2 tests failing", "tests_fail"),
        (replace(_CLEAN, tests=replace(_FAILED, fail_on_base=("test_b", "test_a"))), "neutral", "2 tests failing without the change too", "tests_fail"),
        (replace(_REVIEW, tests=_FAILED), "neutral", "2 tests failing; 1 finding, worst is high: The last price is left out", "tests_fail"),
    ],
)  # fmt: skip
def test_the_check_says_what_was_read_and_what_fails(
    review: Review, conclusion: str, title: str, verdict: str
) -> None:
    check = messages.review_check(review, RepoConfig(), external_id="x", details_url="")
    assert (check.conclusion, check.title) == (conclusion, title)
    block = (check.summary or "").rpartition("```json\n")[2].partition("\n```")[0]
    document = json.loads(block)
    assert (document["verdict"], document["conclusion"]) == (verdict, conclusion)


def test_untested_lines_are_links_to_the_reviewed_commit() -> None:
    missed = (UncoveredLines("shop/a b.py", (5, 6, 9)),)
    review = replace(_REVIEW, coverage=CoverageReport(1000, 997, missed))
    at = f"https://github.com/o/r/blob/{review.head}/shop/a%20b.py"
    told = f"Test coverage of new lines: 99% (997 of 1000). Not covered: `shop/a b.py`: [5-6]({at}#L5-L6), [9]({at}#L9)"
    web = "https://github.com/o/r"
    body = messages.review_body(review, web=web)
    assert told in body
    assert (
        "\n\n- **high** `shop/prices.py:6` The last price is left out (92% likely to be right, `F1`)\n\n"
        in body
    )
    failing = tuple(Failure(name, "AssertionError", "") for name in ("t.py::a", "t.py::b"))
    for failures, by in (
        (failing, ", by tests of which 2 fail. Not covered: "),
        (failing[:1], ", by tests of which 1 fails. Not covered: "),
        ((), ", by tests that fail. Not covered: "),
    ):
        red = replace(review, tests=replace(_FAILED, failures=failures))
        assert f"99% (997 of 1000){by}" in messages.review_body(red)
    check = messages.review_check(review, RepoConfig(), external_id="x", details_url="", web=web)
    assert told in (check.summary or "")


def test_the_title_counts_what_is_open_of_earlier_pushes_by_the_worst_of_all() -> None:
    earlier = replace(_FINDING, severity="critical", title="A query is built of text")
    check = messages.review_check(
        _REVIEW, RepoConfig(), external_id="x", details_url="", standing=[earlier]
    )
    assert check.title == "2 findings open (1 new), worst is critical: A query is built of text"


def test_buttons_are_offered_where_they_apply() -> None:
    def labels(review: Review) -> list[str]:
        check = messages.review_check(review, RepoConfig(), external_id="x", details_url="")
        return [button.label for button in check.buttons]

    by_rule = replace(_FINDING, rule="ruff/F821")
    assert labels(replace(_REVIEW, findings=(by_rule,))) == []
    assert labels(replace(_CLEAN, tests=_FAILED)) == ["Fix", "Bisect"]
    on_main = replace(_FAILED, fail_on_base=("test_a", "test_b"))
    assert labels(replace(_CLEAN, tests=on_main)) == []


def test_who_broke_failing_tests_is_what_the_review_leads_to() -> None:
    on_main = replace(_FAILED, fail_on_base=("test_a", "test_b"))
    for tests, leads in ((_FAILED, "`/why` says whose"), (on_main, "`/why` says since when.")):
        assert leads in messages.review_body(replace(_CLEAN, tests=tests))


def test_each_failing_test_says_what_it_does_at_the_merge_base() -> None:
    tests = replace(_FAILED, fail_on_base=("test_a",), others_on_base={"test_b": "passes"})
    whole = replace(_FAILED, failures=(), others_on_base={"": "passes"})
    for shown in (
        messages.review_body(replace(_CLEAN, tests=tests)),
        messages.review_check(
            replace(_CLEAN, tests=tests), RepoConfig(), external_id="x", details_url=""
        ).summary,
    ):
        assert "- `test_a` AssertionError: 1 != 3; fails at the merge base too\n" in (shown or "")
        assert "- `test_b` E; passes at the merge base\n" in (shown or "")
    said = "`pytest -q` ends with exit code 1 at this commit; passes at the merge base."
    assert said in messages.review_body(replace(_CLEAN, tests=whole))
    stored_before = messages.review_body(replace(_CLEAN, tests=_FAILED))
    assert "merge base" not in stored_before


def test_what_the_change_does_is_a_paragraph_of_its_own() -> None:
    told = replace(_REVIEW, summary="1 finding: high, X.\n\nRefunds.\n\nReviewed 1 of 1 file.")
    check = messages.review_check(told, RepoConfig(), external_id="x", details_url="")
    for text in (check.summary or "", messages.review_body(told)):
        assert text.startswith("**1 finding: high, X.**\n\nRefunds.\n\n")
        assert "Reviewed 1 of 1 file." in text


def test_a_finding_that_a_built_in_check_reports_names_no_analyzer_of_ours() -> None:
    seen = Evidence("analyzer", "`x`", "the table of frequent mistakes", base="not there")
    shown = messages.finding_comment(replace(_FINDING, evidence=(seen,))).body
    assert (
        "\n\nReported by the table of frequent mistakes, and not before this change.\n\n" in shown
    )


def test_what_could_not_run_is_not_laid_to_a_policy() -> None:
    skipped = (SkippedReviewer("coverage", "no sandbox", by_policy=True),)
    prose = tuple(UnreadFile(f"{name}.md", "prose", by_policy=True) for name in "abc")
    review = replace(_CLEAN, skipped=skipped, not_reviewed=prose)
    check = messages.review_check(review, RepoConfig(), external_id="x", details_url="")
    title = "Not checked, and not required: coverage, a.md, b.md and 1 more"
    assert f"<summary>{title}</summary>\n\n- `a.md`: prose; not required" in (check.summary or "")
    assert "\n- `coverage`: no sandbox; not required" in (check.summary or "")
    assert check.conclusion == "success"


def test_a_dismissed_finding_leaves_the_check() -> None:
    dismissed = {"abc": Dismissal("o/r", 1, "abc", "ada", "it is meant")}

    def check_of(author: str) -> CheckRun:
        return messages.review_check(
            _REVIEW,
            RepoConfig(),
            external_id="x",
            details_url="",
            dismissed=dismissed,
            author=author,
        )

    check = check_of("bob")
    assert check.title == "No open findings, 1 high dismissed by ada"
    assert (check.conclusion, check.annotations) == ("success", ())
    assert "Dismissed, and still counted in the statistics:" in (check.summary or "")
    assert "; dismissed by `ada`: it is meant" in (check.summary or "")
    own = check_of("ada")
    assert own.title == "No open findings, 1 high dismissed by ada, the author of the change"
    assert "; dismissed by `ada`, the author of this change: it is" in (own.summary or "")
    assert "This check is neutral" not in (check.summary or "")
    held = messages.review_check(
        replace(_REVIEW, withheld=_UNSURE, skipped=(_NO_TESTS,)),
        RepoConfig(),
        external_id="x",
        details_url="",
        dismissed=dismissed,
    )
    assert held.title == (
        "No open findings, 1 high dismissed by ada; 1 critical withheld as not sure enough (tests not run)"
    )


@pytest.mark.parametrize(
    ("review", "why"),
    [
        (_REVIEW, "`review.blocking` is `none`, so no finding blocks a merge"),
        (replace(_CLEAN, tests=_FAILED), "failing tests are for the project's own CI to block"),
    ],
)
def test_a_neutral_check_says_why_it_is_neutral(review: Review, why: str) -> None:
    check = messages.review_check(review, RepoConfig(), external_id="x", details_url="")
    assert check.conclusion == "neutral"
    assert f"This check is neutral: {why}." in (check.summary or "")
    broken = replace(_CLEAN, tests=replace(_FAILED, fail_on_base=("test_b", "test_a")))
    base = messages.review_check(broken, RepoConfig(), external_id="x", details_url="")
    assert "lowers no score; `/why` says since when." in (base.summary or "")


def test_annotations_hold_no_markdown() -> None:
    fancy = replace(_FINDING, title="Use `eval` **never**", body="1. Use `x`\n```py\ny\n```")
    check = messages.review_check(
        replace(_REVIEW, findings=(fancy,)), RepoConfig(), external_id="x", details_url=""
    )
    (annotation,) = check.annotations
    assert (annotation.title, annotation.message) == ("Use eval never", "Use x\ny")


def test_failure_only_where_the_repository_wants_it() -> None:
    high = RepoConfig(review=ReviewConfig(blocking="high"))
    critical = RepoConfig(review=ReviewConfig(blocking="critical"))
    assert messages.is_blocked(_REVIEW, high)
    assert not messages.is_blocked(_REVIEW, critical)
    assert not messages.is_blocked(_REVIEW, RepoConfig())


def test_a_broken_configuration() -> None:
    problems = [ConfigProblem(2, "review.drafst", "unknown key; did you mean 'drafts'?")]
    never = messages.describe_unusable_config(problems, has_valid=False)
    assert "Until it is repaired, no valid file is known, so nothing is reviewed." in never
    assert messages.describe_unusable_config(problems, has_valid=True) == snapshot("""\
`.github/regreen.yml` on the default branch cannot be used:

- line 2: `review.drafst`: unknown key; did you mean 'drafts'?

Until it is repaired, the last valid file is in force. Check it before pushing with `regreen config check`.\
""")


def test_the_configuration_names_its_file_where_there_is_none() -> None:
    shown = messages.config_shown("mode: act", "defaults", [])
    assert "the defaults; the default branch has no `.github/regreen.yml`:" in shown
    broken = messages.config_shown("mode: act", "defaults", [ConfigProblem(2, "a", "unknown key")])
    assert "has no `.github/regreen.yml` that can be read:" in broken
    assert "no valid file is known" in broken
    last = messages.config_shown("mode: act", "last valid", [ConfigProblem(2, "a", "unknown key")])
    assert "the last valid file is in force" in last


def test_hostile_text_stays_text() -> None:
    hostile = replace(
        _FINDING,
        title="<!-- regreen:finding:other --> @everyone\n## big",
        suggestion="x = '''\n```\nclosed\n````\n'''\n",
    )
    body = messages.finding_comment(hostile).body
    first = body.split("\n")[0]
    assert first == "**High: &lt;!-- regreen:finding:other --&gt; @\u200beveryone ## big**"
    assert "`````suggestion" in body
    assert body.endswith("<!-- regreen:finding:abc -->")


def test_a_marker_cannot_be_broken_out_of() -> None:
    assert messages.make_marker("a", "x --> <b>") == "<!-- regreen:a:x ~~ <b -->"


_LURES = r"\[click](https://evil.example) www.evil.example GH-12 fixes https://github.com/a/b/issues/1 @ann | a\|b"


def test_words_of_a_test_run_are_only_words_in_a_repairs_report() -> None:
    failed = InitialFailure(
        "pytest -q | tee a\\|b", 1, (Failure(_LURES, "AssertionError", _LURES),)
    )
    tried = Attempt("recipe", _LURES, "denied", detail=_LURES)
    patch = "--- a/x\n+++ b/x\n+<!-- regreen:reply:comment-7 -->\n+````\n"
    found = FixResult(
        "gave_up", before=failed, reason=_LURES, cause=_LURES, attempts=(tried,), hints=(_LURES,)
    )
    body = format_markdown(replace(found, patch=patch, reflection=_LURES))
    shown = MarkdownIt("commonmark", {"linkify": False}).enable("table").parse(body)
    inline = [part for token in shown for part in token.children or ()]
    assert [part.type for part in inline if "link" in part.type or "image" in part.type] == []
    outside_code = "".join(part.content for part in inline if part.type == "text")
    assert not re.search(r"://|www\.|GH-1|@ann", outside_code)
    rows = [token for token in shown if token.type == "tr_open"]
    cells = [token for token in shown if token.type in {"td_open", "th_open"}]
    assert (len(rows), len(cells)) == (4, 2 * 3 + 2 * 5)
    assert patch.strip() in body  # it is there to be copied


@pytest.mark.parametrize(
    "wish",
    ["[skip ci]", "[ci skip]", "[no ci]", "[skip actions]", "[actions skip]", "[Skip CI]", "skip-checks: true", "***NO_CI***"],
)  # fmt: skip
def test_no_title_of_ours_turns_ci_off(wish: str, tmp_path: Path) -> None:
    failed = InitialFailure("pytest", 1, (Failure(f"test_a {wish}", "AssertionError", ""),))
    title = messages.fix_or_revert_title("test", FixResult("fixed", before=failed))
    assert wish not in title
    assert wish not in messages.revert_title(wish)
    checkout = Checkout(tmp_path / "checkout")
    checkout.commit("one", a="1\n")
    bad = checkout.commit(f"two {wish}", a="2\n")
    git = GitRepository.open(checkout.root, home=tmp_path / "home")
    revert = git.revert(bad, bad)
    assert revert is not None
    assert wish not in git.commit(revert).subject


def test_a_test_with_brackets_keeps_its_name() -> None:
    failed = InitialFailure("pytest", 1, (Failure("test_a[no-ssl]", "AssertionError", ""),))
    assert (
        messages.fix_or_revert_title("test", FixResult("fixed", before=failed))
        == "Fix test_a[no-ssl]"
    )


def test_refusals() -> None:
    assert messages.command_refused("mallory", "write") == (
        "@mallory, only people with write access may do that."
    )
    assert messages.unknown_finding("F9", [("F1", "One @all"), ("F2", "Two")]) == snapshot("""\
There is no finding `F9`. Findings here:

- `F1` One @\u200ball
- `F2` Two\
""")
    at = datetime(2026, 3, 2, tzinfo=UTC)
    job = JobRecord("fix/o/r/1", "fix", "o/r", 1, 1, "work", "k", 0, "{}", None, "running", 1, at, at, at, None, "w", "", "", 0.0)  # fmt: skip
    assert messages.job_failed("no such thing\nas this", job) == snapshot(
        "The repair failed: no such thing as this. (Regreen's log has the details, under `fix/o/r/1`)"
    )
    refused = replace(job, outcome="refused")
    assert messages.job_failed("the minutes are used", refused) == snapshot(
        "The repair was not started: the minutes are used."
    )
    assert messages.jobs_cancelled([]) == snapshot("No job is running or waiting here.")
    assert messages.jobs_cancelled(["bisect", "review"]) == snapshot(
        "Stopped 2 jobs: the bisection, the review."
    )


def test_regressions() -> None:
    culprit = BlamedCommit("c" * 40, "Make it @fast", "Ann", "2026-10-01T09:00:00+00:00")
    found = replace(make_bisection([(1.0, 1.0, (-1,))]), culprit=culprit)
    assert messages.regression_title("main", found) == snapshot(
        "main is red since “Make it @\u200bfast”"
    )
    assert messages.regression_over(
        Schedule(name="nightly", cron="0 3 * * *", test="pytest -q"), "a" * 40
    ) == snapshot("Fixed: the schedule `nightly` passes again at aaaaaaaaaaaa. It ran `pytest -q`.")
    times = [Observation("c" * 40, "fail", "Slower", 1.0, f"{x} times the time of {'f' * 12}") for x in (2.04, 9.0, 2.11)]  # fmt: skip
    slow = replace(found, slower=1.5, signature="Slower", observations=tuple(times))
    assert messages.regression_title("main", slow) == snapshot(
        "main is slower since “Make it @\u200bfast”: 2.1 times as long"
    )
    proof = CulpritVerification(("rerun",), True, "reverting it (whole) on bbbbbbbbbbbb conflicts")
    body = messages.bisection_body(replace(found, verified=proof))
    assert body.split("\n\n")[1] == "It cannot be reverted cleanly: repair it by hand."
    assert "verified" not in body, "it is likely"
    run = Observation("d" * 40, "fail", "Error", 1.0, "exit 1", part="revert", reverted="c" * 40)
    said = messages.bisection_body(replace(found, verified=proof, later_runs=(run,)))
    assert said.split("\n\n")[1] == "Reverting it does not help: repair it by hand."
    assert "git revert" not in body
    about = messages.describe_regression("nightly", "pytest -q", slow)
    body = messages.bisection_body(slow, note=about)
    first, action, said = body.split("\n\n")[:3]
    assert first.startswith("**cccccccccccc made it slower, 2.1 times as long (likely, \\>99.9%): ")
    assert action == "Revert it with `git revert cccccccccccc`."
    assert said == (
        "The schedule `nightly` found that this command takes 2.1 times as long as at `ffffffffffff`:"
    )
    assert "This issue closes automatically when the command is as fast as before." in body
    assert "| to search | `cccccccccccc` | slower | 2.04 times" in body
    for word in (" red", " fail", "`Slower`", "What fails", "failure"):
        assert word not in body


def test_a_number_takes_its_noun() -> None:
    assert (count_noun(1, "test"), count_noun(2, "test")) == ("1 test", "2 tests")
    assert (count_noun(1, "box", "boxes"), count_noun(0, "box", "boxes")) == ("1 box", "0 boxes")


@pytest.mark.parametrize(
    ("command", "setup", "holds"),
    [
        ("pytest", "pip install -e .", True),
        ("cd a\npytest", "", False),
        ("pytest", "apt-get install x\npip install -e .", False),
        ("pytest", "pip install " + "a " * 300, False),
    ],
)
def test_an_opened_repair_names_a_command_only_where_its_text_has_one(
    command: str, setup: str, holds: bool
) -> None:
    fix = FixResult("fixed", before=InitialFailure(command, 1), rev="a" * 40, setup=setup)
    body = messages.fix_body(fix, "test", "", messages.fix_report(fix, "It works."), place="#2")
    said = "; its text has the command that reproduces it."
    assert (said in messages.fix_opened(7, "", branch="main", fix=fix, body=body)) == holds
    assert said not in messages.fix_opened(7, "", branch="main", fix=fix, body=body, is_edited=True)


def test_a_commit_at_the_start_of_a_sentence_keeps_its_letters() -> None:
    text = messages.fix_opened(
        7, "b687e32d1760 (Count income) broke it.", branch="main", fix=FixResult("fixed")
    )
    assert " b687e32d1760 (Count income) broke it. Review" in text
    assert " The base moved. Review" in messages.fix_opened(
        7, "the base moved", branch="main", fix=FixResult("fixed")
    )


def test_the_title_names_what_a_change_broke_before_github_cuts_it() -> None:
    tests = [f"tests.test_budget.LeftTest.test_{word}" for word in ("passed", "left", "none")]
    run = {"where": "head", "outcome": "fail", "signature": None, "tests": tests}
    reason = "3 tests are red on head in 2 of 2 runs, green on the base in 1 of 1 run: " + tests[0]
    cause = messages.make_cause_document(RedCause("change", reason, "fix"))
    cause |= {"checks": ["test"], "action": "", "repeat": "", "runs": [run] * 2}

    def title(**more: object) -> str:
        return messages.cause_check("a" * 40, [cause | more]).title

    assert title() == "This change broke 3 tests: test_passed and 2 more (fail 2 of 2, base passes)"
    assert title(reason="t is red on head, absent on the base").endswith(", not there on the base)")
    assert title(reason=f"{reason}; flaky beside it: t").startswith(
        "This change broke it: 3 tests "
    )
    one = {**run, "tests": ["tests/test_a.py::T::test_b[1.5]"]}
    assert title(runs=[one]).startswith("This change broke test_b[1.5] (fails 1 of 1, ")
    for name in ("tests/test_x.py", "test_x.py", "src/sum.test.js", "adds 1.5 to x", "TestFoo/1.2"):
        assert title(runs=[{**run, "tests": [name]}]).startswith(f"This change broke {name} (")


def test_a_rate_says_how_many_runs_it_is_from() -> None:
    run = {"where": "head", "outcome": "fail", "signature": None}
    cause = messages.make_cause_document(RedCause("flaky", "now red, now green", "rerun"))
    cause |= {
        "checks": ["test"],
        "action": "",
        "repeat": "",
        "rate": (1 / 3, 0.08, 0.66),
        "runs": [run] * 4,
    }
    check = messages.cause_check("a" * 40, [cause])
    assert (
        "\n\nThe test fails in 8% to 66% of its runs (90% interval, from 4 runs here)."
        in check.summary
    )
    cause["runs"] = [{**run, "outcome": "pass"}] * 3
    check = messages.cause_check("a" * 40, [cause])
    rate = "If it is flaky, the test fails in 8% to 66% of its runs (90% interval, from 3 runs here and the red one in CI)."
    assert f"\n\n{rate}" in check.summary, "a rate is that of a flake, which this may not be"
    assert "Run the failed jobs again." in check.summary


def test_a_flake_that_the_change_may_have_made_is_not_waved_through() -> None:
    cause = messages.make_cause_document(RedCause("flaky", "now red, now green", "look"))
    runs = [{"where": where, "outcome": "fail", "signature": None} for where in ("head", "head", "base")]  # fmt: skip
    more = {"checks": ["test"], "action": "", "repeat": "", "rate": (0.5, 0.14, 0.86), "runs": runs}
    check = messages.cause_check("a" * 40, [cause | more])
    assert check.title == "Flaky, perhaps since this change: now red, now green"
    assert "Whether the change made it flaky is not known." in check.summary
    assert "The change is not the cause" not in check.summary
    assert "Run the failed jobs again" not in check.summary
    assert "(90% interval, from 2 runs of head)" in check.summary, "the base may have another rate"
    assert "perhaps since this change" in format_cause(cause | more)


def test_what_was_red_in_ci_alone_is_not_called_flaky_for_certain() -> None:
    cause = messages.make_cause_document(RedCause("flaky", "red in CI, green here", "rerun"))
    cause |= {
        "checks": ["test"],
        "action": messages.rerun_note("asked"),
        "rerun": "asked",
        "repeat": "",
    }
    check = messages.cause_check("a" * 40, [cause])
    assert check.title.startswith("Not reproduced here: flaky, or CI's environment differs: ")
    assert "whether the change is the cause is not known" in check.summary
    assert "The change is not the cause" not in check.summary
    assert "Run the failed jobs again" not in check.summary, "they were asked to run already"
    assert "differs" in format_cause(cause)
    cause["runs"] = [{"where": "head", "outcome": "fail", "signature": None}]
    assert messages.cause_check("a" * 40, [cause]).title == "Flaky: red in CI, green here"


def test_a_thread_that_a_bot_resolved_is_ignored_in_plain_words() -> None:
    event: Any = SimpleNamespace(actor=SimpleNamespace(is_bot=True))
    services: Any = None  # nothing is asked of GitHub
    said = dismiss_by_thread(services, services, event)
    assert said == "ignored: a bot resolved or reopened the thread"


def test_a_check_that_is_neutral_gives_the_reason_of_its_own_case() -> None:
    found = RedCause("main", "red on the base", "wait")
    quiet = messages.make_cause_document(found) | {"checks": [], "action": "", "repeat": ""}
    check = messages.cause_check("a" * 40, [quiet])
    assert "This check is neutral: no check failed that it could explain." in check.summary
    assert "comment `/why` once it fails" in check.summary
    late = messages.approval_check("a" * 40, "next", 40, found, seconds=5.0)
    assert late.summary.count("<sub>Cost: no model; 5.0 s on Regreen's machine.</sub>") == 1
    assert "This check is neutral: it warns of what a merge would bring" in late.summary
    assert "the failure goes away when `next` is repaired" in late.summary


def test_a_repair_says_which_files_it_changes() -> None:
    one = "--- a/shop/f{n}.py\n+++ b/shop/f{n}.py\n@@ -1,2 +1,1 @@\n-import os\n x = 1\n"
    patch = "".join(one.replace("{n}", str(n)) for n in range(7))
    body = format_markdown(FixResult("fixed", before=InitialFailure("pytest", 1, ()), patch=patch))
    assert "\n\nThe patch changes `shop/f0.py` (+0 -1), `shop/f1.py` (+0 -1), " in body
    assert "`shop/f4.py` (+0 -1) and 2 more files." in body
    fix = FixResult("needs_human", before=InitialFailure("pytest", 1, ()), patch=patch)
    report = format_markdown(fix, is_waiting=True)
    for text in (
        messages.fix_body(fix, "test", "", format_markdown(fix, branch="b"), place="#2"),
        messages.fix_opened(7, "", branch="main", fix=fix, patch=patch),
        messages.fix_awaits_approval(fix, "test", report),
    ):
        assert "The patch changes `shop/f0.py` (+0 -1), " in text.partition("\n\n")[0]
        assert text.count("The patch changes ") == 1
    settled = messages.settle_waiting_patch(text, messages.PatchOutcome("was approved"))
    assert settled.startswith("**A patch for `test` was approved.** The patch changes ")
    assert "The patch changes `shop/f0.py`" in settled.partition("\n\n")[0]


def test_every_report_says_what_it_cost() -> None:
    cost = Cost(0.1234, 2, 12_000, 800)
    told = "Cost: 2 model calls (12,000 tokens in, 800 out, $0.123); 26 s on Regreen's machine."
    fix = FixResult("gave_up", before=InitialFailure("pytest", 1, ()), cost=cost, seconds=26.3)
    assert told in format_markdown(fix)
    review = replace(_REVIEW, cost=cost, seconds=26.3)
    assert told in messages.review_body(review).partition("<details>")[2], "in the statistics"
    check = messages.review_check(review, RepoConfig(), external_id="x", details_url="")
    assert told in (check.summary or "")
    free = replace(fix, cost=Cost())
    assert "Cost: no model; 26 s on Regreen's machine." in format_markdown(free)
    for answer in (
        messages.answer_body("Yes.", cost, code=True, seconds=26.3),
        messages.proposed_test("t.py", "", "how many", "pytest", cost=cost, seconds=26.3),
        messages.test_not_found(3, cost, 26.3),
        messages.fix_opened(7, "", branch="main", fix=fix),
    ):
        assert answer.endswith(f"{told}</sub>")


def test_a_repair_is_titled_by_what_it_does() -> None:
    failed = InitialFailure("pytest", 1, tuple(Failure(t, "AssertionError", "") for t in "abc"))
    fix = FixResult("fixed", before=failed)
    assert messages.fix_or_revert_title("test", fix) == "Fix 3 tests: a, …"
    lint = Failure("a.py:1:8: F401", "F401", "unused", path="a.py", line=1)
    mixed = InitialFailure("ruff check", 1, (*failed.failures, lint))
    unchecked = (
        "Not checked: the project's tests were not run with this patch, because no test command is "
        "known beside the command that failed."
    )
    style = FixResult("fixed", before=InitialFailure("ruff check", 1, (lint,)), rung="recipe")
    style = replace(style, after=PatchedRuns(0, 3))
    assert unchecked in format_markdown(style)
    with_tests = GateReport("allow", (CheckReason("suite", "4 tests still pass", "note"),))
    for tested in (
        replace(style, after=PatchedRuns(0, 3, kept=1)),
        replace(style, before=mixed),
        replace(style, gate=with_tests),
        replace(style, other_jobs=(OtherJobRun("tests", "passed"),)),
    ):
        assert unchecked not in format_markdown(tested)
    assert (
        messages.fix_or_revert_title("test", FixResult("fixed", before=mixed))
        == "Fix 4 failures: a, …"
    )
    when, odds = "2026-01-02T03:04:05+00:00", 0.975
    culprit = GuiltyCommit("c" * 40, "Count income into budgets", "Ada", when, odds)
    by_revert = replace(fix, rung="revert", culprit=culprit)
    title = messages.fix_or_revert_title("test", by_revert)
    assert title == "Revert “Count income into budgets” (fixes 3 tests)"
    assert messages.fix_or_revert_title("ruff check", style) == "Fix a.py:1:8: F401: unused", (
        "a place and a rule do not say what is wrong"
    )
    body = messages.fix_body(
        by_revert, "test", "", format_markdown(by_revert), place="the branch `main`", issue=5
    )
    assert body.startswith("`test` fails on the branch `main` (for #5); with this patch it passes.")
    assert "To refuse this repair, close it. That is not remembered: when CI fails " in body
    assert "If that change was meant" in body
    blame = "by Ada on 2026-01-02, probability 97.5%"
    assert f"`{'c' * 12}` (Count income into budgets, {blame}) broke it, and" in body
    caused = f"{'c' * 12} (Count income into budgets) broke it"
    opened = messages.fix_opened(7, caused, branch="main", fix=by_revert, is_own=True)
    whose = f"(Count income into budgets; a commit of this pull request, {blame})"
    assert opened.startswith(f"Draft #7 reverts {'c' * 12} {whose}, which broke it. With it `")
    part = Attempt(
        "revert", f"reverted the source changes of {'c' * 12}", "accepted", 1.0, patch="x"
    )
    in_part = replace(by_revert, patch="x", attempts=(part,))
    of_part = messages.fix_opened(7, caused, branch="main", fix=in_part)
    assert of_part.startswith(f"Draft #7 reverts the source changes of {'c' * 12} (Count income")
    assert (opened.count("Ada"), opened.count("broke it")) == (1, 1), "said once"
    by_hand = messages.fix_opened(7, caused, branch="main", fix=replace(by_revert, rung="model"))
    assert f" {caused}. It is {blame}. Review" in by_hand
    followed = replace(fix, rung="recipe", culprit=culprit, cause=f"{'c' * 12} left callers behind")
    assert f" left callers behind (the commit is {blame})" in format_markdown(followed)
    by_model = replace(fix, rung="model", culprit=culprit, cause="a sum starts at one")
    assert f"`{'c' * 12}` Count income into budgets ({blame})" in format_markdown(by_model)


def test_a_forks_review_says_first_that_its_tests_wait_for_a_person() -> None:
    def check_of(review: Review) -> CheckRun:
        return messages.review_check(
            review, RepoConfig(), external_id="x", details_url="", waits_for_approval=True
        )

    check = check_of(replace(_CLEAN, skipped=(_NO_TESTS,)))
    assert check.title == "Tests not run: approve this fork's commit; No findings"
    told = (check.summary or "").split("\n\n")
    assert told[1].startswith("**Tests not run: this is a fork's commit.** ")
    assert "write `/approve` here" in told[1]
    asked = replace(_CLEAN, skipped=(SkippedReviewer("coverage", "the tests were not run"),))
    check = check_of(asked)
    assert (check.conclusion, check.title) == (
        "neutral",
        "Not reviewed: coverage; tests not run: approve this fork's commit",
    )


@pytest.mark.parametrize(
    ("rung", "how", "claim"),
    [
        ("revert", "reverted cccccccccccc", "takes back a commit by Ada: reverted cccccccccccc"),
        (
            "shrink",
            "took back 2 of the change's lines at a.py:1",
            "takes back a part of this change: took back 2 of the change's lines at a.py:1",
        ),
    ],
)
def test_a_repair_that_takes_work_back_says_so_first(rung: Any, how: str, claim: str) -> None:
    patch = "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,1 @@\n-import os\n x = 1\n"
    culprit = GuiltyCommit("c" * 40, "Count", "Ada") if rung == "revert" else None
    failed = InitialFailure("pytest", 1, ())
    tried = (Attempt(rung, how, "accepted", patch=patch),)
    fix = FixResult("fixed", rung, patch, culprit=culprit, before=failed, attempts=tried)
    fix = replace(fix, after=PatchedRuns(0, 3))
    said = messages.describe_claim(fix)
    runs = "(3 runs, each in a fresh sandbox)"
    assert said == f"{claim}. With it `pytest` passes {runs}"
    opened = messages.fix_opened(7, "", branch="main", fix=fix)
    assert opened.startswith(f"Draft #7 {claim}. ")
    assert "or close it if that change was meant." in opened
    waits = messages.fix_awaits_approval(fix, "test", "").partition("\n\n")[0]
    assert f"It {claim}." in waits
    draft = format_markdown(fix, branch="b")
    assert re.search(r"If that (change|part) was meant, close this", draft)
    plain = replace(fix, rung="recipe")
    assert messages.describe_claim(plain) == f"makes `pytest` pass {runs}"
    assert "was meant" not in messages.fix_opened(7, "", branch="main", fix=plain)


def test_the_list_of_commands_says_what_each_does() -> None:
    text = messages.help_text([("review [full]", "review it")], "/")
    assert text.endswith("- `/review [full]`: review it")


def test_what_is_long_or_said_elsewhere_is_not_repeated() -> None:
    long, note = "regreen replay " + "a" * 200, messages.repair_note(7, "topic")
    cause = messages.make_cause_document(RedCause("change", "red on head", "fix"))
    more = {"checks": ["test"], "action": note, "repeat": long}
    check = messages.cause_check("a" * 40, [cause | more])
    assert "Repair it on this branch" not in check.summary, "the draft repairs it"
    assert f"Failed: `test`.\n\n{note}" in check.summary
    assert f"<details><summary>Reproduce</summary>\n\n```sh\n{long}\n```" in check.summary
    bare = messages.cause_check("a" * 40, [cause | more | {"action": ""}])
    assert "Failed: `test`. Repair it on this branch, or comment `/fix`." in bare.summary
    alone = messages.cause_check("a" * 40, [cause | more | {"checks": [messages.NO_CHECK]}])
    assert "Failed: " not in alone.summary, "no check failed"
    assert "No CI job is known to have failed here, so Regreen ran the tests itself." in (
        alone.summary
    )
    comment = messages.format_as_comment(check.summary)
    assert comment.endswith("</details>")
    assert "Verdict as JSON" in check.summary
    assert "Verdict as JSON" not in comment, "the check has it"
    failed = InitialFailure("pytest", 1, ())
    fix = FixResult(
        "fixed", "recipe", before=failed, rev="a" * 40, setup="pip install " + "x" * 200
    )
    report = messages.fix_report(
        fix, format_markdown(replace(fix, repeat=(long, long)), branch="b")
    )
    assert report.startswith("The patch: recipe\n"), "the text above says that it is fixed"
    assert f"# repeat the failure\n{long}\n# repeat the run with the patch\n" in report
    assert report.count("<sub>") == 1, "the cost; commands of this length are folded"
    assert "; its text has the command" in messages.fix_opened(7, "", branch="b", fix=fix, body=report)  # fmt: skip


def test_a_package_that_broke_a_check_is_named_first_with_what_to_do() -> None:
    package = BlamedPackage("six", "1.16", "1.17")
    cause = messages.make_cause_document(RedCause("world", "it moved", "look", package=package))
    check = messages.cause_check(
        "a" * 40, [cause | {"checks": ["test"], "action": "", "repeat": "regreen why -- pytest"}]
    )
    assert check.title == "six 1.16 -> 1.17 broke it: it moved"
    first, second, *_, neutral, repeat, _ = check.summary.partition("<details>")[0].split("\n\n")
    assert (first, second) == (
        "**six 1.16 -&gt; 1.17 broke it**: it moved",
        "Failed: `test`. No change here causes it: hold it at `six 1.16`, or adapt the code to the new version.",
    )
    assert neutral == (
        "This check is neutral: it says why other checks failed, and blocks nothing even where it is required."
    )
    assert repeat == "<sub>Reproduce: `regreen why -- pytest`</sub>"


def test_an_approved_change_that_passes_says_so_first_and_how_to_repeat_it() -> None:
    again = "regreen why --base b --head h -- pytest"
    check = messages.approval_check("a" * 40, "main", 40, None, repeat=again)
    assert check.summary.partition("<details>")[0].split("\n\n")[:4] == [
        "**The tests of this change pass with `main` as it is now**, although its base is 40 commits old.",
        "The tests ran on GitHub's merge of this change with main as it is now.",
        "<sub>Cost: no model; 0.0 s on Regreen's machine.</sub>",
        f"<sub>Reproduce: `{again}`</sub>",
    ]


def test_a_bisection_shows_what_failed_as_it_was_printed() -> None:
    seen = "AssertionError: 'food   -20.00' != 'food  -20.00'"
    run = Observation("d" * 40, "fail", "written '  two  '", 1.0, "exit 1")
    culprit = BlamedCommit("c" * 40, "Line up", "ann", "2026-01-02T03:04:05+00:00")
    found = replace(make_bisection([(1.0, 1.0, (-1,))]), culprit=culprit)
    found = replace(found, signature=seen, observations=(run,))
    body = messages.bisection_body(found)
    assert f"- fails with: `{seen}`" in body
    assert "| fail | written '  two  ' |" in body, "the exit code says no more than the outcome"
    ends = [replace(run, sha=found.range.bad, outcome=outcome) for outcome in ("fail", "pass")]
    before = replace(found, outcome="before", culprit=None, observations=tuple(ends))
    before = replace(before, range=replace(found.range, good="e" * 40))
    assert "name an older commit as the good one, or it is flaky" in messages.bisection_body(before)


def test_an_answer_says_what_to_do_where_it_is_read() -> None:
    more = {"checks": [messages.NO_CHECK], "action": "", "repeat": "", "rerun": "nothing"}
    flaky = messages.make_cause_document(RedCause("flaky", "now red, now green", "rerun"))
    flaky["runs"] = [{"where": "head", "outcome": "fail", "signature": None}]
    check = messages.cause_check("a" * 40, [flaky | more], branch="main")
    step = "Nothing is to do in this change: repair or quarantine the test on `main`."
    assert f"so Regreen ran the tests itself. {step}" in check.summary

    main = messages.make_cause_document(RedCause("main", "red there too", "wait", since="c" * 40))
    main["runs"] = [
        {"where": "head", "outcome": "fail", "signature": "test_a: assert 7 == 3"},
        {"where": "head_old_versions", "outcome": "pass", "signature": None},
    ]
    shown = format_cause(main | {"command": "python -m unittest (in place of the one given)"})
    assert "  do: wait: The change is not the cause: " in shown
    assert "A revert of cccccccccccc there may do it." in shown
    assert "\n  head failed: test_a: assert 7 == 3\n  head old versions passed\n" in shown
    assert "\n  command: python -m unittest (in place of the one given)" in shown
    draft = {"checks": ["test"], "action": messages.repair_note(7, "main"), "repeat": ""}
    check = messages.cause_check("a" * 40, [main | draft], branch="main")
    assert "A revert of" not in check.summary, "the draft repairs it"
    change = messages.make_cause_document(RedCause("change", "red on head", "fix"))
    assert "do: fix: Repair it on this branch, or run `regreen fix`." in format_cause(change)
