"""A shop that asks the model only when unsure has the answer and the message's meaning from one call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.house import LLM_KEY, House, house, shop
from tests.standins.openrouter import usual

UNSURE = "the usual thing with the thing on it for the lady with the hat"  # nothing here is sure of it


def saved(home: House, user: str) -> list[dict[str, Any]]:
    """What the message's event is, wherever it stands."""
    folder = home.settings.data_dir / "longterm" / "shop"
    found: list[dict[str, Any]] = []
    for file in folder.glob(f"{user}*"):
        for line in file.read_text("utf-8").splitlines() if file.suffix == ".journal" else [file.read_text("utf-8")]:
            found += json.loads(line).get("events", [])
    return found


@pytest.mark.parametrize("rides", [True, False])
async def test_one_call_answers_and_classifies(tmp_path: Path, redis_url: str, rides: bool) -> None:
    def says(request: dict[str, Any]) -> Any:
        if "response_format" in request:
            return usual(request)
        return "Right away.\n<kind>TRANSACTION 0.95</kind>" if rides else "Right away."

    content = shop(understanding={"policy": "when_unsure"})
    async with house(tmp_path, redis_url, {"shop": content}, llm_key=LLM_KEY) as home:
        home.llm.answers(says)
        await home.telegram_says(55, UNSURE)
        await home.telegram.until(lambda: bool(home.telegram_shows(55)))
        await home.quiet()
        assert home.telegram_shows(55) == ["Right away."]
        assert len(home.llm.requests) == (1 if rides else 2)
        assert all("<kind>" not in draft["text"] for draft in home.telegram.drafts)
        if rides:
            [event] = saved(home, "telegram:55")
            assert (event["event_type"], event["importance_score"]) == ("TRANSACTION", 0.95)
            assert event["payload"]["classified_by"] == "llm"
        transcript = "".join(path.read_text("utf-8") for path in home.settings.data_dir.rglob("*.jsonl"))
        assert "Right away." in transcript
        assert "<kind>" not in transcript


async def test_small_talk_is_sent_once_also_where_the_shop_asks_always(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": shop()}, llm_key=LLM_KEY) as home:
        home.llm.answers("Good morning!\n<kind>GENERIC_EVENT 0.1</kind>")
        await home.telegram_says(55, "good morning")
        await home.telegram.until(lambda: bool(home.telegram_shows(55)))
        await home.quiet()
        assert home.telegram_shows(55) == ["Good morning!"]
        assert len(home.llm.requests) == 1


async def test_what_is_no_small_talk_has_a_call_of_its_own_where_the_shop_asks_always(
    tmp_path: Path, redis_url: str
) -> None:
    async with house(tmp_path, redis_url, {"shop": shop()}, llm_key=LLM_KEY) as home:
        await home.telegram_says(55, UNSURE)
        await home.telegram.until(lambda: bool(home.telegram_shows(55)))
        await home.quiet()
        asked = [json.dumps(request) for request in home.llm.requests]
        assert len(asked) == 2
        assert not any("<kind>" in one for one in asked)
