"""The drawing of a long answer holds all that is sent."""

from __future__ import annotations

from gateway.buttons import buttons_of
from gateway.messages import Answer
from tests.story.screens import EXAMPLE, page


def test_both_screens_show_the_long_answer_with_its_marks() -> None:
    drawn = page(Answer(EXAMPLE.read_text("utf-8"), buttons_of(("จองโต๊ะ",))))
    shown = ("■ เมนูแนะนำ", "<b>เมนูแนะนำ</b>", "<pre>", "<blockquote>", ">แผนที่ของร้าน</a>", "จองโต๊ะ")
    assert [drawn.count(one) for one in shown] == [1, 1, 1, 1, 1, 2]
