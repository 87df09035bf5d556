"""The webhooks' door: a plain ASGI application, as it is the one route that every message takes.

whose turn it is → verify and parse → what concerns us → kept in the inbox → 200.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Any

import orjson

from config.tenants import Tenant
from gateway.adapters import line, telegram
from gateway.adapters.base import Receiver
from gateway.admission import Admission
from gateway.bot_ids import BotIds
from gateway.channel_states import ChannelStates, Trouble
from gateway.errors import InboxUnavailable, ReceiveFault
from gateway.http_limits import FOR_PROGRAMS, sent
from gateway.inbox.away import PutSoon
from gateway.intake import Intake, Wanted
from gateway.metrics import Metrics
from gateway.short_way import Answer, Headers

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

log = logging.getLogger(__name__)

LARGEST_BODY = 1024 * 1024
SLOWEST_BODY = 10.0  # seconds
_DESTINATION = re.compile(rb'"destination"\s*:\s*"(U[0-9a-f]{32})"')
NOWHERE = "Nothing can be kept just now"
RETRY_AFTER = 5  # seconds we ask a platform to wait when nothing can be kept
_SIGNED = {
    platform: (name.encode(), name)
    for platform, name in (("line", line.SIGNATURE_HEADER), ("telegram", telegram.SECRET_HEADER))
}
_READ = {b"content-length": "content-length", **dict(_SIGNED.values())}
_TAKEN = [(b"content-type", b"application/json"), (b"content-length", b"2")]  # no browser sees it: it was signed
_TAKEN_HEAD = b"HTTP/1.1 200 OK\r\n" + b"".join(b"%b: %b\r\n" % header for header in _TAKEN)


class Refused(Exception):
    """The request is not taken."""

    def __init__(self, status: int, title: str) -> None:
        super().__init__(title)
        self.status = status


class Webhooks:
    """`POST /webhooks/{platform}/{tenant}/{channel}`."""

    def __init__(
        self,
        *,
        tenant_of: Callable[[str], Tenant | None],
        receivers: Mapping[str, Receiver],
        intake: Intake,
        metrics: Metrics,
        bot_ids: BotIds,
        states: ChannelStates,
        put_soon: PutSoon | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Without `put_soon` every webhook waits for its own put."""
        self._tenant_of = tenant_of
        self._receivers = receivers
        self._intake = intake
        self._metrics = metrics
        self._bot_ids = bot_ids
        self._states = states
        self._put_soon = put_soon
        self._clock = clock
        self._admission = Admission()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        parts = scope["path"].strip("/").split("/")
        try:
            if len(parts) != 4 or parts[1] not in self._receivers:
                raise Refused(404, "No such webhook")
            if scope["method"] != "POST":
                raise Refused(405, "Webhooks are posted")
            await self._take(parts[1], parts[2], parts[3], scope, receive)
            await sent(send, {"type": "http.response.start", "status": 200, "headers": _TAKEN})
            await sent(send, {"type": "http.response.body", "body": b"{}"})
        except Refused as refused:
            platform = parts[1] if len(parts) > 1 and parts[1] in self._receivers else "unknown"
            self._metrics.webhooks_refused.labels(platform=platform, status=refused.status).inc()
            await _refuse(send, refused.status, str(refused))

    def at_once(self, url: bytes, headers: Headers, body: bytes, answer: Answer) -> bool:
        """Takes a webhook about which nothing is out of the ordinary, not its `url` either, and answers it when it is
        safely kept. False: nothing was done, it goes the way of all others."""
        if self._put_soon is None or len(body) > LARGEST_BODY:
            return False
        _, platform, tenant_id, channel = _parts(url)
        tenant = self._tenant_of(tenant_id)
        settings = tenant.channels.get(channel) if tenant else None
        if (
            tenant is None
            or settings is None
            or settings.platform != platform
            or not self._admission.at_once(tenant_id)
        ):
            return False
        receiver = self._receivers.get(platform)
        if receiver is None:
            return False
        raw, name = _SIGNED[platform]
        given = {name: headers[raw].decode("latin-1")} if raw in headers else {}
        try:
            received = receiver.receive(tenant, channel, body, given, self._clock())
        except ReceiveFault:
            return False
        if received.destination and not self._bot_ids.matches(tenant, channel, received.destination):
            return False
        if self._states.met_here(tenant_id, channel, Trouble.SWAPPED):
            return False
        wanted = self._intake.wanted(tenant, received)
        if wanted and not self._put_soon(wanted, partial(self._put, tenant, channel, wanted, answer)):
            return False
        self._admission.counted(tenant_id)  # only now: on the way of all others it is counted there
        if len(wanted) < len(received.messages) or received.passed_over:
            self._intake.passed_over(tenant, channel, received, wanted)
        if not wanted:
            answer(_TAKEN_HEAD, b"{}")
        return True

    def _put(
        self,
        tenant: Tenant,
        channel: str,
        wanted: Wanted,
        answer: Answer,
        outcome: Sequence[bool] | BaseException,
    ) -> None:
        if not isinstance(outcome, BaseException):
            self._intake.kept(tenant, channel, wanted, outcome)
            answer(_TAKEN_HEAD, b"{}")
            return
        status, title = 500, "Something went wrong"
        if isinstance(outcome, InboxUnavailable):
            log.error("message can't be kept: %s", outcome, extra={"tenant": tenant.id, "channel": channel})
            status, title = 503, NOWHERE
        else:
            log.error("message can't be kept: %s", type(outcome).__name__, extra={"tenant": tenant.id})
        platform = tenant.channels[channel].platform
        self._metrics.webhooks_refused.labels(platform=platform, status=status).inc()
        headers, said = _refusal(status, title)
        lines = b"".join(b"%b: %b\r\n" % header for header in headers)
        answer(f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode() + lines, said)

    async def _take(self, platform: str, tenant_id: str, channel: str, scope: Scope, receive: Receive) -> None:
        tenant = self._tenant_of(tenant_id)
        settings = tenant.channels.get(channel) if tenant else None
        if tenant is None or settings is None or settings.platform != platform:
            raise Refused(404, "No such webhook")
        await self._admission.admitted(tenant_id)
        headers = {_READ[name]: value.decode("latin-1") for name, value in scope["headers"] if name in _READ}
        body = await _body(headers, receive)
        try:
            received = self._receivers[platform].receive(tenant, channel, body, headers, self._clock())
        except ReceiveFault as fault:
            log.warning("webhook refused: %s", fault, extra={"tenant": tenant_id, "channel": channel})
            await self._suspect(tenant, channel, body)
            raise Refused(fault.status, str(fault)) from fault
        if received.destination and (why := await self._bot_ids.wrong(tenant, channel, received.destination)):
            await self._states.met(tenant.id, channel, Trouble.SWAPPED, why)
            raise Refused(403, "This is another channel's webhook")
        await self._states.well(tenant.id, channel, Trouble.SWAPPED)
        try:
            await self._intake.keep(tenant, channel, received)
        except InboxUnavailable as error:
            log.error("message can't be kept: %s", error, extra={"tenant": tenant.id, "channel": channel})
            raise Refused(503, NOWHERE) from error

    async def _suspect(self, tenant: Tenant, channel: str, body: bytes) -> None:
        """A webhook whose signature is wrong may well be another of our channels': its URL was pasted into the wrong
        console. Nobody vouches for such a body, so this only tells the operator."""
        found = _DESTINATION.search(body)
        owner = self._bot_ids.owner(found[1].decode()) if found else None
        if owner not in (None, f"{tenant.id}/{channel}"):
            why = f"webhooks of {owner} arrive here: its webhook URL is this channel's"
            await self._states.met(tenant.id, channel, Trouble.SWAPPED, why)


async def _body(headers: Mapping[str, str], receive: Receive) -> bytes:
    """The raw bytes. Raises Refused: 413 over 1 MiB (at once where the length is told), 408 for one too slow."""
    declared = headers.get("content-length", "")
    if declared.isdigit() and int(declared) > LARGEST_BODY:
        raise Refused(413, "The body is over 1 MiB")
    if not getattr(getattr(receive, "__self__", None), "more_body", True):  # the server has all of it
        return await _rest(receive)
    try:
        async with asyncio.timeout(SLOWEST_BODY):
            return await _rest(receive)
    except TimeoutError:
        raise Refused(408, "The body came too slowly") from None


async def _rest(receive: Receive) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise Refused(400, "The request was broken off")
        chunk = event.get("body", b"")
        size += len(chunk)
        if size > LARGEST_BODY:
            raise Refused(413, "The body is over 1 MiB")
        chunks.append(chunk)
        if not event.get("more_body"):
            return b"".join(chunks)


@lru_cache(4096)
def _parts(url: bytes) -> list[str]:
    return url.decode().strip("/").split("/")


async def _refuse(send: Send, status: int, title: str) -> None:
    headers, body = _refusal(status, title)
    await sent(send, {"type": "http.response.start", "status": status, "headers": headers})
    await sent(send, {"type": "http.response.body", "body": body})


def _refusal(status: int, title: str) -> tuple[list[tuple[bytes, bytes]], bytes]:
    body = orjson.dumps({"title": title, "status": status})
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(body)).encode()),
        *FOR_PROGRAMS,
    ]
    if status == 503:
        headers.append((b"retry-after", str(RETRY_AFTER).encode()))
    if status == 405:
        headers.append((b"allow", b"POST"))
    if status in (408, 413):
        headers.append((b"connection", b"close"))
    return headers, body
