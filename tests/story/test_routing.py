"""Several agents in one conversation."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.settings import Settings
from config.tenants import TenantError, load_tenant
from tests.house import LLM_KEY, TELEGRAM_SECRET, House, house, shop

AGENTS = {
    "default": {"instructions": "You are Dao.", "about": "everything else"},
    "sales": {"instructions": "You are Fah, who sells.", "about": "prices and offers", "model": "own/sales-model"},
    "repair": {"instructions": "You are Nok, who repairs."},
    "night": {"instructions": "You are Owl."},
}
WORKDAY = datetime(2026, 3, 4, 5, 0, tzinfo=UTC)  # Wednesday at noon in Bangkok
NIGHT = datetime(2026, 3, 4, 16, 0, tzinfo=UTC)


def routed(*rules: dict[str, Any], ask: str = "never", **sections: Any) -> dict[str, Any]:
    hours = {"mon-fri": "09:00-18:00"}
    return shop(
        agents=AGENTS,
        routing={"rules": list(rules), "ask": ask},
        understanding={"policy": "never"},
        business_hours=hours,
        **sections,
    )


async def says(home: House, words: str, chat: int = 55) -> str:
    """Who answers, as the model was told."""
    before = len(home.llm.requests)
    update = home.telegram.text_update(chat, words)
    assert await home.telegram.deliver(home.telegram_hook(), update, TELEGRAM_SECRET) == 200
    await home.quiet()
    [asked] = [body for body in home.llm.requests[before:] if "response_format" not in body]
    first = str(asked["messages"][0])
    return next(name for name in ("Dao", "Fah", "Nok", "Owl") if name in first)


async def test_a_keyword_hands_over_and_the_next_agent_knows_what_was_said(tmp_path: Path, redis_url: str) -> None:
    tenant = routed(
        {"agent": "night", "hours": "closed"},
        {"agent": "sales", "keywords": ["โปรโมชัน", "discount"]},
        {"agent": "repair", "keywords": ["broken"]},
    )
    async with house(tmp_path, redis_url, {"shop": tenant}, llm_key=LLM_KEY, clock=lambda: WORKDAY) as home:
        assert await says(home, "tell me of the blue lamp, my name is Ann") == "Dao"
        assert await says(home, "is there a discount on it?") == "Fah"
        told = home.llm.requests[-1]
        assert told["model"] == "own/sales-model"
        assert "the blue lamp" in str(told["messages"])
        assert await says(home, "and what of the red one, does it dim?") == "Fah"  # the conversation stays with them
        assert await says(home, "mine arrived broken in two pieces, what now?") == "Nok"
        assert await says(home, "which of the lamps is the smallest?", chat=56) == "Dao"  # somebody else's


async def test_hours_and_channels_decide_while_nobody_has_the_conversation(tmp_path: Path, redis_url: str) -> None:
    tenant = routed(
        {"agent": "night", "hours": "closed"},
        {"agent": "sales", "channels": ["line-main"]},
        {"agent": "repair", "channels": ["telegram-main"], "hours": "open"},
    )
    now = [NIGHT]
    async with house(tmp_path, redis_url, {"shop": tenant}, llm_key=LLM_KEY, clock=lambda: now[0]) as home:
        assert await says(home, "which of the lamps is the smallest?") == "Owl"
        now[0] = datetime(2026, 3, 5, 5, 0, tzinfo=UTC)
        assert await says(home, "which of the lamps is the largest?") == "Nok"


@pytest.mark.parametrize(("ask", "calls"), [("first", 1), ("always", 2)])
async def test_a_model_names_who_answers(tmp_path: Path, redis_url: str, ask: str, calls: int) -> None:
    tenant = routed({"agent": "repair", "keywords": "broken"}, ask=ask)
    async with house(tmp_path, redis_url, {"shop": tenant}, llm_key=LLM_KEY, clock=lambda: WORKDAY) as home:

        def speak(body: dict[str, Any]) -> Any:
            return {"agent": "sales"} if "response_format" in body else "Hello!"

        home.llm.answers(speak)
        assert await says(home, "what do you think of the blue lamp?") == "Fah"
        assert await says(home, "and of the red one over there?") == "Fah"
        asked = [body for body in home.llm.requests if "response_format" in body]
        assert len(asked) == calls
        assert "prices and offers" in str(asked[0]["messages"])
        assert "Nok" not in str(asked[0]["messages"])  # whom only a keyword reaches
        assert await says(home, "mine is broken, what now?") == "Nok"


@pytest.mark.parametrize(
    ("routing", "field", "remedy"),
    [
        ({"rules": [{"agent": "sale", "hours": "open"}]}, "routing.rules[0].agent", "did you mean sales?"),
        (
            {"rules": [{"agent": "sales", "channels": ["telegram"]}]},
            "routing.rules[0].channels[0]",
            "did you mean telegram-main?",
        ),
        (
            {"rules": [{"agent": "sales"}]},
            "routing.rules[0]",
            "add channels, hours or keywords; who answers otherwise is the agent default",
        ),
        ({"rules": [{"agent": "sales", "hour": "open"}]}, "routing.rules[0].hour", "did you mean hours?"),
    ],
)
def test_what_names_nobody_is_told(tmp_path: Path, routing: dict[str, Any], field: str, remedy: str) -> None:
    file = tmp_path / "config" / "tenants" / "shop.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(yaml.safe_dump(shop(agents=AGENTS) | {"routing": routing}), encoding="utf-8")
    with pytest.raises(TenantError) as raised:
        load_tenant(file, Settings(config_dir=tmp_path / "config", data_dir=tmp_path / "data"))
    assert [(one.field, one.remedy) for one in raised.value.mistakes] == [(field, remedy)]
