from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from regreen.domain.models import (
    Dimension,
    Finding,
    ReviewTestRun,
    Severity,
    Signals,
    WithheldFinding,
    WithheldReason,
)
from regreen.reviewers.context import Claim, ReviewerReport, ReviewMemory
from regreen.reviewers.findings import Candidate, make_fingerprint
from regreen.reviewers.pipeline import RankingPolicy, compute_scores, rank_findings
from tests.unit.changes import Story


def candidate(
    line: int = 1,
    *,
    rule: str = "tool/rule",
    confidence: float = 0.9,
    severity: Severity = "medium",
    dimension: Dimension = "correctness",
    title: str = "",
    proven: bool = False,
    quotes: str = "",
    path: str = "a.py",
) -> Candidate:
    name = make_fingerprint(path, rule, f"code {line}", "")
    said = title or f"fault {line}"
    finding = Finding(
        name[:8],
        name,
        dimension,
        rule,
        severity,
        False,
        confidence,
        path,
        line,
        line,
        "RIGHT",
        said,
        "",
    )
    claim = Claim(
        dimension,
        rule,
        severity,
        path,
        line,
        line,
        said,
        "",
        confidence,
        proven=proven,
        quotes=quotes,
    )
    return Candidate(finding, claim)


def reasons(
    *candidates: Candidate, policy: RankingPolicy | None = None, memory: ReviewMemory | None = None
) -> list[WithheldReason]:
    return [w.reason for w in rank_findings(candidates, policy or RankingPolicy(), memory).withheld]


def test_nothing_below_the_threshold_is_said() -> None:
    assert reasons(candidate(confidence=0.79)) == ["confidence"]
    assert reasons(candidate(confidence=0.8)) == []


def test_what_was_so_before_the_change_is_not_said_however_low_the_threshold() -> None:
    one = candidate(rule="model/crash")
    low = RankingPolicy(min_confidence=0.1)
    now = replace(one, claim=replace(one.claim, signals=Signals(2, 2, "holds", 0.9)))
    before = replace(one, claim=replace(one.claim, signals=Signals(2, 2, "as_before", 0.9)))
    assert reasons(now, policy=low) == []
    assert reasons(before, policy=low) == ["confidence"]


@pytest.mark.parametrize(
    ("dimension", "proven", "said"),
    [("security", True, True), ("security", False, False), ("correctness", True, False)],
)
def test_proven_security_may_be_a_little_less_sure(
    dimension: Dimension, proven: bool, said: bool
) -> None:
    one = candidate(confidence=0.72, dimension=dimension, proven=proven)
    assert bool(rank_findings([one], RankingPolicy()).findings) == said


def test_style_is_said_only_with_the_repositorys_own_words() -> None:
    assert reasons(candidate(dimension="style")) == ["confidence"]
    assert reasons(candidate(dimension="style", quotes="docs say so")) == []


def test_the_gravest_comes_first_and_the_rest_is_cut() -> None:
    many = [candidate(n, severity="low") for n in range(1, 6)]
    grave = candidate(9, severity="critical", confidence=0.82)
    sure = candidate(8, severity="low", confidence=0.95)
    ranking = rank_findings([*many, grave, sure], RankingPolicy(max_comments=3))
    assert [f.line for f in ranking.findings] == [9, 8, 1]
    assert [w.reason for w in ranking.withheld] == ["budget"] * 4


def test_what_a_person_dismissed_never_returns_and_what_stands_is_not_repeated() -> None:
    one, two = candidate(1), candidate(2)
    memory = ReviewMemory(
        frozenset({one.finding.fingerprint}), frozenset({two.finding.fingerprint})
    )
    assert sorted(reasons(one, two, memory=memory)) == ["dismissed", "duplicate"]


def test_feedback_moves_a_rules_threshold() -> None:
    assert reasons(candidate(), memory=ReviewMemory(thresholds={"tool/rule": 0.95})) == [
        "confidence"
    ]
    assert reasons(candidate(confidence=0.7), memory=ReviewMemory(thresholds={"tool": 0.6})) == []


def test_blocking_is_a_matter_of_the_configured_severity() -> None:
    ranked = rank_findings(
        [candidate(1, severity="high"), candidate(2)], RankingPolicy(blocking="high")
    ).findings
    assert [f.blocking for f in ranked] == [True, False]
    assert not rank_findings([candidate(severity="critical")], RankingPolicy()).findings[0].blocking


def test_two_tools_that_name_the_same_thing_are_one_finding_and_surer() -> None:
    one = candidate(title="Undefined name `x`", confidence=0.7)
    two = candidate(rule="other/undefined", title="`x` is not defined", confidence=0.6)
    ranking = rank_findings([one, two], RankingPolicy())
    (said,) = ranking.findings
    assert said.confidence == pytest.approx(0.88)
    assert said.evidence[-1].kind == "vote"
    assert [w.reason for w in ranking.withheld] == ["duplicate"]


def test_the_same_tool_twice_is_no_second_witness() -> None:
    one = candidate(title="`x` is bad", confidence=0.7)
    two = candidate(rule="tool/second", title="`x` is odd", confidence=0.7)
    assert rank_findings([one, two], RankingPolicy()).findings == ()


def test_two_faults_on_one_line_stay_two() -> None:
    one = candidate(title="Undefined name `x`")
    two = candidate(rule="other/rule", title="`y` is called with three arguments")
    assert len(rank_findings([one, two], RankingPolicy()).findings) == 2


def test_other_lines_files_and_dimensions_are_other_faults() -> None:
    base = candidate(title="`x`")
    others = [candidate(2, title="`x`"), candidate(path="b.py", title="`x`"), candidate(title="`x`", rule="s/1", dimension="security")]  # fmt: skip
    assert len(rank_findings([base, *others], RankingPolicy()).findings) == 4


def test_a_fingerprint_survives_what_a_formatter_does() -> None:
    one = make_fingerprint("a.py", "r", "f(a,\n  'b',\n)", "C.m")
    assert one == make_fingerprint("a.py", "r", 'f(a, "b")', "C.m")
    others = [("b.py", "r", "f(a, 'b')", "C.m"), ("a.py", "q", "f(a, 'b')", "C.m"), ("a.py", "r", "f(a)", "C.m"), ("a.py", "r", "f(a, 'b')", "")]  # fmt: skip
    assert all(one != make_fingerprint(*o) for o in others)


def test_the_order_of_the_claims_does_not_matter() -> None:
    some = [candidate(n, severity=s) for n, s in enumerate(("low", "high", "medium"), 1)]  # type: ignore[arg-type]
    assert rank_findings(some, RankingPolicy()) == rank_findings(
        list(reversed(some)), RankingPolicy()
    )
    assert replace(some[0].finding) == some[0].finding


def test_two_tools_that_tell_the_same_harm_of_the_same_line_are_one_finding() -> None:
    never = "The assertion cannot fail."
    ruff, pyright = (
        replace(one, finding=replace(one.finding, body=never))
        for one in (
            candidate(rule="ruff/F631", title="Assert test is a non-empty tuple: always `True`"),
            candidate(rule="pyright/always", title="Assert expression always evaluates to true"),
        )
    )
    ranking = rank_findings([ruff, pyright], RankingPolicy())
    assert len(ranking.findings) == 1
    assert [w.reason for w in ranking.withheld] == ["duplicate"]


def test_two_causes_that_a_model_names_on_one_line_are_both_said() -> None:
    crash = candidate(rule="model/wrong-result", title="total is None and multiplied")
    digits = candidate(rule="model/wrong-result", title="scaled floats are printed in full")
    digits = replace(digits, finding=replace(digits.finding, fingerprint="other", body="b"))
    assert len(rank_findings([crash, digits], RankingPolicy()).findings) == 2
    again = replace(
        crash, finding=replace(crash.finding, fingerprint="more", title="total multiplied is None")
    )
    assert len(rank_findings([crash, again], RankingPolicy()).findings) == 1


def _score(tmp_path: Path, tests: ReviewTestRun | None = None) -> tuple[int | None, str]:
    story = Story(tmp_path)
    story.change({"a.py": "x = 1\n"}, {"a.py": "x = 2\n"})
    withheld = [WithheldFinding(candidate(n).finding, "confidence") for n in range(200)]
    reports: list[tuple[Dimension, ReviewerReport]] = [
        ("correctness", ReviewerReport(read="ruff on 1 file"))
    ]
    scores, notes = compute_scores(reports, [], withheld, story.context(), tests)
    return scores["correctness"], notes["correctness"]


def test_a_withheld_finding_costs_no_score(tmp_path: Path) -> None:
    score, note = _score(tmp_path)
    assert score == 100
    assert (
        note
        == "no finding posted; 200 medium withheld as not sure enough, not counted; 1 analyzer: ruff on 1 file"
    )


def test_no_score_rests_on_one_thing_that_was_looked_for(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.change({"a.rb": "x = 1\n"}, {"a.rb": "x = 2\n"})
    secrets = ReviewerReport(read="secrets looked for in 1 file", is_narrow=True)
    model = ReviewerReport(read="a model's reading of 1 file", reads_also=("security",))
    without: list[tuple[Dimension, ReviewerReport]] = [("security", secrets)]
    scores, notes = compute_scores(without, [], [], story.context())
    assert scores["security"] is None
    assert notes["security"] == "only secrets looked for in 1 file"
    scores, _ = compute_scores([*without, ("correctness", model)], [], [], story.context())
    assert scores["security"] == 100


def test_failing_tests_lower_the_score_and_say_so(tmp_path: Path) -> None:
    score, note = _score(tmp_path, ReviewTestRun("pytest", 1, ()))
    assert score == 40
    assert note.startswith("failing tests; ")
