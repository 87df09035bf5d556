"""What is asked of the lists over a tenant, and what they answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

Kind = Literal["facts", "episodes", "events", "procedures", "users"]

# By what each kind can be sorted, the greatest first; the first one unless another is asked for.
SORTS: dict[Kind, tuple[str, ...]] = {
    "facts": ("created", "confidence", "used", "priority"),
    "episodes": ("ended",),
    "events": ("at", "importance"),
    "procedures": ("created", "used"),
    "users": ("seen",),
}

Place = tuple[float, str, str]  # of a record in its list: what it is sorted by, whose it is, its id


@dataclass(frozen=True, slots=True)
class Wanted:
    """Every condition holds; what is left out lets everything through.

    `q`: what is looked for: by its words (see `memory.recall.terms`), as its letters stand there, in any case, Thai
    also inside a run, and by what it means where there are vectors. `since` (included) and `until` (not) are about
    when a fact was said, an episode ended, an event happened, a procedure came, a user was last seen. `importance`
    and `confidence` are the least. `superseded` shows facts that gave way, too.
    """

    user: str | None = None
    users: tuple[str, ...] = ()  # any of these
    q: str = ""
    types: tuple[str, ...] = ()
    priorities: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    agent: str | None = None
    importance: float | None = None
    confidence: float | None = None
    since: datetime | None = None
    until: datetime | None = None
    superseded: bool = False


@dataclass(frozen=True, slots=True)
class Listed:
    """`records` are JSON objects with `user_id`, "" for the tenant's own; `total` is that of all pages; `last` is the
    place of the last one, None where nothing follows; `order` is the `sort` to ask for the next page with."""

    records: list[dict[str, Any]]
    total: int
    last: Place | None
    order: str = ""


@dataclass(frozen=True, slots=True)
class Counts:
    total: int
    by: dict[str, dict[str, int]] = field(default_factory=dict)  # by `type`, by `priority` and so on
