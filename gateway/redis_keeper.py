"""Stands between a gateway process and its embedded server, so that the server never outlives the gateway, what the
server writes is on disk a second later, and writing its file anew takes no core from those who answer.

Run by path with the standard library alone (`python -I -S redis_keeper.py SYNCS AT SERVER ARGUMENT…`); its standard
input is a pipe of which the gateway holds the other end. End of file there, however the gateway ended, stops the
server. That works from any thread and on any system, which the parent-death signal alone doesn't; the keeper's first
thread lives as long as the keeper and so can give the server that signal (Linux) for the case that the keeper itself is
killed.

With SYNCS `1` the keeper syncs the append-only file each second. A server that is told to do that itself (`everysec`)
does not write what it acknowledges as long as a sync lasts, up to two seconds: killed meanwhile, it loses that.

When that file has grown enough and little is written, or once it has grown far more, the keeper asks the server, at
its socket AT, to write it anew, and gives the child that does it, for some tenths of a second of a core, the lowest
priority at once (Linux). A rewrite holds up the server for some hundredths of a second, which nobody notices in a quiet
moment. A server that decides by itself has made its child before anybody knows; it does so much later, for the case
that nobody asks.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import threading
import time

EVERY = 1.0  # seconds between looks
APPEND_ONLY = "appendonlydir"  # in the server's folder, which is ours
REWRITTEN_FROM = 64 << 20  # bytes of all its files, when they are twice what the last rewrite left
REWRITTEN_AT_LATEST = 256 << 20  # the same, however much is written; a start loads it in a third of a second or more
QUIET = 128 << 10  # bytes a second: what some ten messages leave

PATIENCE = 8.0  # seconds that the server has to write and sync what it holds
_PAUSE_MAX = 600.0  # seconds between two rewrites asked for of which the first left the files as they were
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def main(syncs: str, at: str, *command: str) -> int:
    """Runs the server until it ends or the gateway does; the exit status is the server's."""
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: None)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    server = _spawn(command)
    threading.Thread(target=_look_for_ever, args=(server, at, syncs == "1"), daemon=True).start()
    try:
        return _watch(server, wake_read)
    finally:  # of a server that was killed: they would go on with a file that nobody reads, and hold the lock meanwhile
        for child in _end_children(os.getpid()):
            os.waitpid(child, 0)


def _watch(server: int, wake_read: int) -> int:
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
                _end_children(server)  # which waits for them, and they for a free core
                os.kill(server, signal.SIGTERM)
                deadline = time.monotonic() + PATIENCE
        elif time.monotonic() < deadline:
            time.sleep(0.01)
        else:
            os.kill(server, signal.SIGKILL)
            _, status = os.waitpid(server, 0)
            return 128 + signal.SIGKILL


def _end_children(parent: int) -> list[int]:
    """At once where the system lets them have their priority back: ending takes its time on a core, too."""
    found = children(parent)
    for child in found:
        try:
            os.kill(child, signal.SIGKILL)
            os.sched_setscheduler(child, os.SCHED_OTHER, os.sched_param(0))
        except OSError:  # it may not, or has ended
            continue
    return found


def _look_for_ever(server: int, at: str, syncs: bool) -> None:
    synced: dict[str, tuple[int, int]] = {}
    pause, next_ask, before = EVERY, 0.0, 0
    while True:
        time.sleep(EVERY)
        at_work = give_way(server)  # also of a rewrite that others asked for
        try:
            if syncs:
                sync(APPEND_ONLY, synced)
            total, base = sizes(APPEND_ONLY)
            quiet, before = total - before < QUIET * EVERY, total
            if not has_grown(total, base, quiet=True):
                pause, next_ask = EVERY, 0.0
            elif has_grown(total, base, quiet) and not at_work and time.monotonic() >= next_ask:
                pause = min(2 * pause, _PAUSE_MAX)
                next_ask = time.monotonic() + pause
                ask_for_rewrite(at)
                give_way(server)
        except OSError as error:
            sys.stderr.write(f"{APPEND_ONLY} can't be looked after: {error}\n")
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


def sizes(folder: str) -> tuple[int, int]:
    """Bytes of all files in `folder`, and what of them the last rewrite left. Raises OSError."""
    total = base = 0
    for entry in os.scandir(folder):
        try:
            size = entry.stat().st_size
        except FileNotFoundError:  # rewritten meanwhile
            continue
        total += size
        base += size if ".base." in entry.name else 0
    return total, base


def has_grown(total: int, base: int, quiet: bool) -> bool:
    """Whether files of so many bytes are to be written anew. `quiet`: little is written at the moment."""
    return total >= max(REWRITTEN_FROM if quiet else REWRITTEN_AT_LATEST, 2 * base)


def ask_for_rewrite(at: str) -> None:
    """Returns when the server has made a child for it, or has refused. Raises OSError when it says nothing."""
    import socket  # here, as a start would wait for it

    with socket.socket(socket.AF_UNIX) as server:
        server.settimeout(5)
        server.connect(at)
        server.sendall(b"*1\r\n$12\r\nBGREWRITEAOF\r\n")
        server.recv(512)


def give_way(server: int) -> bool:
    """Lets the children of `server` run only where nobody else wants to; whether there are any."""
    found = children(server)
    for child in found:
        try:
            os.sched_setscheduler(child, os.SCHED_IDLE, os.sched_param(0))
        except ProcessLookupError:  # it has ended
            continue
        except OSError:  # a container may forbid it
            _be_nice(child)
    return bool(found)


def _be_nice(child: int) -> None:
    try:
        os.setpriority(os.PRIO_PROCESS, child, 19)
    except OSError:  # it goes on as it is
        return


def children(parent: int) -> list[int]:
    """Those of its first thread; none where there is no /proc (not Linux)."""
    try:
        with open(f"/proc/{parent}/task/{parent}/children") as file:
            return [int(child) for child in file.read().split()]
    except OSError:  # the kernel was built without it, or `parent` has ended
        return [child for child in _processes() if _parent_of(child) == parent]


def _processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _parent_of(process: int) -> int | None:
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except OSError:
        return None


def _spawn(command: tuple[str, ...]) -> int:
    keeper = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() == keeper:  # else the keeper was killed before the signal was set
            os.execv(command[0], command)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        sys.stderr.flush()
    finally:
        os._exit(127)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
