"""One connection for many commands: answers find those who asked, and a loss is told to everybody it concerns."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import hiredis
import pytest
import uvloop
from redis.asyncio import Redis
from redis.exceptions import BusyLoadingError, DataError, NoScriptError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from gateway.inbox.listening import Listening
from memory.bounded import GLANCE, bounded
from memory.redis_client import connect, in_company

Said = Callable[[list[bytes]], bytes | None]  # the answer to a command; None: silence

_HANDSHAKE = {b"HELLO": b"%0\r\n", b"CLIENT": b"+OK\r\n", b"SELECT": b"+OK\r\n", b"PING": b"+PONG\r\n"}


class Server:
    """Speaks Redis' protocol and answers as it is told to."""

    def __init__(self, says: Said) -> None:
        self.says = says
        self.connections: list[asyncio.StreamWriter] = []
        self.reads: list[list[list[bytes]]] = []  # what came with each read, the handshake apart
        self.pings = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.append(writer)
        commands = hiredis.Reader()
        while data := await reader.read(65536):
            commands.feed(data)
            some = []
            while (command := commands.gets()) is not False:
                if command[0] in _HANDSHAKE:
                    self.pings += command[0] == b"PING"
                    writer.write(_HANDSHAKE[command[0]])
                    continue
                some.append(command)
                if (answer := self.says(command)) is not None:
                    writer.write(answer)
            if some:
                self.reads.append(some)
        writer.close()


@asynccontextmanager
async def answering(says: Said, *, retries: int = 0, query: str = "") -> AsyncIterator[tuple[Redis, Server]]:
    server = Server(says)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    client = connect(f"redis://127.0.0.1:{port}/0{query}", retries=retries)
    try:
        yield client, server
    finally:
        await client.aclose()
        listening.close()
        for writer in server.connections:
            writer.close()


def echo(command: list[bytes]) -> bytes:
    return b"$%d\r\n%s\r\n" % (len(command[1]), command[1])


async def test_what_is_asked_at_once_goes_out_together_and_each_gets_its_own_answer() -> None:
    async with answering(echo) as (client, server):
        await client.get("first")  # opens the connection
        server.reads.clear()
        found = await asyncio.gather(*(client.get(f"k{n}") for n in range(50)))
        assert found == [b"k%d" % n for n in range(50)]
        assert [len(read) for read in server.reads] == [50]
        assert len(server.connections) == 1


async def test_what_is_in_no_hurry_goes_along_with_what_is_asked_next_or_alone_in_time() -> None:
    async with answering(echo) as (client, server):
        await client.get("first")  # opens the connection
        server.reads.clear()

        async def later(name: str, seconds: float) -> Any:
            await in_company(client, seconds)
            return await client.get(name)

        waiting = [asyncio.create_task(later(name, 60.0)) for name in ("a", "b")]
        await asyncio.sleep(0)
        assert await asyncio.gather(client.get("c"), *waiting) == [b"c", b"a", b"b"]
        assert await later("d", 0.01) == b"d"
        assert [[command[1] for command in read] for read in server.reads] == [[b"c", b"a", b"b"], [b"d"]]


def test_on_uvloop_what_is_asked_in_one_turn_goes_out_together_and_in_order() -> None:
    async def asked() -> None:
        async with answering(echo) as (client, server):
            await client.get("first")
            server.reads.clear()
            found = await asyncio.gather(*(client.get(f"k{n}") for n in range(50)))
            assert found == [b"k%d" % n for n in range(50)]
            assert [command[1] for read in server.reads for command in read] == found
            assert len(server.reads) < 10  # it hands some of many over at once
            server.reads.clear()

            async def later(name: str) -> Any:
                await in_company(client, 60.0)
                return await client.get(name)

            waiting = [asyncio.create_task(later(name)) for name in ("a", "b")]
            await asyncio.sleep(0)
            found = await asyncio.gather(client.get("c"), client.get("d"), *waiting)
            assert found == [b"c", b"d", b"a", b"b"]
            assert [[command[1] for command in read] for read in server.reads] == [[b"c", b"d", b"a", b"b"]]
            client.shared.end()  # type: ignore[attr-defined]
            gone = await asyncio.gather(client.get("e"), client.get("f"), return_exceptions=True)
            assert gone == [b"e", b"f"]  # over a new one
            assert len(server.connections) == 2

    uvloop.run(asked())


async def test_an_error_is_of_whoever_asked_and_of_nobody_else() -> None:
    def says(command: list[bytes]) -> bytes:
        return b"-NOSCRIPT No matching script.\r\n" if command[1] == b"bad" else echo(command)

    async with answering(says) as (client, _):
        good, bad = await asyncio.gather(client.get("good"), client.get("bad"), return_exceptions=True)
        assert (good, type(bad)) == (b"good", NoScriptError)
        pipe: Any = client.pipeline(transaction=False)
        pipe.get("good").get("bad")
        good, bad = await pipe.execute(raise_on_error=False)
        assert (good, type(bad)) == (b"good", NoScriptError)
        with pytest.raises(ResponseError, match="Command # 2"):
            await pipe.get("good").get("bad").execute()


async def test_who_gives_up_leaves_the_others_their_answers() -> None:
    held: list[bytes] = []

    def says(command: list[bytes]) -> bytes | None:
        held.append(echo(command))
        return None

    async with answering(says) as (client, server):
        asked = [asyncio.ensure_future(client.get(name)) for name in ("a", "b", "c")]
        while len(held) < 3:
            await asyncio.sleep(0)
        asked[1].cancel()
        await asyncio.sleep(0)
        server.connections[0].write(b"".join(held))
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert (found[0], type(found[1]), found[2]) == (b"a", asyncio.CancelledError, b"c")


async def test_a_lost_connection_is_told_and_the_next_command_opens_another() -> None:
    silent = True

    def says(command: list[bytes]) -> bytes | None:
        return None if silent else echo(command)

    async with answering(says) as (client, server):
        asked = asyncio.ensure_future(client.get("a"))
        while not server.reads:
            await asyncio.sleep(0)
        server.connections[0].close()
        with pytest.raises(RedisConnectionError, match="closed"):
            await asked
        silent = False
        assert await client.get("b") == b"b"
        assert (len(server.connections), sum(map(len, server.reads))) == (2, 2)  # nothing was sent a second time


async def test_silence_is_a_timeout_for_who_waited_and_costs_the_connection() -> None:
    silent = True

    def says(command: list[bytes]) -> bytes | None:
        return None if silent else echo(command)

    async with answering(says, query="?socket_timeout=0.3") as (client, server):
        with pytest.raises(RedisTimeoutError):
            await client.get("a")
        silent = False
        assert await client.get("b") == b"b"
        assert len(server.connections) == 2


async def test_a_client_that_tries_again_does_so() -> None:
    tries: list[bytes] = []

    async with answering(lambda command: None, retries=2) as (client, server):

        def says(command: list[bytes]) -> bytes | None:
            tries.append(command[1])
            if len(tries) == 3:
                return echo(command)
            server.connections[-1].close()
            return None

        server.says = says
        assert await client.get("a") == b"a"
        assert tries == [b"a"] * 3


async def test_a_replica_is_left_for_a_new_connection() -> None:
    readonly = True

    def says(command: list[bytes]) -> bytes:
        return b"-READONLY You can't write against a read only replica.\r\n" if readonly else b"+OK\r\n"

    async with answering(says) as (client, server):
        with pytest.raises(RedisConnectionError, match="replica"):
            await client.set("a", 1)
        readonly = False
        assert await client.set("a", 1) is True
        assert len(server.connections) == 2


async def test_after_a_long_silence_the_other_side_is_asked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    async with answering(echo) as (client, server):
        await client.get("a")
        asked = server.pings
        monkeypatch.setattr("memory.shared_connection.IDLE", -1.0)
        assert await client.get("b") == b"b"
        assert (server.pings, len(server.connections)) == (asked + 1, 1)


async def test_nobody_there_is_told_as_nothing_sent() -> None:
    client = connect("redis://127.0.0.1:1", retries=0)
    found = await asyncio.gather(client.get("a"), client.get("b"), return_exceptions=True)
    assert [type(error) for error in found] == [RedisConnectionError] * 2
    assert all(" connecting to " in str(error) for error in found)
    await client.aclose()


async def test_what_no_command_can_hold_is_refused_before_anything_is_sent() -> None:
    async with answering(echo) as (client, server):
        with pytest.raises(DataError):
            await client.set("a", None)  # type: ignore[arg-type]
        with pytest.raises(UnicodeEncodeError):
            await client.get("\ud800")
        assert await client.get("a") == b"a"
        assert server.reads == [[[b"GET", b"a"]]]


async def test_who_waits_for_several_answers_and_gives_up_leaves_none_of_them_to_others() -> None:
    held: list[bytes] = []

    def says(command: list[bytes]) -> bytes | None:
        held.append({b"MULTI": b"+OK\r\n", b"EXEC": b"*1\r\n$5\r\nmine!\r\n"}.get(command[0]) or echo(command))
        return None

    async with answering(says) as (client, server):
        pipe: Any = client.pipeline(transaction=True)
        transaction = asyncio.ensure_future(pipe.get("mine").execute())
        while len(held) < 3:
            await asyncio.sleep(0)
        others = asyncio.ensure_future(client.get("theirs"))
        while len(held) < 4:
            await asyncio.sleep(0)
        server.connections[0].write(held[0])
        transaction.cancel()  # half of its answers are there
        await asyncio.sleep(0.01)
        server.connections[0].write(b"".join(held[1:]))
        assert await others == b"theirs"


async def test_the_end_in_the_middle_of_an_answer_is_told_to_all_and_nothing_of_it_is_left() -> None:
    cut = True

    def says(command: list[bytes]) -> bytes | None:
        return (b"$100\r\nhalf of it" if command[1] == b"a" else None) if cut else echo(command)

    async with answering(says) as (client, server):
        asked = [asyncio.ensure_future(client.get(name)) for name in ("a", "b")]
        while sum(map(len, server.reads)) < 2:
            await asyncio.sleep(0)
        server.connections[0].close()
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(one) for one in found] == [RedisConnectionError] * 2
        cut = False
        assert await client.get("c") == b"c"


async def test_an_answer_that_comes_too_late_is_nobody_elses() -> None:
    silent = True

    def says(command: list[bytes]) -> bytes | None:
        return None if silent else echo(command)

    async with answering(says, query="?socket_timeout=0.2") as (client, server):
        with pytest.raises(RedisTimeoutError):
            await client.get("a")
        silent = False
        asked = asyncio.ensure_future(client.get("b"))
        server.connections[0].write(echo([b"GET", b"a"]))
        assert await asked == b"b"


async def test_what_is_asked_while_it_opens_waits_for_that_and_whoever_gives_up_does_not_stop_it() -> None:
    async with answering(echo) as (client, server):
        asked = [asyncio.ensure_future(client.get(f"k{n}")) for n in range(3)]
        await asyncio.sleep(0)
        asked[0].cancel()
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert (type(found[0]), found[1:]) == (asyncio.CancelledError, [b"k1", b"k2"])
        assert len(server.connections) == 1


async def test_a_large_answer_is_read_whole_and_those_behind_it_too() -> None:
    large = b"x" * 20_000_000

    def says(command: list[bytes]) -> bytes:
        return b"$%d\r\n%s\r\n" % (len(large), large) if command[1] == b"large" else echo(command)

    async with answering(says) as (client, _):
        found = await asyncio.gather(client.get("large"), client.get("small"))
        assert (len(found[0]), found[1]) == (len(large), b"small")


async def test_a_server_that_is_loading_says_so_to_who_asked_and_the_connection_stays() -> None:
    loading = True

    def says(command: list[bytes]) -> bytes:
        return b"-LOADING Redis is loading the dataset in memory\r\n" if loading else echo(command)

    async with answering(says) as (client, server):
        with pytest.raises(BusyLoadingError):
            await client.get("a")
        loading = False
        assert await client.get("a") == b"a"
        assert len(server.connections) == 1


async def test_a_process_that_was_stopped_hears_what_was_answered_meanwhile(redis_url: str) -> None:
    client = connect(f"{redis_url}{'&' if '?' in redis_url else '?'}socket_timeout=0.3", retries=0)
    await client.set("a", "there")
    asked = asyncio.ensure_future(client.get("a"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    time.sleep(1)
    assert await asked == b"there"
    await client.delete("a")
    await client.aclose()


async def test_what_a_stopped_server_was_asked_is_done_once(redis_url: str) -> None:
    client = connect(f"{redis_url}{'&' if '?' in redis_url else '?'}socket_timeout=0.3", retries=0)
    await client.set("count", 0)
    server = (await client.info("server"))["process_id"]
    os.kill(server, signal.SIGSTOP)
    try:
        found = await asyncio.gather(*(client.incrby("count", 1) for _ in range(3)), return_exceptions=True)
    finally:
        os.kill(server, signal.SIGCONT)
    assert [type(one) for one in found] == [RedisTimeoutError] * 3
    async with asyncio.timeout(60):
        while int(await client.get("count")) != 3:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    assert int(await client.get("count")) == 3  # what went out was done late, and not again
    await client.delete("count")
    await client.aclose()


async def test_answers_are_what_the_library_makes_of_them(redis_url: str) -> None:
    client = connect(redis_url, retries=0)
    assert await client.set("a", 1, ex=100) is True
    assert await client.set("a", 2, nx=True) is None
    assert await client.expire("a", 50) is True
    assert await client.hset("h", mapping={"x": "1", "y": "2"}) == 2
    assert await client.hincrbyfloat("h", "x", 0.5) == 1.5
    assert await client.zadd("z", {"m": 1.5}) == 1
    assert await client.zscore("z", "m") == 1.5
    assert await client.mget("a", "nothing") == [b"1", None]
    assert await client.pubsub_numsub("nobody") == [(b"nobody", 0)]
    script = client.register_script("return {KEYS[1], ARGV[1], redis.call('EXISTS', KEYS[1])}")
    assert await script(keys=["a"], args=["b"]) == [b"a", b"b", 1]
    pipe: Any = client.pipeline(transaction=True)
    assert await pipe.set("a", 3).zscore("z", "m").hget("h", "y").execute() == [True, 1.5, b"2"]
    with pytest.raises(ResponseError):
        await pipe.set("a", 4).incrby("h", 1).execute()
    assert await client.get("a") == b"4"  # as a transaction of Redis is: the rest was done
    await client.delete("a", "h", "z")
    await client.aclose()


async def test_nothing_of_a_url_is_lost(redis_url: str) -> None:
    """A wrong password, a database, a name: the shared connection is opened as the library opens all others."""
    named = connect(f"{redis_url}{'&' if '?' in redis_url else '?'}client_name=shared-test", retries=0)
    await named.get("a")
    assert [one["name"] for one in await named.client_list() if one["name"] == "shared-test"] != []
    await named.aclose()
    async with answering(lambda command: b"-ERR unexpected\r\n") as (client, _):
        plain = client.connection_pool.connection_kwargs
        secure = connect(f"rediss://127.0.0.1:{plain['port']}", retries=0)
        with pytest.raises((RedisConnectionError, RedisTimeoutError, ssl.SSLError)):
            await secure.get("a")
        await secure.aclose()


async def test_who_is_woken_takes_one_out_and_who_gives_up_takes_none(redis_url: str) -> None:
    client = connect(redis_url, retries=0)
    ear = Listening(client, "cc:i:wake", "cc:i:own")
    await client.rpush("cc:i:wake", 1, 2)
    assert await ear.once_woken(("LLEN", "cc:i:wake"), 60.0, None, None) == 1
    await client.delete("cc:i:wake")
    async with asyncio.timeout(60):
        waiting = asyncio.create_task(ear.once_woken(("LLEN", "cc:i:wake"), 60.0, None, None))
        while not (await client.info("clients"))["blocked_clients"]:
            await asyncio.sleep(0.01)
        waiting.cancel()
        while (await client.info("clients"))["blocked_clients"]:
            await asyncio.sleep(0.01)
    await client.rpush("cc:i:wake", 1)
    assert await client.llen("cc:i:wake") == 1
    await client.aclose()


async def test_who_waits_asks_in_the_same_write_and_hears_both_answers_at_once() -> None:
    def says(command: list[bytes]) -> bytes:
        return b"*2\r\n$1\r\nw\r\n$1\r\n1\r\n" if command[0] == b"BLPOP" else echo(command)

    async with answering(says) as (client, server):
        ear = Listening(client, "w", "own")
        for key in ("a", "b"):
            assert await ear.once_woken(("GET", key), 4.0, None, None) == key.encode()
        assert [[command[0] for command in read] for read in server.reads] == 2 * [[b"BLPOP", b"GET"]]


async def test_a_server_that_hangs_does_not_keep_who_is_to_stop() -> None:
    async with answering(lambda _: None) as (client, _):
        ear = Listening(client, "w", "own")
        loop = asyncio.get_running_loop()
        stop = loop.create_future()
        loop.call_later(0.05, stop.set_result, None)
        began = loop.time()
        with pytest.raises(RedisConnectionError):
            await ear.once_woken(("GET", "a"), 4.0, None, stop)
        assert loop.time() - began < 4.0


async def test_what_one_piece_of_work_waits_in_vain_for_does_not_add_up() -> None:
    """As a server that hangs does not answer the tenth call either, which the caller makes all the same."""
    async with asyncio.timeout(20), answering(lambda command: None, retries=2) as (client, _):
        with bounded(0.2):
            for _ in range(5):
                with pytest.raises(RedisTimeoutError):
                    await client.get("a")
                with pytest.raises(RedisTimeoutError):
                    await client.hgetall("a")
                with pytest.raises(RedisTimeoutError):
                    await client.pipeline(transaction=False).get("a").hgetall("b").execute()


async def test_a_server_that_answers_again_gets_the_whole_patience_again() -> None:
    said: dict[bytes, bytes | None] = {b"vain": None, b"good": b"$2\r\nok\r\n"}
    async with answering(lambda command: said[command[1]]) as (client, server):
        with bounded(0.5):
            with pytest.raises(RedisTimeoutError):
                await client.get("vain")
            server.connections[0].write(b"$-1\r\n")  # late, and of nobody's any more
            assert await client.get("good") == b"ok"
            late = asyncio.create_task(client.get("vain"))
            await asyncio.sleep(3 * GLANCE)
            server.connections[0].write(b"$4\r\nlate\r\n")
            assert await late == b"late"


async def test_what_a_piece_of_work_began_is_as_patient_as_ever_once_that_is_over() -> None:
    async with answering(lambda command: None) as (client, server):
        with bounded(0.2):
            with pytest.raises(RedisTimeoutError):
                await client.get("a")
            go = asyncio.Event()

            async def later() -> Any:
                await go.wait()
                return await client.get("b")

            begun = asyncio.create_task(later())
        go.set()
        await asyncio.sleep(3 * GLANCE)
        server.connections[0].write(b"$-1\r\n$4\r\nlate\r\n")
        assert await begun == b"late"
