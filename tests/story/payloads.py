"""Sends every payload file through the front door and tells what came of it: what docs/events.md says of it, what the
customer's chat got, and what is kept.

`python -m tests.story.payloads` prints all of it as a table.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import redis
from prometheus_client.parser import text_string_to_metric_families

from config.tenants import Tenant
from gateway import assembly, kinds
from gateway.adapters.base import Received
from gateway.adapters.line import LineReceiver
from gateway.adapters.telegram import TelegramReceiver
from gateway.batch import AMENDS
from gateway.intake import concerns_us
from gateway.redis_server import EmbeddedRedis
from memory import keys
from tests.house import LINE_SECRET, LINE_TOKEN, TELEGRAM_SECRET, House, house, shop
from tests.standins.line import LineContent, sign
from tests.standins.line_model import LineChannel

ROOT = Path(__file__).parents[2]
PAYLOADS = ROOT / "tests" / "payloads"
BOT = LineChannel(user_id="U2f7d2998820cd4e187e711f4aa950c20", token=LINE_TOKEN, secret=LINE_SECRET)
USERNAME = "siam_cafe_bot"
TOKEN = "7123456789:TESTTOKEN"
CONTENT = {"image": (b"\xff\xd8\xff\xe0 a picture", "image/jpeg"), "audio": (b"sound", "audio/x-m4a")}
HALF = "telegram/09_album_part1"  # the second half of the album brings the answer
NEW_KIND = "message: of a kind that is new to us"
SHOWN = 60  # characters of a cell


@dataclass(frozen=True)
class Came:
    """What came of one payload file. `rows` are the rows of docs/events.md that speak of what is in it, or `not for
    us`."""

    file: str
    rows: tuple[str, ...]
    shown: tuple[str, ...]  # in whatever chat
    acknowledged: int  # presses of a button
    kept: tuple[str, ...]  # what is different in the memory
    counted: Counter[str]  # in the metric

    @property
    def platform(self) -> str:
        return self.file.partition("/")[0]


def files() -> list[str]:
    return [f"{path.parent.name}/{path.stem}" for path in sorted(PAYLOADS.glob("*/*.json"))]


def body_of(file: str) -> dict[str, Any]:
    body: dict[str, Any] = json.loads((PAYLOADS / f"{file}.json").read_bytes())
    return body


def documented() -> dict[str, dict[str, str]]:
    """What docs/events.md says becomes of each row, by platform and row."""
    said: dict[str, dict[str, str]] = {}
    for line in (ROOT / "docs" / "events.md").read_text("utf-8").splitlines():
        if line.startswith("## "):
            rows = said.setdefault(line[3:].lower(), {})
        elif found := re.match(r"\| (.+?) \| (answered|remembered|counted) \|", line):
            rows[found[1]] = found[2]
    return {platform: {**rows, kinds.NOT_FOR_US: "counted"} for platform, rows in said.items()}


async def sent_through(home: House) -> list[Came]:
    """All of them, in the order of their names. An edit and an unsend find a message that was said before."""
    home.line.known_tokens_only = False
    came = []
    for file in files():
        body = body_of(file)
        _bring_content(home, body)
        if (before := _said_before(body)) is not None:
            await _post(home, file, before)
            await home.quiet()
        came.append(await _came(home, file, body))
    return came


async def _came(home: House, file: str, body: dict[str, Any]) -> Came:
    memory, shown, counted, pressed = await _memory(home), _shown(home), await _counted(home), _pressed(home)
    await _post(home, file, body)
    if file != HALF:
        await home.quiet()
    tenant = home.tenants.get("shop")
    assert tenant is not None
    after = await _memory(home)
    return Came(
        file,
        tuple(_rows(tenant, file, body)),
        tuple(_shown(home)[len(shown) :]),
        _pressed(home) - pressed,
        tuple(_different(memory, after)),
        await _counted(home) - counted,
    )


async def _post(home: House, file: str, body: dict[str, Any]) -> None:
    if file.startswith("telegram/"):
        assert await home.telegram.deliver(home.telegram_hook(), body, TELEGRAM_SECRET) == 200
        return
    raw = json.dumps(body, ensure_ascii=False).encode()
    headers = {"x-line-signature": sign(LINE_SECRET, raw)}
    async with aiohttp.ClientSession() as http, http.post(home.line_hook(), data=raw, headers=headers) as response:
        assert response.status == 200


def _bring_content(home: House, body: dict[str, Any]) -> None:
    """What the platforms hold of the files in it."""
    for event in body.get("events", ()):
        message = event.get("message", {})
        data, mime = CONTENT.get(str(message.get("type")), (b"data", "application/octet-stream"))
        home.line.contents[str(message.get("id"))] = LineContent(data, mime)
    for file_id in re.findall(r'"file_id": "([^"]+)"', json.dumps(body)):
        home.telegram.files[file_id] = CONTENT["image"][0]


def _said_before(body: dict[str, Any]) -> dict[str, Any] | None:
    """The message that an edit, an unsend or a deletion is about, as it was first said."""
    for event in body.get("events", ()):
        if event["type"] in ("messageEdited", "unsend"):
            message_id = event["message"]["id"] if "message" in event else event["unsend"]["messageId"]
            mentionee = {"index": 0, "length": 4, "type": "user", "isSelf": True, "userId": BOT.user_id}
            message = {"type": "text", "id": message_id, "quoteToken": "q", "text": "@bot ขอ 4 ที่นั่ง"}
            message["mention"] = {"mentionees": [mentionee]}
            said = {key: value for key, value in event.items() if key != "unsend"}
            said |= {"type": "message", "message": message, "replyToken": "b" * 32}
            return {**body, "events": [{**said, "webhookEventId": f"BEFORE{message_id}"}]}
    if edited := body.get("edited_message"):
        said = {key: value for key, value in edited.items() if key != "edit_date"}
        return {"update_id": body["update_id"] + 1000, "message": {**said, "text": "ขอ 4 ที่นั่ง"}}
    if deleted := body.get("deleted_business_messages"):
        person = {"id": deleted["chat"]["id"], "is_bot": False, "first_name": "A"}
        said = {"business_connection_id": deleted["business_connection_id"], "chat": deleted["chat"], "from": person}
        said |= {"message_id": deleted["message_ids"][0], "date": 1793000000, "text": "ขอ 4 ที่นั่ง"}
        return {"update_id": body["update_id"] + 1000, "business_message": said}
    return None


# -- which rows of the page speak of it ------------------------------------------------------------------------------


def _rows(tenant: Tenant, file: str, body: dict[str, Any]) -> Iterator[str]:
    """By what stands in it; what is passed over, by the name under which that is counted."""
    if file.startswith("telegram/"):
        yield _row(tenant, TelegramReceiver(_name).read(tenant, "telegram-main", body, 0.0), _telegram_row(body))
        return
    for event in body["events"]:
        raw = json.dumps({**body, "events": [event]}).encode()
        received = LineReceiver().receive(tenant, "line-main", raw, {"x-line-signature": sign(LINE_SECRET, raw)}, 0.0)
        yield _row(tenant, received, _line_row(event))


def _name(_tenant: Tenant, _channel: str) -> str:
    return USERNAME


def _row(tenant: Tenant, received: Received, row: str) -> str:
    for name in received.passed_over:
        return f"message: {name}" if name in kinds.TELEGRAM_NOTICES else name
    message = received.messages[0]
    heard = message.mentioned or message.kind in AMENDS  # a quote of the bot's words would be heard too
    return row if heard and concerns_us(tenant, message) else kinds.NOT_FOR_US


def _line_row(event: Mapping[str, Any]) -> str:
    if event["type"] != "message":
        return str(event["type"])
    row = f"message: {event['message']['type']}"
    return row if row in documented()["line"] else NEW_KIND


def _telegram_row(update: Mapping[str, Any]) -> str:
    name = next((name for name in update if name != "update_id"), "")
    content: Mapping[str, Any] = update.get(name, {})
    if name == "my_chat_member":
        here = content["new_chat_member"]["status"] in ("member", "administrator")
        back = "added to a group" if content["chat"]["id"] < 0 else "unblocked"
        return f"{name}: {back if here else 'blocked or thrown out'}"
    if name not in ("message", "business_message") or "rich_message" in content:
        return name
    if "text" in content:
        return "message: /start" if content["text"].startswith("/start") else name
    held = [f"message: {kind}" for kind, _ in kinds.TELEGRAM_CONTENT if kind in content]
    return held[0] if held else NEW_KIND


# -- what is where ---------------------------------------------------------------------------------------------------


def _shown(home: House) -> list[str]:
    """Everything on all screens, in the order in which it came."""
    screens: list[Any] = [*home.line.delivered.values(), *home.telegram.delivered.values()]
    return [one.text for one in sorted((one for screen in screens for one in screen), key=lambda one: one.at)]


def _pressed(home: House) -> int:
    return len(home.telegram.calls_to("/answerCallbackQuery"))


async def _counted(home: House) -> Counter[str]:
    async with aiohttp.ClientSession() as http, http.get(f"{home.url}/metrics") as response:
        families = text_string_to_metric_families(await response.text())
    counted: Counter[str] = Counter()
    for one in (sample for family in families for sample in family.samples):
        if one.name == "chatchat_events_passed_over_total":
            counted[one.labels["kind"]] += int(one.value)
    return counted


async def _memory(home: House) -> dict[str, str]:
    """What is kept, by a name for each piece of it."""
    kept: dict[str, str] = {}
    with redis.Redis.from_url(home.redis_url) as client:
        for key in client.scan_iter("sm:*"):
            session = json.loads(client.get(key) or "{}")
            for line in session["history"]:
                if line["role"] == "user":
                    kept[f"line {line['message_id']}"] = f"“{line['message']}”"
            if "start" in session["variables"]:
                kept[f"start {key!r}"] = f"came with {session['variables']['start']}"
        for key in client.scan_iter(f"{keys.shared('gone', 'shop')}:*"):
            kept[f"gone {key!r}"] = "unreachable"
    manager = assembly.memory_of(home.settings, home.tenants, home.redis_url)
    for path in (home.settings.data_dir / "longterm" / "shop").glob("[!_]*.j*"):
        user = keys.unescape(path.name.rpartition(".j")[0])
        if user and (memory := await manager.longterm.load("shop", user)) is not None:
            for event in memory.events:
                kept[f"event {event.event_id}"] = f"event {event.event_type}"
    await manager.close()
    for path in (home.settings.data_dir / "media").rglob("*.*"):
        kept[f"file {path}"] = f"a file .{path.suffix[1:]}"
    return kept


def _different(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            yield f"no longer {before[name]}"
        elif name not in before:
            yield after[name]
        elif before[name] != after[name]:
            yield f"{before[name]} is {after[name]}"


# -- the table -------------------------------------------------------------------------------------------------------


def table(came: Sequence[Came]) -> str:
    said = documented()
    lines = ["| payload | event | the page says | the chat got | the memory |", "| --- | --- | --- | --- | --- |"]
    for one in came:
        rows = list(dict.fromkeys(one.rows)) or ["no event"]
        fates = [said[one.platform].get(row, "-") for row in rows]
        got = [_short(text) for text in one.shown] + ["(the press acknowledged)"] * one.acknowledged
        kept = [_short(text) for text in one.kept] + [f"counted: {name}" for name in one.counted]
        cells = [one.file, ", ".join(rows), ", ".join(fates), " / ".join(got) or "-", ", ".join(kept) or "-"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _short(text: str) -> str:
    flat = " ".join(text.split()).replace("|", "¦")
    return flat if len(flat) <= SHOWN else f"{flat[: SHOWN - 1]}…"


def open_shop() -> dict[str, Any]:
    """One that has the payloads' bots, and answers as often as it is written to."""
    channels = shop()["channels"]
    channels["telegram-main"]["bot_token"] = TOKEN
    behaviour = {"debounce_ms": 0, "rate_limit_per_minute": 0}
    return shop(channels=channels, behaviour=behaviour, memory={"max_turns": 200})


async def everything(folder: Path, redis_url: str) -> list[Came]:
    bots: dict[str, Any] = {"line_channels": (BOT,), "telegram_tokens": (TOKEN,), "telegram_names": {TOKEN: USERNAME}}
    async with house(folder, redis_url, {"shop": open_shop()}, **bots) as home:
        return await sent_through(home)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        server = EmbeddedRedis(Path(folder) / "redis")
        try:
            sys.stdout.write(table(asyncio.run(everything(Path(folder), server.start()))))
        finally:
            server.stop()
