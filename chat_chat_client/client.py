"""The client: the chat, what happens, and the lists."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import msgspec

from chat_chat_client import lists
from chat_chat_client.errors import Refused, Unreachable
from chat_chat_client.models import Happening, Health, Piece, Reply, Usage
from chat_chat_client.wire import SILENCE, Wire, events, pause

CUTS = 5  # connections in a row that break off before anything new was heard


class _Delta(msgspec.Struct):
    text: str
    replace: bool = False


class _Done(msgspec.Struct):
    usage: Usage


class _Failed(msgspec.Struct):
    status: int
    title: str


class Client:
    """`async with Client("https://bot.example.com", key) as client: …`

    `tenant` has to be named with the admin key. `timeout`: seconds of silence in which an answer is waited for; streams
    have their own. Everything raises Refused and Unreachable. What only reads is tried again by itself."""

    def __init__(self, url: str, key: str, tenant: str | None = None, *, timeout: float = 120.0) -> None:
        self._wire = Wire(url, key, tenant, timeout)
        self.conversations = lists.Conversations(self._wire)
        self.memory = lists.Memories(self._wire)
        self.facts = lists.Facts(self._wire)
        self.episodes = lists.Episodes(self._wire)
        self.procedures = lists.Procedures(self._wire)
        self.users = lists.Users(self._wire)
        self.events = lists.Events(self._wire)
        self.checkpoints = lists.Checkpoints(self._wire)

    async def __aenter__(self) -> Client:
        await self._wire.connect()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._wire.close()

    async def health(self) -> Health:
        return await self._wire.ask(Health, "GET", "/readyz", also=503)

    async def chat(
        self, message: str, *, user: str | None = None, agent: str | None = None, conversation_id: str | None = None
    ) -> Reply:
        """Says something; the whole answer. It is never said twice: after Unreachable it may have been said."""
        body = {"message": message, "user": user, "agent": agent, "conversation_id": conversation_id}
        return await self._wire.ask(Reply, "POST", "/chat", body=body)

    async def stream(
        self, message: str, *, user: str | None = None, agent: str | None = None, conversation_id: str | None = None
    ) -> AsyncGenerator[Piece, None]:
        """Says something; the answer while it grows. A connection that breaks off is made again, and the rest follows.
        Who stops reading ends the answer."""
        body = {"message": message, "user": user, "agent": agent, "conversation_id": conversation_id, "stream": True}
        conversation, last, whole, cuts = "", "", "", 0
        while True:
            if not last:
                opened = self._wire.open("POST", "/chat", body=body, silence=SILENCE)
            else:
                opened = self._wire.open(
                    "GET",
                    f"/chat/{conversation}/events",
                    params={"rest": True, "user": user, "agent": agent},
                    headers={"Last-Event-ID": last},
                    silence=SILENCE,
                )
            try:
                async with opened as answer, aclosing(events(answer)) as happening:
                    conversation = answer.headers.get("X-Conversation-Id", conversation)
                    async for event in happening:
                        last = event.id or last
                        if event.name == "delta":
                            more, cuts = msgspec.json.decode(event.data, type=_Delta), 0
                            whole = more.text if more.replace else whole + more.text
                            yield Piece(more.text, whole, conversation, more.replace)
                        elif event.name == "done":
                            usage = msgspec.json.decode(event.data, type=_Done).usage
                            yield Piece("", whole, conversation, usage=usage)
                            return
                        elif event.name == "error":
                            failed = msgspec.json.decode(event.data, type=_Failed)
                            raise Refused(failed.status, failed.title)
            except Unreachable:
                if not last or cuts >= CUTS:
                    raise
            if not last or cuts >= CUTS:
                raise Unreachable("The answer broke off")
            await asyncio.sleep(pause(cuts))
            cuts += 1

    async def live(self, *kinds: str) -> AsyncGenerator[Happening, None]:
        """What happens in the tenant from now on, for ever: `message`, `event`, `memory`, `takeover`, or only `kinds`.
        A connection that breaks off is made again: `ready` says so."""
        cuts = 0
        while True:
            try:
                async with (
                    self._wire.open("GET", "/api/v1/live", params={"kind": kinds}, silence=SILENCE) as answer,
                    aclosing(events(answer)) as happening,
                ):
                    cuts = 0
                    yield Happening("ready", {})
                    async for event in happening:
                        if event.data:
                            data: dict[str, Any] = msgspec.json.decode(event.data)
                            yield Happening(event.name, data)
            except Unreachable:
                pass
            except Refused as refused:
                if refused.status < 500:
                    raise
            await asyncio.sleep(pause(cuts))
            cuts += 1
