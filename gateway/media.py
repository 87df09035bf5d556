"""What customers send besides words: fetched from the platform within limits, kept, shown or read out to models."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import msgspec

from config.tenants import Agent, Tenant
from gateway.inbox.base import event_of
from gateway.media_types import suffix_of, type_of
from gateway.messages import InboundMessage, Kind
from memory.errors import MemoryFault
from memory.keys import ConversationRef
from memory.media import MediaFiles
from processors.hearing import Hearing
from processors.llm import Access
from processors.pii import masked

log = logging.getLogger(__name__)

KINDS = frozenset((Kind.IMAGE, Kind.VIDEO, Kind.AUDIO, Kind.FILE))
LARGEST = {Kind.IMAGE: 10_000_000}  # bytes
LARGEST_OTHER = 20_000_000
PATIENCE = 20.0  # seconds for everything that a turn's messages bring
MOST_SHOWN, LARGEST_SHOWN = 4, 5_000_000  # images, and bytes of each, that a model is shown at once

# In a message's `extra`:
FILE = "media"  # the name of the file in which it is kept
UNREAD = "unread"  # why it could not be fetched: one of the reasons below
TOO_LARGE, GONE, UNREADY, NOT_TAKEN, FAILED = "too large", "gone", "not ready", "of a type that is not taken", "failed"


class MediaFault(Exception):
    """It can't be had; `reason` says why in one of the words above."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Content:
    data: bytes
    mime: str  # as the platform says


class Fetcher(Protocol):
    """One platform's way to what was sent."""

    async def fetch(self, tenant: Tenant, message: InboundMessage, largest: int) -> Content:
        """The content, at most `largest` bytes. Raises MediaFault."""
        ...

    async def close(self) -> None: ...


class Media:
    """`fetchers` by platform. Never raises for what can't be had: the message then says so."""

    def __init__(self, fetchers: Mapping[str, Fetcher], files: MediaFiles, hearing: Hearing) -> None:
        self._fetchers = fetchers
        self._files = files
        self._hearing = hearing

    async def attach(
        self, tenant: Tenant, agent: Agent, ref: ConversationRef, messages: Sequence[InboundMessage], access: Access
    ) -> list[InboundMessage]:
        """The messages with what they bring kept on disk, and a recording's words as its text. What an earlier try
        fetched is not fetched again."""
        return list(await asyncio.gather(*(self._attach(tenant, agent, ref, one, access) for one in messages)))

    async def shown(self, ref: ConversationRef, messages: Sequence[InboundMessage]) -> list[str]:
        """The images among them as data URIs, for a model that can see."""
        images: list[str] = []
        for message in messages:
            if message.kind is Kind.IMAGE and FILE in message.extra and len(images) < MOST_SHOWN:
                found = await self._files.find(ref.tenant, ref.user, event_of(message))
                if found is not None and (uri := await self._data_uri(ref.tenant, found[0])):
                    images.append(uri)
        return images

    async def _attach(
        self, tenant: Tenant, agent: Agent, ref: ConversationRef, message: InboundMessage, access: Access
    ) -> InboundMessage:
        fetcher = self._fetchers.get(message.platform)
        if message.kind not in KINDS or fetcher is None:
            return message
        try:
            async with asyncio.timeout(PATIENCE):
                path, words = await self._had(tenant, ref, message, fetcher)
                if message.kind is Kind.AUDIO and words is None and agent.hearing:
                    words = await self._heard(tenant, path, agent.hearing, access)
        except (MediaFault, TimeoutError) as error:
            reason = error.reason if isinstance(error, MediaFault) else UNREADY
            log.info("media not fetched: %s", reason, extra={"tenant": tenant.id, "channel": message.channel})
            return _with(message, {UNREAD: reason})
        except MemoryFault as error:
            log.error("media not kept: %s", error, extra={"tenant": tenant.id})
            return _with(message, {UNREAD: FAILED})
        return _with(message, {FILE: path.name}, words)

    async def _had(
        self, tenant: Tenant, ref: ConversationRef, message: InboundMessage, fetcher: Fetcher
    ) -> tuple[Path, str | None]:
        name = event_of(message)
        if (found := await self._files.find(ref.tenant, ref.user, name)) is not None:
            return found
        largest = LARGEST.get(message.kind, LARGEST_OTHER)
        size = message.extra.get("file_size")
        if isinstance(size, int) and size > largest:
            raise MediaFault(TOO_LARGE)
        content = await fetcher.fetch(tenant, message, largest)
        mime = type_of(message.kind, content.data, content.mime, str(message.extra.get("file_name", "")))
        if mime is None:
            raise MediaFault(NOT_TAKEN)
        return await self._files.save(ref.tenant, ref.user, name, suffix_of(mime), content.data), None

    async def _heard(self, tenant: Tenant, path: Path, model: str, access: Access) -> str | None:
        data = await self._files.read(tenant.id, path)
        words = await self._hearing.words(data, path.suffix.lstrip("."), model, access)
        if words:  # this turn still knows them as they were said
            await self._files.save_words(tenant.id, path, masked(words, tenant.privacy.mask))
        return words

    async def _data_uri(self, tenant: str, path: Path) -> str | None:
        """None for one that can't be read, or is larger than a model is shown."""
        try:
            data = await self._files.read(tenant, path)
        except MemoryFault:
            return None
        mime = type_of(Kind.IMAGE, data, "", "")
        if mime is None or len(data) > LARGEST_SHOWN:
            return None
        return f"data:{mime};base64,{base64.b64encode(data).decode()}"


def _with(message: InboundMessage, more: Mapping[str, Any], words: str | None = None) -> InboundMessage:
    extra = {**message.extra, **more}
    return msgspec.structs.replace(message, extra=extra, text=message.text or words or "")
