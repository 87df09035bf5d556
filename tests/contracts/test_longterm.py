"""The suite of tests/contracts/longterm.py on JSON files; and what those files look like and survive."""

from __future__ import annotations

import asyncio
import gc
import gzip
import itertools
import json
import multiprocessing
import os
import resource
import signal
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
import zstandard

from memory import episodes, facts
from memory.errors import LongTermUnavailable
from memory.keys import InvalidId
from memory.long_term import journal
from memory.long_term.json_files import JsonFiles
from memory.long_term.place import Place
from memory.models import Changes
from memory.person import new as new_person
from memory.retention import Retention
from tests.contracts.longterm import NOW, TENANT, USER, LongTermContract, event, ids, telling

SEED_FILE = {
    "tenant_id": TENANT,
    "user_id": USER,
    "events": [
        {
            "event_type": "INQUIRY",
            "payload": {"original_message": "ราคาเท่าไหร่", "question_type": "pricing", "language": "th"},
            "importance_score": 0.8,
            "timestamp": "2026-02-28T10:30:00Z",
        }
    ],
    "attributes": {"preferred_language": "th", "customer_segment": "regular"},
    "history_summary": "asks about prices",
}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / "longterm"


def store_on(base: Path, **options: Any) -> JsonFiles:
    return JsonFiles(base, clock=lambda: NOW, **options)


@pytest.fixture
def another(base: Path) -> Callable[..., JsonFiles]:
    return lambda **options: store_on(base, **options)


@pytest.fixture
async def store(base: Path) -> AsyncIterator[JsonFiles]:
    store = store_on(base)
    yield store
    await store.close()


def write(base: Path, contents: bytes | dict[str, Any], name: str = "line:U1.json") -> Path:
    path = base / TENANT / name
    (base / TENANT).mkdir(parents=True, exist_ok=True)
    path.write_bytes(contents if isinstance(contents, bytes) else json.dumps(contents, ensure_ascii=False).encode())
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def remove(path: Path) -> None:
    path.unlink()


class Killed(BaseException):
    """As if the process had ended there."""


class TestContract(LongTermContract):
    async def test_an_unknown_person_is_none_and_leaves_no_trace(self, store: JsonFiles, base: Path) -> None:
        assert await store.load(TENANT, USER) is None
        assert await store.compact(TENANT, USER, NOW) == 0
        assert names(base.parent) == []

    async def test_users_are_named_as_they_were_given(self, store: JsonFiles) -> None:
        odd = [
            "line:U1",
            "../../etc/passwd",
            ".hidden",
            "_tenant",
            "ก" * 300,
            "a/b\x00c",
            "x.json",
            "x.journal",
            "x%2F",
        ]
        for user in odd:
            await store.save_events(TENANT, user, [event(1)])
        assert [user async for user in store.users(TENANT)] == sorted(odd)
        assert [user async for user in store.users("store_009")] == []
        assert [await ids(store, TENANT, user) for user in odd] == [["e1"]] * len(odd)

    async def test_no_id_reaches_outside_the_tenants_folder(self, store: JsonFiles, base: Path) -> None:
        for user in ("../../x", "/etc/passwd", "..", ".", "a/../../b"):
            await store.save_events(TENANT, user, [event(1)])
        assert {path.parent for path in base.parent.rglob("*.json")} == {base / TENANT}
        for tenant in ("", "../x", "Store", "a/b", "x" * 65):
            with pytest.raises(InvalidId):
                await store.save_events(tenant, USER, [event(1)])
        with pytest.raises(InvalidId):
            await store.load(TENANT, "")

    async def test_forget_removes_every_trace_and_says_what(self, store: JsonFiles, base: Path) -> None:
        write(base, b"{broken")
        await store.load(TENANT, USER)
        write(base, b"{broken again")
        await store.save_events(TENANT, USER, [event(1)], attributes={"name": "x"})
        await store.save_events(TENANT, USER, [event(2)])
        await store.save_events(TENANT, "line:U1.json", [event(3)])
        receipt = await store.forget(TENANT, USER)
        assert receipt == {"longterm_files": 4, "events": 2, "attributes": 1, "facts": 1, "episodes": 0}
        assert await store.load(TENANT, USER) is None
        assert [user async for user in store.users(TENANT)] == ["line:U1.json"]
        assert set((await store.forget(TENANT, USER)).values()) == {0}


class TestRetention:
    async def test_each_tenant_may_have_its_own_rules(self, base: Path) -> None:
        few = Retention(max_events=2)
        store = store_on(base, retention=lambda tenant: few if tenant == "store_002" else Retention())
        for tenant in (TENANT, "store_002"):
            await store.save_events(tenant, USER, [event(n) for n in range(4)])
        assert [len(await ids(store)), await ids(store, "store_002")] == [4, ["e2", "e3"]]


class TestFiles:
    async def test_the_first_event_makes_the_file_as_people_read_it(self, store: JsonFiles, base: Path) -> None:
        await store.save_events(TENANT, USER, [event(1)], attributes={"name": "สมชาย"}, history_summary="s")
        text = (base / TENANT / "line:U1.json").read_text()
        saved = json.loads(text)
        assert list(saved)[:5] == ["tenant_id", "user_id", "events", "attributes", "history_summary"]
        assert saved["events"][0]["event_type"] == "REQUEST"
        assert saved["events"][0]["timestamp"] == "2026-03-01T09:00:00.001Z"
        assert "ข้อความ 1" in text

    async def test_a_file_written_by_hand_loads_and_goes_on(self, store: JsonFiles, base: Path) -> None:
        write(base, SEED_FILE)
        await store.save_events(TENANT, USER, [event(2)])
        memory = await store.load(TENANT, USER)
        assert memory is not None
        assert [one.event_type.value for one in memory.events] == ["INQUIRY", "REQUEST"]
        assert memory.attributes["customer_segment"] == "regular"

    async def test_fields_of_a_newer_version_survive_a_fold(self, store: JsonFiles, base: Path) -> None:
        future = {"event_type": "DREAM", "importance_score": 0.9, "timestamp": "2026-02-28T10:30:00Z"}
        first = {**SEED_FILE["events"][0], "embedding": [1, 2]}  # type: ignore[index]
        strange = {"id": "f1", "shape": "of another kind"}
        newer = {"facts": [strange], "dreams": [{"text": "ชอบกาแฟ"}]}
        path = write(base, {**SEED_FILE, "events": [first, future], **newer})
        await store.save_events(TENANT, USER, [event(2)])
        await store.compact(TENANT, USER, NOW)
        saved = json.loads(path.read_bytes())
        assert [saved["facts"][0], saved["dreams"]] == [strange, [{"text": "ชอบกาแฟ"}]]
        assert saved["events"][:2] == [first, future]
        memory = await store.load(TENANT, USER)
        assert memory is not None
        assert [len(memory.events), [fact.key for fact in memory.facts]] == [
            2,
            ["preferred_language", "customer_segment"],
        ]

    async def test_a_change_by_hand_or_by_another_process_is_seen_at_once(self, store: JsonFiles, base: Path) -> None:
        write(base, SEED_FILE)
        assert len(await ids(store)) == 1
        other = store_on(base)
        await other.save_events(TENANT, USER, [event(2)])
        assert await ids(store) == [None, "e2"]
        await other.save_events(TENANT, USER, [event(3)])
        assert await ids(store) == [None, "e2", "e3"]
        await other.compact(TENANT, USER, NOW)
        assert await ids(store) == [None, "e2", "e3"]
        write(base, {**SEED_FILE, "events": []})
        assert await ids(store) == []
        assert await other.forget(TENANT, USER) == {
            "longterm_files": 1,
            "events": 0,
            "attributes": 2,
            "facts": 2,
            "episodes": 0,
        }
        assert await store.load(TENANT, USER) is None

    async def test_the_first_of_a_person_goes_into_the_file_at_once_or_else_into_the_journal(
        self, store: JsonFiles, base: Path
    ) -> None:
        await store.save_events(TENANT, USER, [event(0)])
        assert [name for name in names(base / TENANT) if name[0] != "."] == ["line:U1.json"]
        (base / TENANT / "line:U2.json.tmp").mkdir()  # no file can be written there
        await store.save_events(TENANT, "line:U2", [event(0)])
        assert (base / TENANT / "line:U2.journal").exists()
        assert await ids(store_on(base), user="line:U2") == await ids(store_on(base)) == ["e0"]

    async def test_a_long_journal_is_folded_in(self, store: JsonFiles, base: Path) -> None:
        for n in range(60):
            await store.save_events(TENANT, USER, [event(n, filler="x" * 5000)])
        assert len(await ids(store)) == 60
        with suppress(FileNotFoundError):  # it may be folded in at this moment
            assert (base / TENANT / "line:U1.journal").stat().st_size < 150_000
        assert len(json.loads((base / TENANT / "line:U1.json").read_bytes())["events"]) > 20

    @pytest.mark.parametrize(("kind", "ending"), [("gzip", ".gz"), ("zstd", ".zst"), ("none", "")])
    async def test_either_kind_loads_and_the_configured_one_is_written(
        self, base: Path, kind: str, ending: str
    ) -> None:
        plain = json.dumps(SEED_FILE).encode()
        for stored, name in (
            (plain, "line:U1.json"),
            (gzip.compress(plain), "line:U1.json.gz"),
            (zstandard.compress(plain), "line:U1.json.zst"),
        ):
            write(base, stored, name)
            store = store_on(base, compression=kind)
            await store.save_events(TENANT, USER, [event(1)])
            assert await ids(store) == [None, "e1"]
            await store.compact(TENANT, USER, NOW)
            assert await ids(store_on(base)) == [None, "e1"]
            assert [path.name for path in (base / TENANT).glob("line*")] == [f"line:U1.json{ending}"]
            assert [user async for user in store.users(TENANT)] == [USER]
            await store.forget(TENANT, USER)

    async def test_who_holds_the_file_of_one_kind_sees_what_another_process_writes_as_another_kind(
        self, base: Path
    ) -> None:
        one, other = store_on(base), store_on(base, compression="gzip")
        await one.change(TENANT, USER, lambda _: Changes(history_summary="before"))
        assert await one.load(TENANT, USER) is not None
        await other.rewrite(TENANT, USER, lambda known: known.model_copy(update={"history_summary": "after"}))
        assert (known := await one.load(TENANT, USER)) is not None
        assert known.history_summary == "after"

    @pytest.mark.parametrize("step", [1, 2, 3])
    def test_a_crash_while_the_kind_changes_leaves_no_older_file_beside_the_new_one(
        self, base: Path, monkeypatch: pytest.MonkeyPatch, step: int
    ) -> None:
        (base / TENANT).mkdir(parents=True)
        place, steps = Place(base, TENANT, USER), itertools.count(1)
        place.write(b"old", "none", first=True)

        def dying(call: Callable[..., None]) -> Callable[..., None]:
            def call_or_die(*given: Any) -> None:
                if next(steps) == step:
                    raise Killed
                call(*given)

            return call_or_die

        with monkeypatch.context() as patched:
            patched.setattr(os, "replace", dying(os.replace))
            patched.setattr(os, "unlink", dying(os.unlink))
            with pytest.raises(Killed):
                place.write(b"new", "gzip")
        held = [place.read(str(one))[0] for one in place.all_files() if one.suffix != ".tmp"]
        assert held == [b"old"] if step == 1 else set(held) == {b"new"}

    async def test_who_wrote_it_anew_knows_what_every_other_reader_finds(self, base: Path) -> None:
        """Also where something was said for which a file has no form; one of the calendar's last year has all of them
        looked at one by one."""
        store = store_on(base)
        await store.save_events(TENANT, USER, [event(0)])
        told = [event(0, half="\ud83d"), event(1, at=datetime.max.replace(tzinfo=UTC))]
        assert await store.rewrite(TENANT, USER, lambda known: known.model_copy(update={"events": told})) is True
        known, read = await store.load(TENANT, USER), await store_on(base).load(TENANT, USER)
        assert known is not None
        assert known == read
        assert known.events[0].payload["half"] == "\ufffd"

    async def test_an_event_that_is_in_the_file_and_comes_again_beside_an_odd_one_is_one_event(
        self, base: Path
    ) -> None:
        """The odd one, of the calendar's last year, has all of them looked at one by one."""
        store = store_on(base)
        await store.save_events(TENANT, USER, [event(0), event(1)])
        await store.save_events(TENANT, USER, [event(1), event(2, at=datetime.max.replace(tzinfo=UTC))])
        assert await ids(store) == await ids(store_on(base)) == ["e0", "e1", "e2"]

    @pytest.mark.parametrize("name", ["empty", "mark", "still"])
    async def test_a_look_in_which_a_journal_is_folded_in_sees_what_was_in_it(
        self, base: Path, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        """Whoever looks takes no lock: another process writes the file and drops the journal between two steps."""
        store, place = store_on(base), Place(base, TENANT, "")
        place.folder.mkdir(parents=True)
        if name == "still":
            place.write(b'{"history_summary": "before"}', "none", first=True)
        before = place.mark()
        Path(place.journal).write_bytes(b'{"at": "2026-11-29T10:00:00Z", "user_id": "", "history_summary": "after"}\n')
        folded = []

        def behind_which_it_is_folded_in(look: Callable[..., Any]) -> Callable[..., Any]:
            def looked(path: Any, *rest: Any, **more: Any) -> Any:
                try:
                    return look(path, *rest, **more)
                finally:
                    if not folded and str(path).startswith(place.named):
                        folded.append(path)
                        store._files.compact(TENANT, "", NOW)

            return looked

        with monkeypatch.context() as patched:
            for each in ("stat", "access"):
                patched.setattr(os, each, behind_which_it_is_folded_in(getattr(os, each)))
            nothing = {"empty": place.empty, "mark": lambda: place.mark().nothing, "still": lambda: place.still(before)}
            assert nothing[name]() is False
        assert folded
        assert not os.path.exists(place.journal)


class TestBroken:
    async def test_a_broken_file_is_set_aside_and_its_readable_part_kept(self, store: JsonFiles, base: Path) -> None:
        whole = json.dumps(
            {**SEED_FILE, "events": [event(n).model_dump(mode="json") for n in range(10)]}, ensure_ascii=False, indent=2
        )
        broken = whole.replace('"event_id": "e4"', '"event_id": e4').encode()
        path = write(base, broken)
        memory = await store.load(TENANT, USER)
        assert memory is not None
        assert await ids(store) == [f"e{n}" for n in range(10) if n != 4]
        assert memory.attributes == SEED_FILE["attributes"]
        assert memory.history_summary == "asks about prices"
        asides = list(path.parent.glob("line:U1.json.corrupt-*"))
        assert [one.read_bytes() for one in asides] == [broken]
        assert len(json.loads(path.read_bytes())["events"]) == 9

    @pytest.mark.parametrize("ends", [OSError(28, "no space left"), Killed()], ids=["full disk", "killed"])
    async def test_what_is_readable_of_it_is_there_also_where_nothing_can_be_written_in_its_place(
        self, base: Path, ends: BaseException, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fails(*args: Any) -> None:
            raise ends

        whole = json.dumps({**SEED_FILE, "events": [event(n).model_dump(mode="json") for n in range(10)]}, indent=2)
        broken = whole.replace('"event_id": "e4"', '"event_id": e4').encode()
        path, left = write(base, broken), [f"e{n}" for n in range(10) if n != 4]
        with monkeypatch.context() as patched:
            patched.setattr(Place, "_replace", fails)
            for _ in range(3):
                if isinstance(ends, OSError):
                    assert await ids(store_on(base)) == left
                    assert list(path.parent.glob("*.corrupt-*")) == []
                else:
                    with pytest.raises(Killed):
                        await store_on(base).load(TENANT, USER)
        assert path.read_bytes() == broken
        assert await ids(store_on(base)) == left
        assert len(json.loads(path.read_bytes())["events"]) == 9
        assert {one.read_bytes() for one in path.parent.glob("*.corrupt-*")} == {broken}

    async def test_a_full_disk_without_second_names_leaves_it_as_well(
        self, base: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fails(*args: Any) -> None:
            raise OSError(28, "no space left")

        path = write(base, b'{"events": [' + event(1).model_dump_json().encode())
        monkeypatch.setattr(os, "link", fails)
        with monkeypatch.context() as patched:
            patched.setattr(Place, "_replace", fails)
            assert await ids(store_on(base)) == ["e1"]
            assert [one.name for one in path.parent.glob("line*")] == [path.name]
        assert await ids(store_on(base)) == ["e1"]
        assert len(list(path.parent.glob("*.corrupt-*"))) == 1

    @pytest.mark.parametrize("cut", [0.1, 0.5, 0.9, 0.99])
    @pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress], ids=["plain", "gzip", "zstd"])
    async def test_a_file_cut_short_gives_its_whole_events(
        self, base: Path, cut: float, pack: Callable[[bytes], bytes]
    ) -> None:
        events = [event(n, noise=os.urandom(500).hex()).model_dump(mode="json") for n in range(100)]
        packed = pack(json.dumps({**SEED_FILE, "events": events}).encode())
        name = {bytes: "line:U1.json", gzip.compress: "line:U1.json.gz"}.get(pack, "line:U1.json.zst")
        write(base, packed[: int(len(packed) * cut)], name)
        store = store_on(base)
        await store.save_events(TENANT, USER, [event(500)])
        found = await ids(store)
        assert found == [*(f"e{n}" for n in range(len(found) - 1)), "e500"]
        if pack is bytes:
            assert len(found) - 1 in range(int(100 * cut) - 2, int(100 * cut) + 2)

    @pytest.mark.parametrize(
        "contents",
        [
            b"",
            b"\x00" * 300,
            b"[]",
            b"null",
            b'{"events": 3}',
            b"[" * 100_000,
            b'{"events":[' + b"{" * 20_000,
            b'{"events":[{"event_type":"REQUEST","importance_score":0,"timestamp":"2026-03-01T09:00:00Z","payload":{"a":'
            + b"[" * 2_000
            + b"]" * 2_000
            + b"}}]}",
            b"\xff\xfe",
            b'{"facts": null}',
            b'{"episodes": {"a": 1}}',
            b'{"events": [{"event_id": ["e1"]}]}',
            b'{"facts": [{"id": {"a": 1}}]}',
        ],
        ids=[
            *("empty", "zeroes", "list", "null", "events", "nested", "braces", "deep", "bytes"),
            *("no facts", "no list", "an event's id", "a fact's id"),
        ],
    )
    async def test_any_rubbish_is_set_aside_and_the_next_event_saved(
        self, store: JsonFiles, base: Path, contents: bytes
    ) -> None:
        path = write(base, contents)
        memory = await store.load(TENANT, USER)
        assert memory is not None
        assert memory.events == []
        await store.save_events(TENANT, USER, [event(1)])
        assert await ids(store) == ["e1"]
        assert [one.read_bytes() for one in path.parent.glob("*.corrupt-*")] == [contents]

    @pytest.mark.parametrize(
        ("number", "read"), [("1e999", "1e999"), ("9" * 400, "9" * 400), ("-1E400", "-1E400"), ("12", 12), ("0.5", 0.5)]
    )
    async def test_a_number_that_nothing_holds_is_text_and_the_rest_is_as_it_was(
        self, base: Path, number: str, read: Any
    ) -> None:
        told = {**SEED_FILE, "events": [event(n).model_dump(mode="json") for n in range(3)]}
        told["events"][1]["payload"] |= {"of": "NUMBER", "beside": [1, 2.5, "ก"]}
        path = write(base, json.dumps(told).replace('"NUMBER"', number).encode())
        for _ in range(2):  # as it stands, and once it was folded
            store = store_on(base)
            memory = await store.load(TENANT, USER)
            assert memory is not None
            assert memory.events[1].payload["of"] == read
            assert memory.events[1].payload["beside"] == [1, 2.5, "ก"]
            await store.save_events(TENANT, USER, [event(7)])
            await store.compact(TENANT, USER, NOW)
        assert await ids(store_on(base)) == ["e0", "e1", "e2", "e7"]
        asides = list(path.parent.glob("*.corrupt-*"))
        assert len(asides) == isinstance(read, str)

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400])
    async def test_what_is_written_in_the_loose_way_can_be_read(self, store: JsonFiles, base: Path, value: Any) -> None:
        await store.save_events(TENANT, USER, [event(0)])
        odd = event(1).model_copy(update={"payload": {"original_message": "a\ud800", "of": value}})
        await store.save_events(TENANT, USER, [odd])
        await store.save_events(TENANT, USER, [event(2)])
        assert await ids(store) == await ids(store_on(base)) == ["e0", "e1", "e2"]
        memory = await store_on(base).load(TENANT, USER)
        assert memory is not None
        assert memory.events[1].payload == {
            "original_message": "a\ufffd",
            "of": str(value) if isinstance(value, int) else None,
        }

    async def test_whoever_has_a_file_of_an_odd_shape_can_be_forgotten(self, store: JsonFiles, base: Path) -> None:
        folder = write(base, b'{"events": [{"event_id": {}}], "facts": 5}').parent
        (folder / "line:U1.journal").write_bytes(b'{"events": [{"event_id": []}]}\n')
        await store.forget(TENANT, USER)
        assert [one.name for one in folder.iterdir() if one.is_file()] == []

    async def test_a_file_with_a_name_that_is_nobodys_hides_nobody(self, store: JsonFiles, base: Path) -> None:
        await store.save_events(TENANT, USER, [event(0)])
        write(base, b"{}", "%FF.json")
        assert [user async for user in store.users(TENANT)] == [USER]

    async def test_a_journal_line_cut_short_spoils_no_other(self, store: JsonFiles, base: Path) -> None:
        await store.save_events(TENANT, USER, [event(0)])
        await store.save_events(TENANT, USER, [event(1)])
        lines = base / TENANT / "line:U1.journal"
        with lines.open("ab") as file:
            file.write(b'{"at":"2026-03-01T09:00:00Z","events":[{"event_ty')
        assert await ids(store) == ["e0", "e1"]
        await store.save_events(TENANT, USER, [event(2)])
        assert await ids(store) == ["e0", "e1", "e2"]
        assert await ids(store_on(base)) == ["e0", "e1", "e2"]
        await store.compact(TENANT, USER, NOW)
        assert await ids(store_on(base)) == ["e0", "e1", "e2"]
        assert len(list(lines.parent.glob("line:U1.journal.corrupt-*"))) == 1

    async def test_a_crash_between_file_and_journal_doubles_nothing(self, store: JsonFiles, base: Path) -> None:
        await store.save_events(TENANT, USER, [event(0)], attributes={"a": 1}, history_summary="0")
        for n in range(1, 5):
            await store.save_events(TENANT, USER, [event(n)], attributes={"a": n}, history_summary=str(n))
        lines = base / TENANT / "line:U1.journal"
        before = lines.read_bytes()
        await store.compact(TENANT, USER, NOW)
        lines.write_bytes(before)
        await store.save_events(TENANT, USER, [event(5)])
        memory = await store_on(base).load(TENANT, USER)
        assert memory is not None
        assert [one.event_id for one in memory.events] == [f"e{n}" for n in range(6)]
        assert (memory.attributes, memory.history_summary) == ({"a": 4}, "4")

    async def test_a_line_without_its_end_counts_if_it_is_whole(self, tmp_path: Path) -> None:
        path = tmp_path / "j"
        path.write_bytes(b'{"a":1}\n\n{"b":2}')
        assert journal.read(path) == journal.Read([{"a": 1}, {"b": 2}], 0, 16)


class TestDiskAway:
    async def test_a_folder_that_is_no_folder_is_one_clear_error(self, base: Path) -> None:
        in_the_way = write(base.parent, b"", f"../{base.name}")
        store = store_on(base)
        with pytest.raises(LongTermUnavailable, match="can't be written"):
            await store.save_events(TENANT, USER, [event(1)])
        remove(in_the_way)
        await store.save_events(TENANT, USER, [event(1)])
        assert await ids(store) == ["e1"]

    async def test_a_full_disk_is_one_clear_error_and_loses_nothing(self, store: JsonFiles, base: Path) -> None:
        await store.save_events(TENANT, USER, [event(0)])
        await store.save_events(TENANT, USER, [event(1)])
        lines = base / TENANT / "line:U1.journal"
        before = contents(lines)
        with no_file_over(len(before) + 100), pytest.raises(LongTermUnavailable):
            await store.save_events(TENANT, USER, [event(2)])
        assert contents(lines) == before
        assert await ids(store_on(base)) == ["e0", "e1"]
        await store.save_events(TENANT, USER, [event(2)])
        assert await ids(store) == ["e0", "e1", "e2"]

    async def test_a_disk_too_full_for_the_file_leaves_file_and_journal_as_they_were(
        self, store: JsonFiles, base: Path
    ) -> None:
        for n in range(20):
            await store.save_events(TENANT, USER, [event(n, filler="x" * 500)])
        before = {name: contents(base / TENANT / name) for name in ("line:U1.json", "line:U1.journal")}
        with no_file_over(5000), pytest.raises(LongTermUnavailable):
            await store.compact(TENANT, USER, NOW)
        assert {name: contents(base / TENANT / name) for name in names(base / TENANT) if name[0] != "."} == before
        assert len(await ids(store_on(base))) == 20


@contextmanager
def no_file_over(size: int) -> Iterator[None]:
    """What a full disk does to a process: writes beyond this size fail."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)


def contents(path: Path) -> bytes:
    return path.read_bytes()


def _save_many(base: str, process: int) -> None:
    async def run() -> None:
        store = JsonFiles(base, clock=lambda: NOW)
        for n in range(40):
            number = process * 1000 + n
            await store.save_events(
                TENANT, USER, [event(number)], history_summary=lambda known: f"{known.history_summary}."
            )
            if n % 7 == process:
                await store.compact(TENANT, USER, NOW)
        await store.close()

    asyncio.run(run())


def _save_for_ever(base: str, done: Connection) -> None:
    async def run() -> None:
        store = JsonFiles(base, clock=lambda: NOW)
        for n in itertools.count():
            await store.save_events(TENANT, USER, [event(n)])
            done.send(n)
            if n % 5 == 4:
                await store.compact(TENANT, USER, NOW)

    asyncio.run(run())


class TestKilled:
    async def test_what_was_saved_before_a_kill_is_there_once_after_it(self, base: Path) -> None:
        spawn = multiprocessing.get_context("spawn")
        saved = -1
        for until in (7, 12):
            here, there = spawn.Pipe()
            writer = spawn.Process(target=_save_for_ever, args=(str(base), there))
            writer.start()
            while (saved := await asyncio.to_thread(here.recv)) < until:
                pass
            writer.kill()
            await asyncio.to_thread(writer.join, 10)
            there.close()
            while here.poll():
                try:
                    saved = here.recv()
                except EOFError:
                    break
            here.close()
            found = await ids(store_on(base))
            assert set(found) >= {f"e{n}" for n in range(saved + 1)}
            assert len(set(found)) == len(found)


class TestManyWriters:
    async def test_saves_that_come_together_share_a_write(self, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        synced: list[int] = []
        real_sync = os.fsync

        def counting(descriptor: int) -> None:
            synced.append(descriptor)
            real_sync(descriptor)

        store = store_on(base)
        await store.save_events(TENANT, USER, [event(0)])
        monkeypatch.setattr(os, "fsync", counting)
        await asyncio.gather(*(store.save_events(TENANT, USER, [event(n)]) for n in range(1, 101)))
        assert len(await ids(store)) == 101
        assert len(synced) < 10

    async def test_threads_with_loops_of_their_own_lose_nothing(self, base: Path) -> None:
        store = store_on(base)

        def run(thread: int) -> None:
            async def save() -> None:
                for n in range(20):
                    await store.save_events(TENANT, USER, [event(thread * 100 + n)])

            asyncio.run(save())

        await asyncio.gather(*(asyncio.to_thread(run, n) for n in range(4)))
        assert len(set(await ids(store))) == 80

    async def test_processes_that_save_and_fold_at_once_lose_nothing(self, base: Path) -> None:
        spawn = multiprocessing.get_context("spawn")
        writers = [spawn.Process(target=_save_many, args=(str(base), n)) for n in range(3)]
        for writer in writers:
            writer.start()
        for writer in writers:
            await asyncio.to_thread(writer.join, 60)
        assert [writer.exitcode for writer in writers] == [0, 0, 0]
        memory = await store_on(base).load(TENANT, USER)
        assert memory is not None
        assert {one.event_id for one in memory.events} == {f"e{p * 1000 + n}" for p in range(3) for n in range(40)}
        assert memory.history_summary == "." * 120


def _tell(base: str, number: int) -> None:
    async def run() -> None:
        store = JsonFiles(base, clock=lambda: NOW)
        for n in range(10):
            await store.change(TENANT, USER, lambda known, n=n: telling(known, number * 10 + n))  # type: ignore[misc]
        await store.close()

    asyncio.run(run())


class TestChange:
    async def test_from_threads_and_processes_at_once_too(self, base: Path, store: JsonFiles) -> None:
        context = multiprocessing.get_context("spawn")
        processes = [context.Process(target=_tell, args=(str(base), n)) for n in range(3)]
        for process in processes:
            process.start()
        await asyncio.gather(*(asyncio.to_thread(_tell, str(base), n) for n in range(3, 5)))
        for process in processes:
            await asyncio.to_thread(process.join, 60)
        memory = await store.load(TENANT, USER)
        assert memory is not None
        assert [process.exitcode for process in processes] == [0, 0, 0]
        assert [(fact.value, fact.times_confirmed) for fact in memory.facts] == [("blue", 49)]

    async def test_what_adds_nothing_writes_nothing(self, store: JsonFiles, base: Path) -> None:
        await store.change(TENANT, USER, lambda _: Changes())
        assert [path.name for path in (base / TENANT).iterdir() if path.is_file()] == []
        assert await store.load(TENANT, USER) is None

    async def test_everything_comes_back_before_and_after_a_fold(self, store: JsonFiles, base: Path) -> None:
        episode = episodes.made_of(
            "s1", NOW, [{"role": "user", "message": "สวัสดี", "timestamp": "2026-03-01T09:00:00Z"}]
        )
        person = new_person(USER, NOW, "พลอย")
        fact = facts.new(now=NOW, key="city", value="เชียงใหม่", source="m1")
        changes = Changes(events=[event(1)], facts=[fact], episodes=[episode], person=person, history_summary="สรุป")
        await store.change(TENANT, USER, lambda _: changes)
        for _ in range(2):
            memory = await store_on(base).load(TENANT, USER)
            assert memory is not None
            assert (memory.facts, memory.episodes, memory.person) == ([fact], [episode], person)
            assert (memory.events, memory.attributes, memory.history_summary) == (
                [event(1)],
                {"city": "เชียงใหม่"},
                "สรุป",
            )
            await store.compact(TENANT, USER, NOW)

    async def test_attributes_of_a_file_written_by_hand_are_facts_of_full_confidence(
        self, store: JsonFiles, base: Path
    ) -> None:
        write(base, SEED_FILE)
        memory = await store.load(TENANT, USER)
        assert memory is not None
        assert [(fact.key, fact.value, fact.confidence) for fact in memory.facts] == [
            ("preferred_language", "th", 1.0),
            ("customer_segment", "regular", 1.0),
        ]
        again = await store_on(base).load(TENANT, USER)
        assert again is not None
        assert [fact.id for fact in again.facts] == [fact.id for fact in memory.facts]

    async def test_an_attribute_changed_by_hand_supersedes_the_fact(self, store: JsonFiles, base: Path) -> None:
        await store.save_events(TENANT, USER, [event(1)], attributes={"city": "Bangkok"})
        await store.compact(TENANT, USER, NOW)
        path = base / TENANT / "line:U1.json"
        path.write_bytes(path.read_bytes().replace(b'"city": "Bangkok"', b'"city": "Phuket"'))
        memory = await store.load(TENANT, USER)
        assert memory is not None
        assert memory.attributes == {"city": "Phuket"}
        assert [(fact.value, fact.current) for fact in memory.facts] == [("Bangkok", False), ("Phuket", True)]

    async def test_a_broken_file_gives_its_whole_facts_and_episodes(self, store: JsonFiles, base: Path) -> None:
        await store.save_events(TENANT, USER, [event(1)], attributes={"city": "Bangkok", "name": "พลอย"})
        await store.compact(TENANT, USER, NOW)
        path = base / TENANT / "line:U1.json"
        whole = path.read_bytes()
        path.write_bytes(whole[: whole.rindex(b'"key": "name"')])
        memory = await store.load(TENANT, USER)
        assert memory is not None
        assert memory.attributes == {"city": "Bangkok", "name": "พลอย"}

    async def test_the_tenants_own_is_nobodys_and_each_tenants_alone(self, store: JsonFiles, base: Path) -> None:
        fact = facts.new(now=NOW, key="wifi", value="1234", scope="global")
        await store.change_shared(TENANT, lambda _: Changes(facts=[fact]))
        shared = await store.load_shared(TENANT)
        assert shared is not None
        assert (shared.facts, shared.attributes, shared.user_id) == ([fact], {}, "")
        assert await store.load_shared("store_002") is None
        assert [user async for user in store.users(TENANT)] == []
        assert (base / TENANT / "_tenant.json").exists()
        with pytest.raises(InvalidId):
            await store.forget(TENANT, "")

    async def test_the_cost_of_a_change_does_not_grow_with_what_is_known(self, store: JsonFiles, base: Path) -> None:
        for n in range(30):
            await store.change(TENANT, USER, lambda known, n=n: telling(known, n))  # type: ignore[misc]
        journal_file = base / TENANT / "line:U1.journal"
        lines = journal_file.read_bytes().splitlines()
        assert len(lines[-1]) < 2 * len(lines[0]) + 400

    async def test_what_is_held_in_memory_takes_a_small_multiple_of_the_files(
        self, store: JsonFiles, base: Path
    ) -> None:
        await store.save_events(TENANT, USER, [event()])
        tracemalloc.start()
        try:
            for number in range(1, 60):
                await store.save_events(TENANT, USER, [event(number, note="x" * 300)])
                await store.load(TENANT, USER)
            gc.collect()
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        on_disk = sum(file.stat().st_size for file in (base / TENANT).iterdir())
        assert held < 3 * on_disk
