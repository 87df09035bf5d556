"""Dialogues of twenty turns with a coffee shop, as a customer sees them and as the language model is asked.

`dialogues/*.yaml` says what is said; `golden/` keeps what came of it, to be read as a customer would. After a change
that is wanted: `python -m tests.story.test_dialogues --write`, then read what became different.
"""

from __future__ import annotations

import difflib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import yaml

from config.tenants import Tenant
from processors.event_processor import EventProcessor
from processors.models import EventType, MemoryEvent
from tests.house import LLM_KEY, House, house, shop
from tests.story.replay import BEGIN, PLATFORMS, TENANT, Clock, Dialogue, Model, Played, Screen, play, read

HERE = Path(__file__).parent
WRITE = "REWRITE_GOLDEN"  # in the environment
DIALOGUES = [read(path) for path in sorted((HERE / "dialogues").glob("*.yaml"))]
BANGKOK = ZoneInfo("Asia/Bangkok")


def demo() -> dict[str, Any]:
    """The shop that comes with the bot, with the test channels in front of it."""
    path = HERE.parent.parent / "config" / "tenants" / "demo.yaml"
    ours = shop()
    content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return content | {"channels": ours["channels"], "behaviour": ours["behaviour"]}


def test_four_dialogues_of_twenty_turns_in_which_nothing_is_said_twice() -> None:
    assert [len(dialogue.lines) for dialogue in DIALOGUES] == [20] * 4
    said = [line.say for dialogue in DIALOGUES for line in dialogue.lines if line.answer]
    assert len(said) == len(set(said))  # the model's answers are looked up by what was said


@pytest.mark.parametrize("mode", ["rules", "model"])
async def test_a_customer_reads_what_was_read_before(mode: str, tmp_path: Path, redis_url: str) -> None:
    clock = Clock(BEGIN)
    key = LLM_KEY if mode == "model" else None
    async with house(tmp_path, redis_url, {TENANT: demo()}, llm_key=key, clock=clock) as home:
        home.llm.answers(Model(DIALOGUES))
        played = await play(home, clock, DIALOGUES)
        processor = _processor(home)
        pages = {d.name: await _page(d, played[d.name], mode, processor) for d in DIALOGUES}
    differences = [line for name, page in pages.items() for line in _compare(f"{name}.{mode}.txt", page)]
    assert not differences, "\n".join(["what customers see has changed:", *differences])


def _processor(home: House) -> EventProcessor:
    tenant: Tenant | None = home.tenants.get(TENANT)
    assert tenant is not None
    return EventProcessor(keywords={EventType(kind): words for kind, words in tenant.keywords.items()})


def _compare(name: str, page: str) -> Iterator[str]:
    path = HERE / "golden" / name
    if os.environ.get(WRITE):
        path.parent.mkdir(exist_ok=True)
        path.write_text(page, encoding="utf-8")
    kept = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    yield from difflib.unified_diff(kept, page.splitlines(), f"golden/{name}", "now", lineterm="", n=4)


# -- a page to read ----------------------------------------------------------------------------------------------------


async def _page(dialogue: Dialogue, played: Sequence[Played], mode: str, processor: EventProcessor) -> str:
    out = [f"{dialogue.about}", "with a language model" if mode == "model" else "without a language model"]
    said: list[str] = []
    fixed: list[dict[str, str]] = []
    for number, turn in enumerate(played, 1):
        event = await _event(turn, mode, processor)
        out += ["", f"=== {number} · {turn.at.astimezone(BANGKOK):%a %Y-%m-%d %H:%M}", f"customer: {turn.line.say}"]
        if event is not None:
            assert turn.intents == {event.event_type}
            out.append(f"event: {event.event_type} · {event.band}")
        for prompt in turn.prompts:
            out += _prompt(prompt, fixed, said)
            fixed = prompt[:1]
        if mode == "model" and not turn.prompts:
            out.append("prompt: none")
        out += _screens(turn.screens)
        if event is not None:
            said += [turn.line.say, *turn.screens["line"].bubbles[:1]]
    return "\n".join(out) + "\n"


async def _event(turn: Played, mode: str, processor: EventProcessor) -> MemoryEvent | None:
    if turn.line.means is None:
        return None
    if mode == "model":
        return MemoryEvent(event_type=turn.line.means[0], importance_score=turn.line.means[1])
    return await processor.analyze_message(turn.line.say, ask=False)


def _prompt(prompt: Sequence[Mapping[str, str]], fixed: Sequence[Mapping[str, str]], said: Sequence[str]) -> list[str]:
    """Without what the reader has seen: the first message when it is the last prompt's, the lines said before."""
    out = ["prompt:"]
    rest = list(prompt)
    first = rest.pop(0)
    if fixed and first == fixed[0]:
        out.append(f"  {first['role']}: as before, {len(first['content'])} characters")
    else:
        out += _indented(f"{first['role']}:", first["content"])
    history = [message["role"] in ("user", "assistant") for message in rest[:-1]].count(True)
    lines = [message["content"] for message in rest[:history]]
    if lines and [_bare(line) for line in lines] == [_bare(line) for line in said[-history:]]:
        out.append(f"  the last {history} lines that were said")
        rest = rest[history:]
    return out + [line for message in rest for line in _indented(f"{message['role']}:", message["content"])]


def _bare(text: str) -> str:
    """The words alone: an answer stands in a prompt as the model wrote it, on a screen without its Markdown."""
    return "".join(char for char in text if char.isalnum())


def _screens(screens: Mapping[str, Screen]) -> list[str]:
    out: list[str] = []
    seen: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for platform in PLATFORMS:
        screen = screens[platform]
        seen.setdefault((screen.bubbles, screen.buttons), []).append(platform)
    for (bubbles, buttons), platforms in seen.items():
        title = "bot:" if len(platforms) == len(PLATFORMS) else f"bot on {' and '.join(platforms)}:"
        if not bubbles:
            out.append(f"{title} nothing")
        for bubble in bubbles:
            out += _indented(title, bubble, depth=0)
        if buttons:
            out.append("  " + " ".join(f"[{button}]" for button in buttons))
    if entities := screens["telegram"].entities:
        out.append(f"  on telegram: {', '.join(entities)}")
    return out


def _indented(title: str, text: str, depth: int = 2) -> list[str]:
    space = " " * depth
    return [f"{space}{title}", *(f"{space}  {line}".rstrip() for line in text.split("\n"))]


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        raise SystemExit("usage: python -m tests.story.test_dialogues --write")
    # A process of its own: here the modules that pytest rewrites are loaded already.
    command = [sys.executable, "-m", "pytest", __file__, "-q", "-p", "no:cacheprovider"]
    raise SystemExit(subprocess.run(command, env={**os.environ, WRITE: "1"}).returncode)
