"""The practice model's server, as a client of OpenAI's API meets it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import openai
import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionMessageParam

from droidfleet_controller.practice import PracticeServer
from droidfleet_designer.loop.telling import told
from droidfleet_designer.practice.past import LANGUAGES
from droidfleet_shared.clock import SystemClock

pytestmark = pytest.mark.asyncio


@pytest.fixture
async def client() -> AsyncIterator[AsyncOpenAI]:
    server = PracticeServer(clock=SystemClock())
    await server.start()
    try:
        async with AsyncOpenAI(base_url=server.url, api_key="none", max_retries=0, timeout=10.0) as client:
            yield client
    finally:
        await server.stop()


def conversation(description: str, language: str = "en") -> list[ChatCompletionMessageParam]:
    brief = told(
        "BRIEF", language, description=description, device='"phone-01"', settings="{}", turns=60, tokens="400,000"
    )
    return [{"role": "system", "content": "You explore a phone."}, {"role": "user", "content": brief}]


async def test_it_says_which_model_it_has(client: AsyncOpenAI) -> None:
    assert [each.id async for each in client.models.list()] == ["practice"]


async def test_it_answers_whole_with_words_and_one_call(client: AsyncOpenAI) -> None:
    answer = await client.chat.completions.create(model="practice", messages=conversation("Open Shop."))
    [choice] = answer.choices
    assert choice.finish_reason == "tool_calls"
    assert "no language model" in (choice.message.content or "")
    [call] = choice.message.tool_calls or []
    assert call.type == "function"
    assert (call.function.name, json.loads(call.function.arguments)) == ("screen", {})


async def test_it_streams_the_same_answer_in_pieces(client: AsyncOpenAI) -> None:
    messages = conversation("Open Shop.")
    whole = (await client.chat.completions.create(model="practice", messages=messages)).choices[0].message
    text, arguments, usages = "", "", []
    async with await client.chat.completions.create(
        model="practice", messages=messages, stream=True, stream_options={"include_usage": True}
    ) as stream:
        async for piece in stream:
            usages += [piece.usage] if piece.usage else []
            for choice in piece.choices:
                text += choice.delta.content or ""
                arguments += "".join(
                    call.function.arguments or "" for call in choice.delta.tool_calls or [] if call.function
                )
    assert (text, arguments) == (whole.content, "{}")
    assert usages[0].prompt_tokens > 0


@pytest.mark.parametrize("language", LANGUAGES)
async def test_it_refuses_what_it_does_not_understand_and_says_what_it_is(client: AsyncOpenAI, language: str) -> None:
    messages = conversation("Make me happy", language)
    message = (await client.chat.completions.create(model="practice", messages=messages)).choices[0].message
    assert message.tool_calls is None
    assert "Make me happy" in (message.refusal or "")


async def test_a_chat_that_is_no_exploration_is_told_what_it_is(client: AsyncOpenAI) -> None:
    answer = await client.chat.completions.create(model="practice", messages=[{"role": "user", "content": "Hello"}])
    assert "rules, no language model" in (answer.choices[0].message.content or "")


async def test_a_request_that_is_none_is_refused_with_what_is_wrong(client: AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="messages"):
        await client.chat.completions.create(model="practice", messages=[])
