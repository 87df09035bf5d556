"""The embedded server's socket: where it lies, and who answers there."""

from __future__ import annotations

import hashlib
import os
import socket
import stat
import tempfile
from enum import Enum
from pathlib import Path

_SOCKET_PATH_MAX = 103  # bytes with the closing NUL: 104 on macOS, 108 on Linux


class NoFolder(Exception):
    """No folder is private to us and has a path short enough; the message tells each and why."""


def choose(home: Path, recorded: Path) -> Path:
    """The socket's path for the server of `home`: the recorded one while its folder stands, else in a folder of ours.

    The name comes from the directory's device and inode: a copied data directory gets another. Raises NoFolder.
    """
    identity = home.stat()
    name = hashlib.sha256(f"{identity.st_dev}:{identity.st_ino}".encode()).hexdigest()[:16] + ".sock"
    bases = [recorded.parent] if recorded.name == name and recorded.parent.is_dir() else []
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_absolute() and Path(runtime).is_dir():
        bases.append(Path(runtime, "chat-chat"))
    bases += [Path(base, f"chat-chat-{os.geteuid()}") for base in dict.fromkeys((tempfile.gettempdir(), "/tmp"))]
    refused = []
    for base in bases:
        if len(os.fsencode(base / name)) > _SOCKET_PATH_MAX:
            refused.append(f"{base} is too long a path")
        elif (why := _make_private(base)) is not None:
            refused.append(why)
        else:
            return base / name
    raise NoFolder("; ".join(refused))


class Silent(Enum):
    AWAY = "no server at the socket"
    READING = "it reads its append-only file"


def ask(path: Path) -> str | Silent:
    """The `dir` of the server at this socket once it serves. Asked without the client, whose loading would hold up
    whoever starts."""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(2)
        try:
            line.connect(str(path))
            line.sendall(b"PING\r\nCONFIG GET dir\r\n")
            said = line.makefile("rb")
            pong = said.readline()
            if pong.startswith(b"-LOADING"):
                return Silent.READING
            found = [said.readline() for _ in range(4)]  # *2, $3, dir, and how long its value is
            if pong != b"+PONG\r\n" or found[2] != b"dir\r\n":
                return Silent.AWAY
            home = said.read(size := int(found[3][1:]))
            return os.fsdecode(home) if len(home) == size else Silent.AWAY
        except (OSError, ValueError):
            return Silent.AWAY


def _make_private(folder: Path) -> str | None:
    """Makes `folder` ours alone; else why not: in a shared /tmp somebody may have been there first."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            return f"{folder} belongs to somebody else"
        if stat.S_IMODE(found.st_mode) != 0o700:
            folder.chmod(0o700)
    except OSError as error:
        return f"{folder}: {error.strerror}"
    return None
