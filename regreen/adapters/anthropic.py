"""The model behind any Anthropic-compatible endpoint: a hard money cap, a ledger, and answers that are remembered."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from random import random
from typing import TYPE_CHECKING, Any

from regreen.adapters.anthropic_shapes import answer_of, begun, messages_of, tools_of
from regreen.adapters.prices import Price, price_of
from regreen.codebase.redaction import redact
from regreen.errors import OutOfBudget, OutsideError
from regreen.models import Cost, ModelAnswer, ModelRequest, ToolCall

if TYPE_CHECKING:
    from anthropic import Anthropic, MessageStream


# A token is seldom less than three characters of code; an estimate that errs upwards keeps the cap hard.
_CHARACTERS_PER_TOKEN = 3.0
_MARGIN = 500
_LONGEST_WAIT = 60.0
"""How long an endpoint may make a worker wait before it tries again; what asks for more is tried later, by the job."""


class _Unavailable(Exception):
    """The model cannot answer now, or at all; another one might."""

    def __init__(self, outside: OutsideError) -> None:
        super().__init__(str(outside))
        self.outside = outside


class _BrokeOff(_Unavailable):
    """An answer that began and did not end; `cost` is what is known of its price."""

    def __init__(self, outside: OutsideError, cost: Cost = Cost()) -> None:  # noqa: B008 - frozen
        super().__init__(outside)
        self.cost = cost


# What the client lets through where a connection is lost, or where what comes is no stream of its events (an empty
# page, a proxy's words, events out of order): it looks into them before it knows what they are.
_NO_STREAM = (ValueError, TypeError, AttributeError, LookupError, AssertionError, RuntimeError)
_BROKEN_OFF = "broken off"


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One model call, for the ledger: what it was for, what it took, whether it was remembered from before."""

    purpose: str
    model: str
    request_hash: str
    cost: Cost
    stop: str
    remembered: bool


class AnthropicModel:
    """`ports.Model` over the anthropic client.

    Args:
        api_key: the endpoint's key; an endpoint on loopback may take any.
        name: the model's name; `fallback` is asked when the first is overloaded or gone.
        base_url: an Anthropic-compatible endpoint; None: Anthropic's own.
        budget_usd: a callable that says how many US dollars are left now. Asked before each call, which is
            refused where its dearest outcome would not fit.
        lock: held while a budget is looked at and set aside; shared by all who spend from one purse.
        recall: an earlier answer (JSON text) to the same request hash, or None.
        remember: called with the request hash and the answer before the answer is used; not for one that declined,
            or that lacks the tool call asked for.
        ledger: called for every answer, also for one that declined or broke off.
        timeout: seconds for one call, retries not counted.
        max_retries: how often a call is repeated that failed for the moment, with growing, jittered pauses.
        sleep: waits between an answer that broke off and the next try.
    """

    def __init__(
        self,
        *,
        api_key: str | None,
        name: str,
        base_url: str | None = None,
        fallback: str | None = None,
        budget_usd: Callable[[], float] = lambda: float("inf"),
        lock: threading.Lock | None = None,
        recall: Callable[[str], str | None] = lambda _hash: None,
        remember: Callable[[str, str], None] = lambda _hash, _answer: None,
        ledger: Callable[[LedgerEntry], None] = lambda _entry: None,
        timeout: float = 600.0,
        max_retries: int = 3,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name = name
        self.fallback = fallback
        self._budget, self._recall, self._remember, self._ledger = (
            budget_usd,
            recall,
            remember,
            ledger,
        )
        self._api_key, self._base_url, self._timeout = api_key or "none", base_url, timeout
        self._max_retries = max_retries
        self._sleep = sleep
        self._lock = lock or threading.Lock()
        self._sdk: Anthropic | None = None
        self.reserved = 0.0
        """What its calls that are under way could cost, in US dollars; read under `lock`."""

    def ask(self, request: ModelRequest) -> ModelAnswer:
        """Ask once, or recall what was answered to the very same request; see `ports.Model`.

        Credentials in the request are taken out first: no prompt, whoever wrote it, carries one.
        """
        request = _discreet(request)
        key = request_hash(self.name, request)
        if (known := self._recall(key)) is not None:
            answer = replace(_from_json(known), cost=Cost())
            self._ledger(
                LedgerEntry(
                    request.purpose, answer.model, key, Cost(), answer.stop, remembered=True
                )
            )
            return answer
        return self._send_either(request, key)

    def _paid(self, request: ModelRequest, name: str, key: str) -> ModelAnswer:
        """One call: what it may cost set aside before, what it did cost written down after, however it ended."""
        ceiling = self._reserve(request, name)
        try:
            answer = self._send(request, name)
            if _is_worth_keeping(request, answer):
                self._remember(key, json.dumps(asdict(answer)))
            self._write(request, answer.model, key, answer.cost, answer.stop)
        except _BrokeOff as error:
            if error.cost.calls:
                self._write(request, name, key, error.cost, _BROKEN_OFF)
            raise
        finally:
            with self._lock:
                self.reserved -= ceiling
        return answer

    def _write(self, request: ModelRequest, name: str, key: str, cost: Cost, stop: str) -> None:
        self._ledger(LedgerEntry(request.purpose, name, key, cost, stop, remembered=False))

    def _reserve(self, request: ModelRequest, name: str) -> float:
        """Set aside what the call could cost at most, so that parallel calls cannot break the cap together.

        The tokens are estimated from above; only where that is too much for what is left they are counted.
        """
        estimate = _most_tokens(request)
        if _dearest(request, estimate, price_of(name)) > self._left():
            estimate = min(estimate, (self._counted(request, name) or estimate) + _MARGIN)
        ceiling = _dearest(request, estimate, price_of(name))
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

    def _left(self) -> float:
        with self._lock:
            return self._budget() - self.reserved

    def _send_either(self, request: ModelRequest, key: str) -> ModelAnswer:
        """Ask the model, and the fallback where the model is gone, stays overloaded, or declines."""
        try:
            answer = self._send_patiently(request, self.name, key)
        except _Unavailable as error:
            if self.fallback is None:
                raise error.outside from error
            return self._send_last(request, self.fallback, key)
        if answer.stop == "refusal" and self.fallback is not None:
            again = self._send_last(request, self.fallback, key)
            return replace(again, cost=answer.cost + again.cost)
        return answer

    def _send_last(self, request: ModelRequest, name: str, key: str) -> ModelAnswer:
        try:
            return self._send_patiently(request, name, key)
        except _Unavailable as error:
            raise error.outside from error

    def _send_patiently(self, request: ModelRequest, name: str, key: str) -> ModelAnswer:
        """The client repeats what never began to be answered; an answer that broke off is asked for again here."""
        lost = Cost()
        for left in range(self._max_retries, -1, -1):
            try:
                answer = self._paid(request, name, key)
            except _BrokeOff as error:
                if left == 0:
                    raise _Unavailable(error.outside) from error
                lost += error.cost
                self._sleep(min(8.0, 0.5 * 2 ** (self._max_retries - left)) * (1 - 0.5 * random()))  # noqa: S311 - a pause, no secret
            else:
                return replace(answer, cost=lost + answer.cost)
        raise AssertionError("the last attempt answers or raises")

    def _send(self, request: ModelRequest, name: str) -> ModelAnswer:
        import anthropic

        # Streamed, so that a long answer does not run into an idle connection's end.
        asked = self._client().messages.stream(
            model=name,
            max_tokens=request.max_tokens,
            system=[
                {"type": "text", "text": request.system, "cache_control": {"type": "ephemeral"}}
            ],
            messages=messages_of(request),
            tools=tools_of(request.tools),
        )
        try:
            with asked as stream:
                return _whole(stream, name, request.force)
        except anthropic.APIStatusError as error:
            if error.status_code in {404, 429, 529} | set(range(500, 600)):
                raise _Unavailable(_outside(error)) from error
            raise _outside(error) from error
        except anthropic.AnthropicError as error:
            raise _outside(error) from error

    def _counted(self, request: ModelRequest, name: str) -> int | None:
        """How many tokens the endpoint counts in a request; None where it does not say."""
        import anthropic
        import httpx2

        try:
            counted = self._client().messages.count_tokens(
                model=name,
                system=request.system,
                messages=messages_of(request),
                tools=tools_of(request.tools),
            )
        except (anthropic.AnthropicError, httpx2.HTTPError, ValueError):
            return None
        return counted.input_tokens

    def _client(self) -> Anthropic:
        if self._sdk is None:
            from anthropic import Anthropic, DefaultHttpxClient

            self._sdk = Anthropic(
                api_key=self._api_key,
                base_url=self._base_url,
                timeout=self._timeout,
                max_retries=self._max_retries,
                http_client=DefaultHttpxClient(event_hooks={"response": [_impatient]}),
            )
        return self._sdk


def _whole(stream: MessageStream[None], name: str, force: str | None) -> ModelAnswer:
    """The answer once it has come to its end.

    Raises:
        _BrokeOff: it did not. What came of it has its price all the same.
    """
    import anthropic
    import httpx2

    try:
        message = stream.get_final_message()
        if message.stop_reason is not None:
            return answer_of(message, name, force)
        # the stream ended politely and too early: half an answer must not pass for a whole one
        why = OutsideError("the model's answer broke off before its end")
        raise _BrokeOff(why, begun(stream, name))
    except anthropic.AnthropicError as error:  # an error in the middle of a stream
        raise _BrokeOff(_outside(error), begun(stream, name)) from error
    except (httpx2.HTTPError, *_NO_STREAM) as error:
        cost = begun(stream, name)
        told = f"the model's answer broke off ({type(error).__name__})"
        if not cost.calls:
            told = "what the model endpoint answers is no stream of the Messages API; check ANTHROPIC_BASE_URL"
        raise _BrokeOff(OutsideError(told), cost) from error


def _is_worth_keeping(request: ModelRequest, answer: ModelAnswer) -> bool:
    """Whether the same question should get the same answer again: not where it was declined, or not answered at all."""
    return answer.stop != "refusal" and (request.force is None or bool(answer.calls))


def _impatient(response: Any) -> None:
    """The client would wait as long as it is told to; a worker has better things to do for an hour."""
    after = response.headers.get("retry-after", "")
    if after.replace(".", "", 1).isdigit() and float(after) > _LONGEST_WAIT:
        response.headers["x-should-retry"] = "false"


def request_hash(model: str, request: ModelRequest) -> str:
    """What tells one request from another: everything that is sent, and `salt`."""
    asked = {"model": model, **{k: v for k, v in asdict(request).items() if k != "purpose"}}
    return hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()


def _dearest(request: ModelRequest, tokens: float, price: Price) -> float:
    return (tokens * price.cache_write + request.max_tokens * price.output) / 1e6


def _most_tokens(request: ModelRequest) -> float:
    size = len(json.dumps(request.system)) + len(
        json.dumps([asdict(m) for m in request.messages], default=str)
    )
    size += len(json.dumps([asdict(t) for t in request.tools], default=str))
    return size / _CHARACTERS_PER_TOKEN + _MARGIN


def _discreet(request: ModelRequest) -> ModelRequest:
    """The request without credentials. The model's own words go back as they came: it has seen none."""
    messages = tuple(
        replace(
            message,
            text=redact(message.text),
            results=tuple(replace(r, content=redact(r.content)) for r in message.results),
        )
        for message in request.messages
    )
    return replace(request, system=redact(request.system), messages=messages)


def _from_json(text: str) -> ModelAnswer:
    data = json.loads(text)
    calls = tuple(ToolCall(**c) for c in data.pop("calls"))
    cost = Cost(**data.pop("cost"))
    return ModelAnswer(**{**data, "calls": calls, "cost": cost, "raw": tuple(data["raw"])})


def _outside(error: Exception) -> OutsideError:
    import anthropic

    if isinstance(error, anthropic.AuthenticationError):
        return OutsideError("the model endpoint refused the key; check ANTHROPIC_API_KEY")
    if isinstance(error, anthropic.APIStatusError):
        after = error.response.headers.get("retry-after", "")
        wait = float(after) if after.replace(".", "", 1).isdigit() else None
        return OutsideError(
            f"the model endpoint answered {error.status_code}: {_short(error.message)}", wait
        )
    if isinstance(error, anthropic.APIConnectionError):
        return OutsideError(
            "the model endpoint cannot be reached; check ANTHROPIC_BASE_URL and the network"
        )
    return OutsideError(f"the model endpoint failed: {_short(str(error))}")


def _short(text: str) -> str:
    return " ".join(text.split())[:300]
