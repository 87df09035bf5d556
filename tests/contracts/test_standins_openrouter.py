"""The OpenRouter stand-in under the real openai client, over httpx2 and over aiohttp: what each rule leads to there."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, DefaultAioHttpClient, DefaultAsyncHttpxClient

from tests.standins import Fault, OpenRouterStandIn, Said
from tests.standins.openrouter import (
    broken,
    error,
    example,
    html_page,
    in_flight_budget,
    out_of_credit,
    rate_limited,
)

KEY = "sk-or-test-1"
HELLO: list[Any] = [{"role": "user", "content": "สวัสดี"}]
SCHEMA = {
    "type": "object",
    "properties": {"kind": {"type": "string", "enum": ["ORDER", "OTHER"]}, "score": {"type": "number"}},
    "required": ["kind", "score"],
    "additionalProperties": False,
}
FORMAT: Any = {"type": "json_schema", "json_schema": {"name": "event", "strict": True, "schema": SCHEMA}}


@pytest.fixture
async def llm() -> AsyncIterator[OpenRouterStandIn]:
    async with OpenRouterStandIn() as standin:
        yield standin


@pytest.fixture(params=["httpx2", "aiohttp"])
async def client(llm: OpenRouterStandIn, request: pytest.FixtureRequest) -> AsyncIterator[AsyncOpenAI]:
    http = DefaultAioHttpClient() if request.param == "aiohttp" else DefaultAsyncHttpxClient(trust_env=False)
    async with AsyncOpenAI(base_url=llm.url, api_key=KEY, max_retries=0, timeout=5, http_client=http) as made:
        yield made


async def ask(client: AsyncOpenAI, **more: Any) -> Any:
    return await client.chat.completions.create(**{"model": "openai/gpt-4o-mini", "messages": HELLO, **more})


async def read(client: AsyncOpenAI, seen: list[Any]) -> str:
    """The text of a stream; `seen` gets every chunk, also when it breaks."""
    async for chunk in await ask(client, stream=True):
        seen.append(chunk)
    return text_of(seen)


def text_of(chunks: list[Any]) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


# --- OpenRouter 4: answers


async def test_an_answer_has_openais_shape_and_openrouters_fields(llm: OpenRouterStandIn, client: AsyncOpenAI) -> None:
    llm.answers("สวัสดีค่ะ")
    answer = await ask(client, extra_body={"session_id": "s1"})
    assert answer.choices[0].message.content == "สวัสดีค่ะ"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.model_extra["provider"] == "StandIn"
    assert answer.usage.model_extra["cost"] > 0
    assert llm.requests[0]["session_id"] == "s1"
    assert llm.calls[0].headers["authorization"] == f"Bearer {KEY}"


async def test_a_stream_has_comments_and_ends_with_usage_and_no_choices(
    llm: OpenRouterStandIn, client: AsyncOpenAI
) -> None:
    llm.answers("สวัสดีค่ะ ร้านเปิดเจ็ดโมงเช้า")
    seen: list[Any] = []
    assert await read(client, seen) == "สวัสดีค่ะ ร้านเปิดเจ็ดโมงเช้า"
    assert [chunk.choices[0].finish_reason for chunk in seen if chunk.choices][-1] == "stop"
    assert (seen[-1].choices, seen[-1].usage.total_tokens > 0) == ([], True)
    raw = client.chat.completions.with_streaming_response
    async with raw.create(model="m", messages=HELLO, stream=True) as answer:
        lines = [line async for line in answer.iter_lines()]
    assert lines[0] == ": OPENROUTER PROCESSING"
    assert [line for line in lines if line][-1] == "data: [DONE]"


async def test_answers_come_in_turn_then_from_the_function(llm: OpenRouterStandIn, client: AsyncOpenAI) -> None:
    llm.answers("one", {"kind": "ORDER"}, lambda request: f"{len(request['messages'])} message")
    texts = [(await ask(client)).choices[0].message.content for _ in range(3)]
    assert texts == ["one", '{"kind": "ORDER"}', "1 message"]


async def test_tool_calls_come_whole_and_streamed(llm: OpenRouterStandIn, client: AsyncOpenAI) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "stock", "arguments": '{"size": "M"}'}}
    llm.answers(*[Said(tool_calls=(call,), finish_reason="tool_calls")] * 2)
    answer = await ask(client)
    assert answer.choices[0].message.tool_calls[0].function.name == "stock"
    seen: list[Any] = []
    await read(client, seen)
    deltas = [c.choices[0].delta.tool_calls[0] for c in seen if c.choices and c.choices[0].delta.tool_calls]
    assert [(one.index, one.id, one.function.name) for one in deltas] == [
        (0, "call_1", "stock"),
        (0, None, None),
        (0, None, None),
    ]
    assert "".join(one.function.arguments for one in deltas) == '{"size": "M"}'


async def test_an_untold_model_fills_the_schema(llm: OpenRouterStandIn, client: AsyncOpenAI) -> None:
    answer = await ask(client, response_format=FORMAT)
    assert json.loads(answer.choices[0].message.content) == {"kind": "ORDER", "score": 0}


def test_an_example_follows_references_and_bounds() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"$ref": "#/$defs/A"},
            "n": {"anyOf": [{"type": "null"}]},
            "l": {"type": "array", "items": {"type": "integer", "minimum": 2}, "minItems": 1},
            "s": {"type": "string", "minLength": 2},
            "left out": {"type": "string"},
        },
        "required": ["a", "n", "l", "s"],
        "$defs": {"A": {"const": "x"}},
    }
    assert example(schema) == {"a": "x", "n": None, "l": [2], "s": "xx"}


# --- OpenRouter 4: parameters and routing


async def test_a_schema_nobody_supports_is_ignored_or_404(llm: OpenRouterStandIn, client: AsyncOpenAI) -> None:
    llm.models = {"openai/gpt-4o-mini": {"response_format"}}
    answer = await ask(client, response_format=FORMAT)
    assert answer.choices[0].message.content == "echo: สวัสดี"
    with pytest.raises(openai.NotFoundError) as raised:
        await ask(client, response_format=FORMAT, extra_body={"provider": {"require_parameters": True}})
    body: Any = raised.value.body
    assert body["availability"]["code"] == "constraint_filtered"
    plain = {"type": "json_object"}
    fine = await ask(client, response_format=plain, extra_body={"provider": {"require_parameters": True}})
    assert fine.choices[0].message.content == "{}"


async def test_fallback_models_are_tried_in_order(llm: OpenRouterStandIn, client: AsyncOpenAI) -> None:
    llm.down = {"openai/gpt-4o-mini"}
    answer = await ask(client, extra_body={"models": ["other/model"]})
    assert answer.model == "other/model"
    with pytest.raises(openai.InternalServerError) as raised:
        await ask(client)
    assert raised.value.status_code == 502


async def test_an_unknown_model_or_a_wrong_request_is_400(llm: OpenRouterStandIn, client: AsyncOpenAI) -> None:
    llm.models = {"openai/gpt-4o-mini": set()}
    wrongs: list[dict[str, Any]] = [
        {"model": "no/such"},
        {"messages": []},
        {"messages": [{"role": "bot", "content": "x"}]},
    ]
    for wrong in wrongs:
        with pytest.raises(openai.BadRequestError):
            await ask(client, **wrong)


async def test_a_wrong_key_is_401(llm: OpenRouterStandIn, client: AsyncOpenAI) -> None:
    with pytest.raises(openai.AuthenticationError):
        await ask(client.with_options(api_key="sk-or-other"))
    assert llm.calls[0].answered_status == 401


async def test_contents_in_parts_and_the_limit_of_a_session_id(llm: OpenRouterStandIn, client: AsyncOpenAI) -> None:
    parts: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "ภาพ"}]}]
    answer = await ask(client, messages=parts, extra_body={"session_id": "s" * 256})
    assert answer.choices[0].message.content == "echo: ภาพ"
    with pytest.raises(openai.BadRequestError):
        await ask(client, extra_body={"session_id": "s" * 257})


# --- OpenRouter 4: errors before the first token


async def test_both_402_are_plain_status_errors_told_apart_by_metadata(
    llm: OpenRouterStandIn, client: AsyncOpenAI
) -> None:
    llm.next(out_of_credit(), in_flight_budget(2))
    seen = []
    for _ in range(2):
        with pytest.raises(openai.APIStatusError) as raised:
            await ask(client)
        assert (type(raised.value), raised.value.status_code) == (openai.APIStatusError, 402)
        body: Any = raised.value.body
        seen.append((body["metadata"]["limit_source"], raised.value.response.headers.get("retry-after")))
    assert seen == [("openrouter_credits", None), ("openrouter_in_flight_budget", "2")]


async def test_both_429(llm: OpenRouterStandIn, client: AsyncOpenAI) -> None:
    llm.next(rate_limited(1), rate_limited(by_provider=True))
    with pytest.raises(openai.RateLimitError) as platform:
        await ask(client)
    assert platform.value.response.headers["x-ratelimit-remaining"] == "0"
    with pytest.raises(openai.RateLimitError) as provider:
        await ask(client)
    body: Any = provider.value.body
    assert body["metadata"]["provider_code"] == "rate_limit_exceeded"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (403, openai.PermissionDeniedError),
        (408, openai.APIStatusError),
        (413, openai.APIStatusError),
        (500, openai.InternalServerError),
        (503, openai.InternalServerError),
        (529, openai.InternalServerError),
    ],
)
async def test_other_statuses(
    llm: OpenRouterStandIn, client: AsyncOpenAI, status: int, kind: type[openai.APIStatusError]
) -> None:
    llm.next(error(status, "no"))
    with pytest.raises(kind) as raised:
        await ask(client)
    assert (type(raised.value), raised.value.code) == (kind, str(status))


async def test_the_clients_own_retries_reach_the_stand_in(llm: OpenRouterStandIn, client: AsyncOpenAI) -> None:
    llm.next(error(503, "busy", headers={"Retry-After": "0.01"}))
    await ask(client.with_options(max_retries=1))
    assert [call.answered_status for call in llm.calls] == [503, 200]


async def test_a_page_with_502_is_an_error_and_with_200_a_string(llm: OpenRouterStandIn, client: AsyncOpenAI) -> None:
    llm.next(html_page(), html_page(200))
    with pytest.raises(openai.InternalServerError):
        await ask(client)
    assert isinstance(await ask(client), str)


# --- OpenRouter 4: errors inside a 200


async def test_an_error_inside_a_200_raises_nothing(llm: OpenRouterStandIn, client: AsyncOpenAI) -> None:
    llm.next(broken("error_in_200"))
    answer = await ask(client)
    assert (answer.choices, answer.model_extra["error"]["code"]) == (None, 502)


async def test_an_error_in_the_choice_stands_beside_partial_text(llm: OpenRouterStandIn, client: AsyncOpenAI) -> None:
    llm.answers("0123456789")
    llm.next(broken("choice_error"))
    choice = (await ask(client)).choices[0]
    assert (choice.finish_reason, choice.message.content, choice.model_extra["error"]["code"]) == (
        "error",
        "01234",
        502,
    )


async def test_an_empty_completion_has_no_finish_reason(llm: OpenRouterStandIn, client: AsyncOpenAI) -> None:
    llm.next(broken("empty"), broken("empty"))
    choice = (await ask(client)).choices[0]
    assert (choice.finish_reason, choice.message.content) == (None, "")
    seen: list[Any] = []
    assert await read(client, seen) == ""
    assert {chunk.choices[0].finish_reason for chunk in seen if chunk.choices} == {None}


async def test_nonsense_instead_of_json(llm: OpenRouterStandIn, client: AsyncOpenAI) -> None:
    llm.next(broken("nonsense"), broken("nonsense"))
    with pytest.raises((json.JSONDecodeError, openai.APIResponseValidationError)):
        await ask(client)
    with pytest.raises(json.JSONDecodeError):
        await read(client, [])


async def test_an_error_in_mid_stream_comes_after_some_text(llm: OpenRouterStandIn, client: AsyncOpenAI) -> None:
    llm.answers("0123456789" * 4)
    llm.next(broken("mid_stream_error"))
    seen: list[Any] = []
    with pytest.raises(openai.APIError) as raised:
        await read(client, seen)
    assert not isinstance(raised.value, openai.APIStatusError)
    assert text_of(seen) == "0123456789" * 2 + "0123"


async def test_a_cut_stream_is_a_connection_error(llm: OpenRouterStandIn, client: AsyncOpenAI) -> None:
    llm.answers("0123456789" * 4)
    llm.next(broken("cut"))
    seen: list[Any] = []
    with pytest.raises(openai.APIConnectionError):
        await read(client, seen)
    assert text_of(seen).startswith("0123")


async def test_a_stream_that_just_ends_raises_nothing_and_has_no_finish_reason(
    llm: OpenRouterStandIn, client: AsyncOpenAI
) -> None:
    llm.answers("0123456789" * 4)
    llm.next(broken("unfinished"))
    seen: list[Any] = []
    assert await read(client, seen) == "0123456789" * 2 + "0123"
    assert {chunk.choices[0].finish_reason for chunk in seen} == {None}


async def test_a_stalled_stream_runs_into_the_read_timeout(llm: OpenRouterStandIn, client: AsyncOpenAI) -> None:
    llm.answers("0123456789" * 4)
    llm.next(broken("stall"))
    with pytest.raises(openai.APITimeoutError):
        await read(client.with_options(timeout=0.3), [])


async def test_a_connection_closed_without_an_answer(llm: OpenRouterStandIn, client: AsyncOpenAI) -> None:
    llm.next(Fault(cut=True))
    with pytest.raises(openai.APIConnectionError):
        await ask(client)


async def test_a_slow_answer_runs_into_the_timeout(llm: OpenRouterStandIn, client: AsyncOpenAI) -> None:
    llm.next(Fault(delay=30))
    with pytest.raises(openai.APITimeoutError):
        await ask(client.with_options(timeout=0.3))


# --- OpenRouter 4: the rest


async def test_embeddings_are_the_same_for_the_same_text(llm: OpenRouterStandIn, client: AsyncOpenAI) -> None:
    answer = await client.embeddings.create(model="e", input=["ก", "ข", "ก"], dimensions=16)
    first, second, third = (one.embedding for one in answer.data)
    assert (len(first), first == third, first == second) == (16, True, False)
    floats = await client.embeddings.create(model="e", input="ก", dimensions=16, encoding_format="float")
    assert floats.data[0].embedding == pytest.approx(first, abs=1e-6)


async def test_models_are_listed(llm: OpenRouterStandIn, client: AsyncOpenAI) -> None:
    llm.models = {"a/one": {"tools"}, "b/two": set()}
    assert [model.id async for model in client.models.list()] == ["a/one", "b/two"]
