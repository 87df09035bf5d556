"""A text without marks is shown without the parser: as the parser would have shown it."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.rendering.document import parsed, read
from gateway.rendering.line import render_line
from gateway.rendering.rich import Look
from gateway.rendering.text import scrub

_PIECES = (
    *"ab ก1.)-#>=~!:\n'(/%@ ",
    *("ค่ะ", "\u00a0", "\u3000", "\u200b", "\t", "😀", "\n\n", "\n\n\n", "...", "1. ", "- ", "* ", "**", "`", "&amp;"),
    *("http://shop.example/a_b", "[a](b)", "<br>", "| a |", "\r\n", "~~"),
)
_LOOK = Look(heading="■ ")


@settings(deadline=None)
@given(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join))
@example("ลาเต้ 60 บาทค่ะ\n\nรับกี่แก้วดีคะ #12")
@example("two\n\n\nparagraphs")
@example(" indented")
def test_it_is_the_parsers(text: str) -> None:
    assert read(text, _LOOK) == parsed(scrub(text), _LOOK)


def test_a_plain_answer_is_one_bubble_as_it_is() -> None:
    said = "ลาเต้ 60 บาทค่ะ\nเอสเปรสโซ 50 บาทค่ะ\n\nรับอะไรดีคะ?"
    assert render_line(said) == [said]
