"""A person's long-term file as plain JSON values: parsing, merging, and saving what a broken one still holds. Pure.

Work on disk is done with plain values, not models, so that whatever a newer version wrote passes through untouched.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from memory import facts
from memory.episodes import Episode
from memory.facts import Fact, attributes, settled, without_keys
from memory.long_term import events
from memory.long_term.event import LOOSE, STRICT, Event, written
from memory.long_term.frozen import frozen, thawed
from memory.models import SCHEMA_VERSION, Changes, LongTermMemory
from memory.person import Person
from memory.procedures import Procedure
from memory.retention import Retention, keep
from memory.surrogates import without_surrogates
from processors.models import MemoryEvent, iso

log = logging.getLogger(__name__)

Document = dict[str, Any]

RECORDS: dict[str, type[BaseModel]] = {"facts": Fact, "episodes": Episode, "procedures": Procedure}
_NAMED = (("events", "event_id"), *((name, "id") for name in RECORDS))
MAX_EPISODES = 200  # of a person, the newest

M = TypeVar("M", bound=BaseModel)

_when = attrgetter("timestamp")
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class Understood(list[Any]):
    """Records as they stand in a file, and `models`, what all of them are: asked once."""

    __slots__ = ("models",)

    def __init__(self, records: Iterable[Any], models: Sequence[BaseModel]) -> None:
        super().__init__(records)
        self.models = models


def empty(tenant: str, user: str) -> Document:
    return {"tenant_id": tenant, "user_id": user, "events": [], "attributes": {}, "history_summary": ""}


def parse(raw: bytes) -> Document:
    """Raises ValueError for what is not JSON or not of a long-term file's shape."""
    return checked(orjson.loads(raw))


def checked(document: Any) -> Document:
    """It, if it has a long-term file's shape. Raises ValueError."""
    shapes = (("events", list), ("attributes", dict), ("history_summary", str))
    if not isinstance(document, dict) or any(not isinstance(document.get(key, of()), of) for key, of in shapes):
        raise ValueError("not of a long-term file's shape")
    if not named(document):
        raise ValueError("its records can't be told apart")
    return document


def named(document: Document) -> bool:
    """Whether the records stand in lists, each with a plain id or none."""
    for name, key in _NAMED:
        if name in document:
            records = document[name]
            if not isinstance(records, list):
                return False
            for record in records:
                if isinstance(record, dict) and isinstance(record.get(key), (list, dict)):
                    return False
    return True


def dump(value: Any, *, readable: bool = False) -> bytes:
    """JSON of anything that came through an API: what JSON can't hold is written as text."""
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2 if readable else None)
    except TypeError:  # a lone surrogate, an integer over 64 bits, a value of another kind
        told = json.dumps(without_surrogates(value), ensure_ascii=False, default=str)
        clean = LOOSE.decode(told)  # what is no number is nothing, as orjson writes it
        return json.dumps(clean, ensure_ascii=False, indent=2 if readable else None).encode()


def dump_once_read(value: Any) -> bytes:
    """What `dump` would give of it once it was written and read; nearly always the same bytes as before."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return dump(orjson.loads(dump(value)))


def merge(document: Document, lines: Iterable[Document], now: datetime) -> Document:
    """The document after the journal's lines, in order. Merging the same lines twice changes nothing: events are known
    by `event_id`, facts and the like by `id`, the rest is replaced. So a crash between writing the file and dropping
    its journal does no harm. What stands only among the attributes becomes a fact, known since `now`."""
    merged = {**document, "events": list(document.get("events", ()))}
    known = {event.get("event_id") for event in merged["events"] if isinstance(event, dict)}
    _settle(merged, document.get("attributes", {}), now)
    behind = False  # the attributes, the facts
    for line in lines:
        for event in line.get("events", ()):
            if event.get("event_id") is None or event["event_id"] not in known:
                merged["events"].append(event)
                known.add(event.get("event_id"))
        for name in RECORDS:
            if name in line:
                merged[name] = _upserted(merged.get(name, ()), line[name])
        if "facts" in line:
            behind = True
        if "attributes" in line:
            if behind:
                merged["attributes"], behind = attributes(_models(Fact, merged["facts"])), False
            _settle(merged, with_attributes(merged["attributes"], line["attributes"]), now)
        for name in ("history_summary", "person"):
            if name in line:
                merged[name] = line[name]
    if behind:
        merged["attributes"] = attributes(_models(Fact, merged["facts"]))
    merged.setdefault("schema_version", SCHEMA_VERSION)
    return merged


def with_changes(line: Document, changes: Changes) -> Document:
    """The journal's line with these changes in it."""
    out = dict(line)
    if changes.events:
        out["events"] = [*out.get("events", ()), *map(plain, changes.events)]
    for name in RECORDS:
        if records := getattr(changes, name):
            out[name] = [plain(record) for record in records]
    if changes.person is not None:
        out["person"] = plain(changes.person)
    if changes.history_summary is not None:
        out["history_summary"] = changes.history_summary
    return out


def _settle(document: Document, view: dict[str, Any], now: datetime) -> None:
    """In place: the facts say everything that the attributes say, and the attributes are the facts by key."""
    raw = document.get("facts", [])
    facts = _models(Fact, raw)
    after = settled(facts, view, now, str(document.get("user_id", "")))
    if after != facts:
        document["facts"] = _upserted(raw, [plain(fact) for fact in after])
    elif len(facts) == len(raw):
        document["facts"] = Understood(raw, facts)
    document["attributes"] = attributes(after)


def _upserted(known: Iterable[Any], new: Iterable[Document]) -> list[Any]:
    """Records with those of the line in the place of their namesakes, or at the end."""
    out = list(known)
    places = {one.get("id"): at for at, one in enumerate(out) if isinstance(one, dict) and one.get("id")}
    for one in new:
        if one.get("id") in places:
            out[places[one["id"]]] = one
        else:
            places[one.get("id")] = len(out)
            out.append(one)
    return out


def with_attributes(known: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """New values replace old ones, but a list gains what it lacks: a second allergy does not end the first."""
    merged = dict(known)
    for name, value in new.items():
        old = merged.get(name)
        if isinstance(old, list) and isinstance(value, list):
            value = [*old, *(item for item in value if item not in old)]
        merged[name] = value
    return merged


def trim(document: Document, now: datetime, rules: Retention) -> int:
    """Applies retention in place; the number of events removed. What has no readable time counts as oldest."""
    before = len(document["events"])
    document["events"] = keep(document["events"], when, now, rules)
    if document.get("episodes"):
        told = Retention(MAX_EPISODES, rules.days)
        document["episodes"] = keep(document["episodes"], ended, now, told)
    return before - len(document["events"])


def oldest(document: Document) -> datetime | None:
    """Of what retention is about, also of what this version can't understand; None: there is nothing."""
    told = document.get("episodes") or ()
    return min([*map(when, document["events"]), *map(ended, told)], default=None)


def view(document: Document, tenant: str, user: str) -> LongTermMemory:
    """The document as a value. An event that this version can't understand stays in the file and is left out here."""
    whole = {**document, "tenant_id": tenant, "user_id": user}
    if type(known := whole.get("facts")) is Understood:
        whole["facts"] = known.models
    try:
        memory = LongTermMemory.model_validate(whole)
    except ValidationError:
        whole["events"] = [event for event in whole.get("events", ()) if _is(MemoryEvent, event)]
        left_out = len(document.get("events", ())) - len(whole["events"])
        for name, model in RECORDS.items():
            whole[name] = [one for one in whole.get(name, ()) if _is(model, one)]
            left_out += len(document.get(name, ())) - len(whole[name])
        log.warning("%d records of a long-term file are not understood and left out of what is read", left_out)
        whole.pop("schema_version", None)
        if not _is(Person, whole.get("person")):
            whole.pop("person", None)
        memory = LongTermMemory.model_validate(whole)
    for event in memory.events:
        _freeze(event)
    for record in (*memory.facts, *memory.episodes):
        _freeze_record(record)
    return memory


def told_apart(
    document: Document, before: Sequence[Event], tenant: str, user: str, now: datetime, rules: Retention
) -> LongTermMemory:
    """What `view` of the document gives once retention is applied, with the events unread where that can be; `before`
    are those that go before its own."""
    told = _longer(before, document["events"], now, rules)
    rest = {**document, "events": []}
    if told is None:
        known = {one.event_id for one in before if one.event_id is not None}
        new = [raw for raw in document["events"] if not (isinstance(raw, dict) and raw.get("event_id") in known)]
        rest["events"] = [*map(_as_plain, before), *new]
    trim(rest, now, rules)
    memory = view(rest, tenant, user)
    if told is None:
        return memory
    return events.with_events(memory, told)


def extend(memory: LongTermMemory, lines: Sequence[Document], now: datetime, rules: Retention) -> LongTermMemory:
    """What `view` of the merged document would give, at the cost of the new lines alone."""
    told = events.told(memory)
    if told is not None:
        told = _longer(told, [raw for line in lines for raw in line.get("events", ())], now, rules)
    update = _updated(memory, lines, now)
    if told is not None:
        return events.with_events(memory, told, update)
    update["events"] = _extended(memory.events, lines, now, rules)
    return events.copied(memory, update)


def grown(memory: LongTermMemory, raw: bytes, now: datetime, rules: Retention) -> LongTermMemory:
    """`extend` by one line as it will be written; its events are read as they stand there."""
    told = events.told(memory)
    found = events.of_line(raw) if told is not None else None
    if told is None or found is None:
        return extend(memory, [orjson.loads(raw)], now, rules)
    line, new = found
    return events.with_events(memory, events.longer(told, new, now, rules), _updated(memory, [line], now))


def grown_by_one(
    memory: LongTermMemory, line: Document, changes: Changes, now: datetime, rules: Retention
) -> tuple[bytes, LongTermMemory] | None:
    """The line with these changes, written, and what `grown` makes of it, which is not read for it: where they are an
    event and what it makes of the facts and the summary, as each turn's. None: they are more than that."""
    known = events.told(memory)
    if known is None or len(changes.events) != 1:
        return None
    if changes.episodes or changes.procedures or changes.person is not None:
        return None
    if (found := written(changes.events[0])) is None:
        return None
    fields, event = found
    rest: Document = {"facts": [plain(fact) for fact in changes.facts]} if changes.facts else {}
    if changes.history_summary is not None:
        rest["history_summary"] = changes.history_summary
    try:
        raw = orjson.dumps({**line, "events": [fields], **rest})
        update = _updated(memory, [orjson.loads(orjson.dumps(rest))], now) if changes.facts else rest
    except TypeError:  # a lone surrogate
        return None
    return raw, events.with_events(memory, events.longer(known, [event], now, rules), update)


def _updated(memory: LongTermMemory, lines: Sequence[Document], now: datetime) -> dict[str, Any]:
    """What lines make of all fields but the events."""
    update: dict[str, Any] = {}
    for line in lines:
        for name, model in RECORDS.items():
            if name in line:
                new = {one.id: _freeze_record(one) for one in _models(model, line[name])}  # type: ignore[attr-defined]
                update[name] = list(({one.id: one for one in update.get(name, getattr(memory, name))} | new).values())
        if "attributes" in line:
            facts = update.get("facts", memory.facts)
            update["facts"] = settled(
                facts, with_attributes(attributes(facts), line["attributes"]), now, memory.user_id
            )
        if "history_summary" in line:
            update["history_summary"] = line["history_summary"]
        if "person" in line and _is(Person, line["person"]):
            update["person"] = Person.model_validate(line["person"])
    if "facts" in update:
        update["attributes"] = attributes(update["facts"])
    return update


def _longer(known: Sequence[Event], raw: Sequence[Any], now: datetime, rules: Retention) -> Sequence[Event] | None:
    """With what the lines of a journal add, and without what retention takes; None where that takes a closer look."""
    # Copied: events hold on to what they were read from, and orjson's bytes to all that was set aside for them, eight
    # kilobytes for one event.
    new = events.read(bytes(memoryview(dump(raw)))) if raw else []
    return None if new is None else events.longer(known, new, now, rules)


def _as_plain(event: Event) -> Document:
    return plain(event.whole())


def _extended(
    known: Sequence[MemoryEvent], lines: Sequence[Document], now: datetime, rules: Retention
) -> list[MemoryEvent]:
    ids = {event.event_id for event in known}
    out = list(known)
    for line in lines:
        for raw in line.get("events", ()):
            event = _model(MemoryEvent, raw)
            if event is not None and (raw.get("event_id") is None or raw["event_id"] not in ids):
                ids.add(raw.get("event_id"))
                out.append(_freeze(event))
    return keep(out, _when, now, rules)


def rewritten(document: Document, before: LongTermMemory, after: LongTermMemory, now: datetime) -> Document:
    """The document that `before` was read from, as `after` wants it. Events that this version can't understand, or that
    have no id, stay as they are."""
    known = {event.event_id: event for event in before.events if event.event_id}
    wanted = {event.event_id: event for event in after.events if event.event_id}
    left: list[Any] = []
    for raw in document.get("events", ()):
        name = raw.get("event_id") if isinstance(raw, dict) else None
        if name not in known:
            left.append(raw)
        elif name in wanted:
            left.append(raw if wanted[name] == known[name] else plain(wanted[name]))
    left += [plain(event) for name, event in wanted.items() if name not in known]
    left.sort(key=when)
    out = {**document, "events": left, "history_summary": after.history_summary}
    facts = after.facts
    if after.attributes != before.attributes and facts == before.facts:
        facts = without_keys(facts, after.attributes, now, after.user_id)
    out["attributes"] = attributes(facts)
    for name, model in RECORDS.items():
        strange = [raw for raw in document.get(name, ()) if not _is(model, raw)]
        records = facts if name == "facts" else getattr(after, name)
        if strange or records or name in document:
            out[name] = [*strange, *map(plain, records)]
    if after.person is not None:
        out["person"] = plain(after.person)
    return out


def plain(record: BaseModel) -> Document:
    found: Document | None = None
    if isinstance(record, MemoryEvent):
        found = _plain_event(record)
    elif isinstance(record, Fact):
        found = record.plain()
    return found if found is not None else record.model_dump(mode="json", exclude_none=True)


def _plain_event(event: MemoryEvent) -> Document | None:
    """As pydantic would, at a fraction of it: a turn saves one. None where the payload holds more than JSON does."""
    try:
        orjson.dumps(event.payload, option=STRICT)
    except TypeError:
        return None
    out: Document = {
        "event_type": str(event.event_type),
        "payload": event.payload,
        "importance_score": event.importance_score,
        "timestamp": iso(event.timestamp),
    }
    if event.event_id is not None:
        out["event_id"] = event.event_id
    return out


def copy(memory: LongTermMemory) -> LongTermMemory:
    """A copy to give away: whoever changes it changes nothing here. The events are the same, but can't be changed."""
    strange, known = memory.__pydantic_extra__, memory.__dict__
    fields = {"attributes": thawed(known["attributes"])}
    for name in RECORDS:
        fields[name] = list(known[name])
    if events.told(memory) is None:
        fields["events"] = list(memory.events)
    return events.copied(memory, fields, thawed(strange) if strange else None)


def salvage(raw: bytes, tenant: str, user: str) -> Document:
    """What can still be read of a broken file: every whole event, whole pairs of the attributes, the summary."""
    text = raw.decode("utf-8", "replace")
    document = empty(tenant, user)
    if found := re.search(r'(?<!\\)"events"\s*:\s*\[', text):
        document["events"] = list(_objects(text, found.end(), MemoryEvent))
    for name, model in RECORDS.items():
        if found := re.search(rf'(?<!\\)"{name}"\s*:\s*\[', text):
            document[name] = list(_objects(text, found.end(), model))
    if found := re.search(r'(?<!\\)"attributes"\s*:\s*\{', text):
        document["attributes"] = dict(_pairs(text, found.end()))
    if found := re.search(r'(?<!\\)"history_summary"\s*:\s*(?=")', text):
        summary, _ = _value(text, found.end())
        document["history_summary"] = summary if isinstance(summary, str) else ""
    return document


def _objects(text: str, at: int, model: type[BaseModel]) -> Iterable[Document]:
    while (at := text.find("{", at)) >= 0:
        value, end = _value(text, at)
        if isinstance(value, dict) and _is(model, value):
            yield value
        at = end if value is not None else at + 1


def _pairs(text: str, at: int) -> Iterable[tuple[str, Any]]:
    pair = re.compile(r'[\s,]*(?=")')
    colon = re.compile(r"\s*:\s*")
    while start := pair.match(text, at):
        name, end = _value(text, start.end())
        middle = colon.match(text, end) if name is not None else None
        if middle is None:
            return
        value, at = _value(text, middle.end())
        if at == middle.end():
            return
        yield name, value


def _value(text: str, at: int) -> tuple[Any, int]:
    """The JSON value that begins there and where it ends; `at` itself when there is none."""
    try:
        value, end = LOOSE.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None, at
    return value, end


def _freeze(event: MemoryEvent) -> MemoryEvent:
    event.__dict__["payload"] = frozen(event.payload)  # past the model's own guard: it is nobody else's yet
    return event


def _freeze_record(record: M) -> M:
    for name in ("value", "trigger", "conversation", "actions"):
        if isinstance(record.__dict__.get(name), dict | list):
            record.__dict__[name] = frozen(record.__dict__[name])
    return record


def _models(model: type[M], raw: Iterable[Any]) -> list[M]:
    return [one for one in (_model(model, value) for value in raw) if one is not None]


def _is(model: type[BaseModel], value: Any) -> bool:
    return _model(model, value) is not None


def _model(model: type[M], value: Any) -> M | None:
    """None: it is none."""
    if model is Fact and value.__class__ is dict and (fact := facts.read(value)) is not None:
        return fact  # type: ignore[return-value]
    try:
        return model.model_validate(value)
    except ValidationError:
        return None


def ended(episode: Any) -> datetime:
    return when({"timestamp": episode.get("ended_at")} if isinstance(episode, dict) else None)


def when(event: Any) -> datetime:
    try:
        moment = datetime.fromisoformat(event["timestamp"])
    except (KeyError, TypeError, ValueError):
        return _LONG_AGO
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
