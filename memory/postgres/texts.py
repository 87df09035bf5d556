"""Which records have which terms: what searching a list looks in, in place of all its rows.

The terms are those of the index of the files (`memory.recall.terms`): stems and topics as they are, and for Thai and
for what stands inside of words every run of up to three letters, with a `~` before it. Equality is the one comparison
that row-level security lets an index answer before the wall is checked, so each is looked up as it is. Within the
caller's transaction, under the lock of the tenant's catalog.
"""

from __future__ import annotations

import asyncio
import struct
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import orjson

from memory.index import schema
from memory.index.postings import pieces
from memory.listing import Kind
from memory.postgres.database import Connection
from memory.recall.terms import terms

BLOCK = 4096  # numbers of a row of postings
LONGEST = 64  # letters of a term: what an index can hold
_STALE = 1000  # texts that are taken out at a time

Term = tuple[str, str, int]  # kind, term, block


class Text(NamedTuple):
    kind: str
    number: int
    words: str
    terms: str  # without the pieces, between spaces

    @property
    def all(self) -> set[str]:
        return {*self.terms.split(" "), *pieces(self.words)} - {""}


def _same(kind: Kind) -> str:
    """The record `r` that is listed with the words of the text `t`."""
    table, name, listed = ("people", "user_id", "user_id <> ''") if kind == "users" else (kind, "id", "listed")
    return (
        f"FROM chat_chat.{table} AS r WHERE r.tenant = t.tenant AND r.user_id = t.user_id AND r.{name} = t.id"
        f" AND r.user_id = ANY(%(users)s) AND r.{listed} AND r.words = t.words"
    )


_GONE = " UNION ALL ".join(
    "(SELECT kind, number, words, terms FROM chat_chat.texts AS t WHERE tenant = %(tenant)s"
    f" AND user_id = ANY(%(users)s) AND kind = '{kind}' AND NOT EXISTS (SELECT {_same(kind)}) LIMIT {_STALE})"
    for kind in schema.OF
)
_NEW = " UNION ALL ".join(
    f"SELECT '{kind}', r.user_id, r.{name}, r.words FROM chat_chat.{table} AS r LEFT JOIN chat_chat.texts AS t"
    f" ON t.tenant = r.tenant AND t.user_id = r.user_id AND t.kind = '{kind}' AND t.id = r.{name}"
    " AND t.user_id = ANY(%(users)s)"  # said of both, so that neither is read whole
    f" WHERE r.tenant = %(tenant)s AND r.user_id = ANY(%(users)s) AND r.{listed} AND r.words <> '' AND t.id IS NULL"
    for kind in schema.OF
    for table, name, listed in [("people", "user_id", "user_id <> ''") if kind == "users" else (kind, "id", "listed")]
)


async def take(db: Connection, tenant: str, users: Collection[str]) -> None:
    """These persons' texts, by their keys, as the records are now; only what changed is written."""
    await take_out(db, tenant, users)
    found = await db.execute(_NEW.encode(), {"tenant": tenant, "users": list(users)})
    new = await found.fetchall()
    if not new:
        return
    asked = "UPDATE chat_chat.catalogs SET next = next + %s WHERE tenant = %s RETURNING next"
    (end,) = await (await db.execute(asked, [len(new), tenant])).fetchone() or (0,)
    rows, posted = await asyncio.to_thread(_made, sorted(new), end - len(new))
    await db.execute(
        "INSERT INTO chat_chat.texts (tenant, kind, number, user_id, id, length, words, terms)"
        " SELECT %s, * FROM json_to_recordset(%s::json) AS t"
        " (kind text, number bigint, user_id text, id text, length int, words text, terms text)",
        [tenant, rows],
    )
    await db.execute(
        "INSERT INTO chat_chat.postings (tenant, kind, term, block, numbers)"
        " SELECT %s, kind, term, block, decode(numbers, 'hex') FROM json_to_recordset(%s::json) AS p"
        " (kind text, term text, block bigint, numbers text)"
        " ON CONFLICT (tenant, kind, term, block) DO UPDATE SET numbers = postings.numbers || EXCLUDED.numbers",
        [tenant, posted],
    )


def _made(new: Sequence[tuple[str, str, str, str]], first: int) -> tuple[str, str]:
    """Rows of (kind, user's key, id, words), numbered from `first` on: as texts and as postings, in JSON."""
    rows, posted = [], defaultdict[Term, list[int]](list)
    for number, (kind, user, name, words) in enumerate(new, first):
        told = terms(words)
        text = Text(kind, number, words, " ".join({one[:LONGEST] for one in told.words}))
        length = len(set(told.all))
        rows.append({**text._asdict(), "user_id": user, "id": name, "length": length})
        for term in text.all:
            posted[kind, term, number // BLOCK].append(number % BLOCK)
    listed = [
        {"kind": kind, "term": term, "block": block, "numbers": packed(numbers).hex()}
        for (kind, term, block), numbers in sorted(posted.items())
    ]
    return orjson.dumps(rows).decode(), orjson.dumps(listed).decode()


async def take_out(db: Connection, tenant: str, users: Collection[str]) -> None:
    """What these persons' records say no more, and what it alone had."""
    while users:
        found = await db.execute(_GONE.encode(), {"tenant": tenant, "users": list(users)})
        gone = [Text(*row) for row in await found.fetchall()]
        if not gone:
            return
        await _remove(db, tenant, gone)


async def _remove(db: Connection, tenant: str, gone: Sequence[Text]) -> None:
    out = defaultdict[Term, set[int]](set)
    for text in gone:
        for term in text.all:
            out[text.kind, term, text.number // BLOCK].add(text.number % BLOCK)
    among = "unnest(%s::text[], %s::text[], %s::bigint[]) AS k (kind, term, block)"
    found = await db.execute(
        f"SELECT kind, term, block, numbers FROM {among} JOIN chat_chat.postings USING (kind, term, block)"
        " WHERE tenant = %s".encode(),
        [*_columns(out), tenant],
    )
    left: dict[Term, list[int]] = {}
    for kind, term, block, numbers in await found.fetchall():
        left[kind, term, block] = [one for one in unpacked(numbers) if one not in out[kind, term, block]]
    kept = [key for key, numbers in left.items() if numbers]
    await db.execute(
        "UPDATE chat_chat.postings AS p SET numbers = k.numbers FROM"
        " unnest(%s::text[], %s::text[], %s::bigint[], %s::bytea[]) AS k (kind, term, block, numbers)"
        " WHERE p.tenant = %s AND p.kind = k.kind AND p.term = k.term AND p.block = k.block",
        [*_columns(kept), [packed(left[key]) for key in kept], tenant],
    )
    await db.execute(
        f"DELETE FROM chat_chat.postings AS p USING {among}"
        " WHERE p.tenant = %s AND p.kind = k.kind AND p.term = k.term AND p.block = k.block".encode(),
        [*_columns([key for key, numbers in left.items() if not numbers]), tenant],
    )
    await db.execute(
        "DELETE FROM chat_chat.texts AS t USING unnest(%s::text[], %s::bigint[]) AS k (kind, number)"
        " WHERE t.tenant = %s AND t.kind = k.kind AND t.number = k.number",
        [[text.kind for text in gone], [text.number for text in gone], tenant],
    )


def _columns(keys: Iterable[Term]) -> list[list[str] | list[int]]:
    told = list(keys)
    return [[kind for kind, _, _ in told], [term for _, term, _ in told], [block for *_, block in told]]


def packed(numbers: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(numbers)}H", *numbers)


def unpacked(raw: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(raw) // 2}H", raw)
