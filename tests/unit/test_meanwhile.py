"""What is done beside a block, and how the two end each other."""

from __future__ import annotations

import asyncio

import pytest

from gateway.meanwhile import Meanwhile


class Work:
    def __init__(self, takes: float = 0.0, error: Exception | None = None) -> None:
        self.begun = self.ended = 0
        self.given_up = False
        self._takes = takes
        self._error = error

    async def __call__(self) -> None:
        self.begun += 1
        try:
            await asyncio.sleep(self._takes)
        except asyncio.CancelledError:
            self.given_up = True
            raise
        if self._error:
            raise self._error
        self.ended += 1


async def test_a_block_that_is_over_before_has_nothing_done_beside_it() -> None:
    work = Work()
    async with Meanwhile(lambda: 0.05, work):
        await asyncio.sleep(0)
    await asyncio.sleep(0.1)
    assert work.begun == 0


async def test_it_is_done_again_and_again_and_not_after_the_block() -> None:
    work = Work()
    async with Meanwhile(lambda: 0.01, work):
        while work.ended < 3:
            await asyncio.sleep(0.005)
    done = work.ended
    await asyncio.sleep(0.05)
    assert work.begun == done


async def test_what_is_under_way_at_the_blocks_end_is_waited_for() -> None:
    work = Work(takes=0.05)
    async with Meanwhile(lambda: 0.0, work):
        while not work.begun:
            await asyncio.sleep(0)
    assert work.ended == 1


async def beside(work: Work, then: Exception | None = None) -> None:
    """A block that lasts until the work has begun."""
    async with Meanwhile(lambda: 0.0, work):
        while not work.begun:
            await asyncio.sleep(0)
        if then is not None:
            raise then


async def test_what_it_raises_ends_the_block() -> None:
    async def block() -> None:
        async with Meanwhile(lambda: 0.0, Work(error=ValueError("lost"))):
            await asyncio.sleep(60)

    began = asyncio.get_running_loop().time()
    with pytest.raises(ValueError, match="lost"):
        await block()
    assert asyncio.get_running_loop().time() - began < 30
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_what_it_raises_at_the_end_is_raised_as_well() -> None:
    with pytest.raises(ValueError, match="lost"):
        await beside(Work(takes=0.02, error=ValueError("lost")))


async def test_a_block_that_is_given_up_gives_it_up_too() -> None:
    work = Work(takes=5)

    async def block() -> None:
        async with Meanwhile(lambda: 0.0, work):
            await asyncio.sleep(5)

    task = asyncio.create_task(block())
    while not work.begun:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0)
    assert work.given_up


async def test_who_is_given_up_by_others_while_it_fails_stays_given_up() -> None:
    async def block() -> None:
        async with Meanwhile(lambda: 0.0, Work(error=ValueError("lost"))):
            try:
                await asyncio.sleep(5)
            except asyncio.CancelledError:
                current = asyncio.current_task()
                assert current is not None
                current.cancel()
                raise

    task = asyncio.create_task(block())
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_failing_block_lets_it_end() -> None:
    work = Work(takes=0.02)
    with pytest.raises(KeyError):
        await beside(work, KeyError("x"))
    assert work.ended == 1
