"""The scripted model, asked by the real client library."""

from __future__ import annotations

from collections.abc import Iterator

import anthropic
import pytest
from regreen_playground.model import Answer, Fails, Says, ScriptedModel, Use


def client(model: ScriptedModel) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=model.url, api_key="any", max_retries=0)


ASK: list[anthropic.types.MessageParam] = [{"role": "user", "content": "Is it broken?"}]


@pytest.fixture
def model(request: pytest.FixtureRequest) -> Iterator[ScriptedModel]:
    answers: list[Answer] = request.param
    with ScriptedModel(answers) as made:
        yield made


@pytest.mark.parametrize("model", [["It is."]], indirect=True)
def test_text(model: ScriptedModel) -> None:
    with client(model) as asking:
        got = asking.messages.create(model="m", max_tokens=10, messages=ASK)
    assert got.content[0].type == "text"
    assert got.content[0].text == "It is."
    assert got.stop_reason == "end_turn"
    assert model.asked[0]["messages"] == ASK


@pytest.mark.parametrize("model", [[Says(("Look:", Use("report", {"line": 3})))]], indirect=True)
def test_a_tool_call_streamed(model: ScriptedModel) -> None:
    with (
        client(model) as asking,
        asking.messages.stream(model="m", max_tokens=10, messages=ASK) as stream,
    ):
        got = stream.get_final_message()
    assert got.stop_reason == "tool_use"
    assert got.content[1].type == "tool_use"
    assert got.content[1].input == {"line": 3}


@pytest.mark.parametrize("model", [[Fails(529, "overloaded_error", "busy")]], indirect=True)
def test_an_error(model: ScriptedModel) -> None:
    with client(model) as asking, pytest.raises(anthropic.APIStatusError) as seen:
        asking.messages.create(model="m", max_tokens=10, messages=ASK)
    assert seen.value.status_code == 529


@pytest.mark.parametrize("model", [[]], indirect=True)
def test_more_questions_than_answers_is_noticed(model: ScriptedModel) -> None:
    with client(model) as asking, pytest.raises(anthropic.BadRequestError):
        asking.messages.create(model="m", max_tokens=10, messages=ASK)
    assert len(model.surprises) == 1
