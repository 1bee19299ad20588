"""Promise: what clients send fills no more memory than its share, and others hardly notice.

Three loads that nobody should put on a broker, each on a broker of its own: connections that begin
large requests and never finish them, members that bring megabytes of metadata, scrapers that read
the metrics page in a loop. Meanwhile one ordinary client produces a record at a time. Printed are
the most memory the broker ever had and that client's percentiles, quiet and beside the load.

    python -m benchmarks.memory [setting=value ...]
"""

from __future__ import annotations

import select
import socket
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.contenders import OTTLA_SETTINGS, Contender
from ottla.model.errors import ErrorCode
from ottla.protocol import wire
from tools import nodes

MB: Final = 1_000_000
FRAMES, FRAME_BYTES = 20, 90 * MB
MEMBERS, METADATA_BYTES = 100, 10 * MB
SCRAPERS: Final = 20
SECONDS: Final = 6
PRODUCE, FIND_COORDINATOR, JOIN_GROUP = 0, 10, 11
_PIECE: Final = bytes(1 << 20)
_CONSUMER_OFFSETS_WAIT_S: Final = 30.0


def main(settings: Mapping[str, str] | None = None) -> int:
    loads: dict[str, Callable[[nodes.Node, int], Any]] = {
        f"{FRAMES} unfinished requests of {FRAME_BYTES // MB} MB": unfinished_frames,
        f"{MEMBERS} joins with {METADATA_BYTES // MB} MB of metadata": large_members,
        f"{SCRAPERS} scrapers in a loop": scrapers,
    }
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as folder:
        for name, load in loads.items():
            metrics_port = nodes.free_ports(1)[0]
            given = {**OTTLA_SETTINGS, "metrics.port": str(metrics_port), **(settings or {})}
            with nodes.ottla(Path(folder) / load.__name__, given) as node:
                print(f"{name}:")
                _measure(Contender("ottla", node, {}), load, metrics_port)
    return 0


def _measure(
    contender: Contender, load: Callable[[nodes.Node, int], Any], metrics_port: int
) -> None:
    with contender.topic(1) as topic:
        ordinary = {"topic": topic, "size": 100, "acks": 1, "seconds": SECONDS}
        contender.drive("raw", do="one at a time", **{**ordinary, "seconds": 2})  # warm
        quiet = contender.drive("raw", do="one at a time", **ordinary)
        before = peak_mb(contender.node.pid)
        with load(contender.node, metrics_port) as said:
            beside = contender.drive("raw", do="one at a time", **ordinary)
            print(f"  {said()}")
    print(f"  most memory {before:.0f} MB before, {peak_mb(contender.node.pid):.0f} MB with it")
    for name in ("p50 ms", "p99 ms", "p99.9 ms"):
        print(f"  {name} quiet {quiet[name]:.3f}, beside it {beside[name]:.3f}")


def peak_mb(pid: int) -> float:
    """The most that was ever in memory."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / MB


@contextmanager
def unfinished_frames(node: nodes.Node, _: int) -> Iterator[Callable[[], str]]:
    """Each claims a little more than it sends, and sends as fast as the broker reads."""
    head = struct.pack(">ihhi", FRAME_BYTES + 1000, PRODUCE, 9, 1)
    with _flood(node, [(head, FRAME_BYTES)] * FRAMES) as flood:
        yield flood.said


@contextmanager
def large_members(node: nodes.Node, _: int) -> Iterator[Callable[[], str]]:
    _wait_for_groups(node)
    blob = bytes(METADATA_BYTES)
    fields = {
        "session_timeout": 30_000, "rebalance_timeout": 60_000, "member_id": "",
        "protocol_type": "consumer", "protocols": [{"name": "range", "metadata": blob}],
    }  # fmt: skip
    frames = (
        wire.encode_request(JOIN_GROUP, 3, 1, "large", {"group_id": f"group-{one}", **fields})
        for one in range(MEMBERS)
    )
    with _flood(node, [(frame, 0) for frame in frames]) as flood:
        yield flood.said


@contextmanager
def scrapers(_: nodes.Node, metrics_port: int) -> Iterator[Callable[[], str]]:
    ending, pages = threading.Event(), [0] * SCRAPERS

    def scrape(number: int) -> None:
        while not ending.is_set():
            try:
                with socket.create_connection(("127.0.0.1", metrics_port), 10) as line:
                    line.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
                    while line.recv(1 << 20):
                        pass
                pages[number] += 1
            except OSError:
                time.sleep(0.01)

    threads = [threading.Thread(target=scrape, args=(one,), daemon=True) for one in range(SCRAPERS)]
    for thread in threads:
        thread.start()
    yield lambda: f"{sum(pages) / SECONDS:.0f} pages a second"
    ending.set()


class _Flood(threading.Thread):
    """Sends to many connections at once, as fast as each is read from."""

    def __init__(self, address: tuple[str, int], loads: Sequence[tuple[bytes, int]]) -> None:
        super().__init__(daemon=True)
        self.sent = self.closed = 0
        self._ending = threading.Event()
        self._left: dict[socket.socket, tuple[bytes, int]] = {}
        self._done: list[socket.socket] = []
        for load in loads:
            connection = socket.create_connection(address)
            connection.setblocking(False)
            self._left[connection] = load

    def said(self) -> str:
        return f"{self.sent / MB:.0f} MB of it read, {self.closed} of its connections closed"

    def run(self) -> None:
        while self._left and not self._ending.is_set():
            _, writable, _ = select.select([], list(self._left), [], 0.2)
            for connection in writable:
                self._send(connection)

    def end(self) -> None:
        self._ending.set()
        self.join()
        for connection in (*self._left, *self._done):
            connection.close()

    def _send(self, connection: socket.socket) -> None:
        head, rest = self._left[connection]
        try:
            count = connection.send(head or _PIECE[: min(rest, len(_PIECE))])
        except BlockingIOError:
            return
        except OSError:
            self.closed += 1
            del self._left[connection]
            return
        self.sent += count
        self._left[connection] = (head[count:], rest) if head else (b"", rest - count)
        if self._left[connection] == (b"", 0):  # it stays open, and sends no more
            del self._left[connection]
            self._done.append(connection)


@contextmanager
def _flood(node: nodes.Node, loads: Sequence[tuple[bytes, int]]) -> Iterator[_Flood]:
    host, _, port = node.bootstrap.rpartition(":")
    flood = _Flood((host, int(port)), loads)
    flood.start()
    try:
        yield flood
    finally:
        flood.end()


def _wait_for_groups(node: nodes.Node) -> None:
    """Until the topic of groups is there; who asks first has it made."""
    host, _, port = node.bootstrap.rpartition(":")
    deadline = time.monotonic() + _CONSUMER_OFFSETS_WAIT_S
    with ExitStack() as stack:
        line = stack.enter_context(socket.create_connection((host, int(port))))
        stream = stack.enter_context(line.makefile("rb"))
        while time.monotonic() < deadline:
            fields = {"key": "g", "key_type": 0}
            line.sendall(wire.encode_request(FIND_COORDINATOR, 1, 1, "memory", fields))
            reply = stream.read(int.from_bytes(stream.read(4), "big"))
            if wire.decode_reply(FIND_COORDINATOR, 1, memoryview(reply)).error_code is (
                ErrorCode.none
            ):
                return
            time.sleep(0.1)
    raise TimeoutError("timed out waiting for the group coordinator")


if __name__ == "__main__":
    sys.exit(main(dict(item.split("=", 1) for item in sys.argv[1:])))
