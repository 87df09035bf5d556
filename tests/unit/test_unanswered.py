"""The list of what nothing answered."""

from __future__ import annotations

import asyncio
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memory import unanswered
from memory.errors import LongTermUnavailable
from memory.unanswered import KEPT, LONGEST, UnansweredQuestions

NOW = datetime(2026, 3, 3, 3, 0, tzinfo=UTC)


@pytest.fixture
def listed(tmp_path: Path) -> UnansweredQuestions:
    return UnansweredQuestions(tmp_path / "unanswered")


def test_the_same_question_is_one_line_and_each_person_counts_once(listed: UnansweredQuestions) -> None:
    listed.note("shop", "line:U1", "ขายรถไหมคะ", NOW, near="ขายอะไร")
    listed.note("shop", "line:U1", "ขายรถไหม คะ??", NOW + timedelta(hours=1))
    listed.note("shop", "line:U2", "ขายรถไหมคะ", NOW + timedelta(hours=2), near="ขายอะไรบ้าง")
    listed.note("shop", "line:U3", "Do you fix bikes?", NOW, language="en")
    found = [(one.question, one.times, one.near, one.last_at - NOW) for one in listed.all("shop")]
    assert found == [
        ("ขายรถไหมคะ", 2, "ขายอะไรบ้าง", timedelta(hours=2)),
        ("Do you fix bikes?", 1, "", timedelta(0)),
    ]
    assert listed.all("other") == []


def test_it_keeps_no_number_no_address_and_no_name_of_who_asked(tmp_path: Path, listed: UnansweredQuestions) -> None:
    listed.note("shop", "line:Usecret", "ส่งไปที่ 081-234-5678 หรือ a.b@example.com https://x.example/y 2 วันได้ไหม", NOW)
    assert [one.question for one in listed.all("shop")] == ["ส่งไปที่ … หรือ … … 2 วันได้ไหม"]
    file = tmp_path / "unanswered" / "shop.json"
    assert "Usecret" not in file.read_text("utf-8")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_who_is_forgotten_leaves_no_question_that_they_asked_alone(listed: UnansweredQuestions) -> None:
    listed.note("shop", "line:U1", "my own question", NOW)
    listed.note("shop", "line:U1", "a question of both", NOW)
    listed.note("shop", "line:U2", "a question of both", NOW)
    assert listed.forget("shop", "line:U1") == 2
    assert [(one.question, one.times) for one in listed.all("shop")] == [("a question of both", 1)]
    assert (listed.forget("shop", "line:U1"), listed.forget("nowhere", "line:U1")) == (0, 0)


def test_it_stays_short_and_forgets_what_is_no_longer_asked(
    listed: UnansweredQuestions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unanswered, "MOST", 5)
    listed.note("shop", "line:U1", "an old one", NOW)
    later = NOW + KEPT + timedelta(days=1)
    for number in range(7):
        listed.note("shop", "line:U1", f"question {number}", later + timedelta(minutes=number))
    assert [one.question for one in listed.all("shop")] == [f"question {number}" for number in range(6, 1, -1)]
    listed.note("shop", "line:U1", "x" * 5000, later)
    assert max(len(one.question) for one in listed.all("shop")) == LONGEST


def test_an_answered_question_comes_off_and_wordless_ones_never_come_on(listed: UnansweredQuestions) -> None:
    noted = listed.note("shop", "line:U1", "do you ship?", NOW)
    assert noted is not None
    assert (listed.note("shop", "line:U1", "???", NOW), listed.note("shop", "line:U1", "", NOW)) == (None, None)
    assert (listed.drop("shop", [noted.id, "u_none"]), listed.all("shop")) == (1, [])


def test_what_cannot_be_understood_holds_nothing(tmp_path: Path, listed: UnansweredQuestions) -> None:
    (tmp_path / "unanswered").mkdir()
    (tmp_path / "unanswered" / "shop.json").write_text('[{"id": 3}]')
    assert listed.all("shop") == []
    listed.note("shop", "line:U1", "do you ship?", NOW)
    assert [one.question for one in listed.all("shop")] == ["do you ship?"]


async def test_what_is_noted_soon_shows_here_at_once_and_is_written_before_the_end(
    tmp_path: Path, listed: UnansweredQuestions
) -> None:
    for user in ("line:U1", "line:U2"):
        listed.soon("shop", user, "do you ship?", NOW, near="shipping")
    assert not (tmp_path / "unanswered").exists()
    assert [(one.question, one.times) for one in await asyncio.to_thread(listed.all, "shop")] == [("do you ship?", 2)]
    listed.soon("shop", "line:U3", "do you ship?", NOW)
    await listed.close()
    assert [one.times for one in UnansweredQuestions(tmp_path / "unanswered").all("shop")] == [3]


async def test_what_is_noted_soon_is_written_by_itself(
    tmp_path: Path, listed: UnansweredQuestions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unanswered, "WRITTEN_EVERY", 0)
    elsewhere = UnansweredQuestions(tmp_path / "unanswered")
    for number in (1, 2):  # the second when the first is written
        listed.soon("shop", "line:U1", f"question {number}", NOW)
        async with asyncio.timeout(90):
            while len(elsewhere.all("shop")) < number:
                await asyncio.sleep(0.01)
    await listed.close()


async def test_nothing_that_waits_is_written_of_who_is_forgotten_here_or_elsewhere(tmp_path: Path) -> None:
    marks = {"line:U2": NOW + timedelta(seconds=1), "line:U3": NOW - timedelta(seconds=1)}
    listed = UnansweredQuestions(tmp_path / "unanswered", forgotten_at=lambda tenant, user: marks.get(user))
    for number in (1, 2, 3):
        listed.soon("shop", f"line:U{number}", f"question {number}", NOW)
    listed.forget("shop", "line:U1")
    await listed.close()
    assert [one.question for one in listed.all("shop")] == ["question 3"]


async def test_what_the_disk_does_not_take_waits_for_it(tmp_path: Path, listed: UnansweredQuestions) -> None:
    (tmp_path / "unanswered").write_text("no folder")
    listed.soon("shop", "line:U1", "do you ship?", NOW)
    with pytest.raises(LongTermUnavailable):
        listed.all("shop")
    (tmp_path / "unanswered").unlink()
    await listed.close()
    assert [one.question for one in listed.all("shop")] == ["do you ship?"]
