"""What two ids that are one person come to, and how they part again: pure."""

from __future__ import annotations

from datetime import datetime

from memory.facts import Fact, Scope, merge, upserted
from memory.models import LongTermMemory
from memory.person import new
from processors.models import iso


def merged(into: LongTermMemory, other: LongTermMemory, now: datetime) -> tuple[LongTermMemory, LongTermMemory]:
    """Everything of `other` moves to `into`, once; `other` keeps nothing but where it went. Done again, it changes
    nothing. Of two values of one key the one that was said last holds.

    Raises ValueError where both are the same id, or `into` has gone into another itself.
    """
    if into.user_id == other.user_id:
        raise ValueError("a person can't be merged with itself")
    here = into.person or new(into.user_id, now)
    there = other.person or new(other.user_id, now)
    if there.merged_into == into.user_id:
        return into, other
    if here.merged_into or there.merged_into:
        raise ValueError("one of the two has been merged already: merge with where it went")
    parts = {
        **here.parts,
        **there.parts,
        other.user_id: {"memory": other.model_dump(mode="json", exclude_none=True), "at": iso(now)},
    }
    facts = list(into.facts)
    for fact in sorted(other.facts, key=lambda one: one.created_at):
        moved = fact.model_copy(update={"origin": _origin(fact) or other.user_id})
        facts = upserted(facts, merge(facts, moved).changed if fact.current else [moved])
    known = {event.event_id for event in into.events if event.event_id}
    events = [*into.events, *(event for event in other.events if event.event_id not in known)]
    person = here.with_(
        identities={**there.identities, **here.identities},
        display_name=here.display_name or there.display_name,
        conversations=here.conversations + there.conversations,
        messages=here.messages + there.messages,
        first_seen_at=min(here.first_seen_at, there.first_seen_at),
        last_seen_at=max(here.last_seen_at, there.last_seen_at),
        parts=parts,
    )
    summaries = [into.history_summary, other.history_summary]
    after = into.model_copy(
        update={
            "facts": facts,
            "events": sorted(events, key=lambda event: event.timestamp),
            "episodes": [
                *into.episodes,
                *(one.model_copy(update={"origin": one.origin or other.user_id}) for one in other.episodes),
            ],
            "history_summary": "\n".join(filter(None, summaries)),
            "person": person,
        }
    )
    emptied = other.model_copy(
        update={
            "facts": [],
            "events": [],
            "episodes": [],
            "attributes": {},
            "history_summary": "",
            "person": there.with_(merged_into=into.user_id, parts={}),
        }
    )
    return after, emptied


def unmerged(into: LongTermMemory, other: LongTermMemory, now: datetime) -> tuple[LongTermMemory, LongTermMemory]:
    """What came from `other` goes back there as it was, and leaves `into`; what was said since stays where it is.

    Raises ValueError where `other` was not merged into this one.
    """
    here = into.person
    if here is None or other.user_id not in here.parts:
        raise ValueError("this id was not merged into that one")
    before = type(other).model_validate(here.parts[other.user_id]["memory"])
    was = before.person or new(other.user_id, now)
    gone_facts = {fact.id for fact in before.facts}
    gone_events = {event.event_id for event in before.events if event.event_id}
    gone_episodes = {episode.id for episode in before.episodes}
    loose = [event for event in before.events if not event.event_id]
    facts = [fact for fact in into.facts if fact.id not in gone_facts]
    facts = [
        # What had given way to a fact that leaves holds again.
        fact.with_(superseded_by=None) if fact.superseded_by in gone_facts and not _newer(fact, facts) else fact
        for fact in facts
    ]
    person = here.with_(
        identities={kind: own for kind, own in here.identities.items() if was.identities.get(kind) != own},
        conversations=max(0, here.conversations - was.conversations),
        messages=max(0, here.messages - was.messages),
        display_name=None if here.display_name == was.display_name else here.display_name,
        parts={name: part for name, part in here.parts.items() if name != other.user_id and name not in was.parts},
    )
    summary = into.history_summary.removesuffix(before.history_summary).rstrip("\n")
    after = into.model_copy(
        update={
            "facts": facts,
            "events": [e for e in into.events if e.event_id not in gone_events and e not in loose],
            "episodes": [one for one in into.episodes if one.id not in gone_episodes],
            "history_summary": summary,
            "person": person,
        }
    )
    return after, before.model_copy(update={"person": was.with_(merged_into=None)})


def _origin(fact: Fact) -> str | None:
    found = (fact.model_extra or {}).get("origin")
    return found if isinstance(found, str) else None


def _newer(fact: Fact, facts: list[Fact]) -> bool:
    return any(one.current and one.key == fact.key and one.scope is Scope.USER for one in facts)
