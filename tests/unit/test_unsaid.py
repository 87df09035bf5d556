"""What an answer repeats of a message that was taken back."""

from __future__ import annotations

import pytest

from memory.models import Message
from memory.unsaid import without

TAKEN = "ผมชื่อสมชาย เบอร์ 081-234-5678 ขอสั่งเค้กมะพร้าวอ่อนสองชิ้นส่งที่ซอยอารีย์"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("ได้ค่ะ จะโทรไปที่ 0812345678 นะคะ", "ได้ค่ะ จะโทรไปที่ … นะคะ"),
        ("ได้ค่ะ จะโทรไปที่ 02-555-0148 นะคะ", "ได้ค่ะ จะโทรไปที่ 02-555-0148 นะคะ"),
        ("สวัสดีค่ะคุณสมชาย", "สวัสดีค่ะคุณ…"),
        ("รับเค้กมะพร้าวอ่อนสองชิ้นนะคะ", "รับ…นะคะ"),
        ("รับเค้กนะคะ", "รับเค้กนะคะ"),
        ("", ""),
    ],
)
def test_numbers_names_and_long_runs_are_gone_and_nothing_else(said: str, kept: str) -> None:
    answer: Message = {"role": "bot", "message": said, "message_id": "re:1"}
    assert without(answer, TAKEN, ["สมชาย"])["message"] == kept


def test_what_the_model_did_with_it_is_gone_too() -> None:
    noted = [{"tool": "remember", "arguments": '{"key": "phone", "value": "081 234 5678"}'}]
    answer: Message = {"role": "bot", "message": "Noted.", "metadata": {"actions": noted, "platform_ids": ["7"]}}
    assert without(answer, TAKEN)["metadata"] == {"platform_ids": ["7"]}


def test_an_answer_that_repeats_nothing_is_the_same_object() -> None:
    answer: Message = {"role": "bot", "message": "Noted.", "metadata": {"actions": [{"tool": "recall"}]}}
    assert without(answer, TAKEN) is answer
