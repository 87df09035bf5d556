"""Whether a message costs more because there is more of everything: `python -m benchmarks.flat [--only PART …]`.

    people     10, 1 000 and 100 000 known customers: their sessions in Redis, their long-term files
    tenants    1, 100 and 1 000 tenants
    events     0 and 1 000 events in the long-term file of each customer who writes
    hour       no and 3 600 seconds of load before: 5 messages a second of 5 000 others (only when it is named)

128 customers in the middle of a conversation write on LINE at a constant rate. Prints what a message takes of all
processors: `serve`, a worker and Redis added up, three times each size in turn, the median; the last column is the
largest size's over the smallest one's, which should be below 1.2. Linux only; loopback only; ends by itself.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from benchmarks import shop_talk
from benchmarks.house import TTL, House, full_session, open_house, ref_of, seed
from benchmarks.load import KNOWN, Door, answered_at, median
from benchmarks.processes import cpu_seconds, in_order
from benchmarks.tenant_lists import write
from memory.keys import ConversationRef
from memory.short_term.redis import RedisSessions

SIZES = {"people": (10, 1_000, 100_000), "tenants": (1, 100, 1_000), "events": (0, 1_000), "hour": (0, 3_600)}
ROUNDS = 3
BEFORE = 5.0  # messages a second of the load before
OTHERS = 5_000  # customers of it
LIVING = 20_000  # sessions at the most: one customer in five wrote within the hour


async def begun(stack: AsyncExitStack, part: str, size: int) -> tuple[House, Door]:
    """A house of that size at work."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chat-chat-benchmark-")))
    tenants = size if part == "tenants" else shop_talk.TENANTS
    people = size if part == "people" else 0
    events = size if part == "events" else 3
    house = await open_house(folder, stack, tenants)
    longterm = folder / "data" / "longterm"

    def who(number: int) -> ConversationRef:
        return ref_of("line", number, tenants)

    write(longterm, KNOWN, events, 3, who)
    write(longterm, people, 3, 3, who, first=KNOWN)
    sessions = RedisSessions(house.client)
    for number in range(KNOWN, min(people, LIVING)):
        await sessions.save(who(number), full_session(who(number)), TTL)
    port = await house.start_serve()
    house.start("worker", ["-m", "gateway", "worker"])
    await seed(house, tenants)
    door = Door("line", port, "/webhooks/line/{tenant}/line-main", tenants)
    await house.warm(door, messages=3 * KNOWN)
    if part == "hour":
        others = itertools.cycle(range(KNOWN, KNOWN + OTHERS))
        outcome = await answered_at(house.standin, door, BEFORE, size, full=True, who=lambda: next(others))
        assert outcome.lost == 0, f"{outcome.lost} of {outcome.sent} messages had no answer"
        await seed(house, tenants)
    await house.quiet()
    return house, door


async def cost(house: House, door: Door, rate: float, seconds: float) -> float:
    """CPU ms a message."""
    pids = [house.redis_pid, *(process.pid for process in house.processes.values())]
    before = sum(map(cpu_seconds, pids))
    outcome = await answered_at(house.standin, door, rate, seconds, full=True)
    assert outcome.lost == 0, f"{outcome.lost} of {outcome.sent} messages had no answer"
    return (sum(map(cpu_seconds, pids)) - before) * 1000 / outcome.sent


async def compare(part: str, sizes: Sequence[int], rate: float, seconds: float) -> None:
    async with AsyncExitStack() as stack:
        # The largest first: what it takes an hour to make would be an hour too long for the others' sessions.
        houses = [await begun(stack, part, size) for size in reversed(sizes)][::-1]
        found: list[list[float]] = [[] for _ in sizes]
        for _ in range(ROUNDS):
            for values, (house, door) in zip(found, houses, strict=True):
                values.append(await cost(house, door, rate, seconds))
        costs = list(map(median, found))
    print(f"{part:10}{''.join(f'{size:>12,}' for size in sizes)}{'ratio':>10}")
    print(f"{'CPU ms':10}{''.join(f'{value:12.1f}' for value in costs)}{costs[-1] / costs[0]:10.2f}", flush=True)


async def measure(parts: Sequence[str], rate: float, seconds: float) -> None:
    for part in parts:
        await compare(part, SIZES[part], rate, seconds)


def main() -> None:
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("--only", choices=SIZES, action="append", help="this part alone; may be given again")
    about.add_argument("--rate", type=float, default=15.0, help="messages a second (default: 15)")
    about.add_argument("--seconds", type=float, default=8.0, help="of each measurement (default: 8)")
    given = about.parse_args()
    in_order(measure(given.only or [part for part in SIZES if part != "hour"], given.rate, given.seconds))


if __name__ == "__main__":
    main()
