"""An answer that grows before the customer's eyes in a private Telegram chat, as drafts.

A draft is a preview of thirty seconds that the next message takes away: nothing of it stays in the chat. So it may be
left out whenever it could be in the way of something, and whatever goes wrong with it ends it for that turn in silence.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from gateway.errors import ChannelBroken, InboxUnavailable, SendFault, SendRefused, SendRetry
from gateway.messages import Target
from gateway.pacing import Limit, limits_beside
from gateway.rendering import TelegramPiece, render_telegram
from gateway.rendering.growing import so_far
from gateway.soon import Soon, Waiting

MayPass = Callable[[Sequence[Limit]], Awaitable[bool]]
Show = Callable[[dict[str, Any]], Awaitable[Any]]

LONGEST = 5000  # characters that are rendered; of a long answer its beginning is shown, which is read first


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds."""

    first_after: float = 0.3  # a whole answer may be there before a draft could be read
    every: float = 1.0
    again: float = 0.25  # when there was no room for it
    anew: float = 20.0  # a draft that is not changed is gone after thirty
    in_flight: float = 0.25  # an answer waits for a draft on its way, which must not come after it
    refused: float = 3600.0  # a bot whose drafts are refused is left alone for


class Drafts:
    """What is known of the bots of a process. `may_pass` is the inbox's: a draft never takes the room of an answer."""

    def __init__(self, may_pass: MayPass, clock: Callable[[], float] = time.monotonic, times: Times = Times()) -> None:
        self.may_pass = may_pass
        self.times = times
        self._clock = clock
        self._never: set[str] = set()  # tokens of bots whose server knows no drafts
        self._quiet: dict[str, float] = {}  # token → until when
        self._shown: set[str] = set()  # tokens of bots that had a draft taken
        self.soon = Soon()

    def watch(self, token: str, target: Target, show: Show) -> Draft | None:
        """`show` makes the call. None: this bot's drafts are not wanted now."""
        if token in self._never or self._quiet.get(token, 0.0) > self._clock():
            return None
        return Draft(self, token, target, show)

    def taken(self, token: str) -> None:
        self._shown.add(token)

    def refused(self, token: str, error: SendFault) -> None:
        if isinstance(error, ChannelBroken):
            self._never.add(token)
        elif isinstance(error, SendRetry) and error.retry_after is not None:
            self._quiet[token] = self._clock() + error.retry_after
        elif isinstance(error, SendRefused) and token not in self._shown:
            self._quiet[token] = self._clock() + self.times.refused


class Draft:
    """A Watch over one turn."""

    def __init__(self, drafts: Drafts, token: str, target: Target, show: Show) -> None:
        self.gone = None  # a chat does not end
        self._drafts = drafts
        self._times = drafts.times
        self._token = token
        self._target = target
        self._show = show
        self._said: Callable[[], str] = str
        self._news: asyncio.Event | None = None  # once it is shown
        self._begins: Waiting | None = None
        self._showing: asyncio.Task[None] | None = None
        self._flying = False
        self._over = False

    def grew(self, said: Callable[[], str]) -> None:
        if self._over:
            return
        self._said = said
        if self._news is not None:
            self._news.set()
        elif self._begins is None:
            self._begins = self._drafts.soon.call_later(self._times.first_after, self._begin)

    def _begin(self) -> None:
        self._news = asyncio.Event()
        self._showing = asyncio.create_task(self._show_all(self._news))

    async def close(self) -> None:
        self._over = True
        if self._begins is not None:
            self._begins.cancel()
        # What gives the text holds whoever it grows for, as the task does: else all of it would stay, with the turn's
        # question and history, until somebody collects it.
        self._said, self._begins = str, None
        showing, self._showing = self._showing, None
        if showing is None:
            return
        if self._flying:
            await asyncio.wait({showing}, timeout=self._times.in_flight)
        showing.cancel()
        await asyncio.wait({showing})

    async def _show_all(self, news: asyncio.Event) -> None:
        target = self._target
        self._limits = limits_beside(target)
        self._place: dict[str, Any] = {"chat_id": target.chat_id, "draft_id": 1 + secrets.randbelow(2**31 - 1)}
        if target.thread_id is not None:
            self._place["message_thread_id"] = int(target.thread_id)
        shown, at = "", 0.0
        while not self._over:
            news.clear()
            pieces = render_telegram(so_far(self._said()[:LONGEST]))
            old = time.monotonic() - at > self._times.anew
            if not pieces or (pieces[0].text == shown and not old):
                await self._more(news)
            elif not await self._may_pass():
                await asyncio.sleep(self._times.again)
            elif not self._over:
                if not await self._draft(pieces[0]):
                    return
                shown, at = pieces[0].text, time.monotonic()
                await asyncio.sleep(self._times.every)

    async def _more(self, news: asyncio.Event) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._times.anew):
                await news.wait()

    async def _may_pass(self) -> bool:
        try:
            return await self._drafts.may_pass(self._limits)
        except InboxUnavailable:
            return False

    async def _draft(self, piece: TelegramPiece) -> bool:
        """False: no more is to be tried."""
        body = {**self._place, "text": piece.text}
        if piece.entities:
            body["entities"] = piece.entities
        self._flying = True
        try:
            await self._show(body)
        except SendFault as error:
            self._drafts.refused(self._token, error)
            return False
        finally:
            self._flying = False
        self._drafts.taken(self._token)
        return True
