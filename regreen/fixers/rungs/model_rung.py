"""The model rung: one question, then a loop with tools, then one fresh attempt; every patch is judged like any other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from regreen.domain.errors import OutOfBudget
from regreen.domain.models import Message, ModelAnswer, ModelRequest
from regreen.fixers.case import (
    AttemptOutcome,
    JudgeProposal,
    PatchVerdict,
    Proposal,
    RepairCase,
    RungName,
    RungResult,
)
from regreen.fixers.localization import build_context, fence_text
from regreen.fixers.rungs import repair_prompts
from regreen.fixers.rungs.repair_loop import (
    LoopResult,
    ModelBudget,
    RepairLoop,
    read_string,
    reply_to_answer,
    turn_from_answer,
)
from regreen.fixers.workspace import ToolCallRefused, Workspace, clip_text, read_original
from regreen.languages.python.missing_modules import (
    find_missing_distributions,
    is_imported_by_product,
)

_SECOND_SHARE = 0.5


class ModelRung:
    """Asks a model for edits; each edit is checked, and every patch is judged by code."""

    name: RungName = "model"

    def propose_fix(self, case: RepairCase, judge: JudgeProposal) -> RungResult:
        """One question first, then the loop, then a second attempt if a patch was refused."""
        if case.model is None:
            return RungResult(note="no model is configured", outcome="skipped")
        if lacking := _find_missing_packages(case):
            why = f"the environment lacks {lacking}, which only the tests import; install it in the setup"
            return RungResult(note=why, outcome="gave_up", hints=(why,))
        budget = ModelBudget(case.model, case.job.max_usd)
        material = build_context(case)
        trail: list[str] = []
        try:
            first = _ask_once(case, judge, budget, material, trail)
        except OutOfBudget as error:
            return RungResult(
                note=str(error), outcome="out_of_budget", cost=budget.cost, trail=tuple(trail)
            )
        judged = first.judgement
        if judged is not None:
            trail.clear()  # the report of that patch contains it
        if judged is not None and judged.is_accepted:
            return RungResult(judged, outcome=judged.outcome, cost=budget.cost)
        ended = _run_repair_loop(case, judge, budget, first.messages)
        trail += ended.trail
        if _deserves_second_attempt(ended, case, budget):
            earlier = _describe_refused_attempt(ended)
            again = repair_prompts.SECOND_ATTEMPT_PROMPT.format(earlier=earlier)
            again += repair_prompts.LOOP_PROMPT + material
            ended = _run_repair_loop(case, judge, budget, (Message("user", again),), salt="second")
            trail += ["second attempt", *ended.trail]
        stands = ended.judgement if ended.judgement and ended.judgement.is_accepted else None
        note = "" if stands else ended.why
        return RungResult(
            stands, outcome=ended.outcome, note=note, cost=budget.cost, trail=tuple(trail)
        )


def _find_missing_packages(case: RepairCase) -> str:
    """The missing packages, if nothing else fails and only tests import them: a model cannot help."""
    failures = case.before.failures
    if not failures or any(failure.kind != "ModuleNotFoundError" for failure in failures):
        return ""
    files = [entry.path for entry in case.git.tree(case.rev)]

    def read(path: str) -> str | None:
        return read_original(case, path)

    missing = find_missing_distributions(case.output, files)
    if any(is_imported_by_product(package.module, files, read) for package in missing):
        return ""
    return ", ".join(package.distribution for package in missing)


@dataclass(frozen=True)
class _FirstAnswer:
    """The result of the first question: its verdict, and the conversation that the loop continues."""

    messages: tuple[Message, ...]
    judgement: PatchVerdict | None = None


def _ask_once(
    case: RepairCase, judge: JudgeProposal, budget: ModelBudget, material: str, trail: list[str]
) -> _FirstAnswer:
    """Ask one question with the whole context; its edits pass the same checks as the loop's."""
    request = ModelRequest(
        purpose="fix/one-shot",
        system=repair_prompts.SYSTEM_PROMPT,
        messages=(Message("user", repair_prompts.ONE_SHOT + material),),
        tools=repair_prompts.LOOP_TOOLS,
        force="propose",
        max_tokens=8192,
        cache_messages=1,
    )
    answer = budget.ask_model(request)
    judgement, reply = _judge_first_edits(case, judge, budget, answer, trail)
    after = replace(
        reply_to_answer(answer, reply),
        text=f"{'' if answer.calls else reply} {repair_prompts.GO_ON}".strip(),
    )
    return _FirstAnswer((*request.messages, *turn_from_answer(answer), after), judgement)


def _judge_first_edits(
    case: RepairCase,
    judge: JudgeProposal,
    budget: ModelBudget,
    answer: ModelAnswer,
    trail: list[str],
) -> tuple[PatchVerdict | None, str]:
    """Judge the edits of the first answer if it is sure of them; also returns the reply to it."""
    call = next((call for call in answer.calls if call.name == "propose"), None)
    cause = str(call.input.get("cause", "") if call else answer.text)[:600]
    if answer.stop == "length":
        trail.append(f"one shot: cut off; {cause}")
        return None, repair_prompts.CUT_OFF
    if call is None or call.input.get("sure") is not True:
        trail.append(f"one shot: not sure; {cause}")
        is_early = call is None and answer.calls
        return None, repair_prompts.NOT_YET if is_early else repair_prompts.ANSWER_NOTED
    try:
        with Workspace(case) as workspace:
            workspace.edit_all(_parse_edits(call.input.get("edits")))
            patch = workspace.make_patch()
    except ToolCallRefused as refusal:
        trail.append(f"one shot: {cause}\nan edit was refused: {refusal}")
        return None, fence_text(case, repair_prompts.NOT_ACCEPTED.format(why=refusal))
    if not patch:
        trail.append(f"one shot: no edit; {cause}")
        return None, repair_prompts.ANSWER_NOTED
    trail.append(f"one shot: {cause}\n{clip_text(patch, 2000)}")
    proposal = Proposal("model", patch, "patch of one question", cause, usd=budget.cost.usd)
    risk = str(call.input.get("risk", ""))[:600] or None
    judgement = judge(replace(proposal, reflection=risk, trail=tuple(trail)))
    return judgement, fence_text(case, repair_prompts.NOT_ACCEPTED.format(why=judgement.why[:2000]))


def _parse_edits(given: object) -> list[tuple[str, str, str]]:
    """The edits (path, old, new) of an answer.

    Raises:
        ToolCallRefused: one of them lacks a part.
    """
    found: list[tuple[str, str, str]] = []
    for edit in given if isinstance(given, list) else []:
        if not isinstance(edit, dict):
            raise ToolCallRefused("an edit must be an object with `path`, `old` and `new`")
        found.append(
            (read_string(edit, "path"), read_string(edit, "old"), read_string(edit, "new"))
        )
    return found


def _run_repair_loop(
    case: RepairCase,
    judge: JudgeProposal,
    budget: ModelBudget,
    opening: Sequence[Message],
    salt: str = "",
) -> LoopResult:
    with Workspace(case) as workspace:
        return RepairLoop(
            case, judge, budget=budget, workspace=workspace, opening=opening, salt=salt
        ).run()


def _deserves_second_attempt(ended: LoopResult, case: RepairCase, budget: ModelBudget) -> bool:
    """Whether a patch came near: it was refused, and money and time are left; never after giving up."""
    near: set[AttemptOutcome] = {"denied", "still_red"}
    refused = ended.judgement is not None and ended.judgement.outcome in near
    return refused and budget.cost.usd < budget.limit * _SECOND_SHARE and case.stop.left > 120


def _describe_refused_attempt(ended: LoopResult) -> str:
    why = ended.judgement.why if ended.judgement is not None else ended.why
    return f"{clip_text(ended.patch, 4000)}\n\n{why[:1000]}"
