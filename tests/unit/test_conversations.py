"""Whose a conversation is, and what it is called."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memory.checkpoints import checkpoints, decoded, encoded
from memory.conversation_files import ConversationFiles
from memory.conversations import Conversation
from memory.errors import LongTermUnavailable
from memory.keys import ConversationRef
from memory.transcripts import TranscriptFiles

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
NEW = Conversation("shop", "order-1", "web:ann", "key:1", "Order 1", NOW, NOW)


async def test_the_first_who_opens_it_has_it(tmp_path: Path) -> None:
    store, other = ConversationFiles(tmp_path), ConversationFiles(tmp_path)
    rivals = [replace(NEW, owner=f"key:{n}") for n in range(20)]
    opened = await asyncio.gather(*((store, other)[n % 2].open(one) for n, one in enumerate(rivals)))
    assert len({one.owner for one in opened}) == 1
    assert (await other.get("shop", "order-1")) == opened[0]
    assert [path.name for path in (tmp_path / "shop").iterdir()] == ["order-1.json"]


async def test_it_is_kept_as_a_readable_file_and_read_anew_when_another_process_changed_it(tmp_path: Path) -> None:
    store, other = ConversationFiles(tmp_path), ConversationFiles(tmp_path)
    await store.open(NEW)
    kept = json.loads((tmp_path / "shop" / "order-1.json").read_text("utf-8"))
    assert kept == {
        "conversationId": "order-1",
        "memoryName": "Order 1",
        "createTime": "2026-03-01T09:00:00Z",
        "user_id": "web:ann",
        "agent": "default",
        "owner": "key:1",
    }
    assert await other.get("shop", "order-1") == NEW
    await store.rename("shop", "order-1", "ใบสั่งซื้อ 1")
    assert await other.get("shop", "order-1") == replace(NEW, name="ใบสั่งซื้อ 1")
    assert await store.rename("shop", "order-2", "x") is None


async def test_a_folder_that_cant_be_written_says_so_and_a_broken_file_is_none(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "order-1.json").write_text("{")
    assert await ConversationFiles(tmp_path).get("shop", "order-1") is None
    assert await ConversationFiles(tmp_path).all("shop") == []
    (tmp_path / "file").write_text("")
    with pytest.raises(LongTermUnavailable):
        await ConversationFiles(tmp_path / "file").open(NEW)


async def test_a_transcript_gives_back_the_points_of_each_conversation_and_loses_what_it_is_told_to(
    tmp_path: Path,
) -> None:
    files = TranscriptFiles(tmp_path, clock=lambda: NOW)
    main, other = ConversationRef("shop", "web:ann"), ConversationRef("shop", "web:ann", "default", "c")
    for ref in (main, other):
        for n in range(2):
            said = {"message_id": f"m{n}", "timestamp": f"2026-03-01T09:0{n}:00.000Z"}
            await files.append(ref, [{"role": "user", "message": f"{n}?", **said}])  # type: ignore[typeddict-item]
            answer = said | {"message_id": f"re:m{n}"}
            await files.append(ref, [{"role": "bot", "message": f"{n}!", **answer}])  # type: ignore[typeddict-item]
    await files.append(main, [{"role": "user", "message": "and?", "message_id": "m9"}])
    points = checkpoints("shop", "web:ann", await files.everything("shop", "web:ann"))
    assert [(one.ref, one.before, [line["message"] for line in one.lines]) for one in points] == [
        (main, 0, ["0?", "0!"]),
        (main, 2, ["1?", "1!"]),
        (main, 4, ["and?"]),
        (other, 0, ["0?", "0!"]),
        (other, 2, ["1?", "1!"]),
    ]
    assert await files.users("shop") == ["web:ann"]
    assert await files.remove(main, lambda message: message.get("message_id") != "m1") == 4
    left = [(one["conversation"], one["message"]) for one in await files.everything("shop", "web:ann")]
    assert left == [("main", "1?"), ("c", "0?"), ("c", "0!"), ("c", "1?"), ("c", "1!")]


@pytest.mark.parametrize("strange", ["", "zz", "00", "5b5d", b'["a","b","c"]'.hex(), b'["a","b","c",1]'.hex(), "ไทย"])
def test_what_is_no_checkpoint_is_none(strange: str) -> None:
    assert decoded("shop", strange) is None


def test_a_checkpoint_is_named_by_its_conversation_and_message() -> None:
    ref = ConversationRef("shop", "telegram:group:-100", "default", "main")
    assert decoded("shop", encoded(ref, "re:tg:1")) == (ref, "re:tg:1")
