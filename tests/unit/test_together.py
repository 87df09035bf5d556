"""Calls that share a round trip."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from gateway.inbox.together import MOST, Together


class Calls:
    """Answers each item with ten times itself, once it may."""

    def __init__(self) -> None:
        self.made: list[list[int]] = []
        self.may = asyncio.Event()
        self.fails = False

    async def __call__(self, items: Sequence[int]) -> list[int]:
        self.made.append(list(items))
        await self.may.wait()
        if self.fails:
            raise ConnectionError("away")
        return [10 * item for item in items]


async def under_way(calls: Calls) -> None:
    while not calls.made:
        await asyncio.sleep(0)


async def test_what_comes_while_a_call_is_under_way_goes_in_the_next_one() -> None:
    calls = Calls()
    together = Together(calls)
    tasks = [asyncio.create_task(together([1]))]
    await under_way(calls)
    tasks += [asyncio.create_task(together(items)) for items in ([2, 3], [4])]
    await asyncio.sleep(0)
    calls.may.set()
    assert await asyncio.gather(*tasks) == [[10], [20, 30], [40]]
    assert calls.made == [[1], [2, 3, 4]]


async def test_nobody_waits_when_nothing_is_under_way() -> None:
    calls = Calls()
    calls.may.set()
    together = Together(calls)
    assert [await together([1]), await together([2])] == [[10], [20]]
    assert calls.made == [[1], [2]]


async def test_a_failure_reaches_all_who_shared_the_call_and_the_next_one_is_made() -> None:
    calls = Calls()
    calls.fails = True
    together = Together(calls)
    tasks = [asyncio.create_task(together([n])) for n in (1, 2, 3)]
    await under_way(calls)
    calls.may.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [ConnectionError] * 3
    calls.fails = False
    assert await together([4]) == [40]


@pytest.mark.parametrize("gone", [0, 1], ids=["who makes the call", "who waits"])
async def test_one_who_is_cancelled_takes_nobody_along(gone: int) -> None:
    calls = Calls()
    together = Together(calls)
    tasks = [asyncio.create_task(together([n])) for n in (1, 2, 3)]
    await under_way(calls)
    tasks.pop(gone).cancel()
    calls.may.set()
    assert sorted(await asyncio.gather(*tasks)) == sorted([[10 * n] for n in (1, 2, 3) if n != gone + 1])


async def test_a_call_has_its_limit_of_items() -> None:
    calls = Calls()
    together = Together(calls)
    tasks = [asyncio.create_task(together([n])) for n in range(MOST + 2)]
    await under_way(calls)
    calls.may.set()
    await asyncio.gather(*tasks)
    assert [len(made) for made in calls.made] == [MOST, 2]


async def test_who_does_not_wait_is_told_and_what_comes_in_one_turn_of_the_loop_goes_together() -> None:
    calls = Calls()
    calls.may.set()
    together = Together(calls)
    told: list[object] = []
    for items in ([1], [2, 3]):
        together.soon(items, told.append)
    assert await together([4]) == [40]
    assert (calls.made, told) == ([[1, 2, 3, 4]], [[10], [20, 30]])
    calls.fails = True
    together.soon([5], told.append)
    together.soon([6], told.append)
    await together.close()
    await asyncio.sleep(0)
    assert [type(one) for one in told[2:]] == [ConnectionError] * 2
    calls.fails = False
    assert await together([7]) == [70]


@pytest.mark.parametrize("before", [0, 1], ids=["as it begins", "as it is woken"])
@pytest.mark.parametrize("waits", [False, True], ids=["nobody waits", "somebody waits"])
async def test_one_that_is_cancelled_before_its_work_leaves_nobody_waiting(before: int, waits: bool) -> None:
    calls = Calls()
    calls.may.set()
    together = Together(calls)
    told: list[object] = []
    for number in range(before):
        together.soon([number], told.append)
        while together.busy:
            await asyncio.sleep(0)
    asked = asyncio.create_task(together([5])) if waits else None
    await asyncio.sleep(0)
    if asked is None:
        together.soon([5], told.append)
    for task in asyncio.all_tasks() - {asyncio.current_task(), asked}:
        task.cancel()
    async with asyncio.timeout(5):
        await together.close()
        if asked is not None:
            await asyncio.wait({asked})
    assert asked.cancelled() if asked is not None else [type(one) for one in told[before:]] == [asyncio.CancelledError]
    assert together.busy is False
    assert await together([6]) == [60]


async def test_all_who_close_it_hear_of_its_end() -> None:
    calls = Calls()
    together = Together(calls)
    told: list[object] = []
    together.soon([1], told.append)
    closing = [asyncio.create_task(together.close()) for _ in range(3)]
    await under_way(calls)
    closing[0].cancel()
    calls.may.set()
    async with asyncio.timeout(5):
        await asyncio.wait(closing)
    assert told == [[10]]
