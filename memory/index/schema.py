"""The index's tables. Another VERSION, and it is made anew."""

from __future__ import annotations

from dataclasses import dataclass

from memory.listing import Kind

VERSION = 2
SLOT = 15 * 60 * 1000  # milliseconds

# Times are milliseconds since 1970, so that they sort as numbers; `words` is what `q` looks in, `terms` the numbers of
# the terms that it has in `postings`; `digest` tells whether a record changed. Indexes that hold `words` are read in
# place of the rows, which are many times as long; a slot is a quarter of an hour (SLOT), the days of every time zone
# being made of them.
TABLES = """
CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE people (user TEXT PRIMARY KEY, stamp TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE terms (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, term TEXT NOT NULL, UNIQUE (kind, term));
CREATE TABLE postings (term INTEGER NOT NULL, row INTEGER NOT NULL, PRIMARY KEY (term, row)) WITHOUT ROWID;

CREATE TABLE facts (
    user TEXT NOT NULL, id TEXT NOT NULL, digest INTEGER NOT NULL,
    created INTEGER NOT NULL, confidence REAL NOT NULL, used INTEGER NOT NULL, priority_rank INTEGER NOT NULL,
    current INTEGER NOT NULL, type TEXT NOT NULL, priority TEXT NOT NULL, scope TEXT NOT NULL, agent TEXT,
    words TEXT NOT NULL, terms BLOB NOT NULL, record TEXT NOT NULL,
    PRIMARY KEY (user, id)
);
CREATE INDEX facts_id ON facts (id);
CREATE INDEX facts_created ON facts (current, created DESC, user, id, type, priority, scope, words);
CREATE INDEX facts_confidence ON facts (current, confidence DESC, user, id);
CREATE INDEX facts_counted ON facts (current, type, priority, scope);

CREATE TABLE episodes (
    user TEXT NOT NULL, id TEXT NOT NULL, digest INTEGER NOT NULL,
    ended INTEGER NOT NULL, outcome TEXT NOT NULL, agent TEXT,
    words TEXT NOT NULL, terms BLOB NOT NULL, record TEXT NOT NULL,
    PRIMARY KEY (user, id)
);
CREATE INDEX episodes_id ON episodes (id);
CREATE INDEX episodes_ended ON episodes (ended DESC, user, id);

CREATE TABLE events (
    user TEXT NOT NULL, id TEXT NOT NULL, digest INTEGER NOT NULL,
    at INTEGER NOT NULL, slot INTEGER NOT NULL, importance REAL NOT NULL, type TEXT NOT NULL,
    words TEXT NOT NULL, terms BLOB NOT NULL, record TEXT NOT NULL,
    PRIMARY KEY (user, id)
);
CREATE INDEX events_at ON events (at DESC, user, id, type, importance, words);
CREATE INDEX events_slots ON events (slot, type, importance, user);
CREATE INDEX events_importance ON events (importance DESC, user, id);

CREATE TABLE procedures (
    user TEXT NOT NULL, id TEXT NOT NULL, digest INTEGER NOT NULL,
    created INTEGER NOT NULL, used INTEGER NOT NULL, type TEXT NOT NULL,
    words TEXT NOT NULL, terms BLOB NOT NULL, record TEXT NOT NULL,
    PRIMARY KEY (user, id)
);
CREATE INDEX procedures_created ON procedures (created DESC, user, id);

CREATE TABLE users (
    user TEXT NOT NULL, id TEXT NOT NULL, digest INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    words TEXT NOT NULL, terms BLOB NOT NULL, record TEXT NOT NULL,
    PRIMARY KEY (user, id)
);
CREATE INDEX users_seen ON users (seen DESC, user, id);
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
