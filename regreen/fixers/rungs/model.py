"""The model rung: one shot, then a loop with tools, then one fresh second attempt; every patch judged like any other."""

from __future__ import annotations

import json
from dataclasses import dataclass

from regreen.errors import OutOfBudget
from regreen.fixers.case import AttemptOutcome, Case, Climbed, Judge, Judgement, Proposal, RungName
from regreen.fixers.localise import pack
from regreen.fixers.rungs import prompts
from regreen.fixers.rungs.loop import Ended, Loop, Purse, string
from regreen.fixers.rungs.missing import imported_by_source, missing_in
from regreen.fixers.workspace import Refused, Workspace, clipped, original
from regreen.models import Message, ModelRequest

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
        if judged is not None and judged.stands:
            return Climbed(judged, outcome=judged.outcome, cost=purse.cost, trail=tuple(trail))
        ended = _attempt(case, judge, purse, prompts.LOOP + material + first.told)
        trail += ended.trail
        if _worth_another(ended, case, purse):
            again = prompts.SECOND.format(earlier=_told(ended)) + prompts.LOOP + material
            ended = _attempt(case, judge, purse, again, salt="second")
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
    """What one question came to: how its patch was judged, and what the loop is told of it."""

    judgement: Judgement | None = None
    told: str = ""


def _one_shot(case: Case, judge: Judge, purse: Purse, material: str, trail: list[str]) -> _First:
    """One question with all that is known; its edits go through the same checks as the loop's."""
    answer = purse.ask(
        ModelRequest(
            purpose="fix/one-shot",
            system=prompts.SYSTEM,
            messages=(Message("user", prompts.ONE_SHOT + material),),
            tools=(prompts.PROPOSE,),
            force="propose",
            max_tokens=8192,
            cache_messages=1,
        )
    )
    call = next((one for one in answer.calls if one.name == "propose"), None)
    cause = str(call.input.get("cause", "") if call else answer.text)[:600]
    if call is None or call.input.get("sure") is not True or answer.stop == "length":
        trail.append(f"one shot: {'cut off' if answer.stop == 'length' else 'not sure'}; {cause}")
        return _First(told=prompts.FIRST_THOUGHT.format(cause=cause) if cause else "")
    try:
        with Workspace(case) as desk:
            desk.edit_all(_edits(call.input.get("edits")))
            patch = desk.patch()
    except Refused as refusal:
        trail.append(f"one shot: {cause}\nan edit was refused: {refusal}")
        edits = json.dumps(call.input.get("edits"), ensure_ascii=False)
        return _First(told=_not_accepted(str(refusal), f"{cause}\n{clipped(edits, 4000)}"))
    if not patch:
        trail.append(f"one shot: no edit; {cause}")
        return _First(told=prompts.FIRST_THOUGHT.format(cause=cause))
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
    return _First(judgement, _not_accepted(judgement.why, clipped(patch, 3000)))


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


def _not_accepted(why: str, guess: str) -> str:
    return prompts.FIRST_GUESS.format(why=why[:1000], guess=guess)


def _attempt(case: Case, judge: Judge, purse: Purse, opening: str, salt: str = "") -> Ended:
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
