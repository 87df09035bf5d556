"""What the admin page says, and how it writes times and facts."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from string import Formatter
from zoneinfo import ZoneInfo

import pytest

from gateway.routes.admin_page import in_words, written
from gateway.routes.admin_texts import Say, texts
from gateway.routes.page import FILES

BANGKOK = ZoneInfo("Asia/Bangkok")
NOW = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def test_both_languages_say_each_thing_with_the_same_values() -> None:
    assert [name for name, (thai, english) in texts().items() if fields(thai) != fields(english)] == []
    assert [name for name, both in texts().items() if not all(both)] == []


def test_whatever_a_template_says_by_name_is_known() -> None:
    said = {
        name
        for file in (FILES / "admin").glob("*.html")
        for name in re.findall(r"say\('([a-z_.]+)'[,)]", file.read_text(encoding="utf-8"))
    }
    assert len(said) > 100
    assert said - texts().keys() == set()


@pytest.mark.parametrize(
    ("moment", "thai", "english"),
    [
        ("2026-11-28T02:05:00Z", "09:05", "09:05"),
        ("2026-11-27T16:59:00Z", "27 พ.ย. 23:59", "27 Nov 23:59"),
        ("2025-12-31T17:00:00Z", "1 ม.ค. 00:00", "1 Jan 00:00"),
        ("2025-12-31T16:59:00Z", "31 ธ.ค. 2568 23:59", "31 Dec 2025 23:59"),
    ],
)
def test_a_time_is_written_as_short_as_it_is_clear_and_whole_in_its_title(moment: str, thai: str, english: str) -> None:
    told = [written(moment, NOW, BANGKOK, language, day=False) for language in ("th", "en")]
    assert [re.sub("<.*?>", "", one) for one in told] == [thai, english]
    assert re.search(r'title="\d+ \w+ 202[56] \d\d:\d\d"', told[1])


def test_what_was_told_by_a_key_is_shown_in_words_and_what_was_told_in_words_as_it_was() -> None:
    thai, english = Say("th"), Say("en")
    assert in_words("preferred_language", "th", "preferred language: th", thai) == "ภาษาที่ใช้: ไทย"
    assert in_words("allergies", ["peanuts", "milk"], "allergies: peanuts, milk", english) == "allergies: peanuts, milk"
    assert in_words("size", "M", "size: M", thai) == "ไซซ์: M"
    assert in_words("size", "M", "always takes M", thai) == "always takes M"
    assert in_words("gate code", "12", "gate code: 12", thai) == "gate code: 12"
