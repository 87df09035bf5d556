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
        ("ao latte yen 2 kaew krub", "mixed"),
        ("jong to 4 khon phrung nee 6 mong yen ka", "mixed"),
        ("phom phae thua krub", "mixed"),
        ("yoo phuket ka", "mixed"),
        ("on my way to the mai tai bar", "en"),
        ("I want to book a song", "en"),
        ("my name is Chai", "en"),
        ("มี M ไหม", "th"),
        ("L", None),
        ("ส\u200bวัส\u200bดี", "th"),
        ("ดูที่ https://example.com/abc ครับ", "th"),
        ("my main chan plays kin games", "en"),
        ("555555", "th"),
        ("f2 แดง", "mixed"),
        ("sabaidee mai", "mixed"),
    ],
)
def test_script_and_words_tell_the_language(text: str, language: str | None) -> None:
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
        # three characters
        ("ดี", "en", "th"),
        ("ได้", None, "th"),
        ("hi", "th", "en"),
        ("yes", "th", "en"),
        ("ka", "en", "th"),
        ("12", "en", "en"),
        ("12", "th", "th"),
        ("???", "en", "en"),
        ("555", "en", "en"),
        # what everybody writes
        ("ok", "th", "th"),
        ("ok", "en", "en"),
        ("ok", None, "en"),
        ("XL", "th", "th"),
        ("S", "th", "th"),
        ("iPhone 15", "th", "th"),
        ("Nike Air Max", "th", "th"),
        ("latte", "en", "en"),
        ("latte please", "th", "en"),
        # brands inside Thai
        ("iPhone 15 มีไหม", "en", "th"),
        ("Dyson ลดไหม", "en", "th"),
        ("มี M ไหม", "en", "th"),
        ("อยากได้ Nike Air Max Plus ไซส์ 42 ค่ะ", "en", "th"),
        # numbers, codes and emoji
        ("0812345678", "en", "en"),
        ("19.00", "th", "th"),
        ("CF 2", "en", "th"),
        ("🙏🙏", "en", "en"),
        ("🙏🙏", "th", "th"),
        ("❤️", None, "th"),
        ("👍 ok", "th", "th"),
    ],
)
def test_a_customer_is_answered_in_thai_or_english(text: str, previous: str | None, language: str) -> None:
    assert answer_language(text, previous) == language  # type: ignore[arg-type]
