"""Real ZooKeeper servers for tests, from the jars of Kafka 3.9.

Runs where a JDK is installed and those jars have been fetched (`make test` does both); never
downloads anything itself.
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kazoo.client import KazooClient

from tests.cluster.process import wait_for
from tests.skips import skip_without
from tools.kafka_cache import SHORT_LIVED, cache_dir
from tools.nodes import free_ports

MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
SHELL = "org.apache.zookeeper.ZooKeeperMain"


class Server:
    """One server with a tick short enough for tests; it may live several times."""

    def __init__(
        self, folder: Path, jars: Path, port: int, more: str = "", options: Sequence[str] = ()
    ) -> None:
        self.port = port
        self._folder = folder
        self._jars = jars
        self._options = options
        self._config = folder / "zoo.cfg"
        self._config.write_text(
            f"tickTime=200\ndataDir={folder}\nclientPort={port}\nadmin.enableServer=false\n"
            f"4lw.commands.whitelist=srvr\n{more}"
        )
        self.process = self._started()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def _started(self) -> subprocess.Popen[bytes]:
        options = (*SHORT_LIVED, "-Xmx128m", *self._options)
        return subprocess.Popen(
            ["java", *options, "-cp", f"{self._jars}/*", MAIN, str(self._config)],
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

    def lose_data(self) -> None:
        """Kill it, delete everything it stored, and start it again."""
        self.kill()
        shutil.rmtree(self._folder / "version-2")
        self.start_again()
        self.wait_until_it_serves()

    def wait_until_it_serves(self) -> None:
        """Alone, or as a member of a quorum."""
        wait_for(lambda: "Mode: " in self._state(), 60, f"ZooKeeper at {self.address}")

    def _state(self) -> str:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
                connection.sendall(b"srvr")
                return connection.makefile().read()
        except OSError:
            return ""

    def shell(self, *words: str) -> str:
        """What ZooKeeper's own shell prints for a command."""
        java = ["java", *SHORT_LIVED, "-cp", f"{self._jars}/*"]
        done = subprocess.run(
            [*java, SHELL, "-server", self.address, *words],
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
    """Several servers that elect a leader; they serve while most of them live."""

    def __init__(self, servers: Sequence[Server]) -> None:
        self.servers = servers

    @property
    def address(self) -> str:
        return ",".join(server.address for server in self.servers)

    def restore(self) -> None:
        """Bring every server back, whatever a test did to it."""
        for server in self.servers:
            server.signal(signal.SIGCONT)
            if server.process.poll() is not None:
                server.start_again()
        for server in self.servers:
            server.wait_until_it_serves()


@contextmanager
def zookeeper_server(folder: Path, more: str = "", options: Sequence[str] = ()) -> Iterator[Server]:
    """`more`: lines of its settings file; `options`: of Java."""
    [port] = free_ports(1)
    server = Server(folder, _jars(), port, more, options)
    try:
        yield server
    finally:
        server.signal(signal.SIGCONT)
        server.kill()


@contextmanager
def zookeeper_ensemble(
    folder: Path, count: int, more: str = "", options: Sequence[str] = ()
) -> Iterator[list[Server]]:
    """Several servers with a leader; all of them serve. `more`, `options`: as for one server."""
    jars, ports = _jars(), free_ports(3 * count)
    clients, peers, elections = ports[:count], ports[count : 2 * count], ports[2 * count :]
    members = "initLimit=20\nsyncLimit=10\n" + "".join(
        f"server.{number}=127.0.0.1:{peer}:{election}\n"
        for number, (peer, election) in enumerate(zip(peers, elections, strict=True), 1)
    )
    with ExitStack() as stack:
        servers = []
        for number, port in enumerate(clients, 1):
            own = folder / f"server-{number}"
            own.mkdir(parents=True)
            (own / "myid").write_text(str(number))
            server = Server(own, jars, port, members + more, options)
            stack.callback(server.kill)
            stack.callback(server.signal, signal.SIGCONT)
            servers.append(server)
        for server in servers:
            server.wait_until_it_serves()
        yield servers


def find_java() -> None:
    if shutil.which("java") is None:
        skip_without("no JDK")


def _jars() -> Path:
    installed = sorted((cache_dir() / "jars").glob("server-3.9-*"))
    if not installed or shutil.which("java") is None:
        skip_without("no JDK, or the jars of Kafka 3.9 were never fetched: make setup")
    return installed[-1]
