"""The seam to a platform, in two halves: what comes in (no SDK, cheap to import, runs in `serve`) and what goes out
(the platform's SDK, runs in the worker)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from config.tenants import Tenant
from gateway.messages import Answer, InboundMessage, Target


class Received(msgspec.Struct, frozen=True):
    """What one verified webhook body held."""

    messages: tuple[InboundMessage, ...]
    passed_over: Mapping[str, int] = {}  # kind -> count, of what we don't handle
    destination: str | None = None  # LINE: the bot's own user id


class Receiver(Protocol):
    """Verifies and parses in one call."""

    platform: str

    def receive(self, tenant: Tenant, channel: str, body: bytes, headers: Mapping[str, str], now: float) -> Received:
        """`headers` have lower-case names; `now` in seconds since 1970.

        Raises BadSignature or NotJson. JSON that makes no sense gives no messages and a count.
        """
        ...


class Call(msgspec.Struct, frozen=True):
    """One call to a platform, ready to be made and made again: JSON in, JSON out of the outbox.

    `method` is the adapter's own word (LINE: `reply`, `push`; Telegram: `sendMessage`), `body` its arguments.
    `key` is a UUID for platforms that take a retry key: repeating the call with it is safe.
    """

    method: str
    body: dict[str, Any]
    key: str | None = None


class Sent(msgspec.Struct, frozen=True):
    """The platform took a call."""

    message_ids: tuple[str, ...] = ()
    repeated: bool = False  # the platform had it already (LINE 409)


class Watch(Protocol):
    """Somebody sees an answer while it grows. What they see of it is a help, never the delivery: the answer itself goes
    by `plan` and `send` when it is whole."""

    @property
    def gone(self) -> asyncio.Event | None:
        """They look no more and want no more: the model's call ends, what was said so far is the answer. None: they
        never do."""
        ...

    def grew(self, said: Callable[[], str]) -> None:
        """There is more, or it begins anew. `said` gives the whole text as it is when it is called, Markdown that may
        end in the middle of anything: nothing is made of what nobody is shown. Never raises, never waits: a watch
        shows what it can, when it can."""
        ...

    async def close(self) -> None:
        """The answer is whole, or there will be none; nothing is shown after it. Never raises."""
        ...


class Sender(Protocol):
    """The sending side of one platform, shared by all tenants of a process."""

    platform: str

    def plan(self, tenant: Tenant, target: Target, answer: Answer, now: float) -> Sequence[Call]:
        """The calls that deliver an answer, in order, rendered and split within the platform's limits. Pure: the same
        arguments give the same calls, but for fresh retry keys. An answer with no visible text gives none."""
        ...

    async def send(self, tenant: Tenant, target: Target, call: Call) -> Sent:
        """Makes one call. Raises SendFault, with what to do about it; never anything of the SDK's."""
        ...

    def instead(self, tenant: Tenant, target: Target, call: Call, error: Exception) -> Call | None:
        """Another way to deliver the same text after `error` where there is one that can't double it: LINE's push after
        a token that was never used, Telegram's plain text after "can't parse entities". None: there is none."""
        ...

    def watch(self, tenant: Tenant, target: Target) -> Watch | None:
        """Shows an answer of the model's while it grows. None: nobody could see it, so it is not streamed."""
        ...

    async def typing(self, tenant: Tenant, target: Target) -> None:
        """Shows that the bot is thinking. Never raises, never waits long."""
        ...

    async def acknowledge(self, tenant: Tenant, message: InboundMessage) -> None:
        """Tells the platform at once that a pressed button was heard, where it wants to know. Never raises."""
        ...

    async def close(self) -> None: ...


Handle = Callable[[Sequence[InboundMessage]], Awaitable[None]]
