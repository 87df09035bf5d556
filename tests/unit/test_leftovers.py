"""What a process leaves that is killed with -9 right before a file takes its place: it goes with whom it tells of."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway.blocked import Blocked
from gateway.ratings import Ratings
from memory.conversation_files import ConversationFiles
from memory.conversations import Conversation
from memory.keys import ConversationRef
from memory.lists import FileLists
from memory.models import Message
from memory.transcripts import TranscriptFiles
from memory.unanswered import UnansweredQuestions

NOW = datetime(2026, 3, 10, 9, 0, tzinfo=UTC)
USER = "line:Upistachio"
GROUP = ConversationRef("shop", "line:group:C1")


def killed(work: Callable[[], object]) -> None:
    """`work` in a process of its own, which ends with what was written standing beside what it was to replace."""
    pid = os.fork()
    if pid == 0:
        os.replace = os.link = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]
        try:
            work()
        finally:
            os._exit(0)
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL


def holding(folder: Path, *words: str) -> list[str]:
    """The files with any of the words."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if any(word.encode() in path.read_bytes() for word in words)]


def conversation(id_: str) -> Conversation:
    return Conversation(tenant="shop", user=USER, id=id_, owner="admin", name="Pistachio", created_at=NOW, used_at=NOW)


@pytest.mark.parametrize("deed", ["open", "put", "rename"])
async def test_a_conversation_that_was_being_written_goes_with_its_person(tmp_path: Path, deed: str) -> None:
    files = ConversationFiles(tmp_path / "conversations")
    if deed == "rename":
        await files.open(conversation("c1"))
        killed(lambda: files._rename("shop", "c1", "Pistachio too"))
    elif deed == "put":
        killed(lambda: files._put(conversation("c1")))
    else:
        killed(lambda: files._open(conversation("c1")))
    assert holding(tmp_path, "Pistachio")
    await files.forget("shop", USER)
    assert holding(tmp_path, "Pistachio", USER) == []


async def test_a_conversation_that_was_being_written_goes_with_the_old_ones(tmp_path: Path) -> None:
    files = ConversationFiles(tmp_path / "conversations")
    killed(lambda: files._put(conversation("c1")))
    await files.prune("shop", NOW + timedelta(days=1))
    assert holding(tmp_path, "Pistachio", USER) == []


def said(text: str, at: datetime, user: str = "") -> Message:
    return Message(role="user", message=text, message_id=text, timestamp=at.isoformat(), metadata={"user_id": user})


async def test_a_transcript_that_was_being_shortened_outlives_neither_its_time_nor_who_is_forgotten(
    tmp_path: Path,
) -> None:
    transcripts = TranscriptFiles(tmp_path / "transcripts", clock=lambda: NOW)
    lines = [said("almond", NOW - timedelta(days=5)), said("pistachio", NOW, USER)]

    async def shortened_and_killed() -> None:
        await transcripts.append(GROUP, lines)
        killed(lambda: transcripts._prune("shop", NOW - timedelta(days=1)))
        assert len(holding(tmp_path, "pistachio")) == 2

    async def later() -> object:
        return await transcripts.prune("shop", NOW + timedelta(days=90))

    async def without_the_member() -> object:
        return await transcripts.remove(GROUP, lambda line: line.get("message_id") == "pistachio")

    deeds: list[Callable[[], Awaitable[object]]] = [without_the_member, later]
    for deed in deeds:
        await shortened_and_killed()
        await deed()
        assert holding(tmp_path, "pistachio") == []
    assert not (tmp_path / "transcripts" / "shop" / GROUP.user).exists()


def test_what_somebody_thought_of_an_answer_goes_with_them_though_it_was_never_counted(tmp_path: Path) -> None:
    ratings = Ratings(tmp_path)
    killed(lambda: ratings.rate("shop", USER, "m1", "good", NOW))
    assert holding(tmp_path, USER)
    ratings.forget("shop", {USER})
    assert holding(tmp_path, USER) == []


def test_a_list_that_was_being_written_names_nobody_who_is_taken_off_it(tmp_path: Path) -> None:
    blocked = Blocked(FileLists(tmp_path))
    killed(lambda: blocked.block("shop", {USER}))
    assert holding(tmp_path, USER)
    blocked.unblock("shop", {USER})
    assert holding(tmp_path, USER) == []


async def test_a_question_that_was_being_listed_goes_with_who_asked_it(tmp_path: Path) -> None:
    questions = UnansweredQuestions(tmp_path)
    killed(lambda: questions.note("shop", USER, "where is the pistachio", NOW))
    assert holding(tmp_path, "pistachio")
    questions.forget("shop", USER)
    assert holding(tmp_path, "pistachio") == []
