"""Whole turns: the product beside the minimal bots, with empty and full histories, an instant and a slow model."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks import table
from benchmarks.house import House, seed
from benchmarks.load import Door, answered, answered_at
from benchmarks.processes import cpu_seconds

RATE = 50.0  # messages a second at which CPU and times are taken: every bot keeps up with it
AT_ONCE = {0.0: 32, 0.3: 128}  # customers waiting at any time while the highest rate is sought, by the model's seconds


@dataclass(frozen=True, slots=True)
class Contestant:
    """A bot, the processes it consists of, and the minimal bot it is held against (None for those)."""

    name: str
    door: Door
    processes: Sequence[str]
    against: str | None = None


async def compare(house: House, contestants: Sequence[Contestant], seconds: float) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for full in (False, True):
        for model_seconds in AT_ONCE:
            house.standin.model_seconds = model_seconds
            for contestant in contestants:
                if full:
                    await seed(house)
                rows.append(await _one(house, contestant, seconds, full, model_seconds))
                print(table.turn(rows[-1]), file=sys.stderr, flush=True)
    house.standin.model_seconds = 0.0
    for row in rows:
        if row["against"]:
            other = next(r for r in rows if r["bot"] == row["against"] and (r["history"], r["model_ms"]) == _case(row))
            row["cpu_ratio"] = row["cpu_ms"] / other["cpu_ms"]
            row["rate_ratio"] = row["sustained"] / other["sustained"] if other["sustained"] else None
    return rows


def _case(row: dict[str, Any]) -> tuple[int, float]:
    return row["history"], row["model_ms"]


async def _one(
    house: House, contestant: Contestant, seconds: float, full: bool, model_seconds: float
) -> dict[str, Any]:
    standin, door = house.standin, contestant.door
    pids = {name: house.processes[name].pid for name in contestant.processes} | {"redis": house.redis_pid}
    await answered_at(standin, door, RATE, 0.5, full=full)
    before = {name: cpu_seconds(pid) for name, pid in pids.items()}
    asked = standin.model_calls
    steady = await answered_at(standin, door, RATE, seconds, full=full)
    spent = {name: (cpu_seconds(pid) - before[name]) * 1000 / steady.sent for name, pid in pids.items()}
    calls = (standin.model_calls - asked) / steady.sent
    if full:  # no longer than they were: the small bots forget what is older
        await seed(house)
    most = await answered(standin, door, seconds, full=full, at_once=AT_ONCE[model_seconds])
    return {
        "bot": contestant.name,
        "against": contestant.against,
        "history": 20 if full else 0,
        "model_ms": model_seconds * 1000,
        "cpu_ms": sum(spent.values()) - spent["redis"],
        "cpu_ms_each": spent,
        "p50_ms": steady.at(0.5) - model_seconds * 1000,
        "p99_ms": steady.at(0.99) - model_seconds * 1000,
        "rate": RATE,
        "sustained": most.rate,
        "lost": steady.lost + most.lost,
        "refused": steady.refused + most.refused,
        "model_calls": calls,
    }
