"""OpenRouter's and HTTP's ways to fail, told as LLMError. Sources: the platform's documentation, OpenRouter 4."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from processors.llm import (
    LLMBadAnswer,
    LLMError,
    LLMOutOfCredit,
    LLMRejected,
    LLMUnauthorized,
    LLMUnavailable,
)

_KEY = re.compile(r"\b(?:sk|key|Bearer)[-_ ][\w.*…-]{6,}", re.IGNORECASE)
_MODEL_UNKNOWN = re.compile(
    r"not a valid model|model.{0,40}(?:not found|does not exist)|content policy|context length", re.IGNORECASE
)
_FIELD_UNKNOWN = re.compile(
    r"unrecogni[sz]ed|unknown (?:field|parameter|argument|name)|unexpected|not permitted|extra inputs", re.IGNORECASE
)
_TRY_AGAIN = frozenset({408, 409, 425, 429})


class FormatRefused(LLMRejected):
    """This form of request is refused; a plainer one may do."""

    unknown_field = False  # the endpoint names a field that it doesn't know


def from_http(error: BaseException) -> LLMError:
    """Any exception out of the HTTP client or of reading what it brought, in a stream too. What it says never holds a
    key."""
    import aiohttp

    if isinstance(error, LLMError):
        return error
    if isinstance(error, TimeoutError):
        return LLMUnavailable("the language model did not answer in time")
    if isinstance(error, aiohttp.ClientConnectorError):
        return LLMUnavailable("the language model can't be reached")
    if isinstance(error, json.JSONDecodeError):
        return LLMUnavailable("the language model's answer is not JSON")
    return LLMUnavailable(f"the connection to the language model broke: {type(error).__name__}")


def from_body(error: Any) -> LLMError:
    """The `error` object of an answer that came with HTTP 200; its `code` says what it would have been."""
    code = error.get("code") if isinstance(error, Mapping) else None
    try:
        status = int(code)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        status = 502
    return from_status(status, error, {})


def from_status(status: int, body: Any, headers: Mapping[str, str]) -> LLMError:
    """By HTTP status, with the `error` object where there is one."""
    error: Mapping[str, Any] = body if isinstance(body, Mapping) else {}
    if isinstance(error.get("error"), Mapping):
        error = error["error"]
    metadata = error.get("metadata") if isinstance(error.get("metadata"), Mapping) else {}
    assert isinstance(metadata, Mapping)
    said = _KEY.sub("…", str(error.get("message") or ""))[:200]
    text = f"{status} {said}".strip()
    wait = retry_after(headers)
    if wait is None:
        availability = error.get("availability")
        told = availability.get("retry_after") if isinstance(availability, Mapping) else None
        wait = float(told) if isinstance(told, int | float) else None
    if status == 401:
        return LLMUnauthorized(text)
    if status == 402:
        if metadata.get("limit_source") == "openrouter_in_flight_budget":
            return LLMUnavailable(text, wait)
        return LLMOutOfCredit(text)
    if status == 403:
        moderated = any(k in metadata for k in ("reasons", "flagged_input")) or re.search(
            r"moderat|flagged|guardrail|policy", f"{said} {metadata.get('error_type', '')}", re.IGNORECASE
        )
        return LLMRejected(text) if moderated else LLMUnauthorized(text)
    if status in _TRY_AGAIN or status >= 500:
        return LLMUnavailable(text, wait)
    if status in (400, 404, 422) and not _MODEL_UNKNOWN.search(said):
        refused = FormatRefused(text)
        refused.unknown_field = bool(_FIELD_UNKNOWN.search(said))
        return refused
    return LLMRejected(text)


def from_finish(reason: str | None, text: str) -> LLMError | None:
    """What an answer without text means; None where it has some."""
    if text.strip():
        return None
    if reason is None:  # a cold start, not billed
        return LLMUnavailable("the language model's answer is empty")
    if reason == "content_filter":
        return LLMRejected("the answer was held back by a content filter")
    return LLMBadAnswer(f"the language model's answer is empty ({reason})")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds out of `Retry-After`, given as seconds or as a date."""
    value = headers.get("retry-after")
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        at = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return None
    return max(0.0, (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
