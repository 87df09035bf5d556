"""LINE's words: channels, messages, faults, errors. Each rule names its section in the platform's documentation."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.standins.line_messages import Details
from tests.standins.model import Answer, Fault, Json

# LINE 1.3: 429 has two meanings, told apart only by text
RATE_LIMITED = "The API rate limit has been exceeded. Try again later."
MONTHLY_LIMIT = "You have reached your monthly limit."


def rate_limited(**more: Any) -> Fault:
    """LINE 1.3: 429 that passes."""
    return Fault(429, {"message": RATE_LIMITED}, **more)


def monthly_limit(**more: Any) -> Fault:
    """LINE 1.3: 429 that stays until the month is over; on push, as a reply costs nothing."""
    return Fault(429, {"message": MONTHLY_LIMIT}, **{"on": "/push", **more})


@dataclass(frozen=True, slots=True)
class LineChannel:
    """A channel the stand-in knows; `user_id` is the bot's own: a webhook's `destination`."""

    token: str = "line-token-1"
    secret: str = "line-secret-1"
    user_id: str = "U" + "b0" * 16
    channel_id: str = "1650000001"


@dataclass(frozen=True, slots=True)
class LineShown:
    """One message object that LINE took. `repeated`: a retry key's second sending, not on the screen again."""

    chat: str
    message: Mapping[str, Json]
    id: str
    via: str  # reply | push | multicast
    at: float
    channel: str  # the channel's id
    repeated: bool = False

    @property
    def text(self) -> str:
        return str(self.message.get("text", ""))


@dataclass(slots=True)
class LineContent:
    """What a customer sent. `preparing`: for how many calls the answer is 202 yet."""

    data: bytes = b""
    mime: str = "image/jpeg"
    preparing: int = 0
    gone: bool = False


@dataclass(slots=True)
class Token:
    chat: str
    until: float
    channel: str | None
    spent: bool = False


@dataclass(slots=True)
class Accepted:
    key: str
    request_id: str
    at: float
    sent: list[dict[str, str]] | None
    to: list[str]
    messages: list[dict[str, Json]]


def sign(secret: str, body: bytes) -> str:
    """LINE 1.1: base64 of HMAC-SHA256 over the raw body."""
    return base64.b64encode(hmac.new(secret.encode(), body, hashlib.sha256).digest()).decode()


def failed(status: int, message: str) -> Answer:
    return Answer(status, {"message": message})


def refuse(details: Details) -> Answer:
    # LINE 1.3: errors: {"message", "details":[{"message","property"}]?}
    return Answer(400, {"message": f"The request body has {len(details)} error(s)", "details": details})


def invalid(message: str, where: str) -> Answer:
    return refuse([{"message": message, "property": where}])
