"""What is wrong with a channel just now, as the workers met it: seen by the API and the doctor, gone by itself when it
stops happening."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import msgspec
from redis.asyncio import Redis
from redis.exceptions import RedisError

from memory import keys

log = logging.getLogger(__name__)


class Trouble(StrEnum):
    BROKEN = "broken"  # its token is refused: nothing goes out, its messages wait
    SWAPPED = "swapped"  # another bot's webhooks arrive here: they are refused
    CUT_OFF = "cut_off"  # our own delivery through the public address does not arrive
    WEBHOOK = "webhook"  # the platform has no webhook of ours
    RIVAL = "rival"  # somebody else polls the bot, and gets a part of its messages
    QUOTA = "quota"  # LINE's monthly quota is used up: replies by token go on, pushes don't
    NEARLY = "quota_nearly"  # four fifths of it are


# Seconds; renewed at each try. A probe comes every 300.
_KEPT_FOR = {
    Trouble.BROKEN: 660,
    Trouble.SWAPPED: 3600,
    Trouble.CUT_OFF: 660,
    Trouble.WEBHOOK: 660,
    Trouble.RIVAL: 300,
    Trouble.QUOTA: 2 * 3600,
    Trouble.NEARLY: 660,
}
_TRY_AGAIN = 3600.0  # seconds before a push is tried again: the limit may be reached early, while a broadcast reserves


class Note(msgspec.Struct, frozen=True):
    why: str
    since: float  # seconds since 1970


_decode = msgspec.json.Decoder(Note).decode


@dataclass(frozen=True, slots=True)
class ChannelState:
    trouble: Trouble
    why: str
    since: float


class ChannelStates:
    """Telling Redis is best effort: a send never fails because of it."""

    def __init__(self, client: Redis) -> None:
        self._redis = client
        self._known: dict[tuple[str, str, Trouble], float] = {}  # met by this process, when (monotonic)

    async def met(self, tenant: str, channel: str, trouble: Trouble, why: str) -> None:
        """Tells the operator, in the log once and in the API as long as it lasts."""
        name = (tenant, channel, trouble)
        if name not in self._known:
            log.error("channel %s: %s", trouble.value, why, extra={"tenant": tenant, "channel": channel})
        self._known[name] = time.monotonic()
        note = Note(why[:300], time.time())
        try:
            key = keys.shared("state", tenant, channel, trouble)
            if not await self._redis.set(key, msgspec.json.encode(note), nx=True, ex=_KEPT_FOR[trouble]):
                await self._redis.expire(key, _KEPT_FOR[trouble])
        except (RedisError, OSError) as error:
            log.debug("a channel's state is not told: %s", type(error).__name__)

    def met_here(self, tenant: str, channel: str, trouble: Trouble) -> bool:
        """Whether this process met it and nothing went well since."""
        return (tenant, channel, trouble) in self._known

    async def well(self, tenant: str, channel: str, trouble: Trouble) -> None:
        """It works again. Costs nothing where this process never met the trouble."""
        if self._known.pop((tenant, channel, trouble), None) is None:
            return
        log.info("channel well again", extra={"tenant": tenant, "channel": channel})
        try:
            await self._redis.delete(keys.shared("state", tenant, channel, trouble))
        except (RedisError, OSError) as error:
            log.debug("a channel's state is not told: %s", type(error).__name__)

    async def probed(
        self, tenant: str, channel: str, looked_for: Sequence[Trouble], found: Mapping[Trouble, str]
    ) -> None:
        """What a probe found, and no more: of what it looked for, the rest is over, whoever met it."""
        for trouble, why in found.items():
            await self.met(tenant, channel, trouble, why)
        over = [trouble for trouble in looked_for if trouble not in found]
        for trouble in over:
            await self.well(tenant, channel, trouble)
        if over:
            await self._redis.delete(*(keys.shared("state", tenant, channel, trouble) for trouble in over))

    def no_push(self, tenant: str, channel: str) -> bool:
        """Whether a push was refused for the month's quota less than an hour ago."""
        met = self._known.get((tenant, channel, Trouble.QUOTA))
        return met is not None and time.monotonic() - met < _TRY_AGAIN

    async def of(self, channels: Iterable[tuple[str, str]]) -> dict[tuple[str, str], ChannelState]:
        """The troubled ones among (tenant, channel) pairs; none where Redis can't tell."""
        asked = [(tenant, channel, trouble) for tenant, channel in channels for trouble in Trouble]
        if not asked:
            return {}
        try:
            found = await self._redis.mget([keys.shared("state", *one) for one in asked])
        except (RedisError, OSError):
            return {}
        states: dict[tuple[str, str], ChannelState] = {}
        for (tenant, channel, trouble), raw in zip(asked, found, strict=True):
            if raw and (tenant, channel) not in states:
                note = _decode(raw)
                states[tenant, channel] = ChannelState(trouble, note.why, note.since)
        return states
