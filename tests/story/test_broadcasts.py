"""A shop writes to its customers: who gets it, what it costs, and that each gets it once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import aiohttp

from config.texts import Text
from gateway.broadcast_commands import listed, previewed
from gateway.broadcasts.draft import Draft
from memory.transcripts import TranscriptFiles
from tests.house import House, house, shop
from tests.standins.line import monthly_limit
from tests.standins.telegram_model import BLOCKED

ANN, BEE, CAT = "U" + "a" * 32, "U" + "b" * 32, "U" + "c" * 32
KEY = "test-key-of-the-shop"
ALWAYS = {"quiet_hours": False}
NEWS = "คุณ{{user.name}} คะ วันนี้ลาเต้แก้วที่สองครึ่งราคา โทร {{shop.phone}}"


def cafe(**sections: Any) -> dict[str, Any]:
    own = {"shop": {"phone": "02-555-0148"}, "broadcasts": ALWAYS, "memory": {"sm_ttl": 1}}
    return shop("Café", api_keys=["sha256:" + sha256(KEY.encode()).hexdigest()], **own | sections)


async def ask(home: House, method: str, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, Any]:
    """With the shop's own key."""
    headers = {"Authorization": f"Bearer {KEY}"}
    async with (
        aiohttp.ClientSession() as http,
        http.request(method, f"{home.url}/api/v1/broadcasts{path}", json=body, headers=headers) as answer,
    ):
        return answer.status, await answer.json(content_type=None)


async def over(home: House, name: str, state: str = "done") -> Any:
    """The report, once the broadcast is in that state and nobody is on their way."""

    async def show() -> Any:
        return (await ask(home, "GET", f"/{name}"))[1]

    return await home.until(show, lambda told: (told["state"], told["under_way"]) == (state, 0))


def pushed(home: House) -> list[str]:
    """To whom LINE was asked to push, in order."""
    return [call.body["to"] for call in home.line.calls if call.path.endswith("/push")]


async def regulars(home: House) -> None:
    """Ann and Bee write on LINE, somebody else on Telegram."""
    await home.line_says(ANN, "ขอสั่งลาเต้ 2 แก้วค่ะ")
    await home.line_says(BEE, "I'd like to order two lattes please")
    await home.telegram_says(55, "ขอสั่งลาเต้ 1 แก้วค่ะ")
    await home.quiet()


async def test_everybody_gets_it_once_where_they_wrote_and_in_their_language(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": cafe()}) as home:
        home.line.quota = 100
        await regulars(home)
        free = len(home.line.calls)
        draft = {"message": {"th": NEWS, "en": "Hi {{user.name}}, half price today"}, "buttons": ["ดูเมนู"]}

        async def preview() -> Any:
            return (await ask(home, "POST", "/preview", draft))[1]

        # What LINE says people are called is learned behind the turns.
        seen = await home.until(preview, lambda seen: all("LINE" in one["text"] for one in seen["samples"][:2]))
        assert seen["by_channel"] == {"line-main": 2, "telegram-main": 1}
        assert seen["line"] == [{"channel": "line-main", "pushes": 2, "known": True, "limit": 100, "left": 100}]
        assert (seen["people"], seen["left_out"], seen["refused"], seen["confirm"]) == (3, {}, "", "")
        assert {one["user"]: one["text"] for one in seen["samples"]}[f"line:{BEE}"] == (
            "Hi LINE bbbb, half price today"
        )
        assert pushed(home) == []  # nothing was sent yet
        status, sent = await ask(home, "POST", "", {"id": "half-price", **draft})
        assert (status, sent["id"], sent["people"]) == (201, "half-price", 3)
        told = await over(home, "half-price")
        assert (told["sent"], told["failed"], told["left_out"]) == (3, {}, {})
        assert home.line_shows(ANN)[-1] == "คุณLINE aaaa คะ วันนี้ลาเต้แก้วที่สองครึ่งราคา โทร 02-555-0148"
        assert home.line_shows(BEE)[-1] == "Hi LINE bbbb, half price today"
        assert len(home.telegram_shows(55)) == 2
        assert sorted(pushed(home)) == [ANN, BEE]
        assert all(call.headers.get("x-line-retry-key") for call in home.line.calls[free:] if "push" in call.path)
        # The same again is the same; something else under its name is refused.
        assert (await ask(home, "POST", "", {"id": "half-price", **draft}))[0] == 200
        assert (await ask(home, "POST", "", {"id": "half-price", "message": "other"}))[0] == 409
        await home.quiet()
        assert sorted(pushed(home)) == [ANN, BEE]
        listed = (await ask(home, "GET", "?limit=1"))[1]
        assert ([one["id"] for one in listed["items"]], listed["total"]) == (["half-price"], 1)
        page = (await ask(home, "GET", "/half-price/recipients?limit=2"))[1]
        rest = (await ask(home, "GET", f"/half-price/recipients?limit=2&cursor={page['next_cursor']}"))[1]
        fates = {one["user"]: one["fate"] for one in page["items"] + rest["items"]}
        assert fates == dict.fromkeys((f"line:{ANN}", f"line:{BEE}", "telegram:55"), "sent")
        # It stands where the next session is told what was said, and with no dead letters behind it.
        lines = await TranscriptFiles(tmp_path / "data" / "transcripts").everything("shop", f"line:{ANN}")
        assert [one["metadata"] for one in lines if "metadata" in one and "broadcast" in one["metadata"]] == [
            {"broadcast": "half-price"}
        ]
        assert (await ask(home, "GET", "/none"))[0] == 404


async def test_who_told_their_name_today_is_called_by_it_as_the_preview_shows(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": cafe()}) as home:
        await home.line_says(ANN, "hello, my name is Ann")
        await home.quiet()
        draft = {"message": {"th": NEWS, "en": "Hi {{user.name}}"}}

        async def preview() -> Any:
            return (await ask(home, "POST", "/preview", draft))[1]

        seen = await home.until(preview, lambda seen: [one["text"] for one in seen["samples"]] == ["Hi Ann"])
        assert seen["people"] == 1
        await ask(home, "POST", "", {"id": "name", **draft})
        await over(home, "name")
        assert home.line_shows(ANN)[-1] == "Hi Ann"


async def test_who_wants_no_news_left_or_talks_with_a_person_is_left_out(tmp_path: Path, redis_url: str) -> None:
    staff = {"channel": "telegram-main", "chat": "-100123"}
    async with house(tmp_path, redis_url, {"shop": cafe(staff=staff, memory={"sm_ttl": 600})}) as home:
        await regulars(home)
        await home.line_says(ANN, "หยุดรับข่าวสารค่ะ")
        await home.line_says(BEE, "I want to talk to a person")
        await home.telegram_says(55, "หยุดวันไหนบ้างคะ")  # asks for holidays
        await home.quiet()
        assert "จะไม่ส่งข่าวสารมาอีกนะคะ" in home.line_shows(ANN)[-1]
        home.telegram.refuses["55"] = BLOCKED
        assert (await ask(home, "POST", "", {"id": "first", "message": "ลดราคาค่ะ"}))[0] == 201
        told = await over(home, "first")
        assert (told["sent"], told["failed"]) == (0, {})
        assert told["left_out"] == {"gone": 1, "opted_out": 1, "with_staff": 1}
        assert pushed(home) == []
        # Who left is known by now. Who wants news again gets it, with a button to end it.
        await home.line_says(ANN, "รับข่าวสาร")
        await home.quiet()
        assert (await ask(home, "POST", "/preview", {"message": "อีกครั้ง"}))[1]["left_out"] == {"gone": 1}
        to_ann = {"id": "second", "to": {"users": [f"line:{ANN}"]}, "message": "อีกครั้ง"}
        assert (await ask(home, "POST", "", to_ann))[0] == 201
        assert (await over(home, "second"))["sent"] == 1
        assert home.line_shows(ANN)[-1] == "อีกครั้ง"
        news = next(call.body for call in home.line.calls if call.path.endswith("/push"))
        buttons = [one["action"]["text"] for one in news["messages"][-1]["quickReply"]["items"]]
        assert buttons == ["หยุดรับข่าวสาร"]
        # Who is forgotten stands in no list of recipients, and for no wish either.
        await home.line_says(ANN, "หยุด")
        await home.line_says(ANN, "/forget yes")
        await home.quiet()
        kept = b"".join(one.read_bytes() for one in (tmp_path / "data" / "broadcasts").iterdir())
        assert ANN.encode() not in kept
        assert ANN not in (tmp_path / "data" / "opted_out" / "shop.json").read_text()
        assert (await ask(home, "GET", "/second"))[1]["people"] == 0


async def test_what_is_left_of_the_quota_is_not_gone_beyond_unasked(tmp_path: Path, redis_url: str) -> None:
    limited = cafe(broadcasts={**ALWAYS, "monthly_pushes": 2})
    async with house(tmp_path, redis_url, {"shop": limited}) as home:
        home.line.quota = 1
        await regulars(home)
        draft = {"message": "ลดราคาค่ะ", "id": "sale"}
        status, refused = await ask(home, "POST", "", draft)
        assert (status, "1 are left of the month's quota" in refused["detail"]) == (409, True), refused
        assert (await ask(home, "GET", ""))[1]["total"] == 0
        assert (await ask(home, "POST", "?confirm=true", draft))[0] == 201
        told = await over(home, "sale", "paused")
        assert (told["sent"], told["waiting"], told["why"]) == (
            2,
            1,
            "LINE's monthly quota is used up: resume it when there is quota again",
        )
        assert (len(pushed(home)), len(home.telegram_shows(55))) == (1, 2)
        # LINE says that there is quota again, and is wrong: nobody is lost, nothing lies dead.
        home.line.quota = 100
        assert (await ask(home, "POST", "/preview", {"message": "x"}))[1]["own_left"] == 0  # one sent, one promised
        home.line.next(monthly_limit(on="/push"))
        assert (await ask(home, "POST", "/sale/resume"))[1]["state"] == "running"
        told = await over(home, "sale", "paused")
        assert (told["sent"], told["waiting"], told["failed"]) == (2, 1, {})
        async with aiohttp.ClientSession() as http, http.get(f"{home.url}/readyz") as ready:
            assert (await ready.json())["queue"]["dead"] == 0
        # The command says the same, and does not send what has to be confirmed.
        asked_for = Draft(message=Text(th="ลดราคาค่ะ", en="Half price"))
        lines, seen = await previewed(home.settings, "shop", asked_for)
        assert lines[:3] == [
            "LINE pushes on line-main: 2 (98 of 100 left this month)",
            "of the shop's own limit (broadcasts.monthly_pushes) 0 are left",
            "3 people would get it: 2 on line-main, 1 on telegram-main",
        ]
        assert "of the shop's own limit" in seen.refused
        (line,) = await listed(home.settings, "shop")
        assert line.endswith(
            "2 of 3 sent  paused: LINE's monthly quota is used up: resume it when there is quota again"
        )
        # What is cancelled is sent to nobody else; beyond the shop's own limit nothing goes at all.
        assert (await ask(home, "POST", "/sale/cancel"))[1]["left_out"] == {"cancelled": 1}
        assert (await ask(home, "POST", "/sale/resume"))[0] == 409
        status, refused = await ask(home, "POST", "?confirm=true", {"message": "ลดราคาค่ะ"})
        assert (status, "of the shop's own limit" in refused["detail"]) == (409, True), refused


class Clock:
    """Bangkok's, an hour before the evening's quiet hours; it goes on a little with each look."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 2, 13, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=2)
        return self.now


async def test_quiet_hours_and_follow_ups_keep_to_the_shops_clock(tmp_path: Path, redis_url: str) -> None:
    rule = {"after": "TRANSACTION", "days": 3, "message": "คราวก่อนถูกใจไหมคะ", "channels": ["line-main"]}
    clock = Clock()
    tenant = cafe(broadcasts={"follow_ups": {"after-order": rule}})
    async with house(tmp_path, redis_url, {"shop": tenant}, clock=clock) as home:
        home.line.quota = None
        await regulars(home)
        clock.now += timedelta(hours=2)  # ten in the evening
        status, sent = await ask(home, "POST", "", {"id": "late", "message": "ข่าวค่ะ"})
        assert (status, sent["state"]) == (201, "running")

        async def show() -> Any:
            return (await ask(home, "GET", "/late"))[1]

        await home.until(show, lambda told: told["why"] == "quiet hours")
        assert (await ask(home, "POST", "/late/pause"))[1]["state"] == "paused"
        assert pushed(home) == []
        clock.now += timedelta(hours=11)  # nine in the morning
        assert (await ask(home, "POST", "/late/resume"))[1]["waiting"] == 3
        assert (await over(home, "late"))["sent"] == 3
        assert sorted(pushed(home)) == [ANN, BEE]
        # Bee writes again the next day; of Ann nothing more is heard.
        clock.now += timedelta(days=1)
        await home.line_says(BEE, "one more latte please")
        await home.quiet()
        clock.now += timedelta(days=2)

        async def followed() -> Any:
            return (await ask(home, "GET", "/follow-up-after-order"))[1]

        told = await home.until(followed, lambda told: told.get("sent") == 1)
        assert (told["kind"], told["people"]) == ("follow_up", 1)
        assert home.line_shows(ANN)[-1] == "คราวก่อนถูกใจไหมคะ"
        clock.now += timedelta(hours=3)
        await home.quiet()
        assert (await ask(home, "POST", "/follow-up-after-order/cancel"))[0] == 409  # it stands in the file
        assert (await followed())["people"] == 1
        assert sorted(pushed(home)) == [ANN, ANN, BEE]
