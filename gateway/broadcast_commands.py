"""What `chat-chat broadcasts` does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from config.settings import Settings
from config.tenants import Tenant, Tenants
from gateway import assembly
from gateway.audit import AuditLog
from gateway.broadcasts.desk import Desk, NoSuch, Preview, Refused, Report
from gateway.broadcasts.draft import Draft
from gateway.cli import Failed
from gateway.processes import use_redis
from memory.errors import MemoryFault

LEFT_OUT = {
    "opted_out": "want no news",
    "blocked": "are blocked",
    "gone": "blocked the bot",
    "no_channel": "have no channel that is known",
    "no_push": "are on a LINE channel without allow_push",
    "staff": "are staff",
    "group": "are groups",
    "with_staff": "talk with a person of the shop",
    "wrote_again": "have written again",
    "cancelled": "were left when it was cancelled",
}
FAILED = {"not_delivered": "could not be delivered", "not_settled": "got lost on the way and were not tried again"}


@asynccontextmanager
async def desk_of(settings: Settings, shop: str) -> AsyncIterator[tuple[Desk, Tenant]]:
    """For one command; what goes wrong with it becomes a line."""
    tenants = Tenants(settings)
    tenants.load()
    tenant = tenants.get(shop)
    if tenant is None:
        raise Failed(f"there is no tenant {shop!r} that works: see `chat-chat tenants check`")
    with use_redis(settings) as (url, _):
        client = assembly.inbox_client(settings, url)
        manager = assembly.memory_of(settings, tenants, url)
        try:
            async with assembly.broadcast_desk(settings, manager, client) as desk:
                yield desk, tenant
        except (NoSuch, Refused, MemoryFault) as error:
            raise Failed(str(error)) from error
        finally:
            await manager.close()
            await client.aclose()


async def previewed(settings: Settings, shop: str, draft: Draft) -> tuple[list[str], Preview]:
    _note(settings, shop, "preview")
    async with desk_of(settings, shop) as (desk, tenant):
        seen = await desk.preview(tenant, draft)
    return _preview_lines(seen), seen


async def sent(settings: Settings, shop: str, draft: Draft, name: str | None, confirmed: bool) -> list[str]:
    _note(settings, shop, "send")
    async with desk_of(settings, shop) as (desk, tenant):
        report, new = await desk.send(tenant, draft, by="command", name=name, confirmed=confirmed)
        told = "is taken up: a worker sends it" if new else "was sent before"
        return [f"{report.broadcast.id} {told}", *_report_lines(report, tenant)[1:]]


async def listed(settings: Settings, shop: str) -> list[str]:
    async with desk_of(settings, shop) as (desk, tenant):
        reports = [await desk.show(tenant, one.id) for one in await desk.all(tenant)]
        return [_report_lines(one, tenant)[0] for one in reports] or ["nothing was sent yet"]


async def shown(settings: Settings, shop: str, name: str) -> list[str]:
    async with desk_of(settings, shop) as (desk, tenant):
        return _report_lines(await desk.show(tenant, name), tenant)


async def turned(settings: Settings, shop: str, name: str, how: str) -> list[str]:
    """`how`: pause, resume or cancel."""
    _note(settings, shop, how)
    async with desk_of(settings, shop) as (desk, tenant):
        if how == "resume":
            report = await desk.resume(tenant, name)
        else:
            report = await (desk.pause if how == "pause" else desk.cancel)(tenant, name, "command")
        return _report_lines(report, tenant)


def _note(settings: Settings, shop: str, by: str) -> None:
    did = "read" if by == "preview" else "change"
    AuditLog(settings.data_dir).note(shop, datetime.now(UTC), "command", did, f"broadcasts {by}")  # type: ignore[arg-type]


def _preview_lines(seen: Preview) -> list[str]:
    lines = []
    for cost in seen.costs:
        left = "LINE can't be asked how many are left" if not cost.known else "no limit" if cost.left is None else ""
        left = left or f"{cost.left} of {cost.limit} left this month"
        lines.append(f"LINE pushes on {cost.channel}: {cost.pushes} ({left})")
    if seen.costs and seen.own_left is not None:
        lines.append(f"of the shop's own limit (broadcasts.monthly_pushes) {seen.own_left} are left")
    where = ", ".join(f"{number} on {channel}" for channel, number in seen.by_channel.items())
    lines.append(f"{_people(seen.people)} would get it" + (f": {where}" if where else ""))
    lines += _reasons("left out", seen.left_out, LEFT_OUT)
    if seen.quiet:
        lines.append("it is quiet hours now: it would wait for their end")
    for sample in seen.samples:
        lines.append(f"as {sample.user} on {sample.channel} would read it:")
        lines += [f"    {line}" for line in sample.text.split("\n")]
    return lines


def _report_lines(report: Report, tenant: Tenant) -> list[str]:
    one = report.broadcast
    made = datetime.fromisoformat(one.created).astimezone(ZoneInfo(tenant.timezone))
    state = f"{one.state}: {one.why}" if one.why else one.state
    done = f"{report.sent} of {report.people} sent"
    lines = [f"{one.id}  {made:%Y-%m-%d %H:%M}  {done}  {state}"]
    if report.waiting or report.under_way:
        lines.append(f"    {report.waiting} wait, {report.under_way} are on their way")
    lines += [f"    {line}" for line in _reasons("left out", report.left_out, LEFT_OUT)]
    return lines + [f"    {line}" for line in _reasons("failed", report.failed, FAILED)]


def _reasons(what: str, counts: Mapping[str, int], words: Mapping[str, str]) -> list[str]:
    return [f"{what}: {number} who {words.get(why, why)}" for why, number in counts.items()]


def _people(number: int) -> str:
    return "1 person" if number == 1 else f"{number} people"
