"""A request over HTTP on its way through the inbox: who may speak in which conversation, and the answer as it comes."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from redis.exceptions import RedisError

from config.tenants import Tenant
from gateway.adapters.base import Received
from gateway.intake import Intake
from gateway.messages import MAX_TEXT, InboundMessage, Kind
from gateway.web_log import STREAMED, Entry, Follower, LocalLog, RedisLog, place_of
from gateway.wire import Wire
from memory import keys
from memory.conversations import Conversation, Conversations
from memory.errors import LongTermUnavailable
from memory.keys import DEFAULT_AGENT, MAIN, ConversationRef
from processors.pii import masked

log = logging.getLogger(__name__)

API = "api"  # the channel of those who come without a web channel
HEARTBEAT = 15.0  # seconds of silence before a stream says that it is alive
BACK_WITHIN = 2.0  # seconds a client has to come back before its answer is broken off
GRACE = 30.0  # seconds an answer may take beyond the model's own time: the queue, the tools
NAME_LENGTH = 60  # characters of the first message that name a conversation


class NoSuchAgent(Exception):
    """The tenant has no such agent."""


class NoSuchConversation(Exception):
    """There is no such conversation for whoever asks."""


class NobodyNamed(Exception):
    """The main conversation is a person's: it takes a user."""


class Unheard(Exception):
    """The shop does not hear this person."""


class NothingKept(Exception):
    """Nothing of that answer is kept any more."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who speaks, and for which tenant. A visitor is a person; a key speaks for persons that it names."""

    tenant: Tenant
    owner: str  # admin | key:… | visitor:…
    visitor: str | None = None


@dataclass(frozen=True, slots=True)
class Talk:
    """One conversation, as its caller may use it."""

    caller: Caller
    ref: ConversationRef

    @property
    def name(self) -> str:
        return keys.session(self.ref)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a client is shown: more of an answer (`anew`: in place of what it has), the end of it, or why there is none.
    `id` is the place to go on from."""

    kind: Literal["delta", "done", "error"]
    id: str
    text: str = ""
    anew: bool = False
    entry: Entry | None = None
    status: int = 0


class Chat:
    def __init__(
        self,
        intake: Intake,
        conversations: Conversations,
        wire: Wire,
        redis: RedisLog,
        local: LocalLog,
        *,
        clock: Callable[[], datetime],
        grace: float = GRACE,
        back_within: float = BACK_WITHIN,
    ) -> None:
        self._intake = intake
        self._conversations = conversations
        self._wire = wire
        self._redis = redis
        self._local = local
        self._clock = clock
        self._grace = grace
        self._back_within = back_within
        self._leaving: set[asyncio.Task[None]] = set()

    async def talk(
        self, caller: Caller, *, user: str | None, agent: str | None, conversation: str | None, said: str = ""
    ) -> Talk:
        """The conversation that is asked for, opened where it is new; `said` then names it. Without a user everybody is
        a person of their own, known by the conversation.

        Raises NoSuchAgent, NoSuchConversation, NobodyNamed; LongTermUnavailable when it can't be told whose it is.
        """
        if agent is not None and caller.tenant.agent(agent) is None:
            raise NoSuchAgent
        if caller.visitor is not None:
            user = f"visitor:{caller.visitor}"
        if conversation == MAIN:
            if user is None:
                raise NobodyNamed
            return Talk(
                caller, ConversationRef(caller.tenant.id, f"web:{user}", keys.agent_name(agent or DEFAULT_AGENT), MAIN)
            )
        now = self._clock()
        new = Conversation(
            tenant=caller.tenant.id,
            id=conversation or secrets.token_urlsafe(18),
            user="",
            owner=caller.owner,
            name=masked(" ".join(said.split()), caller.tenant.privacy.mask)[:NAME_LENGTH],
            created_at=now,
            used_at=now,
            agent=keys.agent_name(agent or DEFAULT_AGENT),
        )
        new = replace(new, user=f"web:{user or f'anonymous:{new.id}'}")
        try:
            known = await self._conversations.open(new)
        except LongTermUnavailable as error:
            if conversation is not None:
                raise
            log.error("a conversation is not noted: %s", error)  # nobody else can know its id
            known = new
        if known.owner != caller.owner or (user is not None and known.user != new.user):
            raise NoSuchConversation
        agent = keys.agent_name(agent) if agent else known.agent
        return Talk(caller, ConversationRef(known.tenant, known.user, agent, known.id))

    async def known(self, caller: Caller, conversation: str, user: str | None = None, agent: str | None = None) -> Talk:
        """The conversation if it is there and the caller's; with `agent`, or with whom it was begun. Raises
        NoSuchAgent, NoSuchConversation, LongTermUnavailable."""
        if agent is not None and caller.tenant.agent(agent) is None:
            raise NoSuchAgent
        spoken = keys.agent_name(agent) if agent else None
        if caller.visitor is not None:
            user = f"visitor:{caller.visitor}"
        if conversation == MAIN and user is not None:
            return Talk(caller, ConversationRef(caller.tenant.id, f"web:{user}", spoken or DEFAULT_AGENT))
        found = await self._conversations.get(caller.tenant.id, conversation)
        if found is None or found.owner != caller.owner or (user is not None and found.user != f"web:{user}"):
            raise NoSuchConversation
        return Talk(caller, found.ref._replace(agent=spoken) if spoken else found.ref)

    def follower(self, talk: Talk) -> Follower:
        return Follower(talk.name, self._wire, self._redis, self._local)

    async def say(self, talk: Talk, said: str, *, streamed: bool, request: str | None = None, **more: Any) -> str:
        """Puts it into the inbox; the request's id, which may be given. `more` are fields of the message besides its
        words, for what is not a text. Raises InboxUnavailable, Unheard."""
        request = request or f"{STREAMED if streamed else ''}{secrets.token_hex(16)}"
        now = self._clock().timestamp()
        message = InboundMessage(
            tenant=talk.ref.tenant,
            channel=channel_of(talk.caller.tenant),
            platform="web",
            event_id=request,
            user_id=talk.ref.user,
            chat_id=talk.name,
            text=said[:MAX_TEXT],
            sent_at=now,
            received_at=now,
            reply_token=request,
            agent=talk.ref.agent,
            conversation_id=talk.ref.conversation,
            **({"kind": Kind.TEXT, "extra": {"cut": True} if len(said) > MAX_TEXT else {}} | more),
        )
        if not self._intake.hears(talk.caller.tenant, message):
            raise Unheard
        await self._intake.keep(talk.caller.tenant, message.channel, Received((message,)))
        await asyncio.gather(
            self._note(talk.name, Entry("said", request, message.text)), self._used(talk), return_exceptions=True
        )
        return request

    async def answer(self, follower: Follower, talk: Talk, request: str) -> AsyncIterator[Shown | None]:
        """What comes of a request, to its end; None whenever nothing has come for a while. An answer that does not come
        in time ends as an error with the status 504: it may still come into the conversation."""
        async with aclosing(self._shown(follower, talk, request, [], "")) as shown:
            async for one in shown:
                yield one

    async def rest(
        self, follower: Follower, talk: Talk, last_id: str
    ) -> tuple[str, AsyncIterator[Shown | None]] | None:
        """The request that a client saw up to `last_id`, and the rest of its answer; None where it saw all of it. A
        request's own id is the place before its first words. Raises NothingKept."""
        every = await follower.everything()
        kept = [one for one in every if one[1].kind in ("delta", "done", "error")]
        if any(entry.kind == "said" and entry.request == last_id for _, entry in every):
            own = [one for one in kept if one[1].request == last_id]
            return last_id, self._shown(follower, talk, last_id, own, "")
        seen, half = _place(last_id)
        request = next((entry.request for entry_id, entry in kept if place_of(entry_id) == seen), None)
        if request is None:
            raise NothingKept
        own = [one for one in kept if one[1].request == request]
        before, watch, after = "", "", []
        for entry_id, entry in own:
            if place_of(entry_id) > seen or (half and place_of(entry_id) == seen):
                after.append((entry_id, entry))
            elif entry.kind == "delta":
                before = entry.text if entry.anew or entry.watch != watch else before + entry.text
                watch = entry.watch
            else:
                return None
        if half:
            before = after[0][1].text
        return request, self._shown(follower, talk, request, after, before, watch)

    async def after(self, follower: Follower, last_id: str) -> list[tuple[str, Entry]]:
        """What is kept of the conversation behind `last_id`."""
        with suppress(NothingKept):
            seen, half = _place(last_id)
            kept = await follower.everything()
            return [one for one in kept if place_of(one[0]) > seen or (half and place_of(one[0]) == seen)]
        return []

    async def stay(self, talk: Talk, request: str) -> str:
        """Notes that somebody is back for an answer; to be given to `gone`."""
        here = secrets.token_hex(8)
        with suppress(RedisError, OSError):
            await self._redis.came_back(talk.name, request, here)
        return here

    def gone(self, talk: Talk, request: str, here: str = "") -> None:
        """A client left in the middle. If it is not back soon, nobody wants the rest."""
        leaving = asyncio.create_task(self._leave(talk, request, here))
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)

    async def close(self) -> None:
        for task in self._leaving:
            task.cancel()
        await asyncio.gather(*self._leaving, return_exceptions=True)

    async def _shown(
        self,
        follower: Follower,
        talk: Talk,
        request: str,
        first: list[tuple[str, Entry]],
        shown: str,
        watch: str = "",
    ) -> AsyncGenerator[Shown | None, None]:
        patience = talk.caller.tenant.llm.timeout + self._grace
        until = time.monotonic() + patience
        while True:
            if first:
                found: tuple[str, Entry] | None = first.pop(0)
            else:
                left = until - time.monotonic()
                found = await follower.next(max(0.0, min(HEARTBEAT, left)))
                if found is None and left <= HEARTBEAT:
                    yield Shown("error", "", status=504)
                    return
            if found is None:
                yield None
                continue
            entry_id, entry = found
            if entry.request != request or entry.kind in ("said", "told"):
                continue
            until = time.monotonic() + patience
            if entry.kind == "error":
                yield Shown("error", entry_id, entry=entry, status=entry.status)
                return
            if entry.kind == "done":
                anew = not entry.text.startswith(shown)
            else:
                anew = bool(shown) and (entry.anew or entry.watch != watch)
                watch = entry.watch
            more = entry.text if anew or entry.kind == "delta" else entry.text[len(shown) :]
            shown = more if anew else shown + more
            if entry.kind == "delta":
                yield Shown("delta", entry_id, more, anew)
                continue
            if more or anew:
                yield Shown("delta", f"{entry_id}{_HALF}", more, anew)
            yield Shown("done", entry_id, entry=entry)
            return

    async def _note(self, name: str, entry: Entry) -> None:
        with suppress(RedisError, OSError):  # other windows of the person show it with the next look
            await self._redis.add(name, entry)

    async def _used(self, talk: Talk) -> None:
        if talk.ref.conversation != MAIN:
            with suppress(LongTermUnavailable):
                await self._conversations.used(talk.ref.tenant, talk.ref.conversation, self._clock())

    async def _leave(self, talk: Talk, request: str, here: str) -> None:
        await asyncio.sleep(self._back_within)
        self._local.leave(request)
        with suppress(RedisError, OSError):
            await self._redis.leave(talk.name, request, here)


def channel_of(tenant: Tenant) -> str:
    """The tenant's web channel; whoever has none is reached by the API alone."""
    return next((name for name, one in tenant.channels.items() if one.platform == "web"), API)


_HALF = "-text"  # of an answer's last entry only the text was shown, not yet that it is the end


def _place(last_id: str) -> tuple[tuple[int, int], bool]:
    """Raises NothingKept for what is no id of ours."""
    half = last_id.endswith(_HALF)
    try:
        return place_of(last_id.removesuffix(_HALF)), half
    except ValueError:
        raise NothingKept from None
