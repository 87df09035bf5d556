"""OpenRouter's answers, whole, streamed and broken. Each rule names its section in the platform's documentation."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.standins.model import Answer, Fault, Json

PROVIDER = "StandIn"
HTML_502 = "<html><head><title>502 Bad Gateway</title></head><body>cloudflare</body></html>"
SHAPES = ("error_in_200", "choice_error", "mid_stream_error", "empty", "cut", "stall", "unfinished", "nonsense")


@dataclass(frozen=True, slots=True)
class Said:
    """A model's answer with more than text. `tool_calls` are OpenAI's objects; `pause` seconds between chunks."""

    content: str | None = None
    tool_calls: tuple[Mapping[str, Json], ...] = ()
    finish_reason: str = "stop"
    pause: float = 0.0


def error(status: int, message: str, *, headers: Mapping[str, str] | None = None, **metadata: Json) -> Fault:
    """OpenRouter 4: before tokens: the real status, `{"error":{"code","message","metadata"?}}`."""
    return Fault(status, error_body(status, message, metadata), headers or {}, on="/chat/completions")


def out_of_credit() -> Fault:
    """OpenRouter 4: 402 that stays: max_tokens too large for the balance."""
    return error(402, "This request requires more credits, or fewer max_tokens.", limit_source="openrouter_credits")


def in_flight_budget(retry_after: int = 1) -> Fault:
    """OpenRouter 4: 402 that passes, with Retry-After."""
    return error(
        402, "Too many requests in flight for this balance.", headers={"Retry-After": str(retry_after)},
        limit_source="openrouter_in_flight_budget",
    )  # fmt: skip


def rate_limited(retry_after: int | None = None, *, by_provider: bool = False) -> Fault:
    """OpenRouter 4: 429 of the platform (X-RateLimit-*) or of a provider (provider_code)."""
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    if by_provider:
        return error(
            429,
            "Provider returned error",
            headers=headers,
            error_type="rate_limit",
            provider_code="rate_limit_exceeded",
        )
    limits = {"X-RateLimit-Limit": "20", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1893456000000"}
    return error(429, "Rate limit exceeded: free-models-per-min.", headers={**headers, **limits})


def html_page(status: int = 502) -> Fault:
    """OpenRouter 4: a page where JSON was due; with 200 the openai client returns it as a string."""
    return Fault(status, HTML_502, on="/chat/completions")


def broken(shape: str, **more: Any) -> Fault:
    """OpenRouter 4: what goes wrong inside a 200.

    error_in_200      top-level `error`, no choices
    choice_error      choices[0].error beside partial text
    mid_stream_error  the same in a stream's last chunk (not streamed: choice_error)
    empty             no text and a null finish_reason
    cut               the connection breaks in the middle
    stall             some text, then nothing for `delay` seconds (default 30), then the rest
    unfinished        a stream that just ends: no finish_reason, no [DONE] (not streamed: empty)
    nonsense          not JSON
    """
    if shape not in SHAPES:
        raise ValueError(shape)
    return Fault(shape=shape, **{"on": "/chat/completions", **more})


class Completion:
    """One answer, whole or as a stream."""

    def __init__(self, body: dict[str, Json], model: str, said: Said, chunk: int) -> None:
        self.id = f"gen-{uuid.uuid4().hex[:20]}"
        self.model = model
        self.said = said
        self.chunk = chunk
        read = sum(len(text_of(message)) for message in body["messages"]) // 4 + 1
        written = len(said.content or "") // 4 + 1
        # OpenRouter 4: usage is always present, with cost and cached tokens
        self.usage: dict[str, Json] = {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
            "cost": round(read * 1.5e-7 + written * 6e-7, 9),
            "is_byok": False,
            "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        }

    def _frame(self, kind: str, choices: list[Json], **more: Json) -> dict[str, Json]:
        # OpenRouter 4: OpenAI's shape and `provider`, `native_finish_reason`
        frame = {"id": self.id, "object": kind, "created": 1_790_000_000, "model": self.model, "provider": PROVIDER}
        return {**frame, "choices": choices, **more}

    def whole(self, fault: Fault, headers: Mapping[str, str]) -> Answer:
        message: dict[str, Json] = {"role": "assistant", "content": self.said.content}
        if self.said.tool_calls:
            message["tool_calls"] = list(self.said.tool_calls)
        reason: str | None = self.said.finish_reason
        choice: dict[str, Json] = {"index": 0, "logprobs": None, "message": message}
        match fault.shape:
            case "error_in_200":
                return Answer(200, error_body(502, "Provider returned error", {"provider_name": PROVIDER}), headers)
            case "nonsense":
                return Answer(200, '{"id": "gen-1", "choices": [{"mess', headers)
            case "choice_error" | "mid_stream_error":
                choice["error"] = {"code": 502, "message": "Provider disconnected"}
                message["content"] = _half(self.said.content)
                reason = "error"
            case "empty" | "unfinished":
                message["content"], reason = "", None
        choice |= {"finish_reason": reason, "native_finish_reason": reason}
        answer = self._frame("chat.completion", [choice], usage=self.usage)
        if fault.shape in ("cut", "stall"):
            raw = json.dumps(answer).encode()
            pause: list[bytes | float | None] = [None] if fault.shape == "cut" else [_stall(fault), raw[20:]]
            return Answer(200, None, headers, stream=[raw[:20], 0.01, *pause])
        return Answer(200, answer, headers)

    def streamed(self, fault: Fault, headers: Mapping[str, str]) -> Answer:
        # OpenRouter 4: SSE: keep-alive comments, usage once in the last chunk with `choices: []`, then [DONE]
        comment = b": OPENROUTER PROCESSING\n\n"
        text = self.said.content or ""
        pieces = [text[at : at + self.chunk] for at in range(0, len(text), self.chunk)]
        parts: list[bytes | float | None] = [comment, self._delta({"role": "assistant", "content": ""})]
        match fault.shape:
            case "error_in_200":
                error = error_body(502, "Provider returned error", {"provider_name": PROVIDER})
                return Answer(200, None, headers, "text/event-stream", [comment, _sse(error)])
            case "nonsense":
                return Answer(200, None, headers, "text/event-stream", [comment, b'data: {"choices": [{"del\n\n'])
            case "":
                parts += self._texts(pieces)
            case "empty":
                parts += [self._delta({"content": ""}), self._usage(), b"data: [DONE]\n\n"]
                return Answer(200, None, headers, "text/event-stream", parts)
            case shape:
                half = (len(pieces) + 1) // 2
                parts += self._texts(pieces[:half])
                if shape == "stall":
                    parts += [_stall(fault), *self._texts(pieces[half:])]
                elif shape == "cut":
                    return Answer(200, None, headers, "text/event-stream", [*parts, 0.01, None])
                elif shape == "unfinished":
                    return Answer(200, None, headers, "text/event-stream", parts)
                else:
                    told = {"code": 502, "message": "Provider disconnected", "metadata": {"error_type": "provider"}}
                    choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
                    parts += [self.said.pause, _sse(self._frame("chat.completion.chunk", [choice], error=told))]
                    return Answer(200, None, headers, "text/event-stream", parts)
        if self.said.tool_calls:
            parts += self._calls()
        parts += [self._delta({}, self.said.finish_reason), self._usage(), b"data: [DONE]\n\n"]
        return Answer(200, None, headers, "text/event-stream", parts)

    def _texts(self, pieces: list[str]) -> list[bytes | float | None]:
        made: list[bytes | float | None] = []
        for piece in pieces:
            made += (
                [self.said.pause, self._delta({"content": piece})]
                if self.said.pause
                else [self._delta({"content": piece})]
            )
        return made

    def _calls(self) -> list[bytes | float | None]:
        # OpenRouter 4: OpenAI's shape: id and name come with a call's first delta, its arguments in pieces
        made: list[bytes | float | None] = []
        for index, call in enumerate(self.said.tool_calls):
            wanted = call["function"]
            first = {**call, "index": index, "function": {"name": wanted["name"], "arguments": ""}}
            made.append(self._delta({"tool_calls": [first]}))
            given = wanted["arguments"]
            for at in range(0, len(given), self.chunk):
                more = {"index": index, "function": {"arguments": given[at : at + self.chunk]}}
                made += [self.said.pause, self._delta({"tool_calls": [more]})]
        return made

    def _delta(self, delta: dict[str, Json], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason, "native_finish_reason": reason, "logprobs": None}
        return _sse(self._frame("chat.completion.chunk", [choice]))

    def _usage(self) -> bytes:
        return _sse(self._frame("chat.completion.chunk", [], usage=self.usage))


def _stall(fault: Fault) -> float:
    return fault.delay or 30.0


def _half(text: str | None) -> str:
    return (text or "")[: len(text or "") // 2]


def _sse(data: Json) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def text_of(message: Mapping[str, Json]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content or ""


def error_body(code: int, message: str, metadata: Mapping[str, Json], availability: str = "") -> dict[str, Json]:
    error: dict[str, Json] = {"code": code, "message": message}
    if metadata:
        error["metadata"] = dict(metadata)
    if availability:
        error["availability"] = {"code": availability, "retryable": False}
    return {"error": error}
