"""A model words the same finding anew on another line: the second reader knows it again, and nobody hears it twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from regreen_playground.model import Answer, Use
from regreen_playground.things import Json

from tests.stories.conftest import Tell
from tests.stories.story import Story, shown_job

PATH = "shop/refund.py"
CODE = '''\
"""Refunds."""


def refund(prices):
    """The sum of all prices, to be paid back."""
    rest = prices[1:]
    # what is left is added up in the order of the shop
    # and rounded by the till, which knows the currency
    return sum(price for price in rest)
'''
CUT, SUM = "    rest = prices[1:]", "    return sum(price for price in rest)"
OTHERWISE = CODE.replace("prices[1:]", "list(prices)[1:]")


@dataclass
class Reader:
    """Says on each push what `says` has for it: the line quoted, and how it is put; `knows` whether it was said."""

    says: Iterator[tuple[str, str]]
    knows: bool = True
    now: tuple[str, str] | None = None
    told: list[str] = field(default_factory=list)

    def push(self) -> None:
        self.now = next(self.says)

    def __call__(self, asked: Json) -> Answer:
        request: dict[str, Any] = dict(asked)
        last = "".join(b["text"] for b in request["messages"][-1]["content"])
        if "`verdicts`" in last:
            self.told.append(last)
            same = 1 if self.knows and "were said to the author" in last else None
            row: Json = {"traced": "so", "before": "right", "verdict": "holds", "certainty": 0.95}
            return Use("verdicts", {"verdicts": [{**row, "claim": n, "same_as": same} for n in (1, 2)]})  # fmt: skip
        assert self.now is not None
        quote, title = self.now
        claim: Json = {
            "path": PATH, "line": 1, "quote": quote, "title": title, "input": "prices = [5]", "happens": title, "should": "be paid back whole",
            "mend": "take them all", "replacement": None, "kind": "wrong-result", "reach": "usual", "sure": 0.95,
        }  # fmt: skip
        return Use("report", {"about": "Refunds.", "findings": [claim]})


def told(tell: Tell, reader: Reader) -> Story:
    story = tell(reader)
    story.configures("review: {dimensions: [correctness]}\n")
    return story


@pytest.mark.parametrize("knows", [True, False])
def test_a_reader_that_knows_what_was_said_says_it_once_in_other_words_and_another_says_both(
    tell: Tell, knows: bool
) -> None:
    reader = Reader(iter([(CUT, "The first price is left out"), (SUM, "A refund is too small")]), knows)  # fmt: skip
    story = told(tell, reader)
    reader.push()
    pull = story.pull({PATH: CODE})
    story.work()
    reader.push()
    lower = {} if knows else {PATH: CODE.replace('"\n\n\n', '"\n\nRATE = 2\n\n\n')}
    story.pushes(pull, {"shop/note.py": "NOTE = 1\n", **lower})
    story.work()
    assert "The first price is left out" in reader.told[-1]
    assert [line for _, line, _ in pull.remarks] == ([6] if knows else [8, 11])
    assert pull.checks == {"Regreen": "neutral"}
    if not knows:
        why = "\n\nNo test proves it: the tests were not run: this machine has no sandbox.\n\n"
        assert why in pull.remarks[0][2]
        page = shown_job(story, "review")
        assert ("Evidence: model" in page, "Evidence: test" in page) == (True, True)
        assert "Evidence: vote" not in page
        assert (pull.check.title or "").startswith("2 findings open (1 new), worst is high")
        summary = pull.check.summary or ""
        assert "1 earlier finding is still open" in summary
        assert (
            "`shop/refund.py:8` The first price is left out" in summary.partition("Still open:")[2]
        )
        assert '"findings": 1' in summary
        assert '"still_open": 1' in summary
        assert [t.resolved_by is not None for t in pull.raw.threads] == [False, False]
    if knows:
        assert pull.check.title == "No new findings; 1 earlier one still open (high)"
        _, _, still_open = (pull.check.summary or "").partition("Still open:")
        assert "The first price is left out" in still_open
        thread = pull.remarks[0][2].split("/dismiss ")[1].split("`")[0]
        assert f"`{thread}`)" in still_open, "the check names what the commands take"
        assert "1 still open" in shown_job(story, "review")


@pytest.mark.slow
def test_what_was_dismissed_stays_away_although_its_code_is_changed_a_little(tell: Tell) -> None:
    said = [(CUT, "The first price is left out"), (SUM, "A refund is too small"), (SUM, "Too little is paid")]  # fmt: skip
    reader = Reader(iter([*said, said[0]]))
    story = told(tell, reader)
    reader.push()
    pull = story.pull({PATH: CODE})
    story.work()
    wanted = pull.remarks[0][2].split("/dismiss ")[1].split("`")[0]
    story.says("alice", f"/dismiss {wanted} the first is the fee", on=pull)
    story.work()
    for text in (OTHERWISE, OTHERWISE.replace("rest", "others"), CODE):
        reader.push()
        story.pushes(pull, {PATH: text})
        story.work()
    assert len(pull.remarks) == 1
    assert [t.resolved_by is not None for t in pull.raw.threads] == [True]
    assert (
        pull.check.title == "No open findings, 1 high dismissed by alice, the author of the change"
    )


def test_a_full_review_that_words_a_finding_anew_counts_it_once(tell: Tell) -> None:
    reader = Reader(iter([(CUT, "The first price is left out"), (CUT, "A refund is too small")]), knows=False)  # fmt: skip
    story = told(tell, reader)
    pull = story.pull({PATH: CODE}, draft=True)
    for command in ("/review", "/review full"):
        reader.push()
        story.pushes(pull, {"shop/note.py": f"NOTE = '{command}'\n"})
        story.says("alice", command, on=pull)
        story.work()
    assert pull.check.title == "1 finding, worst is high: A refund is too small"


def test_a_reading_that_quotes_one_line_more_says_nothing_new(tell: Tell) -> None:
    whole = CODE.replace("    # what", "    old = len(rest)\n    # what")
    reader = Reader(iter([("    old = len(rest)", "Too small"), (CUT, "One is lost")]), knows=False)
    story = told(tell, reader)
    story.commits({PATH: whole.replace("prices[1:]", "prices")})
    reader.push()
    pull = story.pull({PATH: whole})
    story.work()
    reader.push()
    story.pushes(pull, {"shop/note.py": "NOTE = 1\n"})
    story.work()
    assert [line for _, line, _ in pull.remarks] == [7]


def test_what_is_missed_of_the_code_before_is_said_once_and_resolved_when_it_is_back(
    tell: Tell,
) -> None:
    guard = "    if not prices:\n        return 0"
    before = CODE.replace(CUT, f"{guard}\n{CUT}")
    quote = "    if not prices:"
    said = [(quote, "An empty shop fails"), (quote, "Nobody looks at an empty list"), (quote, "")]
    reader = Reader(iter(said), knows=False)
    story = told(tell, reader)
    story.commits({PATH: before})
    reader.push()
    pull = story.pull({PATH: CODE})
    story.work()
    assert [path for path, _, _ in pull.remarks] == [PATH]
    assert [t.resolved_by is not None for t in pull.raw.threads] == [False]
    reader.push()
    story.pushes(pull, {PATH: CODE.replace("till", "shop's till")})
    story.work()
    assert len(pull.remarks) == 1
    assert [t.resolved_by is not None for t in pull.raw.threads] == [False]
    reader.push()
    story.pushes(pull, {PATH: before.replace("till", "shop's till")})
    story.work()
    assert len(pull.remarks) == 1
    assert [t.resolved_by is not None for t in pull.raw.threads] == [True]
