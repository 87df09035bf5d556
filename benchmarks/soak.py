"""Many messages of many people through one serve and one worker: `python -m benchmarks.soak [--messages N --users N]`.

Prints what each process holds as it goes, and what is left in Redis at the end: memory has to be flat once the caches
are warm, and no key may stand without a TTL outside the list in ARCHITECTURE.md. Loopback only; ends by itself.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

from benchmarks import shop_talk
from benchmarks.house import House, open_house
from benchmarks.http import Client
from benchmarks.load import Door
from benchmarks.processes import in_order, resident_mb

LASTING = ("cc:q:", "cc:c:", "cc:i:", "cc:dead:")
AT_ONCE = 32
PATIENCE = 60.0  # seconds without any answer


async def soak(messages: int, users: int) -> int:
    """1 when something was lost, or a key stands for ever."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chat-chat-soak-")))
        house = await open_house(folder, stack)
        port = await house.start_serve()
        house.start("worker", ["-m", "gateway", "worker"])
        door = Door("line", port, "/webhooks/line/{tenant}/line-main", shop_talk.TENANTS)
        await house.warm(door)
        await house.quiet()  # what came while it was loading is answered by now
        print(f"{'messages':>9} {'a second':>9} {'serve MB':>9} {'worker MB':>10} {'Redis MB':>9} {'keys':>8}")
        began, told = time.monotonic(), 0
        waiting: dict[int, asyncio.Event] = {}

        def answered(number: int) -> None:
            if (event := waiting.pop(number, None)) is not None:
                event.set()

        house.standin.on_sent = answered
        rules_before, doubles_before = house.standin.unmarked, house.standin.doubles
        client, todo, done = Client(port), iter(range(messages)), 0

        async def lane() -> int:
            nonlocal done, told
            late = 0
            for position in todo:
                number, path, body, headers = door.message(position % users)
                event = waiting[number] = asyncio.Event()
                await client.post(path, body, headers)
                try:
                    await asyncio.wait_for(event.wait(), PATIENCE)
                except TimeoutError:
                    late += 1
                done += 1
                if done >= told + max(messages // 20, 1):
                    told = done
                    await _row(house, done, done / (time.monotonic() - began))
            return late

        late = sum(await asyncio.gather(*(lane() for _ in range(AT_ONCE))))
        await asyncio.sleep(2)  # the last turns end after their answers
        # An answer by rules, as there are after a long wait, repeats no mark: it can only be counted.
        by_rules = house.standin.unmarked - rules_before
        doubled = house.standin.doubles - doubles_before
        lost = len(waiting) - by_rules
        kinds, lasting = await _keys(house)
    print(f"not answered by the model within {PATIENCE:.0f} s: {late}; answered by rules: {by_rules}, never: {lost}")
    print(f"answered twice: {doubled}")
    print(f"keys by kind: {dict(kinds)}; keys that stand for ever and should not: {lasting or 'none'}")
    return int(bool(lost or doubled or lasting))


async def _row(house: House, done: int, rate: float) -> None:
    memory = await house.client.info("memory")
    keys = await house.client.dbsize()
    serve, worker = (resident_mb(house.processes[name].pid) for name in ("serve", "worker"))
    redis = int(memory["used_memory"]) / 1024 / 1024
    print(f"{done:>9} {rate:>9.0f} {serve:>9.0f} {worker:>10.0f} {redis:>9.1f} {keys:>8}", flush=True)


async def _keys(house: House) -> tuple[Counter[str], list[str]]:
    kinds: Counter[str] = Counter()
    lasting, cursor = [], 0
    while True:
        cursor, found = await house.client.scan(cursor, count=1000)
        looks = house.client.pipeline(transaction=False)
        for raw in found:
            looks.ttl(raw)
        for raw, ttl in zip(found, await looks.execute(), strict=True):
            key = str(raw, "utf-8") if isinstance(raw, bytes) else raw
            kinds[":".join(key.split(":")[:2]) if key.startswith("cc:") else key.split(":")[0]] += 1
            if ttl == -1 and not key.startswith(LASTING):
                lasting.append(key)
        if not cursor:
            return kinds, lasting


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--users", type=int, default=10_000)
    given = parser.parse_args()
    raise SystemExit(in_order(soak(given.messages, given.users)))


if __name__ == "__main__":
    main()
