"""The chaos run: `python -m tests.acceptance.chaos --seed N`.

Two serve and three worker processes over one server, or with `--cluster` over a Redis Cluster, the platforms and the
model as processes; customers write at a constant rate while all of these are killed with -9, stopped with SIGSTOP and
started again at random. Prints one row of a table; exit status 1 when a message was lost, came out of order, or doubled
outside the windows that are stated.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import aiohttp
import yaml

from gateway.errors import InboxUnavailable
from tests.acceptance.chaos_cluster import ClusterNode, ClusterServer
from tests.acceptance.chaos_count import Report, count
from tests.acceptance.chaos_customers import Crowd, Shop, shops
from tests.acceptance.chaos_faults import Faults, Target
from tests.acceptance.processes import (
    RedisServer,
    Running,
    Stage,
    environment,
    free_port,
    start_stand_ins,
)
from tests.house import LLM_KEY

QUIET_WITHIN = 600.0  # seconds after the last message in which all must have been answered, on a busy machine too
FINAL_LETTERS = 60  # anomalies that are told one by one


@dataclass(frozen=True)
class Plan:
    """What one run does."""

    seed: int
    messages: int = 2000
    users: int = 200
    tenants: int = 5
    seconds: float = 200.0
    fault_every: float = 1.0
    longest_stop: float = 15.0
    cluster: bool = False


async def run(plan: Plan, folder: Path) -> Report:
    """Everything from nothing to the count; every process has ended when it returns."""
    (folder / "config" / "tenants").mkdir(parents=True)
    tenants = shops(plan.tenants)
    for shop in tenants:
        (folder / "config" / "tenants" / f"{shop.id}.yaml").write_text(yaml.safe_dump(shop.file))
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(ClusterServer(plan.seed) if plan.cluster else RedisServer())
        http = await stack.enter_async_context(aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)))
        parts = Parts(folder, tenants, server, http)
        stack.push_async_callback(parts.end)
        await parts.begin()
        crowd = Crowd(plan.seed, tenants, plan.users, parts.doors, http)
        faults = Faults(plan.seed, parts.targets, every=plan.fault_every, longest_stop=plan.longest_stop)
        stop = asyncio.Event()
        harm = asyncio.create_task(faults.run(stop))
        try:
            await crowd.write(plan.messages, plan.seconds)
        finally:
            stop.set()
            await harm
        await crowd.all_accepted()
        quiet = await parts.quiet(QUIET_WITHIN)
        return await count(plan.seed, crowd, parts.stage, faults, quiet)


class Parts:
    """The processes of a run and how each is started again."""

    def __init__(
        self, folder: Path, tenants: Sequence[Shop], server: RedisServer | ClusterServer, http: aiohttp.ClientSession
    ) -> None:
        self._folder = folder
        self._tenants = tenants
        self._server = server
        self._http = http
        self._live: dict[str, Running] = {}
        self._ports = {name: str(free_port()) for name in ("line", "line-data", "telegram", "llm")}
        self._doors = {f"serve-{number}": free_port() for number in (1, 2)}
        self.stage: Stage

    @property
    def doors(self) -> list[str]:
        return [f"http://127.0.0.1:{port}" for port in self._doors.values()]

    @property
    def targets(self) -> list[Target]:
        names = ["worker-1", "worker-2", "worker-3", *self._doors, "platforms", "model", "redis"]
        again = {"redis": self._server.start} if isinstance(self._server, ClusterServer) else {}
        return [Target(name, partial(self._of, name), partial(self.start, name), again.get(name)) for name in names]

    def _of(self, name: str) -> Running | ClusterNode:
        if name == "redis":
            assert self._server.running is not None
            return self._server.running
        return self._live[name]

    async def begin(self) -> None:
        for name in ("platforms", "model"):
            await self.start(name)
        for target in self.targets:
            if target.name not in self._live and target.name != "redis":
                await self.start(target.name)
        for name, port in self._doors.items():
            await self.stage.up(self._live[name], port, 120.0)
        await self.stage.take_part([self._live[f"worker-{number}"] for number in (1, 2, 3)], 120.0)

    async def start(self, name: str) -> None:
        if name == "redis":
            await self._server.start(120.0)
        elif name == "platforms":
            options = [word for shop in self._tenants for word in shop.options]
            ports = {one: port for one, port in self._ports.items() if one != "llm"}
            self._live[name], urls = await self._stand_ins(name, ports, "--any-reply-token", *options)
            urls["llm"] = urls["llm_control"] = f"http://127.0.0.1:{self._ports['llm']}"
            urls["llm"] += "/api/v1"
            env = environment(self._folder, urls, self._server.url) | {"LOG_LEVEL": "INFO"}
            if isinstance(self._server, ClusterServer):
                env["REDIS_COPIES"] = "1"
            self.stage = Stage(self._folder, env, urls, self._http, self._server.url)
        elif name == "model":
            self._live[name], _ = await self._stand_ins(name, {"llm": self._ports["llm"]}, "--llm-key", LLM_KEY)
        elif name in self._doors:
            self._live[name] = await self.stage.start("serve", "--port", str(self._doors[name]), log=name)
        else:
            self._live[name] = await self.stage.start("worker", log=name)

    async def _stand_ins(self, name: str, ports: dict[str, str], *options: str) -> tuple[Running, dict[str, str]]:
        journal = ("--journal", str(self._folder / f"journal-{name}"))
        return await start_stand_ins(self._folder, *options, *journal, ports=ports, log=name)

    async def quiet(self, seconds: float) -> float | None:
        """Seconds until nothing waits anywhere; None: it did not come to that in time."""
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            for name, running in list(self._live.items()):
                if running.ended:
                    await self.start(name)
            spool = self._folder / "data" / "spool"
            kept = [one for one in spool.glob("*-*") if one.suffix in (".json", ".done")] if spool.is_dir() else []
            if not kept and await self._nothing_waits():
                return time.monotonic() - began
            await asyncio.sleep(0.5)
        return None

    async def _nothing_waits(self) -> bool:
        try:
            depth = await self.stage.depth()
        except InboxUnavailable:  # on a machine that is busy with what was just started again
            return False
        return depth.ready + depth.due + depth.leased == 0

    async def end(self) -> None:
        for name, running in reversed(self._live.items()):
            if not running.ended:
                try:
                    await running.end()
                except AssertionError as error:
                    print(f"{name}: {error}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--messages", type=int, default=Plan.messages)
    parser.add_argument("--users", type=int, default=Plan.users)
    parser.add_argument("--seconds", type=float, default=Plan.seconds, help="over which the messages are spread")
    parser.add_argument("--fault-every", type=float, default=Plan.fault_every, help="seconds between faults, about")
    parser.add_argument("--longest-stop", type=float, default=Plan.longest_stop, help="of a SIGSTOP, in seconds")
    parser.add_argument("--cluster", action="store_true", help="a Redis Cluster, of which nodes are killed")
    parser.add_argument("--keep", type=Path, help="leave logs, data and journals here")
    given = parser.parse_args(arguments)
    plan = Plan(
        given.seed, given.messages, given.users, seconds=given.seconds,
        fault_every=given.fault_every, longest_stop=given.longest_stop, cluster=given.cluster,
    )  # fmt: skip
    folder = given.keep or Path(tempfile.mkdtemp(prefix="chaos-"))
    folder.mkdir(parents=True, exist_ok=True)

    async def ending_in_order() -> Report:
        working = asyncio.current_task()
        assert working is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, working.cancel)
        return await run(plan, folder)

    try:
        report = asyncio.run(ending_in_order())
    finally:
        if given.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    print(Report.head())
    print(report.row())
    for line in report.details()[:FINAL_LETTERS]:
        print(line)
    return 0 if report.well else 1


if __name__ == "__main__":
    raise SystemExit(main())
