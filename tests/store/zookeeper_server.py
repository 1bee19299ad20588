"""A real ZooKeeper server for tests, from the jars of Kafka 3.9.

Runs where a JDK is installed and those jars have been fetched (`make test` does both); never
downloads anything itself.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kazoo.client import KazooClient

from tests.skips import skip_without
from tools.kafka_cache import cache_dir
from tools.nodes import free_ports

MAIN = "org.apache.zookeeper.server.ZooKeeperServerMain"
SHELL = "org.apache.zookeeper.ZooKeeperMain"


class Server:
    """One server with a tick short enough for tests; it may live several times."""

    def __init__(self, folder: Path, jars: Path) -> None:
        [self.port] = free_ports(1)
        self._jars = jars
        self._config = folder / "zoo.cfg"
        self._config.write_text(
            f"tickTime=200\ndataDir={folder}\nclientPort={self.port}\nadmin.enableServer=false\n"
        )
        self.process = self._started()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def _started(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["java", "-Xmx128m", "-cp", f"{self._jars}/*", MAIN, str(self._config)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

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


@contextmanager
def zookeeper_server(folder: Path) -> Iterator[Server]:
    installed = sorted((cache_dir() / "jars").glob("server-3.9-*"))
    if not installed or shutil.which("java") is None:
        skip_without("no JDK, or the jars of Kafka 3.9 were never fetched: make setup")
    server = Server(folder, installed[-1])
    try:
        yield server
    finally:
        server.signal(signal.SIGCONT)
        server.kill()
