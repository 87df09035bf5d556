"""How many records of each sort a tenant has, known without counting them: sums over everybody, and what each person
adds to them. Filled by who asks, in the transactions of `filling.py`; what changed since is added while it is read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from memory.index import tallies as shared
from memory.index.schema import FACETS
from memory.index.tallies import Tallies
from memory.listing import Counts, Kind, Wanted
from memory.postgres.database import Connection
from memory.postgres.records import clean

FEW = 50  # persons whose changes are counted by whoever asks
BATCH = 1000  # persons of one step

_OF_THEM = " UNION ALL ".join(
    f"SELECT b.user_id, '{kind}' || f.facet AS facet, f.n FROM behind AS b CROSS JOIN LATERAL ("
    f"SELECT jsonb_build_array({', '.join(columns)})::text AS facet, COUNT(*) AS n FROM chat_chat.{kind}"
    f" WHERE tenant = %(tenant)s AND user_id = b.user_id AND listed GROUP BY 1) AS f"
    for kind, columns in FACETS.items()
    if kind != "users"
)
# The index of those who are behind has few entries; but how few the planner doesn't know, and only what it can answer
# from that index alone, and in its order, it asks there: else it reads all people.
BEHIND = "SELECT user_id FROM chat_chat.people WHERE tenant = %s AND tallied <> version ORDER BY user_id"
_BEHIND = f"{BEHIND.replace('%s', '%(tenant)s')} LIMIT %(most)s"
_LOCKED = """
SELECT FROM chat_chat.people WHERE tenant = %(tenant)s AND user_id = ANY(%(users)s) ORDER BY user_id
FOR NO KEY UPDATE
"""
_THESE = "SELECT user_id, version FROM chat_chat.people WHERE tenant = %(tenant)s AND user_id = ANY(%(users)s)"
_CHANGES = f"""
now AS MATERIALIZED ({_OF_THEM} UNION ALL SELECT user_id, 'users[]', 1 FROM behind WHERE user_id <> ''),
was AS (
    SELECT facet, number::bigint AS n FROM behind AS b
    CROSS JOIN LATERAL (SELECT tally FROM chat_chat.taken WHERE tenant = %(tenant)s AND user_id = b.user_id) AS t
    CROSS JOIN LATERAL jsonb_each_text(t.tally) AS one (facet, number)),
change AS (
    SELECT facet, SUM(n)::bigint AS n FROM (SELECT facet, n FROM now UNION ALL SELECT facet, -n FROM was) AS them
    GROUP BY facet HAVING SUM(n) <> 0)
"""
_READ = f"""
WITH behind AS MATERIALIZED ({_BEHIND}), {_CHANGES}
SELECT facet, SUM(n)::bigint FROM (
    SELECT facet, number AS n FROM chat_chat.tallies WHERE tenant = %(tenant)s UNION ALL SELECT facet, n FROM change
) AS them GROUP BY facet
"""
_ADD = """
INSERT INTO chat_chat.tallies SELECT %(tenant)s, facet, n FROM change
ON CONFLICT (tenant, facet) DO UPDATE SET number = tallies.number + EXCLUDED.number
"""
_TAKE = f"""
WITH behind AS MATERIALIZED ({_THESE}), {_CHANGES},
added AS ({_ADD}),
took AS (
    INSERT INTO chat_chat.taken (tenant, user_id, tally)
    SELECT %(tenant)s, b.user_id, coalesce(jsonb_object_agg(facet, n) FILTER (WHERE facet IS NOT NULL), '{{}}')
    FROM behind AS b LEFT JOIN now USING (user_id) GROUP BY b.user_id
    ON CONFLICT (tenant, user_id) DO UPDATE SET tally = EXCLUDED.tally, searched = false)
UPDATE chat_chat.people AS p SET tallied = b.version FROM behind AS b
WHERE p.tenant = %(tenant)s AND p.user_id = b.user_id AND p.user_id = ANY(%(users)s)
"""
_DROP = f"""
WITH gone AS (
    DELETE FROM chat_chat.taken AS t WHERE tenant = %(tenant)s AND user_id = ANY(%(users)s)
    AND NOT EXISTS (SELECT FROM chat_chat.people AS p WHERE p.tenant = t.tenant AND p.user_id = t.user_id)
    RETURNING tally),
change AS (
    SELECT facet, -SUM(number::bigint)::bigint AS n FROM gone, jsonb_each_text(tally) AS one (facet, number)
    GROUP BY facet)
{_ADD}
"""
_NONE = "DELETE FROM chat_chat.tallies WHERE tenant = %s AND number = 0"


async def behind(db: Connection, tenant: str, most: int) -> int:
    """How many persons changed since they were taken; beyond `most` nobody counts on."""
    found = await db.execute(f"SELECT COUNT(*) FROM ({BEHIND} LIMIT %s) AS one", [tenant, most])
    (number,) = await found.fetchone() or (0,)
    return int(number)


async def read(db: Connection, tenant: str) -> Tallies | None:
    """As the rows are at this moment; None where more than a few persons are behind."""
    late = await behind(db, tenant, FEW + 1)
    if late > FEW:
        return None
    if not late:
        return await taken(db, tenant)
    found = await db.execute(_READ.encode(), {"tenant": tenant, "most": FEW})
    return dict(await found.fetchall())


async def taken(db: Connection, tenant: str) -> Tallies:
    """Of everybody as they were taken."""
    found = await db.execute("SELECT facet, number FROM chat_chat.tallies WHERE tenant = %s", [tenant])
    return dict(await found.fetchall())


async def take(db: Connection, tenant: str) -> int:
    """Takes some of those who changed, under the lock of the tenant's catalog, and theirs; how many, BATCH where there
    may be more. Locked before they are read, in the order in which others lock several."""
    found = await db.execute(_BEHIND, {"tenant": tenant, "most": BATCH})
    users = [name for (name,) in await found.fetchall()]
    if users:
        await db.execute(_LOCKED, {"tenant": tenant, "users": users})
        await db.execute(_TAKE.encode(), {"tenant": tenant, "users": users})
        await db.execute(_NONE, [tenant])
    return len(users)


async def drop(db: Connection, tenant: str, users: Collection[str]) -> None:
    """Those of these, by their keys, of whom nothing is kept any more; under the same lock."""
    await db.execute(_DROP.encode(), {"tenant": tenant, "users": list(users)})
    await db.execute(_NONE, [tenant])


def of(tallies: Tallies, kind: Kind, wanted: Wanted) -> Counts:
    """Only where they `tell`. What is wanted as the columns hold it."""
    kept = replace(
        wanted,
        types=tuple(map(clean, wanted.types)),
        priorities=tuple(map(clean, wanted.priorities)),
        scopes=tuple(map(clean, wanted.scopes)),
        outcomes=tuple(map(clean, wanted.outcomes)),
    )
    return shared.of(tallies, kind, kept)
