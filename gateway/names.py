"""What people call themselves on their platform, kept for the shop to see; learned after the customer has an answer."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from redis.asyncio import Redis
from redis.exceptions import RedisError

from config.tenants import Tenant
from gateway.errors import SendFault
from gateway.messages import RELAYED
from gateway.moment import Moment
from memory import keys
from memory.errors import MemoryFault
from memory.memory_manager import MemoryManager
from memory.person import clean_name

log = logging.getLogger(__name__)

ASKED_EVERY = 7 * 86_400  # seconds: LINE tells a name only when asked
AGAIN_AFTER = 3600  # seconds, when it could not tell
_AT_ONCE = 4  # questions to LINE
_PATIENCE = 5.0  # seconds for one
_KNOWN = 10_000  # persons whose name this worker has seen

Profile = Callable[[Tenant, str, str], Awaitable[str | None]]  # tenant, channel, LINE's user id: the name


class Names:
    """Best effort: a name that can't be learned now is learned another time. `profile` asks LINE."""

    def __init__(self, manager: MemoryManager, client: Redis | None, profile: Profile | None) -> None:
        self._manager = manager
        self._redis = client
        self._profile = profile
        self._known: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._asking = asyncio.Semaphore(_AT_ONCE)
        self._later: set[asyncio.Task[None]] = set()

    def after(self, moment: Moment) -> None:
        """The turn of a single person is done; nobody waits for this."""
        message = moment.last
        if message.group or message.kind in RELAYED:
            return
        known = self._known.get((message.tenant, message.user_id))
        if message.sender_name:
            if known == message.sender_name:  # nearly always: what is kept is clean
                return
            name = clean_name(message.sender_name)
            if name and known != name:
                self._soon(self._keep(moment, name))
        elif message.platform == "line" and known is None and self._redis is not None and self._profile is not None:
            self._soon(self._ask(moment, self._redis, self._profile))

    async def close(self) -> None:
        await asyncio.gather(*self._later)

    async def _ask(self, moment: Moment, client: Redis, profile: Profile) -> None:
        message, mark = moment.last, _mark(moment.last.tenant, moment.last.user_id)
        try:
            if await self._manager.longterm.load(message.tenant, moment.ref.user) is None:
                return  # of somebody who only said hello nothing is kept, no name either
            if not await client.set(mark, 1, nx=True, ex=ASKED_EVERY):
                self._note(moment, "")
                return
            async with self._asking, asyncio.timeout(_PATIENCE):
                name = clean_name(await profile(moment.tenant, message.channel, message.chat_id))
            if name:
                await self._keep(moment, name)
                return
        except (SendFault, TimeoutError, MemoryFault) as error:
            log.debug("a name is not known: %s", type(error).__name__)
        except (RedisError, OSError) as error:
            log.debug("a name is not asked for: %s", type(error).__name__)
            return
        try:
            await client.expire(mark, AGAIN_AFTER)
        except (RedisError, OSError) as error:
            log.debug("a name is asked for in a week: %s", type(error).__name__)

    async def _keep(self, moment: Moment, name: str) -> None:
        message, user = moment.last, moment.ref.user
        try:
            memory = await self._manager.longterm.load(message.tenant, user)
            if memory is None:
                return
            if memory.person is not None and memory.person.display_name == name:  # it came with what was kept
                self._note(moment, name)
                return
            await self._manager.knowledge.named(message.tenant, user, name, moment.now, own=user == message.user_id)
        except MemoryFault as error:
            log.warning("a name is not kept: %s", error)
            return
        self._note(moment, name)

    def _note(self, moment: Moment, name: str) -> None:
        self._known[moment.last.tenant, moment.last.user_id] = name
        while len(self._known) > _KNOWN:
            self._known.popitem(last=False)

    def _soon(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._later.add(task)
        task.add_done_callback(self._later.discard)


async def forget_name(client: Redis, tenant: str, user: str) -> int:
    """Removes the note that the name was asked for. Raises RedisError."""
    return int(await client.delete(_mark(tenant, user)))


def _mark(tenant: str, user: str) -> str:
    return keys.shared("name", tenant, user)
