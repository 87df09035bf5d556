"""Stands between a gateway process and its embedded server, so that the server never outlives the gateway, and what the
server writes is on disk a second later.

Run by path with the standard library alone (`python -I -S redis_keeper.py SYNCS SERVER ARGUMENT…`); its standard input
is a pipe of which the gateway holds the other end. End of file there, however the gateway ended, stops the server. That
works from any thread and on any system, which the parent-death signal alone doesn't; the keeper's first thread lives as
long as the keeper and so can give the server that signal (Linux) for the case that the keeper itself is killed.

With SYNCS `1` the keeper syncs the append-only file each second. A server that is told to do that itself (`everysec`)
does not write what it acknowledges as long as a sync lasts, up to two seconds: killed meanwhile, it loses that.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import threading
import time

EVERY = 1.0  # seconds between syncs
APPEND_ONLY = "appendonlydir"  # in the server's folder, which is ours

PATIENCE = 8.0  # seconds that the server has to write and sync what it holds
_PR_SET_PDEATHSIG = 1


def main(syncs: str, *command: str) -> int:
    """Runs the server until it ends or the gateway does; the exit status is the server's."""
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: None)
    server = _spawn(command)
    if syncs == "1":
        threading.Thread(target=_sync_for_ever, daemon=True).start()
    deadline: float | None = None
    while True:
        pid, status = os.waitpid(server, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if deadline is None:
            readable, _, _ = select.select([0, wake_read], [], [])
            told = wake_read in readable and set(os.read(wake_read, 64)) - {signal.SIGCHLD}
            if told or (0 in readable and not os.read(0, 64)):
                os.kill(server, signal.SIGTERM)
                deadline = time.monotonic() + PATIENCE
        elif time.monotonic() < deadline:
            time.sleep(0.01)
        else:
            os.kill(server, signal.SIGKILL)
            _, status = os.waitpid(server, 0)
            return 128 + signal.SIGKILL


def _sync_for_ever() -> None:
    synced: dict[str, tuple[int, int]] = {}
    while True:
        time.sleep(EVERY)
        try:
            sync(APPEND_ONLY, synced)
        except OSError as error:
            sys.stderr.write(f"{APPEND_ONLY} can't be synced: {error.strerror}\n")
            sys.stderr.flush()


def sync(folder: str, synced: dict[str, tuple[int, int]]) -> None:
    """What grew in `folder` since `synced` was last brought up to date. Raises OSError."""
    for entry in os.scandir(folder):
        try:
            file = os.open(entry.path, os.O_RDONLY)
        except FileNotFoundError:  # rewritten meanwhile, which the server syncs
            continue
        try:
            stat = os.fstat(file)
            mark = stat.st_ino, stat.st_size
            if synced.get(entry.path) != mark:
                os.fsync(file)
                synced[entry.path] = mark
        finally:
            os.close(file)


def _spawn(command: tuple[str, ...]) -> int:
    keeper = os.getpid()
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None
    pid = os.fork()
    if pid:
        return pid
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() == keeper:  # else the keeper was killed before the signal was set
            os.execv(command[0], command)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        sys.stderr.flush()
    finally:
        os._exit(127)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
