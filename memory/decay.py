"""How what is known fades when nobody needs it: pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime, timedelta

from memory.facts import Fact, Priority

HALF_LIFE = {Priority.HIGH: 365.0, Priority.MEDIUM: 120.0, Priority.LOW: 30.0}  # days
STALE = 0.25  # below: no longer told to the model unasked
GONE = 0.05  # below: pruned
_SURELY_FRESH = timedelta(days=1.9 * min(HALF_LIFE.values()))  # since the last use: no fact is stale by then
_MOST = 4.0  # confirmations slow it down up to this many times


def strength(fact: Fact, now: datetime) -> float:
    """From 1.0, just used, towards 0.0; a pinned fact stays at 1.0."""
    if fact.pinned:
        return 1.0
    days = max(0.0, (now - fact.last_used_at).total_seconds() / 86_400)
    slower = min(_MOST, 1.0 + 0.5 * fact.times_confirmed)
    return float(0.5 ** (days / (HALF_LIFE[fact.priority] * slower)))


def gone_at(fact: Fact) -> datetime | None:
    """From when on it is pruned, if it is not used before; None: never."""
    if fact.pinned:
        return None
    slower = min(_MOST, 1.0 + 0.5 * fact.times_confirmed)
    try:
        return fact.last_used_at + timedelta(days=HALF_LIFE[fact.priority] * slower * math.log2(1 / GONE))
    except OverflowError:  # after the calendar's end
        return None


def fresh(facts: Iterable[Fact], now: datetime) -> list[Fact]:
    """Those that hold and have not faded."""
    lately = now - _SURELY_FRESH
    return [
        fact
        for fact in facts
        if fact.superseded_by is None and (fact.last_used_at > lately or strength(fact, now) >= STALE)
    ]


def faded(facts: Iterable[Fact], now: datetime, threshold: float = GONE) -> list[Fact]:
    """What pruning removes: whatever has faded below the threshold, what was superseded long ago too."""
    return [fact for fact in facts if strength(fact, now) < threshold]
