"""A friend's or a child's allergy is not the speaker's own."""

from __future__ import annotations

from typing import Any

import pytest

from memory.facts import attributes, heard
from processors.event_processor import EventProcessor
from processors.extraction import read
from processors.llm import Access, ChatRequest, Completion
from processors.personal import lasting


@pytest.mark.parametrize(
    ("said", "own"),
    [
        ("I'm allergic to nuts", {"allergies": ["nuts"]}),
        ("my friend is allergic to nuts", {}),
        ("my friend's daughter is allergic to nuts", {}),
        ("a friend of mine is allergic to nuts", {}),
        ("one guest is allergic to shrimp", {}),
        ("she is allergic to milk", {}),
        ("it's for my son, he's allergic to milk", {}),
        ("my son has a nut allergy", {}),
        ("someone in our group is allergic to fish", {}),
        ("my wife is vegan", {}),
        ("I am vegan", {"diet": "vegan"}),
        ("my friend and i are allergic to nuts", {"allergies": ["nuts"]}),
        ("my friend is allergic to nuts but I'm allergic to milk", {"allergies": ["milk"]}),
        ("I'm allergic to milk, my son is allergic to eggs", {"allergies": ["milk"]}),
        ("allergic to peanuts", {"allergies": ["peanuts"]}),
        ("my son is 5. I'm allergic to nuts", {"allergies": ["nuts"]}),
        ("my daughter's shoe size is 30", {}),
        ("my shoe size is 38", {"shoe_size": "38"}),
        ("แพ้ถั่วค่ะ", {"allergies": ["ถั่ว"]}),
        ("หนูแพ้ถั่วค่ะ", {"allergies": ["ถั่ว"]}),
        ("ลูกแพ้นม", {}),
        ("ลูกสาวหนูแพ้นมค่ะ", {}),
        ("เพื่อนแพ้กุ้งครับ", {}),
        ("แม่ผมแพ้ถั่ว", {}),
        ("แฟนแพ้อาหารทะเลค่ะ", {}),
        ("แก้วของคนแพ้ถั่วแยกถุงให้ด้วยนะคะ", {}),
        ("ผมแพ้ถั่ว ลูกแพ้นม", {"allergies": ["ถั่ว"]}),
        ("ลูกแพ้นม ส่วนหนูแพ้ถั่วค่ะ", {"allergies": ["ถั่ว"]}),
        ("ลูกแพ้นม แพ้ไข่ด้วย", {}),
        ("มีเพื่อนคนหนึ่งแพ้กุ้งค่ะ", {}),
        ("ลูกค้าเก่านะคะ แพ้ถั่วค่ะ", {"allergies": ["ถั่ว"]}),
        ("แม่ค้าคะ แพ้ถั่วค่ะ", {"allergies": ["ถั่ว"]}),
        ("ลูกใส่ไซส์ M", {}),
        ("ใส่ไซส์ M ค่ะ", {"size": "M"}),
        ("ลูกสาวหนูชื่อมะลิค่ะ", {}),
        ("หนูชื่อมะลิค่ะ", {"name": "มะลิ"}),
        ("เบอร์แม่ 0812345678", {}),
        ("เบอร์ 0812345678", {"phone": "0812345678"}),
    ],
)
async def test_only_what_somebody_says_of_themselves_becomes_theirs(said: str, own: dict[str, Any]) -> None:
    event = await EventProcessor().analyze_message(said)
    known = attributes(heard([], lasting(event), event.timestamp, "m1"))
    known.pop("preferred_language", None)
    assert known == own


async def test_a_language_is_the_speakers_whatever_words_its_name_stands_in() -> None:
    event = await EventProcessor().analyze_message("my son was sent the wrong one")
    assert event.payload["language"] == "en"
    assert lasting(event).holds == {"preferred_language": "en"}


async def test_what_the_event_holds_for_the_kitchen_stays_whole() -> None:
    event = await EventProcessor().analyze_message("เพื่อนแพ้กุ้งครับ")
    assert event.payload["allergies"] == ["กุ้ง"]


class Model:
    """Takes a friend's allergy for the customer's, and says so."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.asked: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> Completion:
        self.asked.append(request)
        fact = {"key": self.key, "value": "nuts", "text": "allergic to nuts", "type": "fact", "confidence": 0.9}
        data = {"summary": "About a friend.", "facts": [{**fact, "message": 0, "ended": False}]}
        return Completion("", "m", data=data)

    def stream(self, request: ChatRequest) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("key", "said", "kept"),
    [
        ("allergies", "my friend is allergic to nuts", []),
        ("friend_allergies", "my friend is allergic to nuts", ["friend_allergies"]),
        ("allergies", "I am allergic to nuts", ["allergies"]),
    ],
)
async def test_a_model_that_mixes_up_whose_it_is_is_not_believed(key: str, said: str, kept: list[str]) -> None:
    model = Model(key)
    reading = await read(model, Access("key"), [{"role": "user", "message": said}], "", {}, "en")
    assert [one.key for one in reading.facts] == kept
    assert reading.understood
    assert "never the customer's own" in str(model.asked[0].messages[0]["content"])
