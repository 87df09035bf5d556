"""What staff do with a conversation on the admin page. Each deed is a message in the customer's own conversation: so it
keeps its order, an answer is sent once, survives a crash and keeps to the platform's pace."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec

from config.tenants import LineChannel, Tenant
from gateway.board import Board, Entry
from gateway.inbox.base import Inbox, Policy
from gateway.messages import InboundMessage, Kind
from gateway.staff_desk import GIVE_BACK, ON_PAGE, TAKE
from memory.keys import ConversationRef

Way = Literal["free", "reply", "push", "no_push", "no_quota", "gone"]
CLOSED: tuple[Way, ...] = ("no_push", "no_quota", "gone")  # nothing can be sent
_SPENT = "quota"


class PageDesk:
    """`event` names the deed: done twice under one name, it is done once. Raises InboxUnavailable."""

    def __init__(self, inbox: Inbox, board: Board) -> None:
        self._inbox = inbox
        self._board = board

    async def take(self, tenant: Tenant, entry: Entry, event: str, now: datetime) -> None:
        await self._put(tenant, entry, event, now, extra={TAKE: True})

    async def give_back(self, tenant: Tenant, entry: Entry, event: str, now: datetime) -> None:
        await self._put(tenant, entry, event, now, extra={GIVE_BACK: True})

    async def answer(self, tenant: Tenant, entry: Entry, words: str, event: str, now: datetime) -> None:
        """On LINE by the reply token that the customer's last message left over, if it did: that costs nothing."""
        token = await self._board.take_token(ref_of(tenant, entry))
        more: dict[str, Any] = {"reply_token": token[0], "received_at": token[1]} if token else {}
        await self._put(tenant, entry, event, now, text=words, **more)

    async def way(self, tenant: Tenant, entry: Entry, state: str) -> Way:
        """How an answer would get there now; `state` of its channel as probes and workers saw it."""
        channel = tenant.channels.get(entry.customer.channel)
        if channel is None and entry.customer.platform not in ("web", "terminal"):
            return "gone"
        if not isinstance(channel, LineChannel):
            return "free"
        if await self._board.has_token(ref_of(tenant, entry)):
            return "reply"
        if not channel.allow_push:
            return "no_push"
        return "no_quota" if state == _SPENT else "push"

    async def _put(
        self, tenant: Tenant, entry: Entry, event: str, now: datetime, *, extra: Mapping[str, Any] = {}, **more: Any
    ) -> None:
        fields = msgspec.structs.asdict(entry.customer) | {"received_at": now.timestamp()} | more
        message = InboundMessage(
            tenant=tenant.id, event_id=f"page:{event}", kind=Kind.STAFF_REPLY, extra={**extra, ON_PAGE: True}, **fields
        )
        await self._inbox.put([(message, Policy(max_attempts=tenant.behaviour.max_attempts))])


def ref_of(tenant: Tenant, entry: Entry) -> ConversationRef:
    return ConversationRef(tenant.id, *entry.ref)
