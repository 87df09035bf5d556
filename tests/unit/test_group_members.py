"""What a forgotten person said in groups goes; what others said there stays."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from memory import MemoryConfig, MemoryManager
from memory.members import of_member

SHOP, GROUP, ANN, BEE = "shop", "telegram:group:-1007", "telegram:4242424242", "telegram:777"


class Group:
    def __init__(self, folder: Path) -> None:
        self.now = datetime(2026, 3, 2, 3, 0, tzinfo=UTC)
        self.folder = folder
        self.manager = MemoryManager(MemoryConfig(lm_base_path=str(folder / "longterm")), clock=self.clock)

    def clock(self) -> datetime:
        self.now += timedelta(milliseconds=5)
        return self.now

    async def said(self, who: str | None, text: str, name: str = "Somebody") -> None:
        role: Literal["user", "bot"] = "user" if who else "bot"
        metadata = {"sender": who, "sender_name": name} if who else {}
        await self.manager.add_message_to_context(SHOP, GROUP, text, role, metadata)

    async def talks(self, thing: str) -> None:
        for who, text in (
            (ANN, f"I am allergic to {thing}, refund order 5512887766"),
            (None, f"noted, {thing}"),
            (BEE, "is there oolong tea, and when do you open"),
            (None, "there is oolong"),
        ):
            await self.said(who, text)

    def kept(self, word: str) -> list[str]:
        files = [one for one in self.folder.rglob("*") if one.is_file() and word.encode() in one.read_bytes()]
        return sorted(str(one.relative_to(self.folder)) for one in files)


async def test_a_forgotten_member_s_words_leave_the_group_and_others_stay(tmp_path: Path) -> None:
    group = Group(tmp_path)
    await group.talks("pistachio")
    group.now += timedelta(hours=1)
    await group.manager.cleanup_expired_sessions()
    await group.talks("walnuts")
    await group.manager.catalog.refresh(SHOP)
    memory = await group.manager.longterm.load(SHOP, GROUP)
    assert memory is not None
    assert "pistachio" in str(memory.episodes)
    receipt = await group.manager.forget(SHOP, ANN)
    assert receipt["group_messages"] == 4
    for word in ("pistachio", "walnuts", "4242424242", "5512887766"):
        assert group.kept(word) == []
    session = await group.manager.get_or_create_session_context(SHOP, GROUP)
    assert "walnuts" not in session.model_dump_json()
    assert "pistachio" not in session.model_dump_json()
    assert [line["message"] for line in session.history] == [
        "is there oolong tea, and when do you open",
        "there is oolong",
    ]
    memory = await group.manager.longterm.load(SHOP, GROUP)
    assert memory is not None
    assert [line["message"] for line in memory.episodes[0].conversation] == [
        "is there oolong tea, and when do you open",
        "there is oolong",
    ]
    assert memory.episodes[0].output == "there is oolong"
    again = await group.manager.forget(SHOP, ANN)
    assert again["group_messages"] == 0


async def test_what_a_member_said_in_an_earlier_talk_is_found_with_who_said_it(tmp_path: Path) -> None:
    group = Group(tmp_path)
    for who, name, text in (
        (ANN, "Ann", "I bring the plates on Saturday"),
        (BEE, "Bee", "I bring the drinks on Saturday"),
        (None, "", "The terrace is yours on Saturday"),
    ):
        await group.said(who, text, name)
    group.now += timedelta(hours=1)
    await group.manager.cleanup_expired_sessions()

    async def found(question: str) -> list[str]:
        seen = await group.manager.knowledge.seen_by(SHOP, GROUP)
        hits = await group.manager.knowledge.found(SHOP, GROUP, seen, question, group.now, around=True)
        return [hit.text for hit in hits]

    anns, bees = "2026-03-02 Ann: I bring the plates on Saturday", "2026-03-02 Bee: I bring the drinks on Saturday"
    assert (await found("what does Bee bring on Saturday?"))[0] == bees
    assert (await found("what does Ann bring on Saturday?"))[0] == anns
    (whole,) = await group.manager.search(SHOP, GROUP, "terrace")
    assert whole.kind == "episode"
    await group.manager.forget(SHOP, ANN)
    assert anns not in await found("what does Ann bring on Saturday?")
    assert bees in await found("what does Ann bring on Saturday?")


def test_the_answer_to_a_member_is_the_next_thing_that_the_bot_said() -> None:
    def line(name: str, sender: str | None) -> dict[str, object]:
        return {"message_id": name, "role": "user" if sender else "bot", "metadata": {"sender": sender}}

    said = [line("1", BEE), line("2", ANN), line("3", BEE), line("4", None), line("5", None), line("6", ANN)]
    assert of_member(said, {ANN}) == {"2", "4", "6"}
    assert of_member(said, {"telegram:1"}) == set()
