"""What a flood of one tenant costs another: `python -m benchmarks.fairness [--seconds N] [--quiet-rate N]`.

A quiet tenant's customers write at a steady rate, first alone, then while another tenant's customers write as much as
the doors take. Prints the quiet tenant's times from arrival to answer, alone and beside the flood, and their ratio.
The loud one's backlog at the end tells that it was more than the worker could do. Loopback only; ends by itself.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

from benchmarks import shop_talk
from benchmarks.house import House, open_house
from benchmarks.http import Client
from benchmarks.load import Door, Outcome, arrivals
from benchmarks.processes import in_order

QUIET, LOUD = 0, 1  # tenants
PEOPLE = 200  # of each
FLOOD_AT_ONCE = 16
PATIENCE = 60.0  # seconds after the last message
THINKING = 0.05  # seconds that the model takes


class Writers:
    """Customers of one tenant, in turn."""

    def __init__(self, door: Door, tenant: int) -> None:
        self._door = door
        self._users = itertools.cycle(tenant + door.tenants * number for number in range(PEOPLE))

    def next(self) -> tuple[int, str, bytes, dict[str, str]]:
        return self._door.message(next(self._users))


async def steady(house: House, door: Door, rate: float, seconds: float) -> Outcome:
    """The quiet tenant's messages at a constant rate."""
    client, writers, outcome = Client(door.port), Writers(door, QUIET), Outcome()
    planned_at: dict[int, float] = {}

    async def one(planned: float) -> None:
        number, path, body, headers = writers.next()
        planned_at[number] = planned
        outcome.refused += await client.post(path, body, headers) != 200

    outcome.sent, outcome.seconds = await arrivals(rate, seconds, one)
    deadline = time.monotonic() + PATIENCE
    while not planned_at.keys() <= house.standin.sent.keys() and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    sent = house.standin.sent
    outcome.times = sorted((sent[number] - at) * 1000 for number, at in planned_at.items() if number in sent)
    outcome.lost = len(planned_at) - len(outcome.times)
    client.close()
    return outcome


async def flood(door: Door, stop: asyncio.Event) -> int:
    """As many of the loud tenant's messages as the door takes until `stop`; how many."""
    client, writers, count = Client(door.port), Writers(door, LOUD), 0

    async def lane() -> None:
        nonlocal count
        while not stop.is_set():
            _, path, body, headers = writers.next()
            await client.post(path, body, headers)
            count += 1

    await asyncio.gather(*(lane() for _ in range(FLOOD_AT_ONCE)))
    client.close()
    return count


async def measure(rate: float, seconds: float) -> int:
    """1 when a message of the quiet tenant was lost."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chat-chat-fairness-")))
        house = await open_house(folder, stack)
        house.standin.model_seconds = THINKING
        port = await house.start_serve()
        house.start("worker", ["-m", "gateway", "worker"])
        door = Door("line", port, "/webhooks/line/{tenant}/line-main", shop_talk.TENANTS)
        await house.warm(door)
        await house.quiet()
        alone = await steady(house, door, rate, seconds)
        stop, before = asyncio.Event(), len(house.standin.sent)
        async with asyncio.TaskGroup() as both:
            flooding = both.create_task(flood(door, stop))
            await asyncio.sleep(2)  # a backlog first
            beside = await steady(house, door, rate, seconds)
            answered = len(house.standin.sent) - before - len(beside.times)
            stop.set()
        taken = flooding.result()
    print(f"{'quiet tenant':<20} {'messages':>8} {'p50 ms':>8} {'p99 ms':>8}")
    for name, outcome in (("alone", alone), ("beside the flood", beside)):
        print(f"{name:<20} {len(outcome.times):>8} {outcome.at(0.5):>8.0f} {outcome.at(0.99):>8.0f}")
    ratios = [beside.at(share) / alone.at(share) for share in (0.5, 0.99)]
    print(f"{'ratio':<20} {'':>8} {ratios[0]:>8.1f} {ratios[1]:>8.1f}")
    print(f"the loud tenant: {taken} messages taken, {answered} answered meanwhile; quiet ones lost: {beside.lost}")
    return int(bool(alone.lost or beside.lost))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="of each of the two measurements")
    parser.add_argument("--quiet-rate", type=float, default=5.0, help="messages a second of the quiet tenant")
    given = parser.parse_args()
    raise SystemExit(in_order(measure(given.quiet_rate, given.seconds)))


if __name__ == "__main__":
    main()
