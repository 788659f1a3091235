"""The model behind any Anthropic-compatible endpoint: a hard money cap, a ledger, and answers that are remembered."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from regreen.codebase.redaction import redact
from regreen.errors import OutOfBudget, OutsideError
from regreen.models import Cost, Message, ModelAnswer, ModelRequest, Tool, ToolCall

if TYPE_CHECKING:
    from anthropic import Anthropic
    from anthropic.types import Message as SdkMessage


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens."""

    input: float
    output: float
    cache_read: float
    cache_write: float


# By the longest prefix of the model's name; https://platform.claude.com/docs/en/about-claude/pricing, 2026-11.
# A model that is not listed is priced as the dearest, so that a cap holds for it too.
PRICES = {
    "claude-haiku-5-5": Price(0.5, 2.5, 0.05, 0.625),
    "claude-haiku": Price(1.0, 5.0, 0.10, 1.25),
    "claude-sonnet-5": Price(2.0, 10.0, 0.20, 2.5),
    "claude-sonnet": Price(3.0, 15.0, 0.30, 3.75),
    "claude-opus-5-5": Price(4.0, 20.0, 0.40, 5.0),
    "claude-opus": Price(5.0, 25.0, 0.50, 6.25),
    "": Price(10.0, 50.0, 1.0, 12.5),
}
# A token is seldom less than three characters of code; an estimate that errs upwards keeps the cap hard.
_CHARACTERS_PER_TOKEN = 3.0


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
        recall: an earlier answer (JSON text) to the same request hash, or None.
        remember: called with the request hash and the answer before the answer is used.
        ledger: called for every answer.
        timeout: seconds for one call, retries not counted.
    """

    def __init__(
        self,
        *,
        api_key: str | None,
        name: str,
        base_url: str | None = None,
        fallback: str | None = None,
        budget_usd: Callable[[], float] = lambda: float("inf"),
        recall: Callable[[str], str | None] = lambda _hash: None,
        remember: Callable[[str, str], None] = lambda _hash, _answer: None,
        ledger: Callable[[LedgerEntry], None] = lambda _entry: None,
        timeout: float = 600.0,
        max_retries: int = 3,
    ) -> None:
        self.name = name
        self.fallback = fallback
        self._budget, self._recall, self._remember, self._ledger = (
            budget_usd,
            recall,
            remember,
            ledger,
        )
        self._settings = {"api_key": api_key or "none", "base_url": base_url, "timeout": timeout}
        self._max_retries = max_retries
        self._lock = threading.Lock()
        self._sdk: Anthropic | None = None
        self._reserved = 0.0

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
        ceiling = self._reserve(request)
        try:
            answer = self._send_either(request)
        finally:
            with self._lock:
                self._reserved -= ceiling
        self._remember(key, json.dumps(asdict(answer)))
        self._ledger(
            LedgerEntry(
                request.purpose, answer.model, key, answer.cost, answer.stop, remembered=False
            )
        )
        return answer

    def _reserve(self, request: ModelRequest) -> float:
        """Set aside what the call could cost at most, so that parallel calls cannot break the cap together."""
        names = [self.name, *([self.fallback] if self.fallback else [])]
        ceiling = max(_ceiling(request, price_of(name)) for name in names)
        with self._lock:
            left = self._budget() - self._reserved
            if ceiling > left:
                message = (
                    f"the model call '{request.purpose}' could cost ${ceiling:.3f} and ${max(left, 0):.3f} is left; "
                    "raise budget.usd_per_pull_request or --max-usd to go on"
                )
                raise OutOfBudget(message)
            self._reserved += ceiling
        return ceiling

    def _send_either(self, request: ModelRequest) -> ModelAnswer:
        import anthropic

        try:
            return self._send(request, self.name)
        except anthropic.APIStatusError as error:
            if self.fallback and error.status_code in {404, 429, 529} | set(range(500, 600)):
                return self._send_fallback(request, self.fallback)
            raise _outside(error) from error
        except anthropic.AnthropicError as error:
            raise _outside(error) from error

    def _send_fallback(self, request: ModelRequest, name: str) -> ModelAnswer:
        import anthropic

        try:
            return self._send(request, name)
        except anthropic.AnthropicError as error:
            raise _outside(error) from error

    def _send(self, request: ModelRequest, name: str) -> ModelAnswer:
        # Streamed, so that a long answer does not run into an idle connection's end.
        with self._client().messages.stream(
            model=name,
            max_tokens=request.max_tokens,
            system=[
                {"type": "text", "text": request.system, "cache_control": {"type": "ephemeral"}}
            ],
            messages=_messages(request),
            tools=_tools(request.tools),
        ) as stream:
            return _answer(stream.get_final_message(), name, request.force)

    def _client(self) -> Anthropic:
        if self._sdk is None:
            from anthropic import Anthropic

            self._sdk = Anthropic(max_retries=self._max_retries, **self._settings)  # type: ignore[arg-type]
        return self._sdk


def price_of(model: str) -> Price:
    """What a model costs, by the longest known prefix of its name."""
    return PRICES[max((p for p in PRICES if model.startswith(p)), key=len)]


def request_hash(model: str, request: ModelRequest) -> str:
    """What tells one request from another: everything that is sent, and `salt`."""
    asked = {"model": model, **{k: v for k, v in asdict(request).items() if k != "purpose"}}
    return hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()


def _ceiling(request: ModelRequest, price: Price) -> float:
    size = len(request.system) + len(json.dumps([asdict(m) for m in request.messages], default=str))
    size += len(json.dumps([asdict(t) for t in request.tools], default=str))
    tokens_in = size / _CHARACTERS_PER_TOKEN + 500
    return (tokens_in * price.cache_write + request.max_tokens * price.output) / 1e6


def _tools(tools: Sequence[Tool]) -> Any:
    return [{"name": t.name, "description": t.description, "input_schema": t.schema} for t in tools]


def _messages(request: ModelRequest) -> Any:
    sent = [_blocks(m) for m in request.messages]
    # Two marks: the stable prefix, and the last turn, so that the next round of a loop finds all of this one.
    for at in {request.cache_messages - 1, len(sent) - 1}:
        if 0 <= at < len(sent) and sent[at]["content"] and not request.messages[at].raw:
            sent[at]["content"][-1]["cache_control"] = {"type": "ephemeral"}
    if request.force is not None and sent and sent[-1]["role"] == "user":
        # Some models refuse a forced tool choice, so the wish is spoken and a plain JSON answer is understood too.
        # It is said last: tools, system and the first messages stay the same from question to question, and cached.
        wish = f"Give your whole answer as one call of the tool `{request.force}`."
        sent[-1]["content"].append({"type": "text", "text": wish})
    return sent


def _blocks(message: Message) -> dict[str, Any]:
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


_STOPS: dict[str | None, Literal["end", "tool", "length", "refusal"]] = {
    "tool_use": "tool",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}


def _answer(message: SdkMessage, name: str, force: str | None) -> ModelAnswer:
    text = "".join(b.text for b in message.content if b.type == "text")
    calls = tuple(
        ToolCall(b.id, b.name, dict(b.input)) for b in message.content if b.type == "tool_use"
    )
    raw = tuple(b.model_dump(mode="json", exclude_none=True) for b in message.content)
    if force is not None and not calls and (spoken := _object_in(text)) is not None:
        # From here on it is a call like any other; the blocks as they came would hold no call to answer.
        calls, raw = (ToolCall("toolu_spoken", force, spoken),), ()
    stop = _STOPS.get(message.stop_reason, "end")
    return ModelAnswer(
        text, calls, stop, _cost(message, price_of(name)), message.model or name, raw
    )


def _cost(message: SdkMessage, price: Price) -> Cost:
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
    """The JSON object that a text is, or holds between its first and last brace."""
    for candidate in (text, text[text.find("{") : text.rfind("}") + 1]):
        try:
            value = json.loads(candidate)
        except ValueError:
            continue
        if isinstance(value, dict):
            return value
    return None


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
