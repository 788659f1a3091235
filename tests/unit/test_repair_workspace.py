"""What the repair loop does with answers that are odd, and with edits, before anything is run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from regreen.domain.job_control import StopCondition
from regreen.domain.models import Message, ModelAnswer, ModelRequest
from regreen.fixers.case import InitialFailure, PatchVerdict, Proposal, RepairCase
from regreen.fixers.rungs.model_rung import LoopResult, ModelBudget, ModelRung, RepairLoop
from regreen.fixers.workspace import ToolCallRefused, Workspace
from tests.unit.repairs import (
    CALC,
    GREEN,
    TESTS,
    Repository,
    ScriptedModel,
    Step,
    edit,
    job,
    sandbox_or_skip,
)

pytestmark = pytest.mark.sandbox
WINDOWS = "import sys\r\n\r\n\r\ndef name():\r\n    return 'old'\r\n"


@pytest.fixture
def case(tmp_path: Path) -> RepairCase:
    sandbox = sandbox_or_skip()
    repository = Repository(tmp_path / "repo")
    rev = repository.commit("start", {**GREEN, "pkg/windows.py": ""})
    (repository.path / "pkg/windows.py").write_bytes(WINDOWS.encode())
    rev = repository.commit("other ends of lines", {})
    before = InitialFailure("pytest -q", 1)
    git = repository.open()
    stop = StopCondition(time.monotonic() + 600)
    return RepairCase(job(rev), rev, before, {}, git, sandbox, stop)


def never(proposal: Proposal) -> PatchVerdict:
    msg = f"nothing was to be judged: {proposal.patch}"
    raise AssertionError(msg)


@dataclass
class CutOff(ScriptedModel):
    """A model whose first answers in the loop are as long as an answer may be, and end there."""

    cut: int = 1
    lengths: list[str] = field(default_factory=list)

    def ask(self, request: ModelRequest) -> ModelAnswer:
        answer = super().ask(request)
        self.cut -= 1
        return replace(answer, stop="length") if self.cut >= 0 else answer


def looped(case: RepairCase, model: ScriptedModel) -> tuple[LoopResult, str]:
    with Workspace(case) as workspace:
        loop = RepairLoop(
            case,
            never,
            budget=ModelBudget(model, 1.0),
            workspace=workspace,
            opening=(Message("user", "Here it is."),),
        )
        ended = loop.run()
        return ended, workspace.make_patch()


def given_up(*steps: Step) -> list[Step]:
    return [*steps, ("give_up", {"reason": "enough"})]


def every_call_is_answered(requests: Sequence[ModelRequest]) -> bool:
    """The API refuses a conversation in which a call has no result right after it."""
    for message, after in zip(requests[-1].messages, requests[-1].messages[1:], strict=False):
        if {call.id for call in message.calls} != {result.id for result in after.results}:
            return False
    return True


def test_edits_that_belong_together_are_looked_at_together(case: RepairCase) -> None:
    # the first one alone uses a name that only the second one brings
    use = ("pkg/calc.py", "    result = 0\n", "    result = floor(0)\n")
    bring = ("pkg/calc.py", '"""Sums."""\n', '"""Sums."""\n\nfrom math import floor\n')
    with Workspace(case) as workspace:
        with pytest.raises(ToolCallRefused, match="Undefined name `floor`"):
            workspace.edit(*use)
        assert workspace.make_patch() == ""
        workspace.edit_all([use, bring])
        assert "+from math import floor" in workspace.make_patch()


def test_of_edits_that_belong_together_none_stays_where_one_is_refused(case: RepairCase) -> None:
    good = ("pkg/calc.py", "result += value", "result = result + value")
    with Workspace(case) as workspace:
        with pytest.raises(ToolCallRefused, match=r"not in pkg/calc\.py letter by letter"):
            workspace.edit_all([good, ("pkg/calc.py", "no such line", "x")])
        assert workspace.make_patch() == ""


def test_a_second_edit_sees_what_the_first_one_wrote(case: RepairCase) -> None:
    with Workspace(case) as workspace:
        workspace.edit_all(
            [
                ("pkg/calc.py", "result += value", "result += one"),
                ("pkg/calc.py", "for value in values:\n        result += one", "for one in values:\n        result += one"),
            ]
        )  # fmt: skip
        assert "+    for one in values:\n+        result += one\n" in workspace.make_patch()


def test_what_an_edit_changed_is_shown_without_the_edits_before_it(case: RepairCase) -> None:
    with Workspace(case) as workspace:
        workspace.edit("pkg/calc.py", "result += value", "result = result + value")
        said = workspace.edit("pkg/calc.py", "The sum of all values", "The sum of the values")
        assert '+    """The sum of the values."""' in said
        assert "+        result = result + value" not in said
        assert "+        result = result + value" in workspace.make_patch()


@pytest.mark.parametrize(
    ("old", "hint"),
    [
        ("for value in values:\nresult += value", "from line 7:\n    for value in values:\n        result += value"),
        ("result += values", "The nearest lines are:\n8:         result += value"),
        ("nothing of the kind at all", "letter by letter, blanks included$"),
    ],
)  # fmt: skip
def test_what_comes_close_to_a_misquoted_text_is_shown(
    case: RepairCase, old: str, hint: str
) -> None:
    with (
        Workspace(case) as workspace,
        pytest.raises(ToolCallRefused, match=hint.replace("+", r"\+")),
    ):
        workspace.edit("pkg/calc.py", old, "pass")


def test_an_edit_that_is_no_python_is_told_with_its_line(case: RepairCase) -> None:
    with (
        Workspace(case) as workspace,
        pytest.raises(ToolCallRefused, match=r"pkg/calc\.py:8: invalid syntax: result = = value"),
    ):
        workspace.edit("pkg/calc.py", "result += value", "result = = value")  # fmt: skip


def test_a_file_with_other_ends_of_lines_can_be_edited_and_keeps_them(case: RepairCase) -> None:
    with Workspace(case) as workspace:
        workspace.edit(
            "pkg/windows.py", "def name():\n    return 'old'", "def name():\n    return 'new'"
        )
        assert workspace.current_text("pkg/windows.py") == WINDOWS.replace("old", "new")


@pytest.mark.parametrize("path", ["./tests/test_calc.py", "/work/tests/test_calc.py", "pkg/../tests/test_calc.py"])  # fmt: skip
def test_a_test_is_known_by_any_spelling_of_its_path(case: RepairCase, path: str) -> None:
    with Workspace(case) as workspace:
        assert "def test_total" in workspace.read(path)
        with pytest.raises(ToolCallRefused, match="it may not change"):
            workspace.edit(path, "== 6", "== 3")
        with pytest.raises(ToolCallRefused, match="it may not change"):
            workspace.edit(path, "", TESTS.replace("== 6", "== 3"))


@pytest.mark.parametrize("path", ["../other/file.py", "/etc/passwd", "pkg/../../x.py", "", ".git/config"])  # fmt: skip
def test_no_path_leads_out_of_the_repository(case: RepairCase, path: str) -> None:
    with Workspace(case) as workspace, pytest.raises(ToolCallRefused):
        workspace.edit(path, "", "x = 1\n")


def test_careless_calls_are_answered_with_what_to_do(case: RepairCase) -> None:
    calls: list[Step] = [
        ("bash", {"cmd": "ls"}),
        ("read", {"file": "pkg/calc.py"}),
        ("read", {"path": "pkg/calc.py", "start": "eight"}),
        ("read", {"path": "pkg/calc.py", "start": "8", "end": 8}),
        ("submit", {}),
    ]
    model = ScriptedModel(given_up(*calls))
    ended, _ = looped(case, model)
    assert "there is no tool bash; there are propose, read, search" in model.heard
    assert "`path` must be a string" in model.heard
    assert "`start` must be a whole number" in model.heard
    assert "    8          result += value\n(16 lines in all)" in model.heard
    assert "there is nothing to submit" in model.heard
    assert ended.why == "enough"


def test_half_an_answer_is_not_carried_out(case: RepairCase) -> None:
    half = edit("pkg/calc.py", "result += value", "result = ")
    model = CutOff(given_up(half))
    ended, patch = looped(case, model)
    assert (ended.why, patch) == ("enough", "")
    assert "was cut off" in model.heard
    assert every_call_is_answered(model.requests)


def test_half_an_answer_three_times_ends_the_loop(case: RepairCase) -> None:
    ended, _ = looped(case, CutOff([edit("a.py", "b", "c")] * 9, cut=9))
    assert ended.outcome == "gave_up"
    assert "no whole call" in ended.why


@dataclass
class Speaking(ScriptedModel):
    """A model whose first answer is words, or nothing at all, whatever it was asked for."""

    first: str = ""

    def ask(self, request: ModelRequest) -> ModelAnswer:
        answer = super().ask(request)
        return replace(answer, text=self.first, calls=()) if len(self.requests) == 1 else answer


def test_an_empty_answer_leaves_no_empty_turn_behind(case: RepairCase) -> None:
    model = Speaking([("propose", {}), "", ("give_up", {"reason": "enough"})])
    climbed = ModelRung().propose_fix(replace(case, model=model), never)
    turns = model.requests[-1].messages
    assert (climbed.note, len(model.requests)) == ("enough", 3)
    assert all(turn.text or turn.calls or turn.results for turn in turns)


@dataclass
class Eager(ScriptedModel):
    """A model that asks for thirty things in one turn, and then for the rest."""

    def ask(self, request: ModelRequest) -> ModelAnswer:
        many = [super(Eager, self).ask(request) for _ in range(30)] if not self.requests else []
        calls = tuple(call for one in many for call in one.calls)
        return replace(many[0], calls=calls) if many else super().ask(request)


def test_many_calls_in_one_turn_are_one_step(case: RepairCase) -> None:
    reads: list[Step] = [("read", {"path": "pkg/calc.py", "start": at}) for at in range(1, 31)]
    model = Eager(given_up(*reads))
    ended, _ = looped(case, model)
    assert ended.why == "enough"
    assert "turns are left" not in model.heard
    assert every_call_is_answered(model.requests)


def test_a_diagnosis_that_nobody_asked_for_is_taken_note_of(case: RepairCase) -> None:
    model = ScriptedModel(given_up(("diagnose", {"cause": "sign"})))
    ended, _ = looped(case, model)
    assert "noted" in model.heard
    assert ended.why == "enough"


@pytest.mark.parametrize("text", ["a\0b", "\ud83d"])
def test_text_that_no_file_can_hold_is_refused_in_words(case: RepairCase, text: str) -> None:
    model = ScriptedModel(given_up(edit("pkg/calc.py", "result += value", text), ("read", {"path": text}), ("search", {"pattern": text})))  # fmt: skip
    ended, patch = looped(case, model)
    assert (ended.why, patch) == ("enough", "")
    assert model.heard.count("cannot be written to a file") == 3


def test_the_model_is_told_once_when_few_turns_are_left(case: RepairCase) -> None:
    model = ScriptedModel([("read", {"path": "pkg/calc.py", "start": at}) for at in range(1, 40)])
    ended, _ = looped(case, model)
    assert (ended.outcome, ended.why) == ("gave_up", "no progress for too long")
    assert model.heard.count("5 turns are left") == 1
    asked = ["5 turns are left" in str(request.messages[-1].text) for request in model.requests]
    assert len(model.requests) - asked.index(True) == 5


def test_the_loop_goes_on_with_the_conversation_of_the_first_look(case: RepairCase) -> None:
    said = {"sure": False, "cause": "the loop overwrites its sum", "edits": []}
    model = ScriptedModel([("propose", said), ("give_up", {"reason": "enough"})])
    ModelRung().propose_fix(replace(case, model=model), never)
    first, second = model.requests
    assert second.messages[:1] == first.messages
    assert (second.tools, second.system) == (first.tools, first.system)  # read from the cache
    assert second.messages[1].calls[0].input == said
    assert every_call_is_answered(model.requests)


def test_a_first_guess_that_could_not_be_written_is_answered_with_the_reason(
    case: RepairCase,
) -> None:
    edits = [{"path": "pkg/calc.py", "old": "result +=  value", "new": "result += one"}]
    said = {"sure": True, "cause": "the wrong name", "edits": edits}
    model = ScriptedModel([("propose", said), ("give_up", {"reason": "enough"})])
    climbed = ModelRung().propose_fix(replace(case, model=model), never)
    assert "letter by letter" in model.heard
    assert climbed.note == "enough"
    assert every_call_is_answered(model.requests)
    assert CALC in (case.git.show(case.rev, "pkg/calc.py") or b"").decode()


def test_a_first_answer_in_words_does_not_end_the_repair(case: RepairCase) -> None:
    steps = given_up(("propose", {}), ("propose", {}))
    model = Speaking(steps, first="I would look at calc.py.")
    climbed = ModelRung().propose_fix(replace(case, model=model), never)
    assert climbed.note == "enough"
    assert "propose was for the first answer" in model.heard
    assert model.requests[-1].messages[1].text == "I would look at calc.py."


def test_a_first_answer_that_was_cut_off_does_not_end_the_repair(case: RepairCase) -> None:
    model = CutOff(given_up(("propose", {"sure": True, "edits": []})))
    climbed = ModelRung().propose_fix(replace(case, model=model), never)
    assert climbed.note == "enough"
    assert "was cut off" in model.heard
    assert every_call_is_answered(model.requests)
