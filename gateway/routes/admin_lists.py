"""What the lists of the admin page show: a tab's filters, read from the address, and a page of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from fastapi import HTTPException
from starlette.datastructures import QueryParams

from config.tenants import Tenant
from gateway.routes.admin_page import picked
from gateway.routes.checkpoints import shown_point
from gateway.routes.filters import following, going
from gateway.routes.lists import cursor_of, place_of
from gateway.routes.memory import page_of
from memory.facts import FactType, Priority, Scope
from memory.keys import InvalidId
from memory.listing import Kind, Wanted
from memory.memory_manager import MemoryManager
from memory.procedures import ProcedureType
from processors.models import Band, EventType, band, floor

A_PAGE = 30
_RECENT = 25  # people whose checkpoints are shown where nobody is named
_NAMESAKES = 50  # people who are meant by one name
_LONGEST = 200  # characters of what is looked for
_OUTCOMES = ("success", "failure", "unknown")
_BANDS = tuple(one.value for one in Band if one is not Band.MINIMAL)

# By which each tab is filtered and sorted.
CHOICES: dict[str, dict[str, tuple[str, ...]]] = {
    "facts": {"type": tuple(FactType), "priority": tuple(Priority), "scope": tuple(Scope)},
    "episodes": {"outcome": _OUTCOMES},
    "procedures": {"type": tuple(ProcedureType)},
    "users": {},
    "checkpoints": {},
    "events": {"type": tuple(EventType), "importance": _BANDS},
}
SORTS: dict[str, tuple[str, ...]] = {
    "facts": ("created", "confidence", "used", "priority"),
    "episodes": ("ended",),
    "procedures": ("created", "used"),
    "users": ("seen",),
    "checkpoints": (),
    "events": ("at", "importance"),
}
OF_A_TIME = ("facts", "episodes", "events", "users")
OF_A_USER = ("facts", "episodes", "events", "checkpoints")


@dataclass(frozen=True, slots=True)
class Asked:
    """A tab's filters as they stand in its fields; what is none of the choices is left out. Without a `sort` what fits
    best comes first, where nothing is looked for the newest."""

    tab: str
    q: str
    user: str
    since: str
    until: str
    sort: str
    superseded: bool
    chosen: dict[str, str]

    @classmethod
    def of(cls, tab: str, query: QueryParams) -> Asked:
        sorts = SORTS[tab]
        return cls(
            tab=tab,
            q=query.get("q", "").strip()[:_LONGEST],
            user=query.get("user", "").strip()[:512] if tab in OF_A_USER else "",
            since=day(query.get("since", "")) if tab in OF_A_TIME else "",
            until=day(query.get("until", "")) if tab in OF_A_TIME else "",
            sort=picked(query, "sort", sorts),
            superseded=tab == "facts" and query.get("superseded") == "1",
            chosen={name: picked(query, name, values) for name, values in CHOICES[tab].items()},
        )

    @property
    def filtered(self) -> int:
        """How many filters are set, beside the words that are looked for."""
        return sum(map(bool, [self.user, self.since, self.until, self.superseded, *self.chosen.values()]))

    def wanted(self, tenant: Tenant) -> Wanted:
        zone = ZoneInfo(tenant.timezone)

        def among(name: str) -> tuple[str, ...]:
            return (self.chosen[name],) if self.chosen.get(name) else ()

        least = self.chosen.get("importance")
        return Wanted(
            q=self.q,
            types=among("type"),
            priorities=among("priority"),
            scopes=among("scope"),
            outcomes=among("outcome"),
            importance=floor(Band(least)) if least else None,
            since=datetime.fromisoformat(self.since).replace(tzinfo=zone) if self.since else None,
            until=(datetime.fromisoformat(self.until) + timedelta(days=1)).replace(tzinfo=zone) if self.until else None,
            superseded=self.superseded,
        )


@dataclass(frozen=True, slots=True)
class Shown:
    items: list[dict[str, Any]]
    next_cursor: str | None
    total: int


async def shown(manager: MemoryManager, tenant: Tenant, asked: Asked, cursor: str, limit: int = A_PAGE) -> Shown:
    """A page of a tab. Each item has `ref`, which names it in forms. Raises MemoryFault, HTTPException 422."""
    users = await _whose(manager, tenant.id, asked.user) if asked.user else ()
    if asked.user and not users:
        return Shown([], None, 0)
    wanted = replace(asked.wanted(tenant), users=users)
    if asked.tab == "facts":
        alone = users[0] if len(users) == 1 else None
        page = await page_of(manager, tenant.id, limit, cursor, alone, asked.sort or None, wanted=wanted)  # type: ignore[arg-type]
        items = [one.model_dump(mode="json") for one in page.items]
        return Shown([_named(one, one["id"]) for one in items], page.next_cursor, page.total)
    if asked.tab == "checkpoints":
        return await _points(manager, tenant.id, asked, users, cursor, limit)
    kind: Kind = asked.tab  # type: ignore[assignment]
    on = going(kind, cursor, asked.sort or None, asked.q)
    listed = await manager.catalog.page(tenant.id, kind, wanted, limit=limit, **on)
    items = [_named(one, str(one.get("event_id") or one.get("id") or one["user_id"])) for one in listed.records]
    for one in items if kind == "events" else ():
        one["band"] = band(one["importance_score"]).value
    return Shown(items, following(listed), listed.total)


async def names(manager: MemoryManager, tenant: str, users: set[str]) -> dict[str, str]:
    """What these are called, as far as that is known."""
    if not users:
        return {}
    found = await manager.catalog.page(tenant, "users", Wanted(users=tuple(sorted(users))), limit=len(users))
    return {one["user_id"]: one["display_name"] for one in found.records if one["display_name"]}


async def everything(manager: MemoryManager, tenant: Tenant, asked: Asked) -> AsyncIterator[dict[str, Any]]:
    """What the filters let through, on all pages."""
    cursor: str | None = ""
    while cursor is not None:
        page = await shown(manager, tenant, asked, cursor, 200)
        for one in page.items:
            yield {name: value for name, value in one.items() if name not in ("ref", "band")}
        cursor = page.next_cursor


async def statistics(manager: MemoryManager, tenant: Tenant, now: datetime) -> dict[str, Any]:
    """Of what is known: `total`, `by` type, priority and scope, and `bars`: how much of it came in each of the
    last twelve weeks, never more than the total."""
    counts = await manager.catalog.counts(tenant.id, "facts", Wanted())
    today = now.astimezone(ZoneInfo(tenant.timezone)).replace(hour=0, minute=0, second=0, microsecond=0)
    monday = today - timedelta(days=today.weekday())
    weeks = []
    for back in range(11, -1, -1):
        begin = monday - timedelta(weeks=back)
        new = await manager.catalog.counts(tenant.id, "facts", Wanted(since=begin, until=begin + timedelta(weeks=1)))
        weeks.append((begin, new.total))
    return {"total": counts.total, "by": counts.by, "bars": weeks}


async def days(manager: MemoryManager, tenant: Tenant, asked: Asked, now: datetime) -> dict[str, Any]:
    """Of events: `total` and `by` type with these filters, and `bars`: how many on each of the last thirty days."""
    zone = ZoneInfo(tenant.timezone)
    users = await _whose(manager, tenant.id, asked.user) if asked.user else ()
    if asked.user and not users:
        return {"total": 0}
    wanted = replace(asked.wanted(tenant), users=users)
    today = now.astimezone(zone).date()
    first = datetime.combine(today - timedelta(days=29), datetime.min.time(), zone)
    counts = await manager.catalog.counts(tenant.id, "events", wanted)
    found = await manager.catalog.per_day(
        tenant.id, replace(wanted, since=max(filter(None, (wanted.since, first)))), zone
    )
    bars = [(first + timedelta(days=n), found.get((first + timedelta(days=n)).date(), 0)) for n in range(30)]
    return {"total": counts.total, "by": counts.by, "bars": bars}


def named(ref: str) -> tuple[str, str]:
    """Whose it is, "" for the tenant's own, and its id. Raises HTTPException 422 for what was never given out."""
    place = place_of(ref, 2)
    if place is None or not all(isinstance(part, str) for part in place):
        raise HTTPException(422, "This is nothing that was shown here")
    return place[0], place[1]


def ref_of(user: str, record_id: str) -> str:
    return cursor_of(user.encode("utf-8", "replace").decode(), record_id.encode("utf-8", "replace").decode())


def _named(item: dict[str, Any], record_id: str) -> dict[str, Any]:
    return {**item, "ref": ref_of(item["user_id"] or "", record_id)}


async def _whose(manager: MemoryManager, tenant: str, user: str) -> tuple[str, ...]:
    """Those who are meant by an id, or by a name or a part of one. Raises HTTPException 422."""
    if ":" in user:
        try:
            return (await manager.knowledge.canonical(tenant, user),)
        except InvalidId:
            raise HTTPException(422, "This can't be a user's id") from None
    found = await manager.catalog.page(tenant, "users", Wanted(q=user), limit=_NAMESAKES)
    return tuple(one["user_id"] for one in found.records)


async def _points(
    manager: MemoryManager, tenant: str, asked: Asked, users: Sequence[str], cursor: str, limit: int
) -> Shown:
    """Of these; of nobody in particular those of the people seen last, as everybody's are in as many files."""
    if not users:
        recent = await manager.catalog.page(tenant, "users", Wanted(), limit=_RECENT)
        users = [one["user_id"] for one in recent.records]
    found = [one for user in users for one in await manager.talks.points(tenant, user)]
    words = asked.q.casefold().split()
    if words:
        found = [
            one
            for one in found
            if all(word in " ".join(line["message"] for line in one.lines).casefold() for word in words)
        ]
    found.sort(key=lambda one: (one.at, one.id), reverse=True)
    place = place_of(cursor, 2)
    rest = [one for one in found if place is None or (one.at, one.id) < (str(place[0]), str(place[1]))]
    page = rest[:limit]
    following_ = cursor_of(page[-1].at, page[-1].id) if len(rest) > limit else None
    items = [{**shown_point(one).model_dump(), "ref": ref_of(one.ref.user, one.id)} for one in page]
    return Shown(items, following_, len(found))


def day(text: str) -> str:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return ""
    return day.isoformat() if 1970 <= day.year < 3000 else ""
