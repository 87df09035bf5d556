"""A piece of an answer is read in one step where it is nothing but text, with the outcome of the long way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from processors.llm import LLMError
from processors.streamed import Streamed

_odd = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5) | st.lists(st.text(max_size=2), max_size=2)
_usage = st.fixed_dictionaries({"prompt_tokens": st.integers(0, 9)})
_call = st.fixed_dictionaries({"index": st.integers(0, 2), "function": st.fixed_dictionaries({"arguments": st.text()})})
_delta = st.fixed_dictionaries(
    {},
    optional={
        "content": st.text(max_size=8) | st.lists(st.fixed_dictionaries({"text": st.text()}), max_size=2) | _odd,
        "tool_calls": st.lists(_call, max_size=2) | _odd,
        "role": st.just("assistant"),
    },
)
_choice = st.fixed_dictionaries(
    {},
    optional={"delta": _delta | _odd, "finish_reason": st.sampled_from(["stop", None, ""]) | _odd, "error": _odd},
)
_chunk = st.fixed_dictionaries(
    {},
    optional={
        "choices": st.lists(_choice, max_size=2) | _odd,
        "model": _odd,
        "provider": _odd,
        "usage": _usage | _odd,
        "error": _odd,
    },
)


def heard(take: Callable[[Streamed, bytes], str], chunks: list[Any]) -> Any:
    streamed, said = Streamed(), []
    try:
        for chunk in chunks:
            said.append(take(streamed, orjson.dumps(chunk)))
        return said, streamed.whole()
    except (LLMError, ValueError) as error:
        return said, type(error), str(error)


@given(st.lists(_chunk | _odd, max_size=4))
@settings(deadline=None)
def test_both_ways_hear_the_same(chunks: list[Any]) -> None:
    short = heard(lambda streamed, data: streamed.take(b"data: " + data + b"\n\n"), chunks)
    long = heard(lambda streamed, data: streamed._other(orjson.loads(data)), chunks)
    assert short == long


def test_a_plain_piece_takes_the_short_way() -> None:
    streamed = Streamed()
    streamed._other = None  # type: ignore[assignment, method-assign]
    piece = {"id": "x", "model": "m", "provider": "p", "choices": [{"index": 0, "delta": {"content": "สวัสดี"}}]}
    assert streamed.take(b"data: " + orjson.dumps(piece) + b"\n") == "สวัสดี"
    assert streamed.whole()["model"] == "m"


@given(
    st.lists(_chunk | _odd, max_size=6),
    st.sampled_from([b"\n\n", b"\r\n\r\n", b"\n", b"\n\n: alive\n\n"]),
    st.booleans(),
)
@settings(deadline=None)
def test_what_comes_together_is_heard_as_one_by_one(chunks: list[Any], between: bytes, ended: bool) -> None:
    events = [b"data: " + orjson.dumps(one) for one in chunks] + [b"data: [DONE]"] * ended
    data = b"".join(event + between for event in events)

    def told(*pieces: bytes) -> Any:
        streamed = Streamed()
        try:
            return "".join(map(streamed.take, pieces)), streamed.whole()
        except (LLMError, ValueError) as error:
            return type(error), str(error)

    assert told(data) == told(*(data[at : at + 7] for at in range(0, len(data), 7)))


def test_many_plain_pieces_are_read_in_one_step() -> None:
    streamed = Streamed()
    streamed._each = None  # type: ignore[assignment, method-assign]
    pieces = [
        {"model": "m", "choices": [{"index": 0, "delta": {"content": one}}]} for one in ("สวัส", "ดี", "\n\ndata: ")
    ]
    pieces += [
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 1}},
    ]
    data = b"".join(b"data: " + orjson.dumps(one) + b"\n\n" for one in pieces) + b"data: [DONE]\n\n"
    assert streamed.take(data[:100]) + streamed.take(data[100:]) == "สวัสดี\n\ndata: "
    assert streamed.whole() == {
        "model": "m",
        "usage": {"prompt_tokens": 1},
        "choices": [{"message": {"content": "สวัสดี\n\ndata: "}, "finish_reason": "stop"}],
    }
