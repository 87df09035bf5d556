"""What is asked, as SQL: pure. Every value goes in as a parameter."""

from __future__ import annotations

from typing import Any

from memory.index import schema
from memory.index.rows import milliseconds, words
from memory.listing import Kind, Place, Wanted

Query = tuple[str, list[Any]]


def page(kind: Kind, wanted: Wanted, sort: str | None, limit: int, after: Place | None) -> Query:
    """Rows of (sorted by, user, id, record). Raises ValueError for a sort that there is not."""
    table = schema.OF[kind]
    name = sort or next(iter(table.sorts))
    if name not in table.sorts:
        raise ValueError(f"sort: {name!r} is none of {', '.join(table.sorts)}")
    by = table.sorts[name]
    where, values = conditions(kind, wanted)
    if after is not None:
        where.append(f"{by} <= ? AND ({by} < ? OR (user, id) > (?, ?))")
        values += [after[0], after[0], after[1], after[2]]
    sql = f"SELECT {by}, user, id, record FROM {kind}{_where(where)} ORDER BY {by} DESC, user, id LIMIT ?"
    return sql, [*values, limit]


def counts(kind: Kind, wanted: Wanted) -> Query:
    """Rows of the table's counted columns and how many have these values."""
    where, values = conditions(kind, wanted)
    by = ", ".join(schema.OF[kind].counted)
    if not by:
        return f"SELECT COUNT(*) FROM {kind}{_where(where)}", values
    return f"SELECT {by}, COUNT(*) FROM {kind}{_where(where)} GROUP BY {by}", values


def total(kind: Kind, wanted: Wanted) -> Query:
    where, values = conditions(kind, wanted)
    return f"SELECT COUNT(*) FROM {kind}{_where(where)}", values


def per_slot(wanted: Wanted) -> Query:
    """Rows of (slot, how many events)."""
    where, values = conditions("events", wanted)
    return f"SELECT slot, COUNT(*) FROM events{_where(where)} GROUP BY slot", values


def last_events(wanted: Wanted) -> Query:
    """Rows of (user, record), each user's newest."""
    where, values = conditions("events", wanted)
    # Of a group whose greatest value is asked for, SQLite gives the other columns of the row that has it.
    sql = f"SELECT user, record, MAX(at) FROM events{_where(where)} GROUP BY user"
    return sql, values


def conditions(kind: Kind, wanted: Wanted) -> tuple[list[str], list[Any]]:
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
    parts = words(wanted.q).split()
    if len(parts) == 1:
        holds("instr(words, ?) > 0", parts[0])
    elif parts:
        holds("words LIKE ? ESCAPE '\\'", f"%{'%'.join(map(_literal, parts))}%")
    elif wanted.q:
        where.append("0")  # nothing that can be looked for is found nowhere
    return where, values


def _where(where: list[str]) -> str:
    return f" WHERE {' AND '.join(where)}" if where else ""


def _literal(text: str) -> str:
    return "".join(f"\\{sign}" if sign in "%_\\" else sign for sign in text)
