"""Long-term memory copied from files to PostgreSQL and back, while somebody writes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway.cli import cli
from memory import facts
from memory.copying import Copy, copy_said, hash_of
from memory.errors import LongTermUnavailable
from memory.keys import ConversationRef
from memory.long_term.document import Document
from memory.long_term.json_files import JsonFiles
from memory.models import Changes, Message
from memory.postgres.database import Database
from memory.postgres.said import PostgresTranscripts
from memory.postgres.store import PostgresLongTerm
from memory.transcripts import TranscriptFiles
from tests import postgres
from tests.contracts.longterm import NOW, TENANT, USER, event, ids

REF = ConversationRef(TENANT, USER)

BY_HAND = {
    "tenant_id": TENANT,
    "user_id": "line:U2",
    "events": [
        {"event_type": "INQUIRY", "payload": {"original_message": "a\x00b ก"}, "importance_score": 0.8,
         "timestamp": "2026-02-28T10:30:00Z"},
        {"event_type": "DREAM", "event_id": "d1", "importance_score": 0.9, "timestamp": "2026-02-28T10:30:00Z"},
        {"event_type": "DREAM", "importance_score": 0.9, "timestamp": "2026-02-28T10:30:00Z"},
    ],
    "attributes": {"preferred_language": "th"},
    "history_summary": "asks about prices",
    "facts": [{"id": "f1", "shape": "of another kind"}, {"no": "id"}],
    "dreams": [{"text": "of a newer version"}],
}  # fmt: skip


@pytest.fixture
def url(socket_folder: Path) -> Iterator[str]:
    with postgres.emptied(socket_folder) as url:
        yield url


@pytest.fixture
async def database(url: str) -> AsyncIterator[PostgresLongTerm]:
    store = PostgresLongTerm(Database(url, size=4), clock=lambda: NOW)
    yield store
    await store.close()


@pytest.fixture
async def files(tmp_path: Path) -> JsonFiles:
    files = JsonFiles(tmp_path / "longterm", clock=lambda: NOW)
    await files.save_events(TENANT, USER, [event(n) for n in range(20)], attributes={"city": "Phuket"})
    await files.save_events("store_002", "ก" * 300, [event(1)], history_summary="สรุป")
    fact = facts.new(now=NOW, key="wifi", value="1234", scope="global")
    await files.change_shared(TENANT, lambda _: Changes(facts=[fact]))
    (tmp_path / "longterm" / TENANT / "line:U2.json").write_text(json.dumps(BY_HAND))
    return files


def quiet(done: int, of: int) -> None:
    """Nobody looks."""


async def test_everything_goes_over_and_back(files: JsonFiles, database: PostgresLongTerm, tmp_path: Path) -> None:
    back = JsonFiles(tmp_path / "back", clock=lambda: NOW)
    there = Copy(files, database, tmp_path / "notes" / "there.jsonl")
    home = Copy(database, back, tmp_path / "notes" / "home.jsonl")
    told: list[tuple[int, int]] = []
    assert await there.once(TENANT, lambda *done: told.append(done)) == 3
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert await there.once("store_002", quiet) == 1
    for tenant, people in ((TENANT, 3), ("store_002", 1)):
        assert await there.once(tenant, quiet) == 0
        outcome = await there.compare(tenant, quiet)
        assert (outcome.people, outcome.whole, outcome.different) == (people, True, [])
        await home.once(tenant, quiet)
        assert (await home.compare(tenant, quiet)).hash == outcome.hash
        for user in await files.stamps(tenant):
            before, after = await files.document(tenant, user), await back.document(tenant, user)
            assert before is not None
            assert after is not None
            assert hash_of(before) == hash_of(after)
    saved = json.loads((tmp_path / "back" / TENANT / "line:U2.json").read_bytes())
    assert (saved["dreams"], saved["attributes"]) == (BY_HAND["dreams"], BY_HAND["attributes"])
    assert [one in saved["events"] for one in BY_HAND["events"]] == [True] * 3
    assert {"no": "id"} in saved["facts"]
    read = [await one.load(TENANT, "line:U2") for one in (files, database, back)]
    assert read[0] == read[1] == read[2]


async def test_what_is_written_and_forgotten_meanwhile_is_in_the_next_pass(
    files: JsonFiles, database: PostgresLongTerm, tmp_path: Path
) -> None:
    copying = Copy(files, database, tmp_path / "notes.jsonl")
    await copying.once(TENANT, quiet)
    await files.save_events(TENANT, USER, [event(100)])
    await files.save_events(TENANT, "line:U3", [event(1)])
    await files.forget(TENANT, "line:U2")
    assert (await copying.compare(TENANT, quiet)).changed == 3
    assert await copying.once(TENANT, quiet) == 3
    outcome = await copying.compare(TENANT, quiet)
    assert (outcome.whole, outcome.people) == (True, 3)
    assert len(await ids(database)) == 21
    assert await database.load(TENANT, "line:U2") is None
    assert [user async for user in database.users(TENANT)] == [USER, "line:U3"]


async def test_what_was_broken_off_goes_on_where_it_was(
    files: JsonFiles, database: PostgresLongTerm, tmp_path: Path
) -> None:
    for number in range(20):
        await files.save_events(TENANT, f"telegram:{number}", [event(number)])
    put: list[str] = []

    class Failing(PostgresLongTerm):
        room = 10

        async def put(self, tenant: str, user: str, whole: Document) -> None:
            if len(put) >= self.room:
                raise LongTermUnavailable("away")
            put.append(user)
            await super().put(tenant, user, whole)

    target = Failing(database.database, clock=lambda: NOW)
    with pytest.raises(LongTermUnavailable):
        await Copy(files, target, tmp_path / "notes.jsonl").once(TENANT, quiet)
    with (tmp_path / "notes.jsonl").open("ab") as notes:
        notes.write(b'["store_001", "abc')  # as a killed process leaves it
    target.room = 1000
    resumed = Copy(files, target, tmp_path / "notes.jsonl")
    assert await resumed.once(TENANT, quiet) == 23 - 10
    assert len(put) == len(set(put)) == 23
    assert (await resumed.compare(TENANT, quiet)).people == 23
    assert USER.encode() not in (tmp_path / "notes.jsonl").read_bytes()


async def test_what_is_otherwise_in_the_target_is_told(
    files: JsonFiles, database: PostgresLongTerm, tmp_path: Path
) -> None:
    await database.save_events(TENANT, "line:U9", [event(1)])
    copying = Copy(files, database, tmp_path / "notes.jsonl")
    await copying.once(TENANT, quiet)
    await database.save_events(TENANT, USER, [event(500)])
    await database.forget(TENANT, "line:U2")
    outcome = await copying.compare(TENANT, quiet)
    assert (outcome.whole, outcome.people, outcome.missing) == (False, 1, 1)
    assert (outcome.different, outcome.unknown) == ([USER], ["line:U9"])
    assert await copying.once(TENANT, quiet) == 0  # it may be newer there
    anew = Copy(files, database, tmp_path / "notes.jsonl", anew=True)
    assert await anew.once(TENANT, quiet) == 3
    assert (await anew.compare(TENANT, quiet)).different == []


async def test_what_was_said_goes_over_and_back_and_follows_what_is_changed(
    database: PostgresLongTerm, tmp_path: Path
) -> None:
    files, back = TranscriptFiles(tmp_path / "transcripts"), TranscriptFiles(tmp_path / "back")
    rows = PostgresTranscripts(database.database)
    side = REF._replace(conversation="c2")
    for number in range(3):
        line: Message = {"role": "user", "message": f"text {number}\x00", "metadata": {"platform_id": str(number)}}
        await files.append(REF, [line])
        await files.append(side, [{**line, "message_id": f"m{number}"}])
    assert await copy_said(files, rows, TENANT, quiet) == 6
    assert await copy_said(files, rows, TENANT, quiet) == 0
    await files.amend(REF, "1", lambda one: {**one, "message": "corrected"})
    await files.amend(side, "2", lambda one: None)
    await files.append(REF, [{"role": "bot", "message": "new"}])
    assert await copy_said(files, rows, TENANT, quiet) == 3 + 4 + 3 + 2
    await copy_said(rows, back, TENANT, quiet)
    for ref in (REF, side):
        found = [[one["message"] for one in await kept.tail(ref, 9)] for kept in (files, rows, back)]
        assert found[0] == found[1] == found[2]
    assert len(await back.everything(TENANT, USER)) == 6


def test_the_command_says_what_it_did_and_fails_while_the_two_differ(
    files: JsonFiles, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    monkeypatch.setenv("CONFIG_DIR", str(tmp_path / "config"))

    def copy(*more: str) -> tuple[int, str]:
        given = ["longterm", "copy", "--from", str(tmp_path / "longterm"), "--to", url, *more]
        done = CliRunner().invoke(cli, given)
        return done.exit_code, done.stdout

    code, text = copy()
    assert (code, "store_001: 3 copied and compared" in text, "same on both sides" in text) == (0, True, True)
    (tmp_path / "longterm" / TENANT / "line:U7.json").write_text("{}")
    assert copy()[0] == 0
    assert copy("--to", str(tmp_path / "longterm"))[0] == 1
    assert copy("--from", "mysql://nowhere")[0] == 1
