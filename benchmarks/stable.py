"""How much of a prompt is, from its first byte on, the same as the prompt before: `python -m benchmarks.stable`.

That much a provider's cache can serve. One conversation over sixty turns, with a time, a memory and an answer of the
shop's that are others each turn; by how many messages a prompt holds.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import orjson

from benchmarks import shop_talk
from gateway import prompt
from memory import context
from memory.keys import ConversationRef
from memory.models import ShortTermMemory
from memory.session import append, new_session
from processors.models import iso

TURNS = 60
TTL = 3600.0


def shares(limit: int, turns: int = TURNS) -> list[float]:
    """Of each turn but the first, 0.0 to 1.0; `limit`: messages of the history that a prompt may hold."""
    told = [orjson.dumps(messages) for messages in prompts(limit, turns)]
    return [_same(was, now) / len(now) for was, now in pairwise(told)]


def _same(was: bytes, now: bytes) -> int:
    """How many bytes from the first on."""
    return next((at for at, (one, other) in enumerate(zip(was, now, strict=False)) if one != other), len(now))


def prompts(limit: int, turns: int) -> Iterator[list[dict[str, Any]]]:
    now = datetime(2026, 3, 6, 10, 28, tzinfo=UTC)
    session = new_session(ConversationRef("shop-0", "line:U1"), "sess", None, [], now, TTL)
    for turn in range(turns):
        now += timedelta(minutes=1)
        said = shop_talk.said(turn)
        yield _prompt(session, limit, turn, said, now)
        session = _answered(session, limit, turn, said, now)


def _prompt(session: ShortTermMemory, limit: int, turn: int, said: str, now: datetime) -> list[dict[str, Any]]:
    known: Mapping[str, Any] = context.build(session, None, max_recent_messages=context.steady(session, limit))
    return prompt.build(
        shop="Shop",
        instructions="You are a shop's assistant.",
        system_role="system",
        language="th",
        now=now,
        context={**known, "user_attributes": {"name": "พลอย"}, "memories": [f"2026-03-01 {shop_talk.said(turn + 3)}"]},
        knowledge=[(shop_talk.said(turn + 1), shop_talk.ANSWERED)],
        text=said,
    )


def _answered(session: ShortTermMemory, limit: int, turn: int, said: str, now: datetime) -> ShortTermMemory:
    lines = [
        {"role": role, "message": text, "timestamp": iso(now), "message_id": f"{role}{turn}"}
        for role, text in (("user", said), ("bot", f"{shop_talk.ANSWERED} {turn}"))
    ]
    return append(session, lines, max_messages=limit, now=now, ttl=TTL)  # type: ignore[arg-type]


def main() -> None:
    print("messages told   growing, least and most   full, least, mean and most")
    for limit in (6, 12, 20, 30):
        every = shares(limit)
        growing, full = every[: limit // 2], every[limit // 2 :]
        print(
            f"{limit:13}   {min(growing):15.0%} {max(growing):8.0%}   "
            f"{min(full):11.0%} {statistics.mean(full):7.0%} {max(full):8.0%}"
        )


if __name__ == "__main__":
    main()
