"""Polling against a local Bot API: nothing is confirmed that was not handed on, and every failure is waited out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from config.settings import Settings
from config.tenants import Tenant
from gateway.adapters import telegram_polling
from gateway.adapters.telegram_outcome import Conflict
from gateway.adapters.telegram_polling import poll
from gateway.adapters.telegram_sender import TelegramSender
from gateway.errors import ChannelBroken, InboxUnavailable
from gateway.messages import InboundMessage
from tests.standins import Fault, TelegramStandIn
from tests.standins.telegram import bad_gateway, refusal, too_many

TOKEN = "1000001:first-test-bot"
SHOP = Tenant.model_validate(
    {
        "id": "shop",
        "name": "Shop",
        "channels": {
            "tg": {"platform": "telegram", "bot_token": TOKEN, "mode": "polling"},
            "tg-wrong": {"platform": "telegram", "bot_token": "1000002:revoked", "mode": "polling"},
        },
    }
)


class Offsets:
    def __init__(self, offset: int | None = None) -> None:
        self.offset = offset

    async def load(self, tenant: str, channel: str) -> int | None:
        return self.offset

    async def save(self, tenant: str, channel: str, offset: int) -> None:
        self.offset = offset


class Inbox:
    """Takes messages, after failing as often as it was told to."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.texts: list[str] = []
        self.news = asyncio.Event()

    async def put(self, messages: Sequence[InboundMessage]) -> None:
        if self.failures:
            self.failures -= 1
            raise InboxUnavailable("The queue can't be reached.")
        self.texts += [message.text for message in messages]
        self.news.set()

    async def until(self, count: int) -> None:
        async with asyncio.timeout(60):
            while len(self.texts) < count:
                self.news.clear()
                await self.news.wait()


@pytest.fixture
async def api() -> AsyncIterator[TelegramStandIn]:
    async with TelegramStandIn((TOKEN,)) as standin:
        yield standin


@asynccontextmanager
async def polling(api: TelegramStandIn, inbox: Inbox, offsets: Offsets, channel: str = "tg") -> AsyncIterator[None]:
    """Polls in the background; afterwards stops it, which must end it soon and well."""
    sender = TelegramSender(Settings(telegram_api_base=api.url))
    stop = asyncio.Event()
    task = asyncio.create_task(
        poll(SHOP, channel, sender, inbox.put, stop, offset_store=offsets, pause=0.01, count=counted.update)
    )
    try:
        yield
    finally:
        stop.set()
        async with asyncio.timeout(60):
            await task
        await sender.close()


counted: dict[str, int] = {}


async def test_updates_are_handed_on_in_order_and_confirmed(api: TelegramStandIn) -> None:
    inbox, offsets = Inbox(), Offsets()
    for text in ("a", "b"):
        api.push_update(api.text_update(111, text))
    async with polling(api, inbox, offsets):
        await inbox.until(2)
        api.push_update(api.text_update(111, "c"))
        await inbox.until(3)
        await api.until(lambda: offsets.offset == api.calls[-1].body.get("offset"))
    assert inbox.texts == ["a", "b", "c"]
    assert offsets.offset == 310_000_004
    assert not api.bots[TOKEN].updates


async def test_an_update_is_not_confirmed_before_it_is_in_the_inbox(api: TelegramStandIn) -> None:
    inbox, offsets = Inbox(failures=2), Offsets()
    api.push_update(api.text_update(111, "kept"))
    async with polling(api, inbox, offsets):
        await inbox.until(1)
    assert inbox.texts == ["kept"]
    assert [call.body.get("offset") for call in api.calls_to("getUpdates")][:3] == [None, None, None]


async def test_polling_goes_on_where_another_worker_left_off(api: TelegramStandIn) -> None:
    first, second = api.text_update(111, "done"), api.text_update(111, "new")
    for update in (first, second):
        api.push_update(update)
    inbox = Inbox()
    async with polling(api, inbox, Offsets(second["update_id"])):
        await inbox.until(1)
    assert inbox.texts == ["new"]


async def test_an_update_that_makes_no_sense_is_counted_and_confirmed(api: TelegramStandIn) -> None:
    inbox, offsets = Inbox(), Offsets()
    counted.clear()
    api.push_update({"update_id": 310_000_001, "message": {"text": 5, "new": [None]}})
    api.bots[TOKEN].last_update = 310_000_001
    api.push_update(api.text_update(111, "after"))
    async with polling(api, inbox, offsets):
        await inbox.until(1)
    assert inbox.texts == ["after"]
    assert counted == {"no_chat": 1}
    assert offsets.offset == 310_000_003


@pytest.mark.parametrize(
    "fault",
    [
        too_many(1, parameters=False),
        bad_gateway(),
        Fault(cut=True),
        Fault(200, {"ok": True, "result": "odd"}),
        refusal(500, "Internal Server Error"),
        refusal(
            409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
        ),
    ],
)
async def test_a_failure_is_waited_out(api: TelegramStandIn, fault: Fault) -> None:
    inbox = Inbox()
    api.next(fault)
    api.push_update(api.text_update(111, "hi"))
    async with polling(api, inbox, Offsets()):
        await inbox.until(1)
    assert inbox.texts == ["hi"]


async def ends_with(api: TelegramStandIn, channel: str) -> str:
    sender = TelegramSender(Settings(telegram_api_base=api.url))
    with pytest.raises(ChannelBroken) as caught:
        await poll(SHOP, channel, sender, Inbox().put, asyncio.Event(), offset_store=Offsets(), pause=0.01)
    await sender.close()
    return str(caught.value)


async def test_a_registered_webhook_ends_polling_with_the_remedy(api: TelegramStandIn) -> None:
    api.bots[TOKEN].webhook["url"] = "https://example.com/hook"
    assert "chat-chat webhooks set" in await ends_with(api, "tg")
    assert api.bots[TOKEN].webhook["url"] == "https://example.com/hook"


async def test_a_refused_token_ends_polling(api: TelegramStandIn) -> None:
    assert "401" in await ends_with(api, "tg-wrong")


async def test_an_idle_long_poll_ends_at_once_when_told_to(api: TelegramStandIn) -> None:
    async with polling(api, Inbox(), Offsets()):
        await api.until(lambda: bool(api.calls_to("getUpdates")))
    assert api.calls_to("getUpdates")[0].answered_status == 0


async def test_after_a_week_of_silence_numbers_may_start_anew(api: TelegramStandIn) -> None:
    now = 0.0
    offsets, inbox, stop = Offsets(999), Inbox(), asyncio.Event()
    sender = TelegramSender(Settings(telegram_api_base=api.url))

    def clock() -> float:
        nonlocal now
        now += 4 * 86_400
        return now

    api.push_update({**api.text_update(111, "low"), "update_id": 5})
    task = asyncio.create_task(poll(SHOP, "tg", sender, inbox.put, stop, offset_store=offsets, clock=clock, pause=0.01))
    api.next(refusal(500, "Internal Server Error"))
    await inbox.until(1)
    stop.set()
    await task
    await sender.close()
    assert inbox.texts == ["low"]


class Answers:
    """Gives one answer after another to `getUpdates`, and ends with the last."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.stop = list(answers), asyncio.Event()

    async def call(self, *_: Any) -> Any:
        answer = self.answers.pop(0)
        if not self.answers:
            self.stop.set()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def poll(self, inbox: Inbox, **more: Any) -> None:
        sender = cast("TelegramSender", self)
        await poll(SHOP, "tg", sender, inbox.put, self.stop, offset_store=Offsets(), **more)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(telegram_polling.asyncio, "sleep", sleep)
    return waited


UNNUMBERED: dict[str, Any] = {"message": {"text": "hi", "chat": {"id": 1, "type": "private"}, "from": {"id": 1}}}


@pytest.mark.parametrize("answer", [[UNNUMBERED], "odd", None, []])
async def test_what_comes_at_once_and_confirms_nothing_is_not_asked_for_at_once_again(
    answer: Any, waits: list[float]
) -> None:
    await Answers(answer, answer, answer, [{**UNNUMBERED, "update_id": 7}], answer, []).poll(Inbox())
    assert waits[:4] == [1.0, 2.0, 4.0, 1.0]


async def test_an_update_without_a_number_is_handed_on_however_deep_it_is_nested(waits: list[float]) -> None:
    deep: list[Any] = []
    for _ in range(300):
        deep = [deep]
    inbox = Inbox()
    await Answers([{"message": {**UNNUMBERED["message"], "x": deep}}], []).poll(inbox)
    assert inbox.texts == ["hi"]


async def test_who_polls_the_bot_besides_is_told_until_a_long_poll_is_left_alone(
    waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str | None] = []

    async def rival(why: str | None) -> None:
        told.append(why)

    cut = Conflict("Telegram answered 409: Conflict: terminated by other getUpdates request")
    between = [{**UNNUMBERED, "update_id": 7}]  # a message that we got says nothing of those that we did not
    await Answers(cut, cut, [], []).poll(Inbox(), rival=rival)
    assert told == []
    await Answers(cut, between, cut, cut, []).poll(Inbox(), rival=rival)
    assert [why is not None and "stop that one" in why for why in told] == [True]
    monkeypatch.setattr(telegram_polling, "_AT_ONCE", 0.0)
    await Answers([], []).poll(Inbox(), rival=rival)
    assert told[1:] == [None, None]
