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
        "facts": _each_once(map(fact_row, facts)),
        "episodes": _each_once(map(episode_row, memory.episodes)),
        "events": _each_once(_events(memory.events)),
        "procedures": _each_once(map(procedure_row, memory.procedures)),
        "users": [_user(memory, facts)] if memory.user_id else [],
    }


def words(text: str) -> str:
    """A text as it is looked for and looked in."""
    return normalise(text.replace("_", " ").replace("-", " "), _LONGEST)


def milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000) if moment != _LONG_AGO else 0


def _each_once(rows: Iterable[Row]) -> list[Row]:
    return list({row.id: row for row in rows}.values())


def fact_row(fact: Fact) -> Row:
    values = (
        milliseconds(fact.created_at), fact.confidence, milliseconds(fact.last_used_at), _RANK[fact.priority],
        int(fact.current), fact.type.value, fact.priority.value, fact.scope.value, fact.agent,
    )  # fmt: skip
    said = shown(fact.value)
    return Row(fact.id, values, words(f"{fact.key} {fact.text} {'' if said == fact.text else said}"), _json(fact))


def episode_row(episode: Episode) -> Row:
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
        yield event_row(event, name)


def event_row(event: MemoryEvent, name: str) -> Row:
    said = event.payload.get("original_message")
    at = milliseconds(event.timestamp)
    values = (at, at // SLOT, event.importance_score, event.event_type.value)
    return Row(name, values, words(said if isinstance(said, str) else ""), _json(event))


def procedure_row(procedure: Procedure) -> Row:
    used = milliseconds(procedure.last_used_at) if procedure.last_used_at else 0
    found_by = words(f"{procedure.name} {shown(list(procedure.trigger.values()))} {procedure.content}")
    return Row(
        procedure.id, (milliseconds(procedure.created_at), used, procedure.type.value), found_by, _json(procedure)
    )


def _user(memory: LongTermMemory, facts: list[Fact]) -> Row:
    times = [*(event.timestamp for event in memory.events), *(fact.created_at for fact in facts)]
    record = user_record(memory, facts, times, events=len(memory.events), episodes=len(memory.episodes))
    seen = max([*times, *visits(memory)], default=None)
    return Row(memory.user_id, (milliseconds(seen) if seen else 0,), user_words(memory), dump(record))


def user_record(
    memory: LongTermMemory, facts: list[Fact], times: Iterable[datetime], *, events: int, episodes: int
) -> dict[str, Any]:
    """Of somebody who was never identified, what their memory shows. `times` are those of events and facts."""
    times = [*times, *visits(memory)]
    known = memory.person or person.new(memory.user_id, _LONG_AGO)
    return {
        **known.model_dump(mode="json", exclude={"parts", "first_seen_at", "last_seen_at"}),
        "display_name": _name(memory),
        "first_seen_at": iso(min(times)) if times else None,
        "last_seen_at": iso(max(times)) if times else None,
        "preferences": memory.attributes,
        "facts": sum(fact.current for fact in facts),
        "episodes": episodes,
        "events": events,
        "merged": sorted(known.parts),
    }


def user_words(memory: LongTermMemory) -> str:
    known = memory.person or person.new(memory.user_id, _LONG_AGO)
    return words(" ".join([memory.user_id, _name(memory) or "", *known.identities.values()]))


def visits(memory: LongTermMemory) -> list[datetime]:
    """The first and the last one that are on record."""
    return [memory.person.first_seen_at, memory.person.last_seen_at] if memory.person else []


def _name(memory: LongTermMemory) -> str | None:
    name = (memory.person.display_name if memory.person else None) or memory.attributes.get("name")
    return name if isinstance(name, str) else None


def _json(record: Fact | MemoryEvent | Procedure) -> bytes:
    return dump(plain(record))
