"""Redis away: what the HTTP side does alone, and how it comes home."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
import redis

from gateway.redis_server import find_binary
from tests.house import LINE_SECRET, House, house, shop
from tests.redis_many import until
from tests.standins.line import sign

ANN, BEE = "U" + "a" * 32, "U" + "b" * 32
FAQ = [{"questions": ["What time do you open?"], "answer": "At nine."}]


class Server:
    """A server that can be ended and started again, with its append-only file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "redis.sock"
        self.url = f"unix://{self.socket}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        options = ["--port", "0", "--unixsocket", str(self.socket), "--appendonly", "yes", "--save", ""]
        self.process = subprocess.Popen(
            [find_binary(), *options], cwd=self.folder, stdout=subprocess.DEVNULL, start_new_session=True
        )

    def start_and_wait(self) -> None:
        """A house that opens before it answers begins without it, and that is another story."""
        self.start()
        until(lambda: self.socket.exists() and self._answers())

    def _answers(self) -> bool:
        try:
            with redis.Redis.from_url(self.url, retry=None) as client:
                return bool(client.ping())
        except redis.ConnectionError:
            return False

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
            self.socket.unlink(missing_ok=True)


@pytest.fixture
def server() -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="cc-", dir="/tmp") as folder:
        one = Server(Path(folder))
        try:
            yield one
        finally:
            one.kill()


async def ready(home: House) -> dict[str, object]:
    async with aiohttp.ClientSession() as http, http.get(f"{home.url}/readyz") as response:
        return {**await response.json(), "http": response.status}


async def test_a_message_is_kept_on_disk_answered_and_brought_home(tmp_path: Path, server: Server) -> None:
    async with house(tmp_path, server.url, {"shop": shop(faq=FAQ)}) as home:
        spool = home.settings.data_dir / "spool"
        event = home.line.text_event(ANN, "What time do you open?")
        assert await home.line.deliver(home.line_hook(), event) == 200
        await home.line.until(lambda: home.line_shows(ANN) == ["At nine."])
        found = await home.until(lambda: ready(home), lambda one: one["status"] == "degraded")
        assert (found["http"], found["spooled"]) == (200, 1)
        assert await home.line.deliver(home.line_hook(), home.line.redelivered(event)) == 200
        server.start()
        await home.until(lambda: ready(home), lambda one: one["status"] == "ok")
        await home.until(lambda: _files(spool), lambda names: names == [])
        assert await home.line.deliver(home.line_hook(), home.line.redelivered(event)) == 200
        await home.quiet()
        assert home.line_shows(ANN) == ["At nine."]
        await home.line_says(ANN, "thanks")
        await home.line.until(lambda: len(home.line_shows(ANN)) == 2)
        await home.quiet()
        session = json.loads(redis.Redis.from_url(server.url).get(f"sm:shop:line:{ANN}"))
    assert [line["message"] for line in session["carried"]][:2] == ["What time do you open?", "At nine."]


async def test_what_was_said_meanwhile_joins_the_live_session(tmp_path: Path, server: Server) -> None:
    server.start_and_wait()
    async with house(tmp_path, server.url, {"shop": shop(faq=FAQ)}, recent=0) as home:
        await home.line_says(ANN, "hello")
        await home.line.until(lambda: len(home.line_shows(ANN)) == 1)
        await home.quiet()
        server.kill()
        await home.line_says(BEE, "hello")  # notices that the inbox is away; left to the workers
        await home.line_says(ANN, "What time do you open?")
        await home.line.until(lambda: len(home.line_shows(ANN)) == 2)
        server.start()
        await home.line.until(lambda: len(home.line_shows(BEE)) == 1)
        await home.until(lambda: _files(home.settings.data_dir / "spool"), lambda names: names == [])
        session = json.loads(redis.Redis.from_url(server.url).get(f"sm:shop:line:{ANN}"))
    assert [line["message"] for line in session["history"]][0::3] == ["hello", "At nine."]


async def test_a_conversation_with_something_in_the_inbox_waits_for_it(tmp_path: Path, server: Server) -> None:
    """Else the newer message would be answered before the older one."""
    server.start_and_wait()
    async with house(tmp_path, server.url, {"shop": shop(faq=FAQ)}) as home:
        await home.line_says(ANN, "hello")
        await home.line.until(lambda: len(home.line_shows(ANN)) == 1)
        server.kill()
        assert await home.line_says(ANN, "What time do you open?") == 200
        assert await home.line_says(ANN, "And when do you close?") == 200
        assert len(home.line_shows(ANN)) == 1
        server.start()
        await home.line.until(lambda: len(home.line_shows(ANN)) >= 2)
        await home.until(lambda: _files(home.settings.data_dir / "spool"), lambda names: names == [])
        await home.quiet()
    assert home.line_shows(ANN)[1] == "At nine."


async def test_with_a_full_spool_the_platform_is_asked_to_wait(tmp_path: Path, server: Server) -> None:
    async with house(tmp_path, server.url, spool_holds=1) as home:
        assert await home.line_says(ANN, "hello") == 200
        body = json.dumps({"destination": "U0", "events": [home.line.text_event(BEE, "hello")]}).encode()
        headers = {"x-line-signature": sign(LINE_SECRET, body)}
        async with aiohttp.ClientSession() as http, http.post(home.line_hook(), data=body, headers=headers) as answer:
            assert (answer.status, answer.headers.get("Retry-After")) == (503, "5")
        assert (await ready(home))["http"] == 503


async def test_a_server_that_takes_nothing_is_no_place_for_messages(tmp_path: Path, server: Server) -> None:
    """It goes on answering whatever only reads."""
    server.start_and_wait()
    async with house(tmp_path, server.url, {"shop": shop(faq=FAQ)}, spool_holds=1) as home:
        found = await ready(home)
        assert (found["http"], found["status"]) == (200, "ok")
        with redis.Redis.from_url(server.url) as client:
            client.config_set("maxmemory", 1)
            found = await ready(home)
            assert (found["http"], found["status"]) == (200, "degraded")
            assert "maxmemory" in str(found["redis"])
            assert await home.line_says(ANN, "What time do you open?") == 200
            assert (await ready(home))["http"] == 503  # nor does the spool take more
            client.config_set("maxmemory", 0)
        await home.until(lambda: ready(home), lambda one: one["status"] == "ok")
        await home.line.until(lambda: home.line_shows(ANN) == ["At nine."])


async def _files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*-*"))
