"""A customer wants a person: who is told, who is silent, and how they come back to the bot."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis

from gateway.takeover import wants_a_person
from memory.short_term import codec
from tests.house import TELEGRAM_SECRET, House, house, shop
from tests.standins.line import monthly_limit
from tests.standins.model import Fault
from tests.standins.telegram import KICKED, too_many

ANN = "U" + "a" * 32
STAFF, MEMBER = -100123, 77
LINE_STAFF = "C" + "5" * 32
ON_TELEGRAM = {"channel": "telegram-main", "chat": str(STAFF)}
ON_LINE = {"channel": "line-main", "chat": LINE_STAFF}
SOON = "I've told our staff. A person will answer you here; you can keep writing in the meantime."
BACK = "You're back with the bot. How can I help?"


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 3, 2, 3, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=5)
        return self.now


def session(redis_url: str, user: str) -> dict[str, Any]:
    with redis.Redis.from_url(redis_url) as client:
        return codec.decode(client.get(f"sm:shop:{user}")).model_dump(mode="json")


async def says(home: House, chat: int, text: str, user: int | None = None, *, name: str = "Test") -> None:
    update = home.telegram.text_update(chat, text, user=user)
    update["message"]["from"]["first_name"] = name
    assert await home.telegram.deliver(home.telegram_hook(), update, TELEGRAM_SECRET) == 200
    await home.quiet()


async def staff_reply(home: House, to: int, text: str) -> None:
    """A colleague replies to the `to`-th message that the bot put into the staff chat."""
    shown = home.telegram.delivered[str(STAFF)][to]
    update = home.telegram.text_update(STAFF, text, user=MEMBER)
    bot = {"id": 1000001, "is_bot": True, "first_name": "Bot"}
    update["message"]["reply_to_message"] = {
        "message_id": shown.message_id,
        "from": bot,
        "chat": update["message"]["chat"],
        "date": 1,
        "text": shown.text,
    }
    assert await home.telegram.deliver(home.telegram_hook(), update, TELEGRAM_SECRET) == 200
    await home.quiet()


async def test_a_person_takes_over_and_gives_back(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": shop(staff=ON_TELEGRAM)}) as home:
        await says(home, 55, "hello there", name="A*n*n")
        await says(home, 55, "I want to talk to a human", name="A*n*n")
        assert home.telegram_shows(55)[1:] == [SOON]
        told = home.telegram_shows(STAFF)
        assert len(told) == 1
        assert "A*n*n (telegram-main)" in told[0]  # as data: no mark of it is a style
        assert "hello there" in told[0]
        assert "I want to talk to a human" in told[0]
        assert session(redis_url, "telegram:55")["state"] == "human"

        await says(home, 55, "is anybody there?", name="Ann")
        await says(home, 55, "my *order* is <late>", name="Ann")
        assert home.telegram_shows(55)[1:] == [SOON]  # the bot is silent
        assert [one.splitlines() for one in home.telegram_shows(STAFF)[1:]] == [
            ["จาก Ann (telegram-main)", "ลูกค้า: is anybody there?"],
            ["จาก Ann (telegram-main)", "ลูกค้า: my *order* is <late>"],
        ]

        await says(home, STAFF, "who takes this one?", user=MEMBER)  # no reply: talk among themselves
        await staff_reply(home, 1, "Hello, *this* is Ploy.\n1. It is on its way")
        assert home.telegram_shows(55)[2:] == ["Hello, *this* is Ploy.\n1. It is on its way"]
        assert len(home.telegram_shows(STAFF)) == 3

        await staff_reply(home, 2, "/bot")
        assert home.telegram_shows(55)[3:] == [BACK]
        assert home.telegram_shows(STAFF)[3:] == ["ให้บอตดูแลต่อแล้วค่ะ"]
        await says(home, 55, "thank you")
        assert home.telegram_shows(55)[4:] == ["You're welcome!"]

        kept = session(redis_url, "telegram:55")
    assert kept["state"] == "awaiting_input"
    lines = [(line["role"], (line.get("metadata") or {}).get("by"), line["message"]) for line in kept["history"]]
    assert lines[2:] == [
        ("user", None, "I want to talk to a human"),
        ("bot", None, SOON),
        ("user", None, "is anybody there?"),
        ("user", None, "my *order* is <late>"),
        ("bot", "staff", "Hello, *this* is Ploy.\n1. It is on its way"),
        ("bot", None, BACK),
        ("user", None, "thank you"),
        ("bot", None, "You're welcome!"),
    ]
    transcript = "".join(file.read_text("utf-8") for file in (tmp_path / "data" / "transcripts").rglob("*.jsonl"))
    assert (transcript.count('"by":"staff"'), transcript.count("who takes this one")) == (1, 0)


async def test_the_customer_goes_back_by_a_command_and_staff_hear_of_it(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": shop(staff=ON_TELEGRAM)}) as home:
        await says(home, 55, "/human")
        await says(home, 55, "/human")
        await says(home, 55, "/bot")
        await says(home, 55, "/bot")
        assert len(home.telegram_shows(STAFF)) == 3
        assert home.telegram_shows(STAFF)[2].splitlines()[1] == "ลูกค้ากลับไปคุยกับบอตแล้วค่ะ"
        answers = home.telegram_shows(55)
    assert answers == [
        "แจ้งพนักงานให้แล้วค่ะ พนักงานจะมาตอบในแชตนี้นะคะ ระหว่างนี้พิมพ์รายละเอียดทิ้งไว้ได้เลยค่ะ",
        "พนักงานได้รับเรื่องแล้วค่ะ จะมาตอบในแชตนี้นะคะ",
        "กลับมาคุยกับบอตแล้วค่ะ มีอะไรให้ช่วยบอกได้เลยนะคะ",
        "ตอนนี้คุยกับบอตอยู่แล้วค่ะ มีอะไรให้ช่วยบอกได้เลยนะคะ",
    ]


async def test_the_bot_comes_back_when_staff_let_their_time_run_out(tmp_path: Path, redis_url: str) -> None:
    clock = Clock()
    tenant = shop(staff=ON_TELEGRAM, behaviour={"debounce_ms": 0, "human_timeout_min": 120})
    async with house(tmp_path, redis_url, {"shop": tenant}, clock=clock) as home:
        await says(home, 55, "talk to a human please")
        clock.now += timedelta(minutes=100)  # longer than a session lasts by itself
        await says(home, 55, "still waiting")
        assert len(home.telegram_shows(55)) == 1
        await staff_reply(home, 0, "Sorry, we were busy")
        clock.now += timedelta(minutes=119)
        await says(home, 55, "no problem")
        assert len(home.telegram_shows(55)) == 2
        clock.now += timedelta(minutes=2)
        await says(home, 55, "thank you")
        assert home.telegram_shows(55)[2:] == ["You're welcome!"]
        await staff_reply(home, 0, "Anything else?")  # and so it is theirs again
        await says(home, 55, "no, thank you")
        assert home.telegram_shows(55)[3:] == ["Anything else?"]


async def test_a_grave_complaint_calls_staff_and_an_ordinary_one_does_not(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": shop(staff=ON_TELEGRAM)}) as home:
        await says(home, 66, "the coffee was a bit cold")
        assert home.telegram_shows(STAFF) == []
        await says(home, 55, "แย่มาก กินแล้วอาหารเป็นพิษ จะแจ้งความและฟ้องร้าน ขอเงินคืนเดี๋ยวนี้!!!")
        assert home.telegram_shows(STAFF)[0].splitlines()[0] == "ลูกค้าร้องเรียนเรื่องสำคัญค่ะ"
        assert home.telegram_shows(55) == ["ต้องขอโทษเป็นอย่างมากนะคะ เรื่องนี้แจ้งพนักงานให้แล้วค่ะ พนักงานจะมาดูแลต่อในแชตนี้นะคะ"]


async def test_without_a_staff_chat_the_bot_says_so_and_goes_on(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url) as home:
        await says(home, 55, "ขอคุยกับพนักงานค่ะ")
        await says(home, 55, "ขอบคุณค่ะ")
        assert home.telegram_shows(55) == [
            "ตอนนี้ยังเรียกพนักงานเข้ามาในแชตนี้ไม่ได้ค่ะ แต่จดไว้ให้ทางร้านแล้วว่าคุณลูกค้าอยากคุยกับพนักงาน ระหว่างนี้ถามบอตต่อได้เลยนะคะ",
            "ด้วยความยินดีค่ะ",
        ]
        kept = session(redis_url, "telegram:55")
    assert (kept["state"], kept["variables"]["human_wanted"]) == ("awaiting_input", True)


async def test_without_a_staff_chat_the_shops_own_answer_comes_first(tmp_path: Path, redis_url: str) -> None:
    faq = [{"questions": ["Can I talk to a person?"], "answer": "Call 02-555-0100."}]
    async with house(tmp_path, redis_url, {"shop": shop(faq=faq)}) as home:
        await says(home, 55, "Can I talk to a person?")
        assert home.telegram_shows(55) == ["Call 02-555-0100."]


async def test_staff_on_line_answer_a_telegram_customer_by_quoting(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": shop(staff=ON_LINE)}) as home:
        await says(home, 55, "/human")
        shown = home.line.delivered[LINE_STAFF]
        assert [one.via for one in shown] == ["push"]
        talk = home.line.text_event(ANN, "whose turn is it?", group=LINE_STAFF)
        reply = home.line.text_event(ANN, "Ploy here, how can I help?", group=LINE_STAFF)
        reply["message"]["quotedMessageId"] = shown[0].id
        colleague = home.line.text_event(ANN, "yes, do that", group=LINE_STAFF)
        colleague["message"]["quotedMessageId"] = reply["message"]["id"]
        for event in (talk, reply, home.line.redelivered(reply), colleague):
            assert await home.line.deliver(home.line_hook(), event) == 200
        await home.quiet()
        assert home.telegram_shows(55)[1:] == ["Ploy here, how can I help?"]
        assert len(home.line_shows(LINE_STAFF)) == 1


async def test_replies_to_two_customers_at_once_reach_each_their_own(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": shop(staff=ON_LINE)}) as home:
        await says(home, 55, "/human")
        await says(home, 66, "/human")
        events = []
        for shown, words in zip(home.line.delivered[LINE_STAFF], ("for 55", "for 66"), strict=True):
            events.append(home.line.text_event(ANN, words, group=LINE_STAFF))
            events[-1]["message"]["quotedMessageId"] = shown.id
        assert await home.line.deliver(home.line_hook(), *events) == 200
        await home.quiet()
        assert (home.telegram_shows(55)[1:], home.telegram_shows(66)[1:]) == (["for 55"], ["for 66"])


async def test_where_no_push_is_allowed_the_customer_is_told_and_the_bot_stays(tmp_path: Path, redis_url: str) -> None:
    tenant = shop(staff=ON_LINE)
    tenant["channels"]["line-main"]["allow_push"] = False
    async with house(tmp_path, redis_url, {"shop": tenant}) as home:
        await says(home, 55, "/human")
        assert home.line.calls_to("/push") == []
        kept = session(redis_url, "telegram:55")
    assert (kept["state"], kept["variables"]["human_wanted"]) == ("awaiting_input", True)


async def test_staff_who_could_not_be_told_are_not_waited_for(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": shop(staff=ON_LINE)}) as home:
        home.line.next(monthly_limit(on="/push"))
        await says(home, 55, "talk to a human")
        assert home.telegram_shows(55) == [
            SOON,
            "Sorry, I couldn't reach our staff just now. I've noted it for the shop; until then I'm here to help.",
        ]
        kept = session(redis_url, "telegram:55")
    assert (kept["state"], kept["variables"]["human_wanted"]) == ("awaiting_input", True)


async def test_staff_hear_when_their_reply_does_not_arrive(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": shop(staff=ON_TELEGRAM)}) as home:
        await says(home, 55, "/human")
        home.telegram.refuses["55"] = KICKED
        await staff_reply(home, 0, "are you there?")
        assert "are you there?" in home.telegram_shows(STAFF)[1]
        assert home.telegram_shows(STAFF)[1].splitlines()[0] == "ข้อความนี้ส่งไม่ถึงลูกค้าค่ะ"


async def test_who_blocked_the_bot_on_line_is_not_written_to_unheard(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": shop(staff=ON_TELEGRAM)}) as home:

        async def does(kind: str) -> None:
            event = {**home.line.text_event(ANN, ""), "type": kind}
            del event["message"]
            assert await home.line.deliver(home.line_hook(), event) == 200
            await home.quiet()

        await home.line_says(ANN, "talk to a human")
        await home.quiet()
        home.line.blocked.add(ANN)
        await does("unfollow")
        await staff_reply(home, 0, "are you there?")
        assert home.line.calls_to("/push") == []  # it would be taken, and shown to nobody
        assert home.telegram_shows(STAFF)[1].splitlines()[0] == "ข้อความนี้ส่งไม่ถึงลูกค้าค่ะ"
        home.line.blocked.discard(ANN)
        await does("follow")
        await staff_reply(home, 0, "welcome back")
        assert home.line_shows(ANN)[-1] == "welcome back"


async def test_a_reply_to_what_nobody_remembers_is_answered_honestly(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": shop(staff=ON_TELEGRAM)}) as home:
        await says(home, 55, "/human")
        with redis.Redis.from_url(redis_url) as client:
            found = client.keys("cc:staff:*")
            assert len(found) == 1
            assert 6 * 86400 < client.ttl(found[0]) <= 7 * 86400
            client.delete(found[0])
        await staff_reply(home, 0, "hello")
        assert len(home.telegram_shows(55)) == 1
        assert home.telegram_shows(STAFF)[1:] == ["ไม่มีข้อมูลแล้วว่าข้อความนั้นเป็นของลูกค้าท่านใด รบกวนตอบกลับข้อความที่ใหม่กว่านะคะ"]


async def test_a_turn_that_is_tried_again_tells_staff_and_the_customer_once(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": shop(staff=ON_LINE)}) as home:
        home.telegram.next(replace(too_many(1), on="/sendMessage"))
        home.line.next(Fault(cut=True, landed=True, on="/push"))
        await says(home, 55, "talk to a human")
        assert len(home.telegram.calls_to("/sendMessage")) == 2
        assert len(home.line.calls_to("/push")) == 2
        assert (home.telegram_shows(55), len(home.line_shows(LINE_STAFF))) == ([SOON], 1)
        reply = home.line.text_event(ANN, "Ploy here", group=LINE_STAFF)
        reply["message"]["quotedMessageId"] = home.line.delivered[LINE_STAFF][0].id
        await home.line.deliver(home.line_hook(), reply)
        await home.quiet()
        assert home.telegram_shows(55) == [SOON, "Ploy here"]


@pytest.mark.parametrize(
    "said",
    [
        "ขอคุยกับพนักงาน", "ขอคุยกับพนักงานหน่อยค่ะ", "อยากคุยกับคนจริงๆ", "ต้องการติดต่อเจ้าหน้าที่ครับ", "ขอสายแอดมินหน่อย",
        "แอดมิน", "คุยกับแอดมิน", "ช่วยเรียกพนักงานให้หน่อย", "มีแอดมินตอบไหมคะ", "ขอคุยกับ admin",
        "talk to a human", "Can I speak to someone?",
        "I'd like to talk to a real person", "human please", "connect me to an agent", "I need a real person",
        "could I speak with your manager", "get me a human",
        "ขอแอดมินหน่อยค่ะ ไม่อยากคุยกับบอท", "ไม่อยากคุยกับบอทค่ะ", "ขอเจ้าหน้าที่มาคุยหน่อย", "I don't want to talk to a bot",
    ],
)  # fmt: skip
def test_these_words_ask_for_a_person(said: str) -> None:
    assert wants_a_person(said)


@pytest.mark.parametrize(
    "said",
    [
        "พนักงานพูดจาไม่ดีเลย", "ติดต่อพนักงานได้ที่ไหน", "คุยกับพนักงานแล้วค่ะ", "ไม่ต้องเรียกพนักงานนะ", "ขอเบอร์ติดต่อแอดมิน", "มีพนักงานกี่คน",
        "ขอชาเย็น 2 แก้ว", "ที่นั่งสำหรับ 4 คน", "ตามคนอื่นไปแล้ว", "I spoke to your staff yesterday", "the staff was rude",
        "I don't want to talk to a human", "human resources", "is this a person?", "my travel agent booked it",
        "two people please", "ขอแอดมินอย่าส่งอีก ไม่ต้องคุยแล้ว", "ไม่ต้องเรียกพนักงาน คุยกับบอทได้",
    ],
)  # fmt: skip
def test_these_words_do_not(said: str) -> None:
    assert not wants_a_person(said)
