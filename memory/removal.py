"""What is left of a memory when some of it was deleted: pure.

Of a deleted fact goes whatever it had taken the place of, too, and what came with a merged id. What stays is a mark
without key, value or text: the messages that told it, so that it is not learned from them again when their session
ends.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime

from memory.amend import SOURCES
from memory.facts import DELETED, Fact, FactType, Priority, Scope, attributes, same
from memory.models import LongTermMemory
from memory.wording import key_form
from processors.models import MemoryEvent


def with_history(facts: Sequence[Fact], ids: Collection[str]) -> set[str]:
    """These and whatever gave way to them."""
    gone = set(ids)
    while more := {one.id for one in facts if one.superseded_by in gone} - gone:
        gone |= more
    return gone & {one.id for one in facts}


def without_facts(memory: LongTermMemory, ids: Collection[str], now: datetime) -> LongTermMemory:
    """The very same where it has none of them."""
    gone = with_history([one for one in memory.facts if not one.deleted], ids)
    return _without(memory, [one for one in memory.facts if one.id in gone], now)


def without_any_facts(memory: LongTermMemory, now: datetime) -> LongTermMemory:
    """Without a single one."""
    return _without(memory, [one for one in memory.facts if not one.deleted], now, everything=True)


def without_episodes(memory: LongTermMemory, ids: Collection[str]) -> LongTermMemory:
    """The very same where it has none of them."""
    left = [one for one in memory.episodes if one.id not in ids]
    after = memory if len(left) == len(memory.episodes) else memory.model_copy(update={"episodes": left})
    return in_parts(after, lambda part: without_episodes(part, ids))


def _without(
    memory: LongTermMemory, gone: Sequence[Fact], now: datetime, *, everything: bool = False
) -> LongTermMemory:
    after = memory
    ids = {one.id for one in gone}
    if gone:
        left = [one for one in memory.facts if one.id not in ids]
        left += [mark for one in gone if (mark := _mark(one, memory.events, now)) is not None]
        after = memory.model_copy(update={"facts": left, "attributes": attributes(left)})
    values = [(key_form(one.key), one.value) for one in gone]

    def copies(part: LongTermMemory) -> LongTermMemory:
        """Merging confirms what both ids had: then the copy that came along has an id of its own."""
        known = [one for one in part.facts if not one.deleted]
        there = {
            one.id for one in known if any(key_form(one.key) == key and same(one.value, value) for key, value in values)
        }
        there = {one.id for one in known} if everything else with_history(known, ids | there)
        return _without(part, [one for one in known if one.id in there], now, everything=everything)

    return in_parts(after, copies)


def in_parts(memory: LongTermMemory, change: Callable[[LongTermMemory], LongTermMemory]) -> LongTermMemory:
    """With the same done to what came from each id that was merged into this one, and into that one before."""
    person = memory.person
    if person is None or not person.parts:
        return memory
    parts = dict(person.parts)
    for user, part in person.parts.items():
        before = LongTermMemory.model_validate(part["memory"])
        after = change(before)
        if after != before:
            kept = after.model_dump(mode="json", exclude_none=True, exclude={"attributes"})
            parts[user] = {**part, "memory": kept}
    return memory if parts == person.parts else memory.model_copy(update={"person": person.with_(parts=parts)})


def _mark(fact: Fact, events: Iterable[MemoryEvent], now: datetime) -> Fact | None:
    """None for what no message told: nothing will tell it again."""
    told = set(fact.sources)
    for event in events:
        if event.event_id in fact.sources:
            told.update(str(one) for one in event.payload.get(SOURCES) or ())
    told |= {one.rpartition("/")[2] for one in told}  # as a session's own lines name it
    if not told or fact.scope not in (Scope.USER, Scope.SESSION):
        return None
    return Fact(
        id=fact.id, key=DELETED, value=None, text="", type=FactType.FACT, priority=Priority.LOW, scope=fact.scope,
        confidence=0.0, created_at=now, last_used_at=now, also_from=sorted(told), superseded_by=DELETED,
    )  # fmt: skip
