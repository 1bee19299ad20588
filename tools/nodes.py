"""One broker as a process of its own: an Apache Kafka node, or Ottla.

Owns: the process, its settings file, and its data folder while the node runs.
Never: knows what the node is for; the interop tests and the benchmarks start either kind the same
way and hold it to the same things.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tools import kafka_cache

# What config/server.properties of the Kafka distribution says about the parts that matter.
RECOMMENDED: Final[Mapping[str, str]] = {
    "num.network.threads": "3",
    "num.io.threads": "8",
    "socket.send.buffer.bytes": "102400",
    "socket.receive.buffer.bytes": "102400",
    "socket.request.max.bytes": "104857600",
    "num.recovery.threads.per.data.dir": "2",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
# What bin/kafka-server-start.sh and kafka-run-class.sh give the JVM.
JVM: Final = (
    "-Xms1g",
    "-Xmx1g",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
QUICK_JVM: Final = kafka_cache.SHORT_LIVED
"""For a node that lives for the time of some tests: it takes 5 s of a core to start and stop
instead of 9 s, most of which went to compiling what is not called often enough to gain by it."""
_READY_TIMEOUT_S: Final = 60.0
_STOP_TIMEOUT_S: Final = 30.0
_CLUSTER_ID: Final = "b3R0bGEtaW50ZXJvcC1rYQ"


class NotReady(Exception):
    """The node ended, or said nothing in time; the message holds what it wrote."""


class Node(NamedTuple):
    name: str
    bootstrap: str
    process: subprocess.Popen[bytes]
    data_dir: Path
    said: Path

    @property
    def pid(self) -> int:
        return self.process.pid


@contextmanager
def kafka(
    folder: Path,
    settings: Mapping[str, str] | None = None,
    *,
    kind: str = "server",
    listeners: Sequence[str] = (),
    options: Sequence[str] = JVM,
) -> Iterator[Node]:
    """A formatted KRaft node, broker and controller in one, that answers.

    `listeners` are further ones, beside that for PLAINTEXT; `options` are Java's.
    """
    node = start_kafka(folder, settings, kind=kind, listeners=listeners, options=options)
    try:
        yield node
    finally:
        stop(node)


@contextmanager
def ottla(
    folder: Path,
    settings: Mapping[str, str] | None = None,
    *,
    python: Sequence[str] = (),
    listeners: Sequence[str] = (),
    source: Path | None = None,
) -> Iterator[Node]:
    """`ottla serve` on a free port, once it says that it is ready; of another checkout's `src`."""
    node = start_ottla(folder, settings, python=python, listeners=listeners, source=source)
    try:
        yield node
    finally:
        stop(node)


def start_kafka(
    folder: Path,
    settings: Mapping[str, str] | None = None,
    *,
    kind: str = "server",
    listeners: Sequence[str] = (),
    options: Sequence[str] = JVM,
) -> Node:
    properties, port = format_kafka(folder, settings, kind=kind, listeners=listeners)
    return run_kafka(folder, properties, port, kind=kind, options=options)


def format_kafka(
    folder: Path,
    settings: Mapping[str, str] | None = None,
    *,
    kind: str = "server",
    listeners: Sequence[str] = (),
) -> tuple[Path, int]:
    """Writes the settings and formats the data folder, as an operator does once."""
    folder.mkdir(parents=True, exist_ok=True)
    port, controller_port = free_ports(2)
    properties = folder / "server.properties"
    controller = f"CONTROLLER://127.0.0.1:{controller_port}"
    values = {
        **RECOMMENDED,
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": ",".join([f"PLAINTEXT://127.0.0.1:{port}", *listeners, controller]),
        "log.dirs": str(folder / "data"),
        **(settings or {}),
    }
    properties.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    done = kafka_cache.run_tool(
        "kafka-storage", "format", "-t", _CLUSTER_ID, "-c", str(properties), kind=kind
    )
    if done.returncode != 0:
        raise NotReady(done.stdout + done.stderr)
    return properties, port


def run_kafka(
    folder: Path,
    properties: Path,
    port: int,
    *,
    kind: str = "server",
    options: Sequence[str] = JVM,
) -> Node:
    """Starts a formatted node and waits until it answers."""
    node = launch_kafka(folder, properties, port, kind=kind, options=options)
    _wait(node, lambda: answers(port))
    return node


def launch_kafka(
    folder: Path,
    properties: Path,
    port: int,
    *,
    kind: str = "server",
    options: Sequence[str] = JVM,
) -> Node:
    """Starts a formatted node's process and waits for nothing."""
    path = kafka_cache.classpath(kind)
    command = kafka_cache.java(path, "kafka.Kafka", str(properties), options=options)
    return _launch("kafka", folder, command, f"127.0.0.1:{port}")


def start_ottla(
    folder: Path,
    settings: Mapping[str, str] | None = None,
    *,
    port: int = 0,
    python: Sequence[str] = (),
    listeners: Sequence[str] = (),
    source: Path | None = None,
) -> Node:
    node = launch_ottla(
        folder, settings, port=port, python=python, listeners=listeners, source=source
    )
    _wait(node, lambda: ready_address(node.said.read_text()) is not None)
    address = ready_address(node.said.read_text())
    assert address is not None
    return node._replace(bootstrap=address)


def launch_ottla(
    folder: Path,
    settings: Mapping[str, str] | None = None,
    *,
    port: int = 0,
    python: Sequence[str] = (),
    listeners: Sequence[str] = (),
    source: Path | None = None,
) -> Node:
    """Starts `ottla serve` and waits for nothing; port 0 lets it choose, and it says which."""
    command = [sys.executable, *python, "-m", "ottla", "serve"]
    command += ["--listeners", ",".join([f"PLAINTEXT://127.0.0.1:{port}", *listeners])]
    command += ["--data-dir", str(folder / "data")]
    for key, value in (settings or {}).items():
        command += ["--set", f"{key}={value}"]
    return _launch("ottla", folder, command, f"127.0.0.1:{port}", source)


def stop(node: Node) -> int:
    """Asks the node to end, as an operator would, and insists when it does not."""
    node.process.terminate()
    try:
        return node.process.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        node.process.kill()
        return node.process.wait()


def ready_address(said: str) -> str | None:
    """The address in `broker 0 ready on PLAINTEXT://127.0.0.1:9092, data in DIR`."""
    for line in said.splitlines():
        _, ready, rest = line.partition(" ready on PLAINTEXT://")
        if ready:
            return rest.split(",")[0]
    return None


def answers(port: int) -> bool:
    """Whether a broker on this port replies to ApiVersions: it listens before it can answer."""
    request = struct.pack(">hhih", 18, 0, 7, -1)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            return len(connection.recv(8)) == 8
    except OSError:
        return False


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    sockets = [socket.create_server((host, 0)) for _ in range(count)]
    ports = [held.getsockname()[1] for held in sockets]
    for held in sockets:
        held.close()
    return ports


def _launch(
    name: str,
    folder: Path,
    command: Sequence[str],
    bootstrap: str,
    source: Path | None = None,
) -> Node:
    folder.mkdir(parents=True, exist_ok=True)
    said = folder / "said.txt"
    environment = os.environ if source is None else {**os.environ, "PYTHONPATH": str(source)}
    with said.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environment)
    return Node(name, bootstrap, process, folder / "data", said)


def _wait(node: Node, ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _READY_TIMEOUT_S
    while not ready():
        if node.process.poll() is not None or time.monotonic() > deadline:
            stop(node)
            raise NotReady(f"{node.name} did not start:\n{node.said.read_text()[-4000:]}")
        time.sleep(0.005)
