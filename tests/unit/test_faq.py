from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from processors.faq import FaqIndex, Match

DATA: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "faq_pairs.yaml").read_text(encoding="utf-8"))
INDEX = FaqIndex([(questions, answer) for questions, answer in DATA["entries"]])


@pytest.mark.parametrize(("want", "text"), [q for q in DATA["queries"] if q[0] is not None], ids=lambda v: str(v))
def test_a_question_of_the_list_finds_its_entry(want: int, text: str) -> None:
    found = INDEX.best(text)
    assert found is not None
    assert found.index == want


def test_most_questions_of_the_list_are_answered_outright() -> None:
    asked = [(want, INDEX.best(text)) for want, text in DATA["queries"] if want is not None]
    sure = [found.index == want for want, found in asked if found is not None and found.sure]
    assert all(sure)
    assert len(sure) / len(asked) >= 0.75


@pytest.mark.parametrize("text", [q[1] for q in DATA["queries"] if q[0] is None])
def test_what_the_list_does_not_answer_is_not_answered_from_it(text: str) -> None:
    found = INDEX.best(text)
    assert found is None or not found.sure


def test_small_talk_finds_nothing() -> None:
    for text in ("สวัสดีค่ะ", "hello", "thank you so much", "555", "👍", "", "   ", "how are you today?"):
        assert INDEX.top(text) == []


def test_the_same_words_match_fully() -> None:
    for index, (questions, _) in enumerate(DATA["entries"]):
        for question in questions:
            assert INDEX.best(question) == Match(index, 1.0, sure=True)


def test_particles_and_drawn_out_letters_change_nothing() -> None:
    assert INDEX.best("มีที่จอดรถไหม") == INDEX.best("มีที่จอดรถมั้ยคะะะะ???")


def test_the_best_come_first_and_each_entry_once() -> None:
    found = INDEX.top("ร้านเปิดกี่โมง อยู่ที่ไหน", 3)
    assert {m.index for m in found} == {0, 1}
    assert [m.score for m in found] == sorted((m.score for m in found), reverse=True)


def test_an_empty_list_knows_nothing() -> None:
    assert FaqIndex([]).best("เปิดกี่โมง") is None
    assert FaqIndex([([""], "answer")]).best("เปิดกี่โมง") is None


@pytest.mark.parametrize("text", ["what time is delivery?", "ส่งกี่โมงคะ"])
def test_a_question_on_two_subjects_is_answered_by_neither(text: str) -> None:
    hours = (["What are your opening hours?", "ร้านเปิดกี่โมง"], "9 to 6")
    index = FaqIndex([hours, (["Do you deliver?", "ส่งไหม"], "Yes")])
    found = index.best(text)
    assert found is None or not found.sure


def test_an_answer_that_speaks_of_both_subjects_answers_both() -> None:
    entries = [(["What are your opening hours?"], "9 to 6"), (["Do you deliver?"], "Yes, delivery time is two hours")]
    found = FaqIndex(entries).best("what time is delivery?")
    assert found is not None
    assert (found.index, found.sure) == (1, True)


class _Angles:
    """Texts of one topic point the same way."""

    TOPICS = (("baby", "child", "เด็ก"), ("card", "บัตร"))

    def encode(self, texts: Sequence[str]) -> Any:
        return _Rows([[float(any(word in text for word in topic)) for topic in self.TOPICS] for text in texts])


class _Rows(list[list[float]]):
    def __matmul__(self, other: Sequence[float]) -> list[float]:
        return [sum(a * b for a, b in zip(row, other, strict=True)) for row in self]


def test_an_entry_in_quite_other_words_is_found_by_its_meaning_but_not_sent_as_it_stands() -> None:
    entries = [(["Is there a chair for a baby?"], "Yes"), (["บัตรใช้ได้ไหม"], "Yes")]
    assert FaqIndex(entries).best("เด็กเล็กนั่งตรงไหน") is None
    found = FaqIndex(entries, _Angles).best("เด็กเล็กนั่งตรงไหน")
    assert found is not None
    assert (found.index, found.sure) == (0, False)


def test_a_question_of_the_shops_word_for_word_has_its_own_answer_though_another_holds_its_words() -> None:
    index = FaqIndex([(["เก็บปลายทางได้ไหม"], "ได้ค่ะ"), (["โอนบัญชีไหน", "จ่ายเงินยังไง"], "กสิกรค่ะ")])
    for asked in ("จ่ายเงินยังไง", "จ่ายเงินยังไงคะ", "จ่ายเงินยังไงอ่ะคะ"):
        match = index.best(asked)
        assert match is not None
        assert (match.index, match.sure) == (1, True)
