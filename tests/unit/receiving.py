"""A shop with a channel on each platform, and webhooks signed as the platforms sign them."""

from __future__ import annotations

import base64
import hmac
import json
import re
from pathlib import Path
from typing import Any

from config.tenants import Tenant
from gateway.adapters.base import Received
from gateway.adapters.line import LineReceiver
from gateway.adapters.telegram import TelegramReceiver
from gateway.messages import InboundMessage

PAYLOADS = Path(__file__).parent.parent / "payloads"
NOW = 1_793_000_300.0
LINE_SECRET = "0123456789abcdef0123456789abcdef"
HOOK = "hook-secret"
SHOP = Tenant.model_validate(
    {
        "id": "shop",
        "name": "Shop",
        "channels": {
            "line-main": {"platform": "line", "channel_secret": LINE_SECRET, "channel_access_token": "line-token"},
            "line-free": {
                "platform": "line",
                "channel_secret": LINE_SECRET,
                "channel_access_token": "line-token",
                "allow_push": False,
            },
            "tg": {"platform": "telegram", "bot_token": "7123456789:TESTTOKEN", "webhook_secret": HOOK},
            "tg-polling": {"platform": "telegram", "bot_token": "7123456789:TESTTOKEN", "mode": "polling"},
        },
    }
)


def sign(body: bytes) -> str:
    return base64.b64encode(hmac.digest(LINE_SECRET.encode(), body, "sha256")).decode()


def line(body: object) -> Received:
    """Takes a body, or the JSON of anything else, as LINE would send it."""
    raw = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return LineReceiver().receive(SHOP, "line-main", raw, {"x-line-signature": sign(raw)}, NOW)


def telegram(body: object, username: str | None = "siam_cafe_bot") -> Received:
    """Takes a body, or the JSON of anything else, as Telegram would send it."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    receiver = TelegramReceiver(lambda _tenant, _channel: username)
    return receiver.receive(SHOP, "tg", raw, {"x-telegram-bot-api-secret-token": HOOK}, NOW)


def payload(name: str) -> Any:
    return json.loads((PAYLOADS / f"{name}.json").read_bytes())


def one(received: Received) -> InboundMessage:
    (message,) = received.messages
    return message


Row = tuple[str, str, str, bool]


def summary(received: Received) -> list[Row] | dict[str, int]:
    """Kind, user (LINE's long ids cut to five characters), text and whether the bot was addressed, of each message;
    where there is none, what was counted."""
    rows = [
        (str(m.kind), re.sub(r"([UCR][0-9a-f]{4})[0-9a-f]{28}", r"\1", m.user_id), m.text, m.mentioned)
        for m in received.messages
    ]
    return rows or dict(received.passed_over) or []
