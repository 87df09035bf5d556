"""Everything that is kept of a person as one JSON value, and back."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, cast

from memory.archive import Archive
from memory.canonical import all_ids
from memory.keys import ConversationRef
from memory.long_term.document import plain
from memory.models import Changes, LongTermMemory, Message
from memory.protocols import LongTerm, Transcripts

FORMAT = "chat-chat.memory/1"
_TIMES = ("timestamp", "created_at", "started_at", "first_seen_at")


async def exported(
    longterm: LongTerm, transcripts: Transcripts, archive: Archive, tenant: str, user: str
) -> dict[str, Any] | None:
    """Long-term memory, what was said and what pruning put away, under every id of the person; None: nothing is kept.
    What a session holds for itself ends with it and is not in here."""
    ids = await all_ids(longterm, tenant, user)
    memory = await longterm.load(tenant, ids[0])
    said = {one: lines for one in ids if (lines := await transcripts.everything(tenant, one))}
    away = [fact for one in ids for fact in await archive.load(tenant, one)]
    if memory is None and not said and not away:
        return None
    others = {one: plain(kept) for one in ids[1:] if (kept := await longterm.load(tenant, one)) is not None}
    return {
        "format": FORMAT,
        "tenant_id": tenant,
        "user_id": ids[0],
        "memory": plain(memory) if memory else None,
        "merged": others,
        "said": said,
        "archived": [plain(fact) for fact in away],
    }


async def imported(
    longterm: LongTerm, transcripts: Transcripts, archive: Archive, tenant: str, value: Mapping[str, Any], now: datetime
) -> str:
    """Takes it in beside what is known already; the user's id. Doing it again changes nothing.

    Raises ValueError for what is no export.
    """
    if not isinstance(value, Mapping) or value.get("format") != FORMAT or not isinstance(value.get("user_id"), str):
        raise ValueError(f"no export: its format is not {FORMAT}")
    user = str(value["user_id"])
    merged, said = _objects(value, "merged", Mapping), _objects(value, "said", list)
    for one in (line for lines in said.values() for line in lines):
        if not isinstance(one, Mapping) or not isinstance(one.get("message"), str):
            raise ValueError("said: a line holds no message")
    kept = {user: value.get("memory"), **merged}
    if not isinstance(kept[user], Mapping | None):
        raise ValueError("memory: it is no object")
    memories = {
        one: LongTermMemory.model_validate({**raw, "tenant_id": tenant, "user_id": one})
        for one, raw in kept.items()
        if raw
    }
    away = LongTermMemory.model_validate(
        {"tenant_id": tenant, "user_id": user, "facts": value.get("archived") or []}
    ).facts
    for one, memory in memories.items():
        await longterm.change(tenant, one, lambda known, memory=memory: _added(known, memory))  # type: ignore[misc]
        await longterm.compact(tenant, one, now)
    await archive.add(tenant, user, away, now)
    for one, lines in said.items():
        there = {line.get("message_id") for line in await transcripts.everything(tenant, one)}
        for line in lines:
            if line.get("message_id") is None or line["message_id"] not in there:
                rest = {name: item for name, item in line.items() if name not in ("agent", "conversation")}
                ref = ConversationRef(tenant, one, line.get("agent", "default"), line.get("conversation", "main"))
                await transcripts.append(ref, [cast("Message", rest)])
    return user


def people_in(value: Mapping[str, Any]) -> list[str]:
    """Every id in an export; none in what is no export."""
    if not isinstance(value, Mapping):
        return []
    groups = [value.get(name) for name in ("merged", "said")]
    ids = [value.get("user_id"), *(one for group in groups if isinstance(group, Mapping) for one in group)]
    return [one for one in ids if isinstance(one, str) and one]


def first_time_in(value: Any) -> datetime:
    """The earliest time in an export; the end of time where it has none."""
    found = datetime.max.replace(tzinfo=UTC)
    for name, one in value.items() if isinstance(value, Mapping) else enumerate(value):
        if isinstance(one, Mapping | list):
            found = min(found, first_time_in(one))
        elif name in _TIMES and isinstance(one, str):
            with suppress(ValueError):
                at = datetime.fromisoformat(one)
                found = min(found, at if at.tzinfo else at.replace(tzinfo=UTC))
    return found


def _objects(value: Mapping[str, Any], name: str, kind: type) -> dict[str, Any]:
    """What is kept by id under this name. Raises ValueError where it is of another form."""
    found = value.get(name) or {}
    if not isinstance(found, Mapping) or not all(isinstance(one, kind) for one in found.values()):
        raise ValueError(f"{name}: it does not hold what is kept by id")
    return dict(found)


def _added(known: LongTermMemory, memory: LongTermMemory) -> Changes:
    there = {event.event_id for event in known.events if event.event_id}
    loose = [event for event in known.events if not event.event_id]
    return Changes(
        events=[event for event in memory.events if event.event_id not in there and event not in loose],
        facts=memory.facts,
        episodes=memory.episodes,
        person=memory.person,
        history_summary=memory.history_summary,
    )
