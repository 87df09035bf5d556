"""How an answer is asked for, a structured one from the strictest way down, and which way works for which model.

0 STRICT  json_schema, strict, only providers that support it
1 OBJECT  json_object, the schema in the prompt
2 PLAIN   the schema in the prompt alone
"""

from __future__ import annotations

import json
from typing import Any

from processors.llm import Access, ChatRequest
from processors.structured import wire_schema

STRICT, OBJECT, LAST = 0, 1, 2

_ASK = "Answer with one JSON object and nothing else: no prose, no code fence. It must satisfy this JSON Schema:\n"


class Ladder:
    """What this process learned: the rung that a model needs, the endpoints that refuse OpenRouter's own fields, the
    models that are not streamed."""

    def __init__(self) -> None:
        self._rungs: dict[tuple[str, str], int] = {}
        self._plain: set[str] = set()
        self._whole: set[tuple[str, str]] = set()

    def rung(self, access: Access) -> int:
        return self._rungs.get((access.base_url, access.model), STRICT)

    def works(self, access: Access, rung: int) -> None:
        self._rungs[access.base_url, access.model] = rung

    def is_plain(self, base_url: str) -> bool:
        return base_url in self._plain

    def knows_no_extras(self, base_url: str) -> None:
        self._plain.add(base_url)

    def never_streams(self, access: Access) -> bool:
        return (access.base_url, access.model) in self._whole

    def streams_never(self, access: Access) -> None:
        self._whole.add((access.base_url, access.model))


def request_body(
    request: ChatRequest, *, rung: int = STRICT, plain: bool = False, stream: bool = False
) -> dict[str, Any]:
    """The JSON body; `plain` leaves out what only OpenRouter knows (fallbacks, provider choice, session_id)."""
    access = request.access
    body: dict[str, Any] = {"model": access.model, "messages": list(request.messages)}
    if request.max_tokens is not None:
        body["max_tokens"] = request.max_tokens
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.tools:
        body["tools"] = list(request.tools)
        if request.tool_choice:
            body["tool_choice"] = request.tool_choice
    if stream:
        body["stream"] = True
        if plain:
            body["stream_options"] = {"include_usage": True}
    if not plain:
        if access.fallback_models:
            body["models"] = list(access.fallback_models)
        if request.session_id:
            body["session_id"] = request.session_id[:256]
    if request.schema is None:
        return body
    schema = wire_schema(request.schema)
    if rung == STRICT:
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": schema},
        }
        if not plain:
            body["provider"] = {"require_parameters": True}
        return body
    body["messages"].append({"role": "system", "content": _ASK + json.dumps(schema, ensure_ascii=False)})
    if rung == OBJECT:
        body["response_format"] = {"type": "json_object"}
    return body
