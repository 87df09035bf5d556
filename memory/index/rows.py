"""What is known of a person as rows of the index: pure."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from memory import person
from memory.episodes import Episode
from memory.facts import Fact, Priority, shown
from memory.index.schema import SLOT
from memory.listing import Kind
from memory.long_term.document import dump, plain
from memory.models import LongTermMemory
from memory.procedures import Procedure
from processors.models import MemoryEvent, iso
from processors.normalise import normalise

_RANK = {Priority.HIGH: 3, Priority.MEDIUM: 2, Priority.LOW: 1}
_LONGEST = 8000  # characters of a record that are looked in
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class Row(NamedTuple):
    id: str
    values: tuple[Any, ...]  # of the table's own columns, in their order
    words: str
    record: bytes  # JSON

    @property
    def digest(self) -> int:
        raw = hashlib.blake2b(self.record, digest_size=8).digest()
        return int.from_bytes(raw, "big", signed=True)


def of(memory: LongTermMemory) -> dict[Kind, list[Row]]:
    """Ids are unique within each list. What was deleted is in none."""
    facts = [one for one in memory.facts if not one.deleted]
    return {
        "facts": _each_once(map(_fact, facts)),
        "episodes": _each_once(map(_episode, memory.episodes)),
        "events": _each_once(_events(memory.events)),
        "procedures": _each_once(map(_procedure, memory.procedures)),
        "users": [_user(memory, facts)] if memory.user_id else [],
    }


def words(text: str) -> str:
    """A text as it is looked for and looked in."""
    return normalise(text.replace("_", " ").replace("-", " "), _LONGEST)


def milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000) if moment != _LONG_AGO else 0


def _each_once(rows: Iterable[Row]) -> list[Row]:
    return list({row.id: row for row in rows}.values())


def _fact(fact: Fact) -> Row:
    values = (
        milliseconds(fact.created_at), fact.confidence, milliseconds(fact.last_used_at), _RANK[fact.priority],
        int(fact.current), fact.type.value, fact.priority.value, fact.scope.value, fact.agent,
    )  # fmt: skip
    said = shown(fact.value)
    return Row(fact.id, values, words(f"{fact.key} {fact.text} {'' if said == fact.text else said}"), _json(fact))


def _episode(episode: Episode) -> Row:
    """Without the conversation itself, which the long-term file holds."""
    record = plain(episode.model_copy(update={"conversation": [], "actions": []}))
    record |= {"messages": len(episode.conversation), "tool_calls": len(episode.actions)}
    found_by = words(f"{episode.summary} {episode.trigger.get('input', '')} {episode.output}")
    values = (milliseconds(episode.ended_at), episode.outcome, episode.agent)
    return Row(episode.id, values, found_by, dump(record))


def _events(events: Iterable[MemoryEvent]) -> Iterable[Row]:
    unnamed: Counter[str] = Counter()
    for event in events:
        name, raw = event.event_id, _json(event)
        if name is None:  # the same ones are told apart by their number
            digest = hashlib.sha256(raw).hexdigest()[:20]
            unnamed[digest] += 1
            name = f"e_{digest}_{unnamed[digest]}"
        said = event.payload.get("original_message")
        at = milliseconds(event.timestamp)
        values = (at, at // SLOT, event.importance_score, event.event_type.value)
        yield Row(name, values, words(said if isinstance(said, str) else ""), raw)


def _procedure(procedure: Procedure) -> Row:
    used = milliseconds(procedure.last_used_at) if procedure.last_used_at else 0
    found_by = words(f"{procedure.name} {shown(list(procedure.trigger.values()))} {procedure.content}")
    return Row(
        procedure.id, (milliseconds(procedure.created_at), used, procedure.type.value), found_by, _json(procedure)
    )


def _user(memory: LongTermMemory, facts: list[Fact]) -> Row:
    """Of somebody who was never identified, what their memory shows."""
    times = [*(event.timestamp for event in memory.events), *(fact.created_at for fact in facts)]
    who = memory.person
    if who is not None:
        times += [who.first_seen_at, who.last_seen_at]
    seen = max(times, default=None)
    known = who or person.new(memory.user_id, _LONG_AGO)
    name = known.display_name or memory.attributes.get("name")
    record = {
        **known.model_dump(mode="json", exclude={"parts", "first_seen_at", "last_seen_at"}),
        "display_name": name if isinstance(name, str) else None,
        "first_seen_at": iso(min(times)) if times else None,
        "last_seen_at": iso(seen) if seen else None,
        "preferences": memory.attributes,
        "facts": sum(fact.current for fact in facts),
        "episodes": len(memory.episodes),
        "events": len(memory.events),
        "merged": sorted(who.parts) if who else [],
    }
    found_by = words(" ".join([memory.user_id, name if isinstance(name, str) else "", *known.identities.values()]))
    return Row(memory.user_id, (milliseconds(seen) if seen else 0,), found_by, dump(record))


def _json(record: Fact | MemoryEvent | Procedure) -> bytes:
    return dump(plain(record))
