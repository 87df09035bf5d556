"""How many records of each sort a tenant has, told without counting them: pure. The stores keep the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from memory.index import schema
from memory.index.schema import FACETS
from memory.listing import Counts, Kind, Wanted

Tallies = dict[str, int]  # by facet: a kind and, as a JSON array, its values in the columns of FACETS


def tell(kind: Kind, wanted: Wanted) -> bool:
    """Whether the tallies know how many are wanted."""
    columns = schema.OF[kind].columns
    return not (
        wanted.q
        or wanted.user is not None
        or wanted.users
        or (wanted.agent is not None and "agent" in columns)
        or (wanted.importance is not None and "importance" in columns)
        or (wanted.confidence is not None and "confidence" in columns)
        or wanted.since is not None
        or wanted.until is not None
    )


def of(tallies: Tallies, kind: Kind, wanted: Wanted) -> Counts:
    """Only where they `tell`."""
    total, by = 0, {name: dict[str, int]() for name in schema.OF[kind].counted}
    for values, number in _wanted(tallies, kind, wanted):
        total += number
        for name, counts in by.items():
            counts[values[name]] = counts.get(values[name], 0) + number
    return Counts(total, by)


def everything(tallies: Tallies, kind: Kind) -> int:
    """How many records of the kind there are, of whatever sort."""
    return of(tallies, kind, Wanted(superseded=True)).total


def _wanted(tallies: Tallies, kind: Kind, wanted: Wanted) -> Iterator[tuple[dict[str, Any], int]]:
    among = {
        name: set(allowed)
        for name, allowed in (
            ("type", wanted.types),
            ("priority", wanted.priorities),
            ("scope", wanted.scopes),
            ("outcome", wanted.outcomes),
        )
        if allowed
    }
    for facet, number in tallies.items():
        if not number or not facet.startswith(f"{kind}["):
            continue
        values = dict(zip(FACETS[kind], orjson.loads(facet[len(kind) :]), strict=True))
        if (values.get("current", 1) or wanted.superseded) and all(
            values[name] in allowed for name, allowed in among.items() if name in values
        ):
            yield values, number
