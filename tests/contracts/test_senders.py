"""What the senders plan, and how they take each answer of a platform: against local servers with its rules."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import aiohttp
import pytest

from config.settings import Settings
from config.tenants import Tenant
from gateway.adapters.base import Call, Sender, Sent
from gateway.adapters.line_sender import LineSender
from gateway.adapters.telegram_sender import TelegramSender
from gateway.errors import (
    ChannelBroken,
    ChatMoved,
    QuotaSpent,
    SendAmbiguous,
    SendFault,
    SendRefused,
    SendRetry,
    TokenSpent,
    Unreachable,
)
from gateway.messages import Answer, InboundMessage, Kind, QuickReply, Target
from tests.standins import Fault, LineStandIn, TelegramStandIn
from tests.standins.line import monthly_limit, rate_limited
from tests.standins.telegram import BLOCKED, DEACTIVATED, KICKED, bad_gateway, refusal, too_many

NOW = 1_793_000_300.0
USER = "U" + "1a" * 16
GROUP = "C" + "2b" * 16
BOT_TOKEN = "1000001:first-test-bot"
SHOP = Tenant.model_validate(
    {
        "id": "shop",
        "name": "Shop",
        "channels": {
            "line": {"platform": "line", "channel_secret": "line-secret-1", "channel_access_token": "line-token-1"},
            "line-free": {
                "platform": "line",
                "channel_secret": "line-secret-1",
                "channel_access_token": "line-token-1",
                "allow_push": False,
            },
            "line-wrong": {"platform": "line", "channel_secret": "s", "channel_access_token": "revoked-token"},
            "tg": {"platform": "telegram", "bot_token": BOT_TOKEN, "webhook_secret": "hook"},
            "tg-wrong": {"platform": "telegram", "bot_token": "1000002:revoked", "webhook_secret": "hook"},
            "tg-odd": {"platform": "telegram", "bot_token": "no-token-at-all", "webhook_secret": "hook"},
        },
    }
)
QUICK = aiohttp.ClientTimeout(total=0.3, connect=0.2)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
async def line_api() -> AsyncIterator[LineStandIn]:
    async with LineStandIn(clock=lambda: NOW) as standin:
        yield standin


@pytest.fixture
async def line(line_api: LineStandIn) -> AsyncIterator[LineSender]:
    sender = LineSender(Settings(line_api_base=line_api.url))
    yield sender
    await sender.close()


@pytest.fixture
async def telegram_api() -> AsyncIterator[TelegramStandIn]:
    async with TelegramStandIn((BOT_TOKEN,), clock=lambda: NOW) as standin:
        yield standin


@pytest.fixture
async def telegram(telegram_api: TelegramStandIn) -> AsyncIterator[TelegramSender]:
    sender = TelegramSender(Settings(telegram_api_base=telegram_api.url))
    yield sender
    await sender.close()


def line_target(token: str | None = "token", *, age: float = 1.0, channel: str = "line", chat: str = USER) -> Target:
    return Target(
        tenant="shop",
        channel=channel,
        platform="line",
        chat_id=chat,
        reply_token=token,
        token_received_at=NOW - age,
        group=chat != USER,
    )


def telegram_target(chat: str = "5550001111", *, channel: str = "tg", **fields: Any) -> Target:
    return Target(tenant="shop", channel=channel, platform="telegram", chat_id=chat, **fields)


async def send_all(sender: Sender, target: Target, answer: Answer) -> list[Sent]:
    return [await sender.send(SHOP, target, call) for call in sender.plan(SHOP, target, answer, NOW)]


def only(calls: Sequence[Call]) -> Call:
    (call,) = calls
    return call


async def fault_of(sender: Sender, target: Target, call: Call) -> SendFault:
    with pytest.raises(SendFault) as caught:
        await sender.send(SHOP, target, call)
    assert BOT_TOKEN not in str(caught.value)
    return caught.value


# --- LINE: what is planned


def long_text(bubbles: int) -> str:
    """Paragraphs of which one fits into a bubble, but not two."""
    return "\n\n".join(f"{number} " + "ก" * 3000 for number in range(bubbles))


@pytest.mark.parametrize(
    ("token", "age", "channel", "bubbles", "methods"),
    [
        ("token", 1, "line", 1, ["reply:1"]),
        ("token", 50, "line", 1, ["reply:1"]),
        ("token", 51, "line", 1, ["push:1"]),
        (None, 1, "line", 1, ["push:1"]),
        ("token", 1, "line", 5, ["reply:5"]),
        ("token", 1, "line", 12, ["reply:5", "push:5", "push:2"]),
        ("token", 51, "line", 7, ["push:5", "push:2"]),
        ("token", 1, "line-free", 7, ["reply:5"]),
        ("token", 51, "line-free", 1, []),
        (None, 1, "line-free", 1, []),
    ],
)
def test_line_answers_by_reply_token_while_it_is_fresh_and_else_by_push(
    token: str | None, age: float, channel: str, bubbles: int, methods: list[str]
) -> None:
    target = line_target(token, age=age, channel=channel)
    calls = LineSender(Settings()).plan(SHOP, target, Answer(long_text(bubbles)), NOW)
    assert [f"{call.method}:{len(call.body['messages'])}" for call in calls] == methods
    assert [call.key is not None for call in calls] == [call.method == "push" for call in calls]
    assert len({call.key for call in calls}) == len(calls)


def test_line_puts_small_pieces_together_only_where_five_bubbles_do_not_hold_them() -> None:
    text = "\n\n".join("ก" * size for size in (4000, 4000, 900, 4000, 4000, 900, 4000))
    call = only(LineSender(Settings()).plan(SHOP, line_target(), Answer(text), NOW))
    assert "\n\n".join(message["text"] for message in call.body["messages"]) == text


@pytest.mark.parametrize("platform", ["line", "telegram"])
@pytest.mark.parametrize("text", ["", "   \n", "\u200b", "\n\n"])
def test_an_answer_with_nothing_to_see_gives_no_call(platform: str, text: str) -> None:
    if platform == "line":
        assert LineSender(Settings()).plan(SHOP, line_target(), Answer(text), NOW) == []
    else:
        assert TelegramSender(Settings()).plan(SHOP, telegram_target(), Answer(text), NOW) == []


def test_the_same_plan_but_for_its_keys() -> None:
    sender, answer = LineSender(Settings()), Answer(long_text(7))
    first, second = (sender.plan(SHOP, line_target(), answer, NOW) for _ in range(2))
    assert [(call.method, call.body) for call in first] == [(call.method, call.body) for call in second]
    assert first[1].key != second[1].key


async def test_line_shows_quick_replies_below_the_last_bubble(line: LineSender, line_api: LineStandIn) -> None:
    quick = tuple(
        QuickReply(f"{number} ตัวเลือกที่ยาวมากเกินกว่าที่ปุ่มจะรับได้", f"ข้อ {number} " + "ก" * 400) for number in range(15)
    )
    target = line_target(line_api.issue_token(USER))
    await send_all(line, target, Answer(long_text(6), (QuickReply(" ", ""), *quick)))
    shown = [len(one.message.get("quickReply", {}).get("items", [])) for one in line_api.delivered[USER]]
    assert shown == [0, 0, 0, 0, 0, 12]


# --- LINE: how answers are taken


async def test_line_delivers_by_reply_and_tells_the_ids(line: LineSender, line_api: LineStandIn) -> None:
    sent = await send_all(line, line_target(line_api.issue_token(USER)), Answer("**สวัสดี** 🙏 {x}"))
    (shown,) = line_api.delivered[USER]
    assert (shown.text, shown.via) == ("สวัสดี 🙏 {x}", "reply")
    assert sent == [Sent((shown.id,))]
    (call,) = line_api.calls
    assert call.headers["authorization"] == "Bearer line-token-1"
    assert "x-line-retry-key" not in call.headers


async def test_a_push_made_twice_shows_once(line: LineSender, line_api: LineStandIn) -> None:
    target = line_target(None)
    call = only(line.plan(SHOP, target, Answer("hi"), NOW))
    first, second = await line.send(SHOP, target, call), await line.send(SHOP, target, call)
    assert (first.repeated, second.repeated) == (False, True)
    assert first.message_ids == second.message_ids
    assert [one.text for one in line_api.delivered[USER]] == ["hi"]


async def test_a_spent_token_goes_by_push_where_that_is_allowed(line: LineSender, line_api: LineStandIn) -> None:
    target = line_target("never-issued")
    call = only(line.plan(SHOP, target, Answer("hi", (QuickReply("a", "a"),)), NOW))
    error = await fault_of(line, target, call)
    assert type(error) is TokenSpent
    other = line.instead(SHOP, target, call, error)
    assert other is not None
    assert (other.method, other.body["messages"]) == ("push", call.body["messages"])
    assert line.instead(SHOP, line_target(channel="line-free"), call, error) is None
    await line.send(SHOP, target, other)
    assert [one.via for one in line_api.delivered[USER]] == ["push"]


@pytest.mark.parametrize(
    "fault", [None, Fault(cut=True), Fault(302, headers={"Location": "{url}/v2/bot/profile/{user}"})]
)
async def test_a_question_is_asked_again_where_the_connection_was_gone_or_the_answer_is_elsewhere(
    line: LineSender, line_api: LineStandIn, fault: Fault | None
) -> None:
    line_api.profiles[USER] = {"displayName": "นก"}
    assert await line.profile(SHOP, "line", USER) == "นก"
    if fault is not None:
        headers = {name: value.format(url=line_api.url, user=USER) for name, value in fault.headers.items()}
        line_api.next(replace(fault, headers=headers))
    assert await line.profile(SHOP, "line", USER) == "นก"
    assert await line.profile(SHOP, "line", USER[:-1] + "f") == "LINE 1a1a"


async def test_what_line_does_not_tell_is_no_name(line: LineSender, line_api: LineStandIn) -> None:
    line_api.next(Fault(404, {"message": "Not found"}), Fault(200, "no JSON"), Fault(200, "[1]"))
    with pytest.raises(SendRefused):
        await line.profile(SHOP, "line", USER)
    assert [await line.profile(SHOP, "line", USER) for _ in range(2)] == [None, None]
    line_api.next(Fault(delay=1.0))
    line._timeout = QUICK
    with pytest.raises(SendFault):
        await line.profile(SHOP, "line", USER)


async def test_a_reply_that_may_have_landed_is_never_pushed(line_api: LineStandIn) -> None:
    line = LineSender(Settings(line_api_base=line_api.url), timeout=QUICK)
    target = line_target(line_api.issue_token(USER))
    call = only(line.plan(SHOP, target, Answer("hi"), NOW))
    line_api.next(Fault(delay=1.0, landed=True))
    error = await fault_of(line, target, call)
    assert type(error) is SendAmbiguous
    assert line.instead(SHOP, target, call, error) is None
    assert type(await fault_of(line, target, call)) is TokenSpent
    await line.close()
    assert [one.text for one in line_api.delivered[USER]] == ["hi"]


LINE_ANSWERS = [
    (rate_limited(), SendRetry),
    (Fault(500, {"message": "Internal"}), SendRetry),
    (Fault(503, "<html>"), SendRetry),
    (Fault(408, {"message": "slow"}), SendRetry),
    (Fault(400, {"message": "The property is invalid", "details": [{"message": "x", "property": "y"}]}), SendRefused),
    (Fault(404, {"message": "Not found"}), SendRefused),
    (Fault(413, "too large"), SendRefused),
    (Fault(403, {"message": "Access to this API is not available"}), ChannelBroken),
    (Fault(400, {"message": "Failed to send messages"}), Unreachable),
    (monthly_limit(), QuotaSpent),
    (Fault(cut=True), SendAmbiguous),
]


@pytest.mark.parametrize(("answer", "fault"), LINE_ANSWERS)
async def test_line_refuses_a_push(
    line: LineSender, line_api: LineStandIn, answer: Fault, fault: type[SendFault]
) -> None:
    target = line_target(None)
    line_api.next(answer)
    assert type(await fault_of(line, target, only(line.plan(SHOP, target, Answer("hi"), NOW)))) is fault
    assert line_api.delivered == {}


async def test_a_reply_that_met_a_server_error_may_have_landed(line: LineSender, line_api: LineStandIn) -> None:
    target = line_target(line_api.issue_token(USER))
    line_api.next(Fault(500, {"message": "Internal"}))
    call = only(line.plan(SHOP, target, Answer("hi"), NOW))
    assert type(await fault_of(line, target, call)) is SendAmbiguous
    await line.send(SHOP, target, call)
    assert [one.text for one in line_api.delivered[USER]] == ["hi"]


async def test_line_refuses_the_channel_s_token(line: LineSender) -> None:
    target = line_target(None, channel="line-wrong")
    error = await fault_of(line, target, only(line.plan(SHOP, target, Answer("hi"), NOW)))
    assert type(error) is ChannelBroken
    assert "revoked-token" not in str(error)


@pytest.mark.parametrize(
    "body", [{}, "odd", "", b"\xff\xfe", {"sentMessages": 5}, {"sentMessages": [{"id": None}]}, []]
)
async def test_an_answer_of_200_that_can_not_be_read_counts_as_sent(
    line: LineSender, line_api: LineStandIn, body: object
) -> None:
    target = line_target(None)
    line_api.next(Fault(200, body, landed=True))
    sent = await line.send(SHOP, target, only(line.plan(SHOP, target, Answer("hi"), NOW)))
    assert sent.message_ids == ()


async def test_an_error_that_can_not_be_read_keeps_its_status(line: LineSender, line_api: LineStandIn) -> None:
    target = line_target(None)
    line_api.next(Fault(401, b"\xff\xfe"))
    assert type(await fault_of(line, target, only(line.plan(SHOP, target, Answer("hi"), NOW)))) is ChannelBroken


@pytest.mark.parametrize("platform", ["line", "telegram"])
async def test_a_platform_that_can_not_be_reached_is_tried_again(platform: str, unused_tcp_port: int) -> None:
    base = f"http://127.0.0.1:{unused_tcp_port}"
    settings = Settings(line_api_base=base, telegram_api_base=base)
    sender: Sender = LineSender(settings) if platform == "line" else TelegramSender(settings)
    target = line_target() if platform == "line" else telegram_target()
    assert type(await fault_of(sender, target, only(sender.plan(SHOP, target, Answer("hi"), NOW)))) is SendRetry
    await sender.typing(SHOP, target)
    await sender.close()


async def test_the_loading_sign_is_shown_to_persons_only(line: LineSender, line_api: LineStandIn) -> None:
    await line.typing(SHOP, line_target())
    await line.typing(SHOP, line_target(chat=GROUP))
    line_api.next(Fault(500, "down"))
    await line.typing(SHOP, line_target())
    shown = [(call.path, call.body, call.answered_status) for call in line_api.calls]
    body = {"chatId": USER, "loadingSeconds": 20}
    assert shown == [("/v2/bot/chat/loading/start", body, 202), ("/v2/bot/chat/loading/start", body, 500)]


# --- Telegram


async def test_telegram_delivers_styled_text(telegram: TelegramSender, telegram_api: TelegramStandIn) -> None:
    target = telegram_target("-100777", thread_id="77", business_id="bc_1")
    sent = await send_all(telegram, target, Answer("**สวัสดี** 🙏 [ลิงก์](https://example.com)"))
    (shown,) = telegram_api.delivered["-100777"]
    assert (shown.text, shown.thread_id) == ("สวัสดี 🙏 ลิงก์", 77)
    assert [entity["type"] for entity in shown.entities] == ["bold", "text_link"]
    assert sent == [Sent((str(shown.message_id),))]
    body = telegram_api.calls[-1].body
    assert (body["business_connection_id"], body["link_preview_options"]) == ("bc_1", {"is_disabled": True})


async def test_a_long_text_goes_out_in_pieces_with_the_buttons_below_the_last(
    telegram: TelegramSender, telegram_api: TelegramStandIn
) -> None:
    text = "\n\n".join("ก" * 3000 for _ in range(3))
    await send_all(
        telegram, telegram_target(), Answer(text, (QuickReply("ใช่", "ใช่ค่ะ"), QuickReply("", "ไม่"), QuickReply("", "")))
    )
    shown = telegram_api.delivered["5550001111"]
    assert [one.text for one in shown] == text.split("\n\n")
    assert [one.markup for one in shown] == [
        None,
        None,
        {"inline_keyboard": [[{"text": "ใช่", "callback_data": "ใช่ค่ะ"}, {"text": "ไม่", "callback_data": "ไม่"}]]},
    ]


async def test_a_quick_reply_too_long_for_a_button_becomes_a_key(
    telegram: TelegramSender, telegram_api: TelegramStandIn
) -> None:
    long = "ข้อความที่ยาวเกินกว่าหกสิบสี่ไบต์"
    await send_all(telegram, telegram_target(), Answer("hi", (QuickReply("a", "a"), QuickReply("b", long))))
    assert telegram_api.delivered["5550001111"][0].markup == {
        "keyboard": [[{"text": "a"}, {"text": long}]],
        "one_time_keyboard": True,
        "resize_keyboard": True,
    }


async def test_a_lone_surrogate_does_not_stop_an_answer(
    line: LineSender, line_api: LineStandIn, telegram: TelegramSender, telegram_api: TelegramStandIn
) -> None:
    answer = Answer("a\ud800b", (QuickReply("c\ud800", "d\udfff"),))
    await send_all(line, line_target(None), answer)
    await send_all(telegram, telegram_target(), answer)
    assert [one.text for one in line_api.delivered[USER]] == ["a\ufffdb"]
    assert [one.text for one in telegram_api.delivered["5550001111"]] == ["a\ufffdb"]


TELEGRAM_ANSWERS = [
    (too_many(7), SendRetry),
    (too_many(7, parameters=False), SendRetry),
    (Fault(429, "<html>"), SendRetry),
    (refusal(403, BLOCKED), Unreachable),
    (refusal(403, DEACTIVATED), Unreachable),
    (refusal(403, KICKED), Unreachable),
    (refusal(401, "Unauthorized"), ChannelBroken),
    (refusal(404, "Not Found"), ChannelBroken),
    (refusal(400, "Bad Request: chat not found"), Unreachable),
    (refusal(400, "Bad Request: message is too long"), SendRefused),
    (refusal(400, "Bad Request: message text is empty"), SendRefused),
    (refusal(413, "Request Entity Too Large"), SendRefused),
    (refusal(500, "Internal Server Error"), SendRetry),
    (Fault(500, {"ok": False, "error_code": 500}), SendRetry),
    (Fault(503, "down"), SendRetry),
    (bad_gateway(), SendAmbiguous),
    (Fault(502, b"\xff\xfe"), SendAmbiguous),
    (Fault(504, ""), SendAmbiguous),
    (Fault(200, "<html>welcome to the hotel</html>"), SendAmbiguous),
    (Fault(200, []), SendAmbiguous),
    (Fault(cut=True), SendAmbiguous),
]


@pytest.mark.parametrize(("answer", "fault"), TELEGRAM_ANSWERS)
async def test_telegram_refuses_a_message(
    telegram: TelegramSender, telegram_api: TelegramStandIn, answer: Fault, fault: type[SendFault]
) -> None:
    target = telegram_target()
    telegram_api.next(answer)
    found = await fault_of(telegram, target, only(telegram.plan(SHOP, target, Answer("hi"), NOW)))
    assert type(found) is fault
    assert telegram_api.delivered == {}


@pytest.mark.parametrize("parameters", [True, False])
async def test_telegram_says_how_long_to_wait(
    telegram: TelegramSender, telegram_api: TelegramStandIn, parameters: bool
) -> None:
    telegram_api.next(too_many(7, parameters=parameters))
    found = await fault_of(telegram, telegram_target(), Call("sendMessage", {"chat_id": "1", "text": "hi"}))
    assert isinstance(found, SendRetry)
    assert found.retry_after == 7


async def test_a_group_that_moved_says_where_to(telegram: TelegramSender, telegram_api: TelegramStandIn) -> None:
    telegram_api.migrated["-987"] = "-100987"
    found = await fault_of(telegram, telegram_target("-987"), Call("sendMessage", {"chat_id": "-987", "text": "hi"}))
    assert isinstance(found, ChatMoved)
    assert found.chat_id == "-100987"


async def test_a_message_that_has_not_changed_is_fine(telegram: TelegramSender, telegram_api: TelegramStandIn) -> None:
    await send_all(telegram, telegram_target(), Answer("hi"))
    message_id = telegram_api.shown[0].message_id
    edit = Call("editMessageText", {"chat_id": "5550001111", "message_id": message_id, "text": "hi"})
    assert await telegram.send(SHOP, telegram_target(), edit) == Sent()


@pytest.mark.parametrize("channel", ["tg-wrong", "tg-odd", "gone"])
async def test_telegram_refuses_the_bot_s_token(telegram: TelegramSender, channel: str) -> None:
    call = Call("sendMessage", {"chat_id": "1", "text": "hi"})
    found = await fault_of(telegram, telegram_target(channel=channel), call)
    assert type(found) is ChannelBroken
    assert "revoked" not in str(found)


async def test_no_answer_in_time_may_have_landed(telegram_api: TelegramStandIn) -> None:
    telegram = TelegramSender(Settings(telegram_api_base=telegram_api.url), timeout=QUICK)
    telegram_api.next(Fault(delay=1.0, landed=True))
    target = telegram_target()
    call = only(telegram.plan(SHOP, target, Answer("**hi**"), NOW))
    found = await fault_of(telegram, target, call)
    assert type(found) is SendAmbiguous
    assert telegram.instead(SHOP, target, call, found) is None
    await telegram.close()


@pytest.mark.parametrize(
    ("body", "missing"),
    [
        ({"entities": [{"type": "bold", "offset": 0, "length": 50}]}, "entities"),
        ({"entities": [{"type": "sparkle", "offset": 0, "length": 1}]}, "entities"),
        ({"message_thread_id": 9}, "message_thread_id"),
        ({"reply_markup": {"inline_keyboard": [[{"text": "a", "callback_data": "b" * 65}]]}}, "reply_markup"),
    ],
)
async def test_what_telegram_refuses_in_a_message_is_left_out(
    telegram: TelegramSender, telegram_api: TelegramStandIn, body: dict[str, Any], missing: str
) -> None:
    telegram_api.threads["-100777"] = {1}
    target = telegram_target("-100777")
    call = Call("sendMessage", {"chat_id": "-100777", "text": "hi", **body})
    found = await fault_of(telegram, target, call)
    other = telegram.instead(SHOP, target, call, found)
    assert other == Call("sendMessage", {"chat_id": "-100777", "text": "hi"})
    assert missing in call.body
    await telegram.send(SHOP, target, other)
    assert [one.text for one in telegram_api.delivered["-100777"]] == ["hi"]
    assert telegram.instead(SHOP, target, other, found) is None


async def test_typing_is_shown_in_the_topic(telegram: TelegramSender, telegram_api: TelegramStandIn) -> None:
    await telegram.typing(SHOP, telegram_target("-100777", thread_id="77"))
    telegram_api.next(refusal(403, BLOCKED))
    await telegram.typing(SHOP, telegram_target())
    shown = {"chat_id": "-100777", "message_thread_id": 77, "action": "typing"}
    assert telegram_api.calls[0].body == shown
    assert [call.answered_status for call in telegram_api.calls] == [200, 403]


async def test_a_pressed_button_is_acknowledged(telegram: TelegramSender, telegram_api: TelegramStandIn) -> None:
    telegram_api.expired.add("old")
    for callback_id in ("fresh", "old", None):
        message = InboundMessage(
            tenant="shop",
            channel="tg",
            platform="telegram",
            event_id="1",
            user_id="telegram:1",
            chat_id="1",
            kind=Kind.POSTBACK,
            extra={"callback_id": callback_id} if callback_id else {},
        )
        await telegram.acknowledge(SHOP, message)
    assert [(call.body, call.answered_status) for call in telegram_api.calls] == [
        ({"callback_query_id": "fresh"}, 200),
        ({"callback_query_id": "old"}, 400),
    ]


async def test_the_bot_s_name_is_asked_for_once(telegram: TelegramSender, telegram_api: TelegramStandIn) -> None:
    names = [await telegram.username(SHOP, "tg") for _ in range(2)]
    assert names == ["bot1000001_bot"] * 2
    assert len(telegram_api.calls_to("getMe")) == 1


def test_no_sdk_is_loaded_before_it_is_used() -> None:
    code = (
        "import sys, gateway.adapters.line, gateway.adapters.telegram\n"
        "assert not {'aiohttp', 'linebot', 'aiogram'} & set(sys.modules)\n"
        "import gateway.front_door, gateway.adapters.web, gateway.meanings\n"
        "assert not {'aiohttp', 'linebot', 'aiogram'} & set(sys.modules)\n"
        "import gateway.adapters.line_sender, gateway.adapters.telegram_polling, gateway.webhook_setup\n"
        "loaded = {name.split('.')[0] for name in sys.modules}\n"
        "assert not {'linebot', 'aiogram'} & loaded\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""
