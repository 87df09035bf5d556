"""Whole turns: the product beside the minimal bots, with empty and full histories, an instant and a slow model.

Each figure is the median of several rounds, in which the bots take turns: what else the machine does meets all.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks import table
from benchmarks.house import House, seed
from benchmarks.load import KNOWN, Door, Outcome, answered, answered_at, median
from benchmarks.processes import cpu_seconds

RATE = 50.0  # messages a second at which CPU and times are taken: every bot keeps up with it
FAST = 100.0  # at which the product's own times are taken as well
# Whether histories are full, the model's seconds, and how many rounds.
CASES = ((False, 0.0, 3), (True, 0.0, 5), (True, 0.3, 3), (True, 3.0, 3))
# Customers waiting at any time while the highest rate is sought, by the model's seconds. With the slowest none is
# sought, and nothing taken at `FAST`: customers would write again before they have their answer.
AT_ONCE = {0.0: 32, 0.3: 128}


@dataclass(frozen=True, slots=True)
class Contestant:
    """A bot, the processes it consists of, and the minimal bot it is held against (None for those)."""

    name: str
    door: Door
    processes: Sequence[str]
    against: str | None = None


@dataclass(slots=True)
class _Found:
    """Of one bot in one case, a figure a round."""

    cpu: list[dict[str, float]] = field(default_factory=list)  # ms a message, by process
    times: list[float] = field(default_factory=list)  # ms, of all rounds
    fast: list[float] = field(default_factory=list)  # the same at `FAST`
    rates: list[float] = field(default_factory=list)
    lost: int = 0
    refused: int = 0
    sent: int = 0
    model_calls: int = 0

    def cpu_ms(self) -> list[float]:
        """Without Redis."""
        return [sum(spent.values()) - spent["redis"] for spent in self.cpu]


async def compare(
    house: House, contestants: Sequence[Contestant], seconds: float, quick: bool = False
) -> list[dict[str, Any]]:
    """`seconds`: of each round's two measurements. `quick`: one round."""
    rows: list[dict[str, Any]] = []
    for full, model_seconds, rounds in CASES:
        house.standin.model_seconds = model_seconds
        found = {one.name: _Found() for one in contestants}
        if full:  # each customer's history is full, and stays so
            await seed(house)
            for one in contestants:
                await answered_at(house.standin, one.door, RATE, KNOWN / RATE, full=True)
        # What a message costs first: the crowd that the highest rate takes is more than a worker keeps in mind.
        for measured in (_steady, _most):
            for _ in range(1 if quick else rounds):
                for one in contestants:
                    await measured(house, one, found[one.name], seconds, full, model_seconds)
        rows += [_row(one, found, full, model_seconds) for one in contestants]
        print("\n".join(map(table.turn, rows[-len(contestants) :])), file=sys.stderr, flush=True)
    house.standin.model_seconds = 0.0
    return rows


async def _steady(
    house: House, contestant: Contestant, found: _Found, seconds: float, full: bool, model_seconds: float
) -> None:
    """CPU and times at constant rates."""
    standin, door = house.standin, contestant.door
    pids = {name: house.processes[name].pid for name in contestant.processes} | {"redis": house.redis_pid}
    await answered_at(standin, door, RATE, 0.5, full=full)
    before = {name: cpu_seconds(pid) for name, pid in pids.items()}
    asked = standin.model_calls
    steady = await answered_at(standin, door, RATE, seconds, full=full)
    found.cpu.append({name: (cpu_seconds(pid) - before[name]) * 1000 / steady.sent for name, pid in pids.items()})
    found.model_calls += standin.model_calls - asked
    found.sent += steady.sent
    found.times += [time - model_seconds * 1000 for time in steady.times]
    _add(found, steady)
    if full and contestant.against and model_seconds in AT_ONCE:
        fast = await answered_at(standin, door, FAST, seconds, full=full)
        found.fast += [time - model_seconds * 1000 for time in fast.times]
        _add(found, fast)


async def _most(
    house: House, contestant: Contestant, found: _Found, seconds: float, full: bool, model_seconds: float
) -> None:
    """The highest rate; none with the slowest model."""
    if model_seconds in AT_ONCE:
        most = await answered(house.standin, contestant.door, seconds, full=full, at_once=AT_ONCE[model_seconds])
        found.rates.append(most.rate)
        _add(found, most)


def _add(found: _Found, outcome: Outcome) -> None:
    found.lost += outcome.lost
    found.refused += outcome.refused


def _row(one: Contestant, all_found: dict[str, _Found], full: bool, model_seconds: float) -> dict[str, Any]:
    found = all_found[one.name]
    times = Outcome(times=sorted(found.times))
    row: dict[str, Any] = {
        "bot": one.name,
        "against": one.against,
        "history": 20 if full else 0,
        "model_ms": model_seconds * 1000,
        "cpu_ms": median(found.cpu_ms()),
        "cpu_ms_each": {name: median([spent[name] for spent in found.cpu]) for name in found.cpu[0]},
        "p50_ms": times.at(0.5),
        "p99_ms": times.at(0.99),
        "rate": RATE,
        "sustained": median(found.rates) if found.rates else None,
        "lost": found.lost,
        "refused": found.refused,
        "model_calls": found.model_calls / found.sent,
    }
    if found.fast:
        fast = Outcome(times=sorted(found.fast))
        row |= {"fast_p50_ms": fast.at(0.5), "fast_p99_ms": fast.at(0.99)}
    if one.against:
        other = all_found[one.against]
        pairs = zip(found.cpu_ms(), other.cpu_ms(), strict=True)
        row["cpu_ratio"] = median([ours / theirs for ours, theirs in pairs])
        if rates := [ours / theirs for ours, theirs in zip(found.rates, other.rates, strict=True) if theirs]:
            row["rate_ratio"] = median(rates)
    return row
