"""A load driver on bare sockets: pre-built frames out, replies counted, nothing decoded.

Owns: the sockets of a measurement. Never: is one of the clients that a user has; it exists because
those stop at what one client process can do, and here the broker shall be the limit. Both brokers
get the same bytes. Runs as a process of its own: `python -m benchmarks.raw '{"do": "produce", …}'`.
"""

from __future__ import annotations

import json
import select
import socket
import ssl
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from benchmarks import frames

BATCH_BYTES: Final = 256 << 10
IN_FLIGHT: Final = 5  # what clients allow themselves by default
PARTITION_MAX_BYTES: Final = 1 << 20
PARTITIONS_A_FETCH: Final = 16
_FETCH_HEAD: Final = struct.Struct(">iiihii")  # size, correlation, throttle, error, session, topics
_PARTITION: Final = struct.Struct(">ihqqqi")  # index, error, high watermark, stable, start, aborted

Figures = dict[str, float]


def produce(load: Mapping[str, Any]) -> Figures:
    """Sends `bytes` of records over `connections`, five requests in flight on each."""
    topic, partitions = load["topic"], load["partitions"]
    count = max(1, BATCH_BYTES // load["size"])
    batch = frames.batch(load["size"], count, now_ms=int(time.time() * 1000))
    requests = -(-load["bytes"] // (count * load["size"]))
    shares = _shares(range(partitions), load["connections"])
    each = -(-requests // len(shares))

    def drive(share: Sequence[int]) -> None:
        sent = [frames.produce(topic, partition, batch, load["acks"]) for partition in share]
        with _open(load) as connection:
            _pump(connection, sent, each, topic)

    seconds = _timed(drive, shares)
    total = each * len(shares) * count
    return {"seconds": seconds, "records": total, "bytes": total * load["size"]}


def consume(load: Mapping[str, Any]) -> Figures:
    """Reads everything that `produce` wrote to the topic, several partitions in each fetch."""
    count = max(1, BATCH_BYTES // load["size"])
    batch = frames.batch(load["size"], count, now_ms=0)
    shares = _shares(range(load["partitions"]), load["connections"])
    read = [0] * len(shares)

    def drive(share: Sequence[int]) -> None:
        with _open(load) as connection:
            reader = _Reader(connection, load["topic"], len(batch), count)
            read[shares.index(share)] = reader.drain(share)

    seconds = _timed(drive, shares)
    return {"seconds": seconds, "records": sum(read), "bytes": sum(read) * load["size"]}


def small(load: Mapping[str, Any]) -> Figures:
    """One-record requests over many connections, for `seconds`; how many were answered."""
    topic, window = load["topic"], load["in_flight"]
    batch = frames.batch(load["size"], 1, now_ms=int(time.time() * 1000))
    reply = frames.produce_reply_size(topic)
    connections = [connect(load["bootstrap"]) for _ in range(load["connections"])]
    poller = select.epoll()
    state: dict[int, tuple[socket.socket, memoryview, int]] = {}
    for number, connection in enumerate(connections):
        frame = frames.produce(topic, number % load["partitions"], batch, load["acks"])
        state[connection.fileno()] = (connection, memoryview(frame * window), len(frame))
        poller.register(connection, select.EPOLLIN)
        connection.sendall(frame * window)
    received = 0
    left = dict.fromkeys(state, 0)  # bytes of a reply that has not wholly come
    start = time.perf_counter()
    end = start + load["seconds"]
    while time.perf_counter() < end:
        for number, _ in poller.poll(1):
            connection, ready, frame_bytes = state[number]
            got = len(connection.recv(65536)) + left[number]
            replies, left[number] = divmod(got, reply)
            received += replies
            connection.sendall(ready[: replies * frame_bytes])
    seconds = time.perf_counter() - start
    for connection in connections:
        connection.close()
    return {"seconds": seconds, "requests": received}


def one_at_a_time(load: Mapping[str, Any]) -> Figures:
    """The time from a small request to its reply, when nothing else is asked."""
    topic = load["topic"]
    batch = frames.batch(load["size"], 1, now_ms=int(time.time() * 1000))
    frame = frames.produce(topic, 0, batch, load["acks"])
    reply = frames.produce_reply_size(topic)
    taken = []
    with connect(load["bootstrap"]) as connection:
        end = time.perf_counter() + load["seconds"]
        while (start := time.perf_counter()) < end:
            connection.sendall(frame)
            _receive(connection, reply)
            taken.append(time.perf_counter() - start)
    return percentiles_ms(taken)


def exchange(connection: socket.socket, requests: Iterable[bytes]) -> bytes:
    """Sends each request after the reply to the one before; the last reply."""
    reply = b""
    for request in requests:
        connection.sendall(request)
        reply = _receive(connection, int.from_bytes(_receive(connection, 4), "big"))
    return reply


def percentiles_ms(seconds: Sequence[float]) -> Figures:
    ordered = sorted(seconds)
    return {
        f"p{name} ms": 1000 * ordered[min(len(ordered) - 1, int(len(ordered) * share))]
        for name, share in (("50", 0.5), ("99", 0.99), ("99.9", 0.999))
    }


class _Reader:
    """Fetches a share of the partitions to their ends and lets the records fall."""

    def __init__(
        self, connection: socket.socket, topic: str, batch_bytes: int, batch_records: int
    ) -> None:
        self._connection = connection
        self._topic = topic
        self._batch_bytes = batch_bytes
        self._batch_records = batch_records
        self._scratch = memoryview(bytearray(1 << 20))
        self._tail = 2 + len(topic) + 4  # the topic's name and its number of partitions

    def drain(self, partitions: Sequence[int]) -> int:
        offsets = dict.fromkeys(partitions, 0)
        waiting = list(partitions)
        while waiting:
            fetched, waiting = waiting[:PARTITIONS_A_FETCH], waiting[PARTITIONS_A_FETCH:]
            places = [(partition, offsets[partition]) for partition in fetched]
            request = frames.fetch(self._topic, places, partition_max_bytes=PARTITION_MAX_BYTES)
            self._connection.sendall(request)
            waiting += self._reply(offsets)
        return sum(offsets.values())

    def _reply(self, offsets: dict[int, int]) -> list[int]:
        """Takes one reply; which of its partitions have more."""
        head = _receive(self._connection, _FETCH_HEAD.size + self._tail)
        _, _, _, error, _, _ = _FETCH_HEAD.unpack_from(head)
        assert error == 0, f"fetch error {error}"
        (count,) = struct.unpack_from(">i", head, len(head) - 4)
        return [partition for _ in range(count) if (partition := self._partition(offsets)) >= 0]

    def _partition(self, offsets: dict[int, int]) -> int:
        head = _receive(self._connection, _PARTITION.size + 8)
        index, error, high_watermark, _, _, aborted = _PARTITION.unpack_from(head)
        assert error == 0 and aborted <= 0, f"partition {index}: error {error}"
        _, size = struct.unpack_from(">ii", head, _PARTITION.size)
        self._discard(max(size, 0))
        offsets[index] += size // self._batch_bytes * self._batch_records
        return index if offsets[index] < high_watermark else -1

    def _discard(self, size: int) -> None:
        while size:
            got = self._connection.recv_into(self._scratch[: min(size, len(self._scratch))])
            if not got:
                raise ConnectionError("the broker closed the connection")
            size -= got


def _pump(connection: socket.socket, sent: Sequence[bytes], count: int, topic: str) -> None:
    """`count` requests, the given ones in turn, never more than five unanswered."""
    reply = frames.produce_reply_size(topic)
    answered = 0
    for number in range(count):
        if number - answered >= IN_FLIGHT:
            error = frames.produce_error(_receive(connection, reply), topic)
            assert error == 0, f"produce error {error}"
            answered += 1
        connection.sendall(sent[number % len(sent)])
    _receive(connection, reply * (count - answered))


def _receive(connection: socket.socket, size: int) -> bytes:
    if isinstance(connection, ssl.SSLSocket):
        data = _receive_decrypted(connection, size)
    else:
        data = connection.recv(size, socket.MSG_WAITALL)
    if len(data) < size:
        raise ConnectionError("the broker closed the connection")
    return data


def _receive_decrypted(connection: ssl.SSLSocket, size: int) -> bytes:
    """As far as it comes."""
    data = bytearray(size)
    count = 0
    while count < size and (got := connection.recv_into(memoryview(data)[count:])):
        count += got
    return bytes(data[:count])


def _open(load: Mapping[str, Any]) -> socket.socket:
    """A connection; by TLS if the load names an authority."""
    connection = connect(load["bootstrap"])
    if not load.get("authority"):
        return connection
    return ssl.create_default_context(cafile=load["authority"]).wrap_socket(
        connection, server_hostname=load["bootstrap"].rpartition(":")[0]
    )


def connect(bootstrap: str) -> socket.socket:
    host, _, port = bootstrap.rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=60)
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _shares(partitions: Sequence[int], connections: int) -> list[Sequence[int]]:
    shares = [partitions[first::connections] for first in range(connections)]
    return [share for share in shares if share]


def _timed(drive: Callable[[Sequence[int]], None], shares: Sequence[Sequence[int]]) -> float:
    """Runs one thread a share, for system calls release the lock; from first start to last end."""
    failed: list[BaseException] = []

    def guarded(share: Sequence[int]) -> None:
        try:
            drive(share)
        except BaseException as failure:
            failed.append(failure)

    threads = [threading.Thread(target=guarded, args=(share,)) for share in shares]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return time.perf_counter() - start


DO: Final[Mapping[str, Callable[[Mapping[str, Any]], Figures]]] = {
    "produce": produce,
    "consume": consume,
    "small": small,
    "one at a time": one_at_a_time,
}


if __name__ == "__main__":
    job = json.loads(sys.argv[1])
    print(json.dumps(DO[job["do"]](job)))
