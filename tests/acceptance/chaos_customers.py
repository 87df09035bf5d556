"""The customers of a chaos run, and the platforms that bring what they write to either door until it is taken."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from tests.acceptance.processes import line_event, line_request, telegram_request, telegram_update

PATIENCE = {"line": 2.0, "telegram": 10.0}  # seconds a platform waits for a webhook's answer
TWICE = 0.1  # of the webhooks


@dataclass(frozen=True)
class Shop:
    """A tenant with a channel on each platform, credentials of its own."""

    number: int

    @property
    def id(self) -> str:
        return f"shop{self.number}"

    @property
    def line_secret(self) -> str:
        return f"line-secret-{self.number}"

    @property
    def line_bot(self) -> str:
        return f"U{self.number:032x}"

    @property
    def telegram_secret(self) -> str:
        return f"telegram-secret-{self.number}"

    @property
    def telegram_token(self) -> str:
        return f"{1000000 + self.number}:test-bot-{self.number}"

    @property
    def file(self) -> dict[str, Any]:
        line = {"channel_secret": self.line_secret, "channel_access_token": f"line-token-{self.number}"}
        telegram = {"bot_token": self.telegram_token, "webhook_secret": self.telegram_secret}
        return {
            "name": f"Shop {self.number}",
            "language": "en",
            "channels": {
                "line-main": {"platform": "line", **line},
                "telegram-main": {"platform": "telegram", **telegram},
            },
            "understanding": {"policy": "never"},
            "behaviour": {"debounce_ms": 0, "rate_limit_per_minute": 0},
        }

    @property
    def options(self) -> list[str]:
        """For the stand-ins' process."""
        channel = f"line-token-{self.number}:{self.line_secret}:{self.line_bot}:165000000{self.number}"
        return ["--line-channel", channel, "--telegram-token", self.telegram_token]


def shops(count: int) -> list[Shop]:
    return [Shop(number) for number in range(1, count + 1)]


@dataclass(frozen=True)
class Customer:
    shop: Shop
    platform: str
    number: int

    @property
    def chat(self) -> str:
        return f"U{self.number:032x}" if self.platform == "line" else str(self.number)


@dataclass
class Written:
    """One message, and when it was first brought and first taken (seconds since 1970)."""

    mark: str
    customer: Customer
    event: dict[str, Any]
    event_id: str
    sent_at: float = 0.0
    accepted_at: float | None = None
    tries: int = 0
    repeats: list[float] = field(default_factory=list)


class Crowd:
    def __init__(
        self, seed: int, tenants: Sequence[Shop], users: int, doors: Sequence[str], http: aiohttp.ClientSession
    ) -> None:
        self._random = random.Random(f"crowd {seed}")
        self._doors = doors
        self._http = http
        self.customers = [
            Customer(tenants[number % len(tenants)], ("line", "telegram")[number // len(tenants) % 2], 70_000 + number)
            for number in range(users)
        ]
        self.written: list[Written] = []
        self.statuses: dict[str, int] = {}
        self._under_way: set[asyncio.Task[None]] = set()

    async def write(self, messages: int, seconds: float) -> None:
        """All messages, at a constant rate."""
        began = time.monotonic()
        for number in range(messages):
            await asyncio.sleep(max(0.0, began + number * seconds / messages - time.monotonic()))
            one = self._new(number)
            self.written.append(one)
            late = self._random.uniform(0.0, seconds / 2) if self._random.random() < 0.5 else 0.0
            again = late if self._random.random() < TWICE else None
            task = asyncio.create_task(self._bring(one, again))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def all_accepted(self) -> None:
        if self._under_way:
            await asyncio.wait(set(self._under_way), timeout=120)

    def _new(self, number: int) -> Written:
        customer, mark = self._random.choice(self.customers), f"m{number:05d}"
        text = f"please note {mark}"
        if customer.platform == "line":
            event = line_event(customer.chat, text)
            return Written(mark, customer, event, event["webhookEventId"])
        event = telegram_update(int(customer.chat), text, 500_000_000 + number)
        return Written(mark, customer, event, str(event["update_id"]))

    async def _bring(self, one: Written, again: float | None) -> None:
        one.sent_at = time.time()
        while not await self._post(one, redelivery=one.tries > 0):
            await asyncio.sleep(self._random.uniform(0.3, 2.0))
        one.accepted_at = time.time()
        if again is not None:
            await asyncio.sleep(again)
            one.repeats.append(time.time())
            await self._post(one, redelivery=True)

    async def _post(self, one: Written, *, redelivery: bool) -> bool:
        one.tries += 1
        shop, platform = one.customer.shop, one.customer.platform
        if platform == "line":
            event = {**one.event, "deliveryContext": {"isRedelivery": redelivery}}
            body, headers = line_request(event, shop.line_secret, shop.line_bot)
        else:
            body, headers = telegram_request(one.event, shop.telegram_secret)
        url = f"{self._random.choice(self._doors)}/webhooks/{platform}/{shop.id}/{platform}-main"
        status = "none"
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):
            patience = aiohttp.ClientTimeout(total=PATIENCE[platform])
            async with self._http.post(url, data=body, headers=headers, timeout=patience) as answer:
                await answer.read()
                status = str(answer.status)
        self.statuses[status] = self.statuses.get(status, 0) + 1
        return status == "200"
