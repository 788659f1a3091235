"""The repair loop: ask, do what was asked, show what came of it, until a patch stands or a limit is reached."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from regreen.errors import OutOfBudget
from regreen.fixers.case import AttemptOutcome, Case, Judge, Judgement, Proposal
from regreen.fixers.localise import fence
from regreen.fixers.rungs import prompts
from regreen.fixers.verify_patch import quick_look
from regreen.fixers.workspace import Refused, Workspace, clipped
from regreen.models import Cost, Message, ModelAnswer, ModelRequest, ToolCall, ToolResult
from regreen.ports import Model

STEPS = 30
_NUDGE_AT, _STOP_AT = 3, 4
_FORMAT_ERRORS = 3
_TIMEOUTS = 3
_NO_PROGRESS = 24
_KEEP_CHARS = 180_000
_ELIDE_STEP = 6
_KEEP_RECENT = 6
_FEW = 5


@dataclass(frozen=True)
class Ended:
    """How a loop ended; `why` in one line, `trail` what was done, and what came of it, since the last submit."""

    outcome: AttemptOutcome
    why: str
    judgement: Judgement | None
    cost: Cost
    trail: tuple[str, ...]
    patch: str = ""


@dataclass
class Purse:
    """What may still be spent, and what was."""

    model: Model
    limit: float
    cost: Cost = field(default_factory=Cost)

    def ask(self, request: ModelRequest) -> ModelAnswer:
        """Ask, if there is money left.

        Raises:
            OutOfBudget: there is none.
        """
        if self.cost.usd >= self.limit:
            msg = f"the repair's budget of ${self.limit:.2f} is spent"
            raise OutOfBudget(msg)
        answer = self.model.ask(request)
        self.cost += answer.cost
        return answer


class Loop:
    """One attempt with tools. The conversation only ever grows; old results are left out in steps."""

    def __init__(
        self,
        case: Case,
        judge: Judge,
        *,
        purse: Purse,
        desk: Workspace,
        opening: Sequence[Message],
        salt: str = "",
    ) -> None:
        self.case, self.judge, self.purse, self.desk, self.salt = case, judge, purse, desk, salt
        self.messages: list[Message] = list(opening)
        self.trail: list[str] = []
        self.seen: list[str] = []
        self.elided = 0
        self.judged: Judgement | None = None
        self.refused: dict[str, str] = {}
        self.told = 0
        self.fewest = max(1, len(case.before.failures))
        self.since_progress = self.format_errors = self.timeouts = 0
        self.failed_round = self.warned = False
        self.over: tuple[AttemptOutcome, str] | None = None

    def run(self) -> Ended:
        """Go round until something ends it."""
        start = self.purse.cost.usd
        try:
            for left in range(STEPS, 0, -1):
                self.case.stop.check()
                if self.case.stop.left <= 0:
                    self.over = ("out_of_budget", "no time left")
                if self.over is not None:
                    break
                few = min(left, _NO_PROGRESS + 1 - self.since_progress)
                if few <= _FEW and not self.warned:
                    self.warned = True
                    self._add(prompts.FEW_LEFT.format(left=few))
                self._round()
            outcome, why = self.over or ("gave_up", f"{STEPS} steps without an accepted patch")
        except OutOfBudget as error:
            outcome, why = "out_of_budget", str(error)
        spent = replace(Cost(), usd=self.purse.cost.usd - start)
        if self.judged is not None and self.judged.stands:
            outcome = self.judged.outcome
        return Ended(outcome, why, self.judged, spent, self._news(), self.desk.patch())

    def _round(self) -> None:
        answer = self.purse.ask(self._request())
        self.messages += turn(answer)
        if answer.stop == "refusal":
            self.over = ("gave_up", "the model declined")
            return
        if not answer.calls or answer.stop == "length":
            self._format_error(answer)
            return
        self.format_errors = 0
        self.since_progress += 1
        results = [self._act(call) for call in answer.calls]
        self.messages.append(Message("user", "", results=tuple(results)))
        self._repeats(answer.calls, results)
        if self.since_progress > _NO_PROGRESS and self.over is None:
            self.over = ("gave_up", "no progress for too long")
        if self.failed_round and self.over is None:
            self.failed_round = False
            self._diagnose()

    def _request(self, force: str | None = None) -> ModelRequest:
        return ModelRequest(
            purpose="fix/loop",
            system=prompts.SYSTEM,
            messages=tuple(self._view()),
            tools=prompts.TOOLS,
            force=force,
            max_tokens=8192,
            cache_messages=max(1, self.elided),
            salt=self.salt,
        )

    def _view(self) -> list[Message]:
        """The conversation with old results left out, in steps, so that the cached prefix stays the same for long."""
        while (
            _size(self.messages[self.elided :]) > _KEEP_CHARS
            and self.elided < len(self.messages) - _KEEP_RECENT
        ):
            self.elided = min(self.elided + _ELIDE_STEP, len(self.messages) - _KEEP_RECENT)
        return [
            replace(message, results=tuple(_short(result) for result in message.results))
            if 0 < number < self.elided and message.results
            else message
            for number, message in enumerate(self.messages)
        ]

    def _add(self, text: str) -> None:
        """Say something to the model with the next question, beside the results it waits for."""
        last = self.messages[-1]
        if last.role == "user":
            self.messages[-1] = replace(last, text=f"{last.text}\n\n{text}".strip())
        else:
            self.messages.append(Message("user", text))

    def _format_error(self, answer: ModelAnswer) -> None:
        """No call, or half an answer: what a cut-off call holds may be half an edit, so none is carried out."""
        self.format_errors += 1
        why = prompts.CUT_OFF if answer.stop == "length" else prompts.FORMAT
        self.trail.append(
            f"said: {answer.text[:300]}{' (cut off)' if answer.stop == 'length' else ''}"
        )
        self._answered(answer, why)
        if self.format_errors >= _FORMAT_ERRORS:
            self.over = ("gave_up", "the model gave no whole call of a tool three times in a row")

    def _answered(self, answer: ModelAnswer, text: str) -> None:
        """Go on after an answer of which nothing is carried out."""
        self.messages.append(reply(answer, text, is_error=True))

    def _act(self, call: ToolCall) -> ToolResult:
        if self.over is not None:
            return ToolResult(call.id, "the work has ended", is_error=True)
        try:
            said = self._do(call)
            wrong = False
        except Refused as refusal:
            said, wrong = str(refusal), True
        self.trail.append(
            f"{call.name} {json.dumps(call.input, ensure_ascii=False)[:600]}\n-> {said[:1200]}"
        )
        return ToolResult(call.id, fence(self.case, clipped(said)), is_error=wrong)

    def _do(self, call: ToolCall) -> str:
        given = call.input
        match call.name:
            case "read":
                first, last = _int(given, "start", 1), _int(given, "end", 0)
                said = self.desk.read(string(given, "path"), first, last or None)
            case "search":
                said = self.desk.search(string(given, "pattern"), string(given, "path", ""))
            case "symbols":
                said = self.desk.symbols(string(given, "name", ""), string(given, "path", ""))
            case "edit":
                texts = (string(given, key) for key in ("path", "old", "new"))
                said = self.desk.edit(*texts)
            case "run":
                said = self._run(string(given, "command"))
            case "run_failing":
                said = self._run_failing()
            case "submit":
                said = self._submit(given)
            case "give_up":
                self.over = ("gave_up", string(given, "reason"))
                said = "understood"
            case "diagnose":  # unasked; it is among the tools of every question
                said = "noted; go on"
            case "propose":
                raise Refused(prompts.NOT_NOW)
            case _:
                names = ", ".join(tool.name for tool in prompts.TOOLS)
                msg = f"there is no tool {call.name}; there are {names}"
                raise Refused(msg)
        return said

    def _run(self, command: str) -> str:
        said = self.desk.run(command)
        self.timeouts = self.timeouts + 1 if said.startswith("exit timeout") else 0
        if self.timeouts >= _TIMEOUTS:
            self.over = ("gave_up", "three commands in a row ran out of time")
        return said

    def _run_failing(self) -> str:
        patch = self.desk.patch()
        if not patch:
            raise Refused("nothing is changed yet; the command fails as shown above")
        look = quick_look(self.case, patch)
        self.failed_round = not look.green
        if len(look.failing) < self.fewest or look.green:
            self.fewest = len(look.failing)
            self.since_progress = 0
        return look.words

    def _submit(self, given: Mapping[str, object]) -> str:
        patch = self.desk.patch()
        if not patch:
            raise Refused(
                "there is nothing to submit; give_up(reason) ends the work without a patch"
            )
        if patch in self.refused:
            msg = f"this very patch was judged already: {self.refused[patch]}"
            raise Refused(msg)
        cause, risk = string(given, "cause"), string(given, "risk", "")
        reflection = " ".join(part for part in (string(given, "why_minimal", ""), risk) if part)
        summary = "patch of the repair loop"
        judgement = self.judge(
            Proposal(
                "model",
                patch,
                summary,
                cause,
                usd=self.purse.cost.usd,
                reflection=reflection,
                trail=self._news(),
            )
        )
        self.judged = judgement
        if judgement.stands:
            self.over = (judgement.outcome, "submitted and accepted")
            return "accepted"
        self.failed_round = True
        self.refused[patch] = judgement.why
        return f"not accepted ({judgement.outcome}): {judgement.why}"

    def _news(self) -> tuple[str, ...]:
        """What happened since it was asked last: a report shows each round once."""
        news = tuple(self.trail[self.told :])
        self.told = len(self.trail)
        return news

    def _diagnose(self) -> None:
        """A typed answer after a failed round: what it is, whether it can be mended, what next."""
        self._add(prompts.DIAGNOSE)
        answer = self.purse.ask(self._request("diagnose"))
        self.messages += turn(answer)
        call = next((one for one in answer.calls if one.name == "diagnose"), None)
        if call is None:
            self._answered(answer, prompts.FORMAT)
            return
        self.trail.append(f"diagnosis: {json.dumps(call.input, ensure_ascii=False)[:1500]}")
        self.messages.append(
            Message(
                "user",
                "",
                results=tuple(ToolResult(one.id, "noted; go on") for one in answer.calls),
            )
        )
        if call.input.get("fixable") == "no":
            self.over = ("gave_up", f"diagnosis: {str(call.input.get('cause', ''))[:400]}")

    def _repeats(self, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> None:
        """The same call with the same result: one nudge, then the end; also when two calls alternate."""
        for call, result in zip(calls, results, strict=True):
            self.seen.append(
                json.dumps([call.name, call.input, result.content], sort_keys=True, default=str)
            )
        last = self.seen[-1]
        times = 0
        for one in reversed(self.seen):
            if one != last:
                break
            times += 1
        pair = self.seen[-6:]
        alternating = (
            len(pair) == 6
            and pair[0::2] == [pair[0]] * 3
            and pair[1::2] == [pair[1]] * 3
            and pair[0] != pair[1]
        )
        if times >= _STOP_AT or alternating:
            self.over = self.over or (
                "gave_up",
                "the same action was repeated without a new result",
            )
        elif times == _NUDGE_AT:
            self._add(prompts.NUDGE)


def turn(answer: ModelAnswer) -> tuple[Message, ...]:
    """An answer as a turn of the conversation; none where it is empty, for the API takes no empty turn."""
    return (answer.as_message(),) if answer.text or answer.calls or answer.raw else ()


def reply(answer: ModelAnswer, text: str, *, is_error: bool = False) -> Message:
    """The same words to each call of an answer, for each needs a result; or as they are, where it holds none."""
    results = tuple(ToolResult(call.id, text, is_error=is_error) for call in answer.calls)
    return Message("user", "" if results else text, results=results)


def _size(messages: Sequence[Message]) -> int:
    return sum(
        len(message.text) + sum(len(result.content) for result in message.results)
        for message in messages
    )


def _short(result: ToolResult) -> ToolResult:
    return result if len(result.content) < 300 else replace(result, content=prompts.ELIDED)


def string(given: Mapping[str, object], key: str, default: str | None = None) -> str:
    """A text that a model gave.

    Raises:
        Refused: it is none, or holds what no file and no command can.
    """
    value = given.get(key, default)
    if not isinstance(value, str):
        msg = f"`{key}` must be a string"
        raise Refused(msg)
    if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        msg = f"`{key}` holds a character that cannot be written to a file"
        raise Refused(msg)
    return value


def _int(given: Mapping[str, object], key: str, default: int) -> int:
    value = given.get(key, default)
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if not isinstance(value, int):
        msg = f"`{key}` must be a whole number"
        raise Refused(msg)
    return value
