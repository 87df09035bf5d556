"""How what goes on beside everything else waits for its next time."""

from __future__ import annotations

import asyncio
import os

TOGETHER = 0.5  # seconds: what looks now and then looks at a multiple of it, so that one wake-up does for several
_PHASE = os.getpid() % 50 / 100  # processes of one machine look one after the other


async def stopped(stop: asyncio.Event, seconds: float) -> bool:
    """Waits for `stop`, for about that long at most; whether it is set. `asyncio.wait_for` makes a task for each wait
    up to Python 3.11, and what wakes a process that has nothing to do finds everything cold."""
    until = asyncio.get_running_loop().time() + seconds
    if seconds >= TOGETHER:
        until -= (until - _PHASE) % TOGETHER
    try:
        async with asyncio.timeout_at(until):
            await stop.wait()
    except TimeoutError:
        return stop.is_set()
    return True
