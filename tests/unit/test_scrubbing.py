"""The free space of SQLite files."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.recall.vector_file import Stored, VectorFile
from memory.scrubbing import scrub

ROWS = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 9000), st.booleans()), max_size=150)


@pytest.mark.parametrize("size", [512, 8192, 65536])
@given(rows=ROWS)
@settings(deadline=None, max_examples=15)
def test_whatever_was_put_and_taken_only_what_is_there_is_left(
    tmp_path_factory: pytest.TempPathFactory, size: int, rows: list[tuple[int, int, bool]]
) -> None:
    path = tmp_path_factory.mktemp("scrub") / "some.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(
            f"PRAGMA page_size = {size}; PRAGMA journal_mode = WAL; PRAGMA secure_delete = ON;"
            "CREATE TABLE a (id TEXT PRIMARY KEY, said TEXT) WITHOUT ROWID; CREATE TABLE b (id TEXT UNIQUE, said TEXT);"
        )
        for number, length, stays in rows:
            for table in "ab":
                if stays:
                    told = (f"<{number}>", f"<{number}>" * (length // 5))
                    db.execute(f"INSERT OR REPLACE INTO {table} VALUES (?, ?)", told)
                else:
                    db.execute(f"DELETE FROM {table} WHERE id = ?", [f"<{number}>"])
            db.commit()
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        before = [db.execute(f"SELECT * FROM {table} ORDER BY id").fetchall() for table in "ab"]
    scrub(path)
    raw = path.read_bytes()
    there = {name for name, _ in before[0]}
    gone = {f"<{number}>" for number, *_ in rows} - there
    assert [name for name in gone if name.encode() in raw] == []
    assert scrub(path) == 0
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert [db.execute(f"SELECT * FROM {table} ORDER BY id").fetchall() for table in "ab"] == before


@pytest.mark.parametrize("mode", ["FULL", "INCREMENTAL"])
def test_a_file_with_pages_of_another_kind_is_left_alone(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "some.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(f"PRAGMA page_size = 512; PRAGMA auto_vacuum = {mode}; CREATE TABLE a (said TEXT);")
        db.executemany("INSERT INTO a VALUES (?)", [("x" * 3000,) for _ in range(300)])
        db.execute("DELETE FROM a WHERE rowid % 3 = 0")
        db.commit()
    raw = path.read_bytes()
    assert scrub(path) == 0
    assert path.read_bytes() == raw


@pytest.mark.parametrize("raw", [b"", b"no database" * 2000, b"SQLite format 3\0"])
def test_what_is_no_database_is_left_alone(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "some.sqlite"
    path.write_bytes(raw)
    assert scrub(path) == 0
    assert path.read_bytes() == raw


def test_of_whom_vectors_are_dropped_no_id_is_left(tmp_path: Path) -> None:
    chance, file = Random(3), VectorFile(tmp_path)
    people = [f"person-{chance.randrange(10**9):09}" for _ in range(200)]

    def put(user: str, number: int) -> None:
        made = {f"e{n}": Stored(b"digest", bytes(chance.randrange(100, 400))) for n in range(number)}
        file.put("shop", user, "model", made)

    for user in people:
        put(user, chance.randrange(1, 8))
    left = []
    for number, user in enumerate(people[:100]):
        put(people[100 + number], 12)
        assert file.drop("shop", [user]) > 0
        left += [user for one in tmp_path.iterdir() if user.encode() in one.read_bytes()]
    assert left == []
    assert sorted(file.owners("shop")) == sorted(people[100:])
    assert all(len(file.load("shop", user, "model")) == 12 for user in people[100:])
