"""The web, sending: an answer goes into its conversation's log, from which the HTTP side shows it."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence

import msgspec
from redis.exceptions import RedisError

from config.tenants import Tenant
from gateway.adapters.base import Call, Sent
from gateway.errors import SendRetry
from gateway.media import GONE, Content, MediaFault
from gateway.messages import Answer, InboundMessage, Target
from gateway.web_log import STREAMED, Entry, WebLog

log = logging.getLogger(__name__)

CLOSED_WITHIN = 0.2  # seconds
LOOK_EVERY = 1.0  # seconds between looks whether the client is still there, while the model says nothing


class WebSender:
    """`chat_id` of a target is the conversation's name, `reply_token` the request that waits for the answer."""

    platform = "web"

    def __init__(self, where: WebLog) -> None:
        self._log = where

    def plan(self, tenant: Tenant, target: Target, answer: Answer, now: float) -> Sequence[Call]:
        """One call, also for an answer without words: somebody waits for it."""
        answers = (*answer.before, answer)
        request = target.reply_token or ""
        if not request and not any(one.text.strip() or one.media for one in answers):
            return []
        entry = Entry(
            kind="error" if answer.status else "done" if request else "told",
            request=request,
            text="\n\n".join(one.text for one in answers if one.text.strip()),
            status=answer.status,
            model=answer.model,
            provider=answer.provider,
            tokens=answer.tokens,
            quick_replies=answer.quick_replies,
            media=tuple(one for each in answers for one in each.media),
        )
        return [Call("show", msgspec.to_builtins(entry))]

    async def send(self, tenant: Tenant, target: Target, call: Call) -> Sent:
        """Again without harm: a client takes the first answer to its request and no other."""
        try:
            await self._log.add(target.chat_id, msgspec.convert(call.body, Entry))
        except (RedisError, OSError) as error:
            raise SendRetry(f"the answer can't be shown: {type(error).__name__}") from error
        return Sent()

    def instead(self, tenant: Tenant, target: Target, call: Call, error: Exception) -> Call | None:
        return None

    def watch(self, tenant: Tenant, target: Target) -> WebWatch | None:
        request = target.reply_token or ""
        return WebWatch(self._log, target.chat_id, request) if request.startswith(STREAMED) else None

    async def typing(self, tenant: Tenant, target: Target) -> None:
        return None

    async def acknowledge(self, tenant: Tenant, message: InboundMessage) -> None:
        return None

    async def close(self) -> None:
        return None


class WebWatch:
    """Sends on what there is as soon as the last piece is away: the first word at once, and never more pieces than the
    client's way takes."""

    def __init__(self, where: WebLog, name: str, request: str) -> None:
        self.gone = asyncio.Event()
        self._log = where
        self._name = name
        self._request = request
        self._id = secrets.token_hex(4)
        self._said: Callable[[], str] = str
        self._shown = ""
        self._over = False
        self._more = asyncio.Event()
        self._showing = asyncio.create_task(self._show())

    def grew(self, said: Callable[[], str]) -> None:
        if self._over:
            return
        self._said = said
        self._more.set()

    async def close(self) -> None:
        # A piece on its way is let through: a call to Redis that is broken off takes its connection along.
        self._over = True
        self._more.set()
        await asyncio.wait({self._showing}, timeout=CLOSED_WITHIN)
        self._showing.cancel()
        await asyncio.gather(self._showing, return_exceptions=True)
        self._said = str  # which holds whoever it grows for, and they this one: nobody had to let go of the turn

    async def _show(self) -> None:
        while not (self.gone.is_set() or self._over):
            try:
                async with asyncio.timeout(LOOK_EVERY):
                    await self._more.wait()
            except TimeoutError:
                pass
            self._more.clear()
            if self._over:
                return
            try:
                if await self._step():
                    self.gone.set()
            except (RedisError, OSError) as error:  # the answer itself comes all the same
                log.debug("an answer is not shown while it grows: %s", type(error).__name__)
                await asyncio.sleep(LOOK_EVERY)

    async def _step(self) -> bool:
        text, shown = self._said(), self._shown
        if not text or text == shown:
            return await self._log.gone(self._name, self._request)
        anew = not text.startswith(shown)
        more = text if anew else text[len(shown) :]
        entry = Entry("delta", self._request, more, anew, self._id)
        self._shown = text
        return await self._log.add(self._name, entry)


class WebUploads:
    """What visitors send besides words is kept before their message is: there is nothing to fetch."""

    async def fetch(self, tenant: Tenant, message: InboundMessage, largest: int) -> Content:
        raise MediaFault(GONE)

    async def close(self) -> None:
        return None
