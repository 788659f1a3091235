"""A model behind an Anthropic-compatible endpoint: a hard money cap, a ledger, and remembered answers."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from random import random
from typing import TYPE_CHECKING, Any, Literal

from regreen.adapters.model.endpoints import ModelEndpoint, ModelOption
from regreen.adapters.model.prices import ModelPrice
from regreen.domain.errors import OutOfBudget, OutsideError
from regreen.domain.models import (
    Cost,
    Message,
    ModelAnswer,
    ModelRequest,
    SentPart,
    Tool,
    ToolCall,
)
from regreen.secrets.redaction import redact_secrets

if TYPE_CHECKING:
    from anthropic import Anthropic, AnthropicBedrock, AnthropicVertex, MessageStream
    from anthropic.types import Message as SdkMessage

# A token is seldom less than three characters of code; an estimate that errs upwards keeps the cap hard.
_CHARACTERS_PER_TOKEN = 3.0
_MARGIN_TOKENS = 500
_MAX_SENT_PARTS = 300
_MAX_WAIT_SECONDS = 60.0
"""How long an endpoint may make a worker wait before it tries again; what asks for more is tried later, by the job."""


class _ModelUnavailable(Exception):
    """The model cannot answer now, or at all; another one might."""

    def __init__(self, outside: OutsideError) -> None:
        super().__init__(str(outside))
        self.outside = outside


class _AnswerInterrupted(_ModelUnavailable):
    """An answer that broke off; `cost` is its known price."""

    def __init__(self, outside: OutsideError, cost: Cost = Cost()) -> None:  # noqa: B008 - frozen
        super().__init__(outside)
        self.cost = cost


# Exceptions that the client passes on if a connection is lost, or if the body is no stream of its events (an empty
# page, a proxy's text, events out of order): it looks into the events before it knows what they are.
_NO_STREAM = (ValueError, TypeError, AttributeError, LookupError, AssertionError, RuntimeError)
_Errors = tuple[type[Exception], ...]
_BROKEN_OFF = "broken off"
_NOT_SENT = frozenset({"purpose", "masked"})


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One model call for the ledger; `masked` counts the lines of the request in which a credential was hidden."""

    purpose: str
    model: str
    cost: Cost
    stop: str
    remembered: bool
    sent: tuple[SentPart, ...] = ()
    masked: int = 0


class AnthropicModel:
    """`ports.Model` over the anthropic client.

    Args:
        endpoint: which model is asked, where and at what price.
        budget_usd: a callable that returns the US dollars left now. Called before each call, which is
            refused if its highest possible cost exceeds them.
        lock: held while a budget is read and reserved; shared by all users of one budget.
        recall: an earlier answer (JSON text) to the same request hash, or None.
        remember: called with the request hash and the answer before the answer is used; not for refusals,
            nor for answers without the requested tool call.
        ledger: called for every answer, including refusals and broken-off ones.
        timeout: seconds for one call, retries not counted.
        max_retries: how often a temporarily failed call is repeated, with growing, jittered pauses.
        sleep: waits between a broken-off answer and the next try.
    """

    def __init__(
        self,
        endpoint: ModelEndpoint,
        *,
        budget_usd: Callable[[], float] = lambda: float("inf"),
        lock: threading.Lock | None = None,
        recall: Callable[[str], str | None] = lambda _hash: None,
        remember: Callable[[str, str], None] = lambda _hash, _answer: None,
        ledger: Callable[[LedgerEntry], None] = lambda _entry: None,
        timeout: float = 600.0,
        max_retries: int = 3,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name = endpoint.name
        self._endpoint = endpoint
        self._budget, self._recall, self._remember, self._ledger = (
            budget_usd,
            recall,
            remember,
            ledger,
        )
        self._timeout = timeout
        self._max_retries = max_retries
        self._sleep = sleep
        self._lock = lock or threading.Lock()
        self._sdk: Anthropic | AnthropicBedrock | AnthropicVertex | None = None
        self.reserved = 0.0
        """What its calls that are under way could cost, in US dollars; read under `lock`."""

    def ask(self, request: ModelRequest) -> ModelAnswer:
        """Ask once, or recall the answer to the same request; see `ports.Model`.

        Credentials are removed from the request first: no prompt contains one, whoever wrote it.
        """
        request = _remove_credentials(request)
        key = request_hash(self.name, request, self._endpoint.effort)
        if (known := self._recall(key)) is not None:
            answer = replace(_from_json(known), cost=Cost())
            self._ledger(
                LedgerEntry(request.purpose, answer.model, Cost(), answer.stop, remembered=True)
            )
            return answer
        return self._send_either(request, key)

    def _call_within_budget(self, request: ModelRequest, name: str, key: str) -> ModelAnswer:
        """Reserve a call's possible cost before it, and record its real cost after it, however it ends."""
        ceiling = self._reserve_cost(request, name)
        try:
            answer = self._send_request(request, name)
            if _is_cacheable(request, answer):
                self._remember(key, json.dumps(asdict(answer)))
            self._write_ledger_entry(request, answer.model, answer.cost, answer.stop)
        except _AnswerInterrupted as error:
            if error.cost.calls:
                self._write_ledger_entry(request, name, error.cost, _BROKEN_OFF)
            raise
        finally:
            with self._lock:
                self.reserved -= ceiling
        return answer

    def _write_ledger_entry(self, request: ModelRequest, name: str, cost: Cost, stop: str) -> None:
        sent = tuple(dict.fromkeys(part for message in request.messages for part in message.sent))
        if (more := len(sent) - _MAX_SENT_PARTS) > 0:
            sent = (*sent[:_MAX_SENT_PARTS], SentPart(f"and {more} more"))
        entry = LedgerEntry(request.purpose, name, cost, stop, False, sent, request.masked)
        self._ledger(entry)

    def _reserve_cost(self, request: ModelRequest, name: str) -> float:
        """Reserve the highest possible cost of the call, so that parallel calls cannot break the cap together.

        The tokens are estimated from above; they are only counted if the estimate exceeds the remaining budget.
        """
        estimate = _most_tokens(request)
        if _max_cost(request, estimate, self._endpoint.price_of(name)) > self._remaining_budget():
            estimate = min(
                estimate, (self._count_tokens(request, name) or estimate) + _MARGIN_TOKENS
            )
        ceiling = _max_cost(request, estimate, self._endpoint.price_of(name))
        with self._lock:
            left = self._budget() - self.reserved
            if ceiling > left:
                message = (
                    f"the model call '{request.purpose}' could cost ${ceiling:.3f} and ${max(left, 0):.3f} is left; "
                    "raise budget.usd_per_pull_request or --max-usd to go on"
                )
                raise OutOfBudget(message)
            self.reserved += ceiling
        return ceiling

    def _remaining_budget(self) -> float:
        with self._lock:
            return self._budget() - self.reserved

    def _send_either(self, request: ModelRequest, key: str) -> ModelAnswer:
        """Ask the model, and the fallback if the model is gone, stays overloaded, or refuses."""
        try:
            answer = self._send_patiently(request, self.name, key)
        except _ModelUnavailable as error:
            if self._endpoint.fallback is None:
                raise error.outside from error
            return self._send_last(request, self._endpoint.fallback, key)
        if answer.stop == "refusal" and self._endpoint.fallback is not None:
            again = self._send_last(request, self._endpoint.fallback, key)
            return replace(again, cost=answer.cost + again.cost)
        return answer

    def _send_last(self, request: ModelRequest, name: str, key: str) -> ModelAnswer:
        try:
            return self._send_patiently(request, name, key)
        except _ModelUnavailable as error:
            raise error.outside from error

    def _send_patiently(self, request: ModelRequest, name: str, key: str) -> ModelAnswer:
        """Repeat answers that broke off; the client itself repeats calls that got no answer."""
        lost = Cost()
        for left in range(self._max_retries, -1, -1):
            try:
                answer = self._call_within_budget(request, name, key)
            except _AnswerInterrupted as error:
                if left == 0:
                    raise _ModelUnavailable(error.outside) from error
                lost += error.cost
                self._sleep(min(8.0, 0.5 * 2 ** (self._max_retries - left)) * (1 - 0.5 * random()))  # noqa: S311 - a pause, no secret
            else:
                return replace(answer, cost=lost + answer.cost)
        raise AssertionError("the last attempt answers or raises")

    def _send_request(self, request: ModelRequest, name: str) -> ModelAnswer:
        import anthropic

        options = self._endpoint.options_for(name)
        failed: _Errors = (anthropic.AnthropicError, *self._endpoint.credential_errors())
        try:
            return self._send_with(request, name, options)
        except (anthropic.BadRequestError, anthropic.UnprocessableEntityError) as error:
            # Such a refusal costs nothing, and no later call has these options.
            if self._endpoint.refuse(name, options, error.message):
                return self._send_request(request, name)
            raise self._to_outside_error(error) from error
        except anthropic.APIStatusError as error:
            if error.status_code in {404, 429, 529} | set(range(500, 600)):
                raise _ModelUnavailable(self._to_outside_error(error)) from error
            raise self._to_outside_error(error) from error
        except failed as error:
            raise self._to_outside_error(error) from error

    def _send_with(
        self, request: ModelRequest, name: str, options: set[ModelOption]
    ) -> ModelAnswer:
        import anthropic

        effort = self._endpoint.effort if "effort" in options else None
        # Streamed, so that a long answer does not run into an idle connection's end.
        opening = self._open_client().messages.stream(
            model=name,
            max_tokens=request.max_tokens,
            system=[
                {"type": "text", "text": request.system, "cache_control": {"type": "ephemeral"}}
            ],
            messages=render_messages(request),
            tools=render_tools(request.tools, strict="strict" in options),
            output_config={"effort": effort} if effort else anthropic.omit,
        )
        with opening as stream:
            return self._read_answer(stream, name, request.force)

    def _count_tokens(self, request: ModelRequest, name: str) -> int | None:
        """The number of tokens that the endpoint counts in a request; None if it does not count."""
        import anthropic
        import httpx2

        own = self._endpoint.credential_errors()
        failed: _Errors = (anthropic.AnthropicError, httpx2.HTTPError, ValueError, *own)
        try:
            counted = self._open_client().messages.count_tokens(
                model=name,
                system=request.system,
                messages=render_messages(request),
                tools=render_tools(request.tools),
            )
        except failed:
            return None
        return counted.input_tokens

    def _open_client(self) -> Anthropic | AnthropicBedrock | AnthropicVertex:
        if self._sdk is None:
            from anthropic import DefaultHttpxClient

            self._sdk = self._endpoint.open_client(
                timeout=self._timeout,
                max_retries=self._max_retries,
                http_client=DefaultHttpxClient(event_hooks={"response": [_refuse_long_wait]}),
            )
        return self._sdk

    def _read_answer(
        self, stream: MessageStream[None], name: str, force: str | None
    ) -> ModelAnswer:
        """The complete answer.

        Raises:
            _AnswerInterrupted: the answer broke off; its price is due all the same.
        """
        import anthropic
        import httpx2

        price = self._endpoint.price_of(name)
        no_stream: _Errors = (httpx2.HTTPError, *_NO_STREAM, *self._endpoint.stream_errors())
        try:
            message = stream.get_final_message()
            if message.stop_reason is not None:
                return parse_answer(message, name, force, price)
            # the stream ended regularly but too early: half an answer must not pass for a whole one
            why = OutsideError("the model's answer broke off before its end")
            raise _AnswerInterrupted(why, interrupted_cost(stream, price))
        except anthropic.AnthropicError as error:  # an error in the middle of a stream
            raise _AnswerInterrupted(
                self._to_outside_error(error), interrupted_cost(stream, price)
            ) from error
        except no_stream as error:
            cost = interrupted_cost(stream, price)
            reason = f"the model's answer broke off ({type(error).__name__})"
            if not cost.calls:
                reason = f"what the model endpoint answers is no stream of the Messages API; {self._endpoint.address_remedy}"
            raise _AnswerInterrupted(OutsideError(reason), cost) from error

    def _to_outside_error(self, error: Exception) -> OutsideError:
        import anthropic

        if isinstance(error, anthropic.AuthenticationError | anthropic.PermissionDeniedError):
            error_text = _shorten_text(error.message)
            return OutsideError(
                f"the model endpoint refused the key ({error_text}); {self._endpoint.remedy}"
            )
        if isinstance(error, anthropic.APIStatusError):
            after = error.response.headers.get("retry-after", "")
            wait = float(after) if after.replace(".", "", 1).isdigit() else None
            error_text = _shorten_text(error.message)
            return OutsideError(
                f"the model endpoint answered {error.status_code}: {error_text}", wait
            )
        if isinstance(error, anthropic.APIConnectionError):
            return OutsideError(
                f"the model endpoint cannot be reached; {self._endpoint.address_remedy} and the network"
            )
        if isinstance(error, self._endpoint.credential_errors()):
            error_text = _shorten_text(str(error))
            return OutsideError(
                f"the model's credentials cannot be had ({error_text}); {self._endpoint.remedy}"
            )
        return OutsideError(f"the model endpoint failed: {_shorten_text(str(error))}")


def _is_cacheable(request: ModelRequest, answer: ModelAnswer) -> bool:
    """Whether the answer may be remembered: not if it was refused, or is no answer at all."""
    return answer.stop != "refusal" and (request.force is None or bool(answer.calls))


def _refuse_long_wait(response: Any) -> None:
    """Limit the wait that the endpoint requests; the client itself would wait for an hour."""
    after = response.headers.get("retry-after", "")
    if after.replace(".", "", 1).isdigit() and float(after) > _MAX_WAIT_SECONDS:
        response.headers["x-should-retry"] = "false"


def request_hash(model: str, request: ModelRequest, effort: str | None = None) -> str:
    """The identity of a request: everything that is sent, and `salt`."""
    asked = {"model": model, "effort": effort} if effort else {"model": model}
    content = {**asked, **{k: v for k, v in asdict(request).items() if k not in _NOT_SENT}}
    for message in content["messages"]:
        del message["sent"]
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def _max_cost(request: ModelRequest, tokens: float, price: ModelPrice) -> float:
    return (tokens * price.cache_write + request.max_tokens * price.output) / 1e6


def _most_tokens(request: ModelRequest) -> float:
    size = len(json.dumps(request.system)) + len(
        json.dumps([asdict(replace(m, sent=())) for m in request.messages], default=str)
    )
    size += len(json.dumps([asdict(t) for t in request.tools], default=str))
    return size / _CHARACTERS_PER_TOKEN + _MARGIN_TOKENS


def _remove_credentials(request: ModelRequest) -> ModelRequest:
    """The request without credentials. The model's own words are sent back unchanged: it has seen none."""
    messages = tuple(
        replace(
            message,
            text=redact_secrets(message.text),
            results=tuple(replace(r, content=redact_secrets(r.content)) for r in message.results),
        )
        for message in request.messages
    )
    masked = (_count_lines(request.messages) - _count_lines(messages)).total()
    system = redact_secrets(request.system)
    return replace(request, system=system, messages=messages, masked=masked)


def _count_lines(messages: Sequence[Message]) -> Counter[str]:
    texts = [t for m in messages for t in (m.text, *(result.content for result in m.results))]
    return Counter(line for text in texts for line in text.split("\n"))


def _from_json(text: str) -> ModelAnswer:
    data = json.loads(text)
    calls = tuple(ToolCall(**c) for c in data.pop("calls"))
    cost = Cost(**data.pop("cost"))
    return ModelAnswer(**{**data, "calls": calls, "cost": cost, "raw": tuple(data["raw"])})


def _shorten_text(text: str) -> str:
    return " ".join(text.split())[:300]


# Requests as the Messages API takes them, and its answers as our values; pure.


def render_tools(tools: Sequence[Tool], *, strict: bool = False) -> Any:
    """The tools in the API's format; `strict`: the endpoint holds their inputs to the part of the schema that it knows."""
    from anthropic import transform_schema

    if strict:
        return [
            {
                "name": t.name,
                "description": t.description,
                "input_schema": transform_schema(t.schema),
                "strict": True,
            }
            for t in tools
        ]
    return [{"name": t.name, "description": t.description, "input_schema": t.schema} for t in tools]


def render_messages(request: ModelRequest) -> Any:
    """The conversation in the API's format, with marks for caching."""
    sent = [_message_blocks(m) for m in request.messages]
    # Two marks: the stable prefix, and the last turn, so that the next round of a loop finds all of this one.
    for at in {request.cache_messages - 1, len(sent) - 1}:
        if 0 <= at < len(sent) and sent[at]["content"] and not request.messages[at].raw:
            sent[at]["content"][-1]["cache_control"] = {"type": "ephemeral"}
    if request.force is not None and sent and sent[-1]["role"] == "user":
        # Some models refuse a forced tool choice, so the request is also made in words, and plain JSON is accepted.
        # The words come last: tools, system and the first messages stay the same between requests, and cached.
        wish = f"Give your whole answer as one call of the tool `{request.force}`."
        sent[-1]["content"].append({"type": "text", "text": wish})
    return sent


def _message_blocks(message: Message) -> dict[str, Any]:
    if message.raw:
        return {"role": message.role, "content": list(message.raw)}
    content: list[dict[str, Any]] = [
        {
            "type": "tool_result",
            "tool_use_id": r.id,
            "content": r.content or "(nothing)",
            "is_error": r.is_error,
        }
        for r in message.results
    ]
    if message.text:
        content.append({"type": "text", "text": message.text})
    content += [
        {"type": "tool_use", "id": c.id, "name": c.name, "input": c.input} for c in message.calls
    ]
    return {"role": message.role, "content": content}


_STOP_REASONS: dict[str | None, Literal["end", "tool", "length", "refusal"]] = {
    "tool_use": "tool",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}


def parse_answer(
    message: SdkMessage, name: str, force: str | None, price: ModelPrice
) -> ModelAnswer:
    """The API's answer as our value."""
    text = "".join(b.text for b in message.content if b.type == "text")
    calls = tuple(
        ToolCall(b.id, b.name, dict(b.input)) for b in message.content if b.type == "tool_use"
    )
    raw = tuple(b.model_dump(mode="json", exclude_none=True) for b in message.content)
    if force is not None and not calls and (answer := _object_in(text)) is not None:
        # From here on it is an ordinary call; the original blocks would contain no call to answer.
        calls, raw = (ToolCall("toolu_spoken", force, answer),), ()
    stop = _STOP_REASONS.get(message.stop_reason, "end")
    return ModelAnswer(text, calls, stop, _message_cost(message, price), message.model or name, raw)


def interrupted_cost(stream: MessageStream[None], price: ModelPrice) -> Cost:
    """The cost of a broken-off answer, at four characters a token; zero if it never began."""
    try:
        message = stream.current_message_snapshot
        estimate = len(json.dumps(message.model_dump(mode="json", warnings=False)["content"])) // 4
        message.usage.output_tokens = max(message.usage.output_tokens, estimate)
        return _message_cost(message, price)
    except (AssertionError, AttributeError, TypeError, ValueError):  # it was no answer
        return Cost()


def _message_cost(message: SdkMessage, price: ModelPrice) -> Cost:
    usage = message.usage
    read, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    usd = (
        usage.input_tokens * price.input
        + read * price.cache_read
        + written * price.cache_write
        + usage.output_tokens * price.output
    ) / 1e6
    return Cost(usd, 1, usage.input_tokens + read + written, usage.output_tokens, read)


def _object_in(text: str) -> dict[str, object] | None:
    """The JSON object that a text is, or contains between its first and last brace."""
    for candidate in (text, text[text.find("{") : text.rfind("}") + 1]):
        try:
            value = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    return None
