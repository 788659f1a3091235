"""Our questions as the Messages API takes them, its answers as our values; pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from regreen.adapters.prices import Price, price_of
from regreen.models import Cost, Message, ModelAnswer, ModelRequest, Tool, ToolCall

if TYPE_CHECKING:
    from anthropic import MessageStream
    from anthropic.types import Message as SdkMessage


def tools_of(tools: Sequence[Tool]) -> Any:
    """The tools as the API takes them."""
    return [{"name": t.name, "description": t.description, "input_schema": t.schema} for t in tools]


def messages_of(request: ModelRequest) -> Any:
    """The conversation as the API takes it, with the marks of what is worth caching."""
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


def answer_of(message: SdkMessage, name: str, force: str | None) -> ModelAnswer:
    """What the API answered, as our value."""
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


def begun(stream: MessageStream[None], name: str) -> Cost:
    """What an answer that broke off has cost, at four characters a token; nothing where it never began."""
    try:
        message = stream.current_message_snapshot
        spoken = len(json.dumps(message.model_dump(mode="json", warnings=False)["content"])) // 4
        message.usage.output_tokens = max(message.usage.output_tokens, spoken)
        return _cost(message, price_of(name))
    except (AssertionError, AttributeError, TypeError, ValueError):  # it was no answer
        return Cost()


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
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    return None
