"""The inbox on plain Redis 7 and 8 or Valkey 8 and later: a few scripts, no modules."""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
import re
import secrets
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import resources
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError, RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from gateway.errors import InboxUnavailable
from gateway.inbox.base import (
    ALIAS_FOR,
    LONGEST_BATCH,
    SEEN_FOR,
    Claim,
    Claims,
    Depth,
    Noted,
    Outcome,
    Policy,
    SessionWrite,
    event_of,
    name_of,
)
from gateway.inbox.listening import Listening
from gateway.messages import InboundMessage, decode, encode
from gateway.pacing import Limit
from memory.redis_client import asked, run_copied, tls_trouble
from memory.short_term import lua

log = logging.getLogger(__name__)

INDEX = "cc:i:{0}"
_policy = itemgetter(1)
SCRIPTS = (
    *("put", "claim", "beat", "intent", "behind", "finish", "fail", "pass", "hold", "depth", "pending", "move"),
    *("forget", "revive"),
)
WOKEN = 4  # conversations that a claim takes which waits on the server: how much room there is may change meanwhile
COPYING = 0.3  # seconds that replicas are waited for


_OUTCOMES = {one.value: one for one in Outcome}


def dead_key(tenant: str) -> str:
    return f"cc:dead:{tenant}"


@cache
def source(name: str) -> str:
    return with_library(lua.SESSION + text_of("lib"), text_of(name))


def text_of(script: str) -> str:
    return (resources.files("gateway.inbox") / f"{script}.lua").read_text("utf-8")


def with_library(library: str, script: str) -> str:
    """The script behind what it uses of the library: a server makes each of its functions anew at every call."""
    used = _without_comments(script)
    for part in reversed(re.split(r"^(?=local )", _without_comments(library), flags=re.MULTILINE)):
        found = re.match(r"local (?:function )?([\w, ]+)", part)
        if found and any(re.search(rf"\b{name}\b", used) for name in re.split(r"\W+", found[1].strip())):
            used = part + used
    return used


def _without_comments(text: str) -> str:
    return re.sub(r"^\s*--.*\n|\s+--.*", "", text, flags=re.MULTILINE)


class RedisInbox:
    """`client` must not retry by itself: what may be repeated after a lost answer is decided here."""

    def __init__(self, client: Redis, worker: str = "", *, lease: float = 10.0, copies: int = 0) -> None:
        """`copies`: how many replicas are to have a message before it counts as kept, as long as there are as many."""
        self._redis = client
        self._copies = copies
        self._worker = worker or secrets.token_hex(4)
        self._lease_ms = int(lease * 1000)
        self._requests = itertools.count()
        self._born = secrets.token_hex(4)
        self._scripts = {name: client.register_script(text) for name, text in self._sources().items()}
        self._unanswered: str | None = None  # request id of a claim whose answer was lost
        self._short = False  # the last claim found less than it asked for
        self._due_at: float | None = None  # when something waits for its time: the loop's time, as the last claim told
        self._ear = Listening(client, f"{INDEX}:wake", f"{INDEX}:wake:{self._worker}")

    @staticmethod
    def _sources() -> dict[str, str]:
        return {name: source(name) for name in SCRIPTS}

    async def put(self, messages: Sequence[tuple[InboundMessage, Policy]]) -> list[bool]:
        arguments: list[Any] = [INDEX, SEEN_FOR, ALIAS_FOR, len(messages)]
        for message, _ in messages:
            arguments += (name_of(message), event_of(message), entry_of(message))
        if len(messages) == 1:
            ((_, policy),) = messages
            arguments += (1, policy.debounce, policy.debounce_max, policy.max_attempts)
        else:
            for policy, alike in groupby(map(_policy, messages)):
                arguments += (len(list(alike)), policy.debounce, policy.debounce_max, policy.max_attempts)
        # A repeat after a lost answer finds its events seen, and answers "seen before": kept all the same.
        return [bool(kept) for kept in await self._keep("put", INDEX, arguments)]

    async def mark_seen(self, conversation: str, event: str) -> None:
        """This delivery was answered elsewhere: it is known from now on."""
        with mapped():
            await self._redis.set(f"cc:seen:{{{conversation}}}:{event}", 1, ex=SEEN_FOR)

    async def pending(self, most: int) -> list[str] | None:
        """The conversations that wait or are in hand. None: more than `most`."""
        found = await self._run("pending", [INDEX, most])
        return None if found is None else [name.decode() for name in found]

    async def claim(self, limit: int, within: float = 0.0, stop: asyncio.Future[Any] | None = None) -> Claims:
        now = asyncio.get_running_loop().time()
        due = None if self._due_at is None else self._due_at - now
        # Where nothing can be ready, the claim waits on the server. What may have been given out unheard is asked for.
        waits = within > 0 and self._short and self._unanswered is None and (due is None or due > 0)
        if not waits:
            found = self._claimed(limit, await self._run("claim", self._asking(limit)))
            if found.claims or within <= 0:
                return found
            due = found.next_due
        if stop is not None and stop.done():
            return Claims((), None)
        some = min(limit, WOKEN)
        asking = self._asking(some)
        # Jitter keeps the workers of one queue from all looking at the same time.
        within = within * random.uniform(1.0, 1.05)
        try:
            answer = await self._ear.once_woken(("EVALSHA", self._scripts["claim"].sha, 0, *asking), within, due, stop)
        except (RedisError, OSError) as error:
            raise _away(error) from error
        if isinstance(answer, NoScriptError):
            answer = await self._run("claim", asking)
        elif isinstance(answer, RedisError):
            raise _away(answer) from answer
        return self._claimed(some, answer)

    def _asking(self, limit: int) -> list[Any]:
        repeat = self._unanswered is not None
        if not repeat:
            self._unanswered = f"{self._born}-{next(self._requests)}"
        return [INDEX, self._worker, self._unanswered, limit, self._lease_ms, LONGEST_BATCH, int(repeat)]

    def _claimed(self, limit: int, answer: Any) -> Claims:
        wait_ms, rows = answer
        self._unanswered, self._short = None, len(rows) < limit
        next_due = wait_ms / 1000 if wait_ms >= 0 else None
        self._due_at = None if next_due is None else asyncio.get_running_loop().time() + next_due
        return Claims(tuple(map(_claim, rows)), next_due)

    async def beat(self, claims: Sequence[Claim]) -> set[str]:
        if not claims:
            return set()
        arguments: list[Any] = [INDEX, self._lease_ms]
        for claim in claims:
            arguments += [claim.conversation, claim.token]
        return {claims[int(position)].conversation for position in await self._run("beat", arguments)}

    async def intent(self, claim: Claim, outbox: bytes, limits: Sequence[Limit] = ()) -> float | None:
        arguments = [INDEX, claim.conversation, claim.token, self._lease_ms, outbox, *chain.from_iterable(limits)]
        wait_ms = int(await _once_more(self._scripts["intent"], (), arguments))
        return None if wait_ms < 0 else wait_ms / 1000

    def note(self, claim: Claim, outbox: bytes) -> Noted | None:
        arguments = (INDEX, claim.conversation, claim.token, self._lease_ms, outbox)
        begun = asked(self._scripts["intent"], (), arguments)
        if isinstance(begun, asyncio.Future):
            begun.add_done_callback(lambda note: note.cancelled() or note.exception())  # nobody may ask for it
            return begun
        if asyncio.iscoroutine(begun):  # the connection is still to be opened
            begun.close()
        return None

    async def may_pass(self, limits: Sequence[Limit]) -> bool:
        return not limits or bool(await self._run("pass", spread(limits)))

    async def hold(self, limits: Sequence[Limit], seconds: float) -> None:
        if limits:
            await self._run("hold", [max(0, int(seconds * 1000)), *spread(limits)])

    async def behind(self, claim: Claim, most: int = LONGEST_BATCH) -> tuple[InboundMessage, ...]:
        messages = await self._run("behind", [claim.conversation, claim.token, most])
        return tuple(map(decode, messages or ()))

    async def finish(
        self, claim: Claim, session: SessionWrite | None, dead: str | None = None, carry: bytes | None = None
    ) -> tuple[Outcome, bytes | None]:
        arguments: list[Any] = [INDEX, claim.conversation, claim.token, dead or ""]
        if session is None:
            arguments += ["", 0, 0, "", "", ""]
        else:
            arguments += [session.value, session.ttl_ms, session.rev, lua.INDEX, session.member, session.score]
        arguments.append(carry or "")
        status, *stored = await _once_more(self._scripts["finish"], (), arguments)
        return _OUTCOMES[status], (stored[0] or None) if stored else None

    async def fail(self, claim: Claim, pause: float, *, counted: bool = True, why: str = "") -> bool:
        return await self._give_back(claim, pause, counted, why, "", "")

    async def park(self, claim: Claim, outbox: bytes, pause: float) -> bool:
        return await self._give_back(claim, pause, False, "", 1, outbox)

    async def move(self, claim: Claim, to: str) -> bool:
        origin = name_of(claim.messages[0])
        return bool(await self._run("move", [INDEX, claim.conversation, claim.token, origin, to, ALIAS_FOR]))

    async def forget(self, tenant: str, goes: Callable[[InboundMessage], bool]) -> int:
        removed = 0
        for name in await self._waiting_of(tenant):
            with mapped():
                entries: Any = await self._redis.lrange(f"cc:q:{{{name}}}", 0, -1)
            if found := [one for one in entries if goes(decode(one.partition(b"\n")[2]))]:
                removed += int(await self._run("forget", [INDEX, name, *found]))
        return removed

    async def revive(self, conversation: str) -> int:
        """Of a conversation that was put back from a backup, without any mark: it waits again. How many messages."""
        return int(await self._run("revive", [INDEX, conversation]))

    async def _waiting_of(self, tenant: str) -> list[str]:
        """A tenant's conversations that have anything in their queues. One that changes its place meanwhile is found
        where it goes to: due, then ready, then in hand, then due again."""
        found: dict[str, None] = {}
        of_theirs = f"sm:{tenant}:"
        with mapped():
            for mark in ("due", f"ready:{tenant}", "lease", "due"):
                members: Any = await self._redis.zrange(f"{INDEX}:{mark}", 0, -1)
                found |= dict.fromkeys(one.decode() for one in members)
        return [name for name in found if name.startswith(of_theirs)]

    async def _give_back(self, claim: Claim, pause: float, counted: bool, *rest: Any) -> bool:
        arguments = [INDEX, claim.conversation, claim.token, max(0, int(pause * 1000)), int(not counted), *rest]
        return bool(await self._run("fail", arguments))

    async def depth(self) -> Depth:
        ready, due, leased, dead, oldest_ms = await self._run("depth", [INDEX])
        return Depth(ready, due, leased, dead, oldest_ms / 1000)

    async def close(self) -> None:
        await self._redis.aclose()

    def _keep(self, name: str, key: str, arguments: list[Any]) -> Coroutine[Any, Any, Any]:
        """As `_run`, and copied as far as it is asked for and possible before it returns."""
        return self._copied(name, key, arguments) if self._copies else self._run(name, arguments, key)

    async def _copied(self, name: str, key: str, arguments: list[Any]) -> Any:
        script, sent = self._scripts[name], None
        try:
            answer, copied = await run_copied(script, key, arguments, self._copies, COPYING)
        except (RedisError, OSError) as error:
            sent = _sent(error)
        if sent is not None:  # once more, and not in there: what comes of it would be told together with the first
            with mapped(sent):
                answer, copied = await run_copied(script, key, arguments, self._copies, COPYING)
        if copied < self._copies:
            log.warning("kept on %d of %d replicas within %g s", copied, self._copies, COPYING)
        return answer

    def _run(self, name: str, arguments: list[Any], key: str | None = None) -> Coroutine[Any, Any, Any]:
        """`key` tells a cluster where."""
        try_it = _once if name == "claim" else _once_more
        return try_it(self._scripts[name], (key,) if key else (), arguments)


async def _once(script: Any, keys: Sequence[str], arguments: list[Any]) -> Any:
    with mapped():
        return await script(keys, arguments)


async def _once_more(script: Any, keys: Sequence[str], arguments: list[Any]) -> Any:
    """Once more after a connection broke, as a restart of the server leaves them in the pool: every script but
    `claim` can be repeated without harm, and `claim` has its request id."""
    try:
        if (one := asked(script, keys, arguments)) is not None:
            (answer,) = await one
            if not isinstance(answer, RedisError):
                return answer
            if not isinstance(answer, NoScriptError):
                raise answer
        return await script(keys, arguments)
    except (RedisError, OSError) as error:
        sent = _sent(error)
    with mapped(sent):
        return await script(keys, arguments)


def _sent(error: RedisError | OSError) -> bool:
    """Whether what was asked may have been done, of a call that may be made once more. Raises InboxUnavailable for one
    that may not."""
    if not isinstance(error, RedisConnectionError):
        raise _away(error) from error
    return not _refused(error)


def entry_of(message: InboundMessage) -> bytes:
    """How it stands in its conversation's queue."""
    return message.lane.replace("\n", " ").encode("utf-8", "replace") + b"\n" + encode(message)


def spread(limits: Sequence[Limit]) -> list[Any]:
    return list(chain.from_iterable(limits))


@contextmanager
def mapped(sent: bool = False) -> Iterator[None]:
    """`sent`: an earlier try may have done what is asked for."""
    try:
        yield
    except (RedisError, OSError) as error:
        raise _away(error, sent) from error


def _away(error: RedisError | OSError, sent: bool = False) -> InboxUnavailable:
    if isinstance(error, RedisConnectionError | RedisTimeoutError | OSError):
        said = tls_trouble(error) or type(error).__name__
        return InboxUnavailable(f"Redis can't be reached: {said}", ambiguous=sent or not _refused(error))
    return InboxUnavailable(f"Redis refused: {error}")


def _refused(error: BaseException) -> bool:
    """Whether there was nobody to connect to, so that nothing was sent. How the library wraps that depends on the event
    loop and on whether the pool held a connection that had ended; its own words for it are always the same."""
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, ConnectionRefusedError | FileNotFoundError) or " connecting to " in str(found):
            return True
        found = found.__cause__ or found.__context__
    return False


def _claim(row: list[Any]) -> Claim:
    conversation, token, attempts, allowed, session, outbox, failure, carried, waited_ms, *entries = row
    return Claim(
        conversation=conversation.decode(),
        token=token.decode(),
        attempts=attempts,
        max_attempts=allowed,
        messages=tuple([decode(entry[entry.index(b"\n") + 1 :]) for entry in entries]),
        session=session or None,
        outbox=outbox or None,
        failure=failure.decode("utf-8", "replace") or None,
        waited=waited_ms / 1000,
        carried=carried or None,
    )
