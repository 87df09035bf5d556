"""The Redis client as all of ours make it, and its errors in our words."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import redis.asyncio as aioredis
from redis.asyncio.client import Pipeline
from redis.asyncio.cluster import ClusterNode, ClusterPipeline
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import ExponentialWithJitterBackoff, NoBackoff
from redis.commands.core import AsyncScript
from redis.exceptions import (
    ClusterDownError,
    NoScriptError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    ResponseError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from memory.bounded import BOUND, bound
from memory.errors import SessionsUnavailable
from memory.shared_connection import SHORT, TWO_WORDS, SharedConnection

T = TypeVar("T")

_MOVED_AWAY = (RedisConnectionError, RedisTimeoutError, ClusterDownError)
CLUSTER = ("redis+cluster", "rediss+cluster")
SENTINEL = ("redis+sentinel", "rediss+sentinel")
_SMALL = 100  # commands of a pipeline that share a connection with others


def connect(
    url: str, *, cluster: bool = False, retries: int = 2, alone: tuple[str, int] | None = None
) -> aioredis.Redis:
    """A client for `redis://`, `rediss://`, `unix://`, `redis+sentinel://host:26379,host:26379/name` or
    `redis+cluster://host:6379,host:6379` (with TLS: `rediss+…`); nothing is sent yet. Answers are bytes.

    A cluster's client is of another class with the same calls; `alone`: of the one node at that host and port. Raises
    ValueError for a URL of another form.
    """
    options: dict[str, Any] = {
        "decode_responses": False,
        "socket_timeout": 5.0,
        "socket_connect_timeout": 2.0,
    }
    scheme = urlsplit(url).scheme
    if scheme != "unix":
        options["socket_keepalive"] = True
    # Two more tries: enough for a connection that the server closed while idle, not enough to hold up an answer.
    retry = Retry(ExponentialWithJitterBackoff(base=0.02, cap=0.2), retries)
    if alone is not None:
        _, given = _several(url, 6379)
        return _Plain(host=alone[0], port=alone[1], retry=retry, **options, **given)
    if cluster or scheme in CLUSTER:
        hosts, given = _several(url, 6379)
        nodes = [ClusterNode(host, port) for host, port in hosts]
        return _Cluster(startup_nodes=nodes, retry=retry, max_connections=1000, **options, **given)  # type: ignore[return-value]
    options |= {"retry": retry, "retry_on_error": [RedisConnectionError, RedisTimeoutError]}
    options["health_check_interval"] = 30
    if scheme in SENTINEL:
        return _found_by_sentinels(url, options)
    return _Plain.from_url(url, **options)


def is_cluster(url: str) -> bool:
    """Whether the URL alone says so."""
    return urlsplit(url).scheme in CLUSTER


def is_sentinels(url: str) -> bool:
    return urlsplit(url).scheme in SENTINEL


class _Script(AsyncScript):
    """Loads itself where it is missing, on the node that has the keys: after a failover that is another one."""

    async def __call__(self, keys: Any = None, args: Any = None, client: Any = None) -> Any:
        where, names = client or self.registered_client, keys or ()
        rest = (len(names), *names, *(args or ()))
        if isinstance(where, _Plain):
            (answer,) = await where.ask((("EVALSHA", self.sha, *rest),))
            if isinstance(answer, NoScriptError):
                (answer,) = await where.ask((("EVAL", self.script, *rest),))
            if isinstance(answer, RedisError):
                raise answer
            return answer
        try:
            return await where.execute_command("EVALSHA", self.sha, *rest)
        except NoScriptError:
            return await where.execute_command("EVAL", self.script, *rest)


def asked(script: Any, keys: Sequence[str], args: Sequence[Any]) -> Awaitable[list[Any]] | None:
    """The script's answer in a list, an error too, for whoever reads errors anyway: NoScriptError where the server does
    not know it yet, and calling the script loads it. None: this client's scripts can only be called."""
    client = script.registered_client
    return client.ask((("EVALSHA", script.sha, len(keys), *keys, *args),)) if isinstance(client, _Plain) else None


class _Plain(aioredis.Redis):
    """Short commands share one connection; whatever blocks, is long or watches has one of its own."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.shared = SharedConnection(self.connection_pool)
        self.waiting = SharedConnection(self.connection_pool)  # for the one who waits to be woken
        retry: Retry = self.connection_pool.connection_kwargs["retry"]
        self._again = retry if retry.get_retries() else None

    def register_script(self, script: Any) -> Any:
        return _Script(self, script)

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        if args[0] == TWO_WORDS:
            (answer,) = await self.ask(((*TWO_WORDS.split(), *args[1:]),))
        elif args[0] in SHORT:
            (answer,) = await self.ask((args,))
        else:
            return await _in_time(super().execute_command(*args, **options))  # type: ignore[no-untyped-call]
        if isinstance(answer, RedisError):
            raise answer
        return self.understood(args[0], answer, options)

    def ask(self, commands: Sequence[tuple[Any, ...]]) -> Awaitable[list[Any]]:
        """The answers over the shared connection, tried again as often as this client does."""
        asked: Awaitable[list[Any]]
        if self._again is None:
            asked = self.shared.ask(commands)
        else:
            asked = self._again.call_with_retry(lambda: self.shared.ask(commands), _try_again)
        return asked if BOUND.get() is None else _in_time(asked)

    def understood(self, name: str, answer: Any, options: dict[str, Any]) -> Any:
        """An answer as the library's callers know it."""
        known: Any = self.response_callbacks
        read = dict.get(known, name)  # the library's own `get` looks for other cases of the name
        if read is None:
            return answer
        return read(answer, **{word: value for word, value in options.items() if word != "keys"})

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> Any:
        return _PlainPipeline(self, transaction, shard_hint)

    async def aclose(self, *args: Any, **kwargs: Any) -> None:
        await self.shared.aclose()
        await self.waiting.aclose()
        await super().aclose(*args, **kwargs)

    async def parse_response(self, connection: Any, command_name: Any, **options: Any) -> Any:
        try:
            return await super().parse_response(connection, command_name, **options)
        except ReadOnlyError as error:
            # Another one was promoted behind the same address: only new connections lead there.
            await self.connection_pool.disconnect(inuse_connections=False)
            await connection.disconnect()
            raise RedisConnectionError("this server is a replica by now") from error


class _PlainPipeline(Pipeline):
    def __init__(self, client: _Plain, transaction: bool, shard_hint: str | None) -> None:
        super().__init__(client.connection_pool, client.response_callbacks, transaction, shard_hint)
        self._client = client

    async def execute(self, raise_on_error: bool = True) -> list[Any]:
        stack: Any = self.command_stack
        others = self.scripts or self.connection or self.watching or len(stack) > _SMALL
        commands = [args for args, _ in stack if args[0] in SHORT]
        if others or not stack or len(commands) < len(stack):
            return await _in_time(super().execute(raise_on_error))
        try:
            if self.is_transaction or self.explicit_transaction:
                *said, answers = await self._client.ask([("MULTI",), *commands, ("EXEC",)])
                if isinstance(answers, RedisError):  # a command was refused, so none was done
                    raise next((one for one in said if isinstance(one, RedisError)), answers)
            else:
                answers = await self._client.ask(commands)
            found, refused = [], False
            for (args, options), answer in zip(stack, answers, strict=True):
                if not isinstance(answer, RedisError):
                    found.append(self._client.understood(args[0], answer, options))
                elif not isinstance(answer, ResponseError):
                    raise answer
                else:
                    refused = True
                    found.append(answer)
            if refused and raise_on_error:
                self.raise_first_error(stack, found)
            return found
        finally:
            await self.reset()  # type: ignore[no-untyped-call]


def _in_time(asked: Awaitable[T]) -> Awaitable[T]:
    """Within what the work it is for may wait in all."""
    limit = bound()
    return asked if limit is None else limit.wait(asked)


async def _try_again(error: Exception) -> None:
    """What was lost is opened anew by the next try."""


class _BySentinels(_Plain):
    watchers: Sentinel | None = None

    async def aclose(self, *args: Any, **kwargs: Any) -> None:
        await super().aclose(*args, **kwargs)
        if self.watchers is not None:
            for one in self.watchers.sentinels:
                await one.aclose()


class _Cluster(aioredis.RedisCluster):
    """Its own kind of error, which the library does not count among Redis' errors, is one of them here."""

    def register_script(self, script: Any) -> Any:
        return _Script(self, script)

    async def initialize(self, *args: Any, **kwargs: Any) -> Any:
        with _as_redis_error():
            return await super().initialize(*args, **kwargs)

    async def execute_command(self, *args: Any, **kwargs: Any) -> Any:
        with _as_redis_error():
            return await _in_time(super().execute_command(*args, **kwargs))

    async def mget(self, keys: Any, *args: Any) -> Any:
        return await self.mget_nonatomic(keys, *args)

    async def pubsub_numsub(self, *args: Any, **kwargs: Any) -> Any:
        """Listeners on all nodes; each knows of its own alone."""
        await self.initialize()

        async def asked(node: Any) -> Any:
            with _as_redis_error():
                return await node.execute_command("PUBSUB NUMSUB", *args)

        told = await asyncio.gather(*map(asked, self.get_nodes()), return_exceptions=True)
        counts: Counter[bytes] = Counter()
        for one in told:
            if isinstance(one, BaseException):  # without a node its listeners are gone as well
                if not isinstance(one, RedisError | OSError):
                    raise one
                continue
            counts.update(dict(one))
        return list(counts.items())

    def pipeline(self, transaction: Any = None, shard_hint: Any = None) -> Any:
        return _Pipeline(self, atomic=bool(transaction))  # type: ignore[abstract]


class _Pipeline(ClusterPipeline):
    def __init__(self, client: _Cluster, atomic: bool) -> None:
        """`atomic`: a transaction over the keys of one slot. The library's own runs an event loop in a thread, in which
        the client's locks can't be taken."""
        super().__init__(client)
        self._atomic = atomic

    async def execute(self, *args: Any, **kwargs: Any) -> Any:
        found: list[Any] = []
        try:
            with _as_redis_error():
                if not self._atomic or not len(self):
                    found = await _in_time(super().execute(*args, **kwargs))
                    return found
                client: Any = self.cluster_client
                await client.initialize()
                queue: Any = self._execution_strategy
                commands = [one.args for one in queue._command_queue]
                here = {"target_nodes": [client.get_node_from_key(commands[0][1])]}
                await self.reset()  # type: ignore[no-untyped-call]
                for command in (("MULTI",), *commands, ("EXEC",)):
                    self.execute_command(*command, **here)
                found = await _in_time(super().execute(*args, **kwargs))
                return found[-1]
        except _MOVED_AWAY as error:
            found = [error]
            raise
        finally:
            # The library's pipeline that is not to try again would go on with a dead node for ever.
            if any(isinstance(one, _MOVED_AWAY) for one in found):
                self.cluster_client._initialize = True


@contextmanager
def _as_redis_error() -> Iterator[None]:
    try:
        yield
    except RedisClusterException as error:
        raise RedisConnectionError(f"the cluster can't be used: {error}") from error
    except (RuntimeError, AttributeError) as error:
        if not _closed_meanwhile(error):
            raise
        raise RedisConnectionError(f"the connection was closed: {error}") from error


def _closed_meanwhile(error: RuntimeError | AttributeError) -> bool:
    """Another call closed the connection while this one was about to write: uvloop's own kind of error, or the
    library's where nothing is left to write to."""
    if isinstance(error, AttributeError):
        return error.obj is None and error.name == "writelines"
    return "closed" in str(error)


def _several(url: str, port: int) -> tuple[list[tuple[str, int]], dict[str, Any]]:
    """The hosts of a URL that may name several, and what else it says, for the client."""
    parts = urlsplit(url)
    user, at, hosts = parts.netloc.rpartition("@")
    scheme = parts.scheme.partition("+")[0]
    found = [urlsplit(f"//{one}") for one in hosts.split(",")]
    if scheme not in ("redis", "rediss") or not all(one.hostname for one in found):
        raise ValueError(
            "not a valid Redis URL: allowed are redis://, rediss:// and their +cluster and +sentinel forms"
        )
    query = f"?{parts.query}" if parts.query else ""
    options: dict[str, Any] = dict(parse_url(f"{scheme}://{user}{at}host{query}"))
    options.pop("host")
    if options.pop("connection_class", None) is not None:
        options["ssl"] = True
    return [(one.hostname or "", one.port or port) for one in found], options


def _found_by_sentinels(url: str, options: dict[str, Any]) -> aioredis.Redis:
    hosts, given = _several(url, 26379)
    name, _, database = urlsplit(url).path.strip("/").partition("/")
    if not name:
        raise ValueError(
            "not a valid Redis URL: redis+sentinel://host:26379,host:26379/NAME names what they watch over"
        )
    own: dict[str, Any] = {
        "retry": Retry(NoBackoff(), 0),
        "socket_timeout": 0.5,
        "socket_connect_timeout": 0.5,
        "ssl": given.get("ssl", False),
    }
    own |= {word: given.pop(f"sentinel_{word}") for word in ("username", "password") if f"sentinel_{word}" in given}
    sentinel = Sentinel(hosts, sentinel_kwargs=own)  # type: ignore[no-untyped-call]
    client: _BySentinels = sentinel.master_for(
        unquote(name), redis_class=_BySentinels, db=int(database or 0), **options, **given
    )
    client.watchers = sentinel
    return client


async def in_company(client: Any, seconds: float) -> None:
    """Waits for something else that is asked of the same client, at most so many seconds: what is asked next goes out
    with it. Of a cluster's not at all."""
    if isinstance(client, _Plain):
        await client.shared.in_company(seconds)


async def many(client: Any, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
    """The answers of these commands, all of them SHORT, in one round trip and as the server gives them: a pipeline of
    the library's costs several times as much. Raises the first error there is."""
    if isinstance(client, _Plain) and len(commands) <= _SMALL:
        answers = await client.ask(commands)
        for one in answers:
            if isinstance(one, RedisError):
                raise one
        return answers
    pipe = client.pipeline(transaction=False)
    for command in commands:
        pipe.execute_command(*command)
    return list(await pipe.execute())


async def run_copied(script: Any, key: str, args: Sequence[Any], copies: int, within: float) -> tuple[Any, int]:
    """The script's answer, and on how many replicas what it wrote stood within that many seconds; no more are waited
    for than `copies`."""
    client, call = script.registered_client, ("EVALSHA", script.sha)
    while True:
        here: dict[str, Any] = {}
        if isinstance(client, _Cluster):
            await client.initialize()
            here["target_nodes"] = node = client.get_node_from_key(key)
        pipe = client.pipeline(transaction=False)  # one connection: WAIT is for what the same one wrote before
        pipe.execute_command(*call, 1, key, *args)
        pipe.execute_command("WAIT", copies, int(within * 1000), **here)
        answer, copied = await pipe.execute(raise_on_error=False)
        if isinstance(answer, NoScriptError):
            call = ("EVAL", script.script)
            continue
        for one in (answer, copied):
            if isinstance(one, Exception):
                raise one
        if not here or client.get_node_from_key(key) is node:
            return answer, int(copied)  # else it was sent on to where the slot is by now, and waited for elsewhere


@contextmanager
def sessions_errors() -> Iterator[None]:
    """The edge: what the Redis library or the system raises becomes SessionsUnavailable."""
    try:
        yield
    except (RedisError, OSError) as error:
        said = tls_trouble(error) or f"{type(error).__name__}: {error}"
        raise SessionsUnavailable(f"short-term memory can't be reached: {said}") from error


def tls_trouble(error: BaseException | None) -> str | None:
    """What is wrong with the encrypted connection, and how to mend it; None: something else is."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            told = error.verify_message
            if "mismatch" in told:
                return f"{told}: write the host into REDIS_URL as its certificate names it"
            return (
                f"its certificate is not trusted ({told}): name who signed it, rediss://…?ssl_ca_certs=/path/to/ca.pem"
            )
        if isinstance(error, ssl.SSLError):
            return f"no TLS is spoken there ({error.reason}): write redis:// in REDIS_URL, or the port that speaks it"
        error = error.__cause__ or error.__context__
    return None
