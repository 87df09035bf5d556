"""Work that is begun at once and waited for later, in the same task."""

from __future__ import annotations

import asyncio

import pytest
import uvloop

from gateway.meanwhile import Begun

Gates = list["asyncio.Future[str]"]


def gates(count: int) -> Gates:
    return [asyncio.get_running_loop().create_future() for _ in range(count)]


async def through(waits: Gates, said: list[str]) -> str:
    for wait in waits:
        said.append("waits")
        said.append(await wait)
    return "over"


async def test_it_goes_on_at_once_and_its_first_wait_is_over_when_it_is_awaited() -> None:
    said: list[str] = []
    waits = gates(2)
    begun = Begun(through(waits, said))
    assert said == ["waits"]
    waits[0].set_result("a")
    asyncio.get_running_loop().call_later(0.01, waits[1].set_result, "b")
    assert await begun == "over"
    assert said == ["waits", "a", "waits", "b"]
    begun.close()


async def test_what_it_waits_for_is_waited_for() -> None:
    said: list[str] = []
    waits = gates(1)
    begun = Begun(through(waits, said))
    asyncio.get_running_loop().call_later(0.01, waits[0].set_result, "a")
    assert await begun == "over"


async def test_what_waits_for_nothing_is_over_and_its_error_comes_out_where_it_is_awaited() -> None:
    async def fails() -> None:
        raise ValueError("no")

    assert await Begun(through([], [])) == "over"
    begun = Begun(fails())
    with pytest.raises(ValueError, match="no"):
        await begun


async def test_an_error_of_what_it_waits_for_is_its_own_affair() -> None:
    async def passes_over() -> str:
        try:
            return await waits[0]
        except OSError:
            await asyncio.sleep(0)
            return "all the same"

    waits = gates(1)
    begun = Begun(passes_over())
    waits[0].set_exception(OSError())
    assert await begun == "all the same"


async def test_who_is_cancelled_while_it_waits_cancels_it() -> None:
    heard: list[str] = []

    async def hears() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            heard.append("cancelled")
            raise

    async def both() -> None:
        await Begun(hears())

    task = asyncio.create_task(both())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert heard == ["cancelled"]


async def test_what_is_given_up_ends_where_it_waits() -> None:
    heard: list[str] = []

    async def ends() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            heard.append("ended")

    begun = Begun(ends())
    begun.close()
    assert heard == ["ended"]


def test_it_is_the_same_on_the_workers_loop() -> None:
    async def whole() -> None:
        await test_it_goes_on_at_once_and_its_first_wait_is_over_when_it_is_awaited()
        await test_who_is_cancelled_while_it_waits_cancels_it()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(whole())
