"""Real ZooKeeper servers for tests, from the jars of Kafka 3.9: one alone, or an ensemble.

Runs where a JDK is installed and those jars have been fetched (`make test` does both); never
downloads anything itself.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kazoo.client import KazooClient

from tests.skips import skip_without
from tools.kafka_cache import cache_dir
from tools.nodes import free_ports

MAIN: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
SHELL: Final = "org.apache.zookeeper.ZooKeeperMain"
START_S: Final = 60.0


class Server:
    """One server with a tick short enough for tests; it may live several times.

    `peers`: the servers of its ensemble as ZooKeeper's settings name them; none: it is alone.
    """

    def __init__(self, folder: Path, jars: Path, number: int = 1, peers: Sequence[str] = ()):
        [self.port] = free_ports(1)
        self._jars = jars
        self._config = folder / "zoo.cfg"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "myid").write_text(f"{number}\n")
        settings = [
            "tickTime=200",
            "initLimit=50",
            "syncLimit=25",
            f"dataDir={folder}",
            f"clientPort={self.port}",
            "admin.enableServer=false",
            *peers,
        ]
        self._config.write_text("".join(f"{line}\n" for line in settings))
        self.process = self._started()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def _started(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["java", "-Xmx128m", "-XX:+UseSerialGC", "-cp", f"{self._jars}/*", MAIN,
             str(self._config)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def start_again(self) -> None:
        self.process = self._started()

    def shell(self, *words: str) -> str:
        """What ZooKeeper's own shell prints for a command."""
        done = subprocess.run(
            ["java", "-cp", f"{self._jars}/*", SHELL, "-server", self.address, *words],
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        return done.stdout

    def end_session(self, client_id: tuple[int, bytes]) -> None:
        """End a client's session behind its back: ZooKeeper sees the same session twice."""
        double = KazooClient(hosts=self.address, client_id=client_id)
        double.start()
        double.stop()
        double.close()


class Ensemble:
    """Several servers that elect a leader; it serves while most of them live."""

    def __init__(self, folder: Path, jars: Path, count: int = 3) -> None:
        ports = free_ports(2 * count)
        peers = [
            f"server.{number}=127.0.0.1:{ports[2 * number - 2]}:{ports[2 * number - 1]}"
            for number in range(1, count + 1)
        ]
        self.servers = [
            Server(folder / f"server-{number}", jars, number, peers)
            for number in range(1, count + 1)
        ]

    @property
    def address(self) -> str:
        return ",".join(server.address for server in self.servers)

    def wait_until_serving(self) -> None:
        deadline = time.monotonic() + START_S
        while True:
            client = KazooClient(hosts=self.address, timeout=4.0)
            try:
                client.start(5)
                client.exists("/")
                return
            except Exception:  # kazoo raises its own, and those of its connection
                if time.monotonic() > deadline:
                    raise
            finally:
                client.stop()
                client.close()

    def restore(self) -> None:
        """Bring every server back, whatever a test did to it."""
        for server in self.servers:
            server.signal(signal.SIGCONT)
            if server.process.poll() is not None:
                server.start_again()
        self.wait_until_serving()

    def kill(self) -> None:
        for server in self.servers:
            if server.process.poll() is None:
                server.signal(signal.SIGCONT)
            server.kill()


def _jars() -> Path:
    installed = sorted((cache_dir() / "jars").glob("server-3.9-*"))
    if not installed or shutil.which("java") is None:
        skip_without("no JDK, or the jars of Kafka 3.9 were never fetched: make setup")
    return installed[-1]


@contextmanager
def zookeeper_server(folder: Path) -> Iterator[Server]:
    server = Server(folder, _jars())
    try:
        yield server
    finally:
        server.signal(signal.SIGCONT)
        server.kill()


@contextmanager
def zookeeper_ensemble(folder: Path) -> Iterator[Ensemble]:
    """Three servers that have elected a leader."""
    ensemble = Ensemble(folder, _jars())
    try:
        ensemble.wait_until_serving()
        yield ensemble
    finally:
        ensemble.kill()
