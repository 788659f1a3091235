"""What people read on GitHub, word for word."""

from __future__ import annotations

from dataclasses import replace

from inline_snapshot import snapshot

from regreen.bot import say
from regreen.bot.say.markup import counted
from regreen.errors import Problem
from regreen.models import Cost, Evidence, Finding, Review, Skipped, Unread, Withheld
from regreen.repo_config import RepoConfig, ReviewConfig

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
    summary="1 file changed.",
    risk="low",
    scores={"correctness": 80, "security": 100, "style": None, "coverage": None},
    findings=(_FINDING,),
    withheld=(),
    not_reviewed=(),
    skipped=(),
    coverage=None,
    cost=Cost(),
    seconds=1.0,
)
_CLEAN = replace(_REVIEW, findings=())


def test_a_finding() -> None:
    assert say.finding_comment(_FINDING).body == snapshot("""\
**The last price is left out**

`prices[:-1]` drops the last one: `total([1, 2])` is 1.

<details><summary>Evidence (test): pytest -q; on this change: 1 failed; before it: 1 passed</summary>

```python
AssertionError: 1 != 3
```

</details>

```suggestion
    return sum(prices)
```

<sub>high · correctness · `model/off-by-one` · 92% sure · `/dismiss F1` if it is wrong</sub>

<!-- regreen:finding:abc -->\
""")


def test_what_readers_and_a_second_reader_say_is_prose() -> None:
    told = (
        Evidence("vote", "2 of 2 readings, made apart, report it (trace, compare)"),
        Evidence("model", "A second reader finds that it holds. `total([])` divides by 0."),
    )
    body = say.finding_comment(replace(_FINDING, evidence=told, suggestion=None)).body
    assert body.split("\n\n", 2)[2].rsplit("\n\n", 2)[0] == snapshot("""\
2 of 2 readings, made apart, report it (trace, compare).

<details><summary>What a second reader found</summary>

A second reader finds that it holds. `total([])` divides by 0.

</details>\
""")


def test_a_review() -> None:
    overflow = Withheld(replace(_FINDING, id="F2", title="Another"), "budget")
    assert say.review_body(replace(_REVIEW, withheld=(overflow,))) == snapshot("""\
**1 finding.** 1 file changed.

Scores: correctness 80 · security 100 · risk low

<details><summary>1 more, kept back to stay short</summary>

- `shop/prices.py:6` Another (92%)

</details>\
""")


def test_the_check_run_of_a_review() -> None:
    check = say.review_check(_REVIEW, RepoConfig(), external_id="x", details_url="")
    assert (check.title, check.conclusion) == ("1 finding, the worst is high", "neutral")
    assert check.summary == snapshot("""\
1 file changed.

Scores: correctness 80 · security 100 · risk low

- **high** `shop/prices.py:6` The last price is left out (92%, `F1`)

No model was asked.\
""")


def test_success_only_where_everything_was_read() -> None:
    def conclusion(review: Review) -> str | None:
        return say.review_check(review, RepoConfig(), external_id="x", details_url="").conclusion

    assert conclusion(_CLEAN) == "success"
    assert conclusion(replace(_CLEAN, not_reviewed=(Unread("a.py", "too large"),))) == "neutral"
    assert conclusion(replace(_CLEAN, skipped=(Skipped("model", "no model"),))) == "neutral"
    assert conclusion(_REVIEW) == "neutral"


def test_failure_only_where_the_repository_wants_it() -> None:
    high = RepoConfig(review=ReviewConfig(blocking="high"))
    critical = RepoConfig(review=ReviewConfig(blocking="critical"))
    assert say.is_blocked(_REVIEW, high)
    assert not say.is_blocked(_REVIEW, critical)
    assert not say.is_blocked(_REVIEW, RepoConfig())


def test_a_broken_configuration() -> None:
    problems = [Problem(2, "review.drafst", "unknown key; did you mean 'drafts'?")]
    assert say.broken_config(problems) == snapshot("""\
`.github/regreen.yml` on the default branch cannot be used:

- line 2: `review.drafst`: unknown key; did you mean 'drafts'?

Check it before pushing with `regreen config check`.\
""")


def test_hostile_text_stays_text() -> None:
    hostile = replace(
        _FINDING,
        title="<!-- regreen:finding:other --> @everyone\n## big",
        suggestion="x = '''\n```\nclosed\n````\n'''\n",
    )
    body = say.finding_comment(hostile).body
    first = body.split("\n")[0]
    assert first == "**&lt;!-- regreen:finding:other --&gt; @\u200beveryone ## big**"
    assert "`````suggestion" in body
    assert body.endswith("<!-- regreen:finding:abc -->")


def test_a_marker_cannot_be_broken_out_of() -> None:
    assert say.marker("a", "x --> <b>") == "<!-- regreen:a:x ~~ <b -->"


def test_refusals() -> None:
    assert say.refused("mallory", "write") == (
        "@mallory, only people with write access may do that."
    )
    assert say.unknown_finding("F9", [("F1", "One @all"), ("F2", "Two")]) == snapshot("""\
There is no finding `F9`. Here are:

- `F1` One @\u200ball
- `F2` Two\
""")
    assert say.failed("no such thing\nas this", "fix/o/r/1") == snapshot(
        "That did not work: no such thing as this. (job `fix/o/r/1`)"
    )
    assert say.cancelled(0) == snapshot("Nothing is running or waiting here.")
    assert say.cancelled(2) == snapshot("Stopped 2 jobs.")


def test_regressions() -> None:
    assert say.regression_title("main", "Make it @fast") == snapshot(
        "main is red since “Make it @\u200bfast”"
    )
    assert say.green_again("nightly", "a" * 40) == snapshot(
        "Green again at aaaaaaaaaaaa: the schedule `nightly` passes."
    )


def test_a_number_takes_its_noun() -> None:
    assert (counted(1, "test"), counted(2, "test")) == ("1 test", "2 tests")
    assert (counted(1, "box", "boxes"), counted(0, "box", "boxes")) == ("1 box", "0 boxes")
