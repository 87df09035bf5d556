"""What the bot says by itself: in both languages, as a Thai speaker would write it."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

import pytest

from config.field_types import COMMANDS
from config.texts import BUILT_IN
from gateway.command_words import DOES
from gateway.texts import AGAIN, TEXTS

THAI = re.compile(r"[ก-๛]")
# Names of things, and what stands on a button: no polite ending.
LABELS = {
    "get_answer", "help_commands", "known_summary", "known_events", "staff_from", "staff_customer", "staff_bot",
    "staff_staff", "page", "sources", "soon", "customer", "news_stop", "news_stop_said", "closed",
}  # fmt: skip


def everything() -> Iterator[tuple[str, str, str]]:
    """Name, language, text of whatever the bot can say."""
    for name, both in TEXTS.items():
        yield from ((name, language, said) for language, said in both.items())
    for name, wordings in AGAIN.items():
        yield from ((name, language, said) for language, many in wordings.items() for said in many)
    for reply, built_in in BUILT_IN.items():
        yield from ((reply, language, said or "") for language, said in (("th", built_in.th), ("en", built_in.en)))


def thai() -> list[tuple[str, str]]:
    return [(name, said) for name, language, said in everything() if language == "th"]


def test_every_text_is_there_in_both_languages() -> None:
    both = {"th", "en"}
    assert [name for name, said in TEXTS.items() if set(said) != both] == []
    assert [name for name, said in AGAIN.items() if set(said) != both or name not in TEXTS] == []
    assert [name for name, said in BUILT_IN.items() if not (said.th and said.en)] == []
    assert set(DOES) == set(COMMANDS)
    assert [name for name, said in DOES.items() if set(said) != both] == []


def test_thai_is_written_in_thai_and_english_is_not() -> None:
    said = [*everything(), *((name, tongue, does) for name, both in DOES.items() for tongue, does in both.items())]
    assert [name for name, language, words in said if bool(THAI.search(words)) != (language == "th")] == []


def test_thai_is_polite_and_of_one_person() -> None:
    assert [name for name, said in thai() if name not in LABELS and not re.search(r"ค่ะ|คะ", said)] == []
    assert [name for name, said in thai() if re.search(r"ครับ|คับ|ฮะ|จ้า", said)] == []


@pytest.mark.parametrize(
    "mistake",
    [
        "นะค่ะ",
        "(ไหม|มั้ย|หรือยัง|อะไร|หรือเปล่า|ไหน)ค่ะ",
        "(แล้ว|ได้เลย|ขอบคุณ|ยินดี|ขอโทษ|ขออภัย|สวัสดี)คะ",
        "บอท|แชท|เช็ค",
    ],
)
def test_thai_is_spelt_as_it_should_be(mistake: str) -> None:
    assert [name for name, said in thai() if re.search(mistake, said)] == []


def test_a_text_has_the_same_places_to_fill_in_in_both_languages() -> None:
    def places(said: str) -> set[str | None]:
        return {field for _, field, _, _ in string.Formatter().parse(said)} - {None}

    assert [name for name, both in TEXTS.items() if places(both["th"]) != places(both["en"])] == []
