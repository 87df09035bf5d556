"""A person links two channels: with a one-time code that they carry from one to the other themselves, or with a phone
number that both platforms have verified. Never by a name, never by what somebody typed of themselves."""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

import msgspec
from redis.asyncio import Redis
from redis.exceptions import RedisError

from config.tenants import Tenant
from gateway.command_words import named
from gateway.errors import InboxUnavailable
from gateway.inbox.base import Inbox, Policy, event_of
from gateway.messages import Answer, InboundMessage, Kind
from gateway.moment import Change, Done, Moment
from gateway.staff_desk import Customer, customer_of
from gateway.texts import Tongue, text
from memory import keys
from memory.memory_manager import MemoryManager
from memory.models import ShortTermMemory
from processors.models import iso

log = logging.getLogger(__name__)

LIVES = 600  # seconds of a code
MOST_TRIES = 5  # wrong codes of one person in as long
LINKED = "linked"  # in `extra` of a NOTICE to a customer: the platform that was linked
AWAITED = "link_until"  # in the session's variables: a code sent as plain words is taken for one until then

_LETTERS = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"  # none that is easily taken for another; eight of them: 40 bits
_CODE = re.compile(rf"[{_LETTERS}]{{4}}[- ]?[{_LETTERS}]{{4}}")
_PLATFORMS: dict[str, dict[Tongue, str]] = {
    "line": {"th": "LINE", "en": "LINE"},
    "telegram": {"th": "Telegram", "en": "Telegram"},
    "web": {"th": "เว็บแชต", "en": "the web chat"},
    "terminal": {"th": "เทอร์มินัล", "en": "the terminal"},
}
_encode = msgspec.json.encode
_customer = msgspec.json.Decoder(Customer).decode


class Codes:
    """In Redis under their hash, for ten minutes, one a person. Raises InboxUnavailable."""

    def __init__(self, client: Redis) -> None:
        self._redis = client

    async def issue(self, tenant: str, customer: Customer) -> str:
        """A new code; the person's last one holds no longer."""
        code = _new()
        own = keys.shared("link", tenant, "of", customer.user_id)
        try:
            before: Any = await self._redis.set(own, _key(tenant, code), ex=LIVES, get=True)
            pipe: Any = self._redis.pipeline(transaction=False)
            if before:
                pipe.delete(before)
            pipe.set(_key(tenant, code), _encode(customer), ex=LIVES)
            await pipe.execute()
        except (RedisError, OSError) as error:
            raise InboxUnavailable(f"Redis can't be reached: {type(error).__name__}") from error
        return code

    async def whose(self, tenant: str, code: str) -> Customer | None:
        """Who got this code, if it still holds."""
        try:
            raw: Any = await self._redis.get(_key(tenant, code))
        except (RedisError, OSError) as error:
            raise InboxUnavailable(f"Redis can't be reached: {type(error).__name__}") from error
        return _customer(raw) if raw else None

    async def use(self, tenant: str, code: str, event: str) -> bool:
        """Once: True for the one event that used it first, also when that is tried again."""
        try:
            first: Any = await self._redis.set(f"{_key(tenant, code)}:used", event, ex=LIVES, nx=True, get=True)
        except (RedisError, OSError) as error:
            raise InboxUnavailable(f"Redis can't be reached: {type(error).__name__}") from error
        return first is None or first.decode("utf-8", "replace") == event

    async def may_try(self, tenant: str, user: str, event: str) -> bool:
        """Whether this person has tries left; the event is counted once, as if it were wrong."""
        key = keys.shared("link", tenant, "tries", user)
        try:
            pipe: Any = self._redis.pipeline(transaction=True)
            pipe.sadd(key, event).expire(key, LIVES).scard(key)
            *_, tries = await pipe.execute()
        except (RedisError, OSError) as error:
            raise InboxUnavailable(f"Redis can't be reached: {type(error).__name__}") from error
        return int(tries) <= MOST_TRIES

    async def was_right(self, tenant: str, user: str) -> None:
        try:
            await self._redis.delete(keys.shared("link", tenant, "tries", user))
        except (RedisError, OSError) as error:
            log.debug("tries stay counted: %s", type(error).__name__)


class Linking:
    """Settles what has to do with it, and tells both sides. Settling again has the same effect."""

    def __init__(self, manager: MemoryManager, inbox: Inbox, client: Redis) -> None:
        self._manager = manager
        self._inbox = inbox
        self._codes = Codes(client)

    async def settle(self, moment: Moment) -> Done | None:
        message, language = moment.last, moment.language
        if message.kind is Kind.NOTICE and LINKED in message.extra:
            return Done(Answer(_say("linked_other", language, there=message.extra[LINKED])))
        if len(moment.messages) != 1:
            return None
        if message.kind is Kind.CONTACT:
            return await self._contact(moment)
        if message.kind not in (Kind.TEXT, Kind.POSTBACK):
            return None
        word = message.text.partition(" ")[0]
        if message.text.startswith("/") and named(moment.tenant, word) == "link":
            if message.group:
                return Done(Answer(text("link_private", language)))
            given = message.text[len(word) :].strip()
            return await self._redeem(moment, given) if given else await self._issue(moment)
        if _awaited(moment) and not message.group and _CODE.fullmatch(message.text.strip().upper()):
            return await self._redeem(msgspec.structs.replace(moment, language=_spoken(moment)), message.text)
        return None

    async def _issue(self, moment: Moment) -> Done:
        code = await self._codes.issue(moment.tenant.id, customer_of(moment.last))
        word = moment.tenant.command("link")
        return Done(Answer(text("link_code", moment.language, code=_shown(code), word=word)), _awaiting(moment))

    async def _redeem(self, moment: Moment, given: str) -> Done:
        tenant, language, event = moment.tenant, moment.language, event_of(moment.last)
        if not await self._codes.may_try(tenant.id, moment.last.user_id, event):
            return Done(Answer(text("link_tries", language)))
        code = _plain(given)
        issuer = await self._codes.whose(tenant.id, code)
        wrong = Done(Answer(text("link_wrong", language, word=tenant.command("link"))))
        if issuer is None:
            return wrong
        if issuer.user_id == moment.last.user_id:
            return Done(Answer(text("link_here", language)))
        if not await self._codes.use(tenant.id, code, event):
            return wrong
        await self._codes.was_right(tenant.id, moment.last.user_id)
        return await self._linked(moment, issuer)

    async def _contact(self, moment: Moment) -> Done | None:
        """Somebody's own number, which Telegram has verified, links what the same number was verified for before."""
        message, extra = moment.last, moment.last.extra
        own = message.platform == "telegram" and f"telegram:{extra.get('user_id')}" == message.user_id
        number = extra.get("phone_number")
        if not own or message.group or "forwarded" in extra or not isinstance(number, str):
            return None
        try:
            other = await self._manager.verified(moment.tenant.id, message.user_id, "phone", number)
        except ValueError:
            return None
        return Done(Answer(text("linked_number", moment.language)), silent=False) if other else None

    async def _linked(self, moment: Moment, issuer: Customer) -> Done:
        tenant, message = moment.tenant, moment.last
        try:
            await self._manager.link_users(tenant.id, moment.ref.user, issuer.user_id)
        except ValueError as error:
            log.warning("two ids can't be linked: %s", error, extra={"tenant": tenant.id})
            return Done(Answer(text("link_wrong", moment.language, word=tenant.command("link"))))
        log.info("two ids are one person now", extra={"tenant": tenant.id, "channel": message.channel})
        await self._tell(tenant, issuer, message)
        return Done(Answer(_say("linked", moment.language, here=message.platform, there=issuer.platform)))

    async def _tell(self, tenant: Tenant, issuer: Customer, message: InboundMessage) -> None:
        """The channel that the code came from; kept once, however often the turn is tried."""
        notice = InboundMessage(
            tenant=tenant.id,
            event_id=f"linked:{event_of(message)}",
            kind=Kind.NOTICE,
            extra={LINKED: message.platform},
            received_at=message.received_at,
            **msgspec.structs.asdict(issuer),
        )
        await self._inbox.put([(notice, Policy(max_attempts=tenant.behaviour.max_attempts))])


async def forget_links(client: Redis, tenant: str, ids: Collection[str]) -> int:
    """Removes codes and where these people's messages go; how many keys that were. Looks at every key of these kinds:
    people are seldom forgotten. Raises RedisError."""
    found: set[bytes] = set()
    for user in ids:
        of, tries = keys.shared("link", tenant, "of", user), keys.shared("link", tenant, "tries", user)
        code: Any = await client.get(of)
        found |= {name.encode() for name in (of, tries)} | ({code, code + b":used"} if code else set())
    gone = {keys.session(keys.ConversationRef(tenant, user)) for user in ids}
    async for key in client.scan_iter(match=f"cc:alias:{{sm:{tenant}:*", count=1000):
        to: Any = await client.get(key)
        name = key.decode().removeprefix("cc:alias:{").removesuffix("}")
        if {name.partition("/")[0], (to or b"").decode().partition("/")[0]} & gone:
            found.add(key)
    removed = 0
    for key in found:  # one by one: they lie in different slots
        removed += int(await client.delete(key))
    return removed


def _new() -> str:
    while True:
        code = "".join(secrets.choice(_LETTERS) for _ in range(8))
        if any(map(str.isdigit, code)) and not code.isdigit():  # a word or a number is hardly meant as a code
            return code


def _plain(given: str) -> str:
    return re.sub(r"[\s-]", "", given).upper()[:40]


def _shown(code: str) -> str:
    return f"{code[:4]}-{code[4:]}"


def _key(tenant: str, code: str) -> str:
    return keys.shared("link", tenant, "code", hashlib.sha256(f"{tenant}:{code}".encode()).hexdigest())


def _awaiting(moment: Moment) -> Change:
    until = iso(moment.now + timedelta(seconds=LIVES))

    def change(session: ShortTermMemory) -> ShortTermMemory:
        return session.model_copy(update={"variables": {**session.variables, AWAITED: until}})

    return change


def _awaited(moment: Moment) -> bool:
    until = moment.session.variables.get(AWAITED)
    if until is None:  # nearly always
        return False
    try:
        return moment.now < datetime.fromisoformat(str(until))
    except ValueError:
        return False


def _spoken(moment: Moment) -> Tongue:
    """A code says nothing of the language of who types it."""
    known = moment.session.variables
    said = known.get("language") or known.get("preferred_language") or moment.last.language_code or "th"
    return "en" if moment.tenant.speaks(str(said)[:2]) == "en" else "th"


def _say(name: str, language: Tongue, **platforms: str) -> str:
    return text(name, language, **{key: _PLATFORMS.get(one, {}).get(language, one) for key, one in platforms.items()})
