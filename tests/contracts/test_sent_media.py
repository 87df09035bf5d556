"""Pictures, files and stickers in answers: what is planned, what a platform takes, and what stands in for the rest."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from config.settings import Settings
from config.tenants import Tenant
from gateway.adapters.base import Call
from gateway.adapters.line_sender import LineSender
from gateway.adapters.pictures import MOST
from gateway.adapters.telegram_sender import TelegramSender
from gateway.adapters.terminal import TerminalSender
from gateway.errors import SendFault, SendRefused
from gateway.messages import Answer, File, Image, QuickReply, Sticker, Target
from gateway.outbox import Outbox, decode, encode
from gateway.rendering import render_terminal
from tests.standins import Fault, LineStandIn, TelegramStandIn

NOW = 1_793_000_300.0
USER = "U" + "1a" * 16
CHAT = "5550001111"
BOT_TOKEN = "1000001:first-test-bot"
HOST = "https://img.example.com"
SHOP = Tenant.model_validate(
    {
        "id": "shop",
        "name": "Shop",
        "channels": {
            "line": {"platform": "line", "channel_secret": "line-secret-1", "channel_access_token": "line-token-1"},
            "tg": {"platform": "telegram", "bot_token": BOT_TOKEN, "webhook_secret": "hook"},
        },
        "image_hosts": ["img.example.com"],
    }
)
LINE = Target(tenant="shop", channel="line", platform="line", chat_id=USER, reply_token="t", token_received_at=NOW)
TELEGRAM = Target(tenant="shop", channel="tg", platform="telegram", chat_id=CHAT)
MENU = f"Our menu:\n\n![Latte]({HOST}/latte.jpg)\n\nWhich one?"
MEDIA = (
    Image(f"{HOST}/shop.jpg", "The shop"),
    File(f"{HOST}/menu.pdf", "Menu"),
    Sticker("446", "1988", "CAACAgIAAx"),
)


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


def on_line(answer: Answer) -> list[list[str]]:
    """Each call's messages in short."""
    calls = LineSender(Settings()).plan(SHOP, LINE, answer, NOW)
    return [[_short(message) for message in call.body["messages"]] for call in calls]


def _short(message: dict[str, Any]) -> str:
    match message["type"]:
        case "image":
            assert message["previewImageUrl"] == message["originalContentUrl"]
            return f"<{message['originalContentUrl']}>"
        case "sticker":
            return f"<{message['packageId']}/{message['stickerId']}>"
        case _:
            return str(message["text"])


def on_telegram(answer: Answer) -> list[tuple[str, str]]:
    calls = TelegramSender(Settings()).plan(SHOP, TELEGRAM, answer, NOW)
    return [(call.method, call.body.get("text") or call.body.get("caption", "")) for call in calls]


async def refusal(sender: LineSender | TelegramSender, target: Target, call: Call) -> SendFault:
    with pytest.raises(SendRefused) as caught:
        await sender.send(SHOP, target, call)
    return caught.value


# --- which pictures are shown, and where


def test_a_picture_stands_in_its_place_between_the_texts() -> None:
    answer = Answer(MENU)
    assert on_line(answer) == [["Our menu:", f"<{HOST}/latte.jpg>", "Which one?"]]
    assert on_telegram(answer) == [("sendMessage", "Our menu:"), ("sendPhoto", "Latte"), ("sendMessage", "Which one?")]


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        (f"See ![it]({HOST}/a.jpg)", ["See", f"<{HOST}/a.jpg>"]),
        (f"Our ![tea]({HOST}/a.jpg) is good\nBye", ["Our tea is good", f"<{HOST}/a.jpg>", "Bye"]),
        (f"![]({HOST}/a.jpg)", [f"<{HOST}/a.jpg>"]),
        (f"1. ![a]({HOST}/a.jpg)\n2. Tea ![b]({HOST}/b.jpg)", [f"<{HOST}/a.jpg>", "2. Tea", f"<{HOST}/b.jpg>"]),
        (f"![a]({HOST}/a.jpg)![b]({HOST}/b.jpg)\n\n5.", [f"<{HOST}/a.jpg>", f"<{HOST}/b.jpg>", "5."]),
        (f"`![a]({HOST}/a.jpg)`", [f"![a]({HOST}/a.jpg)"]),
        (f"[![a]({HOST}/a.jpg)](https://x.example.com)", [f"a ({HOST}/a.jpg) (https://x.example.com)"]),
        (f"![a]({HOST}/a.jpg) ![a]({HOST}/a.jpg)", [f"a a ({HOST}/a.jpg)", f"<{HOST}/a.jpg>"]),
    ],
)
def test_a_picture_goes_below_its_line(markdown: str, shown: list[str]) -> None:
    assert on_line(Answer(markdown)) == [shown]


@pytest.mark.parametrize(
    "address",
    [
        "http://img.example.com/a.jpg",
        "https://evil.example.com/a.jpg",
        "https://img.example.com.evil.example/a.jpg",
        "https://img.example.com@evil.example/a.jpg",
        "https://127.0.0.1/a.jpg",
        "https://localhost/a.jpg",
        f"{HOST}/{'a' * 2000}",
    ],
)
def test_a_model_s_picture_from_elsewhere_stays_a_link(address: str) -> None:
    assert on_line(Answer(f"![a]({address})")) == [[f"a ({address})"]]
    assert [method for method, _ in on_telegram(Answer(f"![a]({address})"))] == ["sendMessage"]


def test_the_shop_s_own_words_show_pictures_of_any_public_host() -> None:
    elsewhere, inside = "https://cdn.example.org/a.jpg", "https://10.0.0.7/a.jpg"
    answer = Answer(f"![a]({elsewhere})\n\n![b]({inside})", by_shop=True)
    assert on_line(answer) == [[f"<{elsewhere}>", f"b ({inside})"]]


def test_a_catalogue_is_shown_up_to_a_limit_and_linked_beyond() -> None:
    answer = Answer("\n\n".join(f"![p{number}]({HOST}/{number}.jpg)" for number in range(MOST + 3)))
    methods = [method for method, _ in on_telegram(answer)]
    assert methods == ["sendPhoto"] * MOST + ["sendMessage"]


def test_on_line_pictures_cost_no_further_call() -> None:
    text = "\n\n".join(f"Nr {number}\n\n![p{number}]({HOST}/{number}.jpg)" for number in range(4))
    (bubbles,) = on_line(Answer(text, media=MEDIA))
    assert bubbles == [
        "Nr 0",
        f"<{HOST}/0.jpg>",
        "Nr 1",
        f"<{HOST}/1.jpg>",
        f"Nr 2\n\np2 ({HOST}/2.jpg)\n\nNr 3\n\np3 ({HOST}/3.jpg)\n\n"
        f"The shop ({HOST}/shop.jpg)\n\nMenu ({HOST}/menu.pdf)",
    ]


def test_what_goes_with_an_answer_survives_the_outbox() -> None:
    outbox = Outbox(LINE, Answer("", media=MEDIA, by_shop=True), [])
    assert decode(encode(outbox)) == outbox
    assert outbox.visible


def test_the_terminal_tells_media_in_words() -> None:
    sender = TerminalSender(None)  # type: ignore[arg-type]
    (call,) = sender.plan(SHOP, TELEGRAM, Answer(MENU, media=MEDIA), NOW)
    assert render_terminal(call.body["text"], None, False).split("\n\n") == [
        "Our menu:",
        f"Latte ({HOST}/latte.jpg)",
        "Which one?",
        f"The shop ({HOST}/shop.jpg)",
        f"Menu ({HOST}/menu.pdf)",
        "[sticker 446/1988]",
    ]


# --- LINE


async def test_line_takes_pictures_and_stickers_with_buttons_below_the_last(
    line: LineSender, line_api: LineStandIn
) -> None:
    target = Target(**{name: getattr(LINE, name) for name in LINE.__struct_fields__} | {"reply_token": None})
    (call,) = line.plan(SHOP, target, Answer(MENU, (QuickReply("a", "a"),), media=MEDIA[2:]), NOW)
    sent = await line.send(SHOP, target, call)
    shown = line_api.delivered[USER]
    assert [one.message["type"] for one in shown] == ["text", "image", "text", "sticker"]
    assert ["quickReply" in one.message for one in shown] == [False, False, False, True]
    assert len(sent.message_ids) == 4


async def test_a_picture_that_line_refuses_becomes_a_link_in_the_same_free_call(
    line: LineSender, line_api: LineStandIn
) -> None:
    target = Target(**{name: getattr(LINE, name) for name in LINE.__struct_fields__})
    token = line_api.issue_token(USER)
    good, bad = f"{HOST}/good.jpg", f"{HOST}/bad.jpg"
    answer = Answer("Look", (QuickReply("a", "a"),), media=(Image(good), Image(bad, "Bad")))
    (call,) = line.plan(SHOP, target, answer, NOW)
    call = Call("reply", {**call.body, "replyToken": token})
    details = [{"message": "invalid uri", "property": "messages[2].originalContentUrl"}]
    line_api.next(Fault(400, {"message": "The request body has 1 error(s)", "details": details}))
    other = line.instead(SHOP, target, call, await refusal(line, target, call))
    assert other is not None
    await line.send(SHOP, target, other)
    shown = line_api.delivered[USER]
    assert [_short(dict(one.message)) for one in shown] == ["Look", f"<{good}>", bad]
    assert [one.via for one in shown] == ["reply"] * 3
    assert "quickReply" in shown[-1].message


async def test_all_media_are_left_out_where_line_does_not_say_which_it_refuses(line: LineSender) -> None:
    (call,) = line.plan(SHOP, LINE, Answer("Look", (QuickReply("a", "a"),), media=MEDIA), NOW)
    other = line.instead(SHOP, LINE, call, SendRefused("LINE answered 400: Bad request"))
    assert other is not None
    assert [_short(one) for one in other.body["messages"]] == ["Look", f"{HOST}/shop.jpg", f"Menu ({HOST}/menu.pdf)"]
    assert "quickReply" in other.body["messages"][-1]
    assert line.instead(SHOP, LINE, other, SendRefused("LINE answered 400: Bad request")) is None


async def test_a_push_without_its_pictures_has_a_retry_key_of_its_own(line: LineSender) -> None:
    call = Call("push", {"to": USER, "messages": [{"type": "image", "originalContentUrl": HOST}]}, key="k")
    other = line.instead(SHOP, LINE, call, SendRefused("LINE answered 400: no"))
    assert other is not None
    assert other.key not in (None, "k")


# --- Telegram


async def test_telegram_shows_photos_files_and_its_own_stickers(
    telegram: TelegramSender, telegram_api: TelegramStandIn
) -> None:
    target = Target(tenant="shop", channel="tg", platform="telegram", chat_id="-100777", thread_id="7")
    answer = Answer("Look", (QuickReply("a", "a"),), media=(*MEDIA, Sticker("446", "1989")))
    for call in telegram.plan(SHOP, target, answer, NOW):
        await telegram.send(SHOP, target, call)
    shown = telegram_api.delivered["-100777"]
    assert [(one.method, one.text, one.media) for one in shown] == [
        ("sendMessage", "Look", None),
        ("sendPhoto", "The shop", f"{HOST}/shop.jpg"),
        ("sendDocument", "Menu", f"{HOST}/menu.pdf"),
        ("sendSticker", "", "CAACAgIAAx"),
    ]
    assert [one.markup is not None for one in shown] == [False, False, True, False]
    assert {one.thread_id for one in shown} == {7}


@pytest.mark.parametrize("media", [Image(f"{HOST}/gone.jpg", "Latte"), File(f"{HOST}/menu.docx", "Latte")])
async def test_what_telegram_can_not_fetch_becomes_a_link_with_its_buttons(
    telegram: TelegramSender, telegram_api: TelegramStandIn, media: Image | File
) -> None:
    telegram_api.unfetchable.add(f"{HOST}/gone.jpg")
    (call,) = telegram.plan(SHOP, TELEGRAM, Answer("", (QuickReply("a", "a"),), media=(media,)), NOW)
    error = await refusal(telegram, TELEGRAM, call)
    other = telegram.instead(SHOP, TELEGRAM, call, error)
    assert other is not None
    await telegram.send(SHOP, TELEGRAM, other)
    (shown,) = telegram_api.delivered[CHAT]
    assert (shown.method, shown.text) == ("sendMessage", f"Latte ({media.url})")
    assert shown.markup is not None
    assert telegram.instead(SHOP, TELEGRAM, other, error) is None


async def test_a_photo_whose_topic_is_gone_goes_without_the_topic(
    telegram: TelegramSender, telegram_api: TelegramStandIn
) -> None:
    telegram_api.threads["-100777"] = {1}
    target = Target(tenant="shop", channel="tg", platform="telegram", chat_id="-100777", thread_id="7")
    (call,) = telegram.plan(SHOP, target, Answer("", media=MEDIA[:1]), NOW)
    other = telegram.instead(SHOP, target, call, await refusal(telegram, target, call))
    assert other is not None
    await telegram.send(SHOP, target, other)
    assert [(one.method, one.thread_id) for one in telegram_api.delivered["-100777"]] == [("sendPhoto", None)]


async def test_a_caption_that_is_too_long_goes_before_the_photo(
    telegram: TelegramSender, telegram_api: TelegramStandIn
) -> None:
    for size in (1024, 1025):
        for call in telegram.plan(SHOP, TELEGRAM, Answer("", media=(Image(f"{HOST}/a.jpg", "*" * size),)), NOW):
            await telegram.send(SHOP, TELEGRAM, call)
    shown = telegram_api.delivered[CHAT]
    assert [(one.method, one.text) for one in shown] == [
        ("sendPhoto", "*" * 1024),
        ("sendMessage", "*" * 1025),
        ("sendPhoto", ""),
    ]
