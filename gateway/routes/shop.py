"""`/api/v1/tasks`: what staff have still to answer. `/api/v1/budget`: how the shop stands with its limits."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Annotated, TypeVar

from fastapi import APIRouter, Depends, HTTPException, Path
from pydantic import BaseModel
from redis.exceptions import RedisError

from config.tenants import Tenant
from gateway.budgets import Budgets
from gateway.routes.auth import Keys
from gateway.routes.lists import Cursor, Limit, Page, cursor_of, place_of
from gateway.routes.problems import problems
from gateway.staff_tasks import StaffTasks

T = TypeVar("T")

TaskId = Annotated[str, Path(pattern=r"^[0-9a-f]{10}$")]


class TaskOut(BaseModel):
    """What a customer waits for; `said` is the newest of what they wrote, oldest first."""

    id: str
    since: str
    channel: str
    user_id: str
    name: str
    said: list[str]


class Budget(BaseModel):
    """Dollars and tokens, by the shop's own day and month. A limit of null is none; so is what was spent where there is
    no limit at all. `spent`: a limit is reached."""

    day_usd: float | None = None
    month_usd: float | None = None
    day_tokens: int | None = None
    month_tokens: int | None = None
    daily_budget_usd: float | None = None
    monthly_budget_usd: float | None = None
    daily_tokens: int | None = None
    monthly_tokens: int | None = None
    spent: bool = False


def router(keys: Keys, tasks: StaffTasks, budgets: Budgets) -> APIRouter:
    routes = APIRouter(prefix="/api/v1", tags=["shop"], responses=problems(401, 404, 422, 503))

    @routes.get("/tasks", summary="Customers who wait for an answer of staff's, the oldest first")
    async def listed(limit: Limit = 50, cursor: Cursor = "", tenant: Tenant = Depends(keys.tenant)) -> Page[TaskOut]:
        place = place_of(cursor, 2)
        if place is not None and not all(isinstance(part, str) for part in place):
            raise HTTPException(422, "cursor is not one that this list gave out")
        found = await _there(tasks.all(tenant.id))
        left = [task for task in found if place is None or [task.since, task.id] > place]
        shown = left[:limit]
        return Page(
            items=[TaskOut.model_validate(task, from_attributes=True) for task in shown],
            next_cursor=cursor_of(shown[-1].since, shown[-1].id) if len(left) > limit else None,
            total=len(found),
        )

    @routes.delete("/tasks/{task_id}", summary="It is done", status_code=204)
    async def done(task_id: TaskId, tenant: Tenant = Depends(keys.tenant)) -> None:
        if not await _there(tasks.done(tenant.id, task_id)):
            raise HTTPException(404, "There is no such task")

    @routes.get("/budget", summary="What was spent of the shop's limits")
    async def budget(tenant: Tenant = Depends(keys.tenant)) -> Budget:
        standing = await _there(budgets.of(tenant))
        if standing is None:
            return Budget()
        llm = tenant.llm
        return Budget(
            day_usd=standing.day_usd,
            month_usd=standing.month_usd,
            day_tokens=standing.day_tokens,
            month_tokens=standing.month_tokens,
            daily_budget_usd=llm.daily_budget_usd,
            monthly_budget_usd=llm.monthly_budget_usd,
            daily_tokens=llm.daily_tokens,
            monthly_tokens=llm.monthly_tokens,
            spent=standing.spent,
        )

    return routes


async def _there(asked: Awaitable[T]) -> T:
    try:
        return await asked
    except (RedisError, OSError):
        raise HTTPException(503, "Redis can't be reached", headers={"Retry-After": "5"}) from None
