"""What stands between the words in a real chat: stickers, photos, edits, places, a group's talk, a long answer.

`chats.yaml` says what people do, on LINE and on Telegram; `golden/chat_*.txt` keeps what came of it, to be read as a
customer would. After a change that is wanted: `REWRITE_GOLDEN=1 python -m pytest tests/story/test_real_chats.py`.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.house import LLM_KEY, TELEGRAM_SECRET, House, house
from tests.standins.line import LineContent
from tests.story.replay import BEGIN, TENANT, Clock, is_gist
from tests.story.test_dialogues import WRITE, demo

HERE = Path(__file__).parent
CHATS: dict[str, Any] = yaml.safe_load((HERE / "chats.yaml").read_text("utf-8"))
JPEG = b"\xff\xd8\xff\xe0 a picture"
LONG = (HERE / "long_answer.md").read_text("utf-8")


class People:
    """Does on both platforms what the chat says; ids by the people's names."""

    def __init__(self, home: House, group: bool) -> None:
        self.home, self.group, self.said = home, group, dict[str, tuple[Any, Any]]()

    async def do(self, step: Mapping[str, Any]) -> None:
        who = sorted({one.get("by", "") for chat in CHATS.values() for one in chat["steps"]}).index(step.get("by", ""))
        user, number = f"U{who:032x}", 100 + who
        words = str(step.get("says") or step.get("edits") or step.get("caption") or "")
        event = self.home.line.text_event(user, words, group="C" + "c" * 32 if self.group else None)
        update = self.home.telegram.text_update(-1001 if self.group else number, words, user=number)
        update["message"]["from"]["first_name"] = step.get("by", "Ann")
        self.home.line.profiles[user] = {"displayName": step.get("by", "Ann")}
        if step.get("to_bot"):
            event["message"] |= {"text": f"@bot {words}", "mention": {"mentionees": [MENTION]}}
            name = self.home.telegram.bots[self.home.telegram.tokens[0]].username
            place = {"type": "mention", "offset": 0, "length": len(name) + 1}
            update["message"] |= {"text": f"@{name} {words}", "entities": [place]}
        if step.get("quotes_bot"):
            shown = self.home.telegram.shown[-1]
            event["message"]["quotedMessageId"] = self.home.line.delivered["C" + "c" * 32][-1].id
            bot = {"id": shown.bot, "is_bot": True, "first_name": "bot"}
            chat = update["message"]["chat"]
            update["message"]["reply_to_message"] = {"message_id": shown.message_id, "from": bot, "chat": chat}
        for kind in ("sticker", "photo", "voice", "place"):
            if kind in step:
                self._thing(kind, step[kind], event, update)
        if "takes_back" in step:
            before, _ = self.said[step["takes_back"]]
            del event["message"], event["replyToken"]
            event |= {"type": "unsend", "unsend": {"messageId": before["message"]["id"]}}
        if "of" in step:
            before, changed = self.said[step["of"]]
            event |= {"type": "messageEdited", "message": before["message"] | {"text": words}}
            message = changed["message"] | {"text": words, "edit_date": changed["message"]["date"] + 9}
            update = {"update_id": update["update_id"], "edited_message": message}
        self.said[words] = event, update
        await self.home.line.deliver(self.home.line_hook(TENANT), event)
        if "takes_back" not in step:  # Telegram tells nobody
            await self.home.telegram.deliver(self.home.telegram_hook(TENANT), update, TELEGRAM_SECRET)
        await self.home.quiet()

    def _thing(self, kind: str, value: Any, event: dict[str, Any], update: dict[str, Any]) -> None:
        message_id, message = event["message"]["id"], update["message"]
        del message["text"]
        self.home.line.contents[message_id] = LineContent(JPEG)
        self.home.telegram.files["file"] = JPEG
        if kind == "sticker":
            event["message"] = {"type": "sticker", "packageId": "1", "stickerId": "2", "keywords": value["keywords"]}
            message["sticker"] = {"file_id": "file", "emoji": value["emoji"]}
        elif kind == "place":
            event["message"] = {"type": "location", **value}
            message["venue"] = {**value, "location": value}
        elif kind == "photo":
            event["message"] = {"type": "image", "contentProvider": {"type": "line"}}
            message["photo"] = [{"file_id": "file", "width": 9, "height": 9}]
        else:
            self.home.line.contents[message_id] = LineContent(b"sound", "audio/x-m4a")
            event["message"] = {"type": "audio", "duration": 3000}
            self.home.telegram.files["voice"] = b"OggS and so on"
            message["voice"] = {"file_id": "voice", "duration": 3}
        event["message"]["id"] = message_id


MENTION = {"index": 0, "length": 4, "type": "user", "isSelf": True}


def told(step: Mapping[str, Any]) -> str:
    what = [f"({key.replace('_', ' ')}{_of(value)})" for key, value in step.items() if key not in QUIET]
    return f"{step.get('by', 'customer')}: {' '.join([*filter(None, [step.get('says')]), *what])}"


def _of(value: Any) -> str:
    if isinstance(value, dict):
        return f" {', '.join(map(str, value.values()))}"
    return "" if value in (True, "") else f" “{value}”"


QUIET = ("by", "says", "answer")


@pytest.mark.parametrize("mode", ["rules", "model"])
@pytest.mark.parametrize("name", CHATS)
async def test_a_real_chat_reads_as_it_was_read_before(name: str, mode: str, tmp_path: Path, redis_url: str) -> None:
    chat, clock = CHATS[name], Clock(BEGIN)
    shop = demo() | {"understanding": {"policy": "never"}}
    own = shop["agents"]["default"]
    shop["agents"] = shop["agents"] | {"default": own | {"instructions": f"{own['instructions']}\nhttps://example.com"}}
    out = [f"{chat['about']}; {'with a language model' if mode == 'model' else 'without a language model'}"]
    async with house(
        tmp_path, redis_url, {TENANT: shop}, llm_key=LLM_KEY if mode == "model" else None, clock=clock
    ) as home:
        people, seen = People(home, chat.get("group", False)), (0, 0)
        for step in chat["steps"]:
            asked: list[str] = []

            def answers(request: dict[str, Any], step: Any = step, asked: list[str] = asked) -> Any:
                if is_gist(request) or "response_format" in request:
                    return {"summary": "", "facts": []}
                asked.append(str(request["messages"][-1]["content"]))
                return LONG if step.get("answer") == "long" else str(step.get("answer", "(no answer was expected)"))

            home.llm.answers(answers)
            await people.do(step)
            line = [str(one.text) for one in sorted(home.line.shown, key=lambda one: one.at)]
            telegram = [one.text for one in home.telegram.shown]
            out += ["", told(step), *(f"  the model is asked: {' '.join(one.split())}" for one in sorted(set(asked)))]
            out += shown(line[seen[0] :], telegram[seen[1] :])
            seen = len(line), len(telegram)
            clock.now += timedelta(minutes=1)
    path, page = HERE / "golden" / f"chat_{name}.{mode}.txt", "\n".join(out) + "\n"
    if os.environ.get(WRITE):
        path.write_text(page, encoding="utf-8")
    kept = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    assert list(difflib.unified_diff(kept, page.splitlines(), path.name, "now", lineterm="")) == []


def shown(line: list[str], telegram: list[str]) -> list[str]:
    if line == telegram:
        return written("bot", line)
    return [*written("bot on line", line), *written("bot on telegram", telegram)]


def written(title: str, bubbles: list[str]) -> list[str]:
    lines = [line for one in bubbles for line in (f"{title}:", *(f"  {line}".rstrip() for line in one.split("\n")))]
    return lines or [f"{title}: nothing"]
