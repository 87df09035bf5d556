"""Processes: how `run`, `serve`, `worker` and `cleanup` begin, are watched and end.

Each loads its own half of the house when it begins, and no more: `run` not before its workers do the same beside it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import re
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import click

from config import cores
from config.extras import install
from config.settings import Settings
from config.stopping import stopped
from gateway import heap, logs
from gateway.admin_key import KEY_FILE, admin_key
from gateway.cli import Failed, in_loop
from gateway.redis_server import EmbeddedRedis
from gateway.spans import NO_SPANS, Spans

if TYPE_CHECKING:
    from config.tenants import Tenants

log = logging.getLogger(__name__)

CLEANUP_EVERY = 60.0  # seconds
ALIVE_EVERY = 5.0  # seconds between signs of life for a supervisor
PARENT_EVERY = 1.0  # seconds between looks whether the parent still lives
Begin = Callable[[], Coroutine[Any, Any, Any]]  # of what goes on beside something else
_ENDING = (signal.SIGINT, signal.SIGTERM)
LONGEST_RESTART = 15.0  # seconds before a worker that keeps dying is started again


@contextmanager
def _set_up(service: str, host: str | None = None) -> Iterator[tuple[Settings, Spans]]:
    """Settings, checked, logging with every secret masked, and traces. `host`: where the HTTP side listens."""
    settings = Settings.from_env()
    if host is not None:
        check_exposure(settings, host)
    if settings.longterm_url and find_spec("psycopg_pool") is None:
        raise Failed(f"LONGTERM_URL needs PostgreSQL's driver: {install('postgres')}")
    logging_ = logs.setup(settings.log_level, settings.log_format)
    for secret in _secrets_of(settings):
        logs.register_secret(secret)
    try:
        with _traced(settings, service, logging_) as spans:
            yield settings, spans
    finally:
        logging_.close()


def _secrets_of(settings: Settings) -> list[str | None]:
    passwords = re.findall(r"://[^/?#@]*?:([^/?#]*)@", f"{settings.redis_url} {settings.longterm_url}")
    keys = (settings.openrouter_api_key, settings.embeddings_api_key, settings.admin_api_key)
    written = settings.variables.get("ENCRYPTION_KEY", "").replace(",", " ").split()
    return [*keys, *passwords, *map(unquote, passwords), *written]


@contextmanager
def _traced(settings: Settings, service: str, logging_: logs.Logging) -> Iterator[Spans]:
    """Where a message's time goes, told to the collector at OTEL_EXPORTER_OTLP_ENDPOINT; without one nothing is."""
    if not settings.otel_exporter_otlp_endpoint:
        yield NO_SPANS
        return
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.exporter") is None:
        raise Failed(f"OTEL_EXPORTER_OTLP_ENDPOINT needs OpenTelemetry: {install('otel')}")
    from importlib.metadata import version

    from gateway.tracing import Tracing

    ratio = settings.otel_traces_sampler_arg
    tracing = Tracing(settings.otel_exporter_otlp_endpoint, ratio, service, version("chat-chat"))
    logging_.trace(tracing.ids)
    try:
        yield tracing
    finally:
        tracing.close()


@contextmanager
def use_redis(settings: Settings) -> Iterator[tuple[str, EmbeddedRedis | None]]:
    """The URL to use, and the embedded server where REDIS_URL is unset. From the main thread."""
    if settings.redis_url:
        yield settings.redis_url, None
        return
    server = EmbeddedRedis(settings.data_dir)
    try:
        yield server.start(), server
    finally:
        server.stop()


def _tenants(settings: Settings) -> Tenants:
    from config.tenants import Tenants

    tenants = Tenants(settings)
    tenants.load()
    for tenant in tenants.all():
        _mask(tenant)
    tenants.on_change(lambda _, old, new: _mask(new))
    return tenants


def _admin_key(settings: Settings) -> tuple[str, bool]:
    key, made = admin_key(settings.admin_api_key, settings.data_dir)
    logs.register_secret(key)
    return key, made


def _mask(tenant: Any) -> None:
    """Tokens and secrets of a tenant's channels are never shown in a log."""
    if tenant is None:
        return
    logs.register_secret(tenant.llm.api_key.get_secret_value() if tenant.llm.api_key else None)
    for channel in tenant.channels.values():
        for name in ("channel_secret", "channel_access_token", "bot_token", "webhook_secret"):
            secret = getattr(channel, name, None)
            logs.register_secret(secret.get_secret_value() if secret else None)


def _stop_on_signals() -> asyncio.Event:
    """Set by Ctrl-C or SIGTERM; a second one ends the process at once."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def asked() -> None:
        if stop.is_set():
            os._exit(130)
        stop.set()

    for number in _ENDING:
        loop.add_signal_handler(number, asked)
    return stop


@contextmanager
def _loading() -> Iterator[None]:
    """What is loaded within keeps the loop from hearing anything for a second and more: who tells it to end then gets a
    KeyboardInterrupt there, as nothing is under way yet. Behind `_stop_on_signals`."""
    handlers = {number: signal.signal(number, signal.default_int_handler) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


@asynccontextmanager
async def _beside(*work: Begin) -> AsyncIterator[None]:
    """Runs these beside the body; they end with it. They are made here: where what stands before the body fails, none
    is left that nobody waits for."""
    made = [begin() for begin in work]
    tasks = [asyncio.create_task(one, name=getattr(one, "__qualname__", None)) for one in made]
    for task in tasks:
        task.add_done_callback(_tell)
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _tell(task: asyncio.Task[Any]) -> None:
    """At once, and not when everything ends: what should go on has stopped."""
    if not task.cancelled() and (error := task.exception()) is not None:
        place = "".join(traceback.format_tb(error.__traceback__))  # its own words may quote somebody's
        log.error("%s ended with an error: %s\n%s", task.get_name(), type(error).__name__, place)


def check_exposure(settings: Settings, host: str) -> None:
    """Beyond this machine nothing is served by accident: keys would travel in the clear, under a key nobody chose."""
    try:
        near = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        near = False
    if not (near or settings.admin_api_key or settings.tls_proxy):
        raise Failed(
            f"--host {host} can be reached from other machines: set ADMIN_API_KEY, or TLS_PROXY=true where an https "
            "proxy stands before it; or leave --host out"
        )


def _check_port(host: str, port: int) -> None:
    """A clear line instead of the server's own."""
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise Failed(f"can't listen on {host}:{port} ({error.strerror}): choose another with --port") from error


def _ended(main: Coroutine[Any, Any, int]) -> int:
    """Runs it; the exit status."""
    try:
        return in_loop(main)
    except KeyboardInterrupt:  # while it loaded
        main.close()  # it may not have begun
        return 0


# -- serve, worker -----------------------------------------------------------------------------------------------------


def serve_alone(host: str, port: int) -> int:
    _check_port(host, port)
    with _set_up("serve", host) as (settings, spans), use_redis(settings) as (url, server):
        key, made = _admin_key(settings)

        async def main() -> int:
            stop = _stop_on_signals()
            with _loading():
                from gateway import front_door
                from gateway.serving import serve

                tenants = _tenants(settings)
            if made:
                click.echo(f"Admin key, made just now and kept in {settings.data_dir / KEY_FILE}: {key}")
            watching: list[Begin] = [partial(tenants.watch, stop), heap.settle]
            if server:
                watching.append(partial(server.supervise, stop))
            async with front_door.door(settings, tenants, url, key, spans=spans) as door, _beside(*watching):
                return await serve(
                    door, host, port, stop, lambda bound: log.info("serving on http://%s:%d", host, bound)
                )

        return _ended(main())


def work_alone(concurrency: int, parent: int | None) -> int:
    with _set_up("worker") as (settings, spans), use_redis(settings) as (url, server):

        async def main() -> int:
            stop = _stop_on_signals()
            with _loading():
                from gateway import app

                if parent:  # it tells the same
                    logging.getLogger("config.tenants").setLevel(logging.CRITICAL)
                tenants = _tenants(settings)
            watching: list[Begin] = [partial(tenants.watch, stop), heap.settle, partial(cores.keep, stop)]
            if server:
                watching.append(partial(server.supervise, stop))
            if parent:
                watching.append(partial(_watch_parent, parent, stop))
            if settings.alive_file:
                watching.append(partial(_touch, settings.alive_file))
            working = app.work(settings, tenants, url, concurrency=concurrency, spans=spans)
            async with working as run, _beside(*watching):
                await run(stop)
            return 0

        return _ended(main())


async def _touch(path: Path) -> None:
    """As long as this process gets on with its work."""
    while True:
        await asyncio.to_thread(path.touch)
        await asyncio.sleep(ALIVE_EVERY)


async def _watch_parent(parent: int, stop: asyncio.Event) -> None:
    """A worker does not outlive the process tree it belongs to."""
    while os.getppid() == parent:  # no event tells of a parent's end
        if await stopped(stop, PARENT_EVERY):
            return
    log.warning("the parent process is gone: stopping")
    stop.set()


# -- run ---------------------------------------------------------------------------------------------------------------


def run_all(host: str, port: int, workers: int) -> int:
    _check_port(host, port)
    with _set_up("serve", host) as (settings, spans), use_redis(settings) as (url, server):
        key, made = _admin_key(settings)  # before a worker begins, which would tell beside it where that can't be

        async def main() -> int:
            stop = _stop_on_signals()
            workers_stop, redis_stop = asyncio.Event(), asyncio.Event()
            crew = asyncio.gather(*(_keep_worker(url, workers_stop) for _ in range(workers)))
            try:
                await asyncio.sleep(0)  # the workers begin; what follows keeps the loop busy for a second
                with _loading():
                    from gateway import front_door
                    from gateway.serving import serve

                    tenants = _tenants(settings)
                watching: list[Begin] = [
                    partial(tenants.watch, stop),
                    heap.settle,
                    partial(_clean_up, settings, tenants, url, stop),
                ]
                if server:
                    watching.append(partial(server.supervise, redis_stop))
                async with front_door.door(settings, tenants, url, key, spans=spans) as door, _beside(*watching):
                    code = await serve(
                        door,
                        host,
                        port,
                        stop,
                        lambda bound: _greet(settings, tenants, host, bound, key if made else None),
                    )
                    # The door is shut; the workers finish what they have in hand, while Redis is still watched over.
                    workers_stop.set()
                    await crew
                    return code
            finally:
                workers_stop.set()
                await crew

        return _ended(main())


# The very code that runs here, whatever the current folder holds: an operator's own `config/` is no package of ours.
_OWN_CODE = os.pathsep.join(filter(None, (str(Path(__file__).resolve().parent.parent), os.environ.get("PYTHONPATH"))))


async def _keep_worker(url: str, stop: asyncio.Event) -> None:
    """One worker process, started again when it dies."""
    pause = 0.0
    while not stop.is_set():
        began = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-P", "-m", "gateway", "worker", "--parent", str(os.getpid())),
            env={**os.environ, "REDIS_URL": url, "PYTHONPATH": _OWN_CODE},
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for us: we tell the workers when the door is shut
        )
        ended, stopping = asyncio.create_task(process.wait()), asyncio.create_task(stop.wait())
        await asyncio.wait({ended, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not ended.done():
            process.terminate()
            await ended
            return
        pause = 0.0 if time.monotonic() - began > 60 else min(max(2 * pause, 0.5), LONGEST_RESTART)
        log.error("a worker ended with %s; another one starts in %.1f s", process.returncode, pause)
        await stopped(stop, pause)


async def _clean_up(settings: Settings, tenants: Tenants, url: str, stop: asyncio.Event) -> None:
    if await stopped(stop, CLEANUP_EVERY):
        return
    from gateway import app

    async with app.tidy(settings, tenants, url) as cleanup:
        while True:
            try:
                await cleanup.run()
            except Exception as error:  # noqa: BLE001 - the schedule goes on: Redis or a disk may be away just now
                log.error("clean-up failed: %s", error)
            if await stopped(stop, CLEANUP_EVERY):
                return


def _greet(settings: Settings, tenants: Tenants, host: str, port: int, made: str | None) -> None:
    """What to do next, in three lines."""
    shop = tenants.get("demo") or next(iter(tenants.all()), None)
    name = shop.id if shop else "demo"
    where = f"http://{host}:{port}"
    web = any(channel.platform == "web" for one in tenants.all() for channel in one.channels.values())
    terminal = f"another terminal:  .venv/bin/chat-chat chat --tenant {name}"
    lines = [
        f"chat-chat is ready on {where} with {len(tenants.all())} tenant(s); {_who_answers(settings, tenants)}.",
        f"1. Talk to the bot in a browser at {where}/ or in {terminal}" if web else f"1. Talk to the bot in {terminal}",
        f"2. Make it yours: edit {settings.config_dir / 'tenants' / f'{name}.yaml'}; saved changes count at once.",
        "3. Connect LINE or Telegram as that file says, then:  .venv/bin/chat-chat webhooks set",
    ]
    if shop is None:
        lines[1:] = [
            "Make a first shop in another terminal; it is answered for at once:  .venv/bin/chat-chat tenants new"
        ]
    if made:
        lines.append(f"Admin key, made just now and kept in {settings.data_dir / KEY_FILE}: {made}")
    click.echo("\n".join(lines))


def _who_answers(settings: Settings, tenants: Tenants) -> str:
    """Which models answer: the key may be the environment's or a tenant's own."""
    shops = tenants.all()
    keyed = [tenant for tenant in shops if tenant.llm.api_key]
    models = sorted({agent.model for tenant in keyed for agent in tenant.agents.values()})
    if not shops and settings.openrouter_api_key:
        return settings.openrouter_model
    if not models:
        return "no LLM key: FAQ and rules answer"
    told = ", ".join(models) if len(models) <= 3 else f"{len(models)} models"
    return told if len(keyed) == len(shops) else f"{told} for {len(keyed)} of them, FAQ and rules for the others"


# -- cleanup -----------------------------------------------------------------------------------------------------------


async def clean_up_once(settings: Settings, tenant: str | None, dry_run: bool) -> list[str]:
    from config.tenants import Tenants
    from gateway import app

    tenants = Tenants(settings)
    tenants.load()
    if tenant is not None and tenants.get(tenant) is None:
        raise Failed(f"there is no tenant {tenant!r} that works: see `chat-chat tenants check`")
    with use_redis(settings) as (url, _):
        async with app.tidy(settings, tenants, url) as cleanup:
            report = await cleanup.run(tenant, dry_run=dry_run)
    return report.lines(dry_run=dry_run)
