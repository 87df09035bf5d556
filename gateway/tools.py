"""What the model can do while it thinks: look something up in its memory of this customer, and note something down."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import orjson
from msgspec import structs

from gateway.adapters.base import Watch
from gateway.scratch import Scratch
from memory.errors import MemoryFault
from memory.facts import FactType
from memory.keys import ConversationRef
from memory.memory_manager import MemoryManager
from processors.llm import (
    ChatModel,
    ChatRequest,
    Completion,
    LLMBadAnswer,
    LLMError,
    LLMRejected,
    LLMUnavailable,
    ToolCall,
    Usage,
)
from processors.pii import Kind, masked, masked_within

CUT = "cut"  # a finish reason of ours: nobody was there any more to hear the rest
_MOST_CALLS = 8  # of one round; what a model asks for beyond that is not done
_LONGEST = 1000  # characters of a value, a key or a question
_SHOWN = 4000  # characters of a result

_KINDS = ["facts", "procedures", "episodes", "all"]
_TYPES = [str(one) for one in FactType]
SPECIFICATIONS: tuple[dict[str, Any], ...] = (
    {
        "type": "function",
        "function": {
            "name": "recall",
            "description": "Looks up what is known of this customer. With key: that fact. With query: whatever has "
            "these words. With neither: every fact.",
            "parameters": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "key": {"type": "string"},
                    "query": {"type": "string"},
                    "memory_type": {"type": "string", "enum": _KINDS},
                    "limit": {"type": "integer", "minimum": 1, "maximum": 50},
                },
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "remember",
            "description": "Notes down what this customer said of themselves and will still hold next month. Value in "
            "their own words and script.",
            "parameters": {
                "type": "object",
                "additionalProperties": False,
                "required": ["key", "value"],
                "properties": {
                    "key": {"type": "string", "description": "short, English, snake_case: shoe_size"},
                    "value": {"type": "string"},
                    "type": {"type": "string", "enum": _TYPES},
                    "overwrite": {"type": "boolean"},
                },
            },
        },
    },
)


class Toolbox(Protocol):
    """What can be called in one turn."""

    @property
    def specifications(self) -> Sequence[Mapping[str, Any]]: ...

    async def call(self, call: ToolCall) -> str:
        """What the model gets to read. Never raises for what the model did."""
        ...


class MemoryTools:
    """`recall` and `remember` for one turn. Tenant, user and conversation are those of the turn, whatever the model
    says: it has no word for others. What it notes down holds for the user alone."""

    specifications = SPECIFICATIONS

    def __init__(
        self,
        manager: MemoryManager,
        ref: ConversationRef,
        source: str | None,
        *,
        min_confidence: float = 0.5,
        mask: Collection[Kind] = (),
    ) -> None:
        self._manager = manager
        self._ref = ref
        self._source = source
        self._min_confidence = min_confidence
        self._mask = mask  # what is not written down

    async def call(self, call: ToolCall) -> str:
        known = {spec["function"]["name"]: spec["function"]["parameters"] for spec in SPECIFICATIONS}
        if call.name not in known:
            return f"error: there is no tool {call.name[:40]!r}; use {' or '.join(known)}"
        try:
            given = orjson.loads(call.arguments or "{}")
        except ValueError:
            return "error: the arguments are not JSON"
        if not isinstance(given, dict):
            return "error: the arguments are no object"
        parameters = known[call.name]
        if strange := sorted(set(given) - set(parameters["properties"])):
            return f"error: {call.name} has no {strange[0][:40]!r}, but {', '.join(parameters['properties'])}"
        if missing := [name for name in parameters.get("required", ()) if given.get(name) in (None, "")]:
            return f"error: {call.name} needs {missing[0]!r}"
        given = {name: value[:_LONGEST] if isinstance(value, str) else value for name, value in given.items()}
        try:
            return (await (self._recall if call.name == "recall" else self._remember)(given))[:_SHOWN]
        except (ValueError, TypeError) as error:
            return f"error: {str(error)[:200]}"
        except MemoryFault:
            return "error: the memory can't be reached now"

    async def _recall(self, given: Mapping[str, Any]) -> str:
        limit = given.get("limit", 10)
        tenant, user, agent, conversation = self._ref
        return await self._manager.recall(
            tenant,
            user,
            _text(given.get("key")),
            _text(given.get("query")),
            memory_type=str(given.get("memory_type", "facts")),
            limit=min(50, max(1, limit)) if isinstance(limit, int) else 10,
            min_confidence=self._min_confidence,
            agent=agent,
            conversation_id=conversation,
        )

    async def _remember(self, given: Mapping[str, Any]) -> str:
        tenant, user, agent, conversation = self._ref
        return await self._manager.remember_in_words(
            tenant,
            user,
            masked(str(given["key"]), self._mask),
            masked_within(given["value"], self._mask),
            fact_type=str(given.get("type") or FactType.FACT),
            overwrite=given.get("overwrite") is not False,
            source=self._source,
            agent=agent,
            conversation_id=conversation,
        )


async def converse(
    model: ChatModel,
    request: ChatRequest,
    toolbox: Toolbox | None,
    rounds: int,
    watch: Watch | None = None,
    scratch: Scratch | None = None,
) -> tuple[Completion, list[dict[str, Any]]]:
    """The answer after at most `rounds` rounds of tool calls, and what was done: `tool`, `arguments`, `result` or
    `error`. All of it within the request's one timeout; its usage is that of all rounds. Raises LLMError.

    With a `watch` each answer is streamed to it. Once it is gone the model's call is closed, no other is made, and
    what was said so far is the answer, with CUT as its finish reason.
    """
    actions: list[dict[str, Any]] = []
    if toolbox is None or rounds <= 0:
        return await _asked(model, request, watch), actions
    deadline = time.monotonic() + request.access.timeout
    asked = structs.replace(request, tools=toolbox.specifications)
    try:
        completion = await _asked(model, asked, watch)
    except LLMRejected:
        return await _asked(model, request, watch), actions  # a model without tools
    if not completion.tool_calls:
        return completion, actions
    scratch = scratch if scratch is not None else Scratch()
    used = [completion.usage]
    with scratch.plan() as plan:
        for left in range(rounds - 1, -2, -1):
            if watch is not None and completion.text:
                watch.grew(str)  # that was no part of the answer
            scratch.add(plan, await _step(toolbox, completion, actions))
            if left < 0:
                break
            seconds = deadline - time.monotonic()
            if seconds <= 0:
                raise LLMUnavailable("no answer from the language model in time")
            completion = await _asked(
                model,
                structs.replace(
                    asked,
                    messages=[*request.messages, *scratch.get(plan)],
                    access=replace(request.access, timeout=seconds),
                    tool_choice=None if left else "none",
                ),
                watch,
            )
            used.append(completion.usage)
            if not completion.tool_calls:
                return structs.replace(completion, usage=_sum(used)), actions
    if completion.text.strip():
        return structs.replace(completion, usage=_sum(used)), actions
    raise LLMBadAnswer("the language model called tools without end")


async def _step(toolbox: Toolbox, completion: Completion, actions: list[dict[str, Any]]) -> list[Mapping[str, Any]]:
    """Does what the model asked for, and notes it in `actions`; what the model gets to read of it."""
    calls = completion.tool_calls[:_MOST_CALLS]
    messages: list[Mapping[str, Any]] = [
        {
            "role": "assistant",
            "content": completion.text or None,
            "tool_calls": [
                {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": one.arguments}}
                for one in calls
            ],
        }
    ]
    for one in calls:
        result = await toolbox.call(one)
        messages.append({"role": "tool", "tool_call_id": one.id, "content": result})
        failed = result.startswith("error: ")
        actions.append(
            {"tool": one.name, "arguments": one.arguments[:_LONGEST], "error" if failed else "result": result}
        )
    return messages


def _sum(used: Sequence[Usage]) -> Usage:
    costs = [one.cost for one in used if one.cost is not None]
    return Usage(
        sum(one.prompt_tokens for one in used),
        sum(one.completion_tokens for one in used),
        sum(one.cached_tokens for one in used),
        sum(costs) if costs else None,
    )


def _asked(model: ChatModel, request: ChatRequest, watch: Watch | None) -> Coroutine[Any, Any, Completion]:
    """One answer, streamed where somebody watches."""
    if watch is None:
        return model.complete(request)
    if watch.gone is None:
        return _heard(model, request, watch, [])
    return _until_gone(model, request, watch, watch.gone)


async def _until_gone(model: ChatModel, request: ChatRequest, watch: Watch, gone: asyncio.Event) -> Completion:
    said: list[str] = []
    if not gone.is_set():
        hearing = asyncio.create_task(_heard(model, request, watch, said))
        leaving = asyncio.create_task(gone.wait())
        try:
            await asyncio.wait({hearing, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if hearing.done():
                return hearing.result()
        finally:
            leaving.cancel()
            hearing.cancel()
            await asyncio.wait({hearing})  # the call is closed before anything else is done
    return Completion("".join(said), request.access.model, finish_reason=CUT)


async def _heard(model: ChatModel, request: ChatRequest, watch: Watch, said: list[str]) -> Completion:
    whole, so_far = None, partial("".join, said)
    try:
        async for piece in model.stream(request):
            if isinstance(piece, Completion):
                whole = piece
            else:
                said.append(piece)
                watch.grew(so_far)
        if whole is None:
            raise LLMUnavailable("the language model's answer is not whole")
    except LLMError:
        if said:
            watch.grew(str)  # somebody else answers
        raise
    return whole


def _text(value: Any) -> str | None:
    return str(value) if value not in (None, "") else None
