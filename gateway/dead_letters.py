"""Messages that could not be handled after every try, one stream a tenant, for an operator to look at and decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from redis.asyncio import Redis

from gateway.inbox.base import Inbox, Policy
from gateway.inbox.redis import INDEX, dead_key
from gateway.messages import BEGUN, InboundMessage, decode
from gateway.patience import OWED
from gateway.rendering import literal

KEPT_FOR = timedelta(days=90)
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class DeadLetter:
    id: str
    tenant: str
    conversation: str
    reason: str
    tries: int
    at: datetime
    message: InboundMessage
    carried: bytes | None = None  # what an earlier batch of the conversation had left to be delivered with it


class DeadLetters:
    def __init__(self, client: Redis, inbox: Inbox) -> None:
        self._redis = client
        self._inbox = inbox

    async def tenants(self) -> set[str]:
        """Whoever had any, also tenants that are gone."""
        found: Any = await self._redis.smembers(f"{INDEX}:graves")
        return {name.decode() for name in found}

    async def list(self, tenant: str, limit: int = 100) -> list[DeadLetter]:
        """The newest first."""
        rows: Any = await self._redis.xrevrange(dead_key(tenant), count=limit)
        return [_letter(tenant, id_, fields) for id_, fields in rows]

    async def get(self, tenant: str, id_: str) -> DeadLetter | None:
        rows: Any = await self._redis.xrange(dead_key(tenant), id_, id_)
        return _letter(tenant, *rows[0]) if rows else None

    async def retry(self, letter: DeadLetter, policy: Policy) -> None:
        """Back into the queue as a new delivery; its reply token has gone long ago. First in, then out of here: a crash
        in between leaves it in both, and putting it in again changes nothing."""
        owed = {OWED: letter.carried.decode()} if letter.carried else {}
        again = msgspec.structs.replace(
            letter.message,
            extra={name: value for name, value in letter.message.extra.items() if name != BEGUN} | owed,
            event_id=f"{letter.message.event_id}+{letter.id}",
            reply_token=None,
            received_at=datetime.now(UTC).timestamp(),
        )
        await self._inbox.put([(again, policy)])
        await self.drop(letter.tenant, [letter.id])

    async def drop(self, tenant: str, ids: Sequence[str]) -> int:
        return int(await self._redis.xdel(dead_key(tenant), *ids))

    async def forget(self, tenant: str, ids: frozenset[str]) -> int:
        """Removes what these ids wrote, and what staff were to be told of them; how many letters that were."""
        removed, after = 0, "-"
        while rows := await self._rows(tenant, after):
            found = [letter.id for letter in rows if ids & persons(letter.message)]
            removed += await self.drop(tenant, found) if found else 0
            after = f"({rows[-1].id}"
        return removed

    async def people(self, tenant: str) -> dict[str, float]:
        """Everybody whom a letter is of, or about, with when the first of theirs was received, seconds since 1970."""
        found: dict[str, float] = {}
        after = "-"
        while rows := await self._rows(tenant, after):
            for letter in rows:
                at = letter.message.received_at
                found |= {one: min(at, found.get(one, at)) for one in persons(letter.message) if one}
            after = f"({rows[-1].id}"
        return found

    async def take_back(self, by: InboundMessage, message_id: str, said: str | None) -> int:
        """Removes a message that its writer took back in the chat that `by` comes from, and what staff were to be told
        of that chat with its words (`said`, where they are known); how many letters that were."""
        removed, after = 0, "-"
        where = by.channel, by.chat_id
        while rows := await self._rows(by.tenant, after):
            found = []
            for letter in rows:
                message, about = letter.message, letter.message.extra.get("about")
                own = (message.channel, message.chat_id) == where and message.message_id == message_id
                of_them = isinstance(about, dict) and (about.get("channel"), about.get("chat_id")) == where
                if own or (of_them and said and literal(said) in message.text):
                    found.append(letter.id)
            removed += await self.drop(by.tenant, found) if found else 0
            after = f"({rows[-1].id}"
        return removed

    async def _rows(self, tenant: str, after: str) -> Sequence[DeadLetter]:
        rows: Any = await self._redis.xrange(dead_key(tenant), after, count=_AT_ONCE)
        return [_letter(tenant, id_, fields) for id_, fields in rows]

    async def trim(self, tenant: str, now: datetime) -> int:
        """Removes what nobody has looked after for 90 days; how many."""
        oldest = int((now - KEPT_FOR).timestamp() * 1000)
        return int(await self._redis.xtrim(dead_key(tenant), minid=oldest, approximate=False))


def _letter(tenant: str, id_: bytes, fields: dict[bytes, bytes]) -> DeadLetter:
    return DeadLetter(
        id=id_.decode(),
        tenant=tenant,
        conversation=fields[b"conversation"].decode(),
        reason=fields[b"reason"].decode("utf-8", "replace"),
        tries=int(fields[b"tries"]),
        at=datetime.fromtimestamp(int(fields[b"at"]) / 1000, UTC),
        message=decode(fields[b"message"]),
        carried=fields.get(b"carried"),
    )


def persons(message: InboundMessage) -> frozenset[str | None]:
    """Whom it is of, or about."""
    about = message.extra.get("about")  # of a notice to staff: their customer
    customer = about.get("user_id") if isinstance(about, dict) else None
    return frozenset((message.user_id, message.sender_id, customer))
