"""What is small of a tenant, as whole documents, so that it is copied and compared as people are: its short lists, and
the conversations that programs opened by name."""

from __future__ import annotations

import asyncio
import hashlib
from datetime import UTC, datetime
from typing import Any

from memory.conversations import Conversation, Conversations, conversation_of, record_of, used_ms
from memory.keys import escape
from memory.lists import NAMES, KeptLists
from memory.long_term.document import Document, dump

_LIST, _CONVERSATION = "the list ", "the conversation "


class Small:
    """Whole of memory.copying, by names instead of people."""

    def __init__(self, lists: KeptLists, conversations: Conversations) -> None:
        self._lists = lists
        self._conversations = conversations

    async def tenants(self) -> list[str]:
        found = set(await self._conversations.tenants())
        for name in NAMES:
            found.update(await asyncio.to_thread(self._lists(name).tenants))
        return sorted(found)

    async def stamps(self, tenant: str) -> dict[str, str]:
        found = {f"{_LIST}{name}": _listed(await self._list(tenant, name)) for name in NAMES}
        stamps = {name: _hash(document) for name, document in found.items() if document is not None}
        for one in await self._conversations.all(tenant):
            stamps[f"{_CONVERSATION}{one.id}"] = _hash(_document(one))
        return stamps

    async def document(self, tenant: str, user: str) -> Document | None:
        if user.startswith(_LIST):
            return _listed(await self._list(tenant, user.removeprefix(_LIST)))
        one = await self._conversations.get(tenant, user.removeprefix(_CONVERSATION))
        return _document(one) if one else None

    async def put(self, tenant: str, user: str, whole: Document) -> None:
        if user.startswith(_LIST):
            listed = list(whole["listed"])
            await asyncio.to_thread(self._lists(user.removeprefix(_LIST)).change, tenant, lambda there: listed)
            return
        used_at = datetime.fromtimestamp(whole["used_at"] / 1000, UTC)
        name = escape(user.removeprefix(_CONVERSATION))
        await self._conversations.put(conversation_of(whole["conversation"], tenant, name, used_at))

    async def forget(self, tenant: str, user: str) -> dict[str, int]:
        if user.startswith(_LIST):
            await asyncio.to_thread(self._lists(user.removeprefix(_LIST)).change, tenant, lambda there: [])
        else:
            await self._conversations.remove(tenant, user.removeprefix(_CONVERSATION))
        return {}

    async def mark_forgotten(self, tenant: str, user: str) -> None:
        """Nobody is."""

    async def _list(self, tenant: str, name: str) -> list[Any]:
        return await asyncio.to_thread(self._lists(name).of, tenant)


def _listed(there: list[Any]) -> Document | None:
    return {"listed": there} if there else None


def _document(one: Conversation) -> Document:
    return {"conversation": record_of(one), "used_at": used_ms(one)}


def _hash(document: Document) -> str:
    return hashlib.sha256(dump(document)).hexdigest()
