"""The inbox on a cluster. A conversation's keys lie in its session's slot, the marks of what waits in any number of
shards, each with a slot of its own. So what is one step on a plain server (gateway/inbox/redis.py) is two here, and
this order of them loses nothing:

- `put` appends, then marks; only then is it acknowledged, and a repeat marks again.
- A shard gives a conversation out under a lease, then the conversation is taken. Whoever ends in between loses the
  lease.
- What ends a try ends it in the conversation, then in the shard. Whoever ends in between leaves a lease that runs out:
  the next worker looks, and finds what is left to do, or nothing.
- A mark that comes while there is a lease is kept beside it until the lease is settled.

A conversation notes which shard it is marked in as long as anything waits in it: so their number may be changed at any
time, and processes with different numbers work together. Shards that nobody puts into any more are looked after as long
as there is anything in them.
"""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
import zlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, NamedTuple

from redis.asyncio import Redis

from gateway.errors import InboxUnavailable
from gateway.inbox.base import (
    ALIAS_FOR,
    LONGEST_BATCH,
    SEEN_FOR,
    Claim,
    Claims,
    Depth,
    Outcome,
    Policy,
    SessionWrite,
    event_of,
    name_of,
)
from gateway.inbox.redis import (
    INDEX,
    RedisInbox,
    dead_key,
    entry_of,
    mapped,
    source,
    spread,
    text_of,
    with_library,
)
from gateway.inbox.shards import Shards, key_of, now
from gateway.messages import InboundMessage, decode
from gateway.pacing import Limit
from memory.short_term import lua

log = logging.getLogger(__name__)

OF_A_CONVERSATION = ("put", "take", "letters", "finish", "fail", "intent", "move_in", "move_out", "forget", "look")
OF_A_SHARD = ("mark", "claim", "beat", "settle", "seize", "depth")
AS_ON_A_PLAIN_SERVER = ("behind", "pass", "hold", "pending")
MOST_MOVES = 10


class Mark(NamedTuple):
    """Where a conversation is to be looked at, in how many ms."""

    shard: int
    name: str
    wait: int
    only_if_none: bool = False


class SpreadInbox(RedisInbox):
    """`shards`: over how many what waits is marked from now on."""

    def __init__(
        self, client: Redis, worker: str = "", *, lease: float = 10.0, copies: int = 0, shards: int = 16
    ) -> None:
        super().__init__(client, worker, lease=lease, copies=copies)
        self._number = shards
        self._shards = Shards(client, shards, self._look_at)
        self._half_lease = lease / 2
        self._lost: dict[int, str] = {}  # shard → request id of a claim whose answer was lost
        self._sure: dict[str, float] = {}  # token → when its lease was last known to be ours

    @staticmethod
    def _sources() -> dict[str, str]:
        # With the shebang the server refuses a step that leaves its slot.
        library = lua.SESSION + text_of("lib") + text_of("spread/lib")
        made = {
            name: with_library(library, text_of(f"spread/{name}"))
            for name in (*OF_A_CONVERSATION, *OF_A_SHARD, "bury", "pace")
        }
        made |= {name: source(name) for name in AS_ON_A_PLAIN_SERVER}
        return {name: f"#!lua\n{text}" for name, text in made.items()}

    # -- putting -------------------------------------------------------------------------------------------------------

    async def put(self, messages: Sequence[tuple[InboundMessage, Policy]]) -> list[bool]:
        await self._shards.learn()
        kept: list[bool] = [False] * len(messages)
        by_name: defaultdict[str, list[int]] = defaultdict(list)
        for at, (message, _) in enumerate(messages):
            by_name[name_of(message)].append(at)
        marks: list[Mark] = []

        async def put(name: str, places: list[int]) -> None:
            some = [(event_of(messages[at][0]), _arriving(*messages[at])) for at in places]
            for at, one in zip(places, await self._put_into(name, some, marks), strict=True):
                kept[at] = one

        await _all(put(name, places) for name, places in by_name.items())
        await self._mark(marks)
        return kept

    async def _put_into(
        self, name: str, some: list[tuple[str, list[Any]]], marks: list[Mark], moves: int = 0
    ) -> list[bool]:
        """In order, there or wherever its messages go by now; what is to be marked is added to `marks`."""
        # An alias that leads in a circle is dropped.
        arguments: list[Any] = [name, self._shard(name), SEEN_FOR, ALIAS_FOR if moves < MOST_MOVES else 0]
        for event, rest in some:
            arguments += [event, *rest]
        shard, wait, to, *found = await self._keep("put", _hash(name), arguments)
        if wait >= 0:
            marks.append(Mark(shard, name, wait, only_if_none=1 not in found))
        kept = [state == 1 for state in found]
        elsewhere = [at for at, state in enumerate(found) if state == 2]
        if elsewhere:
            # There it is known under the name it was put under, and here only once it is there.
            there = [(f"{name}|{some[at][0]}" if not moves else some[at][0], some[at][1]) for at in elsewhere]
            for at, one in zip(elsewhere, await self._put_into(to.decode(), there, marks, moves + 1), strict=True):
                kept[at] = one
                await self.mark_seen(name, some[at][0])
        return kept

    async def _mark(self, marks: Iterable[Mark]) -> None:
        by_shard: defaultdict[int, list[Any]] = defaultdict(list)
        for mark in marks:
            by_shard[mark.shard] += [mark.name, mark.wait, int(mark.only_if_none)]
        await _all(self._keep("mark", f"{key_of(k)}:due", [key_of(k), *told]) for k, told in by_shard.items())
        for mark in marks:
            self._shards.note(mark.shard, mark.wait)

    def _shard(self, name: str) -> int:
        return zlib.crc32(name.encode()) % self._number

    # -- claiming ------------------------------------------------------------------------------------------------------

    async def claim(self, limit: int, within: float = 0.0, stop: asyncio.Future[Any] | None = None) -> Claims:
        found = await self._claim(limit)
        if found.claims or within <= 0:
            return found
        await self._shards.wait(within if found.next_due is None else min(within, found.next_due), stop)
        return Claims((), None) if stop is not None and stop.done() else await self._claim(limit)

    async def _claim(self, limit: int) -> Claims:
        await self._shards.learn()
        self._shards.collect()
        claims: list[Claim] = []
        failed: list[InboxUnavailable] = []
        asked: set[int] = set()
        while len(claims) < limit and (some := self._shards.worth_asking(asked if failed else set())):
            room = limit - len(claims)
            some = random.sample(some, min(room, len(some)))
            asked.update(some)
            found = await asyncio.gather(
                *(self._claim_from(shard, room // len(some)) for shard in some), return_exceptions=True
            )
            for one in found:
                if isinstance(one, InboxUnavailable):
                    failed.append(one)
                elif isinstance(one, BaseException):
                    raise one
                else:
                    claims += one
        if failed and not claims and len(failed) == len(asked):
            raise failed[0]
        return Claims(tuple(claims), self._shards.next_due())

    async def _claim_from(self, shard: int, want: int) -> list[Claim]:
        self._shards.asked(shard)
        repeat = shard in self._lost
        request = self._lost.setdefault(shard, f"{next(self._requests)}-{secrets.token_hex(3)}")
        arguments = [key_of(shard), shard, self._worker, request, want, self._lease_ms, int(repeat)]
        wait, rows = await self._run("claim", arguments, f"{key_of(shard)}:due")
        del self._lost[shard]
        self._shards.answered(shard, wait, more=len(rows) >= want)
        taken = await asyncio.gather(*(self._take(shard, *row) for row in rows), return_exceptions=True)
        for one in taken:
            if isinstance(one, InboxUnavailable):  # the lease ends
                log.debug("a conversation is taken later: %s", one)
            elif isinstance(one, BaseException):
                raise one
        return [one for one in taken if isinstance(one, Claim)]

    async def _take(self, shard: int, raw: bytes, raw_token: bytes, waited: int) -> Claim | None:
        name, token = raw.decode(), raw_token.decode()
        what, *rest = await self._run("take", [name, token, shard, LONGEST_BATCH], _hash(name))
        if what == b"claim":
            attempts, allowed, session, outbox, failure, carried, *messages = rest
            self._sure[token] = now()
            return Claim(
                conversation=name,
                token=token,
                attempts=attempts,
                max_attempts=allowed,
                messages=tuple(map(decode, messages)),
                session=session or None,
                outbox=outbox or None,
                failure=failure.decode("utf-8", "replace") or None,
                waited=waited / 1000,
                carried=carried or None,
            )
        if what == b"bury":
            wait = await self._bury_killed(name, token)
        elif what == b"later":
            (wait,) = rest
        else:
            await self._mark([Mark(rest[0], name, 0)])
            wait = -1
        await self._settle(name, token, wait)
        return None

    async def _bury_killed(self, name: str, token: str) -> int:
        """What killed even the worker that would have buried it."""
        letters = await self._run("letters", [name, token], _hash(name))
        if letters is None:
            return 0
        tries, owed, *messages = letters
        await self._bury(name, "every worker that took it died", tries - 1, owed, messages)
        status, *rest = await self._run("finish", [name, token, "killed", "", 0, 0, ""], _hash(name))
        return int(rest[0]) if status else 0

    async def beat(self, claims: Sequence[Claim]) -> set[str]:
        by_shard: defaultdict[int, list[Claim]] = defaultdict(list)
        for claim in claims:
            by_shard[_shard_of(claim)].append(claim)
        self._sure = {claim.token: self._sure.get(claim.token, 0.0) for claim in claims}
        found = await asyncio.gather(*(self._beat(*one) for one in by_shard.items()), return_exceptions=True)
        well = [one for one in found if isinstance(one, set)]
        for one in found:
            if isinstance(one, BaseException) and not (well and isinstance(one, InboxUnavailable)):
                raise one
        return {name for one in well for name in one}

    async def _beat(self, shard: int, claims: list[Claim]) -> set[str]:
        began = now()
        arguments: list[Any] = [key_of(shard), self._lease_ms]
        for claim in claims:
            arguments += [claim.conversation, claim.token]
        lost = {int(at) for at in await self._run("beat", arguments, f"{key_of(shard)}:due")}
        self._sure |= {claim.token: began for at, claim in enumerate(claims) if at not in lost}
        return {claims[at].conversation for at in lost}

    async def _settle(self, name: str, token: str, wait: int) -> None:
        """What waits is marked again, or no more. If this fails, that is done when the lease ends."""
        self._sure.pop(token, None)
        shard = int(token.partition(":")[0])
        place = key_of(shard)
        try:
            await self._run("settle", [place, name, token, wait], f"{place}:due")
        except InboxUnavailable as error:
            log.debug("a lease runs out by itself: %s", error)
        self._shards.note(shard, wait)

    # -- the end of a try ----------------------------------------------------------------------------------------------

    async def intent(self, claim: Claim, outbox: bytes, limits: Sequence[Limit] = ()) -> float | None:
        if now() - self._sure.get(claim.token, -self._half_lease) >= self._half_lease and await self._beat(
            _shard_of(claim), [claim]
        ):
            return None
        if limits and (wait := int(await self._run("pace", spread(limits), limits[0].key))):
            return wait / 1000
        ours = await self._run("intent", [claim.conversation, claim.token, outbox], _hash(claim.conversation))
        return 0.0 if ours else None

    def note(self, claim: Claim, outbox: bytes) -> None:
        """Each command has its way to find through a cluster."""

    async def may_pass(self, limits: Sequence[Limit]) -> bool:
        return not limits or bool(await self._run("pass", spread(limits), limits[0].key))

    async def hold(self, limits: Sequence[Limit], seconds: float) -> None:
        if limits:
            await self._run("hold", [max(0, int(seconds * 1000)), *spread(limits)], limits[0].key)

    async def behind(self, claim: Claim, most: int = LONGEST_BATCH) -> tuple[InboundMessage, ...]:
        messages = await self._run("behind", [claim.conversation, claim.token, most], _hash(claim.conversation))
        return tuple(map(decode, messages or ()))

    async def finish(
        self, claim: Claim, session: SessionWrite | None, dead: str | None = None, carry: bytes | None = None
    ) -> tuple[Outcome, bytes | None]:
        name, token = claim.conversation, claim.token
        if dead is not None:
            letters = await self._run("letters", [name, token], _hash(name))
            if letters is None:
                return Outcome.LOST, None
            await self._bury(name, dead, letters[0], carry or b"", letters[2:])
        arguments: list[Any] = [name, token, "" if dead is None else "dead"]
        if session is None:
            arguments += ["", 0, 0]
        else:
            with mapped():  # first: a mark without a session is tidied up, a session without one would never be found
                await self._redis.zadd(lua.index_of(session.member), {session.member: session.score})
            arguments += [session.value, session.ttl_ms, session.rev]
        status, *rest = await self._run("finish", [*arguments, carry or ""], _hash(name))
        outcome = Outcome(status)
        if outcome is Outcome.DONE:
            await self._settle(name, token, rest[0])
            return outcome, None
        return outcome, (rest[0] or None) if rest else None

    async def _bury(self, name: str, why: str, tries: int, owed: bytes, messages: Sequence[bytes]) -> None:
        tenant = name.split(":", 2)[1]
        with mapped():
            await self._redis.sadd(f"{INDEX}:graves", tenant)
        await self._run("bury", [name, why, tries, owed, *messages], dead_key(tenant))

    async def _give_back(self, claim: Claim, pause: float, counted: bool, *rest: Any) -> bool:
        arguments = [claim.conversation, claim.token, max(0, int(pause * 1000)), int(not counted), *rest]
        wait = int(await self._run("fail", arguments, _hash(claim.conversation)))
        if wait >= 0:
            await self._settle(claim.conversation, claim.token, wait)
        return wait >= 0

    async def move(self, claim: Claim, to: str) -> bool:
        """What is to be moved is brought there first, each message once; it leaves here, and its alias is made, in the
        step that finds nothing left to bring."""
        name, origin = claim.conversation, name_of(claim.messages[0])
        whole, brought = origin == name, 0
        while True:
            if not whole and brought and to != origin:
                with mapped():
                    await self._redis.set(f"cc:alias:{{{origin}}}", to, ex=ALIAS_FOR)
            arguments = [name, claim.token, brought, int(whole), to, ALIAS_FOR]
            status, *rest = await self._run("move_out", arguments, _hash(name))
            if status != 2:
                break
            allowed, *entries = rest
            shard, wait = await self._run("move_in", [to, self._shard(to), allowed, *entries], _hash(to))
            if wait >= 0:
                await self._mark([Mark(shard, to, wait)])
            brought += len(entries)
        if status == 1:
            await self._settle(name, claim.token, rest[0])
        return bool(status)

    async def forget(self, tenant: str, goes: Callable[[InboundMessage], bool]) -> int:
        removed = 0
        for name in await self._waiting_of(tenant):
            with mapped():
                entries: Any = await self._redis.lrange(f"cc:q:{{{name}}}", 0, -1)
            if not (found := [one for one in entries if goes(decode(one.partition(b"\n")[2]))]):
                continue
            number, shard, anew = await self._run("forget", [name, *found], _hash(name))
            removed += int(number)
            if anew and shard >= 0:
                await self._look_again(name, shard)
        return removed

    async def _look_again(self, name: str, shard: int) -> None:
        place, token = key_of(shard), f"{shard}:0:{self._worker}:{secrets.token_hex(6)}"
        if await self._run("seize", [place, name, token, self._lease_ms], f"{place}:due"):
            _, wait = await self._run("look", [name], _hash(name))
            await self._settle(name, token, min(wait, 0))

    async def revive(self, conversation: str) -> int:
        shard, wait = await self._run("look", [conversation], _hash(conversation))
        if wait >= 0:
            await self._mark([Mark(shard if shard >= 0 else self._shard(conversation), conversation, wait)])
        with mapped():
            waiting: Any = await self._redis.llen(f"cc:q:{{{conversation}}}")
        return int(waiting)

    # -- the shards ----------------------------------------------------------------------------------------------------

    async def pending(self, most: int) -> list[str] | None:
        await self._shards.learn()
        places = list(map(key_of, self._shards.all()))
        found = await _all(self._run("pending", [place, most], f"{place}:due") for place in places)
        names = [name.decode() for one in found if one is not None for name in one]
        return None if None in found or len(names) > most else names

    async def _waiting_of(self, tenant: str) -> list[str]:
        await self._shards.learn()
        found: dict[str, None] = {}
        with mapped():
            for mark in ("due", f"ready:{tenant}", "lease", "due"):
                keys = [f"{key_of(shard)}:{mark}" for shard in self._shards.all()]
                members: Any = await _all(self._redis.zrange(key, 0, -1) for key in keys)
                found |= dict.fromkeys(one.decode() for some in members for one in some)
        return [name for name in found if name.startswith(f"sm:{tenant}:")]

    async def depth(self) -> Depth:
        await self._shards.learn()
        parts = await _all(map(self._look_at, self._shards.all()))
        dead = 0
        with mapped():
            graves: Any = await self._redis.smembers(f"{INDEX}:graves")
            for tenant in graves:
                dead += await self._redis.xlen(dead_key(tenant.decode()))
        return Depth(
            ready=sum(part.ready for part in parts),
            due=sum(part.due for part in parts),
            leased=sum(part.leased for part in parts),
            dead=dead,
            oldest=max(part.oldest for part in parts),
            parts=tuple(parts),
        )

    async def _look_at(self, shard: int) -> Depth:
        ready, due, leased, oldest_ms = await self._run("depth", [key_of(shard)], f"{key_of(shard)}:due")
        return Depth(ready, due, leased, 0, oldest_ms / 1000)

    async def close(self) -> None:
        await self._shards.close()
        await super().close()


def _hash(name: str) -> str:
    return f"cc:c:{{{name}}}"


def _arriving(message: InboundMessage, policy: Policy) -> list[Any]:
    """What `put` is told of a message, its event apart."""
    return [policy.debounce, policy.debounce_max, policy.max_attempts, entry_of(message)]


def _shard_of(claim: Claim) -> int:
    return int(claim.token.partition(":")[0])


async def _all(calls: Iterable[Awaitable[Any]]) -> list[Any]:
    """All of them to their end, then the first error."""
    found = await asyncio.gather(*calls, return_exceptions=True)
    for one in found:
        if isinstance(one, BaseException):
            raise one
    return found
