"""What only a model can answer: a question, an explanation, a test."""

from __future__ import annotations

import re
from typing import Any

import pytest
from regreen_playground.model import Answer, Says, Use
from regreen_playground.things import Json

from tests.stories.conftest import Tell
from tests.stories.story import UNTESTED, shown_job, shown_page
from tests.stories.test_fixes import needs_sandbox
from tests.stories.test_hostile_review import obeying, source_of
from tests.unit.test_redaction import LEAK, leaks

_TESTS = 'review: {enabled: false}\ntests: {command: "python -m unittest -q"}\n'
_RED = "from shop.bulk import BULK\n\n\ndef test_bulk():\n    assert BULK == 99\n"
_GREEN = _RED.replace("99", "100")


def test_a_question_is_answered_from_the_change(tell: Tell) -> None:
    story = tell(["It sells a hundred at once: `shop/bulk.py` line 1."])
    pull = story.pull(draft=True)
    said = story.says("alice", "/ask how many are sold?", on=pull)
    story.work()
    assert pull.comments[0].startswith(
        "> `/ask how many are sold?`\n\nIt sells a hundred at once: "
    )
    assert "A model's answer, from this page and the code around the change" in pull.comments[0]
    assert story.reactions(said) == ["eyes", "rocket"]
    assert story.model is not None
    assert "BULK = 100" in str(story.model.asked[0])
    assert "how many are sold?" in str(story.model.asked[0])


def test_a_finding_is_explained_from_its_thread_and_the_code_around_it(tell: Tell) -> None:
    story = tell(obeying({"a name": {}}))
    pull = story.pull({"shop/attack.py": source_of(["a name"])})
    story.work()
    story.state.reply(pull.raw, pull.raw.threads[0].comments[0], "/explain", by="alice")
    story.work()
    assert story.model is not None
    request: dict[str, Any] = dict(story.model.asked[-1])
    (asked,) = request["messages"]
    (text,) = (b["text"] for b in asked["content"])
    assert "On shop/attack.py, line 5:" in text
    assert "wrong about a name" in text, "what the finding says"
    assert "Explain the first remark of the thread" in text
    assert "def f0():" in text
    assert pull.raw.threads[0].comments[-1].body.startswith("> `/explain`\n\nNothing.")


def test_the_button_explains_what_the_review_found(tell: Tell) -> None:
    story = tell(obeying({"a name": {}}))
    pull = story.pull({"shop/attack.py": source_of(["a name"])})
    story.work()
    assert [button["label"] for button in pull.check.actions] == ["Explain"]
    story.state.press(pull.check, "explain", by="alice")
    story.work()
    assert story.model is not None
    asked = str(story.model.asked[-1])
    found = asked.split("# What the review found")[1].split("The question, from alice")
    assert "shop/attack.py: Claim of a name" in found[0]
    assert "Of each thing that the review found" in found[1]
    assert pull.comments[-1].startswith("> The button **Explain**\n\nNothing.")


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([Says(("No.",), stop="refusal")], "The answer failed: the model declined to answer this"),
        ([Says((" ",))], "The answer failed: the model gave no answer"),
        ([Says(("A hund",), stop="max_tokens"), "A hundred."], "A hundred.\n"),
        ([Says(("A hund",), stop="max_tokens")] * 2, "A hund\n\n*(The answer was cut off here.)*"),
    ],
    ids=["declined", "nothing", "cut off once", "cut off"],
)
def test_half_an_answer_or_none_is_said_to_be_that(
    tell: Tell, answers: list[Answer], said: str
) -> None:
    story = tell(answers)
    pull = story.pull(draft=True)
    story.says("alice", "/ask how many are sold?", on=pull)
    story.work()
    assert said in pull.comments[-1]
    failed = said.removeprefix("The answer failed: ")
    if failed != said:
        assert f"Answer failed: {failed}" in shown_page(story, "/")
        assert "<h1>Answer in acme/shop#1</h1>" in shown_job(story, "review")


def test_a_change_that_the_readers_leave_out_is_there_for_questions(tell: Tell) -> None:
    story = tell(["Prose."])
    pull = story.pull({"docs/guide.md": "Buy a hundred.\n"}, draft=True)
    story.says("alice", "/ask what does the guide say?", on=pull)
    story.work()
    assert story.model is not None
    assert "+Buy a hundred." in str(story.model.asked[0])


def test_an_explanation_of_an_issue(tell: Tell) -> None:
    story = tell(["A customer pays twice."])
    issue = story.issue("Paid twice", "The card was charged twice.")
    story.says("alice", "/explain", on=issue)
    story.work()
    assert issue.comments[0].startswith("> `/explain`\n\nA customer pays twice.")


def test_no_credential_leaves_with_a_question_or_an_answer(tell: Tell) -> None:
    story = tell([f"It holds this: {LEAK}"])
    pull = story.pull({"shop/keys.py": LEAK}, body=LEAK, draft=True)
    story.says("alice", "/explain", on=pull)
    story.work()
    assert story.model is not None
    assert "plain words stay" in str(story.model.asked)
    assert leaks(str(story.model.asked)) == []
    assert "plain words stay" in pull.comments[0]
    assert leaks(pull.raw.issue.comments[-1].body) == []
    (link,) = re.findall(r'href="(/jobs/[^"]+)#sent">1</a>', shown_page(story, "/ledger"))
    page = shown_page(story, link)
    assert '<td data-label="file"><code>shop/keys.py</code></td>' in page
    assert re.search(r"credentials hidden in up to [1-9]\d* lines of a call\.", page)
    assert leaks(page.partition("Sent to a model")[2].partition("<h2>")[0]) == []


def test_what_a_review_sends_to_a_model_is_on_its_page(tell: Tell) -> None:
    story = tell(obeying({"a name": {}}))
    story.pull({"shop/attack.py": source_of(["a name"])})
    story.work()
    page = shown_job(story, "review").partition('<h2 id="sent">')[2]
    row = page.partition("<code>shop/attack.py</code></td>")[2].partition("</tr>")[0]
    assert f'<td data-label="lines">1-{source_of(["a name"]).count(chr(10))}' in row
    assert '<td data-label="for">reading the change, trying each claim' in row
    assert "; no credential hidden." in page
    assert "def f0" not in page.partition("<h2>")[0], "no contents"


@needs_sandbox
@pytest.mark.sandbox
def test_a_test_is_proposed_once_it_passes(tell: Tell) -> None:
    tries = [
        Use("propose_test", {"path": "tests/test_bulk.py", "code": code, "why": "how many"})
        for code in (_RED, _GREEN)
    ]
    story = tell(list(tries))
    story.configures(_TESTS.replace("unittest -q", "pytest -q").replace(
        "tests: {", 'tests: {setup: "pip install -q pytest", '))  # fmt: skip
    pull = story.pull(draft=True)
    story.says("alice", "/test shop/bulk.py", on=pull)
    story.work()
    (answer,) = pull.comments
    assert "Proposed test for this change: how many" in answer
    assert "assert BULK == 100" in answer
    assert "It was run in the sandbox and passes" in answer
    paid = r"<sub>A model wrote it · Cost: 2 model calls \([\d,]+ tokens in, [\d,]+ out, \$0\.\d{3}\); "
    assert re.search(paid, answer)
    assert story.model is not None
    assert "assert 100 == 99" in str(story.model.asked[1]), "the failure went back to the model"


_HALF = "def half(x):\n    if x % 2:\n        return x // 2 + 1\n    return x // 2\n"
_MISSES = "from shop.half import half\n\n\ndef test_even():\n    assert half(4) == 2\n"
_RUNS = "from shop.half import half\n\n\ndef test_odd():\n    assert half(3) == 2\n"


@needs_sandbox
@pytest.mark.sandbox
@pytest.mark.soak
def test_a_test_is_asked_for_the_lines_that_no_test_runs_and_must_run_them(tell: Tell) -> None:
    proposals = iter([_MISSES, _RUNS])

    def script(asked: Json) -> Answer:
        if "`propose_test`" in str(asked["messages"]):
            code = next(proposals)
            return Use("propose_test", {"path": "tests/test_odd.py", "code": code, "why": "odd"})
        return Use("report", {"about": "Halves.", "findings": []})

    story = tell(script)
    story.configures('tests: {setup: "pip install -q pytest", command: "pytest -q"}\n')
    pull = story.pull({"shop/half.py": _HALF, "tests/test_half.py": _MISSES})
    story.work()
    story.says("alice", "/test", on=pull)
    story.work()
    answer = pull.comments[-1]
    assert "assert half(3) == 2" in answer
    assert "It runs 1 of the 1 new lines that no test ran." in answer
    assert story.model is not None
    assert "shop/half.py: 3" in str(story.model.asked)
    assert "runs none of the lines that no test runs" in str(story.model.asked)


@needs_sandbox
@pytest.mark.sandbox
def test_a_test_needs_to_know_how_tests_run(tell: Tell) -> None:
    story = tell([])
    story.commits(UNTESTED)
    pull = story.pull(draft=True)
    story.says("alice", "/test", on=pull)
    story.work()
    assert pull.comments[0] == (
        "> `/test`\n\nHow do the tests run? Set `tests.command` in `.github/regreen.yml`."
    )
