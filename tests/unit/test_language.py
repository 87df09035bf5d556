import pytest

from processors.language import answer_language, detect


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("สวัสดีครับ", "th"),
        ("ขอ 2 แก้วค่ะ 😀", "th"),
        ("Where is my order?", "en"),
        ("ok", "en"),
        ("ขอ latte เย็นค่ะ", "mixed"),
        ("Cf ลาแมร์ 920", "mixed"),
        ("CF 2", "mixed"),
        ("sawasdee krub", "mixed"),
        ("tao rai", "mixed"),
        ("ส\u200bวัส\u200bดี", "th"),
        ("ดูที่ https://example.com/abc ครับ", "th"),
        ("my main chan plays kin games", "en"),
        ("555555", "th"),
    ],
)
def test_script_and_words_tell_the_language(text: str, language: str) -> None:
    assert detect(text) == language


@pytest.mark.parametrize("text", ["", "   ", "123", "0812345678", "👍🏽", "...", "\u200b\u202e", "\ud800"])
def test_what_tells_nothing_leaves_the_previous_language(text: str) -> None:
    assert detect(text) is None
    assert detect(text, "en") == "en"
    assert detect(text, "th") == "th"


@pytest.mark.parametrize(
    ("text", "previous", "language"),
    [
        ("สวัสดี", None, "th"),
        ("hello", "th", "en"),
        ("ขอ latte เย็นแก้วนึงค่ะ", None, "th"),
        ("please send the menu of your Siam branch ครับ", None, "en"),
        ("khob khun krub", "en", "th"),
        ("👍", "en", "en"),
        ("👍", "mixed", "th"),
        ("", None, "th"),
    ],
)
def test_a_customer_is_answered_in_thai_or_english(text: str, previous: str | None, language: str) -> None:
    assert answer_language(text, previous) == language  # type: ignore[arg-type]
