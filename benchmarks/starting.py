"""How long the product takes to begin: `chat-chat run` to its first answer, and `chat-chat --help`."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time

from benchmarks.house import House
from benchmarks.http import Client
from benchmarks.load import Door, median
from benchmarks.processes import ROOT, free_port


async def first_answer(house: House) -> float:
    """Seconds from the start of `run`, on an empty data folder with an embedded server of its own, until the platform
    has the answer to the first message, which is delivered again and again until it is taken."""
    port = free_port()
    door = Door("line", port, "/webhooks/line/{tenant}/line-main", 1)
    begin = time.perf_counter()
    settings = house.settings(data="first-data") | {"REDIS_URL": ""}
    process = house.start("run", ["-m", "gateway", "run", "--port", str(port)], **settings)
    number, path, body, headers = door.message(0)
    client = Client(port)
    deadline = begin + 60
    taken = False
    while time.perf_counter() < deadline and number not in house.standin.sent:
        if not taken:
            with contextlib.suppress(OSError):
                taken = await client.post(path, body, headers) == 200
        await asyncio.sleep(0.01)
    client.close()
    await asyncio.to_thread(process.stop)
    if number not in house.standin.sent:
        raise RuntimeError(f"no first answer: {process.log.read_text('utf-8')[-2000:]}")
    return house.standin.sent[number] - begin


def help_seconds(times: int = 5) -> float:
    """The median wall time of `chat-chat --help`."""
    taken = []
    for _ in range(times):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-m", "gateway", "--help"], cwd=ROOT, check=True, capture_output=True)
        taken.append(time.perf_counter() - begin)
    return median(taken)
