"""Plays dialogues through LINE, Telegram and the terminal at once, and tells what each customer saw.

All conversations go in step: a turn of each, then the clock moves on. So one clock serves all of them, and a return
after days is the same moment for everybody.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import redis.asyncio
import yaml

from gateway import app
from gateway.adapters import terminal
from gateway.inbox.redis import RedisInbox
from gateway.intake import policy_for
from gateway.messages import InboundMessage
from gateway.rendering import render_terminal
from processors.models import EventType
from tests.house import House

PLATFORMS = ("line", "telegram", "terminal")
TENANT = "shop"
BEGIN = datetime(2026, 3, 3, 3, 0, tzinfo=UTC)  # a Tuesday, ten in the morning in Bangkok
PAUSE = timedelta(minutes=2)  # between turns


class Clock:
    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now


@dataclass(frozen=True)
class Line:
    """What a customer says; what a good classifier makes of it and what a good model answers. A command has neither."""

    say: str
    means: tuple[EventType, float] | None = None
    answer: str | None = None


@dataclass(frozen=True)
class Dialogue:
    name: str
    about: str
    gist: str
    days_later: tuple[int, ...]  # before each sitting
    sittings: tuple[tuple[Line, ...], ...]

    @property
    def lines(self) -> list[Line]:
        return [line for sitting in self.sittings for line in sitting]


@dataclass(frozen=True)
class Screen:
    """An answer as one platform shows it."""

    bubbles: tuple[str, ...]
    buttons: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()


@dataclass
class Played:
    """One turn of a dialogue. `prompts` holds the distinct prompts that the three conversations led to."""

    line: Line
    at: datetime
    screens: dict[str, Screen] = field(default_factory=dict)
    prompts: list[list[dict[str, str]]] = field(default_factory=list)
    intents: set[str | None] = field(default_factory=set)


def read(path: Path) -> Dialogue:
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    sittings = tuple(
        tuple(
            Line(turn["say"], (EventType(turn["means"][0]), turn["means"][1]), turn["answer"])
            if "answer" in turn
            else Line(turn["say"])
            for turn in sitting["turns"]
        )
        for sitting in data["sittings"]
    )
    days = tuple(sitting.get("days_later", 0) for sitting in data["sittings"])
    return Dialogue(path.stem, data["about"], data["gist"], days, sittings)


class Model:
    """What the language model says: for each of its three tasks, what stands in the dialogue."""

    def __init__(self, dialogues: Sequence[Dialogue]) -> None:
        self._lines = {line.say: line for dialogue in dialogues for line in dialogue.lines}
        self._gists = {line.say: dialogue.gist for dialogue in dialogues for line in dialogue.lines}

    def __call__(self, request: dict[str, Any]) -> str | dict[str, Any]:
        asked = request["messages"][-1]["content"]
        if is_gist(request):
            said = [message["text"] for message in json.loads(asked)["messages"] if message["from"] == "customer"]
            return {"summary": self._gists[said[0]], "facts": []}
        if "response_format" in request:
            line = self._lines[json.loads(asked)["message"]]
            assert line.means is not None
            kind, score = line.means
            return {"event_type": kind, "importance_score": score, "language": "th", "reasoning": "", "details": {}}
        if str(asked).startswith("<earlier>"):  # what a follow-up means: here, what it says
            return str(asked).partition("<last>\n")[2].partition("\n</last>")[0]
        answer = self._lines[asked].answer
        assert answer is not None
        return answer


def is_gist(request: Mapping[str, Any]) -> bool:
    return str(request["messages"][-1]["content"]).startswith('{"earlier_summary"')


async def play(home: House, clock: Clock, dialogues: Sequence[Dialogue]) -> dict[str, list[Played]]:
    """Every dialogue on every platform, by the dialogue's name."""
    stage = _Stage(home, clock, dialogues)
    try:
        for sitting in range(max(len(dialogue.sittings) for dialogue in dialogues)):
            if sitting:
                await _days_pass(home, clock, dialogues[0].days_later[sitting], len(dialogues))
            for turn in range(max(len(dialogue.sittings[sitting]) for dialogue in dialogues)):
                await stage.round(sitting, turn)
                clock.now += PAUSE
    finally:
        await stage.client.aclose()
    return stage.played


async def _days_pass(home: House, clock: Clock, days: int, dialogues: int) -> None:
    """Sessions end as they do in a shop: the clean-up finds them some minutes after they are over."""
    back = clock.now + timedelta(days=days)
    clock.now += timedelta(minutes=40)
    async with app.tidy(home.settings, home.tenants, home.redis_url, clock=clock) as cleanup:
        report = await cleanup.run()
    assert report.sessions == dialogues * len(PLATFORMS)
    clock.now = back


class _Stage:
    def __init__(self, home: House, clock: Clock, dialogues: Sequence[Dialogue]) -> None:
        self._home = home
        self._clock = clock
        self._dialogues = dialogues
        self.played: dict[str, list[Played]] = {dialogue.name: [] for dialogue in dialogues}
        self.client = redis.asyncio.Redis.from_url(home.redis_url)
        self._inbox = RedisInbox(self.client, "terminal")
        self._seen: dict[tuple[str, int], int] = {}
        self._requests = 0

    async def round(self, sitting: int, turn: int) -> None:
        speaking = [
            (number, dialogue.name, dialogue.sittings[sitting][turn])
            for number, dialogue in enumerate(self._dialogues)
            if turn < len(dialogue.sittings[sitting])
        ]
        for number, _, line in speaking:
            await self._say(number, line.say)
        await self._home.quiet()
        requests = self._home.llm.requests[self._requests :]
        self._requests += len(requests)
        for number, name, line in speaking:
            played = Played(line, self._clock.now)
            for platform in PLATFORMS:
                played.screens[platform] = await self._screen(platform, number)
                played.intents.add(await self._intent(platform, number))
            for request in requests:
                messages = request["messages"]
                asked = "response_format" not in request and messages[-1]["content"] == line.say
                if asked and messages not in played.prompts:
                    played.prompts.append(messages)
            self.played[name].append(played)

    async def _say(self, number: int, text: str) -> None:
        assert await self._home.line_says(_line_user(number), text) == 200
        assert await self._home.telegram_says(_chat(number), text) == 200
        now = self._clock.now.timestamp()
        message = InboundMessage(
            tenant=TENANT,
            channel="terminal",
            platform="terminal",
            event_id=f"{number}-{time.monotonic_ns()}",
            user_id=f"terminal:customer{number}",
            chat_id=f"screen{number}",
            text=text,
            sent_at=now,
            received_at=now,
        )
        tenant = self._home.tenants.get(TENANT)
        assert tenant is not None
        await self._inbox.put([(message, policy_for(tenant, message))])

    async def _screen(self, platform: str, number: int) -> Screen:
        if platform == "terminal":
            return await self._terminal(number)
        stand_in: Any = self._home.line if platform == "line" else self._home.telegram
        chat = _line_user(number) if platform == "line" else str(_chat(number))
        shown = stand_in.delivered.get(chat, [])
        new = shown[self._seen.get((platform, number), 0) :]
        self._seen[platform, number] = len(shown)
        bubbles = tuple(one.text for one in new)
        if platform == "line":
            return Screen(bubbles, tuple(_texts([one.message.get("quickReply") for one in new], "label")))
        entities = tuple(_entity(one.text, entity) for one in new for entity in one.entities)
        return Screen(bubbles, tuple(_texts([one.markup for one in new], "text")), entities)

    async def _terminal(self, number: int) -> Screen:
        bubbles: list[str] = []
        buttons: list[str] = []
        while raw := await self.client.lpop(terminal.list_key(TENANT, f"screen{number}")):
            assert isinstance(raw, bytes)
            line = msgspec.json.decode(raw, type=terminal.Line)
            bubbles.append(render_terminal(line.text, None, False))
            buttons += [reply.label for reply in line.quick_replies]
        return Screen(tuple(bubbles), tuple(buttons))

    async def _intent(self, platform: str, number: int) -> str | None:
        users = {"line": _line_user(number), "telegram": str(_chat(number)), "terminal": f"customer{number}"}
        raw = await self.client.get(f"sm:{TENANT}:{platform}:{users[platform]}")
        return json.loads(raw)["last_intent"] if raw else None


def _line_user(number: int) -> str:
    return f"U{number:032x}"


def _chat(number: int) -> int:
    return 7001 + number


def _texts(value: Any, name: str) -> list[str]:
    """Every text under `name`, however deep."""
    if isinstance(value, Mapping):
        own = [value[name]] if isinstance(value.get(name), str) else []
        return own + [text for inner in value.values() for text in _texts(inner, name)]
    return [text for inner in value for text in _texts(inner, name)] if isinstance(value, list) else []


def _entity(text: str, entity: Mapping[str, Any]) -> str:
    units = text.encode("utf-16-le")[2 * entity["offset"] : 2 * (entity["offset"] + entity["length"])]
    return f"{entity['type']} “{units.decode('utf-16-le')}”"
