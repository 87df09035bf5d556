"""The line below an answer that says what the customer's message means."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.riding import Ridden, Unseen, shown, split
from processors.models import EventType


@pytest.mark.parametrize(
    ("text", "answer", "told"),
    [
        ("Sure.\n<kind>REQUEST 0.7</kind>", "Sure.", ("REQUEST", 0.7)),
        ("ได้ค่ะ <kind>TRANSACTION 1</kind>\n", "ได้ค่ะ", ("TRANSACTION", 1.0)),
        ("Sure.\n\n<kind> INQUIRY, 0.5", "Sure.", ("INQUIRY", 0.5)),
        ("<kind>INQUIRY 0.5</kind>\nAt nine.", "At nine.", ("INQUIRY", 0.5)),
        ("One <kind>REQUEST 0.7</kind> two <kind>SUPPORT 0.8</kind>", "One two", ("SUPPORT", 0.8)),
        ("Sure.", "Sure.", None),
        ("Sure. ", "Sure. ", None),
        ("Sure.\n<kind>SOMETHING 0.7</kind>", "Sure.", None),
        ("Sure.\n<kind>REQUEST 7</kind>", "Sure.", None),
        ("Sure.\n<kind>REQ", "Sure.", None),
        ("5 < 7", "5 < 7", None),
        ("is it 5 <", "is it 5 <", None),
    ],
)
def test_the_line_is_taken_off_and_read(text: str, answer: str, told: Ridden | None) -> None:
    assert split(text) == (answer, told)


@given(
    st.text(alphabet=st.characters(exclude_characters="<", exclude_categories=["Cs"])).map(str.rstrip),
    st.sampled_from(list(EventType)),
    st.integers(0, 100),
)
def test_whoever_watches_sees_the_answer_and_never_the_line(answer: str, kind: EventType, hundredths: int) -> None:
    whole = f"{answer}\n<kind>{kind} {hundredths / 100}</kind>"
    assert split(whole) == (answer, (str(kind), hundredths / 100))
    for end in range(len(whole) + 1):
        assert answer.startswith(shown(whole[:end]).rstrip())


class Seen:
    def __init__(self) -> None:
        self.gone = asyncio.Event()
        self.texts: list[str] = []
        self.closed = False

    def grew(self, said: Callable[[], str]) -> None:
        self.texts.append(said())

    async def close(self) -> None:
        self.closed = True


async def test_a_watch_is_passed_on_without_the_line() -> None:
    watch = Seen()
    unseen = Unseen(watch)
    for text in ("Sure", "Sure.\n<k", "Sure.\n<kind>REQUEST", ""):
        unseen.grew(text.__str__)
    await unseen.close()
    assert watch.texts == ["Sure", "Sure.", "Sure.", ""]
    assert watch.closed
    assert unseen.gone is watch.gone
