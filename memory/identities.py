"""What two ids that are one person come to, and how they part again: pure."""

from __future__ import annotations

import hashlib
from datetime import datetime

from memory.facts import Fact, Scope, attributes, merge, upserted
from memory.long_term.document import dump, plain
from memory.models import LongTermMemory
from memory.person import new
from memory.wording import key_form
from processors.models import MemoryEvent, iso


def merged(into: LongTermMemory, other: LongTermMemory, now: datetime) -> LongTermMemory:
    """`into` with everything of `other`; done again, it adds what came there since. Of two values of one key the one
    that was said last holds. `parts` keeps what came, so that it can be given back.

    Raises ValueError where both are the same id, or one has been merged already.
    """
    if into.user_id == other.user_id:
        raise ValueError("a person can't be merged with itself")
    here = into.person or new(into.user_id, now)
    there = other.person or new(other.user_id, now)
    if here.merged_into or there.merged_into:
        raise ValueError("one of the two has been merged already: merge with where it went")
    kept = other.model_copy(update={"person": there}).model_dump(mode="json", exclude_none=True, exclude={"attributes"})
    before = part_of(into, other.user_id) if other.user_id in here.parts else None
    counted = before.person if before else None
    known_facts = {fact.id for fact in into.facts}
    known_events = {event.event_id for event in into.events if event.event_id}
    known_episodes = {episode.id for episode in into.episodes}
    facts = list(into.facts)
    for fact in sorted(other.facts, key=lambda one: one.created_at):
        if fact.id not in known_facts:
            facts = upserted(facts, merge(facts, fact).changed if fact.current else [fact])
    came = [named(event) for event in other.events]
    events = [*into.events, *(event for event in came if event.event_id not in known_events)]
    episodes = [*into.episodes, *(episode for episode in other.episodes if episode.id not in known_episodes)]
    person = here.with_(
        identities={**there.identities, **here.identities},
        display_name=here.display_name or there.display_name,
        conversations=here.conversations + there.conversations - (counted.conversations if counted else 0),
        messages=here.messages + there.messages - (counted.messages if counted else 0),
        first_seen_at=min(here.first_seen_at, there.first_seen_at),
        last_seen_at=max(here.last_seen_at, there.last_seen_at),
        parts={**here.parts, other.user_id: {"at": iso(now), "memory": kept}},
    )
    return into.model_copy(
        update={
            "facts": facts,
            "attributes": attributes(facts),
            "events": sorted(events, key=lambda event: event.timestamp),
            "episodes": sorted(episodes, key=lambda episode: episode.ended_at),
            "history_summary": "\n".join(filter(None, [into.history_summary, "" if before else other.history_summary])),
            "person": person,
        }
    )


def named(event: MemoryEvent) -> MemoryEvent:
    """One that was written by hand has no id; elsewhere than in its own file it needs one."""
    if event.event_id:
        return event
    return event.model_copy(update={"event_id": f"by-hand:{hashlib.sha256(dump(plain(event))).hexdigest()[:20]}"})


def moved(other: LongTermMemory, into: str, now: datetime) -> LongTermMemory:
    """What is left of the old id: where it went."""
    person = (other.person or new(other.user_id, now)).with_(merged_into=into, parts={})
    nothing = {"facts": [], "events": [], "episodes": [], "attributes": {}, "history_summary": ""}
    return other.model_copy(update={**nothing, "person": person})


def part_of(into: LongTermMemory, user: str) -> LongTermMemory:
    """What came from that id, as it was. Raises ValueError where nothing came from there."""
    if into.person is None or user not in into.person.parts:
        raise ValueError("this id was not merged into that one")
    part = LongTermMemory.model_validate(into.person.parts[user]["memory"])
    return part.model_copy(update={"attributes": attributes(part.facts)})


def returned(other: LongTermMemory, part: LongTermMemory) -> LongTermMemory:
    """The old id with what it had, and what was said to it since."""
    facts = upserted(part.facts, other.facts)
    known = {event.event_id for event in part.events if event.event_id}
    events = [*part.events, *(event for event in other.events if event.event_id not in known)]
    gone = {one.id for one in part.episodes}
    return other.model_copy(
        update={
            "facts": facts,
            "attributes": attributes(facts),
            "events": events,
            "episodes": [*part.episodes, *(one for one in other.episodes if one.id not in gone)],
            "history_summary": part.history_summary,
            "person": part.person.with_(merged_into=None) if part.person else None,
        }
    )


def unmerged(into: LongTermMemory, user: str) -> LongTermMemory:
    """Without what came from that id; what was said since stays. Raises ValueError where nothing came from there."""
    part, here = part_of(into, user), into.person
    assert here is not None  # part_of has seen it
    was = part.person or new(user, here.first_seen_at)
    gone = {fact.id for fact in part.facts}
    facts = _without(into.facts, gone)
    came = [named(event) for event in part.events]
    events = [event for event in into.events if event not in part.events and event not in came]
    left = {one.id for one in part.episodes}
    person = here.with_(
        identities={kind: own for kind, own in here.identities.items() if was.identities.get(kind) != own},
        display_name=None if here.display_name == was.display_name else here.display_name,
        conversations=max(0, here.conversations - was.conversations),
        messages=max(0, here.messages - was.messages),
        parts={name: one for name, one in here.parts.items() if name != user},
    )
    return into.model_copy(
        update={
            "facts": facts,
            "attributes": attributes(facts),
            "events": events,
            "episodes": [one for one in into.episodes if one.id not in left],
            "history_summary": into.history_summary.removesuffix(part.history_summary).rstrip("\n"),
            "person": person,
        }
    )


def _without(facts: list[Fact], gone: set[str]) -> list[Fact]:
    """What had given way to a fact that leaves holds again."""
    left = [fact for fact in facts if fact.id not in gone]
    holding = {key_form(fact.key) for fact in left if fact.current and fact.scope is Scope.USER}
    return [
        fact.with_(superseded_by=None) if fact.superseded_by in gone and key_form(fact.key) not in holding else fact
        for fact in left
    ]
