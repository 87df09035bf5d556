"""What a shop keeps from its language model, what it does not write down, and what it tells somebody new."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.house import LLM_KEY, house, shop
from tests.story.test_forgetting import traces

PHONE, CARD = "0812345678", "4111111111111111"
NOTICE = "We keep what you write. Type /forget to have it deleted."


async def test_a_number_is_withheld_from_the_model_and_whole_in_the_answer(tmp_path: Path, redis_url: str) -> None:
    own = shop(language="en", privacy={"withhold": ["phone", "card"]})
    async with house(tmp_path, redis_url, {"shop": own}, llm_key=LLM_KEY) as home:
        heard: list[str] = []

        def model(request: dict[str, Any]) -> str:
            heard.append(str(request))
            return "{}" if request.get("response_format") else "We call [phone_1], thank you."

        home.llm.answers(model)
        await home.telegram_says(4242, f"please call me back on {PHONE}, card {CARD}")
        await home.quiet()
        assert home.telegram_shows(4242) == [f"We call {PHONE}, thank you."]
        await home.telegram_says(4242, "and what is my number again, please?")
        await home.quiet()
        assert home.telegram_shows(4242)[1:] == [f"We call {PHONE}, thank you."]  # from the history, or what is known
        assert heard != []
        assert [one for one in heard if PHONE in one or CARD in one] == []
        assert traces(home, PHONE.encode()) != []  # the shop itself knows it


async def test_a_number_is_not_written_down_where_the_shop_masks_it(tmp_path: Path, redis_url: str) -> None:
    own = shop(language="en", privacy={"mask": ["phone", "card"]})
    async with house(tmp_path, redis_url, {"shop": own}, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: "{}" if request.get("response_format") else f"We call {PHONE}.")
        update = home.telegram.text_update(4242, f"I am allergic to nuts, my phone is {PHONE}, card {CARD}")
        await home.telegram.deliver(home.telegram_hook(), update, "telegram-secret-1")
        await home.quiet()
        assert home.telegram_shows(4242) == [f"We call {PHONE}."]
        changed = {"edited_message": {**update["message"], "edit_date": 1, "text": f"no nuts, call {PHONE} please"}}
        await home.telegram.deliver(
            home.telegram_hook(), {"update_id": update["update_id"] + 1000, **changed}, "telegram-secret-1"
        )
        await home.quiet()
        assert traces(home, PHONE.encode(), CARD.encode()) == []
        assert "longterm/shop/telegram:4242.json" in traces(home, b"nuts")
        assert "sm:shop:telegram:4242" in traces(home, b"[phone]")


async def test_somebody_new_is_told_once_what_is_kept(tmp_path: Path, redis_url: str) -> None:
    own = shop(language="en", privacy={"notice": {"en": NOTICE, "th": "…"}}, replies={"fallback": "Pardon?"})
    async with house(tmp_path, redis_url, {"shop": own}) as home:
        for words in ("is there tea?", "is there cake?", "/forget yes", "is there tea?"):
            await home.telegram_says(4242, words)
            await home.quiet()
        shown = home.telegram_shows(4242)
        assert [one.startswith(NOTICE) for one in shown] == [True, False, False, True]
