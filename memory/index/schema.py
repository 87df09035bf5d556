"""The index's tables. Another VERSION, and it is made anew."""

from __future__ import annotations

from dataclasses import dataclass

from memory.listing import Kind

VERSION = 3
TERMS = 2  # the form of the terms, for whoever keeps them in tables of their own
SLOT = 15 * 60 * 1000  # milliseconds

# Times are milliseconds since 1970, so that they sort as numbers; `words` is what `q` looks in, `length` how many terms
# they have, `terms` the numbers of what they are found by, in `postings`; `digest` tells whether a record changed. A
# slot is a quarter of an hour (SLOT), the days of all time zones being made of them. Of a person stands when the oldest
# of what retention is about was, how many events there are, and when the first of the facts fades: so that clean-up
# finds for whom something is due. `terms.number` is how many records have it.
TABLES = """
CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE people (
    user TEXT PRIMARY KEY, stamp TEXT NOT NULL, oldest INTEGER, events INTEGER NOT NULL, fades INTEGER
) WITHOUT ROWID;
CREATE INDEX people_oldest ON people (oldest);
CREATE INDEX people_events ON people (events);
CREATE INDEX people_fades ON people (fades);

CREATE TABLE terms (
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, term TEXT NOT NULL, number INTEGER NOT NULL DEFAULT 0,
    UNIQUE (kind, term)
);
CREATE TABLE postings (term INTEGER NOT NULL, row INTEGER NOT NULL, PRIMARY KEY (term, row)) WITHOUT ROWID;

CREATE TABLE facts (
    user TEXT NOT NULL, id TEXT NOT NULL, digest INTEGER NOT NULL,
    created INTEGER NOT NULL, confidence REAL NOT NULL, used INTEGER NOT NULL, priority_rank INTEGER NOT NULL,
    current INTEGER NOT NULL, type TEXT NOT NULL, priority TEXT NOT NULL, scope TEXT NOT NULL, agent TEXT,
    words TEXT NOT NULL, length INTEGER NOT NULL, terms BLOB NOT NULL, record TEXT NOT NULL,
    PRIMARY KEY (user, id)
);
CREATE INDEX facts_id ON facts (id);
CREATE INDEX facts_created ON facts (current, created DESC, user, id, type, priority, scope);
CREATE INDEX facts_confidence ON facts (current, confidence DESC, user, id);
CREATE INDEX facts_counted ON facts (current, type, priority, scope);

CREATE TABLE episodes (
    user TEXT NOT NULL, id TEXT NOT NULL, digest INTEGER NOT NULL,
    ended INTEGER NOT NULL, outcome TEXT NOT NULL, agent TEXT,
    words TEXT NOT NULL, length INTEGER NOT NULL, terms BLOB NOT NULL, record TEXT NOT NULL,
    PRIMARY KEY (user, id)
);
CREATE INDEX episodes_id ON episodes (id);
CREATE INDEX episodes_ended ON episodes (ended DESC, user, id);

CREATE TABLE events (
    user TEXT NOT NULL, id TEXT NOT NULL, digest INTEGER NOT NULL,
    at INTEGER NOT NULL, slot INTEGER NOT NULL, importance REAL NOT NULL, type TEXT NOT NULL,
    words TEXT NOT NULL, length INTEGER NOT NULL, terms BLOB NOT NULL, record TEXT NOT NULL,
    PRIMARY KEY (user, id)
);
CREATE INDEX events_at ON events (at DESC, user, id, type, importance);
CREATE INDEX events_slots ON events (slot, type, importance, user);
CREATE INDEX events_importance ON events (importance DESC, user, id);

CREATE TABLE procedures (
    user TEXT NOT NULL, id TEXT NOT NULL, digest INTEGER NOT NULL,
    created INTEGER NOT NULL, used INTEGER NOT NULL, type TEXT NOT NULL,
    words TEXT NOT NULL, length INTEGER NOT NULL, terms BLOB NOT NULL, record TEXT NOT NULL,
    PRIMARY KEY (user, id)
);
CREATE INDEX procedures_created ON procedures (created DESC, user, id);

CREATE TABLE users (
    user TEXT NOT NULL, id TEXT NOT NULL, digest INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    words TEXT NOT NULL, length INTEGER NOT NULL, terms BLOB NOT NULL, record TEXT NOT NULL,
    PRIMARY KEY (user, id)
);
CREATE INDEX users_seen ON users (seen DESC, user, id);

CREATE TABLE tallies (facet TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID;
"""

# How many records of each sort there are, kept up with each row: see `memory.index.tallies`.
_COUNTED = """
CREATE TRIGGER {kind}_put AFTER INSERT ON {kind} BEGIN
    INSERT INTO tallies VALUES ('{kind}' || json_array({new}), 1) ON CONFLICT (facet) DO UPDATE SET number = number + 1;
END;
CREATE TRIGGER {kind}_gone AFTER DELETE ON {kind} BEGIN
    UPDATE tallies SET number = number - 1 WHERE facet = '{kind}' || json_array({old});
    DELETE FROM tallies WHERE facet = '{kind}' || json_array({old}) AND number = 0;
END;
"""


@dataclass(frozen=True, slots=True)
class Table:
    columns: tuple[str, ...]  # those of its own, between `digest` and `words`
    sorts: dict[str, str]  # by what it can be sorted: the column
    time: str  # what `since` and `until` are about
    counted: tuple[str, ...] = ()
    weight: str = "1.0"  # SQL: what lets the better go first among those that fit a search alike, 0.0-1.0
    fresh: str = ""  # the column that lets the newer go first


OF: dict[Kind, Table] = {
    "facts": Table(
        ("created", "confidence", "used", "priority_rank", "current", "type", "priority", "scope", "agent"),
        {"created": "created", "confidence": "confidence", "used": "used", "priority": "priority_rank"},
        "created",
        ("type", "priority", "scope"),
        weight="confidence",
        fresh="used",
    ),
    "episodes": Table(("ended", "outcome", "agent"), {"ended": "ended"}, "ended", weight="0.8", fresh="ended"),
    "events": Table(
        ("at", "slot", "importance", "type"),
        {"at": "at", "importance": "importance"},
        "at",
        ("type",),
        weight="importance",
        fresh="at",
    ),
    "procedures": Table(
        ("created", "used", "type"), {"created": "created", "used": "used"}, "created", weight="0.9", fresh="created"
    ),
    "users": Table(("seen",), {"seen": "seen"}, "seen", fresh="seen"),
}


# In what the tallies tell records apart.
FACETS: dict[Kind, tuple[str, ...]] = {
    "facts": ("current", "type", "priority", "scope"),
    "episodes": ("outcome",),
    "events": ("type",),
    "procedures": ("type",),
    "users": (),
}

TABLES += "".join(
    _COUNTED.format(
        kind=kind,
        new=", ".join(f"NEW.{one}" for one in columns),
        old=", ".join(f"OLD.{one}" for one in columns),
    )
    for kind, columns in FACETS.items()
)
