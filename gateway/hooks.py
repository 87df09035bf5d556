"""What is done before the language model is asked, and after the answer went out: the history, and whatever a package
of somebody else's adds with an entry point of the group `gateway.hooks`."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from importlib.metadata import entry_points
from typing import Any, Protocol

import msgspec

from gateway.messages import Answer, InboundMessage
from memory import context
from memory.errors import MemoryFault
from memory.keys import ConversationRef
from memory.models import LongTermMemory, Message, ShortTermMemory
from memory.protocols import Transcripts
from processors.models import MemoryEvent

log = logging.getLogger(__name__)

GROUP = "gateway.hooks"
PATIENCE = 2.0  # seconds that one hook may take: a customer waits
_KNOWN = 10_000  # turns of which it is known that they were told of


class Exchange(msgspec.Struct, frozen=True):
    """One turn, as hooks see it. What is not known yet is left out."""

    id: str  # of the turn: the same when it is tried again
    ref: ConversationRef
    channel: str
    words: str  # the customer's, "" where there are none to be understood
    session: ShortTermMemory  # as it was before
    now: datetime  # aware
    history: int = 0  # messages of it that the prompt may hold
    memory: LongTermMemory | None = None
    context: Mapping[str, Any] = {}  # what the model is told so far
    answer: Answer | None = None  # its `model` is None where the language model was not asked, or failed
    said: Sequence[Message] = ()  # the lines of the history that this turn adds: the customer's and the answer's
    event: MemoryEvent | None = None  # the classification
    state: str = ""  # the session's after the turn
    variables: Mapping[str, Any] = {}  # the session's after the turn
    last: InboundMessage | None = None  # what the turn answers
    sent_at: datetime | None = None  # when the answer was out


class Hook(Protocol):
    """Made once a process, by calling what the entry point names without arguments."""

    async def before(self, exchange: Exchange) -> Mapping[str, Any]:
        """Fields for the context (see `exchange.context`), in place of those that are there."""
        ...

    async def after(self, exchange: Exchange) -> None:
        """The turn is over, also when the model failed or nothing could be sent; once a turn, unless the process died
        in the middle of it. What the turn said is in `said`."""
        ...


class Watcher(Protocol):
    """One of our own, which waits for nothing."""

    async def after(self, exchange: Exchange) -> None:
        """As a hook's."""
        ...


class History:
    """Our own: what was said before is loaded, what is said now is written down, each message once by its id. `unread`:
    nobody but our prompt sees what is loaded, which makes of events what it tells."""

    def __init__(self, transcripts: Transcripts, *, unread: bool = False) -> None:
        self._transcripts = transcripts
        self._unread = unread

    async def before(self, exchange: Exchange) -> Mapping[str, Any]:
        told = context.steady(exchange.session, exchange.history)
        return context.build(exchange.session, exchange.memory, max_recent_messages=told, unread=self._unread)

    def after(self, exchange: Exchange) -> Awaitable[None]:
        """Awaited, it raises MemoryFault."""
        return self._transcripts.append(exchange.ref, exchange.said)


class Hooks:
    """Ours first. Another's that fails or takes too long is passed over: no customer waits for it."""

    def __init__(self, history: Hook | History, others: Sequence[Hook] = (), watching: Sequence[Watcher] = ()) -> None:
        self._history = history
        self._others = others
        self._watching = watching
        self._told: OrderedDict[str, None] = OrderedDict()

    @property
    def alone(self) -> bool:
        """Whether nobody else's looks on."""
        return not self._others

    async def before(self, exchange: Exchange, known: Mapping[str, Any]) -> dict[str, Any]:
        """What the model is told: the history, over it what is `known` of the person, over that what others add."""
        told = dict(await self._history.before(exchange)) | dict(known)
        for hook in self._others:
            asked = msgspec.structs.replace(exchange, context=told)
            told = told | (await _guarded(hook, lambda hook=hook, asked=asked: hook.before(asked)) or {})  # type: ignore[misc]
        return told

    def begun(self, exchange: Exchange) -> asyncio.Future[None]:
        """Our own part of `after`, under way: what else the turn keeps goes to the disk with it."""
        doing = self._history.after(exchange)
        return doing if isinstance(doing, asyncio.Future) else asyncio.ensure_future(doing)

    async def after(self, exchange: Exchange, ours: Awaitable[None] | None = None) -> None:
        """`ours`: what was `begun`. A disk that fails does not hold up the conversation."""
        try:
            await (self._history.after(exchange) if ours is None else ours)
        except MemoryFault as error:
            log.error("not written: %s", error, extra={"tenant": exchange.ref.tenant})
        if not (self._others or self._watching) or exchange.id in self._told:
            return
        self._told[exchange.id] = None
        while len(self._told) > _KNOWN:
            self._told.popitem(last=False)
        for watcher in self._watching:
            try:
                await watcher.after(exchange)
            except Exception as error:  # noqa: BLE001 - what only looks on holds up nobody
                _tell(watcher, error)
        for hook in self._others:
            await _guarded(hook, lambda hook=hook: hook.after(exchange))  # type: ignore[misc]


async def _guarded(hook: Hook, call: Callable[[], Awaitable[Any]]) -> Any:
    try:
        async with asyncio.timeout(PATIENCE):
            return await call()
    except Exception as error:  # noqa: BLE001 - somebody else's code: whatever it is, the customer gets their answer
        _tell(hook, error)
        return None


def _tell(hook: Hook | Watcher, error: Exception) -> None:
    place = "".join(traceback.format_tb(error.__traceback__))  # its own words may quote a customer's
    log.error("the hook %s failed: %s\n%s", type(hook).__name__, type(error).__name__, place)


def installed() -> list[Hook]:
    """Those of the packages that are installed, in the order of their names. One that can't be made stops the start:
    whoever installed it wants to know."""
    return [found.load()() for found in sorted(entry_points(group=GROUP), key=lambda one: one.name)]
