"""OpenRouter on loopback. Each rule names its section in the platform's documentation."""

from __future__ import annotations

import base64
import hashlib
import inspect
import json
import struct
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from tests.standins.server import Answer, Fault, Json, Recorded, StandIn

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


Spoken = str | dict[str, Json] | Said
Speak = Callable[[dict[str, Json]], Spoken | Awaitable[Spoken]]


def error(status: int, message: str, *, headers: Mapping[str, str] | None = None, **metadata: Json) -> Fault:
    """OpenRouter 4: before tokens: the real status, `{"error":{"code","message","metadata"?}}`."""
    return Fault(status, _error_body(status, message, metadata), headers or {}, on="/chat/completions")


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


class OpenRouterStandIn(StandIn):
    """openrouter.ai under `url` (which ends in /api/v1).

    `answers` gives what models say: a queue of texts (a dict goes out as JSON), then a function or a fixed text.
    `models` maps a known model to the parameters its endpoints support (None: any model, all parameters); `down` are
    models whose providers fail, so that fallbacks are tried.
    """

    name = "OpenRouter"

    def __init__(self, keys: Sequence[str] = ("sk-or-test-1",), **more: Any) -> None:
        super().__init__(**more)
        self.keys = set(keys)
        self.models: dict[str, set[str]] | None = None
        self.down: set[str] = set()
        self.chunk = 8  # characters a stream's chunk holds
        self._forget()

    def _forget(self) -> None:
        self._queue: deque[Spoken] = deque()
        self._speak: Speak = usual

    @property
    def url(self) -> str:
        return f"{self.root}/api/v1"

    @property
    def requests(self) -> list[dict[str, Json]]:
        """The bodies of the chat calls in order."""
        return [call.body for call in self.calls_to("/chat/completions") if isinstance(call.body, dict)]

    def answers(self, *said: Spoken | Speak) -> None:
        """Texts, dicts and Said are given in turn, one a call; a function answers whenever none of them is left."""
        for one in said:
            if isinstance(one, str | dict | Said):
                self._queue.append(one)
            else:
                self._speak = one

    def reset(self) -> None:
        super().reset()
        self._forget()

    def script(self, orders: dict[str, Json]) -> dict[str, Json]:
        """`answers` [text or object, …], `default` a text for all later calls, and the settings `down`, `models`."""
        self.answers(*orders.get("answers", ()))
        if "default" in orders:
            text = orders["default"]
            self.answers(lambda request: text)
        self.down = set(orders.get("down", self.down))
        if "models" in orders:
            given = orders["models"]
            self.models = None if given is None else {name: set(words) for name, words in given.items()}
        return {}

    def apply(self, change: str, data: dict[str, Json]) -> None:
        raise ValueError(change)

    # --- answers

    def refused(self, call: Recorded) -> Answer | None:
        # OpenRouter 4: Authorization: Bearer; 401 key. The list of models is public
        scheme, _, key = call.headers.get("authorization", "").partition(" ")
        if (scheme == "Bearer" and key in self.keys) or call.path.endswith("/models"):
            return None
        message = "User not found." if key else "No auth credentials found"
        return Answer(401, _error_body(401, message, {}))

    async def handle(self, call: Recorded, request: web.Request, fault: Fault) -> Answer:
        match call.method, call.path.removeprefix("/api/v1"):
            case "POST", "/chat/completions":
                return await self._chat(call, fault)
            case "POST", "/embeddings":
                return _embeddings(call.body)
            case "GET", "/models":
                names = self.models or {"openai/gpt-4o-mini": {"response_format", "structured_outputs", "tools"}}
                listed = [{"id": name, "supported_parameters": sorted(words)} for name, words in names.items()]
                return Answer(body={"data": listed})
            case "GET", "/key":
                return Answer(body={"data": {"label": "test", "limit": None, "limit_remaining": None, "usage": 0.0}})
        return Answer(404, _error_body(404, "Not Found", {}))

    async def _chat(self, call: Recorded, fault: Fault) -> Answer:
        body = call.body
        if (wrong := _wrong_request(body)) is not None:
            return Answer(400, _error_body(400, wrong, {}))
        model, refusal = self._route(body)
        if refusal is not None:
            return refusal
        stream = bool(body.get("stream"))
        said = Said("") if fault.shape in ("error_in_200", "nonsense") else await self._say(body, model)
        made = _Completion(body, model, said, self.chunk)
        headers = {"X-Generation-Id": made.id}
        return made.streamed(fault, headers) if stream else made.whole(fault, headers)

    def _route(self, body: dict[str, Json]) -> tuple[str, Answer | None]:
        # OpenRouter 4: models: ordered fallbacks on any error, billed by the model reported
        wanted = [name for name in (body.get("model"), *body.get("models", ())) if name]
        provider = body.get("provider") or {}
        for name in wanted:
            if self.models is not None and name not in self.models:
                # OpenRouter 4: 400 unknown model
                return name, Answer(400, _error_body(400, f"{name} is not a valid model ID", {}))
        fitting = wanted
        if provider.get("require_parameters"):
            # OpenRouter 4: with require_parameters, no match -> 404 (constraint_filtered)
            fitting = [name for name in wanted if not self._lacking(name, body)]
            if not fitting:
                message = "No endpoints found that can handle the requested parameters."
                return wanted[0], Answer(404, _error_body(404, message, {}, availability="constraint_filtered"))
        for name in fitting:
            if name not in self.down:
                return name, None
        # OpenRouter 4: 502 provider broken
        return wanted[0], Answer(502, _error_body(502, "Provider returned error", {"provider_name": PROVIDER}))

    def _lacking(self, model: str, body: dict[str, Json]) -> set[str]:
        if self.models is None:
            return set()
        needs: set[str] = {name for name in ("response_format", "tools", "temperature", "max_tokens") if name in body}
        if (body.get("response_format") or {}).get("type") == "json_schema":
            needs = needs - {"response_format"} | {"structured_outputs"}
        return needs - self.models[model] - {"temperature", "max_tokens"}

    async def _say(self, body: dict[str, Json], model: str) -> Said:
        # OpenRouter 4: unsupported parameters are silently ignored
        lacking = self._lacking(model, body)
        heard = {**body, "model": model}
        if lacking & {"structured_outputs", "response_format"}:
            heard.pop("response_format", None)
        said = self._queue.popleft() if self._queue else self._speak(heard)
        if inspect.isawaitable(said):
            said = await said
        if isinstance(said, dict):
            said = json.dumps(said, ensure_ascii=False)
        return said if isinstance(said, Said) else Said(said)


def usual(request: dict[str, Json]) -> str:
    """What a model says when nobody told it: the smallest object of a schema, else an echo of the last user message."""
    wanted = request.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        return json.dumps(example(wanted["json_schema"].get("schema", {})), ensure_ascii=False)
    if wanted.get("type") == "json_object":
        return "{}"
    users = [message for message in request["messages"] if message.get("role") == "user"]
    return f"echo: {_text_of(users[-1]) if users else ''}"


def example(schema: Mapping[str, Json], root: Mapping[str, Json] | None = None) -> Json:
    """A value that satisfies a JSON Schema, as small as can be."""
    root = schema if root is None else root
    if "$ref" in schema:
        target: Json = root
        for step in schema["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        return example(target, root)
    for word in ("anyOf", "oneOf", "allOf"):
        if word in schema:
            return example(schema[word][0], root)
    if "const" in schema or "enum" in schema:
        return schema.get("const", (schema.get("enum") or [None])[0])
    kind = schema.get("type", "object")
    match kind[0] if isinstance(kind, list) else kind:
        case "object":
            inside = schema.get("properties", {})
            return {
                name: example(inside.get(name, {"type": "string"}), root) for name in schema.get("required", inside)
            }
        case "array":
            return [example(schema.get("items", {}), root)] * schema.get("minItems", 0)
        case "string":
            return "x" * schema.get("minLength", 0)
        case "integer" | "number":
            return schema.get("minimum", 0)
        case "boolean":
            return False
    return None


class _Completion:
    """One answer, whole or as a stream."""

    def __init__(self, body: dict[str, Json], model: str, said: Said, chunk: int) -> None:
        self.id = f"gen-{uuid.uuid4().hex[:20]}"
        self.model = model
        self.said = said
        self.chunk = chunk
        read = sum(len(_text_of(message)) for message in body["messages"]) // 4 + 1
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
                return Answer(200, _error_body(502, "Provider returned error", {"provider_name": PROVIDER}), headers)
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
                error = _error_body(502, "Provider returned error", {"provider_name": PROVIDER})
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
                    parts.append(_sse(self._frame("chat.completion.chunk", [choice], error=told)))
                    return Answer(200, None, headers, "text/event-stream", parts)
        if self.said.tool_calls:
            calls = [{**call, "index": place} for place, call in enumerate(self.said.tool_calls)]
            parts.append(self._delta({"tool_calls": calls}))
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


def _text_of(message: Mapping[str, Json]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content or ""


def _wrong_request(body: Json) -> str | None:
    # OpenRouter 4: 400 bad request
    if not isinstance(body, dict):
        return "Request body is not valid JSON"
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return 'Input required: specify "prompt" or "messages"'
    for message in messages:
        if not isinstance(message, dict) or message.get("role") not in (
            "system",
            "developer",
            "user",
            "assistant",
            "tool",
        ):
            return "messages: invalid role"
        content = message.get("content")
        if content is None and not message.get("tool_calls"):
            return "messages: content is required"
        if content is not None and not isinstance(content, str | list):
            return "messages: content must be a string or a list of parts"
    if not body.get("model") and not body.get("models"):
        return "No models provided"
    # OpenRouter 4: session_id at most 256
    if len(str(body.get("session_id", ""))) > 256:
        return "session_id: at most 256 characters"
    wanted = body.get("response_format") or {}
    if wanted.get("type") == "json_schema" and not (wanted.get("json_schema") or {}).get("name"):
        return "response_format.json_schema.name is required"
    return None


def _error_body(code: int, message: str, metadata: Mapping[str, Json], availability: str = "") -> dict[str, Json]:
    error: dict[str, Json] = {"code": code, "message": message}
    if metadata:
        error["metadata"] = dict(metadata)
    if availability:
        error["availability"] = {"code": availability, "retryable": False}
    return {"error": error}


def _embeddings(body: Json) -> Answer:
    given = body.get("input") if isinstance(body, dict) else None
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text for text in texts):
        return Answer(400, _error_body(400, "input: a string or a list of strings is required", {}))
    size = int(body.get("dimensions") or 64)
    data = []
    for place, text in enumerate(texts):
        vector = _vector(text, size)
        packed = base64.b64encode(struct.pack(f"<{size}f", *vector)).decode()
        # OpenRouter 4: encoding_format base64 or float
        shown = packed if body.get("encoding_format") == "base64" else vector
        data.append({"object": "embedding", "index": place, "embedding": shown})
    tokens = sum(len(text) for text in texts) // 4 + 1
    usage = {"prompt_tokens": tokens, "total_tokens": tokens, "cost": 0.0}
    return Answer(body={"object": "list", "model": body.get("model"), "data": data, "usage": usage})


def _vector(text: str, size: int) -> list[float]:
    """The same text gives the same unit vector; different texts are all but orthogonal."""
    raw = hashlib.shake_256(text.encode("utf-8", "surrogatepass")).digest(size * 2)
    numbers = [value / 32768 for value in struct.unpack(f"<{size}h", raw)]
    norm = sum(value * value for value in numbers) ** 0.5 or 1.0
    return [value / norm for value in numbers]


__all__ = [
    "OpenRouterStandIn", "Said", "broken", "error", "example", "html_page", "in_flight_budget", "out_of_credit",
    "rate_limited", "usual",
]  # fmt: skip
