"""The model rung: one shot, then a loop with tools, then one fresh second attempt; every patch judged like any other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from regreen.errors import OutOfBudget
from regreen.fixers.case import AttemptOutcome, Case, Climbed, Judge, Judgement, Proposal, RungName
from regreen.fixers.localise import fence, pack
from regreen.fixers.rungs import prompts
from regreen.fixers.rungs.loop import Ended, Loop, Purse, reply, string, turn
from regreen.fixers.rungs.missing import imported_by_source, missing_in
from regreen.fixers.workspace import Refused, Workspace, clipped, original
from regreen.models import Message, ModelAnswer, ModelRequest

_SECOND_SHARE = 0.5


class ModelRung:
    """Asks a model, which never holds the pen alone: edits are checked, and the judge is code."""

    name: RungName = "model"

    def climb(self, case: Case, judge: Judge) -> Climbed:
        """One shot first; the loop with what that taught; a second attempt only after a patch that was refused."""
        if case.model is None:
            return Climbed(note="no model is configured", outcome="skipped")
        if lacking := _lacking(case):
            why = f"the environment lacks {lacking}, which only the tests import; install it in the setup"
            return Climbed(note=why, outcome="gave_up", hints=(why,))
        purse = Purse(case.model, case.job.max_usd)
        material = pack(case)
        trail: list[str] = []
        try:
            first = _one_shot(case, judge, purse, material, trail)
        except OutOfBudget as error:
            return Climbed(
                note=str(error), outcome="out_of_budget", cost=purse.cost, trail=tuple(trail)
            )
        judged = first.judgement
        if judged is not None:
            trail.clear()  # it stands in the report of that patch
        if judged is not None and judged.stands:
            return Climbed(judged, outcome=judged.outcome, cost=purse.cost)
        ended = _attempt(case, judge, purse, first.messages)
        trail += ended.trail
        if _worth_another(ended, case, purse):
            again = prompts.SECOND.format(earlier=_told(ended)) + prompts.LOOP + material
            ended = _attempt(case, judge, purse, (Message("user", again),), salt="second")
            trail += ["second attempt", *ended.trail]
        stands = ended.judgement if ended.judgement is not None and ended.judgement.stands else None
        return Climbed(
            stands,
            outcome=ended.outcome,
            note="" if stands else f"{ended.why}",
            cost=purse.cost,
            trail=tuple(trail),
        )


def _lacking(case: Case) -> str:
    """Packages whose absence is all that fails, and which no source imports: there is nothing to ask a model."""
    failures = case.before.failures
    if not failures or any(one.kind != "ModuleNotFoundError" for one in failures):
        return ""
    files = [entry.path for entry in case.git.tree(case.rev)]

    def read(path: str) -> str | None:
        return original(case, path)

    missing = missing_in(case.output, files)
    if any(imported_by_source(one.module, files, read) for one in missing):
        return ""
    return ", ".join(one.distribution for one in missing)


@dataclass(frozen=True)
class _First:
    """What one question came to: how its patch was judged, and the conversation that the loop goes on with."""

    messages: tuple[Message, ...]
    judgement: Judgement | None = None


def _one_shot(case: Case, judge: Judge, purse: Purse, material: str, trail: list[str]) -> _First:
    """One question with all that is known; its edits go through the same checks as the loop's."""
    asked = ModelRequest(
        purpose="fix/one-shot",
        system=prompts.SYSTEM,
        messages=(Message("user", prompts.ONE_SHOT + material),),
        tools=prompts.TOOLS,
        force="propose",
        max_tokens=8192,
        cache_messages=1,
    )
    answer = purse.ask(asked)
    judgement, said = _tried(case, judge, purse, answer, trail)
    after = replace(
        reply(answer, said), text=f"{'' if answer.calls else said} {prompts.GO_ON}".strip()
    )
    return _First((*asked.messages, *turn(answer), after), judgement)


def _tried(
    case: Case, judge: Judge, purse: Purse, answer: ModelAnswer, trail: list[str]
) -> tuple[Judgement | None, str]:
    """Have the edits of a first answer judged, where it is sure of any; and what to say to it."""
    call = next((one for one in answer.calls if one.name == "propose"), None)
    cause = str(call.input.get("cause", "") if call else answer.text)[:600]
    if answer.stop == "length":
        trail.append(f"one shot: cut off; {cause}")
        return None, prompts.CUT_OFF
    if call is None or call.input.get("sure") is not True:
        trail.append(f"one shot: not sure; {cause}")
        return None, prompts.NOT_YET if call is None and answer.calls else prompts.NOTED
    try:
        with Workspace(case) as desk:
            desk.edit_all(_edits(call.input.get("edits")))
            patch = desk.patch()
    except Refused as refusal:
        trail.append(f"one shot: {cause}\nan edit was refused: {refusal}")
        return None, fence(case, prompts.NOT_ACCEPTED.format(why=refusal))
    if not patch:
        trail.append(f"one shot: no edit; {cause}")
        return None, prompts.NOTED
    trail.append(f"one shot: {cause}\n{clipped(patch, 2000)}")
    judgement = judge(
        Proposal(
            "model",
            patch,
            "patch of one question",
            cause,
            usd=purse.cost.usd,
            reflection=str(call.input.get("risk", ""))[:600] or None,
            trail=tuple(trail),
        )
    )
    return judgement, fence(case, prompts.NOT_ACCEPTED.format(why=judgement.why[:2000]))


def _edits(given: object) -> list[tuple[str, str, str]]:
    """The edits of an answer, as far as they are any.

    Raises:
        Refused: one of them lacks a part.
    """
    found: list[tuple[str, str, str]] = []
    for edit in given if isinstance(given, list) else []:
        if not isinstance(edit, dict):
            raise Refused("an edit must be an object with `path`, `old` and `new`")
        found.append((string(edit, "path"), string(edit, "old"), string(edit, "new")))
    return found


def _attempt(
    case: Case, judge: Judge, purse: Purse, opening: Sequence[Message], salt: str = ""
) -> Ended:
    with Workspace(case) as desk:
        return Loop(case, judge, purse=purse, desk=desk, opening=opening, salt=salt).run()


def _worth_another(ended: Ended, case: Case, purse: Purse) -> bool:
    """Only where a patch came near: refused by the gate, or stuck with edits in hand; never after giving up."""
    near: set[AttemptOutcome] = {"denied", "still_red"}
    refused = ended.judgement is not None and ended.judgement.outcome in near
    return refused and purse.cost.usd < purse.limit * _SECOND_SHARE and case.stop.left > 120


def _told(ended: Ended) -> str:
    why = ended.judgement.why if ended.judgement is not None else ended.why
    return f"{clipped(ended.patch, 4000)}\n\n{why[:1000]}"
