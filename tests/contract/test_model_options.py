"""What a model costs, and the options that it is sent: effort and strict tools, and what is done where they are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from regreen_playground.model import Answer, Fails, ScriptedModel
from regreen_playground.things import Json

from regreen.adapters.model.anthropic_client import AnthropicModel, render_tools
from regreen.adapters.model.endpoints import ModelEndpoint
from regreen.adapters.model.prices import ModelPrice, find_listed_model, load_table
from regreen.bot.flows import answer
from regreen.domain.errors import OutOfBudget, OutsideError, UserError
from regreen.domain.models import Message, ModelRequest, Tool
from regreen.domain.settings import Settings
from regreen.fixers.rungs import model_rung
from regreen.reviewers.model import review_prompts

REPORT = Tool(
    "report",
    "Report.",
    {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]},
)


def ask(endpoint: ModelEndpoint, text: str = "read this", **ways: Any) -> str:
    asked = ModelRequest("t", "s", (Message("user", text),), tools=(REPORT,), max_tokens=100)
    return AnthropicModel(endpoint, **{"max_retries": 0, **ways}).ask(asked).text


def refusing(*refused: Callable[[Json], str]) -> Callable[[Json], Answer]:
    """An endpoint that refuses some requests, with these words."""

    def script(asked: Json) -> Answer:
        said = next((words for words in (refuse(asked) for refuse in refused) if words), "")
        return Fails(400, "invalid_request_error", said) if said else "fine"

    return script


def no_effort(asked: Json) -> str:
    return "output_config: Extra inputs are not permitted" if "output_config" in asked else ""


def no_strict(asked: Any) -> str:
    sent = any("strict" in tool for tool in asked["tools"])
    return "tools.0.custom.strict: Extra inputs are not permitted" if sent else ""


def options_of(asked: Any) -> tuple[str | None, bool]:
    return asked.get("output_config", {}).get("effort"), "strict" in asked["tools"][0]


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("claude-sonnet-5-5", ("low", True)),
        ("claude-haiku-4-5", (None, True)),
        ("claude-opus-4-1", (None, False)),
        ("qwen3-coder", ("low", False)),
    ],
)
def test_a_model_is_sent_what_it_is_documented_to_take(
    name: str, sent: tuple[str | None, bool]
) -> None:
    with ScriptedModel(["fine"]) as far:
        ask(ModelEndpoint(name, base_url=far.url, effort="low", price=ModelPrice(0, 0, 0, 0)))
    assert options_of(far.asked[0]) == sent


def test_without_a_setting_no_effort_is_sent() -> None:
    with ScriptedModel(["fine"]) as far:
        ask(ModelEndpoint("claude-sonnet-5-5", base_url=far.url))
    assert options_of(far.asked[0]) == (None, True)


def test_what_is_refused_is_left_out_once_and_for_all() -> None:
    with ScriptedModel(refusing(no_effort, no_strict)) as far:
        endpoint = ModelEndpoint("claude-sonnet-5-5", base_url=far.url, effort="high")
        assert ask(endpoint) == "fine"
        assert ask(endpoint, "again") == "fine"  # by another model object, as another job has
    sent = [options_of(asked) for asked in far.asked]
    assert sent == [("high", True), (None, True), (None, False), (None, False)]


def test_only_the_option_that_is_named_is_left_out() -> None:
    with ScriptedModel(refusing(no_strict)) as far:
        ask(ModelEndpoint("claude-sonnet-5-5", base_url=far.url, effort="high"))
    assert [options_of(asked) for asked in far.asked] == [("high", True), ("high", False)]


def test_another_refusal_is_told_at_once() -> None:
    with ScriptedModel(refusing(lambda _: "the prompt is too long")) as far:
        endpoint = ModelEndpoint("claude-sonnet-5-5", base_url=far.url, effort="high")
        with pytest.raises(OutsideError, match="too long"):
            ask(endpoint)
    assert len(far.asked) == 1


def test_another_effort_is_another_question() -> None:
    kept: dict[str, str] = {}
    with ScriptedModel(["one", "two"]) as far:
        ways: dict[str, Any] = {"recall": kept.get, "remember": kept.__setitem__}
        plain = ModelEndpoint("claude-sonnet-5-5", base_url=far.url)
        asked = (plain, replace(plain, effort="low"), plain)
        said = [ask(endpoint, **ways) for endpoint in asked]
    assert said == ["one", "two", "one"]


def test_every_tool_of_ours_can_be_strict() -> None:
    modules = (model_rung, review_prompts, answer)
    values = [value for module in modules for value in vars(module).values()]
    tools = [value for value in values if isinstance(value, Tool)]
    tools += [t for value in values if isinstance(value, tuple) for t in value if isinstance(t, Tool)]  # fmt: skip
    assert len({tool.name for tool in tools}) > 8
    for tool in render_tools(tools, strict=True):
        assert tool["strict"] is True
        assert tool["input_schema"]["additionalProperties"] is False
        assert "minimum" not in str(tool["input_schema"].get("properties", {}).keys())


def test_a_strict_schema_says_in_words_what_it_cannot_hold() -> None:
    (tool,) = render_tools([REPORT], strict=True)
    assert "minimum" not in tool["input_schema"]["properties"]["n"]
    assert "minimum: 1" in tool["input_schema"]["properties"]["n"]["description"]


@pytest.mark.parametrize(
    ("name", "listed"),
    [
        ("claude-sonnet-5-5", "claude-sonnet-5-5"),
        ("claude-opus-4-20250514", "claude-opus-4"),
        ("claude-haiku-4-5@20251001", "claude-haiku-4-5"),
        ("us.anthropic.claude-sonnet-5-20260101-v1:0", "claude-sonnet-5"),
        (
            "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-opus-5-5",
            "claude-opus-5-5",
        ),
        ("anthropic/claude-opus-5", "claude-opus-5"),
        ("claude-sonnet-5-7", None),
        ("claude-sonnet-55", None),
        ("not-claude-sonnet-5", None),
        ("qwen3-coder:30b", None),
    ],
)
def test_a_model_is_found_by_every_providers_name_for_it(name: str, listed: str | None) -> None:
    assert find_listed_model(name) is (load_table().models[listed] if listed else None)


def test_prices_are_dated_and_of_a_kind() -> None:
    table = load_table()
    assert table.date.year >= 2026
    for model in table.models.values():
        assert model.price.cache_read < model.price.input < model.price.cache_write < model.price.output  # fmt: skip


def test_a_region_costs_more_than_the_global_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "anthropic.claude-sonnet-5-5"
    plain = ModelEndpoint("claude-sonnet-5-5").price_of("claude-sonnet-5-5")
    bedrock = ModelEndpoint(name, provider="bedrock")
    assert bedrock.price_of(f"us.{name}").output == pytest.approx(plain.output * 1.1)
    assert bedrock.price_of(f"global.{name}") == plain
    monkeypatch.setenv("CLOUD_ML_REGION", "global")
    assert ModelEndpoint(name, provider="vertex").price_of("claude-sonnet-5-5") == plain
    monkeypatch.setenv("CLOUD_ML_REGION", "us-east5")
    assert ModelEndpoint(name, provider="vertex").price_of("claude-sonnet-5-5").input > plain.input


def settings(**given: Any) -> Settings:
    return Settings(_env_file=None, anthropic_base_url="http://127.0.0.1:9", **given)


@pytest.mark.parametrize("given", [{"model": "qwen3-coder"}, {"fallback_model": "qwen3-coder"}])
def test_a_model_without_a_price_is_told_before_anything_is_asked(given: dict[str, str]) -> None:
    with pytest.raises(UserError, match=r"'qwen3-coder'.*REGREEN_MODEL_PRICE=INPUT,OUTPUT"):
        ModelEndpoint.from_settings(settings(**given))


@pytest.mark.parametrize(("given", "there"), [("", False), ("k", True)])
def test_an_empty_key_is_no_model(monkeypatch: pytest.MonkeyPatch, given: str, there: bool) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", given)  # as a workflow sets a secret that is not there
    assert (ModelEndpoint.from_settings(Settings(_env_file=None)) is not None) is there


def test_a_price_that_is_given_holds_for_the_model_and_an_unlisted_fallback() -> None:
    given = settings(model="qwen3-coder", fallback_model="mistral", model_price="0,0")
    endpoint = ModelEndpoint.from_settings(given)
    assert endpoint is not None
    assert endpoint.price_of("qwen3-coder") == endpoint.price_of("mistral") == ModelPrice(0, 0, 0, 0)  # fmt: skip
    assert endpoint.price_of("claude-opus-5").output == 25.0


def test_a_model_that_costs_nothing_is_never_refused_by_a_budget() -> None:
    with ScriptedModel(["fine"]) as far:
        free = ModelEndpoint("mine", base_url=far.url, price=ModelPrice(0, 0, 0, 0))
        assert ask(free, budget_usd=lambda: 0.0) == "fine"
        with pytest.raises(OutOfBudget):
            ask(ModelEndpoint("claude-sonnet-5", base_url=far.url), budget_usd=lambda: 0.0)
