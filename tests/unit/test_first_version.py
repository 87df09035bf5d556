"""Data of the first version loads, whatever has changed since."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

from gateway import outbox
from gateway.inbox.spool import Spool
from gateway.messages import Kind, decode
from memory.keys import ConversationRef
from memory.long_term.json_files import JsonFiles
from memory.short_term import codec
from memory.transcripts import TranscriptFiles

KEPT = Path(__file__).parent.parent / "first_version"
USER = "line:" + "U" + "a" * 32
NOW = datetime(2026, 11, 28, 1, tzinfo=UTC)


def test_a_session() -> None:
    session = codec.decode((KEPT / "session.json").read_bytes())
    assert (session.tenant_id, session.user_id, session.rev, session.schema_version) == ("shop", USER, 4, 1)
    assert [line["role"] for line in session.history] == ["user", "bot"] * 4
    assert session.history[2]["message"] == "หนูชื่อ Nok แพ้ถั่วค่ะ"
    assert not session.expired(NOW)


async def test_a_persons_file_and_its_journal(tmp_path: Path) -> None:
    shutil.copytree(KEPT / "data", tmp_path / "data")
    store = JsonFiles(tmp_path / "data" / "longterm", clock=lambda: NOW)
    known = await store.load("shop", USER)
    assert known is not None
    assert [event.event_type for event in known.events] == ["INFORMATION", "TRANSACTION", "INQUIRY"]
    assert (known.attributes["name"], known.attributes["allergies"]) == ("Nok", ["ถั่ว"])
    assert "ลาเต้เย็น" in known.history_summary
    await store.compact("shop", USER, NOW)
    folded = await store.load("shop", USER)
    assert folded is not None
    assert folded.events == known.events
    assert folded.attributes == known.attributes
    await store.close()


async def test_a_transcript(tmp_path: Path) -> None:
    shutil.copytree(KEPT / "data", tmp_path / "data")
    lines = await TranscriptFiles(tmp_path / "data" / "transcripts").tail(ConversationRef("shop", USER), 20)
    assert [line["role"] for line in lines] == ["user", "bot"] * 4
    assert lines[0]["message"] == "สวัสดีค่ะ"


def test_a_message_in_the_queue() -> None:
    message = decode((KEPT / "queued.json").read_bytes())
    assert (message.kind, message.text, message.reply_token) == (Kind.TEXT, "ราคาเท่าไหร่คะ", "fe87d697")


def test_an_answer_about_to_go_out() -> None:
    box = outbox.decode((KEPT / "outbox.json").read_bytes())
    assert (box.answer.text, box.next, box.flying, box.over) == ("60 บาทค่ะ", 0, True, False)
    assert [call.method for call in box.calls] == ["reply"]


def test_a_dead_letter() -> None:
    letter = json.loads((KEPT / "dead_letter.json").read_text("utf-8"))
    assert sorted(letter) == ["at", "conversation", "message", "reason", "tries"]
    assert decode(letter["message"].encode()).text == "ราคาเท่าไหร่คะ"


def test_a_message_on_disk(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    folder.mkdir()
    shutil.copy(KEPT / "spooled.json", folder / f"{'0' * 32}-{'0' * 32}.json")
    entries = Spool(folder).free()
    assert [entry.spooled.message.text for entry in entries] == ["ราคาเท่าไหร่คะ"]
    for entry in entries:
        entry.release()
