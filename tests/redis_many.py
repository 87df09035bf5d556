"""Real clusters and Sentinel set-ups for tests: the embedded server's binary, on loopback."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import redis
from redis.exceptions import RedisError

from gateway.redis_server import find_binary

NODE_TIMEOUT = 1500  # ms without an answer until a primary is taken for dead


class Node:
    """One server's process."""

    def __init__(self, folder: Path, port: int, *options: str) -> None:
        self.port = port
        self._folder = folder / str(port)
        self._options = options
        self._folder.mkdir()
        self.process = self._launch()

    def _launch(self) -> subprocess.Popen[bytes]:
        with (self._folder / "log").open("ab") as output:
            return subprocess.Popen(
                [str(find_binary()), *self._options, "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""],
                cwd=self._folder,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def client(self) -> redis.Redis:
        return redis.Redis(port=self.port, socket_timeout=2, retry=None, decode_responses=True)

    def asked(self, *command: str | int) -> object:
        with self.client as client:
            return client.execute_command(*command)

    def answers(self) -> bool:
        assert self.process.poll() is None, (self._folder / "log").read_text()[-2000:]
        try:
            return bool(self.asked("PING"))
        except (RedisError, OSError):
            return False

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def start_again(self) -> None:
        self.process = self._launch()
        until(self.answers)


class _Many:
    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="cc-", dir="/tmp"))
        self.nodes: list[Node] = []

    def add(self, *options: str) -> Node:
        node = Node(self.folder, free_port(), *options)
        self.nodes.append(node)
        until(node.answers)
        return node

    def end(self) -> None:
        for node in self.nodes:
            node.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Cluster(_Many):
    """Three primaries, a replica each."""

    def __init__(self) -> None:
        super().__init__()
        options = ("--cluster-enabled", "yes", "--cluster-node-timeout", str(NODE_TIMEOUT), "--appendonly", "yes")
        # A replica that has just been linked may take over at once.
        options += ("--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0")
        primaries = [self.add(*options) for _ in range(3)]
        replicas = [self.add(*options) for _ in range(3)]
        for number, node in enumerate(primaries):
            node.asked("CLUSTER", "ADDSLOTSRANGE", number * 5461, 16383 if number == 2 else number * 5461 + 5460)
            node.asked("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for node in self.nodes[1:]:
            node.asked("CLUSTER", "MEET", "127.0.0.1", self.nodes[0].port)
        until(lambda: all(self._knows(node) for node in self.nodes))
        for primary, replica in zip(primaries, replicas, strict=True):
            replica.asked("CLUSTER", "REPLICATE", str(primary.asked("CLUSTER", "MYID")))
        until(self.whole)

    @property
    def url(self) -> str:
        return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    def _knows(self, node: Node) -> bool:
        with node.client as client:
            return int(client.cluster("INFO")["cluster_known_nodes"]) == len(self.nodes)

    def whole(self) -> bool:
        """Whether every slot is served, as everybody alive sees it, and every primary has its replica in step."""
        alive = [node for node in self.nodes if node.process.poll() is None]
        for node in alive:
            with node.client as client:
                if client.cluster("INFO")["cluster_state"] != "ok":
                    return False
                told = client.info("replication")
                linked = told.get("connected_slaves", 0) if told["role"] == "master" else 1
                if told["role"] == "slave" and told["master_link_status"] != "up":
                    return False
                if len(alive) == len(self.nodes) and not linked:
                    return False
        return True

    def primary_of(self, key: str) -> Node:
        for node in self.nodes:
            if node.process.poll() is None:
                slot = int(str(node.asked("CLUSTER", "KEYSLOT", key)))
                for first, last, (_, port, *_rest), *_ in node.asked("CLUSTER", "SLOTS"):  # type: ignore[attr-defined]
                    if first <= slot <= last:
                        return next(one for one in self.nodes if one.port == int(port))
        raise AssertionError("no node is alive")

    def empty(self) -> None:
        for node in self.nodes:
            if node.asked("ROLE")[0] == "master":  # type: ignore[index]
                node.asked("FLUSHALL")


class Sentinels(_Many):
    """A primary with a replica, and three that watch over them."""

    def __init__(self) -> None:
        super().__init__()
        options = ("--appendonly", "yes", "--repl-diskless-sync-delay", "0")
        self.primary = self.add(*options)
        self.replica = self.add(*options, "--replicaof", f"127.0.0.1 {self.primary.port}")
        until(lambda: self.replica.client.info("replication")["master_link_status"] == "up")
        self.watchers = []
        for _ in range(3):
            file = self.folder / f"sentinel-{len(self.nodes)}.conf"
            file.write_text(
                f"sentinel monitor shop 127.0.0.1 {self.primary.port} 2\n"
                f"sentinel down-after-milliseconds shop {NODE_TIMEOUT}\nsentinel failover-timeout shop 10000\n"
            )
            self.watchers.append(self.add(str(file), "--sentinel"))
        until(lambda: all(self._sees(node) for node in self.watchers))

    @property
    def url(self) -> str:
        return "redis+sentinel://" + ",".join(f"127.0.0.1:{node.port}" for node in self.watchers) + "/shop"

    def _sees(self, node: Node) -> bool:
        with node.client as client:
            (told,) = client.sentinel_masters().values()
            return bool(told["num-slaves"] == 1 and told["num-other-sentinels"] == 2)


def until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.02)


def free_port() -> int:
    """Below 55536: a cluster's node also takes the port 10000 above its own."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            if (port := int(probe.getsockname()[1])) < 55536:
                return port
