"""How much one person may write: more than the shop's limit gets one polite word, then silence until the minute is
over."""

from __future__ import annotations

import logging
import time
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from gateway.inbox.base import event_of
from gateway.messages import RELAYED, Answer, Kind
from gateway.moment import Done, Moment
from gateway.patience import is_press
from gateway.texts import text
from memory import keys

log = logging.getLogger(__name__)

WINDOW = 60  # seconds


class RateLimit:
    """Counts by the minute of receipt, presses of buttons apart from what is typed: a press takes nothing from what may
    be written, and one that fetches an answer is never counted. A message counts once however often its turn is tried.
    Without Redis there is no limit."""

    def __init__(self, client: Redis) -> None:
        self._redis = client

    async def settle(self, moment: Moment) -> Done | None:
        limit, last = moment.tenant.behaviour.rate_limit_per_minute, moment.last
        free = limit == 0 or last.platform == "terminal" or last.kind in RELAYED or is_press(last)
        if free or moment.tenant.is_staff_chat(last.channel, last.chat_id):
            return None
        try:
            over = await self._before(moment) >= limit
            if not over:
                return None
            first = await self._first_over(moment)
        except (RedisError, OSError) as error:
            log.debug("messages are not counted: %s", type(error).__name__)
            return None
        if last.platform == "web":  # each request waits for an answer of its own
            return Done(Answer(text("slow_down", moment.language), status=429))
        return Done(Answer(text("slow_down", moment.language)) if first else None)

    async def _before(self, moment: Moment) -> int:
        """How many messages of the person stand before this turn's in its minute."""
        key = _key(moment)
        # In the order of counting: messages that came together were received at the same time.
        now = time.time()
        times = {event_of(message): now + n * 1e-5 for n, message in enumerate(moment.messages)}
        pipe: Any = self._redis.pipeline(transaction=False)
        pipe.zadd(key, times, nx=True).expire(key, 2 * WINDOW).zrank(key, event_of(moment.messages[0]))
        *_, rank = await pipe.execute()
        return int(rank)

    async def _first_over(self, moment: Moment) -> bool:
        """Whether this turn is the one that hears of it: the first of its minute, also at a second try."""
        event = event_of(moment.messages[0])
        told: Any = await self._redis.set(f"{_key(moment)}:told", event, nx=True, get=True, ex=2 * WINDOW)
        return told is None or told.decode() == event


def _key(moment: Moment) -> str:
    first = moment.messages[0]
    person = first.sender_id or first.user_id
    what = "presses" if first.kind is Kind.POSTBACK else "rate"
    return keys.shared(what, moment.tenant.id, person, str(int(first.received_at // WINDOW)))
