"""What is asked, as SQL: pure. Every value goes in as a parameter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from memory.index import schema
from memory.index.rows import milliseconds
from memory.listing import Kind, Place, Wanted

Query = tuple[str, list[Any]]


def page(kind: Kind, wanted: Wanted, sort: str | None, limit: int, after: Place | None, found: str = "") -> Query:
    """Rows of (sorted by, user, id, record). Raises ValueError for a sort that there is not."""
    table = schema.OF[kind]
    name = sort or next(iter(table.sorts))
    if name not in table.sorts:
        raise ValueError(f"sort: {name!r} is none of {', '.join(table.sorts)}")
    by = table.sorts[name]
    where, values = conditions(kind, wanted, found)
    if after is not None:
        where.append(f"{by} <= ? AND ({by} < ? OR (user, id) > (?, ?))")
        values += [after[0], after[0], after[1], after[2]]
    sql = f"SELECT {by}, user, id, record FROM {kind}{joined(where)} ORDER BY {by} DESC, user, id LIMIT ?"
    return sql, [*values, limit]


def counts(kind: Kind, wanted: Wanted, found: str = "") -> Query:
    """Rows of the table's counted columns and how many have these values."""
    where, values = conditions(kind, wanted, found)
    by = ", ".join(schema.OF[kind].counted)
    if not by:
        return f"SELECT COUNT(*) FROM {kind}{joined(where)}", values
    return f"SELECT {by}, COUNT(*) FROM {kind}{joined(where)} GROUP BY {by}", values


def total(kind: Kind, wanted: Wanted, found: str = "") -> Query:
    where, values = conditions(kind, wanted, found)
    return f"SELECT COUNT(*) FROM {kind}{joined(where)}", values


def per_slot(wanted: Wanted, found: str = "") -> Query:
    """Rows of (slot, how many events). Since the begin of a slot the slots themselves are compared: they stand in
    the index that is counted in."""
    begin = milliseconds(wanted.since) if wanted.since is not None else None
    on_a_slot = begin is not None and begin % schema.SLOT == 0
    where, values = conditions("events", replace(wanted, since=None) if on_a_slot else wanted, found)
    if begin is not None and on_a_slot:
        where.append("slot >= ?")
        values.append(begin // schema.SLOT)
    return f"SELECT slot, COUNT(*) FROM events{joined(where)} GROUP BY slot", values


def last_events(wanted: Wanted) -> Query:
    """Rows of (user, record), each user's newest."""
    where, values = conditions("events", wanted)
    # Of a group whose greatest value is asked for, SQLite gives the other columns of the row that has it.
    sql = f"SELECT user, record, MAX(at) FROM events{joined(where)} GROUP BY user"
    return sql, values


def conditions(kind: Kind, wanted: Wanted, found: str = "") -> tuple[list[str], list[Any]]:
    """`found`: the rows that have what `q` looks for, as JSON."""
    table = schema.OF[kind]
    where: list[str] = []
    values: list[Any] = []

    def among(column: str, allowed: tuple[str, ...]) -> None:
        if allowed and column in table.columns:
            where.append(f"{column} IN ({', '.join('?' * len(allowed))})")
            values.extend(allowed)

    def holds(condition: str, value: Any) -> None:
        where.append(condition)
        values.append(value)

    if "current" in table.columns:
        where.append("current IN (0, 1)" if wanted.superseded else "current = 1")
    if wanted.user is not None:
        holds("user = ?", wanted.user)
    if wanted.users:
        where.append(f"user IN ({', '.join('?' * len(wanted.users))})")
        values.extend(wanted.users)
    among("type", wanted.types)
    among("priority", wanted.priorities)
    among("scope", wanted.scopes)
    among("outcome", wanted.outcomes)
    if wanted.agent is not None and "agent" in table.columns:
        holds("agent = ?", wanted.agent)
    if wanted.importance is not None and "importance" in table.columns:
        holds("importance >= ?", wanted.importance)
    if wanted.confidence is not None and "confidence" in table.columns:
        holds("confidence >= ?", wanted.confidence)
    if wanted.since is not None:
        holds(f"{table.time} >= ?", milliseconds(wanted.since))
    if wanted.until is not None:
        holds(f"{table.time} < ?", milliseconds(wanted.until))
    if wanted.q:
        holds("rowid IN (SELECT value FROM json_each(?))", found or "[]")
    return where, values


def joined(where: list[str]) -> str:
    return f" WHERE {' AND '.join(where)}" if where else ""


def literal(text: str) -> str:
    return "".join(f"\\{sign}" if sign in "%_\\" else sign for sign in text)
