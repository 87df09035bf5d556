"""Fetching what customers sent from the platforms' servers, within limits."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

import aiohttp

from config.settings import Settings
from config.tenants import Tenant
from gateway.adapters.line_sender import LineSender
from gateway.adapters.parsing import integer, string
from gateway.adapters.telegram_sender import TelegramSender
from gateway.errors import SendFault, SendRefused
from gateway.media import FAILED, GONE, TOO_LARGE, UNREADY, Content, MediaFault
from gateway.messages import InboundMessage

READY_AFTER = (0.5, 1.0, 2.0, 4.0, 8.0)  # seconds between looks at what LINE still prepares
_TIMEOUT = aiohttp.ClientTimeout(total=20, connect=5)
_CHUNK = 64 * 1024


class _Client:
    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def get(self, url: str, headers: dict[str, str], largest: int) -> tuple[int, Content]:
        """The status, and of a 200 the content. Raises MediaFault."""
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=_TIMEOUT)
        try:
            async with self._session.get(url, headers=headers, allow_redirects=False) as response:
                if response.status != 200:
                    return response.status, Content(b"", "")
                if (response.content_length or 0) > largest:
                    raise MediaFault(TOO_LARGE)
                data = bytearray()
                async for chunk in response.content.iter_chunked(_CHUNK):
                    data += chunk
                    if len(data) > largest:
                        raise MediaFault(TOO_LARGE)
                return 200, Content(bytes(data), response.content_type)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise MediaFault(FAILED) from error

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


class LineContent:
    """LINE's content endpoint. `sender` is not closed here."""

    def __init__(self, settings: Settings, sender: LineSender, ready_after: tuple[float, ...] = READY_AFTER) -> None:
        self._base = settings.line_data_api_base
        self._sender = sender
        self._ready_after = ready_after
        self._client = _Client()

    async def fetch(self, tenant: Tenant, message: InboundMessage, largest: int) -> Content:
        if message.message_id is None or "url" in message.extra:
            raise MediaFault(FAILED)  # what stands elsewhere on the web is not fetched for whoever names it
        try:
            token = await self._sender.token(tenant, message.channel)
        except SendFault as error:
            raise MediaFault(FAILED) from error
        url = f"{self._base.rstrip('/')}/v2/bot/message/{quote(message.message_id, safe='')}/content"
        headers = {"Authorization": f"Bearer {token}"}
        for wait in (*self._ready_after, None):
            status, content = await self._client.get(url, headers, largest)
            if status == 200:
                return content
            if status in (404, 410):
                raise MediaFault(GONE)
            if (status != 202 and status < 500 and status != 429) or wait is None:
                break
            await asyncio.sleep(wait)
        raise MediaFault(UNREADY if status == 202 else FAILED)

    async def close(self) -> None:
        await self._client.close()


class TelegramFiles:
    """Telegram's getFile, and the file behind it. `sender` is not closed here."""

    def __init__(self, settings: Settings, sender: TelegramSender) -> None:
        self._base = settings.telegram_api_base
        self._sender = sender
        self._client = _Client()

    async def fetch(self, tenant: Tenant, message: InboundMessage, largest: int) -> Content:
        file_id = string(message.extra, "file_id")
        if file_id is None:
            raise MediaFault(FAILED)
        try:
            found = await self._sender.call(tenant, message.channel, "getFile", {"file_id": file_id})
        except SendRefused as error:
            raise MediaFault(TOO_LARGE if "too big" in str(error).lower() else GONE) from error
        except SendFault as error:
            raise MediaFault(FAILED) from error
        path = string(found, "file_path") if isinstance(found, dict) else None
        if path is None or ".." in path:
            raise MediaFault(FAILED)
        if (integer(found, "file_size") or 0) > largest:
            raise MediaFault(TOO_LARGE)
        token = self._sender.token(tenant, message.channel)
        url = f"{self._base.rstrip('/')}/file/bot{token}/{quote(path)}"
        status, content = await self._client.get(url, {}, largest)
        if status != 200:
            raise MediaFault(GONE if status == 404 else FAILED)
        mime = string(message.extra, "mime_type") or content.mime
        return Content(content.data, mime)

    async def close(self) -> None:
        await self._client.close()
