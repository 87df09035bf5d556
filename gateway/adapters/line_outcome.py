"""What LINE's answer to a call means. Pure."""

from __future__ import annotations

import orjson

from gateway.adapters.parsing import load_json, objects, string
from gateway.errors import (
    ChannelBroken,
    NotJson,
    QuotaSpent,
    SendAmbiguous,
    SendFault,
    SendRefused,
    SendRetry,
    TokenSpent,
    Unreachable,
)

_LONGEST_REASON = 300


def fault_of(method: str, status: int, body: str) -> SendFault:
    """The fault in an answer that is neither 2xx nor 409; `method` is the call's: reply, push, …"""
    reason = f"LINE answered {status}: {_reason(body)}"
    if status in (401, 403):
        return ChannelBroken(reason)
    if status == 429:
        # The two kinds differ in their text alone. A quota spent is no matter of waiting.
        return QuotaSpent(reason) if "monthly limit" in body else SendRetry(reason)
    if status >= 500:
        # A reply has no retry key. Trying the same token again settles whether it landed; a push with a key may simply
        # be made again.
        return SendAmbiguous(reason) if method == "reply" else SendRetry(reason)
    if status == 400 and "invalid reply token" in body.lower():
        return TokenSpent(reason)
    if status == 400 and "failed to send messages" in body.lower():
        return Unreachable(reason)
    return SendRetry(reason) if status == 408 else SendRefused(reason)


def _reason(body: str) -> str:
    """LINE's own words, on one line."""
    try:
        answer = load_json(body)
    except NotJson:
        return "no JSON"
    if not isinstance(answer, dict):
        return "no JSON object"
    words = [string(answer, "message") or "no reason given"]
    words += [f"{string(each, 'property')}: {string(each, 'message')}" for each in objects(answer, "details")]
    return " ".join("; ".join(words).split())[:_LONGEST_REASON]


def sent_ids(body: str) -> tuple[str, ...]:
    """The ids of the messages that LINE says it sent."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ()
    sent = answer.get("sentMessages") if isinstance(answer, dict) else None
    if not isinstance(sent, list):
        return ()
    return tuple([each["id"] for each in sent if isinstance(each, dict) and string(each, "id")])
