"""Promise: from cold to the first record read back ten times quicker than Kafka, idle in a tenth.

A node that has run before, with one topic, is started again; the clock runs from the start of its
process until a record written then has been read back over a bare socket. Ottla's modules are
compiled before, as pip compiles what it installs: Kafka's classes come compiled too.
"""

from __future__ import annotations

import compileall
import socket
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

import ottla
from benchmarks import frames
from benchmarks.contenders import OTTLA_SETTINGS, Contender, rss_mb
from benchmarks.scenario import Readings, Scenario
from tools import nodes

TOPIC: Final = "first"
_WAIT_S: Final = 60.0
_IDLE_S: Final = 3.0


def scenarios(full: bool) -> Iterator[Scenario]:
    yield Scenario("cold start, one topic", _measure)


def _measure(contender: Contender) -> Readings:
    """The running contender only says which kind of node to start."""
    prepared = _prepared_kafka if contender.name == "kafka" else _prepared_ottla
    with tempfile.TemporaryDirectory(dir=contender.node.data_dir.parent.parent) as folder:
        launch = prepared(Path(folder))
        began = time.perf_counter()
        node = launch()
        try:
            _read_back(node.bootstrap)
            first_record_s = time.perf_counter() - began
            time.sleep(_IDLE_S)
            return {"first record s": first_record_s, "idle MB": rss_mb(node.pid)}
        finally:
            nodes.stop(node)


def _prepared_kafka(folder: Path) -> Callable[[], nodes.Node]:
    properties, port = nodes.format_kafka(folder)
    _create_topic(nodes.run_kafka(folder, properties, port))
    return lambda: nodes.launch_kafka(folder, properties, port)


def _prepared_ottla(folder: Path) -> Callable[[], nodes.Node]:
    compileall.compile_dir(Path(ottla.__file__).parent, quiet=1)
    _create_topic(nodes.start_ottla(folder))
    (port,) = nodes.free_ports(1)
    return lambda: nodes.launch_ottla(folder, OTTLA_SETTINGS, port=port)


def _create_topic(node: nodes.Node) -> None:
    admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
    for future in admin.create_topics([NewTopic(TOPIC, 1, 1)]).values():
        future.result(_WAIT_S)
    nodes.stop(node)


def _read_back(bootstrap: str) -> None:
    """Writes one record and reads it, from the first moment the broker lets us."""
    batch = frames.batch(100, 1, now_ms=int(time.time() * 1000))
    write = frames.produce(TOPIC, 0, batch, 1)
    read = frames.fetch(TOPIC, [(0, 0)], partition_max_bytes=1 << 20)
    host, _, port = bootstrap.rpartition(":")
    deadline = time.monotonic() + _WAIT_S
    while time.monotonic() < deadline:
        try:
            with socket.create_connection((host, int(port)), timeout=_WAIT_S) as connection:
                connection.sendall(write)
                reply = _exactly(connection, frames.produce_reply_size(TOPIC))
                if frames.produce_error(reply, TOPIC) == 0:
                    connection.sendall(read)
                    (size,) = struct.unpack(">i", _exactly(connection, 4))
                    assert batch[61:] in _exactly(connection, size)
                    return
        except (OSError, struct.error):
            pass  # not listening yet, or not ready to answer
        time.sleep(0.002)
    raise TimeoutError("timed out reading back a record")


def _exactly(connection: socket.socket, size: int) -> bytes:
    """A socket with a timeout may give less than it was asked for, whatever the flags."""
    got = b""
    while len(got) < size:
        more = connection.recv(size - len(got))
        if not more:
            raise ConnectionError("the broker closed the connection")
        got += more
    return got
