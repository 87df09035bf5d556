"""Files written by hand and by other systems say "never" and "for ever" with the calendar's ends: nobody's memory, nor
their neighbours', stops at that."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import orjson
import pytest

from memory import MemoryConfig, MemoryManager, decay, keys
from memory.facts import Fact
from memory.listing import Wanted
from processors.models import MemoryEvent, in_utc

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
TENANT, USER, NEIGHBOUR = "shop", "line:U1", "line:U2"
ENDS = ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00+07:00", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-07:00"]
ZONES = ("Pacific/Kiritimati", "Pacific/Pago_Pago")  # 14 hours before UTC, 11 behind


def event(name: str, at: str) -> dict[str, Any]:
    said = {"original_message": f"walnut cake {name}", "language": "en"}
    return {"event_type": "REQUEST", "payload": said, "importance_score": 0.9, "timestamp": at, "event_id": name}


def fact(name: str, at: str) -> dict[str, Any]:
    return {
        "id": name,
        "key": name,
        "text": f"likes walnut {name}",
        "value": name,
        "created_at": at,
        "last_used_at": at,
    }


def episode(name: str, at: str) -> dict[str, Any]:
    times = {"started_at": at, "ended_at": at, "duration": 1.0, "feedback": {"rating": 5, "at": at}}
    return {"id": name, "session_id": name, "summary": "walnut", **times}


def written(base: Path, user: str, **more: Any) -> None:
    path = Path(keys.longterm_file(base / "longterm", TENANT, user))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(orjson.dumps({"tenant_id": TENANT, "user_id": user, **more}))


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("kind", ["events", "facts", "episodes"])
async def test_who_has_such_a_time_is_read_listed_and_cleaned_up_with_the_others(
    tmp_path: Path, kind: str, end: str
) -> None:
    now, old = NOW.isoformat(), (NOW - timedelta(days=400)).isoformat()
    one = {"events": event, "facts": fact, "episodes": episode}[kind]
    written(tmp_path, USER, **{"events": [event("e1", now)], kind: [one("x1", now), one("x2", end)]})
    written(tmp_path, NEIGHBOUR, events=[event("e2", old), event("e3", now)])
    manager = MemoryManager(MemoryConfig(lm_base_path=tmp_path / "longterm"), clock=lambda: NOW)
    gone = end.startswith("0001")
    assert await manager.search(TENANT, USER, "walnut")
    await manager.refresh_lists(TENANT)
    for zone in ZONES:
        assert sum((await manager.catalog.per_day(TENANT, Wanted(), ZoneInfo(zone))).values()) >= 2
    assert await manager.longterm.expire(TENANT, NOW) == 1 + (gone and kind == "events")
    assert await manager.prune_all(TENANT) == (gone and kind == "facts")
    memory = await manager.longterm.load(TENANT, USER)
    assert memory is not None
    left = [getattr(record, "event_id", None) or getattr(record, "id", None) for record in getattr(memory, kind)]
    assert left == (["x1"] if gone else ["x1", "x2"])
    for record in memory.events:
        assert [record.timestamp.astimezone(ZoneInfo(zone)).tzinfo for zone in ZONES]
    await manager.close()


def test_they_are_told_as_days_that_every_zone_has() -> None:
    days = [in_utc(datetime.fromisoformat(end)).date().isoformat() for end in ENDS]
    assert days == ["0001-01-02", "0001-01-02", "9999-12-30", "9999-12-30"]
    assert in_utc(datetime.fromisoformat("2026-02-28T23:00:00")) == datetime(2026, 2, 28, 23, tzinfo=UTC)
    assert (
        MemoryEvent.model_validate(event("e", ENDS[3])).model_dump(mode="json")["timestamp"] == "9999-12-30T00:00:00Z"
    )
    never = Fact.model_validate(fact("f", ENDS[2]))
    assert (decay.gone_at(never), decay.strength(never, NOW)) == (None, 1.0)
