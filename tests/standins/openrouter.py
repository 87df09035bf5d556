"""OpenRouter on loopback. Each rule names its section in the platform's documentation."""

from __future__ import annotations

import base64
import hashlib
import inspect
import json
import struct
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from aiohttp import web

from tests.standins.model import Answer, Fault, Json, Recorded
from tests.standins.openrouter_answers import (
    PROVIDER,
    Completion,
    Said,
    broken,
    error,
    error_body,
    html_page,
    in_flight_budget,
    out_of_credit,
    rate_limited,
    text_of,
)
from tests.standins.server import StandIn

__all__ = [
    "OpenRouterStandIn", "Said", "broken", "error", "example", "html_page", "in_flight_budget", "out_of_credit",
    "rate_limited", "usual",
]  # fmt: skip

Spoken = str | dict[str, Json] | Said
Speak = Callable[[dict[str, Json]], Spoken | Awaitable[Spoken]]


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
        self.pace = 0.0  # seconds between chunks, where an answer names none of its own
        self.streams = True  # False: an endpoint that passes over `stream`, as some that speak the same language do
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
        """`answers` [text or object, …], `default` a text for all later calls, and the settings `down`, `models` and
        `pace`."""
        self.answers(*orders.get("answers", ()))
        if "default" in orders:
            text = orders["default"]
            self.answers(lambda request: text)
        self.down = set(orders.get("down", self.down))
        self.pace = float(orders.get("pace", self.pace))
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
        return Answer(401, error_body(401, message, {}))

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
        return Answer(404, error_body(404, "Not Found", {}))

    async def _chat(self, call: Recorded, fault: Fault) -> Answer:
        body = call.body
        if (wrong := _wrong_request(body)) is not None:
            return Answer(400, error_body(400, wrong, {}))
        model, refusal = self._route(body)
        if refusal is not None:
            return refusal
        stream = self.streams and bool(body.get("stream"))
        said = Said("") if fault.shape in ("error_in_200", "nonsense") else await self._say(body, model)
        made = Completion(body, model, said, self.chunk)
        headers = {"X-Generation-Id": made.id}
        return made.streamed(fault, headers) if stream else made.whole(fault, headers)

    def _route(self, body: dict[str, Json]) -> tuple[str, Answer | None]:
        # OpenRouter 4: models: ordered fallbacks on any error, billed by the model reported
        wanted = [name for name in (body.get("model"), *body.get("models", ())) if name]
        provider = body.get("provider") or {}
        for name in wanted:
            if self.models is not None and name not in self.models:
                # OpenRouter 4: 400 unknown model
                return name, Answer(400, error_body(400, f"{name} is not a valid model ID", {}))
        fitting = wanted
        if provider.get("require_parameters"):
            # OpenRouter 4: with require_parameters, no match -> 404 (constraint_filtered)
            fitting = [name for name in wanted if not self._lacking(name, body)]
            if not fitting:
                message = "No endpoints found that can handle the requested parameters."
                return wanted[0], Answer(404, error_body(404, message, {}, availability="constraint_filtered"))
        for name in fitting:
            if name not in self.down:
                return name, None
        # OpenRouter 4: 502 provider broken
        return wanted[0], Answer(502, error_body(502, "Provider returned error", {"provider_name": PROVIDER}))

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
        said = said if isinstance(said, Said) else Said(said)
        return said if said.pause else replace(said, pause=self.pace)


def usual(request: dict[str, Json]) -> str:
    """What a model says when nobody told it: the smallest object of a schema, else an echo of the last user message."""
    wanted = request.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        return json.dumps(example(wanted["json_schema"].get("schema", {})), ensure_ascii=False)
    if wanted.get("type") == "json_object":
        return "{}"
    users = [message for message in request["messages"] if message.get("role") == "user"]
    return f"echo: {text_of(users[-1]) if users else ''}"


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


def _embeddings(body: Json) -> Answer:
    given = body.get("input") if isinstance(body, dict) else None
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text for text in texts):
        return Answer(400, error_body(400, "input: a string or a list of strings is required", {}))
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
