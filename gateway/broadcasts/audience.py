"""Whom a shop's filter means, where they can be written to, and who is left out and why."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from config.tenants import LineChannel, Tenant
from gateway.blocked import Blocked, OptedOut
from gateway.board import Board, Entry
from gateway.broadcasts.draft import Audience
from gateway.reach import Reach
from gateway.staff_desk import Customer
from gateway.texts import Tongue
from memory import keys
from memory.facts import shown
from memory.index.rows import words
from memory.listing import Kind, Wanted
from memory.memory_manager import MemoryManager

_PAGE = 500
_SENDS = ("line", "telegram", "web")  # platforms whose people can be written to unasked

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Person:
    """`ids`: every id they are known by. `seen` is when they were seen last, None where nobody knows; `event_at` when
    the event was that was asked for."""

    user: str
    ids: frozenset[str]
    customer: Customer
    language: Tongue
    name: str | None
    seen: datetime | None
    event_at: datetime | None


@dataclass(frozen=True, slots=True)
class Selection:
    """`left_out`: who fits as well, but is not to be written to or can't be, by reason."""

    people: Sequence[Person]
    left_out: Mapping[str, int]


class Audiences:
    """Asks the lists over a tenant. Raises MemoryFault and RedisError."""

    def __init__(
        self, manager: MemoryManager, board: Board, reach: Reach, blocked: Blocked, opted_out: OptedOut
    ) -> None:
        self._manager = manager
        self._board = board
        self._reach = reach
        self._blocked = blocked
        self._opted_out = opted_out

    async def select(self, tenant: Tenant, asked: Audience) -> Selection:
        catalog = self._manager.catalog
        talks = await self._board.people(tenant.id)
        newest = await catalog.last_events(tenant.id, Wanted())
        wanted = Wanted(
            types=tuple(one.value for one in asked.events), since=asked.event_since, until=asked.event_until
        )
        matched = await catalog.last_events(tenant.id, wanted) if asked.events else {}
        tagged = [await self._tagged(tenant.id, tag) for tag in asked.tags]
        known = {str(one["user_id"]): one for one in await self._all(tenant.id, "users")}
        known = {user: one for user, one in known.items() if not one.get("merged_into")}
        merged = {old for one in known.values() for old in one.get("merged", ())}
        # Of whom nothing is remembered the list of conversations may know.
        strangers = {user: {"user_id": user} for user in talks if user not in known and user not in merged}
        only = set(asked.users)
        found: list[Person] = []
        left_out: Counter[str] = Counter()
        for user, record in {**known, **strangers}.items():
            ids = frozenset((user, *record.get("merged", ())))
            if (only and not only & ids) or any(user not in holders for holders in tagged):
                continue
            if asked.events and user not in matched:
                continue
            talk = max((talks[one] for one in ids if one in talks), key=lambda one: one.heard, default=None)
            seen = _seen(record, talk)
            if (asked.seen_since and (seen is None or seen < asked.seen_since)) or (
                asked.seen_until and seen is not None and seen >= asked.seen_until
            ):
                continue
            language = _language(tenant, newest.get(user))
            if asked.language not in (None, language):
                continue
            if keys.is_group(user):
                left_out["group"] += 1
                continue
            customer = _customer(tenant, asked, ids, talk, newest.get(user))
            if customer is None:
                # Whoever is known on other channels than those that were asked for is not meant.
                if not (asked.channels or asked.platforms):
                    left_out["no_channel"] += 1
                continue
            event_at = _time(matched[user].get("timestamp")) if user in matched else None
            found.append(Person(user, ids, customer, language, _name(record), seen, event_at))
        return await self._reachable(tenant, found, left_out)

    async def _reachable(self, tenant: Tenant, found: Sequence[Person], left_out: Counter[str]) -> Selection:
        opted_out, blocked = await asyncio.to_thread(
            lambda: (self._opted_out.of(tenant.id), self._blocked.of(tenant.id) | set(tenant.blocked_users))
        )
        chats = [
            (one.customer.channel, one.customer.chat_id, one.seen.timestamp() if one.seen else 0.0) for one in found
        ]
        gone = await self._reach.gone_of(tenant.id, chats) if chats else []
        people: list[Person] = []
        for one, left in zip(found, gone, strict=True):
            channel = tenant.channels.get(one.customer.channel)
            why = (
                "opted_out" if one.ids & opted_out
                else "blocked" if one.ids & blocked
                else "gone" if left
                else "staff" if tenant.is_staff_chat(one.customer.channel, one.customer.chat_id)
                else "no_push" if isinstance(channel, LineChannel) and not channel.allow_push
                else ""
            )  # fmt: skip
            if why:
                left_out[why] += 1
            else:
                people.append(one)
        return Selection(sorted(people, key=lambda one: one.user), dict(left_out))

    async def _tagged(self, tenant: str, tag: str) -> set[str]:
        """Of whom it is remembered: `key`, or `key=value`."""
        key, equals, value = tag.partition("=")
        facts = await self._all(tenant, "facts", Wanted(q=key))
        return {
            str(one["user_id"])
            for one in facts
            if words(str(one.get("key"))) == words(key)
            and (not equals or words(shown(one.get("value"))) == words(value))
        }

    async def _all(self, tenant: str, kind: Kind, wanted: Wanted = Wanted()) -> list[Record]:
        records: list[Record] = []
        after = None
        while True:
            page = await self._manager.catalog.page(tenant, kind, wanted, limit=_PAGE, after=after)
            records += page.records
            if (after := page.last) is None:
                return records


def _customer(
    tenant: Tenant, asked: Audience, ids: frozenset[str], talk: Entry | None, event: Record | None
) -> Customer | None:
    """Where they wrote last, as far as that is known: the conversation itself, the channel of their newest event, or
    the only channel of their platform."""

    def fits(name: str, platform: str) -> bool:
        channel = tenant.channels.get(name)
        there = platform == "web" if channel is None else channel.platform == platform
        allowed = (not asked.channels or name in asked.channels) and (
            not asked.platforms or platform in asked.platforms
        )
        return there and platform in _SENDS and allowed

    if talk is not None and fits(talk.customer.channel, talk.customer.platform):
        return talk.customer
    named = keys.unescape(str(event.get("event_id") or "").partition(":")[0]) if event else None
    for one in sorted(ids):
        platform, _, own = one.partition(":")
        if platform not in ("line", "telegram") or not own:
            continue
        usable = [name for name in tenant.channels if fits(name, platform)]
        of_platform = [name for name, channel in tenant.channels.items() if channel.platform == platform]
        name = named if named in usable else usable[0] if usable and len(of_platform) == 1 else None
        if name is not None:
            return Customer(channel=name, platform=platform, user_id=one, chat_id=own)
    return None


def _language(tenant: Tenant, event: Record | None) -> Tongue:
    payload: Any = (event or {}).get("payload") or {}
    return "en" if tenant.speaks(str(payload.get("language"))) == "en" else "th"


def _seen(record: Record, talk: Entry | None) -> datetime | None:
    heard = datetime.fromtimestamp(talk.heard / 1000, UTC) if talk and talk.heard else None
    times = [at for at in (_time(record.get("last_seen_at")), heard) if at is not None]
    return max(times, default=None)


def _time(given: Any) -> datetime | None:
    try:
        at = datetime.fromisoformat(given)
    except (TypeError, ValueError):
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _name(record: Record) -> str | None:
    return called(record.get("preferences") or {}, record.get("display_name"))


def called(attributes: Mapping[str, Any], display_name: Any) -> str | None:
    """As they call themselves, else as their platform does."""
    own = attributes.get("name")
    name = own if isinstance(own, str) else display_name
    return name if isinstance(name, str) and name else None
