"""What a message costs, from the webhook to the platform: `python -m benchmarks [--seconds N] [--quick]`.

Everything runs on loopback: the real processes, an embedded Redis-compatible server, a stand-in for the platforms and
the language model. Beside the product, in the same run: a bare endpoint of the same HTTP server, a bare Redis round
trip, and the least bots that one writes with LINE's SDK and with aiogram, which keep next to nothing. Absolute figures
depend on the machine and on what else it does; the ratios hold. Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import tempfile
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import picture, redis_cost, shop_talk, stages, starting, table
from benchmarks.house import House, open_house, seed
from benchmarks.load import Door, Outcome, acknowledged, acknowledged_at, median
from benchmarks.processes import free_port, in_order, resident_mb, wait_for_port
from benchmarks.turns import Contestant, compare

_PAIRS = 7  # of one round with the product and one with the bare endpoint
_HALVES = 3  # pairs at half of the rate
_READY = 1200  # webhooks of a round, for each second that a measurement may take
RESULTS = Path(__file__).resolve().parent / "results"


async def acknowledgements(house: House, serve_port: int, seconds: float) -> dict[str, Any]:
    """`serve` alone beside the bare endpoint, in turn, as what else the machine does changes with time."""
    port = free_port()
    bare = house.start("bare", ["-m", "benchmarks.bare", str(port)])
    await asyncio.to_thread(wait_for_port, port, bare)
    doors = {
        "ours": Door("line", serve_port, "/webhooks/line/{tenant}/line-main", 1),
        "bare": Door("line", port, "/webhooks/line/{tenant}/line-main", 1),
    }

    async def rate(name: str) -> float:
        outcome = await acknowledged(doors[name], int(_READY * seconds))
        assert outcome.refused == 0, f"{name} refused {outcome.refused} of {outcome.sent}"
        await house.client.flushall()  # nobody works on what was taken
        return outcome.sent / outcome.seconds

    rates: dict[str, list[float]] = {name: [] for name in doors}
    for _ in range(_PAIRS):
        for name in doors:
            rates[name].append(await rate(name))
    halves: dict[str, list[Outcome]] = {name: [] for name in doors}
    for _ in range(_HALVES):
        half = await rate("ours") / 2  # as the machine is at that moment
        for name, door in doors.items():  # both at our half: what the bare endpoint takes is the machine's
            halves[name].append(await acknowledged_at(door, half, seconds / 2))
            await house.client.flushall()
    bare.stop()
    return {
        "ours_a_second": median(rates["ours"]),
        "bare_a_second": median(rates["bare"]),
        "ratio": median([one / other for one, other in zip(rates["ours"], rates["bare"], strict=True)]),
        "half_p50_ms": median([half.at(0.5) for half in halves["ours"]]),
        "half_p99_ms": median([half.at(0.99) for half in halves["ours"]]),
        "half_bare_p99_ms": median([half.at(0.99) for half in halves["bare"]]),
    }


async def measure(seconds: float, only: set[str], quick: bool = False) -> dict[str, Any]:
    result: dict[str, Any] = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load_before": os.getloadavg()[0],
        "seconds": seconds,
    }
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chat-chat-benchmark-")))
        house = await open_house(folder, stack)
        if "start" in only:
            result["help_s"] = await asyncio.to_thread(starting.help_seconds)
            result["first_answer_s"] = await starting.first_answer(house)
        if "session" in only:
            result["redis"] = await redis_cost.round_trips(house.client, min(seconds, 2.0))
            result["session"] = await redis_cost.of_a_session(house.client, 40)
        serve_port = await house.start_serve()
        if "webhooks" in only:
            result["webhooks"] = await acknowledgements(house, serve_port, seconds)
        if not only & {"turns", "redis"}:
            return result
        house.start("worker", ["-m", "gateway", "worker"])
        line = Door("line", serve_port, "/webhooks/line/{tenant}/line-main", shop_talk.TENANTS)
        telegram = Door("telegram", serve_port, "/webhooks/telegram/{tenant}/telegram-main", shop_talk.TENANTS)
        await seed(house)
        for door in (line, telegram):
            await house.warm(door)
        await house.quiet()
        if "redis" in only:
            result["redis_a_turn"] = await redis_cost.of_a_turn(house, line, seconds)
        if "turns" in only:
            line_port = await house.start_bot("line_bot", SECRET=shop_talk.line_secret(0), TOKEN="benchmark")
            secret, token = shop_talk.telegram_secret(0), shop_talk.telegram_token(0)
            telegram_port = await house.start_bot("aiogram_bot", SECRET=secret, TOKEN=token)
            contestants = [
                Contestant("chat-chat LINE", line, ("serve", "worker"), "line-bot-sdk"),
                Contestant("line-bot-sdk", Door("line", line_port, "/callback", 1), ("line_bot",)),
                Contestant("chat-chat Telegram", telegram, ("serve", "worker"), "aiogram"),
                Contestant("aiogram", Door("telegram", telegram_port, "/webhook", 1), ("aiogram_bot",)),
            ]
            for contestant in (contestants[1], contestants[3]):
                await house.warm(contestant.door)
            result["turns"] = await compare(house, contestants, 0.4 * max(seconds, 2.5), quick)
            result["doubles"] = house.standin.doubles
        running = {name: process for name, process in house.processes.items() if process.alive()}
        result["resident_mb"] = {name: resident_mb(process.pid) for name, process in running.items()}
        if "turns" in only:
            house.processes["worker"].stop()
            full = next(r for r in result["turns"] if r["against"] and (r["history"], r["model_ms"]) == (20, 0.0))
            result["stages"] = await stages.split(house, line, 2 * seconds, full["cpu_ms_each"])
    result["load_after"] = os.getloadavg()[0]
    return result


PARTS = ("start", "session", "webhooks", "redis", "turns")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement (default: 5)")
    parser.add_argument("--quick", action="store_true", help="2 seconds each: enough to see that all works")
    parser.add_argument("--only", choices=PARTS, action="append", help="this part alone; may be given again")
    given = parser.parse_args()
    seconds = 2.0 if given.quick else given.seconds
    result = in_order(measure(seconds, set(given.only or PARTS), given.quick))
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"pipeline-{result['at'].replace(':', '')}.json"
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(table.render(result))
    if rows := result.get("turns"):
        path.with_suffix(".svg").write_text(picture.drawn(rows, result["at"]), encoding="utf-8")
    print(f"\n{path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")


if __name__ == "__main__":
    main()
