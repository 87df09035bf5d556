"""What Telegram's answer to a call means. Pure."""

from __future__ import annotations

import re
from typing import Any

from gateway.adapters.parsing import EMPTY, integer, load_json, number, obj, string
from gateway.errors import ChannelBroken, ChatMoved, NotJson, SendAmbiguous, SendRefused, SendRetry, Unreachable

_WAIT = re.compile(r"retry after (\d{1,6})")
_LONGEST_REASON = 300


class Conflict(SendRefused):
    """Telegram serves somebody else: another poller, or a webhook."""


def result_of(status: int, content: str) -> Any:
    """The result in Telegram's answer; None where all is well and nothing has changed. Raises SendFault."""
    try:
        answer = load_json(content)
    except NotJson:
        answer = None
    if not isinstance(answer, dict):
        answer = EMPTY
    if 200 <= status < 300 and answer.get("ok") is True:
        return answer.get("result")
    description = " ".join((string(answer, "description", 10_000) or "no reason given").split())[:_LONGEST_REASON]
    reason, said = f"Telegram answered {status}: {description}", description.lower()
    parameters = obj(answer, "parameters")
    if moved_to := integer(parameters, "migrate_to_chat_id"):
        raise ChatMoved(reason, str(moved_to))
    wait = number(parameters, "retry_after")
    if status == 429 or wait:
        told = _WAIT.search(said)
        raise SendRetry(reason, wait or (float(told[1]) if told else None))
    if status in (401, 404):
        raise ChannelBroken(reason)
    if status == 403:
        raise Unreachable(reason)
    if status == 409:
        raise Conflict(reason)
    if status == 400 and "message is not modified" in said:
        return None
    if status == 400 and ("chat not found" in said or "group chat was deactivated" in said):
        raise Unreachable(reason)
    if status in (408, 500, 503) or (status > 500 and "restart" in said):
        raise SendRetry(reason)
    if status > 500 or 200 <= status < 300:
        raise SendAmbiguous(reason)  # a server on the way gave up, or answered for Telegram
    raise SendRefused(reason)
