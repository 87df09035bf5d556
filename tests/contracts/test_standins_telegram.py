"""The Telegram stand-in under the real aiogram: what each rule of the platform leads to there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Literal, Optional, Union

import aiogram.methods
import aiogram.types
import aiohttp
import pytest
from aiogram import Bot
from aiogram.client.default import Default
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import (
    ClientDecodeError,
    TelegramAPIError,
    TelegramBadRequest,
    TelegramConflictError,
    TelegramForbiddenError,
    TelegramMigrateToChat,
    TelegramNetworkError,
    TelegramNotFound,
    TelegramRetryAfter,
    TelegramUnauthorizedError,
)
from aiogram.methods import SendMessageDraft
from aiogram.types import (
    BotCommand,
    BufferedInputFile,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    LinkPreviewOptions,
    MessageEntity,
    ReplyParameters,
)

from tests.standins import Fault, TelegramStandIn
from tests.standins.telegram import BLOCKED, METHODS, bad_gateway, refusal, too_many

TOKEN = "1000001:first-test-bot"
CHAT, GROUP = 5_550_001_111, -1_001_234_567_890


class Clock:
    def __init__(self) -> None:
        self.now = 1_793_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Telegram:
    """The stand-in, its clock, and a bot pointed at it."""

    standin: TelegramStandIn
    clock: Clock
    bot: Bot

    def texts(self, chat: int = CHAT) -> list[str]:
        return [one.text for one in self.standin.delivered.get(str(chat), [])]

    async def post(self, method: str, **more: object) -> tuple[int, dict[str, object]]:
        """A call in JSON, past the SDK."""
        async with (
            aiohttp.ClientSession() as client,
            client.post(f"{self.standin.url}/bot{TOKEN}/{method}", json=more) as answer,
        ):
            return answer.status, await answer.json()


@pytest.fixture(scope="module", autouse=True)
def models_are_built() -> None:
    """As aiogram does it at its import, where other tests have loaded it as the product does: without them."""
    named = {name: getattr(aiogram.types, name) for name in aiogram.types.__all__}
    known = named | {"Default": Default, "List": list, "Literal": Literal, "Optional": Optional, "Union": Union}
    for one in named.values():
        if hasattr(one, "model_rebuild"):
            one.model_rebuild(_types_namespace=known)


@pytest.fixture
async def telegram() -> AsyncIterator[Telegram]:
    clock = Clock()
    async with TelegramStandIn((TOKEN, "1000002:second-test-bot"), clock=clock) as standin:
        session = AiohttpSession(api=TelegramAPIServer.from_base(standin.url))
        yield Telegram(standin, clock, Bot(TOKEN, session=session))
        await session.close()


# --- Telegram 2.2: texts


async def test_a_text_is_delivered_and_comes_back_as_a_message(telegram: Telegram) -> None:
    message = await telegram.bot.send_message(CHAT, "สวัสดีค่ะ 🎉")
    assert (message.text, message.chat.id) == ("สวัสดีค่ะ 🎉", CHAT)
    assert telegram.texts() == ["สวัสดีค่ะ 🎉"]
    assert telegram.standin.calls[0].headers["content-type"].startswith(("application/x-www", "multipart/"))


async def test_json_bodies_are_taken_too(telegram: Telegram) -> None:
    status, body = await telegram.post("sendMessage", chat_id=CHAT, text="json")
    assert (status, body["ok"], telegram.texts()) == (200, True, ["json"])


async def test_the_limit_counts_what_is_left_after_parsing(telegram: Telegram) -> None:
    await telegram.bot.send_message(CHAT, "<b>" + "ก" * 4096 + "</b>", parse_mode="HTML")
    with pytest.raises(TelegramBadRequest, match="message is too long"):
        await telegram.bot.send_message(CHAT, "ก" * 4097)
    with pytest.raises(TelegramBadRequest, match="message is too long"):
        await telegram.bot.send_message(CHAT, "🎉" * 2049)


@pytest.mark.parametrize("text", ["", "  \n", "<b> </b>"])
async def test_an_empty_text_is_refused(telegram: Telegram, text: str) -> None:
    with pytest.raises(TelegramBadRequest, match="message text is empty"):
        await telegram.bot.send_message(CHAT, text, parse_mode="HTML")


@pytest.mark.parametrize(
    ("html", "reason"),
    [
        ("ก <div>x</div>", 'Unsupported start tag "div" at byte offset 4'),
        ("1 < 2", 'Unsupported start tag "" at byte offset 2'),
        ("<b>x", 'Can\'t find end tag corresponding to start tag "b"'),
        ("<b><i>x</b></i>", 'Unmatched end tag at byte offset 7, expected "</i>", found "</b>"'),
        ("x</b>", "Unexpected end tag at byte offset 1"),
        ("<span>x</span>", 'Unsupported start tag "span"'),
    ],
)
async def test_wrong_html_says_where(telegram: Telegram, html: str, reason: str) -> None:
    with pytest.raises(TelegramBadRequest) as error:
        await telegram.bot.send_message(CHAT, html, parse_mode="HTML")
    assert error.value.message.startswith("Bad Request: can't parse entities: ")
    assert reason in error.value.message


async def test_html_becomes_entities_in_utf16_units(telegram: Telegram) -> None:
    source = '🎉 <b>หนา <i>เอียง</i></b> &lt;&amp;&gt;&quot;&#39; <a href="https://example.com">ลิงก์</a> <code>x</code>'
    message = await telegram.bot.send_message(CHAT, source, parse_mode="HTML")
    assert message.text == "🎉 หนา เอียง <&>\"' ลิงก์ x"
    shown = [(entity.type, entity.extract_from(message.text)) for entity in message.entities or ()]
    assert shown == [("bold", "หนา เอียง"), ("italic", "เอียง"), ("text_link", "ลิงก์"), ("code", "x")]


async def test_entities_must_lie_within_the_text(telegram: Telegram) -> None:
    bold = MessageEntity(type="bold", offset=0, length=2)
    await telegram.bot.send_message(CHAT, "🎉", entities=[bold])
    assert telegram.standin.shown[0].entities == ({"type": "bold", "offset": 0, "length": 2},)
    with pytest.raises(TelegramBadRequest, match="ends after the end of the text"):
        await telegram.bot.send_message(CHAT, "x", entities=[bold])
    with pytest.raises(TelegramBadRequest, match="middle of a UTF-16 symbol"):
        await telegram.bot.send_message(CHAT, "🎉", entities=[MessageEntity(type="bold", offset=0, length=1)])


async def test_the_stand_in_owns_up_to_having_no_rules_for_markdown(telegram: Telegram) -> None:
    status, body = await telegram.post("sendMessage", chat_id=CHAT, text="*x*", parse_mode="MarkdownV2")
    assert (status, body["ok"]) == (501, False)


async def test_nested_objects_come_as_json_strings(telegram: Telegram) -> None:
    button = InlineKeyboardButton(text="จอง", callback_data="book:1")
    first = await telegram.bot.send_message(
        CHAT,
        "?",
        reply_markup=InlineKeyboardMarkup(inline_keyboard=[[button]]),
        link_preview_options=LinkPreviewOptions(is_disabled=True),
        disable_notification=True,
    )
    assert first.reply_markup is not None
    assert telegram.standin.shown[0].markup == {"inline_keyboard": [[{"text": "จอง", "callback_data": "book:1"}]]}
    too_long = InlineKeyboardButton(text="x", callback_data="ก" * 22)  # 66 bytes
    with pytest.raises(TelegramBadRequest, match="BUTTON_DATA_INVALID"):
        await telegram.bot.send_message(CHAT, "?", reply_markup=InlineKeyboardMarkup(inline_keyboard=[[too_long]]))


async def test_a_reply_to_a_missing_message(telegram: Telegram) -> None:
    with pytest.raises(TelegramBadRequest, match="message to be replied not found"):
        await telegram.bot.send_message(CHAT, "x", reply_parameters=ReplyParameters(message_id=999_999))
    lenient = ReplyParameters(message_id=999_999, allow_sending_without_reply=True)
    await telegram.bot.send_message(CHAT, "x", reply_parameters=lenient)
    assert telegram.texts() == ["x"]


async def test_files_come_as_multipart(telegram: Telegram) -> None:
    sent = await telegram.bot.send_document(CHAT, BufferedInputFile(b"\x00\xff\r\n1", "เมนู.pdf"), caption="เมนู")
    assert (sent.caption, telegram.texts()) == ("เมนู", ["เมนู"])
    body = telegram.standin.calls[0].body
    assert [part for part in body.values() if isinstance(part, dict)] == [{"filename": "เมนู.pdf", "size": 5}]
    assert telegram.standin.calls[0].headers["content-type"].startswith("multipart/form-data")
    with pytest.raises(TelegramBadRequest, match="caption is too long"):
        await telegram.bot.send_document(CHAT, BufferedInputFile(b"x", "a"), caption="x" * 1025)


async def test_photos_come_by_id_too_and_must_be_there(telegram: Telegram) -> None:
    sent = await telegram.bot.send_photo(CHAT, "file-1", caption="<b>เมนู</b>", parse_mode="HTML")
    assert (sent.photo is not None, sent.text, telegram.texts()) == (True, None, ["เมนู"])
    status, body = await telegram.post("sendPhoto", chat_id=CHAT)
    assert (status, body["description"]) == (400, "Bad Request: there is no photo in the request")


# --- Telegram 2.2: edits, drafts, signs, callbacks


async def test_an_edit_changes_the_screen_and_the_same_text_is_refused(telegram: Telegram) -> None:
    first = await telegram.bot.send_message(CHAT, "one")
    await telegram.bot.edit_message_text("two", chat_id=CHAT, message_id=first.message_id)
    with pytest.raises(TelegramBadRequest, match="message is not modified"):
        await telegram.bot.edit_message_text("two", chat_id=CHAT, message_id=first.message_id)
    with pytest.raises(TelegramBadRequest, match="message to edit not found"):
        await telegram.bot.edit_message_text("x", chat_id=CHAT, message_id=1)
    assert [(one.text, one.edits) for one in telegram.standin.delivered[str(CHAT)]] == [("two", 1)]


async def test_a_draft_is_a_preview_in_private_chats(telegram: Telegram) -> None:
    assert await telegram.bot.send_message_draft(CHAT, 7, text="กำลัง") is True
    assert [draft["text"] for draft in telegram.standin.drafts] == ["กำลัง"]
    assert telegram.standin.delivered == {}
    with pytest.raises(TelegramBadRequest, match="private chats"):
        await telegram.bot.send_message_draft(GROUP, 7, text="x")
    with pytest.raises(TelegramBadRequest, match="draft_id"):
        await telegram.bot.send_message_draft(CHAT, 0, text="x")
    with pytest.raises(TelegramBadRequest, match="too long"):
        await telegram.bot.send_message_draft(CHAT, 7, text="x" * 4097)
    with pytest.raises(TelegramBadRequest, match="business_connection_id"):
        await telegram.bot(SendMessageDraft(chat_id=CHAT, draft_id=7, text="x", business_connection_id="b1"))
    assert telegram.standin.draft_on_screen(str(CHAT)) == "กำลัง"
    await telegram.bot.send_message(CHAT, "กำลังดีค่ะ")
    assert telegram.standin.draft_on_screen(str(CHAT)) is None
    telegram.standin.lacks.add("sendmessagedraft")
    with pytest.raises(TelegramNotFound):
        await telegram.bot.send_message_draft(CHAT, 7, text="x")


async def test_typing_shows_nothing_on_the_screen(telegram: Telegram) -> None:
    assert await telegram.bot.send_chat_action(CHAT, "typing") is True
    with pytest.raises(TelegramBadRequest, match="action"):
        await telegram.bot.send_chat_action(CHAT, "thinking")
    assert telegram.standin.delivered == {}


async def test_a_late_callback_answer_is_refused(telegram: Telegram) -> None:
    assert await telegram.bot.answer_callback_query("1", "ok") is True
    telegram.standin.expired.add("2")
    with pytest.raises(TelegramBadRequest, match="query is too old"):
        await telegram.bot.answer_callback_query("2")


# --- Telegram 2.2: errors by kind


async def test_a_429_tells_how_long_to_wait(telegram: Telegram) -> None:
    telegram.standin.next(too_many(3), too_many(3, parameters=False))
    with pytest.raises(TelegramRetryAfter) as error:
        await telegram.bot.send_message(CHAT, "x")
    assert error.value.retry_after == 3
    with pytest.raises(TelegramAPIError) as bare:
        await telegram.bot.send_message(CHAT, "x")
    assert type(bare.value) is TelegramAPIError
    await telegram.bot.send_message(CHAT, "x")
    assert telegram.texts() == ["x"]


async def test_a_window_of_calls_per_chat(telegram: Telegram) -> None:
    telegram.standin.per_chat = (2, 60.0)
    await telegram.bot.send_chat_action(CHAT, "typing")
    await telegram.bot.send_message(CHAT, "x")
    with pytest.raises(TelegramRetryAfter) as error:
        await telegram.bot.send_message(CHAT, "y")
    await telegram.bot.send_message(GROUP, "other chats go on")
    telegram.clock.now += error.value.retry_after
    await telegram.bot.send_message(CHAT, "y")
    assert telegram.texts() == ["x", "y"]


async def test_who_blocked_the_bot_is_403(telegram: Telegram) -> None:
    telegram.standin.refuses[str(CHAT)] = BLOCKED
    with pytest.raises(TelegramForbiddenError, match="bot was blocked by the user"):
        await telegram.bot.send_message(CHAT, "x")


async def test_a_group_that_moved_gives_its_new_id(telegram: Telegram) -> None:
    telegram.standin.migrated["-500"] = str(GROUP)
    with pytest.raises(TelegramMigrateToChat) as error:
        await telegram.bot.send_message(-500, "x")
    assert error.value.migrate_to_chat_id == GROUP


async def test_a_chat_or_topic_that_does_not_exist(telegram: Telegram) -> None:
    telegram.standin.unknown.add("404")
    telegram.standin.threads[str(GROUP)] = {7}
    with pytest.raises(TelegramBadRequest, match="chat not found"):
        await telegram.bot.send_message(404, "x")
    with pytest.raises(TelegramBadRequest, match="message thread not found"):
        await telegram.bot.send_message(GROUP, "x", message_thread_id=8)
    sent = await telegram.bot.send_message(GROUP, "x", message_thread_id=7)
    assert sent.message_thread_id == 7


async def test_a_wrong_token_is_401_and_a_wrong_path_404(telegram: Telegram) -> None:
    with pytest.raises(TelegramUnauthorizedError):
        await Bot("1000009:unknown", session=telegram.bot.session).get_me()
    async with (
        aiohttp.ClientSession() as client,
        client.post(f"{telegram.standin.url}/bot{TOKEN}/noSuchMethod") as answer,
    ):
        assert answer.status == 404
    telegram.standin.next(refusal(404, "Not Found"))
    with pytest.raises(TelegramNotFound):
        await telegram.bot.get_me()


async def test_a_page_instead_of_json_is_not_a_telegram_error(telegram: Telegram) -> None:
    telegram.standin.next(bad_gateway())
    with pytest.raises(ClientDecodeError):
        await telegram.bot.send_message(CHAT, "x")
    assert telegram.texts() == []


async def test_a_call_that_lands_without_an_answer_shows_twice_when_repeated(telegram: Telegram) -> None:
    telegram.standin.next(Fault(cut=True, landed=True, on="sendMessage"))
    with pytest.raises(TelegramNetworkError):
        await telegram.bot.send_message(CHAT, "x")
    await telegram.bot.send_message(CHAT, "x")
    assert telegram.texts() == ["x", "x"]


async def test_a_slow_answer_runs_into_the_callers_timeout(telegram: Telegram) -> None:
    telegram.standin.next(Fault(delay=30, landed=True))
    with pytest.raises(TelegramNetworkError):
        await telegram.bot.send_message(CHAT, "x", request_timeout=1)
    assert telegram.texts() == ["x"]


# --- Telegram 2.1: receiving


async def test_updates_come_once_confirmed_by_offset(telegram: Telegram) -> None:
    for text in ("one", "two"):
        telegram.standin.push_update(telegram.standin.text_update(CHAT, text))
    updates = await telegram.bot.get_updates(timeout=0)
    assert [update.message.text for update in updates if update.message] == ["one", "two"]
    assert await telegram.bot.get_updates(offset=updates[-1].update_id + 1, timeout=0) == []
    telegram.standin.push_update(telegram.standin.text_update(CHAT, "three"))
    assert len(await telegram.bot.get_updates(offset=updates[-1].update_id + 1)) == 1


async def test_a_long_poll_ends_with_the_update(telegram: Telegram) -> None:
    poll = asyncio.create_task(telegram.bot.get_updates(timeout=20))
    await telegram.standin.until(lambda: telegram.standin.bots[TOKEN].poller is not None)
    telegram.standin.push_update(telegram.standin.text_update(CHAT, "now"))
    async with asyncio.timeout(60):
        (update,) = await poll
    assert update.message is not None


async def test_the_older_of_two_pollers_is_ended(telegram: Telegram) -> None:
    old = asyncio.create_task(telegram.bot.get_updates(timeout=20))
    await telegram.standin.until(lambda: telegram.standin.bots[TOKEN].poller is not None)
    assert await telegram.bot.get_updates(timeout=0) == []
    with pytest.raises(TelegramConflictError, match="terminated by other getUpdates request"):
        await old


async def test_polling_and_a_webhook_exclude_each_other(telegram: Telegram) -> None:
    await telegram.bot.set_webhook("https://example.com/hook", secret_token="abc", allowed_updates=["message"])
    info = await telegram.bot.get_webhook_info()
    assert (info.url, info.allowed_updates) == ("https://example.com/hook", ["message"])
    with pytest.raises(TelegramConflictError, match="webhook is active"):
        await telegram.bot.get_updates()
    telegram.standin.push_update(telegram.standin.text_update(CHAT, "x"))
    await telegram.bot.delete_webhook(drop_pending_updates=True)
    assert await telegram.bot.get_updates(timeout=0) == []


async def test_allowed_updates_left_out_keeps_the_list_before(telegram: Telegram) -> None:
    await telegram.bot.set_webhook("https://example.com/a", allowed_updates=["message"])
    await telegram.bot.set_webhook("https://example.com/b")
    info = await telegram.bot.get_webhook_info()
    assert (info.url, info.allowed_updates) == ("https://example.com/b", ["message"])


@pytest.mark.parametrize(
    ("url", "secret", "reason"),
    [
        ("http://example.com/", None, "HTTPS URL"),
        ("https://example.com:9000/", None, "ports 80, 88, 443 or 8443"),
        ("https://example.com/", "with space", "unallowed characters"),
    ],
)
async def test_a_wrong_webhook_is_refused(telegram: Telegram, url: str, secret: str | None, reason: str) -> None:
    with pytest.raises(TelegramBadRequest, match=reason):
        await telegram.bot.set_webhook(url, secret_token=secret)


async def test_a_webhook_takes_one_to_a_hundred_connections(telegram: Telegram) -> None:
    await telegram.bot.set_webhook("https://example.com:8443/", max_connections=100)
    with pytest.raises(TelegramBadRequest, match="max_connections"):
        await telegram.bot.set_webhook("https://example.com/", max_connections=101)


async def test_commands_have_plain_names(telegram: Telegram) -> None:
    await telegram.bot.set_my_commands([BotCommand(command="help", description="ช่วยเหลือ")])
    assert [command.command for command in await telegram.bot.get_my_commands()] == ["help"]
    with pytest.raises(TelegramBadRequest, match="BOT_COMMAND_INVALID"):
        await telegram.bot.set_my_commands([BotCommand(command="Help", description="x")])


async def test_files_are_found_by_id_and_fetched_by_path(telegram: Telegram) -> None:
    telegram.standin.files["photo1"] = b"jpeg"
    telegram.standin.files["video1"] = b"x" * (20 * 2**20 + 1)
    found = await telegram.bot.get_file("photo1")
    assert found.file_path is not None
    data = await telegram.bot.download_file(found.file_path)
    assert data is not None
    assert data.read() == b"jpeg"
    with pytest.raises(TelegramBadRequest, match="file is too big"):
        await telegram.bot.get_file("video1")


async def test_two_bots_are_two_persons(telegram: Telegram) -> None:
    second = Bot("1000002:second-test-bot", session=telegram.bot.session)
    assert ((await telegram.bot.get_me()).id, (await second.get_me()).id) == (1_000_001, 1_000_002)
    telegram.standin.push_update(telegram.standin.text_update(CHAT, "x"), TOKEN)
    assert await second.get_updates(timeout=0) == []


def test_every_method_the_stand_in_has_is_aiograms() -> None:
    assert METHODS - {name.lower() for name in aiogram.methods.__all__} == set()
