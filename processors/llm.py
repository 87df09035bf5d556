"""The seam to a language model: what is asked, what comes back, and the ways it can fail.

LLMError
├── LLMNotConfigured   no key: nothing was sent
├── LLMUnavailable     worth trying again later: timeout, 429, 5xx, cut stream, open circuit (`retry_after`)
├── LLMRejected        this request will not work as it stands: 400, 404, 413, moderation
├── LLMUnauthorized    401 or 403: the key is wrong, revoked or spent
├── LLMOutOfCredit     402: credits used up
├── LLMOverBudget      the tenant's own limit of money or tokens is reached: nothing was sent
└── LLMBadAnswer       an answer came, but it can't be used: empty, not of the schema (`text` holds what came)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from msgspec import Struct


class LLMError(Exception):
    """The language model gave no usable answer."""

    retry_after: float | None = None


class LLMNotConfigured(LLMError):
    """No API key is set, so no language model is asked."""


class LLMUnavailable(LLMError):
    """The language model can't be reached or is overloaded."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class LLMRejected(LLMError):
    """The language model refused this request."""


class LLMUnauthorized(LLMError):
    """The API key was refused."""


class LLMOutOfCredit(LLMError):
    """The account has no credit left for this request."""


class LLMOverBudget(LLMError):
    """The tenant's budget does not allow this request."""


class LLMBadAnswer(LLMError):
    """The language model answered with something that can't be used."""

    def __init__(self, message: str, text: str = "") -> None:
        super().__init__(message)
        self.text = text


# What a model is asked for; the last two: vectors, and what is said in recordings.
PURPOSES = ("answer", "classify", "remember", "rewrite", "route", "embed", "hear")


class Usage(Struct, frozen=True):
    """Tokens as reported; `cost` in US dollars, None where the endpoint does not say. `seconds` of sound, for models
    that are paid by the minute."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0


def usage_of(answer: Any) -> Usage | None:
    """What an answer to a request for vectors or for a recording's words says it took; None: it says nothing."""
    told = answer.get("usage") if isinstance(answer, dict) else None
    if not isinstance(told, dict):
        return None
    prompt, completion = int(_number(told, "prompt_tokens", "input_tokens")), int(_number(told, "output_tokens"))
    seconds = _number(told, "seconds", "input_seconds")
    return Usage(prompt or round(seconds * 10), completion, cost=_cost(told), seconds=seconds)


def chat_usage(told: Any) -> Usage:
    """The `usage` of a chat answer: nothing of what is no number, as an answer is worth more than its count."""
    if not isinstance(told, dict):
        return Usage()
    details = told.get("prompt_tokens_details")
    cached = int(_number(details, "cached_tokens")) if isinstance(details, dict) else 0
    prompt, completion = int(_number(told, "prompt_tokens")), int(_number(told, "completion_tokens"))
    return Usage(prompt, completion, cached, _cost(told) if "cost" in told else None)


def _number(told: dict[str, Any], *names: str) -> float:
    for name in names:
        one = told.get(name)
        if (type(one) is int or type(one) is float) and 0 <= one < 1e12:
            return one
    return 0.0


def _cost(told: dict[str, Any]) -> float | None:
    return float(_number(told, "cost")) if type(told.get("cost")) in (int, float) else None


@dataclass(frozen=True, slots=True)
class Access:
    """With whose key, where, and which models: a tenant's `llm` section over the environment's settings."""

    api_key: str | None
    base_url: str = "https://openrouter.ai/api/v1"
    model: str = "openai/gpt-4o-mini"
    fallback_models: tuple[str, ...] = ()
    timeout: float = 30.0  # seconds for the whole call, retries included
    tenant: str = ""  # on whose account it is counted; "": on nobody's
    purpose: str = "answer"  # one of PURPOSES
    on_usage: Callable[[str, Usage], None] | None = field(default=None, compare=False)  # hears of this call's answers

    def __repr__(self) -> str:
        return f"Access(base_url={self.base_url!r}, model={self.model!r}, api_key={'set' if self.api_key else None})"


class ChatRequest(Struct, frozen=True):
    """One call. `messages` are OpenAI chat messages; `schema` is a JSON Schema for a structured answer."""

    messages: Sequence[Mapping[str, Any]]
    access: Access
    schema: Mapping[str, Any] | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    session_id: str | None = None  # sticky routing: keeps a provider's prompt cache warm
    tools: Sequence[Mapping[str, Any]] = ()  # OpenAI's tool objects
    tool_choice: str | None = None  # `none`: the tools were used, now an answer


class ToolCall(Struct, frozen=True):
    """What the model wants done. `arguments` is text as it came: JSON, if the model keeps to its word."""

    id: str
    name: str
    arguments: str


class Completion(Struct, frozen=True):
    """A usable answer: `text` is not empty unless there are `tool_calls`; `data` is the validated object where a schema
    was given."""

    text: str
    model: str
    provider: str | None = None
    usage: Usage = Usage()
    finish_reason: str | None = None
    data: dict[str, Any] | None = None
    tool_calls: tuple[ToolCall, ...] = ()


class ChatModel(Protocol):
    """Anything that answers chat requests."""

    def complete(self, request: ChatRequest) -> Coroutine[Any, Any, Completion]:
        """The whole answer, awaited. Raises LLMError, never anything of the HTTP library's."""
        ...

    def stream(self, request: ChatRequest) -> AsyncIterator[str | Completion]:
        """The answer's text in pieces as they come, and last the completion of it all; whoever stops listening ends the
        call. Raises LLMError, also after some text."""
        ...
