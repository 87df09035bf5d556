"""One line of a conversation."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict  # pydantic asks for this one before Python 3.12


@with_config(ConfigDict(extra="allow"))  # a newer version's fields pass through
class Message(TypedDict):
    """One line of a conversation. `message_id` makes appending idempotent."""

    role: Literal["user", "bot"]
    message: str
    timestamp: NotRequired[str]  # ISO 8601, UTC, Z
    message_id: NotRequired[str]
    metadata: NotRequired[dict[str, Any]]
