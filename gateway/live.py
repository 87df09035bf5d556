"""What happens now in a tenant, told to whoever looks on: published in Redis, and kept nowhere."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any

import msgspec
import orjson
from redis.asyncio import Redis
from redis.exceptions import RedisError

from config.tenants import Tenant
from gateway.batch import AMENDS
from gateway.described import described
from gateway.hooks import Exchange
from gateway.inbox.base import event_of
from gateway.messages import RELAYED, InboundMessage, Kind
from memory import keys
from memory.keys import ConversationRef
from memory.models import Message
from memory.redis_client import in_company
from processors.models import MemoryEvent, iso

log = logging.getLogger(__name__)

TOGETHER = 0.1  # seconds in which what happens is gathered, and as many more to go along with what is asked anyway
UNHEARD = (
    0.5  # seconds in place of that, of what turns did, where nobody listened for HEARD_FOR: who begins to hears it
)
HEARD_FOR = 60.0  # seconds
WAITING = 1000  # events that wait for Redis; beyond that the oldest are not told
KINDS = ("message", "event", "memory", "takeover")

_Event = tuple[str, Mapping[str, Any]]  # kind and data

_TOLD_BY_THE_TURN = RELAYED | AMENDS | {Kind.FOLLOW, Kind.UNFOLLOW}


@lru_cache(4096)
def channel_key(tenant: str) -> str:
    return keys.shared("live", keys.check_tenant(tenant))


class Live:
    """A hook, and told of what comes in. Telling takes nothing of anybody's time: it is done behind, several events at
    once, and only where somebody listens."""

    def __init__(self, client: Redis) -> None:
        self._redis = client
        self._loop: asyncio.AbstractEventLoop | None = None
        # Of which tenant, and what gives kind and data of each event; its steps need no lock.
        self._waiting: deque[tuple[str, Callable[[], Iterable[_Event]]]] = deque(maxlen=WAITING)
        self._turns: deque[tuple[float, _Turn]] = deque(maxlen=WAITING)  # not to be told before that time of the loop
        self._gathering: asyncio.TimerHandle | None = None
        self._telling: asyncio.Task[None] | None = None
        self._awake = False  # whether what waits will be told without a call
        self._heard_at = float("-inf")  # when somebody listened last, by the loop

    def arrived(self, tenant: Tenant, message: InboundMessage) -> None:
        """A person's message is in the inbox. What only the turn can tell is told with its end: what a command did, a
        correction."""
        by_the_turn = message.kind in _TOLD_BY_THE_TURN or message.text.startswith("/")
        if not by_the_turn and not (tenant.staff and tenant.is_staff_chat(message.channel, message.chat_id)):
            self._waiting.append((tenant.id, partial(_arrival, message)))
            if not self._awake:
                self._wake()

    async def after(self, exchange: Exchange) -> None:
        changed = exchange.state and (exchange.state == "human") != (exchange.session.state == "human")
        turn = _Turn(
            exchange.ref,
            exchange.channel,
            exchange.said,
            exchange.event,
            exchange.state if changed else "",
            exchange.now,
        )
        # Behind what it answers, which another process gathers for as long: an instant answer stood before it.
        self._turns.append((asyncio.get_running_loop().time() + 2 * TOGETHER, turn))
        if not self._awake:
            self._wake()

    def remembered(self, tenant: str, user: str) -> None:
        """What is known of a person ("": of the tenant itself) changed. From any thread."""
        if (loop := self._loop) is not None:
            self._waiting.append((tenant, partial(_one, "memory", {"user_id": user})))
            if not self._awake:  # nearly always it is: something was said
                loop.call_soon_threadsafe(self._wake)

    def tell(self, tenant: str, kind: str, data: Mapping[str, Any]) -> None:
        self._tell_later(tenant, partial(_one, kind, data))

    def _tell_later(self, tenant: str, what: Callable[[], Iterable[_Event]]) -> None:
        self._waiting.append((tenant, what))
        self._wake()

    def begin(self) -> None:
        """From the loop that tells: only then anything from other threads is told."""
        self._loop = asyncio.get_running_loop()

    async def close(self) -> None:
        self._loop = None
        if self._gathering is not None:
            self._gathering.cancel()
            self._tell_now()
        if self._telling is not None:
            await asyncio.wait({self._telling}, timeout=1.0)
            self._telling.cancel()
            await asyncio.gather(self._telling, return_exceptions=True)

    def _wake(self) -> None:
        if not self._awake:
            self._awake = True
            # Not a task that sleeps: on a process that has little to do this comes with every sixth message.
            self._gathering = asyncio.get_running_loop().call_later(TOGETHER, self._tell_now)

    def _tell_now(self) -> None:
        self._gathering = None
        self._telling = asyncio.create_task(self._tell())

    async def _tell(self) -> None:
        try:
            await self._tell_all()
        finally:
            self._awake = False
        if self._waiting:  # put there by a thread that saw it awake
            self._wake()

    async def _tell_all(self) -> None:
        now = asyncio.get_running_loop().time
        while True:
            while self._turns and self._turns[0][0] <= now():
                turn = self._turns.popleft()[1]
                self._waiting.append((turn.ref.tenant, turn.events))
            if self._waiting:
                await self._tell_waiting()
            if not self._waiting and not self._turns:
                return
            # What comes in is told by another process, and first: turns' own news may be later, never earlier.
            heard = not self._turns or now() - self._heard_at <= HEARD_FOR
            await asyncio.sleep(TOGETHER if heard else UNHEARD)

    async def _tell_waiting(self) -> None:
        await in_company(self._redis, TOGETHER)
        some = [self._waiting.popleft() for _ in range(len(self._waiting))]
        together: dict[str, list[bytes]] = {}
        try:
            tenants = {tenant for tenant, _ in some}
            heard = await self._redis.pubsub_numsub(*map(channel_key, tenants))
            listening = {_text(channel) for channel, listeners in heard if listeners}
            if listening:
                self._heard_at = asyncio.get_running_loop().time()
            for tenant, what in some if listening else ():
                if (channel := channel_key(tenant)) in listening:
                    together.setdefault(channel, []).extend(_written(what))
            for channel, events in together.items():
                if not events:
                    continue
                await self._redis.publish(channel, b"[" + b",".join(events) + b"]")
        except (RedisError, OSError) as error:
            log.debug("nobody is told what happens now: %s", type(error).__name__)


def _written(what: Callable[[], Iterable[_Event]]) -> list[bytes]:
    try:
        return [orjson.dumps({"kind": kind, "data": data}) for kind, data in what()]
    except Exception as error:  # noqa: BLE001 - one that can't be told (a lone surrogate) takes along nobody else's
        log.warning("something that happened can't be told: %s", type(error).__name__)
        return []


class _Turn(msgspec.Struct):
    """What a turn did, as far as it is told."""

    ref: ConversationRef
    channel: str
    said: Sequence[Message]
    event: MemoryEvent | None
    state: str  # the session's, where that is another one than before
    now: datetime

    def events(self) -> Iterator[_Event]:
        ref = self.ref
        where = {
            "user_id": ref.user,
            "agent": ref.agent,
            "conversation_id": ref.conversation,
            "channel": self.channel,
        }
        for line in self.said:
            if line["message"] and not _told_before(line):
                by = "staff" if (line.get("metadata") or {}).get("by") == "staff" else line["role"]
                told = {"role": by, "message": line["message"], "message_id": line.get("message_id")}
                yield "message", where | told | {"timestamp": line.get("timestamp")}
        if (event := self.event) is not None:
            about = {
                "event_id": event.event_id,
                "event_type": event.event_type.value,
                "importance_score": event.importance_score,
                "timestamp": iso(event.timestamp),
            }
            yield "event", where | about
        if self.state:
            yield "takeover", where | {"by": "human" if self.state == "human" else "bot", "timestamp": iso(self.now)}


def _one(kind: str, data: Mapping[str, Any]) -> Iterator[_Event]:
    yield kind, data


def _arrival(message: InboundMessage) -> Iterator[_Event]:
    yield "message", _said(message)


def _said(message: InboundMessage) -> dict[str, Any]:
    return {
        "user_id": message.user_id,
        "agent": message.agent,
        "conversation_id": message.conversation_id,
        "channel": message.channel,
        "role": "user",
        "message": described(message),
        "message_id": event_of(message),
        "timestamp": iso(datetime.fromtimestamp(message.received_at, UTC)),
    }


def _told_before(line: Message) -> bool:
    """When it arrived. A recording is told of again, now that its words are known."""
    from gateway.media import FILE  # loaded in workers anyway; the HTTP side does without

    changed = {"edited", FILE} & (line.get("metadata") or {}).keys()
    return line["role"] == "user" and not changed and not line["message"].startswith("/")


def _text(channel: Any) -> str:
    return channel.decode() if isinstance(channel, bytes) else str(channel)
