"""What customers send besides words: fetched, kept, shown, forgotten."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from gateway import assembly
from tests.house import LLM_KEY, TELEGRAM_SECRET, House, house, shop
from tests.standins.line import LineContent

ANN = "U" + "a" * 32
JPEG = b"\xff\xd8\xff\xe0" + b"a small picture" * 10
SEES = {"default": {"vision": True}}


def sent(home: House, kind: str, **fields: Any) -> dict[str, Any]:
    """A LINE message that is no text."""
    event = home.line.text_event(ANN, "")
    event["message"] = {"id": event["message"]["id"], "type": kind, **fields}
    return event


def files(folder: Path) -> list[bytes]:
    kept = sorted((folder / "data" / "media").rglob("*"))
    return [path.read_bytes() for path in kept if path.is_file()]


def seen(request: dict[str, Any]) -> list[str]:
    """The kinds of parts in the last message to the model."""
    content = request["messages"][-1]["content"]
    return ["text"] if isinstance(content, str) else [part["type"] for part in content]


async def test_a_photo_is_kept_and_shown_to_a_model_that_can_see(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": shop(agents=SEES)}, llm_key=LLM_KEY) as home:
        shown: list[Any] = []

        def look(request: dict[str, Any]) -> str:
            shown.append(request["messages"][-1]["content"])
            return "a fine picture"

        home.llm.answers(look)
        event = sent(home, "image", contentProvider={"type": "line"})
        home.line.contents[event["message"]["id"]] = LineContent(JPEG)
        await home.line.deliver(home.line_hook(), event)
        await home.quiet()
        assert home.line_shows(ANN) == ["a fine picture"]
        uri = f"data:image/jpeg;base64,{base64.b64encode(JPEG).decode()}"
        parts = [{"type": "text", "text": "[photo]"}, {"type": "image_url", "image_url": {"url": uri}}]
        assert parts in shown
        assert files(tmp_path) == [JPEG]


async def test_a_model_that_cannot_see_is_told_what_it_is(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: f"{seen(request)} {request['messages'][-1]['content']}")
        event = sent(home, "image")
        home.line.contents[event["message"]["id"]] = LineContent(JPEG)
        await home.line.deliver(home.line_hook(), event)
        await home.quiet()
        assert home.line_shows(ANN) == ["['text'] [photo]"]


async def test_what_line_still_prepares_is_waited_for(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url) as home:
        event = sent(home, "audio", duration=3000)
        home.line.contents[event["message"]["id"]] = LineContent(b"sound", "audio/x-m4a", preparing=2)
        await home.line.deliver(home.line_hook(), event)
        await home.quiet()
        assert files(tmp_path) == [b"sound"]
        assert len(home.line_shows(ANN)) == 1


@pytest.mark.parametrize("content", [LineContent(gone=True), None], ids=["gone", "unknown"])
async def test_what_is_gone_is_answered_all_the_same(
    tmp_path: Path, redis_url: str, content: LineContent | None
) -> None:
    async with house(tmp_path, redis_url, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: request["messages"][-1]["content"])
        event = sent(home, "image")
        if content is not None:
            home.line.contents[event["message"]["id"]] = content
        await home.line.deliver(home.line_hook(), event)
        await home.quiet()
        assert home.line_shows(ANN) == ["[photo that could not be opened (gone)]"]
        assert files(tmp_path) == []


async def test_what_only_calls_itself_a_photo_is_not_kept(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url) as home:
        event = sent(home, "image")
        home.line.contents[event["message"]["id"]] = LineContent(b"<html>", "image/jpeg")
        await home.line.deliver(home.line_hook(), event)
        await home.quiet()
        assert (files(tmp_path), len(home.line_shows(ANN))) == ([], 1)


def photo(home: House, chat: int, file_id: str, **fields: Any) -> dict[str, Any]:
    update = home.telegram.text_update(chat, "")
    del update["message"]["text"]
    update["message"] |= {"photo": [{"file_id": file_id, "width": 90, "height": 90}], **fields}
    return update


async def test_a_telegram_album_is_one_turn_with_all_its_photos(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": shop(agents=SEES)}, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: " ".join(seen(request)))
        home.telegram.files |= {"one": JPEG, "two": JPEG + b"2"}
        first, second = (photo(home, 55, name, media_group_id="g1") for name in ("one", "two"))
        first["message"]["caption"] = "which is better?"
        for update in (second, first):  # out of order
            await home.telegram.deliver(home.telegram_hook(), update, TELEGRAM_SECRET)
        await home.quiet()
        assert home.telegram_shows(55) == ["text image_url image_url"]
        assert sorted(files(tmp_path)) == [JPEG, JPEG + b"2"]


async def test_a_file_that_is_too_large_gets_a_polite_word_and_is_not_fetched(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url) as home:
        update = home.telegram.text_update(55, "")
        del update["message"]["text"]
        update["message"]["document"] = {"file_id": "big", "file_name": "all.zip", "file_size": 50_000_000}
        await home.telegram.deliver(home.telegram_hook(), update, TELEGRAM_SECRET)
        await home.quiet()
        assert home.telegram.calls_to("/getFile") == []
        (answer,) = home.telegram_shows(55)
        assert "ไฟล์ใหญ่เกินไป" in answer


async def test_what_is_kept_goes_with_its_time_with_its_unsending_and_with_its_person(
    tmp_path: Path, redis_url: str
) -> None:
    async with house(tmp_path, redis_url) as home:
        events = []
        for number in range(2):
            event = sent(home, "image")
            home.line.contents[event["message"]["id"]] = LineContent(JPEG + bytes([number]))
            await home.line.deliver(home.line_hook(), event)
            await home.quiet()
            events.append(event)
        assert len(files(tmp_path)) == 2
        gone = {key: value for key, value in events[0].items() if key not in ("message", "replyToken")}
        unsent = {"type": "unsend", "unsend": {"messageId": events[0]["message"]["id"]}, "webhookEventId": "UNSEND1"}
        await home.line.deliver(home.line_hook(), {**gone, **unsent})
        await home.quiet()
        assert files(tmp_path) == [JPEG + b"\x01"]
        manager = assembly.memory_of(home.settings, home.tenants, redis_url)
        assert await manager.prune_media("shop", 1) == 0
        assert (await manager.forget("shop", f"line:{ANN}"))["media_files"] == 1
        await manager.close()
        assert files(tmp_path) == []
        later = assembly.memory_of(
            home.settings, home.tenants, redis_url, clock=lambda: assembly.utc_now() + timedelta(days=100)
        )
        event = sent(home, "image")
        home.line.contents[event["message"]["id"]] = LineContent(JPEG)
        await home.line.deliver(home.line_hook(), event)
        await home.quiet()
        assert await later.prune_media("shop", 90) == 1
        await later.close()


@asynccontextmanager
async def speech(words: str) -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """A server that knows `/audio/transcriptions` and no chat."""
    heard: list[dict[str, Any]] = []

    async def transcribe(request: web.Request) -> web.Response:
        form = await request.post()
        file = form["file"]
        assert isinstance(file, web.FileField)
        heard.append({"model": form["model"], "name": file.filename, "data": file.file.read()})
        return web.json_response({"text": words})

    application = web.Application()
    application.router.add_post("/v1/audio/transcriptions", transcribe)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1", heard
    finally:
        await runner.cleanup()


async def test_a_voice_message_is_answered_by_what_is_said_in_it(tmp_path: Path, redis_url: str) -> None:
    faq = [{"questions": ["What time do you open?"], "answer": "At nine."}]
    async with speech("what time do you open") as (url, heard):
        file = shop(faq=faq, agents={"default": {"hearing": "whisper-test"}}, llm={"base_url": url, "api_key": "key"})
        async with house(tmp_path, redis_url, {"shop": file}) as home:
            home.telegram.files["voice1"] = b"OggS and so on"
            update = home.telegram.text_update(55, "")
            del update["message"]["text"]
            update["message"]["voice"] = {"file_id": "voice1", "duration": 2, "mime_type": "audio/ogg"}
            await home.telegram.deliver(home.telegram_hook(), update, TELEGRAM_SECRET)
            await home.quiet()
            assert home.telegram_shows(55) == ["At nine."]
    assert heard == [{"model": "whisper-test", "name": "recording.ogg", "data": b"OggS and so on"}]


async def test_what_we_call_a_thing_is_no_word_of_the_customers(tmp_path: Path, redis_url: str) -> None:
    """Neither remembered as said by them, nor a sign of their language."""
    async with house(tmp_path, redis_url) as home:
        await home.line_says(ANN, "สวัสดีค่ะ")
        await home.quiet()
        things = [sent(home, "image"), sent(home, "sticker", keywords=["hello", "wave"]), sent(home, "location")]
        things[2]["message"] |= {"title": "Siam Square", "latitude": 13.7, "longitude": 100.5}
        for thing in (*things, sent(home, "file", fileName="x.pdf")):
            await home.line.deliver(home.line_hook(), thing)
            await home.quiet()
        assert [one for one in home.line_shows(ANN) if one.isascii()] == []
        assert len(home.line_shows(ANN)) == 5
    longterm = "".join(path.read_text("utf-8") for path in (tmp_path / "data" / "longterm").rglob("*.j*"))
    assert ("Siam Square" in longterm, "could not be opened" in longterm) == (True, False)
