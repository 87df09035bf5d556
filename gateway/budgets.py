"""What a tenant may spend on its language model: money and tokens, a day and a month of its own time zone.

Each call of a tenant that has a limit is asked for before it is made, in one step for all workers, with what it is
likely to take; what it took is settled afterwards. So calls under way count, and what a worker took along when it died
counts as spent. Without Redis nobody knows what is left: then such a tenant's model is not asked. Speech and vectors
that are asked of an endpoint count as well (`gateway/metered.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from msgspec import structs
from redis.asyncio import Redis
from redis.exceptions import RedisError

from config.tenants import LLM, Tenant
from memory import keys
from processors.llm import (
    Access,
    ChatModel,
    ChatRequest,
    Completion,
    LLMOverBudget,
    LLMUnavailable,
    Usage,
)
from processors.prices import DEAR, Prices

log = logging.getLogger(__name__)

KEPT_FOR = 100 * 86_400  # seconds
NANO = 1_000_000_000
_ANSWER = 1000  # tokens that an answer is taken for where the request sets no bound
_PICTURE = 1500  # tokens
_BYTES = 3  # of text a token, rather too few than too many: a Thai letter, four Latin ones

# The hash of one month: `usd` (billionths of a dollar) and `tokens`, and the same of each day. What is asked for is
# added at once. ARGV: day, dollars, tokens, the limits of dollars a day, a month, of tokens a day, a month (-1: none),
# seconds to keep. Gives the period whose limit does not allow it, and whether that was told.
_RESERVE = """
local day = ARGV[1]
local asked = {tonumber(ARGV[2]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[3])}
local fields = {'usd:' .. day, 'usd', 'tokens:' .. day, 'tokens'}
local spans = {day, 'month', day, 'month'}
for i = 1, 4 do
  local limit = tonumber(ARGV[3 + i])
  local spent = tonumber(redis.call('HGET', KEYS[1], fields[i]) or '0')
  if limit >= 0 and spent + asked[i] > limit then
    local told = redis.call('HEXISTS', KEYS[1], 'told:' .. spans[i])
    return {spans[i], told}
  end
end
for i = 1, 4 do
  redis.call('HINCRBY', KEYS[1], fields[i], asked[i])
end
redis.call('EXPIRE', KEYS[1], ARGV[8])
return {'', 0}
"""

Told = Callable[[Tenant, str, str], Awaitable[None]]  # the tenant, `day` or `month`, and that period's own name


@dataclass(frozen=True, slots=True)
class Standing:
    """How a tenant stands with its limits. Dollars and tokens; limits are None where there are none."""

    day_usd: float
    month_usd: float
    day_tokens: int
    month_tokens: int
    llm: LLM

    @property
    def spent(self) -> bool:
        """Whether a limit is reached."""
        have = (self.day_usd, self.month_usd, self.day_tokens, self.month_tokens)
        return any(limit is not None and value >= limit for value, limit in zip(have, _limits(self.llm), strict=True))


@dataclass(slots=True)
class Hold:
    """What was set aside for one call, and what its answers took."""

    tenant: str
    key: str
    day: str
    nano: int
    tokens: int
    access: Access
    used: list[tuple[str, Usage]] = field(default_factory=list)
    begun: bool = False  # something of an answer came


class Budgets:
    """One for a process; without a client nothing is allowed to those that have limits. `told` is awaited once a day or
    month whose limit was met, by whichever worker meets it."""

    def __init__(
        self,
        client: Redis | None,
        tenant_of: Callable[[str], Tenant | None],
        prices: Prices,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._redis: Any = client
        self._tenant_of = tenant_of
        self._prices = prices
        self._clock = clock
        self._script = client.register_script(_RESERVE) if client else None
        self._settling: set[asyncio.Task[None]] = set()
        self.told: Told | None = None

    def limits(self, access: Access) -> Tenant | None:
        """The tenant on whose account it is, where it has limits."""
        tenant = self._tenant_of(access.tenant)
        return tenant if tenant is not None and access.api_key and _limited(tenant.llm) else None

    async def reserve(self, request: ChatRequest) -> Hold | None:
        """None: the tenant has no limits. Raises LLMOverBudget; LLMUnavailable where nobody knows what is left."""
        if self.limits(request.access) is None:  # nor is its size of interest
            return None
        return await self.set_aside(request.access, _size(request), request.max_tokens or _ANSWER)

    async def set_aside(self, access: Access, prompt: int, answer: int = 0, seconds: float = 0.0) -> Hold | None:
        """`reserve` of a call that takes these tokens, or seconds of sound."""
        tenant = self.limits(access)
        if tenant is None:
            return None
        price = self._prices.of(access.model) or DEAR
        local = self._clock().astimezone(ZoneInfo(tenant.timezone))
        month, day = f"{local:%Y-%m}", f"{local:%d}"
        nano = round(price.of(prompt, answer, seconds=seconds) * NANO)
        hold = Hold(tenant.id, _key(tenant.id, month), day, nano, prompt + answer, access)
        if self._script is None:
            raise LLMUnavailable("nobody knows what is left of the budget")
        limits = [-1 if limit is None else round(limit) for limit in _whole(tenant.llm)]
        try:
            over, told = await self._script(keys=[hold.key], args=[day, hold.nano, hold.tokens, *limits, KEPT_FOR])
        except (RedisError, OSError) as error:
            raise LLMUnavailable(f"nobody knows what is left of the budget: {type(error).__name__}") from None
        if not over:
            hold.access = replace(access, on_usage=lambda model, usage: hold.used.append((model, usage)))
            return hold
        span = "month" if over == b"month" else "day"
        if not told:
            await self._tell(tenant, hold.key, over.decode(), span, month if span == "month" else f"{month}-{day}")
        raise LLMOverBudget(f"the limit of the {span} is reached")

    def settle(self, hold: Hold, *, failed: bool) -> None:
        """Mends what was set aside, beside whatever comes next. What failed before anything came cost nothing, as far
        as anybody can tell."""
        nano = tokens = 0
        for model, usage in hold.used:
            cost = self._prices.cost(model, usage)
            tokens += usage.prompt_tokens + usage.completion_tokens
            if cost is None:
                log.warning("no price is known: its calls cost nothing in the budget", extra={"model": model})
            nano += round((cost or 0.0) * NANO)
        if tokens == nano == 0 and (hold.begun or not failed):
            return  # it was answered, and nobody says what it took: the guess stands
        task = asyncio.create_task(self._add(hold, nano - hold.nano, tokens - hold.tokens))
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)

    async def of(self, tenant: Tenant) -> Standing | None:
        """Today and this month; None: no limits. Raises RedisError."""
        if not _limited(tenant.llm):
            return None
        local = self._clock().astimezone(ZoneInfo(tenant.timezone))
        day = f"{local:%d}"
        fields = [f"usd:{day}", "usd", f"tokens:{day}", "tokens"]
        found = [int(raw or 0) for raw in await self._redis.hmget(_key(tenant.id, f"{local:%Y-%m}"), fields)]
        return Standing(found[0] / NANO, found[1] / NANO, found[2], found[3], tenant.llm)

    async def close(self) -> None:
        if self._settling:
            await asyncio.wait(self._settling, timeout=1.0)

    async def _add(self, hold: Hold, nano: int, tokens: int) -> None:
        pipe = self._redis.pipeline(transaction=True)
        for name in ("usd", f"usd:{hold.day}"):
            pipe.hincrby(hold.key, name, nano)
        for name in ("tokens", f"tokens:{hold.day}"):
            pipe.hincrby(hold.key, name, tokens)
        try:
            await pipe.execute()
        except (RedisError, OSError) as error:
            log.warning(
                "a call stays counted as it was guessed: %s", type(error).__name__, extra={"tenant": hold.tenant}
            )

    async def _tell(self, tenant: Tenant, key: str, span: str, kind: str, period: str) -> None:
        log.warning("the budget of the %s is used up: rules answer", kind, extra={"tenant": tenant.id})
        if self.told is None:
            return
        await self.told(tenant, kind, period)
        try:
            pipe = self._redis.pipeline(transaction=True)
            pipe.hset(key, f"told:{span}", 1).expire(key, KEPT_FOR)
            await pipe.execute()
        except (RedisError, OSError) as error:
            log.debug("staff may be told of a spent budget again: %s", type(error).__name__)


class Budgeted:
    """A ChatModel over another, whose calls keep to the tenants' limits."""

    def __init__(self, model: ChatModel, budgets: Budgets) -> None:
        self._model = model
        self._budgets = budgets

    def complete(self, request: ChatRequest) -> Coroutine[Any, Any, Completion]:
        return self._whole(request) if self._budgets.limits(request.access) else self._model.complete(request)

    async def _whole(self, request: ChatRequest) -> Completion:
        hold = await self._budgets.reserve(request)
        if hold is None:
            return await self._model.complete(request)
        failed = True
        try:
            completion = await self._model.complete(structs.replace(request, access=hold.access))
            failed = False
            return completion
        finally:
            self._budgets.settle(hold, failed=failed)

    def stream(self, request: ChatRequest) -> AsyncIterator[str | Completion]:
        return self._held(request) if self._budgets.limits(request.access) else self._model.stream(request)

    async def _held(self, request: ChatRequest) -> AsyncIterator[str | Completion]:
        hold = await self._budgets.reserve(request)
        pieces = self._model.stream(structs.replace(request, access=hold.access) if hold else request)
        failed = True
        try:
            async for piece in pieces:
                if hold is not None:
                    hold.begun = True
                yield piece
            failed = False
        finally:
            close = getattr(pieces, "aclose", None)
            if close is not None:
                await close()
            if hold is not None:
                self._budgets.settle(hold, failed=failed)


def _limits(llm: LLM) -> tuple[float | None, ...]:
    return llm.daily_budget_usd, llm.monthly_budget_usd, llm.daily_tokens, llm.monthly_tokens


def _limited(llm: LLM) -> bool:
    return not (llm.daily_budget_usd is llm.monthly_budget_usd is llm.daily_tokens is llm.monthly_tokens is None)


def _whole(llm: LLM) -> tuple[float | None, ...]:
    """The limits as they are counted."""
    day, month, *tokens = _limits(llm)
    return *(None if limit is None else limit * NANO for limit in (day, month)), *tokens


def _size(request: ChatRequest) -> int:
    """Tokens of the request, rather too many."""
    total = 0
    for message in request.messages:
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
        for part in parts:
            text = part.get("text") if isinstance(part, dict) else None
            total += len(text.encode("utf-8", "replace")) // _BYTES + 5 if isinstance(text, str) else _PICTURE
    return total + sum(len(str(tool)) // _BYTES for tool in request.tools)


def _key(tenant: str, month: str) -> str:
    return keys.shared("budget", tenant, month)
