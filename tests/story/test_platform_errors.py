"""What each error of a platform leads to."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import aiohttp
import pytest
from msgspec import structs

from gateway import assembly
from gateway.adapters.base import Call
from gateway.adapters.line_sender import LineSender
from gateway.dead_letters import DeadLetters
from gateway.inbox.base import Policy
from gateway.inbox.redis import RedisInbox
from gateway.messages import BEGUN, Answer, InboundMessage, target_of
from gateway.outbox import Outbox, encode
from tests.house import ADMIN_KEY, House, house, shop
from tests.standins.line import monthly_limit, rate_limited
from tests.standins.model import Fault
from tests.standins.telegram import BLOCKED, refusal, too_many

SEND = "/sendMessage"
ANN, BEE = "U" + "a" * 32, "U" + "b" * 32


async def channels_of(home: House) -> dict[str, tuple[str, str | None]]:
    headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
    async with aiohttp.ClientSession() as http, http.get(f"{home.url}/api/v1/tenants", headers=headers) as response:
        rows = (await response.json())["items"]
    return {channel["name"]: (channel["state"], channel["detail"]) for channel in rows[0]["channels"]}


async def reasons(home: House) -> list[str]:
    client = assembly.inbox_client(home.settings, home.redis_url)
    inbox = RedisInbox(client, "test")
    letters = await DeadLetters(client, inbox).list("shop")
    await inbox.close()
    return [letter.reason for letter in letters]


async def test_a_rate_limit_is_waited_out_and_other_chats_go_on(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url) as home:
        home.telegram.next(replace(too_many(2), on=SEND))
        await home.telegram_says(55, "hello")
        await home.telegram.until(lambda: len(home.telegram.calls_to(SEND)) == 1)
        await home.telegram_says(66, "hello")
        await home.telegram.until(lambda: len(home.telegram_shows(66)) == 1)
        assert home.telegram_shows(55) == []
        await home.telegram.until(lambda: len(home.telegram_shows(55)) == 1)
        first, *_, last = [call for call in home.telegram.calls_to(SEND) if str(call.body.get("chat_id")) == "55"]
        assert last.at_monotonic - first.at_monotonic >= 2


async def test_a_blocked_user_costs_one_call_and_no_dead_letter(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url) as home:
        home.telegram.next(replace(refusal(403, BLOCKED), on=SEND))
        await home.telegram_says(55, "hello")
        await home.telegram.until(lambda: len(home.telegram.calls_to(SEND)) == 1)
        await home.quiet()
        assert await reasons(home) == []
        assert len(home.telegram.calls_to(SEND)) == 1


async def test_a_refused_token_marks_the_channel_and_keeps_its_messages(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url) as home:
        home.telegram.next(replace(refusal(401, "Unauthorized"), on=SEND))
        await home.telegram_says(55, "hello")
        await home.telegram.until(lambda: len(home.telegram.calls_to(SEND)) == 1)
        await home.until(lambda: channels_of(home), lambda found: found["telegram-main"][0] == "broken")
        assert (await channels_of(home))["line-main"] == ("ok", None)
        assert await reasons(home) == []
        assert await home.waiting() == 1


async def test_the_monthly_limit_stops_pushes_and_replies_go_on(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url) as home:
        spent = home.line.text_event(ANN, "hello", life=-1)
        home.line.next(monthly_limit(on="/push"))
        await home.line.deliver(home.line_hook(), spent)
        await home.until(lambda: reasons(home), lambda found: found == ["the channel's monthly quota is used up"])
        assert (await channels_of(home))["line-main"][0] == "quota"
        await home.line.deliver(home.line_hook(), home.line.text_event(BEE, "hello", life=-1))
        await home.until(lambda: reasons(home), lambda found: len(found) == 2)
        assert len(home.line.calls_to("/push")) == 1  # the second push was not even tried
        await home.line_says(ANN, "hello again")
        await home.line.until(lambda: len(home.line_shows(ANN)) == 1)


async def test_a_group_that_moved_is_followed(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url) as home:
        home.telegram.migrated["55"] = "-10055"
        await home.telegram_says(55, "hello")
        await home.telegram.until(lambda: len(home.telegram_shows(-10055)) == 1)


async def test_text_that_telegram_can_not_parse_goes_out_plain(tmp_path: Path, redis_url: str) -> None:
    faq = [{"questions": ["menu please"], "answer": "**Latte** 70"}]
    async with house(tmp_path, redis_url, {"shop": shop(faq=faq)}) as home:
        refused = refusal(400, "Bad Request: can't parse entities: Unsupported entity")
        home.telegram.next(replace(refused, on=SEND))
        await home.telegram_says(55, "menu please")
        await home.telegram.until(lambda: home.telegram_shows(55) == ["Latte 70"])


async def test_a_line_rate_limit_and_a_server_error_are_tried_again(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url) as home:
        home.line.next(rate_limited())
        await home.line_says(ANN, "hello")
        await home.line.until(lambda: len(home.line_shows(ANN)) == 1)
        home.line.next(Fault(status=500, on="/reply"))
        await home.line_says(BEE, "hello")
        await home.line.until(lambda: len(home.line_shows(BEE)) == 1)


async def test_a_reply_that_landed_but_was_not_heard_of_is_not_sent_again(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url) as home:
        home.line.next(Fault(cut=True, landed=True, on="/reply"))
        await home.line_says(ANN, "hello")
        await home.line.until(lambda: len(home.line.calls_to("/reply")) == 2)
        await home.quiet()
        assert len(home.line_shows(ANN)) == 1
        assert home.line.calls_to("/push") == []
        assert await reasons(home) == []


async def test_whether_a_reply_landed_is_asked_as_long_as_its_token_lives(
    tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More often than a message is tried otherwise, and without the pauses that grow."""
    monkeypatch.setattr("gateway.outbox.SETTLE_EVERY", 0.05)
    async with house(tmp_path, redis_url) as home:
        home.line.next(Fault(cut=True, landed=True, on="/reply"))
        home.line.next(Fault(status=503, on="/reply", times=5), Fault(cut=True, on="/reply", times=5))
        await home.line_says(ANN, "hello")
        await home.line.until(lambda: len(home.line.calls_to("/reply")) == 12)
        await home.quiet()
        assert len(home.line_shows(ANN)) == 1
        assert home.line.calls_to("/push") == []
        assert await reasons(home) == []


async def test_a_push_that_landed_but_was_not_heard_of_shows_once(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url) as home:
        home.line.next(Fault(cut=True, landed=True, on="/push"))
        await home.line.deliver(home.line_hook(), home.line.text_event(ANN, "hello", life=-1))
        await home.line.until(lambda: len(home.line.calls_to("/push")) == 2)
        await home.quiet()
        assert len(home.line_shows(ANN)) == 1


@pytest.mark.parametrize("way", ["reply", "push"])
async def test_what_another_process_had_begun_to_send_is_gone_on_with_and_never_sent_in_another_way(
    tmp_path: Path, redis_url: str, way: str
) -> None:
    """The HTTP side answered while Redis was away, LINE has it, and minutes later a worker takes it over."""
    async with house(tmp_path, redis_url) as home:
        body = {"replyToken": home.line.issue_token(ANN)} if way == "reply" else {"to": ANN}
        call = Call(
            way, {**body, "messages": [{"type": "text", "text": "hi"}]}, str(uuid4()) if way == "push" else None
        )
        message = InboundMessage(
            tenant="shop",
            channel="line-main",
            platform="line",
            event_id="e1",
            user_id=f"line:{ANN}",
            chat_id=ANN,
            text="hello",
            reply_token=body.get("replyToken"),
            received_at=time.time() - 300,
        )
        sender = LineSender(home.settings)
        await sender.send(home.tenants.all()[0], target_of(message), call)
        await sender.close()
        outbox = encode(Outbox(target_of(message), Answer("hi"), [call], flying=True))
        client = assembly.inbox_client(home.settings, home.redis_url)
        inbox = RedisInbox(client, "test")
        await inbox.put([(structs.replace(message, extra={BEGUN: outbox.decode()}), Policy())])
        await inbox.close()
        await home.quiet()
        assert home.line_shows(ANN) == ["hi"]
        why = "an earlier try may have answered: its reply token ran out before that could be settled"
        assert await reasons(home) == ([why] if way == "reply" else [])
