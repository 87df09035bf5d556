import asyncio
import gc
import json
import logging
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec import structs

from processors.breaker import Breaker
from processors.event_processor import SCHEMA, EventProcessor
from processors.ladder import OBJECT, request_body
from processors.llm import (
    Access,
    ChatRequest,
    Completion,
    LLMBadAnswer,
    LLMError,
    LLMNotConfigured,
    LLMOutOfCredit,
    LLMRejected,
    LLMUnauthorized,
    LLMUnavailable,
    Usage,
)
from processors.openrouter import OpenRouter
from processors.openrouter_errors import FormatRefused, from_status, retry_after
from processors.streamed import Streamed
from processors.structured import NotUsable, parse, wire_schema
from tests.standins.model import Fault
from tests.standins.openrouter import (
    OpenRouterStandIn,
    Said,
    broken,
    error,
    html_page,
    in_flight_budget,
    out_of_credit,
    rate_limited,
)

KEY = "sk-or-test-1"
ANSWER = {"label": "B", "score": 0.5}
LABELS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["label", "score"],
    "properties": {
        "label": {"type": "string", "enum": ["A", "B", "GENERIC_EVENT"]},
        "score": {"type": "number", "minimum": 0, "maximum": 1},
    },
}


@pytest.fixture
async def standin() -> AsyncIterator[OpenRouterStandIn]:
    async with OpenRouterStandIn() as server:
        yield server


class Waits:
    """Sleeps nowhere; records how long it was asked to."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
async def llm(waits: Waits) -> AsyncIterator[OpenRouter]:
    client = OpenRouter(sleep=waits)
    yield client
    await client.close()


def access(standin: OpenRouterStandIn, key: str | None = KEY, **more: Any) -> Access:
    return Access(key, standin.url, **{"timeout": 10.0, **more})


def ask(standin: OpenRouterStandIn, schema: dict[str, Any] | None = None, **more: Any) -> ChatRequest:
    return ChatRequest([{"role": "user", "content": "hello"}], access(standin, **more), schema=schema)


async def heard(llm: OpenRouter, request: ChatRequest) -> list[str]:
    return [piece async for piece in llm.stream(request) if isinstance(piece, str)]


async def test_a_completion_has_text_model_provider_and_cost(standin: OpenRouterStandIn) -> None:
    used: list[tuple[str, Usage]] = []
    llm = OpenRouter(on_usage=lambda access, model, usage: used.append((model, usage)))
    answer = await llm.complete(ask(standin))
    assert (answer.text, answer.model, answer.provider) == ("echo: hello", "openai/gpt-4o-mini", "StandIn")
    assert answer.finish_reason == "stop"
    assert answer.usage.cost is not None
    assert used == [(answer.model, answer.usage)]
    *pieces, whole = [piece async for piece in llm.stream(ask(standin))]
    assert ("".join(map(str, pieces)), whole) == ("echo: hello", answer)
    assert [usage.completion_tokens for _, usage in used] == [answer.usage.completion_tokens] * 2
    await llm.close()


async def test_no_key_asks_nobody(standin: OpenRouterStandIn, llm: OpenRouter) -> None:
    with pytest.raises(LLMNotConfigured):
        await llm.complete(ask(standin, key=None))
    with pytest.raises(LLMNotConfigured):
        await heard(llm, ask(standin, key=None))
    assert standin.requests == []


async def test_each_call_brings_its_own_key(standin: OpenRouterStandIn, llm: OpenRouter) -> None:
    standin.keys.add("sk-or-test-2")
    await llm.complete(ask(standin, key="sk-or-test-2"))
    await llm.complete(ask(standin))
    calls = standin.calls_to("/chat/completions")
    assert [c.headers["authorization"] for c in calls] == ["Bearer sk-or-test-2", f"Bearer {KEY}"]


async def test_fallback_models_answer_for_a_model_that_is_down(standin: OpenRouterStandIn, llm: OpenRouter) -> None:
    standin.down = {"openai/gpt-4o-mini"}
    answer = await llm.complete(ask(standin, fallback_models=("other/model",)))
    assert answer.model == "other/model"


@pytest.mark.parametrize(
    "fault",
    [
        rate_limited(),
        rate_limited(by_provider=True),
        in_flight_budget(0),
        error(408, "timeout"),
        error(409, "conflict"),
        error(500, "oops"),
        error(503, "none available"),
        error(529, "overloaded"),
        html_page(502),
        html_page(200),
        broken("error_in_200"),
        broken("choice_error"),
        broken("empty"),
        broken("nonsense"),
        broken("cut"),
        Fault(cut=True, on="/chat/completions"),
    ],
    ids=lambda f: f"{f.status} {f.shape}",
)
async def test_what_passes_is_tried_again(standin: OpenRouterStandIn, llm: OpenRouter, fault: Fault) -> None:
    standin.next(fault)
    assert (await llm.complete(ask(standin))).text == "echo: hello"
    assert len(standin.calls_to("/chat/completions")) == 2


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (error(401, "No auth"), LLMUnauthorized),
        (error(403, "Key limit exceeded", resets_at="2030-01-01"), LLMUnauthorized),
        (error(403, "Your input was flagged", reasons=["violence"], flagged_input="hello"), LLMRejected),
        (out_of_credit(), LLMOutOfCredit),
        (error(400, "bad request"), LLMRejected),
        (error(404, "No endpoints found"), LLMRejected),
        (error(413, "too large"), LLMRejected),
    ],
    ids=lambda v: str(getattr(v, "status", "")),
)
async def test_what_does_not_pass_is_not_tried_again(
    standin: OpenRouterStandIn, llm: OpenRouter, waits: Waits, fault: Fault, kind: type[LLMError]
) -> None:
    standin.next(fault)
    with pytest.raises(kind):
        await llm.complete(ask(standin))
    assert (len(standin.calls_to("/chat/completions")), waits.seconds) == (1, [])


async def test_retry_after_is_waited_for_where_it_fits(
    standin: OpenRouterStandIn, llm: OpenRouter, waits: Waits
) -> None:
    standin.next(rate_limited(3))
    await llm.complete(ask(standin))
    assert waits.seconds == [3.05]


async def test_a_wait_beyond_the_deadline_is_told_at_once(
    standin: OpenRouterStandIn, llm: OpenRouter, waits: Waits
) -> None:
    standin.next(rate_limited(15))
    with pytest.raises(LLMUnavailable) as caught:
        await llm.complete(ask(standin))
    assert (caught.value.retry_after, waits.seconds) == (15.0, [])


async def test_trying_again_has_an_end(standin: OpenRouterStandIn, llm: OpenRouter) -> None:
    standin.next(*[error(503, "none")] * 10)
    with pytest.raises(LLMUnavailable):
        await llm.complete(ask(standin))
    assert len(standin.calls_to("/chat/completions")) == 4


async def test_the_whole_call_ends_in_its_time(standin: OpenRouterStandIn, llm: OpenRouter) -> None:
    for shape in (Fault(delay=90, on="/chat/completions"), broken("stall")):
        standin.next(shape)
        started = time.monotonic()
        with pytest.raises(LLMUnavailable):
            await llm.complete(ask(standin, timeout=0.3))
        assert time.monotonic() - started < 30


async def test_a_server_that_is_not_there_is_unavailable(llm: OpenRouter) -> None:
    request = ChatRequest([{"role": "user", "content": "x"}], Access(KEY, "http://127.0.0.1:9/v1", timeout=3.0))
    with pytest.raises(LLMUnavailable):
        await llm.complete(request)


# -- streams


@pytest.mark.parametrize("shape", ["error_in_200", "nonsense", "empty"])
async def test_a_stream_is_tried_again_before_its_first_text(
    standin: OpenRouterStandIn, llm: OpenRouter, shape: str
) -> None:
    standin.next(broken(shape))
    assert "".join(await heard(llm, ask(standin))) == "echo: hello"
    assert len(standin.requests) == 2


@pytest.mark.parametrize("shape", ["mid_stream_error", "cut", "unfinished"])
async def test_a_stream_that_breaks_after_some_text_says_so(
    standin: OpenRouterStandIn, llm: OpenRouter, shape: str
) -> None:
    standin.answers(Said("echo: hello", pause=0.05))
    standin.next(broken(shape))
    stream = llm.stream(ask(standin))
    assert await anext(stream) == "echo: he"
    with pytest.raises(LLMUnavailable):
        await anext(stream)
    assert len(standin.requests) == 1


async def test_a_stream_that_stalls_ends_in_its_time(standin: OpenRouterStandIn, llm: OpenRouter) -> None:
    for shape in (Fault(delay=90, on="/chat/completions"), broken("stall")):
        standin.next(shape)
        started = time.monotonic()
        with pytest.raises(LLMUnavailable):
            await heard(llm, ask(standin, timeout=0.5))
        assert time.monotonic() - started < 30


async def test_a_stream_left_early_is_closed_and_counted(standin: OpenRouterStandIn) -> None:
    used: list[str] = []
    llm = OpenRouter(on_usage=lambda access, model, usage: used.append(model))
    standin.answers(Said("x" * 4000, pause=0.01))
    stream = llm.stream(ask(standin))
    async for _ in stream:
        break
    await stream.aclose()  # type: ignore[attr-defined]
    await standin.until(lambda: standin.hung_up == 1, 5)
    assert (await llm.complete(ask(standin))).text == "echo: hello"
    assert used == ["openai/gpt-4o-mini"] * 2
    await llm.close()


async def test_a_stream_left_without_a_word_is_closed_and_counted(standin: OpenRouterStandIn) -> None:
    used: list[str] = []
    llm = OpenRouter(on_usage=lambda access, model, usage: used.append(model))
    standin.answers(Said("x" * 4000, pause=0.01))
    await anext(llm.stream(ask(standin)))
    gc.collect()
    await standin.until(lambda: standin.hung_up == 1, 5)
    assert used == ["openai/gpt-4o-mini"]
    await llm.close()


async def test_a_stream_is_over_once(standin: OpenRouterStandIn, llm: OpenRouter) -> None:
    stream = llm.stream(ask(standin))
    *_, whole = [piece async for piece in stream]
    assert isinstance(whole, Completion)
    assert [piece async for piece in stream] == []
    left = llm.stream(ask(standin))
    await left.aclose()  # type: ignore[attr-defined]
    assert [piece async for piece in left] == []
    assert len(standin.requests) == 1


async def test_a_stream_under_way_goes_on_when_the_breaker_opens(standin: OpenRouterStandIn, waits: Waits) -> None:
    llm = OpenRouter(sleep=waits, breaker_threshold=4)
    standin.answers(Said("a long answer in several pieces", pause=0.05))
    stream = llm.stream(ask(standin))
    came = [await anext(stream)]
    assert came == ["a long a"]
    standin.next(*[error(503, "none")] * 4)
    with pytest.raises(LLMUnavailable):
        await llm.complete(ask(standin))
    with pytest.raises(LLMUnavailable, match="left alone"):
        await llm.complete(ask(standin))
    *rest, whole = [piece async for piece in stream]
    assert "".join(map(str, [*came, *rest])) == "a long answer in several pieces"
    assert isinstance(whole, Completion)
    assert whole.text == "a long answer in several pieces"
    await llm.close()


TOOLS = ({"type": "function", "function": {"name": "stock", "parameters": {"type": "object"}}},)
CALLS = tuple(
    {"id": f"call_{at}", "type": "function", "function": {"name": "stock", "arguments": json.dumps({"size": size})}}
    for at, size in enumerate(("a long and winding size", "M"))
)


async def test_a_stream_ends_with_what_the_same_answer_is_when_it_comes_whole(
    standin: OpenRouterStandIn, llm: OpenRouter
) -> None:
    said = Said("One moment: ไซส์ M 👕", tool_calls=CALLS, finish_reason="tool_calls")
    standin.answers(said, said)
    request = structs.replace(ask(standin), tools=TOOLS)
    *pieces, streamed = [piece async for piece in llm.stream(request)]
    assert streamed == await llm.complete(request)
    assert isinstance(streamed, Completion)
    assert streamed.text == "".join(map(str, pieces)) == "One moment: ไซส์ M 👕"
    assert [(one.id, one.name, one.arguments) for one in streamed.tool_calls] == [
        ("call_0", "stock", '{"size": "a long and winding size"}'),
        ("call_1", "stock", '{"size": "M"}'),
    ]


async def test_a_stream_may_be_of_tool_calls_alone(standin: OpenRouterStandIn, llm: OpenRouter) -> None:
    standin.answers(Said(tool_calls=CALLS[1:], finish_reason="tool_calls"))
    (whole,) = [piece async for piece in llm.stream(structs.replace(ask(standin), tools=TOOLS))]
    assert isinstance(whole, Completion)
    assert [one.arguments for one in whole.tool_calls] == ['{"size": "M"}']


async def test_where_streaming_is_refused_the_whole_answer_is_asked_for_and_that_remembered(
    standin: OpenRouterStandIn, llm: OpenRouter
) -> None:
    standin.next(error(400, "This endpoint does not support streaming"))
    assert await heard(llm, ask(standin)) == ["echo: hello"]
    assert await heard(llm, ask(standin)) == ["echo: hello"]
    assert [body.get("stream", False) for body in standin.requests] == [True, False, False]


async def test_an_endpoint_that_passes_over_stream_is_understood(standin: OpenRouterStandIn, llm: OpenRouter) -> None:
    standin.streams = False
    assert await heard(llm, ask(standin)) == ["echo: hello"]
    assert len(standin.requests) == 1


async def test_an_endpoint_without_openrouters_own_fields_is_streamed_without_them(
    standin: OpenRouterStandIn, llm: OpenRouter
) -> None:
    standin.next(error(400, "Unrecognized request argument supplied: session_id"))
    assert "".join(await heard(llm, structs.replace(ask(standin), session_id="s1"))) == "echo: hello"
    first, second = standin.requests
    assert ("session_id" in first, "session_id" in second) == (True, False)
    assert second["stream_options"] == {"include_usage": True}


async def test_a_refused_request_is_refused_as_a_stream_too(standin: OpenRouterStandIn, llm: OpenRouter) -> None:
    standin.next(*[error(400, "messages: too long")] * 2)
    with pytest.raises(LLMRejected):
        await heard(llm, ask(standin))
    assert "".join(await heard(llm, ask(standin))) == "echo: hello"
    assert [body.get("stream", False) for body in standin.requests] == [True, False, True]


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_stream_may_be_cut_anywhere_on_its_way(size: int) -> None:
    lines = [
        ": OPENROUTER PROCESSING",
        "",
        'data: {"model":"m","choices":[{"delta":{"content":"ไซส์ "}}]}\r',
        "\r",
        'data:{"choices":[{"delta":{"content":[{"type":"text","text":"M 👕"}]}}]}',
        "event: ping",
        'data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":null}',
        'data: {"choices":[],"usage":{"prompt_tokens":3}}',
        "data: [DONE]",
        "",
    ]
    raw = "\n".join(lines).encode()
    streamed = Streamed()
    texts = [streamed.take(raw[at : at + size]) for at in range(0, len(raw), size)]
    assert "".join(texts) == "ไซส์ M 👕"
    assert streamed.whole() == {
        "model": "m",
        "usage": {"prompt_tokens": 3},
        "choices": [{"message": {"content": "ไซส์ M 👕"}, "finish_reason": "stop"}],
    }


@pytest.mark.parametrize(
    ("contents", "shown"),
    [
        (["M \ud83d", "\udc55!"], ["M ", "👕!"]),  # cut in two
        (["M \ud83d", "", "\udc55", "\ud83d", "\udc55"], ["M ", "", "👕", "", "👕"]),
        (["M \ud83d", "!"], ["M ", "!"]),  # the other half never comes
        (["\udc55", "M"], ["�", "M"]),
        (["M \ud83d"], ["M "]),
    ],
)
def test_a_character_cut_in_two_is_put_together(contents: list[str], shown: list[str]) -> None:
    streamed = Streamed()
    assert [
        streamed.take(b"data: %b\n\n" % json.dumps({"choices": [{"delta": {"content": one}}]}).encode())
        for one in contents
    ] == shown
    assert streamed.whole()["choices"][0]["message"]["content"] == "".join(contents).encode(
        "utf-16", "surrogatepass"
    ).decode("utf-16", "replace")


@pytest.mark.parametrize("streams", [True, False])
async def test_half_a_character_costs_nobody_the_answer(
    standin: OpenRouterStandIn, llm: OpenRouter, streams: bool
) -> None:
    standin.streams = streams
    standin.answers("One moment: ไซส์ M \ud83d")
    assert "".join(await heard(llm, ask(standin))).startswith("One moment: ไซส์ M ")
    assert len(standin.requests) == 1


def test_each_call_of_a_stream_is_its_own_whatever_its_index() -> None:
    """Some endpoints send every call at once, whole, under the index 0."""
    streamed = Streamed()
    for at, size in ((0, "S"), (0, "M"), (1, "L")):
        call = {"index": at, "id": f"call_{size}", "function": {"name": "stock", "arguments": "{"}}
        rest = {"index": at, "id": f"call_{size}" if size == "M" else None, "function": {"arguments": f'"{size}":1}}'}}
        for one in (call, rest):
            chunk = {"choices": [{"delta": {"tool_calls": [one]}}]}
            assert streamed.take(f"data: {json.dumps(chunk)}\n\n".encode()) == ""
    assert streamed.whole()["choices"][0]["message"]["tool_calls"] == [
        {"id": f"call_{size}", "function": {"name": "stock", "arguments": f'{{"{size}":1}}'}} for size in "SML"
    ]


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"prompt_tokens": [7], "completion_tokens": 2}, Usage(0, 2)),
        ({"prompt_tokens": "seven", "completion_tokens": {}, "cost": True}, Usage()),
        ({"prompt_tokens": -7, "cost": -1.5, "prompt_tokens_details": {"cached_tokens": []}}, Usage(cost=0.0)),
        ({"prompt_tokens": 1e300, "cost": 0.25, "prompt_tokens_details": [1]}, Usage(cost=0.25)),
        ([7], Usage()),
    ],
)
def test_an_odd_count_costs_nobody_the_answer(usage: Any, counted: Usage) -> None:
    answer = {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}], "usage": usage}
    completion = OpenRouter()._completion(Access(KEY), answer)
    assert (completion.text, completion.usage) == ("hi", counted)


# -- structured answers


async def test_a_schema_is_asked_for_strictly_and_the_answer_held_to_it(
    standin: OpenRouterStandIn, llm: OpenRouter
) -> None:
    standin.answers({"label": "b", "score": 1.7, "more": 1})
    answer = await llm.complete(ask(standin, LABELS))
    assert answer.data == {"label": "B", "score": 1}
    body = standin.requests[0]
    assert body["provider"] == {"require_parameters": True}
    assert body["response_format"]["json_schema"]["strict"] is True
    assert "minimum" not in json.dumps(body)


@pytest.mark.parametrize(
    ("supports", "forms"),
    [
        ({"response_format"}, ["json_schema", "json_object", "json_object"]),
        ({"structured_outputs", "response_format"}, ["json_schema", "json_schema"]),
    ],
)
async def test_the_rung_that_works_is_remembered(
    standin: OpenRouterStandIn, llm: OpenRouter, supports: set[str], forms: list[str]
) -> None:
    standin.models = {"openai/gpt-4o-mini": supports}
    for _ in range(2):
        standin.answers(ANSWER)
        assert (await llm.complete(ask(standin, LABELS))).data == ANSWER
    assert [body["response_format"]["type"] for body in standin.requests] == forms


async def test_a_model_that_takes_no_format_is_asked_in_words(standin: OpenRouterStandIn, llm: OpenRouter) -> None:
    standin.next(*[error(400, "response_format is not supported")] * 2)
    standin.answers('Sure! ```json\n{"label": "A", "score": 0.2}\n``` Anything else?')
    assert (await llm.complete(ask(standin, LABELS))).data == {"label": "A", "score": 0.2}
    assert "response_format" not in standin.requests[-1]
    assert "JSON Schema" in standin.requests[-1]["messages"][-1]["content"]


async def test_a_bad_answer_is_asked_for_once_more(standin: OpenRouterStandIn, llm: OpenRouter) -> None:
    standin.answers('{"label": "Z", "score": 0.1}', ANSWER)
    assert (await llm.complete(ask(standin, LABELS))).data == ANSWER
    standin.answers('{"label": "Z"}', '{"label": "Z"}')
    with pytest.raises(LLMBadAnswer) as caught:
        await llm.complete(ask(standin, LABELS))
    assert caught.value.text == '{"label": "Z"}'


async def test_an_endpoint_that_knows_no_fields_of_openrouters_is_asked_without(
    standin: OpenRouterStandIn, llm: OpenRouter
) -> None:
    standin.next(error(400, "Unrecognized request argument supplied: session_id"))
    request = ChatRequest([{"role": "user", "content": "hello"}], access(standin), session_id="s1")
    assert (await llm.complete(request)).text == "echo: hello"
    assert ["session_id" in body for body in standin.requests] == [True, False]


async def test_an_event_comes_back_whole_through_the_front_door(standin: OpenRouterStandIn) -> None:
    standin.answers(
        {
            "event_type": "complaint",
            "importance_score": 1.4,
            "language": "klingon",
            "reasoning": "broken",
            "details": {"item": "cup", "quantity": 2},
        }
    )
    processor = EventProcessor(KEY, base_url=standin.url)
    event = await processor.analyze_message("แก้วแตก 2 ใบ")
    await processor.close()
    assert (event.event_type, event.importance_score) == ("COMPLAINT", 1.0)
    assert event.payload["details"] == {"item": "cup", "quantity": "2"}
    assert (event.payload["language"], event.payload["classified_by"]) == ("th", "llm")


@pytest.mark.parametrize(
    "text",
    [
        '{"label": "B", "score": 0.5}',
        '```json\n{"label": "B", "score": 0.5}\n```',
        'Here {it} is: {"label": "B", "score": 0.5} — {done}',
        '{"label": "B", "score": 0.5, "why": "becau',
        '{"label": "B", "score": 0.5',
        '{"label": " b ", "score": "50%"}',
    ],
)
def test_what_can_be_mended_is_mended(text: str) -> None:
    assert parse(text, LABELS) == ANSWER


@pytest.mark.parametrize("text", ["", "no", "[]", "{", '{"label": "B"}', '{"label": "B", "score": NaN}', "{" * 100_000])
def test_what_cannot_be_mended_is_refused(text: str) -> None:
    with pytest.raises(NotUsable):
        parse(text, LABELS)


def test_labels_are_matched_whatever_their_case_and_dashes() -> None:
    assert parse('{"label": "generic-event", "score": 0}', LABELS)["label"] == "GENERIC_EVENT"


def test_the_event_schema_is_strict_throughout() -> None:
    sent = wire_schema(SCHEMA)
    for part in (sent, sent["properties"]["details"]):
        assert part["additionalProperties"] is False
        assert set(part["required"]) == set(part["properties"])
    assert "default" not in json.dumps(sent)


def test_asking_in_words_leaves_the_callers_messages_alone() -> None:
    messages = [{"role": "user", "content": "x"}]
    request_body(ChatRequest(messages, Access(KEY), schema=LABELS), rung=OBJECT)
    assert messages == [{"role": "user", "content": "x"}]


# -- the circuit breaker


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_the_breaker_opens_probes_and_closes() -> None:
    clock = Clock()
    breaker = Breaker(clock, threshold=2, pause=10, longest=15)
    breaker.failed("a")
    assert breaker.refused_for() is None
    breaker.failed("b")
    assert breaker.refused_for() == 10
    clock.now += 10
    assert breaker.refused_for() is None  # the probe
    assert breaker.refused_for() == 1.0  # nobody beside it
    breaker.failed("c")
    assert breaker.refused_for() == 15  # longer, up to the longest
    clock.now += 15
    assert breaker.refused_for() is None
    breaker.gave_up()
    assert breaker.refused_for() is None  # a cancelled probe leaves its place to another
    breaker.succeeded()
    assert breaker.refused_for() is None


async def test_an_endpoint_that_is_down_is_left_alone_for_a_while(standin: OpenRouterStandIn, waits: Waits) -> None:
    clock = Clock()
    llm = OpenRouter(clock=clock, sleep=waits, breaker_threshold=4, breaker_pause=10)
    standin.next(*[error(503, "none")] * 4)
    with pytest.raises(LLMUnavailable):
        await llm.complete(ask(standin))
    with pytest.raises(LLMUnavailable) as caught:
        await llm.complete(ask(standin))
    assert caught.value.retry_after == 10
    assert len(standin.calls_to("/chat/completions")) == 4
    clock.now += 10
    assert (await llm.complete(ask(standin))).text == "echo: hello"
    await llm.close()


@pytest.mark.parametrize("seconds", [86_400_000, "Wed, 21 Oct 2099 07:28:00 GMT", "inf"])
async def test_an_odd_wish_to_be_left_alone_does_not_last_for_ever(
    standin: OpenRouterStandIn, waits: Waits, seconds: int | str
) -> None:
    clock = Clock()
    llm = OpenRouter(clock=clock, sleep=waits)
    standin.next(error(503, "none", headers={"Retry-After": str(seconds)}))
    for _ in range(2):
        with pytest.raises(LLMUnavailable):
            await llm.complete(ask(standin))
    assert len(standin.calls_to("/chat/completions")) == 1
    clock.now += 3600
    assert (await llm.complete(ask(standin))).text == "echo: hello"
    await llm.close()


async def test_a_broken_key_costs_one_call_and_no_other_tenant(standin: OpenRouterStandIn, llm: OpenRouter) -> None:
    with pytest.raises(LLMUnauthorized):
        await llm.complete(ask(standin, key="sk-or-wrong"))
    for _ in range(3):
        with pytest.raises(LLMUnavailable):
            await llm.complete(ask(standin, key="sk-or-wrong"))
    assert len(standin.calls_to("/chat/completions")) == 1
    assert (await llm.complete(ask(standin))).text == "echo: hello"


async def test_a_cancelled_probe_does_not_keep_the_circuit_open(standin: OpenRouterStandIn, waits: Waits) -> None:
    clock = Clock()
    llm = OpenRouter(clock=clock, sleep=waits, breaker_threshold=1, breaker_pause=10)
    standin.next(error(503, "none"))
    with pytest.raises(LLMUnavailable):
        await llm.complete(ask(standin))
    clock.now += 10
    arrived, never = asyncio.Event(), asyncio.Event()

    async def hang(request: dict[str, Any]) -> str:
        arrived.set()
        await never.wait()
        return ""

    standin.answers(hang)
    task = asyncio.create_task(llm.complete(ask(standin)))
    await asyncio.wait_for(arrived.wait(), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    standin.answers("back")
    assert (await llm.complete(ask(standin))).text == "back"
    await llm.close()


# -- secrets and details


async def test_no_key_and_no_text_stand_in_errors_or_logs(
    standin: OpenRouterStandIn, llm: OpenRouter, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    standin.next(error(401, "Incorrect API key provided: sk-or-v1-abcdef123456. hello"))
    with pytest.raises(LLMUnauthorized) as caught:
        await llm.complete(ask(standin))
    assert "abcdef" not in str(caught.value)
    assert KEY not in str(caught.value) + repr(access(standin))
    assert caught.value.__cause__ is None
    assert KEY not in caplog.text
    assert "hello" not in caplog.text


def test_retry_after_is_read_as_seconds_or_date() -> None:
    assert retry_after({"retry-after": "2.5"}) == 2.5
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({}) is None


def test_an_unknown_model_is_no_question_of_form() -> None:
    assert not isinstance(from_status(400, {"message": "x/y is not a valid model ID"}, {}), FormatRefused)
    assert isinstance(from_status(404, {"message": "No endpoints found"}, {}), FormatRefused)
