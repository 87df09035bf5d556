"""Records of a person as rows, and rows as the document that the JSON files would hold: pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import orjson
from pydantic import BaseModel, ValidationError

from memory import decay, keys
from memory.episodes import Episode
from memory.facts import Fact
from memory.index import rows, schema
from memory.listing import Kind
from memory.long_term import document
from memory.long_term.document import Document
from memory.models import LongTermMemory
from memory.procedures import Procedure
from memory.surrogates import without_surrogates
from processors.models import MemoryEvent

KINDS: tuple[Kind, ...] = ("events", "facts", "episodes", "procedures")
MODELS: dict[Kind, type[BaseModel]] = {
    "events": MemoryEvent, "facts": Fact, "episodes": Episode, "procedures": Procedure,
}  # fmt: skip

_OWN = {*KINDS, "attributes", "tenant_id", "user_id"}  # fields of a document that stand elsewhere


class Row(NamedTuple):
    id: str
    values: tuple[Any, ...]  # in the order of `columns`
    time: int  # of what the lists sort it by


def columns(kind: Kind) -> tuple[str, ...]:
    """Those of a record's own, after `tenant`, `user_id`, `id`, `place` and `rev`."""
    fades = ("fades",) if kind == "facts" else ()
    return ("listed", *fades, *schema.OF[kind].columns, "words", "record")


def row(kind: Kind, raw: Any, spare: str) -> Row:
    """`spare` is the key of a record that has no id."""
    name = key(raw.get("event_id" if kind == "events" else "id") if isinstance(raw, dict) else None) or spare
    record = document.dump(raw).decode()
    try:
        model = MODELS[kind].model_validate(raw)
    except ValidationError:
        return Row(name, (False, *([None] if kind == "facts" else []), *_unknown(kind, raw), "", record), 0)
    listed, fades = True, []
    if isinstance(model, MemoryEvent):
        made = rows.event_row(model, name)
    elif isinstance(model, Fact):
        made, listed = rows.fact_row(model), not model.deleted
        gone = decay.gone_at(model)
        fades = [rows.milliseconds(gone) if gone else None]
    elif isinstance(model, Episode):
        made = rows.episode_row(model)
    else:
        assert isinstance(model, Procedure)
        made = rows.procedure_row(model)
    values = (clean(one) if isinstance(one, str) else one for one in made.values)
    time = made.values[schema.OF[kind].columns.index(schema.OF[kind].time)]
    return Row(name, (listed, *fades, *values, clean(made.words), record), time if listed else 0)


def _unknown(kind: Kind, raw: Any) -> tuple[Any, ...]:
    """Of what this version can't understand: it is kept as long as others, and stands in no list."""
    if kind == "events":
        return (rows.milliseconds(document.when(raw)), 0, 0.0, "")
    if kind == "episodes":
        return (rows.milliseconds(document.ended(raw)), "", None)
    return (0, 0.0, 0, 0, 0, "", "", "", None) if kind == "facts" else (0, 0, "")


def shown(kind: Kind, raw: Any, name: str) -> bytes:
    """A record as the lists show it."""
    model = MODELS[kind].model_validate(raw)
    if isinstance(model, MemoryEvent):
        return rows.event_row(model, name).record
    if isinstance(model, Fact):
        return rows.fact_row(model).record
    if isinstance(model, Episode):
        return rows.episode_row(model).record
    assert isinstance(model, Procedure)
    return rows.procedure_row(model).record


def user(name: str, named: str | None) -> str:
    """The id behind a key; `named` has it whole where the key was shortened."""
    if named is not None:
        return str(orjson.loads(named))
    return (keys.unescape(name) or name) if name else ""


def spare(raw: Any, version: int, number: int) -> str:
    """For a record without an id: no other has it."""
    digest = hashlib.sha256(document.dump(raw)).hexdigest()[:20]
    return f"e_{digest}_{version}_{number}"


def key(name: Any) -> str | None:
    """A record's id as the column holds it; None: it has none that could be one."""
    return keys.escape(name) if isinstance(name, str) and name else None


def clean(text: str) -> str:
    """What a text column can hold; both what is kept and what is looked for go through here."""
    return str(without_surrogates(text)).replace("\0", "\ufffd")


def rest(whole: Mapping[str, Any]) -> str:
    """What of a document is no record: the person, the summary, fields of a newer version."""
    return document.dump({name: value for name, value in whole.items() if name not in _OWN}).decode()


class Whole(NamedTuple):
    """A person as the rows have it. `names` are the rows' ids, in the order of the document's records."""

    document: Document
    names: dict[Kind, list[str]]


def whole(tenant: str, user: str, rest: str, found: Iterable[tuple[str, str, str]], now: datetime) -> Whole:
    """`found`: kind, id, record of each row, in the order of their places."""
    records: dict[Kind, list[Any]] = {kind: [] for kind in KINDS}
    names: dict[Kind, list[str]] = {kind: [] for kind in KINDS}
    by_name: dict[str, Kind] = {kind: kind for kind in KINDS}
    for kind, name, record in found:
        records[by_name[kind]].append(orjson.loads(record))
        names[by_name[kind]].append(name)
    made = {**document.empty(tenant, user), **orjson.loads(rest), **records}
    return Whole(document.merge(made, (), now), names)


def person_values(memory: LongTermMemory, *, whole: bool = False) -> tuple[int, str]:
    """When the person was on record last, with `whole` also by events and facts, and the words they are found by."""
    times = rows.visits(memory)
    if whole:
        times += [
            *(one.timestamp for one in memory.events),
            *(one.created_at for one in memory.facts if not one.deleted),
        ]
    return max(map(rows.milliseconds, times), default=0), clean(rows.user_words(memory))


def changed(before: Whole, after: Document, version: int) -> tuple[dict[Kind, list[Row]], dict[Kind, list[str]]]:
    """The rows to be put, and the ids of those that go, of a person whose document is another now."""
    put: dict[Kind, list[Row]] = {}
    gone: dict[Kind, list[str]] = {}
    for kind in KINDS:
        raws, names = before.document.get(kind, ()), before.names[kind]
        known = {id(raw): name for raw, name in zip(raws, names, strict=True)}  # what was left alone is the same object
        was = dict(zip(names, raws, strict=True))
        fresh = [
            row(kind, raw, spare(raw, version, number))
            for number, raw in enumerate(after.get(kind, ()))
            if id(raw) not in known
        ]
        put[kind] = [one for one in fresh if one.id not in was or document.dump(was[one.id]).decode() != one.values[-1]]
        left = {known[id(raw)] for raw in after.get(kind, ()) if id(raw) in known} | {one.id for one in fresh}
        gone[kind] = [name for name in names if name not in left]
    return put, gone
