"""What the lists ask, as SQL: pure. Every value goes in as a parameter, the tenant first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memory import keys
from memory.index import schema
from memory.index.rows import milliseconds
from memory.listing import Kind, Place, Wanted
from memory.postgres.records import clean

Query = tuple[str, list[Any]]
Places = tuple[Sequence[str], Sequence[str]]  # users' keys and ids, in pairs


def page(
    tenant: str, kind: Kind, wanted: Wanted, sort: str | None, limit: int, after: Place | None,
    found: Places | None = None,
) -> Query:  # fmt: skip
    """Rows of (sorted by, user's key, id, record), for users (…, their rest). Raises ValueError for a sort that there
    is not."""
    table = schema.OF[kind]
    name = sort or next(iter(table.sorts))
    if name not in table.sorts:
        raise ValueError(f"sort: {name!r} is none of {', '.join(table.sorts)}")
    by, id_, record = table.sorts[name], id_of(kind), "rest" if kind == "users" else "record"
    where, values = conditions(tenant, kind, wanted, found)
    if after is not None:
        where.append(f"{by} <= %s AND ({by} < %s OR (user_id, {id_}) > (%s, %s))")
        values += [after[0], after[0], clean(after[1]), clean(after[2])]
    sql = (
        f"SELECT {by}, user_id, {id_}, {record} FROM {rows_of(kind, where)} ORDER BY {by} DESC, user_id, {id_} LIMIT %s"
    )
    return sql, [*values, limit]


def counts(tenant: str, kind: Kind, wanted: Wanted, found: Places | None = None) -> Query:
    """Rows of the table's counted columns and how many have these values."""
    where, values = conditions(tenant, kind, wanted, found)
    by = ", ".join(schema.OF[kind].counted)
    if not by:
        return f"SELECT COUNT(*) FROM {rows_of(kind, where)}", values
    return f"SELECT {by}, COUNT(*) FROM {rows_of(kind, where)} GROUP BY {by}", values


def total(tenant: str, kind: Kind, wanted: Wanted, found: Places | None = None) -> Query:
    where, values = conditions(tenant, kind, wanted, found)
    return f"SELECT COUNT(*) FROM {rows_of(kind, where)}", values


def per_slot(tenant: str, wanted: Wanted, found: Places | None = None) -> Query:
    """Rows of (slot, how many events)."""
    where, values = conditions(tenant, "events", wanted, found)
    return f"SELECT slot, COUNT(*) FROM {rows_of('events', where)} GROUP BY slot", values


def last_events(tenant: str, wanted: Wanted) -> Query:
    """Rows of (user's key, id, record), each user's newest."""
    where, values = conditions(tenant, "events", wanted)
    sql = f"SELECT DISTINCT ON (user_id) user_id, id, record FROM {rows_of('events', where)} ORDER BY user_id, at DESC"
    return sql, values


def whose(tenant: str, kind: Kind, record_id: str) -> Query:
    table, column = ("people", "user_id") if kind == "users" else (kind, "id")
    listed = "" if kind == "users" else " AND listed"
    sql = f"SELECT user_id FROM chat_chat.{table} WHERE tenant = %s AND {column} = %s{listed} ORDER BY user_id"
    return sql, [tenant, keys.escape(record_id) if record_id else ""]


def of_users(tenant: str, users: Sequence[str]) -> Query:
    """Rows of (user's key, events, the first, the last, episodes, the facts' records) for each of these keys."""
    mine = "WHERE tenant = %s AND user_id = u AND listed"
    sql = (
        "SELECT u, e.number, e.first, e.last, p.number, f.records FROM unnest(%s::text[]) AS u"
        f", LATERAL (SELECT COUNT(*) AS number, MIN(at) AS first, MAX(at) AS last FROM chat_chat.events {mine}) AS e"
        f", LATERAL (SELECT COUNT(*) AS number FROM chat_chat.episodes {mine}) AS p"
        f", LATERAL (SELECT array_agg(record ORDER BY place) AS records FROM chat_chat.facts {mine}) AS f"
    )
    return sql, [list(users), tenant, tenant, tenant]


def conditions(tenant: str, kind: Kind, wanted: Wanted, found: Places | None = None) -> tuple[list[str], list[Any]]:
    """`found`: those that have what `q` looks for."""
    table = schema.OF[kind]
    where: list[str] = ["tenant = %s"]
    values: list[Any] = [tenant]

    def holds(condition: str, value: Any) -> None:
        where.append(condition)
        values.append(value)

    def among(column: str, allowed: tuple[str, ...]) -> None:
        if allowed and column in table.columns:
            holds(f"{column} = ANY(%s)", [clean(one) for one in allowed])

    where.append("user_id <> ''" if kind == "users" else "listed")
    if "current" in table.columns:
        where.append("current IN (0, 1)" if wanted.superseded else "current = 1")
    if wanted.user is not None:
        holds("user_id = %s", key(wanted.user))
    if wanted.users:
        holds("user_id = ANY(%s)", [key(one) for one in wanted.users])
    among("type", wanted.types)
    among("priority", wanted.priorities)
    among("scope", wanted.scopes)
    among("outcome", wanted.outcomes)
    if wanted.agent is not None and "agent" in table.columns:
        holds("agent = %s", clean(wanted.agent))
    if wanted.importance is not None and "importance" in table.columns:
        holds("importance >= %s", wanted.importance)
    if wanted.confidence is not None and "confidence" in table.columns:
        holds("confidence >= %s", wanted.confidence)
    if wanted.since is not None:
        holds(f"{table.time} >= %s", milliseconds(wanted.since))
    if wanted.until is not None:
        holds(f"{table.time} < %s", milliseconds(wanted.until))
    if wanted.q:
        where.append(f"(user_id, {id_of(kind)}) IN (SELECT * FROM unnest(%s::text[], %s::text[]))")
        values += [list(one) for one in found or ((), ())]
    return where, values


def id_of(kind: Kind) -> str:
    """The column that tells a user's rows apart."""
    return "user_id" if kind == "users" else "id"


def rows_of(kind: Kind, where: list[str]) -> str:
    return f"chat_chat.{'people' if kind == 'users' else kind} WHERE {' AND '.join(where)}"


def key(user: str) -> str:
    return keys.escape(user) if user else ""


def literal(text: str) -> str:
    return "".join(f"\\{sign}" if sign in "%_\\" else sign for sign in clean(text))
