"""Is each channel really connected? After every load of a tenant's file and every five minutes one process asks: does
the token work, is the webhook set and ours, does a signed delivery through our public address arrive?"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import logging
import time

import aiohttp
import orjson
from redis.asyncio import Redis
from redis.exceptions import RedisError

from config.stopping import stopped
from config.tenants import LineChannel, TelegramChannel, Tenant, Tenants
from gateway.adapters.line_sender import LineSender
from gateway.adapters.telegram_sender import TelegramSender
from gateway.bot_ids import BotIds
from gateway.channel_states import ChannelStates, Trouble
from gateway.errors import ChannelBroken, SendFault
from gateway.ledger import Ledger
from gateway.webhook_setup import look, webhook_url
from memory import keys

log = logging.getLogger(__name__)

EVERY = 300.0  # seconds between probes of a channel
LOOK = 2.0  # seconds between looks for a tenant's file that was loaded
AT_ONCE = 4
TIMEOUT = aiohttp.ClientTimeout(total=10, connect=5)
FOUND_BY_PROBE = (Trouble.BROKEN, Trouble.WEBHOOK, Trouble.CUT_OFF, Trouble.NEARLY)


class Probes:
    """`public_url`: None where platforms have no way to us."""

    def __init__(
        self,
        client: Redis,
        tenants: Tenants,
        states: ChannelStates,
        bot_ids: BotIds,
        ledger: Ledger,
        line: LineSender,
        telegram: TelegramSender,
        public_url: str | None,
        *,
        every: float = EVERY,
    ) -> None:
        self._redis = client
        self._tenants = tenants
        self._states = states
        self._bot_ids = bot_ids
        self._ledger = ledger
        self._line = line
        self._telegram = telegram
        self._public_url = public_url
        self._every = every
        self._next: dict[tuple[str, str], tuple[str, float]] = {}  # the file's mark, when to look again (monotonic)
        self._marks: dict[str, tuple[Tenant, str]] = {}
        self._calm: dict[str, tuple[Tenant, float]] = {}  # before then nothing of this tenant is due
        self._room = asyncio.Semaphore(AT_ONCE)

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                await asyncio.gather(*(self._in_turn(tenant, name) for tenant, name in self._due()))
            except (RedisError, OSError) as error:
                log.debug("no probe: %s", type(error).__name__)
            await stopped(stop, min(LOOK, self._every))

    def _due(self) -> list[tuple[Tenant, str]]:
        now, due = time.monotonic(), []
        for tenant in self._tenants.all():
            calm = self._calm.get(tenant.id)
            if calm is not None and calm[0] is tenant and now < calm[1]:
                continue
            mark = self._mark(tenant)
            for name, channel in tenant.channels.items():
                known, at = self._next.get((tenant.id, name), ("", 0.0))
                if isinstance(channel, LineChannel | TelegramChannel) and (known != mark or at <= now):
                    due.append((tenant, name))
                    self._next[tenant.id, name] = mark, now + self._every / 5
            later = [self._next[key][1] for name in tenant.channels if (key := (tenant.id, name)) in self._next]
            self._calm[tenant.id] = tenant, min(later, default=now + self._every)
        return due

    async def _in_turn(self, tenant: Tenant, name: str) -> None:
        """Whoever is first with a file, or when the time has come, is the one who asks."""
        key = keys.shared("probed", tenant.id, name, self._mark(tenant))
        async with self._room:
            if await self._redis.set(key, 1, nx=True, px=int(self._every * 1000)):
                # Whoever asked is the next to ask; the others look sooner whether it still lives.
                self._next[tenant.id, name] = self._mark(tenant), time.monotonic() + self._every
                await self.probe(tenant, name)

    def _mark(self, tenant: Tenant) -> str:
        """Made once each time the file is loaded: a look at a thousand tenants would take a tenth of a second."""
        known = self._marks.get(tenant.id)
        if known is None or known[0] is not tenant:
            known = self._marks[tenant.id] = tenant, mark_of(tenant)
        return known[1]

    async def probe(self, tenant: Tenant, name: str) -> dict[Trouble, str]:
        """What is wrong with one channel; told to the operator. Raises RedisError."""
        found: dict[Trouble, str] = {}
        channel = tenant.channels[name]
        try:
            if isinstance(channel, LineChannel):
                await self._ask_line(tenant, name, found)
            else:
                await self._telegram.call(tenant, name, "getMe", {})
            if self._public_url is not None or (isinstance(channel, TelegramChannel) and channel.mode == "polling"):
                state = await look(tenant, name, self._public_url, self._line, self._telegram)
                if not state.ok:
                    found[Trouble.WEBHOOK] = state.note
        except ChannelBroken as error:
            found[Trouble.BROKEN] = str(error)
        except SendFault as error:
            log.warning("channel not probed: %s", error, extra={"tenant": tenant.id, "channel": name})
            return found
        if self._public_url is not None and (why := await self._deliver(tenant, name)):
            found[Trouble.CUT_OFF] = why
        await self._states.probed(tenant.id, name, FOUND_BY_PROBE, found)
        return found

    async def _ask_line(self, tenant: Tenant, name: str, found: dict[Trouble, str]) -> None:
        if bot_id := await self._line.bot_id(tenant, name):
            await self._bot_ids.note(tenant, name, bot_id)
        if quota := await self._line.quota(tenant, name):
            await self._ledger.note_quota(tenant, name, *quota)
            month = await self._ledger.of(tenant, name)
            if month.nearly_spent:
                found[Trouble.NEARLY] = (
                    f"{max(month.used or 0, month.paid)} of the month's {month.limit} pushes are used"
                )

    async def _deliver(self, tenant: Tenant, name: str) -> str | None:
        """Sends an empty webhook to ourselves through the public address, as the platform would. None: it arrived."""
        channel = tenant.channels[name]
        headers = {"Content-Type": "application/json"}
        if isinstance(channel, LineChannel):
            body = orjson.dumps({"events": []})
            digest = hmac.digest(channel.channel_secret.get_secret_value().encode(), body, "sha256")
            headers["X-Line-Signature"] = base64.b64encode(digest).decode()
        elif isinstance(channel, TelegramChannel) and channel.mode == "webhook" and channel.webhook_secret is not None:
            body = b"{}"
            headers["X-Telegram-Bot-Api-Secret-Token"] = channel.webhook_secret.get_secret_value()
        else:
            return None
        url = webhook_url(self._public_url or "", tenant, name)
        try:
            async with (
                aiohttp.ClientSession(timeout=TIMEOUT, trust_env=True) as http,
                http.post(url, data=body, headers=headers, allow_redirects=False) as response,
            ):
                status = response.status
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            return f"our own delivery to {url} does not arrive ({type(error).__name__}): check PUBLIC_URL and the proxy"
        return None if status == 200 else f"our own delivery to {url} got {status}: something else answers there"


def mark_of(tenant: Tenant) -> str:
    """Changes with the tenant's file, its secrets included."""
    digest = hashlib.sha256(tenant.model_dump_json().encode())
    for channel in tenant.channels.values():
        for field in ("channel_secret", "channel_access_token", "bot_token", "webhook_secret"):
            secret = getattr(channel, field, None)
            digest.update(b"\0" + (secret.get_secret_value().encode() if secret else b""))
    return digest.hexdigest()[:16]
