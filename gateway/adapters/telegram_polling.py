"""Telegram without a public address: asks for updates in a long poll. Who polls a bot is the caller's affair: there
must be one at a time, for Telegram cuts off the older of two."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol

import aiohttp

from config.tenants import Tenant
from gateway.adapters.base import Handle
from gateway.adapters.parsing import integer
from gateway.adapters.telegram import UPDATES, TelegramReceiver
from gateway.adapters.telegram_outcome import Conflict
from gateway.adapters.telegram_sender import TelegramSender
from gateway.errors import ChannelBroken, InboxUnavailable, SendFault, SendRetry
from gateway.messages import InboundMessage

log = logging.getLogger(__name__)

LONG_POLL = 20  # seconds that Telegram waits for an update
BATCH = 100
_TIMEOUT = aiohttp.ClientTimeout(total=LONG_POLL + 15, connect=5)
_LONGEST_PAUSE = 60.0
_AT_ONCE = 1.0  # seconds; nothing new within them is no long poll, and asking again at once would go on for ever
_CONFLICTS = 3
# After a week without updates Telegram starts anew with any number, which may be a lower one.
_OFFSET_LIFE = 6 * 86_400


class OffsetStore(Protocol):
    """Keeps from where on a bot's updates are still to be fetched, for at most six days."""

    async def load(self, tenant: str, channel: str) -> int | None:
        """Raises InboxUnavailable."""
        ...

    async def save(self, tenant: str, channel: str, offset: int) -> None:
        """Raises InboxUnavailable."""
        ...


async def poll(
    tenant: Tenant,
    channel: str,
    sender: TelegramSender,
    handle: Handle,
    stop: asyncio.Event,
    *,
    offset_store: OffsetStore,
    receiver: TelegramReceiver | None = None,
    count: Callable[[Mapping[str, int]], None] = lambda _passed_over: None,
    rival: Callable[[str | None], Coroutine[Any, Any, None]] | None = None,
    clock: Callable[[], float] = time.time,
    pause: float = 1.0,
) -> None:
    """Hands on a bot's updates until `stop`. An update is confirmed to Telegram only once `handle` has returned, so one
    may come twice and none is lost. `count` is told of what was passed over, `rival` that somebody else polls the bot
    (why, and None once it is ours alone). `pause` is the first wait, in seconds, after a failure or an answer at once
    that confirmed nothing; it doubles each time.

    Raises ChannelBroken where waiting does not help: the token is refused, or a webhook is registered.
    """
    receiver = receiver or TelegramReceiver()
    offset: int | None = None
    loaded = False
    failures = conflicts = 0
    last = clock()
    now = asyncio.get_running_loop().time
    while not stop.is_set():
        try:
            if not loaded:
                offset, loaded = await offset_store.load(tenant.id, channel), True
            if clock() - last > _OFFSET_LIFE:
                offset = None
            arguments = {"timeout": LONG_POLL, "limit": BATCH, "allowed_updates": list(UPDATES)}
            if offset is not None:
                arguments["offset"] = offset
            asked, before = now(), offset
            updates = await _unless(stop, sender.call(tenant, channel, "getUpdates", arguments, _TIMEOUT))
            if isinstance(updates, list) and updates:
                await _hand_on(tenant, channel, updates, receiver, handle, count, clock())
                offset = _after(updates, offset)
                last = clock()
                if offset is not None:
                    await offset_store.save(tenant.id, channel, offset)
        except ChannelBroken:
            raise
        except Conflict as error:
            if "webhook" in str(error):
                raise ChannelBroken(
                    f"Telegram sends {tenant.id}/{channel} to a webhook, so it can't be polled: run "
                    "`chat-chat webhooks set`, which removes it for channels with mode: polling, or set mode: webhook."
                ) from None
            wait = min(pause * 2**failures, _LONGEST_PAUSE)
            conflicts += 1
            if rival is not None and conflicts >= _CONFLICTS:  # one of ours that is taken over has one
                await rival(
                    f"somebody else polls this bot too and gets a part of its messages: stop that one ({error})"
                )
        except (SendFault, InboxUnavailable) as error:
            told = error.retry_after if isinstance(error, SendRetry) else None
            wait = told or min(pause * 2**failures, _LONGEST_PAUSE)
            log.warning("polling waits %.1f s: %s", wait, error, extra={"tenant": tenant.id, "channel": channel})
        else:
            idle, at_once = offset == before, now() - asked < _AT_ONCE
            if idle and not at_once:  # a whole long poll that nobody cut short
                conflicts = 0
                if rival is not None:
                    await rival(None)
            if not (idle and at_once):
                failures = 0
                continue
            wait = min(pause * 2**failures, _LONGEST_PAUSE)
        failures = min(failures + 1, 10)
        await _unless(stop, asyncio.sleep(wait))


async def _hand_on(
    tenant: Tenant,
    channel: str,
    updates: list[Any],
    receiver: TelegramReceiver,
    handle: Handle,
    count: Callable[[Mapping[str, int]], None],
    now: float,
) -> None:
    messages: list[InboundMessage] = []
    for update in updates:
        received = receiver.read(tenant, channel, update, now)
        messages += received.messages
        if received.passed_over:
            count(received.passed_over)
    if messages:
        await handle(messages)


def _after(updates: list[Any], offset: int | None) -> int | None:
    """The number after the last update's. Updates without one can't be confirmed, and so come again."""
    ids = [number for update in updates if isinstance(update, dict) and (number := integer(update, "update_id"))]
    return max(ids) + 1 if ids else offset


async def _unless(stop: asyncio.Event, doing: Coroutine[Any, Any, Any]) -> Any:
    """What `doing` returns; None, with it cancelled, if `stop` comes first."""
    task = asyncio.ensure_future(doing)
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
        return await task if task.done() else None
    finally:
        for each in (task, stopped):
            each.cancel()
        await asyncio.gather(task, stopped, return_exceptions=True)
