"""Buttons below an answer, and what becomes of a press, on each platform."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gateway import assembly
from gateway.adapters.terminal import answers
from gateway.inbox.base import Policy
from gateway.inbox.redis import RedisInbox
from gateway.messages import InboundMessage
from tests.house import TELEGRAM_SECRET, House, house, shop

ANN = "U" + "a" * 32
LONG = "ขอดูรายละเอียดค่าจัดส่งทั้งหมดหน่อยได้ไหม"  # longer than a LINE label, and than Telegram's callback data
ASKS = ["What time do you open?", "Do you deliver?", LONG]


def cafe() -> dict[str, Any]:
    return shop(
        replies={"welcome": {"th": "ยินดีต้อนรับค่ะ", "en": "Welcome!"}},
        agents={"default": {"suggestions": ["Do you deliver?"]}},
        faq=[
            {"questions": ["What time do you open?"], "answer": "At nine.", "buttons": ["Do you deliver?", LONG]},
            {"questions": ["Do you deliver?"], "answer": "Every day.", "buttons": "What time do you open?"},
            {"questions": [LONG], "answer": "สี่สิบบาทค่ะ"},
        ],
    )


def line_buttons(home: House) -> list[dict[str, str]]:
    last = home.line.delivered[ANN][-1].message
    return [item["action"] for item in last.get("quickReply", {}).get("items", [])]


def markup(home: House) -> Any:
    return home.telegram.calls_to("/sendMessage")[-1].body["reply_markup"]


async def test_line_shows_shortened_labels_and_a_press_is_answered(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": cafe()}) as home:
        await home.line_says(ANN, "/start")
        await home.line.until(lambda: len(home.line_shows(ANN)) == 1)
        assert [one["text"] for one in line_buttons(home)] == ["Do you deliver?"]
        await home.line_says(ANN, "What time do you open?")
        await home.line.until(lambda: home.line_shows(ANN)[1:] == ["At nine."])
        deliver, long = line_buttons(home)
        assert (deliver["label"], deliver["text"]) == ("Do you deliver?", "Do you deliver?")
        assert long["text"] == LONG
        # Shortened between characters as a reader counts them: no vowel sign is parted from its consonant.
        assert long["label"] == "ขอดูรายละเอียดค่าจัดส่งทั้…"
        await home.line_says(ANN, long["text"])
        await home.line.until(lambda: home.line_shows(ANN)[2:] == ["สี่สิบบาทค่ะ"])


async def test_telegram_answers_a_callback_and_a_key_of_the_keyboard(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": cafe()}) as home:
        await home.telegram_says(55, "Do you deliver?")
        await home.telegram.until(lambda: home.telegram_shows(55) == ["Every day."])
        assert markup(home) == {"inline_keyboard": [[{"text": ASKS[0], "callback_data": ASKS[0]}]]}
        update = home.telegram.text_update(55, "")
        message = {**update.pop("message"), "text": "Every day."}
        query = {"id": "q1", "from": message["from"], "message": message, "chat_instance": "1", "data": ASKS[0]}
        pressed = {**update, "callback_query": query}
        assert await home.telegram.deliver(home.telegram_hook(), pressed, TELEGRAM_SECRET) == 200
        await home.telegram.until(lambda: home.telegram_shows(55)[1:] == ["At nine."])
        assert len(home.telegram.calls_to("/answerCallbackQuery")) == 1
        # One of these is too long for a button below the message: they stand on the keyboard, whole.
        assert [key["text"] for row in markup(home)["keyboard"] for key in row] == ASKS[1:]
        await home.telegram_says(55, LONG)
        await home.telegram.until(lambda: home.telegram_shows(55)[2:] == ["สี่สิบบาทค่ะ"])


async def test_the_terminal_gets_the_buttons_with_the_answer(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": cafe()}) as home:
        client = assembly.inbox_client(home.settings, redis_url)
        inbox = RedisInbox(client, "terminal")
        message = InboundMessage(
            tenant="shop",
            channel="terminal",
            platform="terminal",
            event_id="1",
            user_id="terminal:ann",
            chat_id="ann",
            text="Do you deliver?",
            received_at=assembly.utc_now().timestamp(),
        )
        await inbox.put([(message, Policy())])
        line = None
        async for line in answers(client, "shop", "ann"):
            if line is not None:
                break
        await inbox.close()
    assert line is not None
    assert (line.text, [one.text for one in line.quick_replies]) == ("Every day.", ["What time do you open?"])
